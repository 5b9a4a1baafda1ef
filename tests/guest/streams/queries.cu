// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Queries whether events and streams are done, again and again, while they are not done and when
 * they are. The answer must never be "done" too early, and never "not ready" after a wait. This
 * must also hold for events that are recorded again, and for events that are destroyed and made
 * again; for several threads; and after an error, the query must return it. If a driver counts
 * what a program sends, repeated queries must cost nearly nothing.
 */
#include <pthread.h>
#include <unistd.h>

#include "check.h"

#define THREADS 4
#define ROUNDS	100
#define ASKED	2000

static int let_go;

static void hold(void *)
{
	while (!__atomic_load_n(&let_go, __ATOMIC_ACQUIRE))
		usleep(200);
}

/* The stream does not go on from here until release(). */
static void block(cudaStream_t s)
{
	__atomic_store_n(&let_go, 0, __ATOMIC_RELEASE);
	CHECK(cudaLaunchHostFunc(s, hold, NULL));
}

static void release(void)
{
	__atomic_store_n(&let_go, 1, __ATOMIC_RELEASE);
}

__global__ void add(int *p, int n)
{
	atomicAdd(p, n);
}

__global__ void fail(void)
{
	__trap();
}

/* Returns how many commands this process has sent; -1: no driver counts them. */
static long sent(void)
{
	FILE *f = fopen("/sys/kernel/debug/qcuda/sessions", "r");
	char line[512], *at;
	long n = -1;

	while (f && fgets(line, sizeof(line), f)) {
		at = strstr(line, "commands ");
		if (at && strtol(line, NULL, 10) == getpid())
			n = strtol(at + 9, NULL, 10);
	}
	if (f)
		fclose(f);
	return n;
}

static long ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000L + t.tv_nsec / 1000000;
}

static void bad_input(cudaStream_t s)
{
	cudaGraph_t graph;
	cudaEvent_t e;

	EXPECT(cudaEventQuery(NULL), cudaErrorInvalidResourceHandle);
	EXPECT(cudaGetLastError(), cudaErrorInvalidResourceHandle);
	CHECK(cudaEventCreate(&e));
	CHECK(cudaEventQuery(e));
	/*
	 * A query of an event in a capture is an error, whatever was known about the event
	 * before.
	 */
	CHECK(cudaEventRecord(e, s));
	CHECK(cudaStreamSynchronize(s));
	CHECK(cudaEventQuery(e));
	CHECK(cudaStreamBeginCapture(s, cudaStreamCaptureModeRelaxed));
	CHECK(cudaEventRecord(e, s));
	EXPECT(cudaEventQuery(e), cudaErrorCapturedEvent);
	EXPECT(cudaStreamEndCapture(s, &graph), cudaErrorStreamCaptureInvalidated);
	cudaGetLastError();
	CHECK(cudaEventRecord(e, s));
	CHECK(cudaEventSynchronize(e));
	CHECK(cudaEventQuery(e));
	CHECK(cudaEventDestroy(e));
}

static void asked_often(cudaStream_t s, int *dev)
{
	cudaEvent_t before, after;
	long count, began;
	int i;

	CHECK(cudaEventCreateWithFlags(&before, cudaEventDisableTiming));
	CHECK(cudaEventCreateWithFlags(&after, cudaEventDisableTiming));
	CHECK(cudaEventRecord(before, s));
	CHECK(cudaStreamSynchronize(s));
	block(s);
	add<<<1, 1, 0, s>>>(dev, 1);
	CHECK_LAUNCH();
	CHECK(cudaEventRecord(after, s));

	count = sent();
	began = ms();
	for (i = 0; i < ASKED; i++) {
		CHECK(cudaEventQuery(before));
		EXPECT(cudaEventQuery(after), cudaErrorNotReady);
		EXPECT(cudaStreamQuery(s), cudaErrorNotReady);
	}
	count = sent() - count;
	began = ms() - began;
	REQUIRE(count <= 20 + began / 20, "%d times three questions: %ld commands in %ld ms", ASKED,
		count, began);

	release();
	while (cudaEventQuery(after) == cudaErrorNotReady)
		;
	CHECK(cudaEventQuery(after));
	while (cudaStreamQuery(s) == cudaErrorNotReady)
		;
	CHECK(cudaStreamQuery(s));
	count = sent();
	for (i = 0; i < ASKED; i++) {
		CHECK(cudaEventQuery(after));
		CHECK(cudaStreamQuery(s));
	}
	count = sent() - count;
	REQUIRE(count <= 4, "of what is done: %ld commands", count);
	CHECK(cudaEventDestroy(before));
	CHECK(cudaEventDestroy(after));
}

