/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The mirror's side of cuSPARSE. */
#ifndef QCU_LIBS_CUSPARSE_H
#define QCU_LIBS_CUSPARSE_H

#include "qcu-device/libs/libs.h"

#define DISABLE_CUSPARSE_DEPRECATED
#include <cusparse.h>

#include "include/qculib_cublas.h"
#include "include/qculib_cusparse.h"

extern const struct lib_kind lib_cusparse_kinds[QCU_LIB_KINDS];
extern const char *const lib_cusparse_helpers[];
#define LIB_HELPERS 1

int lib_do_cusparseSpMatSetAttribute(struct lib_call *c);
/* Tells the guest the size of a matrix that a function has changed. Returns the status. */
int lib_cusparse_counted(struct lib_call *c, int status, cusparseConstSpMatDescr_t mat,
			 int64_t *size);

/* The library gets copies of both numbers, which live as long as the object that keeps their
 * addresses. */
#define LIB_CUSPARSE_BOOST(name, info_type, type)                                              \
	int lib_through_cusparse##name##_numericBoost(struct lib_call *c, cusparseHandle_t h,  \
						      info_type info, int enable, double *tol, \
						      type *value);
LIB_CUSPARSE_BOOST(Scsrilu02, csrilu02Info_t, float)
LIB_CUSPARSE_BOOST(Dcsrilu02, csrilu02Info_t, double)
LIB_CUSPARSE_BOOST(Ccsrilu02, csrilu02Info_t, cuComplex)
LIB_CUSPARSE_BOOST(Zcsrilu02, csrilu02Info_t, cuDoubleComplex)
LIB_CUSPARSE_BOOST(Sbsrilu02, bsrilu02Info_t, float)
LIB_CUSPARSE_BOOST(Dbsrilu02, bsrilu02Info_t, double)
LIB_CUSPARSE_BOOST(Cbsrilu02, bsrilu02Info_t, cuComplex)
LIB_CUSPARSE_BOOST(Zbsrilu02, bsrilu02Info_t, cuDoubleComplex)

#endif
