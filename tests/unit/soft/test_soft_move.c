/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Device memory of the software GPU that leaves and comes back: what stays, a store and a device
 * without room, memory that is freed while it is away, and random steps against a model.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>

#include "qcu-device/soft/gpu/soft.h"
#include "tests/rounds.h"
#include "tests/unit/slow_store.h"
#include "tests/unit/soft/test_soft_fake.h"

#define MIB   (1ull << 20)
#define PIECE (2 * MIB)
#define VRAM  (64 * MIB)

#define DEVICES 2u
#define LENT	(16 * MIB)

/* The store, and the memory that all VMs share. */
struct host {
	uint64_t room, out;	 /* of the store, and how much of it is taken */
	uint64_t most, in;	 /* what the device has, and how much of it is taken */
	uint64_t lendable, lent; /* the same of the device that is only for the store */
	uint64_t largest;
};

static struct be *opened; /* the store registers its memory there */

/* Is it memory of the device that is only for the store? */
static bool is_lent(const void *p)
{
	const struct soft_mem *m = &opened->store;

	return (uintptr_t)p - m->base < m->size;
}

static void *store_take(void *ctx, uint64_t bytes)
{
	struct host *h = ctx;
	void *p;

	if (bytes > h->room - h->out)
		return NULL;
	h->out += bytes;
	h->largest = bytes > h->largest ? bytes : h->largest;
	p = be_soft.store_take(opened, bytes);
	if (p)
		return p;
	p = malloc(bytes);
	assert_int_equal(be_soft.host_register(opened, p, bytes), QCU_ERR_Success);
	assert_int_equal(be_soft.host_unregister(opened, p), QCU_ERR_Success);
	return p;
}

static void store_give(void *ctx, void *p, uint64_t bytes)
{
	struct host *h = ctx;

	assert_true(bytes <= h->out);
	h->out -= bytes;
	if (is_lent(p))
		be_soft.store_give(opened, p, bytes);
	else
		free(p);
}

static bool resident(void *ctx, unsigned int dev, int64_t bytes)
{
	struct host *h = ctx;

	uint64_t *taken = dev == DEVICES ? &h->lent : &h->in;

	if (bytes > 0 && (uint64_t)bytes > (dev == DEVICES ? h->lendable : h->most) - *taken)
		return false;
	assert_true(bytes > 0 || *taken >= (uint64_t)-bytes);
	*taken += (uint64_t)bytes;
	return true;
}

static struct host host;

static struct be_store new_store(void)
{
	const struct be_store memory = {.ctx = &host, .take = store_take, .give = store_give};

	return slow.each ? slow_store(&memory) : memory;
}

static struct be *open_movable(bool movable, uint64_t lent)
{
	struct be_options opt = {.gpus = DEVICES,
				 .store = lent,
				 .vram = VRAM,
				 .threads = 1,
				 .movable = movable,
				 .resident = resident,
				 .charge_ctx = &host};
	struct be *be;

	host = (struct host){.room = UINT64_MAX, .most = UINT64_MAX};
	assert_int_equal(be_soft.open(&be, &opt), QCU_ERR_Success);
	opened = be;
	return be;
}

static int setup(void **state)
{
	*state = open_movable(true, 0);
	return 0;
}

static int setup_lent(void **state)
{
	*state = open_movable(true, LENT);
	host.lendable = LENT;
	return 0;
}

/* At the end nothing is left in the store, and all of the device has been given back. */
static int teardown(void **state)
{
	be_soft.close(*state);
	assert_int_equal(host.out, 0);
	assert_int_equal(host.in, 0);
	assert_int_equal(host.lent, 0);
	slow_end();
	return 0;
}

static uint64_t alloc(struct be *be, uint64_t size)
{
	uint64_t a;

	assert_int_equal(be_soft.mem_alloc(be, 0, size, &a), QCU_ERR_Success);
	assert_true(a);
	return a;
}

static uint64_t alloc_pooled(struct be *be, uint64_t size)
{
	struct be_pool *p;
	uint64_t a;

	assert_int_equal(be_soft.pool_default(be, 0, &p), QCU_ERR_Success);
	return be_soft.pool_alloc(be, p, size, be_soft.stream_legacy(be, 0), &a) ? 0 : a;
}

static uint64_t leave(struct be *be, uint64_t want)
{
	struct be_store store = new_store();
	uint64_t left;

	assert_int_equal(be_soft.mem_leave(be, 0, want, &store, &left), QCU_ERR_Success);
	/* The backend has a copy of it. */
	store = (struct be_store){0};
	return left;
}

