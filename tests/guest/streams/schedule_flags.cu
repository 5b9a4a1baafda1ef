// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A program can ask to spin or to sleep while it waits for the GPU. The test sees the difference
 * in the processor time of a long wait. Each case runs in a process of its own, because a
 * context keeps its flags.
 */
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

#define WAIT_NS 100000000ull
#define SPINS	0.05 /* of a processor, at least; others may use it, too */
#define SLEEPS	0.2  /* at most; a busy machine makes a system call seem long */
#define TRIES	100  /* on a busy machine the first ones may fail */

extern char **environ;

__global__ void take_time(unsigned long long ns, unsigned int *done)
{
	unsigned long long began, now;

	asm volatile("mov.u64 %0, %globaltimer;" : "=l"(began));
	do {
		__nanosleep(100000);
		asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
	} while (now - began < ns);
	*done = 1;
}

static double seconds(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Returns the share of a processor that a wait uses. */
static double wait_once(unsigned int *done)
{
	double cpu, began;

	CHECK(cudaMemset(done, 0, sizeof(*done)));
	take_time<<<1, 1>>>(WAIT_NS, done);
	CHECK_LAUNCH();
	cpu = seconds(CLOCK_THREAD_CPUTIME_ID);
	began = seconds(CLOCK_MONOTONIC);
	CHECK(cudaDeviceSynchronize());
	return (seconds(CLOCK_THREAD_CPUTIME_ID) - cpu) / (seconds(CLOCK_MONOTONIC) - began);
}

/* Tries again, because other programs may have used the processors. */
static int wait_with(unsigned int flags)
{
	bool sleeps = flags == cudaDeviceScheduleBlockingSync;
	unsigned int *done, result, got, i;
	double share = sleeps ? 1 : 0;

	CHECK(cudaSetDeviceFlags(flags));
	CHECK(cudaGetDeviceFlags(&got));
	REQUIRE((got & cudaDeviceScheduleMask) == flags, "%#x", got);
	CHECK(cudaMalloc((void **)&done, sizeof(*done)));
	for (i = 0; i < TRIES && (sleeps ? share > SLEEPS : share < SPINS); i++) {
		share = wait_once(done);
		CHECK(cudaMemcpy(&result, done, sizeof(result), cudaMemcpyDeviceToHost));
		REQUIRE(result == 1, "%u", result);
	}
	if (sysconf(_SC_NPROCESSORS_ONLN) > 1)
		REQUIRE(sleeps ? share <= SLEEPS : share >= SPINS,
			"a wait takes %.2f of a processor", share);
	return 0;
}

static const struct way {
	const char *name;
	unsigned int flags;
} ways[] = {
	{"spin", cudaDeviceScheduleSpin},
	{"yield", cudaDeviceScheduleYield},
	{"sleep", cudaDeviceScheduleBlockingSync},
};

int main(int argc, char **argv)
{
	for (const struct way &way : ways) {
		char *args[] = {argv[0], (char *)way.name, NULL};
		int status;
		pid_t pid;

		if (argc > 1 && strcmp(argv[1], way.name) == 0)
			return wait_with(way.flags);
		if (argc > 1)
			continue;
		REQUIRE(posix_spawn(&pid, "/proc/self/exe", NULL, NULL, args, environ) == 0, "%s",
			way.name);
		REQUIRE(waitpid(pid, &status, 0) == pid, "%s", way.name);
		REQUIRE(status == 0, "%s: %d", way.name, status);
	}
	return verified("programs that ask for it spin, or sleep, while they wait");
}
