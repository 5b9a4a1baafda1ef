// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Attacks on the mirror's address space: memory that is unmapped while it is used, addresses
 * outside the guest's ranges, ranges that wrap, and questions whose answers could tell the guest
 * where the mirror's memory is.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tests/hostile/attack.h"

#define Q    ATTACK_FIRST
#define PAGE 0x1000ull
#define PART 0x400000ull
/* Longer than any command takes that does not have to wait. */
#define HELD_MS 400

/*
 * Finds a place in the mirror's own address space where nothing is mapped, below the lowest
 * library.
 */
static uint64_t free_place(struct scene *s)
{
	unsigned long from, to, low = 0;
	char path[64], line[512];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/maps", host_mirror(&s->h, Q));
	f = fopen(path, "r");
	while (f && !low && fgets(line, sizeof(line), f))
		if (sscanf(line, "%lx-%lx", &from, &to) == 2 && from > 0x700000000000ul)
			low = from;
	if (f)
		fclose(f);
	return low ? low - 0x800000 : 0x10000000;
}

static uint64_t copies_begun(struct scene *s)
{
	const struct qcu_seg seg = {GUEST_SPACE(Q) + 0x700000, sizeof(struct qcu_stats_desc)};
	struct qcu_stats_desc d;
	struct qCUcmd c = command(QCU_OP_STATS, 9);

	c.flags = QCU_F_SEGS;
	c.stats.buf.len = seg.len;
	if (guest_ask(&s->g, Q, &c, &seg, sizeof(seg)))
		die("STATS fails");
	memcpy(&d, s->g.ram + seg.gpa, sizeof(d));
	return d.copies;
}

/*
 * Maps one part of the guest's memory several times in a row, so that the map is longer than the
 * memory.
 */
static int map_long(struct scene *s, uint64_t va, unsigned int parts)
{
	struct qcu_seg segs[32];
	struct qCUcmd c = command(QCU_OP_MAP, 0);
	unsigned int i;

	for (i = 0; i < parts; i++)
		segs[i] = (struct qcu_seg){GUEST_SPACE(Q), PART};
	c.flags = QCU_F_SEGS;
	c.map.va = va;
	c.map.len = parts * PART;
	c.map.chunk_bytes = QCU_CHUNK_DEFAULT;
	return guest_ask(&s->g, Q, &c, segs, parts * (uint32_t)sizeof(segs[0]));
}

static int fill_device(struct scene *s, uint64_t device, uint64_t len)
{
	struct qCUcmd c = command(QCU_OP_MEMSET, 1);

	c.memset.dst = device;
	c.memset.width = len;
	c.memset.height = 1;
	c.memset.elem = 1;
	c.memset.value = 0x21;
	c.memset.flags = QCU_COPY_SYNC;
	return guest_ask(&s->g, Q, &c, NULL, 0);
}

/*
 * Makes two maps, side by side. A copy of two long rows writes into both maps. The border between
 * the maps cuts the second row, so that a CPU carries this row. The copy waits for a host function.
 * Meanwhile the guest unmaps the second map, and new guest threads start.
 */
