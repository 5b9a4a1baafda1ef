// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Memory is unmapped from the window while the GPU is busy, for an unlimited time. Until the UNMAP
 * is done, the memory counts, no command may use it, and nothing else gets its addresses. Meanwhile
 * other memory is mapped and used: the program may need that memory for the work that the GPU waits
 * for.
 */
#define _GNU_SOURCE /* memfd_create */
#include <unistd.h>

#include "qcu-device/memory/guestmem.h"
#include "tests/unit/device/memory/test_device_memfd.h"
#include "tests/unit/device/mirror/test_device_mirror.h"

#define VA   QCU_WINDOW_BASE
#define PAGE 4096u
#define RAM  (64 * PAGE)
#define LEN  (4 * PAGE)

static struct guestmem mem;
static uint8_t *ram;
static uint64_t dev;
static uint8_t back[LEN];

static int make_ram(void **state)
{
	(void)state;
	ram = memfd_ram(RAM);
	return !ram || guestmem_add(&mem, 0, RAM, ram);
}

static int start_with(struct mir_config cfg)
{
	struct qCUcmd c = CMD(MALLOC, malloc, .size = LEN);
	unsigned int i;

	for (i = 0; i < RAM / PAGE; i++)
		memset(ram + i * PAGE, (int)i, PAGE);
	cfg.ops = &fake_ops;
	cfg.mem = &mem;
	fake_reset();
	if (mir_create(&mirror, &cfg) || ask_with(&c, NULL, NULL, 0))
		return -1;
	dev = c.malloc.ptr;
	return 0;
}

static int start_cvm(void **state)
{
	(void)state;
	return start_with((struct mir_config){.map = MIR_MAP_CVM});
}

static int start_ncvm(void **state)
{
	(void)state;
	return start_with((struct mir_config){.map = MIR_MAP_NCVM});
}

/* A limit of registered memory with room for one map. */
static int start_limit(void **state)
{
	(void)state;
	return start_with((struct mir_config){.pin_limit = LEN});
}

static int stop(void **state)
{
	(void)ask(CMD(FREE, free, .ptr = dev));
	return mirror_stop(state);
}

/* A MAP of pages from gpa on. The segment must live as long as the question. */
struct map_question {
	struct question qu;
	struct qcu_seg seg;
};

static void map_begin(struct map_question *m, uint64_t va, uint64_t gpa)
{
	m->seg = (struct qcu_seg){gpa, LEN};
	memset(&m->qu, 0, sizeof(m->qu));
	m->qu.req.cmd.op = QCU_OP_MAP;
	m->qu.req.cmd.flags = QCU_F_SEGS;
	m->qu.req.cmd.map.va = va;
	m->qu.req.cmd.map.len = LEN;
	m->qu.req.segs = &m->seg;
	m->qu.req.seg_count = 1;
	assert_true(ask_begin(&m->qu));
}

static int map(uint64_t va, uint64_t gpa)
{
	struct map_question m;

	map_begin(&m, va, gpa);
	return ask_end(&m.qu);
}

static void unmap_begin(struct question *qu, uint64_t va)
{
	memset(qu, 0, sizeof(*qu));
	qu->req.cmd.op = QCU_OP_UNMAP;
	qu->req.cmd.unmap.va = va;
	qu->req.cmd.unmap.len = LEN;
	assert_true(ask_begin(qu));
}

/* Without a wait, the answer would have come by now. */
static void not_answered(struct question *qu)
{
	usleep(20000);
	assert_int_equal(sem_trywait(&qu->answered), -1);
}

static void unmap_waits(struct question *qu, uint64_t va)
{
	fake.busy = true;
	unmap_begin(qu, va);
	while (!fake.waiting)
		usleep(1000);
}

static int pin(uint64_t va)
{
	struct qCUcmd c = CMD(HOST_REGISTER, host_register, .buf = {va, LEN});

	c.flags = QCU_F_WINDOW;
	return ask(c);
}

static int copy(bool up, uint64_t va)
{
	struct qCUcmd c;

	if (up)
		c = CMD(COPY_H2D, copy_h2d, .buf = {va, LEN}, .dst = dev, .flags = QCU_COPY_SYNC);
	else
		c = CMD(COPY_D2H, copy_d2h, .buf = {va, LEN}, .src = dev, .flags = QCU_COPY_SYNC);
	c.flags = QCU_F_WINDOW;
	return ask(c);
}

