// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Random numbers of cuRAND: uniform and normal ones have the mean and the deviation that they should;
 * the same seed gives the same numbers, and another one does not. Wrong calls come first.
 */
#include <curand.h>

#include "../libs.h"

#define N 100000

template <typename T> static void check(const char *what, const T *gpu, double mean, double deviation)
{
	std::vector<T> v = down(gpu, N);
	double sum = 0, squares = 0;

	for (T x : v)
		sum += x;
	sum /= N;
	for (T x : v)
		squares += (x - sum) * (x - sum);
	squares = sqrt(squares / N);
	REQUIRE(fabs(sum - mean) < 0.02 * (1 + fabs(mean)), "%s: the mean is %g", what, sum);
	REQUIRE(fabs(squares - deviation) < 0.02 * deviation, "%s: the deviation is %g", what, squares);
}

/* Each bit is set in about half of the numbers. */
static void each_bit(const unsigned int *gpu)
{
	std::vector<unsigned int> v = down(gpu, N);

	for (int bit = 0; bit < 32; bit++) {
		int n = 0;

		for (unsigned int x : v)
			n += x >> bit & 1;
		REQUIRE(abs(n - N / 2) < N / 50, "bit %d is set in %d of %d numbers", bit, n, N);
	}
}

int main(void)
{
	curandGenerator_t g = NULL, h;
	std::vector<float> one, other;
	cudaStream_t stream;
	double *d;
	float *f;

	first("cuRAND", curandCreateGenerator(&g, CURAND_RNG_PSEUDO_PHILOX4_32_10), CURAND_STATUS_NOT_INITIALIZED);
	CHECK(cudaMalloc(&f, N * sizeof(*f)));
	CHECK(cudaMalloc(&d, N * sizeof(*d)));
	FAILS(curandCreateGenerator(&h, (curandRngType_t)12345));
	FAILS(curandSetQuasiRandomGeneratorDimensions(g, 3));
	OK(curandSetPseudoRandomGeneratorSeed(g, 7));
	OK(curandGenerateUniform(g, f, N));
	check("uniform", f, 0.5, sqrt(1 / 12.0));
	one = down(f, N);
	OK(curandGenerateUniform(g, f, N));
	REQUIRE(down(f, N) != one, "the second numbers are the first ones");
	OK(curandGenerateNormal(g, f, N, 3, 2));
	check("normal", f, 3, 2);
	OK(curandGenerateNormalDouble(g, d, N, -1, 0.5));
	check("normal in double", d, -1, 0.5);
	OK(curandGenerateUniformDouble(g, d, N));
	check("uniform in double", d, 0.5, sqrt(1 / 12.0));
	OK(curandGenerateLogNormal(g, f, N, 0, 0.25));
	check("log-normal", f, exp(0.03125), sqrt((exp(0.0625) - 1) * exp(0.0625)));
	OK(curandGenerateNormal(g, f, 3, 0, 1));
	OK(curandGenerateUniform(g, f, N));
	for (float x : down(f, N))
		REQUIRE(x > 0 && x <= 1, "a uniform number is %g", x);
	OK(curandGenerate(g, (unsigned int *)f, N));
	each_bit((const unsigned int *)f);
	OK(curandDestroyGenerator(g));

	/* Again from the start, in a stream. */
	CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	OK(curandCreateGenerator(&g, CURAND_RNG_PSEUDO_PHILOX4_32_10));
	OK(curandSetStream(g, stream));
	OK(curandSetPseudoRandomGeneratorSeed(g, 7));
	OK(curandGenerateUniform(g, f, N));
	CHECK(cudaStreamSynchronize(stream));
	REQUIRE(down(f, N) == one, "the same seed gives other numbers");
	OK(curandSetPseudoRandomGeneratorSeed(g, 8));
	OK(curandSetGeneratorOffset(g, 0));
	OK(curandGenerateUniform(g, f, N));
	CHECK(cudaStreamSynchronize(stream));
	REQUIRE(down(f, N) != one, "another seed gives the same numbers");
	OK(curandDestroyGenerator(g));
	CHECK(cudaStreamDestroy(stream));
	CHECK(cudaFree(f));
	CHECK(cudaFree(d));
	printf("uniform and normal numbers of two types, by seed\n");
	return 0;
}
