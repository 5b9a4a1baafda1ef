/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The files that the VM's memory lies in. QEMU sends one with each region. libvhost-user maps the
 * file and closes it, but a mirror is a program of its own and has to map it, too.
 */
#ifndef QCU_RAMFILES_H
#define QCU_RAMFILES_H

#include <libvhost-user.h>

#include "qcu-device/memory/guestmem.h"

struct ramfile {
	uint64_t gpa, size, offset; /* `offset` is in the file */
	int fd;
};

struct ramfiles {
	unsigned int count;
	struct ramfile file[GUESTMEM_REGIONS];
};

/*
 * Notes a message about memory, before the library takes the files out of it. Returns 0 or -errno.
 */
int ramfiles_note(struct ramfiles *f, const VhostUserMsg *msg);
void ramfiles_close(struct ramfiles *f);

#endif
