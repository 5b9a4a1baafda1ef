/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Events. An event is a point in a stream that others can wait for, and the time at which the
 * stream reached it. Each record makes a mark, and the event points at the latest mark. If an event
 * is destroyed before its stream reaches the mark, the mark lives on until then.
 *
 * An event that several processes share has a cell instead of marks. The record may come from
 * another process, so the thread of a stream that waits for such an event blocks in the wait.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "qcu-device/soft/gpu/soft.h"

/* cudaEventCreateWithFlags, cudaEventRecordWithFlags and cudaStreamWaitEvent */
#define EVENT_DISABLE_TIMING 2u
#define EVENT_INTERPROCESS   4u
#define EVENT_FLAGS	     7u
#define EVENT_EXTERNAL	     1u

struct soft_mark {
	unsigned int refs;
	struct soft_ticket at; /* holds a reference to the stream */
	uint64_t ns;
};

struct be_event {
	struct be_event *next;
	unsigned int dev;
	uint32_t flags;
	struct soft_mark *mark; /* NULL: never recorded */
	struct soft_cell *cell; /* NULL: only this process uses the event */
};

/* Work on an event with a cell: a record, or a wait for one. */
struct cell_work {
	struct soft_work work;
	struct be *be;
	struct soft_cell *cell;
	uint64_t n;
};

struct record_work {
	struct soft_work work;
	struct soft_mark *mark;
};

static void mark_put(struct soft_mark *m)
{
	if (!m || --m->refs)
		return;
	soft_stream_put(m->at.s);
	free(m);
}

