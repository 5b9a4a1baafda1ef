// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The main loop: runs a warp until all its lanes have ended or wait, or until its turn is over.
 */
#include "qcu-device/soft/ptx/exec/ptx_exec.h"
#include "qcu-device/soft/ptx/ops/ptx_ops.h"

/*
 * Fuel counts backward branches and calls. After FUEL_SPLIT of them, lanes that diverged must let
 * the other lanes run. After grid->fuel of them, a warp must let other warps run.
 */
#define FUEL_SPLIT 64u
/* The cost of yielding. It is more than the fuel of any turn, so it ends the turn. */
#define FUEL_YIELD (1u << 20)

struct run {
	struct ptx_warp *w;
	const struct ptx_insn *code;
	uint32_t pc, mask, stop;
	unsigned int cur, fuel, spent;
};

/* Removes lanes m from the running split. False: no lane is left in it. */
static bool remove_lanes(struct run *r, uint32_t m)
{
	r->mask &= ~m;
	return r->mask;
}

static void save(struct run *r)
{
	struct ptx_split *s = &r->w->split[r->cur];

	s->pc = r->pc;
	s->mask = r->mask;
}

static uint32_t end_lanes(struct run *r, uint32_t m)
{
	struct ptx_warp *w = r->w;

	w->dead |= m;
	w->blk->live -= (uint32_t)__builtin_popcount(m);
	ptx_frame_drop(w->blk, w->frame, m);
	ptx_bar_exit(w->blk);
	return m;
}

/*
 * Lanes m jump to `to`, and the others go on after the branch. The lanes with the lower address run
 * first.
 */
static void diverge(struct run *r, uint32_t m, uint32_t to)
{
	uint32_t other = r->mask & ~m, next = r->pc + 1;
	bool low = to < next;

	if (to == next) {
		r->pc = next;
		return;
	}
	ptx_split_add(r->w, low ? other : m, low ? next : to, r->w->frame);
	r->mask = low ? m : other;
	r->pc = low ? to : next;
	if ((low ? next : to) < r->stop)
		r->stop = low ? next : to;
	if (r->fuel > FUEL_SPLIT)
		r->fuel = FUEL_SPLIT;
}

static bool branch(struct run *r, uint32_t m, uint32_t to)
{
	bool back = to <= r->pc;

	if (m == r->mask)
		r->pc = to;
	else
		diverge(r, m, to);
	if (!back)
		return true;
	r->spent++;
	return --r->fuel;
}

/*
 * brx.idx: the lanes with the first lane's target jump now. Lanes with other targets come here
 * again, in a split of their own.
 */
static bool branch_indexed(struct run *r, const struct ptx_insn *in, uint32_t m)
{
	const uint32_t *idx = ptx_at(r->w, in->a);
	const uint32_t *table = r->w->blk->grid->mod->xops + in->x;
	uint32_t k = idx[ptx_lane(m)], same = 0;

	for (uint32_t l = m; l; l &= l - 1)
		if (idx[ptx_lane(l)] == k)
			same |= 1u << ptx_lane(l);
	if (k >= (uint64_t)in->imm) {
		ptx_fault(r->w, ptx_lane(m), PTX_ILLEGAL_ADDRESS,
			  "branch index %u beyond %lld targets", k, (long long)in->imm);
		return false;
	}
	/* Lanes that the guard left out go on. Lanes with another index run this again. */
	if (r->mask & ~m)
		ptx_split_add(r->w, r->mask & ~m, r->pc + 1, r->w->frame);
	if (m & ~same)
		ptx_split_add(r->w, m & ~same, r->pc, r->w->frame);
	if (r->mask != same) {
		r->mask = same;
		r->pc = table[k] >> 2;
		return false;
	}
	return branch(r, same, table[k] >> 2);
}

static struct ptx_func *require_known_func(struct run *r, struct ptx_func *f, uint32_t m)
{
	if (f->defined || f->sys)
		return f;
	ptx_fault(r->w, ptx_lane(m), PTX_UNSUPPORTED, "call of unknown function '%s'", f->name);
	return NULL;
}

