// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Streams that write and wait for numbers, in a mirror on the software GPU. Bad ones first: memory
 * that the guest may not name, widths, flags and streams that do not exist. Then every comparison,
 * a wait that ends by another stream's write, and a mirror that ends while a stream waits.
 */
#include "tests/unit/device/mirror/test_device_mirror.h"

struct fake fake; /* for test_device_mirror.h; this test uses the software GPU */

#define A 2u
#define B 3u

static uint64_t memory;

static int start(void **state)
{
	struct mir_config cfg = {.ops = &be_soft, .session = 1};
	struct qCUcmd c = CMD(MALLOC, malloc, .size = 4096);

	(void)state;
	cfg.options.vram = 64 << 20;
	if (mir_create(&mirror, &cfg))
		return -1;
	assert_int_equal(ask_with(&c, NULL, NULL, 0), 0);
	memory = c.malloc.ptr;
	assert_int_equal(ask(CMD(STREAM_CREATE, stream_create, .stream = A, .flags = 1)), 0);
	assert_int_equal(ask(CMD(STREAM_CREATE, stream_create, .stream = B, .flags = 1)), 0);
	return 0;
}

static int value(uint32_t stream, uint32_t what, uint32_t bytes, uint64_t addr, uint64_t v,
		 uint32_t flags)
{
	return ask(CMD(STREAM_VALUE, stream_value, .addr = addr, .value = v, .stream = stream,
		       .what = (uint8_t)what, .bytes = (uint8_t)bytes, .flags = (uint16_t)flags));
}

static int put(uint32_t stream, uint32_t bytes, uint64_t addr, uint64_t v)
{
	return value(stream, QCU_VALUE_WRITE, bytes, addr, v, 0);
}

static int wait_for(uint32_t stream, uint32_t bytes, uint64_t addr, uint64_t v, uint32_t flags)
{
	return value(stream, QCU_VALUE_WAIT, bytes, addr, v, flags);
}

static int query(uint32_t stream)
{
	return ask(CMD(STREAM_QUERY, stream_query, .stream = stream));
}

static int sync_with(uint32_t stream)
{
	return ask(CMD(STREAM_SYNC, stream_sync, .stream = stream));
}

static uint64_t read_back(uint64_t addr)
{
	uint64_t v = 0;
	const struct qcu_seg to = {(uintptr_t)&v, sizeof(v)};
	struct qCUcmd c = CMD(COPY_D2H, copy_d2h, .buf = {1, sizeof(v)}, .src = addr);

	c.flags = QCU_F_SEGS;
	assert_int_equal(ask_with(&c, NULL, &to, 1), 0);
	return v;
}

static void bad(void **state)
{
	uint32_t what;
	struct qCUcmd c;

	(void)state;
	for (what = QCU_VALUE_WRITE; what <= QCU_VALUE_WAIT; what++) {
		assert_int_equal(value(A, what, 4, 0, 0, 0), QCU_ERR_InvalidValue);
		assert_int_equal(value(A, what, 4, memory - 4, 0, 0), QCU_ERR_InvalidValue);
		assert_int_equal(value(A, what, 8, memory + 4096, 0, 0), QCU_ERR_InvalidValue);
		assert_int_equal(value(A, what, 8, memory + 4092, 0, 0), QCU_ERR_InvalidValue);
		assert_int_equal(value(A, what, 4, memory + 2, 0, 0), QCU_ERR_InvalidValue);
		assert_int_equal(value(A, what, 4, 0 - 4ull, 0, 0), QCU_ERR_InvalidValue);
		assert_int_equal(value(A, what, 4, QCU_WINDOW_BASE, 0, 0), QCU_ERR_InvalidValue);
		assert_int_equal(value(A, what, 4, (uintptr_t)&memory, 0, 0), QCU_ERR_InvalidValue);
		assert_int_equal(value(A, what, 2, memory, 0, 0), QCU_ERR_InvalidValue);
		assert_int_equal(value(A, what, 0, memory, 0, 0), QCU_ERR_InvalidValue);
		assert_int_equal(value(A, what, 4, memory, 1ull << 32, 0), QCU_ERR_InvalidValue);
		assert_int_equal(value(A, what, 4, memory, 0, 8), QCU_ERR_InvalidValue);
		assert_int_equal(value(99, what, 4, memory, 0, 0), QCU_ERR_InvalidResourceHandle);
		assert_int_equal(value(UINT32_MAX, what, 4, memory, 0, 0),
				 QCU_ERR_InvalidResourceHandle);
	}
	assert_int_equal(value(A, 2, 4, memory, 0, 0), QCU_ERR_InvalidValue);
	assert_int_equal(value(A, QCU_VALUE_WRITE, 4, memory, 0, 2), QCU_ERR_InvalidValue);
	c = CMD(FREE, free, .ptr = memory);
	assert_int_equal(ask_with(&c, NULL, NULL, 0), 0);
	assert_int_equal(wait_for(A, 4, memory, 0, 0), QCU_ERR_InvalidValue);
}

