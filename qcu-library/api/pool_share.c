// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Memory pools that the processes of one VM share. The memory of such a pool is allocated piece by
 * piece as cudaMalloc does it, because the host can share such memory between mirrors (ipc.c). This
 * file makes a pool of it: an allocation that is freed in a stream's order stays in the pool, with
 * an event that says when the stream has reached the free. Whoever gets the allocation next waits
 * for that event in a stream. Freed allocations go back to the device when the pool is trimmed or
 * destroyed, or when there is no memory left for a new allocation.
 *
 * The file descriptor of a pool is a sealed memfd with the pool's key. It gives nobody access to
 * memory: that takes what cudaMemPoolExportPointer returns, which has the host's secret.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/queue.h>
#include <sys/random.h>
#include <unistd.h>

#include "qcu-library/api/ipc.h"
#include "qcu-library/link/capture.h"
#include "qcu-library/link/fork.h"

#define POOL_MAGIC    0x316c6f6f70637163ull
#define POINTER_MAGIC 0x31727470706c7163ull
#define GRAIN	      ((size_t)64 << 10)

struct pool_file {
	uint64_t magic;
	uint64_t key[2];
	uint64_t device; /* the mirror's number */
};

struct pointer_data {
	uint64_t magic;
	uint64_t key[2];
	struct qcu_ipc_token token;
	uint64_t rsvd[2];
};
_Static_assert(sizeof(struct pointer_data) == sizeof(struct cudaMemPoolPtrExportData), "fills it");

struct pool {
	uint32_t id;
	int device;
	bool imported;
	unsigned int epoch;
	uint64_t key[2];
	uint64_t max; /* 0: no limit */
	uint64_t used, used_high, reserved, reserved_high;
	LIST_ENTRY(pool) link;
};

struct pool_allocation {
	uint64_t addr, size;
	uint32_t pool;	   /* 0: the pool was destroyed */
	cudaEvent_t freed; /* NULL: the program uses the allocation */
	LIST_ENTRY(pool_allocation) link;
};

static struct {
	LIST_HEAD(, pool) pools;
	LIST_HEAD(, pool_allocation) allocations;
} session;

/* The child has no session, and so none of the memory. */
static void free_shared_pools(void)
{
	struct pool *p;
	struct pool_allocation *b;

	while ((p = LIST_FIRST(&session.pools))) {
		LIST_REMOVE(p, link);
		free(p);
	}
	while ((b = LIST_FIRST(&session.allocations))) {
		LIST_REMOVE(b, link);
		free(b);
	}
}

QCUL_AT_FORK(QCUL_FORK_POOLS, .forget = free_shared_pools, QCUL_SESSION)

/* The caller holds the lock, here and in all functions up to the hooks. */
static struct pool *find_pool(uint32_t id)
{
	struct pool *p;

	LIST_FOREACH(p, &session.pools, link)
		if (p->id == id && p->epoch == qcul_epoch())
			return p;
	return NULL;
}

static bool is_pool_allocation(const struct qcul_range *r, uint64_t addr)
{
	return r->start == addr && qcul_range_has(r, QCUL_MEM_SHARED) &&
	       !qcul_range_has(r, QCUL_MEM_IMPORTED);
}

/* False: the allocation is gone, and its event too, because the device was reset. */
static bool is_live_allocation(const struct pool_allocation *b)
{
	struct qcul_range r = qcul_mem_find((const void *)(uintptr_t)b->addr);

	return is_pool_allocation(&r, b->addr);
}

static void drop_allocation(struct pool_allocation *b)
{
	struct pool *p = b->pool ? find_pool(b->pool) : NULL;

	if (p)
		p->reserved -= b->size;
	if (b->freed && is_live_allocation(b))
		(void)cudaEventDestroy(b->freed);
	LIST_REMOVE(b, link);
	free(b);
}

/* The number is given out again, so what is left of an older pool was lost in a reset. */
static void forget_pool(uint32_t id)
{
	struct pool_allocation *b, *next;
	struct pool *p = find_pool(id);

	for (b = LIST_FIRST(&session.allocations); b; b = next) {
		next = LIST_NEXT(b, link);
		if (b->pool == id)
			drop_allocation(b);
	}
	if (p) {
		LIST_REMOVE(p, link);
		free(p);
	}
}

static struct pool *add_pool(uint32_t id, int device)
{
	struct pool *p = calloc(1, sizeof(*p));

