// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The cuda backend's device memory that leaves and comes back, with a stand-in for CUDA.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>

#include "tests/rounds.h"

#define DEV CUDA_DEVICE
#include "tests/unit/device/cuda/cuda_store.h"

#define MIB    (1ull << 20)
#define DEVICE (4096 * MIB)

/* ---- the caller's side ---- */

static int begin(void **state)
{
	(void)state;
	memset(&be, 0, sizeof(be));
	store_room = UINT64_MAX;
	return cuda_open_movable(&be, DEVICE);
}

static int end(void **state)
{
	(void)state;
	cu_mem_close(&be);
	slow_end();
	return !cuda_is_empty() || stored;
}

static int leave(uint64_t want, uint64_t *left)
{
	int ret = leave_to_store(want, left);

	assert_int_equal(cu_mem_away(&be, DEV), stored);
	return ret;
}

static uint64_t allocate(uint64_t size)
{
	uint64_t addr;

	return cu_mem_alloc(&be, DEV, size, &addr) ? 0 : addr;
}

static uint64_t *word(uint64_t addr)
{
	return (uint64_t *)(uintptr_t)addr;
}

static void fill(uint64_t addr, uint64_t size, uint64_t seed)
{
	uint64_t at;

	for (at = 0; at + 8 <= size; at += MIB)
		*word(addr + at) = seed + at;
}

static void check(uint64_t addr, uint64_t size, uint64_t seed)
{
	uint64_t at;

	for (at = 0; at + 8 <= size; at += MIB)
		assert_int_equal(*word(addr + at), seed + at);
}

/* ---- the tests ---- */

static void nothing_moves_without_the_option(void **state)
{
	uint64_t n = 1;

	(void)state;
	be.movable = false;
	assert_int_equal(leave(1, &n), QCU_ERR_NotSupported);
	assert_int_equal(n, 0);
	assert_int_equal(cu_mem_return(&be, DEV, &n), 0);
	assert_int_equal(cu_mem_movable(&be, DEV), 0);
	be.movable = true;
}

static void sizes_that_cannot_be_had(void **state)
{
	static const uint64_t sizes[] = {DEVICE + 1,	 1ull << 40,	    (1ull << 40) + 1,
					 UINT64_MAX / 2, UINT64_MAX - 4095, UINT64_MAX};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
		assert_int_equal(allocate(sizes[i]), 0);
	assert_int_equal(cuda.used, 0);
}

#define LARGE (2 * PART + LAST)
#define LAST  (6 * MIB)

static void a_full_store_stops_at_each_part(void **state)
{
	const uint64_t a = allocate(LARGE);
	uint64_t left, whole;

	(void)state;
	for (store_room = 0; store_room < LARGE + BE_PIECE; store_room += BE_PIECE / 2) {
		whole = store_room / PART < 2 ? store_room / PART * PART : 2 * PART;
		/* The last part is small. */
		whole += store_room - whole >= LAST ? LAST : 0;
		fill(a, LARGE, store_room);
		left = must_leave(UINT64_MAX);
		assert_int_equal(left, whole);
		assert_int_equal(cuda.used, LARGE - left);
		assert_int_equal(cu_mem_movable(&be, DEV), LARGE - left);
		assert_true(cu_mem_valid(&be, a, LARGE));
		assert_int_equal(must_return(), left);
		check(a, LARGE, store_room);
	}
	assert_int_equal(cu_mem_free(&be, a), 0);
}

/* Of what a VM is guaranteed, nothing leaves for a few bytes that others need. */
static void no_more_leaves_than_is_wanted(void **state)
{
	const uint64_t a = allocate(PART), c = allocate(4 * MIB), b = allocate(2 * MIB);

	(void)state;
	assert_int_equal(must_leave(0), 0);
	assert_int_equal(must_leave(1), 2 * MIB);
	assert_int_equal(must_leave(3 * MIB), 4 * MIB);
	must_return();
	assert_int_equal(must_leave(5 * MIB), 6 * MIB);
	must_return();
	store_room = 5 * MIB;
	assert_int_equal(must_leave(PART), 4 * MIB);
	must_return();
	assert_int_equal(cu_mem_free(&be, a), 0);
	assert_int_equal(cu_mem_free(&be, b), 0);
	assert_int_equal(cu_mem_free(&be, c), 0);
}

static void a_full_device_keeps_the_rest_away(void **state)
{
	const uint64_t a = allocate(LARGE);
	uint64_t back, sum = 0;

	(void)state;
	fill(a, LARGE, 7);
	must_leave(UINT64_MAX);
	for (cuda.room = PART - MIB; sum < LARGE; cuda.room += PART) {
		int ret = cu_mem_return(&be, DEV, &back);

		sum += back;
		assert_int_equal(cu_mem_away(&be, DEV), LARGE - sum);
		assert_int_equal(ret, sum < LARGE ? (int)QCU_ERR_MemoryAllocation : 0);
	}
	check(a, LARGE, 7);
	assert_int_equal(cu_mem_free(&be, a), 0);
}

