// SPDX-License-Identifier: GPL-2.0-or-later
/* A module is unloaded while its kernel runs and more of its kernels are queued: all of them are
 * done. */
#include <pthread.h>

#include "driver.h"

#define N 256

static CUmodule module;
static CUcontext context;

static void *unload(void *)
{
	DCHECK(cuCtxSetCurrent(context));
	DCHECK(cuModuleUnload(module));
	return NULL;
}

int main()
{
	unsigned int count = N, value = 9, got[N], i;
	volatile unsigned int *flag;
	CUfunction hold, fill;
	CUdeviceptr at, memory;
	CUmodule other;
	CUstream stream;
	pthread_t thread;
	void *hold_params[] = {&at}, *fill_params[] = {&memory, &count, &value};

	driver_start();
	DCHECK(cuCtxGetCurrent(&context));
	module = driver_module();
	hold = driver_function(module, "hold");
	fill = driver_function(module, "fill");
	DCHECK(cuFuncLoad(hold));
	DCHECK(cuFuncLoad(fill));
	DCHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	DCHECK(cuMemHostAlloc((void **)&flag, 4, CU_MEMHOSTALLOC_DEVICEMAP));
	*flag = 0;
	DCHECK(cuMemHostGetDevicePointer(&at, (void *)flag, 0));
	DCHECK(cuMemAlloc(&memory, sizeof(got)));
	DCHECK(cuMemsetD32(memory, 0, N));
	DCHECK(cuCtxSynchronize());
	DCHECK(cuLaunchKernel(hold, 1, 1, 1, 1, 1, 1, 0, stream, hold_params, NULL));
	DCHECK(cuLaunchKernel(fill, 1, 1, 1, N, 1, 1, 0, stream, fill_params, NULL));
	DEXPECT(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
	/* Whether it waits for the kernels or not, they see their code to the end. */
	REQUIRE(!pthread_create(&thread, NULL, unload, NULL), "pthread_create");
	*flag = 1;
	pthread_join(thread, NULL);
	DCHECK(cuStreamSynchronize(stream));
	DCHECK(cuMemcpyDtoH(got, memory, sizeof(got)));
	for (i = 0; i < N; i++)
		REQUIRE(got[i] == 9 + i, "%u: %u", i, got[i]);
	/* The context is as it was. */
	other = driver_module();
	value = 100;
	DCHECK(cuLaunchKernel(driver_function(other, "fill"), 1, 1, 1, N, 1, 1, 0, stream,
			      fill_params, NULL));
	DCHECK(cuStreamSynchronize(stream));
	DCHECK(cuMemcpyDtoH(got, memory, sizeof(got)));
	REQUIRE(got[0] == 100 && got[N - 1] == 100 + N - 1, "%u %u", got[0], got[N - 1]);
	DCHECK(cuModuleUnload(other));
	DCHECK(cuStreamDestroy(stream));
	DCHECK(cuMemFree(memory));
	DCHECK(cuMemFreeHost((void *)flag));
	return verified("a module is unloaded while its kernels run");
}
