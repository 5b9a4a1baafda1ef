// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Work in a stream that the program has made needs no current context: the stream belongs to one.
 * What has no stream, or a default stream, needs one.
 */
#include <pthread.h>

#include "driver.h"

#define N 1024

static CUstream stream;
static CUevent event, second;
static CUdeviceptr a, b;
static CUgraphExec exec;
static CUmemoryPool pool;
static unsigned int *pinned;
static unsigned int plain[N];
static int called;

static void CUDA_CB call(void *data)
{
	__atomic_fetch_add((int *)data, 1, __ATOMIC_SEQ_CST);
}

static void without()
{
	DEXPECT(cuMemcpyHtoD(a, plain, 4), CUDA_ERROR_INVALID_CONTEXT);
	DEXPECT(cuMemcpyDtoH(plain, a, 4), CUDA_ERROR_INVALID_CONTEXT);
	DEXPECT(cuMemcpyDtoD(b, a, 4), CUDA_ERROR_INVALID_CONTEXT);
	DEXPECT(cuMemcpy(b, a, 4), CUDA_ERROR_INVALID_CONTEXT);
	DEXPECT(cuMemsetD8(a, 1, 4), CUDA_ERROR_INVALID_CONTEXT);
	DEXPECT(cuMemcpyHtoDAsync(a, plain, 4, NULL), CUDA_ERROR_INVALID_CONTEXT);
	DEXPECT(cuMemsetD8Async(a, 1, 4, NULL), CUDA_ERROR_INVALID_CONTEXT);
	DEXPECT(cuGraphLaunch(exec, NULL), CUDA_ERROR_INVALID_CONTEXT);
}

static CUDA_MEMCPY3D rows(CUdeviceptr dst, CUdeviceptr src)
{
	CUDA_MEMCPY3D c = {};

	c.srcMemoryType = c.dstMemoryType = CU_MEMORYTYPE_DEVICE;
	c.srcDevice = src;
	c.dstDevice = dst;
	c.srcPitch = c.dstPitch = 64;
	c.WidthInBytes = 64;
	c.Height = N * 4 / 64;
	c.Depth = 1;
	return c;
}

static void copies()
{
	const CUDA_MEMCPY3D c3 = rows(a, b);
	CUDA_MEMCPY2D c2 = {};
	unsigned int i;

	for (i = 0; i < N; i++) {
		pinned[i] = i * 3;
		plain[i] = i * 5;
	}
	DCHECK(cuMemcpyHtoDAsync(a, pinned, N * 4, stream));
	DCHECK(cuMemcpyDtoDAsync(b, a, N * 4, stream));
	DCHECK(cuMemcpyDtoHAsync(pinned + N, b, N * 4, stream));
	DCHECK(cuMemcpyHtoDAsync(a, plain, N * 4, stream));
	DCHECK(cuMemcpyAsync(b, a, N * 4, stream));
	DCHECK(cuMemsetD32Async(a, 0, N, stream));
	DCHECK(cuMemcpy3DAsync(&c3, stream));
	DCHECK(cuMemsetD16Async(b, 0, N * 2, stream));
	c2.srcMemoryType = c2.dstMemoryType = CU_MEMORYTYPE_DEVICE;
	c2.srcDevice = a;
	c2.dstDevice = b;
	c2.srcPitch = c2.dstPitch = c2.WidthInBytes = 64;
	c2.Height = N * 4 / 64;
	DCHECK(cuMemcpy2DAsync(&c2, stream));
	DCHECK(cuMemsetD8Async(a, 7, 4, stream));
	DCHECK(cuMemcpyDtoHAsync(pinned, b, N * 4, stream));
	DCHECK(cuStreamSynchronize(stream));
	for (i = 0; i < N; i++)
		REQUIRE(pinned[i] == i * 5 && pinned[N + i] == i * 3, "%u: %u, %u", i, pinned[i],
			pinned[N + i]);
}

