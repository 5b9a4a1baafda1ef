/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Stream-ordered memory. An allocation gets its address and its memory in the call. A free is work
 * in its stream, and takes effect when the stream reaches it. A pool does not keep freed memory. So
 * its reserved size is always its used size, and no other pool ever lacks that memory.
 */
#include <stdlib.h>

#include "qcu-device/soft/gpu/soft.h"

/* cudaMemPoolAttr */
enum {
	POOL_REUSE_FIRST = 1,
	POOL_REUSE_LAST = 3,
	POOL_THRESHOLD = 4,
	POOL_RESERVED = 5,
	POOL_RESERVED_HIGH = 6,
	POOL_USED = 7,
	POOL_USED_HIGH = 8,
	POOL_ATTRS = 9,
};

/* cudaMemAccessFlags */
#define ACCESS_NONE	  0u
#define ACCESS_READ	  1u
#define ACCESS_READ_WRITE 3u

struct be_pool {
	struct soft_device *dev;
	/* The owner and each allocation hold one reference. Protected by the pool_lock of the
	 * device. */
	unsigned int refs;
	uint64_t max_size;
	uint64_t attr[POOL_ATTRS];
	_Atomic uint8_t access[SOFT_GPUS_MAX];
};

struct soft_allocation {
	struct soft_allocation *next;
	struct be_pool *pool;
	uint64_t addr, size;
};

struct free_work {
	struct soft_work work;
	struct soft_device *dev;
	struct soft_allocation *allocation; /* NULL: already freed */
};

static struct be_pool *new_pool(struct soft_device *d, uint64_t max_size)
{
	struct be_pool *p = calloc(1, sizeof(*p));
	unsigned int i;

	if (!p)
		return NULL;
	p->dev = d;
	p->refs = 1;
	p->max_size = max_size ? max_size : UINT64_MAX;
	for (i = POOL_REUSE_FIRST; i <= POOL_REUSE_LAST; i++)
		p->attr[i] = 1;
	atomic_store(&p->access[d->index], ACCESS_READ_WRITE);
	return p;
}

static void put_pool(struct be_pool *p)
{
	if (!--p->refs)
		free(p);
}

void soft_pools_init(struct soft_device *d)
{
	pthread_mutex_init(&d->pool_lock, NULL);
	d->pool = new_pool(d, 0);
}

/* pool_lock is held. */
static void account(struct be_pool *p, uint64_t size, bool more)
{
	uint64_t *a = p->attr;

	a[POOL_USED] = more ? a[POOL_USED] + size : a[POOL_USED] - size;
	a[POOL_RESERVED] = a[POOL_USED];
	if (a[POOL_USED_HIGH] < a[POOL_USED])
		a[POOL_USED_HIGH] = a[POOL_USED];
	if (a[POOL_RESERVED_HIGH] < a[POOL_RESERVED])
		a[POOL_RESERVED_HIGH] = a[POOL_RESERVED];
}

/* Frees an allocation that is already out of the list. pool_lock is held. */
static void end_pool_allocation(struct soft_device *d, struct soft_allocation *b)
{
	soft_mem_give(&d->mem, b->addr);
	account(b->pool, b->size, false);
	put_pool(b->pool);
	free(b);
}

/* pool_lock is held. */
static struct soft_allocation *take_pool_allocation(struct soft_device *d, uint64_t addr)
{
	struct soft_allocation **at, *b;

	for (at = &d->allocations; (b = *at) && b->addr != addr; at = &b->next)
		;
	if (b)
		*at = b->next;
	return b;
}

void soft_pools_reset(struct soft_device *d)
{
	struct soft_allocation *b;

	pthread_mutex_lock(&d->pool_lock);
	while ((b = d->allocations)) {
		d->allocations = b->next;
		end_pool_allocation(d, b);
	}
	pthread_mutex_unlock(&d->pool_lock);
}

void soft_pools_fini(struct soft_device *d)
{
	soft_pools_reset(d);
	if (d->pool)
		put_pool(d->pool);
	d->pool = NULL;
	pthread_mutex_destroy(&d->pool_lock);
}

