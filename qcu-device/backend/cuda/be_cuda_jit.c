// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The options of the driver's compiler and linker. Each value is a word: a number, or a pointer.
 */
#include "qcu-device/backend/cuda/be_cuda.h"

static void add(struct cu_jit *o, CUjit_option option, uintptr_t value)
{
	o->option[o->count] = option;
	o->value[o->count++] = (void *)value;
}

static void add_log(struct cu_jit *o, CUjit_option text, CUjit_option size, char *log)
{
	if (!log)
		return;
	add(o, text, (uintptr_t)log);
	add(o, size, BE_LOG_BYTES - 1);
}

void cu_jit_options(const struct be_jit *jit, struct cu_jit *o)
{
	const struct qcu_jit *q;

	*o = (struct cu_jit){0};
	if (!jit)
		return;
	q = &jit->options;
	if (q->max_regs)
		add(o, CU_JIT_MAX_REGISTERS, q->max_regs);
	if (q->flags & QCU_JIT_OPTIMIZE)
		add(o, CU_JIT_OPTIMIZATION_LEVEL, q->optimize);
	if (q->target)
		add(o, CU_JIT_TARGET, q->target);
	if (q->flags & QCU_JIT_FALLBACK)
		add(o, CU_JIT_FALLBACK_STRATEGY, q->fallback);
	if (q->flags & QCU_JIT_CACHE)
		add(o, CU_JIT_CACHE_MODE, q->cache);
	if (q->flags & QCU_JIT_VERBOSE)
		add(o, CU_JIT_LOG_VERBOSE, 1);
	if (q->flags & QCU_JIT_DEBUG)
		add(o, CU_JIT_GENERATE_DEBUG_INFO, 1);
	if (q->flags & QCU_JIT_LINES)
		add(o, CU_JIT_GENERATE_LINE_INFO, 1);
	add_log(o, CU_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES, jit->info);
	add_log(o, CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, jit->error);
	if (q->threads) {
		o->threads = o->count;
		add(o, CU_JIT_THREADS_PER_BLOCK, q->threads);
	}
}

void cu_jit_results(const struct cu_jit *o, struct be_jit *jit)
{
	if (jit && jit->options.threads)
		jit->threads = (uint32_t)(uintptr_t)o->value[o->threads];
	/* The driver ends the texts, and the last byte of the room stays ours. */
	if (jit && jit->info)
		jit->info[BE_LOG_BYTES - 1] = '\0';
	if (jit && jit->error)
		jit->error[BE_LOG_BYTES - 1] = '\0';
}
