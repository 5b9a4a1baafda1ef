// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A sorted array. Every copy does look-ups, by binary search. When memory is allocated or freed,
 * the shorter side of the array moves. So programs with thousands of allocations that free them in
 * the order in which they have made them, or in the opposite order, move next to nothing.
 */
#include "qcu-library/malloc/ranges.h"

#include <stdlib.h>
#include <string.h>

/* How many ranges start at or below addr. */
static size_t upto(const struct qcul_ranges *r, uint64_t addr)
{
	size_t lo = 0, hi = r->count;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (r->v[mid].start <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static void to_the_front(struct qcul_ranges *r)
{
	struct qcul_range *base = r->v - r->front;

	if (r->front)
		memmove(base, r->v, r->count * sizeof(*base));
	r->v = base;
	r->front = 0;
}

/* Makes room for one more range behind the last one. */
static bool room_at_end(struct qcul_ranges *r)
{
	size_t room = r->room ? 2 * r->room : 64;
	struct qcul_range *v;

	if (r->front + r->count < r->room)
		return true;
	/* At least half of the elements were freed since the last time. */
	if (r->front > r->room / 2) {
		to_the_front(r);
		return true;
	}
	v = realloc(r->room ? r->v - r->front : NULL, room * sizeof(*v));
	if (!v)
		return false;
	r->v = v + r->front;
	r->room = room;
	return true;
}

bool qcul_ranges_add(struct qcul_ranges *r, const struct qcul_range *range)
{
	size_t at = upto(r, range->start);

	if (!range->len || range->len - 1 > UINT64_MAX - range->start)
		return false;
	if (at > 0 && range->start - r->v[at - 1].start < r->v[at - 1].len)
		return false;
	if (at < r->count && r->v[at].start - range->start < range->len)
		return false;
	if (at < r->count / 2 && r->front) {
		memmove(r->v - 1, r->v, at * sizeof(*r->v));
		r->v--;
		r->front--;
	} else {
		if (!room_at_end(r))
			return false;
		memmove(r->v + at + 1, r->v + at, (r->count - at) * sizeof(*r->v));
	}
	r->v[at] = *range;
	r->count++;
	return true;
}

const struct qcul_range *qcul_ranges_find(const struct qcul_ranges *r, uint64_t addr)
{
	size_t at = upto(r, addr);

	if (at == 0 || addr - r->v[at - 1].start >= r->v[at - 1].len)
		return NULL;
	return &r->v[at - 1];
}

const struct qcul_range *qcul_ranges_after(const struct qcul_ranges *r, uint64_t addr)
{
	size_t at = upto(r, addr);

	return at < r->count ? &r->v[at] : NULL;
}

void qcul_ranges_remove(struct qcul_ranges *r, const struct qcul_range *range)
{
	size_t at = (size_t)(range - r->v);

	r->count--;
	if (at < r->count / 2) {
		memmove(r->v + 1, r->v, at * sizeof(*r->v));
		r->v++;
		r->front++;
	} else {
		memmove(r->v + at, r->v + at + 1, (r->count - at) * sizeof(*r->v));
	}
}

static bool align_up(uint64_t *addr, uint64_t align)
{
	uint64_t rest = *addr % align;

	if (!rest)
		return true;
	if (*addr > UINT64_MAX - (align - rest))
		return false;
	*addr += align - rest;
	return true;
}

uint64_t qcul_ranges_gap(const struct qcul_ranges *r, uint64_t lo, uint64_t hi, uint64_t len,
			 uint64_t align)
{
	size_t i = upto(r, lo);
	uint64_t at = lo;

	if (!align_up(&at, align))
		return 0;
	/* The range before may end above `lo`. */
	for (i -= i > 0; i < r->count && r->v[i].start < hi; i++) {
		const struct qcul_range *used = &r->v[i];

		if (used->start >= at && used->start - at >= len)
			break;
		if (used->start + used->len > at) {
			at = used->start + used->len;
			if (!align_up(&at, align))
				return 0;
		}
	}
	return at < hi && hi - at >= len ? at : 0;
}
