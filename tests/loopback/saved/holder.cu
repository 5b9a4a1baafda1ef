// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Holds memory while its session is saved: holder GIB FILE. All memory has been written when it
 * creates FILE, which QCU_LOOPBACK_SAVE_WHEN names. Then it sends commands, and looks at every
 * word.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/guest/check.h"

#define PIECES 100u
#define GIB    ((uint64_t)1 << 30)
#define ROUNDS 100

__device__ unsigned long long wrong;

__global__ void write_words(uint32_t *at, uint64_t words, uint32_t seed)
{
	for (uint64_t i = blockIdx.x * blockDim.x + threadIdx.x; i < words;
	     i += gridDim.x * blockDim.x)
		at[i] = (uint32_t)i * 2654435761u + seed;
}

__global__ void check_words(const uint32_t *at, uint64_t words, uint32_t seed)
{
	for (uint64_t i = blockIdx.x * blockDim.x + threadIdx.x; i < words;
	     i += gridDim.x * blockDim.x)
		if (at[i] != (uint32_t)i * 2654435761u + seed)
			atomicAdd(&wrong, 1ull);
}

int main(int argc, char **argv)
{
	unsigned int n = argc == 3 ? (unsigned int)atoi(argv[1]) : 0;
	unsigned long long bad = 0;
	uint32_t *piece[PIECES];
	int fd;

	if (!n || n > PIECES)
		return 2;
	for (unsigned int i = 0; i < n; i++) {
		CHECK(cudaMalloc(&piece[i], GIB));
		write_words<<<1024, 256>>>(piece[i], GIB / 4, i);
	}
	CHECK(cudaDeviceSynchronize());
	fd = open(argv[2], O_CREAT | O_WRONLY, 0600);
	if (fd < 0 || close(fd))
		return 2;
	for (unsigned int i = 0; i < ROUNDS; i++)
		CHECK(cudaMemcpyToSymbol(wrong, &bad, sizeof(bad)));
	for (unsigned int i = 0; i < n; i++)
		check_words<<<1024, 256>>>(piece[i], GIB / 4, i);
	CHECK(cudaMemcpyFromSymbol(&bad, wrong, sizeof(bad)));
	printf("%u GiB, %llu words are wrong\n", n, bad);
	return bad != 0;
}