static struct ptx_func *callee_of(struct run *r, const struct ptx_insn *in,
				  const struct ptx_call *c, uint32_t *m)
{
	const struct ptx_module *mod = r->w->blk->grid->mod;
	const uint64_t *to = ptx_at(r->w, in->a);
	uint64_t v, i;
	struct ptx_func *f;
	uint32_t same = 0;

	if (c->callee)
		return require_known_func(r, c->callee, *m);
	v = to[ptx_lane(*m)];
	i = (v - PTX_CODE_BASE) / 16;
	for (uint32_t l = *m; l; l &= l - 1)
		if (to[ptx_lane(l)] == v)
			same |= 1u << ptx_lane(l);
	*m = same;
	f = v >= PTX_CODE_BASE && i < mod->nfuncs && v % 16 == 0 ? mod->funcs[i] : NULL;
	f = f ? ptx_func_real(f) : NULL;
	if (!f || f->entry) {
		ptx_fault(r->w, ptx_lane(same), PTX_ILLEGAL_ADDRESS,
			  "call through 0x%llx, which is no function", (unsigned long long)v);
		return NULL;
	}
	f = require_known_func(r, f, same);
	if (f && !ptx_call_fits(c, f)) {
		ptx_fault(r->w, ptx_lane(same), PTX_ILLEGAL_ADDRESS,
			  "call through a pointer does not match %s", f->name);
		return NULL;
	}
	return f;
}

static bool call_function(struct run *r, const struct ptx_insn *in, uint32_t m)
{
	struct ptx_warp *w = r->w;
	const struct ptx_call *c = &w->blk->grid->mod->calls[in->x];
	struct ptx_frame *f, *up = w->frame;
	struct ptx_func *fn = callee_of(r, in, c, &m);

	if (!fn)
		return false;
	if (fn->sys && !fn->defined) {
		ptx_sys_call(w, c, fn->sys, m);
		if (m != r->mask) {
			/* the other lanes still have to make their call, or skip it */
			ptx_split_add(w, m, r->pc + 1, up);
			remove_lanes(r, m);
			return false;
		}
		r->pc++;
		return !w->fault;
	}
	f = ptx_frame_get(w, fn, up, m);
	if (!f)
		return false;
	f->ret_pc = r->pc + 1;
	ptx_call_enter(w, c, up, f);
	if (m == r->mask) {
		w->split[r->cur].frame = f;
		w->frame = f;
		w->base[REF_REG] = f->mem;
		r->pc = fn->pc;
		r->stop = UINT32_MAX;
		r->spent++;
		return --r->fuel;
	}
	ptx_split_add(w, m, fn->pc, f);
	remove_lanes(r, m);
	return false;
}

static bool return_to_caller(struct run *r, uint32_t m)
{
	struct ptx_warp *w = r->w;
	struct ptx_frame *f = w->frame, *up = f->up;
	const struct ptx_insn *in = r->code + f->ret_pc - 1;
	uint32_t back = f->ret_pc;

	ptx_call_leave(w, &w->blk->grid->mod->calls[in->x], f, up, m);
	f->lanes &= ~m;
	if (m != r->mask) {
		ptx_split_add(w, m, back, up);
		remove_lanes(r, m);
		r->pc++;
		return false;
	}
	w->split[r->cur].frame = up;
	w->frame = up;
	w->base[REF_REG] = up->mem;
	r->pc = back;
	if (!f->lanes)
		ptx_frame_put(w->blk, f);
	/* Other lanes may already be in the caller: let the scheduler decide. */
	return w->nsplit == 1;
}

static void unsupported(struct ptx_warp *w, const struct ptx_insn *in, uint32_t m)
{
	const struct ptx_func *f = w->blk->grid->mod->funcs[in->x];

	ptx_fault(w, ptx_lane(m), PTX_UNSUPPORTED, "%s is not supported", f->bad_text);
}

/*
 * Runs an instruction that is more than arithmetic. True: the split goes on at r->pc. False: the
 * state of the split is in r, and the scheduler decides what runs next.
 */
