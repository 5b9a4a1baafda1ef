/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef IMAGE_H
#define IMAGE_H

#include "vk.h"

/* Has a shader write an image, and verifies each pixel. Prints the sum of them. */
void image(struct vk *vk);

#endif
