/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What other processes may use of this one's: files in memory. All device memory lies in one, and
 * so does each event that is made for it. Another process opens them by this one's number, and
 * keeps what it has mapped when this one is long gone.
 */
#define _GNU_SOURCE /* memfd_create */
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "qcu-device/soft/soft.h"

int soft_file_new(uint64_t size)
{
	struct rlimit most;
	int fd;

	/* Trying to go beyond the limit would end the process. */
	if (getrlimit(RLIMIT_FSIZE, &most) || most.rlim_cur < size)
		return -1;
	fd = memfd_create("qcu-soft", MFD_CLOEXEC);
	if (fd >= 0 && ftruncate(fd, (off_t)size)) {
		close(fd);
		fd = -1;
	}
	return fd;
}

bool soft_file_tell(int fd, struct soft_file *f)
{
	struct stat st;

	if (fstat(fd, &st))
		return false;
	f->pid = getpid();
	f->fd = fd;
	f->dev = st.st_dev;
	f->ino = st.st_ino;
	return true;
}

/* The number may belong to another process by now: then it has another file there, or none. */
int soft_file_open(const struct soft_file *f)
{
	char path[64];
	struct stat st;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", f->pid, f->fd);
	fd = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK);
	if (fd >= 0 && (fstat(fd, &st) || st.st_dev != f->dev || st.st_ino != f->ino)) {
		close(fd);
		fd = -1;
	}
	return fd;
}