static void writes(void **state)
{
	(void)state;
	assert_int_equal(put(A, 8, memory, 0x1122334455667788), 0);
	assert_int_equal(put(A, 4, memory + 8, 0xaabbccdd), 0);
	assert_int_equal(value(A, QCU_VALUE_WRITE, 4, memory + 4, 7, QCU_VALUE_UNORDERED), 0);
	assert_int_equal(sync_with(A), 0);
	assert_int_equal(read_back(memory), 0x0000000755667788);
	assert_int_equal(read_back(memory + 8), 0xaabbccdd);
}

/* The number in memory, the number that is waited for, and whether they fit. */
static void comparisons(void **state)
{
	static const struct {
		uint32_t bytes, flags;
		uint64_t now, value;
		bool fits;
	} cases[] = {
		{4, QCU_VALUE_GEQ, 5, 5, true},
		{4, QCU_VALUE_GEQ, 6, 5, true},
		{4, QCU_VALUE_GEQ, 4, 5, false},
		{4, QCU_VALUE_GEQ, 1, 0xfffffff0, true}, /* it has wrapped */
		{4, QCU_VALUE_GEQ, 0xfffffff0, 1, false},
		{8, QCU_VALUE_GEQ, 1, 0xfffffff0, false},
		{8, QCU_VALUE_GEQ, 1, UINT64_MAX, true},
		{4, QCU_VALUE_EQ, 5, 5, true},
		{4, QCU_VALUE_EQ, 0x100000005, 5, true}, /* only 4 bytes count */
		{8, QCU_VALUE_EQ, 0x100000005, 5, false},
		{8, QCU_VALUE_EQ | QCU_VALUE_FLUSH, UINT64_MAX, UINT64_MAX, true},
		{4, QCU_VALUE_AND, 6, 3, true},
		{4, QCU_VALUE_AND, 4, 3, false},
		{8, QCU_VALUE_AND, 1ull << 40, 1ull << 40, true},
		{4, QCU_VALUE_NOR, 0xf0f0f0f0, 0x0f0f0f0f, false},
		{4, QCU_VALUE_NOR, 0xf0f0f0f0, 0x0f0f0f0e, true},
		{8, QCU_VALUE_NOR, 0xffffffff, 0, true},
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint64_t fitting = (cases[i].flags & 3) == QCU_VALUE_NOR ? 0 : cases[i].value;

		assert_int_equal(put(B, 8, memory, cases[i].now), 0);
		assert_int_equal(sync_with(B), 0);
		assert_int_equal(
			wait_for(A, cases[i].bytes, memory, cases[i].value, cases[i].flags), 0);
		if (!cases[i].fits) {
			assert_int_equal(query(A), QCU_ERR_NotReady);
			assert_int_equal(put(B, 8, memory, fitting), 0);
		}
		assert_int_equal(sync_with(A), 0);
	}
}

/* What stands behind a wait comes after what stands before the write. */
static void between_streams(void **state)
{
	(void)state;
	assert_int_equal(put(B, 8, memory, 0), 0);
	assert_int_equal(sync_with(B), 0);
	assert_int_equal(wait_for(A, 4, memory, 1, QCU_VALUE_EQ), 0);
	assert_int_equal(ask(CMD(COPY_D2D, copy_d2d, .dst = memory + 16, .src = memory + 8,
				 .len = 8, .stream = A)),
			 0);
	assert_int_equal(query(A), QCU_ERR_NotReady);
	assert_int_equal(put(B, 8, memory + 8, 77), 0);
	assert_int_equal(put(B, 4, memory, 1), 0);
	assert_int_equal(sync_with(A), 0);
	assert_int_equal(read_back(memory + 16), 77);
}

static void ends_with_the_mirror(void **state)
{
	(void)state;
	assert_int_equal(put(B, 8, memory, 0), 0);
	assert_int_equal(sync_with(B), 0);
	assert_int_equal(wait_for(A, 8, memory, 1, QCU_VALUE_EQ), 0);
	assert_int_equal(wait_for(0, 8, memory, 1, QCU_VALUE_EQ), 0);
	assert_int_equal(query(A), QCU_ERR_NotReady);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(bad, start, mirror_stop),
		cmocka_unit_test_setup_teardown(writes, start, mirror_stop),
		cmocka_unit_test_setup_teardown(comparisons, start, mirror_stop),
		cmocka_unit_test_setup_teardown(between_streams, start, mirror_stop),
		cmocka_unit_test_setup_teardown(ends_with_the_mirror, start, mirror_stop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
