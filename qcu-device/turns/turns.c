// SPDX-License-Identifier: GPL-2.0-or-later
/* Whose turn it is (turns.h). */
#include <string.h>

#include "qcu-device/turns/turns.h"

void turns_init(struct turns *t)
{
	unsigned int k;

	memset(t, 0, sizeof(*t));
	t->alone = TURNS_NONE;
	for (k = 0; k < TURNS_KINDS; k++)
		t->holder[k] = t->drains[k] = TURNS_NONE;
}

unsigned int turns_add(struct turns *t, uint32_t weight, uint32_t max, bool interactive)
{
	unsigned int i = 0, k;

	while (i < TURNS_VMS && t->vm[i].there)
		i++;
	if (i == TURNS_VMS)
		return TURNS_NONE;
	t->vm[i] = (struct turns_vm){
		.there = true,
		.interactive = interactive,
		.weight = weight,
		.max = max,
	};
	for (k = 0; k < TURNS_KINDS; k++) {
		t->vm[i].order[k] = TURNS_RING;
		t->vm[i].share[k].virtual_ns = TURNS_START;
	}
	if (i >= t->top)
		t->top = i + 1;
	return i;
}

void turns_remove(struct turns *t, unsigned int vm)
{
	unsigned int k;

	t->vm[vm].there = false;
	for (k = 0; k < TURNS_KINDS; k++) {
		if (t->holder[k] == vm)
			t->holder[k] = TURNS_NONE;
		if (t->drains[k] == vm)
			t->drains[k] = TURNS_NONE;
	}
	if (t->alone == vm)
		t->alone = TURNS_NONE;
	while (t->top && !t->vm[t->top - 1].there)
		t->top--;
}

static uint64_t weighed(const struct turns_vm *v, uint64_t ns)
{
	return ns * TURNS_WEIGHT / v->weight;
}

static void charge_vm(struct turns *t, struct turns_vm *v, unsigned int kind, uint64_t ns)
{
	struct turns_account *s = &v->share[kind];

	s->had_ns += ns;
	s->virtual_ns += weighed(v, ns);
	if (!v->max)
		return;
	if (s->rest_ns < t->now_ns)
		s->rest_ns = t->now_ns;
	s->rest_ns += ns * 100 / v->max;
}

/*
 * The driver gives each process the same time while several have work. If none has any, the time is
 * that of the VM whose turn it is, for which the others wait. It is charged for a part in any case,
 * or those who say that they have work without end would make its turn last as long.
 */
static void charge_for_time(struct turns *t, unsigned int kind, uint64_t ns)
{
	uint64_t running = 0, part;
	unsigned int i, who;

	for (i = 0; i < t->top; i++)
		if (t->vm[i].there)
			running += t->vm[i].use[kind].running;
	/* If the last work is done and the next VM may not go yet, the broker is late. */
	who = t->drains[kind] == TURNS_NONE ? t->holder[kind]
	      : running			    ? t->drains[kind]
					    : TURNS_NONE;
	for (i = 0; i < t->top; i++) {
		struct turns_vm *v = &t->vm[i];

		if (!v->there)
			continue;
		part = running ? ns * v->use[kind].running / running : 0;
		if (i == who && part < ns / TURNS_PART)
			part = running ? ns / TURNS_PART : ns;
		if (part)
			charge_vm(t, v, kind, part);
		if (v->order[kind] == TURNS_HOLD && v->use[kind].wants)
			v->share[kind].waited_ns += ns;
	}
}

/* How many VMs have work, and the least of their virtual times. */
static unsigned int find_least(const struct turns *t, unsigned int kind, uint64_t *least)
{
	unsigned int n = 0, i;

	for (i = 0; i < t->top; i++) {
		const struct turns_account *s = &t->vm[i].share[kind];

		if (!t->vm[i].there || !s->active)
			continue;
		if (!n++ || s->virtual_ns < *least)
			*least = s->virtual_ns;
	}
	return n;
}

/*
 * A VM that begins again has saved its part of the time in which it did nothing, but no more than
 * its credit. What it owes it still owes.
 */
