// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * qcu-confine: limits what QEMU may do with the host's files. The kernel enforces the limits, not
 * QEMU.
 *
 * QEMU's 9p server serves the shared folder to the guest. The guest kernel may send any request to
 * that server, and QEMU runs as the user who called the launcher. There are two locks, which hold
 * for every program that is executed after them:
 *
 * seccomp   QEMU can make no file with a set-user-ID or set-group-ID bit, no device node, pipe or
 *           socket, in any folder. The modes are arguments of system calls, so a filter sees them.
 *           Calls that pass the modes in memory (openat2, io_uring) are refused with ENOSYS.
 * Landlock  QEMU can reach only the files that are named on the command line. This lock is left
 *           out on a kernel without Landlock, and on a kernel before 5.19, whose Landlock could
 *           not tell a move from a copy.
 *
 * Neither lock can be undone, so a QEMU that the guest controls cannot leave them.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <linux/capability.h>
#include <sched.h>
#include <seccomp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* From Linux' <linux/landlock.h>. The headers of Debian 12 know Landlock only up to version 2. */
#ifndef SYS_landlock_create_ruleset
#define SYS_landlock_create_ruleset 444
#define SYS_landlock_add_rule	    445
#define SYS_landlock_restrict_self  446
#endif

struct ruleset_attr {
	uint64_t fs;
	uint64_t net;	 /* from version 4 on */
	uint64_t scoped; /* from version 6 on */
};

struct path_attr {
	uint64_t allowed;
	int32_t fd;
} __attribute__((packed));

enum {
	FS_EXECUTE = 1 << 0,
	FS_WRITE_FILE = 1 << 1,
	FS_READ_FILE = 1 << 2,
	FS_READ_DIR = 1 << 3,
	FS_REMOVE_DIR = 1 << 4,
	FS_REMOVE_FILE = 1 << 5,
	FS_MAKE_DIR = 1 << 7,
	FS_MAKE_REG = 1 << 8,
	FS_MAKE_SYM = 1 << 12,
	FS_REFER = 1 << 13,    /* version 2: move and link between folders */
	FS_TRUNCATE = 1 << 14, /* version 3 */
	FS_ALL_1 = (1 << 13) - 1,
	NET_ALL = 3,	/* bind and connect, TCP */
	SCOPED_ALL = 3, /* abstract sockets and signals */
	GET_VERSION = 1,
	PATH_BENEATH = 1,
};

#define READ  (FS_EXECUTE | FS_READ_FILE | FS_READ_DIR)
#define WRITE (FS_READ_FILE | FS_READ_DIR | FS_WRITE_FILE | FS_TRUNCATE)
#define SHARE                                                                               \
	(WRITE | FS_REMOVE_DIR | FS_REMOVE_FILE | FS_MAKE_DIR | FS_MAKE_REG | FS_MAKE_SYM | \
	 FS_REFER)
#define OF_FILES (FS_EXECUTE | FS_READ_FILE | FS_WRITE_FILE | FS_TRUNCATE)

static void __attribute__((noreturn, format(printf, 1, 2))) die(const char *format, ...)
{
	va_list ap;

	fputs("qcu-confine: ", stderr);
	va_start(ap, format);
	vfprintf(stderr, format, ap);
	va_end(ap);
	fputc('\n', stderr);
	exit(2);
}

static int landlock_version(void)
{
	long version = syscall(SYS_landlock_create_ruleset, NULL, 0, GET_VERSION);

	return version < 0 ? 0 : (int)version;
}

/*
 * Makes a ruleset that forbids all that this kernel can forbid. Returns -1 if the kernel's Landlock
 * is missing or older than version 2.
 */
