/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Device memory that leaves the GPU and comes back (docs/vm/memory.md).
 *
 * Memory leaves while all commands are kept out of the backend and the GPU does nothing for this
 * mirror. It comes back before the next command that needs it. Neither changes an address.
 */
#ifndef QCU_SWAP_H
#define QCU_SWAP_H

#include "qcu-device/commands/call.h"
#include "qcu-device/memory/store.h"

/* Bits of m->swap_state, which each command looks at. 0: no memory ever leaves. */
#define SWAP_ON	    1u
#define SWAP_CLOSED 2u /* memory is about to leave, or leaves: commands wait outside */
#define SWAP_AWAY   4u /* some memory has left */

/* One GPU. Its thread carries out the broker's orders. */
struct swap_gpu {
	struct mirror *m;
	unsigned int device;
	pthread_t thread;
	bool running;
	/* Bytes on the GPU, if the backend counts them; and how many it may have there. */
	_Atomic uint64_t held, granted;
	_Atomic uint64_t told; /* what had been taken when the broker was told last */
	pthread_mutex_t ask;   /* one request at a time */
	bool silent;	       /* under `ask`: no broker has answered when it had looked so often */
	uint32_t silent_looks;
	pthread_mutex_t tell; /* protects `granted` and what the broker is told */
	/* Commands that have asked and have not taken yet. Until then nothing that was granted goes
	 * back. */
	atomic_uint asking;
};

struct swap {
	struct store store;
	atomic_bool stop;
	pthread_mutex_t lock;	/* protects SWAP_CLOSED */
	pthread_cond_t opened;	/* it is no longer set */
	pthread_mutex_t mover;	/* one thread at a time lets memory leave, */
	pthread_mutex_t backer; /* or brings it back; who locks both takes `mover` first */
	/* How often other programs of the VM have found the store full, when this one looked last.
	 */
	_Atomic uint64_t refused;
	unsigned int gpus;
	struct swap_gpu gpu[MIR_DEVICES_MAX];
};

/* How long a command has waited for memory so far, and what it waits for. */
struct swap_wait {
	uint64_t since_ns;
	uint64_t need; /* bytes that the GPU has not */
	unsigned int device;
	unsigned int tries; /* requests that were granted */
	bool asking;	    /* it counts in swap_gpu.asking of `device` */
};

/* swap.c */
/* Called before the backend is opened, and after. False: there is no memory for it. */
bool mir_swap_prepare(struct mirror *m);
void mir_swap_begin(struct mirror *m);
/* The mirror has its session. */
void mir_swap_session(struct mirror *m);
/* From now on nothing leaves, and nobody waits for room. */
void mir_swap_stop(struct mirror *m);
void mir_swap_join(struct mirror *m);
/* Called before the backend is closed, and after. */
void mir_swap_end(struct mirror *m);
void mir_swap_fini(struct mirror *m);

/*
 * Returned by mir_swap_enter(): the command must leave the backend and call mir_swap_wait(), whose
 * answer is an error, or success: then it may try again.
 */
#define MIR_SWAP_WAIT (-3)
/* A command has its lock. May it go on? Brings memory back if it needs that. */
int mir_swap_enter(struct call *c, unsigned int traits, struct swap_wait *w);
int mir_swap_wait(struct call *c, struct swap_wait *w);
/*
 * The command has failed for lack of memory, and has left the backend. Returns whether there is
 * room now, so that it may be tried again.
 */
bool mir_swap_make_room(struct call *c, struct swap_wait *w);
/* The command is done. */
void mir_swap_done(struct call *c, struct swap_wait *w);
/* Brings back what is away. If there is no room, it waits for some until then. */
void mir_swap_bring_back(struct mirror *m, uint64_t until_ns);
/* While memory stays, nothing leaves. The time should be short: others wait for room. */
void mir_swap_stay(struct mirror *m, bool stay);

/* leave.c */
/*
 * Lets up to `want` bytes of a device leave. Returns how many left. *why: why it is less, or NULL.
 * It is mir_swap_full if the store is full or the rest cannot leave; else it may be tried again.
 */
extern const char mir_swap_full[];
uint64_t mir_swap_leave(struct mirror *m, unsigned int device, uint64_t want, const char **why);
/*
 * If other programs of the VM have found its memory store full since memory of this one left, and
 * this one's has been away longest, it goes to the file.
 */
void mir_swap_settle(struct mirror *m);
/* The thread of a struct swap_gpu. */
void *mir_swap_serve(void *gpu);

/* ask.c */
/* For options.resident. */
bool mir_swap_resident(void *mirror, unsigned int device, int64_t bytes);
/* Tells the broker how much memory the session has on this GPU. */
void mir_swap_tell(struct swap_gpu *g);
/* The same after a command, if it has changed that. What is away, its movers tell. */
void mir_swap_tell_change(struct swap_gpu *g);
/* Is so much more granted, or need it not be? */
bool mir_swap_fits(struct swap_gpu *g, uint64_t bytes);
/* Asks the broker for so much room, and waits for the answer. False: there is none. What is granted
 * already is not asked for. how: TURNS_BACK (for memory that has left), TURNS_NOW, or 0. */
bool mir_swap_ask(struct swap_gpu *g, uint64_t bytes, uint32_t how, uint64_t until_ns);
/* Memory of the GPU that is only for the store, if there is room at once; and its end. */
void *mir_swap_borrow(void *mirror, uint64_t bytes);
void mir_swap_hand_back(void *mirror, void *p, uint64_t bytes);
/* The session is new: earlier orders were for another one. */
void mir_swap_skip(struct swap_gpu *g);
/* The broker's order to leave; 0: there is none that has not been carried out. */
uint64_t mir_swap_order(struct swap_gpu *g, uint32_t *number);
void mir_swap_answer(struct swap_gpu *g, uint32_t number, uint64_t left, bool done);
/* Granted, and not taken yet. 0 if nothing need be granted. */
uint64_t mir_swap_unused(const struct swap_gpu *g);
/* Gives back up to so much of what was granted and is not taken. Returns how much. */
uint64_t mir_swap_give_unused(struct swap_gpu *g, uint64_t want);
void mir_swap_tell_left(struct swap_gpu *g, uint64_t left);
/* Tells the broker how much cannot leave; full: nothing more can. */
void mir_swap_tell_fixed(struct swap_gpu *g, bool full);
/* Waits until the broker orders something, but not for long; and ends that. */
void mir_swap_sleep(struct swap_gpu *g);
void mir_swap_wake(struct swap_gpu *g);
/* Unmaps what the store has kept for so many calls; all of it if there is a bound for all stores.
 */
void mir_swap_trim(struct swap_gpu *g, unsigned int looks);

#endif
