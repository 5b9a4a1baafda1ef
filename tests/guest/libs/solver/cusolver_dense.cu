// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Dense matrices with cuSOLVER: linear equations by LU and Cholesky, eigenvalues by two ways, and the
 * newer functions, which also work in the host's memory. What comes out is put into the equation again.
 */
#include "solver.h"

#define N 24

typedef std::vector<double> matrix;

static void equations(void)
{
	matrix a = hermitian<double>(N, 2 * N), b = numbers<double>(N * 2);
	memory<int> info(1), pivots(N);
	int size = 0, size2 = 0;

	a[3] += 1; /* not symmetric any more */

	memory<double> ga(a), gb(b);

	FAILS(cusolverDnDgetrf_bufferSize(NULL, N, N, ga, N, &size));
	OK(cusolverDnDgetrf_bufferSize(handle, N, N, ga, N, &size));

	memory<double> work(size);

	OK(cusolverDnDgetrf(handle, N, N, ga, N, work, pivots, info));
	check_info(info);
	OK(cusolverDnDgetrs(handle, CUBLAS_OP_N, N, 2, ga, N, pivots, gb, N, info));
	check_info(info);
	near("a solution by LU", times(a, gb.get(), N, N, 2), b);

	a = hermitian<double>(N, 2 * N);
	ga.set(a);
	gb.set(b);
	OK(cusolverDnDpotrf_bufferSize(handle, CUBLAS_FILL_MODE_LOWER, N, ga, N, &size2));

	memory<double> work2(size2);

	OK(cusolverDnDpotrf(handle, CUBLAS_FILL_MODE_LOWER, N, ga, N, work2, size2, info));
	check_info(info);
	OK(cusolverDnDpotrs(handle, CUBLAS_FILL_MODE_LOWER, N, 2, ga, N, gb, N, info));
	check_info(info);
	near("a solution by Cholesky", times(a, gb.get(), N, N, 2), b);
}

static void eigenvalues(void)
{
	const matrix a = hermitian<double>(N, 2 * N);
	memory<double> ga(a), values(N);
	memory<int> info(1);
	syevjInfo_t jacobi = for_eigenvalues<double>();
	cusolverDnParams_t params;
	int size = 0;
	space s;

	OK(cusolverDnDsyevj_bufferSize(handle, CUSOLVER_EIG_MODE_VECTOR, CUBLAS_FILL_MODE_LOWER, N, ga, N, values,
				       &size, jacobi));

	memory<double> work(size);

	OK(cusolverDnDsyevj(handle, CUSOLVER_EIG_MODE_VECTOR, CUBLAS_FILL_MODE_LOWER, N, ga, N, values, work, size,
			    info, jacobi));
	check_info(info);
	check_vectors("vectors by Jacobi's method", a, ga.get(), values.get());
	OK(cusolverDnDestroySyevjInfo(jacobi));

	ga.set(a);
	OK(cusolverDnCreateParams(&params));
	OK(cusolverDnXsyevd_bufferSize(handle, params, CUSOLVER_EIG_MODE_VECTOR, CUBLAS_FILL_MODE_LOWER, N, CUDA_R_64F,
				       ga, N, CUDA_R_64F, values, CUDA_R_64F, &s.on_device, &s.on_host));
	s.get();
	OK(cusolverDnXsyevd(handle, params, CUSOLVER_EIG_MODE_VECTOR, CUBLAS_FILL_MODE_LOWER, N, CUDA_R_64F, ga, N,
			    CUDA_R_64F, values, CUDA_R_64F, s.device, s.on_device, s.host, s.on_host, info));
	check_info(info);
	check_vectors("vectors", a, ga.get(), values.get());
	OK(cusolverDnDestroyParams(params));
}

int main(void)
{
	begin();
	equations();
	eigenvalues();
	equations();
	OK(cusolverDnDestroy(handle));
	CHECK(cudaDeviceSynchronize());
	printf("equations by LU and Cholesky, and eigenvectors in two ways\n");
	return 0;
}
