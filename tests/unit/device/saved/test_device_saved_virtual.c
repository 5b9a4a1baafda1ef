// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Sessions that are saved with virtual memory: addresses that an archive may not have, memory that
 * nobody can read, then memory that is mapped in pieces and twice, and memory that only a mapping
 * has.
 */
#include "tests/unit/device/saved/test_device_saved.h"

#define GRAIN ((uint64_t)2 << 20)
#define BOTH  3u
#define READ  1u

static uint64_t reserved_at; /* five grains */

static uint64_t reserve(uint64_t size)
{
	struct qCUcmd c = CMD(VA_RESERVE, va_reserve, .size = size);

	assert_int_equal(ask_with(&c, NULL, NULL, 0), 0);
	return c.va_reserve.addr;
}

static void create(uint32_t mem, uint64_t size)
{
	assert_int_equal(ask(CMD(PHYS_CREATE, phys_create, .size = size, .mem = mem)), 0);
}

/* A grain of the memory, at this grain of the addresses. */
static void map(uint32_t mem, uint64_t offset, unsigned int grain)
{
	assert_int_equal(ask(CMD(PHYS_MAP, phys_map, .addr = reserved_at + grain * GRAIN,
				 .size = GRAIN, .offset = offset, .mem = mem)),
			 0);
}

static void allow(unsigned int grain, uint32_t peer, uint32_t flags)
{
	assert_int_equal(ask(CMD(PHYS_ACCESS_SET, phys_access_set,
				 .addr = reserved_at + grain * GRAIN, .size = GRAIN, .peer = peer,
				 .flags = flags)),
			 0);
}

static unsigned int access_of(unsigned int grain, uint32_t peer)
{
	struct qCUcmd c = CMD(PHYS_ACCESS_GET, phys_access_get, .addr = reserved_at + grain * GRAIN,
			      .peer = peer);

	assert_int_equal(ask_with(&c, NULL, NULL, 0), 0);
	return c.phys_access_get.flags;
}

static void write_word(unsigned int grain, uint32_t word)
{
	copy(false, reserved_at + grain * GRAIN + 4096, &word, sizeof(word));
}

static uint32_t read_word(unsigned int grain)
{
	return word_at(reserved_at + grain * GRAIN + 4096);
}

#define ENTRY(command) ((struct archive_entry){.what = ARCHIVE_COMMAND, .cmd = (command)})

static void refused_entries(const struct archive_entry *e, unsigned int count,
			    const struct be_wanted *wanted, const char *because)
{
	assert_false(restore_entries(e, count, NULL, wanted));
	if (!strstr(why, because))
		fail_msg("\"%s\" does not say \"%s\"", why, because);
	mir_destroy(mirror);
}

static void forbidden_addresses(void **state)
{
	uint64_t bad[6];
	struct archive_entry e[2] = {ENTRY(CMD(VA_FREE, va_free, .addr = 1, .size = GRAIN))};
	struct be_wanted wanted[2] = {{0}};
	unsigned int i;

	(void)state;
	refused_entries(e, 1, NULL, "none of a saved");
	e[0] = ENTRY(CMD(PHYS_UNMAP, phys_unmap, .addr = 1, .size = GRAIN));
	refused_entries(e, 1, NULL, "none of a saved");
	e[0] = ENTRY(CMD(PHYS_EXPORT, phys_export, .mem = 2));
	refused_entries(e, 1, NULL, "none of a saved");
	e[0] = ENTRY(CMD(PHYS_MAP, phys_map, .addr = GRAIN, .size = GRAIN, .mem = 2));
	refused_entries(e, 1, NULL, "cannot be done again");
	e[0] = ENTRY(CMD(PHYS_CREATE, phys_create, .size = 1ull << 40, .mem = 2));
	refused_entries(e, 1, NULL, "cannot be done again");
	e[0] = ENTRY(CMD(VA_RESERVE, va_reserve, .size = GRAIN, .addr = GRAIN));
	refused_entries(e, 1, NULL, "cannot be done again");
	start_mirror();
	reserved_at = reserve(GRAIN);
	mir_destroy(mirror);
	bad[0] = 0;
	bad[1] = reserved_at + 4096;
	bad[2] = reserved_at - GRAIN;
	bad[3] = reserved_at + (1ull << 45);
	bad[4] = UINT64_MAX - GRAIN + 1;
	bad[5] = (uintptr_t)&bad / GRAIN * GRAIN;
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		e[0].wanted = 1;
		wanted[0] = (struct be_wanted){.addr = bad[i], .size = GRAIN};
		refused_entries(e, 1, wanted, "cannot be done again");
	}
	/* Twice the same. */
	e[0].cmd.va_reserve.addr = reserved_at;
	e[1] = e[0];
	wanted[0].addr = wanted[1].addr = reserved_at;
	refused_entries(e, 2, wanted, "cannot be done again");
	/* It would have another address than the guest was told. */
	e[0].cmd.va_reserve.addr = reserved_at + GRAIN;
	refused_entries(e, 1, wanted, "another answer");
	e[0].cmd.va_reserve.addr = reserved_at;
	assert_true(restore_entries(e, 1, NULL, wanted));
	mir_destroy(mirror);
}

