// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Memory goes ahead. It is copied in a stream of its own, which waits for none of the program's
 * work, and by a thread that carries out no command, because some GPUs make it wait all the same.
 */
#include "qcu-device/mirror/going.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "qcu-device/base/sorted.h"
#include "qcu-device/base/spin.h"
#include "qcu-device/commands/commands.h"
#include "qcu-device/commands/swap/swap.h"
#include "qcu-device/mirror/going_impl.h"
#include "qcu-device/mirror/keeping.h"

#define NON_BLOCKING 1u /* cudaStreamNonBlocking */
#define NO_TIMES     2u /* cudaEventDisableTiming */
#define BLOCKED_NS   1000000000ull
#define LOOK_NS	     100000
/* To load the kernel takes 40 ms on an H200. So much memory is copied in this time. */
#define WORTH_A_KERNEL (32u << 20)

static struct going *going_of(struct mirror *m)
{
	if (!m->going)
		m->going = calloc(1, sizeof(*m->going));
	return m->going;
}

/* ---- the pieces ---- */

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
		qsort(all, *count, sizeof(*all), sorted_compare);
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

/* Notes that these bytes of an allocation go ahead. */
static bool add_run_of_memory(struct going *g, const struct be_wanted *of, uint64_t at,
			      uint64_t end)
{
	struct going_run *last = g->runs ? &g->run[g->runs - 1] : NULL, *more;

	if (last && last->of.addr == of->addr && last->end == at) {
		last->end = end;
		return true;
	}
	/* Room for 64, 128, 256 and so on. */
	if (!g->runs || (g->runs >= 64 && !(g->runs & (g->runs - 1)))) {
		more = realloc(g->run, (g->runs ? 2 * g->runs : 64) * sizeof(*more));
		if (!more)
			return false;
		g->run = more;
	}
	g->run[g->runs++] = (struct going_run){*of, at, end};
	return true;
}

static bool begin_with(struct mirror *m, int buffer, bool (*list)(void *arg, struct be_wanted *of),
		       void *arg)
{
	struct going *g = m->going;
	struct be_wanted *all;
	size_t count, i;
	bool ok;

	pthread_mutex_lock(&m->use[MIR_USER_GOING].lock);
	all = going_list(m, AHEAD_LEAST, &count);
	ok = all && map_buffer(m, g, buffer);
	for (i = 0; i < count && ok; i++)
		ok = list(arg, &all[i]);
	free(all);
	pthread_mutex_unlock(&m->use[MIR_USER_GOING].lock);
	if (!ok)
		mir_ahead_end(m);
	return ok;
}

static bool list_all(void *arg, struct be_wanted *of)
{
	return add_run_of_memory(arg, of, 0, of->size);
}

bool mir_ahead_begin(struct mirror *m, int buffer)
{
	struct going *g = going_of(m);

	mir_ahead_end(m);
	return g && m->cfg.ops->unsaved && begin_with(m, buffer, list_all, g);
}

struct looking {
	struct mirror *m;
	struct be_wanted *of;
	uint64_t most, until, bytes;
};

static bool list_changed_pieces(void *arg, const struct be_wanted *part,
				const struct piece_sum *sum)
{
	struct looking *l = arg;
	const uint64_t end = part->addr + part->size;
	uint64_t at, len;
	bool ok = true;

	for (at = part->addr; at < end && ok; at += len, sum++) {
		len = end - at < AHEAD_BYTES ? end - at : AHEAD_BYTES;
		if (!sum->any || going_has(l->m->going, at, len, sum->sum))
			continue;
		l->bytes += len;
		ok = add_run_of_memory(l->m->going, l->of, at - l->of->addr,
				       at - l->of->addr + len);
	}
	return ok && l->bytes <= l->most && spin_clock() < l->until;
}

static bool list_changed(void *arg, struct be_wanted *of)
{
	struct looking *l = arg;
	const struct sums *sums = going_sums(l->m, of->dev);

	l->of = of;
	return sums && sums_in_parts(l->m, sums, of, list_changed_pieces, l);
}

bool mir_ahead_again(struct mirror *m, int buffer, int sent, uint64_t most, uint64_t until,
		     uint64_t *bytes)
{
	struct looking l = {.m = m, .most = most, .until = until};
	bool ok;

	mir_ahead_end(m);
	mir_ahead_sent(m, sent);
	/* What is away stays so. */
	mir_swap_stay(m, true);
	ok = m->going && !(atomic_load(&m->swap_state) & SWAP_AWAY) &&
	     begin_with(m, buffer, list_changed, &l);
	mir_swap_stay(m, false);
	*bytes = l.bytes;
	return ok;
}

