// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The commands for graphs. What a graph names must stay as long as the graph, so it holds
 * references to its kernels, events and arrays. Memory it only names: each launch looks whether the
 * memory is still there, and holds it as every command does.
 *
 * What the library was given in a call, it may read as late as in a launch: a copy that was
 * captured keeps its address alone. So the calls of a graph that has ended stay until its last
 * launch has.
 */
#include <stdlib.h>

#include "qcu-device/commands/graph/graph_read.h"

struct mir_graph {
	pthread_mutex_t lock; /* one launch or update at a time */
	uint32_t count;
	struct graph_node *nodes;
	uint64_t charged;
	uint32_t hosts;
	uint32_t calls;
	struct be_event *launched;  /* after the last launch of one with calls; NULL: none yet */
	unsigned int launched_on;   /* the event's device */
	struct mir_graph *next;	    /* of those that have ended */
	struct handle *outermost;   /* of its conditional nodes, claimed; NULL: there are none */
	bool split;		    /* some nodes are several of the backend's */
	bool broken;		    /* an update has failed half way */
	bool listed;		    /* `ranges` is as the nodes say */
	struct graph_range *ranges; /* sorted; none overlaps another */
	uint32_t range_count;
};

#define EVENT_DISABLE_TIMING 2u /* cudaEventDisableTiming */

/* A long description counts as more nodes. */
#define NODE_BYTES 512u

static uint64_t cost(uint32_t nodes, uint64_t bytes)
{
	return nodes + bytes / NODE_BYTES;
}

