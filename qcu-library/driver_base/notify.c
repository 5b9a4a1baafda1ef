// SPDX-License-Identifier: LGPL-2.1-or-later
/* Logs of errors and messages about a device, and settings of tools that do not exist here. */
#include "qcu-library/driver_base/driver.h"

CUresult cuLogsRegisterCallback(CUlogsCallback callback, void *data, CUlogsCallbackHandle *handle)
{
	return QCUL_RUNTIME(cudaLogsRegisterCallback((cudaLogsCallback_t)(void *)callback, data,
						     (cudaLogsCallbackHandle *)handle));
}

CUresult cuLogsUnregisterCallback(CUlogsCallbackHandle handle)
{
	return QCUL_RUNTIME(cudaLogsUnregisterCallback((cudaLogsCallbackHandle)handle));
}

CUresult cuLogsCurrent(CUlogIterator *iterator, unsigned int flags)
{
	return QCUL_RUNTIME(cudaLogsCurrent((cudaLogIterator *)iterator, flags));
}

CUresult cuLogsDumpToFile(CUlogIterator *iterator, const char *path, unsigned int flags)
{
	return QCUL_RUNTIME(cudaLogsDumpToFile((cudaLogIterator *)iterator, path, flags));
}

CUresult cuLogsDumpToMemory(CUlogIterator *iterator, char *buffer, size_t *size, unsigned int flags)
{
	return QCUL_RUNTIME(cudaLogsDumpToMemory((cudaLogIterator *)iterator, buffer, size, flags));
}

CUresult cuDeviceRegisterAsyncNotification(CUdevice device, CUasyncCallback callback, void *data,
					   CUasyncCallbackHandle *handle)
{
	return QCUL_RUNTIME(
		cudaDeviceRegisterAsyncNotification(device, (cudaAsyncCallback)(void *)callback,
						    data, (cudaAsyncCallbackHandle_t *)handle));
}

CUresult cuDeviceUnregisterAsyncNotification(CUdevice device, CUasyncCallbackHandle handle)
{
	return QCUL_RUNTIME(
		cudaDeviceUnregisterAsyncNotification(device, (cudaAsyncCallbackHandle_t)handle));
}
