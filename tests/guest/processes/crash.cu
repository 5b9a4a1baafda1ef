// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Dies in the middle of its work, with device memory, pinned memory, chunk memory and a stream
 * with work: it writes to NULL. The driver and the host must free everything that it held. Ends
 * by a signal.
 */
#include "check.h"

__global__ void churn(uint32_t *word, int n, int rounds)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	for (int r = 0; i < n && r < rounds; r++)
		word[i] = word[i] * 1664525u + 1013904223u;
}

int main(void)
{
	const size_t bytes = 8 << 20;
	uint32_t *dev, *pinned, *pageable = (uint32_t *)malloc(bytes);
	cudaStream_t stream;

	CHECK(cudaMalloc(&dev, bytes));
	CHECK(cudaMallocHost(&pinned, bytes));
	CHECK(cudaStreamCreate(&stream));
	REQUIRE(pageable, "out of memory");
	memset(pageable, 1, bytes);
	memset(pinned, 2, bytes);
	CHECK(cudaMemcpyAsync(dev, pageable, bytes, cudaMemcpyHostToDevice, stream));
	churn<<<64, 256, 0, stream>>>(dev, 16384, 1000);
	CHECK_LAUNCH();
	CHECK(cudaMemcpyAsync(dev, pinned, bytes, cudaMemcpyHostToDevice, stream));
	CHECK(cudaMemcpyAsync(pinned, dev, bytes, cudaMemcpyDeviceToHost, stream));
	printf("now\n");
	fflush(stdout);
	*(volatile int *)NULL = 1;
	return 0;
}
