// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Posted commands, as a program can give them to the driver: what they cost, what becomes of their
 * errors and of their memory, and what happens when there are too many.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>

#include "mem.h"

#define N	200
#define THREADS 64
#define PAGE	4096

struct costs {
	long ioctls, kicks, interrupts, waits, posted;
};

static struct costs costs(void)
{
	return (struct costs){
		.ioctls = raw_stat("ioctls"),
		.kicks = raw_stat("kicks"),
		.interrupts = raw_stat("interrupts"),
		.waits = raw_stat("waits") + raw_stat("spins"),
		.posted = raw_stat("posted"),
	};
}

static struct costs since(struct costs a)
{
	struct costs b = costs();

	b.ioctls -= a.ioctls;
	b.kicks -= a.kicks;
	b.interrupts -= a.interrupts;
	b.waits -= a.waits;
	b.posted -= a.posted;
	printf("%ld posted, %ld ioctls, %ld kicks, %ld interrupts, %ld waits\n", b.posted, b.ioctls,
	       b.kicks, b.interrupts, b.waits);
	return b;
}

/* Returns how many records were taken, or -errno. Stores the error of earlier commands in *late. */
static int submit(int fd, struct qCUcmd *cmds, unsigned int count, int *late)
{
	struct qcu_submit s = {.cmds = (uintptr_t)cmds, .count = count};
	int n = ioctl(fd, QCU_IOC_SUBMIT, &s);

	if (late)
		*late = s.late;
	return n < 0 ? -errno : n;
}

static struct qCUcmd memset_cmd(uint64_t dst, uint64_t len, unsigned char value)
{
	struct qCUcmd cmd = raw_cmd(QCU_OP_MEMSET);

	cmd.flags = QCU_F_POSTED;
	cmd.memset.dst = dst;
	cmd.memset.width = len;
	cmd.memset.height = 1;
	cmd.memset.elem = 1;
	cmd.memset.value = value;
	return cmd;
}

static void post(int fd, struct qCUcmd cmd)
{
	SAME(submit(fd, &cmd, 1, NULL), 1);
	SAME(cmd.status, 0);
}

static struct qCUcmd copy_cmd(int op, uint64_t device, void *host, uint64_t len)
{
	struct qCUcmd cmd = raw_cmd(op);

	cmd.flags = QCU_F_POSTED;
	cmd.buf.addr = (uintptr_t)host;
	cmd.buf.len = len;
	if (op == QCU_OP_COPY_H2D) {
		cmd.copy_h2d.dst = device;
		cmd.copy_h2d.flags = QCU_COPY_QUEUED;
	} else {
		cmd.copy_d2h.src = device;
		cmd.copy_d2h.flags = QCU_COPY_QUEUED;
	}
	return cmd;
}

/*
 * No caller waits for posted commands. One synchronous call costs at most one notification and one
 * interrupt.
 */
static void what_they_cost(void)
{
	int fd = raw_session(), i;
	uint64_t dev = raw_malloc(fd, PAGE);
	struct qCUcmd batch[QCU_SUBMIT_MAX];
	unsigned char got = 0;
	struct costs c;

	c = costs();
	for (i = 0; i < N; i++)
		post(fd, memset_cmd(dev, 1, (unsigned char)i));
	c = since(c);
	SAME(c.posted, N);
	SAME(c.ioctls, N);
	SAME(c.waits, 0);
	SAME(c.kicks <= N, 1);
	SAME(raw_download(fd, &got, dev, 1), 0);
	SAME(got, (unsigned char)(N - 1));

	for (i = 0; i < (int)QCU_SUBMIT_MAX; i++)
		batch[i] = memset_cmd(dev, 1, (unsigned char)(100 + i));
	c = costs();
	SAME(submit(fd, batch, QCU_SUBMIT_MAX, NULL), QCU_SUBMIT_MAX);
	c = since(c);
	SAME(c.posted, QCU_SUBMIT_MAX);
	SAME(c.ioctls, 1);
	SAME(c.waits, 0);
	SAME(c.kicks <= 1, 1);
	SAME(raw_download(fd, &got, dev, 1), 0);
	SAME(got, 100 + QCU_SUBMIT_MAX - 1);

	c = costs();
	for (i = 0; i < N; i++)
		raw_works(fd);
	c = since(c);
	SAME(c.kicks <= N, 1);
	SAME(c.interrupts <= N, 1);
}

/*
 * A batch in which some commands are posted and some are not: the answers belong to the commands
 * that are waited for.
 */
static void mixed(void)
{
	int fd = raw_session();
	uint64_t dev = raw_malloc(fd, PAGE);
	unsigned char got[16];
	struct qCUcmd cmds[3] = {memset_cmd(dev, 16, 0x5a), raw_cmd(QCU_OP_COPY_D2H),
				 memset_cmd(dev, 16, 0x11)};

	cmds[1].copy_d2h.buf.addr = (uintptr_t)got;
	cmds[1].copy_d2h.buf.len = sizeof(got);
	cmds[1].copy_d2h.src = dev;
	SAME(submit(fd, cmds, 3, NULL), 3);
	SAME(cmds[0].status | cmds[1].status | cmds[2].status, 0);
	SAME(got[0], 0x5a);
	SAME(got[15], 0x5a);
	SAME(raw_download(fd, got, dev, 16), 0);
	SAME(got[15], 0x11);
}

