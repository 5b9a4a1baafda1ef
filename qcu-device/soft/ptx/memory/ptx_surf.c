// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Surfaces: loads, stores and reductions at a position in an array. The instruction says what an
 * access outside of the array does: it ends the kernel, it is moved to the edge, or it does nothing
 * (a load returns zero).
 */
#include <string.h>

#include "qcu-device/soft/ptx/memory/ptx_tex.h"
#include "qcu-device/soft/ptx/ops/ptx_fp.h"

struct access {
	struct ptx_warp *w;
	const struct ptx_insn *in;
	const struct ptx_image *img;
	unsigned int lane;
	unsigned int size; /* bytes */
};

/*
 * Checks one coordinate against its limit, and clamps it if the instruction says so. False: it is
 * outside; *trap says whether that ends the kernel.
 */
static bool check_coordinate(const struct access *a, int64_t *at, int64_t size, bool *trap)
{
	if (*at >= 0 && *at < size)
		return true;
	if (a->in->space == OUTSIDE_CLAMP) {
		*at = *at < 0 ? 0 : size - 1;
		return true;
	}
	*trap = a->in->space == OUTSIDE_TRAP;
	return false;
}

/*
 * Returns the address of the texel, or NULL. x counts bytes, and must be a multiple of the size of
 * the access; a formatted access counts elements.
 */
static uint8_t *locate_texel(const struct access *a, const uint32_t *c)
{
	const struct ptx_image_level *l = &a->img->level[0];
	const uint8_t geom = a->in->sub;
	bool formatted = a->in->flags & SURF_FORMATTED, trap = false;
	int64_t x, y = 0, z = 0, layer = 0, unit = formatted ? a->img->elem : a->size;
	int64_t row = (int64_t)l->size[0] * a->img->elem;

	if (GEOM_LAYERED(geom))
		layer = (int32_t)*c++;
	x = (int32_t)c[0];
	if (GEOM_DIMS(geom) > 1)
		y = (int32_t)c[1];
	if (GEOM_DIMS(geom) > 2)
		z = (int32_t)c[2];
	if (GEOM_LAYERED(geom) || a->img->layered || a->img->cube)
		z = layer;
	if (formatted)
		x *= unit;
	if (x % unit) {
		ptx_fault(a->w, a->lane, PTX_MISALIGNED_ADDRESS,
			  "byte %lld of a surface's row for %lld bytes", (long long)x,
			  (long long)unit);
		return NULL;
	}
	/* Count in units, so that the edge is at the last whole unit. */
	x /= unit;
	if (!check_coordinate(a, &x, row / unit, &trap) ||
	    !check_coordinate(a, &y, l->size[1], &trap) ||
	    !check_coordinate(a, &z, l->size[2], &trap)) {
		if (trap)
			ptx_fault(a->w, a->lane, PTX_TRAP,
				  "outside of a surface of %u x %u x %u: (%lld, %lld, %lld)",
				  l->size[0], l->size[1], l->size[2], (long long)x, (long long)y,
				  (long long)z);
		return NULL;
	}
	return (uint8_t *)(uintptr_t)(l->addr + (uint64_t)z * l->slice + (uint64_t)y * l->pitch +
				      (uint64_t)(x * unit));
}

/* Begins an access. False: the lane has a fault. *p is NULL if the access does nothing. */
static bool begin_surface_access(struct access *a, struct ptx_image_last *last, uint8_t **p)
{
	const struct ptx_insn *in = a->in;
	const uint32_t *x = a->w->blk->grid->mod->xops + in->x + in->type2;
	const uint64_t *number = ptx_at(a->w, in->a);
	uint32_t c[4] = {0};

	a->img = ptx_image_find(a->w, a->lane, number[a->lane], true, last);
	if (!a->img)
		return false;
	for (unsigned int k = 0; k < GEOM_OPERANDS(in->sub); k++)
		c[k] = ((const uint32_t *)ptx_at(a->w, x[k]))[a->lane];
	*p = locate_texel(a, c);
	return !a->w->fault;
}

/* A register is as wide as the type, but has at least 16 bits. */
static void get_reg(struct ptx_warp *w, uint32_t ref, unsigned int lane, unsigned int size,
		    void *to)
{
	unsigned int width = size < 2 ? 2 : size;

	memcpy(to, (const uint8_t *)ptx_at(w, ref) + lane * width, size);
}

static void set_reg(struct ptx_warp *w, uint32_t ref, unsigned int lane, unsigned int size,
		    const void *from)
{
	unsigned int width = size < 2 ? 2 : size;
	uint64_t v = 0;

	memcpy(&v, from, size);
	memcpy((uint8_t *)ptx_at(w, ref) + lane * width, &v, width);
}

