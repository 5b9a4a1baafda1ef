// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Threads: the current device, the last error and the per-thread default stream belong to each
 * thread alone. Threads that come and go leave nothing behind that disturbs later threads.
 */
#include <pthread.h>

#include "tests/loopback/check.h"

#define THREADS 8
#define LEN	(1 << 20)

static void *worker(void *arg)
{
	uint32_t n = (uint32_t)(uintptr_t)arg;
	int device = -1, want = (int)(n % 2), i;
	char *src = malloc(LEN), *back = malloc(LEN), *dev;

	REQUIRE(src && back, "out of memory");
	OK(cudaGetDevice(&device));
	REQUIRE(device == 0, "a new thread starts on device %d", device);
	OK(cudaGetLastError());
	OK(cudaSetDevice(want));
	EXPECT(cudaSetDevice(100 + (int)n), cudaErrorInvalidDevice);
	OK(cudaMalloc((void **)&dev, LEN));
	for (i = 0; i < ROUNDS(20); i++) {
		fill(src, LEN, n * 1000 + (uint32_t)i);
		OK(cudaMemcpyAsync(dev, src, LEN, cudaMemcpyHostToDevice, cudaStreamPerThread));
		memset(back, 0, LEN);
		OK(cudaMemcpyAsync(back, dev, LEN, cudaMemcpyDeviceToHost, cudaStreamPerThread));
		OK(cudaStreamSynchronize(cudaStreamPerThread));
		REQUIRE(differs(src, back, LEN) == LEN, "thread %u round %d", n, i);
	}
	OK(cudaFree(dev));
	OK(cudaGetDevice(&device));
	REQUIRE(device == want, "device %d, not %d", device, want);
	EXPECT(cudaGetLastError(), cudaErrorInvalidDevice);
	free(src);
	free(back);
	return NULL;
}

int main(void)
{
	pthread_t t[THREADS];
	int round, count = 0;
	uintptr_t i;

	setenv("QCU_LOOPBACK_GPUS", "2", 1);
	OK(cudaGetDeviceCount(&count));
	REQUIRE(count == 2, "%d devices", count);
	for (round = 0; round < 5; round++) {
		for (i = 0; i < THREADS; i++)
			REQUIRE(!pthread_create(&t[i], NULL, worker, (void *)i), "no thread");
		for (i = 0; i < THREADS; i++)
			pthread_join(t[i], NULL);
		OK(cudaGetLastError());
	}
	return 0;
}
