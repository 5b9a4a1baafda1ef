/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The staging memory of a mirror: a few buffers registered with the backend, through which a CPU
 * carries guest memory that is too scattered for copies of its own. A buffer (slot) is made when it
 * is first needed and lives as long as the mirror.
 *
 * Whoever takes a slot owns it. Work that uses it is put into a stream and marked with
 * staging_mark(); after staging_leave() the slot is free as soon as the stream has passed the mark,
 * so nobody has to stay and wait.
 */
#ifndef QCU_STAGING_H
#define QCU_STAGING_H

#include <pthread.h>

#include "qcu-device/backend.h"
#include "qcu-device/carriers.h"

/*
 * Measured on an H200 with PCIe 5, runs of 4 KiB, GB/s up and down, with 4 slots. A copy of 64 MiB:
 * 14.6 and 15.2 with 256 KiB each, 15.7 and 16.4 with 512 KiB, 14.7 and 16.5 with 1 MiB. One of
 * 1 MiB: 17.2 and 20.3, 16.3 and 19.5, 14.7 and 16.9. With 2 slots of 256 KiB a copy of 1 MiB comes
 * down at 18.3 where 4 make it 20.3; 8 slots are no faster than 4.
 */
#define STAGE_BYTES (512u << 10)
#define STAGE_DEPTH 4u /* slots of one thread at one copy */
/*
 * Of a mirror: all threads that help, stuck behind a stream that waits, leave enough for four
 * copies besides. What a guest process can pin in this way is 22 MiB; a slot is made when it is
 * needed.
 */
#define STAGE_SLOTS ((CARRIERS_MAX - 1 + 4) * STAGE_DEPTH)

enum stage_state {
	STAGE_UNMADE, /* there is no memory yet */
	STAGE_FREE,
	STAGE_OWNED,
	STAGE_LEFT, /* free when the mark has been passed */
};

struct stage_slot {
	uint8_t *buf;
	struct be_event *mark; /* NULL: none on `device` yet */
	unsigned int device;
	enum stage_state state; /* staging->lock */
};

struct staging {
	const struct be_ops *ops;
	struct be *be;
	pthread_mutex_t lock;
	struct stage_slot slots[STAGE_SLOTS];
};

void staging_init(struct staging *st, const struct be_ops *ops, struct be *be);
/* No slot is owned. Waits for the marks of those that were left. */
void staging_fini(struct staging *st);
/* The device is about to be reset: its marks go. No slot is owned. */
void staging_reset(struct staging *st, unsigned int device);

/*
 * A slot for work on a device. *slot is NULL when all are in use or no more memory can be
 * registered: do without, do not wait, for what holds the others up may depend on the caller.
 * Otherwise than that, a value of enum qcu_error that the backend had to tell.
 */
int staging_take(struct staging *st, unsigned int device, struct stage_slot **slot);
/* These two return what the backend says. */
int staging_mark(struct staging *st, struct stage_slot *slot, struct be_stream *s);
int staging_wait(struct staging *st, struct stage_slot *slot);
/* The slot's work is done, or there was none. */
void staging_give(struct staging *st, struct stage_slot *slot);
/* Its work may still run up to the mark. */
void staging_leave(struct staging *st, struct stage_slot *slot);

#endif
