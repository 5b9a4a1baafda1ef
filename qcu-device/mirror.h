/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A mirror: the host's half of one guest process. It maps the guest's chunks where the guest has
 * them, keeps the tables of handles, and carries commands out on a backend, each guest thread's on
 * a thread (a lane) of its own.
 *
 * The virtqueue (mirror_vq.c, in a process of its own) and the loopback transport of the tests (in
 * the program's own process) feed it through the same two functions.
 */
#ifndef QCU_MIRROR_H
#define QCU_MIRROR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "include/qcucmd.h"
#include "qcu-device/backend.h"

struct mirror;
struct limits;	 /* limits.h */
struct usage;	 /* usage.h: what the mirrors of one VM use of the host */
struct shares;	 /* shares.h: what the mirrors of one VM have given one another */
struct guestmem; /* guestmem.h: guest-physical ranges and where they are mapped here */

enum mir_map { MIR_MAP_CVM, MIR_MAP_NCVM };

struct mir_config {
	const struct be_ops *ops;
	struct be_options options;
	/* NULL: guest and mirror are one process, "guest-physical" addresses are pointers. */
	const struct guestmem *mem;
	enum mir_map map;
	uint64_t pin_limit;	     /* bytes of chunks to keep registered; 0: all */
	unsigned int copiers;	     /* threads for one large copy, its lane among them; 0: 1 */
	bool trace;		     /* one line per command on stderr */
	struct shares *shares;	     /* NULL: nothing can be shared */
	const struct limits *limits; /* NULL: the default ones */
	/* A kernel has run for too long: the GPU does nothing more for this mirror. */
	void (*timed_out)(void *ctx);
	void *timed_out_ctx;
	struct usage *usage; /* NULL: the limits of the session are all there are */
	unsigned int session;
	unsigned int poll_us; /* for how long a lane looks for its next request before it sleeps */
};

/*
 * The status of a reply that must not be sent: carrying the command out has shown that the guest
 * broke a rule of the wire (said on stderr), and the session must be ended.
 */
#define MIR_RULE_BROKEN (-71) /* -EPROTO */

/* Where a request waits and for what: lanes.c's. The points are of lanes.h. */
#define MIR_AFTER 6
struct mir_order {
	_Atomic(struct mir_request *) next; /* of the same lane */
	uint16_t slot;
	uint16_t count;
	bool failed;
	uint64_t *more; /* by slot, when `after` has no room */
	uint64_t after[MIR_AFTER];
};

/*
 * One command and what came with it. The caller has copied all of it out of memory that the guest
 * can write, and leaves it alone until `done`.
 */
struct mir_request {
	struct qCUcmd cmd;	    /* becomes the reply */
	const void *msg;	    /* QCU_F_MSG: cmd.buf.len bytes */
	const struct qcu_seg *segs; /* QCU_F_SEGS */
	size_t seg_count;
	uint64_t taken; /* ns, when a QCU_COPY_TIMED came here */
	/* Called exactly once, on any thread; the request may be freed in it. */
	void (*done)(struct mir_request *req);
	struct mir_order order;
};

/* A lane on another processor has to fetch each one of them. */
_Static_assert(offsetof(struct mir_request, order.after) == 128,
	       "two cache lines, most of the time");

/* Returns 0 or -errno; what is wrong has been said on stderr. */
int mir_create(struct mirror **m, const struct mir_config *cfg);

/*
 * Does beforehand what the first commands of a program would wait for. What goes wrong is for them
 * to find out.
 */
void mir_warm(struct mirror *m);

/* The session of a mirror that was made without one. Nothing has been submitted yet. */
void mir_begin(struct mirror *m, unsigned int session);

const char *mir_op_name(uint16_t op);

/* A request has come that takes so much memory until it is done. False: too much. */
bool mir_take_request(struct mirror *m, size_t bytes);
void mir_give_request(struct mirror *m, size_t bytes);

/*
 * Checks a request and hands it to its lane. False: the guest broke a rule of the wire (said on
 * stderr); `done` will not be called and the session must be ended.
 */
bool mir_submit(struct mirror *m, struct mir_request *req);

/*
 * The process is about to end, and the backend with it: what has been submitted and not begun is
 * dropped, and answered so, as is what comes from now on. Waits a moment for what has begun.
 */
void mir_abandon(struct mirror *m);

/* Waits for the lanes and gives everything back to the backend. No request may be outstanding. */
void mir_destroy(struct mirror *m);

#endif
