// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Sessions of which memory goes ahead: files and streams that are damaged first, then pieces that
 * are written, freed and allocated anew while they go.
 */
#include "tests/unit/device/saved/test_device_saved.h"

#include <stdlib.h>

#include "qcu-device/memory/ahead.h"
#include "qcu-device/mirror/going.h"
#include "qcu-device/mirror/sums.h"

#define MIB (1ull << 20)

static uint64_t allocate(uint64_t size)
{
	struct qCUcmd c = CMD(MALLOC, malloc, .size = size);

	assert_int_equal(ask_with(&c, NULL, NULL, 0), 0);
	return c.malloc.ptr;
}

static void upload(uint64_t to, const void *from, uint64_t len)
{
	const struct qcu_seg seg = {(uintptr_t)from, len};
	struct qCUcmd c =
		CMD(COPY_H2D, copy_h2d, .buf = {0, len}, .dst = to, .flags = QCU_COPY_SYNC);

	c.flags = QCU_F_SEGS;
	assert_int_equal(ask_with(&c, NULL, &seg, 1), 0);
}

static void download(void *to, uint64_t from, uint64_t len)
{
	const struct qcu_seg seg = {(uintptr_t)to, len};
	struct qCUcmd c =
		CMD(COPY_D2H, copy_d2h, .buf = {0, len}, .src = from, .flags = QCU_COPY_SYNC);

	c.flags = QCU_F_SEGS;
	assert_int_equal(ask_with(&c, NULL, &seg, 1), 0);
}

static uint8_t *random_bytes(size_t len, unsigned int seed)
{
	uint8_t *p = malloc(len);
	size_t i;

	for (i = 0; i < len; i++) {
		seed = seed * 1103515245u + 12345u;
		p[i] = (uint8_t)(seed >> 16);
	}
	return p;
}

/* ---- sums ---- */

static void check_sums(bool kernel, uint64_t at, const uint8_t *bytes, size_t len)
{
	struct sums *s = sums_new(mirror, 0, kernel);
	struct piece_sum sum[3];
	size_t piece, i;

	assert_non_null(s);
	upload(at, bytes, len);
	assert_int_equal(sums_of(mirror, s, 0, at, len, sum), 0);
	for (i = 0; i * AHEAD_BYTES < len; i++) {
		piece = len - i * AHEAD_BYTES;
		if (piece > AHEAD_BYTES)
			piece = AHEAD_BYTES;
		assert_true(sum[i].sum == ahead_sum(bytes + i * AHEAD_BYTES, piece));
		assert_true(sum[i].any);
	}
	sums_free(mirror, s);
}

static void sums_of_a_kernel_are_ours(void **state)
{
	static const size_t lens[] = {1, 7, 8, 9, 255, 4096, 65537, 4 * MIB, 4 * MIB + 13};
	uint8_t *bytes = random_bytes(5 * MIB, 7), *zeros = calloc(1, 65536);
	struct piece_sum sum;
	struct sums *s;
	uint64_t at;
	size_t i;

	(void)state;
	start_mirror();
	at = allocate(5 * MIB);
	for (i = 0; i < sizeof(lens) / sizeof(*lens); i++) {
		check_sums(true, at, bytes + i, lens[i]);
		check_sums(false, at, bytes + i, lens[i]);
	}
	/* What is zero has a sum, too, and is known as zero. */
	upload(at, zeros, 65536);
	s = sums_new(mirror, 0, true);
	assert_int_equal(sums_of(mirror, s, 0, at, 65536, &sum), 0);
	assert_true(!sum.any && sum.sum == ahead_sum(zeros, 65536) && sum.sum);
	sums_free(mirror, s);
	mir_destroy(mirror);
	free(bytes);
	free(zeros);
}

