// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Gives virtual registers their offsets in the frame.
 *
 * nvcc writes PTX with a new register for nearly every result. With 128 bytes for each register, a
 * kernel's frame would not fit in the cache. So registers that are never alive at the same time
 * share an offset. Liveness is computed for one lane's path through the code. This is enough: a
 * lane reads and writes only its own element, and only registers of one width share an offset.
 */
#include <stdlib.h>
#include <string.h>

#include "qcu-device/soft/ptx/build/ptx_regalloc.h"

/* If the liveness sets need more bits than this, every register gets an offset of its own. */
#define MAX_LIVE_BITS (1ull << 29)

#define NONE UINT32_MAX

static bool ends_block(const struct ptx_insn *in)
{
	return in->ctl == CTL_BRA || in->ctl == CTL_BRX || in->ctl == CTL_RET ||
	       in->ctl == CTL_EXIT;
}

static bool make_blocks(struct ptx_regalloc *s)
{
	const struct ptx_insn *code = s->m->code + s->f->pc;
	uint8_t *lead = calloc(s->len + 1, 1);
	uint32_t b = 0;

	if (!lead)
		return false;
	lead[0] = 1;
	for (uint32_t i = 0; i < s->len; i++) {
		if (ends_block(&code[i]))
			lead[i + 1] = 1;
		if (code[i].ctl == CTL_BRA)
			lead[code[i].imm - s->f->pc] = 1;
		if (code[i].ctl == CTL_BRX)
			for (int64_t k = 0; k < code[i].imm; k++)
				lead[(s->m->xops[code[i].x + k] >> 2) - s->f->pc] = 1;
	}
	for (uint32_t i = 0; i < s->len; i++)
		s->nblk += lead[i];
	s->blk = calloc(s->nblk, sizeof(*s->blk));
	s->blk_of = malloc(s->len * sizeof(*s->blk_of));
	if (!s->blk || !s->blk_of) {
		free(lead);
		return false;
	}
	for (uint32_t i = 0; i < s->len; i++) {
		s->blk_of[i] = NONE;
		if (lead[i]) {
			s->blk[b].from = i;
			s->blk_of[i] = b++;
		}
		s->blk[b - 1].to = i + 1;
	}
	free(lead);
	return true;
}

/* in: registers that the block reads before it writes them; kill: those that it surely writes. */
static void gather_block_uses(struct ptx_regalloc *s, uint32_t *ref, bool def, uint32_t at,
			      void *arg)
{
	uint32_t b = *(uint32_t *)arg, v = *ref >> 2;
	uint64_t *in = s->in + b * s->words, *kill = s->kill + b * s->words;
	uint64_t bit = 1ull << (v & 63);

	(void)at;
	if (def)
		kill[v >> 6] |= bit;
	else if (!(kill[v >> 6] & bit))
		in[v >> 6] |= bit;
}

static bool flow_into(struct ptx_regalloc *s, uint32_t b, uint32_t target)
{
	uint64_t *out = s->out + b * s->words, *in = s->in + s->blk_of[target] * s->words;
	bool changed = false;

	for (size_t k = 0; k < s->words; k++)
		if (in[k] & ~out[k]) {
			out[k] |= in[k];
			changed = true;
		}
	return changed;
}

static void flow(struct ptx_regalloc *s)
{
	const struct ptx_insn *code = s->m->code + s->f->pc;
	bool changed;

	for (uint32_t b = 0; b < s->nblk; b++)
		for (uint32_t i = s->blk[b].from; i < s->blk[b].to; i++)
			ptx_visit_regs(s, i, gather_block_uses, &b);
	do {
		changed = false;
		for (uint32_t b = s->nblk; b-- > 0;) {
			const struct ptx_insn *last = &code[s->blk[b].to - 1];
			uint64_t *in = s->in + b * s->words, *out = s->out + b * s->words;
			uint64_t *kill = s->kill + b * s->words;
			bool more = false;

			if (last->ctl == CTL_BRA)
				more |= flow_into(s, b, (uint32_t)last->imm - s->f->pc);
			if (last->ctl == CTL_BRX)
				for (int64_t k = 0; k < last->imm; k++)
					more |= flow_into(
						s, b, (s->m->xops[last->x + k] >> 2) - s->f->pc);
			if ((!ends_block(last) || last->pred || last->ctl == CTL_BRX) &&
			    s->blk[b].to < s->len)
				more |= flow_into(s, b, s->blk[b].to);
			if (!more)
				continue;
			for (size_t k = 0; k < s->words; k++)
				in[k] |= out[k] & ~kill[k];
			changed = true;
		}
	} while (changed);
}

static void extend_live_range(struct ptx_regalloc *s, uint32_t v, uint32_t at)
{
	if (at < s->start[v])
		s->start[v] = at;
	if (at > s->end[v])
		s->end[v] = at;
}

static void mention(struct ptx_regalloc *s, uint32_t *ref, bool def, uint32_t at, void *arg)
{
	(void)def;
	(void)arg;
	extend_live_range(s, *ref >> 2, at);
}

static void extend_set(struct ptx_regalloc *s, const uint64_t *set, uint32_t at)
{
	for (size_t k = 0; k < s->words; k++)
		for (uint64_t w = set[k]; w; w &= w - 1)
			extend_live_range(s, (uint32_t)(k * 64) + (uint32_t)__builtin_ctzll(w), at);
}

