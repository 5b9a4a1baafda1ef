/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Names of a cublasStatus_t. */
#ifndef QCUL_CUBLAS_STATUS_H
#define QCUL_CUBLAS_STATUS_H

const char *qcul_cublas_status_name(int status);
const char *qcul_cublas_status_text(int status);

#endif
