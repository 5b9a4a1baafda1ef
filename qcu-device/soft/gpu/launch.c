/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Kernels: the resources that they need, the attributes that can be set, how many of their blocks
 * fit on a multiprocessor, and the launch. The launch checks and the order of their error codes are
 * those that an H200 with CUDA 13.0 showed: any wrong dimension or shared memory size is
 * cudaErrorInvalidValue.
 */
#include <stdlib.h>
#include <string.h>

#include "qcu-device/soft/gpu/soft.h"

#define WARP	     32u
#define BLOCK_MAX    1024u
#define REG_GRANULE  256u /* a warp gets registers in multiples of this */
#define SM_PARTS     4u	  /* each has a quarter of the registers, and runs every fourth warp */
#define SHARED_GRAIN 256u

/* cudaFuncAttribute */
enum {
	FUNC_MAX_DYNAMIC_SHARED = 8,
	FUNC_CARVEOUT = 9,
	FUNC_CLUSTER_FIRST = 10,
	FUNC_CLUSTER_LAST = 15,
};

struct launch_work {
	struct soft_work work;
	struct be *be;
	const struct ptx_kernel *ptx;
	struct ptx_launch l;
	unsigned char params[];
};

/* Returns the dynamic shared memory that a launch may ask for. */
static uint32_t max_dynamic(const struct be_kernel *k, unsigned int dev,
			    const struct soft_limits *lim, const struct ptx_kernel_info *info)
{
	int set = __atomic_load_n(&k->dev[dev].max_dynamic, __ATOMIC_RELAXED);

	if (set >= 0)
		return (uint32_t)set;
	return info->shared_bytes < lim->shared_per_block
		       ? lim->shared_per_block - info->shared_bytes
		       : 0;
}

int soft_kernel_params(struct be *be, struct be_kernel *k, struct qcu_param *params, uint32_t max,
		       uint32_t *count)
{
	int err = atomic_load(&be->sticky);
	const struct ptx_kernel_info *info;
	const struct ptx_kernel *ptx;
	uint32_t i;

	if (!err)
		err = soft_kernel_get(k, 0, &ptx, &info);
	if (err)
		return err;
	*count = info->param_count;
	for (i = 0; i < max && i < info->param_count; i++) {
		params[i].offset = info->params[i].offset;
		params[i].size = info->params[i].size;
	}
	return QCU_ERR_Success;
}

static uint32_t warps_of(uint32_t threads)
{
	return (uint32_t)soft_round_up(threads, WARP) / WARP;
}

/* Returns how many warps can have `regs` registers per thread at the same time. */
static uint32_t warps_with(const struct soft_limits *lim, uint32_t regs)
{
	uint32_t each = (uint32_t)soft_round_up((uint64_t)(regs ? regs : 1) * WARP, REG_GRANULE);

	return lim->regs / SM_PARTS / each * SM_PARTS;
}

/*
 * Returns the registers of each thread. As with ptxas, a kernel with launch bounds gets no more
 * registers than blocks within these bounds can have. So a launch within the bounds never fails for
 * lack of registers.
 */
static uint32_t regs_of(const struct soft_limits *lim, const struct ptx_kernel_info *info)
{
	uint32_t warps = warps_of(info->max_threads), most;

	if (!info->bounded)
		return info->regs;
	if (info->min_blocks && info->min_blocks * warps <= lim->threads_per_sm / WARP)
		warps *= info->min_blocks;
	most = lim->regs / (uint32_t)soft_round_up(warps, SM_PARTS) / REG_GRANULE * REG_GRANULE /
	       WARP;
	return info->regs < most ? info->regs : most;
}

/* Returns the number of threads in the largest block that can be launched. */
static uint32_t max_threads(const struct soft_limits *lim, const struct ptx_kernel_info *info)
{
	uint32_t most = warps_with(lim, regs_of(lim, info)) * WARP;

	return most < info->max_threads ? most : info->max_threads;
}

