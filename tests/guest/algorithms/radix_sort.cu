// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A radix sort, four bits per pass: blocks count digits, one block turns the counts into places,
 * and blocks scatter stably. Signed keys with a payload that shows stability.
 */
#include <algorithm>
#include <vector>

#include "check.h"

#define BITS	4
#define DIGITS	(1 << BITS)
#define THREADS 64

struct item {
	int key;
	int from;
};

__device__ int digit_of(int key, int shift)
{
	return ((uint32_t)key ^ 0x80000000u) >> shift & (DIGITS - 1);
}

__global__ void count(const item *in, int n, int shift, int *counts)
{
	__shared__ int mine[DIGITS];
	int i = blockIdx.x * THREADS + threadIdx.x;

	if (threadIdx.x < DIGITS)
		mine[threadIdx.x] = 0;
	__syncthreads();
	if (i < n)
		atomicAdd(&mine[digit_of(in[i].key, shift)], 1);
	__syncthreads();
	if (threadIdx.x < DIGITS)
		counts[threadIdx.x * gridDim.x + blockIdx.x] = mine[threadIdx.x];
}

/* Where each digit of each block starts: an exclusive sum in the order digit, block. */
__global__ void places(int *counts, int n)
{
	__shared__ int total[DIGITS];
	int sum = 0, d = threadIdx.x;

	for (int b = 0; b < n; b++)
		sum += counts[d * n + b];
	total[d] = sum;
	__syncthreads();
	sum = 0;
	for (int k = 0; k < d; k++)
		sum += total[k];
	for (int b = 0; b < n; b++) {
		int here = counts[d * n + b];

		counts[d * n + b] = sum;
		sum += here;
	}
}

__global__ void scatter(const item *in, int n, int shift, const int *start, item *out)
{
	__shared__ signed char digit[THREADS];
	int i = blockIdx.x * THREADS + threadIdx.x, d = i < n ? digit_of(in[i].key, shift) : -1;
	int rank = 0;

	digit[threadIdx.x] = (signed char)d;
	__syncthreads();
	for (int k = 0; k < (int)threadIdx.x; k++)
		rank += digit[k] == d;
	if (i < n)
		out[start[d * gridDim.x + blockIdx.x] + rank] = in[i];
}

int main(void)
{
	const int n = 1500, blocks = (n + THREADS - 1) / THREADS;
	std::vector<item> in(n), got(n);
	item *dev[2];
	int *dev_counts, from = 0;

	for (int i = 0; i < n; i++) {
		in[i].key = (int)scramble(i / 2, 9) >> (i % 3 * 9);
		in[i].from = i;
	}
	CHECK(cudaMalloc(&dev[0], n * sizeof(item)));
	CHECK(cudaMalloc(&dev[1], n * sizeof(item)));
	CHECK(cudaMalloc(&dev_counts, DIGITS * blocks * sizeof(int)));
	CHECK(cudaMemcpy(dev[0], in.data(), n * sizeof(item), cudaMemcpyHostToDevice));
	for (int shift = 0; shift < 32; shift += BITS, from = 1 - from) {
		count<<<blocks, THREADS>>>(dev[from], n, shift, dev_counts);
		places<<<1, DIGITS>>>(dev_counts, blocks);
		scatter<<<blocks, THREADS>>>(dev[from], n, shift, dev_counts, dev[1 - from]);
		CHECK_LAUNCH();
	}
	CHECK(cudaMemcpy(got.data(), dev[from], n * sizeof(item), cudaMemcpyDeviceToHost));
	std::stable_sort(in.begin(), in.end(),
			 [](const item &a, const item &b) { return a.key < b.key; });
	for (int i = 0; i < n; i++)
		REQUIRE(got[i].key == in[i].key && got[i].from == in[i].from,
			"place %d: %d from %d, expected %d from %d", i, got[i].key, got[i].from,
			in[i].key, in[i].from);
	CHECK(cudaFree(dev[0]));
	CHECK(cudaFree(dev[1]));
	CHECK(cudaFree(dev_counts));
	return verified("%d keys sorted stably", n);
}
