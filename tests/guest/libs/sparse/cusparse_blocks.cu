// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Matrices in blocks: cut from CSR, cut anew into blocks of another shape, turned, and put together again; and their
 * products with vectors and matrices.
 */
#include "sparse.h"

#define ROWS 24
#define COLS 18
#define WIDE 7

typedef std::complex<double> Z;

static cusparseMatDescr_t from_0, from_1;

static void wrong(void)
{
	sparse<float> a(ROWS, COLS, scattered<float>(ROWS, COLS));
	array<int> offsets(ROWS + 1);
	int n;

	FAILS(cusparseCreateMatDescr(NULL));
	FAILS(cusparseSetMatIndexBase(from_0, (cusparseIndexBase_t)7));
	FAILS(cusparseSetMatDiagType(from_0, (cusparseDiagType_t)7));
	FAILS(cusparseSgebsr2gebsc_bufferSize(NULL, 1, 1, 1, a.gpu_values, a.gpu_offsets, a.gpu_column, 2, 3, &n));
	FAILS(cusparseXcsr2bsrNnz(handle, CUSPARSE_DIRECTION_ROW, ROWS, COLS, from_0, a.gpu_offsets, a.gpu_column, -1,
				  from_0, offsets, &n));
}

static void shapes(cusparseDirection_t way)
{
	sparse<float> a(ROWS, COLS, scattered<float>(ROWS, COLS));
	blocks<float> low(ROWS, COLS, 2, 3, way, 1), high(ROWS, COLS, 3, 2, way, 0), want = low;
	int size = 0, n = 0;

	want.cut(a.dense);
	OK(cusparseScsr2gebsr_bufferSize(handle, way, ROWS, COLS, from_0, a.gpu_values, a.gpu_offsets, a.gpu_column, 2,
					 3, &size));
	array<char> buffer(size + 1);
	array<int> offsets(ROWS / 2 + 1);

	OK(cusparseXcsr2gebsrNnz(handle, way, ROWS, COLS, from_0, a.gpu_offsets, a.gpu_column, from_1, offsets, 2, 3,
				 &n, buffer));
	REQUIRE(n == want.count(), "%d blocks, not %d", n, want.count());
	array<int> columns(n), turned(n), turned_offsets(COLS / 3 + 1), csr_offsets(ROWS + 1), csr_columns(n * 6);
	array<float> values(n * 6), turned_values(n * 6), csr_values(n * 6);

	OK(cusparseScsr2gebsr(handle, way, ROWS, COLS, from_0, a.gpu_values, a.gpu_offsets, a.gpu_column, from_1,
			      values, offsets, columns, 2, 3, buffer));
	low.offsets = offsets.host(), low.columns = columns.host(), low.values = values.host();
	same("cut into blocks of 2 by 3", low.joined(), a.dense);

	OK(cusparseSgebsr2csr(handle, way, ROWS / 2, COLS / 3, from_1, values, offsets, columns, 2, 3, from_0,
			      csr_values, csr_offsets, csr_columns));
	same("put together again", opened(ROWS, COLS, csr_offsets.host(), csr_columns.host(), csr_values.host()),
	     a.dense);

	/* Block by block, each as it is, so as if the blocks were numbers. */
	OK(cusparseSgebsr2gebsc_bufferSize(handle, ROWS / 2, COLS / 3, n, values, offsets, columns, 2, 3, &size));
	array<char> turning(size + 1);

	OK(cusparseSgebsr2gebsc(handle, ROWS / 2, COLS / 3, n, values, offsets, columns, 2, 3, turned_values, turned,
				turned_offsets, CUSPARSE_ACTION_NUMERIC, CUSPARSE_INDEX_BASE_ONE, turning));
	std::vector<int> ends = turned_offsets.host(), rows = turned.host();
	std::vector<float> got = turned_values.host(), m(ROWS * COLS);

	for (int c = 0; c < COLS / 3; c++)
		for (int b = ends[c] - 1; b < ends[c + 1] - 1; b++)
			for (int i = 0; i < 6; i++)
				m[((rows[b] - 1) * 2 + i / 3) * COLS + c * 3 + i % 3] = got[low.place(b, i / 3, i % 3)];
	same("by columns of blocks", m, a.dense);

	OK(cusparseSgebsr2gebsr_bufferSize(handle, way, ROWS / 2, COLS / 3, n, from_1, values, offsets, columns, 2, 3,
					   3, 2, &size));
	array<char> changing(size + 1);
	array<int> high_offsets(ROWS / 3 + 1);

	OK(cusparseXgebsr2gebsrNnz(handle, way, ROWS / 2, COLS / 3, n, from_1, offsets, columns, 2, 3, from_0,
				   high_offsets, 3, 2, &n, changing));
	array<int> high_columns(n);
	array<float> high_values(n * 6);

	OK(cusparseSgebsr2gebsr(handle, way, ROWS / 2, COLS / 3, low.count(), from_1, values, offsets, columns, 2, 3,
				from_0, high_values, high_offsets, high_columns, 3, 2, changing));
	high.offsets = high_offsets.host(), high.columns = high_columns.host(), high.values = high_values.host();
	same("blocks of 3 by 2", high.joined(), a.dense);
	printf("%d blocks, and %d others\n", low.count(), n);
}

