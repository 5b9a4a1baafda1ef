// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Rows with gaps, and boxes of such rows. Copies between every two kinds of memory move the rows
 * and leave the gaps unchanged, and so do memsets, whether the rows are few or many, short or
 * long.
 */
#include <sys/mman.h>

#include "check.h"

#define ROOM ((size_t)6 << 20)

enum kind { HEAP, STATIC, MAPPED, PINNED, DEVICE, KINDS };
static const char *const names[KINDS] = {"heap", "static", "mapped", "pinned", "device"};

static unsigned char fixed[2][ROOM];
static unsigned char *memory[KINDS][2], *before, *after, *want;
static size_t room; /* how much of each memory is filled, copied and compared */

#define BEHIND (64 << 10) /* bytes behind a copy that it must not change, at least */
#define SEEDS  6

/* Each pattern is computed once: this takes longer than the copies. */
static void fill(unsigned char *p, uint32_t seed)
{
	static unsigned char *pattern[SEEDS];

	if (!pattern[seed]) {
		pattern[seed] = (unsigned char *)malloc(ROOM);
		REQUIRE(pattern[seed], "out of memory");
		fill_words(pattern[seed], ROOM, seed);
	}
	before = pattern[seed];
	CHECK(cudaMemcpy(p, before, room, cudaMemcpyDefault));
}

static cudaMemcpyKind direction(int dst, int src)
{
	if (dst == DEVICE)
		return src == DEVICE ? cudaMemcpyDeviceToDevice : cudaMemcpyHostToDevice;
	return src == DEVICE ? cudaMemcpyDeviceToHost : cudaMemcpyHostToHost;
}

static void one(int dst, int src, size_t dpitch, size_t spitch, size_t width, size_t height,
		cudaStream_t stream, bool by_address)
{
	const size_t doff = 64, soff = 192;
	cudaMemcpyKind kind = by_address ? cudaMemcpyDefault : direction(dst, src);
	unsigned char *to = memory[dst][1], *from = memory[src][0];
	size_t at;

	room = soff + (dpitch > spitch ? dpitch : spitch) * height + BEHIND;
	REQUIRE(room <= ROOM, "%zu bytes", room);
	fill(from, 1);
	memcpy(after, before, room);
	fill(to, 2);
	memcpy(want, before, room);
	for (size_t y = 0; y < height; y++)
		memcpy(want + doff + y * dpitch, after + soff + y * spitch, width);
	if (stream) {
		CHECK(cudaMemcpy2DAsync(to + doff, dpitch, from + soff, spitch, width, height, kind,
					stream));
		CHECK(cudaStreamSynchronize(stream));
	} else {
		CHECK(cudaMemcpy2D(to + doff, dpitch, from + soff, spitch, width, height, kind));
	}
	CHECK(cudaMemcpy(after, to, room, cudaMemcpyDefault));
	at = first_difference(after, want, room);
	REQUIRE(at == room, "%s to %s, %zu rows of %zu, pitches %zu and %zu: byte %zu", names[src],
		names[dst], height, width, spitch, dpitch, at);
}

static void boxes(cudaStream_t stream)
{
	/* 7 rows per slice on one side, 9 on the other: slices have gaps, too. */
	const size_t w = 300, h = 7, d = 5;
	cudaMemcpy3DParms p = {};
	size_t at;

	room = (d + 2) * (h + 2) * 512 + BEHIND;
	for (int src = 0; src < KINDS; src++)
		for (int dst = 0; dst < KINDS; dst++)
			for (size_t gap = 0; gap < 3; gap += 2) {
				fill(memory[src][0], 3);
				memcpy(after, before, room);
				fill(memory[dst][1], 4);
				memcpy(want, before, room);
				for (size_t z = 0; z < d; z++)
					for (size_t y = 0; y < h; y++)
						memcpy(want + ((z + 1) * (h + gap) + y) * 512 + 16,
						       after + ((z + 2) * h + y) * 320 + 4, w);
				p.srcPtr = make_cudaPitchedPtr(memory[src][0], 320, 320, h);
				p.srcPos = make_cudaPos(4, 0, 2);
				p.dstPtr = make_cudaPitchedPtr(memory[dst][1], 512, 512, h + gap);
				p.dstPos = make_cudaPos(16, 0, 1);
				p.extent = make_cudaExtent(w, h, d);
				p.kind = direction(dst, src);
				CHECK(cudaMemcpy3DAsync(&p, stream));
				CHECK(cudaStreamSynchronize(stream));
				CHECK(cudaMemcpy(after, memory[dst][1], room, cudaMemcpyDefault));
				at = first_difference(after, want, room);
				REQUIRE(at == room, "boxes, %s to %s: byte %zu", names[src], names[dst],
					at);
			}
}

