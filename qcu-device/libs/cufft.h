/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The mirror's side of cuFFT. */
#ifndef QCU_LIBS_CUFFT_H
#define QCU_LIBS_CUFFT_H

#include "qcu-device/libs/libs.h"

#include <cufft.h>
#include <cufftXt.h>

#define KIND_cufftHandle QCU_LIB_CUFFT_PLAN

/* No stub is written by hand. */
#define lib_cufft_helpers NULL
#define LIB_HELPERS	  0

extern const struct lib_kind lib_cufft_kinds[QCU_LIB_KINDS];

#endif
