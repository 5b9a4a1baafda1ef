/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A split virtqueue whose state outlives the process that works it.
 *
 * A mirror may die at any instruction. The main process must then give back every descriptor chain
 * that the mirror had taken, each exactly once. So the state that libvhost-user keeps in private
 * memory (next index, chains in flight) lies in a shared page here. The steps have an order in
 * which an interrupted step can be told from a finished one; ring.c says how. Descriptors are guest
 * memory: each is read once into private memory, and then checked.
 */
#ifndef QCU_RING_H
#define QCU_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "qcu-device/memory/guestmem.h"

#define RING_MAX       1024u /* descriptors in a queue, entries in an indirect table */
#define RING_CHAIN_MAX 1024u /* runs of memory of one chain */

struct vring_desc;
struct vring_avail;
struct vring_used;

/* One process writes this at a time: the mirror, or the main process when there is no mirror. */
struct ring_state {
	_Atomic uint64_t popped; /* chains taken; the low 16 bits are the next avail index */
	_Atomic uint64_t pushed; /* chains given back; the low 16 bits are the next used index */
	_Atomic uint64_t push;	 /* a push in progress: head and used index before it, or 0 */
	_Atomic uint64_t inflight[RING_MAX]; /* by head: 1 + popped when it was taken, or 0 */
	/* ring.c does not use these. */
	_Atomic bool begun; /* a mirror has taken the session */
	_Atomic bool told;  /* the main process has sent a message that must not wait */
};

/* Maps `count` states from a file that other processes have, too. NULL on error, with errno. */
struct ring_state *ring_states_map(int fd, unsigned int count);
void ring_states_unmap(struct ring_state *states, unsigned int count);

struct ring {
	unsigned int num; /* a power of two; 0: not usable */
	bool event_idx;
	struct vring_desc *desc;
	struct vring_avail *avail;
	struct vring_used *used;
	const struct guestmem *mem;
	struct ring_state *state;
	bool signalled_valid;
	uint16_t signalled; /* used index at the last notification */
};

/* One chain, translated; lengths are sums over the runs. */
struct ring_chain {
	uint16_t head;
	unsigned int out_num, in_num;
	size_t out_len, in_len;
	struct iovec iov[RING_CHAIN_MAX]; /* device-readable ones, then device-writable ones */
};

/* Sizes of the three parts of a queue, in bytes. */
size_t ring_desc_bytes(unsigned int num);
size_t ring_avail_bytes(unsigned int num);
size_t ring_used_bytes(unsigned int num);

/* Starts a queue at avail index `base`. It goes on from the value that is in used->idx. */
void ring_start(struct ring *r, uint16_t base);

/*
 * 1: a chain has been taken. 0: there is none. -EPROTO: the guest broke the rules, and *why says
 * how. Then c->head is a chain that has been taken and has bad content, or RING_NO_HEAD if the
 * queue itself is bad.
 */
#define RING_NO_HEAD 0xffffu
int ring_pop(struct ring *r, struct ring_chain *c, const char **why);

/*
 * Notes that the chain with this head was taken before the queue started. ring_retake() gives such
 * a chain again; it returns as ring_pop() does, but never 0.
 */
void ring_mark_taken(struct ring *r, uint16_t head);
int ring_retake(struct ring *r, uint16_t head, struct ring_chain *c, const char **why);

/* Is there a chain to take? Takes nothing and tells nobody. */
bool ring_has_work(const struct ring *r);

void ring_push(struct ring *r, uint16_t head, uint32_t len);

/* Called after pushes: does the guest want to be notified? */
bool ring_wants_call(struct ring *r);

/*
 * Used around waiting. ring_kicks_off(): there is work. ring_kicks_on(): the caller is about to
 * sleep; returns false if there is work after all.
 */
void ring_kicks_off(struct ring *r);
bool ring_kicks_on(struct ring *r);

/*
 * Called after the process that worked the queue has died. Finishes or undoes the step that it was
 * in, then returns every chain that it had taken, with length 0. Returns the number of chains.
 */
unsigned int ring_take_over(struct ring *r);

/*
 * Takes every chain that is available and returns it with length 0. Returns the number of chains.
 */
unsigned int ring_drain(struct ring *r);

/* Copies `len` bytes, from offset `off` of the iovec. False: the iovec is shorter. */
bool ring_copy_out(const struct iovec *iov, unsigned int n, size_t off, void *dst, size_t len);
bool ring_copy_in(const struct iovec *iov, unsigned int n, const void *src, size_t len);

#endif
