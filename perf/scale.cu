// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * How do several programs share one GPU? 1, 2, 4 and 8 processes each upload a buffer, let a
 * kernel change it and download it, over and over, for the same stretch of time. The time begins
 * for all of them at once. Rows: what they moved together, the program that moved least, the
 * program that moved most, and the ratio of these two. --programs N runs only N programs.
 *
 * Several VMs run one program each. Two files make them begin together: when this program is
 * ready, it makes the file that PERF_READY names. It goes on when the file that PERF_GO names
 * exists.
 */
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "perf/bench.h"
#include "perf/pattern.h"

#define MOST 64

extern char **environ;

__global__ void add_one(uint32_t *word, uint64_t words)
{
	uint64_t i = blockIdx.x * (uint64_t)blockDim.x + threadIdx.x;

	for (; i < words; i += gridDim.x * (uint64_t)blockDim.x)
		word[i]++;
}

struct report {
	double bytes, seconds;
};

/* Reports that it is ready, waits for the start, works, and reports what it has done. */
static int child(int in, int out, uint64_t bytes, double seconds)
{
	uint64_t words = bytes / 4, rounds = 0;
	uint32_t *up, *down, *dev;
	struct report r = {};
	char word = 'r';
	double start;

	if (bench_context() != cudaSuccess) {
		fprintf(stderr, "scale: there is no GPU here: %s\n",
			cudaGetErrorString(cudaGetLastError()));
		return 2;
	}
	CHECK(cudaMallocHost((void **)&up, bytes));
	CHECK(cudaMallocHost((void **)&down, bytes));
	CHECK(cudaMalloc((void **)&dev, bytes));
	for (uint64_t i = 0; i < words; i += 1021)
		up[i] = (uint32_t)i;
	up[words - 1] = (uint32_t)(words - 1);
	add_one<<<pattern_blocks(words), 256>>>(dev, words);
	CHECK(cudaDeviceSynchronize());
	REQUIRE(write(out, &word, 1) == 1 && read(in, &word, 1) == 1, "the parent is gone");
	start = bench_now();
	do {
		CHECK(cudaMemcpyAsync(dev, up, bytes, cudaMemcpyHostToDevice, 0));
		add_one<<<pattern_blocks(words), 256>>>(dev, words);
		CHECK(cudaMemcpyAsync(down, dev, bytes, cudaMemcpyDeviceToHost, 0));
		CHECK(cudaStreamSynchronize(0));
		rounds++;
		r.seconds = bench_now() - start;
	} while (r.seconds < seconds);
	r.bytes = 2.0 * (double)bytes * (double)rounds;
	for (uint64_t i = 0; i < words; i += 1021)
		REQUIRE(down[i] == i + 1, "word %llu is wrong", (unsigned long long)i);
	REQUIRE(down[words - 1] == words, "the last word is wrong");
	return write(out, &r, sizeof(r)) == sizeof(r) ? 0 : 1;
}

struct program {
	pid_t pid;
	int to, from;
};

static void start(struct program *p, const char *self, uint64_t bytes, uint64_t ms)
{
	char in[16], out[16], size[32], time[32], flag[] = "--child-of-scale";
	char *argv[] = {(char *)self, flag, in, out, size, time, NULL};
	int to[2], from[2];

	REQUIRE(!pipe(to) && !pipe(from), "no pipe");
	snprintf(in, sizeof(in), "%d", to[0]);
	snprintf(out, sizeof(out), "%d", from[1]);
	snprintf(size, sizeof(size), "%llu", (unsigned long long)bytes);
	snprintf(time, sizeof(time), "%llu", (unsigned long long)ms);
	REQUIRE(!posix_spawn(&p->pid, "/proc/self/exe", NULL, NULL, argv, environ),
		"%s cannot be started", self);
	close(to[0]);
	close(from[1]);
	p->to = to[1];
	p->from = from[0];
}

