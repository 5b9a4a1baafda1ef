// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What a mirror and the broker say to each other about memory (swap.h). The broker's side lies in
 * memory that this process can only read; what this side says is a claim, and no more.
 */
#define _GNU_SOURCE /* syscall */
#include <limits.h>
#include <linux/futex.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "qcu-device/commands/commands.h"
#include "qcu-device/commands/swap/swap.h"

#define RETRY_NS 50000000 /* no sleep before an answer is longer */
/*
 * All brokers of a VM have the same bell, and one may not hear it. So who waits rings again; often,
 * if all commands wait meanwhile.
 */
#define RETRY_NOW_NS 1000000
#define IDLE_S	     1		   /* no sleep before an order is longer */
#define BROKEN_NS    5000000000ull /* a broker that has not looked for so long is not waited for */
#define NOW_NS	     1000000000ull /* the same if the memory may go elsewhere */

static struct turn_gpu *turn_of(const struct swap_gpu *g)
{
	return &g->m->turns.gpu[g->device];
}

static struct turns_memory *claims_of(const struct swap_gpu *g)
{
	return &mir_turn_report(turn_of(g))->memory;
}

static const struct turns_room *room_of(const struct swap_gpu *g)
{
	return &mir_turn_orders(turn_of(g))->room[g->m->cfg.session];
}

/* The GPU after the program's own. No command uses it, and nothing leaves it. */
static bool is_for_store(const struct swap_gpu *g)
{
	return g->device == g->m->devices;
}

static bool has_broker(const struct swap_gpu *g)
{
	return is_for_store(g) ? g->m->turns.store : g->device < g->m->turns.gpus;
}

/*
 * Device memory that is host memory never runs out, so the broker says how much there is. Until it
 * has looked nothing is granted.
 */
static bool is_ledger(const struct swap_gpu *g)
{
	const struct turns_orders *o;

	if (!has_broker(g) || !g->m->cfg.ops->memory)
		return false;
	o = mir_turn_orders(turn_of(g));
	return atomic_load(&o->memory) || !atomic_load(&o->looks);
}

/* A backend may have to look at all its memory, so it is asked only if something has left. */
static uint64_t count_away(const struct swap_gpu *g)
{
	if (is_for_store(g) ||
	    !(atomic_load_explicit(&g->m->swap_state, memory_order_relaxed) & SWAP_AWAY))
		return 0;
	return g->m->cfg.ops->mem_away(g->m->be, g->device);
}

/* What the backend counts: on the GPU, or with what is away. */
static uint64_t count_taken(const struct swap_gpu *g)
{
	const struct session_usage *u = g->m->budget.usage;

	if (g->m->cfg.ops->memory)
		return atomic_load(&g->held);
	return atomic_load(is_for_store(g) ? &u->used[LIMIT_SWAP_GPU] : &u->memory[g->device]);
}

static uint64_t count_held(const struct swap_gpu *g)
{
	uint64_t taken = count_taken(g), away;

	if (g->m->cfg.ops->memory)
		return taken;
	away = count_away(g);
	return taken > away ? taken - away : 0;
}

bool mir_swap_resident(void *mirror, unsigned int device, int64_t bytes)
{
	struct mirror *m = mirror;
	struct swap_gpu *g = m->swap ? &m->swap->gpu[device] : NULL;
	uint64_t now;

	if (!g)
		return true;
	now = atomic_fetch_add(&g->held, (uint64_t)bytes) + (uint64_t)bytes;
	if (bytes < 0 || !is_ledger(g) || now <= atomic_load(&g->granted))
		return true;
	atomic_fetch_sub(&g->held, (uint64_t)bytes);
	return false;
}

/* With a bound for all stores, what one does not use is free for others. */
static bool must_trim(const struct swap_gpu *g)
{
	return atomic_load(&mir_turn_orders(turn_of(g))->stores) &&
	       atomic_load(&g->m->swap->store.kept_bytes);
}

