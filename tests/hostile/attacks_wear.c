// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Attacks that use up resources: page tables, queues that never empty, images, threads, objects. No
 * attack may cost the host more than a bound. The bound is on memory, not on time: the private
 * pages of each process, its page tables, and its memfds.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/hostile/attack.h"

#define Q  ATTACK_FIRST
#define MB (1ull << 20)

/* The sanitizer's shadow memory and quarantine are not the guest's doing. */
#ifdef __SANITIZE_ADDRESS__
#define HELD_BACK 8
#else
#define HELD_BACK 1
#endif

static bool bounded(struct scene *s, uint64_t before, uint64_t bound)
{
	uint64_t now = host_cost(&s->h), more = now > before ? now - before : 0;

	printf("%llu MiB more, of %llu at most\n", (unsigned long long)(more / MB),
	       (unsigned long long)(bound / MB));
	return more <= bound * HELD_BACK || fell("that is too much");
}

/*
 * Posts a command and lets the ring go on. Returns false if the ring stays full, or if the session
 * is over.
 */
static bool push(struct scene *s, unsigned int q, const struct qCUcmd *c, const void *tail,
		 uint32_t len)
{
	struct guest *g = &s->g;
	unsigned int i;

	for (i = 0; i < 500; i++) {
		guest_take(g, q);
		if (guest_post(g, q, c, tail, len) >= 0) {
			guest_kick(g, q);
			return true;
		}
		guest_kick(g, q);
		usleep(1000);
	}
	return false;
}

/* Maps one page of guest memory so often that the maps add up to a terabyte. */
static bool segs_repeat(struct scene *s)
{
	struct guest *g = &s->g;
	struct qcu_seg *segs = (void *)(g->ram + GUEST_SPACE(Q));
	const uint64_t len = 16384ull * 0x10000;
	uint64_t before = host_cost(&s->h);
	unsigned int n;
	int rc = 0;

	for (n = 0; n < 16384; n++)
		segs[n] = (struct qcu_seg){GUEST_SPACE(Q) + 0x400000, 0x10000};
	guest_fresh(g, Q);
	for (n = 0; n < 64 && rc != GUEST_GONE; n++) {
		struct qCUcmd c = command(QCU_OP_MAP, 0);

		c.flags = QCU_F_SEGS;
		c.map.va = QCU_WINDOW_BASE + n * len;
		c.map.len = len;
		rc = guest_ask_at(g, Q, &c, GUEST_SPACE(Q), 16384 * sizeof(*segs));
		if (!rc)
			continue;
		printf("map %u: %d\n", n, rc);
		break;
	}
	return bounded(s, before, 32 * MB);
}

/* Sends copies that carry their bytes with them, behind a host function that nobody runs. */
static bool small_copies(struct scene *s)
{
	static uint8_t bytes[GUEST_TAIL];
	struct qCUcmd c = command(QCU_OP_COPY_SMALL, 1);
	uint64_t before, device;
	unsigned int n;

	guest_fresh(&s->g, Q);
	before = host_cost(&s->h);
	if (cmd_malloc(&s->g, Q, 0x10000, &device) || cmd_stream(&s->g, Q, 2) ||
	    cmd_host_func(&s->g, Q, 2, 7))
		die("the attack cannot be set up");
	memset(bytes, 0x41, sizeof(bytes));
	c.flags = QCU_F_MSG | QCU_F_POSTED;
	c.copy_small.buf.len = sizeof(bytes);
	c.copy_small.dst = device;
	c.copy_small.stream = 2;
	for (n = 0; n < 100000; n++)
		if (!push(s, Q, &c, bytes, sizeof(bytes)))
			break;
	printf("%u copies are taken\n", n);
	/* As much as a session may queue (docs/limits.md), and something for the rest. */
	return bounded(s, before, 300 * MB);
}