/* Whichever call of the driver fails: each part is here or away, and nothing is lost. */
static void each_call_may_fail(void **state)
{
	const uint64_t a = allocate(LARGE), small = allocate(1000);
	unsigned int n;
	uint64_t moved;
	bool failed;
	int ret;

	(void)state;
	for (n = 1, failed = true; failed; n++) {
		fill(a, LARGE, n);
		fill(small, 1000, n);
		cuda.calls = 0;
		cuda.fail_at = n;
		ret = leave(UINT64_MAX, &moved);
		cuda.fail_at = 0;
		failed = cuda.calls >= n;
		assert_int_equal(!!ret, failed);
		assert_int_equal(moved, stored);
		must_return();
		check(a, LARGE, n);
		check(small, 1000, n);
	}
	assert_true(n > 10);
	for (n = 1, failed = true; failed; n++) {
		fill(a, LARGE, n);
		fill(small, 1000, n);
		must_leave(UINT64_MAX);
		cuda.calls = 0;
		cuda.fail_at = n;
		ret = cu_mem_return(&be, DEV, &moved);
		cuda.fail_at = 0;
		failed = cuda.calls >= n;
		assert_int_equal(!!ret, failed);
		assert_int_equal(stored, LARGE + 2 * MIB - moved);
		assert_int_equal(cu_mem_away(&be, DEV), stored);
		must_return();
		check(a, LARGE, n);
		check(small, 1000, n);
	}
	assert_true(n > 10);
	for (n = 1;; n++) {
		cuda.calls = 0;
		cuda.fail_at = n;
		if (allocate(LARGE))
			break;
		cuda.fail_at = 0;
		assert_int_equal(cuda.used, LARGE + 2 * MIB);
	}
	assert_true(n > 5);
	cuda.fail_at = 0;
}

static void what_is_away_is_freed(void **state)
{
	const uint64_t a = allocate(LARGE), b = allocate(3 * MIB), small = allocate(1000);

	(void)state;
	fill(b, 3 * MIB, 9);
	must_leave(1);
	must_leave(UINT64_MAX);
	assert_int_equal(cuda.used, 0);
	assert_int_equal(cu_mem_free(&be, a), 0);
	assert_int_equal(cu_mem_free(&be, a), QCU_ERR_InvalidValue);
	assert_false(cu_mem_valid(&be, a, 1));
	/* The slab is empty, but it is not kept for the next: it would not be free memory. */
	assert_int_equal(cu_mem_free(&be, small), 0);
	assert_int_equal(stored, 4 * MIB);
	assert_int_equal(cu_kept_bytes(&be, DEV), 0);
	must_return();
	check(b, 3 * MIB, 9);
	assert_int_equal(cu_mem_free(&be, b), 0);
}

static void the_end_gives_all_back(void **state)
{
	(void)state;
	allocate(LARGE);
	allocate(1000);
	must_leave(PART);
}

static void what_others_know_stays(void **state)
{
	const uint64_t a = allocate(LARGE);

	(void)state;
	cu_plot_around(&be, a)->known = true;
	assert_int_equal(cu_mem_movable(&be, DEV), 0);
	assert_int_equal(must_leave(UINT64_MAX), 0);
	assert_null(cu_plot_around(&be, a - 1));
	assert_null(cu_plot_around(&be, a + LARGE));
	assert_ptr_equal(cu_plot_around(&be, a + LARGE - 1), cu_plot_around(&be, a));
}

/* A part that the store cannot keep stays, and what it cannot read stays away. */
static void a_store_may_fail(void **state)
{
	const uint64_t a = allocate(LARGE);
	uint64_t back;

	(void)state;
	slow.each = 3;
	slow.step = MIB;
	slow.whole = 8 * MIB; /* as the stand-in */
	fill(a, LARGE, 1);
	slow.no_keep = true;
	/* Of five blocks the first and the fourth are slow: those of the two large parts. */
	assert_int_equal(must_leave(UINT64_MAX), LAST);
	check(a, LARGE - LAST, 1);
	must_return();
	slow.no_keep = false;
	slow.taken = 0;
	assert_int_equal(must_leave(UINT64_MAX), LARGE);
	slow.no_read = true;
	assert_int_equal(cu_mem_return(&be, DEV, &back), QCU_ERR_OperatingSystem);
	assert_int_equal(back, 0);
	assert_int_equal(cu_mem_away(&be, DEV), LARGE);
	slow.no_read = false;
	assert_int_equal(must_return(), LARGE);
	check(a, LARGE, 1);
	must_leave(UINT64_MAX);
	slow.no_read = true;
	assert_int_equal(cu_mem_free(&be, a), 0);
}

