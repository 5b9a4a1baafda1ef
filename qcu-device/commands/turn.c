// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The gate that all work for the GPU passes, when the GPU's VMs have agreed on shares
 * (docs/vm/sharing.md). The table says which commands do such work (QCU_TURN_*).
 *
 * The broker's orders lie in memory that this process can only read. Out of its turn a lane holds
 * its command back, before it takes any lock. In its turn it keeps little in flight: the GPU marks
 * in the session's report when it begins and when it ends the work of a command, and what is
 * between must not take long. The broker reads the same marks.
 *
 * A mark is work for the GPU, too. Where another VM is busy, the driver may give the GPU to that
 * one between a mark and what is marked, if a stream has nothing else. So if a stream is idle, the
 * lane writes that the work begins, and whoever looks next says that it is done: the stream's next
 * command, a lane that waits for room, or a thread (turns.c). That thread also says when work is
 * done that was submitted while the VM was alone.
 */
#define _GNU_SOURCE /* syscall */
#include <limits.h>
#include <linux/futex.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "qcu-device/base/complain.h"
#include "qcu-device/commands/commands.h"

#define FLIGHT_NS  1500000ull	 /* so much work may be in flight, */
#define FLIGHT_MIN 2u		 /* but so many commands always may */
#define STALL_NS   20000000ull	 /* if none of it ends for so long, one more may */
#define STALL_MIN  500000ull	 /* and the next one after half of that, down to this */
#define LOOK_NS	   20000	 /* how often a lane looks whether there is room */
#define AWAIT_NS   10000000	 /* so long it looks for the end of work, and then sleeps */
#define RETRY_NS   50000000	 /* no sleep before an order is longer */
#define BROKEN_NS  1000000000ull /* a broker that has not looked for so long is not waited for */

static void pause_ns(long ns)
{
	static __thread bool exact;
	struct timespec t = {.tv_nsec = ns};

	/* Otherwise the kernel adds 50 us. */
	if (!exact)
		exact = !prctl(PR_SET_TIMERSLACK, 1);
	nanosleep(&t, NULL);
}

/* Waits until the word changes, but not for long. Another process writes it. */
static void sleep_while(const _Atomic uint32_t *word, uint32_t is)
{
	struct timespec t = {.tv_nsec = RETRY_NS};

	syscall(SYS_futex, word, FUTEX_WAIT, is, &t, NULL, 0);
}

const struct turns_orders *mir_turn_orders(const struct turn_gpu *g)
{
	return &g->m->turns.view.orders[g->device];
}

struct turns_report *mir_turn_report(const struct turn_gpu *g)
{
	return turns_report(&g->m->turns.view, g->device, g->m->cfg.session);
}

