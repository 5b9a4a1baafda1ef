// SPDX-License-Identifier: LGPL-2.1-or-later
/* Streams and events: they are the runtime's. */
#include "qcu-library/driver_base/driver.h"

/* ---- streams ---- */

CUresult cuStreamCreate(CUstream *stream, unsigned int flags)
{
	return QCUL_RUNTIME(cudaStreamCreateWithFlags(stream, flags));
}

CUresult cuStreamCreateWithPriority(CUstream *stream, unsigned int flags, int priority)
{
	return QCUL_RUNTIME(cudaStreamCreateWithPriority(stream, flags, priority));
}

CUresult cuStreamDestroy_v2(CUstream stream)
{
	return QCUL_RUNTIME(cudaStreamDestroy(stream));
}

CUresult cuStreamQuery(CUstream stream)
{
	return QCUL_RUNTIME(cudaStreamQuery(stream));
}

CUresult cuStreamSynchronize(CUstream stream)
{
	return QCUL_RUNTIME(cudaStreamSynchronize(stream));
}

CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned int flags)
{
	return QCUL_RUNTIME(cudaStreamWaitEvent(stream, event, flags));
}

CUresult cuStreamGetPriority(CUstream stream, int *priority)
{
	return QCUL_RUNTIME(cudaStreamGetPriority(stream, priority));
}

CUresult cuStreamGetFlags(CUstream stream, unsigned int *flags)
{
	return QCUL_RUNTIME(cudaStreamGetFlags(stream, flags));
}

CUresult cuStreamGetId(CUstream stream, unsigned long long *id)
{
	return QCUL_RUNTIME(cudaStreamGetId(stream, id));
}

CUresult cuStreamGetDevice(CUstream stream, CUdevice *device)
{
	return QCUL_RUNTIME(cudaStreamGetDevice(stream, device));
}

CUresult cuStreamGetCtx(CUstream stream, CUcontext *context)
{
	int device;
	CUresult result = QCUL_RUNTIME(context ? cudaStreamGetDevice(stream, &device)
					       : cudaErrorInvalidValue);

	if (!result)
		*context = qcul_driver_context_of(device);
	return result;
}

/* No stream belongs to a green context. */
CUresult cuStreamGetCtx_v2(CUstream stream, CUcontext *context, CUgreenCtx *green)
{
	CUresult result = green ? cuStreamGetCtx(stream, context) : CUDA_ERROR_INVALID_VALUE;

	if (!result)
		*green = NULL;
	return result;
}

CUresult cuStreamGetGreenCtx(CUstream stream, CUgreenCtx *green)
{
	int device;
	CUresult result =
		QCUL_RUNTIME(green ? cudaStreamGetDevice(stream, &device) : cudaErrorInvalidValue);

	if (!result)
		*green = NULL;
	return result;
}

CUresult cuStreamAddCallback(CUstream stream, CUstreamCallback callback, void *data,
			     unsigned int flags)
{
	return QCUL_RUNTIME(
		cudaStreamAddCallback(stream, (cudaStreamCallback_t)(void *)callback, data, flags));
}

CUresult cuStreamAttachMemAsync(CUstream stream, CUdeviceptr address, size_t bytes,
				unsigned int flags)
{
	return QCUL_RUNTIME(
		cudaStreamAttachMemAsync(stream, qcul_driver_ptr(address), bytes, flags));
}

_Static_assert(sizeof(CUstreamAttrValue) == sizeof(cudaLaunchAttributeValue), "stream attributes");

CUresult cuStreamGetAttribute(CUstream stream, CUstreamAttrID which, CUstreamAttrValue *value)
{
	return QCUL_RUNTIME(cudaStreamGetAttribute(stream, (cudaLaunchAttributeID)which,
						   (cudaLaunchAttributeValue *)value));
}

CUresult cuStreamSetAttribute(CUstream stream, CUstreamAttrID which, const CUstreamAttrValue *value)
{
	return QCUL_RUNTIME(cudaStreamSetAttribute(stream, (cudaLaunchAttributeID)which,
						   (const cudaLaunchAttributeValue *)value));
}

CUresult cuStreamCopyAttributes(CUstream dst, CUstream src)
{
	return QCUL_RUNTIME(cudaStreamCopyAttributes(dst, src));
}

