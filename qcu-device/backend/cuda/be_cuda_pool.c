// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Memory pools and stream-ordered memory of the cuda backend. Memory that can leave is not in
 * CUDA's pools (be_cuda_lot.c); they check and keep the attributes then.
 */
#include <stdlib.h>

#include "qcu-device/backend/cuda/be_cuda.h"

int cu_pool_default(struct be *be, unsigned int dev, struct be_pool **out)
{
	cudaMemPool_t p = NULL;
	int ret = cu_use(be, dev);

	if (!ret)
		ret = CU(be, cudaDeviceGetDefaultMemPool, &p, (int)dev);
	if (ret)
		return ret;
	/* Every thread writes the same values. */
	be->pool[dev].p = p;
	be->pool[dev].dev = dev;
	if (be->movable)
		cu_pool_begin(be, &be->pool[dev], 0);
	*out = &be->pool[dev];
	return QCU_ERR_Success;
}

int cu_pool_create(struct be *be, unsigned int dev, uint64_t max_size, struct be_pool **out)
{
	struct cudaMemPoolProps props = {
		.allocType = cudaMemAllocationTypePinned,
		.location = {.type = cudaMemLocationTypeDevice, .id = (int)dev},
		.maxSize = max_size,
	};
	struct be_pool *p;
	int ret = cu_use(be, dev);

	if (ret)
		return ret;
	p = calloc(1, sizeof(*p));
	if (!p)
		return QCU_ERR_MemoryAllocation;
	p->dev = dev;
	ret = CU(be, cudaMemPoolCreate, &p->p, &props);
	if (ret) {
		free(p);
		return ret;
	}
	if (be->movable)
		cu_pool_begin(be, p, max_size);
	*out = p;
	return QCU_ERR_Success;
}

int cu_pool_destroy(struct be *be, struct be_pool *p)
{
	int ret = cu_use(be, p->dev);

	if (!ret)
		ret = CU(be, cudaMemPoolDestroy, p->p);
	if (be->movable)
		cu_pool_end(be, p);
	else
		free(p);
	return ret;
}

/* The first three attributes are of type int. */
static bool is_int(uint32_t attr)
{
	return attr <= cudaMemPoolReuseAllowInternalDependencies;
}

static void set_pool_threshold(struct be *be, struct be_pool *p, uint64_t threshold)
{
	pthread_mutex_lock(&be->lot_lock);
	p->threshold = threshold;
	pthread_mutex_unlock(&be->lot_lock);
}

/* The attribute that is a number of bytes, or NULL. */
static const uint64_t *find_byte_count(const struct be_pool *p, uint32_t attr)
{
	switch (attr) {
	case cudaMemPoolAttrReservedMemCurrent:
		return &p->reserved;
	case cudaMemPoolAttrReservedMemHigh:
		return &p->reserved_high;
	case cudaMemPoolAttrUsedMemCurrent:
		return &p->used;
	case cudaMemPoolAttrUsedMemHigh:
		return &p->used_high;
	}
	return NULL;
}

/* The most bytes so far are counted from now on. */
static void restart_most_bytes(struct be *be, struct be_pool *p, uint32_t attr)
{
	pthread_mutex_lock(&be->lot_lock);
	if (attr == cudaMemPoolAttrReservedMemHigh)
		p->reserved_high = p->reserved;
	else if (attr == cudaMemPoolAttrUsedMemHigh)
		p->used_high = p->used;
	pthread_mutex_unlock(&be->lot_lock);
}

int cu_pool_set(struct be *be, struct be_pool *p, uint32_t attr, uint64_t value)
{
	int number = (int)value;
	int ret = cu_use(be, p->dev);

	if (ret)
		return ret;
	ret = CU(be, cudaMemPoolSetAttribute, p->p, (enum cudaMemPoolAttr)attr,
		 is_int(attr) ? (void *)&number : (void *)&value);
	if (ret || !be->movable)
		return ret;
	if (attr == cudaMemPoolAttrReleaseThreshold)
		set_pool_threshold(be, p, value);
	else
		restart_most_bytes(be, p, attr);
	return ret;
}

