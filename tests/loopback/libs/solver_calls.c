// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Sparse systems of cuSOLVER, and what Jacobi's method says afterwards. The library would follow
 * the structure of a matrix without a check, so each wrong structure must be refused before.
 * solver_calls_backend.c is the library, which checks that it gets a copy.
 */
#define DISABLE_CUSOLVER_DEPRECATED
#include <cusolverDn.h>
#include <cusolverSp.h>
#include <string.h>

#include "../check.h"
#include "solver.h"

static cusolverSpHandle_t handle;
static cusparseMatDescr_t descr;
static const int good_rows[] = {0, 2, 3, 6}, good_cols[] = {0, 2, 1, 0, 1, 2};
static int *rows, *cols; /* on the GPU */
static double *values;	 /* and after them b and x */

#define N   3
#define NNZ 6

static cusolverStatus_t solve(int n, int nnz, const int *row, const int *col, int *singularity)
{
	return cusolverSpDcsrlsvqr(handle, n, nnz, descr, values, row, col, values + NNZ, 0.5, 1,
				   values + NNZ + N, singularity);
}

static cusolverStatus_t solve_host(int n, int nnz, const int *row, const int *col, double *x,
				   int *singularity)
{
	static const double a[NNZ] = {1, 2, 3, 4, 5, 6}, b[N] = {7, 8, 9};

	return cusolverSpDcsrlsvluHost(handle, n, nnz, descr, a, row, col, b, 0.5, 1, x,
				       singularity);
}

/* With this structure, both on the GPU and on the host. */
static void refused(const int *row, const int *col)
{
	double x[N];
	int singularity = 77;

	WRONG(solve_host(N, NNZ, row, col, x, &singularity));
	OK(cudaMemcpy(rows, row, (N + 1) * sizeof(int), cudaMemcpyHostToDevice));
	OK(cudaMemcpy(cols, col, NNZ * sizeof(int), cudaMemcpyHostToDevice));
	WRONG(solve(N, NNZ, rows, cols, &singularity));
	REQUIRE(singularity == 77, "a wrong call has written");
}

static void wrong(void)
{
	static const int changed_rows[][N + 1] = {
		{1, 2, 3, 6},
		{-1, 2, 3, 6},
		{0, 4, 3, 6},
		{0, 2, 3, 5},
		{0, 2, 3, 7},
		{0, 2, 9, 6},
		{0, -2147483647 - 1, 3, 6},
		{0, 2, 3, 2147483647},
	};
	static const int changed_cols[][NNZ] = {
		{0, 3, 1, 0, 1, 2},	      {-1, 2, 1, 0, 1, 2}, {2, 0, 1, 0, 1, 2},
		{0, 0, 1, 0, 1, 2},	      {0, 2, 1, 0, 1, 1},  {0, 2, 2147483647, 0, 1, 2},
		{0, 2, -2147483647, 0, 1, 2},
	};
	double x[N];
	int singularity, i;
	int on_stack;

	for (i = 0; i < 8; i++)
		refused(changed_rows[i], good_cols);
	for (i = 0; i < 7; i++)
		refused(good_rows, changed_cols[i]);
	OK(cudaMemcpy(rows, good_rows, sizeof(good_rows), cudaMemcpyHostToDevice));
	OK(cudaMemcpy(cols, good_cols, sizeof(good_cols), cudaMemcpyHostToDevice));
	WRONG(solve(0, NNZ, rows, cols, &singularity));
	WRONG(solve(-1, NNZ, rows, cols, &singularity));
	WRONG(solve(N, 0, rows, cols, &singularity));
	WRONG(solve(1 << 30, NNZ, rows, cols, &singularity));
	WRONG(solve(N, 1 << 30, rows, cols, &singularity));
	/* Longer than the memory that it is in. */
	WRONG(solve(16000000, NNZ, rows, cols, &singularity));
	WRONG(solve(N, NNZ, NULL, cols, &singularity));
	WRONG(solve(N, NNZ, rows, (int *)64, &singularity));
	WRONG(solve_host(N, NNZ, NULL, good_cols, x, &singularity));
	WRONG(solve_host(1 << 20, NNZ, good_rows, good_cols, x, &singularity));
	WRONG(cusolverSpDcsrlsvqr(handle, N, NNZ, descr, values, rows, cols, values + NNZ, 0.5, 4,
				  values + NNZ + N, &singularity));
	WRONG(cusolverSpDcsrlsvqr(handle, N, NNZ, NULL, values, rows, cols, values + NNZ, 0.5, 1,
				  values + NNZ + N, &singularity));
	WRONG(cusolverSpDcsrlsvqr(handle, N, NNZ, (cusparseMatDescr_t)&on_stack, values, rows, cols,
				  values + NNZ, 0.5, 1, values + NNZ + N, &singularity));
	IS(cusolverSpDcsrlsvqr(NULL, N, NNZ, descr, values, rows, cols, values + NNZ, 0.5, 1,
			       values + NNZ + N, &singularity),
	   CUSOLVER_STATUS_NOT_INITIALIZED);
	IS(cusolverSpDcsrlsvqr((cusolverSpHandle_t)descr, N, NNZ, descr, values, rows, cols,
			       values + NNZ, 0.5, 1, values + NNZ + N, &singularity),
	   CUSOLVER_STATUS_NOT_INITIALIZED);
	/* One of those that are not served. */
	IS(cusolverSpXcsrmetisndHost(handle, N, NNZ, descr, good_rows, good_cols, NULL,
				     &singularity),
	   CUSOLVER_STATUS_NOT_SUPPORTED);
}

