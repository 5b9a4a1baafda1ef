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
#include <sys/random.h>

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

/*
 * All device memory lies in one range of addresses, the area. Each mirror reserves it at the same
 * place, where nothing else is: above what the mirror and CUDA map (gap.h), below what it sets
 * aside for guests (window.c). So the addresses of a session are free in another mirror. CUDA gives
 * a large reservation the address that it is asked for. It does not give it to a small one, as long
 * as it has room elsewhere.
 */
#define AREA_MOST  (8ull << 40)
#define AREA_LEAST (256ull << 30)
#define FILLERS	   256 /* of 32 MiB each: more room than CUDA has for itself */

/* The lock of the area is held in the next four functions. */
static int open_area(struct be *be)
{
	struct cu_place *p = &be->place;
	uint64_t size = AREA_MOST, random;
	CUdeviceptr at = 0;
	int ret = 0;

	if (p->area_tried)
		return QCU_ERR_Success;
	for (; size >= AREA_LEAST && at != CU_AREA; size /= 2) {
		ret = CU_DRIVER(be, reserve, &at, size, 0, CU_AREA, 0);
		if (ret && ret != QCU_ERR_MemoryAllocation && ret != QCU_ERR_InvalidValue)
			return ret;
		if (!ret && at == CU_AREA)
			p->area_size = size;
		else if (!ret)
			CU_DRIVER(be, unreserve, at, size);
	}
	p->area_tried = true;
	p->area_taken.size = sizeof(struct be_wanted);
	/* Two mirrors, of which one gets the other's session, begin at different places. */
	if (p->area_size && getrandom(&random, sizeof(random), 0) == sizeof(random))
		p->area_next = random % p->area_size;
	return QCU_ERR_Success;
}

static bool is_in_area(const struct cu_place *p, uint64_t addr, uint64_t size)
{
	return addr >= CU_AREA && size <= p->area_size && addr - CU_AREA <= p->area_size - size;
}

/* Takes this place, or says where what is in the way ends. Returns 0 if there is no memory. */
static uint64_t take_place(struct cu_place *p, uint64_t addr, uint64_t size)
{
	struct be_wanted *r = (struct be_wanted *)p->area_taken.v;
	size_t i = sorted_upto(&p->area_taken, addr);

	if (i && r[i - 1].addr + r[i - 1].size > addr)
		return r[i - 1].addr + r[i - 1].size;
	if (i < p->area_taken.count && r[i].addr < addr + size)
		return r[i].addr + r[i].size;
	r = sorted_insert(&p->area_taken, i);
	if (!r)
		return 0;
	*r = (struct be_wanted){.addr = addr, .size = size};
	p->area_next = addr + size - CU_AREA;
	return addr;
}

/* The first place behind the last one that was taken; then from the beginning. 0: none. */
static uint64_t take_any_place(struct cu_place *p, uint64_t size, uint64_t align)
{
	const uint64_t grain = align > CU_UNIT ? align : CU_UNIT;
	uint64_t at = CU_AREA + p->area_next, end;
	unsigned int turns = 0;

	for (;;) {
		at = (at + grain - 1) / grain * grain;
		if (!is_in_area(p, at, size)) {
			if (turns++)
				return 0;
			at = CU_AREA;
			continue;
		}
		end = take_place(p, at, size);
		if (!end || end == at)
			return end;
		at = end;
	}
}

int cu_reserve_there(struct be *be, uint64_t size, uint64_t addr)
{
	CUdeviceptr got[FILLERS];
	unsigned int n = 0;
	bool there = false;
	int ret = 0;

	while (n < FILLERS && !there && !ret) {
		ret = CU_DRIVER(be, reserve, &got[n], size, 0, (CUdeviceptr)addr, 0);
		there = !ret && got[n] == addr;
		n += !ret && !there;
	}
	while (n--)
		CU_DRIVER(be, unreserve, got[n], size);
	return there || ret ? ret : (int)QCU_ERR_NotSupported;
}

