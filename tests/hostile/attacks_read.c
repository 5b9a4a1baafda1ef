// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What a guest can read. No answer of the device may hold an address of one of its processes.
 * Memory that a session gets may hold nothing of an earlier session.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/hostile/attack.h"

#define Q ATTACK_FIRST

/*
 * Addresses that a guest is told: the window, the annex behind it, and the memory of software GPUs.
 * That memory is at the same place in every mirror.
 */
#define TOLD_FROM QCU_WINDOW_BASE
#define TOLD_TO	  0x400000000000ull

/* A mapping of this size is address space that a sanitizer has reserved. */
#define MAPPING_MAX (1ull << 40)

/*
 * AddressSanitizer's shadow memory, in its own build. Two small numbers side by side look like an
 * address in this range.
 */
static bool is_note(uint64_t from, uint64_t to)
{
#ifdef __SANITIZE_ADDRESS__
	return from >= 0x7fff7000 && to <= 0x10007fff8000;
#else
	(void)from;
	(void)to;
	return false;
#endif
}

#define RANGES 8192u
static struct range {
	uint64_t from, to;
} ranges[RANGES];
static unsigned int range_count;

static void add_range(uint64_t from, uint64_t to)
{
	unsigned int i;

	if (to - from >= MAPPING_MAX || (from >= TOLD_FROM && to <= TOLD_TO) || is_note(from, to))
		return;
	for (i = 0; i < range_count; i++)
		if (ranges[i].from <= from && to <= ranges[i].to)
			return;
	if (range_count == RANGES)
		die("a process has more mappings than this test can note");
	ranges[range_count++] = (struct range){from, to};
}

static void note_process(pid_t pid)
{
	unsigned long long from, to;
	char path[64], line[512], rights[8];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	f = fopen(path, "r");
	if (!f)
		die("%s cannot be read", path);
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "%llx-%llx %7s", &from, &to, rights) == 3 &&
		    strncmp(rights, "---", 3)) /* reserved address space, nothing is there */
			add_range(from, to);
	fclose(f);
}

/* Notes all present mappings of the main process and of the mirror. */
static void note(struct scene *s)
{
	pid_t mirror = host_mirror(&s->h, Q);

	if (!mirror)
		die("session %u has no mirror", Q);
	note_process(s->h.pid);
	note_process(mirror);
}

/* Returns false if a word of the data points into a noted mapping of the host. */
static bool clean(const void *data, size_t bytes, const char *what, unsigned int op)
{
	const uint8_t *p = data;
	unsigned int i;
	uint64_t word;
	size_t at;

	for (at = 0; at + sizeof(word) <= bytes; at += 4) {
		memcpy(&word, p + at, sizeof(word));
		/*
		 * Smaller values are numbers and text. No address is in the upper half of the
		 * address space.
		 */
		if (word < 1ull << 32 || word >> 47)
			continue;
		for (i = 0; i < range_count; i++)
			if (word >= ranges[i].from && word < ranges[i].to)
				return fell("%s (command %u) holds 0x%" PRIx64 " at %zu", what, op,
					    word, at);
	}
	return true;
}

/* Memory of its own for what a command sends or gets back. */
#define PLACE	    (GUEST_SPACE(Q) + 0x400000)
#define PLACE_BYTES 0x10000ull

/* Sends one command, with every number in it set to x. */
static bool any(struct scene *s, uint16_t op, uint32_t x)
{
	const struct qcu_seg seg = {PLACE, PLACE_BYTES};
	const struct qcu_rule *rule = qcu_rule(op);
	struct qCUcmd c = command(op, 1);
	const void *tail = NULL;
	uint32_t len = 0;
	unsigned int i;
	int rc;

	/* A reset would leave little for the commands after it. */
	if (!rule || !qcu_rule_user(rule) || op == QCU_OP_DEVICE_RESET)
		return true;
	for (i = rule->buffer == QCU_BUFFER_NONE ? 0 : sizeof(struct qcu_buf) / 4;
	     i < rule->in / 4u; i++)
		c.words[i] = x;
	if (op == QCU_OP_HOST_NEXT)
		c.host_next.wait = 0;
	memset(s->g.ram + PLACE, 0, PLACE_BYTES);
	switch (rule->buffer) {
	case QCU_BUFFER_MSG:
		c.flags = QCU_F_MSG;
		c.buf.len = op == QCU_OP_TEXTURE_CREATE ? sizeof(struct qcu_texture_msg) : 64;
		tail = s->g.ram + PLACE;
		len = (uint32_t)c.buf.len;
		break;
	case QCU_BUFFER_IN:
	case QCU_BUFFER_OUT:
		c.flags = QCU_F_SEGS;
		c.buf.len = seg.len;
		tail = &seg;
		len = sizeof(seg);
		break;
	case QCU_BUFFER_STAY:
		c.flags = QCU_F_WINDOW;
		c.buf = (struct qcu_buf){QCU_WINDOW_BASE, QCU_WATCH_BYTES};
	}
	rc = guest_ask(&s->g, Q, &c, tail, len);
	if (rc == GUEST_LATE || rc == GUEST_GONE)
		return fell("command %u with %u: %d", op, x, rc);
	note(s);
	/* Run the host function now, so that no later command waits for it. */
	if (!rc && op == QCU_OP_HOST_FUNC && !cmd_host_run(&s->g, Q, 1))
		return fell("a host function ends the session");
	return clean(&c, sizeof(c), "the answer", op) &&
	       clean(s->g.ram + PLACE, PLACE_BYTES, "what was asked for", op);
}

