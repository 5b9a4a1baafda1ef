// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Gradient noise in three dimensions, four octaves: a permutation in constant memory that each
 * lane reads at another index, floor, fade curves. Compared with the same formula in double. The
 * noise is zero on the lattice.
 */
#include <math.h>

#include "check.h"

#define SIDE 40

__constant__ unsigned char shuffled[256];
static unsigned char host_shuffled[256];

__host__ __device__ static int permute(int i)
{
#ifdef __CUDA_ARCH__
	return shuffled[i & 255];
#else
	return host_shuffled[i & 255];
#endif
}

template <typename T> __host__ __device__ T fade(T t)
{
	return t * t * t * (t * (t * 6 - 15) + 10);
}

template <typename T> __host__ __device__ T gradient(int hash, T x, T y, T z)
{
	int h = hash & 15;
	T u = h < 8 ? x : y, v = h < 4 ? y : h == 12 || h == 14 ? x : z;

	return (h & 1 ? -u : u) + (h & 2 ? -v : v);
}

template <typename T> __host__ __device__ T noise(T x, T y, T z)
{
	int ix = (int)floor(x), iy = (int)floor(y), iz = (int)floor(z);
	T sum = 0;

	x -= ix;
	y -= iy;
	z -= iz;
	for (int k = 0; k < 8; k++) {
		int dx = k & 1, dy = k >> 1 & 1, dz = k >> 2;
		int hash = permute(permute(permute(ix + dx) + iy + dy) + iz + dz);
		T weight = (dx ? fade(x) : 1 - fade(x)) * (dy ? fade(y) : 1 - fade(y)) *
			   (dz ? fade(z) : 1 - fade(z));

		sum += weight * gradient<T>(hash, x - dx, y - dy, z - dz);
	}
	return sum;
}

template <typename T> __host__ __device__ T octaves(int px, int py, T z)
{
	T sum = 0, scale = (T)0.0625, weight = 1;

	for (int o = 0; o < 4; o++, scale *= 2, weight /= 2)
		sum += weight * noise<T>((px - 9) * scale, (py - 21) * scale, z);
	return sum;
}

__global__ void clouds(float *out, float z)
{
	int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;

	out[y * SIDE + x] = octaves<float>(x, y, z);
}

int main(void)
{
	static float got[SIDE * SIDE];
	double low = 0, high = 0;
	float *dev;

	for (int i = 0; i < 256; i++)
		host_shuffled[i] = i;
	for (int i = 255; i > 0; i--) {
		int k = scramble(i, 32) % (i + 1);
		unsigned char t = host_shuffled[i];

		host_shuffled[i] = host_shuffled[k];
		host_shuffled[k] = t;
	}
	CHECK(cudaMemcpyToSymbol(shuffled, host_shuffled, sizeof(host_shuffled)));
	CHECK(cudaMalloc(&dev, sizeof(got)));
	for (float z = -1; z <= 1; z += 0.25f) {
		clouds<<<dim3(SIDE / 8, SIDE / 8), dim3(8, 8)>>>(dev, z);
		CHECK_LAUNCH();
		CHECK(cudaMemcpy(got, dev, sizeof(got), cudaMemcpyDeviceToHost));
		for (int i = 0; i < SIDE * SIDE; i++) {
			double want = octaves<double>(i % SIDE, i / SIDE, z);

			REQUIRE(fabs(got[i] - want) < 1e-5, "z %g, %d,%d: %.7g, expected %.7g", z,
				i % SIDE, i / SIDE, got[i], want);
			low = fmin(low, want);
			high = fmax(high, want);
			if (z == -1 && i % SIDE == 9 && i / SIDE == 21)
				REQUIRE(got[i] == 0, "%g on the lattice", got[i]);
		}
	}
	REQUIRE(low < -0.4 && high > 0.4, "flat: %g to %g", low, high);
	CHECK(cudaFree(dev));
	return verified("9 layers of %d points from %.2f to %.2f", SIDE * SIDE, low, high);
}
