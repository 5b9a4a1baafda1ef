// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The two-dimensional cosine transform of 8 x 8 pixels: forward, quantised, and back, as in
 * image coders. The matrix is in constant memory; a tile is in shared memory with a padded row.
 * Compared with the definition in double.
 */
#include <math.h>

#include "check.h"

#define SIDE 64

__constant__ float basis[8][8];

/* Eight by eight threads per tile, several tiles per block. */
__global__ void dct(const float *in, float *out, bool inverse)
{
	__shared__ float tile[4][8][9], half[4][8][9];
	int u = threadIdx.x, v = threadIdx.y, z = threadIdx.z;
	int at = (blockIdx.y * 8 + v) * SIDE + (blockIdx.x * 4 + z) * 8 + u;
	float sum = 0;

	tile[z][v][u] = in[at];
	__syncthreads();
	for (int k = 0; k < 8; k++)
		sum += tile[z][v][k] * (inverse ? basis[k][u] : basis[u][k]);
	half[z][v][u] = sum;
	__syncthreads();
	sum = 0;
	for (int k = 0; k < 8; k++)
		sum += half[z][k][u] * (inverse ? basis[k][v] : basis[v][k]);
	out[at] = sum;
}

__global__ void quantise(float *data, float step)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	data[i] = rintf(data[i] / step) * step;
}

static double weight(int u, int x)
{
	return (u ? 0.5 : sqrt(0.125)) * cos((2 * x + 1) * u * M_PI / 16);
}

int main(void)
{
	const int n = SIDE * SIDE;
	static float in[n], freq[n], back[n], host[8][8];
	const float step = 4;
	float *dev;
	dim3 grid(SIDE / 32, SIDE / 8), block(8, 8, 4);

	for (int i = 0; i < n; i++)
		in[i] = (float)(scramble(i / 3, 7) % 256) - 128;
	for (int u = 0; u < 8; u++)
		for (int x = 0; x < 8; x++)
			host[u][x] = (float)weight(u, x);
	CHECK(cudaMemcpyToSymbol(basis, host, sizeof(host)));
	CHECK(cudaMalloc(&dev, 2 * sizeof(in)));
	CHECK(cudaMemcpy(dev, in, sizeof(in), cudaMemcpyHostToDevice));
	dct<<<grid, block>>>(dev, dev + n, false);
	CHECK_LAUNCH();
	CHECK(cudaMemcpy(freq, dev + n, sizeof(freq), cudaMemcpyDeviceToHost));
	for (int i = 0; i < n; i++) {
		int left = i % SIDE / 8 * 8, top = i / SIDE / 8 * 8, u = i % 8, v = i / SIDE % 8;
		double want = 0;

		for (int y = 0; y < 8; y++)
			for (int x = 0; x < 8; x++)
				want += weight(u, x) * weight(v, y) *
					in[(top + y) * SIDE + left + x];
		REQUIRE(fabs(freq[i] - want) < 1e-3, "coefficient %d: %.6g, expected %.6g", i,
			freq[i], want);
	}
	dct<<<grid, block>>>(dev + n, dev, true);
	CHECK_LAUNCH();
	CHECK(cudaMemcpy(back, dev, sizeof(back), cudaMemcpyDeviceToHost));
	for (int i = 0; i < n; i++)
		REQUIRE(fabsf(back[i] - in[i]) < 1e-3f, "pixel %d: %.6g, was %.6g", i, back[i],
			in[i]);
	quantise<<<n / 256, 256>>>(dev + n, step);
	dct<<<grid, block>>>(dev + n, dev, true);
	CHECK_LAUNCH();
	CHECK(cudaMemcpy(back, dev, sizeof(back), cudaMemcpyDeviceToHost));
	/*
	 * Parseval: the error of a tile is the error of its coefficients, at most half a step
	 * each.
	 */
	for (int top = 0; top < SIDE; top += 8) {
		for (int left = 0; left < SIDE; left += 8) {
			double error = 0;

			for (int k = 0; k < 64; k++) {
				int i = (top + k / 8) * SIDE + left + k % 8;

				error += (double)(back[i] - in[i]) * (back[i] - in[i]);
			}
			REQUIRE(error > 0 && error < 64 * step * step / 4 + 1e-2, "tile error %g",
				error);
		}
	}
	CHECK(cudaFree(dev));
	return verified("%d tiles, there and back", n / 64);
}
