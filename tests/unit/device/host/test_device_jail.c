// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The jail, from inside: a mirror of the program qcu-device tries what an attacker in the mirror
 * would try (jail_backend.c). QCU_TEST_BACKEND=PATH runs the test with be_cuda.so, on a GPU.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "tests/unit/device/host/test_device_frontend.h"
#include "tests/unit/device/host/test_device_program.h"

static char program[PATH_MAX], backend_dir[PATH_MAX];
static struct frontend fe;
static FILE *log_file;

static int find_programs(void **state)
{
	(void)state;
	if (program_path(program, "qcu-device/qcu-device") ||
	    program_path(backend_dir, "tests/jail"))
		return -1;
	setenv("QCU_BACKEND_DIR", backend_dir, 1);
	setenv("QCU_TEST_BACKEND", "soft", 0);
	return access(program, X_OK);
}

/* Runs a session whose backend makes all the attempts. Its messages are in log_file. */
static void start(char *option)
{
	char gpu_option[] = "--gpu", gpu[] = "cuda";
	char *argv[] = {program, gpu_option, gpu, option, NULL};
	struct qCUcmd info = {.op = QCU_OP_INFO, .tid = 1};

	log_file = tmpfile();
	assert_non_null(log_file);
	fe_start_program(&fe, argv, fileno(log_file));
	fe_queue_start(&fe, 0);
	fe_queue_start(&fe, 1);
	assert_int_equal(fe_open(&fe, 1), 0);
	assert_int_equal(fe_ask(&fe, 1, &info, 0, 0), 0);
	assert_true(info.info.devices > 0);
}

static void stop(void)
{
	int status = fe_stop(&fe);

	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	fclose(log_file);
}

/* Counts the lines about refused attempts and about attempts that succeeded. */
static void count(unsigned int *refused, unsigned int *done, bool *all)
{
	char line[256];

	*refused = *done = 0;
	*all = false;
	rewind(log_file);
	while (fgets(line, sizeof(line), log_file)) {
		if (strncmp(line, "jail: ", 6))
			continue;
		*refused += !!strstr(line, ": refused");
		*done += !!strstr(line, ": DONE");
		*all |= !!strstr(line, "that was all");
		if (strstr(line, ": DONE"))
			fputs(line, stderr);
	}
}

static void everything_is_refused(void **state)
{
	unsigned int refused, done;
	bool all;

	(void)state;
	start(NULL);
	count(&refused, &done, &all);
	assert_true(all);
	assert_int_equal(done, 0);
	assert_true(refused >= 42);
	stop();
}

/* Without a jail, some of the same attempts succeed. A message says that there is no jail. */
static void without_a_jail(void **state)
{
	char option[] = "--no-sandbox", line[256];
	unsigned int refused, done;
	bool all, said = false;

	(void)state;
	start(option);
	count(&refused, &done, &all);
	assert_true(all);
	assert_int_equal(done, 7);
	assert_int_equal(refused, 0);
	rewind(log_file);
	while (fgets(line, sizeof(line), log_file))
		said |= !!strstr(line, "NO SANDBOX");
	assert_true(said);
	stop();
}

static unsigned long number(pid_t pid, const char *file, const char *format)
{
	char path[64], line[256];
	unsigned long value = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, file);
	f = fopen(path, "r");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f) && sscanf(line, format, &value) != 1)
		;
	fclose(f);
	return value;
}

/* Returns where the first mapping with this name begins. */
static unsigned long place(pid_t pid, const char *name)
{
	char path[64], line[512];
	unsigned long at = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	f = fopen(path, "r");
	assert_non_null(f);
	while (!at && fgets(line, sizeof(line), f))
		if (strstr(line, name))
			sscanf(line, "%lx-", &at);
	fclose(f);
	assert_int_not_equal(at, 0);
	return at;
}

/* An ordinary user, no capabilities, no new privileges, and randomised addresses. */
static void rights_and_addresses(void **state)
{
	unsigned long mine = number(getpid(), "status", "Uid: %lu"), stack[2], first[2];
	pid_t pid[2];
	unsigned int i;

	(void)state;
	start(NULL);
	fe_queue_start(&fe, 2);
	assert_int_equal(fe_open(&fe, 2), 0);
	for (i = 0; i < 2; i++) {
		struct qCUcmd info = {.op = QCU_OP_INFO, .tid = 1};

		assert_int_equal(fe_ask(&fe, i + 1, &info, 0, 0), 0);
		pid[i] = fe_mirror(&fe, i + 1);
		assert_true(pid[i] > 0);
		if (!geteuid())
			assert_int_not_equal(number(pid[i], "status", "Uid: %lu"), mine);
		assert_int_equal(number(pid[i], "status", "CapPrm: %lx"), 0);
		assert_int_equal(number(pid[i], "status", "CapEff: %lx"), 0);
		assert_int_equal(number(pid[i], "status", "NoNewPrivs: %lu"), 1);
		assert_int_equal(number(pid[i], "status", "Seccomp: %lu"), 2);
		stack[i] = place(pid[i], "[stack]");
		first[i] = place(pid[i], "/ld-linux");
	}
	assert_int_equal(number(fe.server, "status", "CapEff: %lx"), 0);
	assert_int_equal(number(fe.server, "status", "Seccomp: %lu"), 2);
	assert_int_not_equal(stack[0], stack[1]);
	assert_int_not_equal(first[0], first[1]);
	stop();
}

/* A GPU whose kernels could reach the mirror's own memory is used only if it is named. */
static void open_gpu(void **state)
{
	char gpu_option[] = "--gpu", gpu[] = "cuda", fd_option[] = "--fd", fd[] = "0";
	char option[] = "--let-kernels-reach-all-memory", line[512];
	char *argv[] = {program, gpu_option, gpu, fd_option, fd, NULL};
	int status, pair[2];
	bool said = false;
	FILE *log;
	pid_t pid;

	(void)state;
	setenv("QCU_TEST_PAGEABLE", "1", 1);
	log = tmpfile();
	assert_non_null(log);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	pid = fork();
	if (!pid) {
		dup2(pair[1], 0);
		dup2(fileno(log), 2);
		execv(program, argv);
		_exit(127);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 2);
	rewind(log);
	while (fgets(line, sizeof(line), log))
		said |= strstr(line, "HMM or ATS") && strstr(line, option);
	assert_true(said);
	fclose(log);
	close(pair[0]);
	close(pair[1]);
	start(option);
	stop();
	unsetenv("QCU_TEST_PAGEABLE");
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(everything_is_refused),
		cmocka_unit_test(without_a_jail),
		cmocka_unit_test(rights_and_addresses),
		cmocka_unit_test(open_gpu),
	};

	return cmocka_run_group_tests(tests, find_programs, NULL);
}
