/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The VM's memory as the host sees it: guest-physical ranges and where each is mapped here. Every
 * address that a guest gives goes through this file, always together with its length.
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
	struct guestmem_region regions[GUESTMEM_REGIONS]; /* by gpa, disjoint */
};

/* 0; -EINVAL for an empty, wrapping or overlapping region; -ENOSPC. */
int guestmem_add(struct guestmem *mem, uint64_t gpa, uint64_t size, void *hva);

/* Where [gpa, gpa + len) lies, if all of it lies in one region; else NULL. */
void *guestmem_translate(const struct guestmem *mem, uint64_t gpa, uint64_t len);

/*
 * For ranges that may span regions: how many of the len bytes at gpa are in one piece, which begins
 * at *hva. 0: nothing is there.
 */
uint64_t guestmem_run(const struct guestmem *mem, uint64_t gpa, uint64_t len, void **hva);

#endif
