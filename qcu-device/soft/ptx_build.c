// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Turns a statement into a decoded instruction. Operands become refs, and constants go to the pool.
 * The checks that all instructions share are also here.
 */
#include <stdio.h>
#include <stdlib.h>

#include "qcu-device/soft/ptx_build.h"

struct ptx_insn *ptx_emit(struct ptx_parser *P, const struct ptx_stmt *s, ptx_fn fn)
{
	struct ptx_module *m = P->m;
	struct ptx_insn *in;

	/* Branch targets and refs use two of their bits for other things. */
	if (m->ncode >= 1u << 28)
		ptx_fail(P, PTX_UNSUPPORTED, "module too large");
	if (!ptx_grow((void **)&m->code, &m->code_cap, m->ncode + 1, sizeof(*m->code)))
		ptx_fail_memory(P);
	in = &m->code[m->ncode++];
	memset(in, 0, sizeof(*in));
	in->fn = fn;
	in->pred = s->pred;
	in->line = s->line;
	in->loc = P->loc;
	return in;
}

/*
 * Emits a placeholder for an instruction that the machine does not know, and marks the function
 * that contains it.
 */
void ptx_emit_bad(struct ptx_parser *P, const char *text, unsigned int line)
{
	struct ptx_stmt s = {.line = line, .pred = P->stmt.pred};
	struct ptx_func *f = P->fn;
	struct ptx_insn *in = ptx_emit(P, &s, NULL);

	in->ctl = CTL_UNSUPPORTED;
	in->x = f->index;
	if (f->bad)
		return;
	f->bad = PTX_UNSUPPORTED;
	f->bad_line = line;
	snprintf(f->bad_text, sizeof(f->bad_text), "%s", text);
}

static uint32_t const_hash(unsigned int width, uint64_t v)
{
	v = (v ^ width) * 0x9e3779b97f4a7c15ull;
	return (uint32_t)(v >> 32);
}

static bool const_is(const struct ptx_module *m, uint32_t entry, unsigned int width, uint64_t v)
{
	uint64_t have = 0;

	if ((entry & 3) != (width == 2 ? 1u : width == 4 ? 2u : 3u))
		return false;
	memcpy(&have, m->consts + (entry & REF_OFF), width);
	return have == v;
}

/*
 * Doubles the hash table. An entry is the offset of a constant, with a code for its width in the
 * low bits. 0: free.
 */
static bool const_rehash(struct ptx_module *m)
{
	uint32_t cap = m->const_hash_cap ? m->const_hash_cap * 2 : 1024;
	uint32_t *h = calloc(cap, sizeof(*h));

	if (!h)
		return false;
	for (uint32_t i = 0; i < m->const_hash_cap; i++) {
		uint32_t e = m->const_hash[i], at;
		unsigned int width = (e & 3) == 1 ? 2 : (e & 3) == 2 ? 4 : 8;
		uint64_t v = 0;

		if (!e)
			continue;
		memcpy(&v, m->consts + (e & REF_OFF), width);
		for (at = const_hash(width, v) % cap; h[at]; at = (at + 1) % cap)
			;
		h[at] = e;
	}
	free(m->const_hash);
	m->const_hash = h;
	m->const_hash_cap = cap;
	return true;
}

static uint32_t const_room(struct ptx_parser *P, unsigned int width)
{
	struct ptx_module *m = P->m;
	uint32_t off = m->const_len;

	if (off > (1u << 31) ||
	    !ptx_grow((void **)&m->consts, &m->const_cap, off + width * PTX_LANES, 1))
		ptx_fail_memory(P);
	m->const_len += width * PTX_LANES;
	return off;
}

/* Adds a constant of 8 bytes that is never shared with an equal one. Its value is set later. */
uint32_t ptx_const_own(struct ptx_parser *P)
{
	return const_room(P, 8) | REF_CONST;
}

/* Returns the ref of a constant: the value, once for each lane. Equal constants are shared. */
uint32_t ptx_const(struct ptx_parser *P, unsigned int width, uint64_t v)
{
	struct ptx_module *m = P->m;
	uint32_t at, off;

	if (width == 1) {
		width = 4;
		v = v ? PTX_FULL : 0;
	}
	if (width < 8)
		v &= (1ull << width * 8) - 1;
	if (m->const_count * 2 >= m->const_hash_cap && !const_rehash(m))
		ptx_fail_memory(P);
	for (at = const_hash(width, v) % m->const_hash_cap; m->const_hash[at];
	     at = (at + 1) % m->const_hash_cap)
		if (const_is(m, m->const_hash[at], width, v))
			return (m->const_hash[at] & REF_OFF) | REF_CONST;
	off = const_room(P, width);
	for (unsigned int i = 0; i < PTX_LANES; i++)
		memcpy(m->consts + off + i * width, &v, width);
	m->const_hash[at] = off | (width == 2 ? 1u : width == 4 ? 2u : 3u);
	m->const_count++;
	return off | REF_CONST;
}

