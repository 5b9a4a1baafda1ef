// SPDX-License-Identifier: LGPL-2.1-or-later
/* Streams: create, destroy, wait, and query their properties. */
#include <string.h>

#include "qcu-library/link/ask.h"
#include "qcu-library/stream/green.h"
#include "qcu-library/stream/stream.h"
#include "qcu-library/link/capture.h"

cudaError_t qcul_stream_wait(uint32_t stream)
{
	struct qCUcmd cmd;
	cudaError_t err;

	if (qcul_wait_needless(qcul_stream_waited(stream))) {
		err = qcul_known(cudaSuccess);
	} else {
		cmd = qcul_cmd(QCU_OP_STREAM_SYNC);
		cmd.stream_sync.stream = stream;
		err = qcul_send(&cmd, 1);
	}
	qcul_print_flush();
	return err;
}

static cudaError_t post_stream_creation(uint32_t id, unsigned int flags, int priority)
{
	struct qCUcmd cmd = qcul_cmd(QCU_OP_STREAM_CREATE);

	cmd.stream_create.stream = id;
	cmd.stream_create.flags = flags;
	cmd.stream_create.priority = priority;
	return qcul_post(&cmd, 1);
}

/* All streams of a green context are non-blocking. */
cudaError_t qcul_stream_make(cudaStream_t *stream, unsigned int flags, int priority,
			     struct qcul_green *green)
{
	struct qcul_handle *slot;
	cudaError_t err;
	uint32_t id;
	int least, greatest;

	if (!stream || flags & ~cudaStreamNonBlocking)
		return cudaErrorInvalidValue;
	err = qcul_ready();
	if (err)
		return err;
	err = cudaDeviceGetStreamPriorityRange(&least, &greatest);
	if (err)
		return err;
	if (priority > least)
		priority = least;
	if (priority < greatest)
		priority = greatest;

	slot = qcul_handle_new(&qcul_streams, &id);
	if (!slot)
		return cudaErrorMemoryAllocation;
	slot->flags = green ? cudaStreamNonBlocking : flags;
	slot->priority = priority;
	slot->device = qcul_self.device;
	slot->green = green;
	err = green ? qcul_ask_green_stream(slot->device, id, cudaStreamNonBlocking, priority,
					    green->number)
		    : post_stream_creation(id, flags, priority);
	if (err)
		qcul_handle_drop(&qcul_streams, id);
	else
		*stream = (cudaStream_t)slot;
	return err;
}

cudaError_t cudaStreamCreate(cudaStream_t *stream)
{
	return qcul_done(qcul_stream_make(stream, cudaStreamDefault, 0, qcul_self.green));
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned int flags)
{
	return qcul_done(qcul_stream_make(stream, flags, 0, qcul_self.green));
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned int flags, int priority)
{
	return qcul_done(qcul_stream_make(stream, flags, priority, qcul_self.green));
}

static cudaError_t destroy_stream(cudaStream_t stream)
{
	struct qCUcmd cmd;
	cudaError_t err = qcul_ready();
	uint32_t id;

	if (err)
		return err;
	id = qcul_handle_id(&qcul_streams, stream);
	if (!id)
		return cudaErrorInvalidResourceHandle;
	if (!qcul_capture_leave(stream))
		return qcul_capture_refuse(stream);
	cmd = qcul_cmd(QCU_OP_STREAM_DESTROY);
	cmd.stream_destroy.stream = id;
	err = qcul_post(&cmd, 1);
	qcul_handle_drop(&qcul_streams, id);
	return err;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
	return qcul_done(destroy_stream(stream));
}

/* Checks that the session works and the stream exists. */
static cudaError_t check_ready_stream(cudaStream_t stream, uint32_t *id)
{
	cudaError_t err = qcul_ready();

	return err ? err : qcul_stream_id(stream, id);
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
	uint32_t id;
	cudaError_t err = check_ready_stream(stream, &id);

	if (!err && qcul_captured(stream, &err))
		err = err ? err : qcul_capture_refuse(stream);
	return qcul_done(err ? err : qcul_stream_wait(id));
}

cudaError_t cudaStreamQuery(cudaStream_t stream)
{
	uint32_t id;
	cudaError_t err = check_ready_stream(stream, &id);

	if (!err && qcul_captured(stream, &err))
		err = err ? err : qcul_capture_refuse(stream);
	return qcul_done(err ? err : qcul_query_stream(id));
}

