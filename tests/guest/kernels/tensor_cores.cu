// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Products of matrices with CUDA's wmma, of half and of signed bytes, in tiles of 16 x 16. The
 * numbers are small and whole, so that the sums are exact.
 */
#include "check.h"

#include <cuda_fp16.h>
#include <mma.h>

#define N    64
#define TILE 16

using namespace nvcuda;

template <class In, class Sum, class Order>
__global__ void multiply(const In *a, const In *b, Sum *c)
{
	wmma::fragment<wmma::matrix_a, TILE, TILE, TILE, In, wmma::row_major> fa;
	wmma::fragment<wmma::matrix_b, TILE, TILE, TILE, In, Order> fb;
	wmma::fragment<wmma::accumulator, TILE, TILE, TILE, Sum> sum;
	bool columns = std::is_same<Order, wmma::col_major>::value;
	int row = blockIdx.y * TILE, col = blockIdx.x * TILE;

	wmma::fill_fragment(sum, 1);
	for (int k = 0; k < N; k += TILE) {
		wmma::load_matrix_sync(fa, a + row * N + k, N);
		wmma::load_matrix_sync(fb, columns ? b + col * N + k : b + k * N + col, N);
		wmma::mma_sync(sum, fa, fb, sum);
	}
	for (int i = 0; i < sum.num_elements; i++)
		sum.x[i] = sum.x[i] * 2;
	wmma::store_matrix_sync(c + row * N + col, sum, N, wmma::mem_row_major);
}

template <class In, class Sum, class Order> static void check(const char *what, int most)
{
	static In a[N * N], b[N * N];
	static Sum c[N * N];
	static int ia[N * N], ib[N * N];
	bool columns = std::is_same<Order, wmma::col_major>::value;
	In *da, *db;
	Sum *dc;
	uint32_t seed = 7;

	for (int i = 0; i < N * N; i++) {
		seed = seed * 1664525u + 1013904223u;
		ia[i] = (int)((seed >> 8) % (2 * most + 1)) - most;
		ib[i] = (int)((seed >> 16) % (2 * most + 1)) - most;
		a[i] = (In)(float)ia[i];
		b[i] = (In)(float)ib[i];
	}
	CHECK(cudaMalloc((void **)&da, sizeof(a)));
	CHECK(cudaMalloc((void **)&db, sizeof(b)));
	CHECK(cudaMalloc((void **)&dc, sizeof(c)));
	CHECK(cudaMemcpy(da, a, sizeof(a), cudaMemcpyHostToDevice));
	CHECK(cudaMemcpy(db, b, sizeof(b), cudaMemcpyHostToDevice));
	multiply<In, Sum, Order><<<dim3(N / TILE, N / TILE), 32>>>(da, db, dc);
	CHECK_LAUNCH();
	CHECK(cudaMemcpy(c, dc, sizeof(c), cudaMemcpyDeviceToHost));
	for (int i = 0; i < N; i++)
		for (int j = 0; j < N; j++) {
			int want = 1;

			for (int k = 0; k < N; k++)
				want += ia[i * N + k] * (columns ? ib[j * N + k] : ib[k * N + j]);
			want *= 2;
			REQUIRE(c[i * N + j] == (Sum)want,
				"%s: row %d, column %d: %g instead of %d", what, i, j,
				(double)c[i * N + j], want);
		}
	CHECK(cudaFree(da));
	CHECK(cudaFree(db));
	CHECK(cudaFree(dc));
}

int main()
{
	check<half, float, wmma::row_major>("half, by rows", 8);
	check<half, float, wmma::col_major>("half, by columns", 8);
	check<signed char, int, wmma::row_major>("bytes, by rows", 127);
	check<signed char, int, wmma::col_major>("bytes, by columns", 127);
	return verified("products of %d x %d matrices by tensor cores", N, N);
}
