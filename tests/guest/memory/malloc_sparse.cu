// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * An allocation much larger than the memory, of which only three pages are touched, costs three
 * chunks. A program's buffers are chunks although it allocates them before its first CUDA call.
 * If qCUDA's driver is there, its counters must confirm this.
 */
#include <unistd.h>

#include "check.h"

#define GIB ((size_t)1 << 30)

__global__ void unused(void)
{
}

/* Returns the number of chunks in this process's group at p; -1: there is no driver to ask. */
static long chunks_of(const void *p)
{
	FILE *f = fopen("/sys/kernel/debug/qcuda/groups", "r");
	unsigned long start, end, chunks;
	char line[512], blocks[256], flags[64];
	long found = -1, pid;

	if (!f)
		return -1;
	found = 0;
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "%ld %lx %lx %lu %255s %63s", &pid, &start, &end, &chunks, blocks,
			   flags) == 6 &&
		    pid == getpid() && (uintptr_t)p >= start && (uintptr_t)p < end &&
		    !strstr(flags, "closing"))
			found = (long)chunks;
	fclose(f);
	return found;
}

static void expect_chunks(const void *p, long want)
{
	long got = chunks_of(p);

	REQUIRE(got < 0 || got == want, "%ld chunks, not %ld", got, want);
}

int main()
{
	char *p = (char *)malloc(16 * GIB), *dev;

	REQUIRE(p, "malloc(16 GiB)");
	/* p is in no group, or in one without chunks. */
	expect_chunks(p, 0);
	p[0] = 1;
	p[5 * GIB + 12345] = 2;
	p[16 * GIB - 1] = 3;
	expect_chunks(p, 3);

	/* A command needs no more chunks than the bytes that it copies. */
	CHECK(cudaMalloc(&dev, 8192));
	CHECK(cudaMemcpy(dev, p + 5 * GIB + 8192, 8192, cudaMemcpyHostToDevice));
	CHECK(cudaMemcpy(p + 16 * GIB - 8192, dev, 8192, cudaMemcpyDeviceToHost));
	REQUIRE(p[16 * GIB - 8192 + 12345 - 8192] == 2 && !p[16 * GIB - 1], "the copy");
	expect_chunks(p, 3);
	CHECK(cudaFree(dev));
	free(p);
	expect_chunks(p, 0);

	/* calloc touches nothing either. */
	p = (char *)calloc(16, GIB);
	REQUIRE(p && p[9 * GIB] == 0, "calloc");
	expect_chunks(p, 1);
	free(p);
	if (chunks_of(p) < 0)
		fprintf(stderr, "malloc_sparse: there is no driver to ask how many chunks it took\n");
	return verified("of 16 GiB three pages were used");
}
