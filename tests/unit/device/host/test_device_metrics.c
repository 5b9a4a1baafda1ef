// SPDX-License-Identifier: GPL-2.0-or-later
/* The socket with a device's metrics: where it is, whose it is, and who may disturb whom. */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
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
static char sock[64], beside[80], named[64];

static int find_program(void **state)
{
	(void)state;
	if (program_path(program, "qcu-device/qcu-device") || access(program, X_OK) ||
	    !mkdtemp(dir))
		return -1;
	snprintf(sock, sizeof(sock), "%s/vm7.sock", dir);
	snprintf(beside, sizeof(beside), "%s.metrics", sock);
	snprintf(named, sizeof(named), "%s/numbers", dir);
	return 0;
}

/* An empty folder: no test may have left a socket there. */
static int clean_up(void **state)
{
	(void)state;
	return rmdir(dir);
}

static pid_t start(int *err, const char *a, const char *b, const char *c, const char *d)
{
	char *const args[] = {program,	 "--gpu",   "soft",    "--socket", sock,
			      (char *)a, (char *)b, (char *)c, (char *)d,  NULL};

	return program_start(args, err);
}

static void refused(const char *says, const char *path)
{
	char text[4096];
	int err, code;
	pid_t pid = start(&err, "--metrics", path, NULL, NULL);

	code = program_finish(pid, err, text, sizeof(text));
	if (code != 2 || !strstr(text, says))
		fail_msg("--metrics %s: code %d, %s", path, code, text);
	assert_int_equal(access(sock, F_OK), -1);
}

static void pause_ms(void)
{
	nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

/* Waits until the device waits for QEMU. */
static pid_t started(const char *a, const char *b, const char *c, const char *d)
{
	int err, i;
	pid_t pid = start(&err, a, b, c, d);

	for (i = 0; access(sock, F_OK); i++) {
		assert_true(i < 30000);
		pause_ms();
	}
	close(err);
	return pid;
}

/* Does a process listen at this path? */
static bool listens(const char *path)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_DGRAM, 0);
	bool yes;

	strcpy(addr.sun_path, path);
	yes = connect(fd, (struct sockaddr *)&addr, sizeof(addr)) && errno == EPROTOTYPE;
	close(fd);
	return yes;
}

static void wait_gone(const char *path)
{
	int i;

	for (i = 0; !access(path, F_OK); i++) {
		assert_true(i < 30000);
		pause_ms();
	}
}

/* Ends the device. Nothing of it is left when it has ended. */
static void end(pid_t pid)
{
	int status;

	kill(pid, SIGTERM);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(access(sock, F_OK), -1);
	assert_int_equal(access(beside, F_OK), -1);
	assert_int_equal(access(named, F_OK), -1);
}

static int connect_to(const char *path)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	assert_true(fd >= 0);
	strcpy(addr.sun_path, path);
	assert_int_equal(connect(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	return fd;
}

static const char *read_all(int fd)
{
	static char text[1 << 20];
	size_t len = 0;
	ssize_t n;

	while ((n = read(fd, text + len, sizeof(text) - 1 - len)) > 0)
		len += n;
	text[len] = 0;
	close(fd);
	return text;
}

static const char *ask(const char *request)
{
	int fd = connect_to(beside);

	assert_int_equal(write(fd, request, strlen(request)), strlen(request));
	return read_all(fd);
}

static void bad_places(void **state)
{
	char path[200];
	int fd;

	(void)state;
	snprintf(path, sizeof(path), "%s/%0150d", dir, 0);
	refused("107 bytes", path);
	snprintf(path, sizeof(path), "%s/none/there", dir);
	refused("No such file", path);
	refused("something else than a socket", dir);
	fd = open(named, O_CREAT | O_WRONLY, 0600);
	close(fd);
	refused("something else than a socket", named);
	assert_int_equal(access(named, F_OK), 0);
	unlink(named);
	/* Nobody can make a file there. */
	refused("--metrics /proc/numbers", "/proc/numbers");
}

static void bad_names(void **state)
{
	char text[4096], longest[80];
	const char *const names[] = {"", "a b", "x/y", "\x1b[31m", longest};
	unsigned int i;
	int err;

	(void)state;
	memset(longest, 'a', 64);
	longest[64] = 0;
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		pid_t pid = start(&err, "--name", names[i], NULL, NULL);

		assert_int_equal(program_finish(pid, err, text, sizeof(text)), 2);
		assert_non_null(strstr(text, "1 to 63 letters"));
	}
}

