// SPDX-License-Identifier: LGPL-2.1-or-later
/* Devices: a CUdevice is the runtime's number of the device. */
#include <string.h>

#include "qcu-library/device/device.h"
#include "qcu-library/driver_base/driver.h"

CUresult qcul_driver_wait(int device)
{
	return QCUL_ON_DEVICE(device, cudaDeviceSynchronize());
}

static CUresult describe_device(CUdevice device, const struct qcu_device_desc **desc)
{
	return QCUL_RUNTIME(qcul_device_desc(device, desc));
}

CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
	CUresult result = QCUL_RUNTIME(device ? qcul_device_check(ordinal) : cudaErrorInvalidValue);

	if (!result)
		*device = ordinal;
	return result;
}

CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device)
{
	return QCUL_RUNTIME(value ? qcul_device_attr(device, (enum cudaDeviceAttr)attribute, value)
				  : cudaErrorInvalidValue);
}

CUresult cuDeviceGetName(char *name, int len, CUdevice device)
{
	const struct qcu_device_desc *desc;
	CUresult result = describe_device(device, &desc);
	size_t n;

	if (result)
		return result;
	if (!name || len <= 0)
		return CUDA_ERROR_INVALID_VALUE;
	n = strnlen(desc->name, sizeof(desc->name) - 1);
	if (n >= (size_t)len)
		n = (size_t)len - 1;
	memcpy(name, desc->name, n);
	name[n] = '\0';
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice device)
{
	const struct qcu_device_desc *desc;
	CUresult result = describe_device(device, &desc);

	if (!result && !uuid)
		result = CUDA_ERROR_INVALID_VALUE;
	if (!result)
		memcpy(uuid->bytes, desc->uuid, sizeof(uuid->bytes));
	return result;
}

/* Only Windows has these. */
CUresult cuDeviceGetLuid(char *luid, unsigned int *mask, CUdevice device)
{
	const struct qcu_device_desc *desc;
	CUresult result = describe_device(device, &desc);

	if (!result && (!luid || !mask))
		result = CUDA_ERROR_INVALID_VALUE;
	return result ? result : CUDA_ERROR_NOT_SUPPORTED;
}

CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device)
{
	const struct qcu_device_desc *desc;
	CUresult result = describe_device(device, &desc);

	if (!result && !bytes)
		result = CUDA_ERROR_INVALID_VALUE;
	if (!result)
		*bytes = desc->total_mem;
	return result;
}

CUresult cuDeviceComputeCapability(int *major, int *minor, CUdevice device)
{
	const struct qcu_device_desc *desc;
	CUresult result = describe_device(device, &desc);

	if (!result && (!major || !minor))
		result = CUDA_ERROR_INVALID_VALUE;
	if (result)
		return result;
	*major = desc->attr[cudaDevAttrComputeCapabilityMajor];
	*minor = desc->attr[cudaDevAttrComputeCapabilityMinor];
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetProperties(CUdevprop *prop, CUdevice device)
{
	const struct qcu_device_desc *desc;
	CUresult result = describe_device(device, &desc);

	if (!result && !prop)
		result = CUDA_ERROR_INVALID_VALUE;
	if (result)
		return result;
	*prop = (CUdevprop){
		.maxThreadsPerBlock = desc->attr[cudaDevAttrMaxThreadsPerBlock],
		.maxThreadsDim = {desc->attr[cudaDevAttrMaxBlockDimX],
				  desc->attr[cudaDevAttrMaxBlockDimY],
				  desc->attr[cudaDevAttrMaxBlockDimZ]},
		.maxGridSize = {desc->attr[cudaDevAttrMaxGridDimX],
				desc->attr[cudaDevAttrMaxGridDimY],
				desc->attr[cudaDevAttrMaxGridDimZ]},
		.sharedMemPerBlock = desc->attr[cudaDevAttrMaxSharedMemoryPerBlock],
		.totalConstantMemory = desc->attr[cudaDevAttrTotalConstantMemory],
		.SIMDWidth = desc->attr[cudaDevAttrWarpSize],
		.memPitch = desc->attr[cudaDevAttrMaxPitch],
		.regsPerBlock = desc->attr[cudaDevAttrMaxRegistersPerBlock],
		.clockRate = desc->attr[cudaDevAttrClockRate],
		.textureAlign = desc->attr[cudaDevAttrTextureAlignment],
	};
	return CUDA_SUCCESS;
}

/* The number of multiprocessors cannot be limited here. */
CUresult cuDeviceGetExecAffinitySupport(int *supported, CUexecAffinityType type, CUdevice device)
{
	CUresult result = QCUL_RUNTIME(qcul_device_check(device));

	(void)type;
	if (!result && !supported)
		result = CUDA_ERROR_INVALID_VALUE;
	if (!result)
		*supported = 0;
	return result;
}