	forget_pool(id);
	if (p) {
		*p = (struct pool){.id = id, .device = device, .epoch = qcul_epoch()};
		LIST_INSERT_HEAD(&session.pools, p, link);
	}
	return p;
}

/*
 * Gives an allocation back to the device. The mirror frees it when all work is done; nobody waits
 * for that here, because the lock is held.
 */
static cudaError_t release_allocation(struct pool_allocation *b)
{
	struct qCUcmd cmd = qcul_cmd(QCU_OP_FREE);
	uint64_t addr = b->addr;
	bool there = is_live_allocation(b);
	struct qcul_range r;

	drop_allocation(b);
	if (!there || !qcul_mem_take(addr, QCUL_MEM_DEVICE, &r))
		return cudaSuccess;
	cmd.free.ptr = addr;
	return qcul_post(&cmd, 1);
}

/*
 * Releases freed allocations of the pool until no more than `keep` bytes are reserved. Allocations
 * whose streams have not reached the free yet stay, unless `all` is true.
 */
static cudaError_t trim(struct pool *p, uint64_t keep, bool all)
{
	cudaError_t err = cudaSuccess;
	struct pool_allocation *b, *next;

	for (b = LIST_FIRST(&session.allocations); b && p->reserved > keep && !err; b = next) {
		next = LIST_NEXT(b, link);
		if (b->pool == p->id && b->freed && (all || !cudaEventQuery(b->freed)))
			err = release_allocation(b);
	}
	return err;
}

static struct pool_allocation *best(const struct pool *p, size_t size)
{
	struct pool_allocation *b, *next, *found = NULL;

	for (b = LIST_FIRST(&session.allocations); b; b = next) {
		next = LIST_NEXT(b, link);
		if (!is_live_allocation(b))
			drop_allocation(b);
		else if (b->pool == p->id && b->freed && b->size >= size && b->size / 2 <= size &&
			 (!found || b->size < found->size))
			found = b;
	}
	return found;
}

static cudaError_t new_allocation(struct pool *p, size_t size, struct pool_allocation **out)
{
	int current = qcul_self.device;
	struct pool_allocation *b = calloc(1, sizeof(*b));
	struct qcul_range r;
	cudaError_t err;
	void *ptr;

	if (!b)
		return cudaErrorMemoryAllocation;
	if (p->max && p->reserved + size > p->max && size <= p->max)
		(void)trim(p, p->max - size, false);
	qcul_self.device = p->device;
	err = p->max && p->reserved + size > p->max ? cudaErrorMemoryAllocation
						    : qcul_device_alloc(&ptr, size, NULL);
	if (err == cudaErrorMemoryAllocation && !p->max && !trim(p, 0, true))
		err = qcul_device_alloc(&ptr, size, NULL);
	qcul_self.device = current;
	if (!err && qcul_mem_take((uint64_t)(uintptr_t)ptr, QCUL_MEM_DEVICE, &r)) {
		r.flags |= QCUL_MEM_POOLED | QCUL_MEM_SHARED;
		if (!qcul_mem_add(&r))
			err = cudaErrorMemoryAllocation;
	}
	if (err) {
		free(b);
		return err;
	}
	*b = (struct pool_allocation){
		.addr = (uint64_t)(uintptr_t)ptr, .size = size, .pool = p->id};
	LIST_INSERT_HEAD(&session.allocations, b, link);
	p->reserved += size;
	if (p->reserved > p->reserved_high)
		p->reserved_high = p->reserved;
	*out = b;
	return cudaSuccess;
}

static cudaError_t take_allocation(struct pool *p, size_t size, cudaStream_t stream,
				   struct pool_allocation **out)
{
	struct pool_allocation *b = best(p, size);
	cudaError_t err;

	if (b) {
		err = cudaStreamWaitEvent(stream, b->freed, 0);
		if (err)
			return err;
		(void)cudaEventDestroy(b->freed);
		b->freed = NULL;
		*out = b;
	} else {
		err = new_allocation(p, size, out);
		if (err)
			return err;
	}
	p->used += (*out)->size;
	if (p->used > p->used_high)
		p->used_high = p->used;
	return cudaSuccess;
}

