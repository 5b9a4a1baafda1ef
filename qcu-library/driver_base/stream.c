// SPDX-License-Identifier: LGPL-2.1-or-later
/* Streams and events: what is not just the runtime's function. */
#include "qcu-library/driver_base/context.h"

CUresult cuStreamGetCtx(CUstream stream, CUcontext *context)
{
	struct qcul_green *green;
	int device;
	CUresult result = QCUL_RUNTIME(context ? cudaStreamGetDevice(stream, &device)
					       : cudaErrorInvalidValue);

	green = result ? NULL : qcul_green_of(stream);
	if (green)
		return cuCtxFromGreenCtx(context, (CUgreenCtx)green);
	if (!result)
		*context = qcul_driver_context_of(device);
	return result;
}

/* The context of a stream in a green one is the device's primary context. */
CUresult cuStreamGetCtx_v2(CUstream stream, CUcontext *context, CUgreenCtx *green)
{
	CUresult result = green ? cuStreamGetCtx(stream, context) : CUDA_ERROR_INVALID_VALUE;

	if (result)
		return result;
	*green = (CUgreenCtx)(*context)->green;
	if (*green)
		*context = qcul_driver_primary((*context)->device);
	return result;
}

CUresult cuStreamGetGreenCtx(CUstream stream, CUgreenCtx *green)
{
	int device;
	CUresult result =
		QCUL_RUNTIME(green ? cudaStreamGetDevice(stream, &device) : cudaErrorInvalidValue);

	if (!result)
		*green = (CUgreenCtx)qcul_green_of(stream);
	return result;
}

CUresult cuStreamCopyAttributes_ptsz(CUstream dst, CUstream src)
{
	return QCUL_RUNTIME(cudaStreamCopyAttributes(dst ? dst : cudaStreamPerThread,
						     src ? src : cudaStreamPerThread));
}

CUresult cuStreamBeginCapture(CUstream stream)
{
	return QCUL_RUNTIME(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
}

CUresult cuStreamGetCaptureInfo_v2(CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id,
				   CUgraph *graph, const CUgraphNode **dependencies, size_t *count)
{
	return QCUL_RUNTIME(cudaStreamGetCaptureInfo(stream, (enum cudaStreamCaptureStatus *)status,
						     (unsigned long long *)id, graph, dependencies,
						     NULL, count));
}

CUresult cuStreamGetCaptureInfo(CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id)
{
	return cuStreamGetCaptureInfo_v2(stream, status, id, NULL, NULL, NULL);
}

CUresult cuStreamUpdateCaptureDependencies(CUstream stream, CUgraphNode *dependencies, size_t count,
					   unsigned int flags)
{
	return QCUL_RUNTIME(
		cudaStreamUpdateCaptureDependencies(stream, dependencies, NULL, count, flags));
}

CUresult cuEventElapsedTime_v2(float *ms, CUevent start, CUevent end)
{
	float unused;
	CUresult result = QCUL_RUNTIME(cudaEventElapsedTime(ms ? ms : &unused, start, end));

	/* The events are looked at first. */
	return !result && !ms ? CUDA_ERROR_INVALID_VALUE : result;
}
