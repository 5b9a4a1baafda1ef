// SPDX-License-Identifier: GPL-2.0-or-later
/* Integer instructions of PTX compared with C, with the values at the edges. */
#include "tests/unit/ptx/test_ptx_op.h"

static const uint64_t edge[] = {0,	    1,		2,	    7,
				31,	    0x7f,	0x80,	    0xff,
				0x7fff,	    0x8000,	0xffff,	    0x12345678,
				0x7fffffff, 0x80000000, 0xffffffff, 0xfedcba9876543210,
				INT64_MAX,  1ull << 63, UINT64_MAX, 0x00000001ffffffff};
static const uint64_t small[] = {0, 1, 5, 15, 16, 31, 32, 33, 63, 64, 65, 255, 256, 0xffffffff};

#define S16(v) ((int16_t)(v))
#define S32(v) ((int32_t)(v))
#define S64(v) ((int64_t)(v))
#define U32(v) ((uint32_t)(v))
#define FN(n, e)                                              \
	static uint64_t n(uint64_t a, uint64_t b, uint64_t c) \
	{                                                     \
		(void)a;                                      \
		(void)b;                                      \
		(void)c;                                      \
		return (uint64_t)(e);                         \
	}

FN(f_add, a + b)
FN(f_sub, a - b)
FN(f_mul, a *b)
FN(f_mad, a *b + c)
FN(f_hi_u16, a *b >> 16)
FN(f_hi_s16, (S16(a) * S16(b)) >> 16)
FN(f_hi_u32, a *b >> 32)
FN(f_hi_s32, (S64(S32(a)) * S32(b)) >> 32)
FN(f_hi_u64, (unsigned __int128)a *b >> 64)
FN(f_hi_s64, ((__int128)S64(a) * S64(b)) >> 64)
FN(f_wide_s16, S16(a) * S16(b))
FN(f_wide_s32, S64(S32(a)) * S32(b))
FN(f_madwide_s32, (uint64_t)(S64(S32(a)) * S32(b)) + c)
FN(f_addsat, S64(S32(a)) + S32(b) > INT32_MAX	? INT32_MAX
	     : S64(S32(a)) + S32(b) < INT32_MIN ? INT32_MIN
						: S64(S32(a)) + S32(b))
FN(f_div_u, b ? a / b : UINT64_MAX)
FN(f_rem_u, b ? a % b : a)
FN(f_div_s32, !b ? -1 : (int64_t)S32(a) / S32(b))
FN(f_rem_s32, !b ? S32(a) : (int64_t)S32(a) % S32(b))
FN(f_div_s64, !b ? -1 : S64(b) == -1 ? S64(0 - a) : S64(a) / S64(b))
FN(f_rem_s64, !b ? S64(a) : S64(b) == -1 ? 0 : S64(a) % S64(b))
FN(f_min_u, a < b ? a : b)
FN(f_max_u, a > b ? a : b)
FN(f_min_s32, S32(a) < S32(b) ? a : b)
FN(f_max_s64, S64(a) > S64(b) ? a : b)
FN(f_max_s16, S16(a) > S16(b) ? a : b)
FN(f_abs_s32, S32(a) < 0 ? 0 - a : a)
FN(f_abs_s64, S64(a) < 0 ? 0 - a : a)
FN(f_neg, 0 - a)
FN(f_and, a &b)
FN(f_or, a | b)
FN(f_xor, a ^ b)
FN(f_not, ~a)
FN(f_cnot, !a)
FN(f_shl16, b > 15 ? 0 : a << b)
FN(f_shl32, b > 31 ? 0 : a << b)
FN(f_shl64, b > 63 ? 0 : a << b)
FN(f_shr_u32, b > 31 ? 0 : a >> b)
FN(f_shr_u64, b > 63 ? 0 : a >> b)
FN(f_shr_s16, S16(a) >> (b > 15 ? 15 : b))
FN(f_shr_s32, S32(a) >> (b > 31 ? 31 : b))
FN(f_shr_s64, S64(a) >> (b > 63 ? 63 : b))
FN(f_popc, __builtin_popcountll(a))
FN(f_clz32, a ? __builtin_clz(U32(a)) : 32)
FN(f_clz64, a ? __builtin_clzll(a) : 64)
FN(f_sad_s32, c + (uint64_t)(S32(a) < S32(b) ? S64(S32(b)) - S32(a) : S64(S32(a)) - S32(b)))
FN(f_shf_l, ((b << 32 | a) << (c & 31)) >> 32)
FN(f_shf_l_clamp, c >= 32 ? a : ((b << 32 | a) << c) >> 32)
FN(f_shf_r, (b << 32 | a) >> (c & 31))
FN(f_shf_r_clamp, c >= 32 ? b : (b << 32 | a) >> c)

