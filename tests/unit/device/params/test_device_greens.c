// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Green contexts at the mirror: parts that do not exist, foreign parents and devices, the life of a
 * context that still has streams, and how many there may be.
 */
#define _GNU_SOURCE
#include "tests/unit/device/mirror/test_device_mirror.h"

#include "qcu-device/base/limits.h"

struct fake fake; /* for test_device_mirror.h */

static struct limits limits;

static int start(void **state)
{
	struct mir_config cfg = {.ops = &be_soft, .session = 1, .limits = &limits};

	(void)state;
	limits.session[LIMIT_STREAMS] = 4;
	cfg.options.gpus = 2;
	cfg.options.threads = 4; /* as many multiprocessors */
	return mir_create(&mirror, &cfg);
}

#define PARTS(...)  CMD(GREEN_PARTS, green_parts, __VA_ARGS__)
#define CREATE(...) CMD(GREEN_CREATE, green_create, __VA_ARGS__)
#define STREAM(...) CMD(GREEN_STREAM, green_stream, .flags = 1, __VA_ARGS__)
#define END(id)	    CMD(GREEN_DESTROY, green_destroy, .green = (id))
/* The bits of the first groups, and that of the rest. */
#define FIRST(bits) .members = {[0] = (bits)}
#define REST	    .members = {[QCU_GREEN_MEMBERS - 1] = 0x80}

static int on(unsigned int device, struct qCUcmd cmd)
{
	cmd.device = (uint16_t)device;
	return ask(cmd);
}

static void wrong_parts(void **state)
{
	struct qCUcmd c;

	(void)state;
	assert_int_equal(ask(PARTS(.parent = 5)), QCU_ERR_InvalidResourceHandle);
	assert_int_equal(ask(PARTS(.groups = 1, .least = 5)), QCU_ERR_InvalidValue);
	assert_int_equal(ask(PARTS(.groups = 1, .least = UINT32_MAX)), QCU_ERR_InvalidValue);
	c = PARTS(.groups = QCU_GREEN_GROUPS, .least = 3);
	assert_int_equal(ask_with(&c, NULL, NULL, 0), 0);
	assert_int_equal(c.green_parts.made, 1);
	assert_int_equal(c.green_parts.sms, 3);
	assert_int_equal(c.green_parts.rest_sms, 1);
	/* No member, a group that is not made, a rest where nothing is left. */
	assert_int_equal(ask(CREATE(.green = 5)), QCU_ERR_InvalidValue);
	assert_int_equal(ask(CREATE(.green = 5, FIRST(2))), QCU_ERR_InvalidResourceConfiguration);
	assert_int_equal(ask(CREATE(.green = 5, REST)), QCU_ERR_InvalidResourceConfiguration);
	assert_int_equal(ask(CREATE(.green = 5, .groups = 2, .least = 3, FIRST(3))),
			 QCU_ERR_InvalidResourceConfiguration);
	assert_int_equal(ask(CREATE(.green = 5, .groups = 2, .least = 2, REST)),
			 QCU_ERR_InvalidResourceConfiguration);
	assert_int_equal(ask(STREAM(.stream = 5, .green = 5)), QCU_ERR_InvalidResourceHandle);
	assert_int_equal(ask(STREAM(.stream = 5)), QCU_ERR_InvalidResourceHandle);
	assert_int_equal(ask(END(5)), QCU_ERR_InvalidResourceHandle);
}

static void parents(void **state)
{
	struct qCUcmd c;

	(void)state;
	assert_int_equal(ask(CREATE(.green = 5, .groups = 1, .least = 3, FIRST(1))), 0);
	c = PARTS(.parent = 5);
	assert_int_equal(ask_with(&c, NULL, NULL, 0), 0);
	assert_int_equal(c.green_parts.sms, 3);
	assert_int_equal(ask(PARTS(.parent = 5, .groups = 1, .least = 4)), QCU_ERR_InvalidValue);
	/* On another device it is nothing. */
	assert_int_equal(on(1, PARTS(.parent = 5)), QCU_ERR_InvalidResourceHandle);
	assert_int_equal(on(1, CREATE(.green = 6, .parent = 5, FIRST(1))),
			 QCU_ERR_InvalidResourceHandle);
	assert_int_equal(on(1, STREAM(.stream = 5, .green = 5)), QCU_ERR_InvalidResourceHandle);
	/* The part of a part, after whose parent has gone. */
	assert_int_equal(ask(CREATE(.green = 6, .parent = 5, .groups = 2, .least = 1, FIRST(3))),
			 0);
	assert_int_equal(ask(END(5)), 0);
	assert_int_equal(ask(PARTS(.parent = 5)), QCU_ERR_InvalidResourceHandle);
	c = PARTS(.parent = 6);
	assert_int_equal(ask_with(&c, NULL, NULL, 0), 0);
	assert_int_equal(c.green_parts.sms, 2);
}

static struct qCUcmd plain(enum qcu_op op)
{
	struct qCUcmd c;

	memset(&c, 0, sizeof(c));
	c.op = (uint16_t)op;
	c.tid = 1;
	return c;
}

static void streams(void **state)
{
	(void)state;
	assert_int_equal(ask(CREATE(.green = 5, FIRST(1))), 0);
	assert_int_equal(ask(STREAM(.stream = 7, .green = 5)), 0);
	assert_int_equal(ask(STREAM(.stream = 7, .green = 5)), QCU_ERR_InvalidResourceHandle);
	/* The context ends with its last stream. */
	assert_int_equal(ask(END(5)), 0);
	assert_int_equal(ask(STREAM(.stream = 8, .green = 5)), QCU_ERR_InvalidResourceHandle);
	assert_int_equal(ask(CMD(STREAM_SYNC, stream_sync, .stream = 7)), 0);
	assert_int_equal(ask(CREATE(.green = 5, FIRST(1))), 0);
	assert_int_equal(ask(CMD(STREAM_DESTROY, stream_destroy, .stream = 7)), 0);
	assert_int_equal(ask(plain(QCU_OP_DEVICE_RESET)), 0);
	assert_int_equal(ask(PARTS(.parent = 5)), QCU_ERR_InvalidResourceHandle);
}

static void charged(void **state)
{
	uint32_t i;

	(void)state;
	/* Contexts and their streams count alike. */
	assert_int_equal(ask(CREATE(.green = 5, FIRST(1))), 0);
	assert_int_equal(ask(CREATE(.green = 6, FIRST(1))), 0);
	assert_int_equal(ask(STREAM(.stream = 7, .green = 5)), 0);
	assert_int_equal(ask(STREAM(.stream = 8, .green = 5)), 0);
	assert_int_equal(ask(CREATE(.green = 7, FIRST(1))), QCU_ERR_MemoryAllocation);
	assert_int_equal(ask(STREAM(.stream = 9, .green = 5)), QCU_ERR_MemoryAllocation);
	assert_int_equal(ask(END(6)), 0);
	/* CUDA keeps something of each that was ever made. */
	for (i = 2; i < 65536; i++) {
		assert_int_equal(ask(CREATE(.green = 6, FIRST(1))), 0);
		assert_int_equal(ask(END(6)), 0);
	}
	assert_int_equal(ask(CREATE(.green = 6, FIRST(1))), QCU_ERR_MemoryAllocation);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(wrong_parts, start, mirror_stop),
		cmocka_unit_test_setup_teardown(parents, start, mirror_stop),
		cmocka_unit_test_setup_teardown(streams, start, mirror_stop),
		cmocka_unit_test_setup_teardown(charged, start, mirror_stop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
