// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Heat in a plate: a system with a Laplace operator, solved by conjugate gradients and by Jacobi's method, with scalars
 * in the CPU's memory and in the GPU's. Sums and products of vectors are cuSPARSE's, too.
 */
#include "sparse.h"

#define SIDE 12
#define N    (SIDE * SIDE)

/* Each place of the plate is joined with its neighbours, and loses heat. */
static std::vector<double> plate(void)
{
	std::vector<double> m(N * N);

	for (int i = 0; i < N; i++) {
		m[i * N + i] = 6;
		if (i % SIDE)
			m[i * N + i - 1] = m[(i - 1) * N + i] = -1;
		if (i >= SIDE)
			m[i * N + i - SIDE] = m[(i - SIDE) * N + i] = -1;
	}
	return m;
}

/* A vector that is dense and sparse at once: all of its elements are there. */
struct both {
	array<int> at;
	dense_vector<double> dense;
	cusparseSpVecDescr_t sparse;

	static std::vector<int> all(void)
	{
		std::vector<int> v(N);

		for (int i = 0; i < N; i++)
			v[i] = i;
		return v;
	}
	explicit both(const std::vector<double> &v) : at(all()), dense(v)
	{
		OK(cusparseCreateSpVec(&sparse, N, N, at.gpu, dense.data.gpu, CUSPARSE_INDEX_32I,
				       CUSPARSE_INDEX_BASE_ZERO, CUDA_R_64F));
	}
	~both()
	{
		OK(cusparseDestroySpVec(sparse));
	}
};

static double dot(const both &x, const both &y)
{
	double result = 0;
	size_t size = 0;

	OK(cusparseSpVV_bufferSize(handle, plain, x.sparse, y.dense, &result, CUDA_R_64F, &size));
	array<char> buffer(size + 1);

	OK(cusparseSpVV(handle, plain, x.sparse, y.dense, &result, CUDA_R_64F, buffer));
	return result;
}

/* y = alpha x + beta y. */
static void add(double alpha, const both &x, double beta, const both &y)
{
	OK(cusparseAxpby(handle, &alpha, x.sparse, &beta, y.dense));
}

static void wrong(void)
{
	cusparsePointerMode_t mode = CUSPARSE_POINTER_MODE_DEVICE;
	both x(full<double>(N));
	dense_vector<double> shorter(full<double>(N - 1));
	double result = 77;
	size_t size;

	FAILS(cusparseSpVV_bufferSize(NULL, plain, x.sparse, x.dense, &result, CUDA_R_64F, &size));
	FAILS(cusparseSpVV_bufferSize(handle, plain, x.sparse, shorter, &result, CUDA_R_64F, &size));
	FAILS(cusparseSetPointerMode(NULL, mode));
	FAILS(cusparseGetPointerMode(NULL, &mode));
	OK(cusparseGetPointerMode(handle, &mode));
	REQUIRE(mode == CUSPARSE_POINTER_MODE_HOST && result == 77, "a wrong call has done something");
}

static void gradients(cusparseSpMatDescr_t a, const std::vector<double> &b, const std::vector<double> &want)
{
	both x(std::vector<double>(N)), r(b), p(b), ap(b);
	double old = dot(r, r);

	for (int step = 0; old > 1e-24; step++) {
		REQUIRE(step < N, "it does not come to an end");
		multiply<double>(plain, 1, a, p.dense, 0, ap.dense);
		double alpha = old / dot(p, ap), next;

		add(alpha, p, 1, x);
		add(-alpha, ap, 1, r);
		next = dot(r, r);
		add(1, r, next / old, p);
		old = next;
	}
	near("conjugate gradients", x.dense.host(), want);
}

/* Each step takes from x what is too much. Nothing comes back to the CPU before the last one. */
static void jacobi(cusparseSpMatDescr_t a, const std::vector<double> &b, const std::vector<double> &want)
{
	both x(std::vector<double>(N)), y(b), gb(b);
	array<double> scalars(std::vector<double>{0, 1, 1.0 / 6, -1.0 / 6}), rest(std::vector<double>{77});
	const double *none = scalars, *one = scalars + 1, *sixth = scalars + 2, *minus = scalars + 3;
	size_t size = 0, more = 0;

	OK(cusparseSetPointerMode(handle, CUSPARSE_POINTER_MODE_DEVICE));
	OK(cusparseSpMV_bufferSize(handle, plain, minus, a, x.dense, one, y.dense, CUDA_R_64F,
				   CUSPARSE_SPMV_ALG_DEFAULT, &size));
	OK(cusparseSpVV_bufferSize(handle, plain, y.sparse, y.dense, rest.gpu, CUDA_R_64F, &more));
	array<char> buffer(size + 1), other(more + 1);

	for (int step = 0; step < 60; step++) {
		OK(cusparseAxpby(handle, one, x.sparse, none, y.dense));
		OK(cusparseSpMV(handle, plain, minus, a, x.dense, one, y.dense, CUDA_R_64F, CUSPARSE_SPMV_ALG_DEFAULT,
				buffer));
		OK(cusparseAxpby(handle, sixth, gb.sparse, one, y.dense));
		OK(cusparseAxpby(handle, one, y.sparse, none, x.dense));
	}
	/* What is left: b - a x. */
	OK(cusparseSetPointerMode(handle, CUSPARSE_POINTER_MODE_HOST));
	multiply<double>(plain, -1, a, x.dense, 1, gb.dense);
	OK(cusparseSetPointerMode(handle, CUSPARSE_POINTER_MODE_DEVICE));
	OK(cusparseSpVV(handle, plain, gb.sparse, gb.dense, rest.gpu, CUDA_R_64F, other));
	OK(cusparseSetPointerMode(handle, CUSPARSE_POINTER_MODE_HOST));
	REQUIRE(rest.host()[0] < 1e-18, "%g is left", rest.host()[0]);
	near("Jacobi's method", x.dense.host(), want);
}

int main(void)
{
	const std::vector<double> m = plate(), x = full<double>(N), b = times(m, x, N, N, 1);

	begin();
	wrong();
	{
		sparse<double> a(N, N, m);
		matrix<double> csr(a), coo(a, CUSPARSE_FORMAT_COO);

		gradients(csr, b, x);
		jacobi(coo, b, x);
	}
	OK(cusparseDestroy(handle));
	return 0;
}
