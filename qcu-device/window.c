// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Chunks in the window.
 *
 * CVM: every segment of guest RAM gets a second mapping at its address in the window (mremap with
 * old size 0 duplicates a shared mapping without needing its fd), and the whole run is registered.
 * NCVM: the segments are registered where they lie in the RAM mapping, neighbours merged, and come
 * into the window only when HOST_REGISTER wants the address itself to be usable.
 * In one process with the guest nothing is mapped; the segments are pointers.
 *
 * Memory that is registered but lies in no chunk comes as maps outside of the window: at the
 * guest's address, of which only the mirror knows whether it is free, or in the annex. They are
 * always mapped there: two of them may have a page in common, and be registered each.
 *
 * The tree holds disjoint ranges, so a search that calls any overlap equal finds both "what holds
 * this address" and "does this range collide".
 */
#define _GNU_SOURCE /* mremap */
#include <errno.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "qcu-device/complain.h"
#include "qcu-device/window_impl.h"

#define RESERVED (QCU_WINDOW_SIZE + QCU_ANNEX_SIZE)
/* A null pointer of ours never leads into the guest's memory, even if the kernel would let it. */
#define OUTSIDE_MIN (1u << 20)

int pieces_add(struct pieces *ps, void *host, size_t len, bool registered)
{
	struct piece *last = ps->count ? &ps->p[ps->count - 1] : NULL;

	if (last && !registered && !last->registered && last->host + last->len == host) {
		last->len += len;
		return QCU_ERR_Success;
	}
	if (ps->count == ps->room) {
		size_t room = ps->room ? 2 * ps->room : 8;
		struct piece *p = realloc(ps->p, room * sizeof(*p));

		if (!p)
			return QCU_ERR_MemoryAllocation;
		ps->p = p;
		ps->room = room;
	}
	ps->p[ps->count++] = (struct piece){.host = host, .len = len, .registered = registered};
	return QCU_ERR_Success;
}

void pieces_free(struct pieces *ps)
{
	free(ps->p);
	*ps = (struct pieces){0};
}

static int compare(const void *a, const void *b)
{
	const struct window_map *x = a, *y = b;

	if (x->va + (x->len - 1) < y->va)
		return -1;
	return y->va + (y->len - 1) < x->va;
}

/* Holds w->lock. A map that has any byte of the range, or NULL. The range is not empty. */
static struct window_map *overlap(struct window *w, uint64_t va, uint64_t len)
{
	struct window_map key = {.va = va, .len = len};
	struct window_map **node = tfind(&key, &w->tree, compare);

	return node ? *node : NULL;
}

static uint64_t page_size(void)
{
	return (uint64_t)sysconf(_SC_PAGESIZE);
}

static bool page_aligned(uint64_t x)
{
	return !(x & (page_size() - 1));
}

/* Makes addresses that nobody has ours. 0 or an errno. */
static int reserve(uint64_t va, uint64_t len)
{
	void *p = mmap((void *)va, len, PROT_NONE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);

	if (p == MAP_FAILED)
		return errno;
	if (p == (void *)va)
		return 0;
	munmap(p, len);
	return EEXIST;
}

int window_init(struct window *w, const struct mir_config *cfg)
{
	int err;

	*w = (struct window){
		.mem = cfg->mem,
		.map = cfg->map,
		.limit = cfg->pin_limit,
		.pin_ram = cfg->mem && cfg->pin_ram,
		.ops = cfg->ops,
	};
	pthread_mutex_init(&w->leave, NULL);
	pthread_mutex_init(&w->change, NULL);
	pthread_mutex_init(&w->lock, NULL);
	if (!w->mem)
		return 0;
	err = reserve(QCU_WINDOW_BASE, RESERVED);
	if (err) {
		fprintf(stderr, "qcu-device: cannot reserve addresses 0x%llx to 0x%llx: %s\n",
			QCU_WINDOW_BASE, QCU_WINDOW_BASE + RESERVED - 1, strerror(err));
		pthread_mutex_destroy(&w->lock);
		pthread_mutex_destroy(&w->change);
		pthread_mutex_destroy(&w->leave);
		return -err;
	}
	w->reserved = true;
	return 0;
}

void window_set_backend(struct window *w, struct be *be)
{
	w->be = be;
	if (w->pin_ram)
		window_register_ram(w);
}

/* Nothing to be read or written at these addresses any more. */
static int reserve_again(uint64_t va, uint64_t len)
{
	void *p = mmap((void *)va, len, PROT_NONE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);

	return p == MAP_FAILED ? QCU_ERR_OperatingSystem : QCU_ERR_Success;
}

