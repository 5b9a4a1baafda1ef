// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The Mersenne Twister MT19937: a block regenerates the state of 624 words in phases (a word may
 * depend on a new word), and the output is tempered in parallel. The output is word for word
 * equal to the C++ library's generator.
 */
#include <random>

#include "check.h"

#define WORDS  624
#define MIDDLE 397
#define ROUNDS 4

__device__ uint32_t twist(uint32_t high, uint32_t low, uint32_t other)
{
	uint32_t y = (high & 0x80000000u) | (low & 0x7fffffffu);

	return other ^ (y >> 1) ^ (y & 1 ? 0x9908b0dfu : 0);
}

__global__ void generate(const uint32_t *seed, uint32_t *out)
{
	/* Two generations, so that a phase does not overwrite words that another one reads. */
	__shared__ uint32_t state[2][WORDS];
	int t = threadIdx.x, from = 0;

	if (t == 0) {
		uint32_t x = seed[blockIdx.x];

		state[0][0] = x;
		for (int i = 1; i < WORDS; i++)
			state[0][i] = x = 1812433253u * (x ^ (x >> 30)) + i;
	}
	__syncthreads();
	for (int round = 0; round < ROUNDS; round++) {
		uint32_t *old = state[from], *now = state[1 - from];
		static const int phase[] = {0, WORDS - MIDDLE, 2 * (WORDS - MIDDLE), WORDS - 1};

		for (int p = 0; p < 3; p++) {
			for (int i = phase[p] + t; i < phase[p + 1]; i += blockDim.x)
				now[i] = twist(old[i], old[i + 1],
					       p ? now[i + MIDDLE - WORDS] : old[i + MIDDLE]);
			__syncthreads();
		}
		if (t == 0)
			now[WORDS - 1] = twist(old[WORDS - 1], now[0], now[MIDDLE - 1]);
		__syncthreads();
		for (int i = t; i < WORDS; i += blockDim.x) {
			uint32_t y = now[i];

			y ^= y >> 11;
			y ^= y << 7 & 0x9d2c5680u;
			y ^= y << 15 & 0xefc60000u;
			y ^= y >> 18;
			out[(blockIdx.x * ROUNDS + round) * WORDS + i] = y;
		}
		from = 1 - from;
	}
}

int main(void)
{
	static const uint32_t seed[] = {5489u, 1u, 0u, 0xdeadbeefu, 42u};
	const int blocks = sizeof(seed) / sizeof(seed[0]), n = blocks * ROUNDS * WORDS;
	uint32_t *out = (uint32_t *)malloc(n * 4), *dev_seed, *dev;

	REQUIRE(out, "out of memory");
	CHECK(cudaMalloc(&dev_seed, sizeof(seed)));
	CHECK(cudaMalloc(&dev, n * 4));
	CHECK(cudaMemcpy(dev_seed, seed, sizeof(seed), cudaMemcpyHostToDevice));
	generate<<<blocks, 208>>>(dev_seed, dev);
	CHECK_LAUNCH();
	CHECK(cudaMemcpy(out, dev, n * 4, cudaMemcpyDeviceToHost));
	for (int b = 0; b < blocks; b++) {
		std::mt19937 reference(seed[b]);

		for (int i = 0; i < ROUNDS * WORDS; i++) {
			uint32_t want = reference(), got = out[b * ROUNDS * WORDS + i];

			REQUIRE(got == want, "seed %u, number %d: %08x, expected %08x", seed[b], i,
				got, want);
		}
	}
	CHECK(cudaFree(dev_seed));
	CHECK(cudaFree(dev));
	free(out);
	return verified("%d numbers of %d generators", n, blocks);
}
