// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Memory of pools in a saved session with the cuda backend: plots and lots at the addresses that
 * are wanted, with a stand-in for CUDA.
 */
#include "tests/unit/device/cuda/test_cuda_saved.h"

static struct be_stream stream = {.dev = DEV, .number = 1};

/* The default pool. */
static struct be_pool *pool(void)
{
	struct be_pool *p;

	stream.s = (cudaStream_t)&stream;
	assert_int_equal(cu_pool_default(&be, DEV, &p), 0);
	return p;
}

static uint64_t allocate_pooled(struct be_pool *p, uint64_t size)
{
	uint64_t addr;

	return cu_pool_alloc(&be, p, size, &stream, &addr) ? 0 : addr;
}

static uint64_t pool_wanted(struct be_pool *p, uint64_t size, const struct be_wanted *w,
			    size_t count)
{
	static const struct be_wanted none;
	uint64_t addr;

	cu_want(&be, count ? w : &none, count);
	addr = allocate_pooled(p, size);
	cu_want(&be, NULL, 0);
	return addr;
}

static uint64_t pool_count(struct be_pool *p, uint32_t attr)
{
	uint64_t value = 0;

	assert_int_equal(cu_pool_get(&be, p, attr, &value), 0);
	return value;
}

static void plots_that_cannot_be(void **state)
{
	const uint64_t a = allocate_pooled(pool(), 3 * MIB), end = a + 32 * MIB;
	/* Plots: CUDA's units, no bytes, more than there is, more than any GPU has. */
	const struct {
		uint64_t addr, size;
	} bad[] = {{a, 0},
		   {a, 32 * MIB + 512},
		   {a + 512, 32 * MIB},
		   {a - 512, 32 * MIB},
		   {a, LIMIT + CU_UNIT},
		   {a, 1ull << 41},
		   {a, 1ull << 63},
		   {a, -CU_UNIT},
		   {-CU_UNIT, 4 * CU_UNIT},
		   /* The memory does not lie in it. */
		   {a, CU_UNIT},
		   {a + CU_UNIT, 32 * MIB},
		   {a - 32 * MIB, 32 * MIB},
		   {a - 32 * MIB, 34 * MIB}};
	struct be_wanted good[2] = {{.addr = a, .size = 3 * MIB, .dev = DEV}}, w[2];
	struct be_pool *other;
	size_t i;

	(void)state;
	assert_true(cu_mem_block(&be, a, &good[1]));
	assert_int_equal(good[1].addr, a);
	assert_int_equal(good[1].size, 32 * MIB);
	begin_again();
	/* Nothing is wanted, no plot, another device, no address. */
	assert_int_equal(pool_wanted(pool(), 3 * MIB, good, 0), 0);
	assert_int_equal(pool_wanted(pool(), 3 * MIB, good, 1), 0);
	for (i = 0; i < 2; i++) {
		memcpy(w, good, sizeof(w));
		w[i].dev = 0;
		assert_int_equal(pool_wanted(pool(), 3 * MIB, w, 2), 0);
		memcpy(w, good, sizeof(w));
		w[i].addr = 0;
		assert_int_equal(pool_wanted(pool(), 3 * MIB, w, 2), 0);
	}
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		memcpy(w, good, sizeof(w));
		w[1].addr = bad[i].addr;
		w[1].size = bad[i].size;
		assert_int_equal(pool_wanted(pool(), 3 * MIB, w, 2), 0);
	}
	/* The window of the mirror. */
	w[0].addr = w[1].addr = QCU_WINDOW_BASE;
	w[1].size = 32 * MIB;
	assert_int_equal(pool_wanted(pool(), 3 * MIB, w, 2), 0);
	w[0].addr = w[1].addr = QCU_WINDOW_BASE - CU_UNIT;
	assert_int_equal(pool_wanted(pool(), CU_UNIT, w, 2), 0);
	/* Where it lies, and how much it is. */
	memcpy(w, good, sizeof(w));
	for (i = 1; i < 512; i += i) {
		w[0].addr = a + i;
		assert_int_equal(pool_wanted(pool(), MIB, w, 2), 0);
	}
	w[0].addr = end - 512;
	assert_int_equal(pool_wanted(pool(), 513, w, 2), 0);
	assert_int_equal(pool_wanted(pool(), 0, w, 2), 0);
	assert_int_equal(pool_wanted(pool(), UINT64_MAX, w, 2), 0);
	assert_int_equal(pool_wanted(pool(), -513ull, w, 2), 0);
	w[0].addr = end;
	assert_int_equal(pool_wanted(pool(), 1, w, 2), 0);
	/* The session may not have the plot. */
	charged = LIMIT - 29 * MIB + 1;
	assert_int_equal(pool_wanted(pool(), 3 * MIB, good, 2), 0);
	charged = 0;
	/* The pool may not have so much. */
	assert_int_equal(cu_pool_create(&be, DEV, 2 * MIB, &other), 0);
	assert_int_equal(pool_wanted(other, 3 * MIB, good, 2), 0);
	/* Nothing of that is left. */
	assert_int_equal(cuda.used, 0);
	assert_int_equal(charged, 0);
	be.movable = false;
	assert_int_equal(pool_wanted(pool(), 3 * MIB, good, 2), 0);
	be.movable = true;
	assert_int_equal(pool_wanted(pool(), 3 * MIB, good, 2), a);
	assert_int_equal(cu_pool_destroy(&be, other), 0);
}

