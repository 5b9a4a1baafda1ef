// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * One thread and one queue per guest thread. A lane starts with the first request of its guest
 * thread and ends after THREAD_EXIT, unless more requests have arrived by then. When its slot in
 * the table is used again, its counters continue, so a point in a slot always means the same.
 *
 * Submitting a request must cost less than the launch that it asks for. What costs most is to write
 * to a cache line that the lane's processor has, or reads again and again while it polls. So a
 * submitter writes to one such line only, the request's entry in the lane's ring, with one atomic
 * operation. If the ring is full, the request goes into a list, and so do the next ones, until the
 * lane takes the list. Nothing else that a submitter writes lies beside what the lane reads.
 *
 * A lane without requests spins for a while before it sleeps (spin.h), because the next request of
 * a busy program comes within microseconds. With one processor it sleeps at once.
 *
 * Locks: lanes->lock protects the table and the order of submission. lane->lock and
 * lanes->passed_lock are only for sleeping, and are taken last.
 */
#define _GNU_SOURCE /* PTHREAD_MUTEX_ADAPTIVE_NP */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "qcu-device/base/spin.h"
#include "qcu-device/lanes/lanes.h"

/* How long a lane spins, at most, until a point has passed; then it sleeps. */
#define SPIN_NS 20000
/*
 * The entries of a lane's ring. Neither a virtqueue nor a thread in loopback has more on its way.
 */
#define RING 1024u
/* A processor may fetch the cache line beside the one that it needs. */
#define APART 128

/* A guest thread has requests in a lane that is not its own; the last one is that lane's n-th. */
struct guest {
	uint32_t tid;
	uint64_t n;
};

struct lane {
	/* of the submitters, under lanes->lock */
	unsigned int slot;
	uint32_t tid;
	bool taken;
	bool counted; /* take_request() has agreed to it */
	uint64_t in;
	unsigned int put; /* where the next request goes in the ring */
	struct guest *guests;
	size_t guest_count;
	pthread_t thread;
	struct lane *next_ended;
	/* of both sides */
	_Alignas(APART) atomic_bool asleep;
	atomic_bool listed; /* there are requests in the list */
	bool stop;	    /* this and the list are protected by `lock` */
	struct mir_request *list, *list_last;
	pthread_mutex_t lock;
	pthread_cond_t more;
	/* of the lane's own thread */
	_Alignas(APART) _Atomic uint64_t out;
	struct lanes *lanes;
	unsigned int get;	   /* where the next request comes from in the ring */
	struct mir_request *first; /* of the list that the lane has taken */
	struct spin spin;
	/* of both sides; NULL: a free entry */
	_Alignas(APART) _Atomic(struct mir_request *) ring[RING];
};

struct lanes {
	lanes_fn *run;
	lanes_order_fn *order;
	void *ctx;
	unsigned int max; /* lanes of guest threads */
	bool (*take)(void *ctx);
	void (*give)(void *ctx);
	unsigned int spin_us; /* the longest that a lane without requests spins */
	int spinners;	      /* how many threads may spin at once */
	/* of the submitters */
	_Alignas(APART) pthread_mutex_t lock;
	struct lane *lane[LANES_SLOTS]; /* the last ones are for the driver */
	struct lane *ended;		/* whose threads must be joined */
	uint64_t count;			/* requests of guest threads */
	/* of the lanes */
	_Alignas(APART) atomic_uint waiters; /* threads that sleep until a point has passed */
	atomic_int spinning;
	pthread_mutex_t passed_lock;
	pthread_cond_t passed;
};

/* Spins until done() is true: for ns at most, and not at all if too many threads spin already. */
static bool spin(struct lanes *lanes, bool (*done)(const void *arg), const void *arg, uint64_t ns)
{
	uint64_t began = 0;
	bool is = done(arg);
	int i;

	if (is || lanes->spinners <= 0 || !ns)
		return is;
	if (atomic_fetch_add(&lanes->spinning, 1) < lanes->spinners) {
		for (i = 1; !(is = done(arg)); i++) {
			spin_pause();
			if (i % 64)
				continue;
			if (!began)
				began = spin_clock();
			if (!spin_more(began, ns))
				break;
		}
	}
	atomic_fetch_sub(&lanes->spinning, 1);
	return is;
}

static void lane_free(struct lane *l)
{
	pthread_cond_destroy(&l->more);
	pthread_mutex_destroy(&l->lock);
	free(l->guests);
	free(l);
}

