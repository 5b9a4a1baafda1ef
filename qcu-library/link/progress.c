// SPDX-License-Identifier: LGPL-2.1-or-later
/* What has happened since a question was asked: for answers without the mirror (stream/query.c). */
#include "qcu-library/link/link.h"

_Atomic uint64_t qcul_waits, qcul_moved;

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

void qcul_progress_recorded(uint32_t event)
{
	if (event <= QCU_ID_MAX)
		atomic_fetch_add(&qcul_events.slots[event].recorded, 1);
}
