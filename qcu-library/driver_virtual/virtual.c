// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Virtual memory: reserved addresses, memory without an address, and mappings. The mirror does the
 * work and checks each call. This file gives out handles, and knows what is mapped where, so that
 * a pointer to a mapping is known as device memory.
 */
#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "qcu-library/driver_virtual/virtual.h"
#include "qcu-library/memory/array.h"
#include "qcu-library/link/fork.h"
#include "qcu-library/malloc/addresses.h"

/* How many other places to try if this process already uses the addresses of the first. */
#define TRIES 8
/* A handle is the mirror's number with a mark, so that small numbers are no handles. */
#define MARK 0x7163750000000000ull

struct mapping {
	uint64_t addr, size;
	struct qcul_phys *mem;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static LIST_HEAD(, qcul_phys) all = LIST_HEAD_INITIALIZER(all);
static void *mappings; /* tree by address */
static uint32_t next = QCU_ID_FIRST;
static uint8_t taken[QCU_ID_MAX + 1];

void qcul_virtual_lock(void)
{
	pthread_mutex_lock(&lock);
}

void qcul_virtual_unlock(void)
{
	pthread_mutex_unlock(&lock);
}

/* Mappings are equal if they overlap, so a search finds one that overlaps the key. */
static int compare_mappings(const void *a, const void *b)
{
	const struct mapping *x = a, *y = b;

	if (x->addr - y->addr < y->size || y->addr - x->addr < x->size)
		return 0;
	return x->addr < y->addr ? -1 : 1;
}

static struct mapping *mapping_at(uint64_t addr)
{
	const struct mapping key = {.addr = addr, .size = 1};
	struct mapping **node = tfind(&key, &mappings, compare_mappings);

	return node ? *node : NULL;
}

/* The child has no session, and so none of the memory. */
static void forget_virtual_memory(bool had_session)
{
	struct qcul_phys *p;
	struct mapping *m;

	(void)had_session;
	while (mappings) {
		m = *(struct mapping **)mappings;
		tdelete(m, &mappings, compare_mappings);
		free(m);
	}
	while ((p = LIST_FIRST(&all))) {
		LIST_REMOVE(p, link);
		free(p);
	}
	memset(taken, 0, sizeof(taken));
}

QCUL_AT_FORK(QCUL_FORK_VIRTUAL, .lock = &lock, .forget = forget_virtual_memory)

static struct qCUcmd command(uint16_t op, int device)
{
	struct qCUcmd cmd = qcul_cmd(op);

	qcul_device_used(device);
	cmd.device = qcul_device_ordinal(device);
	return cmd;
}

/* ---- addresses ---- */

static cudaError_t mirror_reserve(size_t size, size_t align, uint64_t *addr)
{
	struct qCUcmd cmd = qcul_cmd(QCU_OP_VA_RESERVE);
	cudaError_t err;

	cmd.va_reserve.size = size;
	cmd.va_reserve.align = align;
	err = qcul_send(&cmd, 1);
	*addr = cmd.va_reserve.addr;
	return err;
}

static cudaError_t mirror_unreserve(uint64_t addr, size_t size)
{
	struct qCUcmd cmd = qcul_cmd(QCU_OP_VA_FREE);

	cmd.va_free.addr = addr;
	cmd.va_free.size = size;
	return qcul_send(&cmd, 1);
}

/* The addresses must be free in this process, too, so that a pointer says what it points to. */
static cudaError_t reserve_virtual_range(CUdeviceptr *ptr, size_t size, size_t align)
{
	uint64_t tried[TRIES], addr = 0;
	cudaError_t err = qcul_ready();
	unsigned int n = 0;

	if (!err)
		err = mirror_reserve(size, align, &addr);
	while (!err && !qcul_reserve(addr, size)) {
		tried[n++] = addr;
		err = n == TRIES ? cudaErrorMemoryAllocation : mirror_reserve(size, align, &addr);
	}
	while (n)
		(void)mirror_unreserve(tried[--n], size);
	if (!err)
		*ptr = addr;
	return err;
}

/* The wanted address is a hint, which the mirror cannot follow. */
CUresult cuMemAddressReserve(CUdeviceptr *ptr, size_t size, size_t alignment, CUdeviceptr addr,
			     unsigned long long flags)
{
	(void)addr;
	return QCUL_STARTED(ptr && size && !flags ? reserve_virtual_range(ptr, size, alignment)
						  : cudaErrorInvalidValue);
}

static cudaError_t unreserve(uint64_t addr, size_t size)
{
	cudaError_t err = qcul_ready();

	return err ? err : mirror_unreserve(addr, size);
}

CUresult cuMemAddressFree(CUdeviceptr ptr, size_t size)
{
	return QCUL_STARTED(unreserve(ptr, size));
}

/* ---- memory ---- */

struct qcul_phys *qcul_phys_find(CUmemGenericAllocationHandle handle)
{
	struct qcul_phys *p;

