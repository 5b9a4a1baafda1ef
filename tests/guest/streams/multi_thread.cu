// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Eight host threads, each with its own stream, buffers and kernels, all at once. Results do not
 * mix, and errors do not either: one thread's mistake is not another's last error.
 */
#include <pthread.h>

#include "check.h"

#define THREADS 8
#define ROUNDS	6
#define N	20000

__global__ void mix(uint32_t *word, int n, uint32_t key)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		word[i] = word[i] * 2654435761u + key;
}

static pthread_barrier_t all_here;

static void *worker(void *arg)
{
	uint32_t me = (uint32_t)(uintptr_t)arg, *host, *out, *dev;
	size_t bytes = N * sizeof(uint32_t);
	cudaStream_t stream;
	int device = -1;

	pthread_barrier_wait(&all_here);
	CHECK(cudaGetDevice(&device));
	REQUIRE(device == 0, "%d", device);
	CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	CHECK(cudaMalloc(&dev, bytes));
	if (me & 1) {
		host = (uint32_t *)malloc(bytes);
		out = (uint32_t *)malloc(bytes);
		REQUIRE(host && out, "out of memory");
	} else {
		CHECK(cudaMallocHost(&host, bytes));
		CHECK(cudaMallocHost(&out, bytes));
	}
	for (uint32_t round = 0; round < ROUNDS; round++) {
		uint32_t key = me * 1000 + round;

		fill_words(host, bytes, key);
		memset(out, 0, bytes);
		CHECK(cudaMemcpyAsync(dev, host, bytes, cudaMemcpyHostToDevice, stream));
		mix<<<(N + 127) / 128, 128, 0, stream>>>(dev, N, key);
		CHECK_LAUNCH();
		if (me == 3)
			EXPECT(cudaSetDevice(1000), cudaErrorInvalidDevice);
		CHECK(cudaMemcpyAsync(out, dev, bytes, cudaMemcpyDeviceToHost, stream));
		CHECK(cudaStreamSynchronize(stream));
		for (int i = 0; i < N; i++)
			REQUIRE(out[i] == scramble(i, key) * 2654435761u + key,
				"thread %u, round %u, word %d: %08x", me, round, i, out[i]);
		if (me == 3)
			EXPECT(cudaGetLastError(), cudaErrorInvalidDevice);
		else
			CHECK(cudaGetLastError());
	}
	CHECK(cudaStreamDestroy(stream));
	CHECK(cudaFree(dev));
	if (me & 1) {
		free(host);
		free(out);
	} else {
		CHECK(cudaFreeHost(host));
		CHECK(cudaFreeHost(out));
	}
	return NULL;
}

int main(void)
{
	pthread_t thread[THREADS];

	REQUIRE(!pthread_barrier_init(&all_here, NULL, THREADS), "barrier");
	for (uintptr_t t = 0; t < THREADS; t++)
		REQUIRE(!pthread_create(&thread[t], NULL, worker, (void *)t), "thread %zu",
			(size_t)t);
	for (int t = 0; t < THREADS; t++)
		pthread_join(thread[t], NULL);
	CHECK(cudaGetLastError());
	CHECK(cudaDeviceSynchronize());
	return verified("%d threads, %d rounds each, none saw another's data or errors", THREADS,
			ROUNDS);
}
