/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the broker of a GPU (broker.c) and the mirrors of a VM write for each other, and how a VM
 * announces itself to the broker.
 *
 * The keeper of a VM (keeper.c) makes two memory files. In one the broker writes orders; mirrors
 * can only read it. In the other each session has a page, where it says what it waits for and where
 * the GPU writes how far it is. Mirrors write those pages, so the broker takes them for claims:
 * every value is possible, and none is used as an address, a size or a time.
 */
#ifndef QCU_TURNS_PAGES_H
#define QCU_TURNS_PAGES_H

#include <stdatomic.h>

#include "include/qcucmd.h"
#include "qcu-device/turns/turns.h"

#define TURNS_GPUS     16u /* of one VM; those beyond are not shared by agreement */
#define TURNS_SESSIONS (QCU_MAX_SESSIONS + 1u)
#define TURNS_SLOTS    64u /* streams of a session with work at one time */
#define TURNS_PAGE     4096u

/* One page for each GPU. */
struct turns_orders {
	_Alignas(TURNS_PAGE) _Atomic uint32_t
		order[TURNS_KINDS]; /* enum turns_order; a futex each */
	/*
	 * Odd while the VM is measured: mirrors then mark the begin and the end of their work.
	 * Grows by one at each change; a futex.
	 */
	_Atomic uint32_t measured;
	_Atomic uint32_t looks; /* how often the broker has looked: who waits sees that it lives */
	_Atomic uint64_t had_ns[TURNS_KINDS], waited_ns[TURNS_KINDS];
	/* How many looks have seen work of other VMs under way, too. */
	_Atomic uint32_t crowded;
	/*
	 * Memory (room.h). If the GPU's memory is what the broker says (`memory` is not 0), a
	 * session takes none before its request has been granted.
	 */
	_Atomic uint64_t memory;
	_Atomic uint64_t most;	 /* what one program may have of it; 0: not known */
	_Atomic uint64_t stores; /* what the stores of all VMs may have; 0: no bound */
	_Atomic uint32_t leaves; /* raised with each order to leave; a futex */
	struct turns_room {
		/* The number of the last request that was answered, and TURNS_GRANTED; a futex. */
		_Atomic uint32_t answer;
		_Atomic uint32_t number; /* of the last order to leave */
		_Atomic uint64_t bytes;	 /* that should leave */
		_Atomic uint64_t store;	 /* as in struct room_program; for the next broker */
	} room[TURNS_SESSIONS];
};

/*
 * Work of one stream. The GPU writes how many pieces of work it has begun, with the kind of the
 * last one in the bits from TURNS_KIND on, and how many it has ended.
 */
#define TURNS_KIND  30
#define TURNS_COUNT ((1u << TURNS_KIND) - 1)
struct turns_progress {
	_Atomic uint32_t begun, done;
};

#define TURNS_GRANTED 0x80000000u /* of an answer */
#define TURNS_BACK    0x80000000u /* of a request: what it needs has left before */
#define TURNS_NOW     0x40000000u /* of a request: only if there is room, nobody gives any */
#define TURNS_NUMBER  0x3fffffffu /* of a request: its number */

/* Memory of a session. Bytes, if nothing else is said. */
struct turns_memory {
	_Atomic uint64_t held;	    /* on the GPU, or granted and not taken yet */
	_Atomic uint64_t fixed;	    /* of these: cannot leave, as far as is known */
	_Atomic uint64_t away;	    /* has left */
	_Atomic uint64_t need;	    /* it waits for so much more */
	_Atomic uint64_t worked_ns; /* when its last command came, by CLOCK_MONOTONIC */
	_Atomic uint64_t left;	    /* by the order `number` so far */
	_Atomic uint32_t ask;	    /* number of the request, and TURNS_BACK or TURNS_NOW or none */
	_Atomic uint32_t number;    /* the order that has been carried out */
	_Atomic uint64_t kept;	    /* of the host: what the store has and does not use */
};

/* One page for each session and GPU. */
struct turns_report {
	_Alignas(TURNS_PAGE) _Atomic uint32_t live; /* a session has it */
	_Atomic uint32_t slots;			    /* so many are used */
	_Atomic uint32_t wants[TURNS_KINDS];	    /* threads that wait for an order */
	/* What had been submitted before `measured` took this value is done. */
	_Atomic uint32_t settled;
	struct turns_progress slot[TURNS_SLOTS];
	struct turns_memory memory;
};

_Static_assert(sizeof(struct turns_orders) == TURNS_PAGE, "a page");
_Static_assert(sizeof(struct turns_report) == TURNS_PAGE, "a page");

#define TURNS_ORDERS_BYTES  (TURNS_GPUS * sizeof(struct turns_orders))
#define TURNS_REPORTS_BYTES (TURNS_GPUS * TURNS_SESSIONS * sizeof(struct turns_report))

/* What a mirror has of it. NULL orders: the VM's GPUs are not shared by agreement. */
struct turns_view {
	const struct turns_orders *orders;
	unsigned int gpus;	      /* that are in use */
	struct turns_report *reports; /* of a GPU: TURNS_SESSIONS of them */
	int bell;
};

static inline struct turns_report *turns_report(const struct turns_view *v, unsigned int gpu,
						unsigned int session)
{
	return &v->reports[gpu * TURNS_SESSIONS + session];
}

/*
 * The only message from a keeper to the broker, on a socket of type SOCK_SEQPACKET. Three files
 * come with it: orders, reports, and the bell, an eventfd. The broker closes the socket of who
 * sends anything else. It answers only if it refuses the VM, with a line of at most TURNS_WHY bytes
 * that says why.
 */
#define TURNS_MAGIC   0x71637531u
#define TURNS_VERSION 5u
#define TURNS_WHY     256u
#define TURNS_NAME    64u

struct turns_hello {
	uint32_t magic, version;
	uint32_t gpu;	      /* which page of the orders, and which pages of the reports */
	uint32_t weight, max; /* as in struct turns_vm */
	uint32_t interactive;
	uint32_t moves; /* its memory can leave */
	/* The GPU is not the VM's: what it has there is its store, which never leaves. */
	uint32_t stays;
	uint64_t resident;     /* bytes that it always may have on the GPU */
	uint64_t memory;       /* bytes of the GPU; 0: not known */
	uint64_t swap;	       /* bytes that its stores may have; 0: not known */
	uint64_t stores;       /* bytes that the stores of all VMs may have; 0: no bound */
	char name[TURNS_NAME]; /* of the VM, NUL at its end */
};

/* The same message with version TURNS_ASK and no files: the broker answers with a text. */
#define TURNS_ASK 0u

#endif
