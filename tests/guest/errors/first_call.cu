// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Without a usable device the first calls must all return the same error, and nothing may hang
 * or crash. The argument is the number of the expected error (0: the calls must work).
 */
#include "check.h"

__global__ void nothing(void)
{
}

int main(int argc, char **argv)
{
	cudaError_t want = (cudaError_t)(argc > 1 ? atoi(argv[1]) : 0);
	int count = -1;
	void *p = NULL;

	EXPECT(cudaGetDeviceCount(&count), want);
	EXPECT(cudaMalloc(&p, 16), want);
	EXPECT(cudaMallocHost(&p, 1 << 20), want);
	EXPECT(cudaDeviceSynchronize(), want);
	nothing<<<1, 1>>>();
	EXPECT(cudaGetLastError(), want);
	return verified("every first call gave %d %s", (int)want, cudaGetErrorName(want));
}
