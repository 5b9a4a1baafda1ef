// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Queries that are answered without being sent. A guest program that polls a stream or an event
 * would send a command each time. Instead, the first "not ready" makes the mirror watch the stream
 * or event. The guest then looks into a page of its own, which the mirror writes.
 *
 * One thread does all of this, and starts with the first such query. Lanes do not poll: they may be
 * waiting for something, and handing over a command must not cost more. While there is anything to
 * watch, the thread asks the backend again and again. It does so without a pause for as long as
 * that has paid lately, and then with pauses of an eighth of the time that it has been waiting
 * already.
 *
 * The page is the guest's, which may write anything into it. So the mirror never reads it.
 */
#include <string.h>
#include <time.h>

#include "qcu-device/commands/commands.h"

#define PAUSE_MIN_NS 20000u
#define PAUSE_MAX_NS 1000000u
#define LOOK_MAX_US  50u

void mir_watches_init(struct mirror *m)
{
	struct watches *w = &m->watches;
	pthread_condattr_t attr;

	pthread_mutex_init(&w->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&w->more, &attr);
	pthread_condattr_destroy(&attr);
	spin_init(&w->spin, LOOK_MAX_US);
}

void mir_watches_fini(struct mirror *m)
{
	struct watches *w = &m->watches;

	pthread_mutex_lock(&w->lock);
	w->stop = true;
	pthread_cond_signal(&w->more);
	pthread_mutex_unlock(&w->lock);
	if (w->running)
		pthread_join(w->thread, NULL);
	mir_watches_end(m);
	pthread_cond_destroy(&w->more);
	pthread_mutex_destroy(&w->lock);
}

/* ---- under the lock ---- */

/*
 * Puts a word into the guest's page. Release: what the guest does after it reads the word comes
 * after what has been done here.
 */
static void put_word_in_page(struct watches *w, unsigned int slot, uint64_t word)
{
	if (w->page)
		__atomic_store_n(&w->page[slot], word, __ATOMIC_RELEASE);
}

/* The thread first reads the token without the lock. */
static void set_token(struct watch *at, uint64_t token)
{
	__atomic_store_n(&at->token, token, __ATOMIC_RELAXED);
}

/* Ends the watch of this slot. The caller puts the returned handle, without the lock. */
static struct handle *end_watch(struct watches *w, unsigned int slot)
{
	struct watch *at = &w->slot[slot];
	struct handle *h = at->h;

	if (at->token)
		w->count--;
	at->h = NULL;
	set_token(at, 0);
	return h;
}

/* ---- the thread ---- */

static int query_watched(struct mirror *m, const struct watch *at)
{
	const struct be_ops *ops = m->cfg.ops;

	if (at->h && at->h->kind == HANDLE_EVENT)
		return ops->event_query(m->be, at->h->event);
	return ops->stream_query(m->be,
				 at->h ? at->h->stream : ops->stream_legacy(m->be, at->device));
}

/* Asks about one slot. True: the watch of this slot has ended. */
static bool look_at_slot(struct mirror *m, unsigned int slot)
{
	struct watches *w = &m->watches;
	struct handle *done = NULL;
	struct watch now;
	bool came = false;
	int rc;

	/*
	 * A reset of the device first ends all watches, and keeps this thread out of the backend.
	 */
	pthread_mutex_lock(&m->use[MIR_USER_WATCHING].lock);
	pthread_mutex_lock(&w->lock);
	now = w->slot[slot];
	if (now.h)
		handle_hold(&m->handles, now.h);
	pthread_mutex_unlock(&w->lock);
	if (!now.token)
		goto out;
	rc = query_watched(m, &now);
	if (rc != QCU_ERR_NotReady) {
		pthread_mutex_lock(&w->lock);
		came = w->slot[slot].token == now.token;
		if (came) {
			if (rc)
				w->error = rc;
			put_word_in_page(w, slot, rc ? now.token | QCU_WATCH_ASK : now.token);
			done = end_watch(w, slot);
		}
		pthread_mutex_unlock(&w->lock);
	}
	handles_put(&m->handles, done);
	handles_put(&m->handles, now.h);
out:
	pthread_mutex_unlock(&m->use[MIR_USER_WATCHING].lock);
	return came;
}

static bool look_at_all(struct mirror *m)
{
	unsigned int slot;
	bool came = false;

	for (slot = 0; slot < QCU_WATCH_SLOTS; slot++)
		if (__atomic_load_n(&m->watches.slot[slot].token, __ATOMIC_RELAXED))
			came |= look_at_slot(m, slot);
	return came;
}

/* The caller holds the lock. */
static void pause_for(struct watches *w, uint64_t ns)
{
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	ns += (uint64_t)until.tv_nsec;
	until.tv_sec += (time_t)(ns / 1000000000);
	until.tv_nsec = (long)(ns % 1000000000);
	pthread_cond_timedwait(&w->more, &w->lock, &until);
}

