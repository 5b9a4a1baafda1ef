// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Functions of cuRAND that the guest carries out itself: generators and their stream, the tables of
 * Sobol's sequences, and calls of a host's generator. Such a call returns its numbers in a message,
 * so a large one is made in pieces.
 */
#include <stdlib.h>
#include <string.h>

#include "qcu-library/shims/curand.h"

/*
 * Numbers of a piece. A sequence in pieces is the same as in one if each piece but the last is a
 * multiple of what a generator makes at a time, which is a power of two.
 */
#define PIECE ((size_t)1 << 20)

/* What the guest knows of a generator: its type, and how many dimensions it has. */
static void *generator_facts(curandRngType_t type, unsigned int dimensions)
{
	return (void *)((uintptr_t)type << 32 | dimensions);
}

static curandRngType_t type_of(const struct qcul_object *o)
{
	return (curandRngType_t)((uintptr_t)o->own >> 32);
}

static unsigned int dimensions_of(const struct qcul_object *o)
{
	return (unsigned int)(uintptr_t)o->own;
}

static curandStatus_t create_generator(curandGenerator_t *generator, curandRngType_t type,
				       uint32_t kind)
{
	curandStatus_t status;

	if (!generator)
		return CURAND_STATUS_NOT_INITIALIZED;
	status = (curandStatus_t)qcul_lib_create_with(&qcul_curand, kind, type, (void **)generator);
	if (!status)
		((struct qcul_object *)*generator)->own = generator_facts(type, 1);
	return status;
}

curandStatus_t curandCreateGenerator(curandGenerator_t *generator, curandRngType_t type)
{
	return create_generator(generator, type, QCU_LIB_CURAND_GENERATOR);
}

curandStatus_t curandCreateGeneratorHost(curandGenerator_t *generator, curandRngType_t type)
{
	return create_generator(generator, type, QCU_LIB_CURAND_HOST);
}

curandStatus_t curandDestroyGenerator(curandGenerator_t generator)
{
	struct qcul_object *o = qcul_lib_find(generator, KIND_curandGenerator_t);

	if (!o)
		return CURAND_STATUS_NOT_INITIALIZED;
	return (curandStatus_t)qcul_lib_destroy(&qcul_curand, o->kind, o);
}

curandStatus_t curandSetStream(curandGenerator_t generator, cudaStream_t stream)
{
	struct qcul_object *o = qcul_lib_find(generator, KIND_curandGenerator_t);

	if (!o)
		return CURAND_STATUS_NOT_INITIALIZED;
	o->stream = stream;
	return CURAND_STATUS_SUCCESS;
}

curandStatus_t curandSetQuasiRandomGeneratorDimensions(curandGenerator_t generator,
						       unsigned int dimensions)
{
	struct qcul_object *o = qcul_lib_find(generator, KIND_curandGenerator_t);
	/* A pseudo-random generator is refused before the number is. */
	const bool none = o && type_of(o) < CURAND_RNG_QUASI_DEFAULT;
	curandStatus_t status =
		inner_curandSetQuasiRandomGeneratorDimensions(generator, none ? 1 : dimensions);

	if (!status)
		o->own = generator_facts(type_of(o), dimensions);
	return status;
}

/* ---- numbers ---- */

struct request {
	curandGenerator_t generator;
	void *to;
	size_t size; /* of a number */
	bool normal;
	double x, y; /* the distribution's */
	curandMethod_t method;
	curandStatus_t (*make)(const struct request *r, void *to, size_t n);
};

/* The library makes these in pairs for some types, and refuses an odd count. */
static bool refuses_odd(const struct request *r, const struct qcul_object *o)
{
	return r->normal &&
	       (type_of(o) == CURAND_RNG_PSEUDO_DEFAULT || type_of(o) == CURAND_RNG_PSEUDO_XORWOW ||
		type_of(o) == CURAND_RNG_PSEUDO_MRG32K3A);
}

static curandStatus_t make_pieces(const struct request *r, size_t n)
{
	curandStatus_t status = CURAND_STATUS_SUCCESS;
	size_t at, some;

	for (at = 0; at < n && !status; at += some) {
		some = n - at < PIECE ? n - at : PIECE;
		status = r->make(r, (char *)r->to + at * r->size, some);
	}
	return status;
}

/* The points of a piece lie dimension by dimension, as those of all pieces do in the end. */
static curandStatus_t make_pieces_of_points(const struct request *r, size_t n, size_t dimensions)
{
	const size_t points = n / dimensions, most = PIECE / dimensions;
	char *piece = malloc(most * dimensions * r->size);
	curandStatus_t status = piece ? CURAND_STATUS_SUCCESS : CURAND_STATUS_ALLOCATION_FAILED;
	size_t at, some, d;

	for (at = 0; at < points && !status; at += some) {
		some = points - at < most ? points - at : most;
		status = r->make(r, piece, some * dimensions);
		for (d = 0; d < dimensions && !status; d++)
			memcpy((char *)r->to + (d * points + at) * r->size,
			       piece + d * some * r->size, some * r->size);
	}
	free(piece);
	return status;
}

static curandStatus_t make_numbers(const struct request *r, size_t n)
{
	const struct qcul_object *o = qcul_lib_find(r->generator, KIND_curandGenerator_t);

	if (!o || !qcu_lib_kind_on_host(o->kind) || n <= PIECE)
		return r->make(r, r->to, n);
	if (!r->to || n > SIZE_MAX / r->size)
		return CURAND_STATUS_OUT_OF_RANGE;
	/* A count that the library refuses: nothing is made, as natively. */
	if (n % dimensions_of(o) || (n % 2 && refuses_odd(r, o)))
		return r->make(r, r->to, 1);
	if (dimensions_of(o) > 1)
		return make_pieces_of_points(r, n, dimensions_of(o));
	return make_pieces(r, n);
}

