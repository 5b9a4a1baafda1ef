/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Streams: queues of work. Each stream has its own thread, so streams run in parallel.
 *
 * A stream numbers its work. A ticket means "stream s has done its work number n". All order
 * between streams is work that waits for tickets. The tickets are collected when the work is
 * queued: work in a blocking stream waits for the work in the legacy stream of its device, and work
 * in the legacy stream waits for the work in all blocking streams. Tickets only point at earlier
 * work, so streams cannot wait in a circle.
 *
 * An error of work in a stream ends the whole instance if is_sticky() says so, as it ends a CUDA
 * context: running kernels are stopped, work that has not begun is dropped, and every call returns
 * that error.
 */
#include <stdlib.h>

#include "qcu-device/soft/gpu/soft.h"

#define PRIORITY_GREATEST (-5)
#define STREAM_FLAGS	  1u /* cudaStreamNonBlocking */

bool soft_ticket_done(const struct soft_ticket *t)
{
	return t->s->done >= t->n;
}

void soft_stream_get(struct be_stream *s)
{
	s->refs++;
}

void soft_stream_put(struct be_stream *s)
{
	if (--s->refs)
		return;
	pthread_cond_destroy(&s->wake);
	free(s);
}

/* The faults of a kernel after which a GPU needs a new context. */
static bool is_sticky(int err)
{
	switch (err) {
	case QCU_ERR_IllegalAddress:
	case QCU_ERR_LaunchTimeout:
	case QCU_ERR_Assert:
	case QCU_ERR_HardwareStackError:
	case QCU_ERR_MisalignedAddress:
	case QCU_ERR_LaunchFailure:
		return true;
	}
	return false;
}

void soft_fail(struct be *be, int err)
{
	if (!is_sticky(err)) {
		if (!be->pending)
			be->pending = err;
		return;
	}
	if (!atomic_load(&be->sticky))
		atomic_store(&be->sticky, err);
	__atomic_store_n(&be->cancel, 1, __ATOMIC_RELAXED);
}

int soft_take_error(struct be *be)
{
	int err = atomic_load(&be->sticky);

	if (!err) {
		err = be->pending;
		be->pending = 0;
	}
	return err;
}

static void drop_tickets(struct soft_work *w)
{
	unsigned int i;

	for (i = 0; i < w->after_count; i++)
		soft_stream_put(w->after[i].s);
	free(w->after);
	w->after = NULL;
	w->after_count = 0;
}

static bool must_wait_for(const struct be_stream *s, const struct be_stream *other)
{
	if (other == s || other->done == other->last)
		return false;
	if (s == s->dev->legacy)
		return other->blocking;
	return s->blocking && other == s->dev->legacy;
}

static int collect_tickets(struct soft_work *w, struct be_stream *s,
			   const struct soft_ticket *extra)
{
	bool add_extra = extra && extra->s != s && !soft_ticket_done(extra);
	unsigned int n = add_extra;
	struct be_stream *o;

	w->after = NULL;
	w->after_count = 0;
	for (o = s->dev->streams; o; o = o->next)
		n += must_wait_for(s, o);
	if (!n)
		return 0;
	w->after = calloc(n, sizeof(*w->after));
	if (!w->after)
		return QCU_ERR_MemoryAllocation;
	for (o = s->dev->streams; o; o = o->next)
		if (must_wait_for(s, o))
			w->after[w->after_count++] = (struct soft_ticket){.s = o, .n = o->last};
	if (add_extra)
		w->after[w->after_count++] = *extra;
	for (n = 0; n < w->after_count; n++)
		soft_stream_get(w->after[n].s);
	return 0;
}

static void unlink_stream(struct be_stream *s)
{
	struct be_stream **p = &s->dev->streams;

	if (!s->linked)
		return;
	while (*p != s)
		p = &(*p)->next;
	*p = s->next;
	s->linked = false;
}

