/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A saved session, as it stands in a file: a head, and entries one after another. The sums find
 * what got lost or changed on the way. They are no protection against somebody who writes a
 * snapshot: restore.c trusts nothing in it.
 */
#ifndef QCU_SNAPSHOT_H
#define QCU_SNAPSHOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "qcu-device/backend/backend.h"

#define SNAPSHOT_MAGIC	0x6576615355435175ull
#define SNAPSHOT_FORMAT 1u

enum snapshot_what {
	SNAPSHOT_COMMAND = 1, /* a command, with what belongs to it */
	SNAPSHOT_RECORDED,    /* EVENT_RECORD; `age` is known */
	SNAPSHOT_PRINTED,     /* text for the program's stdout */
	SNAPSHOT_ASSERTED,    /* text for its stderr */
	SNAPSHOT_END,
};

struct snapshot_head {
	uint64_t magic;
	uint32_t format, wire; /* SNAPSHOT_FORMAT, QCU_WIRE_VERSION */
	uint32_t devices, rsvd;
	char backend[16];
	uint64_t sum;
};

/* Its data follows, and then its places. */
struct snapshot_entry {
	uint32_t what;
	uint32_t places; /* how many struct be_place: where the memory is that the command makes */
	uint64_t len;	 /* of the data: the message, the buffer, the segments, the text */
	uint64_t age;	 /* ns */
	struct qCUcmd cmd; /* as it was answered */
	uint64_t sum;	   /* of all that came before, in the whole snapshot */
};

/* The most that an entry's data and places can be. */
#define SNAPSHOT_DATA_MAX   (1ull << 30)
#define SNAPSHOT_PLACES_MAX (1u << 16)
/* Contents come in pieces of this size. */
#define SNAPSHOT_PIECE ((size_t)1 << 20)

struct snapshot {
	int fd;
	uint64_t sum;
	bool failed;   /* the file could not be written, or ended early */
	bool wrong;    /* a sum is wrong */
	bool unsummed; /* for a fuzzer: sums are not looked at */
};

bool snapshot_write_head(struct snapshot *s, struct snapshot_head *head);
bool snapshot_write(struct snapshot *s, struct snapshot_entry *e, const void *data,
		    const struct be_place *places);
bool snapshot_read_head(struct snapshot *s, struct snapshot_head *head);
/* The caller frees *data and *places, which are NULL if there are none, or after a failure. */
bool snapshot_read(struct snapshot *s, struct snapshot_entry *e, void **data,
		   struct be_place **places);

#endif
