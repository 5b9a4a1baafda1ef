// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Floating point and conversions compared with C: every rounding mode, .ftz, .sat, NaN, infinities
 * and denormals. The expected values are rounded with the host's fesetround() or by exact
 * arithmetic.
 */
#include <fenv.h>
#include <math.h>

#include "tests/unit/ptx/test_ptx_op.h"
#include "tests/unit/ptx/test_ptx_ref.h"

static const uint64_t fv[] = {
	0,	    0x80000000, 0x3f800000, 0xbf800000, 0x00000001, 0x80000001, 0x007fffff,
	0x00800000, 0x80800000, 0x7f7fffff, 0xff7fffff, 0x7f800000, 0xff800000, 0x7fc00000,
	0x40490fdb, 0xc02df854, 0x3eaaaaab, 0x33800000, 0x4b800001, 0x3f000000, 0x3fc00000,
	0x4f000000, 0xcf000000, 0x4effffff, 0x5f000000, 0xcf000001, 0x40200000, 0xbf000000,
};
static const uint64_t dv[] = {
	0,
	1ull << 63,
	0x3ff0000000000000,
	0xbff8000000000000,
	1,
	0x000fffffffffffff,
	0x0010000000000000,
	0x7fefffffffffffff,
	0x7ff0000000000000,
	0xfff0000000000000,
	0x7ff8000000000000,
	0x400921fb54442d18,
	0x3fd5555555555555,
	0x41dfffffffc00000,
	0xc1e0000000200000,
	0x43e0000000000000,
	0x36a0000000000000,
	0x47efffffefffffff,
	0x47effffff0000000,
	0x3690000000000001,
	0x4004000000000000,
	0xbfe0000000000000,
};
/* half: 0, 1, -1, denormals, the largest, infinity, NaN, some between */
static const uint64_t hv[] = {0,      0x8000, 0x3c00, 0xbc00, 0x0001, 0x83ff, 0x0400, 0x7bff,
			      0xfbff, 0x7c00, 0xfc00, 0x7e00, 0x3555, 0x4248, 0xc900, 0x6400};
static const uint64_t iv[] = {0,
			      1,
			      UINT64_MAX,
			      0x7fffffff,
			      0x80000000,
			      0xffffffff,
			      0x01000001,
			      0x01000003,
			      INT64_MAX,
			      1ull << 63,
			      0x0020000000000001,
			      0x0020000000000003,
			      0x7fffffc000000000,
			      255,
			      256,
			      0xff80,
			      0xfedcba98};

#define FN(n, e)                                                             \
	static uint64_t n(uint64_t a, uint64_t b, uint64_t c)                \
	{                                                                    \
		const volatile float x = f_of(a), y = f_of(b), z = f_of(c);  \
		const volatile double p = d_of(a), q = d_of(b), r = d_of(c); \
		(void)x, (void)y, (void)z, (void)p, (void)q, (void)r;        \
		return (e);                                                  \
	}
/* The same in the rounding mode `mode`. */
#define FR(n, mode, e)                                                       \
	static uint64_t n(uint64_t a, uint64_t b, uint64_t c)                \
	{                                                                    \
		const volatile float x = f_of(a), y = f_of(b), z = f_of(c);  \
		const volatile double p = d_of(a), q = d_of(b), r = d_of(c); \
		volatile double rd = 0;                                      \
		volatile float rf = 0;                                       \
		(void)x, (void)y, (void)z, (void)p, (void)q, (void)r;        \
		fesetround(mode);                                            \
		e;                                                           \
		fesetround(FE_TONEAREST);                                    \
		return sizeof(e) == 4 ? canon(rf) : bits_d(rd);              \
	}

