// SPDX-License-Identifier: LGPL-2.1-or-later
/* Names of the status that cuBLAS and cuBLASLt return. Each of the two shims has this file. */
#include "qcu-library/shims/cublas_status.h"

#include <cublas_api.h>

const char *qcul_cublas_status_name(int status)
{
	switch (status) {
#define NAME(status) \
	case status: \
		return #status;
		NAME(CUBLAS_STATUS_SUCCESS)
		NAME(CUBLAS_STATUS_NOT_INITIALIZED)
		NAME(CUBLAS_STATUS_ALLOC_FAILED)
		NAME(CUBLAS_STATUS_INVALID_VALUE)
		NAME(CUBLAS_STATUS_ARCH_MISMATCH)
		NAME(CUBLAS_STATUS_MAPPING_ERROR)
		NAME(CUBLAS_STATUS_EXECUTION_FAILED)
		NAME(CUBLAS_STATUS_INTERNAL_ERROR)
		NAME(CUBLAS_STATUS_NOT_SUPPORTED)
		NAME(CUBLAS_STATUS_LICENSE_ERROR)
#undef NAME
	}
	return "unrecognized status";
}

const char *qcul_cublas_status_text(int status)
{
	switch (status) {
	case CUBLAS_STATUS_SUCCESS:
		return "success";
	case CUBLAS_STATUS_NOT_INITIALIZED:
		return "the library was not initialized";
	case CUBLAS_STATUS_ALLOC_FAILED:
		return "the resource allocation failed";
	case CUBLAS_STATUS_INVALID_VALUE:
		return "an invalid value was passed";
	case CUBLAS_STATUS_ARCH_MISMATCH:
		return "the GPU lacks a feature";
	case CUBLAS_STATUS_MAPPING_ERROR:
		return "memory could not be mapped";
	case CUBLAS_STATUS_EXECUTION_FAILED:
		return "the function failed to launch on the GPU";
	case CUBLAS_STATUS_INTERNAL_ERROR:
		return "an internal operation failed";
	case CUBLAS_STATUS_NOT_SUPPORTED:
		return "the functionality is not supported";
	case CUBLAS_STATUS_LICENSE_ERROR:
		return "the license check failed";
	}
	return "unrecognized status";
}