static void memsets(void)
{
	cudaPitchedPtr box;
	size_t at;

	room = ROOM;
	for (size_t gap = 0; gap < 4; gap += 3) {
		fill(memory[DEVICE][0], 5);
		memcpy(want, before, ROOM);
		box = make_cudaPitchedPtr(memory[DEVICE][0], 256, 256, 10 + gap);
		CHECK(cudaMemset3D(box, 0x5a, make_cudaExtent(99, 10, 6)));
		CHECK(cudaMemset2D(memory[DEVICE][0] + (1 << 20), 200, 0xa5, 100, 50));
		for (size_t z = 0; z < 6; z++)
			for (size_t y = 0; y < 10; y++)
				memset(want + (z * (10 + gap) + y) * 256, 0x5a, 99);
		for (size_t y = 0; y < 50; y++)
			memset(want + (1 << 20) + y * 200, 0xa5, 100);
		CHECK(cudaMemcpy(after, memory[DEVICE][0], ROOM, cudaMemcpyDefault));
		at = first_difference(after, want, ROOM);
		REQUIRE(at == ROOM, "memset, byte %zu", at);
	}
}

static void refused(void)
{
	unsigned char *dev = memory[DEVICE][0], *host = memory[HEAP][0];

	EXPECT(cudaMemcpy2D(dev, 99, host, 128, 100, 2, cudaMemcpyHostToDevice),
	       cudaErrorInvalidPitchValue);
	EXPECT(cudaMemcpy2D(dev, 128, host, 99, 100, 2, cudaMemcpyHostToDevice),
	       cudaErrorInvalidPitchValue);
	EXPECT(cudaMemcpy2D(NULL, 128, host, 128, 100, 2, cudaMemcpyHostToDevice),
	       cudaErrorInvalidValue);
	EXPECT(cudaMemcpy2D(dev, 1 << 20, host, 128, 100, 7, cudaMemcpyHostToDevice),
	       cudaErrorInvalidValue);
	EXPECT(cudaMemcpy2D(dev, 128, host, 128, 100, 2, (cudaMemcpyKind)9),
	       cudaErrorInvalidMemcpyDirection);
	CHECK(cudaMemcpy2D(dev, 128, host, 128, 0, 2, cudaMemcpyHostToDevice));
	CHECK(cudaMemcpy2D(dev, 128, host, 128, 100, 0, cudaMemcpyHostToDevice));
	(void)cudaGetLastError();
}

int main(void)
{
	static const struct {
		size_t dpitch, spitch, width, height;
	} shapes[] = {
		{64, 64, 64, 1},	 {70, 90, 64, 5},	{512, 400, 400, 1000},
		{5000, 4100, 4096, 600}, {100003, 100101, 99991, 50}, {128, 256, 1, 9000},
	};
	cudaStream_t stream;

	for (int i = 0; i < 2; i++) {
		memory[STATIC][i] = fixed[i];
		memory[HEAP][i] = (unsigned char *)malloc(ROOM);
		memory[MAPPED][i] = (unsigned char *)mmap(NULL, ROOM, PROT_READ | PROT_WRITE,
							  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		REQUIRE(memory[HEAP][i] && memory[MAPPED][i] != MAP_FAILED, "out of memory");
		CHECK(cudaMallocHost(&memory[PINNED][i], ROOM));
		CHECK(cudaMalloc(&memory[DEVICE][i], ROOM));
	}
	after = (unsigned char *)malloc(ROOM);
	want = (unsigned char *)malloc(ROOM);
	REQUIRE(after && want, "out of memory");
	CHECK(cudaStreamCreate(&stream));
	for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++)
		for (int kind = 0; kind < KINDS; kind++) {
			const size_t d = shapes[i].dpitch, s = shapes[i].spitch;
			const size_t w = shapes[i].width, h = shapes[i].height;

			one(DEVICE, kind, d, s, w, h, NULL, false);
			one(kind, DEVICE, d, s, w, h, stream, i & 1);
		}
	one(PINNED, HEAP, 128, 256, 100, 50, NULL, false);
	boxes(stream);
	memsets();
	refused();
	CHECK(cudaStreamDestroy(stream));
	for (int i = 0; i < 2; i++) {
		CHECK(cudaFreeHost(memory[PINNED][i]));
		CHECK(cudaFree(memory[DEVICE][i]));
		munmap(memory[MAPPED][i], ROOM);
	}
	return verified("rows of %zu shapes between %d kinds of memory, and boxes between all",
			sizeof(shapes) / sizeof(shapes[0]), KINDS);
}
