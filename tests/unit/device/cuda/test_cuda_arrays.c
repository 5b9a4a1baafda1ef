// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The cuda backend's arrays that leave and come back, with a stand-in for CUDA.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <cmocka.h>

#include "tests/rounds.h"

#define DEV CUDA_ONLY
#include "tests/unit/device/cuda/cuda_store.h"

#define MIB    (1ull << 20)
#define DEVICE (4096 * MIB)
#define WHOLE  (8 * MIB) /* of a level up to this size all bytes are copied */

/* ---- the caller's side ---- */

static struct be_stream stream = {.s = (cudaStream_t)&be, .dev = DEV};
static int64_t charged, charge_room;

static bool charge(void *ctx, unsigned int dev, int64_t bytes)
{
	assert_ptr_equal(ctx, &charged);
	assert_int_equal(dev, DEV);
	if (bytes > 0 && bytes > charge_room - charged)
		return false;
	charged += bytes;
	return true;
}

static int begin(void **state)
{
	(void)state;
	memset(&be, 0, sizeof(be));
	be.charge_device = charge;
	be.charge_ctx = &charged;
	store_room = UINT64_MAX;
	stored = 0;
	charge_room = INT64_MAX;
	charged = 0;
	return cuda_open_only(&be, DEVICE);
}

static int end(void **state)
{
	(void)state;
	cu_mem_close(&be);
	slow_end();
	return !cuda_is_empty() || stored || charged;
}

static int leave(uint64_t want, uint64_t *left)
{
	const uint64_t before = cu_mem_away(&be, DEV);
	int ret = leave_to_store(want, left);

	assert_int_equal(cu_mem_away(&be, DEV), before + *left);
	assert_int_equal(cu_mem_movable(&be, DEV), cuda.used);
	return ret;
}

/* ---- arrays with contents ---- */

#define FLOAT4 .kind = 2, .bits = {32, 32, 32, 32}
#define BYTES4 .kind = 1, .bits = {8, 8, 8, 8}
#define SHORT  .kind = 0, .bits = {16, 0, 0, 0}

/* Each is small enough that all its bytes are copied, and large enough to leave. */
static const struct be_array_desc kinds[] = {
	{.width = 700, .height = 500, FLOAT4},
	{.width = 70000, SHORT},
	{.width = 1000, .height = 1000, .flags = BE_ARRAY_SURFACE, BYTES4},
	{.width = 300, .height = 200, .depth = 20, .flags = BE_ARRAY_LAYERED, BYTES4},
	{.width = 5000, .depth = 30, .flags = BE_ARRAY_LAYERED, SHORT},
	{.width = 101, .height = 90, .depth = 80, BYTES4},
	{.width = 256, .height = 256, .depth = 6, .flags = BE_ARRAY_CUBEMAP, FLOAT4},
	{.width = 600, .height = 600, .flags = BE_ARRAY_GATHER, BYTES4},
	{.width = 512, .height = 500, .levels = 9, FLOAT4},
	{.width = 200, .height = 100, .depth = 9, .levels = 5, .flags = BE_ARRAY_LAYERED, FLOAT4},
	{.width = 130, .height = 120, .depth = 50, .levels = 7, SHORT},
};
#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

/* Cut by slices, by rows, and both; the last one has a level that is one piece, too. */
static const struct be_array_desc large[] = {
	{.width = 1024, .height = 500, .depth = 41, FLOAT4},
	{.width = 8191, .height = 1500, FLOAT4},
	{.width = 4096, .height = 1100, .depth = 3, .flags = BE_ARRAY_LAYERED, FLOAT4},
	{.width = 4000, .height = 3000, .levels = 4, FLOAT4},
};
#define LARGE (sizeof(large) / sizeof(large[0]))

static int try_array(const struct be_array_desc *d, struct be_array **a)
{
	*a = NULL;
	return cu_array_create(&be, DEV, d, NULL, 0, a);
}

static struct be_array *make_array(const struct be_array_desc *d)
{
	struct be_array *a;

	assert_int_equal(try_array(d, &a), 0);
	return a;
}

static void destroy(struct be_array *a)
{
	assert_int_equal(cu_array_destroy(&be, a), 0);
}

static uint64_t elements(const struct be_array_desc *d)
{
	uint32_t level = 0, size[3];
	uint64_t bytes = 0;

	do {
		be_array_extent(d, level, size);
		bytes += (uint64_t)size[0] * size[1] * size[2] * be_array_elem(d);
	} while (++level < d->levels);
	return bytes;
}

