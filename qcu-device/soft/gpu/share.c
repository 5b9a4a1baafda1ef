/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Files in memory, through which other processes may use memory of this one. All memory of a device
 * is one such file, and so is each event that is made for several processes. A mirror gets a file
 * from another one by a letter (backend/pass.h). Other processes, which no jail keeps apart, open
 * it through /proc, by the pid and the file descriptor of this process. What a process has mapped
 * stays valid after the other one has ended.
 */
#define _GNU_SOURCE /* memfd_create */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
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

/* What this process offers to others, by the number of the file. */
struct offer {
	struct offer *next;
	int fd;
	struct be_pass_handle h;
};

static struct {
	unsigned int seat; /* 0: the process is no mirror, and there are no letters */
	struct be_pass pass;
	pthread_mutex_t lock; /* protects the list */
	struct offer *offers;
} share = {.lock = PTHREAD_MUTEX_INITIALIZER};

void soft_share_begin(const struct be_options *opt)
{
	if (!opt->seat)
		return;
	share.seat = opt->seat;
	be_pass_open(&share.pass, opt->letters, opt->seat);
}

void soft_share_end(void)
{
	if (share.seat)
		be_pass_close(&share.pass);
	share.seat = 0;
}

unsigned int soft_share_seat(void)
{
	return share.seat;
}

/* The caller holds the lock. Returns NULL if there is no memory, or no process to offer it to. */
static struct offer *offer_file(int fd)
{
	struct offer *o = share.offers;
	int copy;

	while (o && o->fd != fd)
		o = o->next;
	if (o)
		return o;
	o = malloc(sizeof(*o));
	copy = o ? fcntl(fd, F_DUPFD_CLOEXEC, 0) : -1;
	if (copy < 0 || !be_pass_offer(&share.pass, copy, &o->h)) {
		if (copy >= 0)
			close(copy);
		free(o);
		return NULL;
	}
	o->fd = fd;
	o->next = share.offers;
	share.offers = o;
	return o;
}

void soft_file_close(int fd)
{
	struct offer **at, *o;

	pthread_mutex_lock(&share.lock);
	for (at = &share.offers; *at && (*at)->fd != fd; at = &(*at)->next)
		;
	o = *at;
	if (o)
		*at = o->next;
	pthread_mutex_unlock(&share.lock);
	if (o)
		be_pass_withdraw(&share.pass, &o->h);
	free(o);
	close(fd);
}

bool soft_file_tell(int fd, struct soft_file *f)
{
	struct offer *o = NULL;
	struct stat st;

	if (fstat(fd, &st))
		return false;
	if (share.seat) {
		pthread_mutex_lock(&share.lock);
		o = offer_file(fd);
		if (o)
			f->offer = o->h;
		pthread_mutex_unlock(&share.lock);
		if (!o)
			return false;
	}
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

	if (share.seat) {
		fd = be_pass_take(&share.pass, &f->offer);
	} else {
		snprintf(path, sizeof(path), "/proc/%d/fd/%d", f->pid, f->fd);
		fd = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK);
	}
	if (fd >= 0 && (fstat(fd, &st) || st.st_dev != f->dev || st.st_ino != f->ino)) {
		close(fd);
		fd = -1;
	}
	return fd;
}
