/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Functions that CUDA 13.0 does not have, as the headers of CUDA 13.5 declare them. This library is
 * compiled with the header of any CUDA 13. So these functions have names of their own here, and the
 * names of 13.5 only for the linker.
 *
 * tests/check/cuda135.sh compares this file with the headers of CUDA 13.5.
 */
#ifndef QCUL_LATER_H
#define QCUL_LATER_H

#ifndef QCUL_LATER_COMPARE
#include "qcu-library/link/link.h"
#define LATER(name) __asm__(#name) __attribute__((visibility("default")))
#else
#define LATER(name)
#endif

struct cudaExecutionContext_st;

/* ---- graphs ---- */

cudaError_t qcul_GraphGetId(cudaGraph_t graph, unsigned int *id) LATER(cudaGraphGetId);
cudaError_t qcul_GraphExecGetId(cudaGraphExec_t exec, unsigned int *id) LATER(cudaGraphExecGetId);
cudaError_t qcul_GraphNodeGetLocalId(cudaGraphNode_t node, unsigned int *id)
	LATER(cudaGraphNodeGetLocalId);
cudaError_t qcul_GraphNodeGetToolsId(cudaGraphNode_t node, unsigned long long *id)
	LATER(cudaGraphNodeGetToolsId);
cudaError_t qcul_GraphNodeGetContainingGraph(cudaGraphNode_t node, cudaGraph_t *graph)
	LATER(cudaGraphNodeGetContainingGraph);
cudaError_t qcul_GraphNodeGetParams(cudaGraphNode_t node, struct cudaGraphNodeParams *params)
	LATER(cudaGraphNodeGetParams);
cudaError_t qcul_GraphConditionalHandleCreate_v2(cudaGraphConditionalHandle *handle,
						 cudaGraph_t graph,
						 struct cudaExecutionContext_st *context,
						 unsigned int first, unsigned int flags)
	LATER(cudaGraphConditionalHandleCreate_v2);

/* ---- kernels, host functions and copies ---- */

cudaError_t qcul_FuncGetParamCount(const void *func, size_t *count) LATER(cudaFuncGetParamCount);
cudaError_t qcul_LaunchHostFunc_v2(cudaStream_t stream, cudaHostFn_t fn, void *data,
				   unsigned int mode) LATER(cudaLaunchHostFunc_v2);
cudaError_t qcul_LaunchHostFunc_v2_ptsz(cudaStream_t stream, cudaHostFn_t fn, void *data,
					unsigned int mode) LATER(cudaLaunchHostFunc_v2_ptsz);
cudaError_t qcul_MemcpyWithAttributesAsync(void *dst, const void *src, size_t size,
					   struct cudaMemcpyAttributes *attributes,
					   cudaStream_t stream)
	LATER(cudaMemcpyWithAttributesAsync);
cudaError_t qcul_MemcpyWithAttributesAsync_ptsz(void *dst, const void *src, size_t size,
						struct cudaMemcpyAttributes *attributes,
						cudaStream_t stream)
	LATER(cudaMemcpyWithAttributesAsync_ptsz);
cudaError_t qcul_Memcpy3DWithAttributesAsync(struct cudaMemcpy3DBatchOp *op,
					     unsigned long long flags, cudaStream_t stream)
	LATER(cudaMemcpy3DWithAttributesAsync);
cudaError_t qcul_Memcpy3DWithAttributesAsync_ptsz(struct cudaMemcpy3DBatchOp *op,
						  unsigned long long flags, cudaStream_t stream)
	LATER(cudaMemcpy3DWithAttributesAsync_ptsz);

/* ---- execution contexts ---- */

#if CUDART_VERSION < 13010
enum cudaDevResourceType { cudaDevResourceTypeInvalid, cudaDevResourceTypeSm };
#endif
struct cudaDevResource_st;
struct CUdevResourceDesc_st;

cudaError_t qcul_DeviceGetExecutionCtx(struct cudaExecutionContext_st **context, int device)
	LATER(cudaDeviceGetExecutionCtx);
cudaError_t qcul_ExecutionCtxGetDevice(int *device, struct cudaExecutionContext_st *context)
	LATER(cudaExecutionCtxGetDevice);
cudaError_t qcul_ExecutionCtxGetId(struct cudaExecutionContext_st *context, unsigned long long *id)
	LATER(cudaExecutionCtxGetId);
cudaError_t qcul_ExecutionCtxSynchronize(struct cudaExecutionContext_st *context)
	LATER(cudaExecutionCtxSynchronize);
cudaError_t qcul_ExecutionCtxStreamCreate(cudaStream_t *stream,
					  struct cudaExecutionContext_st *context,
					  unsigned int flags, int priority)
	LATER(cudaExecutionCtxStreamCreate);
cudaError_t qcul_ExecutionCtxDestroy(struct cudaExecutionContext_st *context)
	LATER(cudaExecutionCtxDestroy);
cudaError_t qcul_ExecutionCtxGetDevResource(struct cudaExecutionContext_st *context,
					    struct cudaDevResource_st *resource,
					    enum cudaDevResourceType type)
	LATER(cudaExecutionCtxGetDevResource);
cudaError_t qcul_ExecutionCtxRecordEvent(struct cudaExecutionContext_st *context, cudaEvent_t event)
	LATER(cudaExecutionCtxRecordEvent);
cudaError_t qcul_ExecutionCtxWaitEvent(struct cudaExecutionContext_st *context, cudaEvent_t event)
	LATER(cudaExecutionCtxWaitEvent);
cudaError_t qcul_DeviceGetDevResource(int device, struct cudaDevResource_st *resource,
				      enum cudaDevResourceType type)
	LATER(cudaDeviceGetDevResource);
cudaError_t qcul_DevSmResourceSplitByCount(struct cudaDevResource_st *result, unsigned int *groups,
					   const struct cudaDevResource_st *input,
					   struct cudaDevResource_st *rest, unsigned int flags,
					   unsigned int least) LATER(cudaDevSmResourceSplitByCount);
cudaError_t qcul_DevResourceGenerateDesc(struct CUdevResourceDesc_st **desc,
					 struct cudaDevResource_st *resources, unsigned int count)
	LATER(cudaDevResourceGenerateDesc);
cudaError_t qcul_GreenCtxCreate(struct cudaExecutionContext_st **context,
				struct CUdevResourceDesc_st *desc, int device, unsigned int flags)
	LATER(cudaGreenCtxCreate);
cudaError_t qcul_StreamGetDevResource(cudaStream_t stream, struct cudaDevResource_st *resource,
				      enum cudaDevResourceType type)
	LATER(cudaStreamGetDevResource);
cudaError_t qcul_StreamGetDevResource_ptsz(cudaStream_t stream, struct cudaDevResource_st *resource,
					   enum cudaDevResourceType type)
	LATER(cudaStreamGetDevResource_ptsz);

#endif
