// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The thread that carries slots (carry.h). While launches are under way it looks often, because a
 * kernel cannot wake it. Otherwise it sleeps until a launch or a connection wakes it. If there are
 * graphs, it looks every millisecond, because the library does not see their launches.
 *
 * Messages of a connection are checked, although it knew the secret: a slot must have room, and a
 * credit must be for data that was sent.
 */
#define _GNU_SOURCE /* ppoll */
#include <errno.h>
#include <linux/sockios.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "qcu-library/nccl/carry.h"

#define FRAMES_AT_ONCE 16 /* of one connection, before the next one has its turn */
#define YIELDS	       16 /* looks without a pause */
#define SHORT_US       100u
#define LONG_US	       1000u

/* Pairs with the fences of kernels (device.cuh). */
static uint64_t read_channel_count(const qccl_counts *counts, uint32_t channel)
{
	return __atomic_load_n(&counts[channel][0], __ATOMIC_ACQUIRE);
}

static void show(qccl_counts *counts, uint32_t channel, uint64_t value)
{
	__atomic_store_n(&counts[channel][0], value, __ATOMIC_RELEASE);
}

bool qccl_carry_under_way(const struct qccl_far *f)
{
	for (uint32_t i = 0; i < f->channels; i++)
		if (read_channel_count(f->done, i) < __atomic_load_n(&f->last[i], __ATOMIC_SEQ_CST))
			return true;
	return false;
}

/* A child of the program may have the socket, too. */
static void disconnect(struct qccl_far_peer *p)
{
	shutdown(p->fd, SHUT_RDWR);
	close(p->fd);
	p->fd = -1;
}

/* A connection that has ended. If its rank did not say BYE, or is `wrong`, the kernels must not
 * wait for it. */
static void end_connection(struct qccl_far *f, struct qccl_far_peer *p, bool wrong)
{
	disconnect(p);
	if (p->left && !wrong)
		return;
	__atomic_store_n(&f->lost, true, __ATOMIC_RELEASE);
	*f->stop = 1;
}

static void start_frame(struct qccl_far_peer *p, enum qccl_carried what, uint32_t channel,
			const void *body, size_t size)
{
	p->out_head = (struct qccl_frame){what, channel, (uint32_t)size, 0};
	p->out_body = body;
	p->out_done = 0;
	p->sending = true;
}

static bool find_credits(const struct qccl_far *f, struct qccl_far_peer *p)
{
	bool any = false;

	for (uint32_t i = 0; i < f->channels; i++) {
		p->out_credits[i] = read_channel_count(p->credit_there, i);
		any |= p->out_credits[i] != p->told[i];
	}
	if (!any)
		return false;
	memcpy(p->told, p->out_credits, sizeof(p->told));
	start_frame(p, QCCL_CARRY_CREDITS, 0, p->out_credits, f->channels * sizeof(uint64_t));
	return true;
}

static bool find_slot(const struct qccl_far *f, struct qccl_far_peer *p)
{
	for (uint32_t k = 0; k < f->channels; k++) {
		uint32_t i = (p->next + k) % f->channels;
		uint64_t size;

		if (read_channel_count(p->arrived_there, i) == p->taken[i])
			continue;
		size = *(volatile uint64_t *)((char *)p->lengths + qccl_length(i, p->taken[i]));
		if (size > QCCL_SLOT_BYTES)
			size = QCCL_SLOT_BYTES;
		start_frame(p, QCCL_CARRY_SLOT, i, p->out + qccl_slot(i, p->taken[i]), size);
		p->next = i + 1;
		return true;
	}
	return false;
}

/* What is to be sent next. False: nothing. */
static bool find_frame(const struct qccl_far *f, struct qccl_far_peer *p, enum qccl_asked asked)
{
	if (find_credits(f, p) || find_slot(f, p))
		return true;
	if (asked != QCCL_FINISH || p->said_bye)
		return false;
	start_frame(p, QCCL_CARRY_BYE, 0, "", 0);
	return true;
}

static void end_frame(struct qccl_far_peer *p)
{
	p->sending = false;
	if (p->out_head.what == QCCL_CARRY_SLOT)
		p->taken[p->out_head.channel]++;
	p->said_bye |= p->out_head.what == QCCL_CARRY_BYE;
}

