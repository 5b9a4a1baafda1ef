// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The first halves of eigenvalues and singular values, by themselves, with cuSOLVER: a symmetric or
 * Hermitian matrix becomes tridiagonal, and any matrix bidiagonal. What was done on the left and on the
 * right is written out, or multiplied with another matrix, and leads back to the matrix.
 */
#include "solver.h"

FOR_TYPES(tridiagonal_size, sytrd_bufferSize, hetrd_bufferSize)
FOR_TYPES(tridiagonal, sytrd, hetrd)
FOR_TYPES(make_q_size, orgtr_bufferSize, ungtr_bufferSize)
FOR_TYPES(make_q, orgtr, ungtr)
FOR_TYPES(use_q_size, ormtr_bufferSize, unmtr_bufferSize)
FOR_TYPES(use_q, ormtr, unmtr)
FOR_TYPES(bidiagonal_size, gebrd_bufferSize, gebrd_bufferSize)
FOR_TYPES(bidiagonal, gebrd, gebrd)
FOR_TYPES(make_side_size, orgbr_bufferSize, ungbr_bufferSize)
FOR_TYPES(make_side, orgbr, ungbr)

static const cublasFillMode_t lower = CUBLAS_FILL_MODE_LOWER;

template <typename T> static void symmetric(int n)
{
	const std::vector<T> a = hermitian<T>(n, 0), c = numbers<T>(n * 3);
	memory<T> ga(a), tau(n), gc(c);
	memory<real<T>> on(n), beside(n);
	memory<int> info(1);
	int size = 0, make = 0, use = 0;

	OK(tridiagonal_size(T(), handle, lower, n, ga, n, on, beside, tau, &size));
	OK(make_q_size(T(), handle, lower, n, ga, n, tau, &make));
	OK(use_q_size(T(), handle, CUBLAS_SIDE_LEFT, lower, CUBLAS_OP_N, n, 3, ga, n, tau, gc, n, &use));

	memory<T> work(std::max(size, std::max(make, use)));

	OK(tridiagonal(T(), handle, lower, n, ga, n, on, beside, tau, work, size, info));
	check_info(info);
	OK(use_q(T(), handle, CUBLAS_SIDE_LEFT, lower, CUBLAS_OP_N, n, 3, ga, n, tau, gc, n, work, use, info));
	check_info(info);
	OK(make_q(T(), handle, lower, n, ga, n, tau, work, make, info));
	check_info(info);

	std::vector<T> q = ga.get(), t = diagonal<T>(on.get(), n, n);
	std::vector<real<T>> e = beside.get();

	for (int i = 0; i < n - 1; i++)
		t[i + 1 + i * n] = t[i + (i + 1) * n] = T(e[i]);
	check_columns("Q", q, n, n);
	near("a matrix from three diagonals", times(times(q, t, n, n, n), adjoint(q, n, n), n, n, n), a);
	near("Q times a matrix", gc.get(), times(q, c, n, n, 3));
}

/* Q or the adjoint of P: rows times columns, from a matrix whose other side was `other`. */
template <typename T>
static std::vector<T> side(cublasSideMode_t which, const std::vector<T> &reduced, int lead, int rows, int columns,
			   int other, const memory<T> &tau)
{
	memory<T> g(reduced);
	memory<int> info(1);
	int size = 0;

	OK(make_side_size(T(), handle, which, rows, columns, other, g, lead, tau, &size));

	memory<T> work(size);

	OK(make_side(T(), handle, which, rows, columns, other, g, lead, tau, work, size, info));
	check_info(info);

	std::vector<T> all = g.get(), part(rows * columns);

	for (int i = 0; i < rows * columns; i++)
		part[i] = all[i % rows + i / rows * lead];
	return part;
}

template <typename T> static void general(int m, int n)
{
	const std::vector<T> a = numbers<T>(m * n);
	memory<T> ga(a), tau_q(n), tau_p(n);
	memory<real<T>> on(n), above(n);
	memory<int> info(1);
	int size = 0;

	OK(bidiagonal_size(T(), handle, m, n, &size));

	memory<T> work(size);

	OK(bidiagonal(T(), handle, m, n, ga, m, on, above, tau_q, tau_p, work, size, info));
	check_info(info);

	std::vector<T> reduced = ga.get(), b = diagonal<T>(on.get(), n, n);
	std::vector<real<T>> e = above.get();

	for (int i = 0; i < n - 1; i++)
		b[i + (i + 1) * n] = T(e[i]);

	std::vector<T> q = side(CUBLAS_SIDE_LEFT, reduced, m, m, n, n, tau_q);
	std::vector<T> p = side(CUBLAS_SIDE_RIGHT, reduced, m, n, n, m, tau_p);

	check_columns("the left side", q, m, n);
	check_columns("the right side", p, n, n);
	near("a matrix from two diagonals", times(times(q, b, m, n, n), p, m, n, n), a);
}

int main(void)
{
	memory<double> a(16);
	memory<int> info(1);
	int size;

	begin();
	FAILS(cusolverDnDsytrd_bufferSize(NULL, lower, 4, a, 4, a, a, a, &size));
	FAILS(cusolverDnDsytrd(NULL, lower, 4, a, 4, a, a, a, a, 16, info));
	FAILS(cusolverDnDorgtr(NULL, lower, 4, a, 4, a, a, 16, info));
	FAILS(cusolverDnDgebrd_bufferSize(NULL, 4, 4, &size));
	FAILS(cusolverDnDgebrd(NULL, 4, 4, a, 4, a, a, a, a, a, 16, info));
	symmetric<float>(20);
	symmetric<double>(70);
	symmetric<C>(11);
	symmetric<Z>(32);
	general<float>(16, 16);
	general<double>(50, 30);
	general<Z>(21, 8);
	OK(cusolverDnDestroy(handle));
	printf("tridiagonal and bidiagonal matrices, and the way back\n");
	return 0;
}
