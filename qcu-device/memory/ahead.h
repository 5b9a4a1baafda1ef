/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Device memory that goes ahead: pieces of it are copied while the VM still runs. When the session
 * is saved, only what has changed since is copied again; sums tell. So a piece that went ahead is
 * bytes for an address, and nothing else: whether they are used, the archive says.
 *
 * Between two qcu-devices, pieces are a stream: a struct ahead_piece, and its bytes. Who gets them
 * keeps them in a file for each session, the newest of each address. In the file a piece begins at
 * a page, with its struct, and its bytes begin at the next page. No piece lies in two of the file's
 * sections, so that each section can be registered by itself, also while the next one is still
 * written.
 */
#ifndef QCU_AHEAD_H
#define QCU_AHEAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "include/qcucmd.h"

#define AHEAD_BYTES   ((size_t)4 << 20) /* the most that a piece has */
#define AHEAD_LEAST   65536u		/* memory of fewer bytes does not go ahead */
#define AHEAD_PAGE    4096u
#define AHEAD_SECTION ((AHEAD_BYTES + AHEAD_PAGE) * (uint64_t)16)

struct ahead_piece {
	uint64_t addr;
	uint64_t sum;	  /* ahead_sum() of its bytes */
	uint32_t session; /* its queue */
	uint32_t len;	  /* 1 to AHEAD_BYTES */
};
_Static_assert(sizeof(struct ahead_piece) == 24, "a piece has no holes");

/*
 * The sum of all 8-byte words, each stirred with its position. A GPU adds them in any order
 * (mirror/sums.c). Who changes one word changes the sum. Two different contents have the same sum
 * by chance once in 2^64; who makes them on purpose spoils only memory of their own.
 */
uint64_t ahead_sum(const void *bytes, size_t len);
/* The kernel has the same numbers. */
#define AHEAD_STEP  0x9e3779b97f4a7c15u /* the n-th word, n > 0, gets n steps added first */
#define AHEAD_STIR  0xd6e8feb86659fd93u
#define AHEAD_SHIFT 32

/* ---- the stream ---- */

/* What has come ahead of one session. */
struct ahead_file {
	int fd; /* -1: nothing has come */
	uint64_t size;
	void *kept; /* a tree of struct ahead_listed: its pieces, by address */
};

/* What has come ahead, for each session. */
struct ahead_reader {
	uint64_t most; /* bytes of all files together */
	uint64_t bytes;
	unsigned int sessions; /* their numbers go up to this */
	struct ahead_file file[QCU_MAX_SESSIONS + 1];
	struct ahead_piece piece; /* that is coming */
	size_t have;		  /* bytes of it, with its struct */
	uint8_t *data;		  /* AHEAD_BYTES */
	bool bad;
	char why[128]; /* if it is bad */
};

/* False: there is no memory. */
bool ahead_begin(struct ahead_reader *r, unsigned int sessions, uint64_t most);
/* The next bytes. Nothing happens once it is bad. A piece that is cut off at the end is nothing. */
void ahead_read(struct ahead_reader *r, const void *bytes, size_t len);
/* Closes its files. */
void ahead_end(struct ahead_reader *r);

/* ---- the file ---- */

/* Where the bytes of a piece are in the file; in the tree: where the piece begins. */
struct ahead_listed {
	uint64_t addr, sum, at;
	uint32_t len;
};

/* The pieces of a file. Nothing in it is trusted. */
struct ahead_list {
	struct ahead_listed *listed; /* by address */
	size_t count;
};

/*
 * Puts a piece into the file, in the place of an older one with its address and length. The file is
 * made if it is not there. False: with errno.
 */
bool ahead_put(struct ahead_file *f, const struct ahead_piece *piece, const void *bytes);
/* How many bytes the file grows by with this piece, but for what a section leaves empty. */
uint64_t ahead_takes(const struct ahead_file *f, const struct ahead_piece *piece);
void ahead_close(struct ahead_file *f);
/* False: it is no such file, or there is no memory. Then the list is empty. */
bool ahead_list(struct ahead_list *l, int fd);
void ahead_unlist(struct ahead_list *l);
/* NULL: there is no such piece. */
const struct ahead_listed *ahead_find(const struct ahead_list *l, uint64_t addr, uint64_t len,
				      uint64_t sum);

#endif
