/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * __managed__ variables on a GPU that cannot have them in guest memory. The program has a copy at
 * the same address as the GPU. The library makes the two equal when work begins and after a wait
 * for it. docs/managed.md says what that means for programs.
 */
#ifndef QCUL_MANAGED_COPY_H
#define QCUL_MANAGED_COPY_H

#include "qcu-library/memory/memory.h"

/*
 * Makes the copy. values NULL: the copy gets the GPU's values. Else the copy gets these values, and
 * the GPU gets them before its next work.
 */
cudaError_t qcul_managed_copy_new(uint64_t addr, size_t bytes, const void *values);
/* Removes the copy: the module is gone, or could not be used. */
void qcul_managed_copy_drop(uint64_t addr);

#endif
