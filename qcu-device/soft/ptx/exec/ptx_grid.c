// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A launch: checks it, then hands its blocks to host threads.
 *
 * Each host thread takes blocks in order and runs each block to its end. A block that takes long,
 * or that waits for another block, shares its host thread with later blocks. So a grid whose blocks
 * wait for each other makes progress even with fewer host threads than blocks.
 */
#include <stdlib.h>
#include <string.h>

#include "qcu-device/soft/ptx/exec/ptx_exec.h"
#include "qcu-device/soft/ptx/memory/ptx_mem.h"

/*
 * The most blocks that one host thread runs at a time. A cooperative launch has all its blocks
 * running, so MAX_COOPERATIVE also limits its grid.
 */
#define MAX_RESIDENT 32u

#define WORKSPACE 256u

#define FUEL		 4096u
#define FUEL_COOPERATIVE 256u

static void report(struct ptx_grid *g, const struct ptx_block *b)
{
	int ok = PTX_OK;

	/* The first block that fails gives the reason; the others only stop. */
	pthread_mutex_lock(&g->lock);
	if (atomic_compare_exchange_strong(&g->status, &ok, (int)b->status)) {
		g->diag = b->diag;
		if (b->status == PTX_KILLED)
			ptx_diag_set(&g->diag, 0, "kernel %.100s was stopped",
				     g->kernel->info.name);
	}
	pthread_mutex_unlock(&g->lock);
}

static struct ptx_block *next_block(struct ptx_grid *g, struct ptx_block *again, uint32_t smid)
{
	struct ptx_block *b = again;
	uint64_t n;

	if (atomic_load_explicit(&g->status, memory_order_relaxed) != PTX_OK)
		goto none;
	n = atomic_fetch_add_explicit(&g->next_block, 1, memory_order_relaxed);
	if (n >= g->nblocks)
		goto none;
	if (!b)
		b = ptx_block_get();
	if (!b) {
		struct ptx_block fail = {.status = PTX_NO_MEMORY};

		ptx_diag_set(&fail.diag, 0, "no host memory to run a block");
		report(g, &fail);
		return NULL;
	}
	b->smid = smid;
	if (ptx_block_start(b, g, n))
		return b;
	report(g, b);
	ptx_block_end(b);
none:
	if (b)
		ptx_block_put(b);
	return NULL;
}

/*
 * One host thread's part of a launch. Its running blocks form a queue that starts at `first`; a
 * block that yields goes to the end of the queue.
 */
static void run_grid_blocks(struct ptx_grid *g)
{
	uint32_t sms = g->mod->env.sm_count ? g->mod->env.sm_count : 1;
	uint32_t smid = atomic_fetch_add(&g->smid, 1) % sms;
	unsigned int most = g->l.cooperative ? MAX_COOPERATIVE : MAX_RESIDENT, n = 0;
	struct ptx_block *first = NULL, **tail = &first, *b;

	for (;;) {
		enum ptx_ran ran;

		if (!first) {
			first = next_block(g, NULL, smid);
			if (!first)
				return;
			first->next = NULL;
			tail = &first->next;
			n = 1;
		}
		b = first;
		ran = ptx_block_run(b);
		first = b->next;
		if (!first)
			tail = &first;
		b->next = NULL;
		if (ran == RAN_YIELD) {
			struct ptx_block *more = n < most ? next_block(g, NULL, smid) : NULL;

			if (more) {
				more->next = NULL;
				*tail = more;
				tail = &more->next;
				n++;
			}
			*tail = b;
			tail = &b->next;
			continue;
		}
		if (ran == RAN_FAULT)
			report(g, b);
		ptx_block_end(b);
		n--;
		if (n) {
			ptx_block_put(b);
			continue;
		}
		first = next_block(g, b, smid);
		if (!first)
			return;
		first->next = NULL;
		tail = &first->next;
		n = 1;
	}
}

/*
 * The kernel's own shared memory, then the shared memory of functions, the dynamic part, and the
 * part reserved for the system.
 */