static void wake_vm(struct turns *t, struct turns_vm *v, unsigned int kind)
{
	uint64_t credit = v->interactive ? TURNS_CREDIT_LONG : TURNS_QUANTUM + 1;
	struct turns_account *s = &v->share[kind];
	uint64_t least = t->floor_ns[kind], idle;
	unsigned int others = find_least(t, kind, &least);

	s->active = true;
	s->saved = false;
	if (s->virtual_ns > least)
		return;
	idle = (t->now_ns - s->seen_ns) / (others + 1);
	if (s->virtual_ns > least - weighed(v, idle < credit ? idle : credit))
		s->virtual_ns = least - weighed(v, idle < credit ? idle : credit);
	if (s->virtual_ns < least - weighed(v, credit))
		s->virtual_ns = least - weighed(v, credit);
	s->saved = others && s->virtual_ns < least;
}

/* While one VM is the only one with work, its time is no debt to those who come later. */
static void raise_floor(struct turns *t, unsigned int kind)
{
	uint64_t least = 0;

	if (find_least(t, kind, &least) && least > t->floor_ns[kind])
		t->floor_ns[kind] = least;
}

/* A VM that has caught up with the others has spent its credit. */
static void find_savers(struct turns *t, unsigned int kind)
{
	unsigned int i, k;

	for (i = 0; i < t->top; i++) {
		struct turns_account *s = &t->vm[i].share[kind];

		for (k = 0; k < t->top && s->saved; k++)
			if (k != i && t->vm[k].there && t->vm[k].share[kind].active &&
			    !t->vm[k].share[kind].saved)
				s->saved = s->virtual_ns < t->vm[k].share[kind].virtual_ns;
	}
}

/* A VM whose threads have been told to go and do not is no reason for others to wait. */
static void find_stuck(struct turns *t, unsigned int kind)
{
	struct turns_vm *v;

	if (t->holder[kind] == TURNS_NONE)
		return;
	v = &t->vm[t->holder[kind]];
	if (v->use[kind].wants && t->now_ns - t->since_ns[kind] > TURNS_GRACE &&
	    v->share[kind].seen_ns <= t->since_ns[kind] && t->drains[kind] == TURNS_NONE)
		v->share[kind].stuck = true;
}

static void find_active(struct turns *t, unsigned int kind)
{
	unsigned int i;

	find_stuck(t, kind);
	for (i = 0; i < t->top; i++) {
		struct turns_vm *v = &t->vm[i];
		struct turns_account *s = &v->share[kind];
		const struct turns_use *u = &v->use[kind];
		uint64_t linger = v->interactive ? TURNS_LINGER_LONG : TURNS_LINGER;

		if (!v->there)
			continue;
		if (u->running || !u->wants)
			s->stuck = false;
		if (!s->active && (u->running || (u->wants && !s->stuck)))
			wake_vm(t, v, kind);
		if (u->running || (u->wants && v->order[kind] != TURNS_GO))
			s->seen_ns = t->now_ns;
		if (!u->running && (!u->wants || s->stuck) && t->now_ns - s->seen_ns > linger)
			s->active = false;
	}
}

static bool may_have_turn(const struct turns *t, const struct turns_vm *v, unsigned int kind)
{
	const struct turns_account *s = &v->share[kind];

	return v->there && s->active && s->rest_ns <= t->now_ns + TURNS_BURST;
}

/* Among equals the one after the last holder is first. */
static unsigned int find_next(const struct turns *t, unsigned int kind)
{
	unsigned int best = TURNS_NONE, from = t->holder[kind], n, i;

	for (n = 1; n <= t->top; n++) {
		i = (from == TURNS_NONE ? n - 1 : from + n) % t->top;
		if (may_have_turn(t, &t->vm[i], kind) &&
		    (best == TURNS_NONE ||
		     t->vm[i].share[kind].virtual_ns < t->vm[best].share[kind].virtual_ns))
			best = i;
	}
	return best;
}

