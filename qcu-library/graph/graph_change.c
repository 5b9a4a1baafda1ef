// SPDX-License-Identifier: LGPL-2.1-or-later
/* Calls that add nodes to graphs, and read and replace the parameters of nodes. */
#include <string.h>

#include "qcu-library/graph/graph.h"
#include "qcu-library/link/capture.h"

/* ---- adding ---- */

/* The params are made before the graph is checked. `made` is the result. If the graph is refused,
 * the params are released. */
static cudaError_t add_made_node(cudaError_t made, cudaGraphNode_t *node, cudaGraph_t graph,
				 const cudaGraphNode_t *deps, const cudaGraphEdgeData *data,
				 size_t count, struct qcul_node_params *p)
{
	cudaError_t err = made;

	if (!err) {
		err = qcul_graph_add(graph, deps, data, count, p, node);
		if (err)
			qcul_node_release(p);
	}
	return qcul_done(err);
}

/* Writes the address of the memory into the caller's params. */
static cudaError_t add_memory(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *deps,
			      const cudaGraphEdgeData *data, size_t count,
			      const struct cudaMemAllocNodeParams *params, void **ptr)
{
	bool known = qcul_graph_valid(graph) && (deps || !count);
	struct qcul_node_params p;
	cudaError_t err = qcul_node_memory(
		&p, params, known ? qcul_node_memory_take_over(graph, deps, count, params) : NULL);
	struct qcul_graph_memory *others;
	void *at;

	if (err == cudaErrorMemoryAllocation && known) {
		others = qcul_node_memory_of_others(graph, params);
		if (others)
			err = qcul_node_memory(&p, params, others);
	}
	at = err ? NULL : qcul_node_memory_ptr(&p);
	err = add_made_node(err, node, graph, deps, data, count, &p);
	if (!err)
		*ptr = at;
	return err;
}

cudaError_t cudaGraphAddMemAllocNode(cudaGraphNode_t *node, cudaGraph_t graph,
				     const cudaGraphNode_t *deps, size_t count,
				     struct cudaMemAllocNodeParams *params)
{
	return add_memory(node, graph, deps, NULL, count, params, params ? &params->dptr : NULL);
}

cudaError_t cudaGraphAddMemFreeNode(cudaGraphNode_t *node, cudaGraph_t graph,
				    const cudaGraphNode_t *deps, size_t count, void *ptr)
{
	struct qcul_node_params p;

	return add_made_node(qcul_node_memory_free(&p, ptr), node, graph, deps, NULL, count, &p);
}

/* Writes the bodies into the caller's params. */
static cudaError_t add_conditional(cudaGraphNode_t *node, cudaGraph_t graph,
				   const cudaGraphNode_t *deps, const cudaGraphEdgeData *data,
				   size_t count, struct cudaConditionalNodeParams *params)
{
	struct qcul_node_params p;
	cudaError_t err = add_made_node(qcul_node_cond(&p, graph, params), node, graph, deps, data,
					count, &p);

	if (!err)
		params->phGraph_out = (*node)->params.cond.bodies;
	return err;
}

static cudaError_t add_child(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *deps,
			     const cudaGraphEdgeData *data, size_t count,
			     const struct cudaChildGraphNodeParams *params)
{
	struct qcul_node_params p;
	cudaError_t err = cudaErrorInvalidValue;

	if (params->ownership == cudaGraphChildGraphOwnershipClone)
		return add_made_node(qcul_node_child(&p, params->graph), node, graph, deps, data,
				     count, &p);
	if (params->ownership == cudaGraphChildGraphOwnershipMove)
		err = qcul_node_moved_child(&p, graph, params->graph);
	if (!err)
		err = qcul_graph_add(graph, deps, data, count, &p, node);
	if (!err)
		p.child->is_child = p.child->is_moved = true;
	return qcul_done(err);
}

cudaError_t cudaGraphAddNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *deps,
			     const cudaGraphEdgeData *data, size_t count,
			     struct cudaGraphNodeParams *params)
{
	struct qcul_node_params p;

	if (params && params->type == cudaGraphNodeTypeMemAlloc) {
		const struct cudaMemAllocNodeParams m = {
			.poolProps = params->alloc.poolProps,
			.accessDescs = params->alloc.accessDescs,
			.accessDescCount = params->alloc.accessDescCount,
			.bytesize = params->alloc.bytesize,
		};

		return add_memory(node, graph, deps, data, count, &m, &params->alloc.dptr);
	}
	if (params && params->type == cudaGraphNodeTypeConditional)
		return add_conditional(node, graph, deps, data, count, &params->conditional);
	if (params && params->type == cudaGraphNodeTypeGraph)
		return add_child(node, graph, deps, data, count, &params->graph);
	return add_made_node(qcul_node_any(&p, params), node, graph, deps, data, count, &p);
}

