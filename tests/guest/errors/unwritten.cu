// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A kernel reads memory that nothing has written. It may find anything there, but it finds the same
 * each time. The program is right here and on any GPU; qcu run --check reports it. With an argument
 * it ends by _exit().
 */
#include <unistd.h>

#include "check.h"

#define N 64

__global__ void compare(const volatile int *in, int *differences)
{
	int first = in[threadIdx.x];

	__syncthreads();
	if (in[threadIdx.x] != first)
		atomicAdd(differences, 1);
}

int main(int argc, char **argv)
{
	int *in, *differences, found;

	(void)argv;
	CHECK(cudaMalloc(&in, N * sizeof(int)));
	CHECK(cudaMalloc(&differences, sizeof(int)));
	CHECK(cudaMemset(differences, 0, sizeof(int)));
	compare<<<1, N>>>(in, differences);
	CHECK_LAUNCH();
	CHECK(cudaMemcpy(&found, differences, sizeof(found), cudaMemcpyDeviceToHost));
	REQUIRE(found == 0, "%d", found);
	if (argc > 1)
		_exit(0);
	return verified("memory that nothing has written keeps its content");
}