static int ruleset(void)
{
	struct ruleset_attr attr = {.fs = FS_ALL_1 | FS_REFER};
	int version = landlock_version(), fd;
	size_t size = sizeof(attr.fs);

	if (version < 2)
		return -1;
	if (version >= 3)
		attr.fs |= FS_TRUNCATE;
	if (version >= 4) {
		attr.net = NET_ALL;
		size += sizeof(attr.net);
	}
	if (version >= 6) {
		attr.scoped = SCOPED_ALL;
		size += sizeof(attr.scoped);
	}
	fd = (int)syscall(SYS_landlock_create_ruleset, &attr, size, 0);
	if (fd < 0)
		die("cannot make a Landlock ruleset: %s", strerror(errno));
	return fd;
}

/* Allows rights on path. A path that does not exist is no error: hosts differ. */
static void allow(int rules, const char *path, uint64_t rights)
{
	struct path_attr attr = {.allowed = rights};
	struct stat st;

	if (rules < 0)
		return;
	attr.fd = open(path, O_PATH | O_CLOEXEC);
	if (attr.fd < 0) {
		if (errno == ENOENT)
			return;
		die("cannot open %s: %s", path, strerror(errno));
	}
	if (fstat(attr.fd, &st))
		die("cannot look at %s: %s", path, strerror(errno));
	if (!S_ISDIR(st.st_mode))
		attr.allowed &= OF_FILES;
	if (!attr.allowed)
		die("%s is no folder", path);
	if (landlock_version() < 3)
		attr.allowed &= ~(uint64_t)FS_TRUNCATE;
	if (syscall(SYS_landlock_add_rule, rules, PATH_BENEATH, &attr, 0))
		die("cannot allow %s: %s", path, strerror(errno));
	close(attr.fd);
}

static uint64_t rights(int option)
{
	switch (option) {
	case 'l':
		return FS_READ_DIR;
	case 'r':
		return READ;
	case 'w':
		return WRITE;
	default:
		return SHARE;
	}
}

static void refuse(scmp_filter_ctx filter, int error, int number, unsigned int count,
		   const struct scmp_arg_cmp *args)
{
	int rc = seccomp_rule_add_array(filter, SCMP_ACT_ERRNO((uint32_t)error), number, count,
					args);

	if (rc)
		die("cannot filter system call %d: %s", number, strerror(-rc));
}

/*
 * refuse_bits: refuses system call number when its argument number mode has the set-user-ID or the
 * set-group-ID bit. If some is not 0, the call is refused only when its argument number flags also
 * has all bits of some.
 */
static void refuse_bits(scmp_filter_ctx filter, int number, unsigned int mode, unsigned int flags,
			unsigned int some)
{
	static const unsigned int bits[] = {S_ISUID, S_ISGID};

	for (size_t i = 0; i < 2; i++) {
		struct scmp_arg_cmp args[] = {
			SCMP_CMP(mode, SCMP_CMP_MASKED_EQ, bits[i], bits[i]),
			SCMP_CMP(flags, SCMP_CMP_MASKED_EQ, some, some),
		};

		refuse(filter, EPERM, number, some ? 2 : 1, args);
	}
}

