/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the PTX machine knows about textures and surfaces: where their texels are, the format of a
 * texel, and how a kernel reads it. Kernels name an image by a number; the code that loads a module
 * provides the function that finds the image (ptx_env.image).
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
	bool memory; /* no array: it may be freed before the image, so every access is checked */
	bool fetch;  /* linear memory: read by index only, zero outside */
	bool layered, cube;
	uint8_t dims; /* 1 to 3, without the layers */
	uint8_t channels, bits, elem;
	enum ptx_texel texel;
	/* Textures only. */
	bool unit;	 /* integers are read as fractions of 1 */
	bool srgb;	 /* ... and converted from sRGB */
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

/* The position and the level of detail at which one lane reads. */
struct ptx_sample {
	struct ptx_warp *w;
	unsigned int lane;
	const struct ptx_image *img;
	uint32_t layer; /* slice in the level, for layers and cube faces */
	bool exact;	/* true: index has texel indices; false: at has coordinates */
	int32_t index[3];
	float at[3];
	float lod;
};

/*
 * ptx_sample.c: reads a texture at this position, filtered if the texture says so, into four
 * registers. False: the lane has a fault.
 */
bool ptx_sample(const struct ptx_sample *s, uint32_t out[4]);
/* Reads one component of each of the four texels that a linear filter would mix. */
bool ptx_gather(const struct ptx_sample *s, unsigned int component, uint32_t out[4]);
/* The level of detail, from the differences between the coordinates of neighbours. */
float ptx_sample_lod(const struct ptx_image *img, const float *dx, const float *dy);

#endif
