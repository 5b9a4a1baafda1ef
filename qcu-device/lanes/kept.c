// SPDX-License-Identifier: GPL-2.0-or-later
/* The tree behind kept.h. */
#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "qcu-device/lanes/kept.h"

void kept_init(struct kept *k)
{
	unsigned int i;

	memset(k, 0, sizeof(*k));
	pthread_mutex_init(&k->lock, NULL);
	for (i = 0; i < KEPT_KINDS; i++)
		TAILQ_INIT(&k->objects[i]);
}

static int compare_kept_names(const void *a, const void *b)
{
	const struct kept_object *x = a, *y = b;

	return memcmp(&x->name, &y->name, sizeof(x->name));
}

void kept_step_free(struct kept_step *r)
{
	free(r->data);
	free(r);
}

static void end_kept_object(struct kept *k, struct kept_object *o)
{
	struct kept_step *r;

	tdelete(o, &k->tree, compare_kept_names);
	TAILQ_REMOVE(&k->objects[o->name.kind], o, link);
	while ((r = STAILQ_FIRST(&o->records))) {
		STAILQ_REMOVE_HEAD(&o->records, link);
		kept_step_free(r);
	}
	free(o);
}

void kept_fini(struct kept *k)
{
	struct kept_object *o;
	unsigned int i;

	for (i = 0; i < KEPT_KINDS; i++)
		while ((o = TAILQ_FIRST(&k->objects[i])))
			end_kept_object(k, o);
	pthread_mutex_destroy(&k->lock);
}

struct kept_step *kept_step_new(size_t len)
{
	struct kept_step *r = calloc(1, sizeof(*r));

	if (!r || !len)
		return r;
	r->len = len;
	r->data = malloc(len);
	if (r->data)
		return r;
	free(r);
	return NULL;
}

struct kept_object *kept_find(struct kept *k, const struct kept_name *name)
{
	const struct kept_object key = {.name = *name};
	struct kept_object **node =
		(struct kept_object **)tfind(&key, &k->tree, compare_kept_names);

	return node ? *node : NULL;
}

uint64_t kept_made(const struct kept_object *o)
{
	return o && o->made ? STAILQ_FIRST(&o->records)->number : 0;
}

static struct kept_object *new_kept_object(struct kept *k, const struct kept_name *name)
{
	struct kept_object *o = calloc(1, sizeof(*o));

	if (!o)
		return NULL;
	o->name = *name;
	o->of.kind = KEPT_KINDS;
	STAILQ_INIT(&o->records);
	if (!tsearch(o, &k->tree, compare_kept_names)) {
		free(o);
		return NULL;
	}
	TAILQ_INSERT_TAIL(&k->objects[name->kind], o, link);
	return o;
}

/* The record that is overtaken goes. */
static void add_record(struct kept_object *o, struct kept_step *r)
{
	struct kept_step *old = r->key == KEPT_EACH ? NULL : STAILQ_FIRST(&o->records);

	while (old &&
	       (old->cmd.op != r->cmd.op || old->cmd.device != r->cmd.device || old->key != r->key))
		old = STAILQ_NEXT(old, link);
	if (old) {
		STAILQ_REMOVE(&o->records, old, kept_step, link);
		kept_step_free(old);
	}
	STAILQ_INSERT_TAIL(&o->records, r, link);
}

void kept_add(struct kept *k, const struct kept_name *name, struct kept_step *r, bool made,
	      const struct kept_name *of)
{
	struct kept_object *o = NULL;

	pthread_mutex_lock(&k->lock);
	if (!r)
		goto lost;
	o = kept_find(k, name);
	if (o && made) {
		end_kept_object(k, o);
		o = NULL;
	}
	if (!o && r->key == KEPT_EACH)
		goto gone;
	if (!o)
		o = new_kept_object(k, name);
	if (!o)
		goto lost;
	r->number = ++k->number;
	o->device = r->cmd.device;
	o->lo = r->lo;
	o->len = r->span;
	if (made) {
		o->made = true;
		STAILQ_INSERT_HEAD(&o->records, r, link);
		if (of && of->kind < KEPT_KINDS) {
			o->of = *of;
			o->of_number = kept_made(kept_find(k, of));
		}
	} else {
		add_record(o, r);
	}
	pthread_mutex_unlock(&k->lock);
	return;
lost:
	k->lost = true;
gone:
	pthread_mutex_unlock(&k->lock);
	if (r)
		kept_step_free(r);
}

void kept_lose(struct kept *k)
{
	pthread_mutex_lock(&k->lock);
	k->lost = true;
	pthread_mutex_unlock(&k->lock);
}

bool kept_is_lost(struct kept *k)
{
	bool lost;

	pthread_mutex_lock(&k->lock);
	lost = k->lost;
	pthread_mutex_unlock(&k->lock);
	return lost;
}

