// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Tables that the program has from its start: constant and global device memory with
 * initialisers (numbers, strings, structures, addresses of other variables), which each lane
 * reads at another index. Also 60 KiB of constant memory that is filled at run time.
 */
#include "check.h"

#define THREADS 256

struct entry {
	const char *name;
	int *counter;
	double weight;
	short pair[2];
};

__device__ int counters[3] = {10, 20, 30};
__constant__ int primes[8] = {2, 3, 5, 7, 11, 13, 17, 19};
__constant__ double table[3][4] = {{0.5, 1.5, 2.5, 3.5}, {-1, -2, -3, -4}, {1e10, 2e-10}};
__device__ entry entries[3] = {{"first", &counters[0], 1.5, {1, -1}},
			       {"second", &counters[2], -2.25, {2, -2}},
			       {"third", &counters[1], 1e6, {3, -3}}};
__device__ unsigned long long zeroed[4];
__constant__ uint32_t big[15 * 1024];
__constant__ const int *pointed = &primes[3];

__global__ void look(long long *out)
{
	int t = threadIdx.x;
	const entry &e = entries[t % 3];
	long long sum = primes[t % 8] * 1000 + (long long)(table[t % 3][t / 3 % 4] * 2);

	for (const char *c = e.name; *c; c++)
		sum = sum * 3 + *c;
	sum += *e.counter * 7 + (long long)(e.weight * 4) + e.pair[t & 1] +
	       (long long)zeroed[t & 3];
	out[t] = sum + big[t * 61 % (15 * 1024)] + *pointed;
}

int main(void)
{
	static const int host_primes[] = {2, 3, 5, 7, 11, 13, 17, 19};
	static const double host_table[3][4] = {
		{0.5, 1.5, 2.5, 3.5}, {-1, -2, -3, -4}, {1e10, 2e-10}};
	static const char *const names[] = {"first", "second", "third"};
	static const int counter[] = {10, 30, 20};
	static const double weight[] = {1.5, -2.25, 1e6};
	static uint32_t host_big[15 * 1024];
	long long out[THREADS], *dev;

	for (int i = 0; i < 15 * 1024; i++)
		host_big[i] = scramble(i, 40);
	CHECK(cudaMemcpyToSymbol(big, host_big, sizeof(host_big)));
	CHECK(cudaMalloc(&dev, sizeof(out)));
	look<<<1, THREADS>>>(dev);
	CHECK_LAUNCH();
	CHECK(cudaMemcpy(out, dev, sizeof(out), cudaMemcpyDeviceToHost));
	for (int t = 0; t < THREADS; t++) {
		long long sum =
			host_primes[t % 8] * 1000 + (long long)(host_table[t % 3][t / 3 % 4] * 2);

		for (const char *c = names[t % 3]; *c; c++)
			sum = sum * 3 + *c;
		sum += counter[t % 3] * 7 + (long long)(weight[t % 3] * 4) +
		       (t & 1 ? -1 : 1) * (t % 3 + 1);
		sum += host_big[t * 61 % (15 * 1024)] + 7;
		REQUIRE(out[t] == sum, "thread %d: %lld, expected %lld", t, out[t], sum);
	}
	CHECK(cudaFree(dev));
	return verified("tables read by %d threads", THREADS);
}
