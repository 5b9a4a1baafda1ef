// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * cvt in all its forms. The common forms have vector handlers. All other forms are done here, one
 * lane after another, and are exact: integers stay integers, and a float is rounded once.
 */
#include <float.h>

#include "qcu-device/soft/ptx/ops/ptx_handlers.h"
#include "qcu-device/soft/ptx/ops/ptx_fp.h"

static uint64_t read_reg(const void *p, unsigned int i, unsigned int width)
{
	switch (width) {
	case 2:
		return ((const uint16_t *)p)[i];
	case 4:
		return ((const uint32_t *)p)[i];
	default:
		return ((const uint64_t *)p)[i];
	}
}

static void write_reg(void *p, unsigned int i, unsigned int width, uint64_t v)
{
	switch (width) {
	case 2:
		((uint16_t *)p)[i] = (uint16_t)v;
		break;
	case 4:
		((uint32_t *)p)[i] = (uint32_t)v;
		break;
	default:
		((uint64_t *)p)[i] = v;
	}
}

/* Returns the low bits of v as a number of type t, extended to 64 bits. */
static uint64_t extend_to_64_bits(uint64_t v, enum ptx_type t)
{
	unsigned int bits = ptx_type_size(t) * 8;

	if (bits == 64)
		return v;
	v &= (1ull << bits) - 1;
	if (ptx_type_signed(t) && v >> (bits - 1))
		v |= UINT64_MAX << bits;
	return v;
}

static double to_double(uint64_t bits, enum ptx_type t, bool ftz)
{
	switch (t) {
	case T_F16:
		return fp_half_widen((uint16_t)bits);
	case T_BF16:
		return fp_bf16_widen((uint16_t)bits);
	case T_F32:
		return ftz ? f_flush(f_from((uint32_t)bits)) : f_from((uint32_t)bits);
	default:
		return d_from(bits);
	}
}

static double round_to_integer(double d, unsigned int rnd)
{
	switch (rnd) {
	case RND_Z:
		return trunc(d);
	case RND_M:
		return floor(d);
	case RND_P:
		return ceil(d);
	default:
		return rint(d); /* the host thread rounds to nearest */
	}
}

static uint64_t float_to_int(double d, enum ptx_type t, unsigned int rnd, enum ptx_type from)
{
	unsigned int bits = ptx_type_size(t) * 8;

	if (d != d)
		return bits == 64 || from == T_F64 ? 1ull << (bits - 1) : 0;
	d = round_to_integer(d, rnd);
	if (ptx_type_signed(t)) {
		double lim = ldexp(1.0, (int)bits - 1);

		if (d >= lim)
			return bits == 64 ? INT64_MAX : (1ull << (bits - 1)) - 1;
		if (d < -lim)
			return 0 - (1ull << (bits - 1));
		return (uint64_t)(int64_t)d;
	}
	if (d <= 0)
		return 0;
	if (d >= ldexp(1.0, (int)bits))
		return bits == 64 ? UINT64_MAX : (1ull << bits) - 1;
	return (uint64_t)d;
}

/*
 * Converts an integer to a double, rounded once to `keep` bits. `keep` is the precision of the
 * target format, so a conversion of the double to this format does not round again.
 */
static double int_to_double(uint64_t v, bool neg, unsigned int keep, unsigned int rnd)
{
	uint64_t mag = neg ? 0 - v : v, q, rem, half;
	unsigned int top, drop;
	bool up;
	double d;

	if (!mag)
		return 0;
	top = 64 - (unsigned int)__builtin_clzll(mag);
	if (top <= keep) {
		d = (double)mag;
		return neg ? -d : d;
	}
	drop = top - keep;
	q = mag >> drop;
	rem = mag & ((1ull << drop) - 1);
	half = 1ull << (drop - 1);
	switch (rnd) {
	case RND_N:
		up = rem > half || (rem == half && q & 1);
		break;
	case RND_M:
		up = rem && neg;
		break;
	case RND_P:
		up = rem && !neg;
		break;
	default:
		up = false;
	}
	d = ldexp((double)(q + up), (int)drop);
	return neg ? -d : d;
}

