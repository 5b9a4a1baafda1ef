// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Rows of scattered guest memory that are longer than the buffer in which the mirror carries them:
 * they are carried in parts. A row may have up to 4 GiB, and each lane has one such buffer.
 */
#define _GNU_SOURCE
#include "tests/unit/device/memory/test_device_ram.h"

#define CARRY (1ull << 20) /* CARRY_MAX of rects.c */
#define WIDTH (5 * CARRY + 48)
#define PITCH (6 * CARRY)
#define LEN   (PITCH + WIDTH) /* two rows */
#define PAGES (LEN / PAGE + 1)

struct fake fake; /* for test_device_mirror.h; this test uses the software GPU */
const struct be_ops fake_ops;

static struct be_ops ops;
static struct qcu_seg segs[PAGES];
static uint64_t widest, boxes;

/* Notes the largest box that the backend gets from memory other than the guest's own. */
static int copy_box(struct be *be, const struct be_box *box, struct be_stream *s)
{
	const struct be_side *host = box->dst.host ? &box->dst : &box->src;

	boxes++;
	if (host->host && host->addr - (uintptr_t)ram >= RAM && box->width * box->height > widest)
		widest = box->width * box->height;
	return be_soft.copy_box(be, box, s);
}

static int begin(void **state)
{
	struct mir_config cfg = {.ops = &ops, .session = 1, .mem = &mem};
	struct qCUcmd c = CMD(MALLOC, malloc, .size = 2 * PITCH);
	size_t i;

	(void)state;
	ops = be_soft;
	ops.copy_box = copy_box;
	widest = boxes = 0;
	cfg.options.vram = 64 << 20;
	cfg.options.threads = 1;
	if (mir_create(&mirror, &cfg) || ask_with(&c, NULL, NULL, 0))
		return -1;
	dev = c.malloc.ptr;
	for (i = 0; i < RAM; i++)
		ram[i] = (uint8_t)(i * 7 + (i >> 12));
	for (i = 0; i < PAGES; i++) {
		uint64_t page = PAGES - 1 - i, low = RAM / 2 / PAGE;

		segs[i].gpa = page < low ? page * PAGE : HIGH + (page - low) * PAGE;
		segs[i].len = PAGE;
	}
	segs[PAGES - 1].len = LEN % PAGE;
	return 0;
}

static int end(void **state)
{
	(void)state;
	mir_destroy(mirror);
	return 0;
}

/* The address of the buffer's byte at this offset. */
static uint8_t *at(uint64_t off)
{
	return at_gpa(segs[off / PAGE].gpa + off % PAGE);
}

static int rows(struct qCUcmd c)
{
	c.buf.addr = 1;
	c.buf.len = LEN;
	c.flags = QCU_F_SEGS;
	return ask_with(&c, NULL, segs, PAGES);
}

static void check_round_trip(struct qCUcmd up, struct qCUcmd down)
{
	uint64_t i;

	assert_int_equal(rows(up), 0);
	assert_in_range(widest, 1, CARRY);
	for (i = 0; i < LEN; i++)
		*at(i) ^= 0xff;
	assert_int_equal(rows(down), 0);
	assert_in_range(widest, 1, CARRY);
	for (i = 0; i < LEN; i++) {
		uint64_t gpa = segs[i / PAGE].gpa + i % PAGE;
		uint64_t n = gpa >= HIGH ? RAM / 2 + (gpa - HIGH) : gpa;
		uint8_t was = (uint8_t)(n * 7 + (n >> 12));

		/* Nothing has been written between the rows. */
		if (i >= WIDTH && i < PITCH)
			was ^= 0xff;
		if (*at(i) != was)
			fail_msg("byte %llu is wrong", (unsigned long long)i);
	}
	assert_true(boxes >= 4 * 6);
}

static void memory(void **state)
{
	struct qCUcmd up = CMD(RECT_H2D, rect_h2d, .dst = dev, .pitch = PITCH, .dst_pitch = WIDTH,
			       .width = WIDTH, .height = 2);
	struct qCUcmd down = CMD(RECT_D2H, rect_d2h, .src = dev, .pitch = PITCH, .src_pitch = WIDTH,
				 .width = WIDTH, .height = 2);

	(void)state;
	check_round_trip(up, down);
}

/* On this GPU, a row of an array has at most 2 MiB. */
static void array(void **state)
{
	struct qCUcmd w = CMD(ARRAY_WRITE, array_write, .array = 2, .width = 131072 * 16,
			      .height = 1, .pitch = 0);

	(void)state;
	assert_int_equal(ask(CMD(ARRAY_CREATE, array_create, .array = 2, .width = 131072,
				 .height = 4, .bits = {32, 32, 32, 32}, .kind = 2)),
			 0);
	w.buf.addr = 1;
	w.buf.len = 131072 * 16;
	w.flags = QCU_F_SEGS;
	assert_int_equal(ask_with(&w, NULL, segs, 131072 * 16 / PAGE), 0);
	assert_in_range(widest, 1, CARRY);
	w.op = QCU_OP_ARRAY_READ;
	w.flags = QCU_F_SEGS;
	assert_int_equal(ask_with(&w, NULL, segs, 131072 * 16 / PAGE), 0);
	assert_in_range(widest, 1, CARRY);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, begin, end)
	static const struct CMUnitTest tests[] = {T(memory), T(array)};
#undef T

	return cmocka_run_group_tests(tests, make_ram, NULL);
}
