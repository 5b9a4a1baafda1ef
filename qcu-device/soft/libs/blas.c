// SPDX-License-Identifier: GPL-2.0-or-later
/* How a call of cuBLAS becomes work in a stream; and what belongs to a handle. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "qcu-device/soft/libs/libs.h"

struct blas_work {
	struct soft_work work;
	struct blas_call call;
};

size_t blas_size(enum blas_type type)
{
	static const size_t size[] = {4, 8, 8, 16};

	return size[type];
}

uint64_t blas_matrix(int64_t rows, int64_t cols, int64_t lead)
{
	return rows > 0 && cols > 0 ? (uint64_t)(cols - 1) * (uint64_t)lead + (uint64_t)rows : 0;
}

uint64_t blas_vector(int64_t n, int64_t inc)
{
	return n > 0 ? 1 + (uint64_t)(n - 1) * (inc < 0 ? -(uint64_t)inc : (uint64_t)inc) : 0;
}

char blas_trans(cublasOperation_t trans)
{
	return trans == CUBLAS_OP_N   ? 'N'
	       : trans == CUBLAS_OP_T ? 'T'
	       : trans == CUBLAS_OP_C ? 'C'
				      : 0;
}

char blas_side(cublasSideMode_t side)
{
	return side == CUBLAS_SIDE_LEFT ? 'L' : side == CUBLAS_SIDE_RIGHT ? 'R' : 0;
}

char blas_fill(cublasFillMode_t fill)
{
	return fill == CUBLAS_FILL_MODE_LOWER ? 'L' : fill == CUBLAS_FILL_MODE_UPPER ? 'U' : 0;
}

char blas_diag(cublasDiagType_t diag)
{
	return diag == CUBLAS_DIAG_NON_UNIT ? 'N' : diag == CUBLAS_DIAG_UNIT ? 'U' : 0;
}

/* The error with which a GPU faults, if it must not use these elements; a number has `unit` bytes.
 */
static int fault(const struct blas_call *b, const void *at, uint64_t elements, size_t size,
		 size_t unit)
{
	if (!elements)
		return QCU_ERR_Success;
	if (elements > UINT64_MAX / 16 ||
	    !soft_mem_usable(b->be, (uint64_t)(uintptr_t)at, elements * size))
		return QCU_ERR_IllegalAddress;
	return (uintptr_t)at % (size < unit ? size : unit) ? QCU_ERR_MisalignedAddress
							   : QCU_ERR_Success;
}

static const void *item(const struct blas_call *b, const void *base, int64_t step, size_t size,
			int64_t i)
{
	if (!base)
		return NULL;
	/* The guest says how large a step is: it may lead anywhere, and fault() looks where. */
	return b->arrays ? ((const void *const *)base)[i]
			 : (const void *)((uintptr_t)base + (uintptr_t)i * (uintptr_t)step * size);
}

static int read_scalar(const struct blas_call *b, const void *at, unsigned char *to, size_t size)
{
	int rc;

	if (!at || b->mode == CUBLAS_POINTER_MODE_HOST)
		return QCU_ERR_Success;
	rc = fault(b, at, 1, size, 1);
	if (!rc)
		memcpy(to, at, size);
	return rc;
}

/* What all items of a batch share. */
static int prepare_batch(struct blas_call *b, size_t unit)
{
	const uint64_t count = b->arrays ? (uint64_t)b->count : 0;
	int rc = read_scalar(b, b->alpha_at, b->alpha, b->alpha_size);

	if (!rc)
		rc = read_scalar(b, b->beta_at, b->beta, b->beta_size);
	if (!rc)
		rc = fault(b, b->a, b->need_a ? count : 0, 8, 8);
	if (!rc)
		rc = fault(b, b->b, b->need_b ? count : 0, 8, 8);
	if (!rc)
		rc = fault(b, b->c, b->need_c ? count : 0, 8, 8);
	if (!rc && b->result && b->mode == CUBLAS_POINTER_MODE_DEVICE)
		rc = fault(b, b->result, 1, b->result_size, unit);
	if (!rc && b->bias)
		rc = fault(b, b->bias, (uint64_t)b->m, blas_size(b->type), unit);
	return rc;
}

