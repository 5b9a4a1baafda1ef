// SPDX-License-Identifier: GPL-2.0-or-later
/* Device memory that commands use (held.h). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "qcu-device/memory/held.h"

/* The slot in which this thread's command holds memory. */
static _Thread_local const struct held_slot *own_slot;

int held_init(struct held *h, unsigned int slots)
{
	h->slot = aligned_alloc(64, slots * sizeof(*h->slot));
	if (!h->slot)
		return -ENOMEM;
	memset(h->slot, 0, slots * sizeof(*h->slot));
	h->slots = slots;
	atomic_init(&h->leavings, 0);
	atomic_init(&h->used, 0);
	LIST_INIT(&h->list);
	pthread_mutex_init(&h->lock, NULL);
	pthread_cond_init(&h->moved, NULL);
	return 0;
}

void held_fini(struct held *h)
{
	pthread_cond_destroy(&h->moved);
	pthread_mutex_destroy(&h->lock);
	free(h->slot);
}

/* The caller holds the lock. */
static const struct held_leaving *leaving_at(const struct held *h, uint64_t first, uint64_t last)
{
	const struct held_leaving *l;

	LIST_FOREACH(l, &h->list, link)
		if (l->first <= last && first <= l->last)
			return l;
	return NULL;
}

/*
 * Memory that commands still hold cannot belong to a new allocation. But memory that the backend is
 * freeing may: then the new one's first command waits until the old one is gone.
 */
static bool wait_for_leavings(struct held *h, uint64_t first, uint64_t last)
{
	const struct held_leaving *l;

	pthread_mutex_lock(&h->lock);
	while ((l = leaving_at(h, first, last)) && l->unheld)
		pthread_cond_wait(&h->moved, &h->lock);
	pthread_mutex_unlock(&h->lock);
	return !l;
}

static void count_slot(struct held *h, unsigned int slot)
{
	uint32_t used = atomic_load(&h->used);

	while (used <= slot && !atomic_compare_exchange_weak(&h->used, &used, slot + 1))
		;
}

/* Returns whether nothing is being freed. */
static bool hold_range(struct held *h, unsigned int slot, uint64_t addr, uint64_t len)
{
	struct held_slot *s = &h->slot[slot];
	uint32_t n = atomic_load_explicit(&s->count, memory_order_relaxed);
	uint64_t last = addr + (len - 1);

	if (atomic_load_explicit(&h->used, memory_order_relaxed) <= slot)
		count_slot(h, slot);
	own_slot = s;
	if (n < HELD_RANGES) {
		atomic_store_explicit(&s->range[n].first, addr, memory_order_relaxed);
		atomic_store_explicit(&s->range[n].last, last, memory_order_relaxed);
	}
	/* Pairs with held_leave(): one of the two sees what the other has stored. */
	if (n <= HELD_RANGES)
		atomic_store(&s->count, n + 1);
	return !atomic_load(&h->leavings);
}

bool held_take(struct held *h, unsigned int slot, uint64_t addr, uint64_t len)
{
	return hold_range(h, slot, addr, len) || wait_for_leavings(h, addr, addr + (len - 1));
}

bool held_try(struct held *h, unsigned int slot, uint64_t addr, uint64_t len)
{
	if (hold_range(h, slot, addr, len))
		return true;
	held_release(h, slot);
	return false;
}

void held_release(struct held *h, unsigned int slot)
{
	struct held_slot *s = &h->slot[slot];

	if (!atomic_load_explicit(&s->count, memory_order_relaxed))
		return;
	own_slot = NULL;
	/* Pairs with held_leave(), which looks at the slot again before it sleeps. */
	atomic_store(&s->count, 0);
	if (!atomic_load(&h->leavings))
		return;
	pthread_mutex_lock(&h->lock);
	pthread_cond_broadcast(&h->moved);
	pthread_mutex_unlock(&h->lock);
}

/* Does the command in this slot hold any of the memory? */
static bool is_held_by_slot(const struct held_slot *s, const struct held_leaving *l)
{
	uint32_t n = atomic_load(&s->count), i;

	if (n > HELD_RANGES)
		return true;
	for (i = 0; i < n; i++)
		if (atomic_load_explicit(&s->range[i].first, memory_order_relaxed) <= l->last &&
		    l->first <= atomic_load_explicit(&s->range[i].last, memory_order_relaxed))
			return true;
	return false;
}

static bool any_holds(const struct held *h, const struct held_leaving *l)
{
	uint32_t used = atomic_load(&h->used), i;

	for (i = 0; i < used; i++)
		if (&h->slot[i] != own_slot && is_held_by_slot(&h->slot[i], l))
			return true;
	return false;
}

void held_leave(struct held *h, struct held_leaving *l, uint64_t addr, uint64_t size)
{
	*l = (struct held_leaving){.first = addr, .last = addr + (size ? size - 1 : 0)};
	pthread_mutex_lock(&h->lock);
	LIST_INSERT_HEAD(&h->list, l, link);
	atomic_fetch_add(&h->leavings, 1);
	while (any_holds(h, l))
		pthread_cond_wait(&h->moved, &h->lock);
	l->unheld = true;
	pthread_mutex_unlock(&h->lock);
}

void held_gone(struct held *h, struct held_leaving *l)
{
	pthread_mutex_lock(&h->lock);
	LIST_REMOVE(l, link);
	atomic_fetch_sub(&h->leavings, 1);
	pthread_cond_broadcast(&h->moved);
	pthread_mutex_unlock(&h->lock);
}
