// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Memory that kernels allocate themselves: malloc, new and delete from many threads at once, and
 * a list that one kernel builds and the next one reads and frees.
 */
#include "check.h"

#define THREADS 128

struct node {
	node *next;
	int value;

	__device__ node(node *n, int v) : next(n), value(v)
	{
	}
};

__device__ node *list[THREADS];

__global__ void build(int *sums)
{
	int t = blockIdx.x * blockDim.x + threadIdx.x, n = t % 9, sum = 0;
	int *scratch = (int *)malloc((n + 1) * sizeof(int));
	double *wide = new double[n + 2];

	if (!scratch || !wide)
		return;
	for (int i = 0; i <= n; i++) {
		scratch[i] = t + i;
		wide[i] = 0.5 * i;
	}
	for (int i = 0; i <= n; i++)
		sum += scratch[i] + (int)(wide[i] * 2);
	free(scratch);
	delete[] wide;
	list[t] = nullptr;
	for (int i = 0; i < n; i++)
		list[t] = new node(list[t], t * 100 + i);
	sums[t] = sum;
}

__global__ void take_apart(int *values)
{
	int t = blockIdx.x * blockDim.x + threadIdx.x, sum = 0;

	while (list[t]) {
		node *first = list[t];

		sum = sum * 3 + first->value;
		list[t] = first->next;
		delete first;
	}
	values[t] = sum;
}

int main(void)
{
	int out[2 * THREADS], *dev;

	CHECK(cudaMalloc(&dev, sizeof(out)));
	CHECK(cudaMemset(dev, 0xff, sizeof(out)));
	build<<<2, THREADS / 2>>>(dev);
	take_apart<<<2, THREADS / 2>>>(dev + THREADS);
	CHECK_LAUNCH();
	CHECK(cudaMemcpy(out, dev, sizeof(out), cudaMemcpyDeviceToHost));
	for (int t = 0; t < THREADS; t++) {
		int n = t % 9, sum = 0, value = 0;

		for (int i = 0; i <= n; i++)
			sum += t + i + i;
		for (int i = n - 1; i >= 0; i--)
			value = value * 3 + t * 100 + i;
		REQUIRE(out[t] == sum && out[THREADS + t] == value,
			"thread %d: %d and %d, expected %d and %d", t, out[t], out[THREADS + t],
			sum, value);
	}
	CHECK(cudaFree(dev));
	return verified("lists of %d threads on the device's heap", THREADS);
}
