/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* How the rest of the library switches malloc_hook.c on. */
#ifndef QCUL_MALLOC_HOOK_H
#define QCUL_MALLOC_HOOK_H

/* The program contains CUDA code: its next large allocation may open the session. */
void qcul_malloc_arm(void);

#endif
