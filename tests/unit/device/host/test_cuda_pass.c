// SPDX-License-Identifier: GPL-2.0-or-later
/* How the mirrors of the cuda backend hand each other files, without CUDA. */
#define _GNU_SOURCE /* memfd_create */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "qcu-device/backend/cuda/be_cuda_pass.h"

static struct cu_pass pass;

/* A file that says a number. */
static int file(int number)
{
	int fd = memfd_create("test", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, &number, sizeof(number)), sizeof(number));
	return fd;
}

/* The number in the file that the handle stands for, or -1. */
static int number(const struct cu_pass_handle *h)
{
	int fd = cu_pass_take(h), n = -1;

	if (fd < 0)
		return -1;
	if (pread(fd, &n, sizeof(n), 0) != sizeof(n))
		n = -1;
	close(fd);
	return n;
}

static int open_files(void)
{
	int n = 0, fd;

	for (fd = 0; fd < 1024; fd++)
		n += dup2(fd, fd) == fd;
	return n;
}

static void wrong_handles(void **state)
{
	struct cu_pass_handle h = {.name = 0xfffff}, other;

	(void)state;
	assert_int_equal(number(&h), -1);
	assert_true(cu_pass_offer(&pass, file(1), &h));
	other = h;
	other.secret[0] ^= 1;
	assert_int_equal(number(&other), -1);
	other = h;
	other.secret[1] ^= 1ull << 63;
	assert_int_equal(number(&other), -1);
	other = h;
	other.name = UINT32_MAX;
	assert_int_equal(number(&other), -1);
	assert_int_equal(number(&h), 1);
	cu_pass_withdraw(&pass, &h);
	assert_int_equal(number(&h), -1);
	cu_pass_withdraw(&pass, &h);
}

static void many(void **state)
{
	struct cu_pass_handle h[50];
	int before, i;

	(void)state;
	assert_true(cu_pass_offer(&pass, file(100), &h[0]));
	before = open_files();
	for (i = 1; i < 50; i++)
		assert_true(cu_pass_offer(&pass, file(100 + i), &h[i]));
	for (i = 0; i < 50; i++)
		assert_int_equal(number(&h[i]), 100 + i);
	for (i = 1; i < 50; i += 2)
		cu_pass_withdraw(&pass, &h[i]);
	for (i = 0; i < 50; i++)
		assert_int_equal(number(&h[i]), i % 2 ? -1 : 100 + i);
	for (i = 2; i < 50; i += 2)
		cu_pass_withdraw(&pass, &h[i]);
	assert_int_equal(open_files(), before);
	cu_pass_withdraw(&pass, &h[0]);
}

/* The offers of a process end with it; what was taken before stays. */
static void another_process(void **state)
{
	struct cu_pass_handle h;
	int ends[2], back[2], fd, n = 0, status;
	pid_t pid;

	(void)state;
	assert_false(pipe(ends) || pipe(back));
	pid = fork();
	if (!pid) {
		struct cu_pass own;

		cu_pass_open(&own);
		if (!cu_pass_offer(&own, file(7), &h) || write(ends[1], &h, sizeof(h)) != sizeof(h))
			_exit(1);
		close(back[1]);
		_exit(read(back[0], &n, 1) != 0);
	}
	close(back[0]);
	assert_int_equal(read(ends[0], &h, sizeof(h)), sizeof(h));
	fd = cu_pass_take(&h);
	assert_true(fd >= 0);
	close(back[1]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(number(&h), -1);
	assert_int_equal(pread(fd, &n, sizeof(n), 0), sizeof(n));
	assert_int_equal(n, 7);
	close(fd);
	close(ends[0]);
	close(ends[1]);
}

static void the_end(void **state)
{
	struct cu_pass_handle h;
	struct cu_pass own;
	int before = open_files();

	(void)state;
	cu_pass_open(&own);
	cu_pass_close(&own);
	cu_pass_open(&own);
	assert_true(cu_pass_offer(&own, file(3), &h));
	assert_int_equal(number(&h), 3);
	cu_pass_close(&own);
	assert_int_equal(number(&h), -1);
	assert_int_equal(open_files(), before);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(wrong_handles),
		cmocka_unit_test(many),
		cmocka_unit_test(another_process),
		cmocka_unit_test(the_end),
	};
	int failed;

	cu_pass_open(&pass);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	cu_pass_close(&pass);
	return failed;
}
