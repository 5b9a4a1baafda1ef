/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Memory that the program allocates: on devices, pinned, managed, in pools, as arrays. */
#ifndef QCUL_MEMORY_H
#define QCUL_MEMORY_H

#include "qcu-library/malloc/addresses.h"

/* ---- pinned.c ---- */

cudaError_t qcul_host_alloc(void **ptr, size_t size, enum qcul_mem kind, enum qcul_mem_flag asked);
cudaError_t qcul_host_free(void *ptr, enum qcul_mem kind);
/* Gives back the pinned memory that is kept for later allocations. False: there was none. */
bool qcul_host_drop(void);

/* ---- slab.c: for pinned.c ---- */

#define QCUL_SLAB	((size_t)2 << 20)
#define QCUL_SLAB_BLOCK ((size_t)256 << 10) /* larger blocks are no blocks of slabs */

/* A block of whole pages, all zero; NULL: no slab has room. */
void *qcul_slab_take(size_t len);
/* Memory that is mapped and registered becomes a slab. False: no memory. */
bool qcul_slab_add(void *addr);
/*
 * Frees a block. False: it is no block of a slab. If gone->len is not 0, the caller must give this
 * slab back: it is registered in the session gone->epoch.
 */
bool qcul_slab_give(void *ptr, struct qcul_range *gone);
/* An empty slab, which the caller must give back. False: there is none. */
bool qcul_slab_drop(struct qcul_range *gone);

/* ---- ahead.c: for memory.c ---- */

/* Device memory of the mirror, for the calling thread's device. */
cudaError_t qcul_ahead_alloc(size_t len, uint64_t *addr);
/* Frees what was allocated ahead of the program. */
void qcul_ahead_drop(void);

/* ---- memory.c ---- */

/* Where stream-ordered memory comes from. */
struct qcul_pool_use {
	uint32_t pool; /* 0: the default pool of the device */
	int device;
	uint32_t stream;
};
/* Allocates device memory. `from` is NULL: as cudaMalloc does. */
cudaError_t qcul_device_alloc(void **ptr, size_t size, const struct qcul_pool_use *from);
/* Frees a buffer of external memory; an error if it is none. driver_virtual/external_memory.c sets
 * it.
 */
extern cudaError_t (*qcul_free_mapped)(uint64_t ptr);

/* ---- pool.c ---- */

/* Flags of a pool's slot. */
#define QCUL_POOL_SHARED   1u /* with other processes: pool_share.c has its memory */
#define QCUL_POOL_IMPORTED 2u /* another process has made it */

/* What is different for pools that processes share. */
struct qcul_pool_sharing {
	/* False: no memory. */
	bool (*made)(uint32_t pool, const struct cudaMemPoolProps *props);
	void (*gone)(uint32_t pool);
	cudaError_t (*alloc)(void **ptr, size_t size, uint32_t pool, cudaStream_t stream);
	cudaError_t (*free_async)(const struct qcul_range *range, cudaStream_t stream);
	cudaError_t (*free)(const struct qcul_range *range);
	/* False: the mirror knows this attribute. */
	bool (*get)(uint32_t pool, enum cudaMemPoolAttr attr, uint64_t *value);
	void (*reset_high)(uint32_t pool, enum cudaMemPoolAttr attr);
	cudaError_t (*trim)(uint32_t pool, size_t keep);
};
extern const struct qcul_pool_sharing *qcul_pool_sharing; /* memory.c; pool_share.c sets it */

/* Can memory with these properties exist? */
cudaError_t qcul_pool_check(const struct cudaMemPoolProps *props);

/* ---- managed_alloc.c ---- */

/* Allocates memory that moves. False: the memory must stay in place. */
bool qcul_managed_place(void **ptr, size_t size);
/* From now on the memory stays in place, and both sides may use it at once. */
cudaError_t qcul_managed_stay(const void *ptr);
/* All that has been written is on its way to the GPU before what the stream does next. */
cudaError_t qcul_managed_up(const void *ptr, cudaStream_t stream);

/* ---- managed.c ---- */

/* Forgets all advice about managed memory that has been freed. */
void qcul_managed_forget(uint64_t start, uint64_t len);

/* ---- texture.c: textures and surfaces ---- */

/* Forgets the objects of a device, or of all devices (-1). */

#endif