void kept_drop(struct kept *k, const struct kept_name *name, uint16_t op, const uint64_t *key)
{
	struct kept_step *r, *next;
	struct kept_object *o;

	pthread_mutex_lock(&k->lock);
	o = kept_find(k, name);
	for (r = o ? STAILQ_FIRST(&o->records) : NULL; r; r = next) {
		next = STAILQ_NEXT(r, link);
		if (r->cmd.op != op || (key && r->key != *key))
			continue;
		STAILQ_REMOVE(&o->records, r, kept_step, link);
		kept_step_free(r);
	}
	pthread_mutex_unlock(&k->lock);
}

static bool same_name(const struct kept_name *a, const struct kept_name *b)
{
	return !memcmp(a, b, sizeof(*a));
}

void kept_copy(struct kept *k, const struct kept_name *from, const struct kept_name *to,
	       uint16_t op, const struct qCUcmd *about)
{
	struct kept_steps copies = STAILQ_HEAD_INITIALIZER(copies);
	const struct kept_object *o;
	const struct kept_step *s;
	struct kept_step *copy;

	if (same_name(from, to))
		return;
	pthread_mutex_lock(&k->lock);
	o = kept_find(k, from);
	for (s = o ? STAILQ_FIRST(&o->records) : NULL; s; s = STAILQ_NEXT(s, link)) {
		if (s->cmd.op != op)
			continue;
		copy = kept_step_new(0);
		k->lost |= !copy;
		if (!copy)
			continue;
		copy->cmd = s->cmd;
		copy->cmd.words[0] = about->words[0];
		copy->cmd.device = about->device;
		copy->cmd.tid = about->tid;
		copy->key = s->key;
		STAILQ_INSERT_TAIL(&copies, copy, link);
	}
	pthread_mutex_unlock(&k->lock);
	kept_drop(k, to, op, NULL);
	while ((copy = STAILQ_FIRST(&copies))) {
		STAILQ_REMOVE_HEAD(&copies, link);
		kept_add(k, to, copy, false, NULL);
	}
}

void kept_end(struct kept *k, const struct kept_name *name)
{
	struct kept_object *o, *next;

	pthread_mutex_lock(&k->lock);
	o = kept_find(k, name);
	if (o)
		end_kept_object(k, o);
	/* Kernels go with their module. Other objects hold what they depend on. */
	o = name->kind == HANDLE_MODULE ? TAILQ_FIRST(&k->objects[HANDLE_KERNEL]) : NULL;
	for (; o; o = next) {
		next = TAILQ_NEXT(o, link);
		if (same_name(&o->of, name))
			end_kept_object(k, o);
	}
	pthread_mutex_unlock(&k->lock);
}

void kept_end_range(struct kept *k, uint64_t lo, uint64_t len)
{
	const struct kept_name whole = {.kind = KEPT_MAP, .id = lo};
	struct kept_object *o, *next;

	pthread_mutex_lock(&k->lock);
	o = kept_find(k, &whole);
	if (o && o->len == len) {
		end_kept_object(k, o);
	} else {
		for (o = TAILQ_FIRST(&k->objects[KEPT_MAP]); o; o = next) {
			next = TAILQ_NEXT(o, link);
			if (o->lo - lo < len)
				end_kept_object(k, o);
		}
	}
	for (o = TAILQ_FIRST(&k->objects[KEPT_PAGE]); o; o = next) {
		next = TAILQ_NEXT(o, link);
		if (o->lo < lo + len && lo < o->lo + o->len)
			end_kept_object(k, o);
	}
	pthread_mutex_unlock(&k->lock);
}

/* Modules and the guest's memory outlive a reset, as they do in the mirror. */
void kept_end_device(struct kept *k, unsigned int device)
{
	struct kept_object *o, *next;
	unsigned int i;

	pthread_mutex_lock(&k->lock);
	for (i = 0; i < KEPT_KINDS; i++) {
		if (i == HANDLE_MODULE || i == HANDLE_KERNEL || i == HANDLE_PHYS || i == KEPT_MAP ||
		    i == KEPT_PAGE)
			continue;
		for (o = TAILQ_FIRST(&k->objects[i]); o; o = next) {
			next = TAILQ_NEXT(o, link);
			if (o->device == device)
				end_kept_object(k, o);
		}
	}
	pthread_mutex_unlock(&k->lock);
}

bool kept_holds(struct kept *k, const struct kept_name *name, uint16_t op, uint64_t key)
{
	const struct kept_object *o;
	const struct kept_step *r;

	pthread_mutex_lock(&k->lock);
	o = kept_find(k, name);
	r = o ? STAILQ_FIRST(&o->records) : NULL;
	while (r && (r->cmd.op != op || r->key != key))
		r = STAILQ_NEXT(r, link);
	pthread_mutex_unlock(&k->lock);
	return r;
}

size_t kept_count(struct kept *k, const struct kept_name *name)
{
	const struct kept_object *o;
	const struct kept_step *r;
	size_t count = 0;

	pthread_mutex_lock(&k->lock);
	o = kept_find(k, name);
	if (o)
		STAILQ_FOREACH(r, &o->records, link)
	count++;
	pthread_mutex_unlock(&k->lock);
	return count;
}
