// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Connects far ranks. Each rank that has far ranks listens, and all tell each other their
 * addresses. Of two ranks, the one with the higher number connects. Anyone can connect. So a
 * connection that does not know the secret is closed, and none is waited for in the middle of its
 * first message.
 */
#define _GNU_SOURCE /* accept4 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "qcu-library/nccl/carry.h"
#include "qcu-library/nccl/far.h"
#include "qcu-library/nccl/net.h"
#include "qcu-library/nccl/wire.h"

#define KNOCKING     64 /* connections that have not said who they are */
#define LAST_SECONDS 60 /* for what has connected to say who it is */
#define EXIT_SECONDS 10 /* for what is on its way when the process ends */

const char qccl_far_magic[8] = "qCUDA-F";

static struct qccl_far *all;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* The pinned memory: lines of launches that have ended, and then for each far rank four kinds of
 * counts, the lengths, the slots that are sent, and those that are received. */
#define COUNTS(channels)  ((size_t)(channels) * sizeof(qccl_counts))
#define LENGTHS(channels) ((size_t)(channels)*QCCL_LINE)
#define SLOTS(channels)	  ((size_t)qccl_slot(channels, 0))
#define BOX(channels)	  (4 * COUNTS(channels) + LENGTHS(channels) + 2 * SLOTS(channels))

_Static_assert(QCCL_SLOTS * sizeof(uint64_t) <= QCCL_LINE, "a channel's lengths have a line");

uint32_t qccl_far_channels(int ranks)
{
	return ranks <= 8 ? QCCL_FAR_CHANNELS : ranks <= 16 ? QCCL_FAR_CHANNELS / 2 : 2;
}

static void share_out_pinned(struct qccl_far *f, uint64_t device, struct qccl_way *way,
			     uint64_t *done)
{
	const size_t counts = COUNTS(f->channels), slots = SLOTS(f->channels);
	char *at = (char *)f->pinned + counts;
	const uint64_t to_device = device - (uint64_t)(uintptr_t)f->pinned;

	f->done = f->pinned;
	*done = device;
	for (unsigned int k = 0; k < f->peers; k++, at += BOX(f->channels)) {
		struct qccl_far_peer *p = &f->peer[k];
		struct qccl_way *w = &way[p->rank];
		uint64_t there = (uint64_t)(uintptr_t)at + to_device;

		p->arrived_there = (void *)at;
		p->credit_here = (void *)(at + counts);
		p->arrived_here = (void *)(at + 2 * counts);
		p->credit_there = (void *)(at + 3 * counts);
		p->lengths = (void *)(at + 4 * counts);
		p->out = at + 4 * counts + LENGTHS(f->channels);
		p->in = p->out + slots;
		w->arrived_there = there;
		w->credit_here = there + counts;
		w->arrived_here = there + 2 * counts;
		w->credit_there = there + 3 * counts;
		w->lengths = there + 4 * counts;
		w->out = there + 4 * counts + LENGTHS(f->channels);
		w->in = w->out + slots;
	}
}

static ncclResult_t allocate_pinned_memory(struct qccl_far *f, struct qccl_way *way, uint64_t *done)
{
	const size_t size = COUNTS(f->channels) + f->peers * BOX(f->channels);
	ncclResult_t res;
	void *device;

	res = qccl_cuda(cudaHostAlloc(&f->pinned, size,
				      cudaHostAllocMapped | cudaHostAllocPortable),
			"cudaHostAlloc");
	if (res)
		return res;
	memset(f->pinned, 0, size);
	res = qccl_cuda(cudaHostGetDevicePointer(&device, f->pinned, 0),
			"cudaHostGetDevicePointer");
	if (!res)
		share_out_pinned(f, (uint64_t)(uintptr_t)device, way, done);
	return res;
}

static ncclResult_t listen_somewhere(struct qccl_address *a, int *fd)
{
	if (!qccl_net_choose(a, true))
		return qccl_refuse(ncclSystemError, "there is no network interface for TCP (is "
						    "NCCL_SOCKET_IFNAME right?)");
	*fd = qccl_net_listen(a);
	return *fd < 0 ? qccl_refuse(ncclSystemError, "cannot listen for TCP: %s", strerror(errno))
		       : ncclSuccess;
}

static struct qccl_far_hello hello_of(const struct qccl_meeting *m, int to)
{
	struct qccl_far_hello h = {
		.version = QCCL_WIRE, .from = (uint32_t)m->rank, .to = (uint32_t)to};

	memcpy(h.magic, qccl_far_magic, sizeof(h.magic));
	memcpy(h.secret, m->secret, sizeof(h.secret));
	return h;
}

static ncclResult_t connect_to(struct qccl_far_peer *p, const struct qccl_meeting *m,
			       const struct qccl_address *a)
{
	struct qccl_far_hello h = hello_of(m, p->rank);

	p->fd = qccl_net_connect(a);
	if (p->fd < 0 || send(p->fd, &h, sizeof(h), MSG_NOSIGNAL) != sizeof(h))
		return qccl_refuse(ncclSystemError,
				   "rank %d cannot reach rank %d by TCP: %s (which interface is "
				   "used, NCCL_SOCKET_IFNAME says)",
				   m->rank, p->rank, strerror(errno));
	return ncclSuccess;
}

