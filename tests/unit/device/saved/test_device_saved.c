// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Sessions that are saved and made again: archives that are cut off, damaged, in a wrong order or
 * no archives at all, commands that none may have; then a session with something of each kind.
 */
#include "include/qculib.h"
#include "tests/unit/device/saved/test_device_saved.h"

#include <stdatomic.h>

#include "qcu-device/commands/swap/swap.h"

static uint8_t *good;
static size_t good_size;

/* Where each entry of the good one begins. The last number is its size. */
static size_t begins[200], entries;

static void find_entries(void)
{
	struct archive_entry e;
	size_t at = sizeof(struct archive_head);

	for (entries = 0; at < good_size; entries++) {
		assert_true(entries + 1 < sizeof(begins) / sizeof(begins[0]));
		begins[entries] = at;
		memcpy(&e, good + at, sizeof(e));
		at += sizeof(e) + e.len + e.wanted * sizeof(struct be_wanted) + sizeof(uint64_t);
	}
	assert_int_equal(at, good_size);
	begins[entries] = at;
}

static int begin(void **state)
{
	(void)state;
	good = save_session(&good_size);
	find_entries();
	return 0;
}

static int end(void **state)
{
	(void)state;
	free(good);
	return 0;
}

static void refused(const uint8_t *bytes, size_t size)
{
	assert_false(restore_session(bytes, size));
	assert_true(why[0]);
	mir_destroy(mirror);
}

static void cut_off(void **state)
{
	size_t i;

	(void)state;
	refused(good, 0);
	refused(good, sizeof(struct archive_head) - 1);
	for (i = 0; i < entries; i++) {
		refused(good, begins[i]);
		refused(good, begins[i] + 1);
		refused(good, begins[i + 1] - 1);
	}
}

static void flipped_bits(void **state)
{
	uint64_t random = 46;
	unsigned int i;
	size_t at;

	(void)state;
	for (i = 0; i < 150; i++) {
		random = random * 6364136223846793005u + 1442695040888963407u;
		/* Half of them in what is no content. */
		at = (random >> 20) % (i & 1 ? good_size : begins[entries / 2]);
		good[at] ^= (uint8_t)(1u << (random >> 60 & 7));
		refused(good, good_size);
		good[at] ^= (uint8_t)(1u << (random >> 60 & 7));
	}
}

/* Two neighbours change places. With right sums it may even be a session; it is never more. */
static void wrong_order(void **state)
{
	uint8_t *other = malloc(good_size);
	size_t i, first, second;
	int fd;

	(void)state;
	for (i = 0; i + 1 < entries; i++) {
		first = begins[i + 1] - begins[i];
		second = begins[i + 2] - begins[i + 1];
		memcpy(other, good, good_size);
		memcpy(other + begins[i], good + begins[i + 1], second);
		memcpy(other + begins[i] + second, good + begins[i], first);
		refused(other, good_size);
		fd = new_file();
		assert_int_equal(write(fd, other, good_size), good_size);
		lseek(fd, 0, SEEK_SET);
		start_mirror();
		(void)mir_restore_unsummed(mirror, fd, why, sizeof(why));
		mir_destroy(mirror);
		close(fd);
	}
	free(other);
}

/* An archive of one entry. */
static void refused_entry(struct archive_entry e, const void *data, const struct be_wanted *wanted,
			  const char *because)
{
	assert_false(restore_entries(&e, 1, data, wanted));
	if (!strstr(why, because))
		fail_msg("\"%s\" does not say \"%s\"", why, because);
	mir_destroy(mirror);
}

/*
 * Data of each length around those that are divided between threads, or read into the caller's
 * buffer: in a file, in one that can only be appended to, and in a pipe.
 */
static void *read_pipe(void *arg)
{
	struct archive *from = arg;
	static struct archive_entry e;
	struct be_wanted *wanted;
	void *data;

	return archive_read(from, &e, &data, &wanted) ? data : NULL;
}

