// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Integer instructions that few programs use, compared with C: video instructions with their parts,
 * masks, saturation and second operations; packed 16-bit arithmetic; 24-bit multiplication; masks
 * and the modes of prmt; lop3 with a predicate.
 */
#include "tests/unit/ptx/test_ptx_op.h"

static const uint64_t word[] = {0,	    1,		0x7f,	    0x80,	0xff,
				0x8000,	    0x7fff,	0xffff,	    0x80008000, 0x7fff7fff,
				0x01ff80fe, 0x7f80ff01, 0x7fffffff, 0x80000000, 0xffffffff,
				0x12345678, 0xfedcba98};
static const uint64_t amount[] = {0, 1, 5, 15, 16, 31, 32, 33, 255, 0xffffffff, 0x1f0000, 0x200003};

#define FN(n, e)                                              \
	static uint64_t n(uint64_t a, uint64_t b, uint64_t c) \
	{                                                     \
		(void)a, (void)b, (void)c;                    \
		return (uint64_t)(e);                         \
	}

static int64_t sat(int64_t v, int bits, bool sign)
{
	int64_t max = (1ll << (bits - sign)) - 1, min = sign ? -max - 1 : 0;

	return v < min ? min : v > max ? max : v;
}

#define S32(v)	  ((int64_t)(int32_t)(v))
#define U32(v)	  ((int64_t)(uint32_t)(v))
#define SB(v, n)  ((int64_t)(int8_t)((v) >> 8 * (n)))
#define UB(v, n)  ((int64_t)(uint8_t)((v) >> 8 * (n)))
#define SH(v, n)  ((int64_t)(int16_t)((v) >> 16 * (n)))
#define UH(v, n)  ((int64_t)(uint16_t)((v) >> 16 * (n)))
#define MIN(x, y) ((x) < (y) ? (x) : (y))
#define MAX(x, y) ((x) > (y) ? (x) : (y))
#define ABS(x)	  ((x) < 0 ? -(x) : (x))

FN(vadd, S32(a) + S32(b))
FN(vadd_sat, sat(UB(a, 0) + SH(b, 1), 32, true))
FN(vadd_sat_u, sat(S32(a) + S32(b), 32, false))
FN(vadd_byte, (c & 0xff00ffff) | (uint64_t)(sat(UB(a, 3) + SH(b, 0), 8, true) & 0xff) << 16)
FN(vadd_half, (c & 0xffff) | (uint64_t)sat(S32(a) + U32(b), 16, false) << 16)
FN(vsub_min, MIN(S32((uint64_t)(UH(a, 1) - UB(b, 1))), S32(c)))
FN(vabsdiff, ABS(S32(a) - S32(b)))
FN(vabsdiff_add, U32(c) + ABS(UB(a, 0) - UB(b, 2)))
FN(vmin, MIN(S32(a), S32(b)))
FN(vmax_max, MAX(U32((uint64_t)MAX(SH(a, 0), U32(b))), U32(c)))
FN(vshl_clamp, b > 31 ? 0 : a << b)
FN(vshr_wrap, (uint64_t)(S32(a) >> (b & 31)) + c)
FN(vshl_sat, sat(b > 32 ? (int64_t)(a << 32) : (int64_t)(a << b), 32, false))
FN(vmad, (uint64_t)(SB(a, 1) * SH(b, 0)) + c)
FN(vmad_po, (UB(a, 3) * UB(b, 0) + U32(c) + 1) >> 7)
FN(vmad_sat, sat((SH(a, 1) * SH(b, 0) - S32(c)) >> 15, 32, true))
FN(vmad_neg, sat(-(S32(a) * SB(b, 0)) + S32(c), 32, true))
FN(vset, U32(a) < S32(b))
FN(vset_add, c + (SB(a, 1) >= UH(b, 0)))

/* Element k of (b:a), as named by a digit of a selector. */
static int64_t pick(uint64_t a, uint64_t b, int k, int bits, bool sign)
{
	uint64_t v = (b << 32 | a) >> k * bits & ((1u << bits) - 1);

	return sign && v >> (bits - 1) ? (int64_t)v - (1 << bits) : (int64_t)v;
}

