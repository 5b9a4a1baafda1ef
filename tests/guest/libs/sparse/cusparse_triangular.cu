// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Triangular systems of all kinds: the lower or the upper part of one matrix, with ones on the diagonal or what is
 * there, as it is or turned, in two formats; for one right side and for several, in place, and with other values.
 */
#include "sparse.h"

#define N    40
#define WIDE 6

/* The elements beside the diagonal are small, so that ones on it are enough. */
template <typename T> static std::vector<T> tame(void)
{
	std::vector<T> m = scattered<T>(N, N);

	for (int i = 0; i < N; i++)
		for (int j = 0; j < N; j++)
			m[i * N + j] = i == j ? T(2 + i % 3) : m[i * N + j] * T(0.125);
	return m;
}

template <typename T>
static std::vector<T> part(const std::vector<T> &m, cusparseFillMode_t fill, cusparseDiagType_t diagonal)
{
	std::vector<T> t(N * N);

	for (int i = 0; i < N; i++)
		for (int j = 0; j < N; j++) {
			bool in = fill == CUSPARSE_FILL_MODE_LOWER ? i > j : i < j;

			t[i * N + j] = in ? m[i * N + j] : i != j ? T(0) : diagonal ? T(1) : m[i * N + j];
		}
	return t;
}

static void wrong(void)
{
	sparse<double> a(N, N, tame<double>());
	matrix<double> mat(a);
	dense_vector<double> x(full<double>(N)), y(full<double>(N));
	cusparseFillMode_t fill = CUSPARSE_FILL_MODE_UPPER;
	const double one = 1;
	cusparseSpSVDescr_t descr;
	size_t size;

	FAILS(cusparseSpMatSetAttribute(mat, (cusparseSpMatAttribute_t)7, &fill, sizeof(fill)));
	FAILS(cusparseSpMatSetAttribute(mat, CUSPARSE_SPMAT_FILL_MODE, NULL, sizeof(fill)));
	FAILS(cusparseSpMatGetAttribute(mat, CUSPARSE_SPMAT_FILL_MODE, &fill, 1));
	OK(cusparseSpMatGetAttribute(mat, CUSPARSE_SPMAT_FILL_MODE, &fill, sizeof(fill)));
	REQUIRE(fill == CUSPARSE_FILL_MODE_LOWER, "the fill mode is %d", (int)fill);
	OK(cusparseSpSV_createDescr(&descr));
	FAILS(cusparseSpSV_bufferSize(NULL, plain, &one, mat, x, y, CUDA_R_64F, CUSPARSE_SPSV_ALG_DEFAULT, descr,
				      &size));
	OK(cusparseSpSV_destroyDescr(descr));
}

/* op(a) y = alpha x. */
template <typename T, typename I>
static void one_side(const char *what, cusparseFormat_t format, cusparseFillMode_t fill, cusparseDiagType_t diagonal,
		     cusparseOperation_t op, T alpha, bool updated)
{
	const cudaDataType type = number<T>::type;
	sparse<T> a(N, N, tame<T>());
	std::vector<T> y = full<T>(N), t = applied(op, part(a.dense, fill, diagonal), N, N),
		       x = combined(T(1) / alpha, times(t, y, N, N, 1), T(0), y);
	matrix<T, I> mat(a, format, CUSPARSE_INDEX_BASE_ONE);
	dense_vector<T> gx(x), gy(full<T>(N));
	cusparseSpSVDescr_t descr;
	size_t size = 0;

	mat.triangle(fill, diagonal);
	OK(cusparseSpSV_createDescr(&descr));
	OK(cusparseSpSV_bufferSize(handle, op, &alpha, mat, gx, gy, type, CUSPARSE_SPSV_ALG_DEFAULT, descr, &size));
	array<char> buffer(size + 1);

	OK(cusparseSpSV_analysis(handle, op, &alpha, mat, gx, gy, type, CUSPARSE_SPSV_ALG_DEFAULT, descr, buffer));
	OK(cusparseSpSV_solve(handle, op, &alpha, mat, gx, gy, type, CUSPARSE_SPSV_ALG_DEFAULT, descr));
	must_be_near(what, gy.host(), y);
	if (updated) {
		/* Another diagonal, and nothing else. */
		array<T> other(std::vector<T>(N, T(4)));

		for (int i = 0; i < N; i++)
			t[i * N + i] = T(4);
		gx.data.set(combined(T(1) / alpha, times(t, y, N, N, 1), T(0), y));
		OK(cusparseSpSV_updateMatrix(handle, descr, other.gpu, CUSPARSE_SPSV_UPDATE_DIAGONAL));
		OK(cusparseSpSV_solve(handle, op, &alpha, mat, gx, gy, type, CUSPARSE_SPSV_ALG_DEFAULT, descr));
		must_be_near("another diagonal", gy.host(), y);
	}
	OK(cusparseSpSV_destroyDescr(descr));
	printf("%s: right\n", what);
}

