// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The stubs of cuBLASLt that are written by hand: calls with descriptions. A description is sent as
 * plain data of a fixed size (include/qculib_cublaslt.h). This file makes the library's own
 * description from it, attribute by attribute. So the library checks each value, and the guest's
 * bytes never become one of its structures. Only an algorithm consists of the library's own bytes.
 * An algorithm that the library has not made itself is refused (cublaslt_algos.c).
 */
#include <string.h>

#include "qcu-device/libs/cublaslt.h"

enum helper {
	LAYOUT_INIT,
	LAYOUT_SET,
	MATMUL_INIT,
	MATMUL_SET,
	TRANSFORM_INIT,
	TRANSFORM_SET,
	PREFERENCE_INIT,
	PREFERENCE_SET,
};

const char *const lib_cublaslt_helpers[LIB_HELPERS] = {
	[LAYOUT_INIT] = "cublasLtMatrixLayoutInit_internal",
	[LAYOUT_SET] = "cublasLtMatrixLayoutSetAttribute",
	[MATMUL_INIT] = "cublasLtMatmulDescInit_internal",
	[MATMUL_SET] = "cublasLtMatmulDescSetAttribute",
	[TRANSFORM_INIT] = "cublasLtMatrixTransformDescInit_internal",
	[TRANSFORM_SET] = "cublasLtMatrixTransformDescSetAttribute",
	[PREFERENCE_INIT] = "cublasLtMatmulPreferenceInit_internal",
	[PREFERENCE_SET] = "cublasLtMatmulPreferenceSetAttribute",
};

const struct lib_kind lib_cublaslt_kinds[QCU_LIB_KINDS] = {
	[QCU_LIB_CUBLASLT_HANDLE] =
		{
			.bare = true,
			.create = "cublasLtCreate",
			.destroy = "cublasLtDestroy",
			.numbered = true,
		},
};

/* Takes a description. False: a null pointer, or not one of this kind. */
static bool take_desc(struct lib_call *c, void *to, size_t size, uint32_t is, bool may_miss)
{
	uint64_t len;
	void *at = lib_in(c, &len);

	memset(to, 0, size);
	if (!at) {
		c->bad |= !may_miss;
		return false;
	}
	lib_sized(c, at, len, size);
	if (!c->bad)
		memcpy(to, at, size);
	if (memcmp(to, &is, sizeof(is)) != 0)
		c->bad = true;
	return !c->bad;
}

/* A matrix. `at` is NULL if the program passed no layout. */
struct layout {
	struct qcu_lt_layout given;
	cublasLtMatrixLayoutOpaque_t own;
	cublasLtMatrixLayout_t at;
};

static void take_layout(struct lib_call *c, struct layout *l)
{
	l->at = take_desc(c, &l->given, sizeof(l->given), QCU_LT_IS_LAYOUT, true) ? &l->own : NULL;
}

/* An address in a description is taken as one that is an argument. */
static void take_lt_address(struct lib_call *c, qcu_lt_address *address)
{
	*address = (uint64_t)(uintptr_t)lib_address(c, *address);
}

static void take_matmul(struct lib_call *c, struct qcu_lt_matmul *m)
{
	qcu_lt_address *const all[] = {&m->bias,     &m->aux,	     &m->scale_a, &m->scale_b,
				       &m->scale_c,  &m->scale_d,    &m->amax_d,  &m->aux_scale,
				       &m->aux_amax, &m->scale_d_out};
	size_t i;

	if (take_desc(c, m, sizeof(*m), QCU_LT_IS_MATMUL, false))
		for (i = 0; i < sizeof(all) / sizeof(all[0]); i++)
			if (*all[i])
				take_lt_address(c, all[i]);
}

/* An algorithm. NULL: there is none, or `refused` is set. */
static const void *take_algo(struct lib_call *c)
{
	uint64_t len;
	const void *algo = lib_in(c, &len);

	lib_sized(c, algo, len, sizeof(cublasLtMatmulAlgo_t));
	if (!algo || c->bad)
		return NULL;
	if (lib_algo_known(c, algo))
		return algo;
	c->refused = CUBLAS_STATUS_INVALID_VALUE;
	return NULL;
}

/* ---- the library's own descriptions. Each returns its status. ---- */

#define SET_ATTRIBUTE(number, field, type)                                           \
	if (!status && (given->set >> bit & 1))                                      \
		status = (int)set(own, number, &given->field, sizeof(given->field)); \
	bit++;

