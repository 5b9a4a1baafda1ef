// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A histogram of bytes: each block counts in shared memory and adds its counts to global memory,
 * both with atomics. Also the other atomic operations whose results do not depend on order.
 */
#include "check.h"

#define BINS 256

__global__ void histogram(const unsigned char *data, int n, unsigned int *bins)
{
	__shared__ unsigned int count[BINS];

	for (int i = threadIdx.x; i < BINS; i += blockDim.x)
		count[i] = 0;
	__syncthreads();
	for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
		atomicAdd(&count[data[i]], 1u);
	__syncthreads();
	for (int i = threadIdx.x; i < BINS; i += blockDim.x)
		atomicAdd(&bins[i], count[i]);
}

struct results {
	int sum, low, high;
	unsigned int all, any, odd, wrapped, exchanged, ticket;
	unsigned long long wide;
	float real;
};

__global__ void operations(results *r, unsigned int *seen)
{
	int t = blockIdx.x * blockDim.x + threadIdx.x;
	unsigned int old, want;

	atomicAdd(&r->sum, t - 100);
	atomicSub(&r->sum, 1);
	atomicMin(&r->low, 50 - t);
	atomicMax(&r->high, t - 50);
	atomicAnd(&r->all, ~(1u << (t & 15)));
	atomicOr(&r->any, 1u << (t & 31));
	atomicXor(&r->odd, (unsigned int)t);
	atomicInc(&r->wrapped, 99);
	atomicAdd(&r->wide, 1ull << 33);
	atomicAdd(&r->real, 0.5f);
	/* Every value is passed on exactly once. */
	old = atomicExch(&r->exchanged, (unsigned int)t + 1);
	atomicAdd(&seen[old], 1u);
	/* A counter made from compare-and-swap. */
	old = *(volatile unsigned int *)&r->ticket;
	do {
		want = old;
		old = atomicCAS(&r->ticket, want, want + 3);
	} while (old != want);
}

int main(void)
{
	const int n = 200003, threads = 1024;
	unsigned int bins[BINS], want[BINS] = {0}, *dev_bins, *dev_seen, seen[threads + 1];
	unsigned char *data = (unsigned char *)malloc(n), *dev;
	results r = {}, *dev_r;
	int sum = 0, odd = 0;

	REQUIRE(data, "out of memory");
	for (int i = 0; i < n; i++) {
		data[i] = (unsigned char)(scramble(i, 3) & scramble(i, 4));
		want[data[i]]++;
	}
	CHECK(cudaMalloc(&dev, n));
	CHECK(cudaMalloc(&dev_bins, sizeof(bins)));
	CHECK(cudaMemcpy(dev, data, n, cudaMemcpyHostToDevice));
	CHECK(cudaMemset(dev_bins, 0, sizeof(bins)));
	histogram<<<12, 128>>>(dev, n, dev_bins);
	CHECK_LAUNCH();
	CHECK(cudaMemcpy(bins, dev_bins, sizeof(bins), cudaMemcpyDeviceToHost));
	for (int i = 0; i < BINS; i++)
		REQUIRE(bins[i] == want[i], "bin %d: %u, expected %u", i, bins[i], want[i]);

	r.all = 0xffffffffu;
	CHECK(cudaMalloc(&dev_r, sizeof(r)));
	CHECK(cudaMalloc(&dev_seen, sizeof(seen)));
	CHECK(cudaMemset(dev_seen, 0, sizeof(seen)));
	CHECK(cudaMemcpy(dev_r, &r, sizeof(r), cudaMemcpyHostToDevice));
	operations<<<threads / 64, 64>>>(dev_r, dev_seen);
	CHECK_LAUNCH();
	CHECK(cudaMemcpy(&r, dev_r, sizeof(r), cudaMemcpyDeviceToHost));
	CHECK(cudaMemcpy(seen, dev_seen, sizeof(seen), cudaMemcpyDeviceToHost));
	for (int t = 0; t < threads; t++) {
		sum += t - 101;
		odd ^= t;
	}
	REQUIRE(r.sum == sum, "add: %d, expected %d", r.sum, sum);
	REQUIRE(r.low == 51 - threads && r.high == threads - 51, "min %d, max %d", r.low, r.high);
	REQUIRE(r.all == 0xffff0000u && r.any == 0xffffffffu && r.odd == (unsigned int)odd,
		"and %x, or %x, xor %x", r.all, r.any, r.odd);
	REQUIRE(r.wrapped == (unsigned int)threads % 100, "inc: %u", r.wrapped);
	REQUIRE(r.wide == (unsigned long long)threads << 33, "64 bits: %llx", r.wide);
	REQUIRE(r.real == 0.5f * threads, "float: %g", r.real);
	REQUIRE(r.ticket == 3u * threads, "compare and swap: %u", r.ticket);
	seen[r.exchanged]++;
	for (int t = 0; t <= threads; t++)
		REQUIRE(seen[t] == 1, "exchange: %d was seen %u times", t, seen[t]);
	CHECK(cudaFree(dev));
	CHECK(cudaFree(dev_bins));
	CHECK(cudaFree(dev_r));
	CHECK(cudaFree(dev_seen));
	free(data);
	return verified("%d bytes counted, %d threads in each atomic operation", n, threads);
}
