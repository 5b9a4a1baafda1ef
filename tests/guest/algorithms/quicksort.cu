// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Recursion in which each thread takes its own branches: every thread sorts an array of its own
 * length with quicksort, on its call stack.
 */
#include <algorithm>

#include "check.h"

#define THREADS 64
#define MOST	60

__device__ __noinline__ void quicksort(int *a, int n)
{
	int pivot, left = 0, right = n - 1;

	if (n < 2)
		return;
	pivot = a[n / 2];
	while (left <= right) {
		while (a[left] < pivot)
			left++;
		while (a[right] > pivot)
			right--;
		if (left <= right) {
			int t = a[left];

			a[left++] = a[right];
			a[right--] = t;
		}
	}
	quicksort(a, right + 1);
	quicksort(a + left, n - left);
}

__host__ __device__ static int length(int thread)
{
	return thread * 7 % (MOST + 1);
}

__global__ void sort_all(int *data)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	quicksort(data + i * MOST, length(i));
}

/*
 * A real GPU starts with 1 KiB of stack per thread. A device without this limit may not support
 * the call.
 */
static void deepen_stack(void)
{
	cudaError_t code = cudaDeviceSetLimit(cudaLimitStackSize, 16384);

	REQUIRE(code == cudaSuccess || code == cudaErrorNotSupported, "%s", cudaGetErrorName(code));
	(void)cudaGetLastError();
}

int main(void)
{
	static int data[THREADS][MOST], got[THREADS][MOST];
	int *dev;

	deepen_stack();
	for (int t = 0; t < THREADS; t++)
		for (int k = 0; k < MOST; k++)
			data[t][k] = (int)scramble(k, t) % (t + 2);
	CHECK(cudaMalloc(&dev, sizeof(data)));
	CHECK(cudaMemcpy(dev, data, sizeof(data), cudaMemcpyHostToDevice));
	sort_all<<<2, THREADS / 2>>>(dev);
	CHECK_LAUNCH();
	CHECK(cudaMemcpy(got, dev, sizeof(got), cudaMemcpyDeviceToHost));
	for (int t = 0; t < THREADS; t++) {
		std::sort(data[t], data[t] + length(t));
		for (int k = 0; k < MOST; k++)
			REQUIRE(got[t][k] == data[t][k], "array %d, place %d: %d, expected %d", t,
				k, got[t][k], data[t][k]);
	}
	CHECK(cudaFree(dev));
	return verified("%d arrays of up to %d, each by one thread", THREADS, MOST);
}
