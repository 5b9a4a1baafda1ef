// SPDX-License-Identifier: GPL-2.0-or-later
/* Who lets memory leave (turns/room.h), with a clock of our own. Claims come from this file. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "qcu-device/turns/room.h"
#include "tests/rounds.h"

#define MS  1000000ull
#define MIB ((uint64_t)1 << 20)
#define S   1u /* the session that a VM has here */

static struct room r;
static struct room_claim claim[TURNS_VMS];
static uint64_t now = 1000 * MS;

static struct room_program *program(unsigned int vm)
{
	return &r.vm[vm].program[S];
}

static void look(void)
{
	unsigned int i;

	for (i = 0; i < r.top; i++) {
		claim[i].told = program(i)->number;
		room_claim(&r, now, i, S, &claim[i]);
	}
	room_look(&r, now);
}

/* VMs with so much memory each; all have worked just now. */
static void begin(uint64_t memory, unsigned int vms, uint64_t held)
{
	unsigned int i;

	room_init(&r, memory);
	for (i = 0; i < vms; i++) {
		assert_true(room_add(&r, i, true, 0, 0));
		claim[i] = (struct room_claim){.live = true, .held = held, .worked_ns = now};
	}
	look();
}

static void ask(unsigned int vm, uint64_t need)
{
	claim[vm].need = need;
	claim[vm].ask = program(vm)->answer + 1;
	claim[vm].worked_ns = now;
}

/* The program does what it has been told. */
static void leave(unsigned int vm)
{
	uint64_t n = program(vm)->bytes;

	assert_true(program(vm)->ordered);
	claim[vm].held -= n;
	claim[vm].away += n;
	claim[vm].left = n;
	claim[vm].number = program(vm)->number;
}

static bool answered(unsigned int vm)
{
	return program(vm)->answer == claim[vm].ask;
}

static void take(unsigned int vm)
{
	assert_true(answered(vm) && program(vm)->yes);
	claim[vm].held += claim[vm].need;
	claim[vm].need = 0;
}

static void wait_ms(uint64_t ms)
{
	now += ms * MS;
	look();
}

static void work(unsigned int vm)
{
	claim[vm].worked_ns = now;
}

/* What nobody can give is refused at once. */
static void test_nothing_to_give(void **state)
{
	(void)state;
	begin(100 * MIB, 2, 50 * MIB);
	claim[1].fixed = 50 * MIB;
	ask(0, MIB);
	look();
	assert_true(answered(0) && !program(0)->yes);
	/* What it is, the program cannot change by claiming more than there can be. */
	claim[1].fixed = UINT64_MAX;
	ask(0, UINT64_MAX);
	look();
	assert_true(answered(0) && !program(0)->yes);
}

/* Who gives to another one may give again: nobody hears "no" meanwhile. */
static void test_ordered_for_another(void **state)
{
	(void)state;
	begin(100 * MIB, 3, 0);
	claim[0].held = 100 * MIB;
	wait_ms(1000);
	ask(1, 10 * MIB);
	look();
	assert_true(program(0)->ordered);
	ask(2, 10 * MIB);
	look();
	assert_false(answered(2));
	leave(0);
	look();
	take(1);
	look();
	assert_true(program(0)->ordered && !answered(2));
}

