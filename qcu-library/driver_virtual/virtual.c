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

/* How many other addresses to try if this process already uses the addresses of the first. */
#define TRIES 8
/* A handle is the mirror's number with a tag, so that small numbers are no handles. */
#define HANDLE_TAG 0x7163750000000000ull

struct mapping {
	uint64_t addr, size;
	struct qcul_phys *mem;
};

static struct {
	LIST_HEAD(, qcul_phys) all;
	void *mappings; /* tree by address */
	uint8_t taken[QCU_ID_MAX + 1];
} session;
static struct {
	uint32_t next;
} process = {.next = QCU_ID_FIRST};

static void free_virtual_memory(void);
QCUL_AT_FORK(QCUL_FORK_VIRTUAL, .forget = free_virtual_memory, QCUL_SESSION)

void qcul_virtual_lock(void)
{
	pthread_mutex_lock(&at_fork.lock);
}

void qcul_virtual_unlock(void)
{
	pthread_mutex_unlock(&at_fork.lock);
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
	struct mapping **node = tfind(&key, &session.mappings, compare_mappings);

	return node ? *node : NULL;
}

/* The child has no session, and so none of the memory. */
static void free_virtual_memory(void)
{
	struct qcul_phys *p;
	struct mapping *m;

	while (session.mappings) {
		m = *(struct mapping **)session.mappings;
		tdelete(m, &session.mappings, compare_mappings);
		free(m);
	}
	while ((p = LIST_FIRST(&session.all))) {
		LIST_REMOVE(p, link);
		free(p);
	}
}

/* ---- addresses ---- */

/* The addresses must be free in this process, too, so that a pointer says what it points to. */
static cudaError_t reserve_virtual_range(CUdeviceptr *ptr, size_t size, size_t align)
{
	uint64_t tried[TRIES], addr = 0;
	cudaError_t err = qcul_ready();
	unsigned int n = 0;

	if (!err)
		err = qcul_ask_va_reserve(qcul_self.device, size, align, &addr);
	while (!err && !qcul_reserve(addr, size)) {
		tried[n++] = addr;
		err = n == TRIES ? cudaErrorMemoryAllocation
				 : qcul_ask_va_reserve(qcul_self.device, size, align, &addr);
	}
	while (n)
		(void)qcul_ask_va_free(qcul_self.device, tried[--n], size);
	if (!err)
		*ptr = addr;
	return err;
}

/* The wanted address is a hint, which the mirror cannot follow. */
CUresult cuMemAddressReserve(CUdeviceptr *ptr, size_t size, size_t alignment, CUdeviceptr addr,
			     unsigned long long flags)
{
	(void)addr;
	return QCUL_RUNTIME(ptr && size && !flags ? reserve_virtual_range(ptr, size, alignment)
						  : cudaErrorInvalidValue);
}

static cudaError_t unreserve(uint64_t addr, size_t size)
{
	cudaError_t err = qcul_ready();

	return err ? err : qcul_ask_va_free(qcul_self.device, addr, size);
}

CUresult cuMemAddressFree(CUdeviceptr ptr, size_t size)
{
	return QCUL_RUNTIME(unreserve(ptr, size));
}

/* ---- memory ---- */

struct qcul_phys *qcul_phys_find(CUmemGenericAllocationHandle handle)
{
	struct qcul_phys *p;

	LIST_FOREACH(p, &session.all, link)
		if ((HANDLE_TAG | p->mem) == handle && p->handles)
			return p;
	return NULL;
}

struct qcul_phys *qcul_phys_shared(const struct qcu_ipc_token *token)
{
	struct qcul_phys *p;

	LIST_FOREACH(p, &session.all, link)
		if (p->shared && !memcmp(&p->token, token, sizeof(*token)))
			return p;
	return NULL;
}

CUmemGenericAllocationHandle qcul_phys_handle(struct qcul_phys *p)
{
	p->handles++;
	return HANDLE_TAG | p->mem;
}

