// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Operations for which the hardware has no atomic, made from compare-and-swap on 16, 32 and 64
 * bits: a product, a maximum of doubles, a saturating counter. Also the atomics of wider types,
 * in global and shared memory: double and half2 sums, 64-bit minima and logic.
 */
#include <cuda_fp16.h>
#include <float.h>

#include "check.h"

struct results {
	unsigned int product;
	unsigned short small[2];
	double largest, sum;
	long long low, high;
	unsigned long long all, any, odd, last;
	__half2 halves;
	unsigned int shared_sum;
	unsigned long long shared_max;
};

__device__ double atomic_max(double *at, double x)
{
	unsigned long long *bits = (unsigned long long *)at, old = *bits, seen;

	while (__longlong_as_double((long long)old) < x) {
		seen = atomicCAS(bits, old, (unsigned long long)__double_as_longlong(x));
		if (seen == old)
			break;
		old = seen;
	}
	return __longlong_as_double((long long)old);
}

__global__ void run(results *r)
{
	__shared__ unsigned long long largest;
	__shared__ unsigned int sum;
	int t = blockIdx.x * blockDim.x + threadIdx.x;
	unsigned int old, seen = r->product;
	unsigned short was, now = r->small[t & 1];
	unsigned long long wide = (unsigned long long)scramble(t, 2) << 32 | scramble(t, 1);

	if (threadIdx.x == 0) {
		largest = 0;
		sum = 0;
	}
	do {
		old = seen;
		seen = atomicCAS(&r->product, old, old * (2 * t + 1));
	} while (seen != old);
	/* Two counters side by side in one word, each up to 100 and no further. */
	do {
		was = now;
		now = atomicCAS(&r->small[t & 1], was, (unsigned short)(was < 100 ? was + 1 : was));
	} while (now != was);
	atomic_max(&r->largest, (int)scramble(t, 1) * 0.5);
	atomicAdd(&r->sum, 0.25 * (t % 8));
	atomicMin(&r->low, (long long)wide);
	atomicMax(&r->high, (long long)wide);
	atomicAnd(&r->all, ~(1ull << (t % 40)));
	atomicOr(&r->any, 1ull << (t % 50));
	atomicXor(&r->odd, wide);
	atomicExch(&r->last, ~0ull);
	atomicAdd(&r->halves, __floats2half2_rn(1.0f, 0.5f));
	__syncthreads();
	atomicMax(&largest, wide);
	atomicAdd(&sum, (unsigned int)wide);
	__syncthreads();
	if (threadIdx.x == 0) {
		atomicMax(&r->shared_max, largest);
		atomicAdd(&r->shared_sum, sum);
	}
}

int main(void)
{
	const int threads = 256;
	results init = {}, got, want, *dev;

	init.product = 1;
	init.largest = -DBL_MAX;
	init.low = INT64_MAX;
	init.high = INT64_MIN;
	init.all = ~0ull;
	want = init;
	for (int t = 0; t < threads; t++) {
		unsigned long long wide = (unsigned long long)scramble(t, 2) << 32 | scramble(t, 1);
		double x = (int)scramble(t, 1) * 0.5;

		want.product *= 2 * t + 1;
		want.largest = x > want.largest ? x : want.largest;
		want.sum += 0.25 * (t % 8);
		want.low = (long long)wide < want.low ? (long long)wide : want.low;
		want.high = (long long)wide > want.high ? (long long)wide : want.high;
		want.all &= ~(1ull << (t % 40));
		want.any |= 1ull << (t % 50);
		want.odd ^= wide;
		want.shared_sum += (unsigned int)wide;
		want.shared_max = wide > want.shared_max ? wide : want.shared_max;
	}
	CHECK(cudaMalloc(&dev, sizeof(got)));
	CHECK(cudaMemcpy(dev, &init, sizeof(init), cudaMemcpyHostToDevice));
	run<<<4, threads / 4>>>(dev);
	CHECK_LAUNCH();
	CHECK(cudaMemcpy(&got, dev, sizeof(got), cudaMemcpyDeviceToHost));
	REQUIRE(got.product == want.product, "product %u, expected %u", got.product, want.product);
	REQUIRE(got.small[0] == 100 && got.small[1] == 100, "counters %u, %u", got.small[0],
		got.small[1]);
	REQUIRE(got.largest == want.largest && got.sum == want.sum, "doubles %g, %g", got.largest,
		got.sum);
	REQUIRE(got.low == want.low && got.high == want.high, "from %lld to %lld", got.low,
		got.high);
	REQUIRE(got.all == want.all && got.any == want.any && got.odd == want.odd &&
			got.last == ~0ull,
		"%llx, %llx, %llx, %llx", got.all, got.any, got.odd, got.last);
	REQUIRE(__low2float(got.halves) == threads && __high2float(got.halves) == threads * 0.5f,
		"halves %g, %g", __low2float(got.halves), __high2float(got.halves));
	REQUIRE(got.shared_sum == want.shared_sum && got.shared_max == want.shared_max,
		"shared %u, %llx", got.shared_sum, got.shared_max);
	CHECK(cudaFree(dev));
	return verified("14 kinds of atomics by %d threads", threads);
}