static int make_layout(struct lib_call *c, struct layout *l)
{
	__typeof__(&cublasLtMatrixLayoutInit_internal) init = lib_helper(c, LAYOUT_INIT);
	__typeof__(&cublasLtMatrixLayoutSetAttribute) set = lib_helper(c, LAYOUT_SET);
	const struct qcu_lt_layout *given = &l->given;
	cublasLtMatrixLayout_t own = &l->own;
	unsigned int bit = 0;
	int status;

	if (!l->at)
		return CUBLAS_STATUS_SUCCESS;
	if (!init || !set)
		return CUBLAS_STATUS_NOT_SUPPORTED;
	status = (int)init(own, sizeof(*own), (cudaDataType)given->type, given->rows, given->cols,
			   given->ld);
	QCU_LT_LAYOUT(SET_ATTRIBUTE)
	return status;
}

static int make_matmul(struct lib_call *c, const struct qcu_lt_matmul *given,
		       cublasLtMatmulDescOpaque_t *own)
{
	__typeof__(&cublasLtMatmulDescInit_internal) init = lib_helper(c, MATMUL_INIT);
	__typeof__(&cublasLtMatmulDescSetAttribute) set = lib_helper(c, MATMUL_SET);
	unsigned int bit = 0;
	int status;

	if (!init || !set)
		return CUBLAS_STATUS_NOT_SUPPORTED;
	status = (int)init(own, sizeof(*own), (cublasComputeType_t)given->compute,
			   (cudaDataType_t)given->scale);
	QCU_LT_MATMUL(SET_ATTRIBUTE)
	return status;
}

static int make_transform(struct lib_call *c, const struct qcu_lt_transform *given,
			  cublasLtMatrixTransformDescOpaque_t *own)
{
	__typeof__(&cublasLtMatrixTransformDescInit_internal) init = lib_helper(c, TRANSFORM_INIT);
	__typeof__(&cublasLtMatrixTransformDescSetAttribute) set = lib_helper(c, TRANSFORM_SET);
	unsigned int bit = 0;
	int status;

	if (!init || !set)
		return CUBLAS_STATUS_NOT_SUPPORTED;
	status = (int)init(own, sizeof(*own), (cudaDataType)given->scale);
	QCU_LT_TRANSFORM(SET_ATTRIBUTE)
	return status;
}

static int make_preference(struct lib_call *c, const struct qcu_lt_preference *given,
			   cublasLtMatmulPreferenceOpaque_t *own)
{
	__typeof__(&cublasLtMatmulPreferenceInit_internal) init = lib_helper(c, PREFERENCE_INIT);
	__typeof__(&cublasLtMatmulPreferenceSetAttribute) set = lib_helper(c, PREFERENCE_SET);
	unsigned int bit = 0;
	int status;

	if (!init || !set)
		return CUBLAS_STATUS_NOT_SUPPORTED;
	status = (int)init(own, sizeof(*own));
	QCU_LT_PREFERENCE(SET_ATTRIBUTE)
	return status;
}

/* ---- scalars ---- */

/*
 * A scalar is where the description's mode says; the library would read host memory of this process
 * at any address otherwise. The mode counts only if it has been set.
 */
static void *take_scalar(struct lib_call *c, bool on_gpu)
{
	void *at;

	c->mode = -1;
	at = lib_scalar(c, 16, LIB_IN);
	if (at && c->mode != (on_gpu ? 1 : 0))
		c->bad = true;
	c->mode = -1;
	return at;
}

/* The mode that the library will see: that which is set, in the bit of `pointers`. */
static int pointer_mode_of(uint32_t set, unsigned int bit, int mode)
{
	return set >> bit & 1 ? mode : QCU_LT_HOST;
}

#define MATMUL_POINTERS_BIT    2
#define TRANSFORM_POINTERS_BIT 1

/* ---- the stubs ---- */

