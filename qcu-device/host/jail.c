// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The user, namespaces and limits of the jail (jail.h). jail_files.c limits files, jail_calls.c
 * system calls.
 */
#define _GNU_SOURCE /* unshare */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/capability.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "qcu-device/base/complain.h"
#include "qcu-device/host/jail.h"
#include "qcu-device/host/jail_impl.h"

/*
 * The first of a range of user numbers that no system assigns. Each VM gets one: this plus the main
 * process's pid.
 */
#define FRESH_USERS 0x50000000u
#define NOBODY	    65534u

#define SHM "/dev/shm"

#define FILES_MAX     4096u
#define PROCESSES_MAX 65536u /* of one fresh user: each lane of each mirror counts as one */

static bool complain_of(const char *what)
{
	complain("sandbox: %s: %s (--no-sandbox runs without one)", what, strerror(errno));
	return false;
}

bool jail_user(struct jail *j, const char *name)
{
	const struct passwd *pw = getpwnam(name);
	char *end;
	unsigned long n;

	errno = 0;
	n = strtoul(name, &end, 10);
	if (!pw && !errno && *name >= '0' && *name <= '9' && !*end && n < UINT32_MAX)
		pw = getpwuid((uid_t)n);
	if (pw) {
		j->uid = pw->pw_uid;
		j->gid = pw->pw_gid;
	} else if (*name >= '0' && *name <= '9' && !*end && !errno && n < UINT32_MAX) {
		j->uid = j->gid = (uid_t)n;
	} else {
		return false;
	}
	j->named = true;
	return j->uid != 0;
}

/* ---- namespaces ---- */

static bool write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	bool ok = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

	if (fd >= 0)
		close(fd);
	return ok;
}

/* An ordinary user can create other namespaces only inside a user namespace of its own. */
static bool own_user_namespace(void)
{
	char text[64];
	uid_t uid = geteuid();
	gid_t gid = getegid();

	if (unshare(CLONE_NEWUSER))
		return false;
	write_file("/proc/self/setgroups", "deny");
	snprintf(text, sizeof(text), "%u %u 1", uid, uid);
	write_file("/proc/self/uid_map", text);
	snprintf(text, sizeof(text), "%u %u 1", gid, gid);
	write_file("/proc/self/gid_map", text);
	return true;
}

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

/* Does the VM have shared memory of its own? */
static bool own_shm;

/*
 * These folders hold other programs' sockets, which file permissions do not always protect. CUDA
 * keeps its events between processes in shared memory, so the VM gets a shared memory folder of its
 * own.
 */
static void replace_folders(void)
{
	static const char *const dirs[] = {"/run", "/tmp", "/var"};
	size_t i;

	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL))
		return;
	own_shm = !mount("qcu-device", SHM, "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC,
			 "size=16m,mode=1777");
	for (i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++)
		if (!has_libraries(dirs[i]))
			mount("qcu-device", dirs[i], "tmpfs",
			      MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC, "size=4k,mode=0555");
}

/* Namespaces that the host does not allow are left out. The filters hold without them. */
static void take_namespaces(const struct jail *j)
{
	if (geteuid() && !own_user_namespace()) {
		if (j->verbose)
			fprintf(stderr, "qcu-device: sandbox: no user namespace: %s\n",
				strerror(errno));
		return;
	}
	if (unshare(CLONE_NEWNET | CLONE_NEWIPC)) {
		if (j->verbose)
			fprintf(stderr, "qcu-device: sandbox: no namespaces: %s\n",
				strerror(errno));
		return;
	}
	if (!unshare(CLONE_NEWNS))
		replace_folders();
}

/* ---- the user ---- */

/* The group that may use the GPU, if not all users may. */
static size_t gpu_group(gid_t *gid)
{
	struct stat st;

	if (stat("/dev/nvidiactl", &st) || (st.st_mode & 06) == 06 || (st.st_mode & 060) != 060)
		return 0;
	*gid = st.st_gid;
	return *gid != 0;
}

