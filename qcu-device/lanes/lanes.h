/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Lanes: one host thread for each guest thread, so that CUDA's per-thread state is kept and a guest
 * thread that blocks delays no other. Requests of one guest thread are carried out in order.
 * `order` decides the order between requests of different guest threads (docs/async.md).
 */
#ifndef QCU_LANES_H
#define QCU_LANES_H

#include "qcu-device/lanes/request.h"

/*
 * If there are more guest threads than this, or than lanes_bound() allows, they share lanes. The
 * driver (tid 0) never shares; it has three lanes of its own, because an UNMAP waits for the GPU,
 * the GPU may be waiting for the program, and the program may be waiting for a MAP or for a move of
 * managed memory.
 */
#define LANES_MAX    256u
#define LANES_DRIVER LANES_MAX
#define LANES_UNMAP  (LANES_MAX + 1)
#define LANES_MOVE   (LANES_MAX + 2)
#define LANES_SLOTS  (LANES_MAX + 3)

struct lanes;

/* The point at which the lane in this slot has carried out n requests, n > 0. 0: no point. */
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

/* Carries a request out and answers it. Returns true if its guest thread ends with it. */
typedef bool lanes_fn(void *ctx, struct mir_request *req);

/*
 * Called for each request, in the order of arrival, one at a time. Calls lanes_after() for each
 * point that must have passed before the request is carried out. `end` is the point at which this
 * request itself has been carried out. Points may only be those of earlier requests, so that there
 * is no deadlock.
 */
typedef void lanes_order_fn(void *ctx, struct mir_request *req, lanes_point end);

/* Returns 0 or -errno. order may be NULL. */
int lanes_create(struct lanes **lanes, lanes_fn *run, lanes_order_fn *order, void *ctx,
		 unsigned int spin_us);

/*
 * Allows at most `max` lanes (1 to LANES_MAX). take() must agree to each lane except the first;
 * give() is called when a lane to which take() agreed has ended. Both get the ctx of
 * lanes_create(). Call this before anything is submitted.
 */
void lanes_bound(struct lanes *lanes, unsigned int max, bool (*take)(void *ctx),
		 void (*give)(void *ctx));

/*
 * Returns 0, or -errno if no thread or memory was available; the caller then still owns the
 * request.
 */
int lanes_submit(struct lanes *lanes, struct mir_request *req);

/*
 * Only within order(). Points of the request's own lane and points that have passed have no effect.
 */
void lanes_after(struct lanes *lanes, struct mir_request *req, lanes_point p);

/* Only within order(): has this point passed? */
bool lanes_passed(const struct lanes *lanes, lanes_point p);

/*
 * Waits until all submitted requests are carried out, for `ms` milliseconds at most. False: some
 * are left.
 */
bool lanes_idle(struct lanes *lanes, unsigned int ms);

/* How many requests guest threads have submitted so far. */
uint64_t lanes_count(struct lanes *lanes);
/*
 * Is this request, which a lane is carrying out, the last one of all, and are all others carried
 * out? *count is how many there are.
 */
bool lanes_only(struct lanes *lanes, const struct mir_request *req, uint64_t *count);
/* Waits until all of them are carried out. Returns their number. */
uint64_t lanes_settle(struct lanes *lanes);

/* Waits for all submitted requests and joins the threads. */
void lanes_destroy(struct lanes *lanes);

#endif
