// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Matrices that cannot be factored: cuSOLVER says where, in a number on the GPU. LU of a singular matrix,
 * Cholesky of matrices that are not positive definite, alone and one in a batch, the inverse of a
 * triangle with a zero on its diagonal, and generalised eigenvalues whose second matrix is bad. After
 * each of them the handle works as before.
 */
#include "solver.h"

#define N   20
#define BAD 7 /* the row that is wrong, from 0 */

FOR_TYPES(getrf_size, getrf_bufferSize, getrf_bufferSize)
FOR_TYPES(getrf, getrf, getrf)
FOR_TYPES(potrf_size, potrf_bufferSize, potrf_bufferSize)
FOR_TYPES(potrf, potrf, potrf)
FOR_TYPES(potrf_batched, potrfBatched, potrfBatched)

/* A chain: 4 on the diagonal, -1 beside it. The leading minors are positive up to row `bad`. */
template <typename T> static std::vector<T> chain(int bad)
{
	std::vector<T> a(N * N);

	for (int i = 0; i < N; i++) {
		a[i + i * N] = i == bad ? -4 : 4;
		if (i)
			a[i + (i - 1) * N] = a[i - 1 + i * N] = -1;
	}
	return a;
}

/* The last column is zero, so the last pivot is. */
template <typename T> static void lu(void)
{
	std::vector<T> a = regular<T>(N);
	memory<int> pivots(N), info(1);
	memory<T> ga(a);
	int size = 0;

	OK(getrf_size(T(), handle, N, N, ga, N, &size));

	memory<T> work(size);

	OK(getrf(T(), handle, N, N, ga, N, work, pivots, info));
	check_info(info);
	for (int i = 0; i < N; i++)
		a[i + (N - 1) * N] = 0;
	ga.set(a);
	OK(getrf(T(), handle, N, N, ga, N, work, pivots, info));
	check_info(info, N);
}

template <typename T> static void cholesky(cublasFillMode_t fill)
{
	memory<T> ga(chain<T>(BAD));
	memory<int> info(1);
	int size = 0;

	OK(potrf_size(T(), handle, fill, N, ga, N, &size));

	memory<T> work(size);

	OK(potrf(T(), handle, fill, N, ga, N, work, size, info));
	check_info(info, BAD + 1);
	ga.set(chain<T>(-1));
	OK(potrf(T(), handle, fill, N, ga, N, work, size, info));
	check_info(info);
}

/* One of three is bad. The others are factored all the same. */
template <typename T> static void batch(void)
{
	typedef typename number<T>::gpu G;
	memory<T> good(chain<T>(-1)), bad(chain<T>(BAD)), last(chain<T>(-1));
	memory<G *> matrices(std::vector<G *>{good, bad, last});
	memory<int> info(std::vector<int>(3, 77));

	OK(potrf_batched(T(), handle, CUBLAS_FILL_MODE_LOWER, N, matrices, N, info, 3));
	REQUIRE(info.get() == std::vector<int>({0, BAD + 1, 0}), "info is %d %d %d", info.get()[0], info.get()[1],
		info.get()[2]);
	for (const memory<T> *m : {&good, &last}) {
		std::vector<T> l = triangle(m->get(), N, CUBLAS_FILL_MODE_LOWER);

		near("a factor beside a bad one", times(l, adjoint(l, N, N), N, N, N), chain<T>(-1));
	}
}

static void inverse(void)
{
	std::vector<double> a = chain<double>(-1);
	memory<double> ga(a);
	memory<int> info(1);
	space s;

	OK(cusolverDnXtrtri_bufferSize(handle, CUBLAS_FILL_MODE_UPPER, CUBLAS_DIAG_NON_UNIT, N, CUDA_R_64F, ga, N,
				       &s.on_device, &s.on_host));
	s.get();
	for (int bad : {-1, BAD}) {
		if (bad >= 0)
			a[bad + bad * N] = 0;
		ga.set(a);
		OK(cusolverDnXtrtri(handle, CUBLAS_FILL_MODE_UPPER, CUBLAS_DIAG_NON_UNIT, N, CUDA_R_64F, ga, N,
				    s.device, s.on_device, s.host, s.on_host, info));
		check_info(info, bad + 1);
	}
}

static void generalised(void)
{
	memory<double> a(N * N), b(N * N), values(N);
	memory<int> info(1);
	int size = 0;

	OK(cusolverDnDsygvd_bufferSize(handle, CUSOLVER_EIG_TYPE_1, CUSOLVER_EIG_MODE_VECTOR, CUBLAS_FILL_MODE_LOWER, N,
				       a, N, b, N, values, &size));

	memory<double> work(size);

	for (int bad : {BAD, -1}) {
		a.set(chain<double>(-1));
		b.set(chain<double>(bad));
		OK(cusolverDnDsygvd(handle, CUSOLVER_EIG_TYPE_1, CUSOLVER_EIG_MODE_VECTOR, CUBLAS_FILL_MODE_LOWER, N, a,
				    N, b, N, values, work, size, info));
		check_info(info, bad < 0 ? 0 : N + bad + 1);
	}
	near("the values of two equal matrices", values.get(), std::vector<double>(N, 1));
}

int main(void)
{
	memory<double> a(16);
	memory<int> info(1);

	begin();
	FAILS(cusolverDnDpotrf(handle, CUBLAS_FILL_MODE_LOWER, -4, a, 4, a, 16, info));
	FAILS(cusolverDnDpotrf(handle, CUBLAS_FILL_MODE_LOWER, 4, a, 3, a, 16, info));
	lu<float>();
	lu<Z>();
	for (cublasFillMode_t fill : {CUBLAS_FILL_MODE_LOWER, CUBLAS_FILL_MODE_UPPER}) {
		cholesky<double>(fill);
		cholesky<C>(fill);
	}
	batch<float>();
	batch<Z>();
	inverse();
	generalised();
	OK(cusolverDnDestroy(handle));
	printf("the places where LU, Cholesky, an inverse and eigenvalues fail\n");
	return 0;
}