/* A word that changes, two that are exchanged, and one that moves give another sum. */
static void a_change_has_another_sum(void **state)
{
	uint64_t w[4] = {1, 2, 3, 4}, before = ahead_sum(w, sizeof(w)), other[4] = {2, 1, 3, 4};
	size_t i;

	(void)state;
	assert_true(ahead_sum(other, sizeof(other)) != before);
	for (i = 0; i < 8 * sizeof(w); i++) {
		memcpy(other, w, sizeof(w));
		other[i / 64] ^= 1ull << i % 64;
		assert_true(ahead_sum(other, sizeof(other)) != before);
	}
	assert_true(ahead_sum(w, sizeof(w) - 8) != before);
}

/* ---- streams and files ---- */

static void put_piece(struct ahead_reader *r, struct ahead_piece p, const void *bytes, size_t step)
{
	uint8_t all[sizeof(p) + 300];
	size_t at, len = sizeof(p) + p.len;

	assert_true(p.len <= 300);
	memcpy(all, &p, sizeof(p));
	memcpy(all + sizeof(p), bytes, p.len);
	for (at = 0; at < len; at += step)
		ahead_read(r, all + at, len - at < step ? len - at : step);
}

static void streams_that_are_damaged(void **state)
{
	const uint8_t bytes[300] = {1, 2, 3};
	const struct ahead_piece good = {
		.addr = 4096, .sum = ahead_sum(bytes, 300), .session = 3, .len = 300};
	const struct ahead_piece bad[] = {
		{4096, good.sum, 0, 300},	   {4096, good.sum, 5, 300},
		{4096, good.sum, UINT32_MAX, 300}, {4096, good.sum, 3, 0},
		{4096, good.sum + 1, 3, 300},
	};
	struct ahead_piece huge = good, other = good;
	struct ahead_reader r;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		assert_true(ahead_begin(&r, 4, UINT64_MAX));
		put_piece(&r, bad[i], bytes, 1 + i);
		assert_true(r.bad && r.why[0]);
		/* Nothing happens any more. */
		put_piece(&r, good, bytes, 7);
		assert_true(r.file[3].fd < 0);
		ahead_end(&r);
	}
	huge.len = AHEAD_BYTES + 1;
	assert_true(ahead_begin(&r, 4, UINT64_MAX));
	ahead_read(&r, &huge, sizeof(huge));
	assert_true(r.bad);
	ahead_end(&r);
	/* A page for the struct, and one for the bytes: another piece is too much, the same is not.
	 */
	assert_true(ahead_begin(&r, 4, 3 * AHEAD_PAGE));
	put_piece(&r, good, bytes, 5);
	put_piece(&r, good, bytes, 5);
	assert_false(r.bad);
	other.addr++;
	put_piece(&r, other, bytes, 5);
	assert_true(r.bad);
	ahead_end(&r);
}

static void files_that_are_damaged(void **state)
{
	const uint8_t bytes[300] = {1, 2, 3};
	const struct ahead_piece one = {.addr = 99, .sum = 5, .session = 3, .len = 300};
	const uint32_t lens[] = {0, AHEAD_BYTES + 1, AHEAD_PAGE + 1, UINT32_MAX};
	struct ahead_piece wrong = one;
	struct ahead_file f = {.fd = new_file()};
	const int fd = f.fd;
	struct ahead_list l;
	size_t i;

	(void)state;
	assert_true(ahead_list(&l, fd));
	assert_null(ahead_find(&l, 99, 300, 5));
	ahead_unlist(&l);
	assert_true(ahead_put(&f, &one, bytes));
	assert_int_equal(f.size, 2 * AHEAD_PAGE);
	assert_true(ahead_list(&l, fd));
	assert_non_null(ahead_find(&l, 99, 300, 5));
	assert_int_equal(ahead_find(&l, 99, 300, 5)->at, AHEAD_PAGE);
	assert_null(ahead_find(&l, 98, 300, 5));
	assert_null(ahead_find(&l, 99, 299, 5));
	assert_null(ahead_find(&l, 99, 300, 6));
	ahead_unlist(&l);
	for (i = 0; i < sizeof(lens) / sizeof(*lens); i++) {
		wrong.len = lens[i];
		assert_int_equal(pwrite(fd, &wrong, sizeof(wrong), 0), sizeof(wrong));
		assert_false(ahead_list(&l, fd));
		assert_null(l.listed);
	}
	assert_int_equal(pwrite(fd, &one, sizeof(one), 0), sizeof(one));
	assert_int_equal(ftruncate(fd, AHEAD_PAGE + 300), 0);
	assert_false(ahead_list(&l, fd));
	ahead_close(&f);
	assert_false(ahead_list(&l, -1));
}

