// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The library answers questions about constant properties without a command to the mirror, at
 * the latest from the second time on. The program runs itself with QCU_TRACE and counts the
 * commands between its marks.
 */
#include <pthread.h>

#include "commands.h"

__global__ void kernel(int *p)
{
	extern __shared__ int shared[];

	shared[threadIdx.x] = threadIdx.x;
	__syncthreads();
	*p = shared[0];
}

static long ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000L + t.tv_nsec / 1000000;
}

static long since;

/*
 * The same for calls that ask again when the mirror has been silent for 100 ms. The section ends
 * with ends_soon(): if it took so long, its count is not checked.
 */
static void mark_soon(const char *name, unsigned int want)
{
	since = ms();
	mark(name, want);
}

static void ends_soon(void)
{
	if (ms() - since > 50)
		uncounted();
}

/* ---- waits with nothing outstanding ---- */

static void wait_for_all(cudaStream_t stream, cudaEvent_t event)
{
	int i;

	for (i = 0; i < 50; i++) {
		OK(cudaDeviceSynchronize());
		OK(cudaStreamSynchronize(stream));
		OK(cudaStreamSynchronize(0));
		OK(cudaStreamSynchronize(cudaStreamPerThread));
		OK(cudaEventSynchronize(event));
		OK(cudaStreamQuery(stream));
		OK(cudaStreamQuery(0));
		OK(cudaStreamQuery(cudaStreamPerThread));
		OK(cudaEventQuery(event));
	}
}

static void slowly(void *ended)
{
	usleep(20000);
	__atomic_store_n((int *)ended, 1, __ATOMIC_RELEASE);
}

/* Work of another thread, which has ended: the caller knows of it. */
static void *launch(void *dev)
{
	kernel<<<1, 1, 4, cudaStreamPerThread>>>((int *)dev);
	OK(cudaGetLastError());
	return NULL;
}

static void waits(int *dev)
{
	char host[4] = "abc", *pinned;
	cudaStream_t stream, other;
	cudaEvent_t event, other_event;
	pthread_t thread;
	int ended = 0, i;

	mark("streams and events that wait", 3);
	OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	OK(cudaStreamCreate(&other));
	OK(cudaEventCreate(&event));
	OK(cudaDeviceSynchronize());
	mark_soon("nothing outstanding on the device", 0);
	wait_for_all(stream, event);
	ends_soon();
	mark_soon("a launch, the first record, and a wait of each kind", 9);
	kernel<<<1, 1, 4, stream>>>(dev);
	OK(cudaEventRecord(event, stream));
	OK(cudaEventSynchronize(event));
	OK(cudaStreamSynchronize(stream));
	OK(cudaStreamSynchronize(other));
	OK(cudaStreamSynchronize(0));
	OK(cudaStreamSynchronize(cudaStreamPerThread));
	OK(cudaDeviceSynchronize());
	ends_soon();
	mark_soon("the same waits again", 0);
	wait_for_all(stream, event);
	ends_soon();
	mark_soon("after work in one stream, waits again, but not for an event", 5);
	OK(cudaMemsetAsync(dev, 0, 4, other));
	OK(cudaStreamSynchronize(stream));
	OK(cudaStreamSynchronize(0));
	OK(cudaEventSynchronize(event));
	OK(cudaStreamSynchronize(other));
	OK(cudaStreamSynchronize(stream));
	OK(cudaStreamSynchronize(other));
	OK(cudaDeviceSynchronize());
	OK(cudaStreamSynchronize(0));
	ends_soon();
	mark("bytes that travel with the command", 2);
	OK(cudaMemcpyAsync(dev, host, 4, cudaMemcpyHostToDevice, stream));
	OK(cudaStreamSynchronize(stream));
	mark("a host function", 3);
	OK(cudaLaunchHostFunc(stream, slowly, &ended));
	OK(cudaDeviceSynchronize());
	REQUIRE(__atomic_load_n(&ended, __ATOMIC_ACQUIRE), "did not wait");
	/* The thread of host functions tells that it is done, and then asks for no more. */
	until_sent(3);
	/* The launch, the end of the thread, and two waits: the last is for all that was posted. */
	mark("work of another thread", 4);
	REQUIRE(!pthread_create(&thread, NULL, launch, dev), "no thread");
	pthread_join(thread, NULL);
	OK(cudaStreamSynchronize(stream));
	OK(cudaDeviceSynchronize());
	mark("pinned memory that the GPU has not used since: it is mapped, and registered", 2);
	OK(cudaMallocHost(&pinned, 4096));
	OK(cudaFreeHost(pinned));
	mark_soon("pinned memory that is kept", 0);
	OK(cudaMallocHost(&pinned, 4096));
	OK(cudaFreeHost(pinned));
	ends_soon();
	/* After a silence the library asks whether the mirror still exists. */
	mark("after a silence", 1);
	usleep(150000);
	OK(cudaStreamSynchronize(stream));
	mark("events that come and go", 0);
	for (i = 0; i < 100; i++) {
		OK(cudaEventCreateWithFlags(&other_event, cudaEventDisableTiming));
		OK(cudaEventDestroy(other_event));
	}
	mark("events that come, are used and go", 31);
	for (i = 0; i < 10; i++) {
		OK(cudaEventCreateWithFlags(&other_event, cudaEventDisableTiming));
		OK(cudaEventRecord(other_event, stream));
		OK(cudaStreamWaitEvent(other, other_event, 0));
		OK(cudaEventSynchronize(other_event));
		OK(cudaEventDestroy(other_event));
	}
	mark("the end of streams and events", 3);
	OK(cudaStreamDestroy(stream));
	OK(cudaStreamDestroy(other));
	OK(cudaEventDestroy(event));
	OK(cudaDeviceSynchronize());
}