#define WORK_COST   256u /* of one piece of work, with its tickets and the overhead of malloc() */
#define QUEUE_GRAIN (1u << 20)

/* True: there is room for one more piece of work. More room is requested in large steps. */
static bool has_room(struct be *be)
{
	if (!be->charge_queue || be->queued < be->granted)
		return true;
	if (!be->charge_queue(be->charge_ctx, QUEUE_GRAIN))
		return false;
	be->granted += QUEUE_GRAIN;
	return true;
}

int soft_queue_wait(struct be_stream *s)
{
	struct be *be = s->be;

	while (!s->keep && !has_room(be)) {
		if (be->calls || !be->queued)
			return QCU_ERR_MemoryAllocation;
		if (atomic_load(&be->sticky) || be->closing)
			break;
		pthread_cond_wait(&be->progress, &be->lock);
	}
	return QCU_ERR_Success;
}

static void queue_in(struct be *be, struct soft_work *w)
{
	w->cost = WORK_COST + w->bytes;
	be->queued += w->cost;
}

static void queue_out(struct be *be, const struct soft_work *w)
{
	be->queued -= w->cost;
	while (be->granted > be->queued + 2 * QUEUE_GRAIN) {
		be->granted -= QUEUE_GRAIN;
		be->charge_queue(be->charge_ctx, -(int64_t)QUEUE_GRAIN);
	}
}

/*
 * Marks work as done, and frees it. The work is the oldest of its stream, and is no longer in the
 * queue.
 */
static void finish_work(struct be_stream *s, struct soft_work *w, int err)
{
	if (err)
		soft_fail(s->be, err);
	s->done = w->n;
	s->oldest = s->head ? s->head->order : UINT64_MAX;
	drop_tickets(w);
	queue_out(s->be, w);
	w->free(w);
	pthread_cond_broadcast(&s->be->progress);
}

static bool runnable(const struct soft_work *w)
{
	unsigned int i;

	for (i = 0; i < w->after_count; i++)
		if (!soft_ticket_done(&w->after[i]))
			return false;
	return true;
}

int soft_run_work(struct soft_device *dev, struct soft_work *w)
{
	struct be *be = dev->be;
	bool counts = be->busy && w->busy != BE_BUSY_NOT;
	enum be_busy kind = w->busy;
	int err;

	if (counts)
		be->busy(be->charge_ctx, dev->index, kind, true);
	err = w->run(w);
	if (counts)
		be->busy(be->charge_ctx, dev->index, kind, false);
	return err;
}

static void *worker(void *arg)
{
	struct be_stream *s = arg;
	struct be *be = s->be;

	pthread_mutex_lock(&be->lock);
	for (;;) {
		struct soft_work *w = s->head;
		int err = 0;

		/* A caller may still be running the previous work, see soft_submit_locked. */
		if (!w || s->done != w->n - 1) {
			if (!w && s->stop)
				break;
			pthread_cond_wait(&s->wake, &be->lock);
			continue;
		}
		if ((w->always || !atomic_load(&be->sticky)) && !be->closing) {
			if (!runnable(w)) {
				pthread_cond_wait(&be->progress, &be->lock);
				continue;
			}
			pthread_mutex_unlock(&be->lock);
			err = soft_run_work(s->dev, w);
			pthread_mutex_lock(&be->lock);
		}
		s->head = w->next;
		if (!s->head)
			s->tail = &s->head;
		finish_work(s, w, err);
	}
	unlink_stream(s);
	s->next = be->ended;
	be->ended = s;
	be->workers--;
	pthread_cond_broadcast(&be->progress);
	pthread_mutex_unlock(&be->lock);
	return NULL;
}

/* Joins threads that have ended. */
static void join_ended_threads(struct be *be)
{
	struct be_stream *s;

	pthread_mutex_lock(&be->lock);
	while ((s = be->ended)) {
		be->ended = s->next;
		pthread_mutex_unlock(&be->lock);
		pthread_join(s->thread, NULL);
		pthread_mutex_lock(&be->lock);
		soft_stream_put(s);
	}
	pthread_mutex_unlock(&be->lock);
}

