/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Address ranges that do not overlap, in order. Used for what the library knows about memory
 * (memmap.c) and for the used addresses of the window (window.c), which have no kind and no flags.
 * No locks here: the callers have them.
 */
#ifndef QCUL_RANGES_H
#define QCUL_RANGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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
 * All flags of ranges. None is CUDA's: qcul_mem_asked() translates those of the program's calls.
 * Only ranges of the named kinds have the flag.
 */
enum qcul_mem_flag {
	/* Device memory and variables: this process has other memory at the same addresses. */
	QCUL_MEM_AMBIGUOUS = 1 << 0,
	/* Device memory: it comes from a pool, and may be freed in stream order. */
	QCUL_MEM_POOLED = 1 << 1,
	/* Device memory: it belongs to another process (ipc.c). */
	QCUL_MEM_IMPORTED = 1 << 2,
	/* Device memory: it comes from a pool that processes share (pool_share.c). */
	QCUL_MEM_SHARED = 1 << 3,
	/* Device memory: a mapping of virtual memory (driver_virtual/virtual.c). */
	QCUL_MEM_MAPPED = 1 << 4,
	/* Variables: the program has a copy at the same addresses (managed_copy.c). */
	QCUL_MEM_COPIED = 1 << 5,
	/*
	 * Managed memory: it moves between the program and the GPU (managed_alloc.c). For commands
	 * it is device memory.
	 */
	QCUL_MEM_MOVES = 1 << 6,
	/* Managed memory: its mapping is longer, a multiple of QCU_MANAGED_ALIGN. */
	QCUL_MEM_WIDE = 1 << 7,
	/* Pinned and registered memory, and aliases: what the program's call asked for. */
	QCUL_MEM_ASKED_PORTABLE = 1 << 8,
	QCUL_MEM_ASKED_MAPPED = 1 << 9,
	QCUL_MEM_ASKED_COMBINED = 1 << 10,
};

struct qcul_range {
	uint64_t start, len;
	uint64_t other; /* registered: the device's address; alias: the program's */
	enum qcul_mem kind;
	enum qcul_mem_flag flags;
	int device;
	unsigned int epoch;
};

/* Does it have all of these flags? */
static inline bool qcul_range_has(const struct qcul_range *r, enum qcul_mem_flag flags)
{
	return (r->flags & flags) == flags;
}

static inline bool qcul_range_is_known(const struct qcul_range *r)
{
	return r->kind != QCUL_MEM_HOST;
}

static inline bool qcul_range_is_registered(const struct qcul_range *r)
{
	return r->kind == QCUL_MEM_REGISTERED;
}

/* Memory of the program that the GPU uses in place, and that is not managed. */
static inline bool qcul_range_is_pinned(const struct qcul_range *r)
{
	return r->kind == QCUL_MEM_PINNED || qcul_range_is_registered(r);
}

static inline bool qcul_range_is_managed(const struct qcul_range *r)
{
	return r->kind == QCUL_MEM_MANAGED;
}

static inline bool qcul_range_is_on_gpu(const struct qcul_range *r)
{
	return r->kind == QCUL_MEM_DEVICE || r->kind == QCUL_MEM_VARIABLE;
}

/* Does cudaIpcGetMemHandle take it? */
static inline bool qcul_range_is_exportable(const struct qcul_range *r)
{
	return r->kind == QCUL_MEM_DEVICE && !(r->flags & (QCUL_MEM_POOLED | QCUL_MEM_IMPORTED));
}

struct qcul_ranges {
	struct qcul_range *v;
	size_t count, room;
	size_t front; /* free elements before the first range; `room` counts them, too */
};

/* False: it overlaps another range, or there is no memory. */
bool qcul_ranges_add(struct qcul_ranges *r, const struct qcul_range *range);
/* The range that contains addr, or NULL. Valid until the next change. */
const struct qcul_range *qcul_ranges_find(const struct qcul_ranges *r, uint64_t addr);
/* The first range above addr that does not contain it, or NULL. */
const struct qcul_range *qcul_ranges_after(const struct qcul_ranges *r, uint64_t addr);
void qcul_ranges_remove(struct qcul_ranges *r, const struct qcul_range *range);
/* The lowest address in [lo, hi) that has len free bytes and is a multiple of align. 0: none. */
uint64_t qcul_ranges_gap(const struct qcul_ranges *r, uint64_t lo, uint64_t hi, uint64_t len,
			 uint64_t align);

#endif
