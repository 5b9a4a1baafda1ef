// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The largest eigenvalues of symmetric and Hermitian matrices by power iteration, in four types. All
 * scalars stay in the GPU's memory: norms and products are written there, and kernels compute with
 * them. What has been found is taken out of the matrix by a rank-one update. Only one half of the
 * matrix is read; the other one holds wrong numbers. Wrong calls come first.
 */
#include "blas.h"

#define N     40
#define LD    44
#define FOUND 3
#define STEPS 32

static cublasHandle_t handle;

/* What the GPU computes with; `value` is complex for complex matrices. */
template <typename T, typename R> struct scalars {
	T one, zero, value;
	R norm, inverse, minus;
};

template <typename T, typename R> __global__ void invert(scalars<T, R> *s)
{
	s->inverse = 1 / s->norm;
}

/* The real part of the value, negative. */
template <typename T, typename R> __global__ void negate(scalars<T, R> *s)
{
	s->minus = -*(R *)&s->value;
}

/* h * diag * h with the reflection h, whose columns are the eigenvectors. */
template <typename V> static matrix<V> with_eigenvalues(const matrix<V> &h, const double *values)
{
	matrix<V> scaled = h;

	for (int j = 0; j < N; j++)
		for (int i = 0; i < N; i++)
			scaled(i, j) *= value_of<V>(values[j], 0);
	return times(scaled, CUBLAS_OP_N, h, CUBLAS_OP_C);
}

template <typename T> static matrix<typename number<T>::type> reflection(const array<T> &v)
{
	typedef typename number<T>::type V;
	matrix<V> h = identity<V>(N);
	double norm = 0;

	for (int i = 0; i < N; i++)
		norm += std::norm(v.host[i]);
	for (int j = 0; j < N; j++)
		for (int i = 0; i < N; i++)
			h(i, j) -= value_of<V>(2 / norm, 0) * v.host[i] * conjugate(v.host[j]);
	return h;
}

template <typename T> static void eigenvalues(bool upper)
{
	typedef typename number<T>::type V;
	typedef typename calls<T>::real R;
	const cublasFillMode_t fill = upper ? CUBLAS_FILL_MODE_UPPER : CUBLAS_FILL_MODE_LOWER;
	array<T> a(LD * N), x(N), y(N), v(N);
	matrix<V> h = reflection(v);
	double values[N];
	scalars<T, R> start = {}, got, *s;
	V one = 1;

	for (int i = 0; i < N; i++)
		values[i] = 64.0 / (1 << (2 * (i < FOUND ? i : FOUND)));
	matrix<V> m = with_eigenvalues(h, values);
	for (int j = 0; j < N; j++)
		for (int i = 0; i < N; i++)
			a.host[i + j * LD] = (upper ? i <= j : i >= j) ? m(i, j) : value_of<V>(1000, 1000);
	a.up();
	memcpy(&start.one, &one, sizeof(T));
	CHECK(cudaMalloc(&s, sizeof(*s)));
	CHECK(cudaMemcpy(s, &start, sizeof(*s), cudaMemcpyHostToDevice));
	BLAS(cublasSetPointerMode(handle, CUBLAS_POINTER_MODE_DEVICE));
	for (int found = 0; found < FOUND; found++) {
		x.up();
		for (int step = 0; step < STEPS; step++) {
			BLAS(calls<T>::mv(handle, fill, N, &s->one, a.gpu, LD, x.gpu, 1, &s->zero, y.gpu, 1));
			BLAS(calls<T>::nrm2(handle, N, y.gpu, 1, &s->norm));
			invert<<<1, 1>>>(s);
			CHECK_LAUNCH();
			BLAS(calls<T>::copy(handle, N, y.gpu, 1, x.gpu, 1));
			BLAS(calls<T>::real_scal(handle, N, &s->inverse, x.gpu, 1));
		}
		BLAS(calls<T>::mv(handle, fill, N, &s->one, a.gpu, LD, x.gpu, 1, &s->zero, y.gpu, 1));
		BLAS(calls<T>::dot(handle, N, x.gpu, 1, y.gpu, 1, &s->value));
		negate<<<1, 1>>>(s);
		CHECK_LAUNCH();
		BLAS(calls<T>::r(handle, fill, N, &s->minus, x.gpu, 1, a.gpu, LD));
		CHECK(cudaMemcpy(&got, s, sizeof(got), cudaMemcpyDeviceToHost));
		near(-got.minus, values[found], tolerance<T>(), "an eigenvalue");
		std::vector<V> vector = x.down();
		V product = 0;
		for (int i = 0; i < N; i++)
			product += conjugate(h(i, found)) * vector[i];
		near(std::abs(product), 1, tolerance<T>(), "the part of the eigenvector");
	}
	BLAS(cublasSetPointerMode(handle, CUBLAS_POINTER_MODE_HOST));
	/* The other half is as it was. */
	std::vector<V> after = a.down();
	for (int j = 0; j < N; j++)
		for (int i = 0; i < N; i++)
			REQUIRE((upper ? i <= j : i >= j) || after[i + j * LD] == value_of<V>(1000, 1000),
				"row %d of column %d has changed", i, j);
	CHECK(cudaFree(s));
}

static void wrong_calls(void)
{
	const cublasFillMode_t fill = CUBLAS_FILL_MODE_UPPER;
	const double one = 1;
	array<double> a(64), x(8), y(8);

	BLAS_IS(cublasDsymv(NULL, fill, 8, &one, a.gpu, 8, x.gpu, 1, &one, y.gpu, 1), CUBLAS_STATUS_NOT_INITIALIZED);
	BLAS_IS(cublasDsymv(handle, fill, -1, &one, a.gpu, 8, x.gpu, 1, &one, y.gpu, 1), CUBLAS_STATUS_INVALID_VALUE);
	BLAS_IS(cublasDsymv(handle, fill, 8, &one, a.gpu, 7, x.gpu, 1, &one, y.gpu, 1), CUBLAS_STATUS_INVALID_VALUE);
	BLAS_IS(cublasDsymv(handle, fill, 8, &one, a.gpu, 8, x.gpu, 0, &one, y.gpu, 1), CUBLAS_STATUS_INVALID_VALUE);
	BLAS_IS(cublasDsyr(handle, (cublasFillMode_t)9, 8, &one, x.gpu, 1, a.gpu, 8), CUBLAS_STATUS_INVALID_VALUE);
	a.check("after wrong calls");
	y.check("after wrong calls");
}

int main(void)
{
	BLAS(cublasCreate(&handle));
	wrong_calls();
	for (int upper = 0; upper < 2; upper++) {
		FOUR_TYPES(eigenvalues, upper);
	}
	BLAS(cublasDestroy(handle));
	return verified("%d eigenvalues of each matrix, of four types, with all scalars in the GPU's memory", FOUND);
}
