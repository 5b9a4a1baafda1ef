// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * One matrix of cuSPARSE in many forms: from dense to sparse and back, between CSR, CSC, COO and
 * blocks, sorted; sparse vectors; and what the program can ask its matrices.
 */
#include "sparse.h"

#define ROWS 24
#define COLS 18

/* The dense matrix, column by column. */
static std::vector<float> by_columns(const sparse<float> &a)
{
	std::vector<float> m;

	for (int j = 0; j < COLS; j++)
		for (int i = 0; i < ROWS; i++)
			m.push_back(a.dense[i * COLS + j]);
	return m;
}

static void vectors(void)
{
	std::vector<float> x = {1, 2, 3}, y = full<float>(10), want = y;
	std::vector<int> at = {1, 4, 8};
	float *gx = up(x), *gy = up(y), alpha = 2, beta = 3, product = 0;
	int *ga = up(at);
	cusparseSpVecDescr_t vx;
	cusparseDnVecDescr_t vy;
	int64_t size, nnz;
	void *indices, *values;
	cusparseIndexType_t index_type;
	cusparseIndexBase_t base;
	cudaDataType type;
	size_t bytes;

	OK(cusparseCreateSpVec(&vx, 10, 3, ga, gx, CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO,
			       CUDA_R_32F));
	FAILS(cusparseCreateSpVec(&vx, -10, 3, ga, gx, CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO,
				  CUDA_R_32F));
	OK(cusparseCreateDnVec(&vy, 10, gy, CUDA_R_32F));
	OK(cusparseSpVecGet(vx, &size, &nnz, &indices, &values, &index_type, &base, &type));
	REQUIRE(size == 10 && nnz == 3 && indices == ga && values == gx &&
			index_type == CUSPARSE_INDEX_32I && base == CUSPARSE_INDEX_BASE_ZERO &&
			type == CUDA_R_32F,
		"a sparse vector is not what was made");
	FAILS(cusparseSpVecGet(vx, &size, &nnz, NULL, &values, &index_type, &base, &type));
	OK(cusparseAxpby(handle, &alpha, vx, &beta, vy));
	for (float &v : want)
		v *= 3;
	for (int i = 0; i < 3; i++)
		want[at[i]] += 2 * x[i];
	same("alpha x + beta y", down(gy, 10), want);
	OK(cusparseSpVV_bufferSize(handle, CUSPARSE_OPERATION_NON_TRANSPOSE, vx, vy, &product,
				   CUDA_R_32F, &bytes));
	OK(cusparseSpVV(handle, CUSPARSE_OPERATION_NON_TRANSPOSE, vx, vy, &product, CUDA_R_32F,
			room(bytes)));
	REQUIRE(product == want[1] + 2 * want[4] + 3 * want[8], "the product of vectors is %g",
		product);
	OK(cusparseGather(handle, vy, vx));
	same("gathered", down(gx, 3), std::vector<float>{want[1], want[4], want[8]});

	float *other = up(std::vector<float>{7, 8, 9});

	OK(cusparseSpVecSetValues(vx, other));
	OK(cusparseScatter(handle, vx, vy));
	want[1] = 7, want[4] = 8, want[8] = 9;
	same("scattered", down(gy, 10), want);
	OK(cusparseDestroySpVec(vx));
	OK(cusparseDestroyDnVec(vy));
}

static void dense_and_back(const sparse<float> &a)
{
	float *full = up(a.dense), *values, *back = up(std::vector<float>(ROWS * COLS));
	int *offsets, *columns;
	cusparseDnMatDescr_t dense, out;
	cusparseSpMatDescr_t mat;
	int64_t rows, cols, nnz;
	size_t bytes;

	CHECK(cudaMalloc(&offsets, (ROWS + 1) * sizeof(int)));
	OK(cusparseCreateDnMat(&dense, ROWS, COLS, COLS, full, CUDA_R_32F, CUSPARSE_ORDER_ROW));
	OK(cusparseCreateDnMat(&out, ROWS, COLS, COLS, back, CUDA_R_32F, CUSPARSE_ORDER_ROW));
	FAILS(cusparseCreateDnMat(&out, ROWS, COLS, COLS - 1, back, CUDA_R_32F,
				  CUSPARSE_ORDER_ROW));
	OK(cusparseCreateCsr(&mat, ROWS, COLS, 0, offsets, NULL, NULL, CUSPARSE_INDEX_32I,
			     CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO, CUDA_R_32F));
	OK(cusparseDenseToSparse_bufferSize(handle, dense, mat, CUSPARSE_DENSETOSPARSE_ALG_DEFAULT,
					    &bytes));
	void *buffer = room(bytes);

	OK(cusparseDenseToSparse_analysis(handle, dense, mat, CUSPARSE_DENSETOSPARSE_ALG_DEFAULT,
					  buffer));
	OK(cusparseSpMatGetSize(mat, &rows, &cols, &nnz));
	REQUIRE(rows == ROWS && cols == COLS && nnz == a.nnz, "%lld elements, not %d",
		(long long)nnz, a.nnz);
	CHECK(cudaMalloc(&columns, nnz * sizeof(int)));
	CHECK(cudaMalloc(&values, nnz * sizeof(float)));
	OK(cusparseCsrSetPointers(mat, offsets, columns, values));
	OK(cusparseDenseToSparse_convert(handle, dense, mat, CUSPARSE_DENSETOSPARSE_ALG_DEFAULT,
					 buffer));
	same("offsets", down(offsets, ROWS + 1), a.offsets);
	same("columns", down(columns, nnz), a.column);
	same("values", down(values, nnz), a.values);
	OK(cusparseSparseToDense_bufferSize(handle, mat, out, CUSPARSE_SPARSETODENSE_ALG_DEFAULT,
					    &bytes));
	OK(cusparseSparseToDense(handle, mat, out, CUSPARSE_SPARSETODENSE_ALG_DEFAULT,
				 room(bytes)));
	same("dense again", down(back, ROWS * COLS), a.dense);
	OK(cusparseDestroySpMat(mat));
	OK(cusparseDestroyDnMat(dense));
	OK(cusparseDestroyDnMat(out));
}

