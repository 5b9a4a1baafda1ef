// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Builders for atom and red: single values, 128 bits, and vectors.
 */
#include "qcu-device/soft/ptx/build/ptx_build.h"

static bool atom_allowed(enum ptx_atom op, enum ptx_type t)
{
	switch (op) {
	case ATOM_ADD:
		return t == T_U32 || t == T_S32 || t == T_U64 || t == T_S64 || t == T_F32 ||
		       t == T_F64 || t == T_F16 || t == T_BF16 || t == T_F16X2 || t == T_BF16X2;
	case ATOM_MIN:
	case ATOM_MAX:
		return t == T_U32 || t == T_S32 || t == T_U64 || t == T_S64 || t == T_F16 ||
		       t == T_BF16 || t == T_F16X2 || t == T_BF16X2;
	case ATOM_INC:
	case ATOM_DEC:
		return t == T_U32;
	case ATOM_CAS:
		if (t == T_B16 || t == T_U16)
			return true;
		/* fall through */
	default:
		return t == T_B32 || t == T_U32 || t == T_S32 || t == T_B64 || t == T_U64 ||
		       t == T_S64;
	}
}

/* As PTX says, each element is atomic by itself, and the vector as a whole is not. */
static enum ptx_status atomic_vector(struct ptx_parser *P, struct ptx_stmt *s, enum ptx_space sp,
				     bool red, int op, unsigned int vec)
{
	enum ptx_type t = s->type[0];
	unsigned int o = red ? 0 : 1, size = ptx_type_size(t);
	struct ptx_opnd *v[2] = {red ? NULL : &s->op_[0], &s->op_[o + 1]};
	uint32_t ref[2][PTX_MAX_VEC] = {{0}}, x;
	struct ptx_text_address p;
	struct ptx_insn *in;

	if (t == T_F32 ? op != ATOM_ADD || vec > 4
		       : (op != ATOM_ADD && op != ATOM_MIN && op != ATOM_MAX) ||
				 (t != T_F16 && t != T_BF16 && t != T_F16X2 && t != T_BF16X2))
		return PTX_INVALID_PTX;
	if (size * vec > 16 || (sp != SPACE_GENERIC && sp != SPACE_GLOBAL))
		return PTX_INVALID_PTX;
	ptx_want(P, s, o + 2, o + 3);
	p = ptx_address(P, s, o, sp);
	for (unsigned int k = 0; k < 2; k++) {
		if (!v[k] || v[k]->kind == O_SINK)
			continue;
		if (v[k]->kind != O_VEC || v[k]->nvec != vec)
			ptx_fail(P, PTX_INVALID_PTX, "%s: %u registers expected", s->text, vec);
		for (unsigned int i = 0; i < vec; i++)
			if (k)
				ref[k][i] = ptx_src_opnd(P, s, &v[k]->vec[i], t);
			else if (v[k]->vec[i].kind != O_SINK)
				ref[k][i] = ptx_dst_opnd(P, &v[k]->vec[i], t);
	}
	if (v[1]->kind != O_VEC)
		return PTX_INVALID_PTX;
	x = P->m->nxops;
	for (unsigned int k = 0; k < 2 * vec; k++)
		ptx_xop(P, ref[k / vec][k % vec]);
	in = ptx_emit(P, s, ptx_h_atom_vec);
	ptx_set_address(in, &p, sp);
	in->x = x;
	in->nx = (uint8_t)vec;
	in->type = (uint8_t)t;
	in->sub = (uint8_t)op;
	return PTX_OK;
}

static enum ptx_status atomic128(struct ptx_parser *P, struct ptx_stmt *s, enum ptx_space sp,
				 bool red, int op)
{
	uint32_t d = 0, b, c = 0;
	bool cas = op == ATOM_CAS;
	struct ptx_text_address p;
	struct ptx_insn *in;

	if (red || (!cas && op != ATOM_EXCH))
		return PTX_INVALID_PTX;
	ptx_want(P, s, cas ? 4 : 3, cas ? 5 : 4);
	if (s->op_[0].kind != O_SINK)
		d = ptx_dst(P, s, 0, T_B128);
	p = ptx_address(P, s, 1, sp);
	b = ptx_src(P, s, 2, T_B128);
	if (cas)
		c = ptx_src(P, s, 3, T_B128);
	in = ptx_emit(P, s, ptx_h_atom128);
	ptx_set_address(in, &p, sp);
	in->d = d;
	in->b = b;
	in->c = c;
	in->sub = (uint8_t)op;
	return PTX_OK;
}

static enum ptx_status atomic(struct ptx_parser *P, struct ptx_stmt *s, bool red)
{
	static const char *const ops[] = {"add", "min", "max", "inc",  "dec",
					  "and", "or",	"xor", "exch", "cas"};
	enum ptx_type t = s->type[0];
	enum ptx_space sp = SPACE_GENERIC;
	uint32_t d = 0, b, c = 0;
	unsigned int o = red ? 0 : 1, vec = 1;
	struct ptx_insn *in;
	struct ptx_text_address p;
	int op = -1;

	for (unsigned int i = 0; i < s->nmod; i++) {
		const char *m = s->mod[i];
		bool found = ptx_is_space(m, &sp) || ptx_is_hint(m) || ptx_type_from(m, strlen(m));

		if (m[0] == 'v' && (m[1] == '2' || m[1] == '4' || m[1] == '8') && !m[2]) {
			vec = (unsigned int)(m[1] - '0');
			found = true;
		}

		for (int k = 0; k < 10; k++)
			if (!strcmp(m, ops[k])) {
				op = k;
				found = true;
			}
		if (!found)
			return PTX_UNSUPPORTED;
	}
	if (s->ntype != 1 || op < 0)
		return PTX_INVALID_PTX;
	if (t == T_B128)
		return atomic128(P, s, sp, red, op);
	if (vec > 1)
		return atomic_vector(P, s, sp, red, op, vec);
	if (!atom_allowed((enum ptx_atom)op, t) ||
	    (sp != SPACE_GENERIC && sp != SPACE_GLOBAL && sp != SPACE_SHARED))
		return PTX_INVALID_PTX;
	if (red && (op == ATOM_EXCH || op == ATOM_CAS))
		return PTX_INVALID_PTX;
	ptx_want(P, s, o + (op == ATOM_CAS ? 3 : 2), o + (op == ATOM_CAS ? 4 : 3));
	if (!red && s->op_[0].kind != O_SINK)
		d = ptx_dst(P, s, 0, t);
	p = ptx_address(P, s, o, sp);
	b = ptx_src(P, s, o + 1, t);
	if (op == ATOM_CAS)
		c = ptx_src(P, s, o + 2, t);
	in = ptx_emit(P, s, ptx_h_atom);
	in->d = d;
	in->a = p.ref;
	in->imm = p.imm;
	in->b = b;
	in->c = c;
	in->flags = (p.a32 ? IF_A32 : 0) | ptx_order_flags(s);
	in->space = (uint8_t)sp;
	in->type = (uint8_t)t;
	in->sub = (uint8_t)op;
	return PTX_OK;
}

static enum ptx_status b_atom(struct ptx_parser *P, struct ptx_stmt *s)
{
	return atomic(P, s, false);
}

static enum ptx_status b_red(struct ptx_parser *P, struct ptx_stmt *s)
{
	return atomic(P, s, true);
}

const struct ptx_build_entry ptx_build_atom[] = {
	{"atom", b_atom},
	{"red", b_red},
	{NULL, NULL},
};