void ptx_h_suld(struct ptx_warp *w, const struct ptx_insn *in, uint32_t m)
{
	const uint32_t *x = w->blk->grid->mod->xops + in->x;
	unsigned int size = ptx_type_size((enum ptx_type)in->type);
	struct ptx_image_last last = {0};

	for (uint32_t r = m; r; r &= r - 1) {
		struct access a = {w, in, NULL, ptx_lane(r), size * in->type2};
		uint8_t *p, zero[32] = {0};

		if (!begin_surface_access(&a, &last, &p))
			return;
		p = p ? p : zero;
		for (unsigned int k = 0; k < in->type2; k++)
			if (x[k])
				set_reg(w, x[k], a.lane, size, p + k * size);
	}
}

/* Converts a register's value to an element of the surface. */
static void write_surface_element(const struct ptx_image *img, uint32_t v, uint8_t *p)
{
	uint16_t half;
	float f;

	if (img->texel == TEXEL_FLOAT && img->bits == 16) {
		memcpy(&f, &v, sizeof(f));
		half = fp_half_narrow(f, 0);
		memcpy(p, &half, sizeof(half));
		return;
	}
	memcpy(p, &v, img->bits / 8);
}

void ptx_h_sust(struct ptx_warp *w, const struct ptx_insn *in, uint32_t m)
{
	unsigned int size = ptx_type_size((enum ptx_type)in->type);
	unsigned int count = in->nx - GEOM_OPERANDS(in->sub);
	const uint32_t *x = w->blk->grid->mod->xops + in->x + GEOM_OPERANDS(in->sub);
	struct ptx_image_last last = {0};

	for (uint32_t r = m; r; r &= r - 1) {
		struct access a = {w, in, NULL, ptx_lane(r), size * count};
		uint8_t *p, v[32] = {0};

		if (!begin_surface_access(&a, &last, &p))
			return;
		for (unsigned int k = 0; p && k < count; k++) {
			uint32_t one = 0;

			get_reg(w, x[k], a.lane, size, v + k * size);
			if (!(in->flags & SURF_FORMATTED))
				continue;
			memcpy(&one, v + k * size, sizeof(one));
			if (k < a.img->channels)
				write_surface_element(a.img, one, p + k * a.img->bits / 8);
		}
		if (p && !(in->flags & SURF_FORMATTED))
			memcpy(p, v, a.size);
	}
}

static uint64_t reduced(enum ptx_atom op, enum ptx_type t, uint64_t a, uint64_t b)
{
	bool wide = ptx_type_size(t) == 8, is_signed = ptx_type_signed(t), less;

	if (is_signed && !wide)
		less = (int32_t)a < (int32_t)b;
	else
		less = is_signed ? (int64_t)a < (int64_t)b : a < b;
	switch (op) {
	case ATOM_MIN:
		return less ? a : b;
	case ATOM_MAX:
		return less ? b : a;
	case ATOM_AND:
		return a & b;
	case ATOM_OR:
		return a | b;
	default:
		return a + b;
	}
}

void ptx_h_sured(struct ptx_warp *w, const struct ptx_insn *in, uint32_t m)
{
	const uint32_t *x = w->blk->grid->mod->xops + in->x + GEOM_OPERANDS(in->sub);
	enum ptx_type t = (enum ptx_type)in->type;
	unsigned int size = ptx_type_size(t);
	struct ptx_image_last last = {0};

	for (uint32_t r = m; r; r &= r - 1) {
		struct access a = {w, in, NULL, ptx_lane(r), size};
		uint64_t v = 0, have = 0, want;
		uint8_t *p;

		if (!begin_surface_access(&a, &last, &p))
			return;
		if (!p)
			continue;
		/* A formatted reduction needs elements of exactly its size. */
		if (size > a.img->elem || (in->flags & SURF_FORMATTED && a.img->elem != size)) {
			ptx_fault(w, a.lane, PTX_MISALIGNED_ADDRESS,
				  "reduction of %u bytes in elements of %u", size, a.img->elem);
			return;
		}
		get_reg(w, x[0], a.lane, size, &v);
		memcpy(&have, p, size);
		do {
			want = reduced((enum ptx_atom)in->imm, t, have, v);
		} while (size == 8
				 ? !__atomic_compare_exchange_n((uint64_t *)p, &have, want, false,
								__ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)
				 : !__atomic_compare_exchange_n(
					   (uint32_t *)p, (uint32_t *)&have, (uint32_t)want, false,
					   __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST));
	}
}
