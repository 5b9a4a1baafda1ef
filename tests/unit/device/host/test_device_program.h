/* SPDX-License-Identifier: GPL-2.0-or-later */
/* For tests of the program qcu-device: where it is, its start and its end. */
#ifndef TEST_DEVICE_PROGRAM_H
#define TEST_DEVICE_PROGRAM_H

#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

/*
 * Writes `file`, a path in the build folder, to `path`. The test's program is three levels below
 * that folder.
 */
static inline int program_path(char path[PATH_MAX], const char *file)
{
	char *cut = NULL;
	ssize_t n = readlink("/proc/self/exe", path, PATH_MAX - 1);
	int i;

	if (n < 0)
		return -1;
	path[n] = 0;
	for (i = 0; i < 3; i++) {
		cut = strrchr(path, '/');
		if (!cut)
			return -1;
		*cut = 0;
	}
	n = cut - path;
	return snprintf(cut, (size_t)(PATH_MAX - n), "/%s", file) < PATH_MAX - n ? 0 : -1;
}

/* Starts a program with its stderr in a pipe. */
static inline pid_t program_start(char *const args[], int *err)
{
	int fds[2];
	pid_t pid;

	assert_int_equal(pipe(fds), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		dup2(open("/dev/null", O_RDWR), 0);
		dup2(fds[1], 2);
		close(fds[0]);
		close(fds[1]);
		execv(args[0], args);
		_exit(99);
	}
	close(fds[1]);
	*err = fds[0];
	return pid;
}

/* Returns the exit code; the program's stderr is in text. */
static inline int program_finish(pid_t pid, int err, char *text, size_t size)
{
	size_t len = 0;
	ssize_t n;
	int status;

	while (len + 1 < size && (n = read(err, text + len, size - 1 - len)) > 0)
		len += (size_t)n;
	text[len] = 0;
	close(err);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

#endif
