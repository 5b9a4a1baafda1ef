// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Updates of symmetric and Hermitian matrices: by one vector and by two, of whole and of packed
 * matrices, and by one matrix and by two, plain and transposed; and such a matrix on the right of
 * another. In four types, in both halves; the half that is not named stays as it is. Wrong calls first.
 */
#include "blas.h"

#define N  13
#define K  9
#define LD 16

static cublasHandle_t handle;

/* Where an element is, if it is stored: in columns with gaps, or packed without any. */
static int dense(int i, int j, bool)
{
	return i + j * LD;
}

static int packed(int i, int j, bool upper)
{
	return upper ? i + j * (j + 1) / 2 : i + j * (2 * N - j - 1) / 2;
}

/* Adds what `part` says to each stored element. The diagonal of a Hermitian matrix is real before and after. */
template <typename T, typename F> static void add(array<T> &c, bool upper, int (*where)(int, int, bool), F part)
{
	typedef typename number<T>::type V;

	for (int j = 0; j < N; j++)
		for (int i = upper ? 0 : j; i < (upper ? j + 1 : N); i++) {
			V &v = c.host[where(i, j, upper)];

			v += (V)part(i, j);
			if (calls<T>::hermitian && i == j)
				v = value_of<V>(std::real(v), 0);
		}
}

template <typename T> static void real_diagonal(array<T> &c, bool upper, int (*where)(int, int, bool))
{
	add(c, upper, where, [](int, int) { return 0; });
	c.up();
}

template <typename T> static void by_vectors(bool upper)
{
	typedef typename number<T>::type V;
	const cublasFillMode_t fill = upper ? CUBLAS_FILL_MODE_UPPER : CUBLAS_FILL_MODE_LOWER;
	const typename calls<T>::real real = -0.75;
	const V both = value_of<V>(0.5, 1.25);
	array<T> c(LD * N), p(N * (N + 1) / 2), x(2 * N), y(N);
	const V *vx = x.host.data(), *vy = y.host.data();
	auto one = [=](int i, int j) { return (V)real * vx[2 * i] * conjugate(vx[2 * j]); };
	auto two = [=](int i, int j) {
		return both * vx[2 * i] * conjugate(vy[j]) + conjugate(both) * vy[i] * conjugate(vx[2 * j]);
	};

	real_diagonal(c, upper, dense);
	real_diagonal(p, upper, packed);
	BLAS(calls<T>::r(handle, fill, N, &real, x.gpu, 2, c.gpu, LD));
	add(c, upper, dense, one);
	c.check("a vector");
	BLAS(calls<T>::r2_64(handle, fill, N, (const T *)&both, x.gpu, 2, y.gpu, 1, c.gpu, LD));
	add(c, upper, dense, two);
	c.check("two vectors");
	BLAS(calls<T>::packed_r(handle, fill, N, &real, x.gpu, 2, p.gpu));
	add(p, upper, packed, one);
	p.check("a vector, packed");
	BLAS(calls<T>::packed_r2(handle, fill, N, (const T *)&both, x.gpu, 2, y.gpu, 1, p.gpu));
	add(p, upper, packed, two);
	p.check("two vectors, packed");
}

