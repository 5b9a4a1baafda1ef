// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The software GPU with a cuSOLVER that factors nothing: it checks that what it gets is right, and
 * comes in the right order, and that structures on the GPU are not the program's own. What must not
 * reach it gets CUSOLVER_STATUS_ARCH_MISMATCH.
 */
#include <stdlib.h>
#include <string.h>

#define DISABLE_CUSOLVER_DEPRECATED
#include <cusolverRf.h>
#include <cusolverSp.h>

#include "qcu-device/backend/backend.h"
#include "tests/loopback/libs/stand_in.h"

static struct be_ops ops, cusparse; /* the addresses are the libraries */

/* Any of the library's objects. */
struct made {
	int n, nnz, batch, state, factorization, way;
	double zero, boost;
};

#define NEED(condition)                                       \
	do {                                                  \
		if (!(condition))                             \
			return CUSOLVER_STATUS_ARCH_MISMATCH; \
	} while (0)

static int create(void *to)
{
	struct made *m = calloc(1, sizeof(*m));

	memcpy(to, &m, sizeof(m));
	return m ? CUSOLVER_STATUS_SUCCESS : CUSOLVER_STATUS_ALLOC_FAILED;
}

static int destroy(void *at)
{
	free(at);
	return CUSOLVER_STATUS_SUCCESS;
}

static int set_stream(void *handle, void *stream)
{
	(void)handle;
	(void)stream;
	return CUSOLVER_STATUS_SUCCESS;
}

/* What the program says, which is in the same process. */
static int get_version(int *version)
{
	const char *said = getenv("STAND_IN_VERSION");

	*version = said ? atoi(said) : 0;
	return said ? CUSOLVER_STATUS_SUCCESS : CUSOLVER_STATUS_INVALID_VALUE;
}

static cusparseIndexBase_t get_base(const cusparseMatDescr_t descr)
{
	(void)descr;
	return CUSPARSE_INDEX_BASE_ZERO;
}

/* It believes the structure. On the GPU it spoils it, since it is a copy. */
static int follow(int n, int nnz, int *rows, int *cols, int spoil)
{
	int i;

	NEED(rows && rows[0] == 0 && rows[n] == nnz);
	for (i = 0; i < nnz; i++)
		NEED(cols[i] >= 0 && cols[i] < n);
	if (spoil) {
		memset(rows, 0x5a, sizeof(*rows) * ((size_t)n + 1));
		memset(cols, 0x5a, sizeof(*cols) * (size_t)nnz);
	}
	return CUSOLVER_STATUS_SUCCESS;
}

static int follow_order(int n, int *order, int spoil)
{
	int i, sum = 0;

	for (i = 0; i < n; i++) {
		NEED(order[i] >= 0 && order[i] < n);
		sum += order[i];
	}
	NEED(sum == n * (n - 1) / 2);
	if (spoil)
		memset(order, 0x5a, sizeof(*order) * (size_t)n);
	return CUSOLVER_STATUS_SUCCESS;
}

/* ---- cusolverRf ---- */

static int set_algorithms(struct made *m, int factorization, int way)
{
	m->factorization = factorization;
	m->way = way;
	return CUSOLVER_STATUS_SUCCESS;
}

static int get_algorithms(const struct made *m, int *factorization, int *way)
{
	*factorization = m->factorization;
	*way = m->way;
	return CUSOLVER_STATUS_SUCCESS;
}

static int set_properties(struct made *m, double zero, double boost)
{
	m->zero = zero;
	m->boost = boost;
	return CUSOLVER_STATUS_SUCCESS;
}

static int get_properties(const struct made *m, double *zero, double *boost)
{
	*zero = m->zero;
	*boost = m->boost;
	return CUSOLVER_STATUS_SUCCESS;
}

#define SETUP                                                                                 \
	int n, int nnz, int *rows, int *cols, double *a, int nnz_l, int *rows_l, int *cols_l, \
		double *l, int nnz_u, int *rows_u, int *cols_u, double *u, int *p, int *q,    \
		struct made *m

static int take_factors(SETUP, int spoil)
{
	NEED(a[nnz - 1] == 6 && l[nnz_l - 1] == 5 && u[nnz_u - 1] == 4);
	NEED(!follow(n, nnz, rows, cols, spoil) && !follow(n, nnz_l, rows_l, cols_l, spoil) &&
	     !follow(n, nnz_u, rows_u, cols_u, spoil));
	NEED(!follow_order(n, p, spoil) && !follow_order(n, q, spoil));
	*m = (struct made){.n = n,
			   .nnz = nnz,
			   .state = 1,
			   .factorization = m->factorization,
			   .way = m->way,
			   .zero = m->zero,
			   .boost = m->boost};
	return CUSOLVER_STATUS_SUCCESS;
}

