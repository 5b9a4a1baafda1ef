/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The shim of cuRAND: what the generated functions and those written by hand share. */
#ifndef QCUL_CURAND_H
#define QCUL_CURAND_H

#include "qcu-library/libs/libs.h"

#pragma GCC visibility push(default)
#include <curand.h>
#pragma GCC visibility pop

#define KIND_curandGenerator_t QCU_LIB_CURAND_GENERATOR

extern const struct qcul_lib qcul_curand;

#endif
