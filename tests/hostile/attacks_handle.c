// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Attacks with numbers: every command with every combination of flags, every kind of object named
 * by every kind of number, objects used after they are destroyed, forged tokens.
 */
#include <stdio.h>
#include <string.h>

#include "tests/hostile/attack.h"

#define Q ATTACK_FIRST

/*
 * Sends a command. Opens another session if the command ends this one. Returns true if the command
 * is answered, or if the session is over.
 */
static bool settled(struct scene *s, struct qCUcmd *c, const void *tail, uint32_t len)
{
	int slot = guest_post(&s->g, Q, c, tail, len);
	bool over;
	int rc;

	guest_kick(&s->g, Q);
	rc = guest_wait(&s->g, Q, slot, c, c->op == QCU_OP_HOST_NEXT ? 50 : GUEST_WAIT_MS);
	/* HOST_NEXT waits for a host function, so it may get no answer. */
	if (rc == GUEST_LATE && c->op != QCU_OP_HOST_NEXT)
		return fell("command %u is not answered", c->op);
	if (rc == GUEST_GONE) {
		guest_fresh(&s->g, Q);
		return true;
	}
	/* Run the host function now, so that no later command waits for it. */
	if (!rc && c->op == QCU_OP_HOST_FUNC && !cmd_host_run(&s->g, Q, 1))
		return fell("a host function ends the session");
	return session_settled(s, Q, &over);
}

static bool op_flags(struct scene *s)
{
	static const uint16_t far[] = {QCU_OP_COUNT, 255, 256, 0x7fff, 0x8000, 0xffff};
	const struct qcu_seg seg = {GUEST_SPACE(Q), 0x1000};
	unsigned int i, flags;

	guest_fresh(&s->g, Q);
	for (i = 0; i < QCU_OP_COUNT + sizeof(far) / sizeof(far[0]); i++) {
		uint16_t op = i < QCU_OP_COUNT ? (uint16_t)i : far[i - QCU_OP_COUNT];
		const struct qcu_rule *rule = qcu_rule(op);

		/* A number that is no command ends the session, whatever the flags. */
		for (flags = 0; flags < (rule ? 18u : 1u); flags++) {
			struct qCUcmd c = command(op, rule && rule->who == QCU_WHO_DRV ? 0 : 1);
			const void *tail = NULL;
			uint32_t len = 0;

			c.flags = flags == 16 ? 0x10 : flags == 17 ? QCU_F_OUTPUT : (uint8_t)flags;
			if (rule && rule->buffer != QCU_BUFFER_NONE && flags)
				c.buf.len = 0x10;
			if (flags & QCU_F_WINDOW && rule && rule->buffer != QCU_BUFFER_NONE)
				c.buf.addr = QCU_WINDOW_BASE;
			if (flags & QCU_F_MSG) {
				tail = plain_image;
				len = 0x10;
			} else if (flags & QCU_F_SEGS) {
				tail = &seg;
				len = sizeof(seg);
				if (rule && rule->buffer != QCU_BUFFER_NONE)
					c.buf.len = seg.len;
			}
			if (!settled(s, &c, tail, len))
				return fell("command %u, flags 0x%x", op, c.flags);
		}
	}
	return true;
}

/* Fills all words of a request, except its buffer, with one number. */
static void fill(struct qCUcmd *c, const struct qcu_rule *rule, uint32_t x, bool wide)
{
	unsigned int from = rule->buffer == QCU_BUFFER_NONE ? 0 : sizeof(struct qcu_buf) / 4, i;

	for (i = from; i < rule->in / 4u; i++)
		c->words[i] = wide && i & 1 ? 0 : x;
}

static bool any(struct scene *s, uint16_t op, uint32_t x, bool wide, unsigned int device)
{
	const struct qcu_seg seg = {GUEST_SPACE(Q) + 0x10000, 64};
	const struct qcu_rule *rule = qcu_rule(op);
	struct qCUcmd c = command(op, 1);
	const void *tail = NULL;
	uint32_t len = 0;

	if (!rule || !qcu_rule_user(rule))
		return true;
	c.device = (uint8_t)device;
	fill(&c, rule, x, wide);
	if (op == QCU_OP_HOST_NEXT)
		c.host_next.wait = 0;
	switch (rule->buffer) {
	case QCU_BUFFER_MSG:
		c.flags = QCU_F_MSG;
		c.buf = (struct qcu_buf){0, 64};
		tail = s->g.ram + seg.gpa;
		len = 64;
		break;
	case QCU_BUFFER_IN:
	case QCU_BUFFER_OUT:
		c.flags = QCU_F_SEGS;
		c.buf = (struct qcu_buf){x, 64};
		tail = &seg;
		len = sizeof(seg);
		break;
	case QCU_BUFFER_STAY:
		c.flags = QCU_F_WINDOW;
		c.buf = (struct qcu_buf){QCU_WINDOW_BASE, 0x1000};
	}
	return settled(s, &c, tail, len) ||
	       fell("command %u, number 0x%x, device %u", op, x, device);
}

