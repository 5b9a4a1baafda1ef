// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Finds the host's libraries and their functions. A library is loaded when a program first uses it,
 * and stays: the libraries of a GPU cannot be unloaded reliably.
 */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "qcu-device/libs/impl.h"

struct lib_loaded {
	const struct lib_library *lib;
	void *library; /* the backend's */
	void *own;     /* see lib_own() */
	struct lib_loaded *next;
	/* Those of kinds of objects: what makes one, and what ends it. */
	_Atomic(void *) kind[QCU_LIB_KINDS][2];
	_Atomic(void *) fn[]; /* those that have been looked up */
};

/* Those that are in the list stay as they are, until the mirror ends. */
static struct lib_loaded *find_loaded(struct mirror *m, const struct lib_library *lib)
{
	struct lib_loaded *l = atomic_load_explicit(&m->loaded, memory_order_acquire);

	while (l && l->lib != lib)
		l = l->next;
	return l;
}

struct lib_loaded *lib_load(struct mirror *m, const struct lib_library *lib, char *why, size_t size)
{
	const struct be_ops *ops = m->cfg.ops;
	struct lib_loaded *l = find_loaded(m, lib);

	*why = 0;
	if (l)
		return l;
	if (!ops->lib_open || !ops->lib_symbol) {
		snprintf(why, size, "the %s backend has no libraries", ops->name);
		return NULL;
	}
	if (m->cfg.refused_libraries >> lib->number & 1) {
		snprintf(why, size, "the operator of the host does not allow %s (--libraries)",
			 lib->soname);
		return NULL;
	}
	pthread_mutex_lock(&m->lock);
	l = find_loaded(m, lib);
	if (!l && m->missing_libraries >> lib->number & 1) {
		snprintf(why, size, "the host has no %s", lib->soname);
	} else if (!l) {
		void *library = ops->lib_open(m->be, lib->soname, why, size);

		/* Not tried again: each time costs one of few gaps between addresses (gap.h). */
		if (!library)
			m->missing_libraries |= 1u << lib->number;
		l = library ? calloc(1, sizeof(*l) + ((size_t)lib->count + lib->helper_count) *
							     sizeof(l->fn[0]))
			    : NULL;
		if (l) {
			l->lib = lib;
			l->library = library;
			l->next = m->loaded;
			atomic_store_explicit(&m->loaded, l, memory_order_release);
		}
	}
	pthread_mutex_unlock(&m->lock);
	return l;
}

void *lib_named(struct mirror *m, struct lib_loaded *l, const char *name)
{
	return m->cfg.ops->lib_symbol(m->be, l->library, name);
}

static void *cached(struct mirror *m, struct lib_loaded *l, unsigned int at, const char *name)
{
	void *fn = atomic_load_explicit(&l->fn[at], memory_order_relaxed);

	if (!fn) {
		fn = lib_named(m, l, name);
		atomic_store_explicit(&l->fn[at], fn, memory_order_relaxed);
	}
	return fn;
}

void *lib_symbol(struct mirror *m, struct lib_loaded *l, uint16_t function)
{
	return cached(m, l, function, l->lib->functions[function].name);
}

void *lib_helper(struct lib_call *c, uint16_t which)
{
	return cached(c->c->m, c->loaded, c->lib->count + (unsigned int)which,
		      c->lib->helpers[which]);
}

void *lib_own(struct lib_call *c, size_t size)
{
	if (!c->loaded->own)
		c->loaded->own = calloc(1, size);
	return c->loaded->own;
}

void *lib_kind_symbol(struct mirror *m, struct lib_loaded *l, uint32_t kind, bool destroy)
{
	const struct lib_kind *k = &l->lib->kinds[kind];
	const char *name = destroy ? k->destroy : k->create;
	void *fn = atomic_load_explicit(&l->kind[kind][destroy], memory_order_relaxed);

	if (!fn && name) {
		fn = lib_named(m, l, name);
		atomic_store_explicit(&l->kind[kind][destroy], fn, memory_order_relaxed);
	}
	return fn;
}

void lib_unload(struct mirror *m)
{
	struct lib_loaded *l;

	while ((l = m->loaded)) {
		m->loaded = l->next;
		free(l->own);
		free(l);
	}
}
