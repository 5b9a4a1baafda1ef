// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The system calls that are allowed. The mirrors' list has what CUDA called under strace while the
 * backend's own test ran, and what the mirror itself and the C library need. docs/sandbox.md says
 * how it was made. The mirrors inherit the nursery's filter, which is loaded first, so that filter
 * must allow everything in theirs.
 */
#define _GNU_SOURCE /* F_ADD_SEALS */
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <seccomp.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "qcu-device/jail/jail_impl.h"

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
	C(fadvise64), C(fallocate), C(flock), C(fstat), C(fstatfs), C(ftruncate),
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
	/*
	 * Sockets between the processes of one VM. CUDA listens on one, and does without the
	 * connections that nobody may make.
	 */
	C(accept4), C(bind), C(getsockname), C(getsockopt), C(listen), C(recvfrom), C(recvmsg),
	C(sendmsg), C(setsockopt), C(shutdown),
};

/* The main process ends mirrors. The nursery makes them. */
static const int main_only[] = {
	C(fcntl), C(ioctl), C(kill), C(tgkill), C(prlimit64), C(pidfd_open), C(sendto),
	C(signalfd4), C(wait4), C(waitid),
};

/*
 * The nursery makes processes and namespaces; its children take users and filters, and execute the
 * program loader, which still runs under this filter.
 */
static const int nursery_only[] = {
	C(capget), C(capset), C(clone), C(clone3), C(execve), C(fcntl), C(ioctl),
	C(landlock_add_rule), C(landlock_create_ruleset), C(landlock_restrict_self), C(mount),
	C(personality), C(prlimit64), C(seccomp), C(sendto), C(setresuid), C(tgkill), C(wait4),
	C(fchmod), C(linkat),
};

/* The first process of a mirror's namespaces waits. */
static const int first_only[] = {C(wait4), C(exit_group), C(restart_syscall)};

/* The commands of fcntl that a mirror has; not those that make the kernel send signals. */
static const int file_commands[] = {
	F_DUPFD, F_DUPFD_CLOEXEC, F_GETFD, F_SETFD,	F_GETFL,     F_GETLK,
	F_SETLK, F_SETLKW,	  F_OFD_GETLK, F_OFD_SETLK, F_OFD_SETLKW, F_ADD_SEALS,
	F_GET_SEALS,
};

