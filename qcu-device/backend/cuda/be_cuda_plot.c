// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Where the memory of mem_alloc comes from. As a rule that is cudaMalloc. With options.movable it
 * is a plot of our own: reserved addresses, and parts of physical memory that are mapped there.
 * So a part can leave, and come back to its addresses (be_cuda_move.c). Whole allocations and
 * slabs of small ones are plots.
 *
 * What CUDA does by itself for memory of cudaMalloc is done here for plots: a device that gets
 * access to a peer may use the peer's plots, freeing a plot waits for the devices that may use
 * it, and a reset frees the plots of the device. CUDA clears physical memory that another process
 * has had.
 */
#include <stdlib.h>

#include "qcu-device/backend/cuda/be_cuda.h"

#define MOST ((uint64_t)1 << 40) /* of a plot: more than any device has */

/* An element of the table. */
struct plot_at {
	uint64_t addr;
	struct cu_plot *plot;
};

int cu_plots_open(struct be *be)
{
	be->plots.size = sizeof(struct plot_at);
	be->part_bytes = CU_PART;
	return pthread_mutex_init(&be->plot_lock, NULL) ? QCU_ERR_OperatingSystem : 0;
}

/* What is still held is free again. */
static void end_hold(struct be *be)
{
	const struct be_wanted *h = (const struct be_wanted *)be->held.v;
	size_t i;

	for (i = 0; i < be->held.count; i++)
		if (h[i].size)
			CU_DRIVER(be, unreserve, (CUdeviceptr)h[i].addr, h[i].size);
	sorted_free(&be->held);
}

void cu_plots_close(struct be *be)
{
	end_hold(be);
	sorted_free(&be->plots);
	pthread_mutex_destroy(&be->plot_lock);
}

/* The lock is held, as in all functions with a number or a place in the table. */
struct cu_plot *cu_plot_number(const struct be *be, size_t i)
{
	return i < be->plots.count ? ((struct plot_at *)be->plots.v)[i].plot : NULL;
}

struct cu_plot *cu_plot_around(const struct be *be, uint64_t addr)
{
	size_t at = sorted_upto(&be->plots, addr);
	struct cu_plot *b = at ? cu_plot_number(be, at - 1) : NULL;

	return b && addr - b->addr < b->size ? b : NULL;
}

/* NULL: no plot begins there. */
static struct cu_plot *take_plot(struct be *be, uint64_t addr)
{
	struct cu_plot *b = NULL;
	size_t at;

	pthread_mutex_lock(&be->plot_lock);
	at = sorted_upto(&be->plots, addr);
	if (at && cu_plot_number(be, at - 1)->addr == addr) {
		b = cu_plot_number(be, at - 1);
		sorted_remove(&be->plots, at - 1);
	}
	pthread_mutex_unlock(&be->plot_lock);
	return b;
}

static CUmemAccessDesc plot_access(unsigned int dev, unsigned int flags)
{
	return (CUmemAccessDesc){
		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = (int)dev},
		.flags = (CUmemAccess_flags)flags,
	};
}

/* What may the device do with the plot? */
static unsigned int find_plot_access(const struct be *be, const struct cu_plot *b, unsigned int dev)
{
	if (b->pool)
		return b->pool->access[dev];
	return dev == b->dev || atomic_load(&be->users[b->dev]) >> dev & 1
		       ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE
		       : CU_MEM_ACCESS_FLAGS_PROT_NONE;
}

int cu_plot_grant(struct be *be, const struct cu_plot *b, uint64_t addr, uint64_t bytes)
{
	CUmemAccessDesc access[CU_DEVICES];
	size_t count = 0;
	unsigned int i;

	for (i = 0; i < be->devices; i++)
		if (find_plot_access(be, b, i))
			access[count++] = plot_access(i, find_plot_access(be, b, i));
	return CU_DRIVER(be, access, (CUdeviceptr)addr, bytes, access, count);
}

/* A peer that gets access meanwhile finds the plot in the table, or is granted it here. */
static int open_plot(struct be *be, struct cu_plot *b)
{
	struct plot_at *new = NULL;
	int ret;

	pthread_mutex_lock(&be->plot_lock);
	ret = cu_plot_grant(be, b, b->addr, b->size);
	if (!ret)
		new = sorted_insert(&be->plots, sorted_upto(&be->plots, b->addr));
	if (new)
		*new = (struct plot_at){.addr = b->addr, .plot = b};
	pthread_mutex_unlock(&be->plot_lock);
	return ret || new ? ret : (int)QCU_ERR_MemoryAllocation;
}

