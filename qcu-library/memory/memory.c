// SPDX-License-Identifier: LGPL-2.1-or-later
/* Device memory: allocate it, free it, and find out what a pointer points to. */
#include <string.h>

#include "qcu-library/memory/memory.h"
#include "qcu-library/link/capture.h"

/* cudaMallocPitch rounds rows up to this. No device needs more for its texture and copy engines. */
#define PITCH 512

const struct qcul_pool_sharing *qcul_pool_sharing;

/* How many other addresses to try if this process already uses the addresses of the first. */
#define TRIES 8

static cudaError_t pool_alloc(const struct qcul_pool_use *from, size_t size, uint64_t *addr)
{
	struct qCUcmd cmd = qcul_cmd(QCU_OP_MALLOC_ASYNC);
	cudaError_t err;

	cmd.device = qcul_device_ordinal(from->device);
	cmd.malloc_async.size = size;
	cmd.malloc_async.pool = from->pool;
	cmd.malloc_async.stream = from->stream;
	err = qcul_send(&cmd, 1);
	*addr = cmd.malloc_async.ptr;
	return err;
}

static cudaError_t mirror_alloc(const struct qcul_pool_use *from, size_t size, uint64_t *addr)
{
	return from ? pool_alloc(from, size, addr) : qcul_ahead_alloc(size, addr);
}

static cudaError_t mirror_free(uint64_t addr)
{
	struct qCUcmd cmd = qcul_cmd(QCU_OP_FREE);

	cmd.free.ptr = addr;
	return qcul_post(&cmd, 1);
}

/*
 * Allocates device memory at addresses that this process does not use. If that fails, marks the
 * range as ambiguous.
 */
static cudaError_t alloc_distinct(const struct qcul_pool_use *from, struct qcul_range *range)
{
	uint64_t tried[TRIES];
	unsigned int n = 0;
	cudaError_t err = mirror_alloc(from, range->len, &range->start);

	if (err)
		return err;
	while (!qcul_reserve(range->start, range->len)) {
		uint64_t other;

		if (n == TRIES || mirror_alloc(from, range->len, &other) != cudaSuccess) {
			range->flags = QCUL_MEM_AMBIGUOUS;
			break;
		}
		tried[n++] = range->start;
		range->start = other;
	}
	while (n > 0)
		(void)mirror_free(tried[--n]);
	return cudaSuccess;
}

cudaError_t qcul_device_alloc(void **ptr, size_t size, const struct qcul_pool_use *from)
{
	struct qcul_range range = {.kind = QCUL_MEM_DEVICE, .len = size};
	cudaError_t err;

	if (!ptr)
		return cudaErrorInvalidValue;
	err = qcul_ready();
	if (err)
		return err;
	if (size == 0) {
		*ptr = NULL;
		return cudaSuccess;
	}
	err = from ? cudaSuccess : qcul_capture_unsafe();
	if (!err)
		err = alloc_distinct(from, &range);
	if (err)
		return err;
	range.device = from ? from->device : qcul_self.device;
	if (from)
		range.flags |= QCUL_MEM_POOLED;
	range.epoch = qcul_epoch();
	if (!qcul_mem_add(&range)) {
		(void)mirror_free(range.start);
		return cudaErrorMemoryAllocation;
	}
	*ptr = (void *)(uintptr_t)range.start;
	return cudaSuccess;
}

cudaError_t (*qcul_free_mapped)(uint64_t ptr);

static cudaError_t device_free(void *ptr)
{
	struct qcul_range range, known;
	cudaError_t err = qcul_ready();

	if (err || !ptr)
		return err;
	err = qcul_capture_unsafe();
	if (err)
		return err;
	known = qcul_mem_find(ptr);
	if (qcul_range_has(&known, QCUL_MEM_SHARED))
		return known.start == (uint64_t)(uintptr_t)ptr ? qcul_pool_sharing->free(&known)
							       : cudaErrorInvalidValue;
	if (qcul_range_has(&known, QCUL_MEM_MAPPED))
		return qcul_free_mapped((uint64_t)(uintptr_t)ptr);
	/* Imported memory of another process is closed, not freed. */
	if (qcul_range_has(&known, QCUL_MEM_IMPORTED))
		return cudaErrorInvalidValue;
	if (qcul_range_is_managed(&known))
		return qcul_host_free(ptr, QCUL_MEM_MANAGED);
	if (qcul_graph_memory_is(ptr))
		return qcul_graph_memory_free(ptr);
	/*
	 * Remove it from memmap.c first: once it is free, another thread may get the same address.
	 */
	if (!qcul_mem_take((uint64_t)(uintptr_t)ptr, QCUL_MEM_DEVICE, &range))
		return cudaErrorInvalidValue;
	qcul_ahead_drop();
	/*
	 * A free waits for all work, as in CUDA. The caller waits for the work alone: further frees
	 * find none, and are on their way while CUDA frees the memory.
	 */
	if (qcul_device_busy(range.device))
		err = qcul_device_wait(range.device);
	if (err)
		(void)mirror_free(range.start);
	else
		err = mirror_free(range.start);
	return err;
}

