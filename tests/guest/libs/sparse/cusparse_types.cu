// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The types of numbers and of indices: a matrix times a vector in each of three formats, by every algorithm and
 * with each operation, also where matrix, vector and result are of different types.
 */
#include "sparse.h"

#define ROWS 33
#define COLS 26

static void wrong(void)
{
	const cusparseIndexBase_t zero = CUSPARSE_INDEX_BASE_ZERO;
	sparse<float> a(ROWS, COLS, scattered<float>(ROWS, COLS));
	dense_vector<float> x(full<float>(COLS)), y(full<float>(ROWS));
	cusparseSpMatDescr_t mat = a.csr(CUDA_R_32F), none;
	const float one = 1;
	size_t size;

	FAILS(cusparseCreateCsr(&none, ROWS, COLS, a.nnz, a.gpu_offsets, a.gpu_column, a.gpu_values,
				(cusparseIndexType_t)77, CUSPARSE_INDEX_32I, zero, CUDA_R_32F));
	FAILS(cusparseCreateCsr(&none, ROWS, COLS, a.nnz, a.gpu_offsets, a.gpu_column, (char *)a.gpu_values + 1,
				CUSPARSE_INDEX_32I, CUSPARSE_INDEX_32I, zero, CUDA_R_32F));
	FAILS(cusparseCreateCoo(&none, 2, 3, 7, a.gpu_row, a.gpu_column, a.gpu_values, CUSPARSE_INDEX_32I, zero,
				CUDA_R_32F));
	FAILS(cusparseSpMV_bufferSize(NULL, plain, &one, mat, x, &one, y, CUDA_R_32F, CUSPARSE_SPMV_ALG_DEFAULT,
				      &size));
	FAILS(cusparseSpMV_bufferSize(handle, plain, &one, NULL, x, &one, y, CUDA_R_32F, CUSPARSE_SPMV_ALG_DEFAULT,
				      &size));
	/* The vectors are too long and too short for each other's place. */
	FAILS(cusparseSpMV_bufferSize(handle, plain, &one, mat, y, &one, x, CUDA_R_32F, CUSPARSE_SPMV_ALG_DEFAULT,
				      &size));
	FAILS(cusparseSpMV_bufferSize(handle, flipped, &one, mat, x, &one, y, CUDA_R_32F, CUSPARSE_SPMV_ALG_DEFAULT,
				      &size));
	OK(cusparseDestroySpMat(mat));
}

/* y = alpha op(a) x + beta y. */
template <typename T, typename I> static void formats(const char *what, cusparseIndexBase_t base, T alpha, T beta)
{
	sparse<T> a(ROWS, COLS, scattered<T>(ROWS, COLS)), t(COLS, ROWS, applied(flipped, a.dense, ROWS, COLS));
	matrix<T, I> csr(a, CUSPARSE_FORMAT_CSR, base), coo(a, CUSPARSE_FORMAT_COO, base),
		csc(t, CUSPARSE_FORMAT_CSC, base);
	const struct {
		cusparseSpMatDescr_t mat;
		cusparseSpMVAlg_t alg;
	} ways[] = {{csr, CUSPARSE_SPMV_ALG_DEFAULT}, {csr, CUSPARSE_SPMV_CSR_ALG1}, {csr, CUSPARSE_SPMV_CSR_ALG2},
		    {coo, CUSPARSE_SPMV_ALG_DEFAULT}, {coo, CUSPARSE_SPMV_COO_ALG1}, {coo, CUSPARSE_SPMV_COO_ALG2},
		    {csc, CUSPARSE_SPMV_ALG_DEFAULT}, {csc, CUSPARSE_SPMV_CSR_ALG1}};

	for (cusparseOperation_t op : {plain, flipped, conjugated}) {
		int in = op == plain ? COLS : ROWS, out = ROWS + COLS - in;
		std::vector<T> x = full<T>(in), y = full<T>(out),
			       want = times(applied(op, a.dense, ROWS, COLS), x, out, in, 1);

		if (op == conjugated && !is_complex<T>())
			continue;
		for (auto &way : ways) {
			dense_vector<T> gx(x), gy(y);

			multiply<T>(op, alpha, way.mat, gx, beta, gy, way.alg);
			must_be(what, gy.host(), combined(alpha, want, beta, y));
		}
	}
	printf("products, %s: right\n", what);
}

/* The matrix is of type A, the vector of X, the result of Y, and C computes. */
template <typename A, typename X, typename Y, typename C> static void mixed(const char *what)
{
	std::vector<A> m = whole<A>(ROWS * COLS);

	for (size_t i = 0; i < m.size(); i++)
		if (i % 3)
			m[i] = A(0.0f);
	sparse<A> a(ROWS, COLS, m);
	matrix<A> csr(a), coo(a, CUSPARSE_FORMAT_COO);
	const cusparseSpMatDescr_t mats[] = {csr, coo};
	std::vector<X> x = whole<X>(COLS);
	std::vector<C> wide, want;

	for (A v : m)
		wide.push_back(C((float)v));
	want = times(wide, std::vector<C>(x.begin(), x.end()), ROWS, COLS, 1);
	for (cusparseSpMatDescr_t mat : mats) {
		dense_vector<X> gx(x);
		dense_vector<Y> gy(whole<Y>(ROWS));

		multiply<C>(plain, C(2), mat, gx, C(0), gy);
		std::vector<Y> y = gy.host();
		must_be(what, std::vector<C>(y.begin(), y.end()), combined(C(2), want, C(0), want));
	}
	printf("products, %s: right\n", what);
}

int main(void)
{
	typedef std::complex<float> C;
	typedef std::complex<double> Z;
	const cusparseIndexBase_t zero = CUSPARSE_INDEX_BASE_ZERO, one = CUSPARSE_INDEX_BASE_ONE;

	begin();
	wrong();
	formats<float, int>("float", zero, 2, -1);
	formats<double, int64_t>("double, 64-bit indices from 1", one, 0.5, 3);
	formats<C, int>("complex float, from 1", one, C(2, 1), C(0, -1));
	formats<Z, int64_t>("complex double, 64-bit indices", zero, Z(0, 1), Z(2, -1));
	mixed<int8_t, int8_t, int, int>("bytes to integers");
	mixed<int8_t, int8_t, float, float>("bytes to float");
	mixed<__half, __half, float, float>("half to float");
	mixed<__half, __half, __half, float>("half to half");
	mixed<float, double, double, double>("float times double");
	mixed<float, C, C, C>("float times complex");
	mixed<double, Z, Z, Z>("double times complex");
	OK(cusparseDestroy(handle));
	return 0;
}
