// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The users and limits of the jail (jail.h). jail_spaces.c makes namespaces, jail_files.c limits
 * files, jail_calls.c system calls.
 */
#define _GNU_SOURCE /* setresuid */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/capability.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "qcu-device/base/complain.h"
#include "qcu-device/base/write_file.h"
#include "qcu-device/jail/jail_impl.h"

/*
 * The first of a range of user numbers that no system assigns. Each VM gets as many as there are
 * seats for mirrors, from this plus that many times the main process's pid on.
 */
#define FRESH_USERS 0x50000000u

#define SHM "/dev/shm"

#define LANDLOCK_SCOPES 6 /* the version that has them */

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

/* The GPU's group, if it has one, is the only other group. */
static bool become_user(uid_t uid, gid_t gid, gid_t gpu)
{
	return !setgroups(gpu != 0, &gpu) && !setresgid(gid, gid, gid) && !setresuid(uid, uid, uid);
}

/* Keeps these capabilities. */
static bool keep_capabilities(int n, const cap_value_t *list)
{
	cap_t c = cap_init();
	bool ok = c && !cap_set_flag(c, CAP_PERMITTED, n, list, CAP_SET) &&
		  !cap_set_flag(c, CAP_EFFECTIVE, n, list, CAP_SET) && !cap_set_proc(c);

	cap_free(c);
	return ok;
}

static bool drop_capabilities(void)
{
	cap_t none = cap_init();
	bool ok = none && !cap_set_proc(none);

	cap_free(none);
	return ok;
}

/* ---- limits ---- */

static bool lower_rlimit(int what, rlim_t most)
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
	return lower_rlimit(RLIMIT_CORE, 0) && lower_rlimit(RLIMIT_NOFILE, FILES_MAX) &&
	       (geteuid() || lower_rlimit(RLIMIT_NPROC, PROCESSES_MAX));
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

/* The user that the main process becomes. */
static bool choose_user(struct jail *j, bool root)
{
	if (root) {
		if (!j->named)
			j->uid = j->gid = FRESH_USERS + JAIL_SEATS * (uid_t)getpid();
		return true;
	}
	errno = EPERM;
	if (j->named && (j->uid != geteuid() || j->gid != getegid()))
		return complain_of("--user needs root");
	j->uid = geteuid();
	j->gid = getegid();
	return true;
}

bool jail_enter(struct jail *j)
{
	bool root = !geteuid();
	gid_t gpu = 0;

	if (j->off)
		return true;
	if (jail_files_version() < 1)
		return complain_of("files (Landlock)");
	if (root)
		gpu_group(&gpu);
	if (!take_limits() || !choose_user(j, root) || !jail_spaces(j, root, gpu))
		return false;
	if (root && !become_user(j->uid, j->gid, gpu) &&
	    (j->named || !become_user(NOBODY, NOBODY, gpu)))
		return complain_of("an unprivileged user");
	return true;
}

bool jail_check(struct jail *j)
{
	struct jail copy = *j;
	pid_t pid;
	int status;

	if (j->off) {
		fprintf(stderr, "qcu-device: NO SANDBOX: a guest that breaks into its mirror has "
				"all that this user has\n");
		return true;
	}
	fflush(NULL);
	pid = fork();
	if (!pid) {
		bool ok = jail_enter(&copy);

		errno = ENOSYS;
		if (ok && jail_files_version() < LANDLOCK_SCOPES)
			jail_lacks_extra(j, "Landlock's scopes for signals and sockets");
		errno = EINVAL;
		if (ok && j->gpus.part[0] && !j->gpus.part_known)
			jail_lacks_extra(j, "knowing which part of the GPU is the VM's (NVML), so "
					    "mirrors may open the files of all its parts");
		if (ok && jail_files_other_gpus(j))
			ok = jail_lacks(j, "a way to tell this VM's GPUs from others");
		if (!ok)
			fprintf(stderr, "qcu-device: it does not start without a whole sandbox; "
					"--weak-sandbox goes on with what there is\n");
		_exit(!ok);
	}
	if (pid < 0)
		return complain_of("a process");
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return complain_of("a process");
	j->told = true;
	return WIFEXITED(status) && !WEXITSTATUS(status);
}

/* For all processes: no others may look into them, whoever they are. */
static bool close_memory(void)
{
	return !prctl(PR_SET_DUMPABLE, 0) && !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
}

bool jail_main(const struct jail *j)
{
	if (j->off)
		return true;
#ifdef HAS_LEAK_CHECKER
	jailed = true;
#endif
	if (!drop_capabilities())
		return complain_of("capabilities");
	if (!close_memory())
		return complain_of("no new privileges");
	if (!jail_files(j, JAIL_MAIN, -1))
		return complain_of("files (Landlock)");
	return jail_calls(j, JAIL_MAIN) || complain_of("system calls");
}

/* ---- the nursery, and those that it makes ---- */

bool jail_nursery(const struct jail *j)
{
	static const cap_value_t kept[] = {CAP_SYS_ADMIN, CAP_SETUID, CAP_SETGID};

	if (j->off)
		return true;
	if (!(j->own_pids ? keep_capabilities(3, kept) : drop_capabilities()))
		return complain_of("capabilities");
	return (close_memory() && jail_calls(j, JAIL_NURSERY)) || complain_of("system calls");
}

bool jail_first(const struct jail *j)
{
	return drop_capabilities() && close_memory() && jail_calls(j, JAIL_FIRST);
}

bool jail_take_seat(const struct jail *j, unsigned int seat)
{
	uid_t uid = j->uid + seat;

	if (j->off)
		return true;
	if (j->own_users && setresuid(uid, uid, uid))
		return false;
	return drop_capabilities();
}

bool jail_mirror(const struct jail *j, int plugin)
{
	if (j->off)
		return true;
	/* If the host runs out of memory, the kernel should end a mirror before the VM itself. */
	write_file(AT_FDCWD, "/proc/self/oom_score_adj", "500");
	if (!close_memory())
		return complain_of("no new privileges");
	if (!jail_files(j, JAIL_MIRROR, plugin))
		return complain_of("files (Landlock)");
	return jail_calls(j, JAIL_MIRROR) || complain_of("system calls");
}

/*
 * CUDA names its files after the user, the process and a number, in hexadecimal: cuda.shm.0.1f4.1.
 */
void jail_sweep(const struct jail *j, pid_t pid)
{
	char part[32];
	struct dirent *e;
	DIR *dir;

	if (!j->own_shm)
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
	return lower_rlimit(RLIMIT_CORE, 0) && !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) &&
	       jail_calls(j, JAIL_METRICS);
}

bool jail_memwatch(const struct jail *j)
{
	if (j->off)
		return true;
	return lower_rlimit(RLIMIT_CORE, 0) && !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) &&
	       jail_calls(j, JAIL_MEMWATCH);
}
