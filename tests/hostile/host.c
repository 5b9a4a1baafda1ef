// SPDX-License-Identifier: GPL-2.0-or-later
/* The device under attack as the host sees it; host.h describes it. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/hostile/guest.h"
#include "tests/hostile/host.h"

#define TAIL_BYTES (64u << 10)
#define PROCESSES  256
#define MEMFDS	   256

/*
 * Text that no guest may cause in the log. Signal 9 is not in the list: the device ends a mirror
 * with it.
 */
static const char *const bad_words[] = {
	"signal 4 (",  "signal 5 (",  "signal 6 (",	"signal 7 (",	  "signal 8 (",
	"signal 11 (", "signal 31 (", "Sanitizer",	"runtime error:", "libvhost-user.a:",
	"Assertion",   "assertion `", "stack smashing", "double free",	  "free(): invalid",
	"corrupted",   NULL,
};

static void judge(struct host *h, const char *line)
{
	unsigned int i;

	for (i = 0; bad_words[i] && !h->bad[0]; i++)
		if (strstr(line, bad_words[i]))
			snprintf(h->bad, sizeof(h->bad), "%.1000s", line);
}

static void keep(struct host *h, const char *text, size_t n)
{
	size_t have = strlen(h->tail);

	if (have + n >= TAIL_BYTES) {
		size_t drop = have + n - TAIL_BYTES / 2;

		if (drop > have)
			drop = have;
		memmove(h->tail, h->tail + drop, have - drop + 1);
		have -= drop;
	}
	memcpy(h->tail + have, text, n);
	h->tail[have + n] = 0;
}

static void *read_log(void *arg)
{
	struct host *h = arg;
	char part[4096], line[1024];
	size_t at = 0, i;
	ssize_t n;

	while ((n = read(h->log, part, sizeof(part))) > 0 || (n < 0 && errno == EINTR)) {
		if (h->print && n > 0 && write(2, part, (size_t)n) < 0)
			h->print = false;
		pthread_mutex_lock(&h->lock);
		for (i = 0; n > 0 && i < (size_t)n; i++) {
			unsigned char c = (unsigned char)part[i];

			if ((c < ' ' && c != '\n') || c == 0x7f || c == 0) {
				h->controls++;
				c = part[i] = '?';
			}
			if (c != '\n' && at < sizeof(line) - 1) {
				line[at++] = (char)c;
				continue;
			}
			if (c != '\n')
				continue;
			line[at] = 0;
			at = 0;
			h->lines++;
			judge(h, line);
		}
		if (n > 0) {
			h->bytes += (uint64_t)n;
			keep(h, part, (size_t)n);
		}
		pthread_mutex_unlock(&h->lock);
	}
	return NULL;
}

static void __attribute__((noreturn)) run(const struct host_options *o, int sock, int log, pid_t up)
{
	char fd[16], sessions[16], asan[512];
	const char *given = getenv("ASAN_OPTIONS");
	const char *argv[HOST_ARGS + 12] = {o->program, "--fd",	      fd,      "--gpu",
					    "soft",	"--sessions", sessions};
	unsigned int n = 7, i;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != up)
		_exit(1);
	snprintf(fd, sizeof(fd), "%d", sock);
	snprintf(sessions, sizeof(sessions), "%d", GUEST_SESSIONS);
	if (!o->quiet)
		argv[n++] = "--verbose";
	for (i = 0; i < HOST_ARGS && o->arg[i]; i++)
		argv[n++] = o->arg[i];
	argv[n] = NULL;
	fcntl(sock, F_SETFD, 0);
	dup2(log, 1);
	dup2(log, 2);
	setenv("QCU_SOFT_TIMEOUT", "2", 0);
	/*
	 * LeakSanitizer traces the process at its end, which the sandbox refuses. A larger
	 * quarantine would count as memory that the guest has used up.
	 */
	snprintf(asan, sizeof(asan), "%s:detect_leaks=0:quarantine_size_mb=8", given ? given : "");
	setenv("ASAN_OPTIONS", asan, 1);
	execv(o->program, (char **)argv);
	perror(o->program);
	_exit(127);
}

void host_start(struct host *h, const struct host_options *o)
{
	int pair[2], log[2];
	pid_t up = getpid();

	memset(h, 0, sizeof(*h));
	pthread_mutex_init(&h->lock, NULL);
	h->tail = calloc(1, TAIL_BYTES + 1);
	h->print = o->print;
	if (!h->tail || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) ||
	    pipe2(log, O_CLOEXEC))
		die("cannot start: %s", strerror(errno));
	fflush(NULL);
	h->pid = fork();
	if (h->pid < 0)
		die("fork: %s", strerror(errno));
	if (!h->pid)
		run(o, pair[1], log[1], up);
	close(pair[1]);
	close(log[1]);
	h->sock = pair[0];
	h->log = log[0];
	if (pthread_create(&h->reader, NULL, read_log, h))
		die("no thread for the log");
}

bool host_alive(struct host *h)
{
	siginfo_t info = {0};

	return !waitid(P_PID, h->pid, &info, WEXITED | WNOHANG | WNOWAIT) && !info.si_pid;
}

