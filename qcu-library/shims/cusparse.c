// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Functions of cuSPARSE that the guest carries out itself: handles, the stream and the pointer
 * mode; names; the older descriptions of matrices; and the objects in which the library keeps
 * computed information about a matrix.
 */
#include <string.h>

#include "qcu-library/shims/cusparse.h"

extern const uint16_t qcul_number_cusparseSetMatType, qcul_number_cusparseSetMatFillMode,
	qcul_number_cusparseSetMatDiagType, qcul_number_cusparseSetMatIndexBase;

cusparseStatus_t cusparseCreate(cusparseHandle_t *handle)
{
	return (cusparseStatus_t)qcul_lib_create(&qcul_cusparse, KIND_cusparseHandle_t,
						 (void **)handle);
}

cusparseStatus_t cusparseDestroy(cusparseHandle_t handle)
{
	return handle ? (cusparseStatus_t)qcul_lib_destroy(&qcul_cusparse, KIND_cusparseHandle_t,
							   handle)
		      : CUSPARSE_STATUS_SUCCESS;
}

static struct qcul_object *find_cusparse_handle(cusparseHandle_t handle)
{
	return qcul_lib_find(handle, KIND_cusparseHandle_t);
}

cusparseStatus_t cusparseSetStream(cusparseHandle_t handle, cudaStream_t stream)
{
	struct qcul_object *o = find_cusparse_handle(handle);

	if (!o)
		return CUSPARSE_STATUS_INVALID_VALUE;
	o->stream = stream;
	return CUSPARSE_STATUS_SUCCESS;
}

cusparseStatus_t cusparseGetStream(cusparseHandle_t handle, cudaStream_t *stream)
{
	struct qcul_object *o = find_cusparse_handle(handle);

	if (!o || !stream)
		return CUSPARSE_STATUS_INVALID_VALUE;
	*stream = o->stream;
	return CUSPARSE_STATUS_SUCCESS;
}

cusparseStatus_t cusparseSetPointerMode(cusparseHandle_t handle, cusparsePointerMode_t mode)
{
	struct qcul_object *o = find_cusparse_handle(handle);

	if (!o || (mode != CUSPARSE_POINTER_MODE_HOST && mode != CUSPARSE_POINTER_MODE_DEVICE))
		return CUSPARSE_STATUS_INVALID_VALUE;
	o->device_scalars = mode == CUSPARSE_POINTER_MODE_DEVICE;
	return CUSPARSE_STATUS_SUCCESS;
}

cusparseStatus_t cusparseGetPointerMode(cusparseHandle_t handle, cusparsePointerMode_t *mode)
{
	struct qcul_object *o = find_cusparse_handle(handle);

	if (!o || !mode)
		return CUSPARSE_STATUS_INVALID_VALUE;
	*mode = o->device_scalars ? CUSPARSE_POINTER_MODE_DEVICE : CUSPARSE_POINTER_MODE_HOST;
	return CUSPARSE_STATUS_SUCCESS;
}

#define STATUS(X)                                                                 \
	X(CUSPARSE_STATUS_SUCCESS, "success")                                     \
	X(CUSPARSE_STATUS_NOT_INITIALIZED, "initialization error")                \
	X(CUSPARSE_STATUS_ALLOC_FAILED, "out of memory")                          \
	X(CUSPARSE_STATUS_INVALID_VALUE, "invalid value")                         \
	X(CUSPARSE_STATUS_ARCH_MISMATCH, "architecture mismatch")                 \
	X(CUSPARSE_STATUS_MAPPING_ERROR, "texture memory mapping error")          \
	X(CUSPARSE_STATUS_EXECUTION_FAILED, "kernel launch failure")              \
	X(CUSPARSE_STATUS_INTERNAL_ERROR, "internal error")                       \
	X(CUSPARSE_STATUS_MATRIX_TYPE_NOT_SUPPORTED, "matrix type not supported") \
	X(CUSPARSE_STATUS_ZERO_PIVOT, "zero pivot")                               \
	X(CUSPARSE_STATUS_NOT_SUPPORTED, "operation not supported")               \
	X(CUSPARSE_STATUS_INSUFFICIENT_RESOURCES, "insufficient resources")

