// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The last step of loading a module. It connects calls to their functions, and finds for each
 * kernel how much stack and shared memory the kernel and all functions below it need, and whether
 * one of these functions cannot run.
 */
#include <stdio.h>
#include <string.h>

#include "qcu-device/soft/ptx/exec/ptx_exec.h"

/* Stack per thread where recursion or calls through pointers leave no bound. */
#define STACK_UNBOUNDED (256u << 10)
#define CALL_COST	32u
#define MAX_WALK	512u

/* True for older functions that launch a kernel from a kernel; ptx_runtime.c has today's. */
static bool is_launch(const char *name)
{
	static const char *const start[] = {"__cudaCDP2LaunchDevice",
					    "__cudaCDP2GetParameterBuffer", "cudaLaunchDevice",
					    "cudaGetParameterBuffer"};

	for (size_t i = 0; i < sizeof(start) / sizeof(*start); i++)
		if (!strncmp(name, start[i], strlen(start[i])))
			return true;
	return false;
}

static void mark_unknown(struct ptx_func *f)
{
	if (f->bad)
		return;
	f->bad = PTX_UNSUPPORTED;
	f->bad_line = f->call_line;
	snprintf(f->bad_text, sizeof(f->bad_text), "%s '%.72s'",
		 is_launch(f->name) ? "launch from a kernel by" : "call of unknown function",
		 f->name);
}

static enum ptx_status link_calls(struct ptx_module *m, struct ptx_diag *diag)
{
	for (uint32_t i = 0; i < m->ncode; i++) {
		const struct ptx_insn *in = &m->code[i];
		struct ptx_call *c;

		if (in->ctl != CTL_CALL)
			continue;
		c = &m->calls[in->x];
		if (!c->callee)
			continue;
		c->callee = ptx_func_real(c->callee);
		if (c->callee->entry) {
			ptx_diag_set(diag, in->line, "call of kernel '%s'", c->callee->name);
			return PTX_INVALID_PTX;
		}
		if (c->callee->sys && !c->callee->defined)
			continue;
		if (c->callee->defined && !ptx_call_fits(c, c->callee)) {
			ptx_diag_set(diag, in->line, "call does not match function '%s'",
				     c->callee->name);
			return PTX_INVALID_PTX;
		}
	}
	return PTX_OK;
}

static void walk_call_graph(struct ptx_module *m, struct ptx_func *f, unsigned int depth)
{
	uint32_t below = 0;

	f->walked = 1;
	f->reach_bad = f->bad ? f : NULL;
	f->recursive |= f->allocates;
	f->recursive |= f->indirect;
	for (unsigned int i = 0; i < f->ncallees; i++) {
		struct ptx_func *c = ptx_func_real(f->callees[i]);

		if (c->walked == 1 || depth >= MAX_WALK) {
			f->recursive = true;
			continue;
		}
		if (!c->walked)
			walk_call_graph(m, c, depth + 1);
		below = c->stack_need > below ? c->stack_need : below;
		/*
		 * In a bounded module, a function must run with the registers of the smallest
		 * kernel that calls it, so its own number does not raise that of its caller.
		 */
		if (!m->bounded && c->regs > f->regs)
			f->regs = c->regs;
		f->recursive |= c->recursive;
		if (!f->reach_bad)
			f->reach_bad = c->reach_bad;
	}
	f->stack_need = ((f->local_bytes + 15) & ~15u) + CALL_COST + below;
	if (f->stack_need > STACK_UNBOUNDED * 8)
		f->recursive = true;
	f->walked = 2;
}

static uint32_t capped(uint32_t regs, uint32_t most)
{
	return most && most < regs ? most : regs;
}

static void fill_info(struct ptx_module *m, struct ptx_kernel *k)
{
	struct ptx_func *f = k->fn;
	uint32_t own = (f->shared_bytes + 15) & ~15u;

	k->shared_total = k->shared_top ? own + k->shared_top : f->shared_bytes;
	k->stack_bytes = (f->stack_need + 15) & ~15u;
	if (f->recursive && k->stack_bytes < STACK_UNBOUNDED)
		k->stack_bytes = STACK_UNBOUNDED;
	if (f->reach_bad) {
		k->bad = f->reach_bad->bad;
		k->bad_line = f->reach_bad->bad_line;
		snprintf(k->bad_text, sizeof(k->bad_text), "%s", f->reach_bad->bad_text);
	}
	k->info = (struct ptx_kernel_info){
		.name = f->name,
		.param_count = f->nparams,
		.params = f->kparams,
		.param_bytes = f->param_bytes,
		.shared_bytes = k->shared_total,
		.local_bytes = f->recursive ? f->local_bytes : f->stack_need - CALL_COST,
		.const_bytes = (uint32_t)(m->const_size > 65536 ? 65536 : m->const_size),
		.regs = capped(capped(f->regs, f->max_regs), m->env.max_regs),
		.min_blocks = f->min_blocks,
		.max_threads = f->max_threads ? f->max_threads : 1024,
		.bounded = f->max_threads != 0,
		.ptx_version = m->target,
	};
	memcpy(k->info.req_threads, f->req_threads, sizeof(f->req_threads));
}

enum ptx_status ptx_link(struct ptx_module *m, struct ptx_diag *diag)
{
	unsigned int n = 0;
	enum ptx_status st;

	for (unsigned int i = 0; i < m->nfuncs; i++)
		m->funcs[i]->sys = ptx_sys_find(m->funcs[i]->name);
	for (unsigned int i = 0; i < m->nfuncs; i++) {
		struct ptx_func *f = m->funcs[i];

		if (!ptx_func_real(f)->defined && !ptx_func_real(f)->sys)
			mark_unknown(f);
		n += f->entry && f->defined;
		m->bounded |= f->max_threads || f->max_regs;
	}
	st = link_calls(m, diag);
	if (st != PTX_OK)
		return st;
	m->kernels = ptx_alloc(&m->arena, (n + 1) * sizeof(*m->kernels));
	if (!m->kernels)
		return PTX_NO_MEMORY;
	for (unsigned int i = 0; i < m->nfuncs; i++)
		if (!m->funcs[i]->walked)
			walk_call_graph(m, m->funcs[i], 0);
	for (unsigned int i = 0; i < m->nfuncs; i++) {
		struct ptx_kernel *k;

		if (!m->funcs[i]->entry || !m->funcs[i]->defined)
			continue;
		k = &m->kernels[m->nkernels++];
		k->mod = m;
		k->fn = m->funcs[i];
		k->fn->kernel = k;
	}
	st = ptx_shared_place(m, diag);
	for (unsigned int i = 0; i < m->nkernels; i++)
		fill_info(m, &m->kernels[i]);
	return st;
}
