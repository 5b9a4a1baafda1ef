// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Sparse matrices times dense ones, several at once, where each of the two is one matrix for all or one for each; and
 * single products with all orders, operations and algorithms.
 */
#include <algorithm>

#include "sparse.h"

#define ROWS  20
#define COLS  15
#define EACH  4 /* elements in a row */
#define NNZ   (ROWS * EACH)
#define WIDE  6
#define COUNT 3

/* Several matrices that have as many elements in each row, in other columns. */
struct several {
	std::vector<int> offsets, rows, columns;
	std::vector<float> values, dense;

	several(void) : values(full<float>(COUNT * NNZ)), dense(COUNT * ROWS * COLS)
	{
		for (int k = 0; k < COUNT; k++) {
			for (int i = 0; i < ROWS; i++) {
				std::vector<int> at;

				for (int e = 0; e < EACH; e++)
					at.push_back((i * 3 + k * 2 + e * 4) % COLS);
				std::sort(at.begin(), at.end());
				offsets.push_back(i * EACH);
				for (int c : at) {
					dense[(k * ROWS + i) * COLS + c] = values[columns.size()];
					columns.push_back(c);
					rows.push_back(i);
				}
			}
			offsets.push_back(NNZ);
		}
	}
};

/* The matrix of a number, or the first one if all are the same. */
static std::vector<float> one_of(const std::vector<float> &all, int k, bool own)
{
	size_t size = all.size() / COUNT, first = own ? k * size : 0;

	return std::vector<float>(all.begin() + first, all.begin() + first + size);
}

static void wrong(void)
{
	array<int> at(100);
	array<float> values(100);
	dense_matrix<float> b(COLS, WIDE, full<float>(COLS * WIDE)), c(ROWS, WIDE, full<float>(ROWS * WIDE));
	const cusparseIndexType_t index = CUSPARSE_INDEX_32I;
	const cusparseIndexBase_t zero = CUSPARSE_INDEX_BASE_ZERO;
	cusparseSpMatDescr_t csr, coo;
	const float one = 1;
	int count = 0;
	size_t size;

	OK(cusparseCreateCsr(&csr, ROWS, COLS, NNZ, at.gpu, at.gpu, values.gpu, index, index, zero, CUDA_R_32F));
	OK(cusparseCreateCoo(&coo, ROWS, COLS, NNZ, at.gpu, at.gpu, values.gpu, index, zero, CUDA_R_32F));
	FAILS(cusparseCsrSetStridedBatch(csr, 0, 0, 0));
	FAILS(cusparseCsrSetStridedBatch(csr, COUNT, ROWS, NNZ));
	FAILS(cusparseCsrSetStridedBatch(csr, COUNT, 0, NNZ - 1));
	FAILS(cusparseCsrSetStridedBatch(coo, COUNT, 0, NNZ));
	FAILS(cusparseCooSetStridedBatch(coo, COUNT, NNZ - 1));
	FAILS(cusparseCooSetStridedBatch(coo, -1, NNZ));
	FAILS(cusparseDnMatSetStridedBatch(b, COUNT, COLS * WIDE - 1));
	OK(cusparseSpMatGetStridedBatch(csr, &count));
	REQUIRE(count == 1, "a wrong call has made %d matrices", count);
	/* The matrices do not fit together. */
	FAILS(cusparseSpMM_bufferSize(handle, flipped, plain, &one, csr, b, &one, c, CUDA_R_32F,
				      CUSPARSE_SPMM_ALG_DEFAULT, &size));
	FAILS(cusparseSpMM_bufferSize(NULL, plain, plain, &one, csr, b, &one, c, CUDA_R_32F, CUSPARSE_SPMM_ALG_DEFAULT,
				      &size));
	OK(cusparseDestroySpMat(csr));
	OK(cusparseDestroySpMat(coo));
}

