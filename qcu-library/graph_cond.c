// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Conditional nodes. What decides is a value that only kernels know, so these are the one kind of
 * node that the host carries out: its bodies are sent there when the graph is instantiated, as
 * calls in streams that keep them, and a launch says where the node stands among the rest.
 *
 * Handles have values of the host's own, because kernels use them.
 */
#include <stdlib.h>

#include "qcu-library/graph.h"

/* A handle, and what the host makes for it. */
struct qcul_cond {
	struct qcul_cond *next;
	unsigned int refs; /* of its graph, its node, and executable graphs */
	cudaGraphConditionalHandle handle;
	uint32_t id, stamp;
	unsigned int epoch;
	int device;
	uint64_t graph;		  /* serial of the one that it was made for */
	struct qcul_cond *within; /* whose body that is; held */
	unsigned int first;	  /* value when a graph is launched */
	bool has_first;
	bool used;	/* it has a node */
	bool made;	/* the host has the node */
	bool instanced; /* an executable graph has it */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct qcul_cond *conds;
static uint32_t stamps;

void qcul_conds_lock(void)
{
	pthread_mutex_lock(&lock);
}

void qcul_conds_unlock(void)
{
	pthread_mutex_unlock(&lock);
}

/* The host has it, in this session and after every reset. */
static bool alive(const struct qcul_cond *c)
{
	const struct qcul_handle *slot = &qcul_conds.slots[c->id];

	return c->epoch == qcul_epoch() && qcul_handle_id(&qcul_conds, slot) &&
	       slot->flags == c->stamp;
}

static void hold(struct qcul_cond *c)
{
	qcul_conds_lock();
	c->refs++;
	qcul_conds_unlock();
}

void qcul_cond_put(struct qcul_cond *c)
{
	while (c) {
		struct qcul_cond **p = &conds, *within = c->within;
		struct qCUcmd cmd;
		bool gone;

		qcul_conds_lock();
		gone = !--c->refs;
		if (gone) {
			while (*p != c)
				p = &(*p)->next;
			*p = c->next;
		}
		qcul_conds_unlock();
		if (!gone)
			return;
		if (alive(c)) {
			cmd = qcul_cmd(QCU_OP_COND_DESTROY);
			cmd.cond_destroy.cond = c->id;
			(void)qcul_post(&cmd, 1);
			qcul_handle_drop(&qcul_conds, c->id);
		}
		free(c);
		c = within;
	}
}

/* ---- handles ---- */

static cudaError_t make(struct qcul_cond *c)
{
	struct qCUcmd cmd = qcul_cmd(QCU_OP_COND_CREATE);
	struct qcul_handle *slot = qcul_handle_new(&qcul_conds, &c->id);
	cudaError_t err;

	if (!slot)
		return cudaErrorMemoryAllocation;
	slot->device = c->device;
	slot->flags = c->stamp;
	cmd.cond_create.cond = c->id;
	cmd.cond_create.within = c->within ? c->within->id : 0;
	err = qcul_send(&cmd, 1);
	c->handle = cmd.cond_create.handle;
	if (err)
		qcul_handle_drop(&qcul_conds, c->id);
	return err;
}

static cudaError_t create(cudaGraphConditionalHandle *handle, cudaGraph_t graph, unsigned int first,
			  unsigned int flags)
{
	struct qcul_cond *c, **more;
	cudaError_t err;

	if (!handle || !qcul_graph_valid(graph) || flags & ~cudaGraphCondAssignDefault)
		return cudaErrorInvalidValue;
	err = qcul_ready();
	if (err)
		return err;
	if (graph->body_of && !alive(graph->body_of))
		return cudaErrorInvalidValue;
	c = calloc(1, sizeof(*c));
	more = realloc(graph->conds, (graph->cond_count + 1) * sizeof(struct qcul_cond *));
	if (more)
		graph->conds = more;
	if (!c || !more) {
		free(c);
		return cudaErrorMemoryAllocation;
	}
	*c = (struct qcul_cond){
		.refs = 1,
		.stamp = __atomic_add_fetch(&stamps, 1, __ATOMIC_RELAXED),
		.epoch = qcul_epoch(),
		.device = qcul_self.device,
		.graph = graph->serial,
		.within = graph->body_of,
		.first = first,
		.has_first = flags,
	};
	err = make(c);
	if (err) {
		free(c);
		return err;
	}
	if (c->within)
		hold(c->within);
	qcul_conds_lock();
	c->next = conds;
	conds = c;
	qcul_conds_unlock();
	graph->conds[graph->cond_count++] = c;
	*handle = c->handle;
	return cudaSuccess;
}

cudaError_t cudaGraphConditionalHandleCreate(cudaGraphConditionalHandle *handle, cudaGraph_t graph,
					     unsigned int first, unsigned int flags)
{
	return qcul_done(create(handle, graph, first, flags));
}

void qcul_graph_conds_release(struct CUgraph_st *g)
{
	size_t i;

	for (i = 0; i < g->cond_count; i++)
		qcul_cond_put(g->conds[i]);
	free(g->conds);
}

/* ---- nodes ---- */

static bool size_fits(enum cudaGraphConditionalNodeType type, unsigned int size)
{
	switch (type) {
	case cudaGraphCondTypeIf:
		return size == 1 || size == 2;
	case cudaGraphCondTypeWhile:
		return size == 1;
	case cudaGraphCondTypeSwitch:
		return size;
	}
	return false;
}

/* With a reference. */
static struct qcul_cond *find(cudaGraphConditionalHandle handle)
{
	struct qcul_cond *c;

