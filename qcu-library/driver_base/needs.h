/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What functions of the driver API may need. driver_api/entries.c checks it for all of them. */
#ifndef QCUL_DRIVER_NEEDS_H
#define QCUL_DRIVER_NEEDS_H

#include "qcu-library/driver_base/driver.h"

/* ---- init.c ---- */

enum { QCUL_NOT_STARTED, QCUL_STARTED, QCUL_FORKED };
extern atomic_int qcul_driver_state;
/* CUDA_ERROR_NOT_INITIALIZED before cuInit, and in a child of a process that has called it. */
CUresult qcul_driver_started(void);

static inline bool qcul_driver_known_started(void)
{
	return atomic_load_explicit(&qcul_driver_state, memory_order_acquire) == QCUL_STARTED;
}

/* ---- context.c ---- */

/* Has the program called cuInit, and has the thread a current context? */
CUresult qcul_driver_ready(void);

/* This has been found out, and no context has come to its end since. */
static inline bool qcul_driver_known_ready(void)
{
	return qcul_self.ready == atomic_load_explicit(&qcul_bindings, memory_order_relaxed);
}

/*
 * The same; but where the thread has no context, a stream of the program's own says where it
 * belongs: the thread moves there. After success it must move back to *home.
 */
CUresult qcul_driver_move_to_stream(CUstream stream, struct qcul_driver_home *home);

#endif
