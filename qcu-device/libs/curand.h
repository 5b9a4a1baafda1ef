/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The mirror's side of cuRAND. */
#ifndef QCU_LIBS_CURAND_H
#define QCU_LIBS_CURAND_H

#include "include/qculib_curand.h"
#include "qcu-device/libs/libs.h"

#include <curand.h>

#define KIND_curandGenerator_t QCU_LIB_CURAND_GENERATOR

/* curand.c: stubs that are written by hand. */
int lib_do_curandGetDirectionVectors32(struct lib_call *c);
int lib_do_curandGetDirectionVectors64(struct lib_call *c);
int lib_do_curandGetScrambleConstants32(struct lib_call *c);
int lib_do_curandGetScrambleConstants64(struct lib_call *c);

#define lib_curand_helpers NULL
#define LIB_HELPERS	   0

extern const struct lib_kind lib_curand_kinds[QCU_LIB_KINDS];

#endif
