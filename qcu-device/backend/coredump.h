/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef QCU_COREDUMP_H
#define QCU_COREDUMP_H

#include <stdbool.h>
#include <stddef.h>

#include "include/qcucmd.h"

/*
 * Reads where a kernel has failed from the core dump of a GPU. False: the file is none, is broken,
 * or names no thread; *fault is undefined then.
 */
bool coredump_fault(const void *file, size_t len, struct qcu_fault *fault);

#endif
