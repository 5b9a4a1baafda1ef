// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The host's instance of an executable graph. The graph is described once, all of it in one
 * command: its nodes with their real dependencies. Child graphs are described with the graph that
 * they are in, between two empty nodes. The bodies of conditional nodes follow the graph. From then
 * on a launch is one command, and what the program changes in the instance is sent before the next
 * launch.
 *
 * Nodes that allocate or free memory do nothing on the host (graph_memory.c). Host functions get a
 * token, which is the same for each launch.
 */
#include <stdlib.h>
#include <string.h>

#include "qcu-library/graph/graph.h"
#include "qcu-library/link/capture.h"
#include "qcu-library/memory/array.h"

#define NO_NODE UINT32_MAX

static struct {
	uint32_t stamps;
} process;

/* A description that is being written. */
struct text {
	uint8_t *bytes;
	size_t len, room;
	uint32_t nodes;
	struct CUgraphNode_st **sent; /* by number */
	size_t sent_room;
	unsigned long long flags;
	bool update;
	bool records, waits, calls;
	bool body;	/* the nodes are in a body */
	uint32_t *deps; /* of the node that is being written */
	size_t dep_count, dep_room;
	struct qcul_span *pins;
	size_t pin_count;
};

static bool is_sent_alive(const struct qcul_sent *s)
{
	const struct qcul_handle *slot = &qcul_graphs.slots[s->id];

	return s->id && s->epoch == qcul_epoch() && qcul_handle_id(&qcul_graphs, slot) &&
	       slot->flags == s->stamp;
}

/* ---- writing ---- */

/* The next `len` bytes, zeroed. NULL: there is no memory. */
static void *more(struct text *t, size_t len)
{
	uint8_t *at;

	len = (len + 7) / 8 * 8;
	if (len > t->room - t->len) {
		size_t room = 2 * t->room + len + 4096;
		uint8_t *bytes = realloc(t->bytes, room);

		if (!bytes)
			return NULL;
		t->bytes = bytes;
		t->room = room;
	}
	at = t->bytes + t->len;
	memset(at, 0, len);
	t->len += len;
	return at;
}

static bool add_dep(struct text *t, uint32_t number)
{
	if (t->dep_count == t->dep_room) {
		size_t room = 2 * t->dep_room + 16;
		uint32_t *deps = realloc(t->deps, room * sizeof(*deps));

		if (!deps)
			return false;
		t->deps = deps;
		t->dep_room = room;
	}
	t->deps[t->dep_count++] = number;
	return true;
}

