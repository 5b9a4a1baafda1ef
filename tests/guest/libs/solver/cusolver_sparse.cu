// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Sparse systems with cuSOLVER: wrong sizes, then a symmetric, positive definite matrix of a grid
 * by QR and Cholesky factors, on the GPU and on the host, with indices from 0 and from 1, and one
 * that is singular. Then how many sweeps Jacobi's method makes for eigenvalues and singular values,
 * and what is left.
 */
#define DISABLE_CUSOLVER_DEPRECATED
#include <cusolverSp.h>

#include "solver.h"

static const int SIDE = 12, N = SIDE * SIDE;
static cusolverSpHandle_t sparse;
static cusparseMatDescr_t descr;

/* A grid's Laplace matrix, and a bit more on the diagonal. */
struct matrix {
	std::vector<int> rows, cols;
	std::vector<double> values;

	explicit matrix(int base)
	{
		for (int row = 0; row < N; row++) {
			const int next[] = {row - SIDE, row % SIDE ? row - 1 : -1, row,
					    row % SIDE < SIDE - 1 ? row + 1 : -1, row + SIDE};

			rows.push_back((int)cols.size() + base);
			for (int col : next) {
				if (col < 0 || col >= N)
					continue;
				cols.push_back(col + base);
				values.push_back(col == row ? 4.5 : -1);
			}
		}
		rows.push_back((int)cols.size() + base);
	}
	int nnz() const
	{
		return (int)cols.size();
	}
	std::vector<double> times(const std::vector<double> &x) const
	{
		std::vector<double> b(N);

		for (int row = 0; row < N; row++)
			for (int at = rows[row] - rows[0]; at < rows[row + 1] - rows[0]; at++)
				b[row] += values[at] * x[cols[at] - rows[0]];
		return b;
	}
};

static void is_near(const char *what, const std::vector<double> &x, const std::vector<double> &want)
{
	for (int i = 0; i < N; i++)
		REQUIRE(fabs(x[i] - want[i]) < 1e-9, "%s: %g, not %g, at %d", what, x[i], want[i],
			i);
}

static void systems(int base)
{
	const matrix a(base);
	std::vector<double> want, x(N);
	int singular = -7;

	for (int i = 0; i < N; i++)
		want.push_back(small_number());
	const std::vector<double> b = a.times(want);
	memory<double> values(a.values), gb(b), gx(N);
	memory<int> rows(a.rows), cols(a.cols);

	OK(cusparseSetMatIndexBase(descr,
				   base ? CUSPARSE_INDEX_BASE_ONE : CUSPARSE_INDEX_BASE_ZERO));
	FAILS(cusolverSpDcsrlsvqr(sparse, -1, a.nnz(), descr, values, rows, cols, gb, 0, 0, gx,
				  &singular));
	FAILS(cusolverSpDcsrlsvqr(sparse, N, a.nnz(), descr, values, rows, cols, gb, 0, 9, gx,
				  &singular));
	for (int reorder = 0; reorder < 3; reorder++) {
		OK(cusolverSpDcsrlsvqr(sparse, N, a.nnz(), descr, values, rows, cols, gb, 1e-12,
				       reorder, gx, &singular));
		REQUIRE(singular == -1, "singular at %d", singular);
		is_near("QR", gx.get(), want);
	}
	OK(cusolverSpDcsrlsvchol(sparse, N, a.nnz(), descr, values, rows, cols, gb, 1e-12, 0, gx,
				 &singular));
	REQUIRE(singular == -1, "singular at %d", singular);
	is_near("Cholesky", gx.get(), want);
	OK(cusolverSpDcsrlsvluHost(sparse, N, a.nnz(), descr, a.values.data(), a.rows.data(),
				   a.cols.data(), b.data(), 1e-12, 1, x.data(), &singular));
	REQUIRE(singular == -1, "singular at %d", singular);
	is_near("LU on the host", x, want);
	OK(cusolverSpDcsrlsvqrHost(sparse, N, a.nnz(), descr, a.values.data(), a.rows.data(),
				   a.cols.data(), b.data(), 1e-12, 1, x.data(), &singular));
	is_near("QR on the host", x, want);
	OK(cusolverSpDcsrlsvcholHost(sparse, N, a.nnz(), descr, a.values.data(), a.rows.data(),
				     a.cols.data(), b.data(), 1e-12, 1, x.data(), &singular));
	is_near("Cholesky on the host", x, want);
}