static void choose_holder(struct turns *t, unsigned int kind)
{
	unsigned int now = t->holder[kind], next = find_next(t, kind);
	const struct turns_vm *v;

	if (now != TURNS_NONE && next != TURNS_NONE && next != now) {
		v = &t->vm[now];
		if (may_have_turn(t, v, kind) &&
		    v->share[kind].virtual_ns <=
			    t->vm[next].share[kind].virtual_ns + weighed(v, TURNS_QUANTUM))
			next = now;
	}
	if (next == now)
		return;
	t->holder[kind] = next;
	t->since_ns[kind] = t->now_ns;
	t->drains[kind] = now;
}

static void look_at_drain(struct turns *t, unsigned int kind)
{
	unsigned int from = t->drains[kind], holder = t->holder[kind];

	if (from == TURNS_NONE)
		return;
	if (holder != TURNS_NONE && holder != from && t->vm[from].use[kind].running &&
	    !t->vm[holder].share[kind].saved && t->now_ns - t->since_ns[kind] <= TURNS_DRAIN)
		return;
	t->drains[kind] = TURNS_NONE;
	t->since_ns[kind] = t->now_ns;
}

static void give_orders(struct turns *t, unsigned int kind)
{
	unsigned int i;

	for (i = 0; i < t->top; i++) {
		struct turns_vm *v = &t->vm[i];

		if (!v->there)
			continue;
		if (i == t->alone)
			v->order[kind] = TURNS_FREE;
		else if (i == t->holder[kind] || v->share[kind].stuck)
			v->order[kind] = t->drains[kind] == TURNS_NONE ? TURNS_GO : TURNS_HOLD;
		else
			v->order[kind] = v->share[kind].active ? TURNS_HOLD : TURNS_RING;
	}
}

/* Has this VM had no work of any kind for long? */
static bool has_been_idle(const struct turns *t, const struct turns_vm *v)
{
	unsigned int k;

	for (k = 0; k < TURNS_KINDS; k++)
		if (v->use[k].wants || v->use[k].running ||
		    (v->share[k].seen_ns && t->now_ns - v->share[k].seen_ns < TURNS_CALM))
			return false;
	return true;
}

/*
 * The VM that is alone is not measured, so nothing is known of its work. It stays alone until
 * another one rings. A VM with a maximum is always measured.
 */
static void find_alone(struct turns *t)
{
	unsigned int i, busy = 0, last = TURNS_NONE, k;

	for (i = 0; i < t->top; i++) {
		if (!t->vm[i].there || (i != t->alone && has_been_idle(t, &t->vm[i])))
			continue;
		busy++;
		last = i;
	}
	t->alone = busy == 1 && !t->vm[last].max ? last : TURNS_NONE;
	t->shared = busy > 1 || (busy == 1 && t->vm[last].max);
	if (t->shared)
		return;
	/* Nobody looks any more, so whoever begins must ring. */
	for (k = 0; k < TURNS_KINDS; k++) {
		t->holder[k] = t->drains[k] = TURNS_NONE;
		for (i = 0; i < t->top; i++)
			t->vm[i].share[k].active = t->vm[i].share[k].stuck = false;
		if (t->alone != TURNS_NONE)
			t->vm[t->alone].share[k].seen_ns = t->now_ns;
	}
}

uint64_t turns_next_look(const struct turns *t)
{
	bool drains = false;
	unsigned int k;

	for (k = 0; k < TURNS_KINDS; k++)
		drains |= t->drains[k] != TURNS_NONE;
	return !t->shared ? 0 : drains ? TURNS_TICK_SHORT : TURNS_TICK;
}

void turns_look(struct turns *t, uint64_t now_ns)
{
	uint64_t ns = now_ns - t->now_ns;
	unsigned int k;

	if (ns > TURNS_LONGEST_LOOK)
		ns = TURNS_LONGEST_LOOK;
	t->now_ns = now_ns;
	for (k = 0; k < TURNS_KINDS && t->shared; k++)
		charge_for_time(t, k, ns);
	find_alone(t);
	for (k = 0; k < TURNS_KINDS; k++) {
		if (t->shared) {
			raise_floor(t, k);
			find_active(t, k);
			find_savers(t, k);
			choose_holder(t, k);
			look_at_drain(t, k);
		}
		give_orders(t, k);
	}
}
