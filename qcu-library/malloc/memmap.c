// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * What the library knows about addresses: device memory that it has allocated, module variables
 * that it has looked up, and memory in the window that both sides use. cudaMemcpyDefault, cudaFree
 * and cudaPointerGetAttributes use this to tell one kind of pointer from another.
 */
#include "qcu-library/link/fork.h"
#include "qcu-library/malloc/addresses.h"

/* How many freed ranges are remembered for qcul_mem_near(). */
#define FREED 32

static struct {
	struct qcul_ranges ranges;
	struct qcul_range freed[FREED];
	unsigned int frees;	/* the next one is kept at this number modulo FREED */
	atomic_uint registered; /* number of registered ranges */
} process;

static void forget_ranges(int device);
QCUL_AT_FORK(QCUL_FORK_MEMORY, .reset = forget_ranges)

void qcul_mem_lock(void)
{
	pthread_mutex_lock(&at_fork.lock);
}

void qcul_mem_unlock(void)
{
	pthread_mutex_unlock(&at_fork.lock);
}

bool qcul_mem_add(const struct qcul_range *range)
{
	bool ok;

	qcul_mem_lock();
	ok = qcul_ranges_add(&process.ranges, range);
	if (ok && qcul_range_is_registered(range))
		atomic_fetch_add_explicit(&process.registered, 1, memory_order_relaxed);
	qcul_mem_unlock();
	return ok;
}

bool qcul_mem_take(uint64_t start, enum qcul_mem kind, struct qcul_range *range)
{
	const struct qcul_range *found;
	bool ok;

	qcul_mem_lock();
	found = qcul_ranges_find(&process.ranges, start);
	ok = found && found->start == start && found->kind == kind;
	if (ok) {
		*range = *found;
		qcul_ranges_remove(&process.ranges, found);
		process.freed[process.frees++ % FREED] = *range;
		if (kind == QCUL_MEM_REGISTERED)
			atomic_fetch_sub_explicit(&process.registered, 1, memory_order_relaxed);
	}
	qcul_mem_unlock();
	return ok;
}

struct qcul_range qcul_mem_find(const void *addr)
{
	struct qcul_range range = {.kind = QCUL_MEM_HOST};
	const struct qcul_range *found;

	qcul_mem_lock();
	found = qcul_ranges_find(&process.ranges, (uint64_t)(uintptr_t)addr);
	/* The parent's pinned memory is ordinary memory in the child. */
	if (found && found->epoch == qcul_epoch())
		range = *found;
	qcul_mem_unlock();
	return range;
}

/* The range that was freed last of those that contained addr. The lock is held. */
static const struct qcul_range *find_freed_range(uint64_t addr)
{
	unsigned int i;

	for (i = 1; i <= FREED; i++) {
		const struct qcul_range *r = &process.freed[(process.frees - i) % FREED];

		if (addr - r->start < r->len)
			return r;
	}
	return NULL;
}

bool qcul_mem_near(uint64_t addr, struct qcul_range *range, bool *freed)
{
	const struct qcul_range *before, *after, *near;
	size_t below;

	qcul_mem_lock();
	after = qcul_ranges_after(&process.ranges, addr);
	below = after ? (size_t)(after - process.ranges.v) : process.ranges.count;
	before = below ? &process.ranges.v[below - 1] : NULL;
	if (before && after && addr - before->start >= before->len &&
	    after->start - addr < addr - before->start - before->len)
		before = NULL;
	near = before && addr - before->start < before->len ? NULL : find_freed_range(addr);
	*freed = near;
	if (!near)
		near = before ? before : after;
	if (near)
		*range = *near;
	qcul_mem_unlock();
	return near;
}

bool qcul_mem_overlap_locked(const struct qcul_range *range, struct qcul_range *other)
{
	const struct qcul_range *found;

	found = qcul_ranges_find(&process.ranges, range->start);
	if (!found)
		found = qcul_ranges_after(&process.ranges, range->start);
	if (found && found->start > range->start && found->start - range->start >= range->len)
		found = NULL;
	if (found)
		*other = *found;
	return found;
}

bool qcul_mem_overlap(const struct qcul_range *range, struct qcul_range *other)
{
	bool found;

	qcul_mem_lock();
	found = qcul_mem_overlap_locked(range, other);
	qcul_mem_unlock();
	return found;
}

unsigned int qcul_mem_registered(void)
{
	return atomic_load_explicit(&process.registered, memory_order_relaxed);
}

uint64_t qcul_mem_device_address(const void *addr)
{
	struct qcul_range range = qcul_mem_find(addr);
	uint64_t at = (uint64_t)(uintptr_t)addr;

	return qcul_range_is_pinned(&range) ? range.other + (at - range.start) : at;
}

static bool of_session(const struct qcul_range *range)
{
	return qcul_range_is_on_gpu(range) || qcul_range_is_registered(range) ||
	       range->kind == QCUL_MEM_ALIAS;
}

static void forget_known_ranges(bool (*which)(const struct qcul_range *range), int device)
{
	size_t i, kept = 0;

	for (i = 0; i < process.ranges.count; i++) {
		const struct qcul_range *range = &process.ranges.v[i];

		if (which(range) && (device < 0 || range->device == device))
			continue;
		process.ranges.v[kept++] = *range;
	}
	process.ranges.count = kept;
}

/* Mappings do not belong to a device's context. */
static bool goes_in_reset(const struct qcul_range *range)
{
	return qcul_range_is_on_gpu(range) && !qcul_range_has(range, QCUL_MEM_MAPPED);
}

uint64_t qcul_mem_mapped(const struct qcul_range *range)
{
	bool wide = qcul_range_has(range, QCUL_MEM_WIDE);
	const uint64_t align = QCU_MANAGED_ALIGN;

	return wide ? (range->len + align - 1) / align * align : range->len;
}

void qcul_mem_stays(uint64_t start)
{
	size_t i;

	qcul_mem_lock();
	for (i = 0; i < process.ranges.count; i++)
		if (process.ranges.v[i].start == start)
			process.ranges.v[i].flags &= ~QCUL_MEM_MOVES;
	qcul_mem_unlock();
}

/*
 * After a reset no managed memory moves. After fork the parent's device memory and registrations do
 * not belong to the child.
 */
static void forget_ranges(int device)
{
	size_t i;

	qcul_mem_lock();
	forget_known_ranges(device < 0 ? of_session : goes_in_reset, device);
	for (i = 0; i < process.ranges.count; i++)
		process.ranges.v[i].flags &= ~QCUL_MEM_MOVES;
	if (device < 0)
		atomic_store(&process.registered, 0);
	qcul_mem_unlock();
}
