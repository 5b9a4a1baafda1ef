// SPDX-License-Identifier: GPL-2.0-or-later
/* The objects of cuSOLVER in the mirror, and the structure of sparse matrices. */
#include <string.h>

#include "qcu-device/libs/cusolver.h"
#include "qcu-device/libs/impl.h"

const struct lib_kind lib_cusolver_kinds[QCU_LIB_KINDS] = {
	[QCU_LIB_CUSOLVER_DN] =
		{
			.numbered = true,
			.bare = true,
			.create = "cusolverDnCreate",
			.destroy = "cusolverDnDestroy",
			.stream = "cusolverDnSetStream",
		},
	[QCU_LIB_CUSOLVER_SP] =
		{
			.numbered = true,
			.bare = true,
			.create = "cusolverSpCreate",
			.destroy = "cusolverSpDestroy",
			.stream = "cusolverSpSetStream",
		},
	/* It works in the stream that is set to none: the device's own. */
	[QCU_LIB_CUSOLVER_RF] =
		{
			.numbered = true,
			.create = "cusolverRfCreate",
			.destroy = "cusolverRfDestroy",
		},
	[QCU_LIB_CUSOLVER_QR] =
		{
			.numbered = true,
			.create = "cusolverSpCreateCsrqrInfo",
			.destroy = "cusolverSpDestroyCsrqrInfo",
		},
	/* cuSOLVER is linked with cuSPARSE, so its own functions are found through it. */
	[QCU_LIB_CUSPARSE_MATRIX] =
		{
			.create = "cusparseCreateMatDescr",
			.destroy = "cusparseDestroyMatDescr",
			.of = &lib_cusparse,
		},
	[QCU_LIB_CUSOLVER_PARAMS] =
		{
			.create = "cusolverDnCreateParams",
			.destroy = "cusolverDnDestroyParams",
		},
	[QCU_LIB_CUSOLVER_SYEVJ] =
		{
			.create = "cusolverDnCreateSyevjInfo",
			.destroy = "cusolverDnDestroySyevjInfo",
		},
	[QCU_LIB_CUSOLVER_GESVDJ] =
		{
			.create = "cusolverDnCreateGesvdjInfo",
			.destroy = "cusolverDnDestroyGesvdjInfo",
		},
};

enum { SWEEPS, RESIDUAL, INDEX_BASE = 4, VERSION };
const char *const lib_cusolver_helpers[LIB_HELPERS] = {
	"cusolverDnXsyevjGetSweeps",	"cusolverDnXsyevjGetResidual", "cusolverDnXgesvdjGetSweeps",
	"cusolverDnXgesvdjGetResidual", "cusparseGetMatIndexBase",     "cusolverGetVersion"};

bool lib_cusolver_before(struct lib_call *c, int version)
{
	int (*get_version)(int *version) = NULL;
	int has = 0;

	*(void **)&get_version = lib_helper(c, VERSION);
	return !get_version || get_version(&has) || has < version;
}

int lib_cusolver_said(struct lib_call *c, int status, void *info, unsigned int which, int64_t *said)
{
	int (*get_sweeps)(void *handle, void *info, int *sweeps) = NULL;
	int (*get_residual)(void *handle, void *info, double *residual) = NULL;
	double residual = 0;
	int sweeps = 0;

	if (status || !info || !said)
		return status;
	*(void **)&get_sweeps = lib_helper(c, (uint16_t)(which + SWEEPS));
	*(void **)&get_residual = lib_helper(c, (uint16_t)(which + RESIDUAL));
	said[2] = c->lib->unserved;
	if (get_sweeps && get_residual)
		said[2] = get_sweeps(c->object->native, info, &sweeps);
	if (!said[2])
		said[2] = get_residual(c->object->native, info, &residual);
	said[0] = sweeps;
	memcpy(&said[1], &residual, sizeof(residual));
	return status;
}

/* ---- the structure of sparse matrices ---- */

/* Rows follow one another, and in each of them columns rise. base: 0 or 1. */
static bool is_csr(const int32_t *rows, const int32_t *cols, const struct lib_csr *csr)
{
	const int base = csr->base;
	uint64_t row, at = 0, end;

	if (rows[0] != base)
		return false;
	for (row = 0; row < csr->n; row++) {
		int64_t last = base - 1;

		end = (uint64_t)((int64_t)rows[row + 1] - base);
		if (rows[row + 1] < rows[row] || end > csr->nnz)
			return false;
		for (; at < end; at++) {
			if (cols[at] <= last || cols[at] >= (int64_t)csr->width + base)
				return false;
			last = cols[at];
		}
	}
	return at == csr->nnz;
}

/* Copies it from the GPU. What the guest writes there meanwhile has no effect on the copy. */
static bool fetch_part(struct lib_call *c, void *to, const void *from, uint64_t bytes)
{
	const struct be_ops *ops = c->c->m->cfg.ops;
	const uint64_t at = (uintptr_t)from;

	if (!to || c->rc)
		return false;
	if (!bytes)
		return true;
	c->rc = mir_device_range(c->c, at, bytes);
	if (!c->rc)
		c->rc = ops->copy_d2h(c->c->m->be, to, at, bytes, c->ref->s);
	if (!c->rc)
		c->rc = ops->stream_sync(c->c->m->be, c->ref->s);
	return !c->rc;
}

