// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * qcu-pty: gives the shell of `qcu shell` a terminal in the guest. The guest's standard input and
 * output are pipes. This program makes a terminal of the host's size, starts the command on it, and
 * carries what is typed and printed.
 *
 * usage: qcu-pty ROWS COLUMNS COMMAND [ARG...]
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	NOT_EXECUTABLE = 126, /* as a shell ends */
	NOT_FOUND = 127,
	END_OF_FILE = 4, /* Ctrl-D */
};

static void __attribute__((noreturn)) die(const char *what)
{
	fprintf(stderr, "qcu: %s: %s\n", what, strerror(errno));
	exit(NOT_FOUND);
}

/* Writes all of it. False if nobody reads any more. */
static bool put(int fd, const char *data, ssize_t size)
{
	while (size > 0) {
		ssize_t n = write(fd, data, (size_t)size);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return false;
		data += n;
		size -= n;
	}
	return true;
}

/* Carries one read's worth. False at the end of the input. */
static bool carry(int from, int to)
{
	char data[4096];
	ssize_t n;

	do
		n = read(from, data, sizeof(data));
	while (n < 0 && errno == EINTR);
	return n > 0 && put(to, data, n);
}

/* Until the last process has closed the terminal. */
static void serve(int terminal)
{
	struct pollfd p[2] = {
		{.fd = terminal, .events = POLLIN},
		{.fd = STDIN_FILENO, .events = POLLIN},
	};
	const char end = END_OF_FILE;

	for (;;) {
		if (poll(p, 2, -1) < 0 && errno != EINTR)
			die("poll");
		if (p[0].revents && !carry(terminal, STDOUT_FILENO))
			return;
		if (p[1].revents && !carry(STDIN_FILENO, terminal)) {
			p[1].fd = -1;
			put(terminal, &end, 1);
		}
	}
}

static void __attribute__((noreturn)) start(const char *name, char **command)
{
	int fd;

	setsid();
	fd = open(name, O_RDWR);
	if (fd < 0 || ioctl(fd, TIOCSCTTY, 0))
		die(name);
	for (int i = 0; i < 3; i++)
		dup2(fd, i);
	if (fd > 2)
		close(fd);
	execvp(command[0], command);
	fprintf(stderr, "qcu: %s: %s\n", command[0], strerror(errno));
	_exit(errno == ENOENT ? NOT_FOUND : NOT_EXECUTABLE);
}

int main(int argc, char **argv)
{
	struct winsize size = {0};
	int terminal, status;
	const char *name;
	pid_t pid;

	if (argc < 4) {
		fputs("usage: qcu-pty ROWS COLUMNS COMMAND [ARG...]\n", stderr);
		return NOT_FOUND;
	}
	size.ws_row = (unsigned short)atoi(argv[1]);
	size.ws_col = (unsigned short)atoi(argv[2]);
	terminal = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (terminal < 0 || grantpt(terminal) || unlockpt(terminal))
		die("/dev/ptmx");
	name = ptsname(terminal);
	if (!name || ioctl(terminal, TIOCSWINSZ, &size))
		die("/dev/pts");
	signal(SIGPIPE, SIG_IGN);
	pid = fork();
	if (pid < 0)
		die("fork");
	if (!pid)
		start(name, argv + 3);
	serve(terminal);
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			die("waitpid");
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}
