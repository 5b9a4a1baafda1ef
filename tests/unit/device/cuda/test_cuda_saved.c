// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The cuda backend's side of a saved session, with a stand-in for CUDA: memory at the addresses
 * that are wanted, what cannot be saved, variables of modules, and the ages of events.
 */
#define _GNU_SOURCE /* MAP_FIXED_NOREPLACE */
#include <sys/mman.h>

#include "qcu-device/backend/image.h"
#include "qcu-device/base/spin.h"
#include "tests/unit/device/cuda/cuda_addresses.h"
#include "tests/unit/device/cuda/test_cuda_saved.h"

/* ---- memory ---- */

static void wanted_addresses_that_cannot_be_had(void **state)
{
	const uint64_t a = allocate(4 * MIB), small = allocate(1000);
	struct be_wanted w[2] = {{.addr = a, .size = 4 * MIB, .dev = DEV}}, block;
	uint64_t odd;

	(void)state;
	assert_true(cu_mem_block(&be, small, &block));
	/* Nothing is wanted. Another device. In use. No address. */
	assert_int_equal(allocate_wanted(4 * MIB, w, 0), 0);
	w[0].dev = 0;
	assert_int_equal(allocate_wanted(4 * MIB, w, 1), 0);
	w[0].dev = DEV;
	assert_int_equal(allocate_wanted(4 * MIB, w, 1), 0);
	w[0].addr = 0;
	assert_int_equal(allocate_wanted(4 * MIB, w, 1), 0);
	/* CUDA's units, and the window of the mirror. */
	assert_int_equal(cu_mem_free(&be, a), 0);
	for (odd = a + 512; odd < a + CU_UNIT; odd += 128 * KIB) {
		w[0].addr = odd;
		assert_int_equal(allocate_wanted(2 * MIB, w, 1), 0);
	}
	w[0].addr = QCU_WINDOW_BASE;
	assert_int_equal(allocate_wanted(2 * MIB, w, 1), 0);
	w[0].addr = QCU_WINDOW_BASE - CU_UNIT;
	assert_int_equal(allocate_wanted(4 * MIB, w, 1), 0);
	/* More than there is. */
	w[0].addr = a;
	assert_int_equal(allocate_wanted(LIMIT + 1, w, 1), 0);
	assert_int_equal(allocate_wanted(UINT64_MAX, w, 1), 0);
	assert_int_equal(charged, 2 * MIB);
	/* The same address is still possible. */
	assert_int_equal(allocate_wanted(4 * MIB, w, 1), a);
	assert_int_equal(cu_mem_free(&be, a), 0);
	assert_int_equal(cu_mem_free(&be, small), 0);
}

static int reserve_wanted(uint64_t at, uint64_t size, uint64_t *addr)
{
	const struct be_wanted w = {.addr = at, .size = size};
	int ret;

	*addr = 0;
	cu_want(&be, &w, 1);
	ret = cu_reserve_wanted(&be, size, CU_UNIT, addr);
	cu_want(&be, NULL, 0);
	return ret;
}

