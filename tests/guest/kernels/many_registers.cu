// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A kernel that keeps far more than 64 values alive at once, and a kernel that indexes its own
 * arrays with indices known only at run time, so that the arrays are in local memory.
 */
#include "check.h"

#define VALUES	96
#define THREADS 128

__host__ __device__ static uint32_t stir(uint32_t seed)
{
	uint32_t v[VALUES], sum = 0;

#pragma unroll
	for (int i = 0; i < VALUES; i++)
		v[i] = scramble(i, seed);
		/* Every value needs all the others before any of them is done. */
#pragma unroll
	for (int round = 0; round < 3; round++) {
#pragma unroll
		for (int i = 0; i < VALUES; i++)
			v[i] = v[i] * 5 + (v[(i + 41) % VALUES] ^ v[(i + 7) % VALUES] >> 3);
	}
#pragma unroll
	for (int i = 0; i < VALUES; i++)
		sum = sum * 31 + v[i];
	return sum;
}

struct record {
	short key;
	unsigned char tag[5];
	unsigned long long value;
};

__host__ __device__ static unsigned long long wander(uint32_t seed)
{
	record box[20];
	unsigned char order[64];
	unsigned long long sum = 0;
	int at = seed % 20;

	for (int i = 0; i < 20; i++) {
		box[i].key = (short)(scramble(i, seed) % 20);
		box[i].value = (unsigned long long)scramble(i, seed + 1) << (i & 31);
		for (int k = 0; k < 5; k++)
			box[i].tag[k] = (unsigned char)scramble(i * 5 + k, seed);
	}
	for (int i = 0; i < 64; i++)
		order[i] = 0;
	for (int i = 0; i < 64; i++)
		order[scramble(i, seed) % 64] += (unsigned char)i;
	for (int step = 0; step < 30; step++) {
		box[at].value ^= sum;
		sum += box[at].value + box[at].tag[step % 5] + order[(at + step) & 63];
		order[step] = (unsigned char)at;
		at = (box[at].key + step) % 20;
	}
	return sum;
}

__global__ void run(uint32_t *stirred, unsigned long long *wandered)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	stirred[i] = stir(i);
	wandered[i] = wander(i);
}

int main(void)
{
	uint32_t stirred[THREADS], *dev_stirred;
	unsigned long long wandered[THREADS], *dev_wandered;

	CHECK(cudaMalloc(&dev_stirred, sizeof(stirred)));
	CHECK(cudaMalloc(&dev_wandered, sizeof(wandered)));
	run<<<2, THREADS / 2>>>(dev_stirred, dev_wandered);
	CHECK_LAUNCH();
	CHECK(cudaMemcpy(stirred, dev_stirred, sizeof(stirred), cudaMemcpyDeviceToHost));
	CHECK(cudaMemcpy(wandered, dev_wandered, sizeof(wandered), cudaMemcpyDeviceToHost));
	for (int i = 0; i < THREADS; i++) {
		REQUIRE(stirred[i] == stir(i), "thread %d: %08x, expected %08x", i, stirred[i],
			stir(i));
		REQUIRE(wandered[i] == wander(i), "thread %d: %llx, expected %llx", i, wandered[i],
			wander(i));
	}
	CHECK(cudaFree(dev_stirred));
	CHECK(cudaFree(dev_wandered));
	return verified("%d values at once, and local arrays", VALUES);
}