static cudaError_t wait_event(cudaStream_t stream, cudaEvent_t event, unsigned int flags)
{
	struct qCUcmd cmd;
	uint32_t id, event_id;
	cudaError_t err = check_ready_stream(stream, &id);

	if (err)
		return err;
	event_id = qcul_handle_id(&qcul_events, event);
	if (!event_id)
		return cudaErrorInvalidResourceHandle;
	if (flags & ~cudaEventWaitExternal)
		return cudaErrorInvalidValue;
	if (flags & cudaEventWaitExternal) {
		/* In a capture this becomes a node. Outside of a capture it is not allowed. */
		const struct cudaGraphNodeParams node = {
			.type = cudaGraphNodeTypeWaitEvent,
			.eventWait.event = event,
		};

		if (!qcul_captured(stream, &err))
			return cudaErrorIllegalState;
		return err ? err : qcul_capture_node(stream, &node);
	}
	if (qcul_capture_wait(stream, &qcul_events.slots[event_id], &err))
		return err;
	/* CUDA waits only for events that were recorded. */
	if (qcul_event_empty(event_id))
		return cudaSuccess;
	cmd = qcul_cmd(QCU_OP_STREAM_WAIT_EVENT);
	cmd.stream_wait_event.stream = id;
	cmd.stream_wait_event.event = event_id;
	return qcul_post(&cmd, 1);
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned int flags)
{
	return qcul_done(wait_event(stream, event, flags));
}

cudaError_t cudaStreamGetFlags(cudaStream_t stream, unsigned int *flags)
{
	uint32_t id;
	cudaError_t err = flags ? check_ready_stream(stream, &id) : cudaErrorInvalidValue;

	if (!err)
		*flags = id < QCU_ID_FIRST ? cudaStreamDefault : qcul_streams.slots[id].flags;
	return qcul_done(err);
}

cudaError_t cudaStreamGetPriority(cudaStream_t stream, int *priority)
{
	uint32_t id;
	cudaError_t err = priority ? check_ready_stream(stream, &id) : cudaErrorInvalidValue;

	if (!err)
		*priority = id < QCU_ID_FIRST ? 0 : qcul_streams.slots[id].priority;
	return qcul_done(err);
}

cudaError_t cudaStreamGetDevice(cudaStream_t stream, int *device)
{
	uint32_t id;
	cudaError_t err = device ? check_ready_stream(stream, &id) : cudaErrorInvalidValue;

	if (!err)
		*device = qcul_stream_device(id);
	return qcul_done(err);
}

/* Different for any two streams: the number of a per-thread stream also contains the thread. */
cudaError_t cudaStreamGetId(cudaStream_t stream, unsigned long long *number)
{
	uint32_t id;
	cudaError_t err = number ? check_ready_stream(stream, &id) : cudaErrorInvalidValue;

	if (!err) {
		int device = id < QCU_ID_FIRST ? qcul_self.device : qcul_streams.slots[id].device;

		*number = (unsigned long long)(device + 1) << 16 | id;
		if (id == QCU_STREAM_PER_THREAD)
			*number |= (unsigned long long)qcul_tid() << 32;
	}
	return qcul_done(err);
}

/* ---- attributes ---- */

_Static_assert(sizeof(struct cudaAccessPolicyWindow) <= QCU_STREAM_ATTR,
	       "the largest value of a stream's attribute");

static cudaError_t set_attribute(cudaStream_t stream, cudaStreamAttrID attr,
				 const cudaStreamAttrValue *value)
{
	cudaStreamAttrValue now;
	uint32_t id;
	cudaError_t err = value ? check_ready_stream(stream, &id) : cudaErrorInvalidValue;

	if (err)
		return err;
	err = qcul_ask_stream_attr_set(qcul_self.device, id, attr, value);
	/* The mirror has limited the priority to the valid range, so read it back. */
	if (!err && attr == cudaLaunchAttributePriority && id >= QCU_ID_FIRST &&
	    !cudaStreamGetAttribute(stream, attr, &now))
		qcul_streams.slots[id].priority = now.priority;
	return err;
}

cudaError_t cudaStreamSetAttribute(cudaStream_t stream, cudaStreamAttrID attr,
				   const cudaStreamAttrValue *value)
{
	return qcul_done(set_attribute(stream, attr, value));
}

cudaError_t cudaStreamGetAttribute(cudaStream_t stream, cudaStreamAttrID attr,
				   cudaStreamAttrValue *value)
{
	cudaStreamAttrValue now = {0};
	uint32_t id;
	cudaError_t err = value ? check_ready_stream(stream, &id) : cudaErrorInvalidValue;

	if (!err)
		err = qcul_ask_stream_attr_get(qcul_self.device, id, attr, &now);
	if (!err)
		*value = now;
	return qcul_done(err);
}

cudaError_t cudaStreamCopyAttributes(cudaStream_t to, cudaStream_t from)
{
	uint32_t to_id, from_id;
	cudaError_t err = check_ready_stream(to, &to_id);

	if (!err)
		err = check_ready_stream(from, &from_id);
	return qcul_done(err ? err : qcul_ask_stream_attr_copy(qcul_self.device, to_id, from_id));
}
