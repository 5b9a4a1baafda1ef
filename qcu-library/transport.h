/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * How the library reaches a mirror. transport_dev.c goes through /dev/qcuda. For tests there is
 * tests/transport/, which runs a mirror in this process. A library has exactly one of them.
 */
#ifndef QCU_TRANSPORT_H
#define QCU_TRANSPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "include/qcucmd.h"

/*
 * Opens this process's session. 0 or a cudaError_t; a sentence on stderr says what is missing
 * (which module to load, which permission, both version numbers). After fork() the child must call
 * it anew.
 */
int qcul_transport_open(struct qcu_hello *hello);
void qcul_transport_close(void);

/* Is the mirror in this process, so that device memory has addresses of this process? */
bool qcul_transport_shares_memory(void);

/*
 * Sends records in order and waits for the replies to those that are not posted, which are written
 * over them. 0, or a negative errno if nothing could be sent. A record's own status is cudaError_t
 * or -errno; that of a posted one is 0 when it is on its way. Waits, too, while too much is.
 */
int qcul_transport_submit(struct qCUcmd *cmds, unsigned int count);

/* How this session's callers wait, from now on: QCU_WAIT_*. */
void qcul_transport_waiting(uint32_t how);

/* The first error of what this thread has posted, as far as is known, once. 0: none. */
int qcul_transport_late(void);

/* The calling thread submits nothing any more. */
void qcul_transport_thread_ends(void);

/*
 * Chunk memory at a fixed address inside the window (page-aligned; nothing may be mapped there).
 * 0 or -errno. Unmap returns at once; the pages go back when the GPU has finished with them.
 */
int qcul_transport_map(void *addr, size_t len);
int qcul_transport_unmap(void *addr, size_t len);

#endif
