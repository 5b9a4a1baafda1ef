// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A sequence of cuRAND is the same in one piece and in pieces, also when two generators with the same seed
 * take turns, each of which leaves out the other's part by its offset. An offset leads to any place of the
 * sequence, back and forth, of bits and of uniform numbers.
 */
#include "rand.h"

#define N (1 << 18)

static std::vector<unsigned int> whole(curandRngType_t type, unsigned long long seed, unsigned int *gpu)
{
	curandGenerator_t g = make(type, seed);

	OK(curandGenerate(g, gpu, N));
	OK(curandDestroyGenerator(g));
	return down(gpu, N);
}

/* As much of the sequence as was written is that from `at` on. */
static void same(const char *what, const std::vector<unsigned int> &all, size_t at, const unsigned int *gpu, size_t n)
{
	std::vector<unsigned int> got = down(gpu, n);

	REQUIRE(std::equal(got.begin(), got.end(), all.begin() + at), "%s: other numbers from %zu on", what, at);
}

static void in_pieces(curandRngType_t type, const std::vector<unsigned int> &all, unsigned int *gpu)
{
	curandGenerator_t g = make(type, 99);
	size_t at = 0;

	CHECK(cudaMemset(gpu, 0, N * sizeof(*gpu)));
	for (size_t n : {4096, 8192, 4096, 65536, 12288, 4096}) {
		OK(curandGenerate(g, gpu + at, n));
		at += n;
	}
	OK(curandGenerate(g, gpu + at, N - at));
	same("in pieces", all, 0, gpu, N);
	OK(curandDestroyGenerator(g));
}

static void in_turns(curandRngType_t type, const std::vector<unsigned int> &all, unsigned int *gpu)
{
	curandGenerator_t g[] = {make(type, 99), make(type, 99)};
	const size_t n = N / 8;

	CHECK(cudaMemset(gpu, 0, N * sizeof(*gpu)));
	for (size_t i = 0; i < 8; i++) {
		OK(curandSetGeneratorOffset(g[i % 2], i * n));
		OK(curandGenerate(g[i % 2], gpu + i * n, n));
	}
	same("in turns", all, 0, gpu, N);
	OK(curandDestroyGenerator(g[0]));
	OK(curandDestroyGenerator(g[1]));
}

static void back_and_forth(curandRngType_t type, const std::vector<unsigned int> &all, unsigned int *gpu)
{
	curandGenerator_t g = make(type, 1);

	/* The seed may come late, and with the offset it starts a sequence. */
	OK(curandGenerate(g, gpu, 1000));
	OK(curandSetPseudoRandomGeneratorSeed(g, 99));
	for (size_t at : {0, 65536, 12288, 200704, 4096, 0}) {
		OK(curandSetGeneratorOffset(g, at));
		OK(curandGenerate(g, gpu, 8192));
		same("back and forth", all, at, gpu, 8192);
	}
	/* What follows goes on from there. */
	OK(curandGenerate(g, gpu, 8192));
	same("behind an offset", all, 8192, gpu, 8192);
	OK(curandDestroyGenerator(g));
}

/* An offset counts uniform numbers as it counts bits. */
static void uniform(curandRngType_t type, float *gpu)
{
	curandGenerator_t g = make(type, 99), twin = make(type, 99);
	std::vector<float> all;

	OK(curandGenerateUniform(g, gpu, 65536));
	all = down(gpu, 65536);
	OK(curandSetGeneratorOffset(twin, 16384));
	OK(curandGenerateUniform(twin, gpu, 8192));
	REQUIRE(down(gpu, 8192) == std::vector<float>(all.begin() + 16384, all.begin() + 24576),
		"an offset leads to other uniform numbers");
	OK(curandDestroyGenerator(g));
	OK(curandDestroyGenerator(twin));
}

int main(void)
{
	curandGenerator_t g = begin(CURAND_RNG_PSEUDO_XORWOW);
	unsigned int *gpu;

	FAILS(curandSetGeneratorOffset(NULL, 1));
	OK(curandDestroyGenerator(g));
	CHECK(cudaMalloc(&gpu, N * sizeof(*gpu)));
	for (curandRngType_t type :
	     {CURAND_RNG_PSEUDO_XORWOW, CURAND_RNG_PSEUDO_MRG32K3A, CURAND_RNG_PSEUDO_PHILOX4_32_10}) {
		std::vector<unsigned int> all = whole(type, 99, gpu);

		REQUIRE(whole(type, 98, gpu) != all, "another seed gives the same numbers");
		in_pieces(type, all, gpu);
		in_turns(type, all, gpu);
		back_and_forth(type, all, gpu);
		uniform(type, (float *)gpu);
	}
	CHECK(cudaFree(gpu));
	printf("sequences of three generators, in pieces, in turns, and from any offset\n");
	return 0;
}
