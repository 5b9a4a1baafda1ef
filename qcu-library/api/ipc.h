/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Opening and closing memory of another process (ipc.c). */
#ifndef QCUL_IPC_H
#define QCUL_IPC_H

#include "qcu-library/memory/memory.h"

/*
 * Opens the memory that the token stands for, on the thread's device. `flags` are more QCUL_MEM_*
 * for the range. Each open must be closed once.
 */
cudaError_t qcul_ipc_open(const struct qcu_ipc_token *token, enum qcul_mem_flag flags, void **ptr,
			  uint64_t *size);
/* `flags`: the range must have these. */
cudaError_t qcul_ipc_close(const void *ptr, enum qcul_mem_flag flags);

#endif