static void check_data(struct archive *to, struct archive *from, size_t len)
{
	uint8_t *data = malloc(len + 1);
	struct archive_entry e = {.what = ARCHIVE_PRINTED, .len = len};
	pthread_t reader;
	void *got;
	size_t i;

	assert_non_null(data);
	for (i = 0; i < len; i++)
		data[i] = (uint8_t)(i * 7 + i / 4099);
	if (to->fd == from->fd) {
		assert_true(archive_write(to, &e, data, NULL));
		lseek(from->fd, -(off_t)(sizeof(e) + len + sizeof(uint64_t)), SEEK_CUR);
		got = read_pipe(from);
	} else {
		assert_int_equal(pthread_create(&reader, NULL, read_pipe, from), 0);
		assert_true(archive_write(to, &e, data, NULL));
		assert_int_equal(pthread_join(reader, &got), 0);
	}
	assert_non_null(got);
	assert_memory_equal(got, data, len);
	assert_int_equal(got == from->piece, from->piece && len <= ARCHIVE_PIECE);
	archive_free(from, got);
	free(data);
}

static void data_of_any_length(void **state)
{
	static const size_t lens[] = {1,
				      63,
				      64,
				      65,
				      ARCHIVE_PIECE - 1,
				      ARCHIVE_PIECE,
				      ARCHIVE_PIECE + 1,
				      3 * ARCHIVE_PIECE + 77,
				      511,
				      ARCHIVE_PIECE / 2 + 3};
	struct archive to, from;
	int fd[2], file;
	size_t i, way;

	(void)state;
	for (way = 0; way < 4; way++) {
		file = new_file();
		assert_int_equal(pipe(fd), 0);
		if (way == 2)
			assert_int_equal(fcntl(file, F_SETFL, O_APPEND), 0);
		to = (struct archive){.fd = way == 3 ? fd[1] : file};
		from = (struct archive){.fd = way == 3 ? fd[0] : file};
		from.piece = way ? malloc(ARCHIVE_PIECE) : NULL;
		for (i = 0; i < sizeof(lens) / sizeof(lens[0]); i++)
			check_data(&to, &from, lens[i]);
		assert_int_equal(to.sum, from.sum);
		free(from.piece);
		close(file);
		close(fd[0]);
		close(fd[1]);
	}
}

/* A sum is another one if any byte is. */
static void every_byte_counts(void **state)
{
	uint8_t data[300] = {0};
	struct archive_entry e = {.what = ARCHIVE_PRINTED};
	struct archive s, other;
	size_t i;

	(void)state;
	for (e.len = 1; e.len < sizeof(data); e.len += 13) {
		s = (struct archive){.fd = new_file()};
		assert_true(archive_write(&s, &e, data, NULL));
		for (i = 0; i < e.len; i++) {
			other = (struct archive){.fd = s.fd};
			data[i] = 1;
			assert_true(archive_write(&other, &e, data, NULL));
			data[i] = 0;
			assert_int_not_equal(other.sum, s.sum);
		}
		close(s.fd);
	}
}

#define ENTRY(command) ((struct archive_entry){.what = ARCHIVE_COMMAND, .cmd = (command)})