FN(add_f, canon(x + y))
FR(add_rz, FE_TOWARDZERO, rf = x + y)
FR(add_rm, FE_DOWNWARD, rf = x + y)
FR(add_rp, FE_UPWARD, rf = x + y)
FN(add_ftz, canon(flush(flush(x) + flush(y))))
FN(add_sat, bits_f(sat(x + y)))
FN(sub_f, canon(x - y))
FN(mul_f, canon(x *y))
FR(mul_rz, FE_TOWARDZERO, rf = x * y)
FN(div_f, canon(x / y))
FR(div_rm, FE_DOWNWARD, rf = x / y)
FN(fma_f, canon(fmaf(x, y, z)))
FR(fma_rp, FE_UPWARD, rf = fmaf(x, y, z))
FR(fma_rz, FE_TOWARDZERO, rf = fmaf(x, y, z))
FN(fma_sat, bits_f(sat(fmaf(x, y, z))))
FN(sqrt_f, canon(sqrtf(x)))
FR(sqrt_rp, FE_UPWARD, rf = sqrtf(x))
FN(rcp_f, canon(1.0f / x))
FN(abs_f, canon(fabsf(x)))
FN(neg_f, canon(-x))

static uint64_t min_f(uint64_t a, uint64_t b, uint64_t c)
{
	float x = f_of(a), y = f_of(b);

	(void)c;
	if (x != x || y != y)
		return canon(x != x ? y : x);
	if (x == y)
		return a | b;
	return x < y ? a : b;
}

static uint64_t max_nan(uint64_t a, uint64_t b, uint64_t c)
{
	float x = f_of(a), y = f_of(b);

	(void)c;
	if (x != x || y != y)
		return 0x7fffffff;
	if (x == y)
		return a & b;
	return x > y ? a : b;
}

FR(add_d, FE_TONEAREST, rd = p + q)
FR(add_d_rm, FE_DOWNWARD, rd = p + q)
FR(mul_d, FE_TONEAREST, rd = p * q)
FR(mul_d_rp, FE_UPWARD, rd = p * q)
FR(div_d, FE_TONEAREST, rd = p / q)
FR(div_d_rz, FE_TOWARDZERO, rd = p / q)
FR(fma_d, FE_TONEAREST, rd = fma(p, q, r))
FR(fma_d_rm, FE_DOWNWARD, rd = fma(p, q, r))
FR(sqrt_d, FE_TONEAREST, rd = sqrt(p))
FN(setp_lt, x < y)
FN(setp_geu, !(x < y))
FN(setp_neu, x != y)
FN(setp_ne, x<y || x> y)
FN(setp_num, x == x && y == y)
FN(setp_d_gtu, !(p <= q))
FN(setp_ftz, flush(x) > flush(y))
FN(copysign_f, (b & 0x7fffffff) | (a & 0x80000000))
FN(subnormal, x != 0 && fabsf(x) < 0x1p-126f)

FN(setp_eq, x == y)
FN(setp_le, x <= y)
FN(setp_gt, x > y)
FN(setp_ge, x >= y)
FN(setp_equ, !(x < y || x > y))
FN(setp_ltu, !(x >= y))
FN(setp_leu, !(x > y))
FN(setp_gtu, !(x <= y))
FN(setp_nan, x != x || y != y)
FN(setp_d_eq, p == q)
FN(setp_d_ne, p<q || p> q)
FN(setp_d_lt, p < q)
FN(setp_d_geu, !(p < q))
FN(setp_d_nan, p != p || q != q)
/*
 * A result counts as too small if it is below the smallest normal number when rounded with an
 * unlimited exponent. So a result that reaches the smallest normal number only by rounding to a
 * denormal becomes zero.
 */
static uint64_t flush_result(double exact, float rounded)
{
	const volatile float wide = (float)(exact * 0x1p40);

	return fabsf(wide) < 0x1p-86f ? canon(copysignf(0, rounded)) : canon(rounded);
}
FN(mul_ftz, flush_result((double)flush(x) * flush(y), flush(x) * flush(y)))
FN(fma_ftz,
   flush_result((double)flush(x) * flush(y) + flush(z), fmaf(flush(x), flush(y), flush(z))))
