// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * qcu-enter: starts the program of `qcu run --root` in the guest. It makes a folder the root, takes
 * on the caller's user and groups, and executes the program there.
 *
 * The guest's busybox could do most of this, but only through /etc/passwd and the C library of the
 * new root, which may not know the caller, or may be of any kind. So this program is static and
 * uses numbers. It moves the folder over the old root in a mount namespace of its own and does not
 * only call chroot(): after a mere chroot() no program can make a user namespace.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <grp.h>
#include <limits.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

enum {
	NOT_EXECUTABLE = 126, /* as a shell ends */
	NOT_FOUND = 127,
	GROUPS_MAX = 1024,
};

static void __attribute__((noreturn, format(printf, 2, 3))) die(int code, const char *format, ...)
{
	va_list ap;

	fputs("qcu: ", stderr);
	va_start(ap, format);
	vfprintf(stderr, format, ap);
	va_end(ap);
	fputc('\n', stderr);
	exit(code);
}

static unsigned int number(const char *text)
{
	char *end;
	unsigned long n;

	errno = 0;
	n = strtoul(text, &end, 10);
	if (errno || end == text || *end || n > UINT_MAX)
		die(NOT_FOUND, "%s: not a number of a user or group", text);
	return (unsigned int)n;
}

static void change_root(const char *root)
{
	if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    chdir(root) || mount(".", "/", NULL, MS_MOVE, NULL) || chroot(".") || chdir("/"))
		die(NOT_FOUND, "%s cannot become the root: %s", root, strerror(errno));
}

/* The groups last, separated by commas; there may be none. */
static void become(unsigned int uid, unsigned int gid, char *list)
{
	gid_t groups[GROUPS_MAX];
	size_t count = 0;
	char *word;

	for (word = strtok(list, ","); word && count < GROUPS_MAX; word = strtok(NULL, ","))
		groups[count++] = number(word);
	if (setgroups(count, groups) || setresgid(gid, gid, gid) || setresuid(uid, uid, uid))
		die(NOT_FOUND, "cannot become user %u: %s", uid, strerror(errno));
}

int main(int argc, char **argv)
{
	const char *program;

	if (argc < 7)
		die(NOT_FOUND, "usage: qcu-enter ROOT UID GID GROUPS FOLDER PROGRAM [ARG]...");
	change_root(argv[1]);
	become(number(argv[2]), number(argv[3]), argv[4]);
	if (chdir(argv[5]))
		die(NOT_FOUND, "%s: %s", argv[5], strerror(errno));
	program = argv[6];
	execvp(program, argv + 6);
	if (errno != ENOENT)
		die(NOT_EXECUTABLE, "%s: not an executable file (%s)", program, strerror(errno));
	die(NOT_FOUND, strchr(program, '/') ? "%s: no such file" : "%s: command not found",
	    program);
}