	LIST_FOREACH(p, &all, link)
		if ((MARK | p->mem) == handle && p->handles)
			return p;
	return NULL;
}

struct qcul_phys *qcul_phys_shared(const struct qcu_ipc_token *token)
{
	struct qcul_phys *p;

	LIST_FOREACH(p, &all, link)
		if (p->shared && !memcmp(&p->token, token, sizeof(*token)))
			return p;
	return NULL;
}

CUmemGenericAllocationHandle qcul_phys_handle(struct qcul_phys *p)
{
	p->handles++;
	return MARK | p->mem;
}

/* 0: all numbers are in use. */
static uint32_t new_number(void)
{
	uint32_t tries, id;

	for (tries = QCU_ID_FIRST; tries <= QCU_ID_MAX; tries++) {
		id = next;
		next = next < QCU_ID_MAX ? next + 1 : QCU_ID_FIRST;
		if (!taken[id])
			return id;
	}
	return 0;
}

cudaError_t qcul_phys_new(struct qCUcmd *cmd, uint32_t *number, size_t size,
			  const CUmemAllocationProp *prop, struct qcul_phys **out)
{
	struct qcul_phys *p = calloc(1, sizeof(*p));
	uint32_t mem = new_number();
	cudaError_t err;

	if (!p || !mem) {
		free(p);
		return cudaErrorMemoryAllocation;
	}
	*number = mem;
	err = qcul_send(cmd, 1);
	if (err) {
		free(p);
		return err;
	}
	p->mem = mem;
	p->size = size;
	p->prop = *prop;
	taken[mem] = 1;
	LIST_INSERT_HEAD(&all, p, link);
	*out = p;
	return cudaSuccess;
}

/* A handle or a mapping is gone. */
static cudaError_t let_go(struct qcul_phys *p)
{
	struct qCUcmd cmd;

	if (p->handles || p->maps)
		return cudaSuccess;
	cmd = command(QCU_OP_PHYS_RELEASE, p->prop.location.id);
	cmd.phys_release.mem = p->mem;
	taken[p->mem] = 0;
	LIST_REMOVE(p, link);
	free(p);
	return qcul_send(&cmd, 1);
}

static cudaError_t check_virtual_location(const CUmemLocation *where)
{
	static atomic_flag said = ATOMIC_FLAG_INIT;

	switch ((int)where->type) {
	case CU_MEM_LOCATION_TYPE_DEVICE:
		return where->id >= 0 && where->id < qcul_device_count() ? cudaSuccess
									 : cudaErrorInvalidDevice;
	case CU_MEM_LOCATION_TYPE_HOST:
	case CU_MEM_LOCATION_TYPE_HOST_NUMA:
	case CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT:
		return qcul_unsupported("virtual memory of the host", &said);
	}
	return cudaErrorInvalidValue;
}

static cudaError_t check_prop(const CUmemAllocationProp *prop)
{
	static atomic_flag said = ATOMIC_FLAG_INIT, said_use = ATOMIC_FLAG_INIT;
	cudaError_t err = qcul_ready();

	if (err)
		return err;
	if (!prop || prop->type != CU_MEM_ALLOCATION_TYPE_PINNED)
		return cudaErrorInvalidValue;
	err = check_virtual_location(&prop->location);
	if (err)
		return err;
	if (prop->requestedHandleTypes & ~(unsigned int)CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
		return qcul_unsupported("virtual memory shared other than by file descriptors",
					&said);
	if (prop->allocFlags.usage)
		return qcul_unsupported("virtual memory for sparse arrays", &said_use);
	return cudaSuccess;
}

static cudaError_t create_phys_memory(CUmemGenericAllocationHandle *handle, size_t size,
				      const CUmemAllocationProp *prop)
{
	cudaError_t err = check_prop(prop);
	CUmemAllocationProp own;
	struct qcul_phys *p;
	struct qCUcmd cmd;

	if (err)
		return err;
	/* Compression is a wish, which is not granted. */
	own = *prop;
	own.allocFlags.compressionType = 0;
	cmd = command(QCU_OP_PHYS_CREATE, prop->location.id);
	cmd.phys_create.size = size;
	cmd.phys_create.flags = prop->requestedHandleTypes ? QCU_PHYS_SHAREABLE : 0;
	err = qcul_phys_new(&cmd, &cmd.phys_create.mem, size, &own, &p);
	if (!err)
		*handle = qcul_phys_handle(p);
	return err;
}

#define LOCKED(call)                   \
	({                             \
		cudaError_t result_;   \
                                       \
		qcul_virtual_lock();   \
		result_ = (call);      \
		qcul_virtual_unlock(); \
		result_;               \
	})

CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t size,
		     const CUmemAllocationProp *prop, unsigned long long flags)
{
	return QCUL_STARTED(handle && size && !flags
				    ? LOCKED(create_phys_memory(handle, size, prop))
				    : cudaErrorInvalidValue);
}

static cudaError_t release_phys_handle(CUmemGenericAllocationHandle handle)
{
	struct qcul_phys *p = qcul_phys_find(handle);

	if (!p)
		return cudaErrorInvalidValue;
	p->handles--;
	return let_go(p);
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle)
{
	return QCUL_STARTED(LOCKED(release_phys_handle(handle)));
}

static cudaError_t granularity(size_t *bytes, const CUmemAllocationProp *prop, bool recommended)
{
	cudaError_t err = check_prop(prop);
	struct qCUcmd cmd;

	if (err)
		return err;
	cmd = command(QCU_OP_PHYS_GRAIN, prop->location.id);
	cmd.phys_grain.recommended = recommended;
	err = qcul_send(&cmd, 1);
	if (!err)
		*bytes = cmd.phys_grain.bytes;
	return err;
}

CUresult cuMemGetAllocationGranularity(size_t *bytes, const CUmemAllocationProp *prop,
				       CUmemAllocationGranularity_flags option)
{
	bool known = option == CU_MEM_ALLOC_GRANULARITY_MINIMUM ||
		     option == CU_MEM_ALLOC_GRANULARITY_RECOMMENDED;

	return QCUL_STARTED(
		bytes && known
			? granularity(bytes, prop, option == CU_MEM_ALLOC_GRANULARITY_RECOMMENDED)
			: cudaErrorInvalidValue);
}

static cudaError_t get_phys_properties(CUmemAllocationProp *prop,
				       CUmemGenericAllocationHandle handle)
{
	const struct qcul_phys *p = qcul_phys_find(handle);

	if (p)
		*prop = p->prop;
	return p ? cudaSuccess : cudaErrorInvalidValue;
}

CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp *prop,
						CUmemGenericAllocationHandle handle)
{
	return QCUL_STARTED(prop ? LOCKED(get_phys_properties(prop, handle))
				 : cudaErrorInvalidValue);
}

