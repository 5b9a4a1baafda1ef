/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The thread that carries slots and credits between the pinned memory of this rank and that of
 * others, over TCP.
 *
 * For each far rank, this rank's kernels write the slots of an outbox in pinned memory and read
 * those of an inbox. The thread sends what has arrived in the outbox, writes what it receives into
 * the inbox, and passes on the credits of both. So for the kernels a far rank looks like a near
 * one.
 */
#ifndef QCCL_CARRY_H
#define QCCL_CARRY_H

#include <pthread.h>
#include <stdbool.h>

#include "qcu-library/nccl/kernels/layout.h"

#define QCCL_FAR_CHANNELS 8u

/* In front of what a connection carries. */
struct qccl_frame {
	uint32_t what; /* enum qccl_carried */
	uint32_t channel, size, pad;
};

enum qccl_carried {
	QCCL_CARRY_SLOT = 1, /* the next slot of a channel: `size` bytes */
	QCCL_CARRY_CREDITS,  /* the credits of all channels, 8 bytes each */
	QCCL_CARRY_BYE,	     /* no slot comes any more */
};

/* The counts of one kind. Each channel has a line. */
typedef uint64_t qccl_counts[QCCL_LINE / sizeof(uint64_t)];

/* A connection and the pinned memory of its rank. Only the thread uses what is not set at the
 * start. */
struct qccl_far_peer {
	int rank, fd; /* -1: closed */
	qccl_counts *arrived_there, *credit_here, *arrived_here, *credit_there;
	uint64_t *lengths;
	char *out, *in;

	uint64_t taken[QCCL_FAR_CHANNELS]; /* slots that were sent */
	uint64_t told[QCCL_FAR_CHANNELS];  /* credits that were sent */
	uint64_t got[QCCL_FAR_CHANNELS];   /* slots that were received */
	bool left, said_bye;		   /* BYE was received; was sent */
	bool sending, blocked;
	bool deaf;     /* takes nothing any more */
	uint32_t next; /* channel, so that each has its turn */

	struct qccl_frame out_head, in_head;
	uint64_t out_credits[QCCL_FAR_CHANNELS], in_credits[QCCL_FAR_CHANNELS];
	const void *out_body;
	void *in_body;
	size_t out_done, in_done; /* bytes of head and body */
};

enum qccl_asked { QCCL_RUN, QCCL_FLUSH, QCCL_FINISH, QCCL_QUIT };

struct qccl_far {
	uint32_t channels;
	unsigned int peers;
	struct qccl_far_peer peer[QCCL_MAX_RANKS];
	void *pinned;
	volatile uint32_t *stop; /* ends this rank's kernels */

	/* A launch is under way until each of its blocks has written its number. */
	uint64_t number, last[QCCL_FAR_CHANNELS];
	qccl_counts *done;
	bool graphs; /* captured: launched unseen */

	pthread_t thread;
	pid_t pid; /* a child of the program has no such thread */
	bool has_thread, asleep, lost;
	int wake; /* an eventfd */

	pthread_mutex_t lock; /* guards the following */
	pthread_cond_t changed;
	enum qccl_asked asked;
	bool sent_all, ended;
	struct qccl_far *next; /* of all in the process (far.c) */
};

/* Starts the thread. Returns an errno. */
int qccl_carry_start(struct qccl_far *f);

/* Says that something is to be done. */
void qccl_carry_wake(struct qccl_far *f);

/* Asks the thread for something; QUIT is waited for. FLUSH and FINISH: until all that kernels have
 * written is in the others' systems, for so many seconds if not 0. */
void qccl_carry_ask(struct qccl_far *f, enum qccl_asked what, unsigned int seconds);

/* Whether a launch that the host knows has not ended. */
bool qccl_carry_under_way(const struct qccl_far *f);

#endif
