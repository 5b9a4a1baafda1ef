// SPDX-License-Identifier: GPL-2.0-or-later
/* See cuda_addresses.h. */
#define _GNU_SOURCE /* MAP_FIXED_NOREPLACE */
#include "tests/unit/device/cuda/cuda_addresses.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <cmocka.h>

#define UNIT   (2ull << 20)
#define PIECE  (32ull << 20)
#define LARGE  (1ull << 30) /* wholly taken: nobody looks for room in it */
#define PIECES 2048u
#define OWN    3 /* units that CUDA has for itself */

static struct piece {
	uint64_t at, bytes;
	unsigned char *taken; /* for each unit; NULL: all of them */
} piece[PIECES];
static unsigned int pieces;

static uint64_t map_piece(uint64_t at, uint64_t bytes)
{
	const int how = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
	uint64_t from, end;
	void *p;

	if (at && at % PIECE == 0 &&
	    mmap((void *)at, bytes, PROT_NONE, how | MAP_FIXED_NOREPLACE, -1, 0) == (void *)at)
		return at;
	p = mmap(NULL, bytes + PIECE, PROT_NONE, how, -1, 0);
	assert_true(p != MAP_FAILED);
	from = (uintptr_t)p;
	at = (from + PIECE - 1) / PIECE * PIECE;
	end = from + bytes + PIECE;
	if (at > from)
		munmap(p, at - from);
	munmap((void *)(at + bytes), end - (at + bytes));
	return at;
}

static void unmap_piece(unsigned int i)
{
	munmap((void *)piece[i].at, piece[i].bytes);
	free(piece[i].taken);
	for (pieces--; i < pieces; i++)
		piece[i] = piece[i + 1];
}

static bool is_free(const struct piece *p, uint64_t at, uint64_t bytes)
{
	uint64_t i;

	if (!p->taken || at < p->at || at - p->at > p->bytes || bytes > p->bytes - (at - p->at))
		return false;
	for (i = 0; i < bytes; i += UNIT)
		if (p->taken[(at - p->at + i) / UNIT])
			return false;
	return true;
}

static uint64_t take(struct piece *p, uint64_t at, uint64_t bytes)
{
	if (p->taken)
		memset(p->taken + (at - p->at) / UNIT, 1, bytes / UNIT);
	return at;
}

uint64_t addresses_reserve(uint64_t bytes, uint64_t at)
{
	unsigned int i;
	uint64_t there;

	for (i = 0; i < pieces; i++)
		if (at && is_free(&piece[i], at, bytes))
			return take(&piece[i], at, bytes);
	for (i = pieces; i--;)
		for (there = piece[i].at; there < piece[i].at + piece[i].bytes && piece[i].taken;
		     there += UNIT)
			if (is_free(&piece[i], there, bytes))
				return take(&piece[i], there, bytes);
	assert_true(pieces < PIECES);
	i = pieces++;
	piece[i].bytes = (bytes + PIECE - 1) / PIECE * PIECE;
	piece[i].at = map_piece(at, piece[i].bytes);
	piece[i].taken = bytes < LARGE ? calloc(piece[i].bytes / UNIT, 1) : NULL;
	return take(&piece[i], piece[i].at, bytes);
}

void addresses_free(uint64_t at, uint64_t bytes)
{
	unsigned int i;

	for (i = 0; i < pieces && (at < piece[i].at || at - piece[i].at >= piece[i].bytes); i++)
		;
	assert_true(i < pieces);
	if (piece[i].taken)
		memset(piece[i].taken + (at - piece[i].at) / UNIT, 0, bytes / UNIT);
	if (!piece[i].taken || !memchr(piece[i].taken, 1, piece[i].bytes / UNIT))
		unmap_piece(i);
}

void addresses_begin(void)
{
	while (pieces)
		unmap_piece(0);
	addresses_reserve(OWN * UNIT, 0);
}

bool addresses_are_free(void)
{
	const unsigned char *t = piece[0].taken;

	return pieces == 1 && t && !memchr(t + OWN, 1, PIECE / UNIT - OWN);
}