static void systems(void)
{
	static const int one_rows[] = {1, 3, 4, 7}, one_cols[] = {1, 3, 2, 1, 2, 3};
	int singularity = 77, i, back[N + 1];
	double x[N] = {0};

	/* The first waits for the library's answer, and so do all others. */
	for (i = 0; i < 3; i++) {
		singularity = 77;
		RIGHT(solve(N, NNZ, rows, cols, &singularity));
		REQUIRE(singularity == SOLVER_SINGULAR, "singularity %d", singularity);
	}
	/* What the library has done to the structure was done to a copy. */
	OK(cudaMemcpy(back, rows, sizeof(back), cudaMemcpyDeviceToHost));
	REQUIRE(!memcmp(back, good_rows, sizeof(back)), "the rows begin at %d now", back[0]);
	RIGHT(solve_host(N, NNZ, good_rows, good_cols, x, &singularity));
	REQUIRE(singularity == SOLVER_SINGULAR && x[0] == 7 && x[2] == 9, "%d, %g", singularity,
		x[0]);
	/* What is set in cuSPARSE's description arrives in cuSOLVER. */
	IS((cusolverStatus_t)cusparseSetMatIndexBase(descr, CUSPARSE_INDEX_BASE_ONE),
	   CUSOLVER_STATUS_SUCCESS);
	WRONG(solve(N, NNZ, rows, cols, &singularity));
	WRONG(solve_host(N, NNZ, good_rows, good_cols, x, &singularity));
	RIGHT(solve_host(N, NNZ, one_rows, one_cols, x, &singularity));
	OK(cudaMemcpy(rows, one_rows, sizeof(one_rows), cudaMemcpyHostToDevice));
	OK(cudaMemcpy(cols, one_cols, sizeof(one_cols), cudaMemcpyHostToDevice));
	RIGHT(solve(N, NNZ, rows, cols, &singularity));
}

static void streams(void)
{
	cudaStream_t stream, is = (cudaStream_t)1;
	size_t before, now, total;
	int singularity;

	OK(cudaStreamCreate(&stream));
	IS(cusolverSpSetStream(NULL, stream), CUSOLVER_STATUS_NOT_INITIALIZED);
	WRONG(cusolverSpGetStream(handle, NULL));
	RIGHT(cusolverSpSetStream(handle, stream));
	RIGHT(cusolverSpGetStream(handle, &is));
	REQUIRE(is == stream, "another stream");
	OK(cudaMemGetInfo(&before, &total));
	RIGHT(solve(N, NNZ, rows, cols, &singularity));
	OK(cudaMemGetInfo(&now, &total));
	REQUIRE(now == before, "%zu bytes of the GPU stay taken", before - now);
	OK(cudaStreamDestroy(stream));
	RIGHT(cusolverSpSetStream(handle, NULL));
}

