// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Turns the address operand of a warp into pointers of this process, and checks that they are in
 * range, writable and aligned. No other part of the machine follows an address that a kernel
 * computed.
 *
 * Ranges of global memory are cached per instruction, because an instruction mostly stays in one
 * allocation.
 */
#ifndef __clang__
#pragma GCC optimize("O3")
#endif
#include "qcu-device/soft/ptx/memory/ptx_mem.h"
#include "qcu-device/soft/ptx/ops/ptx_op_loop.h"

static void bad_address(struct ptx_warp *w, unsigned int lane, const char *space, uint64_t addr,
			unsigned int size, bool write)
{
	struct ptx_access a = {.addr = addr, .size = size, .write = write};

	ptx_fault_access(w, lane, PTX_ILLEGAL_ADDRESS, space, &a);
}

static void misaligned(struct ptx_warp *w, unsigned int lane, const char *space, uint64_t addr,
		       unsigned int size, bool write)
{
	struct ptx_access a = {.addr = addr, .size = size, .write = write};

	ptx_fault_access(w, lane, PTX_MISALIGNED_ADDRESS, space, &a);
}

static bool is_access_in_range(const struct ptx_range *r, uint64_t addr, unsigned int size,
			       bool write)
{
	return addr >= r->lo && addr < r->hi && r->hi - addr >= size && (!write || r->writable);
}

static bool global_ok(struct ptx_warp *w, uint64_t addr, unsigned int size, bool write)
{
	struct ptx_block *b = w->blk;
	const struct ptx_env *env = &b->grid->mod->env;
	struct ptx_range *r = &b->range[w->pc % PTX_RANGES];

	if (is_access_in_range(r, addr, size, write))
		return true;
	if (addr >> PTX_SPACE_SHIFT)
		return false;
	*r = env->range(env->ctx, addr);
	return is_access_in_range(r, addr, size, write);
}

static uint8_t *one_global(struct ptx_warp *w, unsigned int lane, uint64_t addr, unsigned int size,
			   bool write)
{
	if (addr & (size - 1)) {
		misaligned(w, lane, "global", addr, size, write);
		return NULL;
	}
	if (!global_ok(w, addr, size, write)) {
		bad_address(w, lane, "global", addr, size, write);
		return NULL;
	}
	return (uint8_t *)(uintptr_t)addr;
}

static uint8_t *one_shared(struct ptx_warp *w, unsigned int lane, uint64_t addr, unsigned int size,
			   bool write)
{
	const struct ptx_block *b = w->blk;

	if (addr >= b->shared_bytes || b->shared_bytes - addr < size) {
		bad_address(w, lane, "shared", addr, size, write);
		return NULL;
	}
	if (addr & (size - 1)) {
		misaligned(w, lane, "shared", addr, size, write);
		return NULL;
	}
	return b->shared + addr;
}

static uint8_t *one_local(struct ptx_warp *w, unsigned int lane, uint64_t addr, unsigned int size,
			  bool write)
{
	const struct ptx_block *b = w->blk;

	if (addr >= b->stack_bytes || b->stack_bytes - addr < size) {
		bad_address(w, lane, "local", addr, size, write);
		return NULL;
	}
	if (addr & (size - 1)) {
		misaligned(w, lane, "local", addr, size, write);
		return NULL;
	}
	return ptx_cell(w->local, lane, addr);
}

static uint8_t *one_kparam(struct ptx_warp *w, unsigned int lane, uint64_t addr, unsigned int size,
			   bool write)
{
	const struct ptx_grid *g = w->blk->grid;

	if (write || addr >= g->l.param_bytes || g->l.param_bytes - addr < size) {
		bad_address(w, lane, "param", addr, size, write);
		return NULL;
	}
	if (addr & (size - 1)) {
		misaligned(w, lane, "param", addr, size, write);
		return NULL;
	}
	return g->params + addr;
}

/*
 * An access to .param by a computed address. In a kernel, it goes to the kernel's
 * parameters. In any other function, it goes to the parameter area of the frame.
 */