static void refused_session(const char *because)
{
	why[0] = '\0';
	assert_false(mir_save(mirror, -1, 1000, why, sizeof(why)));
	if (!strstr(why, because))
		fail_msg("\"%s\" does not say \"%s\"", why, because);
}

static void nobody_can_read(void **state)
{
	(void)state;
	start_mirror();
	reserved_at = reserve(5 * GRAIN);
	create(2, 2 * GRAIN);
	map(2, 0, 0);
	allow(0, 0, BOTH);
	refused_session("no GPU may read"); /* half of it */
	map(2, GRAIN, 4);
	allow(4, 1, READ);
	save_and_restore();
	allow(4, 1, 0);
	refused_session("no GPU may read");
	mir_destroy(mirror);
}

/* Without contents, memory that no GPU could ever use is saved, mapped or not. */
static void never_used(void **state)
{
	unsigned int round;

	(void)state;
	start_mirror();
	reserved_at = reserve(5 * GRAIN);
	create(2, GRAIN);
	create(3, 2 * GRAIN);
	map(3, GRAIN, 1);
	create(4, GRAIN);
	map(4, 0, 2);
	assert_int_equal(ask(CMD(PHYS_RELEASE, phys_release, .mem = 4)), 0);
	create(5, GRAIN);
	for (round = 0; round < 3; round++) {
		save_and_restore();
		assert_int_equal(ask(CMD(PHYS_CREATE, phys_create, .size = GRAIN, .mem = 3)),
				 QCU_ERR_InvalidResourceHandle);
		assert_int_equal(ask(CMD(PHYS_RELEASE, phys_release, .mem = 4)),
				 QCU_ERR_InvalidResourceHandle);
		assert_int_equal(access_of(1, 0), 0);
	}
	map(2, 0, 0);
	allow(0, 0, BOTH);
	allow(2, 0, BOTH);
	map(3, 0, 3);
	allow(1, 1, READ);
	refused_session("no GPU may read"); /* half of it */
	allow(3, 0, BOTH);
	write_word(0, 1);
	write_word(2, 2);
	write_word(3, 3);
	save_and_restore();
	assert_int_equal(read_word(0), 1);
	assert_int_equal(read_word(2), 2);
	assert_int_equal(read_word(3), 3);
	assert_int_equal(ask(CMD(PHYS_UNMAP, phys_unmap, .addr = reserved_at, .size = GRAIN)), 0);
	refused_session("no GPU may read"); /* any more */
	assert_int_equal(ask(CMD(PHYS_RELEASE, phys_release, .mem = 2)), 0);
	assert_int_equal(ask(CMD(PHYS_RELEASE, phys_release, .mem = 5)), 0);
	save_and_restore();
	mir_destroy(mirror);
}

/* One row of numbers. */
static void place_array(uint32_t mem, uint64_t offset)
{
	assert_int_equal(ask(CMD(ARRAY_CREATE, array_create, .array = 3, .width = 8, .height = 1,
				 .levels = 1, .bits = {32}, .mem = mem, .offset = offset)),
			 0);
}

/* An array knows its memory by a number. */
static void arrays_whose_memory_has_ended(void **state)
{
	struct archive_entry e = ENTRY(CMD(ARRAY_CREATE, array_create, .array = 3, .width = 8,
					   .height = 1, .levels = 1, .bits = {32}, .mem = 2));

	(void)state;
	refused_entries(&e, 1, NULL, "cannot be done again");
	start_mirror();
	reserved_at = reserve(2 * GRAIN);
	create(2, GRAIN);
	place_array(2, 0);
	refused_session("no GPU may read");
	map(2, 0, 0);
	allow(0, 0, BOTH);
	assert_int_equal(ask(CMD(PHYS_RELEASE, phys_release, .mem = 2)), 0);
	refused_session("an array in memory whose number has ended");
	create(2, GRAIN);
	map(2, 0, 1);
	allow(1, 0, BOTH);
	refused_session("an array in memory whose number has ended");
	assert_int_equal(ask(CMD(ARRAY_DESTROY, array_destroy, .array = 3)), 0);
	save_and_restore();
	mir_destroy(mirror);
}

