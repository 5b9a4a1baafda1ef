// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Transpose through a padded tile in shared memory. There are fewer threads than elements in a
 * tile, and the matrix is no multiple of the tile. Transposing twice gives the original.
 */
#include "check.h"

#define TILE 32
#define ROWS 8

__global__ void transpose(const double *in, double *out, int width, int height)
{
	__shared__ double tile[TILE][TILE + 1];
	int x = blockIdx.x * TILE + threadIdx.x, y = blockIdx.y * TILE + threadIdx.y;

	for (int j = 0; j < TILE; j += ROWS)
		if (x < width && y + j < height)
			tile[threadIdx.y + j][threadIdx.x] = in[(y + j) * width + x];
	__syncthreads();
	x = blockIdx.y * TILE + threadIdx.x;
	y = blockIdx.x * TILE + threadIdx.y;
	for (int j = 0; j < TILE; j += ROWS)
		if (x < height && y + j < width)
			out[(y + j) * height + x] = tile[threadIdx.x][threadIdx.y + j];
}

int main(void)
{
	const int width = 333, height = 190;
	const size_t bytes = (size_t)width * height * sizeof(double);
	double *a = (double *)malloc(bytes), *b = (double *)malloc(bytes), *da, *db;
	dim3 block(TILE, ROWS);
	dim3 wide((width + TILE - 1) / TILE, (height + TILE - 1) / TILE);
	dim3 high((height + TILE - 1) / TILE, (width + TILE - 1) / TILE);

	REQUIRE(a && b, "out of memory");
	for (int i = 0; i < width * height; i++)
		a[i] = scramble(i, 21) * 0.001;
	CHECK(cudaMalloc(&da, bytes));
	CHECK(cudaMalloc(&db, bytes));
	CHECK(cudaMemcpy(da, a, bytes, cudaMemcpyHostToDevice));
	transpose<<<wide, block>>>(da, db, width, height);
	CHECK_LAUNCH();
	CHECK(cudaMemcpy(b, db, bytes, cudaMemcpyDeviceToHost));
	for (int y = 0; y < height; y++)
		for (int x = 0; x < width; x++)
			REQUIRE(b[x * height + y] == a[y * width + x], "row %d, column %d: %g", y,
				x, b[x * height + y]);
	transpose<<<high, block>>>(db, da, height, width);
	CHECK_LAUNCH();
	CHECK(cudaMemcpy(b, da, bytes, cudaMemcpyDeviceToHost));
	REQUIRE(!memcmp(a, b, bytes), "twice is not the original");
	CHECK(cudaFree(da));
	CHECK(cudaFree(db));
	free(a);
	free(b);
	return verified("%d x %d, and back", width, height);
}