static void filter_modes(void)
{
	static const unsigned int types[] = {S_IFIFO, S_IFCHR, S_IFBLK, S_IFSOCK};
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
	const int tmpfile = O_TMPFILE & ~O_DIRECTORY;
	int rc;

	if (!filter)
		die("cannot make a filter");
	refuse_bits(filter, SCMP_SYS(chmod), 1, 0, 0);
	refuse_bits(filter, SCMP_SYS(fchmod), 1, 0, 0);
	refuse_bits(filter, SCMP_SYS(fchmodat), 2, 0, 0);
	refuse_bits(filter, 452 /* fchmodat2 */, 2, 0, 0);
	refuse_bits(filter, SCMP_SYS(creat), 1, 0, 0);
	/* open() uses its mode only when it makes a file; otherwise the mode may be any value. */
	refuse_bits(filter, SCMP_SYS(open), 2, 1, O_CREAT);
	refuse_bits(filter, SCMP_SYS(open), 2, 1, (unsigned int)tmpfile);
	refuse_bits(filter, SCMP_SYS(openat), 3, 2, O_CREAT);
	refuse_bits(filter, SCMP_SYS(openat), 3, 2, (unsigned int)tmpfile);
	refuse_bits(filter, SCMP_SYS(mknod), 1, 0, 0);
	refuse_bits(filter, SCMP_SYS(mknodat), 2, 0, 0);
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		struct scmp_arg_cmp of_1 = SCMP_A1(SCMP_CMP_MASKED_EQ, S_IFMT, types[i]);
		struct scmp_arg_cmp of_2 = SCMP_A2(SCMP_CMP_MASKED_EQ, S_IFMT, types[i]);

		refuse(filter, EPERM, SCMP_SYS(mknod), 1, &of_1);
		refuse(filter, EPERM, SCMP_SYS(mknodat), 1, &of_2);
	}
	refuse(filter, ENOSYS, SCMP_SYS(openat2), 0, NULL);
	refuse(filter, ENOSYS, SCMP_SYS(io_uring_setup), 0, NULL);
	rc = seccomp_load(filter);
	if (rc)
		die("cannot load the system call filter: %s", strerror(-rc));
	seccomp_release(filter);
}

/*
 * Takes away the network, other programs' shared memory, and all capabilities. Namespaces that the
 * host does not allow are left out. In its user namespace the process would have capabilities
 * again, over nothing that is outside; they go as well, because they open more of the kernel to it.
 */
static void be_alone(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {};

	if (!unshare(CLONE_NEWUSER))
		unshare(CLONE_NEWNET | CLONE_NEWIPC);
	if (syscall(SYS_capset, &header, none))
		die("cannot give up capabilities: %s", strerror(errno));
}

static void __attribute__((noreturn)) usage(int code)
{
	fputs("usage: qcu-confine [--alone] [--list PATH]... [--read PATH]... [--write PATH]... "
	      "[--share PATH]... COMMAND [ARG]...\n"
	      "  --list PATH   COMMAND may see which names lie in that folder, and below it\n"
	      "  --read PATH   COMMAND may read and execute what lies there\n"
	      "  --write PATH  it may read and write the files that are there\n"
	      "  --share PATH  it may also make and remove files, folders and symbolic links\n"
	      "  --alone       it has no network and no capabilities\n"
	      "With none of them COMMAND may open what its user may, but make no set-user-ID or\n"
	      "set-group-ID files, device nodes, pipes or sockets either.\n"
	      "  --version-of-landlock  print it and end; below 2 no PATH is kept\n",
	      code ? stderr : stdout);
	exit(code);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{"list", required_argument, NULL, 'l'},
		{"read", required_argument, NULL, 'r'},
		{"write", required_argument, NULL, 'w'},
		{"share", required_argument, NULL, 's'},
		{"alone", no_argument, NULL, 'a'},
		{"version-of-landlock", no_argument, NULL, 'v'},
		{"help", no_argument, NULL, 'h'},
		{},
	};
	int rules = -1, option;
	bool kept = false, alone = false;

	while ((option = getopt_long(argc, argv, "+", options, NULL)) != -1) {
		switch (option) {
		case 'l':
		case 'r':
		case 'w':
		case 's':
			if (!kept)
				rules = ruleset();
			kept = true;
			allow(rules, optarg, rights(option));
			break;
		case 'a':
			alone = true;
			break;
		case 'v':
			printf("%d\n", landlock_version());
			return 0;
		case 'h':
			usage(0);
		default:
			usage(2);
		}
	}
	if (optind == argc)
		usage(2);
	if (alone)
		be_alone();
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		die("cannot give up new privileges: %s", strerror(errno));
	if (rules >= 0 && syscall(SYS_landlock_restrict_self, rules, 0))
		die("cannot keep to the files that are allowed: %s", strerror(errno));
	if (rules >= 0)
		close(rules);
	filter_modes();
	execvp(argv[optind], argv + optind);
	die("cannot start %s: %s", argv[optind], strerror(errno));
}