static bool run_control_insn(struct run *r, const struct ptx_insn *in, uint32_t m)
{
	struct ptx_warp *w = r->w;

	switch (in->ctl) {
	case CTL_BRA:
		return branch(r, m, (uint32_t)in->imm);
	case CTL_BRX:
		return branch_indexed(r, in, m);
	case CTL_CALL:
		return call_function(r, in, m);
	case CTL_RET:
		return return_to_caller(r, m);
	case CTL_EXIT:
		remove_lanes(r, end_lanes(r, m));
		r->pc++;
		return false;
	case CTL_BAR:
		if (m != r->mask)
			ptx_split_add(w, r->mask & ~m, r->pc + 1, w->frame);
		r->mask = m;
		save(r);
		ptx_bar_arrive(w, in, r->cur);
		r->pc = w->split[r->cur].pc;
		return false;
	case CTL_WARP:
		/* Without a member mask, the members are the lanes that are here. */
		if ((m == r->mask || !in->e) && ptx_warpop(w, in, m)) {
			r->pc++;
			return true;
		}
		if (m != r->mask)
			ptx_split_add(w, r->mask & ~m, r->pc + 1, w->frame);
		r->mask = m;
		save(r);
		ptx_warpop_wait(w, in, r->cur);
		r->mask = w->split[r->cur].mask;
		r->pc = w->split[r->cur].pc;
		return false;
	case CTL_YIELD:
		in->fn(w, in, m);
		r->pc++;
		if (w->fault || !w->yield)
			return !w->fault;
		w->yield = false;
		r->spent += FUEL_YIELD;
		return false;
	case CTL_TRAP:
		ptx_fault(w, ptx_lane(m), PTX_TRAP, "trap");
		return false;
	default:
		unsupported(w, in, m);
		return false;
	}
}

/* Runs the chosen split until the scheduler must choose again. */
static void run_split(struct run *r)
{
	struct ptx_warp *w = r->w;
	const struct ptx_insn *in;
	uint32_t m;

	for (;;) {
		if (ptx_unlikely(r->pc >= r->stop))
			return;
		in = r->code + r->pc;
		m = r->mask;
		w->pc = r->pc;
		if (in->pred) {
			uint32_t p = *(uint32_t *)(w->base[REF_REG] + (in->pred & REF_OFF));

			m &= in->pred & 1 ? ~p : p;
			if (!m) {
				r->pc++;
				continue;
			}
		}
		w->active = m;
		if (ptx_likely(in->ctl == CTL_OP)) {
			in->fn(w, in, m);
			r->pc++;
			if (ptx_unlikely(w->fault))
				return;
			continue;
		}
		if (!run_control_insn(r, in, m))
			return;
	}
}

enum ptx_ran ptx_warp_run(struct ptx_warp *w)
{
	struct run r = {.w = w, .code = w->blk->grid->code};
	unsigned int fuel = w->blk->grid->fuel;

	while (w->nsplit) {
		/* w->spent adds up: a loop with calls comes back here at every return. */
		bool force = w->spent >= FUEL_SPLIT;
		struct ptx_split *s;
		int i;

		/* Before the choice: a chosen split that does not run would lose its turn. */
		if (!fuel)
			return RAN_YIELD;
		i = ptx_pick(w, force, &r.stop);
		if (i < 0) {
			if (ptx_warpop_retry(w))
				continue;
			return RAN_BLOCKED;
		}
		s = &w->split[i];
		r.cur = (unsigned int)i;
		r.pc = s->pc;
		r.mask = s->mask;
		w->frame = s->frame;
		w->base[REF_REG] = s->frame->mem;
		r.fuel = w->nsplit > 1 && fuel > FUEL_SPLIT ? FUEL_SPLIT : fuel;
		r.spent = 0;
		run_split(&r);
		if (w->fault)
			return RAN_FAULT;
		w->spent = force ? 0 : w->spent + r.spent;
		fuel -= r.spent < fuel ? r.spent : fuel;
		if (r.mask)
			save(&r);
		else
			ptx_split_drop(w, r.cur);
	}
	return RAN_DONE;
}
