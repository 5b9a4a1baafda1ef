// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Threads of a warp that take separate paths: nested loops with breaks and continues in
 * different rounds, early returns, goto, one lane that waits for another lane's flag, and lanes
 * that must be together again after __syncwarp.
 */
#include "check.h"

#define THREADS 128

__host__ __device__ static int wander(int t)
{
	int sum = 0;

	for (int i = 0; i < t % 11 + 3; i++) {
		if (i % 3 == t % 3)
			continue;
		for (int k = i; k < 12; k++) {
			if (k * i > t)
				break;
			if ((k ^ t) & 1) {
				sum += k;
			} else {
				while (sum % 5)
					sum -= t % 4 + 1 > sum % 5 ? 1 : t % 4 + 1;
				sum += 7;
			}
		}
		if (sum > 150)
			goto out;
	}
	sum += 1000;
out:
	return sum % 2 ? sum * 3 : sum - t;
}

__global__ void paths(int *out, int n)
{
	int t = blockIdx.x * blockDim.x + threadIdx.x;

	if (t % 13 == 5) {
		out[t] = -1;
		return;
	}
	out[t] = wander(t);
	if (t % 4 == 0)
		out[t] += __popc(__ballot_sync(__activemask(), 1)) > 0;
}

/* Lane 0 waits for something that lane 31 does later, behind a branch. */
__global__ void handshake(volatile int *flag, int *out)
{
	int lane = threadIdx.x;

	if (lane == 0) {
		while (*flag == 0)
			;
		out[0] = *flag;
	} else if (lane == 31) {
		*flag = 1234;
	}
	__syncwarp();
	out[1 + lane] = __shfl_sync(0xffffffffu, out[0], 0);
}

/* In each step one lane writes what the next lane reads. */
__global__ void relay(int *out)
{
	__shared__ volatile int baton;
	int lane = threadIdx.x;

	if (lane == 0)
		baton = 1;
	__syncwarp();
	for (int step = 0; step < 32; step++) {
		if (lane == step)
			baton = baton * 3 + step;
		__syncwarp();
	}
	out[lane] = baton;
}

int main(void)
{
	int out[THREADS], *dev, *flag, baton = 1;

	CHECK(cudaMalloc(&dev, sizeof(out)));
	CHECK(cudaMalloc(&flag, sizeof(int)));
	paths<<<2, THREADS / 2>>>(dev, THREADS);
	CHECK_LAUNCH();
	CHECK(cudaMemcpy(out, dev, sizeof(out), cudaMemcpyDeviceToHost));
	for (int t = 0; t < THREADS; t++) {
		int want = t % 13 == 5 ? -1 : wander(t) + (t % 4 == 0);

		REQUIRE(out[t] == want, "thread %d: %d, expected %d", t, out[t], want);
	}
	CHECK(cudaMemset(flag, 0, sizeof(int)));
	handshake<<<1, 32>>>(flag, dev);
	CHECK_LAUNCH();
	CHECK(cudaMemcpy(out, dev, 33 * sizeof(int), cudaMemcpyDeviceToHost));
	for (int t = 0; t < 33; t++)
		REQUIRE(out[t] == 1234, "handshake %d: %d", t, out[t]);
	relay<<<1, 32>>>(dev);
	CHECK_LAUNCH();
	CHECK(cudaMemcpy(out, dev, 32 * sizeof(int), cudaMemcpyDeviceToHost));
	for (int step = 0; step < 32; step++)
		baton = (int)((unsigned int)baton * 3 + step);
	for (int t = 0; t < 32; t++)
		REQUIRE(out[t] == baton, "relay %d: %d, expected %d", t, out[t], baton);
	CHECK(cudaFree(dev));
	CHECK(cudaFree(flag));
	return verified("%d separate ways", THREADS);
}
