// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Reads the description of a graph. It is copied first; then every length, number and address in it
 * is checked. A node may only depend on nodes before it, so no description has a circle.
 *
 * A backend takes a copy or memset only within one registration. What lies in several becomes
 * several nodes of the backend, one behind the other.
 */
#include <stdlib.h>
#include <string.h>

#include "qcu-device/commands/graph/graph_read.h"

/* How many nodes of the backend there may be beyond those of the description. */
#define PARTS_MAX (1u << 16)

/* One record of the description, and its three parts. */
struct node_fields {
	const struct qcu_graph_node *head;
	const uint8_t *body;
	const uint32_t *deps;
	const uint8_t *params;
	uint64_t param_room;
};

static uint64_t round_up_to_eight(uint64_t n)
{
	return (n + 7) / 8 * 8;
}

static bool zeros(const uint8_t *p, uint64_t n)
{
	while (n--)
		if (p[n])
			return false;
	return true;
}

static const size_t body_bytes[QCU_NODE_TYPES] = {
	[QCU_NODE_KERNEL] = sizeof(struct qcu_graph_kernel),
	[QCU_NODE_MEMSET] = sizeof(struct qcu_graph_memset),
	[QCU_NODE_COPY] = sizeof(struct qcu_graph_copy),
	[QCU_NODE_RECORD] = sizeof(struct qcu_graph_event),
	[QCU_NODE_WAIT] = sizeof(struct qcu_graph_event),
	[QCU_NODE_HOST] = sizeof(struct qcu_graph_host),
	[QCU_NODE_COND] = sizeof(struct qcu_graph_cond),
	[QCU_NODE_BODY] = sizeof(struct qcu_graph_body),
	[QCU_NODE_CALL] = sizeof(struct qcu_graph_call),
};

size_t mir_node_bytes(uint8_t type)
{
	return body_bytes[type];
}

/* Takes the record at `p` apart. False: it is not one. */
static bool take_apart(const uint8_t *p, uint64_t left, struct node_fields *r)
{
	const struct qcu_graph_node *n = (const void *)p;
	uint64_t at = sizeof(*n), deps;

	if (left < sizeof(*n) || n->bytes > left || n->bytes % 8 || n->type >= QCU_NODE_TYPES ||
	    n->rsvd || n->flags & ~QCU_NODE_OFF)
		return false;
	if (n->flags & QCU_NODE_OFF && n->type != QCU_NODE_KERNEL && n->type != QCU_NODE_MEMSET &&
	    n->type != QCU_NODE_COPY)
		return false;
	r->head = n;
	r->body = p + at;
	at += body_bytes[n->type];
	deps = (uint64_t)n->deps * sizeof(uint32_t);
	if (at > n->bytes || round_up_to_eight(deps) > n->bytes - at ||
	    !zeros(p + at + deps, round_up_to_eight(deps) - deps))
		return false;
	r->deps = (const void *)(p + at);
	at += round_up_to_eight(deps);
	r->params = p + at;
	r->param_room = n->bytes - at;
	return n->type == QCU_NODE_KERNEL || n->type == QCU_NODE_ARGS || n->type == QCU_NODE_CALL ||
	       !r->param_room;
}

/*
 * In the order of their numbers, so none comes twice. `first` is the first node of this graph or
 * body.
 */
static bool deps_good(const struct node_fields *r, uint32_t first)
{
	uint32_t i;

	for (i = 0; i < r->head->deps; i++)
		if (r->deps[i] < first || r->deps[i] >= r->head->index ||
		    (i && r->deps[i] <= r->deps[i - 1]))
			return false;
	return true;
}

static int read_kernel(struct call *c, const struct node_fields *r, struct graph_node *n,
		       struct be_node *b)
{
	const struct qcu_graph_kernel *k = (const void *)r->body;

