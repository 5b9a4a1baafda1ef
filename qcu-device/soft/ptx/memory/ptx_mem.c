// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Loads and stores. A value narrower than its register is sign- or zero-extended, as its type says.
 */
#ifndef __clang__
#pragma GCC optimize("O3")
#endif
#include <string.h>

#include "qcu-device/soft/ptx/memory/ptx_mem.h"
#include "qcu-device/soft/ptx/ops/ptx_op_loop.h"

#define LOAD_AS(M, D)                                                    \
	do {                                                             \
		D *d_ = d;                                               \
		if (shape == SHAPE_UNIFORM) {                            \
			M v_;                                            \
			memcpy(&v_, p[0], sizeof(v_));                   \
			for (unsigned int i = 0; i < PTX_LANES; i++)     \
				d_[i] = (D)v_;                           \
		} else if (shape == SHAPE_LINEAR) {                      \
			M v_[PTX_LANES];                                 \
			memcpy(v_, p[0], sizeof(v_));                    \
			for (unsigned int i = 0; i < PTX_LANES; i++)     \
				d_[i] = (D)v_[i];                        \
		} else if (m == PTX_FULL) {                              \
			for (unsigned int i = 0; i < PTX_LANES; i++) {   \
				M v_;                                    \
				memcpy(&v_, p[i], sizeof(v_));           \
				d_[i] = (D)v_;                           \
			}                                                \
		} else {                                                 \
			for (uint32_t r = m; r; r &= r - 1) {            \
				M v_;                                    \
				memcpy(&v_, p[ptx_lane(r)], sizeof(v_)); \
				d_[ptx_lane(r)] = (D)v_;                 \
			}                                                \
		}                                                        \
	} while (0)

/* Memory type and register width, in one number. */
#define COMBO(t, w) ((t)*16 + (w))

static void load_lanes(enum ptx_shape shape, uint8_t *const *p, void *d, enum ptx_type t,
		       unsigned int width, uint32_t m)
{
	switch (COMBO(t, width)) {
	case COMBO(T_B8, 2):
	case COMBO(T_U8, 2):
		LOAD_AS(uint8_t, uint16_t);
		break;
	case COMBO(T_B8, 4):
	case COMBO(T_U8, 4):
		LOAD_AS(uint8_t, uint32_t);
		break;
	case COMBO(T_B8, 8):
	case COMBO(T_U8, 8):
		LOAD_AS(uint8_t, uint64_t);
		break;
	case COMBO(T_S8, 2):
		LOAD_AS(int8_t, int16_t);
		break;
	case COMBO(T_S8, 4):
		LOAD_AS(int8_t, int32_t);
		break;
	case COMBO(T_S8, 8):
		LOAD_AS(int8_t, int64_t);
		break;
	case COMBO(T_S16, 4):
		LOAD_AS(int16_t, int32_t);
		break;
	case COMBO(T_S16, 8):
		LOAD_AS(int16_t, int64_t);
		break;
	case COMBO(T_S32, 8):
		LOAD_AS(int32_t, int64_t);
		break;
	default:
		switch (COMBO(ptx_type_size(t), width)) {
		case COMBO(2, 2):
			LOAD_AS(uint16_t, uint16_t);
			break;
		case COMBO(2, 4):
			LOAD_AS(uint16_t, uint32_t);
			break;
		case COMBO(2, 8):
			LOAD_AS(uint16_t, uint64_t);
			break;
		case COMBO(4, 4):
			LOAD_AS(uint32_t, uint32_t);
			break;
		case COMBO(4, 8):
			LOAD_AS(uint32_t, uint64_t);
			break;
		default:
			LOAD_AS(uint64_t, uint64_t);
		}
	}
}

