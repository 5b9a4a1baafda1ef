// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Where device memory lies that has left (qcu-device/memory/store.h): in memory, and in a file
 * whose disk is full, fails, or returns other bytes.
 */
#define _GNU_SOURCE /* linkat, rand_r */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "qcu-device/memory/store.h"
#include "tests/rounds.h"

#define BOUND	   (1ull << 20)
#define FILE_BOUND (4ull << 20)

static struct store s;
static struct be_ops ops;
static uint64_t charged, filed, file_bound, moved_out, moved_in;
static uint64_t lent, lendable, lent_out, lent_in; /* memory of another GPU */
static unsigned int registered;
static int file = -1;

/* ---- the disk ---- */

/* Of the next reads or writes, so many are as they should be. Then they fail with this error, 0:
 * they end in the middle, once. */
static struct {
	bool on;
	unsigned int right;
	int error;
} bad_read, bad_write;

ssize_t __real_pread(int fd, void *p, size_t n, off_t at);
ssize_t __real_pwrite(int fd, const void *p, size_t n, off_t at);
ssize_t __wrap_pread(int fd, void *p, size_t n, off_t at);
ssize_t __wrap_pwrite(int fd, const void *p, size_t n, off_t at);

ssize_t __wrap_pread(int fd, void *p, size_t n, off_t at)
{
	if (!bad_read.on || bad_read.right--)
		return __real_pread(fd, p, n, at);
	bad_read.on = bad_read.error;
	errno = bad_read.error;
	return bad_read.error ? -1 : __real_pread(fd, p, n / 2 / STORE_LEAST * STORE_LEAST, at);
}

/* It is given back while the next write is under way. */
static void *given_meanwhile;

ssize_t __wrap_pwrite(int fd, const void *p, size_t n, off_t at)
{
	void *block = given_meanwhile;

	given_meanwhile = NULL;
	if (block)
		s.be.give(&s, block, BOUND / 2);
	if (!bad_write.on || bad_write.right--)
		return __real_pwrite(fd, p, n, at);
	bad_write.on = bad_write.error;
	errno = bad_write.error;
	return bad_write.error ? -1 : __real_pwrite(fd, p, n / 2 / STORE_LEAST * STORE_LEAST, at);
}

static uint64_t disk_bytes(void)
{
	struct stat st;

	assert_int_equal(fstat(file, &st), 0);
	return (uint64_t)st.st_blocks * 512;
}

/* ---- the owner and the backend ---- */

static bool charge(void *ctx, enum store_medium medium, int64_t bytes)
{
	uint64_t *sum = medium == STORE_FILE ? &filed : &charged;

	(void)ctx;
	assert_int_not_equal(medium, STORE_GPU);
	if (bytes > 0 && *sum + (uint64_t)bytes > (medium == STORE_FILE ? file_bound : BOUND))
		return false;
	*sum += (uint64_t)bytes;
	return true;
}

static void moved(void *ctx, enum store_medium medium, bool out, uint64_t bytes)
{
	(void)ctx;
	if (medium == STORE_GPU)
		*(out ? &lent_out : &lent_in) += bytes;
	else
		*(out ? &moved_out : &moved_in) += bytes;
}

static void *borrow(void *ctx, uint64_t bytes)
{
	(void)ctx;
	if (bytes > lendable - lent)
		return NULL;
	lent += bytes;
	return malloc(bytes);
}

static void hand_back(void *ctx, void *p, uint64_t bytes)
{
	(void)ctx;
	lent -= bytes;
	free(p);
}

static int host_register(struct be *be, void *p, uint64_t bytes)
{
	(void)be, (void)p, (void)bytes;
	registered++;
	return 0;
}

static int host_unregister(struct be *be, void *p)
{
	(void)be, (void)p;
	registered--;
	return 0;
}

static const struct store_owner owner = {.charge = charge, .moved = moved},
				lent_owner = {.charge = charge,
					      .moved = moved,
					      .borrow = borrow,
					      .hand_back = hand_back};

static int begin_with(const struct store_owner *o)
{
	ops.host_register = host_register;
	ops.host_unregister = host_unregister;
	charged = filed = moved_out = moved_in = registered = 0;
	lent = lent_out = lent_in = lendable = 0;
	file_bound = FILE_BOUND;
	store_init(&s, &ops, NULL, o, file);
	return 0;
}

