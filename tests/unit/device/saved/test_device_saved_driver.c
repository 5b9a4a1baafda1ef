// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Sessions with objects of the driver API: archives that may not have such commands, objects that
 * need others which have ended, then sessions that are made again.
 */
#include "tests/unit/device/saved/test_device_saved.h"

#define ENTRY(command) ((struct archive_entry){.what = ARCHIVE_COMMAND, .cmd = (command)})

/* An archive of one entry. */
static void refused_command(struct qCUcmd cmd, const char *because)
{
	struct archive_entry e = ENTRY(cmd);

	assert_false(restore_entries(&e, 1, NULL, NULL));
	if (!strstr(why, because))
		fail_msg("\"%s\" does not say \"%s\"", why, because);
	mir_destroy(mirror);
}

/* The session goes on. */
static void refused_saving(const char *because)
{
	int fd = new_file();

	assert_false(mir_save(mirror, fd, 1000, why, sizeof(why)));
	assert_string_equal(why, because);
	assert_int_equal(lseek(fd, 0, SEEK_CUR), 0);
	close(fd);
}

/* ---- green contexts ---- */

#define GREEN(id, of, ...) \
	CMD(GREEN_CREATE, green_create, .green = (id), .parent = (of), .members = {1}, __VA_ARGS__)
#define GREEN_END(id) CMD(GREEN_DESTROY, green_destroy, .green = (id))
#define GREEN_STREAM(id, of) \
	CMD(GREEN_STREAM, green_stream, .flags = 1, .stream = (id), .green = (of))

static uint32_t multiprocessors(uint32_t green)
{
	struct qCUcmd c = CMD(GREEN_PARTS, green_parts, .parent = green);

	assert_int_equal(ask_with(&c, NULL, NULL, 0), 0);
	return c.green_parts.sms;
}

static void forbidden_greens(void **state)
{
	(void)state;
	refused_command(GREEN_END(5), "none of a saved");
	refused_command(CMD(GREEN_PARTS, green_parts), "none of a saved");
	refused_command(CMD(GREEN_CREATE, green_create, .green = 5), "cannot be done again");
	refused_command(GREEN(5, 4, .groups = 1), "cannot be done again");
	refused_command(GREEN(5, 0, .groups = 1, .least = 99), "cannot be done again");
	refused_command(GREEN_STREAM(5, 4), "cannot be done again");
}

/* A number may be a later one's. */
static void greens_that_have_ended(void **state)
{
	(void)state;
	processors = 4;
	make_session();
	assert_int_equal(ask(GREEN(5, 0, .groups = 1, .least = 3)), 0);
	assert_int_equal(ask(GREEN(6, 5, .groups = 1, .least = 2)), 0);
	assert_int_equal(ask(GREEN_STREAM(7, 6)), 0);
	assert_int_equal(ask(GREEN_END(5)), 0);
	refused_saving("it has a green context that needs something which has ended");
	assert_int_equal(ask(GREEN(5, 0)), 0);
	refused_saving("it has a green context that needs something which has ended");
	assert_int_equal(ask(GREEN_END(6)), 0);
	refused_saving("it has a stream of a green context that needs something which has ended");
	assert_int_equal(ask(CMD(STREAM_DESTROY, stream_destroy, .stream = 7)), 0);
	save_and_restore();
	assert_int_equal(multiprocessors(5), 4);
	mir_destroy(mirror);
}

static void greens_made_again(void **state)
{
	struct qCUcmd c;
	unsigned int round;

	(void)state;
	processors = 4;
	make_session();
	assert_int_equal(ask(GREEN(8, 0)), 0);
	assert_int_equal(ask(GREEN(9, 0, .groups = 1, .least = 3)), 0);
	assert_int_equal(ask(GREEN_END(8)), 0);
	assert_int_equal(ask(GREEN(5, 9, .groups = 1, .least = 2)), 0);
	assert_int_equal(ask(GREEN_STREAM(7, 5)), 0);
	assert_int_equal(
		ask(CMD(STREAM_ATTR_SET, stream_attr_set, .stream = 7, .attr = 3, .value = {2})),
		0);
	for (round = 1; round < 4; round++) {
		save_and_restore();
		assert_int_equal(multiprocessors(9), 3);
		assert_int_equal(multiprocessors(5), 2);
		assert_int_equal(ask(GREEN(9, 0)), QCU_ERR_InvalidResourceHandle);
		c = CMD(STREAM_ATTR_GET, stream_attr_get, .stream = 7, .attr = 3);
		assert_int_equal(ask_with(&c, NULL, NULL, 0), 0);
		assert_int_equal(c.stream_attr_get.value[0], 2);
		assert_int_equal(ask(CMD(MEMSET, memset, .dst = memory_at, .width = 4, .height = 1,
					 .elem = 1, .value = round, .stream = 7)),
				 0);
		assert_int_equal(ask(CMD(STREAM_SYNC, stream_sync, .stream = 7)), 0);
		assert_int_equal(word_at(memory_at), 0x01010101 * round);
	}
	assert_int_equal(ask(CMD(STREAM_DESTROY, stream_destroy, .stream = 7)), 0);
	assert_int_equal(ask(GREEN_END(5)), 0);
	assert_int_equal(ask(GREEN_END(9)), 0);
	mir_destroy(mirror);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(forbidden_greens),
		cmocka_unit_test(greens_that_have_ended),
		cmocka_unit_test(greens_made_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
