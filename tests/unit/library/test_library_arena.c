// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The arena on ordinary memory: the blocks that it hands out are aligned, do not overlap, are zero
 * where they have to be, are untouched where they may be, and are returned to the system.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "qcu-library/malloc/arena.h"
#include "qcu-library/malloc/malloc_region.h"
#include "qcu-library/malloc/malloc_tree.h"
#include "qcu-library/link/link.h"
#include "tests/rounds.h"

#define K     ((size_t)1 << 10)
#define M     ((size_t)1 << 20)
#define G     ((size_t)1 << 30)
#define CHUNK (4 * M)

#define GROWTH 128 /* how much longer a growing block may become in place */

/* ---- the window, as the arena sees it ---- */

#define MAPPINGS 1000
static struct {
	char *at;
	size_t len;
} mapping[MAPPINGS];
static unsigned int mappings, made, refuse;
static size_t mapped;

void *qcul_window_map(size_t len)
{
	char *p, *at;

	if (refuse)
		return NULL;
	/* Aligned to a chunk, as in window.c. */
	p = mmap(NULL, len + CHUNK, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p == MAP_FAILED)
		return NULL;
	at = (char *)(((uintptr_t)p + CHUNK - 1) & ~(CHUNK - 1));
	if (at > p)
		munmap(p, (size_t)(at - p));
	munmap(at + len, (size_t)(p + CHUNK - at));
	assert_true(mappings < MAPPINGS);
	mapping[mappings].at = at;
	mapping[mappings].len = len;
	mappings++;
	made++;
	mapped += len;
	return at;
}

void qcul_window_unmap(void *addr, size_t len)
{
	unsigned int i;

	assert_int_equal(munmap(addr, len), 0);
	for (i = 0; mapping[i].at != addr; i++)
		assert_true(i < mappings);
	mapping[i] = mapping[--mappings];
	mapped -= len;
}

static size_t resident(const char *p, size_t len)
{
	size_t pages = (len + QCUL_PAGE - 1) / QCUL_PAGE, n = 0, i;
	unsigned char *vec = malloc(pages);

	assert_non_null(vec);
	assert_int_equal(mincore((void *)(uintptr_t)p, len, vec), 0);
	for (i = 0; i < pages; i++)
		n += vec[i] & 1;
	free(vec);
	return n;
}

static size_t all_resident(void)
{
	unsigned int i;
	size_t n = 0;

	for (i = 0; i < mappings; i++)
		n += resident(mapping[i].at, mapping[i].len);
	return n;
}

static char *get(size_t size, size_t align)
{
	char *p = qcul_arena_alloc(size, align, false, false);

	assert_non_null(p);
	assert_int_equal((uintptr_t)p % align, 0);
	assert_true(qcul_arena_size(p) >= size);
	return p;
}

static void put(void *p)
{
	assert_true(qcul_arena_free(p));
}

/* Each test begins with an empty arena, as a forked child has it. */
static int start(void **state)
{
	(void)state;
	qcul_arena_before_fork();
	qcul_arena_after_fork(true);
	assert_int_equal(mappings, 0);
	made = refuse = 0;
	qcul_arena_start(CHUNK);
	return 0;
}

static bool all(const char *p, size_t len, char value)
{
	size_t i;

	for (i = 0; i < len; i++)
		if (p[i] != value)
			return false;
	return true;
}

/* ---- tests ---- */

static void shares_a_chunk(void **state)
{
	char *p[16];
	size_t i;

	(void)state;
	for (i = 0; i < 16; i++) {
		p[i] = get(256 * K, 1);
		memset(p[i], (int)i, 256 * K);
	}
	assert_int_equal(mappings, 1);
	for (i = 0; i < 16; i++)
		assert_true(all(p[i], 256 * K, (char)i));
	/*
	 * The next block needs another chunk. Neighbours that were freed make room for a larger
	 * block.
	 */
	put(get(256 * K, 1));
	assert_int_equal(mappings, 2);
	put(p[4]);
	put(p[6]);
	put(p[5]);
	assert_int_equal(qcul_arena_size(p[5]), 0);
	made = 0;
	assert_ptr_equal(get(768 * K, 1), p[4]);
	assert_int_equal(made, 0);
	put(p[4]);
	for (i = 0; i < 16; i++)
		if (i < 4 || i > 6)
			put(p[i]);
	assert_int_equal(mappings, 2);
}

