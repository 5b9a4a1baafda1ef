// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Work that cannot begin: small copies, whose bytes the software GPU keeps. Once, 24,000 of them
 * behind a host function that does not end took 1.5 GiB. Now there is a limit. A command that
 * exceeds it waits if the GPU goes on by itself. The command is refused if only the guest can make
 * the GPU go on.
 */
#define _GNU_SOURCE
#include "tests/unit/device/mirror/test_device_mirror.h"

#include <time.h>

#include "qcu-device/base/usage.h"

#define KIB   1024u
#define SMALL QCU_MSG_MAX
#define MANY  400u

struct fake fake; /* for test_device_mirror.h; this test uses the software GPU */

static struct usage *usage;
static struct limits limits;
static uint64_t dst;
static uint8_t bytes[SMALL];

/* Loops until the word is not 0. */
static const char ptx[] = ".version 8.3\n.target sm_75\n.address_size 64\n"
			  ".visible .entry spin(.param .u64 at)\n"
			  "{\n"
			  ".reg .b64 %p;\n"
			  ".reg .b32 %v;\n"
			  ".reg .pred %q;\n"
			  "ld.param.u64 %p, [at];\n"
			  "again:\n"
			  "ld.volatile.global.u32 %v, [%p];\n"
			  "setp.eq.u32 %q, %v, 0;\n"
			  "@%q bra again;\n"
			  "ret;\n"
			  "}\n";

static int begin(void **state)
{
	struct mir_config cfg = {.ops = &be_soft, .session = 1, .limits = &limits};
	struct qCUcmd c = CMD(MALLOC, malloc, .size = SMALL);
	const struct qcu_seg image = {(uintptr_t)ptx, sizeof(ptx)};

	(void)state;
	usage = usage_new(-1);
	cfg.usage = usage;
	limits = (struct limits){.session[LIMIT_QUEUED] = 8 * KIB * KIB};
	cfg.options.vram = 64 << 20;
	cfg.options.threads = 1;
	if (!usage || mir_create(&mirror, &cfg) || ask_with(&c, NULL, NULL, 0))
		return -1;
	dst = c.malloc.ptr;
	*(volatile uint32_t *)dst = 0;
	c = CMD(MODULE_LOAD, module_load, .buf = {1, sizeof(ptx)}, .module = 2);
	c.flags = QCU_F_SEGS;
	assert_int_equal(ask_with(&c, NULL, &image, 1), 0);
	c = CMD(KERNEL_FIND, kernel_find, .buf = {1, 4}, .module = 2, .kernel = 2);
	c.flags = QCU_F_MSG;
	assert_int_equal(ask_with(&c, "spin", NULL, 0), 0);
	return ask(CMD(STREAM_CREATE, stream_create, .stream = 2, .flags = 1));
}

static int end(void **state)
{
	uint64_t left;

	(void)state;
	mir_destroy(mirror);
	left = usage_sum(usage, LIMIT_QUEUED, 0);
	usage_free(usage);
	return left != 0;
}

static struct qCUcmd small_copy(void)
{
	struct qCUcmd c = CMD(COPY_SMALL, copy_small, .buf = {1, SMALL}, .dst = dst, .stream = 2);

	c.flags = QCU_F_MSG;
	return c;
}

static int copy(void)
{
	struct qCUcmd c = small_copy();

	return ask_with(&c, bytes, NULL, 0);
}

static struct qCUcmd next(uint64_t done, uint32_t wait)
{
	return CMD(HOST_NEXT, host_next, .done = done, .wait = wait);
}

static void behind_a_host_function(void **state)
{
	struct qCUcmd c = next(0, 1);
	unsigned int i, round;
	int rc = 0;

	(void)state;
	for (round = 0; round < 2; round++) {
		assert_int_equal(ask(CMD(HOST_FUNC, host_func, .token = 5, .stream = 2)), 0);
		c = next(0, 1);
		assert_int_equal(ask_with(&c, NULL, NULL, 0), 0);
		assert_int_equal(c.host_next.token, 5);
		for (i = 0; i < MANY && !(rc = copy()); i++)
			;
		assert_int_equal(rc, QCU_ERR_MemoryAllocation);
		assert_in_range(i, 64, 8 * KIB * KIB / SMALL);
		assert_in_range(usage_sum(usage, LIMIT_QUEUED, 0), i * SMALL, 8 * KIB * KIB);
		/* Other work is refused, too, also in other streams. */
		assert_int_equal(ask(CMD(HOST_FUNC, host_func, .token = 6, .stream = 2)),
				 QCU_ERR_MemoryAllocation);
		assert_int_equal(ask(CMD(EVENT_CREATE, event_create, .event = 2 + round)), 0);
		assert_int_equal(
			ask(CMD(EVENT_RECORD, event_record, .event = 2 + round, .stream = 2)),
			QCU_ERR_MemoryAllocation);
		/* Commands that end the wait are accepted. */
		assert_int_equal(ask(next(5, 0)), 0);
		assert_int_equal(ask(CMD(STREAM_SYNC, stream_sync, .stream = 2)), 0);
		assert_int_equal(copy(), 0);
		assert_int_equal(ask(CMD(STREAM_SYNC, stream_sync, .stream = 2)), 0);
	}
}

static void launch(void)
{
	struct {
		struct qcu_launch_msg msg;
		uint64_t at;
	} m = {.msg = {.grid = {1, 1, 1}, .block = {1, 1, 1}, .param_bytes = 8}, .at = dst};
	struct qCUcmd c = CMD(LAUNCH, launch, .buf = {1, sizeof(m)}, .kernel = 2, .stream = 2);

	c.flags = QCU_F_MSG;
	assert_int_equal(ask_with(&c, &m, NULL, 0), 0);
}

static _Atomic unsigned int answers;

static void copy_done(struct mir_request *req)
{
	if (!req->cmd.status)
		answers++;
	sem_post(&((struct question *)req)->answered);
}

/* As with CUDA, whose queues have a limited size: the caller waits, and no work is lost. */
static void behind_a_kernel(void **state)
{
	static struct question q[MANY];
	unsigned int i;

	(void)state;
	launch();
	answers = 0;
	for (i = 0; i < MANY; i++) {
		q[i].req = (struct mir_request){.cmd = small_copy(), .msg = bytes};
		sem_init(&q[i].answered, 0, 0);
		q[i].req.done = copy_done;
		assert_true(mir_submit(mirror, &q[i].req));
	}
	while (usage_sum(usage, LIMIT_QUEUED, 0) + 3 * KIB * KIB < 8 * KIB * KIB)
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	assert_in_range(answers, 0, 8 * KIB * KIB / SMALL);
	/* Another thread whose command queues no work is not delayed. */
	assert_int_equal(ask((struct qCUcmd){.op = QCU_OP_INFO, .tid = 9}), 0);
	__atomic_store_n((uint32_t *)dst, 1, __ATOMIC_SEQ_CST);
	for (i = 0; i < MANY; i++)
		assert_int_equal(ask_end(&q[i]), 0);
	assert_int_equal(answers, MANY);
	assert_int_equal(ask(CMD(STREAM_SYNC, stream_sync, .stream = 2)), 0);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, begin, end)
	static const struct CMUnitTest tests[] = {
		T(behind_a_host_function),
		T(behind_a_kernel),
	};
#undef T

	return cmocka_run_group_tests(tests, NULL, NULL);
}
