// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * How fast are copies between memory and GPU? Each kind of host memory, both directions, one
 * copy at a time (sync) and many in a row (async), both directions at once, and kernels that use
 * the memory in place. These are the paper's Figures 3 and 4.
 *
 * Cases are named MEMORY/WAY/DIRECTION. "first" is memory that no copy has used before: fresh
 * for each sample, and touched by the CPU. "pageable" is malloc memory that has been used once.
 */
#include "perf/bench.h"
#include "perf/memory.cuh"
#include "perf/pattern.h"

struct copy {
	char *host, *dev;
	uint64_t bytes;
	bool up;
	cudaStream_t stream;
	/* both directions at once */
	char *back, *dev_back;
	cudaStream_t stream_back;
};

static void sync_copies(void *arg, unsigned int n)
{
	struct copy *c = (struct copy *)arg;

	while (n--)
		if (c->up)
			CHECK(cudaMemcpy(c->dev, c->host, c->bytes, cudaMemcpyHostToDevice));
		else
			CHECK(cudaMemcpy(c->host, c->dev, c->bytes, cudaMemcpyDeviceToHost));
}

static void async_copies(void *arg, unsigned int n)
{
	struct copy *c = (struct copy *)arg;

	while (n--)
		if (c->up)
			CHECK(cudaMemcpyAsync(c->dev, c->host, c->bytes, cudaMemcpyHostToDevice,
					      c->stream));
		else
			CHECK(cudaMemcpyAsync(c->host, c->dev, c->bytes, cudaMemcpyDeviceToHost,
					      c->stream));
	CHECK(cudaStreamSynchronize(c->stream));
}

static void both_ways(void *arg, unsigned int n)
{
	struct copy *c = (struct copy *)arg;

	while (n--) {
		CHECK(cudaMemcpyAsync(c->dev, c->host, c->bytes, cudaMemcpyHostToDevice,
				      c->stream));
		CHECK(cudaMemcpyAsync(c->back, c->dev_back, c->bytes, cudaMemcpyDeviceToHost,
				      c->stream_back));
	}
	CHECK(cudaStreamSynchronize(c->stream));
	CHECK(cudaStreamSynchronize(c->stream_back));
}

/* Reads 16 bytes at a time, as an optimised program does. */
__global__ void read_in_place(const uint4 *from, uint64_t n, uint32_t *sum)
{
	uint64_t i = blockIdx.x * (uint64_t)blockDim.x + threadIdx.x;
	uint32_t s = 0;

	for (; i < n; i += gridDim.x * (uint64_t)blockDim.x) {
		uint4 v = from[i];

		s += v.x ^ v.y ^ v.z ^ v.w;
	}
	atomicAdd(sum, s);
}

__global__ void write_in_place(uint4 *to, uint64_t n, uint32_t seed)
{
	uint64_t i = blockIdx.x * (uint64_t)blockDim.x + threadIdx.x;

	for (; i < n; i += gridDim.x * (uint64_t)blockDim.x)
		to[i] = make_uint4(pattern_word(i * 4, seed), pattern_word(i * 4 + 1, seed),
				   pattern_word(i * 4 + 2, seed), pattern_word(i * 4 + 3, seed));
}

#define IN_PLACE_SEED 77

static void kernels(void *arg, unsigned int n)
{
	struct copy *c = (struct copy *)arg;
	unsigned int blocks = pattern_blocks(c->bytes / 16);

	while (n--)
		if (c->up)
			read_in_place<<<blocks, 256>>>((const uint4 *)c->dev, c->bytes / 16,
						       (uint32_t *)c->dev_back);
		else
			write_in_place<<<blocks, 256>>>((uint4 *)c->dev, c->bytes / 16,
							IN_PLACE_SEED);
	CHECK(cudaGetLastError());
	CHECK(cudaDeviceSynchronize());
}

/* ---- one row ---- */

static unsigned int queue_length(uint64_t bytes)
{
	uint64_t n = (8ull << 30) / bytes;

	return n < 4 ? 4 : n > 4096 ? 4096 : (unsigned int)n;
}

