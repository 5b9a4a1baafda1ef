// SPDX-License-Identifier: GPL-2.0-or-later
/* How long a mirror's threads poll for work before they sleep. */
#define _GNU_SOURCE /* CPU_COUNT */
#include <sched.h>
#include <time.h>

#include "qcu-device/base/spin.h"

#define LEAST_NS 20000u
#define ALONE_NS 200000u /* how long to poll without offering the processor to others */

unsigned int spin_cpus(void)
{
	cpu_set_t cpus;

	return sched_getaffinity(0, sizeof(cpus), &cpus) ? 1 : (unsigned int)CPU_COUNT(&cpus);
}

unsigned int spin_default_us(void)
{
	return spin_cpus() < 4 ? 20 : 2000;
}

void spin_init(struct spin *s, unsigned int max_us)
{
	if (spin_cpus() < 2)
		max_us = 0;
	s->max_ns = (uint64_t)max_us * 1000;
	s->now_ns = s->max_ns;
}

void spin_came(struct spin *s, uint64_t after_ns)
{
	if (after_ns <= s->max_ns)
		s->now_ns = s->max_ns;
	else if (s->now_ns > LEAST_NS)
		s->now_ns = s->now_ns / 2 > LEAST_NS ? s->now_ns / 2 : LEAST_NS;
}

uint64_t spin_clock(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

bool spin_more(uint64_t began, uint64_t ns)
{
	uint64_t polled = spin_clock() - began;

	if (polled > ALONE_NS && polled < ns)
		sched_yield();
	return polled < ns;
}
