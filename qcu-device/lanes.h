/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Lanes: one host thread for each guest thread, so that CUDA's per-thread state holds and a guest
 * thread that blocks delays no other. Requests of one guest thread are carried out in order; those
 * of different ones as `order` says (docs/async.md).
 */
#ifndef QCU_LANES_H
#define QCU_LANES_H

#include "qcu-device/mirror.h"

/*
 * Guest threads beyond this many, or fewer (lanes_bound), share lanes. The driver (tid 0) never
 * does, and has two: an UNMAP waits for the GPU, which may be waiting for the program, which may be
 * waiting for a MAP.
 */
#define LANES_MAX    256u
#define LANES_DRIVER LANES_MAX
#define LANES_UNMAP  (LANES_MAX + 1)
#define LANES_SLOTS  (LANES_MAX + 2)

struct lanes;

/* "The lane in this slot has carried out n requests", n > 0. 0: no such moment. */
typedef uint64_t lanes_point;

static inline lanes_point lanes_point_of(unsigned int slot, uint64_t n)
{
	return n << 9 | slot;
}

static inline unsigned int lanes_point_slot(lanes_point p)
{
	return p & 511;
}

_Static_assert(LANES_SLOTS <= 512, "a slot's number has 9 bits of a point");

/* Carries a request out and answers it; returns true if its guest thread ends with it. */
typedef bool lanes_fn(void *ctx, struct mir_request *req);

/*
 * Called for each request in the order of arrival, one at a time: says with lanes_after() what must
 * be carried out before it. `end` is the moment when it has been carried out itself. Points may
 * only be those of earlier requests, so nothing waits in a circle.
 */
typedef void lanes_order_fn(void *ctx, struct mir_request *req, lanes_point end);

/* 0 or -errno. order may be NULL. */
int lanes_create(struct lanes **lanes, lanes_fn *run, lanes_order_fn *order, void *ctx,
		 unsigned int spin_us);

/*
 * No more than `max` lanes (1 to LANES_MAX), and take() must agree to each but the first; give()
 * says that one has ended. Their ctx is that of lanes_create(). Before anything is submitted.
 */
void lanes_bound(struct lanes *lanes, unsigned int max, bool (*take)(void *ctx),
		 void (*give)(void *ctx));

/* 0, or -errno if no thread could be made; the request is then still the caller's. */
int lanes_submit(struct lanes *lanes, struct mir_request *req);

/* Within order(): points of the request's own lane and those of the past change nothing. */
void lanes_after(struct lanes *lanes, struct mir_request *req, lanes_point p);

/* Within order(): is that moment over? */
bool lanes_passed(const struct lanes *lanes, lanes_point p);

/* Waits until all that has been submitted is carried out, for so long at most. */
bool lanes_idle(struct lanes *lanes, unsigned int ms);

/* Waits for everything submitted and for the threads. */
void lanes_destroy(struct lanes *lanes);

#endif
