// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Generalised eigenvalues with cuSOLVER: A v = w B v, A B v = w v and B A v = w v, for symmetric and
 * Hermitian matrices, by two methods, and a range of them. The first example are the tones of a chain of
 * equal masses, which a formula tells.
 */
#include "solver.h"

#define N 24

FOR_TYPES(direct_size, sygvd_bufferSize, hegvd_bufferSize)
FOR_TYPES(direct, sygvd, hegvd)
FOR_TYPES(jacobi_size, sygvj_bufferSize, hegvj_bufferSize)
FOR_TYPES(jacobi, sygvj, hegvj)

static const cusolverEigMode_t vectors = CUSOLVER_EIG_MODE_VECTOR;

/* Puts values and vectors into the equation of this kind. */
template <typename T>
static void check(cusolverEigType_t kind, const std::vector<T> &a, const std::vector<T> &b, const std::vector<T> &v,
		  const std::vector<real<T>> &w)
{
	const int count = (int)w.size();
	const std::vector<T> scaled = times(v, diagonal<T>(w, count, count), N, count, count);
	const double tolerance = 10 * precision<T>();

	for (int j = 1; j < count; j++)
		REQUIRE(w[j - 1] <= w[j], "eigenvalue %d is not in order", j);
	if (kind == CUSOLVER_EIG_TYPE_1)
		near("A v = w B v", times(a, v, N, N, count), times(b, scaled, N, N, count), tolerance);
	else if (kind == CUSOLVER_EIG_TYPE_2)
		near("A B v = w v", times(a, times(b, v, N, N, count), N, N, count), scaled, tolerance);
	else
		near("B A v = w v", times(b, times(a, v, N, N, count), N, N, count), scaled, tolerance);
	/* The vectors' length is measured with B, or with its inverse: then with A it is the eigenvalue. */
	if (kind != CUSOLVER_EIG_TYPE_3)
		near("the vectors' length", times(adjoint(v, N, count), times(b, v, N, N, count), count, N, count),
		     identity<T>(count));
	else
		near("the vectors' length", times(adjoint(v, N, count), times(a, v, N, N, count), count, N, count),
		     diagonal<T>(w, count, count), tolerance);
}

template <typename T> static void by_both(cusolverEigType_t kind, cublasFillMode_t fill)
{
	const std::vector<T> a = hermitian<T>(N, 0), b = hermitian<T>(N, 2 * N);
	memory<T> ga(a), gb(b);
	memory<real<T>> values(N);
	memory<int> info(1);
	syevjInfo_t how = for_eigenvalues<T>();
	int size = 0, room = 0;

	OK(direct_size(T(), handle, kind, vectors, fill, N, ga, N, gb, N, values, &size));
	OK(jacobi_size(T(), handle, kind, vectors, fill, N, ga, N, gb, N, values, &room, how));

	memory<T> work(std::max(size, room));

	OK(direct(T(), handle, kind, vectors, fill, N, ga, N, gb, N, values, work, size, info));
	check_info(info);
	check(kind, a, b, ga.get(), values.get());

	std::vector<real<T>> first = values.get();

	ga.set(a);
	gb.set(b);
	OK(jacobi(T(), handle, kind, vectors, fill, N, ga, N, gb, N, values, work, room, info, how));
	check_info(info);
	check(kind, a, b, ga.get(), values.get());
	near("the values by both methods", values.get(), first);
	OK(cusolverDnDestroySyevjInfo(how));
}

/* Springs between masses of 2: the squares of the frequencies. */
static void chain(void)
{
	std::vector<double> springs(N * N), masses = diagonal<double>(std::vector<double>(N, 2), N, N), want;
	int size = 0, found = -1;
	memory<int> info(1);

	for (int i = 0; i < N; i++) {
		springs[i + i * N] = 2;
		if (i)
			springs[i + (i - 1) * N] = springs[i - 1 + i * N] = -1;
		want.push_back(1 - cos(M_PI * (i + 1) / (N + 1)));
	}

	memory<double> a(springs), b(masses), values(N);

	OK(cusolverDnDsygvd_bufferSize(handle, CUSOLVER_EIG_TYPE_1, CUSOLVER_EIG_MODE_NOVECTOR, CUBLAS_FILL_MODE_LOWER,
				       N, a, N, b, N, values, &size));

	memory<double> work(size);

	OK(cusolverDnDsygvd(handle, CUSOLVER_EIG_TYPE_1, CUSOLVER_EIG_MODE_NOVECTOR, CUBLAS_FILL_MODE_LOWER, N, a, N, b,
			    N, values, work, size, info));
	check_info(info);
	near("the tones of a chain", values.get(), want);

	/* The deepest five. */
	a.set(springs);
	b.set(masses);
	OK(cusolverDnDsygvdx_bufferSize(handle, CUSOLVER_EIG_TYPE_1, vectors, CUSOLVER_EIG_RANGE_I,
					CUBLAS_FILL_MODE_LOWER, N, a, N, b, N, 0, 0, 1, 5, &found, values, &size));

	memory<double> room(size);

	OK(cusolverDnDsygvdx(handle, CUSOLVER_EIG_TYPE_1, vectors, CUSOLVER_EIG_RANGE_I, CUBLAS_FILL_MODE_LOWER, N, a,
			     N, b, N, 0, 0, 1, 5, &found, values, room, size, info));
	check_info(info);
	REQUIRE(found == 5, "%d tones are found", found);

	std::vector<double> tones = values.get(), shapes = a.get();

	want.resize(5);
	tones.resize(5);
	shapes.resize(N * 5);
	near("the deepest tones", tones, want);
	check(CUSOLVER_EIG_TYPE_1, springs, masses, shapes, tones);
}

int main(void)
{
	memory<double> a(16);
	int size;

	begin();
	FAILS(cusolverDnDsygvd_bufferSize(NULL, CUSOLVER_EIG_TYPE_1, vectors, CUBLAS_FILL_MODE_LOWER, 4, a, 4, a, 4, a,
					  &size));
	FAILS(cusolverDnDsygvd_bufferSize(handle, CUSOLVER_EIG_TYPE_1, vectors, CUBLAS_FILL_MODE_LOWER, -4, a, 4, a, 4,
					  a, &size));
	chain();
	for (cusolverEigType_t kind : {CUSOLVER_EIG_TYPE_1, CUSOLVER_EIG_TYPE_2, CUSOLVER_EIG_TYPE_3}) {
		by_both<double>(kind, CUBLAS_FILL_MODE_LOWER);
		by_both<double>(kind, CUBLAS_FILL_MODE_UPPER);
		by_both<C>(kind, CUBLAS_FILL_MODE_LOWER);
	}
	OK(cusolverDnDestroy(handle));
	printf("three kinds of generalised eigenvalues by two methods, and the tones of a chain\n");
	return 0;
}
