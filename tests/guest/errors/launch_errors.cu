// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A launch that cannot work is refused at the call with CUDA's own code, once, and the next good
 * launch runs. The codes are those of CUDA 13.0 with a 580 driver: "invalid value" also for
 * dimensions that CUDA 12 calls an invalid configuration.
 */
#include "check.h"

#if CUDART_VERSION < 13000
#define DIMENSIONS cudaErrorInvalidConfiguration
#else
#define DIMENSIONS cudaErrorInvalidValue
#endif

__global__ void store(int *out, int value)
{
	extern __shared__ int room[];

	room[0] = value;
	out[0] = room[0];
}

__global__ void no_arguments(void)
{
}

static int *dev;

static void refused(dim3 grid, dim3 block, size_t shared, cudaError_t code)
{
	int value = 0;

	store<<<grid, block, shared>>>(dev, 666);
	EXPECT(cudaPeekAtLastError(), code);
	EXPECT(cudaPeekAtLastError(), code);
	EXPECT(cudaGetLastError(), code);
	EXPECT(cudaGetLastError(), cudaSuccess);
	CHECK(cudaMemset(dev, 0, sizeof(int)));
	store<<<1, 1, sizeof(int)>>>(dev, 7);
	CHECK_LAUNCH();
	CHECK(cudaMemcpy(&value, dev, sizeof(value), cudaMemcpyDeviceToHost));
	REQUIRE(value == 7, "%d", value);
}

int main(void)
{
	const size_t words = sizeof(int);
	struct cudaFuncAttributes attr;
	int opt_in = 0, value = 0, arg = 5;
	void *args[] = {&dev, &arg};

	CHECK(cudaMalloc(&dev, 256));
	refused(dim3(1), dim3(1025), words, DIMENSIONS);
	refused(dim3(1), dim3(32, 33), words, DIMENSIONS);
	refused(dim3(1), dim3(1, 1, 65), words, DIMENSIONS);
	refused(dim3(1), dim3(0), words, DIMENSIONS);
	refused(dim3(1), dim3(1, 0), words, DIMENSIONS);
	refused(dim3(0), dim3(1), words, DIMENSIONS);
	refused(dim3(1, 1, 0), dim3(1), words, DIMENSIONS);
	refused(dim3(1, 65536), dim3(1), words, DIMENSIONS);
	refused(dim3(1, 1, 65536), dim3(1), words, DIMENSIONS);
	refused(dim3(0x80000000u), dim3(1), words, DIMENSIONS);
	refused(dim3(1), dim3(1), (48 << 10) + 4, cudaErrorInvalidValue);
	refused(dim3(1), dim3(1), (size_t)1 << 30, cudaErrorInvalidValue);

	/* More than 48 KiB of shared memory, after the program has asked for it. */
	CHECK(cudaDeviceGetAttribute(&opt_in, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0));
	REQUIRE(opt_in >= 48 << 10, "%d", opt_in);
	CHECK(cudaFuncSetAttribute(store, cudaFuncAttributeMaxDynamicSharedMemorySize, opt_in));
	store<<<1, 32, opt_in>>>(dev, 8);
	CHECK_LAUNCH();
	CHECK(cudaMemcpy(&value, dev, sizeof(value), cudaMemcpyDeviceToHost));
	REQUIRE(value == 8, "%d", value);
	EXPECT(cudaFuncSetAttribute(store, cudaFuncAttributeMaxDynamicSharedMemorySize, opt_in + 1),
	       cudaErrorInvalidValue);
	EXPECT(cudaGetLastError(), cudaErrorInvalidValue);

	/* The same launch by the function's address. An address that is no kernel is refused. */
	CHECK(cudaLaunchKernel((const void *)store, dim3(1), dim3(1), args, words, 0));
	CHECK(cudaMemcpy(&value, dev, sizeof(value), cudaMemcpyDeviceToHost));
	REQUIRE(value == 5, "%d", value);
	EXPECT(cudaLaunchKernel((const void *)main, dim3(1), dim3(1), args, 0, 0),
	       cudaErrorInvalidResourceHandle);
	EXPECT(cudaGetLastError(), cudaErrorInvalidResourceHandle);
	EXPECT(cudaFuncGetAttributes(&attr, (const void *)main), cudaErrorInvalidResourceHandle);
	EXPECT(cudaGetLastError(), cudaErrorInvalidResourceHandle);
	CHECK(cudaFuncGetAttributes(&attr, no_arguments));
	REQUIRE(attr.maxThreadsPerBlock > 0 && attr.maxThreadsPerBlock <= 1024, "%d",
		attr.maxThreadsPerBlock);

	no_arguments<<<2, 64>>>();
	CHECK_LAUNCH();
	CHECK(cudaDeviceSynchronize());
	CHECK(cudaFree(dev));
	return verified("bad launches are refused at the call, good ones still run");
}