static int start_worker(struct be_stream *s)
{
	if (s->threaded)
		return 0;
	if (pthread_create(&s->thread, NULL, worker, s))
		return QCU_ERR_OperatingSystem;
	s->threaded = true;
	s->be->workers++;
	return 0;
}

int soft_submit_locked(struct be_stream *s, struct soft_work *w, enum soft_how how,
		       const struct soft_ticket *extra, uint64_t *ticket)
{
	struct be *be = s->be;
	int err = atomic_load(&be->sticky);
	uint64_t n = s->last + 1;
	bool idle = s->done == s->last;

	if (!err && s->keep)
		return s->keep(s, w);
	if (!err)
		err = collect_tickets(w, s, extra);
	if (err) {
		w->free(w);
		return err;
	}
	w->n = n;
	w->cost = 0;
	w->next = NULL;
	w->order = ++be->issued;
	if (how != SOFT_QUEUE && idle && !w->after_count) {
		s->last = n;
		s->oldest = w->order;
		pthread_mutex_unlock(&be->lock);
		err = soft_run_work(s->dev, w);
		pthread_mutex_lock(&be->lock);
		finish_work(s, w, err);
		if (s->head)
			pthread_cond_signal(&s->wake);
		if (s->stop && !s->threaded) {
			unlink_stream(s);
			soft_stream_put(s);
		}
	} else {
		err = start_worker(s);
		if (err) {
			drop_tickets(w);
			w->free(w);
			return err;
		}
		s->last = n;
		if (idle)
			s->oldest = w->order;
		queue_in(be, w);
		*s->tail = w;
		s->tail = &w->next;
		pthread_cond_signal(&s->wake);
		while (how == SOFT_WAIT && s->done < n)
			pthread_cond_wait(&be->progress, &be->lock);
	}
	if (ticket)
		*ticket = n;
	return how == SOFT_WAIT ? soft_take_error(be) : QCU_ERR_Success;
}

int soft_submit(struct be_stream *s, struct soft_work *w, enum soft_how how,
		const struct soft_ticket *extra)
{
	struct be *be = s->be; /* s may be freed during the call */
	int err;

	pthread_mutex_lock(&be->lock);
	err = soft_queue_wait(s);
	if (err)
		w->free(w);
	else
		err = soft_submit_locked(s, w, how, extra, NULL);
	pthread_mutex_unlock(&be->lock);
	return err;
}

static bool older_than(const struct soft_device *d, uint64_t order)
{
	const struct be_stream *s;

	for (s = d->streams; s; s = s->next)
		if (s->oldest <= order)
			return true;
	return false;
}

static void wait_locked(struct be *be, const struct soft_device *d)
{
	uint64_t order = be->issued;
	bool busy;
	unsigned int i;

	for (;;) {
		busy = d && older_than(d, order);
		for (i = 0; !d && !busy && i < be->gpus; i++)
			busy = older_than(&be->dev[i], order);
		if (!busy)
			return;
		pthread_cond_wait(&be->progress, &be->lock);
	}
}

void soft_wait(struct be *be, const struct soft_device *d)
{
	pthread_mutex_lock(&be->lock);
	wait_locked(be, d);
	pthread_mutex_unlock(&be->lock);
}

static struct be_stream *new_stream(struct soft_device *d, bool blocking, int priority)
{
	struct be_stream *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->be = d->be;
	s->dev = d;
	s->refs = 1;
	s->blocking = blocking;
	s->priority = priority;
	s->oldest = UINT64_MAX;
	s->tail = &s->head;
	s->linked = true;
	pthread_cond_init(&s->wake, NULL);
	s->next = d->streams;
	d->streams = s;
	return s;
}

