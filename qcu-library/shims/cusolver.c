// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Functions of cuSOLVER that the guest carries out itself: handles, their stream, descriptors, and
 * what these say of the last call with them.
 */
#include <stdlib.h>
#include <string.h>

#include "qcu-library/shims/cusolver.h"

static cusolverStatus_t set_solver_stream(void *handle, uint32_t kind, cudaStream_t stream)
{
	struct qcul_object *o = qcul_lib_find(handle, kind);

	if (!o)
		return CUSOLVER_STATUS_NOT_INITIALIZED;
	o->stream = stream;
	return CUSOLVER_STATUS_SUCCESS;
}

static cusolverStatus_t get_solver_stream(void *handle, uint32_t kind, cudaStream_t *stream)
{
	struct qcul_object *o = qcul_lib_find(handle, kind);

	if (!o)
		return CUSOLVER_STATUS_NOT_INITIALIZED;
	if (!stream)
		return CUSOLVER_STATUS_INVALID_VALUE;
	*stream = o->stream;
	return CUSOLVER_STATUS_SUCCESS;
}

#define HANDLE(name)                                                                             \
	cusolverStatus_t name##Create(name##Handle_t *handle)                                    \
	{                                                                                        \
		return (cusolverStatus_t)qcul_lib_create(&qcul_cusolver, KIND_##name##Handle_t,  \
							 (void **)handle);                       \
	}                                                                                        \
	cusolverStatus_t name##Destroy(name##Handle_t handle)                                    \
	{                                                                                        \
		return (cusolverStatus_t)qcul_lib_destroy(&qcul_cusolver, KIND_##name##Handle_t, \
							  handle);                               \
	}                                                                                        \
	cusolverStatus_t name##SetStream(name##Handle_t handle, cudaStream_t stream)             \
	{                                                                                        \
		return set_solver_stream(handle, KIND_##name##Handle_t, stream);                 \
	}                                                                                        \
	cusolverStatus_t name##GetStream(name##Handle_t handle, cudaStream_t *stream)            \
	{                                                                                        \
		return get_solver_stream(handle, KIND_##name##Handle_t, stream);                 \
	}

HANDLE(cusolverDn)
HANDLE(cusolverSp)

cusolverStatus_t cusolverSpCreateCsrqrInfo(csrqrInfo_t *info)
{
	return (cusolverStatus_t)qcul_lib_create(&qcul_cusolver, KIND_csrqrInfo_t, (void **)info);
}

cusolverStatus_t cusolverSpDestroyCsrqrInfo(csrqrInfo_t info)
{
	return (cusolverStatus_t)qcul_lib_destroy(&qcul_cusolver, KIND_csrqrInfo_t, info);
}

/* What an eigensolver or singular value decomposition by Jacobi's method says afterwards. */
struct told {
	double residual;
	int sweeps, status;
};

static struct qcul_object *find_info(void *info)
{
	struct qcul_object *o = qcul_lib_find(info, KIND_syevjInfo_t);

	return o ? o : qcul_lib_find(info, KIND_gesvdjInfo_t);
}

int qcul_cusolver_counted(void *info, const int64_t *said, int status)
{
	struct qcul_object *o = status ? NULL : find_info(info);
	struct told *told;

	if (!o)
		return status;
	told = o->own ? o->own : calloc(1, sizeof(*told));
	if (!told)
		return CUSOLVER_STATUS_ALLOC_FAILED;
	told->sweeps = (int)said[0];
	memcpy(&told->residual, &said[1], sizeof(told->residual));
	told->status = (int)said[2];
	o->own = told;
	return status;
}

static cusolverStatus_t read_told(cusolverDnHandle_t handle, void *info, uint32_t kind,
				  const void *to, struct told *told)
{
	const struct qcul_object *o = qcul_lib_find(info, kind);

	if (!qcul_lib_find(handle, KIND_cusolverDnHandle_t))
		return CUSOLVER_STATUS_NOT_INITIALIZED;
	if (!o || !to)
		return CUSOLVER_STATUS_INVALID_VALUE;
	*told = o->own ? *(const struct told *)o->own : (struct told){.status = 0};
	return (cusolverStatus_t)told->status;
}

#define TOLD(Name, type)                                                                         \
	cusolverStatus_t cusolverDnX##Name##GetSweeps(cusolverDnHandle_t handle, type info,      \
						      int *sweeps)                               \
	{                                                                                        \
		struct told told;                                                                \
		cusolverStatus_t status = read_told(handle, info, KIND_##type, sweeps, &told);   \
                                                                                                 \
		if (!status)                                                                     \
			*sweeps = told.sweeps;                                                   \
		return status;                                                                   \
	}                                                                                        \
	cusolverStatus_t cusolverDnX##Name##GetResidual(cusolverDnHandle_t handle, type info,    \
							double *residual)                        \
	{                                                                                        \
		struct told told;                                                                \
		cusolverStatus_t status = read_told(handle, info, KIND_##type, residual, &told); \
                                                                                                 \
		if (!status)                                                                     \
			*residual = told.residual;                                               \
		return status;                                                                   \
	}

TOLD(syevj, syevjInfo_t)
TOLD(gesvdj, gesvdjInfo_t)

static int end_descriptor(uint32_t kind, void *descriptor)
{
	struct qcul_object *o = qcul_lib_find(descriptor, kind);

	if (o) {
		free(o->own);
		o->own = NULL;
	}
	return qcul_lib_undescribe(&qcul_cusolver, kind, descriptor);
}

#define DESCRIPTOR(create, destroy, type)                                                       \
	cusolverStatus_t create(type *descriptor)                                               \
	{                                                                                       \
		return (cusolverStatus_t)qcul_lib_describe(&qcul_cusolver, KIND_##type,         \
							   (void **)descriptor);                \
	}                                                                                       \
	cusolverStatus_t destroy(type descriptor)                                               \
	{                                                                                       \
		return !descriptor ? CUSOLVER_STATUS_SUCCESS                                    \
				   : (cusolverStatus_t)end_descriptor(KIND_##type, descriptor); \
	}

DESCRIPTOR(cusolverDnCreateParams, cusolverDnDestroyParams, cusolverDnParams_t)
DESCRIPTOR(cusolverDnCreateSyevjInfo, cusolverDnDestroySyevjInfo, syevjInfo_t)
DESCRIPTOR(cusolverDnCreateGesvdjInfo, cusolverDnDestroyGesvdjInfo, gesvdjInfo_t)
