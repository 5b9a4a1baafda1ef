// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The software GPU with a cuSOLVER that solves nothing: it checks what it gets, and writes into the
 * structure of a matrix on the GPU, which must not be the program's own.
 */
#include <stdlib.h>
#include <string.h>

#define DISABLE_CUSOLVER_DEPRECATED
#include <cusolverDn.h>
#include <cusolverSp.h>

#include "qcu-device/backend/backend.h"
#include "tests/loopback/libs/stand_in.h"
#include "tests/loopback/libs/solver.h"

static struct be_ops ops, cusparse; /* the addresses are the libraries */

struct made {
	char kind; /* 's'parse handle, 'd'ense handle, 'm'atrix description, 'i'nfo */
	int base, sweeps;
	bool done;
};

static struct made *object(const void *at, char kind)
{
	struct made *m = (void *)(uintptr_t)at;

	return m && m->kind == kind ? m : NULL;
}

static int make(void *to, char kind)
{
	struct made *m = calloc(1, sizeof(*m));

	if (!m)
		return CUSOLVER_STATUS_ALLOC_FAILED;
	m->kind = kind;
	memcpy(to, &m, sizeof(m));
	return CUSOLVER_STATUS_SUCCESS;
}

#define NEED(condition)                                       \
	do {                                                  \
		if (!(condition))                             \
			return CUSOLVER_STATUS_INVALID_VALUE; \
	} while (0)

static int create_sparse(cusolverSpHandle_t *h)
{
	return make(h, 's');
}

static int create_dense(cusolverDnHandle_t *h)
{
	return make(h, 'd');
}

static int create_info(syevjInfo_t *info)
{
	return make(info, 'i');
}

static int create_matrix(cusparseMatDescr_t *descr)
{
	return make(descr, 'm');
}

static int destroy(void *at)
{
	free(at);
	return CUSOLVER_STATUS_SUCCESS;
}

static int set_stream(void *handle, cudaStream_t stream)
{
	(void)stream;
	NEED(object(handle, 's') || object(handle, 'd'));
	return CUSOLVER_STATUS_SUCCESS;
}

static cusparseStatus_t set_base(cusparseMatDescr_t descr, cusparseIndexBase_t base)
{
	struct made *m = object(descr, 'm');

	if (!m)
		return CUSPARSE_STATUS_INVALID_VALUE;
	m->base = (int)base;
	return CUSPARSE_STATUS_SUCCESS;
}

static cusparseIndexBase_t get_base(const cusparseMatDescr_t descr)
{
	return (cusparseIndexBase_t)((struct made *)(uintptr_t)descr)->base;
}

static int set_sweeps(syevjInfo_t info, int most)
{
	struct made *m = object(info, 'i');

	NEED(m && most > 0);
	m->sweeps = most;
	return CUSOLVER_STATUS_SUCCESS;
}

/* It believes the structure. */
static int follow(const struct made *descr, int n, int nnz, const int *rows, const int *cols)
{
	int i, sum = 0;

	NEED(descr && rows && cols && rows[0] == descr->base && rows[n] == nnz + descr->base);
	for (i = rows[0] - descr->base; i < rows[n] - descr->base; i++)
		sum |= cols[i];
	NEED(sum >= 0);
	return CUSOLVER_STATUS_SUCCESS;
}

static int solve(cusolverSpHandle_t h, int m, int nnz, const cusparseMatDescr_t descr,
		 const double *values, int *rows, int *cols, const double *b, double tol,
		 int reorder, double *x, int *singularity)
{
	NEED(object(h, 's') && values && b && tol == 0.5 && reorder == 1 && x && singularity);
	NEED(!follow(object(descr, 'm'), m, nnz, rows, cols));
	memset(rows, 0x5a, sizeof(*rows) * ((size_t)m + 1));
	memset(cols, 0x5a, sizeof(*cols) * (size_t)nnz);
	*singularity = SOLVER_SINGULAR;
	return CUSOLVER_STATUS_SUCCESS;
}

