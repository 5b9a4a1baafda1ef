// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Half, bfloat16, the formats of 4, 6 and 8 bits and tf32 compared with C: arithmetic with .relu,
 * .ftz and .sat, min and max with all their modifiers, conversions with every rounding, cvt.pack,
 * mixed precision and pairs of floats. The expected narrow results are found by a search among all
 * values.
 */
#include <fenv.h>

#include "tests/unit/ptx/test_ptx_op.h"
#include "tests/unit/ptx/test_ptx_ref.h"

static const uint64_t fv[] = {
	0,	    0x80000000, 0x3f800000, 0xbf800000, 0x00000001, 0x807fffff, 0x7f7fffff,
	0xff7fffff, 0x7f800000, 0xff800000, 0x7fc00000, 0x40490fdb, 0xc02df854, 0x3eaaaaab,
	0x477fe000, 0x477fefff, 0x477ff000, 0x33800000, 0x33800001, 0x38800000, 0x387fc000,
	0x43e00000, 0x43e80000, 0x43f00000, 0x3b000000, 0x3a800000, 0x3ac00000, 0x37800000,
	0x37000000, 0x40c00000, 0x40e00000, 0x3e800000, 0x3f801000, 0x3f803000, 0x3f800fff,
	0xbf801000, 0x47600000, 0x47680000, 0x00400000, 0x00400001, 0x7f000001, 0x3f000000,
};
static const uint64_t hv[] = {0,      0x8000, 0x3c00, 0xbc00, 0x0001, 0x83ff, 0x0400, 0x7bff,
			      0xfbff, 0x7c00, 0xfc00, 0x7e00, 0x3555, 0x4248, 0xc900, 0x6400};
static const uint64_t h2v[] = {0x3c008000, 0x00017bff, 0xfbfffc00, 0x7e003555,
			       0xc9004248, 0x83ff0400, 0x7c006400, 0xbc00b555};
static const uint64_t iv[] = {0,	  1,	      2,	  7,	      8,
			      127,	  128,	      255,	  256,	      32767,
			      32768,	  65535,      65536,	  0x7fffffff, 0x80000000,
			      0xffffffff, 0xffffff80, 0xffffff7f, 0xffff8000, 0xffff7fff,
			      0xfffffffe};

static double bf_of(uint64_t h)
{
	return f_of(h << 16);
}

static uint64_t bf(double v)
{
	/* Sums and products of two values are exact in double, so one rounding is enough. */
	uint64_t lo = signbit(v) ? 0x8000 : 0, sign = lo;
	double a = fabs(v);

	if (v != v)
		return 0x7fff;
	if (a >= ldexp(511, 119))
		return sign | 0x7f80;
	for (lo = (uint64_t)bits_f((float)a) >> 16; lo && bf_of(lo) > a; lo--)
		;
	if (lo >= 0x7f80)
		lo = 0x7f7f;
	if (a - bf_of(lo) > bf_of(lo + 1) - a || (a - bf_of(lo) == bf_of(lo + 1) - a && lo & 1))
		lo++;
	return sign | lo;
}

#define H(n, e)                                                        \
	static uint64_t n(uint64_t a, uint64_t b, uint64_t c)          \
	{                                                              \
		double x = half_of(a), y = half_of(b), z = half_of(c); \
		(void)x, (void)y, (void)z;                             \
		return (e);                                            \
	}
#define B(n, e)                                                      \
	static uint64_t n(uint64_t a, uint64_t b, uint64_t c)        \
	{                                                            \
		double x = bf_of(a & 0xffff), y = bf_of(b & 0xffff); \
		double z = bf_of(c & 0xffff);                        \
		(void)x, (void)y, (void)z;                           \
		return (e);                                          \
	}
#define FN(n, e)                                                            \
	static uint64_t n(uint64_t a, uint64_t b, uint64_t c)               \
	{                                                                   \
		const volatile float x = f_of(a), y = f_of(b), z = f_of(c); \
		(void)x, (void)y, (void)z;                                  \
		return (e);                                                 \
	}

static double relu(double v)
{
	return v != v || v > 0 ? v : 0;
}

static double hflush(double v)
{
	return fabs(v) < 0x1p-14 ? copysign(0, v) : v;
}

static double bflush(double v)
{
	return fabs(v) < 0x1p-126 ? copysign(0, v) : v;
}

