// SPDX-License-Identifier: LGPL-2.1-or-later
/* Waits, see waits.h. With one processor a thread sleeps at once. */
#include "tests/transport/waits.h"

#include "include/qcucmd.h"
#include "qcu-device/base/spin.h"

static uint64_t poll_ns; /* how long a thread polls for an answer before it sleeps */
static atomic_uint waiting;

void waits_begin(void)
{
	poll_ns = spin_cpus() > 1 ? 1000 * (uint64_t)spin_default_us() : 0;
}

void waits_are(uint32_t how)
{
	atomic_store(&waiting, how);
}

void wait_init(struct wait *w)
{
	pthread_mutex_init(&w->lock, NULL);
	pthread_cond_init(&w->all_done, NULL);
	atomic_init(&w->pending, 0);
}

static void spin_until_zero(const atomic_uint *n)
{
	uint32_t how = atomic_load_explicit(&waiting, memory_order_relaxed);
	uint64_t began = 0;
	unsigned int i;

	if (!poll_ns || how == QCU_WAIT_SLEEP)
		return;
	for (i = 1; atomic_load_explicit(n, memory_order_acquire); i++) {
		spin_pause();
		if (i % 64 || how == QCU_WAIT_LOOK)
			continue;
		if (!began)
			began = spin_clock();
		if (!spin_more(began, poll_ns))
			return;
	}
}

void wait_for_all(struct wait *w)
{
	spin_until_zero(&w->pending);
	if (!atomic_load_explicit(&w->pending, memory_order_acquire))
		return;
	pthread_mutex_lock(&w->lock);
	while (atomic_load(&w->pending))
		pthread_cond_wait(&w->all_done, &w->lock);
	pthread_mutex_unlock(&w->lock);
}
