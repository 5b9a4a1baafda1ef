// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The thread of an id. All ranks of the communicator connect to it. When all ranks have sent a
 * message, it answers with the messages of all. It lives until all ranks have connected and the
 * last one has closed its connection.
 *
 * Anyone in the VM can connect, and with TCP anyone in the network. So a connection that does not
 * know the secret is closed, and none is waited for in the middle of a message. If there are too
 * many connections that have not said hello, the oldest of them is closed for the next one.
 */
#define _GNU_SOURCE /* accept4 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "qcu-library/nccl/kernels/layout.h"
#include "qcu-library/nccl/wire.h"

#define MOST (QCCL_MAX_RANKS + 32u) /* connections, with those that have not said hello */

struct guest {
	int fd;		 /* -1: none */
	int rank;	 /* -1: has not said hello */
	bool full, left; /* its message is there; it has left */
	uint64_t number; /* the first one that connected has the lowest */
	size_t used;
	struct {
		struct qccl_head head;
		char data[QCCL_MOST_OUR];
	} in;
};

struct host {
	int listening[2]; /* -1: none */
	uint64_t connected;
	unsigned char secret[QCCL_SECRET];
	uint32_t ranks;	     /* 0: not known yet */
	uint32_t here, gone; /* ranks that said hello; ranks that ended before they had left */
	uint32_t left;	     /* ranks that have left */
	bool started;	     /* all are there */
	struct guest guest[MOST];
};

static void answer_guest(struct guest *g, enum qccl_answer what, const void *data, size_t size)
{
	struct qccl_head head = {.what = what, .size = (uint32_t)size};
	struct iovec io[2] = {{&head, sizeof(head)}, {(void *)data, size}};
	struct msghdr m = {.msg_iov = io, .msg_iovlen = 2};

	/* A rank that does not read its answers has ended, or will be seen to have. */
	if (sendmsg(g->fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT) != (ssize_t)(sizeof(head) + size))
		shutdown(g->fd, SHUT_RDWR);
	g->full = false;
	g->used = 0;
}

static void drop_guest(struct host *h, struct guest *g)
{
	close(g->fd);
	g->fd = -1;
	if (g->rank < 0)
		return;
	if (!g->left)
		h->gone++;
	g->rank = -1;
}

static struct guest *of_rank(struct host *h, uint32_t rank)
{
	for (unsigned int i = 0; i < MOST; i++)
		if (h->guest[i].fd >= 0 && h->guest[i].rank == (int)rank)
			return &h->guest[i];
	return NULL;
}

static void answer_all(struct host *h, enum qccl_answer what, const void *data, size_t size)
{
	struct guest *g;

	for (uint32_t r = 0; r < h->ranks; r++) {
		g = of_rank(h, r);
		if (g && g->full && g->in.head.what != QCCL_SAY_SOME)
			answer_guest(g, what, data, size);
	}
}

/* The ranks that `g` wants to go on with, or 0: it says nothing of the kind. */
static uint32_t wanted_ranks(const struct guest *g)
{
	uint32_t ranks;

	if (!g || !g->full || g->in.head.what != QCCL_SAY_SOME ||
	    g->in.head.size != sizeof(struct qccl_some))
		return 0;
	memcpy(&ranks, g->in.data, sizeof(ranks));
	return ranks;
}

static void answer_some(struct host *h, uint32_t ranks, enum qccl_answer what, const void *data,
			size_t size)
{
	for (uint32_t r = 0; r < h->ranks; r++)
		if (ranks >> r & 1 && wanted_ranks(of_rank(h, r)) == ranks)
			answer_guest(of_rank(h, r), what, data, size);
}