static void returns_empty_mappings(void **state)
{
	char *p[64], *large[8];
	size_t i;

	(void)state;
	for (i = 0; i < 64; i++)
		p[i] = get(2 * M, 1);
	assert_int_equal(mappings, 32);
	for (i = 0; i < 64; i++)
		put(p[i]);
	assert_true(mappings <= 2);
	for (i = 0; i < 8; i++)
		large[i] = get(64 * M, 1);
	for (i = 0; i < 8; i++)
		put(large[i]);
	assert_true(mapped <= 128 * M + 2 * CHUNK);
	/* More than the arena ever keeps. */
	i = mappings;
	put(get(G, 1));
	assert_int_equal(mappings, i);
}

static void a_loop_maps_once(void **state)
{
	int i;

	(void)state;
	for (i = 0; i < 1000; i++) {
		put(get(64 * M, 1));
		put(get(300 * K, 1));
	}
	assert_int_equal(made, 2);
}

static void aligned(void **state)
{
	static const size_t sizes[] = {128 * K, 200 * K + 1, M, 3 * M, 5 * M, 40 * M};
	char *p[26];
	size_t align, i, n;

	(void)state;
	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		n = 0;
		for (align = 1; align <= 32 * M; align *= 2) {
			p[n] = get(sizes[i], align);
			p[n][0] = p[n][sizes[i] - 1] = (char)n;
			n++;
		}
		while (n-- > 0) {
			assert_int_equal(p[n][0], (char)n);
			assert_int_equal(p[n][sizes[i] - 1], (char)n);
			put(p[n]);
		}
	}
}

static void zero_when_asked(void **state)
{
	static const size_t sizes[] = {128 * K, M, 64 * M};
	size_t i;
	char *p;

	(void)state;
	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		p = get(sizes[i], 1);
		memset(p, 0x5a, sizes[i]);
		put(p);
		p = qcul_arena_alloc(sizes[i], 1, true, false);
		assert_non_null(p);
		assert_true(all(p, sizes[i], 0));
		put(p);
	}
	/* Fresh memory is zero already and is not touched. */
	p = qcul_arena_alloc(8 * G, 1, true, false);
	assert_non_null(p);
	assert_int_equal(resident(p, 64 * M), 0);
	p[5 * G] = 1;
	assert_int_equal(resident(p + 5 * G, QCUL_PAGE), 1);
	put(p);
	/* The same for fresh memory in a region whose other parts are not fresh. */
	start(state);
	p = get(M, 1);
	memset(p, 1, M);
	put(p);
	p = qcul_arena_alloc(2 * M, 1, true, false);
	assert_non_null(p);
	assert_true(all(p, M, 0));
	assert_int_equal(resident(p + M, M), 0);
	put(p);
}

static void resizes_in_place(void **state)
{
	char *p = get(512 * K, 1), *q;

	(void)state;
	memset(p, 3, 512 * K);
	assert_true(qcul_arena_resize(p, M));
	assert_int_equal(qcul_arena_size(p), M);
	q = get(M, 1);
	assert_ptr_equal(q, p + M);
	assert_false(qcul_arena_resize(p, M + 1));
	assert_true(qcul_arena_resize(p, 128 * K));
	assert_true(all(p, 128 * K, 3));
	assert_ptr_equal(get(512 * K, 1), p + 128 * K);
	put(p + 128 * K);
	put(q);
	assert_true(qcul_arena_resize(p, 4 * M));
	assert_false(qcul_arena_resize(p, 4 * M + 1));
	put(p);

	/* A large block can grow into what was reserved behind it, and not a byte more. */
	p = qcul_arena_alloc(10 * M, 1, false, true);
	assert_non_null(p);
	assert_int_equal(qcul_arena_size(p), 10 * M);
	assert_true(qcul_arena_resize(p, 20 * M));
	assert_int_equal(qcul_arena_size(p), 20 * M);
	assert_true(qcul_arena_resize(p, 15 * M));
	/* Most of the block would be wasted. */
	assert_false(qcul_arena_resize(p, M));
	assert_true(qcul_arena_resize(p, GROWTH * 10 * M));
	assert_false(qcul_arena_resize(p, GROWTH * 10 * M + 1));
	put(p);
}

