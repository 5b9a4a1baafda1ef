// SPDX-License-Identifier: GPL-2.0-or-later
/* cuBLAS on the software GPU, level 3: products of matrices, and what cuBLAS adds to them. */
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

void blas_gemm(const struct blas_call *b, const void *a, const void *x, void *y)
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
	b->run = blas_gemm;
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

/* ---- symmetric, Hermitian and triangular matrices ---- */

typedef void symm_fn(const char *, const char *, const int *, const int *, const void *,
		     const void *, const int *, const void *, const int *, const void *, void *,
		     const int *);
typedef void syrk_fn(const char *, const char *, const int *, const int *, const void *,
		     const void *, const int *, const void *, void *, const int *);
typedef void syr2k_fn(const char *, const char *, const int *, const int *, const void *,
		      const void *, const int *, const void *, const int *, const void *, void *,
		      const int *);
typedef void tr_fn(const char *, const char *, const char *, const char *, const int *, const int *,
		   const void *, const void *, const int *, void *, const int *);

static void run_symm(const struct blas_call *b, const void *a, const void *x, void *y)
{
	const int m = (int)b->m, n = (int)b->n;
	const int lda = (int)b->lda, ldb = (int)b->ldb, ldc = (int)b->ldc;

	((symm_fn *)b->fn)(&b->flag[0], &b->flag[1], &m, &n, b->alpha, a, &lda, x, &ldb, b->beta, y,
			   &ldc);
}

static void run_syrk(const struct blas_call *b, const void *a, const void *x, void *y)
{
	const int n = (int)b->n, k = (int)b->k, lda = (int)b->lda, ldc = (int)b->ldc;

	(void)x;
	((syrk_fn *)b->fn)(&b->flag[0], &b->flag[1], &n, &k, b->alpha, a, &lda, b->beta, y, &ldc);
}

static void run_syr2k(const struct blas_call *b, const void *a, const void *x, void *y)
{
	const int n = (int)b->n, k = (int)b->k;
	const int lda = (int)b->lda, ldb = (int)b->ldb, ldc = (int)b->ldc;

	((syr2k_fn *)b->fn)(&b->flag[0], &b->flag[1], &n, &k, b->alpha, a, &lda, x, &ldb, b->beta,
			    y, &ldc);
}

/* cuBLAS writes the product of a triangular matrix elsewhere, if the program wants it. */
static void run_tr(const struct blas_call *b, const void *a, const void *x, void *y)
{
	const int m = (int)b->m, n = (int)b->n, lda = (int)b->lda, ldc = (int)b->ldc;
	const size_t size = blas_size(b->type);
	int64_t j;

	if (x && x != y)
		for (j = 0; j < b->n; j++)
			memmove((char *)y + (size_t)(j * b->ldc) * size,
				(const char *)x + (size_t)(j * b->ldb) * size, (size_t)b->m * size);
	((tr_fn *)b->fn)(&b->flag[0], &b->flag[1], &b->flag[2], &b->flag[3], &m, &n, b->alpha, a,
			 &lda, y, &ldc);
}

static cublasStatus_t symm(cublasHandle_t h, struct blas_call *b, cublasSideMode_t side,
			   cublasFillMode_t fill)
{
	const int64_t rows = side == CUBLAS_SIDE_LEFT ? b->m : b->n;

	b->run = run_symm;
	b->flag[0] = blas_side(side);
	b->flag[1] = blas_fill(fill);
	if (!b->flag[0] || !b->flag[1] || b->m < 0 || b->n < 0 || !LEAD(rows, b->lda) ||
	    !LEAD(b->m, b->ldb) || !LEAD(b->m, b->ldc) || !b->alpha_at || !b->beta_at)
		return CUBLAS_STATUS_INVALID_VALUE;
	b->need_a = blas_matrix(rows, rows, b->lda);
	b->need_b = blas_matrix(b->m, b->n, b->ldb);
	b->need_c = blas_matrix(b->m, b->n, b->ldc);
	return b->m && b->n ? soft_blas(h, b) : CUBLAS_STATUS_SUCCESS;
}

