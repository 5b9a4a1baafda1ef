// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * How long does a program that uses CUDA take until its first result, and until its end? The
 * program is this one, started again for each sample. It reports to its parent when it reached
 * each point, on a clock that both share. The parent does not use CUDA until the end.
 *
 * BENCH_LINKED names this program with the runtime linked in, the same name with _stripped one
 * without a symbol table, and BENCH_MODULE qCUDA's loader module. If they are there, there are rows
 * for what the module adds to the start of such a program: until main(), which calls no CUDA, with
 * the module and without. Once by the clock, and once in time of a processor, which other work on
 * the machine does not change.
 */
#include <spawn.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "perf/bench.h"

extern char **environ;

enum { MAIN, DEVICE, MEMORY, RESULT, TORN, STAMPS };
static const char *const stamp_name[] = {"start-to-main", "first-call", "first-memory",
					 "first-result", "device-reset"};

#define N 1024

__global__ void add_one(int *v)
{
	v[blockIdx.x * blockDim.x + threadIdx.x] += 1;
}

/* Seconds that processors have worked for this process. */
static double worked(void)
{
	struct timespec t;

	REQUIRE(!clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t), "no clock");
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int child(int fd)
{
	double stamp[STAMPS];
	static int v[N];
	int *dev;

	stamp[MAIN] = bench_now();
	stamp[DEVICE] = stamp[MAIN] + worked();
	if (getenv("BENCH_ONLY_START"))
		return write(fd, stamp, sizeof(stamp)) == sizeof(stamp) ? 0 : 1;
	if (bench_context() != cudaSuccess) {
		fprintf(stderr, "init: there is no GPU here: %s\n",
			cudaGetErrorString(cudaGetLastError()));
		return 2;
	}
	stamp[DEVICE] = bench_now();
	CHECK(cudaMalloc((void **)&dev, sizeof(v)));
	CHECK(cudaMemcpy(dev, v, sizeof(v), cudaMemcpyHostToDevice));
	stamp[MEMORY] = bench_now();
	add_one<<<N / 128, 128>>>(dev);
	CHECK(cudaGetLastError());
	CHECK(cudaMemcpy(v, dev, sizeof(v), cudaMemcpyDeviceToHost));
	stamp[RESULT] = bench_now();
	for (int i = 0; i < N; i++)
		REQUIRE(v[i] == 1, "element %d is %d", i, v[i]);
	CHECK(cudaFree(dev));
	CHECK(cudaDeviceReset());
	stamp[TORN] = bench_now();
	return write(fd, stamp, sizeof(stamp)) == sizeof(stamp) ? 0 : 1;
}

/* Stores the seconds from the start to each stamp, and to the end. */
static void start_one(const char *self, const char *path, char **env, double *stamp, double *end)
{
	char fd_text[16], flag[] = "--child-of-init";
	char *argv[] = {(char *)self, flag, fd_text, NULL};
	int fd[2], status;
	double start;
	pid_t pid;

	REQUIRE(!pipe(fd), "no pipe");
	snprintf(fd_text, sizeof(fd_text), "%d", fd[1]);
	start = bench_now();
	REQUIRE(!posix_spawn(&pid, path, NULL, NULL, argv, env), "%s cannot be started", self);
	REQUIRE(waitpid(pid, &status, 0) == pid, "lost the child");
	*end = bench_now() - start;
	close(fd[1]);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 2)
		exit(2);
	REQUIRE(WIFEXITED(status) && !WEXITSTATUS(status), "the program did not end well");
	REQUIRE(read(fd[0], stamp, STAMPS * sizeof(*stamp)) == STAMPS * sizeof(*stamp),
		"the program told nothing");
	close(fd[0]);
	for (int i = 0; i < STAMPS; i++)
		stamp[i] -= start;
}

/* Rows for the start of a program with the runtime linked in. The three kinds take turns. */
static void start_linked(unsigned int reps)
{
	static const char *const name[] = {
		"linked/start-to-main",		 "linked/start-to-main-with-module",
		"linked/start-to-main-stripped", "linked/cpu-to-main",
		"linked/cpu-to-main-with-module",  "linked/cpu-to-main-stripped"};
	const char *linked = getenv("BENCH_LINKED"), *module = getenv("BENCH_MODULE");
	char audit[4096], preload[4096], stripped[4096], only[] = "BENCH_ONLY_START=1";
	char *plain[] = {only, NULL}, *with_module[] = {only, audit, preload, NULL};
	double took[6][64], stamp[STAMPS] = {0}, end;
	unsigned int i, k, wanted = 0;

	for (k = 0; k < 6; k++)
		wanted += bench_wants(name[k]);
	if (!linked || !module || !*module || !wanted)
		return;
	snprintf(stripped, sizeof(stripped), "%s_stripped", linked);
	if (access(linked, X_OK) || access(stripped, X_OK) || access(module, R_OK))
		return;
	snprintf(audit, sizeof(audit), "LD_AUDIT=%s", module);
	snprintf(preload, sizeof(preload), "LD_PRELOAD=%.*s/libcudart.so.13",
		 (int)(strrchr(module, '/') - module), module);
	reps = reps < 2 ? reps : 4 * reps;
	for (i = 0; i <= reps; i++)
		for (k = 0; k < 3; k++) {
			start_one(linked, k == 2 ? stripped : linked, k ? with_module : plain, stamp,
				  &end);
			if (!i) /* the first one reads the files */
				continue;
			took[k][i - 1] = stamp[MAIN] * 1e3;
			took[3 + k][i - 1] = (stamp[DEVICE] - stamp[MAIN]) * 1e3;
		}
	for (k = 0; k < 6; k++)
		bench_row(name[k], 0, "ms", took[k], reps, "whole");
}

int main(int argc, char **argv)
{
	double took[STAMPS + 3][16], stamp[STAMPS], end;
	unsigned int reps, i, k;

	if (argc == 3 && !strcmp(argv[1], "--child-of-init")) {
		bench_name = "init";
		return child(atoi(argv[2]));
	}
	bench_begin_bare(argc, argv, "init",
			 "From a process's start to its first result and its end, in ms.", 4, 4,
			 NULL);
	/* The first run warms up the page cache, and the driver's cache of kernels. */
	start_one(argv[0], "/proc/self/exe", environ, stamp, &end);
	reps = bench.reps < 16 ? bench.reps : 16;
	for (i = 0; i < reps; i++) {
		start_one(argv[0], "/proc/self/exe", environ, stamp, &end);
		took[0][i] = stamp[MAIN] * 1e3;
		for (k = 1; k < STAMPS; k++)
			took[k][i] = (stamp[k] - stamp[k - 1]) * 1e3;
		took[STAMPS][i] = (end - stamp[TORN]) * 1e3;
		took[STAMPS + 1][i] = stamp[RESULT] * 1e3;
		took[STAMPS + 2][i] = end * 1e3;
	}
	for (k = 0; k < STAMPS; k++)
		if (bench_wants(stamp_name[k]))
			bench_row(stamp_name[k], 0, "ms", took[k], reps, "whole");
	if (bench_wants("exit"))
		bench_row("exit", 0, "ms", took[STAMPS], reps, "whole");
	if (bench_wants("start-to-result"))
		bench_row("start-to-result", 0, "ms", took[STAMPS + 1], reps, "whole");
	if (bench_wants("start-to-end"))
		bench_row("start-to-end", 0, "ms", took[STAMPS + 2], reps, "whole");
	start_linked(reps);
	return bench_end();
}
