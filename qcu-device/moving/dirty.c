// SPDX-License-Identifier: GPL-2.0-or-later
/* Marks pages in QEMU's log of written pages. See dirty.h. */
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

bool dirty_mark_all(uint8_t *log, uint64_t bytes, const struct guestmem *mem)
{
	bool all = true;
	unsigned int i;

	for (i = 0; i < mem->count; i++)
		all &= dirty_mark(log, bytes, mem->regions[i].gpa, mem->regions[i].size);
	return all;
}
