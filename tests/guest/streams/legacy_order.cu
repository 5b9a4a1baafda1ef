// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Large copies in the legacy default stream come after all work of the other blocking streams, and
 * what these get later comes after the copies.
 */
#include "gate.h"

#define BYTES ((size_t)(40 << 20) + 12)
#define WORDS (BYTES / 4)
#define LAST  (WORDS - 1)

static void expect(uint32_t got, uint32_t wanted, const char *what)
{
	REQUIRE(got == wanted, "%s: %u instead of %u", what, got, wanted);
}

int main(void)
{
	cudaStream_t blocking, other, free_running;
	uint32_t *dev, *result, *host, got;
	cudaEvent_t behind;

	CHECK(cudaMalloc(&dev, BYTES));
	CHECK(cudaMalloc(&result, 8));
	CHECK(cudaMallocHost(&host, BYTES));
	CHECK(cudaStreamCreate(&blocking));
	CHECK(cudaStreamCreate(&other));
	CHECK(cudaStreamCreateWithFlags(&free_running, cudaStreamNonBlocking));
	CHECK(cudaEventCreateWithFlags(&behind, cudaEventDisableTiming));
	make_gate();
	/* Both kernels are loaded before one of them is held up. */
	store_when_opened(result, 1, 0);
	open_gate();
	add_one<<<1, 1>>>(result, result + 1);
	CHECK_LAUNCH();
	CHECK(cudaMemset(dev, 0, BYTES));
	CHECK(cudaDeviceSynchronize());

	/* A copy down comes after the kernel of a blocking stream. */
	memset(host, 0xff, BYTES);
	store_when_opened(dev + LAST, 11, blocking);
	CHECK(cudaMemcpyAsync(host, dev, BYTES, cudaMemcpyDeviceToHost, 0));
	EXPECT(cudaStreamQuery(0), cudaErrorNotReady);
	open_gate();
	CHECK(cudaStreamSynchronize(0));
	expect(host[LAST], 11, "the last word down");
	expect(host[0], 0, "the first word down");

	/* A copy up comes after the legacy stream's kernel, and before other streams' later ones.
	 */
	host[0] = 20;
	host[LAST] = 30;
	store_when_opened(dev + LAST, 12, 0);
	CHECK(cudaMemcpyAsync(dev, host, BYTES, cudaMemcpyHostToDevice, 0));
	add_one<<<1, 1, 0, other>>>(dev + LAST, result);
	add_one<<<1, 1, 0, blocking>>>(dev, result + 1);
	CHECK_LAUNCH();
	EXPECT(cudaStreamQuery(other), cudaErrorNotReady);
	open_gate();
	CHECK(cudaStreamSynchronize(other));
	CHECK(cudaStreamSynchronize(blocking));
	CHECK(cudaMemcpy(&got, result, 4, cudaMemcpyDeviceToHost));
	expect(got, 31, "the last word up");
	CHECK(cudaMemcpy(&got, result + 1, 4, cudaMemcpyDeviceToHost));
	expect(got, 21, "the first word up");

	/* An event behind the copy is what a stream that does not block can wait for. */
	host[LAST] = 40;
	store_when_opened(dev + LAST, 13, blocking);
	CHECK(cudaMemcpyAsync(dev, host, BYTES, cudaMemcpyHostToDevice, 0));
	CHECK(cudaEventRecord(behind, 0));
	CHECK(cudaStreamWaitEvent(free_running, behind, 0));
	add_one<<<1, 1, 0, free_running>>>(dev + LAST, result);
	CHECK_LAUNCH();
	EXPECT(cudaEventQuery(behind), cudaErrorNotReady);
	open_gate();
	CHECK(cudaStreamSynchronize(free_running));
	CHECK(cudaMemcpy(&got, result, 4, cudaMemcpyDeviceToHost));
	expect(got, 41, "the word behind the event");

	CHECK(cudaDeviceReset());
	return verified("large copies keep the legacy stream's order");
}
