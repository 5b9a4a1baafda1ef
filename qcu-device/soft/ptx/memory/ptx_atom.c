// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * atom and red. Other blocks, other grids and the host use global memory at the same time, so every
 * operation is an atomic operation of the host processor. If the processor does not have the
 * operation, a loop of compare and exchange does it. Lanes go one after another, in order.
 */
#include <string.h>

#include "qcu-device/soft/ptx/memory/ptx_mem.h"
#include "qcu-device/soft/ptx/ops/ptx_fp.h"

#define ORDER __ATOMIC_SEQ_CST

static float add_f32(float a, float b)
{
	return f_canon(a + b);
}

/* Applies op to one 16-bit element: bfloat16 if bf is true, else half. */
static uint16_t small_op(uint16_t a, uint16_t b, enum ptx_atom op, bool bf)
{
	float x = bf ? fp_bf16_widen(a) : fp_half_widen(a);
	float y = bf ? fp_bf16_widen(b) : fp_half_widen(b);
	double r;

	if (op == ATOM_ADD)
		r = fp_fma_odd(x, 1.0f, y);
	else if (x != x || y != y)
		r = x != x ? y : x;
	else
		r = (op == ATOM_MIN) == (x < y) ? x : y;
	return bf ? fp_bf16_narrow(r, RND_N) : fp_half_narrow(r, RND_N);
}

static uint32_t next32(uint32_t old, uint32_t v, const struct ptx_insn *in)
{
	bool sign = in->type == T_S32;

	switch (in->type) {
	case T_F32:
		return f_bits(add_f32(f_from(old), f_from(v)));
	case T_F16X2:
	case T_BF16X2:
		return (uint32_t)small_op((uint16_t)old, (uint16_t)v, (enum ptx_atom)in->sub,
					  in->type == T_BF16X2) |
		       (uint32_t)small_op((uint16_t)(old >> 16), (uint16_t)(v >> 16),
					  (enum ptx_atom)in->sub, in->type == T_BF16X2)
			       << 16;
	}
	switch (in->sub) {
	case ATOM_MIN:
		return (sign ? (int32_t)v < (int32_t)old : v < old) ? v : old;
	case ATOM_MAX:
		return (sign ? (int32_t)v > (int32_t)old : v > old) ? v : old;
	case ATOM_INC:
		return old >= v ? 0 : old + 1;
	default: /* ATOM_DEC */
		return !old || old > v ? v : old - 1;
	}
}

static uint64_t next64(uint64_t old, uint64_t v, const struct ptx_insn *in)
{
	bool sign = in->type == T_S64;

	if (in->type == T_F64)
		return d_bits(d_from(old) + d_from(v));
	if (in->sub == ATOM_MIN)
		return (sign ? (int64_t)v < (int64_t)old : v < old) ? v : old;
	return (sign ? (int64_t)v > (int64_t)old : v > old) ? v : old;
}

static uint32_t atom32(uint32_t *p, uint32_t v, uint32_t c, const struct ptx_insn *in)
{
	uint32_t old;

	switch (in->sub) {
	case ATOM_AND:
		return __atomic_fetch_and(p, v, ORDER);
	case ATOM_OR:
		return __atomic_fetch_or(p, v, ORDER);
	case ATOM_XOR:
		return __atomic_fetch_xor(p, v, ORDER);
	case ATOM_EXCH:
		return __atomic_exchange_n(p, v, ORDER);
	case ATOM_CAS:
		__atomic_compare_exchange_n(p, &v, c, false, ORDER, ORDER);
		return v;
	case ATOM_ADD:
		if (in->type == T_U32 || in->type == T_S32)
			return __atomic_fetch_add(p, v, ORDER);
	}
	old = __atomic_load_n(p, __ATOMIC_RELAXED);
	while (!__atomic_compare_exchange_n(p, &old, next32(old, v, in), false, ORDER, ORDER))
		;
	return old;
}

static uint64_t atom64(uint64_t *p, uint64_t v, uint64_t c, const struct ptx_insn *in)
{
	uint64_t old;

	switch (in->sub) {
	case ATOM_AND:
		return __atomic_fetch_and(p, v, ORDER);
	case ATOM_OR:
		return __atomic_fetch_or(p, v, ORDER);
	case ATOM_XOR:
		return __atomic_fetch_xor(p, v, ORDER);
	case ATOM_EXCH:
		return __atomic_exchange_n(p, v, ORDER);
	case ATOM_CAS:
		__atomic_compare_exchange_n(p, &v, c, false, ORDER, ORDER);
		return v;
	case ATOM_ADD:
		if (in->type != T_F64)
			return __atomic_fetch_add(p, v, ORDER);
	}
	old = __atomic_load_n(p, __ATOMIC_RELAXED);
	while (!__atomic_compare_exchange_n(p, &old, next64(old, v, in), false, ORDER, ORDER))
		;
	return old;
}

