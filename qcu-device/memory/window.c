// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Chunks in the window.
 *
 * CVM: every segment of guest RAM gets a second mapping at its address in the window, and the whole
 * run is registered. (mremap() with an old size of 0 duplicates a shared mapping without its fd.)
 * NCVM: the segments are registered where they lie in the RAM mapping, and neighbours are merged.
 * They come into the window only when HOST_REGISTER wants the address itself to be usable. If guest
 * and mirror are one process, nothing is mapped; the segments are pointers.
 *
 * Memory that is registered but lies in no chunk comes as maps outside of the window: at the
 * guest's address, or in the annex. These maps are always mapped there: two of them may have a page
 * in common, and both may be registered.
 *
 * The address ranges where maps may lie are the same for every mirror and known to every guest: the
 * window, the annex, and the ranges where programs have their own memory. All of them are set
 * aside, inaccessible, before the mirror has put anything there, and stay set aside for the
 * mirror's life. So the answer to a MAP tells nothing about the mirror's own memory, and an address
 * that a guest has given up never becomes memory of the mirror.
 *
 * A command holds the maps that it uses. UNMAP waits until no command holds the map.
 *
 * The tree holds disjoint ranges. For a search, all ranges that overlap are equal. So a search
 * answers both "what holds this address" and "does this range collide".
 */
#define _GNU_SOURCE /* mremap */
#include <errno.h>
#include <search.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "qcu-device/base/complain.h"
#include "qcu-device/memory/window_impl.h"

#define RESERVED (QCU_WINDOW_SIZE + QCU_ANNEX_SIZE)

/*
 * Where a guest program has its own memory: a program that is linked to a fixed address; other
 * programs, with their heap; what the kernel maps. Below these ranges are our null pointers. Above
 * them are stacks, the mirror's too. The gap before the last range is AddressSanitizer's. A range
 * takes no maps at all if something lies in it already, because this process was not started in the
 * way that mirrors are (jail.h).
 */
static const struct window_range outside_ranges[] = {
	{0x100000, 0x7fff0000 - 0x100000},
	{0x550000000000, 0x600000000000 - 0x550000000000},
	{0x660000000000, 0x7ffbf0000000 - 0x660000000000},
};
_Static_assert(sizeof(outside_ranges) / sizeof(outside_ranges[0]) == WINDOW_RANGES - 1,
	       "and the window with the annex");

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

static int compare_maps(const void *a, const void *b)
{
	const struct window_map *x = a, *y = b;

	if (x->va + (x->len - 1) < y->va)
		return -1;
	return y->va + (y->len - 1) < x->va;
}

/*
 * The caller holds w->lock. Returns a map that has any byte of the range, or NULL. The range is not
 * empty.
 */
static struct window_map *overlap(struct window *w, uint64_t va, uint64_t len)
{
	struct window_map key = {.va = va, .len = len};
	struct window_map **node = tfind(&key, &w->tree, compare_maps);

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

/* Reserves addresses that are free. Returns 0 or an errno. */
static int reserve_free_addresses(uint64_t va, uint64_t len)
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

static int reserve_range(struct window *w, uint64_t va, uint64_t len)
{
	int err = reserve_free_addresses(va, len);

	if (!err)
		w->range[w->ranges++] = (struct window_range){va, len};
	return err;
}

static void destroy_locks(struct window *w)
{
	pthread_cond_destroy(&w->unheld);
	pthread_mutex_destroy(&w->lock);
	pthread_mutex_destroy(&w->change);
	pthread_mutex_destroy(&w->leave);
}

int window_init(struct window *w, const struct be_ops *ops, const struct guestmem *mem,
		enum mir_map map, uint64_t pin_limit)
{
	unsigned int i;
	int err;

