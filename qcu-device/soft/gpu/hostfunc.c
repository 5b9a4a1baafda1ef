/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Host functions: work that calls a function. The call runs on the stream's own thread, so that a
 * stream waits for its own host functions and not for those of other streams.
 */
#include <stdlib.h>

#include "qcu-device/soft/gpu/soft.h"

struct call_work {
	struct soft_work work;
	struct be *be;
	void (*fn)(void *arg, int error);
	void *arg;
};

static int call_run(struct soft_work *w)
{
	struct call_work *c = (struct call_work *)w;

	c->fn(c->arg, atomic_load(&c->be->sticky));
	return 0;
}

static void call_free(struct soft_work *w)
{
	((struct call_work *)w)->be->calls--;
	free(w);
}

int soft_host_func(struct be *be, void (*fn)(void *arg, int error), void *arg, bool always,
		   struct be_stream *s)
{
	int err = atomic_load(&be->sticky);
	struct call_work *c;

	if (err)
		return err;
	c = calloc(1, sizeof(*c));
	if (!c)
		return QCU_ERR_MemoryAllocation;
	c->work = (struct soft_work){.run = call_run, .free = call_free, .always = always};
	c->be = be;
	c->fn = fn;
	c->arg = arg;
	pthread_mutex_lock(&be->lock);
	be->calls++;
	/*
	 * Wakes the callers that wait in soft_queue_wait. The queue may now depend on the guest, so
	 * they must not wait any longer.
	 */
	pthread_cond_broadcast(&be->progress);
	pthread_mutex_unlock(&be->lock);
	return soft_submit(s, &c->work, SOFT_QUEUE, NULL);
}
