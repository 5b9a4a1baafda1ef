// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Builders for integer arithmetic and logic. If floating point has the same opcode (add, min, ...),
 * this file builds both.
 */
#include "qcu-device/soft/ptx/build/ptx_build.h"

/* Returns the type of a statement that must have exactly one. */
static enum ptx_type type1(struct ptx_parser *P, struct ptx_stmt *s)
{
	if (s->ntype != 1)
		ptx_fail(P, PTX_INVALID_PTX, "%s: one type expected", s->text);
	return s->type[0];
}

static enum ptx_kind float_kind(enum ptx_type t, uint16_t flags)
{
	enum ptx_kind k = ptx_kind(t);

	if (flags && k == K_F32)
		return K_F32X;
	if (flags && k == K_F64)
		return K_F64X;
	return k;
}

/* An instruction whose operands d, a, b and c have the same type. */
static enum ptx_status plain(struct ptx_parser *P, struct ptx_stmt *s, enum ptx_op op,
			     enum ptx_type t, unsigned int nsrc, uint16_t flags, bool bits)
{
	uint32_t r[3] = {0}, d;
	struct ptx_insn *in;
	ptx_fn fn;

	ptx_want(P, s, nsrc + 1, nsrc + 1);
	fn = P->m->ops->op[op][bits ? ptx_kind_bits(t) : float_kind(t, flags)];
	if (!fn)
		return PTX_INVALID_PTX;
	d = ptx_dst(P, s, 0, t);
	for (unsigned int i = 0; i < nsrc; i++)
		r[i] = ptx_src(P, s, i + 1, t);
	in = ptx_emit(P, s, fn);
	in->d = d;
	in->a = r[0];
	in->b = r[1];
	in->c = r[2];
	in->flags = flags;
	return PTX_OK;
}

static enum ptx_status build_carry(struct ptx_parser *P, struct ptx_stmt *s, enum ptx_op op,
				   unsigned int nsrc, bool cin)
{
	enum ptx_type t = type1(P, s);
	uint16_t flags = (cin ? IF_CCIN : 0) | (ptx_has(s, "cc") ? IF_CCOUT : 0);
	enum ptx_status st;
	struct ptx_insn *in;

	if (ptx_has(s, "hi"))
		flags |= IF_HI;
	else if (op == V_MADC && !ptx_has(s, "lo"))
		return PTX_INVALID_PTX;
	if (ptx_type_float(t) || ptx_type_size(t) < 4)
		return PTX_INVALID_PTX;
	st = plain(P, s, op, t, nsrc, 0, true);
	if (st == PTX_OK) {
		in = &P->m->code[P->m->ncode - 1];
		in->flags = flags;
		in->sub = ptx_type_signed(t);
	}
	return st;
}

static enum ptx_status add_sub(struct ptx_parser *P, struct ptx_stmt *s, enum ptx_op op,
			       enum ptx_op sat, enum ptx_op cc)
{
	enum ptx_type t;

	if (s->ntype == 2)
		return ptx_build_mixed(P, s, op);
	t = type1(P, s);
	if (t == T_F32X2)
		return ptx_build_f32x2(P, s, op, 2);
	if (ptx_has(s, "cc"))
		return build_carry(P, s, cc, 2, false);
	if (ptx_type_float(t))
		return plain(P, s, op, t, 2, ptx_float_flags(s), false);
	if (ptx_has(s, "sat"))
		return plain(P, s, sat, t, 2, 0, false);
	return plain(P, s, op, t, 2, 0, false);
}

static enum ptx_status b_add(struct ptx_parser *P, struct ptx_stmt *s)
{
	return add_sub(P, s, V_ADD, V_ADDSAT, V_ADDC);
}

static enum ptx_status b_sub(struct ptx_parser *P, struct ptx_stmt *s)
{
	return add_sub(P, s, V_SUB, V_SUBSAT, V_SUBC);
}

static enum ptx_status b_addc(struct ptx_parser *P, struct ptx_stmt *s)
{
	return build_carry(P, s, V_ADDC, 2, true);
}

