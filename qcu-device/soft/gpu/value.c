/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Numbers that streams write to memory or wait for. Anybody may write the number that a stream
 * waits for: a kernel, a copy, the guest's processors. Nothing says when that happens, so the
 * stream's thread looks again and again, at first often, then seldom.
 */
#include <stdlib.h>
#include <time.h>

#include "qcu-device/soft/gpu/soft.h"

#define SOONEST_NS 2000l
#define LATEST_NS  500000l

struct value_work {
	struct soft_work work;
	struct be *be;
	struct qcu_stream_value v;
};

static bool is_wait_satisfied(const struct qcu_stream_value *v)
{
	const void *p = (const void *)(uintptr_t)v->addr;
	uint64_t now, mask = v->bytes == 8 ? UINT64_MAX : UINT32_MAX, top = mask ^ (mask >> 1);

	/* Acquire: what was written before the number is visible to the work behind the wait. */
	now = v->bytes == 8 ? __atomic_load_n((const uint64_t *)p, __ATOMIC_ACQUIRE)
			    : __atomic_load_n((const uint32_t *)p, __ATOMIC_ACQUIRE);
	switch (v->flags & 3) {
	case QCU_VALUE_GEQ:
		return !((now - v->value) & top);
	case QCU_VALUE_EQ:
		return now == v->value;
	case QCU_VALUE_AND:
		return now & v->value;
	}
	return ~(now | v->value) & mask;
}

static int value_wait_run(struct soft_work *w)
{
	struct value_work *x = (struct value_work *)w;
	struct timespec pause = {.tv_nsec = SOONEST_NS};
	struct be *be = x->be;

	if (!soft_work_usable(be, w, x->v.addr, x->v.bytes))
		return QCU_ERR_IllegalAddress;
	while (!is_wait_satisfied(&x->v) && !__atomic_load_n(&be->cancel, __ATOMIC_RELAXED) &&
	       !atomic_load(&be->no_values)) {
		nanosleep(&pause, NULL);
		if (pause.tv_nsec < LATEST_NS)
			pause.tv_nsec *= 2;
	}
	return 0;
}

static int write_run(struct soft_work *w)
{
	struct value_work *x = (struct value_work *)w;
	void *p = (void *)(uintptr_t)x->v.addr;

	if (!soft_work_usable(x->be, w, x->v.addr, x->v.bytes))
		return QCU_ERR_IllegalAddress;
	if (x->v.bytes == 8)
		__atomic_store_n((uint64_t *)p, x->v.value, __ATOMIC_RELEASE);
	else
		__atomic_store_n((uint32_t *)p, (uint32_t)x->v.value, __ATOMIC_RELEASE);
	soft_check_filled(x->be, x->v.addr, x->v.bytes);
	return 0;
}

static void value_wait_free(struct soft_work *w)
{
	((struct value_work *)w)->be->calls--;
	free(w);
}

void soft_values_end(struct be *be)
{
	atomic_store(&be->no_values, true);
}

int soft_stream_value(struct be *be, struct be_stream *s, const struct qcu_stream_value *v)
{
	int err = atomic_load(&be->sticky);
	struct value_work *x;

	if (err)
		return err;
	if (!soft_mem_usable(be, v->addr, v->bytes))
		return QCU_ERR_InvalidValue;
	x = calloc(1, sizeof(*x));
	if (!x)
		return QCU_ERR_MemoryAllocation;
	x->be = be;
	x->v = *v;
	if (v->what == QCU_VALUE_WRITE) {
		x->work = (struct soft_work){.run = write_run, .free = soft_work_free};
		return soft_submit(s, &x->work, SOFT_SMALL, NULL);
	}
	x->work = (struct soft_work){.run = value_wait_run, .free = value_wait_free};
	pthread_mutex_lock(&be->lock);
	/* As for a host function: only the guest can end the wait, so nobody may wait for room. */
	be->calls++;
	pthread_cond_broadcast(&be->progress);
	pthread_mutex_unlock(&be->lock);
	return soft_submit(s, &x->work, SOFT_QUEUE, NULL);
}