static void row(const char *memory, const char *way, const char *direction, struct copy *c,
		void (*run)(void *, unsigned int), unsigned int times)
{
	struct bench_case b = {};
	char name[64];

	snprintf(name, sizeof(name), "%s/%s/%s", memory, way, direction);
	if (!bench_wants(name))
		return;
	b.name = name;
	b.bytes = c->bytes;
	b.unit = "GB/s";
	b.work = (double)c->bytes * times;
	b.run = run;
	b.arg = c;
	/*
	 * Copies back to back: so many that the one wait at the end does not count, and equally
	 * many for each way.
	 */
	if (run != sync_copies) {
		b.enough = bench.budget < 0.15 ? bench.budget : 0.15;
		b.most = queue_length(c->bytes);
	}
	b.checked = pattern_checked(c->bytes);
	bench_run(&b);
}

/* All bytes are wrong before a copy is measured, and must be right afterwards. */
static void direction(const char *memory, const char *way, struct copy *c,
		      void (*run)(void *, unsigned int), bool up)
{
	static uint32_t seed = 1;
	char what[64];

	snprintf(what, sizeof(what), "%s/%s/%s", memory, way, up ? "h2d" : "d2h");
	if (!bench_wants(what))
		return;
	seed++;
	c->up = up;
	if (up) {
		/* DMA fills the buffer. Then the CPU checks it. */
		pattern_on_gpu(c->dev, c->bytes, seed);
		CHECK(cudaMemcpy(c->host, c->dev, c->bytes, cudaMemcpyDeviceToHost));
		pattern_cpu_must(c->host, c->bytes, seed, what);
		CHECK(cudaMemset(c->dev, 0xa5, c->bytes));
	} else {
		CHECK(cudaMemset(c->dev, 0xa5, c->bytes));
		CHECK(cudaMemcpy(c->host, c->dev, c->bytes, cudaMemcpyDeviceToHost));
		pattern_on_gpu(c->dev, c->bytes, seed);
	}
	row(memory, way, up ? "h2d" : "d2h", c, run, 1);
	if (up)
		pattern_gpu_must(c->dev, c->bytes, seed, what);
	else
		pattern_cpu_must(c->host, c->bytes, seed, what);
}

static bool begins_kind(enum kind kind)
{
	char name[64];
	unsigned int i;

	for (i = 0; i < 4; i++) {
		snprintf(name, sizeof(name), "%s/%s/%s", kind_name[kind], i & 1 ? "sync" : "async",
			 i & 2 ? "h2d" : "d2h");
		if (bench_wants(name))
			return bench_begins(name);
	}
	return false;
}

static void one_kind(enum kind kind, struct copy *c)
{
	if (!begins_kind(kind))
		return;
	c->host = get(kind, c->bytes);
	if (!c->host)
		return;
	memset(c->host, 0, c->bytes);
	direction(kind_name[kind], "sync", c, sync_copies, true);
	direction(kind_name[kind], "sync", c, sync_copies, false);
	if (kind == PINNED || kind == REGISTERED || kind == PAGEABLE) {
		direction(kind_name[kind], "async", c, async_copies, true);
		direction(kind_name[kind], "async", c, async_copies, false);
	}
	put(kind, c->host, c->bytes);
}

/* Fresh memory for each sample. Only the copy is timed, not the touch before it. */
static void first_use(struct copy *c, bool up)
{
	const char *name = up ? "first/sync/h2d" : "first/sync/d2h";
	unsigned int reps = bench.quick ? 3 : 5, i;
	double samples[8], start;

	if (!bench_begins(name))
		return;
	pattern_on_gpu(c->dev, c->bytes, 7);
	for (i = 0; i < reps; i++) {
		char *p = get(PAGEABLE, c->bytes);

		/* The same byte everywhere, then the marks for the check. */
		memset(p, 0x5a, c->bytes);
		start = bench_now();
		if (up)
			CHECK(cudaMemcpy(c->dev, p, c->bytes, cudaMemcpyHostToDevice));
		else
			CHECK(cudaMemcpy(p, c->dev, c->bytes, cudaMemcpyDeviceToHost));
		samples[i] = (double)c->bytes / (bench_now() - start) * 1e-9;
		if (up) {
			CHECK(cudaMemcpy(p, c->dev, c->bytes, cudaMemcpyDeviceToHost));
			REQUIRE(p[0] == 0x5a && p[c->bytes / 2] == 0x5a && p[c->bytes - 1] == 0x5a,
				"%s: a byte is wrong", name);
		} else {
			pattern_cpu_must(p, c->bytes, 7, name);
		}
		put(PAGEABLE, p, c->bytes);
	}
	bench_row(name, c->bytes, "GB/s", samples, reps, "sampled");
}

