// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Systems of equations with cuSPARSE: triangular ones, which are looked at first and solved again
 * and again, also for new values; incomplete factors, with a zero where none may be; and
 * tridiagonal ones.
 */
#include "sparse.h"

#define N    40
#define WIDE 5

static std::vector<double> lower(double diagonal)
{
	std::vector<double> m = scattered<double>(N, N);

	for (int i = 0; i < N; i++)
		for (int j = i; j < N; j++)
			m[i * N + j] = i == j ? diagonal : 0;
	return m;
}

static void triangular(void)
{
	sparse<double> a(N, N, lower(4));
	cusparseSpMatDescr_t mat = a.csr(CUDA_R_64F);
	cusparseFillMode_t fill = CUSPARSE_FILL_MODE_LOWER, got = CUSPARSE_FILL_MODE_UPPER;
	cusparseDiagType_t diag = CUSPARSE_DIAG_TYPE_NON_UNIT;
	std::vector<double> x = full<double>(N), xs = full<double>(N * WIDE);
	double *gb = up(times(a.dense, x, N, N, 1)), *gx = up(std::vector<double>(N)), one = 1;
	double *gbs = up(times(a.dense, xs, N, N, WIDE)), *gxs = up(std::vector<double>(N * WIDE));
	cusparseDnVecDescr_t vb, vx;
	cusparseDnMatDescr_t mb, mx;
	cusparseSpSVDescr_t descr;
	cusparseSpSMDescr_t more;
	size_t size;

	OK(cusparseSpMatSetAttribute(mat, CUSPARSE_SPMAT_FILL_MODE, &fill, sizeof(fill)));
	OK(cusparseSpMatSetAttribute(mat, CUSPARSE_SPMAT_DIAG_TYPE, &diag, sizeof(diag)));
	FAILS(cusparseSpMatSetAttribute(mat, CUSPARSE_SPMAT_DIAG_TYPE, &diag, 1));
	OK(cusparseSpMatGetAttribute(mat, CUSPARSE_SPMAT_FILL_MODE, &got, sizeof(got)));
	REQUIRE(got == fill, "the fill mode is %d", (int)got);
	OK(cusparseCreateDnVec(&vb, N, gb, CUDA_R_64F));
	OK(cusparseCreateDnVec(&vx, N, gx, CUDA_R_64F));
	OK(cusparseSpSV_createDescr(&descr));
	OK(cusparseSpSV_bufferSize(handle, plain, &one, mat, vb, vx, CUDA_R_64F,
				   CUSPARSE_SPSV_ALG_DEFAULT, descr, &size));
	void *buffer = room(size);

	OK(cusparseSpSV_analysis(handle, plain, &one, mat, vb, vx, CUDA_R_64F,
				 CUSPARSE_SPSV_ALG_DEFAULT, descr, buffer));
	for (int i = 0; i < 3; i++) {
		CHECK(cudaMemset(gx, 0, N * sizeof(double)));
		OK(cusparseSpSV_solve(handle, plain, &one, mat, vb, vx, CUDA_R_64F,
				      CUSPARSE_SPSV_ALG_DEFAULT, descr));
		near("a triangular system", down(gx, N), x);
	}
	/* The same places, other values. */
	std::vector<double> other = a.values;

	for (double &v : other)
		v *= 2;
	double *go = up(other);

	OK(cusparseSpSV_updateMatrix(handle, descr, go, CUSPARSE_SPSV_UPDATE_GENERAL));
	OK(cusparseSpSV_solve(handle, plain, &one, mat, vb, vx, CUDA_R_64F,
			      CUSPARSE_SPSV_ALG_DEFAULT, descr));
	std::vector<double> half = x;

	for (double &v : half)
		v /= 2;
	near("the same with other values", down(gx, N), half);
	OK(cusparseSpSV_destroyDescr(descr));

	OK(cusparseCreateDnMat(&mb, N, WIDE, WIDE, gbs, CUDA_R_64F, CUSPARSE_ORDER_ROW));
	OK(cusparseCreateDnMat(&mx, N, WIDE, WIDE, gxs, CUDA_R_64F, CUSPARSE_ORDER_ROW));
	OK(cusparseSpSM_createDescr(&more));
	OK(cusparseSpSM_bufferSize(handle, plain, plain, &one, mat, mb, mx, CUDA_R_64F,
				   CUSPARSE_SPSM_ALG_DEFAULT, more, &size));
	void *large = room(size);

	OK(cusparseSpSM_analysis(handle, plain, plain, &one, mat, mb, mx, CUDA_R_64F,
				 CUSPARSE_SPSM_ALG_DEFAULT, more, large));
	for (int i = 0; i < 2; i++)
		OK(cusparseSpSM_solve(handle, plain, plain, &one, mat, mb, mx, CUDA_R_64F,
				      CUSPARSE_SPSM_ALG_DEFAULT, more));
	near("several at once", down(gxs, N * WIDE), xs);
	OK(cusparseSpSM_destroyDescr(more));
	OK(cusparseDestroySpMat(mat));
	FAILS(cusparseSpSV_bufferSize(handle, plain, &one, NULL, vb, vx, CUDA_R_64F,
				      CUSPARSE_SPSV_ALG_DEFAULT, descr, &size));
}

