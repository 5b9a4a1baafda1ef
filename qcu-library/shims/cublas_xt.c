// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * cuBLASXt: products of matrices in host memory, which may be larger than the GPU's. They are
 * computed tile by tile, with cuBLAS's own functions. A call returns when the result is there, as
 * natively. The functions of the four types differ in no more than the types behind pointers, so
 * each family has one function here, which gets cuBLAS's function as an address.
 */
#include <stdlib.h>
#include <string.h>

#include <cuda_runtime_api.h>

#include "qcu-library/shims/cublas.h"

#pragma GCC visibility push(default)
#include <cublasXt.h>
#pragma GCC visibility pop

#define BLOCK 1024 /* rows and columns of a tile, if the program does not say */

struct cublasXtContext {
	int block;
	cublasXtPinnedMemMode_t pinning;
	int device;	     /* the first of those selected */
	cublasHandle_t blas; /* NULL: no device is selected */
};

/* ---- handles ---- */

QCUL_LIB_EXPORT cublasStatus_t cublasXtCreate(cublasXtHandle_t *handle)
{
	cublasXtHandle_t h;
	int devices;

	if (!handle)
		return CUBLAS_STATUS_INVALID_VALUE;
	if (cudaGetDeviceCount(&devices))
		return CUBLAS_STATUS_NOT_INITIALIZED;
	h = calloc(1, sizeof(*h));
	if (!h)
		return CUBLAS_STATUS_ALLOC_FAILED;
	h->block = BLOCK;
	*handle = h;
	return CUBLAS_STATUS_SUCCESS;
}

static void drop_device(cublasXtHandle_t h)
{
	if (h->blas)
		cublasDestroy_v2(h->blas);
	h->blas = NULL;
}

QCUL_LIB_EXPORT cublasStatus_t cublasXtDestroy(cublasXtHandle_t handle)
{
	if (!handle)
		return CUBLAS_STATUS_INVALID_VALUE;
	drop_device(handle);
	free(handle);
	return CUBLAS_STATUS_SUCCESS;
}

/* One GPU computes: natively the others share its work. */
QCUL_LIB_EXPORT cublasStatus_t cublasXtDeviceSelect(cublasXtHandle_t handle, int count, int ids[])
{
	int devices = 0, current = 0, i;
	cublasStatus_t status;

	if (!handle)
		return CUBLAS_STATUS_INVALID_VALUE;
	if (count <= 0 || !ids)
		return CUBLAS_STATUS_INVALID_VALUE;
	if (cudaGetDeviceCount(&devices) || cudaGetDevice(&current))
		return CUBLAS_STATUS_INTERNAL_ERROR;
	for (i = 0; i < count; i++)
		if (ids[i] < 0 || ids[i] >= devices)
			return CUBLAS_STATUS_INTERNAL_ERROR;
	drop_device(handle);
	if (cudaSetDevice(ids[0]))
		return CUBLAS_STATUS_INTERNAL_ERROR;
	status = cublasCreate_v2(&handle->blas);
	if (status)
		handle->blas = NULL;
	handle->device = ids[0];
	cudaSetDevice(current);
	return status;
}

QCUL_LIB_EXPORT cublasStatus_t cublasXtSetBlockDim(cublasXtHandle_t handle, int block)
{
	if (!handle)
		return CUBLAS_STATUS_INVALID_VALUE;
	if (block <= 0)
		return CUBLAS_STATUS_INVALID_VALUE;
	handle->block = block;
	return CUBLAS_STATUS_SUCCESS;
}

QCUL_LIB_EXPORT cublasStatus_t cublasXtGetBlockDim(cublasXtHandle_t handle, int *block)
{
	if (!handle)
		return CUBLAS_STATUS_INVALID_VALUE;
	if (!block)
		return CUBLAS_STATUS_INVALID_VALUE;
	*block = handle->block;
	return CUBLAS_STATUS_SUCCESS;
}

