/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Types of elements: how each is stored, and the type that it is computed in. Elements of 8 and 16 bits are computed
 * in 32 bits, and rounded once. A maximum or minimum with a NaN is the other number, as with fmax().
 */
#ifndef QCCL_VALUES_CUH
#define QCCL_VALUES_CUH

#include <stdint.h>

template <typename S, typename V> struct plain {
	typedef S stored;
	typedef V value;

	static __device__ V load(S x)
	{
		return (V)x;
	}

	static __device__ S store(V v)
	{
		return (S)v;
	}

	static __device__ V max(V a, V b)
	{
		return a > b ? a : b;
	}

	static __device__ V min(V a, V b)
	{
		return a < b ? a : b;
	}

	static __device__ S fetch(const S *p)
	{
		return __ldcg(p);
	}
};

struct as_int8 : plain<signed char, int32_t> {};
struct as_uint8 : plain<uint8_t, uint32_t> {};
struct as_int32 : plain<int32_t, int32_t> {};
struct as_uint32 : plain<uint32_t, uint32_t> {};
struct as_int64 : plain<long long, long long> {};
struct as_uint64 : plain<unsigned long long, unsigned long long> {};

struct as_float32 : plain<float, float> {
	static __device__ float max(float a, float b)
	{
		return fmaxf(a, b);
	}

	static __device__ float min(float a, float b)
	{
		return fminf(a, b);
	}
};

struct as_float64 : plain<double, double> {
	static __device__ double max(double a, double b)
	{
		return fmax(a, b);
	}

	static __device__ double min(double a, double b)
	{
		return fmin(a, b);
	}
};

struct as_float16 : as_float32 {
	typedef uint16_t stored;

	static __device__ float load(uint16_t x)
	{
		return __half2float(__ushort_as_half(x));
	}

	static __device__ uint16_t store(float v)
	{
		return __half_as_ushort(__float2half_rn(v));
	}

	static __device__ uint16_t fetch(const uint16_t *p)
	{
		return __ldcg(p);
	}
};

struct as_bfloat16 : as_float32 {
	typedef uint16_t stored;

	static __device__ float load(uint16_t x)
	{
		return __uint_as_float((uint32_t)x << 16);
	}

	/* To the nearest, and of two such to the even one. */
	static __device__ uint16_t store(float v)
	{
		uint32_t bits = __float_as_uint(v);

		if ((bits & 0x7fffffff) > 0x7f800000)
			return (uint16_t)(bits >> 16 | 0x40);
		return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
	}

	static __device__ uint16_t fetch(const uint16_t *p)
	{
		return __ldcg(p);
	}
};

#endif