static cudaError_t retain(CUmemGenericAllocationHandle *handle, uint64_t addr)
{
	struct mapping *m = mapping_at(addr);

	if (m)
		*handle = qcul_phys_handle(m->mem);
	return m ? cudaSuccess : cudaErrorInvalidValue;
}

CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle, void *addr)
{
	return QCUL_STARTED(handle ? LOCKED(retain(handle, (uint64_t)(uintptr_t)addr))
				   : cudaErrorInvalidValue);
}

/* ---- mappings ---- */

static bool know(const struct mapping *m)
{
	const struct qcul_range range = {
		.kind = QCUL_MEM_DEVICE,
		.start = m->addr,
		.len = m->size,
		.flags = QCUL_MEM_MAPPED,
		.device = m->mem->prop.location.id,
		.epoch = qcul_epoch(),
	};

	return qcul_mem_add(&range);
}

static cudaError_t mirror_unmap(uint64_t addr, size_t size)
{
	struct qCUcmd cmd = qcul_cmd(QCU_OP_PHYS_UNMAP);

	cmd.phys_unmap.addr = addr;
	cmd.phys_unmap.size = size;
	return qcul_send(&cmd, 1);
}

static cudaError_t map_phys_memory(uint64_t addr, size_t size, size_t offset,
				   CUmemGenericAllocationHandle handle)
{
	struct qcul_phys *p = qcul_phys_find(handle);
	cudaError_t err = qcul_ready();
	struct mapping *m;
	struct qCUcmd cmd;

	if (err || !p)
		return err ? err : cudaErrorInvalidValue;
	/* Memory is mapped as a whole, as with NVIDIA's driver. */
	if (offset || size != p->size)
		return cudaErrorNotSupported;
	m = malloc(sizeof(*m));
	if (!m)
		return cudaErrorMemoryAllocation;
	*m = (struct mapping){.addr = addr, .size = size, .mem = p};
	cmd = command(QCU_OP_PHYS_MAP, p->prop.location.id);
	cmd.phys_map.addr = addr;
	cmd.phys_map.size = size;
	cmd.phys_map.offset = offset;
	cmd.phys_map.mem = p->mem;
	err = qcul_send(&cmd, 1);
	if (err) {
		free(m);
		return err;
	}
	if (!tsearch(m, &mappings, compare_mappings)) {
		(void)mirror_unmap(addr, size);
		free(m);
		return cudaErrorMemoryAllocation;
	}
	if (!know(m)) {
		(void)mirror_unmap(addr, size);
		tdelete(m, &mappings, compare_mappings);
		free(m);
		return cudaErrorMemoryAllocation;
	}
	p->maps++;
	return cudaSuccess;
}