/* op(a) c = alpha op(b). In place, b and c are one matrix. */
template <typename T>
static void several(const char *what, cusparseFillMode_t fill, cusparseOperation_t op_a, cusparseOperation_t op_b,
		    cusparseOrder_t order, T alpha, bool in_place)
{
	const cusparseDiagType_t diagonal = CUSPARSE_DIAG_TYPE_NON_UNIT;
	const cudaDataType type = number<T>::type;
	sparse<T> a(N, N, tame<T>());
	std::vector<T> c = full<T>(N * WIDE), t = applied(op_a, part(a.dense, fill, diagonal), N, N),
		       b = combined(T(1) / alpha, times(t, c, N, N, WIDE), T(0), c), other = a.values;
	matrix<T> mat(a);
	int rows = op_b == plain ? N : WIDE;
	dense_matrix<T> gb(rows, N + WIDE - rows, applied(op_b, b, N, WIDE), order),
		into(N, WIDE, full<T>(N * WIDE), order), &gc = in_place ? gb : into;
	cusparseSpSMDescr_t descr;
	size_t size = 0;

	mat.triangle(fill, diagonal);
	OK(cusparseSpSM_createDescr(&descr));
	OK(cusparseSpSM_bufferSize(handle, op_a, op_b, &alpha, mat, gb, gc, type, CUSPARSE_SPSM_ALG_DEFAULT, descr,
				   &size));
	array<char> buffer(size + 1);

	OK(cusparseSpSM_analysis(handle, op_a, op_b, &alpha, mat, gb, gc, type, CUSPARSE_SPSM_ALG_DEFAULT, descr,
				 buffer));
	OK(cusparseSpSM_solve(handle, op_a, op_b, &alpha, mat, gb, gc, type, CUSPARSE_SPSM_ALG_DEFAULT, descr));
	must_be_near(what, gc.host(), c);
	if (!in_place) {
		/* Four times the matrix has a fourth of the solution. */
		for (T &v : other)
			v *= T(4);
		array<T> values(other);

		OK(cusparseSpSM_updateMatrix(handle, descr, values.gpu, CUSPARSE_SPSM_UPDATE_GENERAL));
		OK(cusparseSpSM_solve(handle, op_a, op_b, &alpha, mat, gb, gc, type, CUSPARSE_SPSM_ALG_DEFAULT, descr));
		must_be_near("other values", combined(T(4), gc.host(), T(0), c), c);
	}
	OK(cusparseSpSM_destroyDescr(descr));
	printf("%s: right\n", what);
}

int main(void)
{
	typedef std::complex<double> Z;
	const cusparseFormat_t csr = CUSPARSE_FORMAT_CSR, coo = CUSPARSE_FORMAT_COO;
	const cusparseFillMode_t lower = CUSPARSE_FILL_MODE_LOWER, upper = CUSPARSE_FILL_MODE_UPPER;
	const cusparseDiagType_t own = CUSPARSE_DIAG_TYPE_NON_UNIT, unit = CUSPARSE_DIAG_TYPE_UNIT;
	const cusparseOrder_t by_rows = CUSPARSE_ORDER_ROW, by_cols = CUSPARSE_ORDER_COL;

	begin();
	wrong();
	one_side<double, int>("the lower part", csr, lower, own, plain, 2, true);
	one_side<double, int>("the lower part with ones, turned", csr, lower, unit, flipped, 1, false);
	one_side<double, int64_t>("the upper part, 64-bit indices", csr, upper, own, plain, -1, false);
	one_side<double, int>("the upper part of COO, turned", coo, upper, own, flipped, 0.5, false);
	one_side<Z, int>("complex, conjugated", csr, lower, own, conjugated, Z(1, 1), false);
	one_side<Z, int>("the upper part of complex COO, with ones", coo, upper, unit, plain, Z(0, 2), false);
	several<double>("several right sides", lower, plain, plain, by_rows, 2, false);
	several<double>("several by columns, turned", upper, flipped, plain, by_cols, 1, false);
	several<double>("several from a turned matrix", upper, plain, flipped, by_rows, 1, false);
	several<Z>("several complex ones, in place", lower, plain, plain, by_cols, Z(1, -1), true);
	OK(cusparseDestroy(handle));
	return 0;
}
