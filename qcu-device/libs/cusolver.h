/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The mirror's side of cuSOLVER. */
#ifndef QCU_LIBS_CUSOLVER_H
#define QCU_LIBS_CUSOLVER_H

#include "qcu-device/libs/libs.h"

#define DISABLE_CUSOLVER_DEPRECATED
#include <cusolverDn.h>
#include <cusolverSp.h>

#define KIND_cusolverDnHandle_t QCU_LIB_CUSOLVER_DN
#define KIND_cusolverSpHandle_t QCU_LIB_CUSOLVER_SP
#define KIND_cusolverDnParams_t QCU_LIB_CUSOLVER_PARAMS
#define KIND_syevjInfo_t	QCU_LIB_CUSOLVER_SYEVJ
#define KIND_gesvdjInfo_t	QCU_LIB_CUSOLVER_GESVDJ
#define KIND_cusparseMatDescr_t QCU_LIB_CUSPARSE_MATRIX

extern const char *const lib_cusolver_helpers[];
#define LIB_HELPERS 5

/*
 * What Jacobi's method has left in `info`: how many sweeps it made, the residual, and the status of
 * the functions that say so. Returns the status.
 */
int lib_cusolver_said(struct lib_call *c, int status, void *info, unsigned int which,
		      int64_t *said);
#define lib_cusolver_counted(c, status, info, said)                                             \
	lib_cusolver_said(c, status, info, _Generic((info), syevjInfo_t : 0, gesvdjInfo_t : 2), \
			  said)

/*
 * The structure of a sparse matrix: where rows begin, and the column of each element. The library
 * follows both on the host without a check. So it gets a copy that has been checked.
 */
struct lib_csr {
	const void *rows, *cols; /* the guest's; later what the library gets */
	uint64_t memory, bytes;	 /* on the GPU, for the copy; 0: none */
};
/* device: it lies in the GPU's memory. Returns the library's status; after it, csr_end. */
int lib_csr_begin(struct lib_call *c, struct lib_csr *csr, uint64_t n, uint64_t nnz,
		  cusparseMatDescr_t descr, bool device);
void lib_csr_end(struct lib_call *c, struct lib_csr *csr);

extern const struct lib_kind lib_cusolver_kinds[QCU_LIB_KINDS];

#endif