static void fill_row(char *row, size_t bytes, uint64_t seed, bool whole)
{
	if (whole)
		memset(row, (int)(seed >> 7), bytes);
	if (bytes < 16)
		return;
	memcpy(row, &seed, 8);
	memcpy(row + bytes - 8, &seed, 8);
}

static void check_row(char *row, size_t bytes, uint64_t seed, bool whole)
{
	static char wanted[1 << 18];

	assert_true(bytes <= sizeof(wanted));
	fill_row(wanted, bytes, seed, whole);
	if (whole)
		assert_memory_equal(row, wanted, bytes);
	else
		assert_true(!memcmp(row, wanted, 8) &&
			    !memcmp(row + bytes - 8, wanted + bytes - 8, 8));
}

/* Is the row one of those that are copied of a large piece? Around each cut there are two more. */
static bool counts(uint32_t y, const uint32_t size[3], uint64_t row)
{
	const uint64_t cut = row * size[1] > BE_PIECE ? BE_PIECE / row : size[1];

	return y % CUDA_ROWS == 0 || y + 1 == size[1] || y % cut == 0 || (y + 1) % cut == 0;
}

static void at_each_row(struct be_array *a, uint64_t seed,
			void (*fn)(char *row, size_t bytes, uint64_t seed, bool whole))
{
	uint32_t level, y, z, size[3];

	for (level = 0; level < (a->desc.levels ? a->desc.levels : 1); level++) {
		be_array_extent(&a->desc, level, size);
		const uint64_t row = (uint64_t)size[0] * be_array_elem(&a->desc);
		const bool whole = row * size[1] * size[2] <= WHOLE;

		for (z = 0; z < size[2]; z++)
			for (y = 0; y < size[1]; y++) {
				if (!whole && !counts(y, size, row))
					continue;
				char *p = cuda_array_row(a->level[level], z, y);

				assert_non_null(p);
				fn(p, row, (seed + level) * 1000003 + z * 100003 + y, whole);
			}
	}
}

static void fill(struct be_array *a, uint64_t seed)
{
	at_each_row(a, seed, fill_row);
}

static void check(struct be_array *a, uint64_t seed)
{
	at_each_row(a, seed, check_row);
}

static bool is_away(const struct be_array *a)
{
	return !cuda_array_row(a->level[0], 0, 0);
}

/* ---- the tests ---- */

static void it_stays(const struct be_array_desc *d)
{
	struct be_array *a = make_array(d);

	assert_int_equal(cu_mem_movable(&be, DEV), 0);
	assert_int_equal(cuda.used, 0);
	assert_int_equal(charged, 0);
	fill(a, 1);
	if (be.movable)
		assert_int_equal(must_leave(UINT64_MAX), 0);
	check(a, 1);
	destroy(a);
	assert_int_equal(cuda.arrays, 0);
	assert_int_equal(cuda.exists, 0);
}

static void arrays_that_stay(void **state)
{
	static const int errors[] = {QCU_ERR_NotSupported, QCU_ERR_InvalidValue,
				     QCU_ERR_CallRequiresNewerDriver};
	const struct be_array_desc small = {.width = 250, .height = 200, FLOAT4};
	PFN_cuMemMapArrayAsync_v11010 map = be.place.map_array;
	size_t i, k;

	(void)state;
	it_stays(&small);
	for (k = 0; k < KINDS; k++) {
		be.movable = cuda.plots_only = false;
		it_stays(&kinds[k]);
		be.movable = cuda.plots_only = true;
		be.devices = 2;
		it_stays(&kinds[k]);
		be.devices = 1;
		be.place.map_array = NULL;
		it_stays(&kinds[k]);
		be.place.map_array = map;
		cuda.no_deferred = true;
		it_stays(&kinds[k]);
		cuda.no_deferred = false;
		cuda.no_mapping = true;
		it_stays(&kinds[k]);
		cuda.no_mapping = false;
		for (i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
			cuda.deferred_error = errors[i];
			it_stays(&kinds[k]);
		}
		cuda.deferred_error = 0;
	}
}

