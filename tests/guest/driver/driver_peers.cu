// SPDX-License-Identifier: GPL-2.0-or-later
/* Peers: a device and itself, and devices that do not exist. */
#include "driver.h"

int main()
{
	CUdevice device = driver_start();
	CUdeviceptr a, b;
	CUcontext context;
	unsigned int word;
	int can = -1;

	DCHECK(cuCtxGetCurrent(&context));
	DCHECK(cuDeviceCanAccessPeer(&can, device, device));
	REQUIRE(can == 0, "%d", can);
	DEXPECT(cuDeviceCanAccessPeer(&can, device, 1000), CUDA_ERROR_INVALID_DEVICE);
	DEXPECT(cuDeviceCanAccessPeer(NULL, device, device), CUDA_ERROR_INVALID_VALUE);
	DEXPECT(cuDeviceGetP2PAttribute(&can, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, device,
					device),
		CUDA_ERROR_INVALID_DEVICE);
	DEXPECT(cuCtxEnablePeerAccess(NULL, 0), CUDA_ERROR_INVALID_CONTEXT);
	DCHECK(cuMemAlloc(&a, 4));
	DCHECK(cuMemAlloc(&b, 4));
	DCHECK(cuMemsetD32(a, 1234, 1));
	DCHECK(cuMemcpyPeer(b, context, a, context, 4));
	DCHECK(cuMemcpyDtoH(&word, b, 4));
	REQUIRE(word == 1234, "%u", word);
	/* No context stands for the current one. */
	DCHECK(cuMemsetD32(a, 5678, 1));
	DCHECK(cuMemcpyPeer(b, NULL, a, context, 4));
	DCHECK(cuMemcpyDtoH(&word, b, 4));
	REQUIRE(word == 5678, "%u", word);
	DCHECK(cuMemFree(a));
	DCHECK(cuMemFree(b));
	return verified("peers");
}
