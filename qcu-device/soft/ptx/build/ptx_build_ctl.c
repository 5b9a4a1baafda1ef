// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Builders for control flow, barriers, and instructions that the lanes of a warp do together.
 */
#include "qcu-device/soft/ptx/build/ptx_build.h"

static enum ptx_status b_bra(struct ptx_parser *P, struct ptx_stmt *s)
{
	struct ptx_opnd *o = &s->op_[0];

	ptx_want(P, s, 1, 1);
	if (o->kind != O_SYM || o->sym->kind != SYM_LABEL)
		ptx_fail(P, PTX_INVALID_PTX, "%s: label expected", s->text);
	ptx_label_ref(P, o->sym->name, o->sym->len, P->m->ncode, false);
	ptx_emit(P, s, NULL)->ctl = CTL_BRA;
	return PTX_OK;
}

static enum ptx_status b_brx(struct ptx_parser *P, struct ptx_stmt *s)
{
	struct ptx_insn *in;
	struct ptx_sym *y;
	uint32_t a, x;

	if (!ptx_has(s, "idx"))
		return PTX_UNSUPPORTED;
	ptx_want(P, s, 2, 2);
	if (s->op_[1].kind != O_SYM || s->op_[1].sym->kind != SYM_TARGETS)
		ptx_fail(P, PTX_INVALID_PTX, "%s: list of targets expected", s->text);
	y = s->op_[1].sym;
	a = ptx_src(P, s, 0, T_U32);
	x = P->m->nxops;
	for (unsigned int i = 0; i < y->nlist; i++)
		ptx_label_ref(P, y->list[i], strlen(y->list[i]), ptx_xop(P, REF_AREA), true);
	in = ptx_emit(P, s, NULL);
	in->ctl = CTL_BRX;
	in->a = a;
	in->x = x;
	in->imm = y->nlist;
	return PTX_OK;
}

static enum ptx_status b_ret(struct ptx_parser *P, struct ptx_stmt *s)
{
	ptx_want(P, s, 0, 0);
	ptx_emit(P, s, NULL)->ctl = P->fn->entry ? CTL_EXIT : CTL_RET;
	return PTX_OK;
}

static enum ptx_status b_exit(struct ptx_parser *P, struct ptx_stmt *s)
{
	ptx_want(P, s, 0, 0);
	ptx_emit(P, s, NULL)->ctl = CTL_EXIT;
	return PTX_OK;
}

static enum ptx_status b_trap(struct ptx_parser *P, struct ptx_stmt *s)
{
	ptx_want(P, s, 0, 0);
	ptx_emit(P, s, NULL)->ctl = CTL_TRAP;
	return PTX_OK;
}

/* With a guard, the lanes that it leaves out yield together with the others. */
static enum ptx_status b_nanosleep(struct ptx_parser *P, struct ptx_stmt *s)
{
	uint32_t a;

	ptx_want(P, s, 1, 1);
	a = ptx_src(P, s, 0, T_U32);
	ptx_emit(P, s, ptx_h_yield)->ctl = CTL_YIELD;
	P->m->code[P->m->ncode - 1].a = a;
	return PTX_OK;
}

static enum ptx_status b_nop(struct ptx_parser *P, struct ptx_stmt *s)
{
	ptx_emit(P, s, ptx_h_nop);
	return PTX_OK;
}

static enum ptx_status warp_sync(struct ptx_parser *P, struct ptx_stmt *s)
{
	struct ptx_insn *in;
	uint32_t e;

	ptx_want(P, s, 1, 1);
	e = ptx_src(P, s, 0, T_B32);
	in = ptx_emit(P, s, NULL);
	in->ctl = CTL_WARP;
	in->sub = LANES_SYNC;
	in->e = e;
	return PTX_OK;
}

static enum ptx_status cluster_barrier(struct ptx_parser *P, struct ptx_stmt *s)
{
	bool arrive = ptx_has(s, "arrive");
	struct ptx_insn *in;

	if (arrive == ptx_has(s, "wait"))
		return PTX_INVALID_PTX;
	ptx_want(P, s, 0, 0);
	in = ptx_emit(P, s, NULL);
	in->ctl = CTL_BAR;
	in->sub = arrive ? BAR_CLUSTER_ARRIVE : BAR_CLUSTER_WAIT;
	in->a = SP_REF(SP_ZERO);
	return PTX_OK;
}

