// SPDX-License-Identifier: GPL-2.0-or-later
/* Which registers an instruction reads and writes. */
#include "qcu-device/soft/ptx/build/ptx_build.h"
#include "qcu-device/soft/ptx/build/ptx_regalloc.h"
#include "qcu-device/soft/ptx/memory/ptx_mma.h"
#include "qcu-device/soft/ptx/memory/ptx_tex.h"

static void visit_ref(struct ptx_regalloc *s, uint32_t *ref, bool def, uint32_t at, ptx_visit_fn fn,
		      void *arg)
{
	if ((*ref & REF_AREA) == REF_REG && *ref >> 2)
		fn(s, ref, def, at, arg);
}

static void visit_args(struct ptx_regalloc *s, struct ptx_arg *a, unsigned int n, bool def,
		       uint32_t at, ptx_visit_fn fn, void *arg)
{
	for (unsigned int i = 0; i < n; i++)
		if (!a[i].in_area)
			visit_ref(s, &a[i].ref, def, at, fn, arg);
}

/* How many of the registers from in->x on are written, and how many after these are read. */
static void count_xops(const struct ptx_insn *in, unsigned int *defs, unsigned int *uses)
{
	bool both = in->fn == ptx_h_atom_vec;

	if (ptx_is_image(in)) {
		*defs = in->type2;
		*uses = in->nx - in->type2;
		return;
	}
	if (in->fn == ptx_h_mma) {
		*defs = in->sub;
		*uses = in->nx - in->sub;
		return;
	}
	*defs = both || in->fn == ptx_h_ld_vec || in->fn == ptx_h_unpack ||
				in->fn == ptx_h_ldmatrix || in->fn == ptx_h_wmma_load
			? in->nx
			: 0;
	*uses = both || in->fn == ptx_h_st_vec || in->fn == ptx_h_pack ||
				in->fn == ptx_h_stmatrix || in->fn == ptx_h_wmma_store
			? in->nx
			: 0;
}

void ptx_visit_regs(struct ptx_regalloc *s, uint32_t at, ptx_visit_fn fn, void *arg)
{
	struct ptx_insn *in = &s->m->code[s->f->pc + at];
	unsigned int defs, uses;
	bool def = !in->pred; /* under a guard, the old value may remain */
	struct ptx_call *c = NULL;

	count_xops(in, &defs, &uses);
	if (in->ctl == CTL_CALL) {
		c = &s->m->calls[in->x];
		visit_args(s, c->args, c->nargs, false, at, fn, arg);
	}
	/* Visit copies: the function's own list must be patched once, not at every ret. */
	for (unsigned int i = 0; i < s->f->nrets && in->ctl == CTL_RET; i++) {
		struct ptx_arg copy = s->f->rets[i];

		visit_args(s, &copy, 1, false, at, fn, arg);
	}
	visit_ref(s, &in->a, false, at, fn, arg);
	visit_ref(s, &in->b, false, at, fn, arg);
	visit_ref(s, &in->c, false, at, fn, arg);
	visit_ref(s, &in->e, false, at, fn, arg);
	for (unsigned int i = 0; i < uses; i++)
		visit_ref(s, &s->m->xops[in->x + defs + i], false, at, fn, arg);
	if (in->pred) {
		uint32_t p = in->pred & ~1u, neg = in->pred & 1;

		visit_ref(s, &p, false, at, fn, arg);
		in->pred = p | neg;
	}
	visit_ref(s, &in->d, def, at, fn, arg);
	visit_ref(s, &in->d2, def, at, fn, arg);
	for (unsigned int i = 0; i < defs; i++)
		visit_ref(s, &s->m->xops[in->x + i], def, at, fn, arg);
	if (c)
		visit_args(s, c->rets, c->nrets, def, at, fn, arg);
}
