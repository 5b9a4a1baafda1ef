// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Device memory in the window, and moves between it and the guest's pages: what a guest may not
 * ask for, first; then the content, the limits, the order after the GPU's work, and host functions
 * that hold this work up.
 */
#define _GNU_SOURCE /* memfd_create */
#include <pthread.h>
#include <unistd.h>

#include "qcu-device/base/usage.h"
#include "qcu-device/commands/commands.h"
#include "qcu-device/memory/guestmem.h"
#include "tests/unit/device/memory/test_device_memfd.h"
#include "tests/unit/device/mirror/test_device_mirror.h"

#define MIB   (1ull << 20)
#define PAGE  4096ull
#define RAM   (8 * MIB)
#define VA    QCU_WINDOW_BASE
#define LEN   (32 * MIB) /* of one mapping */
#define BYTES (4 * MIB)	 /* of its memory */
#define VRAM  (16 * MIB)

struct fake fake; /* for test_device_mirror.h */

static struct guestmem mem;
static uint8_t *ram;
static struct usage *usage;
static struct limits limits;

static int make_ram(void **state)
{
	(void)state;
	ram = memfd_ram(RAM);
	return !ram || guestmem_add(&mem, 0, RAM, ram);
}

static int start_with(const struct guestmem *memory, unsigned int gpus)
{
	struct mir_config cfg = {.ops = &be_soft, .session = 1, .mem = memory, .limits = &limits};

	usage = usage_new(-1);
	cfg.usage = usage;
	cfg.options.vram = VRAM;
	cfg.options.gpus = gpus;
	cfg.options.threads = 1;
	memset(ram, 0, RAM);
	return !usage || mir_create(&mirror, &cfg);
}

static int start(void **state)
{
	(void)state;
	return start_with(&mem, 2);
}

/* Only then is a wait for a device a wait for all of the GPU's work. */
static int start_one_device(void **state)
{
	(void)state;
	return start_with(&mem, 1);
}

/* Guest and mirror are one process. */
static int start_loopback(void **state)
{
	(void)state;
	return start_with(NULL, 2);
}

/* Nothing may be left of what counts. */
static int stop(void **state)
{
	unsigned int i, wrong = 0;

	(void)state;
	mir_destroy(mirror);
	for (i = 0; i < LIMIT_KINDS; i++)
		wrong += usage_sum(usage, (enum limit)i, 0) != 0;
	return (int)wrong;
}

static int place(uint64_t va, uint64_t len, uint64_t bytes)
{
	return ask(CMD(MANAGED, managed, .va = va, .len = len, .bytes = bytes));
}

static int end(uint64_t va, uint64_t len)
{
	return ask(CMD(MANAGED_END, managed_end, .va = va, .len = len));
}

static struct qCUcmd move_cmd(uint64_t va, uint64_t len, uint32_t flags)
{
	struct qCUcmd c;

	memset(&c, 0, sizeof(c));
	c.op = QCU_OP_MANAGED_MOVE;
	c.flags = QCU_F_SEGS;
	c.managed_move.va = va;
	c.managed_move.len = len;
	c.managed_move.flags = flags;
	return c;
}

/* Moves between the memory at `va` and the pages at `gpa`. */
static int move(uint64_t va, uint64_t gpa, uint64_t len, uint32_t flags)
{
	const struct qcu_seg seg = {gpa, len};
	struct qCUcmd c = move_cmd(va, len, flags);

	return ask_with(&c, NULL, &seg, 1);
}

static int down(uint64_t va, uint64_t gpa, uint64_t len)
{
	return move(va, gpa, len, QCU_MOVE_DOWN);
}

static int map(uint64_t va, uint64_t len)
{
	const struct qcu_seg seg = {0, len};
	struct qCUcmd c;

	memset(&c, 0, sizeof(c));
	c.op = QCU_OP_MAP;
	c.flags = QCU_F_SEGS;
	c.map.va = va;
	c.map.len = len;
	return ask_with(&c, NULL, &seg, 1);
}

static int unmap(uint64_t va, uint64_t len)
{
	struct qCUcmd c;

	memset(&c, 0, sizeof(c));
	c.op = QCU_OP_UNMAP;
	c.unmap.va = va;
	c.unmap.len = len;
	return ask(c);
}

