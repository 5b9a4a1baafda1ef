// SPDX-License-Identifier: LGPL-2.1-or-later
/* Events: points in streams that a program records, waits for and measures between. */
#include <string.h>

#include "qcu-library/link/fork.h"
#include "qcu-library/stream/stream.h"
#include "qcu-library/link/capture.h"

#define EVENT_FLAGS (cudaEventBlockingSync | cudaEventDisableTiming | cudaEventInterprocess)

/* Another process may record the event, so its state must not be cached here. */
static bool of_others(uint32_t id)
{
	return qcul_events.slots[id].flags & cudaEventInterprocess;
}

/*
 * The mirror gets to know an event with its first record. Until then, CUDA's answers about it are
 * always the same: it is done, nothing waits for it, and it has no time.
 */
QCUL_AT_FORK(QCUL_FORK_EVENTS)

/*
 * Sends the commands that make the event, then `next`, unless it is NULL. If the library keeps
 * events of other kinds, one of them goes: so the mirror never has more events than the program has
 * had at one time, and its limits are the program's.
 */
static cudaError_t send_event_creation(uint32_t id, const struct qCUcmd *next)
{
	uint32_t old = qcul_event_give_up();
	struct qCUcmd cmds[3];
	unsigned int n = 0;
	cudaError_t err;

	if (old) {
		cmds[n] = qcul_cmd(QCU_OP_EVENT_DESTROY);
		cmds[n++].event_destroy.event = old;
	}
	cmds[n] = qcul_cmd(QCU_OP_EVENT_CREATE);
	cmds[n].device = qcul_device_ordinal(qcul_events.slots[id].device);
	cmds[n].event_create.event = id;
	cmds[n++].event_create.flags = qcul_events.slots[id].flags;
	if (next)
		cmds[n++] = *next;
	/* Only the mirror knows whether an interprocess event is possible. */
	err = of_others(id) ? qcul_send(cmds, n) : qcul_post(cmds, n);
	if (old)
		qcul_handle_drop(&qcul_events, old);
	return err;
}

/* Posts a command that names the event, and before it what makes the event, if need be. */
static cudaError_t post_event_command(uint32_t id, struct qCUcmd *cmd)
{
	struct qcul_handle *slot = &qcul_events.slots[id];
	cudaError_t err = cudaSuccess;
	bool first = false;

	if (!atomic_load_explicit(&slot->made, memory_order_acquire)) {
		/* No thread may name the event before another has sent what makes it. */
		pthread_mutex_lock(&at_fork.lock);
		first = !atomic_load(&slot->made);
		if (first)
			err = send_event_creation(id, cmd);
		if (first && !err)
			atomic_store_explicit(&slot->made, true, memory_order_release);
		pthread_mutex_unlock(&at_fork.lock);
	}
	return first ? err : qcul_post(cmd, 1);
}

cudaError_t qcul_event_need(uint32_t id)
{
	struct qcul_handle *slot = &qcul_events.slots[id];
	cudaError_t err = cudaSuccess;

	if (atomic_load_explicit(&slot->made, memory_order_acquire))
		return cudaSuccess;
	pthread_mutex_lock(&at_fork.lock);
	if (!atomic_load(&slot->made))
		err = send_event_creation(id, NULL);
	if (!err)
		atomic_store_explicit(&slot->made, true, memory_order_release);
	pthread_mutex_unlock(&at_fork.lock);
	return err;
}

/* Numbers are all in use: gives up one of an event that is kept. */
static bool number_given_up(void)
{
	struct qCUcmd cmd = qcul_cmd(QCU_OP_EVENT_DESTROY);
	uint32_t old = qcul_event_give_up();

	if (!old)
		return false;
	cmd.event_destroy.event = old;
	(void)qcul_post(&cmd, 1);
	qcul_handle_drop(&qcul_events, old);
	return true;
}

static cudaError_t create_event(cudaEvent_t *event, unsigned int flags)
{
	struct qcul_handle *slot;
	cudaError_t err;
	uint32_t id;

	if (!event || flags & ~EVENT_FLAGS)
		return cudaErrorInvalidValue;
	if (flags & cudaEventInterprocess && !(flags & cudaEventDisableTiming))
		return cudaErrorInvalidValue;
	err = qcul_ready();
	if (err)
		return err;
	slot = qcul_event_again(flags, qcul_self.device, &id);
	if (!slot) {
		slot = qcul_handle_new(&qcul_events, &id);
		if (!slot && number_given_up())
			slot = qcul_handle_new(&qcul_events, &id);
		if (!slot)
			return cudaErrorMemoryAllocation;
		slot->flags = flags;
		slot->device = qcul_self.device;
		atomic_store(&slot->made, flags & cudaEventInterprocess);
	}
	qcul_event_forget_capture(slot);
	if (of_others(id))
		err = send_event_creation(id, NULL);
	if (err) {
		qcul_handle_drop(&qcul_events, id);
		return err;
	}
	qcul_progress_created(id);
	*event = (cudaEvent_t)slot;
	return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t *event)
{
	return qcul_done(create_event(event, cudaEventDefault));
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned int flags)
{
	return qcul_done(create_event(event, flags));
}

