// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A program has mappings of its own where the library puts chunks. The mappings stay as they
 * are. Memory that both sides use goes between them. If there is no room, the memory is
 * elsewhere, works, and QCU_TRACE reports it.
 */
#include <sys/mman.h>
#include <unistd.h>

#include "check.h"

#define M     ((size_t)1 << 20)
#define CHUNK ((size_t)4 << 20)
#define LEN   (3 * M + 12345)
#define MANY  1000

#define WINDOW_BASE 0x200000000000ull
#define WINDOW_SIZE ((size_t)1 << 40)

static char *const window = (char *)WINDOW_BASE;
static unsigned char *dev;

__global__ void add(unsigned char *p, size_t n, unsigned char what)
{
	size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;

	if (i < n)
		p[i] += what;
}

static bool in_window(const void *p)
{
	return (uintptr_t)p - WINDOW_BASE < WINDOW_SIZE;
}

static void take(char *from, char *to)
{
	void *p = mmap(from, to - from, PROT_NONE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);

	REQUIRE(p == from, "mmap at %p", from);
}

/* Uses pinned memory in every way; d is its address for kernels. */
static void use(unsigned char *p, unsigned char *d)
{
	static unsigned char want[LEN], back[LEN];
	size_t i;

	fill(p, LEN, 1);
	fill(want, LEN, 1);
	add<<<(LEN + 127) / 128, 128>>>(d, LEN, 3);
	OK(cudaGetLastError());
	OK(cudaDeviceSynchronize());
	for (i = 0; i < LEN; i++)
		REQUIRE(p[i] == (unsigned char)(want[i] + 3), "byte %zu after the kernel", i);
	OK(cudaMemcpyAsync(dev, p, LEN, cudaMemcpyHostToDevice, 0));
	OK(cudaMemsetAsync(p, 0x11, LEN, 0));
	OK(cudaMemcpyAsync(p + 1, dev, LEN - 1, cudaMemcpyDeviceToHost, 0));
	OK(cudaMemcpy(back, dev, LEN, cudaMemcpyDefault));
	REQUIRE(p[0] == 0x11 && !memcmp(p + 1, back, LEN - 1), "what has been copied down");
	for (i = 0; i < LEN; i++)
		REQUIRE(back[i] == (unsigned char)(want[i] + 3), "byte %zu on the device", i);
	OK(cudaMemcpy(dev, d, LEN, cudaMemcpyDefault));
}

static void pinned(bool inside)
{
	struct cudaPointerAttributes attr;
	unsigned char *p, *d;

	OK(cudaMallocHost((void **)&p, LEN));
	REQUIRE(in_window(p) == inside, "%p", p);
	OK(cudaHostGetDevicePointer((void **)&d, p, 0));
	REQUIRE(!inside || d == p, "%p is not %p", d, p);
	OK(cudaPointerGetAttributes(&attr, p + 7));
	REQUIRE(attr.type == cudaMemoryTypeHost && attr.hostPointer == p + 7 &&
			attr.devicePointer == d + 7,
		"type %d, %p, %p", attr.type, attr.hostPointer, attr.devicePointer);
	use(p, d);
	OK(cudaFreeHost(p));
	REFUSED(cudaFreeHost(p), cudaErrorInvalidValue);
}

static void managed(bool inside)
{
	unsigned char *p;
	cudaError_t err = cudaMallocManaged((void **)&p, LEN, cudaMemAttachGlobal);

	/* There is no managed memory where the two sides cannot have the same address. */
	if (err == cudaErrorMemoryAllocation && !inside) {
		OK(cudaGetLastError() == err ? cudaSuccess : err);
		return;
	}
	OK(err);
	REQUIRE(in_window(p) == inside, "%p", p);
	use(p, p);
	OK(cudaFree(p));
}

static void pageable(size_t len, bool inside, bool grows)
{
	unsigned char *p = (unsigned char *)malloc(len), *back = (unsigned char *)malloc(len);

	REQUIRE(p && back && in_window(p) == inside, "%p", p);
	fill(p, LEN, 5);
	OK(cudaMemcpy(dev, p, LEN, cudaMemcpyHostToDevice));
	OK(cudaMemcpy(back, dev, LEN, cudaMemcpyDeviceToHost));
	REQUIRE(differs(p, back, LEN) == LEN, "the copy");
	if (grows)
		p = (unsigned char *)realloc(p, 2 * len);
	REQUIRE(p && differs(p, back, LEN) == LEN, "realloc");
	free(p);
	free(back);
}

static int child(void)
{
	static const size_t sizes[] = {CHUNK, M, M / 16, 4096};
	static void *many[MANY];
	int n, s, count = 0;
	char *hole = window + 5000 * CHUNK, *end = window + WINDOW_SIZE;

	/*
	 * First a few mappings are in the way, then only two holes are left, then the whole
	 * window is taken.
	 */
	take(window, window + 4096);
	take(window + 2 * CHUNK + 8192, window + 3 * CHUNK);
	*(volatile char *)mmap(window + 7 * CHUNK, 4096, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) = 42;
	OK(cudaMalloc((void **)&dev, LEN));
	pinned(true);
	managed(true);
	/* A block that grows would get more addresses than the first 100 chunks. */
	pageable(LEN, true, false);
	fprintf(stderr, "now the holes\n");
	take(window + 100 * CHUNK, hole);
	take(hole + 4 * CHUNK, end);
	for (s = 0; s < 4; s++) {
		n = 0;
		do {
			REQUIRE(count < MANY, "%d and more", count);
			OK(cudaMallocHost(&many[count], sizes[s]));
			n += in_window(many[count]);
		} while (in_window(many[count++]));
		/*
		 * 100 chunks, less those taken above, plus 4 behind the program's own mappings.
		 */
		REQUIRE(s || (n > 90 && n < 104), "%d of them are in the window", n);
	}
	pinned(false);
	managed(false);
	/* The allocator has some memory left in the window, but not that much. */
	pageable(40 * M, false, true);
	while (count)
		OK(cudaFreeHost(many[--count]));
	pinned(true);
	pageable(LEN, true, true);
	REQUIRE(window[7 * CHUNK] == 42, "the program's own memory");
	OK(cudaFree(dev));
	return 0;
}

int main(int argc, char **argv)
{
	char command[1200], line[1000];
	bool elsewhere = false, full = false, holes = false;
	FILE *f;

	if (argc > 1)
		return child();
	REQUIRE(readlink("/proc/self/exe", line, sizeof(line) - 1) > 0, "/proc/self/exe");
	line[readlink("/proc/self/exe", line, sizeof(line) - 1)] = 0;
	snprintf(command, sizeof(command), "QCU_TRACE=1 %s child 2>&1", line);
	f = popen(command, "r");
	REQUIRE(f, "popen");
	while (fgets(line, sizeof(line), f)) {
		if (!strncmp(line, "qcuda: ", 7) || strncmp(line, "qcu-device: ", 12))
			fputs(line, stdout);
		holes |= !strcmp(line, "now the holes\n");
		if (strstr(line, "is not in the window, kernels know it as 0x")) {
			REQUIRE(holes, "too early");
			elsewhere = true;
		}
		full |= strstr(line, "the window has no room for") != NULL;
	}
	REQUIRE(pclose(f) == 0, "the child has failed");
	REQUIRE(elsewhere && full, "the trace does not say so");
	return 0;
}