QCUL_LIB_EXPORT cublasStatus_t cublasXtSetPinningMemMode(cublasXtHandle_t handle,
							 cublasXtPinnedMemMode_t mode)
{
	if (!handle)
		return CUBLAS_STATUS_INVALID_VALUE;
	if (mode != CUBLASXT_PINNING_DISABLED && mode != CUBLASXT_PINNING_ENABLED)
		return CUBLAS_STATUS_INVALID_VALUE;
	handle->pinning = mode;
	return CUBLAS_STATUS_SUCCESS;
}

QCUL_LIB_EXPORT cublasStatus_t cublasXtGetPinningMemMode(cublasXtHandle_t handle,
							 cublasXtPinnedMemMode_t *mode)
{
	if (!handle)
		return CUBLAS_STATUS_INVALID_VALUE;
	if (!mode)
		return CUBLAS_STATUS_INVALID_VALUE;
	*mode = handle->pinning;
	return CUBLAS_STATUS_SUCCESS;
}

/* ---- tiles ---- */

/* A matrix of the program, column by column. */
struct matrix {
	char *at;
	size_t rows, cols, ld;
};

/* Memory of the GPU for a tile of at most `size` bytes. */
struct tile {
	void *at;
	size_t size;
};

/* A call: what its types are, and its tiles. */
struct work {
	cublasXtHandle_t handle;
	size_t element; /* bytes of a matrix's element */
	size_t scalar;	/* and of beta */
	bool twice;	/* beta consists of doubles */
	size_t block;
	int current;
	cublasStatus_t status;
	struct tile tile[3];
};

static bool begin_work(struct work *w, cublasXtHandle_t handle)
{
	if (!handle || !handle->blas) {
		w->status = handle ? CUBLAS_STATUS_NOT_INITIALIZED : CUBLAS_STATUS_INVALID_VALUE;
		return false;
	}
	w->handle = handle;
	w->block = (size_t)handle->block;
	if (cudaGetDevice(&w->current) || cudaSetDevice(handle->device)) {
		w->status = CUBLAS_STATUS_INTERNAL_ERROR;
		return false;
	}
	return true;
}

static cublasStatus_t end_work(struct work *w)
{
	unsigned int i;

	for (i = 0; i < 3; i++)
		cudaFree(w->tile[i].at);
	cudaSetDevice(w->current);
	return w->status;
}

/* Natively a wrong leading dimension is reported before anything is done. */
static bool check_matrix(struct work *w, const struct matrix *m)
{
	if (m->rows && m->cols &&
	    (!m->at || m->ld < m->rows || m->ld > SIZE_MAX / w->element / m->cols))
		w->status = CUBLAS_STATUS_INVALID_VALUE;
	return !w->status;
}

static void check_cuda(struct work *w, cudaError_t err)
{
	if (err && !w->status)
		w->status = err == cudaErrorMemoryAllocation ? CUBLAS_STATUS_ALLOC_FAILED
							     : CUBLAS_STATUS_MAPPING_ERROR;
}

/* The GPU's memory for a tile of so many elements, whose leading dimension is its rows. */
static void *room_for_tile(struct work *w, unsigned int which, size_t rows, size_t cols)
{
	struct tile *t = &w->tile[which];
	size_t size = rows * cols * w->element;

	if (size > t->size && !w->status) {
		cudaFree(t->at);
		t->at = NULL;
		t->size = 0;
		check_cuda(w, cudaMalloc(&t->at, size));
		if (!w->status)
			t->size = size;
	}
	return t->at;
}

static char *element_at(const struct work *w, const struct matrix *m, size_t row, size_t col)
{
	return m->at + (col * m->ld + row) * w->element;
}

/* Sends a part of a matrix to the GPU, and returns where it is. */
static void *send_tile(struct work *w, unsigned int which, const struct matrix *m, size_t row,
		       size_t col, size_t rows, size_t cols)
{
	void *to = room_for_tile(w, which, rows, cols);

	if (rows && cols && !w->status)
		check_cuda(w, cudaMemcpy2D(to, rows * w->element, element_at(w, m, row, col),
					   m->ld * w->element, rows * w->element, cols,
					   cudaMemcpyDefault));
	return to;
}