static uint64_t hflush_out(uint64_t h)
{
	return h & 0x7c00 ? h : h & 0x8000;
}

static double one(double v)
{
	return v > 0 ? v < 1 ? v : 1 : 0;
}

/* -0 is below +0, and a number is before NaN unless `nan`. */
static double lesser(double x, double y, bool nan)
{
	if (x != x || y != y)
		return nan ? NAN : x != x ? y : x;
	return x < y || (x == y && signbit(x)) ? x : y;
}

static double greater(double x, double y, bool nan)
{
	return -lesser(-x, -y, nan);
}

static double xorsign(double v, double x, double y)
{
	return v != v ? v : copysign(v, signbit(x) != signbit(y) ? -1 : 1);
}

H(h_sub, to_half(x - y))
H(h_add_ftz_sat, hflush_out(to_half(one(hflush(x) + hflush(y)))))
H(h_mul_ftz, hflush_out(to_half(hflush(x) * hflush(y))))
H(h_fma_relu, to_half(relu(fma(x, y, z))))
H(h_min, to_half(lesser(x, y, false)))
H(h_max_nan, to_half(greater(x, y, true)))
H(h_min_xor, to_half(xorsign(lesser(fabs(x), fabs(y), true), x, y)))
H(h_neg, a ^ 0x8000)
H(h_abs, a & 0x7fff)
H(h_ltu_ftz, !(hflush(x) >= hflush(y)))
H(h_set_lt, x < y ? 0x3c00 : 0)
H(h_set_nan, x != x || y != y ? 0xffff : 0)
/* through the NaN of single precision */
H(h_to_f64, x != x ? 0x7fffffffe0000000 : bits_d(x))
H(h_rni_s64, x != x || x < -1e9 ? 1ull << 63 : x > 1e9 ? INT64_MAX : (uint64_t)(int64_t)rint(x))
H(h_rmi, to_half(floor(x)))
H(h_sat, to_half(one(x)))
H(h_to_bf, bf(x))
H(h_ex2, to_half(exp2(x)))
H(h_tanh, to_half(tanh(x)))
B(b_ex2, bf(bflush(exp2(bflush(x)))))
B(b_tanh, bf(tanh(x)))
B(b_sub, bf(x - y))
B(b_mul, bf(x *y))
B(b_fma, bf(fma(x, y, z)))
B(b_fma_relu, bf(relu(fma(x, y, z))))
B(b_min_nan, bf(lesser(x, y, true)))
B(b_max, bf(greater(x, y, false)))
B(b_max_xor, bf(xorsign(greater(fabs(x), fabs(y), false), x, y)))
B(b_neg, a ^ 0x8000)
B(b_gt, x > y)
B(b_to_f64, bits_d(x))
B(b_rni, bf(rint(x)))
B(b_to_h, to_half(x))
B(b_rzi_u32, x != x || x < 1 ? 0 : x >= 0x1p32 ? 0xffffffff : (uint64_t)x)
FN(i_to_bf, bf((double)(int32_t)a))
FN(i_to_h, to_half((double)(int32_t)a))

/* The same for both halves of a word. */
#define PAIR(n, f)                                                                    \
	static uint64_t n(uint64_t a, uint64_t b, uint64_t c)                         \
	{                                                                             \
		return f(a & 0xffff, b & 0xffff, c & 0xffff) |                        \
		       f(a >> 16 & 0xffff, b >> 16 & 0xffff, c >> 16 & 0xffff) << 16; \
	}
PAIR(h2_fma_relu, h_fma_relu)
PAIR(h2_min_xor, h_min_xor)
PAIR(b2_fma, b_fma)
PAIR(b2_min_nan, b_min_nan)
PAIR(b2_max_xor, b_max_xor)
PAIR(h2_neg, h_neg)
PAIR(h2_ex2, h_ex2)
PAIR(h2_tanh, h_tanh)
PAIR(b2_ex2, b_ex2)
PAIR(b2_tanh, b_tanh)

static uint64_t h2_lt_or(uint64_t a, uint64_t b, uint64_t c)
{
	uint64_t lo = half_of(a & 0xffff) < half_of(b & 0xffff);
	uint64_t hi = half_of(a >> 16) < half_of(b >> 16);

	return (lo || !c) | (uint64_t)(hi || !c) << 1;
}