#define STORE_AS(M, S)                                                                      \
	do {                                                                                \
		const S *s_ = src;                                                          \
		if (shape == SHAPE_LINEAR) {                                                \
			M v_[PTX_LANES];                                                    \
			for (unsigned int i = 0; i < PTX_LANES; i++)                        \
				v_[i] = (M)s_[i];                                           \
			memcpy(p[0], v_, sizeof(v_));                                       \
		} else {                                                                    \
			for (uint32_t r = m; r; r &= r - 1) {                               \
				const M v_ = (M)s_[ptx_lane(r)];                            \
				memcpy(shape == SHAPE_UNIFORM ? p[0] : p[ptx_lane(r)], &v_, \
				       sizeof(v_));                                         \
			}                                                                   \
		}                                                                           \
	} while (0)

static void store_lanes(enum ptx_shape shape, uint8_t *const *p, const void *src, unsigned int size,
			unsigned int width, uint32_t m)
{
	switch (COMBO(size, width)) {
	case COMBO(1, 2):
		STORE_AS(uint8_t, uint16_t);
		break;
	case COMBO(1, 4):
		STORE_AS(uint8_t, uint32_t);
		break;
	case COMBO(1, 8):
		STORE_AS(uint8_t, uint64_t);
		break;
	case COMBO(2, 2):
		STORE_AS(uint16_t, uint16_t);
		break;
	case COMBO(2, 4):
		STORE_AS(uint16_t, uint32_t);
		break;
	case COMBO(2, 8):
		STORE_AS(uint16_t, uint64_t);
		break;
	case COMBO(4, 4):
		STORE_AS(uint32_t, uint32_t);
		break;
	case COMBO(4, 8):
		STORE_AS(uint32_t, uint64_t);
		break;
	default:
		STORE_AS(uint64_t, uint64_t);
	}
}

void ptx_h_ld(struct ptx_warp *w, const struct ptx_insn *in, uint32_t m)
{
	uint8_t *p[PTX_LANES];
	enum ptx_shape shape;

	shape = ptx_resolve(w, in, m, ptx_type_size((enum ptx_type)in->type), false, p);
	if (shape != SHAPE_FAULT)
		load_lanes(shape, p, ptx_at(w, in->d), (enum ptx_type)in->type, in->sub, m);
}

void ptx_h_st(struct ptx_warp *w, const struct ptx_insn *in, uint32_t m)
{
	unsigned int size = ptx_type_size((enum ptx_type)in->type);
	uint8_t *p[PTX_LANES];
	enum ptx_shape shape;

	shape = ptx_resolve(w, in, m, size, true, p);
	if (shape != SHAPE_FAULT)
		store_lanes(shape, p, ptx_at(w, in->b), size, in->sub, m);
}

/*
 * Vectors. A GPU reads and writes a lane's vector of up to 16 bytes in one access, and programs
 * rely on it: CUB passes a value and its state from block to block in one vector. So vectors are
 * copied whole, between memory and `whole`, which has the elements.
 */
#define VECTOR_MAX 32

typedef uint64_t part16 __attribute__((vector_size(16)));

/* Each 16 bytes, or what there is if it is less, are one access of the processor. */
static void copy_whole(uint8_t *to, const uint8_t *from, unsigned int bytes)
{
	for (; bytes >= sizeof(part16); bytes -= (unsigned int)sizeof(part16)) {
		part16 v;

		memcpy(&v, from, sizeof(v));
		memcpy(to, &v, sizeof(v));
		from += sizeof(v);
		to += sizeof(v);
	}
	if (bytes == 8)
		memcpy(to, from, 8);
	else if (bytes == 4)
		memcpy(to, from, 4);
	else
		memcpy(to, from, bytes);
}

/*
 * In interleaved memory (local memory, and a function's parameters) the next element of a vector
 * may be in the next row. No other thread sees that memory.
 */
static bool in_rows(const struct ptx_warp *w, const struct ptx_insn *in, const uint8_t *p)
{
	const uint8_t *lo = w->local, *hi = lo + (size_t)w->blk->stack_bytes * PTX_LANES;

	return (lo && p >= lo && p < hi) || (in->space == SPACE_PARAM && !w->frame->fn->entry);
}

/* A vector access of a warp. */
struct vectors {
	enum ptx_shape shape; /* of `at` */
	unsigned int bytes;
	uint32_t lanes; /* whose vectors are in `whole` */
	uint8_t *memory[PTX_LANES], *at[PTX_LANES];
	_Alignas(16) uint8_t whole[PTX_LANES][VECTOR_MAX];
};

