// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Graphs: each is a real CUDA graph, with one node for each node of the description, but for calls
 * of libraries, which may be several (be_cuda_library.c). All others are added one by one, not
 * captured, so that streams of other threads are not disturbed. The graph stays beside its
 * instance, because CUDA finds a node of the instance by that of the graph.
 *
 * For kernels the driver's own calls are used. On an H100, 1000 kernels with a kernel of the
 * runtime are added in 930 us and changed in an instance in 690, with a function of the driver in
 * 320 and 320.
 *
 * A graph with conditional nodes is made in the CUDA graph of its handles (be_cuda_cond.c), and
 * goes from there when the instance is destroyed. What is in a body cannot be updated.
 *
 * What an instance cannot become by an update is left to the caller, who makes a new one: an update
 * that CUDA refuses returns cudaErrorGraphExecUpdateFailure.
 */
#include <stdlib.h>
#include <string.h>

#include "qcu-device/backend/cuda/be_cuda.h"

#define FEW_PARAMS 32
#define FEW_DEPS   16

struct graph_node {
	cudaGraphNode_t node;
	const struct be_cond *cond;
	struct be_event *record;
	uint32_t flags; /* of a kernel's launch: an update cannot change them */
	bool off;
	bool inside; /* a body */
};

struct be_graph {
	unsigned int dev;
	unsigned int life;
	cudaGraph_t graph;
	cudaGraph_t into; /* the graph or body to which nodes are added */
	bool conditional; /* the graph is that of handles */
	cudaGraphExec_t exec;
	uint32_t count, records;
	struct graph_node *nodes;
};

static int graph_use(struct be *be, const struct be_graph *g)
{
	if (g->life != atomic_load(&be->life[g->dev]))
		return QCU_ERR_ContextIsDestroyed;
	return cu_use(be, g->dev);
}

/* ---- the parameters of nodes, in CUDA's form ---- */

/* The caller frees *args if it is not `few`. */
static int kernel_params(struct be *be, const struct be_node *n, CUDA_KERNEL_NODE_PARAMS *p,
			 void **few)
{
	const struct be_launch *l = &n->launch;
	void **args = few;
	CUfunction f;
	uint32_t i;
	int ret;

	if (l->param_bytes < n->kernel->bytes)
		return QCU_ERR_InvalidValue;
	ret = cu_kernel_function(be, n->kernel, n->dev, &f);
	if (ret)
		return ret;
	if (n->kernel->count > FEW_PARAMS) {
		args = malloc(n->kernel->count * sizeof(*args));
		if (!args)
			return QCU_ERR_MemoryAllocation;
	}
	for (i = 0; i < n->kernel->count; i++)
		args[i] = (char *)l->params + n->kernel->params[i].offset;
	*p = (CUDA_KERNEL_NODE_PARAMS){
		.func = f,
		.gridDimX = l->grid.x,
		.gridDimY = l->grid.y,
		.gridDimZ = l->grid.z,
		.blockDimX = l->block.x,
		.blockDimY = l->block.y,
		.blockDimZ = l->block.z,
		.sharedMemBytes = l->dynamic_shared,
		.kernelParams = args,
	};
	return QCU_ERR_Success;
}

static struct cudaMemsetParams memset_params(const struct be_memset *m)
{
	return (struct cudaMemsetParams){
		.dst = (void *)(uintptr_t)m->dst,
		.pitch = m->height > 1 ? m->pitch : m->width,
		.value = m->value,
		.elementSize = m->elem,
		.width = m->width / m->elem,
		.height = m->height,
	};
}

/* CUDA's params for boxes have no pitch of 2 GiB and more. */
static bool is_line(const struct be_box *b)
{
	return b->height == 1 && b->depth == 1 && !b->dst.array && !b->src.array;
}

/* ---- making ---- */

