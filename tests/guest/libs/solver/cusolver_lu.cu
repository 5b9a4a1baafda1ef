// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * LU with cuSOLVER in four types: of matrices that are high, wide and square, with a gap between their
 * columns, with pivots and without. The factors are multiplied again. Equations with a matrix, its
 * transpose and its adjoint are solved, and the solution is put into them.
 */
#include "solver.h"

#define GAP 3

FOR_TYPES(getrf_size, getrf_bufferSize, getrf_bufferSize)
FOR_TYPES(getrf, getrf, getrf)
FOR_TYPES(getrs, getrs, getrs)

/* The same matrix with a gap below each column, and back. */
template <typename T> static std::vector<T> spread(const std::vector<T> &a, int rows, int columns)
{
	std::vector<T> b((rows + GAP) * columns, T(77));

	for (int i = 0; i < rows * columns; i++)
		b[i % rows + i / rows * (rows + GAP)] = a[i];
	return b;
}

template <typename T> static std::vector<T> gather(const std::vector<T> &b, int rows, int columns)
{
	std::vector<T> a(rows * columns);

	for (size_t i = 0; i < b.size(); i++) {
		int row = (int)i % (rows + GAP);

		if (row < rows)
			a[row + i / (rows + GAP) * rows] = b[i];
		else
			REQUIRE(b[i] == T(77), "the gap was written at %zu", i);
	}
	return a;
}

template <typename T> static void factors(int m, int n, bool pivots)
{
	int k = std::min(m, n), lead = m + GAP, size = 0;
	std::vector<T> a = numbers<T>(m * n), l(m * k), u(k * n);
	memory<int> where(std::vector<int>(k, -1)), info(1);

	/* A large diagonal needs no pivots. */
	for (int i = 0; i < k && !pivots; i++)
		a[i + i * m] += T(real<T>(2 * (m + n)));

	memory<T> ga(spread(a, m, n));

	OK(getrf_size(T(), handle, m, n, ga, lead, &size));

	memory<T> work(size);

	OK(getrf(T(), handle, m, n, ga, lead, work, pivots ? where.at : (int *)nullptr, info));
	check_info(info);

	std::vector<T> lu = gather(ga.get(), m, n);
	std::vector<int> swaps = where.get();

	for (int j = 0; j < n; j++)
		for (int i = 0; i < m; i++)
			if (i > j)
				l[i + j * m] = lu[i + j * m];
			else
				u[i + j * k] = lu[i + j * m];
	for (int i = 0; i < k; i++)
		l[i + i * m] = 1;
	for (int i = 0; i < k && pivots; i++) {
		REQUIRE(swaps[i] > i && swaps[i] <= m, "row %d goes to %d", i + 1, swaps[i]);
		for (int j = 0; j < n; j++)
			std::swap(a[i + j * m], a[swaps[i] - 1 + j * m]);
	}
	near(pivots ? "a matrix from its factors, with pivots" : "a matrix from its factors", times(l, u, m, k, n), a);
}

template <typename T> static void equations(int n, int count)
{
	std::vector<T> a = regular<T>(n), b = numbers<T>(n * count), transposed(n * n);
	int size = 0;
	memory<int> pivots(n), info(1);
	memory<T> ga(a), gb(b);

	for (int i = 0; i < n * n; i++)
		transposed[i % n * n + i / n] = a[i];
	OK(getrf_size(T(), handle, n, n, ga, n, &size));

	memory<T> work(size);

	OK(getrf(T(), handle, n, n, ga, n, work, pivots, info));
	check_info(info);
	for (cublasOperation_t op : {CUBLAS_OP_N, CUBLAS_OP_T, CUBLAS_OP_C}) {
		gb.set(b);
		OK(getrs(T(), handle, op, n, count, ga, n, pivots, gb, n, info));
		check_info(info);
		near("a solution",
		     times(op == CUBLAS_OP_N   ? a
			   : op == CUBLAS_OP_T ? transposed
					       : adjoint(a, n, n),
			   gb.get(), n, n, count),
		     b);
	}
}

template <typename T> static void all(void)
{
	for (bool pivots : {true, false}) {
		factors<T>(24, 24, pivots);
		factors<T>(40, 13, pivots);
		factors<T>(13, 40, pivots);
		factors<T>(1, 1, pivots);
	}
	factors<T>(130, 130, true);
	equations<T>(48, 5);
}

static void wrong_calls(void)
{
	memory<double> a(16);
	memory<int> info(1);
	int size;

	FAILS(cusolverDnDgetrf_bufferSize(NULL, 4, 4, a, 4, &size));
	FAILS(cusolverDnDgetrf(NULL, 4, 4, a, 4, a, NULL, info));
	FAILS(cusolverDnDgetrf(handle, -1, 4, a, 4, a, NULL, info));
	FAILS(cusolverDnDgetrf(handle, 4, 4, a, 3, a, NULL, info));
	FAILS(cusolverDnDgetrs(NULL, CUBLAS_OP_N, 4, 1, a, 4, NULL, a, 4, info));
	FAILS(cusolverDnDgetrs(handle, CUBLAS_OP_N, -1, 1, a, 4, NULL, a, 4, info));
	FAILS(cusolverDnDgetrs(handle, CUBLAS_OP_N, 4, 1, a, 4, NULL, a, 3, info));
	FAILS(cusolverDnDgetrs(handle, (cublasOperation_t)77, 4, 1, a, 4, NULL, a, 4, info));
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
	printf("LU of four shapes in four types, with pivots and without, and three kinds of equations\n");
	return 0;
}
