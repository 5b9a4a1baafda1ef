/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What is known of a function's registers while they get their places, and may be asked about it.
 */
#ifndef QCU_SOFT_PTX_SLOTS_H
#define QCU_SOFT_PTX_SLOTS_H

#include "qcu-device/soft/ptx_int.h"

struct ptx_slot_block {
	uint32_t from, to; /* instructions, relative to the function */
};

struct ptx_slots {
	struct ptx_module *m;
	struct ptx_func *f;
	const uint8_t *width; /* of each register in bytes; 1: a predicate */
	uint32_t n, len;
	struct ptx_slot_block *blk;
	uint32_t nblk, *blk_of; /* blk_of: block that starts at an instruction, else UINT32_MAX */
	/* Sets of registers, one for each block: alive before and after it, and surely written. */
	size_t words;
	uint64_t *in, *out, *kill;
	uint32_t *start, *end, *place;
};

/* def: surely written, whatever was there before. */
typedef void (*ptx_visit_fn)(struct ptx_slots *s, uint32_t *ref, bool def, uint32_t at, void *arg);

/* Every register that an instruction names: what it reads, then what it writes. */
void ptx_slots_visit(struct ptx_slots *s, uint32_t at, ptx_visit_fn fn, void *arg);

/* So many registers for each thread are there for a block of any size. */
#define PTX_ENOUGH_REGS 64u

/* ptx_regs.c: how many registers a GPU would give the function. False: no memory. */
bool ptx_count_regs(struct ptx_slots *s);

#endif
