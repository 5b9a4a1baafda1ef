// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * cusolverRf where arrays hold arrays, where the library says how long an array is, and where it
 * allocates memory for the program.
 */
#include <stdlib.h>

#include "qcu-library/shims/cusolver.h"

cusolverStatus_t cusolverRfCreate(cusolverRfHandle_t *handle)
{
	return (cusolverStatus_t)qcul_lib_create(&qcul_cusolver, KIND_cusolverRfHandle_t,
						 (void **)handle);
}

cusolverStatus_t cusolverRfDestroy(cusolverRfHandle_t handle)
{
	return (cusolverStatus_t)qcul_lib_destroy(&qcul_cusolver, KIND_cusolverRfHandle_t, handle);
}

static void pack_matrix(struct qcul_pack *p, int n, int nnz, const int *rows, const int *cols)
{
	qcul_lib_in(p, rows, ((uint64_t)n + 1) * sizeof(*rows));
	qcul_lib_in(p, cols, (uint64_t)nnz * sizeof(*cols));
}

cusolverStatus_t cusolverRfBatchSetupHost(int batch, int n, int nnz_a, int *rows_a, int *cols_a,
					  double *a[], int nnz_l, int *rows_l, int *cols_l,
					  double *l, int nnz_u, int *rows_u, int *cols_u, double *u,
					  int *order_p, int *order_q, cusolverRfHandle_t handle)
{
	struct qcul_object *o = qcul_lib_find(handle, KIND_cusolverRfHandle_t);
	static atomic_flag said = ATOMIC_FLAG_INIT;
	cusolverStatus_t status;
	struct qcul_pack p;
	double *all;
	size_t i;

	if (!o)
		return CUSOLVER_STATUS_NOT_INITIALIZED;
	/* As much as one message holds. */
	if (batch < 1 || batch > 65536 || n < 1 || n > 131072 || nnz_a < 1 || nnz_a > 262144 ||
	    nnz_l < 0 || nnz_l > 262144 || nnz_u < 0 || nnz_u > 262144 || !a)
		return CUSOLVER_STATUS_INVALID_VALUE;
	if ((uint64_t)batch * (uint64_t)nnz_a > QCU_LIB_ARGS_MAX / sizeof(*all))
		return CUSOLVER_STATUS_ALLOC_FAILED;
	all = malloc((size_t)batch * (size_t)nnz_a * sizeof(*all));
	if (!all)
		return CUSOLVER_STATUS_ALLOC_FAILED;
	for (i = 0; i < (size_t)batch * (size_t)nnz_a; i++)
		all[i] = a[i / (size_t)nnz_a][i % (size_t)nnz_a];
	qcul_lib_begin(&p, &qcul_cusolver, qcul_number_cusolverRfBatchSetupHost);
	qcul_lib_object(&p, handle, KIND_cusolverRfHandle_t);
	qcul_lib_value(&p, (uint64_t)batch);
	qcul_lib_value(&p, (uint64_t)n);
	qcul_lib_value(&p, (uint64_t)nnz_a);
	qcul_lib_value(&p, (uint64_t)nnz_l);
	qcul_lib_value(&p, (uint64_t)nnz_u);
	pack_matrix(&p, n, nnz_a, rows_a, cols_a);
	qcul_lib_in(&p, all, (uint64_t)batch * (uint64_t)nnz_a * sizeof(*all));
	pack_matrix(&p, n, nnz_l, rows_l, cols_l);
	qcul_lib_in(&p, l, (uint64_t)nnz_l * sizeof(*l));
	pack_matrix(&p, n, nnz_u, rows_u, cols_u);
	qcul_lib_in(&p, u, (uint64_t)nnz_u * sizeof(*u));
	qcul_lib_in(&p, order_p, (uint64_t)n * sizeof(*order_p));
	qcul_lib_in(&p, order_q, (uint64_t)n * sizeof(*order_q));
	status = (cusolverStatus_t)qcul_lib_ask(&p);
	if (!status)
		o->own = (void *)(uintptr_t)batch;
	else if (status == CUSOLVER_STATUS_NOT_SUPPORTED)
		qcul_lib_unserved(&qcul_cusolver,
				  "cusolverRfBatchSetupHost (the host's version crashes in it)",
				  &said);
	free(all);
	return status;
}

