/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Floating-point helpers that several parts of the machine need: bits, denormals, canonical NaN,
 * small formats, and rounding modes of the processor.
 */
#ifndef QCU_SOFT_PTX_FP_H
#define QCU_SOFT_PTX_FP_H

#include <math.h>
#include <string.h>
#include <xmmintrin.h>

#include "qcu-device/soft/ptx/base/ptx_int.h"

#define PTX_NAN32 0x7fffffffu
#define PTX_NAN64 0xfff8000000000000ull

/*
 * Rounding modes. The first four are the values of IF_RND. The last one, ties away from zero, is
 * for conversions only.
 */
enum ptx_rnd { RND_N, RND_Z, RND_M, RND_P, RND_A };

static inline uint32_t f_bits(float x)
{
	uint32_t u;

	memcpy(&u, &x, 4);
	return u;
}

static inline float f_from(uint32_t u)
{
	float x;

	memcpy(&x, &u, 4);
	return x;
}

static inline uint64_t d_bits(double x)
{
	uint64_t u;

	memcpy(&u, &x, 8);
	return u;
}

static inline double d_from(uint64_t u)
{
	double x;

	memcpy(&x, &u, 8);
	return x;
}

/* Turns a denormal into zero of the same sign. */
static inline float f_flush(float x)
{
	uint32_t u = f_bits(x);

	return f_from(u & 0x7f800000u ? u : u & 0x80000000u);
}

static inline double d_flush(double x)
{
	uint64_t u = d_bits(x);

	return d_from(u & 0x7ff0000000000000ull ? u : u & 0x8000000000000000ull);
}

/* Replaces any NaN by the one NaN that single precision arithmetic returns. */
static inline float f_canon(float x)
{
	return x != x ? f_from(PTX_NAN32) : x;
}

/* Clamp to [0, 1]; NaN and -0 become +0. */
static inline float f_sat(float x)
{
	return x > 0.0f ? (x < 1.0f ? x : 1.0f) : 0.0f;
}

static inline double d_sat(double x)
{
	return x > 0.0 ? (x < 1.0 ? x : 1.0) : 0.0;
}

/*
 * Sets the rounding mode and the denormal handling of the vector unit, until fp_leave(). The
 * compiler barriers in both functions keep the arithmetic between them. This works because its
 * operands and results are in memory.
 */
static inline unsigned int fp_enter(uint16_t flags)
{
	static const uint16_t rc[4] = {0, 3, 1, 2};
	unsigned int old = _mm_getcsr(), csr = old & ~0xe040u;

	csr |= (unsigned int)rc[flags & IF_RND] << 13;
	if (flags & IF_FTZ)
		csr |= 0x8040;
	_mm_setcsr(csr);
	__asm__ volatile("" ::: "memory");
	return old;
}

static inline void fp_leave(unsigned int old)
{
	__asm__ volatile("" ::: "memory");
	_mm_setcsr(old);
}

/*
 * Returns the bits of |v| in a format with `mant` stored bits of mantissa and `ebits` bits of
 * exponent, rounded once. v must be finite. The result may be larger than the largest number of the
 * format.
 */
static inline uint64_t fp_round(double v, unsigned int mant, unsigned int ebits, unsigned int rnd)
{
	uint64_t u = d_bits(v), m = u & 0xfffffffffffffull;
	int bias = (1 << (ebits - 1)) - 1;
	int e = (int)(u >> 52 & 0x7ff);
	unsigned int shift = 52 - mant;
	uint64_t q, rem, half;
	bool up, neg = u >> 63;

	if (!e && !m)
		return 0;
	if (e)
		m |= 1ull << 52;
	else
		e = 1;
	e += bias - 1023;
	if (e < 1) {
		/* denormal in the target format */
		shift += (unsigned int)(1 - e);
		e = 0;
		if (shift > 63) {
			m = 1;
			shift = 63;
		}
	}
	q = m >> shift;
	rem = m & ((1ull << shift) - 1);
	half = 1ull << (shift - 1);
	switch (rnd) {
	case RND_N:
		up = rem > half || (rem == half && (q & 1));
		break;
	case RND_M:
		up = rem && neg;
		break;
	case RND_P:
		up = rem && !neg;
		break;
	case RND_A:
		up = rem >= half;
		break;
	default:
		up = false;
	}
	q += up;
	/* q includes its leading one, which adds 1 to the exponent field: add only e - 1. */
	return e ? q + ((uint64_t)(e - 1) << mant) : q;
}

/* Like fp_round(), but with sign, infinity and NaN, and with overflow as the mode demands. */
static inline uint32_t fp_narrow(double v, unsigned int mant, unsigned int ebits, unsigned int rnd)
{
	uint64_t u = d_bits(v), q;
	bool neg = u >> 63, to_inf;
	uint32_t sign = (uint32_t)neg << (mant + ebits);
	uint32_t inf = ((1u << ebits) - 1) << mant;

	if ((u >> 52 & 0x7ff) == 0x7ff)
		return u & 0xfffffffffffffull ? inf | ((1u << mant) - 1) : sign | inf;
	q = fp_round(v, mant, ebits, rnd);
	if (q < inf)
		return sign | (uint32_t)q;
	to_inf = rnd == RND_N || rnd == RND_A || (rnd == RND_M && neg) || (rnd == RND_P && !neg);
	return sign | (to_inf ? inf : inf - 1);
}

static inline float fp_half_widen(uint16_t h)
{
	uint32_t sign = (uint32_t)(h & 0x8000) << 16, e = h >> 10 & 31, m = h & 0x3ff;

	if (e == 31)
		return f_from(m ? PTX_NAN32 : sign | 0x7f800000u);
	if (e)
		return f_from(sign | (e + 112) << 23 | m << 13);
	return f_from(sign | f_bits((float)m * 0x1p-24f));
}

static inline float fp_bf16_widen(uint16_t h)
{
	return f_from((uint32_t)h << 16);
}

static inline uint16_t fp_half_narrow(double v, unsigned int rnd)
{
	return (uint16_t)fp_narrow(v, 10, 5, rnd);
}

static inline uint16_t fp_bf16_narrow(double v, unsigned int rnd)
{
	return (uint16_t)fp_narrow(v, 7, 8, rnd);
}

/*
 * Returns a * b + c. If anything was lost, the last bit is made odd, so that one more rounding
 * gives the right result.
 */
static inline double fp_fma_odd(float a, float b, float c)
{
	double p = (double)a * b, z = c, s = p + z, t, err;
	uint64_t u;

	if (!isfinite(s))
		return s;
	t = s - p;
	err = (p - (s - t)) + (z - t);
	u = d_bits(s);
	if (err != 0.0 && !(u & 1))
		u = (err > 0) == (s > 0) ? u + 1 : u - 1;
	return d_from(u);
}

#endif
