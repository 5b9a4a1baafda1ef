// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * QCU_SOFT_CHECK: finds reads of memory that was never written, and races on shared memory.
 *
 * When a module is loaded with checks, every instruction that reads or writes memory gets the
 * handler of this file. It checks the addresses, and then calls the instruction's own handler.
 * Without checks, none of this code runs. Each kind of finding is reported once per launch and line
 * of the source, or instruction if the lines are not known. The kernel goes on after it.
 *
 * Each byte of shared memory has a history, which says which thread wrote the byte last, and which
 * threads have read it. Two accesses are in order if the same thread makes them, or if something
 * between them orders the threads:
 *
 * - For all threads of the block: a barrier of the block, a phase of an mbarrier, or a fence.
 * - For threads of one warp: also anything that makes lanes wait for each other.
 *
 * This is more order than a GPU promises, so some races are not found. But if a race is reported,
 * there is nothing between the two accesses that orders them.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "qcu-device/soft/ptx/exec/ptx_exec.h"
#include "qcu-device/soft/ptx/memory/ptx_mem.h"
#include "qcu-device/soft/ptx/memory/ptx_mma.h"

#define FOUND_UNWRITTEN 1u
#define FOUND_RACE	2u

struct last_access {
	uint32_t pc, block_time, warp_time;
	uint16_t thread;
	bool valid, strong;
};

struct byte_history {
	struct last_access write, read[2]; /* read: two readers, of different warps if possible */
	uint8_t value;			   /* the last one written */
};

struct ptx_check {
	struct byte_history *shared;
	uint32_t shared_cap;
	uint8_t *local; /* 1: written; laid out like the stacks */
	size_t local_cap;
};

/* One element of one lane's access. */
struct access {
	struct ptx_warp *w;
	const struct ptx_insn *in;
	unsigned int lane, size;
	uint64_t addr; /* within its space */
	enum ptx_space space;
	bool read, write, strong;
	const uint8_t *value; /* the bytes to write; NULL: not known */
};

/* ---- reports ---- */

static const char *describe_code_position(const struct ptx_warp *w, uint32_t pc, char *buf,
					  size_t size)
{
	const struct ptx_module *m = w->blk->grid->mod;
	const struct ptx_insn *in = &m->code[pc];
	const char *file = ptx_file_name(m, in->loc);

	if (file)
		snprintf(buf, size, "%s:%u", file, ptx_loc_line(in->loc));
	else
		snprintf(buf, size, "PTX line %u", in->line);
	return buf;
}

static void who(const struct ptx_warp *w, unsigned int thread, char *buf, size_t size)
{
	const uint32_t *n = w->blk->grid->l.block;

	snprintf(buf, size, "(%u,%u,%u)", thread % n[0], thread / n[0] % n[1],
		 thread / n[0] / n[1]);
}

static unsigned int thread_of(const struct access *a)
{
	return a->w->id * PTX_LANES + a->lane;
}

/* The first instruction of the module that is of the same line: an unrolled loop has many of one.
 */
static uint32_t first_of_line(const struct ptx_module *m, uint32_t pc)
{
	uint32_t i = 0;

	if (!ptx_file_name(m, m->code[pc].loc))
		return pc;
	while (m->code[i].loc != m->code[pc].loc)
		i++;
	return i;
}

/* False: this has been reported before, for this line in this launch. */
static bool first_time(const struct access *a, uint8_t found)
{
	const struct ptx_grid *g = a->w->blk->grid;
	uint32_t pc = a->w->pc, first;

	if (__atomic_fetch_or(&g->seen[pc], found, __ATOMIC_RELAXED) & found)
		return false;
	first = first_of_line(g->mod, pc);
	return first == pc ||
	       !(__atomic_fetch_or(&g->seen[first], found, __ATOMIC_RELAXED) & found);
}

static void __attribute__((format(printf, 2, 3)))
report_finding(const struct access *a, const char *fmt, ...)
{
	const struct ptx_env *env = &a->w->blk->grid->mod->env;
	struct ptx_finding place = ptx_finding_of(a->w, a->lane);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(place.what, sizeof(place.what), fmt, ap);
	va_end(ap);
	if (a->space != SPACE_SHARED && a->space != SPACE_LOCAL && !(a->addr >> PTX_SPACE_SHIFT))
		place.access = (struct ptx_access){a->addr, a->size, a->write};
	env->found(env->ctx, &place);
}

