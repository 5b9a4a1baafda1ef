// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * cuRAND on the software GPU: uniform and normal numbers, in the order of the stream. They are not
 * NVIDIA's numbers, whichever generator is asked for: the n-th number is a hash of n and the seed
 * (the finalizer of SplitMix64, by Sebastiano Vigna, over a sequence of Weyl's). So the same seed
 * and offset give the same numbers, and a generator is a position.
 */
#include <math.h>
#include <stdlib.h>

#include <curand.h>

#include "qcu-device/soft/libs/libs.h"

struct curandGenerator_st {
	struct be *be;
	struct be_stream *stream;
	uint64_t seed, at;
	bool on_host; /* it writes into host memory, at once */
};

enum what { BITS, UNIFORM, NORMAL, LOG_NORMAL };

struct numbers {
	struct soft_work work;
	struct be *be;
	bool on_host;
	uint64_t seed, at, n;
	enum what what;
	bool twice; /* double */
	void *to;
	double mean, deviation;
};

static uint64_t mix_number_bits(uint64_t x)
{
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ x >> 27) * 0x94d049bb133111ebull;
	return x ^ x >> 31;
}

static uint64_t bits(const struct numbers *r, uint64_t i)
{
	return mix_number_bits(mix_number_bits(r->seed + 0x9e3779b97f4a7c15ull) +
			       (r->at + i) * 0x9e3779b97f4a7c15ull);
}

/* Above 0, and up to 1, as NVIDIA's. In float, 24 bits: a number near 1 must not become more. */
static double uniform(const struct numbers *r, uint64_t i)
{
	return r->twice ? ((double)(bits(r, i) >> 11) + 1) * 0x1p-53
			: ((double)(bits(r, i) >> 40) + 1) * 0x1p-24;
}

/* Two uniform numbers make two normal ones (Box and Muller). */
static double normal(const struct numbers *r, uint64_t i)
{
	double radius = sqrt(-2 * log(uniform(r, i & ~1ull)));
	double angle = 2 * M_PI * uniform(r, i | 1);
	double x = r->mean + r->deviation * radius * (i & 1 ? sin(angle) : cos(angle));

	return r->what == LOG_NORMAL ? exp(x) : x;
}

static int generate_numbers(struct soft_work *w)
{
	const struct numbers *r = (const struct numbers *)w;
	const uint64_t size = r->twice ? 8 : 4;
	uint64_t i;

	if (r->n > UINT64_MAX / 8)
		return QCU_ERR_IllegalAddress;
	if (!r->on_host && !soft_mem_usable(r->be, (uint64_t)(uintptr_t)r->to, r->n * size))
		return QCU_ERR_IllegalAddress;
	if ((uintptr_t)r->to % size)
		return QCU_ERR_MisalignedAddress;
	for (i = 0; i < r->n && !__atomic_load_n(&r->be->cancel, __ATOMIC_RELAXED); i++) {
		double x;

		if (r->what == BITS) {
			((uint32_t *)r->to)[i] = (uint32_t)(bits(r, i) >> 32);
			continue;
		}
		x = r->what == UNIFORM ? uniform(r, i) : normal(r, i);
		if (r->twice)
			((double *)r->to)[i] = x;
		else
			((float *)r->to)[i] = (float)x;
	}
	return 0;
}

static curandStatus_t generate(curandGenerator_t g, enum what what, bool twice, void *to, size_t n,
			       double mean, double deviation)
{
	struct numbers *r;
	int rc;

	r = calloc(1, sizeof(*r));
	if (!r)
		return CURAND_STATUS_ALLOCATION_FAILED;
	r->work = (struct soft_work){.run = generate_numbers,
				     .busy = BE_BUSY_KERNELS,
				     .free = soft_work_free,
				     .bytes = sizeof(*r) - sizeof(r->work)};
	r->be = g->be;
	r->on_host = g->on_host;
	r->seed = g->seed;
	r->at = g->at;
	r->n = n;
	r->what = what;
	r->twice = twice;
	r->to = to;
	r->mean = mean;
	r->deviation = deviation;
	/* Normal numbers come in pairs: of an odd count, the last one's pair is used up. */
	g->at += n + (what >= NORMAL ? n % 2 : 0);
	if (g->on_host) {
		rc = generate_numbers(&r->work);
		free(r);
		return rc ? CURAND_STATUS_LAUNCH_FAILURE : CURAND_STATUS_SUCCESS;
	}
	return soft_submit(g->stream, &r->work, SOFT_QUEUE, NULL) ? CURAND_STATUS_LAUNCH_FAILURE
								  : CURAND_STATUS_SUCCESS;
}

static curandStatus_t soft_curandCreateGenerator(curandGenerator_t *generator, curandRngType_t type)
{
	curandGenerator_t g;

	switch (type) {
	case CURAND_RNG_PSEUDO_DEFAULT:
	case CURAND_RNG_PSEUDO_XORWOW:
	case CURAND_RNG_PSEUDO_MRG32K3A:
	case CURAND_RNG_PSEUDO_MTGP32:
	case CURAND_RNG_PSEUDO_MT19937:
	case CURAND_RNG_PSEUDO_PHILOX4_32_10:
		break;
	default:
		return CURAND_STATUS_TYPE_ERROR;
	}
	g = calloc(1, sizeof(*g));
	if (!g)
		return CURAND_STATUS_ALLOCATION_FAILED;
	g->be = soft_library_be;
	*generator = g;
	return CURAND_STATUS_SUCCESS;
}

