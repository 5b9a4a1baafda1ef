/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The mirror's side of cuBLAS. */
#ifndef QCU_LIBS_CUBLAS_H
#define QCU_LIBS_CUBLAS_H

#include "qcu-device/libs/libs.h"

#include <cublas_v2.h>

#include "include/qculib_cublas.h"

#define KIND_cublasHandle_t QCU_LIB_CUBLAS_HANDLE

/* No stub is written by hand. */
#define lib_cublas_helpers NULL
#define LIB_HELPERS	   0

extern const struct lib_kind lib_cublas_kinds[QCU_LIB_KINDS];

#endif
