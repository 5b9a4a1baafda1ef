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

static bool probe(void)
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
	if (!soft_mem_init(&d->mem, i, vram))
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
		.heap_room = &d->limits.heap,
		.device = i,
		.devices = be->gpus,
		.sm_count = be->threads,
		.threads = be->threads,
	};
	return true;
}

static void soft_close(struct be *be)
{
	unsigned int i;

	soft_streams_stop(be);
	if (be->granted)
		be->queue_room(be->room_ctx, -(int64_t)be->granted);
	soft_watchdog_stop(be);
	soft_events_fini(be);
	soft_modules_fini(be);
	for (i = 0; i < be->gpus; i++)
		close_device(&be->dev[i]);
	soft_print_fini(&be->print);
	soft_images_fini(&be->images);
	soft_print_fini(&be->complaints);
	soft_ranges_fini(&be->host);
	soft_virtual_fini(be);
	pthread_mutex_destroy(&be->host_lock);
	pthread_cond_destroy(&be->watch);
	pthread_cond_destroy(&be->progress);
	pthread_mutex_destroy(&be->lock);
	soft_share_end();
	free(be);
}

static uint64_t memory(const struct be_options *opt)
{
	return opt->vram ? opt->vram : soft_mem_default();
}

static int soft_open(struct be **out, const struct be_options *opt)
{
	uint64_t vram = memory(opt);
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
	be->queue_room = opt->queue_room;
	be->module_room = opt->module_room;
	be->room_ctx = opt->room_ctx;
	be->check = soft_check_wanted();
	if (!read_sm(&be->sm) || !soft_watchdog_limit(opt->kernel_seconds, &be->timeout)) {
		soft_close(be);
		return QCU_ERR_InvalidValue;
	}
	if (!soft_print_init(&be->print, opt->printed_bytes) ||
	    !soft_print_init(&be->complaints, opt->printed_bytes) || !soft_ranges_init(&be->host) ||
	    !soft_images_init(&be->images))
		goto no_memory;
	for (; be->gpus < gpus; be->gpus++) {
		if (!open_device(be, be->gpus, vram)) {
			soft_say("no room for device %u with %llu MiB", be->gpus,
				 (unsigned long long)(vram >> 20));
			goto no_memory;
		}
	}
	if (!soft_watchdog_start(be))
		goto no_memory;
	*out = be;
	return QCU_ERR_Success;

no_memory:
	soft_close(be);
	return QCU_ERR_MemoryAllocation;
}

static int device_count(struct be *be, unsigned int *count)
{
	*count = be->gpus;
	return QCU_ERR_Success;
}

/*
 * Frees device memory and the variables of modules. Streams and events stay: their owner destroys
 * them. After an error the device is unavailable to this process, but the call itself succeeds.
 * CUDA does the same.
 */
static int device_reset(struct be *be, unsigned int dev)
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

const struct be_ops be_soft = {
	.abi = BE_ABI,
	.name = "soft",
	.kernel_time = true,
	.probe = probe,
	.open = soft_open,
	.close = soft_close,
	.memory = memory,
	.device_count = device_count,
	.versions = soft_versions,
	.device_desc = soft_device_desc,
	.device_sync = soft_device_sync,
	.device_reset = device_reset,
	.mem_info = soft_mem_info,
	.peer_access = soft_peer_access,
	.peer_info = soft_peer_info,
	.limit_set = soft_limit_set,
	.limit_get = soft_limit_get,
	.mem_alloc = soft_mem_alloc,
	.mem_free = soft_free,
	.pool_default = soft_pool_default,
	.pool_create = soft_pool_create,
	.pool_destroy = soft_pool_destroy,
	.pool_set = soft_pool_set,
	.pool_get = soft_pool_get,
	.pool_trim = soft_pool_trim,
	.pool_access_set = soft_pool_access_set,
	.pool_access_get = soft_pool_access_get,
	.pool_alloc = soft_pool_alloc,
	.pool_free = soft_pool_free,
	.va_reserve = soft_va_reserve,
	.va_free = soft_va_free,
	.phys_grain = soft_phys_grain,
	.phys_create = soft_phys_create,
	.phys_destroy = soft_phys_destroy,
	.phys_map = soft_phys_map,
	.phys_unmap = soft_phys_unmap,
	.phys_access = soft_phys_access,
	.phys_export = soft_phys_export,
	.phys_import = soft_phys_import,
	.mem_valid = soft_mem_valid,
	.mem_gone = &soft_mem_gone,
	.mem_place = soft_mem_place,
	.mem_unplace = soft_mem_unplace,
	.host_register = soft_host_register,
	.host_unregister = soft_host_unregister,
	.copy_h2d = soft_copy_h2d,
	.copy_d2h = soft_copy_d2h,
	.copy_d2h_wait = soft_copy_d2h_wait,
	.copy_pieces = soft_copy_pieces,
	.copy_d2d = soft_copy_d2d,
	.mem_set = soft_mem_set,
	.array_create = soft_array_create,
	.array_destroy = soft_array_destroy,
	.copy_box = soft_copy_box,
	.texture_create = soft_texture_create,
	.texture_destroy = soft_texture_destroy,
	.surface_create = soft_surface_create,
	.surface_destroy = soft_surface_destroy,
	.stream_create = soft_stream_create,
	.stream_legacy = soft_stream_legacy,
	.stream_destroy = soft_stream_destroy,
	.stream_sync = soft_stream_sync,
	.stream_query = soft_stream_query,
	.stream_wait_event = soft_stream_wait_event,
	.stream_attr_set = soft_stream_attr_set,
	.stream_attr_get = soft_stream_attr_get,
	.stream_attr_copy = soft_stream_attr_copy,
	.tensor_map = soft_tensor_map,
	.stream_value = soft_stream_value,
	.values_end = soft_values_end,
	.lib_open = soft_lib_open,
	.lib_symbol = soft_lib_symbol,
	.native = soft_native,
	.host_func = soft_host_func,
	.mem_export = soft_mem_export,
	.mem_import = soft_mem_import,
	.mem_unimport = soft_mem_unimport,
	.event_create = soft_event_create,
	.event_export = soft_event_export,
	.event_import = soft_event_import,
	.event_destroy = soft_event_destroy,
	.event_record = soft_event_record,
	.event_sync = soft_event_sync,
	.event_query = soft_event_query,
	.event_elapsed = soft_event_elapsed,
	.graph_make = soft_graph_make,
	.graph_update = soft_graph_update,
	.graph_launch = soft_graph_launch,
	.graph_upload = soft_graph_upload,
	.graph_destroy = soft_graph_destroy,
	.cond_create = soft_cond_create,
	.cond_node = soft_cond_node,
	.cond_destroy = soft_cond_destroy,
	.module_load = soft_module_load,
	.module_names = soft_module_names,
	.module_unload = soft_module_unload,
	.link_create = soft_link_create,
	.link_add = soft_link_add,
	.link_complete = soft_link_complete,
	.link_destroy = soft_link_destroy,
	.kernel_find = soft_kernel_find,
	.kernel_params = soft_kernel_params,
	.kernel_desc = soft_kernel_desc,
	.kernel_set = soft_kernel_set,
	.occupancy = soft_occupancy,
	.occupancy_shared = soft_occupancy_shared,
	.occupancy_cluster = soft_occupancy_cluster,
	.var_find = soft_var_find,
	.managed_find = soft_managed_find,
	.var_bind = soft_var_bind,
	.launch = soft_launch,
	.print_read = soft_print_read,
	.assert_read = soft_assert_read,
};