#define TWO(n, e)                                                    \
	static uint64_t n(uint64_t a, uint64_t b, uint64_t c)        \
	{                                                            \
		uint64_t r = 0;                                      \
		(void)c;                                             \
		for (int k = 0; k < 2; k++) {                        \
			int64_t x = SH(a, k), y = SH(b, k), t = (e); \
			(void)x, (void)y;                            \
			r |= ((uint64_t)t & 0xffff) << 16 * k;       \
		}                                                    \
		return r;                                            \
	}
#define FOUR(n, e)                                            \
	static uint64_t n(uint64_t a, uint64_t b, uint64_t c) \
	{                                                     \
		uint64_t r = 0;                               \
		(void)c;                                      \
		for (int k = 0; k < 4; k++) {                 \
			int64_t x = SB(a, k), y = SB(b, k);   \
			int64_t p = UB(a, k), q = UB(b, k);   \
			int64_t t = (e);                      \
			(void)x, (void)y, (void)p, (void)q;   \
			r |= ((uint64_t)t & 0xff) << 8 * k;   \
		}                                             \
		return r;                                     \
	}
TWO(vadd2_sat, sat(x + y, 16, true))
TWO(vsub2, UH(a, k) - UH(b, k))
TWO(vavrg2, x + y >= 0 ? (x + y + 1) >> 1 : (x + y) >> 1)
TWO(vmin2, MIN(x, y))
TWO(vset2, x < y)
TWO(add2, x + y)
TWO(max2_relu, MAX(MAX(x, y), 0))
TWO(min2_u, MIN(UH(a, k), UH(b, k)))
FOUR(vadd4_sat, sat(x + y, 8, true))
FOUR(vsub4_usat, sat(p - q, 8, false))
FOUR(vavrg4, (p + q + 1) >> 1)
FOUR(vabsdiff4, ABS(p - q))
FOUR(vmax4, MAX(x, y))
FOUR(vset4, x > y)

/* Halves 3 and 1, and 2 and 0, of (b:a): only the lower result counts, added to c. */
static uint64_t vadd2_pick(uint64_t a, uint64_t b, uint64_t c)
{
	return c + (uint64_t)(pick(a, b, 1, 16, false) + pick(a, b, 0, 16, false));
}

/* Bytes 5432 and 1076: the upper two results, with the lower two of c. */
static uint64_t vabsdiff4_pick(uint64_t a, uint64_t b, uint64_t c)
{
	static const int x[4] = {2, 3, 4, 5}, y[4] = {6, 7, 0, 1};
	uint64_t r = c & 0xffff;

	for (int k = 2; k < 4; k++) {
		int64_t t = pick(a, b, x[k], 8, false) - pick(a, b, y[k], 8, false);

		r |= (uint64_t)ABS(t) << 8 * k;
	}
	return r;
}

static uint64_t vset4_add(uint64_t a, uint64_t b, uint64_t c)
{
	for (int k = 0; k < 4; k++)
		c += UB(a, k) > SB(b, k);
	return c;
}

#define S24(v) ((int64_t)(int32_t)((uint32_t)(v) << 8) >> 8)
#define U24(v) ((v)&0xffffff)
FN(mul24_u, U24(a) * U24(b))
FN(mul24_s, S24(a) * S24(b))
FN(mul24_hi, (uint64_t)(S24(a) * S24(b)) >> 16)
FN(mad24_s, (uint64_t)(S24(a) * S24(b)) + c)
FN(mad24_hi, (U24(a) * U24(b) >> 16) + c)
FN(mad24_hi_sat, sat(S32((uint64_t)(S24(a) * S24(b)) >> 16) + S32(c), 32, true))
FN(madhi_sat, sat((S32(a) * S32(b) >> 32) + S32(c), 32, true))
FN(madhi_s, (S32(a) * S32(b) >> 32) + S32(c))
FN(subsat, sat(S32(a) - S32(b), 32, true))
FN(min_relu, MAX(MIN(S32(a), S32(b)), 0))

