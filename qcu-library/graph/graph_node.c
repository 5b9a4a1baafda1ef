// SPDX-License-Identifier: LGPL-2.1-or-later
/* The parameters of graph nodes: checking and copying them. */
#include <stdlib.h>
#include <string.h>

#include "qcu-library/graph/graph.h"
#include "qcu-library/link/capture.h"

void qcul_node_release(struct qcul_node_params *p)
{
	if (p->type == cudaGraphNodeTypeKernel) {
		free(p->kernel.args);
		free(p->kernel.attrs);
	} else if (p->type == cudaGraphNodeTypeGraph) {
		qcul_graph_free(p->child);
	} else if (p->type == cudaGraphNodeTypeMemAlloc || p->type == cudaGraphNodeTypeMemFree) {
		qcul_node_memory_release(p);
	} else if (p->type == cudaGraphNodeTypeConditional) {
		qcul_node_cond_release(p);
	} else if ((int)p->type == QCUL_NODE_CALL && atomic_fetch_sub(&p->call->refs, 1) == 1) {
		p->call->end(p->call);
	}
	memset(p, 0, sizeof(*p));
	p->type = cudaGraphNodeTypeEmpty;
}

/* Allocates room for the arguments of k->kernel, behind the pointers into it. */
static bool room_for_args(struct qcul_node_kernel *k)
{
	const struct CUkern_st *kernel = k->kernel;
	uint32_t i;

	k->args = calloc(1, kernel->param_count * sizeof(*k->args) + kernel->param_bytes + 1);
	if (!k->args)
		return false;
	k->packed = (uint8_t *)(k->args + kernel->param_count);
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

static bool has_dims(const struct cudaKernelNodeParams *p)
{
	return p && p->gridDim.x && p->gridDim.y && p->gridDim.z && p->blockDim.x &&
	       p->blockDim.y && p->blockDim.z;
}

bool qcul_node_relaunch(struct qcul_node_params *p, const struct cudaKernelNodeParams *from)
{
	struct qcul_node_kernel *k = &p->kernel;
	struct CUkern_st *kernel;

	if (p->type != cudaGraphNodeTypeKernel || !has_dims(from) || from->extra || qcul_ready() ||
	    qcul_kernel(from->func, &kernel) || kernel != k->kernel ||
	    (kernel->param_count && !from->kernelParams) ||
	    !qcul_pack_args(k->packed, kernel->param_bytes, kernel->params, kernel->param_count,
			    from->kernelParams))
		return false;
	k->func = from->func;
	k->grid = from->gridDim;
	k->block = from->blockDim;
	k->shared = from->sharedMemBytes;
	return true;
}

cudaError_t qcul_node_kernel(struct qcul_node_params *p, const struct cudaKernelNodeParams *from)
{
	static atomic_flag said = ATOMIC_FLAG_INIT;
	struct CUkern_st *kernel;
	cudaError_t err;

	p->type = cudaGraphNodeTypeEmpty;
	if (!has_dims(from))
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

cudaError_t qcul_node_host(struct qcul_node_params *p, const struct cudaHostNodeParams *from)
{
	p->type = cudaGraphNodeTypeEmpty;
	if (!from || !from->fn)
		return cudaErrorInvalidValue;
	*p = (struct qcul_node_params){.type = cudaGraphNodeTypeHost, .host = *from};
	return cudaSuccess;
}

static cudaError_t clone_child(struct qcul_node_params *p, const struct CUgraph_st *child)
{
	struct CUgraph_st *clone = qcul_graph_clone(child);

	if (!clone)
		return cudaErrorMemoryAllocation;
	clone->is_child = true;
	*p = (struct qcul_node_params){.type = cudaGraphNodeTypeGraph, .child = clone};
	return cudaSuccess;
}

cudaError_t qcul_node_child(struct qcul_node_params *p, cudaGraph_t child)
{
	p->type = cudaGraphNodeTypeEmpty;
	if (!qcul_graph_valid(child) || child->is_moved || child->has_conditional)
		return cudaErrorInvalidValue;
	/* As NVIDIA's library says. It can be moved. */
	if (child->memory_count)
		return cudaErrorNotSupported;
	return clone_child(p, child);
}

/* Is it this graph, or a child of it, or a child of one? */
static bool contains(const struct CUgraph_st *g, const struct CUgraph_st *searched)
{
	size_t i;

	if (g == searched)
		return true;
	for (i = 0; i < g->count; i++)
		if (g->nodes[i]->params.type == cudaGraphNodeTypeGraph &&
		    contains(g->nodes[i]->params.child, searched))
			return true;
	return false;
}

cudaError_t qcul_node_moved_child(struct qcul_node_params *p, const struct CUgraph_st *parent,
				  cudaGraph_t child)
{
	p->type = cudaGraphNodeTypeEmpty;
	if (!qcul_graph_valid(parent) || !qcul_graph_valid(child) || child->is_child ||
	    child->has_conditional || contains(child, parent))
		return cudaErrorInvalidValue;
	/* A child cannot get memory, and so it cannot get a child that has some. */
	if (child->memory_count && (parent->is_child || qcul_graphs_free_same(child, parent)))
		return cudaErrorInvalidValue;
	/* Parent and child may use their memory at the same time, and there was no room for both.
	 */
	if (qcul_graphs_share_memory(child, parent))
		return cudaErrorMemoryAllocation;
	*p = (struct qcul_node_params){.type = cudaGraphNodeTypeGraph, .child = child};
	return cudaSuccess;
}

cudaError_t qcul_node_event(struct qcul_node_params *p, enum cudaGraphNodeType type,
			    cudaEvent_t event)
{
	p->type = cudaGraphNodeTypeEmpty;
	if (!qcul_handle_id(&qcul_events, event))
		return cudaErrorInvalidValue;
	*p = (struct qcul_node_params){.type = type, .event = event};
	return cudaSuccess;
}

cudaError_t qcul_node_to_symbol(struct qcul_node_params *p, const void *symbol, const void *src,
				size_t count, size_t offset, enum cudaMemcpyKind kind)
{
	void *at;
	cudaError_t err = qcul_symbol_address(symbol, count, offset, &at);

	p->type = cudaGraphNodeTypeEmpty;
	if (!err && !qcul_symbol_kind_ok(kind, cudaMemcpyHostToDevice))
		err = cudaErrorInvalidMemcpyDirection;
	return err ? err : qcul_node_copy_1d(p, at, src, count, kind);
}

cudaError_t qcul_node_from_symbol(struct qcul_node_params *p, void *dst, const void *symbol,
				  size_t count, size_t offset, enum cudaMemcpyKind kind)
{
	void *at;
	cudaError_t err = qcul_symbol_address(symbol, count, offset, &at);

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
		return clone_child(to, from->child);
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
		if ((int)to->type == QCUL_NODE_CALL)
			atomic_fetch_add(&to->call->refs, 1);
		return cudaSuccess;
	}
}

/* The usual change is another launch of the same kernel. It needs no new memory. */
static bool take_launch(struct qcul_node_kernel *to, const struct qcul_node_kernel *from)
{
	if (to->kernel != from->kernel || to->attr_count || from->attr_count)
		return false;
	to->func = from->func;
	to->grid = from->grid;
	to->block = from->block;
	to->shared = from->shared;
	memcpy(to->packed, from->packed, to->kernel->param_bytes);
	return true;
}

cudaError_t qcul_node_take(struct qcul_node_params *to, const struct qcul_node_params *from)
{
	struct qcul_node_params params;
	cudaError_t err;

	if (to->type == cudaGraphNodeTypeKernel && from->type == cudaGraphNodeTypeKernel &&
	    take_launch(&to->kernel, &from->kernel))
		return cudaSuccess;
	err = qcul_node_clone(&params, from);
	if (err)
		return err;
	qcul_node_release(to);
	*to = params;
	return cudaSuccess;
}

static struct {
	qcul_make_call *makers[16]; /* by the type */
} process;

void qcul_node_calls(enum cudaGraphNodeType type, qcul_make_call *make)
{
	process.makers[type] = make;
}

static cudaError_t node_of_call(struct qcul_node_params *p, const struct cudaGraphNodeParams *from)
{
	size_t type = (size_t)from->type;
	struct qcul_captured_call *call;
	cudaError_t err;

	if (type >= sizeof(process.makers) / sizeof(process.makers[0]) || !process.makers[type])
		return cudaErrorInvalidValue;
	err = process.makers[type](from, &call);
	if (!err)
		*p = (struct qcul_node_params){.type = (enum cudaGraphNodeType)QCUL_NODE_CALL,
					       .call = call};
	return err;
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

		return qcul_node_host(p, &h);
	}
	case cudaGraphNodeTypeGraph:
		/* cudaGraphAddNode() alone can move a child. */
		return from->graph.ownership == cudaGraphChildGraphOwnershipMove
			       ? cudaErrorInvalidValue
			       : qcul_node_child(p, from->graph.graph);
	case cudaGraphNodeTypeEmpty:
		return cudaSuccess;
	case cudaGraphNodeTypeWaitEvent:
		return qcul_node_event(p, from->type, from->eventWait.event);
	case cudaGraphNodeTypeEventRecord:
		return qcul_node_event(p, from->type, from->eventRecord.event);
	case cudaGraphNodeTypeMemFree:
		return qcul_node_memory_free(p, from->free.dptr);
	case cudaGraphNodeTypeConditional:
		return qcul_unsupported("a conditional node changed", &said);
	default:
		return node_of_call(p, from);
	}
}