static uint64_t f_brev(uint64_t a, uint64_t b, uint64_t c)
{
	uint64_t r = 0;

	(void)b;
	(void)c;
	for (int i = 0; i < 32; i++)
		r |= (a >> i & 1) << (31 - i);
	return r;
}

static uint64_t f_bfind_u(uint64_t a, uint64_t b, uint64_t c)
{
	(void)b;
	(void)c;
	for (int i = 63; i >= 0; i--)
		if (a >> i & 1)
			return (uint64_t)i;
	return 0xffffffff;
}

static uint64_t f_bfind_s32(uint64_t a, uint64_t b, uint64_t c)
{
	return f_bfind_u(S32(a) < 0 ? ~a & 0xffffffff : a, b, c);
}

/* The manual's loop over single bits. */
static uint64_t bfe(uint64_t a, uint64_t pos, uint64_t len, int bits, bool sign)
{
	uint64_t r = 0, fill;
	int top;

	pos &= 255;
	len &= 255;
	top = (int)(pos + len) - 1 < bits - 1 ? (int)(pos + len) - 1 : bits - 1;
	fill = !sign || !len ? 0 : a >> top & 1;
	for (int i = 0; i < bits; i++) {
		uint64_t bit =
			i < (int)len && (int)pos + i < bits ? a >> (pos + (uint64_t)i) & 1 : fill;
		r |= bit << i;
	}
	return r;
}
FN(f_bfe_u32, bfe(a, b, c, 32, false))
FN(f_bfe_s32, bfe(a, b, c, 32, true))
FN(f_bfe_u64, bfe(a, b, c, 64, false))
FN(f_bfe_s64, bfe(a, b, c, 64, true))

static uint64_t f_bfi(uint64_t a, uint64_t b, uint64_t c)
{
	uint64_t pos = c & 255, r = b;

	for (uint64_t i = 0; i < 7 && pos + i < 32; i++)
		r = (r & ~(1ull << (pos + i))) | (a >> i & 1) << (pos + i);
	return r;
}

static uint64_t f_prmt(uint64_t a, uint64_t b, uint64_t c)
{
	uint64_t v = b << 32 | a, r = 0;

	for (int i = 0; i < 4; i++) {
		uint64_t s = c >> 4 * i & 15, byte = v >> (s & 7) * 8 & 255;

		if (s & 8)
			byte = byte & 128 ? 255 : 0;
		r |= byte << 8 * i;
	}
	return r;
}

static uint64_t f_dp4a_us(uint64_t a, uint64_t b, uint64_t c)
{
	for (int i = 0; i < 32; i += 8)
		c += (uint64_t)((int)(uint8_t)(a >> i) * (int8_t)(b >> i));
	return c;
}

static uint64_t f_vabsdiff4(uint64_t a, uint64_t b, uint64_t c)
{
	uint64_t r = 0;

	(void)c;
	for (int i = 0; i < 32; i += 8)
		r |= (uint64_t)(uint8_t)abs((uint8_t)(a >> i) - (uint8_t)(b >> i)) << i;
	return r;
}

static uint64_t f_vabsdiff2_add(uint64_t a, uint64_t b, uint64_t c)
{
	return c + (uint64_t)abs((int16_t)a - (int16_t)b) +
	       (uint64_t)abs((int16_t)(a >> 16) - (int16_t)(b >> 16));
}

