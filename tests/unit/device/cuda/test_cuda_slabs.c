// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The cuda backend's device memory, with a stand-in for CUDA that counts what it has given out. A
 * guest that keeps one small allocation of each slab cannot have more than its limit; nor can one
 * whose allocations are a little larger than CUDA's units.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "tests/rounds.h"
#include "tests/unit/device/cuda/cuda_stand_in.h"

#define MIB   (1ull << 20)
#define UNIT  (2 * MIB)
#define LIMIT (64 * MIB)
#define MANY  200000u

/* ---- the mirror's side ---- */

static uint64_t charged;

static bool room(void *ctx, unsigned int dev, int64_t bytes)
{
	(void)ctx;
	assert_int_equal(dev, 1);
	if (bytes > 0 && charged + (uint64_t)bytes > LIMIT)
		return false;
	charged += (uint64_t)bytes;
	return true;
}

static struct be be;
static uint64_t *kept;

static int begin(void **state)
{
	(void)state;
	memset(&be, 0, sizeof(be));
	be.charge_device = room;
	be.devices = 2;
	charged = 0;
	cuda_begin(&be, 0);
	kept = calloc(MANY, sizeof(*kept));
	return !kept || cu_mem_open(&be);
}

static int end(void **state)
{
	(void)state;
	cu_mem_close(&be);
	free(kept);
	return !cuda_is_empty();
}

static uint64_t allocate(uint64_t size)
{
	uint64_t addr;

	return cu_mem_alloc(&be, 1, size, &addr) ? 0 : addr;
}

static void free_all(unsigned int n)
{
	while (n--)
		if (kept[n])
			assert_int_equal(cu_mem_free(&be, kept[n]), 0);
	assert_int_equal(charged, 0);
	/* What is kept for the next allocation has a bound of its own. */
	assert_true(cuda.exists <= CU_KEPT_BYTES);
}

/* One piece in each block stays; the rest of the block is filled for a while, and freed. */
static void one_piece_per_block(void **state)
{
	uint64_t large[64];
	unsigned int n = 0, i, k, rounds;

	(void)state;
	for (rounds = 0; rounds < ROUNDS(200); rounds++) {
		for (k = 0; k < 64; k++) {
			kept[n] = allocate(512);
			n += kept[n] != 0;
			large[k] = allocate(512 * 1024 - 512);
			if (!large[k])
				break;
		}
		for (i = 0; i < k; i++)
			assert_int_equal(cu_mem_free(&be, large[i]), 0);
		assert_true(charged <= LIMIT);
		assert_true(cuda.exists <= charged + CU_KEPT_BYTES);
	}
	free_all(n);
}

static void a_little_more_than_units(void **state)
{
	unsigned int n;

	(void)state;
	for (n = 0; (kept[n] = allocate(UNIT + 1)); n++)
		assert_true(cuda.exists <= LIMIT);
	assert_int_equal(n, LIMIT / (2 * UNIT));
	free_all(n);
	for (n = 0; (kept[n] = allocate(MIB + 1)); n++)
		assert_true(cuda.exists <= LIMIT + CU_KEPT_BYTES);
	assert_int_equal(n, LIMIT / UNIT);
	free_all(n);
}

/* All of the limit can be used for pieces, and what has been freed can be had again. */
static void whole_limit(void **state)
{
	unsigned int n, again;

	(void)state;
	for (n = 0; n < MANY && (kept[n] = allocate(512)); n++)
		;
	assert_int_equal(n, LIMIT / 512);
	assert_int_equal(charged, LIMIT);
	assert_int_equal(allocate(UNIT), 0);
	assert_int_equal(cu_mem_free(&be, kept[77]), 0);
	kept[77] = allocate(512);
	assert_int_not_equal(kept[77], 0);
	assert_int_equal(cu_mem_taken(&be, kept[77]) % UNIT, 0);
	assert_true(cu_mem_taken(&be, kept[77]) >= UNIT);
	free_all(n);
	for (again = 0; again < n && (kept[again] = allocate(512)); again++)
		;
	assert_int_equal(again, n);
	/* A reset takes all of it away inside CUDA. */
	cuda_forget();
	cu_mem_reset(&be, 1);
	assert_int_equal(charged, 0);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, begin, end)
	const struct CMUnitTest tests[] = {
		T(one_piece_per_block),
		T(a_little_more_than_units),
		T(whole_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