/* All growing blocks together get a part of the window's addresses, whatever they are used for. */
static void growth_is_bounded(void **state)
{
	const size_t all_slack = QCU_WINDOW_SIZE / 8;
	char *p[4], *again;
	unsigned int i;

	(void)state;
	p[0] = qcul_arena_alloc(G, 1, false, true);
	assert_int_equal(mapped, GROWTH * G);
	/* Not as much again: twice the size, as long as there is enough for that. */
	for (i = 1; i < 4; i++)
		p[i] = qcul_arena_alloc(all_slack / 512, 1, false, true);
	assert_int_equal(mapped, GROWTH * G + 3 * 2 * (all_slack / 512));
	for (i = 1; i < 4; i++)
		put(p[i]);
	for (i = 1; i < 4; i++) {
		p[i] = qcul_arena_alloc(3 * all_slack / 1024, 1, false, true);
		assert_non_null(p[i]);
	}
	assert_int_equal(mapped, GROWTH * G + (2 + 2 + 1) * (3 * all_slack / 1024));
	/* What is given back counts no longer. */
	for (i = 0; i < 4; i++)
		put(p[i]);
	assert_int_equal(mapped, 0);
	p[0] = qcul_arena_alloc(G, 1, false, true);
	assert_int_equal(mapped, GROWTH * G);
	put(p[0]);
	/* A block that did not use its addresses is kept for the next one of its size. */
	p[0] = qcul_arena_alloc(10 * M, 1, false, true);
	made = 0;
	put(p[0]);
	again = get(10 * M, 1);
	assert_ptr_equal(again, p[0]);
	assert_int_equal(made, 0);
	put(again);
}

static void knows_its_own(void **state)
{
	char *small = get(256 * K, 1), *large = get(20 * M, 1), on_stack;

	(void)state;
	assert_false(qcul_arena_free(small + QCUL_PAGE));
	assert_false(qcul_arena_free(small + 1));
	assert_false(qcul_arena_free(small + 256 * K));
	assert_false(qcul_arena_free(large + QCUL_PAGE));
	assert_false(qcul_arena_free(&on_stack));
	assert_int_equal(qcul_arena_size(small + QCUL_PAGE), 0);
	assert_int_equal(qcul_arena_size(&on_stack), 0);
	assert_true(qcul_arena_holds(large + M, 19 * M));
	assert_false(qcul_arena_holds(large + M, 19 * M + 1));
	assert_false(qcul_arena_holds(&on_stack, 1));
	put(small);
	put(large);
	/* Both blocks are kept for reuse, but they are free. */
	assert_false(qcul_arena_free(small));
	assert_false(qcul_arena_free(large));
	assert_int_equal(qcul_arena_size(large), 0);
}

static void without_addresses(void **state)
{
	char *p = get(M, 1);

	(void)state;
	refuse = 1;
	assert_null(qcul_arena_alloc(5 * M, 1, false, false));
	assert_null(qcul_arena_alloc(5 * M, 1, false, true));
	assert_null(qcul_arena_alloc(M, 4 * M, false, false));
	assert_null(qcul_arena_alloc(SIZE_MAX, 1, false, false));
	assert_null(qcul_arena_alloc(SIZE_MAX - QCUL_PAGE, 1, false, false));
	assert_null(qcul_arena_alloc(PTRDIFF_MAX, SIZE_MAX / 2 + 1, false, false));
	assert_false(qcul_arena_resize(p, SIZE_MAX));
	/* The chunk that exists can still be used. */
	put(get(M, 1));
	put(p);
}

