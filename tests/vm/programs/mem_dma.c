// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Memory goes away while the device still works on it: by munmap, or because the process ends. The
 * guest may get the pages back only when the device is done. A queued copy must read the old bytes.
 * The program that gets the pages next must find only its own bytes in them. Slow work in front
 * holds up the queue.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>

#include "mem.h"

#define STREAM 2
#define LEN    (8 * MIB)
#define GRAB   (192 * MIB) /* more than was freed, so that it includes the freed pages */

static void new_stream(int fd)
{
	struct qCUcmd cmd = raw_cmd(QCU_OP_STREAM_CREATE);

	cmd.stream_create.stream = STREAM;
	SAME(raw_submit(fd, &cmd), 0);
}

/* Sends from another guest thread: a copy under way does not hold up this thread. */
static int stream(int fd, int op)
{
	struct qCUcmd cmd = raw_cmd(op);

	cmd.tid = 2;
	cmd.stream_sync.stream = STREAM;
	return raw_submit(fd, &cmd);
}

/* After this call, the stream does nothing until it is let go: it waits for a host function. */
static void hold_up(int fd)
{
	struct qCUcmd cmd = raw_cmd(QCU_OP_HOST_FUNC);

	cmd.host_func.token = 5;
	cmd.host_func.stream = STREAM;
	SAME(raw_submit(fd, &cmd), 0);
}

static void let_go(int fd)
{
	struct qCUcmd cmd = raw_cmd(QCU_OP_HOST_NEXT);

	cmd.tid = 2;
	cmd.host_next.wait = 1;
	SAME(raw_submit(fd, &cmd), 0);
	SAME(cmd.host_next.token, 5);
	cmd = raw_cmd(QCU_OP_HOST_NEXT);
	cmd.tid = 2;
	cmd.host_next.done = 5;
	SAME(raw_submit(fd, &cmd), 0);
}

static void still_busy(int fd)
{
	SAME(stream(fd, QCU_OP_STREAM_QUERY), 600 /* cudaErrorNotReady */);
}

/* Half of the memory is in huge pages, so that freed blocks of any size are used again. */
static char *grab(void)
{
	char *p = mem_anonymous(GRAB);
	size_t i;

	madvise(p + GRAB / 2, GRAB / 2, MADV_HUGEPAGE);
	for (i = 0; i < GRAB; i += MIB)
		mem_fill(p + i, MIB, i);
	return p;
}

static void untouched(const char *p)
{
	static char want[MIB];
	size_t i, at;

	for (i = 0; i < GRAB; i += MIB) {
		mem_fill(want, MIB, i);
		at = mem_differs(p + i, want, MIB);
		if (at != MIB)
			printf("byte %zu of memory taken later has been overwritten\n", i + at);
		SAME(at, MIB);
	}
}

/* Unmaps chunks under a queued upload. */
static void upload_munmap(void)
{
	int fd = raw_session();
	uint64_t dev = raw_malloc(fd, LEN);
	char *p = raw_chunks(fd, 0, LEN), *want = mem_anonymous(LEN), *other;
	long resident;
	double t;

	new_stream(fd);
	mem_fill(p, LEN, 1);
	mem_fill(want, LEN, 1);
	resident = raw_stat("chunk_pages");
	hold_up(fd);
	SAME(mem_copy(fd, QCU_OP_COPY_H2D, dev, p, LEN, STREAM, QCU_COPY_QUEUED), 0);
	t = mem_clock();
	SAME(munmap(p, LEN), 0);
	t = mem_clock() - t;
	SAME(raw_stat("chunk_pages"), resident);
	still_busy(fd);
	printf("munmap took %.0f ms\n", t * 1e3);
	other = grab();
	let_go(fd);
	SAME(stream(fd, QCU_OP_STREAM_SYNC), 0);
	memset(other, 0, LEN);
	SAME(raw_download(fd, other, dev, LEN), 0);
	SAME(mem_differs(other, want, LEN), LEN);
	raw_stat_becomes("chunk_pages", resident - (long)(LEN / 4096));
}

/* Unmaps chunks under a queued download. */
static void download_munmap(void)
{
	int fd = raw_session();
	uint64_t dev = raw_malloc(fd, LEN);
	char *p = raw_chunks(fd, 0, LEN), *other;
	long resident;

	new_stream(fd);
	mem_fill(p, LEN, 1);
	SAME(raw_upload(fd, dev, p, LEN), 0);
	resident = raw_stat("chunk_pages");
	hold_up(fd);
	SAME(mem_copy(fd, QCU_OP_COPY_D2H, dev, p, LEN, STREAM, QCU_COPY_QUEUED), 0);
	SAME(munmap(p, LEN), 0);
	SAME(raw_stat("chunk_pages"), resident);
	still_busy(fd);
	other = grab();
	let_go(fd);
	SAME(stream(fd, QCU_OP_STREAM_SYNC), 0);
	raw_stat_becomes("chunk_pages", resident - (long)(LEN / 4096));
	untouched(other);
}

