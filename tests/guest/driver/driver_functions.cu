// SPDX-License-Identifier: GPL-2.0-or-later
/* Attributes of functions, and how many blocks fit on a multiprocessor. */
#include "driver.h"

static size_t CUDA_CB four_per_thread(int block)
{
	return (size_t)block * 4;
}

static int get(CUfunction_attribute which, CUfunction function)
{
	int value = -1;

	DCHECK(cuFuncGetAttribute(&value, which, function));
	return value;
}

int main()
{
	CUdevice device = driver_start();
	CUmodule module = driver_module();
	CUfunction sums = driver_function(module, "block_sums");
	int blocks, grid, block, processors, value;
	CUfunctionLoadingState state;
	size_t bytes;

	REQUIRE(get(CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, sums) >= 32, "threads");
	REQUIRE(get(CU_FUNC_ATTRIBUTE_NUM_REGS, sums) > 0, "registers");
	REQUIRE(get(CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, sums) == 0, "shared");
	REQUIRE(get(CU_FUNC_ATTRIBUTE_PTX_VERSION, sums) == 75, "PTX");
	REQUIRE(get(CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET, sums) == 0, "clusters");
	DCHECK(cuFuncSetAttribute(sums, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 40000));
	REQUIRE(get(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, sums) == 40000, "dynamic");
	DEXPECT(cuFuncSetAttribute(sums, CU_FUNC_ATTRIBUTE_NUM_REGS, 10), CUDA_ERROR_INVALID_VALUE);
	DEXPECT(cuFuncGetAttribute(&value, (CUfunction_attribute)1000, sums),
		CUDA_ERROR_INVALID_VALUE);
	DEXPECT(cuFuncGetAttribute(NULL, CU_FUNC_ATTRIBUTE_NUM_REGS, sums),
		CUDA_ERROR_INVALID_VALUE);
	DEXPECT(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_NUM_REGS, NULL),
		CUDA_ERROR_INVALID_HANDLE);
	DCHECK(cuFuncSetCacheConfig(sums, CU_FUNC_CACHE_PREFER_L1));
	DCHECK(cuFuncIsLoaded(&state, sums));
	REQUIRE(state == CU_FUNCTION_LOADING_STATE_LOADED, "%d", (int)state);
	DCHECK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, sums, 128, 0));
	REQUIRE(blocks > 0, "%d", blocks);
	DCHECK(cuOccupancyAvailableDynamicSMemPerBlock(&bytes, sums, 1, 128));
	REQUIRE(bytes > 0, "%zu", bytes);
	DCHECK(cuOccupancyMaxPotentialBlockSize(&grid, &block, sums, NULL, 0, 0));
	DCHECK(cuDeviceGetAttribute(&processors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device));
	REQUIRE(block >= 32 && grid > 0 && grid % processors == 0, "%d %d", grid, block);
	DCHECK(cuOccupancyMaxPotentialBlockSize(&grid, &block, sums, NULL, 0, 100));
	REQUIRE(block <= 100, "%d", block);
	DCHECK(cuOccupancyMaxPotentialBlockSize(&grid, &block, sums, four_per_thread, 0, 0));
	REQUIRE(block >= 32, "%d", block);
	DEXPECT(cuOccupancyMaxActiveBlocksPerMultiprocessor(NULL, sums, 128, 0),
		CUDA_ERROR_INVALID_VALUE);
	DEXPECT(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, sums, 0, 0),
		CUDA_ERROR_INVALID_VALUE);
	DCHECK(cuModuleUnload(module));
	return verified("attributes and occupancy");
}