static uint64_t f_dp2a_hi(uint64_t a, uint64_t b, uint64_t c)
{
	c += (uint64_t)((int16_t)a * (int8_t)(b >> 16));
	return c + (uint64_t)((int16_t)(a >> 16) * (int8_t)(b >> 24));
}

FN(f_addc, (a + b) + ((a & 0xffffffff) + (c & 0xffffffff) > 0xffffffffu))
FN(f_subc, a - b - ((a & 0xffffffff) < (c & 0xffffffff)))
FN(f_sub_addc, (a + b) + ((a & 0xffffffff) >= (c & 0xffffffff)))
FN(f_add_subc, a - b - ((a & 0xffffffff) + (c & 0xffffffff) <= 0xffffffffu))
FN(f_madc, (a * b >> 32) + c + ((a * b & 0xffffffff) + c > 0xffffffffu))
FN(f_set, S32(a) > S32(b) ? 0xffffffff : 0)
FN(f_slct, S32(c) >= 0 ? a : b)
FN(f_setp_and, (S32(a) < S32(b)) && c != 0)
FN(f_setp_second, !(a <= b) || c != 0)

FN(f_eq, a == b)
FN(f_ne, a != b)
FN(f_lt, S32(a) < S32(b))
FN(f_le, S64(a) <= S64(b))
FN(f_gt, S16(a) > S16(b))
FN(f_ge, a >= b)
FN(f_lo, a < b)
FN(f_ls, a <= b)
FN(f_hi, a > b)
FN(f_div_s16, !b ? -1 : S16(a) / S16(b))
FN(f_rem_s16, !b ? S16(a) : S16(a) % S16(b))
FN(f_rem_u64, b ? a % b : a)
FN(f_sad_u16, c + (a < b ? b - a : a - b))
FN(f_sad_u64, c + (a < b ? b - a : a - b))
FN(f_selp, c & 1 ? a : b)

#define P1(s) "{ .reg .pred p; " s " selp.u32 $d, 1, 0, p; }"
#define E3    edge, edge, edge, COUNT(edge), COUNT(edge), 6
#define ES    edge, small, small, COUNT(edge), COUNT(small), COUNT(small)
#define EES   edge, edge, small, COUNT(edge), COUNT(edge), COUNT(small)

