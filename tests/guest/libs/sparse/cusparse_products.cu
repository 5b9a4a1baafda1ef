// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Products with cuSPARSE's generic functions: sparse matrices in three formats with vectors and
 * dense matrices, sampled products, and two sparse matrices, whose result nobody knows the size of
 * before.
 */
#include "sparse.h"

#define ROWS 37
#define COLS 29
#define WIDE 11

static const float one = 1, two = 2, none = 0;

static void vectors(const sparse<float> &a)
{
	std::vector<float> x = full<float>(COLS), y = full<float>(ROWS),
			   want = times(a.dense, x, ROWS, COLS, 1);
	float *gx = up(x), *gy = up(y);
	cusparseSpMatDescr_t mats[2];
	cusparseDnVecDescr_t vx, vy;
	cusparseConstDnVecDescr_t vc;
	size_t size;

	mats[0] = a.csr(CUDA_R_32F);
	OK(cusparseCreateCoo(&mats[1], ROWS, COLS, a.nnz, a.gpu_row, a.gpu_column, a.gpu_values,
			     CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO, CUDA_R_32F));
	OK(cusparseCreateDnVec(&vx, COLS, gx, CUDA_R_32F));
	OK(cusparseCreateConstDnVec(&vc, COLS, gx, CUDA_R_32F));
	OK(cusparseCreateDnVec(&vy, ROWS, gy, CUDA_R_32F));
	for (float &v : y)
		v *= 2;
	for (int i = 0; i < ROWS; i++)
		y[i] = want[i] + y[i];
	for (int m = 0; m < 2; m++) {
		OK(cusparseSpMV_bufferSize(handle, CUSPARSE_OPERATION_NON_TRANSPOSE, &one, mats[m],
					   vx, &two, vy, CUDA_R_32F, CUSPARSE_SPMV_ALG_DEFAULT,
					   &size));
		void *buffer = room(size);

		if (!m)
			OK(cusparseSpMV_preprocess(handle, CUSPARSE_OPERATION_NON_TRANSPOSE, &one,
						   mats[m], vx, &two, vy, CUDA_R_32F,
						   CUSPARSE_SPMV_ALG_DEFAULT, buffer));
		OK(cusparseSpMV(handle, CUSPARSE_OPERATION_NON_TRANSPOSE, &one, mats[m],
				m ? vc : vx, m ? &none : &two, vy, CUDA_R_32F,
				CUSPARSE_SPMV_ALG_DEFAULT, buffer));
		same(m ? "COO times a vector" : "CSR times a vector", down(gy, ROWS), m ? want : y);
		CHECK(cudaFree(buffer));
		OK(cusparseDestroySpMat(mats[m]));
	}

	/* The transpose, which CSC is of the same arrays; scalars in the GPU's memory. */
	cusparseSpMatDescr_t csc;
	float *gs = up(std::vector<float>{1, 0});

	y = full<float>(ROWS);
	CHECK(cudaMemcpy(gy, y.data(), ROWS * sizeof(float), cudaMemcpyHostToDevice));
	OK(cusparseCreateCsc(&csc, COLS, ROWS, a.nnz, a.gpu_offsets, a.gpu_column, a.gpu_values,
			     CUSPARSE_INDEX_32I, CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO,
			     CUDA_R_32F));
	OK(cusparseSetPointerMode(handle, CUSPARSE_POINTER_MODE_DEVICE));
	OK(cusparseSpMV_bufferSize(handle, CUSPARSE_OPERATION_NON_TRANSPOSE, gs, csc, vy, gs + 1,
				   vx, CUDA_R_32F, CUSPARSE_SPMV_ALG_DEFAULT, &size));
	void *buffer = room(size);

	OK(cusparseSpMV(handle, CUSPARSE_OPERATION_NON_TRANSPOSE, gs, csc, vy, gs + 1, vx,
			CUDA_R_32F, CUSPARSE_SPMV_ALG_DEFAULT, buffer));
	OK(cusparseSetPointerMode(handle, CUSPARSE_POINTER_MODE_HOST));
	same("CSC times a vector, scalars on the GPU", down(gx, COLS),
	     times(applied(flipped, a.dense, ROWS, COLS), y, COLS, ROWS, 1));
	OK(cusparseDestroySpMat(csc));
	OK(cusparseDestroyDnVec(vx));
	OK(cusparseDestroyDnVec(vc));
	OK(cusparseDestroyDnVec(vy));
}

