// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What belongs to one device, used with another: streams, events, memory, functions, contexts. With
 * one device, the test only checks what the calls return about a second one.
 */
#include "driver.h"

static CUcontext contexts[2];
static CUmodule modules[2];
static CUstream streams[2];
static CUdeviceptr memory[2];

static void use(int device)
{
	DCHECK(cuCtxSetCurrent(contexts[device]));
}

static int one_device(void)
{
	CUcontext context;
	CUdevice device;
	int can;

	DEXPECT(cuDeviceGet(&device, 1), CUDA_ERROR_INVALID_DEVICE);
	DEXPECT(cuDevicePrimaryCtxRetain(&context, 1), CUDA_ERROR_INVALID_DEVICE);
	DEXPECT(cuCtxCreate(&context, NULL, 0, 1), CUDA_ERROR_INVALID_DEVICE);
	DEXPECT(cuDeviceCanAccessPeer(&can, 0, 1), CUDA_ERROR_INVALID_DEVICE);
	return verified("one device, and no second");
}

static void set_up(void)
{
	int i;

	for (i = 0; i < 2; i++) {
		DCHECK(cuDevicePrimaryCtxRetain(&contexts[i], i));
		use(i);
		modules[i] = driver_module();
		DCHECK(cuStreamCreate(&streams[i], CU_STREAM_NON_BLOCKING));
		DCHECK(cuMemAlloc(&memory[i], 4096));
		DCHECK(cuMemsetD32(memory[i], 10 + i, 1024));
		DCHECK(cuCtxSynchronize());
	}
}

static unsigned int first_word(int device)
{
	unsigned int word;

	DCHECK(cuMemcpyDtoH(&word, memory[device], 4));
	return word;
}

/* Each says where it belongs, whatever is current. */
static void belongs(void)
{
	CUcontext context;
	CUdevice device;
	int i, ordinal;

	for (i = 0; i < 2; i++) {
		use(1 - i);
		DCHECK(cuStreamGetCtx(streams[i], &context));
		REQUIRE(context == contexts[i], "stream %d", i);
		DCHECK(cuStreamGetDevice(streams[i], &device));
		REQUIRE(device == i, "stream %d: %d", i, device);
		DCHECK(cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
					     memory[i]));
		REQUIRE(ordinal == i, "memory %d: %d", i, ordinal);
		DCHECK(cuPointerGetAttribute(&context, CU_POINTER_ATTRIBUTE_CONTEXT, memory[i]));
		REQUIRE(context == contexts[i], "memory %d", i);
		REQUIRE(first_word(i) == 10 + (unsigned int)i, "%u", first_word(i));
	}
}

static void mixed(void)
{
	unsigned int count = 4, value = 70;
	CUevent event;
	CUfunction other;
	void *params[] = {&memory[0], &count, &value};

	use(0);
	other = driver_function(modules[0], "fill");
	/* A stream of the other device: the kernel runs there, or it is refused. */
	DCHECK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
	DEXPECT(cuEventRecord(event, streams[1]), CUDA_ERROR_INVALID_HANDLE);
	/* A stream may wait for an event of the other device. */
	DCHECK(cuLaunchKernel(other, 1, 1, 1, 4, 1, 1, 0, streams[0], params, NULL));
	DCHECK(cuEventRecord(event, streams[0]));
	use(1);
	DCHECK(cuStreamWaitEvent(streams[1], event, 0));
	DCHECK(cuMemcpyPeerAsync(memory[1], contexts[1], memory[0], contexts[0], 16, streams[1]));
	DCHECK(cuStreamSynchronize(streams[1]));
	REQUIRE(first_word(1) == 70, "%u", first_word(1));
	/* Everything can be ended with the other device current. */
	DCHECK(cuEventDestroy(event));
	DCHECK(cuStreamDestroy(streams[0]));
	DCHECK(cuMemFree(memory[0]));
	DCHECK(cuModuleUnload(modules[0]));
	use(0);
	DCHECK(cuStreamDestroy(streams[1]));
	DCHECK(cuMemFree(memory[1]));
	DCHECK(cuModuleUnload(modules[1]));
}

/* A context of one device does not change what is current for the other. */
static void released(void)
{
	CUcontext current;
	CUdeviceptr p;
	CUdevice device;

	use(1);
	DCHECK(cuDevicePrimaryCtxRelease(0));
	DCHECK(cuCtxGetCurrent(&current));
	REQUIRE(current == contexts[1], "another one is current");
	DCHECK(cuCtxGetDevice(&device));
	REQUIRE(device == 1, "%d", device);
	DCHECK(cuMemAlloc(&p, 4));
	DCHECK(cuMemFree(p));
	DCHECK(cuDevicePrimaryCtxRelease(1));
}

int main()
{
	int count;

	DCHECK(cuInit(0));
	DCHECK(cuDeviceGetCount(&count));
	if (count < 2)
		return one_device();
	set_up();
	belongs();
	mixed();
	released();
	return verified("what belongs to one of two devices");
}
