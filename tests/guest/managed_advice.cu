// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Managed memory: what the CPU writes a kernel reads and the other way round, whatever has been
 * advised and prefetched; and advice and prefetches can be asked back, for all of a range or a part.
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

int main(void)
{
	cudaMemLocation gpu = {cudaMemLocationTypeDevice, 0}, cpu = {cudaMemLocationTypeHost, 0},
			none = {cudaMemLocationTypeDevice, 1000};
	int *p, *dev, by[3], mostly, concurrent;
	void *data[] = {&mostly, by};
	size_t sizes[] = {sizeof(mostly), sizeof(by)};
	cudaMemRangeAttribute attrs[] = {cudaMemRangeAttributeReadMostly,
					 cudaMemRangeAttributeAccessedBy};
	cudaStream_t stream;

	CHECK(cudaDeviceGetAttribute(&concurrent, cudaDevAttrConcurrentManagedAccess, 0));
	REQUIRE(concurrent, "no concurrent access to managed memory");
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

	/* What is no managed memory, no device, no advice. */
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