/* The metrics process answers on connections, and names and removes the file of its socket. */
static const int metrics_only[] = {
	C(accept4), C(brk), C(clock_gettime), C(close), C(exit_group), C(fstat), C(futex),
	C(getrandom), C(lstat), C(madvise), C(mmap), C(mprotect), C(mremap), C(munmap),
	C(newfstatat), C(poll), C(recvfrom), C(recvmsg), C(rename), C(restart_syscall),
	C(rt_sigreturn), C(sendto), C(shutdown), C(unlink),
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

static int add_call_rules(scmp_filter_ctx f, uint32_t action, const int *list, size_t n)
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

/*
 * Sockets with connections only: a message on any other can be sent to an address that the filter
 * cannot see.
 */
static int allow_sockets(scmp_filter_ctx f)
{
	static const int types[] = {SOCK_STREAM, SOCK_SEQPACKET};
	static const int calls[] = {C(socket), C(socketpair)};
	unsigned int i;
	int rc = 0;

	for (i = 0; i < 4 && !rc; i++) {
		const struct scmp_arg_cmp is[] = {
			{.arg = 0, .op = SCMP_CMP_MASKED_EQ, UINT32_MAX, AF_UNIX},
			{.arg = 1, .op = SCMP_CMP_MASKED_EQ, 0xf, (scmp_datum_t)types[i / 2]},
		};

		rc = seccomp_rule_add_array(f, SCMP_ACT_ALLOW, calls[i % 2], 2, is);
	}
	return rc;
}

/*
 * CUDA's debugger, which writes the dumps of GPUs, listens at a port, and waits for ever if it gets
 * none. In the VM's own network, of which no part is up, nobody can connect to it.
 */
static int allow_ports(scmp_filter_ctx f)
{
	const struct scmp_arg_cmp tcp[] = {
		{.arg = 0, .op = SCMP_CMP_MASKED_EQ, UINT32_MAX, AF_INET},
		{.arg = 1, .op = SCMP_CMP_MASKED_EQ, 0xf, SOCK_STREAM},
	};
	int rc = seccomp_rule_add_array(f, SCMP_ACT_ALLOW, C(socket), 2, tcp);

	return rc ? rc : seccomp_rule_add(f, SCMP_ACT_ALLOW, C(accept), 0);
}

static int allow_file_commands(scmp_filter_ctx f)
{
	const struct scmp_arg_cmp set[] = {
		{.arg = 1, .op = SCMP_CMP_MASKED_EQ, UINT32_MAX, F_SETFL},
		{.arg = 2, .op = SCMP_CMP_MASKED_EQ, O_ASYNC, 0},
	};
	int rc = seccomp_rule_add_array(f, SCMP_ACT_ALLOW, C(fcntl), 2, set);
	size_t i;

	for (i = 0; i < sizeof(file_commands) / sizeof(file_commands[0]) && !rc; i++)
		rc = answer_if(f, SCMP_ACT_ALLOW, C(fcntl), 1, UINT32_MAX,
			       (uint32_t)file_commands[i]);
	return rc;
}

/*
 * Allows clone for threads only, tgkill for this process only, prlimit64 only to read limits, and
 * sendto only without an address.
 */
static int allow_narrowly(scmp_filter_ctx f, const struct jail *j)
{
	int rc = answer_if(f, SCMP_ACT_ALLOW, C(clone), 0, CLONE_THREAD, CLONE_THREAD);

	if (!rc)
		rc = answer_if(f, SCMP_ACT_ALLOW, C(tgkill), 0, UINT32_MAX, (uint32_t)getpid());
	if (!rc)
		rc = answer_if(f, SCMP_ACT_ALLOW, C(prlimit64), 2, UINT64_MAX, 0);
	if (!rc)
		rc = answer_if(f, SCMP_ACT_ALLOW, C(sendto), 4, UINT64_MAX, 0);
	/* Its own files in shared memory, for the VM's other mirrors, which are other users. */
	if (!rc && j->own_users)
		rc = answer_if(f, SCMP_ACT_ALLOW, C(fchmod), 1, UINT32_MAX, 0660);
	if (!rc && j->own_users)
		rc = seccomp_rule_add(f, SCMP_ACT_ALLOW, C(linkat), 0);
	if (!rc)
		rc = allow_file_commands(f);
	return rc ? rc : seccomp_rule_add(f, SCMP_ACT_ALLOW, C(ioctl), 0);
}

/*
 * Nothing may type into the operator's terminal, or make the kernel send signals. The requests that
 * do so begin with the byte 'T', or with 0x89, as all requests for sockets do.
 */
static int load_without_requests(void)
{
	scmp_filter_ctx f = seccomp_init(SCMP_ACT_ALLOW);
	int rc = f ? answer_if(f, SCMP_ACT_ERRNO(EPERM), C(ioctl), 1, 0xff00, 'T' << 8) : -ENOMEM;

	if (!rc)
		rc = answer_if(f, SCMP_ACT_ERRNO(EPERM), C(ioctl), 1, 0xff00, 0x8900);
	if (!rc)
		rc = seccomp_load(f);
	seccomp_release(f);
	return rc;
}

static int load_list(const int *list, size_t n)
{
	scmp_filter_ctx f = seccomp_init(SCMP_ACT_ERRNO(EPERM));
	int rc = f ? add_call_rules(f, SCMP_ACT_ALLOW, list, n) : -ENOMEM;

	if (!rc)
		rc = seccomp_load(f);
	seccomp_release(f);
	return rc;
}

static int answer_for(scmp_filter_ctx f, const struct jail *j, enum jail_who who)
{
	int rc = allow_sockets(f);

	/*
	 * The arguments of clone3 are in memory, where the filter cannot see them. After ENOSYS the
	 * C library uses clone, whose arguments it can see.
	 */
	if (!rc && who != JAIL_NURSERY)
		rc = seccomp_rule_add(f, SCMP_ACT_ERRNO(ENOSYS), C(clone3), 0);
	/* A mirror is under the nursery's filter, too. */
	if (!rc && who != JAIL_MAIN && j->ports)
		rc = allow_ports(f);
	if (rc)
		return rc;
	if (who == JAIL_MIRROR)
		return allow_narrowly(f, j);
	if (who == JAIL_MAIN)
		return add_call_rules(f, SCMP_ACT_ALLOW, main_only,
				      sizeof(main_only) / sizeof(main_only[0]));
	return add_call_rules(f, SCMP_ACT_ALLOW, nursery_only,
			      sizeof(nursery_only) / sizeof(nursery_only[0]));
}

bool jail_calls(const struct jail *j, enum jail_who who)
{
	scmp_filter_ctx f;
	int rc;

	if (who == JAIL_METRICS)
		return !load_list(metrics_only, sizeof(metrics_only) / sizeof(metrics_only[0]));
	if (who == JAIL_MEMWATCH)
		return !load_list(memwatch_only, sizeof(memwatch_only) / sizeof(memwatch_only[0]));
	if (who == JAIL_FIRST)
		return !load_list(first_only, sizeof(first_only) / sizeof(first_only[0]));
	f = seccomp_init(SCMP_ACT_ERRNO(EPERM));
	rc = f ? 0 : -ENOMEM;
	if (!rc)
		rc = add_call_rules(f, SCMP_ACT_ALLOW, both, sizeof(both) / sizeof(both[0]));
	if (!rc)
		rc = add_call_rules(f, SCMP_ACT_ERRNO(ENOENT), no_such_file,
				    sizeof(no_such_file) / sizeof(no_such_file[0]));
	if (!rc)
		rc = answer_for(f, j, who);
	/*
	 * Makes the filter a tree instead of a list. Kernels before 5.11 run through it for each
	 * call.
	 */
	if (!rc)
		rc = seccomp_attr_set(f, SCMP_FLTATR_CTL_OPTIMIZE, 2);
	if (!rc && who == JAIL_MIRROR)
		rc = load_without_requests();
	if (!rc)
		rc = seccomp_load(f);
	seccomp_release(f);
	errno = -rc;
	return !rc;
}