static bool tail_goes(struct scene *s, uint64_t va)
{
	const struct timespec ms = {.tv_nsec = 1000000};
	const uint64_t width = 12 * PART, border = 18 * PART;
	struct guest *g = &s->g;
	struct qCUcmd rect = command(QCU_OP_RECT_D2H, 2), unmap = command(QCU_OP_UNMAP, 0), c;
	uint64_t device, before;
	int slot, tail, rc, i;

	rc = map_long(s, va, 18);
	if (rc == QCU_MAP_TAKEN || rc == QCU_ERR_InvalidValue || rc == GUEST_GONE)
		return true; /* not the guest's: nothing to attack */
	if (rc || map_long(s, va + border, 6))
		return fell("MAP at 0x%llx: %d", (unsigned long long)va, rc);
	if (cmd_malloc(g, Q, 2 * width, &device) || fill_device(s, device, 2 * width) ||
	    cmd_stream(g, Q, 2) || cmd_host_func(g, Q, 2, 7))
		die("the attack cannot be set up");
	before = copies_begun(s);
	memset(g->ram + GUEST_SPACE(Q), 0x55, PART);
	rect.flags = QCU_F_WINDOW;
	rect.rect_d2h.buf = (struct qcu_buf){va, 2 * width};
	rect.rect_d2h.src = device;
	rect.rect_d2h.pitch = rect.rect_d2h.src_pitch = rect.rect_d2h.width = (uint32_t)width;
	rect.rect_d2h.height = 2;
	rect.rect_d2h.stream = 2;
	slot = guest_post(g, Q, &rect, NULL, 0);
	guest_kick(g, Q);
	for (i = 0; copies_begun(s) < before + 1; i++) {
		if (i == GUEST_WAIT_MS || !g->q[Q].out[slot])
			die("the copy does not begin: %d", guest_wait(g, Q, slot, &c, 0));
		nanosleep(&ms, NULL);
	}
	unmap.unmap.va = va + border;
	unmap.unmap.len = 6 * PART;
	tail = guest_post(g, Q, &unmap, NULL, 0);
	guest_kick(g, Q);
	if (guest_wait(g, Q, tail, &c, HELD_MS) != GUEST_LATE)
		return fell("UNMAP at 0x%llx does not wait for a copy",
			    (unsigned long long)unmap.unmap.va);
	for (i = 0; i < 40; i++)
		cmd_simple(g, Q, QCU_OP_INFO, 100 + (uint32_t)i);
	if (!cmd_host_run(g, Q, 1))
		return fell("the session is over");
	rc = guest_wait(g, Q, slot, &c, GUEST_WAIT_MS);
	if (rc)
		return fell("RECT_D2H: %d", rc);
	rc = guest_wait(g, Q, tail, &c, GUEST_WAIT_MS);
	if (rc)
		return fell("UNMAP: %d", rc);
	for (i = 0; i < (int)PART; i++)
		if (g->ram[GUEST_SPACE(Q) + i] != 0x21)
			return fell("byte %d has not come down", i);
	return true;
}

static bool map_tail(struct scene *s)
{
	unsigned int place;
	uint64_t va;

	for (place = 0; place < 4; place++) {
		guest_fresh(&s->g, Q);
		cmd_simple(&s->g, Q, QCU_OP_INFO, 1);
		va = place == 0	  ? QCU_WINDOW_BASE
		     : place == 1 ? QCU_WINDOW_BASE + QCU_WINDOW_SIZE + 0x100000
		     : place == 2 ? 0x10000000
				  : free_place(s);
		if (!tail_goes(s, va))
			return false;
	}
	return true;
}

/* The session ends while an UNMAP waits. */
static bool map_tail_close(struct scene *s)
{
	struct guest *g = &s->g;
	struct qCUcmd copy = command(QCU_OP_COPY_D2H, 2), unmap = command(QCU_OP_UNMAP, 0);
	uint64_t device;
	unsigned int round;

	for (round = 0; round < 10; round++) {
		guest_fresh(g, Q);
		if (cmd_map(g, Q, QCU_WINDOW_BASE, GUEST_SPACE(Q), 0x10000) ||
		    cmd_malloc(g, Q, 0x10000, &device) || cmd_stream(g, Q, 2) ||
		    cmd_host_func(g, Q, 2, 7))
			die("the attack cannot be set up");
		copy.flags = QCU_F_WINDOW;
		copy.copy_d2h.buf = (struct qcu_buf){QCU_WINDOW_BASE, 0x10000};
		copy.copy_d2h.src = device;
		copy.copy_d2h.stream = 2;
		unmap.unmap.va = QCU_WINDOW_BASE;
		unmap.unmap.len = 0x10000;
		guest_post(g, Q, &copy, NULL, 0);
		guest_kick(g, Q);
		if (round & 1)
			cmd_simple(g, Q, QCU_OP_INFO, 3);
		guest_post(g, Q, &unmap, NULL, 0);
		guest_kick(g, Q);
		if (guest_close(g, Q))
			return fell("CLOSE fails");
	}
	return true;
}

/* ---- what MAP's answers tell ---- */

