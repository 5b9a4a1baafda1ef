// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Limits as the guest driver and the host's operator meet them: commands with more data than the
 * device keeps, and the table that SIGUSR1 prints, also after a mirror was killed.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "include/qcuerror.h"
#include "tests/unit/device/host/test_device_born.h"
#include "tests/unit/device/mirror/test_device_fake.h"
#include "tests/unit/device/host/test_device_frontend.h"

#define SMALL QCU_MSG_MAX

static struct frontend fe;
static int out; /* the device's output */

static int start(void **state)
{
	int fds[2];
	unsigned int q;

	(void)state;
	if (pipe2(fds, O_CLOEXEC))
		return -1;
	out = fds[0];
	fake_reset();
	fake.hold = true; /* EVENT_SYNC never returns */
	fake.endless = true;
	fe_limits = (struct limits){
		.session[LIMIT_QUEUED] = SMALL + 1000,
		.session[LIMIT_KERNEL_TIME] = 1,
	};
	born_tell();
	fe_start_quiet(&fe, fds[1]);
	close(fds[1]);
	for (q = 0; q < FE_QUEUES; q++)
		fe_queue_start(&fe, q);
	return 0;
}

static int stop(void **state)
{
	int status = fe_stop(&fe);

	(void)state;
	close(out);
	return status;
}

static int ask(unsigned int q, struct qCUcmd c)
{
	c.seq = fe.seq++;
	return fe_ask(&fe, q, &c, 0, 0);
}

/* Reads the device's output up to this text. */
static void read_until(const char *end, char *text, size_t size)
{
	size_t len = 0;
	ssize_t n;

	do {
		n = read(out, text + len, size - 1 - len);
		assert_true(n > 0);
		len += (size_t)n;
		text[len] = 0;
	} while (!strstr(text, end));
}

static void too_much_behind(void **state)
{
	struct qCUcmd create = {.op = QCU_OP_EVENT_CREATE, .tid = 1};
	struct qCUcmd record = {.op = QCU_OP_EVENT_RECORD, .tid = 1};
	struct qCUcmd wait = {.op = QCU_OP_EVENT_SYNC, .tid = 1};
	struct qCUcmd copy = {.op = QCU_OP_COPY_SMALL, .tid = 1, .flags = QCU_F_MSG}, c;
	unsigned int held, first, second;
	char text[4096];

	(void)state;
	assert_int_equal(fe_open(&fe, 1), 0);
	create.event_create.event = record.event_record.event = wait.event_sync.event = 2;
	assert_int_equal(ask(1, create), 0);
	assert_int_equal(ask(1, record), 0);
	held = fe_post(&fe, 1, &wait, 0, 0);
	copy.buf.len = SMALL;
	/*
	 * The thread's next command waits with all its data, and there is no room for another one.
	 */
	first = fe_post(&fe, 1, &copy, FE_FREE, SMALL);
	second = fe_post(&fe, 1, &copy, FE_FREE, SMALL);
	fe_kick(&fe, 1);
	assert_int_equal(fe_wait(&fe, 1, second, &c), sizeof(c));
	assert_int_equal(c.status, QCU_ERR_MemoryAllocation);
	assert_int_equal(c.op, QCU_OP_COPY_SMALL);
	read_until("limit queued", text, sizeof(text));
	assert_non_null(strstr(text, "COPY_SMALL: 65536 bytes more"));
	/* Commands without data are accepted, and another session has room of its own. */
	c = (struct qCUcmd){.op = QCU_OP_INFO, .tid = 2};
	assert_int_equal(ask(1, c), 0);
	c = (struct qCUcmd){.op = QCU_OP_HOST_NEXT, .tid = 3};
	assert_int_equal(ask(1, c), 0);
	assert_int_equal(fe_open(&fe, 2), 0);
	copy.buf.len = 5000;
	copy.seq = fe.seq++;
	c = copy;
	assert_int_equal(fe_ask(&fe, 2, &c, FE_FREE, 5000), QCU_ERR_InvalidValue);
	/* The mirror ends, and its data is no longer counted. */
	assert_int_equal(fe_close(&fe, 1), 0);
	assert_int_equal(fe_wait(&fe, 1, held, &c), 0);
	assert_int_equal(fe_wait(&fe, 1, first, &c), 0);
}

