// SPDX-License-Identifier: GPL-2.0-or-later
/* Limits and settings of a context. */
#include <cudaProfiler.h>

#include "driver.h"

int main()
{
	CUdevice device = driver_start();
	CUfunc_cache config;
	size_t value;

	DCHECK(cuCtxGetLimit(&value, CU_LIMIT_STACK_SIZE));
	REQUIRE(value > 0, "%zu", value);
	DCHECK(cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 16 << 20));
	DCHECK(cuCtxGetLimit(&value, CU_LIMIT_MALLOC_HEAP_SIZE));
	REQUIRE(value >= 16 << 20, "%zu", value);
	DEXPECT(cuCtxGetLimit(&value, (CUlimit)1000), CUDA_ERROR_INVALID_VALUE);
	DEXPECT(cuCtxGetLimit(NULL, CU_LIMIT_STACK_SIZE), CUDA_ERROR_INVALID_VALUE);
	DEXPECT(cuCtxSetLimit((CUlimit)1000, 1), CUDA_ERROR_INVALID_VALUE);
	DCHECK(cuCtxSetCacheConfig(CU_FUNC_CACHE_PREFER_SHARED));
	DCHECK(cuCtxGetCacheConfig(&config));
	REQUIRE(config == CU_FUNC_CACHE_PREFER_SHARED, "%d", (int)config);
	DEXPECT(cuCtxSetCacheConfig((CUfunc_cache)17), CUDA_ERROR_INVALID_VALUE);
	DCHECK(cuCtxResetPersistingL2Cache());
	DCHECK(cuDevicePrimaryCtxSetFlags(device, CU_CTX_SCHED_YIELD));
	DEXPECT(cuDevicePrimaryCtxSetFlags(device, CU_CTX_SCHED_YIELD | CU_CTX_SCHED_SPIN),
		CUDA_ERROR_INVALID_VALUE);
	DEXPECT(cuDevicePrimaryCtxSetFlags(1000, 0), CUDA_ERROR_INVALID_DEVICE);
	DCHECK(cuProfilerStart());
	DCHECK(cuProfilerStop());
	return verified("limits and settings");
}