/* Makes one object of each kind, as number 2. */
static void make_objects(struct scene *s)
{
	struct guest *g = &s->g;
	struct qCUcmd c;
	uint64_t ptr;

	memcpy(g->ram + PLACE, plain_image, plain_image_bytes);
	if (cmd_map(g, Q, QCU_WINDOW_BASE, GUEST_SPACE(Q), 1 << 20) ||
	    cmd_load(g, Q, GOOD_ID, PLACE, plain_image_bytes) ||
	    cmd_find(g, Q, GOOD_ID, GOOD_ID, "k") || cmd_stream(g, Q, QCU_ID_FIRST) ||
	    cmd_malloc(g, Q, 1 << 20, &ptr))
		die("a session cannot do what it should");
	c = command(QCU_OP_EVENT_CREATE, 1);
	c.event_create.event = QCU_ID_FIRST;
	if (guest_ask(g, Q, &c, NULL, 0))
		die("no event");
	c = command(QCU_OP_ARRAY_CREATE, 1);
	c.array_create.array = QCU_ID_FIRST;
	c.array_create.width = c.array_create.height = 64;
	memset(c.array_create.bits, 0, sizeof(c.array_create.bits));
	c.array_create.bits[0] = 32;
	if (guest_ask(g, Q, &c, NULL, 0))
		die("no array");
	c = command(QCU_OP_POOL_CREATE, 1);
	c.pool_create.pool = QCU_ID_FIRST;
	if (guest_ask(g, Q, &c, NULL, 0))
		die("no pool");
	c = command(QCU_OP_COND_CREATE, 1);
	c.cond_create.cond = QCU_ID_FIRST;
	if (guest_ask(g, Q, &c, NULL, 0))
		die("no graph");
}

/* Sends a command whose numbers fit together: it must succeed. */
static bool some(struct scene *s, const char *what, struct qCUcmd *c, const void *tail,
		 uint32_t len)
{
	int rc = guest_ask(&s->g, Q, c, tail, len);

	note(s);
	if (rc)
		return fell("%s gives %d", what, rc);
	return clean(c, sizeof(*c), what, c->op);
}

static bool exports(struct scene *s)
{
	struct qCUcmd c = command(QCU_OP_MALLOC, 1);
	struct qcu_texture_msg t = {.kind = QCU_TEXTURE_ARRAY, .array = QCU_ID_FIRST};
	uint64_t ptr;

	c.malloc.size = 1 << 16;
	if (!some(s, "an allocation", &c, NULL, 0))
		return false;
	ptr = c.malloc.ptr;
	c = command(QCU_OP_IPC_MEM_EXPORT, 1);
	c.ipc_mem_export.ptr = ptr;
	if (!some(s, "an export", &c, NULL, 0))
		return false;
	c = command(QCU_OP_MALLOC_ASYNC, 1);
	c.malloc_async.size = 1 << 16;
	if (!some(s, "an allocation in a stream", &c, NULL, 0))
		return false;
	c = command(QCU_OP_TEXTURE_CREATE, 1);
	c.flags = QCU_F_MSG;
	c.buf.len = sizeof(t);
	if (!some(s, "a texture", &c, &t, sizeof(t)))
		return false;
	c = command(QCU_OP_COND_CREATE, 1);
	c.cond_create.cond = QCU_ID_FIRST + 1;
	c.cond_create.graph = QCU_ID_FIRST;
	if (!some(s, "a condition", &c, NULL, 0))
		return false;
	c = command(QCU_OP_VAR_FIND, 1);
	c.flags = QCU_F_MSG;
	c.var_find.buf.len = 1;
	c.var_find.module = GOOD_ID;
	return some(s, "a variable", &c, "v", 1);
}

