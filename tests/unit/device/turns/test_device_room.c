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
		claim[i].told_store = program(i)->store;
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
	claim[vm].back = false;
	claim[vm].ask = program(vm)->answer + 1;
	claim[vm].worked_ns = now;
}

static void ask_back(unsigned int vm)
{
	ask(vm, claim[vm].away);
	claim[vm].back = true;
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

/* What was away is on the GPU again. */
static void take_back(unsigned int vm)
{
	take(vm);
	claim[vm].away = 0;
}

static void wait_ms(uint64_t ms)
{
	now += ms * MS;
	look();
}

/* Memory of one program leaves for what the other one asks for. */
static void take_from(unsigned int from, unsigned int to, uint64_t bytes)
{
	ask(to, bytes);
	look();
	leave(from);
	wait_ms(1);
	take(to);
}

static void work(unsigned int vm)
{
	claim[vm].worked_ns = now;
}

/* VM 1 has been granted all that was free, and VM 0 asks for more. */
static void ask_beside_a_grant(void)
{
	begin(100 * MIB, 2, 50 * MIB);
	claim[1].held = 0;
	ask(1, 50 * MIB);
	look();
	assert_true(answered(1) && program(1)->yes);
	ask(0, 10 * MIB);
	look();
	assert_false(answered(0));
}

/* What has just been granted may leave in a moment. Nobody waits long for who does not take it. */
static void test_granted(void **state)
{
	(void)state;
	ask_beside_a_grant();
	take(1);
	wait_ms(1000);
	leave(1);
	wait_ms(1);
	take(0);
	ask_beside_a_grant();
	wait_ms(ROOM_SLOW / MS);
	assert_true(answered(0) && !program(0)->yes);
}

/* For tests memory leaves without need, in turn all and half of it, but not that of who asks. */
static void test_evict(void **state)
{
	(void)state;
	begin(100 * MIB, 2, 30 * MIB);
	assert_false(r.waits || program(0)->ordered);
	r.evict_ns = 10 * MS;
	claim[0].fixed = 10 * MIB;
	wait_ms(10);
	assert_true(r.waits && program(0)->bytes == 10 * MIB && program(1)->bytes == 15 * MIB);
	leave(0);
	ask(1, 10 * MIB);
	wait_ms(5);
	assert_true(answered(1) && !program(0)->ordered && r.evicted == 10 * MIB);
	take(1);
	leave(1);
	wait_ms(4);
	assert_false(program(0)->ordered || program(1)->ordered);
	ask(1, 80 * MIB);
	wait_ms(1);
	assert_true(program(0)->ordered && program(0)->bytes == 10 * MIB && !program(1)->ordered);
	assert_true(r.evicted == 25 * MIB && r.waits);
}

/* A VM's store for another GPU: it has what is free and nobody waits for, and never gives. */
static void test_lent(void **state)
{
	(void)state;
	begin(100 * MIB, 3, 30 * MIB);
	room_stays(&r, 0);
	wait_ms(1000);
	ask(0, 11 * MIB);
	claim[0].now = true;
	look();
	assert_true(answered(0) && !program(0)->yes);
	assert_false(program(1)->ordered || program(2)->ordered);
	ask(0, 10 * MIB);
	look();
	take(0);
	assert_int_equal(claim[0].held, 40 * MIB);
	/* However idle it is, others give; and if they cannot, nobody does. */
	wait_ms(1000);
	ask(1, 30 * MIB);
	look();
	assert_true(program(2)->ordered && !program(0)->ordered);
	/* Half of it has left, and an older request waits for it. */
	claim[2].held -= 15 * MIB;
	claim[2].away += 15 * MIB;
	ask(0, 1 * MIB);
	look();
	assert_true(answered(0) && !program(0)->yes);
	claim[2].held += 15 * MIB;
	leave(2);
	claim[2].away -= 15 * MIB;
	wait_ms(1);
	take(1);
	wait_ms(1000);
	ask(2, 80 * MIB);
	wait_ms(1);
	assert_false(program(0)->ordered);
	claim[0].now = false;
}

/* What it may have is not there for what others are guaranteed. */
static void test_lent_counts(void **state)
{
	uint64_t all;

	(void)state;
	room_init(&r, 100 * MIB);
	assert_true(room_add(&r, 0, true, 60 * MIB, 0));
	assert_false(room_add(&r, 1, true, 41 * MIB, 0));
	assert_true(room_add(&r, 1, true, 40 * MIB, 0));
	room_stays(&r, 1);
	assert_int_equal(room_left(&r, 0, &all), 0);
	assert_int_equal(room_most(&r, 0), 60 * MIB);
	/* Its place is another VM's after it. */
	room_remove(&r, 1);
	assert_true(room_add(&r, 1, true, 0, 0));
	assert_false(r.vm[1].stays);
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

static uint64_t count_stores(void)
{
	uint64_t sum = 0;
	unsigned int i;

	for (i = 0; i < r.top; i++)
		sum += program(i)->live ? program(i)->store : 0;
	return sum;
}

/* New memory lets no more than half of the bound be filled; the other half is for what comes back.
 */
static void test_stores(void **state)
{
	(void)state;
	begin(100 * MIB, 2, 50 * MIB);
	room_bound(&r, 0, 0, 104 * MIB);
	room_bound(&r, 1, 0, 44 * MIB); /* the least counts: 20 and 20, and two parts */
	assert_int_equal(room_stores(&r), 44 * MIB);
	wait_ms(1000);
	ask(0, 20 * MIB + 1);
	look();
	assert_true(answered(0) && !program(0)->yes && !program(1)->ordered);
	/* It is refused whatever the program says about it. */
	ask(0, 20 * MIB + 1);
	claim[0].back = true;
	claim[0].away = UINT64_MAX;
	look();
	assert_true(answered(0) && !program(0)->yes && !program(1)->ordered);
	claim[0].away = 0;
	ask(0, 20 * MIB);
	look();
	assert_int_equal(program(1)->bytes, 20 * MIB);
	assert_int_equal(count_stores(), 20 * MIB + ROOM_PART_SOFT);
	leave(1);
	wait_ms(1);
	take(0);
	wait_ms(1000);
	assert_int_equal(count_stores(), 20 * MIB);
	/* Now not a byte more, until it is free again. */
	ask(0, 1);
	look();
	assert_true(answered(0) && !program(0)->yes);
	/* What is away comes back. While it is on its way, nothing else grows for it. */
	ask_back(1);
	look();
	assert_int_equal(program(0)->bytes, 20 * MIB);
	leave(0);
	ask(0, 1);
	wait_ms(1);
	assert_true(answered(1) && program(1)->yes && answered(0) && !program(0)->yes);
	claim[0].need = 0;
	take_back(1);
	wait_ms(1);
	assert_int_equal(count_stores(), 20 * MIB);
}

/* Room that is free is owed to what is away. */
static void test_stores_owed(void **state)
{
	(void)state;
	begin(100 * MIB, 3, 0);
	room_bound(&r, 0, 0, 44 * MIB);
	claim[0].held = 100 * MIB;
	wait_ms(1000);
	take_from(0, 1, 20 * MIB);
	claim[1].held -= 5 * MIB; /* it frees some */
	look();
	ask(2, 5 * MIB + 1);
	look();
	assert_true(answered(2) && !program(2)->yes);
	ask(2, 5 * MIB);
	look();
	take(2);
	look();
	ask_back(0);
	while (!answered(0)) {
		wait_ms(1000);
		if (program(1)->ordered && claim[1].number != program(1)->number)
			leave(1);
		if (program(2)->ordered && claim[2].number != program(2)->number)
			leave(2);
		assert_true(count_stores() <= 44 * MIB);
	}
	take_back(0);
}

/* What a store keeps after its memory is back counts, for a moment. */
static void test_stores_kept(void **state)
{
	(void)state;
	begin(100 * MIB, 2, 50 * MIB);
	room_bound(&r, 0, 0, 44 * MIB);
	wait_ms(1000);
	take_from(1, 0, 20 * MIB);
	wait_ms(1000);
	ask_back(1);
	look();
	leave(0);
	wait_ms(1);
	take_back(1);
	claim[1].kept = 20 * MIB;
	wait_ms(1000);
	assert_int_equal(count_stores(), 40 * MIB);
	ask_back(0);
	look();
	assert_false(program(1)->ordered || answered(0));
	claim[1].kept = 0;
	wait_ms(1);
	assert_int_equal(program(1)->bytes, 20 * MIB);
	leave(1);
	wait_ms(1);
	take_back(0);
	/* A claim does not make it more. */
	claim[1].kept = claim[1].away = UINT64_MAX;
	look();
	assert_int_equal(count_stores(), 20 * MIB);
}

/* A VM counts for no more than its own bound, and gets no order beyond it. */
static void test_stores_vm(void **state)
{
	(void)state;
	begin(100 * MIB, 3, 33 * MIB);
	room_bound(&r, 0, 0, 44 * MIB);
	room_bound(&r, 1, 8 * MIB, 0);
	claim[2].fixed = claim[2].held;
	wait_ms(1000);
	ask(0, 21 * MIB);
	look();
	assert_int_equal(program(1)->bytes, 8 * MIB);
	/* It says that this has left, and it has not: it counts, and others have the rest. */
	claim[1].away = claim[1].left = 8 * MIB;
	claim[1].number = program(1)->number;
	wait_ms(1);
	assert_true(answered(0) && !program(0)->yes);
	claim[2].fixed = 0;
	ask(0, 12 * MIB);
	look();
	assert_int_equal(program(2)->bytes, 11 * MIB);
	leave(2);
	wait_ms(1);
	take(0);
}

/* Who was told that memory may leave is believed by the next broker. */
static void test_stores_restart(void **state)
{
	uint64_t store;

	(void)state;
	begin(100 * MIB, 2, 50 * MIB);
	room_bound(&r, 0, 0, 44 * MIB);
	wait_ms(1000);
	ask(0, 20 * MIB);
	look();
	store = program(1)->store;
	claim[1].told = program(1)->number;
	claim[0].need = 0;
	begin(100 * MIB, 2, 40 * MIB);
	room_bound(&r, 0, 0, 44 * MIB);
	memset(program(1), 0, sizeof(*program(1)));
	claim[1].told_store = store;
	claim[1].told = 7;
	claim[1].number = 6; /* the order is still under way */
	room_claim(&r, now, 1, S, &claim[1]);
	assert_int_equal(count_stores(), store);
	claim[1].held -= 20 * MIB;
	claim[1].away = 20 * MIB;
	claim[1].number = 7;
	look();
	assert_int_equal(count_stores(), 20 * MIB);
	ask_back(1);
	look();
	take_back(1);
}

/* Who has been granted room gives nothing before what was away is back. */
static void test_stores_granted(void **state)
{
	(void)state;
	begin(100 * MIB, 2, 50 * MIB);
	room_bound(&r, 0, 0, 44 * MIB);
	wait_ms(1000);
	take_from(1, 0, 10 * MIB);
	claim[0].held -= 10 * MIB;
	wait_ms(1000);
	ask_back(1);
	look();
	assert_true(answered(1) && program(1)->yes);
	claim[1].held += claim[1].need; /* granted, and still away */
	claim[1].need = 0;
	ask(0, 5 * MIB);
	look();
	assert_false(answered(0) || program(1)->ordered);
	/* It lacks a little. The older request does not keep that from it. */
	claim[1].held -= MIB;
	look();
	claim[1].need = MIB;
	claim[1].ask = program(1)->answer + 1;
	claim[1].back = true;
	look();
	assert_false(answered(0));
	take_back(1);
}

/* If the bound becomes less than is away, all comes back, one at a time. */
static void test_stores_less(void **state)
{
	(void)state;
	begin(100 * MIB, 2, 50 * MIB);
	room_bound(&r, 0, 0, 104 * MIB);
	wait_ms(1000);
	take_from(1, 0, 40 * MIB);
	room_bound(&r, 1, 0, 10 * MIB);
	wait_ms(1000);
	ask(0, 1);
	look();
	assert_true(answered(0) && !program(0)->yes);
	ask_back(1);
	look();
	assert_false(program(0)->ordered);
	wait_ms(ROOM_SLOW / MS + 1);
	claim[1].ask++; /* it has been refused, and asks again */
	look();
	assert_int_equal(program(0)->bytes, 40 * MIB);
	leave(0);
	wait_ms(1);
	take_back(1);
}

/* Where the size is not known, a request is for what is missing. */
static void test_stores_real(void **state)
{
	(void)state;
	begin(0, 2, 50ull << 30);
	room_bound(&r, 0, 0, 42ull << 30);
	wait_ms(1000);
	ask(0, (20ull << 30) + 1);
	look();
	assert_true(answered(0) && !program(0)->yes);
	ask(0, 20ull << 30);
	look();
	assert_true(program(1)->bytes == 20ull << 30);
	leave(1);
	claim[1].away += (1ull << 30) - 1; /* a part may be larger than what is missing */
	wait_ms(1);
	take(0);
	wait_ms(1000);
	assert_true(count_stores() == (21ull << 30) - 1);
	ask_back(1);
	look();
	assert_true(program(0)->bytes == 20ull << 30);
	leave(0);
	wait_ms(1);
	take_back(1);
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

/*
 * Honest programs with random sizes, which together want more than there is, and a bound: the
 * stores never have more, and all that has left comes back soon.
 */
static void test_stores_random(void **state)
{
	uint64_t since[8] = {0}, sum, bound = 300 * MIB;
	unsigned int i, k, seed = 46, granted = 0, refused = 0;

	(void)state;
	begin(500 * MIB, 8, 0);
	room_bound(&r, 0, 0, bound);
	for (k = 0; k < ROUNDS(40000); k++) {
		i = (unsigned int)rand_r(&seed) % 8;
		if (program(i)->ordered && claim[i].number != program(i)->number) {
			leave(i);
			/* Sometimes a part more, or what it must keep. */
			if (rand_r(&seed) % 4 == 0 && claim[i].held > MIB) {
				claim[i].held -= MIB;
				claim[i].away += MIB;
			}
		} else if (claim[i].need && answered(i)) {
			granted += program(i)->yes;
			refused += !program(i)->yes && !claim[i].back;
			if (!program(i)->yes)
				claim[i].need = 0;
			else if (claim[i].back)
				take_back(i);
			else
				take(i);
		} else if (!claim[i].need && claim[i].away) {
			ask_back(i);
		} else if (!claim[i].need && rand_r(&seed) % 3) {
			ask(i, (uint64_t)(rand_r(&seed) % 60) * MIB + 1);
		} else if (!claim[i].need) {
			claim[i].held -= (uint64_t)rand_r(&seed) % (claim[i].held + 1);
		}
		work(i);
		wait_ms((uint64_t)(rand_r(&seed) % 40));
		sum = 0;
		for (i = 0; i < 8; i++)
			sum += claim[i].held;
		assert_true(sum <= 500 * MIB);
		assert_true(count_stores() <= bound);
		for (i = 0; i < 8; i++) {
			if (!claim[i].away)
				since[i] = now;
			assert_true(now - since[i] < 60000 * MS);
		}
	}
	assert_true(granted > k / 20 && refused > k / 400);
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
		cmocka_unit_test(test_granted),
		cmocka_unit_test(test_evict),
		cmocka_unit_test(test_lent),
		cmocka_unit_test(test_lent_counts),
		cmocka_unit_test(test_stores),
		cmocka_unit_test(test_stores_owed),
		cmocka_unit_test(test_stores_kept),
		cmocka_unit_test(test_stores_vm),
		cmocka_unit_test(test_stores_restart),
		cmocka_unit_test(test_stores_granted),
		cmocka_unit_test(test_stores_less),
		cmocka_unit_test(test_stores_real),
		cmocka_unit_test(test_random),
		cmocka_unit_test(test_stores_random),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
