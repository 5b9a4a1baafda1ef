// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Numbers of a guest that CUDA would not take as plain numbers: attributes whose values are
 * pointers, indices into tables, and sizes that a kernel's image invents. They must not reach the
 * backend. The backend here is the fake one, which accepts anything and counts the calls.
 */
#include "tests/unit/device/mirror/test_device_mirror.h"

static unsigned int reached;

static int any_attr_set(struct be *be, struct be_stream *s, uint32_t attr, const void *value)
{
	(void)be;
	(void)s;
	(void)attr;
	(void)value;
	reached++;
	return 0;
}

static int any_attr_get(struct be *be, struct be_stream *s, uint32_t attr, void *value)
{
	memset(value, 0x41, QCU_STREAM_ATTR);
	return any_attr_set(be, s, attr, value);
}

static int any_pool(struct be *be, unsigned int dev, struct be_pool **p)
{
	(void)be;
	(void)dev;
	*p = (struct be_pool *)&reached;
	return 0;
}

static int any_pool_set(struct be *be, struct be_pool *p, uint32_t attr, uint64_t value)
{
	(void)p;
	return any_attr_set(be, NULL, attr, &value);
}

static int any_pool_get(struct be *be, struct be_pool *p, uint32_t attr, uint64_t *value)
{
	(void)p;
	*value = 7;
	return any_attr_set(be, NULL, attr, NULL);
}

static int any_peer(struct be *be, unsigned int dev, unsigned int peer, uint32_t attr,
		    int32_t *value)
{
	(void)dev;
	(void)peer;
	*value = 1;
	return any_attr_set(be, NULL, attr, NULL);
}

static int any_array(struct be *be, unsigned int dev, const struct be_array_desc *desc,
		     struct be_phys *p, uint64_t offset, struct be_array **a)
{
	(void)dev;
	(void)p;
	(void)offset;
	*a = (struct be_array *)&reached;
	return any_attr_set(be, NULL, desc->flags, NULL);
}

static int any_array_end(struct be *be, struct be_array *a)
{
	(void)be;
	(void)a;
	return 0;
}

static struct qcu_param param;

static int any_params(struct be *be, struct be_kernel *k, struct qcu_param *params, uint32_t max,
		      uint32_t *count)
{
	(void)be;
	(void)k;
	if (max)
		*params = param;
	*count = 1;
	return 0;
}

static int start(void **state)
{
	static struct be_ops ops;
	struct mir_config cfg = {.ops = &ops, .session = 1};

	(void)state;
	fake_reset();
	fake.devices = 2;
	reached = 0;
	ops = fake_ops;
	ops.stream_attr_set = any_attr_set;
	ops.stream_attr_get = any_attr_get;
	ops.pool_default = any_pool;
	ops.pool_set = any_pool_set;
	ops.pool_get = any_pool_get;
	ops.peer_info = any_peer;
	ops.array_create = any_array;
	ops.array_destroy = any_array_end;
	ops.kernel_params = any_params;
	return mir_create(&mirror, &cfg);
}

static int attr_set(uint32_t attr, uint64_t first, uint64_t second)
{
	struct qCUcmd c = CMD(STREAM_ATTR_SET, stream_attr_set, .attr = attr);

	memcpy(c.stream_attr_set.value, &first, 8);
	memcpy(c.stream_attr_set.value + 8, &second, 8);
	return ask(c);
}

static void stream_attributes(void **state)
{
	/*
	 * Attributes whose values are addresses of events or graph nodes, and unknown attributes.
	 */
	static const uint32_t pointers[] = {0, 2, 4, 5, 6, 7, 11, 12, 13, 14, 99, UINT32_MAX};
	static const uint32_t numbers[] = {3, 8, 9, 10};
	struct qCUcmd c = CMD(MALLOC, malloc, .size = 4096);
	unsigned int i;

	(void)state;
	for (i = 0; i < sizeof(pointers) / sizeof(*pointers); i++) {
		assert_int_equal(attr_set(pointers[i], 0x414141414000, 1), QCU_ERR_InvalidValue);
		assert_int_equal(ask(CMD(STREAM_ATTR_GET, stream_attr_get, .attr = pointers[i])),
				 QCU_ERR_InvalidValue);
	}
	/* A window of memory that is not the guest's. */
	assert_int_equal(attr_set(1, 0x414141414000, 4096), QCU_ERR_InvalidValue);
	assert_int_equal(attr_set(1, (uintptr_t)&reached, 4), QCU_ERR_InvalidValue);
	assert_int_equal(attr_set(1, QCU_WINDOW_BASE, 4096), QCU_ERR_InvalidValue);
	assert_int_equal(ask_with(&c, NULL, NULL, 0), 0);
	assert_int_equal(attr_set(1, c.malloc.ptr, 4097), QCU_ERR_InvalidValue);
	assert_int_equal(attr_set(1, c.malloc.ptr, UINT64_MAX), QCU_ERR_InvalidValue);
	assert_int_equal(reached, 0);

	assert_int_equal(attr_set(1, c.malloc.ptr, 4096), 0);
	assert_int_equal(attr_set(1, 0, 0), 0);
	for (i = 0; i < sizeof(numbers) / sizeof(*numbers); i++) {
		assert_int_equal(attr_set(numbers[i], 1, 0), 0);
		assert_int_equal(ask(CMD(STREAM_ATTR_GET, stream_attr_get, .attr = numbers[i])), 0);
	}
	assert_int_equal(reached, 10);
}

