// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Sessions that are saved and restored. CUDA gives memory at an address that is asked for, as plots
 * (be_cuda_plot.c). It does not for the variables of modules, and nothing says where the code of
 * kernels is. So CUDA is left only the room that the variables should have. Then their addresses
 * are compared, and a difference is an error.
 */
#include <inttypes.h>
#include <stdio.h>
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

/* What was in front of the modules is free again. */
static void unload_fillers(struct be *be)
{
	size_t i;

	for (i = 0; i < be->fillers.count; i++)
		CU(be, cudaLibraryUnload, (cudaLibrary_t)((const uint64_t *)be->fillers.v)[i]);
	sorted_free(&be->fillers);
	be->filled = 0;
}

void cu_want(struct be *be, const struct be_wanted *wanted, size_t count)
{
	be->wanting = wanted;
	be->wanted = wanted;
	be->wanted_count = count;
	if (!wanted)
		unload_fillers(be);
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

/* All room that CUDA has, in single units, but not the units that a module's variables want. */
#define FILLS 1024u
#define UNITS 256u

struct fill {
	struct be *be;
	size_t count;
	uint64_t at[FILLS];
};

/* Returns where it is, or 0. */
static uint64_t fill_room(struct fill *f, uint64_t wanted)
{
	const uint64_t at = f->count < FILLS ? cu_unit_reserve(f->be, wanted) : 0;

	if (at)
		f->at[f->count++] = at;
	return at;
}

static void free_fill(struct fill *f, size_t i)
{
	cu_unit_free(f->be, f->at[i]);
	f->at[i] = f->at[--f->count];
}

/* Makes CUDA reserve a new piece, there if it can be, and takes all of it. */
static void fill_new_piece(struct fill *f, uint64_t wanted)
{
	const uint64_t base = fill_room(f, wanted);
	uint64_t at;

	for (at = base + CU_UNIT; base && at < base + CU_PIECE; at += CU_UNIT)
		fill_room(f, at);
}

/* The piece that is apart is the first of which CUDA had no room. */
static void fill_all(struct fill *f)
{
	uint64_t at;

	do
		at = fill_room(f, CU_APART);
	while (at && at != CU_APART);
	if (at)
		free_fill(f, f->count - 1);
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

	for (i = 0; i < f->count && f->at[i] / size != addr / size; i++)
		;
	return i;
}

/* Lets CUDA have no room but that of the module's variables, as far as it goes. */
static void fill_around(struct fill *f, const struct be_module *m)
{
	uint64_t unit[UNITS];
	size_t i, k, n = list_units(m, unit);

	fill_all(f);
	for (i = 0; i < n; i++)
		if (!cu_in_rooms(unit[i]) && find_fill(f, unit[i], CU_PIECE) == f->count)
			fill_new_piece(f, unit[i] / CU_PIECE * CU_PIECE);
	for (i = 0; i < n; i++) {
		k = find_fill(f, unit[i], CU_UNIT);
		if (k < f->count)
			free_fill(f, k);
	}
}

static size_t find_wanted(struct be *be, struct be_module *m, const struct image_names *names,
			  struct be_wanted *to)
{
	size_t count = 0;
	unsigned int dev;

	for (dev = 0; dev < be->devices; dev++)
		if (is_wanted_on(m, dev))
			count = find_variables(be, m, dev, names, to, m->wanted_count, count);
	return count;
}

/* Are they the same variables? *off: the one with the lowest address that lies elsewhere, or -1. */
static bool compare_variables(const struct be_module *m, const struct be_wanted *now, ssize_t *off)
{
	const struct be_wanted *w = m->wanted;
	size_t i;

	*off = -1;
	for (i = 0; i < m->wanted_count; i++) {
		if (now[i].size != w[i].size || now[i].dev != w[i].dev)
			return false;
		if (now[i].addr != w[i].addr && (*off < 0 || w[i].addr < w[*off].addr))
			*off = (ssize_t)i;
	}
	return true;
}

/*
 * How much of the room must be taken before the module, so that its variable lies where it was:
 * modules that have no variables lay there, or were unloaded. 0: it cannot be.
 */
static uint64_t find_missing(const struct be_wanted *now, const struct be_wanted *wanted)
{
	const uint64_t now_unit = now->addr / CU_UNIT, unit = wanted->addr / CU_UNIT;

	if (now->addr % CU_GRAIN != wanted->addr % CU_GRAIN ||
	    (now_unit == unit && now->addr > wanted->addr))
		return 0;
	return now_unit == unit ? wanted->addr - now->addr : CU_UNIT - now->addr % CU_UNIT;
}

/* Of all fillers of a session, which nobody is charged for. */
#define FILLED_MOST ((uint64_t)64 << 20)

/* A module that has nothing but a variable of this size. */
static int load_filler(struct be *be, uint64_t bytes)
{
	char ptx[160];
	cudaLibrary_t lib;
	size_t size;
	void *p;
	uint64_t *new;
	int ret;

	if (bytes > FILLED_MOST - be->filled)
		return QCU_ERR_MemoryAllocation;
	be->filled += bytes;
	snprintf(ptx, sizeof(ptx),
		 ".version 7.0\n.target sm_75\n.address_size 64\n"
		 ".visible .global .align 256 .b8 filler[%" PRIu64 "];\n",
		 bytes);
	ret = CU(be, cudaLibraryLoadData, &lib, ptx, NULL, NULL, 0, NULL, NULL, 0);
	if (ret)
		return ret;
	ret = CU(be, cudaLibraryGetGlobal, &p, &size, lib, "filler");
	be->fillers.size = sizeof(uint64_t);
	new = ret ? NULL : sorted_insert(&be->fillers, be->fillers.count);
	if (new)
		*new = (uintptr_t)lib;
	else
		CU(be, cudaLibraryUnload, lib);
	return ret || new ? ret : (int)QCU_ERR_MemoryAllocation;
}

/* A module is loaded again for each part of the room that is missing; there are few. */
#define TRIES 16u

static int find_place(struct be *be, struct be_module *m, const struct image_names *names,
		      struct be_wanted *now)
{
	unsigned int tries;
	uint64_t missing;
	ssize_t off;
	int ret = 0;

	for (tries = 0; tries < TRIES && !ret; tries++) {
		if (find_wanted(be, m, names, now) != m->wanted_count ||
		    !compare_variables(m, now, &off))
			return QCU_ERR_IllegalState;
		if (off < 0)
			return QCU_ERR_Success;
		missing = find_missing(&now[off], &m->wanted[off]);
		ret = missing ? cu_module_unload_code(be, m) : (int)QCU_ERR_IllegalState;
		if (!ret)
			ret = load_filler(be, missing);
		if (!ret)
			ret = cu_module_load_code(be, m);
	}
	return ret ? ret : (int)QCU_ERR_IllegalState;
}

int cu_module_settle(struct be *be, struct be_module *m, const struct image_names *names)
{
	struct be_wanted *now;
	struct fill *f;
	int ret = QCU_ERR_MemoryAllocation;

	if (!m->wanted)
		return QCU_ERR_Success;
	now = calloc(m->wanted_count + 1, sizeof(*now));
	f = calloc(1, sizeof(*f));
	if (f && now) {
		f->be = be;
		be->settling = true;
		if (m->wanted_count && !cu_use(be, m->wanted[0].dev))
			fill_around(f, m);
		ret = find_place(be, m, names, now);
		while (f->count)
			free_fill(f, f->count - 1);
		be->settling = false;
	}
	free(f);
	free(now);
	cu_module_drop_image(m);
	return ret;
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