int soft_kernel_desc(struct be *be, unsigned int dev, struct be_kernel *k,
		     struct qcu_kernel_desc *desc)
{
	int err = atomic_load(&be->sticky);
	const struct soft_limits *lim = soft_limits(be->sm);
	const struct ptx_kernel_info *info;
	const struct ptx_kernel *ptx;

	if (!err)
		err = soft_kernel_get(k, dev, &ptx, &info);
	if (err)
		return err;
	*desc = (struct qcu_kernel_desc){
		.shared_bytes = info->shared_bytes,
		.const_bytes = info->const_bytes,
		.local_bytes = info->local_bytes,
		.max_threads = max_threads(lim, info),
		.regs = regs_of(lim, info),
		.ptx_version = info->ptx_version,
		.binary_version = be->sm,
		.max_dynamic_shared = max_dynamic(k, dev, lim, info),
		.params = info->param_count,
		.carveout = __atomic_load_n(&k->dev[dev].carveout, __ATOMIC_RELAXED),
	};
	return QCU_ERR_Success;
}

int soft_kernel_set(struct be *be, unsigned int dev, struct be_kernel *k, uint32_t attr, int value)
{
	const struct soft_limits *lim = soft_limits(be->sm);
	int err = atomic_load(&be->sticky);
	const struct ptx_kernel_info *info;
	const struct ptx_kernel *ptx;

	if (!err)
		err = soft_kernel_get(k, dev, &ptx, &info);
	if (err)
		return err;
	switch (attr) {
	case FUNC_MAX_DYNAMIC_SHARED:
		if (value < 0 || (uint64_t)value + info->shared_bytes > lim->shared_optin)
			return QCU_ERR_InvalidValue;
		__atomic_store_n(&k->dev[dev].max_dynamic, value, __ATOMIC_RELAXED);
		return QCU_ERR_Success;
	case FUNC_CARVEOUT: /* a hint; no cache shares this memory */
		if (value < -1 || value > 100)
			return QCU_ERR_InvalidValue;
		__atomic_store_n(&k->dev[dev].carveout, value, __ATOMIC_RELAXED);
		return QCU_ERR_Success;
	}
	if (attr >= FUNC_CLUSTER_FIRST && attr <= FUNC_CLUSTER_LAST) {
		soft_say("thread block clusters are not supported (function attribute %u)", attr);
		return QCU_ERR_NotSupported;
	}
	return QCU_ERR_InvalidValue;
}

static uint32_t blocks_per_sm(const struct soft_limits *lim, const struct ptx_kernel_info *info,
			      uint32_t threads, uint64_t dynamic)
{
	uint32_t warps = warps_of(threads), with_regs = warps_with(lim, regs_of(lim, info));
	uint64_t shared = soft_round_up(info->shared_bytes + dynamic, SHARED_GRAIN);
	uint64_t n = lim->blocks_per_sm;

	if (threads > BLOCK_MAX || shared > lim->shared_optin)
		return 0;
	if (n > lim->threads_per_sm / (warps * WARP))
		n = lim->threads_per_sm / (warps * WARP);
	if (n > with_regs / warps)
		n = with_regs / warps;
	if (shared + lim->shared_reserved &&
	    n > lim->shared_per_sm / (shared + lim->shared_reserved))
		n = lim->shared_per_sm / (shared + lim->shared_reserved);
	return (uint32_t)n;
}

int soft_occupancy(struct be *be, unsigned int dev, struct be_kernel *k, uint32_t block_threads,
		   uint64_t dynamic_shared, uint32_t flags, uint32_t *blocks)
{
	int err = atomic_load(&be->sticky);
	const struct ptx_kernel_info *info;
	const struct ptx_kernel *ptx;

	/* The only flag, cudaOccupancyDisableCachingOverride, is for a cache; there is none. */
	if (!err && (!block_threads || block_threads > INT32_MAX || flags & ~1u))
		err = QCU_ERR_InvalidValue;
	if (!err)
		err = soft_kernel_get(k, dev, &ptx, &info);
	if (err)
		return err;
	if (dynamic_shared > UINT32_MAX)
		dynamic_shared = UINT32_MAX;
	*blocks = blocks_per_sm(soft_limits(be->sm), info, block_threads, dynamic_shared);
	return QCU_ERR_Success;
}

