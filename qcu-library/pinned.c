// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Host memory that the GPU uses in place: chunk memory in the window, registered with the mirror at
 * the same address. cudaMallocHost, cudaHostAlloc and cudaMallocManaged all get it here.
 */
#include <unistd.h>

#include "qcu-library/qcul.h"

#define ALLOC_FLAGS (cudaHostAllocPortable | cudaHostAllocMapped | cudaHostAllocWriteCombined)

static cudaError_t host_register(void *addr, size_t len, unsigned int flags)
{
	struct qCUcmd cmd = qcul_cmd(QCU_OP_HOST_REGISTER);

	cmd.host_register.buf.addr = (uint64_t)(uintptr_t)addr;
	cmd.host_register.buf.len = len;
	cmd.host_register.flags = flags;
	return qcul_send(&cmd, 1);
}

static cudaError_t host_unregister(const struct qcul_range *range)
{
	struct qCUcmd cmd = qcul_cmd(QCU_OP_HOST_UNREGISTER);

	cmd.host_unregister.addr = range->start;
	cmd.host_unregister.len = range->len;
	return qcul_send(&cmd, 1);
}

cudaError_t qcul_host_alloc(void **ptr, size_t size, enum qcul_mem kind, unsigned int flags)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct qcul_range range = {.kind = kind, .flags = flags};
	cudaError_t err;
	void *addr;

	if (!ptr)
		return cudaErrorInvalidValue;
	err = qcul_ready();
	if (err)
		return err;
	if (size == 0) {
		*ptr = NULL;
		return cudaSuccess;
	}
	if (size > qcul_hello()->window_size)
		return cudaErrorMemoryAllocation;
	size = (size + page - 1) & ~(page - 1);
	addr = qcul_window_map(size);
	if (!addr)
		return cudaErrorMemoryAllocation;
	err = host_register(addr, size, flags);
	if (err)
		goto unmap;
	range.start = (uint64_t)(uintptr_t)addr;
	range.len = size;
	range.device = qcul_self.device;
	range.epoch = qcul_epoch();
	if (!qcul_mem_add(&range)) {
		err = cudaErrorMemoryAllocation;
		goto unregister;
	}
	*ptr = addr;
	return cudaSuccess;

unregister:
	(void)host_unregister(&range);
unmap:
	qcul_window_unmap(addr, size);
	return err;
}

cudaError_t qcul_host_free(void *ptr, enum qcul_mem kind)
{
	struct qcul_range range;
	cudaError_t err = qcul_ready();

	if (err || !ptr)
		return err;
	if (!qcul_mem_take((uint64_t)(uintptr_t)ptr, kind, &range))
		return cudaErrorInvalidValue;
	/* A parent's memory is known to the parent's mirror only. */
	if (range.epoch == qcul_epoch())
		err = host_unregister(&range);
	qcul_window_unmap(ptr, range.len);
	return err;
}

cudaError_t cudaMallocHost(void **ptr, size_t size)
{
	return qcul_done(qcul_host_alloc(ptr, size, QCUL_MEM_PINNED, cudaHostAllocDefault));
}

cudaError_t cudaHostAlloc(void **ptr, size_t size, unsigned int flags)
{
	if (flags & ~ALLOC_FLAGS)
		return qcul_done(cudaErrorInvalidValue);
	return qcul_done(qcul_host_alloc(ptr, size, QCUL_MEM_PINNED, flags));
}

cudaError_t cudaFreeHost(void *ptr)
{
	return qcul_done(qcul_host_free(ptr, QCUL_MEM_PINNED));
}

static cudaError_t pinned(const void *ptr, struct qcul_range *range)
{
	cudaError_t err = qcul_ready();

	if (err)
		return err;
	*range = qcul_mem_find(ptr);
	return range->kind == QCUL_MEM_PINNED || range->kind == QCUL_MEM_REGISTERED
		       ? cudaSuccess
		       : cudaErrorInvalidValue;
}

cudaError_t cudaHostGetDevicePointer(void **device, void *host, unsigned int flags)
{
	struct qcul_range range;
	cudaError_t err = cudaErrorInvalidValue;

	if (device && !flags)
		err = pinned(host, &range);
	if (!err)
		*device = (void *)(uintptr_t)qcul_mem_device_address(host);
	return qcul_done(err);
}

/* Under unified addressing all of it is mapped, whatever was asked for. */
cudaError_t cudaHostGetFlags(unsigned int *flags, void *host)
{
	struct qcul_range range;
	cudaError_t err = flags ? pinned(host, &range) : cudaErrorInvalidValue;

	if (!err && range.kind == QCUL_MEM_REGISTERED)
		*flags = (range.flags & cudaHostRegisterPortable) | cudaHostRegisterMapped;
	else if (!err)
		*flags = (range.flags & cudaHostAllocWriteCombined) | cudaHostAllocMapped;
	return qcul_done(err);
}