static void fetch_tile(struct work *w, unsigned int which, const struct matrix *m, size_t row,
		       size_t col, size_t rows, size_t cols)
{
	if (rows && cols && !w->status)
		check_cuda(w, cudaMemcpy2D(element_at(w, m, row, col), m->ld * w->element,
					   w->tile[which].at, rows * w->element, rows * w->element,
					   cols, cudaMemcpyDefault));
}

/* Then the result's old content does not count, and may be anything. */
static bool is_zero(const struct work *w, const void *scalar)
{
	const double *twice = scalar;
	const float *once = scalar;
	size_t i, n = w->scalar / (w->twice ? sizeof(double) : sizeof(float));

	for (i = 0; i < n; i++)
		if (w->twice ? twice[i] != 0 : once[i] != 0)
			return false;
	return true;
}

/* beta of the tiles that are added to the first one. */
static const void *one_of(const struct work *w)
{
	static const double twice[2] = {1, 0};
	static const float once[2] = {1, 0};

	return w->twice ? (const void *)twice : (const void *)once;
}

static void *send_result(struct work *w, unsigned int which, const struct matrix *m,
			 const void *beta, size_t row, size_t col, size_t rows, size_t cols)
{
	return is_zero(w, beta) ? room_for_tile(w, which, rows, cols)
				: send_tile(w, which, m, row, col, rows, cols);
}

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* A tile's leading dimension, which is never 0. */
static int64_t tile_ld(size_t rows)
{
	return rows ? (int64_t)rows : 1;
}

/* ---- families ---- */

typedef cublasStatus_t (*gemm_function)(cublasHandle_t, cublasOperation_t, cublasOperation_t,
					int64_t, int64_t, int64_t, const void *, const void *,
					int64_t, const void *, int64_t, const void *, void *,
					int64_t);

/* A tile of op(M): rows and columns are those of op(M). */
static void *send_op_tile(struct work *w, unsigned int which, const struct matrix *m,
			  cublasOperation_t op, size_t row, size_t col, size_t rows, size_t cols)
{
	return op == CUBLAS_OP_N ? send_tile(w, which, m, row, col, rows, cols)
				 : send_tile(w, which, m, col, row, cols, rows);
}

static cublasStatus_t multiply(struct work w, cublasXtHandle_t handle, gemm_function gemm,
			       cublasOperation_t ta, cublasOperation_t tb, size_t m, size_t n,
			       size_t k, const void *alpha, const void *a, size_t lda,
			       const void *b, size_t ldb, const void *beta, void *c, size_t ldc)
{
	const struct matrix ma = {(char *)(uintptr_t)a, ta == CUBLAS_OP_N ? m : k,
				  ta == CUBLAS_OP_N ? k : m, lda};
	const struct matrix mb = {(char *)(uintptr_t)b, tb == CUBLAS_OP_N ? k : n,
				  tb == CUBLAS_OP_N ? n : k, ldb};
	const struct matrix mc = {c, m, n, ldc};
	size_t i, j, l, rows, cols, some;
	void *ga, *gb, *gc;

	if (!begin_work(&w, handle))
		return w.status;
	if (!alpha || !beta || !check_matrix(&w, &ma) || !check_matrix(&w, &mb) ||
	    !check_matrix(&w, &mc)) {
		w.status = CUBLAS_STATUS_INVALID_VALUE;
		return end_work(&w);
	}
	/* Without a sum NVIDIA's leaves C as it is, unlike cuBLAS, which multiplies it by beta. */
	for (j = 0; j < n && k && !w.status; j += w.block) {
		for (i = 0; i < m && !w.status; i += w.block) {
			rows = least(w.block, m - i);
			cols = least(w.block, n - j);
			gc = send_result(&w, 2, &mc, beta, i, j, rows, cols);
			for (l = 0; l < k && !w.status; l += w.block) {
				some = least(w.block, k - l);
				ga = send_op_tile(&w, 0, &ma, ta, i, l, rows, some);
				gb = send_op_tile(&w, 1, &mb, tb, l, j, some, cols);
				if (!w.status)
					w.status =
						gemm(w.handle->blas, ta, tb, (int64_t)rows,
						     (int64_t)cols, (int64_t)some, alpha, ga,
						     tile_ld(ta == CUBLAS_OP_N ? rows : some), gb,
						     tile_ld(tb == CUBLAS_OP_N ? some : cols),
						     l ? one_of(&w) : beta, gc, (int64_t)rows);
			}
			fetch_tile(&w, 2, &mc, i, j, rows, cols);
		}
	}
	return end_work(&w);
}

