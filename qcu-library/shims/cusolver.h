/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The shim of cuSOLVER: what the generated functions and those written by hand share. */
#ifndef QCUL_CUSOLVER_H
#define QCUL_CUSOLVER_H

#include "qcu-library/libs/libs.h"

#pragma GCC visibility push(default)
#include <cusolverDn.h>
#pragma GCC visibility pop

#define KIND_cusolverDnHandle_t QCU_LIB_CUSOLVER_DN
#define KIND_cusolverDnParams_t QCU_LIB_CUSOLVER_PARAMS
#define KIND_syevjInfo_t	QCU_LIB_CUSOLVER_SYEVJ
#define KIND_gesvdjInfo_t	QCU_LIB_CUSOLVER_GESVDJ

extern const struct qcul_lib qcul_cusolver;

#endif
