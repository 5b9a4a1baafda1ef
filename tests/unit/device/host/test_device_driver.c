// SPDX-License-Identifier: GPL-2.0-or-later
/* A virtqueue as the guest's driver uses it, with a fixed slot for each chain. */
#include <stdlib.h>
#include <string.h>

#include "tests/unit/device/host/test_device_driver.h"

void driver_init(struct driver_queue *q, void *memory)
{
	uint8_t *m = memory;

	memset(m, 0, DRIVER_BYTES);
	*q = (struct driver_queue){
		.desc = (void *)m,
		.avail = (void *)(m + 0x1000),
		.used = (void *)(m + 0x2000),
	};
}

unsigned int driver_add(struct driver_queue *q, const struct vring_desc *parts, unsigned int n)
{
	unsigned int slot, i, head;

	for (slot = 0; slot < DRIVER_SLOTS && q->out[slot]; slot++)
		;
	if (slot == DRIVER_SLOTS || !n || n > DRIVER_PARTS)
		abort();
	head = slot * DRIVER_PARTS;
	for (i = 0; i < n; i++) {
		q->desc[head + i] = parts[i];
		if (i + 1 < n) {
			q->desc[head + i].flags |= VRING_DESC_F_NEXT;
			q->desc[head + i].next = head + i + 1;
		}
	}
	q->out[slot] = true;
	q->avail->ring[q->added % DRIVER_NUM] = head;
	__atomic_store_n(&q->avail->idx, ++q->added, __ATOMIC_RELEASE);
	return slot;
}

int driver_take(struct driver_queue *q)
{
	int n = 0;

	while (q->taken != __atomic_load_n(&q->used->idx, __ATOMIC_ACQUIRE)) {
		const struct vring_used_elem *e = &q->used->ring[q->taken++ % DRIVER_NUM];
		unsigned int slot = e->id / DRIVER_PARTS;

		if (e->id % DRIVER_PARTS || slot >= DRIVER_SLOTS || !q->out[slot])
			return -1;
		q->out[slot] = false;
		q->len[slot] = e->len;
		n++;
	}
	return n;
}

unsigned int driver_outstanding(const struct driver_queue *q)
{
	unsigned int slot, n = 0;

	for (slot = 0; slot < DRIVER_SLOTS; slot++)
		n += q->out[slot];
	return n;
}