/* b == NULL: the function has no B. */
struct rank_function {
	cublasStatus_t (*one)(cublasHandle_t, cublasFillMode_t, cublasOperation_t, int64_t, int64_t,
			      const void *, const void *, int64_t, const void *, void *, int64_t);
	cublasStatus_t (*two)(cublasHandle_t, cublasFillMode_t, cublasOperation_t, int64_t, int64_t,
			      const void *, const void *, int64_t, const void *, int64_t,
			      const void *, void *, int64_t);
};

/* C is square and stays on the GPU, and A and B come in pieces of k. */
static cublasStatus_t update_square(struct work w, cublasXtHandle_t handle, struct rank_function f,
				    cublasFillMode_t uplo, cublasOperation_t trans, size_t n,
				    size_t k, const void *alpha, const void *a, size_t lda,
				    const void *b, size_t ldb, const void *beta, void *c,
				    size_t ldc)
{
	const struct matrix ma = {(char *)(uintptr_t)a, trans == CUBLAS_OP_N ? n : k,
				  trans == CUBLAS_OP_N ? k : n, lda};
	const struct matrix mb = {(char *)(uintptr_t)b, ma.rows, ma.cols, ldb};
	const struct matrix mc = {c, n, n, ldc};
	void *ga, *gb, *gc;
	size_t l, some;
	int64_t ld;

	if (!begin_work(&w, handle))
		return w.status;
	if (!alpha || !beta || !check_matrix(&w, &ma) || (f.two && !check_matrix(&w, &mb)) ||
	    !check_matrix(&w, &mc)) {
		w.status = CUBLAS_STATUS_INVALID_VALUE;
		return end_work(&w);
	}
	/* The other triangle goes there and back as it is. */
	gc = send_tile(&w, 2, &mc, 0, 0, n, n);
	for (l = 0; n && (l < k || !l) && !w.status; l += w.block) {
		some = least(w.block, k - l);
		ga = send_op_tile(&w, 0, &ma, trans, 0, l, n, some);
		gb = f.two ? send_op_tile(&w, 1, &mb, trans, 0, l, n, some) : NULL;
		ld = tile_ld(trans == CUBLAS_OP_N ? n : some);
		if (!w.status && f.two)
			w.status =
				f.two(w.handle->blas, uplo, trans, (int64_t)n, (int64_t)some, alpha,
				      ga, ld, gb, ld, l ? one_of(&w) : beta, gc, (int64_t)n);
		else if (!w.status)
			w.status = f.one(w.handle->blas, uplo, trans, (int64_t)n, (int64_t)some,
					 alpha, ga, ld, l ? one_of(&w) : beta, gc, (int64_t)n);
	}
	fetch_tile(&w, 2, &mc, 0, 0, n, n);
	return end_work(&w);
}

/* What is done with a square matrix A and a panel of the others. */
struct panel {
	struct work *w;
	cublasSideMode_t side;
	cublasFillMode_t uplo;
	cublasOperation_t trans;
	cublasDiagType_t diag;
	const void *alpha, *beta;
	void *fn;
	int64_t order;
};

typedef cublasStatus_t (*panel_function)(const struct panel *p, int64_t m, int64_t n, const void *a,
					 void *b, void *c);

