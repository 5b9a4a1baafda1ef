// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A backend that tries, from inside a mirror, what an attacker in the mirror would try. The command
 * INFO makes it do so. It reports for each attempt whether it was refused. Everything else is done
 * by the backend that QCU_TEST_BACKEND names: the path of be_cuda.so, or by default the software
 * GPU. With QCU_TEST_PAGEABLE=1 its GPUs read memory that is not registered. With QCU_TEST_STORE
 * there are two, of which a mirror has one for the store; with QCU_TEST_STORE=far they do not reach
 * each other.
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#include "qcu-device/backend/backend.h"

static struct be_ops ops;
static const struct be_ops *real;
static int report = -1; /* the device's stderr, from before a backend replaces it */

static long connect_to(const char *path)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	strncpy(addr.sun_path, path, sizeof(addr.sun_path) - 1);
	return fd < 0 ? -1 : connect(fd, (const struct sockaddr *)&addr, sizeof(addr));
}

static long run_true(void)
{
	char name[] = "/bin/true", *argv[] = {name, NULL}, *env[] = {NULL};

	return syscall(SYS_execve, name, argv, env);
}

/* Makes a process, not a thread. The child must not go on as if it were the mirror. */
static long make_process(void)
{
	long pid = syscall(SYS_clone, (unsigned long)SIGCHLD, 0, 0, 0, 0);

	if (!pid)
		_exit(0);
	return pid;
}

static long look_into(pid_t pid)
{
	char byte;
	struct iovec here = {&byte, 1}, there = {(void *)(uintptr_t)0x1000, 1};

	return syscall(SYS_process_vm_readv, pid, &here, 1ul, &there, 1ul, 0ul);
}

static void try(const char *what, long rc)
{
	const int err = errno;

	dprintf(report, "jail: %s: %s%s\n", what, rc < 0 ? "refused, " : "DONE",
		rc < 0 ? strerror(err) : "");
}

/* ---- other processes ---- */

#define PIDS 65536 /* that are guessed: this machine's pids, and those of a namespace */

static bool is_own_thread(pid_t pid)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/self/task/%d", pid);
	return !access(path, F_OK);
}

/* Counts the attempts that were not refused, for all processes but this one. */
static void try_on_others(const char *what, long (*attempt)(pid_t pid))
{
	unsigned int done = 0;
	pid_t pid;

	for (pid = 1; pid < PIDS; pid++)
		done += attempt(pid) >= 0 && !is_own_thread(pid);
	errno = EPERM;
	try(what, done ? (long)done : -1);
}

static long open_memory(pid_t pid)
{
	char path[32];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/mem", pid);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd >= 0)
		close(fd);
	/* A process without memory, such as a zombie, gives an empty file. */
	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	return fd < 0 ? -1 : access(path, R_OK);
}

/* If the call is allowed, what it reports is that nothing lies at this address. */
static long move_memory(pid_t pid, long call)
{
	char byte = 0;
	struct iovec here = {&byte, 1}, there = {(void *)(uintptr_t)0x1000, 1};

	return syscall(call, pid, &here, 1ul, &there, 1ul, 0ul) < 0 && errno != EFAULT ? -1 : 0;
}

static long read_memory(pid_t pid)
{
	return move_memory(pid, SYS_process_vm_readv);
}

static long write_memory(pid_t pid)
{
	return move_memory(pid, SYS_process_vm_writev);
}

static long trace(pid_t pid)
{
	long rc = ptrace(PTRACE_SEIZE, pid, NULL, NULL);

	if (!rc)
		ptrace(PTRACE_DETACH, pid, NULL, NULL);
	return rc;
}

static long look_at_command(pid_t pid)
{
	char path[32], text[64];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/cmdline", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, text, sizeof(text));
	if (fd >= 0)
		close(fd);
	return n > 0 ? 0 : -1;
}

/* How many processes /proc shows beside this one; -1: none. */
static long see_processes(void)
{
	DIR *dir = opendir("/proc");
	struct dirent *e;
	long n = 0;

	while (dir && (e = readdir(dir)))
		n += isdigit((unsigned char)e->d_name[0]) && atoi(e->d_name) != getpid();
	if (dir)
		closedir(dir);
	errno = ENOENT;
	return n ? n : -1;
}

static void try_processes(void)
{
	struct f_owner_ex owner = {.type = F_OWNER_PID, .pid = getppid()};
	int pair[2], on = 1;
	pid_t pid = getppid();

	try("see other processes", see_processes());
	try_on_others("see their commands", look_at_command);
	try_on_others("open their memory", open_memory);
	try_on_others("read their memory", read_memory);
	try_on_others("write their memory", write_memory);
	try_on_others("trace them", trace);
	try("become dumpable", prctl(PR_GET_DUMPABLE) ? 0 : -1);
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
		return;
	try("F_SETOWN", fcntl(pair[0], F_SETOWN, pid));
	try("F_SETOWN_EX", fcntl(pair[0], F_SETOWN_EX, &owner));
	try("F_SETSIG", fcntl(pair[0], F_SETSIG, SIGURG));
	try("O_ASYNC", fcntl(pair[0], F_SETFL, O_ASYNC | O_NONBLOCK));
	try("FIOSETOWN", ioctl(pair[0], 0x8901, &pid));
	try("SIOCSPGRP", ioctl(pair[0], 0x8902, &pid));
	try("FIOASYNC", ioctl(pair[0], FIOASYNC, &on));
	close(pair[0]);
	close(pair[1]);
}

