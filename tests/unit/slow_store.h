/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A store for tests of a backend (struct be_store), made of one with memory. Some of its blocks are
 * reached through a window that all of them share, as those in a file are. The window has other
 * bytes when its time is over, and keeping and reading may fail.
 */
#ifndef QCU_TEST_SLOW_STORE_H
#define QCU_TEST_SLOW_STORE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "qcu-device/backend/backend.h"

static struct slow_store {
	struct be_store memory; /* its blocks are their memory */
	/* Of blocks with more than `whole` bytes 8 bytes of each `step` matter; 0: all do. */
	uint64_t step, whole;
	unsigned int each;     /* one in so many blocks is slow; 0: none is */
	bool no_keep, no_read; /* these fail now */
	/* inside */
	uint64_t taken;
	struct slow_block {
		void *p;
		uint64_t bytes;
		bool slow;
	} block[4096];
	void *copied_to; /* a block to which the window belongs, and that is not kept yet */
	char *window;
	uint64_t used; /* bytes of the window */
} slow;

static struct slow_block *slow_find(const void *p)
{
	unsigned int i;

	for (i = 0; slow.block[i].p != p; i++)
		assert_true(i + 1 < sizeof(slow.block) / sizeof(slow.block[0]));
	return &slow.block[i];
}

static void slow_copy(void *to, const void *from, uint64_t bytes)
{
	uint64_t at, step = slow.step && bytes > slow.whole ? slow.step : bytes;

	for (at = 0; at < bytes; at += step)
		memcpy((char *)to + at, (const char *)from + at, step == bytes ? bytes : 8);
}

/* What of the window was used has other bytes from now on. */
static void slow_spoil(void)
{
	uint64_t at, step = slow.step ? slow.step : slow.used;

	for (at = 0; at < slow.used; at += step)
		memset(slow.window + at, 0x77, slow.step ? 8 : slow.used);
	slow.used = 0;
}

static void *slow_take(void *ctx, uint64_t bytes)
{
	void *p = slow.memory.take(ctx, bytes);

	if (p)
		*slow_find(NULL) = (struct slow_block){
			.p = p, .bytes = bytes, .slow = slow.each && !(slow.taken++ % slow.each)};
	return p;
}

static void *slow_at(void *ctx, void *block, bool read, bool *soon)
{
	const struct slow_block *b = slow_find(block);

	(void)ctx;
	assert_null(slow.copied_to);
	*soon = b->slow;
	if (!b->slow)
		return b->p;
	if (!slow.window)
		slow.window = malloc(BE_PIECE);
	slow_spoil();
	slow.used = b->bytes;
	if (!read)
		slow.copied_to = b->p;
	else if (slow.no_read)
		return NULL;
	else
		slow_copy(slow.window, b->p, b->bytes);
	return slow.window;
}

static bool slow_keep(void *ctx, void *block)
{
	(void)ctx;
	assert_ptr_equal(slow.copied_to, block);
	slow.copied_to = NULL;
	if (!slow.no_keep)
		slow_copy(block, slow.window, slow_find(block)->bytes);
	slow_spoil();
	return !slow.no_keep;
}

static void slow_give(void *ctx, void *block, uint64_t bytes)
{
	if (slow.copied_to == block)
		slow.copied_to = NULL;
	*slow_find(block) = (struct slow_block){.p = NULL};
	slow.memory.give(ctx, block, bytes);
}

static struct be_store slow_store(const struct be_store *memory)
{
	slow.memory = *memory;
	return (struct be_store){.ctx = memory->ctx,
				 .take = slow_take,
				 .at = slow_at,
				 .keep = slow_keep,
				 .give = slow_give};
}

static void slow_end(void)
{
	free(slow.window);
	slow = (struct slow_store){.each = 0};
}

#endif
