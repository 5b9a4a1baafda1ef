/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Shared by the builders and handlers of texture and surface instructions. Such an instruction
 * keeps its registers in xops: first those that it writes (ptx_insn.type2 is their number), then
 * those that it reads. ptx_insn.nx is the number of both together.
 */
#ifndef QCU_SOFT_PTX_TEX_H
#define QCU_SOFT_PTX_TEX_H

#include "qcu-device/soft/ptx/memory/ptx_image.h"
#include "qcu-device/soft/ptx/memory/ptx_mem.h"

/*
 * Geometries, in ptx_insn.sub. The two low bits are the number of dimensions. 4: a layer comes
 * first. 8: the coordinates are a direction in a cube map.
 */
enum ptx_geom {
	GEOM_1D = 1,
	GEOM_2D,
	GEOM_3D,
	GEOM_A1D = 1 | 4,
	GEOM_A2D,
	GEOM_CUBE = 2 | 8,
	GEOM_ACUBE = 2 | 4 | 8,
};
#define GEOM_DIMS(g)	 ((g)&3u)
#define GEOM_LAYERED(g)	 (((g)&4u) != 0)
#define GEOM_IS_CUBE(g)	 (((g)&8u) != 0)
#define GEOM_OPERANDS(g) (GEOM_DIMS(g) + GEOM_LAYERED(g) + GEOM_IS_CUBE(g))

/* The most operands: a layer, three coordinates, and two gradients of three values each. */
#define TEX_OPERANDS 10u

/* ptx_insn.flags */
#define TEX_LEVEL  1u
#define TEX_GRAD   2u
#define TEX_GATHER 4u

enum ptx_query {
	QUERY_WIDTH,
	QUERY_HEIGHT,
	QUERY_DEPTH,
	QUERY_LAYERS,
	QUERY_LEVELS,
	QUERY_SAMPLES,
	QUERY_NORMALIZED,
};

/* What an access outside of the surface does, in ptx_insn.space. */
enum ptx_outside { OUTSIDE_TRAP, OUTSIDE_CLAMP, OUTSIDE_ZERO };

#define SURF_FORMATTED 1u /* ptx_insn.flags: x counts elements, values are converted */

struct ptx_image_last {
	const struct ptx_image *img;
	uint64_t number;
};

/* ptx_tex.c */
const struct ptx_image *ptx_image_find(struct ptx_warp *w, unsigned int lane, uint64_t number,
				       bool surface, struct ptx_image_last *last);
void ptx_h_tex(struct ptx_warp *w, const struct ptx_insn *in, uint32_t m);
void ptx_h_query(struct ptx_warp *w, const struct ptx_insn *in, uint32_t m);
/* ptx_surf.c */
void ptx_h_suld(struct ptx_warp *w, const struct ptx_insn *in, uint32_t m);
void ptx_h_sust(struct ptx_warp *w, const struct ptx_insn *in, uint32_t m);
void ptx_h_sured(struct ptx_warp *w, const struct ptx_insn *in, uint32_t m);

/* Does the instruction keep its registers in xops as described above? */
static inline bool ptx_is_image(const struct ptx_insn *in)
{
	return in->fn == ptx_h_tex || in->fn == ptx_h_suld || in->fn == ptx_h_sust ||
	       in->fn == ptx_h_sured;
}

#endif
