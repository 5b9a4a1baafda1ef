// SPDX-License-Identifier: GPL-2.0-or-later
/* How the mirrors of the cuda backend hand each other files, without CUDA. */
#define _GNU_SOURCE /* memfd_create */
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "qcu-device/backend/pass.h"
#include "qcu-device/base/pass.h"
#include "qcu-device/host/passes.h"
#include "qcu-device/base/send_files.h"

/* The seats of this process, which offers and takes; of another one; and of one that is broken. */
enum { OWN = 1, ANOTHER = 2, BROKEN = 3, SEATS };

static struct be_pass pass;
static struct passes passes;
static int mirror_end[SEATS];
static _Atomic unsigned int bad[SEATS]; /* how often a mirror would have been ended */

static _Thread_local bool is_main;

/* Plays the main process. */
static void *carry(void *unused)
{
	struct pollfd fds[SEATS] = {{.fd = -1}};
	unsigned int i;

	(void)unused;
	is_main = true;
	for (;;) {
		for (i = 1; i < SEATS; i++)
			fds[i] = (struct pollfd){.fd = passes.mirror[i].fd, .events = POLLIN};
		if (poll(fds, SEATS, -1) < 0)
			continue;
		for (i = 1; i < SEATS; i++) {
			enum passes_result r;

			if (fds[i].fd < 0 || !fds[i].revents)
				continue;
			r = passes_carry(&passes, i);
			if (r == PASSES_GONE && i == OWN)
				return NULL;
			if (r != PASSES_CARRIED)
				passes_remove(&passes, i);
			bad[i] += r == PASSES_BAD;
		}
	}
}

static void add_seat(unsigned int seat)
{
	int ends[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
	mirror_end[seat] = ends[1];
	passes_add(&passes, seat, ends[0]);
}

/* A file that says a number. */
static int file(int number)
{
	int fd = memfd_create("test", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, &number, sizeof(number)), sizeof(number));
	return fd;
}

/* The number in the file that the handle stands for, or -1. */
static int number(const struct be_pass_handle *h)
{
	int fd = be_pass_take(&pass, h), n = -1;

	if (fd < 0)
		return -1;
	if (pread(fd, &n, sizeof(n), 0) != sizeof(n))
		n = -1;
	close(fd);
	return n;
}

static int open_files(void)
{
	int n = 0, fd;

	for (fd = 0; fd < 1024; fd++)
		n += dup2(fd, fd) == fd;
	return n;
}

/* The thread that plays the main process closes a file a moment after it has handed it on. */
static void wait_for_closed_files(int n)
{
	while (open_files() > n)
		sched_yield();
}

static void wrong_handles(void **state)
{
	struct be_pass_handle h = {.seat = 77}, other;

	(void)state;
	assert_int_equal(number(&h), -1);
	assert_true(be_pass_offer(&pass, file(1), &h));
	other = h;
	other.secret[0] ^= 1;
	assert_int_equal(number(&other), -1);
	other = h;
	other.secret[1] ^= 1ull << 63;
	assert_int_equal(number(&other), -1);
	other = h;
	other.seat = UINT32_MAX;
	assert_int_equal(number(&other), -1);
	other.seat = 0;
	assert_int_equal(number(&other), -1);
	other.seat = SEATS;
	assert_int_equal(number(&other), -1);
	assert_int_equal(number(&h), 1);
	be_pass_withdraw(&pass, &h);
	assert_int_equal(number(&h), -1);
	be_pass_withdraw(&pass, &h);
}

static void many(void **state)
{
	struct be_pass_handle h[50];
	int before, i;

	(void)state;
	assert_true(be_pass_offer(&pass, file(100), &h[0]));
	before = open_files();
	for (i = 1; i < 50; i++)
		assert_true(be_pass_offer(&pass, file(100 + i), &h[i]));
	for (i = 0; i < 50; i++)
		assert_int_equal(number(&h[i]), 100 + i);
	for (i = 1; i < 50; i += 2)
		be_pass_withdraw(&pass, &h[i]);
	for (i = 0; i < 50; i++)
		assert_int_equal(number(&h[i]), i % 2 ? -1 : 100 + i);
	for (i = 2; i < 50; i += 2)
		be_pass_withdraw(&pass, &h[i]);
	wait_for_closed_files(before);
	be_pass_withdraw(&pass, &h[0]);
}

