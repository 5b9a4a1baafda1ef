// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * cudaHostRegister: kernels and asynchronous copies can then use the program's own memory in place.
 * Chunk memory can always be used so. The pages of all other memory stay pinned until the memory is
 * unregistered. Kernels nearly always use the program's own address for it. If the mirror has
 * something else at that address, the memory gets another address, an alias. The alias means the
 * same memory in every call.
 */
#include <stdlib.h>
#include <unistd.h>

#include "qcu-library/malloc/arena.h"
#include "qcu-library/malloc/addresses.h"

/* cudaHostRegisterIoMemory is missing: a guest cannot pin memory of other devices. */
#define REGISTER_FLAGS \
	(cudaHostRegisterPortable | cudaHostRegisterMapped | cudaHostRegisterReadOnly)

_Static_assert(cudaHostRegisterPortable == cudaHostAllocPortable &&
		       cudaHostRegisterMapped == cudaHostAllocMapped,
	       "qcul_mem_asked() takes both");

/* The error for a range that could not be added. */
static cudaError_t in_the_way(const struct qcul_range *range)
{
	struct qcul_range other;

	if (!qcul_mem_overlap(range, &other))
		return cudaErrorMemoryAllocation;
	return qcul_range_is_registered(&other) ? cudaErrorHostMemoryAlreadyRegistered
						: cudaErrorInvalidValue;
}

/* Adds the alias as a second range, unless this process uses its addresses for something else. */
static void add_alias(const struct qcul_range *range)
{
	struct qcul_range alias = *range;

	alias.kind = QCUL_MEM_ALIAS;
	alias.start = range->other;
	alias.other = range->start;
	if (qcul_reserve(alias.start, alias.len))
		(void)qcul_mem_add(&alias);
}

static void drop_alias(const struct qcul_range *range)
{
	struct qcul_range alias;

	if (range->other != range->start)
		(void)qcul_mem_take(range->other, QCUL_MEM_ALIAS, &alias);
}

cudaError_t qcul_register(struct qcul_range *range)
{
	struct qCUcmd cmd;
	cudaError_t err;

	/* Add the range first, so that only one of two threads asks the driver. */
	range->other = range->start;
	if (!qcul_mem_add(range))
		return in_the_way(range);
	cmd = qcul_cmd(QCU_OP_HOST_REGISTER);
	cmd.host_register.buf.addr = range->start;
	cmd.host_register.buf.len = range->len;
	cmd.host_register.flags = qcul_mem_call_flags(range->flags);
	err = qcul_send(&cmd, 1);
	if (!err && cmd.host_register.device == range->start)
		return cudaSuccess;
	(void)qcul_mem_take(range->start, range->kind, range);
	if (err)
		return err;
	range->other = cmd.host_register.device;
	add_alias(range);
	return qcul_mem_add(range) ? cudaSuccess : cudaErrorMemoryAllocation;
}

/* ---- malloc blocks that were freed while registered ---- */

/* Protected by the lock of memmap.c, as the registrations are. */
static struct {
	struct kept {
		void *p;
		size_t size;
		struct kept *next;
	} * kept;
} process;

/* During fork() this thread already holds the lock. */
static void lock_kept(void)
{
	if (!qcul_arena_in_fork())
		qcul_mem_lock();
}

static void unlock_kept(void)
{
	if (!qcul_arena_in_fork())
		qcul_mem_unlock();
}

static bool overlaps(const void *p, size_t size)
{
	const struct qcul_range range = {.start = (uint64_t)(uintptr_t)p, .len = size};
	struct qcul_range other;

	return qcul_mem_overlap_locked(&range, &other) && qcul_range_is_registered(&other);
}

bool qcul_is_registered(const void *p, size_t size)
{
	bool is;

	if (!qcul_mem_registered())
		return false;
	lock_kept();
	is = overlaps(p, size);
	unlock_kept();
	return is;
}

bool qcul_keep_registered(void *p, size_t size, bool *twice)
{
	struct kept *k = malloc(sizeof(*k)), *other;
	bool keep;

	lock_kept();
	keep = size && overlaps(p, size);
	for (other = process.kept; keep && other; other = other->next)
		*twice |= other->p == p;
	/* Without memory for the note, the block is never freed. */
	if (keep && !*twice && k) {
		*k = (struct kept){.p = p, .size = size, .next = process.kept};
		process.kept = k;
		k = NULL;
	}
	unlock_kept();
	free(k);
	return keep;
}

void qcul_free_kept(void)
{
	struct kept **at, *k, *gone = NULL;

	lock_kept();
	for (at = &process.kept; (k = *at);) {
		if (overlaps(k->p, k->size)) {
			at = &k->next;
		} else {
			*at = k->next;
			k->next = gone;
			gone = k;
		}
	}
	unlock_kept();
	while ((k = gone)) {
		gone = k->next;
		(void)qcul_arena_free(k->p);
		free(k);
	}
}

/* ---- the public calls ---- */

static uint64_t all_memory(void)
{
	return (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
}

cudaError_t cudaHostRegister(void *ptr, size_t size, unsigned int flags)
{
	struct qcul_range range = {
		.start = (uint64_t)(uintptr_t)ptr,
		.len = size,
		.kind = QCUL_MEM_REGISTERED,
		.flags = qcul_mem_asked(flags),
	};
	cudaError_t err;

	if (!ptr || !size || size - 1 > UINT64_MAX - range.start || flags & ~REGISTER_FLAGS)
		return qcul_done(cudaErrorInvalidValue);
	err = qcul_ready();
	if (err)
		return qcul_done(err);
	/*
	 * cudaDevAttrHostRegisterReadOnlySupported is 0: a kernel could still write to the memory.
	 */
	if (flags & cudaHostRegisterReadOnly)
		return qcul_done(cudaErrorNotSupported);
	if (size > all_memory())
		return qcul_done(cudaErrorMemoryAllocation);
	range.device = qcul_self.device;
	range.epoch = qcul_epoch();
	return qcul_done(qcul_register(&range));
}

cudaError_t qcul_unregister(const struct qcul_range *range)
{
	struct qCUcmd cmd = qcul_cmd(QCU_OP_HOST_UNREGISTER);

	drop_alias(range);
	cmd.host_unregister.addr = range->start;
	cmd.host_unregister.len = range->len;
	return qcul_send(&cmd, 1);
}

static cudaError_t do_unregister(void *ptr)
{
	struct qcul_range range;
	cudaError_t err;

	if (!ptr)
		return cudaErrorInvalidValue;
	err = qcul_ready();
	if (err)
		return err;
	range = qcul_mem_find(ptr);
	if (!qcul_range_is_known(&range))
		return cudaErrorHostMemoryNotRegistered;
	/* Remove the range first: the addresses may be registered again during the call. */
	if (!qcul_mem_take((uint64_t)(uintptr_t)ptr, QCUL_MEM_REGISTERED, &range))
		return cudaErrorInvalidValue;
	err = qcul_unregister(&range);
	qcul_free_kept();
	return err;
}

cudaError_t cudaHostUnregister(void *ptr)
{
	return qcul_done(do_unregister(ptr));
}
