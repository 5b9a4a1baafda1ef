// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Builders for cvt: the plain conversions of one value, pairs of small formats, and cvt.pack.
 */
#include "qcu-device/soft/ptx/build/ptx_build.h"
#include "qcu-device/soft/ptx/ops/ptx_fp.h"

/* Returns a fast handler, or NULL. Only conversions that compilers emit all the time have one. */
static ptx_fn fast_cvt(struct ptx_parser *P, enum ptx_type dt, enum ptx_type st, uint16_t flags,
		       bool to_int)
{
	const struct ptx_ops *o = P->m->ops;

	if (flags & ~IF_RND)
		return NULL;
	if (dt == T_S32 && st == T_F32 && to_int)
		return (flags & IF_RND) == 1 ? o->op[V_CVT_S32_F32_RZ][K_S32] : NULL;
	if (flags)
		return NULL;
	if ((dt == T_S64 || dt == T_U64) && st == T_S32)
		return o->op[V_CVT_S64_S32][K_S64];
	if ((dt == T_S64 || dt == T_U64) && st == T_U32)
		return o->op[V_CVT_U64_U32][K_U64];
	if ((dt == T_S32 || dt == T_U32) && (st == T_S64 || st == T_U64))
		return o->op[V_CVT_U32_U64][K_U32];
	if (dt == T_F32 && st == T_S32)
		return o->op[V_CVT_F32_S32][K_F32];
	if (dt == T_F32 && st == T_U32)
		return o->op[V_CVT_F32_U32][K_F32];
	if (dt == T_F64 && st == T_F32)
		return o->op[V_CVT_F64_F32][K_F64];
	if (dt == T_F32 && st == T_F64)
		return o->op[V_CVT_F32_F64][K_F32];
	if (dt == T_F64 && st == T_S32)
		return o->op[V_CVT_F64_S32][K_F64];
	return NULL;
}

struct rounding {
	unsigned int rnd; /* enum ptx_rnd */
	bool given, to_int, random;
};

static bool read_cvt_modifiers(const struct ptx_stmt *s, struct rounding *r)
{
	static const char *const modes[] = {"rn", "rz", "rm", "rp", "rna"};
	static const char *const ints[] = {"rni", "rzi", "rmi", "rpi"};
	static const char *const others[] = {"ftz", "sat", "relu", "satfinite"};

	*r = (struct rounding){0};
	for (unsigned int i = 0; i < s->nmod; i++) {
		const char *m = s->mod[i];
		bool known = ptx_type_from(m, strlen(m)) != T_NONE;

		for (unsigned int k = 0; k < 5; k++)
			if (!strcmp(m, modes[k])) {
				r->rnd = k;
				r->given = known = true;
			}
		for (unsigned int k = 0; k < 4; k++) {
			if (!strcmp(m, ints[k])) {
				r->rnd = k;
				r->to_int = known = true;
			}
			known |= !strcmp(m, others[k]);
		}
		if (!strcmp(m, "rs"))
			r->random = known = true;
		if (!known)
			return false;
	}
	return true;
}

static bool small_pair(enum ptx_type t)
{
	return t >= T_E4M3X2 && t <= T_UE8M0X2;
}

static struct ptx_insn *emit(struct ptx_parser *P, struct ptx_stmt *s, ptx_fn fn, uint32_t d,
			     uint32_t a, uint32_t b)
{
	struct ptx_insn *in = ptx_emit(P, s, fn);

	in->d = d;
	in->a = a;
	in->b = b;
	in->type = (uint8_t)s->type[0];
	in->type2 = (uint8_t)s->type[1];
	in->flags = ptx_float_flags(s) & (IF_RELU | IF_FTZ);
	if (ptx_has(s, "satfinite"))
		in->flags |= IF_FIN;
	return in;
}

/* Conversions to and from pairs of values in formats of 4, 6 and 8 bits. */
static enum ptx_status cvt_small(struct ptx_parser *P, struct ptx_stmt *s, const struct rounding *r)
{
	enum ptx_type dt = s->type[0], st = s->type[1];
	bool scale = dt == T_UE8M0X2 || st == T_UE8M0X2, two = small_pair(dt) && st == T_F32;
	uint32_t d, a, b = 0;

