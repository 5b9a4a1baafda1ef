/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the sessions of one VM use of the host, and whether there may be more (limits.h). The counts
 * lie in memory that all mirrors of the VM share. Each session writes a part of its own, and
 * whoever ends the session clears it, so there is no lock that a mirror could die with, and nothing
 * that a dead one leaves behind. A mirror without that memory has a part for itself, and no others
 * to think of.
 *
 * What is taken is counted before it is there and given back when it is gone.
 */
#ifndef QCU_USAGE_H
#define QCU_USAGE_H

#include <stdatomic.h>

#include "include/qcucmd.h"
#include "qcu-device/limits.h"

#define USAGE_DEVICES 64u

struct usage_part {
	_Alignas(64) _Atomic uint64_t used[LIMIT_KINDS];
	_Atomic uint64_t memory[USAGE_DEVICES]; /* LIMIT_DEVICE_MEMORY, of each GPU */
	_Atomic uint64_t refused[LIMIT_KINDS];	/* how often a limit has been met */
};

struct usage {
	struct usage_part part[QCU_MAX_SESSIONS + 1]; /* by session */
};

/* fd: a file to keep it in, which other processes have, too; -1: this one and its children. */
struct usage *usage_new(int fd);
void usage_free(struct usage *u);
/* The session is over, and its mirror is no more. */
void usage_end(struct usage *u, unsigned int session);
/* What all sessions have of it. Of memory: on this device. */
uint64_t usage_sum(struct usage *u, enum limit what, unsigned int device);

/* A mirror's view. */
struct budget {
	struct limits limits;
	struct usage *vm; /* NULL: this mirror is alone */
	struct usage_part *part;
	struct usage_part own;
};

void budget_init(struct budget *b, const struct limits *limits, struct usage *vm,
		 unsigned int session);
/* The session has a number now. Nothing has been taken yet. */
void budget_begin(struct budget *b, unsigned int session);

/* False: there is a limit in the way; nothing has been taken. */
bool budget_take(struct budget *b, enum limit what, uint64_t n);
void budget_give(struct budget *b, enum limit what, uint64_t n);
/* So much is used now. False: that is too much. */
bool budget_set(struct budget *b, enum limit what, uint64_t n);
/* The same for LIMIT_DEVICE_MEMORY. */
bool budget_take_memory(struct budget *b, unsigned int device, uint64_t bytes);
void budget_give_memory(struct budget *b, unsigned int device, uint64_t bytes);
/* It has been taken already, limit or not; and is it more than there may be? */
void budget_add_memory(struct budget *b, unsigned int device, uint64_t bytes);
bool budget_memory_over(const struct budget *b, unsigned int device);

/* How much of a GPU's `total` bytes this session may have at most, and how much more it may take.
 */
uint64_t budget_memory_total(const struct budget *b, uint64_t total);
uint64_t budget_memory_left(const struct budget *b, unsigned int device, uint64_t total);

#endif
