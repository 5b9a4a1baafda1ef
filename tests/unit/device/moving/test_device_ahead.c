// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Device memory goes ahead while the VM runs, and comes where the VM goes on: wrong sockets, pieces
 * and moments first.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "qcu-device/memory/ahead.h"
#include "qcu-device/moving/state.h"
#include "tests/unit/device/moving/test_device_moved.h"

enum { SAVE, LOAD };
enum { STOPPED, AHEAD };
#define NO_FILE 256u
#define FAILED	1u

enum { FIRST = 1, SECOND = 3 };
#define MIB   (1u << 20)
#define BYTES (5 * MIB) /* of each session, in two pieces */

static uint8_t saved[24 * MIB], went[24 * MIB];
static size_t saved_bytes, went_bytes;
static uint64_t memory[SECOND + 1];

static int start(void **state)
{
	(void)state;
	start_device(NULL);
	start_queues();
	return fe_open(&fe, FIRST) || fe_open(&fe, SECOND);
}

static uint64_t transfer(uint32_t direction, uint32_t phase, int fd)
{
	const uint32_t m[2] = {direction, phase};
	uint64_t answer = 0;

	fe_send(&fe, FE_SET_DEVICE_STATE_FD, m, sizeof(m), fd);
	fe_recv(&fe, FE_SET_DEVICE_STATE_FD, &answer, sizeof(answer));
	close(fd);
	return answer;
}

