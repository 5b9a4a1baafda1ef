/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cuBLAS on the software GPU: the functions have NVIDIA's names and parameters, and their work is
 * done by OpenBLAS, in the order of the stream, on the same memory. Only the most used functions
 * are there, in float, double and complex.
 *
 * A function of this folder fills in a struct blas_call and passes it to soft_blas().
 */
#ifndef SOFT_BLAS_H
#define SOFT_BLAS_H

#include "qcu-device/soft/gpu/soft.h"

#include <cublas_v2.h>

enum blas_type { BLAS_S, BLAS_D, BLAS_C, BLAS_Z };

/* What a handle is. The mirror lets one call at a time use it. */
struct cublasContext {
	struct be *be;
	struct be_stream *stream;
	cublasPointerMode_t mode;
	cublasMath_t math;
	cublasAtomicsMode_t atomics;
};

struct blas_call;

/* One routine. `run` works on one item of a batch; fn is OpenBLAS's function. */
typedef void blas_run_fn(const struct blas_call *b, const void *a, const void *x, void *y);

struct blas_call {
	struct be *be;
	blas_run_fn *run;
	/* OpenBLAS's function: "gemm", with the type's letter before it; or "isamax", as it is. */
	const char *routine, *exact;
	void *fn;
	enum blas_type type;
	char flag[5];	       /* as Fortran wants them */
	int64_t m, n, k, l;    /* sizes, and, for bands, widths */
	int64_t lda, ldb, ldc; /* or increments */
	const void *a, *b;
	void *c;
	uint64_t need_a, need_b, need_c; /* elements that are used of each; 0: it is not used */
	uint64_t size_a, size_b, size_c; /* bytes of an element; 0: the type's */
	int64_t count, step_a, step_b, step_c; /* a batch: elements from one item to the next */
	bool arrays;			       /* a, b, c: arrays of addresses */
	/* cuBLASLt: what is added may lie elsewhere; and what is done with the result. */
	const void *e, *item_e, *bias;
	int64_t lde, step_e;
	uint64_t need_e;
	uint32_t epilogue;
	/* Scalars. With a device's pointer mode they are read when the call runs. */
	const void *alpha_at, *beta_at;
	size_t alpha_size, beta_size; /* 0: the type's */
	unsigned char alpha[16], beta[16];
	void *result; /* one value, or NULL */
	size_t result_size;
	cublasPointerMode_t mode;
};

size_t blas_size(enum blas_type type);
/* Elements of a matrix of this shape, and of a vector. */
uint64_t blas_matrix(int64_t rows, int64_t cols, int64_t lead);
uint64_t blas_vector(int64_t n, int64_t inc);

/* Puts the call into the handle's stream. With a result in host memory, it waits for it. */
cublasStatus_t soft_blas(cublasHandle_t handle, struct blas_call *b);

/* A product, for one item of a batch. */
void blas_gemm(const struct blas_call *b, const void *a, const void *x, void *y);

/* Functions by name. */
struct soft_symbol {
	const char *name;
	void *fn;
};
extern const struct soft_symbol soft_blas_handle[], soft_blas_level1[], soft_blas_level2[],
	soft_blas_level3[], soft_blaslt[];

/* Fortran's character for a parameter; 0: it has a wrong value. */
char blas_trans(cublasOperation_t trans);
char blas_side(cublasSideMode_t side);
char blas_fill(cublasFillMode_t fill);
char blas_diag(cublasDiagType_t diag);

/* For lists of symbols. */
#define SOFT_ONE(name)                                    \
	{                                                 \
		"cublas" #name, (void *)soft_cublas##name \
	}
#define SOFT_BOTH(name) SOFT_ONE(name), SOFT_ONE(name##_64)

#endif
