/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * __managed__ variables of a GPU that cannot have them in memory of the guest's: the program has a
 * copy at the address that the GPU has, and the two are made equal when work begins and when it has
 * been waited for. docs/managed.md says what that means for programs.
 */
#ifndef QCUL_MANAGED_COPY_H
#define QCUL_MANAGED_COPY_H

#include "qcu-library/qcul.h"

/* Makes the copy. It gets the GPU's values, or these, which the GPU will get then. */
cudaError_t qcul_managed_copy_new(uint64_t addr, size_t bytes, const void *values);
/* The module is gone, or could not be used. */
void qcul_managed_copy_drop(uint64_t addr);

#endif
