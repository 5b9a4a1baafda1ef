// SPDX-License-Identifier: LGPL-2.1-or-later
/* Memory: on devices, pinned, managed, and of other processes. */
#include <string.h>

#include "qcu-library/driver_base/driver.h"

/* Unlike the runtime, the driver API refuses blocks of no bytes, and to free nothing. */
static CUresult allocated(cudaError_t (*alloc)(void **ptr, size_t size), void **ptr, size_t size)
{
	return QCUL_RUNTIME(ptr && size ? alloc(ptr, size) : cudaErrorInvalidValue);
}

/* Pinned memory of no bytes is no error, and has no address. */
static cudaError_t give_no_pinned_memory(void **ptr)
{
	*ptr = NULL;
	return cudaSuccess;
}

/* ---- of a device ---- */

CUresult cuMemGetInfo_v2(size_t *free_bytes, size_t *total_bytes)
{
	return QCUL_RUNTIME(cudaMemGetInfo(free_bytes, total_bytes));
}

CUresult cuMemAlloc_v2(CUdeviceptr *address, size_t size)
{
	return allocated(cudaMalloc, (void **)address, size);
}

CUresult cuMemAllocPitch_v2(CUdeviceptr *address, size_t *pitch, size_t width, size_t height,
			    unsigned int element)
{
	if (!address || !width || !height || (element != 4 && element != 8 && element != 16))
		return CUDA_ERROR_INVALID_VALUE;
	return QCUL_RUNTIME(cudaMallocPitch((void **)address, pitch, width, height));
}

CUresult cuMemFree_v2(CUdeviceptr address)
{
	return QCUL_RUNTIME(cudaFree(qcul_driver_ptr(address)));
}

/* ---- pinned ---- */

CUresult cuMemAllocHost_v2(void **ptr, size_t size)
{
	return ptr && !size ? QCUL_RUNTIME(give_no_pinned_memory(ptr))
			    : allocated(cudaMallocHost, ptr, size);
}

CUresult cuMemHostAlloc(void **ptr, size_t size, unsigned int flags)
{
	return QCUL_RUNTIME(!ptr   ? cudaErrorInvalidValue
			    : size ? cudaHostAlloc(ptr, size, flags)
				   : give_no_pinned_memory(ptr));
}

CUresult cuMemFreeHost(void *ptr)
{
	return QCUL_RUNTIME(cudaFreeHost(ptr));
}

CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *address, void *ptr, unsigned int flags)
{
	return QCUL_RUNTIME(cudaHostGetDevicePointer((void **)address, ptr, flags));
}

CUresult cuMemHostGetFlags(unsigned int *flags, void *ptr)
{
	return QCUL_RUNTIME(cudaHostGetFlags(flags, ptr));
}

CUresult cuMemHostRegister_v2(void *ptr, size_t size, unsigned int flags)
{
	return QCUL_RUNTIME(cudaHostRegister(ptr, size, flags));
}

CUresult cuMemHostUnregister(void *ptr)
{
	return QCUL_RUNTIME(cudaHostUnregister(ptr));
}

/* ---- managed ---- */

CUresult cuMemAllocManaged(CUdeviceptr *address, size_t size, unsigned int flags)
{
	return QCUL_RUNTIME(address && size ? cudaMallocManaged((void **)address, size, flags)
					    : cudaErrorInvalidValue);
}

static struct cudaMemLocation location_of(CUdevice device)
{
	struct cudaMemLocation location = {.type = cudaMemLocationTypeDevice, .id = device};

	if (device == CU_DEVICE_CPU)
		location = (struct cudaMemLocation){.type = cudaMemLocationTypeHost};
	return location;
}

/* A place is the same in both. */
static struct cudaMemLocation converted(CUmemLocation location)
{
	return (struct cudaMemLocation){
		.type = (enum cudaMemLocationType)location.type,
		.id = location.id,
	};
}
_Static_assert((int)CU_MEM_LOCATION_TYPE_DEVICE == (int)cudaMemLocationTypeDevice &&
		       (int)CU_MEM_LOCATION_TYPE_HOST == (int)cudaMemLocationTypeHost &&
		       (int)CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT ==
			       (int)cudaMemLocationTypeHostNumaCurrent &&
		       sizeof(CUmemLocation) == sizeof(struct cudaMemLocation),
	       "places");

CUresult cuMemAdvise_v2(CUdeviceptr address, size_t size, CUmem_advise advice,
			CUmemLocation location)
{
	return QCUL_RUNTIME(cudaMemAdvise(qcul_driver_ptr(address), size,
					  (enum cudaMemoryAdvise)advice, converted(location)));
}

