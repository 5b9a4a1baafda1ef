// SPDX-License-Identifier: GPL-2.0-or-later
/* The program qcu-device: invalid options, its socket, and how it ends. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "tests/unit/device/host/test_device_program.h"

static char program[PATH_MAX];
static char dir[] = "/tmp/qcu-test-XXXXXX";
static char sock[64];

static int find_program(void **state)
{
	(void)state;
	if (program_path(program, "qcu-device/qcu-device") || access(program, X_OK) ||
	    !mkdtemp(dir))
		return -1;
	snprintf(sock, sizeof(sock), "%s/socket", dir);
	return 0;
}

static int clean_up(void **state)
{
	(void)state;
	unlink(sock);
	return rmdir(dir);
}

/* A bad command line: exit code 2, and a message that contains this text. */
static void refused(const char *says, const char *a, const char *b, const char *c, const char *d)
{
	char *const args[] = {program, (char *)a, (char *)b, (char *)c, (char *)d, NULL};
	char text[4096];
	int err, code;
	pid_t pid = program_start(args, &err);

	code = program_finish(pid, err, text, sizeof(text));
	if (code != 2 || !strstr(text, says))
		fail_msg("%s %s %s %s: code %d, %s", a ? a : "", b ? b : "", c ? c : "", d ? d : "",
			 code, text);
}

/* What the software GPU's number is the end of. */
#define SOFT_GPU "GPU-71435544-4120-736f-6674-20475055000"