static uint64_t bmsk(uint64_t a, uint64_t b, bool wrap)
{
	uint64_t r = 0;

	if (wrap) {
		a &= 31;
		b &= 31;
	}
	for (uint64_t i = 0; i < 32; i++)
		r |= (uint64_t)(i >= a && i - a < b) << i;
	return r;
}
FN(bmsk_clamp, bmsk(a, b, false))
FN(bmsk_wrap, bmsk(a, b, true))

static uint64_t szext(uint64_t a, uint64_t b, bool wrap, bool sign)
{
	uint64_t r = 0;

	b = wrap ? b & 31 : b > 32 ? 32 : b;
	for (uint64_t i = 0; i < 32; i++)
		r |= (i < b ? a >> i & 1 : sign && b ? a >> (b - 1) & 1 : 0) << i;
	return r;
}
FN(szext_s, szext(a, b, false, true))
FN(szext_u, szext(a, b, false, false))
FN(szext_ws, szext(a, b, true, true))

/* The manual's loop: from base on, in the direction of the sign, the n-th bit that is set. */
static uint64_t fns(uint64_t a, uint64_t b, uint64_t c)
{
	int64_t n = S32(c), pos = (int64_t)b;

	if (!n)
		return b < 32 && a >> b & 1 ? b : 0xffffffff;
	for (int64_t left = n < 0 ? -n : n; pos >= 0 && pos < 32; pos += n < 0 ? -1 : 1) {
		left -= a >> pos & 1;
		if (!left)
			return (uint64_t)pos;
	}
	return 0xffffffff;
}

static uint64_t bytes(uint64_t a, uint64_t b, const int sel[4])
{
	uint64_t v = b << 32 | a, r = 0;

	for (int i = 0; i < 4; i++)
		r |= (v >> sel[i] * 8 & 255) << 8 * i;
	return r;
}
#define PRMT(n, ...)                                          \
	static uint64_t n(uint64_t a, uint64_t b, uint64_t c) \
	{                                                     \
		const int k = (int)(c & 3);                   \
		const int sel[4] = {__VA_ARGS__};             \
		(void)k;                                      \
		return bytes(a, b, sel);                      \
	}
PRMT(prmt_f4e, k, k + 1, k + 2, k + 3)
PRMT(prmt_b4e, k, (k + 7) & 7, (k + 6) & 7, (k + 5) & 7)
PRMT(prmt_rc8, k, k, k, k)
PRMT(prmt_ecl, MAX(k, 0), MAX(k, 1), MAX(k, 2), 3)
PRMT(prmt_ecr, 0, MIN(k, 1), MIN(k, 2), k)
PRMT(prmt_rc16, (k & 1) * 2, (k & 1) * 2 + 1, (k & 1) * 2, (k & 1) * 2 + 1)

static uint64_t bfi64(uint64_t a, uint64_t b, uint64_t c)
{
	for (uint64_t i = 0; i < 11; i++)
		if ((c & 255) + i < 64)
			b = (b & ~(1ull << ((c & 255) + i))) | (a >> i & 1) << ((c & 255) + i);
	return b;
}

static uint64_t brev64(uint64_t a, uint64_t b, uint64_t c)
{
	uint64_t r = 0;

	(void)b, (void)c;
	for (int i = 0; i < 64; i++)
		r |= (a >> i & 1) << (63 - i);
	return r;
}

static uint64_t shiftamt(uint64_t a, uint64_t b, uint64_t c)
{
	uint64_t n = 0;

	(void)b, (void)c;
	a = (int64_t)a < 0 ? ~a : a;
	if (!a)
		return 0xffffffff;
	while (!(a << n >> 63))
		n++;
	return n;
}

FN(lop3_or, (a & b & c) != 0 || c != 0)
FN(lop3_and, (a ^ b ^ c) != 0 && c == 0)
FN(madc64, (uint64_t)((unsigned __int128)a *b >> 64) + c + (a * b + c < c))
FN(subc64, a - b - (a < c))

