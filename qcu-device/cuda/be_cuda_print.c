// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What kernels print. CUDA writes it to the stdout of the process that drives the GPU, a mirror,
 * at moments of its own; it belongs to the guest program. So stdout becomes a file in memory, from
 * which the mirror fetches the text. A file and not a pipe: CUDA writes inside of its own calls,
 * and a full pipe would stop them.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "qcu-device/cuda/be_cuda.h"

static int print_fd = -1;
static off_t print_at; /* how far it has been read */
static pthread_mutex_t print_lock = PTHREAD_MUTEX_INITIALIZER;

int cu_print_open(void)
{
	int fd;

	if (print_fd >= 0)
		return QCU_ERR_Success;
	fd = memfd_create("qcu-print", MFD_CLOEXEC);
	if (fd < 0)
		return QCU_ERR_OperatingSystem;
	fflush(stdout);
	if (dup2(fd, STDOUT_FILENO) < 0) {
		close(fd);
		return QCU_ERR_OperatingSystem;
	}
	print_fd = fd;
	return QCU_ERR_Success;
}

int cu_print_read(struct be *be, void *buf, size_t max, size_t *got)
{
	struct stat st;
	ssize_t n;
	int ret = QCU_ERR_Success;

	(void)be;
	*got = 0;
	if (print_fd < 0)
		return QCU_ERR_Success;
	fflush(stdout);
	pthread_mutex_lock(&print_lock);
	if (fstat(print_fd, &st)) {
		ret = QCU_ERR_OperatingSystem;
		goto out;
	}
	if (st.st_size <= print_at)
		goto out;
	if (!buf) {
		*got = st.st_size - print_at;
		goto out;
	}
	n = pread(print_fd, buf, max, print_at);
	if (n < 0) {
		ret = QCU_ERR_OperatingSystem;
		goto out;
	}
	/* What has been read gives its memory back; the offset of the writer just goes on. */
	fallocate(print_fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, print_at, n);
	print_at += n;
	*got = n;
out:
	pthread_mutex_unlock(&print_lock);
	return ret;
}
