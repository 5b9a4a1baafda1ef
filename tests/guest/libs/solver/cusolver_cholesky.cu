// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Cholesky with cuSOLVER, in four types, of the lower and of the upper triangle: the factor times its
 * adjoint is the matrix, the other triangle is not touched, solutions fit their equations, and the
 * inverse is one.
 */
#include "solver.h"

FOR_TYPES(potrf_size, potrf_bufferSize, potrf_bufferSize)
FOR_TYPES(potrf, potrf, potrf)
FOR_TYPES(potrs, potrs, potrs)
FOR_TYPES(potri_size, potri_bufferSize, potri_bufferSize)
FOR_TYPES(potri, potri, potri)

template <typename T> static void matrix(int n, cublasFillMode_t fill)
{
	const std::vector<T> a = hermitian<T>(n, 2 * n), b = numbers<T>(n * 3);
	memory<T> ga(triangle(a, n, fill, T(77))), gb(b);
	memory<int> info(1);
	int size = 0, room = 0;

	OK(potrf_size(T(), handle, fill, n, ga, n, &size));
	OK(potri_size(T(), handle, fill, n, ga, n, &room));

	memory<T> work(std::max(size, room));

	OK(potrf(T(), handle, fill, n, ga, n, work, size, info));
	check_info(info);

	std::vector<T> got = ga.get(), factor = triangle(got, n, fill);

	for (int i = 0; i < n * n; i++)
		REQUIRE(inside(fill, i % n, i / n) || got[i] == T(77), "the other triangle was written at %d", i);
	near("a matrix from its factor",
	     fill == CUBLAS_FILL_MODE_LOWER ? times(factor, adjoint(factor, n, n), n, n, n)
					    : times(adjoint(factor, n, n), factor, n, n, n),
	     a);

	OK(potrs(T(), handle, fill, n, 3, ga, n, gb, n, info));
	check_info(info);
	near("a solution", times(a, gb.get(), n, n, 3), b);

	OK(potri(T(), handle, fill, n, ga, n, work, room, info));
	check_info(info);

	std::vector<T> inverse = triangle(ga.get(), n, fill), rest = adjoint(inverse, n, n);

	for (int i = 0; i < n * n; i++)
		if (!inside(fill, i % n, i / n))
			inverse[i] = rest[i];
	near("a matrix times its inverse", times(a, inverse, n, n, n), identity<T>(n));
}

template <typename T> static void all(void)
{
	for (cublasFillMode_t fill : {CUBLAS_FILL_MODE_LOWER, CUBLAS_FILL_MODE_UPPER}) {
		matrix<T>(1, fill);
		matrix<T>(31, fill);
		matrix<T>(100, fill);
	}
}

static void wrong_calls(void)
{
	memory<float> a(16);
	memory<int> info(1);

	FAILS(cusolverDnSpotrf(handle, CUBLAS_FILL_MODE_LOWER, 4, a, 3, a, 16, info));
	FAILS(cusolverDnSpotrs(NULL, CUBLAS_FILL_MODE_LOWER, 4, 1, a, 4, a, 4, info));
	FAILS(cusolverDnSpotri(NULL, CUBLAS_FILL_MODE_LOWER, 4, a, 4, a, 16, info));
	FAILS(cusolverDnSpotri(handle, CUBLAS_FILL_MODE_LOWER, -4, a, 4, a, 16, info));
	FAILS(cusolverDnSpotri(handle, CUBLAS_FILL_MODE_LOWER, 4, a, 3, a, 16, info));
}

int main(void)
{
	begin();
	wrong_calls();
	all<float>();
	all<double>();
	all<C>();
	all<Z>();
	OK(cusolverDnDestroy(handle));
	printf("factors, solutions and inverses of both triangles in four types\n");
	return 0;
}
