/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the programs that use cuBLAS need. */
#ifndef BLAS_H
#define BLAS_H

#include <algorithm>
#include <cmath>
#include <complex>
#include <vector>

#include <cublas_v2.h>

#include "check.h"

#define BLAS(call)	    blas_code(__FILE__, __LINE__, #call, (call), CUBLAS_STATUS_SUCCESS)
#define BLAS_IS(call, code) blas_code(__FILE__, __LINE__, #call, (call), (code))
#define BLAS_FAILS(call)    REQUIRE((call) != CUBLAS_STATUS_SUCCESS, "it did not fail")

static inline void blas_code(const char *file, int line, const char *call, cublasStatus_t got,
			     cublasStatus_t want)
{
	if (got == want)
		return;
	fprintf(stderr, "%s:%d: %s\n\tgave %d, expected %d\n", file, line, call, (int)got,
		(int)want);
	exit(1);
}

/* The types of cuBLAS as C++ computes with them. */
template <typename T> struct number {
	typedef T type;
	static const bool complex = false;
};
template <> struct number<cuComplex> {
	typedef std::complex<float> type;
	static const bool complex = true;
};
template <> struct number<cuDoubleComplex> {
	typedef std::complex<double> type;
	static const bool complex = true;
};

/*
 * The functions of each of the four types by one name. `real` is the type of a norm; what is
 * symmetric for real numbers is Hermitian for complex ones, and `trans` transposes it so.
 */
template <typename T> struct calls;
#define CALLS(X, T, R, HERMITIAN, TRANS, S, B, P, GER, DOT, SCAL, ROT, RX, N)        \
	template <> struct calls<T> {                                                \
		typedef R real;                                                      \
		static const bool hermitian = HERMITIAN;                             \
		static const cublasOperation_t trans = TRANS;                        \
		static constexpr auto nrm2 = cublas##RX##nrm2;                       \
		static constexpr auto asum = cublas##RX##asum;                       \
		static constexpr auto amax = cublasI##N##amax;                       \
		static constexpr auto amin = cublasI##N##amin;                       \
		static constexpr auto dot = cublas##X##DOT;                          \
		static constexpr auto scal = cublas##X##scal;                        \
		static constexpr auto real_scal = cublas##SCAL;                      \
		static constexpr auto axpy = cublas##X##axpy;                        \
		static constexpr auto copy = cublas##X##copy;                        \
		static constexpr auto swap = cublas##X##swap;                        \
		static constexpr auto rot = cublas##ROT;                             \
		static constexpr auto rot_64 = cublas##ROT##_64;                     \
		static constexpr auto gemv = cublas##X##gemv;                        \
		static constexpr auto gbmv = cublas##X##gbmv;                        \
		static constexpr auto ger = cublas##X##GER;                          \
		static constexpr auto mv = cublas##X##S##mv;                         \
		static constexpr auto band_mv = cublas##X##B##mv;                    \
		static constexpr auto packed_mv = cublas##X##P##mv;                  \
		static constexpr auto r = cublas##X##S##r;                           \
		static constexpr auto r2_64 = cublas##X##S##r2_64;                   \
		static constexpr auto packed_r = cublas##X##P##r;                    \
		static constexpr auto packed_r2 = cublas##X##P##r2;                  \
		static constexpr auto trsv = cublas##X##trsv;                        \
		static constexpr auto tbsv = cublas##X##tbsv;                        \
		static constexpr auto tpmv = cublas##X##tpmv;                        \
		static constexpr auto gemm = cublas##X##gemm;                        \
		static constexpr auto gemm_64 = cublas##X##gemm_64;                  \
		static constexpr auto strided = cublas##X##gemmStridedBatched;       \
		static constexpr auto strided_64 = cublas##X##gemmStridedBatched_64; \
		static constexpr auto arrays = cublas##X##gemmBatched;               \
		static constexpr auto mm_64 = cublas##X##S##mm_64;                   \
		static constexpr auto rk = cublas##X##S##rk;                         \
		static constexpr auto r2k = cublas##X##S##r2k;                       \
		static constexpr auto trmm = cublas##X##trmm;                        \
		static constexpr auto trsm = cublas##X##trsm;                        \
		static constexpr auto trsm_64 = cublas##X##trsm_64;                  \
	};