static cublasStatus_t symmetric(const struct panel *p, int64_t m, int64_t n, const void *a, void *b,
				void *c)
{
	cublasStatus_t (*f)(cublasHandle_t, cublasSideMode_t, cublasFillMode_t, int64_t, int64_t,
			    const void *, const void *, int64_t, const void *, int64_t,
			    const void *, void *, int64_t) = NULL;

	*(void **)&f = p->fn;
	return f(p->w->handle->blas, p->side, p->uplo, m, n, p->alpha, a, p->order, b, m, p->beta,
		 c, m);
}

static cublasStatus_t triangular(const struct panel *p, int64_t m, int64_t n, const void *a,
				 void *b, void *c)
{
	cublasStatus_t (*f)(cublasHandle_t, cublasSideMode_t, cublasFillMode_t, cublasOperation_t,
			    cublasDiagType_t, int64_t, int64_t, const void *, const void *, int64_t,
			    const void *, int64_t, void *, int64_t) = NULL;

	*(void **)&f = p->fn;
	return f(p->w->handle->blas, p->side, p->uplo, p->trans, p->diag, m, n, p->alpha, a,
		 p->order, b, m, c, m);
}

static cublasStatus_t solved(const struct panel *p, int64_t m, int64_t n, const void *a, void *b,
			     void *c)
{
	cublasStatus_t (*f)(cublasHandle_t, cublasSideMode_t, cublasFillMode_t, cublasOperation_t,
			    cublasDiagType_t, int64_t, int64_t, const void *, const void *, int64_t,
			    void *, int64_t) = NULL;

	(void)b;
	*(void **)&f = p->fn;
	return f(p->w->handle->blas, p->side, p->uplo, p->trans, p->diag, m, n, p->alpha, a,
		 p->order, c, m);
}

/* A stays on the GPU. B (NULL: there is none) and C come in panels that need nothing of each other.
 */
static cublasStatus_t by_panels(struct work w, cublasXtHandle_t handle, panel_function run,
				struct panel p, size_t m, size_t n, const void *a, size_t lda,
				const void *b, size_t ldb, void *c, size_t ldc)
{
	const bool left = p.side == CUBLAS_SIDE_LEFT;
	const size_t order = left ? m : n, free_side = left ? n : m;
	const struct matrix ma = {(char *)(uintptr_t)a, order, order, lda};
	const struct matrix mb = {(char *)(uintptr_t)b, m, n, ldb};
	const struct matrix mc = {c, m, n, ldc};
	size_t at, some, rows, cols;
	void *ga, *gb, *gc;

	if (!begin_work(&w, handle))
		return w.status;
	if (!p.alpha || (run == symmetric && !p.beta) || !check_matrix(&w, &ma) ||
	    (run != solved && !check_matrix(&w, &mb)) || !check_matrix(&w, &mc)) {
		w.status = CUBLAS_STATUS_INVALID_VALUE;
		return end_work(&w);
	}
	p.w = &w;
	p.order = tile_ld(order);
	ga = m && n ? send_tile(&w, 0, &ma, 0, 0, order, order) : NULL;
	for (at = 0; at < free_side && order && !w.status; at += some) {
		some = least(w.block, free_side - at);
		rows = left ? m : some;
		cols = left ? some : n;
		gb = run == solved
			     ? NULL
			     : send_tile(&w, 1, &mb, left ? 0 : at, left ? at : 0, rows, cols);
		if (run == triangular || (run == symmetric && is_zero(&w, p.beta)))
			gc = room_for_tile(&w, 2, rows, cols);
		else
			gc = send_tile(&w, 2, &mc, left ? 0 : at, left ? at : 0, rows, cols);
		if (!w.status)
			w.status = run(&p, (int64_t)rows, (int64_t)cols, ga, gb, gc);
		fetch_tile(&w, 2, &mc, left ? 0 : at, left ? at : 0, rows, cols);
	}
	return end_work(&w);
}

/* ---- the functions ---- */

