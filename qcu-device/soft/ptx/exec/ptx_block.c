// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * One block: its warps, shared and local memory. After a block has ended, all of this is kept and
 * used for the next block, of the same launch or of another one.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "qcu-device/soft/ptx/exec/ptx_exec.h"
#include "qcu-device/soft/ptx/memory/ptx_mem.h"

/* A block that is not in use gives back its frames, or its stacks, if they take more than this. */
#define KEEP_BYTES (16u << 20)
#define KEEP_MAX   64u

/* The number of rounds over all warps before other blocks get a turn. */
#define ROUNDS 32u

static struct {
	pthread_mutex_t lock;
	struct ptx_block *list;
	unsigned int count;
} store = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* For a child of fork(): the lock may be held by a thread that does not exist in the child. */
void ptx_block_forked(void)
{
	pthread_mutex_init(&store.lock, NULL);
}

static void destroy_block(struct ptx_block *b)
{
	ptx_frames_free(b);
	if (b->local)
		munmap(b->local, b->local_cap);
	ptx_check_free(b);
	free(b->errors);
	free(b->shared);
	free(b->warps);
	free(b);
}

struct ptx_block *ptx_block_get(void)
{
	struct ptx_block *b;

	pthread_mutex_lock(&store.lock);
	b = store.list;
	if (b) {
		store.list = b->next;
		store.count--;
	}
	pthread_mutex_unlock(&store.lock);
	if (!b)
		b = calloc(1, sizeof(*b));
	return b;
}

void ptx_block_put(struct ptx_block *b)
{
	b->grid = NULL;
	if (b->frame_total > KEEP_BYTES)
		ptx_frames_free(b);
	if (b->local && b->local_cap > KEEP_BYTES)
		madvise(b->local, b->local_cap, MADV_DONTNEED);
	pthread_mutex_lock(&store.lock);
	if (store.count < KEEP_MAX) {
		b->next = store.list;
		store.list = b;
		store.count++;
		b = NULL;
	}
	pthread_mutex_unlock(&store.lock);
	if (b)
		destroy_block(b);
}

static void fill_special_reg(struct ptx_warp *w, unsigned int sp, uint32_t v)
{
	for (unsigned int i = 0; i < PTX_LANES; i++)
		w->special[sp * PTX_LANES + i] = v;
}

static void fill64(struct ptx_warp *w, unsigned int sp, uint64_t v)
{
	uint8_t *p = (uint8_t *)&w->special[sp * PTX_LANES];

	for (unsigned int i = 0; i < PTX_LANES; i++)
		memcpy(p + i * 8, &v, 8);
}

static void fill_lanes(struct ptx_warp *w, const struct ptx_grid *g)
{
	const uint32_t *n = g->l.block;

	for (unsigned int i = 0; i < PTX_LANES; i++) {
		uint32_t t = w->id * PTX_LANES + i, bit = 1u << i;
		uint32_t v[] = {
			[SP_TID_X] = t % n[0],
			[SP_TID_Y] = t / n[0] % n[1],
			[SP_TID_Z] = t / n[0] / n[1],
		};

		for (unsigned int k = SP_TID_X; k <= SP_TID_Z; k++)
			w->special[k * PTX_LANES + i] = v[k];
		w->special[SP_LANEID * PTX_LANES + i] = i;
		w->special[SP_LANEMASK_EQ * PTX_LANES + i] = bit;
		w->special[SP_LANEMASK_LT * PTX_LANES + i] = bit - 1;
		w->special[SP_LANEMASK_LE * PTX_LANES + i] = bit | (bit - 1);
		w->special[SP_LANEMASK_GE * PTX_LANES + i] = ~(bit - 1);
		w->special[SP_LANEMASK_GT * PTX_LANES + i] = ~(bit | (bit - 1));
	}
}

