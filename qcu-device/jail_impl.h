/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Between the files of the jail. All return false with errno set. */
#ifndef QCU_JAIL_IMPL_H
#define QCU_JAIL_IMPL_H

#include <stdbool.h>

/*
 * Landlock: the files that CUDA needs, to read; the GPU's devices, to write; and /dev/shm, if it is
 * the VM's own.
 */
bool jail_files(bool own_shm);

enum jail_who { JAIL_MAIN, JAIL_MIRROR };

/* seccomp: all other system calls fail with EPERM. */
bool jail_calls(enum jail_who who);

#endif
