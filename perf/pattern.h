/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the benchmarks move: words that depend on their place, so that a check of any word finds
 * bytes that are missing, late or in the wrong place. The GPU writes and checks all words. The CPU,
 * which is slow in an emulated guest, checks all of a small buffer, and each page of a large one.
 */
#ifndef PERF_PATTERN_H
#define PERF_PATTERN_H

#include "perf/bench.h"

static inline __host__ __device__ uint32_t pattern_word(uint64_t i, uint32_t seed)
{
	uint32_t x = (uint32_t)i * 0x9e3779b1u + (uint32_t)(i >> 32) + seed * 0x85ebca77u;

	return x ^ x >> 15;
}

/* step: 1 checks every word, more checks only some of them. */
__global__ void pattern_fill(uint32_t *word, uint64_t words, uint32_t seed)
{
	uint64_t i = blockIdx.x * (uint64_t)blockDim.x + threadIdx.x;

	for (; i < words; i += gridDim.x * (uint64_t)blockDim.x)
		word[i] = pattern_word(i, seed);
}

__global__ void pattern_check(const uint32_t *word, uint64_t words, uint64_t step, uint32_t seed,
			      unsigned int *bad)
{
	uint64_t t = blockIdx.x * (uint64_t)blockDim.x + threadIdx.x;

	for (uint64_t i = t * step; i < words; i += gridDim.x * (uint64_t)blockDim.x * step)
		if (word[i] != pattern_word(i, seed))
			atomicAdd(bad, 1);
}

/* A software GPU takes seconds for what a real GPU does in almost no time. */
static inline bool pattern_slow_gpu(void)
{
	static int slow = -1;

	if (slow < 0) {
		struct cudaDeviceProp prop;

		CHECK(cudaGetDeviceProperties(&prop, bench.device));
		slow = strstr(prop.name, "oftware") != NULL;
	}
	return slow;
}

static inline unsigned int pattern_blocks(uint64_t words)
{
	uint64_t blocks = (words + 255) / 256;

	return (unsigned int)(blocks < 1056 ? blocks : 1056);
}

static inline void pattern_on_gpu(void *dev, uint64_t bytes, uint32_t seed)
{
	pattern_fill<<<pattern_blocks(bytes / 4), 256>>>((uint32_t *)dev, bytes / 4, seed);
	CHECK(cudaGetLastError());
	CHECK(cudaDeviceSynchronize());
}

/* How the data is checked, for the table. */
static inline const char *pattern_checked(uint64_t bytes)
{
	return bytes <= 1 << 20 ? "whole" : "sampled";
}

static inline void pattern_gpu_must(const void *dev, uint64_t bytes, uint32_t seed,
				    const char *what)
{
	uint64_t step = bytes > 1 << 20 && pattern_slow_gpu() ? 61 : 1;
	unsigned int *bad, n = 0;

	CHECK(cudaMalloc((void **)&bad, sizeof(*bad)));
	CHECK(cudaMemset(bad, 0, sizeof(*bad)));
	pattern_check<<<pattern_blocks(bytes / 4 / step + 1), 256>>>((const uint32_t *)dev,
								     bytes / 4, step, seed, bad);
	CHECK(cudaGetLastError());
	CHECK(cudaMemcpy(&n, bad, sizeof(n), cudaMemcpyDeviceToHost));
	CHECK(cudaFree(bad));
	REQUIRE(!n, "%s: %u of %llu words are wrong on the GPU", what, n,
		(unsigned long long)(bytes / 4));
}

static inline void pattern_cpu_must(const void *host, uint64_t bytes, uint32_t seed,
				    const char *what)
{
	const volatile uint32_t *word = (const volatile uint32_t *)host;
	uint64_t words = bytes / 4, i;

	/* In a large buffer, the first and last word of each page. */
	for (i = 0; i < words; i += bytes <= 1 << 20 ? 1 : i & 1023 ? 1 : 1023)
		REQUIRE(word[i] == pattern_word(i, seed), "%s: byte %llu is wrong in memory", what,
			(unsigned long long)(i * 4));
	REQUIRE(word[words - 1] == pattern_word(words - 1, seed), "%s: the last word is wrong",
		what);
}

#endif
