/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Virtual memory. Reserved addresses come out of one large range of this process, which is set
 * aside at the first reservation and never given back, so that a stray access cannot meet memory of
 * the process itself. Memory without an address is an allocation of a device like any other, at
 * addresses that nobody may use. To map it, its pages are mapped a second time.
 *
 * The table `seen` of a device has the mapped memory that the device may use. Mappings side by side
 * with the same access are one range there, because a copy or an access may cross the border.
 */
#define _GNU_SOURCE /* mremap */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "qcu-device/soft/gpu/soft.h"

#define GRAIN	  (2ull << 20)
#define HINT	  0x400000000000ull /* above the memory, below programs */
#define SIZE_MOST (16ull << 40)
#define SIZE_MIN  (64ull << 30)

struct be_phys {
	unsigned int dev;
	uint64_t addr, size; /* an allocation, or imported memory */
	bool imported;
};

void soft_virtual_init(struct be *be)
{
	pthread_mutex_init(&be->virt.lock, NULL);
}

void soft_virtual_fini(struct be *be)
{
	struct soft_virtual *v = &be->virt;
	unsigned int i;

	if (v->size) {
		munmap((void *)(uintptr_t)v->base, v->size);
		soft_ranges_fini(&v->reserved);
		for (i = 0; i < be->gpus; i++)
			soft_ranges_fini(&be->dev[i].seen);
	}
	pthread_mutex_destroy(&v->lock);
}

static void *nothing(uint64_t at, uint64_t size, int flags)
{
	return mmap((void *)(uintptr_t)at, size, PROT_NONE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | flags, -1, 0);
}

static bool is_in_window_or_annex(uint64_t base, uint64_t size)
{
	return base < QCU_WINDOW_BASE + QCU_WINDOW_SIZE + QCU_ANNEX_SIZE &&
	       QCU_WINDOW_BASE < base + size;
}

/* The lock is held, here and in all functions up to the table of functions. */
static bool set_addresses_aside(struct be *be)
{
	struct soft_virtual *v = &be->virt;
	unsigned int i, ready;
	uint64_t size;
	void *p = MAP_FAILED;

	if (v->size)
		return true;
	for (size = SIZE_MOST; size >= SIZE_MIN && p == MAP_FAILED; size /= 2) {
		p = nothing(HINT, size, 0);
		if (p != MAP_FAILED && is_in_window_or_annex((uintptr_t)p, size)) {
			munmap(p, size);
			p = MAP_FAILED;
		}
		if (p != MAP_FAILED)
			break;
	}
	if (p == MAP_FAILED)
		return false;
	if (!soft_ranges_init(&v->reserved))
		goto fail;
	for (ready = 0; ready < be->gpus; ready++)
		if (!soft_ranges_init(&be->dev[ready].seen))
			goto fail_seen;
	v->base = v->next = (uintptr_t)p;
	atomic_store(&v->size, size);
	return true;
fail_seen:
	for (i = 0; i < ready; i++)
		soft_ranges_fini(&be->dev[i].seen);
	soft_ranges_fini(&v->reserved);
fail:
	munmap(p, size);
	return false;
}

/* Finds room at or above `from`. 0: there is none. */
static uint64_t find_address_room(struct soft_virtual *v, uint64_t size, uint64_t align,
				  uint64_t from, size_t *index)
{
	size_t i = soft_ranges_upper(&v->reserved, from);
	struct soft_range r;
	uint64_t at = from;

	if (i && soft_ranges_at(&v->reserved, i - 1, &r) && r.hi > at)
		at = r.hi;
	for (;; i++) {
		bool more = soft_ranges_at(&v->reserved, i, &r);
		uint64_t end = more ? r.lo : v->base + v->size;

		at = soft_round_up(at, align);
		if (at < end && size <= end - at) {
			*index = i;
			return at;
		}
		if (!more)
			return 0;
		at = r.hi;
	}
}

/* The first address that is wanted, if it is free and good for this size. Else 0. */
static uint64_t find_wanted_addresses(struct soft_virtual *v, uint64_t size, uint64_t align,
				      size_t *index)
{
	uint64_t at = v->wanted_count ? v->wanted->addr : 0;

	if (at < v->base || at - v->base > v->size || at % GRAIN || at % align)
		return 0;
	return find_address_room(v, size, align, at, index) == at ? at : 0;
}

