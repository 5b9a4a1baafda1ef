/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Far ranks: those whose memory this rank's device cannot reach. Slots to and from them are in
 * pinned memory, and a thread carries them over TCP (carry.h).
 */
#ifndef QCCL_FAR_H
#define QCCL_FAR_H

#include "qcu-library/nccl/kernels/layout.h"
#include "qcu-library/nccl/meet.h"

struct qccl_far;

/* What the first message of a connection between two ranks says. */
struct qccl_far_hello {
	char magic[8];
	unsigned char secret[QCCL_SECRET];
	uint32_t version, from, to, pad;
};

extern const char qccl_far_magic[8];

/* The most channels of a communicator with far ranks. */
uint32_t qccl_far_channels(int ranks);

/*
 * Connects this rank with its far ranks, whose bits are set in `far`. Every rank of the
 * communicator calls this, also one without. Fills the ways to them, and *done (struct
 * qccl_shared). *to is NULL without far ranks. The current device is the rank's.
 */
ncclResult_t qccl_far_open(struct qccl_far **to, struct qccl_meeting *m, uint32_t far,
			   uint32_t channels, volatile uint32_t *stop, struct qccl_way *way,
			   uint64_t *done);

/* A launch is about to be made with so many blocks. Returns its number. Captured ones have none. */
uint64_t qccl_far_launch(struct qccl_far *f, uint32_t blocks, bool captured);

/* Whether a far rank has ended too early, or its connection is broken. */
bool qccl_far_lost(const struct qccl_far *f);

/* Waits until all that this rank's kernels have sent is at the others, and says that nothing more
 * comes. */
void qccl_far_finish(struct qccl_far *f);

/* Ends all connections. */
void qccl_far_stop(struct qccl_far *f);

/* After all ranks have left. */
void qccl_far_close(struct qccl_far *f);

#endif
