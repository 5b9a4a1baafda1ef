// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Managed memory that CPU and GPU use in turn. For each size:
 *
 *	first	a kernel over memory that the CPU has just written
 *	further	the same kernel again
 *	back	the CPU reads all that the kernel has written
 *	turns	the CPU writes, and later reads, 1% in one place; the kernel uses this 1% in between
 *
 * "first" counts the bytes that the kernel reads and writes, "back" those that the CPU reads.
 *
 * Beside them stands what the two sides need without managed memory, so that the difference is the
 * cost of moving:
 *
 *	further/device	the kernel over memory from cudaMalloc
 *	back/malloc	the CPU reads as much from memory that only it uses
 *	turns/malloc	the CPU writes, and reads, its 1% of such memory; the kernel uses as much of
 *			memory from cudaMalloc
 */
#include "perf/bench.h"

#define PART	100 /* of "turns": a hundredth */
#define SAMPLES 64

__global__ void add(unsigned int *p, size_t n)
{
	size_t step = (size_t)gridDim.x * blockDim.x;

	for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += step)
		p[i]++;
}

struct state {
	unsigned int *p;
	unsigned int *device; /* from cudaMalloc */
	unsigned int *host;   /* from malloc */
	size_t n;
	unsigned int value; /* what all elements are now */
};

static void pass_over(unsigned int *p, size_t n)
{
	add<<<1024, 256>>>(p, n);
	CHECK(cudaGetLastError());
	CHECK(cudaDeviceSynchronize());
}

static void pass(struct state *s, size_t n)
{
	pass_over(s->p, n);
}

static void on_device(void *arg, unsigned int n)
{
	struct state *s = (struct state *)arg;

	while (n--)
		pass_over(s->device, s->n);
}

static void further(void *arg, unsigned int n)
{
	struct state *s = (struct state *)arg;

	s->value += n;
	while (n--)
		pass(s, s->n);
}

static void fill(struct state *s)
{
	s->value++;
	for (size_t i = 0; i < s->n; i++)
		s->p[i] = s->value;
}

/* One sum per page would not read all. */
static unsigned long long sum_of(const unsigned int *p, size_t n)
{
	unsigned long long sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += p[i];
	return sum;
}

static void read_all(const struct state *s)
{
	REQUIRE(sum_of(s->p, s->n) == (unsigned long long)s->value * s->n,
		"the memory has wrong content");
}

static void read_malloc(void *arg, unsigned int n)
{
	struct state *s = (struct state *)arg;

	while (n--)
		REQUIRE(sum_of(s->host, s->n) == s->n, "the memory has wrong content");
}

static void turns_over(unsigned int *host, unsigned int *device, size_t part)
{
	for (size_t i = 0; i < part; i++)
		host[i]++;
	pass_over(device, part);
	REQUIRE(host[part - 1] == host[0], "the part has wrong content");
}

static void turns(void *arg, unsigned int n)
{
	struct state *s = (struct state *)arg;

	while (n--)
		turns_over(s->p, s->p, s->n / PART);
}

static void turns_malloc(void *arg, unsigned int n)
{
	struct state *s = (struct state *)arg;

	while (n--)
		turns_over(s->host, s->device, s->n / PART);
}

/* These two cannot be repeated without the other side's work between them. */
static void first_and_back(struct state *s, uint64_t bytes)
{
	double first[SAMPLES], back[SAMPLES];
	unsigned int i, reps = bench.reps < SAMPLES ? bench.reps : SAMPLES;

	for (i = 0; i < reps; i++) {
		double t;

		fill(s);
		t = bench_now();
		pass(s, s->n);
		first[i] = 2 * (double)bytes / (bench_now() - t) / 1e9;
		s->value++;
		t = bench_now();
		read_all(s);
		back[i] = (double)bytes / (bench_now() - t) / 1e9;
	}
	bench_row("first", bytes, "GB/s", first, reps, "whole");
	bench_row("back", bytes, "GB/s", back, reps, "whole");
}

static void repeated(struct state *s, const char *name, uint64_t bytes, const char *unit,
		     double work, void (*run)(void *, unsigned int))
{
	struct bench_case b = {};

	if (!bench_begins(name))
		return;
	b.name = name;
	b.bytes = bytes;
	b.unit = unit;
	b.work = work;
	b.run = run;
	b.arg = s;
	b.checked = run == further || run == read_malloc ? "whole"
		    : run == on_device			 ? "-"
							 : "sampled";
	bench_run(&b);
}

/* The same work where nothing has to move. */
static void without(struct state *s, uint64_t bytes)
{
	CHECK(cudaMalloc((void **)&s->device, bytes));
	s->host = (unsigned int *)malloc(bytes);
	REQUIRE(s->host, "no memory");
	for (size_t i = 0; i < s->n; i++)
		s->host[i] = 1;
	repeated(s, "further/device", bytes, "GB/s", 2 * (double)bytes, on_device);
	repeated(s, "back/malloc", bytes, "GB/s", (double)bytes, read_malloc);
	repeated(s, "turns/malloc", bytes, "us", 0, turns_malloc);
	free(s->host);
	CHECK(cudaFree(s->device));
}

int main(int argc, char **argv)
{
	uint64_t bytes;

	bench_begin(argc, argv, "managed", "Managed memory that CPU and GPU use in turn.", 4 << 20,
		    256 << 20, NULL);
	for (bytes = bench.min; bytes != UINT64_MAX; bytes = bench_next_size(bytes)) {
		struct state s = {};

		bench_needs(2 * bytes, 2 * bytes);
		s.n = bytes / sizeof(*s.p);
		CHECK(cudaMallocManaged((void **)&s.p, bytes));
		fill(&s);
		if (bench_begins("first") || bench_begins("back"))
			first_and_back(&s, bytes);
		repeated(&s, "further", bytes, "GB/s", 2 * (double)bytes, further);
		read_all(&s);
		repeated(&s, "turns", bytes, "us", 0, turns);
		CHECK(cudaFree(s.p));
		without(&s, bytes);
	}
	return bench_end();
}
