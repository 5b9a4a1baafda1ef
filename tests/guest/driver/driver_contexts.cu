// SPDX-License-Identifier: GPL-2.0-or-later
/* The stack of contexts of each thread, contexts that a program makes, and wrong ones. */
#include <pthread.h>

#include "driver.h"

static CUcontext current(void)
{
	CUcontext context;

	DCHECK(cuCtxGetCurrent(&context));
	return context;
}

static void primary(CUdevice device)
{
	CUcontext context, again, popped;
	unsigned int flags;
	int active;
	CUdevice of;

	DCHECK(cuDevicePrimaryCtxGetState(device, &flags, &active));
	REQUIRE(!active, "the context is in use at the start");
	REQUIRE(!current(), "a context at the start");
	DEXPECT(cuCtxGetDevice(&of), CUDA_ERROR_INVALID_CONTEXT);
	DEXPECT(cuCtxPopCurrent(&popped), CUDA_ERROR_INVALID_CONTEXT);
	DEXPECT(cuCtxSynchronize(), CUDA_ERROR_INVALID_CONTEXT);
	DCHECK(cuDevicePrimaryCtxRetain(&context, device));
	DCHECK(cuDevicePrimaryCtxRetain(&again, device));
	REQUIRE(context == again, "two primary contexts");
	REQUIRE(!current(), "retaining makes no context current");
	DCHECK(cuDevicePrimaryCtxGetState(device, &flags, &active));
	REQUIRE(active, "not in use");
	DCHECK(cuDevicePrimaryCtxRelease(device));
	DCHECK(cuCtxPushCurrent(context));
	REQUIRE(current() == context, "not current");
	DCHECK(cuCtxGetDevice(&of));
	REQUIRE(of == device, "%d", of);
	DCHECK(cuCtxPushCurrent(context));
	DCHECK(cuCtxPopCurrent(&popped));
	REQUIRE(popped == context && current() == context, "popped another");
	DCHECK(cuCtxPopCurrent(NULL));
	REQUIRE(!current(), "not empty");
	DCHECK(cuCtxSetCurrent(context));
	REQUIRE(current() == context, "not current");
	DCHECK(cuCtxSetCurrent(NULL));
	REQUIRE(!current(), "not empty");
	DCHECK(cuDevicePrimaryCtxRelease(device));
	DCHECK(cuDevicePrimaryCtxGetState(device, &flags, &active));
	REQUIRE(!active, "still in use");
	DEXPECT(cuDevicePrimaryCtxRelease(device), CUDA_ERROR_INVALID_CONTEXT);
	DEXPECT(cuDevicePrimaryCtxRetain(&context, 1000), CUDA_ERROR_INVALID_DEVICE);
	DEXPECT(cuDevicePrimaryCtxRetain(NULL, device), CUDA_ERROR_INVALID_VALUE);
}

static void *other_thread(void *context)
{
	REQUIRE(!current(), "a new thread has a context");
	DCHECK(cuCtxSetCurrent((CUcontext)context));
	REQUIRE(current() == context, "not current");
	return NULL;
}

static void made(CUdevice device)
{
	CUcontext a, b, popped;
	unsigned long long ida, idb;
	unsigned int flags, version;
	CUdeviceptr memory;
	pthread_t thread;

	DCHECK(cuCtxCreate(&a, NULL, CU_CTX_SCHED_BLOCKING_SYNC, device));
	REQUIRE(current() == a, "not current");
	DCHECK(cuCtxGetFlags(&flags));
	REQUIRE((flags & CU_CTX_SCHED_MASK) == CU_CTX_SCHED_BLOCKING_SYNC, "%x", flags);
	DCHECK(cuCtxGetApiVersion(a, &version));
	REQUIRE(version >= 3020, "%u", version);
	DCHECK(cuCtxCreate(&b, NULL, 0, device));
	REQUIRE(a != b && current() == b, "not current");
	DCHECK(cuCtxGetId(a, &ida));
	DCHECK(cuCtxGetId(b, &idb));
	REQUIRE(ida != idb, "%llu", ida);
	DCHECK(cuMemAlloc(&memory, 1000));
	DCHECK(cuMemFree(memory));
	REQUIRE(!pthread_create(&thread, NULL, other_thread, a), "pthread_create");
	pthread_join(thread, NULL);
	DCHECK(cuCtxDestroy(b));
	REQUIRE(current() == a, "the one below is not current");
	DEXPECT(cuCtxCreate(&b, NULL, 0x1000, device), CUDA_ERROR_INVALID_VALUE);
	DEXPECT(cuCtxCreate(NULL, NULL, 0, device), CUDA_ERROR_INVALID_VALUE);
	DEXPECT(cuCtxCreate(&b, NULL, 0, 1000), CUDA_ERROR_INVALID_DEVICE);
	DEXPECT(cuCtxDestroy(NULL), CUDA_ERROR_INVALID_VALUE);
	DCHECK(cuCtxPopCurrent(&popped));
	REQUIRE(popped == a, "popped another");
	DCHECK(cuCtxDestroy(a));
	REQUIRE(!current(), "not empty");
}

int main()
{
	CUdevice device;

	DCHECK(cuInit(0));
	DCHECK(cuDeviceGet(&device, 0));
	primary(device);
	made(device);
	DEXPECT(cuCtxGetCurrent(NULL), CUDA_ERROR_INVALID_VALUE);
	return verified("each thread has its stack of contexts");
}
