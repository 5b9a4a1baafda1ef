/* SPDX-License-Identifier: GPL-2.0-or-later */
/* From a checked request to its answer, and names for messages. */
#ifndef QCU_DISPATCH_H
#define QCU_DISPATCH_H

#include <stdbool.h>
#include <stdint.h>

struct mir_request;

/* Carries out a request of this mirror, and answers it. True if it was THREAD_EXIT. */
bool mir_dispatch(void *mirror, struct mir_request *req);

const char *mir_op_name(uint16_t op);
const char *mir_error_name(int error);

#endif