int cu_part_map(struct be *be, struct cu_plot *b, unsigned int i)
{
	const CUmemAllocationProp prop = {
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = (int)b->dev},
	};
	struct cu_part *p = &b->part[i];
	int ret = CU_DRIVER(be, create, &p->memory, cu_part_bytes(b, i), &prop, 0);

	if (ret)
		return ret;
	ret = cu_part_put(be, b, i);
	if (ret)
		CU_DRIVER(be, release, p->memory);
	return ret;
}

int cu_part_put(struct be *be, const struct cu_plot *b, unsigned int i)
{
	return CU_DRIVER(be, map, (CUdeviceptr)cu_part_addr(b, i), cu_part_bytes(b, i), 0,
			 b->part[i].memory, 0);
}

int cu_part_unmap(struct be *be, const struct cu_plot *b, unsigned int i)
{
	int ret = CU_DRIVER(be, unmap, (CUdeviceptr)cu_part_addr(b, i), cu_part_bytes(b, i));

	return ret ? ret : CU_DRIVER(be, release, b->part[i].memory);
}

uint64_t cu_copy_bytes(const struct cu_plot *b, unsigned int i, unsigned int n)
{
	uint64_t rest = cu_part_bytes(b, i) - n * BE_PIECE;

	return rest < BE_PIECE ? rest : BE_PIECE;
}

unsigned int cu_copies(const struct cu_plot *b, unsigned int i)
{
	return (unsigned int)((cu_part_bytes(b, i) + BE_PIECE - 1) / BE_PIECE);
}

void cu_part_give(struct cu_plot *b, unsigned int i, unsigned int count)
{
	struct cu_part *p = &b->part[i];

	while (count--) {
		p->store.give(p->store.ctx, p->copy[count], cu_copy_bytes(b, i, count));
		p->copy[count] = NULL;
	}
}

/* There, or not at all. */
static int reserve_there(struct be *be, uint64_t size, uint64_t at)
{
	CUdeviceptr got = 0;
	int ret = CU_DRIVER(be, reserve, &got, size, 0, (CUdeviceptr)at, 0);

	if (ret || (got == at && !cu_in_window(at, size)))
		return ret;
	CU_DRIVER(be, unreserve, got, size);
	return QCU_ERR_MemoryAllocation;
}

static int hold_place(struct be *be, const struct be_wanted *place)
{
	const uint64_t size = cu_units(place->size);
	size_t at = sorted_upto(&be->held, place->addr);
	struct be_wanted *h = (struct be_wanted *)be->held.v;
	int ret;

	/* Small memory of one slab has one place. */
	if (!size || place->addr % CU_UNIT || (at && h[at - 1].addr == place->addr))
		return QCU_ERR_Success;
	/* The context comes first: what CUDA needs for it has the same addresses in each process.
	 */
	ret = cu_use(be, place->dev);
	if (!ret)
		ret = reserve_there(be, size, place->addr);
	h = ret ? NULL : sorted_insert(&be->held, at);
	if (h)
		*h = (struct be_wanted){.addr = place->addr, .size = size};
	else if (!ret)
		CU_DRIVER(be, unreserve, (CUdeviceptr)place->addr, size);
	return ret || h ? ret : (int)QCU_ERR_MemoryAllocation;
}

int cu_hold(struct be *be, const struct be_wanted *places, size_t count)
{
	int ret = QCU_ERR_Success;
	size_t i;

	if (!places)
		end_hold(be);
	else if (!be->movable)
		ret = QCU_ERR_NotSupported;
	be->held.size = sizeof(struct be_wanted);
	for (i = 0; i < count && !ret; i++)
		ret = hold_place(be, &places[i]);
	return ret;
}

/* Does the backend hold these addresses? Then they are the caller's now. */
static bool take_held(struct be *be, uint64_t size, uint64_t at)
{
	size_t i = sorted_upto(&be->held, at);
	struct be_wanted *h = i ? (struct be_wanted *)be->held.v + i - 1 : NULL;

	if (!h || h->addr != at || h->size != size)
		return false;
	h->size = 0;
	return true;
}

/* Anywhere. */
static int reserve_addresses(struct be *be, uint64_t size, CUdeviceptr *at)
{
	int ret = CU_DRIVER(be, reserve, at, size, 0, 0, 0);

	if (ret || !cu_in_window(*at, size))
		return ret;
	CU_DRIVER(be, unreserve, *at, size);
	return QCU_ERR_MemoryAllocation;
}

