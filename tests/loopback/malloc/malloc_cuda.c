// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Memory of malloc that is in chunks stays pageable memory for CUDA, whichever way it is copied.
 * What a program writes after cudaMemcpyAsync has returned never reaches the device. No attribute
 * says that the memory is pinned. cudaFreeHost refuses it. The first argument says how often memory
 * is overwritten (10,000 times).
 */
#include "tests/loopback/check.h"

#define M      ((size_t)1 << 20)
#define LEN    (256 << 10)
#define WINDOW 0x200000000000ull

static bool in_chunks(const void *p)
{
	return (uintptr_t)p - WINDOW < 1ull << 40;
}

static void unregistered(void)
{
	char *p = malloc(M), *dev;
	struct cudaPointerAttributes attr;
	unsigned int flags;
	void *device;

	REQUIRE(p && in_chunks(p), "%p", p);
	OK(cudaPointerGetAttributes(&attr, p + 100));
	REQUIRE(attr.type == cudaMemoryTypeUnregistered, "type %d", attr.type);
	REFUSED(cudaFreeHost(p), cudaErrorInvalidValue);
	REFUSED(cudaFree(p), cudaErrorInvalidValue);
	REFUSED(cudaHostGetFlags(&flags, p), cudaErrorInvalidValue);
	REFUSED(cudaHostGetDevicePointer(&device, p, 0), cudaErrorInvalidValue);
	OK(cudaMalloc((void **)&dev, M));
	REFUSED(cudaMemcpy(dev, p, M, cudaMemcpyDeviceToDevice), cudaErrorInvalidValue);
	OK(cudaFree(dev));
	free(p);
}

/* The program may change the source as soon as the call returns. */
static void overwritten_at_once(int rounds)
{
	unsigned char *src = malloc(LEN), *back = malloc(LEN);
	cudaStream_t stream;
	unsigned char *dev;
	int i;

	REQUIRE(src && back && in_chunks(src), "%p", src);
	OK(cudaStreamCreate(&stream));
	OK(cudaMalloc((void **)&dev, LEN));
	for (i = 0; i < rounds; i++) {
		src[0] = src[LEN / 2] = src[LEN - 1] = (unsigned char)(i | 1);
		OK(cudaMemcpyAsync(dev, src, LEN, cudaMemcpyHostToDevice, stream));
		src[0] = src[LEN / 2] = src[LEN - 1] = 0;
		OK(cudaMemcpyAsync(back, dev, LEN, cudaMemcpyDeviceToHost, stream));
		/* The bytes of a download are there when the call returns. */
		REQUIRE(back[0] == (unsigned char)(i | 1) && back[LEN / 2] == back[0] &&
				back[LEN - 1] == back[0],
			"round %d: %u %u %u", i, back[0], back[LEN / 2], back[LEN - 1]);
	}
	OK(cudaFree(dev));
	OK(cudaStreamDestroy(stream));
	free(src);
	free(back);
}

/* Sizes and offsets around the borders of pages, chunks and allocations. */
static void content(void)
{
	static const size_t some[] = {1,	 4095,	4097,	   2 * M - 1,
				      4 * M - 1, 4 * M, 4 * M + 1, 70 * M};
	char *src = malloc(80 * M), *back = calloc(80, M), *dev;
	size_t i, offset;

	REQUIRE(src && back, "out of memory");
	OK(cudaMalloc((void **)&dev, 80 * M));
	fill(src, 80 * M, 1);
	for (i = 0; i < sizeof(some) / sizeof(some[0]); i++) {
		for (offset = 0; offset < 4 * M; offset = offset ? offset * 4096 + 1 : 1) {
			size_t len = some[i];

			OK(cudaMemcpy(dev + 3, src + offset, len, cudaMemcpyHostToDevice));
			OK(cudaMemcpy(back + offset + 1, dev + 3, len, cudaMemcpyDefault));
			REQUIRE(differs(src + offset, back + offset + 1, len) == len,
				"%zu bytes from %zu", len, offset);
		}
	}
	OK(cudaFree(dev));
	free(src);
	free(back);
}

/* Memory that the GPU has used is given out again for other data. */
static void reused(void)
{
	char *dev;
	int i;

	OK(cudaMalloc((void **)&dev, 3 * M));
	for (i = 0; i < 3 * 24; i++) { /* each size three times */
		size_t len = (size_t)(i % 24 + 1) * 128 << 10;
		char *p = malloc(len), *z;

		fill(p, len, (uint32_t)i);
		OK(cudaMemcpy(dev, p, len, cudaMemcpyHostToDevice));
		free(p);
		z = calloc(1, len);
		REQUIRE(z && z[0] == 0 && differs(z, z + 1, len - 1) == len - 1, "round %d", i);
		OK(cudaMemcpy(z, dev, len, cudaMemcpyDeviceToHost));
		p = malloc(len);
		fill(p, len, (uint32_t)i);
		REQUIRE(differs(p, z, len) == len, "round %d", i);
		free(p);
		free(z);
	}
	OK(cudaFree(dev));
}

int main(int argc, char **argv)
{
	OK(cudaFree(NULL));
	unregistered();
	overwritten_at_once(argc > 1 ? atoi(argv[1]) : 10000);
	content();
	reused();
	return 0;
}
