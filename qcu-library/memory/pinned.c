// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Host memory that the GPU uses in place: chunk memory in the window, registered with the mirror at
 * the same address. cudaMallocHost, cudaHostAlloc and cudaMallocManaged all allocate it here.
 *
 * A program may already use all addresses of the window. Then pinned memory lies where the kernel
 * puts it, and is registered as cudaHostRegister does it. It works the same, but kernels may have
 * to use another address for it.
 */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "qcu-library/memory/memory.h"

#define ALLOC_FLAGS (cudaHostAllocPortable | cudaHostAllocMapped | cudaHostAllocWriteCombined)

static cudaError_t host_register(void *addr, size_t len, enum qcul_mem_flag asked)
{
	struct qCUcmd cmd = qcul_cmd(QCU_OP_HOST_REGISTER);

	cmd.host_register.buf.addr = (uint64_t)(uintptr_t)addr;
	cmd.host_register.buf.len = len;
	cmd.host_register.flags = qcul_mem_call_flags(asked);
	return qcul_send(&cmd, 1);
}

/* Allocates outside of the window. Managed memory must have the same address on both sides. */
static cudaError_t alloc_elsewhere(void **ptr, struct qcul_range *range)
{
	void *addr =
		mmap(NULL, range->len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	cudaError_t err;

	if (addr == MAP_FAILED)
		return cudaErrorMemoryAllocation;
	/* The fewer pieces the memory consists of, the faster the copy engines are. */
	(void)madvise(addr, range->len, MADV_HUGEPAGE);
	range->start = (uint64_t)(uintptr_t)addr;
	err = qcul_register(range);
	if (!err && qcul_range_is_managed(range) && range->other != range->start) {
		(void)qcul_mem_take(range->start, range->kind, range);
		(void)qcul_unregister(range);
		err = cudaErrorMemoryAllocation;
	}
	if (err) {
		munmap(addr, range->len);
		return err;
	}
	qcul_trace("pinned memory at %p is not in the window, kernels know it as %#llx", addr,
		   (unsigned long long)range->other);
	*ptr = addr;
	return cudaSuccess;
}

static bool is_pinned_in_window(const void *addr)
{
	const struct qcu_hello *hello = qcul_hello();

	return (uint64_t)(uintptr_t)addr - hello->window_base < hello->window_size;
}

/* ---- slabs ---- */

static void give_back_slab(const struct qcul_range *slab)
{
	/* Only the parent's mirror knows the parent's memory. */
	if (slab->epoch == qcul_epoch())
		(void)qcul_unregister(slab);
	qcul_window_unmap((void *)(uintptr_t)slab->start, slab->len);
}

bool qcul_host_drop(void)
{
	bool any = qcul_recycle_drop();
	struct qcul_range slab;

	while (qcul_slab_drop(&slab)) {
		give_back_slab(&slab);
		any = true;
	}
	return any;
}

static void *slab_new(size_t len)
{
	void *addr = qcul_window_map(QCUL_SLAB);

	if (!addr)
		return NULL;
	if (host_register(addr, QCUL_SLAB, 0) == cudaSuccess) {
		const struct qcul_range slab = {
			.start = (uint64_t)(uintptr_t)addr,
			.len = QCUL_SLAB,
		};

		if (qcul_slab_add(addr))
			return qcul_slab_take(len);
		(void)qcul_unregister(&slab);
	}
	qcul_window_unmap(addr, QCUL_SLAB);
	return NULL;
}

/* Frees a block of a slab. False: it is no such block. */
static bool slab_free(void *ptr)
{
	struct qcul_range gone;

	if (!qcul_slab_give(ptr, &gone))
		return false;
	if (gone.len)
		give_back_slab(&gone);
	return true;
}

/* Pinned memory that is already mapped and registered, or a part of a new slab; NULL: neither. */
static void *kept_or_shared(size_t len)
{
	void *addr;

	if (len > QCUL_SLAB_BLOCK || !qcul_recycle_wanted())
		return qcul_recycle_take(len);
	addr = qcul_slab_take(len);
	return addr ? addr : slab_new(len);
}

/* ---- allocations ---- */

/* The number of KiB that /proc/meminfo gives that name; 0: not known. */
static unsigned long long read_meminfo_kb(const char *name)
{
	FILE *f = fopen("/proc/meminfo", "re");
	unsigned long long kb = 0;
	char line[128], is[32];

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "%31[^:]: %llu", is, &kb) == 2 && !strcmp(is, name))
			break;
		else
			kb = 0;
	if (f)
		fclose(f);
	return kb;
}

