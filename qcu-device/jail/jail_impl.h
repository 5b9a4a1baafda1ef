/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared by the files of the jail. All functions return false with errno set on failure. */
#ifndef QCU_JAIL_IMPL_H
#define QCU_JAIL_IMPL_H

#include <stdbool.h>

#include "qcu-device/jail/jail.h"

/* The user that a container may have, if it has few. */
#define NOBODY 65534u

enum jail_who { JAIL_MAIN, JAIL_NURSERY, JAIL_FIRST, JAIL_MIRROR, JAIL_METRICS, JAIL_MEMWATCH };

/*
 * Landlock: a mirror may read the files that CUDA needs, write to its GPUs' devices, and use
 * /dev/shm if it is the VM's own. plugin: may be read, too, if it is not -1.
 */
bool jail_files(const struct jail *j, enum jail_who who, int plugin);
/* The version of Landlock that the kernel has; 0: none. */
int jail_files_version(void);
/* Does the machine have files of GPUs of which only some may be the VM's? */
bool jail_files_other_gpus(const struct jail *j);

/* seccomp: all system calls that are not allowed fail with EPERM. */
bool jail_calls(const struct jail *j, enum jail_who who);

/* The sandbox lacks this, for the reason in errno. Prints it; false: the device must not start. */
bool jail_lacks(const struct jail *j, const char *what);
/* The same for what makes the sandbox better, but is no wall of its own. */
void jail_lacks_extra(const struct jail *j, const char *what);

/*
 * Enters the VM's namespaces, with all capabilities in them, and sets j->own_*. root: this process
 * is root, so that users can be given out, from j->uid on, and gpu_group is kept if it is not 0.
 */
bool jail_spaces(struct jail *j, bool root, gid_t gpu_group);

#endif
