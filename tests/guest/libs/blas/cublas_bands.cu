// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Matrices that are not stored whole, in four types: general, symmetric, Hermitian and triangular bands,
 * and packed triangles; times vectors, and as equations; with steps between the elements, also backwards.
 * What lies in an array beside the band must not count. Wrong calls come first.
 */
#include "blas.h"

static cublasHandle_t handle;

/* y = alpha * m * x + beta * y on the CPU. */
template <typename T, typename V = typename number<T>::type>
static void expect(const char *what, const matrix<V> &m, cublasOperation_t op, V alpha, const array<T> &x, int incx,
		   V beta, array<T> &y, int incy)
{
	const int n = op == CUBLAS_OP_N ? m.cols : m.rows, out = m.rows + m.cols - n;
	matrix<V> product = times(m, op, vector(x.host, n, incx), CUBLAS_OP_N);

	for (int i = 0; i < out; i++) {
		V &v = y.host[place(i, out, incy)];

		v = alpha * product(i, 0) + beta * v;
	}
	y.check(what);
}

template <typename T> static void general(cublasOperation_t op)
{
	typedef typename number<T>::type V;
	const int rows = 27, cols = 22, below = 2, above = 4, ld = 9;
	const V alpha = value_of<V>(1.5, -0.25), beta = value_of<V>(-0.5, 1);
	array<T> a(ld * cols), x(2 * rows), y(3 * rows);

	BLAS(calls<T>::gbmv(handle, op, rows, cols, below, above, (const T *)&alpha, a.gpu, ld, x.gpu, -2,
			    (const T *)&beta, y.gpu, 3));
	expect("a general band", from_band(a.host, rows, cols, ld, below, above), op, alpha, x, -2, beta, y, 3);
}

template <typename T> static void symmetric(bool upper)
{
	typedef typename number<T>::type V;
	const cublasFillMode_t fill = upper ? CUBLAS_FILL_MODE_UPPER : CUBLAS_FILL_MODE_LOWER;
	const int n = 25, width = 3, ld = 5;
	array<T> band(ld * n), packed(n * (n + 1) / 2), x(n), y(2 * n), scalars(2);

	/* The diagonal of a Hermitian matrix is real. */
	for (int j = 0; j < n; j++) {
		band.host[(upper ? width : 0) + j * ld] = 1.5;
		packed.host[upper ? j * (j + 3) / 2 : j * (2 * n - j + 1) / 2] = -1.25;
	}
	band.up();
	packed.up();
	matrix<V> half = from_band(band.host, n, n, ld, upper ? 0 : width, upper ? width : 0);
	const V alpha = scalars.host[0], beta = scalars.host[1];

	BLAS(cublasSetPointerMode(handle, CUBLAS_POINTER_MODE_DEVICE));
	BLAS(calls<T>::band_mv(handle, fill, n, width, scalars.gpu, band.gpu, ld, x.gpu, 1, scalars.gpu + 1, y.gpu,
			       -2));
	expect("a symmetric band", whole(half.v, n, n, upper, calls<T>::hermitian), CUBLAS_OP_N, alpha, x, 1, beta, y,
	       -2);
	half = from_packed(packed.host, n, upper);
	BLAS(calls<T>::packed_mv(handle, fill, n, scalars.gpu, packed.gpu, x.gpu, -1, scalars.gpu + 1, y.gpu, 2));
	expect("a packed matrix", whole(half.v, n, n, upper, calls<T>::hermitian), CUBLAS_OP_N, alpha, x, -1, beta, y,
	       2);
	BLAS(cublasSetPointerMode(handle, CUBLAS_POINTER_MODE_HOST));
}

template <typename T> static void triangles(bool upper, cublasOperation_t op, cublasDiagType_t diag)
{
	typedef typename number<T>::type V;
	const cublasFillMode_t fill = upper ? CUBLAS_FILL_MODE_UPPER : CUBLAS_FILL_MODE_LOWER;
	const bool unit = diag == CUBLAS_DIAG_UNIT;
	const int n = 24, width = 2, ld = 4, step = 2;
	array<T> band(ld * n), packed(n * (n + 1) / 2), x(step * n);

	/* Small beside the diagonal, so that the system is well behaved. */
	for (V &v : band.host)
		v *= value_of<V>(1.0 / 8, 0);
	for (int j = 0; j < n; j++)
		band.host[(upper ? width : 0) + j * ld] = value_of<V>(2, 1);
	band.up();
	matrix<V> half = from_band(band.host, n, n, ld, upper ? 0 : width, upper ? width : 0);
	matrix<V> t = triangle(half.v, n, n, upper, unit), right = vector(x.host, n, step);
	BLAS(calls<T>::tbsv(handle, fill, op, diag, n, width, band.gpu, ld, x.gpu, step));
	std::vector<V> got = x.down();
	same("a band as an equation", times(t, op, vector(got, n, step), CUBLAS_OP_N), right, tolerance<T>());

	x.up();
	half = from_packed(packed.host, n, upper);
	BLAS(calls<T>::tpmv(handle, fill, op, diag, n, packed.gpu, x.gpu, -step));
	t = times(triangle(half.v, n, n, upper, unit), op, vector(x.host, n, -step), CUBLAS_OP_N);
	for (int i = 0; i < n; i++)
		x.host[place(i, n, -step)] = t(i, 0);
	x.check("a packed triangle");
}

template <typename T> static void all(void)
{
	for (cublasOperation_t op : {CUBLAS_OP_N, CUBLAS_OP_T, CUBLAS_OP_C}) {
		general<T>(op);
		for (bool upper : {false, true}) {
			triangles<T>(upper, op, CUBLAS_DIAG_NON_UNIT);
			triangles<T>(upper, op, CUBLAS_DIAG_UNIT);
		}
	}
	symmetric<T>(false);
	symmetric<T>(true);
}

static void wrong_calls(void)
{
	const cublasFillMode_t fill = CUBLAS_FILL_MODE_UPPER;
	const double one = 1;
	array<double> a(64), x(8), y(8);

	BLAS_IS(cublasDgbmv(NULL, CUBLAS_OP_N, 8, 8, 1, 1, &one, a.gpu, 3, x.gpu, 1, &one, y.gpu, 1),
		CUBLAS_STATUS_NOT_INITIALIZED);
	BLAS_IS(cublasDgbmv(handle, CUBLAS_OP_N, 8, 8, -1, 1, &one, a.gpu, 8, x.gpu, 1, &one, y.gpu, 1),
		CUBLAS_STATUS_INVALID_VALUE);
	BLAS_IS(cublasDgbmv(handle, CUBLAS_OP_N, 8, 8, 1, 1, &one, a.gpu, 2, x.gpu, 1, &one, y.gpu, 1),
		CUBLAS_STATUS_INVALID_VALUE);
	BLAS_IS(cublasDsbmv(handle, fill, 8, 3, &one, a.gpu, 3, x.gpu, 1, &one, y.gpu, 1), CUBLAS_STATUS_INVALID_VALUE);
	BLAS_IS(cublasDtbsv(handle, fill, CUBLAS_OP_N, CUBLAS_DIAG_UNIT, 8, -1, a.gpu, 3, x.gpu, 1),
		CUBLAS_STATUS_INVALID_VALUE);
	x.check("after wrong calls");
	y.check("after wrong calls");
}

int main(void)
{
	BLAS(cublasCreate(&handle));
	wrong_calls();
	FOUR_TYPES(all);
	BLAS(cublasDestroy(handle));
	return verified("bands and packed matrices of four types");
}
