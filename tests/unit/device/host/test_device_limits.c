// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The table of limits: text that means nothing, and text that is valid. The counts that the mirrors
 * of a VM share: limits of a session and of the VM, mirrors that die while they hold something, and
 * many mirrors that take the last unit at the same time.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "qcu-device/base/usage.h"

static void bad_text(void **state)
{
	static const char *const bad[][2] = {
		{"", "NAME=VALUE is wanted"},
		{"streams", "NAME=VALUE is wanted"},
		{"=5", "NAME=VALUE is wanted"},
		{"stream=5", "device-memory, library-memory, allocations, reserved, mapped"},
		{"streams ==5", "NAME=VALUE is wanted"},
		{"vm-=5", "NAME=VALUE is wanted"},
		{"vm-vm-streams=5", "NAME=VALUE is wanted"},
		{"streams=", "a number from 1 on is wanted, or none"},
		{"streams=0", "a number from 1 on"},
		{"streams=-1", "a number from 1 on"},
		{"streams= 1", "a number from 1 on"},
		{"streams=4x", "a number from 1 on"},
		{"streams=1K", "a number from 1 on"},
		{"streams=99999999999999999999", "a number from 1 on"},
		{"streams=None", "a number from 1 on"},
		{"kernel-time=1.5", "a number of seconds is wanted, or none"},
		{"vm-kernel-time=5", "for each session, without vm-"},
		{"vm-printed=5M", "for each session, without vm-"},
		{"device-memory=0", "a size like 512M or 4G is wanted, or none"},
		{"device-memory=5Q", "a size like 512M"},
		{"device-memory=1GG", "a size like 512M"},
		{"device-memory=99999999999999G", "a size like 512M"},
		{"vm-mapped=18446744073709551615", "a size like 512M"},
	};
	struct limits l = {.vm = {0}}, before;
	char why[512], tiny[8];
	size_t i;

	(void)state;
	limits_default(&l);
	before = l;
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		if (limits_parse(&l, bad[i][0], why, sizeof(why)))
			fail_msg("%s is taken", bad[i][0]);
		if (!strstr(why, bad[i][1]) || strchr(why, '\n'))
			fail_msg("%s: %s", bad[i][0], why);
		assert_false(limits_parse(&l, bad[i][0], tiny, sizeof(tiny)));
	}
	assert_memory_equal(&l, &before, sizeof(l));
}

static void text(void **state)
{
	struct limits l = {.vm = {0}};
	char why[512], line[512];
	unsigned int i;

	(void)state;
	l.session[LIMIT_EVENTS] = 7;
	limits_default(&l);
	assert_int_equal(l.session[LIMIT_EVENTS], 7);
	assert_int_equal(l.session[LIMIT_STREAMS], 4096);
	assert_true(limits_parse(&l, "streams=12", why, sizeof(why)));
	assert_true(limits_parse(&l, "vm-streams=none", why, sizeof(why)));
	assert_true(limits_parse(&l, "device-memory=3G", why, sizeof(why)));
	assert_true(limits_parse(&l, "vm-device-memory=512m", why, sizeof(why)));
	assert_true(limits_parse(&l, "queued=70000k", why, sizeof(why)));
	assert_true(limits_parse(&l, "module-bytes=123", why, sizeof(why)));
	assert_true(limits_parse(&l, "kernel-time=60", why, sizeof(why)));
	assert_int_equal(l.session[LIMIT_STREAMS], 12);
	assert_int_equal(l.vm[LIMIT_STREAMS], LIMIT_NONE);
	assert_int_equal(l.session[LIMIT_DEVICE_MEMORY], 3ull << 30);
	assert_int_equal(l.vm[LIMIT_DEVICE_MEMORY], 512u << 20);
	assert_int_equal(l.session[LIMIT_QUEUED], 70000u << 10);
	assert_int_equal(l.session[LIMIT_MODULE_BYTES], 123);
	assert_int_equal(l.session[LIMIT_KERNEL_TIME], 60);
	assert_string_equal(limit_text(LIMIT_QUEUED, 0, line, sizeof(line)), "0 bytes");
	assert_string_equal(limit_text(LIMIT_QUEUED, 1536, line, sizeof(line)), "1536 bytes");
	assert_string_equal(limit_text(LIMIT_QUEUED, 3 << 20, line, sizeof(line)), "3 MiB");
	assert_string_equal(limit_text(LIMIT_KERNEL_TIME, 60, line, sizeof(line)), "60 s");
	limits_line(&l, LIMIT_STREAMS, line, sizeof(line));
	assert_string_equal(line, "| streams | 12 | none | streams, per-thread default streams "
				  "too; green contexts |");
	/* The limits stay sensible for any amount of VM memory. */
	limits_for_ram(&l, UINT64_MAX);
	assert_true(l.vm[LIMIT_MAPPED] < 1ull << 57);
	for (i = 0; i < LIMIT_KINDS; i++)
		assert_true(l.session[i] && l.vm[i]);
}

