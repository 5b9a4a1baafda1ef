// SPDX-License-Identifier: LGPL-2.1-or-later
/* Graph nodes: checking, copying, reading and replacing the parameters of each node type. */
#include <stdlib.h>
#include <string.h>

#include "qcu-library/graph.h"

void qcul_node_release(struct qcul_node_params *p)
{
	if (p->type == cudaGraphNodeTypeKernel) {
		free(p->kernel.packed);
		free(p->kernel.args);
		free(p->kernel.attrs);
	} else if (p->type == cudaGraphNodeTypeGraph) {
		qcul_graph_free(p->child);
	} else if (p->type == cudaGraphNodeTypeMemAlloc || p->type == cudaGraphNodeTypeMemFree) {
		qcul_node_memory_release(p);
	} else if (p->type == cudaGraphNodeTypeConditional) {
		qcul_node_cond_release(p);
	}
	memset(p, 0, sizeof(*p));
	p->type = cudaGraphNodeTypeEmpty;
}

/* Allocates room for the arguments of k->kernel, and the pointers into it. */
static bool room_for_args(struct qcul_node_kernel *k)
{
	const struct CUkern_st *kernel = k->kernel;
	uint32_t i;

	k->packed = calloc(1, kernel->param_bytes + 1);
	k->args = calloc(kernel->param_count + 1, sizeof(*k->args));
	if (!k->packed || !k->args)
		return false;
	for (i = 0; i < kernel->param_count; i++)
		k->args[i] = k->packed + kernel->params[i].offset;
	return true;
}

cudaError_t qcul_node_captured_kernel(struct qcul_node_params *p, struct CUkern_st *kernel,
				      const struct cudaKernelNodeParams *from)
{
	cudaError_t err = cudaErrorMemoryAllocation;

	*p = (struct qcul_node_params){
		.type = cudaGraphNodeTypeKernel,
		.kernel =
			{
				.func = from->func,
				.kernel = kernel,
				.grid = from->gridDim,
				.block = from->blockDim,
				.shared = from->sharedMemBytes,
			},
	};
	if (kernel->param_count && !from->kernelParams) {
		err = cudaErrorInvalidValue;
	} else if (room_for_args(&p->kernel)) {
		if (qcul_pack_args(p->kernel.packed, kernel->param_bytes, kernel->params,
				   kernel->param_count, from->kernelParams))
			return cudaSuccess;
		err = cudaErrorInvalidKernelImage;
	}
	qcul_node_release(p);
	return err;
}

cudaError_t qcul_node_kernel(struct qcul_node_params *p, const struct cudaKernelNodeParams *from)
{
	static atomic_flag said = ATOMIC_FLAG_INIT;
	struct CUkern_st *kernel;
	cudaError_t err;

	p->type = cudaGraphNodeTypeEmpty;
	if (!from || !from->gridDim.x || !from->gridDim.y || !from->gridDim.z ||
	    !from->blockDim.x || !from->blockDim.y || !from->blockDim.z)
		return cudaErrorInvalidValue;
	if (from->extra)
		return qcul_unsupported("a kernel node with `extra`", &said);
	err = qcul_ready();
	if (!err)
		err = qcul_kernel(from->func, &kernel);
	if (!err)
		err = qcul_kernel_load(kernel);
	return err ? err : qcul_node_captured_kernel(p, kernel, from);
}

cudaError_t qcul_node_copy(struct qcul_node_params *p, const struct cudaMemcpy3DParms *from)
{
	p->type = cudaGraphNodeTypeEmpty;
	if (!from || !from->srcArray == !from->srcPtr.ptr || !from->dstArray == !from->dstPtr.ptr ||
	    !from->extent.width || !from->extent.height || !from->extent.depth)
		return cudaErrorInvalidValue;
	if ((unsigned int)from->kind > cudaMemcpyDefault)
		return cudaErrorInvalidMemcpyDirection;
	*p = (struct qcul_node_params){.type = cudaGraphNodeTypeMemcpy, .copy = *from};
	return cudaSuccess;
}