/* ---- sockets ---- */

/* With --fault-place there are ports. This process listens at one, and must not reach even that. */
static void try_ports(void)
{
	struct sockaddr_in addr = {.sin_family = AF_INET};
	struct iovec word = {"x", 1};
	struct msghdr letter = {
		.msg_name = &addr, .msg_namelen = sizeof(addr), .msg_iov = &word, .msg_iovlen = 1};
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	socklen_t len = sizeof(addr);

	addr.sin_addr.s_addr = htonl(INADDR_ANY);
	try("listen at a port",
	    bind(listener, (const struct sockaddr *)&addr, sizeof(addr)) || listen(listener, 1)
		    ? -1
		    : 0);
	if (listener >= 0)
		getsockname(listener, (struct sockaddr *)&addr, &len);
	addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	try("connect to a port", connect(fd, (const struct sockaddr *)&addr, sizeof(addr)));
	try("send to a port", (int)sendmsg(fd, &letter, MSG_FASTOPEN | MSG_NOSIGNAL));
	close(listener);
	close(fd);
}

/* The test listens at QCU_TEST_SOCKET, a file, and at that name without a file. */
static void try_sockets(void)
{
	const char *path = getenv("QCU_TEST_SOCKET");
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (!path)
		return;
	try("connect to a file", connect_to(path));
	strncpy(addr.sun_path + 1, path, sizeof(addr.sun_path) - 2);
	try("connect to a name",
	    connect(fd, (const struct sockaddr *)&addr,
		    (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(path))));
	close(fd);
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	addr = (struct sockaddr_un){.sun_family = AF_UNIX};
	strncpy(addr.sun_path, path, sizeof(addr.sun_path) - 4);
	strcat(addr.sun_path, ".d");
	try("send to a file",
	    sendto(fd, "x", 1, MSG_NOSIGNAL, (const struct sockaddr *)&addr, sizeof(addr)));
	close(fd);
}

/* ---- the GPU's files ---- */

static void try_nodes(void)
{
	static const char *const own[] = {"/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia0"};
	static const char *const nodes[] = {"/dev/nvidia-modeset", "/dev/nvidia-uvm-tools",
					    "/dev/nvidia-caps/nvidia-cap1",
					    "/dev/nvidia-caps/nvidia-cap2"};
	size_t i;

	for (i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		dprintf(report, "jail: %s is %s\n", own[i],
			open(own[i], O_RDWR | O_CLOEXEC) < 0 ? "not there" : "there");
	for (i = 0; i < sizeof(nodes) / sizeof(nodes[0]); i++)
		try(nodes[i], open(nodes[i], O_RDWR | O_CLOEXEC));
}

/* CUDA opens the file for the dump of a GPU by a path (be_cuda_fault.c). */
static void try_own_memory(void)
{
	int fd = memfd_create("jail", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	char path[32];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	dprintf(report, "jail: a file in its memory is %s\n",
		fd < 0 || open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600) < 0 ||
				fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK)
			? "not there"
			: "there");
}

/*
 * Without a jail many of the attempts would really happen to the machine that runs the tests. So
 * they are made only by an ordinary user whom no other process runs as, in a mount namespace of its
 * own. (A mirror has a filter of system calls in any case.)
 */
static bool is_jailed(void)
{
	struct stat own, init;

	return geteuid() >= 0x50000000u && !stat("/proc/self/ns/mnt", &own) &&
	       (stat("/proc/1/ns/mnt", &init) || own.st_ino != init.st_ino);
}

/* These attempts leave nothing behind. */
static void try_harmless(void)
{
	try("read /etc/passwd", open("/etc/passwd", O_RDONLY));
	try("read a folder", open("/etc", O_RDONLY | O_DIRECTORY));
	try("write a nameless file", open("/tmp", O_WRONLY | O_TMPFILE, 0600));
	try("socket(AF_INET)", socket(AF_INET, SOCK_STREAM, 0));
	try("socket(AF_NETLINK)", socket(AF_NETLINK, SOCK_RAW, 0));
	try("fork", make_process());
	try("kill", kill(getppid(), 0));
}

