// SPDX-License-Identifier: LGPL-2.1-or-later
/* The ordered ranges, the window's address allocator that is built on them, and their flags. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "qcu-library/malloc/addresses.h"

#define BASE  0x200000000000ull
#define CHUNK 0x400000ull
#define PAGE  0x1000ull

static bool add(struct qcul_ranges *r, uint64_t start, uint64_t len)
{
	struct qcul_range range = {.start = start, .len = len};

	return qcul_ranges_add(r, &range);
}

static void drop(struct qcul_ranges *r, uint64_t start)
{
	const struct qcul_range *range = qcul_ranges_find(r, start);

	assert_non_null(range);
	assert_int_equal(range->start, start);
	qcul_ranges_remove(r, range);
}

static void refuses_what_overlaps(void **state)
{
	struct qcul_ranges r = {0};

	(void)state;
	assert_true(add(&r, 100, 10));
	assert_false(add(&r, 100, 10));
	assert_false(add(&r, 109, 1));
	assert_false(add(&r, 95, 6));
	assert_false(add(&r, 90, 100));
	assert_false(add(&r, 200, 0));
	assert_false(add(&r, UINT64_MAX, 2));
	assert_true(add(&r, 110, 1));
	assert_true(add(&r, 99, 1));
	assert_true(add(&r, UINT64_MAX, 1));
	assert_int_equal(r.count, 4);
	free(r.v - r.front);
}

static void finds_by_any_address_inside(void **state)
{
	struct qcul_ranges r = {0};

	(void)state;
	assert_null(qcul_ranges_find(&r, 0));
	assert_true(add(&r, 1000, 100));
	assert_true(add(&r, 3000, 100));
	assert_true(add(&r, 2000, 100));
	assert_null(qcul_ranges_find(&r, 999));
	assert_int_equal(qcul_ranges_find(&r, 1000)->start, 1000);
	assert_int_equal(qcul_ranges_find(&r, 1099)->start, 1000);
	assert_null(qcul_ranges_find(&r, 1100));
	assert_int_equal(qcul_ranges_find(&r, 2050)->start, 2000);
	assert_int_equal(qcul_ranges_find(&r, 3099)->start, 3000);
	assert_null(qcul_ranges_find(&r, UINT64_MAX));
	free(r.v - r.front);
}

static void keeps_its_order(void **state)
{
	struct qcul_ranges r = {0};
	unsigned int i, n = 0;
	uint32_t x = 1;

	(void)state;
	for (i = 0; i < 2000; i++) {
		x = x * 1664525 + 1013904223;
		n += add(&r, x >> 12, 1 + (x & 63));
	}
	assert_int_equal(r.count, n);
	for (i = 1; i < r.count; i++)
		assert_true(r.v[i - 1].start + r.v[i - 1].len <= r.v[i].start);
	while (r.count > 0) {
		x = x * 1664525 + 1013904223;
		drop(&r, r.v[(x >> 8) % r.count].start);
		for (i = 1; i < r.count; i++)
			assert_true(r.v[i - 1].start + r.v[i - 1].len <= r.v[i].start);
		if (r.count > 20)
			for (i = 0; i < 15; i++)
				drop(&r, r.v[r.count / 2].start);
	}
	free(r.v - r.front);
}

static void takes_the_first_gap_on_a_chunk_boundary(void **state)
{
	struct qcul_ranges r = {0};
	uint64_t end = BASE + 16 * CHUNK;

	(void)state;
	assert_int_equal(qcul_ranges_gap(&r, BASE, end, PAGE, CHUNK), BASE);
	assert_true(add(&r, BASE, PAGE));
	assert_int_equal(qcul_ranges_gap(&r, BASE, end, PAGE, CHUNK), BASE + CHUNK);
	assert_int_equal(qcul_ranges_gap(&r, BASE, end, PAGE, PAGE), BASE + PAGE);
	assert_true(add(&r, BASE + CHUNK, 3 * CHUNK));
	assert_true(add(&r, BASE + 5 * CHUNK, CHUNK));
	assert_int_equal(qcul_ranges_gap(&r, BASE, end, CHUNK, CHUNK), BASE + 4 * CHUNK);
	assert_int_equal(qcul_ranges_gap(&r, BASE, end, CHUNK + 1, CHUNK), BASE + 6 * CHUNK);
	free(r.v - r.front);
}

static void uses_a_freed_gap_again(void **state)
{
	struct qcul_ranges r = {0};
	uint64_t end = BASE + 4 * CHUNK;
	int i;

	(void)state;
	for (i = 0; i < 4; i++)
		assert_true(add(&r, BASE + i * CHUNK, CHUNK));
	assert_int_equal(qcul_ranges_gap(&r, BASE, end, PAGE, CHUNK), 0);
	drop(&r, BASE + 2 * CHUNK);
	assert_int_equal(qcul_ranges_gap(&r, BASE, end, CHUNK, CHUNK), BASE + 2 * CHUNK);
	assert_int_equal(qcul_ranges_gap(&r, BASE, end, CHUNK + PAGE, CHUNK), 0);
	free(r.v - r.front);
}

static void stays_inside_its_bounds(void **state)
{
	struct qcul_ranges r = {0};
	uint64_t end = BASE + 4 * CHUNK;

	(void)state;
	assert_int_equal(qcul_ranges_gap(&r, BASE, end, 4 * CHUNK, CHUNK), BASE);
	assert_int_equal(qcul_ranges_gap(&r, BASE, end, 4 * CHUNK + 1, CHUNK), 0);
	assert_int_equal(qcul_ranges_gap(&r, BASE, end, UINT64_MAX, CHUNK), 0);
	assert_int_equal(qcul_ranges_gap(&r, UINT64_MAX - 5, UINT64_MAX, 1, CHUNK), 0);
	/* Addresses outside the window do not matter to the allocator. */
	assert_true(add(&r, PAGE, PAGE));
	assert_true(add(&r, end + CHUNK, PAGE));
	assert_int_equal(qcul_ranges_gap(&r, BASE, end, CHUNK, CHUNK), BASE);
	free(r.v - r.front);
}

