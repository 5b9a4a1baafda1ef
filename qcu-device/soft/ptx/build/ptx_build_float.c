// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Builders for operations that only floating point has, for comparisons, and for mov.
 */
#include "qcu-device/soft/ptx/build/ptx_build.h"

static enum ptx_status unary(struct ptx_parser *P, struct ptx_stmt *s, enum ptx_op op,
			     uint16_t flags)
{
	enum ptx_type t = s->type[0];
	enum ptx_kind k = ptx_kind(t);
	struct ptx_insn *in;
	uint32_t d, a;
	ptx_fn fn;

	if (s->ntype != 1)
		return PTX_INVALID_PTX;
	if (flags && k == K_F32)
		k = K_F32X;
	if (flags && k == K_F64)
		k = K_F64X;
	fn = P->m->ops->op[op][k];
	if (!fn)
		return PTX_INVALID_PTX;
	ptx_want(P, s, 2, 2);
	d = ptx_dst(P, s, 0, t);
	a = ptx_src(P, s, 1, t);
	in = ptx_emit(P, s, fn);
	in->d = d;
	in->a = a;
	in->b = a;
	in->c = a;
	in->flags = flags;
	return PTX_OK;
}

static enum ptx_status b_fma(struct ptx_parser *P, struct ptx_stmt *s)
{
	enum ptx_type t = s->type[0];
	uint16_t flags = ptx_float_flags(s);
	enum ptx_kind k = ptx_kind(t);
	uint32_t d, a, b, c;
	struct ptx_insn *in;

	if (ptx_has(s, "oob"))
		return PTX_UNSUPPORTED; /* .oob: what TMA writes outside of tensors */
	if (s->ntype == 2)
		return ptx_build_mixed(P, s, V_FMA);
	if (t == T_F32X2)
		return ptx_build_f32x2(P, s, V_FMA, 3);
	if (s->ntype != 1)
		return PTX_INVALID_PTX;
	if (flags && (k == K_F32 || k == K_F64))
		k++;
	if (!P->m->ops->op[V_FMA][k])
		return PTX_INVALID_PTX;
	ptx_want(P, s, 4, 4);
	d = ptx_dst(P, s, 0, t);
	a = ptx_src(P, s, 1, t);
	b = ptx_src(P, s, 2, t);
	c = ptx_src(P, s, 3, t);
	in = ptx_emit(P, s, P->m->ops->op[V_FMA][k]);
	in->d = d;
	in->a = a;
	in->b = b;
	in->c = c;
	in->flags = flags;
	return PTX_OK;
}

static enum ptx_status b_sqrt(struct ptx_parser *P, struct ptx_stmt *s)
{
	return unary(P, s, V_SQRT, ptx_float_flags(s));
}

static enum ptx_status b_rcp(struct ptx_parser *P, struct ptx_stmt *s)
{
	if (s->type[0] == T_F64 && ptx_has(s, "approx"))
		return unary(P, s, V_RCP64H, 0);
	return unary(P, s, V_RCP, ptx_float_flags(s));
}

static enum ptx_status b_rsqrt(struct ptx_parser *P, struct ptx_stmt *s)
{
	if (s->type[0] == T_F64 && ptx_has(s, "ftz"))
		return unary(P, s, V_RSQRT64H, 0);
	return unary(P, s, V_RSQRT, ptx_float_flags(s));
}

static enum ptx_status b_ex2(struct ptx_parser *P, struct ptx_stmt *s)
{
	return unary(P, s, V_EX2, ptx_float_flags(s));
}

static enum ptx_status b_lg2(struct ptx_parser *P, struct ptx_stmt *s)
{
	return unary(P, s, V_LG2, ptx_float_flags(s));
}

static enum ptx_status b_sin(struct ptx_parser *P, struct ptx_stmt *s)
{
	return unary(P, s, V_SIN, ptx_float_flags(s));
}

static enum ptx_status b_cos(struct ptx_parser *P, struct ptx_stmt *s)
{
	return unary(P, s, V_COS, ptx_float_flags(s));
}

static enum ptx_status b_tanh(struct ptx_parser *P, struct ptx_stmt *s)
{
	return unary(P, s, V_TANH, ptx_float_flags(s));
}

static enum ptx_status b_copysign(struct ptx_parser *P, struct ptx_stmt *s)
{
	enum ptx_type t = s->type[0];
	ptx_fn fn = P->m->ops->op[V_COPYSIGN][ptx_kind(t)];
	uint32_t d, a, b;
	struct ptx_insn *in;