/* Another device's memory comes first, as far as it goes. It is all given back. */
static void another_device_is_the_store(void **state)
{
	const uint64_t a = allocate(LARGE);
	unsigned int blocks;

	(void)state;
	assert_null(cu_store_take(&be, BE_PIECE));
	be.store = true;
	for (blocks = 0; blocks < 6; blocks++) {
		cuda.lent_room = blocks * BE_PIECE;
		fill(a, LARGE, blocks);
		assert_int_equal(must_leave(UINT64_MAX), LARGE);
		/* The last of five blocks is a small one. */
		assert_int_equal(cuda.lent, blocks < 5 ? blocks * BE_PIECE : 4 * BE_PIECE + LAST);
		assert_int_equal(must_return(), LARGE);
		assert_int_equal(cuda.lent, 0);
		check(a, LARGE, blocks);
	}
	must_leave(UINT64_MAX);
	assert_int_equal(cu_mem_free(&be, a), 0);
	assert_int_equal(cuda.lent, 0);
}

/* Whichever call fails: another store is used, or the error is the call's. Nothing is lost. */
static void each_call_may_fail_with_another_device(void **state)
{
	const uint64_t a = allocate(LARGE);
	uint64_t moved, left;
	unsigned int n, lost = 0;
	bool failed = true;
	int ret;

	(void)state;
	be.store = true;
	cuda.lent_room = 3 * BE_PIECE;
	for (n = 1; failed; n++) {
		fill(a, LARGE, n);
		cuda.calls = 0;
		cuda.fail_at = n;
		ret = leave(UINT64_MAX, &moved);
		if (!ret && cuda.calls < n)
			ret = cu_mem_return(&be, DEV, &moved);
		cuda.fail_at = 0;
		failed = cuda.calls >= n;
		assert_true(!ret || failed);
		must_return();
		check(a, LARGE, n);
		/* At most what it was told that it cannot unmap. */
		left = cuda_drop_lent();
		assert_true(left <= BE_PIECE);
		lost += !!left;
	}
	assert_true(n > 30 && lost);
}

#define KEPT  60
#define STEPS 4000

static void random_steps(void **state)
{
	struct {
		uint64_t addr, size, seed;
	} b[KEPT] = {{0}};
	unsigned int seed = 45, i, k;
	uint64_t moved;

	(void)state;
	/* A third of the steps each with a store in memory, a slow one, and two stores. */
	for (i = 0; i < random_rounds(STEPS) / 3; i++) {
		k = (unsigned int)rand_r(&seed) % KEPT;
		switch (rand_r(&seed) % 8) {
		case 0:
			store_room = stored + (unsigned int)rand_r(&seed) % (1024 * MIB);
			slow.no_keep = slow.each && !(rand_r(&seed) % 4);
			must_leave((unsigned int)rand_r(&seed));
			slow.no_keep = false;
			break;
		case 1:
			cuda.room = cuda.used + (unsigned int)rand_r(&seed) % (1024 * MIB);
			slow.no_read = slow.each && !(rand_r(&seed) % 4);
			(void)cu_mem_return(&be, DEV, &moved);
			slow.no_read = false;
			cuda.room = DEVICE;
			break;
		case 2:
			if (cu_mem_away(&be, DEV) + cuda.used > DEVICE)
				break;
			must_return();
			for (k = 0; k < KEPT; k++)
				if (b[k].addr)
					check(b[k].addr, b[k].size, b[k].seed);
			break;
		default:
			if (b[k].addr) {
				assert_true(cu_mem_valid(&be, b[k].addr, b[k].size));
				assert_int_equal(cu_mem_free(&be, b[k].addr), 0);
				b[k].addr = 0;
				break;
			}
			/* In a slab that is away it could not be filled. */
			if (cu_mem_away(&be, DEV))
				break;
			b[k].size = rand_r(&seed) % 2
					    ? 8 + (unsigned int)rand_r(&seed) % (2 * MIB)
					    : MIB + (unsigned int)rand_r(&seed) % (700 * MIB);
			b[k].seed = (unsigned int)rand_r(&seed);
			b[k].addr = allocate(b[k].size);
			if (b[k].addr)
				fill(b[k].addr, b[k].size, b[k].seed);
			break;
		}
	}
}

static void random_steps_of_a_slow_store(void **state)
{
	slow.each = 2;
	slow.step = MIB;
	slow.whole = 8 * MIB; /* as the stand-in */
	random_steps(state);
}

static void each_call_may_fail_with_a_slow_store(void **state)
{
	slow.each = 2;
	slow.step = MIB;
	slow.whole = 8 * MIB; /* as the stand-in */
	each_call_may_fail(state);
}

static void random_steps_of_two_stores(void **state)
{
	be.store = true;
	cuda.lent_room = 5 * BE_PIECE;
	random_steps(state);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(nothing_moves_without_the_option),
		TEST(sizes_that_cannot_be_had),
		TEST(a_full_store_stops_at_each_part),
		TEST(no_more_leaves_than_is_wanted),
		TEST(a_full_device_keeps_the_rest_away),
		TEST(each_call_may_fail),
		TEST(what_is_away_is_freed),
		TEST(the_end_gives_all_back),
		TEST(what_others_know_stays),
		TEST(a_store_may_fail),
		TEST(each_call_may_fail_with_a_slow_store),
		TEST(random_steps),
		TEST(random_steps_of_a_slow_store),
		TEST(another_device_is_the_store),
		TEST(each_call_may_fail_with_another_device),
		TEST(random_steps_of_two_stores),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
