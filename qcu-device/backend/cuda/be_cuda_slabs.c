// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Small allocations. CUDA divides slabs of 2 MiB for them, and takes 6 us on an H100 to allocate
 * and free 64 KiB. The mirror has work of its own for each, so here such slabs are divided without
 * CUDA. One that is empty again is kept for the next (be_cuda_kept.c), or goes back to CUDA.
 *
 * CUDA takes 75 us to allocate and free a slab, of 2 MiB as of 8 MiB. So a program that uses many
 * has larger ones.
 *
 * The session is charged for whole slabs: one allocation keeps all of its slab.
 *
 * As cudaFree does, freeing an allocation waits until the device does not use it any more. The
 * content stays within the process that wrote it. If another process may have a slab open, nothing
 * new is allocated in it.
 */
#include <stdlib.h>

#include "qcu-device/backend/cuda/be_cuda.h"

#define SLAB  ((uint64_t)2 << 20)
#define LARGE ((uint64_t)8 << 20)
#define MANY  ((uint64_t)16 << 20) /* the memory of slabs from which on they are large */
#define MOST  ((uint64_t)1 << 20)  /* the largest allocation, as CUDA has it */
#define GRAIN 512u		   /* CUDA's own addresses are multiples of this */
#define LOOKS 64		   /* how many slabs are searched for room */

struct cu_slab {
	uint64_t addr;
	unsigned int dev;
	bool known; /* another process may have it open */
	bool open;  /* is in the list of those with room */
	uint32_t grains;
	uint32_t used, next; /* how many grains; where the search begins */
	LIST_ENTRY(cu_slab) link, room;
	uint64_t map[];
};

int cu_slabs_open(struct be *be)
{
	LIST_INIT(&be->slabs);
	LIST_INIT(&be->roomy);
	return pthread_mutex_init(&be->slab_lock, NULL) ? QCU_ERR_OperatingSystem : 0;
}

static uint32_t grains_of_size(uint64_t size)
{
	return (uint32_t)((size + GRAIN - 1) / GRAIN);
}

static uint64_t bytes_of_slab(const struct cu_slab *b)
{
	return (uint64_t)b->grains * GRAIN;
}

/* Returns the first of n free grains side by side, from `i` on. b->grains: there are none. */
static uint32_t find_free_grains(const struct cu_slab *b, uint32_t i, uint32_t n)
{
	uint32_t found = 0;

	while (found < n && i < b->grains) {
		uint32_t left = 64 - i % 64, some;
		uint64_t word = b->map[i / 64] >> i % 64;
		bool used = word & 1;

		if (used)
			word = ~word;
		some = word ? (uint32_t)__builtin_ctzll(word) : left;
		some = some < left ? some : left;
		found = used ? 0 : found + some;
		i += some;
	}
	return found < n ? b->grains : i - found;
}

static void set_grains(struct cu_slab *b, uint32_t at, uint32_t n, bool used)
{
	b->used = used ? b->used + n : b->used - n;
	while (n) {
		uint32_t bit = at % 64, some = n < 64 - bit ? n : 64 - bit;
		uint64_t mask = UINT64_MAX >> (64 - some) << bit;

		if (used)
			b->map[at / 64] |= mask;
		else
			b->map[at / 64] &= ~mask;
		at += some;
		n -= some;
	}
}

/* The slab with the newest room is searched first. */
static void set_open(struct be *be, struct cu_slab *b, bool open)
{
	if (b->open)
		LIST_REMOVE(b, room);
	if (open)
		LIST_INSERT_HEAD(&be->roomy, b, room);
	b->open = open;
}

static void add_slab(struct be *be, struct cu_slab *b)
{
	LIST_INSERT_HEAD(&be->slabs, b, link);
	atomic_fetch_add(&be->slab_bytes, bytes_of_slab(b));
	set_open(be, b, true);
}

static void take_out_slab(struct be *be, struct cu_slab *b)
{
	set_open(be, b, false);
	LIST_REMOVE(b, link);
	atomic_fetch_sub(&be->slab_bytes, bytes_of_slab(b));
}

/* Under the lock. False: there is no room in the slab. */
static bool take_slab_grains(struct be *be, struct cu_slab *b, uint32_t n, struct cu_range *r)
{
	uint32_t at;

	if (b->used + n > b->grains)
		return false;
	at = find_free_grains(b, b->next, n);
	if (at == b->grains)
		at = find_free_grains(b, 0, n);
	if (at == b->grains)
		return false;
	set_grains(b, at, n, true);
	b->next = at + n;
	if (b->used == b->grains)
		set_open(be, b, false);
	r->addr = b->addr + (uint64_t)at * GRAIN;
	r->slab = b;
	return true;
}

static bool divide_any(struct be *be, unsigned int dev, uint32_t n, struct cu_range *r)
{
	struct cu_slab *b;
	int looks = 0;

	LIST_FOREACH(b, &be->roomy, room) {
		if (b->dev == dev && take_slab_grains(be, b, n, r))
			return true;
		if (++looks == LOOKS)
			break;
	}
	return false;
}

/* at: where it must be, or 0. */
static struct cu_slab *slab_of_size(struct be *be, unsigned int dev, uint64_t size, uint64_t at)
{
	struct cu_slab *b = NULL;
	int ret;

	if (cu_charge(be, dev, size)) {
		b = calloc(1, sizeof(*b) + size / GRAIN / 8);
		if (b) {
			b->addr = at;
			ret = at ? cu_plot_at(be, dev, NULL, size, at)
				 : cu_kept_get(be, dev, size, &b->addr);
			if (ret || !b->addr) {
				free(b);
				b = NULL;
			}
		}
		if (!b)
			cu_uncharge(be, dev, size);
	}
	if (b) {
		b->dev = dev;
		b->grains = (uint32_t)(size / GRAIN);
	}
	return b;
}

