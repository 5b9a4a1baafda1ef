// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Builders for floating point operations that are made of simpler instructions: arithmetic of
 * single precision with operands of half precision, and pairs of floats. Also min and max with all
 * their modifiers, which have one handler for all types, in this file.
 */
#include "qcu-device/soft/ptx/build/ptx_build.h"
#include "qcu-device/soft/ptx/ops/ptx_fp.h"

/* Converts an operand from 16 to 32 bits, which is exact. */
static uint32_t widen(struct ptx_parser *P, struct ptx_stmt *s, unsigned int i, enum ptx_type t)
{
	uint32_t a = ptx_src(P, s, i, t), d = ptx_new_reg(P, T_F32) << 2;
	struct ptx_insn *in = ptx_emit(P, s, ptx_h_cvt);

	in->d = d;
	in->a = a;
	in->type = T_F32;
	in->type2 = (uint8_t)t;
	in->sub = 4 << 4 | 2;
	return d;
}

/*
 * add.f32.f16 d, a, c, and sub with the same operands; fma.f32.f16 d, a, b, c. All sources but the
 * last have 16 bits.
 */
enum ptx_status ptx_build_mixed(struct ptx_parser *P, struct ptx_stmt *s, enum ptx_op op)
{
	unsigned int nsrc = op == V_FMA ? 3 : 2;
	enum ptx_type st = s->type[1];
	uint32_t d, r[3] = {0};
	struct ptx_insn *in;

	if (s->type[0] != T_F32 || (st != T_F16 && st != T_BF16) || ptx_has(s, "ftz"))
		return PTX_INVALID_PTX;
	ptx_want(P, s, nsrc + 1, nsrc + 1);
	d = ptx_dst(P, s, 0, T_F32);
	for (unsigned int i = 0; i < nsrc; i++)
		r[i] = i + 1 < nsrc ? widen(P, s, i + 1, st) : ptx_src(P, s, i + 1, T_F32);
	in = ptx_emit(P, s, P->m->ops->op[op][K_F32X]);
	in->d = d;
	in->a = r[0];
	in->b = r[1];
	in->c = r[2] ? r[2] : r[1];
	in->flags = ptx_float_flags(s);
	return PTX_OK;
}

static void split(struct ptx_parser *P, struct ptx_stmt *s, uint32_t a, uint32_t half[2])
{
	struct ptx_insn *in;
	uint32_t x = P->m->nxops;

	for (unsigned int k = 0; k < 2; k++) {
		half[k] = ptx_new_reg(P, T_F32) << 2;
		ptx_xop(P, half[k]);
	}
	in = ptx_emit(P, s, ptx_h_unpack);
	in->a = a;
	in->x = x;
	in->nx = 2;
	in->type = T_B32;
	in->type2 = T_B64;
}

enum ptx_status ptx_build_f32x2(struct ptx_parser *P, struct ptx_stmt *s, enum ptx_op op,
				unsigned int nsrc)
{
	uint32_t d, a[3], half[3][2] = {{0}}, res[2], x;
	struct ptx_insn *in;

	ptx_want(P, s, nsrc + 1, nsrc + 1);
	d = ptx_dst(P, s, 0, T_B64);
	for (unsigned int i = 0; i < nsrc; i++)
		a[i] = ptx_src(P, s, i + 1, T_B64);
	for (unsigned int i = 0; i < nsrc; i++)
		split(P, s, a[i], half[i]);
	for (unsigned int k = 0; k < 2; k++) {
		res[k] = ptx_new_reg(P, T_F32) << 2;
		in = ptx_emit(P, s, P->m->ops->op[op][K_F32X]);
		in->d = res[k];
		in->a = half[0][k];
		in->b = half[1][k];
		in->c = half[nsrc - 1][k];
		in->flags = ptx_float_flags(s);
	}
	x = P->m->nxops;
	ptx_xop(P, res[0]);
	ptx_xop(P, res[1]);
	in = ptx_emit(P, s, ptx_h_pack);
	in->d = d;
	in->x = x;
	in->nx = 2;
	in->type = T_B32;
	in->type2 = T_B64;
	return PTX_OK;
}