static int reserve_of_cuda(struct be *be, uint64_t size, uint64_t align, uint64_t wanted,
			   CUdeviceptr *at)
{
	int ret;

	if (wanted) {
		ret = cu_in_window(wanted, size) ? (int)QCU_ERR_NotSupported
						 : cu_reserve_there(be, size, wanted);
		*at = ret ? 0 : wanted;
		return ret == QCU_ERR_NotSupported ? (int)QCU_ERR_MemoryAllocation : ret;
	}
	ret = CU_DRIVER(be, reserve, at, size, align, 0, 0);
	if (ret || !cu_in_window(*at, size))
		return ret;
	CU_DRIVER(be, unreserve, *at, size);
	return QCU_ERR_MemoryAllocation;
}

int cu_area_take(struct be *be, uint64_t size, uint64_t align, uint64_t wanted, CUdeviceptr *at)
{
	struct cu_place *p = &be->place;
	bool there = true;
	int ret;

	pthread_mutex_lock(&p->lock);
	ret = open_area(be);
	*at = 0;
	if (!ret && wanted && is_in_area(p, wanted, size))
		*at = take_place(p, wanted, size) == wanted ? wanted : 0;
	else if (!ret && !wanted && p->area_size)
		*at = take_any_place(p, size, align);
	else
		there = false;
	pthread_mutex_unlock(&p->lock);
	if (ret || *at)
		return ret;
	return there && wanted ? (int)QCU_ERR_MemoryAllocation
			       : reserve_of_cuda(be, size, align, wanted, at);
}

int cu_area_give(struct be *be, uint64_t addr, uint64_t size)
{
	struct cu_place *p = &be->place;
	bool there;
	size_t i;

	pthread_mutex_lock(&p->lock);
	there = is_in_area(p, addr, size);
	i = there ? sorted_upto(&p->area_taken, addr) : 0;
	if (i && ((struct be_wanted *)p->area_taken.v)[i - 1].addr == addr)
		sorted_remove(&p->area_taken, i - 1);
	/* What was taken last is the next place again. */
	if (p->area_next == addr + size - CU_AREA)
		p->area_next = addr - CU_AREA;
	pthread_mutex_unlock(&p->lock);
	return there ? (int)QCU_ERR_Success : CU_DRIVER(be, unreserve, (CUdeviceptr)addr, size);
}

int cu_reserve_wanted(struct be *be, uint64_t size, uint64_t align, uint64_t *addr)
{
	const uint64_t at = be->wanted_count ? be->wanted->addr : 0;
	CUdeviceptr p = 0;
	int ret;

	if (!be->place.possible || !at || at % CU_UNIT || (align && at % align) ||
	    cu_in_window(at, size))
		return QCU_ERR_MemoryAllocation;
	be->wanted_count = 0;
	ret = cu_area_take(be, size, 0, at, &p);
	if (!ret)
		*addr = p;
	return ret;
}

static void close_area(struct be *be)
{
	struct cu_place *p = &be->place;

	if (p->area_size)
		CU_DRIVER(be, unreserve, CU_AREA, p->area_size);
	sorted_free(&p->area_taken);
	p->area_size = 0;
	p->area_tried = false;
}

/*
 * CUDA reserves addresses in pieces of 32 MiB, where the caller asks for it or the kernel has room.
 * What is smaller gets room in the piece that was made last; a wanted address is followed if it is
 * free and in a piece, or if no piece has room. Modules get parts of units of such room when they
 * are first used: their variables, and what else they need. Modules share a unit, one behind the
 * other (all this was measured on an H200).
 *
 * So each process makes pieces of its own for CUDA, the rooms, where nothing else is. What room
 * CUDA has elsewhere is taken away before a module is first used. Then the variables of a session
 * lie where another process has room, too.
 */
#define ROOMS	     (CU_ROOMS / CU_PIECE)
#define OUTSIDE_MOST 4096u

uint64_t cu_unit_reserve(struct be *be, uint64_t wanted)
{
	CUdeviceptr at = 0;

	return CU_DRIVER(be, reserve, &at, CU_UNIT, 0, (CUdeviceptr)wanted, 0) ? 0 : at;
}

void cu_unit_free(struct be *be, uint64_t at)
{
	CU_DRIVER(be, unreserve, (CUdeviceptr)at, CU_UNIT);
}

