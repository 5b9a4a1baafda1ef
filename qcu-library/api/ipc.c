// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Device memory and events that the processes of one VM share. A handle contains a token that the
 * host has made, and a prefix that tells memory from events. The program passes the handle to
 * another process. The host then finds the object that the token stands for.
 */
#include <string.h>

#include "qcu-library/api/ipc.h"
#include "qcu-library/link/fork.h"
#include "qcu-library/graph/graph.h"
#include "qcu-library/link/capture.h"

#define MEM_MAGIC   0x316d656d63707163ull
#define EVENT_MAGIC 0x3174767463707163ull

struct wire_handle {
	uint64_t magic;
	struct qcu_ipc_token token;
	uint64_t rsvd[4];
};
_Static_assert(sizeof(struct wire_handle) == CUDA_IPC_HANDLE_SIZE, "fills a handle");
_Static_assert(sizeof(cudaIpcMemHandle_t) == CUDA_IPC_HANDLE_SIZE, "of memory");
_Static_assert(sizeof(cudaIpcEventHandle_t) == CUDA_IPC_HANDLE_SIZE, "of an event");

/* Held while imported memory is opened or closed, so that the library and the mirror see these
 * changes in the same order. */
QCUL_AT_FORK(QCUL_FORK_IPC)

static void write_ipc_handle(void *handle, uint64_t magic, const struct qcu_ipc_token *token)
{
	const struct wire_handle h = {.magic = magic, .token = *token};

	memcpy(handle, &h, sizeof(h));
}

static bool unpack(const void *handle, uint64_t magic, struct qcu_ipc_token *token)
{
	static const uint64_t zero[4];
	struct wire_handle h;

	memcpy(&h, handle, sizeof(h));
	*token = h.token;
	return h.magic == magic && !memcmp(h.rsvd, zero, sizeof(zero));
}

/* ---- memory ---- */

static cudaError_t get_mem(cudaIpcMemHandle_t *handle, const void *ptr)
{
	struct qCUcmd cmd;
	struct qcul_range range;
	cudaError_t err;

	if (!handle || !ptr)
		return cudaErrorInvalidValue;
	err = qcul_ready();
	if (err)
		return err;
	/* As in CUDA, the handle stands for the whole allocation, wherever ptr is in it. */
	range = qcul_mem_find(ptr);
	if (!qcul_range_is_exportable(&range))
		return cudaErrorInvalidValue;
	cmd = qcul_cmd(QCU_OP_IPC_MEM_EXPORT);
	cmd.ipc_mem_export.ptr = range.start;
	err = qcul_send(&cmd, 1);
	if (!err)
		write_ipc_handle(handle, MEM_MAGIC, &cmd.ipc_mem_export.token);
	return err;
}

cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t *handle, void *ptr)
{
	return qcul_done(get_mem(handle, ptr));
}

static cudaError_t mirror_close(uint64_t ptr, uint32_t *left)
{
	struct qCUcmd cmd = qcul_cmd(QCU_OP_IPC_MEM_CLOSE);
	cudaError_t err;

	cmd.ipc_mem_close.ptr = ptr;
	err = qcul_send(&cmd, 1);
	*left = cmd.ipc_mem_close.left;
	return err;
}

/* Adds the memory to what the library knows, unless it is known already. The caller holds the lock.
 */
static cudaError_t add_opened_memory(uint64_t ptr, uint64_t size, enum qcul_mem_flag flags)
{
	struct qcul_range range = {
		.kind = QCUL_MEM_DEVICE,
		.flags = QCUL_MEM_IMPORTED | flags,
		.start = ptr,
		.len = size,
		.device = qcul_self.device,
		.epoch = qcul_epoch(),
	};
	struct qcul_range known = qcul_mem_find((const void *)(uintptr_t)ptr);
	uint32_t left;

	if (known.start == ptr && qcul_range_has(&known, QCUL_MEM_IMPORTED))
		return cudaSuccess;
	if (!qcul_reserve(ptr, size))
		range.flags |= QCUL_MEM_AMBIGUOUS;
	if (qcul_mem_add(&range))
		return cudaSuccess;
	(void)mirror_close(ptr, &left);
	return cudaErrorMemoryAllocation;
}

