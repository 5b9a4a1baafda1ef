// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The function names that a program calls if it was compiled with --default-stream per-thread. They
 * do the same, but stream 0 means the calling thread's own default stream. (The _ptds variants have
 * no stream argument. They stand next to the functions that they vary.)
 */
#include "qcu-library/graph/graph.h"

cudaError_t cudaMemcpyAsync_ptsz(void *dst, const void *src, size_t count, enum cudaMemcpyKind kind,
				 cudaStream_t stream)
{
	return cudaMemcpyAsync(dst, src, count, kind, qcul_stream_or_own(stream));
}

cudaError_t cudaMemcpy2DAsync_ptsz(void *dst, size_t dpitch, const void *src, size_t spitch,
				   size_t width, size_t height, enum cudaMemcpyKind kind,
				   cudaStream_t stream)
{
	return cudaMemcpy2DAsync(dst, dpitch, src, spitch, width, height, kind,
				 qcul_stream_or_own(stream));
}

cudaError_t cudaMemcpy3DAsync_ptsz(const struct cudaMemcpy3DParms *p, cudaStream_t stream)
{
	return cudaMemcpy3DAsync(p, qcul_stream_or_own(stream));
}

cudaError_t cudaMemcpyToSymbolAsync_ptsz(const void *symbol, const void *src, size_t count,
					 size_t offset, enum cudaMemcpyKind kind,
					 cudaStream_t stream)
{
	return cudaMemcpyToSymbolAsync(symbol, src, count, offset, kind,
				       qcul_stream_or_own(stream));
}

cudaError_t cudaMemcpyFromSymbolAsync_ptsz(void *dst, const void *symbol, size_t count,
					   size_t offset, enum cudaMemcpyKind kind,
					   cudaStream_t stream)
{
	return cudaMemcpyFromSymbolAsync(dst, symbol, count, offset, kind,
					 qcul_stream_or_own(stream));
}

cudaError_t cudaMemsetAsync_ptsz(void *dst, int value, size_t count, cudaStream_t stream)
{
	return cudaMemsetAsync(dst, value, count, qcul_stream_or_own(stream));
}

cudaError_t cudaMemset2DAsync_ptsz(void *dst, size_t pitch, int value, size_t width, size_t height,
				   cudaStream_t stream)
{
	return cudaMemset2DAsync(dst, pitch, value, width, height, qcul_stream_or_own(stream));
}

cudaError_t cudaMemset3DAsync_ptsz(struct cudaPitchedPtr to, int value, struct cudaExtent extent,
				   cudaStream_t stream)
{
	return cudaMemset3DAsync(to, value, extent, qcul_stream_or_own(stream));
}

cudaError_t cudaStreamQuery_ptsz(cudaStream_t stream)
{
	return cudaStreamQuery(qcul_stream_or_own(stream));
}

cudaError_t cudaStreamSynchronize_ptsz(cudaStream_t stream)
{
	return cudaStreamSynchronize(qcul_stream_or_own(stream));
}

cudaError_t cudaStreamWaitEvent_ptsz(cudaStream_t stream, cudaEvent_t event, unsigned int flags)
{
	return cudaStreamWaitEvent(qcul_stream_or_own(stream), event, flags);
}

cudaError_t cudaStreamGetFlags_ptsz(cudaStream_t stream, unsigned int *flags)
{
	return cudaStreamGetFlags(qcul_stream_or_own(stream), flags);
}

cudaError_t cudaStreamGetPriority_ptsz(cudaStream_t stream, int *priority)
{
	return cudaStreamGetPriority(qcul_stream_or_own(stream), priority);
}

cudaError_t cudaStreamGetDevice_ptsz(cudaStream_t stream, int *device)
{
	return cudaStreamGetDevice(qcul_stream_or_own(stream), device);
}

cudaError_t cudaStreamGetId_ptsz(cudaStream_t stream, unsigned long long *number)
{
	return cudaStreamGetId(qcul_stream_or_own(stream), number);
}

cudaError_t cudaStreamIsCapturing_ptsz(cudaStream_t stream, enum cudaStreamCaptureStatus *status)
{
	return cudaStreamIsCapturing(qcul_stream_or_own(stream), status);
}

