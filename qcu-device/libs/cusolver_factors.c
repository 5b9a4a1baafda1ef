// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Factors of sparse matrices that stay in cuSOLVER: QR factors of many matrices with one structure
 * (csrqrInfo_t), and LU factors that are computed again for other values (cusolverRf). The library
 * believes that the calls come in the right order, that the sizes and the structure are those of
 * the first call, and follows structures and orders of rows. So all of this is checked here.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "qcu-device/libs/cusolver.h"
#include "qcu-device/libs/impl.h"

/* ---- QR ---- */

/* What has been analyzed. n is 0: nothing. */
struct qr {
	uint64_t secret, hash, m, n, nnz;
	int base, most; /* matrices for which memory has been asked */
	char type;
};

static struct qr *own_of_info(struct lib_call *c)
{
	struct lib_object *o = c->second->library;
	struct qr *qr = o->own;

	if (qr)
		return qr;
	qr = calloc(1, sizeof(*qr));
	if (qr && getrandom(&qr->secret, sizeof(qr->secret), 0) != (ssize_t)sizeof(qr->secret)) {
		free(qr);
		qr = NULL;
	}
	if (qr)
		qr->secret = qr->secret >> 3 | 1;
	o->own = qr;
	return qr;
}

int lib_through_cusolverSpXcsrqrAnalysisBatched(struct lib_call *c, cusolverSpHandle_t h, int m,
						int n, int nnz, cusparseMatDescr_t descr,
						const int *rows, const int *cols, csrqrInfo_t info)
{
	struct lib_csr csr = {.rows = rows,
			      .cols = cols,
			      .n = (uint64_t)m,
			      .width = (uint64_t)n,
			      .nnz = (uint64_t)nnz,
			      .device = true};
	struct qr *qr = own_of_info(c);
	int status;

	if (!qr)
		return CUSOLVER_STATUS_ALLOC_FAILED;
	csr.secret = qr->secret;
	qr->n = 0;
	qr->most = 0;
	status = lib_csr_begin(c, &csr, descr);
	if (!status)
		status = ((__typeof__(&cusolverSpXcsrqrAnalysisBatched))c->fn)(
			h, m, n, nnz, descr, csr.rows, csr.cols, info);
	lib_csr_end(c, &csr);
	if (!status) {
		qr->hash = csr.hash;
		qr->m = csr.n;
		qr->n = csr.width;
		qr->nnz = csr.nnz;
		qr->base = csr.base;
	}
	return status;
}

/* The structure must be the one that has been analyzed. */
static int begin_again(struct lib_call *c, struct lib_csr *csr, cusparseMatDescr_t descr)
{
	const struct qr *qr = c->second->library->own;
	int status;

	csr->device = true;
	if (!qr || !qr->n || csr->n != qr->m || csr->width != qr->n || csr->nnz != qr->nnz)
		return CUSOLVER_STATUS_INVALID_VALUE;
	csr->secret = qr->secret;
	status = lib_csr_begin(c, csr, descr);
	if (!status && (csr->base != qr->base || csr->hash != qr->hash))
		status = CUSOLVER_STATUS_INVALID_VALUE;
	return status;
}

static void keep_most(struct lib_call *c, int status, char type, int batch)
{
	struct qr *qr = c->second->library->own;

	if (qr && qr->n) {
		qr->type = type;
		qr->most = status ? 0 : batch;
	}
}

static bool has_asked(struct lib_call *c, char type, int batch)
{
	const struct qr *qr = c->second->library->own;

	return qr && qr->type == type && batch <= qr->most;
}

#define STRUCTURE                                                                   \
	{                                                                           \
		.rows = rows, .cols = cols, .n = (uint64_t)m, .width = (uint64_t)n, \
		.nnz = (uint64_t)nnz,                                               \
	}

