// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The virtqueue, from the device's side: chains that break the rules, notifications, and a worker
 * that is killed. The worker is killed at every single instruction of a short run, and at random in
 * long runs. Each chain must come back exactly once.
 */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "qcu-device/memory/ring.h"
#include "tests/unit/device/host/test_device_driver.h"

#define RAM  0x10000ull
#define GPA  0x80000000ull
#define GPA2 0x90000000ull /* the last page again, at another address */
#define DATA (GPA + 0x8000)

static uint8_t *ram;
static struct guestmem mem;
static struct ring_state *state_page;
static struct driver_queue q;
static struct ring ring;
static struct ring_chain chain;
static const char *why;

static void *shared(size_t len)
{
	return mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
}

static int make_ram(void **state)
{
	(void)state;
	ram = shared(RAM);
	state_page = shared(sizeof(*state_page));
	return ram == MAP_FAILED || state_page == MAP_FAILED || guestmem_add(&mem, GPA, RAM, ram) ||
	       guestmem_add(&mem, GPA2, 0x1000, ram + RAM - 0x1000);
}

static int fresh(void **state)
{
	(void)state;
	driver_init(&q, ram);
	ring = (struct ring){
		.num = DRIVER_NUM,
		.event_idx = true,
		.desc = q.desc,
		.avail = q.avail,
		.used = q.used,
		.mem = &mem,
		.state = state_page,
	};
	ring_start(&ring, 0);
	why = NULL;
	return 0;
}

static const struct vring_desc pair[] = {
	{.addr = DATA, .len = 64},
	{.addr = DATA + 64, .len = 64, .flags = VRING_DESC_F_WRITE},
};

static void add_pair(void)
{
	driver_add(&q, pair, 2);
}

static void good_chain(void **state)
{
	const struct vring_desc parts[] = {
		{.addr = DATA, .len = 10},
		{.addr = GPA + RAM - 3, .len = 3},
		{.addr = GPA2, .len = 0x1000, .flags = VRING_DESC_F_WRITE},
	};
	uint8_t bytes[8];

	(void)state;
	memcpy(ram + 0x8000, "0123456789", 10);
	memcpy(ram + RAM - 3, "abc", 3);
	assert_int_equal(ring_pop(&ring, &chain, &why), 0);
	driver_add(&q, parts, 3);
	assert_int_equal(ring_pop(&ring, &chain, &why), 1);
	assert_int_equal(chain.out_num, 2);
	assert_int_equal(chain.in_num, 1);
	assert_int_equal(chain.out_len, 13);
	assert_int_equal(chain.in_len, 0x1000);
	assert_true(ring_copy_out(chain.iov, chain.out_num, 7, bytes, 6));
	assert_memory_equal(bytes, "789abc", 6);
	assert_false(ring_copy_out(chain.iov, chain.out_num, 8, bytes, 6));
	assert_true(ring_copy_in(chain.iov + 2, 1, "xyz", 3));
	assert_memory_equal(ram + RAM - 0x1000, "xyz", 3);
	ring_push(&ring, chain.head, 3);
	assert_int_equal(driver_take(&q), 1);
	assert_int_equal(q.len[0], 3);
	assert_int_equal(ring_pop(&ring, &chain, &why), 0);
}

static void bad_chain(const struct vring_desc *parts, unsigned int n)
{
	unsigned int slot = driver_add(&q, parts, n);

	why = NULL;
	assert_int_equal(ring_pop(&ring, &chain, &why), -EPROTO);
	assert_non_null(why);
	assert_int_equal(chain.head, slot * DRIVER_PARTS);
	ring_push(&ring, chain.head, 0);
	assert_int_equal(driver_take(&q), 1);
}

