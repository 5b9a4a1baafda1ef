// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Many small matrices at once with cuSOLVER: factors and solutions by Cholesky, which take arrays of
 * pointers, and eigenvectors and singular values by Jacobi's method, whose matrices lie one behind the
 * other. Each matrix of a batch is checked by itself.
 */
#include "solver.h"

#define COUNT 40

FOR_TYPES(potrf_batched, potrfBatched, potrfBatched)
FOR_TYPES(potrs_batched, potrsBatched, potrsBatched)
FOR_TYPES(eigen_size, syevjBatched_bufferSize, heevjBatched_bufferSize)
FOR_TYPES(eigen, syevjBatched, heevjBatched)
FOR_TYPES(singular_size, gesvdjBatched_bufferSize, gesvdjBatched_bufferSize)
FOR_TYPES(singular, gesvdjBatched, gesvdjBatched)

template <typename T> static void cholesky(int n, cublasFillMode_t fill)
{
	typedef typename number<T>::gpu G;
	std::vector<T> as, bs = numbers<T>(n * COUNT);
	std::vector<G *> pa, pb;

	for (int i = 0; i < COUNT; i++)
		append(as, hermitian<T>(n, 2 * n));

	memory<T> ga(as), gb(bs);
	memory<int> info(std::vector<int>(COUNT, 77));

	/* The pointers need not be in the order of the memory. */
	for (int i = 0; i < COUNT; i++) {
		pa.push_back(ga + (i * 7 % COUNT) * n * n);
		pb.push_back(gb + (i * 7 % COUNT) * n);
	}

	memory<G *> gpa(pa), gpb(pb);

	OK(potrf_batched(T(), handle, fill, n, gpa, n, info, COUNT));
	check_all(info);
	OK(potrs_batched(T(), handle, fill, n, 1, gpa, n, gpb, n, info, COUNT));
	check_info(info);

	std::vector<T> xs = gb.get();

	for (int i = 0; i < COUNT; i++)
		near("a solution of a batch", times(part(as, i, n * n), part(xs, i, n), n, n, 1), part(bs, i, n));
}

template <typename T> static void eigenvectors(int n, cublasFillMode_t fill)
{
	std::vector<T> as;
	syevjInfo_t jacobi = for_eigenvalues<T>();
	int size = 0;

	for (int i = 0; i < COUNT; i++)
		append(as, hermitian<T>(n, i));

	memory<T> ga(as);
	memory<real<T>> values(n * COUNT);
	memory<int> info(std::vector<int>(COUNT, 77));

	OK(eigen_size(T(), handle, CUSOLVER_EIG_MODE_VECTOR, fill, n, ga, n, values, &size, jacobi, COUNT));

	memory<T> work(size);

	OK(eigen(T(), handle, CUSOLVER_EIG_MODE_VECTOR, fill, n, ga, n, values, work, size, info, jacobi, COUNT));
	check_all(info);

	std::vector<T> vectors = ga.get();
	std::vector<real<T>> all = values.get();

	for (int i = 0; i < COUNT; i++) {
		std::vector<real<T>> w = part(all, i, n);

		for (int j = 1; j < n; j++)
			REQUIRE(w[j - 1] <= w[j], "the eigenvalues of %d are not in order", i);
		check_vectors("eigenvectors of a batch", part(as, i, n * n), part(vectors, i, n * n), w);
	}
	OK(cusolverDnDestroySyevjInfo(jacobi));
}

template <typename T> static void singular_values(int m, int n)
{
	std::vector<T> as;
	std::vector<real<T>> want;
	gesvdjInfo_t jacobi = for_singular_values<T>();
	int size = 0;

	for (int i = 0; i < n; i++)
		want.push_back(real<T>(n - i + 1));
	for (int i = 0; i < COUNT; i++)
		append(as, with_values<T>(want, m, n));

	memory<T> ga(as), u(m * m * COUNT), v(n * n * COUNT);
	memory<real<T>> values(n * COUNT);
	memory<int> info(std::vector<int>(COUNT, 77));

	OK(singular_size(T(), handle, CUSOLVER_EIG_MODE_VECTOR, m, n, ga, m, values, u, m, v, n, &size, jacobi, COUNT));

	memory<T> work(size);

	OK(singular(T(), handle, CUSOLVER_EIG_MODE_VECTOR, m, n, ga, m, values, u, m, v, n, work, size, info, jacobi,
		    COUNT));
	check_all(info);

	std::vector<T> us = u.get(), vs = v.get();
	std::vector<real<T>> all = values.get();

	for (int i = 0; i < COUNT; i++) {
		std::vector<T> left = part(us, i, m * m), right = part(vs, i, n * n);
		std::vector<real<T>> got = part(all, i, n);

		near("singular values of a batch", got, want);
		check_columns("left vectors", left, m, m);
		check_columns("right vectors", right, n, n);
		left = times(left, diagonal<T>(got, m, n), m, m, n);
		near("a matrix of a batch", times(left, adjoint(right, n, n), m, n, n), part(as, i, m * n));
	}
	OK(cusolverDnDestroyGesvdjInfo(jacobi));
}

int main(void)
{
	memory<float> a(64);
	memory<int> info(2);
	syevjInfo_t jacobi;
	int size;

	begin();
	FAILS(cusolverDnSpotrfBatched(NULL, CUBLAS_FILL_MODE_LOWER, 4, NULL, 4, info, 1));
	FAILS(cusolverDnSpotrfBatched(handle, CUBLAS_FILL_MODE_LOWER, 4, NULL, 4, info, -1));
	FAILS(cusolverDnSpotrsBatched(NULL, CUBLAS_FILL_MODE_LOWER, 4, 1, NULL, 4, NULL, 4, info, 1));
	jacobi = for_eigenvalues<float>();
	FAILS(cusolverDnSsyevjBatched_bufferSize(NULL, CUSOLVER_EIG_MODE_VECTOR, CUBLAS_FILL_MODE_LOWER, 4, a, 4, a,
						 &size, jacobi, 2));
	FAILS(cusolverDnSsyevjBatched_bufferSize(handle, CUSOLVER_EIG_MODE_VECTOR, CUBLAS_FILL_MODE_LOWER, -4, a, 4, a,
						 &size, jacobi, 2));
	OK(cusolverDnDestroySyevjInfo(jacobi));
	cholesky<float>(6, CUBLAS_FILL_MODE_LOWER);
	cholesky<double>(17, CUBLAS_FILL_MODE_UPPER);
	cholesky<C>(5, CUBLAS_FILL_MODE_UPPER);
	cholesky<Z>(33, CUBLAS_FILL_MODE_LOWER);
	eigenvectors<float>(7, CUBLAS_FILL_MODE_LOWER);
	eigenvectors<double>(12, CUBLAS_FILL_MODE_UPPER);
	eigenvectors<Z>(9, CUBLAS_FILL_MODE_LOWER);
	singular_values<double>(11, 6);
	singular_values<C>(8, 8);
	OK(cusolverDnDestroy(handle));
	printf("batches of %d: Cholesky, eigenvectors, singular values\n", COUNT);
	return 0;
}