void mir_turn_wake(const struct turn_gpu *g)
{
	/* Other mirrors of the VM wake up, too, and sleep again. */
	syscall(SYS_futex, &mir_turn_orders(g)->measured, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

/* ---- marks; the caller holds g->lock ---- */

/* Nothing of it runs any more, or is known to. */
static void clear_marks(struct turn_gpu *g)
{
	struct turns_report *r = mir_turn_report(g);
	unsigned int i;

	for (i = 0; i < g->slots; i++) {
		g->slot[i].ended = g->slot[i].begun;
		g->slot[i].open = false;
		atomic_store(&r->slot[i].begun, g->slot[i].begun & TURNS_COUNT);
		atomic_store(&r->slot[i].done, g->slot[i].begun & TURNS_COUNT);
	}
	atomic_store(&g->open, 0);
}

void mir_turn_unmark(struct turn_gpu *g, int rc)
{
	clear_marks(g);
	if (!g->unmarked && rc != QCU_ERR_CudartUnloading)
		complain("the GPU's work cannot be marked: error %d", rc);
	g->unmarked = true;
}

static bool can_mark(struct turn_gpu *g)
{
	int rc;

	if (g->registered || g->unmarked)
		return g->registered && !g->unmarked;
	rc = g->m->cfg.ops->host_register(g->m->be, mir_turn_report(g), TURNS_PAGE);
	g->registered = !rc;
	if (rc)
		mir_turn_unmark(g, rc);
	return g->registered;
}

static void put_mark(struct turn_gpu *g, struct be_stream *s, _Atomic uint32_t *where,
		     uint32_t number)
{
	const struct qcu_stream_value v = {
		.addr = (uintptr_t)where,
		.value = number,
		.bytes = 4,
		.what = QCU_VALUE_WRITE,
	};
	int rc = g->m->cfg.ops->stream_value(g->m->be, s, &v);

	if (rc)
		mir_turn_unmark(g, rc);
}

bool mir_stream_done(const struct mirror *m, struct be_stream *s)
{
	return m->cfg.ops->stream_query(m->be, s) != QCU_ERR_NotReady;
}

static void close_slot(struct turn_gpu *g, unsigned int i)
{
	g->slot[i].open = false;
	g->slot[i].ended++;
	atomic_fetch_sub(&g->open, 1);
}

static void say_done(struct turn_gpu *g, unsigned int i)
{
	close_slot(g, i);
	atomic_store(&mir_turn_report(g)->slot[i].done, g->slot[i].ended & TURNS_COUNT);
}

static void close_slots_that_are_done(struct turn_gpu *g)
{
	unsigned int i;

	for (i = 0; atomic_load(&g->open) && i < g->slots; i++)
		if (g->slot[i].open && mir_stream_done(g->m, g->slot[i].s))
			say_done(g, i);
}

void mir_turn_close_done(struct turn_gpu *g)
{
	pthread_mutex_lock(&g->lock);
	close_slots_that_are_done(g);
	pthread_mutex_unlock(&g->lock);
}

static uint32_t count_in_flight(const struct turn_gpu *g, unsigned int i)
{
	return (g->slot[i].begun -
		atomic_load_explicit(&mir_turn_report(g)->slot[i].done, memory_order_acquire)) &
	       TURNS_COUNT;
}

static bool is_slot_done(const struct turn_gpu *g, unsigned int i)
{
	return !count_in_flight(g, i);
}

/* The stream's slot, or one that is free for it; TURNS_SLOTS: there is none. */
static unsigned int find_slot(const struct turn_gpu *g, struct be_stream *s)
{
	unsigned int i, spare = g->slots;

	for (i = 0; i < g->slots && g->slot[i].s != s; i++)
		if (spare == g->slots && !g->slot[i].s && is_slot_done(g, i))
			spare = i;
	if (i < g->slots)
		return i;
	for (i = 0; spare == TURNS_SLOTS && i < TURNS_SLOTS; i++)
		if (is_slot_done(g, i))
			spare = i;
	return spare;
}

static void take_slot(struct turn_gpu *g, unsigned int i, struct be_stream *s)
{
	g->slot[i].s = s;
	if (i < g->slots)
		return;
	g->slots = i + 1;
	atomic_store(&mir_turn_report(g)->slots, g->slots);
}

/*
 * If others had work under way meanwhile, the driver gave them a part of the time, and it is not
 * known how much: then only less than before teaches anything.
 */
static void learn_each(struct turn_gpu *g, uint64_t ns, bool crowded)
{
	if (!g->each_ns || (crowded && ns < g->each_ns))
		g->each_ns = ns;
	else if (!crowded)
		g->each_ns = (g->each_ns * 3 + ns) / 4;
}

/*
 * Is little enough in flight? Learns how long a piece of work takes.
 *
 * What is in flight may wait for what is not: a kernel for a copy in another stream that sets a
 * flag. So if nothing ends, more is let through.
 */
static bool has_room_in_flight(struct turn_gpu *g)
{
	uint64_t now = spin_clock(), ended = 0, flight = 0;
	uint32_t crowded = atomic_load_explicit(&mir_turn_orders(g)->crowded, memory_order_relaxed);
	bool free_slot = g->slots < TURNS_SLOTS;
	unsigned int i;

	close_slots_that_are_done(g);
	for (i = 0; i < g->slots; i++) {
		struct turn_stream *s = &g->slot[i];
		uint32_t left = count_in_flight(g, i), done = s->begun - left;

		ended += done - s->seen;
		s->seen = done;
		flight += left;
		free_slot |= !left;
	}
	if (ended)
		learn_each(g, (now - g->since_ns) / ended, crowded != g->crowded);
	if (ended || !flight) {
		g->since_ns = g->stalled_ns = now;
		g->stall_ns = STALL_NS;
		g->crowded = crowded;
	}
	if (free_slot && (flight < FLIGHT_MIN || (g->each_ns && flight * g->each_ns < FLIGHT_NS)))
		return true;
	if (now - g->stalled_ns < g->stall_ns)
		return false;
	g->stalled_ns = now;
	g->stall_ns = g->stall_ns / 2 > STALL_MIN ? g->stall_ns / 2 : STALL_MIN;
	return true;
}

/* More may come: the open work has its end now, or gets a mark. */
static void end_open_work(struct turn_gpu *g, unsigned int i, bool idle)
{
	struct turn_stream *slot = &g->slot[i];

	if (!slot->open)
		return;
	if (idle) {
		say_done(g, i);
		return;
	}
	close_slot(g, i);
	put_mark(g, slot->s, &mir_turn_report(g)->slot[i].done, slot->ended & TURNS_COUNT);
}

void mir_turn_mark_begin(struct call *c, const struct stream_ref *s)
{
	struct turn_gpu *g = &c->m->turns.gpu[c->cmd->device];
	uint32_t number;
	unsigned int i;

	/* Recorded work runs later, with its graph. */
	if (s->device != g->device || (s->h && s->h->parent))
		return;
	pthread_mutex_lock(&g->lock);
	i = can_mark(g) ? find_slot(g, s->s) : TURNS_SLOTS;
	if (i < TURNS_SLOTS) {
		take_slot(g, i, s->s);
		c->slot = (uint8_t)i;
		c->idle = mir_stream_done(g->m, s->s);
		end_open_work(g, i, c->idle);
		number = (++g->slot[i].begun & TURNS_COUNT) | (c->turn - 1u) << TURNS_KIND;
		if (c->idle)
			atomic_store(&mir_turn_report(g)->slot[i].begun, number);
		else
			put_mark(g, s->s, &mir_turn_report(g)->slot[i].begun, number);
		c->marked = !g->unmarked;
	}
	pthread_mutex_unlock(&g->lock);
}

void mir_turn_mark_end(struct call *c, const struct stream_ref *s)
{
	struct turn_gpu *g = &c->m->turns.gpu[c->cmd->device];
	struct turn_stream *slot = &g->slot[c->slot];
	bool wake = false;

	pthread_mutex_lock(&g->lock);
	if (!g->unmarked && c->idle && !slot->open) {
		slot->open = true;
		wake = !atomic_fetch_add(&g->open, 1) && atomic_load(&g->sleeps);
	} else if (!g->unmarked) {
		/* When the open work is done, this is done, too. */
		slot->ended++;
		if (!c->idle)
			put_mark(g, s->s, &mir_turn_report(g)->slot[c->slot].done,
				 slot->ended & TURNS_COUNT);
	}
	pthread_mutex_unlock(&g->lock);
	c->marked = false;
	if (wake)
		mir_turn_wake(g);
}

void mir_turn_forget(struct mirror *m, unsigned int device, struct be_stream *s)
{
	struct turn_gpu *g;
	unsigned int i;

	if (device >= m->turns.gpus)
		return;
	g = &m->turns.gpu[device];
	pthread_mutex_lock(&g->lock);
	for (i = 0; i < g->slots; i++)
		if (g->slot[i].s == s) {
			end_open_work(g, i, g->slot[i].open && mir_stream_done(g->m, s));
			g->slot[i].s = NULL;
		}
	pthread_mutex_unlock(&g->lock);
}

/* ---- the lanes ---- */

/*
 * To sleep until work is done, the driver gives the GPU one more piece of work, which wakes the
 * thread. Where another VM is busy, that waits for a time slice of its own.
 */
bool mir_turn_look_again(const struct mirror *m, unsigned int device, uint64_t *end)
{
	const struct turn_gate *t = &m->turns;
	uint64_t now;

	if (device >= t->gpus || atomic_load_explicit(&t->view.orders[device].order[TURNS_GPU],
						      memory_order_relaxed) == TURNS_FREE)
		return false;
	now = spin_clock();
	if (*end)
		pause_ns(LOOK_NS);
	else
		*end = now + AWAIT_NS;
	return now < *end;
}

static bool may_go(struct turn_gpu *g)
{
	bool room;

	pthread_mutex_lock(&g->lock);
	room = g->unmarked || has_room_in_flight(g);
	pthread_mutex_unlock(&g->lock);
	return room;
}

/*
 * Has the broker not looked for long, since `since`? One that hangs must not hold anybody up. It is
 * waited for again when it has looked.
 */
static bool is_broker_broken(struct turn_gpu *g, uint32_t *looks, uint64_t *since)
{
	uint32_t now = atomic_load_explicit(&mir_turn_orders(g)->looks, memory_order_relaxed);

	if (atomic_load(&g->broken) && now == atomic_load(&g->broken_at))
		return true;
	if (!*since || now != *looks)
		*since = spin_clock();
	*looks = now;
	if (spin_clock() - *since <= BROKEN_NS)
		return false;
	atomic_store(&g->broken_at, now);
	atomic_store(&g->broken, true);
	return true;
}

/* Waits in the report's count of those who want to go. False: nobody gives orders. */
static bool wait_for_order(struct turn_gpu *g, enum turns_kind kind)
{
	const struct turn_gate *t = &g->m->turns;
	const _Atomic uint32_t *word = &mir_turn_orders(g)->order[kind];
	_Atomic uint32_t *wants = &mir_turn_report(g)->wants[kind];
	uint32_t order, looks = 0;
	bool broken = false;
	uint64_t since = 0;

	atomic_fetch_add(wants, 1);
	for (;;) {
		order = atomic_load_explicit(word, memory_order_acquire);
		if (order == TURNS_FREE || order == TURNS_GO || atomic_load(&t->stop))
			break;
		broken = is_broker_broken(g, &looks, &since);
		if (broken)
			break;
		if (order == TURNS_RING)
			eventfd_write(t->view.bell, 1);
		sleep_while(word, order);
	}
	atomic_fetch_sub(wants, 1);
	return !broken;
}

void mir_turn_wait(struct call *c, enum turns_kind kind)
{
	struct turn_gate *t = &c->m->turns;
	struct turn_gpu *g = &t->gpu[c->cmd->device];
	const struct turns_orders *o = mir_turn_orders(g);
	uint64_t waited = 0, began;
	uint32_t order;
	bool go;

	for (;;) {
		order = atomic_load_explicit(&o->order[kind], memory_order_acquire);
		if (order == TURNS_FREE || atomic_load_explicit(&t->stop, memory_order_relaxed))
			break;
		if (order == TURNS_GO && may_go(g))
			break;
		if (order == TURNS_GO) {
			pause_ns(LOOK_NS);
			continue;
		}
		began = spin_clock();
		go = wait_for_order(g, kind);
		waited += spin_clock() - began;
		if (!go)
			break;
	}
	if (waited)
		count_add(c->m->counts, COUNT_TURNS_US, waited / 1000);
	if (atomic_load_explicit(&o->measured, memory_order_relaxed) & 1)
		c->turn = (uint8_t)(kind + 1);
}