static uint64_t come_back(struct be *be)
{
	uint64_t back;

	assert_int_equal(be_soft.mem_return(be, 0, &back), QCU_ERR_Success);
	return back;
}

static void fill(uint64_t addr, uint64_t len, unsigned int seed)
{
	unsigned char *p = (unsigned char *)(uintptr_t)addr;
	uint64_t i;

	for (i = 0; i < len; i += 61)
		p[i] = (unsigned char)(seed + i / 61);
	p[len - 1] = (unsigned char)~seed;
}

static void check(uint64_t addr, uint64_t len, unsigned int seed)
{
	const unsigned char *p = (unsigned char *)(uintptr_t)addr;
	uint64_t i;

	for (i = 0; i < len - 1; i += 61)
		assert_int_equal(p[i], (unsigned char)(seed + i / 61));
	assert_int_equal(p[len - 1], (unsigned char)~seed);
}

static sigjmp_buf touched;

static void on_fault(int number)
{
	(void)number;
	siglongjmp(touched, 1);
}

/* Does reading this byte end the process? */
static bool faults(uint64_t addr)
{
	struct sigaction now = {.sa_handler = on_fault, .sa_flags = SA_NODEFER}, before;
	volatile bool fault = true;

	sigaction(SIGSEGV, &now, &before);
	if (!sigsetjmp(touched, 1)) {
		(void)*(const volatile char *)(uintptr_t)addr;
		fault = false;
	}
	sigaction(SIGSEGV, &before, NULL);
	return fault;
}

static void nothing_moves_without_the_option(void **state)
{
	const struct be_store store = new_store();
	struct be *be = open_movable(false, 0);
	uint64_t left = 1, a = alloc(be, 3 * PIECE);

	(void)state;
	assert_int_equal(be_soft.mem_leave(be, 0, 1, &store, &left), QCU_ERR_NotSupported);
	assert_int_equal(left, 0);
	assert_int_equal(be_soft.mem_movable(be, 0), 0);
	assert_int_equal(be_soft.mem_away(be, 0), 0);
	assert_int_equal(come_back(be), 0);
	assert_int_equal(be_soft.mem_free(be, a), QCU_ERR_Success);
	be_soft.close(be);
	assert_int_equal(host.in, 0);
}

static void a_full_store_stops_at_each_piece(void **state)
{
	const uint64_t size = 5 * PIECE + 1000;
	struct be *be = *state;
	uint64_t a = alloc(be, size), left;
	unsigned int pieces;

	for (pieces = 0; pieces < 7; pieces++) {
		fill(a, size, pieces);
		host.room = pieces * PIECE + 511;
		left = leave(be, UINT64_MAX);
		assert_int_equal(left, (pieces < 5 ? pieces : 5) * PIECE + (pieces > 5 ? 1024 : 0));
		assert_int_equal(host.out, left);
		assert_int_equal(be_soft.mem_away(be, 0), left);
		assert_int_equal(host.in, 5 * PIECE + 1024 - left);
		assert_int_equal(leave(be, 1), 0);
		assert_int_equal(come_back(be), left);
		check(a, size, pieces);
	}
	assert_true(host.largest <= BE_PIECE);
	assert_int_equal(be_soft.mem_free(be, a), QCU_ERR_Success);
}

static void a_full_device_keeps_the_rest_away(void **state)
{
	const uint64_t size = 4 * PIECE;
	struct be *be = *state;
	uint64_t a = alloc(be, size), back;
	unsigned int i;

	fill(a, size, 3);
	assert_int_equal(leave(be, size), size);
	for (i = 0; i < 4; i++) {
		host.most = i * PIECE + PIECE - 1;
		assert_int_equal(be_soft.mem_return(be, 0, &back), QCU_ERR_MemoryAllocation);
		assert_int_equal(back, i ? PIECE : 0);
		assert_int_equal(be_soft.mem_away(be, 0), size - i * PIECE);
	}
	host.most = size;
	assert_int_equal(come_back(be), PIECE);
	check(a, size, 3);
	/* The VM may have 64 MiB, but the device has no room. */
	assert_int_equal(be_soft.mem_alloc(be, 0, 512, &back), QCU_ERR_MemoryAllocation);
	assert_int_equal(leave(be, PIECE), PIECE);
	assert_int_equal(be_soft.mem_alloc(be, 0, 512, &back), QCU_ERR_Success);
}