static const struct op_case cases[] = {
	{"add.u16 $d, $a, $b;", 'h', 'h', 'h', '-', f_add, E3},
	{"add.s32 $d, $a, $b;", 'r', 'r', 'r', '-', f_add, E3},
	{"add.s64 $d, $a, $b;", 'd', 'd', 'd', '-', f_add, E3},
	{"sub.s16 $d, $a, $b;", 'h', 'h', 'h', '-', f_sub, E3},
	{"sub.u32 $d, $a, $b;", 'r', 'r', 'r', '-', f_sub, E3},
	{"sub.u64 $d, $a, $b;", 'd', 'd', 'd', '-', f_sub, E3},
	{"mul.lo.u16 $d, $a, $b;", 'h', 'h', 'h', '-', f_mul, E3},
	{"mul.lo.s32 $d, $a, $b;", 'r', 'r', 'r', '-', f_mul, E3},
	{"mul.lo.u64 $d, $a, $b;", 'd', 'd', 'd', '-', f_mul, E3},
	{"mul.hi.u16 $d, $a, $b;", 'h', 'h', 'h', '-', f_hi_u16, E3},
	{"mul.hi.s16 $d, $a, $b;", 'h', 'h', 'h', '-', f_hi_s16, E3},
	{"mul.hi.u32 $d, $a, $b;", 'r', 'r', 'r', '-', f_hi_u32, E3},
	{"mul.hi.s32 $d, $a, $b;", 'r', 'r', 'r', '-', f_hi_s32, E3},
	{"mul.hi.u64 $d, $a, $b;", 'd', 'd', 'd', '-', f_hi_u64, E3},
	{"mul.hi.s64 $d, $a, $b;", 'd', 'd', 'd', '-', f_hi_s64, E3},
	{"mul.wide.u16 $d, $a, $b;", 'r', 'h', 'h', '-', f_mul, E3},
	{"mul.wide.s16 $d, $a, $b;", 'r', 'h', 'h', '-', f_wide_s16, E3},
	{"mul.wide.u32 $d, $a, $b;", 'd', 'r', 'r', '-', f_mul, E3},
	{"mul.wide.s32 $d, $a, $b;", 'd', 'r', 'r', '-', f_wide_s32, E3},
	{"mad.lo.s32 $d, $a, $b, $c;", 'r', 'r', 'r', 'r', f_mad, E3},
	{"mad.lo.u64 $d, $a, $b, $c;", 'd', 'd', 'd', 'd', f_mad, E3},
	{"mad.wide.u32 $d, $a, $b, $c;", 'd', 'r', 'r', 'd', f_mad, E3},
	{"mad.wide.s32 $d, $a, $b, $c;", 'd', 'r', 'r', 'd', f_madwide_s32, E3},
	{"add.sat.s32 $d, $a, $b;", 'r', 'r', 'r', '-', f_addsat, E3},
	{"div.u16 $d, $a, $b;", 'h', 'h', 'h', '-', f_div_u, E3},
	{"div.u32 $d, $a, $b;", 'r', 'r', 'r', '-', f_div_u, E3},
	{"div.u64 $d, $a, $b;", 'd', 'd', 'd', '-', f_div_u, E3},
	{"rem.u32 $d, $a, $b;", 'r', 'r', 'r', '-', f_rem_u, E3},
	{"div.s32 $d, $a, $b;", 'r', 'r', 'r', '-', f_div_s32, E3},
	{"rem.s32 $d, $a, $b;", 'r', 'r', 'r', '-', f_rem_s32, E3},
	{"div.s64 $d, $a, $b;", 'd', 'd', 'd', '-', f_div_s64, E3},
	{"rem.s64 $d, $a, $b;", 'd', 'd', 'd', '-', f_rem_s64, E3},
	{"min.u16 $d, $a, $b;", 'h', 'h', 'h', '-', f_min_u, E3},
	{"min.s32 $d, $a, $b;", 'r', 'r', 'r', '-', f_min_s32, E3},
	{"max.u64 $d, $a, $b;", 'd', 'd', 'd', '-', f_max_u, E3},
	{"max.s64 $d, $a, $b;", 'd', 'd', 'd', '-', f_max_s64, E3},
	{"max.s16 $d, $a, $b;", 'h', 'h', 'h', '-', f_max_s16, E3},
	{"abs.s32 $d, $a;", 'r', 'r', '-', '-', f_abs_s32, E3},
	{"abs.s64 $d, $a;", 'd', 'd', '-', '-', f_abs_s64, E3},
	{"neg.s32 $d, $a;", 'r', 'r', '-', '-', f_neg, E3},
	{"neg.s16 $d, $a;", 'h', 'h', '-', '-', f_neg, E3},
	{"sad.s32 $d, $a, $b, $c;", 'r', 'r', 'r', 'r', f_sad_s32, E3},
	{"and.b32 $d, $a, $b;", 'r', 'r', 'r', '-', f_and, E3},
	{"or.b64 $d, $a, $b;", 'd', 'd', 'd', '-', f_or, E3},
	{"xor.b16 $d, $a, $b;", 'h', 'h', 'h', '-', f_xor, E3},
	{"not.b64 $d, $a;", 'd', 'd', '-', '-', f_not, E3},
	{"cnot.b32 $d, $a;", 'r', 'r', '-', '-', f_cnot, E3},
	{"shl.b16 $d, $a, $b;", 'h', 'h', 'r', '-', f_shl16, ES},
	{"shl.b32 $d, $a, $b;", 'r', 'r', 'r', '-', f_shl32, ES},
	{"shl.b64 $d, $a, $b;", 'd', 'd', 'r', '-', f_shl64, ES},
	{"shr.u32 $d, $a, $b;", 'r', 'r', 'r', '-', f_shr_u32, ES},
	{"shr.u64 $d, $a, $b;", 'd', 'd', 'r', '-', f_shr_u64, ES},
	{"shr.s16 $d, $a, $b;", 'h', 'h', 'r', '-', f_shr_s16, ES},
	{"shr.s32 $d, $a, $b;", 'r', 'r', 'r', '-', f_shr_s32, ES},
	{"shr.s64 $d, $a, $b;", 'd', 'd', 'r', '-', f_shr_s64, ES},
	{"popc.b32 $d, $a;", 'r', 'r', '-', '-', f_popc, E3},
	{"popc.b64 $d, $a;", 'r', 'd', '-', '-', f_popc, E3},
	{"clz.b32 $d, $a;", 'r', 'r', '-', '-', f_clz32, E3},
	{"clz.b64 $d, $a;", 'r', 'd', '-', '-', f_clz64, E3},
	{"brev.b32 $d, $a;", 'r', 'r', '-', '-', f_brev, E3},
	{"bfind.u32 $d, $a;", 'r', 'r', '-', '-', f_bfind_u, E3},
	{"bfind.s32 $d, $a;", 'r', 'r', '-', '-', f_bfind_s32, E3},
	{"bfind.u64 $d, $a;", 'r', 'd', '-', '-', f_bfind_u, E3},
	{"bfe.u32 $d, $a, $b, $c;", 'r', 'r', 'r', 'r', f_bfe_u32, ES},
	{"bfe.s32 $d, $a, $b, $c;", 'r', 'r', 'r', 'r', f_bfe_s32, ES},
	{"bfe.u64 $d, $a, $b, $c;", 'd', 'd', 'r', 'r', f_bfe_u64, ES},
	{"bfe.s64 $d, $a, $b, $c;", 'd', 'd', 'r', 'r', f_bfe_s64, ES},
	{"bfi.b32 $d, $a, $b, $c, 7;", 'r', 'r', 'r', 'r', f_bfi, EES},
	{"prmt.b32 $d, $a, $b, $c;", 'r', 'r', 'r', 'r', f_prmt, E3},
	{"shf.l.wrap.b32 $d, $a, $b, $c;", 'r', 'r', 'r', 'r', f_shf_l, EES},
	{"shf.r.wrap.b32 $d, $a, $b, $c;", 'r', 'r', 'r', 'r', f_shf_r, EES},
	{"shf.l.clamp.b32 $d, $a, $b, $c;", 'r', 'r', 'r', 'r', f_shf_l_clamp, EES},
	{"shf.r.clamp.b32 $d, $a, $b, $c;", 'r', 'r', 'r', 'r', f_shf_r_clamp, EES},
	{"dp4a.u32.s32 $d, $a, $b, $c;", 'r', 'r', 'r', 'r', f_dp4a_us, E3},
	{"dp2a.hi.s32.s32 $d, $a, $b, $c;", 'r', 'r', 'r', 'r', f_dp2a_hi, E3},
	{"vabsdiff4.u32.u32.u32 $d, $a, $b, $c;", 'r', 'r', 'r', 'r', f_vabsdiff4, E3},
	{"vabsdiff2.u32.s32.s32.add $d, $a, $b, $c;", 'r', 'r', 'r', 'r', f_vabsdiff2_add, E3},
	{"{ .reg .u32 %l; add.cc.u32 %l, $a, $c; addc.u32 $d, $a, $b; }", 'r', 'r', 'r', 'r',
	 f_addc, E3},
	{"{ .reg .u32 %l; sub.cc.u32 %l, $a, $c; subc.u32 $d, $a, $b; }", 'r', 'r', 'r', 'r',
	 f_subc, E3},
	{"{ .reg .u32 %l; sub.cc.u32 %l, $a, $c; addc.u32 $d, $a, $b; }", 'r', 'r', 'r', 'r',
	 f_sub_addc, E3},
	{"{ .reg .u32 %l; add.cc.u32 %l, $a, $c; subc.u32 $d, $a, $b; }", 'r', 'r', 'r', 'r',
	 f_add_subc, E3},
	{"{ .reg .u32 %l; mad.lo.cc.u32 %l, $a, $b, $c; madc.hi.u32 $d, $a, $b, $c; }", 'r', 'r',
	 'r', 'r', f_madc, E3},
	{P1("setp.eq.b64 p, $a, $b;"), 'r', 'd', 'd', '-', f_eq, E3},
	{P1("setp.ne.u16 p, $a, $b;"), 'r', 'h', 'h', '-', f_ne, E3},
	{P1("setp.lt.s32 p, $a, $b;"), 'r', 'r', 'r', '-', f_lt, E3},
	{P1("setp.le.s64 p, $a, $b;"), 'r', 'd', 'd', '-', f_le, E3},
	{P1("setp.gt.s16 p, $a, $b;"), 'r', 'h', 'h', '-', f_gt, E3},
	{P1("setp.ge.u32 p, $a, $b;"), 'r', 'r', 'r', '-', f_ge, E3},
	{P1("setp.lo.u64 p, $a, $b;"), 'r', 'd', 'd', '-', f_lo, E3},
	{P1("setp.ls.u16 p, $a, $b;"), 'r', 'h', 'h', '-', f_ls, E3},
	{P1("setp.hi.u32 p, $a, $b;"), 'r', 'r', 'r', '-', f_hi, E3},
	{P1("setp.hs.u64 p, $a, $b;"), 'r', 'd', 'd', '-', f_ge, E3},
	{"div.s16 $d, $a, $b;", 'h', 'h', 'h', '-', f_div_s16, E3},
	{"rem.s16 $d, $a, $b;", 'h', 'h', 'h', '-', f_rem_s16, E3},
	{"rem.u64 $d, $a, $b;", 'd', 'd', 'd', '-', f_rem_u64, E3},
	{"sad.u16 $d, $a, $b, $c;", 'h', 'h', 'h', 'h', f_sad_u16, E3},
	{"sad.u64 $d, $a, $b, $c;", 'd', 'd', 'd', 'd', f_sad_u64, E3},
	{"{ .reg .pred p; .reg .b32 t; and.b32 t, $c, 1; setp.ne.u32 p, t, 0;"
	 " selp.b64 $d, $a, $b, p; }",
	 'd', 'd', 'd', 'r', f_selp, E3},
	{"set.gt.u32.s32 $d, $a, $b;", 'r', 'r', 'r', '-', f_set, E3},
	{"slct.b64.s32 $d, $a, $b, $c;", 'd', 'd', 'd', 'r', f_slct, E3},
	{"{ .reg .pred p, q, r; setp.ne.u32 r, $c, 0; setp.lt.and.s32 p|q, $a, $b, r; "
	 "selp.u32 $d, 1, 0, p; }",
	 'r', 'r', 'r', 'r', f_setp_and, E3},
	{"{ .reg .pred p, q, r; setp.ne.u32 r, $c, 0; setp.ls.or.u32 p|q, $a, $b, r; "
	 "selp.u32 $d, 1, 0, q; }",
	 'r', 'r', 'r', 'r', f_setp_second, E3},
};

