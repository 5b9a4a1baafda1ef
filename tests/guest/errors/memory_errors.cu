// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Wrong pointers, directions and sizes get CUDA's own error codes at the call. After each, the
 * device works as before.
 */
#include <sys/mman.h>

#include "check.h"

#define BYTES ((size_t)4 << 20)

static char *dev, *host, *back;

static void still_works(void)
{
	static uint32_t seed = 1;
	size_t at;

	(void)cudaGetLastError();
	fill_words(host, 4096, ++seed);
	CHECK(cudaMemcpy(dev, host, 4096, cudaMemcpyHostToDevice));
	CHECK(cudaMemcpy(back, dev, 4096, cudaMemcpyDeviceToHost));
	at = first_difference(host, back, 4096);
	REQUIRE(at == 4096, "byte %zu", at);
	CHECK(cudaGetLastError());
}

#define REFUSED(call, code)         \
	do {                        \
		EXPECT(call, code); \
		still_works();      \
	} while (0)

static void allocation(void)
{
	void *p = (void *)1;

	REFUSED(cudaMalloc((void **)NULL, 16), cudaErrorInvalidValue);
	CHECK(cudaMalloc(&p, 0));
	REQUIRE(!p, "%p", p);
	REFUSED(cudaMalloc(&p, (size_t)1 << 50), cudaErrorMemoryAllocation);
	REFUSED(cudaMallocHost((void **)NULL, 16), cudaErrorInvalidValue);

	CHECK(cudaFree(NULL));
	CHECK(cudaFreeHost(NULL));
	REFUSED(cudaFree(host), cudaErrorInvalidValue);
	REFUSED(cudaFree(dev + 256), cudaErrorInvalidValue);
	CHECK(cudaMalloc(&p, 1 << 20));
	CHECK(cudaFree(p));
	REFUSED(cudaFree(p), cudaErrorInvalidValue);

	REFUSED(cudaFreeHost(host), cudaErrorInvalidValue);
	CHECK(cudaMallocHost(&p, 1 << 20));
	REFUSED(cudaFree(p), cudaErrorInvalidValue);
	CHECK(cudaFreeHost(p));
	REFUSED(cudaFreeHost(p), cudaErrorInvalidValue);
}

static void copies(void)
{
	const cudaMemcpyKind up = cudaMemcpyHostToDevice, down = cudaMemcpyDeviceToHost;
	void *read_only = mmap(NULL, 8192, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	REQUIRE(read_only != MAP_FAILED, "mmap");
	REFUSED(cudaMemcpy(dev, host, 16, (cudaMemcpyKind)99), cudaErrorInvalidMemcpyDirection);
	REFUSED(cudaMemcpy(NULL, host, 16, up), cudaErrorInvalidValue);
	REFUSED(cudaMemcpy(dev, NULL, 16, up), cudaErrorInvalidValue);
	REFUSED(cudaMemcpy(NULL, dev, 16, down), cudaErrorInvalidValue);
	REFUSED(cudaMemcpy(host, NULL, 16, down), cudaErrorInvalidValue);
	REFUSED(cudaMemcpy(host, back, 16, up), cudaErrorInvalidValue);
	REFUSED(cudaMemcpy(host, back, 16, down), cudaErrorInvalidValue);
	REFUSED(cudaMemcpy(host, back, 16, cudaMemcpyDeviceToDevice), cudaErrorInvalidValue);
	REFUSED(cudaMemcpy(dev, host, 2 * BYTES, up), cudaErrorInvalidValue);
	REFUSED(cudaMemcpy(host, dev, 2 * BYTES, down), cudaErrorInvalidValue);
	REFUSED(cudaMemcpy(dev + BYTES - 8, dev, 4 * BYTES, cudaMemcpyDeviceToDevice),
		cudaErrorInvalidValue);
	REFUSED(cudaMemcpyAsync(dev, host, 16, (cudaMemcpyKind)-1, 0),
		cudaErrorInvalidMemcpyDirection);
	REFUSED(cudaMemset(host, 0, 16), cudaErrorInvalidValue);
	CHECK(cudaMemcpy(dev, host, 0, up));
	/* An upload from read-only memory is allowed. */
	CHECK(cudaMemcpy(dev, read_only, 8192, up));
	still_works();
	munmap(read_only, 8192);
}

static void handles(void)
{
	cudaEvent_t event;
	float ms;

	REFUSED(cudaStreamDestroy(NULL), cudaErrorInvalidResourceHandle);
	REFUSED(cudaEventDestroy(NULL), cudaErrorInvalidResourceHandle);
	REFUSED(cudaEventRecord(NULL), cudaErrorInvalidResourceHandle);
	REFUSED(cudaEventSynchronize(NULL), cudaErrorInvalidResourceHandle);
	REFUSED(cudaStreamCreate(NULL), cudaErrorInvalidValue);
	REFUSED(cudaEventCreate(NULL), cudaErrorInvalidValue);
	CHECK(cudaEventCreate(&event));
	REFUSED(cudaEventElapsedTime(NULL, event, event), cudaErrorInvalidValue);
	REFUSED(cudaEventElapsedTime(&ms, event, NULL), cudaErrorInvalidResourceHandle);
	CHECK(cudaEventDestroy(event));
}

static void in_words(void)
{
	REQUIRE(!strcmp(cudaGetErrorString(cudaSuccess), "no error"), "%s",
		cudaGetErrorString(cudaSuccess));
	REQUIRE(!strcmp(cudaGetErrorString(cudaErrorInvalidValue), "invalid argument"), "%s",
		cudaGetErrorString(cudaErrorInvalidValue));
	REQUIRE(!strcmp(cudaGetErrorString(cudaErrorMemoryAllocation), "out of memory"), "%s",
		cudaGetErrorString(cudaErrorMemoryAllocation));
}

int main(void)
{
	host = (char *)malloc(2 * BYTES);
	back = (char *)malloc(2 * BYTES);
	REQUIRE(host && back, "out of memory");
	CHECK(cudaMalloc(&dev, BYTES));
	still_works();
	allocation();
	copies();
	handles();
	in_words();
	CHECK(cudaFree(dev));
	free(host);
	free(back);
	return verified("every wrong call got CUDA's own error and left the device working");
}