/* The caller holds g->tell. */
static void tell_claims(struct swap_gpu *g, uint64_t granted)
{
	struct turns_memory *t = claims_of(g);
	uint64_t away = count_away(g);

	atomic_store(&g->granted, granted);
	if (is_for_store(g)) {
		atomic_store(&t->held, is_ledger(g) ? granted : count_held(g));
		return;
	}
	atomic_store(&t->kept, atomic_load(&g->m->swap->store.kept_bytes));
	atomic_store(&t->away, away);
	atomic_store(&t->held, is_ledger(g) ? granted : count_held(g));
	atomic_store(&g->m->counts->n[COUNT_AWAY], away);
}

/* What was granted and is not used goes back, unless a command is about to use it. */
void mir_swap_tell(struct swap_gpu *g)
{
	if (!has_broker(g))
		return;
	pthread_mutex_lock(&g->tell);
	/* Whoever changes it from now on tells it again. */
	atomic_store(&g->told, count_taken(g));
	tell_claims(g, atomic_load(&g->asking) ? atomic_load(&g->granted) : count_held(g));
	pthread_mutex_unlock(&g->tell);
	if (!is_for_store(g) && must_trim(g))
		mir_swap_wake(g);
}

void mir_swap_tell_change(struct swap_gpu *g)
{
	if (count_taken(g) != atomic_load(&g->told))
		mir_swap_tell(g);
}

uint64_t mir_swap_unused(const struct swap_gpu *g)
{
	uint64_t granted = atomic_load(&g->granted), held = count_held(g);

	if (!is_ledger(g))
		return 0;
	return granted > held ? granted - held : 0;
}

uint64_t mir_swap_give_unused(struct swap_gpu *g, uint64_t want)
{
	uint64_t n;

	if (!is_ledger(g))
		return 0;
	pthread_mutex_lock(&g->tell);
	n = mir_swap_unused(g);
	if (n > want)
		n = want;
	tell_claims(g, atomic_load(&g->granted) - n);
	pthread_mutex_unlock(&g->tell);
	return n;
}

void mir_swap_tell_left(struct swap_gpu *g, uint64_t left)
{
	uint64_t granted;

	if (!has_broker(g))
		return;
	pthread_mutex_lock(&g->tell);
	granted = atomic_load(&g->granted);
	tell_claims(g, granted > left ? granted - left : 0);
	pthread_mutex_unlock(&g->tell);
}

bool mir_swap_fits(struct swap_gpu *g, uint64_t bytes)
{
	uint64_t granted = atomic_load(&g->granted);

	return !is_ledger(g) || (bytes <= granted && count_held(g) <= granted - bytes);
}

static void sleep_on_word(const _Atomic uint32_t *word, uint32_t is, const struct timespec *t)
{
	syscall(SYS_futex, word, FUTEX_WAIT, is, t, NULL, 0);
}

/*
 * Waits for the answer to this request. If there is no broker, only the first request waits for
 * one: a new broker looks at the page as soon as it knows it.
 */
static uint32_t wait_for_answer(struct swap_gpu *g, uint32_t number, bool only_now,
				uint64_t until_ns)
{
	const struct timespec pause = {.tv_nsec = only_now ? RETRY_NOW_NS : RETRY_NS};
	const uint64_t broken_ns = only_now ? NOW_NS : BROKEN_NS;
	const struct turns_orders *o = mir_turn_orders(turn_of(g));
	const _Atomic uint32_t *word = &room_of(g)->answer;
	uint32_t answer, looks = atomic_load(&o->looks), now;
	uint64_t since = spin_clock();
	bool gone = g->silent && g->silent_looks == looks;

	for (;;) {
		answer = atomic_load(word);
		if ((answer & TURNS_NUMBER) == number)
			return answer;
		now = atomic_load(&o->looks);
		if (now != looks)
			since = spin_clock();
		looks = now;
		g->silent = spin_clock() - since > broken_ns || (gone && now == g->silent_looks);
		g->silent_looks = now;
		eventfd_write(g->m->turns.view.bell, 1);
		if (atomic_load(&g->m->swap->stop) || spin_clock() > until_ns || g->silent)
			return 0;
		sleep_on_word(word, answer, &pause);
	}
}