/* ---- how many blocks fit ---- */

static void occupancy(void)
{
	int blocks, again, best, least, i;
	size_t room, room_again;

	mark("occupancy: each question once", 4);
	OK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, 128, 0));
	OK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&again, kernel, 128, 40000));
	REQUIRE(again < blocks, "%d, %d", again, blocks);
	OK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&again, kernel, 1024, 0));
	REQUIRE(again < blocks, "%d, %d", again, blocks);
	OK(cudaOccupancyAvailableDynamicSMemPerBlock(&room, kernel, 1, 128));
	mark("occupancy: the same again", 0);
	for (i = 0; i < 10; i++) {
		OK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&again, kernel, 128, 0));
		REQUIRE(again == blocks, "%d, not %d", again, blocks);
		OK(cudaOccupancyAvailableDynamicSMemPerBlock(&room_again, kernel, 1, 128));
		REQUIRE(room_again == room, "%zu, not %zu", room_again, room);
	}
	mark("occupancy: what may not be asked", 0);
	EXPECT(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&again, kernel, 0, 0),
	       cudaErrorInvalidValue);
	EXPECT(cudaGetLastError(), cudaErrorInvalidValue);
	mark("occupancy: other flags", 1);
	OK(cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
		&again, kernel, 128, 0, cudaOccupancyDisableCachingOverride));
	mark("occupancy: after a change", 2);
	OK(cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout, 50));
	OK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&again, kernel, 128, 0));
	mark("occupancy: the best size of a block", 0);
	OK(cudaOccupancyMaxPotentialBlockSize(&least, &best, kernel, 0, 0));
	uncounted();
	mark("occupancy: the best size of a block, again", 0);
	OK(cudaOccupancyMaxPotentialBlockSize(&least, &again, kernel, 0, 0));
	REQUIRE(again == best, "%d, not %d", again, best);
}

