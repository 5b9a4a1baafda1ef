// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Where a VM goes on, its sessions are made while its state is loaded, before any queue starts. If
 * one cannot be made, QEMU hears why, and none is left.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "qcu-device/moving/state.h"
#include "tests/unit/device/moving/test_device_moved.h"

enum { SAVE, LOAD };
#define NO_FILE 256u

/* Both have a mirror when a state is saved. */
enum { FIRST = 1, SECOND = 3 };

static uint8_t saved[1 << 20];
static size_t saved_bytes;
static char lose[] = "--lose-sessions";

static int start_sessions(char *more)
{
	start_device(more);
	start_queues();
	return fe_open(&fe, FIRST) || fe_open(&fe, SECOND);
}

static int start(void **state)
{
	(void)state;
	return start_sessions(NULL);
}

static int start_and_lose(void **state)
{
	(void)state;
	return start_sessions(lose);
}

static uint64_t transfer(uint32_t direction, int fd)
{
	const uint32_t m[2] = {direction, 0};
	uint64_t answer = 0;

	fe_send(&fe, FE_SET_DEVICE_STATE_FD, m, sizeof(m), fd);
	fe_recv(&fe, FE_SET_DEVICE_STATE_FD, &answer, sizeof(answer));
	close(fd);
	return answer;
}

/* Reads the device's state into `saved`. */
static void save(void)
{
	int fds[2];
	ssize_t n;

	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	assert_int_equal(transfer(SAVE, fds[1]), NO_FILE);
	for (saved_bytes = 0;
	     (n = read(fds[0], saved + saved_bytes, sizeof(saved) - saved_bytes)) > 0;)
		saved_bytes += (size_t)n;
	assert_int_equal(n, 0);
	close(fds[0]);
	assert_int_equal(fe_get(&fe, FE_CHECK_DEVICE_STATE), 0);
}

/* As QEMU stops a VM to save it. */
static void stop_and_save(void)
{
	stop_queues();
	save();
}

static bool loads(void)
{
	size_t at = 0;
	int fds[2];
	ssize_t n;

	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	assert_int_equal(transfer(LOAD, fds[0]), NO_FILE);
	for (; at < saved_bytes; at += (size_t)n) {
		n = write(fds[1], saved + at, saved_bytes - at);
		assert_true(n > 0);
	}
	close(fds[1]);
	return !fe_get(&fe, FE_CHECK_DEVICE_STATE);
}

static int sync_in(unsigned int session)
{
	return fe_ask(&fe, session, &(struct qCUcmd){.op = QCU_OP_DEVICE_SYNC, .tid = 1}, 0, 0);
}

/*
 * damage: the second session's archive gets damaged, which only its mirror sees. anew: no queue has
 * had a command.
 */
static void rewrite(bool damage, bool anew)
{
	struct state_entry e;
	size_t at = sizeof(struct state);
	uint64_t sum = state_sum(0, saved, at), len;

	do {
		memcpy(&e, saved + at, sizeof(e));
		if (anew)
			e.popped = 0;
		memcpy(saved + at, &e, sizeof(e));
		sum = state_sum(sum, saved + at, sizeof(e));
		at += sizeof(e);
		/* Nothing has gone ahead. */
		memcpy(&len, saved + at, sizeof(len));
		assert_int_equal(len, 0);
		sum = state_sum(sum, &len, sizeof(len));
		at += sizeof(len);
		if (damage && e.queue == SECOND)
			saved[at + sizeof(len)] ^= 1;
		do {
			memcpy(&len, saved + at, sizeof(len));
			sum = state_sum(sum, &len, sizeof(len));
			at += sizeof(len) + len;
		} while (len);
	} while (e.queue != SECOND);
	assert_int_equal(at + sizeof(sum), saved_bytes);
	memcpy(saved + at, &sum, sizeof(sum));
}