cudaError_t cudaStreamGetCaptureInfo_ptsz(cudaStream_t stream, enum cudaStreamCaptureStatus *status,
					  unsigned long long *number, cudaGraph_t *graph,
					  const cudaGraphNode_t **dependencies,
					  const cudaGraphEdgeData **edges, size_t *count)
{
	return cudaStreamGetCaptureInfo(qcul_stream_or_own(stream), status, number, graph,
					dependencies, edges, count);
}

cudaError_t cudaEventRecord_ptsz(cudaEvent_t event, cudaStream_t stream)
{
	return cudaEventRecord(event, qcul_stream_or_own(stream));
}

cudaError_t cudaEventRecordWithFlags_ptsz(cudaEvent_t event, cudaStream_t stream,
					  unsigned int flags)
{
	return cudaEventRecordWithFlags(event, qcul_stream_or_own(stream), flags);
}

cudaError_t cudaLaunchKernel_ptsz(const void *func, dim3 grid, dim3 block, void **args,
				  size_t shared, cudaStream_t stream)
{
	return cudaLaunchKernel(func, grid, block, args, shared, qcul_stream_or_own(stream));
}

cudaError_t __cudaLaunchKernel_ptsz(cudaKernel_t kernel, dim3 grid, dim3 block, void **args,
				    size_t shared, cudaStream_t stream)
{
	return __cudaLaunchKernel(kernel, grid, block, args, shared, qcul_stream_or_own(stream));
}

cudaError_t cudaLaunchCooperativeKernel_ptsz(const void *func, dim3 grid, dim3 block, void **args,
					     size_t shared, cudaStream_t stream)
{
	return cudaLaunchCooperativeKernel(func, grid, block, args, shared,
					   qcul_stream_or_own(stream));
}

cudaError_t cudaLaunchKernelExC_ptsz(const cudaLaunchConfig_t *config, const void *func,
				     void **args)
{
	cudaLaunchConfig_t mine;

	if (!config)
		return qcul_done(cudaErrorInvalidValue);
	mine = *config;
	mine.stream = qcul_stream_or_own(mine.stream);
	return cudaLaunchKernelExC(&mine, func, args);
}

cudaError_t cudaLaunchHostFunc_ptsz(cudaStream_t stream, cudaHostFn_t fn, void *data)
{
	return cudaLaunchHostFunc(qcul_stream_or_own(stream), fn, data);
}

cudaError_t cudaStreamAddCallback_ptsz(cudaStream_t stream, cudaStreamCallback_t callback,
				       void *data, unsigned int flags)
{
	return cudaStreamAddCallback(qcul_stream_or_own(stream), callback, data, flags);
}

cudaError_t cudaStreamBeginCapture_ptsz(cudaStream_t stream, enum cudaStreamCaptureMode mode)
{
	return cudaStreamBeginCapture(qcul_stream_or_own(stream), mode);
}

cudaError_t cudaStreamBeginCaptureToGraph_ptsz(cudaStream_t stream, cudaGraph_t graph,
					       const cudaGraphNode_t *deps,
					       const cudaGraphEdgeData *data, size_t count,
					       enum cudaStreamCaptureMode mode)
{
	return cudaStreamBeginCaptureToGraph(qcul_stream_or_own(stream), graph, deps, data, count,
					     mode);
}

cudaError_t cudaStreamEndCapture_ptsz(cudaStream_t stream, cudaGraph_t *graph)
{
	return cudaStreamEndCapture(qcul_stream_or_own(stream), graph);
}

cudaError_t cudaStreamUpdateCaptureDependencies_ptsz(cudaStream_t stream, cudaGraphNode_t *deps,
						     const cudaGraphEdgeData *data, size_t count,
						     unsigned int flags)
{
	return cudaStreamUpdateCaptureDependencies(qcul_stream_or_own(stream), deps, data, count,
						   flags);
}

cudaError_t cudaGraphInstantiateWithParams_ptsz(cudaGraphExec_t *exec, cudaGraph_t graph,
						cudaGraphInstantiateParams *params)
{
	return cudaGraphInstantiateWithParams(exec, graph, params);
}

cudaError_t cudaGraphUpload_ptsz(cudaGraphExec_t exec, cudaStream_t stream)
{
	return cudaGraphUpload(exec, qcul_stream_or_own(stream));
}

