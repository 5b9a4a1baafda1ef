// SPDX-License-Identifier: LGPL-2.1-or-later
/* Nodes of graphs: their parameters from one API to the other. */
#include <string.h>

#include "qcu-library/driver_api/array.h"
#include "qcu-library/driver_base/launch.h"

/* ---- kernels ---- */

/* Call qcul_args_end() after success. */
static cudaError_t kernel_from(struct cudaKernelNodeParams *to, struct qcul_args *args,
			       const CUDA_KERNEL_NODE_PARAMS_v2 *p)
{
	cudaError_t err;

	if (!p)
		return cudaErrorInvalidValue;
	*to = (struct cudaKernelNodeParams){
		.func = p->func ? (void *)p->func : (void *)p->kern,
		.gridDim = {p->gridDimX, p->gridDimY, p->gridDimZ},
		.blockDim = {p->blockDimX, p->blockDimY, p->blockDimZ},
		.sharedMemBytes = p->sharedMemBytes,
	};
	if (!to->func)
		return cudaErrorInvalidValue;
	err = qcul_args_begin(args, to->func, p->kernelParams, p->extra);
	to->kernelParams = args->list;
	return err;
}

/* The first form of the structure ends before `kern`. */
static CUDA_KERNEL_NODE_PARAMS_v2 newer(const CUDA_KERNEL_NODE_PARAMS_v1 *p)
{
	CUDA_KERNEL_NODE_PARAMS_v2 n = {0};

	memcpy(&n, p, sizeof(*p));
	return n;
}
_Static_assert(offsetof(CUDA_KERNEL_NODE_PARAMS_v2, kern) == sizeof(CUDA_KERNEL_NODE_PARAMS_v1),
	       "the first form");

static cudaError_t add_kernel(CUgraphNode *node, CUgraph graph, const CUgraphNode *after,
			      size_t count, const CUDA_KERNEL_NODE_PARAMS_v2 *p)
{
	struct cudaKernelNodeParams params;
	struct qcul_args args;
	cudaError_t err;

	if (p && !p->func && !p->kern)
		return cudaErrorInvalidResourceHandle;
	err = kernel_from(&params, &args, p);
	if (err)
		return err;
	err = cudaGraphAddKernelNode(node, graph, after, count, &params);
	qcul_args_end(&args);
	return err;
}

CUresult cuGraphAddKernelNode_v2(CUgraphNode *node, CUgraph graph, const CUgraphNode *after,
				 size_t count, const CUDA_KERNEL_NODE_PARAMS *params)
{
	return QCUL_RUNTIME(add_kernel(node, graph, after, count, params));
}

CUresult cuGraphAddKernelNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *after,
			      size_t count, const CUDA_KERNEL_NODE_PARAMS_v1 *params)
{
	CUDA_KERNEL_NODE_PARAMS_v2 p;

	if (!params)
		return CUDA_ERROR_INVALID_VALUE;
	p = newer(params);
	return cuGraphAddKernelNode_v2(node, graph, after, count, &p);
}

static cudaError_t set_kernel(CUgraphExec exec, CUgraphNode node,
			      const CUDA_KERNEL_NODE_PARAMS_v2 *p)
{
	struct cudaKernelNodeParams params;
	struct qcul_args args;
	cudaError_t err = kernel_from(&params, &args, p);

	if (err)
		return err;
	err = exec ? cudaGraphExecKernelNodeSetParams(exec, node, &params)
		   : cudaGraphKernelNodeSetParams(node, &params);
	qcul_args_end(&args);
	return err;
}

CUresult cuGraphKernelNodeSetParams_v2(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS *params)
{
	return QCUL_RUNTIME(set_kernel(NULL, node, params));
}

CUresult cuGraphKernelNodeSetParams(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v1 *params)
{
	CUDA_KERNEL_NODE_PARAMS_v2 p;

	if (!params)
		return CUDA_ERROR_INVALID_VALUE;
	p = newer(params);
	return cuGraphKernelNodeSetParams_v2(node, &p);
}

CUresult cuGraphExecKernelNodeSetParams_v2(CUgraphExec exec, CUgraphNode node,
					   const CUDA_KERNEL_NODE_PARAMS *params)
{
	return QCUL_RUNTIME(exec ? set_kernel(exec, node, params) : cudaErrorInvalidValue);
}

