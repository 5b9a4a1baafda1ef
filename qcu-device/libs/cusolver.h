/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The mirror's side of cuSOLVER. */
#ifndef QCU_LIBS_CUSOLVER_H
#define QCU_LIBS_CUSOLVER_H

#include "qcu-device/libs/libs.h"

#define DISABLE_CUSOLVER_DEPRECATED
#include <cusolverDn.h>
#include <cusolverRf.h>
#include <cusolverSp.h>

#define KIND_cusolverDnHandle_t QCU_LIB_CUSOLVER_DN
#define KIND_cusolverSpHandle_t QCU_LIB_CUSOLVER_SP
#define KIND_cusolverRfHandle_t QCU_LIB_CUSOLVER_RF
#define KIND_csrqrInfo_t	QCU_LIB_CUSOLVER_QR
#define KIND_cusolverDnParams_t QCU_LIB_CUSOLVER_PARAMS
#define KIND_syevjInfo_t	QCU_LIB_CUSOLVER_SYEVJ
#define KIND_gesvdjInfo_t	QCU_LIB_CUSOLVER_GESVDJ
#define KIND_cusparseMatDescr_t QCU_LIB_CUSPARSE_MATRIX

extern const char *const lib_cusolver_helpers[];
#define LIB_HELPERS 6

/* Is the host's library older than this, or does it not say? */
bool lib_cusolver_before(struct lib_call *c, int version);

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
	uint64_t n, width, nnz;	 /* rows, columns, elements */
	int base;		 /* of indices: 0 or 1 */
	bool device;		 /* it lies in the GPU's memory */
	uint64_t memory, bytes;	 /* on the GPU, for the copy; 0: none */
	uint64_t secret, hash;	 /* of the structure, if there is a secret */
};
/* Each returns the library's status; after it, csr_end. begin: the base is the description's. */
int lib_csr_copy(struct lib_call *c, struct lib_csr *csr);
int lib_csr_begin(struct lib_call *c, struct lib_csr *csr, cusparseMatDescr_t descr);
/* rows: the places 0 to n - 1 in any order. */
int lib_order_copy(struct lib_call *c, struct lib_csr *order);
void lib_csr_end(struct lib_call *c, struct lib_csr *csr);
/* 0, 1, or less: minus the library's status. */
int lib_csr_base(struct lib_call *c, cusparseMatDescr_t descr);

/* cusolver_factors.c: these look at more than the generated stubs, and then call the library. */
int lib_through_cusolverSpXcsrqrAnalysisBatched(struct lib_call *c, cusolverSpHandle_t h, int m,
						int n, int nnz, cusparseMatDescr_t descr,
						const int *rows, const int *cols, csrqrInfo_t info);
#define LIB_CUSOLVER_QR(letter, type)                                                           \
	int lib_through_cusolverSp##letter##csrqrBufferInfoBatched(                             \
		struct lib_call *c, cusolverSpHandle_t h, int m, int n, int nnz,                \
		cusparseMatDescr_t descr, const type *values, const int *rows, const int *cols, \
		int batch, csrqrInfo_t info, size_t *internal, size_t *workspace);              \
	int lib_through_cusolverSp##letter##csrqrsvBatched(                                     \
		struct lib_call *c, cusolverSpHandle_t h, int m, int n, int nnz,                \
		cusparseMatDescr_t descr, const type *values, const int *rows, const int *cols, \
		const type *b, type *x, int batch, csrqrInfo_t info, void *buffer);
LIB_CUSOLVER_QR(S, float)
LIB_CUSOLVER_QR(D, double)
LIB_CUSOLVER_QR(C, cuComplex)
LIB_CUSOLVER_QR(Z, cuDoubleComplex)
#define LIB_CUSOLVER_SETUP(where)                                                               \
	int lib_through_cusolverRfSetup##where(struct lib_call *c, int n, int nnz_a,            \
					       const int *rows_a, const int *cols_a, double *a, \
					       int nnz_l, const int *rows_l, const int *cols_l, \
					       double *l, int nnz_u, const int *rows_u,         \
					       const int *cols_u, double *u, const int *p,      \
					       const int *q, cusolverRfHandle_t h);
LIB_CUSOLVER_SETUP(Host)
LIB_CUSOLVER_SETUP(Device)
int lib_through_cusolverRfResetValues(struct lib_call *c, int n, int nnz, int *rows, int *cols,
				      double *values, int *p, int *q, cusolverRfHandle_t h);
int lib_through_cusolverRfBatchResetValues(struct lib_call *c, int batch, int n, int nnz, int *rows,
					   int *cols, double **values, int *p, int *q,
					   cusolverRfHandle_t h);
int lib_through_cusolverRfAnalyze(struct lib_call *c, cusolverRfHandle_t h);
int lib_through_cusolverRfRefactor(struct lib_call *c, cusolverRfHandle_t h);
int lib_through_cusolverRfBatchAnalyze(struct lib_call *c, cusolverRfHandle_t h);
int lib_through_cusolverRfBatchRefactor(struct lib_call *c, cusolverRfHandle_t h);
int lib_through_cusolverRfSolve(struct lib_call *c, cusolverRfHandle_t h, int *p, int *q, int count,
				double *temp, int ldt, double *xf, int ldxf);
int lib_through_cusolverRfBatchSolve(struct lib_call *c, cusolverRfHandle_t h, int *p, int *q,
				     int count, double *temp, int ldt, double **xf, int ldxf);
int lib_through_cusolverRfAccessBundledFactorsDevice(struct lib_call *c, cusolverRfHandle_t h,
						     int *nnz, int **rows, int **cols,
						     double **values);
int lib_do_cusolverRfBatchSetupHost(struct lib_call *c);
int lib_do_cusolverRfBatchZeroPivot(struct lib_call *c);
int lib_do_cusolverRfExtractBundledFactorsHost(struct lib_call *c);
int lib_do_cusolverRfExtractSplitFactorsHost(struct lib_call *c);

extern const struct lib_kind lib_cusolver_kinds[QCU_LIB_KINDS];

#endif
