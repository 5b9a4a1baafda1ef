// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Quasi-random numbers of cuRAND: Sobol's sequences in one and in several dimensions, scrambled and not,
 * of 32 and of 64 bits. They lie dimension by dimension, and each fills its space evenly, better than
 * chance does. Offsets skip points. What belongs to one kind of generator fails for another one, also
 * after it has been accepted for the right one.
 */
#include <algorithm>

#include "rand.h"

#define POINTS 4096

static curandGenerator_t quasi(curandRngType_t type, unsigned int dimensions)
{
	curandGenerator_t g;

	OK(curandCreateGenerator(&g, type));
	OK(curandSetQuasiRandomGeneratorDimensions(g, dimensions));
	return g;
}

/* In each of 256 parts there are as many, but for one at the sequence's end. */
static void evenly(const char *what, const std::vector<int> &counts)
{
	for (int n : counts)
		REQUIRE(abs(n - POINTS / 256) <= 1, "%s: %d points in a part", what, n);
}

template <typename T> static std::vector<T> dimension(const std::vector<T> &all, int d)
{
	return std::vector<T>(all.begin() + d * POINTS, all.begin() + (d + 1) * POINTS);
}

static void cube(float *f)
{
	curandGenerator_t g = quasi(CURAND_RNG_QUASI_SOBOL32, 3);
	std::vector<int> boxes(256);
	std::vector<float> all, x, y, z, later;
	double volume = 0;

	OK(curandSetGeneratorOrdering(g, CURAND_ORDERING_QUASI_DEFAULT));
	OK(curandGenerateUniform(g, f, 3 * POINTS));
	all = down(f, 3 * POINTS);
	x = dimension(all, 0);
	y = dimension(all, 1);
	z = dimension(all, 2);
	for (int d = 0; d < 3; d++)
		evenly("a dimension", parts(dimension(all, d), 256));
	for (int i = 0; i < POINTS; i++) {
		boxes[std::min(15, (int)(x[i] * 16)) * 16 + std::min(15, (int)(y[i] * 16))]++;
		volume += (double)x[i] * y[i] * z[i] / POINTS;
	}
	evenly("two dimensions", boxes);
	REQUIRE(fabs(volume - 0.125) < 1e-3, "the integral of xyz is %g", volume);

	/* The points from the thousandth on. */
	OK(curandSetGeneratorOffset(g, 1000));
	OK(curandGenerateUniform(g, f, 3 * 2000));
	later = down(f, 3 * 2000);
	for (int i = 0; i < 2000; i++)
		REQUIRE(later[i] == x[1000 + i] && later[2000 + i] == y[1000 + i] && later[4000 + i] == z[1000 + i],
			"point %d is another one", 1000 + i);
	OK(curandDestroyGenerator(g));
}

/* The n-th smallest of n normal numbers has the n-th part of the distribution below it. */
static void normal(float *f)
{
	curandGenerator_t g = quasi(CURAND_RNG_QUASI_SOBOL32, 1);
	std::vector<float> v;

	OK(curandGenerateNormal(g, f, POINTS, 2, 3));
	v = down(f, POINTS);
	std::sort(v.begin(), v.end());
	for (int i = 0; i < POINTS; i++)
		REQUIRE(fabs(POINTS / 2.0 * erfc((2 - v[i]) / 3 / sqrt(2.0)) - i - 0.5) < 2, "normal number %d is %g",
			i, v[i]);
	OK(curandDestroyGenerator(g));
}

static void kinds(double *d)
{
	std::vector<std::vector<double>> all;

	for (curandRngType_t type : {CURAND_RNG_QUASI_SOBOL32, CURAND_RNG_QUASI_SCRAMBLED_SOBOL32,
				     CURAND_RNG_QUASI_SOBOL64, CURAND_RNG_QUASI_SCRAMBLED_SOBOL64}) {
		curandGenerator_t g = quasi(type, 2);

		OK(curandGenerateUniformDouble(g, d, 2 * POINTS));
		all.push_back(down(d, 2 * POINTS));
		evenly("the first dimension", parts(dimension(all.back(), 0), 256));
		evenly("the second dimension", parts(dimension(all.back(), 1), 256));
		OK(curandDestroyGenerator(g));
	}
	REQUIRE(all[0] != all[1] && all[2] != all[3], "nothing is scrambled");
}

static void bits(unsigned int *narrow, unsigned long long *wide)
{
	curandGenerator_t g = quasi(CURAND_RNG_QUASI_SOBOL32, 1), h = quasi(CURAND_RNG_QUASI_SOBOL64, 1);
	std::vector<int> counts(256), more(256);

	FAILS(curandGenerateLongLong(g, wide, POINTS));
	FAILS(curandGenerate(h, narrow, POINTS));
	OK(curandGenerate(g, narrow, POINTS));
	for (unsigned int x : down(narrow, POINTS))
		counts[x >> 24]++;
	OK(curandGenerateLongLong(h, wide, POINTS));
	for (unsigned long long x : down(wide, POINTS))
		more[x >> 56]++;
	evenly("32 bits", counts);
	evenly("64 bits", more);
	OK(curandDestroyGenerator(g));
	OK(curandDestroyGenerator(h));
}

/* Calls that one generator has accepted are still wrong for another one. */
static void one_and_the_other(curandGenerator_t pseudo, float *f)
{
	curandGenerator_t two = quasi(CURAND_RNG_QUASI_SOBOL32, 2), three = quasi(CURAND_RNG_QUASI_SOBOL32, 3);

	OK(curandSetPseudoRandomGeneratorSeed(pseudo, 7));
	FAILS(curandSetPseudoRandomGeneratorSeed(two, 7));
	FAILS(curandSetQuasiRandomGeneratorDimensions(pseudo, 2));
	OK(curandGenerateUniform(two, f, 2 * POINTS));
	FAILS(curandGenerateUniform(three, f, 2 * POINTS));
	FAILS(curandSetQuasiRandomGeneratorDimensions(two, 0));
	FAILS(curandSetQuasiRandomGeneratorDimensions(two, 20001));
	FAILS(curandSetGeneratorOrdering(two, CURAND_ORDERING_PSEUDO_BEST));
	OK(curandDestroyGenerator(two));
	OK(curandDestroyGenerator(three));
}

int main(void)
{
	curandGenerator_t pseudo = begin(CURAND_RNG_PSEUDO_XORWOW), g;
	void *gpu;

	/* The software GPU has no such generators. */
	first("Sobol sequence", curandCreateGenerator(&g, CURAND_RNG_QUASI_DEFAULT), CURAND_STATUS_TYPE_ERROR);
	CHECK(cudaMalloc(&gpu, 3 * POINTS * sizeof(double)));
	OK(curandDestroyGenerator(g));
	one_and_the_other(pseudo, (float *)gpu);
	cube((float *)gpu);
	normal((float *)gpu);
	kinds((double *)gpu);
	bits((unsigned int *)gpu, (unsigned long long *)gpu);
	OK(curandDestroyGenerator(pseudo));
	CHECK(cudaFree(gpu));
	printf("Sobol's sequences of four kinds\n");
	return 0;
}
