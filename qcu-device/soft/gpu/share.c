/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Files in memory, through which other processes may use memory of this one. All memory of a device
 * is one such file, and so is each event that is made for several processes. Another process opens
 * a file through /proc, by the pid and the file descriptor of this process. What it has mapped
 * stays valid after this process has ended.
 */
#define _GNU_SOURCE /* memfd_create */
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "qcu-device/soft/gpu/soft.h"

int soft_file_new(uint64_t size)
{
	struct rlimit most;
	int fd;

	/* Exceeding the limit in ftruncate() would end the process with SIGXFSZ. */
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

/*
 * The pid may belong to another process by now. That process then has no such file descriptor, or
 * another file there, so the device and inode numbers are compared.
 */
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
