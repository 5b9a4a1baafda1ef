// SPDX-License-Identifier: GPL-2.0-or-later
/* The instructions that read textures, lane by lane; ptx_sample.c has the arithmetic. */
#include <math.h>
#include <string.h>

#include "qcu-device/soft/ptx/memory/ptx_tex.h"

/* Returns the image that a lane names; `last` saves a second look-up for the next lanes. */
const struct ptx_image *ptx_image_find(struct ptx_warp *w, unsigned int lane, uint64_t number,
				       bool surface, struct ptx_image_last *last)
{
	const struct ptx_env *env = &w->blk->grid->mod->env;

	if (!last->img || last->number != number) {
		last->img = env->image ? env->image(env->ctx, number) : NULL;
		last->number = number;
	}
	if (!last->img)
		ptx_fault(w, lane, PTX_ILLEGAL_ADDRESS, "%#llx is no texture or surface object",
			  (unsigned long long)number);
	else if (last->img->surface != surface)
		ptx_fault(w, lane, PTX_ILLEGAL_ADDRESS, "%#llx is a %s object",
			  (unsigned long long)number, surface ? "texture" : "surface");
	else
		return last->img;
	return NULL;
}

static float to_float(uint32_t u)
{
	float f;

	memcpy(&f, &u, sizeof(f));
	return f;
}

/* Converts a direction to a face of a cube and the position in this face. */
static void face(struct ptx_sample *s, const float dir[3], uint32_t layer)
{
	float x = dir[0], y = dir[1], z = dir[2], ax = fabsf(x), ay = fabsf(y), az = fabsf(z);
	float u, v, m;
	uint32_t f;

	if (ax >= ay && ax >= az) {
		f = x < 0;
		u = x < 0 ? z : -z;
		v = -y;
		m = ax;
	} else if (ay >= az) {
		f = 2 + (y < 0);
		u = x;
		v = y < 0 ? -z : z;
		m = ay;
	} else {
		f = 4 + (z < 0);
		u = z < 0 ? -x : x;
		v = -y;
		m = az;
	}
	s->at[0] = (u / m + 1) / 2;
	s->at[1] = (v / m + 1) / 2;
	s->layer = layer * 6 + f;
}

/* Reads the coordinates of one lane. c: the values of the instruction's registers. */
static bool read_coordinates(struct ptx_sample *s, const struct ptx_insn *in, const uint32_t *c)
{
	const struct ptx_image *img = s->img;
	uint32_t layers = img->level[0].size[2], layer = 0;
	const uint32_t *at = c;
	float dir[3];

	s->exact = in->type == T_S32 || img->fetch;
	if (GEOM_LAYERED(in->sub)) {
		layer = *at++;
		layers = img->cube ? layers / 6 : layers;
		layer = (int32_t)layer < 0 ? 0 : layer < layers ? layer : layers - 1;
		s->layer = img->layered ? layer : 0;
	}
	if (GEOM_IS_CUBE(in->sub) != img->cube) {
		ptx_fault(s->w, s->lane, PTX_ILLEGAL_ADDRESS,
			  "a cube is read as what it is not, or the other way round");
		return false;
	}
	if (img->cube) {
		for (unsigned int i = 0; i < 3; i++)
			dir[i] = to_float(at[i]);
		face(s, dir, img->layered ? layer : 0);
		return true;
	}
	for (unsigned int i = 0; i < GEOM_DIMS(in->sub); i++) {
		s->at[i] = in->type == T_S32 ? 0 : to_float(at[i]);
		/* NaN, infinities and large values have no texel. */
		s->index[i] = in->type == T_S32		  ? (int32_t)at[i]
			      : fabsf(s->at[i]) < 0x1p31f ? (int32_t)floorf(s->at[i])
							  : -1;
	}
	return true;
}

