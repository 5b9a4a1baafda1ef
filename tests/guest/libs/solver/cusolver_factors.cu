// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Factors of sparse matrices that stay in cuSOLVER: LU factors that are computed again for other
 * values (cusolverRf, one matrix and several, set up from the host and from the GPU), and QR
 * factors of several matrices with one structure. Then an eigenvalue, a least squares problem, and
 * orders of rows. All results are compared with products that are computed here. NVIDIA's library
 * takes wrong calls, or crashes: tests/loopback/libs/factor_calls.c makes them.
 */
#define DISABLE_CUSOLVER_DEPRECATED
#include <cusolverRf.h>
#include <cusolverSp.h>

#include "solver.h"

static const int SIDE = 8, N = SIDE * SIDE, BATCH = 3, BATCH_WORKS = 12401;
static cusolverSpHandle_t sparse;
static cusparseMatDescr_t descr;

struct csr {
	std::vector<int> rows = {0}, cols;
	std::vector<double> values;

	void add(int col, double value)
	{
		cols.push_back(col);
		values.push_back(value);
	}
	void end_row()
	{
		rows.push_back((int)cols.size());
	}
	int nnz() const
	{
		return (int)cols.size();
	}
	std::vector<double> times(const std::vector<double> &x) const
	{
		std::vector<double> b(rows.size() - 1);

		for (size_t row = 0; row + 1 < rows.size(); row++)
			for (int at = rows[row]; at < rows[row + 1]; at++)
				b[row] += values[at] * x[cols[at]];
		return b;
	}
	/* Each row's last element, or the first one, is the diagonal. */
	double &at(int row, int col)
	{
		for (int i = rows[row]; i < rows[row + 1]; i++)
			if (cols[i] == col)
				return values[i];
		REQUIRE(false, "there is no element %d, %d", row, col);
		return values[0];
	}
};

/* A grid's matrix, in which the diagonal is the greatest of each row. */
static csr make_grid(double diagonal)
{
	csr a;

	for (int row = 0; row < N; row++) {
		const int next[] = {row - SIDE, row % SIDE ? row - 1 : -1, row,
				    row % SIDE < SIDE - 1 ? row + 1 : -1, row + SIDE};

		for (int col : next)
			if (col >= 0 && col < N)
				a.add(col, col == row ? diagonal : -1 + 0.1 * small_number() / 10);
		a.end_row();
	}
	return a;
}

/* Factors without pivots. L has ones on its diagonal, and they are stored. */
static void factor(const csr &a, csr *l, csr *u)
{
	std::vector<double> m(N * N);

	for (int row = 0; row < N; row++)
		for (int at = a.rows[row]; at < a.rows[row + 1]; at++)
			m[row * N + a.cols[at]] = a.values[at];
	for (int k = 0; k < N; k++)
		for (int row = k + 1; row < N; row++) {
			if (m[row * N + k] == 0)
				continue;
			m[row * N + k] /= m[k * N + k];
			for (int col = k + 1; col < N; col++)
				m[row * N + col] -= m[row * N + k] * m[k * N + col];
		}
	for (int row = 0; row < N; row++) {
		for (int col = 0; col < N; col++) {
			if (m[row * N + col] == 0)
				continue;
			if (col < row)
				l->add(col, m[row * N + col]);
			else
				u->add(col, m[row * N + col]);
		}
		l->add(row, 1);
		l->end_row();
		u->end_row();
	}
}

static void is_near(const char *what, const std::vector<double> &x, const std::vector<double> &want)
{
	for (size_t i = 0; i < want.size(); i++)
		REQUIRE(fabs(x[i] - want[i]) < 1e-9, "%s: %g, not %g, at %zu", what, x[i], want[i],
			i);
}

static std::vector<double> small_vector(int n)
{
	std::vector<double> x;

	for (int i = 0; i < n; i++)
		x.push_back(small_number());
	return x;
}

/* ---- cusolverRf ---- */

struct rf_case {
	csr a, other, l, u;
	std::vector<int> order;
	rf_case() : a(make_grid(9)), other(a)
	{
		factor(a, &l, &u);
		for (int i = 0; i < N; i++)
			order.push_back(i);
		for (double &v : other.values)
			v *= 1.5;
		for (int i = 0; i < N; i++)
			other.at(i, i) += 1 + i % 3;
	}
};

