// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Attacks with descriptions of graphs: numbers, lengths and orders that cannot be, as many nodes as
 * fit, bytes changed at random, and bytes that change while the device reads them.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "tests/hostile/attack.h"

#define Q     ATTACK_FIRST
#define TEXT  GUEST_SPACE(Q)
#define MANY  100000u
#define GRAPH QCU_ID_FIRST
#define OUTER QCU_ID_FIRST

/* The description that is being written, in guest memory. */
static uint8_t *text;
static uint32_t len, nodes;

static struct qcu_graph_node *node(uint8_t type, const void *body, uint32_t bytes, uint32_t dep)
{
	struct qcu_graph_node *n = (void *)(text + len);
	uint32_t deps[2] = {dep, 0}, count = dep != nodes;
	uint32_t all = (uint32_t)sizeof(*n) + bytes + 8 * count;

	/* Another thread may change the bytes, so none of them is read back. */
	*n = (struct qcu_graph_node){.bytes = all, .type = type, .index = nodes, .deps = count};
	memcpy(n + 1, body, bytes);
	memcpy((uint8_t *)(n + 1) + bytes, deps, 8 * count);
	len += all;
	nodes++;
	return n;
}

/* Comes after the node before it. */
static struct qcu_graph_node *empty(void)
{
	return node(QCU_NODE_EMPTY, "", 0, nodes ? nodes - 1 : 0);
}

static void set(uint64_t at)
{
	const struct qcu_graph_memset m = {.dst = at, .width = 64, .height = 1, .elem = 4};

	node(QCU_NODE_MEMSET, &m, sizeof(m), nodes ? nodes - 1 : 0);
}

static void cond(uint32_t id, uint32_t type, uint32_t size)
{
	const struct qcu_graph_cond c = {.cond = id, .type = type, .size = size};

	node(QCU_NODE_COND, &c, sizeof(c), nodes);
}

static void body(uint32_t at, uint32_t number)
{
	const struct qcu_graph_body b = {.node = at, .body = number};

	node(QCU_NODE_BODY, &b, sizeof(b), nodes);
}

static int send(struct scene *s, uint16_t op)
{
	struct qCUcmd c = command(op, 1);
	const struct qcu_seg seg = {TEXT, len};

	c.flags = QCU_F_SEGS;
	c.graph_make.buf.addr = 1;
	c.graph_make.buf.len = len;
	c.graph_make.graph = GRAPH;
	c.graph_make.nodes = nodes;
	len = nodes = 0;
	return guest_ask(&s->g, Q, &c, &seg, sizeof(seg));
}

static int launch(struct scene *s)
{
	struct qCUcmd c = command(QCU_OP_GRAPH_LAUNCH, 1);

	c.graph_launch.graph = GRAPH;
	c.graph_launch.event = QCU_GRAPH_NO_EVENT;
	return guest_ask(&s->g, Q, &c, NULL, 0);
}

static int drop(struct scene *s)
{
	struct qCUcmd c = command(QCU_OP_GRAPH_DESTROY, 1);

	c.graph_destroy.graph = GRAPH;
	return guest_ask(&s->g, Q, &c, NULL, 0);
}

static void fresh(struct scene *s)
{
	guest_fresh(&s->g, Q);
	text = s->g.ram + TEXT;
	len = nodes = 0;
}

static bool make_cond(struct scene *s, uint32_t id, uint32_t in)
{
	struct qCUcmd c = command(QCU_OP_COND_CREATE, 1);

	c.cond_create.cond = id;
	c.cond_create.graph = in;
	c.cond_create.value = in ? 1 : 0;
	c.cond_create.flags = in ? QCU_COND_DEFAULT : 0;
	return !guest_ask(&s->g, Q, &c, NULL, 0) || fell("no handle %u", id);
}

