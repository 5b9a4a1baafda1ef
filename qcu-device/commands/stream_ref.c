// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Which stream the number in a command names. The two default streams always exist. The per-thread
 * stream is made when a guest thread first uses it.
 */
#include <stdlib.h>

#include "qcu-device/commands/call.h"

struct thread_stream {
	uint32_t tid;
	unsigned int device;
	struct be_stream *s;
	LIST_ENTRY(thread_stream) link;
};

/*
 * Only the lane of this guest thread makes, uses and ends the thread's streams. DEVICE_RESET ends
 * them, too, while all lanes are outside. So no stream ends while it is used.
 */
static int thread_stream(struct call *c, struct be_stream **s)
{
	struct mirror *m = c->m;
	const struct be_ops *ops = m->cfg.ops;
	struct thread_stream *ts;
	int rc;

	pthread_mutex_lock(&m->lock);
	LIST_FOREACH(ts, &m->thread_streams, link)
		if (ts->tid == c->cmd->tid && ts->device == c->cmd->device)
			break;
	pthread_mutex_unlock(&m->lock);
	if (ts) {
		*s = ts->s;
		return QCU_ERR_Success;
	}
	rc = mir_take(c, LIMIT_STREAMS, 1);
	if (rc)
		return rc;
	ts = calloc(1, sizeof(*ts));
	if (!ts) {
		mir_give(m, LIMIT_STREAMS, 1);
		return QCU_ERR_MemoryAllocation;
	}
	ts->tid = c->cmd->tid;
	ts->device = c->cmd->device;
	rc = ops->stream_create(m->be, ts->device, 0, 0, &ts->s);
	if (rc) {
		mir_give(m, LIMIT_STREAMS, 1);
		free(ts);
		return rc;
	}
	pthread_mutex_lock(&m->lock);
	LIST_INSERT_HEAD(&m->thread_streams, ts, link);
	pthread_mutex_unlock(&m->lock);
	*s = ts->s;
	return QCU_ERR_Success;
}

void mir_thread_streams_end(struct mirror *m, const uint32_t *tid, const unsigned int *device)
{
	struct thread_stream *ts, *next;
	struct thread_stream_list list = LIST_HEAD_INITIALIZER(list);

	pthread_mutex_lock(&m->lock);
	for (ts = LIST_FIRST(&m->thread_streams); ts; ts = next) {
		next = LIST_NEXT(ts, link);
		if ((tid && ts->tid != *tid) || (device && ts->device != *device))
			continue;
		LIST_REMOVE(ts, link);
		LIST_INSERT_HEAD(&list, ts, link);
	}
	pthread_mutex_unlock(&m->lock);
	while ((ts = LIST_FIRST(&list))) {
		LIST_REMOVE(ts, link);
		mir_turn_forget(m, ts->device, ts->s);
		m->cfg.ops->stream_destroy(m->be, ts->s);
		mir_give(m, LIMIT_STREAMS, 1);
		free(ts);
	}
}

bool mir_thread_streams_done(struct mirror *m, unsigned int device)
{
	struct thread_stream *ts;
	bool done = true;

	pthread_mutex_lock(&m->lock);
	LIST_FOREACH(ts, &m->thread_streams, link)
		if (done && ts->device == device)
			done = m->cfg.ops->stream_query(m->be, ts->s) != QCU_ERR_NotReady;
	pthread_mutex_unlock(&m->lock);
	return done;
}

static int find_stream(struct call *c, uint32_t id, struct stream_ref *ref)
{
	const struct be_ops *ops = c->m->cfg.ops;

	*ref = (struct stream_ref){.device = c->cmd->device};
	if (id == QCU_STREAM_LEGACY) {
		ref->s = ops->stream_legacy(c->m->be, c->cmd->device);
		return ref->s ? QCU_ERR_Success : QCU_ERR_InvalidResourceHandle;
	}
	if (id == QCU_STREAM_PER_THREAD)
		return thread_stream(c, &ref->s);
	ref->h = handles_get(&c->m->handles, HANDLE_STREAM, id);
	if (!ref->h)
		return QCU_ERR_InvalidResourceHandle;
	ref->s = ref->h->stream;
	ref->device = ref->h->device;
	return QCU_ERR_Success;
}

int mir_stream_get(struct call *c, uint32_t id, struct stream_ref *ref)
{
	int rc = find_stream(c, id, ref);

	if (!rc && c->turn)
		mir_turn_mark_begin(c, ref);
	return rc;
}

void mir_stream_put(struct call *c, struct stream_ref *ref)
{
	if (c->marked)
		mir_turn_mark_end(c, ref);
	handles_put(&c->m->handles, ref->h);
}

int mir_stream_wait(struct call *c, const struct stream_ref *ref)
{
	uint64_t end = 0;

	c->waited = true;
	while (mir_turn_look_again(c->m, ref->device, &end) && !mir_stream_done(c->m, ref->s))
		;
	return c->m->cfg.ops->stream_sync(c->m->be, ref->s);
}