int lib_do_cublasLtMatmul(struct lib_call *c)
{
	cublasLtHandle_t handle = lib_object(c, QCU_LIB_CUBLASLT_HANDLE);
	struct layout la, lb, lc, ld;
	cublasLtMatmulDescOpaque_t own;
	struct qcu_lt_matmul given;
	const void *alpha, *beta, *a, *b, *cc, *algo;
	void *d, *workspace;
	size_t size;
	int mode, status;

	take_matmul(c, &given);
	mode = pointer_mode_of(given.set, MATMUL_POINTERS_BIT, given.pointers);
	alpha = take_scalar(c, qcu_lt_alpha_on_gpu(mode));
	a = lib_device(c);
	take_layout(c, &la);
	b = lib_device(c);
	take_layout(c, &lb);
	beta = take_scalar(c, qcu_lt_beta_on_gpu(mode));
	cc = lib_device(c);
	take_layout(c, &lc);
	d = lib_device(c);
	take_layout(c, &ld);
	algo = take_algo(c);
	workspace = lib_device(c);
	size = lib_value(c);
	if (!lib_ready(c))
		return 0;
	status = make_matmul(c, &given, &own);
	if (!status)
		status = make_layout(c, &la);
	if (!status)
		status = make_layout(c, &lb);
	if (!status)
		status = make_layout(c, &lc);
	if (!status)
		status = make_layout(c, &ld);
	if (status)
		return status;
	return (int)((__typeof__(&cublasLtMatmul))c->fn)(handle, &own, alpha, a, la.at, b, lb.at,
							 beta, cc, lc.at, d, ld.at, algo, workspace,
							 size, c->stream);
}

int lib_do_cublasLtMatrixTransform(struct lib_call *c)
{
	cublasLtHandle_t handle = lib_object(c, QCU_LIB_CUBLASLT_HANDLE);
	cublasLtMatrixTransformDescOpaque_t own;
	struct qcu_lt_transform given;
	const void *alpha, *beta, *a, *b;
	struct layout la, lb, lc;
	bool on_gpu;
	int status;
	void *to;

	take_desc(c, &given, sizeof(given), QCU_LT_IS_TRANSFORM, false);
	on_gpu = pointer_mode_of(given.set, TRANSFORM_POINTERS_BIT, given.pointers) != QCU_LT_HOST;
	alpha = take_scalar(c, on_gpu);
	a = lib_device(c);
	take_layout(c, &la);
	beta = take_scalar(c, on_gpu);
	b = lib_device(c);
	take_layout(c, &lb);
	to = lib_device(c);
	take_layout(c, &lc);
	if (!lib_ready(c))
		return 0;
	status = make_transform(c, &given, &own);
	if (!status)
		status = make_layout(c, &la);
	if (!status)
		status = make_layout(c, &lb);
	if (!status)
		status = make_layout(c, &lc);
	if (status)
		return status;
	return (int)((__typeof__(&cublasLtMatrixTransform))c->fn)(
		handle, &own, alpha, a, la.at, beta, b, lb.at, to, lc.at, c->stream);
}

int lib_do_cublasLtMatmulAlgoGetHeuristic(struct lib_call *c)
{
	cublasLtHandle_t handle = lib_object(c, QCU_LIB_CUBLASLT_HANDLE);
	cublasLtMatmulPreferenceOpaque_t own_preference;
	struct qcu_lt_preference preference;
	cublasLtMatmulDescOpaque_t own;
	struct qcu_lt_matmul given;
	struct layout layout[4];
	uint64_t results_len, returned_len;
	cublasLtMatmulHeuristicResult_t *results;
	uint64_t requested;
	int *returned, n, status;
	unsigned int i;

	take_matmul(c, &given);
	for (i = 0; i < 4; i++)
		take_layout(c, &layout[i]);
	take_desc(c, &preference, sizeof(preference), QCU_LT_IS_PREFERENCE, false);
	requested = lib_value(c);
	results = lib_out(c, &results_len);
	returned = lib_out(c, &returned_len);
	if (!requested || requested > QCU_LT_RESULTS || !results || !returned)
		c->bad = true;
	else
		lib_sized(c, results, results_len, requested * sizeof(*results));
	lib_sized(c, returned, returned_len, sizeof(*returned));
	if (!lib_ready(c))
		return 0;
	status = make_matmul(c, &given, &own);
	for (i = 0; i < 4 && !status; i++)
		status = make_layout(c, &layout[i]);
	if (!status)
		status = make_preference(c, &preference, &own_preference);
	if (status)
		return status;
	status = (int)((__typeof__(&cublasLtMatmulAlgoGetHeuristic))c->fn)(
		handle, &own, layout[0].at, layout[1].at, layout[2].at, layout[3].at,
		&own_preference, (int)requested, results, returned);
	for (n = 0; !status && n < *returned && n < (int)requested; n++)
		lib_algo_made(c, &results[n].algo);
	return status;
}