CUresult cuMemAdvise(CUdeviceptr address, size_t size, CUmem_advise advice, CUdevice device)
{
	return QCUL_RUNTIME(cudaMemAdvise(qcul_driver_ptr(address), size,
					  (enum cudaMemoryAdvise)advice, location_of(device)));
}

CUresult cuMemPrefetchAsync_v2(CUdeviceptr address, size_t size, CUmemLocation location,
			       unsigned int flags, CUstream stream)
{
	return QCUL_RUNTIME(cudaMemPrefetchAsync(qcul_driver_ptr(address), size,
						 converted(location), flags, stream));
}

CUresult cuMemPrefetchAsync(CUdeviceptr address, size_t size, CUdevice device, CUstream stream)
{
	return QCUL_RUNTIME(cudaMemPrefetchAsync(qcul_driver_ptr(address), size,
						 location_of(device), 0, stream));
}

CUresult cuMemPrefetchBatchAsync(CUdeviceptr *addresses, size_t *sizes, size_t count,
				 CUmemLocation *locations, size_t *first, size_t location_count,
				 unsigned long long flags, CUstream stream)
{
	return QCUL_RUNTIME(cudaMemPrefetchBatchAsync((void **)addresses, sizes, count,
						      (struct cudaMemLocation *)locations, first,
						      location_count, flags, stream));
}

CUresult cuMemDiscardBatchAsync(CUdeviceptr *addresses, size_t *sizes, size_t count,
				unsigned long long flags, CUstream stream)
{
	return QCUL_RUNTIME(
		cudaMemDiscardBatchAsync((void **)addresses, sizes, count, flags, stream));
}

CUresult cuMemDiscardAndPrefetchBatchAsync(CUdeviceptr *addresses, size_t *sizes, size_t count,
					   CUmemLocation *locations, size_t *first,
					   size_t location_count, unsigned long long flags,
					   CUstream stream)
{
	return QCUL_RUNTIME(cudaMemDiscardAndPrefetchBatchAsync(
		(void **)addresses, sizes, count, (struct cudaMemLocation *)locations, first,
		location_count, flags, stream));
}

CUresult cuMemRangeGetAttribute(void *data, size_t size, CUmem_range_attribute attribute,
				CUdeviceptr address, size_t count)
{
	return QCUL_RUNTIME(cudaMemRangeGetAttribute(data, size,
						     (enum cudaMemRangeAttribute)attribute,
						     qcul_driver_ptr(address), count));
}

CUresult cuMemRangeGetAttributes(void **data, size_t *sizes, CUmem_range_attribute *attributes,
				 size_t attribute_count, CUdeviceptr address, size_t count)
{
	return QCUL_RUNTIME(
		cudaMemRangeGetAttributes(data, sizes, (enum cudaMemRangeAttribute *)attributes,
					  attribute_count, qcul_driver_ptr(address), count));
}

/* ---- of other processes ---- */

_Static_assert(sizeof(CUipcMemHandle) == sizeof(cudaIpcMemHandle_t) &&
		       sizeof(CUipcEventHandle) == sizeof(cudaIpcEventHandle_t),
	       "handles");

CUresult cuIpcGetMemHandle(CUipcMemHandle *handle, CUdeviceptr address)
{
	return QCUL_RUNTIME(
		cudaIpcGetMemHandle((cudaIpcMemHandle_t *)handle, qcul_driver_ptr(address)));
}

CUresult cuIpcOpenMemHandle_v2(CUdeviceptr *address, CUipcMemHandle handle, unsigned int flags)
{
	cudaIpcMemHandle_t same;

	memcpy(&same, &handle, sizeof(same));
	return QCUL_RUNTIME(cudaIpcOpenMemHandle((void **)address, same, flags));
}

CUresult cuIpcCloseMemHandle(CUdeviceptr address)
{
	return QCUL_RUNTIME(cudaIpcCloseMemHandle(qcul_driver_ptr(address)));
}

CUresult cuIpcGetEventHandle(CUipcEventHandle *handle, CUevent event)
{
	return QCUL_RUNTIME(cudaIpcGetEventHandle((cudaIpcEventHandle_t *)handle, event));
}

CUresult cuIpcOpenEventHandle(CUevent *event, CUipcEventHandle handle)
{
	cudaIpcEventHandle_t same;

	memcpy(&same, &handle, sizeof(same));
	return QCUL_RUNTIME(cudaIpcOpenEventHandle(event, same));
}
