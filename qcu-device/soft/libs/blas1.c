// SPDX-License-Identifier: GPL-2.0-or-later
/* cuBLAS on the software GPU, level 1: vectors. */
#include <string.h>

#include "qcu-device/soft/libs/blas.h"

/*
 * x is a, y is c. In Fortran, as in cuBLAS, a negative increment begins at the vector's other end,
 * which lies at the address. n <= 0, and for some an increment <= 0, is no work.
 */

typedef float single_fn(const int *, const void *, const int *);
typedef double double_fn(const int *, const void *, const int *);
typedef int index_fn(const int *, const void *, const int *);
typedef void scal_fn(const int *, const void *, void *, const int *);
typedef void axpy_fn(const int *, const void *, const void *, const int *, void *, const int *);
typedef void two_fn(const int *, const void *, const int *, void *, const int *);
typedef float single_dot_fn(const int *, const void *, const int *, const void *, const int *);
typedef double double_dot_fn(const int *, const void *, const int *, const void *, const int *);
typedef cuComplex complex_dot_fn(const int *, const void *, const int *, const void *, const int *);
typedef cuDoubleComplex double_complex_dot_fn(const int *, const void *, const int *, const void *,
					      const int *);
typedef void rot_fn(const int *, void *, const int *, void *, const int *, const void *,
		    const void *);

static bool has_double_precision(const struct blas_call *b)
{
	return b->type == BLAS_D || b->type == BLAS_Z;
}

/* The size of a real number of the type. */
static size_t real(enum blas_type type)
{
	return type == BLAS_S || type == BLAS_C ? 4 : 8;
}

static void run_sum(const struct blas_call *b, const void *x, const void *unused, void *y)
{
	const int n = (int)b->n, inc = (int)b->lda;

	(void)unused;
	(void)y;
	if (b->n <= 0 || b->lda <= 0)
		memset(b->result, 0, b->result_size);
	else if (has_double_precision(b))
		*(double *)b->result = ((double_fn *)b->fn)(&n, x, &inc);
	else
		*(float *)b->result = ((single_fn *)b->fn)(&n, x, &inc);
}

static void run_index(const struct blas_call *b, const void *x, const void *unused, void *y)
{
	const int n = (int)b->n, inc = (int)b->lda;
	int64_t at = b->n <= 0 || b->lda <= 0 ? 0 : ((index_fn *)b->fn)(&n, x, &inc);

	(void)unused;
	(void)y;
	memcpy(b->result, &at, b->result_size);
}

static void run_scal(const struct blas_call *b, const void *unused, const void *none, void *x)
{
	const int n = (int)b->n, inc = (int)b->ldc;

	(void)unused;
	(void)none;
	((scal_fn *)b->fn)(&n, b->alpha, x, &inc);
}

static void run_axpy(const struct blas_call *b, const void *x, const void *none, void *y)
{
	const int n = (int)b->n, incx = (int)b->lda, incy = (int)b->ldc;

	(void)none;
	((axpy_fn *)b->fn)(&n, b->alpha, x, &incx, y, &incy);
}

static void run_two(const struct blas_call *b, const void *x, const void *none, void *y)
{
	const int n = (int)b->n, incx = (int)b->lda, incy = (int)b->ldc;

	(void)none;
	((two_fn *)b->fn)(&n, x, &incx, y, &incy);
}

static void run_dot(const struct blas_call *b, const void *x, const void *y, void *none)
{
	const int n = (int)b->n, incx = (int)b->lda, incy = (int)b->ldb;

	(void)none;
	switch (b->type) {
	case BLAS_S:
		*(float *)b->result = ((single_dot_fn *)b->fn)(&n, x, &incx, y, &incy);
		break;
	case BLAS_D:
		*(double *)b->result = ((double_dot_fn *)b->fn)(&n, x, &incx, y, &incy);
		break;
	case BLAS_C:
		*(cuComplex *)b->result = ((complex_dot_fn *)b->fn)(&n, x, &incx, y, &incy);
		break;
	case BLAS_Z:
		*(cuDoubleComplex *)b->result =
			((double_complex_dot_fn *)b->fn)(&n, x, &incx, y, &incy);
		break;
	}
}

