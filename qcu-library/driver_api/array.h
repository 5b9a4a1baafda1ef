/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Formats of arrays and textures, and shapes of copies, from one API to the other. */
#ifndef QCUL_DRIVER_ARRAY_H
#define QCUL_DRIVER_ARRAY_H

#include "qcu-library/driver_base/driver.h"

/* ---- format.c ---- */

/* cudaErrorInvalidValue: there is no such format here. */
cudaError_t qcul_format_from(struct cudaChannelFormatDesc *to, CUarray_format format,
			     unsigned int channels);
void qcul_format_to(CUarray_format *format, unsigned int *channels,
		    const struct cudaChannelFormatDesc *from);

/* ---- shape.c ---- */

/* Boxes. What the runtime has no name for (`reserved`, LOD) must be 0. */
cudaError_t qcul_shape_from(struct cudaMemcpy3DParms *to, const CUDA_MEMCPY3D *from);
void qcul_shape_to(CUDA_MEMCPY3D *to, const struct cudaMemcpy3DParms *from);

#endif
