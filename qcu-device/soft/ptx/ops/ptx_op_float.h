/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Handlers for single and double precision; see ptx_ops.h for why this is a header. Each has two
 * forms. The plain form rounds to nearest and keeps denormals. The X form is for instructions with
 * modifiers: it runs the same loop with the processor's rounding and flush mode set.
 */
#include "qcu-device/soft/ptx/ops/ptx_fp.h"
#include "qcu-device/soft/ptx/ops/ptx_op_loop.h"

#define SAT_F(v) (in->flags & IF_SAT ? f_sat(v) : (v))
#define SAT_D(v) (in->flags & IF_SAT ? d_sat(v) : (v))

#define XFORM(name, T, LOOP)                                                                 \
	HANDLER(name)                                                                        \
	{                                                                                    \
		T *d = ptx_at(w, in->d);                                                     \
		const T *a = ptx_at(w, in->a), *b = ptx_at(w, in->b), *c = ptx_at(w, in->c); \
		const unsigned int old = fp_enter(in->flags);                                \
		(void)b;                                                                     \
		(void)c;                                                                     \
		LOOP;                                                                        \
		fp_leave(old);                                                               \
		if (in->flags & IF_SAT)                                                      \
			sat_##T(w, d, m);                                                    \
	}

static void sat_float(struct ptx_warp *w, float *d, uint32_t m)
{
	FOR_LANES(d[i] = f_sat(d[i]););
}

static void sat_double(struct ptx_warp *w, double *d, uint32_t m)
{
	FOR_LANES(d[i] = d_sat(d[i]););
}

