// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The stubs of cuBLASLt that are written by hand: calls with descriptions. A description comes as
 * plain data of a fixed size (include/qculib_cublaslt.h). The library's own is made from it here,
 * attribute by attribute, so the library checks each value, and none of the guest's bytes become
 * one of its structures. Only an algorithm is bytes of the library's own.
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
static int mode_of(uint32_t set, unsigned int bit, int mode)
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
	uint64_t algo_len;
	size_t size;
	int mode, status;

	take_desc(c, &given, sizeof(given), QCU_LT_IS_MATMUL, false);
	mode = mode_of(given.set, MATMUL_POINTERS_BIT, given.pointers);
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
	algo = lib_in(c, &algo_len);
	lib_sized(c, algo, algo_len, sizeof(cublasLtMatmulAlgo_t));
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
	on_gpu = mode_of(given.set, TRANSFORM_POINTERS_BIT, given.pointers) != QCU_LT_HOST;
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
	void *results, *returned;
	unsigned int i;
	int requested, status;

	take_desc(c, &given, sizeof(given), QCU_LT_IS_MATMUL, false);
	for (i = 0; i < 4; i++)
		take_layout(c, &layout[i]);
	take_desc(c, &preference, sizeof(preference), QCU_LT_IS_PREFERENCE, false);
	requested = (int)lib_value(c);
	results = lib_out(c, &results_len);
	returned = lib_out(c, &returned_len);
	lib_sized(c, results, results_len,
		  (uint64_t)requested * sizeof(cublasLtMatmulHeuristicResult_t));
	lib_sized(c, returned, returned_len, sizeof(int));
	if (!lib_ready(c))
		return 0;
	status = make_matmul(c, &given, &own);
	for (i = 0; i < 4 && !status; i++)
		status = make_layout(c, &layout[i]);
	if (!status)
		status = make_preference(c, &preference, &own_preference);
	if (status)
		return status;
	return (int)((__typeof__(&cublasLtMatmulAlgoGetHeuristic))c->fn)(
		handle, &own, layout[0].at, layout[1].at, layout[2].at, layout[3].at,
		&own_preference, requested, results, returned);
}

int lib_do_cublasLtMatmulAlgoCheck(struct lib_call *c)
{
	cublasLtHandle_t handle = lib_object(c, QCU_LIB_CUBLASLT_HANDLE);
	cublasLtMatmulDescOpaque_t own;
	struct qcu_lt_matmul given;
	struct layout layout[4];
	uint64_t algo_len, result_len;
	void *algo, *result;
	unsigned int i;
	int status;

	take_desc(c, &given, sizeof(given), QCU_LT_IS_MATMUL, false);
	for (i = 0; i < 4; i++)
		take_layout(c, &layout[i]);
	algo = lib_in(c, &algo_len);
	result = lib_out(c, &result_len);
	lib_sized(c, algo, algo_len, sizeof(cublasLtMatmulAlgo_t));
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
