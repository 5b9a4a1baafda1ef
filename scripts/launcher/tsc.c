// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * qcu-tsc: prints how many kHz the processor's time-stamp counter has. The counter of an emulated
 * processor is the host's, and a guest's kernel on a busy host measures it wrongly: its clock then
 * runs many times too fast.
 */
#include <stdint.h>
#include <stdio.h>
#include <time.h>
#include <x86intrin.h>

#define TRIES	  32
#define BETWEEN	  20000000 /* ns; the error is a few parts in a million */
#define KHZ_LEAST 100000u
#define KHZ_MOST  10000000u

struct moment {
	uint64_t ticks, ns;
};

/* Of several tries the one that took the least time: nothing has come between. */
static struct moment read_both_clocks(void)
{
	struct moment best = {0, 0};
	uint64_t least = UINT64_MAX;
	struct timespec t;
	int i;

	for (i = 0; i < TRIES; i++) {
		uint64_t before = __rdtsc(), after;

		clock_gettime(CLOCK_MONOTONIC_RAW, &t);
		after = __rdtsc();
		if (after - before >= least)
			continue;
		least = after - before;
		best.ticks = before + least / 2;
		best.ns = (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
	}
	return best;
}

int main(void)
{
	const struct timespec pause = {.tv_nsec = BETWEEN};
	struct moment from = read_both_clocks(), to;
	uint64_t khz;

	nanosleep(&pause, NULL);
	to = read_both_clocks();
	if (to.ns <= from.ns || to.ticks <= from.ticks)
		return 1;
	khz = (uint64_t)((double)(to.ticks - from.ticks) * 1e6 / (double)(to.ns - from.ns));
	if (khz < KHZ_LEAST || khz > KHZ_MOST)
		return 1;
	printf("%llu\n", (unsigned long long)khz);
	return 0;
}