static void other_forms(const sparse<float> &a)
{
	int *rows = up(std::vector<int>(a.nnz)), *offsets = up(std::vector<int>(ROWS + 1));
	int *csc_offsets = up(std::vector<int>(COLS + 1)), *csc_rows = up(std::vector<int>(a.nnz));
	float *csc_values = up(std::vector<float>(a.nnz));
	std::vector<float> turned;
	cusparseMatDescr_t descr;
	int blocks = 0, n = 0;
	size_t bytes;

	OK(cusparseXcsr2coo(handle, a.gpu_offsets, a.nnz, ROWS, rows, CUSPARSE_INDEX_BASE_ZERO));
	same("rows", down(rows, a.nnz), a.row);
	OK(cusparseXcoo2csr(handle, rows, a.nnz, ROWS, offsets, CUSPARSE_INDEX_BASE_ZERO));
	same("offsets of rows", down(offsets, ROWS + 1), a.offsets);
	OK(cusparseCsr2cscEx2_bufferSize(
		handle, ROWS, COLS, a.nnz, a.gpu_values, a.gpu_offsets, a.gpu_column, csc_values,
		csc_offsets, csc_rows, CUDA_R_32F, CUSPARSE_ACTION_NUMERIC,
		CUSPARSE_INDEX_BASE_ZERO, CUSPARSE_CSR2CSC_ALG_DEFAULT, &bytes));
	OK(cusparseCsr2cscEx2(handle, ROWS, COLS, a.nnz, a.gpu_values, a.gpu_offsets, a.gpu_column,
			      csc_values, csc_offsets, csc_rows, CUDA_R_32F,
			      CUSPARSE_ACTION_NUMERIC, CUSPARSE_INDEX_BASE_ZERO,
			      CUSPARSE_CSR2CSC_ALG_DEFAULT, room(bytes)));
	for (int j = 0; j < COLS; j++)
		for (int i = 0; i < ROWS; i++)
			if (a.dense[i * COLS + j] != 0)
				turned.push_back(a.dense[i * COLS + j]);
	same("values by columns", down(csc_values, a.nnz), turned);

	/* Sorted by row again, with where each came from. */
	int *columns = up(std::vector<int>(a.nnz)), *from = up(std::vector<int>(a.nnz));

	OK(cusparseXcsr2coo(handle, csc_offsets, a.nnz, COLS, columns, CUSPARSE_INDEX_BASE_ZERO));
	OK(cusparseXcoosort_bufferSizeExt(handle, ROWS, COLS, a.nnz, csc_rows, columns, &bytes));
	OK(cusparseCreateIdentityPermutation(handle, a.nnz, from));
	OK(cusparseXcoosortByRow(handle, ROWS, COLS, a.nnz, csc_rows, columns, from, room(bytes)));
	same("rows, sorted", down(csc_rows, a.nnz), a.row);
	std::vector<int> f = down(from, a.nnz);
	std::vector<float> sorted;

	for (int i = 0; i < a.nnz; i++)
		sorted.push_back(turned[f[i]]);
	same("values, sorted", sorted, a.values);

	/* Blocks of 3 by 3, and a product with them. */
	int *block_offsets = up(std::vector<int>(ROWS / 3 + 1));

	OK(cusparseCreateMatDescr(&descr));
	OK(cusparseSnnz(handle, CUSPARSE_DIRECTION_ROW, ROWS, COLS, descr, up(by_columns(a)), ROWS,
			rows, &n));
	REQUIRE(n == a.nnz, "%d elements", n);
	OK(cusparseXcsr2bsrNnz(handle, CUSPARSE_DIRECTION_ROW, ROWS, COLS, descr, a.gpu_offsets,
			       a.gpu_column, 3, descr, block_offsets, &blocks));
	printf("%d elements in %d blocks\n", a.nnz, blocks);
	int *block_columns = up(std::vector<int>(blocks));
	float *block_values = up(std::vector<float>(9 * blocks)), one = 1, none = 0;

	OK(cusparseScsr2bsr(handle, CUSPARSE_DIRECTION_ROW, ROWS, COLS, descr, a.gpu_values,
			    a.gpu_offsets, a.gpu_column, 3, descr, block_values, block_offsets,
			    block_columns));
	std::vector<float> x = full<float>(COLS);
	float *gx = up(x), *gy = up(std::vector<float>(ROWS));

	for (int i = 0; i < 3; i++)
		OK(cusparseSbsrmv(handle, CUSPARSE_DIRECTION_ROW, CUSPARSE_OPERATION_NON_TRANSPOSE,
				  ROWS / 3, COLS / 3, blocks, &one, descr, block_values,
				  block_offsets, block_columns, 3, gx, &none, gy));
	same("blocks times a vector", down(gy, ROWS), times(a.dense, x, ROWS, COLS, 1));
	OK(cusparseDestroyMatDescr(descr));
}