static int begin(void **state)
{
	(void)state;
	return begin_with(&owner);
}

static int end(void **state)
{
	(void)state;
	store_end(&s);
	store_fini(&s);
	return charged || filed || registered || lent;
}

static int open_file(void)
{
	const char *folder = getenv("TMPDIR");

	file = store_file_open(folder ? folder : "/tmp");
	if (file < 0) {
		fprintf(stderr, "no file without a name can be made here: %s\n", strerror(errno));
		return -1;
	}
	return 0;
}

static int begin_with_file(void **state)
{
	return open_file() || begin(state);
}

static int begin_with_all(void **state)
{
	(void)state;
	if (open_file())
		return -1;
	begin_with(&lent_owner);
	lendable = BOUND / 2;
	return 0;
}

static int end_with_file(void **state)
{
	int rc = end(state);

	bad_read.on = bad_write.on = false;
	close(file);
	file = -1;
	return rc;
}

/* What does not fit is refused, and nothing is left of it. */
static void test_full(void **state)
{
	void *p;

	(void)state;
	assert_null(s.be.take(&s, BE_PIECE + 1));
	assert_null(s.be.take(&s, BOUND + 1));
	assert_int_equal(charged, 0);
	p = s.be.take(&s, BOUND);
	assert_non_null(p);
	assert_null(s.be.take(&s, 1));
	s.be.give(&s, p, BOUND);
	/* What is kept makes room. */
	p = s.be.take(&s, 1);
	assert_non_null(p);
	assert_int_equal(charged, STORE_LEAST);
	s.be.give(&s, p, 1);
}

/* A block has the size that is asked for, in whole pages. */
static void test_sizes(void **state)
{
	const uint64_t bytes = 33 * STORE_LEAST + 1;
	void *p = s.be.take(&s, bytes), *q;
	bool soon;

	(void)state;
	assert_non_null(p);
	assert_int_equal(charged, 34 * STORE_LEAST);
	memset(s.be.at(&s, p, false, &soon), 1, 34 * STORE_LEAST);
	assert_false(soon);
	s.be.give(&s, p, bytes);
	assert_int_equal(s.kept_bytes, 34 * STORE_LEAST);
	/* One of the same class that is larger is another block. */
	q = s.be.take(&s, 35 * STORE_LEAST);
	assert_non_null(q);
	assert_int_equal(charged, 69 * STORE_LEAST);
	assert_ptr_equal(s.be.take(&s, bytes), p);
	assert_int_equal(s.kept_bytes, 0);
	s.be.give(&s, p, bytes);
	s.be.give(&s, q, 35 * STORE_LEAST);
	assert_int_equal(s.kept_bytes, 69 * STORE_LEAST);
	store_trim(&s, 1);
	assert_int_equal(s.kept_bytes, 69 * STORE_LEAST);
	store_trim(&s, 1);
	assert_int_equal(s.kept_bytes + charged + registered, 0);
}

/* ---- with a file ---- */

static void *take(uint64_t bytes)
{
	return s.be.take(&s, bytes);
}

static void give(void *block, uint64_t bytes)
{
	s.be.give(&s, block, bytes);
}

static void fill(uint64_t *p, uint64_t bytes, uint64_t seed)
{
	uint64_t i;

	for (i = 0; i < bytes / sizeof(*p); i++)
		p[i] = seed * 0x9e3779b97f4a7c15ull + i;
}

/* As a backend does it. *filed_too: the block went to the file. */
static bool put(void *block, uint64_t bytes, uint64_t seed, bool *filed_too)
{
	uint64_t *p = s.be.at(&s, block, false, filed_too);

	assert_non_null(p);
	fill(p, bytes, seed);
	return !*filed_too || s.be.keep(&s, block);
}

static bool has(void *block, uint64_t bytes, uint64_t seed)
{
	uint64_t *want = malloc(bytes);
	bool soon, same;
	void *p = s.be.at(&s, block, true, &soon);

	fill(want, bytes, seed);
	same = p && !memcmp(p, want, bytes);
	free(want);
	if (p)
		assert_true(same);
	return p;
}

#define BLOCK (BOUND / 2)

