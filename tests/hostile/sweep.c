// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Plays a fixed script of guest commands many times. Each time another call of one kind fails, in
 * the device or in a mirror (faults.c). Each time the test checks: every command is answered, no
 * process crashes or hangs, the next session works, and the main process has as many descriptors
 * and children as before.
 */
#define _GNU_SOURCE
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/hostile/attack.h"

#define Q	 ATTACK_FIRST
#define NO_FAULT 3 /* exit code: there were fewer calls than n */
#define LEAST	 60
#define FAULTS	 "build/tests/hostile/qcu-device-faults"

static const char *const kinds[] = {
	"malloc",	"calloc",     "realloc", "aligned_alloc",  "strdup",
	"strndup",	"tsearch",    "mmap",	 "mmap64",	   "mremap",
	"fork",		"socketpair", "sendmsg", "recvmsg",	   "eventfd",
	"memfd_create", "pipe2",      "dup2",	 "pthread_create", "op",
};
#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

static struct scene s;
static bool over; /* the session of the script is over */

static int play(struct qCUcmd *c, const void *tail, uint32_t len)
{
	int rc;

	if (over)
		return GUEST_GONE;
	rc = guest_ask(&s.g, Q, c, tail, len);
	if (rc == GUEST_GONE)
		over = true;
	else if (rc < 0)
		die("command %u: no answer (%d)", c->op, rc);
	return rc;
}

/* Sends a command; the numbers are in the order of the record's words. */
static int simple(uint16_t op, uint32_t a, uint32_t b, uint32_t d)
{
	struct qCUcmd c = command(op, 1);

	c.words[0] = a;
	c.words[1] = b;
	c.words[2] = d;
	return play(&c, NULL, 0);
}

static int map(uint64_t va, uint64_t gpa, uint64_t len)
{
	const struct qcu_seg seg = {gpa, len};
	struct qCUcmd c = command(QCU_OP_MAP, 0);

	c.flags = QCU_F_SEGS;
	c.map.va = va;
	c.map.len = len;
	c.map.chunk_bytes = QCU_CHUNK_MIN;
	return play(&c, &seg, sizeof(seg));
}

static void memory(uint64_t device)
{
	struct qcu_seg segs[8];
	uint8_t bytes[64] = {1};
	struct qCUcmd c;
	unsigned int i, down;

	/* Small pieces that are gathered through slots, then whole chunks. */
	for (i = 0; i < 8; i++)
		segs[i] = (struct qcu_seg){GUEST_SPACE(Q) + i * 0x3000, 1000 + i};
	for (down = 0; down < 2; down++) {
		c = command(down ? QCU_OP_COPY_D2H : QCU_OP_COPY_H2D, 1);
		c.flags = QCU_F_SEGS;
		c.copy_h2d.buf.len = 8028;
		c.copy_h2d.dst = device;
		play(&c, segs, sizeof(segs));
		c = command(down ? QCU_OP_COPY_D2H : QCU_OP_COPY_H2D, 2);
		c.flags = QCU_F_WINDOW;
		c.copy_h2d.buf = (struct qcu_buf){QCU_WINDOW_BASE, 0x18000};
		c.copy_h2d.dst = device;
		play(&c, NULL, 0);
		c = command(down ? QCU_OP_RECT_D2H : QCU_OP_RECT_H2D, 1);
		c.flags = QCU_F_WINDOW;
		c.rect_h2d.buf = (struct qcu_buf){QCU_WINDOW_BASE, 4000 * 19 + 3000};
		c.rect_h2d.dst = device;
		c.rect_h2d.pitch = 4000;
		c.rect_h2d.dst_pitch = c.rect_h2d.width = 3000;
		c.rect_h2d.height = 20;
		play(&c, NULL, 0);
	}
	c = command(QCU_OP_COPY_SMALL, 1);
	c.flags = QCU_F_MSG;
	c.copy_small.buf.len = sizeof(bytes);
	c.copy_small.dst = device;
	play(&c, bytes, sizeof(bytes));
	c = command(QCU_OP_COPY_D2D, 1);
	c.copy_d2d.dst = device;
	c.copy_d2d.src = device + 0x8000;
	c.copy_d2d.len = 0x1000;
	play(&c, NULL, 0);
	c = command(QCU_OP_MEMSET, 1);
	c.memset.dst = device;
	c.memset.width = 0x1000;
	c.memset.height = c.memset.elem = 1;
	play(&c, NULL, 0);
	c = command(QCU_OP_HOST_REGISTER, 1);
	c.flags = QCU_F_WINDOW;
	c.host_register.buf = (struct qcu_buf){QCU_WINDOW_BASE, 0x10000};
	play(&c, NULL, 0);
	c = command(QCU_OP_HOST_UNREGISTER, 1);
	c.host_unregister.addr = QCU_WINDOW_BASE;
	c.host_unregister.len = 0x10000;
	play(&c, NULL, 0);
	c = command(QCU_OP_IPC_MEM_EXPORT, 1);
	c.ipc_mem_export.ptr = device;
	play(&c, NULL, 0);
}

