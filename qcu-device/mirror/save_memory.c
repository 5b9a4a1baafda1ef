// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The contents of allocations. Of those of which pieces may have gone ahead, sums say what has
 * changed since; only that is copied.
 */
#include <stdlib.h>

#include "qcu-device/mirror/going_impl.h"
#include "qcu-device/mirror/save_memory.h"

_Static_assert(ARCHIVE_PIECE == AHEAD_BYTES, "the same pieces go ahead");

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* It is zero, or has gone ahead as it is, which is noted. */
static bool is_there_already(struct mirror *m, const struct save_memory *out,
			     const struct be_wanted *piece, const struct piece_sum *sum, bool *ok)
{
	struct archive_entry e = {.what = ARCHIVE_AHEAD, .age = sum->sum};

	if (!sum->any)
		return true;
	if (!going_has(m->going, piece->addr, piece->size, sum->sum))
		return false;
	e.cmd.op = QCU_OP_COPY_H2D;
	e.cmd.device = (uint8_t)piece->dev;
	e.cmd.copy_h2d = (struct qcu_copy_h2d){
		.buf = {0, piece->size}, .dst = piece->addr, .flags = QCU_COPY_SYNC};
	*ok = *ok && out->entry(out->arg, &e);
	return true;
}

struct writing {
	struct mirror *m;
	const struct save_memory *out;
};

/* What is to be copied is so in runs of pieces. */
static bool write_changed(void *arg, const struct be_wanted *p, const struct piece_sum *sum)
{
	const struct save_memory *out = ((struct writing *)arg)->out;
	struct mirror *m = ((struct writing *)arg)->m;
	struct be_wanted run = {.addr = p->addr, .dev = p->dev}, piece = run;
	bool ok = true;
	uint64_t at;

	for (at = 0; at < p->size && ok; at += piece.size, sum++) {
		piece.addr = p->addr + at;
		piece.size = least(p->size - at, ARCHIVE_PIECE);
		if (!is_there_already(m, out, &piece, sum, &ok)) {
			run.size += piece.size;
			continue;
		}
		ok = ok && out->memory(out->arg, &run);
		run.addr = piece.addr + piece.size;
		run.size = 0;
	}
	return ok && out->memory(out->arg, &run);
}

/* By address: what has come ahead lies in this order. */
bool save_memory(struct mirror *m, const struct save_memory *out)
{
	struct writing w = {m, out};
	const struct sums *sums;
	struct be_wanted *all;
	size_t count, i;
	bool ok;

	all = going_list(m, 0, &count);
	ok = all;
	for (i = 0; i < count && ok; i++) {
		sums = all[i].size < AHEAD_LEAST ? NULL : going_sums(m, all[i].dev);
		ok = sums ? sums_in_parts(m, sums, &all[i], write_changed, &w)
			  : out->memory(out->arg, &all[i]);
	}
	free(all);
	return ok;
}
