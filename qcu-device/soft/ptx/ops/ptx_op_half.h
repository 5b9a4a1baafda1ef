/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Handlers for half and bfloat16, single and packed; see ptx_ops.h for why this is a header. Values
 * are widened, computed with enough bits that the single rounding at the end is correct, and
 * narrowed.
 */
#include "qcu-device/soft/ptx/ops/ptx_fp.h"
#include "qcu-device/soft/ptx/ops/ptx_op_loop.h"

static inline float half_in(uint16_t h, uint16_t flags)
{
	if (flags & IF_FTZ && !(h & 0x7c00))
		h &= 0x8000;
	return fp_half_widen(h);
}

static inline uint16_t half_out(double v, uint16_t flags)
{
	uint16_t h;

	if (flags & IF_SAT)
		v = d_sat(v);
	if (flags & IF_RELU && !(v > 0) && v == v)
		v = 0;
	h = fp_half_narrow(v, flags & IF_RND);
	if (flags & IF_FTZ && !(h & 0x7c00))
		h &= 0x8000;
	return h;
}

static inline float bf_in(uint16_t h, uint16_t flags)
{
	if (flags & IF_FTZ && !(h & 0x7f80))
		h &= 0x8000;
	return fp_bf16_widen(h);
}

static inline uint16_t bf_out(double v, uint16_t flags)
{
	uint16_t h;

	if (flags & IF_SAT)
		v = d_sat(v);
	if (flags & IF_RELU && !(v > 0) && v == v)
		v = 0;
	h = fp_bf16_narrow(v, flags & IF_RND);
	if (flags & IF_FTZ && !(h & 0x7f80))
		h &= 0x8000;
	return h;
}

static inline double small_min(float x, float y, uint16_t flags)
{
	if (flags & IF_NAN && (x != x || y != y))
		return NAN;
	if (x != x || y != y)
		return x != x ? y : x;
	return x < y ? x : y < x ? y : f_from(f_bits(x) | f_bits(y));
}

static inline double small_max(float x, float y, uint16_t flags)
{
	if (flags & IF_NAN && (x != x || y != y))
		return NAN;
	if (x != x || y != y)
		return x != x ? y : x;
	return x > y ? x : y > x ? y : f_from(f_bits(x) & f_bits(y));
}

#define SMALL(name, in_, out_, e)                                                       \
	HANDLER(name)                                                                   \
	{                                                                               \
		uint16_t *d = ptx_at(w, in->d);                                         \
		const uint16_t *a = ptx_at(w, in->a), *b = ptx_at(w, in->b);            \
		const uint16_t *c = ptx_at(w, in->c);                                   \
		const uint16_t fl = in->flags;                                          \
		FOR_LANES(const float x = in_(a[i], fl); const float y = in_(b[i], fl); \
			  const float z = in_(c[i], fl); (void)y; (void)z;              \
			  d[i] = out_((double)(e), fl););                               \
	}
#define SMALL2(name, in_, out_, e)                                                    \
	HANDLER(name)                                                                 \
	{                                                                             \
		uint32_t *d = ptx_at(w, in->d);                                       \
		const uint32_t *a = ptx_at(w, in->a), *b = ptx_at(w, in->b);          \
		const uint32_t *c = ptx_at(w, in->c);                                 \
		const uint16_t fl = in->flags;                                        \
		FOR_LANES(uint32_t r = 0; for (unsigned int k = 0; k < 32; k += 16) { \
			const float x = in_((uint16_t)(a[i] >> k), fl);               \
			const float y = in_((uint16_t)(b[i] >> k), fl);               \
			const float z = in_((uint16_t)(c[i] >> k), fl);               \
			(void)y;                                                      \
			(void)z;                                                      \
			r |= (uint32_t)out_((double)(e), fl) << k;                    \
		} d[i] = r;);                                                         \
	}
#define SMALL_ALL(n, e)                         \
	SMALL(n##_f16, half_in, half_out, e)    \
	SMALL(n##_bf16, bf_in, bf_out, e)       \
	SMALL2(n##_f16x2, half_in, half_out, e) \
	SMALL2(n##_bf16x2, bf_in, bf_out, e)

SMALL_ALL(add, fp_fma_odd(x, 1.0f, y))
SMALL_ALL(sub, fp_fma_odd(x, 1.0f, -y))
SMALL_ALL(mul, (double)x *y)
SMALL_ALL(fma, fp_fma_odd(x, y, z))
SMALL_ALL(min, small_min(x, y, fl))
SMALL_ALL(max, small_max(x, y, fl))
SMALL_ALL(ex2, exp2((double)x))
SMALL_ALL(tanh, tanh((double)x))

/* These change only the sign bit; a NaN keeps its other bits. */
OP1(neg_f16, uint16_t, uint16_t, x ^ 0x8000)
OP1(abs_f16, uint16_t, uint16_t, x & 0x7fff)
OP1(neg_f16x2, uint32_t, uint32_t, x ^ 0x80008000u)
OP1(abs_f16x2, uint32_t, uint32_t, x & 0x7fff7fffu)
