/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the shim of cuSPARSE and the mirror's stubs share. */
#ifndef QCULIB_CUSPARSE_H
#define QCULIB_CUSPARSE_H

#include "qculib.h"

#define KIND_cusparseHandle_t	       QCU_LIB_CUSPARSE_HANDLE
#define KIND_cusparseMatDescr_t	       QCU_LIB_CUSPARSE_MATRIX
#define KIND_cusparseSpVecDescr_t      QCU_LIB_CUSPARSE_SP_VEC
#define KIND_cusparseConstSpVecDescr_t QCU_LIB_CUSPARSE_SP_VEC
#define KIND_cusparseDnVecDescr_t      QCU_LIB_CUSPARSE_DN_VEC
#define KIND_cusparseConstDnVecDescr_t QCU_LIB_CUSPARSE_DN_VEC
#define KIND_cusparseSpMatDescr_t      QCU_LIB_CUSPARSE_SP_MAT
#define KIND_cusparseConstSpMatDescr_t QCU_LIB_CUSPARSE_SP_MAT
#define KIND_cusparseDnMatDescr_t      QCU_LIB_CUSPARSE_DN_MAT
#define KIND_cusparseConstDnMatDescr_t QCU_LIB_CUSPARSE_DN_MAT
#define KIND_cusparseSpSVDescr_t       QCU_LIB_CUSPARSE_SPSV
#define KIND_cusparseSpSMDescr_t       QCU_LIB_CUSPARSE_SPSM
#define KIND_cusparseSpGEMMDescr_t     QCU_LIB_CUSPARSE_SPGEMM
#define KIND_csric02Info_t	       QCU_LIB_CUSPARSE_CSRIC
#define KIND_bsric02Info_t	       QCU_LIB_CUSPARSE_BSRIC
#define KIND_csrilu02Info_t	       QCU_LIB_CUSPARSE_CSRILU
#define KIND_bsrilu02Info_t	       QCU_LIB_CUSPARSE_BSRILU
#define KIND_bsrsv2Info_t	       QCU_LIB_CUSPARSE_BSRSV
#define KIND_bsrsm2Info_t	       QCU_LIB_CUSPARSE_BSRSM
#define KIND_csru2csrInfo_t	       QCU_LIB_CUSPARSE_CSRU
#define KIND_pruneInfo_t	       QCU_LIB_CUSPARSE_PRUNE

/* The attributes of a sparse matrix travel together: which are set, and all values. */
#define QCU_CUSPARSE_ATTRIBUTES 2u

#endif