static void lay_out_shared(struct ptx_grid *g)
{
	const struct ptx_kernel *k = g->kernel;

	g->func_off = (k->fn->shared_bytes + 15) & ~15u;
	g->dyn_off = (k->shared_total + 15) & ~15u;
	g->shared_bytes = g->l.dynamic_shared ? g->dyn_off + g->l.dynamic_shared : k->shared_total;
	if (g->mod->reserved_used) {
		g->reserved_off = (g->shared_bytes + 15) & ~15u;
		g->shared_bytes = g->reserved_off + PTX_RESERVED_SHARED;
	}
}

/* The launch provides the memory in which cooperative groups keep the barrier of the grid. */
static bool workspace(struct ptx_grid *g, struct ptx_diag *diag)
{
	const uint32_t size = WORKSPACE;

	if (!g->l.cooperative)
		return true;
	g->workspace = g->mod->env.alloc(g->mod->env.ctx, size);
	if (!g->workspace) {
		ptx_diag_set(diag, 0, "no device memory for a cooperative launch");
		return false;
	}
	memcpy((void *)(uintptr_t)g->workspace, &size, sizeof(size));
	return true;
}

/* depth: how many launches are above this one. A kernel's own launches run below it. */
static enum ptx_status run_launch(const struct ptx_kernel *k, const struct ptx_launch *l,
				  unsigned int depth, struct ptx_child **tails,
				  struct ptx_diag *diag)
{
	static _Atomic uint64_t launches;
	struct ptx_module *m = k->mod;
	struct ptx_grid g = {.mod = m,
			     .kernel = k,
			     .code = m->code,
			     .l = *l,
			     .depth = depth,
			     .below = run_launch,
			     .work = run_grid_blocks};
	struct ptx_diag none;
	enum ptx_status st;

	if (!diag)
		diag = &none;
	*diag = (struct ptx_diag){0};
	if (k->bad) {
		ptx_diag_set(diag, k->bad_line, "kernel %.80s: %s is not supported", k->info.name,
			     k->bad_text);
		return k->bad;
	}
	st = ptx_launch_check(k, l, diag);
	if (st != PTX_OK)
		return st;
	g.l.param_bytes = k->info.param_bytes;
	g.params = malloc(k->info.param_bytes + 1);
	if (!g.params) {
		ptx_diag_set(diag, 0, "out of memory");
		return PTX_NO_MEMORY;
	}
	if (k->info.param_bytes)
		memcpy(g.params, l->params, k->info.param_bytes);
	if (m->plain)
		g.seen = calloc(m->ncode, 1);
	if ((m->plain && !g.seen) || !workspace(&g, diag)) {
		free(g.seen);
		free(g.params);
		return PTX_NO_MEMORY;
	}
	lay_out_shared(&g);
	g.id = atomic_fetch_add(&launches, 1);
	g.nblocks = (uint64_t)l->grid[0] * l->grid[1] * l->grid[2];
	g.fuel = l->cooperative ? FUEL_COOPERATIVE : FUEL;
	pthread_mutex_init(&g.lock, NULL);
	pthread_mutex_lock(&m->heap_lock);
	m->running++;
	pthread_mutex_unlock(&m->heap_lock);
	ptx_pool_run(&g, m->env.threads);
	st = ptx_runtime_end(&g, tails, diag);
	pthread_mutex_lock(&m->heap_lock);
	if (!--m->running)
		ptx_heap_sweep(m, false);
	pthread_mutex_unlock(&m->heap_lock);
	pthread_mutex_destroy(&g.lock);
	if (g.workspace)
		m->env.free(m->env.ctx, g.workspace);
	free(g.seen);
	free(g.params);
	return st;
}

enum ptx_status ptx_run(const struct ptx_kernel *k, const struct ptx_launch *l,
			struct ptx_diag *diag)
{
	return run_launch(k, l, 0, NULL, diag);
}
