// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Pools of the cuda backend whose memory can leave, with a stand-in for CUDA: who may have a lot
 * again and when, what goes back to the driver, and random steps against a model.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <cmocka.h>

#include "tests/rounds.h"
#include "tests/unit/device/cuda/cuda_stand_in.h"

#define MIB    (1ull << 20)
#define DEV    CUDA_DEVICE
#define DEVICE (512 * MIB)
#define PLOT   (32 * MIB)

static uint64_t stored;

static void *store_take(void *ctx, uint64_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	(void)ctx;
	assert_true(p != MAP_FAILED);
	stored += bytes;
	return p;
}

static void store_give(void *ctx, void *p, uint64_t bytes)
{
	(void)ctx;
	stored -= bytes;
	munmap(p, bytes);
}

static struct be be;
static struct be_pool *pool;
static struct be_stream first = {.dev = DEV, .number = 1}, other = {.dev = DEV, .number = 2};

static int begin(void **state)
{
	int ret;

	(void)state;
	memset(&be, 0, sizeof(be));
	ret = cuda_open_movable(&be, DEVICE);
	first.s = other.s = (cudaStream_t)&stored;
	return ret || cu_pool_default(&be, DEV, &pool);
}

static int end(void **state)
{
	(void)state;
	cu_mem_close(&be);
	return !cuda_is_empty() || stored;
}

static uint64_t get(uint64_t size, struct be_stream *s)
{
	uint64_t addr;

	return cu_pool_alloc(&be, pool, size, s, &addr) ? 0 : addr;
}

static void put(uint64_t addr, struct be_stream *s)
{
	assert_int_equal(cu_pool_free(&be, addr, s), 0);
	assert_false(cu_mem_valid(&be, addr, 1));
}

static uint64_t number_of(uint32_t attr)
{
	uint64_t value;

	assert_int_equal(cu_pool_get(&be, pool, attr, &value), 0);
	return value;
}

#define RESERVED number_of(cudaMemPoolAttrReservedMemCurrent)
#define USED	 number_of(cudaMemPoolAttrUsedMemCurrent)

static uint64_t must_leave(uint64_t want)
{
	const struct be_store s = {.take = store_take, .give = store_give};
	uint64_t left;

	assert_int_equal(cu_mem_leave(&be, DEV, want, &s, &left), 0);
	assert_int_equal(cu_mem_away(&be, DEV), stored);
	return left;
}

static void must_return(void)
{
	uint64_t back;

	assert_int_equal(cu_mem_return(&be, DEV, &back), 0);
	assert_int_equal(stored, 0);
}

static void fill(uint64_t addr, uint64_t size, uint64_t seed)
{
	uint64_t at;

	for (at = 0; at < size; at += MIB)
		*(uint64_t *)(uintptr_t)(addr + at) = seed + at;
}

static void check(uint64_t addr, uint64_t size, uint64_t seed)
{
	uint64_t at;

	for (at = 0; at < size; at += MIB)
		assert_int_equal(*(uint64_t *)(uintptr_t)(addr + at), seed + at);
}

/* ---- the tests ---- */

static void what_is_wrong_is_refused(void **state)
{
	static const uint64_t sizes[] = {
		0, DEVICE + 1, 1ull << 40, UINT64_MAX / 2, UINT64_MAX - 4095, UINT64_MAX};
	uint64_t addr, a;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
		assert_int_equal(get(sizes[i], &first), 0);
	assert_int_equal(cuda.used, 0);
	/* Other memory is not of a pool. It stays what it is. */
	assert_int_equal(cu_mem_alloc(&be, DEV, 3 * MIB, &addr), 0);
	assert_int_equal(cu_pool_free(&be, addr, &first), QCU_ERR_InvalidValue);
	assert_int_equal(cu_mem_free(&be, addr), 0);
	assert_int_equal(cu_mem_alloc(&be, DEV, 1000, &addr), 0);
	assert_int_equal(cu_pool_free(&be, addr, &first), QCU_ERR_InvalidValue);
	assert_int_equal(cu_mem_free(&be, addr), 0);
	a = get(3 * MIB, &first);
	assert_int_equal(cu_pool_free(&be, a + MIB, &first), QCU_ERR_InvalidValue);
	put(a, &first);
	assert_int_equal(cu_pool_free(&be, a, &first), QCU_ERR_InvalidValue);
}