static void of_ram(void **state)
{
	struct limits l = {.vm = {0}};
	char why[512];

	(void)state;
	limits_default(&l);
	limits_for_ram(&l, 1 << 30);
	assert_int_equal(l.session[LIMIT_MAPPED], (2ull << 30) + (256 << 20));
	assert_int_equal(l.vm[LIMIT_MAPPED], (8ull << 30) + (256 << 20));
	assert_true(limits_parse(&l, "mapped=5M", why, sizeof(why)));
	limits_for_ram(&l, 1 << 20);
	assert_int_equal(l.session[LIMIT_MAPPED], 5 << 20);
}

/* A session's own limit, and the VM's. */
static void both_limits(void **state)
{
	struct limits l = {.session[LIMIT_STREAMS] = 3, .vm[LIMIT_STREAMS] = 5};
	struct usage *u = usage_new(-1);
	struct budget a, b, alone;

	(void)state;
	assert_non_null(u);
	budget_init(&a, &l, u, 1);
	budget_init(&b, &l, u, 0);
	budget_begin(&b, 2);
	budget_init(&alone, &l, NULL, 7);
	assert_false(budget_take(&a, LIMIT_STREAMS, 4));
	assert_false(budget_take(&a, LIMIT_STREAMS, UINT64_MAX));
	assert_true(budget_take(&a, LIMIT_STREAMS, 3));
	assert_false(budget_take(&a, LIMIT_STREAMS, 1));
	assert_false(budget_take(&a, LIMIT_STREAMS, UINT64_MAX - 2));
	assert_true(budget_take(&b, LIMIT_STREAMS, 2));
	assert_false(budget_take(&b, LIMIT_STREAMS, 1));
	assert_int_equal(usage_sum(u, LIMIT_STREAMS, 0), 5);
	budget_give(&a, LIMIT_STREAMS, 1);
	assert_true(budget_take(&b, LIMIT_STREAMS, 1));
	assert_int_equal(u->sessions[1].used[LIMIT_STREAMS], 2);
	assert_int_equal(u->sessions[2].used[LIMIT_STREAMS], 3);
	assert_int_equal(u->sessions[1].refused[LIMIT_STREAMS], 4);
	usage_end(u, 2);
	assert_int_equal(usage_sum(u, LIMIT_STREAMS, 0), 2);
	assert_int_equal(u->sessions[1].refused[LIMIT_STREAMS], 4);
	/* A mirror that shares with no other mirror. */
	assert_true(budget_take(&alone, LIMIT_STREAMS, 3));
	assert_false(budget_take(&alone, LIMIT_STREAMS, 1));
	assert_false(budget_set(&a, LIMIT_STREAMS, 4));
	assert_true(budget_set(&a, LIMIT_STREAMS, 3));
	usage_free(u);
}

/* Whose memory goes to a file when another session has found the memory store full. */
static void the_coldest(void **state)
{
	struct limits l = {.vm[LIMIT_SWAP] = 10};
	struct usage *u = usage_new(-1);
	struct budget a, b, alone;

	(void)state;
	budget_init(&a, &l, u, 1);
	budget_init(&b, &l, u, 2);
	budget_init(&alone, &l, NULL, 3);
	assert_true(budget_take(&a, LIMIT_SWAP, 10));
	assert_false(budget_take(&b, LIMIT_SWAP, 1));
	assert_false(budget_take(&alone, LIMIT_SWAP, 11));
	/* One's own refusals do not count. */
	assert_int_equal(budget_refused_others(&a, LIMIT_SWAP), 1);
	assert_int_equal(budget_refused_others(&b, LIMIT_SWAP), 0);
	assert_int_equal(budget_refused_others(&alone, LIMIT_SWAP), 0);
	a.usage->left_ns = 5;
	b.usage->left_ns = 7;
	assert_false(budget_has_colder(&a));
	assert_true(budget_has_colder(&b));
	/* Who has nothing there, or has all of it back, is not asked for it. */
	budget_give(&a, LIMIT_SWAP, 10);
	assert_false(budget_has_colder(&b));
	assert_true(budget_take(&a, LIMIT_SWAP, 1));
	assert_true(budget_has_colder(&b));
	a.usage->left_ns = 0;
	assert_false(budget_has_colder(&b));
	a.usage->left_ns = 6;
	usage_end(u, 1);
	assert_false(budget_has_colder(&b));
	assert_int_equal(u->sessions[1].left_ns, 0);
	assert_false(budget_has_colder(&alone));
	usage_free(u);
}

