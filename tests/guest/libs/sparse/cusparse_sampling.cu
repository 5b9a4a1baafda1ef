// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Products of dense matrices at some places only (SDDMM): in all orders and operations, several at once, and in blocks;
 * and with them a table of marks, of which few are known, is taken apart into two narrow matrices, step by step.
 */
#include "sparse.h"

#define ROWS  24
#define COLS  20
#define INNER 8
#define COUNT 3

/* c = alpha op(a) op(b) + beta c, where c has elements. */
template <typename T>
static void sample(cusparseOperation_t op_a, cusparseOperation_t op_b, T alpha, cusparseConstDnMatDescr_t a,
		   cusparseConstDnMatDescr_t b, T beta, cusparseSpMatDescr_t c, bool prepared = false)
{
	const cusparseSDDMMAlg_t alg = CUSPARSE_SDDMM_ALG_DEFAULT;
	const cudaDataType type = number<T>::type;
	size_t size = 0;

	OK(cusparseSDDMM_bufferSize(handle, op_a, op_b, &alpha, a, b, &beta, c, type, alg, &size));
	array<char> buffer(size + 1);

	if (prepared)
		OK(cusparseSDDMM_preprocess(handle, op_a, op_b, &alpha, a, b, &beta, c, type, alg, buffer));
	OK(cusparseSDDMM(handle, op_a, op_b, &alpha, a, b, &beta, c, type, alg, buffer));
}

/* The elements of a matrix where `a` has some. */
template <typename T> static std::vector<T> taken(const sparse<T> &a, const std::vector<T> &m)
{
	std::vector<T> v;

	for (int i = 0; i < a.nnz; i++)
		v.push_back(m[a.row[i] * a.cols + a.column[i]]);
	return v;
}

static void wrong(void)
{
	sparse<float> c(ROWS, COLS, scattered<float>(ROWS, COLS));
	matrix<float> csr(c), coo(c, CUSPARSE_FORMAT_COO);
	dense_matrix<float> a(ROWS, INNER, full<float>(ROWS * INNER)), b(INNER, COLS, full<float>(INNER * COLS));
	const cusparseSDDMMAlg_t alg = CUSPARSE_SDDMM_ALG_DEFAULT;
	const float one = 1;
	size_t size;

	FAILS(cusparseSDDMM_bufferSize(NULL, plain, plain, &one, a, b, &one, csr, CUDA_R_32F, alg, &size));
	FAILS(cusparseSDDMM_bufferSize(handle, plain, plain, &one, b, a, &one, csr, CUDA_R_32F, alg, &size));
	FAILS(cusparseSDDMM_bufferSize(handle, plain, flipped, &one, a, b, &one, csr, CUDA_R_32F, alg, &size));
	FAILS(cusparseSDDMM_bufferSize(handle, plain, plain, &one, a, b, &one, coo, CUDA_R_32F, alg, &size));
}

template <typename T, typename I>
static void single(const char *what, cusparseOperation_t op_a, cusparseOperation_t op_b, cusparseOrder_t order_a,
		   cusparseOrder_t order_b, T alpha, T beta)
{
	sparse<T> c(ROWS, COLS, scattered<T>(ROWS, COLS));
	matrix<T, I> mat(c, CUSPARSE_FORMAT_CSR, CUSPARSE_INDEX_BASE_ONE);
	std::vector<T> a = full<T>(ROWS * INNER), b = full<T>(INNER * COLS);
	bool ta = op_a != plain, tb = op_b != plain;
	dense_matrix<T> ga(ta ? INNER : ROWS, ta ? ROWS : INNER, applied(op_a, a, ROWS, INNER), order_a, 2),
		gb(tb ? COLS : INNER, tb ? INNER : COLS, applied(op_b, b, INNER, COLS), order_b);

	sample<T>(op_a, op_b, alpha, ga, gb, beta, mat, true);
	same(what, mat.values.host(), combined(alpha, taken(c, times(a, b, ROWS, INNER, COLS)), beta, c.values));
}

