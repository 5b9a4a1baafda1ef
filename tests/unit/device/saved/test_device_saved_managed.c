// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Sessions that are saved with managed memory that moves: places that an archive may not have, then
 * memory of two devices at its old addresses, with what was on the GPU.
 */
#include "tests/unit/device/saved/test_device_saved.h"

#include "qcu-device/memory/guestmem.h"
#include "tests/unit/device/memory/test_device_memfd.h"

#define MIB   (1ull << 20)
#define PAGE  4096ull
#define RAM   (8 * MIB)
#define VA    QCU_WINDOW_BASE
#define LEN   (32 * MIB) /* of one mapping */
#define BYTES (4 * MIB)	 /* of its memory */

static struct guestmem ram;
static uint8_t *bytes_of_ram;

static int add_ram(void **state)
{
	(void)state;
	bytes_of_ram = memfd_ram(RAM);
	guest_memory = &ram;
	return !bytes_of_ram || guestmem_add(&ram, 0, RAM, bytes_of_ram);
}

static struct qCUcmd place(unsigned int device, uint64_t va, uint64_t len, uint64_t bytes)
{
	struct qCUcmd c = CMD(MANAGED, managed, .va = va, .len = len, .bytes = bytes);

	c.device = (uint8_t)device;
	return c;
}

static int end(uint64_t va, uint64_t len)
{
	return ask(CMD(MANAGED_END, managed_end, .va = va, .len = len));
}

/* The page at this address becomes the first one of the guest's memory. */
static int move_down(uint64_t va)
{
	const struct qcu_seg seg = {0, PAGE};
	struct qCUcmd c =
		CMD(MANAGED_MOVE, managed_move, .va = va, .len = PAGE, .flags = QCU_MOVE_DOWN);

	c.tid = 0;
	c.flags = QCU_F_SEGS;
	memset(bytes_of_ram, 0xee, PAGE);
	return ask_with(&c, NULL, &seg, 1);
}

static int fill(unsigned int device, uint64_t va, uint32_t value)
{
	struct qCUcmd c = CMD(MEMSET, memset, .dst = va, .width = PAGE, .height = 1, .value = value,
			      .elem = 1, .flags = QCU_COPY_SYNC);

	c.device = (uint8_t)device;
	return ask(c);
}

static void refused_places(const struct archive_entry *e, unsigned int count, const char *because)
{
	assert_false(restore_entries(e, count, NULL, NULL));
	if (!strstr(why, because))
		fail_msg("\"%s\" does not say \"%s\"", why, because);
	mir_destroy(mirror);
}

#define ENTRY(command) ((struct archive_entry){.what = ARCHIVE_COMMAND, .cmd = (command)})

static void forbidden_places(void **state)
{
	const struct qCUcmd bad[] = {
		place(0, VA - LEN, LEN, BYTES),
		place(0, VA + BYTES, LEN, BYTES),
		place(0, VA, LEN, 0),
		place(0, VA, LEN, LEN + BYTES),
		place(0, VA, LEN, PAGE),
		place(0, 0, LEN, BYTES),
		place(0, UINT64_MAX, LEN, BYTES),
		place(7, VA, LEN, BYTES),
		place(0, VA, 4 * LEN, 3 * LEN), /* more than the GPU has */
	};
	struct archive_entry e[2];
	unsigned int i;

	(void)state;
	e[0] = ENTRY(CMD(MANAGED_END, managed_end, .va = VA, .len = LEN));
	refused_places(e, 1, "none of a saved");
	e[0] = ENTRY(CMD(MANAGED_MOVE, managed_move, .va = VA, .len = PAGE));
	refused_places(e, 1, "none of a saved");
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		e[0] = ENTRY(bad[i]);
		refused_places(e, 1, "MANAGED cannot be done again");
	}
	e[0] = e[1] = ENTRY(place(0, VA, LEN, BYTES));
	refused_places(e, 2, "MANAGED cannot be done again");
	/* A copy goes no further than the memory. */
	e[1] = ENTRY(CMD(COPY_H2D, copy_h2d, .buf = {0, 8}, .dst = VA + BYTES - 4));
	e[1].len = 8;
	assert_false(restore_entries(e, 2, "1234567", NULL));
	mir_destroy(mirror);
	/* Guest and mirror are one process. */
	guest_memory = NULL;
	refused_places(e, 1, "MANAGED cannot be done again");
	guest_memory = &ram;
}

static void placed_again(void **state)
{
	unsigned int round;

	(void)state;
	start_mirror();
	assert_int_equal(ask(place(0, VA, LEN, BYTES)), 0);
	assert_int_equal(ask(place(0, VA + LEN, LEN, BYTES)), 0);
	assert_int_equal(ask(place(1, VA + 2 * LEN, 2 * LEN, LEN)), 0);
	assert_int_equal(end(VA + LEN, LEN), 0);
	assert_int_equal(fill(1, VA + 2 * LEN + PAGE, 7), 0);
	for (round = 1; round < 4; round++) {
		assert_int_equal(fill(0, VA + BYTES - PAGE, round), 0);
		save_and_restore();
		assert_int_equal(move_down(VA + BYTES - PAGE), 0);
		assert_int_equal(bytes_of_ram[0], round);
		assert_int_equal(bytes_of_ram[PAGE - 1], round);
		assert_int_equal(move_down(VA), 0);
		assert_int_equal(bytes_of_ram[0], 0);
		assert_int_equal(move_down(VA + 2 * LEN + PAGE), 0);
		assert_int_equal(bytes_of_ram[0], 7);
		assert_int_equal(move_down(VA + BYTES), QCU_ERR_InvalidValue);
		assert_int_equal(move_down(VA + LEN), QCU_ERR_InvalidValue);
		assert_int_equal(ask(place(0, VA, LEN, BYTES)), QCU_ERR_InvalidValue);
		/* It counts as before: the software GPU has 64 MiB. */
		assert_int_equal(ask(place(1, VA + 4 * LEN, 2 * LEN, LEN + BYTES)),
				 QCU_ERR_MemoryAllocation);
	}
	assert_int_equal(end(VA, LEN), 0);
	assert_int_equal(end(VA + 2 * LEN, 2 * LEN), 0);
	save_and_restore();
	assert_int_equal(ask(place(1, VA, 2 * LEN, LEN + BYTES)), 0);
	mir_destroy(mirror);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(forbidden_places),
		cmocka_unit_test(placed_again),
	};

	return cmocka_run_group_tests(tests, add_ram, NULL);
}