static bool become(uid_t uid, gid_t gid)
{
	gid_t gpu;
	size_t n = gpu_group(&gpu);

	return !setgroups(n, &gpu) && !setresgid(gid, gid, gid) && !setresuid(uid, uid, uid);
}

static bool drop_user(const struct jail *j)
{
	uid_t fresh = FRESH_USERS + (uid_t)getpid();

	if (geteuid()) {
		if (!j->named || (j->uid == geteuid() && j->gid == getegid()))
			return true;
		errno = EPERM;
		return complain_of("--user needs root");
	}
	if (j->named)
		return become(j->uid, j->gid) || complain_of("the user of --user");
	if (become(fresh, fresh))
		return true;
	/* A container with few users may not have the fresh one. */
	return become(NOBODY, NOBODY) || complain_of("an unprivileged user");
}

static bool drop_capabilities(void)
{
	cap_t none = cap_init();
	bool ok = none && !cap_set_proc(none);

	cap_free(none);
	return ok || complain_of("capabilities");
}

/* ---- limits ---- */

static bool limit(int what, rlim_t most)
{
	struct rlimit r;

	if (getrlimit(what, &r))
		return complain_of("limits");
	if (r.rlim_max > most)
		r.rlim_max = most;
	if (r.rlim_cur > r.rlim_max || what == RLIMIT_NOFILE)
		r.rlim_cur = r.rlim_max;
	return !setrlimit(what, &r) || complain_of("limits");
}

static bool take_limits(void)
{
	/* A core file would contain the guest's memory. */
	return limit(RLIMIT_CORE, 0) && limit(RLIMIT_NOFILE, FILES_MAX) &&
	       (geteuid() || limit(RLIMIT_NPROC, PROCESSES_MAX));
}

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HAS_LEAK_CHECKER
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define HAS_LEAK_CHECKER
#endif

#ifdef HAS_LEAK_CHECKER
static bool jailed;

/* The leak checker traces the process from outside, which the jail forbids. */
__attribute__((visibility("default"))) int __lsan_is_turned_off(void);
int __lsan_is_turned_off(void)
{
	return jailed;
}
#endif

bool jail_main(const struct jail *j, const struct jail_opened *opened)
{
	if (j->off) {
		fprintf(stderr, "qcu-device: NO SANDBOX: a guest that breaks into its mirror has "
				"all that this user has\n");
		return true;
	}
#ifdef HAS_LEAK_CHECKER
	jailed = true;
#endif
	if (!take_limits())
		return false;
	take_namespaces(j);
	if (!drop_user(j) || !drop_capabilities())
		return false;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return complain_of("no new privileges");
	if (!jail_files(own_shm, opened))
		return complain_of("files (Landlock)");
	return jail_calls(JAIL_MAIN) || complain_of("system calls");
}

/*
 * CUDA names its files after the user, the process and a number, in hexadecimal: cuda.shm.0.1f4.1.
 */
void jail_sweep(pid_t pid)
{
	char part[32];
	struct dirent *e;
	DIR *dir;

	if (!own_shm)
		return;
	dir = opendir(SHM);
	if (!dir)
		return;
	snprintf(part, sizeof(part), ".%x.", (unsigned int)pid);
	while ((e = readdir(dir)))
		if (strstr(e->d_name, part))
			unlinkat(dirfd(dir), e->d_name, 0);
	closedir(dir);
}

bool jail_metrics(const struct jail *j)
{
	if (j->off)
		return true;
	return limit(RLIMIT_CORE, 0) && !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) &&
	       jail_calls(JAIL_METRICS);
}

bool jail_memwatch(const struct jail *j)
{
	if (j->off)
		return true;
	return limit(RLIMIT_CORE, 0) && !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) &&
	       jail_calls(JAIL_MEMWATCH);
}

bool jail_mirror(const struct jail *j)
{
	if (j->off)
		return true;
	/* If the host runs out of memory, the kernel should end a mirror before the VM itself. */
	write_file("/proc/self/oom_score_adj", "500");
	return jail_calls(JAIL_MIRROR) || complain_of("system calls");
}
