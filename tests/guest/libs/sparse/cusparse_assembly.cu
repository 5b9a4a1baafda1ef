// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A matrix is put together from elements in any order: sorted by rows, by columns and within rows, taken back into the
 * order that they came in, and added to another matrix.
 */
#include <algorithm>

#include "sparse.h"

#define ROWS 30
#define COLS 22

/* The elements of a matrix in a mixed order, or mixed within their rows. */
struct mixed {
	std::vector<int> row, column;
	std::vector<double> values;

	mixed(const sparse<double> &a, bool within_rows) : row(a.nnz), column(a.nnz), values(a.nnz)
	{
		std::vector<int> order(a.nnz);

		for (int i = 0; i < a.nnz; i++)
			order[i] = i;
		std::sort(order.begin(), order.end(), [&](int i, int j) {
			int ri = within_rows ? a.row[i] : 0, rj = within_rows ? a.row[j] : 0;

			return ri != rj ? ri < rj : scramble((uint32_t)i, 5) < scramble((uint32_t)j, 5);
		});
		for (int i = 0; i < a.nnz; i++)
			row[i] = a.row[order[i]], column[i] = a.column[order[i]], values[i] = a.values[order[i]];
	}
};

/* Values in the order of a permutation: a sparse vector gathers them. */
static std::vector<double> permuted(const array<int> &order, const std::vector<double> &values)
{
	dense_vector<double> from(values);
	array<double> to(values.size());
	cusparseSpVecDescr_t vec;

	OK(cusparseCreateSpVec(&vec, (int64_t)to.size, (int64_t)to.size, order.gpu, to.gpu, CUSPARSE_INDEX_32I,
			       CUSPARSE_INDEX_BASE_ZERO, CUDA_R_64F));
	OK(cusparseGather(handle, from, vec));
	OK(cusparseDestroySpVec(vec));
	return to.host();
}

static void sorted(const sparse<double> &a, cusparseMatDescr_t descr)
{
	sparse<double> t(COLS, ROWS, applied(flipped, a.dense, ROWS, COLS));
	mixed m(a, false), w(a, true);
	array<int> row(m.row), column(m.column), order(a.nnz), within(w.column);
	size_t size = 0;

	FAILS(cusparseXcoosort_bufferSizeExt(NULL, ROWS, COLS, a.nnz, row, column, &size));
	FAILS(cusparseXcoosortByRow(NULL, ROWS, COLS, a.nnz, row, column, order, within));
	FAILS(cusparseCreateIdentityPermutation(NULL, a.nnz, order));
	OK(cusparseXcoosort_bufferSizeExt(handle, ROWS, COLS, a.nnz, row, column, &size));
	array<char> buffer(size + 1);

	OK(cusparseCreateIdentityPermutation(handle, a.nnz, order));
	OK(cusparseXcoosortByColumn(handle, ROWS, COLS, a.nnz, row, column, order, buffer));
	must_be("rows by columns", row.host(), t.column);
	must_be("columns", column.host(), t.row);
	must_be("values by columns", permuted(order, m.values), t.values);
	OK(cusparseCreateIdentityPermutation(handle, a.nnz, order));
	OK(cusparseXcoosortByRow(handle, ROWS, COLS, a.nnz, row, column, order, buffer));
	must_be("rows", row.host(), a.row);
	must_be("columns by rows", column.host(), a.column);
	same("sorted by columns, then by rows", permuted(order, t.values), a.values);

	OK(cusparseXcsrsort_bufferSizeExt(handle, ROWS, COLS, a.nnz, a.gpu_offsets, within, &size));
	array<char> more(size + 1);

	OK(cusparseCreateIdentityPermutation(handle, a.nnz, order));
	OK(cusparseXcsrsort(handle, ROWS, COLS, a.nnz, descr, a.gpu_offsets, within, order, more));
	must_be("columns within rows", within.host(), a.column);
	same("sorted within rows", permuted(order, w.values), a.values);

	/* The same arrays, as columns of the transpose. */
	within.set(w.column);
	OK(cusparseXcscsort_bufferSizeExt(handle, COLS, ROWS, a.nnz, a.gpu_offsets, within, &size));
	array<char> last(size + 1);

	OK(cusparseCreateIdentityPermutation(handle, a.nnz, order));
	OK(cusparseXcscsort(handle, COLS, ROWS, a.nnz, descr, a.gpu_offsets, within, order, last));
	same("sorted within columns", permuted(order, w.values), a.values);
}

