// SPDX-License-Identifier: GPL-2.0-or-later
/* What is freed, destroyed and unloaded in a thread that has no context, as Python's collector does it. */
#include <pthread.h>

#include "driver.h"

static CUdeviceptr memory, managed;
static CUmodule module;
static CUstream stream;
static CUevent event;
static void *pinned;

static void *end(void *)
{
	CUcontext context;

	DCHECK(cuCtxGetCurrent(&context));
	REQUIRE(!context, "a new thread has a context");
	DEXPECT(cuMemAlloc(&memory, 4), CUDA_ERROR_INVALID_CONTEXT);
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
	CUfunction function;
	pthread_t thread;
	void *params[3];
	unsigned int count = 4, value = 3;

	driver_start();
	module = driver_module();
	function = driver_function(module, "fill");
	DCHECK(cuMemAlloc(&memory, 4096));
	DCHECK(cuMemAllocManaged(&managed, 4096, CU_MEM_ATTACH_GLOBAL));
	DCHECK(cuMemAllocHost(&pinned, 4096));
	DCHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	DCHECK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
	params[0] = &memory;
	params[1] = &count;
	params[2] = &value;
	DCHECK(cuLaunchKernel(function, 1, 1, 1, 4, 1, 1, 0, stream, params, NULL));
	DCHECK(cuEventRecord(event, stream));
	REQUIRE(!pthread_create(&thread, NULL, end, NULL), "pthread_create");
	pthread_join(thread, NULL);
	DCHECK(cuCtxSynchronize());
	return verified("objects end in a thread without a context");
}
