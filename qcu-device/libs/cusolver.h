/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The mirror's side of cuSOLVER. */
#ifndef QCU_LIBS_CUSOLVER_H
#define QCU_LIBS_CUSOLVER_H

#include "qcu-device/libs/libs.h"

#include <cusolverDn.h>

#define KIND_cusolverDnHandle_t QCU_LIB_CUSOLVER_DN
#define KIND_cusolverDnParams_t QCU_LIB_CUSOLVER_PARAMS
#define KIND_syevjInfo_t	QCU_LIB_CUSOLVER_SYEVJ
#define KIND_gesvdjInfo_t	QCU_LIB_CUSOLVER_GESVDJ

/* No stub is written by hand. */
#define lib_cusolver_helpers NULL
#define LIB_HELPERS	     0

extern const struct lib_kind lib_cusolver_kinds[QCU_LIB_KINDS];

#endif
