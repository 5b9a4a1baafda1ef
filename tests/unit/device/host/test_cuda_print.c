// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The cuda backend's capture of stdout and stderr, without CUDA. What a driver writes comes out of
 * print_read and assert_read. What the device itself writes comes out on the real stderr.
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

#include "qcu-device/backend/backend.h"
#include "qcu-device/base/complain.h"

int cu_print_open(void (*other)(const char *who, const char *text, size_t len), uint64_t bytes);
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
		/* Reads pieces of an odd size. */
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
	if (!complain_keep_stderr() || cu_print_open(complain_text, 1 << 20) ||
	    cu_print_open(complain_text, 1 << 20))
		_exit(12);
	complain_context(3, 42);
	printf("printed %d\n", 1);
	complain("one");
	fprintf(stderr, "two\n" LINE(1) "qcu-device: %s", "three\n");
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
	complain("last");
	_exit(0);
}

/* Runs a mirror and returns all that is in its log. */
static const char *log_of(void (*mirror)(void))
{
	static char got[1 << 16];
	size_t len = 0;
	ssize_t n;
	int fds[2], status;
	pid_t pid;

	assert_int_equal(pipe(fds), 0);
	pid = fork();
	if (!pid) {
		dup2(fds[1], 2);
		mirror();
	}
	close(fds[1]);
	while ((n = read(fds[0], got + len, sizeof(got) - 1 - len)) > 0)
		len += (size_t)n;
	got[len] = 0;
	close(fds[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	return got;
}

#define MIRROR "qcu-device: session 3 (pid 42): "
#define CUDA   MIRROR "stderr of CUDA: "

static void told_apart(void **state)
{
	(void)state;
	assert_string_equal(log_of(as_a_mirror),
			    MIRROR "one\n" CUDA "two\n" CUDA "qcu-device: three\n" CUDA
				   "other\n" MIRROR "last\n");
}

/* A kernel chooses the text of its assertion, and may put several lines into it. */
static void as_a_hostile_kernel(void)
{
	static const char line[] = "k.cu:1: k: block: [0,0,0], thread: [0,0,0] Assertion `x\n"
				   "qcu-device: session 1: all is well\033[2J\n` failed.\n";
	size_t got;

	if (!complain_keep_stderr() || cu_print_open(complain_text, 1 << 20))
		_exit(12);
	complain_context(3, 42);
	for (int i = 0; i < 5000; i++) {
		if (write(2, line, sizeof(line) - 1) < 0 || fputs(line, stderr) < 0)
			_exit(13);
		if (i % 100 == 0 && cu_assert_read(NULL, NULL, 0, &got))
			_exit(14);
	}
	_exit(0);
}

static void clean_and_few(void **state)
{
	const char *text = log_of(as_a_hostile_kernel), *line;
	unsigned int lines = 0;

	(void)state;
	for (line = text; *line; line += strcspn(line, "\n") + 1) {
		lines++;
		assert_true(!strncmp(line, CUDA, strlen(CUDA)) || strstr(line, "left out"));
	}
	assert_null(strchr(text, '\033'));
	assert_non_null(strstr(text, "all is well\\x1b[2J\n"));
	/* A slow machine logs one more line each second. */
	assert_in_range(lines, COMPLAIN_BURST, COMPLAIN_BURST + 60);
}

#define FLOOD (16u << 20)
#define MOST  (1u << 20)

static void write_much(int fd, const char *piece, size_t len)
{
	size_t n;

	for (n = 0; n < FLOOD; n += len)
		if (write(fd, piece, len) != (ssize_t)len)
			_exit(13);
}

static size_t fetch(int (*read)(struct be *, void *, size_t, size_t *), char *to, size_t max)
{
	size_t len = 0, got;

	do {
		if (read(NULL, to + len, max - len < 4096 ? max - len : 4096, &got))
			_exit(14);
		len += got;
	} while (got);
	return len;
}

/*
 * A kernel prints without end and no program fetches the text. The mirror keeps a limited amount,
 * and goes on.
 */
static void as_a_flood(void)
{
	static char piece[4096], much[2 * MOST];
	size_t len;

	if (!complain_keep_stderr() || cu_print_open(complain_text, MOST))
		_exit(12);
	complain_context(3, 42);
	memset(piece, 'x', sizeof(piece));
	piece[sizeof(piece) - 1] = '\n';
	write_much(1, piece, sizeof(piece));
	if (fetch(cu_print_read, much, sizeof(much)) != MOST)
		_exit(15);
	len = fetch(cu_assert_read, much, sizeof(much) - 1);
	much[len] = 0;
	if (strncmp(much, "qCUDA: ", 7) || strchr(much, '\n') != much + len - 1)
		_exit(16);
	/* There is room again, and the earlier loss has been reported. */
	if (write(1, "more\n", 5) != 5 || fetch(cu_print_read, much, sizeof(much)) != 5)
		_exit(17);
	write_much(1, piece, sizeof(piece));
	write_much(2, LINE(1), sizeof(LINE(1)) - 1);
	if (fetch(cu_print_read, much, sizeof(much)) != MOST)
		_exit(18);
	len = fetch(cu_assert_read, much, sizeof(much) - 1);
	much[len] = 0;
	if (len > MOST || strstr(much, "qCUDA: ") || strncmp(much, LINE(1), sizeof(LINE(1)) - 1))
		_exit(19);
	_exit(0);
}

static void flood(void **state)
{
	(void)state;
	assert_string_equal(log_of(as_a_flood), "");
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(told_apart),
		cmocka_unit_test(clean_and_few),
		cmocka_unit_test(flood),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