static void around_fork(void **state)
{
	char *p = get(M, 1), *large = get(20 * M, 1), *more;

	(void)state;
	memset(p, 1, M);
	qcul_arena_before_fork();
	/* Now a fork handler of the program may allocate and free, in this thread. */
	assert_null(qcul_arena_alloc(64 * M, 1, false, false));
	more = get(M, 1);
	put(more);
	put(large);
	assert_int_equal(qcul_arena_size(p), M);
	qcul_arena_after_fork(true);
	/*
	 * The child: inherited memory is still there and can be freed, but the arena gives out none
	 * of it.
	 */
	assert_true(all(p, M, 1));
	assert_false(qcul_arena_holds(p, M));
	assert_int_equal(mappings, 1);
	more = get(M, 1);
	assert_int_equal(mappings, 2);
	put(p);
	assert_int_equal(mappings, 1);
	put(more);
}

/* Compared with a simple record of the allocations. */
static void at_random(void **state)
{
	enum { SLOTS = 200 };
	static struct {
		char *p;
		size_t size;
		char mark;
	} s[SLOTS];
	const unsigned int rounds = random_rounds(200000);
	unsigned int round;
	uint32_t x = 1;
	int i;

	(void)state;
	for (round = 0; round < rounds; round++) {
		size_t size;
		int at;

		x = x * 1664525 + 1013904223;
		at = (int)((x >> 8) % SLOTS);
		size = (size_t)1 << (12 + (x >> 24) % 11);
		size += x % size;
		if (s[at].p) {
			assert_int_equal(s[at].p[0], s[at].mark);
			assert_int_equal(s[at].p[s[at].size - 1], s[at].mark);
			if (x & 0x80 && qcul_arena_resize(s[at].p, size)) {
				assert_int_equal(s[at].p[0], s[at].mark);
			} else {
				put(s[at].p);
				s[at].p = NULL;
				continue;
			}
		} else {
			bool zero = x & 0x40;

			s[at].p = qcul_arena_alloc(size, (size_t)1 << (x >> 16) % 22, zero, x & 1);
			assert_non_null(s[at].p);
			if (zero) {
				assert_int_equal(s[at].p[0], 0);
				assert_int_equal(s[at].p[size / 2], 0);
				assert_int_equal(s[at].p[size - 1], 0);
			}
		}
		s[at].size = size;
		s[at].mark = (char)(x | 1);
		s[at].p[0] = s[at].p[size / 2] = s[at].p[size - 1] = s[at].mark;
	}
	for (i = 0; i < SLOTS; i++)
		if (s[i].p)
			put(s[i].p);
	assert_true(all_resident() <= (128 * M + 2 * CHUNK) / QCUL_PAGE);
}

static void finds_by_address(void **state)
{
	enum { N = 1000 };
	static struct qcul_node nodes[N];
	struct qcul_tree t = {0};
	uint32_t i;

	(void)state;
	for (i = 0; i < N; i++) {
		/* Only every other place is used, in a scattered order. */
		nodes[i].start = (i * 7919u % N) * 20 + 100;
		nodes[i].len = 10;
		qcul_tree_add(&t, &nodes[i]);
	}
	for (i = 0; i < N; i += 2)
		qcul_tree_remove(&t, &nodes[i]);
	for (i = 0; i < N; i++) {
		struct qcul_node *want = i % 2 ? &nodes[i] : NULL;

		assert_ptr_equal(qcul_tree_find(&t, nodes[i].start), want);
		assert_ptr_equal(qcul_tree_find(&t, nodes[i].start + 9), want);
		assert_null(qcul_tree_find(&t, nodes[i].start + 10));
	}
	for (i = 1; i < N; i += 2)
		qcul_tree_remove(&t, &nodes[i]);
	assert_null(t.root);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(without_addresses, start),
		cmocka_unit_test_setup(knows_its_own, start),
		cmocka_unit_test_setup(shares_a_chunk, start),
		cmocka_unit_test_setup(returns_empty_mappings, start),
		cmocka_unit_test_setup(a_loop_maps_once, start),
		cmocka_unit_test_setup(aligned, start),
		cmocka_unit_test_setup(zero_when_asked, start),
		cmocka_unit_test_setup(resizes_in_place, start),
		cmocka_unit_test_setup(growth_is_bounded, start),
		cmocka_unit_test_setup(around_fork, start),
		cmocka_unit_test_setup(at_random, start),
		cmocka_unit_test(finds_by_address),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