static bool read_addresses(struct scene *s)
{
	static const uint32_t numbers[] = {0, 1, QCU_ID_FIRST, 64, 0xffff};
	unsigned int i;
	uint16_t op;

	guest_fresh(&s->g, Q);
	make_objects(s);
	note(s);
	if (!exports(s))
		return false;
	for (i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		for (op = 0; op < QCU_OP_COUNT; op++)
			if (!any(s, op, numbers[i]))
				return false;
	/* All of guest RAM: rings, watched pages, and whatever else the device has written. */
	return clean(s->g.ram, GUEST_RAM, "the VM's memory", 0);
}

/* ---- memory of earlier sessions ---- */

#define BLOCKS	    8u
#define BLOCK_BYTES (2ull << 20)
#define FILL	    0x5ec4e7c0u

static bool fill(struct scene *s, uint64_t ptr)
{
	struct qCUcmd c = command(QCU_OP_MEMSET, 1);
	int rc;

	c.memset.dst = ptr;
	c.memset.width = BLOCK_BYTES;
	c.memset.height = 1;
	c.memset.value = FILL;
	c.memset.elem = 4;
	c.memset.flags = QCU_COPY_SYNC;
	rc = guest_ask(&s->g, Q, &c, NULL, 0);
	return !rc || fell("a memset gives %d", rc);
}

/* Returns how many of the block's words are not zero; -1: the read failed, and this is printed. */
static int left_in(struct scene *s, struct qCUcmd *c)
{
	const struct qcu_seg seg = {PLACE, BLOCK_BYTES};
	const uint32_t *word = (const uint32_t *)(s->g.ram + PLACE);
	int n = 0, rc;
	size_t i;

	memset(s->g.ram + PLACE, 0xee, BLOCK_BYTES);
	c->flags = QCU_F_SEGS;
	c->buf.len = BLOCK_BYTES;
	rc = guest_ask(&s->g, Q, c, &seg, sizeof(seg));
	if (rc) {
		fell("reading gives %d", rc);
		return -1;
	}
	for (i = 0; i < BLOCK_BYTES / 4; i++)
		n += word[i] != 0;
	return n;
}

static int left_in_block(struct scene *s, uint64_t ptr)
{
	struct qCUcmd c = command(QCU_OP_COPY_D2H, 1);

	c.copy_d2h.src = ptr;
	c.copy_d2h.flags = QCU_COPY_SYNC;
	return left_in(s, &c);
}

static int left_in_array(struct scene *s, uint32_t array)
{
	struct qCUcmd c = command(QCU_OP_ARRAY_CREATE, 1);

	c.array_create.array = array;
	c.array_create.width = 1024;
	c.array_create.height = BLOCK_BYTES / 4096;
	c.array_create.bits[0] = 32;
	if (guest_ask(&s->g, Q, &c, NULL, 0)) {
		fell("no array");
		return -1;
	}
	c = command(QCU_OP_ARRAY_READ, 1);
	c.array_read.array = array;
	c.array_read.width = c.array_read.pitch = 4096;
	c.array_read.height = BLOCK_BYTES / 4096;
	c.array_read.flags = QCU_COPY_SYNC;
	return left_in(s, &c);
}

static bool allocate(struct scene *s, unsigned int i, uint64_t *ptr)
{
	struct qCUcmd c = command(i & 1 ? QCU_OP_MALLOC_ASYNC : QCU_OP_MALLOC, 1);
	int rc;

	if (i & 1)
		c.malloc_async.size = BLOCK_BYTES;
	else
		c.malloc.size = BLOCK_BYTES;
	rc = guest_ask(&s->g, Q, &c, NULL, 0);
	*ptr = i & 1 ? c.malloc_async.ptr : c.malloc.ptr;
	return !rc || fell("an allocation gives %d", rc);
}

/* Fills nearly all of the GPU's memory. The next session gets the same addresses, all zero. */
static bool read_memory(struct scene *s)
{
	uint64_t before[BLOCKS], ptr;
	unsigned int round, i;
	int n;

	for (round = 0; round < 3; round++) {
		guest_fresh(&s->g, Q);
		for (i = 0; i < BLOCKS; i++) {
			if (!allocate(s, i, &ptr))
				return false;
			n = left_in_block(s, ptr);
			if (n)
				return fell("round %u: %d words of block %u are not zero", round, n,
					    i);
			if (round && ptr != before[i])
				return fell("round %u: block %u lies elsewhere", round, i);
			before[i] = ptr;
			if (!fill(s, ptr) || left_in_block(s, ptr) != (int)(BLOCK_BYTES / 4))
				return fell("round %u: block %u is not filled", round, i);
		}
		n = left_in_array(s, QCU_ID_FIRST);
		if (n)
			return fell("round %u: %d words of an array are not zero", round, n);
		/* The session ends with CLOSE, or because it breaks a rule. */
		if (round == 1) {
			struct qCUcmd c = command(QCU_OP_COUNT, 1);

			if (guest_ask(&s->g, Q, &c, NULL, 0) != GUEST_GONE)
				return fell("a session survives what is no command");
		}
	}
	return true;
}

const struct attack read_attacks[] = {
	{"read_addresses",
	 read_addresses,
	 {"--vram", "256M"},
	 false,
	 "answers that hold addresses of the host"},
	{"read_memory", read_memory, {"--vram", "32M"}, false, "GPU memory of a session before"},
	{0},
};
