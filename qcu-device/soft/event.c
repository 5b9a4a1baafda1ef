/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Events: a place in a stream that others can wait for, and the time when the stream reached it.
 * Each record makes a mark; an event points at the latest. A mark outlives its event while its
 * stream has not reached it.
 */
#include <stdlib.h>
#include <time.h>

#include "qcu-device/soft/soft.h"

/* cudaEventCreateWithFlags, cudaEventRecordWithFlags and cudaStreamWaitEvent */
#define EVENT_DISABLE_TIMING 2u
#define EVENT_INTERPROCESS   4u
#define EVENT_FLAGS	     7u
#define EVENT_EXTERNAL	     1u

struct mark {
	unsigned int refs;
	struct soft_ticket at; /* holds the stream */
	uint64_t ns;
};

struct be_event {
	struct be_event *next;
	unsigned int dev;
	uint32_t flags;
	struct mark *mark; /* NULL: never recorded */
};

struct record_work {
	struct soft_work work;
	struct mark *mark;
};

static void mark_put(struct mark *m)
{
	if (!m || --m->refs)
		return;
	soft_stream_put(m->at.s);
	free(m);
}

static int record_run(struct soft_work *w)
{
	struct mark *m = ((struct record_work *)w)->mark;
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	m->ns = (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
	return 0;
}

static void record_free(struct soft_work *w)
{
	mark_put(((struct record_work *)w)->mark);
	free(w);
}

static int wait_run(struct soft_work *w)
{
	(void)w;
	return 0;
}

static void wait_free(struct soft_work *w)
{
	free(w);
}

int soft_event_create(struct be *be, unsigned int dev, uint32_t flags, struct be_event **out)
{
	int err = atomic_load(&be->sticky);
	struct be_event *e;

	*out = NULL;
	if (err)
		return err;
	if (flags & ~EVENT_FLAGS)
		return QCU_ERR_InvalidValue;
	if (flags & EVENT_INTERPROCESS)
		return flags & EVENT_DISABLE_TIMING ? QCU_ERR_NotSupported : QCU_ERR_InvalidValue;
	e = calloc(1, sizeof(*e));
	if (!e)
		return QCU_ERR_MemoryAllocation;
	e->dev = dev;
	e->flags = flags;
	pthread_mutex_lock(&be->lock);
	e->next = be->events;
	be->events = e;
	pthread_mutex_unlock(&be->lock);
	*out = e;
	return QCU_ERR_Success;
}

int soft_event_destroy(struct be *be, struct be_event *e)
{
	struct be_event **p;

	pthread_mutex_lock(&be->lock);
	for (p = &be->events; *p != e; p = &(*p)->next)
		;
	*p = e->next;
	mark_put(e->mark);
	pthread_mutex_unlock(&be->lock);
	free(e);
	return atomic_load(&be->sticky);
}

void soft_events_fini(struct be *be)
{
	struct be_event *e;

	while ((e = be->events)) {
		be->events = e->next;
		mark_put(e->mark);
		free(e);
	}
}

static int check_external(uint32_t flags)
{
	if (flags & ~EVENT_EXTERNAL)
		return QCU_ERR_InvalidValue;
	/* Has a meaning only while a stream is captured into a graph. */
	return flags ? QCU_ERR_IllegalState : QCU_ERR_Success;
}

int soft_event_record(struct be *be, struct be_event *e, struct be_stream *s, uint32_t flags)
{
	struct record_work *w;
	struct mark *m;
	uint64_t n;
	int err = atomic_load(&be->sticky);

	if (!err)
		err = check_external(flags);
	if (!err && e->dev != s->dev->index)
		err = QCU_ERR_InvalidResourceHandle;
	if (err)
		return err;
	w = calloc(1, sizeof(*w));
	m = calloc(1, sizeof(*m));
	if (!w || !m) {
		free(w);
		free(m);
		return QCU_ERR_MemoryAllocation;
	}
	w->work.run = record_run;
	w->work.free = record_free;
	w->mark = m;
	m->refs = 2; /* the work's and the event's */
	m->at.s = s;
	pthread_mutex_lock(&be->lock);
	soft_stream_get(s);
	err = soft_submit_locked(s, &w->work, SOFT_SMALL, NULL, &n);
	if (err) {
		mark_put(m);
	} else {
		m->at.n = n;
		mark_put(e->mark);
		e->mark = m;
	}
	pthread_mutex_unlock(&be->lock);
	return err;
}

int soft_stream_wait_event(struct be *be, struct be_stream *s, struct be_event *e, uint32_t flags)
{
	struct soft_work *w;
	int err = atomic_load(&be->sticky);

	if (!err)
		err = check_external(flags);
	if (err)
		return err;
	w = calloc(1, sizeof(*w));
	if (!w)
		return QCU_ERR_MemoryAllocation;
	w->run = wait_run;
	w->free = wait_free;
	pthread_mutex_lock(&be->lock);
	if (!e->mark || soft_ticket_done(&e->mark->at))
		free(w);
	else
		err = soft_submit_locked(s, w, SOFT_SMALL, &e->mark->at, NULL);
	pthread_mutex_unlock(&be->lock);
	return err;
}

int soft_event_sync(struct be *be, struct be_event *e)
{
	struct soft_ticket at;
	int err;

	pthread_mutex_lock(&be->lock);
	if (e->mark) {
		/* The event may be recorded again or destroyed meanwhile. */
		at = e->mark->at;
		soft_stream_get(at.s);
		while (!soft_ticket_done(&at))
			pthread_cond_wait(&be->progress, &be->lock);
		soft_stream_put(at.s);
	}
	err = soft_take_error(be);
	pthread_mutex_unlock(&be->lock);
	return err;
}

int soft_event_query(struct be *be, struct be_event *e)
{
	int err;

	pthread_mutex_lock(&be->lock);
	if (!atomic_load(&be->sticky) && e->mark && !soft_ticket_done(&e->mark->at))
		err = QCU_ERR_NotReady;
	else
		err = soft_take_error(be);
	pthread_mutex_unlock(&be->lock);
	return err;
}

static bool timed(const struct be_event *e)
{
	return e->mark && !(e->flags & EVENT_DISABLE_TIMING);
}

int soft_event_elapsed(struct be *be, struct be_event *start, struct be_event *end, float *ms)
{
	int err;

	pthread_mutex_lock(&be->lock);
	err = atomic_load(&be->sticky);
	if (err)
		goto out;
	if (!timed(start) || !timed(end) || start->dev != end->dev)
		err = QCU_ERR_InvalidResourceHandle;
	else if (!soft_ticket_done(&start->mark->at) || !soft_ticket_done(&end->mark->at))
		err = QCU_ERR_NotReady;
	else
		*ms = (float)((double)(int64_t)(end->mark->ns - start->mark->ns) / 1e6);
out:
	pthread_mutex_unlock(&be->lock);
	return err;
}
