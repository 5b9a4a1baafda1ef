/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Integer handlers; see ptx_ops.h for why this is a header. Arithmetic is done in unsigned types,
 * where overflow is defined, and read back as signed where the sign matters.
 */
#include "qcu-device/soft/ptx/ops/ptx_op_loop.h"

typedef unsigned __int128 u128;
typedef __int128 s128;

#define OP2_ALL(n, e)                                 \
	OP2(n##_u16, uint16_t, uint16_t, uint16_t, e) \
	OP2(n##_u32, uint32_t, uint32_t, uint32_t, e) \
	OP2(n##_u64, uint64_t, uint64_t, uint64_t, e)
#define OP2_SIGN(n, e)                             \
	OP2(n##_s16, int16_t, int16_t, int16_t, e) \
	OP2(n##_s32, int32_t, int32_t, int32_t, e) \
	OP2(n##_s64, int64_t, int64_t, int64_t, e)

OP1(mov_16, uint16_t, uint16_t, x)
OP1(mov_32, uint32_t, uint32_t, x)
OP1(mov_64, uint64_t, uint64_t, x)

OP2_ALL(add, x + y)
OP2_ALL(sub, x - y)
OP2(mul_u16, uint16_t, uint16_t, uint16_t, (uint32_t)x *y)
OP2(mul_u32, uint32_t, uint32_t, uint32_t, x *y)
OP2(mul_u64, uint64_t, uint64_t, uint64_t, x *y)
OP2(mulhi_u16, uint16_t, uint16_t, uint16_t, (uint32_t)x *y >> 16)
OP2(mulhi_s16, int16_t, int16_t, int16_t, (int32_t)x *y >> 16)
OP2(mulhi_u32, uint32_t, uint32_t, uint32_t, (uint64_t)x *y >> 32)
OP2(mulhi_s32, int32_t, int32_t, int32_t, (int64_t)x *y >> 32)
OP2(mulhi_u64, uint64_t, uint64_t, uint64_t, (u128)x *y >> 64)
OP2(mulhi_s64, int64_t, int64_t, int64_t, (s128)x *y >> 64)
OP2(mulwide_u16, uint32_t, uint16_t, uint16_t, (uint32_t)x *y)
OP2(mulwide_s16, int32_t, int16_t, int16_t, (int32_t)x *y)
OP2(mulwide_u32, uint64_t, uint32_t, uint32_t, (uint64_t)x *y)
OP2(mulwide_s32, int64_t, int32_t, int32_t, (int64_t)x *y)

OP3(mad_u16, uint16_t, uint16_t, uint16_t, uint16_t, (uint32_t)x *y + z)
OP3(mad_u32, uint32_t, uint32_t, uint32_t, uint32_t, x *y + z)
OP3(mad_u64, uint64_t, uint64_t, uint64_t, uint64_t, x *y + z)
OP3(madhi_u16, uint16_t, uint16_t, uint16_t, uint16_t, ((uint32_t)x * y >> 16) + z)
OP3(madhi_s16, uint16_t, int16_t, int16_t, uint16_t, ((int32_t)x * y >> 16) + z)
OP3(madhi_u32, uint32_t, uint32_t, uint32_t, uint32_t, (uint32_t)((uint64_t)x *y >> 32) + z)
OP3(madhi_s32, uint32_t, int32_t, int32_t, uint32_t, (uint32_t)((int64_t)x *y >> 32) + z)
OP3(madhi_u64, uint64_t, uint64_t, uint64_t, uint64_t, (uint64_t)((u128)x *y >> 64) + z)
OP3(madhi_s64, uint64_t, int64_t, int64_t, uint64_t, (uint64_t)((s128)x *y >> 64) + z)
OP3(madwide_u16, uint32_t, uint16_t, uint16_t, uint32_t, (uint32_t)x *y + z)
OP3(madwide_s16, uint32_t, int16_t, int16_t, uint32_t, (uint32_t)((int32_t)x *y) + z)
OP3(madwide_u32, uint64_t, uint32_t, uint32_t, uint64_t, (uint64_t)x *y + z)
OP3(madwide_s32, uint64_t, int32_t, int32_t, uint64_t, (uint64_t)((int64_t)x *y) + z)

static inline int64_t sext24(int32_t v)
{
	return (int32_t)((uint32_t)v << 8) >> 8;
}
OP2(mul24_u32, uint32_t, uint32_t, uint32_t, (uint64_t)(x & 0xffffff) * (y & 0xffffff))
OP2(mul24_s32, uint32_t, int32_t, int32_t, (uint64_t)(sext24(x) * sext24(y)))
OP2(mul24hi_u32, uint32_t, uint32_t, uint32_t, (uint64_t)(x & 0xffffff) * (y & 0xffffff) >> 16)
OP2(mul24hi_s32, uint32_t, int32_t, int32_t, (uint64_t)(sext24(x) * sext24(y)) >> 16)
OP3(mad24_u32, uint32_t, uint32_t, uint32_t, uint32_t,
    (uint64_t)(x & 0xffffff) * (y & 0xffffff) + z)
OP3(mad24_s32, uint32_t, int32_t, int32_t, uint32_t, (uint64_t)(sext24(x) * sext24(y)) + z)

OP3(mad24hi_u32, uint32_t, uint32_t, uint32_t, uint32_t,
    ((uint64_t)(x & 0xffffff) * (y & 0xffffff) >> 16) + z)
OP3(mad24hi_s32, uint32_t, int32_t, int32_t, uint32_t,
    ((uint64_t)(sext24(x) * sext24(y)) >> 16) + z)

static inline int32_t clamp_s32(int64_t v)
{
	return v > INT32_MAX ? INT32_MAX : v < INT32_MIN ? INT32_MIN : (int32_t)v;
}
OP2(addsat_s32, int32_t, int32_t, int32_t, clamp_s32((int64_t)x + y))
OP2(subsat_s32, int32_t, int32_t, int32_t, clamp_s32((int64_t)x - y))
OP3(mad24hisat_s32, int32_t, int32_t, int32_t, int32_t,
    clamp_s32((int64_t)(int32_t)((sext24(x) * sext24(y)) >> 16) + z))
OP3(madhisat_s32, int32_t, int32_t, int32_t, int32_t, clamp_s32(((int64_t)x * y >> 32) + z))

/*
 * As on a GPU, division by zero gives the quotient all ones, and the dividend as remainder. The
 * only quotient that overflows wraps.
 */
OP2_ALL(div, y ? x / y : (__typeof__(x))~(__typeof__(x))0)
OP2_ALL(rem, y ? x % y : x)
#define SDIV(U) (y == 0 ? -1 : y == -1 ? (__typeof__(x))(0 - (U)x) : x / y)
OP2(div_s16, int16_t, int16_t, int16_t, SDIV(uint16_t))
OP2(div_s32, int32_t, int32_t, int32_t, SDIV(uint32_t))
OP2(div_s64, int64_t, int64_t, int64_t, SDIV(uint64_t))
OP2_SIGN(rem, y == 0 ? x : y == -1 ? 0 : x % y)

OP2_ALL(min, x < y ? x : y)
OP2_ALL(max, x > y ? x : y)
OP2_SIGN(min, x < y ? x : y)
OP2_SIGN(max, x > y ? x : y)
OP1(abs_s16, uint16_t, int16_t, x < 0 ? 0u - (uint16_t)x : (uint16_t)x)
OP1(abs_s32, uint32_t, int32_t, x < 0 ? 0u - (uint32_t)x : (uint32_t)x)
OP1(abs_s64, uint64_t, int64_t, x < 0 ? 0u - (uint64_t)x : (uint64_t)x)
OP1(neg_s16, uint16_t, uint16_t, 0u - x)
OP1(neg_s32, uint32_t, uint32_t, 0u - x)
OP1(neg_s64, uint64_t, uint64_t, 0u - x)
OP3(sad_u16, uint16_t, uint16_t, uint16_t, uint16_t, z + (x < y ? y - x : x - y))
OP3(sad_s16, uint16_t, int16_t, int16_t, uint16_t, z + (x < y ? y - x : x - y))
OP3(sad_u32, uint32_t, uint32_t, uint32_t, uint32_t, z + (x < y ? y - x : x - y))
OP3(sad_s32, uint32_t, int32_t, int32_t, uint32_t,
    z + (x < y ? (uint32_t)y - (uint32_t)x : (uint32_t)x - (uint32_t)y))
OP3(sad_u64, uint64_t, uint64_t, uint64_t, uint64_t, z + (x < y ? y - x : x - y))
OP3(sad_s64, uint64_t, int64_t, int64_t, uint64_t,
    z + (x < y ? (uint64_t)y - (uint64_t)x : (uint64_t)x - (uint64_t)y))

OP2_ALL(and, x &y)
OP2_ALL(or, x | y)
OP2_ALL(xor, x ^ y)
OP1(not_u16, uint16_t, uint16_t, ~x)
OP1(not_u32, uint32_t, uint32_t, ~x)
OP1(not_u64, uint64_t, uint64_t, ~x)
OP1(cnot_u16, uint16_t, uint16_t, !x)
OP1(cnot_u32, uint32_t, uint32_t, !x)
OP1(cnot_u64, uint64_t, uint64_t, !x)

/* Shift counts have 32 bits for every type, and are clamped to the width. */
OP2(shl_u16, uint16_t, uint16_t, uint32_t, y > 15 ? 0 : (uint32_t)x << y)
OP2(shl_u32, uint32_t, uint32_t, uint32_t, y > 31 ? 0 : x << (y & 31))
OP2(shl_u64, uint64_t, uint64_t, uint32_t, y > 63 ? 0 : x << (y & 63))
OP2(shr_u16, uint16_t, uint16_t, uint32_t, y > 15 ? 0 : x >> y)
OP2(shr_u32, uint32_t, uint32_t, uint32_t, y > 31 ? 0 : x >> (y & 31))
OP2(shr_u64, uint64_t, uint64_t, uint32_t, y > 63 ? 0 : x >> (y & 63))
OP2(shr_s16, int16_t, int16_t, uint32_t, x >> (y > 15 ? 15 : y))
OP2(shr_s32, int32_t, int32_t, uint32_t, x >> (y > 31 ? 31 : y))
OP2(shr_s64, int64_t, int64_t, uint32_t, x >> (y > 63 ? 63 : y))

OP1(popc_32, uint32_t, uint32_t, __builtin_popcount(x))
OP1(popc_64, uint32_t, uint64_t, __builtin_popcountll(x))
OP1(clz_32, uint32_t, uint32_t, x ? __builtin_clz(x) : 32)
OP1(clz_64, uint32_t, uint64_t, x ? __builtin_clzll(x) : 64)

static inline uint32_t brev32(uint32_t x)
{
	x = (x >> 1 & 0x55555555u) | (x & 0x55555555u) << 1;
	x = (x >> 2 & 0x33333333u) | (x & 0x33333333u) << 2;
	x = (x >> 4 & 0x0f0f0f0fu) | (x & 0x0f0f0f0fu) << 4;
	return __builtin_bswap32(x);
}
OP1(brev_32, uint32_t, uint32_t, brev32(x))
OP1(brev_64, uint64_t, uint64_t, (uint64_t)brev32((uint32_t)x) << 32 | brev32((uint32_t)(x >> 32)))

/* Highest bit that is not the sign. */
#define FIND32(v) ((v) ? 31u - (uint32_t)__builtin_clz(v) : PTX_FULL)
#define FIND64(v) ((v) ? 63u - (uint32_t)__builtin_clzll(v) : PTX_FULL)
#define SHFT32(v) ((v) ? (uint32_t)__builtin_clz(v) : PTX_FULL)
#define SHFT64(v) ((v) ? (uint32_t)__builtin_clzll(v) : PTX_FULL)
OP1(bfind_u32, uint32_t, uint32_t, FIND32(x))
OP1(bfind_u64, uint32_t, uint64_t, FIND64(x))
OP1(bfind_s32, uint32_t, int32_t, FIND32((uint32_t)(x ^ x >> 31)))
OP1(bfind_s64, uint32_t, int64_t, FIND64((uint64_t)(x ^ x >> 63)))
OP1(bfindshift_u32, uint32_t, uint32_t, SHFT32(x))
OP1(bfindshift_u64, uint32_t, uint64_t, SHFT64(x))
OP1(bfindshift_s32, uint32_t, int32_t, SHFT32((uint32_t)(x ^ x >> 31)))
OP1(bfindshift_s64, uint32_t, int64_t, SHFT64((uint64_t)(x ^ x >> 63)))

static inline uint64_t bfe(uint64_t v, uint32_t pos, uint32_t len, unsigned int bits, bool sign)
{
	uint64_t r = 0, fill = 0;

	pos &= 255;
	len &= 255;
	if (sign && len) {
		uint32_t top = pos + len - 1 < bits - 1 ? pos + len - 1 : bits - 1;

		fill = v >> top & 1 ? UINT64_MAX : 0;
	}
	if (!len)
		return 0;
	r = pos < bits ? v >> pos : fill;
	if (pos < bits && fill && pos)
		r |= ~(UINT64_MAX >> pos);
	if (pos < bits && bits == 32 && fill)
		r |= pos < 32 ? ~((1ull << (32 - pos)) - 1) : UINT64_MAX;
	if (len < 64)
		r = (r & ((1ull << len) - 1)) | (fill & ~((1ull << len) - 1));
	return r;
}
OP3(bfe_u32, uint32_t, uint32_t, uint32_t, uint32_t, bfe(x, y, z, 32, false))
OP3(bfe_s32, uint32_t, uint32_t, uint32_t, uint32_t, bfe(x, y, z, 32, true))
OP3(bfe_u64, uint64_t, uint64_t, uint32_t, uint32_t, bfe(x, y, z, 64, false))
OP3(bfe_s64, uint64_t, uint64_t, uint32_t, uint32_t, bfe(x, y, z, 64, true))

static inline uint64_t bfi(uint64_t a, uint64_t b, uint32_t pos, uint32_t len, unsigned int bits)
{
	uint64_t mask;

	pos &= 255;
	len &= 255;
	if (pos >= bits || !len)
		return b;
	mask = (len >= 64 ? UINT64_MAX : (1ull << len) - 1) << pos;
	return (b & ~mask) | (a << pos & mask);
}
/* bfi d, a, b, pos, len: four sources. */
#define BFI(name, T, bits)                                                       \
	HANDLER(name)                                                            \
	{                                                                        \
		T *d = ptx_at(w, in->d);                                         \
		const T *a = ptx_at(w, in->a), *b = ptx_at(w, in->b);            \
		const uint32_t *pos = ptx_at(w, in->c), *len = ptx_at(w, in->e); \
		FOR_LANES(d[i] = (T)bfi(a[i], b[i], pos[i], len[i], bits););     \
	}
BFI(bfi_32, uint32_t, 32)
BFI(bfi_64, uint64_t, 64)

static inline uint32_t lop3(uint32_t a, uint32_t b, uint32_t c, uint32_t t)
{
	uint32_t r = 0;

	r |= t & 1 ? ~a & ~b & ~c : 0;
	r |= t & 2 ? ~a & ~b & c : 0;
	r |= t & 4 ? ~a & b & ~c : 0;
	r |= t & 8 ? ~a & b & c : 0;
	r |= t & 16 ? a & ~b & ~c : 0;
	r |= t & 32 ? a & ~b & c : 0;
	r |= t & 64 ? a & b & ~c : 0;
	r |= t & 128 ? a & b & c : 0;
	return r;
}
OP3(lop3_32, uint32_t, uint32_t, uint32_t, uint32_t, lop3(x, y, z, (uint32_t)in->imm))

/* shf: shifts (b:a) by c. A left shift returns the upper word, a right shift the lower word. */
#define CAT(x, y) ((uint64_t)(y) << 32 | (x))
OP3(shf_l_wrap, uint32_t, uint32_t, uint32_t, uint32_t, CAT(x, y) << (z & 31) >> 32)
OP3(shf_l_clamp, uint32_t, uint32_t, uint32_t, uint32_t, CAT(x, y) << (z > 32 ? 32 : z) >> 32)
OP3(shf_r_wrap, uint32_t, uint32_t, uint32_t, uint32_t, CAT(x, y) >> (z & 31))
OP3(shf_r_clamp, uint32_t, uint32_t, uint32_t, uint32_t, CAT(x, y) >> (z > 32 ? 32 : z))

static inline uint32_t prmt_byte(uint64_t v, uint32_t sel)
{
	uint32_t b = (uint32_t)(v >> (sel & 7) * 8) & 255;

	return sel & 8 ? (b & 128 ? 255 : 0) : b;
}

static inline uint32_t prmt(uint32_t a, uint32_t b, uint32_t c, unsigned int mode)
{
	static const uint16_t f4e[4] = {0x3210, 0x4321, 0x5432, 0x6543};
	static const uint16_t b4e[4] = {0x5670, 0x6701, 0x7012, 0x0123};
	static const uint16_t ecl[4] = {0x3210, 0x3211, 0x3222, 0x3333};
	static const uint16_t ecr[4] = {0x0000, 0x1110, 0x2210, 0x3210};
	uint64_t v = CAT(a, b);
	uint32_t s = c, k = c & 3;

	switch (mode) {
	case 1:
		s = f4e[k];
		break;
	case 2:
		s = b4e[k];
		break;
	case 3:
		s = k * 0x1111;
		break;
	case 4:
		s = ecl[k];
		break;
	case 5:
		s = ecr[k];
		break;
	case 6:
		s = k & 1 ? 0x3232 : 0x1010;
		break;
	}
	return prmt_byte(v, s) | prmt_byte(v, s >> 4) << 8 | prmt_byte(v, s >> 8) << 16 |
	       prmt_byte(v, s >> 12) << 24;
}
OP3(prmt_32, uint32_t, uint32_t, uint32_t, uint32_t, prmt(x, y, z, in->sub))

static inline uint32_t bmsk(uint32_t pos, uint32_t len, bool wrap)
{
	if (wrap) {
		pos &= 31;
		len &= 31;
	}
	if (pos > 31 || !len)
		return 0;
	return (len > 31 ? PTX_FULL : (1u << len) - 1) << pos;
}
OP2(bmsk_clamp, uint32_t, uint32_t, uint32_t, bmsk(x, y, false))
OP2(bmsk_wrap, uint32_t, uint32_t, uint32_t, bmsk(x, y, true))

static inline uint32_t szext(uint32_t v, uint32_t n, bool wrap, bool sign)
{
	if (wrap)
		n &= 31;
	if (n > 31)
		return v;
	if (!n)
		return 0;
	v &= (1u << n) - 1;
	if (sign && v >> (n - 1) & 1)
		v |= PTX_FULL << n;
	return v;
}
OP2(szext_u32, uint32_t, uint32_t, uint32_t, szext(x, y, false, false))
OP2(szext_s32, uint32_t, uint32_t, uint32_t, szext(x, y, false, true))
OP2(szext_wrap_u32, uint32_t, uint32_t, uint32_t, szext(x, y, true, false))
OP2(szext_wrap_s32, uint32_t, uint32_t, uint32_t, szext(x, y, true, true))

/* The position of the n-th set bit from `base` on: upwards, or downwards if n is negative. */
static inline uint32_t fns(uint32_t mask, uint32_t base, int32_t n)
{
	int step = n < 0 ? -1 : 1;
	uint32_t left = n < 0 ? 0u - (uint32_t)n : (uint32_t)n;

	if (!n)
		return base < 32 && mask >> base & 1 ? base : PTX_FULL;
	for (int64_t p = base; p >= 0 && p < 32; p += step)
		if (mask >> p & 1 && !--left)
			return (uint32_t)p;
	return PTX_FULL;
}
OP3(fns_32, uint32_t, uint32_t, uint32_t, int32_t, fns(x, y, z))

#define SELP(name, T)                                                 \
	HANDLER(name)                                                 \
	{                                                             \
		T *d = ptx_at(w, in->d);                              \
		const T *a = ptx_at(w, in->a), *b = ptx_at(w, in->b); \
		const uint32_t p = ptx_pred_c(w, in);                 \
		FOR_LANES(d[i] = p >> i & 1 ? a[i] : b[i];);          \
	}
SELP(selp_16, uint16_t)
SELP(selp_32, uint32_t)
SELP(selp_64, uint64_t)
OP3(slct_s_16, uint16_t, uint16_t, uint16_t, int32_t, z >= 0 ? x : y)
OP3(slct_s_32, uint32_t, uint32_t, uint32_t, int32_t, z >= 0 ? x : y)
OP3(slct_s_64, uint64_t, uint64_t, uint64_t, int32_t, z >= 0 ? x : y)
/* slct compares with zero, so .ftz changes only one case: a negative denormal. */
static inline bool slct_nonneg(float z, uint16_t flags)
{
	return z >= 0.0f || (flags & IF_FTZ && z > -0x1p-126f);
}
OP3(slct_f_16, uint16_t, uint16_t, uint16_t, float, slct_nonneg(z, in->flags) ? x : y)
OP3(slct_f_32, uint32_t, uint32_t, uint32_t, float, slct_nonneg(z, in->flags) ? x : y)
OP3(slct_f_64, uint64_t, uint64_t, uint64_t, float, slct_nonneg(z, in->flags) ? x : y)

/*
 * Extended precision: the carry of each lane is a bit of w->cc. A subtraction adds the complement,
 * so the carry is 1 where nothing was borrowed. The manual calls this bit a borrow. The difference
 * is visible where addc reads the bit that sub.cc wrote, as nvcc's own 128-bit division does.
 */
#define CARRY(name, T, body)                                                 \
	HANDLER(name)                                                        \
	{                                                                    \
		T *d = ptx_at(w, in->d);                                     \
		const T *a = ptx_at(w, in->a), *b = ptx_at(w, in->b);        \
		const T *c = ptx_at(w, in->c);                               \
		uint32_t cc = w->cc;                                         \
		(void)c;                                                     \
		for (uint32_t r = m; r; r &= r - 1) {                        \
			const unsigned int i = ptx_lane(r);                  \
			const T cin = in->flags & IF_CCIN ? cc >> i & 1 : 0; \
			T s, t;                                              \
			bool out;                                            \
			body;                                                \
			d[i] = s;                                            \
			if (in->flags & IF_CCOUT)                            \
				cc = (cc & ~(1u << i)) | (uint32_t)out << i; \
		}                                                            \
		w->cc = cc;                                                  \
	}
#define CARRY_ADD                                     \
	out = __builtin_add_overflow(a[i], b[i], &t); \
	out |= __builtin_add_overflow(t, cin, &s)
#define CARRY_SUB                                                          \
	out = __builtin_sub_overflow(a[i], b[i], &t);                      \
	out |= __builtin_sub_overflow(t, in->flags & IF_CCIN && !cin, &s); \
	out = !out
#define CARRY_MAD(W, bits)                                                              \
	t = in->flags & IF_HI ? (in->sub ? MUL_HI_S(a[i], b[i]) : MUL_HI_U(a[i], b[i])) \
			      : a[i] * b[i];                                            \
	out = __builtin_add_overflow(t, c[i], &t);                                      \
	out |= __builtin_add_overflow(t, cin, &s)
CARRY(addc_32, uint32_t, CARRY_ADD)
CARRY(addc_64, uint64_t, CARRY_ADD)
CARRY(subc_32, uint32_t, CARRY_SUB)
CARRY(subc_64, uint64_t, CARRY_SUB)
#define MUL_HI_S(x, y) ((uint32_t)((int64_t)(int32_t)(x) * (int32_t)(y) >> 32))
#define MUL_HI_U(x, y) ((uint32_t)((uint64_t)(x) * (y) >> 32))
CARRY(madc_32, uint32_t, CARRY_MAD(uint64_t, 32))
#undef MUL_HI_S
#undef MUL_HI_U
#define MUL_HI_S(x, y) ((uint64_t)((s128)(int64_t)(x) * (int64_t)(y) >> 64))
#define MUL_HI_U(x, y) ((uint64_t)((u128)(x) * (y) >> 64))
CARRY(madc_64, uint64_t, CARRY_MAD(u128, 64))

/* sub: bit 0: a is signed; bit 1: b is signed; bit 2: dp2a.hi */
static inline int32_t dp_elem(uint32_t v, unsigned int at, unsigned int bits, bool sign)
{
	v = v >> at & ((1u << bits) - 1);
	if (sign && v >> (bits - 1))
		v |= PTX_FULL << bits;
	return (int32_t)v;
}

static inline uint32_t dp4a(uint32_t a, uint32_t b, uint32_t c, unsigned int sub)
{
	for (unsigned int k = 0; k < 32; k += 8)
		c += (uint32_t)(dp_elem(a, k, 8, sub & 1) * dp_elem(b, k, 8, sub & 2));
	return c;
}

static inline uint32_t dp2a(uint32_t a, uint32_t b, uint32_t c, unsigned int sub)
{
	unsigned int at = sub & 4 ? 16 : 0;

	for (unsigned int k = 0; k < 2; k++)
		c += (uint32_t)(dp_elem(a, k * 16, 16, sub & 1) *
				dp_elem(b, at + k * 8, 8, sub & 2));
	return c;
}
OP3(dp4a_32, uint32_t, uint32_t, uint32_t, uint32_t, dp4a(x, y, z, in->sub))
OP3(dp2a_32, uint32_t, uint32_t, uint32_t, uint32_t, dp2a(x, y, z, in->sub))

/* Two 16-bit integers in a word. */
#define PAIR(lo, hi) ((uint32_t)(uint16_t)(lo) | (uint32_t)(uint16_t)(hi) << 16)
#define LO_S(v)	     ((int16_t)(uint16_t)(v))
#define HI_S(v)	     ((int16_t)(uint16_t)((v) >> 16))
#define MIN_(p, q)   ((p) < (q) ? (p) : (q))
#define MAX_(p, q)   ((p) > (q) ? (p) : (q))
OP2(add_u16x2, uint32_t, uint32_t, uint32_t, PAIR(x + y, (x >> 16) + (y >> 16)))
OP2(sub_u16x2, uint32_t, uint32_t, uint32_t, PAIR(x - y, (x >> 16) - (y >> 16)))
OP2(min_u16x2, uint32_t, uint32_t, uint32_t,
    PAIR(MIN_((uint16_t)x, (uint16_t)y), MIN_(x >> 16, y >> 16)))
OP2(max_u16x2, uint32_t, uint32_t, uint32_t,
    PAIR(MAX_((uint16_t)x, (uint16_t)y), MAX_(x >> 16, y >> 16)))
OP2(min_s16x2, uint32_t, uint32_t, uint32_t, PAIR(MIN_(LO_S(x), LO_S(y)), MIN_(HI_S(x), HI_S(y))))
OP2(max_s16x2, uint32_t, uint32_t, uint32_t, PAIR(MAX_(LO_S(x), LO_S(y)), MAX_(HI_S(x), HI_S(y))))

OP1(cvt_s64_s32, int64_t, int32_t, x)
OP1(cvt_u64_u32, uint64_t, uint32_t, x)
OP1(cvt_u32_u64, uint32_t, uint64_t, x)

/* Logic on predicates is logic on whole words. sub: bit 0: a is negated; bit 1: b is negated. */
#define PRED2(name, e)                                                                     \
	HANDLER(name)                                                                      \
	{                                                                                  \
		uint32_t *d = ptx_at(w, in->d);                                            \
		uint32_t x = *(uint32_t *)ptx_at(w, in->a) ^ (in->sub & 1 ? PTX_FULL : 0); \
		uint32_t y = *(uint32_t *)ptx_at(w, in->b) ^ (in->sub & 2 ? PTX_FULL : 0); \
		(void)y;                                                                   \
		*d = (*d & ~m) | ((e)&m);                                                  \
	}
PRED2(and_pred, x &y)
PRED2(or_pred, x | y)
PRED2(xor_pred, x ^ y)
PRED2(not_pred, ~x)
PRED2(mov_pred, x)