static void run_rot(const struct blas_call *b, const void *x, const void *none, void *y)
{
	const int n = (int)b->n, incx = (int)b->lda, incy = (int)b->ldc;

	(void)none;
	((rot_fn *)b->fn)(&n, (void *)x, &incx, y, &incy, b->alpha, b->beta);
}

/* One vector, and a result. */
static cublasStatus_t reduce_vector(cublasHandle_t h, struct blas_call *b)
{
	if (!b->result)
		return CUBLAS_STATUS_INVALID_VALUE;
	b->need_a = b->lda > 0 ? blas_vector(b->n, b->lda) : 0;
	return soft_blas(h, b);
}

/* Two vectors, of which the second is written. */
static cublasStatus_t pair(cublasHandle_t h, struct blas_call *b)
{
	if (b->n <= 0)
		return CUBLAS_STATUS_SUCCESS;
	b->need_a = blas_vector(b->n, b->lda);
	b->need_c = blas_vector(b->n, b->ldc);
	return soft_blas(h, b);
}

#define REDUCE(name, TYPE, T, R, ROUTINE, RUN, INT, END)                                       \
	static cublasStatus_t soft_cublas##name##_v2##END(cublasHandle_t h, INT n, const T *x, \
							  INT incx, R *result)                 \
	{                                                                                      \
		struct blas_call b = {.type = TYPE,                                            \
				      .exact = ROUTINE,                                        \
				      .run = RUN,                                              \
				      .n = n,                                                  \
				      .a = x,                                                  \
				      .lda = incx,                                             \
				      .result = result,                                        \
				      .result_size = sizeof(*result)};                         \
                                                                                               \
		return reduce_vector(h, &b);                                                   \
	}
#define SUM(name, TYPE, T, R, ROUTINE)                    \
	REDUCE(name, TYPE, T, R, ROUTINE, run_sum, int, ) \
	REDUCE(name, TYPE, T, R, ROUTINE, run_sum, int64_t, _64)
#define INDEX(name, TYPE, T, ROUTINE)                         \
	REDUCE(name, TYPE, T, int, ROUTINE, run_index, int, ) \
	REDUCE(name, TYPE, T, int64_t, ROUTINE, run_index, int64_t, _64)

SUM(Snrm2, BLAS_S, float, float, "snrm2")
SUM(Dnrm2, BLAS_D, double, double, "dnrm2")
SUM(Scnrm2, BLAS_C, cuComplex, float, "scnrm2")
SUM(Dznrm2, BLAS_Z, cuDoubleComplex, double, "dznrm2")
SUM(Sasum, BLAS_S, float, float, "sasum")
SUM(Dasum, BLAS_D, double, double, "dasum")
SUM(Scasum, BLAS_C, cuComplex, float, "scasum")
SUM(Dzasum, BLAS_Z, cuDoubleComplex, double, "dzasum")
INDEX(Isamax, BLAS_S, float, "isamax")
INDEX(Idamax, BLAS_D, double, "idamax")
INDEX(Icamax, BLAS_C, cuComplex, "icamax")
INDEX(Izamax, BLAS_Z, cuDoubleComplex, "izamax")
INDEX(Isamin, BLAS_S, float, "isamin")
INDEX(Idamin, BLAS_D, double, "idamin")
INDEX(Icamin, BLAS_C, cuComplex, "icamin")
INDEX(Izamin, BLAS_Z, cuDoubleComplex, "izamin")

#define DOT_ONE(name, TYPE, T, ROUTINE, INT, END)                                               \
	static cublasStatus_t soft_cublas##name##_v2##END(                                      \
		cublasHandle_t h, INT n, const T *x, INT incx, const T *y, INT incy, T *result) \
	{                                                                                       \
		struct blas_call b = {.type = TYPE,                                             \
				      .exact = ROUTINE,                                         \
				      .run = run_dot,                                           \
				      .n = n,                                                   \
				      .a = x,                                                   \
				      .lda = incx,                                              \
				      .b = y,                                                   \
				      .ldb = incy,                                              \
				      .result = result,                                         \
				      .result_size = sizeof(*result),                           \
				      .need_b = blas_vector(n, incy)};                          \
                                                                                                \
		if (!result)                                                                    \
			return CUBLAS_STATUS_INVALID_VALUE;                                     \
		b.need_a = blas_vector(n, incx);                                                \
		return soft_blas(h, &b);                                                        \
	}
