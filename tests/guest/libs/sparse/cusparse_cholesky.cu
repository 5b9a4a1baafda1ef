// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Symmetric systems: incomplete factors of Cholesky, in CSR and in blocks, which are exact at the places that the
 * matrix has; and with one in blocks that is exact everywhere, solutions for several right sides.
 */
#include "sparse.h"

#define SIDE 6
#define N    (SIDE * SIDE)
#define WIDE 5

/* What all functions of blocks take. */
#define BLOCKS(a)    (a).way, N / (a).tall, (a).count()
#define BLOCKS_OP(a) (a).way, op, plain, N / (a).tall, WIDE, (a).count()
#define ARRAYS(a)    (a).at_values, (a).at_offsets, (a).at_columns, (a).tall
#define CSR(a)	     N, (a).nnz, lower, (a).gpu_values, (a).gpu_offsets, (a).gpu_column

static const cusparseSolvePolicy_t policy = CUSPARSE_SOLVE_POLICY_USE_LEVEL;
static cusparseMatDescr_t lower;

/* Each place of a grid is joined with its neighbours. */
static std::vector<double> grid(void)
{
	std::vector<double> m(N * N);

	for (int i = 0; i < N; i++) {
		m[i * N + i] = 5 + i % 3;
		if (i % SIDE)
			m[i * N + i - 1] = m[(i - 1) * N + i] = -1;
		if (i >= SIDE)
			m[i * N + i - SIDE] = m[(i - SIDE) * N + i] = -1;
	}
	return m;
}

/* The lower part is the factor. Its product is the matrix at some places. */
static void check(const char *what, std::vector<double> l, const std::vector<bool> &places)
{
	std::vector<double> m = grid(), product;

	for (int i = 0; i < N; i++)
		for (int j = i + 1; j < N; j++)
			l[i * N + j] = 0;
	product = times(l, applied(flipped, l, N, N), N, N, N);
	for (int i = 0; i < N * N; i++)
		if (!places[i])
			product[i] = m[i];
	near(what, product, m);
}

static void in_csr(void)
{
	sparse<double> a(N, N, grid());
	std::vector<bool> places(N * N);
	csric02Info_t info;
	int size = 0, position = 77;

	FAILS(cusparseCreateCsric02Info(NULL));
	OK(cusparseCreateCsric02Info(&info));
	FAILS(cusparseXcsric02_zeroPivot(NULL, info, &position));
	OK(cusparseDcsric02_bufferSize(handle, CSR(a), info, &size));
	array<char> buffer(size + 1);

	OK(cusparseDcsric02_analysis(handle, CSR(a), info, policy, buffer));
	OK(cusparseXcsric02_zeroPivot(handle, info, &position));
	OK(cusparseDcsric02(handle, CSR(a), info, policy, buffer));
	OK(cusparseXcsric02_zeroPivot(handle, info, &position));
	REQUIRE(position == -1, "an element is not positive at %d", position);
	for (int i = 0; i < a.nnz; i++)
		places[a.row[i] * N + a.column[i]] = true;
	check("a factor in CSR", opened(N, N, a.offsets, a.column, down(a.gpu_values, a.nnz)), places);
	OK(cusparseDestroyCsric02Info(info));
}

static void factorize(block_matrix<double> &a, const char *what)
{
	std::vector<bool> places(N * N);
	bsric02Info_t info;
	int size = 0, position = 77;

	OK(cusparseCreateBsric02Info(&info));
	OK(cusparseDbsric02_bufferSize(handle, BLOCKS(a), lower, ARRAYS(a), info, &size));
	array<char> buffer(size + 1);

	OK(cusparseDbsric02_analysis(handle, BLOCKS(a), lower, ARRAYS(a), info, policy, buffer));
	OK(cusparseDbsric02(handle, BLOCKS(a), lower, ARRAYS(a), info, policy, buffer));
	OK(cusparseXbsric02_zeroPivot(handle, info, &position));
	REQUIRE(position == -1, "a block is not positive at %d", position);
	OK(cusparseDestroyBsric02Info(info));
	for (int r = 0; r < N; r++)
		for (int k = a.offsets[r / a.tall]; k < a.offsets[r / a.tall + 1]; k++)
			for (int j = 0; j < a.wide; j++)
				places[r * N + a.columns[k] * a.wide + j] = true;
	check(what, a.host(), places);
}

/* x = the factor, or the factor turned, inverted, times b; all column by column. */
static void solve(const block_matrix<double> &a, cusparseOperation_t op, const double *b, double *x)
{
	const double one = 1;
	bsrsm2Info_t info;
	int size = 0, position = 77;

	OK(cusparseCreateBsrsm2Info(&info));
	OK(cusparseDbsrsm2_bufferSize(handle, BLOCKS_OP(a), lower, ARRAYS(a), info, &size));
	array<char> buffer(size + 1);

	OK(cusparseDbsrsm2_analysis(handle, BLOCKS_OP(a), lower, ARRAYS(a), info, policy, buffer));
	OK(cusparseDbsrsm2_solve(handle, BLOCKS_OP(a), &one, lower, ARRAYS(a), info, b, N, x, N, policy, buffer));
	OK(cusparseXbsrsm2_zeroPivot(handle, info, &position));
	REQUIRE(position == -1, "a block cannot be inverted at %d", position);
	OK(cusparseDestroyBsrsm2Info(info));
}

static void in_blocks(cusparseDirection_t way)
{
	/* Blocks of a whole line of the grid are as complete as their factor. */
	block_matrix<double> some(N, N, grid(), 2, way), all(N, N, grid(), SIDE, way);
	std::vector<double> x = full<double>(N * WIDE);
	array<double> b(applied(flipped, times(grid(), x, N, N, WIDE), N, WIDE)), y(N * WIDE), gx(N * WIDE);

	factorize(some, "a factor in small blocks");
	factorize(all, "a factor in large blocks");
	solve(all, plain, b, y);
	solve(all, flipped, y, gx);
	near("several solutions", applied(flipped, gx.host(), WIDE, N), x);
}

int main(void)
{
	begin();
	lower = described(CUSPARSE_FILL_MODE_LOWER, CUSPARSE_DIAG_TYPE_NON_UNIT);
	in_csr();
	in_blocks(CUSPARSE_DIRECTION_ROW);
	in_blocks(CUSPARSE_DIRECTION_COLUMN);
	OK(cusparseDestroyMatDescr(lower));
	OK(cusparseDestroy(handle));
	return 0;
}
