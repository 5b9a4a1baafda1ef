// SPDX-License-Identifier: GPL-2.0-or-later
/* Marks pages in QEMU's log of written pages. See dirty.h. */
#define _GNU_SOURCE /* SEEK_DATA */
#include <errno.h>
#include <unistd.h>

#include "qcu-device/memory/named.h"
#include "qcu-device/moving/dirty.h"

/* A release: who sees the bit sees what was written before. */
static void set_bits(uint8_t *byte, unsigned int bits)
{
	__atomic_fetch_or(byte, (uint8_t)bits, __ATOMIC_RELEASE);
}

bool dirty_mark(uint8_t *log, uint64_t bytes, uint64_t gpa, uint64_t len)
{
	uint64_t page = gpa / DIRTY_PAGE, last;

	if (!len)
		return true;
	if (len - 1 > UINT64_MAX - gpa)
		return false;
	for (last = (gpa + len - 1) / DIRTY_PAGE; page <= last; page++) {
		if (page / 8 >= bytes)
			return false;
		if (page % 8 || last - page < 7) {
			set_bits(&log[page / 8], 1u << page % 8);
			continue;
		}
		set_bits(&log[page / 8], 0xff);
		page += 7;
	}
	return true;
}

bool dirty_mark_from(uint8_t *log, uint64_t bytes, const struct guestmem *mem, uint64_t from)
{
	bool all = true;
	unsigned int i;

	for (i = 0; i < mem->count; i++) {
		const struct guestmem_region *r = &mem->regions[i];
		uint64_t skip = r->gpa < from ? from - r->gpa : 0;

		if (skip < r->size)
			all &= dirty_mark(log, bytes, r->gpa + skip, r->size - skip);
	}
	return all;
}

/* Adds the bits from byte `at` of a session's on, up to its byte `end`. */
static bool add_named(uint8_t *log, uint64_t bytes, int named, off_t session, off_t at, off_t end)
{
	static uint8_t piece[1 << 16];
	ssize_t n, i;

	for (; at < end && (uint64_t)at < bytes; at += n) {
		n = pread(named, piece, sizeof(piece), session + at);
		if (n <= 0)
			return false;
		for (i = 0; i < n && at + i < end && (uint64_t)(at + i) < bytes; i++)
			if (piece[i])
				set_bits(&log[at + i], piece[i]);
	}
	return true;
}

bool dirty_mark_named(uint8_t *log, uint64_t bytes, int named, unsigned int sessions)
{
	const off_t each = (off_t)NAMED_BYTES;
	off_t at = 0, end, session;

	if (named < 0)
		return false;
	while ((at = lseek(named, at, SEEK_DATA)) >= 0 && at < each * sessions) {
		session = at / each * each;
		end = lseek(named, at, SEEK_HOLE);
		if (end < 0)
			return false;
		if (end > session + each)
			end = session + each;
		if (!add_named(log, bytes, named, session, at - session, end - session))
			return false;
		at = end;
	}
	return at >= 0 || errno == ENXIO;
}
