// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Instructions that lanes of a warp do together: shfl, vote, match, redux, bar.warp.sync.
 *
 * Each of them names its members by a mask. Usually all members are in the running split. If not,
 * the split waits until all members that have not ended have reached an instruction of the same
 * kind with the same mask, anywhere in the code. Then the instruction is done for all of them.
 */
#include <string.h>

#include "qcu-device/soft/ptx/exec/ptx_exec.h"
#include "qcu-device/soft/ptx/ops/ptx_fp.h"

/* The operands of all lanes side by side, from all splits that take part, and the results. */
struct gather {
	uint32_t m;
	uint64_t a[PTX_LANES];
	uint32_t b[PTX_LANES], c[PTX_LANES];
	uint32_t pred, out_pred;
	uint32_t out[PTX_LANES];
};

static void *at(struct ptx_warp *w, const struct ptx_frame *f, uint32_t ref)
{
	if ((ref & REF_AREA) == REF_REG)
		return (uint8_t *)f->mem + ref;
	return ptx_at(w, ref);
}

static void collect_lane_values(struct ptx_warp *w, const struct ptx_insn *in,
				const struct ptx_frame *f, uint32_t m, struct gather *g)
{
	const uint32_t *b = at(w, f, in->b), *c = at(w, f, in->c);

	g->m |= m;
	if (in->type == T_PRED) {
		uint32_t p = *c;

		g->pred |= (in->flags & IF_NEGC ? ~p : p) & m;
	} else if (in->type == T_B64) {
		const uint64_t *a = at(w, f, in->a);

		for (uint32_t r = m; r; r &= r - 1)
			g->a[ptx_lane(r)] = a[ptx_lane(r)];
	} else if (in->type == T_B32) {
		const uint32_t *a = at(w, f, in->a);
		bool shfl = in->sub <= LANES_SHFL_IDX;

		for (uint32_t r = m; r; r &= r - 1) {
			unsigned int i = ptx_lane(r);

			g->a[i] = a[i];
			if (shfl) {
				g->b[i] = b[i];
				g->c[i] = c[i];
			}
		}
	}
}

static void spread(struct ptx_warp *w, const struct ptx_insn *in, const struct ptx_frame *f,
		   uint32_t m, const struct gather *g)
{
	if (in->d) {
		uint32_t *d = at(w, f, in->d);

		for (uint32_t r = m; r; r &= r - 1)
			d[ptx_lane(r)] = g->out[ptx_lane(r)];
	}
	if (in->d2) {
		uint32_t *p = at(w, f, in->d2);

		*p = (*p & ~m) | (g->out_pred & m);
	}
}

static void shfl(struct gather *g, unsigned int mode)
{
	for (uint32_t r = g->m; r; r &= r - 1) {
		unsigned int i = ptx_lane(r);
		uint32_t b = g->b[i] & 31, clamp = g->c[i] & 31, seg = g->c[i] >> 8 & 31;
		int max = (int)((i & seg) | (clamp & ~seg)), min = (int)(i & seg), j;
		bool ok;

		switch (mode) {
		case LANES_SHFL_UP:
			j = (int)i - (int)b;
			ok = j >= max;
			break;
		case LANES_SHFL_DOWN:
			j = (int)(i + b);
			ok = j <= max;
			break;
		case LANES_SHFL_BFLY:
			j = (int)(i ^ b);
			ok = j <= max;
			break;
		default:
			j = min | (int)(b & ~seg);
			ok = j <= max;
		}
		/* The value of a lane that takes no part is undefined: use the lane's own. */
		if (!ok || !(g->m >> j & 1))
			j = (int)i;
		g->out[i] = (uint32_t)g->a[j];
		g->out_pred |= (uint32_t)ok << i;
	}
}

static void all_lanes(struct gather *g, uint32_t v)
{
	for (unsigned int i = 0; i < PTX_LANES; i++)
		g->out[i] = v;
}

static void match_any(struct gather *g)
{
	uint32_t left = g->m;

	while (left) {
		uint64_t v = g->a[ptx_lane(left)];
		uint32_t same = 0;

		for (uint32_t r = left; r; r &= r - 1)
			if (g->a[ptx_lane(r)] == v)
				same |= 1u << ptx_lane(r);
		for (uint32_t r = same; r; r &= r - 1)
			g->out[ptx_lane(r)] = same;
		left &= ~same;
	}
}

/* redux of floats. NaN is ignored if there is a number; with .NaN, any NaN makes the result NaN. */
static uint32_t reduce_float(const struct gather *g, const struct ptx_insn *in)
{
	uint32_t v = 0;
	bool first = true;

	for (uint32_t r = g->m; r; r &= r - 1) {
		uint32_t u = (uint32_t)g->a[ptx_lane(r)];
		float x, y;

		u = in->flags & IF_RELU ? u & 0x7fffffffu : u;
		x = f_from(u);
		y = f_from(v);
		if (first || (y != y && !(in->flags & IF_NAN)))
			v = u;
		else if (x != x)
			v = in->flags & IF_NAN ? u : v;
		else if (y != y)
			continue;
		else if (x == y)
			v = in->sub == LANES_REDUX_MIN ? v | u : v & u;
		else if ((x < y) == (in->sub == LANES_REDUX_MIN))
			v = u;
		first = false;
	}
	return f_bits(f_canon(f_from(v)));
}

static uint32_t reduce_integers(const struct gather *g, unsigned int op, bool sign)
{
	uint32_t v = (uint32_t)g->a[ptx_lane(g->m)];

	for (uint32_t r = g->m & (g->m - 1); r; r &= r - 1) {
		uint32_t x = (uint32_t)g->a[ptx_lane(r)];
		bool less = sign ? (int32_t)x < (int32_t)v : x < v;

		switch (op) {
		case LANES_REDUX_ADD:
			v += x;
			break;
		case LANES_REDUX_MIN:
			v = less ? x : v;
			break;
		case LANES_REDUX_MAX:
			v = less ? v : x;
			break;
		case LANES_REDUX_AND:
			v &= x;
			break;
		case LANES_REDUX_OR:
			v |= x;
			break;
		default:
			v ^= x;
		}
	}
	return v;
}