cudaError_t cudaMalloc(void **ptr, size_t size)
{
	return qcul_done(qcul_device_alloc(ptr, size, NULL));
}

cudaError_t cudaFree(void *ptr)
{
	return qcul_done(device_free(ptr));
}

static cudaError_t alloc_pitch(void **ptr, size_t *pitch, size_t width, size_t height, size_t depth)
{
	size_t row, bytes;
	cudaError_t err;

	if (!ptr || !pitch)
		return cudaErrorInvalidValue;
	if (__builtin_add_overflow(width, PITCH - 1, &row))
		return cudaErrorInvalidValue;
	row -= row % PITCH;
	if (__builtin_mul_overflow(row, height, &bytes) ||
	    __builtin_mul_overflow(bytes, depth, &bytes))
		return cudaErrorInvalidValue;
	err = qcul_device_alloc(ptr, bytes, NULL);
	if (!err)
		*pitch = bytes ? row : 0;
	return err;
}

cudaError_t cudaMallocPitch(void **ptr, size_t *pitch, size_t width, size_t height)
{
	return qcul_done(alloc_pitch(ptr, pitch, width, height, 1));
}

cudaError_t cudaMalloc3D(struct cudaPitchedPtr *out, struct cudaExtent extent)
{
	struct cudaPitchedPtr p = {.xsize = extent.width, .ysize = extent.height};
	cudaError_t err = cudaErrorInvalidValue;

	if (out)
		err = alloc_pitch(&p.ptr, &p.pitch, extent.width, extent.height, extent.depth);
	if (!err)
		*out = p;
	return qcul_done(err);
}

static cudaError_t managed_alloc(void **ptr, size_t size)
{
	cudaError_t err = ptr ? qcul_ready() : cudaErrorInvalidValue;

	if (err || qcul_managed_place(ptr, size))
		return err;
	return qcul_host_alloc(ptr, size, QCUL_MEM_MANAGED, 0);
}

cudaError_t cudaMallocManaged(void **ptr, size_t size, unsigned int flags)
{
	if (flags != cudaMemAttachGlobal && flags != cudaMemAttachHost)
		return qcul_done(cudaErrorInvalidValue);
	return qcul_done(managed_alloc(ptr, size));
}

cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *attr, const void *ptr)
{
	struct qcul_range range;
	cudaError_t err = attr ? qcul_open() : cudaErrorInvalidValue;

	if (err)
		return qcul_done(err);
	memset(attr, 0, sizeof(*attr));
	range = qcul_mem_find(ptr);
	attr->device = range.device;
	switch (range.kind) {
	case QCUL_MEM_DEVICE:
	case QCUL_MEM_VARIABLE:
		attr->type = cudaMemoryTypeDevice;
		attr->devicePointer = (void *)(uintptr_t)ptr;
		if (qcul_range_has(&range, QCUL_MEM_COPIED)) {
			attr->type = cudaMemoryTypeManaged;
			attr->hostPointer = attr->devicePointer;
		}
		break;
	case QCUL_MEM_PINNED:
	case QCUL_MEM_REGISTERED:
		attr->type = cudaMemoryTypeHost;
		attr->hostPointer = (void *)(uintptr_t)ptr;
		attr->devicePointer = (void *)(uintptr_t)qcul_mem_device_address(ptr);
		break;
	case QCUL_MEM_ALIAS:
		attr->type = cudaMemoryTypeHost;
		attr->hostPointer =
			(void *)(uintptr_t)(range.other + ((uint64_t)(uintptr_t)ptr - range.start));
		attr->devicePointer = (void *)(uintptr_t)ptr;
		break;
	case QCUL_MEM_MANAGED:
		attr->type = cudaMemoryTypeManaged;
		attr->devicePointer = attr->hostPointer = (void *)(uintptr_t)ptr;
		break;
	case QCUL_MEM_HOST:
		attr->type = cudaMemoryTypeUnregistered;
		attr->device = cudaInvalidDeviceId;
		attr->hostPointer = (void *)(uintptr_t)ptr;
		break;
	}
	return cudaSuccess;
}