static int record_run(struct soft_work *w)
{
	struct soft_mark *m = ((struct record_work *)w)->mark;
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

static int event_wait_run(struct soft_work *w)
{
	(void)w;
	return 0;
}

static void event_wait_free(struct soft_work *w)
{
	free(w);
}

static int cell_record_run(struct soft_work *w)
{
	(void)w;
	return 0;
}

/*
 * Also called for a record that is dropped after an error. The record then ends, so that nobody
 * waits for it any longer.
 */
static void cell_record_free(struct soft_work *w)
{
	struct cell_work *c = (struct cell_work *)w;

	soft_cell_end(c->cell, c->n);
	soft_cell_put(c->cell);
	free(c);
}

static int cell_wait_run(struct soft_work *w)
{
	const struct cell_work *c = (const struct cell_work *)w;

	soft_cell_wait(c->cell, c->n, &c->be->cancel);
	return 0;
}

static void cell_wait_free(struct soft_work *w)
{
	soft_cell_put(((struct cell_work *)w)->cell);
	free(w);
}

static struct cell_work *cell_work(struct be *be, struct be_event *e)
{
	struct cell_work *w = calloc(1, sizeof(*w));

	if (w) {
		w->be = be;
		w->cell = soft_cell_get(e->cell);
	}
	return w;
}

static int cell_record(struct be *be, struct be_event *e, struct be_stream *s)
{
	struct cell_work *w = cell_work(be, e);

	if (!w)
		return QCU_ERR_MemoryAllocation;
	w->work.run = cell_record_run;
	w->work.free = cell_record_free;
	w->n = soft_cell_begin(e->cell);
	return soft_submit(s, &w->work, SOFT_SMALL, NULL);
}

static int cell_wait(struct be *be, struct be_event *e, struct be_stream *s)
{
	uint64_t n = soft_cell_last(e->cell);
	struct cell_work *w;

	if (soft_cell_done(e->cell, n))
		return QCU_ERR_Success;
	w = cell_work(be, e);
	if (!w)
		return QCU_ERR_MemoryAllocation;
	w->work.run = cell_wait_run;
	w->work.free = cell_wait_free;
	w->n = n;
	return soft_submit(s, &w->work, SOFT_QUEUE, NULL);
}

static int add_event(struct be *be, unsigned int dev, uint32_t flags, struct soft_cell *cell,
		     struct be_event **out)
{
	struct be_event *e = calloc(1, sizeof(*e));

	if (!e) {
		soft_cell_put(cell);
		return QCU_ERR_MemoryAllocation;
	}
	e->dev = dev;
	e->flags = flags;
	e->cell = cell;
	pthread_mutex_lock(&be->lock);
	e->next = be->events;
	be->events = e;
	pthread_mutex_unlock(&be->lock);
	*out = e;
	return QCU_ERR_Success;
}

int soft_event_create(struct be *be, unsigned int dev, uint32_t flags, struct be_event **out)
{
	int err = atomic_load(&be->sticky);
	struct soft_cell *cell = NULL;

	*out = NULL;
	if (err)
		return err;
	if (flags & ~EVENT_FLAGS)
		return QCU_ERR_InvalidValue;
	if (flags & EVENT_INTERPROCESS) {
		if (!(flags & EVENT_DISABLE_TIMING))
			return QCU_ERR_InvalidValue;
		cell = soft_cell_new();
		if (!cell)
			return QCU_ERR_MemoryAllocation;
	}
	return add_event(be, dev, flags, cell, out);
}

int soft_event_export(struct be *be, struct be_event *e, void *handle)
{
	struct soft_file f = {0};
	int err = atomic_load(&be->sticky);

	if (err)
		return err;
	if (!e->cell || !soft_cell_tell(e->cell, &f))
		return QCU_ERR_InvalidResourceHandle;
	memcpy(handle, &f, sizeof(f));
	return QCU_ERR_Success;
}

int soft_event_import(struct be *be, unsigned int dev, const void *handle, struct be_event **out)
{
	int err = atomic_load(&be->sticky);
	struct soft_cell *cell;
	struct soft_file f;

	*out = NULL;
	if (err)
		return err;
	memcpy(&f, handle, sizeof(f));
	cell = soft_cell_open(&f);
	if (!cell)
		return QCU_ERR_MapBufferObjectFailed;
	return add_event(be, dev, EVENT_DISABLE_TIMING | EVENT_INTERPROCESS, cell, out);
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
	soft_cell_put(e->cell);
	free(e);
	return atomic_load(&be->sticky);
}

void soft_events_fini(struct be *be)
{
	struct be_event *e;

	while ((e = be->events)) {
		be->events = e->next;
		mark_put(e->mark);
		soft_cell_put(e->cell);
		free(e);
	}
}

static int check_external(uint32_t flags)
{
	if (flags & ~EVENT_EXTERNAL)
		return QCU_ERR_InvalidValue;
	/* The flag is meaningful only while a stream is being captured into a graph. */
	return flags ? QCU_ERR_IllegalState : QCU_ERR_Success;
}

int soft_event_record(struct be *be, struct be_event *e, struct be_stream *s, uint32_t flags)
{
	struct record_work *w;
	struct soft_mark *m;
	uint64_t n;
	int err = atomic_load(&be->sticky);

	if (!err)
		err = check_external(flags);
	if (!err && e->dev != s->dev->index)
		err = QCU_ERR_InvalidResourceHandle;
	if (err)
		return err;
	if (e->cell)
		return cell_record(be, e, s);
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
	m->refs = 2; /* one for the work, one for the event */
	m->at.s = s;
	pthread_mutex_lock(&be->lock);
	err = soft_queue_wait(s);
	if (err) {
		pthread_mutex_unlock(&be->lock);
		free(w);
		free(m);
		return err;
	}
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
	if (e->cell)
		return cell_wait(be, e, s);
	w = calloc(1, sizeof(*w));
	if (!w)
		return QCU_ERR_MemoryAllocation;
	w->run = event_wait_run;
	w->free = event_wait_free;
	pthread_mutex_lock(&be->lock);
	err = soft_queue_wait(s);
	if (err || !e->mark || soft_ticket_done(&e->mark->at))
		free(w);
	else
		err = soft_submit_locked(s, w, SOFT_SMALL, &e->mark->at, NULL);
	pthread_mutex_unlock(&be->lock);
	return err;
}

/* ---- for graphs ---- */

int soft_promise_record(struct be_event *e, struct be_stream *counter, struct soft_promise *p)
{
	struct soft_mark *m;

	*p = (struct soft_promise){.records = true};
	if (e->cell) {
		p->cell = soft_cell_get(e->cell);
		p->n = soft_cell_begin(e->cell);
		return QCU_ERR_Success;
	}
	m = calloc(1, sizeof(*m));
	if (!m)
		return QCU_ERR_MemoryAllocation;
	m->refs = 2; /* one for the promise, one for the event */
	soft_stream_get(counter);
	m->at = (struct soft_ticket){.s = counter, .n = ++counter->last};
	mark_put(e->mark);
	e->mark = p->mark = m;
	return QCU_ERR_Success;
}

int soft_promise_look(struct be_event *e, struct soft_promise *p)
{
	*p = (struct soft_promise){0};
	if (e->cell) {
		p->cell = soft_cell_get(e->cell);
		p->n = soft_cell_last(e->cell);
	} else if (e->mark) {
		p->mark = e->mark;
		p->mark->refs++;
	}
	return QCU_ERR_Success;
}

void soft_promise_keep(struct be *be, struct soft_promise *p)
{
	struct soft_mark *m = p->mark;
	struct timespec t;

	if (!p->records || p->kept)
		return;
	p->kept = true;
	if (p->cell) {
		soft_cell_end(p->cell, p->n);
		return;
	}
	clock_gettime(CLOCK_MONOTONIC, &t);
	m->ns = (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
	m->at.s->done = m->at.n;
	pthread_cond_broadcast(&be->progress);
}

void soft_promise_wait(struct be *be, struct soft_promise *p)
{
	if (p->cell) {
		pthread_mutex_unlock(&be->lock);
		soft_cell_wait(p->cell, p->n, &be->cancel);
		pthread_mutex_lock(&be->lock);
	}
	while (p->mark && !soft_ticket_done(&p->mark->at) && !atomic_load(&be->sticky) &&
	       !be->closing)
		pthread_cond_wait(&be->progress, &be->lock);
}

void soft_promise_end(struct be *be, struct soft_promise *p)
{
	soft_promise_keep(be, p);
	if (p->cell)
		soft_cell_put(p->cell);
	mark_put(p->mark);
}

int soft_event_sync(struct be *be, struct be_event *e)
{
	struct soft_ticket at;
	int err;

	if (e->cell)
		soft_cell_wait(e->cell, soft_cell_last(e->cell), &be->cancel);
	pthread_mutex_lock(&be->lock);
	if (e->mark) {
		/* The event may be recorded again or destroyed during the wait, so use a copy. */
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

static bool reached(const struct be_event *e)
{
	if (e->cell)
		return soft_cell_done(e->cell, soft_cell_last(e->cell));
	return !e->mark || soft_ticket_done(&e->mark->at);
}

int soft_event_query(struct be *be, struct be_event *e)
{
	int err;

	pthread_mutex_lock(&be->lock);
	if (!atomic_load(&be->sticky) && !reached(e))
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

int soft_event_age(struct be *be, struct be_event *e, bool set, uint64_t at, uint64_t *ns)
{
	int err = QCU_ERR_NotReady;

	pthread_mutex_lock(&be->lock);
	if (e->mark && soft_ticket_done(&e->mark->at)) {
		err = QCU_ERR_Success;
		if (set)
			e->mark->ns = at - *ns;
		else
			*ns = at > e->mark->ns ? at - e->mark->ns : 0;
	}
	pthread_mutex_unlock(&be->lock);
	return err;
}