CUresult cuMemMap(CUdeviceptr ptr, size_t size, size_t offset, CUmemGenericAllocationHandle handle,
		  unsigned long long flags)
{
	return QCUL_STARTED(flags ? cudaErrorInvalidValue
				  : LOCKED(map_phys_memory(ptr, size, offset, handle)));
}

/* The mirror has unmapped all in the range. */
static void drop_mappings(uint64_t addr, size_t size)
{
	struct qcul_range range;
	struct mapping *m;
	uint64_t end = addr + size;

	for (; addr < end && (m = mapping_at(addr)); addr += range.len) {
		range.len = m->size;
		(void)qcul_mem_take(m->addr, QCUL_MEM_DEVICE, &range);
		range.len = m->size;
		tdelete(m, &mappings, compare_mappings);
		m->mem->maps--;
		(void)let_go(m->mem);
		free(m);
	}
}

static cudaError_t unmap_virtual_range(uint64_t addr, size_t size)
{
	cudaError_t err = qcul_ready();

	if (!err)
		err = mirror_unmap(addr, size);
	if (!err)
		drop_mappings(addr, size);
	return err;
}

CUresult cuMemUnmap(CUdeviceptr ptr, size_t size)
{
	return QCUL_STARTED(LOCKED(unmap_virtual_range(ptr, size)));
}

