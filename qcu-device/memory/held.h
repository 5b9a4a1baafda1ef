/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Device memory that commands use. A command holds the ranges of addresses that it names until it
 * has been carried out, as it holds maps of the window (window.h). Who frees device memory first
 * says so here, and waits for the commands that hold it. This does not wait for the GPU's work.
 *
 * A lane writes the ranges into a slot of its own and then looks whether anything is being freed.
 * Who frees says so first and then looks at all slots. So at least one of the two sees the other,
 * and a command costs no lock.
 */
#ifndef QCU_HELD_H
#define QCU_HELD_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

/* A command that names more ranges holds all device memory. */
#define HELD_RANGES 6u

struct held_slot {
	_Alignas(64) _Atomic uint32_t count; /* ranges; more than HELD_RANGES: all memory */
	struct {
		_Atomic uint64_t first, last;
	} range[HELD_RANGES];
};

/* Memory that is being freed. */
struct held_leaving {
	uint64_t first, last;
	bool unheld; /* no command holds it any more: the backend is freeing it */
	LIST_ENTRY(held_leaving) link;
};

struct held {
	atomic_uint leavings;
	_Atomic uint32_t used; /* no slot from this index on has been used */
	uint32_t slots;
	struct held_slot *slot;
	pthread_mutex_t lock; /* protects the list */
	pthread_cond_t moved; /* a slot is empty, or memory is gone */
	LIST_HEAD(, held_leaving) list;
};

/* Returns 0 or -ENOMEM. */
int held_init(struct held *h, unsigned int slots);
void held_fini(struct held *h);

/*
 * The command in this slot is about to look whether [addr, addr + len) is device memory, and to use
 * it. False: the memory is being freed. len is not 0, and the range does not wrap.
 */
bool held_take(struct held *h, unsigned int slot, uint64_t addr, uint64_t len);
/* The same, but it waits for nothing. False also if other memory is being freed. */
bool held_try(struct held *h, unsigned int slot, uint64_t addr, uint64_t len);
/* The command in this slot, on this thread, has been carried out. */
void held_release(struct held *h, unsigned int slot);

/*
 * The memory is about to be freed. Waits until no command holds it, except the caller's own. When
 * it is gone, the caller must say so: at that moment it may already be another allocation's.
 */
void held_leave(struct held *h, struct held_leaving *l, uint64_t addr, uint64_t size);
void held_gone(struct held *h, struct held_leaving *l);

#endif
