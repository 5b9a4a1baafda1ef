/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef QCCL_ERRORS_H
#define QCCL_ERRORS_H

#include <stdbool.h>

#include "qcu-library/nccl/api.h"

#define QCCL_PUBLIC __attribute__((visibility("default")))

/* Keeps a sentence for ncclGetLastError() and returns `result`. */
ncclResult_t qccl_fail(ncclResult_t result, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* The same, and says the sentence on stderr: for what is not the fault of a call's arguments. */
ncclResult_t qccl_refuse(ncclResult_t result, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* The result for what a call of CUDA returned. `what` did it. */
ncclResult_t qccl_cuda(cudaError_t err, const char *what);

#endif