static void arrays_that_cannot_be(void **state)
{
	const struct be_array_desc none = {.height = 10, FLOAT4};
	const struct be_array_desc many = {.width = 10, .levels = QCU_LEVELS_MAX + 1, FLOAT4};
	struct be_array *a;

	(void)state;
	assert_int_equal(try_array(&none, &a), QCU_ERR_InvalidValue);
	assert_int_equal(try_array(&many, &a), QCU_ERR_InvalidValue);
	cuda.deferred_error = QCU_ERR_MemoryAllocation;
	assert_int_equal(try_array(&kinds[0], &a), QCU_ERR_MemoryAllocation);
}

/* With the caller's charge for the elements it is what the array takes. */
static void padding_is_charged(void **state)
{
	struct be_array *a;
	size_t k;

	(void)state;
	for (k = 0; k < KINDS; k++) {
		a = make_array(&kinds[k]);
		assert_true(cuda.used && cuda.used % CU_UNIT == 0);
		assert_int_equal(cu_mem_movable(&be, DEV), cuda.used);
		assert_int_equal(charged + (int64_t)elements(&kinds[k]), cuda.used);
		must_leave(UINT64_MAX);
		assert_int_equal(cuda.used, 0);
		must_return();
		destroy(a);
		assert_int_equal(charged, 0);
		/* This one fills its units. */
		if (kinds[k].flags & BE_ARRAY_CUBEMAP)
			continue;
		charge_room = 1;
		assert_int_equal(try_array(&kinds[k], &a), QCU_ERR_MemoryAllocation);
		charge_room = INT64_MAX;
		assert_int_equal(cuda.arrays, 0);
		assert_int_equal(cuda.used, 0);
	}
	/* A line takes many times its bytes. */
	a = make_array(&kinds[1]);
	assert_true(charged > 10 * (int64_t)elements(&kinds[1]));
	destroy(a);
}

/* What a program's copy of its first row says. */
static int copy_first_row(struct be_array *a, void *to)
{
	const struct be_box box = {
		.src = {.array = a},
		.dst = {.addr = (uintptr_t)to, .host = true},
		.width = (uint64_t)a->desc.width * be_array_elem(&a->desc),
		.height = 1,
		.depth = 1,
	};
	int ret = cu_copy_box(&be, &box, &stream);

	return ret ? ret : (int)cudaStreamSynchronize(stream.s);
}

static void all_kinds_leave(void **state)
{
	static char row[1 << 20];
	struct be_array *a[KINDS];
	cudaArray_t first[KINDS];
	uint64_t movable, sum = 0;
	unsigned int round;
	size_t k;

	(void)state;
	for (k = 0; k < KINDS; k++) {
		a[k] = make_array(&kinds[k]);
		first[k] = a[k]->level[0];
		sum += elements(&kinds[k]);
	}
	for (round = 0; round < 3; round++) {
		for (k = 0; k < KINDS; k++)
			fill(a[k], round + k);
		movable = cu_mem_movable(&be, DEV);
		assert_int_equal(must_leave(UINT64_MAX), movable);
		/* Of the padding nothing is kept. */
		assert_int_equal(stored, sum);
		assert_int_equal(cuda.used, 0);
		for (k = 0; k < KINDS; k++) {
			assert_true(is_away(a[k]));
			assert_int_equal(copy_first_row(a[k], row), QCU_ERR_IllegalAddress);
		}
		assert_int_equal(must_leave(UINT64_MAX), 0);
		assert_int_equal(must_return(), movable);
		for (k = 0; k < KINDS; k++) {
			check(a[k], round + k);
			assert_ptr_equal(a[k]->level[0], first[k]);
			assert_int_equal(copy_first_row(a[k], row), 0);
			assert_memory_equal(row, cuda_array_row(first[k], 0, 0), 16);
		}
	}
	for (k = 0; k < KINDS; k++)
		destroy(a[k]);
}

static void large_ones_leave_in_pieces(void **state)
{
	static const unsigned int pieces[LARGE] = {6, 3, 6, 6};
	struct be_array *a;
	size_t k;

	(void)state;
	for (k = 0; k < LARGE; k++) {
		a = make_array(&large[k]);
		assert_int_equal(a->pieces, pieces[k]);
		fill(a, k);
		assert_int_equal(must_leave(UINT64_MAX), cu_units(a->taken));
		assert_int_equal(stored, elements(&large[k]));
		assert_int_equal(must_return(), a->taken);
		check(a, k);
		destroy(a);
	}
}