/* In a plot that is there already. */
static void lots_that_cannot_be(void **state)
{
	const uint64_t a = allocate_pooled(pool(), 3 * MIB);
	struct be_wanted good[2] = {{.addr = a, .size = 3 * MIB, .dev = DEV}}, w[2];
	struct be_pool *other;
	uint64_t whole, small, at;

	(void)state;
	assert_true(cu_mem_block(&be, a, &good[1]));
	begin_again();
	good[0].addr = a + 5 * MIB;
	assert_int_equal(pool_wanted(pool(), 3 * MIB, good, 2), a + 5 * MIB);
	/* What is in use, wholly or in part. */
	memcpy(w, good, sizeof(w));
	for (at = a + 3 * MIB; at < a + 8 * MIB; at += 512 * KIB) {
		w[0].addr = at;
		assert_int_equal(pool_wanted(pool(), at < a + 5 * MIB ? 3 * MIB : 512, w, 2), 0);
	}
	/* Another pool, another size of the plot, a plot across the plot. */
	w[0].addr = a;
	assert_int_equal(cu_pool_create(&be, DEV, 0, &other), 0);
	assert_int_equal(pool_wanted(other, MIB, w, 2), 0);
	w[1].size = 34 * MIB;
	assert_int_equal(pool_wanted(pool(), MIB, w, 2), 0);
	w[1].size = 30 * MIB;
	assert_int_equal(pool_wanted(pool(), MIB, w, 2), 0);
	w[0].addr = a + 30 * MIB;
	w[1] = (struct be_wanted){.addr = a + 2 * MIB, .size = 32 * MIB, .dev = DEV};
	assert_int_equal(pool_wanted(pool(), MIB, w, 2), 0);
	w[1] = (struct be_wanted){.addr = a + 30 * MIB, .size = 32 * MIB, .dev = DEV};
	assert_int_equal(pool_wanted(pool(), MIB, w, 2), 0);
	/* Plots that are not a pool's: a whole allocation, and a slab. */
	whole = allocate(4 * MIB);
	w[0].addr = whole;
	w[1] = (struct be_wanted){.addr = whole, .size = 4 * MIB, .dev = DEV};
	assert_int_equal(pool_wanted(pool(), MIB, w, 2), 0);
	small = allocate(1000);
	assert_true(cu_mem_block(&be, small, &w[1]));
	w[0].addr = w[1].addr + MIB;
	assert_int_equal(pool_wanted(pool(), 1000, w, 2), 0);
	/* And the other way. */
	assert_int_equal(allocate_wanted(1000, good, 2), 0);
	memcpy(w, good, sizeof(w));
	w[0].addr = a + 2 * MIB;
	w[1] = (struct be_wanted){.addr = a + 2 * MIB, .size = 2 * MIB, .dev = DEV};
	assert_int_equal(allocate_wanted(1000, w, 2), 0);
	assert_int_equal(allocate_wanted(2 * MIB, w, 1), 0);
	assert_int_equal(pool_count(pool(), cudaMemPoolAttrUsedMemCurrent), 3 * MIB);
	assert_int_equal(pool_count(pool(), cudaMemPoolAttrReservedMemCurrent), 32 * MIB);
	/* What is free there can be had: before it, behind it, and the last bytes. */
	good[0].addr = a;
	assert_int_equal(pool_wanted(pool(), 5 * MIB, good, 2), a);
	good[0].addr = a + 8 * MIB;
	assert_int_equal(pool_wanted(pool(), 1, good, 2), a + 8 * MIB);
	good[0].addr = a + 32 * MIB - 512;
	assert_int_equal(pool_wanted(pool(), 511, good, 2), a + 32 * MIB - 512);
	good[0].addr = a + 8 * MIB + 512;
	assert_int_equal(pool_wanted(pool(), 24 * MIB - 1024, good, 2), a + 8 * MIB + 512);
	assert_int_equal(pool_count(pool(), cudaMemPoolAttrUsedMemCurrent), 32 * MIB);
	/* Not what a stream may still use. It is zero, also if it was freed before. */
	fill(a, 5 * MIB, 0xa5);
	cuda_hold();
	assert_int_equal(cu_pool_free(&be, a, &stream), 0);
	good[0].addr = a;
	assert_int_equal(pool_wanted(pool(), MIB, good, 2), 0);
	cuda.reached = UINT64_MAX;
	(void)pool_count(pool(), cudaMemPoolAttrUsedMemCurrent);
	assert_int_equal(pool_wanted(pool(), MIB, good, 2), a);
	assert_true(is_filled(a, MIB, 0));
	assert_int_equal(cu_pool_destroy(&be, other), 0);
}