	if (small_pair(dt)) {
		if (!two && st != T_F16X2 && !(st == T_BF16X2 && scale))
			return st == T_BF16X2 ? PTX_UNSUPPORTED : PTX_INVALID_PTX;
		if (scale && st == T_F16X2)
			return PTX_INVALID_PTX;
		if (!scale && !ptx_has(s, "satfinite"))
			return PTX_INVALID_PTX;
		if (!scale && r->rnd != RND_N)
			return PTX_INVALID_PTX;
		if (scale && r->rnd != RND_Z && r->rnd != RND_P)
			return PTX_INVALID_PTX;
	} else if (dt != (scale ? T_BF16X2 : T_F16X2) || r->rnd != RND_N) {
		return PTX_INVALID_PTX;
	}
	ptx_want(P, s, two ? 3 : 2, two ? 3 : 2);
	d = ptx_dst(P, s, 0, dt);
	if (ptx_type_size(st) == 1) {
		unsigned int width;

		a = ptx_src_any(P, s, &s->op_[1], st, &width);
		if (width != 2)
			return PTX_INVALID_PTX;
	} else {
		a = ptx_src(P, s, 1, st);
	}
	if (two)
		b = ptx_src(P, s, 2, st);
	emit(P, s, small_pair(dt) ? ptx_h_cvt_to_small : ptx_h_cvt_from_small, d, a, b)->nx =
		(uint8_t)r->rnd;
	return PTX_OK;
}

static enum ptx_status cvt_tf32(struct ptx_parser *P, struct ptx_stmt *s, const struct rounding *r)
{
	uint32_t d, a;

	if (s->type[1] != T_F32 || !r->given || r->rnd == RND_M || r->rnd == RND_P)
		return PTX_INVALID_PTX;
	ptx_want(P, s, 2, 2);
	d = ptx_dst(P, s, 0, T_B32);
	a = ptx_src(P, s, 1, T_F32);
	emit(P, s, ptx_h_cvt_tf32, d, a, 0)->nx = (uint8_t)r->rnd;
	return PTX_OK;
}

/* cvt.pack.sat.type.s32{.b32} d, a, b{, c} */
static enum ptx_status cvt_pack(struct ptx_parser *P, struct ptx_stmt *s)
{
	static const struct {
		const char *name;
		uint8_t bits;
		bool sign;
	} kinds[] = {{"u16", 16, false}, {"s16", 16, true}, {"u8", 8, false}, {"s8", 8, true},
		     {"u4", 4, false},	 {"s4", 4, true},   {"u2", 2, false}, {"s2", 2, true}};
	uint32_t d, a, b, c = 0;
	struct ptx_insn *in;

	if (s->nmod < 4 || strcmp(s->mod[0], "pack") || strcmp(s->mod[1], "sat") ||
	    strcmp(s->mod[3], "s32") || (s->nmod == 5 && strcmp(s->mod[4], "b32")) || s->nmod > 5)
		return PTX_INVALID_PTX;
	for (unsigned int k = 0; k < 8; k++) {
		if (strcmp(s->mod[2], kinds[k].name))
			continue;
		if ((kinds[k].bits < 8) > (s->nmod == 5) || (kinds[k].bits == 16 && s->nmod == 5))
			return PTX_INVALID_PTX;
		ptx_want(P, s, s->nmod - 1, s->nmod - 1);
		d = ptx_dst(P, s, 0, T_B32);
		a = ptx_src(P, s, 1, T_S32);
		b = ptx_src(P, s, 2, T_S32);
		c = s->nmod == 5 ? ptx_src(P, s, 3, T_B32) : ptx_const(P, 4, 0);
		in = ptx_emit(P, s, ptx_h_cvt_pack);
		in->d = d;
		in->a = a;
		in->b = b;
		in->c = c;
		in->nx = kinds[k].bits;
		in->sub = kinds[k].sign;
		return PTX_OK;
	}
	return PTX_INVALID_PTX;
}

