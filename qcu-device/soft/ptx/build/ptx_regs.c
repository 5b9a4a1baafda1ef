// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Estimates how many registers a real GPU would need for a function. This is used for attributes,
 * for occupancy, and to refuse a launch with more threads than there are registers for.
 *
 * A launch that a GPU would run must not be refused, so the estimate must not be above the number
 * that ptxas needs. Values that are alive from one block of code to another must be kept somewhere.
 * Within a block, ptxas orders the instructions as it likes: of 201 values alive at once in nvcc's
 * order, it has kept 128. With 64 registers no block of threads is too large, and up to there
 * nvcc's order is as good a guess as any.
 */
#include <stdlib.h>
#include <string.h>

#include "qcu-device/soft/ptx/build/ptx_build.h"
#include "qcu-device/soft/ptx/build/ptx_regalloc.h"

#define MOST	   255u
#define MAX_PASSES 8
#define OVERHEAD   4u /* the stack pointer, and registers that instructions need for themselves */

struct need {
	uint64_t *live, *held; /* held: registers whose value exists nowhere else */
	bool changed;
	uint32_t words, most, edge;
};

static bool has(const uint64_t *set, uint32_t v)
{
	return set[v >> 6] >> (v & 63) & 1;
}

static bool moves(const struct ptx_regalloc *s, const struct ptx_insn *in)
{
	for (int k = 0; k < K_COUNT; k++)
		if (k != K_PRED && in->fn == s->m->ops->op[V_MOV][k])
			return true;
	return false;
}

/* Loads from memory that an instruction can also name directly as its operand. */
static bool loads_constant(const struct ptx_insn *in)
{
	return (in->fn == ptx_h_ld || in->fn == ptx_h_ld_vec || in->fn == ptx_h_ld128) &&
	       (in->space == SPACE_PARAM || in->space == SPACE_CONST);
}

/* True for parameters, constants and special registers: they can be read again at each use. */
static bool found_elsewhere(const struct ptx_regalloc *s, const struct ptx_insn *in,
			    const uint64_t *held)
{
	if (in->fn == ptx_h_ld_kparam)
		return true;
	return (moves(s, in) || loads_constant(in)) &&
	       ((in->a & REF_AREA) != REF_REG || !has(held, in->a >> 2));
}

static void mark_held_reg(struct ptx_regalloc *s, uint32_t *ref, bool def, uint32_t at, void *arg)
{
	struct need *n = arg;
	uint32_t v = *ref >> 2;

	(void)at;
	if (def && s->width[v] > 1 && !has(n->held, v)) {
		n->held[v >> 6] |= 1ull << (v & 63);
		n->changed = true;
	}
}

/*
 * Each pass follows copies in the order of the code. Chains of copies against that order are rare;
 * registers that MAX_PASSES passes do not reach count as free.
 */
static void find_held(struct ptx_regalloc *s, struct need *n)
{
	const struct ptx_insn *code = s->m->code + s->f->pc;
	int passes = 0;

	for (unsigned int i = 0; i < s->f->nparams && !s->f->entry; i++)
		if (!s->f->params[i].in_area)
			mark_held_reg(s, &s->f->params[i].ref, true, 0, n);
	do {
		n->changed = false;
		for (uint32_t i = 0; i < s->len; i++)
			if (!found_elsewhere(s, &code[i], n->held))
				ptx_visit_regs(s, i, mark_held_reg, n);
	} while (n->changed && ++passes < MAX_PASSES);
}

static uint32_t words_of(const struct ptx_regalloc *s, uint32_t v)
{
	return (s->width[v] + 3u) / 4;
}

static void written(struct ptx_regalloc *s, uint32_t *ref, bool def, uint32_t at, void *arg)
{
	struct need *n = arg;
	uint32_t v = *ref >> 2;

	(void)at;
	if (def && has(n->live, v)) {
		n->live[v >> 6] ^= 1ull << (v & 63);
		n->words -= words_of(s, v);
	}
}

static void read_by(struct ptx_regalloc *s, uint32_t *ref, bool def, uint32_t at, void *arg)
{
	struct need *n = arg;
	uint32_t v = *ref >> 2;

	(void)at;
	if (!def && has(n->held, v) && !has(n->live, v)) {
		n->live[v >> 6] |= 1ull << (v & 63);
		n->words += words_of(s, v);
	}
}

static void count_block(struct ptx_regalloc *s, uint32_t b, struct need *n)
{
	const uint64_t *out = s->out + b * s->words;

	n->words = 0;
	for (size_t k = 0; k < s->words; k++) {
		n->live[k] = out[k] & n->held[k];
		for (uint64_t w = n->live[k]; w; w &= w - 1)
			n->words += words_of(s, (uint32_t)(k * 64) + (uint32_t)__builtin_ctzll(w));
	}
	n->edge = n->words > n->edge ? n->words : n->edge;
	for (uint32_t i = s->blk[b].to; i-- > s->blk[b].from;) {
		ptx_visit_regs(s, i, written, n);
		ptx_visit_regs(s, i, read_by, n);
		n->most = n->words > n->most ? n->words : n->most;
	}
	n->edge = n->words > n->edge ? n->words : n->edge;
}

static uint32_t guess(const struct need *n)
{
	uint32_t regs = n->most + OVERHEAD;

	if (regs > PTX_ENOUGH_REGS)
		regs = n->most * 5 / 8 > PTX_ENOUGH_REGS ? n->most * 5 / 8 : PTX_ENOUGH_REGS;
	if (regs < n->edge)
		regs = n->edge;
	return regs > MOST ? MOST : regs;
}

bool ptx_count_regs(struct ptx_regalloc *s)
{
	struct need n = {.live = calloc(s->words, 8), .held = calloc(s->words, 8)};
	bool ok = n.live && n.held;

	if (ok) {
		find_held(s, &n);
		for (uint32_t b = 0; b < s->nblk; b++)
			count_block(s, b, &n);
		s->f->regs = guess(&n);
	}
	free(n.live);
	free(n.held);
	return ok;
}
