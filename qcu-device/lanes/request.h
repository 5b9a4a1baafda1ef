/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A command of the guest on its way through a mirror, and the data that came with it. */
#ifndef QCU_REQUEST_H
#define QCU_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "include/qcucmd.h"

/* Where a request waits, and for what; only lanes.c uses this. The points are those of lanes.h. */
#define MIR_AFTER 6
struct mir_order {
	struct mir_request *next; /* in the list of the same lane */
	uint16_t slot;
	uint8_t count;
	bool failed;
	uint32_t number; /* of all requests of guest threads, the last that had come by then */
	uint64_t *more;	 /* by slot, when `after` is full */
	uint64_t after[MIR_AFTER];
};

/*
 * One command and the data that came with it. The caller has copied all of it out of memory that
 * the guest can write, and does not touch it until `done` is called.
 */
struct mir_request {
	struct qCUcmd cmd;	    /* becomes the reply */
	const void *msg;	    /* QCU_F_MSG: cmd.buf.len bytes */
	const struct qcu_seg *segs; /* QCU_F_SEGS */
	size_t seg_count;
	uint64_t taken; /* ns: when a copy with QCU_COPY_TIMED arrived */
	/* Called exactly once, on any thread. This function may free the request. */
	void (*done)(struct mir_request *req);
	struct mir_order order;
};

/* A lane on another processor has to fetch each of these cache lines. */
_Static_assert(offsetof(struct mir_request, order.after) == 128,
	       "two cache lines, most of the time");

#endif