static uint16_t atom16(uint16_t *p, uint16_t v, uint16_t c, const struct ptx_insn *in)
{
	uint16_t old;

	if (in->sub == ATOM_CAS) {
		__atomic_compare_exchange_n(p, &v, c, false, ORDER, ORDER);
		return v;
	}
	old = __atomic_load_n(p, __ATOMIC_RELAXED);
	while (!__atomic_compare_exchange_n(
		p, &old, small_op(old, v, (enum ptx_atom)in->sub, in->type == T_BF16), false, ORDER,
		ORDER))
		;
	return old;
}

static uint64_t atom_any(uint8_t *at, uint64_t v, uint64_t o, unsigned int size,
			 const struct ptx_insn *in)
{
	if (size == 4)
		return atom32((uint32_t *)(void *)at, (uint32_t)v, (uint32_t)o, in);
	if (size == 8)
		return atom64((uint64_t *)(void *)at, v, o, in);
	return atom16((uint16_t *)(void *)at, (uint16_t)v, (uint16_t)o, in);
}

/* nx elements side by side. xops holds nx destinations for the old values, then nx operands. */
void ptx_h_atom_vec(struct ptx_warp *w, const struct ptx_insn *in, uint32_t m)
{
	const uint32_t *x = w->blk->grid->mod->xops + in->x;
	unsigned int size = ptx_type_size((enum ptx_type)in->type);

	for (uint32_t r = m; r; r &= r - 1) {
		unsigned int i = ptx_lane(r);
		uint8_t *p = ptx_resolve_lane(w, in, i, size * in->nx, true);
		uint64_t old[8], v = 0;

		if (!p)
			return;
		for (unsigned int k = 0; k < in->nx; k++) {
			memcpy(&v, (uint8_t *)ptx_at(w, x[in->nx + k]) + i * size, size);
			old[k] = atom_any(p + k * size, v, 0, size, in);
		}
		/* Written last, because a destination may be an operand of a later element. */
		for (unsigned int k = 0; k < in->nx; k++)
			if (x[k])
				memcpy((uint8_t *)ptx_at(w, x[k]) + i * size, &old[k], size);
	}
}

/*
 * Compares and exchanges 16 bytes. True: *p was equal to old, and is new now. False: old gets the
 * value of *p.
 */
static bool swap128(uint8_t *p, uint64_t old[2], const uint64_t new[2])
{
	bool done;

	__asm__ volatile("lock cmpxchg16b %1"
			 : "=@ccz"(done), "+m"(*(uint64_t(*)[2])(void *)p), "+a"(old[0]),
			   "+d"(old[1])
			 : "b"(new[0]), "c"(new[1])
			 : "memory");
	return done;
}

void ptx_h_atom128(struct ptx_warp *w, const struct ptx_insn *in, uint32_t m)
{
	const uint64_t *b = ptx_at(w, in->b), *c = ptx_at(w, in->c);
	uint64_t *d = in->d ? ptx_at(w, in->d) : NULL;

	for (uint32_t r = m; r; r &= r - 1) {
		unsigned int i = ptx_lane(r);
		uint8_t *p = ptx_resolve_lane(w, in, i, 16, true);
		uint64_t old[2] = {b[2 * i], b[2 * i + 1]};

		if (!p)
			return;
		if (in->sub == ATOM_CAS)
			swap128(p, old, &c[2 * i]);
		else
			while (!swap128(p, old, &b[2 * i]))
				;
		if (d)
			memcpy(&d[2 * i], old, 16);
	}
}

void ptx_h_atom(struct ptx_warp *w, const struct ptx_insn *in, uint32_t m)
{
	unsigned int size = ptx_type_size((enum ptx_type)in->type);
	uint8_t *b = ptx_at(w, in->b), *c = ptx_at(w, in->c);
	uint8_t *d = in->d ? ptx_at(w, in->d) : NULL;
	uint8_t *p[PTX_LANES];
	enum ptx_shape shape = ptx_resolve(w, in, m, size, true, p);

	if (shape == SHAPE_FAULT)
		return;
	for (uint32_t r = m; r; r &= r - 1) {
		unsigned int i = ptx_lane(r);
		uint8_t *at = shape == SHAPE_UNIFORM  ? p[0]
			      : shape == SHAPE_LINEAR ? p[0] + (size_t)i * size
						      : p[i];
		uint64_t v = 0, o = 0, old;

		memcpy(&v, b + i * size, size);
		if (in->sub == ATOM_CAS)
			memcpy(&o, c + i * size, size);
		old = atom_any(at, v, o, size, in);
		if (d)
			memcpy(d + i * size, &old, size);
	}
}
