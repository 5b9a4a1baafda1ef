// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Limits of a device (stack, printf buffer, heap of malloc in kernels), its settings, the
 * queries about a kernel, and the ways to name a device. Each value is checked, kept, returned
 * and obeyed.
 */
#include <cuda_profiler_api.h>

#include "check.h"

/* Some of the functions are deprecated; they are still tested. */
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

#define MIB ((size_t)1 << 20)

__global__ void take(size_t bytes, int *got)
{
	char *p = (char *)malloc(bytes);

	*got = p != NULL;
	if (p)
		p[0] = p[bytes - 1] = 1;
	free(p);
}

/* Each call keeps an array that the next call reads. */
__device__ int dig(int depth, const int *above)
{
	int mine[64];

	for (int i = 0; i < 64; i++)
		mine[i] = above[(i * 7) & 63] + depth;
	return depth ? dig(depth - 1, mine) + mine[depth & 63] : mine[0];
}

__global__ void go_down(int depth, int *out)
{
	int first[64];

	for (int i = 0; i < 64; i++)
		first[i] = i;
	*out = dig(depth, first);
}

static int dig_here(int depth, const int *above)
{
	int mine[64];

	for (int i = 0; i < 64; i++)
		mine[i] = above[(i * 7) & 63] + depth;
	return depth ? dig_here(depth - 1, mine) + mine[depth & 63] : mine[0];
}

__global__ void reverse(int *to, int n)
{
	extern __shared__ int shared[];

	for (int i = threadIdx.x; i < n; i += blockDim.x)
		shared[i] = i;
	__syncthreads();
	for (int i = threadIdx.x; i < n; i += blockDim.x)
		to[i] = shared[n - 1 - i];
}

__global__ void many(char a, double b, short c, long long d)
{
}

static void limits(void)
{
	size_t value = 0;
	int *got, result, first[64];

	for (int l = cudaLimitStackSize; l <= cudaLimitMallocHeapSize; l++) {
		CHECK(cudaDeviceGetLimit(&value, (cudaLimit)l));
		REQUIRE(value > 0, "limit %d is 0", l);
	}
	EXPECT(cudaDeviceGetLimit(NULL, cudaLimitStackSize), cudaErrorInvalidValue);
	REQUIRE(cudaDeviceGetLimit(&value, (cudaLimit)100) != cudaSuccess, "limit 100");
	REQUIRE(cudaDeviceSetLimit((cudaLimit)100, 1) != cudaSuccess, "limit 100");
	(void)cudaGetLastError();
	CHECK(cudaDeviceSetLimit(cudaLimitPrintfFifoSize, 2 * MIB));
	CHECK(cudaDeviceGetLimit(&value, cudaLimitPrintfFifoSize));
	REQUIRE(value >= 2 * MIB, "printf %zu", value);
	CHECK(cudaMallocManaged(&got, sizeof(int)));

	CHECK(cudaDeviceSetLimit(cudaLimitMallocHeapSize, 32 * MIB));
	CHECK(cudaDeviceGetLimit(&value, cudaLimitMallocHeapSize));
	REQUIRE(value >= 32 * MIB, "heap %zu", value);
	for (size_t mib : {20, 20, 200, 20}) {
		*got = -1;
		take<<<1, 1>>>(mib * MIB, got);
		CHECK_LAUNCH();
		CHECK(cudaDeviceSynchronize());
		REQUIRE(*got == (mib < 32), "%zu MiB of 32: %d", mib, *got);
	}
	EXPECT(cudaDeviceSetLimit(cudaLimitMallocHeapSize, 64 * MIB), cudaErrorInvalidValue);
	(void)cudaGetLastError();

	CHECK(cudaDeviceSetLimit(cudaLimitStackSize, 32 * 1024));
	CHECK(cudaDeviceGetLimit(&value, cudaLimitStackSize));
	REQUIRE(value >= 32 * 1024, "stack %zu", value);
	go_down<<<1, 1>>>(50, got);
	CHECK_LAUNCH();
	CHECK(cudaDeviceSynchronize());
	for (int i = 0; i < 64; i++)
		first[i] = i;
	result = dig_here(50, first);
	REQUIRE(*got == result, "%d, not %d", *got, result);
	CHECK(cudaFree(got));
}