#define DOT(name, TYPE, T, ROUTINE)            \
	DOT_ONE(name, TYPE, T, ROUTINE, int, ) \
	DOT_ONE(name, TYPE, T, ROUTINE, int64_t, _64)

DOT(Sdot, BLAS_S, float, "sdot")
DOT(Ddot, BLAS_D, double, "ddot")
DOT(Cdotu, BLAS_C, cuComplex, "cdotu")
DOT(Cdotc, BLAS_C, cuComplex, "cdotc")
DOT(Zdotu, BLAS_Z, cuDoubleComplex, "zdotu")
DOT(Zdotc, BLAS_Z, cuDoubleComplex, "zdotc")

#define SCAL_ONE(name, TYPE, T, A, ROUTINE, INT, END)                                              \
	static cublasStatus_t soft_cublas##name##_v2##END(cublasHandle_t h, INT n, const A *alpha, \
							  T *x, INT incx)                          \
	{                                                                                          \
		struct blas_call b = {.type = TYPE,                                                \
				      .exact = ROUTINE,                                            \
				      .run = run_scal,                                             \
				      .n = n,                                                      \
				      .alpha_at = alpha,                                           \
				      .alpha_size = sizeof(*alpha),                                \
				      .c = x,                                                      \
				      .ldc = incx,                                                 \
				      .need_c = blas_vector(n, incx)};                             \
                                                                                                   \
		if (!alpha)                                                                        \
			return CUBLAS_STATUS_INVALID_VALUE;                                        \
		return n <= 0 || incx <= 0 ? CUBLAS_STATUS_SUCCESS : soft_blas(h, &b);             \
	}
#define SCAL(name, TYPE, T, A, ROUTINE)            \
	SCAL_ONE(name, TYPE, T, A, ROUTINE, int, ) \
	SCAL_ONE(name, TYPE, T, A, ROUTINE, int64_t, _64)

SCAL(Sscal, BLAS_S, float, float, "sscal")
SCAL(Dscal, BLAS_D, double, double, "dscal")
SCAL(Cscal, BLAS_C, cuComplex, cuComplex, "cscal")
SCAL(Csscal, BLAS_C, cuComplex, float, "csscal")
SCAL(Zscal, BLAS_Z, cuDoubleComplex, cuDoubleComplex, "zscal")
SCAL(Zdscal, BLAS_Z, cuDoubleComplex, double, "zdscal")

#define PAIRS(X, T, INT, END)                                                                   \
	static cublasStatus_t soft_cublas##X##axpy_v2##END(                                     \
		cublasHandle_t h, INT n, const T *alpha, const T *x, INT incx, T *y, INT incy)  \
	{                                                                                       \
		struct blas_call b = {.type = BLAS_##X,                                         \
				      .routine = "axpy",                                        \
				      .run = run_axpy,                                          \
				      .n = n,                                                   \
				      .alpha_at = alpha,                                        \
				      .a = x,                                                   \
				      .lda = incx,                                              \
				      .c = y,                                                   \
				      .ldc = incy};                                             \
                                                                                                \
		return alpha ? pair(h, &b) : CUBLAS_STATUS_INVALID_VALUE;                       \
	}                                                                                       \
	static cublasStatus_t soft_cublas##X##copy_v2##END(cublasHandle_t h, INT n, const T *x, \
							   INT incx, T *y, INT incy)            \
	{                                                                                       \
		struct blas_call b = {.type = BLAS_##X,                                         \
				      .routine = "copy",                                        \
				      .run = run_two,                                           \
				      .n = n,                                                   \
				      .a = x,                                                   \
				      .lda = incx,                                              \
				      .c = y,                                                   \
				      .ldc = incy};                                             \
                                                                                                \
		return pair(h, &b);                                                             \
	}                                                                                       \
	static cublasStatus_t soft_cublas##X##swap_v2##END(cublasHandle_t h, INT n, T *x,       \
							   INT incx, T *y, INT incy)            \
	{                                                                                       \
		struct blas_call b = {.type = BLAS_##X,                                         \
				      .routine = "swap",                                        \
				      .run = run_two,                                           \
				      .n = n,                                                   \
				      .a = x,                                                   \
				      .lda = incx,                                              \
				      .c = y,                                                   \
				      .ldc = incy};                                             \
                                                                                                \
		return pair(h, &b);                                                             \
	}