static int open_ahead(uint32_t direction)
{
	int ends[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
	assert_int_equal(transfer(direction, AHEAD, ends[1]), NO_FILE);
	return ends[0];
}

static size_t read_all(int fd, uint8_t *to, size_t most)
{
	size_t got = 0;
	ssize_t n;

	while ((n = read(fd, to + got, most - got)) > 0)
		got += (size_t)n;
	assert_int_equal(n, 0);
	return got;
}

/* Returns our end, which says that it is still the same migration. */
static int go_ahead(void)
{
	int fd = open_ahead(SAVE);

	went_bytes = read_all(fd, went, sizeof(went));
	return fd;
}

static void save(void)
{
	int fds[2];

	assert_int_equal(pipe(fds), 0);
	assert_int_equal(transfer(SAVE, STOPPED, fds[1]), NO_FILE);
	saved_bytes = read_all(fds[0], saved, sizeof(saved));
	close(fds[0]);
	assert_int_equal(fe_get(&fe, FE_CHECK_DEVICE_STATE), 0);
}

/* False: the other side does not read all of it. */
static bool write_all(int fd, const uint8_t *from, size_t len)
{
	ssize_t n;

	for (; len; from += n, len -= (size_t)n) {
		n = send(fd, from, len, MSG_NOSIGNAL);
		if (n < 0)
			return false;
	}
	return true;
}

static bool loads(void)
{
	int fds[2];
	size_t at;
	ssize_t n;

	assert_int_equal(pipe(fds), 0);
	assert_int_equal(transfer(LOAD, STOPPED, fds[0]), NO_FILE);
	for (at = 0; at < saved_bytes; at += (size_t)n) {
		n = write(fds[1], saved + at, saved_bytes - at);
		assert_true(n > 0);
	}
	close(fds[1]);
	return !fe_get(&fe, FE_CHECK_DEVICE_STATE);
}

static void come_ahead(void)
{
	int fd = open_ahead(LOAD);

	assert_true(write_all(fd, went, went_bytes));
	close(fd);
}

static void fill(unsigned int session, uint64_t addr, uint64_t bytes, uint32_t value)
{
	struct qCUcmd c = {.op = QCU_OP_MEMSET, .tid = 1};

	c.memset.dst = addr;
	c.memset.value = value;
	c.memset.elem = 1;
	c.memset.width = bytes;
	c.memset.height = 1;
	c.memset.flags = QCU_COPY_SYNC;
	assert_int_equal(fe_ask(&fe, session, &c, 0, 0), 0);
}

static void allocate(unsigned int session)
{
	struct qCUcmd c = {.op = QCU_OP_MALLOC, .tid = 1, .malloc = {.size = BYTES}};

	assert_int_equal(fe_ask(&fe, session, &c, 0, 0), 0);
	memory[session] = c.malloc.ptr;
	fill(session, memory[session], BYTES, 7);
}

/* When the VM stands: what has been written since goes through another socket. Returns our end. */
static int go_late(int first)
{
	int fd = open_ahead(SAVE);

	close(first);
	went_bytes += read_all(fd, went + went_bytes, sizeof(went) - went_bytes);
	return fd;
}

/* How many bytes of the state have this value. Other parts of it have hardly any. */
static size_t count_bytes(uint8_t value)
{
	size_t i, n = 0;

	for (i = 0; i < saved_bytes; i++)
		n += saved[i] == value;
	return n;
}

/* All that both sessions have is in one state. */
static void check_contents(size_t sevens, size_t nines)
{
	stop_queues();
	save();
	go_on();
	assert_true(count_bytes(7) >= sevens && count_bytes(7) < sevens + MIB);
	assert_true(count_bytes(9) >= nines && count_bytes(9) < nines + MIB);
}

/* What has gone ahead and the state make these contents. */
static void come(size_t sevens, size_t nines)
{
	come_ahead();
	assert_true(loads());
	go_on();
	check_contents(sevens, nines);
}

/* Here the VM is saved once more before it begins, which puts all of it into one state. */
static void come_twice(size_t sevens, size_t nines)
{
	come_ahead();
	assert_true(loads());
	save();
	assert_true(saved_bytes > sevens + nines);
	assert_true(loads());
	go_on();
	check_contents(sevens, nines);
}

/* ---- wrong ---- */

static void wrong_moments(void **state)
{
	int ends[2], other;

	(void)state;
	/* No socket, and one that has closed. */
	assert_int_equal(transfer(SAVE, AHEAD, -1), NO_FILE | FAILED);
	assert_int_equal(transfer(LOAD, AHEAD, -1), NO_FILE | FAILED);
	allocate(FIRST);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
	close(ends[0]);
	assert_int_equal(transfer(SAVE, AHEAD, ends[1]), NO_FILE);
	assert_int_equal(
		fe_ask(&fe, FIRST, &(struct qCUcmd){.op = QCU_OP_DEVICE_SYNC, .tid = 1}, 0, 0), 0);
	/* A second one ends the first. */
	other = open_ahead(SAVE);
	close(go_ahead());
	(void)read_all(other, went, sizeof(went));
	close(other);
	/* The device stands. */
	stop_queues();
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
	assert_int_equal(transfer(SAVE, AHEAD, ends[1]), NO_FILE | FAILED);
	save();
	assert_true(saved_bytes > BYTES);
	go_on();
}

static void pieces_that_are_wrong(void **state)
{
	struct ahead_piece p = {.addr = 4096, .session = 64, .len = 8};
	int fd;

	(void)state;
	allocate(FIRST);
	close(go_ahead());
	stop_queues();
	save();
	fd = open_ahead(LOAD);
	went[sizeof(p) + 100] ^= 1;
	(void)write_all(fd, went, went_bytes);
	close(fd);
	assert_string_equal(fe_reason(&fe), "memory that came ahead is damaged");
	assert_false(loads());
	assert_string_equal(fe_reason(&fe), "memory that came ahead is damaged");
	/* Of a session that there cannot be. The device closes the socket. */
	fd = open_ahead(LOAD);
	assert_true(write_all(fd, (uint8_t *)&p, sizeof(p)));
	assert_int_equal(read(fd, &p, sizeof(p)), 0);
	close(fd);
	assert_non_null(strstr(fe_reason(&fe), "damaged"));
	/* Another one is not the worse for it. */
	fd = open_ahead(LOAD);
	went[sizeof(p) + 100] ^= 1;
	assert_true(write_all(fd, went, went_bytes / 2));
	close(fd);
	assert_true(loads());
	go_on();
	check_contents(BYTES, 0);
}

/* What went for another migration may not be where the VM goes now. */
static void another_migration(void **state)
{
	(void)state;
	allocate(FIRST);
	close(go_ahead());
	stop_queues();
	save();
	assert_true(went_bytes > BYTES && saved_bytes > BYTES);
	go_on();
}

static void not_come(void **state)
{
	int fd;

	(void)state;
	allocate(FIRST);
	fd = go_ahead();
	stop_queues();
	save();
	close(fd);
	assert_false(loads());
	assert_non_null(strstr(fe_reason(&fe), "memory of it has not come"));
}

/* The other socket comes before the first one has ended, or twice. */
static void late_at_wrong_moments(void **state)
{
	int fd, ends[2];

	(void)state;
	allocate(FIRST);
	fd = open_ahead(SAVE);
	assert_int_equal(poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, -1), 1);
	stop_queues();
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
	assert_int_equal(transfer(SAVE, AHEAD, ends[1]), NO_FILE | FAILED);
	close(ends[0]);
	went_bytes = read_all(fd, went, sizeof(went));
	fd = go_late(fd);
	assert_true(went_bytes > BYTES);
	fd = go_late(fd);
	assert_true(went_bytes < BYTES + MIB);
	save();
	close(fd);
	assert_true(saved_bytes < MIB);
	come(BYTES, 0);
}

