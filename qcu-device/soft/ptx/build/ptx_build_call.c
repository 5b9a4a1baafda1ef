// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Calls. `call (ret), name, (args), prototype;` has its own syntax. Arguments and results are bytes
 * of the caller's parameter area or, in hand-written PTX, registers and constants.
 */
#include "qcu-device/soft/ptx/build/ptx_build.h"

#define MAX_ARGS 1024u

static struct ptx_arg *parse_list(struct ptx_parser *P, struct ptx_stmt *s, unsigned int *n,
				  bool ret)
{
	struct ptx_arg *l = ptx_palloc(P, 16 * sizeof(*l)), *bigger;
	unsigned int cap = 16;

	*n = 0;
	ptx_expect(P, '(');
	if (ptx_accept(P, ')'))
		return l;
	do {
		struct ptx_opnd o;
		struct ptx_arg *a;

		if (*n == MAX_ARGS)
			ptx_fail(P, PTX_INVALID_PTX, "too many arguments");
		if (*n == cap) {
			bigger = ptx_palloc(P, 2 * cap * sizeof(*l));
			memcpy(bigger, l, cap * sizeof(*l));
			l = bigger;
			cap *= 2;
		}
		a = &l[(*n)++];
		memset(a, 0, sizeof(*a));
		ptx_parse_operand(P, &o);
		if (o.kind == O_SYM && o.sym->kind == SYM_PARAM && !o.imm) {
			a->in_area = true;
			a->off = o.sym->off;
			a->size = (uint32_t)o.sym->size;
		} else if (o.kind == O_REG && o.type != T_PRED && o.type != T_B128 && !o.has_pair) {
			a->ref = o.reg << 2;
			a->size = P->width[o.reg];
		} else if (o.kind == O_IMM && !ret) {
			a->ref = ptx_const(P, 8, o.imm);
			a->size = 8;
		} else {
			ptx_fail(P, PTX_INVALID_PTX, "%s: bad argument", s->text);
		}
	} while (ptx_accept(P, ','));
	ptx_expect(P, ')');
	return l;
}

static struct ptx_arg *keep(struct ptx_parser *P, const struct ptx_arg *l, unsigned int n)
{
	struct ptx_arg *k = ptx_malloc_arena(P, (n + 1) * sizeof(*k));

	if (n)
		memcpy(k, l, n * sizeof(*k));
	return k;
}

static void remember_callee(struct ptx_parser *P, struct ptx_func *callee)
{
	struct ptx_func *f = P->fn, **l;

	for (unsigned int i = 0; i < f->ncallees; i++)
		if (f->callees[i] == callee)
			return;
	if (f->ncallees == f->callee_cap) {
		unsigned int cap = f->callee_cap * 2 + 8;

		l = ptx_malloc_arena(P, cap * sizeof(*l));
		if (f->ncallees)
			memcpy(l, f->callees, f->ncallees * sizeof(*l));
		f->callees = l;
		f->callee_cap = cap;
	}
	f->callees[f->ncallees++] = callee;
}

void ptx_parse_call(struct ptx_parser *P, struct ptx_stmt *s)
{
	struct ptx_arg *args = NULL, *rets = NULL;
	struct ptx_module *m = P->m;
	struct ptx_call c = {0};
	struct ptx_opnd to;
	struct ptx_insn *in;
	uint32_t idx;

	if (ptx_is(P, '(')) {
		rets = parse_list(P, s, &c.nrets, true);
		ptx_expect(P, ',');
	}
	ptx_parse_operand(P, &to);
	if (to.kind == O_SYM && to.sym->kind == SYM_FUNC && !to.imm) {
		c.callee = to.sym->fn;
		if (c.callee->entry)
			ptx_fail(P, PTX_INVALID_PTX, "call of kernel '%s'", c.callee->name);
		remember_callee(P, c.callee);
	} else if (to.kind == O_REG && P->width[to.reg] == 8) {
		c.ref = to.reg << 2;
		P->fn->indirect = true;
	} else {
		ptx_fail(P, PTX_INVALID_PTX, "%s: function expected", s->text);
	}
	if (ptx_accept(P, ',')) {
		if (ptx_is(P, '(')) {
			args = parse_list(P, s, &c.nargs, false);
			if (ptx_accept(P, ','))
				ptx_parse_operand(P, &to); /* prototype or list of targets */
		} else {
			ptx_parse_operand(P, &to);
		}
	}
	if (!ptx_is(P, ';'))
		ptx_expect(P, ';');
	c.args = keep(P, args, c.nargs);
	c.rets = keep(P, rets, c.nrets);
	if (!ptx_grow((void **)&m->calls, &m->calls_cap, m->ncalls + 1, sizeof(*m->calls)))
		ptx_fail_memory(P);
	idx = m->ncalls++;
	m->calls[idx] = c;
	in = ptx_emit(P, s, NULL);
	in->ctl = CTL_CALL;
	in->x = idx;
	in->a = c.ref;
	ptx_next(P);
}
