// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copies in every direction, from and to every kind of memory, at odd offsets and sizes, with one
 * row and with many. The right bytes must move, and the bytes beside them must stay.
 */
#include "check.h"

#define ROOM (80u << 20)
#define EDGE 64

enum kind { DEVICE, HOST, PINNED, MANAGED, KINDS };
static const char *const kind_name[] = {"device", "host", "pinned", "managed"};
static char *mem[2][KINDS];
static char *plain, *expect;

static bool on_device(enum kind k)
{
	return k == DEVICE;
}

/* Copies directly where the CPU can access the memory. */
static void put(enum kind k, char *to, const char *from, size_t len)
{
	if (on_device(k))
		OK(cudaMemcpy(to, from, len, cudaMemcpyHostToDevice));
	else
		memcpy(to, from, len);
}

static const char *look(enum kind k, const char *from, size_t len)
{
	if (!on_device(k))
		return from;
	OK(cudaMemcpy(plain, from, len, cudaMemcpyDeviceToHost));
	return plain;
}

static enum cudaMemcpyKind direction(enum kind dst, enum kind src)
{
	if (on_device(src))
		return on_device(dst) ? cudaMemcpyDeviceToDevice : cudaMemcpyDeviceToHost;
	return on_device(dst) ? cudaMemcpyHostToDevice : cudaMemcpyHostToHost;
}

static void one(enum kind dst, enum kind src, size_t dst_off, size_t src_off, size_t len, int how)
{
	static uint32_t seed;
	char *to = mem[0][dst] + EDGE + dst_off, *from = mem[1][src] + EDGE + src_off;
	enum cudaMemcpyKind kind = how & 1 ? cudaMemcpyDefault : direction(dst, src);
	size_t at, all = len + 2 * EDGE;

	fill(expect, all, ++seed);
	put(dst, to - EDGE, expect, all);
	fill(plain, len, ++seed);
	put(src, from, plain, len);
	memcpy(expect + EDGE, plain, len);

	if (how & 2) {
		OK(cudaMemcpyAsync(to, from, len, kind, 0));
		OK(cudaStreamSynchronize(0));
	} else {
		OK(cudaMemcpy(to, from, len, kind));
		if (dst == MANAGED || src == MANAGED)
			OK(cudaDeviceSynchronize());
	}
	at = differs(look(dst, to - EDGE, all), expect, all);
	REQUIRE(at == all, "%s+%zu <- %s+%zu, %zu bytes, how %d: byte %zd is wrong", kind_name[dst],
		dst_off, kind_name[src], src_off, len, how, (ssize_t)at - EDGE);
}

static void all_kinds(size_t dst_off, size_t src_off, size_t len)
{
	int dst, src, how;

	for (dst = 0; dst < KINDS; dst++)
		for (src = 0; src < KINDS; src++)
			for (how = 0; how < 4; how++)
				one(dst, src, dst_off, src_off, len, how);
}

static void rows(enum kind dst, enum kind src, size_t width, size_t height, size_t dpitch,
		 size_t spitch)
{
	static uint32_t seed = 1000;
	size_t all = dpitch * height, y, at;

	fill(expect, all, ++seed);
	put(dst, mem[0][dst], expect, all);
	fill(plain, spitch * height, ++seed);
	put(src, mem[1][src], plain, spitch * height);
	for (y = 0; y < height; y++)
		memcpy(expect + y * dpitch, plain + y * spitch, width);
	OK(cudaMemcpy2D(mem[0][dst], dpitch, mem[1][src], spitch, width, height,
			direction(dst, src)));
	OK(cudaDeviceSynchronize());
	at = differs(look(dst, mem[0][dst], all), expect, all);
	REQUIRE(at == all, "%s <- %s, %zu x %zu, pitches %zu and %zu: byte %zu is wrong",
		kind_name[dst], kind_name[src], width, height, dpitch, spitch, at);
}

