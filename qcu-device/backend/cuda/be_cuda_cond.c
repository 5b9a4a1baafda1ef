// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Graphs with conditional nodes, as CUDA's own graphs. Only kernels of such a graph may set the
 * values of its handles, so the whole graph is here. What the graph and its bodies do is captured
 * from streams.
 *
 * The conditional nodes are made once, before any capture, for two reasons: a handle is for one
 * graph and one node, and the handles of a body need the body. Whenever the graph is recorded, the
 * nodes take their places among what is captured.
 */
#include <stdlib.h>

#include "qcu-device/backend/cuda/be_cuda.h"

struct be_cond {
	struct be_cond *in; /* NULL: this is the outermost graph */
	unsigned int dev;
	unsigned int life;
	cudaGraphConditionalHandle handle;
	cudaGraph_t graph; /* the graph that the node is in, or the outermost graph itself */
	cudaGraphNode_t node;
	cudaGraph_t *bodies; /* CUDA's, of the node; outermost graph: &graph; NULL: no node */
	uint32_t size;
	/* Only for the outermost graph: */
	cudaGraphExec_t exec;
	int failed; /* something could not be captured; COND_READY reports it */
};

static struct be_cond *outermost(struct be_cond *c)
{
	while (c->in)
		c = c->in;
	return c;
}

static int cond_use(struct be *be, const struct be_cond *c)
{
	if (c->life != atomic_load(&be->life[c->dev]))
		return QCU_ERR_ContextIsDestroyed;
	return cu_use(be, c->dev);
}

static int create_graph(struct be *be, struct be_cond *c)
{
	c->bodies = &c->graph;
	c->size = 1;
	return CU(be, cudaGraphCreate, &c->graph, 0);
}

static int create_handle(struct be *be, struct be_cond *c, uint32_t body, const uint32_t *first)
{
	int ret = QCU_ERR_InvalidValue;

	pthread_mutex_lock(&be->cond_lock);
	if (c->in->bodies && body < c->in->size) {
		c->graph = c->in->bodies[body];
		ret = CU(be, cudaGraphConditionalHandleCreate, &c->handle, c->graph,
			 first ? *first : 0, first ? cudaGraphCondAssignDefault : 0);
	}
	pthread_mutex_unlock(&be->cond_lock);
	return ret;
}

int cu_cond_create(struct be *be, unsigned int dev, struct be_cond *in, uint32_t body,
		   const uint32_t *first, struct be_cond **out, uint64_t *handle)
{
	struct be_cond *c;
	int ret = in ? cond_use(be, in) : cu_use(be, dev);

	if (ret)
		return ret;
	c = calloc(1, sizeof(*c));
	if (!c)
		return QCU_ERR_MemoryAllocation;
	c->in = in;
	c->dev = dev;
	c->life = atomic_load(&be->life[dev]);
	ret = in ? create_handle(be, c, body, first) : create_graph(be, c);
	if (ret) {
		free(c);
		return ret;
	}
	*out = c;
	*handle = c->handle;
	return QCU_ERR_Success;
}

int cu_cond_node(struct be *be, struct be_cond *c, uint32_t type, uint32_t size)
{
	struct cudaGraphNodeParams params = {
		.type = cudaGraphNodeTypeConditional,
		.conditional =
			{
				.handle = c->handle,
				.type = (enum cudaGraphConditionalNodeType)type,
				.size = size,
			},
	};
	int ret = cond_use(be, c);

	if (ret)
		return ret;
	pthread_mutex_lock(&be->cond_lock);
	if (c->bodies)
		ret = QCU_ERR_InvalidValue;
	else
		ret = CU(be, cudaGraphAddNode, &c->node, c->graph, NULL, NULL, 0, &params);
	if (!ret) {
		c->bodies = params.conditional.phGraph_out;
		c->size = size;
	}
	pthread_mutex_unlock(&be->cond_lock);
	return ret;
}

/*
 * There is one instance of a graph with such nodes at a time, and none while the graph is changed.
 */
static int drop_instance(struct be *be, struct be_cond *c)
{
	cudaGraphExec_t exec = c->exec;

	c->exec = NULL;
	return exec ? CU(be, cudaGraphExecDestroy, exec) : QCU_ERR_Success;
}

/* Conditional nodes stay, because their handles can have no other nodes. */
static int destroy_nodes(struct be *be, cudaGraph_t graph)
{
	enum cudaGraphNodeType type;
	cudaGraphNode_t *nodes;
	size_t count = 0, i;
	int ret = CU(be, cudaGraphGetNodes, graph, NULL, &count);

	if (ret || !count)
		return ret;
	nodes = calloc(count, sizeof(*nodes));
	if (!nodes)
		return QCU_ERR_MemoryAllocation;
	ret = CU(be, cudaGraphGetNodes, graph, nodes, &count);
	for (i = 0; i < count && !ret; i++) {
		ret = CU(be, cudaGraphNodeGetType, nodes[i], &type);
		if (!ret && type != cudaGraphNodeTypeConditional)
			ret = CU(be, cudaGraphDestroyNode, nodes[i]);
	}
	free(nodes);
	return ret;
}

