// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Barriers that count and vote over a block, with whole and with partial warps, and barriers
 * that threads reach at different places in the program.
 */
#include "check.h"

#define MAX_THREADS 1024

struct votes {
	int count, all_some, all_true, any_some, any_false;
	int neighbour;
};

__global__ void vote(votes *out)
{
	__shared__ int box[MAX_THREADS];
	int t = threadIdx.x, n = blockDim.x;
	votes v;

	v.count = __syncthreads_count(t % 7 == 0);
	v.all_some = __syncthreads_and(t != n - 1);
	v.all_true = __syncthreads_and(t < n);
	v.any_some = __syncthreads_or(t == n - 1);
	v.any_false = __syncthreads_or(t >= n);
	/* Every other warp waits inside one branch, the rest inside another. */
	box[t] = t * 3;
	if (t / 32 % 2 == 0) {
		__syncthreads();
		v.neighbour = box[n - 1 - t];
	} else {
		__syncthreads();
		v.neighbour = box[n - 1 - t] + 1;
	}
	out[t] = v;
}

int main(void)
{
	static const int sizes[] = {1, 31, 32, 33, 64, 100, 256, 1000, 1024};
	votes out[MAX_THREADS], *dev;

	CHECK(cudaMalloc(&dev, sizeof(out)));
	for (int n : sizes) {
		vote<<<1, n>>>(dev);
		CHECK_LAUNCH();
		CHECK(cudaMemcpy(out, dev, n * sizeof(*out), cudaMemcpyDeviceToHost));
		for (int t = 0; t < n; t++) {
			const votes &v = out[t];

			REQUIRE(v.count == (n + 6) / 7, "%d threads, thread %d: counted %d", n, t,
				v.count);
			REQUIRE(!v.all_some && v.all_true && v.any_some && !v.any_false,
				"%d threads, thread %d: %d %d %d %d", n, t, v.all_some, v.all_true,
				v.any_some, v.any_false);
			REQUIRE(v.neighbour == (n - 1 - t) * 3 + t / 32 % 2,
				"%d threads, thread %d: neighbour %d", n, t, v.neighbour);
		}
	}
	CHECK(cudaFree(dev));
	return verified("votes of blocks of 1 to %d threads", MAX_THREADS);
}
