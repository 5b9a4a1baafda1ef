// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A frame holds the registers of one call of a function, for the lanes that made the call together.
 *
 * Lanes that call at different times get separate frames, so lanes never share memory that is laid
 * out for different functions. When its last lane leaves, a frame goes back to the spare frames of
 * its block.
 */
#include <stdlib.h>
#include <string.h>

#include "qcu-device/soft/ptx/exec/ptx_exec.h"

/* The limit for all frames of one block. An endless recursion ends here at the latest. */
#define MAX_FRAME_TOTAL (512u << 20)
/* Bytes of a thread's stack that each call takes in addition to its .local variables. */
#define CALL_COST 32u

/* Spare frames are sorted by size, a power of two, so that any module can use them again. */
static unsigned int class_of(size_t size)
{
	return 64 - (unsigned int)__builtin_clzll(size - 1);
}

/* Returns the end of a lane's .local variables, with the bytes that it got by alloca. */
uint32_t ptx_frame_top(const struct ptx_frame *f, unsigned int lane)
{
	uint32_t top = f->local + ((f->fn->local_bytes + 15) & ~15u);

	return f->fn->allocates ? top + f->dyn[lane] : top;
}

static uint32_t local_after(const struct ptx_frame *f, uint32_t lanes)
{
	uint32_t top = ptx_frame_top(f, ptx_lane(lanes));

	for (uint32_t r = lanes; r && f->fn->allocates; r &= r - 1)
		if (ptx_frame_top(f, ptx_lane(r)) > top)
			top = ptx_frame_top(f, ptx_lane(r));
	return ((top + 15) & ~15u) + CALL_COST;
}

/* Returns NULL if the stack is full or there is no memory. The warp has a fault then. */
struct ptx_frame *ptx_frame_get(struct ptx_warp *w, const struct ptx_func *fn, struct ptx_frame *up,
				uint32_t lanes)
{
	struct ptx_block *b = w->blk;
	uint32_t local = up ? local_after(up, lanes) : 0;
	unsigned int cls = class_of(sizeof(struct ptx_frame) + fn->frame_bytes);
	size_t size = (size_t)1 << cls;
	struct ptx_frame *f = NULL;
	uint64_t *base;

	if ((uint64_t)local + fn->local_bytes > b->stack_bytes) {
		ptx_fault(w, ptx_lane(lanes), PTX_STACK_OVERFLOW,
			  "stack overflow in the call of %s", fn->name);
		return NULL;
	}
	if (b->spare[cls]) {
		f = b->spare[cls];
		b->spare[cls] = f->up;
	} else if (size <= MAX_FRAME_TOTAL - b->frame_total) {
		f = aligned_alloc(64, size);
		if (f)
			memset(f, 0, size);
		if (f) {
			b->frame_total += size;
			f->all = b->all_frames;
			b->all_frames = f;
		}
	}
	if (!f) {
		ptx_fault(w, ptx_lane(lanes), PTX_STACK_OVERFLOW, "no memory for the call of %s",
			  fn->name);
		return NULL;
	}
	f->up = up;
	f->cls = cls;
	f->fn = fn;
	f->lanes = lanes;
	f->depth = up ? up->depth + 1 : 0;
	f->local = local;
	if (b->check)
		ptx_check_frame(w, f);
	if (fn->allocates)
		memset(f->dyn, 0, sizeof(f->dyn));
	base = (uint64_t *)f->mem;
	for (unsigned int i = 0; i < PTX_LANES; i++)
		base[i] = local;
	return f;
}

void ptx_frame_put(struct ptx_block *b, struct ptx_frame *f)
{
	f->up = b->spare[f->cls];
	b->spare[f->cls] = f;
}

/* Removes lanes that end from frame f and from the frames of all its callers. */
void ptx_frame_drop(struct ptx_block *b, struct ptx_frame *f, uint32_t lanes)
{
	while (f) {
		struct ptx_frame *up = f->up;

		f->lanes &= ~lanes;
		if (!f->lanes)
			ptx_frame_put(b, f);
		f = up;
	}
}

/* Called after a block that failed. None of its frames is in use any more: all become spare. */
void ptx_frames_reset(struct ptx_block *b)
{
	memset(b->spare, 0, sizeof(b->spare));
	for (struct ptx_frame *f = b->all_frames; f; f = f->all)
		ptx_frame_put(b, f);
}

void ptx_frames_free(struct ptx_block *b)
{
	while (b->all_frames) {
		struct ptx_frame *f = b->all_frames;

		b->all_frames = f->all;
		free(f);
	}
	memset(b->spare, 0, sizeof(b->spare));
	b->frame_total = 0;
}

uint8_t *ptx_frame_area(const struct ptx_frame *f, uint32_t off)
{
	return (uint8_t *)f->mem + PTX_FRAME_AREA + (size_t)(off >> 3) * (PTX_LANES * 8);
}

