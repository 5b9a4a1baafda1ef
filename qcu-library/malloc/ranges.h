/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Address ranges that do not overlap, in order. Used for what the library knows about memory
 * (memmap.c) and for the used addresses of the window (window.c). No locks here: the callers have
 * them.
 */
#ifndef QCUL_RANGES_H
#define QCUL_RANGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct qcul_range {
	uint64_t start, len;
	uint64_t other; /* registered: the device's address; alias: the program's */
	uint32_t kind;	/* enum qcul_mem */
	uint32_t flags; /* enum qcul_mem_flag; pinned, registered: also those of the call */
	int device;
	unsigned int epoch;
};

struct qcul_ranges {
	struct qcul_range *v;
	size_t count, room;
	size_t front; /* free places before the first range; `room` counts them, too */
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
