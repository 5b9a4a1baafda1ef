/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The guest driver's side of a virtqueue, in memory that serves as guest RAM. */
#ifndef TEST_DEVICE_DRIVER_H
#define TEST_DEVICE_DRIVER_H

#include <linux/virtio_ring.h>
#include <stdbool.h>
#include <stdint.h>

#define DRIVER_NUM   64 /* descriptors in a queue */
#define DRIVER_PARTS 4	/* descriptors of one chain at most */
#define DRIVER_SLOTS (DRIVER_NUM / DRIVER_PARTS)
#define DRIVER_BYTES 0x3000 /* memory for one queue: three parts, one page each */

struct driver_queue {
	struct vring_desc *desc;
	struct vring_avail *avail;
	struct vring_used *used;
	uint16_t added, taken, kicked;
	bool out[DRIVER_SLOTS];	    /* owned by the device */
	uint32_t len[DRIVER_SLOTS]; /* of the reply, once the slot is back */
};

void driver_init(struct driver_queue *q, void *memory);

/*
 * Adds a chain of these descriptors (flags: VRING_DESC_F_WRITE or 0) in a free slot. Returns the
 * slot.
 */
unsigned int driver_add(struct driver_queue *q, const struct vring_desc *parts, unsigned int n);

/* Returns how many chains have come back since the last call; -1 if one came that was not out. */
int driver_take(struct driver_queue *q);

unsigned int driver_outstanding(const struct driver_queue *q);

#endif