#define QR(letter, type)                                                                           \
	int lib_through_cusolverSp##letter##csrqrBufferInfoBatched(                                \
		struct lib_call *c, cusolverSpHandle_t h, int m, int n, int nnz,                   \
		cusparseMatDescr_t descr, const type *values, const int *rows, const int *cols,    \
		int batch, csrqrInfo_t info, size_t *internal, size_t *workspace)                  \
	{                                                                                          \
		struct lib_csr csr = STRUCTURE;                                                    \
		int status = internal && workspace ? begin_again(c, &csr, descr)                   \
						   : CUSOLVER_STATUS_INVALID_VALUE;                \
                                                                                                   \
		if (!status)                                                                       \
			status = ((__typeof__(&cusolverSp##letter##csrqrBufferInfoBatched))c->fn)( \
				h, m, n, nnz, descr, values, csr.rows, csr.cols, batch, info,      \
				internal, workspace);                                              \
		lib_csr_end(c, &csr);                                                              \
		keep_most(c, status, #letter[0], batch);                                           \
		return status;                                                                     \
	}                                                                                          \
	int lib_through_cusolverSp##letter##csrqrsvBatched(                                        \
		struct lib_call *c, cusolverSpHandle_t h, int m, int n, int nnz,                   \
		cusparseMatDescr_t descr, const type *values, const int *rows, const int *cols,    \
		const type *b, type *x, int batch, csrqrInfo_t info, void *buffer)                 \
	{                                                                                          \
		struct lib_csr csr = STRUCTURE;                                                    \
		int status = has_asked(c, #letter[0], batch) ? begin_again(c, &csr, descr)         \
							     : CUSOLVER_STATUS_INVALID_VALUE;      \
                                                                                                   \
		if (!status)                                                                       \
			status = ((__typeof__(&cusolverSp##letter##csrqrsvBatched))c->fn)(         \
				h, m, n, nnz, descr, values, csr.rows, csr.cols, b, x, batch,      \
				info, buffer);                                                     \
		lib_csr_end(c, &csr);                                                              \
		return status;                                                                     \
	}
QR(S, float)
QR(D, double)
QR(C, cuComplex)
QR(Z, cuDoubleComplex)

/* ---- LU factors that are computed again ---- */

enum { NEW, SET_UP, ANALYZED, FACTORED };
struct rf {
	int state, n, nnz;
	int batch; /* 0: one matrix, which the calls without "Batch" are for */
};

/* The matrix and its factors, and the orders of rows and columns. */
enum { A, L, U, P, Q, PARTS };
struct factors {
	struct lib_csr part[PARTS];
};

static int begin_factors(struct lib_call *c, struct factors *f, int n, bool device)
{
	int i, status = CUSOLVER_STATUS_SUCCESS;

	for (i = 0; i < PARTS && !status; i++) {
		f->part[i].n = f->part[i].width = (uint64_t)n;
		f->part[i].device = device;
		status = i < P ? lib_csr_copy(c, &f->part[i]) : lib_order_copy(c, &f->part[i]);
	}
	return status;
}

/* `status` says whether the library has all of it now. */
static int end_factors(struct lib_call *c, struct factors *f, int batch, int status)
{
	struct rf *rf = c->object->own;
	int i;

	for (i = 0; i < PARTS; i++)
		lib_csr_end(c, &f->part[i]);
	if (!rf)
		rf = c->object->own = calloc(1, sizeof(*rf));
	if (!rf)
		return CUSOLVER_STATUS_ALLOC_FAILED;
	rf->state = status ? NEW : SET_UP;
	rf->n = (int)f->part[A].n;
	rf->nnz = (int)f->part[A].nnz;
	rf->batch = batch;
	return status;
}

#define MATRIX(rows_, cols_, nnz_)                                    \
	{                                                             \
		.rows = rows_, .cols = cols_, .nnz = (uint64_t)(nnz_) \
	}
#define FACTORS                                                                          \
	{                                                                                \
		{                                                                        \
			MATRIX(rows_a, cols_a, nnz_a), MATRIX(rows_l, cols_l, nnz_l),    \
				MATRIX(rows_u, cols_u, nnz_u), {.rows = p}, {.rows = q}, \
		}                                                                        \
	}
#define CHECKED(part_)	      (void *)f.part[part_].rows
#define CHECKED_MATRIX(part_) CHECKED(part_), (void *)f.part[part_].cols

int lib_through_cusolverRfSetupHost(struct lib_call *c, int n, int nnz_a, const int *rows_a,
				    const int *cols_a, double *a, int nnz_l, const int *rows_l,
				    const int *cols_l, double *l, int nnz_u, const int *rows_u,
				    const int *cols_u, double *u, const int *p, const int *q,
				    cusolverRfHandle_t h)
{
	struct factors f = FACTORS;
	int status = a && (l || !nnz_l) && (u || !nnz_u) ? begin_factors(c, &f, n, false)
							 : CUSOLVER_STATUS_INVALID_VALUE;

	if (!status)
		status = ((__typeof__(&cusolverRfSetupHost))c->fn)(n, nnz_a, CHECKED_MATRIX(A), a,
								   nnz_l, CHECKED_MATRIX(L), l,
								   nnz_u, CHECKED_MATRIX(U), u,
								   CHECKED(P), CHECKED(Q), h);
	return end_factors(c, &f, 0, status);
}

int lib_through_cusolverRfSetupDevice(struct lib_call *c, int n, int nnz_a, const int *rows_a,
				      const int *cols_a, double *a, int nnz_l, const int *rows_l,
				      const int *cols_l, double *l, int nnz_u, const int *rows_u,
				      const int *cols_u, double *u, const int *p, const int *q,
				      cusolverRfHandle_t h)
{
	struct factors f = FACTORS;
	int status = begin_factors(c, &f, n, true);

	if (!status)
		status = ((__typeof__(&cusolverRfSetupDevice))c->fn)(n, nnz_a, CHECKED_MATRIX(A), a,
								     nnz_l, CHECKED_MATRIX(L), l,
								     nnz_u, CHECKED_MATRIX(U), u,
								     CHECKED(P), CHECKED(Q), h);
	return end_factors(c, &f, 0, status);
}

#define DIMENSION_MOST 131072
#define ELEMENTS_MOST  262144
#define BATCH_MOST     65536

static void *take_array(struct lib_call *c, uint64_t count, size_t size)
{
	uint64_t bytes;
	void *at = lib_in(c, &bytes);

	lib_sized(c, at, bytes, count * size);
	return at;
}

/*
 * NVIDIA's library before this version follows a wild pointer in cusolverRfBatchAnalyze and
 * cusolverRfBatchRefactor, whatever it has been given. They are only called after this function.
 */
#define BATCH_WORKS 12401

/* Values of all matrices lie behind each other in the message. */
int lib_do_cusolverRfBatchSetupHost(struct lib_call *c)
{
	cusolverRfHandle_t h = lib_object(c, KIND_cusolverRfHandle_t);
	const int batch = (int)lib_bounded(c, lib_value(c), 1, BATCH_MOST);
	const int n = (int)lib_bounded(c, lib_value(c), 1, DIMENSION_MOST);
	const int nnz_a = (int)lib_bounded(c, lib_value(c), 1, ELEMENTS_MOST);
	const int nnz_l = (int)lib_bounded(c, lib_value(c), 0, ELEMENTS_MOST);
	const int nnz_u = (int)lib_bounded(c, lib_value(c), 0, ELEMENTS_MOST);
	const int *rows_a = take_array(c, (uint64_t)n + 1, sizeof(int));
	const int *cols_a = take_array(c, (uint64_t)nnz_a, sizeof(int));
	double *a = take_array(c, (uint64_t)batch * (uint64_t)nnz_a, sizeof(*a));
	const int *rows_l = take_array(c, (uint64_t)n + 1, sizeof(int));
	const int *cols_l = take_array(c, (uint64_t)nnz_l, sizeof(int));
	double *l = take_array(c, (uint64_t)nnz_l, sizeof(*l));
	const int *rows_u = take_array(c, (uint64_t)n + 1, sizeof(int));
	const int *cols_u = take_array(c, (uint64_t)nnz_u, sizeof(int));
	double *u = take_array(c, (uint64_t)nnz_u, sizeof(*u));
	const int *p = take_array(c, (uint64_t)n, sizeof(int));
	const int *q = take_array(c, (uint64_t)n, sizeof(int));
	struct factors f = FACTORS;
	double **all;
	int status, i;

	if (!lib_ready(c))
		return 0;
	if (lib_cusolver_before(c, BATCH_WORKS))
		return CUSOLVER_STATUS_NOT_SUPPORTED;
	status = a && (l || !nnz_l) && (u || !nnz_u) ? begin_factors(c, &f, n, false)
						     : CUSOLVER_STATUS_INVALID_VALUE;
	all = status ? NULL : lib_scratch(c, (uint64_t)batch * sizeof(*all));
	if (!status && !all)
		status = CUSOLVER_STATUS_ALLOC_FAILED;
	for (i = 0; all && i < batch; i++)
		all[i] = a + (size_t)i * (size_t)nnz_a;
	if (!status)
		status = ((__typeof__(&cusolverRfBatchSetupHost))c->fn)(
			batch, n, nnz_a, CHECKED_MATRIX(A), all, nnz_l, CHECKED_MATRIX(L), l, nnz_u,
			CHECKED_MATRIX(U), u, CHECKED(P), CHECKED(Q), h);
	return end_factors(c, &f, batch, status);
}

/* NULL: a call for such factors is too early. */
static struct rf *find_factors(struct lib_call *c, int state, bool batch)
{
	struct rf *rf = c->object->own;

	return rf && rf->state >= state && !rf->batch == !batch ? rf : NULL;
}

/* The library has made the call, which brings the factors to this state. */
static int reach(struct lib_call *c, int status, int state)
{
	struct rf *rf = c->object->own;

	if (!status)
		rf->state = state;
	return status;
}

int lib_through_cusolverRfResetValues(struct lib_call *c, int n, int nnz, int *rows, int *cols,
				      double *values, int *p, int *q, cusolverRfHandle_t h)
{
	const struct rf *rf = find_factors(c, SET_UP, false);

	if (!rf)
		return CUSOLVER_STATUS_NOT_INITIALIZED;
	if (n != rf->n || nnz != rf->nnz)
		return CUSOLVER_STATUS_INVALID_VALUE;
	return reach(
		c, ((__typeof__(&cusolverRfResetValues))c->fn)(n, nnz, rows, cols, values, p, q, h),
		rf->state < ANALYZED ? SET_UP : ANALYZED);
}

int lib_through_cusolverRfBatchResetValues(struct lib_call *c, int batch, int n, int nnz, int *rows,
					   int *cols, double **values, int *p, int *q,
					   cusolverRfHandle_t h)
{
	const struct rf *rf = find_factors(c, SET_UP, true);

	if (!rf)
		return CUSOLVER_STATUS_NOT_INITIALIZED;
	if (batch != rf->batch || n != rf->n || nnz != rf->nnz)
		return CUSOLVER_STATUS_INVALID_VALUE;
	return reach(c,
		     ((__typeof__(&cusolverRfBatchResetValues))c->fn)(batch, n, nnz, rows, cols,
								      values, p, q, h),
		     rf->state < ANALYZED ? SET_UP : ANALYZED);
}

#define STEP(name, batch, needs, then)                                         \
	int lib_through_##name(struct lib_call *c, cusolverRfHandle_t h)       \
	{                                                                      \
		return find_factors(c, needs, batch)                           \
			       ? reach(c, ((__typeof__(&name))c->fn)(h), then) \
			       : CUSOLVER_STATUS_NOT_INITIALIZED;              \
	}
STEP(cusolverRfAnalyze, false, SET_UP, ANALYZED)
STEP(cusolverRfRefactor, false, ANALYZED, FACTORED)
STEP(cusolverRfBatchAnalyze, true, SET_UP, ANALYZED)
STEP(cusolverRfBatchRefactor, true, ANALYZED, FACTORED)

#define SOLVE(name, batch, type)                                                         \
	int lib_through_##name(struct lib_call *c, cusolverRfHandle_t h, int *p, int *q, \
			       int count, double *temp, int ldt, type xf, int ldxf)      \
	{                                                                                \
		const struct rf *rf = find_factors(c, FACTORED, batch);                  \
                                                                                         \
		if (!rf)                                                                 \
			return CUSOLVER_STATUS_NOT_INITIALIZED;                          \
		if (ldt < rf->n || ldxf < rf->n)                                         \
			return CUSOLVER_STATUS_INVALID_VALUE;                            \
		return ((__typeof__(&name))c->fn)(h, p, q, count, temp, ldt, xf, ldxf);  \
	}
SOLVE(cusolverRfSolve, false, double *)
SOLVE(cusolverRfBatchSolve, true, double **)

int lib_through_cusolverRfAccessBundledFactorsDevice(struct lib_call *c, cusolverRfHandle_t h,
						     int *nnz, int **rows, int **cols,
						     double **values)
{
	if (!find_factors(c, FACTORED, false))
		return CUSOLVER_STATUS_NOT_INITIALIZED;
	if (!nnz || !rows || !cols || !values)
		return CUSOLVER_STATUS_INVALID_VALUE;
	return ((__typeof__(&cusolverRfAccessBundledFactorsDevice))c->fn)(h, nnz, rows, cols,
									  values);
}

int lib_do_cusolverRfBatchZeroPivot(struct lib_call *c)
{
	cusolverRfHandle_t h = lib_object(c, KIND_cusolverRfHandle_t);
	uint64_t bytes;
	int *position = lib_out(c, &bytes);
	const struct rf *rf;

	if (!lib_ready(c))
		return 0;
	rf = find_factors(c, ANALYZED, true);
	if (!rf)
		return CUSOLVER_STATUS_NOT_INITIALIZED;
	if (!position || bytes != (uint64_t)rf->batch * sizeof(*position))
		return CUSOLVER_STATUS_INVALID_VALUE;
	return ((__typeof__(&cusolverRfBatchZeroPivot))c->fn)(h, position);
}

/* ---- factors for the program, in memory that the library allocates ---- */

struct extracted {
	int nnz, *rows, *cols;
	double *values;
};
struct wanted_part {
	void *at;
	uint64_t bytes;
};

static struct wanted_part take_part(struct lib_call *c)
{
	struct wanted_part r;

	r.at = lib_out(c, &r.bytes);
	return r;
}

static void give_part(const struct wanted_part *r, const void *from, uint64_t bytes)
{
	if (r->at && r->bytes == bytes && from)
		memcpy(r->at, from, bytes);
}

/* The guest asks for the sizes first, and then has room of these. */
static int extract(struct lib_call *c, struct extracted *e, unsigned int count)
{
	cusolverRfHandle_t h = lib_object(c, KIND_cusolverRfHandle_t);
	struct wanted_part size = take_part(c), room[2][3];
	int64_t said[3] = {0};
	const struct rf *rf;
	unsigned int i, k;
	int status;

	for (i = 0; i < count; i++)
		for (k = 0; k < 3; k++)
			room[i][k] = take_part(c);
	lib_sized(c, size.at, size.bytes, sizeof(said));
	if (!lib_ready(c))
		return 0;
	rf = find_factors(c, FACTORED, false);
	if (!rf)
		return CUSOLVER_STATUS_NOT_INITIALIZED;
	if (count == 1)
		status = ((__typeof__(&cusolverRfExtractBundledFactorsHost))c->fn)(
			h, &e[0].nnz, &e[0].rows, &e[0].cols, &e[0].values);
	else
		status = ((__typeof__(&cusolverRfExtractSplitFactorsHost))c->fn)(
			h, &e[0].nnz, &e[0].rows, &e[0].cols, &e[0].values, &e[1].nnz, &e[1].rows,
			&e[1].cols, &e[1].values);
	if (status)
		return status;
	said[0] = rf->n;
	for (i = 0; i < count; i++) {
		const uint64_t nnz = e[i].nnz < 0 ? 0 : (uint64_t)e[i].nnz;

		said[1 + i] = (int64_t)nnz;
		give_part(&room[i][0], e[i].rows, ((uint64_t)rf->n + 1) * sizeof(int));
		give_part(&room[i][1], e[i].cols, nnz * sizeof(int));
		give_part(&room[i][2], e[i].values, nnz * sizeof(double));
	}
	if (size.at)
		memcpy(size.at, said, sizeof(said));
	return CUSOLVER_STATUS_SUCCESS;
}

static int extract_and_free(struct lib_call *c, unsigned int count)
{
	struct extracted e[2] = {{0}};
	int status = extract(c, e, count);
	unsigned int i;

	for (i = 0; i < count; i++) {
		free(e[i].rows);
		free(e[i].cols);
		free(e[i].values);
	}
	return status;
}

int lib_do_cusolverRfExtractBundledFactorsHost(struct lib_call *c)
{
	return extract_and_free(c, 1);
}

int lib_do_cusolverRfExtractSplitFactorsHost(struct lib_call *c)
{
	return extract_and_free(c, 2);
}
