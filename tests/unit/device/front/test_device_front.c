// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What a front end may send that is not QEMU. A user who starts a job of Slurm's can speak to the
 * job's device himself. The device may refuse him, and end. It must not crash, which would mean
 * that memory of the device process was reached. Random messages at the end.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "tests/unit/device/host/test_device_born.h"
#include "tests/unit/device/host/test_device_frontend.h"

#define FILES_MAX 9
#define ROUNDS	  60
#define MESSAGES  40
#define PAGE	  4096ull

struct region {
	uint64_t gpa, size, qva, offset;
};

struct table {
	uint32_t count, padding;
	struct region region[8];
};

struct one_region {
	uint64_t padding;
	struct region region;
};

struct ring_addresses {
	uint32_t index, flags;
	uint64_t desc, used, avail, log;
};

static struct frontend fe;

static void start(void)
{
	fake_reset();
	born_tell();
	fe_start(&fe);
}

/* Sends a message with any files. The device may have gone. */
static void say(uint32_t request, uint32_t flags, const void *payload, uint32_t size,
		uint32_t claimed, const int *files, unsigned int n)
{
	uint32_t header[3] = {request, 1 | flags, claimed};
	struct iovec iov[2] = {{header, sizeof(header)}, {(void *)(uintptr_t)payload, size}};
	char control[CMSG_SPACE(FILES_MAX * sizeof(int))] = {0};
	struct msghdr msg = {.msg_iov = iov, .msg_iovlen = 2};

	if (n) {
		struct cmsghdr *c;

		msg.msg_control = control;
		msg.msg_controllen = CMSG_SPACE(n * sizeof(int));
		c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(n * sizeof(int));
		memcpy(CMSG_DATA(c), files, n * sizeof(int));
	}
	sendmsg(fe.sock, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* The device has ended itself, with an error, and has answered nothing. */
static void refused(void)
{
	char answer;
	int status;

	assert_int_equal(recv(fe.sock, &answer, 1, 0), 0);
	status = fe_stop(&fe);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 1);
}

static void refuses(uint32_t request, const void *payload, uint32_t size, const int *files,
		    unsigned int n)
{
	start();
	say(request, 0, payload, size, size, files, n);
	refused();
}

/* Those of the library's that QEMU does not send to this device, with what they need. */
static void messages_of_other_devices(void **state)
{
	static const uint32_t requests[] = {7,	19, 20, 21, 22, 23, 26, 27, 28, 29,  30,
					    31, 32, 33, 34, 35, 39, 40, 41, 44, 200, UINT32_MAX};
	uint8_t payload[64] = {0};
	int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	unsigned int i;

	(void)state;
	for (i = 0; i < sizeof(requests) / sizeof(requests[0]); i++) {
		refuses(requests[i], payload, sizeof(payload), NULL, 0);
		refuses(requests[i], payload, sizeof(payload), &fd, 1);
	}
	close(fd);
}

static void files_with_messages_that_have_none(void **state)
{
	static const uint32_t requests[] = {1,	2,  3,	4,  8,	9,  10, 11,
					    15, 16, 17, 18, 24, 25, 36, 43};
	uint8_t payload[64] = {0};
	int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	unsigned int i;

	(void)state;
	for (i = 0; i < sizeof(requests) / sizeof(requests[0]); i++)
		refuses(requests[i], payload, sizeof(payload), &fd, 1);
	close(fd);
}

static void memory_that_is_none(void **state)
{
	const struct region bad[] = {
		{0, 0, 0, 0},
		{0, 2 * FE_RAM + PAGE, 0, 0}, /* longer than the file */
		{0, FE_RAM, 0, FE_RAM + PAGE},
		{0, PAGE, 0, UINT64_MAX - PAGE + 1},
		{0, UINT64_MAX, 0, 0},
		{0, UINT64_MAX - PAGE + 1, 0, PAGE},
		{UINT64_MAX - PAGE + 2, PAGE, 0, 0}, /* wraps in the guest, and in QEMU */
		{0, PAGE, UINT64_MAX - PAGE + 2, 0},
	};
	struct one_region one = {0};
	struct table t = {.count = 1};
	int files[FILES_MAX], pipes[2], folder = open("/", O_RDONLY | O_CLOEXEC);
	unsigned int i;

	(void)state;
	assert_int_equal(pipe2(pipes, O_CLOEXEC | O_NONBLOCK), 0);
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		t.region[0] = one.region = bad[i];
		start();
		say(FE_SET_MEM_TABLE, 0, &t, sizeof(t), sizeof(t), &fe.memfd, 1);
		refused();
		start();
		say(FE_ADD_MEM_REG, 0, &one, sizeof(one), sizeof(one), &fe.memfd, 1);
		refused();
	}
	/* Not one file for each region. */
	t.region[0] = one.region = (struct region){FE_RAM, PAGE, 0, 0};
	refuses(FE_SET_MEM_TABLE, &t, sizeof(t), NULL, 0);
	refuses(FE_ADD_MEM_REG, &one, sizeof(one), NULL, 0);
	t.count = 0;
	refuses(FE_SET_MEM_TABLE, &t, sizeof(t), pipes, 1);
	for (t.count = 9; t.count; t.count = t.count == 9 ? UINT32_MAX : 0) {
		start();
		for (i = 0; i < FILES_MAX; i++)
			files[i] = fe.memfd;
		say(FE_SET_MEM_TABLE, 0, &t, sizeof(t), sizeof(t), files, 8);
		refused();
	}
	/* No memory at all. */
	refuses(FE_ADD_MEM_REG, &one, sizeof(one), pipes, 1);
	refuses(FE_ADD_MEM_REG, &one, sizeof(one), &folder, 1);
	close(folder);
	close(pipes[0]);
	close(pipes[1]);
}

