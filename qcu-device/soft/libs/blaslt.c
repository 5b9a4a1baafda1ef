// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * cuBLASLt on the software GPU: products of column-major matrices in float, double and complex, in
 * batches with strides, with a bias and ReLU behind them. There is one algorithm.
 */
#include <stdlib.h>
#include <string.h>

#include <cublasLt.h>

#include "include/qculib_cublaslt.h"
#include "qcu-device/soft/libs/libs.h"

#define MATMUL	   ((struct qcu_lt_matmul *)desc)
#define LAYOUT	   ((struct qcu_lt_layout *)desc)
#define PREFERENCE ((struct qcu_lt_preference *)desc)

/* ---- descriptions: kept as they come ---- */

#define SET(number, field, type)                            \
	case number:                                        \
		if (size != sizeof(to->field))              \
			return CUBLAS_STATUS_INVALID_VALUE; \
		memcpy(&to->field, value, size);            \
		return CUBLAS_STATUS_SUCCESS;

static cublasStatus_t soft_cublasLtMatrixLayoutInit_internal(cublasLtMatrixLayout_t desc,
							     size_t size, cudaDataType type,
							     uint64_t rows, uint64_t cols,
							     int64_t ld)
{
	memset(desc, 0, size);
	LAYOUT->type = (uint32_t)type;
	LAYOUT->rows = rows;
	LAYOUT->cols = cols;
	LAYOUT->ld = ld;
	LAYOUT->batch = 1;
	return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t soft_cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t desc,
							    cublasLtMatrixLayoutAttribute_t number,
							    const void *value, size_t size)
{
	struct qcu_lt_layout *to = LAYOUT;

	switch ((int)number) {
		QCU_LT_LAYOUT(SET)
	}
	return CUBLAS_STATUS_INVALID_VALUE;
}

static cublasStatus_t soft_cublasLtMatmulDescInit_internal(cublasLtMatmulDesc_t desc, size_t size,
							   cublasComputeType_t compute,
							   cudaDataType_t scale)
{
	memset(desc, 0, size);
	MATMUL->compute = compute;
	MATMUL->scale = scale;
	MATMUL->epilogue = CUBLASLT_EPILOGUE_DEFAULT;
	MATMUL->bias_type = -1;
	return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t soft_cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t desc,
							  cublasLtMatmulDescAttributes_t number,
							  const void *value, size_t size)
{
	struct qcu_lt_matmul *to = MATMUL;

	switch ((int)number) {
		QCU_LT_MATMUL(SET)
	}
	return CUBLAS_STATUS_INVALID_VALUE;
}

static cublasStatus_t soft_cublasLtMatmulPreferenceInit_internal(cublasLtMatmulPreference_t desc,
								 size_t size)
{
	memset(desc, 0, size);
	return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t
soft_cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t desc,
					  cublasLtMatmulPreferenceAttributes_t number,
					  const void *value, size_t size)
{
	struct qcu_lt_preference *to = PREFERENCE;

	switch ((int)number) {
		QCU_LT_PREFERENCE(SET)
	}
	return CUBLAS_STATUS_INVALID_VALUE;
}

/* ---- handles ---- */

static cublasStatus_t soft_cublasLtCreate(cublasLtHandle_t *handle)
{
	*handle = calloc(1, 1);
	return *handle ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_ALLOC_FAILED;
}