cudaError_t cudaGraphLaunch_ptsz(cudaGraphExec_t exec, cudaStream_t stream)
{
	return cudaGraphLaunch(exec, qcul_stream_or_own(stream));
}

cudaError_t cudaMallocAsync_ptsz(void **ptr, size_t size, cudaStream_t stream)
{
	return cudaMallocAsync(ptr, size, qcul_stream_or_own(stream));
}

cudaError_t cudaMallocFromPoolAsync_ptsz(void **ptr, size_t size, cudaMemPool_t pool,
					 cudaStream_t stream)
{
	return cudaMallocFromPoolAsync(ptr, size, pool, qcul_stream_or_own(stream));
}

cudaError_t cudaFreeAsync_ptsz(void *ptr, cudaStream_t stream)
{
	return cudaFreeAsync(ptr, qcul_stream_or_own(stream));
}

cudaError_t cudaMemPrefetchAsync_ptsz(const void *ptr, size_t len, struct cudaMemLocation location,
				      unsigned int flags, cudaStream_t stream)
{
	return cudaMemPrefetchAsync(ptr, len, location, flags, qcul_stream_or_own(stream));
}

cudaError_t cudaMemPrefetchBatchAsync_ptsz(void **ptrs, size_t *sizes, size_t n,
					   struct cudaMemLocation *locations, size_t *first,
					   size_t location_count, unsigned long long flags,
					   cudaStream_t stream)
{
	return cudaMemPrefetchBatchAsync(ptrs, sizes, n, locations, first, location_count, flags,
					 qcul_stream_or_own(stream));
}

cudaError_t cudaMemDiscardBatchAsync_ptsz(void **ptrs, size_t *sizes, size_t n,
					  unsigned long long flags, cudaStream_t stream)
{
	return cudaMemDiscardBatchAsync(ptrs, sizes, n, flags, qcul_stream_or_own(stream));
}

cudaError_t cudaMemDiscardAndPrefetchBatchAsync_ptsz(void **ptrs, size_t *sizes, size_t n,
						     struct cudaMemLocation *locations,
						     size_t *first, size_t location_count,
						     unsigned long long flags, cudaStream_t stream)
{
	return cudaMemDiscardAndPrefetchBatchAsync(ptrs, sizes, n, locations, first, location_count,
						   flags, qcul_stream_or_own(stream));
}

cudaError_t cudaStreamAttachMemAsync_ptsz(cudaStream_t stream, void *ptr, size_t len,
					  unsigned int flags)
{
	return cudaStreamAttachMemAsync(qcul_stream_or_own(stream), ptr, len, flags);
}

cudaError_t cudaStreamSetAttribute_ptsz(cudaStream_t stream, cudaStreamAttrID attr,
					const cudaStreamAttrValue *value)
{
	return cudaStreamSetAttribute(qcul_stream_or_own(stream), attr, value);
}

cudaError_t cudaStreamGetAttribute_ptsz(cudaStream_t stream, cudaStreamAttrID attr,
					cudaStreamAttrValue *value)
{
	return cudaStreamGetAttribute(qcul_stream_or_own(stream), attr, value);
}

cudaError_t cudaStreamCopyAttributes_ptsz(cudaStream_t to, cudaStream_t from)
{
	return cudaStreamCopyAttributes(qcul_stream_or_own(to), qcul_stream_or_own(from));
}

cudaError_t cudaMemcpyBatchAsync_ptsz(void *const *dsts, const void *const *srcs,
				      const size_t *sizes, size_t count,
				      struct cudaMemcpyAttributes *attrs, size_t *first, size_t n,
				      cudaStream_t stream)
{
	return cudaMemcpyBatchAsync(dsts, srcs, sizes, count, attrs, first, n,
				    qcul_stream_or_own(stream));
}

cudaError_t cudaMemcpy3DBatchAsync_ptsz(size_t count, struct cudaMemcpy3DBatchOp *ops,
					unsigned long long flags, cudaStream_t stream)
{
	return cudaMemcpy3DBatchAsync(count, ops, flags, qcul_stream_or_own(stream));
}

cudaError_t cudaMemcpy3DPeerAsync_ptsz(const struct cudaMemcpy3DPeerParms *p, cudaStream_t stream)
{
	return cudaMemcpy3DPeerAsync(p, qcul_stream_or_own(stream));
}