static void another_device_has_it(void **state)
{
	pid_t pid = started("--metrics", named, NULL, NULL);
	int fd = -1;
	char *const args[] = {program, "--gpu", "soft", "--fd", "0", "--metrics", named, NULL};
	pid_t second;
	int status;

	(void)state;
	second = fork();
	if (!second) {
		int ends[2];

		socketpair(AF_UNIX, SOCK_STREAM, 0, ends);
		dup2(ends[0], 0);
		dup2(open("/dev/null", O_RDWR), 2);
		execv(program, args);
		_exit(99);
	}
	assert_int_equal(waitpid(second, &status, 0), second);
	assert_int_equal(WEXITSTATUS(status), 2);
	fd = connect_to(named);
	assert_non_null(strstr(read_all(fd), "qcuda_device{vm=\"vm7\""));
	end(pid);
}

/* A default place that is taken costs the metrics and not the device. */
static void default_place_is_taken(void **state)
{
	char text[4096];
	int fd = open(beside, O_CREAT | O_WRONLY, 0600), err, i;
	pid_t pid = start(&err, NULL, NULL, NULL, NULL);

	(void)state;
	close(fd);
	for (i = 0; access(sock, F_OK); i++) {
		assert_true(i < 30000);
		pause_ms();
	}
	kill(pid, SIGTERM);
	assert_int_equal(program_finish(pid, err, text, sizeof(text)), 0);
	assert_non_null(strstr(text, "no metrics at"));
	assert_int_equal(unlink(beside), 0);
}

static void none_asked_for(void **state)
{
	pid_t pid = started("--metrics", "none", NULL, NULL);

	(void)state;
	assert_int_equal(access(beside, F_OK), -1);
	assert_int_equal(access("none", F_OK), -1);
	end(pid);
}

static void only_its_user_may_connect(void **state)
{
	pid_t pid = started(NULL, NULL, NULL, NULL);
	struct stat st;

	(void)state;
	assert_int_equal(lstat(beside, &st), 0);
	assert_true(S_ISSOCK(st.st_mode));
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_int_equal(st.st_uid, geteuid());
	end(pid);
}

static void its_group_may_connect(void **state)
{
	const struct group *g = getgrgid(getegid());
	char text[4096];
	struct stat st;
	int err, code;
	pid_t pid;

	(void)state;
	pid = start(&err, "--metrics-group", "no such group", NULL, NULL);
	code = program_finish(pid, err, text, sizeof(text));
	if (code != 2 || !strstr(text, "there is no such group"))
		fail_msg("code %d, %s", code, text);
	assert_non_null(g);
	pid = started("--metrics-group", g->gr_name, NULL, NULL);
	assert_int_equal(stat(beside, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0660);
	assert_int_equal(st.st_uid, geteuid());
	assert_int_equal(st.st_gid, getegid());
	end(pid);
}

static void stale_socket_is_replaced(void **state)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	pid_t pid;

	(void)state;
	strcpy(addr.sun_path, beside);
	assert_int_equal(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	close(fd);
	pid = started(NULL, NULL, NULL, NULL);
	assert_non_null(strstr(ask("GET /metrics HTTP/1.0\r\n\r\n"), "200 OK"));
	end(pid);
}

static void answers(void **state)
{
	pid_t pid = started("--name", "my.vm", NULL, NULL);
	const char *text;
	int fd;

	(void)state;
	assert_non_null(strstr(ask("POST /metrics HTTP/1.0\r\n\r\n"), "HTTP/1.0 405 "));
	assert_non_null(strstr(ask("DELETE / HTTP/1.0\r\n\r\n"), "HTTP/1.0 405 "));
	assert_non_null(strstr(ask("GET /other HTTP/1.0\r\n\r\n"), "HTTP/1.0 404 "));
	assert_non_null(strstr(ask("\r\n\r\n"), "HTTP/1.0 405 "));
	text = ask("GET /metrics HTTP/1.0\r\nHost: x\r\n\r\n");
	assert_int_equal(strncmp(text, "HTTP/1.0 200 OK\r\n", 17), 0);
	assert_non_null(
		strstr(text, "\r\n\r\n# TYPE qcuda_device gauge\nqcuda_device{vm=\"my.vm\""));
	text = ask("HEAD /metrics HTTP/1.0\r\n\r\n");
	assert_non_null(strstr(text, "200 OK"));
	assert_null(strstr(text, "qcuda_"));
	/* Without a word, and without a word and with an end. */
	assert_int_equal(strncmp(read_all(connect_to(beside)), "# TYPE", 6), 0);
	fd = connect_to(beside);
	shutdown(fd, SHUT_WR);
	assert_int_equal(strncmp(read_all(fd), "# TYPE", 6), 0);
	end(pid);
}

/* The process whose parent is the device. */
static pid_t metrics_process(pid_t device)
{
	char path[64], line[1024], *end;
	pid_t found = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)device, (int)device);
	f = fopen(path, "r");
	if (f && fgets(line, sizeof(line), f))
		found = (pid_t)strtol(line, &end, 10);
	if (f)
		fclose(f);
	return found;
}