/* A row of zeros. */
static void singular_matrix()
{
	memory<double> values(std::vector<double>{1, 0, 2}), b(std::vector<double>{1, 1, 1}), x(3);
	memory<int> rows(std::vector<int>{0, 1, 2, 3}), cols(std::vector<int>{0, 1, 2});
	int singular = -7;

	OK(cusparseSetMatIndexBase(descr, CUSPARSE_INDEX_BASE_ZERO));
	OK(cusolverSpDcsrlsvqr(sparse, 3, 3, descr, values, rows, cols, b, 1e-12, 0, x, &singular));
	REQUIRE(singular == 1, "singular at %d", singular);
}

static void jacobi()
{
	const int n = 40;
	std::vector<double> a(n * n);
	memory<double> w(n), u(n * n), v(n * n);
	memory<int> info(1);
	double residual = -1;
	syevjInfo_t eigen;
	gesvdjInfo_t svd;
	int sweeps = -1, size;

	for (int i = 0; i < n; i++)
		for (int j = 0; j <= i; j++)
			a[i + j * n] = a[j + i * n] = small_number();
	memory<double> ga(a), gb(a);
	OK(cusolverDnCreateSyevjInfo(&eigen));
	OK(cusolverDnCreateGesvdjInfo(&svd));
	OK(cusolverDnXsyevjSetTolerance(eigen, 1e-10));
	OK(cusolverDnXgesvdjSetTolerance(svd, 1e-10));
	OK(cusolverDnDsyevj_bufferSize(handle, CUSOLVER_EIG_MODE_VECTOR, CUBLAS_FILL_MODE_LOWER, n,
				       ga, n, w, &size, eigen));
	memory<double> work(size);
	OK(cusolverDnDsyevj(handle, CUSOLVER_EIG_MODE_VECTOR, CUBLAS_FILL_MODE_LOWER, n, ga, n, w,
			    work, size, info, eigen));
	OK(cusolverDnXsyevjGetSweeps(handle, eigen, &sweeps));
	OK(cusolverDnXsyevjGetResidual(handle, eigen, &residual));
	REQUIRE(sweeps > 0 && sweeps <= 100 && residual >= 0 && residual < 1e-6,
		"%d sweeps, %g is left", sweeps, residual);
	printf("eigenvalues: %d sweeps, %g is left\n", sweeps, residual);
	OK(cusolverDnDgesvdj_bufferSize(handle, CUSOLVER_EIG_MODE_VECTOR, 0, n, n, gb, n, w, u, n,
					v, n, &size, svd));
	memory<double> more(size);
	OK(cusolverDnDgesvdj(handle, CUSOLVER_EIG_MODE_VECTOR, 0, n, n, gb, n, w, u, n, v, n, more,
			     size, info, svd));
	OK(cusolverDnXgesvdjGetSweeps(handle, svd, &sweeps));
	OK(cusolverDnXgesvdjGetResidual(handle, svd, &residual));
	REQUIRE(sweeps > 0 && sweeps <= 100 && residual >= 0 && residual < 1e-6,
		"%d sweeps, %g is left", sweeps, residual);
	printf("singular values: %d sweeps, %g is left\n", sweeps, residual);
	OK(cusolverDnDestroySyevjInfo(eigen));
	OK(cusolverDnDestroyGesvdjInfo(svd));
}

int main()
{
	cudaStream_t stream;

	begin();
	OK(cusolverSpCreate(&sparse));
	OK(cusparseCreateMatDescr(&descr));
	CHECK(cudaStreamCreate(&stream));
	systems(0);
	OK(cusolverSpSetStream(sparse, stream));
	systems(1);
	singular_matrix();
	jacobi();
	OK(cusparseDestroyMatDescr(descr));
	OK(cusolverSpDestroy(sparse));
	OK(cusolverDnDestroy(handle));
	return verified("sparse systems");
}