/* One handle stands for all parts; those that are not there are not found. */
static void parts(void **state)
{
	struct be_pass_handle first, h;
	uint32_t i;

	(void)state;
	assert_true(be_pass_offer(&pass, file(200), &first));
	for (i = 1; i < 5; i++)
		assert_true(be_pass_offer_part(&pass, file(200 + (int)i), &first, i));
	for (i = 0; i < 7; i++) {
		h = be_pass_part(&first, i);
		assert_int_equal(number(&h), i < 5 ? 200 + (int)i : -1);
	}
	be_pass_withdraw_parts(&pass, &first, 5);
	for (i = 0; i < 5; i++) {
		h = be_pass_part(&first, i);
		assert_int_equal(number(&h), -1);
	}
}

/* What was taken before its owner's end stays. */
static void another_process(void **state)
{
	struct be_pass_handle h;
	int ends[2], back[2], fd, n = 0, status;
	pid_t pid;

	(void)state;
	assert_false(pipe(ends) || pipe(back));
	pid = fork();
	if (!pid) {
		struct be_pass own;

		be_pass_open(&own, mirror_end[ANOTHER], ANOTHER);
		if (!be_pass_offer(&own, file(7), &h) || write(ends[1], &h, sizeof(h)) != sizeof(h))
			_exit(1);
		close(back[1]);
		_exit(read(back[0], &n, 1) != 0);
	}
	close(back[0]);
	assert_int_equal(read(ends[0], &h, sizeof(h)), sizeof(h));
	assert_int_equal(h.seat, ANOTHER);
	fd = be_pass_take(&pass, &h);
	assert_true(fd >= 0);
	close(back[1]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	/* With the last copy of its end the seat is free. */
	close(mirror_end[ANOTHER]);
	while (passes.mirror[ANOTHER].fd >= 0)
		sched_yield();
	assert_int_equal(number(&h), -1);
	assert_int_equal(pread(fd, &n, sizeof(n), 0), sizeof(n));
	assert_int_equal(n, 7);
	close(fd);
	close(ends[0]);
	close(ends[1]);
}

static void send_broken(const struct pass_letter *l, size_t size, const int *files, size_t n)
{
	assert_int_equal(send_files(mirror_end[BROKEN], l, size, files, n, MSG_NOSIGNAL),
			 (ssize_t)size);
}

/* What only a broken mirror sends ends it, and leaves nothing behind in the main process. */
static void broken_letters(void **state)
{
	static const struct {
		struct pass_letter letter;
		size_t size, files;
	} wrong[] = {
		{{0}, sizeof(struct pass_letter), 0},
		{{.kind = 3, .seat = OWN}, sizeof(struct pass_letter), 0},
		{{.kind = PASS_ASK, .seat = OWN, .rsvd = 1}, sizeof(struct pass_letter), 0},
		{{.kind = PASS_ASK, .seat = OWN}, sizeof(struct pass_letter) - 1, 0},
		{{.kind = PASS_ASK, .seat = OWN}, sizeof(struct pass_letter), 1},
		{{.kind = PASS_ASK, .seat = OWN}, 0, 1},
		{{.kind = PASS_ANSWER, .seat = OWN}, sizeof(struct pass_letter), 2},
	};
	int files[2] = {file(1), file(2)}, before;
	unsigned int i;

	(void)state;
	before = open_files();
	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		add_seat(BROKEN);
		/* The thread may wait without this seat. */
		be_pass_take(&pass, &(struct be_pass_handle){.seat = 77});
		send_broken(&wrong[i].letter, wrong[i].size, files, wrong[i].files);
		while (bad[BROKEN] != i + 1)
			sched_yield();
		close(mirror_end[BROKEN]);
	}
	wait_for_closed_files(before);
	close(files[0]);
	close(files[1]);
}

