/* SPDX-License-Identifier: GPL-2.0-or-later */
/* For keeping.c: calls of a library that an object would not be the same without. */
#ifndef QCU_KEEP_CALLS_H
#define QCU_KEEP_CALLS_H

#include "qcu-device/commands/commands.h"

/* The call has been carried out: keeps it, if it is such a one. */
void mir_keep_call(struct call *c);

#endif
