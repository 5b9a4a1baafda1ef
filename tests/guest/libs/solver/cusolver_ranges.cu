// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Eigenvalues of symmetric and Hermitian matrices with cuSOLVER: all of them with and without vectors,
 * those with given numbers, and those in an interval, whose count comes back to the host. The matrices
 * are made so that the eigenvalues are 1, 2, 3 and so on.
 */
#include "solver.h"

#define N 40

FOR_TYPES(all_size, syevd_bufferSize, heevd_bufferSize)
FOR_TYPES(all, syevd, heevd)
FOR_TYPES(some_size, syevdx_bufferSize, heevdx_bufferSize)
FOR_TYPES(some, syevdx, heevdx)

/* from, from + 1, ..., to */
template <typename R> static std::vector<R> rising(int from, int to)
{
	std::vector<R> v;

	while (from <= to)
		v.push_back(R(from++));
	return v;
}

template <typename T> static void whole(const std::vector<T> &a, cublasFillMode_t fill)
{
	const std::vector<real<T>> want = rising<real<T>>(1, N);
	memory<T> ga(a);
	memory<real<T>> values(N);
	memory<int> info(1);

	for (cusolverEigMode_t mode : {CUSOLVER_EIG_MODE_NOVECTOR, CUSOLVER_EIG_MODE_VECTOR}) {
		int size = 0;

		ga.set(a);
		values.set(std::vector<real<T>>(N));
		OK(all_size(T(), handle, mode, fill, N, ga, N, values, &size));

		memory<T> work(size);

		OK(all(T(), handle, mode, fill, N, ga, N, values, work, size, info));
		check_info(info);
		near("all eigenvalues", values.get(), want);
		if (mode == CUSOLVER_EIG_MODE_VECTOR)
			check_vectors("all eigenvectors", a, ga.get(), values.get());
	}
}

/* By number, from 1, or by the values' interval. The values from `from` to `to` must come. */
template <typename T>
static void part(const std::vector<T> &a, cusolverEigMode_t mode, cusolverEigRange_t range, cublasFillMode_t fill,
		 int from, int to)
{
	/* The interval's ends lie between eigenvalues. */
	const real<T> low = real<T>(from - 0.5), high = real<T>(to + 0.5);
	const int count = to - from + 1;
	memory<T> ga(a);
	memory<real<T>> values(N);
	memory<int> info(1);
	int size = 0, found = -1;

	OK(some_size(T(), handle, mode, range, fill, N, ga, N, low, high, from, to, &found, values, &size));

	memory<T> work(size);

	found = -1;
	OK(some(T(), handle, mode, range, fill, N, ga, N, low, high, from, to, &found, values, work, size, info));
	check_info(info);
	REQUIRE(found == count, "%d eigenvalues are found, not %d", found, count);

	std::vector<real<T>> got = values.get();

	got.resize(count);
	near("some eigenvalues", got, rising<real<T>>(from, to));
	if (mode == CUSOLVER_EIG_MODE_VECTOR) {
		std::vector<T> vectors = ga.get();

		vectors.resize(N * count);
		check_vectors("some eigenvectors", a, vectors, got);
	}
}

template <typename T> static void matrix(cublasFillMode_t fill)
{
	std::vector<T> a = with_spectrum<T>(rising<real<T>>(1, N));

	whole(a, fill);
	for (cusolverEigMode_t mode : {CUSOLVER_EIG_MODE_NOVECTOR, CUSOLVER_EIG_MODE_VECTOR}) {
		part(a, mode, CUSOLVER_EIG_RANGE_I, fill, 3, 9);
		part(a, mode, CUSOLVER_EIG_RANGE_I, fill, N, N);
		part(a, mode, CUSOLVER_EIG_RANGE_V, fill, 12, 20);
		part(a, mode, CUSOLVER_EIG_RANGE_V, fill, 1, N);
		part(a, mode, CUSOLVER_EIG_RANGE_ALL, fill, 1, N);
	}
}

static void wrong_calls(void)
{
	memory<double> a(16);
	memory<int> info(1);
	int size, found;

	FAILS(cusolverDnDsyevd_bufferSize(NULL, CUSOLVER_EIG_MODE_VECTOR, CUBLAS_FILL_MODE_LOWER, 4, a, 4, a, &size));
	FAILS(cusolverDnDsyevd(NULL, CUSOLVER_EIG_MODE_VECTOR, CUBLAS_FILL_MODE_LOWER, 4, a, 4, a, a, 16, info));
	FAILS(cusolverDnDsyevdx_bufferSize(NULL, CUSOLVER_EIG_MODE_VECTOR, CUSOLVER_EIG_RANGE_ALL,
					   CUBLAS_FILL_MODE_LOWER, 4, a, 4, 0, 0, 1, 4, &found, a, &size));
	FAILS(cusolverDnDsyevdx(NULL, CUSOLVER_EIG_MODE_VECTOR, CUSOLVER_EIG_RANGE_ALL, CUBLAS_FILL_MODE_LOWER, 4, a, 4,
				0, 0, 1, 4, &found, a, a, 16, info));
}

int main(void)
{
	begin();
	wrong_calls();
	matrix<float>(CUBLAS_FILL_MODE_LOWER);
	matrix<double>(CUBLAS_FILL_MODE_UPPER);
	matrix<C>(CUBLAS_FILL_MODE_UPPER);
	matrix<Z>(CUBLAS_FILL_MODE_LOWER);
	OK(cusolverDnDestroy(handle));
	printf("all eigenvalues, and those of a range, in four types\n");
	return 0;
}