FN(max_xor, canon((float)xorsign(greater(fabsf(x), fabsf(y), false), x, y)))
FN(min_xor_nan, canon((float)xorsign(lesser(fabsf(x), fabsf(y), true), x, y)))
FN(max3, canon((float)greater(greater(x, y, false), z, false)))
FN(min3_abs_nan, canon((float)lesser(lesser(fabsf(x), fabsf(y), true), fabsf(z), true)))

/* Mixed precision: the narrow operands are exact. */
FN(mix_add, canon((float)half_of(a) + y))
FN(mix_fma, canon(fmaf((float)bf_of(a), (float)bf_of(b), z)))
static uint64_t mix_sub_rz(uint64_t a, uint64_t b, uint64_t c)
{
	const volatile float x = half_of(a), y = f_of(b);
	volatile float r;

	(void)c;
	fesetround(FE_TOWARDZERO);
	r = x - y;
	fesetround(FE_TONEAREST);
	return canon(r);
}

/* Two floats in 64 bits: the lower from the values, the upper from their complement. */
#define F32X2(n, e)                                                              \
	static uint64_t n(uint64_t a, uint64_t b, uint64_t c)                    \
	{                                                                        \
		uint64_t r = 0;                                                  \
		(void)c;                                                         \
		for (int k = 0; k < 64; k += 32) {                               \
			const volatile float x = f_of(a >> k), y = f_of(b >> k); \
			const volatile float z = f_of(c >> k);                   \
			(void)z;                                                 \
			r |= (uint64_t)canon(e) << k;                            \
		}                                                                \
		return r;                                                        \
	}
F32X2(x2_add, x + y)
F32X2(x2_fma_ftz, flush(fmaf(flush(x), flush(y), flush(z))))
static const uint64_t f2v[] = {0x3f80000000000001, 0x7f7fffffc02df854, 0xff8000007f800000,
			       0x7fc0000033800000, 0x800000003eaaaaab, 0x0080000080000001,
			       0x00ffffff40490fdb};

/* ---- formats of 8 bits and less, by their definition ---- */

static double small_of(unsigned int u, int mant, int ebits, int inf)
{
	unsigned int mag = u & ((1u << (mant + ebits)) - 1), m = mag & ((1u << mant) - 1);
	int bias = (1 << (ebits - 1)) - 1, e = (int)(mag >> mant);
	double v = e ? ldexp(1 + ldexp(m, -mant), e - bias) : ldexp(m, 1 - bias - mant);

	if (inf && e == (1 << ebits) - 1)
		v = m ? NAN : INFINITY;
	else if (mant == 3 && ebits == 4 && mag == 0x7f)
		v = NAN;
	return u >> (mant + ebits) & 1 ? -v : v;
}

/* The nearest of all finite values, even on a tie. */
static unsigned int to_small(double v, int mant, int ebits, int max, int nan)
{
	unsigned int sign = (unsigned int)(signbit(v) ? 1 : 0) << (mant + ebits), best = 0;
	double a = fabs(v);

	if (v != v)
		return (unsigned int)(nan ? nan : max);
	if (a >= small_of((unsigned int)max, mant, ebits, 0))
		return sign | (unsigned int)max;
	for (unsigned int u = 1; u <= (unsigned int)max; u++) {
		double d = fabs(small_of(u, mant, ebits, 0) - a);
		double o = fabs(small_of(best, mant, ebits, 0) - a);

		if (d < o || (d == o && !(u & 1)))
			best = u;
	}
	return sign | best;
}

#define E4M3(v) to_small(v, 3, 4, 0x7e, 0x7f)
#define E5M2(v) to_small(v, 2, 5, 0x7b, 0x7f)
#define E2M3(v) to_small(v, 3, 2, 0x1f, 0)
#define E3M2(v) to_small(v, 2, 3, 0x1f, 0)
#define E2M1(v) to_small(v, 1, 2, 7, 0)
FN(e4m3, E4M3(x) << 8 | E4M3(y))
FN(e5m2, E5M2(x) << 8 | E5M2(y))
FN(e5m2_relu, E5M2(relu(x)) << 8 | E5M2(relu(y)))
FN(e2m3, E2M3(x) << 8 | E2M3(y))
FN(e3m2, E3M2(x) << 8 | E3M2(y))
FN(e2m1, E2M1(x) << 4 | E2M1(y))
FN(h2_e4m3, E4M3(half_of(a >> 16)) << 8 | E4M3(half_of(a & 0xffff)))
FN(e4m3_h2, to_half(small_of(a >> 8 & 255, 3, 4, 0)) << 16 | to_half(small_of(a & 255, 3, 4, 0)))
FN(e4m3_h2_relu,
   to_half(relu(small_of(a >> 8 & 255, 3, 4, 0))) << 16 | to_half(relu(small_of(a & 255, 3, 4, 0))))