static void matrices(const sparse<float> &a)
{
	std::vector<float> b = full<float>(COLS * WIDE), c(ROWS * WIDE);
	float *gb = up(b), *gc = up(c);
	cusparseSpMatDescr_t mat = a.csr(CUDA_R_32F);
	cusparseDnMatDescr_t mb, mc;
	size_t size;

	OK(cusparseCreateDnMat(&mb, COLS, WIDE, WIDE, gb, CUDA_R_32F, CUSPARSE_ORDER_ROW));
	OK(cusparseCreateDnMat(&mc, ROWS, WIDE, WIDE, gc, CUDA_R_32F, CUSPARSE_ORDER_ROW));
	FAILS(cusparseSpMM_bufferSize(handle, CUSPARSE_OPERATION_NON_TRANSPOSE,
				      CUSPARSE_OPERATION_NON_TRANSPOSE, &one, mat, mc, &none, mb,
				      CUDA_R_32F, CUSPARSE_SPMM_ALG_DEFAULT, &size));
	OK(cusparseSpMM_bufferSize(handle, CUSPARSE_OPERATION_NON_TRANSPOSE,
				   CUSPARSE_OPERATION_NON_TRANSPOSE, &one, mat, mb, &none, mc,
				   CUDA_R_32F, CUSPARSE_SPMM_ALG_DEFAULT, &size));
	void *buffer = room(size);

	for (int i = 0; i < 3; i++)
		OK(cusparseSpMM(handle, CUSPARSE_OPERATION_NON_TRANSPOSE,
				CUSPARSE_OPERATION_NON_TRANSPOSE, &one, mat, mb, &none, mc,
				CUDA_R_32F, CUSPARSE_SPMM_ALG_DEFAULT, buffer));
	same("CSR times a dense matrix", down(gc, ROWS * WIDE),
	     times(a.dense, b, ROWS, COLS, WIDE));

	/* The product of two dense matrices, where the sparse one has elements. */
	std::vector<float> left = full<float>(ROWS * WIDE), right = full<float>(WIDE * COLS), all,
			   want;

	CHECK(cudaMemcpy(gc, left.data(), left.size() * sizeof(float), cudaMemcpyHostToDevice));
	CHECK(cudaMemcpy(gb, right.data(), right.size() * sizeof(float), cudaMemcpyHostToDevice));
	OK(cusparseDestroyDnMat(mb));
	OK(cusparseCreateDnMat(&mb, WIDE, COLS, COLS, gb, CUDA_R_32F, CUSPARSE_ORDER_ROW));
	OK(cusparseSDDMM_bufferSize(handle, CUSPARSE_OPERATION_NON_TRANSPOSE,
				    CUSPARSE_OPERATION_NON_TRANSPOSE, &one, mc, mb, &none, mat,
				    CUDA_R_32F, CUSPARSE_SDDMM_ALG_DEFAULT, &size));
	void *more = room(size);
	float *values = up(a.values);

	OK(cusparseSpMatSetValues(mat, values));
	OK(cusparseSDDMM_preprocess(handle, CUSPARSE_OPERATION_NON_TRANSPOSE,
				    CUSPARSE_OPERATION_NON_TRANSPOSE, &one, mc, mb, &none, mat,
				    CUDA_R_32F, CUSPARSE_SDDMM_ALG_DEFAULT, more));
	OK(cusparseSDDMM(handle, CUSPARSE_OPERATION_NON_TRANSPOSE, CUSPARSE_OPERATION_NON_TRANSPOSE,
			 &one, mc, mb, &none, mat, CUDA_R_32F, CUSPARSE_SDDMM_ALG_DEFAULT, more));
	all = times(left, right, ROWS, WIDE, COLS);
	for (int i = 0; i < a.nnz; i++)
		want.push_back(all[a.row[i] * COLS + a.column[i]]);
	same("a sampled product", down(values, a.nnz), want);
	OK(cusparseDestroyDnMat(mb));
	OK(cusparseDestroyDnMat(mc));
	OK(cusparseDestroySpMat(mat));
}