static void settings(void)
{
	cudaSharedMemConfig banks;
	cudaFuncCache cache;
	unsigned int flags;

	CHECK(cudaSetDeviceFlags(cudaDeviceScheduleYield));
	CHECK(cudaGetDeviceFlags(&flags));
	REQUIRE((flags & cudaDeviceScheduleMask) == cudaDeviceScheduleYield, "flags %x", flags);
	EXPECT(cudaSetDeviceFlags(0x10000), cudaErrorInvalidValue);
	CHECK(cudaDeviceSetCacheConfig(cudaFuncCachePreferL1));
	CHECK(cudaDeviceGetCacheConfig(&cache));
	/* A GPU with a fixed cache size has no preference. */
	REQUIRE(cache == cudaFuncCachePreferL1 || cache == cudaFuncCachePreferNone, "cache %d",
		cache);
	EXPECT(cudaDeviceGetCacheConfig(NULL), cudaErrorInvalidValue);
	CHECK(cudaDeviceSetSharedMemConfig(cudaSharedMemBankSizeFourByte));
	CHECK(cudaDeviceGetSharedMemConfig(&banks));
	REQUIRE(banks == cudaSharedMemBankSizeFourByte, "banks %d", banks);
	CHECK(cudaCtxResetPersistingL2Cache());
	CHECK(cudaProfilerStart());
	CHECK(cudaProfilerStop());
	(void)cudaGetLastError();
}

static void kernels(void)
{
	cudaFuncAttributes attr;
	const char *name;
	size_t offset, size;

	CHECK(cudaFuncGetAttributes(&attr, many));
	REQUIRE(attr.maxThreadsPerBlock > 0 && attr.numRegs > 0 && attr.binaryVersion >= 50 &&
			attr.preferredShmemCarveout == cudaSharedmemCarveoutDefault,
		"%d threads, %d registers, version %d, carveout %d", attr.maxThreadsPerBlock,
		attr.numRegs, attr.binaryVersion, attr.preferredShmemCarveout);
	CHECK(cudaFuncSetAttribute(many, cudaFuncAttributePreferredSharedMemoryCarveout, 50));
	CHECK(cudaFuncSetAttribute(many, cudaFuncAttributeMaxDynamicSharedMemorySize, 40000));
	CHECK(cudaFuncGetAttributes(&attr, many));
	REQUIRE(attr.preferredShmemCarveout == 50 && attr.maxDynamicSharedSizeBytes == 40000,
		"carveout %d, shared %d", attr.preferredShmemCarveout,
		attr.maxDynamicSharedSizeBytes);
	EXPECT(cudaFuncSetAttribute(many, cudaFuncAttributePreferredSharedMemoryCarveout, 101),
	       cudaErrorInvalidValue);
	EXPECT(cudaFuncSetAttribute(many, cudaFuncAttributeMaxDynamicSharedMemorySize, 1 << 30),
	       cudaErrorInvalidValue);
	CHECK(cudaFuncSetCacheConfig(many, cudaFuncCachePreferShared));
	CHECK(cudaFuncGetName(&name, (const void *)many));
	REQUIRE(strstr(name, "many"), "%s", name);
	for (size_t i = 0; i < 4; i++) {
		static const size_t want[4][2] = {{0, 1}, {8, 8}, {16, 2}, {24, 8}};

		CHECK(cudaFuncGetParamInfo((const void *)many, i, &offset, &size));
		REQUIRE(offset == want[i][0] && size == want[i][1], "parameter %zu: %zu at %zu", i,
			size, offset);
	}
	EXPECT(cudaFuncGetParamInfo((const void *)many, 4, &offset, &size), cudaErrorInvalidValue);
	(void)cudaGetLastError();
}