/* A second mapping, at va, of pages of guest RAM that are mapped at host. */
static int map_again(void *host, uint64_t len, uint64_t va)
{
	if (mremap(host, 0, len, MREMAP_MAYMOVE | MREMAP_FIXED, (void *)va) == MAP_FAILED) {
		complain("cannot map %llu bytes of guest memory at 0x%llx: %s",
			 (unsigned long long)len, (unsigned long long)va, strerror(errno));
		return QCU_ERR_MapBufferObjectFailed;
	}
	return QCU_ERR_Success;
}

static int map_runs(struct window_map *wm)
{
	size_t i;
	int rc;

	for (i = 0; i < wm->count; i++) {
		rc = map_again(wm->run[i].host, wm->run[i].len, wm->va + wm->run[i].off);
		if (rc) {
			reserve_again(wm->va, wm->len);
			return rc;
		}
	}
	wm->remapped = true;
	return QCU_ERR_Success;
}

static int undo(struct window *w, struct window_map *wm)
{
	int rc = registered_drop(w, wm), err;

	if (wm->outside) {
		if (munmap((void *)wm->va, wm->len))
			rc = rc ? rc : QCU_ERR_OperatingSystem;
	} else if (wm->remapped) {
		err = reserve_again(wm->va, wm->len);
		rc = rc ? rc : err;
	}
	return rc;
}

static void add_run(struct window_map *wm, uint8_t *host, uint64_t len)
{
	struct window_run *last = wm->count ? &wm->run[wm->count - 1] : NULL;
	uint64_t off = last ? last->off + last->len : 0;

	if (last && last->host + last->len == host)
		last->len += len;
	else
		wm->run[wm->count++] = (struct window_run){.host = host, .off = off, .len = len};
}

/* Holds w->lock. Has any byte of the range a map, or one that is about to go? */
static bool occupied(struct window *w, uint64_t va, uint64_t len)
{
	return overlap(w, va, len) ||
	       (w->leaving_len && va <= w->leaving_va + (w->leaving_len - 1) &&
		w->leaving_va <= va + (len - 1));
}

/* Where the segments lie, as runs in address order. NULL with *rc set. */
static struct window_map *locate(struct window *w, uint64_t va, uint64_t len,
				 const struct qcu_seg *segs, size_t count, int *rc)
{
	uint64_t left = len;
	size_t room = count + (w->mem ? w->mem->count : 0), i;
	struct window_map *wm = calloc(1, sizeof(*wm) + room * sizeof(wm->run[0]));

	if (!wm) {
		*rc = QCU_ERR_MemoryAllocation;
		return NULL;
	}
	wm->va = va;
	wm->len = len;
	*rc = MIR_RULE_BROKEN;
	for (i = 0; i < count; i++) {
		uint64_t gpa = segs[i].gpa, todo = segs[i].len;

		if (!todo || todo > left || (w->mem && (!page_aligned(gpa) || !page_aligned(todo))))
			goto fail;
		left -= todo;
		while (todo) {
			void *host = (void *)gpa;
			uint64_t part = w->mem ? guestmem_run(w->mem, gpa, todo, &host) : todo;

			/* Segments that overlap can span region borders more than once each. */
			if (!part || wm->count == room ||
			    (w->mem && (!page_aligned((uintptr_t)host) || !page_aligned(part))))
				goto fail;
			add_run(wm, host, part);
			gpa += part;
			todo -= part;
		}
	}
	if (left)
		goto fail;
	*rc = QCU_ERR_Success;
	return wm;
fail:
	free(wm);
	return NULL;
}

static bool in_window(uint64_t va, uint64_t len)
{
	return va - QCU_WINDOW_BASE < QCU_WINDOW_SIZE &&
	       len <= QCU_WINDOW_SIZE - (va - QCU_WINDOW_BASE);
}

/* Wholly among the addresses that were reserved at the beginning? */
static bool reserved(uint64_t va, uint64_t len)
{
	return va - QCU_WINDOW_BASE < RESERVED && len <= RESERVED - (va - QCU_WINDOW_BASE);
}

/*
 * Reserves the addresses of a map that lies outside. However often the guest names the same memory,
 * it gets no more addresses there than in the window: page tables are the host's memory.
 */
static int take_addresses(struct window *w, struct window_map *wm)
{
	if (!w->mem || reserved(wm->va, wm->len))
		return QCU_ERR_Success;
	if (wm->len > QCU_WINDOW_SIZE - w->outside_bytes)
		return QCU_ERR_MemoryAllocation;
	if (wm->va < OUTSIDE_MIN || reserve(wm->va, wm->len))
		return QCU_MAP_TAKEN;
	wm->outside = true;
	return QCU_ERR_Success;
}