static void compute(struct ptx_warp *w, struct gather *g, const struct ptx_insn *in)
{
	w->sync++;
	switch (in->sub) {
	case LANES_SHFL_UP:
	case LANES_SHFL_DOWN:
	case LANES_SHFL_BFLY:
	case LANES_SHFL_IDX:
		shfl(g, in->sub);
		break;
	case LANES_VOTE_ALL:
		g->out_pred = g->pred == g->m ? PTX_FULL : 0;
		break;
	case LANES_VOTE_ANY:
		g->out_pred = g->pred ? PTX_FULL : 0;
		break;
	case LANES_VOTE_UNI:
		g->out_pred = g->pred == g->m || !g->pred ? PTX_FULL : 0;
		break;
	case LANES_VOTE_BALLOT:
		all_lanes(g, g->pred);
		break;
	case LANES_MATCH_ANY:
		match_any(g);
		break;
	case LANES_MATCH_ALL:
		match_any(g);
		g->out_pred = g->out[ptx_lane(g->m)] == g->m ? PTX_FULL : 0;
		all_lanes(g, g->out_pred ? g->m : 0);
		break;
	case LANES_ELECT:
		all_lanes(g, ptx_lane(g->m));
		g->out_pred = g->m & (0u - g->m);
		break;
	case LANES_SYNC:
		break;
	default:
		if (in->type2 == T_F32)
			all_lanes(g, reduce_float(g, in));
		else
			all_lanes(g, reduce_integers(g, in->sub, in->type2 == T_S32));
	}
}

/* The common case: every member is in this split. False: a member is elsewhere. */
bool ptx_warpop(struct ptx_warp *w, const struct ptx_insn *in, uint32_t m)
{
	const uint32_t *mask = ptx_at(w, in->e);
	uint32_t want = in->e ? mask[ptx_lane(m)] : m;
	struct gather g = {0};

	for (uint32_t r = m & (m - 1); r && in->e; r &= r - 1)
		if (mask[ptx_lane(r)] != want)
			return false;
	if ((want & ~w->dead) & ~m)
		return false;
	if (in->sub == LANES_SYNC) {
		w->sync++;
		return true;
	}
	collect_lane_values(w, in, w->frame, m, &g);
	compute(w, &g, in);
	spread(w, in, w->frame, m, &g);
	return true;
}

/* Splits wait for each other if they have the same kind, mask and qualifiers. */
static bool together(struct ptx_warp *w, const struct ptx_split *a, const struct ptx_split *b)
{
	const struct ptx_insn *x = w->blk->grid->code + a->pc, *y = w->blk->grid->code + b->pc;

	return a->wait == WAIT_LANES && b->wait == WAIT_LANES && a->want == b->want &&
	       x->sub == y->sub && x->type == y->type && x->type2 == y->type2;
}

/* Does the instruction for the whole group of split i, if all its members are there. */
static bool try_group(struct ptx_warp *w, unsigned int i)
{
	const struct ptx_insn *code = w->blk->grid->code;
	const struct ptx_split *s = &w->split[i];
	const struct ptx_insn *in = code + s->pc;
	struct gather g = {0};
	uint32_t here = 0;

	for (unsigned int k = 0; k < w->nsplit; k++)
		if (together(w, s, &w->split[k]))
			here |= w->split[k].mask;
	if ((s->want & ~w->dead) & ~here)
		return false;
	for (unsigned int k = 0; k < w->nsplit; k++)
		if (together(w, s, &w->split[k]))
			collect_lane_values(w, code + w->split[k].pc, w->split[k].frame,
					    w->split[k].mask, &g);
	compute(w, &g, in);
	for (unsigned int k = w->nsplit; k-- > 0;) {
		struct ptx_split *o = &w->split[k];

		if (k == i || !together(w, s, o))
			continue;
		spread(w, code + o->pc, o->frame, o->mask, &g);
		o->wait = WAIT_NOT;
		o->pc++;
	}
	spread(w, in, w->split[i].frame, w->split[i].mask, &g);
	w->split[i].wait = WAIT_NOT;
	w->split[i].pc++;
	return true;
}

/* Makes the running split wait. Lanes with different masks wait in different splits. */
void ptx_warpop_wait(struct ptx_warp *w, const struct ptx_insn *in, unsigned int cur)
{
	const uint32_t *mask = ptx_at(w, in->e);
	struct ptx_split *s = &w->split[cur];
	uint32_t left = s->mask, pc = s->pc;
	bool first = true;

	while (left) {
		uint32_t want = mask[ptx_lane(left)], same = 0;
		unsigned int i = cur;

		for (uint32_t r = left; r; r &= r - 1)
			if (mask[ptx_lane(r)] == want)
				same |= 1u << ptx_lane(r);
		left &= ~same;
		if (first)
			w->split[cur].mask = same;
		else
			i = ptx_split_add(w, same, pc, w->frame);
		first = false;
		w->split[i].wait = WAIT_LANES;
		w->split[i].want = want;
		try_group(w, i);
	}
}

/*
 * Tries all waiting groups again when nothing else can run: members may have ended since the others
 * began to wait.
 */
bool ptx_warpop_retry(struct ptx_warp *w)
{
	for (unsigned int i = 0; i < w->nsplit; i++)
		if (w->split[i].wait == WAIT_LANES && try_group(w, i))
			return true;
	return false;
}
