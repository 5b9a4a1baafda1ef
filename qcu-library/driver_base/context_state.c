// SPDX-License-Identifier: LGPL-2.1-or-later
/* What a context is asked for, and its settings. */
#include "qcu-library/driver_base/context.h"

/* What all contexts of this driver say since CUDA 3.2. */
#define API_VERSION 3020

/* The context, or the current one for NULL. */
static CUresult chosen(CUcontext context, struct CUctx_st **out)
{
	int device;
	CUresult result = qcul_driver_device_or_current(context, &device);

	if (!result)
		*out = context ? context : qcul_driver_current();
	return result;
}

CUresult cuCtxGetDevice(CUdevice *device)
{
	if (!device)
		return CUDA_ERROR_INVALID_VALUE;
	*device = qcul_driver_current()->device;
	return CUDA_SUCCESS;
}

CUresult cuCtxGetDevice_v2(CUdevice *device, CUcontext context)
{
	struct CUctx_st *c;
	CUresult result = chosen(context, &c);

	if (!result && !device)
		result = CUDA_ERROR_INVALID_VALUE;
	if (!result)
		*device = c->device;
	return result;
}

CUresult cuCtxGetFlags(unsigned int *flags)
{
	if (!flags)
		return CUDA_ERROR_INVALID_VALUE;
	*flags = atomic_load(&qcul_driver_current()->flags);
	return CUDA_SUCCESS;
}

CUresult cuCtxSetFlags(unsigned int flags)
{
	return qcul_driver_flags_set(qcul_driver_current(), flags);
}

CUresult cuCtxGetId(CUcontext context, unsigned long long *id)
{
	struct CUctx_st *c;
	CUresult result = chosen(context, &c);

	if (!result && !id)
		result = CUDA_ERROR_INVALID_VALUE;
	if (!result)
		*id = c->number;
	return result;
}

CUresult cuCtxGetApiVersion(CUcontext context, unsigned int *version)
{
	struct CUctx_st *c;
	CUresult result = chosen(context, &c);

	if (!result && !version)
		result = CUDA_ERROR_INVALID_VALUE;
	if (!result)
		*version = API_VERSION;
	return result;
}

CUresult cuCtxSynchronize_v2(CUcontext context)
{
	struct CUctx_st *c;
	CUresult result = chosen(context, &c);

	return result ? result : qcul_driver_wait(c->device);
}

CUresult cuCtxSetLimit(CUlimit limit, size_t value)
{
	if ((unsigned int)limit >= CU_LIMIT_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	return QCUL_RUNTIME(cudaDeviceSetLimit((enum cudaLimit)limit, value));
}

CUresult cuCtxGetLimit(size_t *value, CUlimit limit)
{
	if ((unsigned int)limit >= CU_LIMIT_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	return QCUL_RUNTIME(cudaDeviceGetLimit(value, (enum cudaLimit)limit));
}

/* Banks have long had a single width. A program can ask for another width, without effect. */
CUresult cuCtxGetSharedMemConfig(CUsharedconfig *config)
{
	if (!config)
		return CUDA_ERROR_INVALID_VALUE;
	*config = CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE;
	return CUDA_SUCCESS;
}

CUresult cuCtxSetSharedMemConfig(CUsharedconfig config)
{
	return (unsigned int)config > CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE
		       ? CUDA_ERROR_INVALID_VALUE
		       : CUDA_SUCCESS;
}

/* No context has only a part of the multiprocessors. */
CUresult cuCtxGetExecAffinity(CUexecAffinityParam *param, CUexecAffinityType type)
{
	(void)type;
	return param ? CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned int flags)
{
	int device;
	CUresult result = qcul_driver_device(peer, &device);

	return result ? result : QCUL_RUNTIME(cudaDeviceEnablePeerAccess(device, flags));
}

CUresult cuCtxDisablePeerAccess(CUcontext peer)
{
	int device;
	CUresult result = qcul_driver_device(peer, &device);

	return result ? result : QCUL_RUNTIME(cudaDeviceDisablePeerAccess(device));
}

/* These do nothing natively either if no profiler is attached. */
CUresult cuProfilerStart(void)
{
	return CUDA_SUCCESS;
}

CUresult cuProfilerStop(void)
{
	return CUDA_SUCCESS;
}