/* An event that is recorded in the stream, which may be of any device. */
static cudaError_t recorded(cudaEvent_t *event, cudaStream_t stream)
{
	int current = qcul_self.device, device;
	cudaError_t err = cudaStreamGetDevice(stream, &device);

	if (err)
		return err;
	qcul_self.device = device;
	err = cudaEventCreateWithFlags(event, cudaEventDisableTiming);
	if (!err) {
		err = cudaEventRecord(*event, stream);
		if (err)
			(void)cudaEventDestroy(*event);
	}
	qcul_self.device = current;
	return err;
}

static cudaError_t give_allocation_to_pool(uint64_t addr, cudaStream_t stream)
{
	cudaEvent_t event;
	struct pool_allocation *b;
	struct pool *p;
	cudaError_t err;

	LIST_FOREACH(b, &session.allocations, link)
		if (b->addr == addr)
			break;
	if (!b || b->freed)
		return cudaErrorInvalidValue;
	err = recorded(&event, stream);
	if (err)
		return err;
	b->freed = event;
	p = b->pool ? find_pool(b->pool) : NULL;
	if (!p)
		return release_allocation(b);
	p->used -= b->size;
	return cudaSuccess;
}

/* ---- what pool.c and memory.c call ---- */

static bool on_shared_pool_made(uint32_t id, const struct cudaMemPoolProps *props)
{
	struct pool *p;
	bool done = false;

	pthread_mutex_lock(&at_fork.lock);
	p = add_pool(id, props->location.id);
	if (p) {
		p->max = props->maxSize;
		done = getrandom(p->key, sizeof(p->key), 0) == sizeof(p->key);
	}
	if (p && !done) {
		LIST_REMOVE(p, link);
		free(p);
	}
	pthread_mutex_unlock(&at_fork.lock);
	return done;
}

static void gone(uint32_t id)
{
	struct pool_allocation *b;
	struct pool *p;

	pthread_mutex_lock(&at_fork.lock);
	p = find_pool(id);
	if (p) {
		(void)trim(p, 0, true);
		LIST_FOREACH(b, &session.allocations, link)
			if (b->pool == id)
				b->pool = 0;
		LIST_REMOVE(p, link);
		free(p);
	}
	pthread_mutex_unlock(&at_fork.lock);
}

static cudaError_t alloc_from_shared_pool(void **ptr, size_t size, uint32_t id, cudaStream_t stream)
{
	cudaError_t err = cudaErrorInvalidValue;
	struct pool_allocation *b;
	struct pool *p;

	if (!size) {
		*ptr = NULL;
		return cudaSuccess;
	}
	if (size > SIZE_MAX - GRAIN)
		return cudaErrorMemoryAllocation;
	size = (size + GRAIN - 1) / GRAIN * GRAIN;
	pthread_mutex_lock(&at_fork.lock);
	p = find_pool(id);
	/* Only the process that made a pool allocates from it. */
	if (p && !p->imported)
		err = take_allocation(p, size, stream, &b);
	pthread_mutex_unlock(&at_fork.lock);
	if (!err)
		*ptr = (void *)(uintptr_t)b->addr;
	return err;
}

static cudaError_t free_shared_in_stream(const struct qcul_range *range, cudaStream_t stream)
{
	cudaError_t err;

	if (qcul_range_has(range, QCUL_MEM_IMPORTED)) {
		err = cudaStreamSynchronize(stream);
		return err ? err
			   : qcul_ipc_close((const void *)(uintptr_t)range->start, QCUL_MEM_SHARED);
	}
	pthread_mutex_lock(&at_fork.lock);
	err = give_allocation_to_pool(range->start, stream);
	pthread_mutex_unlock(&at_fork.lock);
	return err;
}

static cudaError_t free_now(const struct qcul_range *range)
{
	int current = qcul_self.device;
	cudaError_t err;

	qcul_self.device = range->device;
	err = cudaDeviceSynchronize();
	if (!err)
		err = free_shared_in_stream(range, cudaStreamLegacy);
	qcul_self.device = current;
	return err;
}

/* The counts of this pool; pool.c knows the other attributes. */
static uint64_t *counter(struct pool *p, enum cudaMemPoolAttr attr)
{
	switch ((int)attr) {
	case cudaMemPoolAttrReservedMemCurrent:
		return &p->reserved;
	case cudaMemPoolAttrReservedMemHigh:
		return &p->reserved_high;
	case cudaMemPoolAttrUsedMemCurrent:
		return &p->used;
	case cudaMemPoolAttrUsedMemHigh:
		return &p->used_high;
	}
	return NULL;
}

