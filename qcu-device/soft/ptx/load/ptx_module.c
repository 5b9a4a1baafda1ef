// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The interface of a module: load, look up, unload.
 */
#include <stdlib.h>
#include <string.h>

#include "qcu-device/soft/ptx/ops/ptx_ops.h"
#include "qcu-device/soft/ptx/exec/ptx_exec.h"
#include "qcu-device/soft/ptx/load/ptx_load.h"
#include "qcu-device/soft/ptx/memory/ptx_mem.h"

/* QCU_SOFT_BASE_OPS=1: use the handlers for processors without AVX2. For tests. */
static const struct ptx_ops *pick_ops(void)
{
#ifndef PTX_BASE_OPS_ONLY
	const char *base = getenv("QCU_SOFT_BASE_OPS");

	if (base && *base == '1')
		return &ptx_ops_base;
	if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
	    __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") &&
	    __builtin_cpu_supports("popcnt"))
		return &ptx_ops_avx2;
#endif
	return &ptx_ops_base;
}

/* A function of its own, so that no local variable of ptx_load() lives across the longjmp(). */
static enum ptx_status parse(struct ptx_parser *P, const char *text, size_t len)
{
	if (setjmp(P->out))
		return P->status;
	ptx_lex_start(P, text, len);
	ptx_parse_module(P);
	return PTX_OK;
}

enum ptx_status ptx_load(const char *text, size_t len, const struct ptx_env *env,
			 struct ptx_module **out, struct ptx_diag *diag)
{
	struct ptx_diag none;
	struct ptx_parser *P = calloc(1, sizeof(*P));
	struct ptx_module *m = calloc(1, sizeof(*m));
	enum ptx_status st = PTX_NO_MEMORY;

	if (!diag)
		diag = &none;
	*diag = (struct ptx_diag){0};
	*out = NULL;
	if (!P || !m) {
		ptx_diag_set(diag, 0, "out of memory");
		free(P);
		free(m);
		return st;
	}
	m->env = *env;
	m->ops = pick_ops();
	m->vars_tail = &m->vars;
	pthread_mutex_init(&m->heap_lock, NULL);
	P->m = m;
	P->diag = diag;
	st = parse(P, text, len);
	ptx_arena_free(&P->scratch);
	free(P->width);
	free(P);
	if (st == PTX_OK && ptx_init_vars(m, diag, &st))
		st = ptx_link(m, diag);
	if (st == PTX_OK && env->written && !ptx_check_install(m)) {
		ptx_diag_set(diag, 0, "out of memory");
		st = PTX_NO_MEMORY;
	}
	if (st != PTX_OK) {
		ptx_unload(m);
		return st;
	}
	free(m->const_hash);
	m->const_hash = NULL;
	*out = m;
	return PTX_OK;
}

void ptx_unload(struct ptx_module *m)
{
	if (!m)
		return;
	ptx_heap_sweep(m, true);
	for (struct ptx_var *v = m->vars; v; v = v->next)
		if ((v->space == SPACE_GLOBAL || v->space == SPACE_CONST) && v->addr && !v->bound)
			m->env.free(m->env.ctx, v->addr);
	if (m->error_texts)
		m->env.free(m->env.ctx, m->error_texts);
	pthread_mutex_destroy(&m->heap_lock);
	free(m->code);
	free(m->plain);
	free(m->files);
	free(m->xops);
	free(m->calls);
	free(m->consts);
	free(m->const_hash);
	free(m->funcs);
	ptx_arena_free(&m->arena);
	free(m);
}

const struct ptx_kernel *ptx_kernel_at(const struct ptx_module *m, unsigned int i)
{
	return i < m->nkernels ? &m->kernels[i] : NULL;
}

const struct ptx_kernel *ptx_kernel_find(const struct ptx_module *m, const char *name)
{
	for (unsigned int i = 0; i < m->nkernels; i++)
		if (!strcmp(m->kernels[i].info.name, name))
			return &m->kernels[i];
	return NULL;
}

const struct ptx_kernel_info *ptx_kernel_info(const struct ptx_kernel *k)
{
	return &k->info;
}

const char *ptx_managed_at(const struct ptx_module *m, unsigned int i)
{
	const struct ptx_var *v;

	for (v = m->vars; v; v = v->next)
		if (v->managed && !i--)
			return v->name;
	return NULL;
}

const char *ptx_missing(const struct ptx_module *m)
{
	const struct ptx_var *v;
	unsigned int i;

	for (i = 0; i < m->nfuncs; i++)
		if (m->funcs[i]->bad == PTX_UNSUPPORTED && !m->funcs[i]->defined)
			return m->funcs[i]->name;
	for (v = m->vars; v; v = v->next)
		if (v->is_extern && (v->space == SPACE_GLOBAL || v->space == SPACE_CONST))
			return v->name;
	return NULL;
}

enum ptx_status ptx_var_find(const struct ptx_module *m, const char *name, uint64_t *addr,
			     size_t *size)
{
	for (const struct ptx_var *v = m->vars; v; v = v->next)
		if ((v->space == SPACE_GLOBAL || v->space == SPACE_CONST) &&
		    !strcmp(v->name, name)) {
			*addr = v->addr;
			*size = v->size;
			return PTX_OK;
		}
	return PTX_NOT_FOUND;
}

bool ptx_var_at(const struct ptx_module *m, uint32_t i, uint64_t *addr, uint64_t *size)
{
	const struct ptx_var *v;

	for (v = m->vars; v && v->placed != i + 1; v = v->next)
		;
	if (v) {
		*addr = v->addr;
		*size = v->size ? v->size : 1;
	}
	return v;
}

const char *ptx_status_name(enum ptx_status s)
{
	static const char *const names[] = {
		[PTX_OK] = "ok",
		[PTX_INVALID_PTX] = "invalid PTX",
		[PTX_UNSUPPORTED] = "not supported",
		[PTX_NO_MEMORY] = "out of memory",
		[PTX_NOT_FOUND] = "not found",
		[PTX_BAD_LAUNCH] = "bad launch",
		[PTX_ILLEGAL_ADDRESS] = "illegal address",
		[PTX_MISALIGNED_ADDRESS] = "misaligned address",
		[PTX_TRAP] = "trap",
		[PTX_ASSERT] = "assert",
		[PTX_STACK_OVERFLOW] = "stack overflow",
		[PTX_KILLED] = "killed",
	};

	if ((unsigned int)s >= sizeof(names) / sizeof(names[0]))
		return "unknown";
	return names[s];
}
