// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Builders for instructions that came with later GPUs: mbarrier, clusters (of one block), moves of
 * matrices, alloca, and hints that do nothing here.
 */
#include "qcu-device/soft/ptx/build/ptx_build.h"

/* ---- mbarrier ---- */

static bool mbar_space(const struct ptx_stmt *s, enum ptx_space *sp)
{
	static const char *const words[] = {"init",	 "inval",   "expect_tx",   "complete_tx",
					    "arrive",	 "parity",  "arrive_drop", "noComplete",
					    "test_wait", "b64",	    "try_wait",	   "noinc",
					    "async",	 "mbarrier"};

	*sp = SPACE_GENERIC;
	for (unsigned int i = 0; i < s->nmod; i++) {
		bool known = ptx_is_space(s->mod[i], sp) || ptx_is_hint(s->mod[i]);

		for (size_t k = 0; k < sizeof(words) / sizeof(words[0]) && !known; k++)
			known = !strcmp(s->mod[i], words[k]);
		if (!known)
			return false;
	}
	return *sp == SPACE_GENERIC || *sp == SPACE_SHARED;
}

static struct ptx_insn *mbar(struct ptx_parser *P, struct ptx_stmt *s, enum ptx_mbar_op op,
			     const struct ptx_text_address *at, enum ptx_space sp, uint32_t arg)
{
	struct ptx_insn *in = ptx_emit(P, s, ptx_h_mbarrier);

	ptx_set_address(in, at, sp);
	in->b = arg;
	in->sub = (uint8_t)op;
	in->type = T_B32;
	return in;
}

/* mbarrier.arrive{_drop}{.noComplete}{.expect_tx} {state,} [addr]{, count} */
static enum ptx_status mbar_arrive(struct ptx_parser *P, struct ptx_stmt *s, enum ptx_space sp,
				   uint16_t flags)
{
	bool tx = ptx_has(s, "expect_tx"), result = s->nop && s->op_[0].kind != O_MEM;
	unsigned int o = result ? 1 : 0;
	uint32_t d = 0, arg;
	struct ptx_text_address at;
	struct ptx_insn *in;

	if (ptx_has(s, "noComplete"))
		flags |= MBAR_NO_COMPLETE;
	ptx_want(P, s, o + 1 + tx, o + 2);
	if (result && s->op_[0].kind != O_SINK)
		d = ptx_dst(P, s, 0, T_B64);
	at = ptx_address(P, s, o, sp);
	arg = s->nop > o + 1 ? ptx_src(P, s, o + 1, T_U32) : ptx_const(P, 4, 1);
	in = mbar(P, s, tx ? MBAR_EXPECT_TX : MBAR_ARRIVE_ON, &at, sp, arg);
	in->d = d;
	in->flags |= flags | (tx ? MBAR_ARRIVE : 0);
	return PTX_OK;
}

/* mbarrier.test_wait{.parity} p, [addr], state. try_wait may have a time limit; it is ignored. */
static enum ptx_status mbar_test(struct ptx_parser *P, struct ptx_stmt *s, enum ptx_space sp)
{
	bool parity = ptx_has(s, "parity");
	struct ptx_text_address at;
	struct ptx_insn *in;
	uint32_t d, arg;

	ptx_want(P, s, 3, ptx_has(s, "try_wait") ? 4 : 3);
	d = ptx_dst(P, s, 0, T_PRED);
	at = ptx_address(P, s, 1, sp);
	arg = ptx_src(P, s, 2, parity ? T_U32 : T_B64);
	if (s->nop > 3)
		ptx_src(P, s, 3, T_U32);
	in = mbar(P, s, MBAR_TEST, &at, sp, arg);
	in->ctl = CTL_YIELD;
	in->d2 = d;
	in->type = parity ? T_B32 : T_B64;
	in->flags |= parity ? MBAR_PARITY : 0;
	return PTX_OK;
}

static enum ptx_status b_mbarrier(struct ptx_parser *P, struct ptx_stmt *s)
{
	static const struct {
		const char *name;
		enum ptx_mbar_op op;
	} plain[] = {{"init", MBAR_INIT},
		     {"inval", MBAR_INVAL},
		     {"expect_tx", MBAR_EXPECT_TX},
		     {"complete_tx", MBAR_COMPLETE_TX}};
	const char *what = s->nmod ? s->mod[0] : "";
	struct ptx_text_address at;
	struct ptx_insn *in;
	enum ptx_space sp;
	uint32_t d, a;