static bool graph_wrong(struct scene *s)
{
	static const uint32_t odd[] = {1, 7, 9, 0x7fffffff, 0x80000000, 0xfffffff8, 0xffffffff};
	unsigned int i, field;
	uint64_t ptr;

	fresh(s);
	if (cmd_malloc(&s->g, Q, 4096, &ptr) || !make_cond(s, OUTER, 0) ||
	    !make_cond(s, OUTER + 1, OUTER))
		return fell("no memory");
	/* Each field of the heads and bodies, 4 bytes at a time, with each odd number. */
	for (field = 0; field < 168; field += 4) {
		for (i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
			empty();
			set(ptr);
			cond(OUTER + 1, QCU_COND_IF, 2);
			body(2, 0);
			set(ptr);
			memcpy(text + field, &odd[i], 4);
			if (!send(s, QCU_OP_GRAPH_MAKE) && (launch(s) < 0 || drop(s)))
				return fell("field %u, number %x", field, odd[i]);
		}
	}
	/* Circles: a node after itself, after a later one, and a body after its own node. */
	node(QCU_NODE_EMPTY, "", 0, 1);
	empty();
	if (send(s, QCU_OP_GRAPH_MAKE) <= 0)
		return fell("a node comes after a later one");
	cond(OUTER + 1, QCU_COND_IF, 2);
	body(0, 0);
	node(QCU_NODE_EMPTY, "", 0, 0);
	if (send(s, QCU_OP_GRAPH_MAKE) <= 0)
		return fell("a body's node comes after a node outside");
	cond(OUTER + 1, QCU_COND_IF, 2);
	body(0, 0);
	cond(OUTER + 1, QCU_COND_IF, 2);
	if (send(s, QCU_OP_GRAPH_MAKE) <= 0)
		return fell("a conditional node is in its own body");
	/* More and fewer nodes than there are bytes. */
	empty();
	nodes = 0xffffffff;
	if (send(s, QCU_OP_GRAPH_MAKE) <= 0)
		return fell("4 billion nodes in 16 bytes");
	empty();
	nodes = 0;
	if (send(s, QCU_OP_GRAPH_MAKE) <= 0)
		return fell("a node that is not counted");
	set(ptr);
	return (!send(s, QCU_OP_GRAPH_MAKE) && !launch(s) && !drop(s)) ||
	       fell("a good graph fails afterwards");
}

/* 100,000 nodes in a row, and all of them after each other in updates. */
static bool graph_many(struct scene *s)
{
	unsigned int i;
	int rc;

	fresh(s);
	for (i = 0; i < MANY; i++)
		empty();
	rc = send(s, QCU_OP_GRAPH_MAKE);
	if (rc < 0)
		return fell("%u nodes: %d", MANY, rc);
	if (!rc)
		for (i = 0; i < 20; i++)
			if (launch(s))
				return fell("the launch of %u nodes", MANY);
	if (!rc && drop(s))
		return fell("they do not end");
	for (i = 0; i < MANY; i++)
		empty()->flags = QCU_NODE_OFF;
	return send(s, QCU_OP_GRAPH_MAKE) > 0 || fell("empty nodes are left out");
}

/* Random bytes are changed in a description that was right. */
static bool graph_random(struct scene *s)
{
	unsigned int round, i;
	uint64_t ptr;
	bool over;

	fresh(s);
	if (cmd_malloc(&s->g, Q, 4096, &ptr) || !make_cond(s, OUTER, 0) ||
	    !make_cond(s, OUTER + 1, OUTER))
		return fell("no memory");
	for (round = 0; round < 5000; round++) {
		uint16_t op = rnd(s, 4) ? QCU_OP_GRAPH_MAKE : QCU_OP_GRAPH_UPDATE;

		for (i = rnd(s, 4); i; i--)
			set(ptr);
		cond(OUTER + 1, QCU_COND_IF, 2);
		for (i = rnd(s, 4); i; i--)
			empty();
		for (i = rnd(s, 3); i; i--)
			text[rnd(s, len)] = (uint8_t)rnd(s, 256);
		if (!rnd(s, 20))
			len -= rnd(s, len / 8) * 8;
		if (send(s, op) == GUEST_GONE || launch(s) == GUEST_GONE)
			return fell("round %u ends the session", round);
		if (rnd(s, 2))
			drop(s);
	}
	return session_settled(s, Q, &over);
}

static atomic_bool changing;

static void *change(void *unused)
{
	volatile uint8_t *p = text;
	uint32_t i = 0;

	(void)unused;
	while (atomic_load(&changing)) {
		i = i * 1664525 + 1013904223;
		p[(i >> 8) % 512] ^= (uint8_t)(1u << (i >> 29));
	}
	return NULL;
}

static bool graph_changes(struct scene *s)
{
	pthread_t thread;
	unsigned int round, i;
	bool over;

	fresh(s);
	atomic_store(&changing, true);
	if (pthread_create(&thread, NULL, change, NULL))
		die("no thread");
	for (round = 0; round < 2000; round++) {
		for (i = 0; i < 40; i++)
			empty();
		if (!send(s, QCU_OP_GRAPH_MAKE) && (launch(s) < 0 || drop(s) < 0))
			break;
	}
	atomic_store(&changing, false);
	pthread_join(thread, NULL);
	return session_settled(s, Q, &over);
}

const struct attack graph_attacks[] = {
	{"graph_wrong", graph_wrong, {"--vram", "64M"}, false, "graphs with impossible numbers"},
	{"graph_many", graph_many, {NULL}, false, "graphs of 100,000 nodes"},
	{"graph_random", graph_random, {"--vram", "64M"}, false, "graphs with bytes changed"},
	{"graph_changes", graph_changes, {NULL}, false, "graphs that change while they are read"},
	{0},
};