	if (k->rsvd || round_up_to_eight(k->msg.param_bytes) != r->param_room ||
	    !zeros(r->params + k->msg.param_bytes, r->param_room - k->msg.param_bytes) ||
	    !mir_launch_params(&k->msg, r->params, &b->launch))
		return QCU_ERR_InvalidValue;
	n->h = handles_get(&c->m->handles, HANDLE_KERNEL, k->kernel);
	if (!n->h)
		return QCU_ERR_InvalidResourceHandle;
	b->kernel = n->h->kernel;
	n->launch = b->launch;
	n->launch.params = NULL;
	return b->launch.param_bytes == n->h->param_bytes ? QCU_ERR_Success : QCU_ERR_InvalidValue;
}

/* The kernel stays what the guest has described before; its node is `old`. */
static int read_args(const struct node_fields *r, const struct graph_node *old, struct be_node *b)
{
	uint64_t bytes = old->h->param_bytes;

	if (r->head->device != old->dev || round_up_to_eight(bytes) != r->param_room ||
	    !zeros(r->params + bytes, r->param_room - bytes))
		return QCU_ERR_InvalidValue;
	b->type = QCU_NODE_KERNEL;
	b->off = old->off;
	b->kernel = old->h->kernel;
	b->launch = old->launch;
	b->launch.params = r->params;
	return QCU_ERR_Success;
}

static int read_event(struct call *c, const struct node_fields *r, struct graph_node *n,
		      struct be_node *b)
{
	const struct qcu_graph_event *e = (const void *)r->body;

	if (e->rsvd)
		return QCU_ERR_InvalidValue;
	n->h = handles_get(&c->m->handles, HANDLE_EVENT, e->event);
	if (!n->h)
		return QCU_ERR_InvalidResourceHandle;
	b->event = n->h->event;
	return QCU_ERR_Success;
}

static int read_host(struct call *c, const struct node_fields *r, struct graph_node *n,
		     struct be_node *b)
{
	const struct qcu_graph_host *h = (const void *)r->body;

	if (!h->token)
		return QCU_ERR_InvalidValue;
	n->host = mir_graph_host_new(c->m, h->token);
	if (!n->host)
		return QCU_ERR_MemoryAllocation;
	b->host.fn = mir_graph_host_run;
	b->host.arg = n->host;
	return QCU_ERR_Success;
}

/* How many pieces has the range, as window_span() sees it? */
static uint32_t pieces_of(struct call *c, uint64_t dst, uint64_t src, uint64_t len)
{
	uint32_t n = 0;

	while (len && n <= PARTS_MAX) {
		uint64_t part = window_span(&c->m->window, dst, len);

		if (src)
			part = window_span(&c->m->window, src, part);
		dst += part;
		src += src ? part : 0;
		len -= part;
		n++;
	}
	return n;
}

static int read_memset(struct call *c, const struct node_fields *r, struct graph_node *n,
		       struct be_node *b)
{
	const struct qcu_graph_memset *s = (const void *)r->body;
	int rc;

	b->set = (struct be_memset){
		.dst = s->dst,
		.pitch = s->pitch,
		.width = s->width,
		.height = s->height,
		.value = s->value,
		.elem = s->elem,
	};
	if (!s->width || !s->height)
		return QCU_ERR_InvalidValue;
	n->dst.addr = s->dst;
	rc = mir_memset_extent(&b->set, &n->dst.len);
	if (!rc)
		rc = mir_device_range(c, s->dst, n->dst.len);
	if (rc)
		return rc;
	n->parts = pieces_of(c, s->dst, 0, n->dst.len);
	return n->parts > 1 && s->height > 1 ? QCU_ERR_NotSupported : QCU_ERR_Success;
}

/* One side of a copy: an array, which the node then holds, or memory. */
static int read_side(struct call *c, const struct qcu_graph_side *e, const struct be_box *b,
		     struct be_side *side, struct handle **array)
{
	*side = (struct be_side){.addr = e->addr,
				 .pitch = e->pitch,
				 .rows = e->rows,
				 .level = e->level,
				 .x = e->x,
				 .y = e->y,
				 .z = e->z};
	if (e->rsvd)
		return QCU_ERR_InvalidValue;
	if (e->array)
		return e->addr || e->pitch || e->rows ? (int)QCU_ERR_InvalidValue
						      : mir_array_side(c, e->array, side, b, array);
	return e->level || e->x || e->y || e->z ? QCU_ERR_InvalidValue : QCU_ERR_Success;
}

