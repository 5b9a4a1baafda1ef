/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The shim of cuBLASLt: what the generated functions and those written by hand share. */
#ifndef QCUL_CUBLASLT_H
#define QCUL_CUBLASLT_H

#include "qcu-library/libs/libs.h"
#include "qcu-library/shims/cublas_status.h"

#pragma GCC visibility push(default)
#include <cublasLt.h>
#pragma GCC visibility pop

#include "include/qculib_cublas.h"
#include "include/qculib_cublaslt.h"

/* A description of a product without the last attribute, in a program's memory of this size. */
#define QCUL_LT_IS_SHORT 0x4c746d73u
#define QCUL_LT_SHORT	 offsetof(struct qcu_lt_matmul, scale_d_out)

#define KIND_cublasLtHandle_t QCU_LIB_CUBLASLT_HANDLE

extern const struct qcul_lib qcul_cublaslt;
extern const uint16_t qcul_number_cublasLtMatmul, qcul_number_cublasLtMatrixTransform;
extern const uint16_t qcul_number_cublasLtMatmulAlgoGetHeuristic,
	qcul_number_cublasLtMatmulAlgoCheck, qcul_number_cublasLtMatmulAlgoInit,
	qcul_number_cublasLtMatmulAlgoCapGetAttribute,
	qcul_number_cublasLtMatmulAlgoConfigGetAttribute,
	qcul_number_cublasLtMatmulAlgoConfigSetAttribute;

#endif