/* Makes the stream and the event of the device, unless they are there. */
static bool open_stream(struct mirror *m, struct going *g, unsigned int device)
{
	const struct be_ops *ops = m->cfg.ops;

	if (!g->stream[device] &&
	    ops->stream_create(m->be, device, NON_BLOCKING, 0, &g->stream[device]))
		g->stream[device] = NULL;
	if (!g->event[device] && ops->event_create(m->be, device, NO_TIMES, &g->event[device]))
		g->event[device] = NULL;
	return g->stream[device] && g->event[device];
}

static int look_at_event(struct mirror *m, struct going *g, unsigned int device)
{
	int rc;

	pthread_mutex_lock(&m->use[MIR_USER_GOING].lock);
	rc = m->cfg.ops->event_query(m->be, g->event[device]);
	pthread_mutex_unlock(&m->use[MIR_USER_GOING].lock);
	return rc;
}

/*
 * Some GPUs copy nothing while a host function runs, whatever stream it is in. Who waits for that
 * must hold no memory: the program may have to free it first.
 */
static bool does_gpu_go_on(struct mirror *m, struct going *g, unsigned int device)
{
	const uint64_t end = spin_clock() + BLOCKED_NS;
	int rc = QCU_ERR_NotReady;

	pthread_mutex_lock(&m->use[MIR_USER_GOING].lock);
	if (!open_stream(m, g, device) ||
	    m->cfg.ops->event_record(m->be, g->event[device], g->stream[device], 0))
		rc = QCU_ERR_InvalidResourceHandle;
	pthread_mutex_unlock(&m->use[MIR_USER_GOING].lock);
	while (rc == QCU_ERR_NotReady && spin_clock() < end) {
		rc = look_at_event(m, g, device);
		if (rc == QCU_ERR_NotReady)
			nanosleep(&(struct timespec){.tv_nsec = LOOK_NS}, NULL);
	}
	return !rc;
}

/* Is it still this memory? Then it is held until the piece has been copied. */
static bool copy_held(struct mirror *m, struct going *g, const struct be_wanted *r, uint64_t at,
		      size_t len)
{
	struct be_stream *s = g->stream[r->dev];
	uint64_t size;
	unsigned int dev;

	return mir_allocation_at(m, r->addr, &size, &dev) && size == r->size && dev == r->dev &&
	       !m->cfg.ops->copy_d2h(m->be, g->buffer, r->addr + at, len, s) &&
	       !m->cfg.ops->stream_sync(m->be, s);
}

static bool copy_if_still_there(struct mirror *m, struct going *g, const struct be_wanted *r,
				uint64_t at, size_t len)
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
	struct going_run *r;
	uint64_t at, len;

	while (g && g->next < g->runs) {
		r = &g->run[g->next];
		if (!does_gpu_go_on(m, g, r->of.dev))
			return false;
		at = r->at;
		len = r->end - at < AHEAD_BYTES ? r->end - at : AHEAD_BYTES;
		r->at += len;
		if (r->at == r->end)
			g->next++;
		*piece = (struct ahead_piece){.addr = r->of.addr + at, .len = (uint32_t)len};
		if (copy_if_still_there(m, g, &r->of, at, (size_t)len))
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
	pthread_mutex_lock(&m->use[MIR_USER_GOING].lock);
	for (i = 0; i < MIR_DEVICES_MAX; i++) {
		if (g->stream[i])
			(void)m->cfg.ops->stream_destroy(m->be, g->stream[i]);
		if (g->event[i])
			(void)m->cfg.ops->event_destroy(m->be, g->event[i]);
		g->stream[i] = NULL;
		g->event[i] = NULL;
	}
	if (g->buffer) {
		(void)m->cfg.ops->host_unregister(m->be, g->buffer);
		munmap(g->buffer, AHEAD_BYTES);
		g->buffer = NULL;
	}
	pthread_mutex_unlock(&m->use[MIR_USER_GOING].lock);
	free(g->run);
	g->run = NULL;
	g->runs = g->next = 0;
}

/* ---- what has gone ---- */

/* By address, and those with one address in the order in which they went. */
static int compare_sent(const void *a, const void *b)
{
	const struct ahead_piece *x = a, *y = b;
	const int order = sorted_compare(a, b);

	return order ? order : (x->session > y->session) - (x->session < y->session);
}

/* All are of this session, so their number says when they went. */
static void sort_sent(struct going *g)
{
	size_t i;

	for (i = 0; i < g->sent_count; i++)
		g->sent[i].session = (uint32_t)i;
	if (!g->sent_count)
		return;
	qsort(g->sent, g->sent_count, sizeof(*g->sent), compare_sent);
	g->sent_count = sorted_keep_last(g->sent, g->sent_count, sizeof(*g->sent));
}

void mir_ahead_sent(struct mirror *m, int fd)
{
	struct going *g = going_of(m);
	struct stat st;
	size_t bytes, i;

	if (!g)
		return;
	free(g->sent);
	g->sent = NULL;
	g->sent_count = 0;
	if (fstat(fd, &st))
		return;
	bytes = (size_t)st.st_size;
	g->sent = malloc(bytes + 1);
	if (g->sent && pread(fd, g->sent, bytes, 0) == (ssize_t)bytes)
		g->sent_count = bytes / sizeof(*g->sent);
	sort_sent(g);
	g->sent_bytes = 0;
	for (i = 0; i < g->sent_count; i++)
		g->sent_bytes += g->sent[i].len;
}

