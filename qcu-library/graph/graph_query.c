// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Questions about graphs and nodes that CUDA 13.0 cannot be asked: their numbers, and a node's
 * parameters whatever its type is.
 */
#include <string.h>

#include "qcu-library/graph/graph.h"
#include "qcu-library/link/capture.h"
#include "qcu-library/link/later.h"

/* The numbers are those that cudaGraphDebugDotPrint writes. */
cudaError_t qcul_GraphGetId(cudaGraph_t graph, unsigned int *id)
{
	if (!id || !qcul_graph_valid(graph))
		return qcul_done(cudaErrorInvalidValue);
	*id = (unsigned int)graph->serial;
	return cudaSuccess;
}

cudaError_t qcul_GraphExecGetId(cudaGraphExec_t exec, unsigned int *id)
{
	const struct CUgraph_st *g = id ? qcul_exec_graph(exec) : NULL;

	if (!g)
		return qcul_done(cudaErrorInvalidValue);
	*id = (unsigned int)g->serial;
	return cudaSuccess;
}

cudaError_t qcul_GraphNodeGetLocalId(cudaGraphNode_t node, unsigned int *id)
{
	if (!id || !qcul_node_valid(node))
		return qcul_done(cudaErrorInvalidValue);
	*id = (unsigned int)node->serial;
	return cudaSuccess;
}

cudaError_t qcul_GraphNodeGetToolsId(cudaGraphNode_t node, unsigned long long *id)
{
	if (!id || !qcul_node_valid(node))
		return qcul_done(cudaErrorInvalidValue);
	*id = node->serial;
	return cudaSuccess;
}

cudaError_t qcul_GraphNodeGetContainingGraph(cudaGraphNode_t node, cudaGraph_t *graph)
{
	if (!graph || !qcul_node_valid(node))
		return qcul_done(cudaErrorInvalidValue);
	*graph = node->graph;
	return cudaSuccess;
}

static void kernel_params(const struct qcul_node_kernel *k, struct cudaKernelNodeParamsV2 *to)
{
	to->func = (void *)(uintptr_t)k->func;
	to->gridDim = k->grid;
	to->blockDim = k->block;
	to->sharedMemBytes = k->shared;
	to->kernelParams = k->args;
}

static void memset_params(const struct cudaMemsetParams *from, struct cudaMemsetParamsV2 *to)
{
	to->dst = from->dst;
	to->pitch = from->pitch;
	to->value = from->value;
	to->elementSize = from->elementSize;
	to->width = from->width;
	to->height = from->height;
}

static cudaError_t alloc_params(cudaGraphNode_t node, struct cudaMemAllocNodeParamsV2 *to)
{
	struct cudaMemAllocNodeParams from;
	cudaError_t err = cudaGraphMemAllocNodeGetParams(node, &from);

	if (err)
		return err;
	to->poolProps = from.poolProps;
	to->accessDescs = from.accessDescs;
	to->accessDescCount = from.accessDescCount;
	to->bytesize = from.bytesize;
	to->dptr = from.dptr;
	return cudaSuccess;
}

/* cudaGraphChildGraphOwnershipInvalid of CUDA 13.5: the graph belongs to the node. */
#define OWNERSHIP_INVALID ((enum cudaGraphChildGraphNodeOwnership) - 1)

static cudaError_t get_any_node_params(cudaGraphNode_t node, struct cudaGraphNodeParams *to)
{
	static atomic_flag said = ATOMIC_FLAG_INIT;
	const struct qcul_node_params *p = &node->params;

	if ((int)p->type == QCUL_NODE_CALL && !p->call->params)
		return qcul_unsupported("the parameters of a library's node", &said);
	memset(to, 0, sizeof(*to));
	if ((int)p->type == QCUL_NODE_CALL) {
		to->type = p->call->type;
		p->call->params(p->call, to);
		return cudaSuccess;
	}
	to->type = p->type;
	switch ((int)p->type) {
	case cudaGraphNodeTypeKernel:
		kernel_params(&p->kernel, &to->kernel);
		break;
	case cudaGraphNodeTypeMemcpy:
		to->memcpy.copyParams = p->copy;
		break;
	case cudaGraphNodeTypeMemset:
		memset_params(&p->memset, &to->memset);
		break;
	case cudaGraphNodeTypeHost:
		to->host.fn = p->host.fn;
		to->host.userData = p->host.userData;
		break;
	case cudaGraphNodeTypeGraph:
		to->graph.graph = p->child;
		to->graph.ownership = OWNERSHIP_INVALID;
		break;
	case cudaGraphNodeTypeEventRecord:
		to->eventRecord.event = p->event;
		break;
	case cudaGraphNodeTypeWaitEvent:
		to->eventWait.event = p->event;
		break;
	case cudaGraphNodeTypeMemAlloc:
		return alloc_params(node, &to->alloc);
	case cudaGraphNodeTypeMemFree:
		to->free.dptr = qcul_node_memory_ptr(p);
		break;
	case cudaGraphNodeTypeConditional:
		qcul_node_cond_params(&p->cond, &to->conditional);
		break;
	}
	return cudaSuccess;
}

cudaError_t qcul_GraphNodeGetParams(cudaGraphNode_t node, struct cudaGraphNodeParams *params)
{
	if (!params || !qcul_node_valid(node))
		return qcul_done(cudaErrorInvalidValue);
	return qcul_done(get_any_node_params(node, params));
}
