// SPDX-License-Identifier: GPL-2.0-or-later
/* The objects of cuSPARSE in the mirror. */
#include <stdlib.h>
#include <string.h>

#include "qcu-device/libs/cusparse.h"

#define BESIDE(create_name, destroy_name)                           \
	{                                                           \
		.numbered = true, .create = "cusparse" create_name, \
		.destroy = "cusparse" destroy_name                  \
	}

const struct lib_kind lib_cusparse_kinds[QCU_LIB_KINDS] = {
	[QCU_LIB_CUSPARSE_HANDLE] =
		{
			.numbered = true,
			.bare = true,
			.create = "cusparseCreate",
			.destroy = "cusparseDestroy",
			.stream = "cusparseSetStream",
			.mode = "cusparseSetPointerMode",
		},
	[QCU_LIB_CUSPARSE_MATRIX] =
		{
			.create = "cusparseCreateMatDescr",
			.destroy = "cusparseDestroyMatDescr",
		},
	[QCU_LIB_CUSPARSE_SP_VEC] = {.destroy = "cusparseDestroySpVec"},
	[QCU_LIB_CUSPARSE_DN_VEC] = {.destroy = "cusparseDestroyDnVec"},
	[QCU_LIB_CUSPARSE_SP_MAT] = {.destroy = "cusparseDestroySpMat"},
	[QCU_LIB_CUSPARSE_DN_MAT] = {.destroy = "cusparseDestroyDnMat"},
	[QCU_LIB_CUSPARSE_SPSV] = BESIDE("SpSV_createDescr", "SpSV_destroyDescr"),
	[QCU_LIB_CUSPARSE_SPSM] = BESIDE("SpSM_createDescr", "SpSM_destroyDescr"),
	[QCU_LIB_CUSPARSE_SPGEMM] = BESIDE("SpGEMM_createDescr", "SpGEMM_destroyDescr"),
	[QCU_LIB_CUSPARSE_CSRIC] = BESIDE("CreateCsric02Info", "DestroyCsric02Info"),
	[QCU_LIB_CUSPARSE_BSRIC] = BESIDE("CreateBsric02Info", "DestroyBsric02Info"),
	[QCU_LIB_CUSPARSE_CSRILU] = BESIDE("CreateCsrilu02Info", "DestroyCsrilu02Info"),
	[QCU_LIB_CUSPARSE_BSRILU] = BESIDE("CreateBsrilu02Info", "DestroyBsrilu02Info"),
	[QCU_LIB_CUSPARSE_BSRSV] = BESIDE("CreateBsrsv2Info", "DestroyBsrsv2Info"),
	[QCU_LIB_CUSPARSE_BSRSM] = BESIDE("CreateBsrsm2Info", "DestroyBsrsm2Info"),
	[QCU_LIB_CUSPARSE_CSRU] = BESIDE("CreateCsru2csrInfo", "DestroyCsru2csrInfo"),
	[QCU_LIB_CUSPARSE_PRUNE] = BESIDE("CreatePruneInfo", "DestroyPruneInfo"),
};

const char *const lib_cusparse_helpers[LIB_HELPERS] = {"cusparseSpMatGetSize"};

int lib_cusparse_counted(struct lib_call *c, int status, cusparseConstSpMatDescr_t mat,
			 int64_t *size)
{
	__typeof__(&cusparseSpMatGetSize) get = lib_helper(c, 0);

	if (status || !mat || !size)
		return status;
	return get ? (int)get(mat, &size[0], &size[1], &size[2]) : c->lib->unserved;
}

int lib_do_cusparseSpMatSetAttribute(struct lib_call *c)
{
	cusparseSpMatDescr_t mat = lib_descriptor(c, QCU_LIB_CUSPARSE_SP_MAT);
	uint64_t which = lib_value(c);
	uint32_t values[QCU_CUSPARSE_ATTRIBUTES];
	unsigned int i;
	int status = 0;

	for (i = 0; i < QCU_CUSPARSE_ATTRIBUTES; i++)
		values[i] = (uint32_t)lib_value(c);
	if (!lib_ready(c))
		return 0;
	for (i = 0; i < QCU_CUSPARSE_ATTRIBUTES && !status; i++)
		if (which & 1u << i)
			status = (int)((__typeof__(&cusparseSpMatSetAttribute))c->fn)(
				mat, (cusparseSpMatAttribute_t)i, &values[i], sizeof(values[i]));
	return status;
}

/* What an incomplete LU factor takes for a small pivot, and instead of it. */
struct boost {
	double tol;
	cuDoubleComplex value;
};

/* In the GPU's memory the numbers stay where they are. */
static int keep_boost(struct lib_call *c, bool enable, double **tol, void **value, size_t size)
{
	struct lib_object *o = c->second->library;
	struct boost *b = o->own;

	if (enable && (!*tol || !*value))
		return CUSPARSE_STATUS_INVALID_VALUE;
	if (c->mode == 1)
		return CUSPARSE_STATUS_SUCCESS;
	if (!b)
		b = o->own = calloc(1, sizeof(*b));
	if (!b)
		return CUSPARSE_STATUS_ALLOC_FAILED;
	if (*tol)
		b->tol = **tol;
	if (*value)
		memcpy(&b->value, *value, size);
	*tol = &b->tol;
	*value = &b->value;
	return CUSPARSE_STATUS_SUCCESS;
}

#define BOOST(name, info_type, type)                                                           \
	int lib_through_cusparse##name##_numericBoost(struct lib_call *c, cusparseHandle_t h,  \
						      info_type info, int enable, double *tol, \
						      type *value)                             \
	{                                                                                      \
		void *at = value;                                                              \
		int status = keep_boost(c, enable, &tol, &at, sizeof(*value));                 \
                                                                                               \
		return status ? status                                                         \
			      : (int)((__typeof__(&cusparse##name##_numericBoost))c->fn)(      \
					h, info, enable, tol, at);                             \
	}
BOOST(Scsrilu02, csrilu02Info_t, float)
BOOST(Dcsrilu02, csrilu02Info_t, double)
BOOST(Ccsrilu02, csrilu02Info_t, cuComplex)
BOOST(Zcsrilu02, csrilu02Info_t, cuDoubleComplex)
BOOST(Sbsrilu02, bsrilu02Info_t, float)
BOOST(Dbsrilu02, bsrilu02Info_t, double)
BOOST(Cbsrilu02, bsrilu02Info_t, cuComplex)
BOOST(Zbsrilu02, bsrilu02Info_t, cuDoubleComplex)