/* False: there was a fault. */
static bool find_vectors(struct ptx_warp *w, const struct ptx_insn *in, uint32_t m, bool write,
			 struct vectors *v)
{
	v->bytes = ptx_type_size((enum ptx_type)in->type) * in->nx;
	v->shape = ptx_resolve(w, in, m, v->bytes, write, v->memory);
	v->lanes = 0;
	if (v->shape == SHAPE_FAULT)
		return false;
	if (v->shape == SHAPE_UNIFORM)
		m = 1;
	else if (v->shape == SHAPE_LINEAR)
		for (unsigned int i = 1; i < PTX_LANES; i++)
			v->memory[i] = v->memory[0] + (size_t)i * v->bytes;
	for (uint32_t r = m; r; r &= r - 1) {
		unsigned int i = ptx_lane(r);
		/* One value for all lanes lies in no interleaved memory. */
		bool rows = v->shape == SHAPE_SCATTER && in_rows(w, in, v->memory[i]);

		v->at[i] = rows ? v->memory[i] : v->whole[i];
		if (!rows)
			v->lanes |= 1u << i;
	}
	if (v->shape == SHAPE_LINEAR)
		v->shape = SHAPE_SCATTER;
	return true;
}

/* Pointers to the element at byte `off` of each lane's vector. */
static void point_to_elements(const struct vectors *v, uint32_t m, unsigned int off, uint8_t **q)
{
	if (v->shape == SHAPE_UNIFORM)
		m = 1;
	for (uint32_t r = m; r; r &= r - 1) {
		unsigned int i = ptx_lane(r);

		q[i] = v->lanes >> i & 1 ? v->at[i] + off : ptx_cell_next(v->at[i], off);
	}
}

void ptx_h_ld_vec(struct ptx_warp *w, const struct ptx_insn *in, uint32_t m)
{
	const uint32_t *x = w->blk->grid->mod->xops + in->x;
	unsigned int size = ptx_type_size((enum ptx_type)in->type);
	uint8_t *q[PTX_LANES];
	struct vectors v;

	if (!find_vectors(w, in, m, false, &v))
		return;
	for (uint32_t r = v.lanes; r; r &= r - 1)
		copy_whole(v.whole[ptx_lane(r)], v.memory[ptx_lane(r)], v.bytes);
	for (unsigned int k = 0; k < in->nx; k++) {
		if (!x[k])
			continue;
		point_to_elements(&v, m, k * size, q);
		load_lanes(v.shape, q, ptx_at(w, x[k]), (enum ptx_type)in->type, in->sub, m);
	}
}

void ptx_h_st_vec(struct ptx_warp *w, const struct ptx_insn *in, uint32_t m)
{
	const uint32_t *x = w->blk->grid->mod->xops + in->x;
	unsigned int size = ptx_type_size((enum ptx_type)in->type);
	uint8_t *q[PTX_LANES];
	struct vectors v;

	if (!find_vectors(w, in, m, true, &v))
		return;
	for (unsigned int k = 0; k < in->nx; k++) {
		point_to_elements(&v, m, k * size, q);
		store_lanes(v.shape, q, ptx_at(w, x[k]), size, in->sub, m);
	}
	for (uint32_t r = v.lanes; r; r &= r - 1)
		copy_whole(v.memory[ptx_lane(r)], v.whole[ptx_lane(r)], v.bytes);
}

/* A register of 128 bits is one access, but it takes two rows of interleaved memory. */
static void copy128(struct ptx_warp *w, const struct ptx_insn *in, uint32_t m, uint8_t *reg,
		    bool load)
{
	const uint8_t *lo = w->local, *hi = lo + (size_t)w->blk->stack_bytes * PTX_LANES;

	for (uint32_t r = m; r; r &= r - 1) {
		unsigned int i = ptx_lane(r);
		uint8_t *p = ptx_resolve_lane(w, in, i, 16, !load), *q;

		if (!p)
			return;
		if (!lo || p < lo || p >= hi) {
			copy_whole(load ? reg + i * 16 : p, load ? p : reg + i * 16, 16);
			continue;
		}
		q = ptx_cell_next(p, 8);
		memcpy(load ? reg + i * 16 : p, load ? p : reg + i * 16, 8);
		memcpy(load ? reg + i * 16 + 8 : q, load ? q : reg + i * 16 + 8, 8);
	}
}