static void bad_chains(void **state)
{
	static const struct vring_desc single[] = {
		{.addr = DATA, .len = 0},
		{.addr = 0, .len = 1},
		{.addr = GPA - 1, .len = 2},
		{.addr = GPA + RAM - 1, .len = 2},
		{.addr = GPA, .len = UINT32_MAX},
		{.addr = UINT64_MAX, .len = 2},
		{.addr = DATA, .len = 16, .flags = VRING_DESC_F_NEXT, .next = DRIVER_NUM},
		{.addr = DATA, .len = 16, .flags = VRING_DESC_F_NEXT, .next = 0},
		{.addr = DATA, .len = 16, .flags = VRING_DESC_F_NEXT, .next = 0xffff},
		{.addr = DATA, .len = 0, .flags = VRING_DESC_F_INDIRECT},
		{.addr = DATA, .len = 15, .flags = VRING_DESC_F_INDIRECT},
		{.addr = DATA, .len = 17, .flags = VRING_DESC_F_INDIRECT},
		{.addr = 0, .len = 16, .flags = VRING_DESC_F_INDIRECT},
		{.addr = GPA + RAM - 16, .len = 32, .flags = VRING_DESC_F_INDIRECT},
		{.addr = GPA, .len = 16 * (RING_CHAIN_MAX + 1), .flags = VRING_DESC_F_INDIRECT},
		{.addr = DATA, .len = 16, .flags = VRING_DESC_F_INDIRECT | VRING_DESC_F_NEXT},
	};
	const struct vring_desc wrong_order[] = {
		{.addr = DATA, .len = 1, .flags = VRING_DESC_F_WRITE},
		{.addr = DATA, .len = 1},
	};
	struct vring_desc *table = (void *)(ram + 0x8000);
	const struct vring_desc indirect = {
		.addr = DATA, .len = 32, .flags = VRING_DESC_F_INDIRECT};
	size_t i;

	(void)state;
	memset(table, 0, 0x1000);
	for (i = 0; i < sizeof(single) / sizeof(single[0]); i++)
		bad_chain(&single[i], 1);
	bad_chain(wrong_order, 2);
	table[0] = (struct vring_desc){.addr = DATA, .len = 16, .flags = VRING_DESC_F_INDIRECT};
	bad_chain(&indirect, 1);
	table[0] = (struct vring_desc){.addr = DATA, .len = 1, .flags = VRING_DESC_F_NEXT};
	bad_chain(&indirect, 1);
	table[0].next = 1;
	table[1] =
		(struct vring_desc){.addr = DATA, .len = 1, .flags = VRING_DESC_F_NEXT, .next = 2};
	bad_chain(&indirect, 1);
}

/* If the queue itself is unusable, no chain is taken, and draining still ends. */
static void bad_queue(void **state)
{
	(void)state;
	q.avail->idx = DRIVER_NUM + 1;
	assert_int_equal(ring_pop(&ring, &chain, &why), -EPROTO);
	assert_int_equal(chain.head, RING_NO_HEAD);
	ring_drain(&ring);
	assert_int_equal(driver_take(&q), 0);
	assert_int_equal(ring_pop(&ring, &chain, &why), 0);

	fresh(NULL);
	q.avail->ring[0] = DRIVER_NUM;
	q.avail->idx = 1;
	assert_int_equal(ring_pop(&ring, &chain, &why), -EPROTO);
	assert_int_equal(chain.head, RING_NO_HEAD);
	assert_int_equal(ring_drain(&ring), 1);
	assert_int_equal(ring_pop(&ring, &chain, &why), 0);

	fresh(NULL);
	add_pair();
	assert_int_equal(ring_pop(&ring, &chain, &why), 1);
	q.avail->ring[1] = 0;
	q.avail->idx = 2;
	assert_int_equal(ring_pop(&ring, &chain, &why), -EPROTO);
	assert_int_equal(chain.head, RING_NO_HEAD);
	assert_int_equal(ring_take_over(&ring), 1);
	assert_int_equal(driver_take(&q), 1);
}

