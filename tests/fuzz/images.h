/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Textures and surfaces for fuzzed kernels. */
#ifndef TESTS_FUZZ_IMAGES_H
#define TESTS_FUZZ_IMAGES_H

#include "qcu-device/soft/ptx/memory/ptx_image.h"

/* Makes the images, some of them in the 16 KiB of device memory at `buffer`. */
void fuzz_images(uint64_t buffer);
/* The function that struct ptx_env needs. */
const struct ptx_image *fuzz_image(void *ctx, uint64_t number);

#endif