static void test_guarantee(void **state)
{
	(void)state;
	begin(100 * MIB, 1, 40 * MIB);
	assert_false(room_add(&r, 1, true, 101 * MIB, 0));
	assert_true(room_add(&r, 1, true, 60 * MIB, 0));
	assert_false(room_add(&r, 2, true, 41 * MIB, 0));
	assert_int_equal(room_most(&r, 0), 40 * MIB);
	assert_int_equal(room_most(&r, 1), 100 * MIB);
	claim[1] = (struct room_claim){.live = true, .held = 60 * MIB, .worked_ns = 0};
	look();
	ask(0, MIB);
	look();
	assert_true(answered(0) && !program(0)->yes);
	/* What VMs have found counts, too; the least of it. */
	assert_true(room_add(&r, 2, true, 0, 70 * MIB));
	room_remove(&r, 1);
	assert_false(room_add(&r, 1, true, 71 * MIB, 90 * MIB));
	assert_true(room_add(&r, 1, true, 70 * MIB, 90 * MIB));
	/* Less than is guaranteed already. */
	assert_true(room_add(&r, 3, true, 0, MIB));
	assert_false(room_add(&r, 4, true, 1, 0));
	room_remove(&r, 3);
	room_remove(&r, 2);
	/* Above its guarantee it gives, and no more than that. */
	room_remove(&r, 1);
	assert_true(room_add(&r, 1, true, 59 * MIB, 0));
	look();
	ask(0, 10 * MIB);
	look();
	assert_true(program(1)->ordered);
	assert_int_equal(program(1)->bytes, MIB);
}

/* Who has been idle longest gives, and only what is missing. */
static void test_idle_first(void **state)
{
	(void)state;
	begin(100 * MIB, 4, 24 * MIB);
	wait_ms(100);
	work(1);
	claim[2].worked_ns = now - 60 * MS;
	claim[3].worked_ns = now - 90 * MS;
	ask(0, 10 * MIB);
	look();
	assert_false(answered(0));
	assert_false(program(1)->ordered || program(2)->ordered);
	assert_int_equal(program(3)->bytes, 6 * MIB);
	leave(3);
	wait_ms(1);
	take(0);
	look();
	assert_false(r.waits);
}

/* Busy programs keep their memory for a quantum. */
static void test_quantum(void **state)
{
	(void)state;
	begin(100 * MIB, 2, 50 * MIB);
	ask(0, 10 * MIB);
	look();
	assert_false(program(1)->ordered || answered(0));
	while (!program(1)->ordered) {
		wait_ms(5);
		work(1);
		assert_true(now - program(1)->since_ns < ROOM_QUANTUM_MAX + 10 * MS);
	}
	assert_true(now - program(1)->since_ns > ROOM_QUANTUM);
	leave(1);
	wait_ms(1);
	take(0);
	/* Then it is the other one's quantum. */
	work(0);
	ask(1, 10 * MIB);
	look();
	assert_false(program(0)->ordered || answered(1));
}

/* Two that ask at the same moment do not wait for each other. */
static void test_both_ask(void **state)
{
	unsigned int first;

	(void)state;
	begin(100 * MIB, 2, 50 * MIB);
	ask(0, 30 * MIB);
	ask(1, 30 * MIB);
	look();
	first = program(0)->ordered ? 1 : 0;
	assert_true(program(!first)->ordered);
	leave(!first);
	wait_ms(1);
	take(first);
}

/* A program that does not answer is passed over; the next one gives. */
static void test_silent(void **state)
{
	(void)state;
	begin(100 * MIB, 3, 33 * MIB);
	wait_ms(100);
	claim[1].worked_ns = 0;
	claim[2].worked_ns = now - 50 * MS;
	ask(0, 10 * MIB);
	look();
	assert_true(program(1)->ordered && !program(2)->ordered);
	wait_ms(ROOM_SLOW / MS + 100);
	assert_false(program(1)->ordered);
	assert_true(program(2)->ordered);
	leave(2);
	wait_ms(1);
	take(0);
	/* If nobody else is left, it is waited for, but not for ever. */
	claim[2].fixed = claim[2].held;
	ask(0, 10 * MIB);
	look();
	assert_false(answered(0));
	wait_ms((ROOM_PASS - ROOM_SLOW) / MS);
	assert_true(answered(0) && !program(0)->yes);
}

/* The first program needs room, and the second, which is idle, is told to leave. */
static void order_idle(void)
{
	begin(100 * MIB, 2, 50 * MIB);
	wait_ms(100);
	ask(0, 10 * MIB);
	look();
	assert_true(program(1)->ordered);
}

