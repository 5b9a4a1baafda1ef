/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The VM's memory as the host sees it: ranges of guest-physical memory, and the address at which
 * each is mapped in this process. Every address from a guest is translated here, always together
 * with its length.
 */
#ifndef QCU_GUESTMEM_H
#define QCU_GUESTMEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GUESTMEM_REGIONS 512 /* libvhost-user has at most 509 memory slots */

struct guestmem_region {
	uint64_t gpa;
	uint64_t size;
	uint8_t *hva;
};

struct guestmem {
	unsigned int count;
	uint8_t *named; /* notes the pages that are translated (named.h); NULL: nobody asks */
	struct guestmem_region regions[GUESTMEM_REGIONS]; /* sorted by gpa, disjoint */
};

/* Returns 0; -EINVAL for an empty, wrapping or overlapping region; -ENOSPC. */
int guestmem_add(struct guestmem *mem, uint64_t gpa, uint64_t size, void *hva);

/*
 * Maps such a region from its file, which stays open. If the offset lies inside a huge page, the
 * mapping starts at the beginning of that page, as in libvhost-user. Returns 0 or -errno.
 */
int guestmem_map(struct guestmem *mem, uint64_t gpa, uint64_t size, uint64_t offset, int fd);
/* Unmaps all that was mapped so, and forgets it. */
void guestmem_unmap(struct guestmem *mem);

/* The host address of [gpa, gpa + len) if all of it lies in one region; else NULL. */
void *guestmem_translate(const struct guestmem *mem, uint64_t gpa, uint64_t len);

/*
 * For ranges that may span regions: returns how many of the len bytes at gpa are contiguous on the
 * host, and stores their address in *hva. 0: there is no memory at gpa.
 */
uint64_t guestmem_run(const struct guestmem *mem, uint64_t gpa, uint64_t len, void **hva);

#endif
