// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Two devices in one program. Each thread has its own current device. Streams, events and memory
 * belong to the device on which they were made. Copies go from one device to the other in both
 * directions and in order. With one device, the test only checks what the calls return about a
 * second device.
 */
#include <pthread.h>

#include "check.h"

#define THREADS 4
#define N	(64 << 10)
#define LARGE	((4 << 20) + 1)

__global__ void scale(uint32_t *word, int n, uint32_t by)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		word[i] = word[i] * by + 1;
}

/* Takes so long that a reader that does not wait reads too early. */
__global__ void late(uint32_t *word, int n, uint32_t value)
{
	unsigned long long began = 0, now = 0;

	asm volatile("mov.u64 %0, %globaltimer;" : "=l"(began));
	do {
		asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
	} while (now - began < 30000000ull);
	for (int i = threadIdx.x; i < n; i += blockDim.x)
		word[i] = value;
}

static pthread_barrier_t all_here;

static void *worker(void *arg)
{
	int me = (int)(intptr_t)arg, device = -1;
	cudaPointerAttributes at;
	static uint32_t host[THREADS][N];
	cudaStream_t stream;
	uint32_t *dev;

	CHECK(cudaGetDevice(&device));
	REQUIRE(device == 0, "a thread begins on device %d", device);
	CHECK(cudaSetDevice(me % 2));
	pthread_barrier_wait(&all_here);
	CHECK(cudaGetDevice(&device));
	REQUIRE(device == me % 2, "thread %d is on device %d", me, device);

	for (int i = 0; i < N; i++)
		host[me][i] = (uint32_t)(i + me);
	CHECK(cudaStreamCreate(&stream));
	CHECK(cudaMalloc(&dev, N * 4));
	CHECK(cudaPointerGetAttributes(&at, dev));
	REQUIRE(at.device == me % 2, "its memory is on device %d", at.device);
	CHECK(cudaMemcpyAsync(dev, host[me], N * 4, cudaMemcpyHostToDevice, stream));
	for (int round = 0; round < 3; round++) {
		scale<<<N / 256, 256, 0, stream>>>(dev, N, 3);
		CHECK_LAUNCH();
		pthread_barrier_wait(&all_here);
	}
	CHECK(cudaMemcpyAsync(host[me], dev, N * 4, cudaMemcpyDeviceToHost, stream));
	CHECK(cudaStreamSynchronize(stream));
	for (int i = 0; i < N; i++)
		REQUIRE(host[me][i] == (uint32_t)(i + me) * 27 + 13, "thread %d, element %d is %u",
			me, i, host[me][i]);
	CHECK(cudaFree(dev));
	CHECK(cudaStreamDestroy(stream));
	return NULL;
}