/* Both return whether anything moved. */
static bool send_more(struct qccl_far *f, struct qccl_far_peer *p, enum qccl_asked asked)
{
	const size_t head = sizeof(p->out_head);
	bool moved = false;

	p->blocked = false;
	for (int i = 0; i < FRAMES_AT_ONCE && p->fd >= 0 && !p->deaf;) {
		struct iovec io[2];
		struct msghdr m = {.msg_iov = io, .msg_iovlen = 2};
		size_t in_head, in_body;
		ssize_t n;

		if (!p->sending && !find_frame(f, p, asked))
			break;
		in_head = p->out_done < head ? p->out_done : head;
		in_body = p->out_done - in_head;
		io[0] = (struct iovec){(char *)&p->out_head + in_head, head - in_head};
		io[1] = (struct iovec){(char *)p->out_body + in_body, p->out_head.size - in_body};
		n = sendmsg(p->fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN) {
			p->blocked = true;
			break;
		}
		moved = true;
		/* What was received before tells whether this is an error. */
		if (n < 0) {
			p->deaf = true;
			break;
		}
		p->out_done += (size_t)n;
		if (p->out_done == head + p->out_head.size) {
			end_frame(p);
			i++;
		}
	}
	return moved;
}

/* A frame's head is there. False: it is wrong. */
static bool begin_frame(const struct qccl_far *f, struct qccl_far_peer *p)
{
	const struct qccl_frame *h = &p->in_head;
	uint32_t i = h->channel;

	if (h->pad || i >= f->channels)
		return false;
	switch (h->what) {
	case QCCL_CARRY_SLOT:
		p->in_body = p->in + qccl_slot(i, p->got[i]);
		return !p->left && h->size && h->size <= QCCL_SLOT_BYTES &&
		       p->got[i] - read_channel_count(p->credit_there, i) < QCCL_SLOTS;
	case QCCL_CARRY_CREDITS:
		p->in_body = p->in_credits;
		return h->size == f->channels * sizeof(uint64_t);
	default:
		return h->what == QCCL_CARRY_BYE && !h->size && !p->left;
	}
}

static bool take_credits(const struct qccl_far *f, struct qccl_far_peer *p)
{
	for (uint32_t i = 0; i < f->channels; i++) {
		if (p->in_credits[i] < read_channel_count(p->credit_here, i) ||
		    p->in_credits[i] > p->taken[i])
			return false;
		show(p->credit_here, i, p->in_credits[i]);
	}
	return true;
}

static bool take_frame(const struct qccl_far *f, struct qccl_far_peer *p)
{
	switch (p->in_head.what) {
	case QCCL_CARRY_SLOT:
		show(p->arrived_here, p->in_head.channel, ++p->got[p->in_head.channel]);
		return true;
	case QCCL_CARRY_CREDITS:
		return take_credits(f, p);
	default:
		p->left = true;
		return true;
	}
}

static bool receive_more(struct qccl_far *f, struct qccl_far_peer *p)
{
	const size_t head = sizeof(p->in_head);
	bool moved = false;

	for (int i = 0; i < FRAMES_AT_ONCE && p->fd >= 0;) {
		bool in_head = p->in_done < head;
		char *to = in_head ? (char *)&p->in_head + p->in_done
				   : (char *)p->in_body + (p->in_done - head);
		size_t want = in_head ? head - p->in_done : p->in_head.size + head - p->in_done;
		ssize_t n = recv(p->fd, to, want, MSG_DONTWAIT);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			break;
		moved = true;
		if (n <= 0) {
			end_connection(f, p, false);
			break;
		}
		p->in_done += (size_t)n;
		if (p->in_done < head)
			continue;
		if (in_head && !begin_frame(f, p)) {
			end_connection(f, p, true);
			break;
		}
		if (p->in_done < head + p->in_head.size)
			continue;
		p->in_done = 0;
		i++;
		if (!take_frame(f, p))
			end_connection(f, p, true);
	}
	return moved;
}

/* Whether all that this rank has to send is in the others' systems. */
static bool all_sent(const struct qccl_far *f, enum qccl_asked asked)
{
	for (unsigned int k = 0; k < f->peers; k++) {
		const struct qccl_far_peer *p = &f->peer[k];
		int left;

		if (p->fd < 0 || p->deaf)
			continue;
		if (p->sending || (asked == QCCL_FINISH && !p->said_bye))
			return false;
		for (uint32_t i = 0; i < f->channels; i++)
			if (read_channel_count(p->arrived_there, i) != p->taken[i])
				return false;
		if (ioctl(p->fd, SIOCOUTQ, &left) || left)
			return false;
	}
	return true;
}

static void sleep_some(struct qccl_far *f, long us)
{
	struct timespec t = {us / 1000000, us % 1000000 * 1000};
	struct pollfd p[QCCL_MAX_RANKS + 1];
	unsigned int n = 1;
	uint64_t count;

	p[0] = (struct pollfd){.fd = f->wake, .events = POLLIN};
	for (unsigned int k = 0; k < f->peers; k++)
		if (f->peer[k].fd >= 0)
			p[n++] = (struct pollfd){.fd = f->peer[k].fd,
						 .events = POLLIN |
							   (f->peer[k].blocked ? POLLOUT : 0)};
	if (ppoll(p, n, us < 0 ? NULL : &t, NULL) > 0 && p[0].revents)
		(void)!read(f->wake, &count, sizeof(count));
}

