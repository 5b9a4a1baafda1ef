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

#include "tests/fuzz/choose.h"
#include "tests/hostile/attack.h"

#define FIRST	 ATTACK_FIRST
#define SESSIONS 4
#define IMAGE(q) (GUEST_SPACE(q) + 0x700000)

static struct player {
	bool open;
	uint64_t pointer[CHOOSE_POINTERS];
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

/* The message of a call of a library, behind the image. */
#define MESSAGE(q) (GUEST_SPACE(q) + 0x7f0000)

static void put(const struct chooser *how, const uint8_t *bytes, uint32_t n)
{
	const struct scene *s = how->who;
	const unsigned int q = (unsigned int)((how->message - GUEST_SPACE(0)) / GUEST_SPACE_BYTES);
	uint8_t *at = s->g.ram + how->message;

	memcpy(at, bytes, n);
	choose_pointers(player[q].pointer, at, n);
}

static struct chooser chooser(struct scene *s, unsigned int q)
{
	return (struct chooser){
		.random = &s->random,
		.threads = 6,
		.devices = 12,
		.gpa = GUEST_SPACE(q),
		.bytes = 0x600000,
		.beyond = GUEST_RAM,
		.image = IMAGE(q),
		.image_bytes = plain_image_bytes,
		.message = MESSAGE(q),
		.put = put,
		.who = s,
	};
}

/* Breaks a rule, most of the time. */
static void mutate(struct scene *s, const struct chooser *how, struct qCUcmd *c, uint8_t *tail,
		   uint32_t *n)
{
	switch (rnd(s, 6)) {
	case 0:
		c->flags ^= (uint8_t)(1u << rnd(s, 8));
		break;
	case 1:
		c->words[rnd(s, QCU_BODY / 4)] = choose_narrow(how);
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
		c->tid = choose_narrow(how);
	}
}

/* ---- play ---- */

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
	const struct chooser how = chooser(s, q);
	uint8_t tail[CHOOSE_TAIL] = {0};
	struct qCUcmd c, r;
	uint32_t n = choose_command(&how, &c, tail);
	bool wait = rnd(s, 3) == 0;
	int slot, rc;

	c.seq = (uint32_t)count.commands;
	if (!rnd(s, 12))
		mutate(s, &how, &c, tail, &n);
	choose_pointers(p->pointer, c.body, QCU_BODY);
	if (c.op == QCU_OP_LIB_CALL)
		choose_pointers(p->pointer, tail, n);
	else if (c.flags & QCU_F_MSG)
		choose_pointers(p->pointer, tail + (c.op == QCU_OP_LAUNCH ? 64 : 0), 8);
	guest_take(&s->g, q);
	slot = guest_post(&s->g, q, &c, tail, n);
	count.late += slot < 0;
	if (!rnd(s, 3) || wait)
		guest_kick(&s->g, q);
	if (slot < 0 || !wait)
		return;
	rc = guest_wait(&s->g, q, slot, &r, 20);
	if (!rc && c.op == QCU_OP_MALLOC && r.malloc.ptr)
		p->pointer[p->pointers++ % CHOOSE_POINTERS] = r.malloc.ptr;
	if (!rc && c.op == QCU_OP_VAR_FIND)
		p->pointer[p->pointers++ % CHOOSE_POINTERS] = r.var_find.addr;
}

/* Sends a chain of random descriptors, under a random head. */
static void send_nonsense(struct scene *s, unsigned int q)
{
	const struct chooser how = chooser(s, q);
	struct queue *vq = &s->g.q[q];
	unsigned int n = 1 + rnd(s, 6), i, kind = rnd(s, 6);

	vq->mangled = true;
	for (i = 0; i < n; i++) {
		struct vring_desc *d = &vq->desc[rnd(s, GUEST_NUM)];

		d->addr = rnd(s, 3) ? GUEST_SPACE(q) + rnd(s, 0x10000)
				    : choose_wide(&how) | GUEST_RAM;
		d->len = rnd(s, 3) ? 64 : choose_narrow(&how);
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
	const struct chooser how = chooser(s, FIRST);
	uint32_t q = rnd(s, 4) ? FIRST + rnd(s, SESSIONS) : rnd(s, 80);

	/* Not the good program's session: a guest has the right to close its own sessions. */
	c.close.queue = q == GOOD_SESSION ? 0 : q;
	if (c.op == QCU_OP_OPEN && q >= FIRST && q < FIRST + SESSIONS)
		c.open.queue = 0;
	if (!rnd(s, 4))
		c.words[1 + rnd(s, 11)] = choose_narrow(&how);
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