/* Puts the checked copy into memory that the guest does not know. */
static bool put_on_gpu(struct lib_call *c, struct lib_csr *csr, const int32_t *host,
		       uint64_t row_bytes, uint64_t col_bytes)
{
	const struct be_ops *ops = c->c->m->cfg.ops;
	struct be *be = c->c->m->be;
	const unsigned int device = c->c->cmd->device;
	const uint64_t second = (row_bytes + 255) & ~255ull;

	c->rc = mir_take_memory(c->c->m, device, second + col_bytes);
	if (c->rc)
		return false;
	csr->bytes = second + col_bytes;
	c->rc = ops->mem_alloc(be, device, csr->bytes, &csr->memory);
	if (!c->rc)
		c->rc = ops->copy_h2d(be, csr->memory, host, row_bytes, c->ref->s);
	if (!c->rc && col_bytes)
		c->rc = ops->copy_h2d(be, csr->memory + second, (const char *)host + row_bytes,
				      col_bytes, c->ref->s);
	if (!c->rc)
		c->rc = ops->stream_sync(be, c->ref->s);
	csr->rows = (const void *)(uintptr_t)csr->memory;
	csr->cols = (const void *)(uintptr_t)(csr->memory + second);
	return !c->rc;
}

/* Modulo the prime 2^61 - 1. */
static uint64_t reduce(unsigned __int128 x)
{
	const uint64_t prime = (1ull << 61) - 1;
	uint64_t sum = (uint64_t)(x & prime) + (uint64_t)(x >> 61);

	return sum >= prime ? sum - prime : sum;
}

/*
 * The value of a polynomial at a secret place. Two structures of the same size that differ have the
 * same one at less than one place in 10^10, whoever chose them.
 */
static uint64_t hash_structure(uint64_t secret, const int32_t *rows, const int32_t *cols,
			       const struct lib_csr *csr)
{
	uint64_t hash = 1, i;

	for (i = 0; i <= csr->n; i++)
		hash = reduce((unsigned __int128)hash * secret + (uint32_t)rows[i]);
	for (i = 0; i < csr->nnz; i++)
		hash = reduce((unsigned __int128)hash * secret + (uint32_t)cols[i]);
	return hash;
}

int lib_csr_copy(struct lib_call *c, struct lib_csr *csr)
{
	const uint64_t row_bytes = (csr->n + 1) * sizeof(int32_t);
	const uint64_t col_bytes = csr->nnz * sizeof(int32_t);
	const int32_t *rows = csr->rows, *cols = csr->cols;

	/* It needs a stream in which it can wait, so it is no part of a graph. */
	if (!c->ref)
		return c->lib->unserved;
	if (!rows || (!cols && csr->nnz))
		return CUSOLVER_STATUS_INVALID_VALUE;
	if (csr->device) {
		char *host = lib_scratch(c, row_bytes + col_bytes);

		if (!fetch_part(c, host, rows, row_bytes) ||
		    !fetch_part(c, host + row_bytes, cols, col_bytes))
			return CUSOLVER_STATUS_INVALID_VALUE;
		rows = (const int32_t *)host;
		cols = rows + csr->n + 1;
	}
	if (!is_csr(rows, cols, csr))
		return CUSOLVER_STATUS_INVALID_VALUE;
	if (csr->secret)
		csr->hash = hash_structure(csr->secret, rows, cols, csr);
	return !csr->device || put_on_gpu(c, csr, rows, row_bytes, col_bytes)
		       ? CUSOLVER_STATUS_SUCCESS
		       : CUSOLVER_STATUS_ALLOC_FAILED;
}

int lib_order_copy(struct lib_call *c, struct lib_csr *order)
{
	const uint64_t bytes = order->n * sizeof(int32_t);
	const int32_t *at = order->rows;
	unsigned char *seen = lib_scratch(c, (order->device ? bytes : 0) + order->n);
	uint64_t i;

	if (!c->ref)
		return c->lib->unserved;
	if (!at || !seen)
		return CUSOLVER_STATUS_INVALID_VALUE;
	if (order->device) {
		if (!fetch_part(c, seen, at, bytes))
			return CUSOLVER_STATUS_INVALID_VALUE;
		at = (const int32_t *)seen;
		seen += bytes;
	}
	memset(seen, 0, order->n);
	for (i = 0; i < order->n; i++)
		if (at[i] < 0 || (uint64_t)at[i] >= order->n || seen[at[i]]++)
			return CUSOLVER_STATUS_INVALID_VALUE;
	return !order->device || put_on_gpu(c, order, at, bytes, 0) ? CUSOLVER_STATUS_SUCCESS
								    : CUSOLVER_STATUS_ALLOC_FAILED;
}

int lib_csr_base(struct lib_call *c, cusparseMatDescr_t descr)
{
	__typeof__(&cusparseGetMatIndexBase) get_base = lib_helper(c, INDEX_BASE);

	if (!get_base)
		return -c->lib->unserved;
	if (!descr)
		return -CUSOLVER_STATUS_INVALID_VALUE;
	return get_base(descr) == CUSPARSE_INDEX_BASE_ONE;
}

int lib_csr_begin(struct lib_call *c, struct lib_csr *csr, cusparseMatDescr_t descr)
{
	csr->base = lib_csr_base(c, descr);
	return csr->base < 0 ? -csr->base : lib_csr_copy(c, csr);
}

void lib_csr_end(struct lib_call *c, struct lib_csr *csr)
{
	const struct be_ops *ops = c->c->m->cfg.ops;

	if (csr->memory) {
		(void)ops->stream_sync(c->c->m->be, c->ref->s);
		(void)ops->mem_free(c->c->m->be, csr->memory);
	}
	if (csr->bytes)
		mir_give_memory(c->c->m, c->c->cmd->device, csr->bytes);
}
