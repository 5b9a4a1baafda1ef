// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Random play over several sessions at once: commands that keep most rules and commands that keep
 * none, memory and rings that change meanwhile, sessions that open and close. The seed alone
 * decides the choice. Answers are used only where the choice says "the n-th allocation"; they
 * change nothing about the choices after that.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "tests/hostile/attack.h"

#define FIRST	 ATTACK_FIRST
#define SESSIONS 4
#define IMAGE(q) (GUEST_SPACE(q) + 0x700000)
/* The upper half of a number that stands for the n-th pointer that a session got. */
#define POINTER	 0xfeed0000u
#define POINTERS 8u

static struct player {
	bool open;
	uint64_t pointer[POINTERS];
	unsigned int pointers;
} player[GUEST_QUEUES];

static struct {
	uint64_t commands, opened, ended, late;
} count;

/* ---- another processor of the guest: it writes to memory that the device reads ---- */

static struct {
	pthread_t thread;
	atomic_bool stop;
	atomic_uint q; /* the queue it spoils; 0: none */
	struct scene *s;
} vandal;

static void *spoil(void *unused)
{
	static const uint32_t lengths[] = {0, 1, 63, 64, 64, 65, 4096, 0xffffffff};
	uint64_t x = 88172645463325252ull;

	while (!vandal.stop) {
		unsigned int q = vandal.q;
		struct queue *vq = &vandal.s->g.q[q];
		volatile struct vring_desc *d = &vq->desc[(x >> 8) % GUEST_NUM];
		volatile uint8_t *space = vandal.s->g.ram + GUEST_SPACE(q);

		if (!q) {
			usleep(100);
			continue;
		}
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		switch (x >> 60) {
		case 0:
			d->len = lengths[x >> 20 & 7];
			break;
		case 1:
			d->flags = (uint16_t)(x >> 20 & 7);
			break;
		case 2:
			d->next = (uint16_t)(x >> 20 & 0x1ff);
			break;
		case 3:
			d->addr = x & 1 ? GUEST_RAM - 32 : GUEST_SPACE(q) + (x >> 30 & 0xffff);
			break;
		default: /* records, segments, images */
			space[(x >> 20) % GUEST_SPACE_BYTES] = (uint8_t)x;
		}
		if (x >> 54 == 0x155)
			usleep(50);
	}
	return unused;
}

/* ---- choice ---- */

static const uint64_t wide[] = {
	0,
	1,
	4,
	64,
	100,
	4096,
	8192,
	65536,
	131072,
	1u << 20,
	4u << 20,
	UINT32_MAX,
	1ull << 40,
	UINT64_MAX,
	UINT64_MAX - 4095,
	GUEST_RAM,
	QCU_WINDOW_BASE,
	QCU_WINDOW_BASE + 4096,
	QCU_WINDOW_BASE + 65536,
	QCU_WINDOW_BASE + QCU_WINDOW_SIZE - 65536,
	QCU_WINDOW_BASE + QCU_WINDOW_SIZE,
	QCU_WINDOW_BASE + QCU_WINDOW_SIZE + QCU_ANNEX_SIZE,
	0x10000000,
	0x7ffff7ff0000,
	(uint64_t)POINTER << 32,
	(uint64_t)POINTER << 32 | 64,
	(uint64_t)(POINTER + 1) << 32,
	(uint64_t)(POINTER + 2) << 32 | 4096,
};
static const uint32_t narrow[] = {0, 0, 0, 1,  1,  2,	   2,	    3,
				  4, 8, 5, 32, 64, 0xffff, 0x10000, UINT32_MAX};

static uint64_t pick_wide(struct scene *s)
{
	return wide[rnd(s, sizeof(wide) / sizeof(wide[0]))];
}

static uint32_t pick_narrow(struct scene *s)
{
	return narrow[rnd(s, sizeof(narrow) / sizeof(narrow[0]))];
}

/* Picks segments, most of the time in the session's own memory. Stores their sum in *len. */
static uint32_t pick_segs(struct scene *s, unsigned int q, struct qcu_seg *seg, uint64_t *len)
{
	unsigned int n = 1 + rnd(s, 4), i;
	bool pages = rnd(s, 4);

	*len = 0;
	for (i = 0; i < n; i++) {
		seg[i].gpa = GUEST_SPACE(q) + rnd(s, 0x600000);
		seg[i].len = 1 + rnd(s, 16384);
		if (pages) {
			seg[i].gpa &= ~4095ull;
			seg[i].len = 4096ull << rnd(s, 5);
		}
		if (!rnd(s, 24))
			seg[i].gpa = pick_wide(s) | GUEST_RAM;
		if (!rnd(s, 24))
			seg[i].len = rnd(s, 2) ? 0 : UINT64_MAX;
		*len += seg[i].len;
	}
	if (!rnd(s, 16))
		*len += 1;
	return n * (uint32_t)sizeof(*seg);
}