static int set_attributes(struct be *be, cudaGraphNode_t node, const struct be_launch *l)
{
	cudaLaunchAttribute attrs[CU_LAUNCH_ATTRS];
	unsigned int count = cu_launch_attributes(l, attrs), i;
	int ret = QCU_ERR_Success;

	for (i = 0; i < count && !ret; i++)
		if (attrs[i].id != cudaLaunchAttributeProgrammaticStreamSerialization)
			ret = CU(be, cudaGraphKernelNodeSetAttribute, node, attrs[i].id,
				 &attrs[i].val);
	return ret;
}

static int add_kernel(struct be *be, struct be_graph *g, const struct be_node *n,
		      const cudaGraphNode_t *deps, cudaGraphNode_t *node)
{
	void *few[FEW_PARAMS];
	CUDA_KERNEL_NODE_PARAMS p;
	int ret = kernel_params(be, n, &p, few);

	if (ret)
		return ret;
	ret = cu_result(be,
			(cudaError_t)be->graph_add_kernel(node, g->into, deps, n->dep_count, &p),
			"cuGraphAddKernelNode");
	if (!ret)
		ret = set_attributes(be, *node, &n->launch);
	if (p.kernelParams != few)
		free(p.kernelParams);
	return ret;
}

static int add_copy(struct be *be, struct be_graph *g, const struct be_node *n,
		    const cudaGraphNode_t *deps, cudaGraphNode_t *node)
{
	const struct be_box *b = &n->box;
	struct cudaMemcpy3DParms p = cu_box_params(b);

	if (is_line(b))
		return CU(be, cudaGraphAddMemcpyNode1D, node, g->into, deps, n->dep_count,
			  p.dstPtr.ptr, p.srcPtr.ptr, b->width, p.kind);
	return CU(be, cudaGraphAddMemcpyNode, node, g->into, deps, n->dep_count, &p);
}

static int add_node_of_type(struct be *be, struct be_graph *g, const struct be_node *n,
			    const cudaGraphNode_t *deps, cudaGraphNode_t *node)
{
	struct cudaMemsetParams set;
	struct cudaHostNodeParams host;

	/* CUDA does not leave out nodes of bodies. */
	if (n->off && g->into != g->graph)
		return CU(be, cudaGraphAddEmptyNode, node, g->into, deps, n->dep_count);
	switch (n->type) {
	case QCU_NODE_KERNEL:
		return add_kernel(be, g, n, deps, node);
	case QCU_NODE_MEMSET:
		set = memset_params(&n->set);
		return CU(be, cudaGraphAddMemsetNode, node, g->into, deps, n->dep_count, &set);
	case QCU_NODE_COPY:
		return add_copy(be, g, n, deps, node);
	case QCU_NODE_RECORD:
		g->nodes[n->index].record = n->event;
		g->records++;
		return CU(be, cudaGraphAddEventRecordNode, node, g->into, deps, n->dep_count,
			  n->event->e);
	case QCU_NODE_WAIT:
		return CU(be, cudaGraphAddEventWaitNode, node, g->into, deps, n->dep_count,
			  n->event->e);
	case QCU_NODE_HOST:
		host = (struct cudaHostNodeParams){n->host.fn, n->host.arg};
		return CU(be, cudaGraphAddHostNode, node, g->into, deps, n->dep_count, &host);
	case QCU_NODE_CALL:
		return cu_graph_call(be, g->into, n, deps, node);
	case QCU_NODE_COND:
		return cu_cond_add(be, n->cond, deps, n->dep_count, node);
	case QCU_NODE_BODY:
		g->into = cu_cond_body(g->nodes[n->body.node].cond, n->body.number);
		return QCU_ERR_Success;
	default:
		return CU(be, cudaGraphAddEmptyNode, node, g->into, deps, n->dep_count);
	}
}

/* A node belongs to the device that is current when it is added. */
static int add_node(struct be *be, struct be_graph *g, const struct be_node *n)
{
	cudaGraphNode_t few[FEW_DEPS], *deps = few;
	struct graph_node *to = &g->nodes[n->index];
	int ret = cu_use(be, n->dev);
	uint32_t i;

	if (ret)
		return ret;
	if (n->dep_count > FEW_DEPS) {
		deps = malloc(n->dep_count * sizeof(*deps));
		if (!deps)
			return QCU_ERR_MemoryAllocation;
	}
	for (i = 0; i < n->dep_count; i++)
		deps[i] = g->nodes[n->deps[i]].node;
	to->cond = n->type == QCU_NODE_COND ? n->cond : NULL;
	ret = add_node_of_type(be, g, n, deps, &to->node);
	to->inside = g->into != g->graph;
	to->flags = n->type == QCU_NODE_KERNEL ? n->launch.flags : 0;
	if (deps != few)
		free(deps);
	return ret;
}

