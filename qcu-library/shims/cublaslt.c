// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Functions of cuBLASLt that the guest carries out itself: handles, names, and the logger, which
 * never logs anything here.
 */
#include "qcu-library/shims/cublaslt.h"

cublasStatus_t cublasLtCreate(cublasLtHandle_t *handle)
{
	return (cublasStatus_t)qcul_lib_create(&qcul_cublaslt, KIND_cublasLtHandle_t,
					       (void **)handle);
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle)
{
	return handle ? (cublasStatus_t)qcul_lib_destroy(&qcul_cublaslt, KIND_cublasLtHandle_t,
							 handle)
		      : CUBLAS_STATUS_INVALID_VALUE;
}

/* The version that this shim was made from. */
size_t cublasLtGetVersion(void)
{
	return CUBLAS_VERSION;
}

size_t cublasLtGetCudartVersion(void)
{
	return CUDART_VERSION;
}

const char *cublasLtGetStatusName(cublasStatus_t status)
{
	return qcul_cublas_status_name(status);
}

const char *cublasLtGetStatusString(cublasStatus_t status)
{
	return qcul_cublas_status_text(status);
}

static cublasStatus_t no_logger(void)
{
	static atomic_flag said = ATOMIC_FLAG_INIT;

	return (cublasStatus_t)qcul_lib_unserved(&qcul_cublaslt, "the logger", &said);
}

cublasStatus_t cublasLtLoggerSetCallback(cublasLtLoggerCallback_t callback)
{
	return callback ? no_logger() : CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtLoggerSetFile(FILE *file)
{
	return file ? no_logger() : CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtLoggerOpenFile(const char *file)
{
	(void)file;
	return no_logger();
}

cublasStatus_t cublasLtLoggerSetLevel(int level)
{
	return level ? no_logger() : CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtLoggerSetMask(int mask)
{
	return mask ? no_logger() : CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtLoggerForceDisable(void)
{
	return CUBLAS_STATUS_SUCCESS;
}
