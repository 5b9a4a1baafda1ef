/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The mirror's side of cuRAND. */
#ifndef QCU_LIBS_CURAND_H
#define QCU_LIBS_CURAND_H

#include "qcu-device/libs/libs.h"

#include <curand.h>

#define KIND_curandGenerator_t QCU_LIB_CURAND_GENERATOR

/* No stub is written by hand. */
#define lib_curand_helpers NULL
#define LIB_HELPERS	   0

extern const struct lib_kind lib_curand_kinds[QCU_LIB_KINDS];

#endif
