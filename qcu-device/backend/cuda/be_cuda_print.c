// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What kernels print, and the text of their failed assertions. CUDA writes it to stdout and stderr
 * of the process that drives the GPU, which is a mirror, and chooses the time itself. The text
 * belongs to the guest program. So stdout becomes a pipe, and a thread of ours empties the pipe at
 * once into a buffer: CUDA writes inside its own calls, and a full pipe would stop them. The buffer
 * has a limit, because a kernel may print without end, and the program need not fetch the text.
 * What is beyond the limit is left out, and the program is told once.
 *
 * File descriptor 2 becomes a pipe, too, and the stream `stderr` sorts lines as they are written.
 * Nobody can say whether a line that is no assertion was written by CUDA or by a kernel. So the
 * mirror's log gets such a line only marked as the text of others, and never as it stands. The
 * device's own messages go past both (complain.h).
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "qcu-device/backend/cuda/be_cuda.h"

#define LINE_MAX_BYTES 8192

#define ROOM_MIN 65536

/* Text that waits to be fetched. */
struct text {
	char *buf;
	size_t head, len, room;
};

static int printed_fd = -1, raw_fd = -1; /* read ends of the pipes behind stdout and fd 2 */
static struct text printed;		 /* text that came to stdout */
static struct text failed;		 /* assertions that came to stderr */
static char line[LINE_MAX_BYTES];	 /* the start of an incomplete line of stderr */
static size_t line_len;
static size_t most;   /* limit for `printed` and for `failed`, in bytes */
static uint64_t lost; /* bytes for which there was no room */
static void (*to_log)(const char *who, const char *text, size_t len);
static pthread_mutex_t print_lock = PTHREAD_MUTEX_INITIALIZER; /* protects all of the above */

static bool make_room_in_text(struct text *t, size_t len)
{
	size_t room = t->room ? t->room : ROOM_MIN;
	char *more;

	if (t->head) {
		memmove(t->buf, t->buf + t->head, t->len);
		t->head = 0;
	}
	while (room < t->len + len)
		room *= 2;
	if (room == t->room)
		return true;
	more = realloc(t->buf, room);
	if (!more)
		return false;
	t->buf = more;
	t->room = room;
	return true;
}

/* Returns the number of bytes for which there was no room. */
static size_t append_text(struct text *t, const char *text, size_t len)
{
	size_t fits = t->len < most ? most - t->len : 0;

	if (fits > len)
		fits = len;
	if (fits && t->head + t->len + fits > t->room && !make_room_in_text(t, fits))
		fits = 0;
	if (fits) {
		memcpy(t->buf + t->head + t->len, text, fits);
		t->len += fits;
	}
	return len - fits;
}

static void append_and_count_lost(struct text *t, const char *text, size_t len)
{
	static const char says[] = "qCUDA: kernels print more than the program fetches: some of it "
				   "is left out\n";
	size_t over = append_text(t, text, len);

	if (over && !lost) {
		/* There is always room for this much. */
		most += sizeof(says);
		append_text(&failed, says, sizeof(says) - 1);
		most -= sizeof(says);
	}
	lost += over;
}

static size_t fetch_from_text(struct text *t, char *buf, size_t max)
{
	size_t n = t->len < max ? t->len : max;

	if (!buf)
		return t->len;
	memcpy(buf, t->buf + t->head, n);
	t->len -= n;
	t->head = t->len ? t->head + n : 0;
	return n;
}

/* FILE:LINE: FUNCTION: block: [x,y,z], thread: [x,y,z] Assertion `EXPRESSION` failed. */
static bool is_assertion(const char *line, size_t len)
{
	return memmem(line, len, ": block: [", 10) && memmem(line, len, "], thread: [", 12) &&
	       memmem(line, len, "] Assertion `", 13);
}

/* Sends each line where it belongs. Returns how many bytes made up whole lines. */
static size_t sort_lines(const char *text, size_t len, bool all)
{
	size_t done = 0;

	while (done < len) {
		const char *end = memchr(text + done, '\n', len - done);
		size_t n = end ? (size_t)(end - text) + 1 - done : len - done;

		if (!end && !all)
			break;
		if (is_assertion(text + done, n))
			append_and_count_lost(&failed, text + done, n);
		else if (to_log)
			to_log("stderr of CUDA", text + done, n);
		done += n;
	}
	return done;
}

