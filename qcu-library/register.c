// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * cudaHostRegister: memory that the program has, made usable by kernels and asynchronous copies in
 * place. In chunks it is already; the pages of all other memory stay pinned until it is
 * unregistered. Kernels nearly always know it by the program's own address. Where the mirror has
 * something else at that address it gets another, an alias, which means the same memory in every
 * call.
 */
#include <unistd.h>

#include "qcu-library/qcul.h"

/* Memory of other devices (cudaHostRegisterIoMemory) is nothing that a guest could pin. */
#define REGISTER_FLAGS \
	(cudaHostRegisterPortable | cudaHostRegisterMapped | cudaHostRegisterReadOnly)

/* Why a range could not be entered. */
static cudaError_t in_the_way(const struct qcul_range *range)
{
	struct qcul_range other;

	if (!qcul_mem_overlap(range, &other))
		return cudaErrorMemoryAllocation;
	return other.kind == QCUL_MEM_REGISTERED ? cudaErrorHostMemoryAlreadyRegistered
						 : cudaErrorInvalidValue;
}

/* The alias is a second range, unless its addresses mean something else in this process. */
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

static cudaError_t do_register(struct qcul_range *range)
{
	struct qCUcmd cmd;
	cudaError_t err;

	/* Entered first, so that of two threads only one asks the driver. */
	range->other = range->start;
	if (!qcul_mem_add(range))
		return in_the_way(range);
	cmd = qcul_cmd(QCU_OP_HOST_REGISTER);
	cmd.host_register.buf.addr = range->start;
	cmd.host_register.buf.len = range->len;
	cmd.host_register.flags = range->flags;
	err = qcul_send(&cmd, 1);
	if (!err && cmd.host_register.device == range->start)
		return cudaSuccess;
	(void)qcul_mem_take(range->start, QCUL_MEM_REGISTERED, range);
	if (err)
		return err;
	range->other = cmd.host_register.device;
	add_alias(range);
	return qcul_mem_add(range) ? cudaSuccess : cudaErrorMemoryAllocation;
}

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
		.flags = flags,
	};
	cudaError_t err;

	if (!ptr || !size || size - 1 > UINT64_MAX - range.start || flags & ~REGISTER_FLAGS)
		return qcul_done(cudaErrorInvalidValue);
	err = qcul_ready();
	if (err)
		return qcul_done(err);
	/* cudaDevAttrHostRegisterReadOnlySupported is 0: a kernel could write it all the same. */
	if (flags & cudaHostRegisterReadOnly)
		return qcul_done(cudaErrorNotSupported);
	if (size > all_memory())
		return qcul_done(cudaErrorMemoryAllocation);
	range.device = qcul_self.device;
	range.epoch = qcul_epoch();
	return qcul_done(do_register(&range));
}

static cudaError_t do_unregister(void *ptr)
{
	struct qcul_range range;
	struct qCUcmd cmd;
	cudaError_t err;

	if (!ptr)
		return cudaErrorInvalidValue;
	err = qcul_ready();
	if (err)
		return err;
	if (qcul_mem_find(ptr).kind == QCUL_MEM_HOST)
		return cudaErrorHostMemoryNotRegistered;
	/* Out of the table first: the addresses may be registered again during the call. */
	if (!qcul_mem_take((uint64_t)(uintptr_t)ptr, QCUL_MEM_REGISTERED, &range))
		return cudaErrorInvalidValue;
	drop_alias(&range);
	cmd = qcul_cmd(QCU_OP_HOST_UNREGISTER);
	cmd.host_unregister.addr = range.start;
	cmd.host_unregister.len = range.len;
	return qcul_send(&cmd, 1);
}

cudaError_t cudaHostUnregister(void *ptr)
{
	return qcul_done(do_unregister(ptr));
}