/* ---- points ---- */

bool lanes_passed(const struct lanes *lanes, lanes_point p)
{
	const struct lane *l = lanes->lane[lanes_point_slot(p)];

	return !l || atomic_load_explicit(&l->out, memory_order_acquire) >= p >> 9;
}

struct point_in {
	const struct lanes *lanes;
	lanes_point p;
};

static bool point_passed_in(const void *arg)
{
	const struct point_in *pi = arg;

	return lanes_passed(pi->lanes, pi->p);
}

/*
 * Waits until the point has passed. The table is read without the lock: once a point of a slot has
 * been given out, the slot has a lane and keeps it.
 */
static void wait_for_point(struct lanes *lanes, lanes_point p)
{
	const struct point_in pi = {lanes, p};

	if (spin(lanes, point_passed_in, &pi, SPIN_NS))
		return;
	pthread_mutex_lock(&lanes->passed_lock);
	/*
	 * Pairs with the order in advance(): either advance() sees this waiter, or this thread sees
	 * the new count.
	 */
	atomic_fetch_add(&lanes->waiters, 1);
	atomic_thread_fence(memory_order_seq_cst);
	while (!lanes_passed(lanes, p))
		pthread_cond_wait(&lanes->passed, &lanes->passed_lock);
	atomic_fetch_sub(&lanes->waiters, 1);
	pthread_mutex_unlock(&lanes->passed_lock);
}

/* Counts one more request as carried out. */
static void advance(struct lane *l)
{
	struct lanes *lanes = l->lanes;
	uint64_t out = atomic_load_explicit(&l->out, memory_order_relaxed);

	atomic_store(&l->out, out + 1);
	if (atomic_load(&lanes->waiters)) {
		pthread_mutex_lock(&lanes->passed_lock);
		pthread_cond_broadcast(&lanes->passed);
		pthread_mutex_unlock(&lanes->passed_lock);
	}
}

void lanes_after(struct lanes *lanes, struct mir_request *req, lanes_point p)
{
	struct mir_order *o = &req->order;
	unsigned int slot = lanes_point_slot(p), i;

	if (!p || slot == o->slot || lanes_passed(lanes, p))
		return;
	for (i = 0; i < o->count; i++) {
		if (lanes_point_slot(o->after[i]) == slot) {
			if (o->after[i] < p)
				o->after[i] = p;
			return;
		}
	}
	if (o->count < MIR_AFTER) {
		o->after[o->count++] = p;
		return;
	}
	if (!o->more)
		o->more = calloc(LANES_SLOTS, sizeof(*o->more));
	if (!o->more)
		o->failed = true;
	else if (o->more[slot] < p)
		o->more[slot] = p;
}

static void wait_for_points(struct lanes *lanes, struct mir_order *o)
{
	unsigned int i;

	for (i = 0; i < o->count; i++)
		wait_for_point(lanes, o->after[i]);
	if (!o->more)
		return;
	for (i = 0; i < LANES_SLOTS; i++)
		if (o->more[i])
			wait_for_point(lanes, o->more[i]);
	free(o->more);
	o->more = NULL;
}

/* ---- the lane's side ---- */

static bool has_more(const void *arg)
{
	const struct lane *l = arg;

	return l->first || atomic_load(&l->ring[l->get]) || atomic_load(&l->listed);
}

static void take_list(struct lane *l)
{
	pthread_mutex_lock(&l->lock);
	l->first = l->list;
	atomic_store(&l->listed, false);
	pthread_mutex_unlock(&l->lock);
}

/*
 * Takes the next request out of the ring or the list. NULL: there is none. All requests in the ring
 * came before those in the list, and after those in a list that was taken earlier.
 */
static struct mir_request *take_request(struct lane *l)
{
	_Atomic(struct mir_request *) *entry = &l->ring[l->get];
	struct mir_request *req = NULL;

	if (!l->first)
		req = atomic_load_explicit(entry, memory_order_acquire);
	if (!l->first && !req && atomic_load(&l->listed)) {
		/* The last one in the ring may have come after the first look. */
		req = atomic_load_explicit(entry, memory_order_acquire);
		if (!req)
			take_list(l);
	}
	if (req) {
		atomic_store_explicit(entry, NULL, memory_order_relaxed);
		l->get = (l->get + 1) % RING;
	} else if (l->first) {
		req = l->first;
		l->first = req->order.next;
	}
	return req;
}