static void forbidden_commands(void **state)
{
	const struct be_wanted outside = {0x1000, 4096, 0, 0},
			       wrapped = {UINT64_MAX - 511, 4096, 0, 0},
			       odd = {0x300000000001, 4096, 0, 0},
			       foreign = {0x300000000000, 4096, 9, 0};
	struct qCUcmd c = CMD(MALLOC, malloc, .size = 4096, .ptr = 0x1000);
	struct archive_entry e;

	(void)state;
	refused_entry(ENTRY(CMD(DEVICE_RESET, device_reset)), NULL, NULL, "none of a saved");
	refused_entry(ENTRY(CMD(FREE, free, .ptr = 1)), NULL, NULL, "none of a saved");
	refused_entry(ENTRY(CMD(LAUNCH, launch, .kernel = 3)), NULL, NULL, "none of a saved");
	refused_entry(ENTRY(CMD(OPEN, open)), NULL, NULL, "none of a saved");
	e = ENTRY(c);
	e.cmd.op = 0xffff;
	refused_entry(e, NULL, NULL, "none of a saved");
	e = (struct archive_entry){.what = ARCHIVE_PRINTED};
	refused_entry(e, NULL, NULL, "has no text");
	e = (struct archive_entry){.what = 99};
	refused_entry(e, NULL, NULL, "of no kind");
	/* Places belong to a backend that holds them. */
	e = (struct archive_entry){.what = ARCHIVE_PLACES, .wanted = 1};
	refused_entry(e, NULL, &odd, "none of a saved");
	e = ENTRY(CMD(LIB_ASK, lib_ask, .library = QCU_LIB_CUBLAS));
	for (e.cmd.lib_ask.function = 0; e.cmd.lib_ask.function < 9; e.cmd.lib_ask.function++)
		refused_entry(e, NULL, NULL, "none of a saved");
	e.cmd.lib_ask.function = QCU_LIB_DESTROY;
	refused_entry(e, NULL, NULL, "none of a saved");
	e.cmd.lib_ask.function = QCU_LIB_CREATE;
	refused_entry(e, NULL, NULL, "cannot be done again");
	/* Data where there is none, and of another length. */
	e = ENTRY(c);
	e.len = 4;
	refused_entry(e, "abc", NULL, "another length");
	e = ENTRY(CMD(COPY_H2D, copy_h2d, .buf = {0, 8}, .dst = 0x300000000000));
	e.len = 4;
	refused_entry(e, "abc", NULL, "another length");
	e = ENTRY(CMD(MAP, map, .va = 4096, .len = 4096));
	refused_entry(e, NULL, NULL, "none that a guest may send");
	/* Addresses that cannot be had. */
	e = ENTRY(c);
	refused_entry(e, NULL, NULL, "cannot be done again");
	e.wanted = 1;
	refused_entry(e, NULL, &outside, "cannot be done again");
	refused_entry(e, NULL, &wrapped, "cannot be done again");
	refused_entry(e, NULL, &odd, "cannot be done again");
	refused_entry(e, NULL, &foreign, "cannot be done again");
	/* Another device, and what is not there. */
	e = ENTRY(CMD(EVENT_CREATE, event_create, .event = 4));
	e.cmd.device = 2;
	refused_entry(e, NULL, NULL, "cannot be done again");
	e = ENTRY(CMD(EVENT_RECORD, event_record, .event = 4));
	e.what = ARCHIVE_RECORDED;
	refused_entry(e, NULL, NULL, "cannot be done again");
	e.what = ARCHIVE_COMMAND;
	refused_entry(e, NULL, NULL, "none of a saved");
}

static void other_heads(void **state)
{
	struct archive_head head = {.magic = ARCHIVE_MAGIC,
				    .format = ARCHIVE_FORMAT,
				    .wire = QCU_WIRE_VERSION,
				    .devices = 2,
				    .backend = "soft"},
			    bad;
	unsigned int i;

	(void)state;
	for (i = 0; i < 5; i++) {
		struct archive s = {.fd = new_file()};

		bad = head;
		bad.magic ^= i == 0;
		bad.format += i == 1;
		bad.wire += i == 2;
		bad.devices += i == 3;
		bad.backend[4] = i == 4 ? 'y' : 0;
		assert_true(archive_write_head(&s, &bad));
		lseek(s.fd, 0, SEEK_SET);
		start_mirror();
		assert_false(mir_restore(mirror, s.fd, why, sizeof(why)));
		mir_destroy(mirror);
		close(s.fd);
	}
}

/* Each of these makes the session one that cannot be saved. It goes on. */
static void not_yet(void **state)
{
	const struct {
		struct qCUcmd cmd;
		const char *because;
	} what[] = {
		{CMD(ARRAY_DESTROY, array_destroy, .array = 2), "a texture that needs something"},
		{CMD(FREE, free, .ptr = memory_at), "whose memory has been freed"},
	};
	unsigned int i;
	int fd;

	(void)state;
	for (i = 0; i < sizeof(what) / sizeof(what[0]); i++) {
		make_session();
		fd = new_file();
		assert_int_equal(ask(what[i].cmd), 0);
		assert_false(mir_save(mirror, fd, 1000, why, sizeof(why)));
		if (!strstr(why, what[i].because))
			fail_msg("\"%s\" does not say \"%s\"", why, what[i].because);
		assert_int_equal(lseek(fd, 0, SEEK_CUR), 0);
		assert_int_equal(word_at(variable_at), 8);
		mir_destroy(mirror);
		close(fd);
	}
	/* A file that takes nothing. */
	make_session();
	fd = open("/dev/full", O_WRONLY);
	assert_false(mir_save(mirror, fd, 1000, why, sizeof(why)));
	assert_string_equal(why, "the file cannot be written");
	add();
	mir_destroy(mirror);
	close(fd);
}