cudaError_t cudaGraphAddKernelNode(cudaGraphNode_t *node, cudaGraph_t graph,
				   const cudaGraphNode_t *deps, size_t count,
				   const struct cudaKernelNodeParams *params)
{
	struct qcul_node_params p;

	return add_made_node(qcul_node_kernel(&p, params), node, graph, deps, NULL, count, &p);
}

cudaError_t cudaGraphAddMemcpyNode(cudaGraphNode_t *node, cudaGraph_t graph,
				   const cudaGraphNode_t *deps, size_t count,
				   const struct cudaMemcpy3DParms *params)
{
	struct qcul_node_params p;

	return add_made_node(qcul_node_copy(&p, params), node, graph, deps, NULL, count, &p);
}

cudaError_t cudaGraphAddMemcpyNode1D(cudaGraphNode_t *node, cudaGraph_t graph,
				     const cudaGraphNode_t *deps, size_t count, void *dst,
				     const void *src, size_t bytes, enum cudaMemcpyKind kind)
{
	struct qcul_node_params p;

	return add_made_node(qcul_node_copy_1d(&p, dst, src, bytes, kind), node, graph, deps, NULL,
			     count, &p);
}

cudaError_t cudaGraphAddMemcpyNodeToSymbol(cudaGraphNode_t *node, cudaGraph_t graph,
					   const cudaGraphNode_t *deps, size_t count,
					   const void *symbol, const void *src, size_t bytes,
					   size_t offset, enum cudaMemcpyKind kind)
{
	struct qcul_node_params p;

	return add_made_node(qcul_node_to_symbol(&p, symbol, src, bytes, offset, kind), node, graph,
			     deps, NULL, count, &p);
}

cudaError_t cudaGraphAddMemcpyNodeFromSymbol(cudaGraphNode_t *node, cudaGraph_t graph,
					     const cudaGraphNode_t *deps, size_t count, void *dst,
					     const void *symbol, size_t bytes, size_t offset,
					     enum cudaMemcpyKind kind)
{
	struct qcul_node_params p;

	return add_made_node(qcul_node_from_symbol(&p, dst, symbol, bytes, offset, kind), node,
			     graph, deps, NULL, count, &p);
}

cudaError_t cudaGraphAddMemsetNode(cudaGraphNode_t *node, cudaGraph_t graph,
				   const cudaGraphNode_t *deps, size_t count,
				   const struct cudaMemsetParams *params)
{
	struct qcul_node_params p;

	return add_made_node(qcul_node_memset(&p, params), node, graph, deps, NULL, count, &p);
}

cudaError_t cudaGraphAddHostNode(cudaGraphNode_t *node, cudaGraph_t graph,
				 const cudaGraphNode_t *deps, size_t count,
				 const struct cudaHostNodeParams *params)
{
	struct qcul_node_params p;

	return add_made_node(qcul_node_host(&p, params), node, graph, deps, NULL, count, &p);
}

cudaError_t cudaGraphAddChildGraphNode(cudaGraphNode_t *node, cudaGraph_t graph,
				       const cudaGraphNode_t *deps, size_t count, cudaGraph_t child)
{
	struct qcul_node_params p;

	return add_made_node(qcul_node_child(&p, child), node, graph, deps, NULL, count, &p);
}

cudaError_t cudaGraphAddEmptyNode(cudaGraphNode_t *node, cudaGraph_t graph,
				  const cudaGraphNode_t *deps, size_t count)
{
	struct qcul_node_params p = {.type = cudaGraphNodeTypeEmpty};

	return add_made_node(cudaSuccess, node, graph, deps, NULL, count, &p);
}

cudaError_t cudaGraphAddEventRecordNode(cudaGraphNode_t *node, cudaGraph_t graph,
					const cudaGraphNode_t *deps, size_t count,
					cudaEvent_t event)
{
	struct qcul_node_params p;

	return add_made_node(qcul_node_event(&p, cudaGraphNodeTypeEventRecord, event), node, graph,
			     deps, NULL, count, &p);
}

cudaError_t cudaGraphAddEventWaitNode(cudaGraphNode_t *node, cudaGraph_t graph,
				      const cudaGraphNode_t *deps, size_t count, cudaEvent_t event)
{
	struct qcul_node_params p;

	return add_made_node(qcul_node_event(&p, cudaGraphNodeTypeWaitEvent, event), node, graph,
			     deps, NULL, count, &p);
}

