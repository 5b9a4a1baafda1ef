// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The software GPU with a cuSPARSE that computes nothing: it checks what it gets. A matrix is right
 * only with all that sparse_calls sets in it, one thing after the other.
 */
#include <stdlib.h>
#include <string.h>

#define DISABLE_CUSPARSE_DEPRECATED
#include <cusparse.h>

#include "qcu-device/backend/backend.h"
#include "tests/loopback/libs/stand_in.h"
#include "tests/loopback/libs/sparse.h"

static struct be_ops ops;

/* What is in an object of any kind. */
struct made {
	char kind; /* 'h'andle, sparse 'm'atrix, 'v'ector, 'd'ense matrix, 's'ystem, 'p'ivot */
	int64_t rows, cols, nnz;
	const void *offsets, *columns, *values;
	int batch, fill, diag;
	bool updated;
};

static struct made *object(const void *at, char kind)
{
	struct made *m = (void *)(uintptr_t)at;

	return m && m->kind == kind ? m : NULL;
}

static cusparseStatus_t make(void *to, char kind, int64_t rows, int64_t cols, const void *values)
{
	struct made *m = calloc(1, sizeof(*m));

	if (!m)
		return CUSPARSE_STATUS_ALLOC_FAILED;
	m->kind = kind;
	m->rows = rows;
	m->cols = cols;
	m->values = values;
	memcpy(to, &m, sizeof(m));
	return CUSPARSE_STATUS_SUCCESS;
}

#define NEED(condition)                                       \
	do {                                                  \
		if (!(condition))                             \
			return CUSPARSE_STATUS_INVALID_VALUE; \
	} while (0)

static cusparseStatus_t create(cusparseHandle_t *h)
{
	return make(h, 'h', 0, 0, NULL);
}

static cusparseStatus_t create_system(cusparseSpSVDescr_t *descr)
{
	return make(descr, 's', 0, 0, NULL);
}

static cusparseStatus_t create_pivot(csric02Info_t *info)
{
	return make(info, 'p', 0, 0, NULL);
}

static cusparseStatus_t destroy(void *at)
{
	free(at);
	return CUSPARSE_STATUS_SUCCESS;
}

static cusparseStatus_t set_in_handle(cusparseHandle_t h, const void *what)
{
	(void)what;
	NEED(object(h, 'h'));
	return CUSPARSE_STATUS_SUCCESS;
}

static cusparseStatus_t create_vector(cusparseDnVecDescr_t *vec, int64_t size, void *values,
				      cudaDataType type)
{
	NEED(size >= 0 && (type == CUDA_R_32F || type == CUDA_R_16F));
	return make(vec, 'v', size, 1, values);
}

static cusparseStatus_t create_sparse(cusparseSpVecDescr_t *vec, int64_t size, int64_t nnz,
				      void *indices, void *values, cusparseIndexType_t index_type,
				      cusparseIndexBase_t base, cudaDataType type)
{
	NEED(size >= nnz && indices == SPARSE_AT(2) && index_type == CUSPARSE_INDEX_32I && !base);
	NEED(type == CUDA_R_16F);
	return make(vec, 'w', size, 1, values);
}

/* Scalars for vectors of half precision are floats. */
static cusparseStatus_t add(cusparseHandle_t h, const void *alpha, cusparseConstSpVecDescr_t x,
			    const void *beta, cusparseDnVecDescr_t y)
{
	NEED(object(h, 'h') && object(x, 'w') && object(y, 'v') && alpha && beta);
	NEED(*(const float *)alpha == 3 && *(const float *)beta == 5);
	return CUSPARSE_STATUS_SUCCESS;
}

static cusparseStatus_t create_dense(cusparseDnMatDescr_t *mat, int64_t rows, int64_t cols,
				     int64_t ld, void *values, cudaDataType type,
				     cusparseOrder_t order)
{
	NEED(ld == cols && type == CUDA_R_32F && order == CUSPARSE_ORDER_ROW);
	return make(mat, 'd', rows, cols, values);
}

static cusparseStatus_t create_csr(cusparseSpMatDescr_t *mat, int64_t rows, int64_t cols,
				   int64_t nnz, void *offsets, void *columns, void *values,
				   cusparseIndexType_t offset_type, cusparseIndexType_t column_type,
				   cusparseIndexBase_t base, cudaDataType type)
{
	struct made *m;
	cusparseStatus_t status;

	NEED(rows >= 0 && cols == SPARSE_COLS && offset_type == CUSPARSE_INDEX_32I);
	NEED(type == CUDA_R_32F && column_type == (base ? CUSPARSE_INDEX_64I : CUSPARSE_INDEX_32I));
	status = make(mat, 'm', rows, cols, values);
	m = status ? NULL : object(*mat, 'm');
	if (m) {
		m->nnz = nnz;
		m->offsets = offsets;
		m->columns = columns;
	}
	return status;
}

