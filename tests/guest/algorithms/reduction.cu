// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A sum in three steps: each thread over its stride, a warp with __shfl_down_sync, a block
 * through shared memory. In integers, so that the order does not matter. Then the other shuffles
 * and votes, lane by lane.
 */
#include "check.h"

#define THREADS 256

__device__ unsigned long long warp_sum(unsigned long long x)
{
	for (int step = 16; step; step /= 2)
		x += __shfl_down_sync(0xffffffffu, x, step);
	return x;
}

__global__ void reduce(const uint32_t *in, int n, unsigned long long *out)
{
	__shared__ unsigned long long part[THREADS / 32];
	unsigned long long sum = 0;

	for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
		sum += in[i];
	sum = warp_sum(sum);
	if (threadIdx.x % 32 == 0)
		part[threadIdx.x / 32] = sum;
	__syncthreads();
	if (threadIdx.x < 32) {
		sum = warp_sum(threadIdx.x < THREADS / 32 ? part[threadIdx.x] : 0);
		if (threadIdx.x == 0)
			out[blockIdx.x] = sum;
	}
}

struct lane {
	int down, up, across, from_three, down_8;
	unsigned int ballot;
	int all, any;
};

__global__ void lanes(lane *out)
{
	int i = threadIdx.x, x = 100 + i;
	lane l;

	l.down = __shfl_down_sync(0xffffffffu, x, 5);
	l.up = __shfl_up_sync(0xffffffffu, x, 5);
	l.across = __shfl_xor_sync(0xffffffffu, x, 9);
	l.from_three = __shfl_sync(0xffffffffu, x, 3);
	l.down_8 = __shfl_down_sync(0xffffffffu, x, 3, 8);
	l.ballot = __ballot_sync(0xffffffffu, i % 3 == 0);
	l.all = __all_sync(0xffffffffu, i < 32);
	l.any = __any_sync(0xffffffffu, i == 40);
	out[i] = l;
}

int main(void)
{
	const int n = 300007, blocks = 9;
	unsigned long long part[blocks], *dev_part, sum = 0, want = 0;
	uint32_t *data = (uint32_t *)malloc(n * sizeof(uint32_t)), *dev;
	lane out[32], *dev_out;

	REQUIRE(data, "out of memory");
	for (int i = 0; i < n; i++) {
		data[i] = scramble(i, 11);
		want += data[i];
	}
	CHECK(cudaMalloc(&dev, n * sizeof(uint32_t)));
	CHECK(cudaMalloc(&dev_part, sizeof(part)));
	CHECK(cudaMemcpy(dev, data, n * sizeof(uint32_t), cudaMemcpyHostToDevice));
	reduce<<<blocks, THREADS>>>(dev, n, dev_part);
	CHECK_LAUNCH();
	CHECK(cudaMemcpy(part, dev_part, sizeof(part), cudaMemcpyDeviceToHost));
	for (int b = 0; b < blocks; b++)
		sum += part[b];
	REQUIRE(sum == want, "%llu, expected %llu", sum, want);

	CHECK(cudaMalloc(&dev_out, sizeof(out)));
	lanes<<<1, 32>>>(dev_out);
	CHECK_LAUNCH();
	CHECK(cudaMemcpy(out, dev_out, sizeof(out), cudaMemcpyDeviceToHost));
	for (int i = 0; i < 32; i++) {
		REQUIRE(out[i].down == 100 + (i + 5 < 32 ? i + 5 : i), "lane %d: %d", i,
			out[i].down);
		REQUIRE(out[i].up == 100 + (i >= 5 ? i - 5 : i), "lane %d: %d", i, out[i].up);
		REQUIRE(out[i].across == 100 + (i ^ 9), "lane %d: %d", i, out[i].across);
		REQUIRE(out[i].from_three == 103, "lane %d: %d", i, out[i].from_three);
		REQUIRE(out[i].down_8 == 100 + (i % 8 + 3 < 8 ? i + 3 : i), "lane %d: %d", i,
			out[i].down_8);
		REQUIRE(out[i].ballot == 0x49249249u && out[i].all == 1 && out[i].any == 0,
			"lane %d: %x, %d, %d", i, out[i].ballot, out[i].all, out[i].any);
	}
	CHECK(cudaFree(dev));
	CHECK(cudaFree(dev_part));
	CHECK(cudaFree(dev_out));
	free(data);
	return verified("a sum of %d numbers and every lane of the shuffles", n);
}