	if (!strcmp(what, "pending_count")) {
		ptx_want(P, s, 2, 2);
		d = ptx_dst(P, s, 0, T_U32);
		a = ptx_src(P, s, 1, T_B64);
		in = ptx_emit(P, s, ptx_h_mbarrier_count);
		in->d = d;
		in->a = a;
		return PTX_OK;
	}
	if (!ptx_has(s, "b64") || !mbar_space(s, &sp))
		return PTX_INVALID_PTX;
	if (!strcmp(what, "arrive"))
		return mbar_arrive(P, s, sp, 0);
	if (!strcmp(what, "arrive_drop"))
		return mbar_arrive(P, s, sp, MBAR_DROP);
	if (!strcmp(what, "test_wait") || !strcmp(what, "try_wait"))
		return mbar_test(P, s, sp);
	for (size_t i = 0; i < 4; i++) {
		bool arg = plain[i].op != MBAR_INVAL;

		if (strcmp(what, plain[i].name))
			continue;
		ptx_want(P, s, arg + 1u, arg + 1u);
		at = ptx_address(P, s, 0, sp);
		a = arg ? ptx_src(P, s, 1, T_U32) : ptx_const(P, 4, 0);
		mbar(P, s, plain[i].op, &at, sp, a);
		return PTX_OK;
	}
	return PTX_INVALID_PTX;
}

/*
 * cp.async.mbarrier.arrive: the copies before it are already complete. With .noinc, the arrival is
 * one that mbarrier.init counted. Without .noinc, the pending count goes up by one and down again.
 */
enum ptx_status ptx_build_cp_mbarrier(struct ptx_parser *P, struct ptx_stmt *s)
{
	bool noinc = ptx_has(s, "noinc");
	struct ptx_text_address at;
	enum ptx_space sp;

	if (!ptx_has(s, "arrive") || !mbar_space(s, &sp))
		return PTX_INVALID_PTX;
	ptx_want(P, s, 1, 1);
	at = ptx_address(P, s, 0, sp);
	mbar(P, s, noinc ? MBAR_ARRIVE_ON : MBAR_TRACK, &at, sp, ptx_const(P, 4, 1));
	return PTX_OK;
}

/* The transaction of a copy that is complete. Operand i is the address of the mbarrier. */
void ptx_build_complete_tx(struct ptx_parser *P, struct ptx_stmt *s, unsigned int i, uint32_t bytes)
{
	struct ptx_text_address at = ptx_address(P, s, i, SPACE_SHARED);

	mbar(P, s, MBAR_COMPLETE_TX, &at, SPACE_SHARED, bytes);
}

/* ---- clusters ---- */

static enum ptx_status b_mapa(struct ptx_parser *P, struct ptx_stmt *s)
{
	enum ptx_type t = s->type[0];
	struct ptx_insn *in;
	uint32_t d, a, b;

	if (s->ntype != 1 || (t != T_U32 && t != T_U64))
		return PTX_INVALID_PTX;
	ptx_want(P, s, 3, 3);
	d = ptx_dst(P, s, 0, t);
	a = ptx_src(P, s, 1, t);
	b = ptx_src(P, s, 2, T_U32);
	in = ptx_emit(P, s, ptx_h_mapa);
	in->d = d;
	in->a = a;
	in->b = b;
	in->type = t == T_U64 ? T_B64 : T_B32;
	return PTX_OK;
}

static void move_const(struct ptx_parser *P, struct ptx_stmt *s, uint32_t d, enum ptx_kind k,
		       uint32_t a)
{
	struct ptx_insn *in = ptx_emit(P, s, P->m->ops->op[V_MOV][k]);

	in->d = d;
	in->a = a;
}

static enum ptx_status b_getctarank(struct ptx_parser *P, struct ptx_stmt *s)
{
	if (s->ntype != 1 || (s->type[0] != T_U32 && s->type[0] != T_U64))
		return PTX_INVALID_PTX;
	ptx_want(P, s, 2, 2);
	ptx_src(P, s, 1, s->type[0]);
	move_const(P, s, ptx_dst(P, s, 0, T_U32), K_U32, ptx_const(P, 4, 0));
	return PTX_OK;
}