/*
 * bar.sync a{, b}; bar.arrive a, b; bar.red.op.type d, a{, b}, {!}p. "barrier" is another name for
 * "bar".
 */
static enum ptx_status b_bar(struct ptx_parser *P, struct ptx_stmt *s)
{
	enum ptx_bar_op op = BAR_SYNC;
	uint32_t d = 0, a, b = 0, c = 0;
	unsigned int at = 0, last;
	enum ptx_type t = T_NONE;
	struct ptx_insn *in;
	bool neg = false;

	if (ptx_has(s, "warp"))
		return warp_sync(P, s);
	if (ptx_has(s, "cluster"))
		return cluster_barrier(P, s);
	last = s->nop;
	if (ptx_has(s, "red")) {
		if (ptx_has(s, "popc"))
			op = BAR_POPC;
		else if (ptx_has(s, "and"))
			op = BAR_AND;
		else if (ptx_has(s, "or"))
			op = BAR_OR;
		else
			return PTX_INVALID_PTX;
		t = op == BAR_POPC ? T_U32 : T_PRED;
		ptx_want(P, s, 3, 4);
		d = ptx_dst(P, s, 0, t);
		c = ptx_src_pred(P, s, s->nop - 1, &neg);
		at = 1;
		last = s->nop - 1;
	} else if (ptx_has(s, "arrive")) {
		op = BAR_ARRIVE;
		ptx_want(P, s, 2, 2);
	} else if (ptx_has(s, "sync")) {
		ptx_want(P, s, 1, 2);
	} else {
		return PTX_INVALID_PTX;
	}
	a = ptx_src(P, s, at, T_U32);
	if (at + 1 < last)
		b = ptx_src(P, s, at + 1, T_U32);
	in = ptx_emit(P, s, NULL);
	in->ctl = CTL_BAR;
	in->sub = (uint8_t)op;
	in->d = d;
	in->a = a;
	in->b = b;
	in->c = c;
	in->type = (uint8_t)t;
	in->flags = neg ? IF_NEGC : 0;
	return PTX_OK;
}

static enum ptx_status b_shfl(struct ptx_parser *P, struct ptx_stmt *s)
{
	static const char *const modes[] = {"up", "down", "bfly", "idx"};
	bool sync = ptx_has(s, "sync"); /* without .sync: PTX for targets before sm_70 */
	uint32_t d, d2, a, b, c, e = 0;
	struct ptx_insn *in;
	uint8_t mode;

	for (mode = 0; mode < 4 && !ptx_has(s, modes[mode]); mode++)
		;
	if (mode == 4 || s->ntype != 1 || ptx_type_size(s->type[0]) != 4)
		return PTX_INVALID_PTX;
	ptx_want(P, s, sync ? 5 : 4, sync ? 5 : 4);
	d = ptx_dst(P, s, 0, T_B32);
	d2 = s->op_[0].pair << 2;
	a = ptx_src(P, s, 1, T_B32);
	b = ptx_src(P, s, 2, T_B32);
	c = ptx_src(P, s, 3, T_B32);
	if (sync)
		e = ptx_src(P, s, 4, T_B32);
	in = ptx_emit(P, s, NULL);
	in->ctl = CTL_WARP;
	in->sub = LANES_SHFL_UP + mode;
	in->d = d;
	in->d2 = d2;
	in->a = a;
	in->b = b;
	in->c = c;
	in->e = e;
	in->type = T_B32;
	return PTX_OK;
}

static enum ptx_status b_vote(struct ptx_parser *P, struct ptx_stmt *s)
{
	static const char *const modes[] = {"all", "any", "uni", "ballot"};
	bool sync = ptx_has(s, "sync");
	uint32_t d, c, e = 0;
	struct ptx_insn *in;
	enum ptx_type t;
	uint8_t mode;
	bool neg;

	for (mode = 0; mode < 4 && !ptx_has(s, modes[mode]); mode++)
		;
	if (mode == 4)
		return PTX_INVALID_PTX;
	t = mode == 3 ? T_B32 : T_PRED;
	ptx_want(P, s, sync ? 3 : 2, sync ? 3 : 2);
	d = ptx_dst(P, s, 0, t);
	c = ptx_src_pred(P, s, 1, &neg);
	if (sync)
		e = ptx_src(P, s, 2, T_B32);
	in = ptx_emit(P, s, NULL);
	in->ctl = CTL_WARP;
	in->sub = LANES_VOTE_ALL + mode;
	*(mode == 3 ? &in->d : &in->d2) = d;
	in->c = c;
	in->e = e;
	in->type = T_PRED;
	in->flags = neg ? IF_NEGC : 0;
	return PTX_OK;
}

