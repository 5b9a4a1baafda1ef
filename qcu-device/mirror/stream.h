/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A saved session, as it stands in a file: a head, and entries one after another. The sums find
 * what got lost or changed on the way. They are no protection against somebody who writes a stream:
 * restore.c trusts nothing in it.
 */
#ifndef QCU_STREAM_H
#define QCU_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "qcu-device/backend/backend.h"

#define STREAM_MAGIC  0x6576615355435175ull
#define STREAM_FORMAT 1u

enum stream_what {
	STREAM_COMMAND = 1, /* a command, with what belongs to it */
	STREAM_RECORDED,    /* EVENT_RECORD; `age` is known */
	STREAM_PRINTED,	    /* text for the program's stdout */
	STREAM_ASSERTED,    /* text for its stderr */
	STREAM_END,
};

struct stream_head {
	uint64_t magic;
	uint32_t format, wire; /* STREAM_FORMAT, QCU_WIRE_VERSION */
	uint32_t devices, rsvd;
	char backend[16];
	uint64_t sum;
};

/* Its data follows, and then its places. */
struct stream_entry {
	uint32_t what;
	uint32_t places; /* how many struct be_place: where the memory is that the command makes */
	uint64_t len;	 /* of the data: the message, the buffer, the segments, the text */
	uint64_t age;	 /* ns */
	struct qCUcmd cmd; /* as it was answered */
	uint64_t sum;	   /* of all that came before, in the whole stream */
};

/* The most that an entry's data and places can be. */
#define STREAM_DATA_MAX	  (1ull << 30)
#define STREAM_PLACES_MAX (1u << 16)
/* Contents come in pieces of this size. */
#define STREAM_PIECE ((size_t)1 << 20)

struct stream {
	int fd;
	uint64_t sum;
	bool failed;   /* the file could not be written, or ended early */
	bool wrong;    /* a sum is wrong */
	bool unsummed; /* for a fuzzer: sums are not looked at */
};

bool stream_write_head(struct stream *s, struct stream_head *head);
bool stream_write(struct stream *s, struct stream_entry *e, const void *data,
		  const struct be_place *places);
bool stream_read_head(struct stream *s, struct stream_head *head);
/* The caller frees *data and *places, which are NULL if there are none, or after a failure. */
bool stream_read(struct stream *s, struct stream_entry *e, void **data, struct be_place **places);

#endif
