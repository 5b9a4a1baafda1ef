/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The shim of cuBLAS: what the generated functions and those written by hand share. */
#ifndef QCUL_CUBLAS_H
#define QCUL_CUBLAS_H

#include "qcu-library/libs/libs.h"
#include "qcu-library/shims/cublas_status.h"

#pragma GCC visibility push(default)
#include <cublas_v2.h>
#pragma GCC visibility pop

#include "include/qculib_cublas.h"

#define KIND_cublasHandle_t QCU_LIB_CUBLAS_HANDLE

extern const struct qcul_lib qcul_cublas;
/* The numbers of functions whose settings others end. */
extern const uint16_t qcul_number_cublasSetWorkspace_v2;

#endif