	if (s->ntype != 1 || !fn)
		return PTX_INVALID_PTX;
	ptx_want(P, s, 3, 3);
	d = ptx_dst(P, s, 0, t);
	a = ptx_src(P, s, 1, t);
	b = ptx_src(P, s, 2, t);
	in = ptx_emit(P, s, fn);
	in->d = d;
	in->a = a;
	in->b = b;
	return PTX_OK;
}

static enum ptx_status b_testp(struct ptx_parser *P, struct ptx_stmt *s)
{
	static const char *const ops[] = {"finite",	"infinite", "number",
					  "notanumber", "normal",   "subnormal"};
	enum ptx_type t = s->type[0];
	struct ptx_insn *in;
	uint32_t d, a;

	if (s->ntype != 1 || (t != T_F32 && t != T_F64))
		return PTX_INVALID_PTX;
	ptx_want(P, s, 2, 2);
	d = ptx_dst(P, s, 0, T_PRED);
	a = ptx_src(P, s, 1, t);
	for (uint8_t i = 0; i < 6; i++)
		if (ptx_has(s, ops[i])) {
			in = ptx_emit(P, s, ptx_h_testp);
			in->d = d;
			in->a = a;
			in->sub = i;
			in->type = (uint8_t)t;
			return PTX_OK;
		}
	return PTX_INVALID_PTX;
}

static const char *const cmp_names[CMP_COUNT] = {
	[CMP_EQ] = "eq",   [CMP_NE] = "ne",   [CMP_LT] = "lt",	 [CMP_LE] = "le",
	[CMP_GT] = "gt",   [CMP_GE] = "ge",   [CMP_EQU] = "equ", [CMP_NEU] = "neu",
	[CMP_LTU] = "ltu", [CMP_LEU] = "leu", [CMP_GTU] = "gtu", [CMP_GEU] = "geu",
	[CMP_NUM] = "num", [CMP_NAN] = "nan",
};

static ptx_fn cmp_handler(struct ptx_parser *P, struct ptx_stmt *s, enum ptx_type t)
{
	static const struct {
		const char *name;
		enum ptx_cmp cmp;
	} uns[] = {{"lo", CMP_LT}, {"ls", CMP_LE}, {"hi", CMP_GT}, {"hs", CMP_GE}};
	enum ptx_kind k = ptx_kind(t);

	if (!s->nmod)
		return NULL;
	if (k == K_F32 && ptx_has(s, "ftz"))
		k = K_F32X;
	for (int c = 0; c < CMP_COUNT; c++)
		if (!strcmp(s->mod[0], cmp_names[c]))
			return P->m->ops->setp[c][k];
	for (int c = 0; c < 4; c++)
		if (!strcmp(s->mod[0], uns[c].name) && !ptx_type_float(t))
			return P->m->ops->setp[uns[c].cmp][ptx_kind_bits(t)];
	return NULL;
}

static uint16_t bool_flags(const struct ptx_stmt *s)
{
	for (unsigned int i = 1; i < s->nmod; i++) {
		if (!strcmp(s->mod[i], "and"))
			return IF_AND;
		if (!strcmp(s->mod[i], "or"))
			return IF_OR;
		if (!strcmp(s->mod[i], "xor"))
			return IF_XOR;
	}
	return 0;
}

/* Compares operands 1 and 2, and writes predicates d and d2. */
static enum ptx_status build_comparison(struct ptx_parser *P, struct ptx_stmt *s, enum ptx_type t,
					uint32_t d, uint32_t d2)
{
	uint16_t flags = bool_flags(s);
	uint32_t a, b, c = 0;
	struct ptx_insn *in;
	bool neg = false;
	ptx_fn fn;

	fn = cmp_handler(P, s, t);
	if (!fn)
		return PTX_INVALID_PTX;
	ptx_want(P, s, flags ? 4 : 3, flags ? 4 : 3);
	a = ptx_src(P, s, 1, t);
	b = ptx_src(P, s, 2, t);
	if (flags)
		c = ptx_src_pred(P, s, 3, &neg);
	in = ptx_emit(P, s, fn);
	in->d = d;
	in->d2 = d2;
	in->a = a;
	in->b = b;
	in->c = c;
	in->flags = flags | (neg ? IF_NEGC : 0) | (ptx_float_flags(s) & IF_FTZ);
	return PTX_OK;
}

