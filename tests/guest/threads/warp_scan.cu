// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Prefix sums inside warps with __shfl_up_sync, for 32-bit, 64-bit, float and double values, and
 * for warps split into groups of 8 lanes. All sums are exact, also in float.
 */
#include "check.h"

template <typename T> __device__ T scan(T x, int width)
{
	int lane = threadIdx.x % width;

	for (int step = 1; step < width; step *= 2) {
		T left = __shfl_up_sync(0xffffffffu, x, step, width);

		if (lane >= step)
			x += left;
	}
	return x;
}

template <typename T> __global__ void scan_warps(const int *in, T scale, T *whole, T *parts)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	whole[i] = scan((T)in[i] * scale, 32);
	parts[i] = scan((T)in[i] * scale, 8);
}

template <typename T> static void test(const int *in, const int *dev_in, int n, T scale)
{
	T *out = (T *)malloc(2 * n * sizeof(T)), *dev, whole = 0, part = 0;

	REQUIRE(out, "out of memory");
	CHECK(cudaMalloc(&dev, 2 * n * sizeof(T)));
	scan_warps<T><<<n / 128, 128>>>(dev_in, scale, dev, dev + n);
	CHECK_LAUNCH();
	CHECK(cudaMemcpy(out, dev, 2 * n * sizeof(T), cudaMemcpyDeviceToHost));
	for (int i = 0; i < n; i++) {
		whole = (i % 32 ? whole : 0) + (T)in[i] * scale;
		part = (i % 8 ? part : 0) + (T)in[i] * scale;
		REQUIRE(out[i] == whole && out[n + i] == part,
			"%zu bytes wide, thread %d: %g and %g, expected %g and %g", sizeof(T), i,
			(double)out[i], (double)out[n + i], (double)whole, (double)part);
	}
	CHECK(cudaFree(dev));
	free(out);
}

int main(void)
{
	const int n = 1024;
	int in[n], *dev;

	for (int i = 0; i < n; i++)
		in[i] = (int)(scramble(i, 2) % 2001) - 1000;
	CHECK(cudaMalloc(&dev, sizeof(in)));
	CHECK(cudaMemcpy(dev, in, sizeof(in), cudaMemcpyHostToDevice));
	test<int>(in, dev, n, 1);
	test<long long>(in, dev, n, 1ll << 32);
	test<float>(in, dev, n, 0.25f);
	test<double>(in, dev, n, 0.125);
	CHECK(cudaFree(dev));
	return verified("%d warp scans of four types", n / 32);
}
