// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Each kind of pseudo-random generator that cuRAND has: its bits, its uniform numbers in two types, pairs
 * of neighbours and normal numbers are spread by chance; another generator with the same seed gives the
 * same numbers, and one with another seed does not.
 */
#include "rand.h"

#define N (1 << 17)

static const struct {
	curandRngType_t type;
	const char *name;
} kinds[] = {
	{CURAND_RNG_PSEUDO_DEFAULT, "the default"}, {CURAND_RNG_PSEUDO_XORWOW, "XORWOW"},
	{CURAND_RNG_PSEUDO_MRG32K3A, "MRG32k3a"},   {CURAND_RNG_PSEUDO_MTGP32, "MTGP32"},
	{CURAND_RNG_PSEUDO_MT19937, "MT19937"},	    {CURAND_RNG_PSEUDO_PHILOX4_32_10, "Philox"},
};

/* Neighbours: 16 x 16 boxes, into which pairs fall. */
static std::vector<int> boxes(const std::vector<float> &v)
{
	std::vector<int> counts(256);

	for (size_t i = 0; i + 1 < v.size(); i += 2)
		counts[std::min(15, (int)(v[i] * 16)) * 16 + std::min(15, (int)(v[i + 1] * 16))]++;
	return counts;
}

/* The share of a normal distribution in each of 128 parts, whose borders divide it equally, is the same. */
static std::vector<int> shares(const std::vector<double> &v, double mean, double deviation)
{
	std::vector<int> counts(128);

	for (double x : v)
		counts[std::min(127, (int)(64 * erfc((mean - x) / deviation / sqrt(2.0))))]++;
	return counts;
}

static void generator(curandRngType_t type, const char *name, unsigned int *bits, float *f, double *d)
{
	curandGenerator_t g = make(type, 1234), twin = make(type, 1234), other = make(type, 4321);
	std::vector<unsigned int> numbers;

	OK(curandGenerateSeeds(g));
	OK(curandGenerate(g, bits, N));
	numbers = down(bits, N);
	each_bit(numbers);
	OK(curandGenerate(twin, bits, N));
	REQUIRE(down(bits, N) == numbers, "%s: the same seed gives other numbers", name);
	OK(curandGenerate(other, bits, N));
	REQUIRE(down(bits, N) != numbers, "%s: another seed gives the same numbers", name);
	OK(curandGenerate(twin, bits, N));
	REQUIRE(down(bits, N) != numbers, "%s: the numbers come again", name);

	OK(curandGenerateUniform(g, f, N));
	by_chance(name, parts(down(f, N), 256), std::vector<double>(256, N / 256.0));
	by_chance(name, boxes(down(f, N)), std::vector<double>(256, N / 2 / 256.0));
	OK(curandGenerateUniformDouble(g, d, N));
	by_chance(name, parts(down(d, N), 256), std::vector<double>(256, N / 256.0));
	OK(curandGenerateNormalDouble(g, d, N, -3, 0.5));
	by_chance(name, shares(down(d, N), -3, 0.5), std::vector<double>(128, N / 128.0));
	OK(curandGenerateNormal(g, f, N, 100, 10));
	moments(name, down(f, N), 100, 10);
	OK(curandGenerateLogNormalDouble(g, d, N, 1, 0.25));
	moments(name, down(d, N), exp(1.03125), exp(1.03125) * sqrt(exp(0.0625) - 1));
	for (curandGenerator_t one : {g, twin, other})
		OK(curandDestroyGenerator(one));
}

static void wrong_calls(curandGenerator_t g, unsigned int *bits, float *f)
{
	curandGenerator_t other;
	int value;

	FAILS(curandCreateGenerator(NULL, CURAND_RNG_PSEUDO_XORWOW));
	FAILS(curandCreateGenerator(&other, (curandRngType_t)77));
	FAILS(curandGenerate(NULL, bits, N));
	FAILS(curandGenerateUniform(NULL, f, N));
	FAILS(curandGenerateSeeds(NULL));
	FAILS(curandSetStream(NULL, NULL));
	FAILS(curandSetPseudoRandomGeneratorSeed(NULL, 1));
	FAILS(curandDestroyGenerator(NULL));
	/* For quasi-random generators only. */
	FAILS(curandGenerateLongLong(g, (unsigned long long *)bits, 4));
	FAILS(curandSetQuasiRandomGeneratorDimensions(g, 2));
	FAILS(curandGetProperty((libraryPropertyType)77, &value));
}

int main(void)
{
	curandGenerator_t g = begin(CURAND_RNG_PSEUDO_DEFAULT);
	int version = 0, major = 0, minor = 0, patch = 0;
	unsigned int *bits;
	double *d;
	float *f;

	CHECK(cudaMalloc(&bits, N * sizeof(*bits)));
	CHECK(cudaMalloc(&d, N * sizeof(*d)));
	CHECK(cudaMalloc(&f, N * sizeof(*f)));
	wrong_calls(g, bits, f);
	OK(curandDestroyGenerator(g));
	OK(curandGetVersion(&version));
	OK(curandGetProperty(MAJOR_VERSION, &major));
	OK(curandGetProperty(MINOR_VERSION, &minor));
	OK(curandGetProperty(PATCH_LEVEL, &patch));
	REQUIRE(version == major * 1000 + minor * 100 + patch, "version %d is not %d.%d.%d", version, major, minor,
		patch);
	for (const auto &kind : kinds)
		generator(kind.type, kind.name, bits, f, d);
	CHECK(cudaFree(bits));
	CHECK(cudaFree(d));
	CHECK(cudaFree(f));
	printf("the bits, uniform and normal numbers of each kind of generator\n");
	return 0;
}
