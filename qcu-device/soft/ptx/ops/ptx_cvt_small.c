// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * cvt to and from the formats of 4, 6 and 8 bits, which come in pairs, and to tf32.
 */
#include "qcu-device/soft/ptx/ops/ptx_handlers.h"
#include "qcu-device/soft/ptx/ops/ptx_fp.h"

struct format {
	uint8_t mant, ebits;
	uint8_t bits; /* of an element, with its sign */
	uint8_t max;  /* the largest number */
	uint8_t inf;  /* 0: has none */
	uint8_t nan;  /* the one that is written; 0: has none */
	uint8_t step; /* bits from one element to the next */
};

static const struct format *format_of(unsigned int t)
{
	static const struct format f[] = {
		[T_E4M3X2 - T_E4M3X2] = {3, 4, 8, 0x7e, 0, 0x7f, 8},
		[T_E5M2X2 - T_E4M3X2] = {2, 5, 8, 0x7b, 0x7c, 0x7f, 8},
		[T_E2M3X2 - T_E4M3X2] = {3, 2, 6, 0x1f, 0, 0, 8},
		[T_E3M2X2 - T_E4M3X2] = {2, 3, 6, 0x1f, 0, 0, 8},
		[T_E2M1X2 - T_E4M3X2] = {1, 2, 4, 0x07, 0, 0, 4},
	};

	return &f[t - T_E4M3X2];
}

static uint32_t encode_small_float(double v, const struct format *f, uint16_t flags)
{
	uint64_t q = f->max;

	if (v != v)
		return f->nan ? f->nan : f->max;
	if (flags & IF_RELU && !(v > 0))
		v = 0;
	if (!isinf(v))
		q = fp_round(v, f->mant, f->ebits, RND_N);
	q = q > f->max ? f->max : q;
	return (uint32_t)q | (uint32_t)(d_bits(v) >> 63) << (f->bits - 1);
}

static double decode_small_float(uint32_t u, const struct format *f)
{
	uint32_t mag = u & ((1u << (f->bits - 1)) - 1), m = mag & ((1u << f->mant) - 1);
	int bias = (1 << (f->ebits - 1)) - 1, e = (int)(mag >> f->mant);
	double v = e ? ldexp((double)(m | 1u << f->mant), e - bias - f->mant)
		     : ldexp((double)m, 1 - bias - f->mant);

	if (mag > f->max)
		v = mag == f->inf ? INFINITY : NAN;
	return u >> (f->bits - 1) & 1 ? -v : v;
}

/* A scale is only a power of two: the sign is ignored. */
static uint32_t encode_scale(float x, unsigned int rnd, uint16_t flags)
{
	uint32_t u = f_bits(x) & 0x7fffffffu, e = u >> 23;

	if (u > 0x7f800000u)
		return 0xff;
	if (rnd == RND_P && u & 0x7fffffu && u > 0x400000u && u < 0x7f800000u)
		e++;
	return e == 0xff && flags & IF_FIN ? 0xfe : e;
}

static uint32_t decode_scale(uint32_t e)
{
	return e == 0xff ? 0x7fff : e ? e << 7 : 0x40;
}

void ptx_h_cvt_to_small(struct ptx_warp *w, const struct ptx_insn *in, uint32_t m)
{
	const bool scale = in->type == T_UE8M0X2;
	const struct format *f = scale ? NULL : format_of(in->type);
	const float *a = ptx_at(w, in->a), *b = ptx_at(w, in->b);
	const uint32_t *pair = ptx_at(w, in->a);
	uint16_t *d = ptx_at(w, in->d);

	for (uint32_t r = m; r; r &= r - 1) {
		unsigned int i = ptx_lane(r);
		float v[2]; /* low, high */

		if (in->type2 == T_F32) {
			v[0] = b[i];
			v[1] = a[i];
		} else {
			for (unsigned int k = 0; k < 2; k++)
				v[k] = in->type2 == T_F16X2
					       ? fp_half_widen((uint16_t)(pair[i] >> 16 * k))
					       : fp_bf16_widen((uint16_t)(pair[i] >> 16 * k));
		}
		if (scale)
			d[i] = (uint16_t)(encode_scale(v[0], in->nx, in->flags) |
					  encode_scale(v[1], in->nx, in->flags) << 8);
		else
			d[i] = (uint16_t)(encode_small_float(v[0], f, in->flags) |
					  encode_small_float(v[1], f, in->flags) << f->step);
	}
}

void ptx_h_cvt_from_small(struct ptx_warp *w, const struct ptx_insn *in, uint32_t m)
{
	const bool scale = in->type2 == T_UE8M0X2;
	const struct format *f = scale ? NULL : format_of(in->type2);
	const uint16_t *a = ptx_at(w, in->a);
	uint32_t *d = ptx_at(w, in->d);

	for (uint32_t r = m; r; r &= r - 1) {
		unsigned int i = ptx_lane(r);

		d[i] = 0;
		for (unsigned int k = 0; k < 2; k++) {
			double v;

			if (scale) {
				d[i] |= decode_scale(a[i] >> 8 * k & 0xff) << 16 * k;
				continue;
			}
			v = decode_small_float(
				(uint32_t)a[i] >> f->step * k & ((1u << f->bits) - 1), f);
			if (in->flags & IF_RELU && !(v > 0) && v == v)
				v = 0;
			d[i] |= (uint32_t)fp_half_narrow(v, RND_N) << 16 * k;
		}
	}
}

/* tf32 is single precision with 10 bits of mantissa. */
void ptx_h_cvt_tf32(struct ptx_warp *w, const struct ptx_insn *in, uint32_t m)
{
	const float *a = ptx_at(w, in->a);
	uint32_t *d = ptx_at(w, in->d);

	for (uint32_t r = m; r; r &= r - 1) {
		unsigned int i = ptx_lane(r);
		double v = a[i];

		if (v != v) {
			d[i] = PTX_NAN32;
			continue;
		}
		if (in->flags & IF_RELU && !(v > 0))
			v = 0;
		d[i] = fp_narrow(v, 10, 8, in->nx) << 13;
		if (in->flags & IF_FIN && (d[i] & 0x7fffffffu) == 0x7f800000u)
			d[i] -= 1u << 13;
	}
}
