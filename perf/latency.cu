// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The cost of one call, in microseconds, when there is nothing to wait for except the call
 * itself. In a guest, the columns "commands", "kicks" and "interrupts" show the cost in round
 * trips.
 */
#include <pthread.h>

#include "perf/bench.h"

__global__ void nothing(void)
{
}

__global__ void count(unsigned int *n)
{
	atomicAdd(n, 1);
}

struct words {
	unsigned int w[1000];
};

__global__ void take(struct words a, unsigned int *n)
{
	if (a.w[threadIdx.x] == 1)
		atomicAdd(n, 1);
}

/* As many small allocations as a program holds at once. */
#define MANY 4000

struct state {
	char *pinned, *dev, small[64], page[4096];
	unsigned int *counter;
	unsigned long long launched;
	struct words words;
	cudaStream_t stream;
	cudaEvent_t event;
};

#define OPERATION(name, ...)                                                   \
	static void name(void *arg, unsigned int n)                            \
	{                                                                      \
		struct state *s __attribute__((unused)) = (struct state *)arg; \
                                                                               \
		while (n--)                                                    \
			__VA_ARGS__;                                           \
	}

OPERATION(launch, nothing<<<1, 32, 0, s->stream>>>())
OPERATION(launch_sync, {
	nothing<<<1, 32, 0, s->stream>>>();
	CHECK(cudaStreamSynchronize(s->stream));
})
OPERATION(async_up,
	  CHECK(cudaMemcpyAsync(s->dev, s->pinned, 4096, cudaMemcpyHostToDevice, s->stream)))
OPERATION(async_down,
	  CHECK(cudaMemcpyAsync(s->pinned, s->dev, 4096, cudaMemcpyDeviceToHost, s->stream)))
OPERATION(copy_up, CHECK(cudaMemcpy(s->dev, s->small, 4, cudaMemcpyHostToDevice)))
OPERATION(copy_down, CHECK(cudaMemcpy(s->small, s->dev, 4, cudaMemcpyDeviceToHost)))
OPERATION(copy_down_64, CHECK(cudaMemcpy(s->small, s->dev, 64, cudaMemcpyDeviceToHost)))
OPERATION(copy_up_page, CHECK(cudaMemcpy(s->dev, s->page, 4096, cudaMemcpyHostToDevice)))
OPERATION(copy_down_page, CHECK(cudaMemcpy(s->page, s->dev, 4096, cudaMemcpyDeviceToHost)))
OPERATION(launch_long, take<<<1, 32, 0, s->stream>>>(s->words, s->counter))
OPERATION(occupancy, {
	int blocks;

	CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, count, 128, 0));
})
OPERATION(set, CHECK(cudaMemsetAsync(s->dev, 0, 4096, s->stream)))
OPERATION(record, CHECK(cudaEventRecord(s->event, s->stream)))
OPERATION(event_query, CHECK(cudaEventQuery(s->event)))
OPERATION(event_sync, CHECK(cudaEventSynchronize(s->event)))
OPERATION(stream_query, CHECK(cudaStreamQuery(s->stream)))
OPERATION(stream_sync, CHECK(cudaStreamSynchronize(s->stream)))
OPERATION(device_sync, CHECK(cudaDeviceSynchronize()))
OPERATION(wait_event, CHECK(cudaStreamWaitEvent(s->stream, s->event, 0)))
OPERATION(event_make, {
	cudaEvent_t e;

	CHECK(cudaEventCreate(&e));
	CHECK(cudaEventDestroy(e));
})
OPERATION(stream_make, {
	cudaStream_t t;

	CHECK(cudaStreamCreate(&t));
	CHECK(cudaStreamDestroy(t));
})
OPERATION(malloc_free, {
	void *p;

	CHECK(cudaMalloc(&p, 1 << 20));
	CHECK(cudaFree(p));
})
OPERATION(get_device, {
	int d;

	CHECK(cudaGetDevice(&d));
})
OPERATION(set_device, CHECK(cudaSetDevice(bench.device)))
OPERATION(last_error, CHECK(cudaGetLastError()))
OPERATION(attribute, {
	int v;

	CHECK(cudaDeviceGetAttribute(&v, cudaDevAttrMultiProcessorCount, bench.device));
})
OPERATION(pointer, {
	struct cudaPointerAttributes a;

	CHECK(cudaPointerGetAttributes(&a, s->dev));
})

/* Launches, and the wait for all of them. The kernel counts the launches. */
static void drained(void *arg, unsigned int n)
{
	struct state *s = (struct state *)arg;

	s->launched += n;
	while (n--)
		count<<<1, 1, 0, s->stream>>>(s->counter);
	CHECK(cudaStreamSynchronize(s->stream));
}