struct cu_plot *cu_plot_reserve(struct be *be, unsigned int dev, uint64_t size, uint64_t wanted,
				int *ret)
{
	const unsigned int parts = (unsigned int)((size + be->part_bytes - 1) / be->part_bytes);
	CUdeviceptr at = 0;
	struct cu_plot *b;

	*ret = QCU_ERR_MemoryAllocation;
	if (!size || size > MOST)
		return NULL;
	b = calloc(1, sizeof(*b) + parts * sizeof(*b->part));
	if (!b)
		return NULL;
	at = wanted;
	if (!wanted)
		*ret = reserve_addresses(be, size, &at);
	else if (take_held(be, size, wanted))
		*ret = QCU_ERR_Success;
	else
		*ret = reserve_there(be, size, wanted);
	if (*ret) {
		free(b);
		return NULL;
	}
	b->addr = at;
	b->size = size;
	b->part_bytes = be->part_bytes;
	b->dev = dev;
	b->parts = parts;
	return b;
}

/* Gives back the addresses and the first `mapped` parts. */
static int unreserve_plot(struct be *be, struct cu_plot *b, unsigned int mapped)
{
	int ret = QCU_ERR_Success, err;
	unsigned int i;

	for (i = 0; i < mapped; i++) {
		err = QCU_ERR_Success;
		if (b->part[i].state == CU_PART_AWAY)
			cu_part_give(b, i, cu_copies(b, i));
		else
			err = cu_part_unmap(be, b, i);
		ret = ret ? ret : err;
	}
	err = CU_DRIVER(be, unreserve, (CUdeviceptr)b->addr, b->size);
	free(b);
	return ret ? ret : err;
}

int cu_plot_finish(struct be *be, struct cu_plot *b, unsigned int mapped, int ret, uint64_t *addr)
{
	*addr = b->addr;
	if (!ret)
		ret = open_plot(be, b);
	if (!ret)
		return ret;
	*addr = 0;
	unreserve_plot(be, b, mapped);
	return ret;
}

/* A size that cannot be had would take all that is left, part by part, before it fails. */
static int check_room(struct be *be, uint64_t size)
{
	size_t free = 0, total = 0;
	int ret = CU(be, cudaMemGetInfo, &free, &total);

	return ret || size <= free ? ret : (int)QCU_ERR_MemoryAllocation;
}

/* at: where it must be, or 0. */
static int new_plot(struct be *be, unsigned int dev, const struct be_pool *pool, uint64_t size,
		    uint64_t at, uint64_t *addr)
{
	struct cu_plot *b;
	unsigned int i;
	/* If a kernel has failed, cudaMalloc says so. */
	int ret = CU(be, cudaStreamQuery, cudaStreamLegacy);

	if (ret && ret != QCU_ERR_NotReady)
		return ret;
	ret = size > be->part_bytes ? check_room(be, size) : QCU_ERR_Success;
	if (ret)
		return ret;
	b = cu_plot_reserve(be, dev, size, at, &ret);
	if (!b)
		return ret;
	b->pool = pool;
	for (i = 0; i < b->parts && !ret; i++)
		ret = cu_part_map(be, b, i);
	return cu_plot_finish(be, b, ret ? i - 1 : i, ret, addr);
}

int cu_plot_new(struct be *be, unsigned int dev, uint64_t size, uint64_t *addr)
{
	void *p = NULL;
	int ret;

	*addr = 0;
	if (be->movable)
		return new_plot(be, dev, NULL, cu_units(size), 0, addr);
	ret = CU(be, cudaMalloc, &p, size);
	*addr = (uintptr_t)p;
	return ret;
}

int cu_plot_at(struct be *be, unsigned int dev, const struct be_pool *p, uint64_t size, uint64_t at)
{
	uint64_t addr;

	if (!be->movable || !at || at % CU_UNIT || cu_in_window(at, cu_units(size)))
		return QCU_ERR_InvalidValue;
	return new_plot(be, dev, p, cu_units(size), at, &addr);
}

int cu_plot_of_pool(struct be *be, const struct be_pool *p, uint64_t size, uint64_t *addr)
{
	return new_plot(be, p->dev, p, cu_units(size), 0, addr);
}

/* The driver takes memory away at once, so all work that may use it must have ended. */
static int wait_for_users(struct be *be, const struct cu_plot *b)
{
	int ret = QCU_ERR_Success, err;
	const unsigned int dev = b->dev;
	unsigned int i;

	for (i = 0; i < be->devices; i++) {
		if (i == dev || !find_plot_access(be, b, i) || !atomic_load(&be->used[i]))
			continue;
		err = cu_use(be, i);
		if (!err)
			err = CU(be, cudaDeviceSynchronize);
		ret = ret ? ret : err;
	}
	err = cu_use(be, dev);
	if (!err)
		err = CU(be, cudaDeviceSynchronize);
	return ret ? ret : err;
}

