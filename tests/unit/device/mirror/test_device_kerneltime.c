// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Kernels that do not end, with a backend that does not watch for them itself. Such a kernel is
 * found when its time is over, and not before. A kernel that only waits is not mistaken for one.
 */
#define _GNU_SOURCE
#include "tests/unit/device/memory/test_device_ram.h"

#include "qcu-device/base/limits.h"
#include "qcu-device/commands/commands.h"

#define S	1000000000ull
#define SECONDS 1000u /* so long that the mirror's own thread finds nothing */

static unsigned int found;

static void timed_out(void *ctx)
{
	*(unsigned int *)ctx += 1;
}

static int begin(void **state)
{
	static struct limits limits;
	struct qCUcmd c =
		CMD(MODULE_LOAD, module_load, .buf = {1, sizeof(FAKE_IMAGE)}, .module = 2);
	const struct qcu_seg image = {0, sizeof(FAKE_IMAGE)};

	(void)state;
	limits = (struct limits){.session[LIMIT_KERNEL_TIME] = SECONDS};
	found = 0;
	if (start((struct mir_config){.limits = &limits,
				      .timed_out = timed_out,
				      .timed_out_ctx = &found},
		  4096))
		return -1;
	memcpy(ram, FAKE_IMAGE, sizeof(FAKE_IMAGE));
	c.flags = QCU_F_SEGS;
	assert_int_equal(ask_with(&c, NULL, &image, 1), 0);
	c = CMD(KERNEL_FIND, kernel_find, .buf = {1, FAKE_KERNEL_LEN}, .module = 2, .kernel = 2);
	c.buf.len = sizeof(FAKE_KERNEL) - 1;
	c.flags = QCU_F_MSG;
	assert_int_equal(ask_with(&c, FAKE_KERNEL, NULL, 0), 0);
	return ask(CMD(STREAM_CREATE, stream_create, .stream = 2));
}

static void launch(uint32_t stream)
{
	struct {
		struct qcu_launch_msg msg;
		uint8_t params[FAKE_KERNEL_LEN];
	} __attribute__((packed)) m = {.msg = {.grid = {1, 1, 1}, .block = {1, 1, 1}}};
	struct qCUcmd c = CMD(LAUNCH, launch, .buf = {1, sizeof(m)}, .kernel = 2, .stream = stream);

	m.msg.param_bytes = sizeof(m.params);
	c.flags = QCU_F_MSG;
	assert_int_equal(ask_with(&c, &m, NULL, 0), 0);
}

static int sync_stream(uint32_t stream)
{
	return ask(CMD(STREAM_SYNC, stream_sync, .stream = stream));
}

static void look(uint64_t seconds)
{
	mir_times_look(mirror, spin_clock() + seconds * S);
}

static void all_end(void **state)
{
	unsigned int i;

	(void)state;
	for (i = 0; i < 100; i++) {
		launch(i & 1 ? 2 : QCU_STREAM_LEGACY);
		if (i % 10 == 0)
			look(i * SECONDS);
	}
	look(0);
	look(5 * SECONDS);
	assert_int_equal(found, 0);
}

static void one_does_not(void **state)
{
	(void)state;
	launch(QCU_STREAM_LEGACY);
	fake.endless = true;
	launch(2);
	launch(2);
	look(0);
	look(SECONDS - 10);
	assert_int_equal(found, 0);
	look(SECONDS + 1);
	assert_int_equal(found, 1);
	/* It is reported only once. */
	look(3 * SECONDS);
	assert_int_equal(found, 1);
	assert_int_equal(sync_stream(2), 0);
}

/* A long queue of short kernels: each kernel has the full time. */
static void many_short_ones(void **state)
{
	unsigned int i;

	(void)state;
	fake.endless = true;
	launch(2);
	for (i = 0; i < 10; i++) {
		launch(QCU_STREAM_LEGACY);
		look(i * (SECONDS - 10));
		assert_int_equal(sync_stream(2), 0);
		assert_int_equal(sync_stream(QCU_STREAM_LEGACY), 0);
		launch(2);
	}
	look(10 * (SECONDS - 10));
	assert_int_equal(found, 0);
	assert_int_equal(sync_stream(2), 0);
}

/* The stream has not reached the kernel: before the kernel is work that may take any time. */
static void behind_something(void **state)
{
	const struct qcu_seg seg = {0, PAGE};

	(void)state;
	assert_int_equal(map(VA, &seg, 1), 0);
	assert_int_equal(copy_window(true, dev, VA, PAGE, QCU_COPY_QUEUED), 0);
	fake.endless = true;
	launch(QCU_STREAM_LEGACY);
	look(0);
	look(100 * SECONDS);
	assert_int_equal(found, 0);
	assert_int_equal(sync_stream(QCU_STREAM_LEGACY), 0);
	assert_int_equal(unmap(VA, PAGE), 0);
}

/* The stream is destroyed, or the device is reset. */
static void gone(void **state)
{
	(void)state;
	launch(2);
	assert_int_equal(ask(CMD(STREAM_DESTROY, stream_destroy, .stream = 2)), 0);
	look(5 * SECONDS);
	fake.endless = true;
	launch(QCU_STREAM_LEGACY);
	look(0);
	assert_int_equal(ask(CMD(DEVICE_RESET, device_reset, 0)), 0);
	look(5 * SECONDS);
	assert_int_equal(found, 0);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, begin, mirror_stop)
	static const struct CMUnitTest tests[] = {
		T(all_end), T(one_does_not), T(many_short_ones), T(behind_something), T(gone),
	};
#undef T

	return cmocka_run_group_tests(tests, make_ram, NULL);
}