#define PLAIN(name, type)                                                                       \
	static curandStatus_t make_##name(const struct request *r, void *to, size_t n)          \
	{                                                                                       \
		return inner_##name(r->generator, to, n);                                       \
	}                                                                                       \
	curandStatus_t name(curandGenerator_t generator, type *to, size_t n)                    \
	{                                                                                       \
		return make_numbers(                                                            \
			&(struct request){generator, to, sizeof(*to), .make = make_##name}, n); \
	}

PLAIN(curandGenerate, unsigned int)
PLAIN(curandGenerateLongLong, unsigned long long)
PLAIN(curandGenerateUniform, float)
PLAIN(curandGenerateUniformDouble, double)

#define NORMAL(name, type)                                                                    \
	static curandStatus_t make_##name(const struct request *r, void *to, size_t n)        \
	{                                                                                     \
		return inner_##name(r->generator, to, n, (type)r->x, (type)r->y);             \
	}                                                                                     \
	curandStatus_t name(curandGenerator_t generator, type *to, size_t n, type mean,       \
			    type deviation)                                                   \
	{                                                                                     \
		return make_numbers(&(struct request){generator, to, sizeof(*to), true, mean, \
						      deviation, .make = make_##name},        \
				    n);                                                       \
	}

NORMAL(curandGenerateNormal, float)
NORMAL(curandGenerateNormalDouble, double)
NORMAL(curandGenerateLogNormal, float)
NORMAL(curandGenerateLogNormalDouble, double)

static curandStatus_t make_poisson(const struct request *r, void *to, size_t n)
{
	return inner_curandGeneratePoisson(r->generator, to, n, r->x);
}

curandStatus_t curandGeneratePoisson(curandGenerator_t generator, unsigned int *to, size_t n,
				     double lambda)
{
	return make_numbers(&(struct request){generator, to, sizeof(*to), .x = lambda,
					      .make = make_poisson},
			    n);
}

static curandStatus_t make_poisson_by(const struct request *r, void *to, size_t n)
{
	return inner_curandGeneratePoissonMethod(r->generator, to, n, r->x, r->method);
}

curandStatus_t curandGeneratePoissonMethod(curandGenerator_t generator, unsigned int *to, size_t n,
					   double lambda, curandMethod_t method)
{
	return make_numbers(&(struct request){generator, to, sizeof(*to), .x = lambda,
					      .method = method, .make = make_poisson_by},
			    n);
}

/* ---- tables ---- */

/* One that has been asked for once. It stays until the process ends, as natively. */
struct table {
	_Atomic(void *) at;
};

static curandStatus_t tell_table(struct table *t, uint16_t function, int set, size_t size,
				 void **to)
{
	void *at = atomic_load(&t->at), *none = NULL;
	struct qcul_pack p;
	int status;

	if (!to)
		return CURAND_STATUS_OUT_OF_RANGE;
	if (!at) {
		at = malloc(size);
		if (!at)
			return CURAND_STATUS_ALLOCATION_FAILED;
		qcul_lib_begin(&p, &qcul_curand, function);
		qcul_lib_value(&p, (uint64_t)set);
		qcul_lib_out(&p, at, size);
		status = qcul_lib_call(&p);
		/* Another thread may have been faster. */
		if (status || !atomic_compare_exchange_strong(&t->at, &none, at))
			free(at);
		if (status)
			return (curandStatus_t)status;
		at = atomic_load(&t->at);
	}
	*to = at;
	return CURAND_STATUS_SUCCESS;
}

curandStatus_t curandGetDirectionVectors32(curandDirectionVectors32_t **vectors,
					   curandDirectionVectorSet_t set)
{
	static struct table tables[2];
	const bool scrambled = set == CURAND_SCRAMBLED_DIRECTION_VECTORS_32_JOEKUO6;

	if (!scrambled && set != CURAND_DIRECTION_VECTORS_32_JOEKUO6)
		return CURAND_STATUS_OUT_OF_RANGE;
	return tell_table(&tables[scrambled], qcul_number_curandGetDirectionVectors32, (int)set,
			  QCU_CURAND_VECTORS_32, (void **)vectors);
}

curandStatus_t curandGetDirectionVectors64(curandDirectionVectors64_t **vectors,
					   curandDirectionVectorSet_t set)
{
	static struct table tables[2];
	const bool scrambled = set == CURAND_SCRAMBLED_DIRECTION_VECTORS_64_JOEKUO6;

	if (!scrambled && set != CURAND_DIRECTION_VECTORS_64_JOEKUO6)
		return CURAND_STATUS_OUT_OF_RANGE;
	return tell_table(&tables[scrambled], qcul_number_curandGetDirectionVectors64, (int)set,
			  QCU_CURAND_VECTORS_64, (void **)vectors);
}

curandStatus_t curandGetScrambleConstants32(unsigned int **constants)
{
	static struct table table;

	return tell_table(&table, qcul_number_curandGetScrambleConstants32, 0,
			  QCU_CURAND_CONSTANTS_32, (void **)constants);
}

curandStatus_t curandGetScrambleConstants64(unsigned long long **constants)
{
	static struct table table;

	return tell_table(&table, qcul_number_curandGetScrambleConstants64, 0,
			  QCU_CURAND_CONSTANTS_64, (void **)constants);
}