CALLS(S, float, float, false, CUBLAS_OP_T, sy, sb, sp, ger, dot, Sscal, Srot, S, s)
CALLS(D, double, double, false, CUBLAS_OP_T, sy, sb, sp, ger, dot, Dscal, Drot, D, d)
CALLS(C, cuComplex, float, true, CUBLAS_OP_C, he, hb, hp, gerc, dotc, Csscal, Csrot, Sc, c)
CALLS(Z, cuDoubleComplex, double, true, CUBLAS_OP_C, he, hb, hp, gerc, dotc, Zdscal, Zdrot, Dz, z)
#undef CALLS

#define FOUR_TYPES(function, ...)                       \
	do {                                            \
		function<float>(__VA_ARGS__);           \
		function<double>(__VA_ARGS__);          \
		function<cuComplex>(__VA_ARGS__);       \
		function<cuDoubleComplex>(__VA_ARGS__); \
	} while (0)

template <typename T> static double tolerance(void)
{
	return sizeof(T) == 4 || (sizeof(T) == 8 && number<T>::complex) ? 2e-4 : 1e-11;
}

template <typename V> static V value_of(double re, double)
{
	return (V)re;
}
template <> std::complex<float> value_of(double re, double im)
{
	return std::complex<float>((float)re, (float)im);
}
template <> std::complex<double> value_of(double re, double im)
{
	return std::complex<double>(re, im);
}

template <typename V> static V conjugate(V v)
{
	return v;
}
template <> std::complex<float> conjugate(std::complex<float> v)
{
	return std::conj(v);
}
template <> std::complex<double> conjugate(std::complex<double> v)
{
	return std::conj(v);
}

/* Small numbers that look random, the same in each run. */
static unsigned int numbers_seed = 1;
static inline double small_number(void)
{
	numbers_seed = numbers_seed * 1664525u + 1013904223u;
	return ((int)(numbers_seed >> 16) % 200 - 100) / 64.0;
}

/* Host memory with a copy on the GPU. */
template <typename T> struct array {
	typedef typename number<T>::type V;
	std::vector<V> host;
	T *gpu;

	explicit array(size_t n) : host(n)
	{
		for (size_t i = 0; i < n; i++) {
			double re = small_number();

			host[i] = value_of<V>(re, small_number());
		}
		CHECK(cudaMalloc(&gpu, n * sizeof(T)));
		up();
	}
	~array()
	{
		cudaFree(gpu);
	}
	void up(void)
	{
		CHECK(cudaMemcpy(gpu, host.data(), host.size() * sizeof(T),
				 cudaMemcpyHostToDevice));
	}
	std::vector<V> down(void)
	{
		std::vector<V> got(host.size());

		CHECK(cudaMemcpy(got.data(), gpu, host.size() * sizeof(T), cudaMemcpyDeviceToHost));
		return got;
	}
	/* What is on the GPU must be what is in `host` now. */
	void check(const char *what)
	{
		std::vector<V> got = down();

		for (size_t i = 0; i < got.size(); i++) {
			double off = std::abs(got[i] - host[i]);

			REQUIRE(off <= tolerance<T>() * (1 + std::abs(host[i])),
				"%s: element %zu is off by %g", what, i, off);
		}
	}
};

/* An element of a matrix as an operation sees it. */
template <typename V> static V at(const V *m, int lead, cublasOperation_t op, int row, int col)
{
	if (op == CUBLAS_OP_N)
		return m[row + (size_t)col * lead];
	return op == CUBLAS_OP_T ? m[col + (size_t)row * lead]
				 : conjugate(m[col + (size_t)row * lead]);
}

/* c = alpha * a * b + beta * c, by the definition. */
template <typename T>
static void reference(cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k,
		      typename number<T>::type alpha, const typename number<T>::type *a, int lda,
		      const typename number<T>::type *b, int ldb, typename number<T>::type beta,
		      typename number<T>::type *c, int ldc)
{
	for (int j = 0; j < n; j++)
		for (int i = 0; i < m; i++) {
			typename number<T>::type sum = 0;

			for (int l = 0; l < k; l++)
				sum += at(a, lda, ta, i, l) * at(b, ldb, tb, l, j);
			c[i + (size_t)j * ldc] = alpha * sum + beta * c[i + (size_t)j * ldc];
		}
}

template <typename V> struct matrix {
	int rows, cols;
	std::vector<V> v;
	matrix(int r, int c) : rows(r), cols(c), v((size_t)r * c)
	{
	}
	V &operator()(int i, int j)
	{
		return v[i + (size_t)j * rows];
	}
};

