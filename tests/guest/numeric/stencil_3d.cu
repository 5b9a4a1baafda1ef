// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A stencil in a box: blocks and the grid have three dimensions, and no side of the box is a
 * multiple of the block's side. Each point adds its 26 neighbours with weights; beyond the box,
 * values are zero. In integers.
 */
#include "check.h"

#define NX 37
#define NY 13
#define NZ 9

__host__ __device__ static int at(int x, int y, int z)
{
	return (z * NY + y) * NX + x;
}

__host__ __device__ static int point(const int *in, int x, int y, int z)
{
	int sum = 0;

	for (int dz = -1; dz <= 1; dz++) {
		for (int dy = -1; dy <= 1; dy++) {
			for (int dx = -1; dx <= 1; dx++) {
				int u = x + dx, v = y + dy, w = z + dz;

				if (u < 0 || v < 0 || w < 0 || u >= NX || v >= NY || w >= NZ)
					continue;
				sum += in[at(u, v, w)] * (dx + 3 * dy - 5 * dz + 7);
			}
		}
	}
	return sum;
}

__global__ void stencil(const int *in, int *out)
{
	int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y,
	    z = blockIdx.z * blockDim.z + threadIdx.z;

	if (x < NX && y < NY && z < NZ)
		out[at(x, y, z)] = point(in, x, y, z);
}

int main(void)
{
	const int n = NX * NY * NZ;
	static int in[n], got[n];
	static const dim3 blocks[] = {dim3(8, 4, 2), dim3(1, 1, 64), dim3(5, 7, 3), dim3(32, 2, 4)};
	int *dev;

	for (int i = 0; i < n; i++)
		in[i] = (int)(scramble(i, 11) % 1000) - 500;
	CHECK(cudaMalloc(&dev, 2 * sizeof(in)));
	CHECK(cudaMemcpy(dev, in, sizeof(in), cudaMemcpyHostToDevice));
	for (dim3 b : blocks) {
		dim3 grid((NX + b.x - 1) / b.x, (NY + b.y - 1) / b.y, (NZ + b.z - 1) / b.z);

		CHECK(cudaMemset(dev + n, 0xff, sizeof(in)));
		stencil<<<grid, b>>>(dev, dev + n);
		CHECK_LAUNCH();
		CHECK(cudaMemcpy(got, dev + n, sizeof(got), cudaMemcpyDeviceToHost));
		for (int z = 0; z < NZ; z++)
			for (int y = 0; y < NY; y++)
				for (int x = 0; x < NX; x++)
					REQUIRE(got[at(x, y, z)] == point(in, x, y, z),
						"%d,%d,%d: %d, expected %d", x, y, z,
						got[at(x, y, z)], point(in, x, y, z));
	}
	CHECK(cudaFree(dev));
	return verified("%d points in blocks of four shapes", n);
}