static void memory_by_device(void **state)
{
	struct limits l = {.session[LIMIT_DEVICE_MEMORY] = 100, .vm[LIMIT_DEVICE_MEMORY] = 150};
	struct usage *u = usage_new(-1);
	struct budget a, b, free;

	(void)state;
	budget_init(&a, &l, u, 1);
	budget_init(&b, &l, u, 63);
	budget_init(&free, NULL, u, 3);
	assert_int_equal(budget_memory_total(&a, 1000), 100);
	assert_int_equal(budget_memory_total(&a, 50), 50);
	assert_int_equal(budget_memory_total(&free, 1000), 1000);
	assert_true(budget_take_memory(&a, 0, 100));
	assert_true(budget_take_memory(&a, 63, 100));
	assert_false(budget_take_memory(&a, 0, 1));
	assert_int_equal(budget_memory_left(&a, 0, 1000), 0);
	assert_int_equal(budget_memory_left(&b, 0, 1000), 50);
	assert_int_equal(budget_memory_left(&b, 1, 1000), 100);
	assert_false(budget_take_memory(&b, 0, 51));
	assert_true(budget_take_memory(&b, 0, 50));
	assert_int_equal(budget_memory_left(&free, 0, 1000), 1000);
	assert_true(budget_take_memory(&free, 0, 1ull << 50));
	/* Without a limit, too, numbers do not wrap. */
	assert_false(budget_take_memory(&free, 0, UINT64_MAX - 5));
	assert_false(budget_take_memory(&free, 0, 1ull << 57));
	budget_give_memory(&free, 0, 1ull << 50);
	assert_false(budget_memory_over(&a, 0));
	budget_add_memory(&a, 0, 1);
	assert_true(budget_memory_over(&a, 0));
	usage_free(u);
}

/* A mirror dies in the middle: what it held is free when its session has been ended. */
static void killed(void **state)
{
	struct limits l = {.vm[LIMIT_STREAMS] = 10};
	int fd = memfd_create("usage", MFD_CLOEXEC), status;
	struct usage *u = usage_new(fd), *same = usage_new(fd);
	struct budget b;
	pid_t pid;

	(void)state;
	assert_non_null(u);
	assert_non_null(same);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		budget_init(&b, &l, same, 4);
		budget_take(&b, LIMIT_STREAMS, 10);
		raise(SIGKILL);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	budget_init(&b, &l, u, 5);
	assert_false(budget_take(&b, LIMIT_STREAMS, 1));
	usage_end(u, 4);
	assert_true(budget_take(&b, LIMIT_STREAMS, 10));
	assert_int_equal(usage_sum(same, LIMIT_STREAMS, 0), 10);
	usage_free(same);
	usage_free(u);
	close(fd);
}

#define TAKERS 8
#define ROUNDS 20000
#define LEFT   3

struct taker {
	pthread_t thread;
	struct budget b;
	atomic_int *now, *most;
};

static void *take_some(void *arg)
{
	struct taker *t = arg;
	unsigned int i;
	int now, most;

	for (i = 0; i < ROUNDS; i++) {
		if (!budget_take(&t->b, LIMIT_STREAMS, 1))
			continue;
		now = atomic_fetch_add(t->now, 1) + 1;
		most = atomic_load(t->most);
		while (now > most && !atomic_compare_exchange_weak(t->most, &most, now))
			;
		atomic_fetch_sub(t->now, 1);
		budget_give(&t->b, LIMIT_STREAMS, 1);
	}
	return NULL;
}

static void at_once(void **state)
{
	struct limits l = {.vm[LIMIT_STREAMS] = LEFT};
	struct usage *u = usage_new(-1);
	atomic_int now = 0, most = 0;
	struct taker t[TAKERS];
	unsigned int i;

	(void)state;
	for (i = 0; i < TAKERS; i++) {
		t[i].now = &now;
		t[i].most = &most;
		budget_init(&t[i].b, &l, u, i + 1);
		assert_int_equal(pthread_create(&t[i].thread, NULL, take_some, &t[i]), 0);
	}
	for (i = 0; i < TAKERS; i++)
		pthread_join(t[i].thread, NULL);
	assert_in_range(most, 1, LEFT);
	assert_int_equal(usage_sum(u, LIMIT_STREAMS, 0), 0);
	usage_free(u);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(bad_text),	    cmocka_unit_test(text),
		cmocka_unit_test(of_ram),	    cmocka_unit_test(both_limits),
		cmocka_unit_test(memory_by_device), cmocka_unit_test(killed),
		cmocka_unit_test(the_coldest),	    cmocka_unit_test(at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