static enum ptx_status b_match(struct ptx_parser *P, struct ptx_stmt *s)
{
	bool all = ptx_has(s, "all");
	uint32_t d, d2 = 0, a, e;
	enum ptx_type t = s->type[0];
	struct ptx_insn *in;

	if (!ptx_has(s, "sync") || (!all && !ptx_has(s, "any")) || s->ntype != 1 ||
	    ptx_type_size(t) < 4 || ptx_type_size(t) > 8)
		return PTX_INVALID_PTX;
	ptx_want(P, s, 3, 3);
	d = ptx_dst(P, s, 0, T_B32);
	if (all)
		d2 = s->op_[0].pair << 2;
	a = ptx_src(P, s, 1, t);
	e = ptx_src(P, s, 2, T_B32);
	in = ptx_emit(P, s, NULL);
	in->ctl = CTL_WARP;
	in->sub = all ? LANES_MATCH_ALL : LANES_MATCH_ANY;
	in->d = d;
	in->d2 = d2;
	in->a = a;
	in->e = e;
	in->type = ptx_type_size(t) == 8 ? T_B64 : T_B32;
	return PTX_OK;
}

static enum ptx_status b_redux(struct ptx_parser *P, struct ptx_stmt *s)
{
	static const char *const ops[] = {"add", "min", "max", "and", "or", "xor"};
	enum ptx_type t = s->type[0];
	struct ptx_insn *in;
	uint32_t d, a, e;
	uint8_t op;

	for (op = 0; op < 6 && !ptx_has(s, ops[op]); op++)
		;
	if (op == 6 || !ptx_has(s, "sync") || s->ntype != 1)
		return PTX_INVALID_PTX;
	if (t != T_B32 && t != T_U32 && t != T_S32 && (t != T_F32 || op < 1 || op > 2))
		return PTX_INVALID_PTX;
	ptx_want(P, s, 3, 3);
	d = ptx_dst(P, s, 0, t);
	a = ptx_src(P, s, 1, t);
	e = ptx_src(P, s, 2, T_B32);
	in = ptx_emit(P, s, NULL);
	in->ctl = CTL_WARP;
	in->sub = LANES_REDUX_ADD + op;
	in->d = d;
	in->a = a;
	in->e = e;
	in->type = T_B32;
	in->type2 = (uint8_t)t;
	in->flags = (ptx_has(s, "NaN") ? IF_NAN : 0) | (ptx_has(s, "abs") ? IF_RELU : 0);
	return PTX_OK;
}

static enum ptx_status b_elect(struct ptx_parser *P, struct ptx_stmt *s)
{
	uint32_t d = 0, e;
	struct ptx_insn *in;

	ptx_want(P, s, 2, 2);
	if (s->op_[0].kind != O_SINK)
		d = ptx_dst(P, s, 0, T_B32);
	e = ptx_src(P, s, 1, T_B32);
	in = ptx_emit(P, s, NULL);
	in->ctl = CTL_WARP;
	in->sub = LANES_ELECT;
	in->d = d;
	in->d2 = s->op_[0].pair << 2;
	in->e = e;
	in->type = T_NONE;
	return PTX_OK;
}

static enum ptx_status b_activemask(struct ptx_parser *P, struct ptx_stmt *s)
{
	uint32_t d;

	ptx_want(P, s, 1, 1);
	d = ptx_dst(P, s, 0, T_B32);
	ptx_emit(P, s, ptx_h_activemask)->d = d;
	return PTX_OK;
}

const struct ptx_build_entry ptx_build_ctl[] = {
	{"bra", b_bra},	    {"brx", b_brx},
	{"ret", b_ret},	    {"exit", b_exit},
	{"trap", b_trap},   {"brkpt", b_trap},
	{"bar", b_bar},	    {"barrier", b_bar},
	{"shfl", b_shfl},   {"vote", b_vote},
	{"match", b_match}, {"redux", b_redux},
	{"elect", b_elect}, {"nanosleep", b_nanosleep},
	{"pmevent", b_nop}, {"activemask", b_activemask},
	{NULL, NULL},
};