static void say_unwritten(const struct access *a, const char *space)
{
	if (first_time(a, FOUND_UNWRITTEN))
		report_finding(a, "uninitialised read of %u bytes of %s memory at 0x%llx", a->size,
			       space, (unsigned long long)a->addr);
}

static void say_race(const struct access *a, const struct last_access *other, bool other_writes)
{
	char position[128], thread[48];

	if (!first_time(a, FOUND_RACE))
		return;
	who(a->w, other->thread, thread, sizeof(thread));
	report_finding(a,
		       "race on shared memory at 0x%llx: %s, after a %s by thread %s (%s) and "
		       "nothing in between that orders them",
		       (unsigned long long)a->addr, a->write ? "a write" : "a read",
		       other_writes ? "write" : "read", thread,
		       describe_code_position(a->w, other->pc, position, sizeof(position)));
}

/* ---- the rules ---- */

static bool clash(const struct access *a, const struct last_access *m)
{
	const struct ptx_warp *w = a->w;

	if (!m->valid || m->thread == thread_of(a) || (m->strong && a->strong))
		return false;
	if (m->block_time != w->blk->sync)
		return false;
	return m->thread / PTX_LANES != w->id || m->warp_time == w->sync;
}

static struct last_access last_access_of(const struct access *a)
{
	return (struct last_access){.pc = a->w->pc,
				    .block_time = a->w->blk->sync,
				    .warp_time = a->w->sync,
				    .thread = (uint16_t)thread_of(a),
				    .valid = true,
				    .strong = a->strong};
}

static void remember_read(struct byte_history *c, const struct access *a)
{
	struct last_access new = last_access_of(a);

	/* Prefer to keep a reader of another warp, too: it is in order with fewer accesses. */
	if (c->read[0].valid && c->read[0].block_time == new.block_time &&
	    c->read[0].thread / PTX_LANES != new.thread / PTX_LANES)
		c->read[1] = new;
	else
		c->read[0] = new;
}

static void shared_byte(const struct access *a, struct byte_history *c, unsigned int k)
{
	bool changes = !a->value || !c->write.valid || c->value != a->value[k];

	if (clash(a, &c->write) && (!a->write || changes))
		say_race(a, &c->write, true);
	for (unsigned int r = 0; r < 2 && a->write && changes; r++)
		if (clash(a, &c->read[r]))
			say_race(a, &c->read[r], false);
	if (a->read)
		remember_read(c, a);
	if (a->write) {
		c->write = last_access_of(a);
		if (a->value)
			c->value = a->value[k];
	}
}

static void check_shared_access(const struct access *a)
{
	const struct ptx_block *b = a->w->blk;
	bool any = !a->read;
	struct byte_history *c;

	if (a->addr >= b->shared_bytes || b->shared_bytes - a->addr < a->size)
		return;
	/* Do not check the part that belongs to the system. */
	if (b->grid->mod->reserved_used && a->addr >= b->grid->reserved_off)
		return;
	c = b->check->shared + a->addr;
	for (unsigned int k = 0; k < a->size; k++)
		any |= c[k].write.valid;
	if (!any)
		say_unwritten(a, "shared");
	for (unsigned int k = 0; k < a->size; k++)
		shared_byte(a, &c[k], k);
}

static void check_local(const struct access *a)
{
	const struct ptx_block *b = a->w->blk;
	uint8_t *base = b->check->local + (size_t)a->w->id * PTX_LANES * b->stack_bytes;
	bool any = !a->read;

	if (a->addr >= b->stack_bytes || b->stack_bytes - a->addr < a->size)
		return;
	for (unsigned int k = 0; k < a->size; k++) {
		uint8_t *p = ptx_cell(base, a->lane, a->addr + k);

		any |= *p;
		if (a->write)
			*p = 1;
	}
	if (!any)
		say_unwritten(a, "local");
}

static void check_global(const struct access *a)
{
	const struct ptx_env *env = &a->w->blk->grid->mod->env;
	struct ptx_range r;

	if (!env->written || a->addr >> PTX_SPACE_SHIFT)
		return;
	r = env->range(env->ctx, a->addr);
	if (a->addr < r.lo || a->addr >= r.hi || r.hi - a->addr < a->size)
		return;
	if (a->read && !env->written(env->ctx, a->addr, a->size))
		say_unwritten(a, "global");
	if (a->write)
		env->wrote(env->ctx, a->addr, a->size);
}