#define LOTS 400u

/* Of two pools, beside other memory. */
static void all_lots_are_where_they_were(void **state)
{
	struct be_wanted w[LOTS][2] = {{{0}}};
	struct be_pool *p[2];
	unsigned int seed = 46, i, round, count = 0;
	uint64_t extra[LOTS] = {0}, used = 0, reserved, size, sum;

	(void)state;
	p[0] = pool();
	assert_int_equal(cu_pool_create(&be, DEV, 0, &p[1]), 0);
	for (i = 0; i < LOTS; i++) {
		size = i == 7 ? LARGE
			      : (uint64_t)rand_r(&seed) % (i % 30 ? 300 * KIB : 20 * MIB) + 1;
		w[i][0] = (struct be_wanted){
			.addr = allocate_pooled(p[i % 2], size), .size = size, .dev = DEV};
		assert_true(w[i][0].addr);
		fill(w[i][0].addr, size, 0xa5);
		used += (size + 511) / 512 * 512;
		/* There are gaps between them. */
		extra[i] = allocate_pooled(p[i % 2], (uint64_t)rand_r(&seed) % MIB + 1);
	}
	for (i = 0; i < LOTS; i++)
		assert_int_equal(cu_pool_free(&be, extra[i], &stream), 0);
	for (i = 0; i < LOTS; i++)
		assert_true(cu_mem_block(&be, w[i][0].addr, &w[i][1]));
	reserved = pool_count(p[0], cudaMemPoolAttrReservedMemCurrent) +
		   pool_count(p[1], cudaMemPoolAttrReservedMemCurrent);
	assert_int_equal(cu_pool_destroy(&be, p[1]), 0);
	begin_again();
	p[0] = pool();
	assert_int_equal(cu_pool_create(&be, DEV, 0, &p[1]), 0);
	for (i = 0; i < LOTS; i++)
		assert_int_equal(cu_hold(&be, &w[i][1], 1), 0);
	/* In any order. */
	for (i = 0; i < LOTS; i++) {
		const unsigned int k = (i * 77 + 5) % LOTS;

		assert_int_equal(pool_wanted(p[k % 2], w[k][0].size, w[k], 2), w[k][0].addr);
		assert_true(is_filled(w[k][0].addr, w[k][0].size, 0));
		fill(w[k][0].addr, w[k][0].size, (uint8_t)k);
		count++;
	}
	assert_int_equal(count, LOTS);
	assert_int_equal(cu_hold(&be, NULL, 0), 0);
	sum = pool_count(p[0], cudaMemPoolAttrUsedMemCurrent) +
	      pool_count(p[1], cudaMemPoolAttrUsedMemCurrent);
	assert_int_equal(sum, used);
	sum = pool_count(p[0], cudaMemPoolAttrReservedMemCurrent) +
	      pool_count(p[1], cudaMemPoolAttrReservedMemCurrent);
	assert_int_equal(sum, reserved);
	assert_int_equal(cuda.used, reserved);
	assert_int_equal(charged, 0);
	/* What comes later lies elsewhere, and what is freed is one again. */
	for (round = 0; round < 2; round++) {
		for (i = 0; i < LOTS; i++) {
			extra[i] = allocate_pooled(p[i % 2], 100 * KIB);
			fill(extra[i], 100 * KIB, 0xff);
		}
		for (i = 0; i < LOTS; i++) {
			assert_true(is_filled(w[i][0].addr, w[i][0].size, (uint8_t)i));
			assert_int_equal(cu_pool_free(&be, extra[i], &stream), 0);
		}
	}
	for (i = 0; i < LOTS; i++) {
		assert_true(cu_mem_valid(&be, w[i][0].addr, w[i][0].size));
		assert_int_equal(cu_pool_free(&be, w[i][0].addr, &stream), 0);
	}
	for (i = 0; i < 2; i++)
		assert_int_equal(pool_count(p[i], cudaMemPoolAttrReservedMemCurrent), 0);
	assert_int_equal(cuda.used, 0);
	assert_int_equal(cu_pool_destroy(&be, p[1]), 0);
}

