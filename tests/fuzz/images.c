// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Textures and surfaces for fuzzed kernels: any number names one of these. Their texels end where
 * their memory ends, so that the sanitizer sees an access beyond them.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/images.h"

#define COUNT 9u

static const struct shape {
	struct ptx_image img;
	uint32_t size[3];
	bool buffer; /* in device memory */
} shapes[COUNT] = {
	{.img = {.dims = 2,
		 .channels = 4,
		 .bits = 8,
		 .texel = TEXEL_UNSIGNED,
		 .unit = true,
		 .srgb = true,
		 .linear = true,
		 .normalized = true,
		 .levels = 1},
	 .size = {8, 4, 1}},
	{.img = {.dims = 1,
		 .channels = 1,
		 .bits = 32,
		 .texel = TEXEL_FLOAT,
		 .levels = 1,
		 .address = {ADDRESS_CLAMP}},
	 .size = {17, 1, 1}},
	{.img = {.dims = 3,
		 .channels = 2,
		 .bits = 16,
		 .texel = TEXEL_FLOAT,
		 .levels = 2,
		 .linear = true,
		 .mip_linear = true,
		 .normalized = true,
		 .max_level = 1,
		 .address = {ADDRESS_MIRROR, ADDRESS_BORDER, ADDRESS_WRAP}},
	 .size = {5, 3, 2}},
	{.img = {.dims = 2,
		 .cube = true,
		 .channels = 1,
		 .bits = 32,
		 .texel = TEXEL_FLOAT,
		 .linear = true,
		 .normalized = true,
		 .levels = 3,
		 .max_level = 8,
		 .bias = 0.5f},
	 .size = {4, 4, 6}},
	{.img = {.dims = 1,
		 .layered = true,
		 .channels = 2,
		 .bits = 8,
		 .texel = TEXEL_SIGNED,
		 .unit = true,
		 .linear = true,
		 .levels = 1,
		 .address = {ADDRESS_BORDER}},
	 .size = {9, 1, 3}},
	{.img = {.dims = 1,
		 .fetch = true,
		 .memory = true,
		 .channels = 4,
		 .bits = 32,
		 .texel = TEXEL_SIGNED,
		 .levels = 1},
	 .size = {64, 1, 1},
	 .buffer = true},
	/* Larger than the buffer: the machine must notice the missing part. */
	{.img = {.dims = 2,
		 .memory = true,
		 .channels = 1,
		 .bits = 16,
		 .texel = TEXEL_UNSIGNED,
		 .levels = 1,
		 .address = {ADDRESS_CLAMP, ADDRESS_CLAMP}},
	 .size = {128, 1024, 1},
	 .buffer = true},
	{.img = {.surface = true,
		 .dims = 2,
		 .channels = 1,
		 .bits = 32,
		 .texel = TEXEL_UNSIGNED,
		 .levels = 1},
	 .size = {8, 4, 1}},
	{.img = {.surface = true,
		 .dims = 2,
		 .layered = true,
		 .channels = 4,
		 .bits = 16,
		 .texel = TEXEL_FLOAT,
		 .levels = 1},
	 .size = {3, 3, 2}},
};

static struct ptx_image images[COUNT];

static uint32_t half(uint32_t n)
{
	return n > 1 ? n / 2 : 1;
}

static void make(struct ptx_image *img, const struct shape *s, uint64_t buffer)
{
	uint32_t size[3] = {s->size[0], s->size[1], s->size[2]};

	*img = s->img;
	img->elem = img->bits / 8 * img->channels;
	for (unsigned int i = 0; i < img->levels; i++) {
		struct ptx_image_level *l = &img->level[i];
		size_t bytes;

		memcpy(l->size, size, sizeof(size));
		l->pitch = (uint64_t)size[0] * img->elem;
		l->slice = l->pitch * size[1];
		bytes = l->slice * size[2];
		l->addr = s->buffer ? buffer : (uintptr_t)calloc(1, bytes);
		if (!l->addr)
			abort();
		size[0] = half(size[0]);
		size[1] = half(size[1]);
		size[2] = img->dims > 2 ? half(size[2]) : size[2];
	}
}

void fuzz_images(uint64_t buffer)
{
	for (unsigned int i = 0; i < COUNT; i++) {
		if (!images[i].levels)
			make(&images[i], &shapes[i], buffer);
		if (shapes[i].buffer)
			images[i].level[0].addr = buffer;
	}
}

const struct ptx_image *fuzz_image(void *ctx, uint64_t number)
{
	(void)ctx;
	return number ? &images[(number ^ number >> 8) % COUNT] : NULL;
}
