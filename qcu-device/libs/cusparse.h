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

#endif