/* 0: all numbers are in use. */
static uint32_t new_number(void)
{
	uint32_t tries, id;

	for (tries = QCU_ID_FIRST; tries <= QCU_ID_MAX; tries++) {
		id = process.next;
		process.next = process.next < QCU_ID_MAX ? process.next + 1 : QCU_ID_FIRST;
		if (!session.taken[id])
			return id;
	}
	return 0;
}

struct qcul_phys *qcul_phys_new(const CUmemAllocationProp *prop)
{
	struct qcul_phys *p = calloc(1, sizeof(*p));
	uint32_t mem = new_number();

	if (!p || !mem) {
		free(p);
		return NULL;
	}
	p->mem = mem;
	p->prop = *prop;
	return p;
}

void qcul_phys_made(struct qcul_phys *p)
{
	session.taken[p->mem] = 1;
	LIST_INSERT_HEAD(&session.all, p, link);
}

/* A handle or a mapping is gone. */
static cudaError_t let_go(struct qcul_phys *p)
{
	cudaError_t err;

	if (p->handles || p->maps)
		return cudaSuccess;
	err = qcul_ask_phys_release(p->prop.location.id, p->mem);
	session.taken[p->mem] = 0;
	LIST_REMOVE(p, link);
	free(p);
	return err;
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
	uint32_t flags = 0, compressible;
	cudaError_t err = check_prop(prop);
	struct qcul_phys *p;

	if (err)
		return err;
	p = qcul_phys_new(prop);
	if (!p)
		return cudaErrorMemoryAllocation;
	p->size = size;
	if (prop->requestedHandleTypes)
		flags |= QCU_PHYS_SHAREABLE;
	if (prop->allocFlags.compressionType == CU_MEM_ALLOCATION_COMP_GENERIC)
		flags |= QCU_PHYS_COMPRESSIBLE;
	err = qcul_ask_phys_create(prop->location.id, size, p->mem, flags, &compressible);
	if (err) {
		free(p);
		return err;
	}
	/* Compression is a wish. */
	p->prop.allocFlags.compressionType =
		compressible ? CU_MEM_ALLOCATION_COMP_GENERIC : CU_MEM_ALLOCATION_COMP_NONE;
	qcul_phys_made(p);
	*handle = qcul_phys_handle(p);
	return cudaSuccess;
}

CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t size,
		     const CUmemAllocationProp *prop, unsigned long long flags)
{
	return QCUL_RUNTIME(handle && size && !flags
				    ? QCUL_LOCKED(create_phys_memory(handle, size, prop))
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
	return QCUL_RUNTIME(QCUL_LOCKED(release_phys_handle(handle)));
}

static cudaError_t granularity(size_t *bytes, const CUmemAllocationProp *prop, bool recommended)
{
	cudaError_t err = check_prop(prop);

	return err ? err : qcul_ask_phys_grain(prop->location.id, recommended, bytes);
}

CUresult cuMemGetAllocationGranularity(size_t *bytes, const CUmemAllocationProp *prop,
				       CUmemAllocationGranularity_flags option)
{
	bool known = option == CU_MEM_ALLOC_GRANULARITY_MINIMUM ||
		     option == CU_MEM_ALLOC_GRANULARITY_RECOMMENDED;

	return QCUL_RUNTIME(
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
	return QCUL_RUNTIME(prop ? QCUL_LOCKED(get_phys_properties(prop, handle))
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
	return QCUL_RUNTIME(handle ? QCUL_LOCKED(retain(handle, (uint64_t)(uintptr_t)addr))
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

static cudaError_t map_phys_memory(uint64_t addr, size_t size, size_t offset,
				   CUmemGenericAllocationHandle handle)
{
	struct qcul_phys *p = qcul_phys_find(handle);
	cudaError_t err = qcul_ready();
	struct mapping *m;

	if (err || !p)
		return err ? err : cudaErrorInvalidValue;
	/* Memory is mapped as a whole, as with NVIDIA's driver. */
	if (offset || size != p->size)
		return cudaErrorNotSupported;
	m = malloc(sizeof(*m));
	if (!m)
		return cudaErrorMemoryAllocation;
	*m = (struct mapping){.addr = addr, .size = size, .mem = p};
	err = qcul_ask_phys_map(p->prop.location.id, addr, size, offset, p->mem);
	if (err) {
		free(m);
		return err;
	}
	if (!tsearch(m, &session.mappings, compare_mappings)) {
		(void)qcul_ask_phys_unmap(qcul_self.device, addr, size);
		free(m);
		return cudaErrorMemoryAllocation;
	}
	if (!know(m)) {
		(void)qcul_ask_phys_unmap(qcul_self.device, addr, size);
		tdelete(m, &session.mappings, compare_mappings);
		free(m);
		return cudaErrorMemoryAllocation;
	}
	p->maps++;
	return cudaSuccess;
}

CUresult cuMemMap(CUdeviceptr ptr, size_t size, size_t offset, CUmemGenericAllocationHandle handle,
		  unsigned long long flags)
{
	return QCUL_RUNTIME(flags ? cudaErrorInvalidValue
				  : QCUL_LOCKED(map_phys_memory(ptr, size, offset, handle)));
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
		tdelete(m, &session.mappings, compare_mappings);
		m->mem->maps--;
		(void)let_go(m->mem);
		free(m);
	}
}

static cudaError_t unmap_virtual_range(uint64_t addr, size_t size)
{
	cudaError_t err = qcul_ready();

	if (!err)
		err = qcul_ask_phys_unmap(qcul_self.device, addr, size);
	if (!err)
		drop_mappings(addr, size);
	return err;
}

CUresult cuMemUnmap(CUdeviceptr ptr, size_t size)
{
	return QCUL_RUNTIME(QCUL_LOCKED(unmap_virtual_range(ptr, size)));
}

static cudaError_t set_range_access(uint64_t addr, size_t size, const CUmemAccessDesc *desc,
				    size_t count)
{
	cudaError_t err = qcul_ready();
	size_t i;

	for (i = 0; i < count && !err; i++)
		err = check_virtual_location(&desc[i].location);
	for (i = 0; i < count && !err; i++)
		err = qcul_ask_phys_access_set(qcul_self.device, addr, size,
					       qcul_device_ordinal(desc[i].location.id),
					       desc[i].flags);
	return err;
}

CUresult cuMemSetAccess(CUdeviceptr ptr, size_t size, const CUmemAccessDesc *desc, size_t count)
{
	return QCUL_RUNTIME(desc && count ? set_range_access(ptr, size, desc, count)
					  : cudaErrorInvalidValue);
}

static cudaError_t get_access(unsigned long long *flags, const CUmemLocation *where, uint64_t addr)
{
	cudaError_t err = qcul_ready();
	uint32_t access;

	if (!err)
		err = check_virtual_location(where);
	if (!err)
		err = qcul_ask_phys_access_get(qcul_self.device, addr,
					       qcul_device_ordinal(where->id), &access);
	if (!err)
		*flags = access;
	return err;
}

CUresult cuMemGetAccess(unsigned long long *flags, const CUmemLocation *location, CUdeviceptr ptr)
{
	return QCUL_RUNTIME(flags && location ? get_access(flags, location, ptr)
					      : cudaErrorInvalidValue);
}

/* ---- for external_memory.c ---- */

cudaError_t qcul_virtual_release(CUmemGenericAllocationHandle handle)
{
	return QCUL_LOCKED(release_phys_handle(handle));
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
		(void)qcul_ask_va_free(qcul_self.device, ptr, *size);
	*addr = ptr;
	return err;
}

cudaError_t qcul_virtual_view(CUmemGenericAllocationHandle handle, uint64_t *addr, uint64_t *size)
{
	return QCUL_LOCKED(view(handle, addr, size));
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
	return QCUL_LOCKED(make_mipmap_in_phys(handle, desc, out));
}

cudaError_t qcul_virtual_close(uint64_t addr, uint64_t size)
{
	cudaError_t err = QCUL_LOCKED(unmap_virtual_range(addr, size));

	return err ? err : unreserve(addr, size);
}