	*w = (struct window){
		.mem = mem,
		.map = map,
		.limit = pin_limit,
		.late_bytes = WINDOW_LATE_BYTES,
		.ops = ops,
	};
	pthread_mutex_init(&w->leave, NULL);
	pthread_mutex_init(&w->change, NULL);
	pthread_mutex_init(&w->lock, NULL);
	pthread_cond_init(&w->unheld, NULL);
	if (!w->mem)
		return 0;
	err = reserve_range(w, QCU_WINDOW_BASE, RESERVED);
	if (err) {
		complain("cannot reserve addresses 0x%llx to 0x%llx: %s", QCU_WINDOW_BASE,
			 QCU_WINDOW_BASE + RESERVED - 1, strerror(err));
		destroy_locks(w);
		return -err;
	}
	for (i = 0; i < WINDOW_RANGES - 1; i++)
		reserve_range(w, outside_ranges[i].va, outside_ranges[i].len);
	return 0;
}

void window_set_backend(struct window *w, struct be *be)
{
	w->be = be;
}

/* From now on nothing can be read or written at these addresses. */
static int reserve_again(uint64_t va, uint64_t len)
{
	void *p = mmap((void *)va, len, PROT_NONE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);

	return p == MAP_FAILED ? QCU_ERR_OperatingSystem : QCU_ERR_Success;
}

/* Maps pages of guest RAM, which are mapped at `host`, a second time at `va`. */
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

/*
 * In one process with the guest, the addresses are the guest's, and we have mapped nothing there.
 */
static int undo(struct window *w, struct window_map *wm)
{
	int rc = registered_drop(w, wm), err;

	if (wm->placed) {
		rc = w->ops->mem_unplace(w->be, wm->device, wm->va, wm->usable, wm->len);
		rc = registered_lost(rc) ? QCU_ERR_Success : rc;
		if (w->unplaced)
			w->unplaced(w->unplaced_ctx, wm->device, wm->usable);
	}
	if (wm->remapped) {
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

/*
 * The caller holds w->lock. Does any byte of the range belong to a map, or to one that is leaving?
 */
static bool occupied(struct window *w, uint64_t va, uint64_t len)
{
	return overlap(w, va, len) ||
	       (w->leaving_len && va <= w->leaving_va + (w->leaving_len - 1) &&
		w->leaving_va <= va + (len - 1));
}

/* Finds where the segments lie, as runs in address order. Returns NULL with *rc set if it fails. */
static struct window_map *locate_segments(struct window *w, uint64_t va, uint64_t len,
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
	wm->len = wm->usable = len;
	*rc = MIR_RULE_BROKEN;
	for (i = 0; i < count; i++) {
		uint64_t gpa = segs[i].gpa, todo = segs[i].len;

		if (!todo || todo > left || (w->mem && (!page_aligned(gpa) || !page_aligned(todo))))
			goto fail;
		left -= todo;
		while (todo) {
			void *host = (void *)gpa;
			uint64_t part = w->mem ? guestmem_run(w->mem, gpa, todo, &host) : todo;

			/*
			 * Segments that overlap may span the same region border, so there may be
			 * more runs than room.
			 */
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

static bool is_inside_window(uint64_t va, uint64_t len)
{
	return va - QCU_WINDOW_BASE < QCU_WINDOW_SIZE &&
	       len <= QCU_WINDOW_SIZE - (va - QCU_WINDOW_BASE);
}

bool window_set_aside(const struct window *w, uint64_t va, uint64_t len)
{
	unsigned int i;

	for (i = 0; i < w->ranges; i++) {
		uint64_t off = va - w->range[i].va;

		if (off < w->range[i].len && len <= w->range[i].len - off)
			return true;
	}
	return false;
}

static bool maps_lie_in(const struct window *w, uint64_t va, uint64_t len)
{
	return !w->mem || window_set_aside(w, va, len);
}

static bool is_outside(const struct window *w, uint64_t va)
{
	return w->mem && va - QCU_WINDOW_BASE >= RESERVED;
}

/*
 * However often the guest names the same memory, it gets no more addresses outside than in the
 * window, because page tables are memory of the host.
 */
static int may_map(const struct window *w, uint64_t va, uint64_t len)
{
	if (!maps_lie_in(w, va, len))
		return QCU_MAP_TAKEN;
	if (is_outside(w, va) && len > QCU_WINDOW_SIZE - w->outside_bytes)
		return QCU_ERR_MemoryAllocation;
	return QCU_ERR_Success;
}

static void count_chunks(const struct window *w, uint64_t more)
{
	if (w->counts)
		count_add(w->counts, COUNT_CHUNKS, more);
}

int window_map_chunks(struct window *w, uint64_t va, uint64_t len, const struct qcu_seg *segs,
		      size_t count, uint32_t chunk_bytes)
{
	struct window_map *wm;
	bool taken;
	int rc;

	/* In one process, maps need not be whole pages: nothing is mapped. */
	if (!len || len - 1 > UINT64_MAX - va ||
	    (w->mem && (!page_aligned(va) || !page_aligned(len))))
		return MIR_RULE_BROKEN;

	pthread_mutex_lock(&w->change);
	pthread_mutex_lock(&w->lock);
	taken = occupied(w, va, len);
	pthread_mutex_unlock(&w->lock);
	rc = MIR_RULE_BROKEN;
	wm = taken ? NULL : locate_segments(w, va, len, segs, count, &rc);
	if (!wm)
		goto out;

	rc = may_map(w, va, len);
	if (rc)
		goto fail;
	if (w->mem && (w->map == MIR_MAP_CVM || !is_inside_window(va, len))) {
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
	if (tsearch(wm, &w->tree, compare_maps))
		LIST_INSERT_HEAD(&w->maps, wm, link);
	else
		rc = QCU_ERR_MemoryAllocation;
	pthread_mutex_unlock(&w->lock);
	if (rc)
		goto fail;
	wm->chunks = chunk_bytes ? (len - 1) / chunk_bytes + 1 : 0;
	count_chunks(w, wm->chunks);
	w->mapped_bytes += len;
	w->outside_bytes += is_outside(w, va) ? len : 0;
	goto out;
fail:
	undo(w, wm);
	free(wm);
out:
	pthread_mutex_unlock(&w->change);
	return rc;
}

/* Takes out the next map of the range: from now on no search finds it. NULL: there is none. */
static struct window_map *take_out_next_map(struct window *w, uint64_t va, uint64_t len, int *rc)
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
		tdelete(wm, &w->tree, compare_maps);
		LIST_REMOVE(wm, link);
		w->leaving_va = wm->va;
		w->leaving_len = wm->len;
	}
	pthread_mutex_unlock(&w->lock);
	pthread_mutex_unlock(&w->change);
	return wm;
}

/* The map is gone, and its addresses are free. */
static void forget_map(struct window *w, struct window_map *wm)
{
	pthread_mutex_lock(&w->change);
	count_chunks(w, -wm->chunks);
	w->mapped_bytes -= wm->placed ? 0 : wm->len;
	w->outside_bytes -= is_outside(w, wm->va) ? wm->len : 0;
	pthread_mutex_lock(&w->lock);
	w->leaving_len = 0;
	pthread_mutex_unlock(&w->lock);
	pthread_mutex_unlock(&w->change);
	free(wm);
}

/*
 * No search finds the map any more. Waits until the commands that found it before have released it.
 */
static void wait_until_unheld(struct window *w, struct window_map *wm)
{
	atomic_fetch_or(&wm->holds, WINDOW_LEAVING);
	pthread_mutex_lock(&w->lock);
	while (atomic_load(&wm->holds) != WINDOW_LEAVING)
		pthread_cond_wait(&w->unheld, &w->lock);
	pthread_mutex_unlock(&w->lock);
}

/*
 * Other threads map and register meanwhile, because the GPU may be waiting for a program that waits
 * for them.
 */
static int take_out_maps(struct window *w, uint64_t va, uint64_t len)
{
	struct window_map *wm;
	int rc = QCU_ERR_Success, err;

	pthread_mutex_lock(&w->leave);
	while ((wm = take_out_next_map(w, va, len, &rc))) {
		wait_until_unheld(w, wm);
		err = undo(w, wm);
		rc = rc ? rc : err;
		forget_map(w, wm);
	}
	pthread_mutex_unlock(&w->leave);
	return rc;
}

/* A range that was refused with QCU_MAP_TAKEN is unmapped, too. Nothing is there. */
int window_unmap(struct window *w, uint64_t va, uint64_t len)
{
	bool any;

	if (!len || len - 1 > UINT64_MAX - va)
		return MIR_RULE_BROKEN;
	if (maps_lie_in(w, va, len))
		return take_out_maps(w, va, len);
	pthread_mutex_lock(&w->lock);
	any = overlap(w, va, len);
	pthread_mutex_unlock(&w->lock);
	return any ? MIR_RULE_BROKEN : (int)QCU_ERR_Success;
}

void window_fini(struct window *w)
{
	take_out_maps(w, 0, UINT64_MAX);
	while (w->ranges--)
		munmap((void *)w->range[w->ranges].va, w->range[w->ranges].len);
	destroy_locks(w);
}

/* ---- device memory in the window ---- */

int window_place(struct window *w, unsigned int dev, uint64_t va, uint64_t len, uint64_t bytes)
{
	struct window_map *wm;
	int rc = QCU_ERR_InvalidValue;
	bool taken;

	if (!w->mem)
		return QCU_ERR_NotSupported;
	if (!bytes || bytes > len || va % QCU_MANAGED_ALIGN || len % QCU_MANAGED_ALIGN ||
	    bytes % QCU_MANAGED_GRAIN || !is_inside_window(va, len))
		return rc;
	wm = calloc(1, sizeof(*wm));
	if (!wm)
		return QCU_ERR_MemoryAllocation;
	wm->va = va;
	wm->len = len;
	wm->usable = bytes;
	wm->device = dev;
	wm->placed = wm->remapped = wm->pinned = wm->known = true;
	pthread_mutex_lock(&w->change);
	pthread_mutex_lock(&w->lock);
	taken = occupied(w, va, len);
	pthread_mutex_unlock(&w->lock);
	if (taken)
		goto fail;
	rc = w->ops->mem_place(w->be, dev, va, bytes, len);
	if (rc) {
		reserve_again(va, len);
		goto fail;
	}
	pthread_mutex_lock(&w->lock);
	if (tsearch(wm, &w->tree, compare_maps))
		LIST_INSERT_HEAD(&w->maps, wm, link);
	else
		rc = QCU_ERR_MemoryAllocation;
	pthread_mutex_unlock(&w->lock);
	if (!rc)
		goto out;
	w->ops->mem_unplace(w->be, dev, va, bytes, len);
	reserve_again(va, len);
fail:
	free(wm);
out:
	pthread_mutex_unlock(&w->change);
	return rc;
}

int window_unplace(struct window *w, uint64_t va, uint64_t len)
{
	struct window_map *wm;
	bool found;

	if (!len || len - 1 > UINT64_MAX - va)
		return QCU_ERR_InvalidValue;
	pthread_mutex_lock(&w->lock);
	wm = overlap(w, va, len);
	found = wm && wm->placed && wm->va == va && wm->len == len;
	pthread_mutex_unlock(&w->lock);
	return found ? take_out_maps(w, va, len) : (int)QCU_ERR_InvalidValue;
}

void window_unplace_all(struct window *w)
{
	struct window_map *wm;
	uint64_t va, len;

	do {
		pthread_mutex_lock(&w->change);
		LIST_FOREACH(wm, &w->maps, link)
			if (wm->placed)
				break;
		va = wm ? wm->va : 0;
		len = wm ? wm->len : 0;
		pthread_mutex_unlock(&w->change);
		if (len)
			take_out_maps(w, va, len);
	} while (len);
}

void window_lend(struct window *w)
{
	if (w->mem && w->ops->wants_window)
		munmap((void *)QCU_WINDOW_BASE, QCU_WINDOW_SIZE);
}

int window_take_back(struct window *w)
{
	int err;

	if (!w->mem || !w->ops->wants_window)
		return 0;
	err = reserve_free_addresses(QCU_WINDOW_BASE, QCU_WINDOW_SIZE);
	if (err)
		complain("the %s backend uses addresses of the window: %s", w->ops->name,
			 strerror(err));
	return -err;
}

/* Called under `change`. */
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

/* Returns how much of [va, va + len) the map at `va` holds. Without a map: all of it. */
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
	/* While `change` is held, maps neither come nor go. */
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

/* The caller holds w->lock. Each command that uses a map holds it once. */
static int hold_map(struct window_holds *holds, struct window_map *wm)
{
	if (!holds || (holds->count && holds->map[holds->count - 1] == wm))
		return QCU_ERR_Success;
	if (holds->count == holds->room) {
		size_t room = 2 * holds->room;
		struct window_map **map = malloc(room * sizeof(*map));

		if (!map)
			return QCU_ERR_MemoryAllocation;
		memcpy(map, holds->map, holds->count * sizeof(*map));
		if (holds->map != holds->few)
			free(holds->map);
		holds->map = map;
		holds->room = room;
	}
	atomic_fetch_add_explicit(&wm->holds, 1, memory_order_relaxed);
	holds->map[holds->count++] = wm;
	return QCU_ERR_Success;
}

void window_holds_init(struct window_holds *holds)
{
	holds->count = 0;
	holds->room = WINDOW_HOLDS_FEW;
	holds->map = holds->few;
}

void window_release(struct window *w, struct window_holds *holds)
{
	bool last = false;
	size_t i;

	/*
	 * A thread that has released the last hold of a leaving map must not touch the map any
	 * more.
	 */
	for (i = 0; i < holds->count; i++)
		last |= atomic_fetch_sub(&holds->map[i]->holds, 1) == (WINDOW_LEAVING | 1);
	if (last) {
		pthread_mutex_lock(&w->lock);
		pthread_cond_broadcast(&w->unheld);
		pthread_mutex_unlock(&w->lock);
	}
	if (holds->map != holds->few)
		free(holds->map);
	window_holds_init(holds);
}

/* How many bytes from `va` on kernels may use, within the map. */
static uint64_t usable_from(const struct window_map *wm, uint64_t va)
{
	uint64_t off = va - wm->va;

	return off < wm->usable ? wm->usable - off : 0;
}

bool window_placed(struct window *w, uint64_t va, uint64_t len, unsigned int *dev,
		   struct window_holds *holds)
{
	struct window_map *wm;
	bool placed;

	if (!len || len - 1 > UINT64_MAX - va)
		return false;
	pthread_mutex_lock(&w->lock);
	wm = overlap(w, va, 1);
	placed = wm && wm->placed && len <= usable_from(wm, va) && !hold_map(holds, wm);
	if (placed)
		*dev = wm->device;
	pthread_mutex_unlock(&w->lock);
	return placed;
}

bool window_next_pinned(struct window *w, uint64_t va, struct window_pinned *p)
{
	const struct window_map *wm, *next = NULL;

	pthread_mutex_lock(&w->change);
	LIST_FOREACH(wm, &w->maps, link)
		if (wm->pinned && wm->va >= va && (!next || wm->va < next->va))
			next = wm;
	if (next)
		*p = (struct window_pinned){.va = next->va,
					    .len = next->len,
					    .bytes = next->usable,
					    .placed = next->placed,
					    .device = next->device};
	pthread_mutex_unlock(&w->change);
	return next;
}

bool window_pinned(struct window *w, uint64_t va, uint64_t len, struct window_holds *holds)
{
	bool all = true;

	if (len && len - 1 > UINT64_MAX - va)
		return false;
	pthread_mutex_lock(&w->lock);
	while (len && all) {
		struct window_map *wm = overlap(w, va, 1);
		uint64_t part;

		all = wm && wm->pinned && usable_from(wm, va) && !hold_map(holds, wm);
		if (!all)
			break;
		part = usable_from(wm, va) < len ? usable_from(wm, va) : len;
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

/* Returns the index of the run that has the offset. */
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

/* Notes that the range is used. True: some of it must be registered now. */
static bool note_use(struct window *w, uint64_t va, uint64_t len, bool carry)
{
	bool now = false;

	pthread_mutex_lock(&w->lock);
	while (len) {
		struct window_map *wm = overlap(w, va, 1);
		uint64_t part = part_of(wm, va, len);

		if (wm) {
			wm->used = ++w->clock;
			if (carry && wm->when == WINDOW_USED_AGAIN)
				wm->when = WINDOW_USED;
			else
				now |= !wm->known;
		}
		va += part;
		len -= part;
	}
	pthread_mutex_unlock(&w->lock);
	return now;
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

static int resolve_pieces(struct window *w, uint64_t va, uint64_t len, bool carry,
			  struct pieces *ps, struct window_holds *holds)
{
	int rc = QCU_ERR_Success;

	if (len && len - 1 > UINT64_MAX - va)
		return QCU_ERR_InvalidValue;
	if ((w->limit || w->late) && note_use(w, va, len, carry))
		bring_back(w, va, len);
	pthread_mutex_lock(&w->lock);
	while (len && !rc) {
		struct window_map *wm = overlap(w, va, 1);
		uint64_t off, end;
		size_t i;

		rc = wm && !wm->placed ? hold_map(holds, wm) : (int)QCU_ERR_InvalidValue;
		if (rc)
			break;
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

int window_resolve(struct window *w, uint64_t va, uint64_t len, struct pieces *ps,
		   struct window_holds *holds)
{
	return resolve_pieces(w, va, len, false, ps, holds);
}

int window_resolve_to_carry(struct window *w, uint64_t va, uint64_t len, struct pieces *ps,
			    struct window_holds *holds)
{
	return resolve_pieces(w, va, len, true, ps, holds);
}