static uint64_t narrow(double d, enum ptx_type t, uint16_t flags)
{
	unsigned int rnd = flags & IF_RND;
	uint32_t u;

	if (flags & IF_SAT)
		d = d_sat(d);
	if (flags & IF_RELU && !(d > 0) && d == d)
		d = 0;
	if (flags & IF_FIN && isinf(d))
		d = copysign(DBL_MAX, d);
	switch (t) {
	case T_F16:
		u = fp_half_narrow(d, rnd);
		return flags & IF_FIN && (u & 0x7fff) == 0x7c00 ? u - 1 : u;
	case T_BF16:
		u = fp_bf16_narrow(d, rnd);
		return flags & IF_FIN && (u & 0x7fff) == 0x7f80 ? u - 1 : u;
	case T_F32:
		if (d != d)
			return PTX_NAN32;
		u = fp_narrow(d, 23, 8, rnd);
		return flags & IF_FTZ && !(u & 0x7f800000u) ? u & 0x80000000u : u;
	default:
		return d_bits(d);
	}
}

static unsigned int precision(enum ptx_type t)
{
	return t == T_F16 ? 11 : t == T_BF16 ? 8 : t == T_F32 ? 24 : 53;
}

static uint64_t clamp_int(uint64_t v, enum ptx_type st, enum ptx_type dt)
{
	unsigned int bits = ptx_type_size(dt) * 8;
	bool neg = ptx_type_signed(st) && v >> 63;
	uint64_t max;

	if (!ptx_type_signed(dt)) {
		if (neg)
			return 0;
		max = bits == 64 ? UINT64_MAX : (1ull << bits) - 1;
		return v > max ? max : v;
	}
	max = (1ull << (bits - 1)) - 1;
	if (neg)
		return (int64_t)v < -(int64_t)max - 1 ? ~max : v;
	return v > max ? max : v;
}

static uint64_t convert_value(uint64_t v, const struct ptx_insn *in)
{
	enum ptx_type dt = (enum ptx_type)in->type, st = (enum ptx_type)in->type2;
	bool sf = ptx_type_float(st), df = ptx_type_float(dt);
	unsigned int rnd = in->flags & IF_RND;
	double d;

	if (!sf) {
		v = extend_to_64_bits(v, st);
		if (df)
			return narrow(int_to_double(v, ptx_type_signed(st) && v >> 63,
						    precision(dt), rnd),
				      dt, in->flags);
		if (in->flags & IF_SAT)
			v = clamp_int(v, st, dt);
		return extend_to_64_bits(v, dt);
	}
	d = to_double(v, st, in->flags & IF_FTZ);
	if (!df)
		return extend_to_64_bits(float_to_int(d, dt, rnd, st), dt);
	if (in->nx) /* the instruction rounds to an integer, in the same format */
		d = round_to_integer(d, rnd);
	return narrow(d, dt, in->flags);
}

void ptx_h_cvt(struct ptx_warp *w, const struct ptx_insn *in, uint32_t m)
{
	void *d = ptx_at(w, in->d);
	const void *a = ptx_at(w, in->a);
	unsigned int dw = in->sub >> 4, sw = in->sub & 15;

	for (uint32_t r = m; r; r &= r - 1) {
		unsigned int i = ptx_lane(r);

		write_reg(d, i, dw, convert_value(read_reg(a, i, sw), in));
	}
}

/* cvt.pack: a and b are clamped and go to the low bits of d. The bits of c move up. */
void ptx_h_cvt_pack(struct ptx_warp *w, const struct ptx_insn *in, uint32_t m)
{
	const int32_t *a = ptx_at(w, in->a), *b = ptx_at(w, in->b);
	const uint32_t *c = ptx_at(w, in->c), mask = (1u << in->nx) - 1;
	const int32_t max = (int32_t)(mask >> in->sub), min = in->sub ? -max - 1 : 0;
	uint32_t *d = ptx_at(w, in->d);

	for (uint32_t r = m; r; r &= r - 1) {
		unsigned int i = ptx_lane(r);
		int32_t hi = a[i] > max ? max : a[i] < min ? min : a[i];
		int32_t lo = b[i] > max ? max : b[i] < min ? min : b[i];
		uint32_t two = ((uint32_t)hi & mask) << in->nx | ((uint32_t)lo & mask);

		d[i] = in->nx == 16 ? two : c[i] << 2 * in->nx | two;
	}
}

/* cvt.f16x2.f32 d, a, b: a goes to the upper half. */
void ptx_h_cvt_pair(struct ptx_warp *w, const struct ptx_insn *in, uint32_t m)
{
	enum ptx_type t = in->type == T_F16X2 ? T_F16 : T_BF16;
	const float *a = ptx_at(w, in->a), *b = ptx_at(w, in->b);
	uint32_t *d = ptx_at(w, in->d);

	for (uint32_t r = m; r; r &= r - 1) {
		unsigned int i = ptx_lane(r);

		d[i] = (uint32_t)narrow(a[i], t, in->flags) << 16 |
		       (uint32_t)narrow(b[i], t, in->flags);
	}
}