/* Reserved addresses of the program. */
static void reserved_addresses(void **state)
{
	static const struct be_wanted none;
	const uint64_t a = allocate(4 * MIB);
	uint64_t at;

	(void)state;
	cu_want(&be, &none, 0);
	assert_int_not_equal(cu_reserve_wanted(&be, 4 * MIB, CU_UNIT, &at), 0);
	cu_want(&be, NULL, 0);
	assert_int_not_equal(reserve_wanted(0, 4 * MIB, &at), 0);
	assert_int_not_equal(reserve_wanted(a + 512, 4 * MIB, &at), 0);
	assert_int_not_equal(reserve_wanted(QCU_WINDOW_BASE, 4 * MIB, &at), 0);
	assert_int_not_equal(reserve_wanted(QCU_WINDOW_BASE - CU_UNIT, 4 * MIB, &at), 0);
	/* In use. */
	assert_int_not_equal(reserve_wanted(a, 4 * MIB, &at), 0);
	assert_int_equal(at, 0);
	/* Not ours, so CUDA reserves it, once others are taken. */
	assert_int_equal(reserve_wanted(NOT_OURS, 4 * MIB, &at), 0);
	assert_int_equal(at, NOT_OURS);
	/* In use: it never does, and what it gives instead is free again. */
	assert_int_not_equal(reserve_wanted(NOT_OURS, 4 * MIB, &at), 0);
	assert_int_equal(at, 0);
	assert_int_equal(cu_area_give(&be, NOT_OURS, 4 * MIB), 0);
	cuda.fail_at = cuda.calls + 1;
	assert_int_not_equal(reserve_wanted(NOT_OURS, 4 * MIB, &at), 0);
	be.place.possible = false;
	assert_int_not_equal(reserve_wanted(FREE_PLACE, 4 * MIB, &at), 0);
	be.place.possible = true;
	assert_int_equal(reserve_wanted(FREE_PLACE, 4 * MIB, &at), 0);
	assert_int_equal(at, FREE_PLACE);
	assert_int_not_equal(reserve_wanted(FREE_PLACE, 4 * MIB, &at), 0);
	assert_int_equal(cu_area_give(&be, FREE_PLACE, 4 * MIB), 0);
	assert_int_equal(reserve_wanted(FREE_PLACE, 4 * MIB, &at), 0);
	assert_int_equal(cu_area_give(&be, at, 4 * MIB), 0);
	assert_int_equal(cu_mem_free(&be, a), 0);
}

/* Behind its end the area goes on at its beginning, around what is there. */
static void area_is_used_again(void **state)
{
	const uint64_t first = allocate(4 * MIB), end = be.place.area_size - CU_UNIT;
	uint64_t a, b, c;
	CUdeviceptr at;

	(void)state;
	assert_true(first >= CU_AREA && end > LARGE);
	be.place.area_next = end;
	a = allocate(LARGE);
	be.place.area_next = end;
	b = allocate(4 * MIB);
	assert_int_equal(a, CU_AREA);
	assert_int_equal(b, a + cu_units(LARGE));
	assert_int_equal(cu_mem_free(&be, a), 0);
	be.place.area_next = 0;
	c = allocate(4 * MIB);
	assert_int_equal(c, a);
	/* What is too large for the hole between them lies behind. */
	assert_int_equal(allocate(LARGE), b + 4 * MIB);
	assert_int_equal(cu_area_take(&be, 4 * MIB, 1ull << 40, 0, &at), 0);
	assert_int_equal(at % (1ull << 40), 0);
	/* All of it is too much: CUDA reserves that. */
	assert_int_equal(cu_area_take(&be, be.place.area_size, 0, 0, &at), 0);
	assert_false(at >= CU_AREA && at - CU_AREA < be.place.area_size);
	assert_int_equal(cu_area_give(&be, at, be.place.area_size), 0);
}