static int destroy_edges(struct be *be, cudaGraph_t graph)
{
	cudaGraphNode_t *ends;
	cudaGraphEdgeData *data;
	size_t count = 0;
	int ret = CU(be, cudaGraphGetEdges, graph, NULL, NULL, NULL, &count);

	if (ret || !count)
		return ret;
	ends = calloc(2 * count, sizeof(*ends));
	data = calloc(count, sizeof(*data));
	if (!ends || !data)
		ret = QCU_ERR_MemoryAllocation;
	if (!ret)
		ret = CU(be, cudaGraphGetEdges, graph, ends, ends + count, data, &count);
	if (!ret)
		ret = CU(be, cudaGraphRemoveDependencies, graph, ends, ends + count, data, count);
	free(ends);
	free(data);
	return ret;
}

/* The stream of a body is about to be destroyed: ends its capture. */
static void end_body(struct be *be, struct be_stream *s)
{
	cudaGraph_t graph;
	int ret;

	pthread_mutex_lock(&be->cond_lock);
	ret = CU(be, cudaStreamEndCapture, s->s, &graph);
	if (ret)
		outermost(s->body_of)->failed = ret;
	pthread_mutex_unlock(&be->cond_lock);
}

static int begin_body(struct be *be, struct be_cond *c, uint32_t body, struct be_stream *s)
{
	int ret = drop_instance(be, outermost(c));

	if (!ret)
		ret = destroy_nodes(be, c->bodies[body]);
	if (!ret)
		ret = destroy_edges(be, c->bodies[body]);
	if (!ret)
		ret = CU(be, cudaStreamBeginCaptureToGraph, s->s, c->bodies[body], NULL, NULL, 0,
			 cudaStreamCaptureModeRelaxed);
	if (!ret) {
		s->body_of = c;
		s->end_body = end_body;
	}
	return ret;
}

int cu_cond_record(struct be *be, struct be_cond *c, uint32_t body, struct be_stream **s)
{
	int ret = cond_use(be, c);

	*s = NULL;
	if (!ret)
		ret = cu_stream_create(be, c->dev, cudaStreamNonBlocking, 0, s);
	if (ret)
		return ret;
	pthread_mutex_lock(&be->cond_lock);
	ret = c->bodies && body < c->size ? begin_body(be, c, body, *s) : QCU_ERR_InvalidValue;
	pthread_mutex_unlock(&be->cond_lock);
	if (ret) {
		cu_stream_destroy(be, *s);
		*s = NULL;
	}
	return ret;
}

/* Puts the node behind what the stream has captured so far. */
static int add_dependencies(struct be *be, struct be_cond *c, struct be_stream *s)
{
	enum cudaStreamCaptureStatus status;
	const cudaGraphEdgeData *edges;
	const cudaGraphNode_t *deps;
	cudaGraph_t graph;
	size_t count, i;
	int ret = CU(be, cudaStreamGetCaptureInfo, s->s, &status, NULL, &graph, &deps, &edges,
		     &count);

	if (!ret && status != cudaStreamCaptureStatusActive)
		ret = QCU_ERR_StreamCaptureInvalidated;
	if (!ret && graph != c->graph)
		ret = QCU_ERR_InvalidValue;
	for (i = 0; i < count && !ret; i++)
		ret = CU(be, cudaGraphAddDependencies, graph, &deps[i], &c->node,
			 edges ? &edges[i] : NULL, 1);
	if (!ret)
		ret = CU(be, cudaStreamUpdateCaptureDependencies, s->s, &c->node, NULL, 1,
			 cudaStreamSetCaptureDependencies);
	return ret;
}

int cu_cond_place(struct be *be, struct be_cond *c, struct be_stream *s)
{
	int ret = cond_use(be, c);

	if (!ret)
		ret = cu_stream_use(be, s);
	if (ret)
		return ret;
	pthread_mutex_lock(&be->cond_lock);
	ret = c->bodies ? add_dependencies(be, c, s) : QCU_ERR_InvalidValue;
	pthread_mutex_unlock(&be->cond_lock);
	return ret;
}

int cu_cond_ready(struct be *be, struct be_cond *graph)
{
	int ret = cond_use(be, graph);

	if (ret)
		return ret;
	pthread_mutex_lock(&be->cond_lock);
	ret = graph->failed;
	graph->failed = QCU_ERR_Success;
	if (!ret)
		ret = drop_instance(be, graph);
	if (!ret)
		ret = CU(be, cudaGraphInstantiate, &graph->exec, graph->graph, 0);
	pthread_mutex_unlock(&be->cond_lock);
	return ret;
}

int cu_cond_run(struct be *be, struct be_cond *graph, struct be_stream *s)
{
	int ret = cond_use(be, graph);

	if (!ret)
		ret = cu_stream_use(be, s);
	if (ret)
		return ret;
	pthread_mutex_lock(&be->cond_lock);
	ret = graph->exec ? CU(be, cudaGraphLaunch, graph->exec, s->s) : QCU_ERR_InvalidValue;
	pthread_mutex_unlock(&be->cond_lock);
	return ret;
}

int cu_cond_destroy(struct be *be, struct be_cond *c)
{
	int ret = cond_use(be, c);

	if (!ret)
		ret = drop_instance(be, c);
	if (!ret && !c->in)
		ret = CU(be, cudaGraphDestroy, c->graph);
	free(c);
	return ret;
}

void cu_cond_close(struct be *be)
{
	pthread_mutex_destroy(&be->cond_lock);
}
