// SPDX-License-Identifier: GPL-2.0-or-later
/* Handles of every kind after their end, twice: the second destruction and each use are refused. */
#include "driver.h"

static CUresult launch(CUfunction function)
{
	return cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL);
}

int main()
{
	CUcontext context, made;
	CUdevice device = driver_start(), of;
	CUmemGenericAllocationHandle handle;
	CUmemAllocationProp prop = {};
	CUmemPoolProps pool_props = {};
	CUmemoryPool pool;
	CUdeviceptr memory, address;
	CUfunction function;
	CUlibrary library;
	CUkernel kernel;
	CUmodule module;
	size_t unit, bytes;
	unsigned int flags;
	void *host;

	DCHECK(cuCtxGetCurrent(&context));
	module = driver_module();
	function = driver_function(module, "nothing");
	DCHECK(launch(function));
	DCHECK(cuModuleUnload(module));
	ONLY_OURS(DEXPECT(cuModuleUnload(module), CUDA_ERROR_INVALID_HANDLE));
	ONLY_OURS(DEXPECT(cuModuleGetFunction(&function, module, "nothing"), CUDA_ERROR_INVALID_HANDLE));
	ONLY_OURS(DEXPECT(cuModuleGetGlobal(&address, &bytes, module, "number"), CUDA_ERROR_INVALID_HANDLE));
	ONLY_OURS(DEXPECT(launch(function), CUDA_ERROR_INVALID_HANDLE));

	DCHECK(cuLibraryLoadData(&library, driver_kernels, NULL, NULL, 0, NULL, NULL, 0));
	DCHECK(cuLibraryGetKernel(&kernel, library, "nothing"));
	DCHECK(launch((CUfunction)kernel));
	DCHECK(cuLibraryUnload(library));
	ONLY_OURS(DEXPECT(cuLibraryUnload(library), CUDA_ERROR_INVALID_HANDLE));
	ONLY_OURS(DEXPECT(cuLibraryGetKernel(&kernel, library, "nothing"), CUDA_ERROR_INVALID_HANDLE));

	DCHECK(cuMemAlloc(&memory, 4096));
	DCHECK(cuMemFree(memory));
	DEXPECT(cuMemFree(memory), CUDA_ERROR_INVALID_VALUE);
	DEXPECT(cuMemsetD8(memory, 0, 16), CUDA_ERROR_INVALID_VALUE);
	DEXPECT(cuMemGetAddressRange(&address, &bytes, memory), CUDA_ERROR_NOT_FOUND);
	DCHECK(cuMemAllocHost(&host, 4096));
	DCHECK(cuMemFreeHost(host));
	DEXPECT(cuMemFreeHost(host), CUDA_ERROR_INVALID_VALUE);
	DEXPECT(cuMemHostGetFlags(&flags, host), CUDA_ERROR_INVALID_VALUE);

	prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
	prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	prop.location.id = device;
	DCHECK(cuMemGetAllocationGranularity(&unit, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
	DCHECK(cuMemCreate(&handle, unit, &prop, 0));
	DCHECK(cuMemRelease(handle));
	ONLY_OURS(DEXPECT(cuMemRelease(handle), CUDA_ERROR_INVALID_VALUE));
	DCHECK(cuMemAddressReserve(&address, unit, 0, 0, 0));
	ONLY_OURS(DEXPECT(cuMemMap(address, unit, 0, handle, 0), CUDA_ERROR_INVALID_VALUE));
	DCHECK(cuMemAddressFree(address, unit));
	DEXPECT(cuMemAddressFree(address, unit), CUDA_ERROR_INVALID_VALUE);

	pool_props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
	pool_props.location = prop.location;
	DCHECK(cuMemPoolCreate(&pool, &pool_props));
	DCHECK(cuMemPoolDestroy(pool));

	DCHECK(cuCtxCreate(&made, NULL, 0, device));
	DCHECK(cuCtxDestroy(made));
	ONLY_OURS(DEXPECT(cuCtxSetCurrent(made), CUDA_ERROR_CONTEXT_IS_DESTROYED));
	ONLY_OURS(DEXPECT(cuCtxPushCurrent(made), CUDA_ERROR_CONTEXT_IS_DESTROYED));
	ONLY_OURS(DEXPECT(cuCtxDestroy(made), CUDA_ERROR_CONTEXT_IS_DESTROYED));
	DCHECK(cuCtxGetDevice(&of));
	REQUIRE(of == device, "%d", of);
	return verified("handles after their end");
}
