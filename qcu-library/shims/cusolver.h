/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The shim of cuSOLVER: what the generated functions and those written by hand share. */
#ifndef QCUL_CUSOLVER_H
#define QCUL_CUSOLVER_H

#include "qcu-library/libs/libs.h"

/* Programs may use what NVIDIA advises against. */
#define DISABLE_CUSOLVER_DEPRECATED
#pragma GCC visibility push(default)
#include <cusolverDn.h>
#include <cusolverRf.h>
#include <cusolverSp.h>
#pragma GCC visibility pop

#define KIND_cusolverDnHandle_t QCU_LIB_CUSOLVER_DN
#define KIND_cusolverSpHandle_t QCU_LIB_CUSOLVER_SP
#define KIND_cusolverRfHandle_t QCU_LIB_CUSOLVER_RF
#define KIND_csrqrInfo_t	QCU_LIB_CUSOLVER_QR
#define KIND_cusolverDnParams_t QCU_LIB_CUSOLVER_PARAMS
#define KIND_syevjInfo_t	QCU_LIB_CUSOLVER_SYEVJ
#define KIND_gesvdjInfo_t	QCU_LIB_CUSOLVER_GESVDJ
/* An object of cuSPARSE's. */
#define KIND_cusparseMatDescr_t QCU_LIB_CUSPARSE_MATRIX

extern const struct qcul_lib qcul_cusolver;
extern const uint16_t qcul_number_cusolverRfBatchSetupHost, qcul_number_cusolverRfBatchZeroPivot,
	qcul_number_cusolverRfExtractBundledFactorsHost,
	qcul_number_cusolverRfExtractSplitFactorsHost;

/* The library has said how many sweeps it made, what is left, and whether it knows. Returns
 * `status`. */
int qcul_cusolver_counted(void *info, const int64_t *said, int status);

#endif