static int by_number(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

/* Two edges may lead from one node to the same other node. */
static void sort_deps(struct text *t)
{
	size_t i, kept = 0;

	for (i = 1; i < t->dep_count && t->deps[i] > t->deps[i - 1]; i++)
		;
	if (i >= t->dep_count)
		return;
	qsort(t->deps, t->dep_count, sizeof(*t->deps), by_number);
	for (i = 0; i < t->dep_count; i++)
		if (!kept || t->deps[i] != t->deps[kept - 1])
			t->deps[kept++] = t->deps[i];
	t->dep_count = kept;
}

static bool remember_sent_node(struct text *t, struct CUgraphNode_st *n)
{
	struct CUgraphNode_st **sent = t->sent;

	if (t->nodes == t->sent_room) {
		t->sent_room = 2 * t->sent_room + 64;
		sent = realloc(t->sent, t->sent_room * sizeof(*sent));
		if (!sent)
			return false;
		t->sent = sent;
	}
	sent[t->nodes] = n;
	return true;
}

/*
 * Begins the next record, with a body of `len` bytes and the dependencies in t->deps. Returns the
 * body. The record is complete, unless parameters follow (add_params).
 */
static void *begin_node_record(struct text *t, uint8_t type, const struct CUgraphNode_st *n,
			       size_t len)
{
	size_t start = t->len, deps;
	struct qcu_graph_node *head;
	int device = n ? n->device : qcul_self.device;

	sort_deps(t);
	deps = (t->dep_count * sizeof(*t->deps) + 7) / 8 * 8;
	len = (len + 7) / 8 * 8;
	head = more(t, sizeof(*head) + len + deps);
	if (!head)
		return NULL;
	qcul_device_used(device);
	head->bytes = (uint32_t)(t->len - start);
	head->type = type;
	head->device = qcul_device_ordinal(device);
	head->flags = n && n->disabled ? QCU_NODE_OFF : 0;
	head->index = t->update ? n->number : t->nodes;
	head->deps = (uint32_t)t->dep_count;
	if (t->dep_count)
		memcpy((uint8_t *)(head + 1) + len, t->deps, t->dep_count * sizeof(*t->deps));
	t->dep_count = 0;
	return head + 1;
}

/* Ends the record that begins at `start` with its packed parameters. */
static cudaError_t add_params(struct text *t, size_t start, const void *params, size_t bytes)
{
	void *to = more(t, bytes);

	if (!to)
		return cudaErrorMemoryAllocation;
	if (bytes)
		memcpy(to, params, bytes);
	((struct qcu_graph_node *)(t->bytes + start))->bytes = (uint32_t)(t->len - start);
	return cudaSuccess;
}

static cudaError_t write_empty(struct text *t, const struct CUgraphNode_st *n)
{
	return begin_node_record(t, QCU_NODE_EMPTY, n, 0) ? cudaSuccess : cudaErrorMemoryAllocation;
}

static cudaError_t describe_kernel(const struct CUgraphNode_st *n, unsigned long long flags,
				   struct qcu_launch_msg *msg)
{
	const struct qcul_node_kernel *k = &n->params.kernel;
	cudaLaunchAttribute attrs[QCUL_NODE_ATTRS];
	cudaLaunchConfig_t config;
	int before = qcul_self.device;
	cudaError_t err;

	qcul_node_launch(k, flags, &config, attrs);
	qcul_self.device = n->device;
	err = qcul_launch_describe(k->kernel, &config, k->args, msg);
	qcul_self.device = before;
	return err;
}

static bool same_dim(const dim3 *a, const dim3 *b)
{
	return a->x == b->x && a->y == b->y && a->z == b->z;
}

static bool same_shape(const struct CUgraphNode_st *n)
{
	const struct qcul_node_kernel *k = &n->params.kernel;
	const struct qcul_node_shape *s = &n->shape;

	return s->kernel == k->kernel && !k->attr_count && s->disabled == n->disabled &&
	       s->shared == k->shared && same_dim(&s->grid, &k->grid) &&
	       same_dim(&s->block, &k->block);
}

/* The host has the node now. */
static void node_sent(struct CUgraphNode_st *n)
{
	const struct qcul_node_kernel *k = &n->params.kernel;

	n->changed = false;
	if (n->params.type == cudaGraphNodeTypeKernel)
		n->shape = (struct qcul_node_shape){
			.kernel = k->attr_count ? NULL : k->kernel,
			.grid = k->grid,
			.block = k->block,
			.shared = k->shared,
			.disabled = n->disabled,
		};
}

/* Only the arguments of the kernel differ. */
static cudaError_t write_args(struct text *t, const struct CUgraphNode_st *n)
{
	const struct CUkern_st *k = n->params.kernel.kernel;
	size_t len = sizeof(struct qcu_graph_node) + (k->param_bytes + 7) / 8 * 8;
	struct qcu_graph_node *head = more(t, len);

	if (!head)
		return cudaErrorMemoryAllocation;
	*head = (struct qcu_graph_node){
		.bytes = (uint32_t)len,
		.type = QCU_NODE_ARGS,
		.device = qcul_device_ordinal(n->device),
		.index = n->number,
	};
	if (k->param_bytes)
		memcpy(head + 1, n->params.kernel.packed, k->param_bytes);
	return cudaSuccess;
}

static cudaError_t write_kernel(struct text *t, const struct CUgraphNode_st *n)
{
	const struct CUkern_st *k = n->params.kernel.kernel;
	struct qcu_graph_kernel *body;
	struct qcu_launch_msg msg;
	size_t start = t->len;
	cudaError_t err;

	if (t->update && same_shape(n))
		return write_args(t, n);
	err = describe_kernel(n, t->flags, &msg);
	if (err)
		return err;
	body = begin_node_record(t, QCU_NODE_KERNEL, n, sizeof(*body));
	if (!body)
		return cudaErrorMemoryAllocation;
	body->kernel = k->id;
	body->msg = msg;
	return add_params(t, start, n->params.kernel.packed, k->param_bytes);
}

static cudaError_t write_memset(struct text *t, const struct CUgraphNode_st *n)
{
	const struct cudaMemsetParams *m = &n->params.memset;
	uint64_t pitch = m->height > 1 ? m->pitch : 0, width = m->width * m->elementSize;
	uint64_t dst, len;
	struct qcu_graph_memset *body;

	if (__builtin_mul_overflow(pitch, m->height - 1, &len) ||
	    __builtin_add_overflow(len, width, &len) || !qcul_copy_lasts(m->dst, len, &dst))
		return cudaErrorNotSupported;
	body = begin_node_record(t, QCU_NODE_MEMSET, n, sizeof(*body));
	if (!body)
		return cudaErrorMemoryAllocation;
	*body = (struct qcu_graph_memset){
		.dst = dst,
		.pitch = pitch,
		.width = width,
		.height = m->height,
		.value = m->value,
		.elem = m->elementSize,
	};
	return cudaSuccess;
}

/*
 * Pageable memory in chunks is pinned as long as the instance lives: it is read or written when a
 * launch reaches the copy. False: it does not lie in chunks.
 */
static bool pin(struct text *t, const void *addr, size_t len, uint64_t *device)
{
	struct qcul_span *pins;

	if (!qcul_copy_pin(addr, len))
		return false;
	pins = realloc(t->pins, (t->pin_count + 1) * sizeof(*pins));
	if (!pins)
		return false;
	t->pins = pins;
	pins[t->pin_count++] = (struct qcul_span){addr, len};
	*device = (uint64_t)(uintptr_t)addr;
	return true;
}

/* Memory at one side of a copy; pos->x counts units. False: the GPU cannot use all of it. */
static bool find_memory(struct text *t, const struct cudaPitchedPtr *p, const struct cudaPos *pos,
			size_t unit, const struct qcu_graph_copy *c, struct qcu_graph_side *side)
{
	const char *at;
	uint64_t rows, len, off, x, device;

	if (__builtin_mul_overflow(p->ysize, c->depth - 1, &rows) ||
	    __builtin_add_overflow(rows, c->height - 1, &rows) ||
	    __builtin_mul_overflow(rows, p->pitch, &len) ||
	    __builtin_add_overflow(len, c->width, &len) ||
	    __builtin_mul_overflow(p->ysize, pos->z, &off) ||
	    __builtin_add_overflow(off, pos->y, &off) ||
	    __builtin_mul_overflow(off, p->pitch, &off) ||
	    __builtin_mul_overflow(pos->x, unit, &x) || __builtin_add_overflow(off, x, &off))
		return false;
	at = (const char *)p->ptr + off;
	if (!qcul_copy_lasts(at, len, &device) && !pin(t, at, len, &device))
		return false;
	side->addr = device;
	side->pitch = p->pitch;
	side->rows = p->ysize;
	return true;
}

static bool find_array_side(cudaArray_const_t array, const struct cudaPos *pos,
			    struct qcu_graph_side *side)
{
	const struct qcul_array *a = qcul_array(array);

	if (!a || pos->x > UINT32_MAX / a->elem || pos->y > UINT32_MAX || pos->z > UINT32_MAX)
		return false;
	side->array = a->id;
	side->level = a->level;
	side->x = (uint32_t)pos->x * a->elem;
	side->y = (uint32_t)pos->y;
	side->z = (uint32_t)pos->z;
	return true;
}

/* With an array, the width and the position in memory count elements. */
static cudaError_t write_copy(struct text *t, const struct CUgraphNode_st *n)
{
	const struct cudaMemcpy3DParms *p = &n->params.copy;
	const struct qcul_array *a = NULL;
	struct qcu_graph_copy c = {.height = p->extent.height, .depth = p->extent.depth}, *body;
	size_t unit = 1;

	if (p->dstArray || p->srcArray) {
		a = qcul_array(p->dstArray ? p->dstArray : p->srcArray);
		if (!a)
			return cudaErrorInvalidResourceHandle;
		unit = a->elem;
	}
	if (__builtin_mul_overflow(p->extent.width, unit, &c.width))
		return cudaErrorInvalidValue;
	if (!(p->dstArray ? find_array_side(p->dstArray, &p->dstPos, &c.dst)
			  : find_memory(t, &p->dstPtr, &p->dstPos, unit, &c, &c.dst)) ||
	    !(p->srcArray ? find_array_side(p->srcArray, &p->srcPos, &c.src)
			  : find_memory(t, &p->srcPtr, &p->srcPos, unit, &c, &c.src)))
		return cudaErrorNotSupported;
	body = begin_node_record(t, QCU_NODE_COPY, n, sizeof(*body));
	if (!body)
		return cudaErrorMemoryAllocation;
	*body = c;
	return cudaSuccess;
}

static cudaError_t write_event(struct text *t, const struct CUgraphNode_st *n, uint8_t type)
{
	uint32_t id = qcul_handle_id(&qcul_events, n->params.event);
	cudaError_t err = id ? qcul_event_need(id) : cudaErrorInvalidResourceHandle;
	struct qcu_graph_event *body;

	if (err)
		return err;
	body = begin_node_record(t, type, n, sizeof(*body));
	if (!body)
		return cudaErrorMemoryAllocation;
	body->event = id;
	return cudaSuccess;
}

/* An update gets a call of its own: launches that are under way still run the old one. */
static cudaError_t write_host(struct text *t, struct CUgraphNode_st *n)
{
	struct qcul_host_call *call;
	struct qcu_graph_host *body;
	cudaError_t err = qcul_graph_host_new(n->params.host.fn, n->params.host.userData, &call);

	if (err)
		return err;
	qcul_graph_host_put(n->call);
	n->call = call;
	body = begin_node_record(t, QCU_NODE_HOST, n, sizeof(*body));
	if (!body)
		return cudaErrorMemoryAllocation;
	body->token = (uint64_t)(uintptr_t)call;
	return cudaSuccess;
}

static cudaError_t write_cond(struct text *t, const struct CUgraphNode_st *n)
{
	const struct qcul_node_cond *c = &n->params.cond;
	struct qcu_graph_cond *body;
	uint32_t id;
	cudaError_t err = qcul_cond_id(c->cond, &id);

	if (err)
		return err;
	body = begin_node_record(t, QCU_NODE_COND, n, sizeof(*body));
	if (!body)
		return cudaErrorMemoryAllocation;
	body->cond = id;
	body->type = c->type;
	body->size = c->size;
	return cudaSuccess;
}

/*
 * The host captures what its own library does. The library's settings for the object are in the
 * message, so a changed call needs a new instance.
 */
static cudaError_t write_call(struct text *t, const struct CUgraphNode_st *n)
{
	const struct qcul_captured_call *c = n->params.call;
	size_t start = t->len;
	struct qcu_graph_call *body;

	if (t->update || !c->packed.args)
		return cudaErrorNotSupported;
	body = begin_node_record(t, QCU_NODE_CALL, n, sizeof(*body));
	if (!body)
		return cudaErrorMemoryAllocation;
	body->library = c->packed.library;
	body->function = c->packed.function;
	body->bytes = c->packed.bytes;
	return add_params(t, start, c->packed.args, c->packed.bytes);
}

/* What a body can hold. */
static bool fits_body(enum cudaGraphNodeType type)
{
	return type == cudaGraphNodeTypeKernel || type == cudaGraphNodeTypeMemset ||
	       type == cudaGraphNodeTypeMemcpy || type == cudaGraphNodeTypeEmpty ||
	       type == cudaGraphNodeTypeConditional;
}

static cudaError_t write_node(struct text *t, struct CUgraphNode_st *n)
{
	if (t->body && !fits_body(n->params.type))
		return cudaErrorNotSupported;
	switch (n->params.type) {
	case cudaGraphNodeTypeKernel:
		return write_kernel(t, n);
	case cudaGraphNodeTypeMemset:
		return write_memset(t, n);
	case cudaGraphNodeTypeMemcpy:
		return write_copy(t, n);
	case cudaGraphNodeTypeHost:
		t->calls = true;
		return write_host(t, n);
	case cudaGraphNodeTypeEventRecord:
		t->records = true;
		return write_event(t, n, QCU_NODE_RECORD);
	case cudaGraphNodeTypeWaitEvent:
		t->waits = true;
		return write_event(t, n, QCU_NODE_WAIT);
	case cudaGraphNodeTypeEmpty:
	case cudaGraphNodeTypeMemAlloc:
	case cudaGraphNodeTypeMemFree:
		return write_empty(t, n);
	case cudaGraphNodeTypeConditional:
		return write_cond(t, n);
	default:
		return (int)n->params.type == QCUL_NODE_CALL ? write_call(t, n)
							     : cudaErrorNotSupported;
	}
}

/* ---- the whole graph ---- */

static cudaError_t write_graph(struct text *t, const struct CUgraph_st *g, uint32_t start);

/* Adds a node that only joins others. */
static cudaError_t write_joint(struct text *t, uint32_t *number)
{
	cudaError_t err =
		remember_sent_node(t, NULL) ? write_empty(t, NULL) : cudaErrorMemoryAllocation;

	*number = t->nodes++;
	return err;
}

/* The node's dependencies are in t->deps. */
static cudaError_t write_child(struct text *t, struct CUgraphNode_st *n)
{
	const struct CUgraph_st *child = n->params.child;
	uint32_t start;
	cudaError_t err = write_joint(t, &start);
	size_t i, k;

	if (!err)
		err = write_graph(t, child, start);
	if (err)
		return err;
	/* The end comes after the nodes that no other node comes after. */
	for (i = 0; i < child->count; i++)
		child->nodes[i]->flagged = false;
	for (i = 0; i < child->count; i++)
		for (k = 0; k < child->nodes[i]->dep_count; k++)
			child->nodes[i]->deps[k].from->flagged = true;
	for (i = 0; i < child->count; i++)
		if (!child->nodes[i]->flagged && !add_dep(t, child->nodes[i]->number))
			return cudaErrorMemoryAllocation;
	if (!t->dep_count && !add_dep(t, start))
		return cudaErrorMemoryAllocation;
	return write_joint(t, &n->number);
}

/* More that the node depends on is in t->deps. */
static cudaError_t write_one(struct text *t, struct CUgraphNode_st *n, uint32_t start)
{
	cudaError_t err;
	size_t k;

	for (k = 0; k < n->dep_count; k++)
		if (!add_dep(t, n->deps[k].from->number))
			return cudaErrorMemoryAllocation;
	if (!n->dep_count && start != NO_NODE && !add_dep(t, start))
		return cudaErrorMemoryAllocation;
	if (n->params.type == cudaGraphNodeTypeGraph)
		return write_child(t, n);
	if (!remember_sent_node(t, n))
		return cudaErrorMemoryAllocation;
	err = write_node(t, n);
	n->number = t->nodes++;
	node_sent(n);
	return err;
}

/*
 * Nodes that depend on no other begin in the order in which they were added. A conditional node
 * among them looks at its value when it begins. Programs rely on it that a kernel that was added
 * before has set this value by then, so the node depends on those that were added before.
 */
static bool add_earlier_roots(struct text *t, struct CUgraphNode_st *const *order, size_t at)
{
	size_t i;

	for (i = 0; i < at; i++)
		if (!order[i]->dep_count && !add_dep(t, order[i]->number))
			return false;
	return true;
}

/* Nodes that depend on no other come after `start`. */
static cudaError_t write_graph(struct text *t, const struct CUgraph_st *g, uint32_t start)
{
	struct CUgraphNode_st **order = qcul_graph_order(g);
	cudaError_t err = order ? cudaSuccess : cudaErrorInvalidValue;
	size_t i;

	for (i = 0; i < g->count && !err; i++) {
		t->dep_count = 0;
		if (order[i]->params.type == cudaGraphNodeTypeConditional && !order[i]->dep_count &&
		    !add_earlier_roots(t, order, i))
			err = cudaErrorMemoryAllocation;
		if (!err)
			err = write_one(t, order[i], start);
	}
	free(order);
	return err;
}

static cudaError_t write_body(struct text *t, uint32_t node, uint32_t body,
			      const struct CUgraph_st *g)
{
	struct qcu_graph_body *b = remember_sent_node(t, NULL)
					   ? begin_node_record(t, QCU_NODE_BODY, NULL, sizeof(*b))
					   : NULL;

	if (!b)
		return cudaErrorMemoryAllocation;
	t->nodes++;
	b->node = node;
	b->body = body;
	return write_graph(t, g, NO_NODE);
}

/* The conditional nodes of a body come behind it, and so do their bodies. */
static cudaError_t write_bodies(struct text *t)
{
	cudaError_t err = cudaSuccess;
	uint32_t i, b;

	t->body = true;
	for (i = 0; i < t->nodes && !err; i++) {
		const struct CUgraphNode_st *n = t->sent[i];

		if (!n || n->params.type != cudaGraphNodeTypeConditional)
			continue;
		for (b = 0; b < n->params.cond.size && !err; b++)
			if (n->params.cond.bodies[b]->count)
				err = write_body(t, i, b, n->params.cond.bodies[b]);
	}
	return err;
}

static cudaError_t send_make(struct qcul_sent *s, const struct text *t)
{
	struct qCUcmd cmd = qcul_cmd(QCU_OP_GRAPH_MAKE);
	struct qcul_handle *slot;
	cudaError_t err;

	if (t->len > QCU_GRAPH_BYTES_MAX)
		return cudaErrorMemoryAllocation;
	slot = qcul_handle_new(&qcul_graphs, &s->id);
	if (!slot) {
		s->id = 0;
		return cudaErrorMemoryAllocation;
	}
	s->epoch = qcul_epoch();
	s->stamp = __atomic_add_fetch(&process.stamps, 1, __ATOMIC_RELAXED);
	slot->device = qcul_self.device;
	slot->flags = s->stamp;
	cmd.graph_make.buf.addr = (uint64_t)(uintptr_t)t->bytes;
	cmd.graph_make.buf.len = t->len;
	cmd.graph_make.graph = s->id;
	cmd.graph_make.nodes = t->nodes;
	err = qcul_send(&cmd, 1);
	if (err) {
		qcul_handle_drop(&qcul_graphs, s->id);
		s->id = 0;
	}
	return err;
}

static void text_free(struct text *t)
{
	free(t->bytes);
	free(t->deps);
	free(t->sent);
	free(t->pins);
}

cudaError_t qcul_sent_make(struct qcul_sent *s, const struct CUgraph_st *g,
			   unsigned long long flags)
{
	struct text t = {.flags = flags};
	cudaError_t err;

	qcul_sent_drop(s);
	s->unmaps = qcul_copy_unmaps();
	err = write_graph(&t, g, NO_NODE);
	if (!err)
		err = write_bodies(&t);
	if (!err)
		err = send_make(s, &t);
	if (!err) {
		s->nodes = t.sent;
		s->count = t.nodes;
		s->records = t.records;
		s->waits = t.waits;
		s->calls = t.calls;
		s->pins = t.pins;
		s->pin_count = t.pin_count;
		t.sent = NULL;
		t.pins = NULL;
	}
	text_free(&t);
	return err;
}

void qcul_sent_drop(struct qcul_sent *s)
{
	struct qCUcmd cmd;

	if (is_sent_alive(s)) {
		cmd = qcul_cmd(QCU_OP_GRAPH_DESTROY);
		cmd.graph_destroy.graph = s->id;
		(void)qcul_post(&cmd, 1);
		qcul_handle_drop(&qcul_graphs, s->id);
	}
	free(s->nodes);
	free(s->pins);
	*s = (struct qcul_sent){0};
}

bool qcul_sent_pinned(struct qcul_sent *s)
{
	unsigned int unmaps = qcul_copy_unmaps();
	size_t i;

	if (!s->pin_count || s->unmaps == unmaps)
		return true;
	for (i = 0; i < s->pin_count; i++)
		if (!qcul_copy_pin(s->pins[i].addr, s->pins[i].len))
			return false;
	s->unmaps = unmaps;
	return true;
}

/* The instance keeps what it had: copies that it no longer does cost only a look. */
static bool keep_pins(struct qcul_sent *s, const struct text *t)
{
	struct qcul_span *pins;

	if (!t->pin_count)
		return true;
	pins = realloc(s->pins, (s->pin_count + t->pin_count) * sizeof(*pins));
	if (!pins)
		return false;
	memcpy(pins + s->pin_count, t->pins, t->pin_count * sizeof(*pins));
	s->pins = pins;
	s->pin_count += t->pin_count;
	return true;
}

static cudaError_t send_update(const struct qcul_sent *s, const struct text *t)
{
	struct qCUcmd cmd = qcul_cmd(QCU_OP_GRAPH_UPDATE);

	if (!t->nodes)
		return cudaSuccess;
	cmd.graph_update.buf.addr = (uint64_t)(uintptr_t)t->bytes;
	cmd.graph_update.buf.len = t->len;
	cmd.graph_update.graph = s->id;
	cmd.graph_update.nodes = t->nodes;
	return t->len > QCU_GRAPH_BYTES_MAX ? cudaErrorGraphExecUpdateFailure : qcul_send(&cmd, 1);
}

cudaError_t qcul_sent_update(struct qcul_sent *s, unsigned long long flags)
{
	struct text t = {.flags = flags, .update = true};
	cudaError_t err = is_sent_alive(s) ? cudaSuccess : cudaErrorInvalidValue;
	uint32_t i;

	for (i = 0; i < s->count && !err; i++) {
		if (!s->nodes[i] || !s->nodes[i]->changed ||
		    s->nodes[i]->params.type == cudaGraphNodeTypeConditional)
			continue;
		err = write_node(&t, s->nodes[i]);
		t.nodes++;
	}
	if (!err && !keep_pins(s, &t))
		err = cudaErrorMemoryAllocation;
	if (!err)
		err = send_update(s, &t);
	text_free(&t);
	/* A new instance can have what the old one cannot become. */
	if (err == cudaErrorNotSupported)
		err = cudaErrorGraphExecUpdateFailure;
	for (i = 0; i < s->count && !err; i++)
		if (s->nodes[i] && s->nodes[i]->changed)
			node_sent(s->nodes[i]);
	s->changed = err;
	return err;
}

/* ---- launching ---- */

static void expect_calls(const struct qcul_sent *s)
{
	uint32_t i;

	for (i = 0; s->calls && i < s->count; i++)
		if (s->nodes[i] && s->nodes[i]->call)
			qcul_graph_host_expect(s->nodes[i]->call);
}

/* The mirror has the launch, or has refused it. */
static void calls_sent(const struct qcul_sent *s, bool good)
{
	uint32_t i;

	for (i = 0; s->calls && i < s->count; i++) {
		if (!s->nodes[i] || !s->nodes[i]->call)
			continue;
		if (good)
			qcul_graph_host_sent();
		else
			qcul_graph_host_put(s->nodes[i]->call);
	}
}

static void events_recorded(const struct qcul_sent *s)
{
	uint32_t i;

	for (i = 0; i < s->count; i++)
		if (s->nodes[i] && s->nodes[i]->params.type == cudaGraphNodeTypeEventRecord)
			qcul_progress_recorded(
				qcul_handle_id(&qcul_events, s->nodes[i]->params.event));
}

cudaError_t qcul_sent_launch(struct qcul_sent *s, cudaStream_t stream, cudaEvent_t event)
{
	struct qCUcmd cmd = qcul_cmd(QCU_OP_GRAPH_LAUNCH);
	cudaError_t err = is_sent_alive(s) ? cudaSuccess : cudaErrorInvalidValue;

	if (!err)
		err = qcul_stream_id(stream, &cmd.graph_launch.stream);
	if (!err)
		cmd.device = qcul_device_ordinal(qcul_stream_device(cmd.graph_launch.stream));
	cmd.graph_launch.graph = s->id;
	cmd.graph_launch.event = QCU_GRAPH_NO_EVENT;
	cmd.graph_launch.flags =
		(s->waits ? QCU_GRAPH_AFTER_ALL : 0) | (s->records ? QCU_GRAPH_RECORDS : 0);
	if (!err && event) {
		cmd.graph_launch.event = qcul_handle_id(&qcul_events, event);
		err = qcul_event_need(cmd.graph_launch.event);
	}
	if (err)
		return err;
	expect_calls(s);
	err = qcul_post(&cmd, 1);
	calls_sent(s, !err);
	if (!err && s->records)
		events_recorded(s);
	if (!err && qcul_blocking())
		err = qcul_stream_wait(cmd.graph_launch.stream);
	return err;
}

cudaError_t qcul_sent_upload(const struct qcul_sent *s, cudaStream_t stream)
{
	struct qCUcmd cmd = qcul_cmd(QCU_OP_GRAPH_LAUNCH);
	cudaError_t err = is_sent_alive(s) ? cudaSuccess : cudaErrorInvalidValue;

	if (!err)
		err = qcul_stream_id(stream, &cmd.graph_launch.stream);
	cmd.graph_launch.graph = s->id;
	cmd.graph_launch.event = QCU_GRAPH_NO_EVENT;
	cmd.graph_launch.flags = QCU_GRAPH_UPLOAD;
	return err ? err : qcul_post(&cmd, 1);
}
