// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Dense matrices with cuSOLVER: linear equations by LU and Cholesky, eigenvalues by two ways, and the
 * newer functions, which also work in the host's memory. What comes out is put into the equation again.
 */
#include <cusolverDn.h>

#include "../libs.h"

#define N 24

static cusolverDnHandle_t handle;

/* Column by column. */
typedef std::vector<double> matrix;

static matrix symmetric(void)
{
	matrix m(N * N);

	for (int i = 0; i < N; i++)
		for (int j = 0; j <= i; j++)
			m[i + j * N] = m[j + i * N] = small_number() + (i == j ? 2 * N : 0);
	return m;
}

static matrix times(const matrix &a, const matrix &b, int columns)
{
	matrix c(N * columns);

	for (int j = 0; j < columns; j++)
		for (int k = 0; k < N; k++)
			for (int i = 0; i < N; i++)
				c[i + j * N] += a[i + k * N] * b[k + j * N];
	return c;
}

static void near(const char *what, const matrix &a, const matrix &b)
{
	for (size_t i = 0; i < b.size(); i++)
		REQUIRE(fabs(a[i] - b[i]) < 1e-9, "%s: element %zu is %g, not %g", what, i, a[i], b[i]);
}

static void check_info(const int *gpu)
{
	int info = -1;

	CHECK(cudaMemcpy(&info, gpu, sizeof(info), cudaMemcpyDeviceToHost));
	REQUIRE(info == 0, "info is %d", info);
}

static void equations(void)
{
	matrix a = symmetric(), b(N * 2);
	int *info, *pivots, size = 0, size2 = 0;
	double *work;

	for (double &v : b)
		v = small_number();
	a[3] += 1; /* not symmetric any more */

	double *ga = up(a), *gb = up(b);

	CHECK(cudaMalloc(&info, sizeof(int)));
	CHECK(cudaMalloc(&pivots, N * sizeof(int)));
	FAILS(cusolverDnDgetrf_bufferSize(NULL, N, N, ga, N, &size));
	OK(cusolverDnDgetrf_bufferSize(handle, N, N, ga, N, &size));
	CHECK(cudaMalloc(&work, (size + 1) * sizeof(double)));
	OK(cusolverDnDgetrf(handle, N, N, ga, N, work, pivots, info));
	check_info(info);
	OK(cusolverDnDgetrs(handle, CUBLAS_OP_N, N, 2, ga, N, pivots, gb, N, info));
	check_info(info);
	near("a solution by LU", times(a, down(gb, N * 2), 2), b);

	a = symmetric();
	CHECK(cudaMemcpy(ga, a.data(), a.size() * sizeof(double), cudaMemcpyHostToDevice));
	CHECK(cudaMemcpy(gb, b.data(), b.size() * sizeof(double), cudaMemcpyHostToDevice));
	OK(cusolverDnDpotrf_bufferSize(handle, CUBLAS_FILL_MODE_LOWER, N, ga, N, &size2));
	CHECK(cudaFree(work));
	CHECK(cudaMalloc(&work, (size2 + 1) * sizeof(double)));
	OK(cusolverDnDpotrf(handle, CUBLAS_FILL_MODE_LOWER, N, ga, N, work, size2, info));
	check_info(info);
	OK(cusolverDnDpotrs(handle, CUBLAS_FILL_MODE_LOWER, N, 2, ga, N, gb, N, info));
	check_info(info);
	near("a solution by Cholesky", times(a, down(gb, N * 2), 2), b);
	for (void *p : {(void *)ga, (void *)gb, (void *)info, (void *)pivots, (void *)work})
		CHECK(cudaFree(p));
}

/* A times a vector is the eigenvalue times the vector. */
static void check_vectors(const char *what, const matrix &a, const double *vectors, const double *values)
{
	matrix v = down(vectors, N * N), w = down(values, N), left = times(a, v, N);

	for (int j = 0; j < N; j++)
		for (int i = 0; i < N; i++)
			v[i + j * N] *= w[j];
	near(what, left, v);
}

static void eigenvalues(void)
{
	const matrix a = symmetric();
	size_t on_device = 0, on_host = 0;
	syevjInfo_t jacobi;
	cusolverDnParams_t params;
	double *ga = up(a), *values, *work;
	int *info, size = 0;
	void *space;

	CHECK(cudaMalloc(&values, N * sizeof(double)));
	CHECK(cudaMalloc(&info, sizeof(int)));
	OK(cusolverDnCreateSyevjInfo(&jacobi));
	OK(cusolverDnXsyevjSetTolerance(jacobi, 1e-13));
	OK(cusolverDnXsyevjSetMaxSweeps(jacobi, 30));
	OK(cusolverDnDsyevj_bufferSize(handle, CUSOLVER_EIG_MODE_VECTOR, CUBLAS_FILL_MODE_LOWER, N, ga, N, values, &size,
				       jacobi));
	CHECK(cudaMalloc(&work, (size + 1) * sizeof(double)));
	OK(cusolverDnDsyevj(handle, CUSOLVER_EIG_MODE_VECTOR, CUBLAS_FILL_MODE_LOWER, N, ga, N, values, work, size, info,
			    jacobi));
	check_info(info);
	check_vectors("vectors by Jacobi's method", a, ga, values);
	OK(cusolverDnDestroySyevjInfo(jacobi));

	CHECK(cudaMemcpy(ga, a.data(), a.size() * sizeof(double), cudaMemcpyHostToDevice));
	OK(cusolverDnCreateParams(&params));
	OK(cusolverDnXsyevd_bufferSize(handle, params, CUSOLVER_EIG_MODE_VECTOR, CUBLAS_FILL_MODE_LOWER, N, CUDA_R_64F,
				       ga, N, CUDA_R_64F, values, CUDA_R_64F, &on_device, &on_host));
	CHECK(cudaMalloc(&space, on_device + 1));

	std::vector<char> host(on_host + 1);

	OK(cusolverDnXsyevd(handle, params, CUSOLVER_EIG_MODE_VECTOR, CUBLAS_FILL_MODE_LOWER, N, CUDA_R_64F, ga, N,
			    CUDA_R_64F, values, CUDA_R_64F, space, on_device, host.data(), on_host, info));
	check_info(info);
	check_vectors("vectors", a, ga, values);
	OK(cusolverDnDestroyParams(params));
	for (void *p : {(void *)ga, (void *)values, (void *)info, (void *)work, space})
		CHECK(cudaFree(p));
}

int main(void)
{
	first("cuSOLVER", cusolverDnCreate(&handle), CUSOLVER_STATUS_NOT_INITIALIZED);
	equations();
	eigenvalues();
	equations();
	OK(cusolverDnDestroy(handle));
	CHECK(cudaDeviceSynchronize());
	printf("equations by LU and Cholesky, and eigenvectors in two ways\n");
	return 0;
}