static enum ptx_status b_subc(struct ptx_parser *P, struct ptx_stmt *s)
{
	return build_carry(P, s, V_SUBC, 2, true);
}

static enum ptx_status b_madc(struct ptx_parser *P, struct ptx_stmt *s)
{
	return build_carry(P, s, V_MADC, 3, true);
}

/* mul.wide and mad.wide: the result is twice as wide as the factors. */
static enum ptx_status build_wide_product(struct ptx_parser *P, struct ptx_stmt *s, enum ptx_op op,
					  enum ptx_type t, bool add)
{
	enum ptx_type big = ptx_type_wide(t);
	ptx_fn fn = P->m->ops->op[op][ptx_kind(t)];
	uint32_t d, a, b, c = 0;
	struct ptx_insn *in;

	if (!fn || !big)
		return PTX_INVALID_PTX;
	ptx_want(P, s, add ? 4 : 3, add ? 4 : 3);
	d = ptx_dst(P, s, 0, big);
	a = ptx_src(P, s, 1, t);
	b = ptx_src(P, s, 2, t);
	if (add)
		c = ptx_src(P, s, 3, big);
	in = ptx_emit(P, s, fn);
	in->d = d;
	in->a = a;
	in->b = b;
	in->c = c;
	return PTX_OK;
}

static enum ptx_status b_mul(struct ptx_parser *P, struct ptx_stmt *s)
{
	enum ptx_type t = type1(P, s);

	if (t == T_F32X2)
		return ptx_build_f32x2(P, s, V_MUL, 2);
	if (ptx_type_float(t))
		return plain(P, s, V_MUL, t, 2, ptx_float_flags(s), false);
	if (ptx_has(s, "wide"))
		return build_wide_product(P, s, V_MULWIDE, t, false);
	if (ptx_has(s, "hi"))
		return plain(P, s, V_MULHI, t, 2, 0, false);
	if (ptx_has(s, "lo"))
		return plain(P, s, V_MUL, t, 2, 0, false);
	return PTX_INVALID_PTX;
}

static enum ptx_status b_mad(struct ptx_parser *P, struct ptx_stmt *s)
{
	enum ptx_type t = type1(P, s);

	if (ptx_type_float(t))
		return plain(P, s, V_FMA, t, 3, ptx_float_flags(s), false);
	if (ptx_has(s, "cc"))
		return build_carry(P, s, V_MADC, 3, false);
	if (ptx_has(s, "wide"))
		return build_wide_product(P, s, V_MADWIDE, t, true);
	if (ptx_has(s, "hi"))
		return plain(P, s, ptx_has(s, "sat") ? V_MADHISAT : V_MADHI, t, 3, 0, false);
	if (ptx_has(s, "lo"))
		return plain(P, s, V_MAD, t, 3, 0, false);
	return PTX_INVALID_PTX;
}

static enum ptx_status b_mul24(struct ptx_parser *P, struct ptx_stmt *s)
{
	return plain(P, s, ptx_has(s, "hi") ? V_MUL24HI : V_MUL24, type1(P, s), 2, 0, false);
}

static enum ptx_status b_mad24(struct ptx_parser *P, struct ptx_stmt *s)
{
	enum ptx_op op = !ptx_has(s, "hi") ? V_MAD24 : ptx_has(s, "sat") ? V_MAD24HISAT : V_MAD24HI;

	return plain(P, s, op, type1(P, s), 3, 0, false);
}

static enum ptx_status b_div(struct ptx_parser *P, struct ptx_stmt *s)
{
	enum ptx_type t = type1(P, s);

	return plain(P, s, V_DIV, t, 2, ptx_type_float(t) ? ptx_float_flags(s) : 0, false);
}

static enum ptx_status b_rem(struct ptx_parser *P, struct ptx_stmt *s)
{
	return plain(P, s, V_REM, type1(P, s), 2, 0, false);
}