static int enable(struct be *be, struct be_graph *g, const struct be_node *n)
{
	struct graph_node *to = &g->nodes[n->index];
	int ret;

	if (to->off == n->off || to->inside)
		return QCU_ERR_Success;
	ret = CU(be, cudaGraphNodeSetEnabled, g->exec, to->node, !n->off);
	if (!ret)
		to->off = n->off;
	return ret;
}

/* The first conditional node says in which CUDA graph all is made. */
static int choose_cuda_graph(struct be *be, struct be_graph *g, const struct be_node *nodes)
{
	uint32_t i;

	for (i = 0; i < g->count && nodes[i].type != QCU_NODE_COND; i++)
		;
	g->conditional = i < g->count;
	if (!g->conditional)
		return CU(be, cudaGraphCreate, &g->graph, 0);
	g->graph = cu_cond_graph(nodes[i].cond);
	return QCU_ERR_Success;
}

static int build(struct be *be, struct be_graph *g, const struct be_node *nodes)
{
	bool priorities = false;
	uint32_t i;
	int ret = choose_cuda_graph(be, g, nodes);

	if (g->conditional)
		pthread_mutex_lock(&be->cond_lock);
	g->into = g->graph;
	for (i = 0; i < g->count && !ret; i++) {
		ret = add_node(be, g, &nodes[i]);
		priorities |= g->nodes[i].flags & QCU_LAUNCH_PRIORITY;
	}
	if (!ret)
		ret = cu_use(be, g->dev);
	/* Without this flag, all kernels have the priority of the stream. */
	if (!ret)
		ret = CU(be, cudaGraphInstantiate, &g->exec, g->graph,
			 priorities ? cudaGraphInstantiateFlagUseNodePriority : 0);
	for (i = 0; i < g->count && !ret; i++)
		ret = enable(be, g, &nodes[i]);
	if (g->conditional)
		pthread_mutex_unlock(&be->cond_lock);
	return ret;
}

int cu_graph_make(struct be *be, unsigned int dev, const struct be_node *nodes, uint32_t count,
		  struct be_graph **out)
{
	struct be_graph *g;
	int ret = cu_use(be, dev);

	if (ret)
		return ret;
	g = calloc(1, sizeof(*g));
	if (!g)
		return QCU_ERR_MemoryAllocation;
	g->dev = dev;
	g->life = atomic_load(&be->life[dev]);
	g->count = count;
	g->nodes = calloc(count + 1, sizeof(*g->nodes));
	ret = g->nodes ? build(be, g, nodes) : (int)QCU_ERR_MemoryAllocation;
	if (!ret) {
		*out = g;
		return QCU_ERR_Success;
	}
	cu_graph_destroy(be, g);
	return ret;
}

/* ---- changing ---- */

static int set_kernel(struct be *be, struct be_graph *g, const struct be_node *n)
{
	const struct graph_node *to = &g->nodes[n->index];
	void *few[FEW_PARAMS];
	CUDA_KERNEL_NODE_PARAMS p;
	int ret;

	/* CUDA has no call for the attributes of a kernel in an instance. */
	if (n->launch.flags || to->flags)
		return QCU_ERR_GraphExecUpdateFailure;
	ret = kernel_params(be, n, &p, few);
	if (ret)
		return ret;
	ret = cu_result(be, (cudaError_t)be->graph_set_kernel(g->exec, to->node, &p),
			"cuGraphExecKernelNodeSetParams");
	if (p.kernelParams != few)
		free(p.kernelParams);
	return ret;
}