static void batch(cusparseFormat_t format, cusparseSpMMAlg_t alg, cusparseOrder_t order)
{
	const cusparseIndexType_t index = CUSPARSE_INDEX_32I;
	const cusparseIndexBase_t zero = CUSPARSE_INDEX_BASE_ZERO;
	const bool coo = format == CUSPARSE_FORMAT_COO;
	several a;
	std::vector<float> b = full<float>(COUNT * COLS * WIDE), c = full<float>(COUNT * ROWS * WIDE);
	array<int> ends(coo ? a.rows : a.offsets), columns(a.columns);
	array<float> values(a.values);
	cusparseSpMatDescr_t mat;

	if (coo)
		OK(cusparseCreateCoo(&mat, ROWS, COLS, NNZ, ends.gpu, columns.gpu, values.gpu, index, zero,
				     CUDA_R_32F));
	else
		OK(cusparseCreateCsr(&mat, ROWS, COLS, NNZ, ends.gpu, columns.gpu, values.gpu, index, index, zero,
				     CUDA_R_32F));
	for (int own = 1; own < 4; own++) {
		bool own_a = own & 1, own_b = own & 2;
		dense_matrix<float> gb(COLS, WIDE, b, order), gc(ROWS, WIDE, c, order);
		std::vector<float> want;

		if (coo)
			OK(cusparseCooSetStridedBatch(mat, COUNT, own_a ? NNZ : 0));
		else
			OK(cusparseCsrSetStridedBatch(mat, COUNT, own_a ? ROWS + 1 : 0, own_a ? NNZ : 0));
		if (!own_b)
			OK(cusparseDnMatSetStridedBatch(gb, COUNT, 0));
		multiply<float>(plain, plain, 2, mat, gb, -1, gc, alg);
		for (int k = 0; k < COUNT; k++) {
			std::vector<float> product =
				times(one_of(a.dense, k, own_a), one_of(b, k, own_b), ROWS, COLS, WIDE);

			product = combined(2.0f, product, -1.0f, one_of(c, k, true));
			want.insert(want.end(), product.begin(), product.end());
		}
		must_be("a batch", gc.host(), want);
	}
	printf("batches of %s by algorithm %d: right\n", coo ? "COO" : "CSR", (int)alg);
	OK(cusparseDestroySpMat(mat));
}

/* What is dense lies by rows or by columns, with room after each. For an operation, b lies there so that it gives b. */
template <typename T, typename I>
static void single(const char *what, cusparseFormat_t format, cusparseSpMMAlg_t alg, cusparseOperation_t op_a,
		   cusparseOperation_t op_b, cusparseOrder_t order, int pad, T alpha)
{
	sparse<T> a(ROWS, COLS, scattered<T>(ROWS, COLS));
	matrix<T, I> mat(a, format, CUSPARSE_INDEX_BASE_ONE);
	int in = op_a == plain ? COLS : ROWS, out = ROWS + COLS - in;
	std::vector<T> b = full<T>(in * WIDE), c = full<T>(out * WIDE),
		       want = times(applied(op_a, a.dense, ROWS, COLS), b, out, in, WIDE);
	dense_matrix<T> gb(op_b == plain ? in : WIDE, op_b == plain ? WIDE : in, applied(op_b, b, in, WIDE), order,
			   pad),
		gc(out, WIDE, c, order, pad);

	multiply<T>(op_a, op_b, alpha, mat, gb, T(1), gc, alg);
	same(what, gc.host(), combined(alpha, want, T(1), c));
}

int main(void)
{
	typedef std::complex<float> C;
	typedef std::complex<double> Z;
	const cusparseFormat_t csr = CUSPARSE_FORMAT_CSR, coo = CUSPARSE_FORMAT_COO;
	const cusparseOrder_t by_rows = CUSPARSE_ORDER_ROW, by_cols = CUSPARSE_ORDER_COL;

	begin();
	wrong();
	batch(csr, CUSPARSE_SPMM_CSR_ALG1, by_cols);
	batch(csr, CUSPARSE_SPMM_CSR_ALG2, by_rows);
	batch(coo, CUSPARSE_SPMM_COO_ALG1, by_cols);
	batch(coo, CUSPARSE_SPMM_COO_ALG4, by_rows);
	single<float, int>("float", csr, CUSPARSE_SPMM_ALG_DEFAULT, plain, flipped, by_cols, 3, 2);
	single<double, int64_t>("double, 64-bit indices", csr, CUSPARSE_SPMM_CSR_ALG3, plain, plain, by_rows, 0, 0.5);
	single<double, int>("double, turned", csr, CUSPARSE_SPMM_CSR_ALG2, flipped, plain, by_rows, 1, -1);
	single<C, int>("complex, turned", coo, CUSPARSE_SPMM_COO_ALG1, conjugated, plain, by_cols, 0, C(1, 2));
	single<Z, int64_t>("complex double", coo, CUSPARSE_SPMM_COO_ALG2, plain, conjugated, by_cols, 2, Z(0, 1));
	OK(cusparseDestroy(handle));
	return 0;
}
