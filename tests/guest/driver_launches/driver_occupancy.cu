// SPDX-License-Identifier: GPL-2.0-or-later
/* Occupancy: blocks by threads and shared memory, sizes with and without a limit, clusters, wrong
 * values. */
#include "driver.h"

static size_t CUDA_CB none(int)
{
	return 0;
}

/* So much that only small blocks fit. */
static size_t CUDA_CB much_for_large(int block)
{
	return block > 64 ? (size_t)1 << 30 : 0;
}

static void wrong(CUfunction function)
{
	CUlaunchConfig config = {};
	int number, grid, block;
	size_t bytes;

	DEXPECT(cuOccupancyMaxActiveBlocksPerMultiprocessor(&number, function, 0, 0),
		CUDA_ERROR_INVALID_VALUE);
	DEXPECT(cuOccupancyMaxActiveBlocksPerMultiprocessor(&number, function, -1, 0),
		CUDA_ERROR_INVALID_VALUE);
	DEXPECT(cuOccupancyMaxActiveBlocksPerMultiprocessor(NULL, function, 32, 0),
		CUDA_ERROR_INVALID_VALUE);
	DEXPECT(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&number, function, 32, 0, 8),
		CUDA_ERROR_INVALID_VALUE);
	DEXPECT(cuOccupancyMaxPotentialBlockSize(NULL, &block, function, none, 0, 0),
		CUDA_ERROR_INVALID_VALUE);
	DEXPECT(cuOccupancyMaxPotentialBlockSize(&grid, NULL, function, none, 0, 0),
		CUDA_ERROR_INVALID_VALUE);
	DEXPECT(cuOccupancyMaxPotentialBlockSizeWithFlags(&grid, &block, function, none, 0, 0, 8),
		CUDA_ERROR_INVALID_VALUE);
	ONLY_OURS(DEXPECT(cuOccupancyAvailableDynamicSMemPerBlock(NULL, function, 1, 32),
			  CUDA_ERROR_INVALID_VALUE));
	DEXPECT(cuOccupancyAvailableDynamicSMemPerBlock(&bytes, function, 1, 0),
		CUDA_ERROR_INVALID_VALUE);
	DEXPECT(cuOccupancyMaxActiveClusters(&number, function, NULL), CUDA_ERROR_INVALID_VALUE);
	DEXPECT(cuOccupancyMaxActiveClusters(NULL, function, &config), CUDA_ERROR_INVALID_VALUE);
}

int main()
{
	CUdevice device = driver_start();
	CUmodule module = driver_module();
	CUfunction sums = driver_function(module, "block_sums");
	int small, large, most, threads, per_sm, grid, block, blocks, processors;
	size_t bytes, fewer;

	wrong(sums);
	DCHECK(cuDeviceGetAttribute(&per_sm, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR,
				    device));
	DCHECK(cuDeviceGetAttribute(&most, CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR,
				    device));
	DCHECK(cuDeviceGetAttribute(&processors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device));
	DCHECK(cuFuncGetAttribute(&threads, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, sums));
	DCHECK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&small, sums, 32, 0));
	DCHECK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&large, sums, 1024, 0));
	REQUIRE(small <= most && large >= 1 && large <= small, "%d %d of %d", large, small, most);
	REQUIRE(large * 1024 <= per_sm, "%d blocks", large);
	DCHECK(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
		&blocks, sums, 32, 0, CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE));
	REQUIRE(blocks == small, "%d", blocks);
	/* Shared memory of a third of a processor's: at most three blocks. */
	DCHECK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, sums, 32, 40 << 10));
	REQUIRE(blocks >= 1 && blocks < small, "%d", blocks);
	/* More threads than a block may have: none. */
	DCHECK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, sums, threads + 1, 0));
	REQUIRE(!blocks, "%d", blocks);
	DCHECK(cuOccupancyMaxPotentialBlockSize(&grid, &block, sums, none, 0, 0));
	REQUIRE(block % 32 == 0 && block <= threads && grid % processors == 0, "%d %d", grid,
		block);
	DCHECK(cuOccupancyMaxPotentialBlockSizeWithFlags(&grid, &block, sums, none, 0, 96,
							 CU_OCCUPANCY_DEFAULT));
	REQUIRE(block <= 96, "%d", block);
	DCHECK(cuOccupancyMaxPotentialBlockSize(&grid, &block, sums, much_for_large, 0, 0));
	REQUIRE(block <= 64, "%d", block);
	DCHECK(cuOccupancyAvailableDynamicSMemPerBlock(&bytes, sums, 1, 32));
	DCHECK(cuOccupancyAvailableDynamicSMemPerBlock(&fewer, sums, 16, 32));
	REQUIRE(bytes >= 48 << 10 && fewer && fewer < bytes, "%zu %zu", bytes, fewer);
	DCHECK(cuModuleUnload(module));
	return verified("how many blocks fit");
}
