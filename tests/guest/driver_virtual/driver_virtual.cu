// SPDX-License-Identifier: GPL-2.0-or-later
/* Virtual memory: reservations, mappings, access, the same memory at two addresses, compression,
 * wrong arguments. */
#include "driver.h"

#define GIB (1ull << 30)

static CUmemAllocationProp prop;
static CUmemAccessDesc access_desc;
static size_t unit;

static CUmemGenericAllocationHandle create(size_t size)
{
	CUmemGenericAllocationHandle handle;

	DCHECK(cuMemCreate(&handle, size, &prop, 0));
	return handle;
}

static unsigned int word_at(CUdeviceptr at)
{
	unsigned int value;

	DCHECK(cuMemcpyDtoH(&value, at, 4));
	return value;
}

static void wrong()
{
	CUmemGenericAllocationHandle handle = create(unit), other;
	CUmemAllocationProp bad = prop;
	unsigned long long flags;
	CUdeviceptr at, none;
	size_t bytes;

	DEXPECT(cuMemAddressReserve(NULL, unit, 0, 0, 0), CUDA_ERROR_INVALID_VALUE);
	DEXPECT(cuMemAddressReserve(&at, 0, 0, 0, 0), CUDA_ERROR_INVALID_VALUE);
	DEXPECT(cuMemAddressReserve(&at, unit + 1, 0, 0, 0), CUDA_ERROR_INVALID_VALUE);
	DEXPECT(cuMemCreate(NULL, unit, &prop, 0), CUDA_ERROR_INVALID_VALUE);
	DEXPECT(cuMemCreate(&other, unit + 1, &prop, 0), CUDA_ERROR_INVALID_VALUE);
	DEXPECT(cuMemCreate(&other, unit, NULL, 0), CUDA_ERROR_INVALID_VALUE);
	bad.type = CU_MEM_ALLOCATION_TYPE_INVALID;
	DEXPECT(cuMemCreate(&other, unit, &bad, 0), CUDA_ERROR_INVALID_VALUE);
	bad = prop;
	bad.location.id = 99;
	DEXPECT(cuMemCreate(&other, unit, &bad, 0), CUDA_ERROR_INVALID_DEVICE);
	DEXPECT(cuMemGetAllocationGranularity(NULL, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM),
		CUDA_ERROR_INVALID_VALUE);
	DEXPECT(cuMemGetAllocationGranularity(&bytes, &prop, (CUmemAllocationGranularity_flags)7),
		CUDA_ERROR_INVALID_VALUE);
	DEXPECT(cuMemRelease(0), CUDA_ERROR_INVALID_VALUE);
	DEXPECT(cuMemRelease(handle + 1), CUDA_ERROR_INVALID_VALUE);
	DCHECK(cuMemAddressReserve(&at, 2 * unit, 0, 0, 0));
	none = at + 2 * unit;
	/* More than the memory has. */
	DEXPECT(cuMemMap(at, 2 * unit, 0, handle, 0), CUDA_ERROR_NOT_SUPPORTED);
	DEXPECT(cuMemMap(at + unit, 2 * unit, 0, handle, 0), CUDA_ERROR_NOT_SUPPORTED);
	DEXPECT(cuMemMap(none, unit, 0, handle, 0), CUDA_ERROR_INVALID_VALUE);
	DEXPECT(cuMemMap(at, unit, 0, handle, 1), CUDA_ERROR_INVALID_VALUE);
	DEXPECT(cuMemMap(at, unit, 0, 0, 0), CUDA_ERROR_INVALID_VALUE);
	/* Nothing is mapped there, and then nothing is unmapped. */
	DCHECK(cuMemUnmap(at, unit));
	DEXPECT(cuMemSetAccess(at, unit, &access_desc, 1), CUDA_ERROR_INVALID_VALUE);
	DEXPECT(cuMemGetAccess(&flags, &prop.location, at), CUDA_ERROR_INVALID_VALUE);
	DCHECK(cuMemMap(at, unit, 0, handle, 0));
	DEXPECT(cuMemMap(at, unit, 0, handle, 0), CUDA_ERROR_INVALID_VALUE);
	DEXPECT(cuMemAddressFree(at, 2 * unit), CUDA_ERROR_INVALID_VALUE);
	DEXPECT(cuMemSetAccess(at, unit, NULL, 1), CUDA_ERROR_INVALID_VALUE);
	DEXPECT(cuMemFree(at), CUDA_ERROR_INVALID_VALUE);
	DCHECK(cuMemUnmap(at, unit));
	DEXPECT(cuMemAddressFree(at, unit), CUDA_ERROR_INVALID_VALUE);
	DCHECK(cuMemAddressFree(at, 2 * unit));
	DCHECK(cuMemRelease(handle));
	DEXPECT(cuMemRelease(handle), CUDA_ERROR_INVALID_VALUE);
}

