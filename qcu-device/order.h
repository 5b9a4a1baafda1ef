/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What must be carried out before what, when guest threads hand their commands to lanes of their
 * own. docs/async.md has the reasons; order.c the rules.
 */
#ifndef QCU_ORDER_H
#define QCU_ORDER_H

#include "qcu-device/lanes.h"

/* Memory that an UNMAP takes out of the window. */
struct order_leaving {
	uint64_t va, last; /* its last byte */
	lanes_point end;
};

struct order {
	struct lanes *lanes;
	/* The last posted command about each stream and event, by number. */
	lanes_point *streams, *events;
	uint8_t *nonblocking; /* streams that the legacy one does not wait for */
	/* The last posted one in the legacy stream, and how many posted ones had come before it. */
	lanes_point legacy;
	uint64_t legacy_at;
	uint64_t count;
	unsigned int slots; /* in use so far */
	lanes_point posted[LANES_SLOTS];
	lanes_point blocking[LANES_SLOTS]; /* in a blocking stream */
	uint64_t blocking_at[LANES_SLOTS];
	/* Of the driver: the last MAP, and UNMAPs that are not carried out, the oldest first. */
	lanes_point mapped;
	struct order_leaving *leaving;
	size_t leaving_count, leaving_room;
};

/* 0 or -ENOMEM. */
int order_init(struct order *o);
void order_fini(struct order *o);

/* lanes_order_fn's work for the lanes in o->lanes. */
void order_request(struct order *o, struct mir_request *req, lanes_point end);

#endif
