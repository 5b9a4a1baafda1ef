/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The software GPU as a backend: the table of its functions, and how an instance is opened and
 * closed.
 *
 * Environment variables, read when a mirror opens the backend:
 *   QCU_SOFT_SM=XY       compute capability X.Y instead of 9.0, see props.c
 *   QCU_SOFT_BIND=0      managed variables stay in the GPU's memory, as with CUDA
 *   QCU_SOFT_TIMEOUT=N   a kernel that runs for N seconds is stopped, see watchdog.c
 *   QCU_SOFT_CHECK=1     reports uninitialised reads and races on shared memory, see ptx_check.c
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "qcu-device/soft/gpu/soft.h"

bool soft_probe(void)
{
	return true;
}

static bool read_sm(unsigned int *sm)
{
	const char *text = getenv("QCU_SOFT_SM");
	char *end;
	unsigned long v;

	*sm = SOFT_SM_DEFAULT;
	if (!text || !*text)
		return true;
	v = strtoul(text, &end, 10);
	if (*end || v > 999 || !soft_limits((unsigned int)v)) {
		soft_say("QCU_SOFT_SM=%s: no such compute capability", text);
		return false;
	}
	*sm = (unsigned int)v;
	return true;
}

static void close_device(struct soft_device *d)
{
	soft_pools_fini(d);
	soft_mem_fini(&d->mem);
}

static bool open_device(struct be *be, unsigned int i, uint64_t vram)
{
	struct soft_device *d = &be->dev[i];

	d->be = be;
	d->index = i;
	if (!soft_mem_init(&d->mem, be, i, vram))
		return false;
	if (!soft_streams_init(d)) {
		close_device(d);
		return false;
	}
	if (be->check && !soft_check_init(&d->mem)) {
		close_device(d);
		return false;
	}
	soft_limits_default(d);
	soft_pools_init(d);
	d->env = (struct ptx_env){
		.ctx = d,
		.alloc = soft_env_alloc,
		.free = soft_env_free,
		.range = soft_env_range,
		.print = soft_env_print,
		.image = soft_env_image,
		.complain = soft_env_complain,
		.condition = soft_env_condition,
		.attribute = soft_env_attribute,
		.written = be->check ? soft_env_written : NULL,
		.wrote = soft_env_wrote,
		.found = soft_env_found,
		.heap_quota = &d->limits.heap,
		.device = i,
		.devices = be->gpus,
		.sm_count = be->threads,
		.threads = be->threads,
	};
	return true;
}

void soft_close(struct be *be)
{
	unsigned int i;

	soft_streams_stop(be);
	if (be->granted)
		be->charge_queue(be->charge_ctx, -(int64_t)be->granted);
	soft_watchdog_stop(be);
	soft_events_fini(be);
	soft_modules_fini(be);
	for (i = 0; i < be->gpus; i++)
		close_device(&be->dev[i]);
	/* The others have given back what they had there. */
	soft_mem_fini(&be->store);
	soft_print_fini(&be->print);
	soft_images_fini(&be->images);
	soft_print_fini(&be->complaints);
	free(be->faults.found);
	soft_ranges_fini(&be->host);
	soft_virtual_fini(be);
	pthread_mutex_destroy(&be->host_lock);
	pthread_cond_destroy(&be->watch);
	pthread_cond_destroy(&be->progress);
	pthread_mutex_destroy(&be->lock);
	soft_share_end();
	free(be);
}

uint64_t soft_memory(const struct be_options *opt)
{
	const uint64_t vram = opt->vram ? opt->vram : soft_mem_default();

	return vram < SOFT_VRAM_MAX ? vram : SOFT_VRAM_MAX;
}

