/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the programs that use cuSPARSE need: small sparse matrices on both sides. */
#ifndef SPARSE_H
#define SPARSE_H

#include <cusparse.h>

#include "../libs.h"

static cusparseHandle_t handle;

/* The first call, which makes the handle. */
static inline void begin(void)
{
	first("cuSPARSE", cusparseCreate(&handle), CUSPARSE_STATUS_NOT_INITIALIZED);
}

/*
 * A matrix, row by row, with zeros, and the same as CSR and COO. The numbers are multiples of 1/64,
 * so what is computed from them is exact, in any order.
 */
template <typename T> struct sparse {
	int rows, cols, nnz;
	std::vector<T> dense, values;
	std::vector<int> offsets, row, column;
	T *gpu_values;
	int *gpu_offsets, *gpu_row, *gpu_column;

	sparse(int r, int c, std::vector<T> d) : rows(r), cols(c), nnz(0), dense(d), offsets(1)
	{
		for (int i = 0; i < rows; i++) {
			for (int j = 0; j < cols; j++)
				if (dense[i * cols + j] != T(0)) {
					values.push_back(dense[i * cols + j]);
					row.push_back(i);
					column.push_back(j);
				}
			offsets.push_back((int)values.size());
		}
		nnz = (int)values.size();
		gpu_values = up(values);
		gpu_offsets = up(offsets);
		gpu_row = up(row);
		gpu_column = up(column);
	}
	cusparseSpMatDescr_t csr(cudaDataType type) const
	{
		cusparseSpMatDescr_t mat;

		OK(cusparseCreateCsr(&mat, rows, cols, nnz, gpu_offsets, gpu_column, gpu_values,
				     CUSPARSE_INDEX_32I, CUSPARSE_INDEX_32I,
				     CUSPARSE_INDEX_BASE_ZERO, type));
		return mat;
	}
};

/* About every third element is not zero; on the diagonal all are. */
template <typename T> static std::vector<T> scattered(int rows, int cols)
{
	std::vector<T> m(rows * cols);

	for (int i = 0; i < rows * cols; i++) {
		double v = small_number();

		m[i] = i % cols == i / cols ? T(v == 0 ? 1 : v) : i % 3 ? T(0) : T(v);
	}
	return m;
}

template <typename T> static std::vector<T> full(int n)
{
	std::vector<T> m(n);

	for (T &v : m)
		v = T(small_number());
	return m;
}

/* a: rows times inner; b: inner times cols; all row by row. */
template <typename T>
static std::vector<T> times(const std::vector<T> &a, const std::vector<T> &b, int rows, int inner,
			    int cols)
{
	std::vector<T> c(rows * cols);

	for (int i = 0; i < rows; i++)
		for (int k = 0; k < inner; k++)
			for (int j = 0; j < cols; j++)
				c[i * cols + j] += a[i * inner + k] * b[k * cols + j];
	return c;
}

template <typename T>
static void same(const char *what, const std::vector<T> &got, const std::vector<T> &want)
{
	REQUIRE(got.size() == want.size(), "%s: %zu elements, not %zu", what, got.size(),
		want.size());
	for (size_t i = 0; i < want.size(); i++)
		REQUIRE(got[i] == want[i], "%s: element %zu is wrong", what, i);
	printf("%s: right\n", what);
}

template <typename T>
static void near(const char *what, const std::vector<T> &got, const std::vector<T> &want)
{
	for (size_t i = 0; i < want.size(); i++)
		REQUIRE(std::abs(got[i] - want[i]) < 1e-9, "%s: element %zu is off", what, i);
	printf("%s: right\n", what);
}

/* GPU memory for a function that has said how much it needs. */
static inline void *room(size_t bytes)
{
	void *p;

	CHECK(cudaMalloc(&p, bytes + 1));
	return p;
}

#endif
