// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Factors of sparse matrices that stay in cuSOLVER (cusolverRf, csrqrInfo_t), and what it computes
 * on the host. The library believes sizes, structures, orders of rows, and the order of calls. So
 * whatever is wrong must be refused before. factor_calls_backend.c is the library. It returns
 * CUSOLVER_STATUS_ARCH_MISMATCH for what must not reach it.
 */
#define DISABLE_CUSOLVER_DEPRECATED
#include <cusolverRf.h>
#include <cusolverSp.h>
#include <string.h>

#include "../check.h"
#include "solver.h"

#define EARLY(call) IS(call, CUSOLVER_STATUS_NOT_INITIALIZED)

#define N     3
#define NNZ   6
#define BATCH 2
static int rows[] = {0, 2, 3, 6}, cols[] = {0, 2, 1, 0, 1, 2};
static int rows_l[] = {0, 1, 2, 5}, cols_l[] = {0, 1, 0, 1, 2};
static int rows_u[] = {0, 2, 3, 4}, cols_u[] = {0, 2, 1, 2};
static int order[] = {2, 0, 1};
static double values[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
#define NNZ_L 5
#define NNZ_U 4

/* The same on the GPU. */
static struct {
	int *rows, *cols, *rows_l, *cols_l, *rows_u, *cols_u, *order;
	double *values, *x;
} gpu;

static void *on_gpu(const void *from, size_t size)
{
	void *to;

	OK(cudaMalloc(&to, size));
	OK(cudaMemcpy(to, from, size, cudaMemcpyHostToDevice));
	return to;
}
#define ON_GPU(array) on_gpu(array, sizeof(array))

/* ---- cusolverRf ---- */

static cusolverRfHandle_t rf;

static cusolverStatus_t set_up(int n, int nnz)
{
	return cusolverRfSetupHost(n, nnz, rows, cols, values, NNZ_L, rows_l, cols_l, values, NNZ_U,
				   rows_u, cols_u, values, order, order, rf);
}

static cusolverStatus_t set_up_on_gpu(int n, int nnz)
{
	return cusolverRfSetupDevice(n, nnz, gpu.rows, gpu.cols, gpu.values, NNZ_L, gpu.rows_l,
				     gpu.cols_l, gpu.values, NNZ_U, gpu.rows_u, gpu.cols_u,
				     gpu.values, gpu.order, gpu.order, rf);
}

static cusolverStatus_t set_up_batch(int batch, int n, int nnz)
{
	double *all[] = {values, values + NNZ};

	return cusolverRfBatchSetupHost(batch, n, nnz, rows, cols, all, NNZ_L, rows_l, cols_l,
					values, NNZ_U, rows_u, cols_u, values, order, order, rf);
}

/* With this value in the array, none of the ways to set up works, nor does any later call. */
static void refused(int *array, int *same_on_gpu, int at, int value)
{
	const int right = array[at];

	array[at] = value;
	OK(cudaMemcpy(same_on_gpu + at, &value, sizeof(value), cudaMemcpyHostToDevice));
	WRONG(set_up(N, NNZ));
	WRONG(set_up_on_gpu(N, NNZ));
	WRONG(set_up_batch(BATCH, N, NNZ));
	EARLY(cusolverRfAnalyze(rf));
	array[at] = right;
	OK(cudaMemcpy(same_on_gpu + at, &right, sizeof(right), cudaMemcpyHostToDevice));
}

static cusolverStatus_t reset_values(int n, int nnz)
{
	return cusolverRfResetValues(n, nnz, gpu.rows, gpu.cols, gpu.values, gpu.order, gpu.order,
				     rf);
}

static cusolverStatus_t solve(int ldt, int ldx, int count)
{
	return cusolverRfSolve(rf, gpu.order, gpu.order, count, gpu.values, ldt, gpu.x, ldx);
}

static void wrong_factors(void)
{
	int nnz, *row, *col, position;
	double *value;

	EARLY(cusolverRfAnalyze(rf));
	EARLY(cusolverRfRefactor(rf));
	EARLY(reset_values(N, NNZ));
	EARLY(solve(N, N, 1));
	EARLY(cusolverRfBatchAnalyze(rf));
	EARLY(cusolverRfBatchRefactor(rf));
	EARLY(cusolverRfBatchZeroPivot(rf, &position));
	EARLY(cusolverRfAccessBundledFactorsDevice(rf, &nnz, &row, &col, &value));
	EARLY(cusolverRfExtractBundledFactorsHost(rf, &nnz, &row, &col, &value));
	EARLY(cusolverRfAnalyze(NULL));
	EARLY(cusolverRfAnalyze((cusolverRfHandle_t)&nnz));
	WRONG(set_up(0, NNZ));
	WRONG(set_up(N, 0));
	WRONG(set_up(1 << 20, NNZ));
	WRONG(set_up(N, 1 << 20));
	WRONG(set_up_on_gpu(-1, NNZ));
	WRONG(set_up_on_gpu(N, 1 << 30));
	/* Longer than the memory that it is in. */
	WRONG(set_up_on_gpu(16000000, NNZ));
	WRONG(set_up_batch(0, N, NNZ));
	WRONG(set_up_batch(1 << 20, N, NNZ));
	IS(set_up_batch(65536, N, 262144), CUSOLVER_STATUS_ALLOC_FAILED);
	refused(rows, gpu.rows, 0, 1);
	refused(rows, gpu.rows, N, NNZ + 1);
	refused(rows, gpu.rows, 1, -2147483647 - 1);
	refused(cols, gpu.cols, 1, N);
	refused(cols, gpu.cols, 1, 0);
	refused(cols, gpu.cols, 0, -1);
	refused(rows_l, gpu.rows_l, 2, 6);
	refused(cols_l, gpu.cols_l, 4, 2147483647);
	refused(rows_u, gpu.rows_u, 3, 3);
	refused(cols_u, gpu.cols_u, 3, N);
	refused(order, gpu.order, 0, N);
	refused(order, gpu.order, 0, -1);
	refused(order, gpu.order, 0, 1);
	WRONG(cusolverRfSetAlgs(rf, (cusolverRfFactorization_t)3,
				CUSOLVERRF_TRIANGULAR_SOLVE_ALG1));
	WRONG(cusolverRfSetAlgs(rf, CUSOLVERRF_FACTORIZATION_ALG0, (cusolverRfTriangularSolve_t)0));
	WRONG(cusolverRfSetMatrixFormat(rf, (cusolverRfMatrixFormat_t)2,
					CUSOLVERRF_UNIT_DIAGONAL_STORED_L));
}

static void settings(void)
{
	cusolverRfFactorization_t factorization;
	cusolverRfTriangularSolve_t way;
	double zero, boost;

	RIGHT(cusolverRfSetAlgs(rf, CUSOLVERRF_FACTORIZATION_ALG2,
				CUSOLVERRF_TRIANGULAR_SOLVE_ALG3));
	RIGHT(cusolverRfSetNumericProperties(rf, 0.5, 0.25));
	RIGHT(cusolverRfGetAlgs(rf, &factorization, &way));
	REQUIRE(factorization == 2 && way == 3, "algorithms %d, %d", factorization, way);
	RIGHT(cusolverRfGetNumericProperties(rf, &zero, &boost));
	REQUIRE(zero == 0.5 && boost == 0.25, "%g, %g", zero, boost);
}

static void one_matrix(void)
{
	int nnz, *row, *col, nnz_u, *row_u, *col_u, i;
	double *value, *value_u, x[N];

	RIGHT(cusolverRfAnalyze(rf));
	EARLY(solve(N, N, 1));
	EARLY(cusolverRfBatchAnalyze(rf));
	for (i = 0; i < 3; i++) {
		WRONG(reset_values(N, NNZ - 1));
		WRONG(reset_values(N - 1, NNZ));
		RIGHT(reset_values(N, NNZ));
		EARLY(solve(N, N, 1));
		RIGHT(cusolverRfRefactor(rf));
		WRONG(solve(N, N, 2));
		WRONG(solve(N - 1, N, 1));
		WRONG(solve(N, N - 1, 1));
		RIGHT(solve(N, N, 1));
	}
	OK(cudaMemcpy(x, gpu.x, sizeof(x), cudaMemcpyDeviceToHost));
	REQUIRE(x[0] == 1 && x[2] == 3, "%g, %g", x[0], x[2]);
	RIGHT(cusolverRfAccessBundledFactorsDevice(rf, &nnz, &row, &col, &value));
	REQUIRE(nnz == NNZ && value, "%d elements", nnz);
	WRONG(cusolverRfExtractBundledFactorsHost(rf, &nnz, &row, &col, NULL));
	RIGHT(cusolverRfExtractBundledFactorsHost(rf, &nnz, &row, &col, &value));
	REQUIRE(nnz == NNZ && !memcmp(row, rows, sizeof(rows)) &&
			!memcmp(col, cols, sizeof(cols)) && value[NNZ - 1] == 6,
		"%d elements", nnz);
	free(row);
	free(col);
	free(value);
	RIGHT(cusolverRfExtractSplitFactorsHost(rf, &nnz, &row, &col, &value, &nnz_u, &row_u,
						&col_u, &value_u));
	REQUIRE(nnz == NNZ && nnz_u == 0 && row_u[N] == 0 && value[0] == 1, "%d and %d elements",
		nnz, nnz_u);
	free(row);
	free(col);
	free(value);
	free(row_u);
	free(col_u);
	free(value_u);
}

static void batch(void)
{
	double *pointers[] = {gpu.x, gpu.x + N}, **x;
	int position[BATCH + 1] = {7, 7, 7}, nnz, *row, *col;
	double *value;

	x = on_gpu(pointers, sizeof(pointers));
	/* A library that crashes in it, or does not say its version, is not called. */
	unsetenv("STAND_IN_VERSION");
	IS(set_up_batch(BATCH, N, NNZ), CUSOLVER_STATUS_NOT_SUPPORTED);
	setenv("STAND_IN_VERSION", "12400", 1);
	IS(set_up_batch(BATCH, N, NNZ), CUSOLVER_STATUS_NOT_SUPPORTED);
	EARLY(cusolverRfBatchAnalyze(rf));
	setenv("STAND_IN_VERSION", "12401", 1);
	RIGHT(set_up_batch(BATCH, N, NNZ));
	EARLY(cusolverRfAnalyze(rf));
	EARLY(cusolverRfBatchRefactor(rf));
	EARLY(reset_values(N, NNZ));
	RIGHT(cusolverRfBatchAnalyze(rf));
	WRONG(cusolverRfBatchResetValues(BATCH + 1, N, NNZ, gpu.rows, gpu.cols, x, gpu.order,
					 gpu.order, rf));
	RIGHT(cusolverRfBatchResetValues(BATCH, N, NNZ, gpu.rows, gpu.cols, x, gpu.order, gpu.order,
					 rf));
	EARLY(cusolverRfBatchSolve(rf, gpu.order, gpu.order, 1, gpu.values, N, x, N));
	RIGHT(cusolverRfBatchRefactor(rf));
	RIGHT(cusolverRfBatchSolve(rf, gpu.order, gpu.order, 1, gpu.values, N, x, N));
	EARLY(cusolverRfExtractBundledFactorsHost(rf, &nnz, &row, &col, &value));
	WRONG(cusolverRfBatchZeroPivot(rf, NULL));
	RIGHT(cusolverRfBatchZeroPivot(rf, position));
	REQUIRE(position[0] == -1 && position[BATCH - 1] == -1 && position[BATCH] == 7,
		"a zero at %d and %d", position[0], position[BATCH - 1]);
	OK(cudaFree(x));
}

/* ---- csrqrInfo_t ---- */

static cusolverSpHandle_t sparse;
static cusparseMatDescr_t descr;
static csrqrInfo_t info;

static cusolverStatus_t analyze(int m, int n, int nnz)
{
	return cusolverSpXcsrqrAnalysisBatched(sparse, m, n, nnz, descr, gpu.rows, gpu.cols, info);
}

static cusolverStatus_t ask_size(int n, int nnz, int count)
{
	size_t internal = 77, work = 77;
	cusolverStatus_t status =
		cusolverSpDcsrqrBufferInfoBatched(sparse, n, n, nnz, descr, gpu.values, gpu.rows,
						  gpu.cols, count, info, &internal, &work);

	REQUIRE(status ? work == 77 : internal == 1000 && work == 10 * (size_t)count,
		"%zu and %zu bytes", internal, work);
	return status;
}

static cusolverStatus_t solve_batch(int nnz, int count)
{
	return cusolverSpDcsrqrsvBatched(sparse, N, N, nnz, descr, gpu.values, gpu.rows, gpu.cols,
					 gpu.values, gpu.x, count, info, gpu.values);
}

static void qr(void)
{
	const int changed[] = {0, 1, 3, 6};
	csrqrInfo_t other;

	WRONG(cusolverSpCreateCsrqrInfo(NULL));
	RIGHT(cusolverSpCreateCsrqrInfo(&info));
	WRONG(ask_size(N, NNZ, BATCH));
	WRONG(solve_batch(NNZ, BATCH));
	WRONG(analyze(N, 2, NNZ));
	WRONG(analyze(0, N, NNZ));
	WRONG(analyze(N, N, NNZ - 1));
	WRONG(ask_size(N, NNZ, BATCH));
	RIGHT(analyze(N, N, NNZ));
	WRONG(solve_batch(NNZ, BATCH));
	WRONG(ask_size(N, NNZ, 0));
	WRONG(ask_size(N + 1, NNZ, BATCH));
	WRONG(ask_size(N, NNZ + 1, BATCH));
	/* Programs try how much memory there is. */
	RIGHT(ask_size(N, NNZ, 4 * BATCH));
	RIGHT(ask_size(N, NNZ, BATCH));
	WRONG(solve_batch(NNZ, BATCH + 1));
	IS(cusolverSpScsrqrsvBatched(sparse, N, N, NNZ, descr, (float *)gpu.values, gpu.rows,
				     gpu.cols, (float *)gpu.values, (float *)gpu.x, BATCH, info,
				     gpu.values),
	   CUSOLVER_STATUS_INVALID_VALUE);
	RIGHT(solve_batch(NNZ, BATCH));
	RIGHT(solve_batch(NNZ, 1));
	/* Right by itself, but not what has been analyzed. */
	OK(cudaMemcpy(gpu.rows, changed, sizeof(changed), cudaMemcpyHostToDevice));
	WRONG(solve_batch(NNZ, BATCH));
	WRONG(ask_size(N, NNZ, BATCH));
	OK(cudaMemcpy(gpu.rows, rows, sizeof(rows), cudaMemcpyHostToDevice));
	RIGHT(ask_size(N, NNZ, BATCH));
	RIGHT(solve_batch(NNZ, BATCH));
	/* What is analyzed in another is not in this one. */
	RIGHT(cusolverSpCreateCsrqrInfo(&other));
	IS(cusolverSpDcsrqrsvBatched(sparse, N, N, NNZ, descr, gpu.values, gpu.rows, gpu.cols,
				     gpu.values, gpu.x, 1, other, gpu.values),
	   CUSOLVER_STATUS_INVALID_VALUE);
	RIGHT(cusolverSpDestroyCsrqrInfo(other));
	RIGHT(cusolverSpDestroyCsrqrInfo(info));
	WRONG(analyze(N, N, NNZ));
}

/* ---- eigenvalues, least squares, orders ---- */

static void others(void)
{
	const cuDoubleComplex near = {2, -3};
	int order_of[N] = {7, 7, 7}, rank = 77;
	cuDoubleComplex *x = (cuDoubleComplex *)gpu.x;
	double solution[N], norm;

	/* A number of two parts arrives. */
	RIGHT(cusolverSpZcsreigvsi(sparse, N, NNZ, descr, (cuDoubleComplex *)gpu.values, gpu.rows,
				   gpu.cols, near, x, 5, 0.5, x, x));
	WRONG(cusolverSpZcsreigvsi(sparse, N, NNZ - 1, descr, (cuDoubleComplex *)gpu.values,
				   gpu.rows, gpu.cols, near, x, 5, 0.5, x, x));
	rows[1] = 7;
	WRONG(cusolverSpXcsrsymrcmHost(sparse, N, NNZ, descr, rows, cols, order_of));
	rows[1] = 2;
	RIGHT(cusolverSpXcsrsymrcmHost(sparse, N, NNZ, descr, rows, cols, order_of));
	REQUIRE(order_of[0] == N - 1 && order_of[N - 1] == 0, "%d first", order_of[0]);
	/* More columns than rows: the structure is checked against the columns. */
	WRONG(cusolverSpDcsrlsqvqrHost(sparse, N, N - 1, NNZ, descr, values, rows, cols, values,
				       0.5, &rank, solution, order_of, &norm));
	RIGHT(cusolverSpDcsrlsqvqrHost(sparse, N, N, NNZ, descr, values, rows, cols, values, 0.5,
				       &rank, solution, order_of, &norm));
	REQUIRE(rank == N && solution[N - 1] == 3 && norm == 0.25, "rank %d, %g", rank, norm);
}

int main(int argc, char **argv)
{
	size_t before, now, total;
	char path[4096];

	(void)argc;
	snprintf(path, sizeof(path), "%s_backend.so", argv[0]);
	setenv("QCU_LOOPBACK_BACKEND", path, 1);
	setenv("STAND_IN_VERSION", "12401", 1);
	gpu.rows = ON_GPU(rows);
	gpu.cols = ON_GPU(cols);
	gpu.rows_l = ON_GPU(rows_l);
	gpu.cols_l = ON_GPU(cols_l);
	gpu.rows_u = ON_GPU(rows_u);
	gpu.cols_u = ON_GPU(cols_u);
	gpu.order = ON_GPU(order);
	gpu.values = ON_GPU(values);
	gpu.x = ON_GPU(values);
	WRONG(cusolverRfCreate(NULL));
	RIGHT(cusolverRfCreate(&rf));
	OK(cudaMemGetInfo(&before, &total));
	wrong_factors();
	settings();
	RIGHT(set_up(N, NNZ));
	one_matrix();
	RIGHT(set_up_on_gpu(N, NNZ));
	one_matrix();
	batch();
	RIGHT(set_up(N, NNZ));
	one_matrix();
	RIGHT(cusolverRfDestroy(rf));
	EARLY(cusolverRfDestroy(rf));
	IS((cusolverStatus_t)cusparseCreateMatDescr(&descr), CUSOLVER_STATUS_SUCCESS);
	RIGHT(cusolverSpCreate(&sparse));
	qr();
	others();
	RIGHT(cusolverSpDestroy(sparse));
	OK(cudaMemGetInfo(&now, &total));
	REQUIRE(now == before, "%zu bytes of the GPU stay taken", before - now);
	return 0;
}
