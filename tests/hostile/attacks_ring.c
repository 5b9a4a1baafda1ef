// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Attacks on the virtqueues: chains that lead nowhere, indices that jump, descriptors that change
 * while the device reads them, storms of notifications.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "tests/hostile/attack.h"

#define Q     ATTACK_FIRST
#define NEXT  VRING_DESC_F_NEXT
#define WRITE VRING_DESC_F_WRITE
#define TABLE VRING_DESC_F_INDIRECT
#define MEM   (GUEST_SPACE(Q) + 0x100000)

struct shape {
	const char *what;
	struct vring_desc d[4]; /* at the start of the queue's table */
	uint16_t head;
};

static const struct shape shapes[] = {
	{"one that is its own next", {{MEM, 64, NEXT, 0}}, 0},
	{"two that follow each other", {{MEM, 64, NEXT, 1}, {MEM, 64, NEXT, 0}}, 0},
	{"a loop of answers", {{MEM, 64, NEXT, 1}, {MEM, 64, NEXT | WRITE, 1}}, 0},
	{"a next that is not there", {{MEM, 64, NEXT, GUEST_NUM}}, 0},
	{"a next far away", {{MEM, 64, NEXT, 0xffff}}, 0},
	{"nothing to read", {{MEM, 64, WRITE, 0}}, 0},
	{"nothing to write", {{MEM, 64, 0, 0}}, 0},
	{"an empty one", {{MEM, 0, NEXT, 1}, {MEM, 64, WRITE, 0}}, 0},
	{"an answer before the question", {{MEM, 64, WRITE | NEXT, 1}, {MEM, 64, 0, 0}}, 0},
	{"4 GiB to read", {{MEM, 0xffffffff, NEXT, 1}, {MEM, 64, WRITE, 0}}, 0},
	{"4 GiB to write", {{MEM, 64, NEXT, 1}, {MEM, 0xffffffff, WRITE, 0}}, 0},
	{"memory that is not there", {{GUEST_RAM, 64, NEXT, 1}, {MEM, 64, WRITE, 0}}, 0},
	{"memory that ends too soon", {{GUEST_RAM - 63, 64, NEXT, 1}, {MEM, 64, WRITE, 0}}, 0},
	{"memory that wraps", {{UINT64_MAX - 31, 64, NEXT, 1}, {MEM, 64, WRITE, 0}}, 0},
	{"an answer that wraps", {{MEM, 64, NEXT, 1}, {UINT64_MAX - 31, 64, WRITE, 0}}, 0},
	{"an answer nowhere", {{MEM, 64, NEXT, 1}, {GUEST_RAM, 64, WRITE, 0}}, 0},
	{"an answer too small", {{MEM, 64, NEXT, 1}, {MEM, 63, WRITE, 0}}, 0},
	{"an answer too large", {{MEM, 64, NEXT, 1}, {MEM, 65, WRITE, 0}}, 0},
	{"a question too small", {{MEM, 63, NEXT, 1}, {MEM, 64, WRITE, 0}}, 0},
	{"a table of nothing", {{MEM, 0, TABLE, 0}}, 0},
	{"a table of half an entry", {{MEM, 8, TABLE, 0}}, 0},
	{"a table of too many", {{MEM, 16 * 4096, TABLE, 0}}, 0},
	{"a table of 4 GiB", {{MEM, 0xfffffff0, TABLE, 0}}, 0},
	{"a table nowhere", {{GUEST_RAM, 64, TABLE, 0}}, 0},
	{"a table that ends too soon", {{GUEST_RAM - 16, 32, TABLE, 0}}, 0},
	{"a table with a next", {{MEM, 32, TABLE | NEXT, 1}, {MEM, 64, WRITE, 0}}, 0},
	{"a table to write", {{MEM, 32, TABLE | WRITE, 0}}, 0},
	{"a table behind a question", {{MEM, 64, NEXT, 1}, {MEM, 32, TABLE, 0}}, 0},
	{"all flags", {{MEM, 64, 0xffff, 0xffff}}, 0},
	{"a head that is not there", {{MEM, 64, 0, 0}}, GUEST_NUM},
	{"a head far away", {{MEM, 64, 0, 0}}, 0xffff},
};
#define SHAPES (sizeof(shapes) / sizeof(shapes[0]))

static void put_head(struct queue *vq, uint16_t head)
{
	vq->mangled = true;
	vq->avail->ring[vq->added % GUEST_NUM] = head;
	__atomic_store_n(&vq->avail->idx, ++vq->added, __ATOMIC_RELEASE);
}

/* Whatever became of the session: the control queue answers, and a new session can be opened. */
static bool over_or_well(struct scene *s, unsigned int q, const char *what)
{
	if (q) {
		usleep(2000);
		if (guest_close(&s->g, q))
			return fell("CLOSE fails after %s", what);
		guest_fresh(&s->g, q);
		return !cmd_simple(&s->g, q, QCU_OP_INFO, 1) || fell("no session after %s", what);
	}
	guest_queue_stop(&s->g, 0);
	guest_queue_start(&s->g, 0);
	guest_queue_stop(&s->g, Q);
	guest_queue_start(&s->g, Q);
	if (guest_open(&s->g, Q) || guest_close(&s->g, Q))
		return fell("no control queue after %s", what);
	return true;
}

