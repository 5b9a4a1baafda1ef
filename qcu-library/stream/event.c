// SPDX-License-Identifier: LGPL-2.1-or-later
/* Events: points in streams that a program records, waits for and measures between. */
#include <string.h>

#include "qcu-library/stream/stream.h"
#include "qcu-library/link/capture.h"

#define EVENT_FLAGS (cudaEventBlockingSync | cudaEventDisableTiming | cudaEventInterprocess)

static cudaError_t create(cudaEvent_t *event, unsigned int flags)
{
	struct qcul_handle *slot;
	struct qCUcmd cmd;
	cudaError_t err;
	uint32_t id;

	if (!event || flags & ~EVENT_FLAGS)
		return cudaErrorInvalidValue;
	if (flags & cudaEventInterprocess && !(flags & cudaEventDisableTiming))
		return cudaErrorInvalidValue;
	err = qcul_ready();
	if (err)
		return err;
	slot = qcul_handle_new(&qcul_events, &id);
	if (!slot)
		return cudaErrorMemoryAllocation;
	slot->flags = flags;
	slot->device = qcul_self.device;
	qcul_event_forget_capture(slot);
	cmd = qcul_cmd(QCU_OP_EVENT_CREATE);
	cmd.event_create.event = id;
	cmd.event_create.flags = flags;
	/* Only the mirror knows whether an interprocess event is possible. */
	err = flags & cudaEventInterprocess ? qcul_send(&cmd, 1) : qcul_post(&cmd, 1);
	if (err)
		qcul_handle_drop(&qcul_events, id);
	else
		*event = (cudaEvent_t)slot;
	return err;
}

cudaError_t cudaEventCreate(cudaEvent_t *event)
{
	return qcul_done(create(event, cudaEventDefault));
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned int flags)
{
	return qcul_done(create(event, flags));
}

/* Checks that the session and the event exist. */
static cudaError_t check(cudaEvent_t event, uint32_t *id)
{
	cudaError_t err = qcul_ready();

	if (err)
		return err;
	*id = qcul_handle_id(&qcul_events, event);
	return *id ? cudaSuccess : cudaErrorInvalidResourceHandle;
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
	struct qCUcmd cmd;
	uint32_t id;
	cudaError_t err = check(event, &id);

	if (err)
		return qcul_done(err);
	cmd = qcul_cmd(QCU_OP_EVENT_DESTROY);
	cmd.event_destroy.event = id;
	err = qcul_post(&cmd, 1);
	qcul_handle_drop(&qcul_events, id);
	return qcul_done(err);
}

/* Another process may record the event, so its state must not be cached here. */
static bool of_others(uint32_t id)
{
	return qcul_events.slots[id].flags & cudaEventInterprocess;
}

static cudaError_t record(cudaEvent_t event, cudaStream_t stream, unsigned int flags)
{
	struct qCUcmd cmd;
	uint32_t id, stream_id;
	cudaError_t err = check(event, &id);

	if (!err)
		err = qcul_stream_id(stream, &stream_id);
	if (err)
		return err;
	if (flags & ~cudaEventRecordExternal)
		return cudaErrorInvalidValue;
	if (qcul_captured(stream, &err)) {
		const struct cudaGraphNodeParams node = {
			.type = cudaGraphNodeTypeEventRecord,
			.eventRecord.event = event,
		};

		if (err)
			return err;
		return flags & cudaEventRecordExternal
			       ? qcul_capture_node(stream, &node)
			       : qcul_capture_record(stream, &qcul_events.slots[id]);
	}
	/* An external record exists only in a stream that is being captured. */
	if (flags & cudaEventRecordExternal)
		return cudaErrorIllegalState;
	if (qcul_stream_device(stream_id) != qcul_events.slots[id].device)
		return cudaErrorInvalidResourceHandle;
	qcul_event_forget_capture(&qcul_events.slots[id]);
	cmd = qcul_cmd(QCU_OP_EVENT_RECORD);
	cmd.event_record.event = id;
	cmd.event_record.stream = stream_id;
	/* The program may tell another process of the record as soon as this call returns. */
	if (of_others(id))
		return qcul_send(&cmd, 1);
	return qcul_post(&cmd, 1);
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
	return qcul_done(record(event, stream, cudaEventRecordDefault));
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned int flags)
{
	return qcul_done(record(event, stream, flags));
}

static cudaError_t query_mirror(uint32_t id)
{
	struct qCUcmd cmd = qcul_cmd(QCU_OP_EVENT_QUERY);

	cmd.event_query.event = id;
	return qcul_send(&cmd, 1);
}

cudaError_t cudaEventQuery(cudaEvent_t event)
{
	uint32_t id;
	cudaError_t err = check(event, &id);

	if (!err)
		err = qcul_capture_asked(&qcul_events.slots[id]);
	if (err)
		return qcul_done(err);
	return qcul_done(of_others(id) ? query_mirror(id) : qcul_query_event(id));
}

static cudaError_t wait(uint32_t event)
{
	struct qCUcmd cmd;
	cudaError_t err;

	if (qcul_wait_needless(qcul_event_waited(event))) {
		err = qcul_known(cudaSuccess);
	} else {
		cmd = qcul_cmd(QCU_OP_EVENT_SYNC);
		cmd.event_sync.event = event;
		err = qcul_send(&cmd, 1);
	}
	qcul_print_flush();
	return err;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
	uint32_t id;
	cudaError_t err = check(event, &id);

	if (!err)
		err = qcul_capture_asked(&qcul_events.slots[id]);
	return qcul_done(err ? err : wait(id));
}

static cudaError_t elapsed(float *ms, cudaEvent_t start, cudaEvent_t end)
{
	struct qCUcmd cmd;
	uint32_t start_id, end_id;
	cudaError_t err;

	if (!ms)
		return cudaErrorInvalidValue;
	err = check(start, &start_id);
	if (!err)
		err = check(end, &end_id);
	if (!err)
		err = qcul_capture_asked(&qcul_events.slots[start_id]);
	if (!err)
		err = qcul_capture_asked(&qcul_events.slots[end_id]);
	if (err)
		return err;
	cmd = qcul_cmd(QCU_OP_EVENT_ELAPSED);
	cmd.event_elapsed.start = start_id;
	cmd.event_elapsed.end = end_id;
	err = qcul_send(&cmd, 1);
	if (!err)
		memcpy(ms, &cmd.event_elapsed.ms, sizeof(*ms));
	return err;
}

cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t start, cudaEvent_t end)
{
	return qcul_done(elapsed(ms, start, end));
}
