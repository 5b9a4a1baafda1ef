// SPDX-License-Identifier: GPL-2.0-or-later
/* A context is destroyed by another thread while its own has work under way: the work is done
 * first. */
#include <pthread.h>

#include "driver.h"

static CUcontext context;
static volatile unsigned int *flag;

static void *destroy(void *)
{
	DCHECK(cuCtxDestroy(context));
	return NULL;
}

int main()
{
	CUdevice device = driver_start();
	CUcontext primary, popped;
	CUfunction hold, fill;
	unsigned int count = 1, value = 77, word = 0;
	CUdeviceptr at, memory;
	CUmodule module;
	pthread_t thread;
	void *hold_params[] = {&at}, *fill_params[] = {&memory, &count, &value};

	DCHECK(cuCtxGetCurrent(&primary));
	/* Memory and code of the primary context, which stays. */
	DCHECK(cuMemHostAlloc((void **)&flag, 4,
			      CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP));
	*flag = 0;
	module = driver_module();
	hold = driver_function(module, "hold");
	fill = driver_function(module, "fill");
	DCHECK(cuFuncLoad(hold));
	DCHECK(cuFuncLoad(fill));
	DCHECK(cuMemHostGetDevicePointer(&at, (void *)flag, 0));
	DCHECK(cuMemAlloc(&memory, 4));
	DCHECK(cuLaunchKernel(hold, 1, 1, 1, 1, 1, 1, 0, NULL, hold_params, NULL));
	DCHECK(cuLaunchKernel(fill, 1, 1, 1, 1, 1, 1, 0, NULL, fill_params, NULL));
	DCHECK(cuCtxCreate(&context, NULL, 0, device));
	REQUIRE(!pthread_create(&thread, NULL, destroy, NULL), "pthread_create");
	*flag = 1;
	pthread_join(thread, NULL);
	/* It is still on this thread's stack. */
	DEXPECT(cuCtxSynchronize(), CUDA_ERROR_CONTEXT_IS_DESTROYED);
	DEXPECT(cuMemcpyDtoH(&word, memory, 4), CUDA_ERROR_CONTEXT_IS_DESTROYED);
	DCHECK(cuCtxPopCurrent(&popped));
	REQUIRE(popped == context, "popped another");
	DCHECK(cuCtxSynchronize());
	DCHECK(cuMemcpyDtoH(&word, memory, 4));
	REQUIRE(word == 77, "%u", word);
	DCHECK(cuMemFree(memory));
	DCHECK(cuModuleUnload(module));
	DCHECK(cuMemFreeHost((void *)flag));
	return verified("a context is destroyed by another thread");
}
