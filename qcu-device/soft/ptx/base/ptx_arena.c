// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Memory that is freed all at once: names, symbols and tables of a module. Parsing can stop at any
 * token; because of the arena there is nothing to clean up then.
 */
#include <stdlib.h>
#include <string.h>

#include "qcu-device/soft/ptx/base/ptx_int.h"

struct ptx_arena_memory {
	struct ptx_arena_memory *next;
	size_t used, size;
	_Alignas(16) uint8_t mem[];
};

#define CHUNK 65536u

void *ptx_alloc(struct ptx_arena *a, size_t n)
{
	struct ptx_arena_memory *c = a->head;
	void *p;

	if (n > SIZE_MAX / 2)
		return NULL;
	n = (n + 15) & ~(size_t)15;
	if (!c || n > c->size - c->used) {
		size_t size = n > CHUNK ? n : CHUNK;

		c = calloc(1, sizeof(*c) + size);
		if (!c)
			return NULL;
		c->size = size;
		c->next = a->head;
		a->head = c;
	}
	p = c->mem + c->used;
	c->used += n;
	return p;
}

char *ptx_strndup(struct ptx_arena *a, const char *s, size_t n)
{
	char *p = ptx_alloc(a, n + 1);

	if (p) {
		memcpy(p, s, n);
		p[n] = 0;
	}
	return p;
}

void ptx_arena_free(struct ptx_arena *a)
{
	while (a->head) {
		struct ptx_arena_memory *c = a->head;

		a->head = c->next;
		free(c);
	}
}

/* Makes room for `need` elements in an array. The array grows by about half of its size. */
bool ptx_grow(void **p, uint32_t *cap, uint32_t need, size_t elem)
{
	uint64_t n = *cap;
	void *q;

	if (need <= *cap)
		return true;
	n += n / 2 + 64;
	if (n < need)
		n = need;
	if (n > UINT32_MAX)
		return false;
	q = realloc(*p, n * elem);
	if (!q)
		return false;
	*p = q;
	*cap = (uint32_t)n;
	return true;
}