/* Checks that the session and the event exist. */
static cudaError_t check_event(cudaEvent_t event, uint32_t *id)
{
	cudaError_t err = qcul_ready();

	if (err)
		return err;
	*id = qcul_handle_id(&qcul_events, event);
	return *id ? cudaSuccess : cudaErrorInvalidResourceHandle;
}

/*
 * May a later event be this one in the mirror? If the mirror has said that it is done, waits for it
 * and queries find nothing, as with a new event, and `empty` tells the rest.
 */
static bool as_new(const struct qcul_handle *slot)
{
	uint64_t count = atomic_load(&slot->recorded);

	return !(slot->flags & cudaEventInterprocess) &&
	       (atomic_load(&slot->done) == count || atomic_load(&slot->waited) == count);
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
	struct qCUcmd cmd;
	uint32_t id;
	cudaError_t err = check_event(event, &id);

	if (err)
		return qcul_done(err);
	if (atomic_load(&qcul_events.slots[id].made)) {
		if (as_new(&qcul_events.slots[id]) && qcul_event_keep(id))
			return cudaSuccess;
		cmd = qcul_cmd(QCU_OP_EVENT_DESTROY);
		cmd.event_destroy.event = id;
		err = qcul_post(&cmd, 1);
	}
	qcul_handle_drop(&qcul_events, id);
	return qcul_done(err);
}

static cudaError_t record_event_in_stream(cudaEvent_t event, cudaStream_t stream,
					  unsigned int flags)
{
	struct qCUcmd cmd;
	uint32_t id, stream_id;
	cudaError_t err = check_event(event, &id);

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
	return post_event_command(id, &cmd);
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
	return qcul_done(record_event_in_stream(event, stream, cudaEventRecordDefault));
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned int flags)
{
	return qcul_done(record_event_in_stream(event, stream, flags));
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
	cudaError_t err = check_event(event, &id);

	if (!err)
		err = qcul_capture_asked(&qcul_events.slots[id]);
	if (err)
		return qcul_done(err);
	return qcul_done(of_others(id) ? query_mirror(id) : qcul_query_event(id));
}

static cudaError_t wait_for_event(uint32_t event)
{
	struct qCUcmd cmd;
	cudaError_t err;

	/* The mirror may not even know an event that was not recorded. */
	if (qcul_event_empty(event) || qcul_wait_needless(qcul_event_waited(event))) {
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
	cudaError_t err = check_event(event, &id);

	if (!err)
		err = qcul_capture_asked(&qcul_events.slots[id]);
	return qcul_done(err ? err : wait_for_event(id));
}

static cudaError_t elapsed(float *ms, cudaEvent_t start, cudaEvent_t end)
{
	struct qCUcmd cmd;
	uint32_t start_id, end_id;
	uint64_t counts[2];
	cudaError_t err;

	if (!ms)
		return cudaErrorInvalidValue;
	err = check_event(start, &start_id);
	if (!err)
		err = check_event(end, &end_id);
	if (!err)
		err = qcul_capture_asked(&qcul_events.slots[start_id]);
	if (!err)
		err = qcul_capture_asked(&qcul_events.slots[end_id]);
	/* In the mirror, the event may have been recorded before the program created it. */
	if (!err && (qcul_event_empty(start_id) || qcul_event_empty(end_id)))
		err = cudaErrorInvalidResourceHandle;
	if (err)
		return err;
	cmd = qcul_cmd(QCU_OP_EVENT_ELAPSED);
	cmd.event_elapsed.start = start_id;
	cmd.event_elapsed.end = end_id;
	counts[0] = atomic_load(&qcul_events.slots[start_id].recorded);
	counts[1] = atomic_load(&qcul_events.slots[end_id].recorded);
	err = qcul_send(&cmd, 1);
	if (err)
		return err;
	/* There is a time between two events only if both are done. */
	atomic_store(&qcul_events.slots[start_id].done, counts[0]);
	atomic_store(&qcul_events.slots[end_id].done, counts[1]);
	memcpy(ms, &cmd.event_elapsed.ms, sizeof(*ms));
	return cudaSuccess;
}

cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t start, cudaEvent_t end)
{
	return qcul_done(elapsed(ms, start, end));
}
