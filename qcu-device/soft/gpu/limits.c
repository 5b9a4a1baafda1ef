/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cudaDeviceSetLimit. The heap of malloc() in kernels and the printf buffer get the size that is
 * asked for. A stack is never smaller than the kernel is known to need; kernels with recursive
 * functions get the size that is asked for, or more. All other limits are only stored and returned.
 */
#include "qcu-device/soft/gpu/soft.h"

/* cudaLimit */
enum {
	LIMIT_STACK = 0,
	LIMIT_PRINTF_FIFO = 1,
	LIMIT_MALLOC_HEAP = 2,
	LIMIT_SYNC_DEPTH = 3,
	LIMIT_PENDING_LAUNCHES = 4,
	LIMIT_L2_FETCH = 5,
	LIMIT_PERSISTING_L2 = 6,
};

#define STACK_MAX      (512u << 10)
#define PRINTF_MIN     (64u << 10)
#define PRINTF_MAX     (1u << 30)
#define HEAP_GRAIN     (64u << 10)
#define SYNC_DEPTH_MAX 24u
#define L2_FETCH_MAX   128u

void soft_limits_default(struct soft_device *d)
{
	struct soft_device_limits *l = &d->limits;

	l->value[LIMIT_STACK] = 1024;
	l->value[LIMIT_PRINTF_FIFO] = 8u << 20;
	l->value[LIMIT_MALLOC_HEAP] = 8u << 20;
	l->value[LIMIT_SYNC_DEPTH] = 2;
	l->value[LIMIT_PENDING_LAUNCHES] = 2048;
	l->value[LIMIT_L2_FETCH] = 64;
	l->value[LIMIT_PERSISTING_L2] = 0;
	atomic_store(&l->heap.bytes, l->value[LIMIT_MALLOC_HEAP]);
	atomic_store(&l->heap.used, false);
}

static bool is_known_limit(const struct be *be, uint32_t limit)
{
	switch (limit) {
	case LIMIT_SYNC_DEPTH:
		return be->sm < 90;
	case LIMIT_PERSISTING_L2: /* there is no cache of which to set a part aside */
		return false;
	}
	return limit < SOFT_LIMITS;
}

/* Adjusts the value to its bounds, and applies it. */
static int apply(struct be *be, struct soft_device *d, uint32_t limit, uint64_t *value)
{
	switch (limit) {
	case LIMIT_STACK:
		if (*value > STACK_MAX)
			return QCU_ERR_InvalidValue;
		*value = soft_round_up(*value, 16);
		break;
	case LIMIT_PRINTF_FIFO:
		if (*value > PRINTF_MAX)
			return QCU_ERR_MemoryAllocation;
		*value = soft_round_up(*value < PRINTF_MIN ? PRINTF_MIN : *value, PRINTF_MIN);
		return soft_print_resize(&be->print, *value);
	case LIMIT_MALLOC_HEAP:
		/*
		 * A heap that is larger than the device's memory is accepted, as on a GPU. The
		 * malloc() of a kernel fails later.
		 */
		if (*value > d->mem.vram)
			*value = d->mem.vram;
		if (atomic_load(&d->limits.heap.used))
			return QCU_ERR_InvalidValue;
		*value = soft_round_up(*value, HEAP_GRAIN);
		atomic_store(&d->limits.heap.bytes, *value);
		break;
	case LIMIT_SYNC_DEPTH:
		if (*value > SYNC_DEPTH_MAX)
			return QCU_ERR_InvalidValue;
		break;
	case LIMIT_L2_FETCH:
		if (*value > L2_FETCH_MAX)
			return QCU_ERR_InvalidValue;
		break;
	}
	return QCU_ERR_Success;
}

int soft_limit_set(struct be *be, unsigned int dev, uint32_t limit, uint64_t value)
{
	struct soft_device *d = &be->dev[dev];
	int err = atomic_load(&be->sticky);

	if (!err && !is_known_limit(be, limit))
		err = QCU_ERR_InvalidValue;
	if (!err)
		err = apply(be, d, limit, &value);
	if (!err)
		atomic_store(&d->limits.value[limit], value);
	return err;
}

int soft_limit_get(struct be *be, unsigned int dev, uint32_t limit, uint64_t *value)
{
	int err = atomic_load(&be->sticky);

	if (!err && !is_known_limit(be, limit))
		err = QCU_ERR_InvalidValue;
	*value = err ? 0 : atomic_load(&be->dev[dev].limits.value[limit]);
	return err;
}
