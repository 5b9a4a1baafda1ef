// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Limits how long a kernel may run, for a backend that does not do so itself (--kernel-timeout with
 * the cuda backend).
 *
 * Each kernel is put between two events of ours. When the first event is done, the stream has
 * reached the kernel. So the time in which a kernel waits for other work, or for a host function of
 * the guest, does not count. If the second event is not done in time, the session ends: CUDA can
 * stop a kernel only by ending the process.
 *
 * A call of a library counts as one kernel, as the launch of a graph does. The library may wait for
 * its own work before it returns, so the call is in the list from its beginning. Until it returns
 * it counts only while its stream is at work: a library may compute on the CPU as long as it likes.
 *
 * One thread checks a few times within the limit. For each stream it queries only the oldest
 * kernel. Without a limit none of this happens, and a launch costs one extra test of a number.
 */
#include <stdlib.h>
#include <time.h>

#include "qcu-device/base/complain.h"
#include "qcu-device/commands/commands.h"

#define EVENT_DISABLE_TIMING 2u /* cudaEventDisableTiming */
#define NS_PER_S	     1000000000ull
#define LOOK_MAX_NS	     NS_PER_S
#define LOOKS		     8u /* how often the thread checks within the limit */

struct timed {
	struct timed *next;
	unsigned int device;
	struct be_event *before, *after;
	bool open;	/* a call that has not returned: `after` is not in the stream yet */
	uint64_t began; /* when we saw that it had begun; 0: not yet */
};

/*
 * An entry stays after its stream is destroyed. Another stream may get the same address; its
 * kernels are then added behind those in the entry.
 */
struct timed_stream {
	struct timed_stream *next;
	struct be_stream *s;
	unsigned int device;
	struct timed *first, **last;
};

void mir_times_init(struct mirror *m)
{
	struct kernel_times *k = &m->times;
	const struct be_ops *ops = m->cfg.ops;
	pthread_condattr_t attr;

	pthread_mutex_init(&k->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&k->more, &attr);
	pthread_condattr_destroy(&attr);
	if (!ops->kernel_time)
		k->limit_ns = m->cfg.options.kernel_seconds * NS_PER_S;
}

static void destroy_timed(struct mirror *m, struct timed *t)
{
	if (t->before)
		m->cfg.ops->event_destroy(m->be, t->before);
	if (t->after)
		m->cfg.ops->event_destroy(m->be, t->after);
	free(t);
}

/* Drops the entries of one device, or of all if device is NULL. No other thread may use them. */
static void drop_timed_entries(struct mirror *m, const unsigned int *device)
{
	struct kernel_times *k = &m->times;
	struct timed_stream **at, *st;
	struct timed **sp, *t;

	for (at = &k->streams; (st = *at);) {
		if (device && st->device != *device) {
			at = &st->next;
			continue;
		}
		while ((t = st->first)) {
			st->first = t->next;
			destroy_timed(m, t);
		}
		*at = st->next;
		free(st);
	}
	for (sp = &k->spare; (t = *sp);) {
		if (device && t->device != *device) {
			sp = &t->next;
			continue;
		}
		*sp = t->next;
		destroy_timed(m, t);
	}
}

void mir_times_reset(struct mirror *m, unsigned int device)
{
	pthread_mutex_lock(&m->times.lock);
	drop_timed_entries(m, &device);
	pthread_mutex_unlock(&m->times.lock);
}

void mir_times_fini(struct mirror *m)
{
	struct kernel_times *k = &m->times;

	pthread_mutex_lock(&k->lock);
	k->stop = true;
	pthread_cond_signal(&k->more);
	pthread_mutex_unlock(&k->lock);
	if (k->running)
		pthread_join(k->thread, NULL);
	drop_timed_entries(m, NULL);
	pthread_cond_destroy(&k->more);
	pthread_mutex_destroy(&k->lock);
}

/* ---- the thread ---- */

static bool is_event_done(struct mirror *m, struct be_event *e)
{
	return m->cfg.ops->event_query(m->be, e) != QCU_ERR_NotReady;
}

/* The call has not returned, so its stream has not gone. */
static bool at_work(struct mirror *m, const struct timed_stream *st)
{
	const struct be_ops *ops = m->cfg.ops;

	return ops->stream_query && ops->stream_query(m->be, st->s) == QCU_ERR_NotReady;
}

/* The caller holds k->lock. Has the oldest kernel of this stream run for too long? */
static bool too_long(struct mirror *m, struct timed_stream *st, uint64_t now)
{
	struct kernel_times *k = &m->times;
	struct timed *t;

	/*
	 * After an error the context has ended and nothing runs any more, so an error also counts
	 * as done.
	 */
	while ((t = st->first) && !t->open && is_event_done(m, t->after)) {
		st->first = t->next;
		if (!st->first)
			st->last = &st->first;
		t->next = k->spare;
		k->spare = t;
	}
	if (!t)
		return false;
	if (t->open && !at_work(m, st))
		t->began = 0;
	else if (!t->began && is_event_done(m, t->before))
		t->began = now;
	return t->began && now - t->began > k->limit_ns;
}