static void touching_what_is_away_faults(void **state)
{
	struct be *be = *state;
	uint64_t a = alloc(be, PIECE), small = alloc(be, 100);

	leave(be, UINT64_MAX);
	assert_true(be_soft.mem_valid(be, a, PIECE));
	assert_true(be_soft.mem_valid(be, small, 100));
	assert_true(faults(a));
	assert_true(faults(a + PIECE - 1));
	assert_true(faults(small));
	come_back(be);
	assert_false(faults(a));
	assert_false(faults(small));
}

/* Only as much leaves as is wanted, in whole pieces, and what stays can be used. */
static void the_rest_stays_usable(void **state)
{
	struct be *be = *state;
	uint64_t a = alloc(be, 100), b = alloc(be, 3 * PIECE), c = alloc(be, 100);

	fill(a, 100, 1);
	fill(b, 3 * PIECE, 2);
	fill(c, 100, 3);
	assert_int_equal(be_soft.mem_movable(be, 0), 3 * PIECE + 1024);
	assert_int_equal(be_soft.mem_movable(be, 1), 0);
	assert_int_equal(leave(be, 0), 0);
	assert_int_equal(leave(be, 513), 512 + PIECE);
	assert_int_equal(be_soft.mem_movable(be, 0), 2 * PIECE + 512);
	assert_true(faults(a));
	assert_true(faults(b));
	assert_false(faults(b + PIECE));
	check(c, 100, 3);
	assert_int_equal(come_back(be), 512 + PIECE);
	check(a, 100, 1);
	check(b, 3 * PIECE, 2);
}

static void memory_that_is_away_is_freed_without_coming_back(void **state)
{
	struct be *be = *state;
	uint64_t a = alloc(be, 3 * PIECE), b = alloc(be, PIECE), c, free, total;

	fill(a, 3 * PIECE, 7);
	fill(b, PIECE, 8);
	assert_int_equal(leave(be, 2 * PIECE), 2 * PIECE);
	host.most = host.in; /* nothing more can be taken */
	assert_int_equal(be_soft.mem_free(be, a + PIECE), QCU_ERR_InvalidValue);
	assert_int_equal(be_soft.mem_free(be, a), QCU_ERR_Success);
	assert_int_equal(be_soft.mem_free(be, a), QCU_ERR_InvalidValue);
	assert_false(be_soft.mem_valid(be, a, 1));
	assert_int_equal(host.out, 0);
	assert_int_equal(host.in, PIECE);
	assert_int_equal(be_soft.mem_info(be, 0, &free, &total), QCU_ERR_Success);
	assert_int_equal(free, VRAM - PIECE);
	check(b, PIECE, 8);
	/* Its addresses can be used again, and show nothing of what was there. */
	host.most = UINT64_MAX;
	for (c = 0; c < 20; c++) {
		uint64_t d = alloc(be, VRAM / 2), i;

		for (i = 0; i < VRAM / 2; i += 4096)
			assert_int_equal(*(uint64_t *)(uintptr_t)(d + i), 0);
		assert_int_equal(be_soft.mem_free(be, d), QCU_ERR_Success);
	}
}

static void a_reset_frees_what_is_away(void **state)
{
	struct be *be = *state;

	alloc(be, 3 * PIECE);
	leave(be, PIECE);
	assert_int_equal(be_soft.device_reset(be, 0), QCU_ERR_Success);
	assert_int_equal(host.out, 0);
	assert_int_equal(host.in, 0);
	assert_int_equal(be_soft.mem_away(be, 0), 0);
}

static void the_end_frees_what_is_away(void **state)
{
	alloc(*state, 3 * PIECE);
	leave(*state, PIECE);
	/* teardown() looks. */
}

/* Freed in a stream, or as other memory. */
static void memory_of_pools_leaves(void **state)
{
	struct be *be = *state;
	struct be_stream *s = be_soft.stream_legacy(be, 0);
	uint64_t a = alloc_pooled(be, 3 * PIECE), b = alloc_pooled(be, 100), c;

	fill(a, 3 * PIECE, 1);
	fill(b, 100, 2);
	assert_int_equal(be_soft.mem_movable(be, 0), 3 * PIECE + 512);
	assert_int_equal(leave(be, UINT64_MAX), 3 * PIECE + 512);
	assert_true(faults(a));
	assert_true(faults(b));
	/* What is allocated meanwhile shares no page with what is away. */
	c = alloc_pooled(be, 100);
	fill(c, 100, 3);
	assert_int_equal(come_back(be), 3 * PIECE + 512);
	check(a, 3 * PIECE, 1);
	check(b, 100, 2);
	check(c, 100, 3);
	assert_int_equal(leave(be, UINT64_MAX), 3 * PIECE + 1024);
	assert_int_equal(be_soft.pool_free(be, a, s), QCU_ERR_Success);
	assert_int_equal(be_soft.pool_free(be, a, s), QCU_ERR_InvalidValue);
	assert_int_equal(be_soft.device_sync(be, 0), QCU_ERR_Success);
	assert_int_equal(host.out, 1024);
	assert_int_equal(be_soft.mem_free(be, b), QCU_ERR_Success);
	assert_int_equal(host.out, 512);
	assert_int_equal(host.in, 0);
	assert_int_equal(come_back(be), 512);
	check(c, 100, 3);
	assert_int_equal(be_soft.pool_free(be, c, s), QCU_ERR_Success);
}

