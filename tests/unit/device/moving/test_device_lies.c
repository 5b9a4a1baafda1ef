// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Mirrors that lie about the memory that goes ahead (host/ahead.c): this file plays the mirrors of
 * two sessions, the poll loop and QEMU. Whatever the first mirror says, it costs no more than it
 * may, and the other session's memory goes.
 */
#define _GNU_SOURCE
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

#include "qcu-device/host/vhost.h"

enum { LIAR = 1, HONEST, SESSIONS = HONEST };
#define PIECE 1000u

static struct device d;
static struct ring_state states[QCU_MAX_SESSIONS + 1];
static int mirror_end[SESSIONS + 1], qemu_end = -1;
static uint8_t *buffer;

/* What has come to QEMU: bytes and pieces of each session. */
static struct {
	uint64_t bytes[SESSIONS + 1];
	unsigned int pieces[SESSIONS + 1];
	uint8_t data[1 << 16];
	size_t have;
} came;

/* What the liar answers to the n-th question. Its answer has `bytes` bytes. */
static void (*lie)(unsigned int n, const struct mirror_message *m, struct mirror_answer *a,
		   size_t *bytes);
static unsigned int asked[SESSIONS + 1];

/* ---- the poll loop ---- */

static struct watched {
	int fd;
	short events;
	watch_fn *fn;
	unsigned int queue;
} watched[8];

static struct watched *find_watched(int fd)
{
	unsigned int i = 0;

	while (i < 7 && watched[i].fd != fd)
		i++;
	return &watched[i];
}

void device_unwatch(struct device *unused, int fd)
{
	(void)unused;
	find_watched(fd)->fd = -1;
}

static void watch_for(int fd, short events, watch_fn *fn, unsigned int queue)
{
	device_unwatch(&d, fd);
	*find_watched(-1) = (struct watched){fd, events, fn, queue};
}

void device_watch(struct device *unused, int fd, watch_fn *fn, unsigned int queue)
{
	(void)unused;
	watch_for(fd, POLLIN, fn, queue);
}

void device_watch_writable(struct device *unused, int fd, watch_fn *fn)
{
	(void)unused;
	watch_for(fd, POLLOUT, fn, 0);
}

void spares_expect(struct device *unused, unsigned int queue, int ahead, uint64_t bytes)
{
	(void)unused;
	(void)queue;
	(void)ahead;
	(void)bytes;
}

void spares_expect_nothing(struct device *unused)
{
	(void)unused;
}

/* ---- the mirrors ---- */

static void say_piece(struct mirror_answer *a, uint64_t addr, uint32_t len)
{
	memset(buffer, 7, PIECE);
	a->ok = true;
	a->addr = addr;
	a->len = len;
}

/* One piece, and nothing is written later. */
static void be_honest(unsigned int n, struct mirror_answer *a)
{
	if (n == 1)
		say_piece(a, 4096, PIECE);
}

bool mirror_tell(const struct mirror_process *p, const struct mirror_message *m, const int *fds,
		 unsigned int n, int flags)
{
	struct mirror_answer a = {.what = MIRROR_AHEAD};
	size_t bytes = sizeof(a);
	const unsigned int q = m->session;

	(void)p;
	(void)flags;
	if (n && !buffer)
		buffer = mmap(NULL, AHEAD_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fds[0], 0);
	asked[q]++;
	if (q == HONEST)
		be_honest(asked[q], &a);
	else
		lie(asked[q], m, &a, &bytes);
	return !bytes || send(mirror_end[q], &a, bytes, 0) == (ssize_t)bytes;
}

/* ---- QEMU ---- */

/* Each piece that has come has the sum of its bytes. */
static void take_pieces_that_came(void)
{
	struct ahead_piece p;

	while (came.have >= sizeof(p)) {
		memcpy(&p, came.data, sizeof(p));
		assert_true(p.session >= 1 && p.session <= SESSIONS && p.len <= PIECE);
		if (came.have < sizeof(p) + p.len)
			return;
		assert_true(p.sum == ahead_sum(came.data + sizeof(p), p.len));
		came.bytes[p.session] += p.len;
		came.pieces[p.session]++;
		came.have -= sizeof(p) + p.len;
		memmove(came.data, came.data + sizeof(p) + p.len, came.have);
	}
}