/* The same with memsets, events, host functions and copies in the GPU. */
static bool queued_work(struct scene *s)
{
	static const uint16_t ops[] = {QCU_OP_MEMSET, QCU_OP_EVENT_RECORD, QCU_OP_STREAM_WAIT_EVENT,
				       QCU_OP_HOST_FUNC, QCU_OP_COPY_D2D};
	uint64_t before, device;
	unsigned int n, taken;

	for (n = 0; n < sizeof(ops) / sizeof(ops[0]); n++) {
		struct qCUcmd c = command(QCU_OP_EVENT_CREATE, 1);

		guest_fresh(&s->g, Q);
		before = host_cost(&s->h);
		c.event_create.event = 3;
		if (cmd_malloc(&s->g, Q, 0x10000, &device) || cmd_stream(&s->g, Q, 2) ||
		    guest_ask(&s->g, Q, &c, NULL, 0) || cmd_host_func(&s->g, Q, 2, 7))
			die("the attack cannot be set up");
		c = command(ops[n], 1);
		c.flags = QCU_F_POSTED;
		switch (ops[n]) {
		case QCU_OP_MEMSET:
			c.memset.dst = device;
			c.memset.width = 64;
			c.memset.height = 1;
			c.memset.elem = 1;
			c.memset.stream = 2;
			break;
		case QCU_OP_EVENT_RECORD:
			c.event_record.event = 3;
			c.event_record.stream = 2;
			break;
		case QCU_OP_STREAM_WAIT_EVENT:
			c.stream_wait_event.event = 3;
			c.stream_wait_event.stream = 2;
			break;
		case QCU_OP_HOST_FUNC:
			c.host_func.token = 9;
			c.host_func.stream = 2;
			break;
		default:
			c.copy_d2d.dst = device;
			c.copy_d2d.src = device + 64;
			c.copy_d2d.len = 64;
			c.copy_d2d.stream = 2;
		}
		for (taken = 0; taken < 100000; taken++)
			if (!push(s, Q, &c, NULL, 0))
				break;
		printf("command %u: %u are taken\n", ops[n], taken);
		if (!bounded(s, before, 64 * MB))
			return false;
	}
	return true;
}

static bool module_flood(struct scene *s)
{
	struct guest *g = &s->g;
	uint8_t *image = g->ram + GUEST_SPACE(Q);
	const size_t bytes = 1 * MB;
	uint64_t before;
	uint32_t n;
	int rc = 0;

	/* A variable that is mostly initialised, so that the compiler cannot leave it out. */
	n = (uint32_t)snprintf((char *)image, 200,
			       ".version 8.0\n.target sm_75\n.address_size 64\n"
			       ".visible .global .align 1 .b8 v[65536] = {1");
	while (n < bytes - 300000) {
		memcpy(image + n, ",7", 2);
		n += 2;
		if (n > 65536 * 2)
			break;
	}
	n += (uint32_t)snprintf((char *)image + n, 8, "};\n//");
	memset(image + n, 'x', bytes - 1 - n);
	image[bytes - 1] = 0;
	guest_fresh(g, Q);
	before = host_cost(&s->h);
	for (n = 2; n < 600 && !rc; n++)
		rc = cmd_load(g, Q, n, GUEST_SPACE(Q), bytes);
	printf("%u images are taken, then: %d\n", n - 2, rc);
	if (!bounded(s, before, 256 * MB))
		return false;
	/* One image that is the same page, many times. */
	{
		struct qcu_seg *segs = (void *)(g->ram + GUEST_SPACE(Q) + 0x200000);
		struct qCUcmd c = command(QCU_OP_MODULE_LOAD, 1);

		for (n = 0; n < 16384; n++)
			segs[n] = (struct qcu_seg){GUEST_SPACE(Q), 0x10000};
		guest_fresh(g, Q);
		before = host_cost(&s->h);
		c.flags = QCU_F_SEGS;
		c.module_load.buf.len = 16384ull * 0x10000;
		c.module_load.module = 2;
		rc = guest_ask_at(g, Q, &c, GUEST_SPACE(Q) + 0x200000, 16384 * sizeof(*segs));
		printf("an image of 1 GiB: %d\n", rc);
	}
	return bounded(s, before, 256 * MB);
}

