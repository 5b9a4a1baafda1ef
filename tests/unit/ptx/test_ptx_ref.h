/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Expected values for the tests of floating point: bits, small formats by search, and PTX's own
 * rules for NaN, denormals and saturation.
 */
#ifndef TEST_PTX_REF_H
#define TEST_PTX_REF_H

#include <math.h>
#include <stdint.h>
#include <string.h>

static inline uint32_t bits_f(float x)
{
	uint32_t u;

	memcpy(&u, &x, 4);
	return u;
}

static inline uint64_t bits_d(double x)
{
	uint64_t u;

	memcpy(&u, &x, 8);
	return u;
}

static inline float f_of(uint64_t u)
{
	uint32_t v = (uint32_t)u;
	float x;

	memcpy(&x, &v, 4);
	return x;
}

static inline double d_of(uint64_t u)
{
	double x;

	memcpy(&x, &u, 8);
	return x;
}

static inline uint64_t canon(float x)
{
	return x != x ? 0x7fffffff : bits_f(x);
}

static inline float flush(float x)
{
	return fabsf(x) < 0x1p-126f ? copysignf(0, x) : x;
}

static inline float sat(float x)
{
	return x > 0 ? (x < 1 ? x : 1) : 0;
}

static inline float half_of(uint64_t h)
{
	int e = (int)(h >> 10 & 31);
	float m = (float)(h & 1023), v;

	if (e == 31)
		v = m ? NAN : INFINITY;
	else
		v = e ? ldexpf(1024 + m, e - 25) : ldexpf(m, -24);
	return h & 0x8000 ? -v : v;
}

/* Converts to half by search: the nearest half, even on a tie. */
static inline uint64_t to_half(double v)
{
	uint64_t sign = signbit(v) ? 0x8000 : 0, lo = 0, hi = 0x7c00;
	double a = fabs(v), dl, dh;

	if (v != v)
		return 0x7fff;
	if (a >= 65520)
		return sign | 0x7c00;
	while (hi - lo > 1) {
		uint64_t mid = (lo + hi) / 2;

		*(half_of(mid) <= a ? &lo : &hi) = mid;
	}
	dl = a - half_of(lo);
	dh = (lo == 0x7bff ? 65536.0 : half_of(lo + 1)) - a;
	return sign | (dl < dh || (dl == dh && !(lo & 1)) ? lo : lo + 1);
}

static inline uint64_t to_bf(float v)
{
	uint32_t u = bits_f(v);

	return v != v ? 0x7fff : (u + 0x7fff + (u >> 16 & 1)) >> 16;
}

#endif