FN(div_ftz, flush_result((double)flush(x) / flush(y), flush(x) / flush(y)))
FR(sqrt_rz, FE_TOWARDZERO, rf = sqrtf(x))
FR(rcp_rm, FE_DOWNWARD, rf = 1.0f / x)
FR(rcp_d, FE_TONEAREST, rd = 1.0 / p)
FR(sub_d_rp, FE_UPWARD, rd = p - q)
FR(sqrt_d_rm, FE_DOWNWARD, rd = sqrt(p))
FN(abs_d, a &INT64_MAX)
FN(neg_d, a ^ 1ull << 63)
FN(min_d, p != p ? b : q != q ? a : p == q ? a | b : p < q ? a : b)
FN(max_d, p != p ? b : q != q ? a : p == q ? a & b : p > q ? a : b)
FN(copysign_d, (b & INT64_MAX) | (a & 1ull << 63))
FN(finite_d, !!isfinite(p))
FN(infinite_f, !!isinf(x))
FN(normal_f, !!isnormal(x))
FN(number_d, p == p)
FN(set_f, x >= y ? 0x3f800000 : 0)
FN(set_u, !(x == y) ? 0xffffffff : 0)

/* float to integer: NaN, clamp, round */
static uint64_t to_int(double v, int rnd, int bits, bool sign, bool from_double)
{
	if (v != v)
		return bits == 64 || from_double ? 1ull << (bits - 1) : 0;
	v = rnd == 0 ? rint(v) : rnd == 1 ? trunc(v) : rnd == 2 ? floor(v) : ceil(v);
	if (sign) {
		if (v >= ldexp(1, bits - 1))
			return (1ull << (bits - 1)) - 1;
		if (v < -ldexp(1, bits - 1))
			return 1ull << (bits - 1);
		return (uint64_t)(int64_t)v;
	}
	if (v <= 0)
		return 0;
	return v >= ldexp(1, bits) ? UINT64_MAX >> (64 - bits) : (uint64_t)v;
}

FN(cvt_rzi_s32, to_int(x, 1, 32, true, false))
FN(cvt_rni_s32, to_int(x, 0, 32, true, false))
FN(cvt_rmi_u32, to_int(x, 2, 32, false, false))
FN(cvt_rpi_s64, to_int(x, 3, 64, true, false))
FN(cvt_rzi_u8, to_int(x, 1, 8, false, false))
FN(cvt_rzi_s16, to_int(x, 1, 16, true, false))
FN(cvt_d_rzi_s32, to_int(p, 1, 32, true, true))
FN(cvt_d_rni_u64, to_int(p, 0, 64, false, true))
FN(cvt_d_f, bits_d(x))
FN(cvt_f_d, canon((float)p))
FR(cvt_f_d_rz, FE_TOWARDZERO, rf = (float)p)
FR(cvt_f_d_rp, FE_UPWARD, rf = (float)p)
FN(cvt_rni_f, canon(rintf(x)))
FN(cvt_rmi_f, canon(floorf(x)))
FN(cvt_sat_f, bits_f(sat(x)))
FR(cvt_f_s32, FE_TONEAREST, rf = (float)(int32_t)a)
FR(cvt_f_u32_rz, FE_TOWARDZERO, rf = (float)(uint32_t)a)
FR(cvt_f_s64_rm, FE_DOWNWARD, rf = (float)(int64_t)a)
FR(cvt_f_u64, FE_TONEAREST, rf = (float)a)
FR(cvt_d_s64_rp, FE_UPWARD, rd = (double)(int64_t)a)
FR(cvt_d_u32, FE_TONEAREST, rd = (double)(uint32_t)a)
FN(cvt_s8_s32, (uint32_t)(int32_t)(int8_t)a)
FN(cvt_u16_u32, a & 0xffff)
FN(cvt_sat_u8, (int32_t)a<0 ? 0 : (int32_t)a> 255 ? 255 : a)
FN(cvt_sat_s16, (int64_t)a > 32767 ? 32767 : (int64_t)a < -32768 ? 0x8000 : a)
FN(cvt_s64_s16, (uint64_t)(int64_t)(int16_t)a)

#define H(n, e)                                                        \
	static uint64_t n(uint64_t a, uint64_t b, uint64_t c)          \
	{                                                              \
		double x = half_of(a), y = half_of(b), z = half_of(c); \
		(void)x, (void)y, (void)z;                             \
		return (e);                                            \
	}
