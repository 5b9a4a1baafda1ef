/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The staging memory of a mirror: a few buffers registered with the backend. A CPU carries guest
 * memory through them if it is too scattered for copies of its own. A buffer (slot) is made when it
 * is first needed, and lives as long as the mirror.
 *
 * The thread that takes a slot owns it. It puts work that uses the slot into a stream, and marks
 * the end of this work with staging_mark(). After staging_leave() the slot is free as soon as the
 * stream has passed the mark, so no thread has to wait for that.
 */
#ifndef QCU_STAGING_H
#define QCU_STAGING_H

#include <pthread.h>

#include "qcu-device/backend/backend.h"
#include "qcu-device/base/carriers.h"

/*
 * Measured on an H200 with PCIe 5, runs of 4 KiB, GB/s up and down, with 4 slots:
 *
 *   bytes in a slot      256 KiB         512 KiB         1 MiB
 *   copy of 64 MiB   14.6 and 15.2   15.7 and 16.4   14.7 and 16.5
 *   copy of 1 MiB    17.2 and 20.3   16.3 and 19.5   14.7 and 16.9
 *
 * With slots of 256 KiB, a copy of 1 MiB comes down at 18.3 with 2 slots and at 20.3 with 4. 8
 * slots are no faster than 4.
 */
#define STAGE_BYTES (512u << 10)
#define STAGE_DEPTH 4u /* slots that one thread uses for one copy */
/*
 * The slots of a mirror. If all helping threads are stuck behind a stream that waits, there are
 * still enough slots for four copies. A guest process can pin 22 MiB in this way; a slot is made
 * when it is needed.
 */
#define STAGE_SLOTS ((CARRIERS_MAX - 1 + 4) * STAGE_DEPTH)

enum stage_state {
	STAGE_UNMADE, /* it has no memory yet */
	STAGE_FREE,
	STAGE_OWNED,
	STAGE_LEFT, /* it is free when the stream has passed the mark */
};

struct stage_slot {
	uint8_t *buf;
	struct be_event *mark; /* NULL: there is none on `device` yet */
	unsigned int device;
	enum stage_state state; /* under staging->lock */
};

struct staging {
	const struct be_ops *ops;
	struct be *be;
	pthread_mutex_t lock;
	struct stage_slot slots[STAGE_SLOTS];
};

void staging_init(struct staging *st, const struct be_ops *ops, struct be *be);
/* No slot is owned. Waits for the marks of the slots that were left. */
void staging_fini(struct staging *st);
/* The device is about to be reset: destroys its marks. No slot is owned. */
void staging_reset(struct staging *st, unsigned int device);

/*
 * Takes a slot for work on a device. *slot is NULL if all slots are in use or no more memory can be
 * registered. Then the caller must do without a slot and must not wait, because what holds up the
 * others may depend on the caller. Returns a value of enum qcu_error: an error that the backend had
 * to report, or success.
 */
int staging_take(struct staging *st, unsigned int device, struct stage_slot **slot);
/* These two return the backend's result. */
int staging_mark(struct staging *st, struct stage_slot *slot, struct be_stream *s);
int staging_wait(struct staging *st, struct stage_slot *slot);
/* The slot's work has ended, or there was none. */
void staging_give(struct staging *st, struct stage_slot *slot);
/* The slot's work may still run, up to the mark. */
void staging_leave(struct staging *st, struct stage_slot *slot);

#endif
