// SPDX-License-Identifier: GPL-2.0-or-later
/* Who lets memory leave (room.h). */
#include <string.h>

#include "qcu-device/turns/room.h"

#define NS_PER_S 1000000000ull

void room_init(struct room *r, uint64_t memory)
{
	memset(r, 0, sizeof(*r));
	r->memory = memory;
	r->rate = ROOM_RATE;
}

static uint64_t count_guaranteed(const struct room *r)
{
	uint64_t sum = 0;
	unsigned int i;

	for (i = 0; i < r->top; i++)
		sum += r->vm[i].resident;
	return sum;
}

/* The least of what VMs have found, if they differ. */
uint64_t room_left(const struct room *r, uint64_t memory, uint64_t *all)
{
	uint64_t guaranteed = count_guaranteed(r), least = memory ? memory : UINT64_MAX;
	unsigned int i;

	for (i = 0; i < r->top; i++)
		if (r->vm[i].memory && r->vm[i].memory < least)
			least = r->vm[i].memory;
	if (r->memory && r->memory < least)
		least = r->memory;
	*all = least == UINT64_MAX ? 0 : least;
	return *all > guaranteed ? *all - guaranteed : 0;
}

bool room_add(struct room *r, unsigned int vm, bool moves, uint64_t resident, uint64_t memory)
{
	uint64_t all, left = room_left(r, memory, &all);

	if (resident > ROOM_BYTES_MAX || (all && resident > left))
		return false;
	memset(&r->vm[vm], 0, sizeof(r->vm[vm]));
	r->vm[vm].memory = memory;
	r->vm[vm].moves = moves;
	r->vm[vm].resident = resident;
	if (vm >= r->top)
		r->top = vm + 1;
	return true;
}

void room_stays(struct room *r, unsigned int vm)
{
	r->vm[vm].stays = true;
}

void room_remove(struct room *r, unsigned int vm)
{
	memset(&r->vm[vm], 0, sizeof(r->vm[vm]));
	while (r->top && !r->vm[r->top - 1].moves && !r->vm[r->top - 1].memory)
		r->top--;
}

uint64_t room_most(const struct room *r, unsigned int vm)
{
	return r->memory ? r->memory - count_guaranteed(r) + r->vm[vm].resident : 0;
}