/*
 * Data that another processor has just written takes a while to arrive. The prefetch lets the next
 * request, and its message, which usually lies behind it, arrive while the current request is
 * carried out.
 */
static void fetch_ahead(const struct mir_request *req)
{
	const char *p = (const char *)req;
	unsigned int i;

	for (i = 0; req && i < 6; i++)
		__builtin_prefetch(p + 64 * i);
}

/* Returns the next request. NULL: the lane must end. */
static struct mir_request *next_request(struct lane *l)
{
	struct mir_request *req = take_request(l);
	uint64_t since = 0; /* when the lane began to sleep */
	bool stop = false;

	while (!req && !stop) {
		if (spin(l->lanes, has_more, l, since ? 0 : l->spin.now_ns)) {
			spin_came(&l->spin, since ? spin_clock() - since : 0);
			req = take_request(l);
			continue;
		}
		since = spin_clock();
		pthread_mutex_lock(&l->lock);
		atomic_store(&l->asleep, true);
		/* Pairs with the order in hand_over(). */
		while (!has_more(l) && !l->stop)
			pthread_cond_wait(&l->more, &l->lock);
		atomic_store(&l->asleep, false);
		stop = l->stop && !has_more(l);
		pthread_mutex_unlock(&l->lock);
	}
	fetch_ahead(l->first ? l->first
			     : atomic_load_explicit(&l->ring[l->get], memory_order_acquire));
	return req;
}

static void give_back_counted(struct lane *l)
{
	if (l->counted && l->lanes->give)
		l->lanes->give(l->lanes->ctx);
	l->counted = false;
}

/*
 * The guest thread has ended. Its lane ends, too, unless it is shared or has more requests waiting.
 */
static bool lane_end(struct lane *l)
{
	struct lanes *lanes = l->lanes;
	bool end;

	pthread_mutex_lock(&lanes->lock);
	end = l->in == atomic_load(&l->out) && l->slot < LANES_MAX && l->taken;
	if (end) {
		l->taken = false;
		give_back_counted(l);
		l->next_ended = lanes->ended;
		lanes->ended = l;
	}
	pthread_mutex_unlock(&lanes->lock);
	return end;
}

static void *lane_main(void *arg)
{
	struct lane *l = arg;
	struct mir_request *req;

	while ((req = next_request(l))) {
		uint32_t tid = req->cmd.tid;
		bool ends;

		wait_for_points(l->lanes, &req->order);
		ends = l->lanes->run(l->lanes->ctx, req);
		advance(l);
		if (ends && tid == l->tid && lane_end(l))
			break;
	}
	return NULL;
}

/* ---- the submitters' side; the caller holds lanes->lock ---- */

static void join_ended(struct lanes *lanes)
{
	while (lanes->ended) {
		struct lane *l = lanes->ended;

		lanes->ended = l->next_ended;
		pthread_join(l->thread, NULL);
	}
}

static struct lane *lane_begin(struct lanes *lanes, unsigned int slot, uint32_t tid)
{
	struct lane *l = lanes->lane[slot];

	if (!l) {
		l = aligned_alloc(APART, sizeof(*l));
		if (!l)
			return NULL;
		memset(l, 0, sizeof(*l));
		l->lanes = lanes;
		l->slot = slot;
		pthread_mutex_init(&l->lock, NULL);
		pthread_cond_init(&l->more, NULL);
	}
	spin_init(&l->spin, lanes->spin_us);
	l->tid = tid;
	l->guest_count = 0;
	if (pthread_create(&l->thread, NULL, lane_main, l)) {
		if (!lanes->lane[slot])
			lane_free(l);
		return NULL;
	}
	l->taken = true;
	lanes->lane[slot] = l;
	return l;
}

/*
 * Does this guest thread, which has no lane of its own, have a request waiting or running in this
 * lane?
 */
static bool lane_has(const struct lane *l, uint32_t tid)
{
	uint64_t out = atomic_load(&l->out);
	size_t i;

	for (i = 0; i < l->guest_count; i++)
		if (l->guests[i].tid == tid && l->guests[i].n > out)
			return true;
	return false;
}

/* Remembers that a guest thread has a request in a lane of another guest thread. */
static bool add_guest(struct lane *l, uint32_t tid)
{
	uint64_t out = atomic_load(&l->out);
	struct guest *more;
	size_t i;

	for (i = 0; i < l->guest_count; i++)
		if (l->guests[i].tid == tid || l->guests[i].n <= out)
			break;
	if (i == l->guest_count) {
		more = realloc(l->guests, (i + 1) * sizeof(*more));
		if (!more)
			return false;
		l->guests = more;
		l->guest_count++;
	}
	l->guests[i] = (struct guest){.tid = tid, .n = l->in + 1};
	return true;
}

