// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Stream-ordered memory and its pools. A cudaMemPool_t is the address of a slot. A default pool
 * always exists and has its slot in an array indexed by device. Other pools have a slot in a table
 * like that of streams. The mirror allocates and frees the memory in the order of the stream.
 */
#include <string.h>

#include "qcu-library/memory/memory.h"
#include "qcu-library/link/ask.h"
#include "qcu-library/link/capture.h"
#include "qcu-library/link/fork.h"

static const char default_pools[QCUL_DEVICES]; /* only their addresses are used */
static struct {
	/* Number of the pool that cudaMallocAsync uses; 0: the default pool. */
	atomic_uint current[QCUL_DEVICES];
} session;

/* The numbers are given to other pools then. */
static void forget_current_pool(int device)
{
	if (device >= 0)
		atomic_store(&session.current[device], 0);
}
QCUL_AT_FORK(QCUL_FORK_CURRENT_POOLS, .reset = forget_current_pool, QCUL_SESSION)

static bool is_shared(uint32_t id)
{
	return id && qcul_pools.slots[id].flags & QCUL_POOL_SHARED;
}

struct pool {
	uint32_t id; /* 0: the default pool */
	int device;
};

static cudaError_t pool_of(cudaMemPool_t handle, struct pool *p)
{
	uintptr_t device = (uintptr_t)handle - (uintptr_t)default_pools;
	cudaError_t err = qcul_ready();

	if (err)
		return err;
	if (device < (uintptr_t)qcul_device_count()) {
		*p = (struct pool){.device = (int)device};
		return cudaSuccess;
	}
	p->id = qcul_handle_id(&qcul_pools, handle);
	if (!p->id)
		return cudaErrorInvalidValue;
	p->device = qcul_pools.slots[p->id].device;
	return cudaSuccess;
}

static cudaMemPool_t handle_of(uint32_t id, int device)
{
	return id ? (cudaMemPool_t)&qcul_pools.slots[id] : (cudaMemPool_t)&default_pools[device];
}

/* Returns 0, the default pool, if the device's pool has been destroyed. */
static uint32_t current_pool(int device)
{
	uint32_t id = atomic_load(&session.current[device]);

	if (id && qcul_handle_id(&qcul_pools, &qcul_pools.slots[id]))
		return id;
	return 0;
}

/* ---- memory ---- */

/* `captured`: work for this stream goes into a graph. */
static cudaError_t stream_for(cudaStream_t stream, uint32_t *id, int *device, bool *captured)
{
	cudaError_t err = qcul_ready();

	if (!err)
		err = qcul_stream_id(stream, id);
	if (err)
		return err;
	*device = *id < QCU_ID_FIRST ? qcul_self.device : qcul_streams.slots[*id].device;
	*captured = qcul_captured(stream, &err);
	return err;
}

/*
 * Adds a node that allocates what the call would allocate. All devices that may use the pool's
 * memory may use the node's memory.
 */
static cudaError_t capture_malloc(void **ptr, size_t size, uint32_t pool, int device,
				  cudaStream_t stream)
{
	struct cudaMemAccessDesc access[QCUL_DEVICES];
	struct cudaMemAllocNodeParams params = {
		.poolProps.allocType = cudaMemAllocationTypePinned,
		.poolProps.location = {.type = cudaMemLocationTypeDevice, .id = device},
		.accessDescs = access,
		.bytesize = size,
	};
	struct cudaMemLocation peer = {.type = cudaMemLocationTypeDevice};
	enum cudaMemAccessFlags flags;
	cudaError_t err = cudaSuccess;

	for (peer.id = 0; peer.id < qcul_device_count() && !err; peer.id++) {
		if (peer.id == device)
			continue;
		err = cudaMemPoolGetAccess(&flags, handle_of(pool, device), &peer);
		if (!err && flags == cudaMemAccessFlagsProtReadWrite)
			access[params.accessDescCount++] = (struct cudaMemAccessDesc){peer, flags};
	}
	if (!err)
		err = qcul_capture_alloc(stream, &params);
	if (!err)
		*ptr = params.dptr;
	return err;
}

static cudaError_t capture_free(void *ptr, cudaStream_t stream)
{
	const struct cudaGraphNodeParams node = {
		.type = cudaGraphNodeTypeMemFree,
		.free.dptr = ptr,
	};

	return qcul_capture_node(stream, &node);
}