static void queues_that_lie_nowhere(void **state)
{
	struct ring_addresses at = {0};
	uint64_t ram;

	(void)state;
	start();
	ram = (uintptr_t)fe.ram;
	fe_stop(&fe);
	/* The first byte behind the memory, its last ones, in front of it, nowhere. */
	for (int i = 0; i < 5; i++) {
		const uint64_t used[] = {FE_RAM, FE_RAM - 1, FE_RAM - 3, -1ull, 1ull << 63};

		start();
		ram = (uintptr_t)fe.ram;
		at = (struct ring_addresses){.desc = ram, .avail = ram, .used = ram + used[i]};
		say(FE_SET_VRING_ADDR, 0, &at, sizeof(at), sizeof(at), NULL, 0);
		refused();
	}
	/* Queues that there are not. */
	for (uint32_t index = FE_QUEUES; index; index = index == FE_QUEUES ? 255
							: index == 255	   ? UINT32_MAX
									   : 0) {
		uint32_t pair[2] = {index, 1};
		uint64_t number = index & 0xff;
		const uint32_t requests[] = {FE_SET_VRING_NUM, FE_SET_VRING_BASE,
					     FE_SET_VRING_ENABLE};

		start();
		at = (struct ring_addresses){
			.index = index, .desc = ram, .avail = ram, .used = ram};
		say(FE_SET_VRING_ADDR, 0, &at, sizeof(at), sizeof(at), NULL, 0);
		refused();
		for (unsigned int i = 0; i < 3; i++)
			refuses(requests[i], pair, sizeof(pair), NULL, 0);
		for (uint32_t request = 12; request <= 14; request++) {
			int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

			refuses(request, &number, sizeof(number), &fd, 1);
			close(fd);
		}
	}
}