static int run_batch_items(struct soft_work *w)
{
	struct blas_call *b = &((struct blas_work *)w)->call;
	const size_t size = blas_size(b->type);
	const size_t unit = b->type == BLAS_S || b->type == BLAS_C ? sizeof(float) : sizeof(double);
	const size_t size_a = b->size_a ? b->size_a : size, size_b = b->size_b ? b->size_b : size;
	const size_t size_c = b->size_c ? b->size_c : size;
	int rc = prepare_batch(b, unit);
	int64_t i;

	/* A batch may be of any length. It stops when its session ends. */
	for (i = 0; !rc && i < b->count && !__atomic_load_n(&b->be->cancel, __ATOMIC_RELAXED);
	     i++) {
		const void *a = item(b, b->a, b->step_a, size_a, i);
		const void *x = item(b, b->b, b->step_b, size_b, i);
		void *y = (void *)item(b, b->c, b->step_c, size_c, i);

		b->item_e = item(b, b->e, b->step_e, size_c, i);
		rc = fault(b, a, b->need_a, size_a, unit);
		if (!rc)
			rc = fault(b, x, b->need_b, size_b, unit);
		if (!rc)
			rc = fault(b, y, b->need_c, size_c, unit);
		if (!rc)
			rc = fault(b, b->item_e, b->need_e, size_c, unit);
		if (!rc)
			b->run(b, a, x, y);
	}
	return rc;
}

/* With what Fortran adds. */
static void *routine(const struct blas_call *b)
{
	char name[16];

	if (b->exact)
		snprintf(name, sizeof(name), "%s_", b->exact);
	else
		snprintf(name, sizeof(name), "%c%s_", "sdcz"[b->type], b -> routine);
	return soft_openblas(name);
}

static bool is_within_int(int64_t n)
{
	return n >= INT_MIN && n <= INT_MAX;
}

cublasStatus_t soft_blas(cublasHandle_t h, struct blas_call *b)
{
	const size_t size = blas_size(b->type);
	struct blas_work *w;
	bool wait;

	/* OpenBLAS's sizes are ints. */
	if (!is_within_int(b->m) || !is_within_int(b->n) || !is_within_int(b->k) ||
	    !is_within_int(b->l) || !is_within_int(b->lda) || !is_within_int(b->ldb) ||
	    !is_within_int(b->ldc) || !is_within_int(b->lde))
		return CUBLAS_STATUS_NOT_SUPPORTED;
	if (b->routine || b->exact) {
		b->fn = routine(b);
		if (!b->fn)
			return CUBLAS_STATUS_NOT_SUPPORTED;
	}
	b->be = h->be;
	b->mode = h->mode;
	if (!b->count)
		b->count = 1;
	b->alpha_size = b->alpha_size ? b->alpha_size : size;
	b->beta_size = b->beta_size ? b->beta_size : size;
	if (b->mode == CUBLAS_POINTER_MODE_HOST) {
		if (b->alpha_at)
			memcpy(b->alpha, b->alpha_at, b->alpha_size);
		if (b->beta_at)
			memcpy(b->beta, b->beta_at, b->beta_size);
	}
	w = calloc(1, sizeof(*w));
	if (!w)
		return CUBLAS_STATUS_ALLOC_FAILED;
	w->work = (struct soft_work){.run = run_batch_items,
				     .busy = BE_BUSY_KERNELS,
				     .free = soft_work_free,
				     .bytes = sizeof(*w) - sizeof(w->work)};
	w->call = *b;
	wait = b->result && b->mode == CUBLAS_POINTER_MODE_HOST;
	if (soft_submit(h->stream, &w->work, SOFT_QUEUE, NULL) ||
	    (wait && soft_stream_sync(h->be, h->stream)))
		return CUBLAS_STATUS_EXECUTION_FAILED;
	return CUBLAS_STATUS_SUCCESS;
}

