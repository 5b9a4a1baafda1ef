/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Who lets memory leave a GPU so that another one has room. As turns.h this only decides: it has no
 * clock and no memory that others write. The broker tells it what programs claim, and passes orders
 * and answers on. docs/vm/memory.md describes the algorithm.
 *
 * A program (a session of a VM) asks for room. Then the program that has been idle longest lets
 * memory leave; if none is idle, the one whose memory has been on the GPU longest, after a quantum.
 * Of another VM no more leaves than is above what that VM is guaranteed.
 *
 * Numbers of a program are claims. A program that has been told to let memory leave, and does not,
 * or has no effect, is passed over for a time.
 */
#ifndef QCU_ROOM_H
#define QCU_ROOM_H

#include <stdbool.h>
#include <stdint.h>

#include "include/qcucmd.h"
#include "qcu-device/turns/turns.h"

#define ROOM_AGE      10000000000ull /* ns: a new request is no older */
#define ROOM_PROGRAMS (QCU_MAX_SESSIONS + 1u)

#define ROOM_TICK	 5000000ull	/* ns: how often the broker looks while somebody waits */
#define ROOM_IDLE	 20000000ull	/* a program is idle after so long without a command */
#define ROOM_QUANTUM	 100000000ull	/* memory stays so long on the GPU at least, */
#define ROOM_MOVES	 6u		/* and so many times what it takes to move it, */
#define ROOM_QUANTUM_MAX 10000000000ull /* and no longer than this, if others wait */
#define ROOM_SLOW	 2000000000ull	/* an order is late after this, */
#define ROOM_SLOW_RATE	 500000000ull	/* and what so many bytes a second take */
#define ROOM_BUSY                                                                      \
	500000000ull /* who answered that its work does not end is passed over so long \
		      */
#define ROOM_PASS      10000000000ull /* and who did not answer so long, or until it answers */
#define ROOM_TURN      1000000000ull  /* who gave within this time gives after others */
#define ROOM_RATE      50000000000ull /* bytes a second, before anything has moved */
#define ROOM_RATE_MIN  100000000ull
#define ROOM_BYTES_MAX (1ull << 50) /* no claim counts as more */
/* Memory leaves in parts. More of it may leave than was ordered, but by less than a part. */
#define ROOM_PART      (1ull << 30)
#define ROOM_PART_SOFT (2ull << 20) /* of the software GPU */

struct room_claim {
	bool live;
	uint64_t held, fixed, away, kept, need, left, worked_ns;
	uint32_t ask, number; /* of the last request, and of the last order that was carried out */
	bool back;	      /* what it needs has left before */
	bool now;	      /* it wants room only if there is some */
	/* Not claims: the last order that the broker has passed on, and room_program.store then. */
	uint32_t told;
	uint64_t told_store;
};

struct room_program {
	struct room_claim claim;
	bool live;
	/* A request that is not answered yet. */
	bool asks;
	uint32_t ask;
	uint64_t asked_ns;
	/* Answered with yes; counts until it is part of what the program holds. */
	uint64_t granted;
	uint64_t since_ns;  /* since when its memory has been on the GPU */
	uint64_t passed_ns; /* it is passed over until then */
	uint64_t gave_ns;   /* when memory of it left last */
	bool silent;	    /* because it did not answer */
	bool came;	    /* something has left for its request */
	/*
	 * What its store may have. It grows with orders only; when they have been carried out it
	 * shrinks to what the program claims. returning: there is room for so much of what is away.
	 */
	uint64_t store, returning;
	/* An order that has not been carried out, for the request of a program. */
	bool ordered;
	uint64_t bytes, ordered_ns;
	unsigned int for_vm, for_program;
	uint32_t number;
	/* What the broker passes on. */
	uint32_t answer;
	bool yes;
};

struct room_vm {
	bool moves;	   /* its memory can leave */
	bool stays;	   /* but it never does: it is the VM's store for another GPU */
	uint64_t resident; /* bytes that it is guaranteed */
	uint64_t memory;   /* of the GPU, as the VM has found it; 0: not known */
	uint64_t swap;	   /* what its stores may have; 0: not known */
	uint64_t stores;   /* what it says that all VMs' stores may have; 0: no bound */
	struct room_program program[ROOM_PROGRAMS];
};

struct room {
	uint64_t memory; /* of the GPU; 0: programs ask only when it is full */
	uint64_t rate;	 /* bytes a second that have left */
	uint64_t now_ns, looked_ns;
	bool waits;	   /* a request or an order is open */
	uint64_t promised; /* new memory for which others leave now */
	uint64_t older;	   /* bytes that older requests wait for */
	uint64_t over_ns;  /* since when more is away than can come back; 0: it is not */
	uint64_t evict_ns; /* for tests: memory of all leaves so often without need; 0: never */
	uint64_t evicted_ns, evicted; /* when last; bytes */
	struct room_vm vm[TURNS_VMS];
	unsigned int top;
};

void room_init(struct room *r, uint64_t memory);
/*
 * memory: of the GPU, as the VM has found it; 0: not known. False: what is guaranteed would be more
 * than there is.
 */
bool room_add(struct room *r, unsigned int vm, bool moves, uint64_t resident, uint64_t memory);
/* What the VM has here is its store for another GPU. */
void room_stays(struct room *r, unsigned int vm);
/* What can still be guaranteed of the GPU's memory, which is *all; both 0 if that is not known. */
uint64_t room_left(const struct room *r, uint64_t memory, uint64_t *all);
void room_remove(struct room *r, unsigned int vm);
/* What the stores of this VM may have, and what it says that all VMs' stores may have; or 0. */
void room_bound(struct room *r, unsigned int vm, uint64_t swap, uint64_t stores);
/* What the stores of all VMs may have: the least that one says. 0: no bound. */
uint64_t room_stores(const struct room *r);
/* How much of the memory one program of this VM may have at most. */
uint64_t room_most(const struct room *r, unsigned int vm);
/* What a program claims now. Called for each before room_look(). */
void room_claim(struct room *r, uint64_t now_ns, unsigned int vm, unsigned int program,
		const struct room_claim *c);
void room_look(struct room *r, uint64_t now_ns);

#endif