/* ---- hints ---- */

/* A policy is a number that only loads and stores take as an operand. They ignore it. */
static enum ptx_status b_createpolicy(struct ptx_parser *P, struct ptx_stmt *s)
{
	if (!s->nmod || s->ntype != 1 || s->type[0] != T_B64)
		return PTX_INVALID_PTX;
	ptx_want(P, s, 1, 4);
	move_const(P, s, ptx_dst(P, s, 0, T_B64), K_U64, ptx_const(P, 8, 0));
	return PTX_OK;
}

static enum ptx_status b_cache(struct ptx_parser *P, struct ptx_stmt *s)
{
	enum ptx_space sp = SPACE_GENERIC;

	for (unsigned int i = 0; i < s->nmod; i++)
		if (!ptx_is_space(s->mod[i], &sp) && strncmp(s->mod[i], "L2", 2))
			return PTX_INVALID_PTX;
	if (sp != SPACE_GENERIC && sp != SPACE_GLOBAL)
		return PTX_INVALID_PTX;
	ptx_want(P, s, 2, 2);
	ptx_address(P, s, 0, sp);
	if (s->op_[1].kind != O_IMM || s->op_[1].imm != 128)
		return PTX_INVALID_PTX;
	ptx_emit(P, s, ptx_h_nop);
	return PTX_OK;
}

/* Launches of one stream run one after another, so a kernel's dependencies are complete. */
static enum ptx_status b_griddepcontrol(struct ptx_parser *P, struct ptx_stmt *s)
{
	if (s->nmod != 1 || (strcmp(s->mod[0], "wait") && strcmp(s->mod[0], "launch_dependents")))
		return PTX_INVALID_PTX;
	ptx_want(P, s, 0, 0);
	ptx_emit(P, s, ptx_h_nop);
	return PTX_OK;
}

static enum ptx_status b_setmaxnreg(struct ptx_parser *P, struct ptx_stmt *s)
{
	uint64_t n = s->op_[0].imm;

	ptx_want(P, s, 1, 1);
	if (ptx_has(s, "inc") == ptx_has(s, "dec") || s->op_[0].kind != O_IMM || n < 24 ||
	    n > 256 || n % 8)
		return PTX_INVALID_PTX;
	ptx_emit(P, s, ptx_h_nop);
	return PTX_OK;
}

/* ---- matrices ---- */

/* First waits for all lanes, because the next instruction reads registers of all of them. */
void ptx_gather_warp(struct ptx_parser *P, struct ptx_stmt *s)
{
	uint32_t e = ptx_const(P, 4, PTX_FULL);
	struct ptx_insn *in = ptx_emit(P, s, NULL);

	in->ctl = CTL_WARP;
	in->sub = LANES_SYNC;
	in->e = e;
}

static enum ptx_status matrix(struct ptx_parser *P, struct ptx_stmt *s, bool load)
{
	enum ptx_space sp = SPACE_GENERIC;
	unsigned int n = ptx_has(s, "x4") ? 4 : ptx_has(s, "x2") ? 2 : ptx_has(s, "x1") ? 1 : 0;
	struct ptx_opnd *v = &s->op_[load ? 0 : 1];
	struct ptx_text_address at;
	struct ptx_insn *in;
	uint32_t ref[4], x;

	if (!n || !ptx_has(s, "sync") || !ptx_has(s, "aligned"))
		return PTX_INVALID_PTX;
	if (!ptx_has(s, "m8n8") || s->ntype != 1 || s->type[0] != T_B16)
		return PTX_UNSUPPORTED; /* shapes and types of sm_100 */
	for (unsigned int i = 0; i < s->nmod; i++)
		ptx_is_space(s->mod[i], &sp);
	if (sp != SPACE_GENERIC && sp != SPACE_SHARED)
		return PTX_INVALID_PTX;
	ptx_want(P, s, 2, 2);
	at = ptx_address(P, s, load ? 1 : 0, sp);
	if ((v->kind == O_VEC ? v->nvec : 1) != n)
		return PTX_INVALID_PTX;
	if (v->kind == O_VEC)
		v = v->vec;
	for (unsigned int i = 0; i < n; i++)
		ref[i] = load ? ptx_dst_opnd(P, &v[i], T_B32) : ptx_src_opnd(P, s, &v[i], T_B32);
	ptx_gather_warp(P, s);
	x = P->m->nxops;
	for (unsigned int i = 0; i < n; i++)
		ptx_xop(P, ref[i]);
	in = ptx_emit(P, s, load ? ptx_h_ldmatrix : ptx_h_stmatrix);
	ptx_set_address(in, &at, sp);
	in->x = x;
	in->nx = (uint8_t)n;
	in->sub = ptx_has(s, "trans");
	return PTX_OK;
}

