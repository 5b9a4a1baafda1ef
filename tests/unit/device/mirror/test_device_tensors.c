// SPDX-License-Identifier: GPL-2.0-or-later
/* Tensor maps, in a mirror on the software GPU: messages that are none, and what is left for the
 * thread. */
#include "tests/unit/device/mirror/test_device_mirror.h"

struct fake fake; /* for test_device_mirror.h; this test uses the software GPU */

static int start(void **state)
{
	struct mir_config cfg = {.ops = &be_soft, .session = 1};

	(void)state;
	cfg.options.vram = 64 << 20;
	return mir_create(&mirror, &cfg);
}

static struct qcu_tensor_msg good(void)
{
	return (struct qcu_tensor_msg){
		.what = QCU_TENSOR_TILED,
		.type = 7, /* float */
		.rank = 2,
		.addr = 0x1000,
		.dim = {64, 32},
		.stride = {256},
		.box = {16, 8},
		.step = {1, 1},
	};
}

static int send(const struct qcu_tensor_msg *t, uint32_t len)
{
	char room[sizeof(*t) + 64] = {0};
	struct qCUcmd c = CMD(TENSOR_MAP, tensor_map, .buf = {1, len});

	memcpy(room, t, sizeof(*t));
	c.flags = QCU_F_MSG;
	return ask_with(&c, room, NULL, 0);
}

/* How many bytes wait for the thread, which forgets them. */
static uint64_t left(void)
{
	struct qCUcmd c = CMD(RESULT_READ, result_read, .what = QCU_RESULT_DATA, .forget = 1);

	assert_int_equal(ask_with(&c, NULL, NULL, 0), 0);
	return c.result_read.bytes;
}

static void bad(void **state)
{
	struct qcu_tensor_msg t = good();

	(void)state;
	assert_int_equal(send(&t, 1), QCU_ERR_InvalidValue);
	assert_int_equal(send(&t, sizeof(t) - 1), QCU_ERR_InvalidValue);
	assert_int_equal(send(&t, sizeof(t) + 1), QCU_ERR_InvalidValue);
	t.what = QCU_TENSOR_MOVE + 1;
	assert_int_equal(send(&t, sizeof(t)), QCU_ERR_InvalidValue);
	t = good();
	t.rank = QCU_TENSOR_DIMS + 1;
	assert_int_equal(send(&t, sizeof(t)), QCU_ERR_InvalidValue);
	t = good();
	t.type = UINT32_MAX;
	assert_int_equal(send(&t, sizeof(t)), QCU_ERR_InvalidValue);
	t = good();
	t.what = QCU_TENSOR_MOVE; /* of what is no map */
	assert_int_equal(send(&t, sizeof(t)), QCU_ERR_InvalidValue);
	assert_int_equal(left(), 0);
}

static void maps(void **state)
{
	struct qcu_tensor_msg t = good();

	(void)state;
	assert_int_equal(send(&t, sizeof(t)), 0);
	assert_int_equal(left(), QCU_TENSOR_MAP_BYTES);
	assert_int_equal(left(), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(bad, start, mirror_stop),
		cmocka_unit_test_setup_teardown(maps, start, mirror_stop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