static int set(uint64_t va, uint64_t len, uint32_t value, uint32_t stream)
{
	return ask(CMD(MEMSET, memset, .dst = va, .width = len, .height = 1, .value = value,
		       .elem = 1, .stream = stream));
}

static bool all(const uint8_t *p, uint64_t len, uint8_t value)
{
	return *p == value && !memcmp(p, p + 1, len - 1);
}

static void bad_places(void **state)
{
	static const uint64_t bad[][3] = {
		{VA + PAGE, LEN, BYTES},
		{VA + QCU_MANAGED_GRAIN, LEN, BYTES},
		{VA, LEN + PAGE, BYTES},
		{VA, 0, BYTES},
		{VA, LEN, 0},
		{VA, LEN, PAGE},
		{VA, LEN, LEN + QCU_MANAGED_GRAIN},
		{VA, LEN, UINT64_MAX},
		{VA, LEN, -QCU_MANAGED_GRAIN},
		{VA, -LEN, BYTES},
		{-LEN, LEN, BYTES},
		{-LEN, 2 * LEN, BYTES},
		{0, LEN, BYTES},
		{QCU_WINDOW_BASE - LEN, LEN, BYTES},
		{QCU_WINDOW_BASE - LEN, 2 * LEN, BYTES},
		{QCU_WINDOW_BASE + QCU_WINDOW_SIZE, LEN, BYTES},
		{QCU_WINDOW_BASE + QCU_WINDOW_SIZE - LEN, 2 * LEN, BYTES},
		{QCU_WINDOW_BASE, QCU_WINDOW_SIZE + LEN, BYTES},
		{0x560000000000, LEN, BYTES},
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		int rc = place(bad[i][0], bad[i][1], bad[i][2]);

		/* So much memory is over a limit, before the addresses are looked at. */
		if (rc != QCU_ERR_MemoryAllocation || bad[i][2] <= VRAM)
			assert_int_equal(rc, QCU_ERR_InvalidValue);
	}
	assert_int_equal(end(VA, LEN), QCU_ERR_InvalidValue);
	/* The addresses are still reserved. */
	assert_int_equal(map(VA, BYTES), 0);
	assert_int_equal(unmap(VA, BYTES), 0);
}

static void taken(void **state)
{
	(void)state;
	assert_int_equal(map(VA + BYTES, PAGE), 0);
	assert_int_equal(place(VA, LEN, BYTES), QCU_ERR_InvalidValue);
	/* An ordinary map is not for END. */
	assert_int_equal(end(VA + BYTES, PAGE), QCU_ERR_InvalidValue);
	assert_int_equal(unmap(VA + BYTES, PAGE), 0);
	assert_int_equal(place(VA, LEN, BYTES), 0);
	assert_int_equal(place(VA, LEN, BYTES), QCU_ERR_InvalidValue);
	assert_int_equal(place(VA, 2 * LEN, BYTES), QCU_ERR_InvalidValue);
	assert_int_equal(place(VA + LEN, LEN, BYTES), 0);
	assert_int_equal(map(VA, PAGE), MIR_RULE_BROKEN);
	assert_int_equal(map(VA + BYTES, PAGE), MIR_RULE_BROKEN);
	assert_int_equal(map(VA + 2 * LEN - PAGE, 2 * PAGE), MIR_RULE_BROKEN);
	assert_int_equal(unmap(VA, PAGE), MIR_RULE_BROKEN);
	assert_int_equal(end(VA, 2 * LEN), QCU_ERR_InvalidValue);
	assert_int_equal(end(VA, LEN - PAGE), QCU_ERR_InvalidValue);
	assert_int_equal(end(VA + PAGE, -PAGE), QCU_ERR_InvalidValue);
	assert_int_equal(end(VA, 0), QCU_ERR_InvalidValue);
	assert_int_equal(end(VA, LEN), 0);
	assert_int_equal(end(VA, LEN), QCU_ERR_InvalidValue);
	assert_int_equal(unmap(VA + LEN, LEN), 0);
	assert_int_equal(unmap(VA + LEN, LEN), 0);
}

