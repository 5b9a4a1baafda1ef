// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A thread and a queue per guest thread. A lane begins with the first request of its guest thread
 * and ends after THREAD_EXIT, unless more has arrived by then.
 *
 * Locks: lanes->lock guards the table and what leads a lane to its end; lane->lock its queue.
 * lanes->lock is taken first.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "qcu-device/lanes.h"

struct lane {
	struct lanes *lanes;
	unsigned int slot;
	uint32_t tid;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t more;
	struct mir_request *first, **last;
	uint32_t busy_tid; /* whose request is being carried out */
	bool busy;
	bool stop;
	struct lane *next; /* in the list of ended ones */
};

struct lanes {
	lanes_fn *run;
	void *ctx;
	pthread_mutex_t lock;
	struct lane *lane[LANES_MAX + 1]; /* the last one is the driver's */
	struct lane *ended;		  /* their threads want to be joined */
};

static void lane_free(struct lane *l)
{
	pthread_cond_destroy(&l->more);
	pthread_mutex_destroy(&l->lock);
	free(l);
}

static void join_ended(struct lanes *lanes)
{
	while (lanes->ended) {
		struct lane *l = lanes->ended;

		lanes->ended = l->next;
		pthread_join(l->thread, NULL);
		lane_free(l);
	}
}

/* The guest thread has ended: so does its lane, if it is alone on it and nothing else waits. */
static bool lane_end(struct lane *l)
{
	struct lanes *lanes = l->lanes;
	bool end;

	pthread_mutex_lock(&lanes->lock);
	pthread_mutex_lock(&l->lock);
	end = !l->first && !l->stop && l->slot < LANES_MAX;
	if (end) {
		lanes->lane[l->slot] = NULL;
		l->next = lanes->ended;
		lanes->ended = l;
	}
	pthread_mutex_unlock(&l->lock);
	pthread_mutex_unlock(&lanes->lock);
	return end;
}

static void *lane_main(void *arg)
{
	struct lane *l = arg;

	for (;;) {
		struct mir_request *req;
		uint32_t tid;

		pthread_mutex_lock(&l->lock);
		l->busy = false;
		while (!l->first && !l->stop)
			pthread_cond_wait(&l->more, &l->lock);
		req = l->first;
		if (req) {
			l->first = req->next;
			if (!l->first)
				l->last = &l->first;
			l->busy = true;
			l->busy_tid = req->cmd.tid;
		}
		pthread_mutex_unlock(&l->lock);
		if (!req)
			return NULL;
		tid = req->cmd.tid;
		if (l->lanes->run(l->lanes->ctx, req) && tid == l->tid && lane_end(l))
			return NULL;
	}
}

static struct lane *lane_create(struct lanes *lanes, unsigned int slot, uint32_t tid)
{
	struct lane *l = calloc(1, sizeof(*l));

	if (!l)
		return NULL;
	l->lanes = lanes;
	l->slot = slot;
	l->tid = tid;
	l->last = &l->first;
	pthread_mutex_init(&l->lock, NULL);
	pthread_cond_init(&l->more, NULL);
	if (pthread_create(&l->thread, NULL, lane_main, l)) {
		lane_free(l);
		return NULL;
	}
	lanes->lane[slot] = l;
	return l;
}

/* Is a request of this guest thread still waiting or running there? Holds l->lock. */
static bool lane_has(const struct lane *l, uint32_t tid)
{
	const struct mir_request *req;

	if (l->busy && l->busy_tid == tid)
		return true;
	for (req = l->first; req; req = req->next)
		if (req->cmd.tid == tid)
			return true;
	return false;
}

/*
 * The lane of a guest thread. When all are taken it shares the lane at its home slot, and goes on
 * doing so until nothing of it is left there, or its requests would overtake one another.
 */
static struct lane *find(struct lanes *lanes, uint32_t tid)
{
	unsigned int home = tid % LANES_MAX, i, spare = LANES_MAX;
	struct lane *shared;
	bool stay;

	if (!tid)
		return lanes->lane[LANES_MAX] ? lanes->lane[LANES_MAX]
					      : lane_create(lanes, LANES_MAX, 0);
	for (i = 0; i < LANES_MAX; i++) {
		unsigned int slot = (home + i) % LANES_MAX;
		struct lane *l = lanes->lane[slot];

		if (l && l->tid == tid)
			return l;
		if (!l && spare == LANES_MAX)
			spare = slot;
	}
	shared = lanes->lane[home];
	if (!shared)
		return lane_create(lanes, home, tid);
	pthread_mutex_lock(&shared->lock);
	stay = spare == LANES_MAX || lane_has(shared, tid);
	pthread_mutex_unlock(&shared->lock);
	if (!stay) {
		struct lane *l = lane_create(lanes, spare, tid);

		if (l)
			return l;
	}
	return shared;
}

int lanes_create(struct lanes **out, lanes_fn *run, void *ctx)
{
	struct lanes *lanes = calloc(1, sizeof(*lanes));

	if (!lanes)
		return -ENOMEM;
	lanes->run = run;
	lanes->ctx = ctx;
	pthread_mutex_init(&lanes->lock, NULL);
	*out = lanes;
	return 0;
}

int lanes_submit(struct lanes *lanes, struct mir_request *req)
{
	struct lane *l;

	req->next = NULL;
	pthread_mutex_lock(&lanes->lock);
	join_ended(lanes);
	l = find(lanes, req->cmd.tid);
	if (l) {
		pthread_mutex_lock(&l->lock);
		*l->last = req;
		l->last = &req->next;
		pthread_cond_signal(&l->more);
		pthread_mutex_unlock(&l->lock);
	}
	pthread_mutex_unlock(&lanes->lock);
	return l ? 0 : -EAGAIN;
}

void lanes_destroy(struct lanes *lanes)
{
	unsigned int i;

	for (i = 0; i <= LANES_MAX; i++) {
		struct lane *l;

		/* A lane that ends by itself right now has left the table and is joined below. */
		pthread_mutex_lock(&lanes->lock);
		l = lanes->lane[i];
		if (l) {
			pthread_mutex_lock(&l->lock);
			l->stop = true;
			pthread_cond_signal(&l->more);
			pthread_mutex_unlock(&l->lock);
		}
		pthread_mutex_unlock(&lanes->lock);
		if (l) {
			pthread_join(l->thread, NULL);
			lane_free(l);
		}
	}
	join_ended(lanes);
	pthread_mutex_destroy(&lanes->lock);
	free(lanes);
}
