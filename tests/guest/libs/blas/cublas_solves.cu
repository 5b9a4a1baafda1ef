// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Triangular systems: all sides, halves, operations and diagonals in four types, with many right sides
 * and with one; and what programs make of them: the solution of a factorized system and the inverse of
 * a triangular matrix. Each solution is put back into its equation. Wrong calls come first.
 */
#include "blas.h"

static cublasHandle_t handle;

static const cublasSideMode_t sides[] = {CUBLAS_SIDE_LEFT, CUBLAS_SIDE_RIGHT};
static const cublasFillMode_t fills[] = {CUBLAS_FILL_MODE_LOWER, CUBLAS_FILL_MODE_UPPER};
static const cublasOperation_t ops[] = {CUBLAS_OP_N, CUBLAS_OP_T, CUBLAS_OP_C};
static const cublasDiagType_t diags[] = {CUBLAS_DIAG_NON_UNIT, CUBLAS_DIAG_UNIT};

/* Small beside the diagonal, so that it is well behaved with a diagonal of ones, too. */
template <typename T> static void tame(array<T> &a, int n, int ld)
{
	typedef typename number<T>::type V;

	for (V &v : a.host)
		v *= value_of<V>(1.0 / 32, 0);
	for (int i = 0; i < n; i++)
		a.host[i + i * ld] += value_of<V>(2, 0);
	a.up();
}

template <typename T>
static void many_right_sides(cublasSideMode_t side, cublasFillMode_t fill, cublasOperation_t op, cublasDiagType_t diag)
{
	typedef typename number<T>::type V;
	const bool left = side == CUBLAS_SIDE_LEFT;
	const int m = 14, n = 11, ld = 17, order = left ? m : n;
	const V alpha = value_of<V>(0.75, -0.5);
	array<T> a(ld * order), b(ld * n), scalar(1);
	matrix<V> want = columns(b.host, m, n, ld);

	tame(a, order, ld);
	scalar.host[0] = alpha;
	scalar.up();
	/* Every second time with the scalar in the GPU's memory, and with 64-bit sizes. */
	if (op == CUBLAS_OP_T) {
		BLAS(cublasSetPointerMode(handle, CUBLAS_POINTER_MODE_DEVICE));
		BLAS(calls<T>::trsm_64(handle, side, fill, op, diag, m, n, scalar.gpu, a.gpu, ld, b.gpu, ld));
		BLAS(cublasSetPointerMode(handle, CUBLAS_POINTER_MODE_HOST));
	} else {
		BLAS(calls<T>::trsm(handle, side, fill, op, diag, m, n, (const T *)&alpha, a.gpu, ld, b.gpu, ld));
	}
	matrix<V> t = triangle(a.host, order, ld, fill == CUBLAS_FILL_MODE_UPPER, diag == CUBLAS_DIAG_UNIT);
	matrix<V> x = columns(b.down(), m, n, ld);
	for (V &v : want.v)
		v *= alpha;
	same("many right sides", left ? times(t, op, x, CUBLAS_OP_N) : times(x, CUBLAS_OP_N, t, op), want,
	     10 * tolerance<T>());
}

template <typename T> static void one_right_side(cublasFillMode_t fill, cublasOperation_t op, cublasDiagType_t diag)
{
	typedef typename number<T>::type V;
	const int n = 21, ld = 22, step = 3;
	array<T> a(ld * n), b(n * step);
	matrix<V> x(n, 1), want(n, 1);

	tame(a, n, ld);
	BLAS(calls<T>::trsv(handle, fill, op, diag, n, a.gpu, ld, b.gpu, step));
	std::vector<V> got = b.down();
	for (int i = 0; i < n; i++) {
		x(i, 0) = got[i * step];
		want(i, 0) = b.host[i * step];
	}
	matrix<V> t = triangle(a.host, n, ld, fill == CUBLAS_FILL_MODE_UPPER, diag == CUBLAS_DIAG_UNIT);
	same("one right side", times(t, op, x, CUBLAS_OP_N), want, 10 * tolerance<T>());
	for (int i = 0; i < n * step; i++)
		REQUIRE(i % step == 0 || got[i] == b.host[i], "element %d has changed", i);
}

