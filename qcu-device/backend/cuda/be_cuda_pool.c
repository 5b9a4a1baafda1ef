// SPDX-License-Identifier: GPL-2.0-or-later
/* Memory pools and stream-ordered memory of the cuda backend. */
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
	p = malloc(sizeof(*p));
	if (!p)
		return QCU_ERR_MemoryAllocation;
	p->dev = dev;
	ret = CU(be, cudaMemPoolCreate, &p->p, &props);
	if (ret) {
		free(p);
		return ret;
	}
	*out = p;
	return QCU_ERR_Success;
}

int cu_pool_destroy(struct be *be, struct be_pool *p)
{
	int ret = cu_use(be, p->dev);

	if (!ret)
		ret = CU(be, cudaMemPoolDestroy, p->p);
	free(p);
	return ret;
}

/* The first three attributes are of type int. */
static bool is_int(uint32_t attr)
{
	return attr <= cudaMemPoolReuseAllowInternalDependencies;
}

int cu_pool_set(struct be *be, struct be_pool *p, uint32_t attr, uint64_t value)
{
	int number = (int)value;
	int ret = cu_use(be, p->dev);

	if (ret)
		return ret;
	return CU(be, cudaMemPoolSetAttribute, p->p, (enum cudaMemPoolAttr)attr,
		  is_int(attr) ? (void *)&number : (void *)&value);
}

int cu_pool_get(struct be *be, struct be_pool *p, uint32_t attr, uint64_t *value)
{
	union {
		int number;
		uint64_t wide[8]; /* more than any attribute takes */
	} v = {.wide = {0}};
	int ret = cu_use(be, p->dev);

	if (!ret)
		ret = CU(be, cudaMemPoolGetAttribute, p->p, (enum cudaMemPoolAttr)attr, &v);
	*value = is_int(attr) ? (uint64_t)(int64_t)v.number : v.wide[0];
	return ret;
}

int cu_pool_trim(struct be *be, struct be_pool *p, uint64_t keep)
{
	int ret = cu_use(be, p->dev);

	return ret ? ret : CU(be, cudaMemPoolTrimTo, p->p, keep);
}

int cu_pool_access_set(struct be *be, struct be_pool *p, unsigned int dev, uint32_t flags)
{
	struct cudaMemAccessDesc desc = {
		.location = {.type = cudaMemLocationTypeDevice, .id = (int)dev},
		.flags = (enum cudaMemAccessFlags)flags,
	};
	int ret = cu_use(be, p->dev);

	return ret ? ret : CU(be, cudaMemPoolSetAccess, p->p, &desc, 1);
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

int cu_pool_alloc(struct be *be, struct be_pool *p, uint64_t size, struct be_stream *s,
		  uint64_t *addr)
{
	struct cu_range r = {.size = size, .dev = p->dev};
	void *ptr = NULL;
	int ret = cu_stream_use(be, s);

	*addr = 0;
	if (be->wanting)
		return QCU_ERR_NotSupported; /* there are no wanted addresses in a pool */
	if (!ret)
		ret = CU(be, cudaMallocFromPoolAsync, &ptr, size, p->p, s->s);
	if (ret)
		return ret;
	r.addr = (uintptr_t)ptr;
	ret = cu_mem_add(be, &r);
	if (ret) {
		CU(be, cudaFreeAsync, ptr, s->s);
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
	return ret ? ret : CU(be, cudaFreeAsync, (void *)(uintptr_t)addr, s->s);
}