static void may_not_be_posted(void)
{
	int fd = raw_session(), op, flag;
	struct qCUcmd cmd;

	for (op = 0; op < QCU_OP_COUNT; op++) {
		const struct qcu_rule *rule = qcu_rule((__u16)op);

		if (!rule || rule->who == QCU_WHO_POST)
			continue;
		cmd = raw_cmd(op);
		cmd.flags = QCU_F_POSTED;
		SAME(submit(fd, &cmd, 1, NULL), 1);
		SAME(cmd.status < 0, 1);
	}
	for (flag = 1; flag < 256; flag <<= 1) {
		if (flag == QCU_F_POSTED)
			continue;
		cmd = memset_cmd(0, 1, 0);
		cmd.flags |= (__u8)flag;
		SAME(submit(fd, &cmd, 1, NULL), 1);
		SAME(cmd.status, -EINVAL);
	}
	/* The driver reports at once the errors that it finds itself. */
	cmd = copy_cmd(QCU_OP_COPY_H2D, 0, (void *)16, 16);
	SAME(submit(fd, &cmd, 1, NULL), 1);
	SAME(cmd.status, -EFAULT);
	raw_works(fd);
}

static int late_of(int fd, unsigned int tid)
{
	struct qCUcmd cmd = raw_cmd(QCU_OP_MEM_INFO);
	int late = -1;

	cmd.tid = tid;
	SAME(submit(fd, &cmd, 1, &late), 1);
	SAME(cmd.status, 0);
	return late;
}

/* Posts a command. Returns the error of earlier commands that this submit reported. */
static int post_and_hear(int fd, struct qCUcmd cmd)
{
	int late = -1;

	SAME(submit(fd, &cmd, 1, &late), 1);
	SAME(cmd.status, 0);
	return late;
}

/*
 * The mirror's error for a posted command is kept for the command's thread. The first error is kept
 * until it is reported, and it is reported once. Any submit after the end of the command may report
 * it, even the submit of the command itself.
 */
static void errors_are_kept(void)
{
	int fd = raw_session(), early;
	struct qCUcmd cmd = raw_cmd(QCU_OP_EVENT_DESTROY);
	unsigned int tid, told = 0;

	SAME(late_of(fd, 1), 0);
	cmd.flags = QCU_F_POSTED;
	cmd.event_destroy.event = 77;
	early = post_and_hear(fd, cmd);
	/* A second command that fails, with error 1. */
	if (!early)
		early = post_and_hear(fd, memset_cmd(16, 1, 0));
	SAME(late_of(fd, 2), 0);
	if (!early) {
		SAME(late_of(fd, 1), 400);
		early = 400;
	}
	SAME(early, 400);
	/* Reports the second error, if that came after the first error was reported. */
	late_of(fd, 1);
	SAME(late_of(fd, 1), 0);
	/*
	 * More threads than the driver has room for: the other errors are reported to any thread.
	 */
	for (tid = 10; tid < 90; tid++) {
		cmd.tid = tid;
		told += post_and_hear(fd, cmd) == 400;
	}
	told += late_of(fd, 5) == 400;
	SAME(late_of(fd, 5), 0);
	for (tid = 10; tid < 90; tid++)
		told += late_of(fd, tid) == 400;
	printf("%u of 80 told\n", told);
	SAME(told >= 32, 1);
	for (tid = 10; tid < 90; tid++)
		SAME(late_of(fd, tid), 0);
	raw_works(fd);
}

/* ---- memory ---- */

static void check_device(int fd, uint64_t dev, size_t len, uint64_t seed)
{
	char *want = malloc(len), *got = malloc(len);

	SAME(want && got, 1);
	mem_fill(want, len, seed);
	SAME(raw_download(fd, got, dev, len), 0);
	SAME(mem_differs(want, got, len), len);
	free(want);
	free(got);
}

/* The source is unmapped while the copy is under way. */
static void unmapped_at_once(void)
{
	const size_t len = MIB;
	int fd = raw_session(), i;
	uint64_t dev = raw_malloc(fd, len);

	for (i = 0; i < 16; i++) {
		bool chunks = i % 2;
		char *p = chunks ? raw_chunks(fd, 0, len) : mem_anonymous(len);

		mem_fill(p, len, (uint64_t)i);
		post(fd, copy_cmd(QCU_OP_COPY_H2D, dev, p, len));
		SAME(munmap(p, len), 0);
		/* Another mapping may get the pages now. The copy must not read it. */
		p = mem_anonymous(len);
		memset(p, 0xaa, len);
		SAME(munmap(p, len), 0);
		check_device(fd, dev, len, (uint64_t)i);
	}
}

