// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Charges the resources that a guest program's commands use against its limits. A command that
 * would exceed a limit fails with CUDA's error for lack of memory before the backend is called.
 */
#include <inttypes.h>

#include "qcu-device/base/complain.h"
#include "qcu-device/commands/call.h"

static int refuse_over_limit(enum limit what, uint64_t n)
{
	complain("%" PRIu64 " more is over the limit %s", n, limit_name(what));
	return QCU_ERR_MemoryAllocation;
}

int mir_take(struct call *c, enum limit what, uint64_t n)
{
	bool ok = what == LIMIT_DEVICE_MEMORY ? budget_take_memory(&c->m->budget, c->cmd->device, n)
					      : budget_take(&c->m->budget, what, n);

	return ok ? (int)QCU_ERR_Success : refuse_over_limit(what, n);
}

void mir_give(struct mirror *m, enum limit what, uint64_t n)
{
	budget_give(&m->budget, what, n);
}

/*
 * Sizes are rounded up to a multiple of this: a GPU divides its memory into units, and a small
 * piece takes up a whole unit.
 */
#define GRAIN 512u

static uint64_t round_up_to_grains(uint64_t bytes)
{
	return bytes > UINT64_MAX - GRAIN ? bytes : (bytes + GRAIN - 1) / GRAIN * GRAIN;
}

int mir_take_memory(struct mirror *m, unsigned int device, uint64_t bytes)
{
	return budget_take_memory(&m->budget, device, round_up_to_grains(bytes))
		       ? (int)QCU_ERR_Success
		       : refuse_over_limit(LIMIT_DEVICE_MEMORY, bytes);
}

void mir_give_memory(struct mirror *m, unsigned int device, uint64_t bytes)
{
	budget_give_memory(&m->budget, device, round_up_to_grains(bytes));
}

/* The caller holds m->lock. Only one MAP runs at a time, but UNMAPs may run at the same time. */
static bool count_mapped(struct mirror *m)
{
	return budget_set(&m->budget, LIMIT_MAPPED, m->window.mapped_bytes + m->mapping);
}

int mir_take_mapping(struct call *c, uint64_t len)
{
	struct mirror *m = c->m;
	bool ok;

	pthread_mutex_lock(&m->lock);
	m->mapping = len;
	ok = len <= UINT64_MAX / 2 && count_mapped(m);
	if (!ok) {
		m->mapping = 0;
		count_mapped(m);
	}
	pthread_mutex_unlock(&m->lock);
	return ok ? (int)QCU_ERR_Success : refuse_over_limit(LIMIT_MAPPED, len);
}

void mir_mapping_ends(struct mirror *m)
{
	pthread_mutex_lock(&m->lock);
	m->mapping = 0;
	count_mapped(m);
	pthread_mutex_unlock(&m->lock);
}

void mir_count_mapped(struct mirror *m)
{
	pthread_mutex_lock(&m->lock);
	count_mapped(m);
	pthread_mutex_unlock(&m->lock);
}

/*
 * Values of cudaDeviceSetLimit that take device memory: the stacks of all threads that can exist,
 * printf's buffer, and the heap.
 */
enum { LIMIT_STACK, LIMIT_PRINTF, LIMIT_HEAP };

/* cudaDevAttrMultiProcessorCount and cudaDevAttrMaxThreadsPerMultiProcessor */
#define ATTR_SMS     16
#define ATTR_THREADS 39

static uint64_t limit_bytes(struct call *c, uint32_t limit, uint64_t value)
{
	struct qcu_device_desc desc = {0};
	uint64_t bytes, threads;

	if (limit != LIMIT_STACK)
		return value;
	if (c->m->cfg.ops->device_desc(c->m->be, c->cmd->device, &desc))
		return 0;
	threads = (uint64_t)(uint32_t)desc.attr[ATTR_SMS] * (uint32_t)desc.attr[ATTR_THREADS];
	return __builtin_mul_overflow(value, threads, &bytes) ? UINT64_MAX : bytes;
}

int mir_take_limit(struct call *c, uint32_t limit, uint64_t *value, uint64_t *before)
{
	struct mirror *m = c->m;
	unsigned int dev = c->cmd->device;
	uint64_t *now, bytes, most;
	int rc = QCU_ERR_Success;

	*before = 0;
	if (limit > LIMIT_HEAP)
		return rc;
	bytes = limit_bytes(c, limit, *value);
	pthread_mutex_lock(&m->lock);
	now = &m->limit_bytes[dev][limit];
	*before = *now;
	/*
	 * CUDA accepts a buffer or a heap of any size and makes it as large as it can. So does
	 * this: it takes what is left.
	 */
	most = *now + budget_memory_left(&m->budget, dev, UINT64_MAX - *now);
	if (limit != LIMIT_STACK && bytes > most && most)
		*value = bytes = most;
	if (bytes > *now)
		rc = mir_take(c, LIMIT_DEVICE_MEMORY, bytes - *now);
	else
		budget_give_memory(&m->budget, dev, *now - bytes);
	if (!rc)
		*now = bytes;
	pthread_mutex_unlock(&m->lock);
	/* The error that CUDA returns for a stack that is too large. */
	return rc && limit == LIMIT_STACK ? (int)QCU_ERR_InvalidValue : rc;
}

void mir_limit_back(struct mirror *m, unsigned int dev, uint32_t limit, uint64_t before)
{
	uint64_t *now;

	if (limit > LIMIT_HEAP)
		return;
	pthread_mutex_lock(&m->lock);
	now = &m->limit_bytes[dev][limit];
	if (before > *now)
		budget_add_memory(&m->budget, dev, before - *now);
	else
		budget_give_memory(&m->budget, dev, *now - before);
	*now = before;
	pthread_mutex_unlock(&m->lock);
}

static enum limit limit_of(enum handle_kind kind)
{
	switch (kind) {
	case HANDLE_STREAM:
	case HANDLE_GREEN: /* has a stream of its own */
		return LIMIT_STREAMS;
	case HANDLE_EVENT:
		return LIMIT_EVENTS;
	case HANDLE_MODULE:
	case HANDLE_LINK:
		return LIMIT_MODULES;
	case HANDLE_KERNEL:
		return LIMIT_KERNELS;
	case HANDLE_ARRAY:
		return LIMIT_ARRAYS;
	case HANDLE_PHYS:
		return LIMIT_ALLOCATIONS;
	case HANDLE_POOL:
		return LIMIT_POOLS;
	case HANDLE_COND:
	case HANDLE_GRAPH:
		return LIMIT_GRAPHS;
	case HANDLE_LIBRARY:
		return LIMIT_LIBRARY_OBJECTS;
	case HANDLE_KINDS:
		break;
	}
	return LIMIT_KINDS;
}

int mir_handle_new(struct call *c, enum handle_kind kind, struct handle **out)
{
	int rc = mir_take(c, limit_of(kind), 1);

	*out = NULL;
	if (rc)
		return rc;
	*out = handle_new(kind);
	if (*out)
		return QCU_ERR_Success;
	mir_give(c->m, limit_of(kind), 1);
	return QCU_ERR_MemoryAllocation;
}

void mir_handle_drop(struct mirror *m, struct handle *h)
{
	if (!h)
		return;
	mir_give(m, limit_of(h->kind), 1);
	handle_drop(&m->handles, h);
}

void mir_handle_gone(struct mirror *m, const struct handle *h)
{
	mir_give(m, limit_of(h->kind), 1);
}
