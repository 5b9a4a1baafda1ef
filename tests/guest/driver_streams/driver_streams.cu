// SPDX-License-Identifier: GPL-2.0-or-later
/* Streams and events: order, queries while a kernel waits for a flag, callbacks, and what a stream
 * says. */
#include "driver.h"

static volatile unsigned int *flag;
static int called;

static void CUDA_CB note(void *data)
{
	called += *(int *)data;
}

static void CUDA_CB stream_note(CUstream stream, CUresult result, void *data)
{
	REQUIRE(stream && !result, "%d", (int)result);
	called += *(int *)data;
}

static void queries(CUmodule module)
{
	CUfunction function = driver_function(module, "hold");
	CUstream stream, other;
	CUevent event, end;
	CUdeviceptr at;
	float ms;
	void *params[] = {&at};

	DCHECK(cuMemHostAlloc((void **)&flag, 4, CU_MEMHOSTALLOC_DEVICEMAP));
	*flag = 0;
	DCHECK(cuMemHostGetDevicePointer(&at, (void *)flag, 0));
	DCHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	DCHECK(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
	DCHECK(cuEventCreate(&event, CU_EVENT_DEFAULT));
	DCHECK(cuEventCreate(&end, CU_EVENT_DEFAULT));
	DCHECK(cuEventQuery(event));
	DCHECK(cuFuncLoad(function));
	DCHECK(cuEventRecord(event, stream));
	DCHECK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, params, NULL));
	DCHECK(cuEventRecord(end, stream));
	DCHECK(cuStreamWaitEvent(other, end, 0));
	DEXPECT(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
	DEXPECT(cuEventQuery(end), CUDA_ERROR_NOT_READY);
	DEXPECT(cuStreamQuery(other), CUDA_ERROR_NOT_READY);
	*flag = 1;
	DCHECK(cuStreamSynchronize(other));
	DCHECK(cuEventSynchronize(end));
	DCHECK(cuStreamQuery(stream));
	DCHECK(cuEventElapsedTime(&ms, event, end));
	REQUIRE(ms >= 0, "%f", ms);
	DCHECK(cuEventDestroy(event));
	ONLY_OURS(DEXPECT(cuEventQuery(event), CUDA_ERROR_INVALID_HANDLE));
	DCHECK(cuEventDestroy(end));
	DCHECK(cuStreamDestroy(stream));
	DCHECK(cuStreamDestroy(other));
	DCHECK(cuMemFreeHost((void *)flag));
}

static void callbacks(void)
{
	CUstream stream;
	int one = 1, ten = 10;

	DCHECK(cuStreamCreate(&stream, CU_STREAM_DEFAULT));
	DCHECK(cuLaunchHostFunc(stream, note, &one));
	DCHECK(cuStreamAddCallback(stream, stream_note, &ten, 0));
	DCHECK(cuStreamSynchronize(stream));
	REQUIRE(called == 11, "%d", called);
	DCHECK(cuStreamDestroy(stream));
}

static void properties(CUdevice device)
{
	CUcontext context, current;
	unsigned long long id, other_id;
	unsigned int flags;
	CUstream stream, other;
	int least, greatest, priority;
	CUdevice of;

	DCHECK(cuCtxGetStreamPriorityRange(&least, &greatest));
	REQUIRE(greatest <= least, "%d %d", least, greatest);
	DCHECK(cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, greatest));
	DCHECK(cuStreamCreate(&other, CU_STREAM_DEFAULT));
	DCHECK(cuStreamGetPriority(stream, &priority));
	REQUIRE(priority == greatest, "%d", priority);
	DCHECK(cuStreamGetFlags(stream, &flags));
	REQUIRE(flags == CU_STREAM_NON_BLOCKING, "%u", flags);
	DCHECK(cuStreamGetFlags(other, &flags));
	REQUIRE(flags == CU_STREAM_DEFAULT, "%u", flags);
	DCHECK(cuStreamGetId(stream, &id));
	DCHECK(cuStreamGetId(other, &other_id));
	REQUIRE(id != other_id, "%llu", id);
	DCHECK(cuStreamGetDevice(stream, &of));
	REQUIRE(of == device, "%d", of);
	DCHECK(cuCtxGetCurrent(&current));
	DCHECK(cuStreamGetCtx(stream, &context));
	REQUIRE(context == current, "another context");
	DCHECK(cuStreamGetCtx(NULL, &context));
	REQUIRE(context == current, "another context");
	DEXPECT(cuStreamCreate(&other, 0x10), CUDA_ERROR_INVALID_VALUE);
	DEXPECT(cuStreamCreate(NULL, 0), CUDA_ERROR_INVALID_VALUE);
	DEXPECT(cuEventCreate(NULL, 0), CUDA_ERROR_INVALID_VALUE);
	DCHECK(cuStreamDestroy(stream));
	DCHECK(cuStreamDestroy(other));
}

int main()
{
	CUdevice device = driver_start();
	CUmodule module = driver_module();

	queries(module);
	callbacks();
	properties(device);
	DCHECK(cuModuleUnload(module));
	return verified("streams and events");
}