static cusparseStatus_t set_attribute(cusparseSpMatDescr_t mat, cusparseSpMatAttribute_t attribute,
				      void *data, size_t size)
{
	struct made *m = object(mat, 'm');
	int value;

	NEED(m && size == sizeof(value));
	memcpy(&value, data, sizeof(value));
	*(attribute == CUSPARSE_SPMAT_FILL_MODE ? &m->fill : &m->diag) = value;
	return CUSPARSE_STATUS_SUCCESS;
}

static cusparseStatus_t set_batch(cusparseSpMatDescr_t mat, int count, int64_t offsets,
				  int64_t values)
{
	struct made *m = object(mat, 'm');

	NEED(m && count > 0 && offsets == 100 && values == 200);
	m->batch = count;
	return CUSPARSE_STATUS_SUCCESS;
}

static cusparseStatus_t size_of(cusparseConstSpMatDescr_t mat, int64_t *rows, int64_t *cols,
				int64_t *nnz)
{
	const struct made *m = object(mat, 'm');

	NEED(m);
	*rows = m->rows;
	*cols = m->cols;
	*nnz = m->nnz;
	return CUSPARSE_STATUS_SUCCESS;
}

static cusparseStatus_t product(cusparseHandle_t h, cusparseOperation_t op, const void *alpha,
				cusparseConstSpMatDescr_t mat, cusparseConstDnVecDescr_t x,
				const void *beta, cusparseDnVecDescr_t y, cudaDataType type,
				cusparseSpMVAlg_t how, void *buffer)
{
	const struct made *m = object(mat, 'm'), *vx = object(x, 'v'), *vy = object(y, 'v');

	NEED(object(h, 'h') && m && vx && vy && !op && type == CUDA_R_32F && !how);
	NEED(*(const float *)alpha == 3 && *(const float *)beta == 5 && buffer == SPARSE_AT(9));
	NEED(m->rows == SPARSE_ROWS && m->nnz == SPARSE_NNZ && m->offsets == SPARSE_AT(1) &&
	     m->columns == SPARSE_AT(2) && m->values == SPARSE_AT(3));
	NEED(m->fill == CUSPARSE_FILL_MODE_UPPER && m->diag == CUSPARSE_DIAG_TYPE_UNIT);
	NEED(m->batch == 2 && vx->values == SPARSE_AT(7) && vy->values == SPARSE_AT(8));
	return CUSPARSE_STATUS_SUCCESS;
}

/* It never gives the same answer twice. */
static cusparseStatus_t product_size(cusparseHandle_t h, cusparseOperation_t op, const void *alpha,
				     cusparseConstSpMatDescr_t mat, cusparseConstDnVecDescr_t x,
				     const void *beta, cusparseDnVecDescr_t y, cudaDataType type,
				     cusparseSpMVAlg_t how, size_t *size)
{
	static size_t last;

	NEED(object(h, 'h') && object(mat, 'm') && object(x, 'v') && object(y, 'v'));
	NEED(!op && alpha && beta && type == CUDA_R_32F && !how);
	*size = last += SPARSE_BUFFER;
	return CUSPARSE_STATUS_SUCCESS;
}

static cusparseStatus_t analyse(cusparseHandle_t h, cusparseConstDnMatDescr_t from,
				cusparseSpMatDescr_t to, cusparseDenseToSparseAlg_t how,
				void *buffer)
{
	struct made *m = object(to, 'm');

	NEED(object(h, 'h') && object(from, 'd') && m && !how && buffer == SPARSE_AT(9));
	m->nnz = SPARSE_FOUND;
	return CUSPARSE_STATUS_SUCCESS;
}

static cusparseStatus_t convert(cusparseHandle_t h, cusparseConstDnMatDescr_t from,
				cusparseSpMatDescr_t to, cusparseDenseToSparseAlg_t how,
				void *buffer)
{
	const struct made *m = object(to, 'm');

	NEED(object(h, 'h') && object(from, 'd') && m && !how && buffer == SPARSE_AT(9));
	NEED(m->nnz == SPARSE_FOUND && m->columns == SPARSE_AT(2) && m->values == SPARSE_AT(3));
	return CUSPARSE_STATUS_SUCCESS;
}

static cusparseStatus_t update(cusparseHandle_t h, cusparseSpSVDescr_t descr, void *values,
			       cusparseSpSVUpdate_t part)
{
	struct made *s = object(descr, 's');

	NEED(object(h, 'h') && s && values == SPARSE_AT(3));
	NEED(part == CUSPARSE_SPSV_UPDATE_DIAGONAL || s->updated);
	s->updated = true;
	return CUSPARSE_STATUS_SUCCESS;
}

