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

/* A layout of groups of matrices, which newer libraries have. It never leaves the guest. */
#define QCUL_LT_IS_GROUPS 0x4c746c67u
#define QCUL_LT_GROUPS(X)               \
	QCU_LT_LAYOUT(X)                \
	X(12, width, __s32)             \
	X(13, ld_width, __s32)          \
	X(9, all_rows, qcu_lt_address)  \
	X(10, all_cols, qcu_lt_address) \
	X(11, all_ld, qcu_lt_address)
struct qcul_lt_layouts {
	uint32_t is, set;
	QCUL_LT_GROUPS(QCU_LT_FIELD)
};
QCUL_LIB_EXPORT cublasStatus_t cublasLtGroupedMatrixLayoutInit_internal(
	cublasLtMatrixLayout_t desc, size_t size, cudaDataType type, int groups, const void *rows,
	const void *cols, const void *ld);
QCUL_LIB_EXPORT cublasStatus_t cublasLtGroupedMatrixLayoutCreate(cublasLtMatrixLayout_t *desc,
								 cudaDataType type, int groups,
								 const void *rows, const void *cols,
								 const void *ld);
/* Is one of the layouts of groups? Then it says so. NULL is allowed. */
bool qcul_lt_any_groups(const void *const *layouts, unsigned int count);

#define KIND_cublasLtHandle_t QCU_LIB_CUBLASLT_HANDLE

extern const struct qcul_lib qcul_cublaslt;
extern const uint16_t qcul_number_cublasLtMatmul, qcul_number_cublasLtMatrixTransform;
extern const uint16_t qcul_number_cublasLtMatmulAlgoGetHeuristic,
	qcul_number_cublasLtMatmulAlgoCheck, qcul_number_cublasLtMatmulAlgoInit,
	qcul_number_cublasLtMatmulAlgoCapGetAttribute,
	qcul_number_cublasLtMatmulAlgoConfigGetAttribute,
	qcul_number_cublasLtMatmulAlgoConfigSetAttribute;

#endif
