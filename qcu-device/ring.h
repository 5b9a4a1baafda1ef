/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A split virtqueue whose state outlives the process that works it.
 *
 * A mirror may die at any instruction, and the main process must then give back every descriptor
 * chain that the mirror had taken, each exactly once. So what libvhost-user keeps in private memory
 * (next index, chains in flight) lies in a shared page here, and each step is ordered such that an
 * interrupted one can be told from a finished one; ring.c says how. Descriptors are guest memory:
 * each is read once into private memory, then checked.
 */
#ifndef QCU_RING_H
#define QCU_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "qcu-device/guestmem.h"

#define RING_MAX       1024u /* descriptors in a queue, entries in an indirect table */
#define RING_CHAIN_MAX 1024u /* pieces of one chain */

struct vring_desc;
struct vring_avail;
struct vring_used;

/* Written by one process at a time: the mirror, or the main process when there is none. */
struct ring_state {
	_Atomic uint64_t popped; /* chains taken; the low 16 bits are the next avail index */
	_Atomic uint64_t pushed; /* chains given back; the low 16 bits are the next used index */
	_Atomic uint64_t push;	 /* a push in progress: head and used index before it, or 0 */
	_Atomic uint64_t inflight[RING_MAX]; /* by head: 1 + popped when it was taken, or 0 */
	_Atomic bool begun; /* a mirror has taken the session; ring.c has no use for it */
};

/* As many of them, in a file that other processes have, too. NULL with errno. */
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

/* One chain, translated; lengths are sums over the pieces. */
struct ring_chain {
	uint16_t head;
	unsigned int out_num, in_num;
	size_t out_len, in_len;
	struct iovec iov[RING_CHAIN_MAX]; /* device-readable ones, then device-writable ones */
};

/* Bytes that the three parts of a queue take. */
size_t ring_desc_bytes(unsigned int num);
size_t ring_avail_bytes(unsigned int num);
size_t ring_used_bytes(unsigned int num);

/* A queue that starts at avail index `base`; what is in used->idx is where we go on. */
void ring_start(struct ring *r, uint16_t base);

/*
 * 1: a chain has been taken. 0: there is none. -EPROTO: the guest broke the rules, *why says how;
 * c->head is then a chain taken whose content is bad, or RING_NO_HEAD if the queue itself is.
 */
#define RING_NO_HEAD 0xffffu
int ring_pop(struct ring *r, struct ring_chain *c, const char **why);

/* Without taking anything or telling anyone: is there something to take? */
bool ring_has_work(const struct ring *r);

void ring_push(struct ring *r, uint16_t head, uint32_t len);

/* After pushes: does the guest want to hear of them? */
bool ring_wants_call(struct ring *r);

/*
 * Around waiting: ring_kicks_off() while there is work; ring_kicks_on() before sleeping, which
 * returns false if there is work after all.
 */
void ring_kicks_off(struct ring *r);
bool ring_kicks_on(struct ring *r);

/*
 * After the process that worked the queue has died: finishes or undoes what it was at, then returns
 * every chain that it had taken with length 0. Returns how many.
 */
unsigned int ring_take_over(struct ring *r);

/* Takes everything that is available and returns it with length 0. Returns how many. */
unsigned int ring_drain(struct ring *r);

/* Copies len bytes at offset off of an iovec; false if it is shorter. */
bool ring_copy_out(const struct iovec *iov, unsigned int n, size_t off, void *dst, size_t len);
bool ring_copy_in(const struct iovec *iov, unsigned int n, const void *src, size_t len);

#endif
