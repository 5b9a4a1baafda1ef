/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared by the files of the jail. All functions return false with errno set on failure. */
#ifndef QCU_JAIL_IMPL_H
#define QCU_JAIL_IMPL_H

#include <stdbool.h>

#include "qcu-device/host/jail.h"

/*
 * Landlock: allows reading the files that CUDA needs, writing to the GPU's devices, and using
 * /dev/shm if it is the VM's own.
 */
bool jail_files(bool own_shm, const struct jail_opened *opened);

enum jail_who { JAIL_MAIN, JAIL_MIRROR, JAIL_METRICS, JAIL_MEMWATCH };

/* seccomp: all system calls that are not allowed fail with EPERM. */
bool jail_calls(enum jail_who who);

#endif
