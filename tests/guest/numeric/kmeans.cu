// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * k-means on integer points until no point changes its cluster: the nearest centre per thread,
 * sums per block with shared atomics, new centres by one block. The CPU runs the same rounds.
 */
#include "check.h"

#define POINTS	2000
#define CENTRES 8
#define ROUNDS	50

__host__ __device__ static int nearest(int2 p, const int2 *centre)
{
	int best = 0, least = 0x7fffffff;

	for (int c = 0; c < CENTRES; c++) {
		int dx = p.x - centre[c].x, dy = p.y - centre[c].y, d = dx * dx + dy * dy;

		if (d < least) {
			least = d;
			best = c;
		}
	}
	return best;
}

struct sums {
	int x[CENTRES], y[CENTRES], n[CENTRES], moved;
};

__global__ void assign(const int2 *point, const int2 *centre, int *own, sums *all)
{
	__shared__ sums here;
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	for (int k = threadIdx.x; k < (int)(sizeof(sums) / 4); k += blockDim.x)
		((int *)&here)[k] = 0;
	__syncthreads();
	if (i < POINTS) {
		int c = nearest(point[i], centre);

		if (own[i] != c)
			atomicAdd(&here.moved, 1);
		own[i] = c;
		atomicAdd(&here.x[c], point[i].x);
		atomicAdd(&here.y[c], point[i].y);
		atomicAdd(&here.n[c], 1);
	}
	__syncthreads();
	for (int k = threadIdx.x; k < (int)(sizeof(sums) / 4); k += blockDim.x)
		atomicAdd((int *)all + k, ((int *)&here)[k]);
}

__global__ void recentre(const sums *all, int2 *centre)
{
	int c = threadIdx.x;

	if (all->n[c])
		centre[c] = make_int2(all->x[c] / all->n[c], all->y[c] / all->n[c]);
}

int main(void)
{
	static int2 point[POINTS];
	static int own[POINTS], got[POINTS];
	int2 centre[CENTRES], got_centre[CENTRES], *dev_point, *dev_centre;
	int *dev_own, rounds = 0, moved = 1;
	sums *dev_sums;

	for (int i = 0; i < POINTS; i++) {
		point[i].x = i % CENTRES * 137 % 1000 + scramble(i, 23) % 300;
		point[i].y = i % CENTRES * 311 % 1000 + scramble(i, 24) % 300;
		own[i] = -1;
	}
	memcpy(centre, point, sizeof(centre));
	CHECK(cudaMalloc(&dev_point, sizeof(point)));
	CHECK(cudaMalloc(&dev_centre, sizeof(centre)));
	CHECK(cudaMalloc(&dev_own, sizeof(own)));
	CHECK(cudaMalloc(&dev_sums, sizeof(sums)));
	CHECK(cudaMemcpy(dev_point, point, sizeof(point), cudaMemcpyHostToDevice));
	CHECK(cudaMemcpy(dev_centre, centre, sizeof(centre), cudaMemcpyHostToDevice));
	CHECK(cudaMemcpy(dev_own, own, sizeof(own), cudaMemcpyHostToDevice));
	for (; moved && rounds < ROUNDS; rounds++) {
		sums want = {}, have;

		CHECK(cudaMemset(dev_sums, 0, sizeof(sums)));
		assign<<<(POINTS + 127) / 128, 128>>>(dev_point, dev_centre, dev_own, dev_sums);
		recentre<<<1, CENTRES>>>(dev_sums, dev_centre);
		CHECK_LAUNCH();
		CHECK(cudaMemcpy(&have, dev_sums, sizeof(have), cudaMemcpyDeviceToHost));
		for (int i = 0; i < POINTS; i++) {
			int c = nearest(point[i], centre);

			want.moved += own[i] != c;
			own[i] = c;
			want.x[c] += point[i].x;
			want.y[c] += point[i].y;
			want.n[c]++;
		}
		REQUIRE(!memcmp(&have, &want, sizeof(want)), "round %d: %d moved, expected %d",
			rounds, have.moved, want.moved);
		for (int c = 0; c < CENTRES; c++)
			if (want.n[c])
				centre[c] = make_int2(want.x[c] / want.n[c], want.y[c] / want.n[c]);
		moved = want.moved;
	}
	CHECK(cudaMemcpy(got, dev_own, sizeof(got), cudaMemcpyDeviceToHost));
	CHECK(cudaMemcpy(got_centre, dev_centre, sizeof(centre), cudaMemcpyDeviceToHost));
	REQUIRE(!memcmp(got, own, sizeof(own)), "points are in other clusters");
	REQUIRE(!memcmp(got_centre, centre, sizeof(centre)), "centres differ");
	CHECK(cudaFree(dev_point));
	CHECK(cudaFree(dev_centre));
	CHECK(cudaFree(dev_own));
	CHECK(cudaFree(dev_sums));
	return verified("%d points settled in %d rounds", POINTS, rounds);
}