/* Each product has its own values; the places are the same, or the first matrix is. */
static void batch(bool own_a)
{
	sparse<float> c(ROWS, COLS, scattered<float>(ROWS, COLS));
	std::vector<float> a = full<float>((own_a ? COUNT : 1) * ROWS * INNER), b = full<float>(COUNT * INNER * COLS),
			   want;
	std::vector<int> columns;
	array<float> values(COUNT * c.nnz);
	dense_matrix<float> ga(ROWS, INNER, a), gb(INNER, COLS, b);
	cusparseSpMatDescr_t mat;

	for (int k = 0; k < COUNT; k++) {
		std::vector<float> one_a(a.begin() + (own_a ? k : 0) * ROWS * INNER, a.end()),
			one_b(b.begin() + k * INNER * COLS, b.end()),
			v = taken(c, times(one_a, one_b, ROWS, INNER, COLS));

		want.insert(want.end(), v.begin(), v.end());
		columns.insert(columns.end(), c.column.begin(), c.column.end());
	}
	array<int> gc(columns);

	OK(cusparseCreateCsr(&mat, ROWS, COLS, c.nnz, c.gpu_offsets, gc.gpu, values.gpu, CUSPARSE_INDEX_32I,
			     CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO, CUDA_R_32F));
	OK(cusparseCsrSetStridedBatch(mat, COUNT, 0, c.nnz));
	if (!own_a)
		OK(cusparseDnMatSetStridedBatch(ga, COUNT, 0));
	sample<float>(plain, plain, 1, ga, gb, 0, mat);
	same(own_a ? "several" : "several with one matrix", values.host(), want);
	OK(cusparseDestroySpMat(mat));
}

static void in_blocks(cusparseOrder_t order)
{
	std::vector<float> a = full<float>(ROWS * INNER), b = full<float>(INNER * COLS), places(ROWS * COLS);
	dense_matrix<float> ga(ROWS, INNER, a), gb(INNER, COLS, b);
	cusparseSpMatDescr_t mat;

	for (int i = 0; i < ROWS; i++)
		for (int j = 0; j < COLS; j++)
			places[i * COLS + j] = (i / 4 * 3 + j / 4) % 4 < 2;
	block_matrix<float> c(ROWS, COLS, places, 4,
			      order == CUSPARSE_ORDER_ROW ? CUSPARSE_DIRECTION_ROW : CUSPARSE_DIRECTION_COLUMN);

	OK(cusparseCreateBsr(&mat, ROWS / 4, COLS / 4, c.count(), 4, 4, c.at_offsets.gpu, c.at_columns.gpu,
			     c.at_values.gpu, CUSPARSE_INDEX_32I, CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO,
			     CUDA_R_32F, order));
	sample<float>(plain, plain, 1, ga, gb, 0, mat);
	std::vector<float> want = times(a, b, ROWS, INNER, COLS);

	for (int i = 0; i < ROWS * COLS; i++)
		want[i] *= places[i];
	same("blocks", c.host(), want);
	OK(cusparseDestroySpMat(mat));
}

/* What is known is `known`; u times v turned comes nearer to it with each step against the gradient. */
static void taken_apart(void)
{
	const double rate = 1.0 / 64;
	sparse<double> known(ROWS, COLS, scattered<double>(ROWS, COLS));
	matrix<double> errors(known);
	std::vector<double> u = full<double>(ROWS * INNER), v = full<double>(COLS * INNER), e;
	dense_matrix<double> gu(ROWS, INNER, u), gv(COLS, INNER, v);

	for (int step = 0; step < 20; step++) {
		std::vector<double> m = times(u, applied(flipped, v, COLS, INNER), ROWS, INNER, COLS),
				    dense(ROWS * COLS);

		errors.values.set(known.values);
		sample<double>(plain, flipped, 1, gu, gv, -1, errors);
		e = combined(1.0, taken(known, m), -1.0, known.values);
		must_be_near("the errors", errors.values.host(), e);
		for (int i = 0; i < known.nnz; i++)
			dense[known.row[i] * COLS + known.column[i]] = e[i];
		/* Both at once: what the one becomes may not depend on what the other has become. */
		dense_matrix<double> old(ROWS, INNER, u);

		multiply<double>(plain, plain, -rate, errors, gv, 1, gu);
		multiply<double>(flipped, plain, -rate, errors, old, 1, gv);
		std::vector<double> to_u = times(dense, v, ROWS, COLS, INNER),
				    to_v = times(applied(flipped, dense, ROWS, COLS), u, COLS, ROWS, INNER);

		u = combined(1.0, u, -rate, to_u);
		v = combined(1.0, v, -rate, to_v);
	}
	must_be_near("a factor", gu.host(), u);
	must_be_near("the other factor", gv.host(), v);
	printf("a table taken apart: right\n");
}

int main(void)
{
	typedef std::complex<float> C;
	const cusparseOrder_t by_rows = CUSPARSE_ORDER_ROW, by_cols = CUSPARSE_ORDER_COL;

	begin();
	wrong();
	single<float, int>("float", plain, plain, by_rows, by_cols, 2, -1);
	single<double, int64_t>("double, 64-bit indices, turned", flipped, plain, by_rows, by_rows, 1, 3);
	single<C, int>("complex, both turned", flipped, flipped, by_cols, by_cols, C(1, 1), C(0, 2));
	batch(true);
	batch(false);
	in_blocks(CUSPARSE_ORDER_ROW);
	in_blocks(CUSPARSE_ORDER_COL);
	taken_apart();
	OK(cusparseDestroy(handle));
	return 0;
}