PAIRS(S, float, int, )
PAIRS(D, double, int, )
PAIRS(C, cuComplex, int, )
PAIRS(Z, cuDoubleComplex, int, )
PAIRS(S, float, int64_t, _64)
PAIRS(D, double, int64_t, _64)
PAIRS(C, cuComplex, int64_t, _64)
PAIRS(Z, cuDoubleComplex, int64_t, _64)

/* A rotation by two real numbers. */
#define ROT_ONE(name, TYPE, T, R, ROUTINE, INT, END)                                               \
	static cublasStatus_t soft_cublas##name##_v2##END(cublasHandle_t h, INT n, T *x, INT incx, \
							  T *y, INT incy, const R *c, const R *s)  \
	{                                                                                          \
		struct blas_call b = {.type = TYPE,                                                \
				      .exact = ROUTINE,                                            \
				      .run = run_rot,                                              \
				      .n = n,                                                      \
				      .a = x,                                                      \
				      .lda = incx,                                                 \
				      .c = y,                                                      \
				      .ldc = incy,                                                 \
				      .alpha_at = c,                                               \
				      .beta_at = s,                                                \
				      .alpha_size = real(TYPE),                                    \
				      .beta_size = real(TYPE)};                                    \
                                                                                                   \
		return c && s ? pair(h, &b) : CUBLAS_STATUS_INVALID_VALUE;                         \
	}
#define ROT(name, TYPE, T, R, ROUTINE)            \
	ROT_ONE(name, TYPE, T, R, ROUTINE, int, ) \
	ROT_ONE(name, TYPE, T, R, ROUTINE, int64_t, _64)

ROT(Srot, BLAS_S, float, float, "srot")
ROT(Drot, BLAS_D, double, double, "drot")
ROT(Csrot, BLAS_C, cuComplex, float, "csrot")
ROT(Zdrot, BLAS_Z, cuDoubleComplex, double, "zdrot")

#define BOTH(name) SOFT_BOTH(name##_v2)

const struct soft_symbol soft_blas_level1[] = {
	BOTH(Snrm2),  BOTH(Dnrm2),  BOTH(Scnrm2), BOTH(Dznrm2), BOTH(Sasum),  BOTH(Dasum),
	BOTH(Scasum), BOTH(Dzasum), BOTH(Isamax), BOTH(Idamax), BOTH(Icamax), BOTH(Izamax),
	BOTH(Isamin), BOTH(Idamin), BOTH(Icamin), BOTH(Izamin), BOTH(Sdot),   BOTH(Ddot),
	BOTH(Cdotu),  BOTH(Cdotc),  BOTH(Zdotu),  BOTH(Zdotc),	BOTH(Sscal),  BOTH(Dscal),
	BOTH(Cscal),  BOTH(Csscal), BOTH(Zscal),  BOTH(Zdscal), BOTH(Saxpy),  BOTH(Daxpy),
	BOTH(Caxpy),  BOTH(Zaxpy),  BOTH(Scopy),  BOTH(Dcopy),	BOTH(Ccopy),  BOTH(Zcopy),
	BOTH(Sswap),  BOTH(Dswap),  BOTH(Cswap),  BOTH(Zswap),	BOTH(Srot),   BOTH(Drot),
	BOTH(Csrot),  BOTH(Zdrot),  {NULL, NULL}};