/* Says why memory could not be had, if this machine has too little for it. */
static void say_memory_is_short(size_t size)
{
	static atomic_flag said = ATOMIC_FLAG_INIT;
	unsigned long long left = read_meminfo_kb("MemAvailable");

	/* The kernel keeps some of it. */
	if (size >> 10 < left - left / 8)
		return;
	qcul_say_once(
		&said,
		"no %zu MiB of pinned or managed memory: this machine has %llu MiB of memory, "
		"and %llu MiB of them are free; give the VM more (qcu run --mem)",
		size >> 20, read_meminfo_kb("MemTotal") >> 10, left >> 10);
}

static cudaError_t alloc_host_memory(void **ptr, size_t size, enum qcul_mem kind,
				     enum qcul_mem_flag asked)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct qcul_range range = {.kind = kind, .flags = asked};
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
	range.len = size;
	range.device = qcul_self.device;
	range.epoch = qcul_epoch();
	addr = kind == QCUL_MEM_PINNED ? kept_or_shared(size) : NULL;
	if (!addr) {
		addr = qcul_window_map(size);
		if (!addr && qcul_host_drop())
			addr = qcul_window_map(size);
		if (!addr)
			return alloc_elsewhere(ptr, &range);
		err = host_register(addr, size, asked);
		if (err == cudaErrorMemoryAllocation && qcul_host_drop())
			err = host_register(addr, size, asked);
		if (err)
			goto unmap;
	}
	range.start = range.other = (uint64_t)(uintptr_t)addr;
	if (!qcul_mem_add(&range)) {
		err = cudaErrorMemoryAllocation;
		if (slab_free(addr))
			return err;
		goto unregister;
	}
	*ptr = addr;
	return cudaSuccess;

unregister:
	(void)qcul_unregister(&range);
unmap:
	qcul_window_unmap(addr, size);
	return err;
}

cudaError_t qcul_host_alloc(void **ptr, size_t size, enum qcul_mem kind, enum qcul_mem_flag asked)
{
	cudaError_t err = alloc_host_memory(ptr, size, kind, asked);

	if (err == cudaErrorMemoryAllocation)
		say_memory_is_short(size);
	return err;
}

cudaError_t qcul_host_free(void *ptr, enum qcul_mem kind)
{
	struct qcul_range range;
	cudaError_t err = qcul_ready(), unregister;
	bool reusable, here;

	if (err || !ptr)
		return err;
	if (!qcul_mem_take((uint64_t)(uintptr_t)ptr, kind, &range))
		return cudaErrorInvalidValue;
	if (kind == QCUL_MEM_MANAGED)
		qcul_managed_forget(range.start, range.len);
	/* Only the parent's mirror knows the parent's memory. */
	here = range.epoch == qcul_epoch();
	reusable = kind == QCUL_MEM_PINNED && is_pinned_in_window(ptr);
	if (reusable && here)
		err = qcul_devices_idle();
	if (reusable && slab_free(ptr))
		return err;
	if (here) {
		if (reusable && !err && qcul_recycle_keep(range.start, range.len))
			return cudaSuccess;
		unregister = qcul_unregister(&range);
		err = err ? err : unregister;
	}
	if (is_pinned_in_window(ptr))
		qcul_window_unmap(ptr, qcul_mem_mapped(&range));
	else
		munmap(ptr, range.len);
	return err;
}

cudaError_t cudaMallocHost(void **ptr, size_t size)
{
	return qcul_done(qcul_host_alloc(ptr, size, QCUL_MEM_PINNED, 0));
}

cudaError_t cudaHostAlloc(void **ptr, size_t size, unsigned int flags)
{
	if (flags & ~ALLOC_FLAGS)
		return qcul_done(cudaErrorInvalidValue);
	return qcul_done(qcul_host_alloc(ptr, size, QCUL_MEM_PINNED, qcul_mem_asked(flags)));
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
	return qcul_range_is_pinned(range) ? cudaSuccess : cudaErrorInvalidValue;
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

/* Under unified addressing all pinned memory is mapped, whatever flags the program gave. */
cudaError_t cudaHostGetFlags(unsigned int *flags, void *host)
{
	struct qcul_range range;
	cudaError_t err = flags ? pinned(host, &range) : cudaErrorInvalidValue;

	if (!err)
		*flags = cudaHostAllocMapped |
			 qcul_mem_call_flags(range.flags & (qcul_range_is_registered(&range)
								    ? QCUL_MEM_ASKED_PORTABLE
								    : QCUL_MEM_ASKED_COMBINED));
	return qcul_done(err);
}