/* The memory has no handle any more, but the array still lies in it. */
static void array_in_released_memory(void **state)
{
	int fd = new_file();

	(void)state;
	make_session();
	assert_int_equal(ask(CMD(PHYS_CREATE, phys_create, .size = 2 << 20, .mem = 2)), 0);
	assert_int_equal(ask(CMD(ARRAY_CREATE, array_create, .array = 3, .width = 8, .height = 4,
				 .levels = 1, .bits = {32}, .mem = 2)),
			 0);
	assert_int_equal(ask(CMD(PHYS_RELEASE, phys_release, .mem = 2)), 0);
	assert_false(mir_save(mirror, fd, 1000, why, sizeof(why)));
	assert_string_equal(why, "it has an array in memory whose number has ended");
	assert_int_equal(ask(CMD(ARRAY_DESTROY, array_destroy, .array = 3)), 0);
	assert_true(mir_save(mirror, fd, 1000, why, sizeof(why)));
	mir_destroy(mirror);
	close(fd);
}

/* The stream in which memory of a pool was allocated may have ended, or its number may be a later
 * stream's. */
static void pooled_memory_outlives_its_stream(void **state)
{
	struct qCUcmd c = CMD(MALLOC_ASYNC, malloc_async, .size = 500, .pool = 5, .stream = 11);
	const int fd = new_file();
	uint32_t one = 1;
	uint64_t at;

	(void)state;
	make_session();
	assert_int_equal(ask(CMD(STREAM_CREATE, stream_create, .stream = 11)), 0);
	assert_int_equal(ask_with(&c, NULL, NULL, 0), 0);
	at = c.malloc_async.ptr;
	copy(false, at, &one, sizeof(one));
	assert_int_equal(ask(CMD(STREAM_DESTROY, stream_destroy, .stream = 11)), 0);
	if (!mir_save(mirror, fd, 1000, why, sizeof(why)))
		fail_msg("%s", why);
	mir_destroy(mirror);
	lseek(fd, 0, SEEK_SET);
	start_mirror();
	if (!mir_restore(mirror, fd, why, sizeof(why)))
		fail_msg("%s", why);
	assert_int_equal(word_at(at), 1);
	assert_int_equal(ask(CMD(FREE_ASYNC, free_async, .ptr = at, .stream = 4)), 0);
	mir_destroy(mirror);
	close(fd);
}

static uint64_t let_all_leave(struct mirror *m)
{
	const char *stays;

	return mir_swap_leave(m, 0, UINT64_MAX, &stays);
}

static atomic_bool enough;

static void *let_leave_again(void *m)
{
	while (!atomic_load(&enough))
		(void)let_all_leave(m);
	return NULL;
}

/* Memory that has left the GPU comes back for it. What is told to leave meanwhile waits. */
static void memory_that_leaves(void **state)
{
	static uint32_t words[MEMORY_BYTES / 4];
	unsigned int round, i;
	pthread_t other;
	int fd;

	(void)state;
	movable = true;
	make_session();
	for (i = 0; i < MEMORY_BYTES / 4; i++)
		words[i] = i + 1;
	copy(false, memory_at, words, sizeof(words));
	for (round = 0; round < 20; round++) {
		assert_true(let_all_leave(mirror) >= MEMORY_BYTES);
		fd = new_file();
		atomic_store(&enough, false);
		assert_int_equal(pthread_create(&other, NULL, let_leave_again, mirror), 0);
		if (!mir_save(mirror, fd, 10000, why, sizeof(why)))
			fail_msg("%s", why);
		atomic_store(&enough, true);
		pthread_join(other, NULL);
		mir_destroy(mirror);
		lseek(fd, 0, SEEK_SET);
		start_mirror();
		if (!mir_restore(mirror, fd, why, sizeof(why)))
			fail_msg("%s", why);
		close(fd);
		memset(words, 0, sizeof(words));
		copy(true, memory_at, words, sizeof(words));
		for (i = 0; i < MEMORY_BYTES / 4; i++)
			assert_int_equal(words[i], i + 1);
	}
	mir_destroy(mirror);
	movable = false;
}

