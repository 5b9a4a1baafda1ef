// SPDX-License-Identifier: GPL-2.0-or-later
/* Contexts that are popped too often, pushed twice, set over others, and popped by another thread.
 */
#include <pthread.h>

#include "driver.h"

static CUcontext current(void)
{
	CUcontext context;

	DCHECK(cuCtxGetCurrent(&context));
	return context;
}

static void empty(void)
{
	CUcontext popped = NULL;
	CUdeviceptr memory;

	REQUIRE(!current(), "a context");
	DEXPECT(cuCtxPopCurrent(&popped), CUDA_ERROR_INVALID_CONTEXT);
	DEXPECT(cuCtxPopCurrent(NULL), CUDA_ERROR_INVALID_CONTEXT);
	DEXPECT(cuCtxPopCurrent(&popped), CUDA_ERROR_INVALID_CONTEXT);
	DEXPECT(cuMemAlloc(&memory, 4), CUDA_ERROR_INVALID_CONTEXT);
	DEXPECT(cuCtxPushCurrent(NULL), CUDA_ERROR_INVALID_VALUE);
}

/* What one thread has pushed, another one cannot pop. */
static void *other(void *context)
{
	CUcontext popped;

	empty();
	DCHECK(cuCtxPushCurrent((CUcontext)context));
	DCHECK(cuCtxPopCurrent(&popped));
	REQUIRE(popped == context, "popped another");
	empty();
	return NULL;
}

int main()
{
	CUcontext a, b, popped;
	CUdeviceptr memory;
	pthread_t thread;
	CUdevice device;
	int i;

	DCHECK(cuInit(0));
	DCHECK(cuDeviceGet(&device, 0));
	empty();
	DCHECK(cuCtxCreate(&a, NULL, 0, device));
	REQUIRE(!pthread_create(&thread, NULL, other, a), "pthread_create");
	pthread_join(thread, NULL);
	/* The same one many times, and each has to be popped. */
	for (i = 0; i < 100; i++)
		DCHECK(cuCtxPushCurrent(a));
	for (i = 0; i < 100; i++) {
		DCHECK(cuCtxPopCurrent(&popped));
		REQUIRE(popped == a && current() == a, "popped another");
	}
	/* Setting one replaces the top. Setting none pops it. */
	DCHECK(cuCtxCreate(&b, NULL, 0, device));
	DCHECK(cuCtxSetCurrent(a));
	DCHECK(cuCtxPopCurrent(&popped));
	REQUIRE(popped == a && current() == a, "b is still there");
	DCHECK(cuCtxSetCurrent(NULL));
	empty();
	DCHECK(cuCtxSetCurrent(NULL));
	empty();
	DCHECK(cuCtxPushCurrent(b));
	DCHECK(cuMemAlloc(&memory, 4));
	DCHECK(cuMemFree(memory));
	DCHECK(cuCtxDestroy(b));
	empty();
	DCHECK(cuCtxDestroy(a));
	empty();
	return verified("no context is popped that was not pushed");
}