static void a_lot_comes_again_in_the_order_of_streams(void **state)
{
	uint64_t a, b, c;

	(void)state;
	cuda_hold();
	a = get(8 * MIB, &first);
	put(a, &first);
	/* The other stream does not wait for the first one. */
	b = get(8 * MIB, &other);
	assert_true(b && b != a);
	assert_int_equal(get(8 * MIB, &first), a);
	put(a, &first);
	/* A part of the lot has its mark, too. */
	c = get(3 * MIB, &first);
	assert_int_equal(c, a);
	assert_int_not_equal(get(5 * MIB, &other), a + 3 * MIB);
	assert_int_equal(get(5 * MIB, &first), a + 3 * MIB);
	put(a + 3 * MIB, &first);
	put(c, &first);
	cuda.reached = UINT64_MAX;
	/* Both are one again. */
	assert_int_equal(USED, 13 * MIB);
	assert_int_equal(get(8 * MIB, &other), a);
	put(a, &other);
}

static void plots_go_back_above_the_threshold(void **state)
{
	uint64_t a = get(3 * MIB, &first), b = get(100 * MIB, &first);

	(void)state;
	assert_int_equal(USED, 103 * MIB);
	assert_int_equal(RESERVED, PLOT + 100 * MIB);
	assert_int_equal(cuda.used, PLOT + 100 * MIB);
	cuda_hold();
	put(b, &first);
	put(a, &first);
	assert_int_equal(USED, 0);
	assert_int_equal(RESERVED, PLOT + 100 * MIB);
	assert_int_equal(cu_pool_trim(&be, pool, 0), 0);
	assert_int_equal(RESERVED, PLOT + 100 * MIB);
	assert_int_equal(cu_pool_set(&be, pool, cudaMemPoolAttrReleaseThreshold, 50 * MIB), 0);
	cuda.reached = UINT64_MAX;
	assert_int_equal(RESERVED, PLOT);
	assert_int_equal(cuda.used, PLOT);
	assert_int_equal(number_of(cudaMemPoolAttrReservedMemHigh), PLOT + 100 * MIB);
	assert_int_equal(number_of(cudaMemPoolAttrUsedMemHigh), 103 * MIB);
	assert_int_equal(cu_pool_set(&be, pool, cudaMemPoolAttrUsedMemHigh, 0), 0);
	assert_int_equal(number_of(cudaMemPoolAttrUsedMemHigh), 0);
	assert_int_equal(cu_pool_trim(&be, pool, 0), 0);
	assert_int_equal(RESERVED, 0);
	assert_int_equal(cuda.used, 0);
}

static void a_pool_has_no_more_than_its_most(void **state)
{
	uint64_t a, b;

	(void)state;
	assert_int_equal(cu_pool_create(&be, DEV, 10 * MIB, &pool), 0);
	assert_int_equal(get(11 * MIB, &first), 0);
	a = get(6 * MIB, &first);
	assert_true(a);
	assert_int_equal(get(6 * MIB, &first), 0);
	b = get(4 * MIB, &first);
	assert_true(b);
	/* What it has stays until it is freed, in a stream or otherwise. */
	assert_int_equal(cu_pool_destroy(&be, pool), 0);
	assert_true(cu_mem_valid(&be, a, 6 * MIB));
	put(a, &first);
	assert_int_equal(cuda.used, PLOT);
	assert_int_equal(cu_mem_free(&be, b), 0);
	cu_pools_settle(&be, DEV);
	assert_int_equal(cuda.used, 0);
}

/* What another size has left behind, and what a stream has yet to free, is found if it is needed.
 */
static void the_device_is_full(void **state)
{
	uint64_t a, b, sum, total;

	(void)state;
	assert_int_equal(cu_pool_set(&be, pool, cudaMemPoolAttrReleaseThreshold, UINT64_MAX), 0);
	a = get(300 * MIB, &first);
	put(a, &first);
	a = get(400 * MIB, &first);
	assert_true(a);
	cuda_hold();
	put(a, &first);
	b = get(300 * MIB, &other);
	assert_true(b);
	assert_int_equal(get(400 * MIB, &other), 0);
	put(b, &other);
	assert_int_equal(cu_pool_set(&be, pool, cudaMemPoolAttrReleaseThreshold, 0), 0);
	cuda.reached = UINT64_MAX;
	assert_int_equal(cu_mem_info(&be, DEV, &sum, &total), 0);
	assert_int_equal(sum, DEVICE);
	/* The last bytes are fewer than a pool takes at a time. */
	a = get(DEVICE - 8 * MIB, &first);
	b = get(7 * MIB, &first);
	assert_true(a && b);
	put(a, &first);
	put(b, &first);
}

