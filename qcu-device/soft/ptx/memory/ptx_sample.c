// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Reading textures: from coordinates to texels, and from texels to a value.
 *
 * For a linear filter, coordinates are rounded to 1/256 of a texel. GPUs do the same: their weights
 * have 8 fraction bits. The mixing itself is done in double and rounded once.
 */
#include <math.h>
#include <string.h>

#include "qcu-device/soft/ptx/ops/ptx_fp.h"
#include "qcu-device/soft/ptx/memory/ptx_image.h"
#include "qcu-device/soft/ptx/memory/ptx_mem.h"

#define BORDER (-1)
#define FAR    1.0e9

static uint32_t float_bits(float f)
{
	uint32_t u;

	memcpy(&u, &f, sizeof(u));
	return u;
}

static float bits_float(uint32_t u)
{
	float f;

	memcpy(&f, &u, sizeof(f));
	return f;
}

static float from_srgb(float v)
{
	return v <= 0.04045f ? v / 12.92f : powf((v + 0.055f) / 1.055f, 2.4f);
}

/* True if the texture returns floats. */
static bool is_float(const struct ptx_image *img)
{
	return img->texel == TEXEL_FLOAT || img->unit;
}

/* Converts an integer of `bits` bits to a fraction: 0 to 1, or -1 to 1 if it is signed. */
static float fraction(const struct ptx_image *img, uint32_t v)
{
	float most = img->bits == 8 ? 255.0f : 65535.0f, f;

	if (img->texel == TEXEL_UNSIGNED)
		return (float)v / most;
	most = img->bits == 8 ? 127.0f : 32767.0f;
	f = (float)(int32_t)v / most;
	return f < -1.0f ? -1.0f : f;
}

/* Converts a texel to four registers. Missing channels are 0; a missing fourth channel is 1. */
static void decode_texel(const struct ptx_image *img, const uint8_t *p, uint32_t out[4])
{
	out[1] = out[2] = 0;
	out[3] = is_float(img) ? float_bits(1.0f) : 1;
	for (unsigned int i = 0; i < img->channels; i++) {
		uint32_t v = 0;

		memcpy(&v, p + i * img->bits / 8, img->bits / 8);
		if (img->texel == TEXEL_SIGNED && img->bits < 32)
			v = (uint32_t)((int32_t)(v << (32 - img->bits)) >> (32 - img->bits));
		if (img->texel == TEXEL_FLOAT && img->bits == 16)
			v = float_bits(fp_half_widen((uint16_t)v));
		if (img->unit) {
			float f = fraction(img, v);

			v = float_bits(img->srgb && i < 3 ? from_srgb(f) : f);
		}
		out[i] = v;
	}
}

static void border(const struct ptx_image *img, uint32_t out[4])
{
	for (unsigned int i = 0; i < 4; i++) {
		if (is_float(img))
			out[i] = float_bits(img->border[i]);
		else if (img->texel == TEXEL_SIGNED)
			out[i] = (uint32_t)(int32_t)img->border[i];
		else
			out[i] = (uint32_t)img->border[i];
	}
}

/* Reads the texel at these indices. Each is inside of the level, or BORDER. */
static bool texel(const struct ptx_sample *s, const struct ptx_image_level *l, const int32_t i[3],
		  uint32_t out[4])
{
	const struct ptx_image *img = s->img;
	uint64_t addr;

	for (unsigned int d = 0; d < img->dims; d++)
		if (i[d] == BORDER) {
			border(img, out);
			return true;
		}
	addr = l->addr + (uint64_t)i[0] * img->elem;
	if (img->dims > 1)
		addr += (uint64_t)i[1] * l->pitch;
	addr += (img->dims > 2 ? (uint64_t)i[2] : s->layer) * l->slice;
	if (img->memory && !ptx_resolve_one(s->w, s->lane, addr, img->elem, false))
		return false;
	decode_texel(img, (const uint8_t *)(uintptr_t)addr, out);
	return true;
}

static enum ptx_address address_mode_of(const struct ptx_image *img, unsigned int d)
{
	enum ptx_address mode = img->cube ? ADDRESS_CLAMP : img->address[d];

	/* Only textures with normalized coordinates can repeat. */
	if (!img->normalized && (mode == ADDRESS_WRAP || mode == ADDRESS_MIRROR))
		mode = ADDRESS_CLAMP;
	return mode;
}

static int32_t to_index(enum ptx_address mode, int64_t i, uint32_t size)
{
	int64_t n = size;

	switch (mode) {
	case ADDRESS_WRAP:
		i %= n;
		return (int32_t)(i < 0 ? i + n : i);
	case ADDRESS_MIRROR:
		i %= 2 * n;
		i = i < 0 ? i + 2 * n : i;
		return (int32_t)(i < n ? i : 2 * n - 1 - i);
	case ADDRESS_CLAMP:
		return (int32_t)(i < 0 ? 0 : i < n ? i : n - 1);
	default:
		return i < 0 || i >= n ? BORDER : (int32_t)i;
	}
}

/* Converts a coordinate to texels of a level. */
static double position(const struct ptx_image *img, float at, unsigned int d, uint32_t size)
{
	enum ptx_address mode = address_mode_of(img, d);
	double x = at;

	if (isnan(x))
		return 0;
	if (mode == ADDRESS_WRAP)
		x -= floor(x);
	else if (mode == ADDRESS_MIRROR)
		x -= 2 * floor(x / 2);
	if (isnan(x)) /* infinite */
		return 0;
	if (img->normalized)
		x *= size;
	return x < -FAR ? -FAR : x > FAR ? FAR : x;
}

