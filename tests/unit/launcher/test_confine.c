// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * qcu-confine: what a QEMU that obeys its guest cannot do. This program starts itself behind
 * qcu-confine, once for each attempt. The error of the attempt is its exit code.
 */
#define _GNU_SOURCE
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef SYS_io_uring_setup
#define SYS_io_uring_setup 425
#endif
#ifndef SYS_fchmodat2
#define SYS_fchmodat2 452
#endif

static char base[64]; /* the test's folder; share/ in it is shared, and attempts run there */

/* Returns 0, or the error of the call. */
static int result(long value)
{
	return value < 0 ? errno : 0;
}

static int try_chmod(void)
{
	return result(chmod("file", 04755));
}

static int try_chmod_group(void)
{
	return result(chmod("file", 02755));
}

static int try_chmod_both(void)
{
	return result(chmod("file", 07777));
}

static int try_fchmod(void)
{
	return result(fchmod(open("file", O_RDWR), 04755));
}

static int try_fchmodat(void)
{
	return result(syscall(SYS_fchmodat, AT_FDCWD, "file", 04755));
}

static int try_fchmodat2(void)
{
	return result(syscall(SYS_fchmodat2, AT_FDCWD, "file", 04755, 0));
}

/* For the kernel, modes are 16 bits. Bits above them must not hide the bits that are refused. */
static int try_chmod_high_bits(void)
{
	return result(syscall(SYS_chmod, "file", 0xffffffff00000000UL | 0xffff0000UL | 04755));
}

static int try_open(void)
{
	return result(open("made", O_CREAT | O_RDWR, 04755));
}

static int try_open_call(void)
{
	return result(syscall(SYS_open, "made", O_CREAT | O_RDWR, 02755));
}

static int try_creat(void)
{
	return result(syscall(SYS_creat, "made", 04755));
}

static int try_tmpfile(void)
{
	return result(open(".", O_TMPFILE | O_RDWR, 04755));
}

static int try_openat2(void)
{
	struct open_how how = {.flags = O_CREAT | O_RDWR, .mode = 04755};

	return result(syscall(SYS_openat2, AT_FDCWD, "made", &how, sizeof(how)));
}

static int try_io_uring(void)
{
	char params[120] = "";

	return result(syscall(SYS_io_uring_setup, 4, params));
}

static int try_mknod_setuid(void)
{
	return result(mknod("made", S_IFREG | 04755, 0));
}

static int try_mknod_char(void)
{
	return result(mknod("made", S_IFCHR | 0666, 0x103));
}

static int try_mknod_block(void)
{
	return result(syscall(SYS_mknod, "made", S_IFBLK | 0666, 0x700));
}

static int try_mknod_socket(void)
{
	return result(mknod("made", S_IFSOCK | 0666, 0));
}

static int try_mkfifo(void)
{
	return result(mkfifo("made", 0666));
}

/* The system call of 32-bit programs has another number: it must end the program by a signal. */
static int try_32_bits(void)
{
#ifdef __x86_64__
	long rc;

	/* 15: chmod; the address does not matter. */
	__asm__ volatile("int $0x80" : "=a"(rc) : "a"(15), "b"(0), "c"(04755) : "memory");
	return rc == -EFAULT ? 0 : 1;
#else
	abort();
#endif
}

/* Refused with Landlock only. */
static int try_bind(void)
{
	struct sockaddr_un to = {.sun_family = AF_UNIX, .sun_path = "made"};

	return result(bind(socket(AF_UNIX, SOCK_STREAM, 0), (struct sockaddr *)&to, sizeof(to)));
}

static int try_read_outside(void)
{
	return result(open("../outside", O_RDONLY));
}

static int try_write_outside(void)
{
	return result(open("../outside", O_WRONLY));
}

static int try_create_outside(void)
{
	return result(open("../made", O_CREAT | O_WRONLY, 0644));
}

static int try_through_link(void)
{
	return result(open("link-out", O_RDONLY));
}

static int try_move_out(void)
{
	return result(rename("file", "../made"));
}

static int try_link_in(void)
{
	return result(link("../outside", "made"));
}

static int try_make_in_read_only(void)
{
	return result(open("../read/made", O_CREAT | O_WRONLY, 0644));
}

static int try_make_in_write_only(void)
{
	return result(open("../write/made", O_CREAT | O_WRONLY, 0644));
}

static int try_read_listed(void)
{
	return result(open("../listed/file", O_RDONLY));
}

static int try_write_listed(void)
{
	return result(open("../listed/made", O_CREAT | O_WRONLY, 0644));
}

static int try_list_listed(void)
{
	return result(open("../listed", O_RDONLY | O_DIRECTORY));
}