static void notifications(void **state)
{
	uint16_t *used_event = &q.avail->ring[DRIVER_NUM];
	uint16_t *avail_event = (uint16_t *)&q.used->ring[DRIVER_NUM];

	(void)state;
	assert_true(ring_kicks_on(&ring));
	add_pair();
	assert_int_equal(*avail_event, 0);
	assert_false(ring_kicks_on(&ring));
	assert_int_equal(ring_pop(&ring, &chain, &why), 1);
	assert_true(ring_kicks_on(&ring));
	assert_int_equal(*avail_event, 1);
	ring_push(&ring, chain.head, 64);
	assert_true(ring_wants_call(&ring)); /* the first call is always needed */
	*used_event = 2;
	add_pair();
	add_pair();
	assert_int_equal(ring_pop(&ring, &chain, &why), 1);
	ring_push(&ring, chain.head, 64);
	assert_false(ring_wants_call(&ring));
	assert_int_equal(ring_pop(&ring, &chain, &why), 1);
	ring_push(&ring, chain.head, 64);
	assert_true(ring_wants_call(&ring));

	ring.event_idx = false;
	q.avail->flags = VRING_AVAIL_F_NO_INTERRUPT;
	assert_false(ring_wants_call(&ring));
	q.avail->flags = 0;
	assert_true(ring_wants_call(&ring));
	ring_kicks_off(&ring);
	assert_int_equal(q.used->flags, VRING_USED_F_NO_NOTIFY);
	assert_true(ring_kicks_on(&ring));
	assert_int_equal(q.used->flags, 0);
}

static void clean(void)
{
	unsigned int i;

	assert_int_equal(state_page->push, 0);
	assert_int_equal((uint16_t)state_page->popped, q.added);
	assert_int_equal((uint16_t)state_page->pushed, q.added);
	for (i = 0; i < RING_MAX; i++)
		assert_int_equal(state_page->inflight[i], 0);
	assert_int_equal(driver_outstanding(&q), 0);
}

/*
 * Passes n chains through the ring. Returns how often ring_wants_call() says yes, for this event
 * index of the guest.
 */
static unsigned int calls(uint16_t used_event, unsigned int n)
{
	unsigned int yes = 0;

	while (n--) {
		q.avail->ring[DRIVER_NUM] = used_event;
		add_pair();
		assert_int_equal(ring_pop(&ring, &chain, &why), 1);
		ring_push(&ring, chain.head, 64);
		yes += ring_wants_call(&ring);
		assert_int_equal(driver_take(&q), 1);
	}
	return yes;
}

/* An event index is only a wish: a wrong one costs the guest interrupts, or saves some. */
static void events_that_lie(void **state)
{
	static const uint16_t wish[] = {0, 1, 7, 0x7fff, 0x8000, 0xfffe, 0xffff};
	unsigned int i;

	(void)state;
	assert_int_equal(calls(0, 1), 1);
	for (i = 0; i < sizeof(wish) / sizeof(wish[0]); i++)
		assert_true(calls(wish[i], 300) <= 1);
	/*
	 * An index that never moves is reached once in 0x10000 chains, also when the numbers wrap.
	 */
	assert_int_equal(calls(5, 0x10000), 1);
	clean();
}