/* ---- from instructions to accesses ---- */

static void check_at(struct access *a, uint64_t addr)
{
	a->addr = addr;
	if (a->space == SPACE_GENERIC && addr >> PTX_SPACE_SHIFT) {
		uint64_t base = addr >> PTX_SPACE_SHIFT << PTX_SPACE_SHIFT;

		a->addr = addr - base;
		if (base == PTX_SHARED_BASE)
			check_shared_access(a);
		else if (base == PTX_LOCAL_BASE)
			check_local(a);
		return;
	}
	switch (a->space) {
	case SPACE_SHARED:
		check_shared_access(a);
		break;
	case SPACE_LOCAL:
		check_local(a);
		break;
	case SPACE_PARAM:
		break;
	default:
		check_global(a);
	}
}

static uint64_t address(struct ptx_warp *w, uint32_t ref, bool a32, int64_t imm, unsigned int lane)
{
	if (a32)
		return (uint32_t)(((const uint32_t *)ptx_at(w, ref))[lane] + (uint32_t)imm);
	return ((const uint64_t *)ptx_at(w, ref))[lane] + (uint64_t)imm;
}

static void check_lane(struct access *a, unsigned int count)
{
	const struct ptx_insn *in = a->in;
	const uint32_t *x = a->w->blk->grid->mod->xops; /* NULL if no instruction has any */
	uint64_t at = address(a->w, in->a, in->flags & IF_A32, in->imm, a->lane);
	ptx_fn fn = a->w->blk->grid->mod->plain[a->w->pc];

	for (unsigned int k = 0; k < count; k++) {
		if (fn == ptx_h_st)
			a->value = (uint8_t *)ptx_at(a->w, in->b) + a->lane * in->sub;
		else if (fn == ptx_h_st_vec)
			a->value = (uint8_t *)ptx_at(a->w, x[in->x + k]) + a->lane * in->sub;
		check_at(a, at + (uint64_t)k * a->size);
	}
}

static void check_copy(struct access *a)
{
	const struct ptx_insn *in = a->in;
	const uint32_t *size = in->e ? ptx_at(a->w, in->e) : NULL;
	uint32_t n = size && size[a->lane] < in->nx ? size[a->lane] : in->nx;
	const uint64_t *imm = ptx_at(a->w, in->c);

	a->space = SPACE_GLOBAL;
	a->read = true;
	a->size = n;
	if (n)
		check_at(a, address(a->w, in->a, in->flags & IF_A32, in->imm, a->lane));
	a->space = SPACE_SHARED;
	a->read = false;
	a->write = true;
	a->size = in->nx;
	check_at(a, address(a->w, in->b, in->sub, (int64_t)imm[0], a->lane));
}

static void check_bulk(struct access *a)
{
	uint64_t to, from;
	uint32_t len;

	ptx_bulk_range(a->w, a->in, a->lane, &to, &from, &len);
	a->space = SPACE_GENERIC;
	a->size = 16;
	for (uint32_t i = 0; len % 16 == 0 && i < len; i += 16) {
		a->read = true;
		a->write = false;
		check_at(a, from + i);
		a->read = false;
		a->write = true;
		check_at(a, to + i);
	}
}

static bool is_fragment(ptx_fn fn)
{
	return fn == ptx_h_wmma_load || fn == ptx_h_wmma_store;
}

static void check_fragment(struct access *a)
{
	unsigned int units = ptx_wmma_units(a->w, a->in, &a->size);
	const struct ptx_insn *in = a->in;
	uint64_t at = address(a->w, in->a, in->flags & IF_A32, in->imm, a->lane);

	for (unsigned int i = 0; i < units; i++)
		check_at(a, at + ptx_wmma_offset(a->w, in, i, a->lane));
}

static bool is_load(ptx_fn fn)
{
	return fn == ptx_h_ld || fn == ptx_h_ld_vec || fn == ptx_h_ld128 || fn == ptx_h_ldmatrix ||
	       fn == ptx_h_wmma_load;
}

