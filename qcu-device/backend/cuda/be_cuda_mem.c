// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Device memory of the cuda backend, and the table of what exists. CUDA itself answers a wild
 * address with an error that ends the whole process's use of the GPU, or does not answer at all. So
 * the device must check the address before. The table also makes sure that only what was given out
 * is ever freed.
 */
#include <stdlib.h>
#include <string.h>

#include "qcu-device/backend/cuda/be_cuda.h"

_Atomic uint64_t cu_mem_gone;

/* The range with this number. Called under the lock. */
static struct cu_range *range(const struct be *be, size_t i)
{
	return (struct cu_range *)be->ranges.v + i;
}

int cu_mem_open(struct be *be)
{
	be->ranges.size = sizeof(struct cu_range);
	if (pthread_rwlock_init(&be->range_lock, NULL) || cu_plots_open(be) || cu_slabs_open(be) ||
	    cu_lots_open(be))
		return QCU_ERR_OperatingSystem;
	return cu_kept_open(be);
}

void cu_mem_close(struct be *be)
{
	size_t i;

	for (i = 0; i < be->ranges.count; i++) {
		const struct cu_range *r = range(be, i);

		if (r->module || r->imported || r->seen || r->slab || r->lot || cu_use(be, r->dev))
			continue;
		(void)cu_plot_free(be, r->addr);
	}
	cu_slabs_close(be);
	cu_lots_close(be);
	cu_kept_close(be);
	cu_plots_close(be);
	sorted_free(&be->ranges);
	atomic_fetch_add(&cu_mem_gone, 1);
	pthread_rwlock_destroy(&be->range_lock);
}

/* Adds a range. A range that is there already (a variable asked for again) stays as it is. */
int cu_mem_add(struct be *be, const struct cu_range *r)
{
	struct cu_range *new = NULL;
	bool there;
	size_t at;

	pthread_rwlock_wrlock(&be->range_lock);
	at = sorted_upto(&be->ranges, r->addr);
	there = at && range(be, at - 1)->addr == r->addr;
	if (!there)
		new = sorted_insert(&be->ranges, at);
	if (new)
		*new = *r;
	pthread_rwlock_unlock(&be->range_lock);
	return there || new ? QCU_ERR_Success : QCU_ERR_MemoryAllocation;
}

/* Takes out the ranges of a module. Without a module: all ranges of a device. */
static void take_out_ranges(struct be *be, const struct be_module *m, unsigned int dev)
{
	size_t i, kept = 0;

	pthread_rwlock_wrlock(&be->range_lock);
	for (i = 0; i < be->ranges.count; i++) {
		const struct cu_range *r = range(be, i);

		/* Mappings do not belong to a device's context. */
		if (m ? r->module == m : r->dev == dev && !r->seen) {
			cu_uncharge(be, r->dev, r->charged);
			continue;
		}
		*range(be, kept++) = *r;
	}
	be->ranges.count = kept;
	atomic_fetch_add(&cu_mem_gone, 1);
	pthread_rwlock_unlock(&be->range_lock);
}

void cu_mem_forget(struct be *be, const struct be_module *m)
{
	take_out_ranges(be, m, 0);
}

void cu_mem_reset(struct be *be, unsigned int dev)
{
	take_out_ranges(be, NULL, dev);
	cu_slabs_forget(be, dev);
	cu_pools_forget(be, dev);
	cu_kept_forget(be, dev);
}

/* Frees memory that is not in the table. The device is current. */
static int free_range_memory(struct be *be, const struct cu_range *r)
{
	int ret = QCU_ERR_Success;

	if (r->slab)
		return cu_slab_free(be, r);
	if (r->lot)
		return cu_lot_end(be, r);
	if (!r->keep || !cu_kept_add(be, r->dev, r->size, r->addr))
		ret = cu_plot_free(be, r->addr);
	cu_uncharge(be, r->dev, r->charged);
	return ret;
}

/* A whole allocation of CUDA. */
static int take_whole(struct be *be, struct cu_range *r)
{
	int ret;

	r->charged = cu_units(r->size);
	if (!cu_charge(be, r->dev, r->charged))
		return QCU_ERR_MemoryAllocation;
	ret = cu_kept_get(be, r->dev, r->size, &r->addr);
	if (ret || !r->addr)
		cu_uncharge(be, r->dev, r->charged);
	return ret;
}