static uint8_t *one_param(struct ptx_warp *w, unsigned int lane, uint64_t addr, unsigned int size,
			  bool write)
{
	struct ptx_frame *f = w->frame;

	if (f->fn->entry)
		return one_kparam(w, lane, addr, size, write);
	if (addr >= f->fn->area_bytes || f->fn->area_bytes - addr < size) {
		bad_address(w, lane, "param", addr, size, write);
		return NULL;
	}
	if (addr & (size - 1)) {
		misaligned(w, lane, "param", addr, size, write);
		return NULL;
	}
	return ptx_cell(f->mem + PTX_FRAME_AREA, lane, addr);
}

uint8_t *ptx_resolve_one(struct ptx_warp *w, unsigned int lane, uint64_t addr, unsigned int size,
			 bool write)
{
	switch (addr >> PTX_SPACE_SHIFT) {
	case 0:
		return one_global(w, lane, addr, size, write);
	case PTX_SHARED_BASE >> PTX_SPACE_SHIFT:
		return one_shared(w, lane, addr - PTX_SHARED_BASE, size, write);
	case PTX_LOCAL_BASE >> PTX_SPACE_SHIFT:
		return one_local(w, lane, addr - PTX_LOCAL_BASE, size, write);
	case PTX_PARAM_BASE >> PTX_SPACE_SHIFT:
		return one_kparam(w, lane, addr - PTX_PARAM_BASE, size, write);
	default:
		bad_address(w, lane, "generic", addr, size, write);
		return NULL;
	}
}

static uint8_t *resolve_in_space(struct ptx_warp *w, const struct ptx_insn *in, unsigned int lane,
				 uint64_t addr, unsigned int size, bool write)
{
	switch (in->space) {
	case SPACE_GENERIC:
		return ptx_resolve_one(w, lane, addr, size, write);
	case SPACE_SHARED:
		return one_shared(w, lane, addr, size, write);
	case SPACE_LOCAL:
		return one_local(w, lane, addr, size, write);
	case SPACE_PARAM:
		return one_param(w, lane, addr, size, write);
	default:
		return one_global(w, lane, addr, size, write);
	}
}

static enum ptx_shape each(struct ptx_warp *w, const struct ptx_insn *in, const uint64_t *addr,
			   uint32_t m, unsigned int size, bool write, uint8_t **p)
{
	for (uint32_t r = m; r; r &= r - 1) {
		unsigned int i = ptx_lane(r);

		p[i] = resolve_in_space(w, in, i, addr[i], size, write);
		if (!p[i])
			return SHAPE_FAULT;
	}
	return SHAPE_SCATTER;
}

uint8_t *ptx_resolve_off(struct ptx_warp *w, const struct ptx_insn *in, unsigned int lane,
			 uint64_t off, unsigned int size, bool write)
{
	uint64_t addr;

	if (in->flags & IF_A32)
		addr = (uint32_t)(((const uint32_t *)ptx_at(w, in->a))[lane] + (uint32_t)in->imm);
	else
		addr = ((const uint64_t *)ptx_at(w, in->a))[lane] + (uint64_t)in->imm;
	return resolve_in_space(w, in, lane, addr + off, size, write);
}

uint8_t *ptx_resolve_lane(struct ptx_warp *w, const struct ptx_insn *in, unsigned int lane,
			  unsigned int size, bool write)
{
	return ptx_resolve_off(w, in, lane, 0, size, write);
}

/*
 * All lanes are active and access global memory. p[0] gets the first pointer if the lanes access
 * consecutive elements (SHAPE_LINEAR) or all the same element (SHAPE_UNIFORM). SHAPE_SCATTER means
 * neither, or that a check failed: each() then looks at every lane by itself.
 */
