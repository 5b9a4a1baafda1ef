// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Chooses which lanes of a warp run next.
 *
 * Lanes with the same pc and frame form a split. The split in the deepest call runs first; of
 * these, the one with the lowest pc. So lanes that left the common path come back to it before the
 * others go on, and the warp converges where the compiler meant it to. With this order alone, a
 * lane that others spin on would never run. So whenever a split has used up its fuel, the split
 * that has waited longest gets a turn.
 */
#include "qcu-device/soft/ptx/exec/ptx_exec.h"

unsigned int ptx_split_add(struct ptx_warp *w, uint32_t mask, uint32_t pc, struct ptx_frame *frame)
{
	/* Masks are disjoint and not empty, so 32 places are enough. */
	w->split[w->nsplit] =
		(struct ptx_split){.mask = mask, .pc = pc, .frame = frame, .seq = w->seq};
	return w->nsplit++;
}

void ptx_split_drop(struct ptx_warp *w, unsigned int i)
{
	w->split[i] = w->split[--w->nsplit];
}

static void merge(struct ptx_warp *w)
{
	for (unsigned int i = 0; i + 1 < w->nsplit; i++) {
		struct ptx_split *a = &w->split[i];

		if (a->wait != WAIT_NOT)
			continue;
		for (unsigned int k = i + 1; k < w->nsplit;) {
			struct ptx_split *b = &w->split[k];

			if (b->wait == WAIT_NOT && b->pc == a->pc && b->frame == a->frame) {
				a->mask |= b->mask;
				ptx_split_drop(w, k);
			} else {
				k++;
			}
		}
	}
}

static bool is_split_preferred(const struct ptx_split *a, const struct ptx_split *b)
{
	if (a->frame->depth != b->frame->depth)
		return a->frame->depth > b->frame->depth;
	return a->pc < b->pc;
}

/*
 * Returns the split to run, or -1 if all of them wait. *stop is the pc at which the split must stop
 * running, because another split is there in the same frame. force: picks the split that has waited
 * longest, with no such stop.
 */
int ptx_pick(struct ptx_warp *w, bool force, uint32_t *stop)
{
	int best = -1;

	*stop = UINT32_MAX;
	if (w->nsplit == 1) {
		if (w->split[0].wait != WAIT_NOT)
			return -1;
		w->split[0].seq = ++w->seq;
		return 0;
	}
	merge(w);
	for (unsigned int i = 0; i < w->nsplit; i++) {
		const struct ptx_split *s = &w->split[i];

		if (s->wait != WAIT_NOT)
			continue;
		if (best < 0 ||
		    (force ? s->seq < w->split[best].seq : is_split_preferred(s, &w->split[best])))
			best = (int)i;
	}
	if (best < 0)
		return -1;
	w->split[best].seq = ++w->seq;
	if (force)
		return best;
	for (unsigned int i = 0; i < w->nsplit; i++) {
		const struct ptx_split *s = &w->split[i];

		if ((int)i != best && s->wait == WAIT_NOT && s->frame == w->split[best].frame &&
		    s->pc < *stop)
			*stop = s->pc;
	}
	return best;
}
