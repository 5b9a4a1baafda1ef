// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Conway's game of life on a torus of bytes: 40 generations in a row with a halo in shared
 * memory. A glider must appear again after four generations, one cell down and right.
 */
#include "check.h"

#define SIDE 48
#define TILE 16

__global__ void generation(const uint8_t *from, uint8_t *to)
{
	__shared__ uint8_t cell[TILE + 2][TILE + 2];
	int left = blockIdx.x * TILE - 1 + SIDE, top = blockIdx.y * TILE - 1 + SIDE, alive = 0;
	int tx = threadIdx.x, ty = threadIdx.y;

	for (int k = ty * TILE + tx; k < (TILE + 2) * (TILE + 2); k += TILE * TILE) {
		int x = k % (TILE + 2), y = k / (TILE + 2);

		cell[y][x] = from[(top + y) % SIDE * SIDE + (left + x) % SIDE];
	}
	__syncthreads();
	for (int dy = 0; dy < 3; dy++)
		for (int dx = 0; dx < 3; dx++)
			alive += cell[ty + dy][tx + dx];
	to[(blockIdx.y * TILE + ty) * SIDE + blockIdx.x * TILE + tx] =
		alive == 3 || (alive == 4 && cell[ty + 1][tx + 1]);
}

static void generation_host(const uint8_t *from, uint8_t *to)
{
	for (int i = 0; i < SIDE * SIDE; i++) {
		int x = i % SIDE, y = i / SIDE, around = 0;

		for (int k = 0; k < 9; k++)
			if (k != 4)
				around += from[(y + k / 3 + SIDE - 1) % SIDE * SIDE +
					       (x + k % 3 + SIDE - 1) % SIDE];
		to[i] = around == 3 || (around == 2 && from[i]);
	}
}

static uint8_t *dev[2];

static void play(uint8_t *world, int generations)
{
	dim3 grid(SIDE / TILE, SIDE / TILE), block(TILE, TILE);

	CHECK(cudaMemcpy(dev[0], world, SIDE * SIDE, cudaMemcpyHostToDevice));
	for (int g = 0; g < generations; g++)
		generation<<<grid, block>>>(dev[g % 2], dev[1 - g % 2]);
	CHECK_LAUNCH();
	CHECK(cudaMemcpy(world, dev[generations % 2], SIDE * SIDE, cudaMemcpyDeviceToHost));
}

int main(void)
{
	static uint8_t world[SIDE * SIDE], want[2][SIDE * SIDE];
	static const int glider[] = {1, SIDE + 2, 2 * SIDE, 2 * SIDE + 1, 2 * SIDE + 2};
	const int generations = 40;
	int alive = 0;

	for (int k = 0; k < 2; k++)
		CHECK(cudaMalloc(&dev[k], SIDE * SIDE));
	for (int i = 0; i < SIDE * SIDE; i++)
		world[i] = want[0][i] = scramble(i, 12) % 3 == 0;
	play(world, generations);
	for (int g = 0; g < generations; g++)
		generation_host(want[g % 2], want[1 - g % 2]);
	for (int i = 0; i < SIDE * SIDE; i++) {
		REQUIRE(world[i] == want[generations % 2][i], "cell %d is %d", i, world[i]);
		alive += world[i];
	}
	REQUIRE(alive > 20, "only %d cells live", alive);

	memset(world, 0, sizeof(world));
	memset(want, 0, sizeof(want));
	for (int at : glider) {
		world[at] = 1;
		want[0][at + SIDE + 1] = 1;
	}
	play(world, 4);
	REQUIRE(!memcmp(world, want[0], sizeof(world)), "the glider is lost");
	CHECK(cudaFree(dev[0]));
	CHECK(cudaFree(dev[1]));
	return verified("%d generations, %d cells live, and a glider", generations, alive);
}
