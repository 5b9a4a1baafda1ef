// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Which records a guest program may send: the check that the driver and the loopback transport
 * make, and which parts of an answer get back into the record.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "include/qcucmd.h"

static struct qCUcmd record(uint16_t op)
{
	return (struct qCUcmd){.op = op, .tid = 1};
}

static void who(void **state)
{
	struct qCUcmd cmd;
	uint32_t op;

	(void)state;
	for (op = 0; op < 0x10000; op++) {
		cmd = record((uint16_t)op);
		if (!qcu_rule((uint16_t)op))
			assert_int_equal(qcu_check_user(&cmd), -EOPNOTSUPP);
		else if (!qcu_rule_user(qcu_rule((uint16_t)op)))
			assert_int_equal(qcu_check_user(&cmd), -EPERM);
		else if (qcu_rule((uint16_t)op)->buffer == QCU_BUFFER_STAY)
			assert_int_equal(qcu_check_user(&cmd), -EINVAL);
		else
			assert_int_equal(qcu_check_user(&cmd), 0);
	}
}

static void header(void **state)
{
	struct qCUcmd cmd = record(QCU_OP_LAUNCH);

	(void)state;
	cmd.tid = 0;
	assert_int_equal(qcu_check_user(&cmd), -EINVAL);
	cmd = record(QCU_OP_LAUNCH);
	cmd.status = -1;
	assert_int_equal(qcu_check_user(&cmd), -EINVAL);
	for (unsigned int flag = 1; flag < 0x100; flag <<= 1) {
		cmd = record(QCU_OP_LAUNCH);
		cmd.flags = (uint8_t)flag;
		assert_int_equal(qcu_check_user(&cmd), flag == QCU_F_POSTED ? 0 : -EINVAL);
		cmd = record(QCU_OP_MALLOC);
		cmd.flags = (uint8_t)flag;
		assert_int_equal(qcu_check_user(&cmd), -EINVAL);
	}
}

static void behind_the_request(void **state)
{
	const unsigned int in = qcu_rule(QCU_OP_MALLOC)->in;
	struct qCUcmd cmd;

	(void)state;
	for (unsigned int i = in; i < QCU_BODY; i++) {
		cmd = record(QCU_OP_MALLOC);
		cmd.body[i] = 1;
		assert_int_equal(qcu_check_user(&cmd), -EINVAL);
	}
	cmd = record(QCU_OP_MALLOC);
	memset(cmd.body, 0xff, in);
	assert_int_equal(qcu_check_user(&cmd), 0);
}

static void buffers(void **state)
{
	struct qCUcmd cmd = record(QCU_OP_KERNEL_FIND);

	(void)state;
	cmd.buf.len = QCU_MSG_MAX;
	assert_int_equal(qcu_check_user(&cmd), 0);
	cmd.buf.len++;
	assert_int_equal(qcu_check_user(&cmd), -E2BIG);
	cmd = record(QCU_OP_COPY_H2D);
	cmd.buf.addr = UINT64_MAX - 7;
	cmd.buf.len = 7;
	assert_int_equal(qcu_check_user(&cmd), 0);
	cmd.buf.len = 8;
	assert_int_equal(qcu_check_user(&cmd), -EFAULT);
	cmd.buf.len = UINT64_MAX;
	assert_int_equal(qcu_check_user(&cmd), -EFAULT);
	cmd = record(QCU_OP_HOST_REGISTER);
	assert_int_equal(qcu_check_user(&cmd), -EINVAL);
	cmd.buf.len = 1;
	assert_int_equal(qcu_check_user(&cmd), 0);
}

static void answers(void **state)
{
	struct qCUcmd cmd = record(QCU_OP_MALLOC), answer;

	(void)state;
	cmd.malloc.size = 5;
	cmd.seq = 7;
	memset(&answer, 0xff, sizeof(answer));
	answer.malloc.ptr = 0x1234;
	answer.status = 2;
	qcu_take_answer(&cmd, &answer);
	assert_int_equal(cmd.malloc.size, 5);
	assert_int_equal(cmd.malloc.ptr, 0x1234);
	assert_int_equal(cmd.status, 2);
	assert_int_equal(cmd.flags, QCU_F_OUTPUT);
	assert_int_equal(cmd.seq, 7);
	assert_int_equal(cmd.op, QCU_OP_MALLOC);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(who),
		cmocka_unit_test(header),
		cmocka_unit_test(behind_the_request),
		cmocka_unit_test(buffers),
		cmocka_unit_test(answers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
