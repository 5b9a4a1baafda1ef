/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A time limit for kernels. It is off unless --kernel-timeout or QCU_SOFT_TIMEOUT sets it, in
 * seconds; if both do, the shorter one applies. A GPU that also drives a screen has such a limit.
 * Here it is for tests, and for debugging a kernel that does not end. A kernel that exceeds the
 * limit fails with an error that ends the instance, like a fault.
 */
#include <stdlib.h>
#include <time.h>

#include "qcu-device/soft/gpu/soft.h"

#define SECONDS_MAX 1000000ul

bool soft_watchdog_limit(unsigned int most, unsigned int *seconds)
{
	const char *text = getenv("QCU_SOFT_TIMEOUT");
	unsigned long v;
	char *end;

	*seconds = most;
	if (!text || !*text)
		return true;
	v = strtoul(text, &end, 10);
	if (*end || v > SECONDS_MAX) {
		soft_say("QCU_SOFT_TIMEOUT=%s: not a number of seconds", text);
		return false;
	}
	if (v && (!most || v < most))
		*seconds = (unsigned int)v;
	return true;
}

static bool is_earlier_time(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec != b->tv_sec ? a->tv_sec < b->tv_sec : a->tv_nsec < b->tv_nsec;
}

static void *watch(void *arg)
{
	struct be *be = arg;
	struct soft_running *r, *first;
	struct timespec now;

	pthread_mutex_lock(&be->lock);
	while (!be->closing && !atomic_load(&be->sticky)) {
		for (r = first = be->running; r; r = r->next)
			if (is_earlier_time(&r->deadline, &first->deadline))
				first = r;
		if (!first) {
			pthread_cond_wait(&be->watch, &be->lock);
			continue;
		}
		clock_gettime(CLOCK_MONOTONIC, &now);
		if (is_earlier_time(&now, &first->deadline)) {
			pthread_cond_timedwait(&be->watch, &be->lock, &first->deadline);
			continue;
		}
		soft_say("kernel %s has run for %u s and is stopped", first->name, be->timeout);
		soft_fail(be, QCU_ERR_LaunchTimeout);
	}
	pthread_mutex_unlock(&be->lock);
	return NULL;
}

bool soft_watchdog_start(struct be *be)
{
	if (!be->timeout)
		return true;
	be->watched = !pthread_create(&be->watchdog, NULL, watch, be);
	return be->watched;
}

void soft_watchdog_stop(struct be *be)
{
	if (!be->watched)
		return;
	pthread_mutex_lock(&be->lock);
	pthread_cond_signal(&be->watch);
	pthread_mutex_unlock(&be->lock);
	pthread_join(be->watchdog, NULL);
	be->watched = false;
}

void soft_watchdog_begin(struct be *be, struct soft_running *r, const char *name)
{
	if (!be->watched)
		return;
	clock_gettime(CLOCK_MONOTONIC, &r->deadline);
	r->deadline.tv_sec += be->timeout;
	r->name = name;
	pthread_mutex_lock(&be->lock);
	r->next = be->running;
	be->running = r;
	pthread_cond_signal(&be->watch);
	pthread_mutex_unlock(&be->lock);
}

void soft_watchdog_end(struct be *be, struct soft_running *r)
{
	struct soft_running **p;

	if (!be->watched)
		return;
	pthread_mutex_lock(&be->lock);
	for (p = &be->running; *p != r; p = &(*p)->next)
		;
	*p = r->next;
	pthread_mutex_unlock(&be->lock);
}