cudaError_t qcul_node_copy_1d(struct qcul_node_params *p, void *dst, const void *src, size_t count,
			      enum cudaMemcpyKind kind)
{
	struct cudaMemcpy3DParms c = {
		.srcPtr = {.ptr = (void *)(uintptr_t)src, count, count, 1},
		.dstPtr = {.ptr = dst, count, count, 1},
		.extent = {count, 1, 1},
		.kind = kind,
	};

	return qcul_node_copy(p, &c);
}

cudaError_t qcul_node_memset(struct qcul_node_params *p, const struct cudaMemsetParams *from)
{
	p->type = cudaGraphNodeTypeEmpty;
	if (!from || !from->dst || !from->width || !from->height ||
	    (from->elementSize != 1 && from->elementSize != 2 && from->elementSize != 4) ||
	    (from->height > 1 && from->pitch / from->elementSize < from->width))
		return cudaErrorInvalidValue;
	*p = (struct qcul_node_params){.type = cudaGraphNodeTypeMemset, .memset = *from};
	return cudaSuccess;
}

static cudaError_t node_host(struct qcul_node_params *p, const struct cudaHostNodeParams *from)
{
	p->type = cudaGraphNodeTypeEmpty;
	if (!from || !from->fn)
		return cudaErrorInvalidValue;
	*p = (struct qcul_node_params){.type = cudaGraphNodeTypeHost, .host = *from};
	return cudaSuccess;
}

static cudaError_t node_child(struct qcul_node_params *p, cudaGraph_t child)
{
	p->type = cudaGraphNodeTypeEmpty;
	if (!qcul_graph_valid(child) || child->has_memory || child->has_conditional)
		return cudaErrorInvalidValue;
	*p = (struct qcul_node_params){.type = cudaGraphNodeTypeGraph};
	p->child = qcul_graph_clone(child);
	if (!p->child)
		return cudaErrorMemoryAllocation;
	p->child->is_child = true;
	return cudaSuccess;
}

static cudaError_t node_event(struct qcul_node_params *p, enum cudaGraphNodeType type,
			      cudaEvent_t event)
{
	p->type = cudaGraphNodeTypeEmpty;
	if (!qcul_handle_id(&qcul_events, event))
		return cudaErrorInvalidValue;
	*p = (struct qcul_node_params){.type = type, .event = event};
	return cudaSuccess;
}

static cudaError_t node_to_symbol(struct qcul_node_params *p, const void *symbol, const void *src,
				  size_t count, size_t offset, enum cudaMemcpyKind kind)
{
	void *at;
	cudaError_t err = qcul_symbol_place(symbol, count, offset, &at);

	p->type = cudaGraphNodeTypeEmpty;
	if (!err && !qcul_symbol_kind_ok(kind, cudaMemcpyHostToDevice))
		err = cudaErrorInvalidMemcpyDirection;
	return err ? err : qcul_node_copy_1d(p, at, src, count, kind);
}

static cudaError_t node_from_symbol(struct qcul_node_params *p, void *dst, const void *symbol,
				    size_t count, size_t offset, enum cudaMemcpyKind kind)
{
	void *at;
	cudaError_t err = qcul_symbol_place(symbol, count, offset, &at);

	p->type = cudaGraphNodeTypeEmpty;
	if (!err && !qcul_symbol_kind_ok(kind, cudaMemcpyDeviceToHost))
		err = cudaErrorInvalidMemcpyDirection;
	return err ? err : qcul_node_copy_1d(p, dst, at, count, kind);
}