cusolverStatus_t cusolverRfBatchZeroPivot(cusolverRfHandle_t handle, int *position)
{
	const struct qcul_object *o = qcul_lib_find(handle, KIND_cusolverRfHandle_t);
	struct qcul_pack p;

	if (!o)
		return CUSOLVER_STATUS_NOT_INITIALIZED;
	if (!position)
		return CUSOLVER_STATUS_INVALID_VALUE;
	qcul_lib_begin(&p, &qcul_cusolver, qcul_number_cusolverRfBatchZeroPivot);
	qcul_lib_object(&p, handle, KIND_cusolverRfHandle_t);
	qcul_lib_out(&p, position, (uint64_t)(uintptr_t)o->own * sizeof(*position));
	qcul_lib_report(&p);
	return (cusolverStatus_t)qcul_lib_ask(&p);
}

/* Where the program wants a matrix, and the memory that it gets. */
struct wanted {
	int *nnz, **rows, **cols;
	double **values;
	int *row, *col;
	double *value;
};

/* said: the dimension, and how many elements each of the matrices has. */
static cusolverStatus_t ask_factors(cusolverRfHandle_t handle, uint16_t function, struct wanted *w,
				    unsigned int count, int64_t said[3])
{
	const int64_t have[3] = {said[0], said[1], said[2]};
	struct qcul_pack p;
	unsigned int i;

	qcul_lib_begin(&p, &qcul_cusolver, function);
	qcul_lib_object(&p, handle, KIND_cusolverRfHandle_t);
	qcul_lib_out(&p, said, 3 * sizeof(*said));
	for (i = 0; i < count; i++) {
		const uint64_t nnz = (uint64_t)have[1 + i];

		qcul_lib_out(&p, w[i].row, ((uint64_t)have[0] + 1) * sizeof(int));
		qcul_lib_out(&p, w[i].col, nnz * sizeof(int));
		qcul_lib_out(&p, w[i].value, nnz * sizeof(double));
	}
	return (cusolverStatus_t)qcul_lib_ask(&p);
}

static bool make_room(struct wanted *w, int64_t n, int64_t nnz)
{
	w->row = malloc(((size_t)n + 1) * sizeof(int));
	w->col = malloc((size_t)nnz * sizeof(int) + 1);
	w->value = malloc((size_t)nnz * sizeof(double) + 1);
	return w->row && w->col && w->value;
}

static cusolverStatus_t extract_factors(cusolverRfHandle_t handle, uint16_t function,
					struct wanted *w, unsigned int count)
{
	int64_t said[3] = {0}, before[3];
	cusolverStatus_t status = CUSOLVER_STATUS_SUCCESS;
	unsigned int i;

	for (i = 0; i < count; i++)
		if (!w[i].nnz || !w[i].rows || !w[i].cols || !w[i].values)
			status = CUSOLVER_STATUS_INVALID_VALUE;
	if (!status)
		status = ask_factors(handle, function, w, count, said);
	if (!status &&
	    (uint64_t)said[0] + (uint64_t)said[1] + (uint64_t)said[2] > QCU_LIB_OUTS_MAX / 16)
		status = CUSOLVER_STATUS_ALLOC_FAILED;
	for (i = 0; i < count && !status; i++)
		if (!make_room(&w[i], said[0], said[1 + i]))
			status = CUSOLVER_STATUS_ALLOC_FAILED;
	for (i = 0; i < 3; i++)
		before[i] = said[i];
	if (!status)
		status = ask_factors(handle, function, w, count, said);
	/* Another thread has set up other matrices meanwhile. */
	for (i = 0; i < 3 && !status; i++)
		if (before[i] != said[i])
			status = CUSOLVER_STATUS_INTERNAL_ERROR;
	for (i = 0; i < count; i++) {
		if (status) {
			free(w[i].row);
			free(w[i].col);
			free(w[i].value);
			continue;
		}
		*w[i].nnz = (int)said[1 + i];
		*w[i].rows = w[i].row;
		*w[i].cols = w[i].col;
		*w[i].values = w[i].value;
	}
	return status;
}

cusolverStatus_t cusolverRfExtractBundledFactorsHost(cusolverRfHandle_t handle, int *nnz,
						     int **rows, int **cols, double **values)
{
	struct wanted w = {.nnz = nnz, .rows = rows, .cols = cols, .values = values};

	return extract_factors(handle, qcul_number_cusolverRfExtractBundledFactorsHost, &w, 1);
}

cusolverStatus_t cusolverRfExtractSplitFactorsHost(cusolverRfHandle_t handle, int *nnz_l,
						   int **rows_l, int **cols_l, double **l,
						   int *nnz_u, int **rows_u, int **cols_u,
						   double **u)
{
	struct wanted w[2] = {{.nnz = nnz_l, .rows = rows_l, .cols = cols_l, .values = l},
			      {.nnz = nnz_u, .rows = rows_u, .cols = cols_u, .values = u}};

	return extract_factors(handle, qcul_number_cusolverRfExtractSplitFactorsHost, w, 2);
}
