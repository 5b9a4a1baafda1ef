// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Do streams overlap copies with kernels, and does a guest keep what that gains? The method of
 * simpleStreams, the paper's Table I: a kernel computes an array and a copy brings it back, once
 * as a whole and once in as many parts as there are streams. "updown" also uploads the array.
 *
 * As in simpleStreams, a sample is ten of these in a row between two events, by the GPU's clock.
 * "once" is the same for a single one, by the program's clock, from its first call until the end
 * of its wait.
 */
#include "perf/bench.h"

#define THREADS 512

/* Long enough that the kernel and the copy of a part take similar time. */
__global__ void compute(int *to, const int *add, int rounds, bool keep, uint64_t n)
{
	uint64_t i = blockIdx.x * (uint64_t)blockDim.x + threadIdx.x;

	if (i >= n)
		return;
	if (!keep)
		to[i] = 0;
	/* Reads memory each time, since `add` might be in it. */
	for (int k = 0; k < rounds; k++)
		to[i] += *add;
}

struct work {
	int *host, *dev, *add;
	uint64_t n;
	int rounds, streams; /* 0 streams: the whole array, one step after the other */
	bool up;
	cudaStream_t stream[8];
	cudaEvent_t start, end;
};

static void part(struct work *w, uint64_t at, uint64_t n, cudaStream_t stream)
{
	unsigned int blocks = (unsigned int)((n + THREADS - 1) / THREADS);

	if (w->up)
		CHECK(cudaMemcpyAsync(w->dev + at, w->host + at, n * 4, cudaMemcpyHostToDevice,
				      stream));
	compute<<<blocks, THREADS, 0, stream>>>(w->dev + at, w->add, w->rounds, w->up, n);
	CHECK(cudaMemcpyAsync(w->host + at, w->dev + at, n * 4, cudaMemcpyDeviceToHost, stream));
}

static void issue(struct work *w)
{
	if (!w->streams)
		part(w, 0, w->n, 0);
	for (int i = 0; i < w->streams; i++)
		part(w, w->n / (uint64_t)w->streams * (uint64_t)i, w->n / (uint64_t)w->streams,
		     w->stream[i]);
	CHECK(cudaGetLastError());
}

static void once(void *arg, unsigned int times)
{
	while (times--) {
		issue((struct work *)arg);
		CHECK(cudaDeviceSynchronize());
	}
}

/* Returns the milliseconds for each of ten. */
static double ten(struct work *w)
{
	float ms;

	CHECK(cudaEventRecord(w->start, 0));
	for (int i = 0; i < 10; i++)
		issue(w);
	CHECK(cudaEventRecord(w->end, 0));
	CHECK(cudaEventSynchronize(w->end));
	CHECK(cudaEventElapsedTime(&ms, w->start, w->end));
	return ms / 10;
}

#define SAMPLES 64

static void row_of_ten(const char *name, struct work *w, const char *checked)
{
	unsigned int reps = bench.reps < SAMPLES ? bench.reps : SAMPLES, n = 0, i;
	double sample[SAMPLES], spent = 0;

	for (i = 0; i < bench.warmup; i++)
		ten(w);
	while (n < reps && (n < 3 || spent < bench.budget)) {
		sample[n] = ten(w);
		spent += sample[n++] * 10e-3;
	}
	bench_row(name, w->n * 4, "ms", sample, n, checked);
}

/* The array must be `add` times `rounds`, plus its earlier value. */
static void check(struct work *w, const char *name)
{
	volatile int *host = w->host;
	uint64_t step = w->n > 1 << 18 ? 1021 : 1, i;
	int add = 3, want;

	for (i = 0; i < w->n; i += step)
		host[i] = (int)i;
	CHECK(cudaMemcpy(w->add, &add, 4, cudaMemcpyHostToDevice));
	once(w, 1);
	for (i = 0; i < w->n; i += step) {
		want = add * w->rounds + (w->up ? (int)i : 0);
		REQUIRE(host[i] == want, "%s: element %llu is %d, not %d", name,
			(unsigned long long)i, host[i], want);
	}
	add = 0;
	CHECK(cudaMemcpy(w->add, &add, 4, cudaMemcpyHostToDevice));
}

static void measure(struct work *w)
{
	const char *checked = w->n > 1 << 18 ? "sampled" : "whole";
	struct bench_case b = {};
	char name[64];
	int prefix = 5; /* length of "once/" */

	if (w->streams)
		snprintf(name, sizeof(name), "once/%s/%d-streams", w->up ? "updown" : "down",
			 w->streams);
	else
		snprintf(name, sizeof(name), "once/%s/none", w->up ? "updown" : "down");
	if (!bench_begins(name + prefix) && !bench_begins(name))
		return;
	check(w, name);
	if (bench_wants(name + prefix))
		row_of_ten(name + prefix, w, checked);
	if (!bench_wants(name))
		return;
	b.name = name;
	b.bytes = w->n * 4;
	b.unit = "ms";
	b.run = once;
	b.arg = w;
	b.checked = checked;
	bench_run(&b);
}

int main(int argc, char **argv)
{
	static const int streams[] = {0, 2, 4, 8};
	uint64_t rounds = 40, bytes;
	const struct bench_extra extras[] = {
		{"rounds", &rounds, 1, 1000000, "additions for each element (40)"},
		{NULL, NULL, 0, 0, NULL},
	};
	struct work w = {};
	int i, up;

	bench_begin(argc, argv, "streams",
		    "Kernel and copy, whole and in 2, 4 and 8 streams, in ms (simpleStreams).",
		    64 << 20, 1 << 30, extras);
	bench_needs(bench.max + (64 << 20), bench.max + (16 << 20));
	REQUIRE(bench.min >= 4096, "--min: at least 4096");
	for (i = 0; i < 8; i++)
		CHECK(cudaStreamCreate(&w.stream[i]));
	CHECK(cudaEventCreate(&w.start));
	CHECK(cudaEventCreate(&w.end));
	CHECK(cudaMalloc((void **)&w.add, 4));
	w.rounds = (int)rounds;
	for (bytes = bench.min; bytes != UINT64_MAX;
	     bytes = bytes >= bench.max ? UINT64_MAX
		     : bytes * 2 < bench.max ? bytes * 2 : bench.max) {
		w.n = bytes / 4 / 8 * 8;
		CHECK(cudaMallocHost((void **)&w.host, bytes));
		CHECK(cudaMalloc((void **)&w.dev, bytes));
		for (up = 0; up < 2; up++)
			for (i = 0; i < 4; i++) {
				w.up = up;
				w.streams = streams[i];
				measure(&w);
			}
		CHECK(cudaFree(w.dev));
		CHECK(cudaFreeHost(w.host));
	}
	return bench_end();
}
