// SPDX-License-Identifier: LGPL-2.1-or-later
/* Functions of cuSOLVER that the guest carries out itself: handles, their stream, and descriptors.
 */
#include "qcu-library/shims/cusolver.h"

cusolverStatus_t cusolverDnCreate(cusolverDnHandle_t *handle)
{
	return (cusolverStatus_t)qcul_lib_create(&qcul_cusolver, KIND_cusolverDnHandle_t,
						 (void **)handle);
}

cusolverStatus_t cusolverDnDestroy(cusolverDnHandle_t handle)
{
	return (cusolverStatus_t)qcul_lib_destroy(&qcul_cusolver, KIND_cusolverDnHandle_t, handle);
}

cusolverStatus_t cusolverDnSetStream(cusolverDnHandle_t handle, cudaStream_t stream)
{
	struct qcul_object *o = qcul_lib_find(handle, KIND_cusolverDnHandle_t);

	if (!o)
		return CUSOLVER_STATUS_NOT_INITIALIZED;
	o->stream = stream;
	return CUSOLVER_STATUS_SUCCESS;
}

cusolverStatus_t cusolverDnGetStream(cusolverDnHandle_t handle, cudaStream_t *stream)
{
	struct qcul_object *o = qcul_lib_find(handle, KIND_cusolverDnHandle_t);

	if (!o)
		return CUSOLVER_STATUS_NOT_INITIALIZED;
	if (!stream)
		return CUSOLVER_STATUS_INVALID_VALUE;
	*stream = o->stream;
	return CUSOLVER_STATUS_SUCCESS;
}

#define DESCRIPTOR(create, destroy, type)                                                        \
	cusolverStatus_t create(type *descriptor)                                                \
	{                                                                                        \
		return (cusolverStatus_t)qcul_lib_describe(&qcul_cusolver, KIND_##type,          \
							   (void **)descriptor);                 \
	}                                                                                        \
	cusolverStatus_t destroy(type descriptor)                                                \
	{                                                                                        \
		return !descriptor                                                               \
			       ? CUSOLVER_STATUS_SUCCESS                                         \
			       : (cusolverStatus_t)qcul_lib_undescribe(&qcul_cusolver,           \
								       KIND_##type, descriptor); \
	}

DESCRIPTOR(cusolverDnCreateParams, cusolverDnDestroyParams, cusolverDnParams_t)
DESCRIPTOR(cusolverDnCreateSyevjInfo, cusolverDnDestroySyevjInfo, syevjInfo_t)
DESCRIPTOR(cusolverDnCreateGesvdjInfo, cusolverDnDestroyGesvdjInfo, gesvdjInfo_t)
