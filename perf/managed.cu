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
	size_t n;
	unsigned int value; /* what all elements are now */
};

static void pass(struct state *s, size_t n)
{
	add<<<1024, 256>>>(s->p, n);
	CHECK(cudaGetLastError());
	CHECK(cudaDeviceSynchronize());
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
static void read_all(const struct state *s)
{
	unsigned long long sum = 0;

	for (size_t i = 0; i < s->n; i++)
		sum += s->p[i];
	REQUIRE(sum == (unsigned long long)s->value * s->n, "the memory has wrong content");
}

static void turns(void *arg, unsigned int n)
{
	struct state *s = (struct state *)arg;
	size_t part = s->n / PART;

	while (n--) {
		for (size_t i = 0; i < part; i++)
			s->p[i]++;
		pass(s, part);
		REQUIRE(s->p[part - 1] == s->p[0], "the part has wrong content");
	}
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
	b.checked = run == further ? "whole" : "sampled";
	bench_run(&b);
}

int main(int argc, char **argv)
{
	uint64_t bytes;

	bench_begin(argc, argv, "managed", "Managed memory that CPU and GPU use in turn.", 4 << 20,
		    256 << 20, NULL);
	for (bytes = bench.min; bytes != UINT64_MAX; bytes = bench_next_size(bytes)) {
		struct state s = {};

		bench_needs(bytes, bytes);
		s.n = bytes / sizeof(*s.p);
		CHECK(cudaMallocManaged((void **)&s.p, bytes));
		fill(&s);
		if (bench_begins("first") || bench_begins("back"))
			first_and_back(&s, bytes);
		repeated(&s, "further", bytes, "GB/s", 2 * (double)bytes, further);
		read_all(&s);
		repeated(&s, "turns", bytes, "us", 0, turns);
		CHECK(cudaFree(s.p));
	}
	return bench_end();
}