/* Of a session whose mirror ends nothing goes late, and the other one goes on. */
static void late_without_a_mirror(void **state)
{
	int fd;

	(void)state;
	allocate(FIRST);
	allocate(SECOND);
	fd = go_ahead();
	fill(FIRST, memory[FIRST], BYTES, 9);
	fill(SECOND, memory[SECOND], BYTES, 9);
	stop_queues();
	assert_int_equal(kill(fe_mirror(&fe, FIRST), SIGKILL), 0);
	went_bytes = 0;
	fd = go_late(fd);
	assert_true(went_bytes > BYTES && went_bytes < BYTES + MIB);
	assert_int_equal(((struct ahead_piece *)(void *)went)->session, SECOND);
	close(fd);
	go_on();
}

/* QEMU reads nothing, and stops the VM. */
static void nobody_reads(void **state)
{
	int fd;

	(void)state;
	allocate(FIRST);
	allocate(SECOND);
	fd = open_ahead(SAVE);
	/* At least the first piece is on its way, and none is lost. */
	assert_int_equal(poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, -1), 1);
	stop_queues();
	went_bytes = read_all(fd, went, sizeof(went));
	save();
	close(fd);
	assert_true(saved_bytes + went_bytes > 2 * (size_t)BYTES &&
		    saved_bytes < 2 * (size_t)BYTES);
	come(2 * (size_t)BYTES, 0);
}

/* A mirror ends, or says nothing, when its memory goes. The other session's goes all the same. */
static void mirrors_that_fail(void **state)
{
	int fd;

	(void)state;
	allocate(FIRST);
	allocate(SECOND);
	assert_int_equal(kill(fe_mirror(&fe, FIRST), SIGSTOP), 0);
	fd = go_ahead();
	assert_true(went_bytes > BYTES && went_bytes < BYTES + MIB);
	assert_int_equal(((struct ahead_piece *)(void *)went)->session, SECOND);
	close(fd);
	/* It answers late. That is heard with what it is asked next. */
	assert_int_equal(kill(fe_mirror(&fe, FIRST), SIGCONT), 0);
	check_contents(2 * (size_t)BYTES, 0);
	fd = go_ahead();
	assert_true(went_bytes > 2 * (size_t)BYTES);
	close(fd);
	assert_int_equal(kill(fe_mirror(&fe, FIRST), SIGSTOP), 0);
	fd = open_ahead(SAVE);
	assert_int_equal(kill(fe_mirror(&fe, FIRST), SIGKILL), 0);
	went_bytes = read_all(fd, went, sizeof(went));
	assert_true(went_bytes > BYTES && went_bytes < BYTES + MIB);
	close(fd);
}