static void streams(void)
{
	struct qCUcmd c;
	int rc;

	simple(QCU_OP_STREAM_CREATE, 5, 1, 0);
	simple(QCU_OP_EVENT_CREATE, 5, 0, 0);
	simple(QCU_OP_EVENT_RECORD, 5, 5, 0);
	simple(QCU_OP_STREAM_WAIT_EVENT, QCU_STREAM_PER_THREAD, 5, 0);
	c = command(QCU_OP_WATCH, 1);
	c.flags = QCU_F_WINDOW;
	c.watch.buf = (struct qcu_buf){QCU_WINDOW_BASE, QCU_WATCH_BYTES};
	play(&c, NULL, 0);
	c = command(QCU_OP_HOST_FUNC, 1);
	c.host_func.token = 7;
	c.host_func.stream = 5;
	rc = play(&c, NULL, 0);
	c = command(QCU_OP_STREAM_QUERY, 1);
	c.stream_query.stream = 5;
	c.stream_query.slot = 1;
	c.stream_query.token = 9;
	play(&c, NULL, 0);
	if (!rc && !over)
		over = !cmd_host_run(&s.g, Q, 1);
	simple(QCU_OP_STREAM_SYNC, 5, 0, 0);
	simple(QCU_OP_EVENT_SYNC, 5, 0, 0);
	simple(QCU_OP_EVENT_QUERY, 5, 0, 0);
	simple(QCU_OP_STREAM_DESTROY, 5, 0, 0);
	simple(QCU_OP_EVENT_DESTROY, 5, 0, 0);
}

static void modules(uint64_t device)
{
	const struct qcu_seg image = {GUEST_SPACE(Q) + 0x200000, plain_image_bytes};
	struct {
		struct qcu_launch_msg msg;
		uint64_t p;
		uint32_t n;
	} __attribute__((packed)) m = {
		.msg = {.grid = {2, 1, 1}, .block = {64, 1, 1}, .param_bytes = 12},
		.p = device,
		.n = 100,
	};
	struct qcu_seg out = {GUEST_SPACE(Q) + 0x300000, 0x200};
	struct qCUcmd c = command(QCU_OP_MODULE_LOAD, 1);

	memcpy(s.g.ram + image.gpa, plain_image, plain_image_bytes);
	c.flags = QCU_F_SEGS;
	c.module_load.buf.len = image.len;
	c.module_load.module = 5;
	play(&c, &image, sizeof(image));
	c = command(QCU_OP_KERNEL_FIND, 1);
	c.flags = QCU_F_MSG;
	c.kernel_find.buf.len = 1;
	c.kernel_find.module = c.kernel_find.kernel = 5;
	play(&c, "k", 1);
	c = command(QCU_OP_VAR_FIND, 1);
	c.flags = QCU_F_MSG;
	c.var_find.buf.len = 1;
	c.var_find.module = 5;
	play(&c, "v", 1);
	c = command(QCU_OP_MODULE_NAMES, 1);
	c.flags = QCU_F_SEGS;
	c.module_names.buf.len = out.len;
	c.module_names.module = 5;
	play(&c, &out, sizeof(out));
	c = command(QCU_OP_KERNEL_INFO, 1);
	c.flags = QCU_F_SEGS;
	c.kernel_info.buf.len = out.len;
	c.kernel_info.kernel = 5;
	play(&c, &out, sizeof(out));
	c = command(QCU_OP_LAUNCH, 1);
	c.flags = QCU_F_MSG;
	c.launch.kernel = 5;
	c.launch.buf.len = sizeof(m);
	play(&c, &m, sizeof(m));
	c.tid = 3;
	c.launch.stream = QCU_STREAM_PER_THREAD;
	play(&c, &m, sizeof(m));
	simple(QCU_OP_DEVICE_SYNC, 0, 0, 0);
	simple(QCU_OP_OCCUPANCY, 5, 64, 0);
	simple(QCU_OP_MODULE_UNLOAD, 5, 0, 0);
}

