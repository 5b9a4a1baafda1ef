// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The tables behind handles.h: arrays of pages by number, made on first use. The backend is never
 * called with the lock held.
 */
#include <stdlib.h>

#include "qcu-device/handles.h"

void handles_init(struct handles *t, void (*release)(void *ctx, struct handle *h), void *ctx)
{
	*t = (struct handles){.release = release, .ctx = ctx};
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
	static const enum handle_kind order[] = {HANDLE_KERNEL, HANDLE_MODULE, HANDLE_EVENT,
						 HANDLE_STREAM, HANDLE_ARRAY,  HANDLE_POOL};
	unsigned int i, p;

	for (i = 0; i < HANDLE_KINDS; i++) {
		handles_remove_if(t, order[i], match_all, NULL);
		for (p = 0; p < (QCU_ID_MAX + 1) / HANDLE_PAGE; p++)
			free(t->page[order[i]][p]);
	}
	pthread_mutex_destroy(&t->lock);
}

struct handle *handle_new(enum handle_kind kind)
{
	struct handle *h = calloc(1, sizeof(*h));

	if (h) {
		h->kind = kind;
		h->refs = 1;
	}
	return h;
}

/* Where the entry of a number is. NULL: not a number for objects, or its page is not there. */
static struct handle **entry(struct handles *t, enum handle_kind kind, uint32_t id)
{
	struct handle **page;

	if (id < QCU_ID_FIRST || id > QCU_ID_MAX)
		return NULL;
	page = t->page[kind][id / HANDLE_PAGE];
	return page ? &page[id % HANDLE_PAGE] : NULL;
}

bool handles_free(struct handles *t, enum handle_kind kind, uint32_t id)
{
	struct handle **e;
	bool is_free;

	if (id < QCU_ID_FIRST || id > QCU_ID_MAX)
		return false;
	pthread_mutex_lock(&t->lock);
	e = entry(t, kind, id);
	is_free = !e || !*e;
	pthread_mutex_unlock(&t->lock);
	return is_free;
}

int handles_add(struct handles *t, uint32_t id, struct handle *h)
{
	struct handle ***page, **e;
	int rc = QCU_ERR_Success;

	if (id < QCU_ID_FIRST || id > QCU_ID_MAX)
		return QCU_ERR_InvalidResourceHandle;
	pthread_mutex_lock(&t->lock);
	page = &t->page[h->kind][id / HANDLE_PAGE];
	if (!*page)
		*page = calloc(HANDLE_PAGE, sizeof(**page));
	e = entry(t, h->kind, id);
	if (!e)
		rc = QCU_ERR_MemoryAllocation;
	else if (*e)
		rc = QCU_ERR_InvalidResourceHandle;
	else
		*e = h;
	pthread_mutex_unlock(&t->lock);
	return rc;
}

struct handle *handles_get(struct handles *t, enum handle_kind kind, uint32_t id)
{
	struct handle **e, *h;

	pthread_mutex_lock(&t->lock);
	e = entry(t, kind, id);
	h = e ? *e : NULL;
	if (h)
		h->refs++;
	pthread_mutex_unlock(&t->lock);
	return h;
}

struct handle *handle_hold(struct handles *t, struct handle *h)
{
	pthread_mutex_lock(&t->lock);
	h->refs++;
	pthread_mutex_unlock(&t->lock);
	return h;
}

void handles_put(struct handles *t, struct handle *h)
{
	while (h) {
		struct handle *parent = NULL;
		bool last;

		pthread_mutex_lock(&t->lock);
		last = !--h->refs;
		pthread_mutex_unlock(&t->lock);
		if (last) {
			parent = h->parent;
			t->release(t->ctx, h);
			free(h);
		}
		h = parent;
	}
}

bool handles_remove(struct handles *t, enum handle_kind kind, uint32_t id)
{
	struct handle **e, *h = NULL;
	bool found;

	pthread_mutex_lock(&t->lock);
	e = entry(t, kind, id);
	if (e) {
		h = *e;
		*e = NULL;
	}
	pthread_mutex_unlock(&t->lock);
	found = h;
	handles_put(t, h);
	return found;
}

void handles_remove_if(struct handles *t, enum handle_kind kind,
		       bool (*match)(const struct handle *h, const void *arg), const void *arg)
{
	unsigned int p, i;

	for (p = 0; p < (QCU_ID_MAX + 1) / HANDLE_PAGE; p++) {
		for (i = 0; i < HANDLE_PAGE; i++) {
			struct handle **page, *h = NULL;

			pthread_mutex_lock(&t->lock);
			page = t->page[kind][p];
			if (page && page[i] && match(page[i], arg)) {
				h = page[i];
				page[i] = NULL;
			}
			pthread_mutex_unlock(&t->lock);
			if (!page)
				break;
			handles_put(t, h);
		}
	}
}
