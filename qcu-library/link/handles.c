// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Streams, events and arrays. A cudaStream_t or the like is the address of a slot in a table of
 * fixed size, and the slot's index is the number on the wire. So the library can check any
 * pointer that a program passes without reading what it points to, and a destroyed handle gives an
 * error, not a crash. Modules and kernels get their numbers from tables of the same kind.
 */
#include "qcu-library/link/fork.h"
#include "qcu-library/link/link.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Untouched pages of these tables cost nothing. */
static struct qcul_handle stream_slots[QCU_ID_MAX + 1], event_slots[QCU_ID_MAX + 1];
static struct qcul_handle module_slots[QCU_ID_MAX + 1], kernel_slots[QCU_ID_MAX + 1];
struct qcul_table qcul_streams = {.slots = stream_slots, .next = QCU_ID_FIRST};
struct qcul_table qcul_events = {.slots = event_slots, .next = QCU_ID_FIRST};
struct qcul_table qcul_module_ids = {.slots = module_slots, .next = QCU_ID_FIRST};
struct qcul_table qcul_kernel_ids = {.slots = kernel_slots, .next = QCU_ID_FIRST};
static struct qcul_handle array_slots[QCU_ID_MAX + 1];
struct qcul_table qcul_arrays = {.slots = array_slots, .next = QCU_ID_FIRST};
static struct qcul_handle pool_slots[QCU_ID_MAX + 1];
static struct qcul_handle cond_slots[QCU_ID_MAX + 1];
struct qcul_table qcul_conds = {.slots = cond_slots, .next = QCU_ID_FIRST};
static struct qcul_handle graph_slots[QCU_ID_MAX + 1];
struct qcul_table qcul_graphs = {.slots = graph_slots, .next = QCU_ID_FIRST};
struct qcul_table qcul_pools = {.slots = pool_slots, .next = QCU_ID_FIRST};

void qcul_handles_lock(void)
{
	pthread_mutex_lock(&lock);
}

void qcul_handles_unlock(void)
{
	pthread_mutex_unlock(&lock);
}

/* Goes round the table, so that a number is reused as late as possible. */
struct qcul_handle *qcul_handle_new(struct qcul_table *t, uint32_t *id)
{
	struct qcul_handle *slot = NULL;
	uint32_t tries;

	qcul_handles_lock();
	for (tries = QCU_ID_FIRST; tries <= QCU_ID_MAX && !slot; tries++) {
		if (!t->slots[t->next].live) {
			slot = &t->slots[t->next];
			*id = t->next;
			slot->live = QCUL_LIVE;
			if (t->top < t->next)
				t->top = t->next;
		}
		t->next = t->next < QCU_ID_MAX ? t->next + 1 : QCU_ID_FIRST;
	}
	qcul_handles_unlock();
	return slot;
}

uint32_t qcul_handle_id(const struct qcul_table *t, const void *handle)
{
	uintptr_t offset = (uintptr_t)handle - (uintptr_t)t->slots;
	size_t id = offset / sizeof(*t->slots);

	if (id < QCU_ID_FIRST || id > QCU_ID_MAX || offset % sizeof(*t->slots) != 0)
		return 0;
	return __atomic_load_n(&t->slots[id].live, __ATOMIC_ACQUIRE) == QCUL_LIVE ? (uint32_t)id
										  : 0;
}

void qcul_handle_drop(struct qcul_table *t, uint32_t id)
{
	__atomic_store_n(&t->slots[id].live, QCUL_FREE, __ATOMIC_RELEASE);
}

/* ---- kept events ---- */

#define KEPT 64
static uint32_t kept[KEPT]; /* the oldest first */
static unsigned int kept_count;

static uint32_t take_kept(unsigned int i)
{
	uint32_t id = kept[i];

	kept_count--;
	for (; i < kept_count; i++)
		kept[i] = kept[i + 1];
	return id;
}

bool qcul_event_keep(uint32_t id)
{
	bool room;

	qcul_handles_lock();
	room = kept_count < KEPT;
	if (room) {
		kept[kept_count++] = id;
		__atomic_store_n(&qcul_events.slots[id].live, QCUL_KEPT, __ATOMIC_RELEASE);
	}
	qcul_handles_unlock();
	return room;
}

struct qcul_handle *qcul_event_again(uint32_t flags, int device, uint32_t *id)
{
	struct qcul_handle *slot = NULL;
	unsigned int i;

	qcul_handles_lock();
	for (i = 0; i < kept_count && !slot; i++) {
		slot = &qcul_events.slots[kept[i]];
		if (slot->flags != flags || slot->device != device) {
			slot = NULL;
			continue;
		}
		*id = take_kept(i);
		__atomic_store_n(&slot->live, QCUL_LIVE, __ATOMIC_RELEASE);
	}
	qcul_handles_unlock();
	return slot;
}

uint32_t qcul_event_give_up(void)
{
	uint32_t id = 0;

	qcul_handles_lock();
	if (kept_count)
		id = take_kept(0);
	qcul_handles_unlock();
	return id;
}

cudaError_t qcul_stream_id(cudaStream_t stream, uint32_t *id)
{
	if (!stream || stream == cudaStreamLegacy) {
		*id = QCU_STREAM_LEGACY;
		return cudaSuccess;
	}
	if (stream == cudaStreamPerThread) {
		*id = QCU_STREAM_PER_THREAD;
		return cudaSuccess;
	}
	*id = qcul_handle_id(&qcul_streams, stream);
	return *id ? cudaSuccess : cudaErrorInvalidResourceHandle;
}

int qcul_stream_device(uint32_t stream)
{
	return stream < QCU_ID_FIRST ? qcul_self.device : qcul_streams.slots[stream].device;
}

static void drop_handles_of_device(struct qcul_table *t, int device)
{
	uint32_t id;

	for (id = QCU_ID_FIRST; id <= t->top; id++)
		if (t->slots[id].live && (device < 0 || t->slots[id].device == device))
			qcul_handle_drop(t, id);
}

void qcul_handles_forget(int device)
{
	unsigned int i = 0;

	qcul_handles_lock();
	drop_handles_of_device(&qcul_streams, device);
	drop_handles_of_device(&qcul_events, device);
	while (i < kept_count)
		if (qcul_events.slots[kept[i]].live == QCUL_FREE)
			(void)take_kept(i);
		else
			i++;
	drop_handles_of_device(&qcul_arrays, device);
	drop_handles_of_device(&qcul_pools, device);
	drop_handles_of_device(&qcul_conds, device);
	drop_handles_of_device(&qcul_graphs, device);
	if (device < 0) {
		drop_handles_of_device(&qcul_module_ids, device);
		drop_handles_of_device(&qcul_kernel_ids, device);
	}
	qcul_handles_unlock();
}

static void forget_handles_at_fork(bool had_session)
{
	(void)had_session;
	qcul_handles_forget(-1);
}

QCUL_AT_FORK(QCUL_FORK_HANDLES, .lock = &lock, .forget = forget_handles_at_fork)