/* Sends rows that a CPU has to carry, on many lanes at once, behind a host function. */
static bool rect_carry(struct scene *s)
{
	const uint32_t width = 24u << 20;
	uint64_t before, device;
	unsigned int n;

	guest_fresh(&s->g, Q);
	before = host_cost(&s->h);
	if (cmd_malloc(&s->g, Q, 2ull * width, &device) || cmd_stream(&s->g, Q, 2) ||
	    cmd_host_func(&s->g, Q, 2, 7))
		die("the attack cannot be set up");
	for (n = 0; n < 60; n++) {
		struct qcu_seg segs[32];
		struct qCUcmd c = command(QCU_OP_RECT_H2D, 10 + n);
		uint64_t left = 2ull * width, k;

		for (k = 0; left; k++) {
			uint64_t part = left < 0x1ff000 ? left : 0x1ff000;

			segs[k] = (struct qcu_seg){GUEST_SPACE(Q) + (k & 1) * 0x200000, part};
			left -= part;
		}
		c.flags = QCU_F_SEGS;
		c.rect_h2d.buf.len = 2ull * width;
		c.rect_h2d.dst = device;
		c.rect_h2d.pitch = c.rect_h2d.dst_pitch = c.rect_h2d.width = width;
		c.rect_h2d.height = 2;
		c.rect_h2d.stream = 2;
		if (!push(s, Q, &c, segs, (uint32_t)(k * sizeof(segs[0]))))
			break;
	}
	usleep(300000);
	printf("%u rectangles are on their way\n", n);
	return bounded(s, before, 256 * MB);
}

static unsigned int threads_of(pid_t pid)
{
	char path[64], line[128];
	unsigned int n = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	f = fopen(path, "r");
	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "Threads: %u", &n) == 1)
			break;
	if (f)
		fclose(f);
	return n;
}

static bool lane_flood(struct scene *s)
{
	uint64_t before = host_cost(&s->h);
	unsigned int q, n, threads = 0;

	for (q = Q; q <= GUEST_SESSIONS; q++) {
		guest_fresh(&s->g, q);
		for (n = 0; n < 1000; n++) {
			int rc = cmd_simple(&s->g, q, QCU_OP_INFO, 1 + n * 7919);

			if (rc == GUEST_GONE)
				break;
			if (rc < 0)
				return fell("INFO of thread %u: %d", n, rc);
		}
		threads += threads_of(host_mirror(&s->h, q));
	}
	printf("%u threads\n", threads);
	if (threads > 7 * 300)
		return fell("that is too many threads");
	return bounded(s, before, 160 * MB);
}

/* Makes as many objects of each kind as there are numbers. */
static bool object_flood(struct scene *s)
{
	static const struct {
		uint16_t op;
		const char *name;
	} kinds[] = {
		{QCU_OP_STREAM_CREATE, "streams"},	 {QCU_OP_EVENT_CREATE, "events"},
		{QCU_OP_POOL_CREATE, "pools"},		 {QCU_OP_ARRAY_CREATE, "arrays"},
		{QCU_OP_COND_CREATE, "graphs"},		 {QCU_OP_MALLOC, "allocations"},
		{QCU_OP_GREEN_CREATE, "green contexts"},
	};
	unsigned int i, n;
	uint64_t before;
	bool over;

	for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		guest_fresh(&s->g, Q);
		before = host_cost(&s->h);
		for (n = QCU_ID_FIRST; n <= QCU_ID_MAX; n++) {
			struct qCUcmd c = command(kinds[i].op, 1);

			if (c.op == QCU_OP_MALLOC)
				c.malloc.size = 1;
			else
				c.words[0] = n;
			if (c.op == QCU_OP_GREEN_CREATE)
				c.green_create.members[0] = 1;
			if (c.op == QCU_OP_ARRAY_CREATE) {
				c.array_create.width = c.array_create.height = 16;
				c.array_create.bits[0] = 32;
			}
			if (!push(s, Q, &c, NULL, 0))
				break;
		}
		if (!session_settled(s, Q, &over))
			return false;
		printf("%s: %u threads; ", kinds[i].name, threads_of(host_mirror(&s->h, Q)));
		if (!bounded(s, before, 128 * MB))
			return false;
	}
	return true;
}

