// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Systems of equations whose matrix is in blocks: an incomplete factorization, which is exact where no block is
 * missing; solutions with its two triangles; and blocks that are missing or cannot be inverted.
 */
#include "sparse.h"

#define BLOCK 3
#define COUNT 9 /* rows of blocks */
#define N     (BLOCK * COUNT)

/* What all functions take. */
#define BLOCKS(a)    (a).way, COUNT, (a).count()
#define BLOCKS_OP(a) (a).way, plain, COUNT, (a).count()
#define ARRAYS(a)    (a).at_values, (a).at_offsets, (a).at_columns, BLOCK

static cusparseMatDescr_t lower, upper;

/* A chain of full blocks, each coupled with the one before and the one after. Its factors have no more blocks. */
static std::vector<double> chain(void)
{
	std::vector<double> m(N * N);

	for (int i = 0; i < N; i++)
		for (int j = 0; j < N; j++)
			if (abs(i / BLOCK - j / BLOCK) <= 1)
				m[i * N + j] = i == j ? 8 : small_number() / 4;
	return m;
}

/* The fourth block of the diagonal is not there. */
static void missing(void)
{
	std::vector<double> m = chain();
	int size = 0, position = 77;
	bsrsv2Info_t info;

	for (int i = 0; i < BLOCK * BLOCK; i++)
		m[(3 * BLOCK + i / BLOCK) * N + 3 * BLOCK + i % BLOCK] = 0;
	block_matrix<double> a(N, N, m, BLOCK, CUSPARSE_DIRECTION_ROW);

	FAILS(cusparseCreateBsrsv2Info(NULL));
	OK(cusparseCreateBsrsv2Info(&info));
	FAILS(cusparseXbsrsv2_zeroPivot(NULL, info, &position));
	OK(cusparseDbsrsv2_bufferSize(handle, BLOCKS_OP(a), upper, ARRAYS(a), info, &size));
	array<char> buffer(size + 1);

	OK(cusparseDbsrsv2_analysis(handle, BLOCKS_OP(a), upper, ARRAYS(a), info, CUSPARSE_SOLVE_POLICY_USE_LEVEL,
				    buffer));
	int status = cusparseXbsrsv2_zeroPivot(handle, info, &position);

	REQUIRE(status == CUSPARSE_STATUS_ZERO_PIVOT && position == 3, "status %d at %d", status, position);
	printf("a missing block: found\n");
	OK(cusparseDestroyBsrsv2Info(info));
}

static int factor(const block_matrix<double> &a, cusparseSolvePolicy_t policy, int *position)
{
	bsrilu02Info_t info;
	int size = 0;

	OK(cusparseCreateBsrilu02Info(&info));
	OK(cusparseDbsrilu02_bufferSize(handle, BLOCKS(a), upper, ARRAYS(a), info, &size));
	array<char> buffer(size + 1);

	OK(cusparseDbsrilu02_analysis(handle, BLOCKS(a), upper, ARRAYS(a), info, policy, buffer));
	OK(cusparseXbsrilu02_zeroPivot(handle, info, position));
	OK(cusparseDbsrilu02(handle, BLOCKS(a), upper, ARRAYS(a), info, policy, buffer));
	int status = cusparseXbsrilu02_zeroPivot(handle, info, position);

	OK(cusparseDestroyBsrilu02Info(info));
	return status;
}

/* Solves with one of the triangles that the blocks hold. */
static void triangle(const block_matrix<double> &a, cusparseMatDescr_t descr, cusparseSolvePolicy_t policy,
		     double alpha, const double *f, double *x)
{
	bsrsv2Info_t info;
	int size = 0, position = 77;

	OK(cusparseCreateBsrsv2Info(&info));
	OK(cusparseDbsrsv2_bufferSize(handle, BLOCKS_OP(a), descr, ARRAYS(a), info, &size));
	array<char> buffer(size + 1);

	OK(cusparseDbsrsv2_analysis(handle, BLOCKS_OP(a), descr, ARRAYS(a), info, policy, buffer));
	OK(cusparseXbsrsv2_zeroPivot(handle, info, &position));
	REQUIRE(position == -1, "a block is missing at %d", position);
	OK(cusparseDbsrsv2_solve(handle, BLOCKS_OP(a), &alpha, descr, ARRAYS(a), info, f, x, policy, buffer));
	OK(cusparseXbsrsv2_zeroPivot(handle, info, &position));
	OK(cusparseDestroyBsrsv2Info(info));
}

static void lu(cusparseDirection_t way, cusparseSolvePolicy_t policy)
{
	std::vector<double> m = chain(), x = full<double>(N), l(N * N), u(N * N);
	block_matrix<double> a(N, N, m, BLOCK, way);
	array<double> gb(times(m, x, N, N, 1)), gy(N), gx(N);
	int position = 77;

	OK(factor(a, policy, &position));
	REQUIRE(position == -1, "a block cannot be inverted at %d", position);
	std::vector<double> f = a.host();

	for (int i = 0; i < N; i++) {
		for (int j = 0; j < N; j++)
			(i > j ? l : u)[i * N + j] = f[i * N + j];
		l[i * N + i] = 1;
	}
	near("the factors", times(l, u, N, N, N), m);
	triangle(a, lower, policy, 2, gb, gy);
	triangle(a, upper, policy, 0.5, gy, gx);
	near("a solution", gx.host(), x);
}

/* All elements of a row of blocks are zero, though the blocks are there. */
static void singular(void)
{
	block_matrix<double> a(N, N, chain(), BLOCK, CUSPARSE_DIRECTION_ROW);
	std::vector<double> values = a.values;
	int position = 77;

	for (int k = a.offsets[5] * BLOCK * BLOCK; k < a.offsets[6] * BLOCK * BLOCK; k++)
		values[k] = 0;
	a.at_values.set(values);
	int status = factor(a, CUSPARSE_SOLVE_POLICY_NO_LEVEL, &position);

	REQUIRE(status == CUSPARSE_STATUS_ZERO_PIVOT && position == 5, "status %d at %d", status, position);
	printf("a block that cannot be inverted: found\n");
}

int main(void)
{
	begin();
	lower = described(CUSPARSE_FILL_MODE_LOWER, CUSPARSE_DIAG_TYPE_UNIT);
	upper = described(CUSPARSE_FILL_MODE_UPPER, CUSPARSE_DIAG_TYPE_NON_UNIT);
	missing();
	lu(CUSPARSE_DIRECTION_ROW, CUSPARSE_SOLVE_POLICY_USE_LEVEL);
	lu(CUSPARSE_DIRECTION_COLUMN, CUSPARSE_SOLVE_POLICY_NO_LEVEL);
	singular();
	OK(cusparseDestroyMatDescr(lower));
	OK(cusparseDestroyMatDescr(upper));
	OK(cusparseDestroy(handle));
	return 0;
}