/* The device does not read back what only the device writes. It checks what the guest writes. */
static void indices_that_lie(void **state)
{
	static const uint16_t jump[] = {0xffff, DRIVER_NUM + 1, 0x8000, 0x1234};
	static const uint16_t lie[] = {0xffff, 2, 0x4000};
	uint16_t *event = (uint16_t *)&q.used->ring[DRIVER_NUM];
	unsigned int i, n;

	(void)state;
	assert_false(ring_has_work(&ring));
	for (i = 0; i < 100; i++) {
		uint16_t head;

		add_pair();
		assert_true(ring_has_work(&ring));
		q.used->idx = (uint16_t)(i * 40503u);
		q.used->flags = 0xffff;
		*event = (uint16_t)(i * 2654435761u);
		assert_int_equal(ring_pop(&ring, &chain, &why), 1);
		head = chain.head;
		assert_false(ring_has_work(&ring));
		assert_int_equal(ring_pop(&ring, &chain, &why), 0);
		ring_push(&ring, head, 64);
		assert_int_equal(driver_take(&q), 1);
		assert_true(ring_kicks_on(&ring));
		assert_int_equal(*event, q.added);
	}
	clean();

	/* The index goes back, or far ahead, also after the device has asked for kicks. */
	for (i = 0; i < sizeof(jump) / sizeof(jump[0]); i++) {
		fresh(NULL);
		assert_true(ring_kicks_on(&ring));
		q.avail->idx = jump[i];
		assert_true(ring_has_work(&ring));
		assert_false(ring_kicks_on(&ring));
		assert_int_equal(ring_pop(&ring, &chain, &why), -EPROTO);
		assert_int_equal(chain.head, RING_NO_HEAD);
		q.avail->idx = 0;
		assert_false(ring_has_work(&ring));
		assert_int_equal(ring_pop(&ring, &chain, &why), 0);
	}

	/* A take-over does not ask the guest either what has been given back. */
	for (i = 0; i < sizeof(lie) / sizeof(lie[0]); i++) {
		fresh(NULL);
		for (n = 0; n < 3; n++) {
			add_pair();
			assert_int_equal(ring_pop(&ring, &chain, &why), 1);
		}
		q.used->idx = lie[i];
		assert_int_equal(ring_take_over(&ring), 3);
		assert_int_equal(ring_take_over(&ring), 0);
		assert_int_equal(q.used->idx, 3);
		for (n = 0; n < RING_MAX; n++)
			assert_int_equal(state_page->inflight[n], 0);
	}

	ring.num = 0;
	assert_false(ring_has_work(&ring));
	assert_true(ring_kicks_on(&ring));
	assert_int_equal(ring_pop(&ring, &chain, &why), 0);
}

/* Takes three chains and gives them back in another order. */
static void __attribute__((noreturn)) short_run(void)
{
	uint16_t head[3];
	unsigned int i;

	ptrace(PTRACE_TRACEME, 0, NULL, NULL);
	raise(SIGSTOP);
	for (i = 0; i < 3; i++) {
		if (ring_pop(&ring, &chain, &why) != 1)
			_exit(1);
		head[i] = chain.head;
		if (i == 1)
			ring_push(&ring, head[1], 64);
	}
	ring_push(&ring, head[2], 64);
	ring_push(&ring, head[0], 64);
	_exit(0);
}

static bool may_trace(void)
{
	pid_t pid = fork();
	int status;

	if (!pid)
		_exit(ptrace(PTRACE_TRACEME, 0, NULL, NULL) ? 1 : 0);
	return waitpid(pid, &status, 0) == pid && WIFEXITED(status) && !WEXITSTATUS(status);
}

/* All memory that the worker shares. */
struct shot {
	uint8_t ram[DRIVER_BYTES];
	struct ring_state state;
	struct driver_queue q;
};

static void save(struct shot *s)
{
	memcpy(s->ram, ram, sizeof(s->ram));
	memcpy(&s->state, state_page, sizeof(s->state));
	s->q = q;
}

static void restore(const struct shot *s)
{
	memcpy(ram, s->ram, sizeof(s->ram));
	memcpy(state_page, &s->state, sizeof(s->state));
	q = s->q;
}

/*
 * Continues as if the worker had died now. Returns how many of the three chains it has answered.
 * `quick`: before the take-over, the guest takes the chains that it was told of, and uses their
 * slots again.
 */
static unsigned int dead_now(bool quick)
{
	unsigned int answered = 0, again = 0, n = 0, i;

	if (quick)
		n = driver_take(&q);
	for (i = 0; i < 3; i++) {
		if (!q.out[i] && n) {
			answered++;
			again++;
			q.len[i] = 0;
		}
	}
	for (i = 0; i < again; i++)
		add_pair();
	ring_take_over(&ring);
	ring_drain(&ring);
	n += driver_take(&q);
	assert_int_equal(n, 3 + again);
	for (i = 0; i < 3; i++)
		answered += q.len[i] == 64;
	clean();
	/* The queue still works. */
	add_pair();
	assert_int_equal(ring_pop(&ring, &chain, &why), 1);
	ring_push(&ring, chain.head, 64);
	assert_int_equal(driver_take(&q), 1);
	clean();
	return answered;
}