bool host_stop(struct host *h)
{
	struct timespec ms = {.tv_nsec = 10000000};
	unsigned int i;
	int status;
	bool ok = true;

	for (i = 0; host_alive(h) && i < GUEST_WAIT_MS / 10; i++)
		nanosleep(&ms, NULL);
	if (host_alive(h)) {
		printf("the device does not end\n");
		kill(h->pid, SIGKILL);
		ok = false;
	}
	waitpid(h->pid, &status, 0);
	if (WIFSIGNALED(status) || WEXITSTATUS(status)) {
		printf("the device ended with status 0x%x\n", status);
		ok = false;
	}
	pthread_join(h->reader, NULL);
	close(h->log);
	if (h->bad[0]) {
		printf("the device has said: %s\n", h->bad);
		ok = false;
	}
	if (h->controls) {
		printf("the device has said %u control characters\n", h->controls);
		ok = false;
	}
	return ok;
}

void host_show(struct host *h)
{
	pthread_mutex_lock(&h->lock);
	printf("%s", h->tail + (strlen(h->tail) > 6000 ? strlen(h->tail) - 6000 : 0));
	pthread_mutex_unlock(&h->lock);
}

bool host_said(struct host *h, const char *text)
{
	bool yes;

	pthread_mutex_lock(&h->lock);
	yes = strstr(h->tail, text);
	pthread_mutex_unlock(&h->lock);
	return yes;
}

uint64_t host_bytes(struct host *h)
{
	uint64_t n;

	pthread_mutex_lock(&h->lock);
	n = h->bytes;
	pthread_mutex_unlock(&h->lock);
	return n;
}

/* ---- processes ---- */

static unsigned int add_children(pid_t of, pid_t *list, unsigned int n, unsigned int max)
{
	char path[64];
	struct dirent *task;
	DIR *tasks;
	FILE *f;
	int pid;

	snprintf(path, sizeof(path), "/proc/%d/task", of);
	tasks = opendir(path);
	while (tasks && (task = readdir(tasks))) {
		if (task->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "/proc/%d/task/%.16s/children", of, task->d_name);
		f = fopen(path, "r");
		while (f && n < max && fscanf(f, "%d", &pid) == 1) {
			list[n++] = pid;
			n = add_children(pid, list, n, max);
		}
		if (f)
			fclose(f);
	}
	if (tasks)
		closedir(tasks);
	return n;
}

unsigned int host_children(struct host *h, pid_t *list, unsigned int max)
{
	return add_children(h->pid, list, 0, max);
}

pid_t host_mirror(struct host *h, unsigned int session)
{
	pid_t list[PROCESSES];
	unsigned int n = host_children(h, list, PROCESSES), i;
	char path[64], name[32], want[32];
	pid_t found = 0;
	FILE *f;

	snprintf(want, sizeof(want), "qcu-mirror %u\n", session);
	for (i = 0; i < n && !found; i++) {
		snprintf(path, sizeof(path), "/proc/%d/comm", list[i]);
		f = fopen(path, "r");
		if (!f)
			continue;
		if (fgets(name, sizeof(name), f) && !strcmp(name, want))
			found = list[i];
		fclose(f);
	}
	return found;
}

static uint64_t own_memory(pid_t pid)
{
	unsigned long long kb, sum = 0;
	char path[64], line[128];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	f = fopen(path, "r");
	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "RssAnon: %llu", &kb) == 1 ||
		    sscanf(line, "VmPTE: %llu", &kb) == 1)
			sum += kb;
	if (f)
		fclose(f);
	return sum << 10;
}

/* Returns the bytes in the process's memfds, without guest RAM and without memfds in seen[]. */
static uint64_t memfds(pid_t pid, ino_t *seen, unsigned int *seen_count)
{
	char path[96], to[64];
	struct dirent *e;
	uint64_t sum = 0;
	struct stat st;
	unsigned int i;
	ssize_t n;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	dir = opendir(path);
	while (dir && (e = readdir(dir))) {
		snprintf(path, sizeof(path), "/proc/%d/fd/%.16s", pid, e->d_name);
		n = readlink(path, to, sizeof(to) - 1);
		if (n < 0)
			continue;
		to[n] = 0;
		if (strncmp(to, "/memfd:", 7) || !strncmp(to, "/memfd:guest-ram", 16) ||
		    stat(path, &st))
			continue;
		for (i = 0; i < *seen_count && seen[i] != st.st_ino; i++)
			;
		if (i < *seen_count || *seen_count == MEMFDS)
			continue;
		seen[(*seen_count)++] = st.st_ino;
		sum += (uint64_t)st.st_blocks * 512;
	}
	if (dir)
		closedir(dir);
	return sum;
}

uint64_t host_cost(struct host *h)
{
	pid_t list[PROCESSES];
	unsigned int n = host_children(h, list, PROCESSES - 1), i, seen_count = 0;
	ino_t seen[MEMFDS];
	uint64_t sum = 0;

	list[n++] = h->pid;
	for (i = 0; i < n; i++)
		sum += own_memory(list[i]) + memfds(list[i], seen, &seen_count);
	return sum;
}

unsigned int host_fds(pid_t pid)
{
	char path[64];
	unsigned int n = 0;
	struct dirent *e;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	dir = opendir(path);
	while (dir && (e = readdir(dir)))
		n += e->d_name[0] != '.';
	if (dir)
		closedir(dir);
	return n;
}
