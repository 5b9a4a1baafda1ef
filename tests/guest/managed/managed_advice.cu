// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Managed memory: kernels read what the CPU writes, and the CPU reads what kernels write,
 * whatever was advised and prefetched. Advice and prefetches can be queried, for a whole range
 * or a part of it.
 */
#include "check.h"

#define N     (1 << 18)
#define BYTES (N * sizeof(int))

__global__ void triple(int *p, int n)
{
	for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
		p[i] *= 3;
}

static int ask(cudaMemRangeAttribute attr, const void *p, size_t len)
{
	int value = -99;

	CHECK(cudaMemRangeGetAttribute(&value, sizeof(value), attr, p, len));
	return value;
}

/*
 * Prefetches three ranges, the first two to the CPU. Then all are discarded and written again.
 */
static void batches(cudaStream_t stream)
{
	const size_t piece = (size_t)2 << 20;
	cudaMemLocation places[] = {{cudaMemLocationTypeHost, 0}, {cudaMemLocationTypeDevice, 0}};
	size_t sizes[] = {piece, piece, piece}, first[] = {0, 2}, wrong[] = {1, 2};
	void *ranges[3];
	int *p;

	CHECK(cudaMallocManaged(&p, 3 * piece));
	for (int i = 0; i < 3; i++)
		ranges[i] = (char *)p + i * piece;
	for (int i = 0; i < N; i++)
		p[i] = i;
	CHECK(cudaMemPrefetchBatchAsync(ranges, sizes, 3, places, first, 2, 0, stream));
	triple<<<32, 128, 0, stream>>>(p, N);
	CHECK_LAUNCH();
	CHECK(cudaStreamSynchronize(stream));
	for (int i = 0; i < N; i++)
		REQUIRE(p[i] == 3 * i, "element %d is %d", i, p[i]);
	REQUIRE(ask(cudaMemRangeAttributeLastPrefetchLocation, p, 2 * piece) == cudaCpuDeviceId,
		"two ranges went elsewhere");
	REQUIRE(ask(cudaMemRangeAttributeLastPrefetchLocation, ranges[2], piece) == 0,
		"the third range went elsewhere");
	CHECK(cudaMemDiscardBatchAsync(ranges, sizes, 2, 0, stream));
	CHECK(cudaMemDiscardAndPrefetchBatchAsync(&ranges[1], sizes, 2, &places[1], first, 1, 0,
						  stream));
	CHECK(cudaMemsetAsync(p, 1, BYTES, stream));
	triple<<<32, 128, 0, stream>>>(p, N);
	CHECK_LAUNCH();
	CHECK(cudaStreamSynchronize(stream));
	for (int i = 0; i < N; i++)
		REQUIRE(p[i] == 0x03030303, "element %d is %x", i, p[i]);
	REQUIRE(ask(cudaMemRangeAttributeLastPrefetchLocation, ranges[1], 2 * piece) == 0,
		"the last two ranges went elsewhere");
	EXPECT(cudaMemPrefetchBatchAsync(ranges, sizes, 3, places, wrong, 2, 0, stream),
	       cudaErrorInvalidValue);
	EXPECT(cudaMemDiscardBatchAsync(ranges, sizes, 3, 1, stream), cudaErrorInvalidValue);
	(void)cudaGetLastError();
	CHECK(cudaFree(p));
}