static cusparseStatus_t pivot(cusparseHandle_t h, csric02Info_t info, int *position)
{
	NEED(object(h, 'h') && object(info, 'p'));
	*position = SPARSE_PIVOT;
	return CUSPARSE_STATUS_ZERO_PIVOT;
}

/* It keeps the addresses, and reads there in later calls. */
static struct {
	const double *tol, *value;
	int enable;
} boost;

static cusparseStatus_t create_lu(csrilu02Info_t *info)
{
	return make(info, 'l', 0, 0, NULL);
}

static cusparseStatus_t keep_numbers(cusparseHandle_t h, csrilu02Info_t info, int enable,
				     double *tol, double *value)
{
	NEED(object(h, 'h') && object(info, 'l') && tol && value);
	boost.tol = tol;
	boost.value = value;
	boost.enable = enable;
	return CUSPARSE_STATUS_SUCCESS;
}

static cusparseStatus_t factor_lu(cusparseHandle_t h, int m, int nnz,
				  const cusparseMatDescr_t descr, double *values, const int *rows,
				  const int *cols, csrilu02Info_t info,
				  cusparseSolvePolicy_t policy, void *buffer)
{
	(void)policy;
	(void)descr;
	NEED(object(h, 'h') && object(info, 'l') && m == 3 && nnz == 5 && values && rows && cols &&
	     buffer);
	NEED(!boost.enable || (*boost.tol == 0.25 && *boost.value == -7));
	return CUSPARSE_STATUS_SUCCESS;
}

static void *open_library(struct be *be, const char *soname, char *why, size_t size)
{
	return strcmp(soname, "libcusparse.so.12") ? be_soft.lib_open(be, soname, why, size) : &ops;
}

static void *symbol(struct be *be, void *library, const char *name)
{
	static const struct stand_in all[] = {
		{"cusparseCreate", (void *)create},
		{"cusparseSpSV_createDescr", (void *)create_system},
		{"cusparseCreateCsric02Info", (void *)create_pivot},
		{"cusparseSetStream", (void *)set_in_handle},
		{"cusparseSetPointerMode", (void *)set_in_handle},
		{"cusparseCreateDnVec", (void *)create_vector},
		{"cusparseCreateSpVec", (void *)create_sparse},
		{"cusparseAxpby", (void *)add},
		{"cusparseCreateDnMat", (void *)create_dense},
		{"cusparseCreateCsr", (void *)create_csr},
		{"cusparseSpMatSetAttribute", (void *)set_attribute},
		{"cusparseCsrSetStridedBatch", (void *)set_batch},
		{"cusparseSpMatGetSize", (void *)size_of},
		{"cusparseSpMV", (void *)product},
		{"cusparseSpMV_bufferSize", (void *)product_size},
		{"cusparseDenseToSparse_analysis", (void *)analyse},
		{"cusparseDenseToSparse_convert", (void *)convert},
		{"cusparseSpSV_updateMatrix", (void *)update},
		{"cusparseXcsric02_zeroPivot", (void *)pivot},
		{"cusparseCreateCsrilu02Info", (void *)create_lu},
		{"cusparseDcsrilu02_numericBoost", (void *)keep_numbers},
		{"cusparseDcsrilu02", (void *)factor_lu},
		{"cusparseDestroyCsrilu02Info", (void *)destroy},
		{"cusparseCreateMatDescr", (void *)create},
		{"cusparseDestroyMatDescr", (void *)destroy},
	};
	void *fn;

	if (library != &ops)
		return be_soft.lib_symbol(be, library, name);
	fn = STAND_IN_FIND(all, name);
	if (fn)
		return fn;
	return strncmp(name, "cusparseDestroy", 15) && strcmp(name, "cusparseSpSV_destroyDescr")
		       ? NULL
		       : (void *)destroy;
}

/* The program's pointers count as device memory. */
static bool valid(struct be *be, uint64_t addr, uint64_t len)
{
	const uint64_t first = (uintptr_t)SPARSE_AT(0), end = (uintptr_t)SPARSE_AT(SPARSE_POINTERS);

	if (addr >= first && addr < end && len <= end - addr)
		return true;
	return be_soft.mem_valid(be, addr, len);
}

__attribute__((visibility("default"))) const struct be_ops *be_plugin(void);

const struct be_ops *be_plugin(void)
{
	ops = be_soft;
	ops.lib_open = open_library;
	ops.lib_symbol = symbol;
	ops.mem_valid = valid;
	return &ops;
}