#define MINMAX_MAX     1u
#define MINMAX_ABS     2u
#define MINMAX_XORSIGN 4u
#define MINMAX_THREE   8u

static float choose_min_or_max(float x, float y, bool max, bool nan)
{
	if (nan && (x != x || y != y))
		return f_from(PTX_NAN32);
	if (x != x || y != y)
		return x != x ? f_canon(y) : x;
	if (x == y)
		return f_from(max ? f_bits(x) & f_bits(y) : f_bits(x) | f_bits(y));
	return (x < y) == max ? y : x;
}

static float minmax(float x, float y, float z, const struct ptx_insn *in)
{
	bool max = in->sub & MINMAX_MAX, nan = in->flags & IF_NAN;
	uint32_t sign = (f_bits(x) ^ f_bits(y)) & 0x80000000u;
	float r;

	if (in->sub & MINMAX_ABS) {
		x = fabsf(x);
		y = fabsf(y);
		z = fabsf(z);
	}
	r = choose_min_or_max(x, y, max, nan);
	if (in->sub & MINMAX_THREE)
		r = choose_min_or_max(r, z, max, nan);
	return in->sub & MINMAX_XORSIGN && r == r ? f_from(f_bits(r) | sign) : r;
}

static float small_in(uint16_t h, const struct ptx_insn *in)
{
	bool half = in->type == T_F16 || in->type == T_F16X2;

	if (in->flags & IF_FTZ && half && !(h & 0x7c00))
		h &= 0x8000;
	return half ? fp_half_widen(h) : fp_bf16_widen(h);
}

static uint16_t small_out(float v, const struct ptx_insn *in)
{
	return in->type == T_F16 || in->type == T_F16X2 ? fp_half_narrow(v, RND_N)
							: fp_bf16_narrow(v, RND_N);
}

static void h_minmax(struct ptx_warp *w, const struct ptx_insn *in, uint32_t m)
{
	const float *fa = ptx_at(w, in->a), *fb = ptx_at(w, in->b), *fc = ptx_at(w, in->c);
	const uint16_t *ha = ptx_at(w, in->a), *hb = ptx_at(w, in->b);
	unsigned int n = in->type == T_F16X2 || in->type == T_BF16X2 ? 2 : 1;
	bool ftz = in->flags & IF_FTZ;
	uint16_t *hd = ptx_at(w, in->d);
	float *fd = ptx_at(w, in->d);

	for (uint32_t r = m; r; r &= r - 1) {
		unsigned int i = ptx_lane(r);

		if (in->type == T_F32) {
			fd[i] = minmax(ftz ? f_flush(fa[i]) : fa[i], ftz ? f_flush(fb[i]) : fb[i],
				       ftz ? f_flush(fc[i]) : fc[i], in);
			continue;
		}
		for (unsigned int k = i * n; k < i * n + n; k++)
			hd[k] = small_out(minmax(small_in(ha[k], in), small_in(hb[k], in), 0, in),
					  in);
	}
}

enum ptx_status ptx_build_minmax(struct ptx_parser *P, struct ptx_stmt *s, bool max)
{
	bool three = s->nop == 4, xorsign = ptx_has(s, "xorsign"), abs = ptx_has(s, "abs");
	enum ptx_type t = s->type[0];
	uint32_t d, a, b, c;
	struct ptx_insn *in;

	if (t == T_F64 || (three && (t != T_F32 || xorsign)) || (!three && xorsign != abs))
		return PTX_INVALID_PTX;
	ptx_want(P, s, 3, 4);
	d = ptx_dst(P, s, 0, t);
	a = ptx_src(P, s, 1, t);
	b = ptx_src(P, s, 2, t);
	c = three ? ptx_src(P, s, 3, t) : b;
	in = ptx_emit(P, s, h_minmax);
	in->d = d;
	in->a = a;
	in->b = b;
	in->c = c;
	in->type = (uint8_t)t;
	in->flags = ptx_float_flags(s);
	in->sub = (uint8_t)((max ? MINMAX_MAX : 0) | (abs ? MINMAX_ABS : 0) |
			    (xorsign ? MINMAX_XORSIGN : 0) | (three ? MINMAX_THREE : 0));
	return PTX_OK;
}
