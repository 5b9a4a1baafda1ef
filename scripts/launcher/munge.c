// SPDX-License-Identifier: GPL-2.0-or-later
/* Credentials (munge.h). What comes from others goes to unmunge on its standard input, and nowhere
 * else. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "scripts/launcher/munge.h"

extern char **environ;

/* Runs a program. All it prints goes to out, which gets an end. False if it fails, or prints more.
 */
static bool run(char *const args[], const char *in, char *out, size_t size)
{
	posix_spawn_file_actions_t files;
	int to[2], from[2], status;
	size_t got = 0;
	ssize_t n = 1;
	bool given;
	pid_t pid;

	if (pipe2(to, O_CLOEXEC))
		return false;
	if (pipe2(from, O_CLOEXEC)) {
		close(to[0]);
		close(to[1]);
		return false;
	}
	posix_spawn_file_actions_init(&files);
	posix_spawn_file_actions_adddup2(&files, to[0], 0);
	posix_spawn_file_actions_adddup2(&files, from[1], 1);
	if (posix_spawnp(&pid, args[0], &files, NULL, args, environ))
		pid = -1;
	posix_spawn_file_actions_destroy(&files);
	close(to[0]);
	close(from[1]);
	/* It fits into the pipe, so this does not wait. */
	signal(SIGPIPE, SIG_IGN);
	given = write(to[1], in, strlen(in)) == (ssize_t)strlen(in);
	close(to[1]);
	while (n > 0 && got + 1 < size) {
		n = read(from[0], out + got, size - 1 - got);
		got += n > 0 ? (size_t)n : 0;
	}
	close(from[0]);
	out[got] = 0;
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return false;
	return given && n == 0 && !status && strlen(out) == got;
}

bool munge_close(const char *text, char *credential, size_t size)
{
	char uid[24], *const args[] = {"munge", "--restrict-uid", uid, NULL};
	size_t len;

	snprintf(uid, sizeof(uid), "%u", (unsigned int)geteuid());
	if (!run(args, text, credential, size))
		return false;
	len = strcspn(credential, "\n");
	credential[len] = 0;
	return len > 0;
}

/* unmunge prints the writer as "UID:  NUMBER", an empty line, and then the text. */
bool munge_open(const char *credential, char text[MUNGE_TEXT])
{
	char said[MUNGE_TEXT + 256], *const args[] = {"unmunge", "--numeric", "--keys=UID", NULL};
	unsigned int uid;
	int end = 0;

	if (strncmp(credential, "MUNGE:", 6) || !run(args, credential, said, sizeof(said)) ||
	    sscanf(said, "UID: %10u%n", &uid, &end) != 1 || uid != geteuid() ||
	    strncmp(said + end, "\n\n", 2) || strlen(said + end + 2) >= MUNGE_TEXT)
		return false;
	strcpy(text, said + end + 2);
	return true;
}