/* The range of memory that one side of a copy uses. The side says whether the window has it. */
static int range_of_side(struct call *c, struct be_side *e, const struct be_box *b,
			 struct graph_range *range)
{
	uint64_t rows, len;

	if (e->array)
		return QCU_ERR_Success;
	if ((b->height > 1 || b->depth > 1) && e->pitch < b->width)
		return QCU_ERR_InvalidPitchValue;
	if (b->depth > 1 && e->rows < b->height)
		return QCU_ERR_InvalidPitchValue;
	if (__builtin_mul_overflow(e->rows, b->depth - 1, &rows) ||
	    __builtin_add_overflow(rows, b->height - 1, &rows) ||
	    __builtin_mul_overflow(rows, e->pitch, &len) ||
	    __builtin_add_overflow(len, b->width, &len))
		return QCU_ERR_InvalidValue;
	*range = (struct graph_range){e->addr, len};
	return mir_memory_range(c, e->addr, len, &e->host);
}

/* Rows without gaps are one row, slices without gaps are one slice. */
static void flatten(struct be_box *b)
{
	uint64_t all;

	if (b->depth > 1 && b->dst.rows == b->height && b->src.rows == b->height &&
	    !__builtin_mul_overflow(b->height, b->depth, &all)) {
		b->height = b->dst.rows = b->src.rows = all;
		b->depth = 1;
	}
	if (b->depth == 1 && b->height > 1 && b->dst.pitch == b->width &&
	    b->src.pitch == b->width && !__builtin_mul_overflow(b->width, b->height, &all)) {
		b->width = b->dst.pitch = b->src.pitch = all;
		b->height = b->dst.rows = b->src.rows = 1;
	}
}

static int read_copy(struct call *c, const struct node_fields *r, struct graph_node *n,
		     struct be_node *b)
{
	const struct qcu_graph_copy *k = (const void *)r->body;
	struct be_box *box = &b->box;
	int rc;

	*box = (struct be_box){.width = k->width, .height = k->height, .depth = k->depth};
	if (!k->width || !k->height || !k->depth)
		return QCU_ERR_InvalidValue;
	rc = read_side(c, &k->dst, box, &box->dst, &n->h);
	if (!rc)
		rc = read_side(c, &k->src, box, &box->src, &n->from);
	if (rc)
		return rc;
	if (n->h && n->from && be_array_elem(&n->h->desc) != be_array_elem(&n->from->desc))
		return QCU_ERR_InvalidValue;
	if (!n->h && !n->from)
		flatten(box);
	rc = range_of_side(c, &box->dst, box, &n->dst);
	if (!rc)
		rc = range_of_side(c, &box->src, box, &n->src);
	if (rc)
		return rc;
	if (!n->h && !n->from && box->height == 1 && box->depth == 1) {
		n->parts = pieces_of(c, k->dst.addr, k->src.addr, box->width);
		return QCU_ERR_Success;
	}
	return pieces_of(c, n->dst.addr, 0, n->dst.len) > 1 ||
			       pieces_of(c, n->src.addr, 0, n->src.len) > 1
		       ? QCU_ERR_NotSupported
		       : QCU_ERR_Success;
}

/* The library may read its arguments as late as in a launch, so the graph keeps them. */
static int read_call(struct call *c, const struct node_fields *r, struct graph_node *n,
		     struct be_node *b)
{
	const struct qcu_graph_call *k = (const void *)r->body;

	if (k->bytes != r->param_room)
		return QCU_ERR_InvalidValue;
	if (!c->m->graph_call || r->head->device != c->cmd->device)
		return QCU_ERR_NotSupported;
	n->call = malloc(sizeof(*n->call) + k->bytes);
	if (!n->call)
		return QCU_ERR_MemoryAllocation;
	*n->call = (struct graph_call){
		.c = c,
		.library = k->library,
		.function = k->function,
		.bytes = k->bytes,
	};
	memcpy(n->call->args, r->params, k->bytes);
	b->call.fn = c->m->graph_call;
	b->call.arg = n->call;
	return QCU_ERR_Success;
}