static bool same_kernel(const struct qcul_node_kernel *a, const struct qcul_node_kernel *b)
{
	return a->kernel == b->kernel && !memcmp(&a->grid, &b->grid, sizeof(a->grid)) &&
	       !memcmp(&a->block, &b->block, sizeof(a->block)) && a->shared == b->shared &&
	       a->attr_count == b->attr_count &&
	       (!a->attr_count || !memcmp(a->attrs, b->attrs, a->attr_count * sizeof(*a->attrs))) &&
	       !memcmp(a->packed, b->packed, a->kernel->param_bytes);
}

bool qcul_node_same_type(const struct qcul_node_params *a, const struct qcul_node_params *b)
{
	return a->type == b->type &&
	       ((int)a->type != QCUL_NODE_CALL || a->call->type == b->call->type);
}

bool qcul_node_same(const struct qcul_node_params *a, const struct qcul_node_params *b)
{
	if (a->type != b->type)
		return false;
	if ((int)a->type == QCUL_NODE_CALL)
		return a->call == b->call;
	switch (a->type) {
	case cudaGraphNodeTypeKernel:
		return same_kernel(&a->kernel, &b->kernel);
	case cudaGraphNodeTypeMemcpy:
		return !memcmp(&a->copy, &b->copy, sizeof(a->copy));
	case cudaGraphNodeTypeMemset:
		return !memcmp(&a->memset, &b->memset, sizeof(a->memset));
	case cudaGraphNodeTypeEmpty:
		return true;
	default:
		return false;
	}
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

	if (!qcul_node_same_type(old, now))
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
		return (int)old->type != QCUL_NODE_CALL || !old->call->can_become ||
		       old->call->can_become(old->call, now->call);
	}
}