/* What finds no room in memory goes to the file, to its bound. All of it is right, in any order. */
static void test_both(void **state)
{
	void *block[10];
	unsigned int i;
	bool to_file;

	(void)state;
	for (i = 0; i < 10; i++) {
		block[i] = take(BLOCK);
		assert_non_null(block[i]);
		assert_true(put(block[i], BLOCK, i, &to_file));
		assert_int_equal(to_file, i >= 2);
	}
	assert_null(take(1));
	assert_int_equal(charged, BOUND);
	assert_int_equal(filed, FILE_BOUND);
	assert_int_equal(moved_out, FILE_BOUND);
	assert_true(disk_bytes() >= FILE_BOUND);
	for (i = 10; i--;)
		assert_true(has(block[i], BLOCK, i));
	assert_int_equal(moved_in, FILE_BOUND);
	for (i = 0; i < 10; i++)
		give(block[i], BLOCK);
	assert_int_equal(filed, 0);
	assert_true(disk_bytes() < BLOCK);
	/* Memory comes first again. */
	block[0] = take(BLOCK);
	assert_true(put(block[0], BLOCK, 1, &to_file));
	assert_false(to_file);
	give(block[0], BLOCK);
}

/* The store brings the oldest blocks to the file, and so makes room in memory. */
static void test_demote(void **state)
{
	void *a, *b, *c;
	bool to_file;

	(void)state;
	assert_false(store_demote(&s));
	a = take(BLOCK);
	b = take(BLOCK);
	put(a, BLOCK, 1, &to_file);
	put(b, BLOCK, 2, &to_file);
	assert_true(store_demote(&s));
	assert_int_equal(s.kept_bytes, BLOCK);
	assert_int_equal(filed, BLOCK);
	store_trim(&s, 0);
	assert_int_equal(charged, BLOCK);
	c = take(BLOCK);
	put(c, BLOCK, 3, &to_file);
	assert_false(to_file);
	assert_true(has(a, BLOCK, 1) && has(b, BLOCK, 2) && has(c, BLOCK, 3));
	assert_int_equal(moved_in, BLOCK);
	/* b is older than c. */
	give(a, BLOCK);
	assert_true(store_demote(&s));
	assert_true(has(b, BLOCK, 2) && has(c, BLOCK, 3));
	assert_int_equal(moved_in, 2 * BLOCK);
	file_bound = filed;
	assert_false(store_demote(&s));
	give(b, BLOCK);
	assert_true(store_demote(&s));
	assert_false(store_demote(&s));
	assert_true(has(c, BLOCK, 3));
	give(c, BLOCK);
}

/* The program frees memory that is on its way to the file. */
static void test_given_meanwhile(void **state)
{
	unsigned int fails;
	bool to_file;
	void *a, *b;

	(void)state;
	for (fails = 0; fails < 2; fails++) {
		a = take(BLOCK);
		b = take(BLOCK);
		put(a, BLOCK, 1, &to_file);
		put(b, BLOCK, 2, &to_file);
		given_meanwhile = a;
		bad_write.error = ENOSPC;
		bad_write.right = 0;
		bad_write.on = fails;
		assert_int_equal(store_demote(&s), !fails);
		bad_write.on = false;
		assert_null(given_meanwhile);
		assert_int_equal(filed, 0);
		assert_int_equal(s.kept_bytes, BLOCK);
		assert_true(has(b, BLOCK, 2));
		give(b, BLOCK);
		assert_int_equal(charged, BOUND);
	}
	assert_true(disk_bytes() < BLOCK);
}

/* A disk that is full, or fails: the block cannot be kept, and nothing is left of it. */
static void test_bad_writes(void **state)
{
	static const int errors[] = {ENOSPC, EIO, EFBIG, EDQUOT};
	void *memory[2] = {take(BLOCK), take(BLOCK)}, *b;
	unsigned int i, right;
	bool to_file;

	(void)state;
	put(memory[0], BLOCK, 1, &to_file);
	put(memory[1], BLOCK, 2, &to_file);
	for (i = 0; i < sizeof(errors) / sizeof(*errors); i++) {
		bad_write.error = errors[i];
		bad_write.right = 0;
		bad_write.on = true;
		b = take(BLOCK);
		assert_non_null(b);
		assert_false(put(b, BLOCK, 3, &to_file));
		give(b, BLOCK);
		bad_write.right = 0;
		assert_false(store_demote(&s));
		assert_int_equal(filed, 0);
		assert_int_equal(charged, BOUND);
		assert_true(has(memory[0], BLOCK, 1) && has(memory[1], BLOCK, 2));
	}
	/* What ends in the middle goes on; and may fail then. */
	for (right = 0; right < 2; right++) {
		bad_write.error = right ? ENOSPC : 0;
		bad_write.right = 0;
		bad_write.on = true;
		b = take(BLOCK);
		assert_int_equal(put(b, BLOCK, 4, &to_file), !right);
		bad_write.on = false;
		assert_true(right || has(b, BLOCK, 4));
		give(b, BLOCK);
	}
	assert_int_equal(filed, 0);
	assert_true(disk_bytes() < BLOCK);
	give(memory[0], BLOCK);
	give(memory[1], BLOCK);
}

