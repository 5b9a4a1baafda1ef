// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * One kernel, many launch shapes: a grid-stride loop gives the same result for any number of
 * blocks and threads. __launch_bounds__ is obeyed. An empty kernel can be launched, too. In a
 * grid of many rows every block is counted.
 */
#include "check.h"

#define N 4099

__global__ void __launch_bounds__(256, 2) stride(const uint32_t *in, uint32_t *out, int n)
{
	for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
		out[i] = in[i] * 3 + i;
}

__global__ void empty(void)
{
}

__global__ void count_blocks(unsigned int *count)
{
	atomicAdd(count, blockIdx.y + 7 * blockIdx.z + 1);
}

int main(void)
{
	static uint32_t in[N], out[N];
	static const int shapes[][2] = {{1, 1}, {1, 256}, {3, 33}, {16, 256}, {17, 256}, {N, 1}};
	uint32_t *dev, *dev_out, count, want = 0;
	cudaFuncAttributes attr;

	for (int i = 0; i < N; i++)
		in[i] = scramble(i, 33);
	CHECK(cudaMalloc(&dev, sizeof(in)));
	CHECK(cudaMalloc(&dev_out, sizeof(in)));
	CHECK(cudaMemcpy(dev, in, sizeof(in), cudaMemcpyHostToDevice));
	for (auto &s : shapes) {
		CHECK(cudaMemset(dev_out, 0, sizeof(out)));
		stride<<<s[0], s[1]>>>(dev, dev_out, N);
		CHECK_LAUNCH();
		CHECK(cudaMemcpy(out, dev_out, sizeof(out), cudaMemcpyDeviceToHost));
		for (int i = 0; i < N; i++)
			REQUIRE(out[i] == in[i] * 3 + i, "%d x %d: element %d", s[0], s[1], i);
	}
	CHECK(cudaFuncGetAttributes(&attr, stride));
	REQUIRE(attr.maxThreadsPerBlock == 256, "%d threads", attr.maxThreadsPerBlock);
	stride<<<1, 512>>>(dev, dev_out, N);
	REQUIRE(cudaGetLastError() != cudaSuccess, "more threads than __launch_bounds__ allows");

	empty<<<1, 1>>>();
	empty<<<dim3(5, 6, 7), dim3(8, 4, 32)>>>();
	CHECK_LAUNCH();
	CHECK(cudaMemset(dev_out, 0, 4));
	count_blocks<<<dim3(1, 6000, 2), 1>>>(dev_out);
	CHECK_LAUNCH();
	CHECK(cudaMemcpy(&count, dev_out, 4, cudaMemcpyDeviceToHost));
	for (uint32_t y = 0; y < 6000; y++)
		want += 2 * y + 7 + 2;
	REQUIRE(count == want, "blocks add up to %u, expected %u", count, want);
	CHECK(cudaDeviceSynchronize());
	CHECK(cudaFree(dev));
	CHECK(cudaFree(dev_out));
	return verified("six shapes of one launch");
}