static enum ptx_shape full_global(struct ptx_warp *w, const uint64_t *addr, unsigned int size,
				  bool write, uint8_t **p)
{
	const uint64_t first = addr[0];
	uint64_t off_line = 0, off_one = 0;
	bool ok;

	for (unsigned int i = 0; i < PTX_LANES; i++) {
		off_line |= addr[i] ^ (first + i * size);
		off_one |= addr[i] ^ first;
	}
	if (off_line && off_one)
		return SHAPE_SCATTER;
	if (first & (size - 1))
		return SHAPE_SCATTER;
	ok = off_one ? global_ok(w, first, size * PTX_LANES, write)
		     : global_ok(w, first, size, write);
	if (!ok)
		return SHAPE_SCATTER;
	p[0] = (uint8_t *)(uintptr_t)first;
	return off_one ? SHAPE_LINEAR : SHAPE_UNIFORM;
}

static bool scatter_shared(struct ptx_warp *w, const uint64_t *addr, unsigned int size, uint8_t **p)
{
	const struct ptx_block *b = w->blk;
	uint64_t all = 0, bad = 0;
	const uint64_t limit = b->shared_bytes;

	/* offsets are below 2^32 here, so a sign bit after the subtraction means "outside" */
	for (unsigned int i = 0; i < PTX_LANES; i++) {
		all |= addr[i];
		bad |= limit - size - addr[i];
	}
	if (limit < size || all >> 32 || bad >> 63 || all & (size - 1))
		return false;
	PTX_IVDEP
	for (unsigned int i = 0; i < PTX_LANES; i++)
		p[i] = b->shared + addr[i];
	return true;
}

/* Local memory, all lanes at the same offset: their cells are side by side. */
static bool same_local(struct ptx_warp *w, const uint64_t *addr, unsigned int size, uint8_t **p)
{
	uint64_t off = addr[0], diff = 0;

	for (unsigned int i = 0; i < PTX_LANES; i++)
		diff |= addr[i] ^ off;
	if (diff || off >= w->blk->stack_bytes || w->blk->stack_bytes - off < size ||
	    off & (size - 1))
		return false;
	for (unsigned int i = 0; i < PTX_LANES; i++)
		p[i] = ptx_cell(w->local, i, off);
	return true;
}

enum ptx_shape ptx_resolve(struct ptx_warp *w, const struct ptx_insn *in, uint32_t m,
			   unsigned int size, bool write, uint8_t **p)
{
	uint64_t addr[PTX_LANES];
	const uint64_t imm = (uint64_t)in->imm;
	enum ptx_shape shape;

	if (in->flags & IF_A32) {
		const uint32_t *a = ptx_at(w, in->a);
		const uint32_t imm32 = (uint32_t)imm;

		for (unsigned int i = 0; i < PTX_LANES; i++)
			addr[i] = (uint32_t)(a[i] + imm32);
	} else {
		const uint64_t *a = ptx_at(w, in->a);

		for (unsigned int i = 0; i < PTX_LANES; i++)
			addr[i] = a[i] + imm;
	}
	if (m == PTX_FULL) {
		uint64_t top = addr[0] >> PTX_SPACE_SHIFT;

		switch (in->space) {
		case SPACE_SHARED:
			if (scatter_shared(w, addr, size, p))
				return SHAPE_SCATTER;
			break;
		case SPACE_LOCAL:
			if (same_local(w, addr, size, p))
				return SHAPE_SCATTER;
			break;
		case SPACE_PARAM:
			break;
		case SPACE_GENERIC:
			if (top) {
				uint64_t base = top << PTX_SPACE_SHIFT, off[PTX_LANES];

				for (unsigned int i = 0; i < PTX_LANES; i++)
					off[i] = addr[i] - base;
				if (base == PTX_SHARED_BASE && scatter_shared(w, off, size, p))
					return SHAPE_SCATTER;
				if (base == PTX_LOCAL_BASE && same_local(w, off, size, p))
					return SHAPE_SCATTER;
				break;
			}
			/* fall through */
		default:
			shape = full_global(w, addr, size, write, p);
			if (shape != SHAPE_SCATTER)
				return shape;
		}
	}
	return each(w, in, addr, m, size, write, p);
}
