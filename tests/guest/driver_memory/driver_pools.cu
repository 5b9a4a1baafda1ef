// SPDX-License-Identifier: GPL-2.0-or-later
/* Allocations in stream order, and pools. */
#include "driver.h"

int main()
{
	CUmemPoolProps props = {};
	CUdevice device = driver_start();
	CUmemoryPool pool, standard, current;
	cuuint64_t threshold = 1 << 20, back = 0, used = 0;
	CUdeviceptr a, b;
	CUmemAccess_flags access;
	CUmemLocation location = {};
	unsigned int word = 0;
	CUstream stream;

	DCHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	DCHECK(cuMemAllocAsync(&a, 4000, stream));
	DCHECK(cuMemsetD32Async(a, 99, 1000, stream));
	DCHECK(cuMemcpyDtoHAsync(&word, a + 3996, 4, stream));
	DCHECK(cuMemFreeAsync(a, stream));
	DCHECK(cuStreamSynchronize(stream));
	REQUIRE(word == 99, "%u", word);
	DCHECK(cuDeviceGetDefaultMemPool(&standard, device));
	DCHECK(cuDeviceGetMemPool(&current, device));
	REQUIRE(standard == current, "another pool");
	location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	location.id = device;
	props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
	props.location = location;
	DCHECK(cuMemPoolCreate(&pool, &props));
	DCHECK(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold));
	DCHECK(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &back));
	REQUIRE(back == threshold, "%llu", (unsigned long long)back);
	DCHECK(cuMemPoolGetAccess(&access, pool, &location));
	REQUIRE(access == CU_MEM_ACCESS_FLAGS_PROT_READWRITE, "%d", (int)access);
	DCHECK(cuMemAllocFromPoolAsync(&b, 100, pool, stream));
	DCHECK(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used));
	REQUIRE(used >= 100, "%llu", (unsigned long long)used);
	DCHECK(cuMemFreeAsync(b, stream));
	DCHECK(cuStreamSynchronize(stream));
	DCHECK(cuMemPoolTrimTo(pool, 0));
	DCHECK(cuDeviceSetMemPool(device, pool));
	DCHECK(cuDeviceGetMemPool(&current, device));
	REQUIRE(current == pool, "another pool");
	DCHECK(cuDeviceSetMemPool(device, standard));
	DCHECK(cuMemPoolDestroy(pool));
	DEXPECT(cuMemPoolTrimTo(NULL, 0), CUDA_ERROR_INVALID_VALUE);
	DEXPECT(cuMemPoolCreate(NULL, &props), CUDA_ERROR_INVALID_VALUE);
	DCHECK(cuStreamDestroy(stream));
	return verified("allocations in stream order, and pools");
}
