// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Order. Work in one stream runs in order. A stream that waits for an event runs after the work
 * that the event marks, and not before. The legacy default stream waits for the other streams,
 * except for non-blocking ones. Queries return "not ready" while a kernel runs.
 */
#include <unistd.h>

#include "gate.h"

static uint32_t value_of(const uint32_t *dev)
{
	uint32_t value = 0;

	CHECK(cudaMemcpy(&value, dev, sizeof(value), cudaMemcpyDeviceToHost));
	return value;
}

int main(void)
{
	cudaStream_t a, b, free_running;
	cudaEvent_t start, stop, plain;
	uint32_t *dev;
	float ms = -1.0f, again = -1.0f;
	double t;

	CHECK(cudaMalloc(&dev, 4096));
	CHECK(cudaMemset(dev, 0, 4096));
	CHECK(cudaStreamCreate(&a));
	CHECK(cudaStreamCreate(&b));
	CHECK(cudaStreamCreateWithFlags(&free_running, cudaStreamNonBlocking));
	CHECK(cudaEventCreate(&start));
	CHECK(cudaEventCreate(&stop));
	CHECK(cudaEventCreateWithFlags(&plain, cudaEventDisableTiming));
	make_gate();
	/* Both kernels are loaded before one of them is held up. */
	store_when_opened(dev, 1, 0);
	open_gate();
	add_one<<<1, 1>>>(dev, dev + 1);
	CHECK_LAUNCH();
	CHECK(cudaDeviceSynchronize());

	/* Nothing is recorded and nothing queued: everything is ready, and no time is known. */
	CHECK(cudaEventQuery(start));
	CHECK(cudaEventSynchronize(start));
	CHECK(cudaStreamQuery(a));
	EXPECT(cudaEventElapsedTime(&ms, start, stop), cudaErrorInvalidResourceHandle);
	EXPECT(cudaGetLastError(), cudaErrorInvalidResourceHandle);

	/* The launch returns while the kernel runs; b waits for the event in a. */
	t = now();
	CHECK(cudaEventRecord(start, a));
	store_when_opened(dev, 41, a);
	CHECK(cudaEventRecord(stop, a));
	CHECK(cudaStreamWaitEvent(b, stop, 0));
	add_one<<<1, 1, 0, b>>>(dev, dev + 1);
	CHECK_LAUNCH();
	EXPECT(cudaStreamQuery(a), cudaErrorNotReady);
	EXPECT(cudaStreamQuery(b), cudaErrorNotReady);
	EXPECT(cudaEventQuery(stop), cudaErrorNotReady);
	EXPECT(cudaEventElapsedTime(&ms, start, stop), cudaErrorNotReady);
	CHECK(cudaEventSynchronize(start));
	usleep(30000);
	open_gate();
	CHECK(cudaEventSynchronize(stop));
	t = now() - t;
	(void)cudaGetLastError();
	CHECK(cudaStreamQuery(a));
	CHECK(cudaEventElapsedTime(&ms, start, stop));
	CHECK(cudaEventElapsedTime(&again, start, stop));
	REQUIRE(ms == again, "%g then %g ms", ms, again);
	REQUIRE(ms > 20.0f && ms * 1e-3 < t + 0.1, "event time %g ms, host time %g ms", ms,
		t * 1e3);
	CHECK(cudaStreamSynchronize(b));
	REQUIRE(value_of(dev + 1) == 42, "b did not wait for a: %u", value_of(dev + 1));

	/* An event that is recorded again marks the new place. */
	store_when_opened(dev, 77, a);
	CHECK(cudaEventRecord(plain, a));
	EXPECT(cudaEventQuery(plain), cudaErrorNotReady);
	(void)cudaGetLastError();
	open_gate();
	CHECK(cudaEventSynchronize(plain));
	REQUIRE(value_of(dev) == 77, "%u", value_of(dev));
	EXPECT(cudaEventElapsedTime(&ms, start, plain), cudaErrorInvalidResourceHandle);
	(void)cudaGetLastError();

	/* The default stream comes after a, and before later work in b. */
	store_when_opened(dev + 2, 10, a);
	add_one<<<1, 1>>>(dev + 2, dev + 3);
	add_one<<<1, 1, 0, b>>>(dev + 3, dev + 4);
	CHECK_LAUNCH();
	usleep(10000);
	open_gate();
	CHECK(cudaDeviceSynchronize());
	REQUIRE(value_of(dev + 3) == 11 && value_of(dev + 4) == 12, "%u, %u", value_of(dev + 3),
		value_of(dev + 4));

	/* A non-blocking stream does not wait for the default stream. */
	store_when_opened(dev + 5, 5, 0);
	add_one<<<1, 1, 0, free_running>>>(dev + 4, dev + 6);
	CHECK_LAUNCH();
	CHECK(cudaStreamSynchronize(free_running));
	EXPECT(cudaStreamQuery(0), cudaErrorNotReady);
	(void)cudaGetLastError();
	open_gate();
	CHECK(cudaDeviceSynchronize());
	REQUIRE(value_of(dev + 5) == 5 && value_of(dev + 6) == 13, "%u, %u", value_of(dev + 5),
		value_of(dev + 6));

	/* A stream that is destroyed with work in it still does the work. */
	store_when_opened(dev + 7, 9, b);
	CHECK(cudaStreamDestroy(b));
	open_gate();
	CHECK(cudaDeviceSynchronize());
	REQUIRE(value_of(dev + 7) == 9, "%u", value_of(dev + 7));

	CHECK(cudaEventDestroy(start));
	CHECK(cudaEventDestroy(stop));
	CHECK(cudaEventDestroy(plain));
	CHECK(cudaStreamDestroy(a));
	CHECK(cudaStreamDestroy(free_running));
	CHECK(cudaFree(dev));
	CHECK(cudaFreeHost((void *)gate));
	return verified("streams keep their order, events mark it, queries tell the truth");
}