cudaError_t qcul_node_clone(struct qcul_node_params *to, const struct qcul_node_params *from)
{
	const struct CUkern_st *k;

	switch (from->type) {
	case cudaGraphNodeTypeGraph:
		return node_child(to, from->child);
	case cudaGraphNodeTypeKernel:
		*to = *from;
		to->kernel.packed = NULL;
		to->kernel.args = NULL;
		to->kernel.attrs = NULL;
		k = from->kernel.kernel;
		if (!room_for_args(&to->kernel) ||
		    qcul_node_attrs_copy(&to->kernel, &from->kernel)) {
			qcul_node_release(to);
			return cudaErrorMemoryAllocation;
		}
		memcpy(to->kernel.packed, from->kernel.packed, k->param_bytes);
		return cudaSuccess;
	case cudaGraphNodeTypeMemAlloc:
	case cudaGraphNodeTypeMemFree:
		*to = *from;
		qcul_node_memory_clone(to);
		return cudaSuccess;
	case cudaGraphNodeTypeConditional:
		return qcul_node_cond_clone(to, from);
	default:
		*to = *from;
		return cudaSuccess;
	}
}

cudaError_t qcul_node_any(struct qcul_node_params *p, const struct cudaGraphNodeParams *from)
{
	static atomic_flag said = ATOMIC_FLAG_INIT;

	p->type = cudaGraphNodeTypeEmpty;
	if (!from)
		return cudaErrorInvalidValue;
	switch (from->type) {
	case cudaGraphNodeTypeKernel: {
		const struct cudaKernelNodeParams k = {
			.func = from->kernel.func,
			.gridDim = from->kernel.gridDim,
			.blockDim = from->kernel.blockDim,
			.sharedMemBytes = from->kernel.sharedMemBytes,
			.kernelParams = from->kernel.kernelParams,
			.extra = from->kernel.extra,
		};

		return qcul_node_kernel(p, &k);
	}
	case cudaGraphNodeTypeMemcpy:
		return qcul_node_copy(p, &from->memcpy.copyParams);
	case cudaGraphNodeTypeMemset: {
		const struct cudaMemsetParams m = {
			.dst = from->memset.dst,
			.pitch = from->memset.pitch,
			.value = from->memset.value,
			.elementSize = from->memset.elementSize,
			.width = from->memset.width,
			.height = from->memset.height,
		};

		return qcul_node_memset(p, &m);
	}
	case cudaGraphNodeTypeHost: {
		const struct cudaHostNodeParams h = {from->host.fn, from->host.userData};

		return node_host(p, &h);
	}
	case cudaGraphNodeTypeGraph:
		return node_child(p, from->graph.graph);
	case cudaGraphNodeTypeEmpty:
		return cudaSuccess;
	case cudaGraphNodeTypeWaitEvent:
		return node_event(p, from->type, from->eventWait.event);
	case cudaGraphNodeTypeEventRecord:
		return node_event(p, from->type, from->eventRecord.event);
	case cudaGraphNodeTypeMemFree:
		return qcul_node_memory_free(p, from->free.dptr);
	case cudaGraphNodeTypeConditional:
	case cudaGraphNodeTypeExtSemaphoreSignal:
	case cudaGraphNodeTypeExtSemaphoreWait:
		return qcul_unsupported(
			"a graph node for a semaphore, or a conditional one changed", &said);
	default:
		return cudaErrorInvalidValue;
	}
}

/* ---- adding ---- */

/* The params are made before the graph is checked. `made` is the result. If the graph is refused,
 * qcul_graph_add() releases the params. */
static cudaError_t add(cudaError_t made, cudaGraphNode_t *node, cudaGraph_t graph,
		       const cudaGraphNode_t *deps, const cudaGraphEdgeData *data, size_t count,
		       struct qcul_node_params *p)
{
	return qcul_done(made ? made : qcul_graph_add(graph, deps, data, count, p, node));
}

/* Writes the address of the memory into the caller's params. */
static cudaError_t add_memory(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *deps,
			      const cudaGraphEdgeData *data, size_t count,
			      const struct cudaMemAllocNodeParams *params, void **ptr)
{
	struct qcul_node_params p;
	cudaError_t err = qcul_node_memory(&p, params);
	void *at = err ? NULL : qcul_node_memory_ptr(&p);

	err = add(err, node, graph, deps, data, count, &p);
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

	return add(qcul_node_memory_free(&p, ptr), node, graph, deps, NULL, count, &p);
}