/* Ranks that go on without the others do not wait for these, nor for what these have sent. */
static void answer_some_if_complete(struct host *h, uint32_t first)
{
	static __thread struct qccl_some all[QCCL_MAX_RANKS];
	struct guest *g = of_rank(h, first);
	const uint32_t ranks = wanted_ranks(g);
	bool complete = true;

	if (!g || !g->full || g->in.head.what != QCCL_SAY_SOME)
		return;
	/* A rank that does not count itself would wait for ever. */
	if (!(ranks >> first & 1) || (uint64_t)ranks >> h->ranks) {
		answer_guest(g, QCCL_ANSWER_MISMATCH, NULL, 0);
		return;
	}
	memset(all, 0, sizeof(all));
	for (uint32_t r = 0; r < h->ranks; r++) {
		if (!(ranks >> r & 1))
			continue;
		g = of_rank(h, r);
		if (!g || g->left || (g->full && wanted_ranks(g) != ranks)) {
			answer_some(h, ranks,
				    g && !g->left ? QCCL_ANSWER_MISMATCH : QCCL_ANSWER_GONE, NULL,
				    0);
			return;
		}
		complete &= g->full;
		memcpy(&all[r], g->in.data, sizeof(all[r]));
	}
	if (complete)
		answer_some(h, ranks, QCCL_ANSWER_OK, all, h->ranks * sizeof(all[0]));
}

/* Answers those that wait, if nothing is missing any more. */
static void answer_if_complete(struct host *h)
{
	static __thread char all[QCCL_MAX_RANKS * QCCL_MOST_OUR];
	struct guest *g, *first = NULL;
	size_t size = 0;

	if (!h->ranks)
		return;
	if (h->started)
		for (uint32_t r = 0; r < h->ranks; r++)
			answer_some_if_complete(h, r);
	if (h->left && h->left + h->gone == h->ranks)
		answer_all(h, QCCL_ANSWER_OK, NULL, 0);
	if (!h->left && h->gone)
		answer_all(h, QCCL_ANSWER_GONE, NULL, 0);
	if (h->left || h->here < h->ranks)
		return;
	for (uint32_t r = 0; r < h->ranks; r++) {
		g = of_rank(h, r);
		if (!g || !g->full || g->in.head.what == QCCL_SAY_SOME)
			return;
		first = first ? first : g;
		if (g->in.head.what != first->in.head.what ||
		    g->in.head.size != first->in.head.size) {
			answer_all(h, QCCL_ANSWER_MISMATCH, NULL, 0);
			return;
		}
		size = g->in.head.size;
		memcpy(all + r * size, g->in.data, size);
	}
	if (!h->started)
		size = 0;
	h->started = true;
	answer_all(h, QCCL_ANSWER_OK, all, h->ranks * size);
}

static bool hello(struct host *h, struct guest *g)
{
	struct qccl_hello m;
	unsigned char differ = 0;

	if (g->in.head.what != QCCL_SAY_HELLO || g->in.head.size != sizeof(m))
		return false;
	memcpy(&m, g->in.data, sizeof(m));
	for (unsigned int i = 0; i < QCCL_SECRET; i++)
		differ |= m.secret[i] ^ h->secret[i];
	if (differ)
		return false;
	if (m.version != QCCL_WIRE) {
		answer_guest(g, QCCL_ANSWER_VERSION, NULL, 0);
		return false;
	}
	if (!h->ranks && m.ranks && m.ranks <= QCCL_MAX_RANKS)
		h->ranks = m.ranks;
	if (m.ranks != h->ranks || m.rank >= m.ranks || of_rank(h, m.rank) || h->started) {
		answer_guest(g, QCCL_ANSWER_MISMATCH, NULL, 0);
		return false;
	}
	g->rank = (int)m.rank;
	h->here++;
	return true;
}

/* A whole message is there. False: this connection is of no use. */
static bool heard(struct host *h, struct guest *g)
{
	if (g->rank < 0 && !hello(h, g))
		return false;
	g->full = true;
	if (g->in.head.what == QCCL_SAY_LEAVE && !g->left) {
		g->left = true;
		h->left++;
	}
	return true;
}