/* The order in which ranges go, and where new ones come, makes no difference but for the time. */
static void in_any_order(void **state)
{
	enum { SLOTS = 1000, ROUNDS = 60000 };
	static bool is[SLOTS];
	struct qcul_ranges r = {0};
	size_t count = 0, i;
	uint32_t x = 1;
	int round;

	(void)state;
	for (round = 0; round < ROUNDS; round++) {
		x = x * 1664525 + 1013904223;
		/* First in first out, last in first out, at random; mostly adding or removing. */
		i = round < 20000   ? (size_t)round % SLOTS
		    : round < 40000 ? SLOTS - 1 - (size_t)round % SLOTS
				    : (x >> 12) % SLOTS;
		if (round >= 40000 && (x >> 28 < 12) == is[i])
			continue;
		if (is[i])
			drop(&r, BASE + i * CHUNK);
		else
			assert_true(add(&r, BASE + i * CHUNK, CHUNK / 2));
		is[i] = !is[i];
		count += is[i] ? 1 : (size_t)-1;
		assert_int_equal(r.count, count);
		if (round % 97)
			continue;
		for (i = 0; i < SLOTS; i++) {
			const struct qcul_range *range =
				qcul_ranges_find(&r, BASE + i * CHUNK + CHUNK / 4);

			assert_int_equal(range != NULL, is[i]);
			assert_true(!range || range->start == BASE + i * CHUNK);
		}
	}
	free(r.v - r.front);
}

static void each_flag_has_a_bit_of_its_own(void **state)
{
	static const enum qcul_mem_flag flags[] = {
		QCUL_MEM_AMBIGUOUS,    QCUL_MEM_POOLED,		QCUL_MEM_IMPORTED,
		QCUL_MEM_SHARED,       QCUL_MEM_MAPPED,		QCUL_MEM_COPIED,
		QCUL_MEM_MOVES,	       QCUL_MEM_WIDE,		QCUL_MEM_ASKED_PORTABLE,
		QCUL_MEM_ASKED_MAPPED, QCUL_MEM_ASKED_COMBINED,
	};
	uint32_t seen = 0;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
		assert_int_equal(__builtin_popcount(flags[i]), 1);
		assert_int_equal(seen & flags[i], 0);
		seen |= flags[i];
	}
}

/* What a program asks for comes back, and no flag of our own goes out with it or comes in. */
static void flags_of_calls_come_back(void **state)
{
	const uint32_t asked =
		QCUL_MEM_ASKED_PORTABLE | QCUL_MEM_ASKED_MAPPED | QCUL_MEM_ASKED_COMBINED;
	const unsigned int all =
		cudaHostAllocPortable | cudaHostAllocMapped | cudaHostAllocWriteCombined;
	unsigned int call;

	(void)state;
	assert_int_equal(qcul_mem_asked(~0u), asked);
	assert_int_equal(qcul_mem_call_flags(~0u), all);
	assert_int_equal(qcul_mem_call_flags(~asked), 0);
	for (call = 0; call <= all; call++)
		assert_int_equal(qcul_mem_call_flags(qcul_mem_asked(call)), call & all);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(refuses_what_overlaps),
		cmocka_unit_test(finds_by_any_address_inside),
		cmocka_unit_test(keeps_its_order),
		cmocka_unit_test(takes_the_first_gap_on_a_chunk_boundary),
		cmocka_unit_test(uses_a_freed_gap_again),
		cmocka_unit_test(stays_inside_its_bounds),
		cmocka_unit_test(in_any_order),
		cmocka_unit_test(each_flag_has_a_bit_of_its_own),
		cmocka_unit_test(flags_of_calls_come_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