static void spoil(off_t at, uint64_t bytes)
{
	void *p = aligned_alloc(STORE_LEAST, bytes);

	memset(p, 0x55, bytes);
	assert_int_equal(__real_pwrite(file, p, bytes, at), bytes);
	free(p);
}

/* A disk that cannot be read, or has other bytes: an error, and the right bytes if it is over. */
static void test_bad_reads(void **state)
{
	static const int errors[] = {EIO, EBADF, ENODATA};
	void *memory[2] = {take(BLOCK), take(BLOCK)}, *a = take(BLOCK), *b = take(BLOCK);
	unsigned int i;
	bool to_file;

	(void)state;
	assert_true(put(a, BLOCK, 1, &to_file));
	assert_true(put(b, BLOCK, 2, &to_file));
	for (i = 0; i < sizeof(errors) / sizeof(*errors); i++) {
		bad_read.error = errors[i];
		bad_read.right = 0;
		bad_read.on = true;
		assert_false(has(a, BLOCK, 1));
		bad_read.on = false;
		assert_true(has(a, BLOCK, 1));
	}
	bad_read.error = 0;
	bad_read.on = true;
	assert_true(has(a, BLOCK, 1));
	/* One page is another one. */
	spoil(BLOCK - (off_t)STORE_LEAST, STORE_LEAST);
	assert_false(has(a, BLOCK, 1));
	assert_true(has(b, BLOCK, 2));
	/* Each block is where the other one should be. */
	give(a, BLOCK);
	a = take(BLOCK);
	assert_true(put(a, BLOCK, 2, &to_file));
	assert_true(has(a, BLOCK, 2));
	((struct store_entry *)a)->number ^= 1;
	assert_false(has(a, BLOCK, 2));
	((struct store_entry *)a)->number ^= 1;
	/* The file ends too early. */
	assert_int_equal(ftruncate(file, BLOCK / 2), 0);
	assert_false(has(a, BLOCK, 2));
	assert_false(has(b, BLOCK, 2));
	give(a, BLOCK);
	give(b, BLOCK);
	give(memory[0], BLOCK);
	give(memory[1], BLOCK);
}

/* Memory of another GPU comes first, then memory, then the file. Each has its bytes. */
static void test_lent(void **state)
{
	void *block[8], *more;
	unsigned int i;
	bool to_file;

	(void)state;
	lendable = 2 * BLOCK;
	for (i = 0; i < 6; i++) {
		block[i] = take(BLOCK);
		assert_true(put(block[i], BLOCK, i, &to_file));
		assert_int_equal(to_file, i >= 4);
	}
	assert_int_equal(lent, 2 * BLOCK);
	assert_int_equal(lent_out, 2 * BLOCK);
	assert_int_equal(charged, BOUND);
	assert_int_equal(filed, 2 * BLOCK);
	/* What leaves memory for the file is memory's oldest. */
	assert_true(store_demote(&s));
	assert_int_equal(lent, 2 * BLOCK);
	assert_int_equal(filed, 3 * BLOCK);
	for (i = 0; i < 6; i++)
		assert_true(has(block[i], BLOCK, i));
	assert_int_equal(lent_in, 2 * BLOCK);
	/* It is not kept for the next time, and comes before memory that is. */
	give(block[0], BLOCK);
	assert_int_equal(lent, BLOCK);
	give(block[3], BLOCK);
	assert_true(s.kept_bytes);
	block[0] = take(BLOCK);
	assert_int_equal(lent, 2 * BLOCK);
	/* It is full: memory that is kept, and more of it. */
	block[3] = take(BLOCK);
	assert_int_equal(lent, 2 * BLOCK);
	more = take(1);
	assert_non_null(more);
	give(more, 1);
	for (i = 0; i < 6; i++)
		give(block[i], BLOCK);
	/* The end gives it back, too. */
	block[0] = take(BLOCK);
	store_end(&s);
	give(block[0], BLOCK);
}

