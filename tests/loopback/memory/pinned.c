// SPDX-License-Identifier: LGPL-2.1-or-later
/* Pinned memory: where it is, what attributes it has, and that freed addresses come back zeroed. */
#include "tests/loopback/check.h"
#include "include/qcucmd.h"

#define MANY 300

static void in_window(const void *p, size_t len)
{
	uint64_t at = (uint64_t)(uintptr_t)p;

	REQUIRE(at >= QCU_WINDOW_BASE && at - QCU_WINDOW_BASE <= QCU_WINDOW_SIZE - len,
		"%p is not in the window", p);
}

static void flags_and_pointers(void)
{
	struct cudaPointerAttributes attr;
	unsigned int want, got;
	char *p;
	void *d;

	for (want = 0; want < 8; want++) {
		OK(cudaHostAlloc((void **)&p, 5000, want));
		in_window(p, 5000);
		OK(cudaHostGetFlags(&got, p + 4999));
		REQUIRE(got == ((want & cudaHostAllocWriteCombined) | cudaHostAllocMapped),
			"flags %u for %u", got, want);
		OK(cudaHostGetDevicePointer(&d, p + 100, 0));
		REQUIRE(d == p + 100, "%p is not %p", d, (void *)(p + 100));
		OK(cudaPointerGetAttributes(&attr, p + 100));
		REQUIRE(attr.type == cudaMemoryTypeHost && attr.devicePointer == p + 100 &&
				attr.hostPointer == p + 100,
			"type %d", attr.type);
		OK(cudaFreeHost(p));
		REFUSED(cudaHostGetFlags(&got, p), cudaErrorInvalidValue);
	}
	OK(cudaMallocManaged((void **)&p, 100, cudaMemAttachGlobal));
	in_window(p, 100);
	OK(cudaPointerGetAttributes(&attr, p));
	REQUIRE(attr.type == cudaMemoryTypeManaged, "type %d", attr.type);
	OK(cudaFree(p));
	OK(cudaMalloc((void **)&p, 100));
	OK(cudaPointerGetAttributes(&attr, p + 99));
	REQUIRE(attr.type == cudaMemoryTypeDevice && !attr.hostPointer, "type %d", attr.type);
	OK(cudaFree(p));
	OK(cudaPointerGetAttributes(&attr, p));
	REQUIRE(attr.type == cudaMemoryTypeUnregistered, "type %d", attr.type);
}

static void many_at_once(void)
{
	static char *p[MANY];
	static size_t len[MANY];
	uint32_t x = 3;
	char *dev;
	int i, j;

	OK(cudaMalloc((void **)&dev, 1 << 20));
	for (i = 0; i < 2 * MANY; i++) {
		x = x * 1664525 + 1013904223;
		j = (int)((x >> 8) % MANY);
		if (p[j]) {
			OK(cudaFreeHost(p[j]));
			p[j] = NULL;
			continue;
		}
		len[j] = 1 + (x >> 12) % (1 << 20);
		OK(cudaMallocHost((void **)&p[j], len[j]));
		REQUIRE(!p[j][0] && !p[j][len[j] - 1], "new memory is not zero");
		fill(p[j], len[j], (uint32_t)j);
		OK(cudaMemcpyAsync(dev, p[j], len[j], cudaMemcpyHostToDevice, 0));
	}
	for (i = 0; i < MANY; i++) {
		static char want[1 << 20];

		if (!p[i])
			continue;
		fill(want, len[i], (uint32_t)i);
		REQUIRE(differs(p[i], want, len[i]) == len[i], "block %d has changed", i);
		OK(cudaFreeHost(p[i]));
	}
	OK(cudaFree(dev));
}

/* When the memory of a copy in flight is freed, the copy is done, or still reads the old pages. */
static void freed_in_flight(void)
{
	enum { LEN = 8 << 20 };
	char *src, *dev, *back = malloc(LEN), *want = malloc(LEN);
	cudaStream_t stream;
	int i;

	REQUIRE(back && want, "out of memory");
	OK(cudaStreamCreate(&stream));
	OK(cudaMalloc((void **)&dev, LEN));
	for (i = 0; i < ROUNDS(20); i++) {
		OK(cudaMallocHost((void **)&src, LEN));
		fill(src, LEN, (uint32_t)i);
		memcpy(want, src, LEN);
		OK(cudaMemcpyAsync(dev, src, LEN, cudaMemcpyHostToDevice, stream));
		OK(cudaFreeHost(src));
		OK(cudaStreamSynchronize(stream));
		OK(cudaMemcpy(back, dev, LEN, cudaMemcpyDeviceToHost));
		REQUIRE(differs(back, want, LEN) == LEN, "round %d: the copy is wrong", i);
	}
	OK(cudaFree(dev));
	OK(cudaStreamDestroy(stream));
	free(back);
	free(want);
}

/* The source is pageable, so the program may overwrite it as soon as the call returns. */
static void pageable_is_read_at_once(void)
{
	enum { LEN = 40000 };
	char *src = malloc(LEN), *dev, *back = malloc(LEN), *want = malloc(LEN);
	int i;

	REQUIRE(src && back && want, "out of memory");
	OK(cudaMalloc((void **)&dev, LEN));
	for (i = 0; i < ROUNDS(200); i++) {
		fill(src, LEN, (uint32_t)i);
		memcpy(want, src, LEN);
		OK(cudaMemcpyAsync(dev, src, LEN, cudaMemcpyHostToDevice, 0));
		memset(src, 0xee, LEN);
		OK(cudaMemcpy(back, dev, LEN, cudaMemcpyDeviceToHost));
		REQUIRE(differs(back, want, LEN) == LEN, "round %d: new bytes got through", i);
	}
	OK(cudaFree(dev));
	free(src);
	free(back);
	free(want);
}

int main(void)
{
	flags_and_pointers();
	many_at_once();
	freed_in_flight();
	pageable_is_read_at_once();
	return 0;
}
