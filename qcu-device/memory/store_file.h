/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A file on a fast disk, in which blocks of the store lie that are not in memory (store.h). It has
 * no name, and one process writes and reads it. What is read is compared with a sum that was made
 * when it was written, so a read returns the bytes that were written, or fails.
 */
#ifndef QCU_STORE_FILE_H
#define QCU_STORE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Not thread-safe, but blocks with different numbers may be read, written and dropped at one time.
 */
struct store_file {
	int fd; /* -1: there is no file */
	/* Numbers of blocks: all below `top` have been given out; these are free again. */
	uint64_t top;
	uint64_t *free;
	size_t free_count, free_room;
};

/*
 * Opens a file without a name in this folder; only who has its number can use it. Returns -1 with
 * errno: EOPNOTSUPP if the file system has no such files.
 */
int store_file_open(const char *folder);

/* fd: from store_file_open(), and empty; it remains the caller's. -1: no file. */
void store_file_init(struct store_file *f, int fd);
void store_file_fini(struct store_file *f);

/* Gives a block of the file a number. False: there is no memory to remember it. */
bool store_file_take(struct store_file *f, uint64_t *number);
/* The block is over, and store_file_drop() has been called. */
void store_file_give(struct store_file *f, uint64_t number);
/* Gives the block's bytes back to the file system. */
void store_file_drop(const struct store_file *f, uint64_t number, uint64_t bytes);

/*
 * p and bytes: multiples of 4096; at most BE_PIECE bytes. False, with errno: nothing can be relied
 * on of what the block has, or of what has been read. EBADMSG: other bytes than those written.
 */
bool store_file_write(const struct store_file *f, uint64_t number, const void *p, uint64_t bytes,
		      uint64_t *sum);
bool store_file_read(const struct store_file *f, uint64_t number, void *p, uint64_t bytes,
		     uint64_t sum);

#endif