int soft_occupancy_shared(struct be *be, unsigned int dev, struct be_kernel *k, uint32_t blocks,
			  uint32_t block_threads, uint64_t *bytes)
{
	const struct soft_limits *lim = soft_limits(be->sm);
	int err = atomic_load(&be->sticky);
	const struct ptx_kernel_info *info;
	const struct ptx_kernel *ptx;
	uint64_t share, most;

	*bytes = 0;
	if (!err)
		err = soft_kernel_get(k, dev, &ptx, &info);
	if (err)
		return err;
	if (!blocks || !block_threads || blocks_per_sm(lim, info, block_threads, 0) < blocks)
		return QCU_ERR_InvalidValue;
	share = lim->shared_per_sm / blocks / SHARED_GRAIN * SHARED_GRAIN;
	share = share > lim->shared_reserved ? share - lim->shared_reserved : 0;
	if (share > lim->shared_optin)
		share = lim->shared_optin;
	most = max_dynamic(k, dev, lim, info);
	*bytes = share > info->shared_bytes ? share - info->shared_bytes : 0;
	if (*bytes > most)
		*bytes = most;
	return QCU_ERR_Success;
}

/* A cluster of one block is just a block. Larger clusters are not supported. */
static bool is_cluster(const struct be_launch *l)
{
	return l->flags & QCU_LAUNCH_CLUSTER &&
	       (l->cluster.x > 1 || l->cluster.y > 1 || l->cluster.z > 1);
}

static int no_clusters(void)
{
	soft_say("thread block clusters are not supported");
	return QCU_ERR_NotSupported;
}

int soft_occupancy_cluster(struct be *be, unsigned int dev, struct be_kernel *k,
			   const struct be_launch *l, uint32_t what, uint32_t *count)
{
	uint64_t threads = (uint64_t)l->block.x * l->block.y * l->block.z;
	uint32_t blocks = 0;
	int err;

	*count = 0;
	err = soft_occupancy(be, dev, k, threads > BLOCK_MAX ? 0 : (uint32_t)threads,
			     l->dynamic_shared, 0, &blocks);
	if (err)
		return err;
	if (what == QCU_CLUSTERS_LARGEST) {
		*count = blocks ? 1 : 0;
		return QCU_ERR_Success;
	}
	if (!(l->flags & QCU_LAUNCH_CLUSTER))
		return QCU_ERR_Success;
	if (!l->cluster.x || !l->cluster.y || !l->cluster.z)
		return QCU_ERR_InvalidClusterSize;
	if (is_cluster(l))
		return no_clusters();
	*count = blocks * be->dev[dev].env.sm_count;
	return QCU_ERR_Success;
}

static int check_registers(const struct soft_limits *lim, const struct ptx_kernel_info *info,
			   uint32_t threads)
{
	uint32_t regs = regs_of(lim, info);

	if (warps_of(threads) <= warps_with(lim, regs))
		return QCU_ERR_Success;
	soft_say(
		"kernel %s: no registers for %u threads with %u each, only for %u (a block has %u)",
		info->name, threads, regs, warps_with(lim, regs) * WARP, lim->regs);
	return QCU_ERR_LaunchOutOfResources;
}

