// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Messages about a guest: each message is one clean line of limited length, and the number of
 * messages is limited. Each test runs in a process of its own, whose stderr is a file.
 */
#define _GNU_SOURCE /* memfd_create */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "qcu-device/base/complain.h"

#define BOAST 4096

static char log_text[1 << 20];

/* Runs a function in a process and returns its messages. */
static const char *said(void (*speak)(void))
{
	FILE *f = tmpfile();
	int status;
	size_t n;
	pid_t pid;

	assert_non_null(f);
	pid = fork();
	if (!pid) {
		dup2(fileno(f), STDERR_FILENO);
		speak();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	rewind(f);
	n = fread(log_text, 1, sizeof(log_text) - 1, f);
	log_text[n] = '\0';
	fclose(f);
	/* Whatever the input was: there are only printable lines of limited length. */
	for (const char *line = log_text; *line;) {
		size_t len = strcspn(line, "\n");

		assert_int_equal(line[len], '\n');
		assert_in_range(len + 1, 1, COMPLAIN_LINE_MAX);
		assert_int_equal(strncmp(line, "qcu-device: ", 12), 0);
		for (size_t i = 0; i < len; i++)
			assert_in_range(line[i], ' ', '~');
		line += len + 1;
	}
	assert_int_equal(strlen(log_text), n);
	return log_text;
}

static unsigned int lines(const char *text)
{
	unsigned int n = 0;

	for (; *text; text++)
		n += *text == '\n';
	return n;
}

static void speak_escapes(void)
{
	complain("kernel %s", "\033]0;title\007\033[2Jk");
	complain("kernel %s", "a\nqcu-device: all is well\r\n");
	complain("%s", "tab\tback\b\x7f");
	complain("%c%c", 0, 1);
}

static void escapes(void **state)
{
	(void)state;
	assert_string_equal(said(speak_escapes),
			    "qcu-device: kernel \\x1b]0;title\\x07\\x1b[2Jk\n"
			    "qcu-device: kernel a\\x0aqcu-device: all is well\\x0d\\x0a\n"
			    "qcu-device: tab\\x09back\\x08\\x7f\n"
			    "qcu-device: \n");
}

/* Also bytes that form one character in UTF-8: some terminals take them for commands. */
static void speak_bytes(void)
{
	complain("%s", "\xff\xfe \xc3\x28 \xed\xa0\x80 \xf8");
	complain("%s", "\xc3\xa4 \xc2\x9b\x32J \xe2\x80\xae");
	complain_text("somebody", "one\0two\n\n\x80three\nfour", 20);
}

static void no_ascii(void **state)
{
	(void)state;
	assert_string_equal(said(speak_bytes),
			    "qcu-device: \\xff\\xfe \\xc3( \\xed\\xa0\\x80 \\xf8\n"
			    "qcu-device: \\xc3\\xa4 \\xc2\\x9b2J \\xe2\\x80\\xae\n"
			    "qcu-device: somebody: one\\x00two\n"
			    "qcu-device: somebody: \\x80three\n"
			    "qcu-device: somebody: four\n");
}

static void speak_long_lines(void)
{
	static char text[BOAST + 1];

	memset(text, 'x', BOAST);
	complain("%s", text);
	complain_text("somebody", text, BOAST);
	/* A character whose escape takes four bytes is not cut in the middle. */
	memset(text, '\n', BOAST);
	complain("%s", text);
	memset(text, 'x', BOAST);
	text[COMPLAIN_LINE_MAX - 20] = '\0';
	complain("%s", text);
}

static void long_lines(void **state)
{
	const char *text = said(speak_long_lines), *line = text;
	unsigned int i;

	(void)state;
	assert_int_equal(lines(text), 4);
	for (i = 0; i < 3; i++) {
		size_t len = strcspn(line, "\n");

		assert_in_range(len + 1, COMPLAIN_LINE_MAX - 4, COMPLAIN_LINE_MAX);
		assert_int_equal(strncmp(line + len - 3, "...", 3), 0);
		if (i == 2)
			assert_int_equal(strncmp(line + len - 7, "\\x0a", 4), 0);
		line += len + 1;
	}
	/* This message is not too long. */
	assert_null(strstr(line, "..."));
}

static void speak_in_context(void)
{
	complain("nobody yet");
	complain_context(7, 0);
	complain("no pid");
	complain_context(7, 4242);
	complain("nothing in particular");
	complain_command("MODULE_LOAD");
	complain("the image is %s", "bad");
	complain_text("the driver", "one\ntwo\n", 8);
	complain_command(NULL);
	complain("again nothing");
}

static void context(void **state)
{
	(void)state;
	assert_string_equal(said(speak_in_context),
			    "qcu-device: nobody yet\n"
			    "qcu-device: session 7: no pid\n"
			    "qcu-device: session 7 (pid 4242): nothing in particular\n"
			    "qcu-device: session 7 (pid 4242), MODULE_LOAD: the image is bad\n"
			    "qcu-device: session 7 (pid 4242), MODULE_LOAD: the driver: one\n"
			    "qcu-device: session 7 (pid 4242), MODULE_LOAD: the driver: two\n"
			    "qcu-device: session 7 (pid 4242): again nothing\n");
}

static void speak_a_lot(void)
{
	static char text[3000];
	unsigned int i;

	memset(text, '\n', sizeof(text));
	for (i = 1; i < sizeof(text); i += 3)
		text[i] = 'x';
	for (i = 0; i < 2000; i++)
		complain("message %u", i);
	complain_text("somebody", text, sizeof(text));
}

/* A limited number of messages at once. A slow machine gets one more each second. */
static void flood(void **state)
{
	const char *text = said(speak_a_lot);

	(void)state;
	assert_in_range(lines(text), COMPLAIN_BURST, COMPLAIN_BURST + 60);
	assert_non_null(strstr(text, "message 31\n"));
	assert_null(strstr(text, "message 1999\n"));
}

/* Waits until another message is let through, however long that takes. */
static void speak_again(void)
{
	struct stat before, after;
	unsigned int count = 0;

	while (count < COMPLAIN_BURST + 500)
		complain("message %u", count++);
	if (fstat(STDERR_FILENO, &before))
		_exit(1);
	do {
		usleep(20000);
		complain("message %u", count++);
		if (fstat(STDERR_FILENO, &after))
			_exit(1);
	} while (before.st_size == after.st_size);
}

/* The messages and the numbers of left-out messages add up to all messages. */
static void left_out(void **state)
{
	const char *text = said(speak_again), *line;
	unsigned int said_so = 0, counted = 0, last = 0, n;

	(void)state;
	for (line = text; *line; line += strcspn(line, "\n") + 1) {
		if (sscanf(line, "qcu-device: %u messages about the guest are left out", &n) == 1)
			counted += n;
		else if (sscanf(line, "qcu-device: message %u", &last) == 1)
			said_so++;
	}
	assert_in_range(counted, 1, last);
	assert_in_range(last, COMPLAIN_BURST + 500, UINT32_MAX);
	assert_int_equal(said_so + counted, last + 1);
}

static void speak_always(void)
{
	complain_always();
	for (unsigned int i = 0; i < 300; i++)
		complain("message %u\033", i);
}

static void always(void **state)
{
	const char *text = said(speak_always);

	(void)state;
	assert_int_equal(lines(text), 300);
	assert_non_null(strstr(text, "message 299\\x1b\n"));
}

static void speak_traces(void)
{
	for (unsigned int i = 0; i < 300; i++)
		complain_trace("command %u\n", i);
	complain("a message");
}

static void traces(void **state)
{
	const char *text = said(speak_traces);

	(void)state;
	assert_int_equal(lines(text), 301);
	assert_non_null(strstr(text, "command 299\\x0a\n"));
	assert_non_null(strstr(text, "a message\n"));
}

static void speak_elsewhere(void)
{
	complain("before");
	if (!complain_keep_stderr())
		_exit(1);
	close(STDERR_FILENO);
	complain("after");
}

static void keeps_stderr(void **state)
{
	(void)state;
	assert_string_equal(said(speak_elsewhere), "qcu-device: before\nqcu-device: after\n");
}

static void speak_together(void)
{
	if (!complain_share(memfd_create("account", 0)))
		_exit(1);
	for (unsigned int i = 0; i < 8; i++) {
		pid_t pid = fork();

		if (!pid) {
			complain_context(1 + i, 100 + i);
			for (unsigned int k = 0; k < 100; k++)
				complain("message %u", k);
			_exit(0);
		}
		waitpid(pid, NULL, 0);
	}
}

static void one_limit_for_all(void **state)
{
	(void)state;
	assert_in_range(lines(said(speak_together)), COMPLAIN_BURST, COMPLAIN_BURST + 60);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(escapes),	cmocka_unit_test(no_ascii),
		cmocka_unit_test(long_lines),	cmocka_unit_test(context),
		cmocka_unit_test(flood),	cmocka_unit_test(left_out),
		cmocka_unit_test(always),	cmocka_unit_test(traces),
		cmocka_unit_test(keeps_stderr), cmocka_unit_test(one_limit_for_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