static void threads(void)
{
	pthread_t t[THREADS];
	int device;

	CHECK(cudaSetDevice(1));
	REQUIRE(pthread_barrier_init(&all_here, NULL, THREADS) == 0, "no barrier");
	for (int i = 0; i < THREADS; i++)
		REQUIRE(!pthread_create(&t[i], NULL, worker, (void *)(intptr_t)i), "no thread");
	for (int i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	CHECK(cudaGetDevice(&device));
	REQUIRE(device == 1, "the threads have left this one on device %d", device);
}

static void expect_bytes(const uint8_t *dev, const uint8_t *want, size_t len, const char *what)
{
	static uint8_t back[LARGE];

	CHECK(cudaMemcpy(back, dev, len, cudaMemcpyDeviceToHost));
	REQUIRE(!memcmp(back, want, len), "%s, %zu bytes", what, len);
}

static void copies(void)
{
	static const size_t sizes[] = {1, 4095, 64 << 10, LARGE};
	static uint8_t a[LARGE], b[LARGE];
	uint8_t *on0, *on1;

	CHECK(cudaSetDevice(0));
	CHECK(cudaMalloc(&on0, LARGE + 1));
	CHECK(cudaSetDevice(1));
	CHECK(cudaMalloc(&on1, LARGE + 1));
	for (int i = 0; i < LARGE; i++) {
		a[i] = (uint8_t)(i * 7 + i / 251);
		b[i] = (uint8_t)(i * 13 + i / 239 + 5);
	}
	for (size_t len : sizes) {
		CHECK(cudaMemcpy(on0 + 1, a, len, cudaMemcpyHostToDevice));
		CHECK(cudaMemcpyPeer(on1, 1, on0 + 1, 0, len));
		expect_bytes(on1, a, len, "0 to 1");
		CHECK(cudaMemcpy(on1, b, len, cudaMemcpyHostToDevice));
		CHECK(cudaMemcpyPeerAsync(on0 + 1, 0, on1, 1, len, 0));
		CHECK(cudaDeviceSynchronize());
		expect_bytes(on0 + 1, b, len, "1 to 0");
		CHECK(cudaMemcpy(on1, a, len, cudaMemcpyHostToDevice));
		CHECK(cudaMemcpy(on0 + 1, on1, len, cudaMemcpyDefault));
		expect_bytes(on0 + 1, a, len, "by address");
	}
	/* Memory can be freed with any current device. */
	CHECK(cudaFree(on0));
	CHECK(cudaSetDevice(0));
	CHECK(cudaFree(on1));
}

/* A stream of one device waits for an event of the other. */
static void order(void)
{
	cudaStream_t stream0, stream1;
	cudaEvent_t done0, done1;
	uint32_t *on0, *on1;
	static uint32_t host[N];
	float ms;

	CHECK(cudaSetDevice(0));
	CHECK(cudaStreamCreateWithFlags(&stream0, cudaStreamNonBlocking));
	CHECK(cudaEventCreate(&done0));
	CHECK(cudaMalloc(&on0, N * 4));
	CHECK(cudaSetDevice(1));
	CHECK(cudaStreamCreateWithFlags(&stream1, cudaStreamNonBlocking));
	CHECK(cudaEventCreate(&done1));
	CHECK(cudaMalloc(&on1, N * 4));

	CHECK(cudaSetDevice(0));
	late<<<1, 256, 0, stream0>>>(on0, N, 41);
	CHECK_LAUNCH();
	CHECK(cudaEventRecord(done0, stream0));
	CHECK(cudaSetDevice(1));
	CHECK(cudaStreamWaitEvent(stream1, done0, 0));
	CHECK(cudaMemcpyPeerAsync(on1, 1, on0, 0, N * 4, stream1));
	scale<<<N / 256, 256, 0, stream1>>>(on1, N, 1);
	CHECK_LAUNCH();
	CHECK(cudaEventRecord(done1, stream1));
	CHECK(cudaEventSynchronize(done1));
	CHECK(cudaMemcpy(host, on1, sizeof(host), cudaMemcpyDeviceToHost));
	for (int i = 0; i < N; i++)
		REQUIRE(host[i] == 42, "element %d is %u", i, host[i]);

	/*
	 * A kernel runs on its stream's device. An event of another device is not valid there.
	 */
	CHECK(cudaSetDevice(0));
	scale<<<1, 32, 0, stream1>>>(on1, 32, 2);
	CHECK_LAUNCH();
	CHECK(cudaStreamSynchronize(stream1));
	CHECK(cudaMemcpy(host, on1, sizeof(host), cudaMemcpyDefault));
	for (int i = 0; i < N; i++)
		REQUIRE(host[i] == (i < 32 ? 85 : 42), "element %d is %u", i, host[i]);
	EXPECT(cudaEventRecord(done0, stream1), cudaErrorInvalidResourceHandle);
	EXPECT(cudaGetLastError(), cudaErrorInvalidResourceHandle);
	EXPECT(cudaEventElapsedTime(&ms, done0, done1), cudaErrorInvalidResourceHandle);
	EXPECT(cudaGetLastError(), cudaErrorInvalidResourceHandle);

	CHECK(cudaFree(on0));
	CHECK(cudaFree(on1));
	CHECK(cudaEventDestroy(done0));
	CHECK(cudaEventDestroy(done1));
	CHECK(cudaStreamDestroy(stream0));
	CHECK(cudaStreamDestroy(stream1));
}

/* All devices can use pinned memory. A reset of one device destroys nothing of the other. */
static void shared(void)
{
	uint32_t *pinned, *on0, value = 6;

	CHECK(cudaSetDevice(0));
	CHECK(cudaMallocHost(&pinned, N * 4));
	CHECK(cudaMalloc(&on0, 4));
	CHECK(cudaMemcpy(on0, &value, 4, cudaMemcpyHostToDevice));
	for (int i = 0; i < N; i++)
		pinned[i] = (uint32_t)i;
	for (int device = 1; device >= 0; device--) {
		CHECK(cudaSetDevice(device));
		scale<<<N / 256, 256>>>(pinned, N, 2);
		CHECK_LAUNCH();
		CHECK(cudaDeviceSynchronize());
	}
	for (int i = 0; i < N; i++)
		REQUIRE(pinned[i] == (uint32_t)i * 4 + 3, "element %d is %u", i, pinned[i]);
	CHECK(cudaSetDevice(1));
	CHECK(cudaDeviceReset());
	CHECK(cudaSetDevice(0));
	scale<<<1, 1>>>(on0, 1, 7);
	CHECK_LAUNCH();
	CHECK(cudaMemcpy(&value, on0, 4, cudaMemcpyDeviceToHost));
	REQUIRE(value == 43, "%u", value);
	CHECK(cudaFree(on0));
	CHECK(cudaFreeHost(pinned));
}

int main(void)
{
	int count;

	CHECK(cudaGetDeviceCount(&count));
	EXPECT(cudaSetDevice(count), cudaErrorInvalidDevice);
	EXPECT(cudaGetLastError(), cudaErrorInvalidDevice);
	if (count < 2)
		return verified("one device, and no second");
	threads();
	copies();
	order();
	shared();
	return verified("two devices, each thread with its own");
}