int window_map(struct window *w, uint64_t va, uint64_t len, const struct qcu_seg *segs,
	       size_t count)
{
	struct window_map *wm;
	bool taken;
	int rc;

	/* In one process maps need not be pages: nothing is mapped. */
	if (!len || len - 1 > UINT64_MAX - va ||
	    (w->mem && (!page_aligned(va) || !page_aligned(len))))
		return MIR_RULE_BROKEN;

	pthread_mutex_lock(&w->change);
	pthread_mutex_lock(&w->lock);
	taken = occupied(w, va, len);
	pthread_mutex_unlock(&w->lock);
	rc = MIR_RULE_BROKEN;
	wm = taken ? NULL : locate(w, va, len, segs, count, &rc);
	if (!wm)
		goto out;

	rc = take_addresses(w, wm);
	if (rc)
		goto fail;
	if (w->mem && ((w->map == MIR_MAP_CVM && !w->ram_registered) || !in_window(va, len))) {
		rc = map_runs(wm);
		if (rc)
			goto fail;
		wm->run[0] = (struct window_run){.host = (uint8_t *)va, .len = len};
		wm->count = 1;
	}
	wm->direct = wm->count == 1 && wm->run[0].host == (uint8_t *)va;
	rc = registered_add(w, wm);
	if (rc)
		goto fail;
	pthread_mutex_lock(&w->lock);
	if (tsearch(wm, &w->tree, compare))
		LIST_INSERT_HEAD(&w->maps, wm, link);
	else
		rc = QCU_ERR_MemoryAllocation;
	pthread_mutex_unlock(&w->lock);
	if (rc)
		goto fail;
	w->mapped_bytes += len;
	w->outside_bytes += wm->outside ? len : 0;
	goto out;
fail:
	undo(w, wm);
	free(wm);
out:
	pthread_mutex_unlock(&w->change);
	return rc;
}

/* Nobody finds the next map of the range any more; NULL: there is none. */
static struct window_map *take_out(struct window *w, uint64_t va, uint64_t len, int *rc)
{
	struct window_map *wm;

	pthread_mutex_lock(&w->change);
	pthread_mutex_lock(&w->lock);
	wm = overlap(w, va, len);
	if (wm && (wm->va < va || wm->len > len || wm->va - va > len - wm->len)) {
		*rc = MIR_RULE_BROKEN;
		wm = NULL;
	}
	if (wm) {
		tdelete(wm, &w->tree, compare);
		LIST_REMOVE(wm, link);
		w->leaving_va = wm->va;
		w->leaving_len = wm->len;
	}
	pthread_mutex_unlock(&w->lock);
	pthread_mutex_unlock(&w->change);
	return wm;
}

/* Its addresses are free. */
static void forget(struct window *w, struct window_map *wm)
{
	pthread_mutex_lock(&w->change);
	w->mapped_bytes -= wm->len;
	w->outside_bytes -= wm->outside ? wm->len : 0;
	pthread_mutex_lock(&w->lock);
	w->leaving_len = 0;
	pthread_mutex_unlock(&w->lock);
	pthread_mutex_unlock(&w->change);
	free(wm);
}

/* Others map and register meanwhile: the GPU may be waiting for a program that waits for that. */
int window_unmap(struct window *w, uint64_t va, uint64_t len)
{
	struct window_map *wm;
	int rc = QCU_ERR_Success, err;

	if (!len || len - 1 > UINT64_MAX - va)
		return MIR_RULE_BROKEN;
	pthread_mutex_lock(&w->leave);
	while ((wm = take_out(w, va, len, &rc))) {
		err = undo(w, wm);
		rc = rc ? rc : err;
		forget(w, wm);
	}
	pthread_mutex_unlock(&w->leave);
	return rc;
}

void window_fini(struct window *w)
{
	window_unmap(w, 0, UINT64_MAX);
	window_unregister_ram(w);
	if (w->reserved)
		munmap((void *)QCU_WINDOW_BASE, RESERVED);
	pthread_mutex_destroy(&w->lock);
	pthread_mutex_destroy(&w->change);
	pthread_mutex_destroy(&w->leave);
}

/* Under `change`. */
static int pin_map(struct window *w, struct window_map *wm)
{
	int rc;

	if (wm->pinned)
		return QCU_ERR_Success;
	if (!wm->direct) {
		if (!w->mem)
			return QCU_ERR_NotSupported;
		rc = map_runs(wm);
		if (rc)
			return rc;
	}
	rc = registered_add_extra(w, wm);
	if (rc && !wm->direct) {
		reserve_again(wm->va, wm->len);
		wm->remapped = false;
	}
	if (rc)
		return rc;
	pthread_mutex_lock(&w->lock);
	wm->pinned = true;
	pthread_mutex_unlock(&w->lock);
	return QCU_ERR_Success;
}