cudaError_t qcul_ipc_open(const struct qcu_ipc_token *token, enum qcul_mem_flag flags, void **ptr,
			  uint64_t *size)
{
	struct qCUcmd cmd;
	cudaError_t err = qcul_capture_unsafe();

	if (err)
		return err;
	cmd = qcul_cmd(QCU_OP_IPC_MEM_OPEN);
	cmd.ipc_mem_open.token = *token;
	pthread_mutex_lock(&at_fork.lock);
	err = qcul_send(&cmd, 1);
	if (!err)
		err = add_opened_memory(cmd.ipc_mem_open.ptr, cmd.ipc_mem_open.size, flags);
	pthread_mutex_unlock(&at_fork.lock);
	if (!err) {
		*ptr = (void *)(uintptr_t)cmd.ipc_mem_open.ptr;
		*size = cmd.ipc_mem_open.size;
	}
	return err;
}

static cudaError_t open_mem(void **ptr, const cudaIpcMemHandle_t *handle, unsigned int flags)
{
	struct qcu_ipc_token token;
	uint64_t size;
	cudaError_t err;

	if (!ptr || flags != cudaIpcMemLazyEnablePeerAccess)
		return cudaErrorInvalidValue;
	err = qcul_ready();
	if (err)
		return err;
	if (!unpack(handle, MEM_MAGIC, &token))
		return cudaErrorInvalidValue;
	return qcul_ipc_open(&token, 0, ptr, &size);
}

cudaError_t cudaIpcOpenMemHandle(void **ptr, cudaIpcMemHandle_t handle, unsigned int flags)
{
	return qcul_done(open_mem(ptr, &handle, flags));
}

cudaError_t qcul_ipc_close(const void *ptr, enum qcul_mem_flag flags)
{
	struct qcul_range range;
	cudaError_t err = ptr ? qcul_ready() : cudaErrorInvalidValue;
	uint32_t left;

	if (err)
		return err;
	pthread_mutex_lock(&at_fork.lock);
	range = qcul_mem_find(ptr);
	if (!qcul_range_has(&range, QCUL_MEM_IMPORTED | flags) ||
	    range.start != (uint64_t)(uintptr_t)ptr) {
		err = cudaErrorInvalidValue;
	} else {
		err = mirror_close(range.start, &left);
		if (!err && !left)
			(void)qcul_mem_take(range.start, QCUL_MEM_DEVICE, &range);
	}
	pthread_mutex_unlock(&at_fork.lock);
	return err;
}

cudaError_t cudaIpcCloseMemHandle(void *ptr)
{
	return qcul_done(qcul_ipc_close(ptr, 0));
}

/* ---- events ---- */

static cudaError_t export_event_handle(cudaIpcEventHandle_t *handle, cudaEvent_t event)
{
	struct qCUcmd cmd;
	uint32_t id;
	cudaError_t err = event ? qcul_ready() : cudaErrorInvalidValue;

	if (err)
		return err;
	id = qcul_handle_id(&qcul_events, event);
	if (!id || !(qcul_events.slots[id].flags & cudaEventInterprocess))
		return cudaErrorInvalidResourceHandle;
	if (!handle)
		return cudaErrorInvalidValue;
	cmd = qcul_cmd(QCU_OP_IPC_EVENT_EXPORT);
	cmd.ipc_event_export.event = id;
	err = qcul_send(&cmd, 1);
	if (!err)
		write_ipc_handle(handle, EVENT_MAGIC, &cmd.ipc_event_export.token);
	return err;
}

cudaError_t cudaIpcGetEventHandle(cudaIpcEventHandle_t *handle, cudaEvent_t event)
{
	return qcul_done(export_event_handle(handle, event));
}

static cudaError_t open_event(cudaEvent_t *event, const cudaIpcEventHandle_t *handle)
{
	struct qcu_ipc_token token;
	struct qcul_handle *slot;
	struct qCUcmd cmd;
	uint32_t id;
	cudaError_t err = event ? qcul_ready() : cudaErrorInvalidValue;

	if (err)
		return err;
	if (!unpack(handle, EVENT_MAGIC, &token))
		return cudaErrorInvalidValue;
	slot = qcul_handle_new(&qcul_events, &id);
	if (!slot)
		return cudaErrorMemoryAllocation;
	slot->flags = cudaEventInterprocess | cudaEventDisableTiming;
	slot->device = qcul_self.device;
	atomic_store(&slot->made, true);
	qcul_event_forget_capture(slot);
	cmd = qcul_cmd(QCU_OP_IPC_EVENT_OPEN);
	cmd.ipc_event_open.token = token;
	cmd.ipc_event_open.event = id;
	err = qcul_send(&cmd, 1);
	if (err)
		qcul_handle_drop(&qcul_events, id);
	else
		*event = (cudaEvent_t)slot;
	return err;
}

cudaError_t cudaIpcOpenEventHandle(cudaEvent_t *event, cudaIpcEventHandle_t handle)
{
	return qcul_done(open_event(event, &handle));
}