/* Sets what is the same for all blocks of a grid. */
static void prepare_warp(struct ptx_block *b, struct ptx_grid *g, unsigned int id)
{
	struct ptx_warp *w = &b->warps[id];

	w->blk = b;
	w->id = id;
	w->local = b->local ? b->local + (size_t)id * PTX_LANES * b->stack_bytes : NULL;
	w->base[REF_CONST] = g->mod->consts;
	w->base[REF_SPECIAL] = (uint8_t *)w->special;
	fill_lanes(w, g);
	for (unsigned int k = 0; k < 3; k++) {
		fill_special_reg(w, SP_NTID_X + k, g->l.block[k]);
		fill_special_reg(w, SP_NCTAID_X + k, g->l.grid[k]);
	}
	fill_special_reg(w, SP_WARPID, id);
	fill_special_reg(w, SP_NWARPID, b->nwarps);
	fill_special_reg(w, SP_SMID, b->smid);
	fill_special_reg(w, SP_NSMID, g->mod->env.sm_count ? g->mod->env.sm_count : 1);
	fill_special_reg(w, SP_DYN_SMEM_SIZE, g->l.dynamic_shared);
	fill_special_reg(w, SP_TOTAL_SMEM_SIZE, g->shared_bytes);
	fill_special_reg(w, SP_ZERO, 0);
	fill_special_reg(w, SP_ONE, 1);
	fill_special_reg(w, SP_ENVREG1, (uint32_t)(g->workspace >> 32));
	fill_special_reg(w, SP_ENVREG2, (uint32_t)g->workspace);
	fill64(w, SP_GRIDID, g->id);
	fill_special_reg(w, SP_DYN_SHARED, g->dyn_off);
	fill64(w, SP_DYN_SHARED64, g->dyn_off);
	fill_special_reg(w, SP_RESERVED, g->reserved_off);
	fill_special_reg(w, SP_RESERVED1, g->reserved_off + PTX_RESERVED_SHARED / 2);
	fill_special_reg(w, SP_RESERVED_END, g->reserved_off + PTX_RESERVED_SHARED);
	fill_special_reg(w, SP_FUNC_SHARED, g->func_off);
	fill64(w, SP_FUNC_SHARED64, g->func_off);
}

