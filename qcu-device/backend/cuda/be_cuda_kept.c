// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Device memory that is given out again. cudaMalloc and cudaFree of the same size in turn cost
 * 76 us on an H200, because CUDA unmaps the memory and maps it anew. Programs that allocate what
 * each step needs do this all the time. So the memory of a few small allocations is kept when they
 * are freed, for the next allocation of exactly that size.
 *
 * As cudaFree does, keeping memory waits until the device does not use it any more. The content
 * stays within the process that wrote it: memory that another process may have open is not kept.
 * Nor is memory that is away (be_cuda_move.c).
 */
#include "qcu-device/backend/cuda/be_cuda.h"

bool cu_charge(struct be *be, unsigned int dev, uint64_t bytes)
{
	return bytes <= INT64_MAX &&
	       (!be->charge_device || be->charge_device(be->charge_ctx, dev, (int64_t)bytes));
}

void cu_uncharge(struct be *be, unsigned int dev, uint64_t bytes)
{
	if (be->charge_device && bytes)
		(void)be->charge_device(be->charge_ctx, dev, -(int64_t)bytes);
}

int cu_kept_open(struct be *be)
{
	return pthread_mutex_init(&be->kept_lock, NULL) ? QCU_ERR_OperatingSystem : 0;
}

/* Under the lock. */
static struct cu_kept take_out_kept(struct be *be, size_t at)
{
	struct cu_kept k = be->kept[at];

	for (be->kept_count--; at < be->kept_count; at++)
		be->kept[at] = be->kept[at + 1];
	return k;
}

/* Not under the lock, because cudaFree waits for the device. */
static void free_kept_memory(struct be *be, const struct cu_kept *k, size_t count)
{
	while (count--)
		(void)cu_plot_free(be, k[count].addr);
}

/* Takes out all that lies on the device. Returns how many. */
static size_t take_all_kept_of_dev(struct be *be, unsigned int dev, struct cu_kept gone[CU_KEPT])
{
	size_t i, n = 0;

	pthread_mutex_lock(&be->kept_lock);
	for (i = be->kept_count; i--;)
		if (be->kept[i].dev == dev)
			gone[n++] = take_out_kept(be, i);
	pthread_mutex_unlock(&be->kept_lock);
	return n;
}

bool cu_kept_drop(struct be *be, unsigned int dev)
{
	struct cu_kept gone[CU_KEPT];
	size_t n = take_all_kept_of_dev(be, dev, gone);

	free_kept_memory(be, gone, n);
	return n;
}

void cu_kept_forget(struct be *be, unsigned int dev)
{
	struct cu_kept gone[CU_KEPT];

	take_all_kept_of_dev(be, dev, gone);
}

void cu_kept_close(struct be *be)
{
	while (be->kept_count) {
		unsigned int dev = be->kept[0].dev;

		if (cu_use(be, dev))
			cu_kept_forget(be, dev);
		else
			cu_kept_drop(be, dev);
	}
	pthread_mutex_destroy(&be->kept_lock);
}

/* *addr is 0 if nothing of exactly this size is kept. */
static int take_kept_of_size(struct be *be, unsigned int dev, uint64_t size, uint64_t *addr)
{
	size_t i;
	int ret;

	*addr = 0;
	pthread_mutex_lock(&be->kept_lock);
	for (i = be->kept_count; i-- && !*addr;)
		if (be->kept[i].dev == dev && be->kept[i].size == size)
			*addr = take_out_kept(be, i).addr;
	pthread_mutex_unlock(&be->kept_lock);
	if (!*addr)
		return QCU_ERR_Success;
	/* If a kernel has failed, cudaMalloc says so. */
	ret = CU(be, cudaStreamQuery, cudaStreamLegacy);
	return ret == QCU_ERR_NotReady ? (int)QCU_ERR_Success : ret;
}

/* Kept memory may be what a larger allocation lacks. */
int cu_kept_get(struct be *be, unsigned int dev, uint64_t size, uint64_t *addr)
{
	int ret = take_kept_of_size(be, dev, size, addr);

	if (ret || *addr)
		return ret;
	ret = cu_plot_new(be, dev, size, addr);
	if (ret == QCU_ERR_MemoryAllocation && cu_kept_drop(be, dev))
		ret = cu_plot_new(be, dev, size, addr);
	return ret;
}

static uint64_t sum_kept_bytes(const struct be *be)
{
	uint64_t sum = 0;
	size_t i;

	for (i = 0; i < be->kept_count; i++)
		sum += cu_units(be->kept[i].size);
	return sum;
}

/* Would the memory only replace other memory of its size? */
static bool replaces(struct be *be, unsigned int dev, uint64_t size)
{
	bool same;

	pthread_mutex_lock(&be->kept_lock);
	same = be->kept_count == CU_KEPT && be->kept[0].dev == dev && be->kept[0].size == size;
	pthread_mutex_unlock(&be->kept_lock);
	return same;
}

bool cu_kept_add(struct be *be, unsigned int dev, uint64_t size, uint64_t addr)
{
	struct cu_kept gone[CU_KEPT];
	size_t n = 0;
	bool kept;

	/* If the wait fails, cudaFree returns the error, too. */
	if (cu_units(size) > CU_KEPT_BYTES || replaces(be, dev, size) || !cu_plot_here(be, addr) ||
	    CU(be, cudaDeviceSynchronize))
		return false;
	pthread_mutex_lock(&be->kept_lock);
	/* The oldest make room, unless they lie on another device, which is not current. */
	while ((be->kept_count == CU_KEPT || sum_kept_bytes(be) + cu_units(size) > CU_KEPT_BYTES) &&
	       be->kept[0].dev == dev)
		gone[n++] = take_out_kept(be, 0);
	kept = be->kept_count < CU_KEPT && sum_kept_bytes(be) + cu_units(size) <= CU_KEPT_BYTES;
	if (kept)
		be->kept[be->kept_count++] =
			(struct cu_kept){.addr = addr, .size = size, .dev = dev};
	pthread_mutex_unlock(&be->kept_lock);
	free_kept_memory(be, gone, n);
	return kept;
}

uint64_t cu_kept_bytes(struct be *be, unsigned int dev)
{
	uint64_t sum = 0;
	size_t i;

	pthread_mutex_lock(&be->kept_lock);
	for (i = 0; i < be->kept_count; i++)
		if (be->kept[i].dev == dev)
			sum += cu_units(be->kept[i].size);
	pthread_mutex_unlock(&be->kept_lock);
	return sum;
}
