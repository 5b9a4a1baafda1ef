/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Semaphores that several processes of this VM use (external_semaphore.c, semaphore_work.c). */
#ifndef QCUL_SEMAPHORE_H
#define QCUL_SEMAPHORE_H

#include "qcu-library/driver_base/driver.h"

/* The address and the kind of a semaphore. False: it is none; any pointer may be passed. */
bool qcul_semaphore_look(const void *semaphore, uint64_t *addr, bool *timeline);

#endif