/* No piece lies in two sections. */
static void sections(void **state)
{
	uint8_t *bytes = calloc(1, AHEAD_BYTES);
	struct ahead_piece p = {.session = 1, .len = AHEAD_BYTES - AHEAD_PAGE};
	struct ahead_file f = {.fd = -1};
	struct ahead_list l;

	(void)state;
	for (p.addr = 0; p.addr < 40; p.addr++)
		assert_true(ahead_put(&f, &p, bytes));
	assert_true(ahead_list(&l, f.fd));
	assert_int_equal(l.count, 40);
	for (p.addr = 0; p.addr < 40; p.addr++)
		assert_int_equal(l.listed[p.addr].at / AHEAD_SECTION,
				 (l.listed[p.addr].at + p.len - 1) / AHEAD_SECTION);
	assert_int_equal(l.listed[16].at, AHEAD_SECTION + AHEAD_PAGE);
	ahead_unlist(&l);
	ahead_close(&f);
	free(bytes);
}

/* Of each address the newest counts. Pieces of one length take the place of the one before. */
static void pieces_that_come_again(void **state)
{
	const uint8_t bytes[600] = {1};
	struct ahead_piece p = {.addr = 4096, .sum = 1, .session = 1, .len = 300};
	struct ahead_file f = {.fd = -1};
	struct ahead_list l;

	(void)state;
	assert_true(ahead_put(&f, &p, bytes));
	p.addr = 0;
	assert_int_equal(ahead_takes(&f, &p), 2 * AHEAD_PAGE);
	assert_true(ahead_put(&f, &p, bytes));
	p.sum = 2;
	assert_int_equal(ahead_takes(&f, &p), 0);
	assert_true(ahead_put(&f, &p, bytes));
	assert_int_equal(f.size, 4 * AHEAD_PAGE);
	assert_true(ahead_list(&l, f.fd));
	assert_int_equal(l.count, 2);
	assert_null(ahead_find(&l, 0, 300, 1));
	assert_non_null(ahead_find(&l, 0, 300, 2));
	ahead_unlist(&l);
	/* Other memory has the address. */
	p.len = 600;
	assert_int_equal(ahead_takes(&f, &p), 2 * AHEAD_PAGE);
	assert_true(ahead_put(&f, &p, bytes));
	assert_true(ahead_list(&l, f.fd));
	assert_int_equal(l.count, 2);
	assert_null(ahead_find(&l, 0, 300, 2));
	assert_int_equal(ahead_find(&l, 0, 600, 2)->at, 5 * AHEAD_PAGE);
	assert_non_null(ahead_find(&l, 4096, 300, 1));
	ahead_unlist(&l);
	ahead_close(&f);
}

/* ---- sessions ---- */

static struct ahead_file came;
static int sent;
static uint64_t made_ready;

/* Has all pieces go that there are; between them, `between` is called with their number. */
static unsigned int let_pieces_go(const uint8_t *bytes, void (*between)(unsigned int n))
{
	const off_t before = lseek(sent, 0, SEEK_END);
	struct ahead_piece p;
	unsigned int n = 0;

	while (mir_ahead_next(mirror, &p)) {
		p.session = 1;
		p.sum = ahead_sum(bytes, p.len);
		assert_int_equal(pwrite(sent, &p, sizeof(p), before + n++ * (off_t)sizeof(p)),
				 sizeof(p));
		assert_true(ahead_put(&came, &p, bytes));
		if (between)
			between(n);
	}
	assert_false(mir_ahead_next(mirror, &p));
	mir_ahead_end(mirror);
	return n;
}

static uint8_t *map_new_buffer(int fd)
{
	uint8_t *bytes;

	assert_int_equal(ftruncate(fd, AHEAD_BYTES), 0);
	bytes = mmap(NULL, AHEAD_BYTES, PROT_READ, MAP_SHARED, fd, 0);
	assert_true(bytes != MAP_FAILED);
	return bytes;
}

