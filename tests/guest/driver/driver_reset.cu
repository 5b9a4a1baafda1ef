// SPDX-License-Identifier: GPL-2.0-or-later
/* A reset of the primary context frees all that was on the device. */
#include "driver.h"

int main()
{
	CUdevice device = driver_start();
	CUdeviceptr memory, again;
	CUcontext context;
	CUstream stream;
	unsigned int flags;
	int active;

	DCHECK(cuCtxGetCurrent(&context));
	DCHECK(cuMemAlloc(&memory, 1000));
	DCHECK(cuStreamCreate(&stream, 0));
	DCHECK(cuDevicePrimaryCtxReset(device));
	DEXPECT(cuDevicePrimaryCtxReset(1000), CUDA_ERROR_INVALID_DEVICE);
	DCHECK(cuDevicePrimaryCtxRetain(&context, device));
	DCHECK(cuCtxSetCurrent(context));
	DEXPECT(cuMemFree(memory), CUDA_ERROR_INVALID_VALUE);
	DCHECK(cuMemAlloc(&again, 1000));
	DCHECK(cuMemsetD8(again, 1, 1000));
	DCHECK(cuMemFree(again));
	DCHECK(cuDevicePrimaryCtxGetState(device, &flags, &active));
	REQUIRE(active, "not in use");
	return verified("a reset frees everything");
}
