// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Three ways to an orthogonal basis of a matrix's columns, in four types: Gram-Schmidt vector by vector
 * (level 1), Gram-Schmidt with all vectors before (level 2, twice), and Householder's reflections, which
 * are rank-one updates. The columns must be orthogonal, and the matrix must lie in what they span.
 * Wrong calls come first.
 */
#include "blas.h"

#define M  48
#define N  18
#define LD 52

static cublasHandle_t handle;

/* q's columns are orthogonal, and q * (q^H * a) is a. */
template <typename T, typename V>
static void check_basis(const char *what, const std::vector<V> &got, const matrix<V> &a)
{
	matrix<V> q = columns(got, M, N, LD);

	same(what, times(q, CUBLAS_OP_C, q, CUBLAS_OP_N), identity<V>(N), tolerance<T>());
	same(what, times(q, CUBLAS_OP_N, times(q, CUBLAS_OP_C, a, CUBLAS_OP_N), CUBLAS_OP_N), a, 10 * tolerance<T>());
}

/* A column gets the length 1. */
template <typename T> static void normalize(T *column)
{
	typename calls<T>::real length;

	BLAS(calls<T>::nrm2(handle, M, column, 1, &length));
	REQUIRE(length > 0.01, "a column has the length %g", (double)length);
	length = 1 / length;
	BLAS(calls<T>::real_scal(handle, M, &length, column, 1));
}

template <typename T> static void vector_by_vector(void)
{
	typedef typename number<T>::type V;
	array<T> a(LD * N);
	matrix<V> was = columns(a.host, M, N, LD);
	V part;

	for (int j = 0; j < N; j++) {
		T *q = a.gpu + j * LD;

		normalize(q);
		for (int k = j + 1; k < N; k++) {
			BLAS(calls<T>::dot(handle, M, q, 1, a.gpu + k * LD, 1, (T *)&part));
			part = -part;
			BLAS(calls<T>::axpy(handle, M, (const T *)&part, q, 1, a.gpu + k * LD, 1));
		}
	}
	check_basis<T>("vector by vector", a.down(), was);
}

template <typename T> static void all_before(void)
{
	typedef typename number<T>::type V;
	const V one = 1, zero = 0, minus = -1;
	array<T> a(LD * N), h(N);
	matrix<V> was = columns(a.host, M, N, LD);

	for (int j = 0; j < N; j++) {
		T *q = a.gpu + j * LD;

		for (int twice = 0; twice < 2; twice++) {
			BLAS(calls<T>::gemv(handle, CUBLAS_OP_C, M, j, (const T *)&one, a.gpu, LD, q, 1,
					    (const T *)&zero, h.gpu, 1));
			BLAS(calls<T>::gemv(handle, CUBLAS_OP_N, M, j, (const T *)&minus, a.gpu, LD, h.gpu, 1,
					    (const T *)&one, q, 1));
		}
		normalize(q);
	}
	check_basis<T>("all before", a.down(), was);
}

template <typename T> static void reflections(void)
{
	typedef typename number<T>::type V;
	const V one = 1, zero = 0;
	array<T> a(LD * N), x(M), w(M), q(LD * M);
	matrix<V> was = columns(a.host, M, N, LD);

	memset((void *)q.host.data(), 0, q.host.size() * sizeof(V));
	for (int i = 0; i < M; i++)
		q.host[i + i * LD] = 1;
	q.up();
	for (int j = 0; j < N; j++) {
		const int rest = M - j;
		T *corner = a.gpu + j + j * LD;
		std::vector<V> host(rest);
		double squares = 0;
		V factor;

		/* The column without the part that stays becomes the mirror's normal. */
		BLAS(cublasGetVector(rest, sizeof(T), corner, 1, host.data(), 1));
		for (V value : host)
			squares += std::norm(value);
		host[0] += host[0] / (V)std::abs(host[0]) * (V)sqrt(squares);
		BLAS(cublasSetVector(rest, sizeof(T), host.data(), 1, x.gpu, 1));
		squares = 0;
		for (V value : host)
			squares += std::norm(value);
		factor = (V)(-2 / squares);
		BLAS(calls<T>::gemv(handle, CUBLAS_OP_C, rest, N - j, (const T *)&one, corner, LD, x.gpu, 1,
				    (const T *)&zero, w.gpu, 1));
		BLAS(calls<T>::ger(handle, rest, N - j, (const T *)&factor, x.gpu, 1, w.gpu, 1, corner, LD));
		BLAS(calls<T>::gemv(handle, CUBLAS_OP_N, M, rest, (const T *)&one, q.gpu + j * LD, LD, x.gpu, 1,
				    (const T *)&zero, w.gpu, 1));
		BLAS(calls<T>::ger(handle, M, rest, (const T *)&factor, w.gpu, 1, x.gpu, 1, q.gpu + j * LD, LD));
	}
	check_basis<T>("reflections", q.down(), was);
	/* What is left of the matrix is a triangle; and the product of both is the matrix. */
	matrix<V> r = columns(a.down(), N, N, LD), all = columns(q.down(), M, N, LD);
	for (int j = 0; j < N; j++)
		for (int i = j + 1; i < N; i++) {
			near(std::abs(r(i, j)), 0, 10 * tolerance<T>(), "below the diagonal");
			r(i, j) = 0;
		}
	same("a matrix by its factors", times(all, CUBLAS_OP_N, r, CUBLAS_OP_N), was, 10 * tolerance<T>());
}

template <typename T> static void bases(void)
{
	vector_by_vector<T>();
	all_before<T>();
	reflections<T>();
}

static void wrong_calls(void)
{
	const float one = 1;
	array<float> a(64), x(8);

	BLAS_IS(cublasSger(NULL, 8, 8, &one, x.gpu, 1, x.gpu, 1, a.gpu, 8), CUBLAS_STATUS_NOT_INITIALIZED);
	BLAS_IS(cublasSger(handle, 8, -8, &one, x.gpu, 1, x.gpu, 1, a.gpu, 8), CUBLAS_STATUS_INVALID_VALUE);
	BLAS_IS(cublasSger(handle, 8, 8, &one, x.gpu, 1, x.gpu, 1, a.gpu, 7), CUBLAS_STATUS_INVALID_VALUE);
	BLAS_IS(cublasSger(handle, 8, 8, &one, x.gpu, 0, x.gpu, 1, a.gpu, 8), CUBLAS_STATUS_INVALID_VALUE);
	a.check("after wrong calls");
	x.check("after wrong calls");
}

int main(void)
{
	BLAS(cublasCreate(&handle));
	wrong_calls();
	FOUR_TYPES(bases);
	BLAS(cublasDestroy(handle));
	return verified("three ways to an orthogonal basis, in four types");
}
