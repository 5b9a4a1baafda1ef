// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Compiled with --default-stream per-thread: stream 0 is the thread's own stream, through the
 * _ptsz and _ptds names, for launches, copies, memsets, symbols and events.
 */
#include <pthread.h>

#include "check.h"

#define N 10000

__device__ int table[4];

__global__ void add(int *v, int n, int x)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		v[i] += x + table[0];
}

static void *worker(void *arg)
{
	int n = (int)(uintptr_t)arg, i, round, *dev, *host = (int *)malloc(N * sizeof(int));
	cudaEvent_t event;
	unsigned long long id, own;

	OK(cudaMalloc((void **)&dev, N * sizeof(int)));
	OK(cudaEventCreate(&event));
	OK(cudaStreamGetId(0, &id));
	OK(cudaStreamGetId(cudaStreamPerThread, &own));
	REQUIRE(id == own, "stream 0 is not the thread's own");
	for (round = 0; round < 20; round++) {
		OK(cudaMemsetAsync(dev, 0, N * sizeof(int)));
		add<<<(N + 255) / 256, 256>>>(dev, N, n);
		OK(cudaGetLastError());
		add<<<(N + 255) / 256, 256>>>(dev, N, round);
		OK(cudaEventRecord(event));
		OK(cudaEventSynchronize(event));
		OK(cudaMemcpy(host, dev, N * sizeof(int), cudaMemcpyDeviceToHost));
		for (i = 0; i < N; i++)
			REQUIRE(host[i] == n + round + 84, "thread %d: %d", n, host[i]);
	}
	OK(cudaEventDestroy(event));
	OK(cudaFree(dev));
	free(host);
	return NULL;
}

int main(void)
{
	pthread_t t[4];
	int x = 42;
	uintptr_t i;

	OK(cudaMemcpyToSymbol(table, &x, sizeof(x)));
	for (i = 0; i < 4; i++)
		REQUIRE(!pthread_create(&t[i], NULL, worker, (void *)i), "no thread");
	for (i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
	return 0;
}
