// SPDX-License-Identifier: GPL-2.0-or-later
/* cuBLAS on the software GPU, level 2: a matrix and vectors. */
#include "qcu-device/soft/libs/blas.h"

typedef void mv_fn(const char *, const int *, const int *, const void *, const void *, const int *,
		   const void *, const int *, const void *, void *, const int *);
typedef void band_fn(const char *, const int *, const int *, const int *, const int *, const void *,
		     const void *, const int *, const void *, const int *, const void *, void *,
		     const int *);
typedef void rank_fn(const int *, const int *, const void *, const void *, const int *,
		     const void *, const int *, void *, const int *);
typedef void symmetric_fn(const char *, const int *, const void *, const void *, const int *,
			  const void *, const int *, const void *, void *, const int *);
typedef void symmetric_band_fn(const char *, const int *, const int *, const void *, const void *,
			       const int *, const void *, const int *, const void *, void *,
			       const int *);
typedef void symmetric_packed_fn(const char *, const int *, const void *, const void *,
				 const void *, const int *, const void *, void *, const int *);
typedef void triangle_fn(const char *, const char *, const char *, const int *, const void *,
			 const int *, void *, const int *);
typedef void triangle_band_fn(const char *, const char *, const char *, const int *, const int *,
			      const void *, const int *, void *, const int *);
typedef void triangle_packed_fn(const char *, const char *, const char *, const int *, const void *,
				void *, const int *);
typedef void update_fn(const char *, const int *, const void *, const void *, const int *, void *,
		       const int *);
typedef void update2_fn(const char *, const int *, const void *, const void *, const int *,
			const void *, const int *, void *, const int *);
typedef void packed_fn(const char *, const int *, const void *, const void *, const int *, void *);
typedef void packed2_fn(const char *, const int *, const void *, const void *, const int *,
			const void *, const int *, void *);

/* The arguments as Fortran takes them: addresses of ints. Not every routine needs all. */
struct sizes {
	int m, n, k, l, lda, ldb, ldc;
};