static void boxes(void)
{
	struct cudaExtent extent = {20, 5, 3};
	struct cudaPitchedPtr p;
	struct cudaMemcpy3DParms up = {.kind = cudaMemcpyHostToDevice}, down = {0};
	char from[20 * 5 * 3], to[20 * 5 * 3];

	OK(cudaMalloc3D(&p, extent));
	OK(cudaMemset3D(p, 0x5a, extent));
	fill(from, sizeof(from), 77);
	up.srcPtr = (struct cudaPitchedPtr){from, 20, 20, 5};
	up.dstPtr = p;
	up.extent = extent;
	OK(cudaMemcpy3D(&up));
	down.srcPtr = p;
	down.dstPtr = (struct cudaPitchedPtr){to, 20, 20, 5};
	down.extent = extent;
	down.kind = cudaMemcpyDeviceToHost;
	OK(cudaMemcpy3D(&down));
	REQUIRE(differs(from, to, sizeof(to)) == sizeof(to), "a box came back different");
	/* One byte in the middle: slice 1, row 2, column 3. */
	down.srcPos = (struct cudaPos){3, 2, 1};
	down.extent = (struct cudaExtent){1, 1, 1};
	OK(cudaMemcpy3D(&down));
	REQUIRE(to[0] == from[(1 * 5 + 2) * 20 + 3], "the wrong byte of a box");
	OK(cudaFree(p.ptr));
}

static void sets(void)
{
	size_t i;

	OK(cudaMemset(mem[0][DEVICE], 0, 4096));
	OK(cudaMemset(mem[0][DEVICE] + 3, 0x1ab, 1001));
	OK(cudaMemset2D(mem[0][DEVICE] + 2048, 64, 7, 10, 3));
	OK(cudaMemcpy(plain, mem[0][DEVICE], 4096, cudaMemcpyDeviceToHost));
	for (i = 0; i < 4096; i++) {
		size_t x = (i - 2048) % 64;
		char want = 0;

		if (i >= 3 && i < 1004)
			want = (char)0xab;
		if (i >= 2048 && i < 2048 + 3 * 64 && x < 10)
			want = 7;
		REQUIRE(plain[i] == want, "byte %zu is %d, not %d", i, plain[i], want);
	}
	OK(cudaMemset(mem[0][PINNED], 9, 100));
	for (i = 0; i < 100; i++)
		REQUIRE(mem[0][PINNED][i] == 9, "pinned byte %zu", i);
}

int main(void)
{
	static const size_t sizes[] = {1, 3, 63, 4095, 4096, 4097, 100000};
	size_t i;
	int n, k;

	for (n = 0; n < 2; n++) {
		OK(cudaMalloc((void **)&mem[n][DEVICE], ROOM));
		mem[n][HOST] = malloc(ROOM);
		OK(cudaMallocHost((void **)&mem[n][PINNED], ROOM));
		OK(cudaMallocManaged((void **)&mem[n][MANAGED], ROOM, cudaMemAttachGlobal));
	}
	plain = malloc(ROOM);
	expect = malloc(ROOM);
	REQUIRE(mem[0][HOST] && mem[1][HOST] && plain && expect, "out of memory");

	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		all_kinds(0, 0, sizes[i]);
		all_kinds(1, 0, sizes[i]);
		all_kinds(5, 4093, sizes[i]);
	}
	/* A sanitizer sees the same in one of the large copies. */
	for (n = SANITIZED ? 1 : -1; n <= 1; n++)
		all_kinds(7, 9, (4u << 20) + n);
	/* More pages than one command can name, in either direction. */
	for (k = 0; k < KINDS; k++) {
		if (SANITIZED && k != HOST)
			continue;
		one(DEVICE, k, 3, 5, (66u << 20) + 11, 0);
		one(k, DEVICE, 5, 3, (66u << 20) + 11, 2);
	}
	for (n = 0; n < KINDS; n++) {
		for (k = 0; k < KINDS; k++) {
			rows(n, k, 1, 1, 1, 1);
			rows(n, k, 100, 7, 100, 100);
			rows(n, k, 33, 200, 64, 40);
		}
	}
	boxes();
	sets();
	for (n = 0; n < 2; n++) {
		OK(cudaFree(mem[n][DEVICE]));
		free(mem[n][HOST]);
		OK(cudaFreeHost(mem[n][PINNED]));
		OK(cudaFree(mem[n][MANAGED]));
	}
	free(plain);
	free(expect);
	return 0;
}