static cudaError_t malloc_async(void **ptr, size_t size, cudaStream_t stream)
{
	struct qcul_pool_use from;
	bool captured;
	cudaError_t err = cudaErrorInvalidValue;

	if (ptr)
		err = stream_for(stream, &from.stream, &from.device, &captured);
	if (err)
		return err;
	from.pool = current_pool(from.device);
	if (captured)
		return capture_malloc(ptr, size, from.pool, from.device, stream);
	if (is_shared(from.pool))
		return qcul_pool_sharing->alloc(ptr, size, from.pool, stream);
	return qcul_device_alloc(ptr, size, &from);
}

cudaError_t cudaMallocAsync(void **ptr, size_t size, cudaStream_t stream)
{
	return qcul_done(malloc_async(ptr, size, stream));
}

static cudaError_t malloc_from(void **ptr, size_t size, cudaMemPool_t pool, cudaStream_t stream)
{
	struct qcul_pool_use from;
	struct pool p;
	bool captured;
	cudaError_t err = ptr ? pool_of(pool, &p) : cudaErrorInvalidValue;

	if (!err)
		err = stream_for(stream, &from.stream, &from.device, &captured);
	if (err)
		return err;
	if (captured)
		return capture_malloc(ptr, size, p.id, p.device, stream);
	if (is_shared(p.id))
		return qcul_pool_sharing->alloc(ptr, size, p.id, stream);
	from.pool = p.id;
	from.device = p.device;
	return qcul_device_alloc(ptr, size, &from);
}

cudaError_t cudaMallocFromPoolAsync(void **ptr, size_t size, cudaMemPool_t pool,
				    cudaStream_t stream)
{
	return qcul_done(malloc_from(ptr, size, pool, stream));
}

static cudaError_t free_in_stream(void *ptr, cudaStream_t stream)
{
	struct qcul_range range;
	struct qCUcmd cmd;
	uint32_t id;
	int device;
	bool captured;
	cudaError_t err = stream_for(stream, &id, &device, &captured);

	if (err || !ptr)
		return err;
	if (captured)
		return capture_free(ptr, stream);
	if (qcul_graph_memory_is(ptr))
		return qcul_graph_memory_free_async(ptr, stream);
	/* Memory of cudaMalloc cannot be freed in this way. It stays allocated. */
	range = qcul_mem_find(ptr);
	if (!qcul_range_has(&range, QCUL_MEM_POOLED))
		return cudaErrorInvalidValue;
	if (qcul_range_has(&range, QCUL_MEM_SHARED))
		return range.start == (uint64_t)(uintptr_t)ptr
			       ? qcul_pool_sharing->free_async(&range, stream)
			       : cudaErrorInvalidValue;
	/*
	 * Remove it from memmap.c first: once it is free, another thread may get the same address.
	 */
	if (!qcul_mem_take((uint64_t)(uintptr_t)ptr, QCUL_MEM_DEVICE, &range))
		return cudaErrorInvalidValue;
	cmd = qcul_cmd(QCU_OP_FREE_ASYNC);
	cmd.free_async.ptr = range.start;
	cmd.free_async.stream = id;
	return qcul_post(&cmd, 1);
}

cudaError_t cudaFreeAsync(void *ptr, cudaStream_t stream)
{
	return qcul_done(free_in_stream(ptr, stream));
}

/* ---- pools ---- */

cudaError_t qcul_pool_check(const struct cudaMemPoolProps *props)
{
	static atomic_flag said = ATOMIC_FLAG_INIT;
	static const unsigned char zero[sizeof(props->reserved)];

	if (memcmp(props->reserved, zero, sizeof(zero)) != 0)
		return cudaErrorInvalidValue;
	if (props->handleTypes & ~(unsigned int)cudaMemHandleTypePosixFileDescriptor)
		return qcul_unsupported("cudaMemPoolCreate of a pool to be shared by anything but "
					"a file descriptor",
					&said);
	if (props->allocType != cudaMemAllocationTypePinned)
		return props->allocType == cudaMemAllocationTypeManaged
			       ? qcul_unsupported("cudaMemPoolCreate of managed memory", &said)
			       : cudaErrorInvalidValue;
	if (props->location.type != cudaMemLocationTypeDevice)
		return props->location.type > cudaMemLocationTypeDevice
			       ? qcul_unsupported("cudaMemPoolCreate of host memory", &said)
			       : cudaErrorInvalidValue;
	return qcul_device_ready(props->location.id);
}