static bool is_store(ptx_fn fn)
{
	return fn == ptx_h_st || fn == ptx_h_st_vec || fn == ptx_h_st128 || fn == ptx_h_stmatrix ||
	       fn == ptx_h_wmma_store;
}

static bool is_atomic(ptx_fn fn)
{
	return fn == ptx_h_atom || fn == ptx_h_atom_vec || fn == ptx_h_atom128;
}

static void checked(struct ptx_warp *w, const struct ptx_insn *in, uint32_t m)
{
	ptx_fn fn = w->blk->grid->mod->plain[w->pc];
	bool matrix = fn == ptx_h_ldmatrix || fn == ptx_h_stmatrix;
	bool vec = fn == ptx_h_ld_vec || fn == ptx_h_st_vec || fn == ptx_h_atom_vec;
	bool whole = fn == ptx_h_ld128 || fn == ptx_h_st128 || fn == ptx_h_atom128;

	/* An acquire or a release orders the threads that wait for it. */
	if (in->flags & IF_ORDER)
		w->blk->sync++;
	for (uint32_t r = m; r; r &= r - 1) {
		struct access a = {
			.w = w,
			.in = in,
			.lane = ptx_lane(r),
			.size = matrix || whole ? 16 : ptx_type_size((enum ptx_type)in->type),
			.space = (enum ptx_space)in->space,
			.read = is_load(fn) || is_atomic(fn),
			.write = is_store(fn) || is_atomic(fn),
			.strong = is_atomic(fn) || in->flags & IF_STRONG,
		};

		if (matrix && a.lane >= in->nx * 8u)
			break;
		if (fn == ptx_h_cp_async)
			check_copy(&a);
		else if (is_fragment(fn))
			check_fragment(&a);
		else if (fn == ptx_h_bulk)
			check_bulk(&a);
		else
			check_lane(&a, vec ? in->nx : 1);
	}
	fn(w, in, m);
	if (in->flags & IF_ORDER)
		w->blk->sync++;
}

/* ---- setting up ---- */

bool ptx_check_install(struct ptx_module *m)
{
	m->plain = calloc(m->ncode + 1, sizeof(*m->plain));
	if (!m->plain)
		return false;
	for (uint32_t i = 0; i < m->ncode; i++) {
		struct ptx_insn *in = &m->code[i];

		if (!is_load(in->fn) && !is_store(in->fn) && !is_atomic(in->fn) &&
		    in->fn != ptx_h_cp_async && in->fn != ptx_h_bulk)
			continue;
		m->plain[i] = in->fn;
		in->fn = checked;
	}
	return true;
}

/* Called when a block starts. Its shared memory counts as not written. False: no memory. */
bool ptx_check_start(struct ptx_block *b)
{
	size_t local = (size_t)b->stack_bytes * PTX_LANES * b->nwarps;
	struct ptx_check *c = b->check;

	b->sync = 1;
	if (!b->grid->mod->plain) {
		ptx_check_free(b);
		return true;
	}
	if (!c)
		c = b->check = calloc(1, sizeof(*c));
	if (!c)
		return false;
	if (b->shared_bytes > c->shared_cap) {
		free(c->shared);
		c->shared = malloc(b->shared_bytes * sizeof(*c->shared));
		c->shared_cap = c->shared ? b->shared_bytes : 0;
	}
	if (local > c->local_cap) {
		free(c->local);
		c->local = malloc(local);
		c->local_cap = c->local ? local : 0;
	}
	if (b->shared_bytes > c->shared_cap || local > c->local_cap)
		return false;
	if (b->shared_bytes)
		memset(c->shared, 0, b->shared_bytes * sizeof(*c->shared));
	return true;
}

/* Called when a function is called. Its local variables count as not written. */
void ptx_check_frame(struct ptx_warp *w, const struct ptx_frame *f)
{
	const struct ptx_block *b = w->blk;
	uint8_t *base = b->check->local + (size_t)w->id * PTX_LANES * b->stack_bytes;

	for (uint32_t off = 0; off < f->fn->local_bytes; off++)
		for (uint32_t r = f->lanes; r; r &= r - 1)
			*ptx_cell(base, ptx_lane(r), f->local + off) = 0;
}

void ptx_check_free(struct ptx_block *b)
{
	if (!b->check)
		return;
	free(b->check->shared);
	free(b->check->local);
	free(b->check);
	b->check = NULL;
}
