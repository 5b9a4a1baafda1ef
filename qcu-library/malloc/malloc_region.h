/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * One mapping that several allocations share, as runs of pages. All bookkeeping lies outside of the
 * memory. So the memory stays untouched until the program touches it, and a program that writes
 * past the end of a block damages only its own data. No locks here: the arena has one.
 */
#ifndef QCUL_MALLOC_REGION_H
#define QCUL_MALLOC_REGION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define QCUL_PAGE ((size_t)4096)

struct qcul_region {
	uint32_t pages;
	uint32_t used;	  /* pages in live blocks */
	uint32_t largest; /* no free run is longer than this */
	uint32_t high;	  /* pages from this one on have never been handed out, and are zero */
	uint32_t *foot;	  /* index: last page of a free run; its length; else 0 */
	uint32_t head[];  /* index: first page of a run; its length, and whether it is live */
};

#define QCUL_REGION_FULL UINT32_MAX

/* NULL: no memory for the tables. */
struct qcul_region *qcul_region_new(uint32_t pages);
void qcul_region_delete(struct qcul_region *r);

/*
 * Takes a block of n pages whose address is a multiple of align bytes (a power of two). The region
 * starts at `start`. Returns the first page, or QCUL_REGION_FULL if there is no room. *dirty: how
 * many pages of the block may hold old data. These come first.
 */
uint32_t qcul_region_take(struct qcul_region *r, uint64_t start, uint32_t n, size_t align,
			  uint32_t *dirty);
/* The number of pages of the live block that begins at this page. 0: no live block begins here. */
uint32_t qcul_region_block(const struct qcul_region *r, uint32_t page);
void qcul_region_give(struct qcul_region *r, uint32_t page);
/* Makes a live block n pages long without moving it. False: not possible. */
bool qcul_region_resize(struct qcul_region *r, uint32_t page, uint32_t n);

#endif