static void bidirectional(struct copy *c)
{
	if (!bench_begins("pinned/async/both"))
		return;
	c->host = get(PINNED, c->bytes);
	c->back = get(PINNED, c->bytes);
	CHECK(cudaMalloc((void **)&c->dev_back, c->bytes));
	pattern_on_gpu(c->dev_back, c->bytes, 3);
	CHECK(cudaMemcpy(c->host, c->dev_back, c->bytes, cudaMemcpyDeviceToHost));
	pattern_on_gpu(c->dev_back, c->bytes, 4);
	row("pinned", "async", "both", c, both_ways, 2);
	pattern_gpu_must(c->dev, c->bytes, 3, "both: up");
	pattern_cpu_must(c->back, c->bytes, 4, "both: down");
	CHECK(cudaFree(c->dev_back));
	put(PINNED, c->back, c->bytes);
	put(PINNED, c->host, c->bytes);
}

/* A kernel that reads or writes host memory in place. */
static void in_place(struct copy *from)
{
	struct copy c = *from;
	uint32_t *sum, want = 0, got = 0, blocks;

	if (c.bytes < 4096)
		return;
	if (!bench_begins("mapped/kernel/read") && !bench_begins("mapped/kernel/write"))
		return;
	CHECK(cudaHostAlloc((void **)&c.host, c.bytes, cudaHostAllocMapped));
	CHECK(cudaHostGetDevicePointer((void **)&c.dev, c.host, 0));
	CHECK(cudaMalloc((void **)&sum, 4));
	c.dev_back = (char *)sum;
	c.up = false;
	row("mapped", "kernel", "write", &c, kernels, 1);
	kernels(&c, 1);
	pattern_cpu_must(c.host, c.bytes, IN_PLACE_SEED, "mapped/kernel/write");
	c.up = true;
	row("mapped", "kernel", "read", &c, kernels, 1);
	/* The same sum, computed from a copy on the GPU. */
	CHECK(cudaMemset(sum, 0, 4));
	kernels(&c, 1);
	CHECK(cudaMemcpy(&got, sum, 4, cudaMemcpyDeviceToHost));
	CHECK(cudaMemset(sum, 0, 4));
	CHECK(cudaMemcpy(from->dev, c.host, c.bytes, cudaMemcpyHostToDevice));
	blocks = pattern_blocks(c.bytes / 16);
	read_in_place<<<blocks, 256>>>((const uint4 *)from->dev, c.bytes / 16, sum);
	CHECK(cudaMemcpy(&want, sum, 4, cudaMemcpyDeviceToHost));
	REQUIRE(got == want, "mapped/kernel/read: the sum is wrong");
	CHECK(cudaFree(sum));
	CHECK(cudaFreeHost(c.host));
}

static void one_size(uint64_t bytes)
{
	struct copy c = {};

	c.bytes = bytes;
	CHECK(cudaMalloc((void **)&c.dev, bytes));
	CHECK(cudaStreamCreate(&c.stream));
	CHECK(cudaStreamCreate(&c.stream_back));
	one_kind(PINNED, &c);
	bidirectional(&c);
	one_kind(PAGEABLE, &c);
	first_use(&c, true);
	first_use(&c, false);
	one_kind(REGISTERED, &c);
	in_place(&c);
	one_kind(MANAGED, &c);
	if (bytes <= STATIC_BYTES)
		one_kind(STATIC, &c);
	one_kind(STACK, &c);
	one_kind(FILE_MAP, &c);
	CHECK(cudaStreamDestroy(c.stream));
	CHECK(cudaStreamDestroy(c.stream_back));
	CHECK(cudaFree(c.dev));
}

int main(int argc, char **argv)
{
	uint64_t bytes;

	bench_begin(argc, argv, "bandwidth",
		    "Copies between host and GPU by kind of memory, GB/s (10^9 bytes).", 1 << 10,
		    1 << 30, NULL);
	REQUIRE(bench.min >= 64 && bench.min % 64 == 0 && bench.max % 64 == 0,
		"--min and --max: multiples of 64");
	bench_needs(2 * bench.max + (64 << 20), 2 * bench.max + (16 << 20));
	for (bytes = bench.min; bytes != UINT64_MAX; bytes = bench_next_size(bytes))
		one_size(bytes);
	return bench_end();
}
