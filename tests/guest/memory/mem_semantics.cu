// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * When a buffer may be used again.
 *
 * - Pageable memory: as soon as the call returns. Tested ten thousand times with a busy stream,
 *   so that a late copy would be seen.
 * - Pinned memory: the call returns while a kernel in front of the copy still runs, and the copy
 *   takes the bytes that are there when it runs.
 * - Memory that is freed while a copy of it is queued: the copy is right all the same.
 */
#include "check.h"

#define COPIES 10000
#define PART   12288 /* bytes of the device for each */
#define BATCH  500

__global__ void until(volatile uint32_t *flag)
{
	while (!*flag)
		;
}

/* Some milliseconds of work, whose result depends on all of it. */
__global__ void busy(uint32_t *word, int rounds)
{
	uint32_t x = *word;

	for (int i = 0; i < rounds; i++)
		x = x * 1664525 + 1013904223 + i;
	*word = x;
}

static unsigned char in_static[PART + 64];

static void pageable(cudaStream_t stream)
{
	static unsigned char got[BATCH * PART], want[PART];
	unsigned char on_stack[PART + 64], *on_heap = (unsigned char *)malloc(PART + 64), *dev;
	unsigned char *const source[] = {on_stack, on_heap, in_static};
	uint32_t *scratch;

	REQUIRE(on_heap, "out of memory");
	CHECK(cudaMalloc(&dev, sizeof(got)));
	CHECK(cudaMalloc(&scratch, 4));
	for (int i = 0; i < COPIES; i++) {
		unsigned char *p = source[i % 3] + i % 61;
		size_t len = 1 + scramble(i, 1) % PART;

		if (i % 100 == 0) {
			busy<<<1, 1, 0, stream>>>(scratch, 20000);
			CHECK_LAUNCH();
		}
		memset(p, i % 255, len);
		CHECK(cudaMemcpyAsync(dev + i % BATCH * PART, p, len, cudaMemcpyHostToDevice,
				      stream));
		memset(p, 0xff, len);
		if (i % BATCH != BATCH - 1)
			continue;
		CHECK(cudaStreamSynchronize(stream));
		CHECK(cudaMemcpy(got, dev, sizeof(got), cudaMemcpyDeviceToHost));
		for (int k = i - BATCH + 1; k <= i; k++) {
			len = 1 + scramble(k, 1) % PART;
			memset(want, k % 255, len);
			REQUIRE(first_difference(got + k % BATCH * PART, want, len) == len,
				"copy %d of %zu bytes: the device saw what came later", k, len);
		}
	}
	CHECK(cudaFree(dev));
	CHECK(cudaFree(scratch));
	free(on_heap);
}

/* If one of these calls waited for its copy, it would never return. */
static void pinned(cudaStream_t stream)
{
	const size_t bytes = (8 << 20) + 3;
	unsigned char *up, *down, *want = (unsigned char *)malloc(bytes), *dev;
	uint32_t *flag;

	REQUIRE(want, "out of memory");
	CHECK(cudaMalloc(&dev, bytes));
	CHECK(cudaMallocHost(&up, bytes));
	CHECK(cudaMallocHost(&down, bytes));
	CHECK(cudaMallocHost(&flag, 4));
	/* The first use of the memory may wait for its setup. */
	fill_words(up, bytes, 1);
	CHECK(cudaMemcpy(dev, up, bytes, cudaMemcpyHostToDevice));
	memset(down, 0, bytes);
	CHECK(cudaMemcpy(down, dev, bytes, cudaMemcpyDeviceToHost));
	for (uint32_t round = 2; round < 5; round++) {
		*flag = 0;
		until<<<1, 1, 0, stream>>>(flag);
		CHECK_LAUNCH();
		CHECK(cudaMemcpyAsync(dev + 1, up + 1, bytes - 1, cudaMemcpyHostToDevice, stream));
		CHECK(cudaMemcpyAsync(down + 2, dev + 2, bytes - 2, cudaMemcpyDeviceToHost,
				      stream));
		EXPECT(cudaStreamQuery(stream), cudaErrorNotReady);
		fill_words(up, bytes, round);
		fill_words(want, bytes, round);
		*(volatile uint32_t *)flag = 1;
		CHECK(cudaStreamSynchronize(stream));
		REQUIRE(first_difference(down + 2, want + 2, bytes - 2) == bytes - 2,
			"round %u: not what was there when the copy ran", round);
	}
	CHECK(cudaFreeHost(up));
	CHECK(cudaFreeHost(down));
	CHECK(cudaFreeHost(flag));
	CHECK(cudaFree(dev));
	free(want);
}

static void freed_early(cudaStream_t stream)
{
	const size_t bytes = 4 << 20, more = 32 << 20;
	unsigned char *src, *want = (unsigned char *)malloc(bytes), *dev, *other;
	uint32_t *scratch;

	CHECK(cudaMalloc(&dev, bytes));
	CHECK(cudaMalloc(&scratch, 4));
	for (uint32_t round = 0; round < 3; round++) {
		CHECK(cudaMallocHost(&src, bytes));
		fill_words(src, bytes, round);
		fill_words(want, bytes, round);
		busy<<<1, 1, 0, stream>>>(scratch, 1000000);
		CHECK_LAUNCH();
		CHECK(cudaMemcpyAsync(dev, src, bytes, cudaMemcpyHostToDevice, stream));
		CHECK(cudaFreeHost(src));
		other = (unsigned char *)malloc(more);
		REQUIRE(other && want, "out of memory");
		memset(other, 0xbd, more);
		CHECK(cudaStreamSynchronize(stream));
		CHECK(cudaMemcpy(other, dev, bytes, cudaMemcpyDeviceToHost));
		REQUIRE(first_difference(other, want, bytes) == bytes,
			"round %u: the copy took what came later", round);
		free(other);
	}
	CHECK(cudaFree(dev));
	CHECK(cudaFree(scratch));
	free(want);
}

int main(void)
{
	cudaStream_t stream;

	CHECK(cudaStreamCreate(&stream));
	pageable(stream);
	pinned(stream);
	freed_early(stream);
	CHECK(cudaStreamDestroy(stream));
	return verified("%d sources overwritten at once, pinned calls back before their copies",
			COPIES);
}