/* One array holds both factors; its inverse comes from unit vectors as right sides. */
template <typename T> static void factors(void)
{
	typedef typename number<T>::type V;
	const int n = 40, ld = 45, rights = 300;
	const V one = 1;
	array<T> lu(ld * n), b(ld * rights), inverse(n * n), back(n * n);

	tame(lu, n, ld);
	matrix<V> l = triangle(lu.host, n, ld, false, true), u = triangle(lu.host, n, ld, true, false);
	matrix<V> right = columns(b.host, n, rights, ld);
	BLAS(calls<T>::trsm(handle, CUBLAS_SIDE_LEFT, CUBLAS_FILL_MODE_LOWER, CUBLAS_OP_N, CUBLAS_DIAG_UNIT, n, rights,
			    (const T *)&one, lu.gpu, ld, b.gpu, ld));
	BLAS(calls<T>::trsm(handle, CUBLAS_SIDE_LEFT, CUBLAS_FILL_MODE_UPPER, CUBLAS_OP_N, CUBLAS_DIAG_NON_UNIT, n,
			    rights, (const T *)&one, lu.gpu, ld, b.gpu, ld));
	matrix<V> x = columns(b.down(), n, rights, ld);
	same("a factorized system", times(l, CUBLAS_OP_N, times(u, CUBLAS_OP_N, x, CUBLAS_OP_N), CUBLAS_OP_N), right,
	     10 * tolerance<T>());

	inverse.host = identity<V>(n).v;
	inverse.up();
	BLAS(calls<T>::trsm(handle, CUBLAS_SIDE_RIGHT, CUBLAS_FILL_MODE_UPPER, CUBLAS_OP_N, CUBLAS_DIAG_NON_UNIT, n, n,
			    (const T *)&one, lu.gpu, ld, inverse.gpu, n));
	BLAS(calls<T>::trmm(handle, CUBLAS_SIDE_LEFT, CUBLAS_FILL_MODE_UPPER, CUBLAS_OP_N, CUBLAS_DIAG_NON_UNIT, n, n,
			    (const T *)&one, lu.gpu, ld, inverse.gpu, n, back.gpu, n));
	back.host = identity<V>(n).v;
	back.check("a matrix and its inverse");
}

template <typename T> static void systems(void)
{
	for (cublasFillMode_t fill : fills)
		for (cublasOperation_t op : ops)
			for (cublasDiagType_t diag : diags) {
				for (cublasSideMode_t side : sides)
					many_right_sides<T>(side, fill, op, diag);
				one_right_side<T>(fill, op, diag);
			}
	factors<T>();
}

static void wrong_calls(void)
{
	const double one = 1;
	array<double> a(64), b(64);

	BLAS_IS(cublasDtrsm(NULL, sides[0], fills[0], ops[0], diags[0], 8, 8, &one, a.gpu, 8, b.gpu, 8),
		CUBLAS_STATUS_NOT_INITIALIZED);
	BLAS_IS(cublasDtrsm(handle, sides[0], fills[0], ops[0], diags[0], 8, -1, &one, a.gpu, 8, b.gpu, 8),
		CUBLAS_STATUS_INVALID_VALUE);
	BLAS_IS(cublasDtrsm(handle, sides[1], fills[0], ops[0], diags[0], 4, 8, &one, a.gpu, 7, b.gpu, 8),
		CUBLAS_STATUS_INVALID_VALUE);
	BLAS_IS(cublasDtrsm(handle, sides[0], fills[0], ops[0], diags[0], 8, 4, &one, a.gpu, 8, b.gpu, 7),
		CUBLAS_STATUS_INVALID_VALUE);
	BLAS_IS(cublasDtrsv(handle, fills[0], ops[0], diags[0], 8, a.gpu, 8, b.gpu, 0), CUBLAS_STATUS_INVALID_VALUE);
	BLAS_IS(cublasDtrsv(handle, fills[0], (cublasOperation_t)9, diags[0], 8, a.gpu, 8, b.gpu, 1),
		CUBLAS_STATUS_INVALID_VALUE);
	b.check("after wrong calls");
}

int main(void)
{
	BLAS(cublasCreate(&handle));
	wrong_calls();
	FOUR_TYPES(systems);
	BLAS(cublasDestroy(handle));
	return verified("triangular systems of four types, all of their kinds, put back into their equations");
}