/* A chain: 4 on the diagonal, -1 beside it. Its factors have no more elements, so they are exact.
 */
static std::vector<double> chain(void)
{
	std::vector<double> m(N * N);

	for (int i = 0; i < N; i++) {
		m[i * N + i] = 4;
		if (i)
			m[i * N + i - 1] = m[(i - 1) * N + i] = -1;
	}
	return m;
}

/* A pivot that is almost zero is replaced. */
static void small_pivot(void)
{
	sparse<double> a(3, 3, {2, 0, 0, 0, 1e-9, 0, 0, 0, 3});
	cusparseMatDescr_t descr;
	csrilu02Info_t lu;
	double least = 1e-3, by = 5;
	int size;

	OK(cusparseCreateMatDescr(&descr));
	OK(cusparseCreateCsrilu02Info(&lu));
	FAILS(cusparseDcsrilu02_numericBoost(NULL, lu, 0, NULL, NULL));
	OK(cusparseDcsrilu02_bufferSize(handle, 3, a.nnz, descr, a.gpu_values, a.gpu_offsets,
					a.gpu_column, lu, &size));
	void *buffer = room(size);

	OK(cusparseDcsrilu02_numericBoost(handle, lu, 1, &least, &by));
	OK(cusparseDcsrilu02_analysis(handle, 3, a.nnz, descr, a.gpu_values, a.gpu_offsets,
				      a.gpu_column, lu, CUSPARSE_SOLVE_POLICY_NO_LEVEL, buffer));
	OK(cusparseDcsrilu02(handle, 3, a.nnz, descr, a.gpu_values, a.gpu_offsets, a.gpu_column, lu,
			     CUSPARSE_SOLVE_POLICY_NO_LEVEL, buffer));
	near("a replaced pivot", down(a.gpu_values, 3), {2, 5, 3});
	OK(cusparseDestroyCsrilu02Info(lu));
	OK(cusparseDestroyMatDescr(descr));
	CHECK(cudaFree(buffer));
}