static uint32_t pick_message(struct scene *s, uint16_t op, uint8_t *tail)
{
	static const char *const names[] = {"k", "v", "t", "loop", "none"};
	const char *name = names[rnd(s, 5)];
	struct qcu_launch_msg msg = {
		.grid = {1 + rnd(s, 3), 1, 1},
		.block = {1 + rnd(s, 64), 1, 1},
		.param_bytes = rnd(s, 8) ? 12 : pick_narrow(s) & 0xff,
	};
	uint64_t p = pick_wide(s);
	uint32_t n = pick_narrow(s), i;

	if (op == QCU_OP_TEXTURE_CREATE) {
		for (i = 0; i < sizeof(struct qcu_texture_msg); i += 4) {
			n = rnd(s, 3) ? rnd(s, 5) : pick_narrow(s);
			memcpy(tail + i, &n, 4);
		}
		return sizeof(struct qcu_texture_msg);
	}
	if (op != QCU_OP_LAUNCH && op != QCU_OP_OCCUPANCY_CLUSTER) {
		memcpy(tail, name, strlen(name));
		return (uint32_t)strlen(name);
	}
	if (!rnd(s, 10))
		((uint32_t *)&msg)[rnd(s, 16)] = pick_narrow(s) & 0x1f;
	memcpy(tail, &msg, sizeof(msg));
	memcpy(tail + sizeof(msg), &p, 8);
	memcpy(tail + sizeof(msg) + 8, &n, 4);
	return sizeof(msg) + (op == QCU_OP_LAUNCH && msg.param_bytes < 200 ? msg.param_bytes : 0);
}

static const struct qcu_rule *pick_op(struct scene *s, struct qCUcmd *c)
{
	const struct qcu_rule *rule;

	do {
		c->op = (uint16_t)rnd(s, QCU_OP_COUNT);
		rule = qcu_rule(c->op);
	} while (!rule || rule->who == QCU_WHO_CTL);
	return rule;
}

static uint32_t pick_command(struct scene *s, unsigned int q, struct qCUcmd *c, uint8_t *tail)
{
	const struct qcu_rule *rule;
	uint64_t len;
	uint32_t n = 0, x;
	unsigned int i;

	*c = command(0, 0);
	rule = pick_op(s, c);
	c->tid = rule->who == QCU_WHO_DRV ? 0 : 1 + rnd(s, 6);
	c->seq = (uint32_t)count.commands;
	c->device = rnd(s, 12) == 0;
	for (i = 0; i + 4 <= rule->in; i += 4) {
		x = pick_narrow(s);
		memcpy(c->body + i, &x, 4);
		if (i % 8 || i + 8 > rule->in || rnd(s, 3))
			continue;
		len = pick_wide(s);
		memcpy(c->body + i, &len, 8);
		i += 4;
	}
	switch (rule->buffer) {
	case QCU_BUFFER_MSG:
		c->flags = QCU_F_MSG;
		n = pick_message(s, c->op, tail);
		c->buf.len = n;
		break;
	case QCU_BUFFER_IN:
	case QCU_BUFFER_OUT:
	case QCU_BUFFER_STAY:
		c->buf.addr = QCU_WINDOW_BASE + rnd(s, 4) * 4096;
		c->flags = QCU_F_WINDOW;
		c->buf.len = pick_wide(s);
		if (rule->buffer == QCU_BUFFER_STAY || rnd(s, 2))
			break;
		c->flags = QCU_F_SEGS;
		n = pick_segs(s, q, (struct qcu_seg *)tail, &len);
		c->buf.len = len;
		if (c->op == QCU_OP_MODULE_LOAD) {
			const struct qcu_seg seg = {IMAGE(q), plain_image_bytes};

			memcpy(tail, &seg, sizeof(seg));
			n = sizeof(seg);
			c->buf.len = seg.len;
		}
	}
	if (c->op == QCU_OP_MAP) {
		c->flags = QCU_F_SEGS;
		n = pick_segs(s, q, (struct qcu_seg *)tail, &len);
		c->map.len = len;
		if (rnd(s, 2))
			c->map.va = QCU_WINDOW_BASE + rnd(s, 4) * 65536ull;
	}
	if (rule->who == QCU_WHO_POST && rnd(s, 2))
		c->flags |= QCU_F_POSTED;
	return n;
}

