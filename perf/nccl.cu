// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * How fast do GPUs reduce and exchange data with NCCL? One process with all GPUs. Rows: NAME/bus in GB/s, the rate at
 * which each GPU sends, as NVIDIA's nccl-tests count it, and for small sizes NAME/time in us. Natively the library is
 * NVIDIA's, in a guest it is ours. --gpus N uses fewer GPUs. With one GPU it is a copy.
 */
#if __has_include(<nccl.h>)
#include <nccl.h>
#else
#include "qcu-library/nccl/api.h"
#endif

#include "perf/bench.h"

#define MOST  32
#define SMALL (64 << 10) /* up to here the time is worth a row */

#define NC(call)                                                                       \
	do {                                                                           \
		ncclResult_t nc_ = (call);                                             \
		if (nc_ != ncclSuccess)                                                \
			BENCH_FAIL(1, "%s:%d: %s: %s (%s)", __FILE__, __LINE__, #call, \
				   ncclGetErrorString(nc_), ncclGetLastError(NULL));   \
	} while (0)

enum call { ALL_REDUCE, REDUCE_SCATTER, ALL_GATHER, BROADCAST, SEND_RECEIVE, CALLS };

static const char *const names[] = {"all-reduce", "reduce-scatter", "all-gather", "broadcast", "send-receive"};

struct gpu {
	ncclComm_t comm;
	cudaStream_t stream;
	float *in, *out;
};

struct job {
	struct gpu gpu[MOST];
	int gpus;
	enum call call;
	uint64_t bytes; /* of the whole operation */
};

static void one(struct job *j)
{
	size_t whole = j->bytes / 4, part = whole / (size_t)j->gpus;

	NC(ncclGroupStart());
	for (int i = 0; i < j->gpus; i++) {
		struct gpu *g = &j->gpu[i];

		switch (j->call) {
		case ALL_REDUCE:
			NC(ncclAllReduce(g->in, g->out, whole, ncclFloat32, ncclSum, g->comm, g->stream));
			break;
		case REDUCE_SCATTER:
			NC(ncclReduceScatter(g->in, g->out, part, ncclFloat32, ncclSum, g->comm, g->stream));
			break;
		case ALL_GATHER:
			NC(ncclAllGather(g->in, g->out, part, ncclFloat32, g->comm, g->stream));
			break;
		case BROADCAST:
			NC(ncclBroadcast(g->in, g->out, whole, ncclFloat32, 0, g->comm, g->stream));
			break;
		default:
			NC(ncclSend(g->in, whole, ncclFloat32, (i + 1) % j->gpus, g->comm, g->stream));
			NC(ncclRecv(g->out, whole, ncclFloat32, (i + j->gpus - 1) % j->gpus, g->comm, g->stream));
		}
	}
	NC(ncclGroupEnd());
}

static void run(void *arg, unsigned int times)
{
	struct job *j = (struct job *)arg;

	for (unsigned int i = 0; i < times; i++)
		one(j);
	for (int i = 0; i < j->gpus; i++) {
		CHECK(cudaSetDevice(i));
		CHECK(cudaStreamSynchronize(j->gpu[i].stream));
	}
}

/* GPU i has i + 1 in all elements. */
static float expected(const struct job *j, int gpu, size_t i, size_t part)
{
	int n = j->gpus;

	switch (j->call) {
	case ALL_REDUCE:
	case REDUCE_SCATTER:
		return (float)(n * (n + 1) / 2);
	case ALL_GATHER:
		return (float)(i / part + 1);
	case BROADCAST:
		return 1;
	default:
		return (float)((gpu + n - 1) % n + 1);
	}
}

