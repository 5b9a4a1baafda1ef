// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A program ends with posted work, with a host function that has not returned, with an event that
 * is watched, and with a thread that waits. The program must end, also when the backend must not be
 * called any more once its own end has begun. A call in an exit handler is refused; it does not
 * wait.
 */
#include <pthread.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "check.h"

static char *dev;
static cudaStream_t stream;

/* Registered before the backend is loaded, so it runs after the backend's end. */
static void last_call(void)
{
	cudaError_t err = cudaMemset(dev, 1, 16);

	if (err == cudaSuccess)
		err = cudaStreamSynchronize(stream);
	if (err != cudaErrorCudartUnloading) {
		fprintf(stderr, "a call at the end gave %d\n", err);
		_exit(1);
	}
}

static void hold(void *unused)
{
	(void)unused;
	for (;;)
		pause();
}

static void *wait_for_held(void *unused)
{
	(void)unused;
	cudaStreamSynchronize(stream);
	return NULL;
}

int main(int argc, char **argv)
{
	cudaEvent_t event;
	char path[4096];
	pthread_t t;
	int i;

	(void)argc;
	snprintf(path, sizeof(path), "%s_backend.so", argv[0]);
	setenv("QCU_LOOPBACK_BACKEND", path, 1);
	REQUIRE(!atexit(last_call), "atexit");
	OK(cudaMalloc((void **)&dev, 16));
	OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	OK(cudaEventCreate(&event));
	OK(cudaLaunchHostFunc(stream, hold, NULL));
	OK(cudaEventRecord(event, stream));
	for (i = 0; i < 3; i++)
		EXPECT(cudaEventQuery(event), cudaErrorNotReady);
	REQUIRE(!pthread_create(&t, NULL, wait_for_held, NULL), "no thread");
	for (i = 0; i < 500; i++)
		OK(cudaMemsetAsync(dev, i, 16, 0));
	return 0;
}