/* Breaks a rule, most of the time. */
static void mutate(struct scene *s, struct qCUcmd *c, uint8_t *tail, uint32_t *n)
{
	switch (rnd(s, 6)) {
	case 0:
		c->flags ^= (uint8_t)(1u << rnd(s, 8));
		break;
	case 1:
		c->words[rnd(s, QCU_BODY / 4)] = pick_narrow(s);
		break;
	case 2:
		((uint8_t *)c)[rnd(s, sizeof(*c))] = (uint8_t)rnd(s, 256);
		break;
	case 3:
		*n = rnd(s, *n + 17);
		break;
	case 4:
		if (*n)
			tail[rnd(s, *n)] = (uint8_t)rnd(s, 256);
		break;
	default:
		c->tid = pick_narrow(s);
	}
}

/* ---- play ---- */

static void put_pointers(const struct player *p, uint8_t *at, size_t len)
{
	uint64_t v;

	for (; len >= 8; at += 8, len -= 8) {
		memcpy(&v, at, 8);
		if ((v >> 32 & ~(uint64_t)(POINTERS - 1)) != POINTER)
			continue;
		v = p->pointer[v >> 32 & (POINTERS - 1)] + (uint32_t)v;
		memcpy(at, &v, 8);
	}
}

/* Notes if the session is over. */
static void look(struct scene *s, unsigned int q)
{
	struct queue *vq = &s->g.q[q];
	unsigned int slot;

	if (!player[q].open)
		return;
	guest_take(&s->g, q);
	for (slot = 0; slot < GUEST_SLOTS; slot++)
		if (!vq->out[slot] && vq->order[slot] < vq->back && !vq->len[slot] && vq->back)
			if (vq->order[slot] || vq->back == 1)
				player[q].open = false;
	count.ended += !player[q].open;
}

static void open_session(struct scene *s, unsigned int q)
{
	struct player *p = &player[q];

	if (vandal.q == q)
		vandal.q = 0;
	*p = (struct player){.open = true};
	guest_fresh(&s->g, q);
	/* A slot that was never used must not look like one that came back empty. */
	memset(s->g.q[q].len, 0xff, sizeof(s->g.q[q].len));
	memcpy(s->g.ram + IMAGE(q), plain_image, plain_image_bytes);
	cmd_load(&s->g, q, GOOD_ID, IMAGE(q), plain_image_bytes);
	cmd_find(&s->g, q, GOOD_ID, GOOD_ID, "k");
	if (!cmd_malloc(&s->g, q, 65536, &p->pointer[0]))
		p->pointers = 1;
	cmd_map(&s->g, q, QCU_WINDOW_BASE, GUEST_SPACE(q), 0x10000);
	cmd_stream(&s->g, q, 2);
	count.opened++;
}

static void send_command(struct scene *s, unsigned int q)
{
	struct player *p = &player[q];
	uint8_t tail[512] = {0};
	struct qCUcmd c, r;
	uint32_t n = pick_command(s, q, &c, tail);
	bool wait = rnd(s, 3) == 0;
	int slot, rc;

	if (!rnd(s, 12))
		mutate(s, &c, tail, &n);
	put_pointers(p, c.body, QCU_BODY);
	if (c.flags & QCU_F_MSG)
		put_pointers(p, tail + (c.op == QCU_OP_LAUNCH ? 64 : 0), 8);
	guest_take(&s->g, q);
	slot = guest_post(&s->g, q, &c, tail, n);
	count.late += slot < 0;
	if (!rnd(s, 3) || wait)
		guest_kick(&s->g, q);
	if (slot < 0 || !wait)
		return;
	rc = guest_wait(&s->g, q, slot, &r, 20);
	if (!rc && c.op == QCU_OP_MALLOC && r.malloc.ptr)
		p->pointer[p->pointers++ % POINTERS] = r.malloc.ptr;
	if (!rc && c.op == QCU_OP_VAR_FIND)
		p->pointer[p->pointers++ % POINTERS] = r.var_find.addr;
}