static void solve_again(cusolverRfHandle_t rf, const rf_case &r)
{
	const std::vector<double> want = small_vector(N), b = r.other.times(want);
	memory<int> rows(r.other.rows), cols(r.other.cols), order(r.order);
	memory<double> values(r.other.values), x(b), temp(N);

	OK(cusolverRfAnalyze(rf));
	OK(cusolverRfResetValues(N, r.a.nnz(), rows, cols, values, order, order, rf));
	OK(cusolverRfRefactor(rf));
	OK(cusolverRfSolve(rf, order, order, 1, temp, N, x, N));
	CHECK(cudaDeviceSynchronize());
	is_near("cusolverRf", x.get(), want);
}

/* L times U is the matrix. */
static void extracted(cusolverRfHandle_t rf, rf_case &r)
{
	int nnz[3], *rows[3], *cols[3];
	double *values[3];

	OK(cusolverRfExtractBundledFactorsHost(rf, &nnz[0], &rows[0], &cols[0], &values[0]));
	OK(cusolverRfExtractSplitFactorsHost(rf, &nnz[1], &rows[1], &cols[1], &values[1], &nnz[2],
					     &rows[2], &cols[2], &values[2]));
	REQUIRE(rows[0][N] == nnz[0] && rows[1][N] == nnz[1] && rows[2][N] == nnz[2],
		"%d, %d and %d elements", nnz[0], nnz[1], nnz[2]);
	const std::vector<double> x = small_vector(N), want = r.other.times(x);
	std::vector<double> ux(N), lux(N);
	for (int row = 0; row < N; row++)
		for (int at = rows[2][row]; at < rows[2][row + 1]; at++)
			ux[row] += values[2][at] * x[cols[2][at]];
	for (int row = 0; row < N; row++) {
		bool one = false;

		for (int at = rows[1][row]; at < rows[1][row + 1]; at++) {
			one |= cols[1][at] == row;
			lux[row] += values[1][at] * ux[cols[1][at]];
		}
		lux[row] += one ? 0 : ux[row];
	}
	is_near("L times U", lux, want);
	for (int i = 0; i < 3; i++) {
		free(rows[i]);
		free(cols[i]);
		free(values[i]);
	}
}

static void rf_one()
{
	rf_case r;
	memory<int> rows(r.a.rows), cols(r.a.cols), rows_l(r.l.rows), cols_l(r.l.cols),
		rows_u(r.u.rows), cols_u(r.u.cols), order(r.order);
	memory<double> values(r.a.values), l(r.l.values), u(r.u.values);
	cusolverRfHandle_t rf;

	OK(cusolverRfCreate(&rf));
	OK(cusolverRfSetMatrixFormat(rf, CUSOLVERRF_MATRIX_FORMAT_CSR,
				     CUSOLVERRF_UNIT_DIAGONAL_STORED_L));
	OK(cusolverRfSetAlgs(rf, CUSOLVERRF_FACTORIZATION_ALG0, CUSOLVERRF_TRIANGULAR_SOLVE_ALG1));
	OK(cusolverRfSetupHost(N, r.a.nnz(), r.a.rows.data(), r.a.cols.data(), r.a.values.data(),
			       r.l.nnz(), r.l.rows.data(), r.l.cols.data(), r.l.values.data(),
			       r.u.nnz(), r.u.rows.data(), r.u.cols.data(), r.u.values.data(),
			       r.order.data(), r.order.data(), rf));
	solve_again(rf, r);
	extracted(rf, r);
	OK(cusolverRfDestroy(rf));
	OK(cusolverRfCreate(&rf));
	OK(cusolverRfSetMatrixFormat(rf, CUSOLVERRF_MATRIX_FORMAT_CSR,
				     CUSOLVERRF_UNIT_DIAGONAL_STORED_L));
	OK(cusolverRfSetupDevice(N, r.a.nnz(), rows, cols, values, r.l.nnz(), rows_l, cols_l, l,
				 r.u.nnz(), rows_u, cols_u, u, order, order, rf));
	solve_again(rf, r);
	solve_again(rf, r);
	OK(cusolverRfDestroy(rf));
	puts("cusolverRf: one matrix");
}