static void factors(void)
{
	sparse<double> a(N, N, chain()), c(N, N, chain());
	cusparseMatDescr_t descr;
	csrilu02Info_t lu;
	csric02Info_t cholesky;
	int size, position = 7;

	OK(cusparseCreateMatDescr(&descr));
	OK(cusparseSetMatType(descr, CUSPARSE_MATRIX_TYPE_GENERAL));
	FAILS(cusparseSetMatType(descr, (cusparseMatrixType_t)77));
	OK(cusparseSetMatIndexBase(descr, CUSPARSE_INDEX_BASE_ZERO));
	OK(cusparseSetMatFillMode(descr, CUSPARSE_FILL_MODE_UPPER));
	REQUIRE(cusparseGetMatFillMode(descr) == CUSPARSE_FILL_MODE_UPPER &&
			!cusparseGetMatIndexBase(descr),
		"what has been set is not there");
	OK(cusparseSetMatFillMode(descr, CUSPARSE_FILL_MODE_LOWER));

	OK(cusparseCreateCsrilu02Info(&lu));
	OK(cusparseDcsrilu02_bufferSize(handle, N, a.nnz, descr, a.gpu_values, a.gpu_offsets,
					a.gpu_column, lu, &size));
	void *buffer = room(size);

	OK(cusparseDcsrilu02_analysis(handle, N, a.nnz, descr, a.gpu_values, a.gpu_offsets,
				      a.gpu_column, lu, CUSPARSE_SOLVE_POLICY_NO_LEVEL, buffer));
	OK(cusparseXcsrilu02_zeroPivot(handle, lu, &position));
	OK(cusparseDcsrilu02(handle, N, a.nnz, descr, a.gpu_values, a.gpu_offsets, a.gpu_column, lu,
			     CUSPARSE_SOLVE_POLICY_NO_LEVEL, buffer));
	OK(cusparseXcsrilu02_zeroPivot(handle, lu, &position));
	REQUIRE(position == -1, "a zero pivot at %d", position);

	std::vector<double> f = down(a.gpu_values, a.nnz), l(N * N), u(N * N);

	for (int i = 0; i < a.nnz; i++)
		(a.row[i] > a.column[i] ? l : u)[a.row[i] * N + a.column[i]] = f[i];
	for (int i = 0; i < N; i++)
		l[i * N + i] = 1;
	near("the factors of LU", times(l, u, N, N, N), chain());
	OK(cusparseDestroyCsrilu02Info(lu));

	OK(cusparseCreateCsric02Info(&cholesky));
	OK(cusparseDcsric02_bufferSize(handle, N, c.nnz, descr, c.gpu_values, c.gpu_offsets,
				       c.gpu_column, cholesky, &size));
	void *other = room(size);

	OK(cusparseDcsric02_analysis(handle, N, c.nnz, descr, c.gpu_values, c.gpu_offsets,
				     c.gpu_column, cholesky, CUSPARSE_SOLVE_POLICY_USE_LEVEL,
				     other));
	OK(cusparseDcsric02(handle, N, c.nnz, descr, c.gpu_values, c.gpu_offsets, c.gpu_column,
			    cholesky, CUSPARSE_SOLVE_POLICY_USE_LEVEL, other));
	f = down(c.gpu_values, c.nnz);
	std::fill(l.begin(), l.end(), 0);
	std::fill(u.begin(), u.end(), 0);
	for (int i = 0; i < c.nnz; i++)
		if (c.row[i] >= c.column[i])
			l[c.row[i] * N + c.column[i]] = u[c.column[i] * N + c.row[i]] = f[i];
	near("the factors of Cholesky", times(l, u, N, N, N), chain());

	/* Not positive: the first pivot that has no root. */
	std::vector<double> bad = c.values;

	for (int i = 0; i < c.nnz; i++)
		if (c.row[i] == 9 && c.column[i] == 9)
			bad[i] = 0;
	CHECK(cudaMemcpy(c.gpu_values, bad.data(), bad.size() * sizeof(double),
			 cudaMemcpyHostToDevice));
	OK(cusparseDcsric02(handle, N, c.nnz, descr, c.gpu_values, c.gpu_offsets, c.gpu_column,
			    cholesky, CUSPARSE_SOLVE_POLICY_USE_LEVEL, other));
	printf("zero pivot: status %d",
	       (int)cusparseXcsric02_zeroPivot(handle, cholesky, &position));
	printf(" at %d\n", position);
	OK(cusparseDestroyCsric02Info(cholesky));
	OK(cusparseDestroyMatDescr(descr));
}

static void tridiagonal(void)
{
	std::vector<double> below(N, -1), on(N, 4), above(N, -1), x = full<double>(N);

	below[0] = above[N - 1] = 0;
	double *gl = up(below), *gd = up(on), *gu = up(above), *gb = up(times(chain(), x, N, N, 1));
	size_t size;

	OK(cusparseDgtsv2_bufferSizeExt(handle, N, 1, gl, gd, gu, gb, N, &size));
	void *buffer = room(size);

	OK(cusparseDgtsv2(handle, N, 1, gl, gd, gu, gb, N, buffer));
	near("a tridiagonal system", down(gb, N), x);
	FAILS(cusparseDgtsv2(handle, 1, 1, gl, gd, gu, gb, N, buffer));
}

int main(void)
{
	begin();
	triangular();
	small_pivot();
	factors();
	tridiagonal();
	OK(cusparseDestroy(handle));
	return 0;
}