unsigned int soft_pool_access(struct soft_device *owner, uint64_t addr, unsigned int dev)
{
	unsigned int access = ACCESS_NONE;
	struct soft_allocation *b;

	pthread_mutex_lock(&owner->pool_lock);
	for (b = owner->allocations; b && addr - b->addr >= b->size; b = b->next)
		;
	if (b)
		access = atomic_load(&b->pool->access[dev]);
	pthread_mutex_unlock(&owner->pool_lock);
	return access;
}

/* False: addr is no pool memory. */
static bool free_pool_allocation(struct soft_device *d, uint64_t addr)
{
	struct soft_allocation *b;

	pthread_mutex_lock(&d->pool_lock);
	b = take_pool_allocation(d, addr);
	if (b)
		end_pool_allocation(d, b);
	pthread_mutex_unlock(&d->pool_lock);
	return b;
}

int soft_mem_free(struct be *be, uint64_t addr)
{
	struct soft_device *d = soft_mem_device(be, addr);
	int sticky = atomic_load(&be->sticky);
	struct soft_range r;

	if (sticky)
		return sticky;
	if (!d || !soft_ranges_find(&d->mem.table, addr, &r) || r.lo != addr || r.tag != SOFT_POOL)
		return soft_mem_end(be, addr);
	soft_wait(be, NULL);
	return free_pool_allocation(d, addr) ? atomic_load(&be->sticky) : QCU_ERR_InvalidValue;
}

int soft_pool_default(struct be *be, unsigned int dev, struct be_pool **p)
{
	*p = be->dev[dev].pool;
	return *p ? QCU_ERR_Success : QCU_ERR_MemoryAllocation;
}

int soft_pool_create(struct be *be, unsigned int dev, uint64_t max_size, struct be_pool **p)
{
	int err = atomic_load(&be->sticky);

	*p = NULL;
	if (err)
		return err;
	*p = new_pool(&be->dev[dev], max_size);
	return *p ? QCU_ERR_Success : QCU_ERR_MemoryAllocation;
}

int soft_pool_destroy(struct be *be, struct be_pool *p)
{
	struct soft_device *d = p->dev;

	pthread_mutex_lock(&d->pool_lock);
	put_pool(p);
	pthread_mutex_unlock(&d->pool_lock);
	return atomic_load(&be->sticky);
}

int soft_pool_set(struct be *be, struct be_pool *p, uint32_t attr, uint64_t value)
{
	int err = atomic_load(&be->sticky);

	if (err)
		return err;
	if (!attr || attr >= POOL_ATTRS || attr == POOL_RESERVED || attr == POOL_USED)
		return QCU_ERR_InvalidValue;
	/* A high-water mark can only be set to 0; it then restarts at the present value. */
	if ((attr == POOL_RESERVED_HIGH || attr == POOL_USED_HIGH) && value)
		return QCU_ERR_InvalidValue;
	pthread_mutex_lock(&p->dev->pool_lock);
	p->attr[attr] = attr <= POOL_REUSE_LAST ? value != 0 : value;
	account(p, 0, true);
	pthread_mutex_unlock(&p->dev->pool_lock);
	return QCU_ERR_Success;
}

int soft_pool_get(struct be *be, struct be_pool *p, uint32_t attr, uint64_t *value)
{
	int err = atomic_load(&be->sticky);

	if (!err && (!attr || attr >= POOL_ATTRS))
		err = QCU_ERR_InvalidValue;
	if (err)
		return err;
	pthread_mutex_lock(&p->dev->pool_lock);
	*value = p->attr[attr];
	pthread_mutex_unlock(&p->dev->pool_lock);
	return QCU_ERR_Success;
}

int soft_pool_trim(struct be *be, struct be_pool *p, uint64_t keep)
{
	(void)p;
	(void)keep;
	return atomic_load(&be->sticky);
}