static int probe(struct scene *s, uint64_t va)
{
	int rc = cmd_map(&s->g, Q, va, GUEST_SPACE(Q), PAGE);

	if (!rc && cmd_unmap(&s->g, Q, va, PAGE))
		die("UNMAP of a page fails");
	if (rc == GUEST_GONE)
		guest_fresh(&s->g, Q);
	return rc;
}

/*
 * An address that the mirror uses and the free address beside it must look the same to the guest.
 * The test can read the mirror's map; the guest cannot.
 */
static bool map_oracle(struct scene *s)
{
	unsigned long from, to, before = 0;
	char path[64], line[512], access[8];
	struct {
		unsigned long at;
		bool gap;
	} place[512];
	unsigned int n = 0, i;
	FILE *f;

	guest_fresh(&s->g, Q);
	cmd_simple(&s->g, Q, QCU_OP_INFO, 1);
	snprintf(path, sizeof(path), "/proc/%d/maps", host_mirror(&s->h, Q));
	f = fopen(path, "r");
	while (f && fgets(line, sizeof(line), f) && n < 512) {
		if (sscanf(line, "%lx-%lx %7s", &from, &to, access) != 3)
			continue;
		if (access[0] != '-' && from > 0x200000 && from >> 47 == 0) {
			place[n].at = from;
			place[n++].gap = from - before >= 2 * PAGE;
		}
		before = to;
	}
	if (f)
		fclose(f);
	if (n < 10)
		die("%s: only %u places", path, n);
	for (i = 0; i < n; i++) {
		int own = probe(s, place[i].at), beside = own;

		if (place[i].gap)
			beside = probe(s, place[i].at - PAGE);
		if (!own)
			return fell("MAP at 0x%lx, which is the mirror's own", place[i].at);
		if (own != beside)
			return fell("MAP says %d at 0x%lx and %d before it", own, place[i].at,
				    beside);
	}
	printf("%u places of the mirror's own tell nothing\n", n);
	return true;
}

/* ---- ranges that wrap, or are not the guest's ---- */

/* Is the watch page in this range, if the numbers are taken literally? */
static bool covers(const struct qcu_unmap *u)
{
	return u->va <= QCU_WINDOW_BASE && u->len > QCU_WINDOW_BASE - u->va;
}

static bool unmap_wrap(struct scene *s)
{
	static const struct qcu_unmap ranges[] = {
		{0x1000, 0 - 0x1000ull},
		{0, UINT64_MAX},
		{0, UINT64_MAX - 0xfff},
		{0x1000, UINT64_MAX - 0x1fff},
		{QCU_WINDOW_BASE, 0 - QCU_WINDOW_BASE},
		{QCU_WINDOW_BASE + 0x1000, 0 - QCU_WINDOW_BASE},
		{QCU_WINDOW_BASE, UINT64_MAX},
		{QCU_WINDOW_BASE, 0},
		{QCU_WINDOW_BASE + 1, 1},
		{UINT64_MAX - 0xfff, 0x1000},
		{UINT64_MAX, 1},
		{UINT64_MAX, UINT64_MAX},
		{0, 1ull << 47},
		{0x1000, (1ull << 47) - 0x2000},
	};
	struct guest *g = &s->g;
	struct qCUcmd c;
	unsigned int i;
	int rc, slot;
	bool gone;

	for (i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++) {
		uint64_t *page = (uint64_t *)(g->ram + GUEST_SPACE(Q));

		guest_fresh(g, Q);
		if (cmd_map(g, Q, QCU_WINDOW_BASE, GUEST_SPACE(Q), 0x10000) || cmd_stream(g, Q, 2))
			die("the attack cannot be set up");
		memset(page, 0, QCU_WATCH_BYTES);
		c = command(QCU_OP_WATCH, 1);
		c.flags = QCU_F_WINDOW;
		c.watch.buf = (struct qcu_buf){QCU_WINDOW_BASE, QCU_WATCH_BYTES};
		if (guest_ask(g, Q, &c, NULL, 0) || cmd_host_func(g, Q, 2, 7))
			die("the attack cannot be set up");
		/* UNMAP may have to wait for the host function. */
		c = command(QCU_OP_UNMAP, 0);
		c.unmap = ranges[i];
		slot = guest_post(g, Q, &c, NULL, 0);
		guest_kick(g, Q);
		rc = guest_wait(g, Q, slot, &c, HELD_MS);
		if (rc == GUEST_LATE) {
			cmd_host_run(g, Q, 1);
			rc = guest_wait(g, Q, slot, &c, GUEST_WAIT_MS);
			if (!rc && cmd_host_func(g, Q, 2, 8))
				return fell("range %u: no host function any more", i);
		}
		if (rc == GUEST_GONE)
			continue;
		if (rc < 0)
			return fell("range %u: UNMAP gives %d", i, rc);
		gone = rc == 0 && covers(&ranges[i]);
		memset(page, 0, QCU_WATCH_BYTES);
		c = command(QCU_OP_STREAM_QUERY, 1);
		c.stream_query.stream = 2;
		c.stream_query.slot = 3;
		c.stream_query.token = 0x4141;
		if (guest_ask(g, Q, &c, NULL, 0) != QCU_ERR_NotReady)
			return fell("range %u: STREAM_QUERY gives %d", i, c.status);
		if (!cmd_host_run(g, Q, 1))
			return fell("range %u: the session is over", i);
		c = command(QCU_OP_STREAM_SYNC, 1);
		c.stream_sync.stream = 2;
		guest_ask(g, Q, &c, NULL, 0);
		/* The watching thread polls at least every millisecond. */
		usleep(5000);
		if (gone && page[3])
			return fell("range %u: a page that has gone is written to", i);
		if (cmd_simple(g, Q, QCU_OP_INFO, 1))
			return fell("range %u: the session is over", i);
	}
	return true;
}

