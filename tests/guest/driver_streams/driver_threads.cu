// SPDX-License-Identifier: GPL-2.0-or-later
/* Threads with a context each, which launch and copy at the same time. */
#include <pthread.h>

#include "driver.h"

#define THREADS 6
#define N	5000

static CUmodule module;
static CUcontext context;

static void *work(void *arg)
{
	unsigned int first = (unsigned int)(uintptr_t)arg * 1000000, count = N, round, i;
	unsigned int *words = (unsigned int *)malloc(N * 4);
	CUdeviceptr memory;
	CUstream stream;
	void *params[] = {&memory, &count, &first};
	CUfunction function;

	DEXPECT(cuMemAlloc(&memory, 4), CUDA_ERROR_INVALID_CONTEXT);
	DCHECK(cuCtxSetCurrent(context));
	function = driver_function(module, "fill");
	DCHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	DCHECK(cuMemAlloc(&memory, N * 4));
	for (round = 0; round < 20; round++, first++) {
		DCHECK(cuLaunchKernel(function, (N + 255) / 256, 1, 1, 256, 1, 1, 0, stream, params,
				      NULL));
		DCHECK(cuMemcpyDtoHAsync(words, memory, N * 4, stream));
		DCHECK(cuStreamSynchronize(stream));
		for (i = 0; i < N; i++)
			REQUIRE(words[i] == first + i, "%u: %u", i, words[i]);
	}
	DCHECK(cuMemFree(memory));
	DCHECK(cuStreamDestroy(stream));
	free(words);
	return NULL;
}

int main()
{
	pthread_t threads[THREADS];
	uintptr_t i;

	driver_start();
	DCHECK(cuCtxGetCurrent(&context));
	module = driver_module();
	for (i = 0; i < THREADS; i++)
		REQUIRE(!pthread_create(&threads[i], NULL, work, (void *)i), "pthread_create");
	for (i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	DCHECK(cuModuleUnload(module));
	return verified("%d threads launch and copy at the same time", THREADS);
}