int cu_mem_clear(struct be *be, const struct cu_range *r)
{
	int ret = CU(be, cudaMemset, (void *)(uintptr_t)r->addr, 0, r->size);

	return ret ? ret : CU(be, cudaDeviceSynchronize);
}

/* Memory at the next wanted address. */
static int take_wanted(struct be *be, unsigned int dev, uint64_t size, struct cu_range *r)
{
	const struct be_wanted *w = be->wanted;
	int ret;

	if (!be->wanted_count || w->dev != dev || !w->addr)
		return QCU_ERR_MemoryAllocation;
	/* Memory that was freed may still be kept there. */
	(void)cu_kept_drop(be, dev);
	r->addr = w->addr;
	if (be->wanted_count > 1) {
		ret = cu_slab_at(be, w + 1, r);
	} else {
		r->charged = cu_units(size);
		if (!cu_charge(be, dev, r->charged))
			return QCU_ERR_MemoryAllocation;
		ret = cu_plot_at(be, dev, NULL, size, w->addr);
		if (ret)
			cu_uncharge(be, dev, r->charged);
	}
	if (ret)
		return ret;
	ret = cu_mem_clear(be, r);
	if (!ret) {
		/* After a failure it is still wanted: the mirror may make room and ask again. */
		be->wanted_count = 0;
		return ret;
	}
	if (r->slab)
		(void)cu_slab_free(be, r);
	else
		(void)cu_plot_free(be, r->addr);
	cu_uncharge(be, dev, r->charged);
	return ret;
}

int cu_mem_alloc(struct be *be, unsigned int dev, uint64_t size, uint64_t *addr)
{
	struct cu_range r = {.size = size, .dev = dev, .keep = true};
	int ret = cu_use(be, dev);

	*addr = 0;
	if (!ret && be->wanting)
		ret = take_wanted(be, dev, size, &r);
	if (!ret && !r.addr)
		ret = cu_slab_alloc(be, dev, size, &r);
	if (!ret && !r.addr)
		ret = take_whole(be, &r);
	if (ret || !r.addr)
		return ret;
	ret = cu_mem_add(be, &r);
	if (ret) {
		free_range_memory(be, &r);
		return ret;
	}
	*addr = r.addr;
	return QCU_ERR_Success;
}

/* pooled: only if it may be of a pool. */
static bool take_range_at(struct be *be, uint64_t addr, bool imported, bool pooled,
			  struct cu_range *r)
{
	bool found = false;
	size_t at;

	pthread_rwlock_wrlock(&be->range_lock);
	at = sorted_upto(&be->ranges, addr);
	if (at && range(be, at - 1)->addr == addr && !range(be, at - 1)->module &&
	    !range(be, at - 1)->seen && range(be, at - 1)->imported == imported &&
	    (!pooled || range(be, at - 1)->lot || (!be->movable && !range(be, at - 1)->slab))) {
		*r = *range(be, --at);
		found = true;
		sorted_remove(&be->ranges, at);
		atomic_fetch_add(&cu_mem_gone, 1);
	}
	pthread_rwlock_unlock(&be->range_lock);
	return found;
}

bool cu_mem_take(struct be *be, uint64_t addr, struct cu_range *r)
{
	return take_range_at(be, addr, false, true, r);
}

bool cu_mem_take_import(struct be *be, uint64_t addr, struct cu_range *r)
{
	return take_range_at(be, addr, true, false, r);
}

int cu_mem_free(struct be *be, uint64_t addr)
{
	struct cu_range r;
	int ret;

	if (!addr)
		return QCU_ERR_Success;
	/*
	 * Take it out of the table first: the same address may be given out again during cudaFree.
	 */
	if (!take_range_at(be, addr, false, false, &r))
		return QCU_ERR_InvalidValue;
	ret = cu_use(be, r.dev);
	return ret ? ret : free_range_memory(be, &r);
}

