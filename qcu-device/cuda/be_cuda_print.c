// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What kernels print, and the text of their failed assertions. CUDA writes it to stdout and stderr
 * of the process that drives the GPU, a mirror, at moments of its own; it belongs to the guest
 * program. So stdout becomes a file in memory, from which the mirror fetches the text. A file and
 * not a pipe: CUDA writes inside of its own calls, and a full pipe would stop them.
 *
 * On stderr the device says things of its own, which must come out at once, even if the process
 * ends the moment after. So the stream `stderr` tells lines apart as they are written; what is
 * written past it, to file descriptor 2, is told apart when the mirror looks for text.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "qcu-device/cuda/be_cuda.h"

#define LINE_MAX_BYTES 8192

struct capture {
	int fd;
	off_t at; /* how far it has been read */
};

static struct capture printed = {.fd = -1}; /* stdout */
static struct capture raw = {.fd = -1};	    /* file descriptor 2 */
static struct capture failed = {.fd = -1};  /* the assertions among what came to stderr */
static int real_stderr = -1;
static pthread_mutex_t print_lock = PTHREAD_MUTEX_INITIALIZER;

static void write_all(int fd, const char *text, size_t len)
{
	while (len) {
		ssize_t n = write(fd, text, len);

		if (n <= 0)
			return;
		text += n;
		len -= (size_t)n;
	}
}

/* FILE:LINE: FUNCTION: block: [x,y,z], thread: [x,y,z] Assertion `EXPRESSION` failed. */
static bool is_assertion(const char *line, size_t len)
{
	return memmem(line, len, ": block: [", 10) && memmem(line, len, "], thread: [", 12) &&
	       memmem(line, len, "] Assertion `", 13);
}

/* Sends each line where it belongs; returns how many bytes made up whole lines. */
static size_t sort_lines(const char *text, size_t len, bool all)
{
	size_t done = 0;

	while (done < len) {
		const char *end = memchr(text + done, '\n', len - done);
		size_t n = end ? (size_t)(end - text) + 1 - done : len - done;

		if (!end && !all)
			break;
		write_all(is_assertion(text + done, n) ? failed.fd : real_stderr, text + done, n);
		done += n;
	}
	return done;
}

static ssize_t stderr_write(void *unused, const char *text, size_t len)
{
	(void)unused;
	sort_lines(text, len, true);
	return (ssize_t)len;
}

/* Makes a file in memory, and a file descriptor of the process stand for it. */
static bool divert(struct capture *c, int fd)
{
	c->fd = memfd_create("qcu-print", MFD_CLOEXEC);
	return c->fd >= 0 && (fd < 0 || dup2(c->fd, fd) >= 0);
}

static int divert_stderr(void)
{
	static const cookie_io_functions_t functions = {.write = stderr_write};
	FILE *stream;

	real_stderr = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
	if (real_stderr < 0)
		return QCU_ERR_OperatingSystem;
	stream = fopencookie(NULL, "w", functions);
	if (!stream || setvbuf(stream, NULL, _IOLBF, LINE_MAX_BYTES))
		return QCU_ERR_OperatingSystem;
	fflush(stderr);
	if (!divert(&failed, -1) || !divert(&raw, STDERR_FILENO))
		return QCU_ERR_OperatingSystem;
	stderr = stream;
	return QCU_ERR_Success;
}

int cu_print_open(void)
{
	if (printed.fd >= 0)
		return QCU_ERR_Success;
	fflush(stdout);
	if (!divert(&printed, STDOUT_FILENO))
		return QCU_ERR_OperatingSystem;
	return divert_stderr();
}

/* Under the lock. buf NULL: only how much there is. */
static int take(struct capture *c, void *buf, size_t max, size_t *got)
{
	struct stat st;
	ssize_t n;

	if (fstat(c->fd, &st))
		return QCU_ERR_OperatingSystem;
	if (st.st_size <= c->at)
		return QCU_ERR_Success;
	if (!buf) {
		*got = st.st_size - c->at;
		return QCU_ERR_Success;
	}
	n = pread(c->fd, buf, max, c->at);
	if (n < 0)
		return QCU_ERR_OperatingSystem;
	*got = n;
	return QCU_ERR_Success;
}

/* What has been read gives its memory back; the offset of the writer just goes on. */
static void drop(struct capture *c, size_t n)
{
	fallocate(c->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, c->at, n);
	c->at += n;
}

static int read_capture(struct capture *c, void *buf, size_t max, size_t *got)
{
	int ret = take(c, buf, max, got);

	if (!ret && buf)
		drop(c, *got);
	return ret;
}

int cu_print_read(struct be *be, void *buf, size_t max, size_t *got)
{
	int ret;

	(void)be;
	*got = 0;
	if (printed.fd < 0)
		return QCU_ERR_Success;
	fflush(stdout);
	pthread_mutex_lock(&print_lock);
	ret = read_capture(&printed, buf, max, got);
	pthread_mutex_unlock(&print_lock);
	return ret;
}

/* A line that is not yet whole waits, unless it is longer than any should be. */
static int sort_raw(void)
{
	char text[LINE_MAX_BYTES];
	size_t got, n;
	int ret;

	for (;;) {
		got = 0;
		ret = take(&raw, text, sizeof(text), &got);
		if (ret || !got)
			return ret;
		n = sort_lines(text, got, got == sizeof(text));
		if (!n)
			return QCU_ERR_Success;
		drop(&raw, n);
	}
}

int cu_assert_read(struct be *be, void *buf, size_t max, size_t *got)
{
	int ret;

	(void)be;
	*got = 0;
	if (failed.fd < 0)
		return QCU_ERR_Success;
	fflush(stderr);
	pthread_mutex_lock(&print_lock);
	ret = sort_raw();
	if (!ret)
		ret = read_capture(&failed, buf, max, got);
	pthread_mutex_unlock(&print_lock);
	return ret;
}