/*
 * One worker runs step by step. After each instruction, the memory that it shares is what a kill at
 * this moment would leave. The test takes the queue over, checks it, and restores the memory.
 */
static void killed_at_every_instruction(void **state)
{
	unsigned int steps = 0, i, times[4] = {0};
	static struct shot shot;
	int status;
	pid_t pid;

	(void)state;
	if (!may_trace()) {
		print_message("skipped: this machine does not let a process be traced\n");
		skip();
	}
	for (i = 0; i < 3; i++)
		add_pair();
	pid = fork();
	if (!pid)
		short_run();
	assert_true(pid > 0);
	while (waitpid(pid, &status, 0) == pid && WIFSTOPPED(status)) {
		save(&shot);
		i = dead_now(false);
		restore(&shot);
		assert_int_equal(dead_now(true), i);
		restore(&shot);
		times[i]++;
		steps++;
		assert_int_equal(ptrace(PTRACE_SINGLESTEP, pid, NULL, NULL), 0);
	}
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	print_message("%u instructions; 0, 1, 2, 3 answers at %u, %u, %u, %u of them\n", steps,
		      times[0], times[1], times[2], times[3]);
	for (i = 0; i < 4; i++)
		assert_true(times[i]);
}

/* Takes and gives back chains for ever, a few at a time and out of order. */
static void __attribute__((noreturn)) long_run(unsigned int seed)
{
	uint16_t held[4];
	unsigned int n = 0;

	for (;;) {
		seed = seed * 1103515245 + 12345;
		if (n < 4 && (seed >> 16 & 1) && ring_pop(&ring, &chain, &why) == 1)
			held[n++] = chain.head;
		if (n && (seed >> 17 & 1)) {
			unsigned int i = (seed >> 18) % n;

			ring_push(&ring, held[i], 64);
			held[i] = held[--n];
		}
	}
}

static void killed_at_random(void **state)
{
	unsigned int round, seed = 1, answered = 0, returned = 0, i;

	(void)state;
	/* On a busy machine a child may be killed before it runs; then more rounds are needed. */
	for (round = 0; round < 300 || (answered <= 1000 && round < 6000); round++) {
		struct timespec now, end;
		pid_t pid = fork();

		if (!pid)
			long_run(round);
		assert_true(pid > 0);
		clock_gettime(CLOCK_MONOTONIC, &end);
		seed = seed * 1103515245 + 12345;
		end.tv_nsec += 200000 + (seed >> 16) % 3000 * 1000;
		do {
			int n = driver_take(&q);

			assert_true(n >= 0);
			answered += n;
			while (driver_outstanding(&q) < DRIVER_SLOTS)
				add_pair();
			clock_gettime(CLOCK_MONOTONIC, &now);
		} while (now.tv_sec * 1000000000ll + now.tv_nsec <
			 end.tv_sec * 1000000000ll + end.tv_nsec);
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		ring_take_over(&ring);
		ring_drain(&ring);
		assert_true(driver_take(&q) >= 0);
		for (i = 0; i < DRIVER_SLOTS; i++)
			returned += !q.len[i];
		clean();
	}
	print_message("%u chains answered, %u returned after a kill\n", answered, returned);
	assert_true(answered > 1000 && returned > 100);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(good_chain, fresh),
		cmocka_unit_test_setup(bad_chains, fresh),
		cmocka_unit_test_setup(bad_queue, fresh),
		cmocka_unit_test_setup(notifications, fresh),
		cmocka_unit_test_setup(events_that_lie, fresh),
		cmocka_unit_test_setup(indices_that_lie, fresh),
		cmocka_unit_test_setup(killed_at_every_instruction, fresh),
		cmocka_unit_test_setup(killed_at_random, fresh),
	};

	return cmocka_run_group_tests(tests, make_ram, NULL);
}