/* To sorted, and back to how it was. */
static void there_and_back(const sparse<double> &a, cusparseMatDescr_t descr)
{
	mixed w(a, true);
	array<int> column(w.column);
	array<double> values(w.values);
	csru2csrInfo_t info;
	size_t size = 0;

	OK(cusparseCreateCsru2csrInfo(&info));
	OK(cusparseDcsru2csr_bufferSizeExt(handle, ROWS, COLS, a.nnz, values, a.gpu_offsets, column, info, &size));
	array<char> buffer(size + 1);

	OK(cusparseDcsru2csr(handle, ROWS, COLS, a.nnz, descr, values, a.gpu_offsets, column, info, buffer));
	must_be("sorted columns", column.host(), a.column);
	must_be("sorted values", values.host(), a.values);
	values.set(combined(2.0, a.values, 0.0, a.values));
	OK(cusparseDcsr2csru(handle, ROWS, COLS, a.nnz, descr, values, a.gpu_offsets, column, info, buffer));
	must_be("columns as before", column.host(), w.column);
	same("twice the values, in the order before", values.host(), combined(2.0, w.values, 0.0, w.values));
	OK(cusparseDestroyCsru2csrInfo(info));
}

/* 2 a - b. The scalars and the number of elements are in the GPU's memory. */
static void sum(const sparse<double> &a, cusparseMatDescr_t descr)
{
	sparse<double> b(ROWS, COLS, scattered<double>(ROWS, COLS));
	array<double> scalars(std::vector<double>{2, -1});
	array<int> offsets(ROWS + 1), total(1);
	const double *alpha = scalars, *beta = scalars + 1;
	size_t size = 0;
	int places = 0;

	for (int i = 0; i < ROWS * COLS; i++)
		places += a.dense[i] != 0 || b.dense[i] != 0;
	OK(cusparseSetPointerMode(handle, CUSPARSE_POINTER_MODE_DEVICE));
	OK(cusparseDcsrgeam2_bufferSizeExt(handle, ROWS, COLS, alpha, descr, a.nnz, a.gpu_values, a.gpu_offsets,
					   a.gpu_column, beta, descr, b.nnz, b.gpu_values, b.gpu_offsets, b.gpu_column,
					   descr, NULL, offsets, NULL, &size));
	array<char> buffer(size + 1);

	OK(cusparseXcsrgeam2Nnz(handle, ROWS, COLS, descr, a.nnz, a.gpu_offsets, a.gpu_column, descr, b.nnz,
				b.gpu_offsets, b.gpu_column, descr, offsets, total, buffer));
	REQUIRE(total.host()[0] == places, "%d elements, not %d", total.host()[0], places);
	array<int> column(places);
	array<double> values(places);

	OK(cusparseDcsrgeam2(handle, ROWS, COLS, alpha, descr, a.nnz, a.gpu_values, a.gpu_offsets, a.gpu_column, beta,
			     descr, b.nnz, b.gpu_values, b.gpu_offsets, b.gpu_column, descr, values, offsets, column,
			     buffer));
	OK(cusparseSetPointerMode(handle, CUSPARSE_POINTER_MODE_HOST));
	same("a sum", opened(ROWS, COLS, offsets.host(), column.host(), values.host()),
	     combined(2.0, a.dense, -1.0, b.dense));
}

int main(void)
{
	cusparseMatDescr_t descr;

	begin();
	OK(cusparseCreateMatDescr(&descr));
	{
		sparse<double> a(ROWS, COLS, scattered<double>(ROWS, COLS));

		sorted(a, descr);
		there_and_back(a, descr);
		sum(a, descr);
	}
	OK(cusparseDestroyMatDescr(descr));
	OK(cusparseDestroy(handle));
	return 0;
}
