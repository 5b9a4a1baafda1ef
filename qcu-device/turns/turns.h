/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Whose turn it is on a GPU. This file decides and does nothing else: it has no clock, no memory
 * that others write, and no processes. The broker tells it what it sees of each VM, and passes the
 * orders on (broker.c). docs/vm/sharing.md describes the algorithm.
 *
 * There are three kinds of work, each with turns of its own: what runs on the GPU's processors, and
 * copies in each direction of the bus.
 *
 * Each VM has a virtual time for each kind: the time that it has had, divided by its weight. The VM
 * with the least virtual time has the turn. It keeps it until it is a quantum ahead of another one
 * that has work. Then the next one waits until what the last one has in flight is done, but not for
 * long, so that the time of a turn is one VM's.
 *
 * A VM that comes back has saved a credit at most. While it has that, it is served at once and does
 * not wait for what others have in flight. So who uses less than its share has short waits.
 */
#ifndef QCU_TURNS_H
#define QCU_TURNS_H

#include <stdbool.h>
#include <stdint.h>

#define TURNS_VMS	   256u
#define TURNS_WEIGHT	   100u /* the default */
#define TURNS_WEIGHT_MAX   10000u
#define TURNS_NONE	   TURNS_VMS
#define TURNS_QUANTUM	   4000000ull	/* ns. Two equal VMs have turns of twice this */
#define TURNS_DRAIN	   10000000ull	/* the longest wait for what others have in flight */
#define TURNS_TICK	   250000ull	/* how often the broker looks while VMs share */
#define TURNS_TICK_SHORT   50000ull	/* and while one waits for another's last work */
#define TURNS_START	   (1ull << 40) /* the first virtual time: more than any credit */
#define TURNS_LINGER	   300000ull	/* a VM without work keeps its turn so long */
#define TURNS_LINGER_LONG  2000000ull	/* the same for an interactive one */
#define TURNS_CREDIT_LONG  500000000ull /* of an interactive VM; others have a quantum */
#define TURNS_GRACE	   5000000ull	/* in which who has the turn must begin its work */
#define TURNS_CALM	   50000000ull	/* so long after the others' last work a VM is alone */
#define TURNS_PART	   4u /* who has the turn is charged for so manyth of the time at least */
#define TURNS_BURST	   20000000ull	 /* how far a VM with a maximum may be ahead of it */
#define TURNS_LONGEST_LOOK 1000000000ull /* no more time than this passes between two looks */

enum turns_kind { TURNS_GPU, TURNS_UP, TURNS_DOWN, TURNS_KINDS };

enum turns_order {
	TURNS_FREE, /* alone: submit, and measure nothing */
	TURNS_RING, /* without work so far: ring the bell first, and then wait for another order */
	TURNS_GO,   /* submit, but only a little ahead of the GPU */
	TURNS_HOLD, /* submit nothing */
};

/* What the broker sees of a VM's work of one kind. */
struct turns_use {
	uint32_t wants;	  /* threads that wait for an order */
	uint32_t running; /* sessions whose work has begun and not ended */
};

struct turns_vm {
	bool there, interactive;
	uint32_t weight, max; /* max: percent of the GPU; 0: all of it */
	struct turns_use use[TURNS_KINDS];
	enum turns_order order[TURNS_KINDS];
	struct turns_account {
		uint64_t virtual_ns; /* the time that it has had, for a VM of weight TURNS_WEIGHT */
		uint64_t had_ns, waited_ns;
		uint64_t seen_ns; /* when it last had work */
		uint64_t rest_ns; /* until then it has had its maximum */
		bool active, stuck;
		bool saved; /* it lives on its credit */
	} share[TURNS_KINDS];
};

struct turns {
	struct turns_vm vm[TURNS_VMS];
	unsigned int top;		  /* no VM from here on is there */
	unsigned int holder[TURNS_KINDS]; /* who has the turn, or TURNS_NONE */
	uint64_t since_ns[TURNS_KINDS];	  /* since when */
	uint64_t floor_ns[TURNS_KINDS];	  /* the least virtual time of those who last had work */
	/* Whose last work the holder waits for; TURNS_NONE: it may go. */
	unsigned int drains[TURNS_KINDS];
	unsigned int alone; /* who is alone, or TURNS_NONE */
	bool shared;	    /* several VMs have work, so it is measured what each has running */
	uint64_t now_ns;    /* of the last look */
};

void turns_init(struct turns *t);
/* A VM comes or goes. turns_add() returns its number; TURNS_NONE: there are too many. */
unsigned int turns_add(struct turns *t, uint32_t weight, uint32_t max, bool interactive);
void turns_remove(struct turns *t, unsigned int vm);
/* When to look again, in ns from now; 0: when a bell rings. */
uint64_t turns_next_look(const struct turns *t);
/* The broker has set each VM's `use`. Charges for the time since the last look; sets the orders. */
void turns_look(struct turns *t, uint64_t now_ns);

#endif