/* Allows a kernel more dynamic shared memory than the default, by its handle. */
static void kernel_handles(void)
{
	const int n = 50000 / sizeof(int);
	cudaKernel_t kernel;
	int *dev, *back = (int *)malloc(n * sizeof(int));

	CHECK(cudaMalloc(&dev, n * sizeof(int)));
	CHECK(cudaGetKernel(&kernel, (const void *)reverse));
	reverse<<<1, 128, n * sizeof(int)>>>(dev, n);
	EXPECT(cudaGetLastError(), cudaErrorInvalidValue);
	CHECK(cudaKernelSetAttributeForDevice(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
					      n * sizeof(int), 0));
	CHECK(cudaFuncSetSharedMemConfig((const void *)reverse, cudaSharedMemBankSizeFourByte));
	reverse<<<1, 128, n * sizeof(int)>>>(dev, n);
	CHECK_LAUNCH();
	CHECK(cudaMemcpy(back, dev, n * sizeof(int), cudaMemcpyDeviceToHost));
	for (int i = 0; i < n; i++)
		REQUIRE(back[i] == n - 1 - i, "element %d is %d", i, back[i]);
	REQUIRE(cudaKernelSetAttributeForDevice(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
						1, 1000) != cudaSuccess,
		"device 1000");
	(void)cudaGetLastError();
	CHECK(cudaFree(dev));
	free(back);
}

static void devices(void)
{
	cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSuccess;
	int device = -1, count, list[1] = {0}, wrong[1] = {1000}, least, greatest;
	cudaDeviceProp prop = {};
	char id[32];
	void *fn = id;

	CHECK(cudaGetDeviceCount(&count));
	CHECK(cudaDeviceGetPCIBusId(id, sizeof(id), 0));
	CHECK(cudaDeviceGetByPCIBusId(&device, id));
	REQUIRE(device == 0, "%s is device %d", id, device);
	EXPECT(cudaDeviceGetByPCIBusId(&device, "ffff:ff:1f.0"), cudaErrorInvalidDevice);
	EXPECT(cudaDeviceGetPCIBusId(NULL, 10, 0), cudaErrorInvalidValue);
	prop.major = 1;
	CHECK(cudaChooseDevice(&device, &prop));
	REQUIRE(device >= 0 && device < count, "chose %d", device);
	EXPECT(cudaChooseDevice(NULL, &prop), cudaErrorInvalidValue);
	CHECK(cudaSetValidDevices(list, 1));
	EXPECT(cudaSetValidDevices(wrong, 1), cudaErrorInvalidDevice);
	EXPECT(cudaSetValidDevices(NULL, 1), cudaErrorInvalidValue);
	CHECK(cudaSetValidDevices(NULL, 0));
	CHECK(cudaInitDevice(0, 0, 0));
	EXPECT(cudaInitDevice(1000, 0, 0), cudaErrorInvalidDevice);
	CHECK(cudaDeviceGetStreamPriorityRange(&least, &greatest));
	REQUIRE(least == 0 && greatest <= 0, "priorities %d to %d", least, greatest);
	CHECK(cudaGetDriverEntryPointByVersion("cuThereIsNoSuchFunction", &fn, 12000,
					       cudaEnableDefault, &found));
	REQUIRE(!fn && found == cudaDriverEntryPointSymbolNotFound, "%p, %d", fn, found);
	fn = id;
	found = cudaDriverEntryPointSuccess;
	CHECK(cudaGetDriverEntryPoint("cuThereIsNoSuchFunction", &fn, cudaEnableDefault, &found));
	REQUIRE(!fn && found == cudaDriverEntryPointSymbolNotFound, "%p, %d", fn, found);
	(void)cudaGetLastError();
}

int main(void)
{
	devices();
	settings();
	limits();
	kernels();
	kernel_handles();
	/* All values are back at their defaults. */
	size_t before, after;

	CHECK(cudaDeviceSetLimit(cudaLimitStackSize, 4096));
	CHECK(cudaDeviceGetLimit(&before, cudaLimitStackSize));
	CHECK(cudaDeviceReset());
	CHECK(cudaDeviceGetLimit(&after, cudaLimitStackSize));
	REQUIRE(after < before, "%zu before, %zu after the reset", before, after);
	return verified("limits hold, and settings are kept");
}
