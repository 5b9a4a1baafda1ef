// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Turns operands into refs, and constants among them go to the pool. The checks that all
 * instructions share are also here.
 */
#include "qcu-device/soft/ptx/build/ptx_build.h"

/* Returns the bits of an immediate in an instruction of type t. */
uint64_t ptx_imm_bits(const struct ptx_opnd *o, enum ptx_type t)
{
	bool flt = ptx_type_float(t);
	uint64_t bits = o->imm;
	uint32_t u;
	double d;
	float f;

	if (o->num == TK_INT) {
		if (!flt || t == T_F16 || t == T_BF16 || t == T_F16X2 || t == T_BF16X2)
			return bits;
		d = (double)(int64_t)bits;
	} else if (o->num == TK_F32) {
		if (ptx_type_size(t) == 4)
			return bits;
		u = (uint32_t)bits;
		memcpy(&f, &u, 4);
		d = f;
	} else {
		if (ptx_type_size(t) == 8 && t != T_U64 && t != T_S64)
			return bits;
		memcpy(&d, &bits, 8);
	}
	if (t == T_F32 || t == T_B32) {
		f = (float)d;
		memcpy(&u, &f, 4);
		return u;
	}
	memcpy(&bits, &d, 8);
	return bits;
}

static bool special_is_64(unsigned int sp)
{
	return sp == SP_GRIDID || sp == PTX_SP_CLOCK64 || sp == PTX_SP_TIMER;
}

static uint32_t src_special(struct ptx_parser *P, struct ptx_stmt *s, struct ptx_opnd *o,
			    unsigned int *width)
{
	struct ptx_insn *in;
	uint32_t r;

	*width = special_is_64(o->special) ? 8 : 4;
	if (o->special == PTX_SP_WARP_SZ)
		return ptx_const(P, 4, PTX_LANES);
	if (o->special >= SP_RESERVED && o->special < SP_COUNT)
		P->m->reserved_used = true;
	if (o->special < SP_COUNT)
		return SP_REF(o->special);
	r = ptx_new_reg(P, *width == 8 ? T_U64 : T_U32);
	in = ptx_emit(P, s, ptx_h_time);
	in->d = r << 2;
	in->sub = (uint8_t)(o->special - SP_COUNT);
	return r << 2;
}

/*
 * A symbol as a source: the address of a variable or parameter in its own space, or the code
 * address of a function, which contains the function's number.
 */
static uint32_t src_symbol(struct ptx_parser *P, struct ptx_stmt *s, struct ptx_opnd *o,
			   unsigned int width)
{
	struct ptx_sym *y = o->sym;
	struct ptx_var *v = y->var;
	struct ptx_insn *in;
	uint32_t r, base;

	switch (y->kind) {
	case SYM_VAR:
		if (v->space == SPACE_GLOBAL || v->space == SPACE_CONST) {
			if (width < 8)
				ptx_fail(P, PTX_INVALID_PTX, "%s: address of '%s' needs 64 bits",
					 s->text, v->name);
			base = ptx_var_ref(P, v);
			if (!v->addr_const)
				return ptx_const(P, 8, v->addr + o->imm);
			if (!o->imm)
				return base;
		} else if (v->space == SPACE_SHARED && v->own) {
			return ptx_const(P, width, v->off + o->imm);
		} else if (v->space == SPACE_SHARED) {
			if (v->is_extern)
				base = width == 8 ? SP_REF(SP_DYN_SHARED64) : SP_REF(SP_DYN_SHARED);
			else
				base = width == 8 ? SP_REF(SP_FUNC_SHARED64)
						  : SP_REF(SP_FUNC_SHARED);
			if (!v->is_extern)
				ptx_shared_use(P, v);
		} else if (width == 8) {
			base = REF_REG; /* offset 0 of the frame: where .local starts */
		} else {
			ptx_fail(P, PTX_INVALID_PTX, "%s: address of '%s' needs 64 bits", s->text,
				 v->name);
		}
		r = ptx_new_reg(P, width == 8 ? T_U64 : T_U32);
		in = ptx_emit(P, s, P->m->ops->op[V_ADD][width == 8 ? K_U64 : K_U32]);
		in->a = base;
		in->d = r << 2;
		base = v->linked ? ptx_shared_const(P, v, width, o->imm)
				 : ptx_const(P, width, v->off + o->imm);
		P->m->code[P->m->ncode - 1].b = base;
		return r << 2;
	case SYM_FUNC:
		return ptx_const(P, 8, PTX_CODE_BASE + y->fn->index * 16ull);
	case SYM_PARAM:
	case SYM_KPARAM:
		return ptx_const(P, width, y->off + o->imm);
	case SYM_LABEL:
		ptx_fail(P, PTX_INVALID_PTX, "'%.*s' is not declared",
			 (int)(y->len > 80 ? 80 : y->len), y->name);
	default:
		ptx_fail(P, PTX_INVALID_PTX, "'%s' cannot be an operand", y->name);
	}
}