struct be_stream *soft_stream_counter(struct be *be, unsigned int dev)
{
	struct be_stream *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->be = be;
	s->dev = &be->dev[dev];
	s->refs = 1;
	pthread_cond_init(&s->wake, NULL);
	return s;
}

bool soft_streams_init(struct soft_device *d)
{
	d->streams = NULL;
	d->legacy = new_stream(d, true, 0);
	return d->legacy;
}

void soft_stream_stop(struct be_stream *s)
{
	if (s->stop)
		return;
	s->stop = true;
	if (s->threaded)
		pthread_cond_signal(&s->wake);
	if (s->done != s->last)
		return;
	unlink_stream(s);
	if (!s->threaded)
		soft_stream_put(s);
}

void soft_streams_stop(struct be *be)
{
	struct be_stream *s, *next;
	unsigned int i;

	pthread_mutex_lock(&be->lock);
	be->closing = true;
	__atomic_store_n(&be->cancel, 1, __ATOMIC_RELAXED);
	for (i = 0; i < be->gpus; i++) {
		for (s = be->dev[i].streams; s; s = next) {
			next = s->next;
			soft_stream_stop(s);
		}
	}
	pthread_cond_broadcast(&be->progress);
	while (be->workers)
		pthread_cond_wait(&be->progress, &be->lock);
	pthread_mutex_unlock(&be->lock);
	join_ended_threads(be);
}

int soft_stream_create(struct be *be, unsigned int dev, uint32_t flags, int priority,
		       struct be_stream **out)
{
	int err = atomic_load(&be->sticky);

	*out = NULL;
	if (err)
		return err;
	if (flags & ~STREAM_FLAGS)
		return QCU_ERR_InvalidValue;
	if (priority > 0)
		priority = 0;
	if (priority < PRIORITY_GREATEST)
		priority = PRIORITY_GREATEST;
	join_ended_threads(be);
	pthread_mutex_lock(&be->lock);
	*out = new_stream(&be->dev[dev], !flags, priority);
	pthread_mutex_unlock(&be->lock);
	return *out ? QCU_ERR_Success : QCU_ERR_MemoryAllocation;
}

struct be_stream *soft_stream_legacy(struct be *be, unsigned int dev)
{
	return be->dev[dev].legacy;
}

int soft_stream_destroy(struct be *be, struct be_stream *s)
{
	if (s == s->dev->legacy)
		return QCU_ERR_InvalidResourceHandle;
	pthread_mutex_lock(&be->lock);
	soft_stream_stop(s);
	pthread_mutex_unlock(&be->lock);
	join_ended_threads(be);
	return atomic_load(&be->sticky);
}

/* As on a GPU, to wait for the legacy stream is to wait for all blocking streams. */
static bool stream_busy(const struct be_stream *s, uint64_t order)
{
	const struct be_stream *o;

	if (s != s->dev->legacy)
		return s->oldest <= order;
	for (o = s->dev->streams; o; o = o->next)
		if (o->blocking && o->oldest <= order)
			return true;
	return false;
}

int soft_stream_sync(struct be *be, struct be_stream *s)
{
	uint64_t order;
	int err;

	pthread_mutex_lock(&be->lock);
	order = be->issued;
	while (stream_busy(s, order))
		pthread_cond_wait(&be->progress, &be->lock);
	err = soft_take_error(be);
	pthread_mutex_unlock(&be->lock);
	return err;
}

int soft_stream_query(struct be *be, struct be_stream *s)
{
	int err;

	pthread_mutex_lock(&be->lock);
	if (!atomic_load(&be->sticky) && stream_busy(s, be->issued))
		err = QCU_ERR_NotReady;
	else
		err = soft_take_error(be);
	pthread_mutex_unlock(&be->lock);
	return err;
}

int soft_device_sync(struct be *be, unsigned int dev)
{
	int err;

	pthread_mutex_lock(&be->lock);
	wait_locked(be, &be->dev[dev]);
	err = soft_take_error(be);
	pthread_mutex_unlock(&be->lock);
	return err;
}