int lib_do_cublasLtMatmulAlgoCheck(struct lib_call *c)
{
	cublasLtHandle_t handle = lib_object(c, QCU_LIB_CUBLASLT_HANDLE);
	cublasLtMatmulDescOpaque_t own;
	struct qcu_lt_matmul given;
	struct layout layout[4];
	const void *algo;
	uint64_t result_len;
	void *result;
	unsigned int i;
	int status;

	take_matmul(c, &given);
	for (i = 0; i < 4; i++)
		take_layout(c, &layout[i]);
	algo = take_algo(c);
	result = lib_out(c, &result_len);
	lib_sized(c, result, result_len, sizeof(cublasLtMatmulHeuristicResult_t));
	if (!lib_ready(c))
		return 0;
	status = make_matmul(c, &given, &own);
	for (i = 0; i < 4 && !status; i++)
		status = make_layout(c, &layout[i]);
	if (status)
		return status;
	return (int)((__typeof__(&cublasLtMatmulAlgoCheck))c->fn)(
		handle, &own, layout[0].at, layout[1].at, layout[2].at, layout[3].at, algo, result);
}

int lib_do_cublasLtMatmulAlgoInit(struct lib_call *c)
{
	cublasLtHandle_t handle = lib_object(c, QCU_LIB_CUBLASLT_HANDLE);
	uint64_t compute = lib_value(c), scale = lib_value(c), a = lib_value(c), b = lib_value(c);
	uint64_t cc = lib_value(c), d = lib_value(c), id = lib_value(c), len;
	void *algo = lib_out(c, &len);
	int status;

	lib_sized(c, algo, len, sizeof(cublasLtMatmulAlgo_t));
	if (!lib_ready(c))
		return 0;
	status = (int)((__typeof__(&cublasLtMatmulAlgoInit))c->fn)(
		handle, (cublasComputeType_t)compute, (cudaDataType_t)scale, (cudaDataType_t)a,
		(cudaDataType_t)b, (cudaDataType_t)cc, (cudaDataType_t)d, (int)id, algo);
	if (!status && algo)
		lib_algo_made(c, algo);
	return status;
}

/* What an algorithm can do, and how it is configured: both functions have the same form. */
static int get_attribute(struct lib_call *c)
{
	cublasStatus_t (*get)(const cublasLtMatmulAlgo_t *algo, int attribute, void *to,
			      size_t size, size_t *written) = NULL;
	const void *algo = take_algo(c);
	uint64_t attribute = lib_value(c), to_len, size, written_len;
	void *to = lib_out(c, &to_len), *written;

	size = lib_value(c);
	written = lib_out(c, &written_len);
	if (size > QCU_LT_ATTRIBUTE || (size && !to))
		c->bad = true;
	lib_sized(c, to, to_len, size);
	lib_sized(c, written, written_len, sizeof(size_t));
	*(void **)&get = c->fn;
	return lib_ready(c) ? (int)get(algo, (int)attribute, to, size, written) : 0;
}

int lib_do_cublasLtMatmulAlgoCapGetAttribute(struct lib_call *c)
{
	return get_attribute(c);
}

int lib_do_cublasLtMatmulAlgoConfigGetAttribute(struct lib_call *c)
{
	return get_attribute(c);
}

int lib_do_cublasLtMatmulAlgoConfigSetAttribute(struct lib_call *c)
{
	uint64_t len, from_len, size, attribute;
	void *algo = lib_inout(c, &len);
	const void *from;
	int status;

	attribute = lib_value(c);
	from = lib_in(c, &from_len);
	size = lib_value(c);
	lib_sized(c, algo, len, sizeof(cublasLtMatmulAlgo_t));
	if (size > QCU_LT_ATTRIBUTE || (size && !from))
		c->bad = true;
	lib_sized(c, from, from_len, size);
	if (algo && !c->bad && !lib_algo_known(c, algo))
		c->refused = CUBLAS_STATUS_INVALID_VALUE;
	if (!lib_ready(c))
		return 0;
	status = (int)((__typeof__(&cublasLtMatmulAlgoConfigSetAttribute))c->fn)(
		algo, (cublasLtMatmulAlgoConfigAttributes_t)attribute, from, size);
	if (!status && algo)
		lib_algo_made(c, algo);
	return status;
}