/* .relu on integers: a second instruction turns results below zero into zero. */
static enum ptx_status min_max_relu(struct ptx_parser *P, struct ptx_stmt *s, enum ptx_op op,
				    enum ptx_type t)
{
	uint32_t d, zero = ptx_const(P, 4, 0);
	struct ptx_insn *in;
	enum ptx_status st;

	if (t != T_S32 && t != T_S16X2)
		return PTX_INVALID_PTX;
	st = plain(P, s, op, t, 2, 0, false);
	if (st != PTX_OK)
		return st;
	d = P->m->code[P->m->ncode - 1].d;
	in = ptx_emit(P, s, P->m->ops->op[V_MAX][ptx_kind(t)]);
	in->d = d;
	in->a = d;
	in->b = zero;
	return PTX_OK;
}

static enum ptx_status min_max(struct ptx_parser *P, struct ptx_stmt *s, enum ptx_op op)
{
	enum ptx_type t = type1(P, s);

	if (ptx_type_float(t) && (ptx_has(s, "abs") || ptx_has(s, "xorsign") || s->nop == 4))
		return ptx_build_minmax(P, s, op == V_MAX);
	if (!ptx_type_float(t) && ptx_has(s, "relu"))
		return min_max_relu(P, s, op, t);
	return plain(P, s, op, t, 2, ptx_type_float(t) ? ptx_float_flags(s) : 0, false);
}

static enum ptx_status b_min(struct ptx_parser *P, struct ptx_stmt *s)
{
	return min_max(P, s, V_MIN);
}

static enum ptx_status b_max(struct ptx_parser *P, struct ptx_stmt *s)
{
	return min_max(P, s, V_MAX);
}

static enum ptx_status b_abs(struct ptx_parser *P, struct ptx_stmt *s)
{
	return plain(P, s, V_ABS, type1(P, s), 1, ptx_float_flags(s), false);
}

static enum ptx_status b_neg(struct ptx_parser *P, struct ptx_stmt *s)
{
	return plain(P, s, V_NEG, type1(P, s), 1, ptx_float_flags(s), false);
}

static enum ptx_status b_sad(struct ptx_parser *P, struct ptx_stmt *s)
{
	return plain(P, s, V_SAD, type1(P, s), 3, 0, false);
}

static enum ptx_status logic(struct ptx_parser *P, struct ptx_stmt *s, enum ptx_op op,
			     unsigned int nsrc)
{
	enum ptx_type t = type1(P, s);
	struct ptx_insn *in;
	uint32_t d, a, b = 0;
	bool na, nb = false;

	if (ptx_type_float(t))
		return PTX_INVALID_PTX;
	if (t != T_PRED)
		return plain(P, s, op, t, nsrc, 0, true);
	ptx_want(P, s, nsrc + 1, nsrc + 1);
	if (!P->m->ops->op[op][K_PRED])
		return PTX_INVALID_PTX;
	d = ptx_dst(P, s, 0, t);
	a = ptx_src_pred(P, s, 1, &na);
	if (nsrc > 1)
		b = ptx_src_pred(P, s, 2, &nb);
	in = ptx_emit(P, s, P->m->ops->op[op][K_PRED]);
	in->d = d;
	in->a = a;
	in->b = b;
	in->sub = (uint8_t)(na | nb << 1);
	return PTX_OK;
}

static enum ptx_status b_and(struct ptx_parser *P, struct ptx_stmt *s)
{
	return logic(P, s, V_AND, 2);
}

static enum ptx_status b_or(struct ptx_parser *P, struct ptx_stmt *s)
{
	return logic(P, s, V_OR, 2);
}

static enum ptx_status b_xor(struct ptx_parser *P, struct ptx_stmt *s)
{
	return logic(P, s, V_XOR, 2);
}

static enum ptx_status b_not(struct ptx_parser *P, struct ptx_stmt *s)
{
	return logic(P, s, V_NOT, 1);
}

static enum ptx_status b_cnot(struct ptx_parser *P, struct ptx_stmt *s)
{
	return plain(P, s, V_CNOT, type1(P, s), 1, 0, true);
}

