/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * For programs that count the commands that their calls send. Such a program runs itself with
 * QCU_TRACE, and the commands between its marks are counted.
 */
#ifndef COMMANDS_H
#define COMMANDS_H

#include <errno.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

/* The calls from here to the next mark must send exactly this many commands. */
static inline void mark(const char *name, unsigned int want)
{
	fprintf(stderr, "mark %u %s\n", want, name);
}

/* The same, and so many of them must be answered before the program goes on. */
static inline void mark_answers(const char *name, unsigned int want, unsigned int answers)
{
	mark(name, want);
	fprintf(stderr, "answers %u\n", answers);
}

/* The commands since the last mark are not counted after all. */
static inline void uncounted(void)
{
	fprintf(stderr, "uncounted\n");
}

/*
 * Waits until so many commands have been sent since the last mark: another thread sends some of
 * them. The trace lies in a file, which is the program's standard error.
 */
static inline void until_sent(unsigned int want)
{
	static char text[1 << 20];
	unsigned int sent = 0;
	int ms;

	for (ms = 0; ms < 30000 && sent != want; ms++) {
		ssize_t n = pread(2, text, sizeof(text) - 1, 0);
		char *at = text, *line;

		usleep(1000);
		text[n > 0 ? n : 0] = 0;
		while ((line = strstr(at, "\nmark ")))
			at = line + 1;
		for (sent = 0; (at = strstr(at, " seq ")); at++)
			sent++;
	}
}

struct section {
	char name[128];
	unsigned int want, got;
	int answers, answered; /* answers is -1 if their number does not matter */
	bool counted;
};

static inline void section_ends(const struct section *s)
{
	if (!s->counted)
		return;
	REQUIRE(s->got == s->want, "%s: %u commands, not %u", s->name, s->got, s->want);
	REQUIRE(s->answers < 0 || s->answered == s->answers, "%s: %d answers, not %d", s->name,
		s->answered, s->answers);
}

/* Runs the program again with an argument, and checks what it sends in `want` sections. */
static inline void count_commands(const char *program, unsigned int want)
{
	char line[512], file[] = "/tmp/qcu-commands-XXXXXX";
	struct section s = {};
	unsigned int marks = 0;
	int fd = mkstemp(file), status;
	FILE *f;
	pid_t pid;

	REQUIRE(fd >= 0, "no file: %s", strerror(errno));
	unlink(file);
	pid = fork();
	if (!pid) {
		dup2(fd, 2);
		setenv("QCU_TRACE", "1", 1);
		execl(program, program, "traced", (char *)NULL);
		_exit(127);
	}
	REQUIRE(waitpid(pid, &status, 0) == pid, "%s", strerror(errno));
	f = fdopen(fd, "r");
	rewind(f);
	while (fgets(line, sizeof(line), f)) {
		if (!strncmp(line, "mark ", 5)) {
			section_ends(&s);
			memset(&s, 0, sizeof(s));
			s.answers = -1;
			s.counted = true;
			REQUIRE(sscanf(line, "mark %u %127[^\n]", &s.want, s.name) == 2, "%s",
				line);
			marks++;
		} else if (!strcmp(line, "uncounted\n")) {
			s.counted = false;
		} else if (strstr(line, " seq ")) {
			s.got++;
			s.answered += !strstr(line, " posted:");
		} else if (sscanf(line, "answers %d", &s.answers) != 1) {
			fputs(line, stderr);
		}
	}
	fclose(f);
	REQUIRE(status == 0, "status %#x", status);
	REQUIRE(marks == want, "%u marks", marks);
}

#endif
