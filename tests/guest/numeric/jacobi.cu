// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Heat in a plate with fixed edges: Jacobi steps until the largest change is small. An atomic
 * maximum on the bits of a float keeps the largest change. The CPU takes the same steps.
 */
#include <math.h>

#include "check.h"

#define SIDE  32
#define STEPS 60

__global__ void relax(const float *from, float *to, int *change)
{
	int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
	int i = y * SIDE + x;

	if (x == 0 || y == 0 || x >= SIDE - 1 || y >= SIDE - 1)
		return;
	to[i] = 0.25f * (from[i - 1] + from[i + 1] + from[i - SIDE] + from[i + SIDE]);
	/* Floats that are not negative have the same order as integers. */
	atomicMax(change, __float_as_int(fabsf(to[i] - from[i])));
}

static float relax_host(const float *from, float *to)
{
	float change = 0;

	for (int y = 1; y < SIDE - 1; y++) {
		for (int x = 1; x < SIDE - 1; x++) {
			int i = y * SIDE + x;

			to[i] = 0.25f *
				(from[i - 1] + from[i + 1] + from[i - SIDE] + from[i + SIDE]);
			change = fmaxf(change, fabsf(to[i] - from[i]));
		}
	}
	return change;
}

int main(void)
{
	const int n = SIDE * SIDE;
	static float plate[2][n], got[n];
	static int changes[STEPS];
	float *dev[2];
	int *dev_change;
	dim3 block(16, 8), grid(SIDE / 16, SIDE / 8);

	for (int i = 0; i < SIDE; i++)
		plate[0][i] = plate[1][i] = 100;
	CHECK(cudaMalloc(&dev_change, sizeof(changes)));
	CHECK(cudaMemset(dev_change, 0, sizeof(changes)));
	for (int k = 0; k < 2; k++) {
		CHECK(cudaMalloc(&dev[k], sizeof(plate[k])));
		CHECK(cudaMemcpy(dev[k], plate[k], sizeof(plate[k]), cudaMemcpyHostToDevice));
	}
	for (int s = 0; s < STEPS; s++)
		relax<<<grid, block>>>(dev[s % 2], dev[1 - s % 2], dev_change + s);
	CHECK_LAUNCH();
	CHECK(cudaMemcpy(changes, dev_change, sizeof(changes), cudaMemcpyDeviceToHost));
	for (int s = 0; s < STEPS; s++) {
		float want = relax_host(plate[s % 2], plate[1 - s % 2]), have;

		memcpy(&have, &changes[s], 4);
		REQUIRE(fabsf(have - want) <= 1e-4f, "step %d: change %g, expected %g", s, have,
			want);
	}
	CHECK(cudaMemcpy(got, dev[STEPS % 2], sizeof(got), cudaMemcpyDeviceToHost));
	for (int i = 0; i < n; i++)
		REQUIRE(fabsf(got[i] - plate[STEPS % 2][i]) < 1e-4f, "point %d: %g, expected %g", i,
			got[i], plate[STEPS % 2][i]);
	CHECK(cudaFree(dev[0]));
	CHECK(cudaFree(dev[1]));
	CHECK(cudaFree(dev_change));
	return verified("%d steps on a plate of %d x %d", STEPS, SIDE, SIDE);
}