static void two_sparse(void)
{
	sparse<double> a(ROWS, COLS, scattered<double>(ROWS, COLS)),
		b(COLS, ROWS, scattered<double>(COLS, ROWS));
	cusparseSpMatDescr_t ma = a.csr(CUDA_R_64F), mb = b.csr(CUDA_R_64F), mc;
	cusparseOperation_t op = CUSPARSE_OPERATION_NON_TRANSPOSE;
	double alpha = 1, beta = 0, *values;
	cusparseSpGEMMDescr_t descr;
	int64_t rows, cols, nnz, products;
	size_t size1 = 0, size2 = 0;
	int *offsets, *columns;

	CHECK(cudaMalloc(&offsets, (ROWS + 1) * sizeof(int)));
	OK(cusparseCreateCsr(&mc, ROWS, ROWS, 0, offsets, NULL, NULL, CUSPARSE_INDEX_32I,
			     CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO, CUDA_R_64F));
	OK(cusparseSpGEMM_createDescr(&descr));
	OK(cusparseSpGEMM_workEstimation(handle, op, op, &alpha, ma, mb, &beta, mc, CUDA_R_64F,
					 CUSPARSE_SPGEMM_DEFAULT, descr, &size1, NULL));
	void *work1 = room(size1);

	OK(cusparseSpGEMM_workEstimation(handle, op, op, &alpha, ma, mb, &beta, mc, CUDA_R_64F,
					 CUSPARSE_SPGEMM_DEFAULT, descr, &size1, work1));
	OK(cusparseSpGEMM_getNumProducts(descr, &products));
	OK(cusparseSpGEMM_compute(handle, op, op, &alpha, ma, mb, &beta, mc, CUDA_R_64F,
				  CUSPARSE_SPGEMM_DEFAULT, descr, &size2, NULL));
	void *work2 = room(size2);

	OK(cusparseSpGEMM_compute(handle, op, op, &alpha, ma, mb, &beta, mc, CUDA_R_64F,
				  CUSPARSE_SPGEMM_DEFAULT, descr, &size2, work2));
	OK(cusparseSpMatGetSize(mc, &rows, &cols, &nnz));
	printf("%d and %d elements: %lld products, %lld x %lld with %lld elements\n", a.nnz, b.nnz,
	       (long long)products, (long long)rows, (long long)cols, (long long)nnz);
	CHECK(cudaMalloc(&columns, nnz * sizeof(int)));
	CHECK(cudaMalloc(&values, nnz * sizeof(double)));
	OK(cusparseCsrSetPointers(mc, offsets, columns, values));
	OK(cusparseSpGEMM_copy(handle, op, op, &alpha, ma, mb, &beta, mc, CUDA_R_64F,
			       CUSPARSE_SPGEMM_DEFAULT, descr));
	same("a product of two sparse matrices",
	     opened(ROWS, ROWS, down(offsets, ROWS + 1), down(columns, nnz), down(values, nnz)),
	     times(a.dense, b.dense, ROWS, COLS, ROWS));
	OK(cusparseSpGEMM_destroyDescr(descr));
	FAILS(cusparseSpGEMM_copy(handle, op, op, &alpha, ma, mb, &beta, mc, CUDA_R_64F,
				  CUSPARSE_SPGEMM_DEFAULT, NULL));

	/* The same in parts that can be used again for other values. */
	size_t s1 = 0, s2 = 0, s3 = 0, s4 = 0, s5 = 0;
	cusparseSpGEMMAlg_t alg = CUSPARSE_SPGEMM_DEFAULT;
	cusparseSpMatDescr_t again;

	OK(cusparseCreateCsr(&again, ROWS, ROWS, 0, offsets, NULL, NULL, CUSPARSE_INDEX_32I,
			     CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO, CUDA_R_64F));
	OK(cusparseSpGEMM_createDescr(&descr));
	OK(cusparseSpGEMMreuse_workEstimation(handle, op, op, ma, mb, again, alg, descr, &s1,
					      NULL));
	void *w1 = room(s1);

	OK(cusparseSpGEMMreuse_workEstimation(handle, op, op, ma, mb, again, alg, descr, &s1, w1));
	OK(cusparseSpGEMMreuse_nnz(handle, op, op, ma, mb, again, alg, descr, &s2, NULL, &s3, NULL,
				   &s4, NULL));
	void *w2 = room(s2), *w3 = room(s3), *w4 = room(s4);

	OK(cusparseSpGEMMreuse_nnz(handle, op, op, ma, mb, again, alg, descr, &s2, w2, &s3, w3, &s4,
				   w4));
	OK(cusparseSpMatGetSize(again, &rows, &cols, &nnz));
	CHECK(cudaMemset(values, 0, nnz * sizeof(double)));
	OK(cusparseCsrSetPointers(again, offsets, columns, values));
	OK(cusparseSpGEMMreuse_copy(handle, op, op, ma, mb, again, alg, descr, &s5, NULL));
	void *w5 = room(s5);

	OK(cusparseSpGEMMreuse_copy(handle, op, op, ma, mb, again, alg, descr, &s5, w5));
	for (int i = 0; i < 3; i++)
		OK(cusparseSpGEMMreuse_compute(handle, op, op, &alpha, ma, mb, &beta, again,
					       CUDA_R_64F, alg, descr));
	same("the same in parts",
	     opened(ROWS, ROWS, down(offsets, ROWS + 1), down(columns, nnz), down(values, nnz)),
	     times(a.dense, b.dense, ROWS, COLS, ROWS));
	OK(cusparseSpGEMM_destroyDescr(descr));
	OK(cusparseDestroySpMat(again));
	OK(cusparseDestroySpMat(ma));
	OK(cusparseDestroySpMat(mb));
	OK(cusparseDestroySpMat(mc));
}

int main(void)
{
	begin();

	sparse<float> a(ROWS, COLS, scattered<float>(ROWS, COLS));
	cudaStream_t stream, got = NULL;

	vectors(a);
	CHECK(cudaStreamCreate(&stream));
	OK(cusparseSetStream(handle, stream));
	OK(cusparseGetStream(handle, &got));
	REQUIRE(got == stream, "the stream is another one");
	matrices(a);
	OK(cusparseSetStream(handle, NULL));
	two_sparse();
	OK(cusparseDestroy(handle));
	OK(cusparseDestroy(NULL));
	return 0;
}