/* Writes the bodies into the caller's params. */
static cudaError_t add_conditional(cudaGraphNode_t *node, cudaGraph_t graph,
				   const cudaGraphNode_t *deps, const cudaGraphEdgeData *data,
				   size_t count, struct cudaConditionalNodeParams *params)
{
	struct qcul_node_params p;
	cudaError_t err =
		add(qcul_node_cond(&p, graph, params), node, graph, deps, data, count, &p);

	if (err)
		return err;
	err = qcul_node_cond_added(&(*node)->params.cond);
	if (err) {
		(void)cudaGraphDestroyNode(*node);
		return qcul_done(err);
	}
	params->phGraph_out = (*node)->params.cond.bodies;
	return cudaSuccess;
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
	return add(qcul_node_any(&p, params), node, graph, deps, data, count, &p);
}

cudaError_t cudaGraphAddKernelNode(cudaGraphNode_t *node, cudaGraph_t graph,
				   const cudaGraphNode_t *deps, size_t count,
				   const struct cudaKernelNodeParams *params)
{
	struct qcul_node_params p;

	return add(qcul_node_kernel(&p, params), node, graph, deps, NULL, count, &p);
}

cudaError_t cudaGraphAddMemcpyNode(cudaGraphNode_t *node, cudaGraph_t graph,
				   const cudaGraphNode_t *deps, size_t count,
				   const struct cudaMemcpy3DParms *params)
{
	struct qcul_node_params p;

	return add(qcul_node_copy(&p, params), node, graph, deps, NULL, count, &p);
}

cudaError_t cudaGraphAddMemcpyNode1D(cudaGraphNode_t *node, cudaGraph_t graph,
				     const cudaGraphNode_t *deps, size_t count, void *dst,
				     const void *src, size_t bytes, enum cudaMemcpyKind kind)
{
	struct qcul_node_params p;

	return add(qcul_node_copy_1d(&p, dst, src, bytes, kind), node, graph, deps, NULL, count,
		   &p);
}

cudaError_t cudaGraphAddMemcpyNodeToSymbol(cudaGraphNode_t *node, cudaGraph_t graph,
					   const cudaGraphNode_t *deps, size_t count,
					   const void *symbol, const void *src, size_t bytes,
					   size_t offset, enum cudaMemcpyKind kind)
{
	struct qcul_node_params p;

	return add(node_to_symbol(&p, symbol, src, bytes, offset, kind), node, graph, deps, NULL,
		   count, &p);
}

cudaError_t cudaGraphAddMemcpyNodeFromSymbol(cudaGraphNode_t *node, cudaGraph_t graph,
					     const cudaGraphNode_t *deps, size_t count, void *dst,
					     const void *symbol, size_t bytes, size_t offset,
					     enum cudaMemcpyKind kind)
{
	struct qcul_node_params p;

	return add(node_from_symbol(&p, dst, symbol, bytes, offset, kind), node, graph, deps, NULL,
		   count, &p);
}

cudaError_t cudaGraphAddMemsetNode(cudaGraphNode_t *node, cudaGraph_t graph,
				   const cudaGraphNode_t *deps, size_t count,
				   const struct cudaMemsetParams *params)
{
	struct qcul_node_params p;

	return add(qcul_node_memset(&p, params), node, graph, deps, NULL, count, &p);
}

cudaError_t cudaGraphAddHostNode(cudaGraphNode_t *node, cudaGraph_t graph,
				 const cudaGraphNode_t *deps, size_t count,
				 const struct cudaHostNodeParams *params)
{
	struct qcul_node_params p;

	return add(node_host(&p, params), node, graph, deps, NULL, count, &p);
}

