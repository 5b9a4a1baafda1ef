/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The state of one function while its registers get their offsets. ptx_regs.c reads it, too.
 */
#ifndef QCU_SOFT_PTX_REGALLOC_H
#define QCU_SOFT_PTX_REGALLOC_H

#include "qcu-device/soft/ptx/base/ptx_int.h"

struct ptx_basic_block {
	uint32_t from, to; /* instructions, relative to the function */
};

struct ptx_regalloc {
	struct ptx_module *m;
	struct ptx_func *f;
	const uint8_t *width; /* bytes of each register; 1: a predicate */
	uint32_t n, len;
	struct ptx_basic_block *blk;
	uint32_t nblk, *blk_of; /* blk_of: the block that starts at an instruction, or UINT32_MAX */
	/*
	 * Sets of registers, one of each for every block: alive before it, alive after it, and
	 * surely written by it.
	 */
	size_t words;
	uint64_t *in, *out, *kill;
	uint32_t *start, *end, *offset;
};

/* def: the register is surely written, so its old value is gone. */
typedef void (*ptx_visit_fn)(struct ptx_regalloc *s, uint32_t *ref, bool def, uint32_t at,
			     void *arg);

/*
 * ptx_visit.c: calls fn for every register that an instruction names: first those that it reads,
 * then those that it writes.
 */
void ptx_visit_regs(struct ptx_regalloc *s, uint32_t at, ptx_visit_fn fn, void *arg);

/* A block of any size can have this many registers per thread. */
#define PTX_ENOUGH_REGS 64u

/* ptx_regs.c: estimates how many registers a GPU would give the function. False: no memory. */
bool ptx_count_regs(struct ptx_regalloc *s);

/* ptx_regalloc.c: gives virtual registers their offsets in the frame */
bool ptx_assign_offsets(struct ptx_module *m, struct ptx_func *f, const uint8_t *width,
			uint32_t nregs);

#endif
