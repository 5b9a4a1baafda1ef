/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The shim of cuRAND: what the generated functions and those written by hand share. */
#ifndef QCUL_CURAND_H
#define QCUL_CURAND_H

#include "include/qculib_curand.h"
#include "qcu-library/libs/libs.h"

#pragma GCC visibility push(default)
#include <curand.h>
#pragma GCC visibility pop

#define KIND_curandGenerator_t QCU_LIB_CURAND_GENERATOR

extern const struct qcul_lib qcul_curand;
extern const uint16_t qcul_number_curandGetDirectionVectors32,
	qcul_number_curandGetDirectionVectors64, qcul_number_curandGetScrambleConstants32,
	qcul_number_curandGetScrambleConstants64;

/* The generated functions, which send one call. curand.c has those that programs see. */
__typeof__(curandSetQuasiRandomGeneratorDimensions) inner_curandSetQuasiRandomGeneratorDimensions;
__typeof__(curandGenerate) inner_curandGenerate;
__typeof__(curandGenerateLongLong) inner_curandGenerateLongLong;
__typeof__(curandGenerateUniform) inner_curandGenerateUniform;
__typeof__(curandGenerateUniformDouble) inner_curandGenerateUniformDouble;
__typeof__(curandGenerateNormal) inner_curandGenerateNormal;
__typeof__(curandGenerateNormalDouble) inner_curandGenerateNormalDouble;
__typeof__(curandGenerateLogNormal) inner_curandGenerateLogNormal;
__typeof__(curandGenerateLogNormalDouble) inner_curandGenerateLogNormalDouble;
__typeof__(curandGeneratePoisson) inner_curandGeneratePoisson;
__typeof__(curandGeneratePoissonMethod) inner_curandGeneratePoissonMethod;

#endif