/* dt is the type of the destination; ta, tb and tc are the types of the n sources. */
static enum ptx_status build_mixed_types(struct ptx_parser *P, struct ptx_stmt *s, ptx_fn fn,
					 enum ptx_type dt, unsigned int n, enum ptx_type ta,
					 enum ptx_type tb, enum ptx_type tc)
{
	uint32_t d, a, b = 0, c = 0;
	struct ptx_insn *in;

	if (!fn)
		return PTX_INVALID_PTX;
	ptx_want(P, s, n + 1, n + 1);
	d = ptx_dst(P, s, 0, dt);
	a = ptx_src(P, s, 1, ta);
	if (n > 1)
		b = ptx_src(P, s, 2, tb);
	if (n > 2)
		c = ptx_src(P, s, 3, tc);
	in = ptx_emit(P, s, fn);
	in->d = d;
	in->a = a;
	in->b = b;
	in->c = c;
	return PTX_OK;
}

static enum ptx_status build_shift(struct ptx_parser *P, struct ptx_stmt *s, enum ptx_op op)
{
	enum ptx_type t = type1(P, s);
	enum ptx_kind k = op == V_SHL ? ptx_kind_bits(t) : ptx_kind(t);

	if (ptx_type_float(t) || t == T_PRED)
		return PTX_INVALID_PTX;
	return build_mixed_types(P, s, P->m->ops->op[op][k], t, 2, t, T_U32, T_NONE);
}

static enum ptx_status b_shl(struct ptx_parser *P, struct ptx_stmt *s)
{
	return build_shift(P, s, V_SHL);
}

static enum ptx_status b_shr(struct ptx_parser *P, struct ptx_stmt *s)
{
	return build_shift(P, s, V_SHR);
}

static enum ptx_status build_one_source(struct ptx_parser *P, struct ptx_stmt *s, enum ptx_op op,
					bool same)
{
	enum ptx_type t = type1(P, s);

	return build_mixed_types(P, s, P->m->ops->op[op][ptx_kind(t)], same ? t : T_U32, 1, t,
				 T_NONE, T_NONE);
}

static enum ptx_status b_popc(struct ptx_parser *P, struct ptx_stmt *s)
{
	return build_one_source(P, s, V_POPC, false);
}

static enum ptx_status b_clz(struct ptx_parser *P, struct ptx_stmt *s)
{
	return build_one_source(P, s, V_CLZ, false);
}

static enum ptx_status b_brev(struct ptx_parser *P, struct ptx_stmt *s)
{
	return build_one_source(P, s, V_BREV, true);
}

static enum ptx_status b_bfind(struct ptx_parser *P, struct ptx_stmt *s)
{
	return build_one_source(P, s, ptx_has(s, "shiftamt") ? V_BFINDSHIFT : V_BFIND, false);
}

static enum ptx_status b_bfe(struct ptx_parser *P, struct ptx_stmt *s)
{
	enum ptx_type t = type1(P, s);

	return build_mixed_types(P, s, P->m->ops->op[V_BFE][ptx_kind(t)], t, 3, t, T_U32, T_U32);
}

static enum ptx_status b_bfi(struct ptx_parser *P, struct ptx_stmt *s)
{
	enum ptx_type t = type1(P, s);
	ptx_fn fn = P->m->ops->op[V_BFI][ptx_kind(t)];
	uint32_t d, a, b, c, e;
	struct ptx_insn *in;

	if (!fn)
		return PTX_INVALID_PTX;
	ptx_want(P, s, 5, 5);
	d = ptx_dst(P, s, 0, t);
	a = ptx_src(P, s, 1, t);
	b = ptx_src(P, s, 2, t);
	c = ptx_src(P, s, 3, T_U32);
	e = ptx_src(P, s, 4, T_U32);
	in = ptx_emit(P, s, fn);
	in->d = d;
	in->a = a;
	in->b = b;
	in->c = c;
	in->e = e;
	return PTX_OK;
}

static enum ptx_status build_lop3(struct ptx_parser *P, struct ptx_stmt *s)
{
	enum ptx_status st;

