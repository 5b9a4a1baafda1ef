// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Sessions that are saved and restored. CUDA gives memory at an address that is asked for, as plots
 * (be_cuda_plot.c). It does not for the variables of modules, and nothing says where the code of
 * kernels is. A fresh process that loads the same modules in the same order has them at the same
 * addresses as a rule: so they are compared, and a difference is an error.
 */
#include <stdlib.h>

#include "qcu-device/backend/cuda/be_cuda.h"
#include "qcu-device/backend/image.h"
#include "qcu-device/base/spin.h"

static bool is_memory_away(struct be *be)
{
	unsigned int dev;

	for (dev = 0; dev < be->devices; dev++)
		if (cu_mem_away(be, dev))
			return true;
	return false;
}

static bool has_managed_variables(struct be *be)
{
	bool found = false;
	size_t i;

	pthread_rwlock_rdlock(&be->range_lock);
	for (i = 0; i < be->ranges.count && !found; i++)
		found = ((const struct cu_range *)be->ranges.v + i)->managed;
	pthread_rwlock_unlock(&be->range_lock);
	return found;
}

const char *cu_unsaved(struct be *be, bool *busy)
{
	int ret = cu_streams_query(be, busy);

	if (ret)
		return "an error has not been reported to the program yet, or has ended its work";
	if (*busy)
		return "the GPU still works for it";
	if (!be->movable)
		return "CUDA chooses the addresses of its memory, unless memory may leave (--swap)";
	if (has_managed_variables(be))
		return "it has managed variables, whose memory CUDA places";
	return is_memory_away(be) ? "memory of it is not on the GPU" : NULL;
}

void cu_want(struct be *be, const struct be_wanted *wanted, size_t count)
{
	be->wanting = wanted;
	be->wanted = wanted;
	be->wanted_count = count;
}

