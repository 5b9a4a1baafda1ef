// SPDX-License-Identifier: GPL-2.0-or-later
/* The namespaces of the jail (jail.h): those of the VM, and those of each mirror. */
#define _GNU_SOURCE /* unshare */
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "qcu-device/base/write_file.h"
#include "qcu-device/jail/jail_impl.h"

#define SHM	 "/dev/shm"
#define OF_A_TMP (MS_NOSUID | MS_NODEV | MS_NOEXEC)

/* ---- the VM's user namespace ---- */

static bool write_map(pid_t pid, const char *file, const char *text)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, file);
	return write_file(AT_FDCWD, path, text);
}

/* Gives the namespace of a process these users and groups, which have the same numbers outside. */
static bool map_users(pid_t pid, uid_t uid, gid_t gid, unsigned int count, gid_t gpu_group)
{
	char users[64], groups[128];
	size_t n;

	snprintf(users, sizeof(users), "%u %u %u\n", uid, uid, count);
	n = (size_t)snprintf(groups, sizeof(groups), "%u %u 1\n", gid, gid);
	if (gpu_group && gpu_group != gid)
		snprintf(groups + n, sizeof(groups) - n, "%u %u 1\n", gpu_group, gpu_group);
	return write_map(pid, "gid_map", groups) && write_map(pid, "uid_map", users);
}

/*
 * Only a process outside of the namespace may give it several users. The exit code of this process
 * says which it has got: 0, one for each seat; 1, only NOBODY.
 */
static void __attribute__((noreturn))
map_from_outside(int ready, pid_t pid, const struct jail *j, gid_t gpu_group)
{
	char byte;

	if (read(ready, &byte, 1) != 1)
		_exit(2);
	if (map_users(pid, j->uid, j->gid, j->named ? 1 : JAIL_SEATS, gpu_group))
		_exit(0);
	_exit(!j->named && map_users(pid, NOBODY, NOBODY, 1, gpu_group) ? 1 : 2);
}

static bool enter_as_root(struct jail *j, gid_t gpu_group)
{
	int ready[2], status = 0, rc, err;
	pid_t self = getpid(), helper;

	if (pipe2(ready, O_CLOEXEC))
		return false;
	helper = fork();
	if (!helper) {
		close(ready[1]);
		map_from_outside(ready[0], self, j, gpu_group);
	}
	close(ready[0]);
	rc = helper < 0 ? -1 : unshare(CLONE_NEWUSER);
	err = errno;
	if (!rc && write(ready[1], "", 1) != 1)
		rc = -1;
	close(ready[1]);
	while (helper > 0 && waitpid(helper, &status, 0) < 0 && errno == EINTR)
		;
	errno = err;
	if (rc)
		return false;
	if (!WIFEXITED(status) || WEXITSTATUS(status) > 1) {
		/* Now this process has no user at all. */
		fprintf(stderr, "qcu-device: sandbox: users cannot be given to a namespace\n");
		_exit(1);
	}
	if (WEXITSTATUS(status))
		j->uid = j->gid = NOBODY;
	else
		j->own_users = !j->named;
	return true;
}

static bool enter_as_user(void)
{
	char text[64];
	uid_t uid = geteuid();
	gid_t gid = getegid();

	if (unshare(CLONE_NEWUSER))
		return false;
	snprintf(text, sizeof(text), "%u %u 1", uid, uid);
	if (!write_file(AT_FDCWD, "/proc/self/setgroups", "deny") ||
	    !write_file(AT_FDCWD, "/proc/self/uid_map", text))
		return false;
	snprintf(text, sizeof(text), "%u %u 1", gid, gid);
	return write_file(AT_FDCWD, "/proc/self/gid_map", text);
}

/* ---- its other namespaces ---- */

/* Does the loader search for libraries in a path that begins with this folder? */
static bool has_libraries(const char *dir)
{
	static const char *const lists[] = {"LD_LIBRARY_PATH", "LD_PRELOAD"};
	size_t len = strlen(dir), i;

	for (i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
		const char *at = getenv(lists[i]);

		while (at && *at) {
			at += strspn(at, ": ");
			if (!strncmp(at, dir, len) && (at[len] == '/' || !at[len]))
				return true;
			at += strcspn(at, ": ");
		}
	}
	return false;
}

