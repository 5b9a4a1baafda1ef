/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The mirror's side of cuBLASLt. */
#ifndef QCU_LIBS_CUBLASLT_H
#define QCU_LIBS_CUBLASLT_H

#include "qcu-device/libs/libs.h"

#include <cublasLt.h>

#include "include/qculib_cublas.h"
#include "include/qculib_cublaslt.h"

#define KIND_cublasLtHandle_t QCU_LIB_CUBLASLT_HANDLE

extern const struct lib_kind lib_cublaslt_kinds[QCU_LIB_KINDS];
extern const char *const lib_cublaslt_helpers[];
#define LIB_HELPERS 8

/* cublaslt_algos.c: the library has made this algorithm; has it made it in this session? */
#define LIB_ALGOS 32768u /* kept at least */
void lib_algo_made(struct lib_call *c, const void *algo);
bool lib_algo_known(struct lib_call *c, const void *algo);

int lib_do_cublasLtMatmul(struct lib_call *c);
int lib_do_cublasLtMatrixTransform(struct lib_call *c);
int lib_do_cublasLtMatmulAlgoGetHeuristic(struct lib_call *c);
int lib_do_cublasLtMatmulAlgoCheck(struct lib_call *c);
int lib_do_cublasLtMatmulAlgoInit(struct lib_call *c);
int lib_do_cublasLtMatmulAlgoCapGetAttribute(struct lib_call *c);
int lib_do_cublasLtMatmulAlgoConfigGetAttribute(struct lib_call *c);
int lib_do_cublasLtMatmulAlgoConfigSetAttribute(struct lib_call *c);

#endif