static uint64_t pause_after(uint64_t waited, uint64_t took)
{
	uint64_t ns = waited / 8 < took ? took : waited / 8;

	return ns < PAUSE_MIN_NS ? PAUSE_MIN_NS : ns > PAUSE_MAX_NS ? PAUSE_MAX_NS : ns;
}

static void *watch_main(void *arg)
{
	struct mirror *m = arg;
	struct watches *w = &m->watches;
	uint64_t since = 0;
	uint64_t began, now;
	bool came;

	pthread_mutex_lock(&w->lock);
	while (!w->stop) {
		if (!w->count) {
			since = 0;
			pthread_cond_wait(&w->more, &w->lock);
			continue;
		}
		pthread_mutex_unlock(&w->lock);
		began = spin_clock();
		if (!since)
			since = began;
		came = look_at_all(m);
		now = spin_clock();
		if (came) {
			spin_came(&w->spin, now - since);
			since = now;
		}
		spin_pause();
		pthread_mutex_lock(&w->lock);
		if (w->count && !w->stop && now - since >= w->spin.now_ns)
			pause_for(w, pause_after(now - since, now - began));
	}
	pthread_mutex_unlock(&w->lock);
	return NULL;
}

/* ---- the lanes' side ---- */

bool mir_watch(struct call *c, uint32_t slot, uint64_t token, const struct watch *what)
{
	struct mirror *m = c->m;
	struct watches *w = &m->watches;
	struct handle *before = NULL;
	bool watched = false;

	if (!token || token & QCU_WATCH_ASK || slot >= QCU_WATCH_SLOTS)
		return false;
	pthread_mutex_lock(&w->lock);
	if (w->page && !w->running && !m->abandoned)
		w->running = !pthread_create(&w->thread, NULL, watch_main, m);
	if (w->page && w->running) {
		before = end_watch(w, slot);
		w->slot[slot].h = what->h;
		w->slot[slot].device = what->device;
		if (what->h)
			handle_hold(&m->handles, what->h);
		set_token(&w->slot[slot], token);
		w->count++;
		pthread_cond_signal(&w->more);
		watched = true;
	}
	pthread_mutex_unlock(&w->lock);
	handles_put(&m->handles, before);
	return watched;
}

int mir_watch_error(struct mirror *m)
{
	return atomic_load_explicit(&m->watches.error, memory_order_relaxed)
		       ? atomic_exchange(&m->watches.error, 0)
		       : 0;
}

void mir_watches_end(struct mirror *m)
{
	struct watches *w = &m->watches;
	unsigned int slot;

	for (slot = 0; slot < QCU_WATCH_SLOTS; slot++) {
		struct handle *h;
		uint64_t token;

		pthread_mutex_lock(&w->lock);
		token = w->slot[slot].token;
		h = end_watch(w, slot);
		if (token)
			put_word_in_page(w, slot, token | QCU_WATCH_ASK);
		pthread_mutex_unlock(&w->lock);
		handles_put(&m->handles, h);
	}
}

/* The guest chooses these numbers. No sum of them may be computed, because it might wrap. */
static bool overlaps(uint64_t a, uint64_t a_len, uint64_t b, uint64_t b_len)
{
	return a_len && b_len && (a - b < b_len || b - a < a_len);
}

int mir_do_watch(struct call *c)
{
	struct watches *w = &c->m->watches;
	const struct qcu_buf *buf = &c->cmd->watch.buf;
	struct pieces ps = {0};
	int rc = QCU_ERR_InvalidValue;

	if (buf->len != QCU_WATCH_BYTES || buf->addr % QCU_WATCH_BYTES)
		return QCU_ERR_InvalidValue;
	pthread_mutex_lock(&w->lock);
	if (!overlaps(buf->addr, buf->len, w->leaving_va, w->leaving_len))
		rc = mir_pieces(c, &ps);
	if (!rc && (ps.count != 1 || ps.p[0].len != buf->len))
		rc = QCU_ERR_InvalidValue;
	if (!rc) {
		w->page = (uint64_t *)ps.p[0].host;
		w->va = buf->addr;
	}
	pthread_mutex_unlock(&w->lock);
	pieces_free(&ps);
	return rc;
}

/* The driver takes memory out, one piece after the other. From now on nothing is written there. */
void mir_watch_leaves(struct mirror *m, uint64_t va, uint64_t len)
{
	struct watches *w = &m->watches;

	pthread_mutex_lock(&w->lock);
	w->leaving_va = va;
	w->leaving_len = len;
	if (w->page && overlaps(w->va, QCU_WATCH_BYTES, va, len))
		w->page = NULL;
	pthread_mutex_unlock(&w->lock);
}
