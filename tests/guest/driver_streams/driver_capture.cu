// SPDX-License-Identifier: GPL-2.0-or-later
/* Captures: what a stream says meanwhile, dependencies that are changed, and captures that go wrong. */
#include "driver.h"

int main()
{
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
	CUstreamCaptureStatus status;
	const CUgraphNode *after;
	CUgraphNode nodes[4];
	CUdeviceptr memory, other;
	CUgraph graph, seen;
	CUstream stream, joined;
	CUevent event;
	cuuint64_t id = 0;
	size_t count;

	driver_start();
	DCHECK(cuMemAlloc(&memory, 100));
	DCHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	DCHECK(cuStreamCreate(&joined, CU_STREAM_NON_BLOCKING));
	DCHECK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
	DEXPECT(cuStreamEndCapture(stream, &graph), CUDA_ERROR_ILLEGAL_STATE);
	DEXPECT(cuStreamBeginCapture(NULL, CU_STREAM_CAPTURE_MODE_GLOBAL),
		CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	DCHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
	DCHECK(cuMemsetD8Async(memory, 1, 100, stream));
	DCHECK(cuStreamGetCaptureInfo(stream, &status, &id, &seen, &after, NULL, &count));
	REQUIRE(status == CU_STREAM_CAPTURE_STATUS_ACTIVE && id && seen && count == 1, "%zu", count);
	nodes[0] = after[0];
	DCHECK(cuEventRecord(event, stream));
	DCHECK(cuStreamWaitEvent(joined, event, 0));
	DCHECK(cuMemsetD8Async(memory + 10, 2, 10, joined));
	DCHECK(cuStreamIsCapturing(joined, &status));
	REQUIRE(status == CU_STREAM_CAPTURE_STATUS_ACTIVE, "%d", (int)status);
	DCHECK(cuEventRecord(event, joined));
	DCHECK(cuStreamWaitEvent(stream, event, 0));
	DCHECK(cuStreamUpdateCaptureDependencies(stream, nodes, NULL, 1,
						 CU_STREAM_ADD_CAPTURE_DEPENDENCIES));
	DCHECK(cuStreamEndCapture(stream, &graph));
	count = 4;
	DCHECK(cuGraphGetNodes(graph, nodes, &count));
	REQUIRE(count == 2, "%zu nodes", count);
	DCHECK(cuGraphDestroy(graph));
	/* An allocation is not allowed in the strictest mode. */
	DCHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
	DEXPECT(cuMemAlloc(&other, 100), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	DEXPECT(cuStreamEndCapture(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
	DCHECK(cuThreadExchangeStreamCaptureMode(&mode));
	REQUIRE(mode == CU_STREAM_CAPTURE_MODE_GLOBAL, "%d", (int)mode);
	DCHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
	DCHECK(cuMemAlloc(&other, 100));
	DCHECK(cuStreamEndCapture(stream, &graph));
	DCHECK(cuThreadExchangeStreamCaptureMode(&mode));
	REQUIRE(mode == CU_STREAM_CAPTURE_MODE_RELAXED, "%d", (int)mode);
	DCHECK(cuGraphDestroy(graph));
	DCHECK(cuMemFree(other));
	DCHECK(cuMemFree(memory));
	DCHECK(cuEventDestroy(event));
	DCHECK(cuStreamDestroy(stream));
	DCHECK(cuStreamDestroy(joined));
	return verified("captures");
}