bool cu_mem_block(struct be *be, uint64_t addr, struct be_wanted *block)
{
	const struct cu_range *r;
	bool found = false, pooled;
	size_t at;

	pthread_rwlock_rdlock(&be->range_lock);
	at = sorted_upto(&be->ranges, addr);
	r = at ? (const struct cu_range *)be->ranges.v + at - 1 : NULL;
	if (r && r->addr == addr && r->slab) {
		*block = (struct be_wanted){
			.addr = cu_slab_addr(r), .size = cu_slab_bytes(r), .dev = r->dev};
		found = true;
	}
	pooled = r && r->addr == addr && r->lot;
	pthread_rwlock_unlock(&be->range_lock);
	return found || (pooled && cu_plot_place(be, addr, block));
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

/* ---- variables ---- */

/* The module's variables on one device, from number `count` on. Returns how many there are then. */
static size_t find_variables(struct be *be, struct be_module *m, unsigned int dev,
			     const struct image_names *names, struct be_wanted *to, size_t max,
			     size_t count)
{
	struct be_wanted p = {.dev = dev};
	size_t i;

	/* The image may have code for other GPUs, with other variables. */
	for (i = 0; i < names->count; i++)
		if (!cu_var_find(be, dev, m, names->name[i], &p.addr, &p.size) && p.size &&
		    count++ < max)
			to[count - 1] = p;
	return count;
}

size_t cu_module_vars(struct be *be, struct be_module *m, const struct image_names *names,
		      struct be_wanted *wanted, size_t max)
{
	unsigned int dev;
	size_t count = 0;

	for (dev = 0; dev < be->devices; dev++)
		if (atomic_load(&be->used[dev]))
			count = find_variables(be, m, dev, names, wanted, max, count);
	return count;
}

/* Is the device one of those where variables are wanted? */
static bool is_wanted_on(const struct be_module *m, unsigned int dev)
{
	size_t i;

	for (i = 0; i < m->wanted_count; i++)
		if (m->wanted[i].dev == dev)
			return true;
	return false;
}

/*
 * CUDA reserves addresses in pieces of 32 MiB, at the address that the caller asks for or where the
 * kernel has room. What is smaller gets room in a piece that exists; a wanted address is followed
 * if it is free and in a piece, or if no piece has room (measured on an H200). The variables of a
 * module get units of such room when they are first asked for. So all room that they should not
 * have is reserved meanwhile.
 */
#define PIECE ((uint64_t)32 << 20)
#define FILLS 1024u
#define UNITS 256u
#define APART (CU_AREA - PIECE) /* a piece that nobody else has */

struct fill {
	struct be *be;
	size_t count;
	struct be_wanted at[FILLS];
};

/* Returns where it is, or 0. */
static uint64_t fill_room(struct fill *f, uint64_t size, uint64_t wanted)
{
	CUdeviceptr at = 0;

	if (f->count == FILLS || CU_DRIVER(f->be, reserve, &at, size, 0, (CUdeviceptr)wanted, 0))
		return 0;
	f->at[f->count++] = (struct be_wanted){.addr = at, .size = size};
	return at;
}

static void free_room(struct fill *f, size_t i)
{
	CU_DRIVER(f->be, unreserve, (CUdeviceptr)f->at[i].addr, f->at[i].size);
	f->at[i] = f->at[--f->count];
}

/* Makes CUDA reserve a new piece, there if it can be, and takes all of it in single units. */
static void fill_new_piece(struct fill *f, uint64_t wanted)
{
	const uint64_t base = fill_room(f, CU_UNIT, wanted);
	uint64_t at;

	for (at = base + CU_UNIT; base && at < base + PIECE; at += CU_UNIT)
		fill_room(f, CU_UNIT, at);
}

/* All room that CUDA has, in single units. */
static void fill_all(struct fill *f)
{
	uint64_t at;

	do
		at = fill_room(f, CU_UNIT, APART);
	while (at && at != APART);
	if (at)
		fill_room(f, PIECE - CU_UNIT, APART + CU_UNIT);
}

/* The units in which the module's variables should be; no more than UNITS of them. */
static size_t list_units(const struct be_module *m, uint64_t *unit)
{
	size_t i, k, n = 0;
	uint64_t at;

	for (i = 0; i < m->wanted_count; i++) {
		const struct be_wanted *w = &m->wanted[i];

		for (at = w->addr / CU_UNIT * CU_UNIT; at < w->addr + w->size; at += CU_UNIT) {
			for (k = 0; k < n && unit[k] != at; k++)
				;
			if (k == n && n == UNITS)
				return n;
			if (k == n)
				unit[n++] = at;
		}
	}
	return n;
}

static size_t find_fill(const struct fill *f, uint64_t addr, uint64_t size)
{
	size_t i;

	for (i = 0; i < f->count && f->at[i].addr / size != addr / size; i++)
		;
	return i;
}

/* Lets CUDA have no room but that of the module's variables, as far as it goes. */
static void fill_around(struct fill *f, const struct be_module *m)
{
	uint64_t unit[UNITS];
	size_t i, k, n = list_units(m, unit);

	/* It is what CUDA would choose. */
	if (n == 1 && fill_room(f, CU_UNIT, 0) == unit[0]) {
		free_room(f, 0);
		return;
	}
	fill_all(f);
	for (i = 0; i < n; i++)
		if (find_fill(f, unit[i], PIECE) == f->count)
			fill_new_piece(f, unit[i] / PIECE * PIECE);
	for (i = 0; i < n; i++) {
		k = find_fill(f, unit[i], CU_UNIT);
		if (k < f->count && f->at[k].size == CU_UNIT)
			free_room(f, k);
	}
}

static size_t find_wanted(struct be *be, struct be_module *m, const struct image_names *names,
			  struct be_wanted *to)
{
	struct fill *f = calloc(1, sizeof(*f));
	size_t count = 0;
	unsigned int dev;

	if (f)
		f->be = be;
	if (f && m->wanted_count && !cu_use(be, m->wanted[0].dev))
		fill_around(f, m);
	for (dev = 0; dev < be->devices; dev++)
		if (is_wanted_on(m, dev))
			count = find_variables(be, m, dev, names, to, m->wanted_count, count);
	while (f && f->count)
		free_room(f, f->count - 1);
	free(f);
	return count;
}

int cu_module_settle(struct be *be, struct be_module *m, const struct image_names *names)
{
	struct be_wanted *now;
	size_t count, i;
	bool same;

	if (!m->wanted)
		return QCU_ERR_Success;
	now = calloc(m->wanted_count + 1, sizeof(*now));
	if (!now)
		return QCU_ERR_MemoryAllocation;
	count = find_wanted(be, m, names, now);
	same = count == m->wanted_count;
	for (i = 0; same && i < count; i++)
		same = now[i].addr == m->wanted[i].addr && now[i].size == m->wanted[i].size &&
		       now[i].dev == m->wanted[i].dev;
	free(now);
	free(m->wanted);
	m->wanted = NULL;
	return same ? QCU_ERR_Success : QCU_ERR_IllegalState;
}

/* ---- events ---- */

/* How long ago the event was recorded, by a second one. */
static int measure_age(struct be *be, const struct be_event *e, uint64_t *ns)
{
	cudaEvent_t now;
	float ms = 0;
	int ret = CU(be, cudaEventCreate, &now), err;

	if (ret)
		return ret;
	ret = CU(be, cudaEventRecord, now, cudaStreamLegacy);
	if (!ret)
		ret = CU(be, cudaEventSynchronize, now);
	if (!ret)
		ret = CU(be, cudaEventElapsedTime, &ms, e->e, now);
	err = CU(be, cudaEventDestroy, now);
	*ns = ms > 0 ? (uint64_t)(ms * 1e6) : 0;
	return ret ? ret : err;
}

/* CUDA does not say whether an event without times was recorded, and nothing depends on it. */
int cu_event_age(struct be *be, struct be_event *e, bool set, uint64_t at, uint64_t *ns)
{
	int ret = cu_event_use(be, e);
	uint64_t since;

	if (ret)
		return QCU_ERR_NotReady;
	if (set) {
		atomic_store(&e->late, *ns + (spin_clock() - at));
		return QCU_ERR_Success;
	}
	ret = measure_age(be, e, ns);
	since = spin_clock() - at;
	*ns = *ns > since ? *ns - since : 0;
	*ns += atomic_load(&e->late);
	return ret == QCU_ERR_InvalidResourceHandle ? (int)QCU_ERR_NotReady : ret;
}
