// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Kernels and functions. A kernel has one handle on all devices, so a CUfunction is the same as its
 * CUkernel.
 */
#include "qcu-library/driver_base/driver.h"
#include "qcu-library/module/module.h"

/* ---- attributes ---- */

static cudaError_t attribute(int *value, CUfunction_attribute which, const void *function)
{
	struct cudaFuncAttributes a;
	cudaError_t err;

	if (!value || (unsigned int)which >= CU_FUNC_ATTRIBUTE_MAX)
		return cudaErrorInvalidValue;
	err = cudaFuncGetAttributes(&a, function);
	if (err)
		return err;
	switch (which) {
	case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
		*value = a.maxThreadsPerBlock;
		break;
	case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
		*value = (int)a.sharedSizeBytes;
		break;
	case CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES:
		*value = (int)a.constSizeBytes;
		break;
	case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
		*value = (int)a.localSizeBytes;
		break;
	case CU_FUNC_ATTRIBUTE_NUM_REGS:
		*value = a.numRegs;
		break;
	case CU_FUNC_ATTRIBUTE_PTX_VERSION:
		*value = a.ptxVersion;
		break;
	case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
		*value = a.binaryVersion;
		break;
	case CU_FUNC_ATTRIBUTE_CACHE_MODE_CA:
		*value = a.cacheModeCA;
		break;
	case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
		*value = a.maxDynamicSharedSizeBytes;
		break;
	case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
		*value = a.preferredShmemCarveout;
		break;
	case CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET:
		*value = a.clusterDimMustBeSet;
		break;
	case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
		*value = a.requiredClusterWidth;
		break;
	case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
		*value = a.requiredClusterHeight;
		break;
	case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH:
		*value = a.requiredClusterDepth;
		break;
	case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
		*value = a.nonPortableClusterSizeAllowed;
		break;
	default:
		*value = a.clusterSchedulingPolicyPreference;
	}
	return cudaSuccess;
}

CUresult cuFuncGetAttribute(int *value, CUfunction_attribute which, CUfunction function)
{
	return QCUL_RUNTIME(attribute(value, which, function));
}

static cudaError_t load_function_kernel(const void *function, struct CUkern_st **kernel)
{
	cudaError_t err = qcul_ready();

	if (!err)
		err = qcul_kernel(function, kernel);
	return err ? err : qcul_kernel_load(*kernel);
}

/* Banks have long had a single width. A program can ask for another width, without effect. */
CUresult cuFuncSetSharedMemConfig(CUfunction function, CUsharedconfig config)
{
	struct CUkern_st *kernel;
	CUresult result = QCUL_RUNTIME(load_function_kernel(function, &kernel));

	if (!result && (unsigned int)config > CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE)
		result = CUDA_ERROR_INVALID_VALUE;
	return result;
}

CUresult cuFuncGetName(const char **name, CUfunction function)
{
	return QCUL_RUNTIME(function ? cudaFuncGetName(name, function) : cudaErrorInvalidValue);
}

CUresult cuFuncGetParamInfo(CUfunction function, size_t index, size_t *offset, size_t *size)
{
	return QCUL_RUNTIME(function ? cudaFuncGetParamInfo(function, index, offset, size)
				     : cudaErrorInvalidValue);
}

CUresult cuFuncLoad(CUfunction function)
{
	struct CUkern_st *kernel;

	return QCUL_RUNTIME(load_function_kernel(function, &kernel));
}

CUresult cuFuncIsLoaded(CUfunctionLoadingState *state, CUfunction function)
{
	struct CUkern_st *kernel;
	CUresult result =
		QCUL_RUNTIME(state ? qcul_kernel(function, &kernel) : cudaErrorInvalidValue);

	if (!result)
		*state = atomic_load(&kernel->ready) == qcul_epoch()
				 ? CU_FUNCTION_LOADING_STATE_LOADED
				 : CU_FUNCTION_LOADING_STATE_UNLOADED;
	return result;
}

/* ---- kernels ---- */

