// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Graphs with conditional nodes. The condition is a value that only kernels know, and only kernels
 * of the same graph may set it. So the host carries out the whole graph. When the graph is
 * instantiated, the library sends the graph and the bodies of its nodes to the host: as calls in
 * streams that keep the work instead of doing it. A launch is then one command.
 *
 * The host chooses the values of handles, because kernels use them.
 */
#include <stdlib.h>

#include "qcu-library/link/fork.h"
#include "qcu-library/graph/graph.h"

/* A conditional handle or an outermost graph. The host has an object with the same number. */
struct qcul_cond {
	struct qcul_cond *next;
	unsigned int refs; /* from its graph, its node, executable graphs, and objects inside it */
	cudaGraphConditionalHandle handle;
	uint32_t id, stamp; /* the stamp tells users of the same id apart */
	unsigned int epoch;
	int device;
	uint64_t graph; /* serial of the graph that it was made for */
	/* The handle whose body this graph is, or the outermost graph; holds a reference. NULL:
	 * this object is the outermost graph itself. */
	struct qcul_cond *in;
	bool used; /* a node uses the handle */
	/* For the outermost graph only. */
	bool instanced; /* there is an executable graph */
	bool recorded;	/* the host has received the work of the graph */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
QCUL_AT_FORK(QCUL_FORK_CONDS, .lock = &lock)
static struct qcul_cond *conds;
static uint32_t stamps;

/* True if the host still has the object: it is of this session, and no device reset has destroyed
 * it. */
static bool alive(const struct qcul_cond *c)
{
	const struct qcul_handle *slot = &qcul_conds.slots[c->id];

	return c->epoch == qcul_epoch() && qcul_handle_id(&qcul_conds, slot) &&
	       slot->flags == c->stamp;
}

static void hold(struct qcul_cond *c)
{
	pthread_mutex_lock(&lock);
	c->refs++;
	pthread_mutex_unlock(&lock);
}

void qcul_cond_put(struct qcul_cond *c)
{
	while (c) {
		struct qcul_cond **p = &conds, *in = c->in;
		struct qCUcmd cmd;
		bool gone;

		pthread_mutex_lock(&lock);
		gone = !--c->refs;
		if (gone) {
			while (*p != c)
				p = &(*p)->next;
			*p = c->next;
		}
		pthread_mutex_unlock(&lock);
		if (!gone)
			return;
		if (alive(c)) {
			cmd = qcul_cmd(QCU_OP_COND_DESTROY);
			cmd.cond_destroy.cond = c->id;
			(void)qcul_post(&cmd, 1);
			qcul_handle_drop(&qcul_conds, c->id);
		}
		free(c);
		c = in;
	}
}

/* ---- handles ---- */

/* Creates an object here and on the host. The caller fills in the command, except for `cond` and
 * `graph`. */
static cudaError_t make(struct qCUcmd *cmd, struct qcul_cond *in, uint64_t graph,
			struct qcul_cond **out)
{
	struct qcul_cond *c = calloc(1, sizeof(*c));
	struct qcul_handle *slot;
	cudaError_t err;