#define WORK(type, beta_type)                                    \
	((struct work){.element = sizeof(type),                  \
		       .scalar = sizeof(beta_type),              \
		       .twice = _Generic((type){0}, double       \
					 : true, cuDoubleComplex \
					 : true, default         \
					 : false)})

#define GEMM(name, blas, type)                                                                    \
	QCUL_LIB_EXPORT cublasStatus_t name(cublasXtHandle_t handle, cublasOperation_t ta,        \
					    cublasOperation_t tb, size_t m, size_t n, size_t k,   \
					    const type *alpha, const type *a, size_t lda,         \
					    const type *b, size_t ldb, const type *beta, type *c, \
					    size_t ldc)                                           \
	{                                                                                         \
		return multiply(WORK(type, type), handle, (gemm_function)(void *)blas, ta, tb, m, \
				n, k, alpha, a, lda, b, ldb, beta, c, ldc);                       \
	}

GEMM(cublasXtSgemm, cublasSgemm_v2_64, float)
GEMM(cublasXtDgemm, cublasDgemm_v2_64, double)
GEMM(cublasXtCgemm, cublasCgemm_v2_64, cuComplex)
GEMM(cublasXtZgemm, cublasZgemm_v2_64, cuDoubleComplex)

#define RANK_K(name, blas, type, scalar)                                                         \
	QCUL_LIB_EXPORT cublasStatus_t name(cublasXtHandle_t handle, cublasFillMode_t uplo,      \
					    cublasOperation_t trans, size_t n, size_t k,         \
					    const scalar *alpha, const type *a, size_t lda,      \
					    const scalar *beta, type *c, size_t ldc)             \
	{                                                                                        \
		struct rank_function f = {.one = (__typeof__(f.one))(void *)blas};               \
                                                                                                 \
		return update_square(WORK(type, scalar), handle, f, uplo, trans, n, k, alpha, a, \
				     lda, NULL, 0, beta, c, ldc);                                \
	}

RANK_K(cublasXtSsyrk, cublasSsyrk_v2_64, float, float)
RANK_K(cublasXtDsyrk, cublasDsyrk_v2_64, double, double)
RANK_K(cublasXtCsyrk, cublasCsyrk_v2_64, cuComplex, cuComplex)
RANK_K(cublasXtZsyrk, cublasZsyrk_v2_64, cuDoubleComplex, cuDoubleComplex)
RANK_K(cublasXtCherk, cublasCherk_v2_64, cuComplex, float)
RANK_K(cublasXtZherk, cublasZherk_v2_64, cuDoubleComplex, double)

#define RANK_2K(name, blas, type, scalar)                                                        \
	QCUL_LIB_EXPORT cublasStatus_t name(cublasXtHandle_t handle, cublasFillMode_t uplo,      \
					    cublasOperation_t trans, size_t n, size_t k,         \
					    const type *alpha, const type *a, size_t lda,        \
					    const type *b, size_t ldb, const scalar *beta,       \
					    type *c, size_t ldc)                                 \
	{                                                                                        \
		struct rank_function f = {.two = (__typeof__(f.two))(void *)blas};               \
                                                                                                 \
		return update_square(WORK(type, scalar), handle, f, uplo, trans, n, k, alpha, a, \
				     lda, b, ldb, beta, c, ldc);                                 \
	}

RANK_2K(cublasXtSsyr2k, cublasSsyr2k_v2_64, float, float)
RANK_2K(cublasXtDsyr2k, cublasDsyr2k_v2_64, double, double)
RANK_2K(cublasXtCsyr2k, cublasCsyr2k_v2_64, cuComplex, cuComplex)
RANK_2K(cublasXtZsyr2k, cublasZsyr2k_v2_64, cuDoubleComplex, cuDoubleComplex)
RANK_2K(cublasXtCher2k, cublasCher2k_v2_64, cuComplex, float)
RANK_2K(cublasXtZher2k, cublasZher2k_v2_64, cuDoubleComplex, double)
RANK_2K(cublasXtSsyrkx, cublasSsyrkx_64, float, float)
RANK_2K(cublasXtDsyrkx, cublasDsyrkx_64, double, double)
RANK_2K(cublasXtCsyrkx, cublasCsyrkx_64, cuComplex, cuComplex)
RANK_2K(cublasXtZsyrkx, cublasZsyrkx_64, cuDoubleComplex, cuDoubleComplex)
RANK_2K(cublasXtCherkx, cublasCherkx_64, cuComplex, float)
RANK_2K(cublasXtZherkx, cublasZherkx_64, cuDoubleComplex, double)

