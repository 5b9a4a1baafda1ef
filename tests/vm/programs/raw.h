/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * For programs that talk to /dev/qcuda without the library, to send what the library never sends.
 * Each program has a table of cases. It runs the case that its argument names, in a session of its
 * own. The exit code is 0, or 1 after a message about what was wrong. --list prints the names.
 */
#ifndef RAW_H
#define RAW_H

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "include/qcucmd.h"

#define WINDOW ((char *)QCU_WINDOW_BASE)
#define MIB    ((size_t)1 << 20)

/* a == b; otherwise prints both values and exits. */
#define SAME(a, b)                                                                                \
	do {                                                                                      \
		long long a_ = (long long)(a), b_ = (long long)(b);                               \
		if (a_ != b_) {                                                                   \
			printf("%s:%d: %s is %lld, expected %s = %lld\n", __FILE__, __LINE__, #a, \
			       a_, #b, b_);                                                       \
			exit(1);                                                                  \
		}                                                                                 \
	} while (0)

/* The call fails with this errno. */
#define FAILS(call, code)          \
	do {                       \
		errno = 0;         \
		SAME(call, -1);    \
		SAME(errno, code); \
	} while (0)

static inline int raw_open(void)
{
	int fd = open("/dev/qcuda", O_RDWR | O_CLOEXEC);

	if (fd < 0) {
		perror("/dev/qcuda");
		exit(1);
	}
	return fd;
}

static inline int raw_session(void)
{
	struct qcu_hello hello = {.library_version = QCU_WIRE_VERSION};
	int fd = raw_open();

	SAME(ioctl(fd, QCU_IOC_HELLO, &hello), 0);
	return fd;
}

static inline struct qCUcmd raw_cmd(int op)
{
	struct qCUcmd cmd = {.op = (__u16)op, .tid = 1, .seq = 77};

	return cmd;
}

/* Returns the record's status, or -errno of the ioctl. */
static inline int raw_submit(int fd, struct qCUcmd *cmd)
{
	struct qcu_submit submit = {.cmds = (uintptr_t)cmd, .count = 1};
	int n = ioctl(fd, QCU_IOC_SUBMIT, &submit);

	return n == 1 ? cmd->status : n < 0 ? -errno : -EPROTO;
}

/* Checks that the session still works. */
static inline void raw_works(int fd)
{
	struct qCUcmd cmd = raw_cmd(QCU_OP_MEM_INFO);

	SAME(raw_submit(fd, &cmd), 0);
	SAME(cmd.seq, 77);
	SAME(cmd.mem_info.total > 0, 1);
}

static inline uint64_t raw_malloc(int fd, uint64_t size)
{
	struct qCUcmd cmd = raw_cmd(QCU_OP_MALLOC);

	cmd.malloc.size = size;
	SAME(raw_submit(fd, &cmd), 0);
	return cmd.malloc.ptr;
}

static inline int raw_upload(int fd, uint64_t dst, const void *from, uint64_t len)
{
	struct qCUcmd cmd = raw_cmd(QCU_OP_COPY_H2D);

	cmd.copy_h2d.buf.addr = (uintptr_t)from;
	cmd.copy_h2d.buf.len = len;
	cmd.copy_h2d.dst = dst;
	cmd.copy_h2d.flags = QCU_COPY_SYNC;
	return raw_submit(fd, &cmd);
}

static inline int raw_download(int fd, void *to, uint64_t src, uint64_t len)
{
	struct qCUcmd cmd = raw_cmd(QCU_OP_COPY_D2H);

	cmd.copy_d2h.buf.addr = (uintptr_t)to;
	cmd.copy_d2h.buf.len = len;
	cmd.copy_d2h.src = src;
	cmd.copy_d2h.flags = QCU_COPY_SYNC;
	return raw_submit(fd, &cmd);
}

/* Maps chunk memory at this offset in the window. */
static inline char *raw_chunks(int fd, size_t at, size_t len)
{
	char *p = mmap(WINDOW + at, len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED_NOREPLACE,
		       fd, 0);

	if (p != WINDOW + at) {
		perror("mmap of /dev/qcuda");
		exit(1);
	}
	return p;
}

/* Returns a counter of the driver. */
static inline long raw_stat(const char *name)
{
	FILE *f = fopen("/sys/kernel/debug/qcuda/stats", "r");
	char key[64];
	long value;

	if (f) {
		while (fscanf(f, "%63s %ld", key, &value) == 2) {
			if (!strcmp(key, name)) {
				fclose(f);
				return value;
			}
		}
	}
	printf("no counter %s\n", name);
	exit(1);
}

/* Waits for as long as it takes: the test as a whole has a limit. */
static inline void raw_stat_becomes(const char *name, long value)
{
	long now;
	int tries;

	for (tries = 1; (now = raw_stat(name)) != value; tries++) {
		if (tries % 500 == 0)
			printf("%s is %ld, not yet %ld\n", name, now, value);
		usleep(10000);
	}
}

struct raw_case {
	const char *name;
	void (*run)(void);
};

static inline int raw_main(int argc, char **argv, const struct raw_case *cases)
{
	setvbuf(stdout, NULL, _IONBF, 0);
	for (; cases->name; cases++) {
		if (argc == 2 && !strcmp(argv[1], "--list")) {
			puts(cases->name);
		} else if (argc == 2 && !strcmp(argv[1], cases->name)) {
			cases->run();
			return 0;
		}
	}
	return argc == 2 && !strcmp(argv[1], "--list") ? 0 : 2;
}

#endif
