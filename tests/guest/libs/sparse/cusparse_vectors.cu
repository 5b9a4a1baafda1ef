// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Sparse vectors of several types of numbers and indices: added to dense ones, multiplied by them, rotated, gathered
 * and scattered; and a dense matrix times a sparse vector.
 */
#include "sparse.h"

#define SIZE 50
#define ROWS 33

static void wrong(void)
{
	array<int> at(std::vector<int>{1, 2, 3});
	array<float> values(3);
	dense_vector<float> y(full<float>(SIZE));
	cusparseSpVecDescr_t vec, none;
	const float one = 1;
	void *got;

	OK(cusparseCreateSpVec(&vec, SIZE, 3, at.gpu, values.gpu, CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO,
			       CUDA_R_32F));
	FAILS(cusparseCreateSpVec(&none, 2, 3, at.gpu, values.gpu, CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO,
				  CUDA_R_32F));
	FAILS(cusparseCreateSpVec(&none, SIZE, 3, at.gpu, values.gpu, CUSPARSE_INDEX_32I, (cusparseIndexBase_t)7,
				  CUDA_R_32F));
	FAILS(cusparseAxpby(NULL, &one, vec, &one, y));
	FAILS(cusparseAxpby(handle, &one, NULL, &one, y));
	FAILS(cusparseGather(NULL, y, vec));
	FAILS(cusparseScatter(handle, vec, NULL));
	FAILS(cusparseSpVecSetValues(NULL, values.gpu));
	FAILS(cusparseSpVecGetValues(NULL, &got));
	OK(cusparseSpVecGetValues(vec, &got));
	REQUIRE(got == values.gpu, "the values are elsewhere");
	OK(cusparseDestroySpVec(vec));
}

/* One vector after the other, step by step. C is the type of the scalars. */
template <typename T, typename I, typename C> static void vectors(const char *what, cusparseIndexBase_t base)
{
	const std::vector<int> at = {0, 3, 17, 22, 41, 49};
	std::vector<C> x = whole<C>((int)at.size()), y = whole<C>(SIZE);
	C alpha(2), beta(-1), c(0.5), s(-2), zero(0), sum(0), got(77);
	array<I> where(matrix<T, I>::based(at, base));
	array<T> values(std::vector<T>(x.begin(), x.end())), others(std::vector<T>(at.size(), T(5.0f)));
	dense_vector<T> gy(std::vector<T>(y.begin(), y.end()));
	const cusparseOperation_t op = is_complex<C>() ? conjugated : plain;
	const int n = (int)at.size();
	cusparseIndexBase_t asked;
	cusparseSpVecDescr_t gx;
	size_t size;
	auto check = [&](const char *step) {
		std::vector<T> vx = values.host(), vy = gy.host();

		must_be(step, std::vector<C>(vx.begin(), vx.end()), x);
		must_be(step, std::vector<C>(vy.begin(), vy.end()), y);
	};

	OK(cusparseCreateSpVec(&gx, SIZE, n, where.gpu, values.gpu, number<I>::index, base, number<T>::type));
	OK(cusparseSpVecGetIndexBase(gx, &asked));
	REQUIRE(asked == base, "the first index is %d", (int)asked);
	OK(cusparseAxpby(handle, &alpha, gx, &beta, gy));
	y = combined(beta, y, zero, y);
	for (int i = 0; i < n; i++)
		y[at[i]] += alpha * x[i];
	check("alpha x + beta y");
	OK(cusparseRot(handle, &c, &s, gx, gy));
	for (int i = 0; i < n; i++) {
		C old = y[at[i]];

		y[at[i]] = c * old - s * x[i];
		x[i] = c * x[i] + s * old;
		sum += conjugate(x[i]) * y[at[i]];
	}
	check("rotated");
	OK(cusparseSpVV_bufferSize(handle, op, gx, gy, &got, number<C>::type, &size));
	array<char> buffer(size + 1);

	OK(cusparseSpVV(handle, op, gx, gy, &got, number<C>::type, buffer));
	REQUIRE(got == sum, "%s: the product of two vectors is wrong", what);
	OK(cusparseGather(handle, gy, gx));
	for (int i = 0; i < n; i++)
		x[i] = y[at[i]];
	check("gathered");
	OK(cusparseSpVecSetValues(gx, others.gpu));
	OK(cusparseScatter(handle, gx, gy));
	for (int i : at)
		y[i] = C(5);
	check("scattered");
	OK(cusparseDestroySpVec(gx));
	printf("%s: right\n", what);
}

/* A dense matrix, column by column, times a sparse vector. */
static void sparse_vector(void)
{
	typedef std::complex<double> Z;
	std::vector<Z> m = full<Z>(ROWS * SIZE), x(SIZE), y = full<Z>(ROWS), values = full<Z>(4);
	const std::vector<int> at = {2, 3, 11, 25};
	const Z alpha(2, 1), beta(0, -1);
	int size = 0;

	for (int i = 0; i < 4; i++)
		x[at[i]] = values[i];
	array<Z> gm(applied(flipped, m, ROWS, SIZE)), gx(values), gy(y);
	array<int> where(matrix<Z>::based(at, CUSPARSE_INDEX_BASE_ONE));

	OK(cusparseZgemvi_bufferSize(handle, plain, ROWS, SIZE, 4, &size));
	array<char> buffer(size + 1);

	OK(cusparseZgemvi(handle, plain, ROWS, SIZE, pairs(&alpha), pairs(gm), ROWS, 4, pairs(gx), where, pairs(&beta),
			  pairs(gy), CUSPARSE_INDEX_BASE_ONE, buffer));
	same("a dense matrix times a sparse vector", gy.host(), combined(alpha, times(m, x, ROWS, SIZE, 1), beta, y));
}

int main(void)
{
	typedef std::complex<float> C;
	typedef std::complex<double> Z;
	const cusparseIndexBase_t zero = CUSPARSE_INDEX_BASE_ZERO, one = CUSPARSE_INDEX_BASE_ONE;

	begin();
	wrong();
	vectors<float, int64_t, float>("float, 64-bit indices from 1", one);
	vectors<double, int, double>("double", zero);
	vectors<C, int, C>("complex float, from 1", one);
	vectors<Z, int64_t, Z>("complex double, 64-bit indices", zero);
	vectors<__half, int, float>("half", zero);
	sparse_vector();
	OK(cusparseDestroy(handle));
	return 0;
}
