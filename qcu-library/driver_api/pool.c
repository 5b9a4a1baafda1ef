// SPDX-License-Identifier: LGPL-2.1-or-later
/* Memory pools, allocations in stream order, and a device's memory of graphs. */
#include "qcu-library/device/device.h"
#include "qcu-library/driver_base/driver.h"

_Static_assert(sizeof(CUmemPoolProps) == sizeof(struct cudaMemPoolProps) &&
		       offsetof(CUmemPoolProps, location) ==
			       offsetof(struct cudaMemPoolProps, location) &&
		       offsetof(CUmemPoolProps, maxSize) ==
			       offsetof(struct cudaMemPoolProps, maxSize) &&
		       sizeof(CUmemAccessDesc) == sizeof(struct cudaMemAccessDesc) &&
		       sizeof(CUmemPoolPtrExportData) == sizeof(struct cudaMemPoolPtrExportData),
	       "pools");

CUresult cuMemPoolExportToShareableHandle(void *handle, CUmemoryPool pool,
					  CUmemAllocationHandleType type, unsigned long long flags)
{
	return QCUL_RUNTIME(flags > UINT32_MAX
				    ? cudaErrorInvalidValue
				    : cudaMemPoolExportToShareableHandle(
					      handle, pool, (enum cudaMemAllocationHandleType)type,
					      (unsigned int)flags));
}

CUresult cuMemPoolImportFromShareableHandle(CUmemoryPool *pool, void *handle,
					    CUmemAllocationHandleType type,
					    unsigned long long flags)
{
	return QCUL_RUNTIME(flags > UINT32_MAX
				    ? cudaErrorInvalidValue
				    : cudaMemPoolImportFromShareableHandle(
					      pool, handle, (enum cudaMemAllocationHandleType)type,
					      (unsigned int)flags));
}

CUresult cuDeviceSetMemPool(CUdevice device, CUmemoryPool pool)
{
	return QCUL_RUNTIME(qcul_device_check(device) ? cudaErrorInvalidValue
						      : cudaDeviceSetMemPool(device, pool));
}