const struct sums *going_sums(struct mirror *m, unsigned int device)
{
	struct going *g = m->going;
	const bool kernel = !m->cfg.ops->memory;

	if (!g || !g->sent_count || (kernel && g->sent_bytes < WORTH_A_KERNEL))
		return NULL;
	if (!g->sums)
		g->sums = sums_new(m, device, kernel);
	return g->sums;
}

bool going_has(const struct going *g, uint64_t addr, uint64_t len, uint64_t sum)
{
	const struct ahead_piece key = {.addr = addr}, *p;

	p = bsearch(&key, g->sent, g->sent_count, sizeof(key), sorted_compare);
	return p && p->len == len && p->sum == sum;
}

/* ---- what has come ---- */

/* The GPU copies from there. It works without, more slowly. */
static void map_section(struct mirror *m, struct going *g, size_t at)
{
	struct came_section *w = &g->section[at];
	const uint64_t first = at * AHEAD_SECTION;
	void *p;

	w->len = g->came_size - first < AHEAD_SECTION ? g->came_size - first : AHEAD_SECTION;
	p = mmap(NULL, w->len, PROT_READ | PROT_WRITE, MAP_SHARED, g->came_fd, (off_t)first);
	if (p == MAP_FAILED)
		return;
	w->bytes = p;
	w->registered = !m->cfg.ops->host_register(m->be, p, w->len);
}

static bool make_sections(struct going *g, uint64_t size)
{
	const size_t count = (size_t)((size + AHEAD_SECTION - 1) / AHEAD_SECTION);
	struct came_section *more;

	if (count > g->sections) {
		more = realloc(g->section, count * sizeof(*more));
		if (!more)
			return false;
		memset(more + g->sections, 0, (count - g->sections) * sizeof(*more));
		g->section = more;
		g->sections = count;
	}
	g->came_size = size;
	return true;
}

/* The file is the same as before. */
void mir_ahead_comes(struct mirror *m, int ahead, uint64_t bytes)
{
	struct going *g = going_of(m);
	size_t first = g ? g->sections : 0, i;

	if (!g)
		return;
	g->came_fd = ahead;
	if (make_sections(g, bytes / AHEAD_SECTION * AHEAD_SECTION))
		for (i = first; i < g->sections; i++)
			map_section(m, g, i);
}

void mir_ahead_came(struct mirror *m, int ahead)
{
	struct going *g = going_of(m);
	struct stat st;

	if (!g || fstat(ahead, &st) || (uint64_t)st.st_size < g->came_size ||
	    !make_sections(g, (uint64_t)st.st_size))
		return;
	g->came_fd = ahead;
	(void)ahead_list(&g->came, ahead);
}

bool going_came(struct mirror *m, const struct ahead_piece *piece, struct mir_restore *bytes)
{
	struct going *g = m->going;
	const struct ahead_listed *p =
		g ? ahead_find(&g->came, piece->addr, piece->len, piece->sum) : NULL;
	struct came_section *w;

	if (!p)
		return false;
	w = &g->section[p->at / AHEAD_SECTION];
	if (!w->bytes)
		map_section(m, g, (size_t)(w - g->section));
	if (!w->bytes)
		return false;
	*bytes = (struct mir_restore){w->bytes + p->at % AHEAD_SECTION, p->len, w->registered};
	return true;
}

void mir_ahead_drop(struct mirror *m)
{
	struct going *g = m->going;
	size_t i;

	for (i = 0; g && i < g->sections; i++) {
		struct came_section *w = &g->section[i];

		pthread_mutex_lock(&m->use[MIR_USER_GOING].lock);
		if (w->registered)
			(void)m->cfg.ops->host_unregister(m->be, w->bytes);
		if (w->bytes)
			munmap(w->bytes, w->len);
		pthread_mutex_unlock(&m->use[MIR_USER_GOING].lock);
	}
	if (!g)
		return;
	free(g->section);
	g->section = NULL;
	g->sections = 0;
	g->came_size = 0;
	ahead_unlist(&g->came);
}

/* ---- the end ---- */

void mir_ahead_forget(struct mirror *m)
{
	if (!m->going)
		return;
	free(m->going->sent);
	m->going->sent = NULL;
	m->going->sent_count = 0;
	/* A reset of the device would end them. */
	sums_free(m, m->going->sums);
	m->going->sums = NULL;
}

void going_free(struct mirror *m)
{
	if (!m->going)
		return;
	mir_ahead_end(m);
	mir_ahead_forget(m);
	mir_ahead_drop(m);
	free(m->going);
	m->going = NULL;
}
