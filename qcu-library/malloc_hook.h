/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* How the rest of the library switches malloc_hook.c on. */
#ifndef QCUL_MALLOC_HOOK_H
#define QCUL_MALLOC_HOOK_H

/* The program has CUDA code in it: its next large allocation may open the session. */
void qcul_malloc_arm(void);
/* The session is open: called with its lock held. */
void qcul_malloc_start(void);
/* There is none to be had: the same. */
void qcul_malloc_refused(void);

/* Around fork(), outermost: from here on until after it, large allocations come from libc. */
void qcul_malloc_before_fork(void);
void qcul_malloc_after_fork_parent(void);
/* had_session: the parent had one. */
void qcul_malloc_after_fork_child(_Bool had_session);

#endif