static float milliseconds(void)
{
	struct qCUcmd c = CMD(EVENT_ELAPSED, event_elapsed, .start = 6, .end = 7);
	float ms;

	assert_int_equal(ask_with(&c, NULL, NULL, 0), 0);
	memcpy(&ms, &c.event_elapsed.ms, sizeof(ms));
	return ms;
}

/* The last row of the array. */
static void read_row(uint32_t row[8])
{
	struct qCUcmd c = CMD(ARRAY_READ, array_read, .buf = {1, 32}, .array = 2, .y = 3,
			      .width = 32, .height = 1, .pitch = 32, .flags = QCU_COPY_SYNC);
	const struct qcu_seg seg = {(uintptr_t)row, 32};

	c.flags = QCU_F_SEGS;
	assert_int_equal(ask_with(&c, NULL, &seg, 1), 0);
}

static void made_again(void **state)
{
	struct qCUcmd c;
	uint32_t row[8];
	int round;
	float ms;

	(void)state;
	assert_true(restore_session(good, good_size));
	for (round = 0; round < 3; round++) {
		/* 7 and 1 is 8; then both are 8, 16, 32. */
		assert_int_equal(word_at(memory_at), 8u << round);
		assert_int_equal(word_at(variable_at), 8u << round);
		assert_int_equal(word_at(memory_at + 4), 0);
		assert_int_equal(word_at(memory_at + MEMORY_BYTES - 4), 1);
		assert_int_equal(word_at(memory_at + 64), round ? 0x04040404 : 0);
		assert_int_equal(ask(CMD(GRAPH_LAUNCH, graph_launch, .graph = 9, .stream = 4,
					 .event = QCU_GRAPH_NO_EVENT)),
				 0);
		read_row(row);
		assert_int_equal(row[0], 1);
		assert_int_equal(row[7], 8);
		add();
		ms = milliseconds();
		assert_true(ms >= 2);
		c = CMD(EVENT_ELAPSED, event_elapsed, .start = 6, .end = 8);
		assert_int_equal(ask(c), QCU_ERR_InvalidResourceHandle);
		c = CMD(POOL_GET, pool_get, .pool = 5, .attr = 4);
		assert_int_equal(ask_with(&c, NULL, NULL, 0), 0);
		assert_int_equal(c.pool_get.value, 77);
		c = CMD(LIMIT_GET, limit_get, .limit = 2);
		assert_int_equal(ask_with(&c, NULL, NULL, 0), 0);
		assert_int_equal(c.limit_get.value, 1 << 20);
		assert_int_equal(ask(CMD(MEMSET, memset, .dst = (uintptr_t)page, .width = 8,
					 .height = 1, .elem = 1, .value = 5, .stream = 4,
					 .flags = QCU_COPY_SYNC)),
				 0);
		assert_int_equal(page[7], 5);
		page[7] = 0;
		/* And once more, from this one. */
		save_and_restore();
		/* However long this took, no event has come nearer to another one. */
		assert_true(milliseconds() == ms);
	}
	assert_int_equal(ask(CMD(TEXTURE_DESTROY, texture_destroy, .object = texture_at)), 0);
	assert_int_equal(ask(CMD(GRAPH_DESTROY, graph_destroy, .graph = 9)), 0);
	assert_int_equal(ask(CMD(FREE_ASYNC, free_async, .ptr = pooled_at, .stream = 4)), 0);
	assert_int_equal(ask(CMD(FREE, free, .ptr = memory_at)), 0);
	assert_int_equal(ask(CMD(MODULE_UNLOAD, module_unload, .module = 2)), 0);
	assert_int_equal(ask(CMD(STREAM_DESTROY, stream_destroy, .stream = 4)), 0);
	mir_destroy(mirror);
}

