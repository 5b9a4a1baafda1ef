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

CUresult cuMemAllocAsync(CUdeviceptr *address, size_t size, CUstream stream)
{
	return QCUL_RUNTIME(cudaMallocAsync((void **)address, size, stream));
}

CUresult cuMemAllocFromPoolAsync(CUdeviceptr *address, size_t size, CUmemoryPool pool,
				 CUstream stream)
{
	return QCUL_RUNTIME(cudaMallocFromPoolAsync((void **)address, size, pool, stream));
}

CUresult cuMemFreeAsync(CUdeviceptr address, CUstream stream)
{
	return QCUL_RUNTIME(cudaFreeAsync(qcul_driver_ptr(address), stream));
}

CUresult cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *props)
{
	return QCUL_RUNTIME(cudaMemPoolCreate(pool, (const struct cudaMemPoolProps *)props));
}

CUresult cuMemPoolDestroy(CUmemoryPool pool)
{
	return QCUL_RUNTIME(cudaMemPoolDestroy(pool));
}

CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void *value)
{
	return QCUL_RUNTIME(cudaMemPoolSetAttribute(pool, (enum cudaMemPoolAttr)attribute, value));
}

CUresult cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void *value)
{
	return QCUL_RUNTIME(cudaMemPoolGetAttribute(pool, (enum cudaMemPoolAttr)attribute, value));
}

CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t keep)
{
	return QCUL_RUNTIME(cudaMemPoolTrimTo(pool, keep));
}

CUresult cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc *list, size_t count)
{
	return QCUL_RUNTIME(
		cudaMemPoolSetAccess(pool, (const struct cudaMemAccessDesc *)list, count));
}

CUresult cuMemPoolGetAccess(CUmemAccess_flags *flags, CUmemoryPool pool, CUmemLocation *location)
{
	return QCUL_RUNTIME(cudaMemPoolGetAccess((enum cudaMemAccessFlags *)flags, pool,
						 (struct cudaMemLocation *)location));
}

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

CUresult cuMemPoolExportPointer(CUmemPoolPtrExportData *data, CUdeviceptr address)
{
	return QCUL_RUNTIME(cudaMemPoolExportPointer((struct cudaMemPoolPtrExportData *)data,
						     qcul_driver_ptr(address)));
}

CUresult cuMemPoolImportPointer(CUdeviceptr *address, CUmemoryPool pool,
				CUmemPoolPtrExportData *data)
{
	return QCUL_RUNTIME(cudaMemPoolImportPointer((void **)address, pool,
						     (struct cudaMemPoolPtrExportData *)data));
}

/* ---- the pools of a device or a place ---- */

CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *pool, CUdevice device)
{
	return QCUL_RUNTIME(cudaDeviceGetDefaultMemPool(pool, device));
}

CUresult cuDeviceGetMemPool(CUmemoryPool *pool, CUdevice device)
{
	return QCUL_RUNTIME(cudaDeviceGetMemPool(pool, device));
}

CUresult cuDeviceSetMemPool(CUdevice device, CUmemoryPool pool)
{
	return QCUL_RUNTIME(qcul_device_check(device) ? cudaErrorInvalidValue
						      : cudaDeviceSetMemPool(device, pool));
}

CUresult cuMemGetDefaultMemPool(CUmemoryPool *pool, CUmemLocation *location,
				CUmemAllocationType type)
{
	return QCUL_RUNTIME(cudaMemGetDefaultMemPool(pool, (struct cudaMemLocation *)location,
						     (enum cudaMemAllocationType)type));
}

CUresult cuMemGetMemPool(CUmemoryPool *pool, CUmemLocation *location, CUmemAllocationType type)
{
	return QCUL_RUNTIME(cudaMemGetMemPool(pool, (struct cudaMemLocation *)location,
					      (enum cudaMemAllocationType)type));
}

CUresult cuMemSetMemPool(CUmemLocation *location, CUmemAllocationType type, CUmemoryPool pool)
{
	return QCUL_RUNTIME(cudaMemSetMemPool((struct cudaMemLocation *)location,
					      (enum cudaMemAllocationType)type, pool));
}

/* ---- memory of graphs ---- */

CUresult cuDeviceGetGraphMemAttribute(CUdevice device, CUgraphMem_attribute attribute, void *value)
{
	return QCUL_RUNTIME(cudaDeviceGetGraphMemAttribute(
		device, (enum cudaGraphMemAttributeType)attribute, value));
}

CUresult cuDeviceSetGraphMemAttribute(CUdevice device, CUgraphMem_attribute attribute, void *value)
{
	return QCUL_RUNTIME(cudaDeviceSetGraphMemAttribute(
		device, (enum cudaGraphMemAttributeType)attribute, value));
}

CUresult cuDeviceGraphMemTrim(CUdevice device)
{
	return QCUL_RUNTIME(cudaDeviceGraphMemTrim(device));
}