static void try_all(void)
{
	struct perf_event_attr perf = {.size = sizeof(perf), .type = PERF_TYPE_SOFTWARE};
	union bpf_attr bpf = {
		.map_type = BPF_MAP_TYPE_ARRAY, .key_size = 4, .value_size = 4, .max_entries = 1};
	char letter = 'x';

	try("write a new file", open("/tmp/qcu-jail", O_WRONLY | O_CREAT | O_TRUNC, 0600));
	try("write a file here", open("qcu-jail", O_WRONLY | O_CREAT | O_TRUNC, 0600));
	try("write the program's file", open("/bin/true", O_WRONLY));
	try("make a folder", mkdir("/tmp/qcu-jail-dir", 0700));
	try("make a device", mknod("/tmp/qcu-jail-null", S_IFCHR | 0600, 0x103));
	try("make a link", symlink("/etc/passwd", "/tmp/qcu-jail-link"));
	try("remove a file", unlink("/etc/hostname.qcu-jail"));
	try("remove the program", unlinkat(AT_FDCWD, "/bin/true", 0));
	try("change a mode", chmod("/tmp", 0777));
	try("read a disk", open("/dev/vda", O_RDONLY));
	try("socket(AF_INET6)", socket(AF_INET6, SOCK_DGRAM, 0));
	try("socket(AF_VSOCK)", socket(AF_VSOCK, SOCK_STREAM, 0));
	try("connect to the log", connect_to("/dev/log"));
	try("connect to the bus", connect_to("/run/dbus/system_bus_socket"));
	try("ptrace", ptrace(PTRACE_TRACEME, 0, NULL, NULL));
	try("ptrace another", ptrace(PTRACE_SEIZE, getppid(), NULL, NULL));
	try("read another's memory", look_into(getppid()));
	try("execve", run_true());
	try("kill init", kill(1, 0));
	try("signal a thread of another", syscall(SYS_tgkill, getppid(), getppid(), 0));
	try("take another's file", syscall(SYS_pidfd_open, getppid(), 0));
	try("mount", mount("none", "/tmp", "tmpfs", 0, NULL));
	try("umount", umount("/proc"));
	try("chroot", chroot("/"));
	try("unshare", unshare(CLONE_NEWUSER));
	try("setuid", syscall(SYS_setuid, 0));
	try("bpf", syscall(SYS_bpf, BPF_MAP_CREATE, &bpf, sizeof(bpf)));
	try("perf_event_open", syscall(SYS_perf_event_open, &perf, 0, -1, -1, 0ul));
	try("io_uring", syscall(SYS_io_uring_setup, 8, &(char[256]){0}));
	try("userfaultfd", syscall(SYS_userfaultfd, O_CLOEXEC));
	try("add_key", syscall(SYS_add_key, "user", "qcu", "x", 1ul, -3));
	try("open_by_handle_at", syscall(SYS_open_by_handle_at, AT_FDCWD, &(char[256]){0}, 0));
	try("init_module", syscall(SYS_init_module, "x", 1ul, ""));
	try("raise a limit", syscall(SYS_setrlimit, 7, &(unsigned long[2]){1 << 20, 1 << 20}));
	try("type into the terminal", ioctl(0, TIOCSTI, &letter));
}

static int versions(struct be *be, uint32_t *driver, uint32_t *runtime)
{
	try_harmless();
	if (!getenv("QCU_TEST_NO_SANDBOX")) {
		try_processes();
		try_sockets();
		try_ports();
		try_nodes();
		try_own_memory();
	}
	if (is_jailed())
		try_all();
	dprintf(report, "jail: that was all\n");
	return real->versions(be, driver, runtime);
}

static int device_desc(struct be *be, unsigned int dev, struct qcu_device_desc *desc)
{
	const char *pageable = getenv("QCU_TEST_PAGEABLE");
	int rc = real->device_desc(be, dev, desc);

	if (pageable)
		desc->attr[88] = atoi(pageable);
	return rc;
}

static int open_backend(struct be **be, const struct be_options *options)
{
	struct be_options o = *options;

	o.gpus = getenv("QCU_TEST_STORE") && !o.store ? 2 : 1;
	return real->open(be, &o);
}

static int peer_info(struct be *be, unsigned int dev, unsigned int peer, uint32_t attr,
		     int32_t *value)
{
	const char *store = getenv("QCU_TEST_STORE");
	int rc = real->peer_info(be, dev, peer, attr, value);

	if (store && !strcmp(store, "far"))
		*value = 0;
	return rc;
}

__attribute__((visibility("default"))) const struct be_ops *be_plugin(void);

const struct be_ops *be_plugin(void)
{
	const char *name = getenv("QCU_TEST_BACKEND");
	be_plugin_fn *fn;

	real = &be_soft;
	if (name && strcmp(name, "soft")) {
		void *lib = dlopen(name, RTLD_NOW | RTLD_LOCAL);

		if (!lib)
			fprintf(stderr, "jail: %s\n", dlerror());
		*(void **)&fn = lib ? dlsym(lib, BE_PLUGIN_SYMBOL) : NULL;
		real = fn ? fn() : NULL;
	}
	if (!real)
		return NULL;
	report = fcntl(2, F_DUPFD_CLOEXEC, 3);
	ops = *real;
	ops.versions = versions;
	ops.device_desc = device_desc;
	if (real == &be_soft)
		ops.open = open_backend;
	ops.peer_info = peer_info;
	/* As with NVIDIA's GPU: what mirrors know comes from the main process. */
	ops.sensors = NULL;
	return &ops;
}