/* Reads the first two pieces, of FIRST. The next one is on its way then. Returns our end. */
static int begin_to_go(void)
{
	const size_t two = BYTES + 2 * sizeof(struct ahead_piece);
	int fd = open_ahead(SAVE);

	for (went_bytes = 0; went_bytes < two;) {
		const ssize_t n = read(fd, went + went_bytes, two - went_bytes);

		assert_true(n > 0);
		went_bytes += (size_t)n;
	}
	return fd;
}

/* Of FIRST, this byte is written when its memory has gone. Then all goes, and the VM is saved. */
static void go_with_a_nine_at(uint64_t byte)
{
	int fd;

	allocate(FIRST);
	allocate(SECOND);
	fd = begin_to_go();
	fill(FIRST, memory[FIRST] + byte, 1, 9);
	went_bytes += read_all(fd, went + went_bytes, sizeof(went) - went_bytes);
	stop_queues();
	save();
	close(fd);
}

/* What a program writes all the time does not go again and again. */
static void more_than_half_is_written_later(void **state)
{
	(void)state;
	go_with_a_nine_at(0);
	assert_true(went_bytes > 2 * (size_t)BYTES && went_bytes < 2 * (size_t)BYTES + MIB);
	assert_true(saved_bytes > 4 * MIB && saved_bytes < BYTES);
	come(2 * (size_t)BYTES - 1, 1);
}

/* ---- right ---- */

static void goes_again(void **state)
{
	(void)state;
	go_with_a_nine_at(BYTES - 1);
	assert_true(went_bytes > 2 * (size_t)BYTES + MIB && saved_bytes < MIB);
	come(2 * (size_t)BYTES - 1, 1);
}

/* Of one session all has been written since, of the other one a byte; and there is new memory. */
static void goes_late(void **state)
{
	const uint64_t old = BYTES;
	int fd;

	(void)state;
	allocate(FIRST);
	allocate(SECOND);
	fd = go_ahead();
	fill(FIRST, memory[FIRST], BYTES, 9);
	fill(SECOND, memory[SECOND] + BYTES - 1, 1, 9);
	allocate(SECOND);
	went_bytes = 2 * old + 4 * sizeof(struct ahead_piece);
	stop_queues();
	fd = go_late(fd);
	assert_true(went_bytes > 4 * old + MIB && went_bytes < 4 * old + 2 * (size_t)MIB);
	save();
	close(fd);
	assert_true(saved_bytes < MIB);
	come_twice(2 * old - 1, old + 1);
}

static void goes_and_comes(void **state)
{
	int fd;

	(void)state;
	allocate(FIRST);
	allocate(SECOND);
	fd = go_ahead();
	assert_true(went_bytes > 2 * (size_t)BYTES);
	/* A byte of the second piece. */
	fill(SECOND, memory[SECOND] + BYTES - 1, 1, 9);
	stop_queues();
	save();
	close(fd);
	assert_true(saved_bytes > MIB && saved_bytes < 2 * MIB);
	come_twice(2 * (size_t)BYTES - 1, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(wrong_moments, start, stop),
		cmocka_unit_test_setup_teardown(pieces_that_are_wrong, start, stop),
		cmocka_unit_test_setup_teardown(another_migration, start, stop),
		cmocka_unit_test_setup_teardown(not_come, start, stop),
		cmocka_unit_test_setup_teardown(late_at_wrong_moments, start, stop),
		cmocka_unit_test_setup_teardown(late_without_a_mirror, start, stop),
		cmocka_unit_test_setup_teardown(nobody_reads, start, stop),
		cmocka_unit_test_setup_teardown(mirrors_that_fail, start, stop),
		cmocka_unit_test_setup_teardown(more_than_half_is_written_later, start, stop),
		cmocka_unit_test_setup_teardown(goes_again, start, stop),
		cmocka_unit_test_setup_teardown(goes_late, start, stop),
		cmocka_unit_test_setup_teardown(goes_and_comes, start, stop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
