// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * cublasSetMatrix and similar functions copy columns with the runtime. So the data goes directly
 * from and to the program's own pages, as in all copies.
 */
#include <limits.h>

#include "qcu-library/shims/cublas.h"

struct columns {
	int64_t rows, cols, elem, from_lead, to_lead;
	const void *from;
	void *to;
};

static cublasStatus_t copy_columns(const struct columns *m, enum cudaMemcpyKind kind,
				   const cudaStream_t *stream)
{
	size_t width = (size_t)m->rows * (size_t)m->elem;
	size_t from = (size_t)m->from_lead * (size_t)m->elem;
	size_t to = (size_t)m->to_lead * (size_t)m->elem;
	cudaError_t err;

	if (m->rows < 0 || m->cols < 0 || m->elem <= 0 || m->from_lead <= 0 || m->to_lead <= 0)
		return CUBLAS_STATUS_INVALID_VALUE;
	if (!m->rows || !m->cols)
		return CUBLAS_STATUS_SUCCESS;
	if (m->from_lead < m->rows || m->to_lead < m->rows)
		return CUBLAS_STATUS_INVALID_VALUE;
	if (stream)
		err = cudaMemcpy2DAsync(m->to, to, m->from, from, width, (size_t)m->cols, kind,
					*stream);
	else
		err = cudaMemcpy2D(m->to, to, m->from, from, width, (size_t)m->cols, kind);
	return err == cudaSuccess ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_MAPPING_ERROR;
}

static cublasStatus_t set_matrix(const struct columns *m, const cudaStream_t *stream)
{
	return copy_columns(m, cudaMemcpyHostToDevice, stream);
}

static cublasStatus_t get_matrix(const struct columns *m, const cudaStream_t *stream)
{
	return copy_columns(m, cudaMemcpyDeviceToHost, stream);
}

/* A vector is one row of a matrix, unless it has no gaps: then it is one column. */
static struct columns columns_of_vector(int64_t n, int64_t elem, const void *from, int64_t incx,
					void *to, int64_t incy)
{
	if (incx == 1 && incy == 1)
		return (struct columns){n, n < 0 ? -1 : 1, elem, n > 0 ? n : 1, n > 0 ? n : 1, from,
					to};
	return (struct columns){1, n, elem, incx, incy, from, to};
}

#define VECTOR(name, way, type)                                                                  \
	cublasStatus_t name(type n, type elem, const void *from, type incx, void *to, type incy) \
	{                                                                                        \
		const struct columns v = columns_of_vector(n, elem, from, incx, to, incy);       \
                                                                                                 \
		return way##_matrix(&v, NULL);                                                   \
	}
#define VECTOR_ASYNC(name, way, type)                                                            \
	cublasStatus_t name(type n, type elem, const void *from, type incx, void *to, type incy, \
			    cudaStream_t stream)                                                 \
	{                                                                                        \
		const struct columns v = columns_of_vector(n, elem, from, incx, to, incy);       \
                                                                                                 \
		return way##_matrix(&v, &stream);                                                \
	}
#define MATRIX(name, way, type)                                                                    \
	cublasStatus_t name(type rows, type cols, type elem, const void *from, type lda, void *to, \
			    type ldb)                                                              \
	{                                                                                          \
		const struct columns m = {rows, cols, elem, lda, ldb, from, to};                   \
                                                                                                   \
		return way##_matrix(&m, NULL);                                                     \
	}
#define MATRIX_ASYNC(name, way, type)                                                              \
	cublasStatus_t name(type rows, type cols, type elem, const void *from, type lda, void *to, \
			    type ldb, cudaStream_t stream)                                         \
	{                                                                                          \
		const struct columns m = {rows, cols, elem, lda, ldb, from, to};                   \
                                                                                                   \
		return way##_matrix(&m, &stream);                                                  \
	}

VECTOR(cublasSetVector, set, int)
VECTOR(cublasGetVector, get, int)
VECTOR(cublasSetVector_64, set, int64_t)
VECTOR(cublasGetVector_64, get, int64_t)
VECTOR_ASYNC(cublasSetVectorAsync, set, int)
VECTOR_ASYNC(cublasGetVectorAsync, get, int)
VECTOR_ASYNC(cublasSetVectorAsync_64, set, int64_t)
VECTOR_ASYNC(cublasGetVectorAsync_64, get, int64_t)
MATRIX(cublasSetMatrix, set, int)
MATRIX(cublasGetMatrix, get, int)
MATRIX(cublasSetMatrix_64, set, int64_t)
MATRIX(cublasGetMatrix_64, get, int64_t)
MATRIX_ASYNC(cublasSetMatrixAsync, set, int)
MATRIX_ASYNC(cublasGetMatrixAsync, get, int)
MATRIX_ASYNC(cublasSetMatrixAsync_64, set, int64_t)
MATRIX_ASYNC(cublasGetMatrixAsync_64, get, int64_t)
