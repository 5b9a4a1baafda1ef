/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * An event that several processes share is a page that all of them map. Each record of the event
 * takes a number, and marks itself as done in the slot of that number. To wait for the event is to
 * wait for the number that is the last one at that moment.
 *
 * Numbers share slots. If a slot shows a later record as done, the earlier one counts as done, too.
 * This relies on an event having fewer than SLOTS unfinished records at any time.
 */
#define _GNU_SOURCE /* F_OFD_SETLK */
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "qcu-device/soft/gpu/soft.h"

#define SLOTS 255u
/* How long it may take to notice that another process has died, or that this instance closes. */
#define POLL_NS 50000000

struct cell_slot {
	_Atomic uint64_t done; /* the highest number of this slot that is done */
	/*
	 * The process that began the latest record here: its pid, or for a mirror, whose pid means
	 * nothing to others, its seat as a negative number.
	 */
	_Atomic int owner;
};

struct page {
	_Atomic uint64_t last;	/* the last number given out */
	_Atomic uint32_t moved; /* a futex; counts the records that end */
	struct cell_slot slot[SLOTS];
};

struct soft_cell {
	_Atomic unsigned int refs;
	int fd; /* -1: another process made the page */
	/*
	 * In a mirror, the file once more, with locks that end with the process: a mirror that has
	 * begun a record has locked the byte of its seat.
	 */
	int lock;
	_Atomic bool locked;
	struct page *page;
};

static struct soft_cell *map_cell_page(int fd)
{
	struct soft_cell *c = calloc(1, sizeof(*c));
	char path[32];

	if (!c)
		return NULL;
	c->page = mmap(NULL, sizeof(*c->page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (c->page == MAP_FAILED) {
		free(c);
		return NULL;
	}
	atomic_init(&c->refs, 1);
	c->fd = c->lock = -1;
	if (soft_share_seat()) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		c->lock = open(path, O_RDWR | O_CLOEXEC);
	}
	return c;
}

struct soft_cell *soft_cell_new(void)
{
	int fd = soft_file_new(sizeof(struct page));
	struct soft_cell *c = fd < 0 ? NULL : map_cell_page(fd);

	if (c)
		c->fd = fd;
	else if (fd >= 0)
		close(fd);
	return c;
}

struct soft_cell *soft_cell_open(const struct soft_file *f)
{
	struct soft_cell *c = NULL;
	int fd;

	if (f->len != sizeof(struct page))
		return NULL;
	fd = soft_file_open(f);
	if (fd >= 0) {
		c = map_cell_page(fd);
		close(fd);
	}
	return c;
}

bool soft_cell_tell(const struct soft_cell *c, struct soft_file *f)
{
	f->offset = 0;
	f->len = sizeof(*c->page);
	return c->fd >= 0 && soft_file_tell(c->fd, f);
}

struct soft_cell *soft_cell_get(struct soft_cell *c)
{
	atomic_fetch_add(&c->refs, 1);
	return c;
}

void soft_cell_put(struct soft_cell *c)
{
	if (!c || atomic_fetch_sub(&c->refs, 1) != 1)
		return;
	munmap(c->page, sizeof(*c->page));
	if (c->fd >= 0)
		soft_file_close(c->fd);
	if (c->lock >= 0)
		close(c->lock);
	free(c);
}

static struct cell_slot *slot_of_record(const struct soft_cell *c, uint64_t n)
{
	return &c->page->slot[n % SLOTS];
}

uint64_t soft_cell_last(const struct soft_cell *c)
{
	return atomic_load(&c->page->last);
}

/* The lock of a mirror on the byte of its seat. */
static struct flock seat_lock(int seat)
{
	return (struct flock){.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = seat, .l_len = 1};
}

uint64_t soft_cell_begin(struct soft_cell *c)
{
	uint64_t n = atomic_fetch_add(&c->page->last, 1) + 1;
	int seat = (int)soft_share_seat();
	struct flock mine = seat_lock(seat);

	if (seat && !atomic_exchange(&c->locked, true))
		fcntl(c->lock, F_OFD_SETLK, &mine);
	atomic_store(&slot_of_record(c, n)->owner, seat ? -seat : getpid());
	return n;
}

void soft_cell_end(struct soft_cell *c, uint64_t n)
{
	struct cell_slot *s = slot_of_record(c, n);
	uint64_t done = atomic_load(&s->done);

	while (done < n && !atomic_compare_exchange_weak(&s->done, &done, n))
		;
	atomic_fetch_add(&c->page->moved, 1);
	syscall(SYS_futex, &c->page->moved, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

/* A mirror looks for the other one's lock, other processes in /proc. */
static bool is_gone(const struct soft_cell *c, int owner)
{
	struct flock its = seat_lock(-owner);
	char path[32];

	if (owner < 0)
		return -owner != (int)soft_share_seat() && !fcntl(c->lock, F_OFD_GETLK, &its) &&
		       its.l_type == F_UNLCK;
	snprintf(path, sizeof(path), "/proc/%d", owner);
	return access(path, F_OK) && errno == ENOENT;
}

/*
 * If a process died before its record ended, the record counts as done: nothing else would ever end
 * it.
 */
bool soft_cell_done(const struct soft_cell *c, uint64_t n)
{
	const struct cell_slot *s = slot_of_record(c, n);
	int owner = atomic_load(&s->owner);

	if (!n || atomic_load(&s->done) >= n)
		return true;
	return owner && is_gone(c, owner);
}

void soft_cell_wait(const struct soft_cell *c, uint64_t n, const int *cancel)
{
	const struct timespec poll = {.tv_nsec = POLL_NS};

	while (!__atomic_load_n(cancel, __ATOMIC_RELAXED)) {
		uint32_t moved = atomic_load(&c->page->moved);

		if (soft_cell_done(c, n))
			return;
		syscall(SYS_futex, &c->page->moved, FUTEX_WAIT, moved, &poll, NULL, 0);
	}
}
