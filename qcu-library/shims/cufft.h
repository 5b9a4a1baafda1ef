/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The shim of cuFFT: what the generated functions and those written by hand share. */
#ifndef QCUL_CUFFT_H
#define QCUL_CUFFT_H

#include "qcu-library/libs/libs.h"

#pragma GCC visibility push(default)
#include <cufft.h>
#include <cufftXt.h>
#pragma GCC visibility pop

#define KIND_cufftHandle QCU_LIB_CUFFT_PLAN

extern const struct qcul_lib qcul_cufft;

/* Made by scripts/shims/generate. */
__typeof__(cufftMakePlan1d) inner_cufftMakePlan1d;
__typeof__(cufftMakePlan2d) inner_cufftMakePlan2d;
__typeof__(cufftMakePlan3d) inner_cufftMakePlan3d;
__typeof__(cufftMakePlanMany) inner_cufftMakePlanMany;
__typeof__(cufftMakePlanMany64) inner_cufftMakePlanMany64;
__typeof__(cufftXtMakePlanMany) inner_cufftXtMakePlanMany;

/* what a plan that has been made reads and writes, in bytes. An object has it as its
 * own. */
struct qcul_cufft_layout {
	size_t in, out;
};
void qcul_cufft_forget(struct qcul_object *o);

#endif