static void objects(void)
{
	const struct qcu_seg seg = {GUEST_SPACE(Q), 64};
	struct qcu_texture_msg t = {.kind = QCU_TEXTURE_ARRAY, .array = 5};
	struct qCUcmd c = command(QCU_OP_ARRAY_CREATE, 1);
	uint32_t down;

	c.array_create.array = 5;
	c.array_create.width = c.array_create.height = 16;
	c.array_create.bits[0] = 32;
	play(&c, NULL, 0);
	for (down = 0; down < 2; down++) {
		c = command(down ? QCU_OP_ARRAY_READ : QCU_OP_ARRAY_WRITE, 1);
		c.flags = QCU_F_SEGS;
		c.array_write.buf.len = c.array_write.pitch = c.array_write.width = 64;
		c.array_write.array = 5;
		c.array_write.height = 1;
		play(&c, &seg, sizeof(seg));
	}
	c = command(QCU_OP_TEXTURE_CREATE, 1);
	c.flags = QCU_F_MSG;
	c.texture_create.buf.len = sizeof(t);
	if (!play(&c, &t, sizeof(t))) {
		uint64_t object = c.texture_create.object;

		c = command(QCU_OP_TEXTURE_DESTROY, 1);
		c.texture_destroy.object = object;
		play(&c, NULL, 0);
	}
	simple(QCU_OP_ARRAY_DESTROY, 5, 0, 0);
	simple(QCU_OP_POOL_CREATE, 5, 0, 0);
	c = command(QCU_OP_MALLOC_ASYNC, 1);
	c.malloc_async.size = 4096;
	c.malloc_async.pool = 5;
	if (!play(&c, NULL, 0)) {
		uint64_t ptr = c.malloc_async.ptr;

		c = command(QCU_OP_FREE_ASYNC, 1);
		c.free_async.ptr = ptr;
		play(&c, NULL, 0);
	}
	simple(QCU_OP_POOL_DESTROY, 5, 0, 0);
	simple(QCU_OP_COND_CREATE, 5, 0, 0);
	simple(QCU_OP_COND_DESTROY, 5, 0, 0);
	simple(QCU_OP_GREEN_PARTS, 0, 4, 0);
	c = command(QCU_OP_GREEN_CREATE, 1);
	c.green_create.green = 5;
	c.green_create.members[0] = 1;
	play(&c, NULL, 0);
	c = command(QCU_OP_GREEN_STREAM, 1);
	c.green_stream.stream = 9;
	c.green_stream.flags = 1;
	c.green_stream.green = 5;
	play(&c, NULL, 0);
	simple(QCU_OP_GREEN_DESTROY, 5, 0, 0);
	simple(QCU_OP_STREAM_DESTROY, 9, 0, 0);
}

static void script(void)
{
	struct qCUcmd c;
	uint64_t device = 0;

	simple(QCU_OP_INFO, 0, 0, 0);
	simple(QCU_OP_MEM_INFO, 0, 0, 0);
	map(QCU_WINDOW_BASE, GUEST_SPACE(Q), 0x10000);
	map(QCU_WINDOW_BASE + 0x10000, GUEST_SPACE(Q) + 0x40000, 0x10000);
	map(QCU_WINDOW_BASE + QCU_WINDOW_SIZE, GUEST_SPACE(Q) + 0x80000, 0x10000);
	c = command(QCU_OP_MALLOC, 1);
	c.malloc.size = 0x20000;
	if (!play(&c, NULL, 0))
		device = c.malloc.ptr;
	memory(device);
	streams();
	modules(device);
	objects();
	c = command(QCU_OP_UNMAP, 0);
	c.unmap.va = QCU_WINDOW_BASE;
	c.unmap.len = 0x20000;
	play(&c, NULL, 0);
	c = command(QCU_OP_FREE, 1);
	c.free.ptr = device;
	play(&c, NULL, 0);
	c = command(QCU_OP_THREAD_EXIT, 2);
	play(&c, NULL, 0);
	simple(QCU_OP_DEVICE_RESET, 0, 0, 0);
	simple(QCU_OP_INFO, 0, 0, 0);
}

/* Plays a session that must work, from OPEN to CLOSE. Returns 0 if the session works. */
static int one_that_works(void)
{
	int rc = guest_open(&s.g, Q);

	memcpy(s.g.ram + GUEST_SPACE(Q), plain_image, plain_image_bytes);
	rc = rc ? rc : cmd_load(&s.g, Q, GOOD_ID, GUEST_SPACE(Q), plain_image_bytes);
	rc = rc ? rc : cmd_find(&s.g, Q, GOOD_ID, GOOD_ID, "k");
	if (!rc && !good_work(&s.g, Q, 1, 3))
		rc = -1;
	return guest_close(&s.g, Q) || rc;
}

