// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Managed memory. Small allocations stay in place: they are pinned memory, which the GPU uses where
 * it is. Larger ones move. The device has memory of its own for them at the same address, and the
 * driver keeps the two sides equal (docs/managed.md). For commands, memory that moves is device
 * memory.
 *
 * What the device has no memory for stays in place, and so does all of it with QCU_MANAGED=inplace
 * in the environment, or without a driver (in the tests' loopback).
 */
#include "qcu-library/memory/memory.h"

/* The unit of device memory that has an address of the program's choice. */
#define MOVES_MIN QCU_MANAGED_GRAIN

static size_t round_up_to_multiple(size_t n, size_t to)
{
	return (n + to - 1) / to * to;
}

/* Asks the device for memory at these addresses. */
static cudaError_t request_device_memory(uint64_t va, size_t len, size_t bytes)
{
	struct qCUcmd cmd = qcul_cmd(QCU_OP_MANAGED);

	cmd.managed.va = va;
	cmd.managed.len = len;
	cmd.managed.bytes = bytes;
	return qcul_send(&cmd, 1);
}

bool qcul_managed_place(void **ptr, size_t size)
{
	static atomic_bool never; /* the device cannot do it at all */
	const size_t page = 4096, len = round_up_to_multiple(size, QCU_MANAGED_ALIGN);
	struct qcul_range range = {
		.kind = QCUL_MEM_MANAGED,
		.flags = QCUL_MEM_MOVES | QCUL_MEM_WIDE,
		.len = round_up_to_multiple(size, page),
		.device = qcul_self.device,
		.epoch = qcul_epoch(),
	};
	cudaError_t err;
	void *addr;

	if (size < MOVES_MIN || size > qcul_hello()->window_size || qcul_managed_in_place() ||
	    atomic_load_explicit(&never, memory_order_relaxed))
		return false;
	addr = qcul_window_map_aligned(len, QCU_MANAGED_ALIGN);
	if (!addr)
		return false;
	range.start = range.other = (uint64_t)(uintptr_t)addr;
	err = request_device_memory(range.start, len,
				    round_up_to_multiple(size, QCU_MANAGED_GRAIN));
	if (err == cudaErrorNotSupported)
		atomic_store(&never, true);
	if (!err && qcul_mem_add(&range)) {
		*ptr = addr;
		return true;
	}
	if (err)
		qcul_trace("%zu bytes of managed memory stay in place: %s", size,
			   cudaGetErrorName(err));
	qcul_window_unmap(addr, len);
	return false;
}

static bool is_moving_memory(const void *ptr, struct qcul_range *range)
{
	*range = qcul_mem_find(ptr);
	return qcul_range_has(range, QCUL_MEM_MOVES);
}

/*
 * The wait comes first: the end of the device memory waits for the GPU, and until it has ended, the
 * driver cannot serve a host function that touches managed memory.
 */
cudaError_t qcul_managed_stay(const void *ptr)
{
	struct qcul_range range;
	struct qCUcmd cmd;
	cudaError_t err;

	if (!is_moving_memory(ptr, &range))
		return cudaSuccess;
	err = qcul_devices_idle();
	if (err)
		return err;
	cmd = qcul_cmd(QCU_OP_MANAGED_END);
	cmd.managed_end.va = range.start;
	cmd.managed_end.len = qcul_mem_mapped(&range);
	err = qcul_send(&cmd, 1);
	if (err)
		return err;
	qcul_mem_stays(range.start);
	cmd = qcul_cmd(QCU_OP_HOST_REGISTER);
	cmd.host_register.buf.addr = range.start;
	cmd.host_register.buf.len = range.len;
	return qcul_send(&cmd, 1);
}

/* A copy of nothing: the driver moves up what has been written before it sends any copy. */
cudaError_t qcul_managed_up(const void *ptr, cudaStream_t stream)
{
	struct qcul_range range;
	struct qCUcmd cmd;
	uint32_t id;
	cudaError_t err = qcul_stream_id(stream, &id);

	if (err || !is_moving_memory(ptr, &range))
		return err;
	cmd = qcul_cmd(QCU_OP_COPY_D2D);
	cmd.copy_d2d.dst = cmd.copy_d2d.src = range.start;
	cmd.copy_d2d.stream = id;
	return qcul_post(&cmd, 1);
}