static cudaError_t set_range_access(uint64_t addr, size_t size, const CUmemAccessDesc *desc,
				    size_t count)
{
	cudaError_t err = qcul_ready();
	struct qCUcmd cmd;
	size_t i;

	for (i = 0; i < count && !err; i++)
		err = check_virtual_location(&desc[i].location);
	for (i = 0; i < count && !err; i++) {
		cmd = qcul_cmd(QCU_OP_PHYS_ACCESS_SET);
		cmd.phys_access_set.addr = addr;
		cmd.phys_access_set.size = size;
		cmd.phys_access_set.peer = qcul_device_ordinal(desc[i].location.id);
		cmd.phys_access_set.flags = desc[i].flags;
		err = qcul_send(&cmd, 1);
	}
	return err;
}

CUresult cuMemSetAccess(CUdeviceptr ptr, size_t size, const CUmemAccessDesc *desc, size_t count)
{
	return QCUL_STARTED(desc && count ? set_range_access(ptr, size, desc, count)
					  : cudaErrorInvalidValue);
}

static cudaError_t get_access(unsigned long long *flags, const CUmemLocation *where, uint64_t addr)
{
	struct qCUcmd cmd = qcul_cmd(QCU_OP_PHYS_ACCESS_GET);
	cudaError_t err = qcul_ready();

	if (!err)
		err = check_virtual_location(where);
	if (err)
		return err;
	cmd.phys_access_get.addr = addr;
	cmd.phys_access_get.peer = qcul_device_ordinal(where->id);
	err = qcul_send(&cmd, 1);
	if (!err)
		*flags = cmd.phys_access_get.flags;
	return err;
}

CUresult cuMemGetAccess(unsigned long long *flags, const CUmemLocation *location, CUdeviceptr ptr)
{
	return QCUL_STARTED(flags && location ? get_access(flags, location, ptr)
					      : cudaErrorInvalidValue);
}

/* ---- for external_memory.c ---- */

cudaError_t qcul_virtual_release(CUmemGenericAllocationHandle handle)
{
	return LOCKED(release_phys_handle(handle));
}

static cudaError_t view(CUmemGenericAllocationHandle handle, uint64_t *addr, uint64_t *size)
{
	const struct qcul_phys *p = qcul_phys_find(handle);
	CUmemAccessDesc desc = {.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
	CUdeviceptr ptr;
	cudaError_t err;

	if (!p)
		return cudaErrorInvalidValue;
	desc.location = p->prop.location;
	*size = p->size;
	err = reserve_virtual_range(&ptr, *size, 0);
	if (err)
		return err;
	err = map_phys_memory(ptr, *size, 0, handle);
	if (!err) {
		err = set_range_access(ptr, *size, &desc, 1);
		if (err)
			(void)unmap_virtual_range(ptr, *size);
	}
	if (err)
		(void)mirror_unreserve(ptr, *size);
	*addr = ptr;
	return err;
}

cudaError_t qcul_virtual_view(CUmemGenericAllocationHandle handle, uint64_t *addr, uint64_t *size)
{
	return LOCKED(view(handle, addr, size));
}

static cudaError_t make_mipmap_in_phys(CUmemGenericAllocationHandle handle,
				       const struct cudaExternalMemoryMipmappedArrayDesc *desc,
				       cudaMipmappedArray_t *out)
{
	const struct qcul_phys *p = qcul_phys_find(handle);

	if (!p)
		return cudaErrorInvalidValue;
	return qcul_mipmap_in(p->mem, desc->offset, &desc->formatDesc, desc->extent,
			      desc->numLevels, desc->flags, out);
}

cudaError_t qcul_virtual_mipmap(CUmemGenericAllocationHandle handle,
				const struct cudaExternalMemoryMipmappedArrayDesc *desc,
				cudaMipmappedArray_t *out)
{
	return LOCKED(make_mipmap_in_phys(handle, desc, out));
}

cudaError_t qcul_virtual_close(uint64_t addr, uint64_t size)
{
	cudaError_t err = LOCKED(unmap_virtual_range(addr, size));

	return err ? err : unreserve(addr, size);
}