	if (s->op_[4].kind != O_IMM || s->op_[4].num != TK_INT || s->op_[4].imm > 255)
		ptx_fail(P, PTX_INVALID_PTX, "%s: table must be a number up to 255", s->text);
	s->nop = 4;
	st = plain(P, s, V_LOP3, type1(P, s), 3, 0, true);
	if (st == PTX_OK)
		P->m->code[P->m->ncode - 1].imm = (int64_t)s->op_[4].imm;
	return st;
}

/* lop3.or.b32 d|p, a, b, c, table, q: p becomes (d != 0) or q. The same with and. */
static enum ptx_status lop3_pred(struct ptx_parser *P, struct ptx_stmt *s)
{
	bool or = !strcmp(s->mod[0], "or"), neg;
	uint32_t d, p, q, zero;
	struct ptx_insn *in;
	enum ptx_status st;

	if (! or &&strcmp(s->mod[0], "and"))
		return PTX_INVALID_PTX;
	ptx_want(P, s, 6, 6);
	if (!s->op_[0].has_pair || (s->op_[0].kind != O_REG && s->op_[0].kind != O_SINK))
		return PTX_INVALID_PTX;
	q = ptx_src_pred(P, s, 5, &neg);
	p = s->op_[0].pair ? s->op_[0].pair << 2 : ptx_new_reg(P, T_PRED) << 2;
	st = build_lop3(P, s);
	if (st != PTX_OK)
		return st;
	d = P->m->code[P->m->ncode - 1].d;
	zero = ptx_const(P, 4, 0);
	in = ptx_emit(P, s, P->m->ops->setp[CMP_NE][K_U32]);
	in->d = p;
	in->a = d;
	in->b = zero;
	in->c = q;
	in->flags = (or ? IF_OR : IF_AND) | (neg ? IF_NEGC : 0);
	return PTX_OK;
}

static enum ptx_status b_lop3(struct ptx_parser *P, struct ptx_stmt *s)
{
	if (s->nmod == 2)
		return lop3_pred(P, s);
	if (s->nmod != 1)
		return PTX_INVALID_PTX;
	ptx_want(P, s, 5, 5);
	return build_lop3(P, s);
}

static enum ptx_status b_shf(struct ptx_parser *P, struct ptx_stmt *s)
{
	bool clamp = ptx_has(s, "clamp");
	enum ptx_op op;

	if (!clamp && !ptx_has(s, "wrap"))
		return PTX_INVALID_PTX;
	if (ptx_has(s, "l"))
		op = clamp ? V_SHFL_CLAMP : V_SHFL_WRAP;
	else if (ptx_has(s, "r"))
		op = clamp ? V_SHFR_CLAMP : V_SHFR_WRAP;
	else
		return PTX_INVALID_PTX;
	return plain(P, s, op, type1(P, s), 3, 0, true);
}

static enum ptx_status b_prmt(struct ptx_parser *P, struct ptx_stmt *s)
{
	static const char *const modes[] = {"f4e", "b4e", "rc8", "ecl", "ecr", "rc16"};
	enum ptx_status st = plain(P, s, V_PRMT, type1(P, s), 3, 0, true);

	for (uint8_t i = 0; i < 6 && st == PTX_OK; i++)
		if (ptx_has(s, modes[i]))
			P->m->code[P->m->ncode - 1].sub = i + 1;
	return st;
}

static enum ptx_status b_bmsk(struct ptx_parser *P, struct ptx_stmt *s)
{
	return plain(P, s, ptx_has(s, "wrap") ? V_BMSK_WRAP : V_BMSK, type1(P, s), 2, 0, true);
}

static enum ptx_status b_szext(struct ptx_parser *P, struct ptx_stmt *s)
{
	enum ptx_type t = type1(P, s);
	enum ptx_op op = ptx_has(s, "wrap") ? V_SZEXT_WRAP : V_SZEXT;

	return build_mixed_types(P, s, P->m->ops->op[op][ptx_kind(t)], t, 2, t, T_U32, T_NONE);
}