CUresult cuGraphExecKernelNodeSetParams(CUgraphExec exec, CUgraphNode node,
					const CUDA_KERNEL_NODE_PARAMS_v1 *params)
{
	CUDA_KERNEL_NODE_PARAMS_v2 p;

	if (!params)
		return CUDA_ERROR_INVALID_VALUE;
	p = newer(params);
	return cuGraphExecKernelNodeSetParams_v2(exec, node, &p);
}

CUresult cuGraphKernelNodeGetParams_v2(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS *params)
{
	struct cudaKernelNodeParams p;
	CUresult result = QCUL_RUNTIME(params ? cudaGraphKernelNodeGetParams(node, &p)
					      : cudaErrorInvalidValue);

	if (!result)
		*params = (CUDA_KERNEL_NODE_PARAMS){
			.func = (CUfunction)p.func,
			.gridDimX = p.gridDim.x,
			.gridDimY = p.gridDim.y,
			.gridDimZ = p.gridDim.z,
			.blockDimX = p.blockDim.x,
			.blockDimY = p.blockDim.y,
			.blockDimZ = p.blockDim.z,
			.sharedMemBytes = p.sharedMemBytes,
			.kernelParams = p.kernelParams,
			.kern = (CUkernel)p.func,
			.ctx = qcul_driver_current(),
		};
	return result;
}

CUresult cuGraphKernelNodeGetParams(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS_v1 *params)
{
	CUDA_KERNEL_NODE_PARAMS p;
	CUresult result =
		params ? cuGraphKernelNodeGetParams_v2(node, &p) : CUDA_ERROR_INVALID_VALUE;

	if (!result)
		memcpy(params, &p, sizeof(*params));
	return result;
}

/* ---- copies and fills: a context says on which device the node works ---- */

static cudaError_t add_copy(CUgraphNode *node, CUgraph graph, const CUgraphNode *after,
			    size_t count, const CUDA_MEMCPY3D *c)
{
	struct cudaMemcpy3DParms p;
	cudaError_t err = c ? qcul_shape_from(&p, c) : cudaErrorInvalidValue;

	return err ? err : cudaGraphAddMemcpyNode(node, graph, after, count, &p);
}

CUresult cuGraphAddMemcpyNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *after,
			      size_t count, const CUDA_MEMCPY3D *c, CUcontext context)
{
	int device;
	CUresult result = qcul_driver_device_or_current(context, &device);

	return result ? result : QCUL_ON_DEVICE(device, add_copy(node, graph, after, count, c));
}

static cudaError_t set_copy(CUgraphExec exec, CUgraphNode node, const CUDA_MEMCPY3D *c)
{
	struct cudaMemcpy3DParms p;
	cudaError_t err = c ? qcul_shape_from(&p, c) : cudaErrorInvalidValue;

	if (err)
		return err;
	return exec ? cudaGraphExecMemcpyNodeSetParams(exec, node, &p)
		    : cudaGraphMemcpyNodeSetParams(node, &p);
}

CUresult cuGraphMemcpyNodeSetParams(CUgraphNode node, const CUDA_MEMCPY3D *c)
{
	return QCUL_RUNTIME(set_copy(NULL, node, c));
}

CUresult cuGraphExecMemcpyNodeSetParams(CUgraphExec exec, CUgraphNode node, const CUDA_MEMCPY3D *c,
					CUcontext context)
{
	int device;
	CUresult result = qcul_driver_device_or_current(context, &device);

	if (!result && !exec)
		result = CUDA_ERROR_INVALID_VALUE;
	return result ? result : QCUL_ON_DEVICE(device, set_copy(exec, node, c));
}

CUresult cuGraphMemcpyNodeGetParams(CUgraphNode node, CUDA_MEMCPY3D *c)
{
	struct cudaMemcpy3DParms p;
	CUresult result =
		QCUL_RUNTIME(c ? cudaGraphMemcpyNodeGetParams(node, &p) : cudaErrorInvalidValue);

	if (!result)
		qcul_shape_to(c, &p);
	return result;
}

