// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The files that a mirror may open. The list has what CUDA opened under strace while the backend's
 * own test ran (docs/sandbox.md). There is no library for Landlock; the kernel's interface is three
 * system calls. Constants that are newer than the headers of Linux 6.1 are defined here by number.
 */
#define _GNU_SOURCE /* O_PATH */
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <linux/landlock.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "qcu-device/jail/gpus.h"
#include "qcu-device/jail/jail_impl.h"

#define EXECUTE	  LANDLOCK_ACCESS_FS_EXECUTE
#define READ_FILE LANDLOCK_ACCESS_FS_READ_FILE
#define READ	  (READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR)
#define WRITE	  (READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE)
#define SHARE \
	(READ | WRITE | TRUNCATE | LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_REMOVE_FILE)
#define REFER	  (1ull << 13) /* from version 2 */
#define TRUNCATE  (1ull << 14) /* from version 3 */
#define IOCTL_DEV (1ull << 15) /* from version 5 */
#define VERSION_1 ((1ull << 13) - 1)

#define TCP_BIND       1ull /* from version 4 */
#define TCP_CONNECT    2ull
#define SCOPE_ABSTRACT 1ull /* from version 6: keeps sockets without a file, */
#define SCOPE_SIGNAL   2ull /* and signals, within the process */
#define ALL_OF_A_FILE  (EXECUTE | WRITE | TRUNCATE | IOCTL_DEV)

struct ruleset {
	uint64_t fs, net, scoped;
};

struct path_rule {
	const char *path;
	uint64_t access;
};

static const struct path_rule of_mirrors[] = {
	/* Libraries. Programs there cannot be executed. */
	{"/usr", READ},
	{"/lib", READ},
	{"/lib64", READ},
	{"/etc/ld.so.cache", READ},
	/* The processors, the GPUs, and where they are attached. */
	{"/sys/devices", READ},
	{"/sys/bus/pci/devices", READ},
	/* The process's own files: its maps, the names of its threads. It sees no others there. */
	{"/proc", READ | WRITE | TRUNCATE},
	{"/dev/null", WRITE},
	{"/dev/zero", WRITE},
	{"/dev/urandom", READ},
	/* The files of the VM's GPUs come in addition. */
	{"/dev/nvidiactl", READ | WRITE | IOCTL_DEV},
	{"/dev/nvidia-uvm", READ | WRITE | IOCTL_DEV},
	{NULL, 0},
};

static const struct path_rule of_main[] = {
	{"/sys/devices/system/cpu", READ},
	{"/dev/null", WRITE},
	{"/dev/urandom", READ},
	{NULL, 0},
};

static bool add_fd(int rules, int fd, uint64_t access, uint64_t handled)
{
	struct landlock_path_beneath_attr rule = {.allowed_access = access & handled,
						  .parent_fd = fd};
	struct stat st;

	if (fstat(fd, &st))
		return false;
	if (!S_ISDIR(st.st_mode))
		rule.allowed_access &= ALL_OF_A_FILE;
	return !syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &rule, 0);
}

/* A path that does not exist is not an error. */
static bool add_path(int rules, const char *path, uint64_t access, uint64_t handled)
{
	int fd = open(path, O_PATH | O_CLOEXEC);
	bool ok;

	if (fd < 0)
		return true;
	ok = add_fd(rules, fd, access, handled);
	close(fd);
	return ok;
}

static bool add_pattern(int rules, const char *pattern, uint64_t access, uint64_t handled)
{
	glob_t found;
	bool ok = true;
	size_t i;
	int rc = glob(pattern, 0, NULL, &found);

	if (rc)
		return rc == GLOB_NOMATCH;
	for (i = 0; i < found.gl_pathc && ok; i++)
		ok = add_path(rules, found.gl_pathv[i], access, handled);
	globfree(&found);
	return ok;
}

/* Adds the folders and libraries that the operator named for the loader. */
static bool add_list(int rules, const char *variable, uint64_t handled)
{
	const char *at = getenv(variable);
	bool ok = true;

	while (at && *at && ok) {
		size_t len;
		char *path;

		at += strspn(at, ": ");
		len = strcspn(at, ": ");
		path = strndup(at, len);
		if (!path)
			return false;
		ok = !len || add_path(rules, path, READ, handled);
		free(path);
		at += len;
	}
	return ok;
}