/* `stride` is the width of the register, `size` is how many of its bytes are passed. */
static void copy_reg_in(uint8_t *cell, const uint8_t *reg, unsigned int stride, unsigned int size,
			uint32_t m)
{
	for (uint32_t r = m; r; r &= r - 1)
		memcpy(cell + ptx_lane(r) * 8, reg + ptx_lane(r) * stride, size);
}

static void copy_reg_out(uint8_t *reg, const uint8_t *cell, unsigned int stride, unsigned int size,
			 uint32_t m)
{
	for (uint32_t r = m; r; r &= r - 1)
		memcpy(reg + ptx_lane(r) * stride, cell + ptx_lane(r) * 8, size);
}

static void copy_cells(uint8_t *to, const uint8_t *from, uint32_t size, uint32_t m)
{
	for (uint32_t at = 0; at < size; at += 8, to += PTX_LANES * 8, from += PTX_LANES * 8)
		for (uint32_t r = m; r; r &= r - 1)
			memcpy(to + ptx_lane(r) * 8, from + ptx_lane(r) * 8, 8);
}

static uint8_t *reg_of(struct ptx_warp *w, const struct ptx_frame *f, uint32_t ref)
{
	if ((ref & REF_AREA) == REF_REG)
		return (uint8_t *)f->mem + ref;
	return ptx_at(w, ref);
}

/* Copies one value from one side of a call to the other. The sizes were compared before. */
static void copy_call_value(struct ptx_warp *w, struct ptx_frame *to, const struct ptx_arg *t,
			    const struct ptx_frame *from, const struct ptx_arg *a, uint32_t m)
{
	uint32_t size = a->size < t->size ? a->size : t->size;

	if (a->in_area && t->in_area)
		copy_cells(ptx_frame_area(to, t->off), ptx_frame_area(from, a->off), size, m);
	else if (t->in_area)
		copy_reg_in(ptx_frame_area(to, t->off), reg_of(w, from, a->ref), a->size, size, m);
	else if (a->in_area)
		copy_reg_out(reg_of(w, to, t->ref), ptx_frame_area(from, a->off), t->size, size, m);
	else
		for (uint32_t r = m; r; r &= r - 1)
			memcpy(reg_of(w, to, t->ref) + ptx_lane(r) * t->size,
			       reg_of(w, from, a->ref) + ptx_lane(r) * a->size, size);
}

void ptx_call_enter(struct ptx_warp *w, const struct ptx_call *c, const struct ptx_frame *from,
		    struct ptx_frame *to)
{
	for (unsigned int i = 0; i < c->nargs; i++)
		copy_call_value(w, to, &to->fn->params[i], from, &c->args[i], to->lanes);
}

void ptx_call_leave(struct ptx_warp *w, const struct ptx_call *c, const struct ptx_frame *from,
		    struct ptx_frame *to, uint32_t m)
{
	for (unsigned int i = 0; i < c->nrets; i++)
		copy_call_value(w, to, &c->rets[i], from, &from->fn->rets[i], m);
}

static bool args_fit(const struct ptx_arg *a, unsigned int na, const struct ptx_arg *f,
		     unsigned int nf)
{
	if (na != nf)
		return false;
	for (unsigned int i = 0; i < na; i++)
		if (a[i].size != f[i].size && (a[i].in_area || a[i].size != 8 || f[i].size > 8))
			return false;
	return true;
}

/* Do the arguments and results of a call fit the function? A constant (8 bytes) may be narrowed. */
bool ptx_call_fits(const struct ptx_call *c, const struct ptx_func *f)
{
	return args_fit(c->args, c->nargs, f->params, f->nparams) &&
	       args_fit(c->rets, c->nrets, f->rets, f->nrets);
}

/* One lane's argument of a call of the system; at most 8 bytes of it. */
uint64_t ptx_arg_get(struct ptx_warp *w, const struct ptx_arg *a, unsigned int lane)
{
	unsigned int size = a->size < 8 ? a->size : 8;
	uint64_t v = 0;

	if (a->in_area)
		memcpy(&v, ptx_frame_area(w->frame, a->off) + lane * 8, size);
	else
		memcpy(&v, (uint8_t *)ptx_at(w, a->ref) + lane * size, size);
	return v;
}

void ptx_arg_put(struct ptx_warp *w, const struct ptx_call *c, unsigned int lane, uint64_t v)
{
	const struct ptx_arg *a = c->rets;
	unsigned int size;

	if (!c->nrets)
		return;
	size = a->size < 8 ? a->size : 8;
	if (a->in_area)
		memcpy(ptx_frame_area(w->frame, a->off) + lane * 8, &v, size);
	else
		memcpy((uint8_t *)ptx_at(w, a->ref) + lane * size, &v, size);
}

/*
 * The function behind aliases. In a ring of aliases, the walk ends at one of them, which is not
 * defined.
 */
struct ptx_func *ptx_func_real(struct ptx_func *f)
{
	for (int i = 0; f->next && i < 16; i++)
		f = f->next;
	return f;
}