cudaError_t cudaGraphAddChildGraphNode(cudaGraphNode_t *node, cudaGraph_t graph,
				       const cudaGraphNode_t *deps, size_t count, cudaGraph_t child)
{
	struct qcul_node_params p;

	return add(node_child(&p, child), node, graph, deps, NULL, count, &p);
}

cudaError_t cudaGraphAddEmptyNode(cudaGraphNode_t *node, cudaGraph_t graph,
				  const cudaGraphNode_t *deps, size_t count)
{
	struct qcul_node_params p = {.type = cudaGraphNodeTypeEmpty};

	return add(cudaSuccess, node, graph, deps, NULL, count, &p);
}

cudaError_t cudaGraphAddEventRecordNode(cudaGraphNode_t *node, cudaGraph_t graph,
					const cudaGraphNode_t *deps, size_t count,
					cudaEvent_t event)
{
	struct qcul_node_params p;

	return add(node_event(&p, cudaGraphNodeTypeEventRecord, event), node, graph, deps, NULL,
		   count, &p);
}

cudaError_t cudaGraphAddEventWaitNode(cudaGraphNode_t *node, cudaGraph_t graph,
				      const cudaGraphNode_t *deps, size_t count, cudaEvent_t event)
{
	struct qcul_node_params p;

	return add(node_event(&p, cudaGraphNodeTypeWaitEvent, event), node, graph, deps, NULL,
		   count, &p);
}

/* ---- reading ---- */

static bool is(cudaGraphNode_t node, enum cudaGraphNodeType type)
{
	return qcul_node_valid(node) && node->params.type == type;
}

cudaError_t cudaGraphKernelNodeGetParams(cudaGraphNode_t node, struct cudaKernelNodeParams *params)
{
	const struct qcul_node_kernel *k;

	if (!params || !is(node, cudaGraphNodeTypeKernel))
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
	if (!params || !is(node, cudaGraphNodeTypeMemcpy))
		return qcul_done(cudaErrorInvalidValue);
	*params = node->params.copy;
	return cudaSuccess;
}

cudaError_t cudaGraphMemsetNodeGetParams(cudaGraphNode_t node, struct cudaMemsetParams *params)
{
	if (!params || !is(node, cudaGraphNodeTypeMemset))
		return qcul_done(cudaErrorInvalidValue);
	*params = node->params.memset;
	return cudaSuccess;
}

cudaError_t cudaGraphHostNodeGetParams(cudaGraphNode_t node, struct cudaHostNodeParams *params)
{
	if (!params || !is(node, cudaGraphNodeTypeHost))
		return qcul_done(cudaErrorInvalidValue);
	*params = node->params.host;
	return cudaSuccess;
}

cudaError_t cudaGraphChildGraphNodeGetGraph(cudaGraphNode_t node, cudaGraph_t *graph)
{
	if (!graph || !is(node, cudaGraphNodeTypeGraph))
		return qcul_done(cudaErrorInvalidValue);
	*graph = node->params.child;
	return cudaSuccess;
}

static cudaError_t get_event(cudaGraphNode_t node, enum cudaGraphNodeType type, cudaEvent_t *event)
{
	if (!event || !is(node, type))
		return cudaErrorInvalidValue;
	*event = node->params.event;
	return cudaSuccess;
}

cudaError_t cudaGraphEventRecordNodeGetEvent(cudaGraphNode_t node, cudaEvent_t *event)
{
	return qcul_done(get_event(node, cudaGraphNodeTypeEventRecord, event));
}

cudaError_t cudaGraphEventWaitNodeGetEvent(cudaGraphNode_t node, cudaEvent_t *event)
{
	return qcul_done(get_event(node, cudaGraphNodeTypeWaitEvent, event));
}

/* ---- replacing params, in a graph or in an executable graph ---- */

/* Takes ownership of p. A kernel node keeps its launch attributes, which are not part of the
 * params. */