static int private_file = -1;

static bool is_private(int fd)
{
	struct stat a, b;

	if (private_file < 0)
		return false;
	return fstat(fd, &a) || fstat(private_file, &b) || a.st_ino == b.st_ino;
}

/* A file that is only for one mirror reaches no other one, and who sends it is ended. */
static void private_files(void **state)
{
	const struct pass_letter l = {.kind = PASS_ANSWER, .seat = OWN};
	unsigned int ended = bad[BROKEN];
	int other = file(2), before;

	(void)state;
	private_file = file(1);
	before = open_files();
	add_seat(BROKEN);
	be_pass_take(&pass, &(struct be_pass_handle){.seat = 77});
	send_broken(&l, sizeof(l), &other, 1);
	send_broken(&l, sizeof(l), &private_file, 1);
	while (bad[BROKEN] != ended + 1)
		sched_yield();
	close(mirror_end[BROKEN]);
	wait_for_closed_files(before);
	close(other);
	close(private_file);
	private_file = -1;
}

/* Answers that nobody has asked for change nothing, and their files are closed. */
static void wrong_answers(void **state)
{
	struct pass_letter l = {.kind = PASS_ANSWER, .seat = OWN};
	struct be_pass_handle h;
	int f = file(9), before;

	(void)state;
	add_seat(BROKEN);
	assert_true(be_pass_offer(&pass, file(4), &h));
	before = open_files();
	for (l.id = 0; l.id < 500; l.id++) {
		send_broken(&l, sizeof(l), &f, 1);
		assert_int_equal(number(&h), 4);
	}
	wait_for_closed_files(before);
	be_pass_withdraw(&pass, &h);
	close(f);
}

/*
 * For the main process's count of letters in one second it is always the same second. For all
 * others the time of day has just been set forward by an hour: nobody waits by it.
 */
int __real_clock_gettime(clockid_t clock, struct timespec *t);
int __wrap_clock_gettime(clockid_t clock, struct timespec *t);
int __wrap_clock_gettime(clockid_t clock, struct timespec *t)
{
	int rc = __real_clock_gettime(clock, t);

	if (clock == CLOCK_MONOTONIC && is_main)
		t->tv_sec = 1;
	if (clock == CLOCK_REALTIME)
		t->tv_sec -= 3600;
	return rc;
}

static void flood(void **state)
{
	struct pass_letter l = {.kind = PASS_ASK, .seat = 77};
	unsigned int before = bad[BROKEN], i;

	(void)state;
	for (i = 0; bad[BROKEN] == before && i < 100 * PASSES_A_SECOND; i++)
		if (send(mirror_end[BROKEN], &l, sizeof(l), MSG_NOSIGNAL) < 0)
			break;
	while (bad[BROKEN] == before)
		sched_yield();
	close(mirror_end[BROKEN]);
}

/* A process without a seat has nobody to ask. */
static void no_seat(void **state)
{
	struct be_pass_handle h = {.seat = OWN};
	struct be_pass own;
	int before = open_files(), f = file(3);

	(void)state;
	be_pass_open(&own, 0, 0);
	assert_int_equal(be_pass_take(&own, &h), -1);
	assert_false(be_pass_offer(&own, f, &h));
	be_pass_close(&own);
	close(f);
	assert_int_equal(open_files(), before);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_seat),
		cmocka_unit_test(wrong_handles),
		cmocka_unit_test(many),
		cmocka_unit_test(parts),
		cmocka_unit_test(another_process),
		cmocka_unit_test(broken_letters),
		cmocka_unit_test(private_files),
		cmocka_unit_test(wrong_answers),
		cmocka_unit_test(flood),
	};
	pthread_t thread;
	int failed;

	passes_init(&passes);
	passes.is_private = is_private;
	add_seat(OWN);
	add_seat(ANOTHER);
	be_pass_open(&pass, mirror_end[OWN], OWN);
	if (pthread_create(&thread, NULL, carry, NULL))
		return 1;
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	be_pass_close(&pass);
	pthread_join(thread, NULL);
	return failed;
}
