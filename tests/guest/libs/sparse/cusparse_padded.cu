// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Formats with padding, of the generic functions: sliced ELL, whose slices have rows of one length; blocked ELL, where
 * each row of blocks has as many; and BSR, whose blocks hold zeros.
 */
#include <algorithm>

#include "sparse.h"

#define ROWS  44
#define COLS  38
#define SLICE 4
#define BLOCK 16
#define WIDE  32

/* Slices of a matrix, each column by column. Column -1 is padding. */
template <typename T, typename I> struct slices {
	std::vector<I> offsets, columns;
	std::vector<T> values;

	explicit slices(const sparse<T> &a) : offsets(1)
	{
		for (int first = 0; first < a.rows; first += SLICE) {
			int width = 0, start = (int)values.size();

			for (int i = first; i < first + SLICE; i++)
				width = std::max(width, a.offsets[i + 1] - a.offsets[i]);
			values.resize(start + width * SLICE);
			columns.resize(values.size(), -1);
			for (int i = first; i < first + SLICE; i++)
				for (int k = a.offsets[i]; k < a.offsets[i + 1]; k++) {
					int at = start + (k - a.offsets[i]) * SLICE + i - first;

					values[at] = a.values[k];
					columns[at] = a.column[k];
				}
			offsets.push_back((I)values.size());
		}
	}
};

static void wrong(void)
{
	const cusparseIndexType_t index = CUSPARSE_INDEX_32I;
	const cusparseIndexBase_t zero = CUSPARSE_INDEX_BASE_ZERO;
	array<int> at(8);
	array<float> values(64);
	cusparseSpMatDescr_t none;

	/* More elements than places; blocks that do not fit; more blocks than there are places for. */
	FAILS(cusparseCreateSlicedEll(&none, 8, 8, 10, 9, 2, at.gpu, at.gpu, values.gpu, index, index, zero,
				      CUDA_R_32F));
	FAILS(cusparseCreateBlockedEll(&none, 8, 8, 3, 6, at.gpu, values.gpu, index, zero, CUDA_R_32F));
	FAILS(cusparseCreateBlockedEll(&none, 8, 8, 4, 12, at.gpu, values.gpu, index, zero, CUDA_R_32F));
	FAILS(cusparseCreateBsr(&none, 2, 2, 5, 4, 4, at.gpu, at.gpu, values.gpu, index, index, zero, CUDA_R_32F,
				CUSPARSE_ORDER_ROW));
	FAILS(cusparseCreateBsr(&none, 2, 2, 4, 0, 0, at.gpu, at.gpu, values.gpu, index, index, zero, CUDA_R_32F,
				CUSPARSE_ORDER_ROW));
}

template <typename T, typename I> static void sliced(const char *what, T alpha, T beta)
{
	sparse<T> a(ROWS, COLS, scattered<T>(ROWS, COLS));
	slices<T, I> s(a);
	array<I> offsets(s.offsets), columns(s.columns);
	array<T> values(s.values);
	std::vector<T> x = full<T>(COLS), y = full<T>(ROWS);
	dense_vector<T> gx(x), gy(y);
	cusparseSpMatDescr_t mat;

	OK(cusparseCreateSlicedEll(&mat, ROWS, COLS, a.nnz, (int64_t)s.values.size(), SLICE, offsets.gpu, columns.gpu,
				   values.gpu, number<I>::index, number<I>::index, CUSPARSE_INDEX_BASE_ZERO,
				   number<T>::type));
	for (cusparseSpMVAlg_t alg : {CUSPARSE_SPMV_ALG_DEFAULT, CUSPARSE_SPMV_SELL_ALG1}) {
		multiply<T>(plain, alpha, mat, gx, beta, gy, alg);
		y = combined(alpha, times(a.dense, x, ROWS, COLS, 1), beta, y);
		same(what, gy.host(), y);
	}
	OK(cusparseDestroySpMat(mat));
}