/* If a child's pipe ends, the child has ended; its exit status says more. */
static void hear(struct program *p, void *what, ssize_t bytes)
{
	int status;

	if (read(p->from, what, (size_t)bytes) == bytes)
		return;
	REQUIRE(waitpid(p->pid, &status, 0) == p->pid, "lost a program");
	if (WIFEXITED(status) && WEXITSTATUS(status) == 2)
		exit(2);
	BENCH_FAIL(1, "a program ended before its time");
}

static void wait_for_others(void)
{
	const char *ready = getenv("PERF_READY"), *go = getenv("PERF_GO");
	double start = bench_now();
	int fd;

	if (!ready || !go)
		return;
	fd = open(ready, O_CREAT | O_WRONLY, 0644);
	REQUIRE(fd >= 0, "%s cannot be made", ready);
	close(fd);
	while (access(go, F_OK)) {
		REQUIRE(bench_now() - start < 120, "%s does not come", go);
		usleep(2000);
	}
}

static void together(const char *self, unsigned int n, uint64_t bytes, uint64_t ms)
{
	double total[1] = {0}, least[1] = {1e30}, most[1] = {0}, ratio[1];
	struct program p[MOST];
	char name[64], word;
	unsigned int i;
	int status;

	snprintf(name, sizeof(name), "%u-programs", n);
	if (!bench_begins(name))
		return;
	for (i = 0; i < n; i++)
		start(&p[i], self, bytes, ms);
	for (i = 0; i < n; i++)
		hear(&p[i], &word, 1);
	wait_for_others();
	for (i = 0; i < n; i++)
		REQUIRE(write(p[i].to, "g", 1) == 1, "a program is gone");
	for (i = 0; i < n; i++) {
		struct report r;
		double rate;

		hear(&p[i], &r, sizeof(r));
		rate = r.bytes / r.seconds * 1e-9;
		total[0] += rate;
		least[0] = rate < least[0] ? rate : least[0];
		most[0] = rate > most[0] ? rate : most[0];
	}
	for (i = 0; i < n; i++) {
		REQUIRE(waitpid(p[i].pid, &status, 0) == p[i].pid && !status,
			"a program did not end well");
		close(p[i].to);
		close(p[i].from);
	}
	ratio[0] = most[0] / least[0];
	snprintf(name, sizeof(name), "%u-programs/total", n);
	bench_row(name, bytes, "GB/s", total, 1, "sampled");
	snprintf(name, sizeof(name), "%u-programs/least", n);
	bench_row(name, bytes, "GB/s", least, 1, "sampled");
	snprintf(name, sizeof(name), "%u-programs/most", n);
	bench_row(name, bytes, "GB/s", most, 1, "sampled");
	snprintf(name, sizeof(name), "%u-programs/most-to-least", n);
	bench_row(name, bytes, "x", ratio, 1, "sampled");
}

int main(int argc, char **argv)
{
	uint64_t programs = 0, ms = 3000;
	const struct bench_extra extras[] = {
		{"programs", &programs, 1, MOST, "so many at once, and not 1, 2, 4 and 8"},
		{"ms", &ms, 1, 600000, "how long they work (3000)"},
		{NULL, NULL, 0, 0, NULL},
	};

	if (argc == 6 && !strcmp(argv[1], "--child-of-scale")) {
		bench_name = "scale";
		setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID", 1);
		return child(atoi(argv[2]), atoi(argv[3]), strtoull(argv[4], NULL, 10),
			     strtod(argv[5], NULL) * 1e-3);
	}
	bench_begin_bare(argc, argv, "scale",
			 "Programs that use the GPU at the same time, GB/s. --max is their buffers' size.",
			 4, 16 << 20, extras);
	REQUIRE(bench.max >= 4096 && bench.max % 4 == 0, "--max: at least 4096");
	if (programs)
		together(argv[0], (unsigned int)programs, bench.max, ms);
	else
		for (unsigned int n = 1; n <= 8; n *= 2)
			together(argv[0], n, bench.max, ms);
	return bench_end();
}