uint32_t ptx_xop(struct ptx_parser *P, uint32_t ref)
{
	struct ptx_module *m = P->m;

	if (!ptx_grow((void **)&m->xops, &m->xops_cap, m->nxops + 1, sizeof(*m->xops)))
		ptx_fail_memory(P);
	m->xops[m->nxops] = ref;
	return m->nxops++;
}

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
			if (!v->slot)
				return ptx_const(P, 8, v->addr + o->imm);
			if (!o->imm)
				return base;
		} else if (v->space == SPACE_SHARED && v->own) {
			return ptx_const(P, width, v->off + o->imm);
		} else if (v->space == SPACE_SHARED) {
			P->fn->shared_used |= !v->is_extern;
			if (v->is_extern)
				base = width == 8 ? SP_REF(SP_DYN_SHARED64) : SP_REF(SP_DYN_SHARED);
			else
				base = width == 8 ? SP_REF(SP_FUNC_SHARED64)
						  : SP_REF(SP_FUNC_SHARED);
		} else if (width == 8) {
			base = REF_REG; /* slot 0 of the frame: where .local starts */
		} else {
			ptx_fail(P, PTX_INVALID_PTX, "%s: address of '%s' needs 64 bits", s->text,
				 v->name);
		}
		r = ptx_new_reg(P, width == 8 ? T_U64 : T_U32);
		in = ptx_emit(P, s, P->m->ops->op[V_ADD][width == 8 ? K_U64 : K_U32]);
		in->a = base;
		in->d = r << 2;
		base = ptx_const(P, width, v->off + o->imm);
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

ptx_build_fn ptx_build_find(const char *op)
{
	static const struct ptx_build_entry *const all[] = {
		ptx_build_int,	 ptx_build_float, ptx_build_mem, ptx_build_ctl, ptx_build_sync,
		ptx_build_video, ptx_build_atom,  ptx_build_cvt, ptx_build_tex};

	for (size_t t = 0; t < sizeof(all) / sizeof(all[0]); t++)
		for (const struct ptx_build_entry *e = all[t]; e->op; e++)
			if (!strcmp(e->op, op))
				return e->fn;
	return NULL;
}

/*
 * The builders of arithmetic and control flow only look for the modifiers that they know. An
 * unknown modifier may change the meaning of an instruction, and they would not notice it. So every
 * modifier must be one of the words below.
 */
static bool modifiers_known(const struct ptx_stmt *s)
{
	static const char words[] =
		" rn rz rm rp ftz sat relu NaN xorsign abs approx full lo hi wide cc and or xor "
		"eq ne lt le gt ge ls hs equ neu ltu leu gtu geu num nan clamp wrap l r f4e b4e "
		"rc8 "
		"ecl ecr rc16 shiftamt finite infinite number notanumber normal subnormal uni idx "
		"sync aligned arrive red popc warp cta cluster wait acquire release relaxed up "
		"down "
		"bfly all any ballot add min max mask oob ";

	for (unsigned int i = 0; i < s->nmod; i++) {
		size_t n = strlen(s->mod[i]);
		const char *p = words;

		if (ptx_type_from(s->mod[i], n))
			continue;
		for (p = strstr(p, s->mod[i]); p; p = strstr(p + 1, s->mod[i]))
			if (p[-1] == ' ' && p[n] == ' ')
				break;
		if (!p)
			return false;
	}
	return true;
}

static bool has_entry(const struct ptx_build_entry *e, const char *op)
{
	for (; e->op; e++)
		if (!strcmp(e->op, op))
			return true;
	return false;
}

enum ptx_status ptx_build_stmt(struct ptx_parser *P, struct ptx_stmt *s)
{
	bool strict = has_entry(ptx_build_int, s->op) || has_entry(ptx_build_float, s->op) ||
		      has_entry(ptx_build_ctl, s->op);

	if (strict && !modifiers_known(s))
		return PTX_INVALID_PTX;
	return ptx_build_find(s->op)(P, s);
}

bool ptx_is_video(const char *op)
{
	return has_entry(ptx_build_video, op);
}

bool ptx_known_form(const struct ptx_stmt *s)
{
	return !strcmp(s->op, "cp") && (ptx_has(s, "bulk") || ptx_has(s, "reduce"));
}

/*
 * Is op a PTX instruction that the machine does not have? A word that is neither here nor in the
 * table of a builder is not PTX.
 */
bool ptx_known_opcode(const char *op)
{
	static const char *const known[] = {
		"clusterlaunchcontrol",
		"istypep",
		"mma",
		"multimem",
		"tcgen05",
		"tensormap",
		"wgmma",
		"wmma",
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (!strcmp(known[i], op))
			return true;
	return false;
}
