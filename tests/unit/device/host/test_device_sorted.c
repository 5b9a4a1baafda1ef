// SPDX-License-Identifier: GPL-2.0-or-later
/* The sorted array of a backend's memory, beside a plain one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "qcu-device/base/sorted.h"

#define MANY 3000

struct thing {
	uint64_t addr, mark, more;
};

static uint64_t plain[MANY]; /* sorted */
static size_t count;

static struct thing *thing(const struct sorted *s, size_t i)
{
	return (struct thing *)s->v + i;
}

static size_t upto(uint64_t addr)
{
	size_t at = 0;

	while (at < count && plain[at] <= addr)
		at++;
	return at;
}

static void put_in(struct sorted *s, uint64_t addr)
{
	size_t at = upto(addr);
	struct thing *t;

	assert_int_equal(sorted_upto(s, addr), at);
	t = sorted_insert(s, at);
	assert_non_null(t);
	*t = (struct thing){addr, addr * 3, ~addr};
	memmove(plain + at + 1, plain + at, (count++ - at) * sizeof(plain[0]));
	plain[at] = addr;
}

static void take_out(struct sorted *s, size_t at)
{
	sorted_remove(s, at);
	memmove(plain + at, plain + at + 1, (--count - at) * sizeof(plain[0]));
}

static void same(const struct sorted *s)
{
	size_t i;

	assert_int_equal(s->count, count);
	assert_true(s->front + s->count <= s->room);
	for (i = 0; i < count; i++) {
		assert_int_equal(thing(s, i)->addr, plain[i]);
		assert_int_equal(thing(s, i)->mark, plain[i] * 3);
		assert_int_equal(thing(s, i)->more, ~plain[i]);
	}
}

static void empty(void **state)
{
	struct sorted s = {.size = sizeof(struct thing)};

	(void)state;
	assert_int_equal(sorted_upto(&s, 5), 0);
	sorted_free(&s);
	put_in(&s, 7);
	assert_int_equal(sorted_upto(&s, 6), 0);
	assert_int_equal(sorted_upto(&s, 7), 1);
	take_out(&s, 0);
	same(&s);
	sorted_free(&s);
	assert_int_equal(s.size, sizeof(struct thing));
}

/* Anywhere, with as many as before most of the time, so that the free places wander. */
static void anywhere(void **state)
{
	struct sorted s = {.size = sizeof(struct thing)};
	unsigned int i;

	(void)state;
	srand(1);
	for (i = 0; i < 20000; i++) {
		if (count < MANY && (rand() % 1000 < 500 + (i < 3000) * 400 || !count))
			put_in(&s, (uint64_t)rand() % 100000);
		else
			take_out(&s, (size_t)rand() % count);
		if (i % 100 == 0)
			same(&s);
	}
	while (count)
		take_out(&s, rand() % 2 ? 0 : count - 1);
	same(&s);
	sorted_free(&s);
}

/* Freed in the order in which they were made: nothing moves, and the places are used again. */
static void in_turn(void **state)
{
	struct sorted s = {.size = sizeof(struct thing)};
	uint64_t addr;
	size_t room;

	(void)state;
	for (addr = 0; addr < 100; addr++)
		put_in(&s, addr);
	room = s.room;
	for (; addr < 10000; addr++) {
		char *second = s.v + s.size;

		take_out(&s, 0);
		assert_ptr_equal(s.v, second);
		put_in(&s, addr);
		same(&s);
	}
	assert_true(s.room <= 2 * room);
	while (count)
		take_out(&s, count - 1);
	sorted_free(&s);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(empty),
		cmocka_unit_test(anywhere),
		cmocka_unit_test(in_turn),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