static struct qcul_node_params call_params(struct qcul_captured_call *call)
{
	return (struct qcul_node_params){.type = (enum cudaGraphNodeType)QCUL_NODE_CALL,
					 .call = call};
}

cudaError_t qcul_graph_add_call(cudaError_t made, struct qcul_captured_call *call,
				cudaGraphNode_t *node, cudaGraph_t graph,
				const cudaGraphNode_t *deps, size_t count)
{
	struct qcul_node_params p = call_params(call);

	return add_made_node(made, node, graph, deps, NULL, count, &p);
}

/* ---- reading ---- */

static bool is_node_of_type(cudaGraphNode_t node, enum cudaGraphNodeType type)
{
	return qcul_node_valid(node) && node->params.type == type;
}

cudaError_t cudaGraphKernelNodeGetParams(cudaGraphNode_t node, struct cudaKernelNodeParams *params)
{
	const struct qcul_node_kernel *k;

	if (!params || !is_node_of_type(node, cudaGraphNodeTypeKernel))
		return qcul_done(cudaErrorInvalidValue);
	k = &node->params.kernel;
	*params = (struct cudaKernelNodeParams){
		.func = (void *)(uintptr_t)k->func,
		.gridDim = k->grid,
		.blockDim = k->block,
		.sharedMemBytes = k->shared,
		.kernelParams = k->args,
	};
	return cudaSuccess;
}

cudaError_t cudaGraphMemcpyNodeGetParams(cudaGraphNode_t node, struct cudaMemcpy3DParms *params)
{
	if (!params || !is_node_of_type(node, cudaGraphNodeTypeMemcpy))
		return qcul_done(cudaErrorInvalidValue);
	*params = node->params.copy;
	return cudaSuccess;
}

cudaError_t cudaGraphMemsetNodeGetParams(cudaGraphNode_t node, struct cudaMemsetParams *params)
{
	if (!params || !is_node_of_type(node, cudaGraphNodeTypeMemset))
		return qcul_done(cudaErrorInvalidValue);
	*params = node->params.memset;
	return cudaSuccess;
}

cudaError_t cudaGraphHostNodeGetParams(cudaGraphNode_t node, struct cudaHostNodeParams *params)
{
	if (!params || !is_node_of_type(node, cudaGraphNodeTypeHost))
		return qcul_done(cudaErrorInvalidValue);
	*params = node->params.host;
	return cudaSuccess;
}

cudaError_t cudaGraphChildGraphNodeGetGraph(cudaGraphNode_t node, cudaGraph_t *graph)
{
	if (!graph || !is_node_of_type(node, cudaGraphNodeTypeGraph))
		return qcul_done(cudaErrorInvalidValue);
	*graph = node->params.child;
	return cudaSuccess;
}

static cudaError_t get_event_of_node(cudaGraphNode_t node, enum cudaGraphNodeType type,
				     cudaEvent_t *event)
{
	if (!event || !is_node_of_type(node, type))
		return cudaErrorInvalidValue;
	*event = node->params.event;
	return cudaSuccess;
}

cudaError_t cudaGraphEventRecordNodeGetEvent(cudaGraphNode_t node, cudaEvent_t *event)
{
	return qcul_done(get_event_of_node(node, cudaGraphNodeTypeEventRecord, event));
}

cudaError_t cudaGraphEventWaitNodeGetEvent(cudaGraphNode_t node, cudaEvent_t *event)
{
	return qcul_done(get_event_of_node(node, cudaGraphNodeTypeWaitEvent, event));
}

const struct qcul_captured_call *qcul_node_call(cudaGraphNode_t node, enum cudaGraphNodeType type)
{
	return is_node_of_type(node, (enum cudaGraphNodeType)QCUL_NODE_CALL) &&
			       node->params.call->type == type
		       ? node->params.call
		       : NULL;
}

/* ---- replacing params, in a graph or in an executable graph ---- */

/* Memory nodes cannot be removed, and so neither can such a child. */
static bool has_child_with_memory(const struct CUgraphNode_st *n)
{
	return n->params.type == cudaGraphNodeTypeGraph && n->params.child->memory_count;
}

/* Takes ownership of p. A kernel node keeps its launch attributes, which are not part of the
 * params. */
static cudaError_t replace_node_params(cudaError_t made, cudaGraphNode_t node,
				       struct qcul_node_params *p)
{
	cudaError_t err = made;

	if (!err && (!qcul_node_valid(node) || !qcul_node_same_type(&node->params, p) ||
		     p->type == cudaGraphNodeTypeMemFree || has_child_with_memory(node)))
		err = cudaErrorInvalidValue;
	if (err) {
		if (!made)
			qcul_node_release(p);
		return qcul_done(err);
	}
	if (p->type == cudaGraphNodeTypeKernel) {
		p->kernel.attrs = node->params.kernel.attrs;
		p->kernel.attr_count = node->params.kernel.attr_count;
		node->params.kernel.attrs = NULL;
	}
	qcul_node_release(&node->params);
	node->params = *p;
	return cudaSuccess;
}

