// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The matrices and vectors of cuSPARSE's generic functions. They live in the guest. The first
 * setting of such an object is the function that created it, with one word for each argument. The
 * functions that read an object read this setting, and those that set an address change it.
 */
#include <string.h>

#include "qcu-library/shims/cusparse.h"

#define NONE 0xffu

/* The arguments that are addresses, a bit for each. */
#define SP_VEC_ADDRESSES (1u << 2 | 1u << 3)
#define DN_VEC_ADDRESSES (1u << 1)
#define DN_MAT_ADDRESSES (1u << 3)

/* Which of the arguments that made an object is what. NONE: there is no such one. */
struct form {
	const uint16_t *made_by, *made_const_by;
	cusparseFormat_t format;
	unsigned char offsets, indices, values, base, elements;
};

#define NUMBER(what) extern const uint16_t qcul_number_cusparse##what;
#define BOTH(what)           \
	NUMBER(Create##what) \
	NUMBER(CreateConst##what)
BOTH(Csr)
BOTH(Csc)
BOTH(Bsr)
BOTH(Coo)
BOTH(BlockedEll)
BOTH(SlicedEll)
NUMBER(CooSetStridedBatch)
NUMBER(CsrSetStridedBatch)
NUMBER(BsrSetStridedBatch)
NUMBER(DnMatSetStridedBatch)
NUMBER(SpMatSetAttribute)

#define MADE_BY(what) &qcul_number_cusparseCreate##what, &qcul_number_cusparseCreateConst##what
static const struct form forms[] = {
	{MADE_BY(Csr), CUSPARSE_FORMAT_CSR, 3, 4, 5, 8, 2},
	{MADE_BY(Csc), CUSPARSE_FORMAT_CSC, 3, 4, 5, 8, 2},
	{MADE_BY(Coo), CUSPARSE_FORMAT_COO, 3, 4, 5, 7, 2},
	{MADE_BY(Bsr), CUSPARSE_FORMAT_BSR, 5, 6, 7, 10, 2},
	{MADE_BY(BlockedEll), CUSPARSE_FORMAT_BLOCKED_ELL, NONE, 4, 5, 7, NONE},
	{MADE_BY(SlicedEll), CUSPARSE_FORMAT_SLICED_ELLPACK, 5, 6, 7, 10, 2},
};

static uint64_t argument_word(const struct qcul_object *o, unsigned int i)
{
	uint64_t value;

	memcpy(&value, o->settings + sizeof(struct qcu_lib_setting) + i * sizeof(value),
	       sizeof(value));
	return value;
}

static void put_argument_word(struct qcul_object *o, unsigned int i, uint64_t value)
{
	memcpy(o->settings + sizeof(struct qcu_lib_setting) + i * sizeof(value), &value,
	       sizeof(value));
}

/*
 * An argument has changed, and with it the question what the library has accepted. Of addresses, it
 * depends on the alignment only. `addresses`: a bit for each argument that is one.
 */
static void changed(struct qcul_object *o, unsigned int addresses)
{
	struct qcu_lib_setting s;
	uint64_t seen;
	unsigned int i;

	memcpy(&s, o->settings, sizeof(s));
	seen = s.function;
	for (i = 0; i < s.args / sizeof(uint64_t); i++) {
		uint64_t w = argument_word(o, i);

		if (addresses & 1u << i)
			w = w ? 1 + (w & 255) : 0;
		qcul_lib_mix(&seen, w);
	}
	o->set[0].seen = seen;
}

static void put_address(struct qcul_object *o, unsigned int i, const void *address)
{
	put_argument_word(o, i, (uint64_t)(uintptr_t)address);
}

static struct qcul_object *find_dense_vector(cusparseConstDnVecDescr_t vec)
{
	return qcul_lib_find(vec, KIND_cusparseDnVecDescr_t);
}

static struct qcul_object *sparse_vector(cusparseConstSpVecDescr_t vec)
{
	return qcul_lib_find(vec, KIND_cusparseSpVecDescr_t);
}

static struct qcul_object *dense(cusparseConstDnMatDescr_t mat)
{
	return qcul_lib_find(mat, KIND_cusparseDnMatDescr_t);
}

static struct qcul_object *matrix(cusparseConstSpMatDescr_t mat, const struct form **form)
{
	struct qcul_object *o = qcul_lib_find(mat, KIND_cusparseSpMatDescr_t);
	unsigned int i;

	for (i = 0; o && i < sizeof(forms) / sizeof(forms[0]); i++) {
		*form = &forms[i];
		if (qcul_lib_setting(o, *forms[i].made_by) ||
		    qcul_lib_setting(o, *forms[i].made_const_by))
			return o;
	}
	return NULL;
}

static unsigned int addresses(const struct form *form)
{
	return (form->offsets == NONE ? 0 : 1u << form->offsets) | 1u << form->indices |
	       1u << form->values;
}

#define DESTROY(name, type)                                                                        \
	cusparseStatus_t cusparseDestroy##name(type object)                                        \
	{                                                                                          \
		return object ? (cusparseStatus_t)qcul_lib_undescribe(&qcul_cusparse, KIND_##type, \
								      (void *)(uintptr_t)object)   \
			      : CUSPARSE_STATUS_SUCCESS;                                           \
	}

DESTROY(SpVec, cusparseConstSpVecDescr_t)
DESTROY(DnVec, cusparseConstDnVecDescr_t)
DESTROY(SpMat, cusparseConstSpMatDescr_t)
DESTROY(DnMat, cusparseConstDnMatDescr_t)

/* Writes an argument to where the program wants it. */
#define GET(to, i)                                                \
	do {                                                      \
		if (!(to))                                        \
			return CUSPARSE_STATUS_INVALID_VALUE;     \
		*(to) = (__typeof__(*(to)))argument_word(o, (i)); \
	} while (0)

uint64_t qcul_cusparse_scalar(cusparseConstSpVecDescr_t vec)
{
	const struct qcul_object *o = sparse_vector(vec);
	int type = o ? (int)argument_word(o, 6) : -1;

	switch (type) {
	case CUDA_R_16F:
	case CUDA_R_16BF:
		return sizeof(float);
	case CUDA_C_16F:
	case CUDA_C_16BF:
		return 2 * sizeof(float);
	default:
		return qcu_cublas_size(type);
	}
}

int qcul_cusparse_counted(cusparseSpMatDescr_t mat, const int64_t *size, int status)
{
	const struct form *form;
	struct qcul_object *o = matrix(mat, &form);

	if (!status && o && form->elements != NONE) {
		put_argument_word(o, form->elements, (uint64_t)size[2]);
		changed(o, addresses(form));
	}
	return status;
}

/* ---- vectors ---- */

cusparseStatus_t cusparseSpVecGet(cusparseSpVecDescr_t vec, int64_t *size, int64_t *nnz,
				  void **indices, void **values, cusparseIndexType_t *index_type,
				  cusparseIndexBase_t *base, cudaDataType *type)
{
	const struct qcul_object *o = sparse_vector(vec);

	if (!o)
		return CUSPARSE_STATUS_INVALID_VALUE;
	GET(size, 0);
	GET(nnz, 1);
	GET(indices, 2);
	GET(values, 3);
	GET(index_type, 4);
	GET(base, 5);
	GET(type, 6);
	return CUSPARSE_STATUS_SUCCESS;
}

cusparseStatus_t cusparseConstSpVecGet(cusparseConstSpVecDescr_t vec, int64_t *size, int64_t *nnz,
				       const void **indices, const void **values,
				       cusparseIndexType_t *index_type, cusparseIndexBase_t *base,
				       cudaDataType *type)
{
	return cusparseSpVecGet((cusparseSpVecDescr_t)(uintptr_t)vec, size, nnz, (void **)indices,
				(void **)values, index_type, base, type);
}

cusparseStatus_t cusparseSpVecGetValues(cusparseSpVecDescr_t vec, void **values)
{
	const struct qcul_object *o = sparse_vector(vec);

	if (!o)
		return CUSPARSE_STATUS_INVALID_VALUE;
	GET(values, 3);
	return CUSPARSE_STATUS_SUCCESS;
}

cusparseStatus_t cusparseConstSpVecGetValues(cusparseConstSpVecDescr_t vec, const void **values)
{
	return cusparseSpVecGetValues((cusparseSpVecDescr_t)(uintptr_t)vec, (void **)values);
}

cusparseStatus_t cusparseSpVecGetIndexBase(cusparseConstSpVecDescr_t vec, cusparseIndexBase_t *base)
{
	const struct qcul_object *o = sparse_vector(vec);

	if (!o)
		return CUSPARSE_STATUS_INVALID_VALUE;
	GET(base, 5);
	return CUSPARSE_STATUS_SUCCESS;
}

cusparseStatus_t cusparseSpVecSetValues(cusparseSpVecDescr_t vec, void *values)
{
	struct qcul_object *o = sparse_vector(vec);

	if (!o)
		return CUSPARSE_STATUS_INVALID_VALUE;
	put_address(o, 3, values);
	changed(o, SP_VEC_ADDRESSES);
	return CUSPARSE_STATUS_SUCCESS;
}

cusparseStatus_t cusparseDnVecGet(cusparseDnVecDescr_t vec, int64_t *size, void **values,
				  cudaDataType *type)
{
	const struct qcul_object *o = find_dense_vector(vec);

	if (!o)
		return CUSPARSE_STATUS_INVALID_VALUE;
	GET(size, 0);
	GET(values, 1);
	GET(type, 2);
	return CUSPARSE_STATUS_SUCCESS;
}

cusparseStatus_t cusparseConstDnVecGet(cusparseConstDnVecDescr_t vec, int64_t *size,
				       const void **values, cudaDataType *type)
{
	return cusparseDnVecGet((cusparseDnVecDescr_t)(uintptr_t)vec, size, (void **)values, type);
}

cusparseStatus_t cusparseDnVecGetValues(cusparseDnVecDescr_t vec, void **values)
{
	const struct qcul_object *o = find_dense_vector(vec);

	if (!o)
		return CUSPARSE_STATUS_INVALID_VALUE;
	GET(values, 1);
	return CUSPARSE_STATUS_SUCCESS;
}

cusparseStatus_t cusparseConstDnVecGetValues(cusparseConstDnVecDescr_t vec, const void **values)
{
	return cusparseDnVecGetValues((cusparseDnVecDescr_t)(uintptr_t)vec, (void **)values);
}

cusparseStatus_t cusparseDnVecSetValues(cusparseDnVecDescr_t vec, void *values)
{
	struct qcul_object *o = find_dense_vector(vec);

	if (!o)
		return CUSPARSE_STATUS_INVALID_VALUE;
	put_address(o, 1, values);
	changed(o, DN_VEC_ADDRESSES);
	return CUSPARSE_STATUS_SUCCESS;
}

/* ---- dense matrices ---- */

cusparseStatus_t cusparseDnMatGet(cusparseDnMatDescr_t mat, int64_t *rows, int64_t *cols,
				  int64_t *ld, void **values, cudaDataType *type,
				  cusparseOrder_t *order)
{
	const struct qcul_object *o = dense(mat);

	if (!o)
		return CUSPARSE_STATUS_INVALID_VALUE;
	GET(rows, 0);
	GET(cols, 1);
	GET(ld, 2);
	GET(values, 3);
	GET(type, 4);
	GET(order, 5);
	return CUSPARSE_STATUS_SUCCESS;
}

cusparseStatus_t cusparseConstDnMatGet(cusparseConstDnMatDescr_t mat, int64_t *rows, int64_t *cols,
				       int64_t *ld, const void **values, cudaDataType *type,
				       cusparseOrder_t *order)
{
	return cusparseDnMatGet((cusparseDnMatDescr_t)(uintptr_t)mat, rows, cols, ld,
				(void **)values, type, order);
}

cusparseStatus_t cusparseDnMatGetValues(cusparseDnMatDescr_t mat, void **values)
{
	const struct qcul_object *o = dense(mat);

	if (!o)
		return CUSPARSE_STATUS_INVALID_VALUE;
	GET(values, 3);
	return CUSPARSE_STATUS_SUCCESS;
}

cusparseStatus_t cusparseConstDnMatGetValues(cusparseConstDnMatDescr_t mat, const void **values)
{
	return cusparseDnMatGetValues((cusparseDnMatDescr_t)(uintptr_t)mat, (void **)values);
}

cusparseStatus_t cusparseDnMatSetValues(cusparseDnMatDescr_t mat, void *values)
{
	struct qcul_object *o = dense(mat);

	if (!o)
		return CUSPARSE_STATUS_INVALID_VALUE;
	put_address(o, 3, values);
	changed(o, DN_MAT_ADDRESSES);
	return CUSPARSE_STATUS_SUCCESS;
}

/* How many matrices the object stands for: the first argument of the function that says it. */
static int batch(const struct qcul_object *o, uint16_t function)
{
	const unsigned char *args = qcul_lib_setting(o, function);
	uint64_t count = 1;

	if (args)
		memcpy(&count, args, sizeof(count));
	return (int)count;
}

cusparseStatus_t cusparseDnMatGetStridedBatch(cusparseConstDnMatDescr_t mat, int *count,
					      int64_t *stride)
{
	const struct qcul_object *o = dense(mat);
	const unsigned char *args;

	if (!o || !count || !stride)
		return CUSPARSE_STATUS_INVALID_VALUE;
	args = qcul_lib_setting(o, qcul_number_cusparseDnMatSetStridedBatch);
	*count = batch(o, qcul_number_cusparseDnMatSetStridedBatch);
	*stride = 0;
	if (args)
		memcpy(stride, args + sizeof(uint64_t), sizeof(*stride));
	return CUSPARSE_STATUS_SUCCESS;
}

/* ---- sparse matrices ---- */

/* CSR and CSC: the same arguments, with rows and columns exchanged. */
static cusparseStatus_t get_compressed(cusparseConstSpMatDescr_t mat, cusparseFormat_t format,
				       int64_t *rows, int64_t *cols, int64_t *nnz, void **offsets,
				       void **indices, void **values,
				       cusparseIndexType_t *offset_type,
				       cusparseIndexType_t *index_type, cusparseIndexBase_t *base,
				       cudaDataType *type)
{
	const struct form *form;
	const struct qcul_object *o = matrix(mat, &form);

	if (!o || form->format != format)
		return CUSPARSE_STATUS_INVALID_VALUE;
	GET(rows, 0);
	GET(cols, 1);
	GET(nnz, 2);
	GET(offsets, 3);
	GET(indices, 4);
	GET(values, 5);
	GET(offset_type, 6);
	GET(index_type, 7);
	GET(base, 8);
	GET(type, 9);
	return CUSPARSE_STATUS_SUCCESS;
}

cusparseStatus_t cusparseCsrGet(cusparseSpMatDescr_t mat, int64_t *rows, int64_t *cols,
				int64_t *nnz, void **offsets, void **columns, void **values,
				cusparseIndexType_t *offset_type, cusparseIndexType_t *column_type,
				cusparseIndexBase_t *base, cudaDataType *type)
{
	return get_compressed(mat, CUSPARSE_FORMAT_CSR, rows, cols, nnz, offsets, columns, values,
			      offset_type, column_type, base, type);
}

cusparseStatus_t cusparseConstCsrGet(cusparseConstSpMatDescr_t mat, int64_t *rows, int64_t *cols,
				     int64_t *nnz, const void **offsets, const void **columns,
				     const void **values, cusparseIndexType_t *offset_type,
				     cusparseIndexType_t *column_type, cusparseIndexBase_t *base,
				     cudaDataType *type)
{
	return cusparseCsrGet((cusparseSpMatDescr_t)(uintptr_t)mat, rows, cols, nnz,
			      (void **)offsets, (void **)columns, (void **)values, offset_type,
			      column_type, base, type);
}

cusparseStatus_t cusparseCscGet(cusparseSpMatDescr_t mat, int64_t *rows, int64_t *cols,
				int64_t *nnz, void **offsets, void **rows_of, void **values,
				cusparseIndexType_t *offset_type, cusparseIndexType_t *row_type,
				cusparseIndexBase_t *base, cudaDataType *type)
{
	return get_compressed(mat, CUSPARSE_FORMAT_CSC, rows, cols, nnz, offsets, rows_of, values,
			      offset_type, row_type, base, type);
}

cusparseStatus_t cusparseConstCscGet(cusparseConstSpMatDescr_t mat, int64_t *rows, int64_t *cols,
				     int64_t *nnz, const void **offsets, const void **rows_of,
				     const void **values, cusparseIndexType_t *offset_type,
				     cusparseIndexType_t *row_type, cusparseIndexBase_t *base,
				     cudaDataType *type)
{
	return cusparseCscGet((cusparseSpMatDescr_t)(uintptr_t)mat, rows, cols, nnz,
			      (void **)offsets, (void **)rows_of, (void **)values, offset_type,
			      row_type, base, type);
}

cusparseStatus_t cusparseCooGet(cusparseSpMatDescr_t mat, int64_t *rows, int64_t *cols,
				int64_t *nnz, void **rows_of, void **columns, void **values,
				cusparseIndexType_t *index_type, cusparseIndexBase_t *base,
				cudaDataType *type)
{
	const struct form *form;
	const struct qcul_object *o = matrix(mat, &form);

	if (!o || form->format != CUSPARSE_FORMAT_COO)
		return CUSPARSE_STATUS_INVALID_VALUE;
	GET(rows, 0);
	GET(cols, 1);
	GET(nnz, 2);
	GET(rows_of, 3);
	GET(columns, 4);
	GET(values, 5);
	GET(index_type, 6);
	GET(base, 7);
	GET(type, 8);
	return CUSPARSE_STATUS_SUCCESS;
}

cusparseStatus_t cusparseConstCooGet(cusparseConstSpMatDescr_t mat, int64_t *rows, int64_t *cols,
				     int64_t *nnz, const void **rows_of, const void **columns,
				     const void **values, cusparseIndexType_t *index_type,
				     cusparseIndexBase_t *base, cudaDataType *type)
{
	return cusparseCooGet((cusparseSpMatDescr_t)(uintptr_t)mat, rows, cols, nnz,
			      (void **)rows_of, (void **)columns, (void **)values, index_type, base,
			      type);
}

cusparseStatus_t cusparseBlockedEllGet(cusparseSpMatDescr_t mat, int64_t *rows, int64_t *cols,
				       int64_t *block, int64_t *ell_cols, void **columns,
				       void **values, cusparseIndexType_t *index_type,
				       cusparseIndexBase_t *base, cudaDataType *type)
{
	const struct form *form;
	const struct qcul_object *o = matrix(mat, &form);

	if (!o || form->format != CUSPARSE_FORMAT_BLOCKED_ELL)
		return CUSPARSE_STATUS_INVALID_VALUE;
	GET(rows, 0);
	GET(cols, 1);
	GET(block, 2);
	GET(ell_cols, 3);
	GET(columns, 4);
	GET(values, 5);
	GET(index_type, 6);
	GET(base, 7);
	GET(type, 8);
	return CUSPARSE_STATUS_SUCCESS;
}

cusparseStatus_t cusparseConstBlockedEllGet(cusparseConstSpMatDescr_t mat, int64_t *rows,
					    int64_t *cols, int64_t *block, int64_t *ell_cols,
					    const void **columns, const void **values,
					    cusparseIndexType_t *index_type,
					    cusparseIndexBase_t *base, cudaDataType *type)
{
	return cusparseBlockedEllGet((cusparseSpMatDescr_t)(uintptr_t)mat, rows, cols, block,
				     ell_cols, (void **)columns, (void **)values, index_type, base,
				     type);
}

static cusparseStatus_t set_pointers(cusparseSpMatDescr_t mat, cusparseFormat_t format,
				     const void *offsets, const void *indices, const void *values)
{
	const struct form *form;
	struct qcul_object *o = matrix(mat, &form);

	if (!o || form->format != format)
		return CUSPARSE_STATUS_INVALID_VALUE;
	put_address(o, form->offsets, offsets);
	put_address(o, form->indices, indices);
	put_address(o, form->values, values);
	changed(o, addresses(form));
	return CUSPARSE_STATUS_SUCCESS;
}

cusparseStatus_t cusparseCsrSetPointers(cusparseSpMatDescr_t mat, void *offsets, void *columns,
					void *values)
{
	return set_pointers(mat, CUSPARSE_FORMAT_CSR, offsets, columns, values);
}

cusparseStatus_t cusparseCscSetPointers(cusparseSpMatDescr_t mat, void *offsets, void *rows,
					void *values)
{
	return set_pointers(mat, CUSPARSE_FORMAT_CSC, offsets, rows, values);
}

cusparseStatus_t cusparseCooSetPointers(cusparseSpMatDescr_t mat, void *rows, void *columns,
					void *values)
{
	return set_pointers(mat, CUSPARSE_FORMAT_COO, rows, columns, values);
}

cusparseStatus_t cusparseSpMatGetValues(cusparseSpMatDescr_t mat, void **values)
{
	const struct form *form;
	const struct qcul_object *o = matrix(mat, &form);

	if (!o)
		return CUSPARSE_STATUS_INVALID_VALUE;
	GET(values, form->values);
	return CUSPARSE_STATUS_SUCCESS;
}

cusparseStatus_t cusparseConstSpMatGetValues(cusparseConstSpMatDescr_t mat, const void **values)
{
	return cusparseSpMatGetValues((cusparseSpMatDescr_t)(uintptr_t)mat, (void **)values);
}

cusparseStatus_t cusparseSpMatSetValues(cusparseSpMatDescr_t mat, void *values)
{
	const struct form *form;
	struct qcul_object *o = matrix(mat, &form);

	if (!o)
		return CUSPARSE_STATUS_INVALID_VALUE;
	put_address(o, form->values, values);
	changed(o, addresses(form));
	return CUSPARSE_STATUS_SUCCESS;
}

cusparseStatus_t cusparseSpMatGetFormat(cusparseConstSpMatDescr_t mat, cusparseFormat_t *format)
{
	const struct form *form;

	if (!matrix(mat, &form) || !format)
		return CUSPARSE_STATUS_INVALID_VALUE;
	*format = form->format;
	return CUSPARSE_STATUS_SUCCESS;
}

cusparseStatus_t cusparseSpMatGetIndexBase(cusparseConstSpMatDescr_t mat, cusparseIndexBase_t *base)
{
	const struct form *form;
	const struct qcul_object *o = matrix(mat, &form);

	if (!o)
		return CUSPARSE_STATUS_INVALID_VALUE;
	GET(base, form->base);
	return CUSPARSE_STATUS_SUCCESS;
}

cusparseStatus_t cusparseSpMatGetSize(cusparseConstSpMatDescr_t mat, int64_t *rows, int64_t *cols,
				      int64_t *nnz)
{
	const struct form *form;
	const struct qcul_object *o = matrix(mat, &form);

	if (!o)
		return CUSPARSE_STATUS_INVALID_VALUE;
	GET(rows, 0);
	GET(cols, 1);
	if (form->elements != NONE)
		GET(nnz, form->elements);
	else if (nnz)
		*nnz = *rows * *cols * (int64_t)argument_word(o, 2); /* so natively, for blocks */
	return nnz ? CUSPARSE_STATUS_SUCCESS : CUSPARSE_STATUS_INVALID_VALUE;
}

cusparseStatus_t cusparseSpMatGetStridedBatch(cusparseConstSpMatDescr_t mat, int *count)
{
	const struct form *form;
	const struct qcul_object *o = matrix(mat, &form);

	if (!o || !count)
		return CUSPARSE_STATUS_INVALID_VALUE;
	*count = batch(
		o, form->format == CUSPARSE_FORMAT_COO	 ? qcul_number_cusparseCooSetStridedBatch
		   : form->format == CUSPARSE_FORMAT_BSR ? qcul_number_cusparseBsrSetStridedBatch
							 : qcul_number_cusparseCsrSetStridedBatch);
	return CUSPARSE_STATUS_SUCCESS;
}

/* ---- attributes, which travel together ---- */

struct attributes {
	uint64_t which, values[QCU_CUSPARSE_ATTRIBUTES];
};

static struct attributes attributes_of_matrix(const struct qcul_object *o)
{
	const unsigned char *args = qcul_lib_setting(o, qcul_number_cusparseSpMatSetAttribute);
	struct attributes a = {0};

	if (args)
		memcpy(&a, args, sizeof(a));
	return a;
}

cusparseStatus_t cusparseSpMatGetAttribute(cusparseConstSpMatDescr_t mat,
					   cusparseSpMatAttribute_t attribute, void *data,
					   size_t size)
{
	const struct form *form;
	const struct qcul_object *o = matrix(mat, &form);
	uint32_t value;

	if (!o || (unsigned int)attribute >= QCU_CUSPARSE_ATTRIBUTES || !data ||
	    size != sizeof(value))
		return CUSPARSE_STATUS_INVALID_VALUE;
	value = (uint32_t)attributes_of_matrix(o).values[attribute];
	memcpy(data, &value, sizeof(value));
	return CUSPARSE_STATUS_SUCCESS;
}

cusparseStatus_t cusparseSpMatSetAttribute(cusparseSpMatDescr_t mat,
					   cusparseSpMatAttribute_t attribute, void *data,
					   size_t size)
{
	const struct form *form;
	const struct qcul_object *o = matrix(mat, &form);
	struct qcul_pack pack;
	struct attributes a;
	unsigned int i;
	uint32_t value;

	if (!o || (unsigned int)attribute >= QCU_CUSPARSE_ATTRIBUTES || !data ||
	    size != sizeof(value))
		return CUSPARSE_STATUS_INVALID_VALUE;
	memcpy(&value, data, sizeof(value));
	a = attributes_of_matrix(o);
	a.which |= 1u << attribute;
	a.values[attribute] = value;
	qcul_lib_begin(&pack, &qcul_cusparse, qcul_number_cusparseSpMatSetAttribute);
	qcul_lib_descriptor(&pack, mat, KIND_cusparseSpMatDescr_t);
	qcul_lib_value(&pack, a.which);
	for (i = 0; i < QCU_CUSPARSE_ATTRIBUTES; i++)
		qcul_lib_value(&pack, a.values[i]);
	return (cusparseStatus_t)qcul_lib_set(&pack);
}
