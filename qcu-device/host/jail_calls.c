// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The system calls that are allowed. The mirrors' list has what CUDA called under strace while the
 * backend's own test ran, and what the mirror itself and the C library need. docs/sandbox.md says
 * how it was made. The mirrors inherit the main process's filter, which is loaded first, so that
 * filter must allow everything in theirs.
 */
#include <errno.h>
#include <linux/sched.h>
#include <seccomp.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "qcu-device/host/jail_impl.h"

#define C(name) SCMP_SYS(name)

/* clang-format off */

/* Allowed for both, without conditions. */
static const int both[] = {
	/* memory */
	C(brk), C(madvise), C(mincore), C(mlock), C(mmap), C(mprotect), C(mremap), C(msync),
	C(munlock), C(munmap), C(mbind), C(get_mempolicy), C(set_mempolicy), C(membarrier),
	C(memfd_create),
	/* files that are already open, or that Landlock allows */
	C(access), C(close), C(close_range), C(dup), C(dup2), C(dup3), C(faccessat), C(faccessat2),
	C(fadvise64), C(fallocate), C(fcntl), C(flock), C(fstat), C(fstatfs), C(ftruncate),
	C(getcwd), C(getdents64), C(lseek), C(lstat), C(newfstatat), C(open), C(openat), C(pread64),
	C(preadv), C(pwrite64), C(pwritev), C(read), C(readlink), C(readlinkat), C(readv), C(stat),
	C(statfs), C(statx), C(unlink), C(unlinkat), C(write), C(writev),
	/* waiting */
	C(clock_getres), C(clock_gettime), C(clock_nanosleep), C(epoll_create1), C(epoll_ctl),
	C(epoll_pwait), C(epoll_wait), C(eventfd2), C(futex), C(gettimeofday), C(nanosleep),
	C(pipe2), C(poll), C(ppoll), C(pselect6), C(restart_syscall), C(sched_yield), C(select),
	C(time),
	/* this process and its threads */
	C(arch_prctl), C(exit), C(exit_group), C(getcpu), C(getegid), C(geteuid), C(getgid),
	C(getpid), C(getppid), C(getpriority), C(getrandom), C(getresgid), C(getresuid),
	C(getrlimit), C(getrusage), C(gettid), C(getuid), C(prctl), C(rseq), C(rt_sigaction),
	C(rt_sigpending), C(rt_sigprocmask), C(rt_sigreturn), C(rt_sigtimedwait),
	C(sched_getaffinity), C(sched_getparam), C(sched_getscheduler), C(sched_get_priority_max),
	C(sched_get_priority_min), C(sched_setaffinity), C(set_robust_list), C(set_tid_address),
	C(sigaltstack), C(sysinfo), C(times), C(umask), C(uname),
	/* sockets between the processes of one VM: CUDA's IPC passes files through them */
	C(accept4), C(bind), C(connect), C(getsockname), C(getsockopt), C(listen), C(recvfrom),
	C(recvmsg), C(sendmsg), C(sendto), C(setsockopt), C(shutdown),
};

/*
 * The main process starts mirrors, ends them, and starts the program loader, which runs under the
 * main process's filter.
 */
static const int main_only[] = {
	C(execve), C(clone), C(fork), C(kill), C(tgkill), C(personality), C(prlimit64),
	C(pidfd_open), C(seccomp), C(signalfd4), C(wait4), C(waitid), C(ioctl),
};

/* The metrics process answers on connections, and removes the file of its socket. */
static const int metrics_only[] = {
	C(accept4), C(brk), C(clock_gettime), C(close), C(exit_group), C(fstat), C(futex),
	C(getrandom), C(lstat), C(madvise), C(mmap), C(mprotect), C(mremap), C(munmap),
	C(newfstatat), C(poll), C(recvfrom), C(recvmsg), C(restart_syscall), C(rt_sigreturn),
	C(sendto), C(shutdown), C(unlink),
};

/* The process that asks NVML reads nothing of the guest. NVML opens files and calls the driver. */
static const int memwatch_only[] = {
	C(access), C(brk), C(clock_gettime), C(clock_nanosleep), C(close), C(dup), C(exit_group),
	C(fcntl), C(fstat), C(futex), C(getdents64), C(geteuid), C(getpid), C(getrandom),
	C(gettid), C(getuid), C(ioctl), C(lseek), C(lstat), C(madvise), C(mmap), C(mprotect),
	C(mremap), C(munmap), C(nanosleep), C(newfstatat), C(open), C(openat), C(poll), C(pread64),
	C(read), C(readlink), C(recvfrom), C(restart_syscall), C(rt_sigreturn), C(sched_yield),
	C(sendto), C(stat), C(statx), C(uname),
};