static unsigned int go_ahead(void (*between)(unsigned int n))
{
	int fd = new_file();
	uint8_t *bytes = map_new_buffer(fd);
	unsigned int n;

	sent = new_file();
	came = (struct ahead_file){.fd = -1};
	assert_true(mir_ahead_begin(mirror, fd));
	n = let_pieces_go(bytes, between);
	munmap(bytes, AHEAD_BYTES);
	close(fd);
	return n;
}

/* What has been written since, which is so many bytes. */
static unsigned int go_again(uint64_t changed)
{
	int fd = new_file();
	uint8_t *bytes = map_new_buffer(fd);
	unsigned int n;
	uint64_t found;

	assert_true(mir_ahead_again(mirror, fd, sent, changed, UINT64_MAX, &found));
	assert_int_equal(found, changed);
	n = let_pieces_go(bytes, NULL);
	mir_ahead_forget(mirror);
	munmap(bytes, AHEAD_BYTES);
	close(fd);
	return n;
}

/* Saves the session, and makes it again in a fresh mirror with this that came ahead. */
static bool save_ahead(off_t *size, int with)
{
	int fd = new_file();
	bool ok;

	mir_ahead_sent(mirror, sent);
	if (!mir_save(mirror, fd, 10000, why, sizeof(why)))
		fail_msg("%s", why);
	mir_destroy(mirror);
	*size = lseek(fd, 0, SEEK_END);
	lseek(fd, 0, SEEK_SET);
	start_mirror();
	why[0] = '\0';
	/* A part of it has been made ready before, or nothing. */
	if (with >= 0 && made_ready)
		mir_ahead_comes(mirror, with, made_ready);
	if (with >= 0)
		mir_ahead_came(mirror, with);
	ok = mir_restore(mirror, fd, why, sizeof(why));
	mir_ahead_drop(mirror);
	close(fd);
	return ok;
}

static void close_files(void)
{
	close(sent);
	ahead_close(&came);
}

static uint64_t large, small_at, zero_at;
static uint8_t *large_bytes;

static void fill_memory(void)
{
	uint8_t *bytes = random_bytes(9 * MIB, 3);

	start_mirror();
	large = allocate(9 * MIB + 5);
	small_at = allocate(1000);
	zero_at = allocate(8 * MIB);
	upload(large, bytes, 9 * MIB);
	upload(small_at, bytes, 1000);
	large_bytes = bytes;
}

static void check_memory(void)
{
	uint8_t *now = malloc(9 * MIB);
	size_t i;

	download(now, large, 9 * MIB);
	assert_memory_equal(now, large_bytes, 9 * MIB);
	download(now, small_at, 1000);
	assert_memory_equal(now, large_bytes, 1000);
	download(now, zero_at, 8 * MIB);
	for (i = 0; i < 8 * MIB; i++)
		assert_int_equal(now[i], 0);
	free(now);
	mir_destroy(mirror);
	free(large_bytes);
	close_files();
}

static void what_has_not_changed_is_not_copied(void **state)
{
	off_t size;

	(void)state;
	fill_memory();
	assert_int_equal(go_ahead(NULL), 5);
	if (!save_ahead(&size, came.fd))
		fail_msg("%s", why);
	assert_true(size < 16384);
	check_memory();
}

/* Whole sections are made ready before the rest has come. The last one is not whole. */
static void made_ready_before(void **state)
{
	const size_t len = 150 * MIB;
	uint8_t *bytes = random_bytes(len, 5), *now = malloc(len);
	uint64_t at;
	off_t size;

	(void)state;
	vram = 256 * MIB;
	for (made_ready = 0; made_ready <= 2 * AHEAD_SECTION; made_ready += AHEAD_SECTION) {
		start_mirror();
		at = allocate(len);
		upload(at, bytes, len);
		assert_int_equal(go_ahead(NULL), 38);
		if (!save_ahead(&size, came.fd))
			fail_msg("%s", why);
		assert_true(size < 16384);
		download(now, at, len);
		assert_memory_equal(now, bytes, len);
		mir_destroy(mirror);
		close_files();
	}
	vram = 64 * MIB;
	made_ready = 0;
	free(bytes);
	free(now);
}

