// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * First fit, lowest address first. This keeps the upper part of a region unused, and therefore
 * untouched and zero. A region is one chunk or a few, so there are few runs to search.
 */
#include "qcu-library/malloc/malloc_region.h"

#include <stdlib.h>

#define LIVE 0x80000000u

static uint32_t length_of_run(const struct qcul_region *r, uint32_t page)
{
	return r->head[page] & ~LIVE;
}

static bool live(const struct qcul_region *r, uint32_t page)
{
	return r->head[page] & LIVE;
}

static void set_free(struct qcul_region *r, uint32_t page, uint32_t n)
{
	if (!n)
		return;
	r->head[page] = n;
	r->foot[page + n - 1] = n;
	if (n > r->largest)
		r->largest = n;
}

static void set_live(struct qcul_region *r, uint32_t page, uint32_t n)
{
	r->head[page] = n | LIVE;
	if (page + n > r->high)
		r->high = page + n;
}

/* Call this before a free run changes. */
static void unset_free(struct qcul_region *r, uint32_t page)
{
	r->foot[page + length_of_run(r, page) - 1] = 0;
}

struct qcul_region *qcul_region_new(uint32_t pages)
{
	struct qcul_region *r = calloc(1, sizeof(*r) + 2 * (size_t)pages * sizeof(r->head[0]));

	if (!r)
		return NULL;
	r->pages = pages;
	r->foot = r->head + pages;
	set_free(r, 0, pages);
	return r;
}

void qcul_region_delete(struct qcul_region *r)
{
	free(r);
}

/* The first page in this free run where a block with this alignment can begin. */
static uint32_t first_aligned_page(uint64_t start, uint32_t page, size_t align)
{
	uint64_t addr = start + page * QCUL_PAGE;

	return page + (uint32_t)((-addr & (align - 1)) / QCUL_PAGE);
}

uint32_t qcul_region_take(struct qcul_region *r, uint64_t start, uint32_t n, size_t align,
			  uint32_t *dirty)
{
	uint32_t page, len, longest = 0;

	if (n > r->largest)
		return QCUL_REGION_FULL;
	for (page = 0; page < r->pages; page += len) {
		uint32_t at, end = page + (len = length_of_run(r, page));

		if (live(r, page))
			continue;
		if (len > longest)
			longest = len;
		at = first_aligned_page(start, page, align);
		if (at >= end || end - at < n)
			continue;
		unset_free(r, page);
		set_free(r, page, at - page);
		set_free(r, at + n, end - at - n);
		*dirty = r->high > at ? r->high - at : 0;
		if (*dirty > n)
			*dirty = n;
		set_live(r, at, n);
		r->used += n;
		return at;
	}
	r->largest = longest;
	return QCUL_REGION_FULL;
}

uint32_t qcul_region_block(const struct qcul_region *r, uint32_t page)
{
	return page < r->pages && live(r, page) ? length_of_run(r, page) : 0;
}

void qcul_region_give(struct qcul_region *r, uint32_t page)
{
	uint32_t n = length_of_run(r, page), next = page + n, before;

	r->used -= n;
	/* After this, a second free() of the block finds nothing live here. */
	r->head[page] = n;
	if (next < r->pages && !live(r, next)) {
		unset_free(r, next);
		n += length_of_run(r, next);
	}
	before = page > 0 ? r->foot[page - 1] : 0;
	if (before) {
		page -= before;
		unset_free(r, page);
		n += before;
	}
	set_free(r, page, n);
}

bool qcul_region_resize(struct qcul_region *r, uint32_t page, uint32_t n)
{
	uint32_t old = length_of_run(r, page), next = page + old, room = old;

	if (next < r->pages && !live(r, next))
		room += length_of_run(r, next);
	if (n > room)
		return false;
	if (room > old)
		unset_free(r, next);
	set_free(r, page + n, room - n);
	set_live(r, page, n);
	r->used += n - old;
	return true;
}
