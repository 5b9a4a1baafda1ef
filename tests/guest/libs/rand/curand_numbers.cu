// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Random numbers of cuRAND: uniform and normal ones have the mean and the deviation that they should;
 * the same seed gives the same numbers, and another one does not. Wrong calls come first.
 */
#include "rand.h"

#define N 100000

int main(void)
{
	curandGenerator_t g = begin(CURAND_RNG_PSEUDO_PHILOX4_32_10), h;
	std::vector<float> one, other;
	cudaStream_t stream;
	double *d;
	float *f;

	CHECK(cudaMalloc(&f, N * sizeof(*f)));
	CHECK(cudaMalloc(&d, N * sizeof(*d)));
	FAILS(curandCreateGenerator(&h, (curandRngType_t)12345));
	FAILS(curandSetQuasiRandomGeneratorDimensions(g, 3));
	OK(curandSetPseudoRandomGeneratorSeed(g, 7));
	OK(curandGenerateUniform(g, f, N));
	moments("uniform", down(f, N), 0.5, sqrt(1 / 12.0));
	one = down(f, N);
	OK(curandGenerateUniform(g, f, N));
	REQUIRE(down(f, N) != one, "the second numbers are the first ones");
	OK(curandGenerateNormal(g, f, N, 3, 2));
	moments("normal", down(f, N), 3, 2);
	OK(curandGenerateNormalDouble(g, d, N, -1, 0.5));
	moments("normal in double", down(d, N), -1, 0.5);
	OK(curandGenerateUniformDouble(g, d, N));
	moments("uniform in double", down(d, N), 0.5, sqrt(1 / 12.0));
	OK(curandGenerateLogNormal(g, f, N, 0, 0.25));
	moments("log-normal", down(f, N), exp(0.03125), sqrt((exp(0.0625) - 1) * exp(0.0625)));
	OK(curandGenerateNormal(g, f, 3, 0, 1));
	OK(curandGenerateUniform(g, f, N));
	for (float x : down(f, N))
		REQUIRE(x > 0 && x <= 1, "a uniform number is %g", x);
	OK(curandGenerate(g, (unsigned int *)f, N));
	each_bit(down((unsigned int *)f, N));
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
