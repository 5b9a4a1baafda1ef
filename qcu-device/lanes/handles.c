// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The tables behind handles.h: arrays of pages, indexed by number; a page is made on first use.
 *
 * Every launch looks up two handles, on many lanes at once, so a lookup takes no lock. It takes a
 * reference to the handle that the entry names, unless the count is 0, and then checks that the
 * entry still names that handle. A slow thread may therefore hold a reference, for a moment, to a
 * handle that already belongs to another object. So the memory of a handle is never freed; it is
 * only used again for other handles.
 */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "qcu-device/lanes/handles.h"

static pthread_mutex_t spare_lock = PTHREAD_MUTEX_INITIALIZER;
static struct handle *spare;

void handles_init(struct handles *t, void (*release)(void *ctx, struct handle *h), void *ctx)
{
	memset(t, 0, sizeof(*t));
	t->release = release;
	t->ctx = ctx;
	pthread_mutex_init(&t->lock, NULL);
}

static bool match_all(const struct handle *h, const void *arg)
{
	(void)h;
	(void)arg;
	return true;
}

void handles_fini(struct handles *t)
{
	static const enum handle_kind order[] = {HANDLE_LIBRARY, HANDLE_GRAPH, HANDLE_KERNEL,
						 HANDLE_MODULE,	 HANDLE_EVENT, HANDLE_STREAM,
						 HANDLE_COND,	 HANDLE_ARRAY, HANDLE_POOL,
						 HANDLE_LINK,	 HANDLE_PHYS,  HANDLE_GREEN};
	unsigned int i, p;

	for (i = 0; i < HANDLE_KINDS; i++) {
		handles_remove_if(t, order[i], match_all, NULL);
		for (p = 0; p < (QCU_ID_MAX + 1) / HANDLE_PAGE; p++)
			free(atomic_load(&t->page[order[i]][p]));
	}
	pthread_mutex_destroy(&t->lock);
}

/*
 * The reference count stays 0 until the handle is ready, so that a slow lookup takes no reference
 * to it.
 */
struct handle *handle_new(enum handle_kind kind)
{
	struct handle *h;

	pthread_mutex_lock(&spare_lock);
	h = spare;
	if (h)
		spare = h->next;
	pthread_mutex_unlock(&spare_lock);
	if (!h)
		h = calloc(1, sizeof(*h));
	if (!h)
		return NULL;
	h->kind = kind;
	memset(&h->device, 0, sizeof(*h) - offsetof(struct handle, device));
	atomic_store(&h->refs, 1);
	return h;
}

void handle_drop(struct handles *t, struct handle *h)
{
	if (h)
		h->kind = HANDLE_KINDS;
	handles_put(t, h);
}

/* The entry of a number. NULL: the number is out of range, or its page does not exist. */
static handle_entry *entry(struct handles *t, enum handle_kind kind, uint32_t id)
{
	handle_entry *page;

	if (id < QCU_ID_FIRST || id > QCU_ID_MAX)
		return NULL;
	page = atomic_load_explicit(&t->page[kind][id / HANDLE_PAGE], memory_order_acquire);
	return page ? &page[id % HANDLE_PAGE] : NULL;
}

bool handles_free(struct handles *t, enum handle_kind kind, uint32_t id)
{
	handle_entry *e = entry(t, kind, id);

	return id >= QCU_ID_FIRST && id <= QCU_ID_MAX && (!e || !atomic_load(e));
}

int handles_add(struct handles *t, uint32_t id, struct handle *h)
{
	_Atomic(handle_entry *) *page;
	struct handle *none = NULL;
	handle_entry *e;

	if (id < QCU_ID_FIRST || id > QCU_ID_MAX)
		return QCU_ERR_InvalidResourceHandle;
	page = &t->page[h->kind][id / HANDLE_PAGE];
	pthread_mutex_lock(&t->lock);
	if (!atomic_load(page))
		atomic_store(page, calloc(HANDLE_PAGE, sizeof(**page)));
	pthread_mutex_unlock(&t->lock);
	e = entry(t, h->kind, id);
	if (!e)
		return QCU_ERR_MemoryAllocation;
	return atomic_compare_exchange_strong(e, &none, h) ? QCU_ERR_Success
							   : QCU_ERR_InvalidResourceHandle;
}

/* Takes a reference, unless the count is already 0. */
static bool hold_if_referenced(struct handle *h)
{
	unsigned int refs = atomic_load_explicit(&h->refs, memory_order_relaxed);

	while (refs)
		if (atomic_compare_exchange_weak(&h->refs, &refs, refs + 1))
			return true;
	return false;
}

struct handle *handles_get(struct handles *t, enum handle_kind kind, uint32_t id)
{
	handle_entry *e = entry(t, kind, id);
	struct handle *h;

	while (e && (h = atomic_load_explicit(e, memory_order_acquire))) {
		if (!hold_if_referenced(h))
			continue;
		if (atomic_load(e) == h)
			return h;
		handles_put(t, h);
	}
	return NULL;
}

struct handle *handles_next(struct handles *t, enum handle_kind kind, uint32_t *id)
{
	struct handle *h = NULL;

	for (; *id <= QCU_ID_MAX; ++*id) {
		if (!atomic_load(&t->page[kind][*id / HANDLE_PAGE])) {
			*id |= HANDLE_PAGE - 1;
			continue;
		}
		h = handles_get(t, kind, *id);
		if (h)
			break;
	}
	return h;
}

struct handle *handle_hold(struct handles *t, struct handle *h)
{
	(void)t;
	atomic_fetch_add(&h->refs, 1);
	return h;
}

void handles_put(struct handles *t, struct handle *h)
{
	while (h && atomic_fetch_sub(&h->refs, 1) == 1) {
		struct handle *parent = h->parent;

		if (h->kind != HANDLE_KINDS)
			t->release(t->ctx, h);
		pthread_mutex_lock(&spare_lock);
		h->next = spare;
		spare = h;
		pthread_mutex_unlock(&spare_lock);
		h = parent;
	}
}

bool handles_remove(struct handles *t, enum handle_kind kind, uint32_t id)
{
	handle_entry *e = entry(t, kind, id);
	struct handle *h = e ? atomic_exchange(e, NULL) : NULL;

	handles_put(t, h);
	return h;
}

void handles_remove_if(struct handles *t, enum handle_kind kind,
		       bool (*match)(const struct handle *h, const void *arg), const void *arg)
{
	unsigned int p, i;

	for (p = 0; p < (QCU_ID_MAX + 1) / HANDLE_PAGE; p++) {
		for (i = 0; i < HANDLE_PAGE && atomic_load(&t->page[kind][p]); i++) {
			uint32_t id = p * HANDLE_PAGE + i;
			struct handle *h = handles_get(t, kind, id), *now = h;

			/* Drops the table's reference, unless another thread removed it first. */
			if (h && match(h, arg) &&
			    atomic_compare_exchange_strong(entry(t, kind, id), &now, NULL))
				handles_put(t, h);
			handles_put(t, h);
		}
	}
}
