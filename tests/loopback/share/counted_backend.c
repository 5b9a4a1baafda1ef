// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A backend whose memory is counted as a real GPU's is: programs share it without asking, whoever
 * takes more than is left gets nothing, and a program's first use of the GPU takes some for its
 * context. Everything else is the software GPU's. QCU_COUNTED names the file with the count, and
 * with how much memory there is.
 */
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "qcu-device/backend/backend.h"

#define CONTEXT (8ll << 20)

static struct counted {
	_Atomic int64_t used;
	int64_t all;
} * gpu;
static _Atomic int64_t mine;
static struct be_ops ops;
static atomic_bool used;

static bool count(void *ctx, unsigned int device, int64_t bytes)
{
	(void)ctx, (void)device;
	if (atomic_fetch_add(&gpu->used, bytes) + bytes > gpu->all && bytes > 0) {
		atomic_fetch_sub(&gpu->used, bytes);
		return false;
	}
	atomic_fetch_add(&mine, bytes);
	return true;
}

/* The driver gives back what a process has had. */
static void give_back(void)
{
	atomic_fetch_sub(&gpu->used, atomic_exchange(&mine, 0));
}

/* Is there a context, or room for one? */
static bool use(void)
{
	if (!atomic_load(&used) && count(NULL, 0, CONTEXT))
		atomic_store(&used, true);
	return atomic_load(&used);
}

static int counted_open(struct be **be, const struct be_options *opt)
{
	const char *path = getenv("QCU_COUNTED");
	struct be_options o = *opt;
	int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;

	gpu = fd < 0 ? MAP_FAILED
		     : mmap(NULL, sizeof(*gpu), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (gpu == MAP_FAILED)
		return QCU_ERR_NoDevice;
	close(fd);
	atexit(give_back);
	o.resident = count;
	return be_soft.open(be, &o);
}

static int counted_mem_info(struct be *be, unsigned int dev, uint64_t *free, uint64_t *total)
{
	(void)be, (void)dev;
	if (!use())
		return QCU_ERR_MemoryAllocation;
	*total = (uint64_t)gpu->all;
	*free = (uint64_t)(gpu->all - atomic_load(&gpu->used));
	return QCU_ERR_Success;
}

static int counted_mem_alloc(struct be *be, unsigned int dev, uint64_t size, uint64_t *addr)
{
	return use() ? be_soft.mem_alloc(be, dev, size, addr) : (int)QCU_ERR_MemoryAllocation;
}

static int counted_stream_create(struct be *be, unsigned int dev, uint32_t flags, int priority,
				 struct be_stream **s)
{
	return use() ? be_soft.stream_create(be, dev, flags, priority, s)
		     : (int)QCU_ERR_MemoryAllocation;
}

__attribute__((visibility("default"))) const struct be_ops *be_plugin(void);

const struct be_ops *be_plugin(void)
{
	ops = be_soft;
	ops.memory = NULL;
	ops.open = counted_open;
	ops.mem_info = counted_mem_info;
	ops.mem_alloc = counted_mem_alloc;
	ops.stream_create = counted_stream_create;
	return &ops;
}
