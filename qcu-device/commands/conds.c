// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The commands for graphs with conditional nodes.
 *
 * The outermost graph is a conditional without a value, with one body that always runs. What a
 * graph launches must stay as long as the outermost graph exists. So the outermost graph holds
 * references to the kernels, and each inner conditional holds a reference to the one it is in.
 */
#include <stdlib.h>

#include "qcu-device/commands/commands.h"

struct kept {
	struct kept *next;
	struct handle *kernel;
};

/* The amount of work in a body. A new recording of the body replaces it. */
struct recorded {
	struct recorded *next;
	uint32_t body;
	uint64_t nodes;
};

static struct handle *outermost(struct handle *cond)
{
	while (cond->parent)
		cond = cond->parent;
	return cond;
}

int mir_cond_keep(struct call *c, const struct stream_ref *s, struct handle *kernel)
{
	struct mirror *m = c->m;
	struct handle *graph;
	struct kept *k, *more;
	int rc;

	if (!s->h || !s->h->parent)
		return QCU_ERR_Success;
	graph = outermost(s->h->parent);
	/*
	 * Each kept kernel counts as one more node: it stays even if the graph is recorded again
	 * without it.
	 */
	rc = mir_take(c, LIMIT_GRAPH_NODES, 1);
	if (rc)
		return rc;
	more = malloc(sizeof(*more));
	if (!more) {
		mir_give(m, LIMIT_GRAPH_NODES, 1);
		return QCU_ERR_MemoryAllocation;
	}
	pthread_mutex_lock(&m->lock);
	/* One reference per kernel is enough, however often the graph is recorded. */
	for (k = graph->kept; k && k->kernel != kernel; k = k->next)
		;
	if (!k) {
		more->kernel = handle_hold(&m->handles, kernel);
		more->next = graph->kept;
		graph->kept = more;
	}
	pthread_mutex_unlock(&m->lock);
	if (k) {
		mir_give(m, LIMIT_GRAPH_NODES, 1);
		free(more);
	}
	return QCU_ERR_Success;
}

void mir_cond_recorded(struct mirror *m, struct handle *stream)
{
	uint64_t before = stream->nodes;

	if (!stream->parent)
		return;
	pthread_mutex_lock(&m->lock);
	if (stream->recorded) {
		before = stream->recorded->nodes;
		stream->recorded->nodes = stream->nodes;
	}
	pthread_mutex_unlock(&m->lock);
	mir_give(m, LIMIT_GRAPH_NODES, before);
}

/* Finds or adds the entry of a body that is about to be recorded. */
static int record_body(struct mirror *m, struct handle *cond, uint32_t body, struct recorded **out)
{
	struct recorded *more = calloc(1, sizeof(*more)), *r;

	if (!more)
		return QCU_ERR_MemoryAllocation;
	pthread_mutex_lock(&m->lock);
	for (r = cond->recorded; r && r->body != body; r = r->next)
		;
	if (!r) {
		r = more;
		r->body = body;
		r->next = cond->recorded;
		cond->recorded = r;
		more = NULL;
	}
	pthread_mutex_unlock(&m->lock);
	free(more);
	*out = r;
	return QCU_ERR_Success;
}

void mir_cond_end(struct mirror *m, struct handle *cond)
{
	struct recorded *r;
	struct kept *k;

	m->cfg.ops->cond_destroy(m->be, cond->cond);
	while ((r = cond->recorded)) {
		cond->recorded = r->next;
		mir_give(m, LIMIT_GRAPH_NODES, r->nodes);
		free(r);
	}
	while ((k = cond->kept)) {
		cond->kept = k->next;
		handles_put(&m->handles, k->kernel);
		mir_give(m, LIMIT_GRAPH_NODES, 1);
		free(k);
	}
}

static struct handle *get(struct call *c, uint32_t id)
{
	return handles_get(&c->m->handles, HANDLE_COND, id);
}

/* Creates a conditional in the graph `in`, or an outermost graph if `in` is NULL. */
static int create_in(struct call *c, struct handle *in, struct handle **out)
{
	const struct qcu_cond_create *cc = &c->cmd->cond_create;
	struct mirror *m = c->m;
	uint64_t value = 0;
	struct handle *h;
	int rc;

	if (in && in->device != c->cmd->device)
		return QCU_ERR_InvalidDevice;
	rc = mir_handle_new(c, HANDLE_COND, &h);
	if (rc)
		return rc;
	h->device = c->cmd->device;
	h->body = cc->body;
	rc = m->cfg.ops->cond_create(m->be, h->device, in ? in->cond : NULL, cc->body,
				     cc->flags & QCU_COND_DEFAULT ? &cc->value : NULL, &h->cond,
				     &value);
	if (rc) {
		mir_handle_drop(m, h);
		return rc;
	}
	if (in)
		h->parent = handle_hold(&m->handles, in);
	c->cmd->cond_create.handle = value;
	*out = h;
	return QCU_ERR_Success;
}

int mir_do_cond_create(struct call *c)
{
	struct mirror *m = c->m;
	const struct qcu_cond_create *cc = &c->cmd->cond_create;
	struct handle *in = NULL, *h;
	int rc;

	MIR_NEED(c, cond_create);
	MIR_NEED(c, cond_destroy);
	if (cc->rsvd || cc->flags & ~QCU_COND_DEFAULT ||
	    (!cc->graph && (cc->body || cc->value || cc->flags)))
		return QCU_ERR_InvalidValue;
	if (!handles_free(&m->handles, HANDLE_COND, cc->cond))
		return QCU_ERR_InvalidResourceHandle;
	if (cc->graph) {
		in = get(c, cc->graph);
		if (!in)
			return QCU_ERR_InvalidResourceHandle;
	}
	rc = create_in(c, in, &h);
	handles_put(&m->handles, in);
	if (rc)
		return rc;
	rc = handles_add(&m->handles, cc->cond, h);
	if (rc) {
		c->cmd->cond_create.handle = 0;
		handles_put(&m->handles, h);
	}
	return rc;
}

