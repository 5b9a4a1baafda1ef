// SPDX-License-Identifier: GPL-2.0-or-later
/* cuBLAS on the software GPU, level 3: products of matrices, and what cuBLAS adds to them. */
#include <complex.h>
#include <string.h>

#include "qcu-device/soft/libs/blas.h"

static int64_t most(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

/* A matrix of rows x cols, as the caller stores it. */
#define LEAD(rows, ld) ((ld) >= most(1, rows))

/* ---- gemm ---- */

typedef void gemm_fn(const char *, const char *, const int *, const int *, const int *,
		     const void *, const void *, const int *, const void *, const int *,
		     const void *, void *, const int *);

static void run_gemm(const struct blas_call *b, const void *a, const void *x, void *y)
{
	const int m = (int)b->m, n = (int)b->n, k = (int)b->k;
	const int lda = (int)b->lda, ldb = (int)b->ldb, ldc = (int)b->ldc;

	((gemm_fn *)b->fn)(&b->flag[0], &b->flag[1], &m, &n, &k, b->alpha, a, &lda, x, &ldb,
			   b->beta, y, &ldc);
}

static cublasStatus_t gemm(cublasHandle_t h, struct blas_call *b, cublasOperation_t ta,
			   cublasOperation_t tb)
{
	const bool plain_a = ta == CUBLAS_OP_N, plain_b = tb == CUBLAS_OP_N;

	b->flag[0] = blas_trans(ta);
	b->flag[1] = blas_trans(tb);
	if (!b->flag[0] || !b->flag[1] || b->m < 0 || b->n < 0 || b->k < 0 || b->count < 0 ||
	    !LEAD(plain_a ? b->m : b->k, b->lda) || !LEAD(plain_b ? b->k : b->n, b->ldb) ||
	    !LEAD(b->m, b->ldc) || !b->alpha_at || !b->beta_at)
		return CUBLAS_STATUS_INVALID_VALUE;
	if (!b->m || !b->n || !b->count)
		return CUBLAS_STATUS_SUCCESS;
	b->need_a = plain_a ? blas_matrix(b->m, b->k, b->lda) : blas_matrix(b->k, b->m, b->lda);
	b->need_b = plain_b ? blas_matrix(b->k, b->n, b->ldb) : blas_matrix(b->n, b->k, b->ldb);
	b->need_c = blas_matrix(b->m, b->n, b->ldc);
	b->routine = "gemm";
	b->run = run_gemm;
	return soft_blas(h, b);
}

#define GEMM(X, T, INT, END)                                                                       \
	static cublasStatus_t soft_cublas##X##gemm##END(cublasHandle_t h, cublasOperation_t ta,    \
							cublasOperation_t tb, INT m, INT n, INT k, \
							const T *alpha, const T *A, INT lda,       \
							const T *B, INT ldb, const T *beta, T *C,  \
							INT ldc)                                   \
	{                                                                                          \
		struct blas_call b = {.type = BLAS_##X,                                            \
				      .m = m,                                                      \
				      .n = n,                                                      \
				      .k = k,                                                      \
				      .alpha_at = alpha,                                           \
				      .a = A,                                                      \
				      .lda = lda,                                                  \
				      .b = B,                                                      \
				      .ldb = ldb,                                                  \
				      .beta_at = beta,                                             \
				      .c = C,                                                      \
				      .ldc = ldc,                                                  \
				      .count = 1};                                                 \
                                                                                                   \
		return gemm(h, &b, ta, tb);                                                        \
	}
#define GEMM_STRIDED(X, T, INT, END)                                                               \
	static cublasStatus_t soft_cublas##X##gemmStridedBatched##END(                             \
		cublasHandle_t h, cublasOperation_t ta, cublasOperation_t tb, INT m, INT n, INT k, \
		const T *alpha, const T *A, INT lda, long long step_a, const T *B, INT ldb,        \
		long long step_b, const T *beta, T *C, INT ldc, long long step_c, INT count)       \
	{                                                                                          \
		struct blas_call b = {.type = BLAS_##X,                                            \
				      .m = m,                                                      \
				      .n = n,                                                      \
				      .k = k,                                                      \
				      .alpha_at = alpha,                                           \
				      .a = A,                                                      \
				      .lda = lda,                                                  \
				      .b = B,                                                      \
				      .ldb = ldb,                                                  \
				      .beta_at = beta,                                             \
				      .c = C,                                                      \
				      .ldc = ldc,                                                  \
				      .count = count,                                              \
				      .step_a = step_a,                                            \
				      .step_b = step_b,                                            \
				      .step_c = step_c};                                           \
                                                                                                   \
		return gemm(h, &b, ta, tb);                                                        \
	}
#define GEMM_ARRAYS(X, T, INT, END)                                                                \
	static cublasStatus_t soft_cublas##X##gemmBatched##END(                                    \
		cublasHandle_t h, cublasOperation_t ta, cublasOperation_t tb, INT m, INT n, INT k, \
		const T *alpha, const T *const *A, INT lda, const T *const *B, INT ldb,            \
		const T *beta, T *const *C, INT ldc, INT count)                                    \
	{                                                                                          \
		struct blas_call b = {.type = BLAS_##X,                                            \
				      .m = m,                                                      \
				      .n = n,                                                      \
				      .k = k,                                                      \
				      .alpha_at = alpha,                                           \
				      .a = A,                                                      \
				      .lda = lda,                                                  \
				      .b = B,                                                      \
				      .ldb = ldb,                                                  \
				      .beta_at = beta,                                             \
				      .c = (void *)C,                                              \
				      .ldc = ldc,                                                  \
				      .count = count,                                              \
				      .arrays = true};                                             \
                                                                                                   \
		return gemm(h, &b, ta, tb);                                                        \
	}

#define EACH(WHAT, END)                       \
	WHAT(S, float, int, END)              \
	WHAT(D, double, int, END)             \
	WHAT(C, cuComplex, int, END)          \
	WHAT(Z, cuDoubleComplex, int, END)    \
	WHAT(S, float, int64_t, END##_64)     \
	WHAT(D, double, int64_t, END##_64)    \
	WHAT(C, cuComplex, int64_t, END##_64) \
	WHAT(Z, cuDoubleComplex, int64_t, END##_64)

EACH(GEMM, _v2)
/* These names have no version. */
#define EACH_PLAIN(WHAT)                 \
	WHAT(S, float, int, )            \
	WHAT(D, double, int, )           \
	WHAT(C, cuComplex, int, )        \
	WHAT(Z, cuDoubleComplex, int, )  \
	WHAT(S, float, int64_t, _64)     \
	WHAT(D, double, int64_t, _64)    \
	WHAT(C, cuComplex, int64_t, _64) \
	WHAT(Z, cuDoubleComplex, int64_t, _64)

EACH_PLAIN(GEMM_STRIDED)
EACH_PLAIN(GEMM_ARRAYS)

#define FOUR(name) SOFT_BOTH(S##name), SOFT_BOTH(D##name), SOFT_BOTH(C##name), SOFT_BOTH(Z##name)

const struct soft_symbol soft_blas_level3[] = {
	FOUR(gemm_v2), FOUR(gemmStridedBatched), FOUR(gemmBatched), {NULL, NULL}};
