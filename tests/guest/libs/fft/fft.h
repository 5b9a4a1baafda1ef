/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the programs that use cuFFT need: transforms by the definition, comparing, and names that
 * are the same for float and double.
 */
#ifndef FFT_H
#define FFT_H

#include <cufft.h>
#include <cufftXt.h>

#include "../libs.h"

#ifndef CUFFT_PLAN_NULL /* not in CUDA 12's header */
#define CUFFT_PLAN_NULL (-1)
#endif

typedef std::complex<float> C;
typedef std::complex<double> Z;

/* The first call. */
static inline void begin(void)
{
	cufftHandle plan;

	first("cuFFT", cufftCreate(&plan), CUFFT_INVALID_PLAN);
	OK(cufftDestroy(plan));
}

/* ---- the definition ---- */

/* Of one row, whose elements lie `step` apart. */
template <typename T> static std::vector<Z> transform(const T *x, int n, int sign, size_t step = 1)
{
	std::vector<Z> turn(n), y(n);

	for (int i = 0; i < n; i++)
		turn[i] = std::polar(1.0, sign * 2 * M_PI * i / n);
	for (int k = 0; k < n; k++)
		for (int i = 0; i < n; i++)
			y[k] += Z(x[i * step]) * turn[(long)i * k % n];
	return y;
}

/* Of a row, a plane or a space of n[0] x n[1] x ... elements. */
template <typename T>
static std::vector<Z> transform(const std::vector<T> &x, const std::vector<int> &n, int sign)
{
	std::vector<Z> y(x.begin(), x.end());
	size_t step = 1;

	for (size_t d = n.size(); d--; step *= n[d])
		for (size_t at = 0; at < y.size(); at++) {
			if (at / step % n[d])
				continue;

			std::vector<Z> line = transform(&y[at], n[d], sign, step);

			for (int k = 0; k < n[d]; k++)
				y[at + k * step] = line[k];
		}
	return y;
}

/* ---- numbers ---- */

static inline void set_small(float &v)
{
	v = (float)small_number();
}

static inline void set_small(double &v)
{
	v = small_number();
}

template <typename R> static void set_small(std::complex<R> &v)
{
	R re, im;

	set_small(re);
	set_small(im);
	v = std::complex<R>(re, im);
}

template <typename T> static std::vector<T> numbers(size_t n)
{
	std::vector<T> x(n);

	for (T &v : x)
		set_small(v);
	return x;
}

template <typename T> static double tolerance(void)
{
	return sizeof(std::real(T())) == sizeof(float) ? 2e-4 : 1e-10;
}

/* `scale` times what the GPU has computed must be what is wanted. */
template <typename T, typename W>
static void compare(const char *what, const T *got, const W *want, size_t n, double scale = 1)
{
	for (size_t i = 0; i < n; i++) {
		double off = std::abs(scale * Z(got[i]) - Z(want[i]));

		REQUIRE(off <= tolerance<T>() * (1 + std::abs(Z(want[i]))),
			"%s: element %zu is off by %g", what, i, off);
	}
}

template <typename T, typename W>
static void compare(const char *what, const std::vector<T> &got, const std::vector<W> &want,
		    double scale = 1)
{
	REQUIRE(got.size() == want.size(), "%s: %zu elements", what, got.size());
	compare(what, got.data(), want.data(), got.size(), scale);
}

/* ---- float and double alike ---- */

/* The complex numbers of C++ as CUDA has them. */
static inline cufftComplex *raw(C *p)
{
	return (cufftComplex *)p;
}

static inline cufftDoubleComplex *raw(Z *p)
{
	return (cufftDoubleComplex *)p;
}

static inline cufftResult execute(cufftHandle plan, C *in, C *out, int direction)
{
	return cufftExecC2C(plan, raw(in), raw(out), direction);
}

static inline cufftResult execute(cufftHandle plan, Z *in, Z *out, int direction)
{
	return cufftExecZ2Z(plan, raw(in), raw(out), direction);
}

static inline cufftResult execute(cufftHandle plan, float *in, C *out)
{
	return cufftExecR2C(plan, in, raw(out));
}

static inline cufftResult execute(cufftHandle plan, double *in, Z *out)
{
	return cufftExecD2Z(plan, in, raw(out));
}

static inline cufftResult execute(cufftHandle plan, C *in, float *out)
{
	return cufftExecC2R(plan, raw(in), out);
}

static inline cufftResult execute(cufftHandle plan, Z *in, double *out)
{
	return cufftExecZ2D(plan, raw(in), out);
}

/* For programs with kernels; the others are compiled as C++ alone. */
#ifdef __CUDACC__
static inline __device__ cufftComplex times(cufftComplex a, cufftComplex b)
{
	return cuCmulf(a, b);
}

static inline __device__ cufftDoubleComplex times(cufftDoubleComplex a, cufftDoubleComplex b)
{
	return cuCmul(a, b);
}

/* Each row of `rows`, of `length` elements, times the one row `by`, element by element. */
template <typename T> static __global__ void multiply(T *rows, const T *by, int length, int all)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < all)
		rows[i] = times(rows[i], by[i % length]);
}
#endif

/* Blocks of 256 threads, one thread for each element. */
static inline int blocks(size_t n)
{
	return (int)((n + 255) / 256);
}

#endif
