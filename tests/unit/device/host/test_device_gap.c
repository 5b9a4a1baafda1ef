// SPDX-License-Identifier: GPL-2.0-or-later
/* With a gap, the place of a new mapping does not tell where older ones are. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <unistd.h>
#include <cmocka.h>

#include "qcu-device/base/gap.h"

#define RUNS  8
#define LARGE (1ull << 30) /* too large for a hole */
#define MOST  (1ull << 40)

static uint64_t map_large(void)
{
	void *at = mmap(NULL, LARGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	assert_true(at != MAP_FAILED);
	return (uintptr_t)at;
}

/* How far above an older mapping the second lies that comes after the gap. */
static uint64_t distance(void)
{
	uint64_t old = map_large(), next, second;

	gap_leave();
	next = map_large();
	second = map_large();
	/* Above the older one, and below what a mirror sets aside for guests. */
	assert_true(next >= old + LARGE + (2ull << 20));
	assert_true(next <= old + LARGE + MOST);
	assert_int_equal(second, next + LARGE);
	return second - old;
}

static void distances_differ(void **state)
{
	uint64_t seen[RUNS];
	unsigned int i, j;

	(void)state;
	for (i = 0; i < RUNS; i++) {
		seen[i] = distance();
		for (j = 0; j < i; j++)
			assert_true(seen[j] != seen[i]);
	}
}

/* Nothing small lies below a gap either. */
static void holes(void **state)
{
	static const uint64_t sizes[] = {4096, 3 * 4096, 2u << 20, 100u << 20};
	uint64_t from[4], first = map_large(), i;

	(void)state;
	for (i = 0; i < 4; i++) {
		from[i] = map_large();
		munmap((void *)(uintptr_t)from[i], sizes[i]);
	}
	gap_leave();
	for (i = 0; i < 4; i++) {
		void *at = mmap(NULL, sizes[i], PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		assert_true((uintptr_t)at > from[3] + LARGE && from[3] > first);
	}
}

/*
 * What comes after the first gap lies at the same place in each process, and the code does not. The
 * process that is started prints both.
 */
static void print_places(void)
{
	uint64_t old = map_large();

	if (!gap_begin())
		exit(1);
	printf("%" PRIx64 " %" PRIx64 "\n", old, map_large());
	exit(0);
}

static void same_first_place(void **state)
{
	uint64_t old[RUNS], next[RUNS];
	unsigned int i;

	(void)state;
	for (i = 0; i < RUNS; i++) {
		FILE *said = popen("/proc/$PPID/exe places", "re");

		assert_non_null(said);
		assert_int_equal(fscanf(said, "%" SCNx64 " %" SCNx64, &old[i], &next[i]), 2);
		assert_int_equal(pclose(said), 0);
		assert_int_equal(next[i], next[0]);
		assert_true(next[i] > old[i] + LARGE);
		assert_true(!i || old[i] != old[0]);
	}
}

/* Whatever makes a mirror load libraries, much of its address space is left. */
static void not_too_many(void **state)
{
	uint64_t began = map_large(), last;
	unsigned int i;

	(void)state;
	for (i = 0; i < 1000; i++)
		gap_leave();
	last = map_large();
	assert_true(last - began < 17 * MOST);
	gap_leave();
	assert_int_equal(map_large(), last + LARGE);
}

/* A process may have 65530 mappings; a guest that makes holes must not use them up. */
static void too_many_holes(void **state)
{
	static void *hole[20000];
	const size_t page = 4096, count = sizeof(hole) / sizeof(*hole);
	unsigned int i;

	(void)state;
	for (i = 0; i < count; i++) {
		hole[i] = mmap(NULL, 2 * page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		assert_true(hole[i] != MAP_FAILED);
	}
	for (i = 0; i < count; i++)
		munmap(hole[i], page);
	assert_false(gap_leave());
	assert_false(gap_leave());
	/* So many mappings are left. */
	for (i = 0; i < count; i++)
		assert_true(mmap(NULL, page, i & 1 ? PROT_READ : PROT_NONE,
				 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED);
}

/* A mirror has this address layout (birth.c). */
int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(distances_differ), cmocka_unit_test(holes),
		cmocka_unit_test(same_first_place), cmocka_unit_test(too_many_holes),
		cmocka_unit_test(not_too_many),
	};

	if (!(personality(0xffffffff) & ADDR_COMPAT_LAYOUT)) {
		personality(ADDR_COMPAT_LAYOUT);
		execv("/proc/self/exe", argv);
		return 1;
	}
	if (argc > 1)
		print_places();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