static cublasStatus_t soft_cublasLtDestroy(cublasLtHandle_t handle)
{
	free(handle);
	return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t soft_cublasLtGetProperty(libraryPropertyType type, int *value)
{
	if (!value || (type != MAJOR_VERSION && type != MINOR_VERSION && type != PATCH_LEVEL))
		return CUBLAS_STATUS_INVALID_VALUE;
	*value = type == MAJOR_VERSION	 ? CUBLAS_VER_MAJOR
		 : type == MINOR_VERSION ? CUBLAS_VER_MINOR
					 : CUBLAS_VER_PATCH;
	return CUBLAS_STATUS_SUCCESS;
}

/* ---- products ---- */

static bool type_of(uint32_t type, enum blas_type *t)
{
	switch (type) {
	case CUDA_R_32F:
		*t = BLAS_S;
		return true;
	case CUDA_R_64F:
		*t = BLAS_D;
		return true;
	case CUDA_C_32F:
		*t = BLAS_C;
		return true;
	case CUDA_C_64F:
		*t = BLAS_Z;
		return true;
	}
	return false;
}

/* Fills in all but addresses. It says so if the description is wrong, or too much for this GPU. */
static cublasStatus_t describe_matmul(struct blas_call *b, const struct qcu_lt_matmul *m,
				      const struct qcu_lt_layout *la,
				      const struct qcu_lt_layout *lb,
				      const struct qcu_lt_layout *lc,
				      const struct qcu_lt_layout *ld)
{
	const struct qcu_lt_layout *const all[] = {la, lb, lc, ld};
	uint64_t rows_a, rows_b, cols_a, cols_b;
	size_t i;

	if (!m || !la || !lb || !lc || !ld)
		return CUBLAS_STATUS_INVALID_VALUE;
	if (!type_of(ld->type, &b->type) || m->scale != (int)ld->type ||
	    (m->pointers != QCU_LT_HOST && m->pointers != QCU_LT_DEVICE))
		return CUBLAS_STATUS_NOT_SUPPORTED;
	for (i = 0; i < 4; i++) {
		if (all[i]->type != ld->type || all[i]->order || all[i]->mode)
			return CUBLAS_STATUS_NOT_SUPPORTED;
		if (all[i]->batch != ld->batch || all[i]->ld < (int64_t)all[i]->rows ||
		    all[i]->rows > INT32_MAX || all[i]->cols > INT32_MAX)
			return CUBLAS_STATUS_INVALID_VALUE;
	}
	b->flag[0] = blas_trans((cublasOperation_t)m->trans_a);
	b->flag[1] = blas_trans((cublasOperation_t)m->trans_b);
	if (!b->flag[0] || !b->flag[1])
		return CUBLAS_STATUS_INVALID_VALUE;
	rows_a = b->flag[0] == 'N' ? la->rows : la->cols;
	cols_a = b->flag[0] == 'N' ? la->cols : la->rows;
	rows_b = b->flag[1] == 'N' ? lb->rows : lb->cols;
	cols_b = b->flag[1] == 'N' ? lb->cols : lb->rows;
	if (rows_a != ld->rows || cols_b != ld->cols || cols_a != rows_b || lc->rows != ld->rows ||
	    lc->cols != ld->cols)
		return CUBLAS_STATUS_INVALID_VALUE;
	switch (m->epilogue) {
	case CUBLASLT_EPILOGUE_DEFAULT:
	case CUBLASLT_EPILOGUE_RELU:
	case CUBLASLT_EPILOGUE_BIAS:
	case CUBLASLT_EPILOGUE_RELU_BIAS:
		break;
	default:
		return CUBLAS_STATUS_NOT_SUPPORTED;
	}
	if (m->epilogue != CUBLASLT_EPILOGUE_DEFAULT && b->type != BLAS_S && b->type != BLAS_D)
		return CUBLAS_STATUS_NOT_SUPPORTED;
	b->m = (int64_t)ld->rows;
	b->n = (int64_t)ld->cols;
	b->k = (int64_t)cols_a;
	b->lda = la->ld;
	b->ldb = lb->ld;
	b->ldc = ld->ld;
	b->lde = lc->ld;
	b->need_a = blas_matrix((int64_t)la->rows, (int64_t)la->cols, la->ld);
	b->need_b = blas_matrix((int64_t)lb->rows, (int64_t)lb->cols, lb->ld);
	b->need_c = blas_matrix(b->m, b->n, b->ldc);
	b->need_e = blas_matrix(b->m, b->n, b->lde);
	b->count = ld->batch;
	b->step_a = la->stride;
	b->step_b = lb->stride;
	b->step_c = ld->stride;
	b->step_e = lc->stride;
	b->epilogue = m->epilogue;
	b->bias = (const void *)(uintptr_t)m->bias;
	if (b->epilogue & CUBLASLT_EPILOGUE_BIAS && !b->bias)
		return CUBLAS_STATUS_INVALID_VALUE;
	return CUBLAS_STATUS_SUCCESS;
}

static bool zero(const unsigned char *scalar, size_t size)
{
	size_t i;

	/* Minus zero is not taken for zero: it costs a copy, and no more. */
	for (i = 0; i < size; i++)
		if (scalar[i])
			return false;
	return true;
}

#define EPILOGUE(T)                                                            \
	for (j = 0; j < b->n; j++)                                             \
		for (i = 0; i < b->m; i++) {                                   \
			T *v = (T *)d + i + j * b->ldc;                        \
                                                                               \
			if (b->epilogue & CUBLASLT_EPILOGUE_BIAS)              \
				*v += ((const T *)b->bias)[i];                 \
			if (b->epilogue & CUBLASLT_EPILOGUE_RELU && !(*v > 0)) \
				*v = 0;                                        \
		}

static void run_matmul(const struct blas_call *b, const void *a, const void *x, void *d)
{
	const size_t size = blas_size(b->type);
	const char *e = b->item_e;
	int64_t i, j;

	if (e != d && !zero(b->beta, size))
		for (j = 0; j < b->n; j++)
			memmove((char *)d + (size_t)(j * b->ldc) * size,
				e + (size_t)(j * b->lde) * size, (size_t)b->m * size);
	blas_gemm(b, a, x, d);
	if (b->epilogue == CUBLASLT_EPILOGUE_DEFAULT)
		return;
	if (b->type == BLAS_S) {
		EPILOGUE(float)
	} else {
		EPILOGUE(double)
	}
}

static cublasStatus_t soft_cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc,
					  const void *alpha, const void *a,
					  cublasLtMatrixLayout_t la, const void *b,
					  cublasLtMatrixLayout_t lb, const void *beta,
					  const void *c, cublasLtMatrixLayout_t lc, void *d,
					  cublasLtMatrixLayout_t ld,
					  const cublasLtMatmulAlgo_t *algo, void *workspace,
					  size_t workspace_size, cudaStream_t stream)
{
	struct cublasContext h = {
		.be = soft_library_be,
		.stream = (struct be_stream *)stream,
	};
	struct blas_call call = {
		.run = run_matmul,
		.routine = "gemm",
		.a = a,
		.b = b,
		.c = d,
		.e = c ? c : d,
		.alpha_at = alpha,
		.beta_at = beta,
	};
	cublasStatus_t status;

	(void)handle;
	(void)algo;
	(void)workspace;
	(void)workspace_size;
	status = describe_matmul(&call, MATMUL, (struct qcu_lt_layout *)la,
				 (struct qcu_lt_layout *)lb, (struct qcu_lt_layout *)lc,
				 (struct qcu_lt_layout *)ld);
	if (status)
		return status;
	if (!alpha || !beta)
		return CUBLAS_STATUS_INVALID_VALUE;
	if (!call.m || !call.n || call.count <= 0)
		return CUBLAS_STATUS_SUCCESS;
	h.mode = MATMUL->pointers == QCU_LT_HOST ? CUBLAS_POINTER_MODE_HOST
						 : CUBLAS_POINTER_MODE_DEVICE;
	return soft_blas(&h, &call);
}