/* All pieces find room, or the array stays. */
static void a_full_store_passes_arrays_over(void **state)
{
	struct be_array *a = make_array(&large[0]), *b = make_array(&kinds[0]);
	uint64_t left;

	(void)state;
	for (store_room = 0; store_room < 7 * BE_PIECE; store_room += BE_PIECE / 3) {
		fill(a, store_room);
		fill(b, store_room);
		left = must_leave(UINT64_MAX);
		assert_int_equal(stored, (is_away(a) ? elements(&large[0]) : 0) +
						 (is_away(b) ? elements(&kinds[0]) : 0));
		assert_int_equal(is_away(b), store_room > 0);
		assert_int_equal(is_away(a),
				 store_room >= elements(&large[0]) + elements(&kinds[0]));
		assert_int_equal(must_return(), left);
		check(a, store_room);
		check(b, store_room);
	}
	destroy(a);
	destroy(b);
}

static void no_more_leaves_than_is_wanted(void **state)
{
	struct be_array *a = make_array(&large[0]), *b = make_array(&kinds[0]),
			*c = make_array(&kinds[0]);
	uint64_t addr;

	(void)state;
	assert_int_equal(b->taken, 6 * MIB);
	assert_int_equal(c->taken, 6 * MIB);
	assert_int_equal(cu_mem_alloc(&be, DEV, 4 * MIB, &addr), 0);
	assert_int_equal(must_leave(0), 0);
	/* The smallest, if none fits. */
	assert_int_equal(must_leave(1), 4 * MIB);
	assert_int_equal(must_leave(1), 6 * MIB);
	must_return();
	/* Memory first, then arrays that fit. */
	assert_int_equal(must_leave(10 * MIB), 10 * MIB);
	assert_false(is_away(a));
	must_return();
	assert_int_equal(must_leave(17 * MIB), 16 * MIB + a->taken);
	must_return();
	assert_int_equal(must_leave(UINT64_MAX), 16 * MIB + a->taken);
	must_return();
	assert_int_equal(cu_mem_free(&be, addr), 0);
	assert_int_equal(cu_kept_drop(&be, DEV), true);
	/* An array that fits goes before a part that does not. */
	assert_int_equal(cu_mem_alloc(&be, DEV, 20 * MIB, &addr), 0);
	assert_int_equal(must_leave(6 * MIB), 6 * MIB);
	assert_int_equal(must_leave(6 * MIB), 6 * MIB);
	assert_int_equal(must_leave(6 * MIB), 20 * MIB);
	assert_int_equal(must_leave(6 * MIB), a->taken);
	must_return();
	assert_int_equal(cu_mem_free(&be, addr), 0);
	destroy(a);
	destroy(b);
	destroy(c);
}

static void a_full_device_keeps_the_rest_away(void **state)
{
	struct be_array *a[KINDS];
	uint64_t back, sum = 0, all;
	size_t k;

	(void)state;
	for (k = 0; k < KINDS; k++) {
		a[k] = make_array(&kinds[k]);
		fill(a[k], k);
	}
	all = must_leave(UINT64_MAX);
	for (cuda.room = MIB; sum < all; cuda.room += 3 * MIB) {
		int ret = cu_mem_return(&be, DEV, &back);

		sum += back;
		assert_int_equal(cu_mem_away(&be, DEV), all - sum);
		assert_int_equal(cuda.used, sum);
		assert_int_equal(ret, sum < all ? (int)QCU_ERR_MemoryAllocation : 0);
	}
	for (k = 0; k < KINDS; k++) {
		check(a[k], k);
		destroy(a[k]);
	}
}

static void destroyed_while_away(void **state)
{
	struct be_array *a[KINDS];
	size_t k;

	(void)state;
	for (k = 0; k < KINDS; k++) {
		a[k] = make_array(&kinds[k]);
		fill(a[k], k);
	}
	must_leave(UINT64_MAX);
	for (k = 0; k < KINDS; k += 2)
		destroy(a[k]);
	/* One that is made meanwhile is here. */
	a[0] = make_array(&kinds[0]);
	fill(a[0], 0);
	must_return();
	check(a[0], 0);
	for (k = 1; k < KINDS; k += 2)
		check(a[k], k);
	must_leave(UINT64_MAX);
	for (k = 1; k < KINDS; k += 2)
		destroy(a[k]);
	destroy(a[0]);
	assert_int_equal(cu_mem_away(&be, DEV), 0);
}