_Static_assert(sizeof(CUDA_MEMSET_NODE_PARAMS) == sizeof(struct cudaMemsetParams) &&
		       offsetof(CUDA_MEMSET_NODE_PARAMS, elementSize) ==
			       offsetof(struct cudaMemsetParams, elementSize) &&
		       sizeof(CUDA_HOST_NODE_PARAMS) == sizeof(struct cudaHostNodeParams) &&
		       sizeof(CUDA_MEM_ALLOC_NODE_PARAMS) ==
			       sizeof(struct cudaMemAllocNodeParams) &&
		       offsetof(CUDA_MEM_ALLOC_NODE_PARAMS, dptr) ==
			       offsetof(struct cudaMemAllocNodeParams, dptr),
	       "parameters of nodes");

CUresult cuGraphAddMemsetNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *after,
			      size_t count, const CUDA_MEMSET_NODE_PARAMS *params,
			      CUcontext context)
{
	int device;
	CUresult result = qcul_driver_device_or_current(context, &device);

	return result ? result
		      : QCUL_ON_DEVICE(device, cudaGraphAddMemsetNode(
						       node, graph, after, count,
						       (const struct cudaMemsetParams *)params));
}

CUresult cuGraphExecMemsetNodeSetParams(CUgraphExec exec, CUgraphNode node,
					const CUDA_MEMSET_NODE_PARAMS *params, CUcontext context)
{
	int device;
	CUresult result = qcul_driver_device_or_current(context, &device);

	return result ? result
		      : QCUL_ON_DEVICE(device, cudaGraphExecMemsetNodeSetParams(
						       exec, node,
						       (const struct cudaMemsetParams *)params));
}

/* ---- nodes of any type ---- */

_Static_assert((int)CU_GRAPH_NODE_TYPE_CONDITIONAL == (int)cudaGraphNodeTypeConditional &&
		       (int)CU_GRAPH_NODE_TYPE_MEM_FREE == (int)cudaGraphNodeTypeMemFree &&
		       (int)CU_GRAPH_NODE_TYPE_WAIT_EVENT == (int)cudaGraphNodeTypeWaitEvent &&
		       sizeof(CUgraphNodeParams) == sizeof(struct cudaGraphNodeParams) &&
		       offsetof(CUDA_CONDITIONAL_NODE_PARAMS, phGraph_out) ==
			       offsetof(struct cudaConditionalNodeParams, phGraph_out) &&
		       offsetof(CUDA_CHILD_GRAPH_NODE_PARAMS, ownership) ==
			       offsetof(struct cudaChildGraphNodeParams, ownership) &&
		       offsetof(CUDA_MEM_ALLOC_NODE_PARAMS_v2, dptr) ==
			       offsetof(struct cudaMemAllocNodeParamsV2, dptr) &&
		       offsetof(CUDA_MEMSET_NODE_PARAMS_v2, ctx) ==
			       sizeof(struct cudaMemsetParamsV2),
	       "nodes of any type");

static cudaError_t kernel_of_any(struct cudaGraphNodeParams *to, struct qcul_args *args,
				 const CUDA_KERNEL_NODE_PARAMS_v3 *from)
{
	CUDA_KERNEL_NODE_PARAMS_v2 same;
	struct cudaKernelNodeParams p;
	cudaError_t err;

	memcpy(&same, from, sizeof(same));
	err = kernel_from(&p, args, &same);
	memset(&to->kernel, 0, sizeof(to->kernel));
	to->kernel.func = p.func;
	to->kernel.gridDim = p.gridDim;
	to->kernel.blockDim = p.blockDim;
	to->kernel.sharedMemBytes = p.sharedMemBytes;
	to->kernel.kernelParams = p.kernelParams;
	return err;
}