static void bad_options(void **state)
{
	char path[200];

	(void)state;
	refused("either --socket PATH or --fd N", NULL, NULL, NULL, NULL);
	refused("either --socket PATH or --fd N", "--socket", sock, "--fd", "3");
	refused("1 to 63", "--socket", sock, "--sessions", "0");
	refused("1 to 63", "--socket", sock, "--sessions", "64");
	refused("1 to 63", "--socket", sock, "--sessions", "4x");
	refused("1 to 63", "--socket", sock, "--sessions", "-1");
	refused("0 to 1000000", "--socket", sock, "--poll", "1000001");
	refused("1 to 8", "--socket", sock, "--copiers", "0");
	refused("1 to 8", "--socket", sock, "--copiers", "9");
	refused("1 to 8", "--socket", sock, "--copiers", "2x");
	refused("0 to 16", "--socket", sock, "--prewarm", "17");
	refused("0 to 16", "--socket", sock, "--prewarm", "-1");
	refused("1 to 64", "--socket", sock, "--gpus", "");
	refused("--vram 0", "--socket", sock, "--vram", "0");
	refused("--vram 5Q", "--socket", sock, "--vram", "5Q");
	refused("--vram 1GG", "--socket", sock, "--vram", "1GG");
	refused("--vram -1", "--socket", sock, "--vram", "-1");
	refused("--vram 99999999999999G", "--socket", sock, "--vram", "99999999999999G");
	refused("the names are device-memory", "--socket", sock, "--limit", "voodoo=1");
	refused("--limit streams=0: a number from 1 on", "--socket", sock, "--limit", "streams=0");
	refused("a size like 512M", "--socket", sock, "--limit", "vm-device-memory=1X");
	refused("a number of seconds", "--socket", sock, "--kernel-timeout", "0");
	refused("--nvml all: what is that? (try own or full)", "--socket", sock, "--nvml", "all");
	refused("--nvml : what is that?", "--socket", sock, "--nvml", "");
	refused("all, none or names out of cublas,", "--socket", sock, "--libraries", "voodoo");
	refused("--gpu voodoo", "--socket", sock, "--gpu", "voodoo");
	refused("names as nvidia-smi -L prints them", "--socket", sock, "--gpu", "MIG-1g.10gb");
	refused("names as nvidia-smi -L prints them", "--socket", sock, "--gpu",
		"GPU-01234567-89ab-cdef-0123-456789ABCDEF");
	refused("only one part (MIG)", "--socket", sock, "--gpu",
		"MIG-01234567-89ab-cdef-0123-456789abcdef,"
		"MIG-01234567-89ab-cdef-0123-456789abcdee");
	refused("--map bvm", "--socket", sock, "--map", "bvm");
	refused("--swap-file needs --swap", "--gpu=soft", "--socket", sock, "--swap-file=/tmp:1G");
	refused("FOLDER:SIZE is wanted", "--socket", sock, "--swap-file", "/tmp");
	refused("FOLDER:SIZE is wanted", "--socket", sock, "--swap-file", "/tmp:");
	refused("FOLDER:SIZE is wanted", "--socket", sock, "--swap-file", ":1G");
	refused("--swap-file 0", "--socket", sock, "--swap-file", "/tmp:0");
	refused("--swap-file 1T", "--socket", sock, "--swap-file", "/a:b:1T");
	refused("--swap-file -1", "--socket", sock, "--swap-file", "/tmp:-1");
	refused("--swap-gpu needs --swap", "--gpu=soft", "--socket", sock, "--swap-gpu=soft1:1G");
	refused("GPU:SIZE is wanted", "--socket", sock, "--swap-gpu", "soft1");
	refused("GPU:SIZE is wanted", "--socket", sock, "--swap-gpu", "soft1:");
	refused("GPU:SIZE is wanted", "--socket", sock, "--swap-gpu", ":1G");
	refused("--swap-gpu 0", "--socket", sock, "--swap-gpu", "soft1:0");
	refused("--swap-gpu -1", "--socket", sock, "--swap-gpu", "soft1:-1");
	refused("soft1 to soft15", "--gpu=soft", "--socket", sock, "--swap-gpu=soft:1G");
	refused("soft1 to soft15", "--gpu=soft", "--socket", sock, "--swap-gpu=soft16:1G");
	refused("soft1 to soft15", "--gpu=soft", "--socket", sock, "--swap-gpu=soft-1:1G");
	refused("soft1 to soft15", "--gpu=soft", "--socket", sock, "--swap-gpu=soft01:1G");
	refused("soft1 to soft15", "--gpu=soft", "--socket", sock, "--swap-gpu=soft+1:1G");
	refused("soft1 to soft15", "--gpu=soft", "--socket", sock, "--swap-gpu=soft1x:1G");
	refused("soft1 to soft15", "--gpu=soft", "--socket", sock, "--swap-gpu=GPU-1:1G");
	refused("one of the VM's own", "--gpu=soft", "--gpus=2", "--socket=/x",
		"--swap-gpu=soft1:1G");
	refused("--gpu soft, or", "--socket", sock, "--swap-gpu", "soft1:1G");
	refused("--gpu soft, or", "--socket", sock, "--gpu=cuda",
		"--swap-gpu=GPU-01234567-89ab-cdef-0123-456789abcdef:1G");
	refused("one of the VM's own", "--socket=/x",
		"--gpu=GPU-01234567-89ab-cdef-0123-456789abcdee,"
		"GPU-01234567-89ab-cdef-0123-456789abcdef",
		"--swap-gpu=GPU-01234567-89ab-cdef-0123-456789abcdef:1G", NULL);
	refused("names as nvidia-smi -L prints them", "--socket=/x",
		"--gpu=GPU-01234567-89ab-cdef-0123-456789abcdee", "--swap-gpu=GPU-1:1G", NULL);
	refused("only one part (MIG)", "--socket=/x",
		"--gpu=MIG-01234567-89ab-cdef-0123-456789abcdee",
		"--swap-gpu=GPU-01234567-89ab-cdef-0123-456789abcdef:1G", NULL);
	refused("--take-over needs --socket and --hand-over", "--socket", sock, "--take-over",
		NULL);
	refused("--take-over needs --socket and --hand-over", "--fd", "3", "--take-over", NULL);
	refused("what is more", "--socket", sock, "more", NULL);
	refused("--help", "--nonsense", NULL, NULL, NULL);
	memset(path, 'x', sizeof(path));
	path[sizeof(path) - 1] = 0;
	refused("can have 107 bytes", "--gpu", "soft", "--socket", path);
}

static void no_plugin(void **state)
{
	(void)state;
	setenv("QCU_BACKEND_DIR", dir, 1);
	refused("no cuda backend", "--socket", sock, "--gpu", "cuda");
	unsetenv("QCU_BACKEND_DIR");
}

/* A GPU for the store that is not there, or that the others do not reach. */
static void bad_stores(void **state)
{
	static const char gpu[] = "--gpu=" SOFT_GPU "0", store[] = "--swap-gpu=" SOFT_GPU "1:1G";
	char backends[PATH_MAX];

	(void)state;
	assert_int_equal(program_path(backends, "tests/jail"), 0);
	setenv("QCU_BACKEND_DIR", backends, 1);
	refused("has not found all of these", gpu, store, "--swap=1G", "--socket=/x");
	setenv("QCU_TEST_STORE", "far", 1);
	refused("no access between them", gpu, store, "--swap=1G", "--socket=/x");
	unsetenv("QCU_TEST_STORE");
	unsetenv("QCU_BACKEND_DIR");
	unsetenv("CUDA_VISIBLE_DEVICES");
}