static struct qCUcmd policy(uint32_t stream, uint8_t value)
{
	return CMD(STREAM_ATTR_SET, stream_attr_set, .stream = stream, .attr = 3, .value = {value});
}

static unsigned int policy_of(uint32_t stream)
{
	struct qCUcmd c = CMD(STREAM_ATTR_GET, stream_attr_get, .stream = stream, .attr = 3);

	assert_int_equal(ask_with(&c, NULL, NULL, 0), 0);
	return c.stream_attr_get.value[0];
}

/* What a stream got from another one stays, also when the other one changes or ends. */
static void copied_attributes(void **state)
{
	int fd = new_file();

	(void)state;
	make_session();
	assert_int_equal(ask(CMD(STREAM_CREATE, stream_create, .stream = 5, .flags = 1)), 0);
	assert_int_equal(ask(CMD(STREAM_CREATE, stream_create, .stream = 6, .flags = 1)), 0);
	assert_int_equal(ask(policy(4, 4)), 0);
	assert_int_equal(ask(policy(5, 2)), 0);
	assert_int_equal(ask(policy(6, 2)), 0);
	assert_int_equal(ask(CMD(STREAM_ATTR_COPY, stream_attr_copy, .to = 5, .from = 4)), 0);
	assert_int_equal(ask(CMD(STREAM_ATTR_COPY, stream_attr_copy, .to = 6, .from = 6)), 0);
	assert_int_equal(ask(policy(4, 3)), 0);
	if (!mir_save(mirror, fd, 1000, why, sizeof(why)))
		fail_msg("%s", why);
	mir_destroy(mirror);
	start_mirror();
	lseek(fd, 0, SEEK_SET);
	if (!mir_restore(mirror, fd, why, sizeof(why)))
		fail_msg("%s", why);
	assert_int_equal(policy_of(4), 3);
	assert_int_equal(policy_of(5), 4);
	assert_int_equal(policy_of(6), 2);
	mir_destroy(mirror);
	close(fd);
}

/* A setting again and again, and objects that end, leave nothing. */
static void nothing_grows(void **state)
{
	size_t size;
	uint32_t i;
	int fd;

	(void)state;
	make_session();
	for (i = 0; i < 1000; i++) {
		struct qCUcmd c = CMD(MALLOC, malloc, .size = 1000);

		assert_int_equal(ask(CMD(POOL_SET, pool_set, .pool = 5, .attr = 4, .value = i)), 0);
		assert_int_equal(ask(CMD(EVENT_CREATE, event_create, .event = 9 + i)), 0);
		assert_int_equal(ask(CMD(EVENT_DESTROY, event_destroy, .event = 9 + i)), 0);
		assert_int_equal(ask_with(&c, NULL, NULL, 0), 0);
		assert_int_equal(ask(CMD(FREE, free, .ptr = c.malloc.ptr)), 0);
	}
	fd = new_file();
	assert_true(mir_save(mirror, fd, 1000, why, sizeof(why)));
	size = (size_t)lseek(fd, 0, SEEK_CUR);
	assert_int_equal(size, good_size);
	mir_destroy(mirror);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cut_off),
		cmocka_unit_test(flipped_bits),
		cmocka_unit_test(wrong_order),
		cmocka_unit_test(other_heads),
		cmocka_unit_test(data_of_any_length),
		cmocka_unit_test(every_byte_counts),
		cmocka_unit_test(forbidden_commands),
		cmocka_unit_test(not_yet),
		cmocka_unit_test(array_in_released_memory),
		cmocka_unit_test(pooled_memory_outlives_its_stream),
		cmocka_unit_test(made_again),
		cmocka_unit_test(nothing_grows),
		cmocka_unit_test(copied_attributes),
		cmocka_unit_test(memory_that_leaves), /* its memory lies elsewhere */
	};

	return cmocka_run_group_tests(tests, begin, end);
}