void ptx_h_ld128(struct ptx_warp *w, const struct ptx_insn *in, uint32_t m)
{
	copy128(w, in, m, ptx_at(w, in->d), true);
}

void ptx_h_st128(struct ptx_warp *w, const struct ptx_insn *in, uint32_t m)
{
	copy128(w, in, m, ptx_at(w, in->b), false);
}

/*
 * Loads a function's parameter, named directly: the offset was checked when the module was loaded.
 */
void ptx_h_ld_area(struct ptx_warp *w, const struct ptx_insn *in, uint32_t m)
{
	uint8_t *p[PTX_LANES], *mem = w->frame->mem + PTX_FRAME_AREA;

	for (unsigned int i = 0; i < PTX_LANES; i++)
		p[i] = ptx_cell(mem, i, (uint64_t)in->imm);
	load_lanes(SHAPE_SCATTER, p, ptx_at(w, in->d), (enum ptx_type)in->type, in->sub, m);
}

void ptx_h_st_area(struct ptx_warp *w, const struct ptx_insn *in, uint32_t m)
{
	uint8_t *p[PTX_LANES], *mem = w->frame->mem + PTX_FRAME_AREA;

	for (unsigned int i = 0; i < PTX_LANES; i++)
		p[i] = ptx_cell(mem, i, (uint64_t)in->imm);
	store_lanes(SHAPE_SCATTER, p, ptx_at(w, in->b), ptx_type_size((enum ptx_type)in->type),
		    in->sub, m);
}

/* Loads a parameter of the kernel: it is the same for all threads. */
void ptx_h_ld_kparam(struct ptx_warp *w, const struct ptx_insn *in, uint32_t m)
{
	uint8_t *p[PTX_LANES];

	if (m == PTX_FULL) {
		p[0] = w->blk->grid->params + in->imm;
		load_lanes(SHAPE_UNIFORM, p, ptx_at(w, in->d), (enum ptx_type)in->type, in->sub, m);
		return;
	}
	for (unsigned int i = 0; i < PTX_LANES; i++)
		p[i] = w->blk->grid->params + in->imm;
	load_lanes(SHAPE_SCATTER, p, ptx_at(w, in->d), (enum ptx_type)in->type, in->sub, m);
}

/*
 * cp.async: writes nx bytes to shared memory. The first e bytes come from global memory (without e:
 * all of them); the rest is zero.
 */
void ptx_h_cp_async(struct ptx_warp *w, const struct ptx_insn *in, uint32_t m)
{
	const uint32_t *src_size = in->e ? ptx_at(w, in->e) : NULL;
	struct ptx_insn to = {.a = in->b, .space = SPACE_SHARED};
	uint8_t *p[PTX_LANES];
	uint64_t dst_imm;

	memcpy(&dst_imm, ptx_at(w, in->c), 8);
	to.imm = (int64_t)dst_imm;
	to.flags = in->sub ? IF_A32 : 0;
	/* Resolve each lane by itself: only the scattered form has a pointer for every lane. */
	for (uint32_t r = m; r; r &= r - 1) {
		unsigned int i = ptx_lane(r);
		uint32_t n = src_size ? src_size[i] : in->nx;
		uint8_t buf[16] = {0};

		n = n < in->nx ? n : in->nx;
		if (n) {
			if (ptx_resolve(w, in, m & (1u << i), in->nx, false, p) == SHAPE_FAULT)
				return;
			memcpy(buf, p[i], n);
		}
		if (ptx_resolve(w, &to, m & (1u << i), in->nx, true, p) == SHAPE_FAULT)
			return;
		memcpy(p[i], buf, in->nx);
	}
}