static void bad_sockets(void **state)
{
	int fd;

	(void)state;
	fd = open(sock, O_CREAT | O_WRONLY | O_EXCL, 0600);
	assert_true(fd >= 0);
	close(fd);
	refused("something else than a socket", "--gpu", "soft", "--socket", sock);
	assert_int_equal(unlink(sock), 0);
	refused("--fd 99", "--gpu", "soft", "--fd", "99");
	refused("--fd 0", "--gpu", "soft", "--fd", "0");
}

static void wait_for_socket(void)
{
	struct timespec ms = {.tv_nsec = 1000000};
	struct stat st;
	unsigned int i;

	for (i = 0; stat(sock, &st); i++) {
		assert_true(i < 10000);
		nanosleep(&ms, NULL);
	}
}

/* Connects a client as soon as the program listens. */
static int client(void)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	struct timespec ms = {.tv_nsec = 1000000};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	unsigned int i;

	strcpy(addr.sun_path, sock);
	for (i = 0; connect(fd, (struct sockaddr *)&addr, sizeof(addr)); i++) {
		assert_true(i < 10000);
		nanosleep(&ms, NULL);
	}
	return fd;
}

/* One connection, and no file is left. A second process does not disturb the first. */
static void serves_once(void **state)
{
	char *const args[] = {program, "--gpu", "soft", "--socket", sock, NULL};
	char text[4096];
	struct stat st;
	int err, fd;
	pid_t pid = program_start(args, &err);

	(void)state;
	wait_for_socket();
	refused("another process serves it", "--gpu", "soft", "--socket", sock);
	fd = client();
	close(fd);
	assert_int_equal(program_finish(pid, err, text, sizeof(text)), 0);
	assert_int_equal(stat(sock, &st), -1);
}

static void stale_socket(void **state)
{
	char *const args[] = {program, "--gpu", "soft", "--socket", sock, NULL};
	char text[4096];
	struct stat st;
	int err;
	pid_t pid = program_start(args, &err);

	(void)state;
	wait_for_socket();
	kill(pid, SIGKILL);
	assert_int_equal(program_finish(pid, err, text, sizeof(text)), 128 + SIGKILL);
	assert_int_equal(stat(sock, &st), 0);
	pid = program_start(args, &err);
	close(client());
	assert_int_equal(program_finish(pid, err, text, sizeof(text)), 0);

	/* The program is told to end while it waits for QEMU. */
	pid = program_start(args, &err);
	wait_for_socket();
	kill(pid, SIGTERM);
	assert_int_equal(program_finish(pid, err, text, sizeof(text)), 0);
	assert_int_equal(stat(sock, &st), -1);
}

/* Connects as a user, if this is root. Returns whether the device speaks with the client. */
static bool is_served_as(uid_t uid)
{
	static const uint32_t get_features[] = {1, 1, 0};
	int status;
	pid_t pid = fork();

	if (!pid) {
		uint32_t reply[5];
		int fd;

		if (!geteuid() && uid && setuid(uid))
			_exit(2);
		fd = client();
		if (send(fd, get_features, sizeof(get_features), MSG_NOSIGNAL) < 0)
			_exit(1);
		/* The whole answer: the device fails if it cannot write the rest. */
		_exit(recv(fd, reply, sizeof(reply), MSG_WAITALL) != sizeof(reply));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) < 2);
	return !WEXITSTATUS(status);
}

/* Who is not QEMU's user cannot take the device away from it. */
static void qemu_user(void **state)
{
	char *const args[] = {program, "--gpu",	      "soft",  "--socket",
			      sock,    "--qemu-user", "65533", NULL};
	char text[4096];
	mode_t mask = umask(0);
	int err;
	pid_t pid = program_start(args, &err);

	(void)state;
	umask(mask);
	assert_int_equal(chmod(dir, 0755), 0);
	wait_for_socket();
	assert_false(is_served_as(65532));
	if (!geteuid())
		assert_true(is_served_as(65533));
	else
		kill(pid, SIGTERM);
	assert_int_equal(program_finish(pid, err, text, sizeof(text)), 0);
	assert_non_null(strstr(text, "not come from the user of --qemu-user"));
	refused("--qemu-user root", "--socket", sock, "--qemu-user", "root");
	refused("is for --socket", "--fd", "0", "--qemu-user", "65533");
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(bad_stores),  cmocka_unit_test(bad_options),
		cmocka_unit_test(no_plugin),   cmocka_unit_test(bad_sockets),
		cmocka_unit_test(serves_once), cmocka_unit_test(stale_socket),
		cmocka_unit_test(qemu_user),
	};

	return cmocka_run_group_tests(tests, find_program, clean_up);
}
