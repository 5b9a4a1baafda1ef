// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The cuda backend's capture of stdout and stderr, without CUDA: what a driver would write comes
 * out of print_read and assert_read, and what the device says itself on the real stderr.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "qcu-device/backend.h"

int cu_print_open(void);
int cu_print_read(struct be *be, void *buf, size_t max, size_t *got);
int cu_assert_read(struct be *be, void *buf, size_t max, size_t *got);

#define LINE(n)                                                                               \
	"dir/file.cu:" #n ": void kernel(int *): block: [1,0,0], thread: [31,0,0] Assertion " \
	"`x[i] < " #n "` failed.\n"

static char text[1 << 16];

static const char *all(int (*read)(struct be *, void *, size_t, size_t *))
{
	size_t len = 0, got;

	do {
		/* Pieces of an odd size. */
		if (read(NULL, text + len, 77, &got))
			_exit(10);
		len += got;
	} while (got);
	text[len] = 0;
	return text;
}

static void expect(int nr, const char *got, const char *want)
{
	if (strcmp(got, want))
		_exit(nr);
}

static void as_a_mirror(void)
{
	size_t got = 1;

	if (cu_print_read(NULL, NULL, 0, &got) || got || cu_assert_read(NULL, NULL, 0, &got) || got)
		_exit(11);
	if (cu_print_open() || cu_print_open())
		_exit(12);
	printf("printed %d\n", 1);
	fprintf(stderr, "qcu-device: one\n" LINE(1) "qcu-device: %s", "two\n");
	fprintf(stderr, "%s", LINE(2));
	if (write(2, LINE(3) "other\n", sizeof(LINE(3) "other\n") - 1) < 0 ||
	    write(2, LINE(4), 20) < 0)
		_exit(13);
	if (cu_assert_read(NULL, NULL, 0, &got) || !got)
		_exit(14);
	expect(15, all(cu_assert_read), LINE(1) LINE(2) LINE(3));
	if (write(2, &LINE(4)[20], sizeof(LINE(4)) - 21) < 0)
		_exit(16);
	expect(17, all(cu_assert_read), LINE(4));
	expect(18, all(cu_print_read), "printed 1\n");
	if (cu_print_read(NULL, NULL, 0, &got) || got || cu_assert_read(NULL, NULL, 0, &got) || got)
		_exit(19);
	fprintf(stderr, "qcu-device: last\n");
	_exit(0);
}

static void told_apart(void **state)
{
	char got[256] = "";
	size_t len = 0;
	ssize_t n;
	int fds[2], status;
	pid_t pid;

	(void)state;
	assert_int_equal(pipe(fds), 0);
	pid = fork();
	if (!pid) {
		dup2(fds[1], 2);
		as_a_mirror();
	}
	close(fds[1]);
	while ((n = read(fds[0], got + len, sizeof(got) - 1 - len)) > 0)
		len += (size_t)n;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_string_equal(got, "qcu-device: one\nqcu-device: two\nother\nqcu-device: last\n");
}

int main(void)
{
	static const struct CMUnitTest tests[] = {cmocka_unit_test(told_apart)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