#define WW  word, word, word, COUNT(word), COUNT(word), COUNT(word)
#define WA  word, amount, amount, COUNT(word), COUNT(amount), COUNT(amount)
#define WAW word, amount, word, COUNT(word), COUNT(amount), COUNT(word)
#define WWA word, word, amount, COUNT(word), COUNT(word), COUNT(amount)
#define R3  'r', 'r', 'r', 'r'
#define R2  'r', 'r', 'r', '-'

static const struct op_case cases[] = {
	{"vadd.s32.s32.s32 $d, $a, $b;", R2, vadd, WW},
	{"vadd.s32.u32.s32.sat $d, $a.b0, $b.h1;", R2, vadd_sat, WW},
	{"vadd.u32.s32.s32.sat $d, $a, $b;", R2, vadd_sat_u, WW},
	{"vadd.s32.u32.s32.sat $d.b2, $a.b3, $b.h0, $c;", R3, vadd_byte, WW},
	{"vadd.u32.s32.u32.sat $d.h1, $a, $b, $c;", R3, vadd_half, WW},
	{"vsub.s32.u32.u32.min $d, $a.h1, $b.b1, $c;", R3, vsub_min, WW},
	{"vabsdiff.u32.s32.s32 $d, $a, $b;", R2, vabsdiff, WW},
	{"vabsdiff.u32.u32.u32.add $d, $a.b0, $b.b2, $c;", R3, vabsdiff_add, WW},
	{"vmin.s32.s32.s32 $d, $a, $b;", R2, vmin, WW},
	{"vmax.u32.s32.u32.max $d, $a.h0, $b, $c;", R3, vmax_max, WW},
	{"vshl.u32.u32.u32.clamp $d, $a, $b;", R2, vshl_clamp, WA},
	{"vshr.s32.s32.u32.wrap.add $d, $a, $b, $c;", R3, vshr_wrap, WA},
	{"vshl.u32.u32.u32.sat.clamp $d, $a, $b;", R2, vshl_sat, WA},
	{"vmad.s32.s32.s32 $d, $a.b1, $b.h0, $c;", R3, vmad, WW},
	{"vmad.u32.u32.u32.po.shr7 $d, $a.b3, $b.b0, $c;", R3, vmad_po, WW},
	{"vmad.s32.s32.s32.sat.shr15 $d, $a.h1, $b.h0, -$c;", R3, vmad_sat, WW},
	{"vmad.s32.s32.s32.sat $d, -$a, $b.b0, $c;", R3, vmad_neg, WW},
	{"vset.u32.s32.lt $d, $a, $b;", R2, vset, WW},
	{"vset.s32.u32.ge.add $d, $a.b1, $b.h0, $c;", R3, vset_add, WW},
	{"vadd2.s32.s32.s32.sat $d, $a, $b, $c;", R3, vadd2_sat, WW},
	{"vsub2.u32.u32.u32 $d, $a, $b, $c;", R3, vsub2, WW},
	{"vavrg2.s32.s32.s32 $d, $a, $b, $c;", R3, vavrg2, WW},
	{"vmin2.s32.s32.s32 $d, $a, $b, $c;", R3, vmin2, WW},
	{"vset2.s32.s32.lt $d, $a, $b, $c;", R3, vset2, WW},
	{"vadd2.u32.u32.u32.add $d.h0, $a.h31, $b.h20, $c;", R3, vadd2_pick, WW},
	{"vadd4.s32.s32.s32.sat $d, $a, $b, $c;", R3, vadd4_sat, WW},
	{"vsub4.u32.u32.u32.sat $d, $a, $b, $c;", R3, vsub4_usat, WW},
	{"vavrg4.u32.u32.u32 $d, $a, $b, $c;", R3, vavrg4, WW},
	{"vabsdiff4.u32.u32.u32 $d, $a, $b, $c;", R3, vabsdiff4, WW},
	{"vmax4.s32.s32.s32 $d, $a, $b, $c;", R3, vmax4, WW},
	{"vset4.s32.s32.gt $d, $a, $b, $c;", R3, vset4, WW},
	{"vset4.u32.s32.gt.add $d, $a, $b, $c;", R3, vset4_add, WW},
	{"vabsdiff4.u32.u32.u32 $d.b32, $a.b5432, $b.b1076, $c;", R3, vabsdiff4_pick, WW},
	{"add.s16x2 $d, $a, $b;", R2, add2, WW},
	{"max.relu.s16x2 $d, $a, $b;", R2, max2_relu, WW},
	{"min.u16x2 $d, $a, $b;", R2, min2_u, WW},
	{"min.relu.s32 $d, $a, $b;", R2, min_relu, WW},
	{"mul24.lo.u32 $d, $a, $b;", R2, mul24_u, WW},
	{"mul24.lo.s32 $d, $a, $b;", R2, mul24_s, WW},
	{"mul24.hi.s32 $d, $a, $b;", R2, mul24_hi, WW},
	{"mad24.lo.s32 $d, $a, $b, $c;", R3, mad24_s, WW},
	{"mad24.hi.u32 $d, $a, $b, $c;", R3, mad24_hi, WW},
	{"mad24.hi.sat.s32 $d, $a, $b, $c;", R3, mad24_hi_sat, WW},
	{"mad.hi.s32 $d, $a, $b, $c;", R3, madhi_s, WW},
	{"mad.hi.sat.s32 $d, $a, $b, $c;", R3, madhi_sat, WW},
	{"sub.sat.s32 $d, $a, $b;", R2, subsat, WW},
	{"bmsk.clamp.b32 $d, $a, $b;", R2, bmsk_clamp, WA},
	{"bmsk.wrap.b32 $d, $a, $b;", R2, bmsk_wrap, WA},
	{"szext.clamp.s32 $d, $a, $b;", R2, szext_s, WA},
	{"szext.clamp.u32 $d, $a, $b;", R2, szext_u, WA},
	{"szext.wrap.s32 $d, $a, $b;", R2, szext_ws, WA},
	{"fns.b32 $d, $a, $b, $c;", R3, fns, WAW},
	{"prmt.b32.f4e $d, $a, $b, $c;", R3, prmt_f4e, WWA},
	{"prmt.b32.b4e $d, $a, $b, $c;", R3, prmt_b4e, WWA},
	{"prmt.b32.rc8 $d, $a, $b, $c;", R3, prmt_rc8, WWA},
	{"prmt.b32.ecl $d, $a, $b, $c;", R3, prmt_ecl, WWA},
	{"prmt.b32.ecr $d, $a, $b, $c;", R3, prmt_ecr, WWA},
	{"prmt.b32.rc16 $d, $a, $b, $c;", R3, prmt_rc16, WWA},
	{"bfi.b64 $d, $a, $b, $c, 11;", 'd', 'd', 'd', 'r', bfi64, WWA},
	{"brev.b64 $d, $a;", 'd', 'd', '-', '-', brev64, WW},
	{"bfind.shiftamt.s64 $d, $a;", 'r', 'd', '-', '-', shiftamt, WW},
	{"{ .reg .pred p, q; setp.ne.u32 q, $c, 0; lop3.or.b32 $d|p, $a, $b, $c, 0x80, q;"
	 " selp.u32 $d, 1, 0, p; }",
	 R3, lop3_or, WW},
	{"{ .reg .pred p, q; setp.ne.u32 q, $c, 0; lop3.and.b32 _|p, $a, $b, $c, 0x96, !q;"
	 " selp.u32 $d, 1, 0, p; }",
	 R3, lop3_and, WW},
	{"{ .reg .u64 %l; mad.lo.cc.u64 %l, $a, $b, $c; madc.hi.u64 $d, $a, $b, $c; }", 'd', 'd',
	 'd', 'd', madc64, WW},
	{"{ .reg .u64 %l; sub.cc.u64 %l, $a, $c; subc.u64 $d, $a, $b; }", 'd', 'd', 'd', 'd',
	 subc64, WW},
};

static void test_cases(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++)
		op_check(&cases[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cases),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