/* Someone who has connected and not yet said who it is. */
struct knocking {
	int fd; /* -1: nobody */
	size_t used;
	struct qccl_far_hello said;
};

struct door {
	int listening;
	unsigned int next; /* whose place the next one gets: those that say nothing make room */
	struct knocking knocking[KNOCKING];
};

static bool missing(const struct qccl_far *f)
{
	for (unsigned int k = 0; k < f->peers; k++)
		if (f->peer[k].fd < 0)
			return true;
	return false;
}

/* A whole hello is there. */
static void let_in(struct qccl_far *f, const struct qccl_meeting *m, struct knocking *n)
{
	struct qccl_far_hello want = hello_of(m, m->rank);
	const unsigned char *a = (const void *)&want, *b = (const void *)&n->said;
	unsigned char differ = 0;

	want.from = n->said.from;
	for (size_t i = 0; i < sizeof(want); i++)
		differ |= a[i] ^ b[i];
	for (unsigned int k = 0; !differ && k < f->peers; k++) {
		struct qccl_far_peer *p = &f->peer[k];

		if (p->fd < 0 && p->rank > m->rank && (uint32_t)p->rank == n->said.from) {
			p->fd = n->fd;
			n->fd = -1;
			qccl_net_prepare(p->fd);
			return;
		}
	}
	close(n->fd);
	n->fd = -1;
}

static void hear_knocking(struct qccl_far *f, const struct qccl_meeting *m, struct knocking *n)
{
	ssize_t got =
		recv(n->fd, (char *)&n->said + n->used, sizeof(n->said) - n->used, MSG_DONTWAIT);

	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (got <= 0) {
		close(n->fd);
		n->fd = -1;
		return;
	}
	n->used += (size_t)got;
	if (n->used == sizeof(n->said))
		let_in(f, m, n);
}

static void open_door(struct door *d)
{
	int fd = accept4(d->listening, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct knocking *n = &d->knocking[d->next % KNOCKING];

	if (fd < 0)
		return;
	d->next++;
	if (n->fd >= 0)
		close(n->fd);
	n->fd = fd;
	n->used = 0;
}

/* Waits for the meeting's answer (if `fd` >= 0) or for anyone at the door. True: the answer is
 * there. */
static bool wait_door(struct qccl_far *f, const struct qccl_meeting *m, struct door *d, int fd)
{
	struct pollfd p[KNOCKING + 2];
	struct knocking *of[KNOCKING + 2];
	unsigned int n = 2;

	p[0] = (struct pollfd){.fd = fd, .events = POLLIN};
	p[1] = (struct pollfd){.fd = d->listening, .events = POLLIN};
	for (unsigned int i = 0; i < KNOCKING; i++)
		if (d->knocking[i].fd >= 0) {
			of[n] = &d->knocking[i];
			p[n++] = (struct pollfd){.fd = d->knocking[i].fd, .events = POLLIN};
		}
	if (poll(p, n, fd < 0 ? 1000 : -1) <= 0)
		return false;
	for (unsigned int i = 2; i < n; i++)
		if (p[i].revents)
			hear_knocking(f, m, of[i]);
	if (p[1].revents)
		open_door(d);
	return fd >= 0 && p[0].revents;
}

/* Nobody sets this clock, and it stands still while the machine sleeps. */
static time_t monotonic_seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec;
}

/* Tells the own result of connecting, and lets the others in. When all have told, all have
 * connected. */
static ncclResult_t gather(struct qccl_far *f, struct qccl_meeting *m, int listening,
			   ncclResult_t mine)
{
	ncclResult_t every[QCCL_MAX_RANKS], res;
	struct door d = {.listening = listening};
	time_t last;

	for (unsigned int i = 0; i < KNOCKING; i++)
		d.knocking[i].fd = -1;
	res = qccl_tell_begin(m, &mine, sizeof(mine));
	while (!res && !wait_door(f, m, &d, m->fd))
		;
	if (!res)
		res = qccl_tell_end(m, every, sizeof(mine));
	for (int i = 0; !res && !mine && i < m->ranks; i++)
		if (every[i])
			res = qccl_fail(ncclRemoteError, "rank %d could not join: %s", i,
					ncclGetErrorString(every[i]));
	last = monotonic_seconds() + LAST_SECONDS;
	while (!res && !mine && missing(f) && monotonic_seconds() < last)
		(void)wait_door(f, m, &d, -1);
	for (unsigned int i = 0; i < KNOCKING; i++)
		if (d.knocking[i].fd >= 0)
			close(d.knocking[i].fd);
	if (!res && !mine && missing(f))
		res = qccl_fail(ncclRemoteError, "a rank has connected and does not say which");
	return mine ? mine : res;
}