static bool map_bad(struct scene *s)
{
	static const struct {
		uint64_t va, gpa, len, said;
	} maps[] = {
		{QCU_WINDOW_BASE, 0, 0, 0},
		{QCU_WINDOW_BASE + 1, 0, PAGE, PAGE},
		{QCU_WINDOW_BASE, 1, PAGE, PAGE},
		{QCU_WINDOW_BASE, 0, PAGE - 1, PAGE - 1},
		{QCU_WINDOW_BASE, 0, PAGE, 2 * PAGE},
		{QCU_WINDOW_BASE, 0, 2 * PAGE, PAGE},
		{QCU_WINDOW_BASE, GUEST_RAM, PAGE, PAGE},
		{QCU_WINDOW_BASE, GUEST_RAM - PAGE, 2 * PAGE, 2 * PAGE},
		{QCU_WINDOW_BASE, UINT64_MAX - PAGE + 1, PAGE, PAGE},
		{QCU_WINDOW_BASE, UINT64_MAX - PAGE + 1, 2 * PAGE, 2 * PAGE},
		{QCU_WINDOW_BASE, 0, UINT64_MAX, UINT64_MAX},
		{UINT64_MAX - PAGE + 1, 0, PAGE, PAGE},
		{UINT64_MAX - PAGE + 1, 0, 2 * PAGE, 2 * PAGE},
		{0, 0, PAGE, PAGE},
		{PAGE, 0, PAGE, PAGE},
		{0xffff800000000000ull, 0, PAGE, PAGE},
		{1ull << 47, 0, PAGE, PAGE},
		{(1ull << 47) - PAGE, 0, PAGE, PAGE},
		{QCU_WINDOW_BASE - PAGE, 0, 2 * PAGE, 2 * PAGE},
		{QCU_WINDOW_BASE + QCU_WINDOW_SIZE + QCU_ANNEX_SIZE - PAGE, 0, 2 * PAGE, 2 * PAGE},
	};
	unsigned int i;
	bool over;

	guest_fresh(&s->g, Q);
	for (i = 0; i < sizeof(maps) / sizeof(maps[0]); i++) {
		const struct qcu_seg seg = {maps[i].gpa, maps[i].len};
		struct qCUcmd c = command(QCU_OP_MAP, 0);

		c.flags = QCU_F_SEGS;
		c.map.va = maps[i].va;
		c.map.len = maps[i].said;
		if (!guest_ask(&s->g, Q, &c, &seg, maps[i].len ? sizeof(seg) : 0))
			return fell("map %u is taken", i);
		if (!session_settled(s, Q, &over))
			return false;
		if (over)
			guest_fresh(&s->g, Q);
	}
	return true;
}

