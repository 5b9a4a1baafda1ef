// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A backend that behaves at the end of the process as CUDA does. A function registered with
 * atexit() takes it down. If the backend is called during that function or afterwards, it hangs
 * there. Everything else is the soft GPU's, with slow memsets.
 */
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "qcu-device/backend/backend.h"

static struct be_ops ops;
static atomic_bool down, called;

static void call(void)
{
	if (!atomic_load(&down))
		return;
	atomic_store(&called, true);
	for (;;)
		pause();
}

static void sleep_ms(unsigned int ms)
{
	nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L}, NULL);
}

static void take_down(void)
{
	atomic_store(&down, true);
	/* Long enough for threads that still have something to do. */
	sleep_ms(300);
	while (atomic_load(&called))
		pause();
}

static int slow_open(struct be **be, const struct be_options *opt)
{
	atexit(take_down);
	return be_soft.open(be, opt);
}

static int slow_mem_set(struct be *be, const struct be_memset *m, struct be_stream *s)
{
	call();
	sleep_ms(5);
	return be_soft.mem_set(be, m, s);
}

static int checked_event_query(struct be *be, struct be_event *e)
{
	call();
	return be_soft.event_query(be, e);
}

static int checked_stream_sync(struct be *be, struct be_stream *s)
{
	call();
	return be_soft.stream_sync(be, s);
}

__attribute__((visibility("default"))) const struct be_ops *be_plugin(void);

const struct be_ops *be_plugin(void)
{
	ops = be_soft;
	ops.open = slow_open;
	ops.mem_set = slow_mem_set;
	ops.event_query = checked_event_query;
	ops.stream_sync = checked_stream_sync;
	return &ops;
}
