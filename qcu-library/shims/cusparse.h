/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The shim of cuSPARSE: what the generated functions and those written by hand share. */
#ifndef QCUL_CUSPARSE_H
#define QCUL_CUSPARSE_H

#include "include/qculib_cublas.h"
#include "qcu-library/libs/libs.h"

/* Programs may use what NVIDIA advises against. */
#define DISABLE_CUSPARSE_DEPRECATED
#pragma GCC visibility push(default)
#include <cusparse.h>
#pragma GCC visibility pop

#include "include/qculib_cusparse.h"

extern const struct qcul_lib qcul_cusparse;

/* The size of a scalar that goes with the vector: for half precision it is a float. 0: it is no
 * vector. */
uint64_t qcul_cusparse_scalar(cusparseConstSpVecDescr_t vec);
/* The library has found out how many elements the matrix has. Returns `status`. */
int qcul_cusparse_counted(cusparseSpMatDescr_t mat, const int64_t *size, int status);

#endif