static int try_list_outside(void)
{
	return result(open("..", O_RDONLY | O_DIRECTORY));
}

/* These calls must go on working. */
static int try_honest(void)
{
	int fd = open("made", O_CREAT | O_EXCL | O_RDWR, 0755);
	struct stat st;

	if (fd < 0 || write(fd, "x", 1) != 1 || ftruncate(fd, 0) || fchmod(fd, 01755))
		return errno;
	if (chmod("made", 0700) || mkdir("folder", 02755) || rename("made", "folder/moved"))
		return errno;
	if (symlink("/etc", "folder/link") || link("folder/moved", "again"))
		return errno;
	if (mknod("node", S_IFREG | 0644, 0) || unlink("node") || unlink("folder/link"))
		return errno;
	if (unlink("folder/moved") || rmdir("folder") || stat("again", &st) || unlink("again"))
		return errno;
	/* Without O_CREAT the mode is ignored. */
	if (syscall(SYS_openat, AT_FDCWD, "file", O_RDONLY, 04755) < 0)
		return errno;
	if (open("../read/file", O_RDONLY) < 0 || open("../write/file", O_RDWR | O_TRUNC) < 0)
		return errno;
	return 0;
}

static const struct attempt {
	const char *name;
	int (*run)(void);
	int error; /* the expected error; -1: a signal */
} modes[] =
	{
		{"chmod", try_chmod, EPERM},
		{"chmod-group", try_chmod_group, EPERM},
		{"chmod-both", try_chmod_both, EPERM},
		{"chmod-high-bits", try_chmod_high_bits, EPERM},
		{"fchmod", try_fchmod, EPERM},
		{"fchmodat", try_fchmodat, EPERM},
		{"fchmodat2", try_fchmodat2, EPERM},
		{"open", try_open, EPERM},
		{"open-call", try_open_call, EPERM},
		{"creat", try_creat, EPERM},
		{"tmpfile", try_tmpfile, EPERM},
		{"openat2", try_openat2, ENOSYS},
		{"io-uring", try_io_uring, ENOSYS},
		{"mknod-setuid", try_mknod_setuid, EPERM},
		{"mknod-char", try_mknod_char, EPERM},
		{"mknod-block", try_mknod_block, EPERM},
		{"mknod-socket", try_mknod_socket, EPERM},
		{"mkfifo", try_mkfifo, EPERM},
		{"32-bits", try_32_bits, -1},
		{"honest", try_honest, 0},
},
  files[] = {
	  {"bind", try_bind, EACCES},
	  {"read-outside", try_read_outside, EACCES},
	  {"write-outside", try_write_outside, EACCES},
	  {"create-outside", try_create_outside, EACCES},
	  {"through-link", try_through_link, EACCES},
	  {"move-out", try_move_out, EACCES},
	  {"link-in", try_link_in, EXDEV},
	  {"read-listed", try_read_listed, EACCES},
	  {"write-listed", try_write_listed, EACCES},
	  {"list-listed", try_list_listed, 0},
	  {"list-outside", try_list_outside, EACCES},
	  {"make-in-read-only", try_make_in_read_only, EACCES},
	  {"make-in-write-only", try_make_in_write_only, EACCES},
};

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* Runs the attempt of that name. Returns this program's exit code. */
static int attempt(const char *name)
{
	for (size_t i = 0; i < COUNT(modes); i++) {
		if (!strcmp(modes[i].name, name))
			return modes[i].run();
	}
	for (size_t i = 0; i < COUNT(files); i++) {
		if (!strcmp(files[i].name, name))
			return files[i].run();
	}
	return 255;
}

static void make(const char *name)
{
	char path[128];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", base, name);
	f = fopen(path, "w");
	assert_non_null(f);
	fclose(f);
}

static int start(void **state)
{
	static const char *const folders[] = {"share", "read", "write", "listed"};
	char path[128];

	(void)state;
	strcpy(base, "/tmp/qcu-test-confine.XXXXXX");
	assert_non_null(mkdtemp(base));
	for (size_t i = 0; i < COUNT(folders); i++) {
		snprintf(path, sizeof(path), "%s/%s", base, folders[i]);
		assert_int_equal(mkdir(path, 0755), 0);
	}
	make("share/file");
	make("read/file");
	make("write/file");
	make("listed/file");
	make("outside");
	snprintf(path, sizeof(path), "%s/share/link-out", base);
	assert_int_equal(symlink("../outside", path), 0);
	return 0;
}

static int stop(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf '%s'", base);
	return system(command);
}