static int by_address(const void *a, const void *b)
{
	const struct graph_range *x = a, *y = b;

	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

/* Lists the memory of all nodes. */
static int list_ranges(struct mir_graph *g)
{
	struct graph_range *all = calloc(2 * (size_t)g->count + 1, sizeof(*all));
	uint32_t n = 0, kept = 0, i;

	if (!all)
		return QCU_ERR_MemoryAllocation;
	for (i = 0; i < g->count; i++) {
		if (g->nodes[i].dst.len)
			all[n++] = g->nodes[i].dst;
		if (g->nodes[i].src.len)
			all[n++] = g->nodes[i].src;
	}
	qsort(all, n, sizeof(*all), by_address);
	for (i = 0; i < n; i++) {
		struct graph_range *last = kept ? &all[kept - 1] : NULL;
		uint64_t off = last ? all[i].addr - last->addr : 0;

		if (!last || off >= last->len)
			all[kept++] = all[i];
		else if (all[i].len > last->len - off)
			last->len = off + all[i].len;
	}
	free(g->ranges);
	g->ranges = all;
	g->range_count = kept;
	g->listed = true;
	return QCU_ERR_Success;
}

static int check_ranges(struct call *c, struct mir_graph *g)
{
	int rc = g->listed ? (int)QCU_ERR_Success : list_ranges(g);
	uint32_t i;

	for (i = 0; i < g->range_count && !rc; i++)
		rc = mir_device_range(c, g->ranges[i].addr, g->ranges[i].len);
	return rc;
}

static void drop_nodes(struct mirror *m, struct mir_graph *g, bool with_calls)
{
	uint32_t i;

	for (i = 0; i < g->count; i++)
		if (with_calls || !g->nodes[i].call)
			graph_node_drop(m, &g->nodes[i]);
}

static void free_state(struct mirror *m, struct mir_graph *g)
{
	mir_give(m, LIMIT_GRAPH_NODES, g->charged);
	pthread_mutex_destroy(&g->lock);
	free(g->nodes);
	free(g->ranges);
	free(g);
}

/* Has the last launch ended? After an error of the GPU nothing runs any more. */
static bool launches_done(struct mirror *m, const struct mir_graph *g)
{
	return !g->launched || m->cfg.ops->event_query(m->be, g->launched) != QCU_ERR_NotReady;
}

/* Frees the graphs that have ended, and whose launches have, too. */
static void free_ended(struct mirror *m)
{
	struct mir_graph *all, *g, *left = NULL, **last = &left;

	pthread_mutex_lock(&m->lock);
	all = m->ended_graphs;
	m->ended_graphs = NULL;
	pthread_mutex_unlock(&m->lock);
	while ((g = all)) {
		all = g->next;
		if (!launches_done(m, g)) {
			*last = g;
			last = &g->next;
			continue;
		}
		m->cfg.ops->event_destroy(m->be, g->launched);
		drop_nodes(m, g, true);
		free_state(m, g);
	}
	if (!left)
		return;
	pthread_mutex_lock(&m->lock);
	*last = m->ended_graphs;
	m->ended_graphs = left;
	pthread_mutex_unlock(&m->lock);
}

void mir_graph_end(struct mirror *m, struct handle *h)
{
	struct mir_graph *g = h->graph_state;

	m->cfg.ops->graph_destroy(m->be, h->graph);
	graph_unclaim(m, g->outermost);
	drop_nodes(m, g, !g->launched);
	if (g->launched) {
		pthread_mutex_lock(&m->lock);
		g->next = m->ended_graphs;
		m->ended_graphs = g;
		pthread_mutex_unlock(&m->lock);
		free_ended(m);
	} else {
		free_state(m, g);
	}
}

void mir_graphs_end(struct mirror *m)
{
	struct mir_graph *g;
	uint32_t i;

	free_ended(m);
	for (g = m->ended_graphs; g; g = g->next) {
		m->cfg.ops->event_destroy(m->be, g->launched);
		for (i = 0; i < g->count; i++)
			graph_call_release(m, g->nodes[i].call);
	}
}

void mir_graphs_fini(struct mirror *m)
{
	struct mir_graph *g;

	while ((g = m->ended_graphs)) {
		m->ended_graphs = g->next;
		drop_nodes(m, g, true);
		free_state(m, g);
	}
}

/* Takes over the nodes of the reading. */
static struct mir_graph *new_state(struct graph_reading *r, uint64_t charged)
{
	struct mir_graph *g = calloc(1, sizeof(*g));
	uint32_t i;

	if (!g)
		return NULL;
	pthread_mutex_init(&g->lock, NULL);
	g->count = r->count;
	g->nodes = r->nodes;
	g->charged = charged + r->charged;
	g->split = r->total != r->count;
	for (i = 0; i < g->count; i++) {
		g->hosts += g->nodes[i].type == QCU_NODE_HOST;
		g->calls += g->nodes[i].type == QCU_NODE_CALL;
	}
	g->outermost = r->outermost;
	r->nodes = NULL;
	r->outermost = NULL;
	r->charged = 0;
	return g;
}

static int make_graph_handle(struct call *c, struct graph_reading *r, uint64_t charged,
			     struct handle **out)
{
	struct mirror *m = c->m;
	struct mir_graph *g;
	struct handle *h;
	int rc = mir_handle_new(c, HANDLE_GRAPH, &h);

	if (rc) {
		mir_give(m, LIMIT_GRAPH_NODES, charged);
		return rc;
	}
	h->device = c->cmd->device;
	rc = m->cfg.ops->graph_make(m->be, h->device, r->parts, r->total, &h->graph);
	if (rc) {
		mir_give(m, LIMIT_GRAPH_NODES, charged);
		mir_handle_drop(m, h);
		return rc;
	}
	g = new_state(r, charged);
	if (!g) {
		m->cfg.ops->graph_destroy(m->be, h->graph);
		mir_give(m, LIMIT_GRAPH_NODES, charged);
		mir_handle_drop(m, h);
		return QCU_ERR_MemoryAllocation;
	}
	h->graph_state = g;
	*out = h;
	return QCU_ERR_Success;
}

int mir_do_graph_make(struct call *c)
{
	const struct qcu_graph_make *gm = &c->cmd->graph_make;
	struct mirror *m = c->m;
	struct graph_reading r;
	struct handle *h;
	uint64_t charged = cost(gm->nodes, gm->buf.len);
	int rc;

	free_ended(m);
	if (!handles_free(&m->handles, HANDLE_GRAPH, gm->graph))
		return QCU_ERR_InvalidResourceHandle;
	rc = mir_take(c, LIMIT_GRAPH_NODES, charged);
	if (rc)
		return rc;
	rc = graph_read(c, gm->nodes, NULL, 0, &r);
	if (rc) {
		mir_give(m, LIMIT_GRAPH_NODES, charged);
		return rc;
	}
	rc = make_graph_handle(c, &r, charged, &h);
	graph_read_end(c, &r);
	if (rc)
		return rc;
	rc = handles_add(&m->handles, gm->graph, h);
	if (rc)
		handles_put(&m->handles, h);
	return rc;
}

bool mir_graph_memory(struct mirror *m, const struct handle *h)
{
	const struct mir_graph *g = h->graph_state;
	const struct graph_range *r;
	uint32_t i, side;

	for (i = 0; i < g->count; i++) {
		for (side = 0; side < 2; side++) {
			r = side ? &g->nodes[i].src : &g->nodes[i].dst;
			if (r->len && !m->cfg.ops->mem_valid(m->be, r->addr, r->len) &&
			    !window_pinned(&m->window, r->addr, r->len, NULL))
				return false;
		}
	}
	return !g->broken;
}

const struct graph_call *mir_graph_call(const struct handle *h, uint32_t *i)
{
	const struct mir_graph *g = h->graph_state;

	while (*i < g->count && !g->nodes[*i].call)
		++*i;
	return *i < g->count ? g->nodes[*i].call : NULL;
}

/* Can each of the nodes take the place of what the backend has? */
static bool can_update(const struct mir_graph *g, const struct graph_reading *r)
{
	uint32_t i;

	for (i = 0; i < r->count; i++)
		if (r->nodes[i].parts != 1 || g->nodes[r->be_nodes[i].index].parts != 1)
			return false;
	return true;
}

static int update_graph_nodes(struct call *c, struct handle *h, struct graph_reading *r)
{
	struct mirror *m = c->m;
	struct mir_graph *g = h->graph_state;
	uint32_t *index = calloc(r->count + 1, sizeof(*index)), i;
	int rc;

	if (!index)
		return QCU_ERR_MemoryAllocation;
	for (i = 0; i < r->count; i++) {
		index[i] = r->be_nodes[i].index;
		if (g->split)
			r->be_nodes[i].index = g->nodes[index[i]].last;
	}
	rc = m->cfg.ops->graph_update(m->be, h->graph, r->be_nodes, r->count);
	g->broken |= rc;
	for (i = 0; i < r->count && !rc; i++) {
		uint32_t last = g->nodes[index[i]].last;
		struct graph_node old = g->nodes[index[i]];

		if (r->nodes[i].type == QCU_NODE_ARGS)
			continue;
		g->listed = false;
		g->nodes[index[i]] = r->nodes[i];
		g->nodes[index[i]].last = last;
		r->nodes[i] = old; /* the reading drops it */
	}
	free(index);
	return rc;
}

int mir_do_graph_update(struct call *c)
{
	const struct qcu_graph_update *gu = &c->cmd->graph_update;
	struct handles *t = &c->m->handles;
	struct handle *h = handles_get(t, HANDLE_GRAPH, gu->graph);
	struct graph_reading r;
	struct mir_graph *g;
	int rc;

	if (!h)
		return QCU_ERR_InvalidResourceHandle;
	g = h->graph_state;
	pthread_mutex_lock(&g->lock);
	rc = graph_read(c, gu->nodes, g->nodes, g->count, &r);
	if (!rc) {
		if (g->broken || !can_update(g, &r))
			rc = QCU_ERR_GraphExecUpdateFailure;
		else
			rc = update_graph_nodes(c, h, &r);
		graph_read_end(c, &r);
	}
	pthread_mutex_unlock(&g->lock);
	handles_put(t, h);
	return rc;
}

/* Each function of the guest will run once more. */
static void expect_hosts(struct mir_graph *g, bool expect)
{
	uint32_t i;

	for (i = 0; g->hosts && i < g->count; i++) {
		if (g->nodes[i].host && expect)
			mir_graph_host_hold(g->nodes[i].host);
		else if (g->nodes[i].host)
			mir_graph_host_put(g->nodes[i].host);
	}
}

/* The event behind the last launch. There is one before the first launch, or none is made. */
static int make_launched(struct call *c, struct mir_graph *g, const struct stream_ref *s)
{
	const struct be_ops *ops = c->m->cfg.ops;
	struct be_event *e;
	int rc;

	if (!g->calls || (g->launched && g->launched_on == s->device))
		return QCU_ERR_Success;
	rc = ops->event_create(c->m->be, s->device, EVENT_DISABLE_TIMING, &e);
	if (rc)
		return rc;
	/* A launch of a graph waits for the one before it, so the older event is not needed. */
	if (g->launched)
		ops->event_destroy(c->m->be, g->launched);
	g->launched = e;
	g->launched_on = s->device;
	return QCU_ERR_Success;
}

static int launch_or_upload(struct call *c, struct handle *h, const struct stream_ref *s,
			    struct handle *event)
{
	const struct be_ops *ops = c->m->cfg.ops;
	struct mir_graph *g = h->graph_state;
	struct timed *t;
	int rc = check_ranges(c, g);

	if (rc)
		return rc;
	if (c->cmd->graph_launch.flags & QCU_GRAPH_UPLOAD)
		return ops->graph_upload(c->m->be, h->graph, s->s);
	rc = make_launched(c, g, s);
	if (rc)
		return rc;
	expect_hosts(g, true);
	t = mir_time_begin(c, s);
	rc = ops->graph_launch(c->m->be, h->graph, s->s);
	mir_time_end(c, s, t, !rc);
	if (!rc && g->calls)
		rc = ops->event_record(c->m->be, g->launched, s->s, 0);
	else if (rc)
		expect_hosts(g, false);
	if (!rc && event)
		rc = ops->event_record(c->m->be, event->event, s->s, 0);
	return rc;
}

static int launch_graph_handle(struct call *c, struct handle *h)
{
	const struct qcu_graph_launch *gl = &c->cmd->graph_launch;
	struct mir_graph *g = h->graph_state;
	struct handle *event = NULL;
	struct stream_ref s;
	int rc = mir_stream_get(c, gl->stream, &s);

	if (rc)
		return rc;
	if (gl->event != QCU_GRAPH_NO_EVENT) {
		event = handles_get(&c->m->handles, HANDLE_EVENT, gl->event);
		if (!event || event->device != s.device)
			rc = QCU_ERR_InvalidResourceHandle;
	}
	pthread_mutex_lock(&g->lock);
	if (!rc)
		rc = g->broken ? (int)QCU_ERR_InvalidValue : launch_or_upload(c, h, &s, event);
	pthread_mutex_unlock(&g->lock);
	handles_put(&c->m->handles, event);
	mir_stream_put(c, &s);
	return rc;
}

int mir_do_graph_launch(struct call *c)
{
	const struct qcu_graph_launch *gl = &c->cmd->graph_launch;
	struct handle *h;
	int rc;

	if (gl->flags & ~QCU_GRAPH_FLAGS)
		return QCU_ERR_InvalidValue;
	h = handles_get(&c->m->handles, HANDLE_GRAPH, gl->graph);
	if (!h)
		return QCU_ERR_InvalidResourceHandle;
	rc = launch_graph_handle(c, h);
	handles_put(&c->m->handles, h);
	return rc;
}
