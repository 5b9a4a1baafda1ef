// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copies and fills that wait, in a program whose default stream is the thread's own: they wait for
 * that stream, and not for another one that is held up.
 */
#define CUDA_API_PER_THREAD_DEFAULT_STREAM
#include "driver.h"

#define N 256

int main()
{
	static unsigned int in[N], out[N];
	unsigned int count = N, value = 3;
	volatile unsigned int *flag;
	CUDA_MEMCPY2D c2 = {};
	CUDA_MEMCPY3D c3 = {};
	CUdeviceptr a, b, at;
	CUmodule module;
	CUfunction hold;
	CUstream other;
	void *params[] = {&a, &count, &value}, *hold_params[] = {&at};
	CUlaunchConfig config = {};

	driver_start();
	module = driver_module();
	hold = driver_function(module, "hold");
	DCHECK(cuFuncLoad(hold));
	DCHECK(cuFuncLoad(driver_function(module, "fill")));
	DCHECK(cuMemAlloc(&a, sizeof(in)));
	DCHECK(cuMemAlloc(&b, sizeof(in)));
	DCHECK(cuMemHostAlloc((void **)&flag, 4, CU_MEMHOSTALLOC_DEVICEMAP));
	*flag = 0;
	DCHECK(cuMemHostGetDevicePointer(&at, (void *)flag, 0));
	DCHECK(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
	DCHECK(cuLaunchKernel(hold, 1, 1, 1, 1, 1, 1, 0, other, hold_params, NULL));
	config.gridDimX = config.gridDimY = config.gridDimZ = 1;
	config.blockDimX = N;
	config.blockDimY = config.blockDimZ = 1;
	DCHECK(cuLaunchKernelEx(&config, driver_function(module, "fill"), params, NULL));
	DCHECK(cuMemcpyDtoD(b, a, sizeof(in)));
	DCHECK(cuMemcpyDtoH(out, b, sizeof(out)));
	REQUIRE(out[N - 1] == 3 + N - 1, "%u", out[N - 1]);
	fill_words(in, sizeof(in), 4);
	DCHECK(cuMemcpyHtoD(a, in, sizeof(in)));
	DCHECK(cuMemcpy((CUdeviceptr)(uintptr_t)out, a, sizeof(out)));
	REQUIRE(!memcmp(in, out, sizeof(in)), "at %zu", first_difference(in, out, sizeof(in)));
	DCHECK(cuMemsetD8(a, 1, 4));
	DCHECK(cuMemsetD16(a + 4, 2, 2));
	DCHECK(cuMemsetD32(a + 8, 3, 1));
	DCHECK(cuMemsetD2D8(b, 64, 4, 3, 2));
	DCHECK(cuMemsetD2D16(b + 128, 64, 5, 3, 2));
	DCHECK(cuMemsetD2D32(b + 256, 64, 6, 3, 2));
	c2.srcMemoryType = CU_MEMORYTYPE_DEVICE;
	c2.srcDevice = a;
	c2.dstMemoryType = CU_MEMORYTYPE_HOST;
	c2.dstHost = out;
	c2.WidthInBytes = 12;
	c2.Height = 1;
	DCHECK(cuMemcpy2D(&c2));
	REQUIRE(out[0] == 0x01010101 && out[1] == 0x00020002 && out[2] == 3, "%x %x %x", out[0],
		out[1], out[2]);
	c3.srcMemoryType = CU_MEMORYTYPE_DEVICE;
	c3.srcDevice = b;
	c3.dstMemoryType = CU_MEMORYTYPE_HOST;
	c3.dstHost = out;
	c3.WidthInBytes = 384;
	c3.Height = c3.Depth = 1;
	DCHECK(cuMemcpy3D(&c3));
	REQUIRE((out[16] & 0xffffff) == 0x040404 && (out[48] & 0xffff) == 5 && out[80] == 6,
		"%x %x %x", out[16], out[48], out[80]);
	DEXPECT(cuStreamQuery(other), CUDA_ERROR_NOT_READY);
	*flag = 1;
	DCHECK(cuStreamSynchronize(other));
	DCHECK(cuStreamDestroy(other));
	DCHECK(cuMemFreeHost((void *)flag));
	DCHECK(cuMemFree(a));
	DCHECK(cuMemFree(b));
	DCHECK(cuModuleUnload(module));
	return verified("copies and fills wait for the thread's own stream only");
}