static void status(void **state)
{
	struct qCUcmd create = {.op = QCU_OP_EVENT_CREATE, .tid = 1};
	struct qCUcmd alloc = {.op = QCU_OP_MALLOC, .tid = 1};
	char text[4096];
	unsigned int i;

	(void)state;
	kill(fe.server, SIGUSR1);
	read_until("sessions\n", text, sizeof(text));
	assert_string_equal(text, "qcu-device: VM: 0 of 4 sessions\n");
	assert_int_equal(fe_open(&fe, 1), 0);
	assert_int_equal(fe_open(&fe, 2), 0);
	for (i = 0; i < 3; i++) {
		create.event_create.event = 2 + i;
		assert_int_equal(ask(1, create), 0);
		assert_int_equal(ask(2, create), 0);
	}
	alloc.malloc.size = 3 << 20;
	alloc.device = 1;
	assert_int_equal(ask(2, alloc), 0);
	kill(fe.server, SIGUSR1);
	read_until("sessions\n", text, sizeof(text));
	assert_non_null(strstr(text, "events: 3 of 65534\n"));
	assert_non_null(strstr(text, "qcu-device: VM: events: 6 of 262144\n"));
	assert_non_null(strstr(text, "device-memory of GPU 1: 3 MiB of none\n"));
	assert_non_null(strstr(text, "qcu-device: VM: lanes: 2 of 1024\n"));
	assert_non_null(strstr(text, "VM: 2 of 4 sessions\n"));
	assert_null(strstr(text, "streams"));
	/* The mirror is killed and leaves nothing behind. */
	assert_int_equal(fe_close(&fe, 2), 0);
	kill(fe.server, SIGUSR1);
	read_until("sessions\n", text, sizeof(text));
	assert_non_null(strstr(text, "qcu-device: VM: events: 3 of 262144\n"));
	assert_null(strstr(text, "device-memory"));
}

static int ask_with_tail(struct qCUcmd c, const void *tail, uint32_t len)
{
	memcpy(fe.ram + FE_FREE, tail, len);
	c.tid = 1;
	c.seq = fe.seq++;
	return fe_ask(&fe, 1, &c, FE_FREE, len);
}

/*
 * The command that waits for the kernel gets the error, and the session is over. No other program's
 * session ends.
 */
static void endless_kernel(void **state)
{
	const struct qcu_seg image = {FE_FREE + 4096, sizeof(FAKE_IMAGE)};
	struct {
		struct qcu_launch_msg msg;
		uint8_t params[FAKE_KERNEL_LEN];
	} __attribute__((packed)) m = {.msg = {.grid = {1, 1, 1}, .block = {1, 1, 1}}};
	struct qCUcmd c = {.op = QCU_OP_MODULE_LOAD, .flags = QCU_F_SEGS};
	char text[4096];
	unsigned int waits;

	(void)state;
	assert_int_equal(fe_open(&fe, 1), 0);
	assert_int_equal(fe_open(&fe, 2), 0);
	memcpy(fe.ram + image.gpa, FAKE_IMAGE, sizeof(FAKE_IMAGE));
	c.buf.len = image.len;
	c.module_load.module = 2;
	assert_int_equal(ask_with_tail(c, &image, sizeof(image)), 0);
	c = (struct qCUcmd){.op = QCU_OP_KERNEL_FIND, .flags = QCU_F_MSG};
	c.buf.len = sizeof(FAKE_KERNEL) - 1;
	c.kernel_find.module = c.kernel_find.kernel = 2;
	assert_int_equal(ask_with_tail(c, FAKE_KERNEL, sizeof(FAKE_KERNEL) - 1), 0);
	m.msg.param_bytes = sizeof(m.params);
	c = (struct qCUcmd){.op = QCU_OP_LAUNCH, .flags = QCU_F_MSG};
	c.buf.len = sizeof(m);
	c.launch.kernel = 2;
	assert_int_equal(ask_with_tail(c, &m, sizeof(m)), 0);
	c = (struct qCUcmd){.op = QCU_OP_EVENT_CREATE, .tid = 1};
	c.event_create.event = 2;
	assert_int_equal(ask(1, c), 0);
	c = (struct qCUcmd){.op = QCU_OP_EVENT_RECORD, .tid = 1};
	c.event_record.event = 2;
	assert_int_equal(ask(1, c), 0);
	c = (struct qCUcmd){.op = QCU_OP_EVENT_SYNC, .tid = 1, .seq = 99};
	c.event_sync.event = 2;
	waits = fe_post(&fe, 1, &c, 0, 0);
	fe_kick(&fe, 1);
	assert_int_equal(fe_wait(&fe, 1, waits, &c), sizeof(c));
	assert_int_equal(c.status, QCU_ERR_LaunchTimeout);
	assert_int_equal(c.op, QCU_OP_EVENT_SYNC);
	assert_int_equal(c.seq, 99);
	read_until("a kernel ran for too long", text, sizeof(text));
	c = (struct qCUcmd){.op = QCU_OP_INFO, .tid = 1};
	assert_int_equal(ask(1, c), FE_GONE);
	assert_int_equal(ask(2, c), 0);
	assert_int_equal(fe_close(&fe, 1), 0);
}

int main(int argc, char **argv)
{
#define T(f) cmocka_unit_test_setup_teardown(f, start, stop)
	static const struct CMUnitTest tests[] = {T(too_much_behind), T(status), T(endless_kernel)};
#undef T

	born_main(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
