// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * QR with cuSOLVER in four types: Q has right angles, R is a triangle, and their product is the matrix;
 * a product with Q, which is never written out, is the product with the written one, from both sides. A
 * cubic is found again from its points, and a line through scattered points is the best one.
 */
#include "solver.h"

FOR_TYPES(geqrf_size, geqrf_bufferSize, geqrf_bufferSize)
FOR_TYPES(geqrf, geqrf, geqrf)
FOR_TYPES(make_q_size, orgqr_bufferSize, ungqr_bufferSize)
FOR_TYPES(make_q, orgqr, ungqr)
FOR_TYPES(use_q_size, ormqr_bufferSize, unmqr_bufferSize)
FOR_TYPES(use_q, ormqr, unmqr)

template <typename T> static cublasOperation_t turned(void)
{
	return number<T>::type == CUDA_C_32F || number<T>::type == CUDA_C_64F ? CUBLAS_OP_C : CUBLAS_OP_T;
}

/* c becomes op(Q) * c, or c * op(Q). The first n columns of `factored` tell Q, which is m times m. */
template <typename T>
static std::vector<T> product(cublasSideMode_t side, cublasOperation_t op, const memory<T> &factored, int m, int n,
			      const memory<T> &tau, const std::vector<T> &c, int rows, int columns)
{
	memory<int> info(1);
	memory<T> gc(c);
	int size = 0;

	OK(use_q_size(T(), handle, side, op, rows, columns, n, factored, m, tau, gc, rows, &size));

	memory<T> work(size);

	OK(use_q(T(), handle, side, op, rows, columns, n, factored, m, tau, gc, rows, work, size, info));
	check_info(info);
	return gc.get();
}

template <typename T> static void factors(int m, int n)
{
	std::vector<T> a = numbers<T>(m * n), r(n * n), c = numbers<T>(m * m);
	memory<T> ga(a), tau(n);
	memory<int> info(1);
	int size = 0, room = 0;

	OK(geqrf_size(T(), handle, m, n, ga, m, &size));
	OK(make_q_size(T(), handle, m, n, n, ga, m, tau, &room));

	memory<T> work(std::max(size, room));

	OK(geqrf(T(), handle, m, n, ga, m, tau, work, size, info));
	check_info(info);

	std::vector<T> qr = ga.get();

	for (int j = 0; j < n; j++)
		for (int i = 0; i <= j; i++)
			r[i + j * n] = qr[i + j * m];

	std::vector<T> full = product(CUBLAS_SIDE_LEFT, CUBLAS_OP_N, ga, m, n, tau, identity<T>(m), m, m);

	check_columns("all columns of Q", full, m, m);
	near("Q times a matrix", product(CUBLAS_SIDE_LEFT, CUBLAS_OP_N, ga, m, n, tau, c, m, m),
	     times(full, c, m, m, m));
	near("Q's adjoint times a matrix", product(CUBLAS_SIDE_LEFT, turned<T>(), ga, m, n, tau, c, m, m),
	     times(adjoint(full, m, m), c, m, m, m));
	near("a matrix times Q", product(CUBLAS_SIDE_RIGHT, CUBLAS_OP_N, ga, m, n, tau, c, m, m),
	     times(c, full, m, m, m));

	OK(make_q(T(), handle, m, n, n, ga, m, tau, work, room, info));
	check_info(info);

	std::vector<T> q = ga.get();

	full.resize(m * n);
	near("the first columns of Q", q, full);
	near("a matrix from Q and R", times(q, r, m, n, n), a);
}

/* The x for which A x is nearest to b. */
static std::vector<double> nearest(const std::vector<double> &a, const std::vector<double> &b, int m, int n)
{
	memory<double> ga(a), tau(n);
	memory<int> info(1);
	int size = 0;

	OK(cusolverDnDgeqrf_bufferSize(handle, m, n, ga, m, &size));

	memory<double> work(size);

	OK(cusolverDnDgeqrf(handle, m, n, ga, m, tau, work, size, info));
	check_info(info);

	std::vector<double> x = product(CUBLAS_SIDE_LEFT, CUBLAS_OP_T, ga, m, n, tau, b, m, 1), r = ga.get();

	x.resize(n);
	for (int i = n - 1; i >= 0; i--) {
		for (int j = i + 1; j < n; j++)
			x[i] -= r[i + j * m] * x[j];
		x[i] /= r[i + i * m];
	}
	return x;
}

static void curves(void)
{
	const int m = 50;
	const std::vector<double> cubic = {3, -2, 0.5, 1};
	std::vector<double> powers(m * 4), points(m), line;

	for (int i = 0; i < m; i++)
		for (int j = 0; j < 4; j++) {
			powers[i + j * m] = j ? powers[i + (j - 1) * m] * (i - 25) / 16.0 : 1;
			points[i] += cubic[j] * powers[i + j * m];
		}
	near("a cubic through its points", nearest(powers, points, m, 4), cubic);
	points = numbers<double>(m);
	powers.resize(m * 2);
	line = nearest(powers, points, m, 2);

	/* What remains is at right angles to the columns. */
	std::vector<double> rest = times(powers, line, m, 2, 1);

	for (int i = 0; i < m; i++)
		rest[i] -= points[i];
	near("a line through scattered points", times(adjoint(powers, m, 2), rest, 2, m, 1), {0, 0});
}

int main(void)
{
	memory<double> a(16);
	memory<int> info(1);
	int size;

	begin();
	FAILS(cusolverDnDgeqrf_bufferSize(NULL, 4, 4, a, 4, &size));
	FAILS(cusolverDnDgeqrf(NULL, 4, 4, a, 4, a, a, 16, info));
	FAILS(cusolverDnDorgqr(NULL, 4, 4, 4, a, 4, a, a, 16, info));
	FAILS(cusolverDnDormqr(NULL, CUBLAS_SIDE_LEFT, CUBLAS_OP_N, 4, 4, 4, a, 4, a, a, 4, a, 16, info));
	factors<float>(20, 20);
	factors<double>(45, 20);
	factors<double>(110, 70);
	factors<C>(33, 7);
	factors<Z>(24, 24);
	curves();
	OK(cusolverDnDestroy(handle));
	printf("QR in four types, products with Q, and the best curves through points\n");
	return 0;
}
