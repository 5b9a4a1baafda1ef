// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Pi by random points: each thread has its own xorshift generator, a warp adds its hits, one
 * lane adds them to the total. The CPU uses the same points, so the count is exact.
 */
#include <math.h>

#include "check.h"

#define THREADS 256
#define BLOCKS	4
#define DARTS	100

struct xorshift {
	uint32_t x, y, z, w;

	__host__ __device__ explicit xorshift(uint32_t i)
	    : x(scramble(i, 1) | 1), y(scramble(i, 2)), z(scramble(i, 3)), w(scramble(i, 4))
	{
	}

	__host__ __device__ uint32_t next(void)
	{
		uint32_t t = x ^ (x << 11);

		x = y;
		y = z;
		z = w;
		w = w ^ (w >> 19) ^ t ^ (t >> 8);
		return w;
	}
};

__host__ __device__ static int throw_darts(uint32_t thread)
{
	xorshift random(thread);
	int hits = 0;

	for (int i = 0; i < DARTS; i++) {
		unsigned long long x = random.next() >> 1, y = random.next() >> 1;

		hits += x * x + y * y < 1ull << 62;
	}
	return hits;
}

__global__ void darts(unsigned long long *total)
{
	int hits = throw_darts(blockIdx.x * blockDim.x + threadIdx.x);

	for (int step = 16; step; step /= 2)
		hits += __shfl_down_sync(0xffffffffu, hits, step);
	if (threadIdx.x % 32 == 0)
		atomicAdd(total, (unsigned long long)hits);
}

int main(void)
{
	unsigned long long *dev, got, want = 0;
	double pi;

	CHECK(cudaMalloc(&dev, 8));
	CHECK(cudaMemset(dev, 0, 8));
	darts<<<BLOCKS, THREADS>>>(dev);
	CHECK_LAUNCH();
	for (int t = 0; t < BLOCKS * THREADS; t++)
		want += throw_darts(t);
	CHECK(cudaMemcpy(&got, dev, 8, cudaMemcpyDeviceToHost));
	REQUIRE(got == want, "%llu hits, expected %llu", got, want);
	pi = 4.0 * (double)got / (BLOCKS * THREADS * DARTS);
	REQUIRE(fabs(pi - M_PI) < 0.03, "pi is %f", pi);
	CHECK(cudaFree(dev));
	return verified("%d darts, pi is about %.3f", BLOCKS * THREADS * DARTS, pi);
}