/* How much of [va, va + len) the map at va holds; all of it if there is none. */
static uint64_t part_of(const struct window_map *wm, uint64_t va, uint64_t len)
{
	uint64_t left = wm ? wm->len - (va - wm->va) : len;

	return left < len ? left : len;
}

int window_pin(struct window *w, uint64_t va, uint64_t len)
{
	int rc = QCU_ERR_InvalidValue;

	if (!len || len - 1 > UINT64_MAX - va)
		return rc;
	/* With `change` held, maps neither come nor go. */
	pthread_mutex_lock(&w->change);
	while (len) {
		struct window_map *wm;
		uint64_t part;

		pthread_mutex_lock(&w->lock);
		wm = overlap(w, va, 1);
		pthread_mutex_unlock(&w->lock);
		rc = wm ? pin_map(w, wm) : QCU_ERR_InvalidValue;
		if (rc)
			break;
		part = part_of(wm, va, len);
		va += part;
		len -= part;
	}
	pthread_mutex_unlock(&w->change);
	return rc;
}

bool window_pinned(struct window *w, uint64_t va, uint64_t len)
{
	bool all = true;

	if (len && len - 1 > UINT64_MAX - va)
		return false;
	pthread_mutex_lock(&w->lock);
	while (len && all) {
		struct window_map *wm = overlap(w, va, 1);
		uint64_t part;

		all = wm && wm->pinned;
		if (!all)
			break;
		part = part_of(wm, va, len);
		va += part;
		len -= part;
	}
	pthread_mutex_unlock(&w->lock);
	return all;
}

uint64_t window_span(struct window *w, uint64_t va, uint64_t len)
{
	struct window_map *wm;
	uint64_t span = len;

	pthread_mutex_lock(&w->lock);
	wm = overlap(w, va, 1);
	if (wm && wm->len - (va - wm->va) < len)
		span = wm->len - (va - wm->va);
	pthread_mutex_unlock(&w->lock);
	return span;
}

/* The index of the run that holds the offset. */
static size_t run_at(const struct window_map *wm, uint64_t off)
{
	size_t lo = 0, hi = wm->count;

	while (hi - lo > 1) {
		size_t mid = lo + (hi - lo) / 2;

		if (wm->run[mid].off <= off)
			lo = mid;
		else
			hi = mid;
	}
	return lo;
}

/*
 * Notes that the range is used. True: some of it has lost its registration. Maps neither come nor
 * go while a command uses them: the driver sees to that, and if it does not, it finds itself
 * refused.
 */
static bool note_use(struct window *w, uint64_t va, uint64_t len)
{
	bool lost = false;

	pthread_mutex_lock(&w->lock);
	while (len) {
		struct window_map *wm = overlap(w, va, 1);
		uint64_t part = part_of(wm, va, len);

		if (wm) {
			wm->used = ++w->clock;
			lost |= !wm->known;
		}
		va += part;
		len -= part;
	}
	pthread_mutex_unlock(&w->lock);
	return lost;
}

static void bring_back(struct window *w, uint64_t va, uint64_t len)
{
	pthread_mutex_lock(&w->change);
	while (len) {
		struct window_map *wm;
		uint64_t part;

		pthread_mutex_lock(&w->lock);
		wm = overlap(w, va, 1);
		pthread_mutex_unlock(&w->lock);
		part = part_of(wm, va, len);
		if (wm)
			registered_use(w, wm);
		va += part;
		len -= part;
	}
	pthread_mutex_unlock(&w->change);
}

int window_resolve(struct window *w, uint64_t va, uint64_t len, struct pieces *ps)
{
	int rc = QCU_ERR_Success;

	if (len && len - 1 > UINT64_MAX - va)
		return QCU_ERR_InvalidValue;
	if (w->limit && note_use(w, va, len))
		bring_back(w, va, len);
	pthread_mutex_lock(&w->lock);
	while (len && !rc) {
		struct window_map *wm = overlap(w, va, 1);
		uint64_t off, end;
		size_t i;

		if (!wm) {
			rc = QCU_ERR_InvalidValue;
			break;
		}
		off = va - wm->va;
		end = len > wm->len - off ? wm->len : off + len;
		va += end - off;
		len -= end - off;
		for (i = run_at(wm, off); off < end && !rc; i++) {
			const struct window_run *run = &wm->run[i];
			uint64_t part = run->off + run->len - off;

			if (part > end - off)
				part = end - off;
			rc = pieces_add(ps, run->host + (off - run->off), part, wm->known);
			off += part;
		}
	}
	pthread_mutex_unlock(&w->lock);
	return rc;
}