static void intervals(struct ptx_regalloc *s)
{
	for (uint32_t i = 0; i < s->len; i++)
		ptx_visit_regs(s, i, mention, NULL);
	for (unsigned int i = 0; i < s->f->nparams && !s->f->entry; i++)
		if (!s->f->params[i].in_area)
			extend_live_range(s, s->f->params[i].ref >> 2, 0);
	for (unsigned int i = 0; i < s->f->nrets; i++)
		if (!s->f->rets[i].in_area)
			extend_live_range(s, s->f->rets[i].ref >> 2, s->len - 1);
	for (uint32_t b = 0; b < s->nblk; b++) {
		extend_set(s, s->in + b * s->words, s->blk[b].from);
		extend_set(s, s->out + b * s->words, s->blk[b].to - 1);
	}
}

struct pool {
	uint32_t *free;
	uint32_t nfree, cap;
};

static unsigned int bytes_in_frame(unsigned int width)
{
	return width == 1 ? 4 : width * PTX_LANES;
}

/*
 * Linear scan: walks the code, gives an offset to each register that starts to live, and takes back
 * the offsets of those that ended.
 */
static bool scan(struct ptx_regalloc *s)
{
	uint32_t *first = malloc((s->len + 1) * sizeof(*first)), *next;
	uint32_t *last = malloc((s->len + 1) * sizeof(*last)), *next_end;
	struct pool pool[17] = {0};
	uint32_t top = s->f->frame_bytes, preds = 0, pred_line = 0;
	bool ok = false;

	next = malloc(s->n * sizeof(*next));
	next_end = malloc(s->n * sizeof(*next_end));
	if (!first || !last || !next || !next_end)
		goto out;
	memset(first, 0xff, (s->len + 1) * sizeof(*first));
	memset(last, 0xff, (s->len + 1) * sizeof(*last));
	for (uint32_t v = s->n; v-- > 1;) {
		if (s->start[v] == NONE)
			continue;
		next[v] = first[s->start[v]];
		first[s->start[v]] = v;
		next_end[v] = last[s->end[v]];
		last[s->end[v]] = v;
	}
	for (uint32_t i = 0; i < s->len; i++) {
		for (uint32_t v = i ? last[i - 1] : NONE; v != NONE; v = next_end[v]) {
			struct pool *p = &pool[s->width[v]];

			if (!ptx_grow((void **)&p->free, &p->cap, p->nfree + 1, sizeof(*p->free)))
				goto out;
			p->free[p->nfree++] = s->offset[v];
		}
		for (uint32_t v = first[i]; v != NONE; v = next[v]) {
			unsigned int w = s->width[v];
			struct pool *p = &pool[w];

			if (p->nfree) {
				s->offset[v] = p->free[--p->nfree];
			} else if (w == 1) {
				/* sixteen predicates per cache line */
				if (preds++ % 16 == 0) {
					pred_line = top;
					top += 64;
				}
				s->offset[v] = pred_line + (preds - 1) % 16 * 4;
			} else {
				s->offset[v] = top;
				top += bytes_in_frame(w);
			}
			if (top > 1u << 29)
				goto out;
		}
	}
	s->f->frame_bytes = top;
	ok = true;
out:
	for (int i = 0; i < 17; i++)
		free(pool[i].free);
	free(first);
	free(last);
	free(next);
	free(next_end);
	return ok;
}

static void patch(struct ptx_regalloc *s, uint32_t *ref, bool def, uint32_t at, void *arg)
{
	(void)def;
	(void)at;
	(void)arg;
	*ref = s->offset[*ref >> 2] | REF_REG;
}

static void patch_formals(struct ptx_regalloc *s, struct ptx_arg *a, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		if (!a[i].in_area)
			a[i].ref = s->offset[a[i].ref >> 2] | REF_REG;
}

bool ptx_assign_offsets(struct ptx_module *m, struct ptx_func *f, const uint8_t *width,
			uint32_t nregs)
{
	struct ptx_regalloc s = {.m = m, .f = f, .width = width, .n = nregs, .len = f->end - f->pc};
	bool ok = false;

	s.words = (nregs + 63) / 64;
	s.start = malloc(nregs * sizeof(*s.start));
	s.end = calloc(nregs, sizeof(*s.end));
	s.offset = calloc(nregs, sizeof(*s.offset));
	if (!s.start || !s.end || !s.offset || !make_blocks(&s))
		goto out;
	memset(s.start, 0xff, nregs * sizeof(*s.start));
	if ((uint64_t)s.nblk * s.words * 64 * 3 <= MAX_LIVE_BITS) {
		s.in = calloc((size_t)s.nblk * s.words, 8);
		s.out = calloc((size_t)s.nblk * s.words, 8);
		s.kill = calloc((size_t)s.nblk * s.words, 8);
		if (!s.in || !s.out || !s.kill)
			goto out;
		flow(&s);
		intervals(&s);
		if (!ptx_count_regs(&s))
			goto out;
	} else {
		f->regs = PTX_ENOUGH_REGS;
		for (uint32_t v = 1; v < nregs; v++) {
			s.start[v] = 0;
			s.end[v] = s.len - 1;
		}
	}
	if (!scan(&s))
		goto out;
	for (uint32_t i = 0; i < s.len; i++)
		ptx_visit_regs(&s, i, patch, NULL);
	if (!f->entry)
		patch_formals(&s, f->params, f->nparams);
	patch_formals(&s, f->rets, f->nrets);
	ok = true;
out:
	free(s.start);
	free(s.end);
	free(s.offset);
	free(s.blk);
	free(s.blk_of);
	free(s.in);
	free(s.out);
	free(s.kill);
	return ok;
}