/* ---- the VM's GPUs ---- */

/*
 * A process that uses a part of a GPU opens the files of that part. If it cannot be told which part
 * is the VM's, it gets the files of all parts of this GPU, but never those that divide it.
 */
#define PART_FILES 256u

static bool add_parts(int rules, const struct jail_gpus *g, unsigned int gpu, uint64_t handled)
{
	unsigned int minor[PART_FILES], i;
	unsigned int n = gpus_part_files(g, GPU_MIG_MINORS, gpu, minor, PART_FILES);
	char path[64];
	bool ok = true;

	for (i = 0; ok && i < n; i++) {
		snprintf(path, sizeof(path), "/dev/nvidia-caps/nvidia-cap%u", minor[i]);
		ok = add_path(rules, path, READ, handled);
	}
	return ok;
}

static bool add_gpus(int rules, const struct jail_gpus *g, uint64_t handled)
{
	char path[64];
	unsigned int i;
	bool ok = true;

	if (!g->known)
		return add_pattern(rules, "/dev/nvidia[0-9]*", READ | WRITE | IOCTL_DEV, handled);
	for (i = 0; i < g->count && ok; i++) {
		snprintf(path, sizeof(path), "/dev/nvidia%u", g->minor[i]);
		ok = add_path(rules, path, READ | WRITE | IOCTL_DEV, handled) &&
		     (!g->split[i] || add_parts(rules, g, g->minor[i], handled));
	}
	return ok;
}

bool jail_files_other_gpus(const struct jail *j)
{
	glob_t found;
	bool several;

	if (!j->gpu || j->gpus.known || glob("/dev/nvidia[0-9]*", 0, NULL, &found))
		return false;
	several = found.gl_pathc > 1;
	globfree(&found);
	return several;
}

/* ---- all of it ---- */

static bool add_all(int rules, uint64_t handled, const struct jail *j, enum jail_who who,
		    int plugin)
{
	const struct path_rule *p = who == JAIL_MIRROR ? of_mirrors : of_main;

	for (; p->path; p++)
		if (!add_path(rules, p->path, p->access, handled))
			return false;
	if (j->own_shm && !add_path(rules, "/dev/shm", SHARE, handled))
		return false;
	return who == JAIL_MAIN || (add_list(rules, "LD_LIBRARY_PATH", handled) &&
				    add_list(rules, "LD_PRELOAD", handled) &&
				    (!j->gpu || add_gpus(rules, &j->gpus, handled)) &&
				    (plugin < 0 || add_fd(rules, plugin, READ, handled)));
}

int jail_files_version(void)
{
	long version =
		syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);

	return version < 0 ? 0 : (int)version;
}

/*
 * Each process that calls this gets a Landlock domain of its own. Processes in different domains
 * cannot trace each other.
 */
bool jail_files(const struct jail *j, enum jail_who who, int plugin)
{
	struct ruleset attr = {.fs = VERSION_1};
	int version = jail_files_version(), rules;
	bool ok;

	if (version < 1)
		return false;
	attr.fs |= version >= 2 ? REFER : 0;
	attr.fs |= version >= 3 ? TRUNCATE : 0;
	attr.fs |= version >= 5 ? IOCTL_DEV : 0;
	attr.net = version >= 4 ? TCP_CONNECT : 0;
	attr.net |= version >= 4 && !(who == JAIL_MIRROR && j->ports) ? TCP_BIND : 0;
	attr.scoped = version >= 6 ? SCOPE_ABSTRACT : 0;
	/* The main process ends mirrors by a signal. */
	attr.scoped |= version >= 6 && who == JAIL_MIRROR ? SCOPE_SIGNAL : 0;
	/* A kernel accepts a structure that is longer than it knows if the rest is zero. */
	rules = (int)syscall(SYS_landlock_create_ruleset, &attr, sizeof(attr), 0);
	if (rules < 0)
		return false;
	ok = add_all(rules, attr.fs, j, who, plugin) &&
	     !syscall(SYS_landlock_restrict_self, rules, 0);
	close(rules);
	return ok;
}
