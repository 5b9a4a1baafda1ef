// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Implements groups.h. The kernel wants processes only in groups that have no others below them, so
 * the main process moves into a group beside those of its mirrors. It opens the files of all groups
 * before it goes to jail, where it can open none. Groups are named after its pid: who comes later
 * removes those of main processes that have ended.
 */
#define _GNU_SOURCE /* O_PATH */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "qcu-device/base/complain.h"
#include "qcu-device/base/write_file.h"
#include "qcu-device/jail/groups.h"

#define CGROUP2 0x63677270 /* the file system's number */

static struct {
	bool taken;
	int enter, memory; /* files */
} group[GROUPS_MAX];

static unsigned int groups; /* how many there are */

/* ---- files ---- */

/* systemd runs the reload of a service in a group below the service's, which must stay usable. */
static void leave_control_group(char *path)
{
	static const char name[] = "/.control";
	size_t len = strlen(path);

	if (len >= sizeof(name) && !strcmp(path + len + 1 - sizeof(name), name))
		path[len + 1 - sizeof(name)] = '\0';
}

/* Opens the folder of this process's group. */
static int open_own_group(void)
{
	static const char *const roots[] = {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"};
	char line[PATH_MAX + 8] = "", path[2 * PATH_MAX];
	FILE *f = fopen("/proc/self/cgroup", "re");
	struct statfs fs;
	size_t i;

	/* Version 2 has the line 0::/its/path. */
	while (f && fgets(line, sizeof(line), f) && strncmp(line, "0::/", 4))
		line[0] = 0;
	if (f)
		fclose(f);
	line[strcspn(line, "\n")] = 0;
	leave_control_group(line);
	for (i = 0; line[0] && i < sizeof(roots) / sizeof(roots[0]); i++) {
		if (statfs(roots[i], &fs) || fs.f_type != CGROUP2)
			continue;
		snprintf(path, sizeof(path), "%s%s", roots[i], line + 3);
		return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	}
	errno = ENOENT;
	return -1;
}

/* ---- at the start ---- */

/* Removes the groups of main processes that have ended. */
static void remove_old_groups(int own)
{
	int copy = openat(own, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = copy < 0 ? NULL : fdopendir(copy);
	struct dirent *e;
	int pid, at;

	while (dir && (e = readdir(dir))) {
		at = 0;
		if (sscanf(e->d_name, "qcu-%d-%n", &pid, &at) == 1 && at && kill(pid, 0) &&
		    errno == ESRCH)
			unlinkat(own, e->d_name, AT_REMOVEDIR);
	}
	if (dir)
		closedir(dir);
	else if (copy >= 0)
		close(copy);
}

/* Moves this process into a group below its own, and turns the bounds on for those beside it. */
static bool step_aside(int own)
{
	char name[32];
	int aside, err;
	bool ok;

	snprintf(name, sizeof(name), "qcu-%d-main", getpid());
	if (mkdirat(own, name, 0755))
		return false;
	aside = openat(own, name, O_PATH | O_DIRECTORY | O_CLOEXEC);
	ok = aside >= 0 && write_file(aside, "cgroup.procs", "0") &&
	     write_file(own, "cgroup.subtree_control", "+memory +pids");
	if (!ok) {
		err = errno;
		write_file(own, "cgroup.procs", "0");
		unlinkat(own, name, AT_REMOVEDIR);
		errno = err;
	}
	if (aside >= 0)
		close(aside);
	return ok;
}

static bool make_group(int own, unsigned int n, const char *tasks)
{
	char name[32];
	int dir, err;
	bool ok;

	snprintf(name, sizeof(name), "qcu-%d-%u", getpid(), n);
	if (mkdirat(own, name, 0755))
		return false;
	dir = openat(own, name, O_PATH | O_DIRECTORY | O_CLOEXEC);
	group[n].enter = openat(dir, "cgroup.procs", O_WRONLY | O_CLOEXEC);
	group[n].memory = openat(dir, "memory.max", O_WRONLY | O_CLOEXEC);
	ok = group[n].enter >= 0 && group[n].memory >= 0 && write_file(dir, "pids.max", tasks);
	err = errno;
	/* What cannot be in memory is not to fill the swap space. Without one the file is missing.
	 */
	if (ok)
		write_file(dir, "memory.swap.max", "0");
	else
		unlinkat(own, name, AT_REMOVEDIR);
	if (dir >= 0)
		close(dir);
	errno = err;
	return ok;
}

static void bound_text(char *text, size_t size, uint64_t bound)
{
	if (bound == UINT64_MAX)
		snprintf(text, size, "max");
	else
		snprintf(text, size, "%" PRIu64, bound);
}

bool groups_begin(unsigned int mirrors, uint64_t tasks)
{
	int own = open_own_group();
	char text[24];
	int err;
	bool ok;

	bound_text(text, sizeof(text), tasks);
	ok = own >= 0;
	if (ok) {
		remove_old_groups(own);
		ok = step_aside(own);
	}
	while (ok && groups < mirrors && groups < GROUPS_MAX) {
		ok = make_group(own, groups, text);
		groups += ok;
	}
	err = errno;
	if (own >= 0)
		close(own);
	errno = err;
	return ok;
}

/* ---- a mirror's life ---- */

int groups_take(uint64_t memory)
{
	char text[24];
	unsigned int i;

	for (i = 0; i < groups && group[i].taken; i++)
		;
	if (i == groups) {
		if (groups)
			complain("there are fewer control groups than mirrors");
		return -1;
	}
	bound_text(text, sizeof(text), memory);
	if (pwrite(group[i].memory, text, strlen(text), 0) < 0) {
		complain("a mirror has no bound for memory: %s", strerror(errno));
		return -1;
	}
	group[i].taken = true;
	return (int)i;
}

int groups_file(int n)
{
	return n < 0 ? -1 : group[n].enter;
}

void groups_give_back(int n)
{
	if (n >= 0)
		group[n].taken = false;
}

void groups_enter(int file)
{
	/* A mirror that has no group has no such file. */
	if (write(file, "0", 1) != 1 && errno != EBADF)
		complain("a mirror cannot enter its control group: %s", strerror(errno));
	close(file);
}