static void write_a_byte(unsigned int n)
{
	const uint8_t byte = 0x77;

	/* The first piece has gone. */
	if (n != 1)
		return;
	large_bytes[3 * MIB] = large_bytes[9 * MIB - 1] = byte;
	upload(large + 3 * MIB, &byte, 1);
	upload(large + 9 * MIB - 1, &byte, 1);
}

static void what_was_written_later_is_copied(void **state)
{
	off_t size;

	(void)state;
	fill_memory();
	go_ahead(write_a_byte);
	if (!save_ahead(&size, came.fd))
		fail_msg("%s", why);
	/* The first piece. The last one was written before it went. */
	assert_true(size > (off_t)(4 * MIB) && size < (off_t)(5 * MIB));
	check_memory();
}

static void what_was_written_later_goes_again(void **state)
{
	uint64_t later, found;
	off_t size;

	(void)state;
	fill_memory();
	go_ahead(write_a_byte);
	/* No buffer, no list, no time, and more than there may be. */
	assert_false(mir_ahead_again(mirror, -1, sent, UINT64_MAX, UINT64_MAX, &found));
	assert_false(mir_ahead_again(mirror, came.fd, -1, UINT64_MAX, UINT64_MAX, &found));
	assert_false(mir_ahead_again(mirror, came.fd, sent, UINT64_MAX, 0, &found));
	assert_false(mir_ahead_again(mirror, came.fd, sent, 4 * MIB - 1, UINT64_MAX, &found));
	assert_int_equal(go_again(4 * MIB), 1);
	assert_int_equal(go_again(0), 0);
	/* And memory that was not there before. */
	later = allocate(100000);
	upload(later, large_bytes, 100000);
	assert_int_equal(go_again(100000), 1);
	large_bytes[5 * MIB] ^= 1;
	upload(large + 5 * MIB, large_bytes + 5 * MIB, 1);
	assert_int_equal(go_again(4 * MIB), 1);
	if (!save_ahead(&size, came.fd))
		fail_msg("%s", why);
	assert_true(size < 16384);
	check_memory();
}

static void free_the_large_one(unsigned int n)
{
	if (n == 1)
		assert_int_equal(ask(CMD(FREE, free, .ptr = large)), 0);
}

/* Memory that is freed while it goes; other memory that has its address then. */
static void memory_that_ends_on_its_way(void **state)
{
	uint8_t *bytes = random_bytes(9 * MIB, 99), *now = malloc(9 * MIB);
	uint64_t again;
	off_t size;

	(void)state;
	fill_memory();
	assert_int_equal(go_ahead(free_the_large_one), 3);
	again = allocate(9 * MIB + 5);
	upload(again, bytes, 9 * MIB);
	if (!save_ahead(&size, came.fd))
		fail_msg("%s", why);
	download(now, again, 9 * MIB);
	assert_memory_equal(now, bytes, 9 * MIB);
	mir_destroy(mirror);
	free(now);
	free(bytes);
	free(large_bytes);
	close_files();
}

static void reset(unsigned int n)
{
	if (n == 1)
		assert_int_equal(ask((struct qCUcmd){.op = QCU_OP_DEVICE_RESET, .tid = 1}), 0);
}

/* A reset ends the memory, and what copies it. The next migration goes as the first one. */
static void a_reset_on_its_way(void **state)
{
	off_t size;

	(void)state;
	fill_memory();
	assert_int_equal(go_ahead(reset), 1);
	close_files();
	large = allocate(9 * MIB + 5);
	small_at = allocate(1000);
	zero_at = allocate(8 * MIB);
	upload(large, large_bytes, 9 * MIB);
	upload(small_at, large_bytes, 1000);
	assert_int_equal(go_ahead(NULL), 5);
	if (!save_ahead(&size, came.fd))
		fail_msg("%s", why);
	assert_true(size < 16384);
	check_memory();
}

