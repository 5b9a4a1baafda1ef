// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The handles of conditional nodes. The condition is a value that only kernels know, and only
 * kernels of the same graph may set it. Kernels use the handle, so the host makes it when the
 * program does. The graph is described to the host like any other (graph_sent.c).
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
	bool used;	     /* a node uses the handle */
	bool instanced;	     /* there is an executable graph of this outermost graph */
	uint16_t type, size; /* of the node */
};

static struct {
	struct qcul_cond *conds;
	uint32_t stamps;
} process;
QCUL_AT_FORK(QCUL_FORK_CONDS)

/* True if the host still has the object: it is of this session, and no device reset has destroyed
 * it. */
static bool is_cond_alive(const struct qcul_cond *c)
{
	const struct qcul_handle *slot = &qcul_conds.slots[c->id];

	return c->epoch == qcul_epoch() && qcul_handle_id(&qcul_conds, slot) &&
	       slot->flags == c->stamp;
}

static void hold(struct qcul_cond *c)
{
	pthread_mutex_lock(&at_fork.lock);
	c->refs++;
	pthread_mutex_unlock(&at_fork.lock);
}

void qcul_cond_put(struct qcul_cond *c)
{
	while (c) {
		struct qcul_cond **p = &process.conds, *in = c->in;
		struct qCUcmd cmd;
		bool gone;

		pthread_mutex_lock(&at_fork.lock);
		gone = !--c->refs;
		if (gone) {
			while (*p != c)
				p = &(*p)->next;
			*p = c->next;
		}
		pthread_mutex_unlock(&at_fork.lock);
		if (!gone)
			return;
		if (is_cond_alive(c)) {
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
static cudaError_t make_cond_object(struct qCUcmd *cmd, struct qcul_cond *in, uint64_t graph,
				    struct qcul_cond **out)
{
	struct qcul_cond *c = calloc(1, sizeof(*c));
	struct qcul_handle *slot;
	cudaError_t err;

	if (!c)
		return cudaErrorMemoryAllocation;
	*c = (struct qcul_cond){
		.refs = 1,
		.stamp = __atomic_add_fetch(&process.stamps, 1, __ATOMIC_RELAXED),
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
	pthread_mutex_lock(&at_fork.lock);
	c->next = process.conds;
	process.conds = c;
	pthread_mutex_unlock(&at_fork.lock);
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
		cudaError_t err = make_cond_object(&cmd, NULL, g->serial, &g->outermost);

		*in = g->outermost;
		return err;
	}
	return is_cond_alive(*in) ? cudaSuccess : cudaErrorInvalidValue;
}

static cudaError_t create_cond_handle(cudaGraphConditionalHandle *handle, cudaGraph_t graph,
				      unsigned int first, unsigned int flags)
{
	static atomic_flag said = ATOMIC_FLAG_INIT, deep = ATOMIC_FLAG_INIT;
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
	cmd.cond_create.type = in->type;
	cmd.cond_create.size = in->size;
	cmd.cond_create.value = flags ? first : 0;
	cmd.cond_create.flags = flags ? QCU_COND_DEFAULT : 0;
	err = make_cond_object(&cmd, in, graph->serial, &more[graph->cond_count]);
	if (err == cudaErrorNotSupported)
		return qcul_unsupported("conditional nodes in more than 64 others", &deep);
	if (!err)
		*handle = more[graph->cond_count++]->handle;
	return err;
}

cudaError_t cudaGraphConditionalHandleCreate(cudaGraphConditionalHandle *handle, cudaGraph_t graph,
					     unsigned int first, unsigned int flags)
{
	return qcul_done(create_cond_handle(handle, graph, first, flags));
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
static struct qcul_cond *find_cond_handle(cudaGraphConditionalHandle handle)
{
	struct qcul_cond *c;

	pthread_mutex_lock(&at_fork.lock);
	for (c = process.conds; c && (!c->in || c->handle != handle || !is_cond_alive(c));
	     c = c->next)
		;
	if (c)
		c->refs++;
	pthread_mutex_unlock(&at_fork.lock);
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
	c = find_cond_handle(from->handle);
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
	if (err) {
		qcul_node_release(p);
		return err;
	}
	c->used = true;
	c->type = (uint16_t)from->type;
	c->size = (uint16_t)from->size;
	return cudaSuccess;
}

/* An executable graph has its own copies of the bodies, which can be changed. */
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

static bool claim_outermost_graph(struct qcul_cond *graph)
{
	bool good;

	pthread_mutex_lock(&at_fork.lock);
	good = !graph->instanced;
	if (good) {
		graph->instanced = true;
		graph->refs++;
	}
	pthread_mutex_unlock(&at_fork.lock);
	return good;
}

cudaError_t qcul_exec_cond_begin(const struct CUgraph_st *from, struct qcul_cond **x,
				 cudaGraphInstantiateResult *result)
{
	if (!from->outermost)
		return cudaSuccess;
	if (!all_used(from)) {
		*result = cudaGraphInstantiateConditionalHandleUnused;
		return cudaErrorInvalidValue;
	}
	/* Only one instance may exist at a time. */
	if (!claim_outermost_graph(from->outermost))
		return cudaErrorInvalidValue;
	*x = from->outermost;
	return cudaSuccess;
}

void qcul_exec_cond_end(struct qcul_cond *x)
{
	if (!x)
		return;
	pthread_mutex_lock(&at_fork.lock);
	x->instanced = false;
	pthread_mutex_unlock(&at_fork.lock);
	qcul_cond_put(x);
}

cudaError_t qcul_cond_id(const struct qcul_cond *c, uint32_t *id)
{
	*id = c->id;
	return is_cond_alive(c) ? cudaSuccess : cudaErrorInvalidValue;
}

int qcul_cond_device(const struct qcul_cond *c)
{
	return c->device;
}