int soft_pool_access_set(struct be *be, struct be_pool *p, unsigned int dev, uint32_t flags)
{
	int err = atomic_load(&be->sticky);

	if (err)
		return err;
	if (flags != ACCESS_NONE && flags != ACCESS_READ && flags != ACCESS_READ_WRITE)
		return QCU_ERR_InvalidValue;
	/* A device always has access to its own pools. */
	if (dev == p->dev->index && flags != ACCESS_READ_WRITE)
		return QCU_ERR_InvalidValue;
	atomic_store(&p->access[dev], (uint8_t)flags);
	return QCU_ERR_Success;
}

int soft_pool_access_get(struct be *be, struct be_pool *p, unsigned int dev, uint32_t *flags)
{
	*flags = atomic_load(&p->access[dev]);
	return atomic_load(&be->sticky);
}

/* pool_lock is held. */
static int alloc_locked(struct be_pool *p, struct soft_allocation *b)
{
	if (b->size > p->max_size || p->attr[POOL_USED] > p->max_size - b->size)
		return QCU_ERR_MemoryAllocation;
	b->addr = soft_mem_take(&p->dev->mem, b->size);
	if (!b->addr)
		return QCU_ERR_MemoryAllocation;
	b->pool = p;
	p->refs++;
	account(p, b->size, true);
	b->next = p->dev->allocations;
	p->dev->allocations = b;
	return QCU_ERR_Success;
}

/* If memory is short, waits for all frees that are still queued in streams, as a GPU does. */
int soft_pool_alloc(struct be *be, struct be_pool *p, uint64_t size, struct be_stream *s,
		    uint64_t *addr)
{
	struct soft_device *d = p->dev;
	int err = atomic_load(&be->sticky);
	struct soft_allocation *b;
	bool wait;

	(void)s;
	*addr = 0;
	if (err)
		return err;
	b = calloc(1, sizeof(*b));
	if (!b)
		return QCU_ERR_MemoryAllocation;
	b->size = size;
	pthread_mutex_lock(&d->pool_lock);
	err = alloc_locked(p, b);
	wait = err && d->freeing;
	pthread_mutex_unlock(&d->pool_lock);
	if (wait) {
		soft_wait(be, NULL);
		pthread_mutex_lock(&d->pool_lock);
		err = alloc_locked(p, b);
		pthread_mutex_unlock(&d->pool_lock);
	}
	if (err)
		free(b);
	else
		*addr = b->addr;
	return err;
}

static int free_run(struct soft_work *w)
{
	struct free_work *f = (struct free_work *)w;

	pthread_mutex_lock(&f->dev->pool_lock);
	end_pool_allocation(f->dev, f->allocation);
	f->allocation = NULL;
	f->dev->freeing--;
	pthread_mutex_unlock(&f->dev->pool_lock);
	return 0;
}

/* Work that was dropped after an error has not run, so its memory is freed here. */
static void free_free(struct soft_work *w)
{
	struct free_work *f = (struct free_work *)w;

	if (f->allocation)
		free_run(w);
	free(f);
}

int soft_pool_free(struct be *be, uint64_t addr, struct be_stream *s)
{
	int err = atomic_load(&be->sticky);
	struct soft_device *d = NULL;
	struct free_work *f;
	unsigned int i;

	if (err)
		return err;
	for (i = 0; i < be->gpus && !d; i++)
		if (addr - be->dev[i].mem.base < be->dev[i].mem.size)
			d = &be->dev[i];
	f = d ? calloc(1, sizeof(*f)) : NULL;
	if (!f)
		return d ? QCU_ERR_MemoryAllocation : QCU_ERR_InvalidValue;
	f->work = (struct soft_work){.run = free_run, .free = free_free};
	f->dev = d;
	pthread_mutex_lock(&d->pool_lock);
	f->allocation = take_pool_allocation(d, addr);
	if (f->allocation)
		d->freeing++;
	pthread_mutex_unlock(&d->pool_lock);
	if (!f->allocation) {
		free(f);
		return QCU_ERR_InvalidValue;
	}
	return soft_submit(s, &f->work, SOFT_SMALL, NULL);
}
