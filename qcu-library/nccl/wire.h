/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The messages between a rank (meet.c) and the process that made the id (host.c). */
#ifndef QCCL_WIRE_H
#define QCCL_WIRE_H

#include <stdint.h>

#include "qcu-library/nccl/meet.h"

/* Raised when anything changes that two ranks must agree on, also in layout.h. */
#define QCCL_WIRE 2u

enum qccl_say {
	QCCL_SAY_HELLO, /* struct qccl_hello; answered when all ranks are there */
	QCCL_SAY_TELL,	/* answered with what all ranks told */
	QCCL_SAY_LEAVE, /* answered when all ranks have left */
};

enum qccl_answer {
	QCCL_ANSWER_OK,
	QCCL_ANSWER_GONE,     /* a rank has ended */
	QCCL_ANSWER_MISMATCH, /* ranks that do not fit together */
	QCCL_ANSWER_VERSION,
};

/* In front of each message, in both directions. `what`: qccl_say, or qccl_answer. */
struct qccl_head {
	uint32_t what, size;
};

struct qccl_hello {
	unsigned char secret[QCCL_SECRET];
	uint32_t version, rank, ranks;
};

/* The thread of an id: serves the connections to `listening`. Takes it over. */
ncclResult_t qccl_host_start(int listening, const unsigned char *secret);

#endif