/* cvt.f16x2.f32 d, a, b */
static enum ptx_status cvt_pair(struct ptx_parser *P, struct ptx_stmt *s, const struct rounding *r)
{
	uint32_t d, a, b;

	if (s->type[1] != T_F32)
		return PTX_INVALID_PTX;
	ptx_want(P, s, 3, 3);
	d = ptx_dst(P, s, 0, s->type[0]);
	a = ptx_src(P, s, 1, T_F32);
	b = ptx_src(P, s, 2, T_F32);
	emit(P, s, ptx_h_cvt_pair, d, a, b)->flags |= (uint16_t)r->rnd;
	return PTX_OK;
}

/* Conversion of one value to another type. */
static enum ptx_status cvt_plain(struct ptx_parser *P, struct ptx_stmt *s, const struct rounding *r)
{
	enum ptx_type dt = s->type[0], st = s->type[1];
	uint16_t flags = (uint16_t)((ptx_float_flags(s) & ~IF_RND) | r->rnd);
	unsigned int sw, dw, size;
	struct ptx_insn *in;
	ptx_fn fn = NULL;
	uint32_t d, a;

	if (r->rnd == RND_A)
		return PTX_INVALID_PTX;
	if (ptx_has(s, "satfinite"))
		flags |= IF_FIN;
	ptx_want(P, s, 2, 2);
	if (s->op_[0].kind != O_REG || s->op_[0].type == T_PRED)
		ptx_fail(P, PTX_INVALID_PTX, "%s: register expected as destination", s->text);
	dw = P->width[s->op_[0].reg];
	d = s->op_[0].reg << 2;
	size = ptx_type_size(dt);
	if (dw < size || (dw != size && ptx_type_float(dt)) || dw > 8)
		ptx_fail(P, PTX_INVALID_PTX, "%s: destination does not fit type .%s", s->text,
			 ptx_type_name(dt));
	a = ptx_src_any(P, s, &s->op_[1], st, &sw);
	size = ptx_type_size(st);
	if (sw < size || sw == 1 || sw > 8 || (sw != size && ptx_type_float(st)))
		ptx_fail(P, PTX_INVALID_PTX, "%s: operand does not fit type .%s", s->text,
			 ptx_type_name(st));
	if (dw == ptx_type_size(dt) && sw == ptx_type_size(st))
		fn = fast_cvt(P, dt, st, flags, r->to_int);
	in = ptx_emit(P, s, fn ? fn : ptx_h_cvt);
	in->d = d;
	in->a = a;
	in->flags = flags;
	in->type = (uint8_t)dt;
	in->type2 = (uint8_t)st;
	in->sub = (uint8_t)(dw << 4 | sw);
	in->nx = r->to_int;
	return PTX_OK;
}

static bool plain_type(enum ptx_type t)
{
	return t != T_PRED && t < T_B128 && t != T_F16X2 && t != T_BF16X2 && t != T_U16X2 &&
	       t != T_S16X2;
}

static enum ptx_status b_cvt(struct ptx_parser *P, struct ptx_stmt *s)
{
	enum ptx_type dt = s->type[0], st = s->type[1];
	struct rounding r;

	if (ptx_has(s, "pack"))
		return cvt_pack(P, s);
	if (s->ntype != 2)
		return PTX_UNSUPPORTED; /* has a scale, or a format that is not known here */
	if (!read_cvt_modifiers(s, &r))
		return PTX_INVALID_PTX;
	if (r.random)
		return PTX_UNSUPPORTED;
	if (small_pair(dt) || small_pair(st))
		return cvt_small(P, s, &r);
	if (dt == T_TF32)
		return cvt_tf32(P, s, &r);
	if (dt == T_F16X2 || dt == T_BF16X2)
		return cvt_pair(P, s, &r);
	if (!plain_type(dt) || !plain_type(st))
		return PTX_INVALID_PTX;
	return cvt_plain(P, s, &r);
}

const struct ptx_build_entry ptx_build_cvt[] = {
	{"cvt", b_cvt},
	{NULL, NULL},
};