/* Whichever call fails: nothing is left of the lot, and of a plot only what the pool keeps. */
static void each_call_of_a_lot_may_fail(void **state)
{
	struct be_wanted w[2] = {
		{.addr = allocate_pooled(pool(), LARGE), .size = LARGE, .dev = DEV}};
	unsigned int n;
	uint64_t addr;

	(void)state;
	assert_true(cu_mem_block(&be, w[0].addr, &w[1]));
	begin_again();
	for (n = 1, addr = 0; !addr; n++) {
		cuda.calls = 0;
		cuda.fail_at = n;
		addr = pool_wanted(pool(), LARGE, w, 2);
		cuda.fail_at = 0;
		assert_int_equal(charged, 0);
		assert_int_equal(pool_count(pool(), cudaMemPoolAttrUsedMemCurrent),
				 addr ? w[1].size : 0);
		assert_int_equal(cuda.used, addr ? w[1].size : 0);
	}
	assert_true(n > 5);
}

/* The mirror makes room on the GPU, and asks again. */
static void room_may_come_late(void **state)
{
	struct be_wanted w[2] = {{.addr = allocate_pooled(pool(), MIB), .size = MIB, .dev = DEV}};

	(void)state;
	assert_true(cu_mem_block(&be, w[0].addr, &w[1]));
	begin_again();
	assert_int_equal(cu_hold(&be, &w[1], 1), 0);
	cuda.room = 31 * MIB;
	cu_want(&be, w, 2);
	assert_int_equal(allocate_pooled(pool(), MIB), 0);
	cuda.room = LIMIT;
	assert_int_equal(allocate_pooled(pool(), MIB), w[0].addr);
	/* Once. */
	assert_int_equal(allocate_pooled(pool(), MIB), 0);
	cu_want(&be, NULL, 0);
}

#define STEPS 3000u

/* Any numbers near good ones: what is had lies where it was wanted, and shares nothing. */
static void any_lots(void **state)
{
	static const uint64_t sizes[] = {2 * MIB, 4 * MIB, 32 * MIB};
	struct {
		uint64_t addr, size;
	} have[64] = {{0}};
	const uint64_t from = FREE_PLACE;
	uint64_t sum;
	unsigned int seed = 46, i, k, n, had = 0, refused = 0;
	struct be_wanted w[2];
	struct be_pool *p[2];

	(void)state;
	p[0] = pool();
	assert_int_equal(cu_pool_create(&be, DEV, 0, &p[1]), 0);
	for (i = 0; i < STEPS; i++) {
		k = (unsigned int)rand_r(&seed) % 64;
		if (have[k].addr) {
			assert_int_equal(cu_mem_free(&be, have[k].addr), 0);
			have[k].addr = 0;
			continue;
		}
		w[1].dev = w[0].dev = DEV;
		w[1].size = sizes[(unsigned int)rand_r(&seed) % 3];
		w[1].addr = from + (unsigned int)rand_r(&seed) % 4 * 32 * MIB;
		if (rand_r(&seed) % 20 == 0)
			w[1].addr += (unsigned int)rand_r(&seed) % 16 * 256 * KIB;
		w[0].addr = w[1].addr + (uint64_t)rand_r(&seed) * 512 % (w[1].size + 512);
		if (rand_r(&seed) % 20 == 0)
			w[0].addr += 256;
		have[k].size = (uint64_t)rand_r(&seed) % (i % 4 ? 200 * KIB : 5 * MIB) + 1;
		have[k].addr = pool_wanted(p[rand_r(&seed) % 2], have[k].size, w, 2);
		refused += !have[k].addr;
		had += have[k].addr != 0;
		assert_true(!have[k].addr || have[k].addr == w[0].addr);
		for (n = 0; n < 64 && have[k].addr; n++)
			assert_true(n == k || !have[n].addr ||
				    have[n].addr + have[n].size <= have[k].addr ||
				    have[k].addr + have[k].size <= have[n].addr);
		assert_int_equal(charged, 0);
		/* The count gives back what is not used. */
		sum = pool_count(p[0], cudaMemPoolAttrReservedMemCurrent) +
		      pool_count(p[1], cudaMemPoolAttrReservedMemCurrent);
		assert_int_equal(sum, cuda.used);
	}
	assert_true(had > STEPS / 10 && refused > STEPS / 10);
	assert_int_equal(cu_pool_destroy(&be, p[1]), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(plots_that_cannot_be),	    TEST(lots_that_cannot_be),
		TEST(all_lots_are_where_they_were), TEST(each_call_of_a_lot_may_fail),
		TEST(room_may_come_late),	    TEST(any_lots),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