static bool print_flood(struct scene *s)
{
	static const char image[] =
		".version 8.0\n.target sm_75\n.address_size 64\n"
		".extern .func (.param .b32 r) vprintf (.param .b64 f, .param .b64 a);\n"
		".global .align 1 .b8 f[14] = "
		"{120,120,120,120,120,120,120,120,120,27,91,50,10,0};\n"
		".visible .entry k()\n{\n"
		".reg .pred %p<2>; .reg .b32 %r<4>; .reg .b64 %d<4>;\n"
		"mov.u32 %r1, 0;\nagain:\nmov.u64 %d1, f; cvta.global.u64 %d2, %d1;\n"
		"{\n.param .b64 p0; st.param.b64 [p0], %d2;\n"
		".param .b64 p1; st.param.b64 [p1], 0;\n.param .b32 r0;\n"
		"call.uni (r0), vprintf, (p0, p1);\nld.param.b32 %r2, [r0];\n}\n"
		"add.u32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, 1000; @%p1 bra again;\nret;\n}\n";
	struct qCUcmd c;
	uint64_t before;
	unsigned int n;
	bool over;

	guest_fresh(&s->g, Q);
	before = host_cost(&s->h);
	/* Set the print buffer as large as the device allows. */
	for (n = 1; n < 64; n++) {
		c = command(QCU_OP_LIMIT_SET, 1);
		c.limit_set.limit = 1;
		c.limit_set.value = 1ull << n;
		if (guest_ask(&s->g, Q, &c, NULL, 0) == GUEST_GONE)
			return fell("LIMIT_SET ends the session");
	}
	memcpy(s->g.ram + GUEST_SPACE(Q), image, sizeof(image));
	if (cmd_load(&s->g, Q, 2, GUEST_SPACE(Q), sizeof(image)) || cmd_find(&s->g, Q, 2, 2, "k"))
		die("the kernel cannot be loaded");
	for (n = 0; n < 40; n++)
		if (cmd_launch(&s->g, Q, 2, QCU_STREAM_LEGACY, 4, 0, 0) == GUEST_GONE)
			return fell("the session is over");
	cmd_simple(&s->g, Q, QCU_OP_DEVICE_SYNC, 1);
	/* The print buffer is memory of the GPU. */
	return session_settled(s, Q, &over) && bounded(s, before, 96 * MB);
}

/*
 * Sessions come and go, closed properly or ended for a broken rule. They must leave nothing behind.
 */
static bool session_flood(struct scene *s)
{
	unsigned int round, fds = 0, children = 0, q;
	pid_t list[64];
	uint64_t before = 0;

	for (round = 0; round < 120; round++) {
		for (q = Q; q < Q + 3; q++) {
			guest_fresh(&s->g, q);
			cmd_simple(&s->g, q, (round + q) % 3 ? QCU_OP_INFO : QCU_OP_COUNT, 1);
		}
		for (q = Q; q < Q + 3; q++)
			if (guest_close(&s->g, q))
				return fell("CLOSE fails");
		if (round == 20) {
			before = host_cost(&s->h);
			fds = host_fds(s->h.pid);
			children = host_children(&s->h, list, 64);
		}
	}
	if (host_fds(s->h.pid) > fds)
		return fell("%u descriptors, before that %u", host_fds(s->h.pid), fds);
	if (host_children(&s->h, list, 64) > children)
		return fell("processes are left");
	return bounded(s, before, 8 * MB);
}

const struct attack wear_attacks[] = {
	{"segs_repeat", segs_repeat, {NULL}, false, "one page named a million times"},
	{"small_copies", small_copies, {NULL}, false, "bytes that wait behind a host function"},
	{"queued_work", queued_work, {NULL}, false, "work that waits behind a host function"},
	{"module_flood", module_flood, {"--vram", "64M"}, false, "many images, and large ones"},
	{"rect_carry",
	 rect_carry,
	 {"--vram", "64M"},
	 false,
	 "rows that a CPU carries, on 60 lanes"},
	{"lane_flood", lane_flood, {NULL}, false, "threads without end in all sessions"},
	{"object_flood", object_flood, {"--vram", "64M"}, false, "every number for every kind"},
	{"print_flood",
	 print_flood,
	 {"--vram", "128M", "--limit", "device-memory=24M"},
	 false,
	 "kernels print, nobody reads"},
	{"session_flood", session_flood, {NULL}, false, "sessions come and go"},
	{0},
};