static int set_exec_node(struct be *be, struct be_graph *g, const struct be_node *n)
{
	cudaGraphNode_t node = g->nodes[n->index].node;
	struct cudaMemcpy3DParms copy;
	struct cudaMemsetParams set;
	struct cudaHostNodeParams host;

	switch (n->type) {
	case QCU_NODE_KERNEL:
		return set_kernel(be, g, n);
	case QCU_NODE_MEMSET:
		set = memset_params(&n->set);
		return CU(be, cudaGraphExecMemsetNodeSetParams, g->exec, node, &set);
	case QCU_NODE_COPY:
		copy = cu_box_params(&n->box);
		if (is_line(&n->box))
			return CU(be, cudaGraphExecMemcpyNodeSetParams1D, g->exec, node,
				  copy.dstPtr.ptr, copy.srcPtr.ptr, n->box.width, copy.kind);
		return CU(be, cudaGraphExecMemcpyNodeSetParams, g->exec, node, &copy);
	case QCU_NODE_RECORD:
		g->nodes[n->index].record = n->event;
		return CU(be, cudaGraphExecEventRecordNodeSetEvent, g->exec, node, n->event->e);
	case QCU_NODE_WAIT:
		return CU(be, cudaGraphExecEventWaitNodeSetEvent, g->exec, node, n->event->e);
	case QCU_NODE_HOST:
		host = (struct cudaHostNodeParams){n->host.fn, n->host.arg};
		return CU(be, cudaGraphExecHostNodeSetParams, g->exec, node, &host);
	default:
		return QCU_ERR_Success;
	}
}

int cu_graph_update(struct be *be, struct be_graph *g, const struct be_node *nodes, uint32_t count)
{
	int ret = graph_use(be, g);
	uint32_t i;

	for (i = 0; i < count && !ret; i++) {
		if (g->nodes[nodes[i].index].inside)
			return QCU_ERR_GraphExecUpdateFailure;
		ret = cu_use(be, nodes[i].dev);
		if (!ret)
			ret = set_exec_node(be, g, &nodes[i]);
		if (!ret)
			ret = enable(be, g, &nodes[i]);
		/* A new instance can have what this one cannot become. */
		if (ret == QCU_ERR_InvalidValue || ret == QCU_ERR_NotSupported)
			ret = QCU_ERR_GraphExecUpdateFailure;
	}
	return ret;
}

/* ---- running ---- */

int cu_graph_launch(struct be *be, struct be_graph *g, struct be_stream *s)
{
	int ret = graph_use(be, g);
	uint32_t i;

	if (!ret)
		ret = cu_stream_use(be, s);
	if (!ret)
		ret = CU(be, cudaGraphLaunch, g->exec, s->s);
	for (i = 0; !ret && g->records && i < g->count; i++)
		if (g->nodes[i].record)
			atomic_store(&g->nodes[i].record->late, 0);
	return ret;
}

int cu_graph_upload(struct be *be, struct be_graph *g, struct be_stream *s)
{
	int ret = graph_use(be, g);

	if (!ret)
		ret = cu_stream_use(be, s);
	return ret ? ret : CU(be, cudaGraphUpload, g->exec, s->s);
}

/* The handles, and the nodes that belong to them, stay. */
static int clear_conditional_graph(struct be *be, const struct be_graph *g)
{
	int ret = QCU_ERR_Success;
	uint32_t i;

	pthread_mutex_lock(&be->cond_lock);
	for (i = 0; i < g->count && !ret; i++)
		if (g->nodes[i].cond)
			ret = cu_cond_clear(be, g->nodes[i].cond);
	if (!ret)
		ret = cu_cond_clear_graph(be, g->graph);
	pthread_mutex_unlock(&be->cond_lock);
	return ret;
}

int cu_graph_destroy(struct be *be, struct be_graph *g)
{
	int ret = graph_use(be, g);

	if (!ret && g->exec)
		ret = CU(be, cudaGraphExecDestroy, g->exec);
	if (!ret && g->conditional)
		ret = clear_conditional_graph(be, g);
	else if (!ret && g->graph)
		ret = CU(be, cudaGraphDestroy, g->graph);
	free(g->nodes);
	free(g);
	return ret;
}
