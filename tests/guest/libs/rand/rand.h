/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the programs that use cuRAND need: a generator, and what its numbers must be like. */
#ifndef RAND_H
#define RAND_H

#include <curand.h>

#include "../libs.h"

/* The first call. */
static inline curandGenerator_t begin(curandRngType_t type)
{
	curandGenerator_t g = NULL;

	first("cuRAND", curandCreateGenerator(&g, type), CURAND_STATUS_NOT_INITIALIZED);
	return g;
}

/* A generator at the start of its sequence. */
static inline curandGenerator_t make(curandRngType_t type, unsigned long long seed)
{
	curandGenerator_t g;

	OK(curandCreateGenerator(&g, type));
	OK(curandSetPseudoRandomGeneratorSeed(g, seed));
	return g;
}

/* The mean and the deviation are what they should be, but for two hundredths. */
template <typename T>
static void moments(const char *what, const std::vector<T> &v, double mean, double deviation)
{
	double sum = 0, squares = 0;

	for (T x : v)
		sum += x;
	sum /= v.size();
	for (T x : v)
		squares += (x - sum) * (x - sum);
	squares = sqrt(squares / v.size());
	REQUIRE(fabs(sum - mean) < 0.02 * (1 + fabs(mean)), "%s: the mean is %g", what, sum);
	REQUIRE(fabs(squares - deviation) < 0.02 * deviation, "%s: the deviation is %g", what,
		squares);
}

/* Each bit is set in about half of the numbers. */
static inline void each_bit(const std::vector<unsigned int> &v)
{
	int size = (int)v.size();

	for (int bit = 0; bit < 32; bit++) {
		int n = 0;

		for (unsigned int x : v)
			n += x >> bit & 1;
		REQUIRE(abs(n - size / 2) < size / 50, "bit %d is set in %d of %d numbers", bit, n,
			size);
	}
}

/*
 * How far counts are from those expected: for chance, about as many as there are counts. Less than
 * a third of it and more than the double do not happen for a hundred counts or more.
 */
static inline void by_chance(const char *what, const std::vector<int> &counts,
			     const std::vector<double> &expected)
{
	double sum = 0;

	for (size_t i = 0; i < counts.size(); i++)
		sum += (counts[i] - expected[i]) * (counts[i] - expected[i]) / expected[i];
	REQUIRE(sum > counts.size() / 3.0 && sum < counts.size() * 2.0,
		"%s: %zu counts are off by %g", what, counts.size(), sum);
}

/* In which of n equal parts of the numbers above 0 up to 1 each of them lies. */
template <typename T> static std::vector<int> parts(const std::vector<T> &v, int n)
{
	std::vector<int> counts(n);

	for (T x : v) {
		REQUIRE(x > 0 && x <= 1, "a uniform number is %g", (double)x);
		counts[std::min(n - 1, (int)(x * n))]++;
	}
	return counts;
}

#endif