static void bad_moves(void **state)
{
	const struct qcu_seg two[] = {{0, PAGE}, {RAM - PAGE, PAGE}};
	const struct qcu_seg outside = {RAM, PAGE}, wraps = {-PAGE, 2 * PAGE};
	struct qCUcmd c = move_cmd(VA, PAGE, 0);

	(void)state;
	assert_int_equal(down(VA, 0, PAGE), QCU_ERR_InvalidValue);
	assert_int_equal(place(VA, LEN, BYTES), 0);
	assert_int_equal(move(VA, 0, PAGE, 2), MIR_RULE_BROKEN);
	c.managed_move.rsvd = 1;
	assert_int_equal(ask_with(&c, NULL, two, 1), MIR_RULE_BROKEN);
	c = move_cmd(VA, PAGE, 0);
	assert_int_equal(ask_with(&c, NULL, two, 2), REFUSED);
	c = move_cmd(VA, 0, 0);
	assert_int_equal(ask_with(&c, NULL, two, 0), QCU_ERR_InvalidValue);
	c = move_cmd(VA, 3 * PAGE, 0);
	assert_int_equal(ask_with(&c, NULL, two, 2), REFUSED);
	c = move_cmd(VA, PAGE, 0);
	c.tid = 1;
	assert_int_equal(ask_with(&c, NULL, two, 1), REFUSED);
	c = move_cmd(VA, PAGE, 0);
	c.flags = 0;
	assert_int_equal(ask_with(&c, NULL, NULL, 0), REFUSED);
	c = move_cmd(VA, PAGE, 0);
	assert_int_equal(ask_with(&c, NULL, &outside, 1), MIR_RULE_BROKEN);
	c = move_cmd(VA, 2 * PAGE, 0);
	assert_int_equal(ask_with(&c, NULL, &wraps, 1), REFUSED);
	/* Beyond the memory, though within the mapping. */
	assert_int_equal(move(VA + BYTES, 0, PAGE, 0), QCU_ERR_InvalidValue);
	assert_int_equal(move(VA + BYTES - PAGE, 0, 2 * PAGE, 0), QCU_ERR_InvalidValue);
	assert_int_equal(move(VA + LEN, 0, PAGE, 0), QCU_ERR_InvalidValue);
	assert_int_equal(move(-PAGE, 0, PAGE, 0), QCU_ERR_InvalidValue);
	assert_int_equal(set(VA + BYTES - 1, 2, 1, 0), QCU_ERR_InvalidValue);
	assert_int_equal(set(VA + BYTES, 1, 1, 0), QCU_ERR_InvalidValue);
	/* The CPU of the host does not touch the memory of the GPU. */
	c = CMD(COPY_H2D, copy_h2d, .buf = {VA, PAGE}, .dst = VA);
	c.flags = QCU_F_WINDOW;
	assert_int_equal(ask_with(&c, NULL, NULL, 0), QCU_ERR_InvalidValue);
	assert_int_equal(end(VA, LEN), 0);
	assert_int_equal(move(VA, 0, PAGE, 0), QCU_ERR_InvalidValue);
}