H(h_add, to_half(x + y))
H(h_mul, to_half(x *y))
H(h_fma, to_half(fma(x, y, z)))
H(h_fma_sat, to_half(!(fma(x, y, z) > 0) ? 0 : fma(x, y, z) > 1 ? 1 : fma(x, y, z)))
H(h_lt, x < y)
H(h_to_f, canon((float)x))
FN(f_to_h, to_half(x))
FN(f_to_bf, to_bf(x))
FN(bf_add, to_bf(f_of(a << 16) + f_of(b << 16)))
FN(pack_h, to_half(x) << 16 | to_half(y))

static uint64_t h2_fma(uint64_t a, uint64_t b, uint64_t c)
{
	return h_fma(a & 0xffff, b & 0xffff, c & 0xffff) | h_fma(a >> 16, b >> 16, c >> 16) << 16;
}

static uint64_t h2_set_lt(uint64_t a, uint64_t b, uint64_t c)
{
	return (h_lt(a & 0xffff, b & 0xffff, c) ? 0xffff : 0) |
	       (h_lt(a >> 16 & 0xffff, b >> 16 & 0xffff, c) ? 0xffff0000u : 0);
}

static uint64_t h2_set_lt_one(uint64_t a, uint64_t b, uint64_t c)
{
	return h2_set_lt(a, b, c) & 0x3c003c00;
}

#define V(v)	v, v, v, COUNT(v), COUNT(v), 12
#define FFF	'r', 'r', 'r', 'r'
#define FF	'r', 'r', 'r', '-'
#define F1	'r', 'r', '-', '-'
#define PRED(s) "{ .reg .pred p; " s " selp.u32 $d, 1, 0, p; }"

