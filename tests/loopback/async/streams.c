// SPDX-License-Identifier: LGPL-2.1-or-later
/* Streams and events: what they report about themselves, and that work is done in their order. */
#include "tests/loopback/check.h"

#define LEN (4 << 20)

static void what_they_tell(void)
{
	unsigned long long a, b, c;
	unsigned int flags;
	int least, greatest, priority, device;
	cudaStream_t s, t;
	enum cudaStreamCaptureStatus status;

	OK(cudaDeviceGetStreamPriorityRange(&least, &greatest));
	REQUIRE(least >= greatest, "%d %d", least, greatest);
	OK(cudaStreamCreateWithPriority(&s, cudaStreamNonBlocking, -100));
	OK(cudaStreamGetPriority(s, &priority));
	REQUIRE(priority == greatest, "%d, not %d", priority, greatest);
	OK(cudaStreamGetFlags(s, &flags));
	REQUIRE(flags == cudaStreamNonBlocking, "%u", flags);
	OK(cudaStreamGetDevice(s, &device));
	REQUIRE(device == 0, "%d", device);
	OK(cudaStreamCreate(&t));
	OK(cudaStreamGetFlags(t, &flags));
	REQUIRE(flags == cudaStreamDefault, "%u", flags);
	OK(cudaStreamGetFlags(0, &flags));
	REQUIRE(flags == cudaStreamDefault, "%u", flags);
	OK(cudaStreamGetPriority(0, &priority));
	REQUIRE(priority == 0, "%d", priority);
	OK(cudaStreamGetId(s, &a));
	OK(cudaStreamGetId(t, &b));
	OK(cudaStreamGetId(cudaStreamPerThread, &c));
	REQUIRE(a != b && b != c && a != c, "%llu %llu %llu", a, b, c);
	OK(cudaStreamIsCapturing(s, &status));
	REQUIRE(status == cudaStreamCaptureStatusNone, "%d", status);
	OK(cudaStreamDestroy(s));
	OK(cudaStreamDestroy(t));
}

/* "Not ready" is an answer, not an error. */
static void query(cudaStream_t s)
{
	cudaError_t err;

	do {
		err = cudaStreamQuery(s);
		REQUIRE(err == cudaSuccess || err == cudaErrorNotReady, "%s",
			cudaGetErrorName(err));
		OK(cudaPeekAtLastError());
	} while (err == cudaErrorNotReady);
}

/* A chain over three streams, connected by events: the bytes from its start must reach its end. */
static void chain(void)
{
	char *src, *dst, *a, *b;
	cudaStream_t s[3];
	cudaEvent_t e[3];
	int i, round;

	OK(cudaMallocHost((void **)&src, LEN));
	OK(cudaMallocHost((void **)&dst, LEN));
	OK(cudaMalloc((void **)&a, LEN));
	OK(cudaMalloc((void **)&b, LEN));
	for (i = 0; i < 3; i++) {
		OK(cudaStreamCreateWithFlags(&s[i], cudaStreamNonBlocking));
		OK(cudaEventCreateWithFlags(&e[i], cudaEventDisableTiming));
	}
	for (round = 0; round < 20; round++) {
		fill(src, LEN, (uint32_t)round);
		memset(dst, 0, LEN);
		OK(cudaMemcpyAsync(a, src, LEN, cudaMemcpyHostToDevice, s[0]));
		OK(cudaEventRecord(e[0], s[0]));
		OK(cudaStreamWaitEvent(s[1], e[0], 0));
		OK(cudaMemcpyAsync(b, a, LEN, cudaMemcpyDeviceToDevice, s[1]));
		OK(cudaEventRecord(e[1], s[1]));
		OK(cudaStreamWaitEvent(s[2], e[1], 0));
		OK(cudaMemcpyAsync(dst, b, LEN, cudaMemcpyDeviceToHost, s[2]));
		OK(cudaEventRecord(e[2], s[2]));
		if (round & 1)
			query(s[2]);
		else
			OK(cudaEventSynchronize(e[2]));
		REQUIRE(differs(src, dst, LEN) == LEN, "round %d: byte %zu", round,
			differs(src, dst, LEN));
		OK(cudaEventQuery(e[2]));
	}
	for (i = 0; i < 3; i++) {
		OK(cudaStreamDestroy(s[i]));
		OK(cudaEventDestroy(e[i]));
	}
	OK(cudaFreeHost(src));
	OK(cudaFreeHost(dst));
	OK(cudaFree(a));
	OK(cudaFree(b));
}

/*
 * The default stream waits for the other streams, and they wait for it, unless they are
 * non-blocking.
 */
static void legacy_stream_orders_all(void)
{
	char *dev, *host;
	cudaStream_t s;
	int i;

	OK(cudaStreamCreate(&s));
	OK(cudaMalloc((void **)&dev, LEN));
	OK(cudaMallocHost((void **)&host, LEN));
	for (i = 1; i < 20; i++) {
		OK(cudaMemsetAsync(dev, i, LEN, s));
		OK(cudaMemcpy(host, dev, LEN, cudaMemcpyDeviceToHost));
		REQUIRE(host[0] == i && host[LEN - 1] == i, "%d: %d %d", i, host[0], host[LEN - 1]);
		OK(cudaMemset(dev, 100 + i, LEN));
		OK(cudaMemcpyAsync(host, dev, LEN, cudaMemcpyDeviceToHost, s));
		OK(cudaStreamSynchronize(s));
		REQUIRE(host[LEN - 1] == (char)(100 + i), "%d: %d", i, host[LEN - 1]);
	}
	OK(cudaFree(dev));
	OK(cudaFreeHost(host));
	OK(cudaStreamDestroy(s));
}

static void time_passes(void)
{
	cudaEvent_t start, end;
	float ms = -1, back = 1;
	char *dev;

	OK(cudaMalloc((void **)&dev, LEN));
	OK(cudaEventCreate(&start));
	OK(cudaEventCreate(&end));
	OK(cudaEventRecord(start, 0));
	OK(cudaMemset(dev, 1, LEN));
	OK(cudaEventRecord(end, 0));
	OK(cudaEventSynchronize(end));
	OK(cudaEventElapsedTime(&ms, start, end));
	OK(cudaEventElapsedTime(&back, end, start));
	REQUIRE(ms >= 0 && ms < 60000 && back <= 0, "%f %f", ms, back);
	OK(cudaEventDestroy(start));
	OK(cudaEventDestroy(end));
	OK(cudaFree(dev));
}

/* Handles are given out again after a while, but never twice at once. */
static void thousands(void)
{
	enum { N = 3000 };
	static cudaEvent_t e[N];
	int i, round;

	for (round = 0; round < 3; round++) {
		for (i = 0; i < N; i++) {
			OK(cudaEventCreateWithFlags(&e[i], cudaEventDisableTiming));
			OK(cudaEventRecord(e[i], 0));
		}
		for (i = 0; i < N; i++)
			OK(cudaEventDestroy(e[i]));
	}
}

int main(void)
{
	what_they_tell();
	chain();
	legacy_stream_orders_all();
	time_passes();
	thousands();
	return 0;
}