/* Compares two halves at a time. d gets the result of the low halves, d2 of the high ones. */
static enum ptx_status compare_pair(struct ptx_parser *P, struct ptx_stmt *s, enum ptx_type t,
				    uint32_t d, uint32_t d2)
{
	uint16_t bools = bool_flags(s);
	uint32_t a, b, q = 0;
	struct ptx_insn *in;
	bool neg = false;
	int c = 0;

	while (c < CMP_COUNT && s->nmod && strcmp(s->mod[0], cmp_names[c]))
		c++;
	if (c == CMP_COUNT || !s->nmod)
		return PTX_INVALID_PTX;
	ptx_want(P, s, bools ? 4 : 3, bools ? 4 : 3);
	a = ptx_src(P, s, 1, t);
	b = ptx_src(P, s, 2, t);
	if (bools)
		q = ptx_src_pred(P, s, 3, &neg);
	in = ptx_emit(P, s, ptx_h_setp2);
	in->d = d;
	in->d2 = d2;
	in->a = a;
	in->b = b;
	in->c = q;
	in->sub = (uint8_t)c;
	in->type = t;
	in->flags = (ptx_float_flags(s) & IF_FTZ) | bools | (neg ? IF_NEGC : 0);
	return PTX_OK;
}

static enum ptx_status b_setp(struct ptx_parser *P, struct ptx_stmt *s)
{
	uint32_t d, d2 = 0;

	if (s->ntype != 1 || !s->nop)
		return PTX_INVALID_PTX;
	d = ptx_dst(P, s, 0, T_PRED);
	if (s->type[0] == T_F16X2 || s->type[0] == T_BF16X2) {
		d2 = s->op_[0].pair ? s->op_[0].pair << 2 : ptx_new_reg(P, T_PRED) << 2;
		return compare_pair(P, s, s->type[0], d, d2);
	}
	if (s->op_[0].has_pair && s->op_[0].pair)
		d2 = s->op_[0].pair << 2;
	return build_comparison(P, s, s->type[0], d, d2);
}

static struct ptx_insn *emit_bits(struct ptx_parser *P, struct ptx_stmt *s, enum ptx_op op,
				  uint32_t d, uint32_t a, uint32_t b)
{
	struct ptx_insn *in = ptx_emit(P, s, P->m->ops->op[op][K_U32]);

	in->d = d;
	in->a = a;
	in->b = b;
	return in;
}

/*
 * Each half of d gets the result of its comparison. True is 1.0, or all ones for an integer type;
 * false is 0.
 */
static enum ptx_status set_pair(struct ptx_parser *P, struct ptx_stmt *s)
{
	enum ptx_type dt = s->type[0];
	uint32_t d, one, low, high, half[2];
	enum ptx_status st;

	switch (dt) {
	case T_F16X2:
		one = 0x3c00;
		break;
	case T_BF16X2:
		one = 0x3f80;
		break;
	case T_U32:
	case T_S32:
		one = 0xffff;
		break;
	default:
		return PTX_INVALID_PTX;
	}
	if (!s->nop)
		return PTX_INVALID_PTX;
	d = ptx_dst(P, s, 0, dt);
	low = ptx_new_reg(P, T_PRED) << 2;
	high = ptx_new_reg(P, T_PRED) << 2;
	st = compare_pair(P, s, s->type[1], low, high);
	if (st != PTX_OK)
		return st;
	half[0] = ptx_new_reg(P, T_U32) << 2;
	half[1] = ptx_new_reg(P, T_U32) << 2;
	emit_bits(P, s, V_SELP, half[0], ptx_const(P, 4, one), ptx_const(P, 4, 0))->c = low;
	emit_bits(P, s, V_SELP, half[1], ptx_const(P, 4, one << 16), ptx_const(P, 4, 0))->c = high;
	emit_bits(P, s, V_OR, d, half[0], half[1]);
	return PTX_OK;
}

/* set is built from setp and a choice between two constants. */
static enum ptx_status b_set(struct ptx_parser *P, struct ptx_stmt *s)
{
	enum ptx_type dt = s->type[0];
	uint32_t p, d, one, zero;
	enum ptx_status st;
	struct ptx_insn *in;
	ptx_fn fn;