static void fill_table(struct scene *s, unsigned int kind)
{
	struct vring_desc *d = (void *)(s->g.ram + MEM);
	unsigned int i;

	memset(s->g.ram + MEM, 0, 0x10000);
	for (i = 0; i < 4096; i++) {
		switch (kind) {
		case 0: /* a circle */
			d[i] = (struct vring_desc){MEM, 1, NEXT, (uint16_t)(i & 1 ? 0 : 1)};
			break;
		case 1: /* tables in the table */
			d[i] = (struct vring_desc){MEM, 64, TABLE, 0};
			break;
		case 2: /* one byte each */
			d[i] = (struct vring_desc){MEM, 1, NEXT, (uint16_t)(i + 1)};
			break;
		default:
			memset(&d[i], 0xff, sizeof(d[i]));
		}
	}
}

static bool shapes_on(struct scene *s, unsigned int q)
{
	unsigned int i, kind;

	if (q)
		guest_fresh(&s->g, q);
	for (kind = 0; kind < 4; kind++) {
		for (i = kind ? 19 : 0; i < SHAPES; i++) {
			struct queue *vq = &s->g.q[q];

			fill_table(s, kind);
			memcpy(vq->desc + GUEST_NUM - 4, shapes[i].d, sizeof(shapes[i].d));
			memcpy(vq->desc, shapes[i].d, sizeof(shapes[i].d));
			put_head(vq, shapes[i].head);
			guest_kick(&s->g, q);
			/* The shape has used descriptors of free slots. */
			memset(vq->out, 0, sizeof(vq->out));
			vq->out[0] = true;
			if (!over_or_well(s, q, shapes[i].what))
				return false;
		}
	}
	return true;
}

static bool ring_shapes(struct scene *s)
{
	return shapes_on(s, Q);
}

static bool ring_control(struct scene *s)
{
	return shapes_on(s, 0);
}

static bool ring_indices(struct scene *s)
{
	static const uint16_t jump[] = {GUEST_NUM + 1, 0x7fff, 0x8000, 0xfff0, 0xffff};
	struct queue *vq;
	unsigned int i, n, q;

	for (q = 0; q <= Q; q += Q) {
		for (i = 0; i < sizeof(jump) / sizeof(jump[0]); i++) {
			if (q)
				guest_fresh(&s->g, q);
			vq = &s->g.q[q];
			vq->mangled = true;
			vq->added += jump[i];
			__atomic_store_n(&vq->avail->idx, vq->added, __ATOMIC_RELEASE);
			guest_kick(&s->g, q);
			if (!over_or_well(s, q, "a jump of the index"))
				return false;
		}
		/* The same head again and again, and the whole queue at once. */
		if (q)
			guest_fresh(&s->g, q);
		vq = &s->g.q[q];
		vq->desc[0] = (struct vring_desc){MEM, 64, NEXT, 1};
		vq->desc[1] = (struct vring_desc){MEM + 64, 64, WRITE, 0};
		memset(s->g.ram + MEM, 0, 128);
		for (n = 0; n < GUEST_NUM; n++)
			put_head(vq, 0);
		guest_kick(&s->g, q);
		vq->out[0] = true;
		if (!over_or_well(s, q, "one head many times"))
			return false;
	}
	return true;
}

/* ---- another processor of the guest ---- */

static struct {
	pthread_t thread;
	atomic_bool stop;
	struct scene *s;
	unsigned int q;
	bool indices;
} vandal;

/* Where answers may be written: all of it belongs to the session that attacks, or to no session. */
static uint64_t spoilt_address(uint64_t x)
{
	static const uint64_t odd[] = {GUEST_RAM, GUEST_RAM - 32, UINT64_MAX - 31, 1ull << 47};

	return x & 1 ? odd[x >> 1 & 3] : MEM + (x >> 8) % 0x10000;
}

static void *spoil(void *unused)
{
	static const uint32_t lengths[] = {0, 1, 63, 64, 64, 65, 0x10000, 0xffffffff};
	struct queue *vq = &vandal.s->g.q[vandal.q];
	uint64_t x = 0x9e3779b97f4a7c15ull;

	while (!vandal.stop) {
		volatile struct vring_desc *d = &vq->desc[(x >> 8) % GUEST_NUM];

		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		switch (x >> 61) {
		case 0:
			d->addr = spoilt_address(x >> 20);
			break;
		case 1:
			d->len = lengths[x >> 20 & 7];
			break;
		case 2:
			d->flags = (uint16_t)(x >> 20);
			break;
		case 3:
			d->next = (uint16_t)(x >> 20 & (x & 16 ? 0xff : 0xffff));
			break;
		case 4:
			if (vandal.indices)
				vq->avail->ring[(x >> 8) % GUEST_NUM] = (uint16_t)(x >> 20);
			break;
		case 5:
			if (vandal.indices)
				*(volatile uint16_t *)&vq->used->idx = (uint16_t)(x >> 20);
			break;
		case 6:
			if (vandal.indices)
				vq->used->ring[(x >> 8) % GUEST_NUM].id = (uint32_t)(x >> 20);
			break;
		}
	}
	return unused;
}

