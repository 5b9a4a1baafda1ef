/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the programs that use cuBLAS need. */
#ifndef BLAS_H
#define BLAS_H

#include <cmath>
#include <complex>
#include <vector>

#include <cublas_v2.h>

#include "check.h"

#define BLAS(call)	    blas_code(__FILE__, __LINE__, #call, (call), CUBLAS_STATUS_SUCCESS)
#define BLAS_IS(call, code) blas_code(__FILE__, __LINE__, #call, (call), (code))

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
	/* What is on the GPU must be what is in `host` now. */
	void check(const char *what)
	{
		std::vector<V> got(host.size());

		CHECK(cudaMemcpy(got.data(), gpu, host.size() * sizeof(T), cudaMemcpyDeviceToHost));
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

#endif
