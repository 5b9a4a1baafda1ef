// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Counts of rare and of frequent events with cuRAND, by Poisson's distribution: the mean and the spread
 * of small and large ones are right for each kind of generator, and so is each count's share. The orderings
 * of a sequence give numbers that are spread alike.
 */
#include "rand.h"

#define N (1 << 17)

static std::vector<unsigned int> counts(curandGenerator_t g, unsigned int *gpu, double lambda)
{
	OK(curandGeneratePoisson(g, gpu, N, lambda));
	return down(gpu, N);
}

/* Mean and variance are the same number. */
static void spread(const char *what, const std::vector<unsigned int> &v, double lambda)
{
	double mean = 0, squares = 0;

	for (unsigned int x : v)
		mean += (double)x / N;
	for (unsigned int x : v)
		squares += (x - mean) * (x - mean) / N;
	REQUIRE(fabs(mean - lambda) < 8 * sqrt(lambda / N), "%s: the mean for %g is %g", what, lambda, mean);
	REQUIRE(fabs(squares / lambda - 1) < 0.05, "%s: the variance for %g is %g", what, lambda, squares);
}

/* Each count up to `limit` comes as often as it should. */
static void shares(const char *what, const std::vector<unsigned int> &v, double lambda, unsigned int limit)
{
	std::vector<int> got(limit + 1);
	double share = exp(-lambda);

	for (unsigned int x : v)
		if (x <= limit)
			got[x]++;
	for (unsigned int i = 0; i <= limit; i++) {
		REQUIRE(fabs(got[i] - share * N) < 8 * sqrt(share * N), "%s: %u comes %d times, not %g", what, i,
			got[i], share * N);
		share *= lambda / (i + 1);
	}
}

static void kinds(unsigned int *gpu)
{
	for (curandRngType_t type : {CURAND_RNG_PSEUDO_XORWOW, CURAND_RNG_PSEUDO_MRG32K3A, CURAND_RNG_PSEUDO_MTGP32,
				     CURAND_RNG_PSEUDO_MT19937, CURAND_RNG_PSEUDO_PHILOX4_32_10}) {
		char name[32];

		snprintf(name, sizeof(name), "generator %d", (int)type);
		for (double lambda : {0.5, 4.0, 60.0, 700.0, 5000.0}) {
			curandGenerator_t g = make(type, 31), twin = make(type, 31);
			std::vector<unsigned int> v = counts(g, gpu, lambda);

			spread(name, v, lambda);
			if (lambda < 10)
				shares(name, v, lambda, lambda < 1 ? 4 : 12);
			REQUIRE(counts(twin, gpu, lambda) == v, "%s: the same seed gives other counts", name);
			OK(curandDestroyGenerator(g));
			OK(curandDestroyGenerator(twin));
		}
	}
}

static void orderings(unsigned int *gpu)
{
	for (curandOrdering_t order : {CURAND_ORDERING_PSEUDO_BEST, CURAND_ORDERING_PSEUDO_DEFAULT,
				       CURAND_ORDERING_PSEUDO_SEEDED, CURAND_ORDERING_PSEUDO_LEGACY}) {
		curandGenerator_t g = make(CURAND_RNG_PSEUDO_XORWOW, 31), twin = make(CURAND_RNG_PSEUDO_XORWOW, 31);
		std::vector<unsigned int> bits;

		OK(curandSetGeneratorOrdering(g, order));
		OK(curandSetGeneratorOrdering(twin, order));
		OK(curandGenerate(g, gpu, N));
		bits = down(gpu, N);
		each_bit(bits);
		OK(curandGenerate(twin, gpu, N));
		REQUIRE(down(gpu, N) == bits, "the same ordering gives other numbers");
		spread("an ordering", counts(g, gpu, 4), 4);
		OK(curandDestroyGenerator(g));
		OK(curandDestroyGenerator(twin));
	}
}

static void wrong_calls(curandGenerator_t g, unsigned int *gpu)
{
	FAILS(curandGeneratePoisson(NULL, gpu, N, 4));
	FAILS(curandGeneratePoisson(g, gpu, N, 0));
	FAILS(curandGeneratePoisson(g, gpu, N, -1));
	FAILS(curandGeneratePoisson(g, gpu, N, 500000));
	FAILS(curandSetGeneratorOrdering(NULL, CURAND_ORDERING_PSEUDO_BEST));
	FAILS(curandSetGeneratorOrdering(g, CURAND_ORDERING_QUASI_DEFAULT));
	FAILS(curandSetGeneratorOrdering(g, (curandOrdering_t)77));
}

int main(void)
{
	curandGenerator_t g = begin(CURAND_RNG_PSEUDO_XORWOW);
	unsigned int *gpu;

	CHECK(cudaMalloc(&gpu, N * sizeof(*gpu)));
	/* The software GPU has no such numbers. */
	first("Poisson distribution", curandGeneratePoisson(g, gpu, N, 4), CURAND_STATUS_TYPE_ERROR);
	wrong_calls(g, gpu);
	OK(curandDestroyGenerator(g));
	kinds(gpu);
	orderings(gpu);
	CHECK(cudaFree(gpu));
	printf("counts by Poisson's distribution, of all generators and orderings\n");
	return 0;
}
