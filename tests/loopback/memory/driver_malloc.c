// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * When the GPU driver runs in the program's own process, it allocates with the program's malloc,
 * which is ours. It does so also while the library waits for the answer to the very command that
 * the driver is working on.
 */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "tests/loopback/check.h"

#define BYTES	(40u << 20)
#define THREADS 4

/* Each buffer is new to the mirror. Two threads use it at once. */
static void *copy(void *buffer)
{
	void *dev;

	OK(cudaMalloc(&dev, 4096));
	OK(cudaMemcpy(dev, (char *)buffer + BYTES / 2, 4096, cudaMemcpyHostToDevice));
	OK(cudaFree(dev));
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t t[THREADS];
	char path[4096];
	void *p[2];
	int i;

	(void)argc;
	snprintf(path, sizeof(path), "%s_backend.so", argv[0]);
	setenv("QCU_LOOPBACK_BACKEND", path, 1);
	for (i = 0; i < 2; i++) {
		OK(cudaMallocHost(&p[i], BYTES));
		memset(p[i], i, BYTES);
	}
	for (i = 0; i < THREADS; i++)
		REQUIRE(!pthread_create(&t[i], NULL, copy, p[i % 2]), "no thread");
	for (i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	for (i = 0; i < 2; i++)
		OK(cudaFreeHost(p[i]));
	printf("ok\n");
	return 0;
}
