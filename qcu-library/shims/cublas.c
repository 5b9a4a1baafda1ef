// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Functions of cuBLAS that the guest carries out itself: handles; the stream and the pointer mode,
 * which decide how other calls are sent; names; the logger, which never logs anything here.
 */
#include <stdio.h>

#include "qcu-library/shims/cublas.h"

cublasStatus_t cublasCreate_v2(cublasHandle_t *handle)
{
	return (cublasStatus_t)qcul_lib_create(&qcul_cublas, KIND_cublasHandle_t, (void **)handle);
}

cublasStatus_t cublasDestroy_v2(cublasHandle_t handle)
{
	return (cublasStatus_t)qcul_lib_destroy(&qcul_cublas, KIND_cublasHandle_t, handle);
}

static struct qcul_object *find_cublas_handle(cublasHandle_t handle)
{
	return qcul_lib_find(handle, KIND_cublasHandle_t);
}

/* With the stream, cuBLAS goes back to a workspace of its own. */
cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream)
{
	struct qcul_object *o = find_cublas_handle(handle);

	if (!o)
		return CUBLAS_STATUS_NOT_INITIALIZED;
	o->stream = stream;
	qcul_lib_unset(o, qcul_number_cublasSetWorkspace_v2);
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGetStream_v2(cublasHandle_t handle, cudaStream_t *stream)
{
	struct qcul_object *o = find_cublas_handle(handle);

	if (!o)
		return CUBLAS_STATUS_NOT_INITIALIZED;
	if (!stream)
		return CUBLAS_STATUS_INVALID_VALUE;
	*stream = o->stream;
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetPointerMode_v2(cublasHandle_t handle, cublasPointerMode_t mode)
{
	struct qcul_object *o = find_cublas_handle(handle);

	if (!o)
		return CUBLAS_STATUS_NOT_INITIALIZED;
	if (mode != CUBLAS_POINTER_MODE_HOST && mode != CUBLAS_POINTER_MODE_DEVICE)
		return CUBLAS_STATUS_INVALID_VALUE;
	o->device_scalars = mode == CUBLAS_POINTER_MODE_DEVICE;
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGetPointerMode_v2(cublasHandle_t handle, cublasPointerMode_t *mode)
{
	struct qcul_object *o = find_cublas_handle(handle);

	if (!mode)
		return CUBLAS_STATUS_INVALID_VALUE;
	if (!o)
		return CUBLAS_STATUS_NOT_INITIALIZED;
	*mode = o->device_scalars ? CUBLAS_POINTER_MODE_DEVICE : CUBLAS_POINTER_MODE_HOST;
	return CUBLAS_STATUS_SUCCESS;
}

const char *cublasGetStatusName(cublasStatus_t status)
{
	return qcul_cublas_status_name(status);
}

const char *cublasGetStatusString(cublasStatus_t status)
{
	return qcul_cublas_status_text(status);
}

/* The version of the runtime that this library was made for. */
size_t cublasGetCudartVersion(void)
{
	return CUDART_VERSION;
}

void cublasXerbla(const char *name, int info)
{
	printf(" ** On entry to %s parameter number %d had an illegal value\n", name ? name : "",
	       info);
}

cublasStatus_t cublasLoggerConfigure(int on, int to_stdout, int to_stderr, const char *file)
{
	static atomic_flag said = ATOMIC_FLAG_INIT;

	(void)to_stdout;
	(void)to_stderr;
	(void)file;
	return on ? (cublasStatus_t)qcul_lib_unserved(&qcul_cublas, "the logger", &said)
		  : CUBLAS_STATUS_SUCCESS;
}

static _Atomic(cublasLogCallback) logger;

cublasStatus_t cublasSetLoggerCallback(cublasLogCallback callback)
{
	atomic_store(&logger, callback);
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGetLoggerCallback(cublasLogCallback *callback)
{
	if (!callback)
		return CUBLAS_STATUS_INVALID_VALUE;
	*callback = atomic_load(&logger);
	return CUBLAS_STATUS_SUCCESS;
}