static void content(void **state)
{
	const uint64_t half = RAM / 2;
	struct qcu_seg segs[64];
	struct qCUcmd c = move_cmd(VA, 64 * PAGE, 0);
	uint64_t i;

	(void)state;
	memset(ram, 1, RAM);
	assert_int_equal(place(VA, LEN, BYTES), 0);
	assert_int_equal(down(VA, 0, BYTES), 0);
	assert_true(all(ram, BYTES, 0));
	assert_true(all(ram + BYTES, RAM - BYTES, 1));
	/* Scattered pages up, one after the other down. */
	for (i = 0; i < 64; i++) {
		segs[i] = (struct qcu_seg){(63 - i) * 2 * PAGE, PAGE};
		memset(ram + segs[i].gpa, (int)i, PAGE);
	}
	assert_int_equal(ask_with(&c, NULL, segs, 64), 0);
	assert_int_equal(down(VA, half, 64 * PAGE), 0);
	for (i = 0; i < 64; i++)
		assert_true(all(ram + half + i * PAGE, PAGE, (uint8_t)i));
	/* Memory of a device uses it as any other memory. */
	assert_int_equal(place(VA + LEN, LEN, BYTES), 0);
	assert_int_equal(ask(CMD(COPY_D2D, copy_d2d, .dst = VA + LEN + 5, .src = VA, .len = PAGE)),
			 0);
	assert_int_equal(set(VA + LEN + PAGE + 5, PAGE - 5, 77, 0), 0);
	assert_int_equal(down(VA + LEN, 0, 2 * PAGE), 0);
	assert_true(all(ram, PAGE + 5, 0));
	assert_true(all(ram + PAGE + 5, PAGE - 5, 77));
	assert_int_equal(count_get(mirror->counts, COUNT_MOVED_UP), 64 * PAGE);
	assert_int_equal(count_get(mirror->counts, COUNT_MOVED_DOWN), BYTES + 66 * PAGE);
	/* What comes next at these addresses does not show what was there. */
	assert_int_equal(end(VA + LEN, LEN), 0);
	assert_int_equal(place(VA + LEN, LEN, BYTES), 0);
	assert_int_equal(down(VA + LEN, 0, 2 * PAGE), 0);
	assert_true(all(ram, 2 * PAGE, 0));
}

static void limited(void **state)
{
	uint64_t i;

	(void)state;
	for (i = 0; i < VRAM / BYTES; i++)
		assert_int_equal(place(VA + i * LEN, LEN, BYTES), 0);
	assert_int_equal(place(VA + i * LEN, LEN, BYTES), QCU_ERR_MemoryAllocation);
	assert_int_equal(ask(CMD(MALLOC, malloc, .size = PAGE)), QCU_ERR_MemoryAllocation);
	assert_int_equal(end(VA, LEN), 0);
	assert_int_equal(place(VA + i * LEN, LEN, BYTES), 0);
	assert_int_equal(usage_sum(usage, LIMIT_DEVICE_MEMORY, 0), VRAM);
}

static void reset(void **state)
{
	(void)state;
	assert_int_equal(place(VA, LEN, BYTES), 0);
	assert_int_equal(set(VA, PAGE, 1, 0), 0);
	assert_int_equal(ask(CMD(DEVICE_RESET, device_reset, 0)), 0);
	assert_int_equal(down(VA, 0, PAGE), QCU_ERR_InvalidValue);
	assert_int_equal(set(VA, PAGE, 1, 0), QCU_ERR_InvalidValue);
	assert_int_equal(map(VA, PAGE), 0);
	assert_int_equal(unmap(VA, PAGE), 0);
	assert_int_equal(place(VA, LEN, BYTES), 0);
	assert_int_equal(down(VA, 0, PAGE), 0);
}

/* Memory of one device, work of the other. */
static void another_device(void **state)
{
	struct qCUcmd c =
		CMD(MEMSET, memset, .dst = VA, .width = PAGE, .height = 1, .value = 9, .elem = 1);

	(void)state;
	assert_int_equal(place(VA, LEN, BYTES), 0);
	c.device = 1;
	assert_int_equal(ask_with(&c, NULL, NULL, 0), 0);
	assert_int_equal(down(VA, 0, PAGE), 0);
	assert_true(all(ram, PAGE, 9));
}

static void one_process(void **state)
{
	(void)state;
	assert_int_equal(place(VA, LEN, BYTES), QCU_ERR_NotSupported);
}

static struct qCUcmd next(uint64_t done, uint32_t wait)
{
	struct qCUcmd c = CMD(HOST_NEXT, host_next, .done = done, .wait = wait);

	c.tid = 7;
	return c;
}

static int on_stream(struct qCUcmd c)
{
	c.flags = QCU_F_POSTED;
	return ask(c);
}

/*
 * A stream reaches a host function, and the guest has it. The work before it is done, the work
 * behind it is not. A move down is answered all the same, with what the work before has written.
 * The last command holds up its lane.
 */