/* What another process may have open and variables of modules stay. */
static void what_others_may_use_stays(void **state)
{
	unsigned char handle[BE_IPC_BYTES];
	struct be *be = *state;
	uint64_t a = alloc(be, PIECE), imported;

	fake_module(be);
	assert_int_equal(be_soft.mem_movable(be, 0), PIECE);
	assert_int_equal(be_soft.mem_export(be, 0, a, handle), QCU_ERR_Success);
	assert_int_equal(be_soft.mem_movable(be, 0), 0);
	assert_int_equal(leave(be, UINT64_MAX), 0);
	assert_int_equal(be_soft.mem_export(be, 0, a, handle), QCU_ERR_Success);
	assert_int_equal(be_soft.mem_import(be, 0, handle, PIECE, &imported), QCU_ERR_Success);
	assert_int_equal(leave(be, UINT64_MAX), 0);
	assert_int_equal(be_soft.mem_unimport(be, imported), QCU_ERR_Success);
	assert_int_equal(be_soft.mem_free(be, a), QCU_ERR_Success);
}

/* What the store cannot keep stays, and what it cannot read stays away. Nothing else comes back. */
static void a_store_may_fail(void **state)
{
	const uint64_t size = 4 * PIECE;
	struct be *be = *state;
	uint64_t a, back;

	slow.each = 3;
	a = alloc(be, size);
	fill(a, size, 1);
	slow.no_keep = true;
	assert_int_equal(leave(be, size), 0);
	assert_int_equal(host.out, 0);
	assert_int_equal(host.in, size);
	check(a, size, 1);
	slow.no_keep = false;
	assert_int_equal(leave(be, size), size);
	/* The last piece is a slow one, and comes first. */
	slow.no_read = true;
	assert_int_equal(be_soft.mem_return(be, 0, &back), QCU_ERR_OperatingSystem);
	assert_int_equal(be_soft.mem_return(be, 0, &back), QCU_ERR_OperatingSystem);
	assert_int_equal(be_soft.mem_away(be, 0) + host.in, size);
	slow.no_read = false;
	come_back(be);
	check(a, size, 1);
	assert_int_equal(leave(be, size), size);
	slow.no_read = true;
	assert_int_equal(be_soft.mem_free(be, a), QCU_ERR_Success);
}

/* ---- random steps against a model ---- */

#define BLOCKS 40
#define STEPS  3000

struct block {
	uint64_t addr, size;
	unsigned int seed;
};

static uint64_t random_size(unsigned int *seed)
{
	switch (rand_r(seed) % 3) {
	case 0:
		return 1 + (unsigned int)rand_r(seed) % 5000;
	case 1:
		return 1 + (unsigned int)rand_r(seed) % (100u << 10);
	}
	return 1 + (unsigned int)rand_r(seed) % (3 * PIECE);
}

static void step(struct be *be, struct block *b, unsigned int *seed)
{
	const bool fails = slow.each && !(rand_r(seed) % 4);
	uint64_t away = be_soft.mem_away(be, 0), moved;
	uint64_t sum = be_soft.mem_movable(be, 0) + away;

	switch (rand_r(seed) % 6) {
	case 0:
		host.room = host.out + (unsigned int)rand_r(seed) % (3 * PIECE);
		slow.no_keep = fails;
		moved = leave(be, (unsigned int)rand_r(seed) % VRAM);
		slow.no_keep = false;
		assert_int_equal(be_soft.mem_away(be, 0), away + moved);
		break;
	case 1:
		host.most = host.in + (unsigned int)rand_r(seed) % (3 * PIECE);
		slow.no_read = fails;
		(void)be_soft.mem_return(be, 0, &moved);
		slow.no_read = false;
		assert_int_equal(be_soft.mem_away(be, 0), away - moved);
		host.most = UINT64_MAX;
		break;
	default:
		if (b->addr) {
			if (!away)
				check(b->addr, b->size, b->seed);
			assert_true(be_soft.mem_valid(be, b->addr, b->size));
			assert_int_equal(be_soft.mem_free(be, b->addr), QCU_ERR_Success);
			assert_false(be_soft.mem_valid(be, b->addr, 1));
			b->addr = 0;
			return;
		}
		b->size = random_size(seed);
		b->seed = (unsigned int)rand_r(seed);
		if (b->seed % 2)
			b->addr = alloc_pooled(be, b->size);
		else if (be_soft.mem_alloc(be, 0, b->size, &b->addr))
			b->addr = 0;
		if (b->addr)
			fill(b->addr, b->size, b->seed);
		return;
	}
	assert_int_equal(be_soft.mem_movable(be, 0) + be_soft.mem_away(be, 0), sum);
	assert_int_equal(host.out, be_soft.mem_away(be, 0));
	assert_int_equal(host.in, be_soft.mem_movable(be, 0));
}

