// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Matrices without what is small: elements beyond a threshold of dense matrices and of CSR, a part of the largest
 * elements, and the older functions that take away what is nearly zero; and how many elements there are.
 */
#include <algorithm>

#include "sparse.h"

#define ROWS  26
#define COLS  20
#define LIMIT 0.55

/* What all functions take of a matrix. */
#define CSR(a)	 ROWS, COLS, (a).nnz, descr, (a).gpu_values, (a).gpu_offsets, (a).gpu_column
#define DENSE(a) ROWS, COLS, a, ROWS

static cusparseMatDescr_t descr;

/* No two numbers are equal, or their opposites. Some are missing. Every other one has the sign. */
static std::vector<double> different(int sign)
{
	std::vector<double> m(ROWS * COLS);

	for (int i = 0; i < ROWS * COLS; i++)
		m[i] = i % 5 == 1 ? 0 : (i * 77 % (ROWS * COLS) + 1) / 256.0 * (i % 2 ? 1 : sign);
	return m;
}

static std::vector<double> without(std::vector<double> m, double limit)
{
	for (double &v : m)
		v = fabs(v) > limit ? v : 0;
	return m;
}

static int elements(const std::vector<double> &m)
{
	return (int)(m.size() - std::count(m.begin(), m.end(), 0));
}

static void check(const char *what, const array<int> &offsets, const array<int> &columns, const array<double> &values,
		  const std::vector<double> &want)
{
	same(what, opened(ROWS, COLS, offsets.host(), columns.host(), values.host()), want);
}

static void beyond_a_threshold(const sparse<double> &a)
{
	const std::vector<double> want = without(a.dense, LIMIT);
	array<double> dense(applied(flipped, a.dense, ROWS, COLS));
	array<int> offsets(ROWS + 1), columns(elements(want));
	array<double> values(elements(want));
	const double limit = LIMIT;
	size_t size = 0;
	int n = 0;

	OK(cusparseDpruneDense2csr_bufferSizeExt(handle, DENSE(dense), &limit, descr, values, offsets, columns, &size));
	array<char> buffer(size + 1);

	OK(cusparseDpruneDense2csrNnz(handle, DENSE(dense), &limit, descr, offsets, &n, buffer));
	REQUIRE(n == elements(want), "%d elements, not %d", n, elements(want));
	OK(cusparseDpruneDense2csr(handle, DENSE(dense), &limit, descr, values, offsets, columns, buffer));
	check("a dense matrix", offsets, columns, values, want);

	OK(cusparseDpruneCsr2csr_bufferSizeExt(handle, CSR(a), &limit, descr, values, offsets, columns, &size));
	array<char> more(size + 1);

	offsets.set(std::vector<int>(ROWS + 1));
	OK(cusparseDpruneCsr2csrNnz(handle, CSR(a), &limit, descr, offsets, &n, more));
	REQUIRE(n == elements(want), "%d elements, not %d", n, elements(want));
	OK(cusparseDpruneCsr2csr(handle, CSR(a), &limit, descr, values, offsets, columns, more));
	check("CSR", offsets, columns, values, want);
}

/* A fourth of the elements, the smallest ones, is left out. */
static void by_percentage(const sparse<double> &a)
{
	std::vector<double> sorted;
	size_t size = 0;
	pruneInfo_t info;
	int n = 0;

	for (double v : a.values)
		sorted.push_back(fabs(v));
	std::sort(sorted.begin(), sorted.end());
	const std::vector<double> want = without(a.dense, sorted[a.nnz / 4 - 1]);
	array<int> offsets(ROWS + 1), columns(elements(want));
	array<double> values(elements(want));

	OK(cusparseCreatePruneInfo(&info));
	OK(cusparseDpruneCsr2csrByPercentage_bufferSizeExt(handle, CSR(a), 25, descr, values, offsets, columns, info,
							   &size));
	array<char> buffer(size + 1);

	OK(cusparseDpruneCsr2csrNnzByPercentage(handle, CSR(a), 25, descr, offsets, &n, info, buffer));
	REQUIRE(n == elements(want), "%d elements, not %d", n, elements(want));
	OK(cusparseDpruneCsr2csrByPercentage(handle, CSR(a), 25, descr, values, offsets, columns, info, buffer));
	check("three fourths", offsets, columns, values, want);
	OK(cusparseDestroyPruneInfo(info));
}

/* Nothing is negative, because cusparseDcsr2csr_compress leaves that out, though cusparseDnnz_compress counts it. */
static void compressed(const sparse<double> &a)
{
	const std::vector<double> want = without(a.dense, LIMIT);
	array<int> each(ROWS), offsets(ROWS + 1), columns(elements(want));
	array<double> values(elements(want));
	int n = 0;

	FAILS(cusparseDnnz_compress(NULL, ROWS, descr, a.gpu_values, a.gpu_offsets, each, &n, LIMIT));
	OK(cusparseDnnz_compress(handle, ROWS, descr, a.gpu_values, a.gpu_offsets, each, &n, LIMIT));
	REQUIRE(n == elements(want), "%d elements, not %d", n, elements(want));
	OK(cusparseDcsr2csr_compress(handle, ROWS, COLS, descr, a.gpu_values, a.gpu_column, a.gpu_offsets, a.nnz, each,
				     values, columns, offsets, LIMIT));
	check("compressed", offsets, columns, values, want);
}

/* Along rows and along columns, and the sum in the GPU's memory. */
static void counted(const sparse<double> &a)
{
	array<double> dense(applied(flipped, a.dense, ROWS, COLS));

	OK(cusparseSetPointerMode(handle, CUSPARSE_POINTER_MODE_DEVICE));
	for (cusparseDirection_t way : {CUSPARSE_DIRECTION_ROW, CUSPARSE_DIRECTION_COLUMN}) {
		std::vector<int> want(way == CUSPARSE_DIRECTION_ROW ? ROWS : COLS);
		array<int> each(want.size()), total(1);

		for (int i = 0; i < a.nnz; i++)
			want[way == CUSPARSE_DIRECTION_ROW ? a.row[i] : a.column[i]]++;
		OK(cusparseDnnz(handle, way, ROWS, COLS, descr, dense, ROWS, each, total));
		same("elements", each.host(), want);
		REQUIRE(total.host()[0] == a.nnz, "%d elements, not %d", total.host()[0], a.nnz);
	}
	OK(cusparseSetPointerMode(handle, CUSPARSE_POINTER_MODE_HOST));
}

int main(void)
{
	begin();
	OK(cusparseCreateMatDescr(&descr));
	{
		sparse<double> a(ROWS, COLS, different(-1)), positive(ROWS, COLS, different(1));

		REQUIRE(a.nnz % 4 == 0, "%d elements have no fourth", a.nnz);
		compressed(positive);
		beyond_a_threshold(a);
		by_percentage(a);
		counted(a);
	}
	OK(cusparseDestroyMatDescr(descr));
	OK(cusparseDestroy(handle));
	return 0;
}