static const struct op_case cases[] = {
	{"add.f32 $d, $a, $b;", FF, add_f, V(fv)},
	{"add.rz.f32 $d, $a, $b;", FF, add_rz, V(fv)},
	{"add.rm.f32 $d, $a, $b;", FF, add_rm, V(fv)},
	{"add.rp.f32 $d, $a, $b;", FF, add_rp, V(fv)},
	{"add.ftz.f32 $d, $a, $b;", FF, add_ftz, V(fv)},
	{"add.sat.f32 $d, $a, $b;", FF, add_sat, V(fv)},
	{"sub.rn.f32 $d, $a, $b;", FF, sub_f, V(fv)},
	{"mul.f32 $d, $a, $b;", FF, mul_f, V(fv)},
	{"mul.rz.f32 $d, $a, $b;", FF, mul_rz, V(fv)},
	{"div.rn.f32 $d, $a, $b;", FF, div_f, V(fv)},
	{"div.rm.f32 $d, $a, $b;", FF, div_rm, V(fv)},
	{"fma.rn.f32 $d, $a, $b, $c;", FFF, fma_f, V(fv)},
	{"fma.rp.f32 $d, $a, $b, $c;", FFF, fma_rp, V(fv)},
	{"mad.rz.f32 $d, $a, $b, $c;", FFF, fma_rz, V(fv)},
	{"fma.rn.sat.f32 $d, $a, $b, $c;", FFF, fma_sat, V(fv)},
	{"sqrt.rn.f32 $d, $a;", F1, sqrt_f, V(fv)},
	{"sqrt.rp.f32 $d, $a;", F1, sqrt_rp, V(fv)},
	{"rcp.rn.f32 $d, $a;", F1, rcp_f, V(fv)},
	{"abs.f32 $d, $a;", F1, abs_f, V(fv)},
	{"neg.f32 $d, $a;", F1, neg_f, V(fv)},
	{"min.f32 $d, $a, $b;", FF, min_f, V(fv)},
	{"max.NaN.f32 $d, $a, $b;", FF, max_nan, V(fv)},
	{"add.f64 $d, $a, $b;", 'd', 'd', 'd', '-', add_d, V(dv)},
	{"add.rm.f64 $d, $a, $b;", 'd', 'd', 'd', '-', add_d_rm, V(dv)},
	{"mul.rn.f64 $d, $a, $b;", 'd', 'd', 'd', '-', mul_d, V(dv)},
	{"mul.rp.f64 $d, $a, $b;", 'd', 'd', 'd', '-', mul_d_rp, V(dv)},
	{"div.rn.f64 $d, $a, $b;", 'd', 'd', 'd', '-', div_d, V(dv)},
	{"div.rz.f64 $d, $a, $b;", 'd', 'd', 'd', '-', div_d_rz, V(dv)},
	{"fma.rn.f64 $d, $a, $b, $c;", 'd', 'd', 'd', 'd', fma_d, V(dv)},
	{"fma.rm.f64 $d, $a, $b, $c;", 'd', 'd', 'd', 'd', fma_d_rm, V(dv)},
	{"sqrt.rn.f64 $d, $a;", 'd', 'd', '-', '-', sqrt_d, V(dv)},
	{PRED("setp.lt.f32 p, $a, $b;"), FF, setp_lt, V(fv)},
	{PRED("setp.geu.f32 p, $a, $b;"), FF, setp_geu, V(fv)},
	{PRED("setp.neu.f32 p, $a, $b;"), FF, setp_neu, V(fv)},
	{PRED("setp.ne.f32 p, $a, $b;"), FF, setp_ne, V(fv)},
	{PRED("setp.num.f32 p, $a, $b;"), FF, setp_num, V(fv)},
	{PRED("setp.gt.ftz.f32 p, $a, $b;"), FF, setp_ftz, V(fv)},
	{PRED("setp.gtu.f64 p, $a, $b;"), 'r', 'd', 'd', '-', setp_d_gtu, V(dv)},
	{PRED("testp.subnormal.f32 p, $a;"), F1, subnormal, V(fv)},
	{PRED("setp.eq.f32 p, $a, $b;"), FF, setp_eq, V(fv)},
	{PRED("setp.le.f32 p, $a, $b;"), FF, setp_le, V(fv)},
	{PRED("setp.gt.f32 p, $a, $b;"), FF, setp_gt, V(fv)},
	{PRED("setp.ge.f32 p, $a, $b;"), FF, setp_ge, V(fv)},
	{PRED("setp.equ.f32 p, $a, $b;"), FF, setp_equ, V(fv)},
	{PRED("setp.ltu.f32 p, $a, $b;"), FF, setp_ltu, V(fv)},
	{PRED("setp.leu.f32 p, $a, $b;"), FF, setp_leu, V(fv)},
	{PRED("setp.gtu.f32 p, $a, $b;"), FF, setp_gtu, V(fv)},
	{PRED("setp.nan.f32 p, $a, $b;"), FF, setp_nan, V(fv)},
	{PRED("setp.eq.f64 p, $a, $b;"), 'r', 'd', 'd', '-', setp_d_eq, V(dv)},
	{PRED("setp.ne.f64 p, $a, $b;"), 'r', 'd', 'd', '-', setp_d_ne, V(dv)},
	{PRED("setp.lt.f64 p, $a, $b;"), 'r', 'd', 'd', '-', setp_d_lt, V(dv)},
	{PRED("setp.geu.f64 p, $a, $b;"), 'r', 'd', 'd', '-', setp_d_geu, V(dv)},
	{PRED("setp.nan.f64 p, $a, $b;"), 'r', 'd', 'd', '-', setp_d_nan, V(dv)},
	{PRED("testp.infinite.f32 p, $a;"), F1, infinite_f, V(fv)},
	{PRED("testp.normal.f32 p, $a;"), F1, normal_f, V(fv)},
	{PRED("testp.finite.f64 p, $a;"), 'r', 'd', '-', '-', finite_d, V(dv)},
	{PRED("testp.number.f64 p, $a;"), 'r', 'd', '-', '-', number_d, V(dv)},
	{"mul.ftz.f32 $d, $a, $b;", FF, mul_ftz, V(fv)},
	{"fma.rn.ftz.f32 $d, $a, $b, $c;", FFF, fma_ftz, V(fv)},
	{"div.rn.ftz.f32 $d, $a, $b;", FF, div_ftz, V(fv)},
	{"sqrt.rz.f32 $d, $a;", F1, sqrt_rz, V(fv)},
	{"rcp.rm.f32 $d, $a;", F1, rcp_rm, V(fv)},
	{"rcp.rn.f64 $d, $a;", 'd', 'd', '-', '-', rcp_d, V(dv)},
	{"sub.rp.f64 $d, $a, $b;", 'd', 'd', 'd', '-', sub_d_rp, V(dv)},
	{"sqrt.rm.f64 $d, $a;", 'd', 'd', '-', '-', sqrt_d_rm, V(dv)},
	{"abs.f64 $d, $a;", 'd', 'd', '-', '-', abs_d, V(dv)},
	{"neg.f64 $d, $a;", 'd', 'd', '-', '-', neg_d, V(dv)},
	{"min.f64 $d, $a, $b;", 'd', 'd', 'd', '-', min_d, V(dv)},
	{"max.f64 $d, $a, $b;", 'd', 'd', 'd', '-', max_d, V(dv)},
	{"copysign.f64 $d, $a, $b;", 'd', 'd', 'd', '-', copysign_d, V(dv)},
	{"set.ge.f32.f32 $d, $a, $b;", FF, set_f, V(fv)},
	{"set.neu.u32.f32 $d, $a, $b;", FF, set_u, V(fv)},
	{"copysign.f32 $d, $a, $b;", FF, copysign_f, V(fv)},
	{"cvt.rzi.s32.f32 $d, $a;", F1, cvt_rzi_s32, V(fv)},
	{"cvt.rni.s32.f32 $d, $a;", F1, cvt_rni_s32, V(fv)},
	{"cvt.rmi.u32.f32 $d, $a;", F1, cvt_rmi_u32, V(fv)},
	{"cvt.rpi.s64.f32 $d, $a;", 'd', 'r', '-', '-', cvt_rpi_s64, V(fv)},
	{"cvt.rzi.u8.f32 $d, $a;", F1, cvt_rzi_u8, V(fv)},
	{"cvt.rzi.s16.f32 $d, $a;", 'h', 'r', '-', '-', cvt_rzi_s16, V(fv)},
	{"cvt.rzi.s32.f64 $d, $a;", 'r', 'd', '-', '-', cvt_d_rzi_s32, V(dv)},
	{"cvt.rni.u64.f64 $d, $a;", 'd', 'd', '-', '-', cvt_d_rni_u64, V(dv)},
	{"cvt.f64.f32 $d, $a;", 'd', 'r', '-', '-', cvt_d_f, V(fv)},
	{"cvt.rn.f32.f64 $d, $a;", 'r', 'd', '-', '-', cvt_f_d, V(dv)},
	{"cvt.rz.f32.f64 $d, $a;", 'r', 'd', '-', '-', cvt_f_d_rz, V(dv)},
	{"cvt.rp.f32.f64 $d, $a;", 'r', 'd', '-', '-', cvt_f_d_rp, V(dv)},
	{"cvt.rni.f32.f32 $d, $a;", F1, cvt_rni_f, V(fv)},
	{"cvt.rmi.f32.f32 $d, $a;", F1, cvt_rmi_f, V(fv)},
	{"cvt.sat.f32.f32 $d, $a;", F1, cvt_sat_f, V(fv)},
	{"cvt.rn.f32.s32 $d, $a;", F1, cvt_f_s32, V(iv)},
	{"cvt.rz.f32.u32 $d, $a;", F1, cvt_f_u32_rz, V(iv)},
	{"cvt.rm.f32.s64 $d, $a;", 'r', 'd', '-', '-', cvt_f_s64_rm, V(iv)},
	{"cvt.rn.f32.u64 $d, $a;", 'r', 'd', '-', '-', cvt_f_u64, V(iv)},
	{"cvt.rp.f64.s64 $d, $a;", 'd', 'd', '-', '-', cvt_d_s64_rp, V(iv)},
	{"cvt.rn.f64.u32 $d, $a;", 'd', 'r', '-', '-', cvt_d_u32, V(iv)},
	{"cvt.s32.s8 $d, $a;", F1, cvt_s8_s32, V(iv)},
	{"cvt.u16.u32 $d, $a;", 'h', 'r', '-', '-', cvt_u16_u32, V(iv)},
	{"cvt.sat.u8.s32 $d, $a;", F1, cvt_sat_u8, V(iv)},
	{"cvt.sat.s16.s64 $d, $a;", 'h', 'd', '-', '-', cvt_sat_s16, V(iv)},
	{"cvt.s64.s16 $d, $a;", 'd', 'h', '-', '-', cvt_s64_s16, V(iv)},
	{"add.f16 $d, $a, $b;", 'h', 'h', 'h', '-', h_add, V(hv)},
	{"mul.f16 $d, $a, $b;", 'h', 'h', 'h', '-', h_mul, V(hv)},
	{"fma.rn.f16 $d, $a, $b, $c;", 'h', 'h', 'h', 'h', h_fma, V(hv)},
	{"fma.rn.sat.f16 $d, $a, $b, $c;", 'h', 'h', 'h', 'h', h_fma_sat, V(hv)},
	{"fma.rn.f16x2 $d, $a, $b, $c;", FFF, h2_fma, V(fv)},
	{"set.lt.u32.f16x2 $d, $a, $b;", FF, h2_set_lt, V(fv)},
	{"set.lt.f16x2.f16x2 $d, $a, $b;", FF, h2_set_lt_one, V(fv)},
	{PRED("setp.lt.f16 p, $a, $b;"), 'r', 'h', 'h', '-', h_lt, V(hv)},
	{"cvt.f32.f16 $d, $a;", 'r', 'h', '-', '-', h_to_f, V(hv)},
	{"cvt.rn.f16.f32 $d, $a;", 'h', 'r', '-', '-', f_to_h, V(fv)},
	{"cvt.rn.bf16.f32 $d, $a;", 'h', 'r', '-', '-', f_to_bf, V(fv)},
	{"add.rn.bf16 $d, $a, $b;", 'h', 'h', 'h', '-', bf_add, V(hv)},
	{"cvt.rn.f16x2.f32 $d, $a, $b;", FF, pack_h, V(fv)},
};

