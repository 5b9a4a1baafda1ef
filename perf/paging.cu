// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What memory costs when it is first used and when it moves, page after page:
 *
 *	first/malloc, first/managed	the CPU's first touch
 *	first/pinned			cudaMallocHost, and the first touch
 *	up				a kernel after the CPU has written, and the wait for it
 *	up/prefetch			the same, and a cudaMemPrefetchAsync to the GPU before it
 *	back				the CPU reads after a kernel
 *	back/prefetch			the same, and a cudaMemPrefetchAsync to the CPU before it
 *
 * "up" and "back" are of managed memory.
 */
#include "perf/bench.h"

#define PAGE  4096u
#define ALONE ((uint64_t)256 << 20) /* a malloc that is freed to the system */

__global__ void add(unsigned int *p, size_t pages)
{
	size_t step = (size_t)gridDim.x * blockDim.x;

	for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < pages; i += step)
		p[i * (PAGE / sizeof(*p))]++;
}

struct state {
	unsigned int *p;
	uint64_t bytes;
	unsigned int value; /* the first word of all pages */
};

static void write_pages(void *arg, unsigned int)
{
	struct state *s = (struct state *)arg;

	s->value++;
	for (size_t i = 0; i < s->bytes / sizeof(*s->p); i += PAGE / sizeof(*s->p))
		s->p[i] = s->value;
}

static void read_pages(void *arg, unsigned int)
{
	const struct state *s = (struct state *)arg;
	unsigned int wrong = 0;

	for (size_t i = 0; i < s->bytes / sizeof(*s->p); i += PAGE / sizeof(*s->p))
		wrong |= s->p[i] ^ s->value;
	REQUIRE(!wrong, "a page has wrong content");
}

static void use_on_gpu(void *arg, unsigned int)
{
	struct state *s = (struct state *)arg;

	s->value++;
	add<<<64, 64>>>(s->p, s->bytes / PAGE);
	CHECK(cudaGetLastError());
	CHECK(cudaDeviceSynchronize());
}

static void prefetch(const struct state *s, enum cudaMemLocationType where)
{
	struct cudaMemLocation to = {};

	to.type = where;
	to.id = where == cudaMemLocationTypeDevice ? bench.device : 0;
	CHECK(cudaMemPrefetchAsync(s->p, s->bytes, to, 0, 0));
	CHECK(cudaDeviceSynchronize());
}

static void prefetch_up(void *arg, unsigned int n)
{
	prefetch((struct state *)arg, cudaMemLocationTypeDevice);
	use_on_gpu(arg, n);
}

static void prefetch_back(void *arg, unsigned int n)
{
	prefetch((struct state *)arg, cudaMemLocationTypeHost);
	read_pages(arg, n);
}

static void allocate_pinned(void *arg, unsigned int n)
{
	struct state *s = (struct state *)arg;

	CHECK(cudaMallocHost((void **)&s->p, s->bytes));
	write_pages(arg, n);
}

static void read_and_write(void *arg)
{
	read_pages(arg, 1);
	write_pages(arg, 1);
}

static void free_pinned(void *arg)
{
	CHECK(cudaFreeHost(((struct state *)arg)->p));
}

static void new_malloc(void *arg)
{
	struct state *s = (struct state *)arg;

	free(s->p);
	s->p = (unsigned int *)malloc(ALONE);
	REQUIRE(s->p, "no memory");
}

static void new_managed(void *arg)
{
	struct state *s = (struct state *)arg;

	CHECK(cudaFree(s->p));
	CHECK(cudaMallocManaged((void **)&s->p, s->bytes));
}

static void back_on_gpu(void *arg)
{
	use_on_gpu(arg, 1);
}

static void measure(struct state *s, const char *name, void (*run)(void *, unsigned int),
		    void (*settle)(void *))
{
	struct bench_case b = {};

	if (!bench_begins(name))
		return;
	b.name = name;
	b.bytes = s->bytes;
	b.unit = "us";
	b.run = run;
	b.settle = settle;
	b.arg = s;
	b.most = 1;
	b.checked = "sampled";
	bench_run(&b);
}

int main(int argc, char **argv)
{
	struct state s = {};

	bench_begin(argc, argv, "paging", "What memory costs when it is first used and when it moves.",
		    2 << 20, 32 << 20, NULL);
	REQUIRE(bench.max <= ALONE, "--max: 256M at most");
	bench_needs(ALONE, bench.max);
	for (s.bytes = bench.min; s.bytes != UINT64_MAX; s.bytes = bench_next_size(s.bytes)) {
		s.p = NULL;
		new_malloc(&s);
		measure(&s, "first/malloc", write_pages, new_malloc);
		free(s.p);
		measure(&s, "first/pinned", allocate_pinned, free_pinned);
		s.p = NULL;
		new_managed(&s);
		measure(&s, "first/managed", write_pages, new_managed);
		write_pages(&s, 1);
		measure(&s, "up", use_on_gpu, read_and_write);
		measure(&s, "up/prefetch", prefetch_up, read_and_write);
		use_on_gpu(&s, 1);
		measure(&s, "back", read_pages, back_on_gpu);
		measure(&s, "back/prefetch", prefetch_back, back_on_gpu);
		CHECK(cudaFree(s.p));
	}
	return bench_end();
}
