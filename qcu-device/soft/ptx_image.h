/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the PTX machine knows of textures and surfaces: where their texels are, what these are made
 * of, and how they are to be read. Whoever loads a module answers for the numbers by which kernels
 * name them (ptx_env.image).
 */
#ifndef QCU_SOFT_PTX_IMAGE_H
#define QCU_SOFT_PTX_IMAGE_H

#include <stdbool.h>
#include <stdint.h>

#define PTX_IMAGE_LEVELS 18u

enum ptx_texel { TEXEL_SIGNED, TEXEL_UNSIGNED, TEXEL_FLOAT };
enum ptx_address { ADDRESS_WRAP, ADDRESS_CLAMP, ADDRESS_MIRROR, ADDRESS_BORDER };

struct ptx_image_level {
	uint64_t addr;
	uint32_t size[3]; /* texels, rows, slices or layers */
	uint64_t pitch, slice;
};

struct ptx_image {
	bool surface;
	bool memory; /* no array: may be freed while the image lives, so every access is checked */
	bool fetch;  /* a line of memory: only by index, nothing beyond its ends */
	bool layered, cube;
	uint8_t dims; /* 1 to 3, layers not counted */
	uint8_t channels, bits, elem;
	enum ptx_texel texel;
	/* Textures only. */
	bool unit;	 /* integers are read as fractions of 1 */
	bool srgb;	 /* ... on sRGB's curve */
	bool linear;	 /* filter */
	bool normalized; /* coordinates */
	bool mip_linear;
	enum ptx_address address[3];
	float border[4];
	float bias, min_level, max_level;
	unsigned int levels;
	struct ptx_image_level level[PTX_IMAGE_LEVELS];
};

struct ptx_warp;

/* Where one lane reads, and how finely. */
struct ptx_sample {
	struct ptx_warp *w;
	unsigned int lane;
	const struct ptx_image *img;
	uint32_t layer; /* slice in the level, for layers and faces */
	bool exact;	/* index holds texels, else at holds coordinates */
	int32_t index[3];
	float at[3];
	float lod;
};

/*
 * ptx_sample.c: the texel or the mixture of texels that a texture has there, as four registers.
 * False: the lane has a fault.
 */
bool ptx_sample(const struct ptx_sample *s, uint32_t out[4]);
/* One component of the four texels that a linear filter would mix. */
bool ptx_gather(const struct ptx_sample *s, unsigned int component, uint32_t out[4]);
/* From how far the coordinates of neighbours lie apart. */
float ptx_sample_lod(const struct ptx_image *img, const float *dx, const float *dy);

#endif