/* Sends a chain of random descriptors, under a random head. */
static void send_nonsense(struct scene *s, unsigned int q)
{
	struct queue *vq = &s->g.q[q];
	unsigned int n = 1 + rnd(s, 6), i, kind = rnd(s, 6);

	vq->mangled = true;
	for (i = 0; i < n; i++) {
		struct vring_desc *d = &vq->desc[rnd(s, GUEST_NUM)];

		d->addr = rnd(s, 3) ? GUEST_SPACE(q) + rnd(s, 0x10000) : pick_wide(s) | GUEST_RAM;
		d->len = rnd(s, 3) ? 64 : pick_narrow(s);
		d->flags = (uint16_t)rnd(s, 8);
		d->next = (uint16_t)rnd(s, GUEST_NUM + 8);
	}
	if (kind < 3) {
		vq->avail->ring[vq->added % GUEST_NUM] = (uint16_t)rnd(s, GUEST_NUM + 2);
		vq->added++;
	} else if (kind == 3) {
		vq->added += (uint16_t)rnd(s, 0x10000);
	} else if (kind == 4) {
		vq->used->idx = (uint16_t)rnd(s, 0x10000);
	} else {
		memset(vq->used, (int)rnd(s, 256), 512);
	}
	__atomic_store_n(&vq->avail->idx, vq->added, __ATOMIC_RELEASE);
	guest_kick(&s->g, q);
}

static void send_control(struct scene *s)
{
	struct qCUcmd c = command((uint16_t)rnd(s, 6), 0);
	uint32_t q = rnd(s, 4) ? FIRST + rnd(s, SESSIONS) : rnd(s, 80);

	/* Not the good program's session: a guest has the right to close its own sessions. */
	c.close.queue = q == GOOD_SESSION ? 0 : q;
	if (c.op == QCU_OP_OPEN && q >= FIRST && q < FIRST + SESSIONS)
		c.open.queue = 0;
	if (!rnd(s, 4))
		c.words[1 + rnd(s, 11)] = pick_narrow(s);
	if (!rnd(s, 8))
		c.tid = 1;
	if (guest_ask(&s->g, 0, &c, NULL, 0) == 0 && c.op == QCU_OP_CLOSE)
		player[q].open = false;
}

static void spoil_memory(struct scene *s, unsigned int q)
{
	uint8_t *at = s->g.ram + GUEST_SPACE(q);
	unsigned int n = rnd(s, 64);

	if (rnd(s, 2))
		at += 0x700000;
	while (n--)
		at[rnd(s, rnd(s, 2) ? 256 : 65536)] = (uint8_t)rnd(s, 256);
}

static void step(struct scene *s)
{
	unsigned int q = FIRST + rnd(s, SESSIONS), what = rnd(s, 400), i;

	look(s, q);
	if (!player[q].open)
		open_session(s, q);
	if (what == 0) {
		guest_close(&s->g, q);
		player[q].open = false;
	} else if (what == 1) {
		guest_queue_stop(&s->g, q);
		player[q].open = false;
	} else if (what == 2) {
		vandal.q = rnd(s, 3) ? 0 : q;
		s->g.q[q].mangled = true;
	} else if (what == 3) {
		send_nonsense(s, q);
	} else if (what < 8) {
		send_control(s);
	} else if (what < 12) {
		for (i = 0; i < 2000; i++)
			eventfd_write(s->g.q[rnd(s, 2) ? q : 0].kick, 1);
	} else if (what < 30) {
		spoil_memory(s, q);
	} else {
		send_command(s, q);
	}
	count.commands++;
}

bool random_play(struct scene *s)
{
	struct timespec now, end;
	unsigned int q;

	clock_gettime(CLOCK_MONOTONIC, &end);
	end.tv_sec += s->seconds;
	vandal.s = s;
	vandal.stop = false;
	if (pthread_create(&vandal.thread, NULL, spoil, NULL))
		die("no thread");
	do {
		step(s);
		if (count.commands % 256 == 0 && !host_alive(&s->h))
			break;
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while ((!s->limit || count.commands < s->limit) &&
		 (!s->seconds || now.tv_sec < end.tv_sec));
	vandal.stop = true;
	pthread_join(vandal.thread, NULL);
	printf("%llu steps; %llu sessions opened, %llu ended by themselves; %llu commands had no "
	       "place; the good session did %llu rounds\n",
	       (unsigned long long)count.commands, (unsigned long long)count.opened,
	       (unsigned long long)count.ended, (unsigned long long)count.late,
	       (unsigned long long)good_rounds());
	for (q = FIRST; q < FIRST + SESSIONS && host_alive(&s->h); q++) {
		guest_fresh(&s->g, q);
		memcpy(s->g.ram + IMAGE(q), plain_image, plain_image_bytes);
		if (cmd_load(&s->g, q, GOOD_ID, IMAGE(q), plain_image_bytes) ||
		    cmd_find(&s->g, q, GOOD_ID, GOOD_ID, "k") || !good_work(&s->g, q, 1, q))
			return fell("session %u does no right work afterwards", q);
		guest_close(&s->g, q);
	}
	return true;
}