static void fill_descriptors(struct scene *s, unsigned int q)
{
	struct queue *vq = &s->g.q[q];
	unsigned int i;

	for (i = 0; i < GUEST_NUM; i += 2) {
		vq->desc[i] = (struct vring_desc){MEM + i * 128, 64, NEXT, (uint16_t)(i + 1)};
		vq->desc[i + 1] = (struct vring_desc){MEM + i * 128 + 64, 64, WRITE, 0};
		*(struct qCUcmd *)(s->g.ram + MEM + i * 128) = command(QCU_OP_INFO, 1 + i % 3);
	}
}

static bool changing(struct scene *s, bool indices)
{
	unsigned int round, n;

	for (round = 0; round < 60; round++) {
		struct queue *vq;

		guest_fresh(&s->g, Q);
		vq = &s->g.q[Q];
		fill_descriptors(s, Q);
		vandal.s = s;
		vandal.q = Q;
		vandal.indices = indices;
		vandal.stop = false;
		if (pthread_create(&vandal.thread, NULL, spoil, NULL))
			die("no thread");
		for (n = 0; n < 2000; n++) {
			put_head(vq, (uint16_t)(rnd(s, GUEST_NUM / 2) * 2));
			if (n % 8 == 0)
				guest_kick(&s->g, Q);
			if (n % 64 == 63)
				usleep(50);
		}
		vandal.stop = true;
		pthread_join(vandal.thread, NULL);
		guest_queue_stop(&s->g, Q);
	}
	return true;
}

static bool ring_changes(struct scene *s)
{
	return changing(s, false);
}

static bool ring_indices_change(struct scene *s)
{
	return changing(s, true);
}

/*
 * Sends notifications without work: on a queue that is served, on a queue whose session is over,
 * and on the control queue.
 */
static bool storm(struct scene *s)
{
	struct guest *g = &s->g;
	struct qCUcmd c = command(QCU_OP_COUNT, 1);
	unsigned int i;
	int slot;

	guest_fresh(g, Q);
	guest_fresh(g, Q + 1);
	slot = guest_post(g, Q + 1, &c, NULL, 0);
	guest_kick(g, Q + 1);
	if (guest_wait(g, Q + 1, slot, &c, GUEST_WAIT_MS) != GUEST_GONE)
		return fell("a bad command is answered");
	for (i = 0; i < 300000; i++) {
		eventfd_write(g->q[Q].kick, 1);
		eventfd_write(g->q[Q + 1].kick, 1);
		eventfd_write(g->q[0].kick, 1);
		if (i % 1000 == 0 && cmd_simple(g, Q, QCU_OP_INFO, 1))
			return fell("no answer in a storm");
	}
	/* A queue without a mirror gives back every chain at once. */
	for (i = 0; i < 20000; i++) {
		c = command(QCU_OP_INFO, 1);
		guest_take(g, Q + 1);
		guest_post(g, Q + 1, &c, NULL, 0);
		guest_kick(g, Q + 1);
	}
	return !guest_close(g, Q) && !guest_close(g, Q + 1);
}

/* Answers that are written into the ring itself, into the request, into the descriptor table. */
static bool ring_self(struct scene *s)
{
	struct guest *g = &s->g;
	unsigned int i;

	for (i = 0; i < 4; i++) {
		struct queue *vq;
		uint64_t ring;

		guest_fresh(g, Q);
		vq = &g->q[Q];
		ring = (uint64_t)((uint8_t *)vq->desc - g->ram);
		*(struct qCUcmd *)(g->ram + MEM) = command(QCU_OP_INFO, 1);
		vq->desc[0] = (struct vring_desc){MEM, 64, NEXT, 1};
		vq->desc[1] =
			(struct vring_desc){i == 0 ? MEM : ring + (i - 1) * 0x1000, 64, WRITE, 0};
		put_head(vq, 0);
		vq->out[0] = true;
		guest_kick(g, Q);
		usleep(3000);
		guest_fresh(g, Q);
		if (cmd_simple(g, Q, QCU_OP_INFO, 1))
			return fell("no session after an answer into the ring");
	}
	return true;
}

const struct attack ring_attacks[] = {
	{"ring_shapes",
	 ring_shapes,
	 {NULL},
	 false,
	 "chains that lead nowhere, on a session's queue"},
	{"ring_control", ring_control, {NULL}, false, "the same on the control queue"},
	{"ring_indices", ring_indices, {NULL}, false, "indices that jump, heads that come twice"},
	{"ring_changes", ring_changes, {NULL}, false, "descriptors change while they are read"},
	{"ring_indices_change", ring_indices_change, {NULL}, false, "so do indices"},
	{"ring_self", ring_self, {NULL}, false, "answers that land in the ring"},
	{"storm", storm, {NULL}, false, "notifications without end"},
	{0},
};
