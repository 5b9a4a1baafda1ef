// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What a program can ask about the devices: versions, count, properties, attributes, memory. The
 * answers are compared with one another and with what every recent CUDA device has.
 */
#include "check.h"

static int attribute(cudaDeviceAttr attr, int device)
{
	int value = -1;

	CHECK(cudaDeviceGetAttribute(&value, attr, device));
	return value;
}

static void query(int device)
{
	cudaDeviceProp p;
	size_t free_bytes = 0, total = 0;

	memset(&p, 0xff, sizeof(p));
	CHECK(cudaGetDeviceProperties(&p, device));
	CHECK(cudaSetDevice(device));
	CHECK(cudaMemGetInfo(&free_bytes, &total));

	printf("  device %d: %s\n", device, p.name);
	printf("    compute capability %d.%d, %d multiprocessors, warps of %d\n", p.major, p.minor,
	       p.multiProcessorCount, p.warpSize);
	printf("    memory %.0f MiB\n", (double)total / (1 << 20));
	printf("    block: %d threads, %zu KiB shared; grid: %d x %d x %d\n", p.maxThreadsPerBlock,
	       p.sharedMemPerBlock >> 10, p.maxGridSize[0], p.maxGridSize[1], p.maxGridSize[2]);
	printf("    unified addressing: %s, kernels may use pinned host memory: %s\n",
	       p.unifiedAddressing ? "yes" : "no", p.canMapHostMemory ? "yes" : "no");

	REQUIRE(memchr(p.name, 0, sizeof(p.name)) && p.name[0], "the name is a string");
	REQUIRE(p.major >= 5 && p.major < 100 && p.minor >= 0 && p.minor < 10, "%d.%d", p.major,
		p.minor);
	REQUIRE(p.warpSize == 32, "%d", p.warpSize);
	REQUIRE(p.multiProcessorCount > 0, "%d", p.multiProcessorCount);
	REQUIRE(p.maxThreadsPerBlock == 1024, "%d", p.maxThreadsPerBlock);
	REQUIRE(p.maxThreadsDim[0] == 1024 && p.maxThreadsDim[1] == 1024 &&
			p.maxThreadsDim[2] == 64,
		"%d %d %d", p.maxThreadsDim[0], p.maxThreadsDim[1], p.maxThreadsDim[2]);
	REQUIRE(p.maxGridSize[0] == 2147483647 && p.maxGridSize[1] == 65535 &&
			p.maxGridSize[2] == 65535,
		"%d %d %d", p.maxGridSize[0], p.maxGridSize[1], p.maxGridSize[2]);
	REQUIRE(p.sharedMemPerBlock >= 48 << 10, "%zu", p.sharedMemPerBlock);
	REQUIRE(p.regsPerBlock > 0, "%d", p.regsPerBlock);
	REQUIRE(p.totalGlobalMem == total, "%zu, %zu", p.totalGlobalMem, total);
	REQUIRE(free_bytes > 0 && free_bytes <= total, "%zu of %zu", free_bytes, total);
	REQUIRE(p.unifiedAddressing && p.canMapHostMemory, "%d %d", p.unifiedAddressing,
		p.canMapHostMemory);

	REQUIRE(attribute(cudaDevAttrMaxThreadsPerBlock, device) == p.maxThreadsPerBlock, "differ");
	REQUIRE(attribute(cudaDevAttrWarpSize, device) == p.warpSize, "differ");
	REQUIRE(attribute(cudaDevAttrMultiProcessorCount, device) == p.multiProcessorCount,
		"differ");
	REQUIRE(attribute(cudaDevAttrComputeCapabilityMajor, device) == p.major, "differ");
	REQUIRE(attribute(cudaDevAttrComputeCapabilityMinor, device) == p.minor, "differ");
	REQUIRE((size_t)attribute(cudaDevAttrMaxSharedMemoryPerBlock, device) ==
			p.sharedMemPerBlock,
		"differ");
	REQUIRE(attribute(cudaDevAttrUnifiedAddressing, device) == 1, "not unified");
}

int main(void)
{
	int driver = 0, runtime = 0, count = 0, device = -1, value;
	cudaDeviceProp p;

	CHECK(cudaRuntimeGetVersion(&runtime));
	CHECK(cudaDriverGetVersion(&driver));
	CHECK(cudaGetDeviceCount(&count));
	printf("  CUDA runtime %d.%d, driver %d.%d, %d device%s\n", runtime / 1000,
	       runtime % 100 / 10, driver / 1000, driver % 100 / 10, count, count == 1 ? "" : "s");
	REQUIRE(runtime >= 12000 && driver >= 12000, "%d, %d", runtime, driver);
	REQUIRE(count >= 1, "%d", count);
	CHECK(cudaGetDevice(&device));
	REQUIRE(device == 0, "the first device is current at the start, not %d", device);

	for (device = 0; device < count; device++)
		query(device);

	EXPECT(cudaGetDeviceProperties(&p, count), cudaErrorInvalidDevice);
	EXPECT(cudaDeviceGetAttribute(&value, cudaDevAttrWarpSize, count), cudaErrorInvalidDevice);
	EXPECT(cudaDeviceGetAttribute(&value, (cudaDeviceAttr)0, 0), cudaErrorInvalidValue);
	EXPECT(cudaSetDevice(count), cudaErrorInvalidDevice);
	EXPECT(cudaSetDevice(-1), cudaErrorInvalidDevice);
	CHECK(cudaGetDevice(&device));
	REQUIRE(device == count - 1, "a refused cudaSetDevice left %d", device);
	return verified("properties and attributes of %d device%s agree", count,
			count == 1 ? "" : "s");
}
