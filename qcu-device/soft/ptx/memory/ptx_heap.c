// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * malloc() and free() in kernels. Memory that a kernel frees is given back only when no launch of
 * the module runs: until then, other blocks may still have its address range in their caches of
 * allowed ranges.
 */
#include <stdlib.h>

#include "qcu-device/soft/ptx/memory/ptx_mem.h"

struct ptx_heap {
	uint64_t addr, size;
	bool freed;
	struct ptx_heap *next;
};

/* Bytes that an allocation takes from heap_quota in addition to its size. */
#define COST 16u

static bool take_heap_quota(struct ptx_heap_quota *quota, uint64_t size)
{
	uint64_t left;

	if (!quota)
		return true;
	atomic_store_explicit(&quota->used, true, memory_order_relaxed);
	left = atomic_load(&quota->bytes);
	do {
		if (size > left)
			return false;
	} while (!atomic_compare_exchange_weak(&quota->bytes, &left, left - size));
	return true;
}

static void return_heap_quota(struct ptx_heap_quota *quota, uint64_t size)
{
	if (quota)
		atomic_fetch_add(&quota->bytes, size);
}

uint64_t ptx_heap_alloc(struct ptx_module *m, uint64_t size)
{
	struct ptx_heap *h = malloc(sizeof(*h));
	uint64_t cost;

	if (!h)
		return 0;
	if (__builtin_add_overflow(size, COST, &cost) ||
	    !take_heap_quota(m->env.heap_quota, cost)) {
		free(h);
		return 0;
	}
	h->freed = false;
	h->size = cost;
	h->addr = m->env.alloc(m->env.ctx, size);
	if (!h->addr) {
		return_heap_quota(m->env.heap_quota, cost);
		free(h);
		return 0;
	}
	pthread_mutex_lock(&m->heap_lock);
	h->next = m->heap;
	m->heap = h;
	pthread_mutex_unlock(&m->heap_lock);
	return h->addr;
}

bool ptx_heap_free(struct ptx_module *m, uint64_t addr)
{
	struct ptx_heap *h;
	bool ok = false;

	pthread_mutex_lock(&m->heap_lock);
	for (h = m->heap; h && h->addr != addr; h = h->next)
		;
	if (h && !h->freed) {
		h->freed = true;
		return_heap_quota(m->env.heap_quota, h->size);
		ok = true;
	}
	pthread_mutex_unlock(&m->heap_lock);
	return ok;
}

/*
 * Frees what kernels have freed; all: everything. Called with heap_lock held and no launch running,
 * or when the module is unloaded.
 */
void ptx_heap_sweep(struct ptx_module *m, bool all)
{
	struct ptx_heap **p, *h;

	for (p = &m->heap; (h = *p);) {
		if (!all && !h->freed) {
			p = &h->next;
			continue;
		}
		*p = h->next;
		if (!h->freed)
			return_heap_quota(m->env.heap_quota, h->size);
		m->env.free(m->env.ctx, h->addr);
		free(h);
	}
}