/* A source whose register may have any width. *width gets the width. */
uint32_t ptx_src_any(struct ptx_parser *P, struct ptx_stmt *s, struct ptx_opnd *o, enum ptx_type t,
		     unsigned int *width)
{
	unsigned int size = ptx_type_size(t);

	switch (o->kind) {
	case O_REG:
		if (o->neg && o->type != T_PRED)
			ptx_fail(P, PTX_INVALID_PTX, "%s: '!' needs a predicate", s->text);
		if (o->has_pair)
			ptx_fail(P, PTX_INVALID_PTX, "%s: '|' in a source", s->text);
		*width = P->width[o->reg];
		return o->reg << 2;
	case O_IMM:
		*width = t == T_PRED ? 1 : size < 2 ? 2 : size;
		if (*width > 8)
			ptx_fail(P, PTX_INVALID_PTX, "%s: immediate of 128 bits", s->text);
		return ptx_const(P, *width, ptx_imm_bits(o, t));
	case O_SREG:
		return src_special(P, s, o, width);
	case O_SYM:
		*width = size == 4 ? 4 : 8;
		return src_symbol(P, s, o, *width);
	default:
		ptx_fail(P, PTX_INVALID_PTX, "%s: wrong kind of operand", s->text);
	}
}

uint32_t ptx_src_opnd(struct ptx_parser *P, struct ptx_stmt *s, struct ptx_opnd *o, enum ptx_type t)
{
	unsigned int width;
	uint32_t ref = ptx_src_any(P, s, o, t, &width);

	if (width != ptx_type_size(t) || (o->kind == O_REG && o->neg))
		ptx_fail(P, PTX_INVALID_PTX, "%s: an operand of %u bits where .%s is needed",
			 s->text, width == 1 ? 1 : width * 8, ptx_type_name(t));
	return ref;
}

uint32_t ptx_src(struct ptx_parser *P, struct ptx_stmt *s, unsigned int i, enum ptx_type t)
{
	if (i >= s->nop)
		ptx_fail(P, PTX_INVALID_PTX, "%s: operand missing", s->text);
	return ptx_src_opnd(P, s, &s->op_[i], t);
}

uint32_t ptx_src_pred(struct ptx_parser *P, struct ptx_stmt *s, unsigned int i, bool *neg)
{
	struct ptx_opnd *o = &s->op_[i];

	if (i >= s->nop)
		ptx_fail(P, PTX_INVALID_PTX, "%s: operand missing", s->text);
	*neg = o->neg;
	if (o->kind == O_IMM)
		return ptx_const(P, 1, o->imm);
	if (o->kind != O_REG || o->type != T_PRED || o->has_pair)
		ptx_fail(P, PTX_INVALID_PTX, "%s: predicate expected", s->text);
	return o->reg << 2;
}

uint32_t ptx_dst_opnd(struct ptx_parser *P, struct ptx_opnd *o, enum ptx_type t)
{
	unsigned int size = ptx_type_size(t);

	if (o->kind == O_SINK)
		return ptx_new_reg(P, t) << 2;
	if (o->kind != O_REG || o->neg)
		ptx_fail(P, PTX_INVALID_PTX, "register expected as destination");
	if (P->width[o->reg] != (size == 1 && t != T_PRED ? 2 : size))
		ptx_fail(P, PTX_INVALID_PTX, "%s: destination does not fit type .%s", P->stmt.text,
			 ptx_type_name(t));
	return o->reg << 2;
}

uint32_t ptx_dst(struct ptx_parser *P, struct ptx_stmt *s, unsigned int i, enum ptx_type t)
{
	if (i >= s->nop)
		ptx_fail(P, PTX_INVALID_PTX, "%s: operand missing", s->text);
	return ptx_dst_opnd(P, &s->op_[i], t);
}

void ptx_want(struct ptx_parser *P, const struct ptx_stmt *s, unsigned int min, unsigned int max)
{
	if (s->nop < min || s->nop > max)
		ptx_fail(P, PTX_INVALID_PTX, "%s: %u operands, not %u", s->text, s->nop, min);
}

uint16_t ptx_float_flags(const struct ptx_stmt *s)
{
	uint16_t f = 0;

	if (ptx_has(s, "rz"))
		f |= 1;
	else if (ptx_has(s, "rm"))
		f |= 2;
	else if (ptx_has(s, "rp"))
		f |= 3;
	if (ptx_has(s, "ftz"))
		f |= IF_FTZ;
	if (ptx_has(s, "sat"))
		f |= IF_SAT;
	if (ptx_has(s, "relu"))
		f |= IF_RELU;
	if (ptx_has(s, "NaN"))
		f |= IF_NAN;
	return f;
}