/* ---- conditional nodes ---- */

/* Only one instance of an outermost graph may exist, and only one description of it be read. */
static int claim(struct call *c, struct graph_reading *g, struct handle *cond)
{
	struct handle *graph = cond;
	bool good;

	while (graph->parent)
		graph = graph->parent;
	if (graph->device != c->cmd->device)
		return QCU_ERR_InvalidDevice;
	if (g->outermost)
		return g->outermost == graph ? QCU_ERR_Success : QCU_ERR_InvalidValue;
	pthread_mutex_lock(&c->m->lock);
	good = !graph->instanced;
	graph->instanced = true;
	g->stamp = ++c->m->readings;
	pthread_mutex_unlock(&c->m->lock);
	if (!good)
		return QCU_ERR_InvalidValue;
	g->outermost = handle_hold(&c->m->handles, graph);
	return QCU_ERR_Success;
}

void graph_unclaim(struct mirror *m, struct handle *outermost)
{
	if (!outermost)
		return;
	pthread_mutex_lock(&m->lock);
	outermost->instanced = false;
	pthread_mutex_unlock(&m->lock);
	handles_put(&m->handles, outermost);
}

/* Each handle is for one node, in the body that it was made for. So no body contains itself. */
static int read_cond(struct call *c, struct graph_reading *g, const struct node_fields *r,
		     struct graph_node *n, struct be_node *b)
{
	const struct qcu_graph_cond *k = (const void *)r->body;
	int rc;

	if (k->rsvd)
		return QCU_ERR_InvalidValue;
	n->h = handles_get(&c->m->handles, HANDLE_COND, k->cond);
	if (!n->h)
		return QCU_ERR_InvalidResourceHandle;
	if (!n->h->parent)
		return QCU_ERR_InvalidValue;
	rc = claim(c, g, n->h);
	if (rc)
		return rc;
	if (n->h->reading == g->stamp || n->h->parent != (g->in ? g->in : g->outermost) ||
	    n->h->body != g->body)
		return QCU_ERR_InvalidValue;
	n->h->reading = g->stamp;
	b->cond = n->h->cond;
	n->bodies = k->size;
	return mir_cond_node(c, n->h, k->type, k->size);
}

/* The bodies come in order, so none comes twice. */
static int read_body(struct graph_reading *g, const struct node_fields *r, struct be_node *b)
{
	const struct qcu_graph_body *k = (const void *)r->body;

	if (r->head->deps || k->node >= r->head->index || g->nodes[k->node].type != QCU_NODE_COND ||
	    k->body >= g->nodes[k->node].bodies ||
	    (g->in && (k->node < g->at || (k->node == g->at && k->body <= g->body))))
		return QCU_ERR_InvalidValue;
	g->in = g->nodes[k->node].h;
	g->at = k->node;
	g->body = k->body;
	g->first = r->head->index + 1;
	b->body.node = k->node;
	b->body.number = k->body;
	return QCU_ERR_Success;
}

/* `old` are the nodes of the graph that is updated. */
static int read_node(struct call *c, struct graph_reading *g, const struct node_fields *r,
		     const struct graph_node *old, struct graph_node *n, struct be_node *b)
{
	n->type = b->type = r->head->type;
	n->parts = 1;
	n->off = b->off = r->head->flags & QCU_NODE_OFF;
	n->dev = r->head->device;
	b->dev = r->head->device;
	b->index = r->head->index;
	b->deps = r->deps;
	b->dep_count = r->head->deps;
	if (b->dev >= c->m->devices)
		return QCU_ERR_InvalidDevice;
	if (g->in &&
	    ((n->type >= QCU_NODE_RECORD && n->type <= QCU_NODE_HOST) || n->type == QCU_NODE_CALL))
		return QCU_ERR_InvalidValue;
	switch (n->type) {
	case QCU_NODE_KERNEL:
		return read_kernel(c, r, n, b);
	case QCU_NODE_MEMSET:
		return read_memset(c, r, n, b);
	case QCU_NODE_COPY:
		return read_copy(c, r, n, b);
	case QCU_NODE_RECORD:
	case QCU_NODE_WAIT:
		return read_event(c, r, n, b);
	case QCU_NODE_HOST:
		return read_host(c, r, n, b);
	case QCU_NODE_COND:
		return read_cond(c, g, r, n, b);
	case QCU_NODE_BODY:
		return read_body(g, r, b);
	case QCU_NODE_ARGS:
		return read_args(r, &old[b->index], b);
	case QCU_NODE_CALL:
		return read_call(c, r, n, b);
	}
	return QCU_ERR_Success;
}

