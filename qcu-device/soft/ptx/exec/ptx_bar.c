// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Barriers of a block. A barrier counts threads, not warps, so the lanes of a warp may arrive at
 * different times. Threads that have ended are not waited for.
 */
#include "qcu-device/soft/ptx/exec/ptx_exec.h"
#include "qcu-device/soft/ptx/ops/ptx_ops.h"

static void release_waiters(struct ptx_block *b, unsigned int id)
{
	struct ptx_barrier *bar = &b->bar[id];
	const struct ptx_insn *code = b->grid->code;

	for (unsigned int k = 0; k < b->nwarps && bar->waiting; k++) {
		struct ptx_warp *w = &b->warps[k];

		for (unsigned int i = 0; i < w->nsplit; i++) {
			struct ptx_split *s = &w->split[i];
			const struct ptx_insn *in = code + s->pc;

			if (s->wait != WAIT_BARRIER || s->bar != id)
				continue;
			s->wait = WAIT_NOT;
			s->pc++;
			if (in->sub == BAR_POPC) {
				uint32_t *d = (uint32_t *)(s->frame->mem + in->d);

				for (uint32_t r = s->mask; r; r &= r - 1)
					d[ptx_lane(r)] = bar->popc;
			} else if (in->sub == BAR_AND || in->sub == BAR_OR) {
				uint32_t *p = (uint32_t *)(s->frame->mem + in->d);
				bool v = in->sub == BAR_AND ? bar->popc == bar->voted
							    : bar->popc != 0;

				*p = (*p & ~s->mask) | (v ? s->mask : 0);
			}
		}
	}
	*bar = (struct ptx_barrier){0};
	b->sync++;
	for (unsigned int k = 0; k < b->nwarps && id == PTX_BARRIERS; k++)
		b->warps[k].cluster = 0;
}

static bool is_bar_complete(const struct ptx_block *b, const struct ptx_barrier *bar)
{
	if (!bar->arrived)
		return false;
	/*
	 * A barrier with a count is also complete when all live threads have arrived, even if they
	 * are fewer than the count: the missing threads have ended.
	 */
	return bar->arrived >= (bar->need && bar->need < b->live ? bar->need : b->live);
}

/*
 * A cluster is one block here. Its barrier has two steps, arrive and wait. A thread that has
 * arrived waits at the second step until all others have arrived.
 */
static void cluster(struct ptx_warp *w, const struct ptx_insn *in, struct ptx_split *s)
{
	struct ptx_block *b = w->blk;
	struct ptx_barrier *bar = &b->bar[PTX_BARRIERS];
	uint32_t m = s->mask, n = (uint32_t)__builtin_popcount(m);

	if (in->sub == BAR_CLUSTER_WAIT) {
		if (w->cluster & m) {
			s->wait = WAIT_BARRIER;
			s->bar = PTX_BARRIERS;
			bar->waiting += n;
		} else {
			s->pc++;
		}
		return;
	}
	if (w->cluster & m) {
		ptx_fault(w, ptx_lane(w->cluster & m), PTX_TRAP,
			  "barrier.cluster.arrive twice without a wait");
		return;
	}
	s->pc++;
	w->cluster |= m;
	bar->arrived += n;
	if (is_bar_complete(b, bar))
		release_waiters(b, PTX_BARRIERS);
}

void ptx_bar_arrive(struct ptx_warp *w, const struct ptx_insn *in, unsigned int cur)
{
	struct ptx_block *b = w->blk;
	struct ptx_split *s = &w->split[cur];
	uint32_t m = s->mask, n = (uint32_t)__builtin_popcount(m);
	const uint32_t *idp = ptx_at(w, in->a), *count = ptx_at(w, in->b);
	uint32_t id = idp[ptx_lane(m)], need = in->b ? count[ptx_lane(m)] : 0;
	struct ptx_barrier *bar;

	if (in->sub >= BAR_CLUSTER_ARRIVE) {
		cluster(w, in, s);
		return;
	}
	if (id >= PTX_BARRIERS || (in->b && (!need || need % PTX_LANES))) {
		ptx_fault(w, ptx_lane(m), PTX_TRAP, "barrier %u for %u threads", id, need);
		return;
	}
	bar = &b->bar[id];
	bar->arrived += n;
	bar->need = need;
	if (in->sub >= BAR_POPC) {
		bar->popc += (uint32_t)__builtin_popcount(ptx_pred_c(w, in) & m);
		bar->voted += n;
	}
	if (in->sub == BAR_ARRIVE) {
		s->pc++;
	} else {
		s->wait = WAIT_BARRIER;
		s->bar = (uint8_t)id;
		bar->waiting += n;
	}
	if (is_bar_complete(b, bar))
		release_waiters(b, id);
}

/* Called after threads have ended: a barrier may have waited only for these threads. */
void ptx_bar_exit(struct ptx_block *b)
{
	for (unsigned int i = 0; i <= PTX_BARRIERS; i++)
		if (b->bar[i].arrived && is_bar_complete(b, &b->bar[i]))
			release_waiters(b, i);
}