static void pool_attributes(void **state)
{
	static const uint32_t bad[] = {0, 9, 10, 14, UINT32_MAX};
	unsigned int i;

	(void)state;
	for (i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		assert_int_equal(ask(CMD(POOL_SET, pool_set, .attr = bad[i])),
				 QCU_ERR_InvalidValue);
		assert_int_equal(ask(CMD(POOL_GET, pool_get, .attr = bad[i])),
				 QCU_ERR_InvalidValue);
	}
	assert_int_equal(reached, 0);
	for (i = 1; i <= 8; i++) {
		assert_int_equal(ask(CMD(POOL_SET, pool_set, .attr = i)), 0);
		assert_int_equal(ask(CMD(POOL_GET, pool_get, .attr = i)), 0);
	}
	assert_int_equal(reached, 16);
}

static void peer_attributes(void **state)
{
	static const uint32_t bad[] = {6, 0xff, 0x100 + 13, 0x1ff, 0x20d, 0x2ff, 0x300, UINT32_MAX};
	static const uint32_t good[] = {0, 1, 5, 0x100, 0x100 + 12, 0x200, 0x200 + 12};
	unsigned int i;

	(void)state;
	for (i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		assert_int_equal(ask(CMD(PEER_INFO, peer_info, .peer = 1, .attr = bad[i])),
				 QCU_ERR_InvalidValue);
	assert_int_equal(reached, 0);
	for (i = 0; i < sizeof(good) / sizeof(*good); i++)
		assert_int_equal(ask(CMD(PEER_INFO, peer_info, .peer = 1, .attr = good[i])), 0);
	assert_int_equal(reached, sizeof(good) / sizeof(*good));
}

/* Arrays that get their memory later, or only a part of it. */
static void array_flags(void **state)
{
	static const uint32_t bad[] = {0x10, 0x20, 0x40, 0x80, 0x80000000};
	struct qCUcmd c = CMD(ARRAY_CREATE, array_create, .array = 2, .width = 4, .bits = {8});
	unsigned int i;

	(void)state;
	for (i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		c.array_create.flags = bad[i];
		assert_int_equal(ask(c), QCU_ERR_InvalidValue);
	}
	assert_int_equal(reached, 0);
	c.array_create.flags = BE_ARRAY_SURFACE;
	assert_int_equal(ask(c), 0);
	assert_int_equal(reached, 1);
}

static int find(struct qcu_param p)
{
	struct qCUcmd c = CMD(KERNEL_FIND, kernel_find, .buf = {.len = strlen(FAKE_KERNEL)},
			      .module = 2, .kernel = 2);

	param = p;
	c.flags = QCU_F_MSG;
	return ask_with(&c, FAKE_KERNEL, NULL, 0);
}

/* The image says where a kernel's parameters are. The mirror reads a launch according to this. */
static void parameters(void **state)
{
	static const struct qcu_param bad[] = {{UINT32_MAX, 2},
					       {2, UINT32_MAX},
					       {0x80000000, 0x80000000},
					       {QCU_MSG_MAX, 1},
					       {0, QCU_MSG_MAX + 1}};
	const struct qcu_seg seg = {(uintptr_t)FAKE_IMAGE, sizeof(FAKE_IMAGE)};
	struct qCUcmd c = CMD(MODULE_LOAD, module_load, .buf = {1, seg.len}, .module = 2);
	unsigned int i;

	(void)state;
	c.flags = QCU_F_SEGS;
	assert_int_equal(ask_with(&c, NULL, &seg, 1), 0);
	for (i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		assert_int_equal(find(bad[i]), QCU_ERR_InvalidKernelImage);
	assert_int_equal(find((struct qcu_param){8, 4}), 0);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, start, mirror_stop)
	static const struct CMUnitTest tests[] = {
		T(stream_attributes), T(pool_attributes), T(peer_attributes),
		T(array_flags),	      T(parameters),
	};
#undef T

	return cmocka_run_group_tests(tests, NULL, NULL);
}
