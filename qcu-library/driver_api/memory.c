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

/* A location is the same in both. */
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
	       "locations");

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

/* ---- of other processes ---- */

_Static_assert(sizeof(CUipcMemHandle) == sizeof(cudaIpcMemHandle_t) &&
		       sizeof(CUipcEventHandle) == sizeof(cudaIpcEventHandle_t),
	       "handles");

CUresult cuIpcOpenMemHandle_v2(CUdeviceptr *address, CUipcMemHandle handle, unsigned int flags)
{
	cudaIpcMemHandle_t same;

	memcpy(&same, &handle, sizeof(same));
	return QCUL_RUNTIME(cudaIpcOpenMemHandle((void **)address, same, flags));
}

CUresult cuIpcOpenEventHandle(CUevent *event, CUipcEventHandle handle)
{
	cudaIpcEventHandle_t same;

	memcpy(&same, &handle, sizeof(same));
	return QCUL_RUNTIME(cudaIpcOpenEventHandle(event, same));
}
