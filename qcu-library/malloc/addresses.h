/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The addresses of the program: what lies where, what is reserved, mapped and registered. */
#ifndef QCUL_ADDRESSES_H
#define QCUL_ADDRESSES_H

#include "qcu-library/device/device.h"
#include "qcu-library/malloc/ranges.h"

/* ---- memmap.c: what the library knows about addresses ---- */

enum qcul_mem {
	QCUL_MEM_HOST,
	QCUL_MEM_DEVICE,
	QCUL_MEM_VARIABLE,
	QCUL_MEM_PINNED,
	QCUL_MEM_MANAGED,
	QCUL_MEM_REGISTERED,
	QCUL_MEM_ALIAS, /* the device's addresses of registered memory, if they differ */
};

/*
 * The library's own flags of a range. Pinned and registered ranges also hold the flags of the
 * program's call there, which are CUDA's: those lie below these.
 */
enum qcul_mem_flag {
	/* Device memory and variables: this process has other memory at the same addresses. */
	QCUL_MEM_AMBIGUOUS = 1u << 16,
	/* Device memory: it comes from a pool, and may be freed in stream order. */
	QCUL_MEM_POOLED = 1u << 17,
	/* Device memory: it belongs to another process (ipc.c). */
	QCUL_MEM_IMPORTED = 1u << 18,
	/* Device memory: it comes from a pool that processes share (pool_share.c). */
	QCUL_MEM_SHARED = 1u << 19,
	/* Device memory: a mapping of virtual memory (driver_virtual/virtual.c). */
	QCUL_MEM_MAPPED = 1u << 20,
	/* Variables: the program has a copy at the same addresses (managed_copy.c). */
	QCUL_MEM_COPIED = 1u << 21,
	/*
	 * Managed memory: it moves between the program and the GPU (managed_alloc.c). For commands
	 * it is device memory.
	 */
	QCUL_MEM_MOVES = 1u << 22,
	/* Managed memory: its mapping is longer, a multiple of QCU_MANAGED_ALIGN. */
	QCUL_MEM_WIDE = 1u << 23,
};

#define QCUL_MEM_CALL_FLAGS 0xffffu /* CUDA's */

bool qcul_mem_add(const struct qcul_range *range);
/* Removes the range that starts at `start`, if it is of this kind. */
bool qcul_mem_take(uint64_t start, enum qcul_mem kind, struct qcul_range *range);
/* Finds a range that overlaps this one. False: there is none. */
bool qcul_mem_overlap(const struct qcul_range *range, struct qcul_range *other);
bool qcul_mem_overlap_locked(const struct qcul_range *range, struct qcul_range *other);
/* How many ranges are registered. Reads the number without the lock. */
unsigned int qcul_mem_registered(void);
/* The GPU's address of memory that has this address in the program. */
uint64_t qcul_mem_device_address(const void *addr);
/* The range that contains addr. Its kind is QCUL_MEM_HOST if addr is in no known range. */
struct qcul_range qcul_mem_find(const void *addr);
void qcul_mem_forget_device(int device);
/* Managed memory no longer moves: the range that starts at `start`, or all of it (0). */
void qcul_mem_stays(uint64_t start);
/* The length of the range's mapping. */
uint64_t qcul_mem_mapped(const struct qcul_range *range);
void qcul_mem_lock(void);
void qcul_mem_unlock(void);

/* ---- reserve.c ---- */

/*
 * Reserves the addresses of device memory in this process. False: the process already uses some of
 * them.
 */
bool qcul_reserve(uint64_t start, uint64_t len);

/* ---- window.c ---- */

/* Maps chunk memory in the window. NULL: no space left. */
void *qcul_window_map(size_t len);
/* At a multiple of `align`. */
void *qcul_window_map_aligned(size_t len, size_t align);
void qcul_window_unmap(void *addr, size_t len);
extern atomic_uint qcul_window_unmaps; /* how often that has been called */

/* ---- register.c ---- */

/*
 * Has the mirror register memory of the program, and adds the range to memmap.c. The caller fills
 * in kind, start, len, flags and owner. This function sets `other`, the address that kernels use.
 */
cudaError_t qcul_register(struct qcul_range *range);
/* The opposite of qcul_register(). The caller has removed the range from memmap.c before. */
cudaError_t qcul_unregister(const struct qcul_range *range);

/* For malloc: is any part of this block registered? */
bool qcul_is_registered(const void *p, size_t size);
/*
 * The program frees this block. If any part is registered, the block is kept until it is not.
 * `twice` is set if the program has freed the block before.
 */
bool qcul_keep_registered(void *p, size_t size, bool *twice);
/* Frees the kept blocks that are no longer registered. */
void qcul_free_kept(void);

/* ---- recycle.c: freed pinned memory of the window that stays mapped and registered ---- */

/* The GPU no longer uses this block. False: the caller must give it back now. */
bool qcul_recycle_keep(uint64_t start, uint64_t len);
/* A block of exactly this length, or NULL. */
void *qcul_recycle_take(uint64_t len);
/* Gives all blocks back. False: there were none. */
bool qcul_recycle_drop(void);
/* May freed memory be kept at all (QCU_PINNED_CACHE)? */
bool qcul_recycle_wanted(void);

#endif
