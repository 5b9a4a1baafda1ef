// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Video instructions: arithmetic on bytes and halves of words, with saturation, a second operation,
 * or a merge. Compilers write few of them, so they run one lane after another.
 */
#include <string.h>

#include "qcu-device/soft/ptx/ops/ptx_handlers.h"
#include "qcu-device/soft/ptx/ops/ptx_video.h"

static int64_t extend_bits(uint64_t v, unsigned int bits, bool sign)
{
	v &= (1ull << bits) - 1;
	return sign && v >> (bits - 1) ? (int64_t)(v | UINT64_MAX << bits) : (int64_t)v;
}

static void find_operand_bits(unsigned int selector, unsigned int *at, unsigned int *bits)
{
	*bits = selector == SELECT_ALL ? 32 : selector >= SELECT_H0 ? 16 : 8;
	*at = selector == SELECT_ALL  ? 0
	      : selector >= SELECT_H0 ? (selector - SELECT_H0) * 16
				      : (selector - SELECT_B0) * 8;
}

static int64_t read_selected(uint32_t v, unsigned int selector, bool sign)
{
	unsigned int at, bits;

	find_operand_bits(selector, &at, &bits);
	return extend_bits(v >> at, bits, sign);
}

static int64_t clamp(int64_t v, unsigned int bits, bool sign)
{
	int64_t max = (int64_t)(1ull << (bits - sign)) - 1, min = sign ? -max - 1 : 0;

	return v > max ? max : v < min ? min : v;
}

static bool compare_integers(int64_t a, int64_t b, unsigned int cmp)
{
	switch (cmp) {
	case CMP_EQ:
		return a == b;
	case CMP_NE:
		return a != b;
	case CMP_LT:
		return a < b;
	case CMP_LE:
		return a <= b;
	case CMP_GT:
		return a > b;
	default:
		return a >= b;
	}
}

static int64_t shift_operand(const struct ptx_video *v, int64_t a, int64_t b)
{
	b = v->wrap ? b & 31 : b > 32 ? 32 : b;
	return v->op == VIDEO_SHL ? (int64_t)((uint64_t)a << b) : a >> b;
}

static int64_t do_first_operation(const struct ptx_video *v, int64_t a, int64_t b)
{
	switch (v->op) {
	case VIDEO_ADD:
		return a + b;
	case VIDEO_SUB:
		return a - b;
	case VIDEO_ABSDIFF:
		return a > b ? a - b : b - a;
	case VIDEO_MIN:
		return a < b ? a : b;
	case VIDEO_MAX:
		return a > b ? a : b;
	case VIDEO_AVRG: /* rounds away from zero */
		return (a + b + (a + b >= 0)) >> 1;
	case VIDEO_SET:
		return compare_integers(a, b, v->cmp);
	default:
		return shift_operand(v, a, b);
	}
}

static uint32_t second(const struct ptx_video *v, uint32_t t, uint32_t c)
{
	bool less = v->dsigned ? (int32_t)t < (int32_t)c : t < c;

	switch (v->second) {
	case SECOND_ADD:
		return t + c;
	case SECOND_MIN:
		return less ? t : c;
	case SECOND_MAX:
		return less ? c : t;
	default:
		return t;
	}
}

static uint32_t scalar(const struct ptx_video *v, uint32_t a, uint32_t b, uint32_t c)
{
	int64_t t = do_first_operation(v, read_selected(a, v->apart, v->asigned),
				       read_selected(b, v->bpart, v->bsigned));
	unsigned int at, bits;
	uint32_t mask, r;

	find_operand_bits(v->dpart, &at, &bits);
	if (v->sat)
		t = clamp(t, bits, v->dsigned);
	r = second(v, (uint32_t)t, c);
	if (v->dpart == SELECT_ALL)
		return r;
	mask = ((1u << bits) - 1) << at;
	return (r << at & mask) | (c & ~mask);
}

static int64_t read_element(uint64_t ba, unsigned int sel, unsigned int k, unsigned int bits,
			    bool sign)
{
	unsigned int which = sel >> k * (bits == 16 ? 2 : 3) & (bits == 16 ? 3 : 7);

	return extend_bits(ba >> which * bits, bits, sign);
}

static uint32_t packed(const struct ptx_video *v, uint32_t a, uint32_t b, uint32_t c)
{
	const unsigned int bits = 32 / v->elements;
	const uint64_t ba = (uint64_t)b << 32 | a;
	uint32_t r = v->second ? c : 0, low = (1u << bits) - 1;

	for (unsigned int k = 0; k < v->elements; k++) {
		int64_t t = do_first_operation(v, read_element(ba, v->asel, k, bits, v->asigned),
					       read_element(ba, v->bsel, k, bits, v->bsigned));

		if (v->sat)
			t = clamp(t, bits, v->dsigned);
		if (v->second)
			r += v->mask >> k & 1 ? (uint32_t)t : 0;
		else if (v->mask >> k & 1)
			r |= ((uint32_t)t & low) << k * bits;
		else
			r |= c & low << k * bits;
	}
	return r;
}

static uint32_t multiply_add(const struct ptx_video *v, uint32_t a, uint32_t b, uint32_t c)
{
	bool neg = v->aneg ^ v->bneg, sign = v->asigned || v->bsigned || neg || v->cneg;
	__int128 t = (__int128)read_selected(a, v->apart, v->asigned) *
		     read_selected(b, v->bpart, v->bsigned);
	__int128 add = sign ? (__int128)(int32_t)c : (__int128)c, lim;

	if (neg)
		t = -t;
	if (v->cneg)
		add = -add;
	t = (t + add + v->plus_one) >> v->scale;
	if (v->sat && sign) {
		lim = INT32_MAX;
		t = t > lim ? lim : t < -lim - 1 ? -lim - 1 : t;
	} else if (v->sat) {
		lim = UINT32_MAX;
		t = t > lim ? lim : t < 0 ? 0 : t;
	}
	return (uint32_t)t;
}

void ptx_h_video(struct ptx_warp *w, const struct ptx_insn *in, uint32_t m)
{
	const uint32_t *a = ptx_at(w, in->a), *b = ptx_at(w, in->b), *c = ptx_at(w, in->c);
	uint32_t *d = ptx_at(w, in->d);
	struct ptx_video v;

	memcpy(&v, &in->imm, sizeof(v));
	for (uint32_t r = m; r; r &= r - 1) {
		unsigned int i = ptx_lane(r);

		if (v.op == VIDEO_MAD)
			d[i] = multiply_add(&v, a[i], b[i], c[i]);
		else if (v.elements == 1)
			d[i] = scalar(&v, a[i], b[i], c[i]);
		else
			d[i] = packed(&v, a[i], b[i], c[i]);
	}
}
