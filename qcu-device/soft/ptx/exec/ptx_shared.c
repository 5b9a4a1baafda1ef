// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Places of the shared variables that are not declared in the body of one kernel: those of
 * functions, and those of the module. With -rdc=true nvcc declares all of them for the module.
 *
 * A kernel needs memory only for the variables that it reaches: those that the kernel and the
 * functions below it name. The code of a function is the same for all kernels, so a variable has
 * one offset, counted from the end of the kernel's own variables. Two variables may have the same
 * offset if no kernel reaches both. The variables that most kernels reach come first, so that there
 * are hardly any gaps.
 */
#include <stdlib.h>
#include <string.h>

#include "qcu-device/soft/ptx/exec/ptx_exec.h"

/* A kernel reaches a variable. */
struct pair {
	struct ptx_var *var;
	struct ptx_kernel *kernel;
	uint32_t order; /* of the variable in the text */
};

struct reach {
	struct pair *pair;
	uint32_t count, cap;
	struct ptx_func **todo;
	uint32_t *seen; /* by number of variable: the last kernel that was seen to reach it */
};

#define MAX_PAIRS (8u << 20)

static bool add_pair(struct reach *r, struct ptx_kernel *k, unsigned int stamp, struct ptx_var *v)
{
	uint32_t order = (uint32_t)v->off; /* until it gets its offset */

	if (r->seen[order] == stamp)
		return true;
	r->seen[order] = stamp;
	if (r->count == MAX_PAIRS ||
	    !ptx_grow((void **)&r->pair, &r->cap, r->count + 1, sizeof(*r->pair)))
		return false;
	r->pair[r->count++] = (struct pair){v, k, order};
	v->kernels++;
	return true;
}

static void visit(struct reach *r, uint32_t *n, struct ptx_func *f, unsigned int stamp)
{
	f = ptx_func_real(f);
	if (f->stamp == stamp)
		return;
	f->stamp = stamp;
	r->todo[(*n)++] = f;
}

/* A call through a pointer may reach every function. */
static bool collect_reached_vars(struct ptx_module *m, struct reach *r, struct ptx_kernel *k,
				 unsigned int stamp)
{
	bool indirect = false;
	uint32_t n = 0;

	visit(r, &n, k->fn, stamp);
	while (n) {
		struct ptx_func *f = r->todo[--n];

		for (struct ptx_shared *s = f->shared; s; s = s->next)
			if (!add_pair(r, k, stamp, s->var))
				return false;
		for (unsigned int i = 0; i < f->ncallees; i++)
			visit(r, &n, f->callees[i], stamp);
		if (!f->indirect || indirect)
			continue;
		indirect = true;
		for (unsigned int i = 0; i < m->nfuncs; i++)
			if (!m->funcs[i]->entry)
				visit(r, &n, m->funcs[i], stamp);
	}
	return true;
}

static int compare_pairs(const void *va, const void *vb)
{
	const struct pair *a = va, *b = vb;

	if (a->var->kernels != b->var->kernels)
		return a->var->kernels < b->var->kernels ? 1 : -1;
	return (a->order > b->order) - (a->order < b->order);
}

/* The pairs of one variable are side by side. */
static void place_shared_vars(struct reach *r)
{
	uint32_t n;

	for (uint32_t i = 0; i < r->count; i += n) {
		struct ptx_var *v = r->pair[i].var;
		uint64_t off = 0, end;

		for (n = 0; n < v->kernels; n++)
			if (r->pair[i + n].kernel->shared_top > off)
				off = r->pair[i + n].kernel->shared_top;
		off = (off + v->align - 1) & ~(uint64_t)(v->align - 1);
		end = off + v->size;
		/* No launch has so much shared memory. */
		if (end > 1u << 30)
			end = 1u << 30;
		v->off = end - v->size;
		for (uint32_t k = 0; k < n; k++)
			r->pair[i + k].kernel->shared_top = (uint32_t)end;
	}
}

static void fix(struct ptx_module *m)
{
	for (const struct ptx_shared_fix *f = m->shared_fixes; f; f = f->next) {
		uint64_t v = f->var->off + f->add;

		if (!f->width)
			m->code[f->where].imm += (int64_t)v;
		for (unsigned int i = 0; f->width && i < PTX_LANES; i++)
			memcpy(m->consts + f->where + i * f->width, &v, f->width);
	}
}

enum ptx_status ptx_shared_place(struct ptx_module *m, struct ptx_diag *diag)
{
	struct reach r = {.todo = malloc((m->nfuncs + 1) * sizeof(struct ptx_func *))};
	uint32_t vars = 0;
	bool ok;

	for (struct ptx_var *v = m->vars; v; v = v->next)
		if (v->linked)
			v->off = vars++;
	r.seen = calloc(vars + 1, sizeof(*r.seen));
	ok = r.todo && r.seen;
	for (unsigned int i = 0; ok && vars && i < m->nkernels; i++)
		ok = collect_reached_vars(m, &r, &m->kernels[i], i + 1);
	for (struct ptx_var *v = m->vars; v; v = v->next)
		if (v->linked && !v->kernels)
			v->off = 0;
	if (ok && r.count) {
		qsort(r.pair, r.count, sizeof(*r.pair), compare_pairs);
		place_shared_vars(&r);
	}
	if (ok)
		fix(m);
	else
		ptx_diag_set(diag, 0, "no host memory for the places of shared variables");
	free(r.pair);
	free(r.todo);
	free(r.seen);
	return ok ? PTX_OK : PTX_NO_MEMORY;
}