static uint64_t reserve_address_range(struct be *be, uint64_t size, uint64_t align)
{
	struct soft_virtual *v = &be->virt;
	struct soft_range r;
	size_t i;

	if (!set_addresses_aside(be) || size > v->size || align > v->size)
		return 0;
	r.lo = v->wanted ? find_wanted_addresses(v, size, align, &i)
			 : find_address_room(v, size, align, v->next, &i);
	if (!r.lo && !v->wanted)
		r.lo = find_address_room(v, size, align, v->base, &i);
	if (!r.lo)
		return 0;
	r.hi = r.lo + size;
	r.tag = 1;
	if (!soft_ranges_insert(&v->reserved, i, &r))
		return 0;
	v->next = r.hi;
	return r.lo;
}

/* Takes [lo, hi) out of a table, whose ranges may go on at both sides. */
static bool cut_out_range(struct soft_ranges *t, uint64_t lo, uint64_t hi)
{
	size_t i = soft_ranges_upper(t, lo);
	struct soft_range r, rest;

	if (!i || !soft_ranges_at(t, i - 1, &r) || r.hi <= lo)
		return true;
	i--;
	rest = (struct soft_range){.lo = hi, .hi = r.hi, .tag = r.tag};
	/* A search between the two steps still finds the whole old range for what stays. */
	if (rest.lo < rest.hi && r.lo < lo && !soft_ranges_insert(t, i + 1, &rest))
		return false;
	if (r.lo < lo) {
		r.hi = lo;
		soft_ranges_set(t, i, &r);
	} else if (rest.lo < rest.hi) {
		soft_ranges_set(t, i, &rest);
	} else {
		soft_ranges_remove(t, i);
	}
	return true;
}

/* Adds [lo, hi), which is not in the table, and makes one range with its neighbours. */
static bool join(struct soft_ranges *t, uint64_t lo, uint64_t hi, uint32_t tag)
{
	size_t i = soft_ranges_upper(t, lo);
	struct soft_range l, r, new = {.lo = lo, .hi = hi, .tag = tag};
	bool left = i && soft_ranges_at(t, i - 1, &l) && l.hi == lo && l.tag == tag;
	bool right = soft_ranges_at(t, i, &r) && r.lo == hi && r.tag == tag;

	if (right)
		new.hi = r.hi;
	if (left) {
		/* Until the range to the right is gone, both have the same content there. */
		new.lo = l.lo;
		soft_ranges_set(t, i - 1, &new);
		if (right)
			soft_ranges_remove(t, i);
		return true;
	}
	if (!right)
		return soft_ranges_insert(t, i, &new);
	soft_ranges_set(t, i, &new);
	return true;
}

void soft_virtual_want(struct be *be, const struct be_wanted *wanted, size_t count)
{
	pthread_mutex_lock(&be->virt.lock);
	be->virt.wanted = wanted;
	be->virt.wanted_count = count;
	pthread_mutex_unlock(&be->virt.lock);
}

bool soft_virtual_usual(const struct be *be)
{
	return !be->virt.size || be->virt.base == HINT;
}

/* ---- the table of functions ---- */

int soft_va_reserve(struct be *be, uint64_t size, uint64_t align, uint64_t *addr)
{
	int err = atomic_load(&be->sticky);

	*addr = 0;
	if (err)
		return err;
	pthread_mutex_lock(&be->virt.lock);
	*addr = reserve_address_range(be, size, align);
	pthread_mutex_unlock(&be->virt.lock);
	return *addr ? QCU_ERR_Success : QCU_ERR_MemoryAllocation;
}

int soft_va_free(struct be *be, uint64_t addr, uint64_t size)
{
	bool ok;

	pthread_mutex_lock(&be->virt.lock);
	ok = cut_out_range(&be->virt.reserved, addr, addr + size);
	pthread_mutex_unlock(&be->virt.lock);
	return ok ? atomic_load(&be->sticky) : (int)QCU_ERR_MemoryAllocation;
}

int soft_phys_grain(struct be *be, unsigned int dev, bool recommended, uint64_t *bytes)
{
	(void)be;
	(void)dev;
	(void)recommended;
	*bytes = GRAIN;
	return QCU_ERR_Success;
}

static int alloc_phys_record(unsigned int dev, uint64_t size, bool imported, struct be_phys **out)
{
	struct be_phys *p = malloc(sizeof(*p));

	if (!p)
		return QCU_ERR_MemoryAllocation;
	*p = (struct be_phys){.dev = dev, .size = size, .imported = imported};
	*out = p;
	return QCU_ERR_Success;
}