static bool hear_guest(struct host *h, struct guest *g)
{
	size_t want = sizeof(g->in.head);
	ssize_t n;

	if (g->used >= want)
		want += g->in.head.size;
	/* Nothing may come while an answer is due. */
	n = g->full ? recv(g->fd, &g->in, 1, MSG_DONTWAIT | MSG_PEEK)
		    : recv(g->fd, (char *)&g->in + g->used, want - g->used, MSG_DONTWAIT);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR;
	if (!n || g->full)
		return false;
	g->used += (size_t)n;
	if (g->used == sizeof(g->in.head) && g->in.head.size > QCCL_MOST_OUR)
		return false;
	if (g->used < sizeof(g->in.head) || g->used < sizeof(g->in.head) + g->in.head.size)
		return true;
	return heard(h, g);
}

/* A slot for one more. There are more slots than ranks. */
static struct guest *make_room_for_guest(struct host *h)
{
	struct guest *oldest = NULL;

	for (unsigned int i = 0; i < MOST; i++) {
		struct guest *g = &h->guest[i];

		if (g->fd < 0)
			return g;
		if (g->rank < 0 && (!oldest || g->number < oldest->number))
			oldest = g;
	}
	drop_guest(h, oldest);
	return oldest;
}

static void welcome(struct host *h, int listening, bool tcp)
{
	int fd = accept4(listening, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct guest *g;

	if (fd < 0)
		return;
	if (tcp)
		qccl_net_prepare(fd);
	g = make_room_for_guest(h);
	memset(g, 0, sizeof(*g));
	g->fd = fd;
	g->rank = -1;
	g->number = h->connected++;
}

/* Also those ranks that come late must hear that one has ended. */
static bool over(const struct host *h)
{
	if (!h->ranks || h->here < h->ranks)
		return false;
	for (unsigned int i = 0; i < MOST; i++)
		if (h->guest[i].fd >= 0 && h->guest[i].rank >= 0)
			return false;
	return true;
}

static void close_listening(const int *listening)
{
	for (int i = 0; i < 2; i++)
		if (listening[i] >= 0)
			close(listening[i]);
}

static void *run_host_thread(void *arg)
{
	struct host *h = arg;
	struct pollfd p[MOST + 2];
	unsigned int of[MOST + 2], n;

	while (!over(h)) {
		for (n = 0; n < 2; n++)
			p[n] = (struct pollfd){.fd = h->listening[n], .events = POLLIN};
		for (unsigned int i = 0; i < MOST; i++)
			if (h->guest[i].fd >= 0) {
				of[n] = i;
				p[n++] = (struct pollfd){.fd = h->guest[i].fd, .events = POLLIN};
			}
		if (poll(p, n, -1) < 0)
			continue;
		for (unsigned int i = 2; i < n; i++)
			if (p[i].revents && !hear_guest(h, &h->guest[of[i]]))
				drop_guest(h, &h->guest[of[i]]);
		for (unsigned int i = 0; i < 2; i++)
			if (p[i].revents)
				welcome(h, h->listening[i], i == 1);
		answer_if_complete(h);
	}
	for (unsigned int i = 0; i < MOST; i++)
		if (h->guest[i].fd >= 0)
			close(h->guest[i].fd);
	close_listening(h->listening);
	free(h);
	return NULL;
}

ncclResult_t qccl_host_start(const int *listening, const unsigned char *secret)
{
	struct host *h = calloc(1, sizeof(*h));
	sigset_t all, old;
	pthread_t t;
	int err;

	if (!h) {
		close_listening(listening);
		return qccl_fail(ncclSystemError, "no memory");
	}
	memcpy(h->listening, listening, sizeof(h->listening));
	memcpy(h->secret, secret, sizeof(h->secret));
	for (unsigned int i = 0; i < MOST; i++)
		h->guest[i].fd = -1;
	/* Signals belong to the program. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = pthread_create(&t, NULL, run_host_thread, h);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (err) {
		close_listening(listening);
		free(h);
		return qccl_fail(ncclSystemError, "cannot make a thread: %s", strerror(err));
	}
	pthread_detach(t);
	return ncclSuccess;
}