void mir_times_look(struct mirror *m, uint64_t now)
{
	struct kernel_times *k = &m->times;
	struct timed_stream *st;
	bool over = false;

	pthread_mutex_lock(&m->use[MIR_USER_TIMING].lock);
	pthread_mutex_lock(&k->lock);
	for (st = k->streams; st && !over && !k->told && !m->abandoned; st = st->next)
		over = too_long(m, st, now);
	k->told |= over;
	pthread_mutex_unlock(&k->lock);
	pthread_mutex_unlock(&m->use[MIR_USER_TIMING].lock);
	if (!over)
		return;
	complain("a kernel has run for more than %llu s: the session ends",
		 (unsigned long long)(k->limit_ns / NS_PER_S));
	if (m->cfg.timed_out)
		m->cfg.timed_out(m->cfg.timed_out_ctx);
}

static void *times_main(void *arg)
{
	struct mirror *m = arg;
	struct kernel_times *k = &m->times;
	uint64_t pause = k->limit_ns / LOOKS < LOOK_MAX_NS ? k->limit_ns / LOOKS : LOOK_MAX_NS;
	struct timespec until;

	pthread_mutex_lock(&k->lock);
	while (!k->stop) {
		clock_gettime(CLOCK_MONOTONIC, &until);
		pause += (uint64_t)until.tv_nsec;
		until.tv_sec += (time_t)(pause / NS_PER_S);
		until.tv_nsec = (long)(pause % NS_PER_S);
		pause = k->limit_ns / LOOKS < LOOK_MAX_NS ? k->limit_ns / LOOKS : LOOK_MAX_NS;
		pthread_cond_timedwait(&k->more, &k->lock, &until);
		if (k->stop)
			break;
		pthread_mutex_unlock(&k->lock);
		mir_times_look(m, spin_clock());
		pthread_mutex_lock(&k->lock);
	}
	pthread_mutex_unlock(&k->lock);
	return NULL;
}

/* ---- the lanes' side ---- */

/* The caller holds k->lock. NULL: there is none for this device. */
static struct timed *take_spare(struct kernel_times *k, unsigned int device)
{
	struct timed **at, *t;

	for (at = &k->spare; (t = *at) && t->device != device; at = &t->next)
		;
	if (t)
		*at = t->next;
	return t;
}

static struct timed *make_timed(struct mirror *m, unsigned int device)
{
	const struct be_ops *ops = m->cfg.ops;
	struct timed *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->device = device;
	if (!ops->event_create(m->be, device, EVENT_DISABLE_TIMING, &t->before) &&
	    !ops->event_create(m->be, device, EVENT_DISABLE_TIMING, &t->after))
		return t;
	destroy_timed(m, t);
	return NULL;
}

struct timed *mir_time_begin(struct call *c, const struct stream_ref *s)
{
	struct mirror *m = c->m;
	struct kernel_times *k = &m->times;
	struct timed *t;

	/* Recorded work runs later, with its graph. */
	if (!k->limit_ns || (s->h && s->h->parent))
		return NULL;
	pthread_mutex_lock(&k->lock);
	t = take_spare(k, s->device);
	pthread_mutex_unlock(&k->lock);
	if (!t)
		t = make_timed(m, s->device);
	if (!t)
		return NULL;
	t->began = 0;
	t->open = false;
	t->next = NULL;
	if (!m->cfg.ops->event_record(m->be, t->before, s->s, 0))
		return t;
	destroy_timed(m, t);
	return NULL;
}

/* The caller holds k->lock. */
static struct timed_stream *timed_stream_of(struct kernel_times *k, const struct stream_ref *s)
{
	struct timed_stream *st;

	for (st = k->streams; st && st->s != s->s; st = st->next)
		;
	if (st)
		return st;
	st = calloc(1, sizeof(*st));
	if (!st)
		return NULL;
	st->s = s->s;
	st->device = s->device;
	st->last = &st->first;
	st->next = k->streams;
	k->streams = st;
	return st;
}

/* False: there is no memory, and the kernel is not timed. */
static bool add_timed(struct mirror *m, const struct stream_ref *s, struct timed *t)
{
	struct kernel_times *k = &m->times;
	struct timed_stream *st;

	pthread_mutex_lock(&k->lock);
	st = timed_stream_of(k, s);
	if (st) {
		*st->last = t;
		st->last = &t->next;
	}
	if (!k->running)
		k->running = !pthread_create(&k->thread, NULL, times_main, m);
	pthread_mutex_unlock(&k->lock);
	return st;
}

void mir_time_end(struct call *c, const struct stream_ref *s, struct timed *t, bool launched)
{
	if (t && (!launched || c->m->cfg.ops->event_record(c->m->be, t->after, s->s, 0) ||
		  !add_timed(c->m, s, t)))
		destroy_timed(c->m, t);
}

struct timed *mir_time_call_begin(struct call *c, const struct stream_ref *s)
{
	struct timed *t = mir_time_begin(c, s);

	if (!t)
		return NULL;
	t->open = true;
	if (add_timed(c->m, s, t))
		return t;
	destroy_timed(c->m, t);
	return NULL;
}

void mir_time_call_end(struct call *c, const struct stream_ref *s, struct timed *t)
{
	if (!t)
		return;
	/* If that fails, the context has ended, and with it all work. */
	(void)c->m->cfg.ops->event_record(c->m->be, t->after, s->s, 0);
	pthread_mutex_lock(&c->m->times.lock);
	t->open = false;
	pthread_mutex_unlock(&c->m->times.lock);
}