static void level(struct ptx_sample *s, const struct ptx_insn *in, const uint32_t *c)
{
	unsigned int dims = GEOM_IS_CUBE(in->sub) ? 3 : GEOM_DIMS(in->sub);
	float dx[4] = {0}, dy[4] = {0};

	if (in->flags & TEX_LEVEL) {
		s->lod = in->type == T_S32 ? (float)(int32_t)*c : to_float(*c);
	} else if (in->flags & TEX_GRAD) {
		for (unsigned int i = 0; i < dims; i++) {
			dx[i] = to_float(c[i]);
			dy[i] = to_float(c[dims + i]);
		}
		s->lod = ptx_sample_lod(s->img, dx, dy);
	}
}

static void put_texel_values(struct ptx_warp *w, const struct ptx_insn *in, const uint32_t *x,
			     unsigned int lane, const uint32_t *v)
{
	for (unsigned int k = 0; k < in->type2; k++)
		if (x[k])
			((uint32_t *)ptx_at(w, x[k]))[lane] = v[k];
	/* The predicate d2 says whether all texels are resident. Here they always are. */
	if (in->d2)
		*(uint32_t *)ptx_at(w, in->d2) |= 1u << lane;
}

void ptx_h_tex(struct ptx_warp *w, const struct ptx_insn *in, uint32_t m)
{
	const uint32_t *x = w->blk->grid->mod->xops + in->x;
	const uint64_t *number = ptx_at(w, in->a);
	struct ptx_image_last last = {0};

	for (uint32_t r = m; r; r &= r - 1) {
		unsigned int lane = ptx_lane(r);
		struct ptx_sample s = {.w = w, .lane = lane};
		uint32_t c[TEX_OPERANDS] = {0}, v[4] = {0};

		s.img = ptx_image_find(w, lane, number[lane], false, &last);
		if (!s.img)
			return;
		for (unsigned int k = in->type2; k < in->nx; k++)
			c[k - in->type2] = ((const uint32_t *)ptx_at(w, x[k]))[lane];
		if (!read_coordinates(&s, in, c))
			return;
		level(&s, in, c + GEOM_OPERANDS(in->sub));
		if (in->flags & TEX_GATHER && s.img->dims != 2) {
			ptx_fault(w, lane, PTX_ILLEGAL_ADDRESS,
				  "gather from a texture that is not 2D");
			return;
		}
		if (!(in->flags & TEX_GATHER ? ptx_gather(&s, (unsigned int)in->imm, v)
					     : ptx_sample(&s, v)))
			return;
		put_texel_values(w, in, x, lane, v);
	}
}

/* txq and suq */
void ptx_h_query(struct ptx_warp *w, const struct ptx_insn *in, uint32_t m)
{
	const uint64_t *number = ptx_at(w, in->a);
	const uint32_t *lod = in->b ? ptx_at(w, in->b) : NULL;
	uint32_t *d = ptx_at(w, in->d);
	struct ptx_image_last last = {0};

	for (uint32_t r = m; r; r &= r - 1) {
		unsigned int lane = ptx_lane(r);
		const struct ptx_image_level *l;
		const struct ptx_image *img;
		bool layers;

		img = ptx_image_find(w, lane, number[lane], in->space, &last);
		if (!img)
			return;
		l = &img->level[lod && lod[lane] < img->levels ? lod[lane] : 0];
		layers = img->layered || img->cube;
		switch ((enum ptx_query)in->sub) {
		case QUERY_WIDTH:
			d[lane] = l->size[0];
			break;
		case QUERY_HEIGHT:
			d[lane] = img->dims > 1 ? l->size[1] : 0;
			break;
		case QUERY_DEPTH:
			d[lane] = img->dims > 2 ? l->size[2] : 0;
			break;
		case QUERY_LAYERS:
			d[lane] = layers ? l->size[2] / (img->cube ? 6 : 1) : 0;
			break;
		case QUERY_LEVELS:
			d[lane] = img->levels;
			break;
		case QUERY_SAMPLES:
			d[lane] = 1;
			break;
		case QUERY_NORMALIZED:
			d[lane] = img->normalized;
			break;
		}
	}
}