int cu_plot_free(struct be *be, uint64_t addr)
{
	struct cu_plot *b = be->movable ? take_plot(be, addr) : NULL;
	int ret, err;

	if (!b)
		return CU(be, cudaFree, (void *)(uintptr_t)addr);
	ret = wait_for_users(be, b);
	if (b->offered)
		be_pass_withdraw_parts(&be->pass, &b->offer, b->parts);
	err = unreserve_plot(be, b, b->parts);
	return ret ? ret : err;
}

int cu_plot_drop(struct be *be, uint64_t addr)
{
	struct cu_plot *b = take_plot(be, addr);

	return b ? unreserve_plot(be, b, b->parts) : (int)QCU_ERR_InvalidValue;
}

int cu_plot_wait(struct be *be, uint64_t addr)
{
	const struct cu_plot *b;

	pthread_mutex_lock(&be->plot_lock);
	b = cu_plot_around(be, addr);
	pthread_mutex_unlock(&be->plot_lock);
	/* The caller frees something in it, so it stays. */
	return b ? wait_for_users(be, b) : (int)QCU_ERR_InvalidValue;
}

void cu_plots_reset(struct be *be, unsigned int dev)
{
	const struct cu_plot *b;
	uint64_t addr;
	size_t i = 0;

	pthread_mutex_lock(&be->plot_lock);
	while ((b = cu_plot_number(be, i))) {
		addr = b->addr;
		if (b->dev != dev) {
			i++;
			continue;
		}
		pthread_mutex_unlock(&be->plot_lock);
		(void)cu_plot_free(be, addr);
		pthread_mutex_lock(&be->plot_lock);
	}
	pthread_mutex_unlock(&be->plot_lock);
	/* The device and its peers must ask for access anew. */
	atomic_store(&be->users[dev], 0);
	for (i = 0; i < be->devices; i++)
		(void)cu_plots_peer(be, dev, (unsigned int)i, false);
}

/* What is away gets the access when it comes back. */
static int set_plot_access(struct be *be, const struct cu_plot *b, unsigned int dev,
			   unsigned int flags)
{
	const CUmemAccessDesc access = plot_access(dev, flags);
	unsigned int i;
	int ret = QCU_ERR_Success;

	for (i = 0; i < b->parts && !ret; i++)
		if (b->part[i].state == CU_PART_HERE)
			ret = CU_DRIVER(be, access, (CUdeviceptr)cu_part_addr(b, i),
					cu_part_bytes(b, i), &access, 1);
	return ret;
}

int cu_plots_peer(struct be *be, unsigned int dev, unsigned int peer, bool on)
{
	const uint64_t bit = UINT64_C(1) << dev;
	const struct cu_plot *b;
	int ret = QCU_ERR_Success;
	size_t i;

	if (!be->movable || dev == peer || on == !!(atomic_load(&be->users[peer]) & bit))
		return ret;
	pthread_mutex_lock(&be->plot_lock);
	if (on)
		atomic_fetch_or(&be->users[peer], bit);
	else
		atomic_fetch_and(&be->users[peer], ~bit);
	for (i = 0; (b = cu_plot_number(be, i)) && !ret; i++)
		if (b->dev == peer && !b->pool)
			ret = set_plot_access(be, b, dev, find_plot_access(be, b, dev));
	pthread_mutex_unlock(&be->plot_lock);
	return ret;
}

int cu_plots_access(struct be *be, struct be_pool *p, unsigned int dev, uint8_t flags)
{
	const struct cu_plot *b;
	int ret = QCU_ERR_Success;
	size_t i;

	pthread_mutex_lock(&be->plot_lock);
	p->access[dev] = flags;
	for (i = 0; (b = cu_plot_number(be, i)) && !ret; i++)
		if (b->pool == p)
			ret = set_plot_access(be, b, dev, flags);
	pthread_mutex_unlock(&be->plot_lock);
	return ret;
}

bool cu_plot_place(struct be *be, uint64_t addr, struct be_wanted *place)
{
	const struct cu_plot *b;

	pthread_mutex_lock(&be->plot_lock);
	b = cu_plot_around(be, addr);
	if (b)
		*place = (struct be_wanted){.addr = b->addr, .size = b->size, .dev = b->dev};
	pthread_mutex_unlock(&be->plot_lock);
	return b;
}

bool cu_plot_here(struct be *be, uint64_t addr)
{
	const struct cu_plot *b;
	bool here = true;
	unsigned int i;

	if (!be->movable)
		return true;
	pthread_mutex_lock(&be->plot_lock);
	b = cu_plot_around(be, addr);
	for (i = 0; b && i < b->parts; i++)
		here = here && b->part[i].state == CU_PART_HERE;
	pthread_mutex_unlock(&be->plot_lock);
	return here;
}
