// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The transport through /dev/qcuda, with a device that this test provides: the message and the
 * error of each failure, and that a submit is completed despite signals and partial answers.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "qcu-library/link/link.h"
#include "qcu-library/link/transport.h"

#define FD 99

__thread struct qcul_thread qcul_self;

static int open_errno, hello_errno, chunk_errno;
static uint32_t driver_version, device_version;
static unsigned int submits, interrupts, most, answered, fail_after;
static uint32_t chunk_asked;

int __wrap_open(const char *path, int flags, ...);
int __wrap_close(int fd);
int __wrap_ioctl(int fd, unsigned long request, ...);

int __wrap_open(const char *path, int flags, ...)
{
	(void)flags;
	assert_string_equal(path, "/dev/qcuda");
	errno = open_errno;
	return open_errno ? -1 : FD;
}

int __real_close(int fd);
int __wrap_close(int fd)
{
	return fd == FD ? 0 : __real_close(fd);
}

static int hello(struct qcu_hello *h)
{
	h->driver_version = driver_version;
	h->device_version = device_version;
	h->chunk_bytes = QCU_CHUNK_DEFAULT;
	errno = hello_errno;
	return hello_errno ? -1 : 0;
}

static int submit(const struct qcu_submit *s)
{
	struct qCUcmd *cmds = (struct qCUcmd *)(uintptr_t)s->cmds;
	unsigned int i, n = s->count < most ? s->count : most;

	submits++;
	if (interrupts > 0) {
		interrupts--;
		errno = EINTR;
		return -1;
	}
	if (fail_after && submits > fail_after) {
		errno = ESHUTDOWN;
		return -1;
	}
	assert_in_range(s->count, 1, QCU_SUBMIT_MAX);
	for (i = 0; i < n; i++)
		cmds[i].status = (int)++answered;
	return (int)n;
}

int __wrap_ioctl(int fd, unsigned long request, ...)
{
	va_list ap;
	void *arg;

	va_start(ap, request);
	arg = va_arg(ap, void *);
	va_end(ap);
	assert_int_equal(fd, FD);
	switch (request) {
	case QCU_IOC_HELLO:
		return hello(arg);
	case QCU_IOC_SUBMIT:
		return submit(arg);
	case QCU_IOC_CHUNK:
		chunk_asked = ((struct qcu_chunk_size *)arg)->bytes;
		errno = chunk_errno;
		return chunk_errno ? -1 : 0;
	}
	errno = ENOTTY;
	return -1;
}

/*
 * Opens the transport in a child, because a message is printed once in a process. Returns the
 * error; the messages are in text.
 */
static int opening(char *text, size_t room)
{
	struct qcu_hello h;
	int ends[2], status;
	size_t len = 0;
	ssize_t n;
	pid_t pid;

	assert_int_equal(pipe(ends), 0);
	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		dup2(ends[1], 2);
		(void)qcul_transport_open(&h);
		_exit(qcul_transport_open(&h) & 0xff);
	}
	close(ends[1]);
	while ((n = read(ends[0], text + len, room - 1 - len)) > 0)
		len += (size_t)n;
	text[len] = 0;
	close(ends[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void assert_says(int code, const char *word, const char *second)
{
	char text[2000];

	assert_int_equal(opening(text, sizeof(text)), code & 0xff);
	assert_non_null(strstr(text, word));
	assert_non_null(strstr(text, second));
	/* One line, although the test tried twice. */
	assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1);
}

static int reset(void **state)
{
	(void)state;
	open_errno = hello_errno = chunk_errno = 0;
	driver_version = device_version = QCU_WIRE_VERSION;
	submits = interrupts = answered = fail_after = chunk_asked = 0;
	most = QCU_SUBMIT_MAX;
	unsetenv("QCU_CHUNK");
	return 0;
}

static void says_what_is_missing(void **state)
{
	(void)state;
	open_errno = ENOENT;
	assert_says(cudaErrorNoDevice, "/dev/qcuda", "modprobe qcuda");
	open_errno = EACCES;
	assert_says(cudaErrorNoDevice, "permission", "/dev/qcuda");
	open_errno = EBUSY;
	assert_says(cudaErrorDevicesUnavailable, "all sessions", "in use");
	open_errno = EIO;
	assert_says(cudaErrorDevicesUnavailable, "qcu-device", "host");
	open_errno = EMFILE;
	assert_says(cudaErrorInitializationError, "cannot open", "files");
}

static void says_both_versions(void **state)
{
	char library[32], module[32];

	(void)state;
	snprintf(library, sizeof(library), "libcudart speaks %u", QCU_WIRE_VERSION);
	snprintf(module, sizeof(module), "module %u", QCU_WIRE_VERSION);
	hello_errno = EPROTO;
	driver_version = 7007;
	device_version = 8008;
	assert_says(cudaErrorInsufficientDriver, "module 7007", "device 8008");
	hello_errno = 0;
	assert_says(cudaErrorInsufficientDriver, "module 7007", library);
	hello_errno = EPROTO;
	driver_version = QCU_WIRE_VERSION;
	/* The exit code holds only the low 8 bits of this error. */
	assert_says(cudaErrorSystemDriverMismatch, module, "device 8008");
}

static void asks_for_chunks_of_a_size(void **state)
{
	struct qcu_hello h;
	char text[2000];

	(void)state;
	assert_int_equal(qcul_transport_open(&h), 0);
	assert_int_equal(chunk_asked, 0);
	assert_int_equal(h.chunk_bytes, QCU_CHUNK_DEFAULT);
	setenv("QCU_CHUNK", "64K", 1);
	assert_int_equal(qcul_transport_open(&h), 0);
	assert_int_equal(chunk_asked, 64 << 10);
	assert_int_equal(h.chunk_bytes, 64 << 10);
	setenv("QCU_CHUNK", "3M", 1);
	chunk_errno = EINVAL;
	assert_int_equal(opening(text, sizeof(text)), 0);
	assert_non_null(strstr(text, "QCU_CHUNK"));
}

static void carries_a_submit_to_its_end(void **state)
{
	struct qCUcmd cmds[150] = {0};
	struct qcu_hello h;
	int i;

	(void)state;
	assert_int_equal(qcul_transport_open(&h), 0);
	interrupts = 3;
	most = 7;
	assert_int_equal(qcul_transport_submit(cmds, 150), 0);
	for (i = 0; i < 150; i++)
		assert_int_equal(cmds[i].status, i + 1);
	assert_int_equal(submits, 3 + 22);
}

static void reports_a_session_that_has_ended(void **state)
{
	struct qCUcmd cmds[10] = {0};
	struct qcu_hello h;

	(void)state;
	assert_int_equal(qcul_transport_open(&h), 0);
	most = 2;
	fail_after = 2;
	assert_int_equal(qcul_transport_submit(cmds, 10), -ESHUTDOWN);
	most = 0;
	fail_after = 0;
	assert_int_equal(qcul_transport_submit(cmds, 10), -EIO);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(says_what_is_missing, reset),
		cmocka_unit_test_setup(says_both_versions, reset),
		cmocka_unit_test_setup(asks_for_chunks_of_a_size, reset),
		cmocka_unit_test_setup(reports_a_session_that_has_ended, reset),
		cmocka_unit_test_setup(carries_a_submit_to_its_end, reset),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