static void random_steps(void **state)
{
	struct block blocks[BLOCKS] = {0};
	struct be *be = *state;
	unsigned int seed = 45, i, k;

	for (i = 0; i < random_rounds(STEPS); i++) {
		step(be, &blocks[(unsigned int)rand_r(&seed) % BLOCKS], &seed);
		if (i % 50)
			continue;
		come_back(be);
		for (k = 0; k < BLOCKS; k++)
			if (blocks[k].addr)
				check(blocks[k].addr, blocks[k].size, blocks[k].seed);
	}
	for (k = 0; k < BLOCKS; k++)
		assert_int_equal(be_soft.mem_free(be, blocks[k].addr), QCU_ERR_Success);
	assert_int_equal(host.out, 0);
	assert_int_equal(host.in, 0);
}

static void random_steps_of_a_slow_store(void **state)
{
	slow.each = 2;
	random_steps(state);
}

/* No program sees it, its bounds are kept, and it has no old bytes. */
static void another_device_is_only_for_the_store(void **state)
{
	struct be *be = *state;
	unsigned int count, times;
	uint64_t at, size = 5 * PIECE;
	void *p;

	assert_int_equal(be_soft.device_count(be, &count), QCU_ERR_Success);
	assert_int_equal(count, DEVICES);
	assert_null(be_soft.store_take(be, LENT + 1));
	assert_null(be_soft.store_take(be, UINT64_MAX));
	for (times = 0; times < 2; times++) {
		p = be_soft.store_take(be, PIECE);
		assert_non_null(p);
		assert_int_equal(host.lent, PIECE);
		assert_false(be_soft.mem_valid(be, (uintptr_t)p, 1));
		for (at = 0; at < PIECE; at += 8)
			assert_int_equal(*(uint64_t *)((char *)p + at), 0);
		memset(p, 0x55, PIECE);
		/* All VMs together have no more. */
		host.lendable = PIECE;
		assert_null(be_soft.store_take(be, 1));
		host.lendable = LENT;
		be_soft.store_give(be, p, PIECE);
		assert_int_equal(host.lent, 0);
	}
	/* Two pieces find room there, and the others elsewhere. */
	at = alloc(be, size);
	fill(at, size, 3);
	host.lendable = 2 * PIECE;
	assert_int_equal(leave(be, UINT64_MAX), size);
	assert_int_equal(host.lent, 2 * PIECE);
	assert_int_equal(come_back(be), size);
	assert_int_equal(host.lent, 0);
	check(at, size, 3);
	leave(be, UINT64_MAX);
	/* teardown() looks. */
}

static void nothing_is_lent_without_the_option(void **state)
{
	assert_null(be_soft.store_take(*state, 1));
}

#define TEST(name)	cmocka_unit_test_setup_teardown(name, setup, teardown)
#define LENT_TEST(name) cmocka_unit_test_setup_teardown(name, setup_lent, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_moves_without_the_option),
		TEST(a_full_store_stops_at_each_piece),
		TEST(a_full_device_keeps_the_rest_away),
		TEST(touching_what_is_away_faults),
		TEST(the_rest_stays_usable),
		TEST(memory_that_is_away_is_freed_without_coming_back),
		TEST(a_reset_frees_what_is_away),
		TEST(the_end_frees_what_is_away),
		TEST(memory_of_pools_leaves),
		TEST(what_others_may_use_stays),
		TEST(a_store_may_fail),
		TEST(random_steps),
		TEST(random_steps_of_a_slow_store),
		TEST(nothing_is_lent_without_the_option),
		LENT_TEST(another_device_is_only_for_the_store),
		cmocka_unit_test_setup_teardown(random_steps, setup_lent, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