static void no_memory(void **state)
{
	struct be_array *a;
	uint64_t addr;

	(void)state;
	cuda.room = 8 * MIB;
	assert_int_equal(try_array(&large[0], &a), QCU_ERR_MemoryAllocation);
	assert_int_equal(cuda.arrays, 0);
	assert_int_equal(charged, 0);
	/* What is kept for the next allocation goes first. */
	assert_int_equal(cu_mem_alloc(&be, DEV, 4 * MIB, &addr), 0);
	assert_int_equal(cu_mem_free(&be, addr), 0);
	assert_int_equal(cuda.used, 4 * MIB);
	a = make_array(&kinds[0]);
	assert_int_equal(cuda.used, 6 * MIB);
	destroy(a);
}

/* Whichever call fails: an array is here or away, and nothing is lost. */
static void fail_each_call(const struct be_array_desc *one, const struct be_array_desc *other)
{
	const struct be_array_desc *const two[] = {one, other};
	struct be_array *a[2];
	uint64_t moved, addr, before;
	unsigned int n, k;
	bool failed;
	int ret;

	assert_int_equal(cu_mem_alloc(&be, DEV, 3 * MIB, &addr), 0);
	for (k = 0; k < 2; k++) {
		const int64_t charged_before = charged;

		before = cuda.used;
		for (n = 1;; n++) {
			cuda.calls = 0;
			cuda.fail_at = n;
			ret = try_array(two[k], &a[k]);
			cuda.fail_at = 0;
			if (!ret && cuda.calls < n)
				break;
			assert_true(ret);
			assert_int_equal(cuda.arrays, k);
			assert_int_equal(cuda.used, before);
			assert_int_equal(charged, charged_before);
		}
		assert_true(n > 6);
	}
	for (n = 1, failed = true; failed; n++) {
		fill(a[0], n);
		fill(a[1], n);
		cuda.calls = 0;
		cuda.fail_at = n;
		ret = leave(UINT64_MAX, &moved);
		cuda.fail_at = 0;
		failed = cuda.calls >= n;
		assert_int_equal(!!ret, failed);
		must_return();
		check(a[0], n);
		check(a[1], n);
	}
	assert_true(n > 10);
	for (n = 1, failed = true; failed; n++) {
		fill(a[0], n);
		fill(a[1], n);
		must_leave(UINT64_MAX);
		before = cu_mem_away(&be, DEV);
		cuda.calls = 0;
		cuda.fail_at = n;
		ret = cu_mem_return(&be, DEV, &moved);
		cuda.fail_at = 0;
		failed = cuda.calls >= n;
		assert_int_equal(!!ret, failed);
		assert_int_equal(cu_mem_away(&be, DEV), before - moved);
		assert_int_equal(cuda.used, moved);
		must_return();
		check(a[0], n);
		check(a[1], n);
	}
	assert_true(n > 10);
	destroy(a[0]);
	destroy(a[1]);
	/* It goes in any case. */
	for (n = 1, failed = true; failed; n++) {
		a[0] = make_array(two[0]);
		if (n % 2)
			must_leave(UINT64_MAX);
		cuda.calls = 0;
		cuda.fail_at = (n + 1) / 2;
		ret = cu_array_destroy(&be, a[0]);
		cuda.fail_at = 0;
		failed = cuda.calls >= (n + 1) / 2 || n % 2;
		assert_int_equal(!!ret, cuda.calls >= (n + 1) / 2);
		assert_int_equal(cuda.arrays, 0);
		must_return();
	}
	assert_true(n > 6);
	assert_int_equal(cu_mem_free(&be, addr), 0);
}

static void each_call_may_fail(void **state)
{
	(void)state;
	fail_each_call(&kinds[8], &large[1]);
}

static void each_call_may_fail_with_a_slow_store(void **state)
{
	(void)state;
	slow.each = 2;
	fail_each_call(&kinds[8], &kinds[0]);
}

/* An array that the store cannot keep stays, and what it cannot read stays away. */
static void a_store_may_fail(void **state)
{
	struct be_array *a = make_array(&large[0]), *b = make_array(&kinds[8]);
	uint64_t back, all = a->taken + b->taken;

	(void)state;
	slow.each = 20; /* the first of the newer one */
	fill(a, 1);
	fill(b, 2);
	slow.no_keep = true;
	assert_int_equal(must_leave(UINT64_MAX), a->taken);
	assert_false(is_away(b));
	check(b, 2);
	must_return();
	slow.no_keep = false;
	check(a, 1);
	slow.taken = 0;
	assert_int_equal(must_leave(UINT64_MAX), all);
	slow.no_read = true;
	assert_int_equal(cu_mem_return(&be, DEV, &back), QCU_ERR_OperatingSystem);
	assert_int_equal(back, 0);
	assert_int_equal(cu_mem_away(&be, DEV), all);
	assert_int_equal(cuda.used, 0);
	slow.no_read = false;
	assert_int_equal(must_return(), all);
	check(a, 1);
	check(b, 2);
	must_leave(UINT64_MAX);
	slow.no_read = true;
	destroy(a);
	destroy(b);
}

