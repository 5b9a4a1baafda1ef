/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * How the library reaches a mirror. transport_dev.c uses /dev/qcuda. For tests, tests/transport/
 * runs a mirror in this process. A library contains exactly one of the two.
 */
#ifndef QCU_TRANSPORT_H
#define QCU_TRANSPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "include/qcucmd.h"

/*
 * Opens this process's session. Returns 0 or a cudaError_t. On failure a sentence on stderr says
 * what is missing (which module to load, which permission, both version numbers). After fork() the
 * child must call this again.
 */
int qcul_transport_open(struct qcu_hello *hello);
void qcul_transport_close(void);

/* Is the mirror in this process? Then device memory has addresses of this process. */
bool qcul_transport_shares_memory(void);

/*
 * Sends records in order. Waits for the replies to the records that are not posted, and writes each
 * reply over its record. Returns 0, or a negative errno if nothing could be sent. The status of a
 * record is a cudaError_t or -errno; that of a posted record is 0 once it is on its way. If too
 * many posted records are on their way, this function waits until there are fewer.
 */
int qcul_transport_submit(struct qCUcmd *cmds, unsigned int count);

/* Sets how callers of this session wait from now on: QCU_WAIT_*. */
void qcul_transport_waiting(uint32_t how);

/*
 * The first known error of the records that this thread has posted. Each error is returned once. 0:
 * none.
 */
int qcul_transport_late(void);

/* The calling thread will submit nothing more. */
void qcul_transport_thread_ends(void);

/*
 * Maps chunk memory at a fixed address inside the window (page-aligned; nothing may be mapped
 * there). Returns 0 or -errno. Unmap returns at once; the pages are freed when the GPU has finished
 * with them.
 */
int qcul_transport_map(void *addr, size_t len);
int qcul_transport_unmap(void *addr, size_t len);

#endif