/* `allowed`: the operations, as Fortran's characters. */
static cublasStatus_t rank_k(cublasHandle_t h, struct blas_call *b, cublasFillMode_t fill,
			     cublasOperation_t trans, const char *allowed)
{
	const bool plain = trans == CUBLAS_OP_N, two = b->run == run_syr2k;
	const int64_t rows = plain ? b->n : b->k, cols = plain ? b->k : b->n;

	b->flag[0] = blas_fill(fill);
	b->flag[1] = blas_trans(trans);
	if (!b->flag[0] || !b->flag[1] || !strchr(allowed, b->flag[1]) || b->n < 0 || b->k < 0 ||
	    !LEAD(rows, b->lda) || (two && !LEAD(rows, b->ldb)) || !LEAD(b->n, b->ldc) ||
	    !b->alpha_at || !b->beta_at)
		return CUBLAS_STATUS_INVALID_VALUE;
	b->need_a = blas_matrix(rows, cols, b->lda);
	b->need_b = two ? blas_matrix(rows, cols, b->ldb) : 0;
	b->need_c = blas_matrix(b->n, b->n, b->ldc);
	return b->n ? soft_blas(h, b) : CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t tr(cublasHandle_t h, struct blas_call *b, cublasSideMode_t side,
			 cublasFillMode_t fill, cublasOperation_t trans, cublasDiagType_t diag)
{
	const int64_t rows = side == CUBLAS_SIDE_LEFT ? b->m : b->n;

	b->run = run_tr;
	b->flag[0] = blas_side(side);
	b->flag[1] = blas_fill(fill);
	b->flag[2] = blas_trans(trans);
	b->flag[3] = blas_diag(diag);
	if (!b->flag[0] || !b->flag[1] || !b->flag[2] || !b->flag[3] || b->m < 0 || b->n < 0 ||
	    !LEAD(rows, b->lda) || !LEAD(b->m, b->ldc) || (b->ldb && !LEAD(b->m, b->ldb)) ||
	    !b->alpha_at)
		return CUBLAS_STATUS_INVALID_VALUE;
	b->need_a = blas_matrix(rows, rows, b->lda);
	b->need_b = b->ldb ? blas_matrix(b->m, b->n, b->ldb) : 0;
	b->need_c = blas_matrix(b->m, b->n, b->ldc);
	return b->m && b->n ? soft_blas(h, b) : CUBLAS_STATUS_SUCCESS;
}

#define SYMM(X, T, S, INT, END)                                                                    \
	static cublasStatus_t soft_cublas##X##S##mm##END(cublasHandle_t h, cublasSideMode_t side,  \
							 cublasFillMode_t fill, INT m, INT n,      \
							 const T *alpha, const T *A, INT lda,      \
							 const T *B, INT ldb, const T *beta, T *C, \
							 INT ldc)                                  \
	{                                                                                          \
		struct blas_call b = {.type = BLAS_##X,                                            \
				      .routine = #S "mm",                                          \
				      .m = m,                                                      \
				      .n = n,                                                      \
				      .alpha_at = alpha,                                           \
				      .a = A,                                                      \
				      .lda = lda,                                                  \
				      .b = B,                                                      \
				      .ldb = ldb,                                                  \
				      .beta_at = beta,                                             \
				      .c = C,                                                      \
				      .ldc = ldc};                                                 \
                                                                                                   \
		return symm(h, &b, side, fill);                                                    \
	}
#define RANK_K(X, T, S, R1, R2, ALLOWED, INT, END)                                                 \
	static cublasStatus_t soft_cublas##X##S##rk##END(cublasHandle_t h, cublasFillMode_t fill,  \
							 cublasOperation_t trans, INT n, INT k,    \
							 const R1 *alpha, const T *A, INT lda,     \
							 const R1 *beta, T *C, INT ldc)            \
	{                                                                                          \
		struct blas_call b = {.type = BLAS_##X,                                            \
				      .routine = #S "rk",                                          \
				      .run = run_syrk,                                             \
				      .n = n,                                                      \
				      .k = k,                                                      \
				      .alpha_at = alpha,                                           \
				      .alpha_size = sizeof(*alpha),                                \
				      .a = A,                                                      \
				      .lda = lda,                                                  \
				      .beta_at = beta,                                             \
				      .beta_size = sizeof(*beta),                                  \
				      .c = C,                                                      \
				      .ldc = ldc};                                                 \
                                                                                                   \
		return rank_k(h, &b, fill, trans, ALLOWED);                                        \
	}                                                                                          \
	static cublasStatus_t soft_cublas##X##S##r2k##END(cublasHandle_t h, cublasFillMode_t fill, \
							  cublasOperation_t trans, INT n, INT k,   \
							  const T *alpha, const T *A, INT lda,     \
							  const T *B, INT ldb, const R2 *beta,     \
							  T *C, INT ldc)                           \
	{                                                                                          \
		struct blas_call b = {.type = BLAS_##X,                                            \
				      .routine = #S "r2k",                                         \
				      .run = run_syr2k,                                            \
				      .n = n,                                                      \
				      .k = k,                                                      \
				      .alpha_at = alpha,                                           \
				      .a = A,                                                      \
				      .lda = lda,                                                  \
				      .b = B,                                                      \
				      .ldb = ldb,                                                  \
				      .beta_at = beta,                                             \
				      .beta_size = sizeof(*beta),                                  \
				      .c = C,                                                      \
				      .ldc = ldc};                                                 \
                                                                                                   \
		return rank_k(h, &b, fill, trans, ALLOWED);                                        \
	}