const char *cusparseGetErrorName(cusparseStatus_t status)
{
#define NAME(value, text)    \
	if (status == value) \
		return #value;
	STATUS(NAME)
	return "unrecognized error code";
}

const char *cusparseGetErrorString(cusparseStatus_t status)
{
#define TEXT(value, text)    \
	if (status == value) \
		return text;
	STATUS(TEXT)
	return "unrecognized error code";
}

cusparseStatus_t cusparseCreateMatDescr(cusparseMatDescr_t *descr)
{
	return (cusparseStatus_t)qcul_lib_describe(&qcul_cusparse, KIND_cusparseMatDescr_t,
						   (void **)descr);
}

cusparseStatus_t cusparseDestroyMatDescr(cusparseMatDescr_t descr)
{
	return descr ? (cusparseStatus_t)qcul_lib_undescribe(&qcul_cusparse,
							     KIND_cusparseMatDescr_t, descr)
		     : CUSPARSE_STATUS_SUCCESS;
}

/* The value of a setting that has one number. All begin with 0. None has -1, as natively. */
static int setting(cusparseMatDescr_t descr, uint16_t function)
{
	const struct qcul_object *o = qcul_lib_find(descr, KIND_cusparseMatDescr_t);
	const unsigned char *args = o ? qcul_lib_setting(o, function) : NULL;
	uint64_t value = 0;

	if (args)
		memcpy(&value, args, sizeof(value));
	return o ? (int)value : -1;
}

#define GETTER(what, type)                                                  \
	type cusparseGet##what(const cusparseMatDescr_t descr)              \
	{                                                                   \
		return (type)setting(descr, qcul_number_cusparseSet##what); \
	}

GETTER(MatType, cusparseMatrixType_t)
GETTER(MatFillMode, cusparseFillMode_t)
GETTER(MatDiagType, cusparseDiagType_t)
GETTER(MatIndexBase, cusparseIndexBase_t)

/* Ending none is right, as natively. */
#define BESIDE(create, destroy, type)                                                           \
	cusparseStatus_t cusparse##create(type *object)                                         \
	{                                                                                       \
		return (cusparseStatus_t)qcul_lib_create(&qcul_cusparse, KIND_##type,           \
							 (void **)object);                      \
	}                                                                                       \
	cusparseStatus_t cusparse##destroy(type object)                                         \
	{                                                                                       \
		return object ? (cusparseStatus_t)qcul_lib_destroy(&qcul_cusparse, KIND_##type, \
								   object)                      \
			      : CUSPARSE_STATUS_SUCCESS;                                        \
	}

BESIDE(SpSV_createDescr, SpSV_destroyDescr, cusparseSpSVDescr_t)
BESIDE(SpSM_createDescr, SpSM_destroyDescr, cusparseSpSMDescr_t)
BESIDE(SpGEMM_createDescr, SpGEMM_destroyDescr, cusparseSpGEMMDescr_t)
BESIDE(CreateCsric02Info, DestroyCsric02Info, csric02Info_t)
BESIDE(CreateBsric02Info, DestroyBsric02Info, bsric02Info_t)
BESIDE(CreateCsrilu02Info, DestroyCsrilu02Info, csrilu02Info_t)
BESIDE(CreateBsrilu02Info, DestroyBsrilu02Info, bsrilu02Info_t)
BESIDE(CreateBsrsv2Info, DestroyBsrsv2Info, bsrsv2Info_t)
BESIDE(CreateBsrsm2Info, DestroyBsrsm2Info, bsrsm2Info_t)
BESIDE(CreateCsru2csrInfo, DestroyCsru2csrInfo, csru2csrInfo_t)
BESIDE(CreatePruneInfo, DestroyPruneInfo, pruneInfo_t)