static bool size_fits(uint32_t type, uint32_t size)
{
	switch (type) {
	case QCU_COND_IF:
		return size == 1 || size == 2;
	case QCU_COND_WHILE:
		return size == 1;
	case QCU_COND_SWITCH:
		return size && size <= QCU_COND_BODIES;
	}
	return false;
}

int mir_do_cond_node(struct call *c)
{
	const struct qcu_cond_node *cn = &c->cmd->cond_node;
	struct handle *h;
	int rc;

	MIR_NEED(c, cond_node);
	if (!size_fits(cn->type, cn->size))
		return QCU_ERR_InvalidValue;
	h = get(c, cn->cond);
	if (!h)
		return QCU_ERR_InvalidResourceHandle;
	rc = h->parent ? c->m->cfg.ops->cond_node(c->m->be, h->cond, cn->type, cn->size)
		       : (int)QCU_ERR_InvalidValue;
	handles_put(&c->m->handles, h);
	return rc;
}

int mir_do_cond_record(struct call *c)
{
	struct mirror *m = c->m;
	const struct qcu_cond_record *cr = &c->cmd->cond_record;
	struct handle *cond, *h;
	int rc;

	MIR_NEED(c, cond_record);
	if (cr->rsvd)
		return QCU_ERR_InvalidValue;
	if (!handles_free(&m->handles, HANDLE_STREAM, cr->stream))
		return QCU_ERR_InvalidResourceHandle;
	cond = get(c, cr->cond);
	if (!cond)
		return QCU_ERR_InvalidResourceHandle;
	rc = mir_handle_new(c, HANDLE_STREAM, &h);
	if (rc) {
		handles_put(&m->handles, cond);
		return rc;
	}
	h->parent = cond;
	h->device = cond->device;
	h->body = cr->body;
	pthread_mutex_lock(&m->lock);
	h->recording = ++m->recordings;
	pthread_mutex_unlock(&m->lock);
	rc = m->cfg.ops->cond_record(m->be, cond->cond, cr->body, &h->stream);
	if (rc) {
		mir_handle_drop(m, h);
		return rc;
	}
	rc = record_body(m, cond, cr->body, &h->recorded);
	if (rc) {
		handles_put(&m->handles, h);
		return rc;
	}
	rc = handles_add(&m->handles, cr->stream, h);
	if (rc)
		handles_put(&m->handles, h);
	return rc;
}

/*
 * A conditional may only be placed in the graph that it was made for, and only once per recording.
 * So nothing can ever contain itself.
 */
static int place(struct call *c, struct handle *h, const struct stream_ref *s)
{
	struct mirror *m = c->m;
	bool again;

	if (!s->h || !s->h->parent || s->h->parent != h->parent || s->h->body != h->body)
		return QCU_ERR_InvalidValue;
	pthread_mutex_lock(&m->lock);
	again = h->recording == s->h->recording;
	h->recording = s->h->recording;
	pthread_mutex_unlock(&m->lock);
	return again ? (int)QCU_ERR_InvalidValue : m->cfg.ops->cond_place(m->be, h->cond, s->s);
}

int mir_do_cond_place(struct call *c)
{
	const struct qcu_cond_place *cp = &c->cmd->cond_place;
	struct stream_ref s;
	struct handle *h;
	int rc;

	MIR_NEED(c, cond_place);
	h = get(c, cp->cond);
	if (!h)
		return QCU_ERR_InvalidResourceHandle;
	rc = mir_stream_get(c, cp->stream, &s);
	if (!rc) {
		rc = place(c, h, &s);
		mir_stream_put(c, &s);
	}
	handles_put(&c->m->handles, h);
	return rc;
}

/* The outermost graph with this number. */
static int get_graph(struct call *c, uint32_t id, struct handle **out)
{
	struct handle *h = get(c, id);

	if (!h)
		return QCU_ERR_InvalidResourceHandle;
	if (h->parent) {
		handles_put(&c->m->handles, h);
		return QCU_ERR_InvalidValue;
	}
	*out = h;
	return QCU_ERR_Success;
}

int mir_do_cond_ready(struct call *c)
{
	struct handle *h;
	int rc;

	MIR_NEED(c, cond_ready);
	rc = get_graph(c, c->cmd->cond_ready.cond, &h);
	if (rc)
		return rc;
	rc = c->m->cfg.ops->cond_ready(c->m->be, h->cond);
	handles_put(&c->m->handles, h);
	return rc;
}

int mir_do_cond_run(struct call *c)
{
	const struct qcu_cond_run *cr = &c->cmd->cond_run;
	struct stream_ref s;
	struct handle *h;
	int rc;

	MIR_NEED(c, cond_run);
	rc = get_graph(c, cr->cond, &h);
	if (rc)
		return rc;
	rc = mir_stream_get(c, cr->stream, &s);
	if (!rc) {
		if (s.device == h->device) {
			struct timed *t = mir_time_begin(c, &s);

			rc = c->m->cfg.ops->cond_run(c->m->be, h->cond, s.s);
			mir_time_end(c, &s, t, !rc);
		} else {
			rc = QCU_ERR_InvalidResourceHandle;
		}
		mir_stream_put(c, &s);
	}
	handles_put(&c->m->handles, h);
	return rc;
}

int mir_do_cond_destroy(struct call *c)
{
	return handles_remove(&c->m->handles, HANDLE_COND, c->cmd->cond_destroy.cond)
		       ? QCU_ERR_Success
		       : QCU_ERR_InvalidResourceHandle;
}
