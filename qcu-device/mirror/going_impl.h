/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What going.c has, for save.c and mirror.c. */
#ifndef QCU_GOING_IMPL_H
#define QCU_GOING_IMPL_H

#include "qcu-device/commands/call.h"
#include "qcu-device/memory/ahead.h"
#include "qcu-device/mirror/sums.h"

/* Of this allocation, bytes `at` to `end` go ahead. */
struct going_run {
	struct be_wanted of;
	uint64_t at, end;
};

struct going {
	/* What goes ahead; `at` of the next run moves. */
	struct going_run *run;
	size_t runs, next;
	uint8_t *buffer;
	struct be_stream *stream[MIR_DEVICES_MAX];
	struct be_event *event[MIR_DEVICES_MAX];
	struct sums *sums;
	/* What has gone, by address, for mir_save(). */
	struct ahead_piece *sent;
	size_t sent_count;
	uint64_t sent_bytes;
	/* What has come, for mir_restore(). */
	struct ahead_list came;
	int came_fd; /* valid if there are sections */
	uint64_t came_size;
	struct came_section {
		uint8_t *bytes; /* NULL: not mapped */
		size_t len;
		bool registered;
	} * section;
	size_t sections;
};

/*
 * The session's memory by address, but for allocations of fewer bytes, for the caller to free.
 * NULL: there is no memory.
 */
struct be_wanted *going_list(struct mirror *m, uint64_t least, size_t *count);
/*
 * For mir_save(): sums of memory of this device. NULL: there are none, or nothing has gone ahead.
 * The first call takes long. Nothing runs on the GPU.
 */
const struct sums *going_sums(struct mirror *m, unsigned int device);
/* Has this gone ahead? There are sums. */
bool going_has(const struct going *g, uint64_t addr, uint64_t len, uint64_t sum);
/* For mir_restore(): where the bytes are that have come ahead. False: they have not. */
bool going_came(struct mirror *m, const struct ahead_piece *piece, struct mir_restore *bytes);
/* Before the backend is closed. */
void going_free(struct mirror *m);

#endif