static uint64_t smaller(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t bounded(uint64_t bytes)
{
	return smaller(bytes, ROOM_BYTES_MAX);
}

void room_bound(struct room *r, unsigned int vm, uint64_t swap, uint64_t stores)
{
	r->vm[vm].swap = bounded(swap);
	r->vm[vm].stores = bounded(stores);
}

uint64_t room_stores(const struct room *r)
{
	uint64_t least = UINT64_MAX;
	unsigned int i;

	for (i = 0; i < r->top; i++)
		if (r->vm[i].stores)
			least = smaller(least, r->vm[i].stores);
	return least == UINT64_MAX ? 0 : least;
}

/* What has left by orders, and is not back. */
static uint64_t count_known_away(const struct room_program *p)
{
	return smaller(p->claim.away, p->store);
}

/* How much of what it needs has left before. */
static uint64_t count_returning(const struct room_program *p)
{
	return p->claim.back ? smaller(p->claim.need, count_known_away(p) - p->returning) : 0;
}

static void note_store(struct room_program *p)
{
	/* Nothing is on its way out. */
	if (p->claim.number == p->number)
		p->store = smaller(p->store, p->claim.away + p->claim.kept);
	p->returning = smaller(p->returning, count_known_away(p));
}

void room_claim(struct room *r, uint64_t now_ns, unsigned int vm, unsigned int program,
		const struct room_claim *c)
{
	struct room_program *p = &r->vm[vm].program[program];
	bool was_live = p->live;

	r->now_ns = now_ns;
	if (!c->live) {
		memset(p, 0, sizeof(*p));
		return;
	}
	p->live = true;
	p->claim = *c;
	p->claim.held = bounded(c->held);
	p->claim.fixed = bounded(c->fixed);
	p->claim.away = bounded(c->away);
	p->claim.need = bounded(c->need);
	p->claim.kept = bounded(c->kept);
	if (!was_live) {
		p->answer = p->ask = 0;
		p->number = c->told;
		p->store = bounded(c->told_store);
		p->since_ns = r->now_ns;
	}
	note_store(p);
	if (!c->need || c->ask != p->ask)
		p->granted = 0;
	if (c->need && c->ask != p->answer && (!p->asks || c->ask != p->ask)) {
		p->asks = true;
		p->ask = c->ask;
		/*
		 * A program that asks again stays as old as it was, or two would take memory from
		 * each other for ever. But not for long: its claims may be lies.
		 */
		if (!p->asked_ns || r->now_ns - p->asked_ns > ROOM_AGE)
			p->asked_ns = r->now_ns;
		p->came = false;
		/* It has no room for what it asks for, whatever was granted before. */
		if (c->back)
			p->returning =
				count_known_away(p) - smaller(p->claim.need, count_known_away(p));
	}
	if (!c->need)
		p->asks = false;
	if (!c->need && !c->away)
		p->asked_ns = 0;
}

static uint64_t count_movable(const struct room_program *p)
{
	return p->claim.held > p->claim.fixed ? p->claim.held - p->claim.fixed : 0;
}

static uint64_t count_vm(const struct room_vm *v)
{
	uint64_t sum = 0;
	unsigned int k;

	for (k = 0; k < ROOM_PROGRAMS; k++)
		if (v->program[k].live)
			sum += v->program[k].claim.held + v->program[k].granted;
	return sum;
}

/* What nobody has; 0 if it is not known how much there is. */
static uint64_t count_free(const struct room *r)
{
	uint64_t sum = 0;
	unsigned int i;

	for (i = 0; i < r->top; i++)
		sum += count_vm(&r->vm[i]);
	return r->memory > sum ? r->memory - sum : 0;
}

static uint64_t time_to_move(const struct room *r, uint64_t bytes)
{
	return (uint64_t)((double)bytes / (double)r->rate * (double)NS_PER_S);
}

/* ---- orders ---- */

static void end_order(struct room *r, struct room_program *p)
{
	struct room_program *asker = &r->vm[p->for_vm].program[p->for_program];
	uint64_t left = p->claim.left < p->bytes ? p->claim.left : p->bytes;
	uint64_t ns = r->now_ns - p->ordered_ns, rate;

	p->ordered = p->silent = false;
	p->passed_ns = left < p->bytes ? r->now_ns + ROOM_BUSY : 0;
	p->gave_ns = r->now_ns;
	if (asker == p)
		r->evicted += left;
	if (left) {
		asker->came = true;
		rate = (uint64_t)((double)left / (double)(ns ? ns : 1) * (double)NS_PER_S);
		if (rate > ROOM_RATE)
			rate = ROOM_RATE;
		if (rate < ROOM_RATE_MIN)
			rate = ROOM_RATE_MIN;
		r->rate = r->rate / 2 + rate / 2;
	}
}

/* Has it not answered, though it should have by now? */
static bool is_awaited(const struct room *r, const struct room_program *p)
{
	return p->silent && r->now_ns - p->ordered_ns < ROOM_PASS;
}

/* An answer that comes late is an answer: the machine may be slow. */
static void look_at_order(struct room *r, struct room_program *p)
{
	uint64_t late = ROOM_SLOW + (uint64_t)((double)p->bytes / ROOM_SLOW_RATE * NS_PER_S);

	if (p->claim.number == p->number) {
		end_order(r, p);
	} else if (p->ordered && r->now_ns - p->ordered_ns > late) {
		p->ordered = false;
		p->silent = true;
		p->passed_ns = r->now_ns + ROOM_PASS;
	}
}

/* How much is on its way out for this request. */
static uint64_t count_ordered(const struct room *r, unsigned int vm, unsigned int program)
{
	uint64_t sum = 0;
	unsigned int i, k;

	for (i = 0; i < r->top; i++)
		for (k = 0; k < ROOM_PROGRAMS; k++) {
			const struct room_program *p = &r->vm[i].program[k];

			if (p->live && p->ordered && p->for_vm == vm && p->for_program == program)
				sum += p->bytes;
		}
	return sum;
}

/* ---- who gives ---- */

/*
 * Who just gave comes last: if the memory had come, and it is that which was missing, nobody would
 * ask again.
 */
static uint64_t idle_for(const struct room *r, const struct room_program *p)
{
	if (p->gave_ns && r->now_ns - p->gave_ns < ROOM_TURN)
		return ROOM_IDLE + 1;
	return p->claim.worked_ns < r->now_ns ? r->now_ns - p->claim.worked_ns : 0;
}

/* How much of it may be taken for a program of the VM `asker`. */
static uint64_t count_giveable(const struct room *r, unsigned int vm, unsigned int program,
			       unsigned int asker)
{
	const struct room_vm *v = &r->vm[vm];
	const struct room_program *p = &v->program[program];
	uint64_t n = count_movable(p), all;

	if (!v->moves || v->stays || !p->live || p->ordered ||
	    (p->silent && p->passed_ns > r->now_ns))
		return 0;
	if (vm == asker)
		return n;
	all = count_vm(v);
	if (all <= v->resident)
		return 0;
	return n < all - v->resident ? n : all - v->resident;
}

/* 2: it is idle, or waits itself; 1: its quantum is over; 0: not yet. */
static unsigned int rank_of(const struct room *r, const struct room_program *p,
			    const struct room_program *asker)
{
	uint64_t move = time_to_move(r, count_movable(p)), quantum = move * ROOM_MOVES;

	if (p->passed_ns > r->now_ns)
		return 0;
	/* One of two that ask must give, or both wait. They may have asked at the same time. */
	if (p->asks)
		return p->asked_ns > asker->asked_ns ||
				       (p->asked_ns == asker->asked_ns && p > asker)
			       ? 2
			       : 0;
	if (p->claim.worked_ns < r->now_ns && r->now_ns - p->claim.worked_ns > ROOM_IDLE &&
	    r->now_ns - p->claim.worked_ns > move / 8)
		return 2;
	if (quantum < ROOM_QUANTUM)
		quantum = ROOM_QUANTUM;
	if (quantum > ROOM_QUANTUM_MAX)
		quantum = ROOM_QUANTUM_MAX;
	return r->now_ns - p->since_ns > quantum;
}

/* ---- the bound of all stores ---- */

static uint64_t count_part(const struct room *r)
{
	return r->memory ? ROOM_PART_SOFT : ROOM_PART;
}

/*
 * What has left must come back, whatever others do. It does after others have left for it, so both
 * are in the stores for a while. So new memory lets half of the bound be filled, and so much is
 * free for what comes back. A program may have half of the bound away, or it would not come back.
 */
static uint64_t count_half(const struct room *r)
{
	uint64_t all = room_stores(r), parts = 2 * count_part(r);

	return all > parts ? (all - parts) / 2 : 0;
}

/* Of a VM no more counts than its own bound, whatever it claims. */
static uint64_t count_vm_store(const struct room_vm *v, bool away)
{
	uint64_t sum = 0;
	unsigned int k;

	for (k = 0; k < ROOM_PROGRAMS; k++) {
		const struct room_program *p = &v->program[k];

		if (p->live)
			sum += away ? count_known_away(p) - p->returning : p->store;
	}
	return v->swap ? smaller(sum, v->swap) : sum;
}

/* Could all that is away come back, if there were so much new memory as well? */
static bool fits(const struct room *r, uint64_t new)
{
	uint64_t sum = new;
	unsigned int i;

	for (i = 0; i < r->top; i++)
		sum += count_vm_store(&r->vm[i], true);
	return !room_stores(r) || sum <= count_half(r) + count_free(r);
}

/* For a moment it looks so while programs say one number after the other. */
static bool is_over(const struct room *r)
{
	return r->over_ns && r->now_ns - r->over_ns > ROOM_SLOW;
}

/* How much more may leave, for all. */
static uint64_t count_store_left(const struct room *r)
{
	uint64_t all = room_stores(r), used = count_part(r);
	unsigned int i;

	for (i = 0; i < r->top; i++)
		used += count_vm_store(&r->vm[i], false);
	return all > used ? all - used : 0;
}

/* Of what has been granted, or lies in a store, something may be free in a moment. */
static bool is_settling(const struct room *r, const struct room_program *asker)
{
	unsigned int i, k;

	for (i = 0; i < r->top; i++)
		for (k = 0; k < ROOM_PROGRAMS; k++) {
			const struct room_program *p = &r->vm[i].program[k];

			if (!p->live || p == asker)
				continue;
			if ((p->granted && r->now_ns - p->since_ns < ROOM_SLOW) ||
			    (p->store > p->claim.away && r->now_ns - asker->asked_ns < ROOM_SLOW))
				return true;
		}
	return false;
}

static bool is_any_ordered(const struct room *r)
{
	unsigned int i, k;

	for (i = 0; i < r->top; i++)
		for (k = 0; k < ROOM_PROGRAMS; k++) {
			const struct room_program *p = &r->vm[i].program[k];

			if (p->live && (p->ordered || is_awaited(r, p)))
				return true;
		}
	return false;
}

/* ---- requests ---- */

/* later: some program could give, but not yet; full: it could, if the bound were higher. */
struct room_search {
	bool later, full;
	bool exceed; /* the bound of all stores */
};

/* For how much more of this program there is store. */
static uint64_t count_storable(const struct room *r, unsigned int vm, const struct room_program *p,
			       uint64_t left, struct room_search *s)
{
	const struct room_vm *v = &r->vm[vm];
	uint64_t n = UINT64_MAX, used, half = count_half(r);

	if (!room_stores(r))
		return n;
	if (v->swap) {
		used = count_vm_store(v, false);
		n = v->swap - used;
	}
	if (s->exceed || !n)
		return n;
	n = smaller(n, smaller(left, half > p->store ? half - p->store : 0));
	s->full |= !n;
	return n;
}

/* Orders a program to let so much leave, for the request of a program; or, for itself, without
 * need. */
static void give_order(const struct room *r, struct room_program *p, unsigned int vm,
		       unsigned int program, uint64_t bytes)
{
	p->ordered = true;
	p->bytes = bytes;
	p->ordered_ns = r->now_ns;
	p->for_vm = vm;
	p->for_program = program;
	p->number++;
	p->store = bounded(p->store + bytes + count_part(r));
}

/* Orders the best program to let memory leave for this request. Returns how much was ordered. */
static uint64_t order_best(struct room *r, unsigned int vm, unsigned int program, uint64_t lack,
			   struct room_search *s)
{
	const struct room_program *asker = &r->vm[vm].program[program];
	uint64_t best_n = 0, n, left = count_store_left(r);
	struct room_program *best = NULL;
	unsigned int i, k, rank, best_rank = 0;

	for (i = 0; i < r->top; i++) {
		for (k = 0; k < ROOM_PROGRAMS; k++) {
			struct room_program *p = &r->vm[i].program[k];

			n = p == asker ? 0 : count_giveable(r, i, k, vm);
			/* It gives to another one now, and may give more after that. */
			s->later |= p != asker && p->live && (p->ordered || is_awaited(r, p));
			/* It has nothing yet that it could give. */
			s->later |= p != asker && p->granted && r->vm[i].moves &&
				    r->now_ns - p->since_ns < ROOM_SLOW;
			/* What has just been granted to it should come back first. */
			if (n && room_stores(r) && p->returning &&
			    r->now_ns - p->since_ns < ROOM_SLOW) {
				s->later = true;
				continue;
			}
			if (n)
				n = smaller(n, count_storable(r, i, p, left, s));
			if (!n)
				continue;
			rank = rank_of(r, p, asker);
			s->later |= !rank;
			if (rank > best_rank || (rank && rank == best_rank &&
						 (rank == 2 ? idle_for(r, p) > idle_for(r, best)
							    : p->since_ns < best->since_ns))) {
				best = p;
				best_rank = rank;
				best_n = n;
			}
		}
	}
	if (!best)
		return 0;
	give_order(r, best, vm, program, smaller(best_n, lack));
	return best->bytes;
}

static void order_all(struct room *r, unsigned int vm, unsigned int program, uint64_t lack,
		      struct room_search *s)
{
	uint64_t n;

	while (lack && (n = order_best(r, vm, program, lack, s)))
		lack -= n;
}

static void answer(struct room *r, struct room_program *p, bool yes)
{
	p->asks = false;
	p->answer = p->ask;
	p->yes = yes;
	p->granted = yes && r->memory ? p->claim.need : 0;
	if (yes) {
		p->returning += count_returning(p);
		p->since_ns = r->now_ns;
	}
}

static void look_at_request(struct room *r, unsigned int vm, unsigned int program)
{
	struct room_program *p = &r->vm[vm].program[program];
	uint64_t need = p->claim.need, ordered = count_ordered(r, vm, program);
	uint64_t has = r->memory ? count_free(r) : 0, new = need - count_returning(p);
	bool grows = !new || fits(r, r->promised + new);
	struct room_search s = {false};

	/* Others leave bit by bit. Who needs much would never have it. */
	/* But who has room for a part of what is away completes that, or both would wait. */
	if (room_stores(r) && !(p->claim.back && p->returning))
		has -= smaller(has, r->older);
	if (r->memory ? grows && need <= has : p->came && !ordered) {
		answer(r, p, true);
		return;
	}
	has += ordered;
	if (grows && has < need)
		order_all(r, vm, program, need - has, &s);
	/* Only if the bound has become lower, or claims are lies. But what has left comes back. */
	if (s.full && !new &&is_over(r) && !is_any_ordered(r)) {
		s.exceed = true;
		order_all(r, vm, program, need - has, &s);
	}
	if (!grows || s.full)
		s.later |= is_settling(r, p);
	if (!s.later && !count_ordered(r, vm, program)) {
		answer(r, p, false);
		return;
	}
	if (grows) {
		r->promised += new;
		r->older += need;
	}
}

/* They take nothing for which others wait, and wait for nobody. All others have been looked at. */
static void answer_impatient(struct room *r)
{
	unsigned int i, k;

	for (i = 0; i < r->top; i++)
		for (k = 0; k < ROOM_PROGRAMS; k++) {
			struct room_program *p = &r->vm[i].program[k];

			if (p->asks && p->claim.now)
				answer(r, p,
				       r->older + p->claim.need <= count_free(r) &&
					       fits(r, r->promised + p->claim.need));
		}
}

/* In turn all that can leave and half of it, so that memory comes back beside memory that stayed.
 */
static void evict_without_need(struct room *r)
{
	struct room_search s = {false};
	unsigned int i, k;
	uint64_t n;

	if (!r->evict_ns || r->now_ns - r->evicted_ns < r->evict_ns)
		return;
	r->evicted_ns = r->now_ns;
	for (i = 0; i < r->top; i++)
		for (k = 0; k < ROOM_PROGRAMS; k++) {
			struct room_program *p = &r->vm[i].program[k];

			n = p->asks ? 0 : count_giveable(r, i, k, i);
			n = smaller(n, count_storable(r, i, p, count_store_left(r), &s));
			if (n)
				give_order(r, p, i, k, p->number % 2 ? n : n - n / 2);
		}
}

void room_look(struct room *r, uint64_t now_ns)
{
	unsigned int i, k;
	uint64_t last = 0;

	r->now_ns = r->looked_ns = now_ns;
	r->promised = r->older = 0;
	if (fits(r, 0))
		r->over_ns = 0;
	else if (!r->over_ns)
		r->over_ns = now_ns;
	for (i = 0; i < r->top; i++)
		for (k = 0; k < ROOM_PROGRAMS; k++) {
			struct room_program *p = &r->vm[i].program[k];

			if (p->live && (p->ordered || p->silent))
				look_at_order(r, p);
		}
	/* The oldest request first; those of the same age in the order of their places. */
	for (;;) {
		uint64_t oldest = UINT64_MAX;

		for (i = 0; i < r->top; i++)
			for (k = 0; k < ROOM_PROGRAMS; k++) {
				const struct room_program *p = &r->vm[i].program[k];

				if (p->live && p->asks && !p->claim.now && p->asked_ns >= last &&
				    p->asked_ns < oldest)
					oldest = p->asked_ns;
			}
		if (oldest == UINT64_MAX)
			break;
		for (i = 0; i < r->top; i++)
			for (k = 0; k < ROOM_PROGRAMS; k++)
				if (r->vm[i].program[k].asks && !r->vm[i].program[k].claim.now &&
				    r->vm[i].program[k].asked_ns == oldest)
					look_at_request(r, i, k);
		last = oldest + 1;
	}
	answer_impatient(r);
	evict_without_need(r);
	r->waits = r->evict_ns;
	for (i = 0; i < r->top; i++)
		for (k = 0; k < ROOM_PROGRAMS; k++)
			r->waits |= r->vm[i].program[k].asks || r->vm[i].program[k].ordered;
}
