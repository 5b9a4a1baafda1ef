// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What a thread can read about itself: indices and sizes in three dimensions, lane, lane masks,
 * warp and number of warps, block of the grid; for a grid and blocks of unusual shapes.
 */
#include "check.h"

struct where {
	uint3 thread, block;
	uint3 block_size, grid_size;
	unsigned int lane, eq, lt, le, gt, ge, warps_at_most, warp_size;
	unsigned int warp, sm, sms;
};

#define READ(name, to) asm volatile("mov.u32 %0, %%" name ";" : "=r"(to))

__global__ void look(where *out)
{
	unsigned int t = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
	unsigned int b = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
	where w;

	w.thread = threadIdx;
	w.block = blockIdx;
	w.block_size = make_uint3(blockDim.x, blockDim.y, blockDim.z);
	w.grid_size = make_uint3(gridDim.x, gridDim.y, gridDim.z);
	w.warp_size = warpSize;
	READ("laneid", w.lane);
	READ("lanemask_eq", w.eq);
	READ("lanemask_lt", w.lt);
	READ("lanemask_le", w.le);
	READ("lanemask_gt", w.gt);
	READ("lanemask_ge", w.ge);
	READ("warpid", w.warp);
	READ("nwarpid", w.warps_at_most);
	READ("smid", w.sm);
	READ("nsmid", w.sms);
	out[b * blockDim.x * blockDim.y * blockDim.z + t] = w;
}

static void test(dim3 grid, dim3 block)
{
	unsigned int threads = block.x * block.y * block.z, n = grid.x * grid.y * grid.z * threads;
	where *out = (where *)malloc(n * sizeof(where)), *dev;

	REQUIRE(out, "out of memory");
	CHECK(cudaMalloc(&dev, n * sizeof(where)));
	CHECK(cudaMemset(dev, 0xff, n * sizeof(where)));
	look<<<grid, block>>>(dev);
	CHECK_LAUNCH();
	CHECK(cudaMemcpy(out, dev, n * sizeof(where), cudaMemcpyDeviceToHost));
	for (unsigned int i = 0; i < n; i++) {
		unsigned int t = i % threads, b = i / threads, lane = t % 32, bit = 1u << lane;
		const where &w = out[i];

		REQUIRE(w.thread.x == t % block.x && w.thread.y == t / block.x % block.y &&
				w.thread.z == t / block.x / block.y,
			"thread %u is %u,%u,%u", i, w.thread.x, w.thread.y, w.thread.z);
		REQUIRE(w.block.x == b % grid.x && w.block.y == b / grid.x % grid.y &&
				w.block.z == b / grid.x / grid.y,
			"thread %u is in block %u,%u,%u", i, w.block.x, w.block.y, w.block.z);
		REQUIRE(w.block_size.x == block.x && w.block_size.y == block.y &&
				w.block_size.z == block.z && w.grid_size.x == grid.x &&
				w.grid_size.y == grid.y && w.grid_size.z == grid.z,
			"thread %u: sizes", i);
		REQUIRE(w.lane == lane && w.warp_size == 32, "thread %u is lane %u of %u", i,
			w.lane, w.warp_size);
		REQUIRE(w.eq == bit && w.lt == bit - 1 && w.le == (bit | (bit - 1)) &&
				w.gt == ~(bit | (bit - 1)) && w.ge == ~(bit - 1),
			"thread %u: masks %08x %08x %08x %08x %08x", i, w.eq, w.lt, w.le, w.gt,
			w.ge);
		REQUIRE(w.warp < w.warps_at_most && w.sm < w.sms, "thread %u: warp %u, sm %u", i,
			w.warp, w.sm);
		/* The machine chooses a warp's number, but all lanes of the warp must agree. */
		REQUIRE(lane == 0 || (w.warp == out[i - 1].warp && w.sm == out[i - 1].sm),
			"thread %u is in another warp", i);
	}
	CHECK(cudaFree(dev));
	free(out);
}

int main(void)
{
	test(1, 1);
	test(3, 100);
	test(dim3(2, 3, 4), dim3(7, 5, 3));
	test(dim3(1, 5, 1), dim3(1, 1, 64));
	return verified("four shapes of grids");
}
