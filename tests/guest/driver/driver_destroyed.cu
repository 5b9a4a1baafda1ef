// SPDX-License-Identifier: GPL-2.0-or-later
/* Contexts that are destroyed while threads have them: below the top, in another thread, twice. */
#include <pthread.h>
#include <semaphore.h>

#include "driver.h"

static sem_t is_current, is_gone;

static void *other(void *context)
{
	CUdeviceptr memory;
	CUcontext popped;

	DCHECK(cuCtxSetCurrent((CUcontext)context));
	DCHECK(cuMemAlloc(&memory, 100));
	DCHECK(cuMemFree(memory));
	sem_post(&is_current);
	sem_wait(&is_gone);
	DEXPECT(cuMemAlloc(&memory, 100), CUDA_ERROR_CONTEXT_IS_DESTROYED);
	DEXPECT(cuCtxSynchronize(), CUDA_ERROR_CONTEXT_IS_DESTROYED);
	DCHECK(cuCtxPopCurrent(&popped));
	REQUIRE(popped == context, "popped another");
	DEXPECT(cuCtxPopCurrent(&popped), CUDA_ERROR_INVALID_CONTEXT);
	return NULL;
}

int main()
{
	CUdevice device = driver_start();
	CUcontext first, second, current;
	CUdeviceptr memory;
	pthread_t thread;

	sem_init(&is_current, 0, 0);
	sem_init(&is_gone, 0, 0);
	DCHECK(cuCtxCreate(&first, NULL, 0, device));
	REQUIRE(!pthread_create(&thread, NULL, other, first), "pthread_create");
	sem_wait(&is_current);
	DCHECK(cuCtxCreate(&second, NULL, 0, device));
	/* It lies below the top here, and is current in the other thread. */
	DCHECK(cuCtxDestroy(first));
	sem_post(&is_gone);
	pthread_join(thread, NULL);
	DCHECK(cuMemAlloc(&memory, 100));
	DCHECK(cuMemFree(memory));
	DCHECK(cuCtxDestroy(second));
	DCHECK(cuCtxGetCurrent(&current));
	REQUIRE(current == first, "another one is current");
	DEXPECT(cuMemAlloc(&memory, 100), CUDA_ERROR_CONTEXT_IS_DESTROYED);
	DCHECK(cuCtxPopCurrent(NULL));
	DCHECK(cuMemAlloc(&memory, 100));
	DCHECK(cuMemFree(memory));
	return verified("contexts that are destroyed while threads have them");
}
