// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A separable convolution of an image, rows then columns, with the filter in constant memory and
 * the tile with its margins in shared memory. The image size is no multiple of the tile size.
 */
#include <math.h>

#include "check.h"

#define RADIUS 8
#define TILE   32

__constant__ float filter[2 * RADIUS + 1];

__global__ void rows(const float *in, float *out, int width, int height)
{
	__shared__ float line[4][TILE + 2 * RADIUS];
	int x = blockIdx.x * TILE + threadIdx.x, y = blockIdx.y * 4 + threadIdx.y;

	for (int k = threadIdx.x; k < TILE + 2 * RADIUS; k += TILE) {
		int from = blockIdx.x * TILE + k - RADIUS;

		line[threadIdx.y][k] =
			y < height && from >= 0 && from < width ? in[y * width + from] : 0;
	}
	__syncthreads();
	if (x < width && y < height) {
		float sum = 0;

#pragma unroll
		for (int k = 0; k <= 2 * RADIUS; k++)
			sum += filter[k] * line[threadIdx.y][threadIdx.x + k];
		out[y * width + x] = sum;
	}
}

__global__ void columns(const float *in, float *out, int width, int height)
{
	int x = blockIdx.x * TILE + threadIdx.x, y = blockIdx.y * 4 + threadIdx.y;
	float sum = 0;

	if (x >= width || y >= height)
		return;
	for (int k = -RADIUS; k <= RADIUS; k++) {
		if (y + k >= 0 && y + k < height)
			sum += filter[k + RADIUS] * in[(y + k) * width + x];
	}
	out[y * width + x] = sum;
}

int main(void)
{
	const int width = 101, height = 67, n = width * height;
	float *in = (float *)malloc(n * 4), *out = (float *)malloc(n * 4), *dev,
	      host[2 * RADIUS + 1];
	double *half = (double *)malloc(n * sizeof(double));
	dim3 grid((width + TILE - 1) / TILE, (height + 3) / 4), block(TILE, 4);

	REQUIRE(in && out && half, "out of memory");
	for (int i = 0; i < n; i++)
		in[i] = scramble(i, 5) / 4294967296.0f;
	for (int k = 0; k <= 2 * RADIUS; k++)
		host[k] = 0.01f * (k + 1);
	CHECK(cudaMemcpyToSymbol(filter, host, sizeof(host)));
	CHECK(cudaMalloc(&dev, 2 * n * 4));
	CHECK(cudaMemcpy(dev, in, n * 4, cudaMemcpyHostToDevice));
	rows<<<grid, block>>>(dev, dev + n, width, height);
	columns<<<grid, block>>>(dev + n, dev, width, height);
	CHECK_LAUNCH();
	CHECK(cudaMemcpy(out, dev, n * 4, cudaMemcpyDeviceToHost));
	for (int i = 0; i < n; i++) {
		half[i] = 0;
		for (int k = -RADIUS; k <= RADIUS; k++)
			if (i % width + k >= 0 && i % width + k < width)
				half[i] += (double)host[k + RADIUS] * in[i + k];
	}
	for (int i = 0; i < n; i++) {
		double want = 0;

		for (int k = -RADIUS; k <= RADIUS; k++)
			if (i / width + k >= 0 && i / width + k < height)
				want += (double)host[k + RADIUS] * half[i + k * width];
		REQUIRE(fabs(out[i] - want) < 1e-5 * (1 + fabs(want)),
			"pixel %d,%d: %.8g, expected %.8g", i % width, i / width, out[i], want);
	}
	CHECK(cudaFree(dev));
	free(in);
	free(out);
	free(half);
	return verified("%d x %d pixels under a filter of %d", width, height, 2 * RADIUS + 1);
}