void cu_mem_lots_near(struct be *be, uint64_t addr, struct cu_lots_near *near)
{
	size_t at;

	pthread_rwlock_rdlock(&be->range_lock);
	at = sorted_upto(&be->ranges, addr);
	near->before = at ? range(be, at - 1)->lot : NULL;
	near->after = at < be->ranges.count ? range(be, at)->lot : NULL;
	pthread_rwlock_unlock(&be->range_lock);
}

uint64_t cu_mem_taken(struct be *be, uint64_t addr)
{
	const struct cu_range *r;
	uint64_t taken = 0;
	size_t at;

	pthread_rwlock_rdlock(&be->range_lock);
	at = sorted_upto(&be->ranges, addr);
	r = at ? range(be, at - 1) : NULL;
	if (r && r->addr == addr)
		taken = r->slab ? cu_slab_bytes(r) : r->charged;
	pthread_rwlock_unlock(&be->range_lock);
	return taken;
}

uint64_t cu_mem_known_elsewhere(struct be *be, uint64_t addr)
{
	struct cu_range *r;
	uint64_t offset = 0;
	size_t at;

	pthread_rwlock_wrlock(&be->range_lock);
	at = sorted_upto(&be->ranges, addr);
	r = at ? range(be, at - 1) : NULL;
	if (r && r->addr == addr && r->slab)
		offset = cu_slab_known(be, r);
	else if (r && r->addr == addr)
		r->keep = false;
	pthread_rwlock_unlock(&be->range_lock);
	return offset;
}

int cu_mem_see(struct be *be, uint64_t addr, uint64_t size, unsigned int dev, bool seen)
{
	const struct cu_range new = {.addr = addr, .size = size, .dev = dev, .seen = 1ull << dev};
	struct cu_range *r;
	bool there;
	size_t at;

	pthread_rwlock_wrlock(&be->range_lock);
	at = sorted_upto(&be->ranges, addr);
	r = at ? range(be, at - 1) : NULL;
	there = r && r->addr == addr;
	if (there && seen)
		r->seen |= 1ull << dev;
	else if (there)
		r->seen &= ~(1ull << dev);
	if (there && !r->seen)
		sorted_remove(&be->ranges, at - 1);
	if (!seen)
		atomic_fetch_add(&cu_mem_gone, 1);
	pthread_rwlock_unlock(&be->range_lock);
	return there || !seen ? (int)QCU_ERR_Success : cu_mem_add(be, &new);
}

void cu_mem_unsee(struct be *be, uint64_t addr)
{
	size_t at;

	pthread_rwlock_wrlock(&be->range_lock);
	at = sorted_upto(&be->ranges, addr);
	if (at && range(be, at - 1)->addr == addr)
		sorted_remove(&be->ranges, at - 1);
	atomic_fetch_add(&cu_mem_gone, 1);
	pthread_rwlock_unlock(&be->range_lock);
}

/* Does [addr, addr + len) lie in mappings side by side, the first with this number? */
static bool in_mappings(const struct be *be, size_t at, uint64_t addr, uint64_t len)
{
	for (; at < be->ranges.count; at++) {
		const struct cu_range *r = range(be, at);
		uint64_t off = addr - r->addr;

		if (!r->seen || addr < r->addr || off >= r->size)
			return false;
		if (len <= r->size - off)
			return true;
		len -= r->size - off;
		addr = r->addr + r->size;
	}
	return false;
}

bool cu_mem_valid(struct be *be, uint64_t addr, uint64_t len)
{
	bool valid = false;
	size_t at;

	pthread_rwlock_rdlock(&be->range_lock);
	at = sorted_upto(&be->ranges, addr);
	if (at) {
		const struct cu_range *r = range(be, at - 1);
		uint64_t off = addr - r->addr;

		valid = off <= r->size && len <= r->size - off;
		if (!valid && r->seen)
			valid = in_mappings(be, at - 1, addr, len);
	}
	pthread_rwlock_unlock(&be->range_lock);
	return valid;
}

int cu_mem_info(struct be *be, unsigned int dev, uint64_t *free, uint64_t *total)
{
	size_t f = 0, t = 0;
	int ret;

	cu_pools_settle(be, dev);
	ret = cu_use(be, dev);
	if (!ret)
		ret = CU(be, cudaMemGetInfo, &f, &t);
	*free = f + cu_kept_bytes(be, dev);
	*total = t;
	return ret;
}