CUresult cuKernelGetFunction(CUfunction *function, CUkernel kernel)
{
	struct CUkern_st *k;
	CUresult result =
		QCUL_RUNTIME(function ? load_function_kernel(kernel, &k) : cudaErrorInvalidValue);

	if (!result)
		*function = (CUfunction)k;
	return result;
}

CUresult cuKernelGetAttribute(int *value, CUfunction_attribute which, CUkernel kernel,
			      CUdevice device)
{
	CUresult result = qcul_driver_device_check(device);

	return result ? result : QCUL_ON_DEVICE(device, attribute(value, which, kernel));
}

CUresult cuKernelSetAttribute(CUfunction_attribute which, int value, CUkernel kernel,
			      CUdevice device)
{
	CUresult result = qcul_driver_device_check(device);

	return result ? result
		      : QCUL_ON_DEVICE(device,
				       cudaFuncSetAttribute(kernel, (enum cudaFuncAttribute)which,
							    value));
}

CUresult cuKernelSetCacheConfig(CUkernel kernel, CUfunc_cache config, CUdevice device)
{
	CUresult result = qcul_driver_device_check(device);

	return result ? result
		      : QCUL_ON_DEVICE(device,
				       cudaFuncSetCacheConfig(kernel, (enum cudaFuncCache)config));
}

CUresult cuKernelGetName(const char **name, CUkernel kernel)
{
	return QCUL_RUNTIME(kernel ? cudaFuncGetName(name, kernel) : cudaErrorInvalidValue);
}

CUresult cuKernelGetParamInfo(CUkernel kernel, size_t index, size_t *offset, size_t *size)
{
	return QCUL_RUNTIME(kernel ? cudaFuncGetParamInfo(kernel, index, offset, size)
				   : cudaErrorInvalidValue);
}

/* ---- occupancy ---- */

struct best {
	int blocks, size, threads;
};

/* Tries block sizes, the largest first. The first that fills a multiprocessor ends the search. */
static CUresult search(struct best *best, CUfunction function, CUoccupancyB2DSize dynamic_of,
		       size_t dynamic, int limit, unsigned int flags)
{
	int device = qcul_driver_current() ? qcul_self.device : 0, warp, most, full, size;
	CUresult result = CUDA_SUCCESS;

	if (cudaDeviceGetAttribute(&warp, cudaDevAttrWarpSize, device) ||
	    cudaDeviceGetAttribute(&full, cudaDevAttrMaxThreadsPerMultiProcessor, device))
		return CUDA_ERROR_UNKNOWN;
	result = cuFuncGetAttribute(&most, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, function);
	if (result)
		return result;
	if (!limit || limit > most)
		limit = most;
	*best = (struct best){0};
	for (size = (limit + warp - 1) / warp * warp; size > 0 && best->threads < full;
	     size -= warp) {
		int block = size < limit ? size : limit, blocks;

		size_t shared = dynamic_of ? dynamic_of(block) : dynamic;

		result = QCUL_RUNTIME(cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
			&blocks, function, block, shared, flags));
		if (result)
			return result;
		if (blocks * block > best->threads)
			*best = (struct best){blocks, block, blocks * block};
	}
	return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxPotentialBlockSizeWithFlags(int *grid, int *block, CUfunction function,
						   CUoccupancyB2DSize dynamic_of, size_t dynamic,
						   int limit, unsigned int flags)
{
	struct best best;
	CUresult result;
	int count;

	if (!grid || !block || limit < 0)
		return CUDA_ERROR_INVALID_VALUE;
	result = search(&best, function, dynamic_of, dynamic, limit, flags);
	if (!result)
		result = QCUL_RUNTIME(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount,
							     qcul_self.device));
	if (result)
		return result;
	*grid = best.blocks * count;
	*block = best.size;
	return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxPotentialBlockSize(int *grid, int *block, CUfunction function,
					  CUoccupancyB2DSize dynamic_of, size_t dynamic, int limit)
{
	return cuOccupancyMaxPotentialBlockSizeWithFlags(grid, block, function, dynamic_of, dynamic,
							 limit, 0);
}