static bool prepare_for_grid(struct ptx_block *b, struct ptx_grid *g)
{
	uint32_t threads = g->l.block[0] * g->l.block[1] * g->l.block[2];
	size_t local;

	b->threads = threads;
	b->nwarps = (threads + PTX_LANES - 1) / PTX_LANES;
	b->stack_bytes = g->kernel->stack_bytes;
	if (g->kernel->fn->recursive && b->stack_bytes < g->l.stack_bytes)
		b->stack_bytes = (g->l.stack_bytes + 15) & ~15u;
	b->shared_bytes = g->shared_bytes;
	memset(b->range, 0, sizeof(b->range));
	if (b->nwarps > b->warp_cap) {
		free(b->warps);
		b->warp_cap = 0;
		b->warps = aligned_alloc(64, b->nwarps * sizeof(*b->warps));
		if (!b->warps)
			return false;
		memset(b->warps, 0, b->nwarps * sizeof(*b->warps));
		b->warp_cap = b->nwarps;
	}
	if (b->shared_bytes > b->shared_cap) {
		free(b->shared);
		b->shared_cap = 0;
		b->shared = aligned_alloc(256, (b->shared_bytes + 255) & ~255u);
		if (!b->shared)
			return false;
		b->shared_cap = b->shared_bytes;
	}
	local = (size_t)b->stack_bytes * PTX_LANES * b->nwarps;
	if (local > b->local_cap) {
		if (b->local)
			munmap(b->local, b->local_cap);
		b->local_cap = 0;
		b->local = mmap(NULL, local, PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (b->local == MAP_FAILED) {
			b->local = NULL;
			return false;
		}
		b->local_cap = local;
	}
	for (unsigned int i = 0; i < b->nwarps; i++)
		prepare_warp(b, g, i);
	b->grid = g;
	return true;
}

/* Returns false if there is no memory, or after a fault before the first instruction. */
bool ptx_block_start(struct ptx_block *b, struct ptx_grid *g, uint64_t number)
{
	const struct ptx_func *fn = g->kernel->fn;

	b->status = PTX_OK;
	b->ctaid[0] = (uint32_t)(number % g->l.grid[0]);
	b->ctaid[1] = (uint32_t)(number / g->l.grid[0] % g->l.grid[1]);
	b->ctaid[2] = (uint32_t)(number / g->l.grid[0] / g->l.grid[1]);
	b->live = 0;
	free(b->errors);
	b->errors = NULL;
	if ((b->grid != g && !prepare_for_grid(b, g)) || !ptx_check_start(b)) {
		b->status = PTX_NO_MEMORY;
		b->nwarps = 0; /* ptx_block_end() has no warp to end */
		ptx_diag_set(&b->diag, 0, "no host memory to run a block");
		return false;
	}
	if (b->shared_bytes)
		memset(b->shared, 0, b->shared_bytes);
	memset(b->bar, 0, sizeof(b->bar));
	for (unsigned int i = 0; i < b->nwarps; i++) {
		struct ptx_warp *w = &b->warps[i];
		uint32_t left = b->threads - i * PTX_LANES;
		uint32_t mask = left >= PTX_LANES ? PTX_FULL : (1u << left) - 1;
		struct ptx_frame *f;

		for (unsigned int k = 0; k < 3; k++)
			fill_special_reg(w, SP_CTAID_X + k, b->ctaid[k]);
		w->dead = ~mask;
		w->cluster = 0;
		w->yield = false;
		w->fault = PTX_OK;
		w->nsplit = 0;
		w->spent = 0;
		w->pc = fn->pc;
		f = ptx_frame_get(w, fn, NULL, mask);
		if (!f)
			return false;
		ptx_split_add(w, mask, fn->pc, f);
		b->live += (uint32_t)__builtin_popcount(mask);
	}
	return true;
}

static bool has_grid_stopped(const struct ptx_block *b)
{
	const struct ptx_grid *g = b->grid;

	return atomic_load_explicit(&g->status, memory_order_relaxed) != PTX_OK ||
	       (g->l.cancel && *g->l.cancel);
}

enum ptx_ran ptx_block_run(struct ptx_block *b)
{
	for (unsigned int round = 0; round < ROUNDS; round++) {
		bool moved = false, left = false;

		for (unsigned int i = 0; i < b->nwarps; i++) {
			struct ptx_warp *w = &b->warps[i];
			uint64_t seq = w->seq;

			if (!w->nsplit)
				continue;
			switch (ptx_warp_run(w)) {
			case RAN_FAULT:
				return RAN_FAULT;
			case RAN_DONE:
				moved = true;
				break;
			default:
				left = true;
				moved |= w->seq != seq;
			}
		}
		if (!left)
			return RAN_DONE;
		if (!moved) {
			for (unsigned int i = 0; i < b->nwarps; i++) {
				struct ptx_warp *w = &b->warps[i];

				if (!w->nsplit)
					continue;
				w->pc = w->split[0].pc;
				ptx_fault(w, ptx_lane(w->split[0].mask), PTX_TRAP,
					  "deadlock: the threads that are waited for never come");
				return RAN_FAULT;
			}
		}
		if (has_grid_stopped(b)) {
			b->status = PTX_KILLED;
			return RAN_FAULT;
		}
		if (b->grid->l.cooperative)
			break;
	}
	return RAN_YIELD;
}

/* Called after the last instruction, or after a fault. */
void ptx_block_end(struct ptx_block *b)
{
	if (b->status != PTX_OK)
		ptx_frames_reset(b);
	for (unsigned int i = 0; i < b->nwarps; i++)
		b->warps[i].nsplit = 0;
}