int cu_pool_get(struct be *be, struct be_pool *p, uint32_t attr, uint64_t *value)
{
	union {
		int number;
		uint64_t wide[8]; /* more than any attribute takes */
	} v = {.wide = {0}};
	const uint64_t *bytes = be->movable ? find_byte_count(p, attr) : NULL;
	int ret = cu_use(be, p->dev);

	if (!ret && bytes) {
		*value = cu_pool_settled(be, p, bytes);
		return ret;
	}
	if (!ret)
		ret = CU(be, cudaMemPoolGetAttribute, p->p, (enum cudaMemPoolAttr)attr, &v);
	*value = is_int(attr) ? (uint64_t)(int64_t)v.number : v.wide[0];
	return ret;
}

int cu_pool_trim(struct be *be, struct be_pool *p, uint64_t keep)
{
	int ret = cu_use(be, p->dev);

	if (ret || !be->movable)
		return ret ? ret : CU(be, cudaMemPoolTrimTo, p->p, keep);
	cu_pool_give_back(be, p, keep);
	return ret;
}

int cu_pool_access_set(struct be *be, struct be_pool *p, unsigned int dev, uint32_t flags)
{
	struct cudaMemAccessDesc desc = {
		.location = {.type = cudaMemLocationTypeDevice, .id = (int)dev},
		.flags = (enum cudaMemAccessFlags)flags,
	};
	int ret = cu_use(be, p->dev);

	if (!ret)
		ret = CU(be, cudaMemPoolSetAccess, p->p, &desc, 1);
	return ret || !be->movable ? ret : cu_plots_access(be, p, dev, (uint8_t)flags);
}

int cu_pool_access_get(struct be *be, struct be_pool *p, unsigned int dev, uint32_t *flags)
{
	struct cudaMemLocation where = {.type = cudaMemLocationTypeDevice, .id = (int)dev};
	enum cudaMemAccessFlags f = cudaMemAccessFlagsProtNone;
	int ret = cu_use(be, p->dev);

	if (!ret)
		ret = CU(be, cudaMemPoolGetAccess, &f, p->p, &where);
	*flags = f;
	return ret;
}

/* The stream's device is current. */
static int free_in_stream(struct be *be, const struct cu_range *r, const struct be_stream *s)
{
	if (r->lot)
		return cu_lot_free(be, r, s);
	return CU(be, cudaFreeAsync, (void *)(uintptr_t)r->addr, s->s);
}

/* Memory at the next wanted address, in the plot that is wanted. */
static int take_wanted_lot(struct be *be, struct be_pool *p, uint64_t size, struct cu_range *r)
{
	const struct be_wanted *w = be->wanted;
	struct cu_lots_near near;
	int ret = be->movable ? cu_use(be, p->dev) : (int)QCU_ERR_NotSupported;

	if (ret)
		return ret;
	if (be->wanted_count != 2 || !w->addr || w[0].dev != p->dev || w[1].dev != p->dev)
		return QCU_ERR_MemoryAllocation;
	r->addr = w->addr;
	cu_mem_lots_near(be, r->addr, &near);
	ret = cu_lot_at(be, p, size, w + 1, &near, r);
	if (ret)
		return ret;
	ret = cu_mem_clear(be, r);
	if (ret)
		(void)cu_lot_end(be, r);
	else
		be->wanted_count = 0;
	return ret;
}

int cu_pool_alloc(struct be *be, struct be_pool *p, uint64_t size, struct be_stream *s,
		  uint64_t *addr)
{
	struct cu_range r = {.size = size, .dev = p->dev};
	void *ptr = NULL;
	int ret = cu_stream_use(be, s);

	*addr = 0;
	if (!ret && be->wanting)
		ret = take_wanted_lot(be, p, size, &r);
	else if (!ret && be->movable)
		ret = cu_lot_alloc(be, p, size, s, &r);
	else if (!ret)
		ret = CU(be, cudaMallocFromPoolAsync, &ptr, size, p->p, s->s);
	if (ret)
		return ret;
	if (!r.lot)
		r.addr = (uintptr_t)ptr;
	ret = cu_mem_add(be, &r);
	if (ret) {
		(void)free_in_stream(be, &r, s);
		return ret;
	}
	*addr = r.addr;
	return QCU_ERR_Success;
}

/* Commands that come after this one cannot use the memory any more: it is not in the table. */
int cu_pool_free(struct be *be, uint64_t addr, struct be_stream *s)
{
	struct cu_range r;
	int ret;

	if (!cu_mem_take(be, addr, &r))
		return QCU_ERR_InvalidValue;
	ret = cu_stream_use(be, s);
	return ret ? ret : free_in_stream(be, &r, s);
}
