// SPDX-License-Identifier: GPL-2.0-or-later
/* Implements ramfiles.h. libvhost-user and guestmem.c check that the regions make sense. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "qcu-device/front/ramfiles.h"

void ramfiles_close(struct ramfiles *f)
{
	while (f->count)
		close(f->file[--f->count].fd);
}

static int add_ram_file(struct ramfiles *f, const VhostUserMemoryRegion *region, int fd)
{
	int copy;

	if (f->count == GUESTMEM_REGIONS)
		return -ENOSPC;
	copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (copy < 0)
		return -errno;
	f->file[f->count++] = (struct ramfile){
		.gpa = region->guest_phys_addr,
		.size = region->memory_size,
		.offset = region->mmap_offset,
		.fd = copy,
	};
	return 0;
}

static void drop_ram_file(struct ramfiles *f, const VhostUserMemoryRegion *region)
{
	unsigned int i;

	for (i = 0; i < f->count; i++) {
		if (f->file[i].gpa != region->guest_phys_addr ||
		    f->file[i].size != region->memory_size)
			continue;
		close(f->file[i].fd);
		f->file[i] = f->file[--f->count];
		return;
	}
}

int ramfiles_note(struct ramfiles *f, const VhostUserMsg *msg)
{
	VhostUserMemory table;
	VhostUserMemoryRegion region;
	unsigned int i;
	int rc = 0;

	switch (msg->request) {
	case VHOST_USER_SET_MEM_TABLE:
		memcpy(&table, &msg->payload.memory, sizeof(table));
		ramfiles_close(f);
		if (table.nregions > VHOST_MEMORY_BASELINE_NREGIONS ||
		    msg->fd_num != (int)table.nregions)
			return -EINVAL;
		for (i = 0; i < table.nregions && !rc; i++)
			rc = add_ram_file(f, &table.regions[i], msg->fds[i]);
		return rc;
	case VHOST_USER_ADD_MEM_REG:
		memcpy(&region, &msg->payload.memreg.region, sizeof(region));
		return msg->fd_num == 1 ? add_ram_file(f, &region, msg->fds[0]) : -EINVAL;
	case VHOST_USER_REM_MEM_REG:
		memcpy(&region, &msg->payload.memreg.region, sizeof(region));
		drop_ram_file(f, &region);
		return 0;
	}
	return 0;
}