/* All 256 tables of lop3, bit by bit. */
static void test_lop3(void **state)
{
	(void)state;
	for (unsigned int t = 0; t < 256; t++) {
		uint32_t *out = dev_alloc(4);
		char ptx[600];
		struct ptx_module *m;

		snprintf(ptx, sizeof(ptx),
			 ".version 8.0\n.target sm_75\n.address_size 64\n.entry k(.param .u64 p)\n"
			 "{ .reg .b32 %%r<4>; .reg .b64 %%d; ld.param.u64 %%d, [p];\n"
			 "mov.b32 %%r1, 0xf0f0f0f0; mov.b32 %%r2, 0xcccccccc;\n"
			 "mov.b32 %%r3, 0xaaaaaaaa; lop3.b32 %%r0, %%r1, %%r2, %%r3, %u;\n"
			 "st.global.b32 [%%d], %%r0; }",
			 t);
		m = must_load(ptx);
		must_launch(m, "k", 1, 1, 0, &out, sizeof(out));
		/* f0, cc and aa spell the index of each bit */
		assert_int_equal(*out, t * 0x01010101u);
		ptx_unload(m);
		dev_free(out);
	}
}

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
		cmocka_unit_test(test_lop3),
	};

	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	/* and as on a processor without AVX2 */
	setenv("QCU_SOFT_BASE_OPS", "1", 1);
	return failed + cmocka_run_group_tests(tests, NULL, NULL);
}