static bool get_pool_counter(uint32_t id, enum cudaMemPoolAttr attr, uint64_t *value)
{
	uint64_t *from = NULL;
	struct pool *p;

	pthread_mutex_lock(&at_fork.lock);
	p = find_pool(id);
	if (p)
		from = counter(p, attr);
	if (from)
		*value = *from;
	pthread_mutex_unlock(&at_fork.lock);
	return from;
}

/* As in CUDA, only the highest values can be set, and only to 0. */
static void reset_high(uint32_t id, enum cudaMemPoolAttr attr)
{
	struct pool *p;

	pthread_mutex_lock(&at_fork.lock);
	p = find_pool(id);
	if (p && attr == cudaMemPoolAttrReservedMemHigh)
		p->reserved_high = p->reserved;
	if (p && attr == cudaMemPoolAttrUsedMemHigh)
		p->used_high = p->used;
	pthread_mutex_unlock(&at_fork.lock);
}

static cudaError_t trim_to(uint32_t id, size_t keep)
{
	cudaError_t err = cudaSuccess;
	struct pool *p;

	pthread_mutex_lock(&at_fork.lock);
	p = find_pool(id);
	if (p)
		err = trim(p, keep, false);
	pthread_mutex_unlock(&at_fork.lock);
	return err;
}

static const struct qcul_pool_sharing sharing = {
	.made = on_shared_pool_made,
	.gone = gone,
	.alloc = alloc_from_shared_pool,
	.free_async = free_shared_in_stream,
	.free = free_now,
	.get = get_pool_counter,
	.reset_high = reset_high,
	.trim = trim_to,
};

__attribute__((constructor)) static void announce_pool_sharing(void)
{
	qcul_pool_sharing = &sharing;
}

/* ---- pools between processes ---- */