#define ARITH2(n, e)                                                                     \
	OP2(n##_f32, float, float, float, f_canon(e))                                    \
	OP2(n##_f64, double, double, double, e)                                          \
	XFORM(n##_f32x, float,                                                           \
	      FOR_LANES(const float x = a[i]; const float y = b[i]; d[i] = f_canon(e);)) \
	XFORM(n##_f64x, double, FOR_LANES(const double x = a[i]; const double y = b[i]; d[i] = e;))
ARITH2(add, x + y)
ARITH2(sub, x - y)
ARITH2(mul, x *y)
ARITH2(div, x / y)

OP3(fma_f32, float, float, float, float, f_canon(__builtin_fmaf(x, y, z)))
OP3(fma_f64, double, double, double, double, __builtin_fma(x, y, z))
XFORM(fma_f32x, float, FOR_LANES(d[i] = f_canon(__builtin_fmaf(a[i], b[i], c[i]));))
XFORM(fma_f64x, double, FOR_LANES(d[i] = __builtin_fma(a[i], b[i], c[i]);))

/* Built with -fno-math-errno: the square root of a negative number is NaN, without errno. */
OP1(sqrt_f32, float, float, f_canon(__builtin_sqrtf(x)))
OP1(sqrt_f64, double, double, __builtin_sqrt(x))
XFORM(sqrt_f32x, float, FOR_LANES(d[i] = f_canon(__builtin_sqrtf(a[i]));))
XFORM(sqrt_f64x, double, FOR_LANES(d[i] = __builtin_sqrt(a[i]);))
OP1(rcp_f32, float, float, f_canon(1.0f / x))
OP1(rcp_f64, double, double, 1.0 / x)
XFORM(rcp_f32x, float, FOR_LANES(d[i] = f_canon(1.0f / a[i]);))
XFORM(rcp_f64x, double, FOR_LANES(d[i] = 1.0 / a[i];))

/* Functions that round in their own way: with .ftz, flush the operand and the result by hand. */
#define FUNC1(n, e)                                                                               \
	OP1(n##_f32, float, float, f_canon(e))                                                    \
	HANDLER(n##_f32x)                                                                         \
	{                                                                                         \
		float *d = ptx_at(w, in->d);                                                      \
		const float *a = ptx_at(w, in->a);                                                \
		const bool ftz = in->flags & IF_FTZ;                                              \
		FOR_LANES(const float x = ftz ? f_flush(a[i]) : a[i]; const float r = f_canon(e); \
			  d[i] = SAT_F(ftz ? f_flush(r) : r););                                   \
	}
FUNC1(rsqrt, (float)(1.0 / __builtin_sqrt((double)x)))
FUNC1(ex2, exp2f(x))
FUNC1(lg2, log2f(x))
FUNC1(sin, sinf(x))
FUNC1(cos, cosf(x))
FUNC1(tanh, tanhf(x))
OP1(rsqrt_f64, double, double, 1.0 / __builtin_sqrt(x))
XFORM(rsqrt_f64x, double, FOR_LANES(d[i] = 1.0 / __builtin_sqrt(a[i]);))

/* rcp/rsqrt.approx.ftz.f64 read only the upper word and return only an upper word. */
#define UPPER(v) d_from(d_bits(v) & 0xffffffff00000000ull)
OP1(rcp64h, double, double, UPPER(d_flush(1.0 / d_flush(UPPER(x)))))
OP1(rsqrt64h, double, double, UPPER(d_flush(1.0 / __builtin_sqrt(d_flush(UPPER(x))))))

#define F_ABS(x) f_from(f_bits(x) & 0x7fffffffu)
#define F_NEG(x) f_from(f_bits(x) ^ 0x80000000u)
FUNC1(abs, F_ABS(x))
FUNC1(neg, F_NEG(x))
OP1(abs_f64, double, double, d_from(d_bits(x) & 0x7fffffffffffffffull))
OP1(neg_f64, double, double, d_from(d_bits(x) ^ 0x8000000000000000ull))
OP2(copysign_f32, uint32_t, uint32_t, uint32_t, (x & 0x80000000u) | (y & 0x7fffffffu))
OP2(copysign_f64, uint64_t, uint64_t, uint64_t,
    (x & 0x8000000000000000ull) | (y & 0x7fffffffffffffffull))

/* Of a number and a NaN the result is the number, unless .NaN is given; -0 is less than +0. */
static inline float f_min(float x, float y)
{
	float r = x < y ? x : y < x ? y : f_from(f_bits(x) | f_bits(y));

	return x != x ? f_canon(y) : y != y ? x : r;
}

static inline float f_max(float x, float y)
{
	float r = x > y ? x : y > x ? y : f_from(f_bits(x) & f_bits(y));

	return x != x ? f_canon(y) : y != y ? x : r;
}

static inline double d_min(double x, double y)
{
	double r = x < y ? x : y < x ? y : d_from(d_bits(x) | d_bits(y));

	return x != x ? y : y != y ? x : r;
}

static inline double d_max(double x, double y)
{
	double r = x > y ? x : y > x ? y : d_from(d_bits(x) & d_bits(y));

	return x != x ? y : y != y ? x : r;
}

OP2(min_f32, float, float, float, f_min(x, y))
OP2(max_f32, float, float, float, f_max(x, y))
OP2(min_f64, double, double, double, d_min(x, y))
OP2(max_f64, double, double, double, d_max(x, y))
#define MINMAX(name, fn)                                                                     \
	HANDLER(name)                                                                        \
	{                                                                                    \
		float *d = ptx_at(w, in->d);                                                 \
		const float *a = ptx_at(w, in->a), *b = ptx_at(w, in->b);                    \
		const bool ftz = in->flags & IF_FTZ, nan = in->flags & IF_NAN;               \
		FOR_LANES(const float x = ftz ? f_flush(a[i]) : a[i];                        \
			  const float y = ftz ? f_flush(b[i]) : b[i];                        \
			  d[i] = nan && (x != x || y != y) ? f_from(PTX_NAN32) : fn(x, y);); \
	}
MINMAX(min_f32x, f_min)
MINMAX(max_f32x, f_max)

OP1(cvt_f32_s32, float, int32_t, x)
OP1(cvt_f32_u32, float, uint32_t, x)
OP1(cvt_f64_s32, double, int32_t, x)
OP1(cvt_f64_f32, double, float, x)
OP1(cvt_f32_f64, float, double, f_canon((float)x))
/* NaN becomes 0; a value that does not fit is clamped. 2147483520 is the last float below 2^31. */
OP1(cvt_s32_f32, int32_t, float,
    x >= 0x1p31f ? INT32_MAX : (x != x ? 0 : (int32_t)(x < -0x1p31f ? -0x1p31f : x)))
