// SPDX-License-Identifier: GPL-2.0-or-later
/* What the driver says about addresses of every kind of memory. */
#include "driver.h"

static int number(CUpointer_attribute which, CUdeviceptr address)
{
	int value = -1;

	DCHECK(cuPointerGetAttribute(&value, which, address));
	return value;
}

static void *pointer(CUpointer_attribute which, CUdeviceptr address)
{
	void *value = NULL;

	DCHECK(cuPointerGetAttribute(&value, which, address));
	return value;
}

int main()
{
	CUpointer_attribute list[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
				      CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL};
	CUpointer_attribute place = CU_POINTER_ATTRIBUTE_DEVICE_POINTER;
	CUdeviceptr device_memory, managed, found;
	unsigned int type = 0, flag = 1;
	int plain = 0, ordinal = 0;
	void *data[] = {&type, &ordinal}, *at[] = {&found}, *host;
	CUdevice device = driver_start();
	CUcontext context;
	size_t size;
	char *pinned;

	DCHECK(cuCtxGetCurrent(&context));
	DCHECK(cuMemAlloc(&device_memory, 1000));
	DCHECK(cuMemAllocManaged(&managed, 1000, CU_MEM_ATTACH_GLOBAL));
	DCHECK(cuMemAllocHost((void **)&pinned, 1000));
	REQUIRE(number(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, device_memory) == CU_MEMORYTYPE_DEVICE,
		"type");
	REQUIRE(number(CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, device_memory + 10) == device,
		"device");
	REQUIRE(pointer(CU_POINTER_ATTRIBUTE_CONTEXT, device_memory) == context, "context");
	REQUIRE(pointer(CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, device_memory + 10) ==
			(void *)(uintptr_t)device_memory,
		"start");
	DCHECK(cuPointerGetAttribute(&size, CU_POINTER_ATTRIBUTE_RANGE_SIZE, device_memory));
	REQUIRE(size == 1000, "%zu", size);
	REQUIRE(number(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (CUdeviceptr)(uintptr_t)pinned) ==
			CU_MEMORYTYPE_HOST,
		"type of pinned memory");
	REQUIRE(pointer(CU_POINTER_ATTRIBUTE_HOST_POINTER, (CUdeviceptr)(uintptr_t)pinned) ==
			pinned,
		"host pointer");
	REQUIRE(!number(CU_POINTER_ATTRIBUTE_IS_MANAGED, device_memory) &&
			number(CU_POINTER_ATTRIBUTE_IS_MANAGED, managed),
		"managed");
	DEXPECT(cuPointerGetAttribute(&host, CU_POINTER_ATTRIBUTE_HOST_POINTER, device_memory),
		CUDA_ERROR_INVALID_VALUE);
	DEXPECT(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
				      (CUdeviceptr)(uintptr_t)&plain),
		CUDA_ERROR_INVALID_VALUE);
	DEXPECT(cuPointerGetAttribute(NULL, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, device_memory),
		CUDA_ERROR_INVALID_VALUE);
	DCHECK(cuPointerGetAttributes(2, list, data, device_memory));
	REQUIRE(type == CU_MEMORYTYPE_DEVICE && ordinal == device, "%u", type);
	DCHECK(cuPointerGetAttributes(1, &place, at, device_memory));
	REQUIRE(found == device_memory, "%llx", found);
	/* Ordinary memory is no error here. */
	DCHECK(cuPointerGetAttributes(1, &place, at, (CUdeviceptr)(uintptr_t)&plain));
	REQUIRE(!found, "%llx", found);
	DEXPECT(cuPointerGetAttributes(0, list, data, device_memory), CUDA_ERROR_INVALID_VALUE);
	DCHECK(cuPointerSetAttribute(&flag, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, device_memory));
	DEXPECT(cuPointerSetAttribute(&flag, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, device_memory),
		CUDA_ERROR_INVALID_VALUE);
	DCHECK(cuMemFree(device_memory));
	DEXPECT(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, device_memory),
		CUDA_ERROR_INVALID_VALUE);
	DCHECK(cuMemFree(managed));
	DCHECK(cuMemFreeHost(pinned));
	return verified("attributes of addresses");
}