/* Call qcul_args_end() after success. *device changes if the parameters name a context. */
static cudaError_t any_from(struct cudaGraphNodeParams *to, struct qcul_args *args, int *device,
			    const CUgraphNodeParams *from)
{
	CUcontext context = NULL;
	cudaError_t err = cudaSuccess;

	if (!from)
		return cudaErrorInvalidValue;
	memcpy(to, from, sizeof(*to));
	args->more = NULL;
	switch (from->type) {
	case CU_GRAPH_NODE_TYPE_KERNEL:
		context = from->kernel.ctx;
		err = kernel_of_any(to, args, &from->kernel);
		break;
	case CU_GRAPH_NODE_TYPE_MEMCPY:
		context = from->memcpy.copyCtx;
		memset(&to->memcpy, 0, sizeof(from->memcpy));
		to->memcpy.flags = from->memcpy.flags | from->memcpy.reserved;
		err = qcul_shape_from(&to->memcpy.copyParams, &from->memcpy.copyParams);
		break;
	case CU_GRAPH_NODE_TYPE_MEMSET:
		context = from->memset.ctx;
		memset((char *)&to->memset + sizeof(to->memset), 0, sizeof(context));
		break;
	case CU_GRAPH_NODE_TYPE_CONDITIONAL:
		context = from->conditional.ctx;
		memset((char *)&to->conditional + sizeof(to->conditional), 0, sizeof(context));
		break;
	case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
		context = from->memOp.ctx;
		break;
	default:
		break;
	}
	if (!err && context && qcul_driver_device_or_current(context, device)) {
		qcul_args_end(args);
		err = cudaErrorDeviceUninitialized;
	}
	return err;
}

/* What the node's creation has found out. */
static void any_back(CUgraphNodeParams *to, const struct cudaGraphNodeParams *from)
{
	if (to->type == CU_GRAPH_NODE_TYPE_CONDITIONAL)
		to->conditional.phGraph_out = from->conditional.phGraph_out;
	if (to->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC)
		to->alloc.dptr = (CUdeviceptr)(uintptr_t)from->alloc.dptr;
}

CUresult cuGraphAddNode_v2(CUgraphNode *node, CUgraph graph, const CUgraphNode *after,
			   const CUgraphEdgeData *edges, size_t count, CUgraphNodeParams *params)
{
	int device = qcul_self.device;
	struct cudaGraphNodeParams p;
	struct qcul_args args;
	CUresult result = QCUL_RUNTIME(any_from(&p, &args, &device, params));

	if (result && params && params->type == CU_GRAPH_NODE_TYPE_KERNEL && !params->kernel.func &&
	    !params->kernel.kern)
		return CUDA_ERROR_INVALID_HANDLE;
	if (result)
		return result;
	result = QCUL_ON_DEVICE(device,
				cudaGraphAddNode(node, graph, after,
						 (const cudaGraphEdgeData *)edges, count, &p));
	qcul_args_end(&args);
	if (!result)
		any_back(params, &p);
	return result;
}

CUresult cuGraphAddNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *after, size_t count,
			CUgraphNodeParams *params)
{
	return cuGraphAddNode_v2(node, graph, after, NULL, count, params);
}

CUresult cuGraphNodeSetParams(CUgraphNode node, CUgraphNodeParams *params)
{
	int device = qcul_self.device;
	struct cudaGraphNodeParams p;
	struct qcul_args args;
	CUresult result = QCUL_RUNTIME(any_from(&p, &args, &device, params));

	if (result)
		return result;
	result = QCUL_ON_DEVICE(device, cudaGraphNodeSetParams(node, &p));
	qcul_args_end(&args);
	return result;
}

CUresult cuGraphExecNodeSetParams(CUgraphExec exec, CUgraphNode node, CUgraphNodeParams *params)
{
	int device = qcul_self.device;
	struct cudaGraphNodeParams p;
	struct qcul_args args;
	CUresult result = QCUL_RUNTIME(any_from(&p, &args, &device, params));

	if (result)
		return result;
	result = QCUL_ON_DEVICE(device, cudaGraphExecNodeSetParams(exec, node, &p));
	qcul_args_end(&args);
	return result;
}

CUresult cuGraphConditionalHandleCreate(CUgraphConditionalHandle *handle, CUgraph graph,
					CUcontext context, unsigned int first, unsigned int flags)
{
	int device;
	CUresult result = qcul_driver_device_or_current(context, &device);

	return result ? result
		      : QCUL_ON_DEVICE(device, cudaGraphConditionalHandleCreate(
						       (cudaGraphConditionalHandle *)handle, graph,
						       first, flags));
}