CUresult cuStreamCopyAttributes_ptsz(CUstream dst, CUstream src)
{
	return cuStreamCopyAttributes(dst ? dst : cudaStreamPerThread,
				      src ? src : cudaStreamPerThread);
}

/* ---- captures ---- */

CUresult cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode)
{
	return QCUL_RUNTIME(cudaStreamBeginCapture(stream, (enum cudaStreamCaptureMode)mode));
}

CUresult cuStreamBeginCapture(CUstream stream)
{
	return cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
}

CUresult cuStreamBeginCaptureToGraph(CUstream stream, CUgraph graph,
				     const CUgraphNode *dependencies, const CUgraphEdgeData *edges,
				     size_t count, CUstreamCaptureMode mode)
{
	return QCUL_RUNTIME(cudaStreamBeginCaptureToGraph(stream, graph, dependencies,
							  (const cudaGraphEdgeData *)edges, count,
							  (enum cudaStreamCaptureMode)mode));
}

CUresult cuStreamEndCapture(CUstream stream, CUgraph *graph)
{
	return QCUL_RUNTIME(cudaStreamEndCapture(stream, graph));
}

CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus *status)
{
	return QCUL_RUNTIME(cudaStreamIsCapturing(stream, (enum cudaStreamCaptureStatus *)status));
}

CUresult cuStreamGetCaptureInfo_v3(CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id,
				   CUgraph *graph, const CUgraphNode **dependencies,
				   const CUgraphEdgeData **edges, size_t *count)
{
	return QCUL_RUNTIME(cudaStreamGetCaptureInfo(stream, (enum cudaStreamCaptureStatus *)status,
						     (unsigned long long *)id, graph, dependencies,
						     (const cudaGraphEdgeData **)edges, count));
}

CUresult cuStreamGetCaptureInfo_v2(CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id,
				   CUgraph *graph, const CUgraphNode **dependencies, size_t *count)
{
	return cuStreamGetCaptureInfo_v3(stream, status, id, graph, dependencies, NULL, count);
}

CUresult cuStreamGetCaptureInfo(CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id)
{
	return cuStreamGetCaptureInfo_v3(stream, status, id, NULL, NULL, NULL, NULL);
}

CUresult cuStreamUpdateCaptureDependencies_v2(CUstream stream, CUgraphNode *dependencies,
					      const CUgraphEdgeData *edges, size_t count,
					      unsigned int flags)
{
	return QCUL_RUNTIME(cudaStreamUpdateCaptureDependencies(
		stream, dependencies, (const cudaGraphEdgeData *)edges, count, flags));
}

CUresult cuStreamUpdateCaptureDependencies(CUstream stream, CUgraphNode *dependencies, size_t count,
					   unsigned int flags)
{
	return cuStreamUpdateCaptureDependencies_v2(stream, dependencies, NULL, count, flags);
}

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode)
{
	return QCUL_RUNTIME(
		cudaThreadExchangeStreamCaptureMode((enum cudaStreamCaptureMode *)mode));
}

/* ---- events ---- */

CUresult cuEventCreate(CUevent *event, unsigned int flags)
{
	return QCUL_RUNTIME(cudaEventCreateWithFlags(event, flags));
}

CUresult cuEventDestroy_v2(CUevent event)
{
	return QCUL_RUNTIME(cudaEventDestroy(event));
}

CUresult cuEventRecord(CUevent event, CUstream stream)
{
	return QCUL_RUNTIME(cudaEventRecord(event, stream));
}

CUresult cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned int flags)
{
	return QCUL_RUNTIME(cudaEventRecordWithFlags(event, stream, flags));
}

CUresult cuEventQuery(CUevent event)
{
	return QCUL_RUNTIME(cudaEventQuery(event));
}

CUresult cuEventSynchronize(CUevent event)
{
	return QCUL_RUNTIME(cudaEventSynchronize(event));
}

CUresult cuEventElapsedTime_v2(float *ms, CUevent start, CUevent end)
{
	float unused;
	CUresult result = QCUL_RUNTIME(cudaEventElapsedTime(ms ? ms : &unused, start, end));

	/* The events are looked at first. */
	return !result && !ms ? CUDA_ERROR_INVALID_VALUE : result;
}