/* Where something else lies in the area, all places are CUDA's. */
static void no_area(void **state)
{
	struct be_wanted w = {.size = 4 * MIB, .dev = DEV};
	void *in_the_way;

	(void)state;
	begin_again();
	in_the_way = mmap((void *)(CU_AREA + CU_UNIT), CU_UNIT, PROT_NONE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	assert_true(in_the_way != MAP_FAILED);
	w.addr = allocate(4 * MIB);
	assert_true(w.addr && (w.addr < CU_AREA || w.addr > CU_AREA + (1ull << 43)));
	assert_int_equal(cu_mem_free(&be, w.addr), 0);
	w.addr = FREE_PLACE;
	assert_int_equal(allocate_wanted(4 * MIB, &w, 1), FREE_PLACE);
	assert_int_equal(cu_mem_free(&be, FREE_PLACE), 0);
	munmap(in_the_way, CU_UNIT);
	begin_again();
}

static void blocks_that_cannot_be(void **state)
{
	const uint64_t small = allocate(1000);
	struct be_wanted good[2] = {{.addr = small, .size = 1000, .dev = DEV}}, w[2];
	uint64_t block;

	(void)state;
	assert_true(cu_mem_block(&be, small, &good[1]));
	block = good[1].addr;
	assert_int_equal(cu_mem_free(&be, small), 0);
	begin_again();
	memcpy(w, good, sizeof(w));
	w[1].size = 4 * MIB;
	assert_int_equal(allocate_wanted(1000, w, 2), 0);
	w[1].size = UINT64_MAX;
	assert_int_equal(allocate_wanted(1000, w, 2), 0);
	memcpy(w, good, sizeof(w));
	w[1].addr = block + 512;
	w[0].addr = block + 512;
	assert_int_equal(allocate_wanted(1000, w, 2), 0);
	memcpy(w, good, sizeof(w));
	w[0].addr = block + 1;
	assert_int_equal(allocate_wanted(1000, w, 2), 0);
	w[0].addr = block - 512;
	assert_int_equal(allocate_wanted(1000, w, 2), 0);
	w[0].addr = block + 2 * MIB - 512;
	assert_int_equal(allocate_wanted(1000, w, 2), 0);
	w[0].addr = block + 2 * MIB;
	assert_int_equal(allocate_wanted(1000, w, 2), 0);
	w[0].addr = block;
	assert_int_equal(allocate_wanted(2 * MIB, w, 2), 0);
	w[1].addr = 0;
	assert_int_equal(allocate_wanted(1000, w, 2), 0);
	assert_int_equal(charged, 0);
	/* Twice. Nor can a whole allocation lie where the block is. */
	assert_int_equal(allocate_wanted(1000, good, 2), small);
	assert_int_equal(allocate_wanted(1000, good, 2), 0);
	assert_int_equal(allocate_wanted(2 * MIB, &good[1], 1), 0);
	assert_int_equal(charged, 2 * MIB);
	assert_int_equal(cu_mem_free(&be, small), 0);
}

#define COUNT 300u

static void all_memory_is_where_it_was(void **state)
{
	struct be_wanted w[COUNT][2] = {{{0}}};
	unsigned int seed = 46, i, other;
	uint64_t size, extra;

	(void)state;
	for (i = 0; i < COUNT; i++) {
		size = i == 7 ? LARGE
			      : (uint64_t)rand_r(&seed) % (i % 30 ? 300 * KIB : 5 * MIB) + 1;
		w[i][0] = (struct be_wanted){.addr = allocate(size), .size = size, .dev = DEV};
		assert_true(w[i][0].addr);
		fill(w[i][0].addr, size, 0xa5);
		/* There are gaps between them. */
		extra = allocate((uint64_t)rand_r(&seed) % MIB + 1);
		other = (unsigned int)rand_r(&seed) % (i + 1);
		if (other % 3 == 0) {
			assert_int_equal(cu_mem_free(&be, w[other][0].addr), 0);
			memset(w[other], 0, sizeof(w[other]));
			w[other][0] = (struct be_wanted){.addr = extra, .size = 1, .dev = DEV};
		} else {
			assert_int_equal(cu_mem_free(&be, extra), 0);
		}
	}
	for (i = 0; i < COUNT; i++)
		(void)cu_mem_block(&be, w[i][0].addr, &w[i][1]);
	begin_again();
	for (i = 0; i < COUNT; i++) {
		assert_int_equal(allocate_wanted(w[i][0].size, w[i], w[i][1].size ? 2 : 1),
				 w[i][0].addr);
		assert_true(is_filled(w[i][0].addr, w[i][0].size, 0));
		fill(w[i][0].addr, w[i][0].size, (uint8_t)i);
	}
	/* What comes later lies elsewhere. */
	extra = allocate(300 * KIB);
	fill(extra, 300 * KIB, 0xff);
	for (i = 0; i < COUNT; i++) {
		assert_true(is_filled(w[i][0].addr, w[i][0].size, (uint8_t)i));
		assert_true(cu_mem_valid(&be, w[i][0].addr, w[i][0].size));
		assert_int_equal(cu_mem_free(&be, w[i][0].addr), 0);
	}
	assert_int_equal(cu_mem_free(&be, extra), 0);
	assert_int_equal(charged, 0);
}

/* What comes in between gets other addresses. */
static void places_are_held(void **state)
{
	const uint64_t a = allocate(LARGE), small = allocate(1000), next = allocate(900);
	const struct be_wanted whole = {.addr = a, .size = LARGE, .dev = DEV};
	struct be_wanted w[2] = {{.addr = small, .size = 1000, .dev = DEV}}, places[4];
	uint64_t mine[3];
	size_t i;

	(void)state;
	assert_true(cu_mem_block(&be, small, &w[1]));
	assert_true(cu_mem_block(&be, next, &places[2]));
	places[0] = whole;
	places[1] = w[1];
	places[3] = (struct be_wanted){.addr = a + 1, .size = 1, .dev = DEV};
	/* In use. */
	assert_int_equal(cu_hold(&be, places, 4), QCU_ERR_MemoryAllocation);
	assert_int_equal(cu_hold(&be, NULL, 0), 0);
	begin_again();
	be.movable = false;
	assert_int_equal(cu_hold(&be, places, 4), QCU_ERR_NotSupported);
	be.movable = true;
	assert_int_equal(cu_hold(&be, places, 4), 0);
	for (i = 0; i < 3; i++) {
		mine[i] = allocate(i == 2 ? 1000 : LARGE);
		assert_true(mine[i] && mine[i] != a && mine[i] != small);
	}
	assert_int_equal(allocate_wanted(LARGE, &whole, 1), a);
	assert_int_equal(allocate_wanted(LARGE, &whole, 1), 0);
	assert_int_equal(allocate_wanted(1000, w, 2), small);
	/* What is left is free again, and held no more. */
	assert_int_equal(cu_hold(&be, NULL, 0), 0);
	assert_int_equal(cu_mem_free(&be, a), 0);
	assert_int_equal(allocate_wanted(LARGE, &whole, 1), a);
	assert_int_equal(
		cu_hold(&be, &(struct be_wanted){.addr = a + (1ull << 33), .size = 1, .dev = DEV},
			1),
		0);
}

/* Whichever call fails: nothing is left of the allocation. */
static void each_call_may_fail(void **state)
{
	struct be_wanted w[2] = {{.addr = allocate(LARGE), .size = LARGE, .dev = DEV}};
	struct be_wanted small[2] = {{.addr = allocate(1000), .size = 1000, .dev = DEV}};
	unsigned int n;
	uint64_t addr;

	(void)state;
	assert_true(cu_mem_block(&be, small[0].addr, &small[1]));
	begin_again();
	for (n = 1, addr = 0; !addr; n++) {
		cuda.calls = 0;
		cuda.fail_at = n;
		addr = allocate_wanted(LARGE, w, 1);
		cuda.fail_at = 0;
		assert_int_equal(charged, addr ? cu_units(LARGE) : 0);
		assert_int_equal(cuda.used, addr ? cu_units(LARGE) : 0);
	}
	assert_true(n > 5);
	for (n = 1, addr = 0; !addr; n++) {
		cuda.calls = 0;
		cuda.fail_at = n;
		addr = allocate_wanted(1000, small, 2);
		cuda.fail_at = 0;
	}
	assert_true(n > 4);
}

/* The mirror makes room on the GPU, and asks again. */
static void room_may_come_late(void **state)
{
	struct be_wanted whole = {.addr = allocate(LARGE), .size = LARGE, .dev = DEV};
	struct be_wanted small[2] = {{.addr = allocate(1000), .size = 1000, .dev = DEV}};

	(void)state;
	assert_true(cu_mem_block(&be, small[0].addr, &small[1]));
	begin_again();
	cuda.room = CU_UNIT / 2;
	cu_want(&be, &whole, 1);
	assert_int_equal(allocate(LARGE), 0);
	cuda.room = LIMIT;
	assert_int_equal(allocate(LARGE), whole.addr);
	/* Once. */
	assert_int_equal(allocate(LARGE), 0);
	cuda.room = cuda.used;
	cu_want(&be, small, 2);
	assert_int_equal(allocate(1000), 0);
	cuda.room = LIMIT;
	assert_int_equal(allocate(1000), small[0].addr);
	assert_int_equal(allocate(1000), 0);
	cu_want(&be, NULL, 0);
}

static void what_cannot_be_saved(void **state)
{
	const struct be_module m = {0};
	const struct cu_range managed = {
		.addr = 1ull << 40, .size = 4, .dev = CUDA_DEVICE, .module = &m, .managed = true};
	bool busy = true;

	(void)state;
	allocate(1000);
	allocate(LARGE);
	assert_null(cu_unsaved(&be, &busy));
	assert_false(busy);
	cuda.busy = true;
	assert_non_null(cu_unsaved(&be, &busy));
	assert_true(busy);
	cuda.busy = false;
	cuda.error = QCU_ERR_IllegalAddress;
	assert_non_null(strstr(cu_unsaved(&be, &busy), "error"));
	cuda.error = 0;
	be.movable = false;
	assert_non_null(strstr(cu_unsaved(&be, &busy), "--swap"));
	be.movable = true;
	assert_null(cu_unsaved(&be, &busy));
	assert_int_equal(cu_mem_add(&be, &managed), 0);
	assert_non_null(strstr(cu_unsaved(&be, &busy), "managed variables"));
	cu_mem_forget(&be, &m);
	assert_null(cu_unsaved(&be, &busy));
}

/* ---- modules and events ---- */

static int settle(const struct be_wanted *w, size_t count, const struct cuda_variable *now)
{
	static char *known[] = {"a", "b", "c"};
	static const struct image_names names = {.name = known, .count = 3};
	struct be_module m = {0};
	int ret;

	/* As module_load keeps it. */
	m.wanted = malloc(count * sizeof(*w));
	assert_non_null(m.wanted);
	memcpy(m.wanted, w, count * sizeof(*w));
	m.wanted_count = count;
	cuda.variables = now;
	ret = cu_module_settle(&be, &m, &names);
	/* The second time there is nothing to do. */
	assert_int_equal(cu_module_settle(&be, &m, &names), 0);
	assert_null(m.wanted);
	return ret;
}

static void variables_must_be_where_they_were(void **state)
{
	static char *known[] = {"a", "b", "c"};
	static const struct image_names names = {.name = known, .count = 3};
	static const struct cuda_variable now[] = {{"c", 8192, 8}, {"a", 4096, 4}, {0}},
					  moved[] = {{"c", 8192, 8}, {"a", 4352, 4}, {0}},
					  more[] = {{"c", 8192, 8},
						    {"a", 4096, 4},
						    {"b", 1, 1},
						    {0}},
					  larger[] = {{"c", 8192, 9}, {"a", 4096, 4}, {0}};
	struct be_wanted w[4];
	struct be_module m = {0};

	(void)state;
	cuda.variables = now;
	assert_int_equal(cu_module_vars(&be, &m, &names, w, 4), 0); /* the device is not used */
	atomic_store(&be.used[DEV], true);
	assert_int_equal(cu_module_vars(&be, &m, &names, NULL, 0), 2);
	assert_int_equal(cu_module_vars(&be, &m, &names, w, 2), 2);
	assert_true(w[0].addr == 4096 && w[0].size == 4 && w[0].dev == DEV && w[1].addr == 8192);
	assert_int_not_equal(settle(w, 2, moved), 0);
	assert_int_not_equal(settle(w, 2, more), 0);
	assert_int_not_equal(settle(w, 2, larger), 0);
	assert_int_not_equal(settle(w, 1, now), 0);
	assert_int_not_equal(settle(w, 2, NULL), 0);
	w[1].dev = 0;
	assert_int_not_equal(settle(w, 2, now), 0);
	w[1].dev = 77;
	assert_int_not_equal(settle(w, 2, now), 0);
	w[1].dev = DEV;
	assert_int_equal(settle(w, 2, now), 0);
}

/* ---- modules that get memory from CUDA ---- */

#define MODULES 24u
#define FEW	8u
#define OWN	5u
static struct cuda_module modules[MODULES];
static struct own {
	uint64_t at, bytes;
} own[OWN]; /* what CUDA takes for itself */
static struct be_wanted wanted[MODULES][2];
static struct image_names two_names = {.name = (char *[]){"a", "b"}, .count = 2};

/* Most are small. Some fill most of a unit, or more than one. */
static uint64_t any_size(void)
{
	const unsigned int what = (unsigned int)rand() % 8;

	if (what < 2)
		return what * CU_UNIT / 2 + (what ? (unsigned int)rand() % (CU_UNIT * 2) : 0);
	return 1 + (unsigned int)rand() % 5000;
}

static void make_modules(void)
{
	unsigned int i;

	for (i = 0; i < MODULES; i++) {
		modules[i] =
			(struct cuda_module){.name = 'a', .other = (unsigned int)rand() % 3 * 300};
		modules[i].size[0] = any_size();
		modules[i].size[1] = modules[i].size[0] ? any_size() : 0;
	}
}

/* Uses them in their order. CUDA takes addresses in between, some of them in pieces of its own. */
static void use_modules(unsigned int count)
{
	unsigned int i, k;

	for (i = 0; i < count; i++) {
		cuda_use_module(&be, &modules[i]);
		k = i / 5;
		if (i % 5 == 2)
			own[k].bytes = (1 + (unsigned int)rand() % 40) * CU_UNIT;
		if (i % 5 == 2)
			own[k].at = addresses_reserve(own[k].bytes, 0);
	}
}

/* The modules have no memory any more, and CUDA has none: another process. */
static void restart(void)
{
	unsigned int i;

	cu_want(&be, NULL, 0);
	for (i = 0; i < MODULES; i++)
		cuda_end_module(&modules[i]);
	for (i = 0; i < OWN; i++)
		if (own[i].bytes)
			addresses_free(own[i].at, own[i].bytes);
	memset(own, 0, sizeof(own));
	begin_again();
	atomic_store(&be.used[DEV], true);
	cu_rooms_make(&be);
}

/* Returns how many variables the module has. */
static size_t say_where(unsigned int i)
{
	struct be_module m = {.lib = (cudaLibrary_t)&modules[i]};

	return modules[i].used ? cu_module_vars(&be, &m, &two_names, wanted[i], 2) : 0;
}

/* Of a small variable. CUDA begins with the highest piece, and in a piece from below. */
static uint64_t first_place(unsigned int i, size_t count)
{
	const uint64_t piece = (32 << 20) - 1;
	uint64_t first = UINT64_MAX, at;

	while (count--) {
		at = wanted[i][count].addr ^ ~piece;
		if (wanted[i][count].size < CU_UNIT && at < first)
			first = at;
	}
	return first;
}

static int settle_module(unsigned int i, size_t count)
{
	struct be_module m = {.lib = (cudaLibrary_t)&modules[i], .wanted_count = count};

	m.wanted = malloc(sizeof(wanted[i]));
	assert_non_null(m.wanted);
	memcpy(m.wanted, wanted[i], sizeof(wanted[i]));
	return cu_module_settle(&be, &m, &two_names);
}

/* As the mirror does: those with the lowest addresses first. Returns the first error. */
static int settle_modules(const size_t *count)
{
	bool done[MODULES] = {0};
	unsigned int i, next;
	int ret = 0;

	do {
		for (i = 0, next = MODULES; i < MODULES; i++)
			if (count[i] && !done[i] &&
			    (next == MODULES ||
			     first_place(i, count[i]) < first_place(next, count[next])))
				next = i;
		if (next == MODULES)
			return ret;
		done[next] = true;
		ret = settle_module(next, count[next]);
	} while (!ret);
	return ret;
}

static void save_modules(size_t *count)
{
	unsigned int i;

	for (i = 0; i < MODULES; i++)
		count[i] = say_where(i);
}

/*
 * Modules without variables lie between the others. CUDA has taken addresses in between, and more
 * modules come and go.
 */
static void variables_get_their_room(void **state)
{
	size_t count[MODULES];
	unsigned int round, i;

	(void)state;
	srand(7);
	for (round = 0; round < 60; round++) {
		restart();
		make_modules();
		use_modules(MODULES);
		for (i = 0; i < round % 4; i++)
			cuda_end_module(&modules[(unsigned int)rand() % MODULES]);
		save_modules(count);
		restart();
		assert_int_equal(settle_modules(count), 0);
		cu_want(&be, NULL, 0);
		for (i = 0; i < MODULES; i++)
			assert_true(!count[i] || modules[i].at[0] == wanted[i][0].addr);
	}
	restart();
	cu_rooms_close(&be);
}

/* Another process has something where a variable was: that is an error, and nothing is lost. */
static void variables_without_their_room(void **state)
{
	size_t count[MODULES];
	uint64_t taken;
	unsigned int i;

	(void)state;
	restart();
	make_modules();
	modules[0] = (struct cuda_module){.name = 'a', .size = {4}};
	use_modules(1);
	save_modules(count);
	restart();
	taken = addresses_reserve(CU_UNIT, wanted[0][0].addr / CU_UNIT * CU_UNIT);
	assert_int_equal(taken, wanted[0][0].addr / CU_UNIT * CU_UNIT);
	assert_int_not_equal(settle_modules(count), 0);
	addresses_free(taken, CU_UNIT);
	/* Each call may fail. */
	make_modules();
	for (i = 1; i; i += i < 40 ? 1 : 37) {
		restart();
		use_modules(FEW);
		save_modules(count);
		restart();
		cuda.calls = 0;
		cuda.fail_at = i;
		if (!settle_modules(count) && cuda.calls < i)
			break;
		cuda.fail_at = 0;
	}
	restart();
	cu_rooms_close(&be);
}

static void events_keep_their_ages(void **state)
{
	float recorded = 100;
	struct be_event e = {.e = (cudaEvent_t)&recorded, .dev = DEV}, gone = {.life = 1};
	uint64_t ns = 0, at = spin_clock();

	(void)state;
	cuda.ms = 350;
	assert_int_equal(cu_event_age(&be, &e, false, at, &ns), 0);
	assert_in_range(ns, 250000000 - (spin_clock() - at), 250000000);
	/* In another process it is recorded anew. */
	recorded = 1000;
	cuda.ms = 1001;
	ns = 250000000;
	at = spin_clock();
	assert_int_equal(cu_event_age(&be, &e, true, at, &ns), 0);
	assert_int_equal(cu_event_age(&be, &e, false, at, &ns), 0);
	assert_in_range(ns, 251000000 - (spin_clock() - at), 251000000 + (spin_clock() - at));
	recorded = -1;
	assert_int_equal(cu_event_age(&be, &e, false, at, &ns), QCU_ERR_NotReady);
	assert_int_equal(cu_event_age(&be, &gone, false, at, &ns), QCU_ERR_NotReady);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(wanted_addresses_that_cannot_be_had),
		TEST(reserved_addresses),
		TEST(area_is_used_again),
		TEST(no_area),
		TEST(blocks_that_cannot_be),
		TEST(all_memory_is_where_it_was),
		TEST(places_are_held),
		TEST(each_call_may_fail),
		TEST(room_may_come_late),
		TEST(what_cannot_be_saved),
		TEST(variables_must_be_where_they_were),
		TEST(variables_get_their_room),
		TEST(variables_without_their_room),
		TEST(events_keep_their_ages),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
