// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Prefix sums in two ways: Hillis and Steele's (inclusive, with two shared arrays that take
 * turns) within blocks, and Blelloch's (exclusive, up and down a tree) over the block totals.
 * Together they scan an array of many blocks.
 */
#include "check.h"

#define THREADS 256

__global__ void scan_blocks(const uint32_t *in, uint32_t *out, uint32_t *total, int n)
{
	__shared__ uint32_t sum[2][THREADS];
	int t = threadIdx.x, i = blockIdx.x * THREADS + t, from = 0;

	sum[0][t] = i < n ? in[i] : 0;
	__syncthreads();
	for (int step = 1; step < THREADS; step *= 2) {
		sum[1 - from][t] = sum[from][t] + (t >= step ? sum[from][t - step] : 0);
		from = 1 - from;
		__syncthreads();
	}
	if (i < n)
		out[i] = sum[from][t];
	if (t == THREADS - 1)
		total[blockIdx.x] = sum[from][t];
}

/* One block, `n` a power of two and twice the threads, in place. */
__global__ void scan_tree(uint32_t *data, int n)
{
	extern __shared__ uint32_t tree[];
	int t = threadIdx.x, stride = 1;

	tree[2 * t] = data[2 * t];
	tree[2 * t + 1] = data[2 * t + 1];
	for (int pairs = n / 2; pairs > 0; pairs /= 2, stride *= 2) {
		__syncthreads();
		if (t < pairs)
			tree[stride * (2 * t + 2) - 1] += tree[stride * (2 * t + 1) - 1];
	}
	if (t == 0)
		tree[n - 1] = 0;
	for (int pairs = 1; pairs < n; pairs *= 2) {
		stride /= 2;
		__syncthreads();
		if (t < pairs) {
			int left = stride * (2 * t + 1) - 1, right = stride * (2 * t + 2) - 1;
			uint32_t was = tree[left];

			tree[left] = tree[right];
			tree[right] += was;
		}
	}
	__syncthreads();
	data[2 * t] = tree[2 * t];
	data[2 * t + 1] = tree[2 * t + 1];
}

__global__ void add_before(uint32_t *out, const uint32_t *before, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		out[i] += before[blockIdx.x];
}

int main(void)
{
	const int n = 15003, blocks = (n + THREADS - 1) / THREADS, padded = 64;
	uint32_t *in = (uint32_t *)malloc(n * 4), *out = (uint32_t *)malloc(n * 4);
	uint32_t *dev_in, *dev_out, *dev_total, sum = 0;

	REQUIRE(in && out && blocks <= padded, "no memory, or too many blocks");
	for (int i = 0; i < n; i++)
		in[i] = scramble(i, 1);
	CHECK(cudaMalloc(&dev_in, n * 4));
	CHECK(cudaMalloc(&dev_out, n * 4));
	CHECK(cudaMalloc(&dev_total, padded * 4));
	CHECK(cudaMemset(dev_total, 0, padded * 4));
	CHECK(cudaMemcpy(dev_in, in, n * 4, cudaMemcpyHostToDevice));
	scan_blocks<<<blocks, THREADS>>>(dev_in, dev_out, dev_total, n);
	scan_tree<<<1, padded / 2, padded * 4>>>(dev_total, padded);
	add_before<<<blocks, THREADS>>>(dev_out, dev_total, n);
	CHECK_LAUNCH();
	CHECK(cudaMemcpy(out, dev_out, n * 4, cudaMemcpyDeviceToHost));
	for (int i = 0; i < n; i++) {
		sum += in[i];
		REQUIRE(out[i] == sum, "element %d: %u, expected %u", i, out[i], sum);
	}
	CHECK(cudaFree(dev_in));
	CHECK(cudaFree(dev_out));
	CHECK(cudaFree(dev_total));
	free(in);
	free(out);
	return verified("%d prefix sums over %d blocks", n, blocks);
}