/* Runs a command in the shared folder. Returns the shell's exit code, or -1 for a signal. */
static int shell(const char *command)
{
	char line[2100];
	int rc;

	snprintf(line, sizeof(line), "exec %s", command);
	rc = system(line);
	return WIFEXITED(rc) ? WEXITSTATUS(rc) : -1;
}

static char *self, *confine;

/* behind OPTIONS NAME: runs the attempt behind qcu-confine with these options. */
static int behind(const char *options, const char *name)
{
	char command[1024], here[512];

	assert_non_null(getcwd(here, sizeof(here)));
	snprintf(command, sizeof(command), "'%s' %s '%s' --try '%s/share' %s", confine, options,
		 self, base, name);
	return shell(command);
}

static void check_all(const char *options, const struct attempt *list, size_t count)
{
	int bad = 0;

	for (size_t i = 0; i < count; i++) {
		int rc = behind(options, list[i].name);

		if (rc == list[i].error)
			continue;
		print_error("%s %s: %d, not %d\n", options, list[i].name, rc, list[i].error);
		bad++;
	}
	assert_int_equal(bad, 0);
}

static const char *paths(void)
{
	static char options[1024];

	snprintf(options, sizeof(options),
		 "--read /proc --read /usr --read /lib --read /lib64 --read /etc/ld.so.cache "
		 "--read /nowhere "
		 "--read '%s' --read '%s/read' --write '%s/write' --share '%s/share' "
		 "--list '%s/listed'",
		 self, base, base, base, base);
	return options;
}

static void no_such_files(void **state)
{
	(void)state;
	check_all("", modes, COUNT(modes));
}

static bool has_landlock(void)
{
	char command[1024];

	snprintf(command, sizeof(command), "test \"$('%s' --version-of-landlock)\" -ge 2", confine);
	return system(command) == 0;
}

static void only_these_files(void **state)
{
	(void)state;
	if (!has_landlock()) {
		print_message("this kernel has no Landlock\n");
		skip();
	}
	check_all(paths(), modes, COUNT(modes));
	check_all(paths(), files, COUNT(files));
}

/* qcu-confine reports the error, and starts nothing. */
static void wrong_calls(void **state)
{
	char command[1024];

	(void)state;
	snprintf(command, sizeof(command), "'%s' 2>/dev/null", confine);
	assert_int_equal(shell(command), 2);
	snprintf(command, sizeof(command), "'%s' --speed 9 true 2>/dev/null", confine);
	assert_int_equal(shell(command), 2);
	snprintf(command, sizeof(command), "'%s' ./no-such-program 2>/dev/null", confine);
	assert_int_equal(shell(command), 2);
	if (has_landlock()) {
		snprintf(command, sizeof(command), "'%s' --list '%s' true 2>/dev/null", confine,
			 confine);
		assert_int_equal(shell(command), 2);
	}
	snprintf(command, sizeof(command), "'%s' sh -c 'exit 7'", confine);
	assert_int_equal(shell(command), 7);
}

/* Runs the shell's command behind qcu-confine, with these options. */
static int confined(const char *how, const char *what)
{
	char command[2048];

	snprintf(command, sizeof(command), "'%s' %s sh -c '%s' 2>/dev/null", confine, how, what);
	return shell(command);
}

static void alone(void **state)
{
	char file[80], command[128];

	(void)state;
	assert_int_equal(confined("--alone", "exit 7"), 7);
	assert_int_equal(confined("--alone", "grep -q \"^CapPrm:[[:space:]]*0*$\" "
					     "/proc/self/status"),
			 0);
	if (shell("unshare --user --net --ipc true 2>/dev/null") == 0)
		assert_int_equal(confined("--alone", "! grep -v lo: /proc/net/dev | grep :"), 0);
	/* Without capabilities, root may not open what belongs to others. */
	if (geteuid())
		return;
	snprintf(file, sizeof(file), "%s/other", base);
	snprintf(command, sizeof(command), "cat %s", file);
	assert_int_equal(close(open(file, O_CREAT | O_WRONLY, 0600)), 0);
	assert_int_equal(chown(file, 1, 1), 0);
	assert_int_equal(confined("", command), 0);
	assert_int_not_equal(confined("--alone", command), 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(wrong_calls, start, stop),
		cmocka_unit_test_setup_teardown(no_such_files, start, stop),
		cmocka_unit_test_setup_teardown(only_these_files, start, stop),
		cmocka_unit_test_setup_teardown(alone, start, stop),
	};

	if (argc == 4 && !strcmp(argv[1], "--try"))
		return chdir(argv[2]) ? 254 : attempt(argv[3]);
	self = realpath(argv[0], NULL);
	confine = realpath(CONFINE, NULL);
	if (!self || !confine) {
		perror("test_confine: " CONFINE);
		return 1;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