/* Can the record stand for this node in an update? */
static bool type_good(uint8_t type, uint8_t old)
{
	return type == QCU_NODE_ARGS ? old == QCU_NODE_KERNEL : type == old && type < QCU_NODE_COND;
}

/* Is this the number of the next node? In an update the numbers only have to rise. */
static bool index_good(const struct graph_reading *g, const struct node_fields *r, uint32_t i,
		       const struct graph_node *old, uint32_t old_count)
{
	if (!old)
		return r->head->index == i && r->head->type != QCU_NODE_ARGS &&
		       deps_good(r, g->first);
	return r->head->index < old_count && !r->head->deps &&
	       (!i || r->head->index > g->be_nodes[i - 1].index) &&
	       type_good(r->head->type, old[r->head->index].type);
}

static int read_all_nodes(struct call *c, struct graph_reading *g, const struct graph_node *old,
			  uint32_t old_count)
{
	uint64_t left = c->cmd->buf.len;
	const uint8_t *p = g->bytes;
	struct node_fields r;
	uint32_t i;
	int rc;

	for (i = 0; i < g->count; i++) {
		if (!take_apart(p, left, &r) || !index_good(g, &r, i, old, old_count))
			return QCU_ERR_InvalidValue;
		rc = read_node(c, g, &r, old, &g->nodes[i], &g->be_nodes[i]);
		if (rc)
			return rc;
		g->total += g->nodes[i].parts;
		if (g->total - i > PARTS_MAX)
			return QCU_ERR_MemoryAllocation;
		p += r.head->bytes;
		left -= r.head->bytes;
	}
	return left ? QCU_ERR_InvalidValue : QCU_ERR_Success;
}

/* ---- parts ---- */

/* The next part of what is left of the node; moves its beginning. */
static void cut_next_part(struct call *c, struct be_node *part, struct be_node *left)
{
	struct window *w = &c->m->window;
	uint64_t n;

	*part = *left;
	if (left->type == QCU_NODE_MEMSET) {
		n = window_span(w, left->set.dst, left->set.width);
		part->set.width = n;
		left->set.dst += n;
		left->set.width -= n;
		return;
	}
	n = window_span(w, left->box.dst.addr, left->box.width);
	n = window_span(w, left->box.src.addr, n);
	part->box.width = n;
	left->box.dst.addr += n;
	left->box.src.addr += n;
	left->box.width -= n;
}

/* A part lies in one registration, or in one allocation. */
static void tell_host(struct call *c, struct be_box *box)
{
	if (box->dst.host)
		box->dst.host = mir_on_host(c->m, box->dst.addr);
	if (box->src.host)
		box->src.host = mir_on_host(c->m, box->src.addr);
}

/* False: the registrations are not what they were a moment ago. */
static bool divide_node(struct call *c, struct graph_reading *g, const struct graph_node *n,
			const struct be_node *b, uint32_t *at)
{
	struct be_node left = *b;
	uint32_t k;

	for (k = 0; k < n->parts; k++) {
		struct be_node *part = &g->parts[*at];

		if (n->parts == 1)
			*part = *b;
		else
			cut_next_part(c, part, &left);
		part->index = *at;
		if (part->type == QCU_NODE_COPY)
			tell_host(c, &part->box);
		if (part->type == QCU_NODE_BODY)
			part->body.node = g->nodes[part->body.node].last;
		if (k) {
			g->before[*at] = *at - 1;
			part->deps = &g->before[*at];
			part->dep_count = 1;
		}
		++*at;
	}
	return n->parts == 1 || !(left.type == QCU_NODE_MEMSET ? left.set.width : left.box.width);
}

