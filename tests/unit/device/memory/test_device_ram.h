/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A mirror whose guest is another process: the guest's memory, and copies from and to it. */
#ifndef TEST_DEVICE_RAM_H
#define TEST_DEVICE_RAM_H

#include <pthread.h>

#include "qcu-device/memory/guestmem.h"
#include "tests/unit/device/memory/test_device_memfd.h"
#include "tests/unit/device/mirror/test_device_mirror.h"

#define PAGE 0x1000ull
#define RAM  (4096 * PAGE)
#define HIGH 0x100000000ull /* the second half of RAM */
#define VA   QCU_WINDOW_BASE

static struct guestmem mem;
static uint8_t *ram;
static uint64_t dev; /* device memory */

static inline int make_ram(void **state)
{
	(void)state;
	ram = memfd_ram(RAM);
	return !ram || guestmem_add(&mem, 0, RAM / 2, ram) ||
	       guestmem_add(&mem, HIGH, RAM / 2, ram + RAM / 2);
}

static inline int start(struct mir_config cfg, uint64_t device_bytes)
{
	struct qCUcmd c = CMD(MALLOC, malloc, .size = device_bytes);
	size_t i;

	cfg.ops = &fake_ops;
	cfg.session = 1;
	cfg.mem = &mem;
	fake_reset();
	if (mir_create(&mirror, &cfg) || ask_with(&c, NULL, NULL, 0))
		return -1;
	dev = c.malloc.ptr;
	for (i = 0; i < RAM; i++)
		ram[i] = (uint8_t)(i * 7 + (i >> 12));
	return 0;
}

static inline struct qcu_stats_desc stats(void)
{
	const struct qcu_seg seg = {0, sizeof(struct qcu_stats_desc)};
	struct qCUcmd c = CMD(STATS, stats, .buf = {0, seg.len});
	struct qcu_stats_desc st;
	uint8_t saved[sizeof(st)];

	memcpy(saved, ram, sizeof(saved));
	c.flags = QCU_F_SEGS;
	assert_int_equal(ask_with(&c, NULL, &seg, 1), 0);
	memcpy(&st, ram, sizeof(st));
	memcpy(ram, saved, sizeof(saved));
	return st;
}

/* Copies from or to segments of guest memory. */
static inline int copy_segs(bool h2d, uint64_t addr, const struct qcu_seg *segs, size_t n,
			    uint32_t flags)
{
	struct qCUcmd c;
	uint64_t len = 0;
	size_t i;

	for (i = 0; i < n; i++)
		len += segs[i].len;
	if (h2d)
		c = CMD(COPY_H2D, copy_h2d, .buf = {1, len}, .dst = addr, .flags = flags);
	else
		c = CMD(COPY_D2H, copy_d2h, .buf = {1, len}, .src = addr, .flags = flags);
	c.flags = QCU_F_SEGS;
	return ask_with(&c, NULL, segs, n);
}

static inline int copy_window(bool h2d, uint64_t addr, uint64_t va, uint64_t len, uint32_t flags)
{
	struct qCUcmd c;

	if (h2d)
		c = CMD(COPY_H2D, copy_h2d, .buf = {va, len}, .dst = addr, .flags = flags);
	else
		c = CMD(COPY_D2H, copy_d2h, .buf = {va, len}, .src = addr, .flags = flags);
	c.flags = QCU_F_WINDOW;
	return ask_with(&c, NULL, NULL, 0);
}

static inline int map(uint64_t va, const struct qcu_seg *segs, size_t n)
{
	struct qCUcmd c = {.op = QCU_OP_MAP, .flags = QCU_F_SEGS};
	size_t i;

	c.map.va = va;
	for (i = 0; i < n; i++)
		c.map.len += segs[i].len;
	return ask_with(&c, NULL, segs, n);
}

static inline int unmap(uint64_t va, uint64_t len)
{
	struct qCUcmd c = {.op = QCU_OP_UNMAP};

	c.unmap.va = va;
	c.unmap.len = len;
	return ask(c);
}

static inline uint8_t *at_gpa(uint64_t gpa)
{
	return gpa >= HIGH ? ram + RAM / 2 + (gpa - HIGH) : ram + gpa;
}

/* Joins the bytes of the segments. */
static inline size_t gather(uint8_t *to, const struct qcu_seg *segs, size_t n)
{
	size_t i, len = 0;

	for (i = 0; i < n; len += segs[i++].len)
		memcpy(to + len, at_gpa(segs[i].gpa), segs[i].len);
	return len;
}

/* Makes segments of n pages, of which no two are side by side. */
static inline void scatter(struct qcu_seg *segs, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		segs[i] = (struct qcu_seg){(n - 1 - i) * PAGE, PAGE};
}

#define LANES_AT_ONCE 6u

/* Starts this many threads, each for a lane of its own. A thread returns NULL if it ends well. */
static inline void on_lanes(unsigned int lanes, void *(*one_lane)(void *lane))
{
	pthread_t thread[LANES_AT_ONCE];
	uintptr_t i;
	void *wrong;

	assert_in_range(lanes, 1, LANES_AT_ONCE);
	for (i = 0; i < lanes; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, one_lane, (void *)i), 0);
	for (i = 0; i < lanes; i++) {
		pthread_join(thread[i], &wrong);
		assert_null(wrong);
	}
}

/* Each byte moved counts in exactly one way, and all transferred bytes are counted. */
static inline void balanced(const struct qcu_stats_desc *st)
{
	assert_int_equal(st->h2d_bytes + st->d2h_bytes,
			 st->window_bytes + st->pages_bytes + st->staged_bytes);
}

#endif