static void fill_memory(unsigned int session, uint64_t bytes)
{
	struct qCUcmd c = {.op = QCU_OP_MALLOC, .tid = 1, .malloc = {.size = bytes}};
	struct qCUcmd set = {.op = QCU_OP_MEMSET, .tid = 1};

	assert_int_equal(fe_ask(&fe, session, &c, 0, 0), 0);
	set.memset.dst = c.malloc.ptr;
	set.memset.value = 7;
	set.memset.elem = 1;
	set.memset.width = bytes;
	set.memset.height = 1;
	assert_int_equal(fe_ask(&fe, session, &set, 0, 0), 0);
	assert_int_equal(sync_in(session), 0);
}

/* QEMU goes on in the middle of the state, while a mirror writes. Its program notices nothing. */
static void nobody_reads(void **state)
{
	uint8_t some[1000];
	unsigned int i;
	size_t got;
	int fds[2];
	ssize_t n;

	(void)state;
	fill_memory(SECOND, 16 << 20);
	for (i = 0; i < 3; i++) {
		stop_queues();
		assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
		assert_int_equal(transfer(SAVE, fds[1]), NO_FILE);
		for (got = 0; got < 4096; got += (size_t)n) {
			n = read(fds[0], some, sizeof(some));
			assert_true(n > 0);
		}
		close(fds[0]);
		assert_int_not_equal(fe_get(&fe, FE_CHECK_DEVICE_STATE), 0);
		go_on();
		assert_int_equal(sync_in(FIRST), 0);
		assert_int_equal(sync_in(SECOND), 0);
	}
}

/* A mirror that has ended is found when its session is to be saved. */
static void mirror_ends(void **state)
{
	int fds[2];

	(void)state;
	stop_queues();
	assert_int_equal(kill(fe_mirror(&fe, SECOND), SIGSTOP), 0);
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	assert_int_equal(transfer(SAVE, fds[1]), NO_FILE);
	assert_int_equal(kill(fe_mirror(&fe, SECOND), SIGKILL), 0);
	assert_int_not_equal(fe_get(&fe, FE_CHECK_DEVICE_STATE), 0);
	close(fds[0]);
	go_on();
	assert_int_equal(sync_in(FIRST), 0);
	assert_int_equal(sync_in(SECOND), FE_GONE);
}

/* A device that runs has sessions of its own. */
static void while_it_runs(void **state)
{
	(void)state;
	stop_and_save();
	go_on();
	assert_false(loads());
	assert_string_equal(fe_reason(&fe), "the device runs");
	/* It is read once, and is no reason against saving. */
	assert_string_equal(fe_reason(&fe), "");
	assert_int_equal(sync_in(FIRST), 0);
	assert_false(loads());
	fe_get(&fe, FE_GET_QUEUE_NUM);
	assert_string_equal(fe_reason(&fe), "");
	assert_int_equal(sync_in(SECOND), 0);
}

static void not_made(void **state)
{
	const char *why;

	(void)state;
	stop_and_save();
	rewrite(true, false);
	assert_false(loads());
	why = fe_reason(&fe);
	if (!strstr(why, "te?st-program-16 (pid 42 in the VM) cannot be restored: "))
		fail_msg("\"%s\"", why);
	/* None is left, and none comes when the queues start. */
	assert_int_equal(fe_mirror(&fe, FIRST), 0);
	assert_int_equal(fe_mirror(&fe, SECOND), 0);
	go_on();
	assert_int_equal(fe_open(&fe, FIRST), 0);
	assert_int_equal(fe_open(&fe, SECOND), 0);
	assert_int_equal(sync_in(SECOND), 0);
}