static curandStatus_t soft_curandCreateGeneratorHost(curandGenerator_t *generator,
						     curandRngType_t type)
{
	curandStatus_t status = soft_curandCreateGenerator(generator, type);

	if (!status)
		(*generator)->on_host = true;
	return status;
}

static curandStatus_t soft_curandDestroyGenerator(curandGenerator_t g)
{
	free(g);
	return CURAND_STATUS_SUCCESS;
}

static curandStatus_t soft_curandSetStream(curandGenerator_t g, cudaStream_t stream)
{
	g->stream = (struct be_stream *)stream;
	return CURAND_STATUS_SUCCESS;
}

static curandStatus_t soft_curandSetPseudoRandomGeneratorSeed(curandGenerator_t g,
							      unsigned long long seed)
{
	g->seed = seed;
	g->at = 0;
	return CURAND_STATUS_SUCCESS;
}

static curandStatus_t soft_curandSetGeneratorOffset(curandGenerator_t g, unsigned long long offset)
{
	g->at = offset;
	return CURAND_STATUS_SUCCESS;
}

/* There is nothing to make ready. */
static curandStatus_t soft_curandGenerateSeeds(curandGenerator_t g)
{
	(void)g;
	return CURAND_STATUS_SUCCESS;
}

static curandStatus_t soft_curandSetQuasiRandomGeneratorDimensions(curandGenerator_t g,
								   unsigned int dimensions)
{
	(void)g;
	(void)dimensions;
	return CURAND_STATUS_TYPE_ERROR;
}

static curandStatus_t soft_curandGenerate(curandGenerator_t g, unsigned int *to, size_t n)
{
	return generate(g, BITS, false, to, n, 0, 0);
}

static curandStatus_t soft_curandGenerateUniform(curandGenerator_t g, float *to, size_t n)
{
	return generate(g, UNIFORM, false, to, n, 0, 0);
}

static curandStatus_t soft_curandGenerateUniformDouble(curandGenerator_t g, double *to, size_t n)
{
	return generate(g, UNIFORM, true, to, n, 0, 0);
}

static curandStatus_t soft_curandGenerateNormal(curandGenerator_t g, float *to, size_t n,
						float mean, float deviation)
{
	return generate(g, NORMAL, false, to, n, mean, deviation);
}

static curandStatus_t soft_curandGenerateNormalDouble(curandGenerator_t g, double *to, size_t n,
						      double mean, double deviation)
{
	return generate(g, NORMAL, true, to, n, mean, deviation);
}

static curandStatus_t soft_curandGenerateLogNormal(curandGenerator_t g, float *to, size_t n,
						   float mean, float deviation)
{
	return generate(g, LOG_NORMAL, false, to, n, mean, deviation);
}

static curandStatus_t soft_curandGenerateLogNormalDouble(curandGenerator_t g, double *to, size_t n,
							 double mean, double deviation)
{
	return generate(g, LOG_NORMAL, true, to, n, mean, deviation);
}

/* The version of cuRAND whose functions these are. */
static curandStatus_t soft_curandGetVersion(int *version)
{
	if (!version)
		return CURAND_STATUS_OUT_OF_RANGE;
	*version = CURAND_VERSION;
	return CURAND_STATUS_SUCCESS;
}

static curandStatus_t soft_curandGetProperty(libraryPropertyType type, int *value)
{
	if (!value || (type != MAJOR_VERSION && type != MINOR_VERSION && type != PATCH_LEVEL))
		return CURAND_STATUS_OUT_OF_RANGE;
	*value = type == MAJOR_VERSION	 ? CURAND_VER_MAJOR
		 : type == MINOR_VERSION ? CURAND_VER_MINOR
					 : CURAND_VER_PATCH;
	return CURAND_STATUS_SUCCESS;
}

#define RAND(name)                                        \
	{                                                 \
		"curand" #name, (void *)soft_curand##name \
	}

const struct soft_symbol soft_rand[] = {RAND(CreateGenerator),
					RAND(CreateGeneratorHost),
					RAND(DestroyGenerator),
					RAND(SetStream),
					RAND(SetPseudoRandomGeneratorSeed),
					RAND(SetGeneratorOffset),
					RAND(SetQuasiRandomGeneratorDimensions),
					RAND(GenerateSeeds),
					RAND(Generate),
					RAND(GenerateUniform),
					RAND(GenerateUniformDouble),
					RAND(GenerateNormal),
					RAND(GenerateNormalDouble),
					RAND(GenerateLogNormal),
					RAND(GenerateLogNormalDouble),
					RAND(GetVersion),
					RAND(GetProperty),
					{NULL, NULL}};