static void host_function(void **state)
{
	struct qCUcmd c = next(0, 1);
	struct question sync = {.req.cmd = CMD(DEVICE_SYNC, device_sync, 0)};

	(void)state;
	assert_int_equal(place(VA, LEN, BYTES), 0);
	assert_int_equal(ask(CMD(STREAM_CREATE, stream_create, .stream = QCU_ID_FIRST)), 0);
	assert_int_equal(on_stream(CMD(MEMSET, memset, .dst = VA, .width = PAGE, .height = 1,
				       .value = 5, .elem = 1, .stream = QCU_ID_FIRST)),
			 0);
	assert_int_equal(on_stream(CMD(HOST_FUNC, host_func, .token = 3, .stream = QCU_ID_FIRST)),
			 0);
	assert_int_equal(on_stream(CMD(MEMSET, memset, .dst = VA, .width = PAGE, .height = 1,
				       .value = 6, .elem = 1, .stream = QCU_ID_FIRST)),
			 0);
	assert_true(ask_begin(&sync));
	assert_int_equal(ask_with(&c, NULL, NULL, 0), 0);
	assert_int_equal(c.host_next.token, 3);
	assert_int_equal(down(VA, 0, PAGE), 0);
	assert_true(all(ram, PAGE, 5));
	assert_int_equal(ask(next(3, 0)), 0);
	assert_int_equal(ask_end(&sync), 0);
	assert_int_equal(down(VA, 0, PAGE), 0);
	assert_true(all(ram, PAGE, 6));
}

/* Posted work of other guest threads is waited for, though no call of the guest has waited. */
static void after_posted_work(void **state)
{
	unsigned int i;

	(void)state;
	assert_int_equal(place(VA, LEN, BYTES), 0);
	for (i = 1; i < 200; i++) {
		struct question posted = {0};
		struct qCUcmd c = CMD(MEMSET, memset, .dst = VA, .width = BYTES, .height = 1,
				      .value = i, .elem = 1);

		c.tid = 1 + i % 3;
		c.flags = QCU_F_POSTED;
		posted.req.cmd = c;
		assert_true(ask_begin(&posted));
		assert_int_equal(down(VA, 0, BYTES), 0);
		assert_true(all(ram, BYTES, (uint8_t)i));
		assert_int_equal(ask_end(&posted), 0);
	}
}

/*
 * A move down spares its own wait when the guest has just waited for the device, and only then: not
 * when work has been sent before that wait ended, or since.
 */
static void after_waits(void **state)
{
	unsigned int i;

	(void)state;
	assert_int_equal(place(VA, LEN, BYTES), 0);
	for (i = 1; i < 240; i++) {
		struct question posted = {0}, sync = {.req.cmd = CMD(DEVICE_SYNC, device_sync, 0)};
		struct qCUcmd c = CMD(MEMSET, memset, .dst = VA, .width = BYTES, .height = 1,
				      .value = i, .elem = 1);
		unsigned int when = i % 3;

		c.tid = 1 + i % 2;
		c.flags = QCU_F_POSTED;
		posted.req.cmd = c;
		sync.req.cmd.tid = 9;
		if (when == 0)
			assert_true(ask_begin(&posted));
		assert_true(ask_begin(&sync));
		if (when == 1)
			assert_true(ask_begin(&posted));
		assert_int_equal(ask_end(&sync), 0);
		if (when == 2)
			assert_true(ask_begin(&posted));
		assert_int_equal(down(VA, 0, BYTES), 0);
		assert_true(all(ram, BYTES, (uint8_t)i));
		assert_int_equal(ask_end(&posted), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(bad_places, start, stop),
		cmocka_unit_test_setup_teardown(taken, start, stop),
		cmocka_unit_test_setup_teardown(bad_moves, start, stop),
		cmocka_unit_test_setup_teardown(one_process, start_loopback, stop),
		cmocka_unit_test_setup_teardown(content, start, stop),
		cmocka_unit_test_setup_teardown(limited, start, stop),
		cmocka_unit_test_setup_teardown(reset, start, stop),
		cmocka_unit_test_setup_teardown(another_device, start, stop),
		cmocka_unit_test_setup_teardown(host_function, start, stop),
		cmocka_unit_test_setup_teardown(after_posted_work, start, stop),
		cmocka_unit_test_setup_teardown(after_waits, start_one_device, stop),
	};

	return cmocka_run_group_tests(tests, make_ram, NULL);
}