static void two_addresses(CUmodule module)
{
	CUmemGenericAllocationHandle handle = create(4 * unit), again;
	CUmemAllocationProp got;
	unsigned long long flags;
	unsigned int n = 1000, value = 5;
	CUdeviceptr at, far, base;
	CUmemorytype type;
	size_t bytes;
	int device;
	void *params[] = {&at, &n, &value};

	DCHECK(cuMemAddressReserve(&at, 300 * GIB, 0, 0, 0));
	DCHECK(cuMemAddressReserve(&far, 100 * GIB, unit, 0, 0));
	far += 50 * GIB;
	DCHECK(cuMemMap(at, 4 * unit, 0, handle, 0));
	DCHECK(cuMemMap(far, 4 * unit, 0, handle, 0));
	DCHECK(cuMemSetAccess(at, 4 * unit, &access_desc, 1));
	DCHECK(cuMemSetAccess(far, 4 * unit, &access_desc, 1));
	DCHECK(cuMemGetAccess(&flags, &prop.location, at + unit));
	REQUIRE(flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE, "%llu", flags);
	DCHECK(cuMemRelease(handle)); /* the mappings keep the memory */
	DCHECK(cuMemRetainAllocationHandle(&again, (void *)(at + 5)));
	REQUIRE(again == handle, "another handle");
	DCHECK(cuMemGetAllocationPropertiesFromHandle(&got, again));
	REQUIRE(got.location.id == prop.location.id && got.type == prop.type, "properties");
	DCHECK(cuMemRelease(again));
	ONLY_OURS(DEXPECT(cuMemGetAllocationPropertiesFromHandle(&got, again),
			  CUDA_ERROR_INVALID_VALUE));

	DCHECK(cuLaunchKernel(driver_function(module, "fill"), 1, 1, 1, 1000, 1, 1, 0, NULL, params,
			      NULL));
	REQUIRE(word_at(far + 4 * 999) == 1004, "%u", word_at(far + 4 * 999));
	DCHECK(cuMemsetD32(far + unit - 8, 77, 4));
	REQUIRE(word_at(at + unit + 4) == 77, "%u", word_at(at + unit + 4));
	DCHECK(cuMemcpyDtoD(at + 3 * unit, far, 4000));
	REQUIRE(word_at(far + 3 * unit + 40) == 15, "%u", word_at(far + 3 * unit + 40));

	DCHECK(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, at + unit));
	REQUIRE(type == CU_MEMORYTYPE_DEVICE, "%d", (int)type);
	DCHECK(cuPointerGetAttribute(&device, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, far));
	REQUIRE(device == prop.location.id, "%d", device);
	DCHECK(cuMemGetAddressRange(&base, &bytes, far + 1));
	REQUIRE(base == far && bytes == 4 * unit, "%llu %zu", base, bytes);
	DCHECK(cuMemUnmap(at, 4 * unit));
	DEXPECT(cuMemsetD32(at, 1, 1), CUDA_ERROR_INVALID_VALUE);
	REQUIRE(word_at(far) == 5, "%u", word_at(far));
	DCHECK(cuMemUnmap(far, 4 * unit));
	DCHECK(cuMemAddressFree(at, 300 * GIB));
	DCHECK(cuMemAddressFree(far - 50 * GIB, 100 * GIB));
}

/* Compression is a wish. The memory says whether it was granted, and can be used in any case. */
static void compressible()
{
	CUmemAllocationProp with = prop, got;
	CUmemGenericAllocationHandle handle;
	CUdeviceptr at;
	size_t bytes;
	int can;

	DCHECK(cuDeviceGetAttribute(&can, CU_DEVICE_ATTRIBUTE_GENERIC_COMPRESSION_SUPPORTED,
				    prop.location.id));
	with.allocFlags.compressionType = CU_MEM_ALLOCATION_COMP_GENERIC;
	DCHECK(cuMemGetAllocationGranularity(&bytes, &with, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
	DCHECK(cuMemCreate(&handle, bytes, &with, 0));
	DCHECK(cuMemGetAllocationPropertiesFromHandle(&got, handle));
	REQUIRE(got.allocFlags.compressionType == CU_MEM_ALLOCATION_COMP_NONE ||
			(can && got.allocFlags.compressionType == CU_MEM_ALLOCATION_COMP_GENERIC),
		"%d, and the device says %d", got.allocFlags.compressionType, can);
	DCHECK(cuMemAddressReserve(&at, bytes, 0, 0, 0));
	DCHECK(cuMemMap(at, bytes, 0, handle, 0));
	DCHECK(cuMemSetAccess(at, bytes, &access_desc, 1));
	DCHECK(cuMemsetD32(at, 0, bytes / 4));
	DCHECK(cuMemsetD32(at + bytes / 2, 1234, 1));
	REQUIRE(word_at(at + bytes / 2) == 1234 && word_at(at) == 0, "%u", word_at(at));
	DCHECK(cuMemUnmap(at, bytes));
	DCHECK(cuMemRelease(handle));
	DCHECK(cuMemAddressFree(at, bytes));
	/* Without the wish it is not. */
	DCHECK(cuMemCreate(&handle, unit, &prop, 0));
	DCHECK(cuMemGetAllocationPropertiesFromHandle(&got, handle));
	REQUIRE(got.allocFlags.compressionType == CU_MEM_ALLOCATION_COMP_NONE, "%d",
		got.allocFlags.compressionType);
	DCHECK(cuMemRelease(handle));
}

int main()
{
	CUmodule module;

	prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
	prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	DEXPECT(cuMemGetAllocationGranularity(&unit, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM),
		CUDA_ERROR_NOT_INITIALIZED);
	prop.location.id = driver_start();
	access_desc.location = prop.location;
	access_desc.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
	DCHECK(cuMemGetAllocationGranularity(&unit, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
	REQUIRE(unit && !(unit & (unit - 1)), "%zu", unit);
	module = driver_module();
	wrong();
	two_addresses(module);
	compressible();
	return verified("memory is where it is mapped");
}