/*
 * Sends commands without waiting for answers: maps come and go under copies, registrations and a
 * watch page.
 */
static bool map_race(struct scene *s)
{
	struct guest *g = &s->g;
	struct qcu_seg seg;
	uint64_t device;
	unsigned int round;
	bool over;

	guest_fresh(g, Q);
	if (cmd_malloc(g, Q, 0x40000, &device))
		die("no memory");
	for (round = 0; round < 3000; round++) {
		uint64_t va = QCU_WINDOW_BASE + rnd(s, 4) * 0x10000ull;
		uint64_t len = 0x10000ull << rnd(s, 2);
		struct qCUcmd c;

		if (!rnd(s, 4))
			va += QCU_WINDOW_SIZE;
		seg = (struct qcu_seg){GUEST_SPACE(Q) + rnd(s, 16) * 0x10000ull, len};
		switch (rnd(s, 6)) {
		case 0:
			c = command(QCU_OP_MAP, 0);
			c.flags = QCU_F_SEGS;
			c.map.va = va;
			c.map.len = len;
			break;
		case 1:
			c = command(QCU_OP_UNMAP, 0);
			c.unmap.va = va;
			c.unmap.len = len;
			break;
		case 2:
			c = command(QCU_OP_WATCH, 1 + rnd(s, 4));
			c.flags = QCU_F_WINDOW;
			c.watch.buf = (struct qcu_buf){va, QCU_WATCH_BYTES};
			break;
		case 3:
			c = command(QCU_OP_HOST_REGISTER, 1 + rnd(s, 4));
			c.flags = QCU_F_WINDOW;
			c.host_register.buf = (struct qcu_buf){va, len};
			break;
		case 4:
			c = command(QCU_OP_RECT_D2H, 1 + rnd(s, 4));
			c.flags = QCU_F_WINDOW;
			c.rect_d2h.buf = (struct qcu_buf){va, len - 1000};
			c.rect_d2h.src = device;
			c.rect_d2h.pitch = 1000;
			c.rect_d2h.src_pitch = 500;
			c.rect_d2h.width = 500;
			c.rect_d2h.height = (uint32_t)((len - 1500) / 1000);
			c.rect_d2h.buf.len = 1000ull * (c.rect_d2h.height - 1) + 500;
			break;
		default:
			c = command(QCU_OP_COPY_H2D, 1 + rnd(s, 4));
			c.flags = QCU_F_WINDOW;
			c.copy_h2d.buf = (struct qcu_buf){va, len};
			c.copy_h2d.dst = device;
		}
		guest_take(g, Q);
		while (guest_post(g, Q, &c, &seg, c.op == QCU_OP_MAP ? sizeof(seg) : 0) < 0) {
			guest_kick(g, Q);
			usleep(200);
			guest_take(g, Q);
		}
		guest_kick(g, Q);
		if (round % 64 == 63) {
			if (!session_settled(s, Q, &over))
				return false;
			if (!over)
				continue;
			guest_fresh(g, Q);
			if (cmd_malloc(g, Q, 0x40000, &device))
				die("no memory");
		}
	}
	return true;
}

const struct attack map_attacks[] = {
	{"map_bad", map_bad, {NULL}, false, "maps of what is not there, wraps, or is not pages"},
	{"map_tail",
	 map_tail,
	 {"--vram", "256M"},
	 false,
	 "memory goes while a copy will write to it"},
	{"map_tail_close", map_tail_close, {NULL}, false, "the same, and then the session ends"},
	{"map_oracle",
	 map_oracle,
	 {NULL},
	 false,
	 "MAP's answers tell where the mirror's memory is"},
	{"unmap_wrap", unmap_wrap, {NULL}, false, "UNMAP of ranges that wrap, under a watch page"},
	{"map_race", map_race, {NULL}, false, "maps come and go while they are used"},
	{0},
};