/* The matrix that lies there with this leading dimension. */
template <typename V>
static matrix<V> columns(const std::vector<V> &from, int rows, int cols, int ld)
{
	matrix<V> m(rows, cols);

	for (int j = 0; j < cols; j++)
		for (int i = 0; i < rows; i++)
			m(i, j) = from[i + j * ld];
	return m;
}

template <typename V>
static matrix<V> times(const matrix<V> &a, cublasOperation_t ta, const matrix<V> &b,
		       cublasOperation_t tb)
{
	matrix<V> c(ta == CUBLAS_OP_N ? a.rows : a.cols, tb == CUBLAS_OP_N ? b.cols : b.rows);
	const int inner = ta == CUBLAS_OP_N ? a.cols : a.rows;

	for (int j = 0; j < c.cols; j++)
		for (int i = 0; i < c.rows; i++)
			for (int l = 0; l < inner; l++)
				c(i, j) += at(a.v.data(), a.rows, ta, i, l) *
					   at(b.v.data(), b.rows, tb, l, j);
	return c;
}

template <typename V>
static void same(const char *what, const matrix<V> &got, const matrix<V> &want, double allowed)
{
	for (size_t i = 0; i < want.v.size(); i++) {
		double off = std::abs(got.v[i] - want.v[i]);

		REQUIRE(off <= allowed, "%s: element %zu is off by %g", what, i, off);
	}
}

template <typename V> static matrix<V> identity(int n)
{
	matrix<V> m(n, n);

	for (int i = 0; i < n; i++)
		m(i, i) = 1;
	return m;
}

/* Where element i of a vector is: with a step below zero, the first one is the last. */
static inline int place(int i, int n, int step)
{
	return step > 0 ? i * step : (i - n + 1) * step;
}

/* Row i of column j lies in row above + i - j of the band, if it is in it. */
template <typename V>
static matrix<V> from_band(const std::vector<V> &band, int rows, int cols, int ld, int below,
			   int above)
{
	matrix<V> m(rows, cols);

	for (int j = 0; j < cols; j++)
		for (int i = std::max(0, j - above); i < std::min(rows, j + below + 1); i++)
			m(i, j) = band[above + i - j + j * ld];
	return m;
}

/* Column by column, without gaps. */
template <typename V> static matrix<V> from_packed(const std::vector<V> &packed, int n, bool upper)
{
	matrix<V> m(n, n);
	int next = 0;

	for (int j = 0; j < n; j++)
		for (int i = upper ? 0 : j; i < (upper ? j + 1 : n); i++)
			m(i, j) = packed[next++];
	return m;
}

/* As a matrix of one column. */
template <typename V> static matrix<V> vector(const std::vector<V> &from, int n, int step)
{
	matrix<V> m(n, 1);

	for (int i = 0; i < n; i++)
		m(i, 0) = from[place(i, n, step)];
	return m;
}

/* The whole matrix, of which cuBLAS reads one half. */
template <typename V>
static matrix<V> whole(const std::vector<V> &a, int n, int ld, bool upper, bool hermitian)
{
	matrix<V> m(n, n);

	for (int j = 0; j < n; j++)
		for (int i = 0; i < n; i++) {
			bool stored = upper ? i <= j : i >= j;
			V v = stored ? a[i + (size_t)j * ld] : a[j + (size_t)i * ld];

			if (hermitian && !stored)
				v = conjugate(v);
			if (hermitian && i == j)
				v = value_of<V>(std::real(v), 0);
			m(i, j) = v;
		}
	return m;
}

/* A triangular matrix, with nothing in the other half. */
template <typename V>
static matrix<V> triangle(const std::vector<V> &a, int n, int ld, bool upper, bool unit)
{
	matrix<V> m(n, n);

	for (int j = 0; j < n; j++)
		for (int i = 0; i < n; i++)
			if (i == j && unit)
				m(i, j) = 1;
			else if (upper ? i <= j : i >= j)
				m(i, j) = a[i + (size_t)j * ld];
	return m;
}

/* A diagonal that makes a triangular system well behaved. */
template <typename T> static void steady(array<T> &a, int n, int ld)
{
	typedef typename number<T>::type V;

	for (int i = 0; i < n; i++)
		a.host[i + (size_t)i * ld] += value_of<V>(20, 0);
	a.up();
}

static inline void near(double got, double want, double allowed, const char *what)
{
	REQUIRE(fabs(got - want) <= allowed * (1 + fabs(want)), "%s: %.17g, not %.17g", what, got,
		want);
}

#endif