static cublasStatus_t soft_cublasLtMatmulAlgoCheck(
	cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, cublasLtMatrixLayout_t la,
	cublasLtMatrixLayout_t lb, cublasLtMatrixLayout_t lc, cublasLtMatrixLayout_t ld,
	const cublasLtMatmulAlgo_t *algo, cublasLtMatmulHeuristicResult_t *result)
{
	struct blas_call call = {0};
	cublasStatus_t status;

	(void)handle;
	if (!algo || !result)
		return CUBLAS_STATUS_INVALID_VALUE;
	status = describe_matmul(&call, MATMUL, (struct qcu_lt_layout *)la,
				 (struct qcu_lt_layout *)lb, (struct qcu_lt_layout *)lc,
				 (struct qcu_lt_layout *)ld);
	if (status)
		return status;
	memset(result, 0, sizeof(*result));
	result->algo = *algo;
	result->wavesCount = 1;
	return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t
soft_cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc,
				    cublasLtMatrixLayout_t la, cublasLtMatrixLayout_t lb,
				    cublasLtMatrixLayout_t lc, cublasLtMatrixLayout_t ld,
				    cublasLtMatmulPreference_t preference, int requested,
				    cublasLtMatmulHeuristicResult_t results[], int *returned)
{
	const cublasLtMatmulAlgo_t only = {{0}};
	cublasStatus_t status;

	if (!preference || requested < 1 || !results || !returned)
		return CUBLAS_STATUS_INVALID_VALUE;
	*returned = 0;
	status = soft_cublasLtMatmulAlgoCheck(handle, desc, la, lb, lc, ld, &only, results);
	if (status == CUBLAS_STATUS_SUCCESS)
		*returned = 1;
	return status;
}

const struct soft_symbol soft_blaslt[] = {SOFT_ONE(LtCreate),
					  SOFT_ONE(LtDestroy),
					  SOFT_ONE(LtGetProperty),
					  SOFT_ONE(LtMatrixLayoutInit_internal),
					  SOFT_ONE(LtMatrixLayoutSetAttribute),
					  SOFT_ONE(LtMatmulDescInit_internal),
					  SOFT_ONE(LtMatmulDescSetAttribute),
					  SOFT_ONE(LtMatmulPreferenceInit_internal),
					  SOFT_ONE(LtMatmulPreferenceSetAttribute),
					  SOFT_ONE(LtMatmul),
					  SOFT_ONE(LtMatmulAlgoCheck),
					  SOFT_ONE(LtMatmulAlgoGetHeuristic),
					  {NULL, NULL}};