/* What the program wants, and what it hears of. */
static enum qccl_asked answer_program(struct qccl_far *f)
{
	enum qccl_asked asked;

	pthread_mutex_lock(&f->lock);
	asked = f->asked;
	pthread_mutex_unlock(&f->lock);
	if (asked != QCCL_RUN && all_sent(f, asked)) {
		pthread_mutex_lock(&f->lock);
		f->sent_all = f->asked == asked;
		pthread_cond_broadcast(&f->changed);
		pthread_mutex_unlock(&f->lock);
	}
	return asked;
}

static bool move_all(struct qccl_far *f, enum qccl_asked asked)
{
	bool moved = false;

	for (unsigned int k = 0; k < f->peers; k++) {
		moved |= send_more(f, &f->peer[k], asked);
		moved |= receive_more(f, &f->peer[k]);
	}
	return moved;
}

/* How long to wait after so many looks in vain. Negative: until something wakes the thread. */
static long pause_of(struct qccl_far *f, unsigned int idle, bool waited_for)
{
	bool under_way = qccl_carry_under_way(f);
	long most = under_way ? SHORT_US : LONG_US, us = 5l << (idle / 2 < 10 ? idle / 2 : 10);

	if (us < most)
		return us;
	/* qccl_carry_wake() looks at `asleep`. After it is set, everything is looked at once more.
	 */
	if (!under_way && !waited_for && !__atomic_load_n(&f->graphs, __ATOMIC_SEQ_CST)) {
		if (f->asleep)
			return -1;
		__atomic_store_n(&f->asleep, true, __ATOMIC_SEQ_CST);
		return 0;
	}
	return most;
}

static void work(struct qccl_far *f)
{
	unsigned int idle = 0;

	while (!__atomic_load_n(&f->lost, __ATOMIC_RELAXED)) {
		enum qccl_asked asked = answer_program(f);
		long us;

		if (asked == QCCL_QUIT)
			return;
		if (move_all(f, asked)) {
			idle = 0;
			__atomic_store_n(&f->asleep, false, __ATOMIC_SEQ_CST);
			continue;
		}
		if (++idle < YIELDS) {
			sched_yield();
			continue;
		}
		us = pause_of(f, idle - YIELDS, asked != QCCL_RUN && !f->sent_all);
		if (!us)
			continue;
		sleep_some(f, us);
		if (us > 0)
			continue;
		idle = 0;
		__atomic_store_n(&f->asleep, false, __ATOMIC_SEQ_CST);
	}
}

static void *run_carrying_thread(void *arg)
{
	struct qccl_far *f = arg;

	(void)prctl(PR_SET_TIMERSLACK, 1000, 0, 0, 0);
	work(f);
	for (unsigned int k = 0; k < f->peers; k++)
		if (f->peer[k].fd >= 0)
			disconnect(&f->peer[k]);
	pthread_mutex_lock(&f->lock);
	f->ended = true;
	pthread_cond_broadcast(&f->changed);
	pthread_mutex_unlock(&f->lock);
	return NULL;
}

int qccl_carry_start(struct qccl_far *f)
{
	sigset_t all, old;
	int err;

	f->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (f->wake < 0)
		return errno;
	/* Signals belong to the program. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = pthread_create(&f->thread, NULL, run_carrying_thread, f);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	f->has_thread = !err;
	return err;
}

void qccl_carry_wake(struct qccl_far *f)
{
	const uint64_t one = 1;

	if (__atomic_load_n(&f->asleep, __ATOMIC_SEQ_CST))
		(void)!write(f->wake, &one, sizeof(one));
}

void qccl_carry_ask(struct qccl_far *f, enum qccl_asked what, unsigned int seconds)
{
	const uint64_t one = 1;
	struct timespec until;
	int err = 0;

	if (!f->has_thread)
		return;
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += seconds;
	pthread_mutex_lock(&f->lock);
	f->asked = what;
	f->sent_all = false;
	(void)!write(f->wake, &one, sizeof(one));
	while (!err && !f->ended && (what == QCCL_QUIT || !f->sent_all))
		err = seconds ? pthread_cond_timedwait(&f->changed, &f->lock, &until)
			      : pthread_cond_wait(&f->changed, &f->lock);
	pthread_mutex_unlock(&f->lock);
}