int main(void)
{
	cudaMemLocation gpu = {cudaMemLocationTypeDevice, 0}, cpu = {cudaMemLocationTypeHost, 0},
			none = {cudaMemLocationTypeDevice, 1000};
	int *p, *dev, by[3], mostly;
	void *data[] = {&mostly, by};
	size_t sizes[] = {sizeof(mostly), sizeof(by)};
	cudaMemRangeAttribute attrs[] = {cudaMemRangeAttributeReadMostly,
					 cudaMemRangeAttributeAccessedBy};
	cudaStream_t stream;

	CHECK(cudaStreamCreate(&stream));
	CHECK(cudaMallocManaged(&p, BYTES));
	CHECK(cudaMalloc(&dev, BYTES));
	for (int i = 0; i < N; i++)
		p[i] = i;

	REQUIRE(ask(cudaMemRangeAttributeReadMostly, p, BYTES) == 0, "read mostly at first");
	REQUIRE(ask(cudaMemRangeAttributePreferredLocation, p, BYTES) == cudaInvalidDeviceId,
		"a preferred location at first");
	REQUIRE(ask(cudaMemRangeAttributeLastPrefetchLocation, p, BYTES) == cudaInvalidDeviceId,
		"a prefetch at first");
	CHECK(cudaMemAdvise(p, BYTES, cudaMemAdviseSetReadMostly, gpu));
	CHECK(cudaMemAdvise(p, BYTES / 2, cudaMemAdviseSetPreferredLocation, cpu));
	CHECK(cudaMemAdvise(p, BYTES, cudaMemAdviseSetAccessedBy, gpu));
	CHECK(cudaMemPrefetchAsync(p, BYTES, gpu, 0, stream));
	triple<<<32, 128, 0, stream>>>(p, N);
	CHECK_LAUNCH();
	CHECK(cudaMemPrefetchAsync(p, BYTES / 2, cpu, 0, stream));
	CHECK(cudaStreamSynchronize(stream));
	for (int i = 0; i < N; i++)
		REQUIRE(p[i] == 3 * i, "element %d is %d", i, p[i]);

	REQUIRE(ask(cudaMemRangeAttributePreferredLocation, p, BYTES / 2) == cudaCpuDeviceId,
		"the first half prefers %d",
		ask(cudaMemRangeAttributePreferredLocation, p, BYTES / 2));
	REQUIRE(ask(cudaMemRangeAttributePreferredLocation, p, BYTES) == cudaInvalidDeviceId,
		"both halves prefer the same");
	REQUIRE(ask(cudaMemRangeAttributeLastPrefetchLocation, p, BYTES / 2) == cudaCpuDeviceId,
		"the first half went elsewhere");
	REQUIRE(ask(cudaMemRangeAttributeLastPrefetchLocation, p + N / 2, BYTES / 2) == 0,
		"the second half went elsewhere");
	REQUIRE(ask(cudaMemRangeAttributeLastPrefetchLocation, p, BYTES) == cudaInvalidDeviceId,
		"both halves went to the same place");
	CHECK(cudaMemRangeGetAttributes(data, sizes, attrs, 2, p, BYTES));
	REQUIRE(mostly == 1, "not read mostly");
	REQUIRE(by[0] == 0 && by[1] == cudaInvalidDeviceId && by[2] == cudaInvalidDeviceId,
		"accessed by %d, %d, %d", by[0], by[1], by[2]);
	CHECK(cudaMemAdvise(p, 4096, cudaMemAdviseUnsetReadMostly, gpu));
	CHECK(cudaMemAdvise(p, BYTES, cudaMemAdviseUnsetPreferredLocation, gpu));
	CHECK(cudaMemAdvise(p + N / 2, 4096, cudaMemAdviseUnsetAccessedBy, gpu));
	CHECK(cudaMemRangeGetAttributes(data, sizes, attrs, 2, p, BYTES));
	REQUIRE(mostly == 0 && by[0] == cudaInvalidDeviceId, "all of it still: %d, %d", mostly,
		by[0]);
	REQUIRE(ask(cudaMemRangeAttributePreferredLocation, p, BYTES / 2) == cudaInvalidDeviceId,
		"the first half still prefers the CPU");

	CHECK(cudaStreamAttachMemAsync(stream, p, 0, cudaMemAttachGlobal));
	CHECK(cudaStreamSynchronize(stream));
	batches(stream);

	/* Not managed memory, not a device, not valid advice. */
	EXPECT(cudaMemAdvise(dev, BYTES, cudaMemAdviseSetReadMostly, gpu), cudaErrorInvalidValue);
	EXPECT(cudaMemAdvise(p, 0, cudaMemAdviseSetReadMostly, gpu), cudaErrorInvalidValue);
	EXPECT(cudaMemAdvise(p, BYTES, (cudaMemoryAdvise)100, gpu), cudaErrorInvalidValue);
	EXPECT(cudaMemAdvise(p, BYTES, cudaMemAdviseSetPreferredLocation, none),
	       cudaErrorInvalidValue);
	EXPECT(cudaMemPrefetchAsync(p, BYTES, none, 0, stream), cudaErrorInvalidDevice);
	EXPECT(cudaMemPrefetchAsync(p, BYTES, gpu, 1, stream), cudaErrorInvalidValue);
	EXPECT(cudaMemRangeGetAttribute(&mostly, 3, cudaMemRangeAttributeReadMostly, p, BYTES),
	       cudaErrorInvalidValue);
	(void)cudaGetLastError();
	CHECK(cudaFree(p));
	CHECK(cudaFree(dev));
	CHECK(cudaStreamDestroy(stream));
	return verified("%d managed elements, shared and advised on", N);
}