static void it_leaves_and_comes_back(void **state)
{
	uint64_t a = get(20 * MIB, &first), b = get(200 * MIB, &first), c, d;

	(void)state;
	fill(a, 20 * MIB, 1);
	fill(b, 200 * MIB, 2);
	assert_int_equal(cu_mem_movable(&be, DEV), 232 * MIB);
	assert_int_equal(must_leave(UINT64_MAX), 232 * MIB);
	assert_int_equal(cuda.used, 0);
	assert_int_equal(RESERVED, 232 * MIB);
	/* A lot of what is away is given out, and its plot comes back like others. */
	c = get(4 * MIB, &other);
	assert_int_equal(c, a + 20 * MIB);
	assert_int_equal(cuda.used, 0);
	must_return();
	check(a, 20 * MIB, 1);
	check(b, 200 * MIB, 2);
	fill(c, 4 * MIB, 3);
	/* What nobody uses is not copied, and counts as what has left. */
	assert_int_equal(cu_pool_set(&be, pool, cudaMemPoolAttrReleaseThreshold, UINT64_MAX), 0);
	d = get(64 * MIB, &first);
	put(d, &first);
	assert_int_equal(must_leave(50 * MIB), 64 * MIB);
	assert_int_equal(stored, 0);
	/* It is freed while it is away. */
	assert_int_equal(must_leave(UINT64_MAX), 232 * MIB);
	put(b, &first);
	assert_int_equal(cu_mem_free(&be, a), 0);
	assert_int_equal(cu_pool_trim(&be, pool, 0), 0);
	assert_int_equal(stored, PLOT);
	must_return();
	check(c, 4 * MIB, 3);
	put(c, &first);
}

/* A free beyond them waits for its stream. */
static void events_of_frees_are_few(void **state)
{
	static uint64_t a[65536 + 2];
	const size_t n = sizeof(a) / sizeof(*a);
	size_t i;

	(void)state;
	cuda_hold();
	for (i = 0; i < n; i++) {
		a[i] = get(512, &first);
		assert_true(a[i]);
	}
	for (i = 0; i < n; i++)
		put(a[n - 1 - i], &first);
	assert_int_equal(cuda.events, n - 2);
	cuda.reached = UINT64_MAX;
	assert_int_equal(RESERVED, 0);
	assert_int_equal(cuda.events, 0);
}

/* However many frees no stream has reached: few of them are asked about, and few lots are looked
 * at. */
static void many_frees_cost_little(void **state)
{
	static uint64_t a[2000];
	const size_t n = sizeof(a) / sizeof(*a);
	uint64_t addr;
	size_t i;

	(void)state;
	for (i = 0; i < n; i++) {
		a[i] = get(64 << 10, &first);
		assert_true(a[i]);
	}
	cuda_hold();
	for (i = 0; i < n; i++)
		put(a[i], i % 2 ? &first : &other);
	cuda.queries = 0;
	addr = get(40 * MIB, &first);
	assert_true(addr);
	assert_in_range(cuda.queries, 1, 2);
	put(addr, &first);
	cuda.reached = UINT64_MAX;
	assert_int_equal(RESERVED, 0);
}

/* Whichever call of CUDA fails: nothing is lost, and no memory is left. */
static void each_call_may_fail(void **state)
{
	unsigned int n;
	uint64_t a;

	(void)state;
	for (n = 1;; n++) {
		cuda.calls = 0;
		cuda.fail_at = n;
		a = get(3 * MIB, &first);
		if (a)
			break;
		cuda.fail_at = 0;
		assert_int_equal(cuda.used, 0);
		assert_int_equal(RESERVED, 0);
	}
	assert_true(n > 3);
	for (n = 1; n < 3; n++) {
		cuda.calls = 0;
		cuda.fail_at = n; /* the event */
		put(a, &first);
		cuda.fail_at = 0;
		assert_int_equal(USED, 0);
		a = get(3 * MIB, &first);
	}
	put(a, &first);
}