#define TR(X, T, INT, END)                                                                    \
	static cublasStatus_t soft_cublas##X##trmm##END(                                      \
		cublasHandle_t h, cublasSideMode_t side, cublasFillMode_t fill,               \
		cublasOperation_t trans, cublasDiagType_t diag, INT m, INT n, const T *alpha, \
		const T *A, INT lda, const T *B, INT ldb, T *C, INT ldc)                      \
	{                                                                                     \
		struct blas_call b = {.type = BLAS_##X,                                       \
				      .routine = "trmm",                                      \
				      .m = m,                                                 \
				      .n = n,                                                 \
				      .alpha_at = alpha,                                      \
				      .a = A,                                                 \
				      .lda = lda,                                             \
				      .b = B,                                                 \
				      .ldb = ldb ? ldb : -1,                                  \
				      .c = C,                                                 \
				      .ldc = ldc};                                            \
                                                                                              \
		return tr(h, &b, side, fill, trans, diag);                                    \
	}                                                                                     \
	static cublasStatus_t soft_cublas##X##trsm##END(                                      \
		cublasHandle_t h, cublasSideMode_t side, cublasFillMode_t fill,               \
		cublasOperation_t trans, cublasDiagType_t diag, INT m, INT n, const T *alpha, \
		const T *A, INT lda, T *B, INT ldb)                                           \
	{                                                                                     \
		struct blas_call b = {.type = BLAS_##X,                                       \
				      .routine = "trsm",                                      \
				      .m = m,                                                 \
				      .n = n,                                                 \
				      .alpha_at = alpha,                                      \
				      .a = A,                                                 \
				      .lda = lda,                                             \
				      .c = B,                                                 \
				      .ldc = ldb};                                            \
                                                                                              \
		return tr(h, &b, side, fill, trans, diag);                                    \
	}
#define REAL3(X, T, INT, END)                   \
	SYMM(X, T, sy, INT, END)                \
	RANK_K(X, T, sy, T, T, "NTC", INT, END) \
	TR(X, T, INT, END)
#define COMPLEX3(X, T, R, INT, END)            \
	SYMM(X, T, sy, INT, END)               \
	SYMM(X, T, he, INT, END)               \
	RANK_K(X, T, sy, T, T, "NT", INT, END) \
	RANK_K(X, T, he, R, R, "NC", INT, END) \
	TR(X, T, INT, END)

REAL3(S, float, int, _v2)
REAL3(D, double, int, _v2)
REAL3(S, float, int64_t, _v2_64)
REAL3(D, double, int64_t, _v2_64)
COMPLEX3(C, cuComplex, float, int, _v2)
COMPLEX3(Z, cuDoubleComplex, double, int, _v2)
COMPLEX3(C, cuComplex, float, int64_t, _v2_64)
COMPLEX3(Z, cuDoubleComplex, double, int64_t, _v2_64)

#define COMPLEXES(name) SOFT_BOTH(C##name), SOFT_BOTH(Z##name)
#define FOUR(name)	SOFT_BOTH(S##name), SOFT_BOTH(D##name), COMPLEXES(name)

const struct soft_symbol soft_blas_level3[] = {
	FOUR(gemm_v2),	    FOUR(gemmStridedBatched), FOUR(gemmBatched),   FOUR(symm_v2),
	FOUR(syrk_v2),	    FOUR(syr2k_v2),	      FOUR(trmm_v2),	   FOUR(trsm_v2),
	COMPLEXES(hemm_v2), COMPLEXES(herk_v2),	      COMPLEXES(her2k_v2), {NULL, NULL}};