template <typename T> static void by_matrices(bool upper, cublasOperation_t op)
{
	typedef typename number<T>::type V;
	const cublasFillMode_t fill = upper ? CUBLAS_FILL_MODE_UPPER : CUBLAS_FILL_MODE_LOWER;
	const cublasOperation_t other = op == CUBLAS_OP_N ? calls<T>::trans : CUBLAS_OP_N;
	const int rows = op == CUBLAS_OP_N ? N : K, cols = N + K - rows;
	const typename calls<T>::real real = 1.5, keep = -0.5;
	const V both = value_of<V>(0.25, -1);
	array<T> a(LD * cols), b(LD * cols), c(LD * N);
	matrix<V> ma = columns(a.host, rows, cols, LD), mb = columns(b.host, rows, cols, LD);
	matrix<V> aa = times(ma, op, ma, other), ab = times(ma, op, mb, other), ba = times(mb, op, ma, other);
	auto old = [&](int i, int j) { return (V)keep * c.host[i + j * LD] - c.host[i + j * LD]; };

	real_diagonal(c, upper, dense);
	BLAS(calls<T>::rk(handle, fill, op, N, K, &real, a.gpu, LD, &keep, c.gpu, LD));
	add(c, upper, dense, [&](int i, int j) { return (V)real * aa(i, j) + old(i, j); });
	c.check("a matrix");
	BLAS(calls<T>::r2k(handle, fill, op, N, K, (const T *)&both, a.gpu, LD, b.gpu, LD, &keep, c.gpu, LD));
	add(c, upper, dense, [&](int i, int j) { return both * ab(i, j) + conjugate(both) * ba(i, j) + old(i, j); });
	c.check("two matrices");
	/* The old matrix does not count. */
	const typename calls<T>::real none = 0;
	BLAS(calls<T>::rk(handle, fill, op, N, K, &real, a.gpu, LD, &none, c.gpu, LD));
	add(c, upper, dense, [&](int i, int j) { return (V)real * aa(i, j) - c.host[i + j * LD]; });
	c.check("a new matrix");
}

/* c = alpha * b * s + beta * c, with scalars in the GPU's memory. */
template <typename T> static void on_the_right(bool upper)
{
	typedef typename number<T>::type V;
	const cublasFillMode_t fill = upper ? CUBLAS_FILL_MODE_UPPER : CUBLAS_FILL_MODE_LOWER;
	array<T> s(LD * N), b(LD * N), c(LD * N), scalars(2);

	real_diagonal(s, upper, dense);
	matrix<V> all = whole(s.host, N, LD, upper, calls<T>::hermitian);
	BLAS(cublasSetPointerMode(handle, CUBLAS_POINTER_MODE_DEVICE));
	BLAS(calls<T>::mm_64(handle, CUBLAS_SIDE_RIGHT, fill, K, N, scalars.gpu, s.gpu, LD, b.gpu, LD, scalars.gpu + 1,
			     c.gpu, LD));
	BLAS(cublasSetPointerMode(handle, CUBLAS_POINTER_MODE_HOST));
	reference<T>(CUBLAS_OP_N, CUBLAS_OP_N, K, N, N, scalars.host[0], b.host.data(), LD, all.v.data(), N,
		     scalars.host[1], c.host.data(), LD);
	c.check("on the right");
}

template <typename T> static void updates(void)
{
	for (int upper = 0; upper < 2; upper++) {
		by_vectors<T>(upper);
		by_matrices<T>(upper, CUBLAS_OP_N);
		by_matrices<T>(upper, calls<T>::trans);
		on_the_right<T>(upper);
	}
}

static void wrong_calls(void)
{
	const cublasFillMode_t fill = CUBLAS_FILL_MODE_LOWER;
	const float one = 1;
	array<float> a(64), c(64), x(8);

	BLAS_IS(cublasSsyrk(NULL, fill, CUBLAS_OP_N, 8, 8, &one, a.gpu, 8, &one, c.gpu, 8),
		CUBLAS_STATUS_NOT_INITIALIZED);
	BLAS_IS(cublasSsyrk(handle, fill, CUBLAS_OP_N, 8, -8, &one, a.gpu, 8, &one, c.gpu, 8),
		CUBLAS_STATUS_INVALID_VALUE);
	BLAS_IS(cublasSsyr2k(handle, fill, CUBLAS_OP_T, 8, 4, &one, a.gpu, 4, a.gpu, 3, &one, c.gpu, 8),
		CUBLAS_STATUS_INVALID_VALUE);
	BLAS_IS(cublasSspr(handle, fill, 8, &one, x.gpu, 0, c.gpu), CUBLAS_STATUS_INVALID_VALUE);
	c.check("after wrong calls");
}

int main(void)
{
	BLAS(cublasCreate(&handle));
	wrong_calls();
	FOUR_TYPES(updates);
	BLAS(cublasDestroy(handle));
	return verified("updates of symmetric and Hermitian matrices, of four types, whole and packed");
}
