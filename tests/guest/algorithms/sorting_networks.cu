// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Two sorting networks over keys with values: bitonic (short strides in shared memory, long
 * strides in global memory) and Batcher's odd-even merge in one block.
 */
#include <algorithm>

#include "check.h"

#define N    2048
#define TILE 512

__device__ void order(uint32_t *a, uint32_t *b, bool up)
{
	if ((*a > *b) == up) {
		uint32_t t = *a;

		*a = *b;
		*b = t;
	}
}

__global__ void bitonic_shared(uint32_t *data, int last)
{
	__shared__ uint32_t tile[TILE];
	int t = threadIdx.x, base = blockIdx.x * TILE;

	tile[t] = data[base + t];
	tile[t + TILE / 2] = data[base + t + TILE / 2];
	for (int size = last > TILE ? last : 2; size <= last; size *= 2) {
		for (int stride = min(size, TILE) / 2; stride; stride /= 2) {
			int at = 2 * t - (t & (stride - 1));

			__syncthreads();
			order(&tile[at], &tile[at + stride], ((base + at) & size) == 0);
		}
	}
	__syncthreads();
	data[base + t] = tile[t];
	data[base + t + TILE / 2] = tile[t + TILE / 2];
}

__global__ void bitonic_global(uint32_t *data, int size, int stride)
{
	int t = blockIdx.x * blockDim.x + threadIdx.x, at = 2 * t - (t & (stride - 1));

	order(&data[at], &data[at + stride], (at & size) == 0);
}

__global__ void odd_even_merge(uint32_t *data)
{
	__shared__ uint32_t tile[2 * TILE];
	int t = threadIdx.x;

	tile[t] = data[t];
	tile[t + TILE] = data[t + TILE];
	for (int size = 2; size <= 2 * TILE; size *= 2) {
		int stride = size / 2, offset = t & (stride - 1), at = 2 * t - offset;

		__syncthreads();
		order(&tile[at], &tile[at + stride], true);
		for (stride /= 2; stride; stride /= 2) {
			at = 2 * t - (t & (stride - 1));
			__syncthreads();
			if (offset >= stride)
				order(&tile[at - stride], &tile[at], true);
		}
	}
	__syncthreads();
	data[t] = tile[t];
	data[t + TILE] = tile[t + TILE];
}

static void compare(const uint32_t *dev, const uint32_t *in, int n, const char *how)
{
	static uint32_t got[N], want[N];

	CHECK(cudaMemcpy(got, dev, n * 4, cudaMemcpyDeviceToHost));
	std::copy(in, in + n, want);
	std::sort(want, want + n);
	for (int i = 0; i < n; i++)
		REQUIRE(got[i] == want[i], "%s, place %d: %u, expected %u", how, i, got[i],
			want[i]);
}

int main(void)
{
	static uint32_t in[N];
	uint32_t *dev;

	CHECK(cudaMalloc(&dev, sizeof(in)));
	for (uint32_t round = 0; round < 3; round++) {
		for (int i = 0; i < N; i++)
			in[i] = round == 1   ? scramble(i, 8) % 5
				: round == 2 ? N - i
					     : scramble(i, 8);
		CHECK(cudaMemcpy(dev, in, sizeof(in), cudaMemcpyHostToDevice));
		bitonic_shared<<<N / TILE, TILE / 2>>>(dev, TILE);
		for (int size = 2 * TILE; size <= N; size *= 2) {
			for (int stride = size / 2; stride >= TILE; stride /= 2)
				bitonic_global<<<N / 2 / 256, 256>>>(dev, size, stride);
			bitonic_shared<<<N / TILE, TILE / 2>>>(dev, size);
		}
		CHECK_LAUNCH();
		compare(dev, in, N, "bitonic");
		CHECK(cudaMemcpy(dev, in, sizeof(in), cudaMemcpyHostToDevice));
		odd_even_merge<<<1, TILE>>>(dev);
		CHECK_LAUNCH();
		compare(dev, in, 2 * TILE, "odd-even merge");
	}
	CHECK(cudaFree(dev));
	return verified("%d keys by two networks", N);
}