/* The main process may end, with a message, if it cannot get something that it needs. */
static void ended_by_itself(void)
{
	unsigned int tries;

	for (tries = 0; host_alive(&s.h) && tries < 2000; tries++)
		usleep(1000);
	if (host_alive(&s.h))
		return;
	/* The exit code is not 0. Here this is right. */
	host_stop(&s.h);
	fflush(NULL);
	_exit(s.h.bad[0] || s.h.controls || !host_said(&s.h, "qcu-device: ") ||
	      !host_said(&s.h, "fault: "));
}

static int once(const char *program, const char *kind, unsigned long n, unsigned int where)
{
	struct host_options o = {.program = program, .arg = {"--vram", "64M"}};
	unsigned int fds, children, tries;
	pid_t list[64];
	char text[64];
	bool ok;
	int rc;

	snprintf(text, sizeof(text), "%s:%lu:%u", kind, n, where);
	setenv("QCU_FAULT", text, 1);
	host_start(&s.h, &o);
	if (!where)
		atexit(ended_by_itself);
	guest_start(&s.g, s.h.sock);
	/* The first mirror meets no fault. What the device opens for it stays open. */
	rc = one_that_works();
	if (rc && where)
		die("the first session does not work: %d", rc);
	fds = host_fds(s.h.pid);
	children = host_children(&s.h, list, 64);
	rc = guest_open(&s.g, Q);
	over = rc != 0;
	if (!over) {
		script();
		if (guest_close(&s.g, Q))
			die("the session cannot be closed");
	}
	/* The main process may meet the fault in this session instead. */
	if (one_that_works() && (where || one_that_works()))
		die("no session works afterwards");
	for (tries = 0; host_children(&s.h, list, 64) > children && tries < 1000; tries++)
		usleep(1000);
	if (host_fds(s.h.pid) > fds || host_children(&s.h, list, 64) > children)
		die("%u descriptors and %u processes, before that %u and %u", host_fds(s.h.pid),
		    host_children(&s.h, list, 64), fds, children);
	guest_stop(&s.g);
	ok = host_stop(&s.h);
	/* A call that fails after the guest has gone shows in the exit code. */
	if (!where && host_said(&s.h, "fault: "))
		ok = !s.h.bad[0] && !s.h.controls;
	if (!ok)
		host_show(&s.h);
	fflush(NULL);
	_exit(!ok ? 1 : host_said(&s.h, "fault: ") ? 0 : NO_FAULT);
}

/* Returns how many calls have failed, or -1. */
static long sweep(const char *program, const char *kind, unsigned int where, unsigned int growth)
{
	unsigned long n = 1;
	long count = 0;
	int status;
	pid_t pid;

	for (;;) {
		fflush(NULL);
		pid = fork();
		if (pid < 0)
			die("fork fails");
		if (!pid)
			exit(once(program, kind, n, where));
		waitpid(pid, &status, 0);
		if (WIFEXITED(status) && WEXITSTATUS(status) == NO_FAULT)
			return count;
		if (status) {
			printf("%s %lu in %s: it did not hold (%x)\n", kind, n,
			       where ? "a mirror" : "qcu-device", status);
			return -1;
		}
		count++;
		n += 1 + n * growth / 100;
	}
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{"every", no_argument, NULL, 'e'},
		{"device", required_argument, NULL, 'd'},
		{NULL, 0, NULL, 0},
	};
	const char *program = FAULTS;
	unsigned int growth = 30, i, where;
	long total = 0;
	bool ok = true;
	int o;

	setvbuf(stdout, NULL, _IOLBF, 0);
	while ((o = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (o == 'e') {
			growth = 0;
		} else if (o == 'd') {
			program = optarg;
		} else {
			fprintf(stderr, "usage: sweep [--every] [--device PATH] [KIND]...\n");
			return 2;
		}
	}
	for (i = 0; i < KINDS; i++) {
		int k = optind;

		while (k < argc && strcmp(argv[k], kinds[i]))
			k++;
		if (optind < argc && k == argc)
			continue;
		for (where = 0; where < 3; where += 2) {
			long n = sweep(program, kinds[i], where, growth);

			printf("%s %s in %s: %ld have failed\n", n < 0 ? "FAIL" : "ok  ", kinds[i],
			       where ? "a mirror" : "qcu-device", n);
			ok &= n >= 0;
			total += n;
		}
	}
	/* A smaller number would mean that calls are no longer caught. */
	if (optind == argc && total < LEAST) {
		printf("FAIL only %ld calls have failed\n", total);
		ok = false;
	}
	return ok ? 0 : 1;
}