static void check(struct job *j)
{
	size_t whole = j->bytes / 4, part = whole / (size_t)j->gpus;
	size_t n = j->call == REDUCE_SCATTER ? part : j->call == ALL_GATHER ? part * (size_t)j->gpus : whole;
	float *host = (float *)malloc(n * 4);

	REQUIRE(host, "no memory");
	for (int g = 0; g < j->gpus; g++) {
		CHECK(cudaSetDevice(g));
		CHECK(cudaMemset(j->gpu[g].out, 0xff, j->bytes));
		CHECK(cudaDeviceSynchronize());
	}
	run(j, 1);
	for (int g = 0; g < j->gpus; g++) {
		CHECK(cudaSetDevice(g));
		CHECK(cudaMemcpy(host, j->gpu[g].out, n * 4, cudaMemcpyDeviceToHost));
		for (size_t i = 0; i < n; i++)
			REQUIRE(host[i] == expected(j, g, i, part), "%s of %llu bytes, GPU %d: element %zu is %g",
				names[j->call], (unsigned long long)j->bytes, g, i, host[i]);
	}
	free(host);
}

/* How many bytes each GPU sends, in parts of the operation's. */
static double share(const struct job *j)
{
	double n = j->gpus;

	if (n == 1 || j->call == BROADCAST || j->call == SEND_RECEIVE)
		return 1;
	return (j->call == ALL_REDUCE ? 2 : 1) * (n - 1) / n;
}

static void measure(struct job *j)
{
	char bus[64], time[64];

	snprintf(bus, sizeof(bus), "%s/bus", names[j->call]);
	snprintf(time, sizeof(time), "%s/time", names[j->call]);
	for (uint64_t bytes = bench.min; bytes <= bench.max; bytes = bench_next_size(bytes)) {
		struct bench_case c = {};

		j->bytes = bytes / (4 * (uint64_t)j->gpus) * (4 * (uint64_t)j->gpus);
		c.bytes = bytes;
		c.run = run;
		c.arg = j;
		c.checked = "whole";
		if (!j->bytes || (!bench_wants(bus) && !bench_wants(time)))
			continue;
		check(j);
		c.name = time;
		c.unit = "us";
		if (bytes <= SMALL && bench_begins(time))
			bench_run(&c);
		c.name = bus;
		c.unit = "GB/s";
		c.work = (double)j->bytes * share(j);
		if (bench_begins(bus))
			bench_run(&c);
	}
}

static void fill(float *to, uint64_t bytes, float value)
{
	size_t n = (1 << 20) / 4;
	float *host = (float *)malloc(n * 4);

	REQUIRE(host, "no memory");
	for (size_t i = 0; i < n; i++)
		host[i] = value;
	for (uint64_t at = 0; at < bytes; at += n * 4)
		CHECK(cudaMemcpy((char *)to + at, host, bytes - at < n * 4 ? bytes - at : n * 4,
				 cudaMemcpyHostToDevice));
	free(host);
}

int main(int argc, char **argv)
{
	static uint64_t gpus = MOST;
	static const struct bench_extra extras[] = {{"gpus", &gpus, 1, MOST, "how many GPUs (default: all)"}, {}};
	static struct job j;
	ncclComm_t comm[MOST];
	int have;

	bench_begin(argc, argv, "nccl", "collectives between all GPUs", 1024, 256ull << 20, extras);
	CHECK(cudaGetDeviceCount(&have));
	j.gpus = have < (int)gpus ? have : (int)gpus;
	bench_needs(bench.max, 2 * bench.max);
	NC(ncclCommInitAll(comm, j.gpus, NULL));
	for (int i = 0; i < j.gpus; i++) {
		struct gpu *g = &j.gpu[i];

		g->comm = comm[i];
		CHECK(cudaSetDevice(i));
		CHECK(cudaStreamCreateWithFlags(&g->stream, cudaStreamNonBlocking));
		CHECK(cudaMalloc(&g->in, bench.max));
		CHECK(cudaMalloc(&g->out, bench.max));
		fill(g->in, bench.max, (float)(i + 1));
		CHECK(cudaDeviceSynchronize());
	}
	for (int c = 0; c < CALLS; c++) {
		j.call = (enum call)c;
		measure(&j);
	}
	for (int i = 0; i < j.gpus; i++)
		NC(ncclCommDestroy(comm[i]));
	return bench_end();
}