static cudaError_t create_mem_pool(cudaMemPool_t *pool, const struct cudaMemPoolProps *props)
{
	struct pool p;
	struct qcul_handle *slot;
	cudaError_t err = pool && props ? qcul_ready() : cudaErrorInvalidValue;

	if (!err)
		err = qcul_pool_check(props);
	if (err)
		return err;
	slot = qcul_handle_new(&qcul_pools, &p.id);
	if (!slot)
		return cudaErrorMemoryAllocation;
	slot->device = p.device = props->location.id;
	slot->flags = props->handleTypes ? QCUL_POOL_SHARED : 0;
	err = qcul_ask_pool_create(p.device, p.id, props->maxSize);
	if (!err && props->handleTypes && !qcul_pool_sharing->made(p.id, props)) {
		(void)qcul_ask_pool_destroy(p.device, p.id);
		err = cudaErrorMemoryAllocation;
	}
	if (err)
		qcul_handle_drop(&qcul_pools, p.id);
	else
		*pool = (cudaMemPool_t)slot;
	return err;
}

cudaError_t cudaMemPoolCreate(cudaMemPool_t *pool, const struct cudaMemPoolProps *props)
{
	return qcul_done(create_mem_pool(pool, props));
}

cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool)
{
	struct pool p;
	cudaError_t err = pool_of(pool, &p);

	if (!err && !p.id)
		err = cudaErrorInvalidValue;
	if (err)
		return qcul_done(err);
	if (is_shared(p.id))
		qcul_pool_sharing->gone(p.id);
	err = qcul_ask_pool_destroy(p.device, p.id);
	atomic_compare_exchange_strong(&session.current[p.device], &(unsigned int){p.id}, 0);
	qcul_handle_drop(&qcul_pools, p.id);
	return qcul_done(err);
}

/* The first three attributes are int, the others have 64 bits. */
static bool is_int(enum cudaMemPoolAttr attr)
{
	return attr <= cudaMemPoolReuseAllowInternalDependencies;
}

cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, enum cudaMemPoolAttr attr, void *value)
{
	uint64_t number;
	struct pool p;
	cudaError_t err = value ? pool_of(pool, &p) : cudaErrorInvalidValue;

	if (err)
		return qcul_done(err);
	if (is_int(attr))
		number = (uint64_t)(int64_t) * (int *)value;
	else
		memcpy(&number, value, sizeof(number));
	err = qcul_ask_pool_set(p.device, p.id, attr, number);
	if (!err && is_shared(p.id))
		qcul_pool_sharing->reset_high(p.id, attr);
	return qcul_done(err);
}

cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, enum cudaMemPoolAttr attr, void *value)
{
	uint64_t number;
	struct pool p;
	cudaError_t err = value ? pool_of(pool, &p) : cudaErrorInvalidValue;

	if (err)
		return qcul_done(err);
	if (is_shared(p.id) && qcul_pool_sharing->get(p.id, attr, value))
		return cudaSuccess;
	err = qcul_ask_pool_get(p.device, p.id, attr, &number);
	if (err)
		return qcul_done(err);
	if (is_int(attr))
		*(int *)value = (int)number;
	else
		memcpy(value, &number, sizeof(number));
	return cudaSuccess;
}

cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t keep)
{
	struct pool p;
	cudaError_t err = pool_of(pool, &p);

	if (!err && is_shared(p.id))
		err = qcul_pool_sharing->trim(p.id, keep);
	return qcul_done(err ? err : qcul_ask_pool_trim(p.device, p.id, keep));
}

static cudaError_t set_pool_access(const struct pool *p, const struct cudaMemAccessDesc *desc)
{
	static atomic_flag said = ATOMIC_FLAG_INIT;
	cudaError_t err;
	int can = 1;

	if (desc->location.type != cudaMemLocationTypeDevice)
		return cudaErrorInvalidValue;
	err = qcul_device_ready(desc->location.id);
	if (!err && desc->location.id != p->device)
		err = cudaDeviceCanAccessPeer(&can, desc->location.id, p->device);
	if (!err && !can)
		err = cudaErrorInvalidDevice;
	if (!err && is_shared(p->id) && desc->location.id != p->device)
		err = qcul_unsupported("access of other devices to a pool that processes share",
				       &said);
	return err ? err
		   : qcul_ask_pool_access_set(p->device, p->id,
					      qcul_device_ordinal(desc->location.id), desc->flags);
}

