// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A sum in one launch: each block writes its part to global memory, executes a fence, and takes
 * a ticket. The block with the last ticket adds the parts. Which block that is changes from run
 * to run; the sum does not. The counter wraps to zero by itself, so the launch can be repeated.
 */
#include "check.h"

#define THREADS 128

__device__ unsigned int tickets;

__global__ void sum(const uint32_t *in, int n, volatile unsigned long long *part,
		    unsigned long long *out)
{
	__shared__ unsigned long long acc[THREADS];
	__shared__ bool last;
	unsigned long long mine = 0;
	int t = threadIdx.x;

	for (int i = blockIdx.x * THREADS + t; i < n; i += gridDim.x * THREADS)
		mine += in[i];
	acc[t] = mine;
	for (int half = THREADS / 2; half; half /= 2) {
		__syncthreads();
		if (t < half)
			acc[t] += acc[t + half];
	}
	if (t == 0) {
		part[blockIdx.x] = acc[0];
		__threadfence();
		last = atomicInc(&tickets, gridDim.x - 1) == gridDim.x - 1;
	}
	__syncthreads();
	if (!last)
		return;
	mine = 0;
	for (int i = t; i < (int)gridDim.x; i += THREADS)
		mine += part[i];
	acc[t] = mine;
	for (int half = THREADS / 2; half; half /= 2) {
		__syncthreads();
		if (t < half)
			acc[t] += acc[t + half];
	}
	if (t == 0)
		*out = acc[0];
}

int main(void)
{
	const int n = 50001, blocks = 61;
	uint32_t *in = (uint32_t *)malloc(n * 4), *dev;
	unsigned long long *dev_part, got, want;
	unsigned int left;

	REQUIRE(in, "out of memory");
	CHECK(cudaMalloc(&dev, n * 4));
	CHECK(cudaMalloc(&dev_part, (blocks + 1) * 8));
	for (uint32_t round = 0; round < 5; round++) {
		want = 0;
		for (int i = 0; i < n; i++) {
			in[i] = scramble(i, round);
			want += in[i];
		}
		CHECK(cudaMemcpy(dev, in, n * 4, cudaMemcpyHostToDevice));
		sum<<<blocks, THREADS>>>(dev, n, dev_part, dev_part + blocks);
		CHECK_LAUNCH();
		CHECK(cudaMemcpy(&got, dev_part + blocks, 8, cudaMemcpyDeviceToHost));
		REQUIRE(got == want, "round %u: %llu, expected %llu", round, got, want);
		CHECK(cudaMemcpyFromSymbol(&left, tickets, 4));
		REQUIRE(left == 0, "round %u: %u tickets left", round, left);
	}
	CHECK(cudaFree(dev));
	CHECK(cudaFree(dev_part));
	free(in);
	return verified("5 sums by the last of %d blocks", blocks);
}
