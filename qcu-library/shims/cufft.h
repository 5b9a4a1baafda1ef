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

#endif