static ssize_t stderr_write(void *unused, const char *text, size_t len)
{
	(void)unused;
	pthread_mutex_lock(&print_lock);
	sort_lines(text, len, true);
	pthread_mutex_unlock(&print_lock);
	return (ssize_t)len;
}

/* An incomplete line waits, unless it is longer than any line should be. */
static void sort_raw(const char *text, size_t len)
{
	while (len) {
		size_t n = sizeof(line) - line_len < len ? sizeof(line) - line_len : len;

		memcpy(line + line_len, text, n);
		line_len += n;
		text += n;
		len -= n;
		n = sort_lines(line, line_len, false);
		if (!n && line_len == sizeof(line))
			n = sort_lines(line, line_len, true);
		line_len -= n;
		memmove(line, line + n, line_len);
	}
}

/* Called under the lock. Reads what the pipes have now, and not what goes on coming. */
static void read_print_pipes(void)
{
	char text[16384];
	unsigned int i;
	ssize_t n;

	for (i = 0; i < 256 && (n = read(printed_fd, text, sizeof(text))) > 0; i++)
		append_and_count_lost(&printed, text, (size_t)n);
	for (i = 0; i < 256 && (n = read(raw_fd, text, sizeof(text))) > 0; i++)
		sort_raw(text, (size_t)n);
}

static void *drain_main(void *unused)
{
	struct pollfd fds[2] = {
		{.fd = printed_fd, .events = POLLIN},
		{.fd = raw_fd, .events = POLLIN},
	};

	for (;;) {
		poll(fds, 2, -1);
		pthread_mutex_lock(&print_lock);
		read_print_pipes();
		pthread_mutex_unlock(&print_lock);
	}
	return unused;
}

/* Makes a file descriptor of the process the write end of a pipe. Returns the read end, or -1. */
static int divert(int fd)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC))
		return -1;
	if (fcntl(ends[0], F_SETFL, O_NONBLOCK) || dup2(ends[1], fd) < 0) {
		close(ends[0]);
		ends[0] = -1;
	}
	close(ends[1]);
	return ends[0];
}

static int divert_stderr(void)
{
	static const cookie_io_functions_t functions = {.write = stderr_write};
	FILE *stream;

	stream = fopencookie(NULL, "w", functions);
	if (!stream || setvbuf(stream, NULL, _IOLBF, LINE_MAX_BYTES))
		return QCU_ERR_OperatingSystem;
	fflush(stderr);
	raw_fd = divert(STDERR_FILENO);
	if (raw_fd < 0)
		return QCU_ERR_OperatingSystem;
	stderr = stream;
	return QCU_ERR_Success;
}

int cu_print_open(void (*other)(const char *who, const char *text, size_t len), uint64_t bytes)
{
	pthread_t thread;
	int ret;

	if (printed_fd >= 0)
		return QCU_ERR_Success;
	to_log = other;
	most = bytes < SIZE_MAX / 4 ? bytes : SIZE_MAX / 4;
	fflush(stdout);
	printed_fd = divert(STDOUT_FILENO);
	if (printed_fd < 0)
		return QCU_ERR_OperatingSystem;
	ret = divert_stderr();
	if (!ret && pthread_create(&thread, NULL, drain_main, NULL))
		ret = QCU_ERR_OperatingSystem;
	if (!ret)
		pthread_detach(thread);
	return ret;
}

static int fetch(struct text *t, FILE *stream, char *buf, size_t max, size_t *got)
{
	*got = 0;
	if (raw_fd < 0)
		return QCU_ERR_Success;
	fflush(stream);
	pthread_mutex_lock(&print_lock);
	read_print_pipes();
	*got = fetch_from_text(t, buf, max);
	pthread_mutex_unlock(&print_lock);
	return QCU_ERR_Success;
}

int cu_print_read(struct be *be, void *buf, size_t max, size_t *got)
{
	(void)be;
	return fetch(&printed, stdout, buf, max, got);
}

int cu_assert_read(struct be *be, void *buf, size_t max, size_t *got)
{
	(void)be;
	return fetch(&failed, stderr, buf, max, got);
}

void cu_print_write(struct be *be, bool assertion, const char *text, size_t len)
{
	(void)be;
	pthread_mutex_lock(&print_lock);
	append_and_count_lost(assertion ? &failed : &printed, text, len);
	pthread_mutex_unlock(&print_lock);
}