#define STEPS 4000
#define HELD  24u

/* Random steps against a model: each block has its bytes, and the sums are kept. */
static void test_steps(void **state)
{
	struct {
		void *block;
		uint64_t bytes, seed;
	} held[HELD] = {{NULL, 0, 0}};
	unsigned int seed = 7, step, i, failed = 0;
	bool to_file, right;

	(void)state;
	for (step = 0; step < ROUNDS(STEPS); step++) {
		i = (unsigned int)rand_r(&seed) % HELD;
		if (!(rand_r(&seed) % 8))
			store_demote(&s);
		if (!(rand_r(&seed) % 64) && lendable)
			lendable = lent + (uint64_t)rand_r(&seed) % (BOUND / 2) + 1;
		if (!(rand_r(&seed) % 32))
			store_trim(&s, 0);
		if (!(rand_r(&seed) % 32))
			store_unmap_window(&s, store_take_window(&s, 0));
		if (held[i].block) {
			assert_true(has(held[i].block, held[i].bytes, held[i].seed));
			give(held[i].block, held[i].bytes);
			held[i].block = NULL;
			continue;
		}
		held[i].bytes = STORE_LEAST * (1 + (uint64_t)rand_r(&seed) % 128);
		held[i].seed = step;
		held[i].block = take(held[i].bytes);
		if (!held[i].block)
			continue;
		bad_write.on = !(rand_r(&seed) % 16);
		bad_write.right = 0;
		bad_write.error = rand_r(&seed) % 2 ? ENOSPC : 0;
		right = put(held[i].block, held[i].bytes, step, &to_file);
		bad_write.on = false;
		if (right)
			continue;
		failed++;
		give(held[i].block, held[i].bytes);
		held[i].block = NULL;
	}
	assert_true(failed);
	for (i = 0; i < HELD; i++)
		if (held[i].block)
			give(held[i].block, held[i].bytes);
	assert_int_equal(filed, 0);
	assert_true(disk_bytes() < STORE_LEAST * HELD);
}

/* Files that cannot be had, and what others see of one. */
static void test_open(void **state)
{
	struct stat st;
	char path[64];
	int fd;

	(void)state;
	assert_int_equal(store_file_open("/there/is/no/such/folder"), -1);
	assert_int_equal(errno, ENOENT);
	assert_int_equal(store_file_open("/dev/null"), -1);
	assert_int_equal(errno, ENOTDIR);
	assert_int_equal(store_file_open("/proc"), -1);
	assert_int_equal(errno, EOPNOTSUPP);
	assert_int_equal(fstat(file, &st), 0);
	assert_int_equal(st.st_nlink, 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	/* Not even its owner can give it a name. */
	snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
	fd = linkat(AT_FDCWD, path, AT_FDCWD, "store.named", AT_SYMLINK_FOLLOW);
	assert_int_equal(fd, -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_full, begin, end),
		cmocka_unit_test_setup_teardown(test_sizes, begin, end),
		cmocka_unit_test_setup_teardown(test_open, begin_with_file, end_with_file),
		cmocka_unit_test_setup_teardown(test_bad_writes, begin_with_file, end_with_file),
		cmocka_unit_test_setup_teardown(test_bad_reads, begin_with_file, end_with_file),
		cmocka_unit_test_setup_teardown(test_both, begin_with_file, end_with_file),
		cmocka_unit_test_setup_teardown(test_demote, begin_with_file, end_with_file),
		cmocka_unit_test_setup_teardown(test_given_meanwhile, begin_with_file,
						end_with_file),
		cmocka_unit_test_setup_teardown(test_steps, begin_with_file, end_with_file),
		cmocka_unit_test_setup_teardown(test_lent, begin_with_all, end_with_file),
		cmocka_unit_test_setup_teardown(test_steps, begin_with_all, end_with_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