/*
 * The target is unmapped while the copy is under way. The copy must not write to pages of another
 * mapping.
 */
static void target_unmapped(void)
{
	const size_t len = MIB;
	int fd = raw_session(), i;
	uint64_t dev = raw_malloc(fd, len);
	size_t k;

	post(fd, memset_cmd(dev, len, 0xdd));
	for (i = 0; i < 16; i++) {
		char *p = i % 2 ? raw_chunks(fd, 0, len) : mem_anonymous(len), *q;

		memset(p, 1, len);
		post(fd, copy_cmd(QCU_OP_COPY_D2H, dev, p, len));
		SAME(munmap(p, len), 0);
		q = mem_anonymous(len);
		memset(q, 2, len);
		raw_works(fd);
		for (k = 0; k < len; k++)
			if (q[k] != 2)
				break;
		SAME(k, len);
		SAME(munmap(q, len), 0);
	}
}

/* ---- too many ---- */

struct worker {
	pthread_t thread;
	int fd, id;
	uint64_t dev;
};

static void *flood(void *arg)
{
	struct worker *w = arg;
	unsigned char byte = 0;
	struct qCUcmd cmd;
	int i;

	for (i = 0; i < 150; i++) {
		cmd = memset_cmd(w->dev + (uint64_t)w->id, 1, (unsigned char)i);
		cmd.tid = 100 + (__u32)w->id;
		post(w->fd, cmd);
		cmd = raw_cmd(QCU_OP_COPY_SMALL);
		cmd.flags = QCU_F_POSTED;
		cmd.tid = 100 + (__u32)w->id;
		byte = (unsigned char)(i + w->id);
		cmd.copy_small.buf.addr = (uintptr_t)&byte;
		cmd.copy_small.buf.len = 1;
		cmd.copy_small.dst = w->dev + (uint64_t)w->id;
		post(w->fd, cmd);
	}
	cmd = raw_cmd(QCU_OP_COPY_D2H);
	cmd.tid = 100 + (__u32)w->id;
	cmd.copy_d2h.buf.addr = (uintptr_t)&byte;
	cmd.copy_d2h.buf.len = 1;
	cmd.copy_d2h.src = w->dev + (uint64_t)w->id;
	byte = 0;
	SAME(raw_submit(w->fd, &cmd), 0);
	SAME(byte, (unsigned char)(149 + w->id));
	return NULL;
}

/* The ring is full most of the time. All threads wait for room, and no command is lost. */
static void full_ring(void)
{
	static struct worker w[THREADS];
	int fd = raw_session(), i;
	uint64_t dev = raw_malloc(fd, PAGE);

	for (i = 0; i < THREADS; i++) {
		w[i] = (struct worker){.fd = fd, .id = i, .dev = dev};
		SAME(pthread_create(&w[i].thread, NULL, flood, &w[i]), 0);
	}
	for (i = 0; i < THREADS; i++)
		SAME(pthread_join(w[i].thread, NULL), 0);
	raw_works(fd);
}

static void *flood_for_ever(void *arg)
{
	struct worker *w = arg;

	for (;;) {
		struct qCUcmd cmd = copy_cmd(QCU_OP_COPY_H2D, w->dev, WINDOW, 4 * MIB);

		cmd.tid = 100 + (__u32)w->id;
		submit(w->fd, &cmd, 1, NULL);
	}
	return NULL;
}

/* The process ends or is killed while the ring is full and threads wait for room. */
static void ends_with_work(void)
{
	static struct worker w[16];
	int round, i, status;

	for (round = 0; round < 6; round++) {
		pid_t pid = fork();

		if (!pid) {
			int fd = raw_session();
			uint64_t dev = raw_malloc(fd, 4 * MIB);

			memset(raw_chunks(fd, 0, 4 * MIB), round, 4 * MIB);
			for (i = 0; i < 16; i++) {
				w[i] = (struct worker){.fd = fd, .id = i, .dev = dev};
				pthread_create(&w[i].thread, NULL, flood_for_ever, &w[i]);
			}
			usleep(100000);
			if (round % 2)
				_exit(3);
			pause();
		}
		usleep(300000);
		kill(pid, SIGKILL);
		SAME(waitpid(pid, &status, 0), pid);
		SAME(WIFSIGNALED(status) || WEXITSTATUS(status) == 3, 1);
	}
}

int main(int argc, char **argv)
{
	static const struct raw_case cases[] = {
		{"what_they_cost", what_they_cost},
		{"mixed", mixed},
		{"may_not_be_posted", may_not_be_posted},
		{"errors_are_kept", errors_are_kept},
		{"unmapped_at_once", unmapped_at_once},
		{"target_unmapped", target_unmapped},
		{"full_ring", full_ring},
		{"ends_with_work", ends_with_work},
		{0},
	};

	return raw_main(argc, argv, cases);
}