int soft_open(struct be **out, const struct be_options *opt)
{
	uint64_t vram = soft_memory(opt);
	unsigned int gpus = opt->gpus ? opt->gpus : 1;
	long cores = sysconf(_SC_NPROCESSORS_ONLN);
	pthread_condattr_t attr;
	struct be *be;

	*out = NULL;
	if (gpus > SOFT_GPUS_MAX) {
		soft_say("%u devices are too many, %u can be had", gpus, SOFT_GPUS_MAX);
		return QCU_ERR_InvalidValue;
	}
	be = calloc(1, sizeof(*be));
	if (!be)
		return QCU_ERR_MemoryAllocation;
	soft_share_begin(opt);
	pthread_mutex_init(&be->lock, NULL);
	pthread_mutex_init(&be->host_lock, NULL);
	soft_virtual_init(be);
	pthread_cond_init(&be->progress, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&be->watch, &attr);
	pthread_condattr_destroy(&attr);
	be->threads = opt->threads ? opt->threads : cores > 0 ? (unsigned int)cores : 1;
	be->verbose = opt->verbose;
	be->charge_queue = opt->charge_queue;
	be->charge_module = opt->charge_module;
	be->busy = opt->busy;
	be->movable = opt->movable;
	be->resident = opt->resident;
	be->charge_ctx = opt->charge_ctx;
	be->check = soft_check_wanted();
	if (!read_sm(&be->sm) || !soft_watchdog_limit(opt->kernel_seconds, &be->timeout)) {
		soft_close(be);
		return QCU_ERR_InvalidValue;
	}
	if (!soft_print_init(&be->print, opt->printed_bytes) ||
	    !soft_print_init(&be->complaints, opt->printed_bytes) || !soft_ranges_init(&be->host) ||
	    !soft_images_init(&be->images))
		goto no_memory;
	if (be->check)
		be->faults.found = malloc(SOFT_FINDINGS * sizeof(*be->faults.found));
	if (be->check && !be->faults.found)
		goto no_memory;
	for (; be->gpus < gpus; be->gpus++) {
		if (!open_device(be, be->gpus, vram)) {
			soft_say("no room for device %u with %llu MiB", be->gpus,
				 (unsigned long long)(vram >> 20));
			goto no_memory;
		}
	}
	if (opt->store && !soft_mem_init(&be->store, be, be->gpus,
					 opt->store < SOFT_VRAM_MAX ? opt->store : SOFT_VRAM_MAX)) {
		soft_say("no room for the device of the store");
		goto no_memory;
	}
	if (!soft_watchdog_start(be))
		goto no_memory;
	*out = be;
	return QCU_ERR_Success;

no_memory:
	soft_close(be);
	return QCU_ERR_MemoryAllocation;
}

int soft_device_count(struct be *be, unsigned int *count)
{
	*count = be->gpus;
	return QCU_ERR_Success;
}

/*
 * Frees device memory and the variables of modules. Streams and events stay: their owner destroys
 * them. After an error the device is unavailable to this process, but the call itself succeeds.
 * CUDA does the same.
 */
int soft_device_reset(struct be *be, unsigned int dev)
{
	soft_wait(be, NULL);
	if (atomic_load(&be->sticky)) {
		atomic_store(&be->sticky, QCU_ERR_DevicesUnavailable);
		return QCU_ERR_Success;
	}
	soft_modules_reset(be, dev);
	soft_peers_reset(be, dev);
	soft_pools_reset(&be->dev[dev]);
	soft_mem_reset(&be->dev[dev].mem);
	soft_limits_default(&be->dev[dev]);
	return QCU_ERR_Success;
}

/* Work that is not done, under be->lock. */
static bool is_busy(struct be *be)
{
	const struct be_stream *s;
	unsigned int i;

	for (i = 0; i < be->gpus; i++)
		for (s = be->dev[i].streams; s; s = s->next)
			if (s->oldest != UINT64_MAX || s->done != s->last)
				return true;
	return be->calls;
}

const char *soft_unsaved(struct be *be, bool *busy)
{
	const char *why = NULL;
	unsigned int i;

	pthread_mutex_lock(&be->lock);
	*busy = is_busy(be);
	if (*busy)
		why = "the GPU still works for it";
	else if (atomic_load(&be->sticky) || be->pending)
		why = "an error has not been reported to the program yet, or has ended its work";
	pthread_mutex_unlock(&be->lock);
	if (!why && be->check)
		why = "the checks of its memory know what has been written";
	if (!why && soft_modules_unplaced(be))
		why = "a module's variables have no memory after a reset of the device";
	if (!why && !soft_virtual_usual(be))
		why = "the addresses that it has reserved are not at the usual place";
	for (i = 0; i < be->gpus && !why; i++) {
		if (soft_mem_away(be, i))
			why = "memory of it is not on the GPU";
		if (!soft_modules_only(be, i))
			why = "kernels have memory from malloc()";
		/* As in the child of a process that has a GPU of its own, which only tests do. */
		if (!soft_mem_usual(&be->dev[i].mem))
			why = "the memory of its GPU is not at the usual addresses";
	}
	return why;
}

void soft_want(struct be *be, const struct be_wanted *wanted, size_t count)
{
	unsigned int i;

	pthread_mutex_lock(&be->lock);
	be->wanted = wanted;
	be->wanted_count = count;
	pthread_mutex_unlock(&be->lock);
	pthread_mutex_lock(&be->images.lock);
	be->images.wanted = wanted;
	be->images.wanted_count = count;
	pthread_mutex_unlock(&be->images.lock);
	for (i = 0; i < be->gpus; i++)
		soft_mem_want(&be->dev[i].mem, wanted, count);
	soft_virtual_want(be, wanted, count);
}

const struct be_ops be_soft = {
	.abi = BE_ABI,
	.name = "soft",
	.kernel_time = true,
	.numbers_ours = true,
	.mem_gone = &soft_mem_gone,
#define BE_OP_OF(type, name, ...) .name = soft_##name,
#define BE_CUDA_OP(...)
#include "qcu-device/backend/ops.h"
};