static void rf_batch()
{
	rf_case r;
	std::vector<csr> matrices(BATCH, r.a);
	std::vector<std::vector<double>> wants;
	std::vector<double> all_values, all_b;
	std::vector<double *> host, on_gpu_values, on_gpu_x;
	std::vector<int> position(BATCH, -7);
	cusolverRfHandle_t rf;
	int version;

	OK(cusolverGetVersion(&version));
	if (version < BATCH_WORKS) {
		puts("cusolverRf: this version crashes with several matrices");
		return;
	}
	for (int k = 0; k < BATCH; k++) {
		for (int i = 0; i < N; i++)
			matrices[k].at(i, i) += k + 1;
		wants.push_back(small_vector(N));
		const std::vector<double> b = matrices[k].times(wants[k]);
		all_b.insert(all_b.end(), b.begin(), b.end());
		all_values.insert(all_values.end(), matrices[k].values.begin(),
				  matrices[k].values.end());
	}
	memory<double> values(all_values), x(all_b), temp(2 * BATCH * N);
	memory<int> rows(r.a.rows), cols(r.a.cols), order(r.order);
	for (int k = 0; k < BATCH; k++) {
		host.push_back(matrices[k].values.data());
		on_gpu_values.push_back((double *)values + k * r.a.nnz());
		on_gpu_x.push_back((double *)x + k * N);
	}
	memory<double *> value_array(on_gpu_values), x_array(on_gpu_x);
	OK(cusolverRfCreate(&rf));
	OK(cusolverRfSetMatrixFormat(rf, CUSOLVERRF_MATRIX_FORMAT_CSR,
				     CUSOLVERRF_UNIT_DIAGONAL_STORED_L));
	OK(cusolverRfBatchSetupHost(BATCH, N, r.a.nnz(), r.a.rows.data(), r.a.cols.data(),
				    host.data(), r.l.nnz(), r.l.rows.data(), r.l.cols.data(),
				    r.l.values.data(), r.u.nnz(), r.u.rows.data(), r.u.cols.data(),
				    r.u.values.data(), r.order.data(), r.order.data(), rf));
	OK(cusolverRfBatchAnalyze(rf));
	OK(cusolverRfBatchResetValues(BATCH, N, r.a.nnz(), rows, cols, value_array, order, order,
				      rf));
	OK(cusolverRfBatchRefactor(rf));
	OK(cusolverRfBatchSolve(rf, order, order, 1, temp, N, x_array, N));
	OK(cusolverRfBatchZeroPivot(rf, position.data()));
	CHECK(cudaDeviceSynchronize());
	const std::vector<double> got = x.get();
	for (int k = 0; k < BATCH; k++) {
		REQUIRE(position[k] == -1, "a zero at %d", position[k]);
		is_near("cusolverRf in a batch",
			std::vector<double>(got.begin() + k * N, got.begin() + (k + 1) * N),
			wants[k]);
	}
	OK(cusolverRfDestroy(rf));
	puts("cusolverRf: several matrices");
}

/* ---- csrqrInfo_t ---- */

static void qr_batch()
{
	const csr a = make_grid(5);
	std::vector<double> all, b, want;
	size_t internal = 0, bytes = 0;
	csrqrInfo_t info;

	for (int k = 0; k < BATCH; k++) {
		csr one = a;
		const std::vector<double> x = small_vector(N);

		for (int i = 0; i < N; i++)
			one.at(i, i) += k;
		const std::vector<double> product = one.times(x);
		all.insert(all.end(), one.values.begin(), one.values.end());
		b.insert(b.end(), product.begin(), product.end());
		want.insert(want.end(), x.begin(), x.end());
	}
	memory<double> values(all), gb(b), x(BATCH * N);
	memory<int> rows(a.rows), cols(a.cols);
	OK(cusolverSpCreateCsrqrInfo(&info));
	OK(cusolverSpXcsrqrAnalysisBatched(sparse, N, N, a.nnz(), descr, rows, cols, info));
	OK(cusolverSpDcsrqrBufferInfoBatched(sparse, N, N, a.nnz(), descr, values, rows, cols,
					     2 * BATCH, info, &internal, &bytes));
	OK(cusolverSpDcsrqrBufferInfoBatched(sparse, N, N, a.nnz(), descr, values, rows, cols,
					     BATCH, info, &internal, &bytes));
	REQUIRE(internal > 0 && bytes > 0, "%zu and %zu bytes", internal, bytes);
	memory<char> work(bytes);
	OK(cusolverSpDcsrqrsvBatched(sparse, N, N, a.nnz(), descr, values, rows, cols, gb, x, BATCH,
				     info, work));
	CHECK(cudaDeviceSynchronize());
	is_near("QR in a batch", x.get(), want);
	OK(cusolverSpDestroyCsrqrInfo(info));
	puts("QR of several matrices");
}

/* ---- eigenvalues, least squares, orders ---- */