#define SYMMETRIC(name, blas, type)                                                               \
	QCUL_LIB_EXPORT cublasStatus_t name(cublasXtHandle_t handle, cublasSideMode_t side,       \
					    cublasFillMode_t uplo, size_t m, size_t n,            \
					    const type *alpha, const type *a, size_t lda,         \
					    const type *b, size_t ldb, const type *beta, type *c, \
					    size_t ldc)                                           \
	{                                                                                         \
		struct panel p = {.side = side,                                                   \
				  .uplo = uplo,                                                   \
				  .alpha = alpha,                                                 \
				  .beta = beta,                                                   \
				  .fn = (void *)blas};                                            \
                                                                                                  \
		return by_panels(WORK(type, type), handle, symmetric, p, m, n, a, lda, b, ldb, c, \
				 ldc);                                                            \
	}

SYMMETRIC(cublasXtSsymm, cublasSsymm_v2_64, float)
SYMMETRIC(cublasXtDsymm, cublasDsymm_v2_64, double)
SYMMETRIC(cublasXtCsymm, cublasCsymm_v2_64, cuComplex)
SYMMETRIC(cublasXtZsymm, cublasZsymm_v2_64, cuDoubleComplex)
SYMMETRIC(cublasXtChemm, cublasChemm_v2_64, cuComplex)
SYMMETRIC(cublasXtZhemm, cublasZhemm_v2_64, cuDoubleComplex)

#define TRIANGULAR(letter, type)                                                                   \
	QCUL_LIB_EXPORT cublasStatus_t cublasXt##letter##trmm(                                     \
		cublasXtHandle_t handle, cublasSideMode_t side, cublasFillMode_t uplo,             \
		cublasOperation_t trans, cublasDiagType_t diag, size_t m, size_t n,                \
		const type *alpha, const type *a, size_t lda, const type *b, size_t ldb, type *c,  \
		size_t ldc)                                                                        \
	{                                                                                          \
		struct panel p = {.side = side,                                                    \
				  .uplo = uplo,                                                    \
				  .trans = trans,                                                  \
				  .diag = diag,                                                    \
				  .alpha = alpha,                                                  \
				  .fn = (void *)cublas##letter##trmm_v2_64};                       \
                                                                                                   \
		return by_panels(WORK(type, type), handle, triangular, p, m, n, a, lda, b, ldb, c, \
				 ldc);                                                             \
	}                                                                                          \
	QCUL_LIB_EXPORT cublasStatus_t cublasXt##letter##trsm(                                     \
		cublasXtHandle_t handle, cublasSideMode_t side, cublasFillMode_t uplo,             \
		cublasOperation_t trans, cublasDiagType_t diag, size_t m, size_t n,                \
		const type *alpha, const type *a, size_t lda, type *b, size_t ldb)                 \
	{                                                                                          \
		struct panel p = {.side = side,                                                    \
				  .uplo = uplo,                                                    \
				  .trans = trans,                                                  \
				  .diag = diag,                                                    \
				  .alpha = alpha,                                                  \
				  .fn = (void *)cublas##letter##trsm_v2_64};                       \
                                                                                                   \
		return by_panels(WORK(type, type), handle, solved, p, m, n, a, lda, NULL, 0, b,    \
				 ldb);                                                             \
	}

TRIANGULAR(S, float)
TRIANGULAR(D, double)
TRIANGULAR(C, cuComplex)
TRIANGULAR(Z, cuDoubleComplex)