/* Nothing is compressed, as the attributes of the device say. */
int soft_phys_create(struct be *be, unsigned int dev, uint64_t size, uint32_t flags,
		     struct be_phys **out, bool *compressible)
{
	struct soft_mem *m = &be->dev[dev].mem;
	int err = atomic_load(&be->sticky);
	struct be_phys *p;

	(void)flags;
	*compressible = false;
	if (err)
		return err;
	/* Without a file, pages cannot be mapped a second time. */
	if (m->fd < 0)
		return QCU_ERR_NotSupported;
	err = alloc_phys_record(dev, size, false, &p);
	if (err)
		return err;
	p->addr = soft_phys_take(m, size);
	if (!p->addr) {
		free(p);
		return QCU_ERR_MemoryAllocation;
	}
	*out = p;
	return QCU_ERR_Success;
}

int soft_phys_destroy(struct be *be, struct be_phys *p)
{
	int err = QCU_ERR_Success;

	if (p->imported)
		err = soft_mem_unimport(be, p->addr);
	else
		soft_phys_give(&be->dev[p->dev].mem, p->addr);
	free(p);
	return err;
}

uint64_t soft_phys_place(const struct be_phys *p, uint64_t offset, uint64_t bytes)
{
	return offset <= p->size && bytes <= p->size - offset ? p->addr + offset : 0;
}

int soft_phys_map(struct be *be, struct be_phys *p, uint64_t offset, uint64_t addr, uint64_t size)
{
	int err = atomic_load(&be->sticky);

	if (err)
		return err;
	if (mremap((void *)(uintptr_t)(p->addr + offset), 0, size, MREMAP_MAYMOVE | MREMAP_FIXED,
		   (void *)(uintptr_t)addr) != MAP_FAILED)
		return QCU_ERR_Success;
	/* It may have taken away what was there before. */
	(void)nothing(addr, size, MAP_FIXED);
	return QCU_ERR_MemoryAllocation;
}

/*
 * First no new work finds the memory any more, then all work that has found it ends. After an error
 * this must work, too: the memory will go.
 */
int soft_phys_unmap(struct be *be, uint64_t addr, uint64_t size)
{
	struct soft_virtual *v = &be->virt;
	int err = QCU_ERR_Success;
	unsigned int i;

	/* Work that was queued before must still find the memory. */
	soft_wait(be, NULL);
	pthread_mutex_lock(&v->lock);
	for (i = 0; i < be->gpus; i++)
		if (!cut_out_range(&be->dev[i].seen, addr, addr + size))
			err = QCU_ERR_MemoryAllocation;
	pthread_mutex_unlock(&v->lock);
	if (err)
		return err;
	soft_wait(be, NULL);
	if (nothing(addr, size, MAP_FIXED) == MAP_FAILED)
		return QCU_ERR_MemoryAllocation;
	return atomic_load(&be->sticky);
}

int soft_phys_access(struct be *be, uint64_t addr, uint64_t size, unsigned int dev, uint32_t flags)
{
	struct soft_virtual *v = &be->virt;
	struct soft_ranges *seen = &be->dev[dev].seen;
	int err = atomic_load(&be->sticky);
	struct soft_range r;

	if (err)
		return err;
	if (soft_ranges_find(seen, addr, &r)) {
		if (r.tag == flags)
			return QCU_ERR_Success;
		/* Work that was queued before may still use it as it was allowed to. */
		soft_wait(be, NULL);
	}
	pthread_mutex_lock(&v->lock);
	if (!cut_out_range(seen, addr, addr + size) ||
	    (flags && !join(seen, addr, addr + size, flags)))
		err = QCU_ERR_MemoryAllocation;
	pthread_mutex_unlock(&v->lock);
	return err;
}

int soft_phys_export(struct be *be, struct be_phys *p, void *handle)
{
	return p->imported ? (int)QCU_ERR_InvalidValue
			   : soft_mem_export(be, p->dev, p->addr, handle);
}

int soft_phys_import(struct be *be, unsigned int dev, const void *handle, uint64_t size,
		     struct be_phys **out)
{
	struct be_phys *p;
	int err = alloc_phys_record(dev, size, true, &p);

	if (err)
		return err;
	err = soft_mem_import(be, dev, handle, size, &p->addr);
	if (err)
		free(p);
	else
		*out = p;
	return err;
}
