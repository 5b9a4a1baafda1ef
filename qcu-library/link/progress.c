// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * What has happened since a question was asked, and what has been waited for: for answers without
 * the mirror (stream/query.c, stream/wait.c).
 *
 * A wait takes the count of qcul_moved before it is sent, and keeps the count when it has been
 * answered. As long as the count stays the same, nothing was put into any stream since then. So
 * what that wait covered is still done, and another wait for the same would find nothing.
 */
#include <time.h>

#include "qcu-library/link/link.h"

_Atomic uint64_t qcul_waits, qcul_moved;

static struct {
	/* Index: the mirror's device number. */
	_Atomic uint64_t device_waited[UINT8_MAX + 1], legacy_waited[UINT8_MAX + 1];
	_Atomic uint64_t heard_ms; /* when the mirror last answered a wait */
} process;

void qcul_progress_waited(void)
{
	atomic_fetch_add(&qcul_waits, 1);
}

/*
 * Called after the record has been sent: a question that was sent earlier has not seen this work.
 */
void qcul_progress_moved(void)
{
	if (!(atomic_load(&qcul_moved) & QCUL_MOVED))
		atomic_fetch_or(&qcul_moved, QCUL_MOVED);
}

uint64_t qcul_progress_now(void)
{
	uint64_t now = atomic_load(&qcul_moved);

	while (now & QCUL_MOVED &&
	       !atomic_compare_exchange_weak(&qcul_moved, &now, now + QCUL_MOVED))
		;
	return (now + QCUL_MOVED) >> 1;
}

void qcul_progress_recorded(uint32_t event)
{
	struct qcul_handle *slot;

	if (event > QCU_ID_MAX)
		return;
	slot = &qcul_events.slots[event];
	atomic_fetch_add(&slot->recorded, 1);
	if (atomic_load_explicit(&slot->empty, memory_order_relaxed))
		atomic_store(&slot->empty, false);
}

void qcul_progress_created(uint32_t event)
{
	struct qcul_handle *slot = &qcul_events.slots[event];
	/* A question about an earlier event of this number is another question. */
	uint64_t count = atomic_fetch_add(&slot->recorded, 1) + 1;

	atomic_store(&slot->empty, true);
	atomic_store(&slot->done, count);
	atomic_store(&slot->waited, count);
}

uint64_t qcul_clock_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* ---- waits ---- */

void qcul_wait_begins(struct qcul_wait *w, const struct qCUcmd *cmd)
{
	const struct qcu_rule *rule = qcu_rule(cmd->op);
	const bool device = rule->until == QCU_FIELD_DEVICE;
	uint32_t stream = QCU_STREAM_PER_THREAD;

	*w = (struct qcul_wait){0};
	if (rule->until == QCU_FIELD_RECORDED) {
		w->event = qcu_field(cmd, rule->event);
		w->count = atomic_load(&qcul_events.slots[w->event].recorded);
		return;
	}
	if (qcu_waits_for_stream(cmd, rule))
		stream = qcu_field(cmd, rule->stream);
	if (!device && stream == QCU_STREAM_PER_THREAD)
		return;
	w->count = qcul_progress_now();
	if (device)
		w->waited = &process.device_waited[cmd->device];
	else if (stream == QCU_STREAM_LEGACY)
		w->waited = &process.legacy_waited[cmd->device];
	else
		w->waited = &qcul_streams.slots[stream].waited;
}

void qcul_wait_ends(const struct qcul_wait *w)
{
	if (w->event)
		atomic_store(&qcul_events.slots[w->event].waited, w->count);
	else if (w->waited)
		atomic_store(w->waited, w->count);
	else
		return;
	atomic_store(&process.heard_ms, qcul_clock_ms());
}

/* Has nothing moved since this count was taken? */
static bool unmoved(_Atomic uint64_t *count)
{
	uint64_t now = atomic_load(&qcul_moved);

	return !(now & QCUL_MOVED) && now >> 1 == atomic_load(count);
}

bool qcul_device_waited(int device)
{
	return unmoved(&process.device_waited[qcul_device_ordinal(device)]);
}

bool qcul_stream_waited(uint32_t stream)
{
	if (stream == QCU_STREAM_LEGACY &&
	    unmoved(&process.legacy_waited[qcul_device_ordinal(qcul_self.device)]))
		return true;
	if (stream >= QCU_ID_FIRST && unmoved(&qcul_streams.slots[stream].waited))
		return true;
	return qcul_device_waited(qcul_stream_device(stream));
}

bool qcul_event_waited(uint32_t event)
{
	struct qcul_handle *slot = &qcul_events.slots[event];

	/* Another process may have recorded the event since. */
	if (slot->flags & cudaEventInterprocess)
		return false;
	return atomic_load(&slot->waited) == atomic_load(&slot->recorded) ||
	       qcul_device_waited(slot->device);
}

bool qcul_event_empty(uint32_t event)
{
	const struct qcul_handle *slot = &qcul_events.slots[event];

	return !(slot->flags & cudaEventInterprocess) &&
	       atomic_load_explicit(&slot->empty, memory_order_relaxed);
}

bool qcul_wait_needless(bool waited)
{
	return waited && !qcul_self.unheard &&
	       qcul_clock_ms() - atomic_load(&process.heard_ms) <= QCUL_BELIEVE_MS;
}