	qcul_conds_lock();
	for (c = conds; c && (c->handle != handle || !alive(c)); c = c->next)
		;
	if (c)
		c->refs++;
	qcul_conds_unlock();
	return c;
}

static cudaError_t make_bodies(struct qcul_node_cond *n)
{
	unsigned int i;

	n->bodies = calloc(n->size, sizeof(cudaGraph_t));
	for (i = 0; n->bodies && i < n->size; i++) {
		n->bodies[i] = qcul_graph_new();
		if (!n->bodies[i])
			return cudaErrorMemoryAllocation;
		n->bodies[i]->is_child = true;
		n->bodies[i]->body_of = n->cond;
	}
	return n->bodies ? cudaSuccess : cudaErrorMemoryAllocation;
}

cudaError_t qcul_node_cond(struct qcul_node_params *p, const struct CUgraph_st *g,
			   const struct cudaConditionalNodeParams *from)
{
	static atomic_flag many = ATOMIC_FLAG_INIT, around = ATOMIC_FLAG_INIT;
	struct qcul_cond *c;
	cudaError_t err = cudaSuccess;

	p->type = cudaGraphNodeTypeEmpty;
	if (!qcul_graph_valid(g) || !size_fits(from->type, from->size))
		return cudaErrorInvalidValue;
	if (from->size > QCU_COND_BODIES)
		return qcul_unsupported("a conditional node with more than 256 bodies", &many);
	c = find(from->handle);
	if (!c)
		return cudaErrorInvalidValue;
	if (c->used)
		err = cudaErrorInvalidValue;
	else if (c->graph != g->serial)
		err = g->body_of ? qcul_unsupported(
					   "a conditional node with a handle of another graph",
					   &around)
				 : cudaErrorInvalidValue;
	if (err) {
		qcul_cond_put(c);
		return err;
	}
	*p = (struct qcul_node_params){
		.type = cudaGraphNodeTypeConditional,
		.cond = {.cond = c, .type = from->type, .size = from->size},
	};
	err = make_bodies(&p->cond);
	if (err)
		qcul_node_release(p);
	else
		c->used = true;
	return err;
}

/* Also the graphs that are children in it. */
static void mark_body(struct CUgraph_st *g, struct qcul_cond *c)
{
	size_t i;

	g->is_child = true;
	g->body_of = c;
	for (i = 0; i < g->count; i++)
		if (g->nodes[i]->params.type == cudaGraphNodeTypeGraph)
			mark_body(g->nodes[i]->params.child, c);
}

cudaError_t qcul_node_cond_clone(struct qcul_node_params *to, const struct qcul_node_params *from)
{
	unsigned int i;

	*to = *from;
	to->cond.copy = true;
	hold(to->cond.cond);
	to->cond.bodies = calloc(from->cond.size, sizeof(cudaGraph_t));
	for (i = 0; to->cond.bodies && i < from->cond.size; i++) {
		to->cond.bodies[i] = qcul_graph_clone(from->cond.bodies[i]);
		if (!to->cond.bodies[i])
			break;
		mark_body(to->cond.bodies[i], to->cond.cond);
	}
	if (to->cond.bodies && i == from->cond.size)
		return cudaSuccess;
	qcul_node_release(to);
	return cudaErrorMemoryAllocation;
}

void qcul_node_cond_release(struct qcul_node_params *p)
{
	struct qcul_node_cond *n = &p->cond;
	unsigned int i;

	for (i = 0; n->bodies && i < n->size; i++)
		qcul_graph_free(n->bodies[i]);
	/* The handle may have another node as long as the host has none. */
	if (!n->copy && !n->cond->made)
		n->cond->used = false;
	free(n->bodies);
	qcul_cond_put(n->cond);
}

bool qcul_same_cond(const struct qcul_node_params *a, const struct qcul_node_params *b)
{
	return a->cond.cond == b->cond.cond;
}

/* ---- telling the host what the bodies are ---- */

/* A place that the GPU knows, now and later; 0: it does not. */
static uint64_t lasting(const struct cudaPitchedPtr *p, const struct cudaPos *pos)
{
	const char *at = (const char *)p->ptr + (pos->z * p->ysize + pos->y) * p->pitch + pos->x;

	return qcul_mem_find(at).kind == QCUL_MEM_HOST ? 0 : qcul_mem_device_address(at);
}

static cudaError_t record_copy(const struct cudaMemcpy3DParms *p, uint32_t stream)
{
	struct qCUcmd cmd;
	uint64_t src, dst;
	cudaError_t err = cudaSuccess;
	size_t z;

	if (p->srcArray || p->dstArray)
		return cudaErrorNotSupported;
	src = lasting(&p->srcPtr, &p->srcPos);
	dst = lasting(&p->dstPtr, &p->dstPos);
	if (!src || !dst)
		return cudaErrorNotSupported;
	if (p->extent.width > UINT32_MAX || p->extent.height > UINT32_MAX ||
	    p->srcPtr.pitch > UINT32_MAX || p->dstPtr.pitch > UINT32_MAX)
		return cudaErrorInvalidPitchValue;
	for (z = 0; z < p->extent.depth && !err; z++) {
		cmd = qcul_cmd(QCU_OP_RECT_D2D);
		cmd.rect_d2d = (struct qcu_rect_d2d){
			.dst = dst + z * p->dstPtr.ysize * p->dstPtr.pitch,
			.src = src + z * p->srcPtr.ysize * p->srcPtr.pitch,
			.dst_pitch = (uint32_t)p->dstPtr.pitch,
			.src_pitch = (uint32_t)p->srcPtr.pitch,
			.width = (uint32_t)p->extent.width,
			.height = (uint32_t)p->extent.height,
			.stream = stream,
		};
		err = qcul_send(&cmd, 1);
	}
	return err;
}

static cudaError_t record_graph(const struct CUgraph_st *g, uint32_t stream,
				unsigned long long flags);
static cudaError_t record_cond(const struct qcul_node_cond *n, uint32_t stream,
			       unsigned long long flags);

static cudaError_t record_node(const struct CUgraphNode_st *n, uint32_t stream,
			       unsigned long long flags)
{
	static atomic_flag said = ATOMIC_FLAG_INIT, said_copy = ATOMIC_FLAG_INIT;
	cudaError_t err;

	if (n->disabled)
		return cudaSuccess;
	switch (n->params.type) {
	case cudaGraphNodeTypeEmpty:
		return cudaSuccess;
	case cudaGraphNodeTypeKernel:
	case cudaGraphNodeTypeMemset:
		return qcul_node_run(n, flags, (cudaStream_t)&qcul_streams.slots[stream]);
	case cudaGraphNodeTypeMemcpy:
		err = record_copy(&n->params.copy, stream);
		if (err == cudaErrorNotSupported)
			return qcul_unsupported("a copy of an array or of pageable memory in the "
						"body of a conditional node",
						&said_copy);
		return err;
	case cudaGraphNodeTypeGraph:
		return record_graph(n->params.child, stream, flags);
	case cudaGraphNodeTypeConditional:
		return record_cond(&n->params.cond, stream, flags);
	default:
		return qcul_unsupported("the body of a conditional node with a node that is no "
					"kernel, copy, memset, graph or conditional",
					&said);
	}
}

static cudaError_t record_graph(const struct CUgraph_st *g, uint32_t stream,
				unsigned long long flags)
{
	struct CUgraphNode_st **order = qcul_graph_order(g);
	cudaError_t err = order ? cudaSuccess : cudaErrorInvalidValue;
	size_t i;

	for (i = 0; i < g->count && !err; i++)
		err = record_node(order[i], stream, flags);
	free(order);
	return err;
}

/* All that goes into the stream is waited for, so that what is wrong with it is told here. */
static cudaError_t record_body(const struct qcul_node_cond *n, unsigned int body,
			       unsigned long long flags)
{
	struct qCUcmd cmd = qcul_cmd(QCU_OP_COND_RECORD);
	struct qcul_handle *slot;
	cudaError_t err, late;
	uint32_t stream;

	slot = qcul_handle_new(&qcul_streams, &stream);
	if (!slot)
		return cudaErrorMemoryAllocation;
	slot->device = n->cond->device;
	slot->flags = cudaStreamNonBlocking;
	cmd.cond_record.cond = n->cond->id;
	cmd.cond_record.body = body;
	cmd.cond_record.stream = stream;
	err = qcul_send(&cmd, 1);
	if (!err) {
		err = record_graph(n->bodies[body], stream, flags);
		cmd = qcul_cmd(QCU_OP_STREAM_DESTROY);
		cmd.stream_destroy.stream = stream;
		late = qcul_known(qcul_send(&cmd, 1));
		err = err ? err : late;
	}
	qcul_handle_drop(&qcul_streams, stream);
	return err;
}

/* `stream`: of the body that it is in, or 0. */
static cudaError_t record_cond(const struct qcul_node_cond *n, uint32_t stream,
			       unsigned long long flags)
{
	static atomic_flag said = ATOMIC_FLAG_INIT;
	struct qcul_cond *c = n->cond;
	struct qCUcmd cmd = qcul_cmd(QCU_OP_COND_NODE);
	cudaError_t err = cudaSuccess;
	unsigned int i;

	if (!alive(c))
		return cudaErrorInvalidValue;
	if (c->made && stream)
		return qcul_unsupported("a graph instantiated or updated again that has a "
					"conditional node in another's body",
					&said);
	if (!c->made) {
		cmd.cond_node.cond = c->id;
		cmd.cond_node.type = n->type;
		cmd.cond_node.size = n->size;
		cmd.cond_node.stream = stream;
		err = qcul_send(&cmd, 1);
		c->made = !err;
	}
	for (i = 0; i < n->size && !err; i++)
		err = record_body(n, i, flags);
	return err;
}

static cudaError_t ready(const struct qcul_node_params *p, unsigned long long flags)
{
	struct qCUcmd cmd;
	int before = qcul_self.device;
	cudaError_t err;

	/* The bodies are for the device that the handle was made on. */
	qcul_self.device = p->cond.cond->device;
	err = record_cond(&p->cond, 0, flags);
	if (!err) {
		cmd = qcul_cmd(QCU_OP_COND_READY);
		cmd.cond_ready.cond = p->cond.cond->id;
		err = qcul_send(&cmd, 1);
	}
	qcul_self.device = before;
	return err;
}

/* ---- executable graphs ---- */

/* Those of a graph and of all bodies in it. */
static cudaError_t collect(const struct CUgraph_st *g, struct qcul_conds *all)
{
	struct qcul_cond **more;
	cudaError_t err = cudaSuccess;
	unsigned int b;
	size_t i;

	for (i = 0; i < g->cond_count; i++) {
		if (!g->conds[i]->used)
			return cudaErrorInvalidValue;
		more = realloc(all->cond, (all->count + 1) * sizeof(*more));
		if (!more)
			return cudaErrorMemoryAllocation;
		all->cond = more;
		hold(g->conds[i]);
		more[all->count++] = g->conds[i];
	}
	for (i = 0; i < g->count && !err; i++) {
		const struct qcul_node_params *p = &g->nodes[i]->params;

		for (b = 0; p->type == cudaGraphNodeTypeConditional && b < p->cond.size && !err;
		     b++)
			err = collect(p->cond.bodies[b], all);
	}
	return err;
}

static bool claim(struct qcul_conds *all)
{
	bool good = true;
	size_t i;

	qcul_conds_lock();
	for (i = 0; i < all->count && good; i++)
		good = !all->cond[i]->instanced;
	for (i = 0; i < all->count && good; i++)
		all->cond[i]->instanced = true;
	all->claimed = good;
	qcul_conds_unlock();
	return good;
}

static cudaError_t send_bodies(const struct CUgraph_st *g, unsigned long long flags)
{
	cudaError_t err = cudaSuccess;
	size_t i;

	for (i = 0; i < g->count && !err; i++)
		if (g->nodes[i]->params.type == cudaGraphNodeTypeConditional)
			err = ready(&g->nodes[i]->params, flags);
	return err;
}

cudaError_t qcul_exec_conds_renew(const struct CUgraph_st *copy, unsigned long long flags)
{
	cudaError_t err = qcul_devices_idle();

	return err ? err : send_bodies(copy, flags);
}

cudaError_t qcul_exec_conds_begin(const struct CUgraph_st *g, const struct CUgraph_st *copy,
				  unsigned long long flags, struct qcul_conds *all,
				  cudaGraphInstantiateResult *result)
{
	cudaError_t err = collect(g, all);

	if (err == cudaErrorInvalidValue)
		*result = cudaGraphInstantiateConditionalHandleUnused;
	/* There is one instance at a time. */
	if (!err && !claim(all))
		err = cudaErrorInvalidValue;
	return err ? err : send_bodies(copy, flags);
}

void qcul_exec_conds_end(struct qcul_conds *all)
{
	size_t i;

	for (i = 0; i < all->count; i++) {
		if (all->claimed)
			all->cond[i]->instanced = false;
		qcul_cond_put(all->cond[i]);
	}
	free(all->cond);
}

cudaError_t qcul_exec_conds_launch(const struct qcul_conds *all, cudaStream_t stream)
{
	cudaError_t err = cudaSuccess;
	uint32_t id;
	size_t i;

	for (i = 0; i < all->count && !err; i++) {
		const struct qcul_cond *c = all->cond[i];
		struct qCUcmd cmd = qcul_cmd(QCU_OP_COND_SET);

		if (!alive(c))
			return cudaErrorInvalidValue;
		if (!c->has_first)
			continue;
		err = qcul_stream_id(stream, &id);
		cmd.cond_set.cond = c->id;
		cmd.cond_set.value = c->first;
		cmd.cond_set.stream = id;
		if (!err)
			err = qcul_post(&cmd, 1);
	}
	return err;
}

cudaError_t qcul_cond_run(const struct qcul_node_params *p, cudaStream_t stream)
{
	struct qCUcmd cmd = qcul_cmd(QCU_OP_COND_RUN);
	cudaError_t err = qcul_stream_id(stream, &cmd.cond_run.stream);

	cmd.cond_run.cond = p->cond.cond->id;
	return err ? err : qcul_post(&cmd, 1);
}
