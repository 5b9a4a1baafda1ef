// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Memory goes ahead. The thread that takes the session's commands copies a piece between two of
 * them, in a stream of its own, so it waits for none of the program's work.
 */
#include "qcu-device/mirror/going.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "qcu-device/commands/commands.h"
#include "qcu-device/commands/swap/swap.h"
#include "qcu-device/mirror/going_impl.h"
#include "qcu-device/mirror/keeping.h"

#define NON_BLOCKING 1u /* cudaStreamNonBlocking */

static struct going *going_of(struct mirror *m)
{
	if (!m->going)
		m->going = calloc(1, sizeof(*m->going));
	return m->going;
}

/* ---- the pieces ---- */

static int compare_ranges(const void *a, const void *b)
{
	const struct be_wanted *x = a, *y = b;

	return (x->addr > y->addr) - (x->addr < y->addr);
}

struct be_wanted *going_list(struct mirror *m, uint64_t least, size_t *count)
{
	const size_t room = mir_allocations(m);
	struct be_wanted *all = calloc(room + 1, sizeof(*all)), *p = all;
	const struct kept_object *o;

	*count = 0;
	if (!all)
		return NULL;
	pthread_mutex_lock(&m->kept.lock);
	TAILQ_FOREACH(o, &m->kept.objects[KEPT_MEMORY], link)
	{
		p->addr = o->name.id;
		if (p < all + room && mir_allocation_at(m, p->addr, &p->size, &p->dev) &&
		    p->size >= least)
			p++;
	}
	pthread_mutex_unlock(&m->kept.lock);
	*count = (size_t)(p - all);
	if (*count)
		qsort(all, *count, sizeof(*all), compare_ranges);
	return all;
}

static bool map_buffer(struct mirror *m, struct going *g, int fd)
{
	struct stat st;
	void *p;

	if (fstat(fd, &st) || st.st_size < (off_t)AHEAD_BYTES)
		return false;
	p = mmap(NULL, AHEAD_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED)
		return false;
	g->buffer = p;
	return !m->cfg.ops->host_register(m->be, p, AHEAD_BYTES);
}

bool mir_ahead_begin(struct mirror *m, int buffer)
{
	struct going *g = going_of(m);
	bool ok;

	mir_ahead_end(m);
	if (!g || !m->cfg.ops->unsaved)
		return false;
	pthread_mutex_lock(&m->use[MIR_USER_GOING].lock);
	/* Memory that comes later does not go ahead. */
	g->range = going_list(m, AHEAD_LEAST, &g->ranges);
	ok = g->range && map_buffer(m, g, buffer);
	pthread_mutex_unlock(&m->use[MIR_USER_GOING].lock);
	if (!ok)
		mir_ahead_end(m);
	return ok;
}

static struct be_stream *stream_of(struct mirror *m, struct going *g, unsigned int device)
{
	if (!g->stream[device] &&
	    m->cfg.ops->stream_create(m->be, device, NON_BLOCKING, 0, &g->stream[device]))
		g->stream[device] = NULL;
	return g->stream[device];
}

/* Is it still this memory? Then it is held until the piece has been copied. */
static bool copy_held(struct mirror *m, struct going *g, const struct be_wanted *r, uint64_t at,
		      size_t len)
{
	struct be_stream *s = stream_of(m, g, r->dev);
	uint64_t size;
	unsigned int dev;

	return s && mir_allocation_at(m, r->addr, &size, &dev) && size == r->size &&
	       dev == r->dev &&
	       !m->cfg.ops->copy_d2h(m->be, g->buffer, r->addr + at, len, s) &&
	       !m->cfg.ops->stream_sync(m->be, s);
}

static bool copy_piece(struct mirror *m, struct going *g, const struct be_wanted *r, uint64_t at,
		       size_t len)
{
	bool ok;

	pthread_mutex_lock(&m->use[MIR_USER_GOING].lock);
	ok = !(atomic_load(&m->swap_state) & SWAP_AWAY) && !atomic_load(&m->abandoned) &&
	     held_try(&m->held, MIR_USER_GOING, r->addr + at, len);
	if (ok)
		ok = copy_held(m, g, r, at, len);
	held_release(&m->held, MIR_USER_GOING);
	pthread_mutex_unlock(&m->use[MIR_USER_GOING].lock);
	return ok;
}