static int set_up_host(SETUP)
{
	return take_factors(n, nnz, rows, cols, a, nnz_l, rows_l, cols_l, l, nnz_u, rows_u, cols_u,
			    u, p, q, m, 0);
}

static int set_up_device(SETUP)
{
	return take_factors(n, nnz, rows, cols, a, nnz_l, rows_l, cols_l, l, nnz_u, rows_u, cols_u,
			    u, p, q, m, 1);
}

static int set_up_batch(int batch, int n, int nnz, int *rows, int *cols, double **a, int nnz_l,
			int *rows_l, int *cols_l, double *l, int nnz_u, int *rows_u, int *cols_u,
			double *u, int *p, int *q, struct made *m)
{
	int status = take_factors(n, nnz, rows, cols, a[0], nnz_l, rows_l, cols_l, l, nnz_u, rows_u,
				  cols_u, u, p, q, m, 0);

	NEED(batch == 2 && a[1][0] == 7 && a[1][nnz - 1] == 12);
	m->batch = batch;
	return status;
}

static int reset(int n, int nnz, const int *rows, const int *cols, const double *values,
		 const int *p, const int *q, struct made *m)
{
	NEED(m->state > 0 && !m->batch && n == m->n && nnz == m->nnz && rows && cols && values &&
	     p && q);
	return CUSOLVER_STATUS_SUCCESS;
}

static int reset_batch(int batch, int n, int nnz, const int *rows, const int *cols,
		       double *const *values, const int *p, const int *q, struct made *m)
{
	NEED(m->state > 0 && batch == m->batch && n == m->n && nnz == m->nnz && rows && cols &&
	     values[1] && p && q);
	return CUSOLVER_STATUS_SUCCESS;
}

static int analyze(struct made *m)
{
	NEED(m->state > 0 && m->n);
	m->state = 2;
	return CUSOLVER_STATUS_SUCCESS;
}

static int refactor(struct made *m)
{
	NEED(m->state > 1);
	m->state = 3;
	return CUSOLVER_STATUS_SUCCESS;
}

static int solve(const struct made *m, const int *p, const int *q, int count, double *temp, int ldt,
		 double *x, int ldx)
{
	NEED(m->state == 3 && !m->batch && p && q && count == 1 && temp && ldt >= m->n && x &&
	     ldx >= m->n);
	return CUSOLVER_STATUS_SUCCESS;
}

static int solve_batch(const struct made *m, const int *p, const int *q, int count, double *temp,
		       int ldt, double **x, int ldx)
{
	NEED(m->state == 3 && m->batch && p && q && count == 1 && temp && ldt >= m->n && x[1] &&
	     ldx >= m->n);
	return CUSOLVER_STATUS_SUCCESS;
}

static int zero_pivot(const struct made *m, int *position)
{
	NEED(m->state > 1 && m->batch);
	memset(position, 0xff, sizeof(*position) * (size_t)m->batch);
	return CUSOLVER_STATUS_SUCCESS;
}

static int access_factors(struct made *m, int *nnz, int **rows, int **cols, double **values)
{
	NEED(m->state == 3 && !m->batch);
	*nnz = m->nnz;
	*rows = *cols = NULL;
	*values = (double *)m;
	return CUSOLVER_STATUS_SUCCESS;
}

/* All in the first matrix, none in a second. The caller frees it. */
static int extract(const struct made *m, int *nnz, int **rows, int **cols, double **values)
{
	static const int row[] = {0, 2, 3, 6}, col[] = {0, 2, 1, 0, 1, 2};
	static const double value[] = {1, 2, 3, 4, 5, 6};

	NEED(m->state == 3 && !m->batch && m->nnz == 6);
	*nnz = m->nnz;
	*rows = memcpy(malloc(sizeof(row)), row, sizeof(row));
	*cols = memcpy(malloc(sizeof(col)), col, sizeof(col));
	*values = memcpy(malloc(sizeof(value)), value, sizeof(value));
	return CUSOLVER_STATUS_SUCCESS;
}

static int extract_both(const struct made *m, int *nnz, int **rows, int **cols, double **values,
			int *nnz_u, int **rows_u, int **cols_u, double **values_u)
{
	*nnz_u = 0;
	*rows_u = calloc((size_t)m->n + 1, sizeof(**rows_u));
	*cols_u = NULL;
	*values_u = NULL;
	return extract(m, nnz, rows, cols, values);
}

/* ---- csrqrInfo_t ---- */

static int analyze_qr(void *h, int m, int n, int nnz, void *descr, int *rows, int *cols,
		      struct made *info)
{
	NEED(h && m == n && descr && !follow(n, nnz, rows, cols, 1));
	info->n = n;
	info->nnz = nnz;
	return CUSOLVER_STATUS_SUCCESS;
}

