// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Chunks are charged to the memory cgroup of their process: the group's counter grows and shrinks
 * with them, and the group's limit holds. A command that needs more gets an error. A program that
 * touches more is killed, no other program is, and all memory of the killed program comes back.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdbool.h>
#include <sys/stat.h>

#include "raw.h"

#define GROUP "/sys/fs/cgroup/qcuda-test"
#define LIMIT (96 * MIB)
#define CHUNK (4 * MIB)
/* Page tables, the session and the counter's own batches may add this much. */
#define SLACK (6 * MIB)

static void put(const char *name, const char *value)
{
	int file = open(name, O_WRONLY);

	if (file < 0 || write(file, value, strlen(value)) != (ssize_t)strlen(value)) {
		perror(name);
		exit(1);
	}
	close(file);
}

static unsigned long long get(const char *name, const char *key)
{
	unsigned long long value;
	char word[64] = "";
	FILE *f = fopen(name, "r");

	SAME(!f, 0);
	while (*key && strcmp(word, key) && fscanf(f, "%63s", word) == 1)
		;
	SAME(fscanf(f, "%llu", &value), 1);
	fclose(f);
	return value;
}

static unsigned long long current(void)
{
	return get(GROUP "/memory.current", "");
}

static void group(bool limited)
{
	char text[32] = "max";

	put("/sys/fs/cgroup/cgroup.subtree_control", "+memory");
	rmdir(GROUP);
	SAME(mkdir(GROUP, 0700), 0);
	if (limited)
		snprintf(text, sizeof(text), "%zu", LIMIT);
	put(GROUP "/memory.max", text);
}

/* Waits for as long as it takes: the test as a whole has a limit. */
static void shrunk(unsigned long long to)
{
	while (current() > to)
		usleep(20000);
}

/* After the last process has ended, no charge is left. */
static void group_ends(void)
{
	shrunk(MIB);
	SAME(rmdir(GROUP), 0);
}

static void nothing_left(void)
{
	raw_stat_becomes("sessions", 0);
	SAME(raw_stat("groups"), 0);
	SAME(raw_stat("chunk_pages"), 0);
	SAME(raw_stat("pinned_pages"), 0);
}

/* Runs a function in a process in the group. Returns the exit status. */
static int inside(void (*run)(void))
{
	int status;
	pid_t pid = fork();

	if (!pid) {
		put(GROUP "/cgroup.procs", "0");
		run();
		_exit(0);
	}
	SAME(waitpid(pid, &status, 0), pid);
	return status;
}

static void grown(unsigned long long before, size_t by)
{
	unsigned long long now = current();

	if (now < before + by || now > before + by + SLACK)
		printf("memory.current was %llu and is %llu, %zu more expected\n", before, now, by);
	SAME(now >= before + by && now <= before + by + SLACK, 1);
}

static void charge(void)
{
	int fd = raw_session();
	uint64_t dev = raw_malloc(fd, 16 * MIB);
	unsigned long long before = current();
	char *p = raw_chunks(fd, 0, 1024 * MIB);
	size_t i;

	/* Address space alone costs nothing. */
	grown(before, 0);
	for (i = 0; i < 8; i++)
		p[i * CHUNK] = 1;
	grown(before, 8 * CHUNK);
	/* Only a command has touched these chunks: its process pays. */
	SAME(raw_upload(fd, dev, p + 8 * CHUNK, 4 * CHUNK), 0);
	grown(before, 12 * CHUNK);
	SAME(raw_download(fd, p + 12 * CHUNK, dev, 4 * CHUNK), 0);
	grown(before, 16 * CHUNK);
	SAME(munmap(p, 1024 * MIB), 0);
	shrunk(before + SLACK);
	/* The smallest chunks are charged, too. */
	close(fd);
	fd = raw_session();
	SAME(ioctl(fd, QCU_IOC_CHUNK, &(struct qcu_chunk_size){.bytes = 64 << 10}), 0);
	before = current();
	p = raw_chunks(fd, 0, 1024 * MIB);
	for (i = 0; i < 16 * MIB; i += 64 << 10)
		p[i] = 1;
	grown(before, 16 * MIB);
}

static void charged(void)
{
	group(false);
	SAME(inside(charge), 0);
	group_ends();
	nothing_left();
}

/* A command asks for more than the limit: it gets an error, and the process goes on. */
static void ask_for_too_much(void)
{
	int fd = raw_session();
	uint64_t dev = raw_malloc(fd, 2 * LIMIT);
	struct qCUcmd cmd = raw_cmd(QCU_OP_HOST_REGISTER);
	char *p = raw_chunks(fd, 0, 2 * LIMIT);

	SAME(raw_download(fd, p, dev, 2 * LIMIT), -ENOMEM);
	SAME(current() <= LIMIT, 1);
	/* The memory that the command did get stays until the mapping goes. */
	SAME(munmap(p, 2 * LIMIT), 0);
	shrunk(SLACK);
	p = raw_chunks(fd, 0, 2 * LIMIT);
	cmd.host_register.buf.addr = (uintptr_t)p;
	cmd.host_register.buf.len = 2 * LIMIT;
	SAME(raw_submit(fd, &cmd), -ENOMEM);
	SAME(munmap(p, 2 * LIMIT), 0);
	shrunk(SLACK);
	p = raw_chunks(fd, 0, LIMIT / 2);
	memset(p, 7, LIMIT / 2);
	SAME(raw_upload(fd, dev, p, LIMIT / 2), 0);
	raw_works(fd);
}

static void commands_are_refused(void)
{
	group(true);
	SAME(inside(ask_for_too_much), 0);
	SAME(get(GROUP "/memory.events", "oom_kill"), 0);
	group_ends();
	nothing_left();
}

static void touch_too_much(void)
{
	int fd = raw_session();
	uint64_t dev = raw_malloc(fd, MIB);
	char *p = raw_chunks(fd, 1024 * MIB, 4 * LIMIT);
	size_t i;

	SAME(raw_upload(fd, dev, p, MIB), 0);
	for (i = 0; i < 4 * LIMIT; i += 4096)
		p[i] = 1;
	printf("%zu bytes touched with a limit of %zu\n", 4 * LIMIT, LIMIT);
	_exit(1);
}

/*
 * A program that touches more than the limit is killed by the kernel. Its neighbour works as
 * before.
 */
static void touching_is_killed(void)
{
	int fd = raw_session(), status;
	uint64_t dev = raw_malloc(fd, MIB);
	char *p = raw_chunks(fd, 0, 2 * LIMIT), got[4096];

	memset(p, 0x3c, 2 * LIMIT);
	group(true);
	status = inside(touch_too_much);
	SAME(WIFSIGNALED(status) ? WTERMSIG(status) : -status, SIGKILL);
	SAME(get(GROUP "/memory.events", "oom_kill"), 1);
	SAME(get(GROUP "/memory.peak", "") <= LIMIT, 1);
	SAME(raw_stat("sessions"), 1);
	SAME(raw_stat("chunk_pages"), 2 * LIMIT / 4096);
	SAME(raw_upload(fd, dev, p + MIB, MIB), 0);
	SAME(raw_download(fd, got, dev, sizeof(got)), 0);
	SAME(memcmp(got, p, sizeof(got)), 0);
	group_ends();
	SAME(munmap(p, 2 * LIMIT), 0);
	close(fd);
	nothing_left();
}

int main(int argc, char **argv)
{
	static const struct raw_case cases[] = {
		{"charged", charged},
		{"commands_are_refused", commands_are_refused},
		{"touching_is_killed", touching_is_killed},
		{0},
	};

	return raw_main(argc, argv, cases);
}