/* Of each row of blocks, two or three are there. Half times half is float. */
static void blocked(void)
{
	const int rows = 4, cols = 5, most = 3;
	const std::vector<int> at = {0, 2, 4, 1, 3, -1, 0, 1, 2, 3, 4, -1};
	std::vector<float> m(rows * cols * BLOCK * BLOCK), b = full<float>(cols * BLOCK * WIDE);
	std::vector<__half> values(rows * most * BLOCK * BLOCK), bs(b.begin(), b.end());
	int64_t got[4];
	cusparseIndexType_t index;
	cusparseIndexBase_t base;
	cusparseSpMatDescr_t mat;
	cudaDataType type;
	void *p[2];

	for (int i = 0; i < rows * BLOCK; i++)
		for (int j = 0; j < most * BLOCK; j++) {
			float v = (float)small_number();
			int column = at[i / BLOCK * most + j / BLOCK];

			values[i * most * BLOCK + j] = column < 0 ? 0.0f : v;
			if (column >= 0)
				m[i * cols * BLOCK + column * BLOCK + j % BLOCK] = v;
		}
	array<int> columns(at);
	array<__half> gv(values);

	OK(cusparseCreateBlockedEll(&mat, rows * BLOCK, cols * BLOCK, BLOCK, most * BLOCK, columns.gpu, gv.gpu,
				    CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO, CUDA_R_16F));
	OK(cusparseBlockedEllGet(mat, &got[0], &got[1], &got[2], &got[3], &p[0], &p[1], &index, &base, &type));
	REQUIRE(got[0] == rows * BLOCK && got[1] == cols * BLOCK && got[2] == BLOCK && got[3] == most * BLOCK &&
			p[0] == columns.gpu && p[1] == gv.gpu && type == CUDA_R_16F,
		"blocked ELL is not what was made");
	std::vector<float> want = times(m, b, rows * BLOCK, cols * BLOCK, WIDE);

	for (cusparseOrder_t order : {CUSPARSE_ORDER_COL, CUSPARSE_ORDER_ROW}) {
		dense_matrix<__half> gb(cols * BLOCK, WIDE, bs, order),
			gbt(WIDE, cols * BLOCK, applied(flipped, bs, cols * BLOCK, WIDE), order);
		dense_matrix<float> gc(rows * BLOCK, WIDE, full<float>(rows * BLOCK * WIDE), order);

		multiply<float>(plain, plain, 1, mat, gb, 0, gc, CUSPARSE_SPMM_BLOCKED_ELL_ALG1);
		same("blocked ELL times a matrix", gc.host(), want);
		multiply<float>(plain, flipped, 2, mat, gbt, 0, gc);
		same("blocked ELL times a turned one", gc.host(), combined(2.0f, want, 0.0f, want));
	}
	OK(cusparseDestroySpMat(mat));
}

/* Blocks of 3 by 3, each in an order. */
static void generic(cusparseOrder_t order)
{
	const bool by_rows = order == CUSPARSE_ORDER_ROW;
	const int rows = 24, cols = 18;
	std::vector<double> m = scattered<double>(rows, cols), x = full<double>(cols), b = full<double>(cols * WIDE),
			    y = full<double>(rows);
	block_matrix<double> a(rows, cols, m, 3, by_rows ? CUSPARSE_DIRECTION_ROW : CUSPARSE_DIRECTION_COLUMN);
	cusparseSpMatDescr_t mat;
	dense_vector<double> gx(x), gy(y);
	dense_matrix<double> gb(cols, WIDE, b), gc(rows, WIDE, full<double>(rows * WIDE));

	OK(cusparseCreateBsr(&mat, rows / 3, cols / 3, a.count(), 3, 3, a.at_offsets.gpu, a.at_columns.gpu,
			     a.at_values.gpu, CUSPARSE_INDEX_32I, CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO,
			     CUDA_R_64F, order));
	multiply<double>(plain, 2, mat, gx, 3, gy, CUSPARSE_SPMV_BSR_ALG1);
	same("BSR times a vector", gy.host(), combined(2.0, times(m, x, rows, cols, 1), 3.0, y));
	if (by_rows) {
		multiply<double>(plain, plain, 1, mat, gb, 0, gc, CUSPARSE_SPMM_BSR_ALG1);
		same("BSR times a matrix", gc.host(), times(m, b, rows, cols, WIDE));
	}
	OK(cusparseDestroySpMat(mat));
}

int main(void)
{
	begin();
	wrong();
	sliced<double, int>("slices", 2, -1);
	sliced<std::complex<float>, int64_t>("slices of complex numbers", {1, 2}, {0, 1});
	blocked();
	generic(CUSPARSE_ORDER_ROW);
	generic(CUSPARSE_ORDER_COL);
	OK(cusparseDestroy(handle));
	return 0;
}