/*
 * CUDA creates links below /dev/char. It continues without them only if the error says that the
 * folder does not exist.
 */
static const int no_such_file[] = {C(symlink)};

/* clang-format on */

static int answer(scmp_filter_ctx f, uint32_t action, const int *list, size_t n)
{
	size_t i;
	int rc = 0;

	for (i = 0; i < n && !rc; i++)
		rc = seccomp_rule_add(f, action, list[i], 0);
	return rc;
}

/* Applies the action to a call if the bits of its argument that are in mask equal value. */
static int answer_if(scmp_filter_ctx f, uint32_t action, int call, unsigned int argument,
		     uint64_t mask, uint64_t value)
{
	const struct scmp_arg_cmp is = {
		.arg = argument, .op = SCMP_CMP_MASKED_EQ, .datum_a = mask, .datum_b = value};

	return seccomp_rule_add_array(f, action, call, 1, &is);
}

static int allow_sockets(scmp_filter_ctx f)
{
	int rc = answer_if(f, SCMP_ACT_ALLOW, C(socket), 0, UINT32_MAX, AF_UNIX);

	return rc ? rc : answer_if(f, SCMP_ACT_ALLOW, C(socketpair), 0, UINT32_MAX, AF_UNIX);
}

/*
 * Allows clone for threads only, tgkill for this process only, and prlimit64 only to read limits.
 */
static int allow_narrowly(scmp_filter_ctx f)
{
	int rc = answer_if(f, SCMP_ACT_ALLOW, C(clone), 0, CLONE_THREAD, CLONE_THREAD);

	if (!rc)
		rc = answer_if(f, SCMP_ACT_ALLOW, C(tgkill), 0, UINT32_MAX, (uint32_t)getpid());
	if (!rc)
		rc = answer_if(f, SCMP_ACT_ALLOW, C(prlimit64), 2, UINT64_MAX, 0);
	return rc ? rc : seccomp_rule_add(f, SCMP_ACT_ALLOW, C(ioctl), 0);
}

/* Nothing may type into the operator's terminal: terminal requests begin with the byte 'T'. */
static int load_without_terminals(void)
{
	scmp_filter_ctx f = seccomp_init(SCMP_ACT_ALLOW);
	int rc = f ? answer_if(f, SCMP_ACT_ERRNO(EPERM), C(ioctl), 1, 0xff00, 'T' << 8) : -ENOMEM;

	if (!rc)
		rc = seccomp_load(f);
	seccomp_release(f);
	return rc;
}

static int load_list(const int *list, size_t n)
{
	scmp_filter_ctx f = seccomp_init(SCMP_ACT_ERRNO(EPERM));
	int rc = f ? answer(f, SCMP_ACT_ALLOW, list, n) : -ENOMEM;

	if (!rc)
		rc = seccomp_load(f);
	seccomp_release(f);
	return rc;
}

bool jail_calls(enum jail_who who)
{
	scmp_filter_ctx f;
	int rc;

	if (who == JAIL_METRICS)
		return !load_list(metrics_only, sizeof(metrics_only) / sizeof(metrics_only[0]));
	if (who == JAIL_MEMWATCH)
		return !load_list(memwatch_only, sizeof(memwatch_only) / sizeof(memwatch_only[0]));
	f = seccomp_init(SCMP_ACT_ERRNO(EPERM));
	rc = f ? 0 : -ENOMEM;
	if (!rc)
		rc = answer(f, SCMP_ACT_ALLOW, both, sizeof(both) / sizeof(both[0]));
	if (!rc)
		rc = answer(f, SCMP_ACT_ERRNO(ENOENT), no_such_file,
			    sizeof(no_such_file) / sizeof(no_such_file[0]));
	if (!rc)
		rc = allow_sockets(f);
	/*
	 * The arguments of clone3 are in memory, where the filter cannot see them. After ENOSYS the
	 * C library uses clone, whose arguments it can see.
	 */
	if (!rc)
		rc = seccomp_rule_add(f, SCMP_ACT_ERRNO(ENOSYS), C(clone3), 0);
	if (!rc && who == JAIL_MAIN)
		rc = answer(f, SCMP_ACT_ALLOW, main_only, sizeof(main_only) / sizeof(main_only[0]));
	if (!rc && who == JAIL_MIRROR)
		rc = allow_narrowly(f);
	/*
	 * Makes the filter a tree instead of a list. Kernels before 5.11 run through it for each
	 * call.
	 */
	if (!rc)
		rc = seccomp_attr_set(f, SCMP_FLTATR_CTL_OPTIMIZE, 2);
	if (!rc && who == JAIL_MIRROR)
		rc = load_without_terminals();
	if (!rc)
		rc = seccomp_load(f);
	seccomp_release(f);
	errno = -rc;
	return !rc;
}