static enum ptx_status b_fns(struct ptx_parser *P, struct ptx_stmt *s)
{
	return plain(P, s, V_FNS, type1(P, s), 3, 0, true);
}

static enum ptx_status b_selp(struct ptx_parser *P, struct ptx_stmt *s)
{
	enum ptx_type t = type1(P, s);
	ptx_fn fn = P->m->ops->op[V_SELP][ptx_kind_bits(t)];
	uint32_t d, a, b, c;
	struct ptx_insn *in;
	bool neg;

	if (!fn)
		return PTX_INVALID_PTX;
	ptx_want(P, s, 4, 4);
	d = ptx_dst(P, s, 0, t);
	a = ptx_src(P, s, 1, t);
	b = ptx_src(P, s, 2, t);
	c = ptx_src_pred(P, s, 3, &neg);
	in = ptx_emit(P, s, fn);
	in->d = d;
	in->a = a;
	in->b = b;
	in->c = c;
	in->flags = neg ? IF_NEGC : 0;
	return PTX_OK;
}

static enum ptx_status b_slct(struct ptx_parser *P, struct ptx_stmt *s)
{
	enum ptx_type t = s->type[0], ct = s->type[1];
	enum ptx_status st;
	ptx_fn fn;

	if (s->ntype != 2 || (ct != T_S32 && ct != T_F32))
		return PTX_INVALID_PTX;
	fn = P->m->ops->op[ct == T_S32 ? V_SLCT_S32 : V_SLCT_F32][ptx_kind_bits(t)];
	st = build_mixed_types(P, s, fn, t, 3, t, t, ct);
	if (st == PTX_OK)
		P->m->code[P->m->ncode - 1].flags = ptx_float_flags(s) & IF_FTZ;
	return st;
}

static enum ptx_status dot(struct ptx_parser *P, struct ptx_stmt *s, enum ptx_op op)
{
	enum ptx_status st;
	uint8_t sub;

	if (s->ntype != 2 || ptx_type_size(s->type[0]) != 4 || ptx_type_size(s->type[1]) != 4)
		return PTX_INVALID_PTX;
	sub = (uint8_t)(ptx_type_signed(s->type[0]) | ptx_type_signed(s->type[1]) << 1);
	if (op == V_DP2A && ptx_has(s, "hi"))
		sub |= 4;
	st = build_mixed_types(P, s, P->m->ops->op[op][K_U32], T_U32, 3, T_U32, T_U32, T_U32);
	if (st == PTX_OK)
		P->m->code[P->m->ncode - 1].sub = sub;
	return st;
}

static enum ptx_status b_dp4a(struct ptx_parser *P, struct ptx_stmt *s)
{
	return dot(P, s, V_DP4A);
}

static enum ptx_status b_dp2a(struct ptx_parser *P, struct ptx_stmt *s)
{
	return dot(P, s, V_DP2A);
}

const struct ptx_build_entry ptx_build_int[] = {
	{"add", b_add},	    {"sub", b_sub},	{"addc", b_addc},   {"subc", b_subc},
	{"mul", b_mul},	    {"mad", b_mad},	{"madc", b_madc},   {"mul24", b_mul24},
	{"mad24", b_mad24}, {"div", b_div},	{"rem", b_rem},	    {"min", b_min},
	{"max", b_max},	    {"abs", b_abs},	{"neg", b_neg},	    {"sad", b_sad},
	{"and", b_and},	    {"or", b_or},	{"xor", b_xor},	    {"not", b_not},
	{"cnot", b_cnot},   {"shl", b_shl},	{"shr", b_shr},	    {"popc", b_popc},
	{"clz", b_clz},	    {"brev", b_brev},	{"bfind", b_bfind}, {"bfe", b_bfe},
	{"bfi", b_bfi},	    {"lop3", b_lop3},	{"shf", b_shf},	    {"prmt", b_prmt},
	{"bmsk", b_bmsk},   {"szext", b_szext}, {"fns", b_fns},	    {"selp", b_selp},
	{"slct", b_slct},   {"dp4a", b_dp4a},	{"dp2a", b_dp2a},   {NULL, NULL},
};
