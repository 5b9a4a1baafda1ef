// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Green contexts of the cuda backend. What describes a part of a device contains pointers of the
 * driver. It is made anew for each call, and nobody else gets it.
 */
#include <stdlib.h>

#include "qcu-device/backend/cuda/be_cuda.h"

struct be_green {
	CUgreenCtx g;
	unsigned int dev, life;
};

/* A part of a device, and what it has been split into. */
struct cu_parts {
	CUdevResource *group; /* free() it; there is room for one more */
	unsigned int made;
	CUdevResource rest;
};

static bool green_alive(const struct be *be, const struct be_green *g)
{
	return g->life == atomic_load(&be->life[g->dev]);
}

static int find_all_sms(struct be *be, unsigned int dev, const struct be_green *parent,
			CUdevResource *to)
{
	PFN_cuDeviceGetDevResource_v12040 of_device;
	PFN_cuGreenCtxGetDevResource_v12040 of_green;
	int ret;

	if (!parent) {
		ret = cu_driver_function(be, "cuDeviceGetDevResource", &of_device);
		return ret ? ret : (int)of_device((CUdevice)dev, to, CU_DEV_RESOURCE_TYPE_SM);
	}
	if (!green_alive(be, parent))
		return QCU_ERR_ContextIsDestroyed;
	ret = cu_driver_function(be, "cuGreenCtxGetDevResource", &of_green);
	return ret ? ret : (int)of_green(parent->g, to, CU_DEV_RESOURCE_TYPE_SM);
}

static int split_sms(struct be *be, unsigned int dev, const struct be_split *split,
		     struct cu_parts *p)
{
	PFN_cuDevSmResourceSplitByCount_v12040 by_count;
	CUdevResource all;
	int ret;

	p->made = split->groups ? split->groups : 1;
	p->rest = (CUdevResource){.type = CU_DEV_RESOURCE_TYPE_INVALID};
	p->group = calloc(p->made + 1, sizeof(*p->group));
	if (!p->group)
		return QCU_ERR_MemoryAllocation;
	ret = find_all_sms(be, dev, split->parent, split->groups ? &all : p->group);
	if (!ret && split->groups)
		ret = cu_driver_function(be, "cuDevSmResourceSplitByCount", &by_count);
	if (!ret && split->groups)
		ret = (int)by_count(p->group, &p->made, &all, &p->rest, split->flags, split->least);
	if (!ret && p->made > (split->groups ? split->groups : 1))
		ret = QCU_ERR_Unknown;
	if (ret)
		free(p->group);
	return ret;
}

static void read_sms(const CUdevResource *from, struct be_sms *to)
{
	if (from->type == CU_DEV_RESOURCE_TYPE_SM)
		*to = (struct be_sms){.count = from->sm.smCount,
				      .least = from->sm.minSmPartitionSize,
				      .align = from->sm.smCoscheduledAlignment};
}

int cu_green_parts(struct be *be, unsigned int dev, const struct be_split *split, uint32_t *made,
		   struct be_sms *group, struct be_sms *rest)
{
	struct cu_parts p;
	int ret = split_sms(be, dev, split, &p);

	if (ret)
		return ret;
	*made = p.made;
	if (p.made)
		read_sms(p.group, group);
	read_sms(&p.rest, rest);
	free(p.group);
	return QCU_ERR_Success;
}

/* Puts the members side by side, in the place of all groups. Returns how many there are, or 0. */
static unsigned int pick_members(struct cu_parts *p, const uint8_t *members)
{
	const bool rest = p->rest.type == CU_DEV_RESOURCE_TYPE_SM;
	unsigned int i, n = 0;

	for (i = 0; i <= QCU_GREEN_GROUPS; i++) {
		if (!(members[i / 8] >> i % 8 & 1))
			continue;
		if (i >= p->made && (i < QCU_GREEN_GROUPS || !rest))
			return 0;
		p->group[n++] = i < p->made ? p->group[i] : p->rest;
	}
	return n;
}

int cu_green_create(struct be *be, unsigned int dev, const struct be_split *split,
		    const uint8_t *members, struct be_green **out)
{
	PFN_cuDevResourceGenerateDesc_v12040 describe;
	PFN_cuGreenCtxCreate_v12040 create;
	CUdevResourceDesc desc;
	struct be_green *g;
	struct cu_parts p;
	unsigned int n;
	int ret = cu_use(be, dev);

	if (!ret)
		ret = cu_driver_function(be, "cuDevResourceGenerateDesc", &describe);
	if (!ret)
		ret = cu_driver_function(be, "cuGreenCtxCreate", &create);
	if (!ret)
		ret = split_sms(be, dev, split, &p);
	if (ret)
		return ret;
	g = malloc(sizeof(*g));
	n = pick_members(&p, members);
	if (!g)
		ret = QCU_ERR_MemoryAllocation;
	else if (!n)
		ret = QCU_ERR_InvalidResourceConfiguration;
	else
		ret = (int)describe(&desc, p.group, n);
	free(p.group);
	if (!ret)
		ret = (int)create(&g->g, desc, (CUdevice)dev, CU_GREEN_CTX_DEFAULT_STREAM);
	if (ret) {
		free(g);
		return ret;
	}
	g->dev = dev;
	g->life = atomic_load(&be->life[dev]);
	*out = g;
	return QCU_ERR_Success;
}

int cu_green_destroy(struct be *be, struct be_green *g)
{
	PFN_cuGreenCtxDestroy_v12040 destroy;
	int ret = QCU_ERR_Success;

	if (green_alive(be, g)) {
		ret = cu_driver_function(be, "cuGreenCtxDestroy", &destroy);
		if (!ret)
			ret = (int)destroy(g->g);
	}
	free(g);
	return ret;
}

int cu_green_stream(struct be *be, struct be_green *g, int priority, struct be_stream **out)
{
	PFN_cuGreenCtxStreamCreate_v12050 create;
	struct be_stream *s;
	CUstream stream;
	int ret = green_alive(be, g) ? cu_use(be, g->dev) : (int)QCU_ERR_ContextIsDestroyed;

	if (!ret)
		ret = cu_driver_function(be, "cuGreenCtxStreamCreate", &create);
	if (ret)
		return ret;
	s = malloc(sizeof(*s));
	if (!s)
		return QCU_ERR_MemoryAllocation;
	ret = (int)create(&stream, g->g, CU_STREAM_NON_BLOCKING, priority);
	if (ret) {
		free(s);
		return ret;
	}
	*s = (struct be_stream){.s = stream, .dev = g->dev, .life = g->life};
	cu_stream_link(be, s);
	*out = s;
	return QCU_ERR_Success;
}