static void lost(void **state)
{
	(void)state;
	stop_and_save();
	rewrite(true, false);
	assert_true(loads());
	go_on();
	assert_int_equal(sync_in(FIRST), 0);
	assert_int_equal(sync_in(SECOND), FE_GONE);
	assert_int_equal(fe_close(&fe, SECOND), 0);
	/* What is wrong with the state itself is never accepted. */
	stop_and_save();
	saved[saved_bytes - 1] ^= 1;
	assert_false(loads());
	assert_non_null(strstr(fe_reason(&fe), "it is damaged"));
	go_on();
	assert_int_equal(sync_in(FIRST), 0);
}

/* Sessions wait for their queues. Meanwhile the VM may be saved again, or loaded again. */
static void made_early(void **state)
{
	static uint8_t before[sizeof(saved)];
	pid_t first, again;

	(void)state;
	stop_and_save();
	memcpy(before, saved, saved_bytes);
	assert_true(loads());
	first = fe_mirror(&fe, FIRST);
	assert_int_not_equal(first, 0);
	assert_int_not_equal(fe_mirror(&fe, SECOND), 0);
	assert_string_equal(fe_reason(&fe), "");
	save();
	assert_memory_equal(saved, before, saved_bytes);
	save();
	assert_memory_equal(saved, before, saved_bytes);
	assert_int_equal(fe_mirror(&fe, FIRST), first);
	assert_true(loads());
	again = fe_mirror(&fe, FIRST);
	assert_int_not_equal(again, 0);
	assert_int_not_equal(again, first);
	/* It has been asked, and queues that do not run stop. */
	assert_string_equal(fe_reason(&fe), "");
	fe_queue_stop(&fe, FIRST);
	go_on();
	assert_int_equal(fe_mirror(&fe, FIRST), again);
	assert_int_equal(sync_in(FIRST), 0);
	assert_int_equal(sync_in(SECOND), 0);
	/* The guest has not begun when another state is loaded, which cannot be. */
	stop_and_save();
	assert_true(loads());
	saved_bytes--;
	assert_false(loads());
	assert_int_equal(fe_mirror(&fe, FIRST), 0);
}

/* The memory changes after the sessions were made: they are made again with it. */
static void other_memory(void **state)
{
	(void)state;
	stop_and_save();
	assert_true(loads());
	fe_add_memory(&fe, 4 * FE_RAM);
	assert_string_equal(fe_reason(&fe), "");
	assert_int_equal(fe_mirror(&fe, FIRST), 0);
	go_on();
	assert_int_not_equal(fe_mirror(&fe, FIRST), 0);
	assert_int_equal(sync_in(FIRST), 0);
	assert_int_equal(sync_in(SECOND), 0);
}

/* A QEMU that announces the memory late: the sessions are made when the first queue starts. */
static void late_memory(void **state)
{
	(void)state;
	stop_and_save();
	rewrite(false, true);
	assert_int_equal(fe_stop(&fe), 0);
	start_device(NULL);
	fe_set_memory(&fe, false);
	assert_true(loads());
	assert_int_equal(fe_mirror(&fe, FIRST), 0);
	fe_set_memory(&fe, true);
	start_queues();
	assert_int_equal(sync_in(FIRST), 0);
	assert_int_equal(sync_in(SECOND), 0);
}

/* The VM never begins. */
static void never_started(void **state)
{
	pid_t mirror;

	(void)state;
	stop_and_save();
	assert_true(loads());
	mirror = fe_mirror(&fe, FIRST);
	assert_int_not_equal(mirror, 0);
	assert_int_equal(fe_stop(&fe), 0);
	assert_int_equal(kill(mirror, 0), -1);
	assert_int_equal(errno, ESRCH);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, start, stop)
	const struct CMUnitTest tests[] = {
		T(nobody_reads),
		T(mirror_ends),
		T(while_it_runs),
		T(not_made),
		cmocka_unit_test_setup_teardown(lost, start_and_lose, stop),
		T(made_early),
		T(other_memory),
		T(late_memory),
		cmocka_unit_test_setup(never_started, start),
	};
#undef T

	return cmocka_run_group_tests(tests, NULL, NULL);
}
