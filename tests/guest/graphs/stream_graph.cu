// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Work in several streams, ordered only by events: a diamond of kernels (one fans out to three,
 * three join in one), many times, with streams that do not wait for the default stream.
 */
#include "check.h"

#define N     1000
#define ARMS  3
#define TIMES 20

__global__ void source(int *x, int round)
{
	for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < N; i += gridDim.x * blockDim.x)
		x[i] = i * round;
}

__global__ void arm(const int *x, int *y, int which)
{
	for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < N; i += gridDim.x * blockDim.x)
		y[i] = x[i] * (which + 1) + which;
}

__global__ void join(const int *y, long long *sum)
{
	long long mine = 0;

	for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < ARMS * N;
	     i += gridDim.x * blockDim.x)
		mine += y[i];
	atomicAdd((unsigned long long *)sum, (unsigned long long)mine);
}

int main(void)
{
	cudaStream_t stream[ARMS];
	cudaEvent_t ready, done[ARMS], joined;
	long long sum[TIMES], *dev_sum;
	int *x, *y;

	CHECK(cudaMalloc(&x, N * sizeof(int)));
	CHECK(cudaMalloc(&y, ARMS * N * sizeof(int)));
	CHECK(cudaMalloc(&dev_sum, sizeof(sum)));
	CHECK(cudaMemset(dev_sum, 0, sizeof(sum)));
	CHECK(cudaDeviceSynchronize());
	CHECK(cudaEventCreateWithFlags(&ready, cudaEventDisableTiming));
	CHECK(cudaEventCreateWithFlags(&joined, cudaEventDisableTiming));
	for (int a = 0; a < ARMS; a++) {
		CHECK(cudaStreamCreateWithFlags(&stream[a], cudaStreamNonBlocking));
		CHECK(cudaEventCreateWithFlags(&done[a], cudaEventDisableTiming));
	}
	for (int r = 0; r < TIMES; r++) {
		source<<<2, 64, 0, stream[0]>>>(x, r);
		CHECK(cudaEventRecord(ready, stream[0]));
		for (int a = 0; a < ARMS; a++) {
			CHECK(cudaStreamWaitEvent(stream[a], ready, 0));
			arm<<<2, 64, 0, stream[a]>>>(x, y + a * N, a);
			CHECK(cudaEventRecord(done[a], stream[a]));
		}
		for (int a = 0; a < ARMS; a++)
			CHECK(cudaStreamWaitEvent(stream[r % ARMS], done[a], 0));
		join<<<2, 64, 0, stream[r % ARMS]>>>(y, dev_sum + r);
		CHECK(cudaEventRecord(joined, stream[r % ARMS]));
		CHECK(cudaStreamWaitEvent(stream[0], joined, 0));
		CHECK_LAUNCH();
	}
	CHECK(cudaEventSynchronize(joined));
	CHECK(cudaEventQuery(joined));
	CHECK(cudaMemcpy(sum, dev_sum, sizeof(sum), cudaMemcpyDeviceToHost));
	for (int r = 0; r < TIMES; r++) {
		long long want = 0;

		for (int a = 0; a < ARMS; a++)
			for (int i = 0; i < N; i++)
				want += i * r * (a + 1) + a;
		REQUIRE(sum[r] == want, "round %d: %lld, expected %lld", r, sum[r], want);
	}
	for (int a = 0; a < ARMS; a++) {
		CHECK(cudaStreamDestroy(stream[a]));
		CHECK(cudaEventDestroy(done[a]));
	}
	CHECK(cudaEventDestroy(ready));
	CHECK(cudaEventDestroy(joined));
	CHECK(cudaFree(x));
	CHECK(cudaFree(y));
	CHECK(cudaFree(dev_sum));
	return verified("%d diamonds over %d streams", TIMES, ARMS);
}
