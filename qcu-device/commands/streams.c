// SPDX-License-Identifier: GPL-2.0-or-later
/* The commands about streams and events. */
#include <string.h>

#include "qcu-device/commands/commands.h"

/* ---- streams ---- */

int mir_do_stream_sync(struct call *c)
{
	struct stream_ref s;
	int rc = mir_stream_get(c, c->cmd->stream_sync.stream, &s);

	if (rc)
		return rc;
	rc = mir_stream_wait(c, &s);
	mir_stream_put(c, &s);
	return rc;
}

/* Only its own lane may use a per-thread stream, so no other thread watches it. */
int mir_do_stream_query(struct call *c)
{
	struct qcu_stream_query *q = &c->cmd->stream_query;
	struct stream_ref s;
	int rc;

	rc = mir_stream_get(c, q->stream, &s);
	if (rc)
		return rc;
	rc = c->m->cfg.ops->stream_query(c->m->be, s.s);
	if (rc == QCU_ERR_NotReady && q->stream != QCU_STREAM_PER_THREAD)
		q->watched = mir_watch(c, q->slot, q->token,
				       &(struct watch){.h = s.h, .device = s.device});
	mir_stream_put(c, &s);
	return rc ? rc : mir_watch_error(c->m);
}

/*
 * cudaStreamAttrID. The values of the other attributes contain pointers to CUDA's own objects,
 * which no guest may make up or see.
 */
enum {
	ATTR_ACCESS_POLICY = 1,
	ATTR_SYNC_POLICY = 3,
	ATTR_PRIORITY = 8,
	ATTR_DOMAIN_MAP = 9,
	ATTR_DOMAIN = 10,
};

bool mir_stream_attr_known(uint32_t attr)
{
	return attr == ATTR_ACCESS_POLICY || attr == ATTR_SYNC_POLICY || attr == ATTR_PRIORITY ||
	       attr == ATTR_DOMAIN_MAP || attr == ATTR_DOMAIN;
}

bool mir_stream_attr_good(struct call *c, uint32_t attr, const void *value)
{
	struct {
		uint64_t addr, len;
	} window; /* the beginning of a cudaAccessPolicyWindow */

	if (!mir_stream_attr_known(attr))
		return false;
	memcpy(&window, value, sizeof(window));
	return attr != ATTR_ACCESS_POLICY || !window.len ||
	       mir_device_range(c, window.addr, window.len) == QCU_ERR_Success;
}

/* ---- events ---- */

int mir_do_event_record(struct call *c)
{
	const struct qcu_event_record *r = &c->cmd->event_record;
	struct handle *e;
	struct stream_ref s;
	int rc;

	e = handles_get(&c->m->handles, HANDLE_EVENT, r->event);
	if (!e)
		return QCU_ERR_InvalidResourceHandle;
	rc = mir_stream_get(c, r->stream, &s);
	if (!rc) {
		/* CUDA requires both on the same device. */
		rc = s.device != e->device
			     ? (int)QCU_ERR_InvalidResourceHandle
			     : c->m->cfg.ops->event_record(c->m->be, e->event, s.s, r->flags);
		mir_stream_put(c, &s);
	}
	handles_put(&c->m->handles, e);
	return rc;
}

int mir_do_event_query(struct call *c)
{
	struct qcu_event_query *q = &c->cmd->event_query;
	struct handle *e;
	int rc;

	e = handles_get(&c->m->handles, HANDLE_EVENT, q->event);
	if (!e)
		return QCU_ERR_InvalidResourceHandle;
	rc = c->m->cfg.ops->event_query(c->m->be, e->event);
	if (rc == QCU_ERR_NotReady)
		q->watched = mir_watch(c, q->slot, q->token, &(struct watch){.h = e});
	handles_put(&c->m->handles, e);
	return rc ? rc : mir_watch_error(c->m);
}

int mir_do_event_elapsed(struct call *c)
{
	struct mirror *m = c->m;
	struct qcu_event_elapsed *ee = &c->cmd->event_elapsed;
	struct handle *start, *end;
	int rc = QCU_ERR_InvalidResourceHandle;

	start = handles_get(&m->handles, HANDLE_EVENT, ee->start);
	end = handles_get(&m->handles, HANDLE_EVENT, ee->end);
	if (start && end) {
		float ms = 0;

		rc = m->cfg.ops->event_elapsed(m->be, start->event, end->event, &ms);
		memcpy(&ee->ms, &ms, sizeof(ms));
	}
	handles_put(&m->handles, end);
	handles_put(&m->handles, start);
	return rc;
}
