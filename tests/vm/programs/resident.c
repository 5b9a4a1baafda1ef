// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Chunks count as resident memory of their process, once, whoever has touched them. When memory
 * runs out, the kernel uses this number to choose the process to kill.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdbool.h>

#include "raw.h"

#define LEN   (64 * MIB)
#define CHUNK (4 * MIB)
/*
 * The kernel's counters may be off by this much: the kernel adds up the counts of the CPUs only now
 * and then.
 */
#define SLACK (2 * MIB)

static long resident(void)
{
	FILE *f = fopen("/proc/self/status", "r");
	char line[128];
	long kib = -1;

	SAME(!f, 0);
	while (kib < 0 && fgets(line, sizeof(line), f))
		sscanf(line, "VmRSS: %ld", &kib);
	fclose(f);
	return kib * 1024;
}

static bool is(long before, long more)
{
	long now = resident();

	return now >= before + more - (long)SLACK && now <= before + more + (long)SLACK;
}

static void grown(long before, long more)
{
	if (!is(before, more))
		printf("resident: %ld, then %ld, not %ld more\n", before, resident(), more);
	SAME(is(before, more), 1);
}

/* The mirror must release the memory first. The test as a whole has a limit. */
static void shrinks(long before, long more)
{
	while (!is(before, more))
		usleep(10000);
}

static void pin(int fd, char *p, size_t len)
{
	struct qCUcmd cmd = raw_cmd(QCU_OP_HOST_REGISTER);

	cmd.host_register.buf.addr = (uintptr_t)p;
	cmd.host_register.buf.len = len;
	SAME(raw_submit(fd, &cmd), 0);
}

static void touch(char *p)
{
	size_t i;

	for (i = 0; i < LEN; i += CHUNK)
		p[i] = 1;
}

/* Each touch brings a chunk, so little of it may be counted late. */
static void touched(void)
{
	int fd = raw_session();
	char *p = raw_chunks(fd, 0, LEN);
	long before = resident();

	touch(p);
	grown(before, LEN);
	SAME(munmap(p, LEN), 0);
	shrinks(before, 0);
}

static void *touch_it(void *p)
{
	touch(p);
	return NULL;
}

/* A thread touches memory and then sleeps: its pages are counted all the same. */
static void by_a_thread(void)
{
	int fd = raw_session();
	char *p = raw_chunks(fd, 0, LEN);
	long before = resident();
	pthread_t thread;

	SAME(pthread_create(&thread, NULL, touch_it, p), 0);
	SAME(pthread_join(thread, NULL), 0);
	grown(before, LEN);
}

/* First only commands use the memory; then the program touches it, too. */
static void untouched(void)
{
	int fd = raw_session();
	char *p = raw_chunks(fd, 0, LEN);
	long before = resident();

	pin(fd, p, LEN);
	grown(before, LEN);
	touch(p);
	grown(before, LEN);
	SAME(munmap(p, LEN), 0);
	shrinks(before, 0);
}

/* The mapping has gone, but the mirror still has the memory, because a stream is held up. */
static void unmapped(void)
{
	struct qCUcmd cmd = raw_cmd(QCU_OP_HOST_FUNC);
	int fd = raw_session();
	char *p = raw_chunks(fd, 0, LEN);
	long before = resident();

	pin(fd, p, LEN / 2);
	touch(p);
	grown(before, LEN);
	cmd.host_func.token = 5;
	SAME(raw_submit(fd, &cmd), 0);
	SAME(munmap(p, LEN), 0);
	grown(before, LEN);
	cmd = raw_cmd(QCU_OP_HOST_NEXT);
	cmd.host_next.wait = 1;
	SAME(raw_submit(fd, &cmd), 0);
	cmd = raw_cmd(QCU_OP_HOST_NEXT);
	cmd.host_next.done = 5;
	SAME(raw_submit(fd, &cmd), 0);
	shrinks(before, 0);
}

/* A fork removes the parent's chunks from its page tables. They still belong to the parent. */
static void forked(void)
{
	int fd = raw_session(), status, ends[2], turn;
	char *p = raw_chunks(fd, 0, LEN), c;
	long before = resident();
	pid_t pid;

	SAME(pipe(ends), 0);
	touch(p);
	pin(fd, p, CHUNK);
	for (turn = 0; turn < 3; turn++) {
		pid = fork();
		if (!pid) {
			SAME(read(ends[0], &c, 1), 1);
			if (turn == 1)
				touch(p);
			_exit(0);
		}
		grown(before, LEN);
		if (turn == 2)
			touch(p);
		grown(before, LEN);
		SAME(write(ends[1], "", 1), 1);
		SAME(waitpid(pid, &status, 0), pid);
		SAME(status, 0);
		grown(before, LEN);
	}
	touch(p);
	grown(before, LEN);
	SAME(munmap(p, LEN), 0);
	shrinks(before, 0);
}

/* The session ends before its mappings. */
static void closed(void)
{
	int fd = raw_session();
	char *p = raw_chunks(fd, 0, LEN);
	long before = resident();

	pin(fd, p, LEN);
	close(fd);
	grown(before, LEN);
	touch(p);
	grown(before, LEN);
	SAME(munmap(p, LEN), 0);
	grown(before, 0);
}

int main(int argc, char **argv)
{
	static const struct raw_case cases[] = {
		{"touched", touched},	{"by_a_thread", by_a_thread}, {"untouched", untouched},
		{"unmapped", unmapped}, {"forked", forked},	      {"closed", closed},
		{NULL, NULL},
	};

	return raw_main(argc, argv, cases);
}