struct job {
	int fd, op;
	uint64_t dev;
	char *p;
	size_t len;
	int rc;
};

static void *copying(void *arg)
{
	struct job *j = arg;

	j->rc = mem_copy(j->fd, j->op, j->dev, j->p, j->len, STREAM, QCU_COPY_SYNC);
	return NULL;
}

/* Unmaps memory that is no chunk, while a copy in another thread waits for its turn. */
static void pages_munmap(int op, char *p, size_t len)
{
	int fd = raw_session();
	uint64_t dev = raw_malloc(fd, len);
	char *want = mem_anonymous(len), *other;
	struct job job = {.fd = fd, .op = op, .dev = dev, .p = p, .len = len};
	pthread_t thread;
	long pinned;

	new_stream(fd);
	mem_fill(p, len, 1);
	mem_fill(want, len, 1);
	SAME(raw_upload(fd, dev, want, len), 0);
	if (op == QCU_OP_COPY_H2D)
		SAME(raw_upload(fd, dev, want + 1, len - 1), 0);
	hold_up(fd);
	pinned = raw_stat("pinned_pages");
	SAME(pthread_create(&thread, NULL, copying, &job), 0);
	raw_stat_becomes("pinned_pages", pinned + (long)(len / 4096));
	SAME(munmap(p, len), 0);
	other = grab();
	let_go(fd);
	pthread_join(thread, NULL);
	SAME(job.rc, 0);
	untouched(other);
	if (op == QCU_OP_COPY_H2D) {
		SAME(raw_download(fd, other, dev, len), 0);
		SAME(mem_differs(other, want, len), len);
	}
	raw_stat_becomes("pinned_pages", pinned);
}

/* More than fits into staging memory at once, so that the mirror reads some of it late. */
static void upload_pages(void)
{
	pages_munmap(QCU_OP_COPY_H2D, mem_scattered(16 * MIB), 16 * MIB);
}

static void upload_huge_pages(void)
{
	pages_munmap(QCU_OP_COPY_H2D, mem_huge(LEN), LEN);
}

static void download_pages(void)
{
	pages_munmap(QCU_OP_COPY_D2H, mem_scattered(LEN), LEN);
}

static void download_huge_pages(void)
{
	pages_munmap(QCU_OP_COPY_D2H, mem_huge(LEN), LEN);
}

/* The process ends while a download into its memory is under way. */
static void download_end(bool chunks, bool by_signal)
{
	int ready[2], status;
	char c, *other;
	pid_t child;

	SAME(pipe(ready), 0);
	child = fork();
	if (!child) {
		int fd = raw_session();
		uint64_t dev = raw_malloc(fd, LEN);
		char *p = chunks ? raw_chunks(fd, 0, LEN) : mem_scattered(LEN);
		struct job job = {.fd = fd, .op = QCU_OP_COPY_D2H, .dev = dev, .p = p, .len = LEN};
		pthread_t thread;
		long pinned;

		new_stream(fd);
		mem_fill(p, LEN, 1);
		SAME(raw_upload(fd, dev, p, LEN), 0);
		hold_up(fd);
		if (chunks) {
			SAME(mem_copy(fd, job.op, dev, p, LEN, STREAM, QCU_COPY_QUEUED), 0);
		} else {
			pinned = raw_stat("pinned_pages");
			SAME(pthread_create(&thread, NULL, copying, &job), 0);
			raw_stat_becomes("pinned_pages", pinned + (long)(LEN / 4096));
		}
		still_busy(fd);
		SAME(write(ready[1], "x", 1), 1);
		if (!by_signal)
			_exit(0);
		for (;;)
			pause();
	}
	close(ready[1]);
	SAME(read(ready[0], &c, 1), 1);
	if (by_signal)
		kill(child, SIGKILL);
	SAME(waitpid(child, &status, 0), child);
	SAME(by_signal ? WIFSIGNALED(status) : WIFEXITED(status) && !WEXITSTATUS(status), 1);
	other = grab();
	/* With the session, its mirror is gone, and with it the download. */
	raw_stat_becomes("sessions", 0);
	raw_stat_becomes("chunk_pages", 0);
	raw_stat_becomes("pinned_pages", 0);
	untouched(other);
}

static void chunks_exit(void)
{
	download_end(true, false);
}

static void chunks_kill(void)
{
	download_end(true, true);
}

static void pages_exit(void)
{
	download_end(false, false);
}

static void pages_kill(void)
{
	download_end(false, true);
}

int main(int argc, char **argv)
{
	static const struct raw_case cases[] = {
		{"upload_munmap", upload_munmap},
		{"download_munmap", download_munmap},
		{"upload_pages", upload_pages},
		{"upload_huge_pages", upload_huge_pages},
		{"download_pages", download_pages},
		{"download_huge_pages", download_huge_pages},
		{"chunks_exit", chunks_exit},
		{"chunks_kill", chunks_kill},
		{"pages_exit", pages_exit},
		{"pages_kill", pages_kill},
		{0},
	};

	return raw_main(argc, argv, cases);
}
