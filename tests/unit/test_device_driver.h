/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The guest driver's side of a virtqueue, in memory that plays guest RAM. */
#ifndef TEST_DEVICE_DRIVER_H
#define TEST_DEVICE_DRIVER_H

#include <linux/virtio_ring.h>
#include <stdbool.h>
#include <stdint.h>

#define DRIVER_NUM   64 /* descriptors in a queue */
#define DRIVER_PARTS 4	/* descriptors of one chain, at most */
#define DRIVER_SLOTS (DRIVER_NUM / DRIVER_PARTS)
#define DRIVER_BYTES 0x3000 /* of memory for one queue: three parts on a page each */

struct driver_queue {
	struct vring_desc *desc;
	struct vring_avail *avail;
	struct vring_used *used;
	uint16_t added, taken, kicked;
	bool out[DRIVER_SLOTS];	    /* with the device */
	uint32_t len[DRIVER_SLOTS]; /* of the reply, once it is back */
};

void driver_init(struct driver_queue *q, void *memory);

/* A chain of these descriptors (flags: VRING_DESC_F_WRITE or 0) in a free slot; which one. */
unsigned int driver_add(struct driver_queue *q, const struct vring_desc *parts, unsigned int n);

/* How many chains are back since the last call; -1 if one came that was not out. */
int driver_take(struct driver_queue *q);

unsigned int driver_outstanding(const struct driver_queue *q);

#endif
