// SPDX-License-Identifier: GPL-2.0-or-later
/* How long a mirror looks for work before it sleeps; the driver does the same for its answers. */
#define _GNU_SOURCE /* CPU_COUNT */
#include <sched.h>
#include <time.h>

#include "qcu-device/spin.h"

#define MIN_NS 1000u

void spin_init(struct spin *s, unsigned int max_us)
{
	cpu_set_t cpus;

	if (sched_getaffinity(0, sizeof(cpus), &cpus) || CPU_COUNT(&cpus) < 2)
		max_us = 0;
	s->max_ns = (uint64_t)max_us * 1000;
	s->now_ns = s->max_ns;
}

void spin_came(struct spin *s, uint64_t after_ns)
{
	if (after_ns > s->max_ns)
		s->now_ns = s->now_ns / 2 < MIN_NS ? 0 : s->now_ns / 2;
	else if (2 * after_ns > s->max_ns)
		s->now_ns = s->max_ns;
	else
		s->now_ns = 2 * after_ns < MIN_NS ? MIN_NS : 2 * after_ns;
	if (s->now_ns > s->max_ns)
		s->now_ns = s->max_ns;
}

uint64_t spin_clock(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}