static bool status_has(pid_t pid, const char *wanted)
{
	char path[64], line[256];
	bool found = false;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	f = fopen(path, "r");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f))
		found |= !strcmp(line, wanted);
	fclose(f);
	return found;
}

/* It answers, so its jail is closed. It has no file of the device's open, and another name. */
static void jail_of_its_own(void **state)
{
	pid_t pid = started(NULL, NULL, NULL, NULL), metrics = metrics_process(pid);
	char path[64], line[256] = "";
	FILE *f;
	int fd, i;

	(void)state;
	assert_non_null(strstr(ask("GET / HTTP/1.0\n\n"), "200 OK"));
	if (!metrics) {
		end(pid);
		skip(); /* this kernel does not list children */
	}
	assert_true(status_has(metrics, "Seccomp:\t2\n"));
	assert_true(status_has(metrics, "NoNewPrivs:\t1\n"));
	snprintf(path, sizeof(path), "/proc/%d/cmdline", (int)metrics);
	f = fopen(path, "r");
	assert_non_null(fgets(line, sizeof(line), f));
	fclose(f);
	assert_string_equal(line, "qcu-metrics");
	/* The connection of the question closes in a moment. */
	for (fd = 5, i = 0; fd < 64; i++) {
		snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)metrics, fd);
		assert_true(i < 30000);
		if (readlink(path, line, sizeof(line)) < 0)
			fd++;
		else
			pause_ms();
	}
	end(pid);
}

/* More connections than there are places, which all stand still, and garbage in between. */
static void stuck_clients(void **state)
{
	pid_t pid = started(NULL, NULL, NULL, NULL);
	static char garbage[8192];
	int fds[80];
	unsigned int i;

	(void)state;
	memset(garbage, 'G', sizeof(garbage));
	for (i = 0; i < 80; i++) {
		fds[i] = connect_to(beside);
		if (i & 1)
			(void)!send(fds[i], garbage, sizeof(garbage), MSG_NOSIGNAL | MSG_DONTWAIT);
		else
			assert_int_equal(write(fds[i], "GET /metr", 9), 9);
	}
	for (i = 0; i < 8; i++)
		assert_non_null(strstr(ask("GET /metrics HTTP/1.0\r\n\r\n"), "200 OK"));
	for (i = 0; i < 80; i++)
		close(fds[i]);
	/* The end of a device does not wait for clients. */
	fds[0] = connect_to(beside);
	assert_int_equal(write(fds[0], "GET", 3), 3);
	end(pid);
	close(fds[0]);
}