static cudaError_t replace_in(cudaGraphExec_t exec, cudaError_t made, cudaGraphNode_t node,
			      struct qcul_node_params *p)
{
	struct CUgraphNode_st *n = qcul_exec_node(exec, node);

	if (!made && n && !qcul_node_can_become(&n->params, p)) {
		qcul_node_release(p);
		made = cudaErrorInvalidValue;
	}
	return replace_node_params(made, n, p);
}

/* Defines cudaGraphNAME and cudaGraphExecNAME. `made` is the call that makes the new params in p.
 */
#define SETTER(name, made, ...)                                                                  \
	cudaError_t cudaGraph##name(cudaGraphNode_t node, __VA_ARGS__)                           \
	{                                                                                        \
		struct qcul_node_params p;                                                       \
                                                                                                 \
		return replace_node_params(made, node, &p);                                      \
	}                                                                                        \
	cudaError_t cudaGraphExec##name(cudaGraphExec_t exec, cudaGraphNode_t node, __VA_ARGS__) \
	{                                                                                        \
		struct qcul_node_params p;                                                       \
                                                                                                 \
		return replace_in(exec, made, node, &p);                                         \
	}

cudaError_t cudaGraphKernelNodeSetParams(cudaGraphNode_t node,
					 const struct cudaKernelNodeParams *params)
{
	struct qcul_node_params p;

	return replace_node_params(qcul_node_kernel(&p, params), node, &p);
}

cudaError_t cudaGraphExecKernelNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
					     const struct cudaKernelNodeParams *params)
{
	struct CUgraphNode_st *n = qcul_exec_node(exec, node);
	struct qcul_node_params p;

	if (n && qcul_node_relaunch(&n->params, params))
		return cudaSuccess;
	return replace_node_params(qcul_node_kernel(&p, params), n, &p);
}

cudaError_t cudaGraphNodeSetParams(cudaGraphNode_t node, struct cudaGraphNodeParams *params)
{
	struct qcul_node_params p;

	return replace_node_params(qcul_node_any(&p, params), node, &p);
}

/* The host's instance knows the nodes of a child, so these are changed and not replaced. */
cudaError_t cudaGraphExecNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
				       struct cudaGraphNodeParams *params)
{
	struct qcul_node_params p;

	if (params && params->type == cudaGraphNodeTypeGraph)
		return cudaGraphExecChildGraphNodeSetParams(exec, node, params->graph.graph);
	return replace_in(exec, qcul_node_any(&p, params), node, &p);
}

SETTER(MemcpyNodeSetParams, qcul_node_copy(&p, params), const struct cudaMemcpy3DParms *params)
SETTER(MemcpyNodeSetParams1D, qcul_node_copy_1d(&p, dst, src, count, kind), void *dst,
       const void *src, size_t count, enum cudaMemcpyKind kind)
SETTER(MemcpyNodeSetParamsToSymbol, qcul_node_to_symbol(&p, symbol, src, count, offset, kind),
       const void *symbol, const void *src, size_t count, size_t offset, enum cudaMemcpyKind kind)
SETTER(MemcpyNodeSetParamsFromSymbol, qcul_node_from_symbol(&p, dst, symbol, count, offset, kind),
       void *dst, const void *symbol, size_t count, size_t offset, enum cudaMemcpyKind kind)
SETTER(MemsetNodeSetParams, qcul_node_memset(&p, params), const struct cudaMemsetParams *params)
SETTER(HostNodeSetParams, qcul_node_host(&p, params), const struct cudaHostNodeParams *params)
SETTER(EventRecordNodeSetEvent, qcul_node_event(&p, cudaGraphNodeTypeEventRecord, event),
       cudaEvent_t event)
SETTER(EventWaitNodeSetEvent, qcul_node_event(&p, cudaGraphNodeTypeWaitEvent, event),
       cudaEvent_t event)

cudaError_t qcul_graph_set_call(cudaError_t made, struct qcul_captured_call *call,
				cudaGraphNode_t node)
{
	struct qcul_node_params p = call_params(call);

	return replace_node_params(made, node, &p);
}

cudaError_t qcul_graph_exec_set_call(cudaError_t made, struct qcul_captured_call *call,
				     cudaGraphExec_t exec, cudaGraphNode_t node)
{
	struct qcul_node_params p = call_params(call);

	return replace_in(exec, made, node, &p);
}