static void graph_and_values()
{
	DCHECK(cuMemsetD32Async(b, 0, N, stream));
	DCHECK(cuGraphUpload(exec, stream));
	DCHECK(cuGraphLaunch(exec, stream));
	DCHECK(cuStreamWriteValue32(stream, b + 4, 9, 0));
	DCHECK(cuStreamWaitValue32(stream, b + 4, 9, CU_STREAM_WAIT_VALUE_EQ));
	DCHECK(cuLaunchHostFunc(stream, call, &called));
	DCHECK(cuMemcpyDtoHAsync(pinned, b, N * 4, stream));
	DCHECK(cuStreamSynchronize(stream));
	REQUIRE(pinned[0] == 0x06060606 && pinned[1] == 9 && called == 1, "%x %u %d", pinned[0],
		pinned[1], called);
}

static void memory()
{
	CUdeviceptr ptr;

	DCHECK(cuMemAllocAsync(&ptr, 64, stream));
	DCHECK(cuMemsetD8Async(ptr, 3, 64, stream));
	DCHECK(cuMemcpyDtoHAsync(pinned, ptr, 64, stream));
	DCHECK(cuMemFreeAsync(ptr, stream));
	DCHECK(cuMemAllocFromPoolAsync(&ptr, 64, pool, stream));
	DCHECK(cuMemFreeAsync(ptr, stream));
	DCHECK(cuStreamSynchronize(stream));
	REQUIRE(pinned[15] == 0x03030303, "%x", pinned[15]);
}

static void questions()
{
	CUstreamCaptureStatus status;
	CUcontext context;
	CUgraph graph;
	unsigned long long id;
	unsigned int flags;
	int priority;
	float ms;

	DCHECK(cuStreamGetFlags(stream, &flags));
	REQUIRE(flags == CU_STREAM_NON_BLOCKING, "%u", flags);
	DCHECK(cuStreamGetPriority(stream, &priority));
	DCHECK(cuStreamGetId(stream, &id));
	DCHECK(cuStreamGetCtx(stream, &context));
	REQUIRE(context, "no context");
	DCHECK(cuEventRecord(event, stream));
	DCHECK(cuStreamWaitEvent(stream, event, 0));
	DCHECK(cuEventRecord(second, stream));
	DCHECK(cuEventSynchronize(second));
	DCHECK(cuEventElapsedTime(&ms, event, second));
	DCHECK(cuStreamIsCapturing(stream, &status));
	REQUIRE(status == CU_STREAM_CAPTURE_STATUS_NONE, "%d", status);
	DCHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
	DCHECK(cuMemsetD8Async(a, 1, 4, stream));
	DCHECK(cuStreamEndCapture(stream, &graph));
	DCHECK(cuGraphDestroy(graph));
}

static void *thread(void *)
{
	CUcontext context;

	DCHECK(cuCtxGetCurrent(&context));
	REQUIRE(!context, "the thread has a context");
	without();
	copies();
	graph_and_values();
	memory();
	questions();
	/* The thread has got none by all this. */
	DCHECK(cuCtxGetCurrent(&context));
	REQUIRE(!context, "the thread has a context");
	without();
	return NULL;
}

int main()
{
	CUDA_MEMSET_NODE_PARAMS params = {};
	CUcontext context;
	CUgraphNode node;
	CUgraph graph;
	pthread_t t;

	DCHECK(cuDeviceGetDefaultMemPool(&pool, driver_start()));
	DCHECK(cuCtxGetCurrent(&context));
	DCHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	DCHECK(cuEventCreate(&event, 0));
	DCHECK(cuEventCreate(&second, 0));
	DCHECK(cuMemAlloc(&a, N * 4));
	DCHECK(cuMemAlloc(&b, N * 4));
	DCHECK(cuMemAllocHost((void **)&pinned, 2 * N * 4));
	DCHECK(cuGraphCreate(&graph, 0));
	params.dst = b;
	params.value = 6;
	params.elementSize = 1;
	params.width = 4;
	params.height = 1;
	DCHECK(cuGraphAddMemsetNode(&node, graph, NULL, 0, &params, context));
	DCHECK(cuGraphInstantiate(&exec, graph, 0));
	REQUIRE(!pthread_create(&t, NULL, thread, NULL) && !pthread_join(t, NULL), "a thread");
	return verified("a thread without a context works in a stream");
}
