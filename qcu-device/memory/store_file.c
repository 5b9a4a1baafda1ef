// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A file for device memory that has left (store_file.h). The offset of a block is a multiple of the
 * largest block's size. The file has holes between blocks, and where blocks were.
 *
 * The kernel is asked not to keep the bytes in its memory as well (O_DIRECT). Where it cannot do
 * without, a write is over when the bytes are on the disk (O_DSYNC), so that its error is known
 * while the GPU still has them.
 */
#define _GNU_SOURCE /* O_DIRECT, O_TMPFILE, fallocate */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "qcu-device/backend/backend.h"
#include "qcu-device/memory/store_file.h"

#define LANES 4u /* of a sum: words in turn */

int store_file_open(const char *folder)
{
	const int flags = O_TMPFILE | O_EXCL | O_RDWR | O_CLOEXEC;
	int fd = open(folder, flags | O_DIRECT, 0600);

	if (fd < 0 && errno == EINVAL)
		fd = open(folder, flags | O_DSYNC, 0600);
	/* An older file system sees only that a folder is to be written. */
	if (fd < 0 && errno == EISDIR)
		errno = EOPNOTSUPP;
	return fd;
}

void store_file_init(struct store_file *f, int fd)
{
	*f = (struct store_file){.fd = fd};
}

void store_file_fini(struct store_file *f)
{
	free(f->free);
	f->free = NULL;
}

bool store_file_take(struct store_file *f, uint64_t *number)
{
	uint64_t *more;

	if (f->free_count) {
		*number = f->free[--f->free_count];
		return true;
	}
	/* There is room for all numbers, so that none is lost when it is given back. */
	if (f->top == f->free_room) {
		more = realloc(f->free, (f->free_room * 2 + 64) * sizeof(*more));
		if (!more)
			return false;
		f->free = more;
		f->free_room = f->free_room * 2 + 64;
	}
	*number = f->top++;
	return true;
}

void store_file_give(struct store_file *f, uint64_t number)
{
	f->free[f->free_count++] = number;
}

static off_t offset_of(uint64_t number)
{
	return (off_t)(number * BE_PIECE);
}

void store_file_drop(const struct store_file *f, uint64_t number, uint64_t bytes)
{
	/* Without holes the file keeps these bytes until the next block with this number. */
	(void)!fallocate(f->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset_of(number),
			 (off_t)bytes);
}

/* Whoever could forge bytes of the file could change the sum as well: it is for errors of disks. */
static uint64_t sum_up(const void *p, uint64_t bytes, uint64_t number)
{
	const uint64_t *word = p, odd = 0x9e3779b97f4a7c15ull;
	uint64_t lane[LANES] = {number + 1, 2, 3, 4}, sum = bytes, i;
	unsigned int k;

	for (i = 0; i + LANES <= bytes / sizeof(*word); i += LANES)
		for (k = 0; k < LANES; k++) {
			lane[k] = (lane[k] ^ word[i + k]) * odd;
			lane[k] ^= lane[k] >> 32;
		}
	for (k = 0; k < LANES; k++) {
		sum = (sum ^ lane[k]) * odd;
		sum ^= sum >> 29;
	}
	return sum;
}

bool store_file_write(const struct store_file *f, uint64_t number, const void *p, uint64_t bytes,
		      uint64_t *sum)
{
	uint64_t done = 0;
	ssize_t n;

	*sum = sum_up(p, bytes, number);
	while (done < bytes) {
		n = pwrite(f->fd, (const char *)p + done, bytes - done,
			   offset_of(number) + (off_t)done);
		if (n < 0 && errno == EINTR)
			continue;
		if (!n)
			errno = ENOSPC;
		if (n <= 0)
			return false;
		done += (uint64_t)n;
	}
	(void)posix_fadvise(f->fd, offset_of(number), (off_t)bytes, POSIX_FADV_DONTNEED);
	return true;
}

bool store_file_read(const struct store_file *f, uint64_t number, void *p, uint64_t bytes,
		     uint64_t sum)
{
	uint64_t done = 0;
	ssize_t n;

	while (done < bytes) {
		n = pread(f->fd, (char *)p + done, bytes - done, offset_of(number) + (off_t)done);
		if (n < 0 && errno == EINTR)
			continue;
		if (!n)
			errno = EIO;
		if (n <= 0)
			return false;
		done += (uint64_t)n;
	}
	errno = EBADMSG;
	return sum_up(p, bytes, number) == sum;
}