bool mir_swap_ask(struct swap_gpu *g, uint64_t bytes, uint32_t how, uint64_t until_ns)
{
	struct turns_memory *t;
	uint32_t number;
	bool room;

	if (!has_broker(g))
		return false;
	t = claims_of(g);
	pthread_mutex_lock(&g->ask);
	mir_swap_tell(g);
	if (is_ledger(g)) {
		uint64_t has = mir_swap_unused(g);

		if (bytes <= has) {
			pthread_mutex_unlock(&g->ask);
			return true;
		}
		bytes -= has;
	}
	number = (atomic_load(&room_of(g)->answer) + 1) & TURNS_NUMBER;
	if (!number)
		number = 1;
	atomic_store(&t->need, bytes);
	atomic_store(&t->ask, number | how);
	room = wait_for_answer(g, number, how == TURNS_NOW, until_ns) & TURNS_GRANTED;
	if (room) {
		pthread_mutex_lock(&g->tell);
		tell_claims(g, atomic_load(&g->granted) + bytes);
		pthread_mutex_unlock(&g->tell);
	}
	atomic_store(&t->need, 0);
	pthread_mutex_unlock(&g->ask);
	return room;
}

void *mir_swap_borrow(void *mirror, uint64_t bytes)
{
	struct mirror *m = mirror;
	struct swap_gpu *g = &m->swap->gpu[m->devices];
	void *p = NULL;

	if (!budget_take(&m->budget, LIMIT_SWAP_GPU, bytes))
		return NULL;
	/* Until it is taken nothing that was granted goes back. */
	atomic_fetch_add(&g->asking, 1);
	if (mir_swap_fits(g, bytes) || mir_swap_ask(g, bytes, TURNS_NOW, UINT64_MAX))
		p = m->cfg.ops->store_take(m->be, bytes);
	atomic_fetch_sub(&g->asking, 1);
	if (p)
		count_add(m->counts, COUNT_LENT, bytes);
	else
		mir_give(m, LIMIT_SWAP_GPU, bytes);
	mir_swap_tell(g);
	return p;
}

void mir_swap_hand_back(void *mirror, void *p, uint64_t bytes)
{
	struct mirror *m = mirror;

	m->cfg.ops->store_give(m->be, p, bytes);
	count_sub(m->counts, COUNT_LENT, bytes);
	mir_give(m, LIMIT_SWAP_GPU, bytes);
	mir_swap_tell(&m->swap->gpu[m->devices]);
}

void mir_swap_skip(struct swap_gpu *g)
{
	atomic_store(&claims_of(g)->number, atomic_load(&room_of(g)->number));
}

uint64_t mir_swap_order(struct swap_gpu *g, uint32_t *number)
{
	const struct turns_room *r = room_of(g);

	*number = atomic_load(&r->number);
	return *number == atomic_load(&claims_of(g)->number) ? 0 : atomic_load(&r->bytes);
}

void mir_swap_tell_fixed(struct swap_gpu *g, bool full)
{
	uint64_t movable = full ? 0 : g->m->cfg.ops->mem_movable(g->m->be, g->device), held;

	if (!has_broker(g))
		return;
	mir_swap_tell(g);
	held = count_held(g);
	atomic_store(&claims_of(g)->fixed, held > movable ? held - movable : 0);
}

void mir_swap_answer(struct swap_gpu *g, uint32_t number, uint64_t left, bool done)
{
	struct turns_memory *t = claims_of(g);

	atomic_store(&t->left, left);
	if (!done)
		return;
	atomic_store(&t->number, number);
	eventfd_write(g->m->turns.view.bell, 1);
}

void mir_swap_sleep(struct swap_gpu *g)
{
	const struct timespec idle = {.tv_sec = IDLE_S};
	const _Atomic uint32_t *word = &mir_turn_orders(turn_of(g))->leaves;
	uint32_t is = atomic_load(word), number;

	if (!mir_swap_order(g, &number) && !must_trim(g))
		sleep_on_word(word, is, &idle);
}

void mir_swap_trim(struct swap_gpu *g, unsigned int looks)
{
	store_trim(&g->m->swap->store, must_trim(g) ? 0 : looks);
	if (atomic_load(&g->m->swap->store.kept_bytes) != atomic_load(&claims_of(g)->kept))
		mir_swap_tell(g);
}

void mir_swap_wake(struct swap_gpu *g)
{
	syscall(SYS_futex, &mir_turn_orders(turn_of(g))->leaves, FUTEX_WAKE, INT_MAX, NULL, NULL,
		0);
}
