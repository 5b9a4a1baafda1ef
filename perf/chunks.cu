// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * How does the size of the chunks of a guest's memory change the rate of copies? For each size
 * this program starts itself again with QCU_CHUNK set, because a process has one chunk size for
 * its whole life. A bare host ignores the variable, and shows how much the numbers vary. Whether
 * the host maps chunks side by side depends on how the VM was started, and so does the memory
 * left for such maps.
 *
 * Rows are CHUNK/MEMORY/DIRECTION. "new" is the time to allocate a fresh pinned buffer, make its
 * first copy, and free it.
 */
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "perf/bench.h"
#include "perf/pattern.h"

extern char **environ;

#define SAMPLES 16

enum { PINNED_UP, PINNED_DOWN, PAGEABLE_UP, PAGEABLE_DOWN, FRESH, CASES };
static const char *const case_name[CASES] = {"pinned/h2d", "pinned/d2h", "pageable/h2d",
					     "pageable/d2h", "new"};

struct result {
	unsigned int n;
	double samples[SAMPLES];
};

/* Copies one after the other, without waiting; returns GB/s. */
static double rate(char *host, char *dev, uint64_t bytes, bool up)
{
	unsigned int n = bytes >= 16 << 20 ? 4 : bytes >= 1 << 20 ? 16 : 64;
	double start = bench_now();

	for (unsigned int i = 0; i < n; i++)
		if (up)
			CHECK(cudaMemcpyAsync(dev, host, bytes, cudaMemcpyHostToDevice, 0));
		else
			CHECK(cudaMemcpyAsync(host, dev, bytes, cudaMemcpyDeviceToHost, 0));
	CHECK(cudaStreamSynchronize(0));
	return (double)bytes * n / (bench_now() - start) * 1e-9;
}

static void measure(struct result *r, char *host, char *dev, uint64_t bytes, bool up,
		    unsigned int reps)
{
	pattern_on_gpu(dev, bytes, 9);
	CHECK(cudaMemcpy(host, dev, bytes, cudaMemcpyDeviceToHost));
	if (up)
		CHECK(cudaMemset(dev, 0, bytes));
	rate(host, dev, bytes, up);
	for (r->n = 0; r->n < reps; r->n++)
		r->samples[r->n] = rate(host, dev, bytes, up);
	if (up)
		pattern_gpu_must(dev, bytes, 9, "up");
	else
		pattern_cpu_must(host, bytes, 9, "down");
}

static int child(int out, uint64_t bytes, unsigned int reps)
{
	struct result r[CASES] = {};
	char *pinned, *pageable, *dev;
	double start;

	if (bench_context() != cudaSuccess) {
		fprintf(stderr, "chunks: there is no GPU here: %s\n",
			cudaGetErrorString(cudaGetLastError()));
		return 2;
	}
	CHECK(cudaMalloc((void **)&dev, bytes));
	for (r[FRESH].n = 0; r[FRESH].n < (reps < 4 ? reps : 4); r[FRESH].n++) {
		start = bench_now();
		CHECK(cudaMallocHost((void **)&pinned, bytes));
		CHECK(cudaMemcpy(dev, pinned, bytes, cudaMemcpyHostToDevice));
		CHECK(cudaFreeHost(pinned));
		r[FRESH].samples[r[FRESH].n] = (bench_now() - start) * 1e6;
	}
	CHECK(cudaMallocHost((void **)&pinned, bytes));
	measure(&r[PINNED_UP], pinned, dev, bytes, true, reps);
	measure(&r[PINNED_DOWN], pinned, dev, bytes, false, reps);
	CHECK(cudaFreeHost(pinned));
	pageable = (char *)malloc(bytes);
	REQUIRE(pageable, "out of memory");
	measure(&r[PAGEABLE_UP], pageable, dev, bytes, true, reps);
	measure(&r[PAGEABLE_DOWN], pageable, dev, bytes, false, reps);
	return write(out, r, sizeof(r)) == sizeof(r) ? 0 : 1;
}

static void size_text(char *text, size_t room, uint64_t bytes)
{
	if (bytes % (1 << 20))
		snprintf(text, room, "%lluK", (unsigned long long)bytes >> 10);
	else
		snprintf(text, room, "%lluM", (unsigned long long)bytes >> 20);
}

static void one(const char *self, uint64_t chunk, uint64_t bytes)
{
	char size[32], out[16], reps[16], text[16], name[64], flag[] = "--child-of-chunks";
	char *argv[] = {(char *)self, flag, out, size, reps, NULL};
	struct result r[CASES];
	size_t got = 0;
	int fd[2], status;
	pid_t pid;

	size_text(text, sizeof(text), chunk);
	snprintf(name, sizeof(name), "%s/", text);
	if (!bench_begins(name))
		return;
	setenv("QCU_CHUNK", text, 1);
	REQUIRE(!pipe(fd), "no pipe");
	snprintf(out, sizeof(out), "%d", fd[1]);
	snprintf(size, sizeof(size), "%llu", (unsigned long long)bytes);
	snprintf(reps, sizeof(reps), "%u", bench.reps < SAMPLES ? bench.reps : SAMPLES);
	REQUIRE(!posix_spawn(&pid, "/proc/self/exe", NULL, NULL, argv, environ),
		"%s cannot be started", self);
	close(fd[1]);
	while (got < sizeof(r)) {
		ssize_t n = read(fd[0], (char *)r + got, sizeof(r) - got);

		if (n <= 0)
			break;
		got += (size_t)n;
	}
	close(fd[0]);
	REQUIRE(waitpid(pid, &status, 0) == pid, "lost a program");
	if (WIFEXITED(status) && WEXITSTATUS(status) == 2)
		exit(2);
	REQUIRE(!status && got == sizeof(r), "with chunks of %s the program did not end well", text);
	unsetenv("QCU_CHUNK");
	for (int i = 0; i < CASES; i++) {
		snprintf(name, sizeof(name), "%s/%s", text, case_name[i]);
		bench_row(name, bytes, i == FRESH ? "us" : "GB/s", r[i].samples, r[i].n,
			  i == FRESH ? "-" : pattern_checked(bytes));
	}
}

int main(int argc, char **argv)
{
	uint64_t least = 64 << 10, most = 16 << 20, bytes, chunk;
	const struct bench_extra extras[] = {
		{"least", &least, 64 << 10, 64 << 20, "the smallest chunks (64K)"},
		{"most", &most, 64 << 10, 64 << 20, "the largest chunks (16M)"},
		{NULL, NULL, 0, 0, NULL},
	};

	if (argc == 5 && !strcmp(argv[1], "--child-of-chunks")) {
		bench_name = "chunks";
		setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID", 1);
		return child(atoi(argv[2]), strtoull(argv[3], NULL, 10),
			     (unsigned int)atoi(argv[4]));
	}
	bench_begin_bare(argc, argv, "chunks",
			 "Rates of copies by chunk size and transfer size, GB/s.", 256 << 10,
			 64 << 20, extras);
	REQUIRE(bench.min >= 4096 && bench.min % 64 == 0 && bench.max % 64 == 0,
		"--min and --max: multiples of 64, at least 4096");
	for (chunk = least; chunk <= most; chunk *= 4)
		for (bytes = bench.min; bytes != UINT64_MAX; bytes = bench_next_size(bytes))
			one(argv[0], chunk, bytes);
	return bench_end();
}
