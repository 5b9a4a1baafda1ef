// SPDX-License-Identifier: GPL-2.0-or-later
/* With a gap, the place of a new mapping does not tell where older ones are. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <unistd.h>
#include <cmocka.h>

#include "qcu-device/base/gap.h"

#define RUNS  32
#define LARGE (1ull << 30)

/* How far above the older mapping a new one lies. Both are too large for a hole. */
static uint64_t distance(void)
{
	void *old =
		mmap(NULL, LARGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	void *new;
	struct gap g;

	gap_open(&g);
	assert_non_null(g.at);
	new = mmap(NULL, LARGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	assert_true(old != MAP_FAILED && new != MAP_FAILED);
	gap_close(&g);
	assert_null(g.at);
	gap_close(&g);
	munmap(old, LARGE);
	munmap(new, LARGE);
	return (uintptr_t) new > (uintptr_t)old ? (uintptr_t) new - (uintptr_t)old : 0;
}

static void distances_differ(void **state)
{
	uint64_t seen[RUNS];
	unsigned int i, j;

	(void)state;
	for (i = 0; i < RUNS; i++) {
		seen[i] = distance();
		/* Above the older one, and below what a mirror sets aside for guests. */
		assert_true(seen[i] >= LARGE + (2ull << 20));
		assert_true(seen[i] <= LARGE + (1ull << 40));
		for (j = 0; j < i; j++)
			assert_true(seen[j] != seen[i]);
	}
}

/* A mirror has this address layout (birth.c). */
int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {cmocka_unit_test(distances_differ)};

	(void)argc;
	if (!(personality(0xffffffff) & ADDR_COMPAT_LAYOUT)) {
		personality(ADDR_COMPAT_LAYOUT);
		execv("/proc/self/exe", argv);
		return 1;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
