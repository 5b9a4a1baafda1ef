// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Each mirror has a control group of its own, with bounds for memory and tasks; one that reaches
 * the bound ends, and no other. Without control groups the device says so, and starts.
 *
 * With QCU_TEST_GROUPS the machine is one whose groups this test may change, as in
 * tests/vm/machine/groups.sh. Elsewhere the device only starts, whatever the machine gives.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "tests/unit/device/host/test_device_frontend.h"
#include "tests/unit/device/host/test_device_program.h"

#define MIB 0x100000ull

static char self[PATH_MAX], program[PATH_MAX],
	group[PATH_MAX - 64]; /* group: "" if there is none */
static struct frontend fe;
static FILE *log_file;

static bool write_text(const char *name, const char *text)
{
	char path[PATH_MAX];
	int fd;
	bool ok;

	snprintf(path, sizeof(path), "%s/%s", group, name);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	ok = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
	if (fd >= 0)
		close(fd);
	return ok;
}

/* Makes a group below the machine's first one. */
static bool make_group(void)
{
	static const char *const roots[] = {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"};
	unsigned int i;

	for (i = 0; i < 2; i++) {
		snprintf(group, sizeof(group), "%s", roots[i]);
		if (write_text("cgroup.subtree_control", "+memory +pids"))
			break;
	}
	if (i == 2) {
		group[0] = 0;
		return false;
	}
	snprintf(group, sizeof(group), "%s/qcu-test-%d", roots[i], getpid());
	return !mkdir(group, 0755);
}

static int find_programs(void **state)
{
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	(void)state;
	if (getenv("QCU_TEST_GROUPS") && !make_group())
		return -1;
	return n < 0 || program_path(program, "qcu-device/qcu-device");
}

/* Goes on as another program, in the group. */
static int enter(char **argv)
{
	snprintf(group, sizeof(group), "%s", argv[0]);
	if (write_text("cgroup.procs", "0"))
		execv(argv[1], argv + 1);
	return 1;
}

static int works(unsigned int session)
{
	struct qCUcmd c = {.op = QCU_OP_DEVICE_SYNC, .tid = 1};

	return fe_ask(&fe, session, &c, 0, 0);
}

/* Two sessions of a device that is in the group, if there is one. */
static void start(void)
{
	char word[] = "--enter", gpu_option[] = "--gpu", gpu[] = "soft", vram_option[] = "--vram";
	char vram[] = "1G", limit_option[] = "--limit", memory[] = "host-memory=256M";
	char lanes[] = "lanes=30";
	char *argv[] = {self, word,	    group,  program,	  gpu_option, gpu, vram_option,
			vram, limit_option, memory, limit_option, lanes,      NULL};
	unsigned int q;

	log_file = tmpfile();
	assert_non_null(log_file);
	fe_start_program(&fe, group[0] ? argv : argv + 3, fileno(log_file));
	for (q = 0; q < 3; q++)
		fe_queue_start(&fe, q);
	for (q = 1; q < 3; q++)
		assert_int_equal(fe_open(&fe, q) || works(q), 0);
}

static bool said(const char *text)
{
	char line[256];
	bool found = false;

	rewind(log_file);
	while (!found && fgets(line, sizeof(line), log_file))
		found = strstr(line, text);
	return found;
}

static void stop(void)
{
	int status = fe_stop(&fe);

	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	fclose(log_file);
}

/* Device memory of the software GPU is the host's. Returns FE_GONE if the session has ended. */
static int use(unsigned int session, uint64_t bytes)
{
	struct qCUcmd c = {.op = QCU_OP_MALLOC, .tid = 1, .malloc = {.size = bytes}};
	struct qCUcmd set = {.op = QCU_OP_MEMSET, .tid = 1};
	int rc = fe_ask(&fe, session, &c, 0, 0);

	if (rc)
		return rc;
	set.memset.dst = c.malloc.ptr;
	set.memset.value = 7;
	set.memset.elem = 1;
	set.memset.width = bytes;
	set.memset.height = 1;
	rc = fe_ask(&fe, session, &set, 0, 0);
	return rc ? rc : works(session);
}

/* The folder of a process's group, of version 2. */
static void group_of(pid_t pid, char *path, size_t size)
{
	char file[64], line[PATH_MAX] = "";
	FILE *f;

	snprintf(file, sizeof(file), "/proc/%d/cgroup", pid);
	f = fopen(file, "r");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f) && strncmp(line, "0::", 3))
		line[0] = 0;
	fclose(f);
	line[strcspn(line, "\n")] = 0;
	assert_non_null(strstr(line, "/qcu-test-"));
	snprintf(path, size, "%.*s%s", (int)(strstr(group, "/qcu-test-") - group), group, line + 3);
}

static uint64_t value(const char *dir, const char *name)
{
	char path[2 * PATH_MAX];
	unsigned long long n = 0;
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "r");
	assert_non_null(f);
	if (fscanf(f, "%llu", &n) != 1)
		n = 0;
	fclose(f);
	return n;
}

static void each_its_own(void **state)
{
	char first[PATH_MAX], second[PATH_MAX], main_group[PATH_MAX];

	(void)state;
	if (!group[0])
		skip();
	start();
	assert_false(said("without a control group"));
	group_of(fe_mirror(&fe, 1), first, sizeof(first));
	group_of(fe_mirror(&fe, 2), second, sizeof(second));
	group_of(fe.server, main_group, sizeof(main_group));
	assert_string_not_equal(first, second);
	assert_string_not_equal(first, main_group);
	assert_string_not_equal(second, main_group);
	assert_int_equal(value(first, "pids.max"), 30 + 4096 + 1024);
	assert_in_range(value(first, "memory.max"), 256 * MIB, 512 * MIB);
	/* Below the bound, and above it. */
	assert_int_equal(use(1, 64 * MIB), 0);
	assert_int_equal(use(2, 64 * MIB), 0);
	assert_true(value(first, "memory.current") >= 64 * MIB);
	assert_int_equal(use(1, 768 * MIB), FE_GONE);
	assert_int_equal(works(2), 0);
	assert_true(said("session 1"));
	/* The next session can have the group. */
	assert_int_equal(fe_close(&fe, 1), 0);
	assert_int_equal(fe_open(&fe, 1), 0);
	assert_int_equal(use(1, 64 * MIB), 0);
	assert_int_equal(use(2, 64 * MIB), 0);
	stop();
	/* What a device has left, the next one removes. It gets into the group again only so. */
	assert_int_equal(access(first, F_OK), 0);
	assert_true(write_text("cgroup.subtree_control", "-memory -pids"));
	start();
	assert_int_equal(access(first, F_OK), -1);
	assert_false(said("without a control group"));
	stop();
}

/* Another program is in the group. */
static void not_alone(void **state)
{
	pid_t pid = group[0] ? fork() : 0;

	(void)state;
	if (group[0] && !pid) {
		if (write_text("cgroup.procs", "0"))
			for (;;)
				pause();
		_exit(1);
	}
	while (group[0] && !value(group, "cgroup.procs"))
		usleep(1000);
	start();
	if (group[0])
		assert_true(said("without a control group for each mirror: "));
	assert_int_equal(works(1) | works(2), 0);
	stop();
	if (pid) {
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(not_alone),
					   cmocka_unit_test(each_its_own)};

	if (argc > 3 && !strcmp(argv[1], "--enter"))
		return enter(argv + 2);
	return cmocka_run_group_tests(tests, find_programs, NULL);
}