static cudaError_t export_pool(int *fd, cudaMemPool_t handle)
{
	uint32_t id = qcul_handle_id(&qcul_pools, handle);
	struct pool_file file = {.magic = POOL_MAGIC};
	cudaError_t err = cudaErrorInvalidValue;
	struct pool *p;
	int made_fd;

	pthread_mutex_lock(&at_fork.lock);
	p = id ? find_pool(id) : NULL;
	if (p && !p->imported) {
		memcpy(file.key, p->key, sizeof(file.key));
		file.device = qcul_device_ordinal(p->device);
		err = cudaSuccess;
	}
	pthread_mutex_unlock(&at_fork.lock);
	if (err)
		return err;
	made_fd = memfd_create("qcuda-pool", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (made_fd < 0)
		return cudaErrorOperatingSystem;
	if (write(made_fd, &file, sizeof(file)) != sizeof(file) ||
	    fcntl(made_fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)) {
		close(made_fd);
		return cudaErrorOperatingSystem;
	}
	*fd = made_fd;
	return cudaSuccess;
}

static cudaError_t check_pool_handle_type(enum cudaMemAllocationHandleType type, unsigned int flags)
{
	static atomic_flag said = ATOMIC_FLAG_INIT;

	if (type == cudaMemHandleTypeFabric)
		return qcul_unsupported("a memory pool shared through a fabric", &said);
	return type == cudaMemHandleTypePosixFileDescriptor && !flags ? cudaSuccess
								      : cudaErrorInvalidValue;
}

cudaError_t cudaMemPoolExportToShareableHandle(void *handle, cudaMemPool_t pool,
					       enum cudaMemAllocationHandleType type,
					       unsigned int flags)
{
	cudaError_t err = handle ? qcul_ready() : cudaErrorInvalidValue;

	if (!err)
		err = check_pool_handle_type(type, flags);
	return qcul_done(err ? err : export_pool(handle, pool));
}

static bool read_pool_file(int fd, struct pool_file *file)
{
	int seals = fcntl(fd, F_GET_SEALS);

	return seals >= 0 && seals & F_SEAL_WRITE &&
	       pread(fd, file, sizeof(*file), 0) == sizeof(*file) && file->magic == POOL_MAGIC;
}

static cudaError_t import_pool(cudaMemPool_t *out, int fd)
{
	struct cudaMemPoolProps props = {
		.allocType = cudaMemAllocationTypePinned,
		.location.type = cudaMemLocationTypeDevice,
	};
	struct pool_file file;
	struct pool *p;
	cudaMemPool_t pool;
	cudaError_t err;
	uint32_t id;

	if (!read_pool_file(fd, &file))
		return cudaErrorInvalidValue;
	props.location.id = qcul_device_with_ordinal(file.device);
	if (props.location.id < 0)
		return cudaErrorInvalidDevice;
	err = cudaMemPoolCreate(&pool, &props);
	if (err)
		return err;
	id = qcul_handle_id(&qcul_pools, pool);
	pthread_mutex_lock(&at_fork.lock);
	p = add_pool(id, props.location.id);
	if (p) {
		p->imported = true;
		memcpy(p->key, file.key, sizeof(p->key));
		qcul_pools.slots[id].flags = QCUL_POOL_SHARED | QCUL_POOL_IMPORTED;
	}
	pthread_mutex_unlock(&at_fork.lock);
	if (!p) {
		(void)cudaMemPoolDestroy(pool);
		return cudaErrorMemoryAllocation;
	}
	*out = pool;
	return cudaSuccess;
}

cudaError_t cudaMemPoolImportFromShareableHandle(cudaMemPool_t *pool, void *handle,
						 enum cudaMemAllocationHandleType type,
						 unsigned int flags)
{
	cudaError_t err = pool ? qcul_ready() : cudaErrorInvalidValue;

	if (!err)
		err = check_pool_handle_type(type, flags);
	return qcul_done(err ? err : import_pool(pool, (int)(intptr_t)handle));
}

/* ---- pointers ---- */

static cudaError_t export_pointer(struct cudaMemPoolPtrExportData *out, const void *ptr)
{
	struct pointer_data data = {.magic = POINTER_MAGIC};
	struct qcul_range r = qcul_mem_find(ptr);
	cudaError_t err = cudaErrorInvalidValue;
	struct qCUcmd cmd;
	struct pool_allocation *b;
	struct pool *p;

	if (!is_pool_allocation(&r, (uint64_t)(uintptr_t)ptr))
		return err;
	pthread_mutex_lock(&at_fork.lock);
	LIST_FOREACH(b, &session.allocations, link)
		if (b->addr == r.start)
			break;
	p = b && b->pool && !b->freed ? find_pool(b->pool) : NULL;
	if (p) {
		memcpy(data.key, p->key, sizeof(data.key));
		err = cudaSuccess;
	}
	pthread_mutex_unlock(&at_fork.lock);
	if (err)
		return err;
	cmd = qcul_cmd(QCU_OP_IPC_MEM_EXPORT);
	cmd.device = qcul_device_ordinal(r.device);
	cmd.ipc_mem_export.ptr = r.start;
	err = qcul_send(&cmd, 1);
	if (err)
		return err;
	data.token = cmd.ipc_mem_export.token;
	memcpy(out, &data, sizeof(data));
	return cudaSuccess;
}

cudaError_t cudaMemPoolExportPointer(struct cudaMemPoolPtrExportData *out, void *ptr)
{
	cudaError_t err = out && ptr ? qcul_ready() : cudaErrorInvalidValue;

	return qcul_done(err ? err : export_pointer(out, ptr));
}

static cudaError_t import_pointer(void **ptr, uint32_t id,
				  const struct cudaMemPoolPtrExportData *in)
{
	static const uint64_t zero[2];
	int current = qcul_self.device, device = -1;
	struct pointer_data data;
	struct pool *p;
	cudaError_t err;
	uint64_t size;

	memcpy(&data, in, sizeof(data));
	pthread_mutex_lock(&at_fork.lock);
	p = id ? find_pool(id) : NULL;
	if (p && p->imported && data.magic == POINTER_MAGIC &&
	    !memcmp(p->key, data.key, sizeof(data.key)) && !memcmp(data.rsvd, zero, sizeof(zero)))
		device = p->device;
	pthread_mutex_unlock(&at_fork.lock);
	if (device < 0)
		return cudaErrorInvalidValue;
	qcul_self.device = device;
	err = qcul_ipc_open(&data.token, QCUL_MEM_POOLED | QCUL_MEM_SHARED, ptr, &size);
	qcul_self.device = current;
	return err;
}

cudaError_t cudaMemPoolImportPointer(void **ptr, cudaMemPool_t pool,
				     struct cudaMemPoolPtrExportData *data)
{
	cudaError_t err = ptr && data ? qcul_ready() : cudaErrorInvalidValue;

	return qcul_done(err ? err : import_pointer(ptr, qcul_handle_id(&qcul_pools, pool), data));
}