/* What a program that ends without an end of its communicators has sent must arrive. If nothing is
 * under way, the others need not take this for an error. */
static void flush_all(void)
{
	pthread_mutex_lock(&lock);
	for (struct qccl_far *f = all; f; f = f->next)
		if (f->has_thread && f->pid == getpid())
			qccl_carry_ask(f, qccl_carry_under_way(f) ? QCCL_FLUSH : QCCL_FINISH,
				       EXIT_SECONDS);
	pthread_mutex_unlock(&lock);
}

static void add_to_exit_flush(struct qccl_far *f)
{
	static bool registered;

	pthread_mutex_lock(&lock);
	if (!registered)
		registered = !atexit(flush_all);
	f->next = all;
	all = f;
	pthread_mutex_unlock(&lock);
}

static struct qccl_far *make_far(uint32_t far, uint32_t channels, volatile uint32_t *stop)
{
	struct qccl_far *f = calloc(1, sizeof(*f));
	pthread_condattr_t attr;

	if (!f)
		return NULL;
	pthread_mutex_init(&f->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&f->changed, &attr);
	pthread_condattr_destroy(&attr);
	f->wake = -1;
	f->pid = getpid();
	f->channels = channels;
	f->stop = stop;
	for (int i = 0; i < (int)QCCL_MAX_RANKS; i++)
		if (far & 1u << i) {
			f->peer[f->peers].rank = i;
			f->peer[f->peers++].fd = -1;
		}
	add_to_exit_flush(f);
	return f;
}

ncclResult_t qccl_far_open(struct qccl_far **to, struct qccl_meeting *m, uint32_t far,
			   uint32_t channels, volatile uint32_t *stop, struct qccl_way *way,
			   uint64_t *done)
{
	struct qccl_where mine, where[QCCL_MAX_RANKS];
	struct qccl_far *f, none = {.peers = 0};
	int err, listening = -1;
	ncclResult_t res;

	memset(&mine, 0, sizeof(mine));
	*to = f = far ? make_far(far, channels, stop) : NULL;
	if (far)
		mine.result = !f ? qccl_fail(ncclSystemError, "no memory")
				 : allocate_pinned_memory(f, way, done);
	if (f && !mine.result)
		mine.result = listen_somewhere(&mine.address, &listening);
	res = qccl_tell(m, &mine, where, sizeof(mine));
	res = mine.result ? mine.result : res;
	for (int i = 0; !res && i < m->ranks; i++)
		if (where[i].result)
			res = qccl_fail(ncclRemoteError, "rank %d could not join: %s", i,
					ncclGetErrorString(where[i].result));
	if (res)
		goto out;
	for (unsigned int k = 0; !res && f && k < f->peers; k++)
		if (f->peer[k].rank < m->rank)
			res = connect_to(&f->peer[k], m, &where[f->peer[k].rank].address);
	res = gather(f ? f : &none, m, listening, res);
	err = !res && f ? qccl_carry_start(f) : 0;
	if (err)
		res = qccl_fail(ncclSystemError, "cannot make a thread: %s", strerror(err));
out:
	if (listening >= 0)
		close(listening);
	return res;
}

uint64_t qccl_far_launch(struct qccl_far *f, uint32_t blocks, bool captured)
{
	uint64_t number = captured ? 0 : ++f->number;

	if (captured)
		__atomic_store_n(&f->graphs, true, __ATOMIC_SEQ_CST);
	for (uint32_t i = 0; number && i < blocks && i < f->channels; i++)
		__atomic_store_n(&f->last[i], number, __ATOMIC_SEQ_CST);
	qccl_carry_wake(f);
	return number;
}

bool qccl_far_lost(const struct qccl_far *f)
{
	return __atomic_load_n(&f->lost, __ATOMIC_ACQUIRE);
}

void qccl_far_finish(struct qccl_far *f)
{
	qccl_carry_ask(f, QCCL_FINISH, 0);
}

void qccl_far_stop(struct qccl_far *f)
{
	if (f->has_thread) {
		qccl_carry_ask(f, QCCL_QUIT, 0);
		pthread_join(f->thread, NULL);
		f->has_thread = false;
	}
	for (unsigned int k = 0; k < f->peers; k++)
		if (f->peer[k].fd >= 0) {
			close(f->peer[k].fd);
			f->peer[k].fd = -1;
		}
}

void qccl_far_close(struct qccl_far *f)
{
	struct qccl_far **p;

	pthread_mutex_lock(&lock);
	for (p = &all; *p && *p != f; p = &(*p)->next)
		;
	if (*p)
		*p = f->next;
	pthread_mutex_unlock(&lock);
	qccl_far_stop(f);
	if (f->wake >= 0)
		close(f->wake);
	if (f->pinned)
		(void)cudaFreeHost(f->pinned);
	pthread_cond_destroy(&f->changed);
	pthread_mutex_destroy(&f->lock);
	free(f);
}