static void another_device_is_the_store(void **state)
{
	struct be_array *a = make_array(&large[2]);
	unsigned int blocks;

	(void)state;
	be.store = true;
	for (blocks = 0; blocks < 7; blocks++) {
		cuda.lent_room = blocks * BE_PIECE;
		fill(a, blocks);
		assert_int_equal(must_leave(UINT64_MAX), a->taken);
		assert_true(!cuda.lent == !blocks);
		must_return();
		assert_int_equal(cuda.lent, 0);
		check(a, blocks);
	}
	must_leave(UINT64_MAX);
	destroy(a);
	assert_int_equal(cuda.lent, 0);
}

#define KEPT  16
#define STEPS 800

static void random_steps(void **state)
{
	struct {
		struct be_array *a;
		uint64_t addr, seed;
	} b[KEPT] = {{0}};
	unsigned int seed = 71, i, k;
	uint64_t moved;

	(void)state;
	for (i = 0; i < random_rounds(STEPS); i++) {
		k = (unsigned int)rand_r(&seed) % KEPT;
		switch (rand_r(&seed) % 8) {
		case 0:
			store_room = stored + (unsigned int)rand_r(&seed) % (100 * MIB);
			slow.no_keep = slow.each && !(rand_r(&seed) % 4);
			must_leave((unsigned int)rand_r(&seed) % (100 * MIB));
			slow.no_keep = false;
			break;
		case 1:
			cuda.room = cuda.used + (unsigned int)rand_r(&seed) % (100 * MIB);
			slow.no_read = slow.each && !(rand_r(&seed) % 4);
			(void)cu_mem_return(&be, DEV, &moved);
			slow.no_read = false;
			cuda.room = DEVICE;
			break;
		case 2:
			must_return();
			for (k = 0; k < KEPT; k++)
				if (b[k].a)
					check(b[k].a, b[k].seed);
			break;
		default:
			if (b[k].a || b[k].addr) {
				if (b[k].a)
					destroy(b[k].a);
				else
					assert_int_equal(cu_mem_free(&be, b[k].addr), 0);
				b[k].a = NULL;
				b[k].addr = 0;
				break;
			}
			b[k].seed = (unsigned int)rand_r(&seed);
			/* Some memory that is no array, too. */
			if (k % 4 == 0) {
				(void)cu_mem_alloc(&be, DEV, 2 * MIB + b[k].seed % (20 * MIB),
						   &b[k].addr);
				break;
			}
			b[k].a = make_array(b[k].seed % 80 ? &kinds[b[k].seed % KINDS]
							   : &large[b[k].seed % LARGE]);
			fill(b[k].a, b[k].seed);
			break;
		}
	}
	for (k = 0; k < KEPT; k++) {
		if (b[k].a)
			destroy(b[k].a);
		assert_int_equal(cu_mem_free(&be, b[k].addr), 0);
	}
}

static void random_steps_of_a_slow_store(void **state)
{
	slow.each = 2;
	random_steps(state);
}

static void random_steps_of_two_stores(void **state)
{
	be.store = true;
	cuda.lent_room = 30 * MIB;
	random_steps(state);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(arrays_that_stay),
		TEST(arrays_that_cannot_be),
		TEST(padding_is_charged),
		TEST(all_kinds_leave),
		TEST(large_ones_leave_in_pieces),
		TEST(a_full_store_passes_arrays_over),
		TEST(no_more_leaves_than_is_wanted),
		TEST(a_full_device_keeps_the_rest_away),
		TEST(destroyed_while_away),
		TEST(no_memory),
		TEST(each_call_may_fail),
		TEST(each_call_may_fail_with_a_slow_store),
		TEST(a_store_may_fail),
		TEST(another_device_is_the_store),
		TEST(random_steps),
		TEST(random_steps_of_a_slow_store),
		TEST(random_steps_of_two_stores),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
