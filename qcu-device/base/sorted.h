/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * An array of structures that begin with an address, sorted by it. When one is put in or taken out,
 * the shorter side of the array moves. So thousands of allocations that are freed in the order in
 * which they were made, or in the opposite order, move next to nothing.
 */
#ifndef QCU_SORTED_H
#define QCU_SORTED_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* All zero but `size`: an empty array. */
struct sorted {
	char *v;      /* the first one */
	size_t size;  /* of one, a multiple of 8 */
	size_t count; /* how many there are */
	size_t front; /* how many elements are free before the first one */
	size_t room;  /* all elements, free ones too */
};

/* For qsort(), bsearch() and tsearch() of such structures. */
static inline int sorted_compare(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* Of elements of this size, in order, with one address only the last stays. How many there are
 * then. */
static inline size_t sorted_keep_last(void *v, size_t count, size_t size)
{
	char *at = v, *to = v, *end = at + count * size;

	for (; at < end; at += size) {
		if (at + size < end && !sorted_compare(at, at + size))
			continue;
		memmove(to, at, size);
		to += size;
	}
	return (size_t)(to - (char *)v) / size;
}

void sorted_free(struct sorted *s);

/* How many have addresses up to `addr`. */
size_t sorted_upto(const struct sorted *s, uint64_t addr);

/* Makes room at this index for a new element, and returns it. NULL: no memory. */
void *sorted_insert(struct sorted *s, size_t at);
void sorted_remove(struct sorted *s, size_t at);

#endif
