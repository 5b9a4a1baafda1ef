// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A process holds much memory in chunks: half a GiB, or four GiB with QCU_TEST_LARGE. posix_spawn,
 * system, popen and vfork+exec copy none of it. Neither does fork+exec if no process touches the
 * memory. If qCUDA's driver is there, the test checks the driver's counters and the free memory:
 * before the child, in the child, and afterwards.
 */
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/loopback/check.h"

#define M      ((size_t)1 << 20)
#define WINDOW 0x200000000000ull
#define STATS  "/sys/kernel/debug/qcuda/stats"
/* Other costs of processes, in KiB. */
#define NOISE (64l << 10)

extern char **environ;

static char self[1024];
static bool driver;
static size_t len = 512 * M;
static long available, copied; /* before the child */

/* Reads one number from a file of names and numbers. */
static long number(const char *file, const char *name)
{
	FILE *f = fopen(file, "r");
	char line[256];
	long value = -1;

	REQUIRE(f, "%s", file);
	while (value < 0 && fgets(line, sizeof(line), f))
		if (!strncmp(line, name, strlen(name)))
			value = atol(line + strlen(name) + 1);
	fclose(f);
	REQUIRE(value >= 0, "no %s in %s", name, file);
	return value;
}

/* Checked in the child, too, while a copy would still exist. */
static void nothing_copied(const char *where)
{
	long now;

	if (!driver)
		return;
	now = number("/proc/meminfo", "MemAvailable:");
	REQUIRE(now >= available - NOISE, "%s: %ld KiB less memory", where, available - now);
	now = number(STATS, "fork_copied_pages");
	REQUIRE(now == copied, "%s: %ld pages were copied", where, now - copied);
	now = number(STATS, "snapshots");
	REQUIRE(now == 0, "%s: %ld snapshots", where, now);
}

static void joined(pid_t pid, const char *what)
{
	int status;

	REQUIRE(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0, "%s: status %x", what,
		status);
	nothing_copied(what);
}

static void spawned(char **argv, const char *what)
{
	pid_t pid;

	REQUIRE(posix_spawn(&pid, self, NULL, NULL, argv, environ) == 0, "posix_spawn");
	joined(pid, what);
}

static void vforked(char **argv)
{
	pid_t pid = vfork();

	if (pid == 0) {
		execv(self, argv);
		_exit(1);
	}
	joined(pid, "vfork");
}

/*
 * The child has the memory until it executes another program, and no page has been copied for it.
 */
static void forked(char **argv)
{
	pid_t pid = fork();

	if (pid == 0) {
		if (driver && number(STATS, "fork_copied_pages") != copied)
			_exit(2);
		execv(self, argv);
		_exit(1);
	}
	joined(pid, "fork");
}

static void by_shell(void)
{
	char command[sizeof(self) + 100], text[100] = "";
	FILE *f;

	snprintf(command, sizeof(command), "%s %ld %ld", self, available, copied);
	REQUIRE(system(command) == 0, "system");
	nothing_copied("system");
	f = popen(command, "r");
	REQUIRE(f && fgets(text, sizeof(text), f) && pclose(f) == 0, "popen");
	REQUIRE(!strcmp(text, "nothing copied\n"), "popen: %s", text);
	nothing_copied("popen");
}

static int child(char **argv)
{
	available = atol(argv[1]);
	copied = atol(argv[2]);
	nothing_copied("in the child");
	puts("nothing copied");
	return 0;
}

int main(int argc, char **argv)
{
	char numbers[2][24], *args[] = {self, numbers[0], numbers[1], NULL}, *p, *dev, *back;
	size_t i;

	driver = access(STATS, R_OK) == 0;
	if (argc == 3)
		return child(argv);
	REQUIRE(readlink("/proc/self/exe", self, sizeof(self) - 1) > 0, "/proc/self/exe");
	if (getenv("QCU_TEST_LARGE") && *getenv("QCU_TEST_LARGE"))
		len = 4096 * M;
	OK(cudaMalloc((void **)&dev, 64 * M));
	p = malloc(len);
	back = malloc(64 * M);
	REQUIRE(p && (uintptr_t)p - WINDOW < 1ull << 40 && back, "%p", p);
	for (i = 0; i < len; i += 4096)
		memcpy(p + i, &i, sizeof(i));
	memset(back, 0, 64 * M);
	/* The GPU uses some of the memory, too. */
	OK(cudaMemcpy(dev, p, 64 * M, cudaMemcpyHostToDevice));
	if (driver) {
		available = number("/proc/meminfo", "MemAvailable:");
		copied = number(STATS, "fork_copied_pages");
	}
	snprintf(numbers[0], sizeof(numbers[0]), "%ld", available);
	snprintf(numbers[1], sizeof(numbers[1]), "%ld", copied);
	fflush(stdout);
	spawned(args, "posix_spawn");
	vforked(args);
	by_shell();
	forked(args);
	spawned(args, "posix_spawn again");

	OK(cudaMemcpy(dev, p + len - 64 * M, 64 * M, cudaMemcpyHostToDevice));
	OK(cudaMemcpy(back, dev, 64 * M, cudaMemcpyDeviceToHost));
	REQUIRE(differs(back, p + len - 64 * M, 64 * M) == 64 * M, "a copy afterwards");
	for (i = 0; i < len; i += 4096)
		REQUIRE(!memcmp(p + i, &i, sizeof(i)), "byte %zu has changed", i);
	nothing_copied("at the end");
	free(p);
	free(back);
	OK(cudaFree(dev));
	printf("%zu MiB%s\n", len / M, driver ? "" : " (no driver to ask)");
	return 0;
}