	if (s->ntype != 2)
		return PTX_INVALID_PTX;
	if (s->type[1] == T_F16X2 || s->type[1] == T_BF16X2)
		return set_pair(P, s);
	fn = P->m->ops->op[V_SELP][ptx_kind_bits(dt)];
	if (!fn || !s->nop)
		return PTX_INVALID_PTX;
	d = ptx_dst(P, s, 0, dt);
	p = ptx_new_reg(P, T_PRED) << 2;
	st = build_comparison(P, s, s->type[1], p, 0);
	if (st != PTX_OK)
		return st;
	switch (dt) {
	case T_F32:
		one = ptx_const(P, 4, 0x3f800000);
		break;
	case T_F16:
		one = ptx_const(P, 2, 0x3c00);
		break;
	case T_BF16:
		one = ptx_const(P, 2, 0x3f80);
		break;
	default:
		one = ptx_const(P, ptx_type_size(dt), UINT64_MAX);
	}
	zero = ptx_const(P, ptx_type_size(dt), 0);
	in = ptx_emit(P, s, fn);
	in->d = d;
	in->a = one;
	in->b = zero;
	in->c = p;
	return PTX_OK;
}

/* mov.b64 d, {a, b} and mov.b64 {a, b}, d */
static enum ptx_status mov_vector(struct ptx_parser *P, struct ptx_stmt *s, enum ptx_type t)
{
	bool pack = s->op_[1].kind == O_VEC;
	struct ptx_opnd *v = pack ? &s->op_[1] : &s->op_[0];
	unsigned int size = ptx_type_size(t), each = size / v->nvec;
	enum ptx_type et = each == 1 ? T_B8 : each == 2 ? T_B16 : each == 4 ? T_B32 : T_NONE;
	uint32_t ref[PTX_MAX_VEC], whole, x;
	struct ptx_insn *in;

	if (size == 16 && v->nvec == 2)
		et = T_B64;
	if (size < 2 || each * v->nvec != size || et == T_NONE)
		return PTX_INVALID_PTX;
	if (s->op_[pack ? 0 : 1].kind == O_VEC)
		return PTX_INVALID_PTX;
	whole = pack ? ptx_dst(P, s, 0, t) : ptx_src(P, s, 1, t);
	for (unsigned int i = 0; i < v->nvec; i++) {
		if (!pack && v->vec[i].kind == O_SINK) {
			ref[i] = 0;
		} else if (pack && et == T_B8) {
			unsigned int width;

			ref[i] = ptx_src_any(P, s, &v->vec[i], et, &width);
			if (width != 2)
				return PTX_INVALID_PTX;
		} else {
			ref[i] = pack ? ptx_src_opnd(P, s, &v->vec[i], et)
				      : ptx_dst_opnd(P, &v->vec[i], et);
		}
	}
	x = P->m->nxops;
	for (unsigned int i = 0; i < v->nvec; i++)
		ptx_xop(P, ref[i]);
	in = ptx_emit(P, s, pack ? ptx_h_pack : ptx_h_unpack);
	in->d = pack ? whole : 0;
	in->a = pack ? 0 : whole;
	in->x = x;
	in->nx = (uint8_t)v->nvec;
	in->type = (uint8_t)et;
	in->type2 = (uint8_t)t;
	return PTX_OK;
}

static enum ptx_status b_mov(struct ptx_parser *P, struct ptx_stmt *s)
{
	enum ptx_type t = s->type[0];
	struct ptx_insn *in;
	uint32_t d, a;
	bool neg = false;

	if (s->ntype != 1)
		return PTX_INVALID_PTX;
	ptx_want(P, s, 2, 2);
	if (s->op_[0].kind == O_VEC || s->op_[1].kind == O_VEC)
		return mov_vector(P, s, t);
	if (t == T_B128) {
		d = ptx_dst(P, s, 0, t);
		a = ptx_src(P, s, 1, t);
		in = ptx_emit(P, s, ptx_h_mov128);
		in->d = d;
		in->a = a;
		return PTX_OK;
	}
	if (!P->m->ops->op[V_MOV][ptx_kind_bits(t)])
		return PTX_INVALID_PTX;
	d = ptx_dst(P, s, 0, t);
	if (t == T_PRED)
		a = ptx_src_pred(P, s, 1, &neg);
	else
		a = ptx_src(P, s, 1, t);
	in = ptx_emit(P, s, P->m->ops->op[V_MOV][ptx_kind_bits(t)]);
	in->d = d;
	in->a = a;
	in->sub = neg;
	return PTX_OK;
}

const struct ptx_build_entry ptx_build_float[] = {
	{"fma", b_fma},	  {"sqrt", b_sqrt},	    {"rcp", b_rcp},	{"rsqrt", b_rsqrt},
	{"ex2", b_ex2},	  {"lg2", b_lg2},	    {"sin", b_sin},	{"cos", b_cos},
	{"tanh", b_tanh}, {"copysign", b_copysign}, {"testp", b_testp}, {"setp", b_setp},
	{"set", b_set},	  {"mov", b_mov},	    {NULL, NULL},
};