/*
 * Starts a lane in this free slot, if the limits allow one more. The first lane is always allowed.
 */
static struct lane *one_more(struct lanes *lanes, unsigned int slot, uint32_t tid, bool first)
{
	bool counted = lanes->take && lanes->take(lanes->ctx);
	struct lane *l = NULL;

	if (counted || first || !lanes->take)
		l = lane_begin(lanes, slot, tid);
	if (l)
		l->counted = counted;
	else if (counted)
		lanes->give(lanes->ctx);
	return l;
}

/*
 * Finds the lane of a guest thread. If no new lane is allowed, the guest thread shares the first
 * lane from its home slot on. It keeps sharing that lane until none of its requests are left there;
 * otherwise its requests could overtake one another.
 */
static struct lane *find_lane_of_thread(struct lanes *lanes, uint32_t tid)
{
	unsigned int home = tid % lanes->max, i, spare = LANES_MAX;
	struct lane *shared = NULL, *has = NULL, *l;

	for (i = 0; i < lanes->max && !has; i++) {
		unsigned int slot = (home + i) % lanes->max;

		l = lanes->lane[slot];
		if (l && l->taken && l->tid == tid)
			return l;
		if (l && l->taken) {
			shared = shared ? shared : l;
			has = lane_has(l, tid) ? l : NULL;
		} else if (spare == LANES_MAX) {
			spare = slot;
		}
	}
	l = NULL;
	if (!has && spare < LANES_MAX)
		l = one_more(lanes, spare, tid, !shared);
	if (l)
		return l;
	shared = has ? has : shared;
	return shared && add_guest(shared, tid) ? shared : NULL;
}

static struct lane *find_driver(struct lanes *lanes, uint16_t op)
{
	unsigned int slot = op == QCU_OP_UNMAP		? LANES_UNMAP
			    : op == QCU_OP_MANAGED_MOVE ? LANES_MOVE
							: LANES_DRIVER;

	return lanes->lane[slot] ? lanes->lane[slot] : lane_begin(lanes, slot, 0);
}

static void add_to_list(struct lane *l, struct mir_request *req)
{
	req->order.next = NULL;
	pthread_mutex_lock(&l->lock);
	if (atomic_load(&l->listed))
		l->list_last->order.next = req;
	else
		l->list = req;
	l->list_last = req;
	atomic_store(&l->listed, true);
	pthread_mutex_unlock(&l->lock);
}

/* Gives the request to the lane, and wakes the lane if it sleeps. */
static void hand_over(struct lane *l, struct mir_request *req)
{
	struct mir_request *none = NULL;

	if (!atomic_load(&l->listed) &&
	    atomic_compare_exchange_strong(&l->ring[l->put], &none, req))
		l->put = (l->put + 1) % RING;
	else
		add_to_list(l, req);
	/* Pairs with the order in next_request(): both sides write before they look. */
	if (atomic_load(&l->asleep)) {
		pthread_mutex_lock(&l->lock);
		pthread_cond_signal(&l->more);
		pthread_mutex_unlock(&l->lock);
	}
}

int lanes_submit(struct lanes *lanes, struct mir_request *req)
{
	struct lane *l;
	int rc = 0;

	pthread_mutex_lock(&lanes->lock);
	if (lanes->ended)
		join_ended(lanes);
	l = req->cmd.tid ? find_lane_of_thread(lanes, req->cmd.tid)
			 : find_driver(lanes, req->cmd.op);
	if (!l) {
		rc = -EAGAIN;
		goto out;
	}
	req->order.slot = (uint16_t)l->slot;
	req->order.count = 0;
	req->order.failed = false;
	req->order.more = NULL;
	if (lanes->order)
		lanes->order(lanes->ctx, req, lanes_point_of(l->slot, l->in + 1));
	if (req->order.failed) {
		free(req->order.more);
		rc = -ENOMEM;
		goto out;
	}
	l->in++;
	lanes->count += req->cmd.tid != 0;
	req->order.number = (uint32_t)lanes->count;
	hand_over(l, req);
out:
	pthread_mutex_unlock(&lanes->lock);
	return rc;
}