/* An answer about an event or a stream is not valid any more after its next work. */
static void used_again(cudaStream_t s, int *dev)
{
	cudaEvent_t e;
	char text[64] = "";
	int round;

	CHECK(cudaEventCreateWithFlags(&e, cudaEventDisableTiming));
	for (round = 0; round < 10; round++) {
		block(s);
		if (round % 2) {
			add<<<1, 1, 0, s>>>(dev, 1);
			CHECK_LAUNCH();
		} else {
			CHECK(cudaMemcpyAsync(dev + 1, text, 4, cudaMemcpyHostToDevice, s));
		}
		EXPECT(cudaStreamQuery(s), cudaErrorNotReady);
		CHECK(cudaEventRecord(e, s));
		EXPECT(cudaEventQuery(e), cudaErrorNotReady);
		EXPECT(cudaEventQuery(e), cudaErrorNotReady);
		if (round == 5) {
			CHECK(cudaEventDestroy(e));
			CHECK(cudaEventCreateWithFlags(&e, cudaEventDisableTiming));
			CHECK(cudaEventQuery(e));
			CHECK(cudaEventRecord(e, s));
			EXPECT(cudaEventQuery(e), cudaErrorNotReady);
		}
		release();
		/* After a wait, the program knows that the work is done. */
		if (round % 3 == 0)
			CHECK(cudaStreamSynchronize(s));
		else if (round % 3 == 1)
			CHECK(cudaEventSynchronize(e));
		else
			CHECK(cudaDeviceSynchronize());
		CHECK(cudaEventQuery(e));
		CHECK(cudaStreamQuery(s));
	}
	CHECK(cudaEventDestroy(e));
}

static void *thread(void *arg)
{
	int *dev = (int *)arg, i, before, after, have;
	cudaEvent_t e[2];
	cudaStream_t s;

	CHECK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
	CHECK(cudaEventCreateWithFlags(&e[0], cudaEventDisableTiming));
	CHECK(cudaEventCreateWithFlags(&e[1], cudaEventDisableTiming));
	for (i = 0; i < ROUNDS; i++) {
		add<<<1, 1, 0, s>>>(dev, 1);
		CHECK_LAUNCH();
		CHECK(cudaEventRecord(e[0], s));
		add<<<1, 1, 0, s>>>(dev, 1);
		CHECK_LAUNCH();
		CHECK(cudaEventRecord(e[1], s));
		do {
			after = cudaEventQuery(e[1]);
			before = cudaEventQuery(e[0]);
			/* The first event is done first. */
			REQUIRE(after != cudaSuccess || before == cudaSuccess, "round %d", i);
			REQUIRE(after == cudaSuccess || after == cudaErrorNotReady, "%d", after);
		} while (after != cudaSuccess);
		if (i % 2)
			while (cudaStreamQuery(s) == cudaErrorNotReady)
				;
		CHECK(cudaMemcpyAsync(&have, dev, 4, cudaMemcpyDeviceToHost, s));
		CHECK(cudaStreamSynchronize(s));
		REQUIRE(have == 2 * (i + 1), "round %d: %d", i, have);
	}
	CHECK(cudaEventDestroy(e[0]));
	CHECK(cudaEventDestroy(e[1]));
	CHECK(cudaStreamDestroy(s));
	return NULL;
}

static void threads(int *dev)
{
	pthread_t t[THREADS];
	int i;

	CHECK(cudaMemset(dev, 0, 64 * sizeof(*dev)));
	CHECK(cudaDeviceSynchronize());
	for (i = 0; i < THREADS; i++)
		REQUIRE(!pthread_create(&t[i], NULL, thread, dev + 16 * i), "no thread");
	for (i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
}

/* The last test: nothing works afterwards. */
static void error_comes_out(cudaStream_t s)
{
	cudaEvent_t e;
	cudaError_t err;

	CHECK(cudaEventCreateWithFlags(&e, cudaEventDisableTiming));
	block(s);
	fail<<<1, 1, 0, s>>>();
	CHECK_LAUNCH();
	CHECK(cudaEventRecord(e, s));
	EXPECT(cudaEventQuery(e), cudaErrorNotReady);
	EXPECT(cudaEventQuery(e), cudaErrorNotReady);
	release();
	while ((err = cudaEventQuery(e)) == cudaErrorNotReady)
		;
	REQUIRE(err == cudaErrorLaunchFailure, "%s", cudaGetErrorName(err));
	EXPECT(cudaEventQuery(e), cudaErrorLaunchFailure);
	EXPECT(cudaStreamQuery(s), cudaErrorLaunchFailure);
}

int main(void)
{
	cudaStream_t s;
	int *dev;

	CHECK(cudaMalloc((void **)&dev, 64 * sizeof(*dev)));
	CHECK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
	load_kernel((const void *)add);
	load_kernel((const void *)fail);
	bad_input(s);
	asked_often(s, dev);
	used_again(s, dev);
	threads(dev);
	error_comes_out(s);
	return verified("what is done, what is not, and what has failed");
}
