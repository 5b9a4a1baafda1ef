// SPDX-License-Identifier: GPL-2.0-or-later
/* Implements gap.h. */
#define _GNU_SOURCE /* MAP_ANONYMOUS */
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/random.h>

#include "qcu-device/base/gap.h"

/*
 * A mirror maps from 0x2aaaaaaab000, or up to a TiB above that, upwards. CUDA maps from FIRST_END
 * on, in each mirror. Device memory begins at 0x480000000000 (be_cuda_plot.c): if all gaps are as
 * large as can be, 13 TiB are left below.
 */
#define FIRST_END 0x2c0000000000ull
#define GAPS	  15u /* two for each library */
#define GAP_MAX	  (1ull << 40)
#define GAP_GRAIN (2ull << 20) /* CUDA's ranges begin at multiples of this or more */

#define HOLE_MIN 4096u
/* Of all gaps, a quarter of the mappings that the kernel allows a process. */
#define HOLES_MAX 16384u

static uintptr_t reserve_no_access(uint64_t size)
{
	return (uintptr_t)mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
			       -1, 0);
}

/*
 * The kernel takes the lowest address range that is large enough. A guest can cut its device
 * addresses, and so make holes.
 */
static bool fill_holes(uintptr_t below)
{
	static atomic_uint filled;
	uint64_t size;
	uintptr_t at;

	for (size = GAP_MAX; size >= HOLE_MIN; size /= 2) {
		do {
			if (atomic_fetch_add(&filled, 1) >= HOLES_MAX)
				return false;
			at = reserve_no_access(size);
		} while (at < below);
		if (at != (uintptr_t)MAP_FAILED)
			munmap((void *)at, size);
	}
	return true;
}

/* Where addresses are given out downwards, nothing would lie above a gap. */
static bool are_upward(void)
{
	return personality(0xffffffff) & ADDR_COMPAT_LAYOUT;
}

bool gap_begin(void)
{
	const uintptr_t top = FIRST_END - GAP_GRAIN;

	if (!are_upward())
		return true;
	return mmap((void *)top, GAP_GRAIN, PROT_NONE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1,
		    0) == (void *)top &&
	       fill_holes(top);
}

bool gap_leave(void)
{
	static atomic_uint gaps;
	uint64_t random;
	uintptr_t gap;

	if (!are_upward())
		return true;
	if (atomic_fetch_add(&gaps, 1) >= GAPS ||
	    getrandom(&random, sizeof(random), 0) != (ssize_t)sizeof(random))
		return false;
	gap = reserve_no_access(GAP_GRAIN + random % (GAP_MAX / GAP_GRAIN) * GAP_GRAIN);
	return gap != (uintptr_t)MAP_FAILED && fill_holes(gap);
}
