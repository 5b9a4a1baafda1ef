// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The options of the driver's compiler and linker, and the linker. Each value of an option is a
 * word: a number, or a pointer.
 */
#include <stdlib.h>
#include <string.h>

#include "qcu-device/backend/cuda/be_cuda.h"

static void add_jit_option(struct cu_jit *o, CUjit_option option, uintptr_t value)
{
	o->option[o->count] = option;
	o->value[o->count++] = (void *)value;
}

static void add_log(struct cu_jit *o, CUjit_option text, CUjit_option size, char *log)
{
	if (!log)
		return;
	add_jit_option(o, text, (uintptr_t)log);
	add_jit_option(o, size, BE_LOG_BYTES - 1);
}

void cu_jit_options(const struct be_jit *jit, struct cu_jit *o)
{
	const struct qcu_jit *q;

	*o = (struct cu_jit){0};
	if (!jit)
		return;
	q = &jit->options;
	if (q->max_regs)
		add_jit_option(o, CU_JIT_MAX_REGISTERS, q->max_regs);
	if (q->flags & QCU_JIT_OPTIMIZE)
		add_jit_option(o, CU_JIT_OPTIMIZATION_LEVEL, q->optimize);
	if (q->target)
		add_jit_option(o, CU_JIT_TARGET, q->target);
	if (q->flags & QCU_JIT_FALLBACK)
		add_jit_option(o, CU_JIT_FALLBACK_STRATEGY, q->fallback);
	if (q->flags & QCU_JIT_CACHE)
		add_jit_option(o, CU_JIT_CACHE_MODE, q->cache);
	if (q->flags & QCU_JIT_VERBOSE)
		add_jit_option(o, CU_JIT_LOG_VERBOSE, 1);
	if (q->flags & QCU_JIT_DEBUG)
		add_jit_option(o, CU_JIT_GENERATE_DEBUG_INFO, 1);
	if (q->flags & QCU_JIT_LINES)
		add_jit_option(o, CU_JIT_GENERATE_LINE_INFO, 1);
	add_log(o, CU_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES, jit->info);
	add_log(o, CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, jit->error);
	if (q->threads) {
		o->threads = o->count;
		add_jit_option(o, CU_JIT_THREADS_PER_BLOCK, q->threads);
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

/* ---- links ---- */

/*
 * The driver keeps the addresses of the options' values and of the texts, and writes to them until
 * the link is destroyed.
 */
struct be_link {
	CUlinkState state;
	unsigned int dev;
	struct cu_jit o;
	char *info, *error; /* NULL: not wanted */
};

static void free_link(struct be_link *l)
{
	free(l->info);
	free(l->error);
	free(l);
}

int cu_link_create(struct be *be, unsigned int dev, const struct qcu_jit *options,
		   struct be_link **out)
{
	PFN_cuLinkCreate_v6050 create;
	struct be_jit jit = {.options = *options};
	struct be_link *l;
	int ret = cu_use(be, dev);

	if (!ret)
		ret = cu_driver_function(be, "cuLinkCreate", &create);
	if (ret)
		return ret;
	l = calloc(1, sizeof(*l));
	if (!l)
		return QCU_ERR_MemoryAllocation;
	l->dev = dev;
	if (options->flags & QCU_JIT_LOGS) {
		l->info = calloc(1, BE_LOG_BYTES);
		l->error = calloc(1, BE_LOG_BYTES);
		if (!l->info || !l->error) {
			free_link(l);
			return QCU_ERR_MemoryAllocation;
		}
		jit.info = l->info;
		jit.error = l->error;
	}
	cu_jit_options(&jit, &l->o);
	ret = (int)create(l->o.count, l->o.option, l->o.value, &l->state);
	if (ret) {
		free_link(l);
		return ret;
	}
	*out = l;
	return QCU_ERR_Success;
}

/* The texts so far. */
static void copy_link_logs(const struct be_link *l, struct be_jit *jit)
{
	if (jit->info && l->info)
		memcpy(jit->info, l->info, BE_LOG_BYTES - 1);
	if (jit->error && l->error)
		memcpy(jit->error, l->error, BE_LOG_BYTES - 1);
	if (jit->info)
		jit->info[BE_LOG_BYTES - 1] = '\0';
	if (jit->error)
		jit->error[BE_LOG_BYTES - 1] = '\0';
}

int cu_link_add(struct be *be, struct be_link *l, uint32_t type, const void *image, size_t len,
		struct be_jit *jit)
{
	static const CUjitInputType types[] = {
		[QCU_LINK_CUBIN] = CU_JIT_INPUT_CUBIN,
		[QCU_LINK_PTX] = CU_JIT_INPUT_PTX,
		[QCU_LINK_FATBIN] = CU_JIT_INPUT_FATBINARY,
	};
	struct be_jit own = {.options = jit->options};
	PFN_cuLinkAddData_v6050 add_data;
	struct cu_jit o;
	char *copy;
	int ret = cu_use(be, l->dev);

	if (!ret)
		ret = cu_driver_function(be, "cuLinkAddData", &add_data);
	if (ret)
		return ret;
	copy = malloc(len + 1); /* aligned, and PTX ends with a NUL */
	if (!copy)
		return QCU_ERR_MemoryAllocation;
	memcpy(copy, image, len);
	copy[len] = '\0';
	cu_jit_options(&own, &o);
	ret = (int)add_data(l->state, types[type], copy, type == QCU_LINK_PTX ? len + 1 : len,
			    "input", o.count, o.option, o.value);
	free(copy);
	copy_link_logs(l, jit);
	return ret;
}

int cu_link_complete(struct be *be, struct be_link *l, struct be_jit *jit, const void **image,
		     size_t *len)
{
	PFN_cuLinkComplete_v5050 complete;
	void *cubin = NULL;
	int ret = cu_use(be, l->dev);

	if (!ret)
		ret = cu_driver_function(be, "cuLinkComplete", &complete);
	if (ret)
		return ret;
	ret = (int)complete(l->state, &cubin, len);
	*image = cubin;
	copy_link_logs(l, jit);
	return ret;
}

int cu_link_destroy(struct be *be, struct be_link *l)
{
	PFN_cuLinkDestroy_v5050 destroy;
	int ret = cu_use(be, l->dev);

	if (!ret)
		ret = cu_driver_function(be, "cuLinkDestroy", &destroy);
	if (!ret)
		ret = (int)destroy(l->state);
	free_link(l);
	return ret;
}