/* The array and the memory are the same, before and after. */
static void arrays_placed_again(void **state)
{
	uint32_t row[8] = {0}, round;
	const struct qcu_seg seg = {(uintptr_t)row, sizeof(row)};
	struct qCUcmd c;

	(void)state;
	start_mirror();
	reserved_at = reserve(2 * GRAIN);
	create(2, 2 * GRAIN);
	map(2, 0, 1);
	map(2, GRAIN, 0);
	allow(0, 0, BOTH);
	allow(1, 0, BOTH);
	place_array(2, GRAIN + 4096);
	write_word(1, 5);
	for (round = 1; round < 4; round++) {
		write_word(0, round);
		save_and_restore();
		assert_int_equal(read_word(1), 5);
		c = CMD(ARRAY_READ, array_read, .buf = {1, sizeof(row)}, .array = 3,
			.width = sizeof(row), .height = 1, .pitch = sizeof(row),
			.flags = QCU_COPY_SYNC);
		c.flags = QCU_F_SEGS;
		assert_int_equal(ask_with(&c, NULL, &seg, 1), 0);
		assert_int_equal(row[0], round);
		row[0] = 100 + round;
		c = CMD(ARRAY_WRITE, array_write, .buf = {1, sizeof(row)}, .array = 3,
			.width = sizeof(row), .height = 1, .pitch = sizeof(row),
			.flags = QCU_COPY_SYNC);
		c.flags = QCU_F_SEGS;
		assert_int_equal(ask_with(&c, NULL, &seg, 1), 0);
		assert_int_equal(read_word(0), 100 + round);
	}
	/* The memory stays for as long as the array. */
	assert_int_equal(ask(CMD(PHYS_RELEASE, phys_release, .mem = 2)), 0);
	assert_int_equal(ask(CMD(ARRAY_DESTROY, array_destroy, .array = 3)), 0);
	save_and_restore();
	mir_destroy(mirror);
}

/*
 * Grains of addresses: 0 is the second grain of memory 2, 1 its first one, 3 that one again, which
 * GPU 1 may read. 2 and 4 have memories that have lost their number, which memory 7 has now.
 */
static void make_mappings(void)
{
	const uint64_t gone = reserve(3 * GRAIN);

	reserved_at = reserve(5 * GRAIN);
	assert_int_equal(ask(CMD(VA_FREE, va_free, .addr = gone, .size = 3 * GRAIN)), 0);
	create(2, 2 * GRAIN);
	map(2, GRAIN, 0);
	map(2, 0, 1);
	map(2, 0, 3);
	create(7, GRAIN);
	map(7, 0, 2);
	assert_int_equal(ask(CMD(PHYS_RELEASE, phys_release, .mem = 7)), 0);
	create(7, GRAIN);
	map(7, 0, 4);
	assert_int_equal(ask(CMD(PHYS_RELEASE, phys_release, .mem = 7)), 0);
	allow(0, 0, BOTH);
	allow(1, 0, BOTH);
	allow(2, 0, BOTH);
	allow(4, 0, BOTH);
	allow(3, 1, READ);
	write_word(0, 10);
	write_word(1, 11);
	write_word(2, 12);
	write_word(4, 14);
	allow(4, 0, READ);
}

static void mapped_again(void **state)
{
	const uint64_t size = 5 * GRAIN;
	unsigned int round;
	uint64_t more;

	(void)state;
	make_session();
	make_mappings();
	for (round = 0; round < 3; round++) {
		save_and_restore();
		assert_int_equal(read_word(0), 10);
		assert_int_equal(read_word(1), 11 + round);
		assert_int_equal(read_word(2), 12);
		assert_int_equal(read_word(4), 14);
		assert_int_equal(access_of(3, 1), READ);
		assert_int_equal(access_of(3, 0), 0);
		assert_int_equal(access_of(4, 0), READ);
		/* Both mappings are the same memory. */
		allow(3, 0, BOTH);
		write_word(3, 12 + round);
		assert_int_equal(read_word(1), 12 + round);
		allow(3, 0, 0);
		/* What is reserved now lies elsewhere. */
		more = reserve(GRAIN);
		assert_true(more + GRAIN <= reserved_at || more >= reserved_at + size);
		assert_int_equal(ask(CMD(VA_FREE, va_free, .addr = more, .size = GRAIN)), 0);
	}
	/* The numbers are as they were, and all of it can end. */
	assert_int_not_equal(ask(CMD(PHYS_RELEASE, phys_release, .mem = 7)), 0);
	assert_int_not_equal(ask(CMD(PHYS_RELEASE, phys_release, .mem = QCU_ID_MAX)), 0);
	assert_int_not_equal(ask(CMD(VA_FREE, va_free, .addr = reserved_at, .size = size)), 0);
	assert_int_equal(ask(CMD(PHYS_UNMAP, phys_unmap, .addr = reserved_at, .size = size)), 0);
	assert_int_equal(ask(CMD(PHYS_RELEASE, phys_release, .mem = 2)), 0);
	assert_int_equal(ask(CMD(VA_FREE, va_free, .addr = reserved_at, .size = size)), 0);
	save_and_restore();
	mir_destroy(mirror);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(forbidden_addresses),
		cmocka_unit_test(nobody_can_read),
		cmocka_unit_test(mapped_again),
		cmocka_unit_test(never_used),
		cmocka_unit_test(arrays_whose_memory_has_ended),
		cmocka_unit_test(arrays_placed_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
