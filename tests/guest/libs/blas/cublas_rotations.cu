// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Rotations of two vectors, in all four types with real angles, forwards and backwards; and Jacobi's
 * method, which makes a symmetric matrix diagonal by rotations of its rows and columns. There a kernel
 * finds each angle, which stays in the GPU's memory. Wrong calls and calls without work come first.
 */
#include "blas.h"

#define N      11
#define LD     13
#define SWEEPS 8

static cublasHandle_t handle;

template <typename T> static void rotated(array<T> &x, int incx, array<T> &y, int incy, int n, double c, double s)
{
	typedef typename number<T>::type V;

	for (int i = 0; i < n; i++) {
		V &a = x.host[place(i, n, incx)], &b = y.host[place(i, n, incy)], was = a;

		a = (V)c * was + (V)s * b;
		b = (V)c * b - (V)s * was;
	}
}

template <typename T> static void vectors(int incx, int incy)
{
	typedef typename calls<T>::real R;
	const int n = 150;
	const R c = 0.6, s = -0.8, none = 0, one = 1;
	array<T> x(n * 3), y(n * 3);
	array<R> angle(2);

	angle.host = {(R)0.28, (R)0.96};
	angle.up();
	BLAS(calls<T>::rot(handle, n, x.gpu, incx, y.gpu, incy, &c, &s));
	rotated(x, incx, y, incy, n, c, s);
	x.check("an angle in host memory");
	y.check("an angle in host memory, the other vector");
	BLAS(cublasSetPointerMode(handle, CUBLAS_POINTER_MODE_DEVICE));
	BLAS(calls<T>::rot_64(handle, n, x.gpu, incx, y.gpu, incy, angle.gpu, angle.gpu + 1));
	BLAS(cublasSetPointerMode(handle, CUBLAS_POINTER_MODE_HOST));
	rotated(x, incx, y, incy, n, angle.host[0], angle.host[1]);
	x.check("an angle in the GPU's memory");
	y.check("an angle in the GPU's memory, the other vector");
	/* No turn; and a quarter of a turn, which is an exchange but for a sign. */
	BLAS(calls<T>::rot(handle, n, x.gpu, incx, y.gpu, incy, &one, &none));
	BLAS(calls<T>::rot(handle, n, x.gpu, incx, y.gpu, incy, &none, &one));
	BLAS(calls<T>::swap(handle, n, x.gpu, incx, y.gpu, incy));
	for (int i = 0; i < n; i++)
		x.host[place(i, n, incx)] = -x.host[place(i, n, incx)];
	x.check("a quarter");
	y.check("a quarter, the other vector");
}

/* The rotation in rows and columns p and q that makes their element zero. */
template <typename R> __global__ void find(const R *a, int p, int q, R *angle)
{
	R apq = a[p + q * LD], theta, t;

	angle[0] = 1;
	angle[1] = 0;
	if (apq == 0)
		return;
	theta = (a[q + q * LD] - a[p + p * LD]) / (2 * apq);
	t = (theta < 0 ? -1 : 1) / (fabs(theta) + sqrt(theta * theta + 1));
	angle[0] = 1 / sqrt(t * t + 1);
	angle[1] = -t * angle[0];
}

template <typename R> static void jacobi(void)
{
	array<R> a(LD * N), v(LD * N), angle(2);
	double trace = 0, sum = 0;

	for (int j = 0; j < N; j++)
		for (int i = 0; i < N; i++) {
			v.host[i + j * LD] = i == j;
			if (i > j)
				a.host[i + j * LD] = a.host[j + i * LD];
		}
	a.up();
	v.up();
	matrix<R> was = whole(a.host, N, LD, true, false);
	BLAS(cublasSetPointerMode(handle, CUBLAS_POINTER_MODE_DEVICE));
	for (int sweep = 0; sweep < SWEEPS; sweep++)
		for (int p = 0; p < N; p++)
			for (int q = p + 1; q < N; q++) {
				R *c = angle.gpu, *s = angle.gpu + 1;

				find<<<1, 1>>>(a.gpu, p, q, angle.gpu);
				CHECK_LAUNCH();
				BLAS(calls<R>::rot(handle, N, a.gpu + p, LD, a.gpu + q, LD, c, s));
				BLAS(calls<R>::rot(handle, N, a.gpu + p * LD, 1, a.gpu + q * LD, 1, c, s));
				BLAS(calls<R>::rot(handle, N, v.gpu + p * LD, 1, v.gpu + q * LD, 1, c, s));
			}
	BLAS(cublasSetPointerMode(handle, CUBLAS_POINTER_MODE_HOST));
	matrix<R> diagonal = columns(a.down(), N, N, LD), vectors = columns(v.down(), N, N, LD);
	for (int j = 0; j < N; j++)
		for (int i = 0; i < N; i++)
			if (i != j)
				near(diagonal(i, j), 0, tolerance<R>(), "beside the diagonal");
	for (int i = 0; i < N; i++) {
		trace += was(i, i);
		sum += diagonal(i, i);
	}
	near(sum, trace, 10 * tolerance<R>(), "the sum of the eigenvalues");
	same("the eigenvectors", times(vectors, CUBLAS_OP_T, vectors, CUBLAS_OP_N), identity<R>(N),
	     10 * tolerance<R>());
	matrix<R> scaled = times(vectors, CUBLAS_OP_N, diagonal, CUBLAS_OP_N);
	same("the matrix of both", times(scaled, CUBLAS_OP_N, vectors, CUBLAS_OP_T), was, 10 * tolerance<R>());
}

static void wrong_calls(void)
{
	const double c = 0.6, s = 0.8;
	array<double> x(8), y(8);

	BLAS_IS(cublasDrot(NULL, 8, x.gpu, 1, y.gpu, 1, &c, &s), CUBLAS_STATUS_NOT_INITIALIZED);
	BLAS(cublasDrot(handle, 0, x.gpu, 1, y.gpu, 1, &c, &s));
	x.check("after a call without work");
	y.check("after a call without work");
}

int main(void)
{
	const int steps[][2] = {{1, 1}, {3, 2}, {-1, -1}, {2, -3}};

	BLAS(cublasCreate(&handle));
	wrong_calls();
	for (const int *step : steps) {
		FOUR_TYPES(vectors, step[0], step[1]);
	}
	jacobi<float>();
	jacobi<double>();
	BLAS(cublasDestroy(handle));
	return verified("rotations of vectors of four types, and two matrices made diagonal by them");
}