static void logs_that_are_none(void **state)
{
	const uint64_t bad[][2] = {{0, 0},	  {PAGE + 1, 0}, {PAGE, PAGE},
				   {PAGE, -PAGE}, {-PAGE, PAGE}, {UINT64_MAX, 0}};
	int fd = memfd_create("log", MFD_CLOEXEC);

	(void)state;
	assert_int_equal(ftruncate(fd, PAGE), 0);
	for (unsigned int i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		refuses(FE_SET_LOG_BASE, bad[i], sizeof(bad[i]), &fd, 1);
	refuses(FE_SET_LOG_BASE, (uint64_t[]){PAGE, 0}, 16, NULL, 0);
	close(fd);
}

/* ---- random messages ---- */

static uint64_t dice = 1;

static uint32_t roll(uint32_t sides)
{
	dice = dice * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(dice >> 33) % sides;
}

static uint64_t some_number(void)
{
	const uint64_t edges[] = {0,
				  1,
				  2,
				  FE_QUEUES,
				  FE_RAM,
				  FE_RAM - 1,
				  PAGE,
				  1ull << 63,
				  UINT64_MAX,
				  UINT64_MAX - PAGE + 1,
				  UINT32_MAX,
				  (uintptr_t)fe.ram,
				  (uintptr_t)fe.ram + FE_RAM};
	uint64_t n = edges[roll(sizeof(edges) / sizeof(edges[0]))];

	return roll(4) ? n : n + roll(65536) - 32768;
}

/* Files as they may come: the VM's memory, a short one, an eventfd, a pipe. Not blocking, so
 * nothing waits. */
static unsigned int some_files(int *files, const int *kinds)
{
	unsigned int n = roll(3) ? roll(2) : roll(FILES_MAX), i;

	for (i = 0; i < n; i++)
		files[i] = roll(2) ? fe.memfd : kinds[roll(4)];
	return n;
}

static void say_something(const int *kinds)
{
	union {
		uint64_t word[34];
		struct table table;
		struct one_region one;
	} m = {0};
	uint32_t request = roll(8) ? 1 + roll(45) : roll(3) ? 5 + 32 * roll(2) : roll(300);
	int files[FILES_MAX];
	unsigned int i, n;
	uint32_t size = roll(2) ? 8 * roll(34) : roll(sizeof(m));

	for (i = 0; i < 34; i++)
		m.word[i] = some_number();
	if (roll(2)) /* a small index */
		m.word[0] = roll(FE_QUEUES + 1) | (uint64_t)roll(600) << 32;
	if (request == FE_SET_MEM_TABLE && roll(2))
		m.table.count = roll(10);
	n = some_files(files, kinds);
	say(request, roll(4) ? 0 : 8, &m, size, roll(30) ? size : roll(400), files, n);
}

/* A message that is shorter than its header says waits for its rest, and so does the device. */
static void random_messages(void **state)
{
	int kinds[5], pipes[2];
	char answers[4096];

	(void)state;
	assert_int_equal(pipe2(pipes, O_CLOEXEC | O_NONBLOCK), 0);
	kinds[0] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	kinds[1] = memfd_create("short", MFD_CLOEXEC);
	kinds[2] = pipes[0];
	kinds[3] = pipes[1];
	assert_int_equal(ftruncate(kinds[1], 100), 0);
	for (unsigned int round = 0; round < ROUNDS; round++) {
		int status;

		dice = round + 1;
		start();
		for (unsigned int q = 0; q < FE_QUEUES && roll(4); q++)
			fe_queue_start(&fe, q);
		if (fe.started[0] && fe.started[1] && roll(2))
			assert_int_equal(fe_open(&fe, 1), 0);
		for (unsigned int i = 0; i < MESSAGES; i++) {
			say_something(kinds);
			while (recv(fe.sock, answers, sizeof(answers), MSG_DONTWAIT) > 0)
				;
		}
		shutdown(fe.sock, SHUT_WR);
		while (recv(fe.sock, answers, sizeof(answers), 0) > 0)
			;
		status = fe_stop(&fe);
		if (!WIFEXITED(status) || WEXITSTATUS(status) > 1)
			fail_msg("round %u: status 0x%x", round, status);
	}
	for (unsigned int i = 0; i < 4; i++)
		close(kinds[i]);
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(messages_of_other_devices),
		cmocka_unit_test(files_with_messages_that_have_none),
		cmocka_unit_test(memory_that_is_none),
		cmocka_unit_test(queues_that_lie_nowhere),
		cmocka_unit_test(logs_that_are_none),
		cmocka_unit_test(random_messages),
	};

	born_main(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