static int check_launch(struct be *be, const struct be_kernel *k, const struct be_launch *l,
			unsigned int dev, const struct ptx_kernel_info *info)
{
	const struct soft_limits *lim = soft_limits(be->sm);
	uint64_t threads, grid;
	int err;

	if (!l->grid.x || !l->grid.y || !l->grid.z || l->grid.x > INT32_MAX ||
	    l->grid.y > UINT16_MAX || l->grid.z > UINT16_MAX)
		return QCU_ERR_InvalidValue;
	if (!l->block.x || !l->block.y || !l->block.z || l->block.x > BLOCK_MAX ||
	    l->block.y > BLOCK_MAX || l->block.z > 64)
		return QCU_ERR_InvalidValue;
	threads = (uint64_t)l->block.x * l->block.y * l->block.z;
	if (threads > BLOCK_MAX || threads > info->max_threads)
		return QCU_ERR_InvalidValue;
	err = check_registers(lim, info, (uint32_t)threads);
	if (err)
		return err;
	if (info->req_threads[0] &&
	    (info->req_threads[0] != l->block.x || info->req_threads[1] != l->block.y ||
	     info->req_threads[2] != l->block.z))
		return QCU_ERR_InvalidValue;
	if (l->dynamic_shared > max_dynamic(k, dev, lim, info) ||
	    info->shared_bytes > lim->shared_per_block)
		return QCU_ERR_InvalidValue;
	if (l->param_bytes != info->param_bytes || (l->param_bytes && !l->params))
		return QCU_ERR_InvalidValue;
	if (l->flags & ~QCU_LAUNCH_FLAGS)
		return QCU_ERR_NotSupported;
	if (is_cluster(l))
		return no_clusters();
	grid = (uint64_t)l->grid.x * l->grid.y * l->grid.z;
	if (l->flags & QCU_LAUNCH_COOPERATIVE &&
	    grid > (uint64_t)blocks_per_sm(lim, info, (uint32_t)threads, l->dynamic_shared) *
			    be->dev[dev].env.sm_count)
		return QCU_ERR_CooperativeLaunchTooLarge;
	return QCU_ERR_Success;
}

static int kernel_launch_run(struct soft_work *work)
{
	struct launch_work *w = (struct launch_work *)work;
	struct soft_running running;
	struct ptx_diag diag = {0};
	enum ptx_status st;

	soft_watchdog_begin(w->be, &running, ptx_kernel_info(w->ptx)->name);
	st = ptx_run(w->ptx, &w->l, &diag);
	soft_watchdog_end(w->be, &running);
	return soft_ptx_error(w->be, st, &diag);
}

int soft_launch(struct be *be, struct be_kernel *k, const struct be_launch *l, struct be_stream *s)
{
	int err = atomic_load(&be->sticky);
	const struct ptx_kernel_info *info;
	const struct ptx_kernel *ptx;
	struct launch_work *w;

	if (!err)
		err = soft_kernel_get(k, s->dev->index, &ptx, &info);
	if (!err)
		err = check_launch(be, k, l, s->dev->index, info);
	if (err)
		return err;
	w = malloc(sizeof(*w) + l->param_bytes);
	if (!w)
		return QCU_ERR_MemoryAllocation;
	w->work = (struct soft_work){
		.run = kernel_launch_run, .busy = BE_BUSY_KERNELS, .free = soft_work_free};
	w->work.bytes = (uint32_t)l->param_bytes;
	w->be = be;
	w->ptx = ptx;
	w->l = (struct ptx_launch){
		.grid = {l->grid.x, l->grid.y, l->grid.z},
		.block = {l->block.x, l->block.y, l->block.z},
		.dynamic_shared = l->dynamic_shared,
		.params = w->params,
		.param_bytes = l->param_bytes,
		.cooperative = l->flags & QCU_LAUNCH_COOPERATIVE,
		.stack_bytes = (uint32_t)s->dev->limits.value[0], /* cudaLimitStackSize */
		.cancel = &be->cancel,
	};
	if (l->param_bytes)
		memcpy(w->params, l->params, l->param_bytes);
	return soft_submit(s, &w->work, SOFT_QUEUE, NULL);
}