static int solve_host(cusolverSpHandle_t h, int n, int nnz, const cusparseMatDescr_t descr,
		      const double *values, const int *rows, const int *cols, const double *b,
		      double tol, int reorder, double *x, int *singularity)
{
	NEED(object(h, 's') && tol == 0.5 && reorder == 1 && values[nnz - 1] == 6);
	NEED(!follow(object(descr, 'm'), n, nnz, rows, cols));
	memcpy(x, b, sizeof(*x) * (size_t)n);
	*singularity = SOLVER_SINGULAR;
	return CUSOLVER_STATUS_SUCCESS;
}

static int syevj(cusolverDnHandle_t h, cusolverEigMode_t mode, cublasFillMode_t uplo, int n,
		 double *a, int lda, double *w, double *work, int size, int *status,
		 syevjInfo_t info)
{
	struct made *m = object(info, 'i');

	(void)uplo;
	NEED(object(h, 'd') && mode && n > 0 && a && lda >= n && w && work && size && status && m);
	m->done = true;
	return CUSOLVER_STATUS_SUCCESS;
}

static int get_sweeps(cusolverDnHandle_t h, syevjInfo_t info, int *sweeps)
{
	const struct made *m = object(info, 'i');

	NEED(object(h, 'd') && m && m->done);
	*sweeps = m->sweeps;
	return CUSOLVER_STATUS_SUCCESS;
}

static int get_residual(cusolverDnHandle_t h, syevjInfo_t info, double *residual)
{
	NEED(object(h, 'd') && object(info, 'i'));
	*residual = SOLVER_RESIDUAL;
	return CUSOLVER_STATUS_SUCCESS;
}

static void *open_library(struct be *be, const char *soname, char *why, size_t size)
{
	if (!strcmp(soname, "libcusolver.so.12"))
		return &ops;
	return strcmp(soname, "libcusparse.so.12") ? be_soft.lib_open(be, soname, why, size)
						   : &cusparse;
}

static void *symbol(struct be *be, void *library, const char *name)
{
	/* A library's functions are found through those that it is linked with. */
	static const struct stand_in all[] = {
		{"cusolverSpCreate", (void *)create_sparse},
		{"cusolverDnCreate", (void *)create_dense},
		{"cusolverDnCreateSyevjInfo", (void *)create_info},
		{"cusparseCreateMatDescr", (void *)create_matrix},
		{"cusolverSpDestroy", (void *)destroy},
		{"cusolverDnDestroy", (void *)destroy},
		{"cusolverDnDestroySyevjInfo", (void *)destroy},
		{"cusparseDestroyMatDescr", (void *)destroy},
		{"cusolverSpSetStream", (void *)set_stream},
		{"cusolverDnSetStream", (void *)set_stream},
		{"cusparseSetMatIndexBase", (void *)set_base},
		{"cusparseGetMatIndexBase", (void *)get_base},
		{"cusolverDnXsyevjSetMaxSweeps", (void *)set_sweeps},
		{"cusolverSpDcsrlsvqr", (void *)solve},
		{"cusolverSpDcsrlsvluHost", (void *)solve_host},
		{"cusolverDnDsyevj", (void *)syevj},
		{"cusolverDnXsyevjGetSweeps", (void *)get_sweeps},
		{"cusolverDnXsyevjGetResidual", (void *)get_residual},
	};

	if (library != &ops && library != &cusparse)
		return be_soft.lib_symbol(be, library, name);
	return library == &ops || !strncmp(name, "cusparse", 8) ? STAND_IN_FIND(all, name) : NULL;
}

__attribute__((visibility("default"))) const struct be_ops *be_plugin(void);

const struct be_ops *be_plugin(void)
{
	ops = be_soft;
	ops.lib_open = open_library;
	ops.lib_symbol = symbol;
	return &ops;
}
