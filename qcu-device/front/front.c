// SPDX-License-Identifier: GPL-2.0-or-later
/* Implements front.h. The library checks numbers of queues, and that regions do not overlap. */
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>

#include "qcu-device/front/front.h"

/* What the library does not know. */
enum { SET_DEVICE_STATE_FD = 42, CHECK_DEVICE_STATE = 43 };

/*
 * How many files QEMU sends with a message at most; -1: it sends no such message to this device. Of
 * the others that the library serves, one gives away a userfaultfd of this process.
 */
static int most_files(unsigned int request)
{
	switch (request) {
	case VHOST_USER_NONE:
	case VHOST_USER_GET_FEATURES:
	case VHOST_USER_SET_FEATURES:
	case VHOST_USER_SET_OWNER:
	case VHOST_USER_RESET_OWNER:
	case VHOST_USER_SET_VRING_NUM:
	case VHOST_USER_SET_VRING_ADDR:
	case VHOST_USER_SET_VRING_BASE:
	case VHOST_USER_GET_VRING_BASE:
	case VHOST_USER_GET_PROTOCOL_FEATURES:
	case VHOST_USER_SET_PROTOCOL_FEATURES:
	case VHOST_USER_GET_QUEUE_NUM:
	case VHOST_USER_SET_VRING_ENABLE:
	case VHOST_USER_GET_CONFIG:
	case VHOST_USER_SET_CONFIG:
	case VHOST_USER_GET_MAX_MEM_SLOTS:
	case CHECK_DEVICE_STATE:
		return 0;
	case VHOST_USER_SET_LOG_BASE:
	case VHOST_USER_SET_VRING_KICK:
	case VHOST_USER_SET_VRING_CALL:
	case VHOST_USER_SET_VRING_ERR:
	case VHOST_USER_ADD_MEM_REG:
	case VHOST_USER_REM_MEM_REG:
		return 1;
	case VHOST_USER_SET_MEM_TABLE:
	case SET_DEVICE_STATE_FD: /* counts its files itself */
		return VHOST_MEMORY_BASELINE_NREGIONS;
	}
	return -1;
}

/* A file that gets shorter later ends this process: who shortens it ends only his own VM. */
static bool file_has(int fd, uint64_t offset, uint64_t size)
{
	struct stat s;

	if (!size || size > INT64_MAX || offset > INT64_MAX - size || fstat(fd, &s))
		return false;
	/* Memory may be a character device (DAX), which has no size. */
	return S_ISCHR(s.st_mode) || (S_ISREG(s.st_mode) && offset + size <= (uint64_t)s.st_size);
}

static const char *refuse_region(const VhostUserMemoryRegion *r, int fd)
{
	if (!r->memory_size || r->memory_size - 1 > UINT64_MAX - r->guest_phys_addr ||
	    r->memory_size - 1 > UINT64_MAX - r->userspace_addr)
		return "a region of memory wraps, or is empty";
	if (!file_has(fd, r->mmap_offset, r->memory_size))
		return "the file of a region of memory is shorter than it";
	return NULL;
}

static const char *refuse_memory(const VhostUserMsg *msg)
{
	static const char one_each[] = "not one file for each region of memory";
	const char *why = NULL;
	VhostUserMemory table;
	VhostUserMemoryRegion region;
	unsigned int i;

	if (msg->request == VHOST_USER_ADD_MEM_REG) {
		memcpy(&region, &msg->payload.memreg.region, sizeof(region));
		return msg->fd_num == 1 ? refuse_region(&region, msg->fds[0]) : one_each;
	}
	memcpy(&table, &msg->payload.memory, sizeof(table));
	if (table.nregions > VHOST_MEMORY_BASELINE_NREGIONS || msg->fd_num != (int)table.nregions)
		return one_each;
	for (i = 0; i < table.nregions && !why; i++)
		why = refuse_region(&table.regions[i], msg->fds[i]);
	return why;
}

const char *front_refuses(const VhostUserMsg *msg)
{
	if (msg->fd_num > most_files(msg->request))
		return "this device has no such message, or not with so many files";
	switch (msg->request) {
	case VHOST_USER_SET_MEM_TABLE:
	case VHOST_USER_ADD_MEM_REG:
		return refuse_memory(msg);
	case VHOST_USER_SET_LOG_BASE:
		if (msg->fd_num != 1 || !file_has(msg->fds[0], msg->payload.log.mmap_offset,
						  msg->payload.log.mmap_size))
			return "the file of the log of written pages is shorter than it";
	}
	return NULL;
}