/* Until nothing happens any more. Returns whether the device has sent its last piece. */
static bool run(void)
{
	bool something = true, ends = false;
	unsigned int i;
	ssize_t n;

	while (something) {
		something = false;
		for (i = 0; i < 8; i++) {
			struct pollfd p = {.fd = watched[i].fd, .events = watched[i].events};

			if (p.fd < 0 || poll(&p, 1, 0) <= 0)
				continue;
			watched[i].fn(&d, watched[i].queue);
			something = true;
		}
		n = recv(qemu_end, came.data + came.have, sizeof(came.data) - came.have,
			 MSG_DONTWAIT);
		ends |= !n;
		if (n > 0) {
			came.have += (size_t)n;
			something = true;
			take_pieces_that_came();
		}
	}
	return ends;
}

static int new_socket(void)
{
	int ends[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends),
			 0);
	if (qemu_end >= 0)
		close(qemu_end);
	qemu_end = ends[0];
	return ends[1];
}

static int start(void **state)
{
	static struct device_options opt = {.sessions = SESSIONS};
	unsigned int q, i;
	int ends[2];

	(void)state;
	memset(&d, 0, sizeof(d));
	memset(&came, 0, sizeof(came));
	memset(asked, 0, sizeof(asked));
	for (i = 0; i < 8; i++)
		watched[i].fd = -1;
	d.opt = &opt;
	d.states = states;
	d.ahead.fd = d.ahead.buffer = d.coming = -1;
	for (q = 1; q <= SESSIONS; q++) {
		if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
			return -1;
		mirror_end[q] = ends[0];
		d.session[q].state = SESSION_LIVE;
		d.session[q].mirror.ctl_fd = ends[1];
	}
	return 0;
}

static int stop(void **state)
{
	unsigned int q;

	(void)state;
	ahead_over(&d);
	for (q = 1; q <= SESSIONS; q++) {
		close(mirror_end[q]);
		close(d.session[q].mirror.ctl_fd);
	}
	if (buffer)
		munmap(buffer, AHEAD_BYTES);
	buffer = NULL;
	close(qemu_end);
	qemu_end = -1;
	return 0;
}

/* The first pass and all looks. So many pieces of the liar have come. */
static void goes(unsigned int pieces, uint64_t bytes)
{
	assert_true(ahead_start(&d, new_socket()));
	assert_true(run());
	assert_int_equal(came.pieces[LIAR], pieces);
	assert_true(came.bytes[LIAR] == bytes);
	assert_int_equal(came.pieces[HONEST], 1);
}

/* ---- lies ---- */

static void say_too_much(unsigned int n, const struct mirror_message *m, struct mirror_answer *a,
			 size_t *bytes)
{
	(void)n;
	(void)m;
	(void)bytes;
	say_piece(a, 4096, AHEAD_BYTES + 1);
}

static void say_nothing_at_an_address(unsigned int n, const struct mirror_message *m,
				      struct mirror_answer *a, size_t *bytes)
{
	(void)n;
	(void)m;
	(void)bytes;
	say_piece(a, 4096, 0);
}

static void say_half_an_answer(unsigned int n, const struct mirror_message *m,
			       struct mirror_answer *a, size_t *bytes)
{
	(void)n;
	(void)m;
	say_piece(a, 4096, PIECE);
	*bytes = sizeof(*a) / 2;
}

static void say_another_thing(unsigned int n, const struct mirror_message *m,
			      struct mirror_answer *a, size_t *bytes)
{
	(void)n;
	(void)m;
	(void)bytes;
	say_piece(a, 4096, PIECE);
	a->what = MIRROR_SAVE;
}

static void wrong_answers(void **state)
{
	void (*const lies[])(unsigned int, const struct mirror_message *, struct mirror_answer *,
			     size_t *) = {say_too_much, say_nothing_at_an_address,
					  say_half_an_answer, say_another_thing};
	size_t i;

	for (i = 0; i < sizeof(lies) / sizeof(*lies); i++) {
		lie = lies[i];
		goes(0, 0);
		/* Where nothing has gone, nothing is looked for. */
		assert_int_equal(asked[LIAR], 1);
		stop(state);
		assert_int_equal(start(state), 0);
	}
}

