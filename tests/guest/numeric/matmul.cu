// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Tiled matrix multiplication: blocks of 16 x 16 threads copy tiles into shared memory, meet at
 * a barrier and multiply from there. C (m x n) = A (m x k) * B (k x n). By default no dimension
 * is a multiple of the tile.
 */
#include <math.h>

#include "check.h"

#define TILE 16

__global__ void matmul(const float *a, const float *b, float *c, int m, int n, int k)
{
	__shared__ float ta[TILE][TILE], tb[TILE][TILE];
	int row = blockIdx.y * TILE + threadIdx.y, col = blockIdx.x * TILE + threadIdx.x;
	float sum = 0.0f;

	for (int t = 0; t < k; t += TILE) {
		int ak = t + threadIdx.x, bk = t + threadIdx.y;

		ta[threadIdx.y][threadIdx.x] = row < m && ak < k ? a[row * k + ak] : 0.0f;
		tb[threadIdx.y][threadIdx.x] = bk < k && col < n ? b[bk * n + col] : 0.0f;
		__syncthreads();
		for (int i = 0; i < TILE; i++)
			sum += ta[threadIdx.y][i] * tb[i][threadIdx.x];
		__syncthreads();
	}
	if (row < m && col < n)
		c[row * n + col] = sum;
}

static float *matrix(int rows, int cols, uint32_t seed)
{
	float *x = (float *)malloc((size_t)rows * cols * sizeof(float));

	REQUIRE(x, "out of memory");
	for (int i = 0; i < rows * cols; i++)
		x[i] = (float)(int)(scramble(i, seed) >> 20) / 2048.0f - 1.0f;
	return x;
}

int main(int argc, char **argv)
{
	int m = argc > 1 ? atoi(argv[1]) : 200;
	int n = argc > 2 ? atoi(argv[2]) : argc > 1 ? m : 150;
	int k = argc > 3 ? atoi(argv[3]) : argc > 1 ? m : 250;
	float *a, *b, *c, *da, *db, *dc, ms = -1.0f, worst = 0.0f;
	cudaEvent_t start, stop;

	REQUIRE(m > 0 && n > 0 && k > 0 && m <= 4096 && n <= 4096 && k <= 4096,
		"usage: matmul [m [n k]]");
	a = matrix(m, k, 1);
	b = matrix(k, n, 2);
	c = matrix(m, n, 3);
	CHECK(cudaMalloc(&da, (size_t)m * k * sizeof(float)));
	CHECK(cudaMalloc(&db, (size_t)k * n * sizeof(float)));
	CHECK(cudaMalloc(&dc, (size_t)m * n * sizeof(float)));
	CHECK(cudaMemcpy(da, a, (size_t)m * k * sizeof(float), cudaMemcpyHostToDevice));
	CHECK(cudaMemcpy(db, b, (size_t)k * n * sizeof(float), cudaMemcpyHostToDevice));
	CHECK(cudaEventCreate(&start));
	CHECK(cudaEventCreate(&stop));

	CHECK(cudaEventRecord(start));
	matmul<<<dim3((n + TILE - 1) / TILE, (m + TILE - 1) / TILE), dim3(TILE, TILE)>>>(da, db, dc,
											 m, n, k);
	CHECK_LAUNCH();
	CHECK(cudaEventRecord(stop));
	CHECK(cudaEventSynchronize(stop));
	CHECK(cudaEventElapsedTime(&ms, start, stop));
	REQUIRE(ms >= 0.0f, "the kernel took %g ms", ms);
	CHECK(cudaMemcpy(c, dc, (size_t)m * n * sizeof(float), cudaMemcpyDeviceToHost));
	printf("  %d x %d x %d: %.1f ms, %.3f GFLOP/s\n", m, n, k, ms,
	       2.0 * m * n * k / (ms * 1e6 + 1e-9));

	for (int i = 0; i < m; i++) {
		for (int j = 0; j < n; j++) {
			double sum = 0.0;
			float diff;

			for (int l = 0; l < k; l++)
				sum += (double)a[i * k + l] * b[l * n + j];
			diff = fabsf(c[i * n + j] - (float)sum);
			/*
			 * Every product is below 1: this is a sum of k products in single
			 * precision.
			 */
			REQUIRE(diff <= 2e-7f * k, "row %d, column %d: %g, the CPU says %g", i, j,
				c[i * n + j], sum);
			worst = diff > worst ? diff : worst;
		}
	}
	CHECK(cudaEventDestroy(start));
	CHECK(cudaEventDestroy(stop));
	CHECK(cudaFree(da));
	CHECK(cudaFree(db));
	CHECK(cudaFree(dc));
	free(a);
	free(b);
	free(c);
	return verified("%d elements within %.0e of the CPU's", m * n, worst > 0 ? worst : 1e-9f);
}