#define RUN(name, ...)                                                                           \
	static void run_##name(const struct blas_call *b, const void *a, const void *x, void *y) \
	{                                                                                        \
		const struct sizes s = {(int)b->m,   (int)b->n,	  (int)b->k,  (int)b->l,         \
					(int)b->lda, (int)b->ldb, (int)b->ldc};                  \
                                                                                                 \
		(void)x;                                                                         \
		((name##_fn *)b->fn)(__VA_ARGS__);                                               \
	}

RUN(mv, b->flag, &s.m, &s.n, b->alpha, a, &s.lda, x, &s.ldb, b->beta, y, &s.ldc)
RUN(band, b->flag, &s.m, &s.n, &s.k, &s.l, b->alpha, a, &s.lda, x, &s.ldb, b->beta, y, &s.ldc)
RUN(rank, &s.m, &s.n, b->alpha, a, &s.lda, x, &s.ldb, y, &s.ldc)
RUN(symmetric, b->flag, &s.n, b->alpha, a, &s.lda, x, &s.ldb, b->beta, y, &s.ldc)
RUN(symmetric_band, b->flag, &s.n, &s.k, b->alpha, a, &s.lda, x, &s.ldb, b->beta, y, &s.ldc)
RUN(symmetric_packed, b->flag, &s.n, b->alpha, a, x, &s.ldb, b->beta, y, &s.ldc)
RUN(triangle, b->flag, b->flag + 1, b->flag + 2, &s.n, a, &s.lda, y, &s.ldc)
RUN(triangle_band, b->flag, b->flag + 1, b->flag + 2, &s.n, &s.k, a, &s.lda, y, &s.ldc)
RUN(triangle_packed, b->flag, b->flag + 1, b->flag + 2, &s.n, a, y, &s.ldc)
RUN(update, b->flag, &s.n, b->alpha, a, &s.lda, y, &s.ldc)
RUN(update2, b->flag, &s.n, b->alpha, a, &s.lda, x, &s.ldb, y, &s.ldc)
RUN(packed, b->flag, &s.n, b->alpha, a, &s.lda, y)
RUN(packed2, b->flag, &s.n, b->alpha, a, &s.lda, x, &s.ldb, y)

static bool lead(int64_t ld, int64_t rows)
{
	return ld >= 1 && ld >= rows;
}

/* Elements of a triangle that is stored without gaps. */
static uint64_t triangle_of(int64_t n)
{
	return n > 0 ? (uint64_t)n * (uint64_t)(n + 1) / 2 : 0;
}

/* A matrix that is stored in one of three ways: `k` is the width of a band. False: it is wrong. */
enum store { DENSE, BAND, PACKED };

static bool square(struct blas_call *b, enum store store)
{
	switch (store) {
	case DENSE:
		b->need_a = blas_matrix(b->n, b->n, b->lda);
		return lead(b->lda, b->n);
	case BAND:
		b->need_a = blas_matrix(b->k + 1, b->n, b->lda);
		return b->k >= 0 && lead(b->lda, b->k + 1);
	case PACKED:
		b->need_a = triangle_of(b->n);
	}
	return true;
}

/* Without rows or columns there is no work. */
static cublasStatus_t go(cublasHandle_t h, struct blas_call *b, bool right, bool work)
{
	if (!right)
		return CUBLAS_STATUS_INVALID_VALUE;
	return work ? soft_blas(h, b) : CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t general(cublasHandle_t h, struct blas_call *b, cublasOperation_t trans,
			      bool band)
{
	const int64_t in = trans == CUBLAS_OP_N ? b->n : b->m, out = b->m + b->n - in;
	const int64_t rows = band ? b->k + b->l + 1 : b->m;

	b->flag[0] = blas_trans(trans);
	b->need_a = blas_matrix(rows, b->n, b->lda);
	b->need_b = blas_vector(in, b->ldb);
	b->need_c = blas_vector(out, b->ldc);
	return go(h, b,
		  b->flag[0] && b->m >= 0 && b->n >= 0 && b->k >= 0 && b->l >= 0 && b->ldb &&
			  b->ldc && b->alpha_at && b->beta_at && lead(b->lda, rows),
		  b->m && b->n);
}

static cublasStatus_t rank_one(cublasHandle_t h, struct blas_call *b)
{
	b->need_a = blas_vector(b->m, b->lda);
	b->need_b = blas_vector(b->n, b->ldb);
	b->need_c = blas_matrix(b->m, b->n, b->ldc);
	return go(h, b,
		  b->m >= 0 && b->n >= 0 && b->lda && b->ldb && b->alpha_at && lead(b->ldc, b->m),
		  b->m && b->n);
}

static cublasStatus_t symmetric(cublasHandle_t h, struct blas_call *b, cublasFillMode_t fill,
				enum store store)
{
	b->flag[0] = blas_fill(fill);
	b->need_b = blas_vector(b->n, b->ldb);
	b->need_c = blas_vector(b->n, b->ldc);
	return go(h, b,
		  square(b, store) && b->flag[0] && b->n >= 0 && b->ldb && b->ldc && b->alpha_at &&
			  b->beta_at,
		  b->n);
}

static cublasStatus_t update_symmetric(cublasHandle_t h, struct blas_call *b, cublasFillMode_t fill,
				       bool two, bool dense)
{
	b->flag[0] = blas_fill(fill);
	b->need_a = blas_vector(b->n, b->lda);
	b->need_b = two ? blas_vector(b->n, b->ldb) : 0;
	b->need_c = dense ? blas_matrix(b->n, b->n, b->ldc) : triangle_of(b->n);
	return go(h, b,
		  b->flag[0] && b->n >= 0 && b->lda && (!two || b->ldb) && b->alpha_at &&
			  (!dense || lead(b->ldc, b->n)),
		  b->n);
}

static cublasStatus_t triangle(cublasHandle_t h, struct blas_call *b, cublasFillMode_t fill,
			       cublasOperation_t trans, cublasDiagType_t diag, enum store store)
{
	b->flag[0] = blas_fill(fill);
	b->flag[1] = blas_trans(trans);
	b->flag[2] = blas_diag(diag);
	b->need_c = blas_vector(b->n, b->ldc);
	return go(h, b,
		  square(b, store) && b->flag[0] && b->flag[1] && b->flag[2] && b->n >= 0 && b->ldc,
		  b->n);
}

/*
 * The functions. X: the type's letter. T, R: its numbers, and real ones. INT, END: int or int64_t,
 * and what the name of the function ends with. S: "sy" for real, "he" for complex matrices, and so
 * on for those in bands and without gaps.
 */
#define NAME(X, routine, END) static cublasStatus_t soft_cublas##X##routine##_v2##END
#define CALL(X, name, runner) \
	struct blas_call b = {.type = BLAS_##X, .routine = name, .run = run_##runner,

#define GENERAL(X, T, INT, END)                                                                   \
	NAME(X, gemv, END)                                                                        \
	(cublasHandle_t h, cublasOperation_t trans, INT m, INT n, const T *alpha, const T *A,     \
	 INT lda, const T *x, INT incx, const T *beta, T *y, INT incy){CALL(X, "gemv", mv).m = m, \
								       .n = n,                    \
								       .alpha_at = alpha,         \
								       .a = A,                    \
								       .lda = lda,                \
								       .b = x,                    \
								       .ldb = incx,               \
								       .beta_at = beta,           \
								       .c = y,                    \
								       .ldc = incy};              \
	return general(h, &b, trans, false);                                                      \
	}                                                                                         \
	NAME(X, gbmv, END)                                                                        \
	(cublasHandle_t h, cublasOperation_t trans, INT m, INT n, INT kl, INT ku, const T *alpha, \
	 const T *A, INT lda, const T *x, INT incx, const T *beta, T *y,                          \
	 INT incy){CALL(X, "gbmv", band).m = m,                                                   \
		   .n = n,                                                                        \
		   .k = kl,                                                                       \
		   .l = ku,                                                                       \
		   .alpha_at = alpha,                                                             \
		   .a = A,                                                                        \
		   .lda = lda,                                                                    \
		   .b = x,                                                                        \
		   .ldb = incx,                                                                   \
		   .beta_at = beta,                                                               \
		   .c = y,                                                                        \
		   .ldc = incy};                                                                  \
	return general(h, &b, trans, true);                                                       \
	}

#define RANK(X, T, routine, INT, END)                                                      \
	NAME(X, routine, END)                                                              \
	(cublasHandle_t h, INT m, INT n, const T *alpha, const T *x, INT incx, const T *y, \
	 INT incy, T *A, INT lda){CALL(X, #routine, rank).m = m,                           \
				  .n = n,                                                  \
				  .alpha_at = alpha,                                       \
				  .a = x,                                                  \
				  .lda = incx,                                             \
				  .b = y,                                                  \
				  .ldb = incy,                                             \
				  .c = A,                                                  \
				  .ldc = lda};                                             \
	return rank_one(h, &b);                                                            \
	}

#define SYMMETRIC(X, T, R, S, SB, SP, INT, END)                                                  \
	NAME(X, S##mv, END)                                                                      \
	(cublasHandle_t h, cublasFillMode_t fill, INT n, const T *alpha, const T *A, INT lda,    \
	 const T *x, INT incx, const T *beta, T *y, INT incy){CALL(X, #S "mv", symmetric).n = n, \
							      .alpha_at = alpha,                 \
							      .a = A,                            \
							      .lda = lda,                        \
							      .b = x,                            \
							      .ldb = incx,                       \
							      .beta_at = beta,                   \
							      .c = y,                            \
							      .ldc = incy};                      \
	return symmetric(h, &b, fill, DENSE);                                                    \
	}                                                                                        \
	NAME(X, SB##mv, END)                                                                     \
	(cublasHandle_t h, cublasFillMode_t fill, INT n, INT k, const T *alpha, const T *A,      \
	 INT lda, const T *x, INT incx, const T *beta, T *y,                                     \
	 INT incy){CALL(X, #SB "mv", symmetric_band).n = n,                                      \
		   .k = k,                                                                       \
		   .alpha_at = alpha,                                                            \
		   .a = A,                                                                       \
		   .lda = lda,                                                                   \
		   .b = x,                                                                       \
		   .ldb = incx,                                                                  \
		   .beta_at = beta,                                                              \
		   .c = y,                                                                       \
		   .ldc = incy};                                                                 \
	return symmetric(h, &b, fill, BAND);                                                     \
	}                                                                                        \
	NAME(X, SP##mv, END)                                                                     \
	(cublasHandle_t h, cublasFillMode_t fill, INT n, const T *alpha, const T *A, const T *x, \
	 INT incx, const T *beta, T *y, INT incy){CALL(X, #SP "mv", symmetric_packed).n = n,     \
						  .alpha_at = alpha,                             \
						  .a = A,                                        \
						  .b = x,                                        \
						  .ldb = incx,                                   \
						  .beta_at = beta,                               \
						  .c = y,                                        \
						  .ldc = incy};                                  \
	return symmetric(h, &b, fill, PACKED);                                                   \
	}                                                                                        \
	NAME(X, S##r, END)                                                                       \
	(cublasHandle_t h, cublasFillMode_t fill, INT n, const R *alpha, const T *x, INT incx,   \
	 T *A, INT lda){CALL(X, #S "r", update).n = n,                                           \
			.alpha_at = alpha,                                                       \
			.alpha_size = sizeof(*alpha),                                            \
			.a = x,                                                                  \
			.lda = incx,                                                             \
			.c = A,                                                                  \
			.ldc = lda};                                                             \
	return update_symmetric(h, &b, fill, false, true);                                       \
	}                                                                                        \
	NAME(X, S##r2, END)                                                                      \
	(cublasHandle_t h, cublasFillMode_t fill, INT n, const T *alpha, const T *x, INT incx,   \
	 const T *y, INT incy, T *A, INT lda){CALL(X, #S "r2", update2).n = n,                   \
					      .alpha_at = alpha,                                 \
					      .a = x,                                            \
					      .lda = incx,                                       \
					      .b = y,                                            \
					      .ldb = incy,                                       \
					      .c = A,                                            \
					      .ldc = lda};                                       \
	return update_symmetric(h, &b, fill, true, true);                                        \
	}                                                                                        \
	NAME(X, SP##r, END)                                                                      \
	(cublasHandle_t h, cublasFillMode_t fill, INT n, const R *alpha, const T *x, INT incx,   \
	 T *A){CALL(X, #SP "r", packed).n = n,                                                   \
	       .alpha_at = alpha,                                                                \
	       .alpha_size = sizeof(*alpha),                                                     \
	       .a = x,                                                                           \
	       .lda = incx,                                                                      \
	       .c = A};                                                                          \
	return update_symmetric(h, &b, fill, false, false);                                      \
	}                                                                                        \
	NAME(X, SP##r2, END)                                                                     \
	(cublasHandle_t h, cublasFillMode_t fill, INT n, const T *alpha, const T *x, INT incx,   \
	 const T *y, INT incy, T *A){CALL(X, #SP "r2", packed2).n = n,                           \
				     .alpha_at = alpha,                                          \
				     .a = x,                                                     \
				     .lda = incx,                                                \
				     .b = y,                                                     \
				     .ldb = incy,                                                \
				     .c = A};                                                    \
	return update_symmetric(h, &b, fill, true, false);                                       \
	}

#define TRIANGLE(X, T, what, INT, END)                                                            \
	NAME(X, tr##what, END)                                                                    \
	(cublasHandle_t h, cublasFillMode_t fill, cublasOperation_t trans, cublasDiagType_t diag, \
	 INT n, const T *A, INT lda, T *x,                                                        \
	 INT incx){CALL(X, "tr" #what, triangle).n = n, .a = A, .lda = lda, .c = x, .ldc = incx}; \
	return triangle(h, &b, fill, trans, diag, DENSE);                                         \
	}                                                                                         \
	NAME(X, tb##what, END)                                                                    \
	(cublasHandle_t h, cublasFillMode_t fill, cublasOperation_t trans, cublasDiagType_t diag, \
	 INT n, INT k, const T *A, INT lda, T *x,                                                 \
	 INT incx){CALL(X, "tb" #what, triangle_band).n = n,                                      \
		   .k = k,                                                                        \
		   .a = A,                                                                        \
		   .lda = lda,                                                                    \
		   .c = x,                                                                        \
		   .ldc = incx};                                                                  \
	return triangle(h, &b, fill, trans, diag, BAND);                                          \
	}                                                                                         \
	NAME(X, tp##what, END)                                                                    \
	(cublasHandle_t h, cublasFillMode_t fill, cublasOperation_t trans, cublasDiagType_t diag, \
	 INT n, const T *A, T *x,                                                                 \
	 INT incx){CALL(X, "tp" #what, triangle_packed).n = n, .a = A, .c = x, .ldc = incx};      \
	return triangle(h, &b, fill, trans, diag, PACKED);                                        \
	}

#define FOR_ALL(X, T, INT, END)      \
	GENERAL(X, T, INT, END)      \
	TRIANGLE(X, T, mv, INT, END) \
	TRIANGLE(X, T, sv, INT, END)
#define FOR_REAL(X, T, INT, END)  \
	FOR_ALL(X, T, INT, END)   \
	RANK(X, T, ger, INT, END) \
	SYMMETRIC(X, T, T, sy, sb, sp, INT, END)
#define FOR_COMPLEX(X, T, R, INT, END) \
	FOR_ALL(X, T, INT, END)        \
	RANK(X, T, geru, INT, END)     \
	RANK(X, T, gerc, INT, END)     \
	SYMMETRIC(X, T, R, he, hb, hp, INT, END)

FOR_REAL(S, float, int, )
FOR_REAL(D, double, int, )
FOR_REAL(S, float, int64_t, _64)
FOR_REAL(D, double, int64_t, _64)
FOR_COMPLEX(C, cuComplex, float, int, )
FOR_COMPLEX(Z, cuDoubleComplex, double, int, )
FOR_COMPLEX(C, cuComplex, float, int64_t, _64)
FOR_COMPLEX(Z, cuDoubleComplex, double, int64_t, _64)

#define REALS(name)	SOFT_BOTH(S##name##_v2), SOFT_BOTH(D##name##_v2)
#define COMPLEXES(name) SOFT_BOTH(C##name##_v2), SOFT_BOTH(Z##name##_v2)
#define FOUR(name)	REALS(name), COMPLEXES(name)

const struct soft_symbol soft_blas_level2[] = {
	FOUR(gemv),	 FOUR(gbmv),	  FOUR(trmv),	   FOUR(trsv),	    FOUR(tbmv),
	FOUR(tbsv),	 FOUR(tpmv),	  FOUR(tpsv),	   REALS(ger),	    REALS(symv),
	REALS(sbmv),	 REALS(spmv),	  REALS(syr),	   REALS(syr2),	    REALS(spr),
	REALS(spr2),	 COMPLEXES(geru), COMPLEXES(gerc), COMPLEXES(hemv), COMPLEXES(hbmv),
	COMPLEXES(hpmv), COMPLEXES(her),  COMPLEXES(her2), COMPLEXES(hpr),  COMPLEXES(hpr2),
	{NULL, NULL}};