	if (!c)
		return cudaErrorMemoryAllocation;
	*c = (struct qcul_cond){
		.refs = 1,
		.stamp = __atomic_add_fetch(&stamps, 1, __ATOMIC_RELAXED),
		.epoch = qcul_epoch(),
		.device = qcul_self.device,
		.graph = graph,
		.in = in,
	};
	slot = qcul_handle_new(&qcul_conds, &c->id);
	if (!slot) {
		free(c);
		return cudaErrorMemoryAllocation;
	}
	slot->device = c->device;
	slot->flags = c->stamp;
	cmd->cond_create.cond = c->id;
	cmd->cond_create.graph = in ? in->id : 0;
	err = qcul_send(cmd, 1);
	if (err) {
		qcul_handle_drop(&qcul_conds, c->id);
		free(c);
		return err;
	}
	c->handle = cmd->cond_create.handle;
	if (in)
		hold(in);
	pthread_mutex_lock(&lock);
	c->next = conds;
	conds = c;
	pthread_mutex_unlock(&lock);
	*out = c;
	return cudaSuccess;
}

/* Returns in *in the object that a new handle of graph g belongs to. For an outermost graph, the
 * first handle creates this object. */
static cudaError_t need_graph(struct CUgraph_st *g, struct qcul_cond **in)
{
	struct qCUcmd cmd = qcul_cmd(QCU_OP_COND_CREATE);

	*in = g->body_of ? g->body_of : g->outermost;
	if (!*in) {
		cudaError_t err = make(&cmd, NULL, g->serial, &g->outermost);

		*in = g->outermost;
		return err;
	}
	return alive(*in) ? cudaSuccess : cudaErrorInvalidValue;
}

static cudaError_t create(cudaGraphConditionalHandle *handle, cudaGraph_t graph, unsigned int first,
			  unsigned int flags)
{
	static atomic_flag said = ATOMIC_FLAG_INIT;
	struct qCUcmd cmd = qcul_cmd(QCU_OP_COND_CREATE);
	struct qcul_cond *in, **more;
	cudaError_t err;

	if (!handle || !qcul_graph_valid(graph) || flags & ~cudaGraphCondAssignDefault)
		return cudaErrorInvalidValue;
	err = qcul_ready();
	if (!err)
		err = need_graph(graph, &in);
	if (err)
		return err;
	if (in->device != qcul_self.device)
		return qcul_unsupported("a graph with conditional nodes on two devices", &said);
	more = realloc(graph->conds, (graph->cond_count + 1) * sizeof(struct qcul_cond *));
	if (!more)
		return cudaErrorMemoryAllocation;
	graph->conds = more;
	cmd.cond_create.body = graph->body;
	cmd.cond_create.value = flags ? first : 0;
	cmd.cond_create.flags = flags ? QCU_COND_DEFAULT : 0;
	err = make(&cmd, in, graph->serial, &more[graph->cond_count]);
	if (!err)
		*handle = more[graph->cond_count++]->handle;
	return err;
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
	qcul_cond_put(g->outermost);
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

/* Returns the handle, with a reference for the caller. NULL: there is no such handle. */
static struct qcul_cond *find(cudaGraphConditionalHandle handle)
{
	struct qcul_cond *c;

	pthread_mutex_lock(&lock);
	for (c = conds; c && (!c->in || c->handle != handle || !alive(c)); c = c->next)
		;
	if (c)
		c->refs++;
	pthread_mutex_unlock(&lock);
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
		n->bodies[i]->body = i;
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

cudaError_t qcul_node_cond_added(const struct qcul_node_cond *n)
{
	struct qCUcmd cmd = qcul_cmd(QCU_OP_COND_NODE);

	cmd.cond_node.cond = n->cond->id;
	cmd.cond_node.type = n->type;
	cmd.cond_node.size = n->size;
	return qcul_send(&cmd, 1);
}

/* An executable graph has its own copies of the bodies, so that it can send them to the host again.
 */
cudaError_t qcul_node_cond_clone(struct qcul_node_params *to, const struct qcul_node_params *from)
{
	unsigned int i;

	*to = *from;
	to->cond.is_clone = true;
	to->cond.bodies = calloc(from->cond.size, sizeof(cudaGraph_t));
	if (!to->cond.bodies)
		return cudaErrorMemoryAllocation;
	hold(to->cond.cond);
	for (i = 0; i < from->cond.size; i++) {
		to->cond.bodies[i] = qcul_graph_clone(from->cond.bodies[i]);
		if (!to->cond.bodies[i]) {
			qcul_node_release(to);
			return cudaErrorMemoryAllocation;
		}
	}
	return cudaSuccess;
}

void qcul_node_cond_params(const struct qcul_node_cond *n, struct cudaConditionalNodeParams *to)
{
	to->handle = n->cond->handle;
	to->type = n->type;
	to->size = n->size;
	to->phGraph_out = n->bodies;
}

void qcul_node_cond_release(struct qcul_node_params *p)
{
	struct qcul_node_cond *n = &p->cond;
	unsigned int i;

	for (i = 0; n->bodies && i < n->size; i++)
		qcul_graph_free(n->bodies[i]);
	/* Only one node may use a handle, and a graph with an unused handle cannot be instantiated.
	 */
	if (!n->is_clone)
		n->cond->used = false;
	free(n->bodies);
	qcul_cond_put(n->cond);
}

/* ---- telling the host what a graph does ---- */

/* The GPU's address of a place. It stays valid for all launches. 0: the GPU has no such address,
 * because the memory is pageable. */
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

static cudaError_t place(const struct qcul_cond *c, uint32_t stream)
{
	struct qCUcmd cmd = qcul_cmd(QCU_OP_COND_PLACE);

	if (!alive(c))
		return cudaErrorInvalidValue;
	cmd.cond_place.cond = c->id;
	cmd.cond_place.stream = stream;
	return qcul_send(&cmd, 1);
}

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
			return qcul_unsupported("a copy of an array or of pageable memory in a "
						"graph with conditional nodes",
						&said_copy);
		return err;
	case cudaGraphNodeTypeGraph:
		return record_graph(n->params.child, stream, flags);
	case cudaGraphNodeTypeConditional:
		return place(n->params.cond.cond, stream);
	default:
		return qcul_unsupported("a graph with conditional nodes and a node that is no "
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

static cudaError_t record(const struct qcul_cond *c, unsigned int body, const struct CUgraph_st *g,
			  unsigned long long flags);

static cudaError_t record_bodies(const struct CUgraph_st *g, unsigned long long flags)
{
	cudaError_t err = cudaSuccess;
	unsigned int b;
	size_t i;

	for (i = 0; i < g->count && !err; i++) {
		const struct qcul_node_params *p = &g->nodes[i]->params;

		for (b = 0; p->type == cudaGraphNodeTypeConditional && b < p->cond.size && !err;
		     b++)
			err = record(p->cond.cond, b, p->cond.bodies[b], flags);
	}
	return err;
}

/*
 * Records one body of a handle, or the outermost graph. The bodies inside it are recorded first, so
 * that there is only one recording at a time. At the end, the library waits until the host
 * has taken all commands in the stream, so that their errors are returned here.
 */
static cudaError_t record(const struct qcul_cond *c, unsigned int body, const struct CUgraph_st *g,
			  unsigned long long flags)
{
	struct qCUcmd cmd = qcul_cmd(QCU_OP_COND_RECORD);
	struct qcul_handle *slot;
	cudaError_t err, late;
	uint32_t stream;

	err = alive(c) ? record_bodies(g, flags) : cudaErrorInvalidValue;
	if (err)
		return err;
	slot = qcul_handle_new(&qcul_streams, &stream);
	if (!slot)
		return cudaErrorMemoryAllocation;
	slot->device = c->device;
	slot->flags = cudaStreamNonBlocking;
	cmd.cond_record.cond = c->id;
	cmd.cond_record.body = body;
	cmd.cond_record.stream = stream;
	err = qcul_send(&cmd, 1);
	if (!err) {
		qcul_self.recording = true;
		err = record_graph(g, stream, flags);
		qcul_self.recording = false;
		cmd = qcul_cmd(QCU_OP_STREAM_DESTROY);
		cmd.stream_destroy.stream = stream;
		late = qcul_known(qcul_send(&cmd, 1));
		err = err ? err : late;
	}
	qcul_handle_drop(&qcul_streams, stream);
	return err;
}

static cudaError_t record_all(struct qcul_cond *graph, const struct CUgraph_st *g,
			      unsigned long long flags)
{
	struct qCUcmd cmd = qcul_cmd(QCU_OP_COND_READY);
	cudaError_t err, late;

	if (!alive(graph))
		return cudaErrorInvalidValue;
	/* A launch that is not finished may still use the work that is now replaced. */
	err = graph->recorded ? qcul_devices_idle() : cudaSuccess;
	if (err)
		return err;
	graph->recorded = true;
	err = record(graph, 0, g, flags);
	/* Send this in any case: it also ends a failed recording on the host. */
	cmd.cond_ready.cond = graph->id;
	late = qcul_send(&cmd, 1);
	return err ? err : late;
}

/* ---- executable graphs ---- */

/* True if every handle of the graph, and of all bodies in it, has a node. */
static bool all_used(const struct CUgraph_st *g)
{
	unsigned int b;
	size_t i;

	for (i = 0; i < g->cond_count; i++)
		if (!g->conds[i]->used)
			return false;
	for (i = 0; i < g->count; i++) {
		const struct qcul_node_params *p = &g->nodes[i]->params;

		for (b = 0; p->type == cudaGraphNodeTypeConditional && b < p->cond.size; b++)
			if (!all_used(p->cond.bodies[b]))
				return false;
	}
	return true;
}

static bool claim(struct qcul_cond *graph)
{
	bool good;

	pthread_mutex_lock(&lock);
	good = !graph->instanced;
	if (good) {
		graph->instanced = true;
		graph->refs++;
	}
	pthread_mutex_unlock(&lock);
	return good;
}

cudaError_t qcul_exec_cond_begin(const struct CUgraph_st *from, struct qcul_exec_cond *x,
				 cudaGraphInstantiateResult *result)
{
	if (!from->outermost)
		return cudaSuccess;
	if (!all_used(from)) {
		*result = cudaGraphInstantiateConditionalHandleUnused;
		return cudaErrorInvalidValue;
	}
	/* Only one instance may exist at a time. */
	if (!claim(from->outermost))
		return cudaErrorInvalidValue;
	x->graph = from->outermost;
	return cudaSuccess;
}

void qcul_exec_cond_end(struct qcul_exec_cond *x)
{
	if (!x->graph)
		return;
	pthread_mutex_lock(&lock);
	x->graph->instanced = false;
	pthread_mutex_unlock(&lock);
	qcul_cond_put(x->graph);
}

cudaError_t qcul_exec_cond_record(struct qcul_exec_cond *x, const struct CUgraph_st *g,
				  unsigned long long flags)
{
	int before = qcul_self.device;
	cudaError_t err;

	/* The whole graph runs on the device on which its handles were made. */
	qcul_self.device = x->graph->device;
	err = record_all(x->graph, g, flags);
	qcul_self.device = before;
	x->changed = err;
	return err;
}

cudaError_t qcul_exec_cond_run(struct qcul_exec_cond *x, const struct CUgraph_st *g,
			       unsigned long long flags, cudaStream_t stream)
{
	struct qCUcmd cmd = qcul_cmd(QCU_OP_COND_RUN);
	cudaError_t err = alive(x->graph) ? cudaSuccess : cudaErrorInvalidValue;

	if (!err && x->changed)
		err = qcul_exec_cond_record(x, g, flags);
	if (!err)
		err = qcul_stream_id(stream, &cmd.cond_run.stream);
	cmd.cond_run.cond = x->graph->id;
	return err ? err : qcul_post(&cmd, 1);
}