static void test_exact(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++)
		op_check(&cases[i]);
}

/* Approximations: within the error that PTX allows; special values must be exact. */
static void test_approximations(void **state)
{
	static const struct {
		const char *op;
		double (*want)(double);
		double rel, abs;
	} ops[] = {{"ex2.approx.f32", exp2, 3e-7, 0},	{"lg2.approx.f32", log2, 3e-7, 3e-7},
		   {"sin.approx.f32", sin, 1e-6, 1e-6}, {"cos.approx.f32", cos, 1e-6, 1e-6},
		   {"sqrt.approx.f32", sqrt, 3e-7, 0},	{"tanh.approx.f32", tanh, 5e-4, 0}};
	float *io = dev_alloc(64 * 4);

	(void)state;
	for (size_t k = 0; k < COUNT(ops); k++) {
		char text[600];
		struct ptx_module *m;

		snprintf(text, sizeof(text),
			 ".version 8.0\n.target sm_75\n.address_size 64\n.entry k(.param .u64 p)\n"
			 "{ .reg .f32 %%f<2>; .reg .b32 %%r; .reg .b64 %%d<3>;\n"
			 "ld.param.u64 %%d0, [p]; mov.u32 %%r, %%tid.x;\n"
			 "mul.wide.u32 %%d1, %%r, 4; add.u64 %%d0, %%d0, %%d1;\n"
			 "ld.global.f32 %%f0, [%%d0]; %s %%f1, %%f0;\n"
			 "st.global.f32 [%%d0+128], %%f1; }",
			 ops[k].op);
		for (int i = 0; i < 32; i++)
			io[i] = (float)(i - 10) * 0.3f;
		io[0] = INFINITY;
		io[1] = NAN;
		io[2] = 0;
		m = must_load(text);
		must_launch(m, "k", 1, 32, 0, &io, sizeof(io));
		for (int i = 0; i < 32; i++) {
			double want = ops[k].want(io[i]);

			if (isnan(want))
				assert_int_equal(bits_f(io[i + 32]), 0x7fffffff);
			else if (isinf(want))
				assert_true(io[i + 32] == want);
			else
				assert_true(fabs(io[i + 32] - want) <=
					    ops[k].rel * fabs(want) + ops[k].abs);
		}
		ptx_unload(m);
	}
	dev_free(io);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_exact),
		cmocka_unit_test(test_approximations),
	};

	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	/* and as on a processor without AVX2 */
	setenv("QCU_SOFT_BASE_OPS", "1", 1);
	return failed + cmocka_run_group_tests(tests, NULL, NULL);
}
