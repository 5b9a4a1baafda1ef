/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a qcu-device tells the one that continues its VM: after savevm, a migration, or a restart.
 * Rings and features are QEMU's to save. What is left is what the guest has read in the config
 * space, which must not change under its driver, and the open sessions.
 *
 * The bytes come from QEMU, which has read them from a file or from the network. So each value has
 * bounds here, and nothing is used before all of them have been checked.
 */
#ifndef QCU_STATE_H
#define QCU_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define STATE_MAGIC   0x65746174732d7571ull /* "qu-state" */
#define STATE_VERSION 1
#define STATE_MAX     4096 /* bytes that are read at all */

struct state {
	uint64_t magic;
	uint32_t version;      /* STATE_VERSION */
	uint32_t bytes;	       /* of all of it */
	uint32_t wire_version; /* QCU_WIRE_VERSION of the device that wrote it */
	uint32_t sessions;     /* how many the device can have */
	uint64_t window_base;
	uint64_t window_size;
	uint32_t open; /* sessions that follow; none can be restored yet */
	uint32_t rsvd;
};
_Static_assert(sizeof(struct state) == 48, "the state has no holes");

/* The state of a device that can have this many sessions and has none. */
void state_make(struct state *s, unsigned int sessions);
/* False: a device with this many sessions cannot go on from these bytes, and `why` says it. */
bool state_fits(const void *bytes, size_t len, unsigned int sessions, char *why, size_t size);

#endif