static void no_work(void *)
{
}

/* Host functions, one after the other, and the wait for all of them. */
static void host_functions(void *arg, unsigned int n)
{
	struct state *s = (struct state *)arg;

	while (n--)
		CHECK(cudaLaunchHostFunc(s->stream, no_work, NULL));
	CHECK(cudaStreamSynchronize(s->stream));
}

static void many_malloc(void *, unsigned int n)
{
	static void *p[MANY];

	for (unsigned int i = 0; i < n; i++)
		CHECK(cudaMalloc(&p[i], 64 << 10));
	for (unsigned int i = 0; i < n; i++)
		CHECK(cudaFree(p[i]));
}

static void many_pinned(void *, unsigned int n)
{
	static void *p[MANY];

	for (unsigned int i = 0; i < n; i++)
		CHECK(cudaMallocHost(&p[i], 64 << 10));
	for (unsigned int i = 0; i < n; i++)
		CHECK(cudaFreeHost(p[i]));
}

static void settle(void *arg)
{
	CHECK(cudaStreamSynchronize(((struct state *)arg)->stream));
}

static void one(struct state *s, const char *name, uint64_t bytes,
		void (*run)(void *, unsigned int), unsigned int most, bool queues)
{
	struct bench_case b = {};

	if (!bench_begins(name))
		return;
	b.name = name;
	b.bytes = bytes;
	b.unit = "us";
	b.run = run;
	/* What is counted begins with no answers under way: a call would take them, too. */
	b.settle = queues || bench.marks ? settle : NULL;
	b.arg = s;
	b.most = most;
	/* Measures a row of calls that do not wait, not the wait after them. */
	b.enough = queues || most ? 0.02 : 0;
	b.checked = run == drained ? "whole" : "-";
	bench_run(&b);
}

/* ---- threads, each with a stream of its own ---- */

#define THREADS	 8
#define LAUNCHES 256

struct thread {
	pthread_t id;
	unsigned int *counter;
	unsigned int rounds;
	pthread_barrier_t *start, *end;
};

static void *thread_main(void *arg)
{
	struct thread *t = (struct thread *)arg;
	cudaStream_t stream;

	CHECK(cudaSetDevice(bench.device));
	CHECK(cudaStreamCreate(&stream));
	count<<<1, 1, 0, stream>>>(t->counter);
	CHECK(cudaStreamSynchronize(stream));
	for (unsigned int i = 0; i < t->rounds; i++) {
		pthread_barrier_wait(t->start);
		for (int k = 0; k < LAUNCHES; k++)
			count<<<1, 1, 0, stream>>>(t->counter);
		CHECK(cudaStreamSynchronize(stream));
		pthread_barrier_wait(t->end);
	}
	CHECK(cudaStreamDestroy(stream));
	return NULL;
}

static void threads(unsigned int *counter)
{
	unsigned int rounds = bench.quick ? 3 : 7, got, i;
	pthread_barrier_t start, end;
	struct thread t[THREADS];
	double samples[8], began;

	if (!bench_wants("threads8/launch/drained"))
		return;
	CHECK(cudaMemset(counter, 0, sizeof(*counter)));
	pthread_barrier_init(&start, NULL, THREADS + 1);
	pthread_barrier_init(&end, NULL, THREADS + 1);
	for (i = 0; i < THREADS; i++) {
		t[i].counter = counter;
		t[i].rounds = rounds;
		t[i].start = &start;
		t[i].end = &end;
		REQUIRE(!pthread_create(&t[i].id, NULL, thread_main, &t[i]), "no thread");
	}
	for (i = 0; i < rounds; i++) {
		pthread_barrier_wait(&start);
		began = bench_now();
		pthread_barrier_wait(&end);
		samples[i] = (bench_now() - began) / (THREADS * LAUNCHES) * 1e6;
	}
	for (i = 0; i < THREADS; i++)
		pthread_join(t[i].id, NULL);
	CHECK(cudaMemcpy(&got, counter, sizeof(got), cudaMemcpyDeviceToHost));
	REQUIRE(got == THREADS * (1 + rounds * LAUNCHES), "%u launches of %u were done", got,
		THREADS * (1 + rounds * LAUNCHES));
	bench_row("threads8/launch/drained", 0, "us", samples, rounds, "whole");
}

