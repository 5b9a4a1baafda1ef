/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A saved session, as it stands in a file: a head, and entries one after another. The sums find
 * what got lost or changed on the way. They are no protection against somebody who writes an
 * archive: restore.c trusts nothing in it.
 */
#ifndef QCU_ARCHIVE_H
#define QCU_ARCHIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "qcu-device/backend/backend.h"

#define ARCHIVE_MAGIC  0x6576615355435175ull
#define ARCHIVE_FORMAT 2u

enum archive_what {
	ARCHIVE_COMMAND = 1, /* a command, with what belongs to it */
	ARCHIVE_RECORDED,    /* EVENT_RECORD; `age` is known */
	ARCHIVE_PRINTED,     /* text for the program's stdout */
	ARCHIVE_ASSERTED,    /* text for its stderr */
	ARCHIVE_PLACES,	     /* where memory will be wanted */
	ARCHIVE_AHEAD,	     /* COPY_H2D; its data has gone ahead, and `age` is its sum */
	ARCHIVE_END,
};

struct archive_head {
	uint64_t magic;
	uint32_t format, wire; /* ARCHIVE_FORMAT, QCU_WIRE_VERSION */
	uint32_t devices, rsvd;
	char backend[16];
	uint64_t sum;
};

/* Its data follows, and then the addresses that are wanted. */
struct archive_entry {
	uint32_t what;
	uint32_t wanted; /* how many struct be_wanted: where the memory is that the command makes */
	uint64_t len;	 /* of the data: the message, the buffer, the segments, the text */
	uint64_t age;	 /* ns; or a sum */
	struct qCUcmd cmd; /* as it was answered */
	uint64_t sum;	   /* of all that came before, in the whole archive */
};

/* The most that an entry's data and wanted addresses can be. */
#define ARCHIVE_DATA_MAX   (1ull << 30)
#define ARCHIVE_WANTED_MAX (1u << 16)
/* Contents come in pieces of this size. */
#define ARCHIVE_PIECE ((size_t)4 << 20)

struct archive {
	int fd;
	uint64_t sum;
	bool failed;   /* the file could not be written, or ended early */
	bool wrong;    /* a sum is wrong */
	bool unsummed; /* for a fuzzer: sums are not looked at */
	void *piece; /* ARCHIVE_PIECE bytes of the caller's, in which shorter data is read; or NULL
		      */
};

bool archive_write_head(struct archive *s, struct archive_head *head);
bool archive_write(struct archive *s, struct archive_entry *e, const void *data,
		   const struct be_wanted *wanted);
bool archive_read_head(struct archive *s, struct archive_head *head);
/*
 * The caller frees *wanted, and *data with archive_free(). They are NULL if there are none, or
 * after a failure.
 */
bool archive_read(struct archive *s, struct archive_entry *e, void **data,
		  struct be_wanted **wanted);
void archive_free(struct archive *s, void *data);

/* Whole pages for pieces of contents, which can be registered. NULL: there is no memory. */
void *archive_pieces(unsigned int count);
void archive_pieces_end(void *pieces, unsigned int count);

#endif
