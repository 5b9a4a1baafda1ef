// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Generators of the host and the tables of cuRAND give the bits of NVIDIA's own library, which is
 * called beside the shim: all types, all distributions, sequences that are made in pieces, and the
 * status of each wrong call. curand_native_backend.c is the GPU.
 */
#include <curand.h>
#include <dlfcn.h>
#include <math.h>

#include "../check.h"
#include "curand_native.h"

#define RIGHT(call)                                    \
	do {                                           \
		int got_ = (int)(call);                \
		REQUIRE(!got_, "%s: %d", #call, got_); \
	} while (0)

#define PIECE (1 << 20) /* what the shim asks for at a time */
#define MOST  (PIECE + PIECE / 2)

/* The functions of NVIDIA's library and those of the shim. */
#define NAMES(X)                                   \
	X(curandCreateGeneratorHost)               \
	X(curandDestroyGenerator)                  \
	X(curandSetStream)                         \
	X(curandSetPseudoRandomGeneratorSeed)      \
	X(curandSetGeneratorOffset)                \
	X(curandSetGeneratorOrdering)              \
	X(curandSetQuasiRandomGeneratorDimensions) \
	X(curandGenerateSeeds)                     \
	X(curandGenerate)                          \
	X(curandGenerateLongLong)                  \
	X(curandGenerateUniform)                   \
	X(curandGenerateUniformDouble)             \
	X(curandGenerateNormal)                    \
	X(curandGenerateNormalDouble)              \
	X(curandGenerateLogNormal)                 \
	X(curandGenerateLogNormalDouble)           \
	X(curandGeneratePoisson)                   \
	X(curandGeneratePoissonMethod)             \
	X(curandGetDirectionVectors32)             \
	X(curandGetDirectionVectors64)             \
	X(curandGetScrambleConstants32)            \
	X(curandGetScrambleConstants64)

struct library {
#define MEMBER(name) __typeof__(&name) name;
	NAMES(MEMBER)
};

#define OURS(name) .name = name,
static struct library theirs, ours = {NAMES(OURS)};
static union {
	unsigned char bytes[8 * MOST];
	unsigned int bits[MOST];
	unsigned long long wide[MOST];
	float narrow[MOST];
	double twice[MOST];
} * want, *got;

static void load_theirs(void)
{
	void *lib = dlopen(CURAND_NATIVE, RTLD_NOW | RTLD_LOCAL);

	if (!lib) {
		printf("skipped: %s\n", dlerror());
		exit(77);
	}
#define LOAD(name)                                  \
	*(void **)&theirs.name = dlsym(lib, #name); \
	REQUIRE(theirs.name && (void *)theirs.name != (void *)ours.name, "%s is not there", #name);
	NAMES(LOAD)
}

static const int kinds[] = {CURAND_RNG_PSEUDO_DEFAULT,		CURAND_RNG_PSEUDO_XORWOW,
			    CURAND_RNG_PSEUDO_MRG32K3A,		CURAND_RNG_PSEUDO_MTGP32,
			    CURAND_RNG_PSEUDO_PHILOX4_32_10,	CURAND_RNG_QUASI_SOBOL32,
			    CURAND_RNG_QUASI_SCRAMBLED_SOBOL32, CURAND_RNG_QUASI_SOBOL64,
			    CURAND_RNG_QUASI_SCRAMBLED_SOBOL64};
#define KINDS	      (sizeof(kinds) / sizeof(kinds[0]))
#define DISTRIBUTIONS 12

static curandGenerator_t make(const struct library *l, int type, unsigned int dimensions)
{
	curandGenerator_t g;

	REQUIRE(!l->curandCreateGeneratorHost(&g, (curandRngType_t)type), "no generator %d", type);
	if (dimensions > 1)
		REQUIRE(!l->curandSetQuasiRandomGeneratorDimensions(g, dimensions), "%u",
			dimensions);
	return g;
}

/* Numbers of a distribution. *size: of one. */
static int numbers(const struct library *l, curandGenerator_t g, int which, void *at, size_t n,
		   size_t *size)
{
	*size = which == 1 || which == 3 || which == 5 || which == 7 ? 8 : 4;
	switch (which) {
	case 0:
		return l->curandGenerate(g, at, n);
	case 1:
		return l->curandGenerateLongLong(g, at, n);
	case 2:
		return l->curandGenerateUniform(g, at, n);
	case 3:
		return l->curandGenerateUniformDouble(g, at, n);
	case 4:
		return l->curandGenerateNormal(g, at, n, 1.5f, 2.5f);
	case 5:
		return l->curandGenerateNormalDouble(g, at, n, 1.5, 2.5);
	case 6:
		return l->curandGenerateLogNormal(g, at, n, 0.5f, 0.25f);
	case 7:
		return l->curandGenerateLogNormalDouble(g, at, n, 0.5, 0.25);
	case 8:
		return l->curandGeneratePoisson(g, at, n, 7.5);
	case 9:
		return l->curandGeneratePoisson(g, at, n, 5000);
	case 10:
		return l->curandGeneratePoissonMethod(g, at, n, 20, CURAND_CHOOSE_BEST);
	default:
		return l->curandGeneratePoisson(g, at, n, 0);
	}
}

/* The same call of both has the same answer. */
static void same(curandGenerator_t a, curandGenerator_t b, int type, int which, size_t n)
{
	size_t size;
	int status = numbers(&theirs, a, which, want, n, &size);
	int is = numbers(&ours, b, which, got, n, &size);

	REQUIRE(is == status, "type %d, distribution %d, %zu numbers: status %d, not %d", type,
		which, n, is, status);
	REQUIRE(status || !memcmp(want, got, n * size),
		"type %d, distribution %d, %zu numbers: other bits", type, which, n);
}

/* Small calls, of a count that some refuse, too, and what comes next in the sequence. */
static void small_calls(void)
{
	static const size_t counts[] = {0, 1, 2, 1000, 999, 4096, 12};
	curandGenerator_t a, b;
	size_t i, n;
	int which;

	for (i = 0; i < KINDS; i++) {
		a = make(&theirs, kinds[i], 1);
		b = make(&ours, kinds[i], 1);
		for (which = 0; which < DISTRIBUTIONS; which++)
			for (n = 0; n < sizeof(counts) / sizeof(counts[0]); n++)
				same(a, b, kinds[i], which, counts[n]);
		RIGHT(theirs.curandDestroyGenerator(a));
		RIGHT(curandDestroyGenerator(b));
	}
}

/* More than a piece, also of a count that is refused as a whole; and the sequence goes on. */
static void large_calls(void)
{
	static const size_t counts[] = {PIECE + 1, PIECE + 1000, 30};
	static const int types[] = {CURAND_RNG_PSEUDO_XORWOW, CURAND_RNG_PSEUDO_MTGP32,
				    CURAND_RNG_PSEUDO_PHILOX4_32_10, CURAND_RNG_QUASI_SOBOL32};
	static const int some[] = {0, 5};
	curandGenerator_t a, b;
	size_t i, n, w;

	for (i = 0; i < 4; i++) {
		for (w = 0; w < 2; w++) {
			a = make(&theirs, types[i], 1);
			b = make(&ours, types[i], 1);
			for (n = 0; n < 3; n++)
				same(a, b, types[i], some[w], counts[n]);
			RIGHT(theirs.curandDestroyGenerator(a));
			RIGHT(curandDestroyGenerator(b));
		}
	}
}

/* Points of several dimensions lie dimension by dimension, in all of a call. */
static void points(void)
{
	static const unsigned int dimensions[] = {3, 20000};
	curandGenerator_t a, b;
	size_t i, d, n;

	for (i = KINDS - 4; i < KINDS; i += 3) {
		for (d = 0; d < 2; d++) {
			n = MOST / dimensions[d] * dimensions[d];
			a = make(&theirs, kinds[i], dimensions[d]);
			b = make(&ours, kinds[i], dimensions[d]);
			same(a, b, kinds[i], 3, n);
			same(a, b, kinds[i], 3, n - 1);
			same(a, b, kinds[i], 2, 3 * dimensions[d]);
			same(a, b, kinds[i], 2, 3 * dimensions[d] + 1);
			RIGHT(theirs.curandDestroyGenerator(a));
			RIGHT(curandDestroyGenerator(b));
		}
	}
}

#define BOTH(call)                                                                                \
	do {                                                                                      \
		const struct library *l = &theirs;                                                \
		curandGenerator_t g = a;                                                          \
		int status = (int)(call), is;                                                     \
                                                                                                  \
		l = &ours;                                                                        \
		g = b;                                                                            \
		is = (int)(call);                                                                 \
		REQUIRE(is == status, "type %d: %s: status %d, not %d", type, #call, is, status); \
	} while (0)

/* What is set in a generator, and what it refuses. */
static void settings(void)
{
	curandGenerator_t a, b;
	size_t i;
	int type;

	for (i = 0; i < KINDS; i++) {
		type = kinds[i];
		a = make(&theirs, type, 1);
		b = make(&ours, type, 1);
		BOTH(l->curandSetStream(g, NULL));
		BOTH(l->curandSetPseudoRandomGeneratorSeed(g, 77));
		BOTH(l->curandSetQuasiRandomGeneratorDimensions(g, 0));
		BOTH(l->curandSetQuasiRandomGeneratorDimensions(g, 2));
		BOTH(l->curandSetGeneratorOrdering(g, CURAND_ORDERING_PSEUDO_LEGACY));
		BOTH(l->curandSetGeneratorOrdering(g, (curandOrdering_t)7));
		BOTH(l->curandSetGeneratorOffset(g, 1000));
		BOTH(l->curandGenerateSeeds(g));
		same(a, b, type, 2, 1000);
		same(a, b, type, 2, 3);
		RIGHT(theirs.curandDestroyGenerator(a));
		RIGHT(curandDestroyGenerator(b));
	}
}

static void wrong(void)
{
	curandDirectionVectors32_t *vectors;
	curandGenerator_t a, b;
	const int type = 7;
	float number;

	REQUIRE(curandCreateGeneratorHost(NULL, CURAND_RNG_PSEUDO_XORWOW), "no place");
	REQUIRE(theirs.curandCreateGeneratorHost(&a, (curandRngType_t)type) ==
			curandCreateGeneratorHost(&b, (curandRngType_t)type),
		"a type that is none");
	REQUIRE(curandGenerateUniform(NULL, &number, 1) == CURAND_STATUS_NOT_INITIALIZED, "none");
	REQUIRE(curandGetDirectionVectors32(NULL, CURAND_DIRECTION_VECTORS_32_JOEKUO6), "no place");
	REQUIRE(curandGetDirectionVectors32(&vectors, CURAND_DIRECTION_VECTORS_64_JOEKUO6) ==
			theirs.curandGetDirectionVectors32(&vectors,
							   CURAND_DIRECTION_VECTORS_64_JOEKUO6),
		"a set of the other width");
	REQUIRE(curandGetScrambleConstants64(NULL), "no place");
	b = make(&ours, CURAND_RNG_PSEUDO_MTGP32, 1);
	/* Natively these write where they must not. */
	REQUIRE(curandGenerateUniform(b, NULL, 8) == CURAND_STATUS_OUT_OF_RANGE, "nowhere");
	REQUIRE(curandGenerateUniform(b, NULL, 2 * PIECE) == CURAND_STATUS_OUT_OF_RANGE, "nowhere");
	REQUIRE(curandGenerateUniform(b, &number, SIZE_MAX) == CURAND_STATUS_OUT_OF_RANGE, "more");
	REQUIRE(curandGeneratePoisson(b, got->bits, 8, NAN) == CURAND_STATUS_OUT_OF_RANGE, "NaN");
	REQUIRE(curandGeneratePoisson(b, got->bits, 8, INFINITY) == CURAND_STATUS_OUT_OF_RANGE,
		"infinite");
	RIGHT(curandDestroyGenerator(b));
	REQUIRE(curandDestroyGenerator(b) == CURAND_STATUS_NOT_INITIALIZED, "it is gone");
}

static void tables(void)
{
	static const int sets[] = {CURAND_DIRECTION_VECTORS_32_JOEKUO6,
				   CURAND_SCRAMBLED_DIRECTION_VECTORS_32_JOEKUO6,
				   CURAND_DIRECTION_VECTORS_64_JOEKUO6,
				   CURAND_SCRAMBLED_DIRECTION_VECTORS_64_JOEKUO6};
	curandDirectionVectors32_t *narrow[2];
	curandDirectionVectors64_t *wide[2];
	unsigned long long *constants[2];
	unsigned int *few[2];
	int i;

	for (i = 0; i < 2; i++) {
		RIGHT(theirs.curandGetDirectionVectors32(&narrow[0],
							 (curandDirectionVectorSet_t)sets[i]));
		RIGHT(curandGetDirectionVectors32(&narrow[1], (curandDirectionVectorSet_t)sets[i]));
		REQUIRE(!memcmp(narrow[0], narrow[1], 20000 * sizeof(*narrow[0])), "set %d",
			sets[i]);
		RIGHT(theirs.curandGetDirectionVectors64(&wide[0],
							 (curandDirectionVectorSet_t)sets[2 + i]));
		RIGHT(curandGetDirectionVectors64(&wide[1],
						  (curandDirectionVectorSet_t)sets[2 + i]));
		REQUIRE(!memcmp(wide[0], wide[1], 20000 * sizeof(*wide[0])), "set %d", sets[2 + i]);
		/* Asked for again, a table is where it was. */
		REQUIRE(!curandGetDirectionVectors64(&wide[0],
						     (curandDirectionVectorSet_t)sets[2 + i]) &&
				wide[0] == wide[1],
			"another table");
	}
	RIGHT(theirs.curandGetScrambleConstants32(&few[0]));
	RIGHT(curandGetScrambleConstants32(&few[1]));
	REQUIRE(!memcmp(few[0], few[1], 20000 * sizeof(*few[0])), "constants");
	RIGHT(theirs.curandGetScrambleConstants64(&constants[0]));
	RIGHT(curandGetScrambleConstants64(&constants[1]));
	REQUIRE(!memcmp(constants[0], constants[1], 20000 * sizeof(*constants[0])), "constants");
}

int main(int argc, char **argv)
{
	char path[4096];

	(void)argc;
	snprintf(path, sizeof(path), "%s_backend.so", argv[0]);
	setenv("QCU_LOOPBACK_BACKEND", path, 1);
	load_theirs();
	want = malloc(sizeof(*want));
	got = malloc(sizeof(*got));
	REQUIRE(want && got, "no memory");
	wrong();
	tables();
	settings();
	small_calls();
	large_calls();
	points();
	printf("generators of the host and tables, as NVIDIA's\n");
	return 0;
}