static enum ptx_status b_ldmatrix(struct ptx_parser *P, struct ptx_stmt *s)
{
	return matrix(P, s, true);
}

static enum ptx_status b_stmatrix(struct ptx_parser *P, struct ptx_stmt *s)
{
	return matrix(P, s, false);
}

static enum ptx_status b_movmatrix(struct ptx_parser *P, struct ptx_stmt *s)
{
	struct ptx_insn *in;
	uint32_t d, a;

	if (!ptx_has(s, "m8n8") || !ptx_has(s, "trans") || s->ntype != 1 || s->type[0] != T_B16)
		return PTX_INVALID_PTX;
	ptx_want(P, s, 2, 2);
	d = ptx_dst(P, s, 0, T_B32);
	a = ptx_src(P, s, 1, T_B32);
	ptx_gather_warp(P, s);
	in = ptx_emit(P, s, ptx_h_movmatrix);
	in->d = d;
	in->a = a;
	return PTX_OK;
}

/* ---- the stack ---- */

static enum ptx_status b_alloca(struct ptx_parser *P, struct ptx_stmt *s)
{
	uint64_t align = 8;
	struct ptx_insn *in;
	uint32_t d, a;

	if (s->ntype != 1 || s->type[0] != T_U64)
		return PTX_INVALID_PTX;
	ptx_want(P, s, 2, 3);
	d = ptx_dst(P, s, 0, T_U64);
	a = ptx_src(P, s, 1, T_U64);
	if (s->nop > 2) {
		align = s->op_[2].imm;
		if (s->op_[2].kind != O_IMM || !align || align & (align - 1) || align > 1u << 16)
			return PTX_INVALID_PTX;
	}
	P->fn->allocates = true;
	in = ptx_emit(P, s, ptx_h_alloca);
	in->d = d;
	in->a = a;
	in->imm = (int64_t)align;
	return PTX_OK;
}

static enum ptx_status b_stacksave(struct ptx_parser *P, struct ptx_stmt *s)
{
	uint32_t d;

	if (s->ntype != 1 || s->type[0] != T_U64)
		return PTX_INVALID_PTX;
	ptx_want(P, s, 1, 1);
	d = ptx_dst(P, s, 0, T_U64);
	P->fn->allocates = true;
	ptx_emit(P, s, ptx_h_stacksave)->d = d;
	return PTX_OK;
}

static enum ptx_status b_stackrestore(struct ptx_parser *P, struct ptx_stmt *s)
{
	uint32_t a;

	if (s->ntype != 1 || s->type[0] != T_U64)
		return PTX_INVALID_PTX;
	ptx_want(P, s, 1, 1);
	a = ptx_src(P, s, 0, T_U64);
	P->fn->allocates = true;
	ptx_emit(P, s, ptx_h_stackrestore)->a = a;
	return PTX_OK;
}

const struct ptx_build_entry ptx_build_sync[] = {
	{"mbarrier", b_mbarrier},
	{"mapa", b_mapa},
	{"getctarank", b_getctarank},
	{"createpolicy", b_createpolicy},
	{"applypriority", b_cache},
	{"discard", b_cache},
	{"griddepcontrol", b_griddepcontrol},
	{"setmaxnreg", b_setmaxnreg},
	{"ldmatrix", b_ldmatrix},
	{"stmatrix", b_stmatrix},
	{"movmatrix", b_movmatrix},
	{"alloca", b_alloca},
	{"stacksave", b_stacksave},
	{"stackrestore", b_stackrestore},
	{NULL, NULL},
};