static void products(cusparseDirection_t way)
{
	std::vector<Z> m = scattered<Z>(ROWS, COLS), x = full<Z>(COLS), y = full<Z>(ROWS), b = full<Z>(COLS * WIDE),
		       c = full<Z>(ROWS * WIDE), want;
	const Z alpha(2, -1), beta(0, 1);
	block_matrix<Z> a(ROWS, COLS, m, 3, way, 1);
	std::vector<int> ends, mask = {2, 5};
	array<int> masked(mask);
	array<Z> gx(x), gy(y);

	OK(cusparseZbsrmv(handle, way, plain, ROWS / 3, COLS / 3, a.count(), pairs(&alpha), from_1, pairs(a.at_values),
			  a.at_offsets, a.at_columns, 3, pairs(gx), pairs(&beta), pairs(gy)));
	want = combined(alpha, times(m, x, ROWS, COLS, 1), beta, y);
	same("blocks times a vector", gy.host(), want);

	/* Two rows of blocks only; of the second row, not the last block. */
	gy.set(y);
	ends.assign(a.offsets.begin() + 1, a.offsets.end());
	ends[1]--;
	blocks<Z> shorter = a;

	for (int i = 0; i < 9; i++)
		shorter.values[(ends[1] - 1) * 9 + i] = 0;
	array<int> masked_ends(ends);

	OK(cusparseZbsrxmv(handle, way, plain, 2, ROWS / 3, COLS / 3, a.count(), pairs(&alpha), from_1,
			   pairs(a.at_values), masked, a.at_offsets, masked_ends, a.at_columns, 3, pairs(gx),
			   pairs(&beta), pairs(gy)));
	want = combined(alpha, times(shorter.joined(), x, ROWS, COLS, 1), beta, y);
	for (int i = 0; i < ROWS; i++)
		if (i / 3 + 1 != mask[0] && i / 3 + 1 != mask[1])
			want[i] = y[i];
	same("some rows of blocks", gy.host(), want);

	/* The older function takes matrices by columns; the second one is turned, or not. */
	array<Z> gb(applied(flipped, b, COLS, WIDE)), gbt(b), gc(applied(flipped, c, ROWS, WIDE));

	want = combined(alpha, times(m, b, ROWS, COLS, WIDE), beta, c);
	for (int t = 0; t < 2; t++) {
		gc.set(applied(flipped, c, ROWS, WIDE));
		OK(cusparseZbsrmm(handle, way, plain, t ? flipped : plain, ROWS / 3, WIDE, COLS / 3, a.count(),
				  pairs(&alpha), from_1, pairs(a.at_values), a.at_offsets, a.at_columns, 3,
				  pairs(t ? gbt : gb), t ? WIDE : COLS, pairs(&beta), pairs(gc), ROWS));
		same("blocks times a matrix", applied(flipped, gc.host(), WIDE, ROWS), want);
	}
}

int main(void)
{
	begin();
	OK(cusparseCreateMatDescr(&from_0));
	OK(cusparseCreateMatDescr(&from_1));
	OK(cusparseSetMatIndexBase(from_1, CUSPARSE_INDEX_BASE_ONE));
	wrong();
	for (cusparseDirection_t way : {CUSPARSE_DIRECTION_ROW, CUSPARSE_DIRECTION_COLUMN}) {
		shapes(way);
		products(way);
	}
	OK(cusparseDestroyMatDescr(from_0));
	OK(cusparseDestroyMatDescr(from_1));
	OK(cusparseDestroy(handle));
	return 0;
}