FN(e5m2_h2, to_half(small_of(a >> 8 & 255, 2, 5, 1)) << 16 | to_half(small_of(a & 255, 2, 5, 1)))
FN(e2m3_h2, to_half(small_of(a >> 8 & 63, 3, 2, 0)) << 16 | to_half(small_of(a & 63, 3, 2, 0)))
FN(e2m1_h2, to_half(small_of(a >> 4 & 15, 1, 2, 0)) << 16 | to_half(small_of(a & 15, 1, 2, 0)))

static uint64_t scale(float x, bool up, bool fin)
{
	int e;

	if (x != x)
		return 0xff;
	x = fabsf(x);
	if (isinf(x))
		return fin ? 0xfe : 0xff;
	for (e = 0; e < 254 && (up ? ldexp(1, e - 127) < x : ldexp(1, e + 1 - 127) <= x); e++)
		;
	if (up && ldexp(1, e - 127) < x)
		return fin ? 0xfe : 0xff;
	return (uint64_t)e;
}
FN(ue8_rz, scale(x, false, true) << 8 | scale(y, false, true))
FN(ue8_rp, scale(x, true, true) << 8 | scale(y, true, true))
FN(ue8_bf, bf((a >> 8 & 255) == 255 ? NAN : ldexp(1, (int)(a >> 8 & 255) - 127)) << 16 |
		   bf((a & 255) == 255 ? NAN : ldexp(1, (int)(a & 255) - 127)))

/* tf32: the dropped bits decide the rounding. */
static uint64_t tf32(uint64_t a, int mode)
{
	uint64_t low = a & 0x1fff, r = a & ~0x1fffull;

	if ((a & 0x7fffffff) > 0x7f800000)
		return 0x7fffffff;
	if (mode == 0 ? low > 0x1000 || (low == 0x1000 && a & 0x2000) : mode == 1 && low >= 0x1000)
		r += 0x2000;
	return r;
}
FN(tf32_rn, tf32(a, 0))
FN(tf32_rna, tf32(a, 1))
FN(tf32_rz, tf32(a, 2))
FN(tf32_rn_relu, x != x ? 0x7fffffff : x > 0 ? tf32(a, 0) : 0)
FN(tf32_fin, tf32(a, 1) == 0x7f800000	? 0x7f7fe000
	     : tf32(a, 1) == 0xff800000 ? 0xff7fe000
					: tf32(a, 1))

static uint64_t fin16(uint64_t h, uint64_t inf)
{
	return (h & 0x7fff) == inf ? h - 1 : h;
}
FN(f_to_h_fin, fin16(to_half(x), 0x7c00))
FN(f_to_bf_fin, fin16(to_bf(x), 0x7f80))
FN(f_to_h_relu, to_half(relu(x)))
FN(pack_bf_relu, to_bf((float)relu(x)) << 16 | to_bf((float)relu(y)))
FN(f_to_bf_rz, x != x ? 0x7fff : a >> 16)
FN(pack_bf_rz, f_to_bf_rz(a, 0, 0) << 16 | f_to_bf_rz(b, 0, 0))

static uint64_t clamp(uint64_t v, int64_t min, int64_t max)
{
	int64_t s = (int32_t)v;

	return (uint64_t)(s < min ? min : s > max ? max : s);
}
FN(pack_s16, (clamp(a, -32768, 32767) & 0xffff) << 16 | (clamp(b, -32768, 32767) & 0xffff))
FN(pack_u16, clamp(a, 0, 65535) << 16 | clamp(b, 0, 65535))
FN(pack_u8, c << 16 | clamp(a, 0, 255) << 8 | clamp(b, 0, 255))
FN(pack_s8, c << 16 | (clamp(a, -128, 127) & 255) << 8 | (clamp(b, -128, 127) & 255))
FN(pack_s4, c << 8 | (clamp(a, -8, 7) & 15) << 4 | (clamp(b, -8, 7) & 15))
FN(pack_u2, c << 4 | clamp(a, 0, 3) << 2 | clamp(b, 0, 3))