/* ---- handles ---- */

static cublasStatus_t soft_cublasCreate_v2(cublasHandle_t *handle)
{
	*handle = calloc(1, sizeof(**handle));
	if (!*handle)
		return CUBLAS_STATUS_ALLOC_FAILED;
	(*handle)->be = soft_library_be;
	return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t soft_cublasDestroy_v2(cublasHandle_t handle)
{
	free(handle);
	return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t soft_cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream)
{
	handle->stream = (struct be_stream *)stream;
	return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t soft_cublasSetPointerMode_v2(cublasHandle_t handle, cublasPointerMode_t mode)
{
	handle->mode = mode;
	return CUBLAS_STATUS_SUCCESS;
}

/* The version of cuBLAS whose functions these are. */
static cublasStatus_t soft_cublasGetVersion_v2(cublasHandle_t handle, int *version)
{
	(void)handle;
	if (!version)
		return CUBLAS_STATUS_INVALID_VALUE;
	*version = CUBLAS_VERSION;
	return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t soft_cublasGetProperty(libraryPropertyType type, int *value)
{
	if (!value || (type != MAJOR_VERSION && type != MINOR_VERSION && type != PATCH_LEVEL))
		return CUBLAS_STATUS_INVALID_VALUE;
	*value = type == MAJOR_VERSION	 ? CUBLAS_VER_MAJOR
		 : type == MINOR_VERSION ? CUBLAS_VER_MINOR
					 : CUBLAS_VER_PATCH;
	return CUBLAS_STATUS_SUCCESS;
}

/*
 * All products are made in full precision, which every mode allows. NVIDIA's library, too, takes
 * modes that have no name.
 */
static cublasStatus_t soft_cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode)
{
	handle->math = mode;
	return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t soft_cublasGetMathMode(cublasHandle_t handle, cublasMath_t *mode)
{
	if (!mode)
		return CUBLAS_STATUS_INVALID_VALUE;
	*mode = handle->math;
	return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t soft_cublasSetAtomicsMode(cublasHandle_t handle, cublasAtomicsMode_t mode)
{
	if (mode != CUBLAS_ATOMICS_NOT_ALLOWED && mode != CUBLAS_ATOMICS_ALLOWED)
		return CUBLAS_STATUS_INVALID_VALUE;
	handle->atomics = mode;
	return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t soft_cublasGetAtomicsMode(cublasHandle_t handle, cublasAtomicsMode_t *mode)
{
	if (!mode)
		return CUBLAS_STATUS_INVALID_VALUE;
	*mode = handle->atomics;
	return CUBLAS_STATUS_SUCCESS;
}

/* Nothing here needs a workspace. NVIDIA's library, too, takes one that is not aligned. */
static cublasStatus_t soft_cublasSetWorkspace_v2(cublasHandle_t handle, void *workspace,
						 size_t size)
{
	(void)handle;
	if (size && !workspace)
		return CUBLAS_STATUS_INVALID_VALUE;
	return CUBLAS_STATUS_SUCCESS;
}

const struct soft_symbol soft_blas_handle[] = {
	SOFT_ONE(Create_v2),	     SOFT_ONE(Destroy_v2),	SOFT_ONE(SetStream_v2),
	SOFT_ONE(SetPointerMode_v2), SOFT_ONE(GetVersion_v2),	SOFT_ONE(GetProperty),
	SOFT_ONE(SetMathMode),	     SOFT_ONE(GetMathMode),	SOFT_ONE(SetAtomicsMode),
	SOFT_ONE(GetAtomicsMode),    SOFT_ONE(SetWorkspace_v2), {NULL, NULL}};