bool mir_ahead_next(struct mirror *m, struct ahead_piece *piece)
{
	struct going *g = m->going;
	const struct be_wanted *r;
	uint64_t at, len;

	while (g && g->next < g->ranges) {
		r = &g->range[g->next];
		at = g->at;
		len = r->size - at < AHEAD_BYTES ? r->size - at : AHEAD_BYTES;
		g->at += len;
		if (g->at == r->size) {
			g->at = 0;
			g->next++;
		}
		*piece = (struct ahead_piece){.addr = r->addr + at, .len = (uint32_t)len};
		if (copy_piece(m, g, r, at, (size_t)len))
			return true;
	}
	return false;
}

void mir_ahead_end(struct mirror *m)
{
	struct going *g = m->going;
	unsigned int i;

	if (!g)
		return;
	for (i = 0; i < MIR_DEVICES_MAX; i++) {
		if (g->stream[i])
			(void)m->cfg.ops->stream_destroy(m->be, g->stream[i]);
		g->stream[i] = NULL;
	}
	if (g->buffer) {
		(void)m->cfg.ops->host_unregister(m->be, g->buffer);
		munmap(g->buffer, AHEAD_BYTES);
		g->buffer = NULL;
	}
	free(g->range);
	g->range = NULL;
	g->ranges = g->next = 0;
	g->at = 0;
}

/* ---- what has gone ---- */

static int compare_pieces(const void *a, const void *b)
{
	const struct ahead_piece *x = a, *y = b;

	return (x->addr > y->addr) - (x->addr < y->addr);
}

void mir_ahead_sent(struct mirror *m, int fd)
{
	struct going *g = going_of(m);
	struct stat st;
	size_t bytes;

	if (!g || fstat(fd, &st))
		return;
	free(g->sent);
	g->sent_count = 0;
	bytes = (size_t)st.st_size;
	g->sent = malloc(bytes + 1);
	if (g->sent && pread(fd, g->sent, bytes, 0) == (ssize_t)bytes)
		g->sent_count = bytes / sizeof(*g->sent);
	if (g->sent_count)
		qsort(g->sent, g->sent_count, sizeof(*g->sent), compare_pieces);
}

const struct sums *going_sums(struct mirror *m, unsigned int device)
{
	struct going *g = m->going;

	if (!g || !g->sent_count)
		return NULL;
	if (!g->sums)
		g->sums = sums_new(m, device, !m->cfg.ops->memory);
	return g->sums;
}

bool going_has(const struct going *g, uint64_t addr, uint64_t len, uint64_t sum)
{
	const struct ahead_piece key = {.addr = addr}, *p;

	p = bsearch(&key, g->sent, g->sent_count, sizeof(key), compare_pieces);
	return p && p->len == len && p->sum == sum;
}

/* ---- what has come ---- */

/* The GPU copies from so much of the file at a time. To register a page costs less than a copy. */
#define REGISTERED_BYTES ((uint64_t)256 << 20)

void mir_ahead_came(struct mirror *m, int ahead)
{
	struct going *g = ahead >= 0 ? going_of(m) : NULL;

	if (g) {
		going_drop_came(m);
		(void)ahead_open(&g->came, ahead);
	}
}

static void unregister_part(struct mirror *m, struct going *g)
{
	if (g->past)
		(void)m->cfg.ops->host_unregister(m->be, g->came.bytes + g->first);
	g->past = 0;
}

/* Registers this piece, and what follows in the file. It works without, more slowly. */
static void register_from(struct mirror *m, struct going *g, const struct ahead_place *p)
{
	uint64_t end = p->at + REGISTERED_BYTES;

	unregister_part(m, g);
	if (end > g->came.size)
		end = g->came.size;
	if (m->cfg.ops->host_register(m->be, g->came.bytes + p->at, (size_t)(end - p->at)))
		return;
	g->first = p->at;
	g->past = end;
}

void *going_came(struct mirror *m, uint64_t addr, uint64_t len, uint64_t sum)
{
	struct going *g = m->going;
	const struct ahead_place *p = g ? ahead_find(&g->came, addr, len, sum) : NULL;

	if (!p)
		return NULL;
	/* A piece may not be registered in part. */
	if (p->at < g->first || ahead_reach(p) > g->past)
		register_from(m, g, p);
	return g->came.bytes + p->at;
}

void going_drop_came(struct mirror *m)
{
	if (!m->going)
		return;
	unregister_part(m, m->going);
	ahead_close(&m->going->came);
}

/* ---- the end ---- */

void going_forget(struct mirror *m)
{
	if (!m->going)
		return;
	free(m->going->sent);
	m->going->sent = NULL;
	m->going->sent_count = 0;
}

void going_free(struct mirror *m)
{
	if (!m->going)
		return;
	mir_ahead_end(m);
	going_forget(m);
	going_drop_came(m);
	sums_free(m, m->going->sums);
	free(m->going);
	m->going = NULL;
}