static int traced(void)
{
	struct cudaFuncAttributes attr;
	struct cudaDeviceProp prop;
	cudaEvent_t event;
	cudaStream_t stream;
	int value, i, *dev;
	size_t size;
	char text[64];

	OK(cudaGetDeviceCount(&value));
	OK(cudaMalloc(&dev, 4));
	OK(cudaGetDeviceProperties(&prop, 0));
	OK(cudaFuncGetAttributes(&attr, kernel));
	OK(cudaDeviceGetLimit(&size, cudaLimitMallocHeapSize));
	OK(cudaDeviceSynchronize());

	mark("what never asks", 0);
	for (i = 0; i < 3; i++) {
		OK(cudaGetDeviceCount(&value));
		OK(cudaGetDevice(&value));
		OK(cudaSetDevice(0));
		OK(cudaGetLastError());
		OK(cudaPeekAtLastError());
		OK(cudaDriverGetVersion(&value));
		OK(cudaRuntimeGetVersion(&value));
		OK(cudaDeviceGetStreamPriorityRange(&value, NULL));
		OK(cudaDeviceGetCacheConfig((enum cudaFuncCache *)&value));
		OK(cudaGetDeviceFlags((unsigned int *)&value));
		EXPECT(cudaSetDevice(1000), cudaErrorInvalidDevice);
		EXPECT(cudaGetLastError(), cudaErrorInvalidDevice);
	}
	mark("cudaDeviceGetAttribute", 0);
	for (i = 1; i < 120; i++)
		(void)cudaDeviceGetAttribute(&value, (enum cudaDeviceAttr)i, 0);
	(void)cudaGetLastError();
	mark("cudaGetDeviceProperties", 0);
	OK(cudaGetDeviceProperties(&prop, 0));
	OK(cudaDeviceGetPCIBusId(text, sizeof(text), 0));
	OK(cudaDeviceGetByPCIBusId(&value, text));
	mark("cudaFuncGetAttributes", 0);
	OK(cudaFuncGetAttributes(&attr, kernel));
	OK(cudaFuncGetAttributes(&attr, kernel));
	mark("a change, and what it makes of the attributes", 2);
	OK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, 1024));
	OK(cudaFuncGetAttributes(&attr, kernel));
	REQUIRE(attr.maxDynamicSharedSizeBytes == 1024, "%d", attr.maxDynamicSharedSizeBytes);
	OK(cudaFuncGetAttributes(&attr, kernel));
	REQUIRE(attr.maxDynamicSharedSizeBytes == 1024, "%d", attr.maxDynamicSharedSizeBytes);
	occupancy();
	mark("cudaDeviceGetLimit", 0);
	OK(cudaDeviceGetLimit(&size, cudaLimitMallocHeapSize));
	mark("a change, and what it makes of the limit", 2);
	OK(cudaDeviceSetLimit(cudaLimitMallocHeapSize, 32 << 20));
	OK(cudaDeviceGetLimit(&size, cudaLimitMallocHeapSize));
	REQUIRE(size == 32 << 20, "%zu", size);
	OK(cudaDeviceGetLimit(&size, cudaLimitMallocHeapSize));
	REQUIRE(size == 32 << 20, "%zu", size);
	mark("a launch that cannot be", 0);
	kernel<<<1, 100000, 4>>>(dev);
	EXPECT(cudaGetLastError(), cudaErrorInvalidValue);
	/*
	 * A posted command is carried out at some later time. The wait makes it end before the
	 * next mark.
	 */
	mark("a launch, and a wait", 2);
	kernel<<<1, 1, 4>>>(dev);
	OK(cudaGetLastError());
	OK(cudaDeviceSynchronize());
	mark("a stream's and an event's life, and a wait", 6);
	OK(cudaStreamCreate(&stream));
	OK(cudaEventCreate(&event));
	OK(cudaEventRecord(event, stream));
	OK(cudaStreamDestroy(stream));
	OK(cudaEventDestroy(event));
	OK(cudaDeviceSynchronize());
	waits(dev);
	mark("end", 0);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc > 1)
		return traced();
	count_commands(argv[0], 32);
	return 0;
}
