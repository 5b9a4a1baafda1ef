/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The addresses of the program: what lies where, what is reserved, mapped and registered. */
#ifndef QCUL_ADDRESSES_H
#define QCUL_ADDRESSES_H

#include "qcu-library/device/device.h"
#include "qcu-library/malloc/ranges.h"

/* ---- memmap.c: what the library knows about addresses ---- */

/* The flags of cudaHostAlloc and cudaHostRegister, as a range has them, and back. */
static inline enum qcul_mem_flag qcul_mem_asked(unsigned int call)
{
	return (call & cudaHostAllocPortable ? QCUL_MEM_ASKED_PORTABLE : 0) |
	       (call & cudaHostAllocMapped ? QCUL_MEM_ASKED_MAPPED : 0) |
	       (call & cudaHostAllocWriteCombined ? QCUL_MEM_ASKED_COMBINED : 0);
}
static inline unsigned int qcul_mem_call_flags(enum qcul_mem_flag flags)
{
	return (flags & QCUL_MEM_ASKED_PORTABLE ? cudaHostAllocPortable : 0) |
	       (flags & QCUL_MEM_ASKED_MAPPED ? cudaHostAllocMapped : 0) |
	       (flags & QCUL_MEM_ASKED_COMBINED ? cudaHostAllocWriteCombined : 0);
}

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
/*
 * The range that contains addr; else one that did and was freed not long ago (*freed); else the one
 * that is nearest. False: there is none.
 */
bool qcul_mem_near(uint64_t addr, struct qcul_range *range, bool *freed);
/* The managed memory that starts at `start` no longer moves. */
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
