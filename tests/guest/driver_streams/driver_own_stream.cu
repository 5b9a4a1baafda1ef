// SPDX-License-Identifier: GPL-2.0-or-later
/* Programs whose default stream is the thread's own: names with _ptsz and _ptds. */
#define CUDA_API_PER_THREAD_DEFAULT_STREAM
#include <pthread.h>

#include "driver.h"

static CUmodule module;
static CUcontext context;
static volatile unsigned int *flag;

/* Work of this thread's stream goes on while the main thread's stream is held up. */
static void *other(void *unused)
{
	unsigned int n = 32, value = 5, got[32] = {};
	CUdeviceptr memory;
	void *params[] = {&memory, &n, &value};
	CUstreamCaptureStatus status;
	CUgraph graph;

	DCHECK(cuCtxSetCurrent(context));
	DCHECK(cuMemAllocAsync(&memory, sizeof(got), NULL));
	DCHECK(cuMemsetD32Async(memory, 1, 32, NULL));
	DCHECK(cuLaunchKernel(driver_function(module, "fill"), 1, 1, 1, 32, 1, 1, 0, NULL, params,
			      NULL));
	DCHECK(cuMemcpyDtoH(got, memory, sizeof(got)));
	REQUIRE(got[31] == 36, "%u", got[31]);
	REQUIRE(!*flag, "the other stream was not held up");
	/* The legacy stream cannot be captured, the thread's own can. */
	DCHECK(cuStreamBeginCapture(NULL, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
	DCHECK(cuMemsetD32Async(memory, 9, 1, NULL));
	DCHECK(cuStreamIsCapturing(NULL, &status));
	REQUIRE(status == CU_STREAM_CAPTURE_STATUS_ACTIVE, "%d", (int)status);
	DCHECK(cuStreamEndCapture(NULL, &graph));
	DCHECK(cuGraphDestroy(graph));
	DCHECK(cuMemFreeAsync(memory, NULL));
	DCHECK(cuStreamSynchronize(NULL));
	return unused;
}

int main()
{
	CUfunction hold;
	CUdeviceptr at;
	pthread_t thread;
	void *params[] = {&at};

	driver_start();
	DCHECK(cuCtxGetCurrent(&context));
	module = driver_module();
	hold = driver_function(module, "hold");
	DCHECK(cuFuncLoad(hold));
	DCHECK(cuFuncLoad(driver_function(module, "fill")));
	DCHECK(cuMemHostAlloc((void **)&flag, 4, CU_MEMHOSTALLOC_DEVICEMAP));
	*flag = 0;
	DCHECK(cuMemHostGetDevicePointer(&at, (void *)flag, 0));
	DCHECK(cuLaunchKernel(hold, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
	DEXPECT(cuStreamQuery(NULL), CUDA_ERROR_NOT_READY);
	REQUIRE(!pthread_create(&thread, NULL, other, NULL), "pthread_create");
	pthread_join(thread, NULL);
	DEXPECT(cuStreamQuery(NULL), CUDA_ERROR_NOT_READY);
	*flag = 1;
	DCHECK(cuStreamSynchronize(NULL));
	DCHECK(cuMemFreeHost((void *)flag));
	DCHECK(cuModuleUnload(module));
	return verified("each thread has a default stream of its own");
}
