/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The order of commands that guest threads hand to lanes of their own: which must come before
 * which. docs/async.md has the reasons, order.c the rules.
 */
#ifndef QCU_ORDER_H
#define QCU_ORDER_H

#include "qcu-device/lanes/lanes.h"

/* Memory that an UNMAP takes out of the window. */
struct order_leaving {
	uint64_t va, last; /* its last byte */
	lanes_point end;
};

struct order {
	struct lanes *lanes;
	/* The last posted command about each stream and event, by number. */
	lanes_point *streams, *events;
	uint8_t *nonblocking; /* streams that the legacy stream does not wait for */
	/* The last posted command in the legacy stream, and how many had been posted by then. */
	lanes_point legacy;
	uint64_t legacy_at;
	uint64_t count;
	unsigned int slots; /* how many slots have been in use so far, and which */
	uint16_t slot[LANES_SLOTS];
	lanes_point posted[LANES_SLOTS];
	lanes_point recorded[LANES_SLOTS]; /* the last graph whose nodes record events */
	lanes_point blocking[LANES_SLOTS]; /* the last one in a blocking stream */
	uint64_t blocking_at[LANES_SLOTS];
	/*
	 * Of the driver: the last MAP, and the UNMAPs that have not been carried out, the oldest
	 * first.
	 */
	lanes_point mapped;
	struct order_leaving *leaving;
	size_t leaving_count, leaving_room;
};

/* Returns 0 or -ENOMEM. */
int order_init(struct order *o);
void order_fini(struct order *o);

/* Does the work of a lanes_order_fn for the lanes in o->lanes. */
void order_request(struct order *o, struct mir_request *req, lanes_point end);

#endif