static void questions(const sparse<float> &a)
{
	cusparseSpMatDescr_t mat = a.csr(CUDA_R_32F);
	cusparseConstSpMatDescr_t fixed;
	int64_t rows, cols, nnz, stride;
	void *offsets, *columns, *values;
	const void *found;
	cusparseIndexType_t offset_type, column_type;
	cusparseIndexBase_t base;
	cusparseFormat_t format;
	cudaDataType type;
	cusparseDnMatDescr_t dense;
	int count, version = 0;

	OK(cusparseGetVersion(handle, &version));
	REQUIRE(version >= 12000, "version %d", version);
	OK(cusparseCsrGet(mat, &rows, &cols, &nnz, &offsets, &columns, &values, &offset_type,
			  &column_type, &base, &type));
	REQUIRE(rows == ROWS && cols == COLS && nnz == a.nnz && offsets == a.gpu_offsets &&
			columns == a.gpu_column && values == a.gpu_values && type == CUDA_R_32F,
		"a sparse matrix is not what was made");
	FAILS(cusparseCooGet(mat, &rows, &cols, &nnz, &offsets, &columns, &values, &offset_type,
			     &base, &type));
	OK(cusparseSpMatGetFormat(mat, &format));
	OK(cusparseSpMatGetStridedBatch(mat, &count));
	REQUIRE(format == CUSPARSE_FORMAT_CSR && count == 1, "format %d, %d matrices", (int)format,
		count);
	OK(cusparseCsrSetStridedBatch(mat, 3, 100, 200));
	OK(cusparseSpMatGetStridedBatch(mat, &count));
	REQUIRE(count == 3, "%d matrices", count);
	FAILS(cusparseCooSetStridedBatch(mat, 3, 100));
	OK(cusparseSpMatSetValues(mat, a.gpu_row));
	OK(cusparseConstSpMatGetValues(mat, &found));
	REQUIRE(found == a.gpu_row, "the values are elsewhere");
	OK(cusparseDestroySpMat(mat));
	OK(cusparseCreateConstCoo(&fixed, ROWS, COLS, a.nnz, a.gpu_row, a.gpu_column, a.gpu_values,
				  CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO, CUDA_R_32F));
	OK(cusparseSpMatGetIndexBase(fixed, &base));
	OK(cusparseDestroySpMat(fixed));
	OK(cusparseDestroySpMat(NULL));
	FAILS(cusparseCreateCsr(&mat, -1, COLS, a.nnz, a.gpu_offsets, a.gpu_column, a.gpu_values,
				CUSPARSE_INDEX_32I, CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO,
				CUDA_R_32F));
	OK(cusparseCreateDnMat(&dense, 3, 4, 3, a.gpu_values, CUDA_R_32F, CUSPARSE_ORDER_COL));
	OK(cusparseDnMatSetStridedBatch(dense, 2, 12));
	OK(cusparseDnMatGetStridedBatch(dense, &count, &stride));
	REQUIRE(count == 2 && stride == 12, "%d matrices, %lld apart", count, (long long)stride);
	FAILS(cusparseDnMatSetStridedBatch(dense, 2, 5));
	OK(cusparseDestroyDnMat(dense));
	printf("%s: %s\n", cusparseGetErrorName(CUSPARSE_STATUS_ZERO_PIVOT),
	       cusparseGetErrorString(CUSPARSE_STATUS_INSUFFICIENT_RESOURCES));
}

int main(void)
{
	begin();

	sparse<float> a(ROWS, COLS, scattered<float>(ROWS, COLS));

	vectors();
	dense_and_back(a);
	other_forms(a);
	questions(a);
	OK(cusparseDestroy(handle));
	return 0;
}
