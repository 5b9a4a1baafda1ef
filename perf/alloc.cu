// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What it costs to allocate and to free memory, by size: on the GPU, pinned, and with malloc.
 * malloc is measured twice: as the program's malloc (in a guest this is the hook) and as
 * glibc's.
 */
#include "perf/bench.h"

/* glibc's own function, behind any replacement of malloc. */
extern "C" void *__libc_malloc(size_t bytes);
extern "C" void __libc_free(void *p);

typedef void *(*get_fn)(uint64_t bytes);
typedef void (*put_fn)(void *p);

static void *gpu_get(uint64_t bytes)
{
	void *p;

	CHECK(cudaMalloc(&p, bytes));
	return p;
}

static void gpu_put(void *p)
{
	CHECK(cudaFree(p));
}

static void *pinned_get(uint64_t bytes)
{
	void *p;

	CHECK(cudaMallocHost(&p, bytes));
	return p;
}

static void pinned_put(void *p)
{
	CHECK(cudaFreeHost(p));
}

static void *hook_get(uint64_t bytes)
{
	return malloc(bytes);
}

static void hook_put(void *p)
{
	free(p);
}

static void *libc_get(uint64_t bytes)
{
	return __libc_malloc(bytes);
}

static void libc_put(void *p)
{
	__libc_free(p);
}

/* The cost of a page shows only when the page is used. */
static void touch(char *p, uint64_t bytes)
{
	volatile char *v = p;

	for (uint64_t i = 0; i < bytes; i += 4096)
		v[i] = 1;
}

static void one(const char *name, uint64_t bytes, get_fn get, put_fn put, bool on_host)
{
	unsigned int reps = bench.reps < 16 ? bench.reps : 16, i;
	double first[1], got[16], used[16], gone[16], start;
	char row[64];

	snprintf(row, sizeof(row), "%s/", name);
	if (!bench_begins(row))
		return;
	for (i = 0; i <= reps; i++) {
		double *to = i ? &got[i - 1] : first;
		void *p;

		start = bench_now();
		p = get(bytes);
		*to = (bench_now() - start) * 1e6;
		REQUIRE(p, "out of memory");
		start = bench_now();
		if (on_host)
			touch((char *)p, bytes);
		if (i)
			used[i - 1] = (bench_now() - start) * 1e6;
		start = bench_now();
		put(p);
		if (i)
			gone[i - 1] = (bench_now() - start) * 1e6;
	}
	snprintf(row, sizeof(row), "%s/get-first", name);
	bench_row(row, bytes, "us", first, 1, "-");
	snprintf(row, sizeof(row), "%s/get", name);
	bench_row(row, bytes, "us", got, reps, "-");
	if (on_host) {
		snprintf(row, sizeof(row), "%s/touch", name);
		bench_row(row, bytes, "us", used, reps, "-");
	}
	snprintf(row, sizeof(row), "%s/free", name);
	bench_row(row, bytes, "us", gone, reps, "-");
}

int main(int argc, char **argv)
{
	uint64_t bytes;

	bench_begin(argc, argv, "alloc", "What memory costs to get, touch and free, in us.",
		    4 << 10, 1 << 30, NULL);
	bench_needs(bench.max + (64 << 20), bench.max);
	for (bytes = bench.min; bytes != UINT64_MAX; bytes = bench_next_size(bytes)) {
		one("cudaMalloc", bytes, gpu_get, gpu_put, false);
		one("cudaMallocHost", bytes, pinned_get, pinned_put, true);
		one("malloc", bytes, hook_get, hook_put, true);
		one("glibc", bytes, libc_get, libc_put, true);
	}
	return bench_end();
}