static cudaError_t replace(cudaError_t made, cudaGraphNode_t node, struct qcul_node_params *p)
{
	cudaError_t err = made;

	if (!err && (!qcul_node_valid(node) || node->params.type != p->type ||
		     p->type == cudaGraphNodeTypeMemFree))
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

static bool is_line(const struct cudaMemcpy3DParms *c)
{
	return c->extent.height == 1 && c->extent.depth == 1;
}

/*
 * In an executable graph, a copy or memset of a single line can become any other one of a single
 * line. A copy of several rows cannot change at all. A memset of several rows must keep its number
 * of rows, width and element size.
 */
bool qcul_node_can_become(const struct qcul_node_params *old, const struct qcul_node_params *now)
{
	const struct cudaMemsetParams *a = &old->memset, *b = &now->memset;

	if (old->type != now->type)
		return false;
	switch (old->type) {
	case cudaGraphNodeTypeMemcpy:
		return (is_line(&old->copy) && is_line(&now->copy)) ||
		       !memcmp(&old->copy, &now->copy, sizeof(old->copy));
	case cudaGraphNodeTypeMemset:
		return (a->height == 1 && b->height == 1) ||
		       (a->height == b->height && a->width == b->width &&
			a->elementSize == b->elementSize);
	default:
		return true;
	}
}

static cudaError_t replace_in(cudaGraphExec_t exec, cudaError_t made, cudaGraphNode_t node,
			      struct qcul_node_params *p)
{
	struct CUgraphNode_st *n = qcul_exec_node(exec, node);

	if (!made && n && !qcul_node_can_become(&n->params, p)) {
		qcul_node_release(p);
		made = cudaErrorInvalidValue;
	}
	return replace(made, n, p);
}

/* Defines cudaGraphNAME and cudaGraphExecNAME. `made` is the call that makes the new params in p.
 */
#define SETTER(name, made, ...)                                                                  \
	cudaError_t cudaGraph##name(cudaGraphNode_t node, __VA_ARGS__)                           \
	{                                                                                        \
		struct qcul_node_params p;                                                       \
                                                                                                 \
		return replace(made, node, &p);                                                  \
	}                                                                                        \
	cudaError_t cudaGraphExec##name(cudaGraphExec_t exec, cudaGraphNode_t node, __VA_ARGS__) \
	{                                                                                        \
		struct qcul_node_params p;                                                       \
                                                                                                 \
		return replace_in(exec, made, node, &p);                                         \
	}

SETTER(NodeSetParams, qcul_node_any(&p, params), struct cudaGraphNodeParams *params)
SETTER(KernelNodeSetParams, qcul_node_kernel(&p, params), const struct cudaKernelNodeParams *params)
SETTER(MemcpyNodeSetParams, qcul_node_copy(&p, params), const struct cudaMemcpy3DParms *params)
SETTER(MemcpyNodeSetParams1D, qcul_node_copy_1d(&p, dst, src, count, kind), void *dst,
       const void *src, size_t count, enum cudaMemcpyKind kind)
SETTER(MemcpyNodeSetParamsToSymbol, node_to_symbol(&p, symbol, src, count, offset, kind),
       const void *symbol, const void *src, size_t count, size_t offset, enum cudaMemcpyKind kind)
SETTER(MemcpyNodeSetParamsFromSymbol, node_from_symbol(&p, dst, symbol, count, offset, kind),
       void *dst, const void *symbol, size_t count, size_t offset, enum cudaMemcpyKind kind)
SETTER(MemsetNodeSetParams, qcul_node_memset(&p, params), const struct cudaMemsetParams *params)
SETTER(HostNodeSetParams, node_host(&p, params), const struct cudaHostNodeParams *params)
SETTER(EventRecordNodeSetEvent, node_event(&p, cudaGraphNodeTypeEventRecord, event),
       cudaEvent_t event)
SETTER(EventWaitNodeSetEvent, node_event(&p, cudaGraphNodeTypeWaitEvent, event), cudaEvent_t event)