static int size_of_qr(void *h, int m, int n, int nnz, void *descr, const double *values, int *rows,
		      int *cols, int batch, struct made *info, size_t *internal, size_t *work)
{
	NEED(h && m == info->n && nnz == info->nnz && descr && values &&
	     !follow(n, nnz, rows, cols, 1));
	NEED(batch > 0);
	info->batch = batch;
	*internal = 1000;
	*work = 10 * (size_t)batch;
	return CUSOLVER_STATUS_SUCCESS;
}

static int solve_qr(void *h, int m, int n, int nnz, void *descr, const double *values, int *rows,
		    int *cols, const double *b, double *x, int batch, struct made *info,
		    void *buffer)
{
	NEED(h && m == info->n && nnz == info->nnz && descr && values && b && x && buffer &&
	     batch <= info->batch && !follow(n, nnz, rows, cols, 1));
	return CUSOLVER_STATUS_SUCCESS;
}

/* ---- others ---- */

static int eigenvalue(void *h, int m, int nnz, void *descr, const cuDoubleComplex *values,
		      int *rows, int *cols, cuDoubleComplex near, const cuDoubleComplex *x0,
		      int most, double tol, cuDoubleComplex *mu, cuDoubleComplex *x)
{
	NEED(h && descr && values && near.x == 2 && near.y == -3 && x0 && most == 5 && tol == 0.5 &&
	     mu && x);
	return follow(m, nnz, rows, cols, 1);
}

static int order_rows(void *h, int n, int nnz, void *descr, int *rows, int *cols, int *order)
{
	int i;

	NEED(h && descr && !follow(n, nnz, rows, cols, 0));
	for (i = 0; i < n; i++)
		order[i] = n - 1 - i;
	return CUSOLVER_STATUS_SUCCESS;
}

static int least_squares(void *h, int m, int n, int nnz, void *descr, const double *values,
			 int *rows, int *cols, const double *b, double tol, int *rank, double *x,
			 int *p, double *norm)
{
	NEED(h && descr && m == n && values && tol == 0.5 && !follow(n, nnz, rows, cols, 0));
	*rank = n;
	memcpy(x, b, sizeof(*x) * (size_t)n);
	memset(p, 0, sizeof(*p) * (size_t)n);
	*norm = 0.25;
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
	static const struct stand_in all[] = {
		{"cusolverSpCreate", (void *)create},
		{"cusolverSpDestroy", (void *)destroy},
		{"cusolverSpSetStream", (void *)set_stream},
		{"cusolverSpCreateCsrqrInfo", (void *)create},
		{"cusolverSpDestroyCsrqrInfo", (void *)destroy},
		{"cusparseCreateMatDescr", (void *)create},
		{"cusparseDestroyMatDescr", (void *)destroy},
		{"cusparseGetMatIndexBase", (void *)get_base},
		{"cusolverGetVersion", (void *)get_version},
		{"cusolverRfCreate", (void *)create},
		{"cusolverRfDestroy", (void *)destroy},
		{"cusolverRfSetAlgs", (void *)set_algorithms},
		{"cusolverRfGetAlgs", (void *)get_algorithms},
		{"cusolverRfSetNumericProperties", (void *)set_properties},
		{"cusolverRfGetNumericProperties", (void *)get_properties},
		{"cusolverRfSetupHost", (void *)set_up_host},
		{"cusolverRfSetupDevice", (void *)set_up_device},
		{"cusolverRfBatchSetupHost", (void *)set_up_batch},
		{"cusolverRfResetValues", (void *)reset},
		{"cusolverRfBatchResetValues", (void *)reset_batch},
		{"cusolverRfAnalyze", (void *)analyze},
		{"cusolverRfBatchAnalyze", (void *)analyze},
		{"cusolverRfRefactor", (void *)refactor},
		{"cusolverRfBatchRefactor", (void *)refactor},
		{"cusolverRfSolve", (void *)solve},
		{"cusolverRfBatchSolve", (void *)solve_batch},
		{"cusolverRfBatchZeroPivot", (void *)zero_pivot},
		{"cusolverRfAccessBundledFactorsDevice", (void *)access_factors},
		{"cusolverRfExtractBundledFactorsHost", (void *)extract},
		{"cusolverRfExtractSplitFactorsHost", (void *)extract_both},
		{"cusolverSpXcsrqrAnalysisBatched", (void *)analyze_qr},
		{"cusolverSpDcsrqrBufferInfoBatched", (void *)size_of_qr},
		{"cusolverSpDcsrqrsvBatched", (void *)solve_qr},
		{"cusolverSpScsrqrsvBatched", (void *)solve_qr},
		{"cusolverSpZcsreigvsi", (void *)eigenvalue},
		{"cusolverSpXcsrsymrcmHost", (void *)order_rows},
		{"cusolverSpDcsrlsqvqrHost", (void *)least_squares},
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
