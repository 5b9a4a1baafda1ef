// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Matrices and vectors of cuSPARSE live in the guest: what they are, and what the program sets in
 * them later, reaches the library with each call. So do objects beside the handle, and results that
 * come with an error. What is wrong comes first. sparse_calls_backend.c is the library.
 */
#define DISABLE_CUSPARSE_DEPRECATED
#include <cusparse.h>

#include "../check.h"
#include "sparse.h"

#define IS(call, want)                                                                    \
	do {                                                                              \
		cusparseStatus_t got_ = (call);                                           \
		REQUIRE(got_ == (want), "%s: %d, not %d", #call, (int)got_, (int)(want)); \
	} while (0)
#define RIGHT(call) IS(call, CUSPARSE_STATUS_SUCCESS)
#define WRONG(call) IS(call, CUSPARSE_STATUS_INVALID_VALUE)

static cusparseHandle_t handle;
static cusparseSpMatDescr_t mat;
static cusparseDnVecDescr_t x, y;
static const float alpha = 3, beta = 5;

static cusparseStatus_t product(cusparseConstSpMatDescr_t a)
{
	return cusparseSpMV(handle, CUSPARSE_OPERATION_NON_TRANSPOSE, &alpha, a, x, &beta, y,
			    CUDA_R_32F, CUSPARSE_SPMV_ALG_DEFAULT, SPARSE_AT(9));
}

static cusparseStatus_t make(int64_t rows, void *values)
{
	return cusparseCreateCsr(&mat, rows, SPARSE_COLS, SPARSE_NNZ, SPARSE_AT(1), SPARSE_AT(2),
				 values, CUSPARSE_INDEX_32I, CUSPARSE_INDEX_64I,
				 CUSPARSE_INDEX_BASE_ONE, CUDA_R_32F);
}

static void wrong(void)
{
	int on_stack, position = 77;
	size_t size;

	WRONG(make(-1, SPARSE_AT(3)));
	WRONG(cusparseCreateCsr(NULL, 1, 1, 1, NULL, NULL, NULL, CUSPARSE_INDEX_32I,
				CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO, CUDA_R_32F));
	WRONG(cusparseSpMatSetValues(NULL, SPARSE_AT(3)));
	WRONG(cusparseSpMatSetValues((cusparseSpMatDescr_t)&on_stack, SPARSE_AT(3)));
	/* A vector where a matrix is wanted, a handle where a vector is. */
	WRONG(product((cusparseConstSpMatDescr_t)x));
	WRONG(cusparseDnVecSetValues((cusparseDnVecDescr_t)handle, SPARSE_AT(3)));
	WRONG(cusparseSpSV_bufferSize(handle, CUSPARSE_OPERATION_NON_TRANSPOSE, &alpha, NULL, x, y,
				      CUDA_R_32F, CUSPARSE_SPSV_ALG_DEFAULT, NULL, &size));
	WRONG(cusparseSpSV_updateMatrix(handle, (cusparseSpSVDescr_t)handle, SPARSE_AT(3),
					CUSPARSE_SPSV_UPDATE_GENERAL));
	IS(cusparseGetVersion(NULL, &position), CUSPARSE_STATUS_INVALID_VALUE);
	IS(cusparseSpMMOp(NULL, NULL), CUSPARSE_STATUS_NOT_SUPPORTED);
	REQUIRE(position == 77, "a wrong call has written");
}

static void matrices(void)
{
	cusparseFillMode_t fill = CUSPARSE_FILL_MODE_UPPER;
	cusparseDiagType_t diag = CUSPARSE_DIAG_TYPE_UNIT;
	int64_t rows, cols, nnz;
	void *values;
	int i, count;

	RIGHT(make(SPARSE_ROWS, SPARSE_AT(4)));
	/* The library wants other values, both attributes, and a batch. */
	WRONG(product(mat));
	RIGHT(cusparseSpMatSetValues(mat, SPARSE_AT(3)));
	WRONG(product(mat));
	WRONG(cusparseSpMatSetAttribute(mat, CUSPARSE_SPMAT_FILL_MODE, &fill, 1));
	WRONG(cusparseSpMatSetAttribute(mat, (cusparseSpMatAttribute_t)7, &fill, sizeof(fill)));
	RIGHT(cusparseSpMatSetAttribute(mat, CUSPARSE_SPMAT_FILL_MODE, &fill, sizeof(fill)));
	WRONG(product(mat));
	RIGHT(cusparseSpMatSetAttribute(mat, CUSPARSE_SPMAT_DIAG_TYPE, &diag, sizeof(diag)));
	WRONG(product(mat));
	WRONG(cusparseCsrSetStridedBatch(mat, 0, 0, 0));
	RIGHT(cusparseCsrSetStridedBatch(mat, 2, 100, 200));
	/* The first one waits, the others are posted. */
	for (i = 0; i < 4; i++)
		RIGHT(product(mat));
	OK(cudaDeviceSynchronize());

	RIGHT(cusparseSpMatGetStridedBatch(mat, &count));
	fill = CUSPARSE_FILL_MODE_LOWER;
	RIGHT(cusparseSpMatGetAttribute(mat, CUSPARSE_SPMAT_FILL_MODE, &fill, sizeof(fill)));
	RIGHT(cusparseSpMatGetValues(mat, &values));
	RIGHT(cusparseSpMatGetSize(mat, &rows, &cols, &nnz));
	WRONG(cusparseSpMatGetSize(mat, &rows, &cols, NULL));
	REQUIRE(count == 2 && fill == CUSPARSE_FILL_MODE_UPPER && values == SPARSE_AT(3) &&
			rows == SPARSE_ROWS && cols == SPARSE_COLS && nnz == SPARSE_NNZ,
		"a matrix is not what it was made");
	/* A call that was right is not, with other values at another alignment. */
	for (i = 0; i < 3; i++) {
		RIGHT(cusparseSpMatSetValues(mat, (char *)SPARSE_AT(3) + 4));
		WRONG(product(mat));
	}
	RIGHT(cusparseDestroySpMat(mat));
	WRONG(product(mat));
}

static cusparseStatus_t asked(cusparseConstSpMatDescr_t a, float by, size_t *size)
{
	return cusparseSpMV_bufferSize(handle, CUSPARSE_OPERATION_NON_TRANSPOSE, &by, a, x, &beta,
				       y, CUDA_R_32F, CUSPARSE_SPMV_ALG_DEFAULT, size);
}

/* The library gives another answer each time, and hears the same question once. */
static void questions(void)
{
	size_t size = 7;
	int64_t i;

	WRONG(asked(NULL, 1, &size));
	REQUIRE(size == 7, "a wrong call has written %zu", size);
	for (i = 0; i < 6; i++) {
		RIGHT(make(SPARSE_ROWS + i % 3, SPARSE_AT(3)));
		RIGHT(asked(mat, (float)i, &size));
		REQUIRE(size == (size_t)(i % 3 + 1) * SPARSE_BUFFER, "%zu bytes", size);
		RIGHT(cusparseDestroySpMat(mat));
	}
	/* With something set in it, it is another matrix. */
	RIGHT(make(SPARSE_ROWS, SPARSE_AT(3)));
	RIGHT(cusparseCsrSetStridedBatch(mat, 2, 100, 200));
	RIGHT(asked(mat, 1, &size));
	REQUIRE(size == 4 * SPARSE_BUFFER, "%zu bytes with a batch", size);
	RIGHT(cusparseDestroySpMat(mat));
}

static void sizes(void)
{
	cusparseDnMatDescr_t dense;
	int64_t rows, cols, nnz;
	void *offsets, *columns, *values;
	cusparseIndexType_t offset_type, column_type;
	cusparseIndexBase_t base;
	cudaDataType type;
	size_t before, after;

	RIGHT(cusparseCreateDnMat(&dense, SPARSE_ROWS, SPARSE_COLS, SPARSE_COLS, SPARSE_AT(6),
				  CUDA_R_32F, CUSPARSE_ORDER_ROW));
	RIGHT(cusparseCreateCsr(&mat, SPARSE_ROWS, SPARSE_COLS, 0, SPARSE_AT(1), NULL, NULL,
				CUSPARSE_INDEX_32I, CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO,
				CUDA_R_32F));
	RIGHT(asked(mat, 1, &before));
	/* Nothing has been found before it is looked for. */
	WRONG(cusparseDenseToSparse_convert(handle, dense, mat, CUSPARSE_DENSETOSPARSE_ALG_DEFAULT,
					    SPARSE_AT(9)));
	WRONG(cusparseDenseToSparse_analysis(handle, dense, mat, CUSPARSE_DENSETOSPARSE_ALG_DEFAULT,
					     NULL));
	RIGHT(cusparseSpMatGetSize(mat, &rows, &cols, &nnz));
	REQUIRE(nnz == 0, "%lld elements after an error", (long long)nnz);
	RIGHT(cusparseDenseToSparse_analysis(handle, dense, mat, CUSPARSE_DENSETOSPARSE_ALG_DEFAULT,
					     SPARSE_AT(9)));
	RIGHT(cusparseSpMatGetSize(mat, &rows, &cols, &nnz));
	REQUIRE(nnz == SPARSE_FOUND, "%lld elements", (long long)nnz);
	RIGHT(asked(mat, 1, &after));
	REQUIRE(before != after, "a matrix that has changed is taken for what it was");
	RIGHT(cusparseCsrSetPointers(mat, SPARSE_AT(1), SPARSE_AT(2), SPARSE_AT(3)));
	WRONG(cusparseCooSetPointers(mat, SPARSE_AT(1), SPARSE_AT(2), SPARSE_AT(3)));
	RIGHT(cusparseDenseToSparse_convert(handle, dense, mat, CUSPARSE_DENSETOSPARSE_ALG_DEFAULT,
					    SPARSE_AT(9)));
	RIGHT(cusparseCsrGet(mat, &rows, &cols, &nnz, &offsets, &columns, &values, &offset_type,
			     &column_type, &base, &type));
	REQUIRE(columns == SPARSE_AT(2) && values == SPARSE_AT(3) && nnz == SPARSE_FOUND,
		"the matrix is not what was set");
	RIGHT(cusparseDestroySpMat(mat));
	RIGHT(cusparseDestroyDnMat(dense));
}

static void halves(void)
{
	cusparseSpVecDescr_t sparse;
	cusparseDnVecDescr_t dense;

	RIGHT(cusparseCreateSpVec(&sparse, SPARSE_COLS, 3, SPARSE_AT(2), SPARSE_AT(3),
				  CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO, CUDA_R_16F));
	RIGHT(cusparseCreateDnVec(&dense, SPARSE_COLS, SPARSE_AT(7), CUDA_R_16F));
	WRONG(cusparseAxpby(handle, NULL, sparse, &beta, dense));
	RIGHT(cusparseAxpby(handle, &alpha, sparse, &beta, dense));
	RIGHT(cusparseDestroySpVec(sparse));
	RIGHT(cusparseDestroyDnVec(dense));
}

static void beside(void)
{
	cusparseSpSVDescr_t descr, other;
	csric02Info_t info;
	int position = 0;

	RIGHT(cusparseSpSV_createDescr(&descr));
	RIGHT(cusparseSpSV_createDescr(&other));
	RIGHT(cusparseSpSV_updateMatrix(handle, descr, SPARSE_AT(3),
					CUSPARSE_SPSV_UPDATE_DIAGONAL));
	/* The library knows each one again: the second has not been updated. */
	WRONG(cusparseSpSV_updateMatrix(handle, other, SPARSE_AT(3), CUSPARSE_SPSV_UPDATE_GENERAL));
	RIGHT(cusparseSpSV_updateMatrix(handle, descr, SPARSE_AT(3), CUSPARSE_SPSV_UPDATE_GENERAL));
	RIGHT(cusparseSpSV_destroyDescr(descr));
	WRONG(cusparseSpSV_updateMatrix(handle, descr, SPARSE_AT(3), CUSPARSE_SPSV_UPDATE_GENERAL));
	RIGHT(cusparseSpSV_destroyDescr(other));
	RIGHT(cusparseSpSV_destroyDescr(NULL));

	RIGHT(cusparseCreateCsric02Info(&info));
	IS(cusparseXcsric02_zeroPivot(handle, info, &position), CUSPARSE_STATUS_ZERO_PIVOT);
	REQUIRE(position == SPARSE_PIVOT, "the zero pivot is at %d", position);
	RIGHT(cusparseDestroyCsric02Info(info));
}

/* Small pivots of an incomplete factor. The library keeps where the numbers are, here on a stack.
 */
static cusparseStatus_t set_boost(csrilu02Info_t info, int enable, double tol, double value)
{
	return cusparseDcsrilu02_numericBoost(handle, info, enable, &tol, &value);
}

static void small_pivots(void)
{
	cusparseMatDescr_t descr;
	csrilu02Info_t info;
	double one = 1;
	int i;

	RIGHT(cusparseCreateMatDescr(&descr));
	RIGHT(cusparseCreateCsrilu02Info(&info));
	WRONG(cusparseDcsrilu02_numericBoost(handle, NULL, 1, &one, &one));
	WRONG(cusparseDcsrilu02_numericBoost(handle, info, 1, NULL, &one));
	WRONG(cusparseDcsrilu02_numericBoost(handle, info, 1, &one, NULL));
	RIGHT(cusparseDcsrilu02_numericBoost(handle, info, 0, NULL, NULL));
	for (i = 0; i < 3; i++) {
		RIGHT(set_boost(info, 1, 0.25, -7));
		RIGHT(cusparseDcsrilu02(handle, 3, 5, descr, SPARSE_AT(1), SPARSE_AT(2),
					SPARSE_AT(3), info, CUSPARSE_SOLVE_POLICY_NO_LEVEL,
					SPARSE_AT(4)));
	}
	RIGHT(set_boost(info, 1, 0.5, -7));
	WRONG(cusparseDcsrilu02(handle, 3, 5, descr, SPARSE_AT(1), SPARSE_AT(2), SPARSE_AT(4), info,
				CUSPARSE_SOLVE_POLICY_USE_LEVEL, SPARSE_AT(3)));
	RIGHT(cusparseDestroyCsrilu02Info(info));
	RIGHT(cusparseDestroyMatDescr(descr));
}

int main(int argc, char **argv)
{
	char path[4096];

	(void)argc;
	snprintf(path, sizeof(path), "%s_backend.so", argv[0]);
	setenv("QCU_LOOPBACK_BACKEND", path, 1);
	RIGHT(cusparseCreate(&handle));
	RIGHT(cusparseCreateDnVec(&x, SPARSE_COLS, SPARSE_AT(7), CUDA_R_32F));
	RIGHT(cusparseCreateDnVec(&y, SPARSE_ROWS, SPARSE_AT(7), CUDA_R_32F));
	RIGHT(cusparseDnVecSetValues(y, SPARSE_AT(8)));
	wrong();
	matrices();
	questions();
	sizes();
	halves();
	beside();
	small_pivots();
	RIGHT(cusparseDestroyDnVec(x));
	RIGHT(cusparseDestroyDnVec(y));
	RIGHT(cusparseDestroy(handle));
	return 0;
}