/* Pieces of one byte that are zero, which do not go: as many as may be. */
static void say_zeros_for_ever(unsigned int n, const struct mirror_message *m,
			       struct mirror_answer *a, size_t *bytes)
{
	(void)n;
	(void)m;
	(void)bytes;
	buffer[0] = 0;
	a->ok = true;
	a->addr = 4096;
	a->len = 1;
}

static void no_end(void **state)
{
	(void)state;
	lie = say_zeros_for_ever;
	goes(0, 0);
	assert_int_equal(asked[LIAR], (1u << 18) + 1);
}

/* Two pieces; then, in the first look, it has found so much, and has pieces of so much. */
static uint64_t finds, piece_of_look;

static void say_what_was_written(unsigned int n, const struct mirror_message *m,
				 struct mirror_answer *a, size_t *bytes)
{
	(void)bytes;
	if (m->what == MIRROR_AGAIN) {
		a->ok = true;
		a->addr = finds;
	} else if (n <= 2) {
		say_piece(a, n * 4096, PIECE);
	} else if (n > 3) {
		say_piece(a, 4096, (uint32_t)piece_of_look);
	}
}

static void more_than_half(void **state)
{
	(void)state;
	lie = say_what_was_written;
	finds = PIECE + 1;
	piece_of_look = 1;
	goes(2, 2 * (uint64_t)PIECE);
}

static void more_than_it_found(void **state)
{
	(void)state;
	lie = say_what_was_written;
	finds = 900;
	piece_of_look = 901;
	goes(2, 2 * (uint64_t)PIECE);
}

/* Of 900 bytes two pieces of 400 go. In the next look no more than half of that may. */
static void pieces_for_ever(void **state)
{
	(void)state;
	lie = say_what_was_written;
	finds = 900;
	piece_of_look = 400;
	goes(4, 2 * (uint64_t)PIECE + 800);
}

/* The VM stands: more than an archive may have, and an answer that never comes. */
static void late(void **state)
{
	(void)state;
	lie = say_what_was_written;
	finds = PIECE + 1;
	piece_of_look = PIECE;
	goes(2, 2 * (uint64_t)PIECE);
	d.session[LIAR].held = d.session[HONEST].held = true;
	finds = STATE_ARCHIVE_MAX + 1;
	assert_true(ahead_last(&d, new_socket()));
	assert_true(run());
	assert_int_equal(came.pieces[LIAR], 2);
	finds = 2 * PIECE;
	assert_true(ahead_last(&d, new_socket()));
	assert_true(run());
	assert_int_equal(came.pieces[LIAR], 4);
	/* The honest one is asked each time, once its memory has gone. */
	assert_int_equal(asked[HONEST], 5);
}

static void say_nothing(unsigned int n, const struct mirror_message *m, struct mirror_answer *a,
			size_t *bytes)
{
	(void)n;
	(void)m;
	(void)a;
	*bytes = 0;
}

/* The other session's memory goes when there is no patience left. It is not asked again. */
static void silence(void **state)
{
	(void)state;
	lie = say_nothing;
	assert_true(ahead_start(&d, new_socket()));
	assert_false(run());
	ahead_look(&d);
	assert_false(run());
	assert_int_equal(came.pieces[HONEST], 0);
	d.ahead.asked_ns = 0;
	ahead_look(&d);
	assert_true(run());
	assert_int_equal(came.pieces[HONEST], 1);
	assert_true(d.session[LIAR].mirror.owes);
	assert_true(ahead_start(&d, new_socket()));
	assert_true(run());
	assert_int_equal(asked[LIAR], 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(wrong_answers, start, stop),
		cmocka_unit_test_setup_teardown(no_end, start, stop),
		cmocka_unit_test_setup_teardown(more_than_half, start, stop),
		cmocka_unit_test_setup_teardown(more_than_it_found, start, stop),
		cmocka_unit_test_setup_teardown(pieces_for_ever, start, stop),
		cmocka_unit_test_setup_teardown(late, start, stop),
		cmocka_unit_test_setup_teardown(silence, start, stop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
