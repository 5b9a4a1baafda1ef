/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The messages between a rank (meet.c) and the process that made the id (host.c), and what ranks
 * tell each other in them when they join, in this order.
 */
#ifndef QCCL_WIRE_H
#define QCCL_WIRE_H

#include <stdint.h>

#include "qcu-library/nccl/meet.h"

/* Raised when anything changes that two ranks must agree on, also in layout.h. */
#define QCCL_WIRE 3u

enum qccl_say {
	QCCL_SAY_HELLO, /* struct qccl_hello; answered when all ranks are there */
	QCCL_SAY_TELL,	/* answered with what all ranks told */
	QCCL_SAY_LEAVE, /* answered when all ranks have left */
	QCCL_SAY_SOME,	/* struct qccl_some; answered with what these ranks told */
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

/* Ranks that go on without the others, which may have ended. */
struct qccl_some {
	uint32_t ranks; /* their bits: all of them say the same */
	ncclUniqueId id;
};

/* First, who each is. */
struct qccl_who {
	unsigned char process[16], gpu[16]; /* random, and the GPU's UUID */
	char machine[40];		    /* another one after each boot */
	int32_t pid, device;
	uint32_t channels;
	uint32_t alone;	 /* wants no memory of others */
	uint32_t by_tcp; /* so it has reached the process that made the id */
};

/* Then what it has. */
struct qccl_what {
	ncclResult_t result;
	uint32_t has_handle;
	uint64_t address;
	cudaIpcMemHandle_t handle;
};

/* Then whom it has reached. */
struct qccl_reached {
	ncclResult_t result;
	uint32_t missed; /* bits of the ranks whose memory it cannot use */
};

/* If there are far ranks, then where it listens. After this, all tell a result twice: after they
 * have connected, and at the end. */
struct qccl_where {
	struct qccl_address address;
	ncclResult_t result;
};

#ifndef __cplusplus
_Static_assert(sizeof(struct qccl_who) <= QCCL_MOST_OUR &&
		       sizeof(struct qccl_what) <= QCCL_MOST_OUR &&
		       sizeof(struct qccl_some) <= QCCL_MOST_OUR,
	       "fits into a message");
#endif

/* The thread of an id: serves the connections to both sockets, -1 for none. Takes them over. */
ncclResult_t qccl_host_start(const int *listening, const unsigned char *secret);

#endif
