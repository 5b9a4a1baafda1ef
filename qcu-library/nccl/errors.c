// SPDX-License-Identifier: LGPL-2.1-or-later
/* Results, their names, and the last error's sentence. */
#include <stdarg.h>
#include <stdio.h>

#include "qcu-library/nccl/errors.h"

static __thread char last[300];

static void keep_last_error(const char *fmt, va_list ap)
{
	vsnprintf(last, sizeof(last), fmt, ap);
}

ncclResult_t qccl_fail(ncclResult_t result, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	keep_last_error(fmt, ap);
	va_end(ap);
	return result;
}

ncclResult_t qccl_refuse(ncclResult_t result, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	keep_last_error(fmt, ap);
	va_end(ap);
	fprintf(stderr, "qcuda: NCCL: %s\n", last);
	return result;
}

ncclResult_t qccl_cuda(cudaError_t err, const char *what)
{
	if (!err)
		return ncclSuccess;
	return qccl_fail(ncclUnhandledCudaError, "%s: %s", what, cudaGetErrorString(err));
}

QCCL_PUBLIC const char *ncclGetErrorString(ncclResult_t result)
{
	switch (result) {
	case ncclSuccess:
		return "no error";
	case ncclUnhandledCudaError:
		return "unhandled cuda error";
	case ncclSystemError:
		return "unhandled system error";
	case ncclInternalError:
		return "internal error";
	case ncclInvalidArgument:
		return "invalid argument";
	case ncclInvalidUsage:
		return "invalid usage";
	case ncclRemoteError:
		return "remote process exited or there was a network error";
	case ncclInProgress:
		return "operation in progress";
	}
	return "unknown result code";
}

QCCL_PUBLIC const char *ncclGetLastError(ncclComm_t comm)
{
	(void)comm;
	return last;
}
