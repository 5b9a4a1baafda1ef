// SPDX-License-Identifier: GPL-2.0-or-later
/* The poll loop of the main process: files that are watched, each with a callback. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "qcu-device/host/vhost.h"

/*
 * The socket, the signals, the memory watch, a saved state, the three of ahead.c, the two of
 * take_over.c, a kick and a pidfd for each queue, the pidfds of spares, and the letters of all
 * mirrors.
 */
#define WATCHES_MAX (9 + 2 * (QCU_MAX_SESSIONS + 1) + PREWARM_MAX + JAIL_SEATS)

static struct watch {
	int fd;
	watch_fn *fn;
	unsigned int queue;
	short events;
	uint64_t number; /* tells this watch from an earlier one with the same fd */
} watches[WATCHES_MAX];
static unsigned int watch_count;
static uint64_t watches_ever;

void device_watch_nothing(void)
{
	watch_count = 0;
}

static void add_watch(struct device *d, struct watch w)
{
	device_unwatch(d, w.fd);
	w.number = ++watches_ever;
	if (watch_count < WATCHES_MAX)
		watches[watch_count++] = w;
}

void device_watch(struct device *d, int fd, watch_fn *fn, unsigned int queue)
{
	add_watch(d, (struct watch){.fd = fd, .fn = fn, .queue = queue, .events = POLLIN});
}

void device_watch_writable(struct device *d, int fd, watch_fn *fn)
{
	add_watch(d, (struct watch){.fd = fd, .fn = fn, .events = POLLOUT});
}

void device_unwatch(struct device *d, int fd)
{
	unsigned int i;

	(void)d;
	for (i = 0; i < watch_count; i++) {
		if (watches[i].fd == fd) {
			watches[i] = watches[--watch_count];
			return;
		}
	}
}

void device_poll(struct device *d, int ms)
{
	struct pollfd fds[WATCHES_MAX];
	uint64_t number[WATCHES_MAX];
	unsigned int n = watch_count, i, w;

	for (i = 0; i < n; i++) {
		fds[i] = (struct pollfd){.fd = watches[i].fd, .events = watches[i].events};
		number[i] = watches[i].number;
	}
	if (poll(fds, n, ms) < 0) {
		if (errno != EINTR) {
			fprintf(stderr, "qcu-device: poll: %s\n", strerror(errno));
			d->over = d->failed = true;
		}
		return;
	}
	/* A callback may end other watches and begin new ones, so look up each one again. */
	for (i = 0; i < n && !d->over; i++) {
		if (!fds[i].revents)
			continue;
		for (w = 0; w < watch_count && watches[w].number != number[i]; w++)
			;
		if (w < watch_count)
			watches[w].fn(d, watches[w].queue);
	}
}
