// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A checked program may end by exit(), quick_exit(), _exit() or _Exit(), also inside a host
 * function, and with children. Its findings are counted each time, once, and decide its exit code
 * if that is asked for. A program that is not checked, or that has no findings, ends as it wants.
 *
 * The program starts itself anew for each case, with the case's name.
 */
#include <sys/wait.h>
#include <unistd.h>

#include "tests/loopback/check.h"

#define N 32

__global__ void reads(const int *in, int *out)
{
	out[threadIdx.x] = in[threadIdx.x];
}

/* Does work with one finding, or none. */
static void work(bool finding)
{
	int *in, *out;

	OK(cudaMalloc((void **)&in, N * sizeof(int)));
	OK(cudaMalloc((void **)&out, N * sizeof(int)));
	if (!finding)
		OK(cudaMemset(in, 1, N * sizeof(int)));
	reads<<<1, N>>>(in, out);
}

static void leave(void *unused)
{
	(void)unused;
	_exit(3);
}

static void wait_for(pid_t pid, int code)
{
	int status;

	REQUIRE(pid > 0 && waitpid(pid, &status, 0) == pid, "no child");
	REQUIRE(WIFEXITED(status) && WEXITSTATUS(status) == code, "the child ended with %x",
		status);
}

static int run(const char *how)
{
	pid_t pid;

	if (!strcmp(how, "no-cuda"))
		_exit(3);
	if (!strcmp(how, "fork-works")) {
		pid = fork();
		if (!pid) {
			work(true);
			_exit(3);
		}
		wait_for(pid, 42);
		return 3;
	}
	work(strcmp(how, "nothing") != 0);
	if (!strcmp(how, "fork")) {
		pid = fork();
		if (!pid)
			_exit(5);
		wait_for(pid, 5);
	} else if (!strcmp(how, "vfork")) {
		pid = vfork();
		if (!pid)
			_exit(5);
		wait_for(pid, 5);
	} else if (!strcmp(how, "host-function")) {
		OK(cudaLaunchHostFunc(0, leave, NULL));
		OK(cudaDeviceSynchronize());
	} else if (!strcmp(how, "quick_exit")) {
		quick_exit(3);
	} else if (!strcmp(how, "_Exit")) {
		_Exit(3);
	} else if (!strcmp(how, "exit")) {
		exit(3);
	}
	_exit(3);
}

/* Runs one case: `told` is how often the program says that there are findings. */
static void expect_end(const char *how, bool checked, bool with_code, int code, const char *text,
		       int told)
{
	static char said[1 << 16];
	size_t len = 0;
	ssize_t n;
	int fds[2], status, got = 0;
	pid_t pid;

	REQUIRE(!pipe(fds), "no pipe");
	pid = fork();
	if (!pid) {
		setenv("QCU_SOFT_CHECK", "1", 1);
		if (checked)
			setenv("QCU_CHECK", "1", 1);
		if (with_code)
			setenv("QCU_CHECK_EXITCODE", "42", 1);
		dup2(fds[1], 2);
		close(fds[0]);
		close(fds[1]);
		execl("/proc/self/exe", "check_exit", how, (char *)NULL);
		_exit(99);
	}
	close(fds[1]);
	while ((n = read(fds[0], said + len, sizeof(said) - 1 - len)) > 0)
		len += n;
	close(fds[0]);
	said[len] = 0;
	REQUIRE(pid > 0 && waitpid(pid, &status, 0) == pid, "no child");
	for (const char *s = said; (s = strstr(s, "qcuda: check: ")); s++)
		got++;
	REQUIRE(WIFEXITED(status) && WEXITSTATUS(status) == code && got == told &&
			(!told || strstr(said, text)),
		"%s: status %x, not %d, and %d times, not %d, '%s' in:\n%s", how, status, code, got,
		told, text, said);
}

int main(int argc, char **argv)
{
	static const char *const ways[] = {"exit", "_exit", "_Exit",	    "quick_exit",
					   "fork", "vfork", "host-function"};

	if (argc > 1)
		return run(argv[1]);
	expect_end("no-cuda", true, true, 3, "", 0);
	expect_end("_exit", false, true, 3, "", 0);
	expect_end("nothing", true, true, 3, "check: 0 findings\n", 1);
	for (const char *how : ways) {
		expect_end(how, true, true, 42, "check: 1 finding\n", 1);
		expect_end(how, true, false, 3, "check: 1 finding\n", 1);
	}
	expect_end("fork-works", true, true, 3, "check: 1 finding\n", 1);
	printf("check_exit: a program's findings count, however it ends\n");
	return 0;
}