/* NULL: there is no memory for a slab. */
static struct cu_slab *new_slab(struct be *be, unsigned int dev)
{
	struct cu_slab *b = NULL;

	if (atomic_load(&be->slab_bytes) >= MANY)
		b = slab_of_size(be, dev, LARGE, 0);
	return b ? b : slab_of_size(be, dev, SLAB, 0);
}

int cu_slab_alloc(struct be *be, unsigned int dev, uint64_t size, struct cu_range *r)
{
	struct cu_slab *b;
	bool found;
	int ret;

	if (size > MOST)
		return QCU_ERR_Success;
	/* If a kernel has failed, cudaMalloc says so. */
	ret = CU(be, cudaStreamQuery, cudaStreamLegacy);
	if (ret && ret != QCU_ERR_NotReady)
		return ret;
	pthread_mutex_lock(&be->slab_lock);
	found = divide_any(be, dev, grains_of_size(size), r);
	pthread_mutex_unlock(&be->slab_lock);
	b = found ? NULL : new_slab(be, dev);
	if (!b)
		return QCU_ERR_Success;
	pthread_mutex_lock(&be->slab_lock);
	add_slab(be, b);
	take_slab_grains(be, b, grains_of_size(size), r);
	pthread_mutex_unlock(&be->slab_lock);
	return QCU_ERR_Success;
}

static bool fits_in_block(const struct be_wanted *block, const struct cu_range *r)
{
	const uint64_t at = r->addr - block->addr;

	return (block->size == SLAB || block->size == LARGE) && r->size && r->size <= MOST &&
	       at % GRAIN == 0 && at < block->size && r->size <= block->size - at;
}

/* Under the lock. False: some of them are in use. */
static bool take_grains_at(struct be *be, struct cu_slab *b, uint32_t at, uint32_t n)
{
	uint32_t i;

	for (i = at; i < at + n; i++)
		if (b->map[i / 64] >> i % 64 & 1)
			return false;
	set_grains(b, at, n, true);
	set_open(be, b, b->used < b->grains);
	return true;
}

int cu_slab_at(struct be *be, const struct be_wanted *block, struct cu_range *r)
{
	struct cu_slab *b;
	bool there;

	if (!fits_in_block(block, r))
		return QCU_ERR_InvalidValue;
	pthread_mutex_lock(&be->slab_lock);
	LIST_FOREACH(b, &be->slabs, link)
		if (b->addr == block->addr)
			break;
	pthread_mutex_unlock(&be->slab_lock);
	there = b;
	if (!there)
		b = slab_of_size(be, r->dev, block->size, block->addr);
	if (!b)
		return QCU_ERR_MemoryAllocation;
	pthread_mutex_lock(&be->slab_lock);
	if (!there)
		add_slab(be, b);
	r->slab = b;
	there = b->dev == r->dev && bytes_of_slab(b) == block->size &&
		take_grains_at(be, b, (uint32_t)((r->addr - b->addr) / GRAIN),
			       grains_of_size(r->size));
	pthread_mutex_unlock(&be->slab_lock);
	return there ? QCU_ERR_Success : QCU_ERR_MemoryAllocation;
}

int cu_slab_free(struct be *be, const struct cu_range *r)
{
	struct cu_slab *b = r->slab;
	int ret = CU(be, cudaDeviceSynchronize);
	bool empty, known;

	pthread_mutex_lock(&be->slab_lock);
	set_grains(b, (uint32_t)((r->addr - b->addr) / GRAIN), grains_of_size(r->size), false);
	known = b->known;
	empty = !b->used;
	set_open(be, b, !known);
	if (empty)
		take_out_slab(be, b);
	pthread_mutex_unlock(&be->slab_lock);
	if (!empty)
		return ret;
	if (known || !cu_kept_add(be, b->dev, bytes_of_slab(b), b->addr))
		ret = cu_plot_free(be, b->addr);
	cu_uncharge(be, b->dev, bytes_of_slab(b));
	free(b);
	return ret;
}

uint64_t cu_slab_bytes(const struct cu_range *r)
{
	return bytes_of_slab(r->slab);
}

uint64_t cu_slab_addr(const struct cu_range *r)
{
	return r->slab->addr;
}

uint64_t cu_slab_known(struct be *be, const struct cu_range *r)
{
	pthread_mutex_lock(&be->slab_lock);
	r->slab->known = true;
	set_open(be, r->slab, false);
	pthread_mutex_unlock(&be->slab_lock);
	return r->addr - r->slab->addr;
}

/* Frees the slabs of the device, or of all devices. */
static void free_slabs_of(struct be *be, const unsigned int *dev, bool in_cuda)
{
	struct cu_slab *b, *next;

	pthread_mutex_lock(&be->slab_lock);
	for (b = LIST_FIRST(&be->slabs); b; b = next) {
		next = LIST_NEXT(b, link);
		if (dev && b->dev != *dev)
			continue;
		take_out_slab(be, b);
		if (in_cuda && !cu_use(be, b->dev))
			(void)cu_plot_free(be, b->addr);
		cu_uncharge(be, b->dev, bytes_of_slab(b));
		free(b);
	}
	pthread_mutex_unlock(&be->slab_lock);
}

void cu_slabs_forget(struct be *be, unsigned int dev)
{
	free_slabs_of(be, &dev, false);
}

void cu_slabs_close(struct be *be)
{
	free_slabs_of(be, NULL, true);
	pthread_mutex_destroy(&be->slab_lock);
}