/* Numbers the backend's nodes. The dependencies are rewritten in our copy of the description. */
static int divide_all(struct call *c, struct graph_reading *g)
{
	uint32_t at = 0, i, k;

	g->parts = calloc(g->total, sizeof(*g->parts));
	g->before = calloc(g->total, sizeof(*g->before));
	if (!g->parts || !g->before)
		return QCU_ERR_MemoryAllocation;
	for (i = 0; i < g->count; i++) {
		uint32_t *deps = (uint32_t *)(uintptr_t)g->be_nodes[i].deps;

		for (k = 0; k < g->be_nodes[i].dep_count; k++)
			deps[k] = g->nodes[deps[k]].last;
		if (!divide_node(c, g, &g->nodes[i], &g->be_nodes[i], &at))
			return QCU_ERR_InvalidValue;
		g->nodes[i].last = at - 1;
	}
	return QCU_ERR_Success;
}

static int number_parts(struct call *c, struct graph_reading *g)
{
	uint32_t i;
	int rc;

	for (i = 0; i < g->count; i++)
		g->nodes[i].last = i;
	g->parts = g->be_nodes;
	if (g->total == g->count)
		return QCU_ERR_Success;
	rc = mir_take(c, LIMIT_GRAPH_NODES, g->total - g->count);
	if (rc)
		return rc;
	g->charged = g->total - g->count;
	return divide_all(c, g);
}

void graph_call_release(struct mirror *m, struct graph_call *call)
{
	if (!call)
		return;
	handles_put(&m->handles, call->object);
	handles_put(&m->handles, call->second);
	call->object = call->second = NULL;
}

void graph_node_drop(struct mirror *m, struct graph_node *n)
{
	handles_put(&m->handles, n->h);
	handles_put(&m->handles, n->from);
	mir_graph_host_put(n->host);
	graph_call_release(m, n->call);
	if (n->call) {
		free(n->call->made);
		free(n->call->memory);
	}
	free(n->call);
	n->h = n->from = NULL;
	n->host = NULL;
	n->call = NULL;
}

void graph_read_end(struct call *c, struct graph_reading *g)
{
	uint32_t i;

	for (i = 0; g->nodes && i < g->count; i++)
		graph_node_drop(c->m, &g->nodes[i]);
	graph_unclaim(c->m, g->outermost);
	mir_give(c->m, LIMIT_GRAPH_NODES, g->charged);
	if (g->parts != g->be_nodes)
		free(g->parts);
	free(g->before);
	free(g->be_nodes);
	free(g->nodes);
	free(g->bytes);
}

int graph_read(struct call *c, uint32_t count, const struct graph_node *old, uint32_t old_count,
	       struct graph_reading *g)
{
	uint64_t len = c->cmd->buf.len;
	int rc;

	*g = (struct graph_reading){0};
	if (len > QCU_GRAPH_BYTES_MAX)
		return QCU_ERR_MemoryAllocation;
	if (count > len / sizeof(struct qcu_graph_node))
		return QCU_ERR_InvalidValue;
	g->count = count;
	g->bytes = malloc(len + 1);
	g->nodes = calloc(count + 1, sizeof(*g->nodes));
	g->be_nodes = calloc(count + 1, sizeof(*g->be_nodes));
	rc = g->bytes && g->nodes && g->be_nodes ? mir_buf_read(c, g->bytes, len)
						 : (int)QCU_ERR_MemoryAllocation;
	if (!rc)
		rc = read_all_nodes(c, g, old, old_count);
	if (!rc && !old)
		rc = number_parts(c, g);
	if (rc)
		graph_read_end(c, g);
	return rc;
}