/* The backend has freed the plots, and the device has another default pool. */
static void a_reset_ends_all(void **state)
{
	uint64_t a = get(MIB, &first);

	(void)state;
	assert_true(get(300 * MIB, &other));
	assert_int_equal(cu_pool_set(&be, pool, cudaMemPoolAttrReleaseThreshold, UINT64_MAX), 0);
	cuda_hold();
	put(a, &first);
	cu_plots_reset(&be, DEV);
	cu_mem_reset(&be, DEV);
	assert_int_equal(cuda.used, 0);
	assert_int_equal(USED, 0);
	assert_int_equal(RESERVED, 0);
	a = get(MIB, &first);
	put(a, &first);
	cuda.reached = UINT64_MAX;
	assert_int_equal(RESERVED, 0);
}

static void the_end_gives_all_back(void **state)
{
	uint64_t a = get(MIB, &first);

	(void)state;
	assert_true(get(300 * MIB, &other));
	cuda_hold();
	put(a, &first);
	must_leave(PLOT);
}

static void it_can_be_saved(void **state)
{
	uint64_t a = get(MIB, &first);
	bool busy;

	(void)state;
	assert_null(cu_unsaved(&be, &busy));
	must_leave(UINT64_MAX);
	assert_non_null(strstr(cu_unsaved(&be, &busy), "not on the GPU"));
	must_return();
	put(a, &first);
	assert_null(cu_unsaved(&be, &busy));
}

#define KEPT  40
#define STEPS 4000

static void random_steps(void **state)
{
	struct {
		uint64_t addr, size, seed;
	} b[KEPT] = {{0}};
	unsigned int seed = 45, i, k, n;

	(void)state;
	for (i = 0; i < ROUNDS(STEPS); i++) {
		struct be_stream *s = rand_r(&seed) % 2 ? &first : &other;

		k = (unsigned int)rand_r(&seed) % KEPT;
		switch (rand_r(&seed) % 10) {
		case 0:
			/* The caller has waited for all work. */
			cuda.reached = UINT64_MAX;
			must_leave((unsigned int)rand_r(&seed) % DEVICE);
			must_return();
			break;
		case 1:
			cuda_hold();
			break;
		case 2:
			cuda.reached += cuda.reached != UINT64_MAX;
			assert_true(RESERVED == cuda.used && USED <= cuda.used);
			break;
		case 3:
			assert_int_equal(cu_pool_set(&be, pool, cudaMemPoolAttrReleaseThreshold,
						     (unsigned int)rand_r(&seed) % DEVICE),
					 0);
			break;
		default:
			if (b[k].addr) {
				check(b[k].addr, b[k].size, b[k].seed);
				if (rand_r(&seed) % 4)
					put(b[k].addr, s);
				else
					assert_int_equal(cu_mem_free(&be, b[k].addr), 0);
				b[k].addr = 0;
				break;
			}
			b[k].size = (1 + (unsigned int)rand_r(&seed) % 40) * MIB;
			b[k].seed = (unsigned int)rand_r(&seed);
			b[k].addr = get(b[k].size, s);
			if (!b[k].addr)
				break;
			for (n = 0; n < KEPT; n++)
				assert_true(n == k || !b[n].addr ||
					    b[n].addr + b[n].size <= b[k].addr ||
					    b[k].addr + b[k].size <= b[n].addr);
			fill(b[k].addr, b[k].size, b[k].seed);
			break;
		}
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_is_wrong_is_refused),
		TEST(a_lot_comes_again_in_the_order_of_streams),
		TEST(plots_go_back_above_the_threshold),
		TEST(a_pool_has_no_more_than_its_most),
		TEST(the_device_is_full),
		TEST(it_leaves_and_comes_back),
		TEST(events_of_frees_are_few),
		TEST(many_frees_cost_little),
		TEST(each_call_may_fail),
		TEST(a_reset_ends_all),
		TEST(the_end_gives_all_back),
		TEST(it_can_be_saved),
		TEST(random_steps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