static bool handle_numbers(struct scene *s)
{
	static const uint32_t numbers[] = {0,	    1,		2,	    3,	       7,
					   64,	    0xff,	0xfffe,	    0xffff,    0x10000,
					   0x10001, 0x7fffffff, 0x80000000, 0xffffffff};
	unsigned int i;
	uint16_t op;

	guest_fresh(&s->g, Q);
	for (i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		for (op = 0; op < QCU_OP_COUNT; op++) {
			if (!any(s, op, numbers[i], false, 0) || !any(s, op, numbers[i], true, 0))
				return false;
		}
	}
	return true;
}

/*
 * Makes objects of all kinds under one number, in the order of the command table. Each command then
 * finds objects of other kinds under its number.
 */
static bool handle_kinds(struct scene *s)
{
	unsigned int round;
	uint16_t op;

	guest_fresh(&s->g, Q);
	memcpy(s->g.ram + GUEST_SPACE(Q), plain_image, plain_image_bytes);
	for (round = 0; round < 4; round++) {
		if (cmd_load(&s->g, Q, 5, GUEST_SPACE(Q), plain_image_bytes) == 0)
			cmd_find(&s->g, Q, 5, 5, "k");
		for (op = 0; op < QCU_OP_COUNT; op++)
			if (!any(s, op, 5, round & 1, 0))
				return false;
	}
	return true;
}

struct life {
	const char *name;
	uint16_t make, end;
};

static int by_number(struct scene *s, uint16_t op, uint32_t id)
{
	struct qCUcmd c = command(op, 1);

	switch (op) {
	case QCU_OP_STREAM_CREATE:
		c.stream_create.stream = id;
		break;
	case QCU_OP_GREEN_CREATE:
		c.green_create.green = id;
		c.green_create.members[0] = 1;
		break;
	case QCU_OP_ARRAY_CREATE:
		c.array_create.array = id;
		c.array_create.width = 16;
		c.array_create.bits[0] = 32;
		break;
	default:
		c.words[0] = id;
	}
	return guest_ask(&s->g, Q, &c, NULL, 0);
}

static bool handle_twice(struct scene *s)
{
	static const struct life lives[] = {
		{"stream", QCU_OP_STREAM_CREATE, QCU_OP_STREAM_DESTROY},
		{"event", QCU_OP_EVENT_CREATE, QCU_OP_EVENT_DESTROY},
		{"pool", QCU_OP_POOL_CREATE, QCU_OP_POOL_DESTROY},
		{"array", QCU_OP_ARRAY_CREATE, QCU_OP_ARRAY_DESTROY},
		{"graph", QCU_OP_COND_CREATE, QCU_OP_COND_DESTROY},
		{"green context", QCU_OP_GREEN_CREATE, QCU_OP_GREEN_DESTROY},
	};
	unsigned int i, k;

	guest_fresh(&s->g, Q);
	for (i = 0; i < sizeof(lives) / sizeof(lives[0]); i++) {
		if (by_number(s, lives[i].end, 9) <= 0)
			return fell("a %s that is not there ends", lives[i].name);
		if (by_number(s, lives[i].make, 9))
			return fell("no %s", lives[i].name);
		if (by_number(s, lives[i].make, 9) <= 0)
			return fell("a %s's number serves twice", lives[i].name);
		for (k = 0; k < sizeof(lives) / sizeof(lives[0]); k++)
			if (k != i && by_number(s, lives[k].end, 9) <= 0)
				return fell("a %s ends as a %s", lives[i].name, lives[k].name);
		if (by_number(s, lives[i].end, 9))
			return fell("the %s does not end", lives[i].name);
		if (by_number(s, lives[i].end, 9) <= 0)
			return fell("the %s ends twice", lives[i].name);
	}
	return true;
}

/* Names the objects of one device in commands for another device, which may not exist. */
static bool handle_devices(struct scene *s)
{
	unsigned int device;
	uint16_t op;

	guest_fresh(&s->g, Q);
	by_number(s, QCU_OP_STREAM_CREATE, 6);
	by_number(s, QCU_OP_EVENT_CREATE, 6);
	by_number(s, QCU_OP_POOL_CREATE, 6);
	by_number(s, QCU_OP_GREEN_CREATE, 6);
	for (device = 1; device < 256; device = device * 2 + 1)
		for (op = 0; op < QCU_OP_COUNT; op++)
			if (!any(s, op, 6, false, device))
				return false;
	return true;
}