/* One who asks for the end gets the numbers when the device has ended, however long that takes. */
static void last_numbers(void **state)
{
	static const char request[] = "GET /end HTTP/1.0\r\n\r\n";
	pid_t pid = started(NULL, NULL, NULL, NULL);
	struct pollfd waiting = {.fd = connect_to(beside), .events = POLLIN};
	int gone = connect_to(beside), chatty = connect_to(beside);
	const char *text;

	(void)state;
	assert_int_equal(write(gone, request, strlen(request)), strlen(request));
	close(gone);
	/* Whoever says more is not served. */
	assert_int_equal(write(chatty, request, strlen(request)), strlen(request));
	assert_int_equal(write(waiting.fd, request, strlen(request)), strlen(request));
	assert_non_null(strstr(ask("GET /metrics HTTP/1.0\r\n\r\n"), "200 OK"));
	assert_int_equal(write(chatty, request, strlen(request)), strlen(request));
	assert_string_equal(read_all(chatty), "");
	assert_int_equal(poll(&waiting, 1, 0), 0);
	end(pid);
	text = read_all(waiting.fd);
	assert_int_equal(strncmp(text, "HTTP/1.0 200 OK\r\n", 17), 0);
	assert_non_null(strstr(text, "\nqcuda_device{vm=\"vm7\""));
}

/* Others find the socket by its whole path, whatever folder the device was started in. */
static void relative_path(void **state)
{
	char here[4096], line[4096], path[128];
	bool found = false;
	FILE *list;
	pid_t pid;

	(void)state;
	assert_non_null(getcwd(here, sizeof(here)));
	assert_int_equal(chdir(dir), 0);
	pid = started("--metrics", "numbers", NULL, NULL);
	snprintf(path, sizeof(path), " %s\n", named);
	list = fopen("/proc/net/unix", "r");
	while (fgets(line, sizeof(line), list))
		found |= strstr(line, path) != NULL;
	fclose(list);
	assert_true(found);
	assert_int_equal(chdir(here), 0);
	end(pid);
}

static void killed(void **state)
{
	pid_t pid = started("--metrics", named, NULL, NULL);
	int status;

	(void)state;
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	wait_gone(named);
	assert_int_equal(unlink(sock), 0);
}

/* The answer of whoever listens there, or nothing. */
static const char *try_ask(void)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	strcpy(addr.sun_path, beside);
	if (!connect(fd, (struct sockaddr *)&addr, sizeof(addr))) {
		shutdown(fd, SHUT_WR);
		return read_all(fd);
	}
	close(fd);
	return "";
}

/* A device that is started anew at once has metrics, though the old process may still be there. */
static void restarted(void **state)
{
	pid_t first = started(NULL, NULL, NULL, NULL), second;
	char text[4096];
	int status, err, i;

	(void)state;
	kill(first, SIGKILL);
	assert_int_equal(waitpid(first, &status, 0), first);
	second = start(&err, "--name", "second", NULL, NULL);
	for (i = 0; !strstr(try_ask(), "\"second\""); i++) {
		assert_true(i < 30000);
		pause_ms();
	}
	/* Its socket for QEMU comes after the other one; before that it does not end in good order.
	 */
	while (kill(second, 0) == 0 && !listens(sock))
		pause_ms();
	kill(second, SIGTERM);
	assert_int_equal(program_finish(second, err, text, sizeof(text)), 0);
	assert_null(strstr(text, "no metrics"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bad_places),
		cmocka_unit_test(bad_names),
		cmocka_unit_test(another_device_has_it),
		cmocka_unit_test(default_place_is_taken),
		cmocka_unit_test(none_asked_for),
		cmocka_unit_test(only_its_user_may_connect),
		cmocka_unit_test(its_group_may_connect),
		cmocka_unit_test(stale_socket_is_replaced),
		cmocka_unit_test(answers),
		cmocka_unit_test(jail_of_its_own),
		cmocka_unit_test(stuck_clients),
		cmocka_unit_test(last_numbers),
		cmocka_unit_test(relative_path),
		cmocka_unit_test(killed),
		cmocka_unit_test(restarted),
	};

	return cmocka_run_group_tests(tests, find_program, clean_up);
}