static void eigenvalue()
{
	csr a;
	for (int i = 0; i < N; i++) {
		a.add(i, 1 + i);
		a.end_row();
	}
	memory<double> values(a.values), start(std::vector<double>(N, 1)), mu(1), x(N);
	memory<int> rows(a.rows), cols(a.cols);
	double on_host, vector[N];
	const std::vector<double> ones(N, 1);

	OK(cusolverSpDcsreigvsi(sparse, N, a.nnz(), descr, values, rows, cols, 7.2, start, 100,
				1e-10, mu, x));
	CHECK(cudaDeviceSynchronize());
	REQUIRE(fabs(mu.get()[0] - 7) < 1e-6, "an eigenvalue of %g", mu.get()[0]);
	REQUIRE(fabs(fabs(x.get()[6]) - 1) < 1e-6, "another vector, %g", x.get()[6]);
	OK(cusolverSpDcsreigvsiHost(sparse, N, a.nnz(), descr, a.values.data(), a.rows.data(),
				    a.cols.data(), 7.2, ones.data(), 100, 1e-10, &on_host, vector));
	REQUIRE(fabs(on_host - 7) < 1e-6, "an eigenvalue of %g on the host", on_host);

	/* Of complex numbers: i times the matrix. */
	std::vector<cuDoubleComplex> turned, from(N, make_cuDoubleComplex(1, 0));
	for (double v : a.values)
		turned.push_back(make_cuDoubleComplex(0, v));
	memory<cuDoubleComplex> z(turned), z0(from), zmu(1), zx(N);
	OK(cusolverSpZcsreigvsi(sparse, N, a.nnz(), descr, z, rows, cols,
				make_cuDoubleComplex(0, 7.2), z0, 100, 1e-10, zmu, zx));
	CHECK(cudaDeviceSynchronize());
	REQUIRE(fabs(zmu.get()[0].x) < 1e-6 && fabs(zmu.get()[0].y - 7) < 1e-6,
		"an eigenvalue of %g + %gi", zmu.get()[0].x, zmu.get()[0].y);
}

static void least_squares()
{
	const int m = 12, n = 5;
	std::vector<double> want = small_vector(n), x(n);
	std::vector<int> p(n);
	double norm = -1;
	int rank = -1;
	csr a;

	for (int row = 0; row < m; row++) {
		for (int col = 0; col < n; col++)
			if (row % n == col || row / n == col)
				a.add(col, 2 + small_number() / 10.0);
		a.end_row();
	}
	const std::vector<double> b = a.times(want);
	OK(cusolverSpDcsrlsqvqrHost(sparse, m, n, a.nnz(), descr, a.values.data(), a.rows.data(),
				    a.cols.data(), b.data(), 1e-12, &rank, x.data(), p.data(),
				    &norm));
	REQUIRE(rank == n && norm < 1e-9, "rank %d, %g is left", rank, norm);
	is_near("least squares", x, want);
}

static void orders()
{
	const csr a = make_grid(9);
	std::vector<int> p(N), numbers(N);
	int nonzero = -1;

	for (int way = 0; way < 4; way++) {
		std::vector<int> seen(N);

		OK(way == 0   ? cusolverSpXcsrsymrcmHost(sparse, N, a.nnz(), descr, a.rows.data(),
							 a.cols.data(), p.data())
		   : way == 1 ? cusolverSpXcsrsymmdqHost(sparse, N, a.nnz(), descr, a.rows.data(),
							 a.cols.data(), p.data())
		   : way == 2 ? cusolverSpXcsrsymamdHost(sparse, N, a.nnz(), descr, a.rows.data(),
							 a.cols.data(), p.data())
			      : cusolverSpDcsrzfdHost(sparse, N, a.nnz(), descr, a.values.data(),
						      a.rows.data(), a.cols.data(), p.data(),
						      &nonzero));
		for (int i = 0; i < N; i++)
			REQUIRE(p[i] >= 0 && p[i] < N && !seen[p[i]]++, "row %d comes at %d", i,
				p[i]);
	}
	REQUIRE(nonzero == N, "%d on the diagonal", nonzero);
}

int main()
{
	first("cuSOLVER", cusolverSpCreate(&sparse), CUSOLVER_STATUS_NOT_INITIALIZED);
	OK(cusparseCreateMatDescr(&descr));
	rf_one();
	rf_batch();
	qr_batch();
	eigenvalue();
	least_squares();
	orders();
	OK(cusparseDestroyMatDescr(descr));
	OK(cusolverSpDestroy(sparse));
	return verified("factors");
}
