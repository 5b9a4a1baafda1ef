// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Streams, events and arrays. A cudaStream_t or the like is the address of a slot in a table of
 * fixed size, and the slot's index is the number on the wire. So the library can check any
 * pointer that a program passes without reading what it points to, and a destroyed handle gives an
 * error, not a crash. Modules, kernels and links get their numbers from tables of the same kind.
 */
#include "qcu-library/link/fork.h"
#include "qcu-library/link/link.h"

#define SLOTS (QCU_ID_MAX + 1)
#define KEPT  64

/* Untouched pages of these tables cost nothing. */
static struct {
	uint32_t kept[KEPT]; /* events that the program has destroyed, the oldest first */
	unsigned int kept_count;
	struct qcul_handle streams[SLOTS], events[SLOTS], modules[SLOTS], kernels[SLOTS];
	struct qcul_handle arrays[SLOTS], pools[SLOTS], conds[SLOTS], graphs[SLOTS], links[SLOTS];
	struct qcul_handle greens[SLOTS];
} process;

static void forget_handles(int device);
QCUL_AT_FORK(QCUL_FORK_HANDLES, .reset = forget_handles)

struct qcul_table qcul_streams = {.slots = process.streams, .next = QCU_ID_FIRST};
struct qcul_table qcul_events = {.slots = process.events, .next = QCU_ID_FIRST};
struct qcul_table qcul_module_ids = {.slots = process.modules, .next = QCU_ID_FIRST};
struct qcul_table qcul_kernel_ids = {.slots = process.kernels, .next = QCU_ID_FIRST};
struct qcul_table qcul_arrays = {.slots = process.arrays, .next = QCU_ID_FIRST};
struct qcul_table qcul_pools = {.slots = process.pools, .next = QCU_ID_FIRST};
struct qcul_table qcul_conds = {.slots = process.conds, .next = QCU_ID_FIRST};
struct qcul_table qcul_graphs = {.slots = process.graphs, .next = QCU_ID_FIRST};
struct qcul_table qcul_link_ids = {.slots = process.links, .next = QCU_ID_FIRST};
struct qcul_table qcul_green_ids = {.slots = process.greens, .next = QCU_ID_FIRST};

void qcul_handles_lock(void)
{
	pthread_mutex_lock(&at_fork.lock);
}

void qcul_handles_unlock(void)
{
	pthread_mutex_unlock(&at_fork.lock);
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

static uint32_t take_kept(unsigned int i)
{
	uint32_t id = process.kept[i];

	process.kept_count--;
	for (; i < process.kept_count; i++)
		process.kept[i] = process.kept[i + 1];
	return id;
}

bool qcul_event_keep(uint32_t id)
{
	bool room;

	qcul_handles_lock();
	room = process.kept_count < KEPT;
	if (room) {
		process.kept[process.kept_count++] = id;
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
	for (i = 0; i < process.kept_count && !slot; i++) {
		slot = &qcul_events.slots[process.kept[i]];
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
	if (process.kept_count)
		id = take_kept(0);
	qcul_handles_unlock();
	return id;
}

cudaError_t qcul_stream_id(cudaStream_t stream, uint32_t *id)
{
	if ((!stream || stream == cudaStreamLegacy) && qcul_self.green_stream)
		stream = qcul_self.green_stream;
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

static void forget_handles(int device)
{
	unsigned int i = 0;

	qcul_handles_lock();
	drop_handles_of_device(&qcul_streams, device);
	drop_handles_of_device(&qcul_events, device);
	while (i < process.kept_count)
		if (qcul_events.slots[process.kept[i]].live == QCUL_FREE)
			(void)take_kept(i);
		else
			i++;
	drop_handles_of_device(&qcul_arrays, device);
	drop_handles_of_device(&qcul_pools, device);
	drop_handles_of_device(&qcul_conds, device);
	drop_handles_of_device(&qcul_graphs, device);
	drop_handles_of_device(&qcul_green_ids, device);
	if (device < 0 || device == qcul_self.device)
		qcul_self.green_stream = NULL;
	if (device < 0) {
		drop_handles_of_device(&qcul_module_ids, device);
		drop_handles_of_device(&qcul_kernel_ids, device);
	}
	qcul_handles_unlock();
}
