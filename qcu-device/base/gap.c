// SPDX-License-Identifier: GPL-2.0-or-later
/* Implements gap.h. */
#define _GNU_SOURCE /* MAP_ANONYMOUS */
#include <stdint.h>
#include <sys/mman.h>
#include <sys/random.h>

#include "qcu-device/base/gap.h"

/*
 * A mirror maps from 0x2aaaaaaab000, or up to a TiB above that, upwards. The first addresses that
 * it sets aside for guests begin at 0x550000000000 (window.c), so a gap of a TiB leaves 40 TiB.
 */
#define GAP_MAX	  (1ull << 40)
#define GAP_GRAIN (2ull << 20) /* CUDA's ranges begin at multiples of this or more */

void gap_open(struct gap *g)
{
	uint64_t random;

	*g = (struct gap){NULL, 0};
	if (getrandom(&random, sizeof(random), 0) != (ssize_t)sizeof(random))
		return;
	g->size = GAP_GRAIN + random % (GAP_MAX / GAP_GRAIN) * GAP_GRAIN;
	g->at = mmap(NULL, g->size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (g->at == MAP_FAILED)
		g->at = NULL;
}

void gap_close(struct gap *g)
{
	if (g->at)
		munmap(g->at, g->size);
	g->at = NULL;
}