/* The coordinate in 1/256 of a texel, counted from the middle of the first texel. */
static int64_t grid(const struct ptx_image *img, float at, unsigned int d, uint32_t size)
{
	return (int64_t)floor(position(img, at, d, size) * 256 + 0.5) - 128;
}

static bool nearest(const struct ptx_sample *s, const struct ptx_image_level *l, uint32_t out[4])
{
	int32_t i[3] = {0};

	for (unsigned int d = 0; d < s->img->dims; d++)
		i[d] = to_index(address_mode_of(s->img, d),
				(int64_t)floor(position(s->img, s->at[d], d, l->size[d])),
				l->size[d]);
	return texel(s, l, i, out);
}

static bool mix_texels(const struct ptx_sample *s, const struct ptx_image_level *l, uint32_t out[4])
{
	const unsigned int dims = s->img->dims;
	double sum[4] = {0}, weight[3] = {0};
	int64_t low[3] = {0};

	for (unsigned int d = 0; d < dims; d++) {
		int64_t g = grid(s->img, s->at[d], d, l->size[d]);

		low[d] = g >> 8;
		weight[d] = (double)(g & 255) / 256;
	}
	for (unsigned int corner = 0; corner < 1u << dims; corner++) {
		int32_t i[3] = {0};
		uint32_t v[4];
		double part = 1;

		for (unsigned int d = 0; d < dims; d++) {
			bool high = corner >> d & 1;

			part *= high ? weight[d] : 1 - weight[d];
			i[d] = to_index(address_mode_of(s->img, d), low[d] + high, l->size[d]);
		}
		/* Skip texels without weight: 0 times an infinity would be NaN. */
		if (part == 0)
			continue;
		if (!texel(s, l, i, v))
			return false;
		for (unsigned int c = 0; c < 4; c++)
			sum[c] += part * bits_float(v[c]);
	}
	for (unsigned int c = 0; c < 4; c++)
		out[c] = float_bits((float)sum[c]);
	return true;
}

static bool from_level(const struct ptx_sample *s, unsigned int level, uint32_t out[4])
{
	const struct ptx_image_level *l = &s->img->level[level];

	return s->img->linear ? mix_texels(s, l, out) : nearest(s, l, out);
}

/* Reads by index; outside of the level the result is zero. */
static bool by_index(const struct ptx_sample *s, uint32_t out[4])
{
	unsigned int level = s->lod > 0 ? (unsigned int)fminf(s->lod, PTX_IMAGE_LEVELS) : 0;
	const struct ptx_image_level *l = &s->img->level[level < s->img->levels ? level : 0];

	for (unsigned int d = 0; d < s->img->dims; d++)
		if (s->index[d] < 0 || (uint32_t)s->index[d] >= l->size[d]) {
			memset(out, 0, 4 * sizeof(out[0]));
			return true;
		}
	return texel(s, l, s->index, out);
}

bool ptx_sample(const struct ptx_sample *s, uint32_t out[4])
{
	const struct ptx_image *img = s->img;
	float most = (float)(img->levels - 1), lod = s->lod + img->bias, above;
	uint32_t other[4];
	unsigned int level;

	if (s->exact)
		return by_index(s, out);
	if (img->levels == 1)
		return from_level(s, 0, out);
	lod = isnan(lod) || lod < img->min_level ? img->min_level : lod;
	lod = lod > img->max_level ? img->max_level : lod;
	lod = lod > 0 ? lod : 0;
	lod = lod > most ? most : lod;
	if (!img->mip_linear)
		return from_level(s, (unsigned int)(lod + 0.5f), out);
	level = (unsigned int)lod;
	above = floorf((lod - (float)level) * 256 + 0.5f) / 256;
	if (!from_level(s, level, out))
		return false;
	if (above == 0)
		return true;
	if (!from_level(s, level + 1, other))
		return false;
	for (unsigned int c = 0; c < 4 && is_float(img); c++)
		out[c] =
			float_bits(bits_float(out[c]) * (1 - above) + bits_float(other[c]) * above);
	return true;
}

bool ptx_gather(const struct ptx_sample *s, unsigned int component, uint32_t out[4])
{
	/* Counterclockwise, starting at the lower left corner. */
	static const uint8_t corner[4][2] = {{0, 1}, {1, 1}, {1, 0}, {0, 0}};
	const struct ptx_image_level *l = &s->img->level[0];
	int64_t low[2];

	for (unsigned int d = 0; d < 2; d++)
		low[d] = grid(s->img, s->at[d], d, l->size[d]) >> 8;
	for (unsigned int k = 0; k < 4; k++) {
		int32_t i[3] = {0};
		uint32_t v[4];

		for (unsigned int d = 0; d < 2; d++)
			i[d] = to_index(address_mode_of(s->img, d), low[d] + corner[k][d],
					l->size[d]);
		if (!texel(s, l, i, v))
			return false;
		out[k] = v[component];
	}
	return true;
}

float ptx_sample_lod(const struct ptx_image *img, const float *dx, const float *dy)
{
	double x = 0, y = 0;

	for (unsigned int d = 0; d < img->dims; d++) {
		double n = img->normalized ? img->level[0].size[d] : 1;

		x += dx[d] * n * dx[d] * n;
		y += dy[d] * n * dy[d] * n;
	}
	return (float)(0.5 * log2(x > y ? x : y));
}