int lanes_create(struct lanes **out, lanes_fn *run, lanes_order_fn *order, void *ctx,
		 unsigned int spin_us)
{
	struct lanes *lanes = aligned_alloc(APART, sizeof(*lanes));
	pthread_mutexattr_t attr;

	if (!lanes)
		return -ENOMEM;
	memset(lanes, 0, sizeof(*lanes));
	lanes->run = run;
	lanes->order = order;
	lanes->ctx = ctx;
	lanes->spin_us = spin_us;
	lanes->max = LANES_MAX;
	lanes->spinners = (int)sysconf(_SC_NPROCESSORS_ONLN) - 1;
	/* The lock is held for a tenth of a microsecond, so spinning is better than sleeping. */
	pthread_mutexattr_init(&attr);
	pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_ADAPTIVE_NP);
	pthread_mutex_init(&lanes->lock, &attr);
	pthread_mutexattr_destroy(&attr);
	pthread_mutex_init(&lanes->passed_lock, NULL);
	pthread_cond_init(&lanes->passed, NULL);
	*out = lanes;
	return 0;
}

void lanes_bound(struct lanes *lanes, unsigned int max, bool (*take)(void *ctx),
		 void (*give)(void *ctx))
{
	lanes->max = max < LANES_MAX ? max : LANES_MAX;
	lanes->take = take;
	lanes->give = give;
}

bool lanes_idle(struct lanes *lanes, unsigned int ms)
{
	const uint64_t end = spin_clock() + ms * 1000000ull;
	unsigned int i;
	bool idle;

	for (;;) {
		idle = true;
		pthread_mutex_lock(&lanes->lock);
		for (i = 0; i < LANES_SLOTS && idle; i++)
			idle = !lanes->lane[i] ||
			       lanes->lane[i]->in == atomic_load(&lanes->lane[i]->out);
		pthread_mutex_unlock(&lanes->lock);
		if (idle || spin_clock() > end)
			return idle;
		nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
	}
}

uint64_t lanes_count(struct lanes *lanes)
{
	uint64_t count;

	pthread_mutex_lock(&lanes->lock);
	count = lanes->count;
	pthread_mutex_unlock(&lanes->lock);
	return count;
}

bool lanes_only(struct lanes *lanes, const struct mir_request *req, uint64_t *count)
{
	bool only;
	unsigned int i;

	pthread_mutex_lock(&lanes->lock);
	*count = lanes->count;
	only = (uint32_t)lanes->count == req->order.number;
	for (i = 0; i < LANES_MAX && only; i++) {
		const struct lane *l = lanes->lane[i];

		only = !l || l->in == atomic_load(&l->out) + (i == req->order.slot);
	}
	pthread_mutex_unlock(&lanes->lock);
	return only;
}

uint64_t lanes_settle(struct lanes *lanes)
{
	lanes_point points[LANES_MAX];
	uint64_t count;
	unsigned int i;

	pthread_mutex_lock(&lanes->lock);
	count = lanes->count;
	for (i = 0; i < LANES_MAX; i++)
		points[i] = lanes->lane[i] ? lanes_point_of(i, lanes->lane[i]->in) : 0;
	pthread_mutex_unlock(&lanes->lock);
	for (i = 0; i < LANES_MAX; i++)
		if (points[i])
			wait_for_point(lanes, points[i]);
	return count;
}

/* Ends one lane. A lane that is just ending by itself is joined with the others that have ended. */
static void stop(struct lanes *lanes, struct lane *l)
{
	bool taken;

	pthread_mutex_lock(&lanes->lock);
	taken = l->taken;
	l->taken = false;
	give_back_counted(l);
	pthread_mutex_unlock(&lanes->lock);
	if (!taken)
		return;
	pthread_mutex_lock(&l->lock);
	l->stop = true;
	pthread_cond_signal(&l->more);
	pthread_mutex_unlock(&l->lock);
	pthread_join(l->thread, NULL);
}

void lanes_destroy(struct lanes *lanes)
{
	unsigned int i;

	for (i = 0; i < LANES_SLOTS; i++)
		if (lanes->lane[i])
			stop(lanes, lanes->lane[i]);
	join_ended(lanes);
	for (i = 0; i < LANES_SLOTS; i++)
		if (lanes->lane[i])
			lane_free(lanes->lane[i]);
	pthread_cond_destroy(&lanes->passed);
	pthread_mutex_destroy(&lanes->passed_lock);
	pthread_mutex_destroy(&lanes->lock);
	free(lanes);
}
