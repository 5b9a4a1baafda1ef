// SPDX-License-Identifier: LGPL-2.1-or-later
/* What a context is asked for, and its settings. */
#include "qcu-library/driver_base/context.h"

/* What all contexts of this driver say since CUDA 3.2. */
#define API_VERSION 3020

/* The context, or the current one for NULL. */
static CUresult chosen(CUcontext context, struct CUctx_st **out)
{
	int device;
	CUresult result = context ? qcul_driver_device(context, &device) : qcul_driver_ready();

	if (!result)
		*out = context ? context : qcul_driver_current();
	return result;
}

CUresult cuCtxGetDevice(CUdevice *device)
{
	CUresult result = qcul_driver_ready();

	if (!result && !device)
		result = CUDA_ERROR_INVALID_VALUE;
	if (!result)
		*device = qcul_driver_current()->device;
	return result;
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
	CUresult result = qcul_driver_ready();

	if (!result && !flags)
		result = CUDA_ERROR_INVALID_VALUE;
	if (!result)
		*flags = atomic_load(&qcul_driver_current()->flags);
	return result;
}

CUresult cuCtxSetFlags(unsigned int flags)
{
	CUresult result = qcul_driver_ready();

	return result ? result : qcul_driver_flags_set(qcul_driver_current(), flags);
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

CUresult cuCtxSynchronize(void)
{
	return QCUL_READY(cudaDeviceSynchronize());
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
	return QCUL_READY(cudaDeviceSetLimit((enum cudaLimit)limit, value));
}

CUresult cuCtxGetLimit(size_t *value, CUlimit limit)
{
	if ((unsigned int)limit >= CU_LIMIT_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	return QCUL_READY(cudaDeviceGetLimit(value, (enum cudaLimit)limit));
}

CUresult cuCtxGetCacheConfig(CUfunc_cache *config)
{
	return QCUL_READY(cudaDeviceGetCacheConfig((enum cudaFuncCache *)config));
}

CUresult cuCtxSetCacheConfig(CUfunc_cache config)
{
	return QCUL_READY(cudaDeviceSetCacheConfig((enum cudaFuncCache)config));
}

/* Banks have long had a single width. A program can ask for another width, without effect. */
CUresult cuCtxGetSharedMemConfig(CUsharedconfig *config)
{
	CUresult result = qcul_driver_ready();

	if (!result && !config)
		result = CUDA_ERROR_INVALID_VALUE;
	if (!result)
		*config = CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE;
	return result;
}

CUresult cuCtxSetSharedMemConfig(CUsharedconfig config)
{
	CUresult result = qcul_driver_ready();

	if (!result && (unsigned int)config > CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE)
		result = CUDA_ERROR_INVALID_VALUE;
	return result;
}

CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest)
{
	return QCUL_READY(cudaDeviceGetStreamPriorityRange(least, greatest));
}

CUresult cuCtxResetPersistingL2Cache(void)
{
	return QCUL_READY(cudaCtxResetPersistingL2Cache());
}

/* No context has only a part of the multiprocessors. */
CUresult cuCtxGetExecAffinity(CUexecAffinityParam *param, CUexecAffinityType type)
{
	CUresult result = qcul_driver_ready();

	(void)type;
	if (!result && !param)
		result = CUDA_ERROR_INVALID_VALUE;
	return result ? result : CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
}

CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned int flags)
{
	int device;
	CUresult result = qcul_driver_ready();

	if (!result)
		result = qcul_driver_device(peer, &device);
	return result ? result : QCUL_READY(cudaDeviceEnablePeerAccess(device, flags));
}

CUresult cuCtxDisablePeerAccess(CUcontext peer)
{
	int device;
	CUresult result = qcul_driver_ready();

	if (!result)
		result = qcul_driver_device(peer, &device);
	return result ? result : QCUL_READY(cudaDeviceDisablePeerAccess(device));
}

CUresult cuFlushGPUDirectRDMAWrites(CUflushGPUDirectRDMAWritesTarget target,
				    CUflushGPUDirectRDMAWritesScope scope)
{
	return QCUL_READY(
		cudaDeviceFlushGPUDirectRDMAWrites((enum cudaFlushGPUDirectRDMAWritesTarget)target,
						   (enum cudaFlushGPUDirectRDMAWritesScope)scope));
}

/* These do nothing natively either if no profiler is attached. */
CUresult cuProfilerStart(void)
{
	return qcul_driver_ready();
}

CUresult cuProfilerStop(void)
{
	return qcul_driver_ready();
}
