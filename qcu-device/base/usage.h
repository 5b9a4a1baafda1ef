/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the sessions of one VM use of the host, and whether they may use more (limits.h). The counts
 * lie in memory that all mirrors of the VM share. Each session writes a structure of its own, and
 * the process that ends the session clears it. So there is no lock that a mirror could hold when it
 * dies, and a dead mirror leaves nothing behind. A mirror without the shared memory has one for
 * itself, and there are no others to count.
 *
 * What a session takes is counted before it is there, and given back when it is gone.
 */
#ifndef QCU_USAGE_H
#define QCU_USAGE_H

#include <stdatomic.h>

#include "include/qcucmd.h"
#include "qcu-device/base/busy.h"
#include "qcu-device/base/counts.h"
#include "qcu-device/base/limits.h"
#include "qcu-device/base/sensors.h"

#define USAGE_DEVICES 64u

struct session_usage {
	_Alignas(64) _Atomic uint64_t used[LIMIT_KINDS];
	_Atomic uint64_t memory[USAGE_DEVICES]; /* LIMIT_DEVICE_MEMORY, of each GPU */
	/* Memory of other sessions that this one has open. As long as they count it, it does not.
	 */
	_Atomic uint64_t opened[USAGE_DEVICES];
	_Atomic uint64_t refused[LIMIT_KINDS]; /* how often a limit was in the way */
	_Atomic uint64_t devices;	       /* a bit for each that the program has used */
	_Atomic uint32_t pid;		       /* of the guest's program */
	_Atomic uint64_t left_ns; /* when memory of it left a GPU last; 0: all of it is back */
	struct busy_time busy[USAGE_DEVICES][BUSY_KINDS];
	struct counts counts;
};

struct usage {
	struct session_usage sessions[QCU_MAX_SESSIONS + 1]; /* by session */
	struct sensors sensors;
};

/*
 * fd: a file for the counts, which other processes have, too. -1: for this process and its
 * children.
 */
struct usage *usage_new(int fd);
void usage_free(struct usage *u);
/* The session is over, and its mirror is gone. */
void usage_end(struct usage *u, unsigned int session);
/* Returns the sum over all sessions. For memory: on this device. */
uint64_t usage_sum(struct usage *u, enum limit what, unsigned int device);

/* A program that has used a device, and its memory there. What other mirrors wrote is not checked.
 */
struct usage_user {
	uint32_t pid;
	unsigned int session;
	uint64_t bytes;
};

/* A mirror's view. */
struct budget {
	struct limits limits;
	struct usage *vm; /* NULL: this mirror is alone */
	struct session_usage *usage;
	struct session_usage own;
	unsigned int session;
	/*
	 * How much memory is open in this session, or in any (BUDGET_ALL), that no session counts
	 * any more. NULL: there is no such memory.
	 */
	uint64_t (*left)(void *ctx, unsigned int device, unsigned int session);
	void *left_ctx;
	/* Pieces of work that run now. */
	pthread_mutex_t busy_lock;
	unsigned int running[USAGE_DEVICES][BUSY_KINDS];
};
#define BUDGET_ALL UINT32_MAX

void budget_init(struct budget *b, const struct limits *limits, struct usage *vm,
		 unsigned int session);
/* Gives the budget its session number. Nothing has been taken yet. */
void budget_begin(struct budget *b, unsigned int session);

/* The guest's program whose session it is. */
void budget_program(struct budget *b, uint32_t pid);
/* The program uses the device from now on, or no longer. */
void budget_uses(struct budget *b, unsigned int device);
void budget_leaves(struct budget *b, unsigned int device);
/* Fills in which programs of the VM use the device: at most QCU_MAX_SESSIONS. Returns how many. */
unsigned int budget_users(const struct budget *b, unsigned int device, struct usage_user *users);

/* A piece of work begins or ends on the device. */
void budget_busy(struct budget *b, unsigned int device, enum busy_kind kind, bool begins);
/*
 * What all sessions of the VM have kept the device busy: BUSY_SESSIONS readings. A mirror that is
 * alone has the last of them.
 */
void budget_read_busy(const struct budget *b, unsigned int device, struct busy_reading *to);

/* False: a limit is in the way, and nothing has been taken. */
bool budget_take(struct budget *b, enum limit what, uint64_t n);
void budget_give(struct budget *b, enum limit what, uint64_t n);
/* How often this limit was in the way of other sessions of the VM that are there now. */
uint64_t budget_refused_others(const struct budget *b, enum limit what);
/* Has any other session of the VM memory in the store that left longer ago than this one's? */
bool budget_has_colder(const struct budget *b);
/* Sets how much is used now. False: that is too much. */
bool budget_set(struct budget *b, enum limit what, uint64_t n);
/* The same for LIMIT_DEVICE_MEMORY. */
bool budget_take_memory(struct budget *b, unsigned int device, uint64_t bytes);
void budget_give_memory(struct budget *b, unsigned int device, uint64_t bytes);
/*
 * budget_add_memory() counts what has been taken already, limit or not. budget_memory_over(): is it
 * more than the limit?
 */
void budget_add_memory(struct budget *b, unsigned int device, uint64_t bytes);
bool budget_memory_over(const struct budget *b, unsigned int device);
/* The session has opened memory of another one, or has closed it. */
void budget_opened(struct budget *b, unsigned int device, uint64_t bytes);
void budget_closed(struct budget *b, unsigned int device, uint64_t bytes);

/* How much of a GPU's `total` bytes the VM may have at most, and how much it has. */
uint64_t budget_vm_total(const struct budget *b, uint64_t total);
uint64_t budget_vm_used(const struct budget *b, unsigned int device);

/*
 * How much of a GPU's `total` bytes this session may have at most, and how much more it may take.
 */
uint64_t budget_memory_total(const struct budget *b, uint64_t total);
uint64_t budget_memory_left(const struct budget *b, unsigned int device, uint64_t total);

#endif
