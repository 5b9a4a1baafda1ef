/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A mirror: the host's half of one guest process. It maps the guest's chunks at the addresses that
 * they have in the guest, keeps the tables of handles, and carries out commands on a backend. Each
 * guest thread's commands run on a host thread of their own, a lane.
 *
 * Two transports feed a mirror, through the same two functions: the virtqueue (mirror_vq.c, in a
 * process of its own) and the loopback transport of the tests (in the program's own process).
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
struct shares;	 /* shares.h: what the mirrors of one VM share with one another */
struct guestmem; /* guestmem.h: guest-physical ranges, and where this process maps them */

enum mir_map { MIR_MAP_CVM, MIR_MAP_NCVM };

struct mir_config {
	const struct be_ops *ops;
	struct be_options options;
	/* NULL: guest and mirror are one process, and "guest-physical" addresses are pointers. */
	const struct guestmem *mem;
	enum mir_map map;
	uint64_t pin_limit;	     /* bytes of chunks to keep registered; 0: all */
	unsigned int copiers;	     /* threads for one large copy, including the lane; 0: 1 */
	bool trace;		     /* one line per command on stderr */
	struct shares *shares;	     /* NULL: nothing can be shared */
	const struct limits *limits; /* NULL: the default limits */
	/* Called when a kernel has run for too long: the GPU does no more work for this mirror. */
	void (*timed_out)(void *ctx);
	void *timed_out_ctx;
	struct usage *usage; /* NULL: only the session's own limits apply */
	unsigned int session;
	unsigned int poll_us; /* how long a lane polls for its next request before it sleeps */
};

/*
 * A reply with this status must not be sent. It means: the guest broke a rule of the wire, which
 * showed only when the command was carried out (it has been reported on stderr). The caller must
 * end the session.
 */
#define MIR_RULE_BROKEN (-71) /* -EPROTO */

/* Where a request waits, and for what; only lanes.c uses this. The points are those of lanes.h. */
#define MIR_AFTER 6
struct mir_order {
	_Atomic(struct mir_request *) next; /* next request of the same lane */
	uint16_t slot;
	uint16_t count;
	bool failed;
	uint64_t *more; /* by slot, when `after` is full */
	uint64_t after[MIR_AFTER];
};

/*
 * One command and the data that came with it. The caller has copied all of it out of memory that
 * the guest can write, and does not touch it until `done` is called.
 */
struct mir_request {
	struct qCUcmd cmd;	    /* becomes the reply */
	const void *msg;	    /* QCU_F_MSG: cmd.buf.len bytes */
	const struct qcu_seg *segs; /* QCU_F_SEGS */
	size_t seg_count;
	uint64_t taken; /* ns: when a copy with QCU_COPY_TIMED arrived */
	/* Called exactly once, on any thread. This function may free the request. */
	void (*done)(struct mir_request *req);
	struct mir_order order;
};

/* A lane on another processor has to fetch each of these cache lines. */
_Static_assert(offsetof(struct mir_request, order.after) == 128,
	       "two cache lines, most of the time");

/* Returns 0 or -errno. The error has been reported on stderr. */
int mir_create(struct mirror **m, const struct mir_config *cfg);

/*
 * Does in advance what the first commands of a program would wait for. Errors are ignored: those
 * commands will find them.
 */
void mir_warm(struct mirror *m);

/* Gives a session to a mirror that was made without one. Nothing has been submitted yet. */
void mir_begin(struct mirror *m, unsigned int session);

const char *mir_op_name(uint16_t op);

/* Counts a request that takes `bytes` of memory until it is done. False: that is too much. */
bool mir_take_request(struct mirror *m, size_t bytes);
void mir_give_request(struct mirror *m, size_t bytes);

/*
 * Checks a request and hands it to its lane. False: the guest broke a rule of the wire (reported on
 * stderr). Then `done` is not called, and the caller must end the session.
 */
bool mir_submit(struct mirror *m, struct mir_request *req);

/*
 * The process is about to end, and the backend with it. Requests that have been submitted but have
 * not begun are dropped, and so are those that come from now on; their answers say so. Waits a
 * moment for the requests that have begun.
 */
void mir_abandon(struct mirror *m);

/* Waits for the lanes and gives everything back to the backend. No request may be outstanding. */
void mir_destroy(struct mirror *m);

#endif
