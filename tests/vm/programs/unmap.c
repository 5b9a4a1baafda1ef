// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Mappings that end while the GPU is busy for an unlimited time: a host function that this program
 * does not run holds up a stream. The memory of the mappings stays until the GPU is done. Meanwhile
 * the program can make and use other mappings, however many are waiting to be released. Only a
 * mapping at the same addresses has to wait.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "mem.h"

#define SMALL  QCU_CHUNK_MIN
#define MANY   1100 /* more than any ring of QEMU can hold at once */
#define STREAM QCU_ID_FIRST
#define OTHER  (QCU_ID_FIRST + 1)

static int fd;
static uint64_t dev;

static void stream_create(uint32_t stream)
{
	struct qCUcmd cmd = raw_cmd(QCU_OP_STREAM_CREATE);

	cmd.stream_create.stream = stream;
	cmd.stream_create.flags = 1; /* does not wait for the default stream */
	SAME(raw_submit(fd, &cmd), 0);
}

static void start(void)
{
	fd = raw_session();
	mem_chunk_size(fd, SMALL);
	dev = raw_malloc(fd, SMALL);
	stream_create(STREAM);
	stream_create(OTHER);
}

/* After this call, the GPU finishes nothing. */
static void hold(void)
{
	struct qCUcmd cmd = raw_cmd(QCU_OP_HOST_FUNC);

	cmd.host_func.token = 5;
	cmd.host_func.stream = STREAM;
	SAME(raw_submit(fd, &cmd), 0);
}

static void let_go(void)
{
	struct qCUcmd cmd = raw_cmd(QCU_OP_HOST_NEXT);

	cmd.host_next.wait = 1;
	SAME(raw_submit(fd, &cmd), 0);
	SAME(cmd.host_next.token, 5);
	cmd = raw_cmd(QCU_OP_HOST_NEXT);
	cmd.host_next.done = 5;
	SAME(raw_submit(fd, &cmd), 0);
}

/* Makes a new mapping and fills it. use() copies it to the device and back. */
static char *mapping(size_t at)
{
	char *p = raw_chunks(fd, at, SMALL);

	mem_fill(p, SMALL, at);
	return p;
}

static void use(const char *p)
{
	static char back[SMALL];

	SAME(mem_copy(fd, QCU_OP_COPY_H2D, dev, (char *)p, SMALL, OTHER, QCU_COPY_SYNC), 0);
	SAME(mem_copy(fd, QCU_OP_COPY_D2H, dev, back, SMALL, OTHER, QCU_COPY_SYNC), 0);
	SAME(mem_differs(p, back, SMALL), SMALL);
}

/* Many mappings end; mappings made after them are not held up. */
static void many(void)
{
	const long each = SMALL / 4096;
	static char *p[MANY];
	int i;

	start();
	for (i = 0; i < MANY; i++) {
		p[i] = mapping(i * SMALL);
		use(p[i]);
	}
	hold();
	for (i = 0; i < MANY; i++)
		SAME(munmap(p[i], SMALL), 0);
	for (i = 0; i < 20; i++)
		use(mapping((MANY + i) * SMALL));
	/* The GPU could still write to all of them. */
	SAME(raw_stat("chunk_pages"), (MANY + 20) * each);
	SAME(raw_stat("groups"), MANY + 20);
	let_go();
	raw_stat_becomes("chunk_pages", 20 * each);
	SAME(mem_stats(fd).mapped_bytes, 20 * SMALL);
	for (i = 0; i < MANY; i++)
		use(mapping(i * SMALL));
}

/*
 * Posted copies use the memory. No caller waits for them, and the guest gets no interrupt at their
 * end. The memory comes back without another call, whether or not the copies are done when the
 * mapping ends.
 */
