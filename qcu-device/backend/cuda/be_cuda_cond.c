// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The handles of conditional nodes. Kernels get a handle as an argument, so it is made before the
 * graph, in a CUDA graph that stays as long as the handles. A handle is for one graph and one node,
 * and the handles of a body need the body. So a conditional node stays, too, once it is made. The
 * instance of such a graph is made in this CUDA graph (be_cuda_graph.c), and all other nodes go
 * away with the instance.
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
	uint32_t type, size;
};

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

/* be->cond_lock is held. */
static int make_cond_node(struct be *be, struct be_cond *c, uint32_t type, uint32_t size)
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
	int ret;

	if (c->bodies)
		return c->type == type && c->size == size ? QCU_ERR_Success : QCU_ERR_InvalidValue;
	ret = CU(be, cudaGraphAddNode, &c->node, c->graph, NULL, NULL, 0, &params);
	if (ret)
		return ret;
	c->bodies = params.conditional.phGraph_out;
	c->type = type;
	c->size = size;
	return QCU_ERR_Success;
}

int cu_cond_node(struct be *be, struct be_cond *c, uint32_t type, uint32_t size)
{
	int ret = cond_use(be, c);

	if (ret)
		return ret;
	pthread_mutex_lock(&be->cond_lock);
	ret = make_cond_node(be, c, type, size);
	pthread_mutex_unlock(&be->cond_lock);
	return ret;
}

/* ---- for graphs; be->cond_lock is held ---- */

cudaGraph_t cu_cond_graph(const struct be_cond *c)
{
	while (c->in)
		c = c->in;
	return c->graph;
}

cudaGraph_t cu_cond_body(const struct be_cond *c, uint32_t body)
{
	return c->bodies[body];
}

int cu_cond_add(struct be *be, const struct be_cond *c, const cudaGraphNode_t *deps, uint32_t count,
		cudaGraphNode_t *node)
{
	int ret = QCU_ERR_Success;
	uint32_t i;

	for (i = 0; i < count && !ret; i++)
		ret = CU(be, cudaGraphAddDependencies, c->graph, &deps[i], &c->node, NULL, 1);
	*node = c->node;
	return ret;
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

int cu_cond_clear_graph(struct be *be, cudaGraph_t graph)
{
	int ret = destroy_nodes(be, graph);

	return ret ? ret : destroy_edges(be, graph);
}

int cu_cond_clear(struct be *be, const struct be_cond *c)
{
	int ret = QCU_ERR_Success;
	uint32_t i;

	for (i = 0; i < c->size && !ret; i++)
		ret = cu_cond_clear_graph(be, c->bodies[i]);
	return ret;
}

int cu_cond_destroy(struct be *be, struct be_cond *c)
{
	int ret = cond_use(be, c);

	if (!ret && !c->in)
		ret = CU(be, cudaGraphDestroy, c->graph);
	free(c);
	return ret;
}

void cu_cond_close(struct be *be)
{
	pthread_mutex_destroy(&be->cond_lock);
}