static void jacobi(void)
{
	double residual = -1;
	cusolverDnHandle_t dense;
	syevjInfo_t info, other;
	gesvdjInfo_t svd;
	int sweeps = -1;

	RIGHT(cusolverDnCreate(&dense));
	RIGHT(cusolverDnCreateSyevjInfo(&info));
	RIGHT(cusolverDnCreateSyevjInfo(&other));
	RIGHT(cusolverDnCreateGesvdjInfo(&svd));
	IS(cusolverDnXsyevjGetSweeps(NULL, info, &sweeps), CUSOLVER_STATUS_NOT_INITIALIZED);
	WRONG(cusolverDnXsyevjGetSweeps(dense, info, NULL));
	WRONG(cusolverDnXsyevjGetSweeps(dense, NULL, &sweeps));
	WRONG(cusolverDnXsyevjGetResidual(dense, (syevjInfo_t)svd, &residual));
	WRONG(cusolverDnXgesvdjGetSweeps(dense, (gesvdjInfo_t)info, &sweeps));
	/* Before a call there is nothing to say. */
	RIGHT(cusolverDnXsyevjGetSweeps(dense, info, &sweeps));
	RIGHT(cusolverDnXsyevjGetResidual(dense, info, &residual));
	REQUIRE(!sweeps && residual == 0, "%d sweeps, residual %g", sweeps, residual);
	RIGHT(cusolverDnXsyevjSetMaxSweeps(info, SOLVER_SWEEPS));
	RIGHT(cusolverDnXsyevjSetMaxSweeps(other, 2 * SOLVER_SWEEPS));
	RIGHT(cusolverDnDsyevj(dense, CUSOLVER_EIG_MODE_VECTOR, CUBLAS_FILL_MODE_LOWER, N, values,
			       N, values, values, 1, rows, info));
	RIGHT(cusolverDnDsyevj(dense, CUSOLVER_EIG_MODE_VECTOR, CUBLAS_FILL_MODE_LOWER, N, values,
			       N, values, values, 1, rows, other));
	/* A wrong call leaves what the last right one has said. */
	WRONG(cusolverDnDsyevj(dense, CUSOLVER_EIG_MODE_VECTOR, CUBLAS_FILL_MODE_LOWER, -1, values,
			       N, values, values, 1, rows, other));
	RIGHT(cusolverDnXsyevjGetSweeps(dense, info, &sweeps));
	RIGHT(cusolverDnXsyevjGetResidual(dense, info, &residual));
	REQUIRE(sweeps == SOLVER_SWEEPS && residual == SOLVER_RESIDUAL, "%d sweeps, residual %g",
		sweeps, residual);
	RIGHT(cusolverDnXsyevjGetSweeps(dense, other, &sweeps));
	REQUIRE(sweeps == 2 * SOLVER_SWEEPS, "%d sweeps", sweeps);
	RIGHT(cusolverDnXgesvdjGetSweeps(dense, svd, &sweeps));
	REQUIRE(!sweeps, "%d sweeps", sweeps);
	RIGHT(cusolverDnDestroySyevjInfo(info));
	WRONG(cusolverDnXsyevjGetSweeps(dense, info, &sweeps));
	RIGHT(cusolverDnDestroySyevjInfo(other));
	RIGHT(cusolverDnDestroyGesvdjInfo(svd));
	RIGHT(cusolverDnDestroy(dense));
}

int main(int argc, char **argv)
{
	char path[4096];

	(void)argc;
	snprintf(path, sizeof(path), "%s_backend.so", argv[0]);
	setenv("QCU_LOOPBACK_BACKEND", path, 1);
	OK(cudaMalloc((void **)&rows, sizeof(good_rows)));
	OK(cudaMalloc((void **)&cols, sizeof(good_cols)));
	OK(cudaMalloc((void **)&values, (NNZ + 2 * N) * sizeof(*values)));
	IS((cusolverStatus_t)cusparseCreateMatDescr(&descr), CUSOLVER_STATUS_SUCCESS);
	WRONG(cusolverSpCreate(NULL));
	RIGHT(cusolverSpCreate(&handle));
	wrong();
	systems();
	streams();
	jacobi();
	RIGHT(cusolverSpDestroy(handle));
	IS(cusolverSpDestroy(handle), CUSOLVER_STATUS_NOT_INITIALIZED);
	return 0;
}
