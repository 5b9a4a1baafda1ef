// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Batches whose matrices share memory, in four types: windows of a signal that overlap, one matrix for
 * all items, the same address many times, results that lie between each other, many small matrices, the
 * scalars in the GPU's memory. A result that is not read first may hold anything. Wrong calls and
 * batches without items come first.
 */
#include <limits>

#include "blas.h"

static cublasHandle_t handle;

/* The addresses of all items, in the GPU's memory. */
template <typename T> struct addresses {
	T **gpu;
	template <typename F> addresses(int count, F item)
	{
		std::vector<T *> host(count);

		for (int i = 0; i < count; i++)
			host[i] = item(i);
		CHECK(cudaMalloc(&gpu, count * sizeof(T *)));
		CHECK(cudaMemcpy(gpu, host.data(), count * sizeof(T *), cudaMemcpyHostToDevice));
	}
	~addresses()
	{
		cudaFree(gpu);
	}
};

/* Nothing that is computed from this is a number. */
template <typename T> static void spoil(array<T> &c)
{
	typedef typename number<T>::type V;
	const double nan = std::numeric_limits<double>::quiet_NaN();
	std::vector<V> was = c.host;

	c.host.assign(was.size(), value_of<V>(nan, nan));
	c.up();
	c.host = was;
}

/* Window i begins `hop` elements after the one before; all are multiplied by the same filters. */
template <typename T> static void windows(void)
{
	typedef typename number<T>::type V;
	const int m = 6, n = 3, k = 5, hop = 4, count = 20;
	const V one = 1, zero = 0;
	array<T> signal(hop * (count - 1) + m * k), filters(k * n), c(m * n * count);

	spoil(c);
	BLAS(calls<T>::strided(handle, CUBLAS_OP_N, CUBLAS_OP_N, m, n, k, (const T *)&one, signal.gpu, m, hop,
			       filters.gpu, k, 0, (const T *)&zero, c.gpu, m, m * n, count));
	for (int i = 0; i < count; i++)
		reference<T>(CUBLAS_OP_N, CUBLAS_OP_N, m, n, k, one, &signal.host[i * hop], m, filters.host.data(), k,
			     zero, &c.host[i * m * n], m);
	c.check("windows of a signal");
}

/* The columns of all results take turns. The sizes have 64 bits, the scalars are in the GPU's memory. */
template <typename T> static void between(cublasOperation_t ta, cublasOperation_t tb)
{
	const int m = 4, n = 7, k = 6, count = 9, lda = 8, ldb = 9, ldc = m * count;
	const int cols_a = ta == CUBLAS_OP_N ? k : m, cols_b = tb == CUBLAS_OP_N ? n : k;
	array<T> a(lda * cols_a), b(ldb * cols_b * count), c(ldc * n), scalars(2);

	BLAS(cublasSetPointerMode(handle, CUBLAS_POINTER_MODE_DEVICE));
	BLAS(calls<T>::strided_64(handle, ta, tb, m, n, k, scalars.gpu, a.gpu, lda, 0, b.gpu, ldb, ldb * cols_b,
				  scalars.gpu + 1, c.gpu, ldc, m, count));
	BLAS(cublasSetPointerMode(handle, CUBLAS_POINTER_MODE_HOST));
	for (int i = 0; i < count; i++)
		reference<T>(ta, tb, m, n, k, scalars.host[0], a.host.data(), lda, &b.host[i * ldb * cols_b], ldb,
			     scalars.host[1], &c.host[i * m], ldc);
	c.check("results between each other");
}

/* The products of all pairs: each input is used many times. */
template <typename T> static void pairs(void)
{
	typedef typename number<T>::type V;
	const int n = 3, kinds = 6, count = kinds * kinds;
	const V alpha = value_of<V>(0.5, -1), zero = 0;
	array<T> a(n * n * kinds), c(n * n * count);
	addresses<T> left(count, [&](int i) { return a.gpu + i / kinds * n * n; });
	addresses<T> right(count, [&](int i) { return a.gpu + i % kinds * n * n; });
	addresses<T> result(count, [&](int i) { return c.gpu + (count - 1 - i) * n * n; });

	spoil(c);
	BLAS(calls<T>::arrays(handle, CUBLAS_OP_N, CUBLAS_OP_C, n, n, n, (const T *)&alpha, left.gpu, n, right.gpu, n,
			      (const T *)&zero, result.gpu, n, count));
	for (int i = 0; i < count; i++)
		reference<T>(CUBLAS_OP_N, CUBLAS_OP_C, n, n, n, alpha, &a.host[i / kinds * n * n], n,
			     &a.host[i % kinds * n * n], n, zero, &c.host[(count - 1 - i) * n * n], n);
	c.check("the products of all pairs");
}

/* Turns of the plane: each step multiplies all by the same turn. After all steps they are where they were. */
static void turns(void)
{
	const int count = 3000, steps = 12;
	const double one = 1, zero = 0, angle = 2 * M_PI / steps;
	array<double> turn(4), points(2 * count), next(2 * count);

	turn.host = {cos(angle), sin(angle), -sin(angle), cos(angle)};
	turn.up();
	for (int i = 0; i < steps; i++) {
		BLAS(cublasDgemmStridedBatched(handle, CUBLAS_OP_N, CUBLAS_OP_N, 2, 1, 2, &one, turn.gpu, 2, 0,
					       points.gpu, 2, 2, &zero, next.gpu, 2, 2, count));
		std::swap(points.gpu, next.gpu);
	}
	points.check("a whole turn");
}

template <typename T> static void batches(void)
{
	windows<T>();
	pairs<T>();
	for (cublasOperation_t ta : {CUBLAS_OP_N, CUBLAS_OP_T, CUBLAS_OP_C})
		for (cublasOperation_t tb : {CUBLAS_OP_N, CUBLAS_OP_T, CUBLAS_OP_C})
			between<T>(ta, tb);
}

static void wrong_calls(void)
{
	const cublasOperation_t no = CUBLAS_OP_N;
	const float one = 1, zero = 0;
	array<float> a(64), c(64);

	BLAS_IS(cublasSgemmStridedBatched(NULL, no, no, 4, 4, 4, &one, a.gpu, 4, 16, a.gpu, 4, 16, &zero, c.gpu, 4, 16,
					  4),
		CUBLAS_STATUS_NOT_INITIALIZED);
	BLAS_IS(cublasSgemmStridedBatched(handle, no, no, 4, 4, 4, &one, a.gpu, 4, 16, a.gpu, 4, 16, &zero, c.gpu, 4,
					  16, -1),
		CUBLAS_STATUS_INVALID_VALUE);
	BLAS_IS(cublasSgemmStridedBatched(handle, no, no, 4, 4, 4, &one, a.gpu, 3, 16, a.gpu, 4, 16, &zero, c.gpu, 4,
					  16, 4),
		CUBLAS_STATUS_INVALID_VALUE);
	BLAS(cublasSgemmStridedBatched(handle, no, no, 4, 4, 4, &one, a.gpu, 4, 16, a.gpu, 4, 16, &zero, c.gpu, 4, 16,
				       0));
	c.check("after wrong calls");
}

int main(void)
{
	BLAS(cublasCreate(&handle));
	wrong_calls();
	FOUR_TYPES(batches);
	turns();
	BLAS(cublasDestroy(handle));
	return verified("batches of four types that share their memory");
}
