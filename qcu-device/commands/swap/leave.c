// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Lets device memory leave (swap.h). All commands are kept out of the backend meanwhile, as a reset
 * of the device does. The GPU's work must have ended. If it does not within CLOSE_NS (it may wait
 * for the program, or for a command that is kept out), the memory stays.
 */
#include <time.h>

#include "qcu-device/base/complain.h"
#include "qcu-device/commands/commands.h"
#include "qcu-device/commands/swap/swap.h"

#define CLOSE_NS 1000000000ull /* commands are kept out so long before memory begins to leave */
#define LOOK_NS	 100000
#define PORTION	 (1ull << 30) /* the broker hears of each */
#define TRIM	 60	      /* what is kept is unmapped after so many sleeps */

const char mir_swap_full[] = "the store is full, or the rest cannot leave";

static void rest_ns(long ns)
{
	struct timespec t = {.tv_nsec = ns};

	nanosleep(&t, NULL);
}

static void open_again(struct mirror *m)
{
	pthread_mutex_lock(&m->swap->lock);
	atomic_fetch_and(&m->swap_state, ~SWAP_CLOSED);
	pthread_cond_broadcast(&m->swap->opened);
	pthread_mutex_unlock(&m->swap->lock);
}

static bool take_users(struct mirror *m, uint64_t until)
{
	while (mir_try_users(m) < MIR_USERS) {
		if (spin_clock() > until || atomic_load(&m->swap->stop))
			return false;
		rest_ns(LOOK_NS);
	}
	return true;
}

/* Looks only at devices that the program has used: a look would make a context. */
static bool is_work_done(struct mirror *m, uint64_t until)
{
	uint64_t used = atomic_load(&m->budget.usage->devices);
	unsigned int i;

	for (i = 0; i < m->devices; i++) {
		while (used >> i & 1 && !mir_streams_done(m, i)) {
			if (spin_clock() > until || atomic_load(&m->swap->stop))
				return false;
			rest_ns(LOOK_NS);
		}
	}
	for (i = 0; i < m->devices; i++)
		if (used >> i & 1 && m->cfg.ops->device_sync(m->be, i))
			return false;
	return true;
}

/* The caller holds all locks. */
static uint64_t leave_now(struct mirror *m, unsigned int device, uint64_t want, const char **why)
{
	uint64_t left = 0;
	int rc = m->cfg.ops->mem_leave(m->be, device, want, &m->swap->store.be, &left);

	if (rc)
		*why = "the backend cannot move it";
	else if (left < want)
		*why = mir_swap_full;
	if (m->cfg.ops->mem_away(m->be, device)) {
		atomic_fetch_or(&m->swap_state, SWAP_AWAY);
		atomic_store(&m->budget.usage->left_ns, spin_clock());
		atomic_store(&m->swap->refused, budget_refused_others(&m->budget, LIMIT_SWAP));
	}
	count_add(m->counts, COUNT_SWAP_OUT, left);
	/* Pools may have given back what they did not use. */
	mir_pools_count(m);
	mir_swap_tell_left(&m->swap->gpu[device], left);
	return left;
}

uint64_t mir_swap_leave(struct mirror *m, unsigned int device, uint64_t want, const char **why)
{
	struct swap *s = m->swap;
	uint64_t until = spin_clock() + CLOSE_NS, left = 0;

	*why = "the session ends";
	pthread_mutex_lock(&s->mover);
	if (atomic_load(&s->stop))
		goto out;
	pthread_mutex_lock(&s->lock);
	atomic_fetch_or(&m->swap_state, SWAP_CLOSED);
	pthread_mutex_unlock(&s->lock);
	*why = "commands are under way";
	if (take_users(m, until)) {
		*why = "its work does not end";
		if (atomic_load(&m->abandoned))
			*why = "the session ends";
		else if (is_work_done(m, until)) {
			*why = NULL;
			left = leave_now(m, device, want, why);
		}
		mir_give_users(m);
	}
	open_again(m);
	if (*why)
		count_add(m->counts, COUNT_STAYED, 1);
out:
	pthread_mutex_unlock(&s->mover);
	return left;
}

static void carry_out_order(struct swap_gpu *g, uint32_t number, uint64_t want)
{
	const char *why = NULL;
	uint64_t left = 0;

	while (left < want && !why && !atomic_load(&g->m->swap->stop)) {
		uint64_t part = want - left < PORTION ? want - left : PORTION;

		left += mir_swap_leave(g->m, g->device, part, &why);
		mir_swap_answer(g, number, left, false);
	}
	if (why && left < want)
		left += mir_swap_give_unused(g, want - left);
	if (left < want)
		complain("%llu of %llu bytes have left the GPU: %s", (unsigned long long)left,
			 (unsigned long long)want, why ? why : "the session ends");
	mir_swap_tell_fixed(g, why == mir_swap_full && left < want);
	mir_swap_answer(g, number, left, true);
}

static void keep_movers_out(struct swap *s, bool out)
{
	if (out) {
		pthread_mutex_lock(&s->mover);
		pthread_mutex_lock(&s->backer);
	} else {
		pthread_mutex_unlock(&s->backer);
		pthread_mutex_unlock(&s->mover);
	}
}

/* Returns whether there may be more. A command that wakes the program waits for one block at most.
 */
static bool demote_one(struct mirror *m)
{
	struct swap *s = m->swap;
	bool done;

	keep_movers_out(s, true);
	done = !atomic_load(&s->stop) && atomic_load(&m->swap_state) & SWAP_AWAY &&
	       store_demote(&s->store);
	keep_movers_out(s, false);
	return done;
}

void mir_swap_settle(struct mirror *m)
{
	struct swap *s = m->swap;
	uint64_t refused = budget_refused_others(&m->budget, LIMIT_SWAP);
	void *window;

	if (s->store.file.fd < 0)
		return;
	keep_movers_out(s, true);
	window = store_take_window(&s->store, TRIM);
	keep_movers_out(s, false);
	store_unmap_window(&s->store, window);
	if (atomic_exchange(&s->refused, refused) == refused || budget_has_colder(&m->budget))
		return;
	/* Unmapping memory may wait for the GPU, and commands that bring memory back need not. */
	while (demote_one(m)) {
		store_trim(&s->store, 0);
		rest_ns(LOOK_NS);
	}
}

void *mir_swap_serve(void *arg)
{
	struct swap_gpu *g = arg;
	uint32_t number;
	uint64_t want;

	while (!atomic_load(&g->m->swap->stop)) {
		want = mir_swap_order(g, &number);
		if (want) {
			carry_out_order(g, number, want);
			continue;
		}
		mir_swap_sleep(g);
		mir_swap_trim(g, TRIM);
		mir_swap_settle(g->m);
	}
	return NULL;
}