/* The lock of the area is held in the next three functions. */
static bool keep_unit(struct be *be, uint64_t at)
{
	struct sorted *s = &be->place.outside;
	uint64_t *new = s->count < OUTSIDE_MOST ? sorted_insert(s, sorted_upto(s, at)) : NULL;

	if (new)
		*new = at;
	else
		cu_unit_free(be, at);
	return new;
}

/* Takes all room that is not in the rooms. The next room is here, if there is any. */
static void take_room_outside(struct be *be, uint64_t here)
{
	uint64_t at;

	do
		at = cu_unit_reserve(be, here);
	while (at && at != here && !cu_in_rooms(at) && keep_unit(be, at));
	if (at == here || cu_in_rooms(at))
		cu_unit_free(be, at);
}

/* The last unit stays reserved: CUDA gives back a piece in which nothing is. */
static bool make_room(struct be *be, uint64_t piece)
{
	uint64_t at, got;

	for (at = piece; at < piece + CU_PIECE; at += CU_UNIT) {
		got = cu_unit_reserve(be, at);
		if (got == at)
			continue;
		if (got)
			cu_unit_free(be, got);
		while (at > piece)
			cu_unit_free(be, at -= CU_UNIT);
		return false;
	}
	return keep_unit(be, at - CU_UNIT);
}

void cu_rooms_make(struct be *be)
{
	struct cu_place *p = &be->place;
	unsigned int made = 0;
	uint64_t at;

	if (!be->movable)
		return;
	pthread_mutex_lock(&p->lock);
	if (!p->rooms_made) {
		p->outside.size = sizeof(uint64_t);
		take_room_outside(be, CU_ROOMS_BEGIN);
		while (made < ROOMS && make_room(be, CU_ROOMS_BEGIN + made * CU_PIECE))
			made++;
		for (at = CU_ROOMS_BEGIN; at < CU_ROOMS_BEGIN + made * CU_PIECE; at += CU_UNIT)
			if ((at + CU_UNIT) % CU_PIECE)
				cu_unit_free(be, at);
		p->rooms_made = true;
	}
	pthread_mutex_unlock(&p->lock);
}

void cu_rooms_prefer(struct be *be)
{
	struct cu_place *p = &be->place;

	if (!be->movable || be->settling)
		return;
	pthread_mutex_lock(&p->lock);
	if (p->rooms_made)
		take_room_outside(be, CU_APART);
	pthread_mutex_unlock(&p->lock);
}

void cu_rooms_close(struct be *be)
{
	struct sorted *s = &be->place.outside;
	size_t i;

	for (i = 0; i < s->count; i++)
		cu_unit_free(be, ((const uint64_t *)s->v)[i]);
	sorted_free(s);
	be->place.rooms_made = false;
}

/* What is still held is free again. */
static void end_hold(struct be *be)
{
	const struct be_wanted *h = (const struct be_wanted *)be->held.v;
	size_t i;

	for (i = 0; i < be->held.count; i++)
		if (h[i].size)
			cu_area_give(be, h[i].addr, h[i].size);
	sorted_free(&be->held);
}

void cu_plots_close(struct be *be)
{
	end_hold(be);
	cu_rooms_close(be);
	close_area(be);
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

static int hold_place(struct be *be, const struct be_wanted *place)
{
	const uint64_t size = cu_units(place->size);
	size_t at = sorted_upto(&be->held, place->addr);
	struct be_wanted *h = (struct be_wanted *)be->held.v;
	CUdeviceptr got;
	int ret;

	/* Small memory of one slab has one place. */
	if (!size || place->addr % CU_UNIT || (at && h[at - 1].addr == place->addr))
		return QCU_ERR_Success;
	/* The context comes first: what CUDA needs for it has the same addresses in each process.
	 */
	ret = cu_use(be, place->dev);
	if (!ret)
		ret = cu_area_take(be, size, 0, place->addr, &got);
	h = ret ? NULL : sorted_insert(&be->held, at);
	if (h)
		*h = (struct be_wanted){.addr = place->addr, .size = size};
	else if (!ret)
		cu_area_give(be, place->addr, size);
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
	*ret = wanted && take_held(be, size, wanted) ? QCU_ERR_Success
						     : cu_area_take(be, size, 0, wanted, &at);
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
	err = cu_area_give(be, b->addr, b->size);
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