static void posted(void)
{
	struct qCUcmd cmds[16];
	struct qcu_submit s = {.cmds = (uintptr_t)cmds};
	int round, i;
	char *p;

	start();
	for (round = 0; round < 40; round++) {
		p = mapping(0);
		s.count = 1 + (uint32_t)round % 16;
		for (i = 0; i < (int)s.count; i++) {
			cmds[i] = raw_cmd(QCU_OP_COPY_H2D);
			cmds[i].flags = QCU_F_POSTED;
			cmds[i].copy_h2d.buf.addr = (uintptr_t)p;
			cmds[i].copy_h2d.buf.len = SMALL;
			cmds[i].copy_h2d.dst = dev;
			cmds[i].copy_h2d.stream = OTHER;
			cmds[i].copy_h2d.flags = QCU_COPY_QUEUED;
		}
		SAME(ioctl(fd, QCU_IOC_SUBMIT, &s), s.count);
		if (round % 2)
			usleep(2000);
		SAME(munmap(p, SMALL), 0);
		raw_stat_becomes("chunk_pages", 0);
	}
}

static atomic_bool used;

static void *use_it(void *p)
{
	struct qCUcmd cmd = raw_cmd(QCU_OP_HOST_REGISTER);

	cmd.tid = 2;
	cmd.host_register.buf.addr = (uintptr_t)p;
	cmd.host_register.buf.len = SMALL;
	SAME(raw_submit(fd, &cmd), 0);
	used = true;
	return NULL;
}

/* A mapping at the addresses of one that has ended waits for it, and holds up no other mapping. */
static void same_addresses(void)
{
	pthread_t thread;
	char *p, *q;

	start();
	use(mapping(0));
	hold();
	SAME(munmap(WINDOW, SMALL), 0);
	p = mapping(0);
	mem_fill(p, SMALL, 77);
	SAME(pthread_create(&thread, NULL, use_it, p), 0);
	usleep(100000);
	q = mapping(4 * SMALL);
	use(q);
	SAME(used, false);
	let_go();
	SAME(pthread_join(thread, NULL), 0);
	SAME(used, true);
	use(p);
	use(q);
}

/*
 * The mirror refuses a map at addresses that it uses itself. Such a map does not have to wait: the
 * memory gets other addresses in the mirror at once.
 */
static void refused(void)
{
	struct qCUcmd cmd = raw_cmd(QCU_OP_HOST_REGISTER);
	char *p;

	start();
	use(mapping(0));
	hold();
	SAME(munmap(WINDOW, SMALL), 0);
	p = mmap((void *)(dev & ~4095ull), 4096, RW,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	SAME((uintptr_t)p, dev & ~4095ull);
	cmd.host_register.buf.addr = (uintptr_t)p;
	cmd.host_register.buf.len = 4096;
	SAME(raw_submit(fd, &cmd), 0);
	SAME(cmd.host_register.device == (uintptr_t)p, 0);
	SAME(raw_stat("pinned_pages"), 1);
	let_go();
	cmd = raw_cmd(QCU_OP_HOST_UNREGISTER);
	cmd.host_unregister.addr = (uintptr_t)p;
	cmd.host_unregister.len = 4096;
	SAME(raw_submit(fd, &cmd), 0);
	SAME(raw_stat("pinned_pages"), 0);
}

/* The process is killed while a mapping waits, and the stream is never released. */
static void killed(void)
{
	int status, fds[2];
	pthread_t thread;
	char byte;
	pid_t pid;

	SAME(pipe(fds), 0);
	pid = fork();
	if (!pid) {
		start();
		use(mapping(0));
		use(mapping(SMALL));
		hold();
		SAME(munmap(WINDOW, 2 * SMALL), 0);
		SAME(pthread_create(&thread, NULL, use_it, mapping(0)), 0);
		usleep(100000);
		SAME(write(fds[1], "x", 1), 1);
		pause();
	}
	close(fds[1]);
	SAME(read(fds[0], &byte, 1), 1);
	SAME(kill(pid, SIGKILL), 0);
	SAME(waitpid(pid, &status, 0), pid);
	SAME(WIFSIGNALED(status), 1);
	raw_stat_becomes("chunk_pages", 0);
	start();
	use(mapping(0));
}

int main(int argc, char **argv)
{
	static const struct raw_case cases[] = {
		{"many", many},	      {"posted", posted}, {"same_addresses", same_addresses},
		{"refused", refused}, {"killed", killed}, {NULL, NULL},
	};

	return raw_main(argc, argv, cases);
}