/* Checks that the mirror's memory at va begins with the page of this number. */
static void has(uint64_t va, uint64_t page)
{
	assert_int_equal(copy(true, va), 0);
	memcpy(back, (void *)dev, LEN);
	assert_int_equal(back[0], page);
	assert_int_equal(back[LEN - 1], page + 3);
}

static struct qcu_stats_desc stats(void)
{
	struct qcu_stats_desc d = {0};
	struct qCUcmd c = CMD(STATS, stats, .buf = {0, sizeof(d)});
	const struct qcu_seg seg = {RAM - PAGE, sizeof(d)};

	c.flags = QCU_F_SEGS;
	assert_int_equal(ask_with(&c, NULL, &seg, 1), 0);
	memcpy(&d, ram + RAM - PAGE, sizeof(d));
	return d;
}

/* No command may use the memory any more, but it is not unmapped yet. */
static void leaving(void **state)
{
	struct qcu_stats_desc before, now;
	struct question out;

	(void)state;
	assert_int_equal(map(VA, 0), 0);
	before = stats();
	unmap_waits(&out, VA);
	assert_int_equal(copy(true, VA), QCU_ERR_InvalidValue);
	assert_int_equal(copy(false, VA), QCU_ERR_InvalidValue);
	assert_int_not_equal(pin(VA), 0);
	now = stats();
	assert_int_equal(now.mapped_bytes, before.mapped_bytes);
	assert_int_equal(now.registered_bytes, before.registered_bytes);
	assert_int_equal(fake.registered_bytes, before.registered_bytes);
	not_answered(&out);
	fake.busy = false;
	assert_int_equal(ask_end(&out), 0);
	now = stats();
	assert_int_equal(now.mapped_bytes, before.mapped_bytes - LEN);
	assert_int_equal(now.registered_bytes, fake.registered_bytes);
}

/*
 * Other memory is mapped and used. A MAP at the same addresses waits, and so does the next UNMAP.
 */
static void others_pass(void **state)
{
	struct map_question over;
	struct question out, next;

	(void)state;
	assert_int_equal(map(VA, 0), 0);
	assert_int_equal(map(VA + LEN, LEN), 0);
	unmap_waits(&out, VA);
	assert_int_equal(map(VA + 4 * LEN, 2 * LEN), 0);
	has(VA + 4 * LEN, 8);
	assert_int_equal(pin(VA + 4 * LEN), 0);
	has(VA + 4 * LEN, 8);
	unmap_begin(&next, VA + LEN);
	has(VA + LEN, 4);
	map_begin(&over, VA + PAGE, 3 * LEN);
	not_answered(&over.qu);
	not_answered(&next);
	not_answered(&out);
	fake.busy = false;
	assert_int_equal(ask_end(&out), 0);
	assert_int_equal(ask_end(&next), 0);
	assert_int_equal(ask_end(&over.qu), 0);
	has(VA + PAGE, 12);
	has(VA + 4 * LEN, 8);
	assert_int_equal(copy(true, VA), QCU_ERR_InvalidValue);
	assert_int_equal(copy(true, VA + 2 * LEN), QCU_ERR_InvalidValue);
}

/* The registered memory stays within the limit, and memory that is being unmapped still counts. */
static void limit(void **state)
{
	struct question out;

	(void)state;
	assert_int_equal(map(VA, 0), 0);
	assert_int_equal(stats().registered_bytes, LEN);
	unmap_waits(&out, VA);
	assert_int_equal(map(VA + LEN, LEN), 0);
	has(VA + LEN, 4);
	assert_int_equal(stats().registered_bytes, LEN);
	assert_int_equal(fake.registrations, 1);
	fake.busy = false;
	assert_int_equal(ask_end(&out), 0);
	assert_int_equal(fake.registrations, 0);
	/* There is room for the next use. */
	has(VA + LEN, 4);
	assert_int_equal(stats().registered_bytes, LEN);
	assert_int_equal(fake.registrations, 1);
}

int main(void)
{
#define T(f)                                            \
	{#f " (cvm)", f, start_cvm, stop, NULL},        \
	{                                               \
#f " (ncvm)", f, start_ncvm, stop, NULL \
	}
	static const struct CMUnitTest tests[] = {
		T(leaving),
		T(others_pass),
		cmocka_unit_test_setup_teardown(limit, start_limit, stop),
	};
#undef T

	return cmocka_run_group_tests(tests, make_ram, NULL);
}