/* A program on a slow machine answers late. Nobody hears "no" for that. */
static void test_late(void **state)
{
	(void)state;
	order_idle();
	wait_ms(ROOM_SLOW / MS + 100);
	assert_false(program(1)->ordered || answered(0));
	/* It is not told a second time. */
	wait_ms(1000);
	assert_false(program(1)->ordered || answered(0));
	claim[1].held -= program(1)->bytes;
	claim[1].away = claim[1].left = program(1)->bytes;
	claim[1].number = program(1)->number;
	wait_ms(1);
	take(0);
	/* And it gives again when it is asked. */
	wait_ms(ROOM_TURN / MS + 1);
	ask(0, 10 * MIB);
	look();
	assert_true(program(1)->ordered);
}

/* A program whose work does not end is asked again later, and meanwhile another one. */
static void test_busy(void **state)
{
	(void)state;
	order_idle();
	claim[1].number = program(1)->number; /* nothing has left */
	wait_ms(1);
	assert_false(program(1)->ordered || answered(0));
	wait_ms(ROOM_BUSY / MS + 1);
	assert_true(program(1)->ordered);
	leave(1);
	wait_ms(1);
	take(0);
}

/* Where the size is not known: who claims to have given, and has not, comes last the next time. */
static void test_no_effect(void **state)
{
	(void)state;
	begin(0, 3, 50 * MIB);
	wait_ms(200);
	claim[1].worked_ns = 0;
	claim[2].worked_ns = now - 100 * MS;
	ask(0, 10 * MIB);
	look();
	assert_true(program(1)->ordered && !program(2)->ordered);
	claim[1].left = program(1)->bytes;
	claim[1].number = program(1)->number;
	wait_ms(1);
	assert_true(answered(0) && program(0)->yes);
	ask(0, 10 * MIB);
	look();
	assert_true(program(2)->ordered && !program(1)->ordered);
}

/* Random claims of programs of which most lie: nothing is granted twice, and all get an answer. */
static void test_random(void **state)
{
	unsigned int i, k, seed = 45;
	uint64_t sum;

	(void)state;
	begin(1000 * MIB, 20, 0);
	for (k = 0; k < ROUNDS(20000); k++) {
		i = (unsigned int)rand_r(&seed) % 20;
		if (i < 10) { /* honest */
			if (claim[i].need && answered(i) && program(i)->yes)
				take(i);
			else if (claim[i].need && answered(i))
				claim[i].need = 0;
			else if (program(i)->ordered && claim[i].number != program(i)->number)
				leave(i);
			else if (claim[i].held && rand_r(&seed) % 4 == 0)
				claim[i].held = 0;
			else if (!claim[i].need)
				ask(i, (uint64_t)(rand_r(&seed) % 300) * MIB + 1);
			work(i);
		} else {
			claim[i].held = 0;
			claim[i].fixed = (uint64_t)rand_r(&seed) << 33;
			claim[i].need = rand_r(&seed) % 2 ? UINT64_MAX : 0;
			claim[i].left = (uint64_t)rand_r(&seed) << 33;
			claim[i].worked_ns = (uint64_t)rand_r(&seed) << 33;
			claim[i].ask = (uint32_t)rand_r(&seed);
			claim[i].number = rand_r(&seed) % 2 ? program(i)->number : 0;
			claim[i].live = rand_r(&seed) % 8;
		}
		wait_ms((uint64_t)(rand_r(&seed) % 40));
		sum = 0;
		for (i = 0; i < 10; i++)
			sum += claim[i].held;
		assert_true(sum <= 1000 * MIB);
		for (i = 0; i < 10; i++)
			assert_true(!program(i)->asks || now - program(i)->asked_ns < 60000 * MS);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing_to_give),
		cmocka_unit_test(test_ordered_for_another),
		cmocka_unit_test(test_guarantee),
		cmocka_unit_test(test_idle_first),
		cmocka_unit_test(test_quantum),
		cmocka_unit_test(test_both_ask),
		cmocka_unit_test(test_silent),
		cmocka_unit_test(test_late),
		cmocka_unit_test(test_busy),
		cmocka_unit_test(test_no_effect),
		cmocka_unit_test(test_random),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
