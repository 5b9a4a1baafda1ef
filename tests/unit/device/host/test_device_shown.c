// SPDX-License-Identifier: GPL-2.0-or-later
/* A device that takes another one's place has the place of its metrics, too, before it goes on. */
#define _GNU_SOURCE /* memfd_create */
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
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "qcu-device/host/metrics.h"

static pid_t only_child(void)
{
	pid_t child = 0;
	char path[64];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%d/children", getpid());
	f = fopen(path, "r");
	assert_non_null(f);
	assert_int_equal(fscanf(f, "%d", &child), 1);
	fclose(f);
	return child;
}

/* Another process lets it go on a little later. */
static void stop_for_a_while(pid_t pid)
{
	assert_int_equal(kill(pid, SIGSTOP), 0);
	if (fork())
		return;
	nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
	kill(pid, SIGCONT);
	_exit(0);
}

static void has_its_place(void **state)
{
	const struct board_device device = {.name = "vm", .gpu = "soft", .sessions = 1};
	const struct jail jail = {.off = true};
	int usage = memfd_create("usage", MFD_CLOEXEC), board = memfd_create("board", MFD_CLOEXEC);
	char dir[] = "/tmp/qcu-test-XXXXXX", place[64], name[] = "a name with some room";
	char *argv[] = {name, NULL};
	struct stat st;

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(place, sizeof(place), "%s/metrics", dir);
	assert_null(metrics_start(place, true, METRICS_NO_GROUP, &device, &jail, argv));
	assert_int_equal(lstat(place, &st), -1);
	stop_for_a_while(only_child());
	metrics_show(usage, board);
	assert_int_equal(lstat(place, &st), 0);
	metrics_stop();
	while (wait(NULL) > 0)
		;
	assert_int_equal(rmdir(dir), 0);
	close(usage);
	close(board);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(has_its_place),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
