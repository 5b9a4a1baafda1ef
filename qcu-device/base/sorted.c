// SPDX-License-Identifier: GPL-2.0-or-later
/* A sorted array, see sorted.h. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "qcu-device/base/sorted.h"

/* The element with this index; -1 is the one before the first. */
static char *element_at(const struct sorted *s, ptrdiff_t at)
{
	return s->v + at * (ptrdiff_t)s->size;
}

static void move_elements(struct sorted *s, ptrdiff_t to, ptrdiff_t from, size_t n)
{
	if (n)
		memmove(element_at(s, to), element_at(s, from), n * s->size);
}

void sorted_free(struct sorted *s)
{
	if (s->room)
		free(element_at(s, -(ptrdiff_t)s->front));
	*s = (struct sorted){.size = s->size};
}

size_t sorted_upto(const struct sorted *s, uint64_t addr)
{
	size_t lo = 0, hi = s->count;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (*(const uint64_t *)element_at(s, (ptrdiff_t)mid) <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static bool room_at_end(struct sorted *s)
{
	size_t room = s->room ? 2 * s->room : 64;
	char *v;

	if (s->front + s->count < s->room)
		return true;
	/* At least half of the elements were freed since the last time. */
	if (s->front > s->room / 2) {
		move_elements(s, -(ptrdiff_t)s->front, 0, s->count);
		s->v = element_at(s, -(ptrdiff_t)s->front);
		s->front = 0;
		return true;
	}
	v = realloc(s->room ? element_at(s, -(ptrdiff_t)s->front) : NULL, room * s->size);
	if (!v)
		return false;
	s->v = v + s->front * s->size;
	s->room = room;
	return true;
}

void *sorted_insert(struct sorted *s, size_t at)
{
	if (at < s->count / 2 && s->front) {
		move_elements(s, -1, 0, at);
		s->v = element_at(s, -1);
		s->front--;
	} else {
		if (!room_at_end(s))
			return NULL;
		move_elements(s, (ptrdiff_t)at + 1, (ptrdiff_t)at, s->count - at);
	}
	s->count++;
	return element_at(s, (ptrdiff_t)at);
}

void sorted_remove(struct sorted *s, size_t at)
{
	s->count--;
	if (at < s->count / 2) {
		move_elements(s, 1, 0, at);
		s->v = element_at(s, 1);
		s->front++;
	} else {
		move_elements(s, (ptrdiff_t)at, (ptrdiff_t)at + 1, s->count - at);
	}
}