cudaError_t cudaMemPoolSetAccess(cudaMemPool_t pool, const struct cudaMemAccessDesc *list,
				 size_t count)
{
	struct pool p;
	cudaError_t err = list && count ? pool_of(pool, &p) : cudaErrorInvalidValue;
	size_t i;

	for (i = 0; i < count && !err; i++)
		err = set_pool_access(&p, &list[i]);
	return qcul_done(err);
}

cudaError_t cudaMemPoolGetAccess(enum cudaMemAccessFlags *flags, cudaMemPool_t pool,
				 struct cudaMemLocation *location)
{
	uint32_t access;
	struct pool p;
	cudaError_t err = flags && location ? pool_of(pool, &p) : cudaErrorInvalidValue;

	if (!err && location->type != cudaMemLocationTypeDevice)
		err = cudaErrorInvalidValue;
	if (!err)
		err = qcul_device_ready(location->id);
	if (!err)
		err = qcul_ask_pool_access_get(p.device, p.id, qcul_device_ordinal(location->id),
					       &access);
	if (!err)
		*flags = (enum cudaMemAccessFlags)access;
	return qcul_done(err);
}

/* ---- the pool of a device ---- */

cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t *pool, int device)
{
	cudaError_t err = pool ? qcul_device_ready(device) : cudaErrorInvalidValue;

	if (!err)
		*pool = handle_of(0, device);
	return qcul_done(err);
}

cudaError_t cudaDeviceGetMemPool(cudaMemPool_t *pool, int device)
{
	cudaError_t err = pool ? qcul_device_ready(device) : cudaErrorInvalidValue;

	/* Only this call returns cudaErrorInvalidValue for a wrong device. */
	if (err == cudaErrorInvalidDevice)
		err = cudaErrorInvalidValue;
	if (!err)
		*pool = handle_of(current_pool(device), device);
	return qcul_done(err);
}

cudaError_t cudaDeviceSetMemPool(int device, cudaMemPool_t pool)
{
	struct pool p;
	cudaError_t err = qcul_device_ready(device);

	if (!err)
		err = pool_of(pool, &p);
	if (!err && (p.device != device ||
		     (is_shared(p.id) && qcul_pools.slots[p.id].flags & QCUL_POOL_IMPORTED)))
		err = cudaErrorInvalidValue;
	if (!err)
		atomic_store(&session.current[device], p.id);
	return qcul_done(err);
}

static cudaError_t check_pool_location(const struct cudaMemLocation *location,
				       enum cudaMemAllocationType type)
{
	static atomic_flag said = ATOMIC_FLAG_INIT;

	if (!location || type == cudaMemAllocationTypeInvalid ||
	    location->type == cudaMemLocationTypeInvalid)
		return cudaErrorInvalidValue;
	if (type != cudaMemAllocationTypePinned || location->type != cudaMemLocationTypeDevice)
		return qcul_unsupported("a memory pool of anything but device memory", &said);
	return cudaSuccess;
}

cudaError_t cudaMemGetDefaultMemPool(cudaMemPool_t *pool, struct cudaMemLocation *location,
				     enum cudaMemAllocationType type)
{
	cudaError_t err = check_pool_location(location, type);

	return err ? qcul_done(err) : cudaDeviceGetDefaultMemPool(pool, location->id);
}

cudaError_t cudaMemGetMemPool(cudaMemPool_t *pool, struct cudaMemLocation *location,
			      enum cudaMemAllocationType type)
{
	cudaError_t err = check_pool_location(location, type);

	return err ? qcul_done(err) : cudaDeviceGetMemPool(pool, location->id);
}

cudaError_t cudaMemSetMemPool(struct cudaMemLocation *location, enum cudaMemAllocationType type,
			      cudaMemPool_t pool)
{
	cudaError_t err = check_pool_location(location, type);

	return err ? qcul_done(err) : cudaDeviceSetMemPool(location->id, pool);
}