#define V(v)	v, v, v, COUNT(v), COUNT(v), COUNT(v)
#define MIX(v)	hv, v, v, COUNT(hv), COUNT(v), COUNT(v)
#define HHH	'h', 'h', 'h', 'h'
#define HH	'h', 'h', 'h', '-'
#define H1	'h', 'h', '-', '-'
#define FFF	'r', 'r', 'r', 'r'
#define FF	'r', 'r', 'r', '-'
#define F1	'r', 'r', '-', '-'
#define PRED(s) "{ .reg .pred p; " s " selp.u32 $d, 1, 0, p; }"

/* Every half; and every byte, twice in each 16 bits, with another byte beside it. */
static uint64_t halves[65536], pairs[65536], bytes[256];
#define EVERY_HALF halves, halves, halves, 65536, 1, 1
#define EVERY_PAIR pairs, pairs, pairs, 65536, 1, 1
#define EVERY	   bytes, bytes, bytes, 256, 1, 1

static const struct op_case cases[] = {
	{"sub.f16 $d, $a, $b;", HH, h_sub, V(hv)},
	{"add.ftz.sat.f16 $d, $a, $b;", HH, h_add_ftz_sat, V(hv)},
	{"mul.ftz.f16 $d, $a, $b;", HH, h_mul_ftz, V(hv)},
	{"fma.rn.relu.f16 $d, $a, $b, $c;", HHH, h_fma_relu, V(hv)},
	{"min.f16 $d, $a, $b;", HH, h_min, V(hv)},
	{"max.NaN.f16 $d, $a, $b;", HH, h_max_nan, V(hv)},
	{"min.NaN.xorsign.abs.f16 $d, $a, $b;", HH, h_min_xor, V(hv)},
	{"neg.f16 $d, $a;", H1, h_neg, V(hv)},
	{"abs.f16 $d, $a;", H1, h_abs, V(hv)},
	{"set.lt.f16.f16 $d, $a, $b;", HH, h_set_lt, V(hv)},
	{"set.nan.u16.f16 $d, $a, $b;", HH, h_set_nan, V(hv)},
	{PRED("setp.ltu.ftz.f16 p, $a, $b;"), 'r', 'h', 'h', '-', h_ltu_ftz, V(hv)},
	{"cvt.f64.f16 $d, $a;", 'd', 'h', '-', '-', h_to_f64, EVERY_HALF},
	{"cvt.rni.s64.f16 $d, $a;", 'd', 'h', '-', '-', h_rni_s64, V(hv)},
	{"cvt.rmi.f16.f16 $d, $a;", H1, h_rmi, V(hv)},
	{"cvt.sat.f16.f16 $d, $a;", H1, h_sat, V(hv)},
	{"cvt.rn.bf16.f16 $d, $a;", H1, h_to_bf, V(hv)},
	{"fma.rn.relu.f16x2 $d, $a, $b, $c;", FFF, h2_fma_relu, V(h2v)},
	{"min.NaN.xorsign.abs.f16x2 $d, $a, $b;", FF, h2_min_xor, V(h2v)},
	{"neg.f16x2 $d, $a;", F1, h2_neg, V(h2v)},
	{"{ .reg .pred p, q, r; .reg .u32 %l; setp.ne.u32 r, $c, 0; mov.u32 $d, 0;"
	 " setp.lt.or.f16x2 p|q, $a, $b, !r; @p or.b32 $d, $d, 1; @q or.b32 $d, $d, 2; }",
	 FFF, h2_lt_or, h2v, h2v, iv, COUNT(h2v), COUNT(h2v), 3},
	{"ex2.approx.f16 $d, $a;", H1, h_ex2, EVERY_HALF},
	{"ex2.approx.f16x2 $d, $a;", F1, h2_ex2, EVERY_PAIR},
	{"ex2.approx.ftz.bf16 $d, $a;", H1, b_ex2, EVERY_HALF},
	{"ex2.approx.ftz.bf16x2 $d, $a;", F1, b2_ex2, EVERY_PAIR},
	{"tanh.approx.f16 $d, $a;", H1, h_tanh, EVERY_HALF},
	{"tanh.approx.f16x2 $d, $a;", F1, h2_tanh, EVERY_PAIR},
	{"tanh.approx.bf16 $d, $a;", H1, b_tanh, EVERY_HALF},
	{"tanh.approx.bf16x2 $d, $a;", F1, b2_tanh, EVERY_PAIR},
	{"sub.bf16 $d, $a, $b;", HH, b_sub, V(hv)},
	{"mul.bf16 $d, $a, $b;", HH, b_mul, V(hv)},
	{"fma.rn.bf16 $d, $a, $b, $c;", HHH, b_fma, V(hv)},
	{"fma.rn.relu.bf16 $d, $a, $b, $c;", HHH, b_fma_relu, V(hv)},
	{"min.NaN.bf16 $d, $a, $b;", HH, b_min_nan, V(hv)},
	{"max.bf16 $d, $a, $b;", HH, b_max, V(hv)},
	{"max.xorsign.abs.bf16 $d, $a, $b;", HH, b_max_xor, V(hv)},
	{"neg.bf16 $d, $a;", H1, b_neg, V(hv)},
	{PRED("setp.gt.bf16 p, $a, $b;"), 'r', 'h', 'h', '-', b_gt, V(hv)},
	{"fma.rn.bf16x2 $d, $a, $b, $c;", FFF, b2_fma, V(h2v)},
	{"min.NaN.bf16x2 $d, $a, $b;", FF, b2_min_nan, V(h2v)},
	{"max.xorsign.abs.bf16x2 $d, $a, $b;", FF, b2_max_xor, V(h2v)},
	{"cvt.f64.bf16 $d, $a;", 'd', 'h', '-', '-', b_to_f64, V(hv)},
	{"cvt.rni.bf16.bf16 $d, $a;", H1, b_rni, V(hv)},
	{"cvt.rn.f16.bf16 $d, $a;", H1, b_to_h, V(hv)},
	{"cvt.rzi.u32.bf16 $d, $a;", 'r', 'h', '-', '-', b_rzi_u32, V(hv)},
	{"cvt.rn.bf16.s32 $d, $a;", 'h', 'r', '-', '-', i_to_bf, V(iv)},
	{"cvt.rn.f16.s32 $d, $a;", 'h', 'r', '-', '-', i_to_h, V(iv)},
	{"max.xorsign.abs.f32 $d, $a, $b;", FF, max_xor, V(fv)},
	{"min.NaN.xorsign.abs.f32 $d, $a, $b;", FF, min_xor_nan, V(fv)},
	{"max.f32 $d, $a, $b, $c;", FFF, max3, fv, fv, fv, COUNT(fv), COUNT(fv), 14},
	{"min.NaN.abs.f32 $d, $a, $b, $c;", FFF, min3_abs_nan, fv, fv, fv, COUNT(fv), COUNT(fv),
	 14},
	{"add.f32.f16 $d, $a, $b;", 'r', 'h', 'r', '-', mix_add, MIX(fv)},
	{"sub.rz.f32.f16 $d, $a, $b;", 'r', 'h', 'r', '-', mix_sub_rz, MIX(fv)},
	{"fma.rn.f32.bf16 $d, $a, $b, $c;", 'r', 'h', 'h', 'r', mix_fma, hv, hv, fv, COUNT(hv),
	 COUNT(hv), COUNT(fv)},
	{"add.f32x2 $d, $a, $b;", 'd', 'd', 'd', '-', x2_add, V(f2v)},
	{"fma.rn.ftz.f32x2 $d, $a, $b, $c;", 'd', 'd', 'd', 'd', x2_fma_ftz, V(f2v)},
	{"cvt.rn.satfinite.e4m3x2.f32 $d, $a, $b;", 'h', 'r', 'r', '-', e4m3, V(fv)},
	{"cvt.rn.satfinite.e5m2x2.f32 $d, $a, $b;", 'h', 'r', 'r', '-', e5m2, V(fv)},
	{"cvt.rn.satfinite.relu.e5m2x2.f32 $d, $a, $b;", 'h', 'r', 'r', '-', e5m2_relu, V(fv)},
	{"cvt.rn.satfinite.e2m3x2.f32 $d, $a, $b;", 'h', 'r', 'r', '-', e2m3, V(fv)},
	{"cvt.rn.satfinite.e3m2x2.f32 $d, $a, $b;", 'h', 'r', 'r', '-', e3m2, V(fv)},
	{"{ .reg .b8 t; cvt.rn.satfinite.e2m1x2.f32 t, $a, $b; cvt.u16.u8 $d, t; }", 'h', 'r', 'r',
	 '-', e2m1, V(fv)},
	{"cvt.rn.satfinite.e4m3x2.f16x2 $d, $a;", 'h', 'r', '-', '-', h2_e4m3, V(h2v)},
	{"cvt.rn.f16x2.e4m3x2 $d, $a;", 'r', 'h', '-', '-', e4m3_h2, EVERY},
	{"cvt.rn.relu.f16x2.e4m3x2 $d, $a;", 'r', 'h', '-', '-', e4m3_h2_relu, EVERY},
	{"cvt.rn.f16x2.e5m2x2 $d, $a;", 'r', 'h', '-', '-', e5m2_h2, EVERY},
	{"cvt.rn.f16x2.e2m3x2 $d, $a;", 'r', 'h', '-', '-', e2m3_h2, EVERY},
	{"{ .reg .b8 t; cvt.u8.u16 t, $a; cvt.rn.f16x2.e2m1x2 $d, t; }", 'r', 'h', '-', '-',
	 e2m1_h2, EVERY},
	{"cvt.rz.satfinite.ue8m0x2.f32 $d, $a, $b;", 'h', 'r', 'r', '-', ue8_rz, V(fv)},
	{"cvt.rp.satfinite.ue8m0x2.f32 $d, $a, $b;", 'h', 'r', 'r', '-', ue8_rp, V(fv)},
	{"cvt.rn.bf16x2.ue8m0x2 $d, $a;", 'r', 'h', '-', '-', ue8_bf, EVERY},
	{"cvt.rn.tf32.f32 $d, $a;", F1, tf32_rn, V(fv)},
	{"cvt.rna.tf32.f32 $d, $a;", F1, tf32_rna, V(fv)},
	{"cvt.rz.tf32.f32 $d, $a;", F1, tf32_rz, V(fv)},
	{"cvt.rn.relu.tf32.f32 $d, $a;", F1, tf32_rn_relu, V(fv)},
	{"cvt.rna.satfinite.tf32.f32 $d, $a;", F1, tf32_fin, V(fv)},
	{"cvt.rn.satfinite.f16.f32 $d, $a;", 'h', 'r', '-', '-', f_to_h_fin, V(fv)},
	{"cvt.rn.satfinite.bf16.f32 $d, $a;", 'h', 'r', '-', '-', f_to_bf_fin, V(fv)},
	{"cvt.rn.relu.f16.f32 $d, $a;", 'h', 'r', '-', '-', f_to_h_relu, V(fv)},
	{"cvt.rn.relu.bf16x2.f32 $d, $a, $b;", FF, pack_bf_relu, V(fv)},
	{"cvt.rz.bf16.f32 $d, $a;", 'h', 'r', '-', '-', f_to_bf_rz, V(fv)},
	{"cvt.rz.bf16x2.f32 $d, $a, $b;", FF, pack_bf_rz, V(fv)},
	{"cvt.pack.sat.s16.s32 $d, $a, $b;", FF, pack_s16, V(iv)},
	{"cvt.pack.sat.u16.s32 $d, $a, $b;", FF, pack_u16, V(iv)},
	{"cvt.pack.sat.u8.s32.b32 $d, $a, $b, $c;", FFF, pack_u8, V(iv)},
	{"cvt.pack.sat.s8.s32.b32 $d, $a, $b, $c;", FFF, pack_s8, V(iv)},
	{"cvt.pack.sat.s4.s32.b32 $d, $a, $b, $c;", FFF, pack_s4, V(iv)},
	{"cvt.pack.sat.u2.s32.b32 $d, $a, $b, $c;", FFF, pack_u2, V(iv)},
};

static void test_exact(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < 65536; i++)
		halves[i] = i, pairs[i] = i << 16 | i * 40503 % 65536;
	for (unsigned int i = 0; i < 256; i++)
		bytes[i] = i << 8 | ((i * 37 + 11) & 255);
	for (size_t i = 0; i < COUNT(cases); i++)
		op_check(&cases[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_exact),
	};

	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	/* and as on a processor without AVX2 */
	setenv("QCU_SOFT_BASE_OPS", "1", 1);
	return failed + cmocka_run_group_tests(tests, NULL, NULL);
}