static bool tokens(struct scene *s)
{
	struct guest *g = &s->g;
	struct qCUcmd c, open;
	struct qcu_ipc_token t;
	uint64_t ptr;
	unsigned int i;

	guest_fresh(g, Q);
	guest_fresh(g, Q + 1);
	if (cmd_malloc(g, Q, 0x10000, &ptr))
		die("no memory");
	c = command(QCU_OP_IPC_MEM_EXPORT, 1);
	c.ipc_mem_export.ptr = ptr;
	if (guest_ask(g, Q, &c, NULL, 0))
		die("IPC_MEM_EXPORT: %d", c.status);
	t = c.ipc_mem_export.token;
	/* Each bit in turn is wrong. */
	for (i = 0; i < 8 * sizeof(t); i++) {
		open = command(QCU_OP_IPC_MEM_OPEN, 1);
		open.ipc_mem_open.token = t;
		((uint8_t *)&open.ipc_mem_open.token)[i / 8] ^= (uint8_t)(1u << i % 8);
		if (!guest_ask(g, Q + 1, &open, NULL, 0))
			return fell("a token with bit %u wrong opens memory", i);
		open.op = QCU_OP_IPC_EVENT_OPEN;
		if (open.status == GUEST_GONE)
			guest_fresh(g, Q + 1);
	}
	for (i = 0; i < 5000; i++) {
		open = command(i & 1 ? QCU_OP_IPC_MEM_OPEN : QCU_OP_IPC_EVENT_OPEN, 1);
		open.ipc_mem_open.token.secret[0] = (uint64_t)rnd(s, 0x7fffffff) << 32 | i;
		open.ipc_mem_open.token.secret[1] = (uint64_t)rnd(s, 0x7fffffff) << 32 | i;
		open.ipc_mem_open.token.slot = i % 64;
		if (i & 1 ? false : true)
			open.ipc_event_open.event = 100;
		if (!guest_ask(g, Q + 1, &open, NULL, 0))
			return fell("a forged token opens something");
	}
	/* The right token opens the memory. */
	open = command(QCU_OP_IPC_MEM_OPEN, 1);
	open.ipc_mem_open.token = t;
	if (guest_ask(g, Q + 1, &open, NULL, 0))
		return fell("the right token does not open: %d", open.status);
	return true;
}

/* Answers host functions that the device did not ask for. */
static bool host_next(struct scene *s)
{
	static const uint64_t done[] = {1, 6, 8, 7ull << 32, UINT64_MAX, 1ull << 63};
	struct guest *g = &s->g;
	struct qCUcmd c, first;
	unsigned int i;
	int slot;

	guest_fresh(g, Q);
	if (cmd_stream(g, Q, 2) || cmd_host_func(g, Q, 2, 7) || cmd_host_func(g, Q, 2, 8))
		die("no host function");
	for (i = 0; i < sizeof(done) / sizeof(done[0]); i++) {
		c = command(QCU_OP_HOST_NEXT, 1);
		c.host_next.done = done[i];
		if (guest_ask(g, Q, &c, NULL, 0) <= 0)
			return fell("HOST_NEXT takes token 0x%llx", (unsigned long long)done[i]);
	}
	first = command(QCU_OP_HOST_NEXT, 1);
	first.host_next.wait = 1;
	if (guest_ask(g, Q, &first, NULL, 0) || first.host_next.token != 7)
		return fell("HOST_NEXT: %d", first.status);
	for (i = 0; i < sizeof(done) / sizeof(done[0]); i++) {
		c = command(QCU_OP_HOST_NEXT, 1);
		c.host_next.done = done[i];
		c.host_next.wait = 1;
		if (guest_ask(g, Q, &c, NULL, 0) <= 0)
			return fell("HOST_NEXT takes token 0x%llx", (unsigned long long)done[i]);
	}
	/* Two HOST_NEXT commands that wait at once. */
	c = command(QCU_OP_HOST_NEXT, 1);
	c.host_next.done = 7;
	c.host_next.wait = 1;
	if (guest_ask(g, Q, &c, NULL, 0) || c.host_next.token != 8)
		return fell("the second host function does not come");
	c.host_next.done = 8;
	c.host_next.token = 0;
	c.host_next.error = 0;
	slot = guest_post(g, Q, &c, NULL, 0);
	c.host_next.done = 0;
	if (guest_ask(g, Q, &c, NULL, 0) != QCU_ERR_InvalidValue)
		return fell("two HOST_NEXT wait at once: %d", c.status);
	if (guest_close(g, Q))
		return fell("CLOSE fails");
	guest_take(g, Q);
	return g->q[Q].out[slot] ? fell("a command that waits does not come back") : true;
}

const struct attack handle_attacks[] = {
	{"op_flags", op_flags, {NULL}, false, "every command number with every flag"},
	{"handle_numbers", handle_numbers, {"--vram", "64M"}, false, "every command, odd numbers"},
	{"handle_kinds", handle_kinds, {"--vram", "64M"}, false, "objects taken for another kind"},
	{"handle_twice", handle_twice, {NULL}, false, "objects made and ended twice"},
	{"handle_devices",
	 handle_devices,
	 {"--vram", "64M", "--gpus", "2"},
	 false,
	 "objects of other devices, and devices that are not there"},
	{"tokens", tokens, {NULL}, false, "forged tokens for other programs' memory and events"},
	{"host_next", host_next, {NULL}, false, "answers to host functions that were not asked"},
	{0},
};