/* The session is lost if what it needs has not come, or is another piece. Nothing worse happens. */
static void what_has_not_come(void **state)
{
	const uint32_t len = 4096;
	off_t size;

	(void)state;
	fill_memory();
	go_ahead(NULL);
	assert_false(save_ahead(&size, -1));
	assert_non_null(strstr(why, "memory of it has not come"));
	mir_destroy(mirror);
	free(large_bytes);
	close_files();

	fill_memory();
	go_ahead(NULL);
	assert_int_equal(pwrite(came.fd, &len, sizeof(len), offsetof(struct ahead_piece, len)),
			 sizeof(len));
	assert_false(save_ahead(&size, came.fd));
	mir_destroy(mirror);
	free(large_bytes);
	close_files();
}

/* A list with anything in it: only sums that are right are believed. */
static void a_list_with_anything(void **state)
{
	struct ahead_piece p[3] = {{.addr = 1}, {.addr = UINT64_MAX, .len = UINT32_MAX}};
	off_t size;

	(void)state;
	fill_memory();
	sent = new_file();
	came = (struct ahead_file){.fd = new_file()};
	p[2] = (struct ahead_piece){.addr = large, .sum = 5, .len = AHEAD_BYTES};
	assert_int_equal(pwrite(sent, p, sizeof(p), 0), sizeof(p));
	if (!save_ahead(&size, came.fd))
		fail_msg("%s", why);
	assert_true(size > (off_t)(9 * MIB));
	check_memory();
}

/* Entries that ask for memory which came ahead, in a way that no session is saved. */
static void forged_entries(void **state)
{
	struct archive_entry e = {.what = ARCHIVE_AHEAD, .cmd = {.op = QCU_OP_MEMSET}};

	(void)state;
	assert_false(restore_entries(&e, 1, NULL, NULL));
	assert_non_null(strstr(why, "none of a saved session"));
	mir_destroy(mirror);
	e.cmd.op = QCU_OP_COPY_H2D;
	e.len = 4;
	assert_false(restore_entries(&e, 1, "abc", NULL));
	assert_non_null(strstr(why, "none of a saved session"));
	mir_destroy(mirror);
	e.len = 0;
	assert_false(restore_entries(&e, 1, NULL, NULL));
	assert_non_null(strstr(why, "has not come"));
	mir_destroy(mirror);
}

/* A buffer that is too small, no file, and twice. */
static void buffers(void **state)
{
	struct ahead_piece p;
	int fd = new_file();

	(void)state;
	fill_memory();
	assert_false(mir_ahead_next(mirror, &p));
	assert_false(mir_ahead_begin(mirror, fd));
	assert_false(mir_ahead_begin(mirror, -1));
	assert_false(mir_ahead_next(mirror, &p));
	assert_int_equal(ftruncate(fd, AHEAD_BYTES), 0);
	assert_true(mir_ahead_begin(mirror, fd));
	assert_true(mir_ahead_next(mirror, &p));
	assert_true(mir_ahead_begin(mirror, fd));
	assert_true(mir_ahead_next(mirror, &p));
	close(fd);
	sent = -1;
	came = (struct ahead_file){.fd = -1};
	check_memory();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(streams_that_are_damaged),
		cmocka_unit_test(files_that_are_damaged),
		cmocka_unit_test(sections),
		cmocka_unit_test(pieces_that_come_again),
		cmocka_unit_test(forged_entries),
		cmocka_unit_test(what_has_not_come),
		cmocka_unit_test(a_list_with_anything),
		cmocka_unit_test(buffers),
		cmocka_unit_test(a_change_has_another_sum),
		cmocka_unit_test(sums_of_a_kernel_are_ours),
		cmocka_unit_test(what_has_not_changed_is_not_copied),
		cmocka_unit_test(made_ready_before),
		cmocka_unit_test(what_was_written_later_is_copied),
		cmocka_unit_test(what_was_written_later_goes_again),
		cmocka_unit_test(memory_that_ends_on_its_way),
		cmocka_unit_test(a_reset_on_its_way),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
