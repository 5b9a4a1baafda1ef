// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Programs for a guest whose memory runs out. Hogs fill the memory with chunks, in several ways,
 * until the kernel kills them. An innocent program has some memory and goes on using a little more.
 * The first argument selects the program; see main().
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <time.h>

#include "raw.h"

#define RW    (PROT_READ | PROT_WRITE)
#define PIECE (8 * MIB)
#define SPACE (4096 * MIB)

static char *anonymous(size_t len)
{
	char *p = mmap(NULL, len, RW, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	SAME(p != MAP_FAILED, 1);
	return p;
}

/* Creates a file that shows the progress. The script waits for it. */
static void say(const char *file)
{
	int fd = open(file, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	SAME(fd >= 0, 1);
	close(fd);
}

static int pin(int fd, char *p, size_t len)
{
	struct qCUcmd cmd = raw_cmd(QCU_OP_HOST_REGISTER);

	cmd.host_register.buf.addr = (uintptr_t)p;
	cmd.host_register.buf.len = len;
	return raw_submit(fd, &cmd);
}

/* Pins as much memory as commands can get. */
static char *fill(int fd, bool touch)
{
	char *p = raw_chunks(fd, 0, SPACE), *end = p + SPACE;

	for (; p < end && !pin(fd, p, PIECE); p += PIECE)
		if (touch)
			memset(p, 1, PIECE);
	return p;
}

/* Pins memory and touches it. When no more can be pinned, it touches more. */
static void touched(int fd)
{
	char *p = fill(fd, true), *end = WINDOW + SPACE;

	for (; p < end; p += 4096)
		*p = 1;
}

/* Pins memory and touches none of it. Another program then finds that no memory is left. */
static void untouched(int fd, const char *file)
{
	fill(fd, false);
	say(file);
	for (;;)
		pause();
}

/* Touches chunks with the CPU; only a few of them are mapped in the mirror. */
static void faulted(int fd)
{
	char *p = raw_chunks(fd, 0, SPACE), *end = p + SPACE;
	uint64_t dev = raw_malloc(fd, PIECE);

	SAME(raw_upload(fd, dev, p, PIECE), 0);
	for (; p < end; p += 4096)
		*p = 1;
}

/* Unmaps memory that comes back only when a stream is done. The stream is never done. */
static void held(int fd, const char *file)
{
	struct qCUcmd cmd = raw_cmd(QCU_OP_HOST_FUNC);
	char *p = raw_chunks(fd, 0, 2 * PIECE);

	SAME(pin(fd, p, 2 * PIECE), 0);
	cmd.host_func.token = 5;
	SAME(raw_submit(fd, &cmd), 0);
	SAME(munmap(p, 2 * PIECE), 0);
	say(file);
	for (;;)
		pause();
}

/* Uses the memory of ordinary programs, no chunks. */
static void ordinary(void)
{
	char *p = anonymous(SPACE), *end = p + SPACE;

	for (; p < end; p += 4096)
		*p = 1;
}

/* Takes this many bytes more, and frees them. */
static void take(size_t len)
{
	char *p = anonymous(len);
	size_t i;

	for (i = 0; i < len; i += 4096)
		p[i] = 1;
	SAME(munmap(p, len), 0);
}

/* Runs until the script removes the file. */
static void innocent(const char *file)
{
	const size_t len = 60 * MIB;
	uint64_t *p = (uint64_t *)anonymous(len);
	size_t i;

	for (i = 0; i < len / 8; i++)
		p[i] = i * 0x9e3779b97f4a7c15ull;
	say(file);
	while (!access(file, F_OK)) {
		take(2 * MIB);
		usleep(2000);
	}
	for (i = 0; i < len / 8; i++)
		if (p[i] != i * 0x9e3779b97f4a7c15ull)
			SAME(p[i], i * 0x9e3779b97f4a7c15ull);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "", *file = argc > 2 ? argv[2] : "";

	setvbuf(stdout, NULL, _IONBF, 0);
	if (!strcmp(what, "innocent")) {
		prctl(PR_SET_NAME, "innocent");
		innocent(file);
		return 0;
	}
	if (!strcmp(what, "asks")) {
		prctl(PR_SET_NAME, "asks");
		take((size_t)atoi(file) * MIB);
		return 0;
	}
	if (!strcmp(what, "held")) {
		prctl(PR_SET_NAME, "held");
		held(raw_session(), file);
	}
	/* The name in the kernel's log. */
	prctl(PR_SET_NAME, "hog");
	if (!strcmp(what, "ordinary"))
		ordinary();
	else if (!strcmp(what, "touched"))
		touched(raw_session());
	else if (!strcmp(what, "faulted"))
		faulted(raw_session());
	else if (!strcmp(what, "untouched"))
		untouched(raw_session(), file);
	printf("%s: nobody has stopped it\n", what);
	return 1;
}
