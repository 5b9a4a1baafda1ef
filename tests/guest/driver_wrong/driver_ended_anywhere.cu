// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A thread that has no context: work in a stream, and what is freed, destroyed and unloaded, as Python's
 * collector does it.
 */
#include <pthread.h>

#include "driver.h"

static CUdeviceptr memory, managed;
static CUmodule module;
static CUstream stream;
static CUevent event;
static void *pinned;

static CUfunction fill;

/* A stream says itself where it belongs. */
static void work(void)
{
	unsigned int count = 4, value = 7;
	void *params[] = {&memory, &count, &value};

	DCHECK(cuLaunchKernel(fill, 1, 1, 1, 4, 1, 1, 0, stream, params, NULL));
	DCHECK(cuEventRecord(event, stream));
	DCHECK(cuEventSynchronize(event));
	DCHECK(cuEventQuery(event));
	DCHECK(cuStreamSynchronize(stream));
	DCHECK(cuStreamQuery(stream));
}

static void *end(void *)
{
	CUcontext context;

	DCHECK(cuCtxGetCurrent(&context));
	REQUIRE(!context, "a new thread has a context");
	DEXPECT(cuCtxSynchronize(), CUDA_ERROR_INVALID_CONTEXT);
	work();
	DCHECK(cuMemFree(memory));
	DCHECK(cuMemFree(managed));
	DCHECK(cuMemFreeHost(pinned));
	DCHECK(cuEventDestroy(event));
	DCHECK(cuStreamDestroy(stream));
	DCHECK(cuModuleUnload(module));
	DEXPECT(cuMemFree(memory), CUDA_ERROR_INVALID_VALUE);
	DCHECK(cuCtxGetCurrent(&context));
	REQUIRE(!context, "now there is one");
	return NULL;
}

int main()
{
	pthread_t thread;

	driver_start();
	module = driver_module();
	fill = driver_function(module, "fill");
	DCHECK(cuMemAlloc(&memory, 4096));
	DCHECK(cuMemAllocManaged(&managed, 4096, CU_MEM_ATTACH_GLOBAL));
	DCHECK(cuMemAllocHost(&pinned, 4096));
	DCHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	DCHECK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
	REQUIRE(!pthread_create(&thread, NULL, end, NULL), "pthread_create");
	pthread_join(thread, NULL);
	DCHECK(cuCtxSynchronize());
	return verified("work in a stream, and the end of objects, in a thread without a context");
}