/* Pinned memory for the first time in this process, and again: 1 GiB unless --max is less. */
static void pinned_memory(void)
{
	double fresh[1], again[4], freed[5], start;
	unsigned int i;

	if (!bench_wants("cudaMallocHost/fresh") && !bench_wants("cudaMallocHost/again"))
		return;
	bench_needs(bench.max + (64 << 20), 0);
	for (i = 0; i < 5; i++) {
		char *p;

		start = bench_now();
		CHECK(cudaMallocHost((void **)&p, bench.max));
		*(i ? &again[i - 1] : fresh) = (bench_now() - start) * 1e6;
		p[0] = p[bench.max - 1] = 1;
		start = bench_now();
		CHECK(cudaFreeHost(p));
		freed[i] = (bench_now() - start) * 1e6;
	}
	bench_row("cudaMallocHost/fresh", bench.max, "us", fresh, 1, "-");
	bench_row("cudaMallocHost/again", bench.max, "us", again, 4, "-");
	bench_row("cudaFreeHost", bench.max, "us", freed, 5, "-");
}

int main(int argc, char **argv)
{
	struct state s = {};
	unsigned int got;
	double first;

	bench_begin(argc, argv, "latency",
		    "What single calls cost, in us. --max is the size of the pinned memory.", 4,
		    1 << 30, NULL);
	first = bench_first_call * 1e6;
	if (bench_wants("first-call"))
		bench_row("first-call", 0, "us", &first, 1, "-");
	pinned_memory();

	CHECK(cudaStreamCreate(&s.stream));
	CHECK(cudaEventCreateWithFlags(&s.event, cudaEventDisableTiming));
	CHECK(cudaMallocHost((void **)&s.pinned, 4096));
	CHECK(cudaMalloc((void **)&s.dev, 4096));
	CHECK(cudaMalloc((void **)&s.counter, 4));
	CHECK(cudaMemset(s.counter, 0, 4));
	CHECK(cudaEventRecord(s.event, s.stream));
	CHECK(cudaStreamSynchronize(s.stream));

	/* So few that a queue is never full: otherwise the row would measure the GPU. */
	one(&s, "launch/issue", 0, launch, 128, true);
	one(&s, "launch/drained", 0, drained, 1000, false);
	one(&s, "launch+sync", 0, launch_sync, 0, false);
	one(&s, "cudaMemcpyAsync/h2d/issue", 4096, async_up, 64, true);
	one(&s, "cudaMemcpyAsync/d2h/issue", 4096, async_down, 64, true);
	one(&s, "cudaMemsetAsync/issue", 4096, set, 64, true);
	one(&s, "cudaMemcpy/h2d", 4, copy_up, 0, false);
	one(&s, "cudaMemcpy/d2h", 4, copy_down, 0, false);
	one(&s, "cudaEventRecord/issue", 0, record, 128, true);
	one(&s, "cudaStreamWaitEvent/issue", 0, wait_event, 128, true);
	one(&s, "cudaEventQuery", 0, event_query, 0, false);
	one(&s, "cudaEventSynchronize", 0, event_sync, 0, false);
	one(&s, "cudaStreamQuery", 0, stream_query, 0, false);
	one(&s, "cudaStreamSynchronize", 0, stream_sync, 0, false);
	one(&s, "cudaDeviceSynchronize", 0, device_sync, 0, false);
	one(&s, "cudaEventCreate+Destroy", 0, event_make, 0, false);
	one(&s, "cudaStreamCreate+Destroy", 0, stream_make, 0, false);
	one(&s, "cudaMalloc+Free", 1 << 20, malloc_free, 0, false);
	one(&s, "cudaGetDevice", 0, get_device, 0, false);
	one(&s, "cudaSetDevice", 0, set_device, 0, false);
	one(&s, "cudaGetLastError", 0, last_error, 0, false);
	one(&s, "cudaDeviceGetAttribute", 0, attribute, 0, false);
	one(&s, "cudaPointerGetAttributes", 0, pointer, 0, false);
	one(&s, "launch/4000B/issue", sizeof(s.words), launch_long, 128, true);
	one(&s, "cudaMemcpy/d2h", 64, copy_down_64, 0, false);
	one(&s, "cudaMemcpy/h2d", 4096, copy_up_page, 0, false);
	one(&s, "cudaMemcpy/d2h", 4096, copy_down_page, 0, false);
	one(&s, "cudaLaunchHostFunc/drained", 0, host_functions, 200, false);
	one(&s, "cudaOccupancyMaxActiveBlocks", 0, occupancy, 0, false);
	one(&s, "cudaMalloc+Free/many", 64 << 10, many_malloc, MANY, false);
	one(&s, "cudaMallocHost+FreeHost/many", 64 << 10, many_pinned, MANY, false);
	CHECK(cudaMemcpy(&got, s.counter, 4, cudaMemcpyDeviceToHost));
	REQUIRE(got == (unsigned int)s.launched, "%u launches of %llu were done", got, s.launched);
	threads(s.counter);

	CHECK(cudaFree(s.counter));
	CHECK(cudaFree(s.dev));
	CHECK(cudaFreeHost(s.pinned));
	return bench_end();
}