/*
 * These folders hold other programs' sockets, which file permissions do not always protect. CUDA
 * keeps its events between processes in shared memory, so the VM gets a shared memory folder of its
 * own. It belongs to the main process, which removes what mirrors leave there. It has no sticky
 * bit: with that bit the kernel refuses to open another user's file for writing if the open could
 * create it (fs.protected_regular), and CUDA opens the files of events so.
 */
static bool replace_folders(struct jail *j)
{
	static const char *const dirs[] = {"/run", "/tmp", "/var"};
	char options[96];
	bool ok = true;
	size_t i;

	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL))
		return jail_lacks(j, "mounts of its own");
	snprintf(options, sizeof(options), "size=16m,mode=0777,uid=%u,gid=%u", j->uid, j->gid);
	j->own_shm = !mount("qcu-device", SHM, "tmpfs", OF_A_TMP, options);
	if (!j->own_shm)
		ok = jail_lacks(j, "a " SHM " of its own");
	for (i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++)
		if (!has_libraries(dirs[i]) &&
		    mount("qcu-device", dirs[i], "tmpfs", MS_RDONLY | OF_A_TMP,
			  "size=4k,mode=0555") &&
		    errno != ENOENT)
			ok &= jail_lacks(j, "an empty folder in the place of /run, /tmp and /var");
	return ok;
}

/* ---- a mirror's namespaces ---- */

pid_t jail_child(const struct jail *j)
{
	unsigned long flags = CLONE_PARENT | SIGCHLD;

	if (j->own_pids)
		flags |= CLONE_NEWPID | CLONE_NEWNS;
	return (pid_t)syscall(SYS_clone, flags, 0ul, 0ul, 0ul, 0ul);
}

/*
 * The mirrors of a VM have different pids, each in its own namespace: CUDA takes processes with the
 * same pid for one.
 */
pid_t jail_second(unsigned int seat)
{
	pid_t pid = (pid_t)seat + 1;
	struct clone_args args = {
		.exit_signal = SIGCHLD, .set_tid = (uintptr_t)&pid, .set_tid_size = 1};

	/* Processes that this one may not trace are not shown: it sees itself alone. */
	if (mount("proc", "/proc", "proc", OF_A_TMP, "hidepid=2"))
		return -1;
	return (pid_t)syscall(SYS_clone3, &args, sizeof(args));
}

/* Tries what a mirror's start does, because the host may refuse any part of it. */
static bool try_processes(void)
{
	unsigned long flags = CLONE_NEWPID | CLONE_NEWNS | SIGCHLD;
	pid_t pid = (pid_t)syscall(SYS_clone, flags, 0ul, 0ul, 0ul, 0ul), second;
	int status;

	if (!pid) {
		second = jail_second(1);
		if (!second)
			_exit(0);
		status = second < 0 ? errno : 0;
		if (second > 0)
			waitpid(second, NULL, 0);
		_exit(status);
	}
	if (pid < 0)
		return false;
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return false;
	errno = WIFEXITED(status) ? WEXITSTATUS(status) : EINTR;
	return !errno;
}

bool jail_spaces(struct jail *j, bool root, gid_t gpu_group)
{
	bool ok = true;

	if (root ? !enter_as_root(j, gpu_group) : !enter_as_user()) {
		if (!jail_lacks(j, "a user namespace"))
			return false;
		j->ports = false;
		/* Root can have some of the others without it. */
		if (root && !unshare(CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWNS))
			replace_folders(j);
		return true;
	}
	if (unshare(CLONE_NEWNET | CLONE_NEWIPC)) {
		j->ports = false;
		ok &= jail_lacks(j, "network and IPC namespaces");
	}
	if (unshare(CLONE_NEWNS))
		ok &= jail_lacks(j, "a mount namespace");
	else
		ok &= replace_folders(j);
	j->own_pids = try_processes();
	if (!j->own_pids)
		ok &= jail_lacks(j, "a process namespace, with a /proc, for each mirror");
	j->own_users &= j->own_pids;
	if (root && !j->named && !j->own_users)
		jail_lacks_extra(j, "a user for each mirror");
	return ok;
}
