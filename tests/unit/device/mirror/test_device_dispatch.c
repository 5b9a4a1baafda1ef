// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * For each command: first bad input, then what the command does: handles, launches, devices, lanes.
 */
#include <stdio.h>
#include <time.h>

#include "tests/unit/device/mirror/test_device_mirror.h"

static int mirror_start(void **state)
{
	struct mir_config cfg = {.ops = &fake_ops, .session = 1};

	(void)state;
	fake_reset();
	return mir_create(&mirror, &cfg);
}

static struct qCUcmd plain(uint16_t op)
{
	return (struct qCUcmd){.op = op, .tid = 1};
}

/* Records that no guest may send end the session: mir_submit refuses them. */
static void wire_rules(void **state)
{
	const struct qcu_seg seg = {0x1000, 4};
	unsigned int op, i, known = 0;
	struct qCUcmd c;

	(void)state;
	for (op = 0; op <= 0xffff; op += op < 300 ? 1 : 251) {
		const struct qcu_rule *rule = qcu_rule(op);

		if (!rule) {
			assert_int_equal(ask(plain(op)), REFUSED);
			continue;
		}
		known++;
		/* The wrong sender. */
		c = plain(op);
		c.tid = qcu_rule_user(rule) ? 0 : 1;
		assert_int_equal(ask(c), REFUSED);
		c.tid = !c.tid;
		if (rule->who == QCU_WHO_CTL) {
			assert_int_equal(ask(c), REFUSED);
			continue;
		}
		/* A byte behind the request part, a status, unknown flags. */
		for (i = rule->in; i < QCU_BODY; i++) {
			c = plain(op);
			c.tid = qcu_rule_user(rule);
			c.body[i] = 1;
			assert_int_equal(ask(c), REFUSED);
		}
		c = plain(op);
		c.tid = qcu_rule_user(rule);
		c.status = 1;
		assert_int_equal(ask(c), REFUSED);
		c.status = 0;
		c.flags = 0x10;
		assert_int_equal(ask(c), REFUSED);
		c.flags = QCU_F_POSTED;
		if (rule->who != QCU_WHO_POST)
			assert_int_equal(ask(c), REFUSED);
		c.flags = QCU_F_OUTPUT;
		assert_int_equal(ask(c), REFUSED);
		c.flags = QCU_F_SEGS | QCU_F_WINDOW;
		assert_int_equal(ask_with(&c, NULL, &seg, 1), REFUSED);
		c.flags = QCU_F_MSG | QCU_F_WINDOW;
		assert_int_equal(ask_with(&c, "x", NULL, 0), REFUSED);
		/* A kind of buffer that the command does not have. */
		if (rule->buffer != QCU_BUFFER_MSG) {
			c.flags = QCU_F_MSG;
			assert_int_equal(ask_with(&c, "x", NULL, 0), REFUSED);
		}
		if (rule->buffer == QCU_BUFFER_NONE) {
			c.flags = QCU_F_WINDOW;
			assert_int_equal(ask(c), REFUSED);
		}
		/* Segments without the flag, and a buffer without any. */
		c.flags = 0;
		assert_int_equal(ask_with(&c, NULL, &seg, 1), REFUSED);
		if (rule->buffer != QCU_BUFFER_NONE) {
			c.buf.len = 4;
			assert_int_equal(ask(c), REFUSED);
		}
	}
	assert_true(known > 30);
}

static void bad_segments(void **state)
{
	const struct {
		uint64_t len;
		struct qcu_seg seg[2];
	} bad[] = {
		{4, {{0x1000, 4}, {0x2000, 0}}}, {4, {{0x1000, 2}, {0x2000, 1}}},
		{4, {{0x1000, 2}, {0x2000, 3}}}, {4, {{0x1000, 5}, {0x2000, ~0ull}}},
		{4, {{~0ull, 2}, {0x2000, 2}}},	 {0, {{0x1000, ~0ull}, {0x2000, 1}}},
	};
	struct qCUcmd c;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		c = CMD(COPY_H2D, copy_h2d, .buf = {.len = bad[i].len});
		c.flags = QCU_F_SEGS;
		assert_int_equal(ask_with(&c, NULL, bad[i].seg, 2), REFUSED);
	}
	c = CMD(KERNEL_FIND, kernel_find, .buf = {.len = QCU_MSG_MAX + 1});
	c.flags = QCU_F_MSG;
	assert_int_equal(ask_with(&c, "x", NULL, 0), REFUSED);
}

/* Sends an OUT command whose one segment is a buffer of the test. */
static int ask_out(struct qCUcmd *c, void *buf, size_t len)
{
	const struct qcu_seg seg = {(uintptr_t)buf, len};

	c->flags = QCU_F_SEGS;
	c->buf.addr = (uintptr_t)buf;
	c->buf.len = len;
	return ask_with(c, NULL, &seg, 1);
}

static void devices(void **state)
{
	struct qcu_device_desc desc;
	struct qCUcmd c = plain(QCU_OP_INFO);

	(void)state;
	c.device = 99; /* ignored here */
	assert_int_equal(ask_with(&c, NULL, NULL, 0), 0);
	assert_int_equal(c.info.devices, 2);
	assert_int_equal(c.info.driver_version, 13000);
	assert_string_equal(c.info.backend, "fake");

	c = plain(QCU_OP_DEVICE_SYNC);
	c.device = 2;
	assert_int_equal(ask(c), QCU_ERR_InvalidDevice);
	c.device = 255;
	assert_int_equal(ask(c), QCU_ERR_InvalidDevice);
	c.device = 1;
	assert_int_equal(ask(c), 0);

	c = plain(QCU_OP_DEVICE_INFO);
	c.device = 1;
	assert_int_equal(ask(c), QCU_ERR_InvalidValue);
	assert_int_equal(ask_out(&c, &desc, sizeof(desc) - 1), QCU_ERR_InvalidValue);
	c = plain(QCU_OP_DEVICE_INFO);
	c.device = 1;
	assert_int_equal(ask_out(&c, &desc, sizeof(desc)), 0);
	assert_string_equal(desc.name, "fake");
	assert_int_equal(desc.attr[0], 1);
	assert_int_equal(c.flags, 0);

	c = plain(QCU_OP_MEM_INFO);
	c.device = 1;
	assert_int_equal(ask_with(&c, NULL, NULL, 0), 0);
	assert_int_equal(c.mem_info.free, 1001);
	assert_int_equal(c.mem_info.total, 2000);
}

static uint64_t alloc(uint64_t size)
{
	struct qCUcmd c = CMD(MALLOC, malloc, .size = size);

	assert_int_equal(ask_with(&c, NULL, NULL, 0), 0);
	return c.malloc.ptr;
}

static void allocations(void **state)
{
	uint64_t a = alloc(100), b = alloc(200);
	struct qcu_stats_desc st;
	struct qCUcmd c;

	(void)state;
	assert_int_equal(alloc(0), 0);
	c = CMD(MALLOC, malloc, .size = 1ull << 40);
	assert_int_equal(ask_with(&c, NULL, NULL, 0), QCU_ERR_MemoryAllocation);
	assert_int_equal(c.malloc.ptr, 0);
	assert_int_equal(ask(CMD(FREE, free, .ptr = 0)), 0);
	assert_int_equal(ask(CMD(FREE, free, .ptr = a + 1)), QCU_ERR_InvalidValue);
	assert_int_equal(ask(CMD(FREE, free, .ptr = 0x1234)), QCU_ERR_InvalidValue);
	assert_int_equal(ask(CMD(FREE, free, .ptr = a)), 0);
	assert_int_equal(ask(CMD(FREE, free, .ptr = a)), QCU_ERR_InvalidValue);
	c = plain(QCU_OP_STATS);
	assert_int_equal(ask_out(&c, &st, sizeof(st)), 0);
	assert_int_equal(st.device_bytes, 200);
	assert_true(st.commands > 5);
	(void)b; /* freed with the mirror */
}

static void streams_and_events(void **state)
{
	static const uint32_t bad[] = {QCU_ID_MAX + 1, UINT32_MAX, 77};
	struct qCUcmd c;
	float ms;
	size_t i;

	(void)state;
	assert_int_equal(ask(CMD(STREAM_CREATE, stream_create, .stream = 0)),
			 QCU_ERR_InvalidResourceHandle);
	assert_int_equal(ask(CMD(STREAM_CREATE, stream_create, .stream = 1)),
			 QCU_ERR_InvalidResourceHandle);
	assert_int_equal(ask(CMD(STREAM_CREATE, stream_create, .stream = 2, .flags = 8)),
			 QCU_ERR_InvalidValue);
	assert_int_equal(ask(CMD(STREAM_CREATE, stream_create, .stream = 2, .flags = 1)), 0);
	assert_int_equal(ask(CMD(STREAM_CREATE, stream_create, .stream = 2)),
			 QCU_ERR_InvalidResourceHandle);
	assert_int_equal(ask(CMD(EVENT_CREATE, event_create, .event = 2)), 0);
	assert_int_equal(ask(CMD(EVENT_CREATE, event_create, .event = 2)),
			 QCU_ERR_InvalidResourceHandle);
	assert_int_equal(ask(CMD(EVENT_CREATE, event_create, .event = 1)),
			 QCU_ERR_InvalidResourceHandle);
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		const uint32_t id = bad[i];
		const struct qCUcmd stale[] = {
			CMD(STREAM_CREATE, stream_create, .stream = id > 77 ? id : 0),
			CMD(STREAM_DESTROY, stream_destroy, .stream = id),
			CMD(STREAM_SYNC, stream_sync, .stream = id),
			CMD(STREAM_QUERY, stream_query, .stream = id),
			CMD(STREAM_WAIT_EVENT, stream_wait_event, .stream = id, .event = 2),
			CMD(STREAM_WAIT_EVENT, stream_wait_event, .stream = 2, .event = id),
			CMD(EVENT_DESTROY, event_destroy, .event = id),
			CMD(EVENT_RECORD, event_record, .event = id, .stream = 2),
			CMD(EVENT_RECORD, event_record, .event = 2, .stream = id),
			CMD(EVENT_SYNC, event_sync, .event = id),
			CMD(EVENT_QUERY, event_query, .event = id),
			CMD(EVENT_ELAPSED, event_elapsed, .start = id, .end = 2),
			CMD(EVENT_ELAPSED, event_elapsed, .start = 2, .end = id),
		};
		size_t k;

		for (k = 0; k < sizeof(stale) / sizeof(stale[0]); k++)
			assert_int_equal(ask(stale[k]), QCU_ERR_InvalidResourceHandle);
	}
	/* The default streams cannot be destroyed. */
	assert_int_equal(ask(CMD(STREAM_DESTROY, stream_destroy, .stream = 0)),
			 QCU_ERR_InvalidResourceHandle);
	assert_int_equal(ask(CMD(STREAM_DESTROY, stream_destroy, .stream = 1)),
			 QCU_ERR_InvalidResourceHandle);

	assert_int_equal(ask(CMD(EVENT_QUERY, event_query, .event = 2)), QCU_ERR_NotReady);
	assert_int_equal(ask(CMD(EVENT_RECORD, event_record, .event = 2, .stream = 2)), 0);
	assert_int_equal(ask(CMD(EVENT_QUERY, event_query, .event = 2)), 0);
	assert_int_equal(ask(CMD(EVENT_SYNC, event_sync, .event = 2)), 0);
	c = CMD(EVENT_ELAPSED, event_elapsed, .start = 2, .end = 2);
	assert_int_equal(ask_with(&c, NULL, NULL, 0), 0);
	memcpy(&ms, &c.event_elapsed.ms, sizeof(ms));
	assert_true(ms == 1.5f);
	assert_int_equal(ask(CMD(STREAM_WAIT_EVENT, stream_wait_event, .stream = 0, .event = 2)),
			 0);
	assert_int_equal(
		ask(CMD(STREAM_WAIT_EVENT, stream_wait_event, .stream = 2, .event = 2, .flags = 4)),
		QCU_ERR_InvalidValue);
	/* An event of device 0, a stream of device 1. */
	c = CMD(STREAM_CREATE, stream_create, .stream = 9);
	c.device = 1;
	assert_int_equal(ask(c), 0);
	assert_int_equal(ask(CMD(EVENT_RECORD, event_record, .event = 2, .stream = 9)),
			 QCU_ERR_InvalidResourceHandle);

	assert_int_equal(ask(CMD(STREAM_DESTROY, stream_destroy, .stream = 2)), 0);
	assert_int_equal(ask(CMD(STREAM_SYNC, stream_sync, .stream = 2)),
			 QCU_ERR_InvalidResourceHandle);
	assert_int_equal(ask(CMD(STREAM_CREATE, stream_create, .stream = 2)), 0);
}

/* Each guest thread has one default stream on each device, until the thread ends. */
static void per_thread_streams(void **state)
{
	unsigned int before = fake.objects, tid, device;

	(void)state;
	for (tid = 1; tid <= 3; tid++) {
		for (device = 0; device < 2; device++) {
			struct qCUcmd c =
				CMD(STREAM_SYNC, stream_sync, .stream = QCU_STREAM_PER_THREAD);

			c.tid = tid;
			c.device = device;
			assert_int_equal(ask(c), 0);
			assert_int_equal(ask(c), 0);
		}
	}
	assert_int_equal(fake.objects, before + 6);
	assert_int_equal(ask((struct qCUcmd){.op = QCU_OP_THREAD_EXIT, .tid = 2}), 0);
	assert_int_equal(fake.objects, before + 4);
	assert_int_equal(ask((struct qCUcmd){.op = QCU_OP_DEVICE_RESET, .tid = 9, .device = 1}), 0);
	assert_int_equal(fake.objects, before + 2);
}

static void device_reset(void **state)
{
	struct qCUcmd c = CMD(STREAM_CREATE, stream_create, .stream = 2);
	uint64_t p;

	(void)state;
	assert_int_equal(ask(c), 0);
	c.stream_create.stream = 3;
	c.device = 1;
	assert_int_equal(ask(c), 0);
	c = CMD(EVENT_CREATE, event_create, .event = 3);
	c.device = 1;
	assert_int_equal(ask(c), 0);
	p = alloc(64);
	c = CMD(MALLOC, malloc, .size = 64);
	c.device = 1;
	assert_int_equal(ask(c), 0);
	assert_int_equal(fake.allocations, 2);

	c = plain(QCU_OP_DEVICE_RESET);
	c.device = 1;
	assert_int_equal(ask(c), 0);
	assert_int_equal(fake.allocations, 1);
	assert_int_equal(ask(CMD(STREAM_SYNC, stream_sync, .stream = 3)),
			 QCU_ERR_InvalidResourceHandle);
	assert_int_equal(ask(CMD(EVENT_QUERY, event_query, .event = 3)),
			 QCU_ERR_InvalidResourceHandle);
	assert_int_equal(ask(CMD(STREAM_SYNC, stream_sync, .stream = 2)), 0);
	assert_int_equal(ask(CMD(FREE, free, .ptr = p)), 0);
}

static int load(uint32_t id, const char *image, size_t len)
{
	const struct qcu_seg segs[] = {{(uintptr_t)image, len / 2},
				       {(uintptr_t)image + len / 2, len - len / 2}};
	struct qCUcmd c =
		CMD(MODULE_LOAD, module_load, .buf = {(uintptr_t)image, len}, .module = id);

	c.flags = len ? QCU_F_SEGS : 0;
	return ask_with(&c, NULL, segs, len ? 2 : 0);
}

static int find(uint32_t module, uint32_t kernel, const char *name, size_t len,
		struct qCUcmd *reply)
{
	*reply = CMD(KERNEL_FIND, kernel_find, .buf = {.len = len}, .module = module,
		     .kernel = kernel);
	reply->flags = QCU_F_MSG;
	return ask_with(reply, name, NULL, 0);
}

static int names(uint32_t module, uint32_t what, char *to, size_t len, struct qCUcmd *reply)
{
	*reply = CMD(MODULE_NAMES, module_names, .module = module, .what = what);
	return ask_out(reply, to, len);
}

static int bind_var(uint32_t module, uint64_t addr, uint64_t size)
{
	struct qCUcmd c = CMD(VAR_BIND, var_bind, .buf = {.len = strlen(FAKE_VAR)},
			      .module = module, .addr = addr, .size = size);

	c.flags = QCU_F_MSG;
	return ask_with(&c, FAKE_VAR, NULL, 0);
}

static void modules(void **state)
{
	static const char wrapper[24] = "\xb1\x43\x62\x46\1\0\0\0\0\x40\x41\x41\x41\x41";
	static char name[5000];
	char text[64];
	const char *kernel = FAKE_KERNEL;
	size_t len = strlen(kernel);
	struct {
		struct qcu_kernel_desc desc;
		struct qcu_param params[4];
	} info;
	struct qCUcmd c;

	(void)state;
	assert_int_equal(load(2, "", 0), QCU_ERR_InvalidValue);
	/*
	 * An image that names another by a pointer, and bytes that are no image: no backend sees
	 * them.
	 */
	assert_int_equal(load(2, wrapper, sizeof(wrapper)), QCU_ERR_InvalidKernelImage);
	assert_int_equal(load(2, "nonsense", 8), QCU_ERR_InvalidKernelImage);
	assert_int_equal(load(2, FAKE_IMAGE, strlen(FAKE_IMAGE)), QCU_ERR_InvalidKernelImage);
	assert_int_equal(fake.images, 0);
	/* An image that the backend itself refuses. */
	assert_int_equal(load(2, ".version 1", 11), QCU_ERR_InvalidKernelImage);
	assert_int_equal(load(1, FAKE_IMAGE, sizeof(FAKE_IMAGE)), QCU_ERR_InvalidResourceHandle);
	assert_int_equal(fake.images, 1);
	assert_int_equal(load(2, FAKE_IMAGE, sizeof(FAKE_IMAGE)), 0);
	assert_int_equal(load(2, FAKE_IMAGE, sizeof(FAKE_IMAGE)), QCU_ERR_InvalidResourceHandle);
	c = CMD(MODULE_LOAD, module_load, .buf = {QCU_WINDOW_BASE, 8}, .module = 3);
	c.flags = QCU_F_WINDOW;
	assert_int_equal(ask(c), QCU_ERR_InvalidValue);
	assert_int_equal(ask(CMD(MODULE_UNLOAD, module_unload, .module = 3)),
			 QCU_ERR_InvalidResourceHandle);

	assert_int_equal(find(3, 2, kernel, len, &c), QCU_ERR_InvalidResourceHandle);
	assert_int_equal(find(2, 1, kernel, len, &c), QCU_ERR_InvalidResourceHandle);
	assert_int_equal(find(2, 2, "", 0, &c), QCU_ERR_SymbolNotFound);
	assert_int_equal(find(2, 2, "other", 5, &c), QCU_ERR_SymbolNotFound);
	assert_int_equal(find(2, 2, FAKE_KERNEL "\0x", len + 2, &c), QCU_ERR_SymbolNotFound);
	assert_int_equal(find(2, 2, FAKE_KERNEL, len + 1, &c), QCU_ERR_SymbolNotFound);
	memset(name, 'x', sizeof(name));
	assert_int_equal(find(2, 2, name, sizeof(name), &c), QCU_ERR_SymbolNotFound);
	assert_int_equal(c.kernel_find.params, 0);
	assert_int_equal(find(2, 2, kernel, len, &c), 0);
	assert_int_equal(c.kernel_find.params, 3);
	assert_int_equal(c.kernel_find.param_bytes, FAKE_KERNEL_LEN);
	assert_int_equal(find(2, 2, kernel, len, &c), QCU_ERR_InvalidResourceHandle);

	c = CMD(KERNEL_INFO, kernel_info, .kernel = 3);
	assert_int_equal(ask_out(&c, &info, sizeof(info)), QCU_ERR_InvalidResourceHandle);
	c = CMD(KERNEL_INFO, kernel_info, .kernel = 2);
	assert_int_equal(ask_out(&c, &info, sizeof(info.desc) - 1), QCU_ERR_InvalidValue);
	c = CMD(KERNEL_INFO, kernel_info, .kernel = 2);
	memset(&info, 0xff, sizeof(info));
	assert_int_equal(ask_out(&c, &info, sizeof(info.desc) + sizeof(info.params[0])), 0);
	assert_int_equal(info.desc.params, 3);
	assert_int_equal(info.params[0].size, 4);
	assert_int_equal(info.params[1].size, UINT32_MAX);
	c = CMD(KERNEL_INFO, kernel_info, .kernel = 2);
	assert_int_equal(ask_out(&c, &info, sizeof(info)), 0);
	assert_int_equal(info.desc.max_threads, 1024);
	assert_int_equal(info.params[2].offset, 16);
	assert_int_equal(info.params[3].size, UINT32_MAX);

	c = CMD(VAR_FIND, var_find, .buf = {.len = 5}, .module = 2);
	c.flags = QCU_F_MSG;
	assert_int_equal(ask_with(&c, "wrong", NULL, 0), QCU_ERR_InvalidSymbol);
	c = CMD(VAR_FIND, var_find, .buf = {.len = strlen(FAKE_VAR)}, .module = 7);
	c.flags = QCU_F_MSG;
	assert_int_equal(ask_with(&c, FAKE_VAR, NULL, 0), QCU_ERR_InvalidResourceHandle);
	c = CMD(VAR_FIND, var_find, .buf = {.len = strlen(FAKE_VAR)}, .module = 2);
	c.flags = QCU_F_MSG;
	assert_int_equal(ask_with(&c, FAKE_VAR, NULL, 0), 0);
	assert_int_equal(c.var_find.size, 64);

	assert_int_equal(names(7, 0, text, sizeof(text), &c), QCU_ERR_InvalidResourceHandle);
	assert_int_equal(names(2, 2, text, sizeof(text), &c), QCU_ERR_InvalidValue);
	assert_int_equal(names(2, QCU_NAMES_MANAGED, text, sizeof(text), &c), QCU_ERR_NotSupported);
	/* Returns as much as there is room for, and the full length. */
	memset(text, '?', sizeof(text));
	assert_int_equal(names(2, QCU_NAMES_KERNELS, text, 3, &c), 0);
	assert_int_equal(c.module_names.count, 1);
	assert_int_equal(c.module_names.bytes, sizeof(FAKE_KERNEL));
	assert_memory_equal(text, FAKE_KERNEL, 3);
	assert_int_equal(text[3], '?');
	assert_int_equal(names(2, QCU_NAMES_KERNELS, text, sizeof(text), &c), 0);
	assert_string_equal(text, FAKE_KERNEL);
	assert_int_equal(text[sizeof(FAKE_KERNEL)], '?');
	c = CMD(VAR_FIND, var_find, .buf = {.len = strlen(FAKE_VAR)}, .module = 2, .managed = 2);
	c.flags = QCU_F_MSG;
	assert_int_equal(ask_with(&c, FAKE_VAR, NULL, 0), QCU_ERR_InvalidValue);
	c = CMD(VAR_FIND, var_find, .buf = {.len = strlen(FAKE_VAR)}, .module = 2, .managed = 1);
	c.flags = QCU_F_MSG;
	assert_int_equal(ask_with(&c, FAKE_VAR, NULL, 0), QCU_ERR_SymbolNotFound);

	/* A variable can be bound only to registered memory, and there is none. */
	assert_int_equal(bind_var(2, QCU_WINDOW_BASE, 64), QCU_ERR_InvalidValue);
	assert_int_equal(bind_var(2, UINT64_MAX - 63, 64), QCU_ERR_InvalidValue);
	assert_int_equal(bind_var(2, QCU_WINDOW_BASE, 0), QCU_ERR_InvalidValue);

	assert_int_equal(ask(CMD(FUNC_SET, func_set, .kernel = 3)), QCU_ERR_InvalidResourceHandle);
	assert_int_equal(ask(CMD(FUNC_SET, func_set, .kernel = 2, .attr = 8, .value = -5)), 0);
	assert_int_equal(fake.attr, 8);
	assert_int_equal(fake.value, -5);

	/* A module's kernels are destroyed with it. */
	assert_int_equal(ask(CMD(MODULE_UNLOAD, module_unload, .module = 2)), 0);
	assert_int_equal(ask(CMD(MODULE_UNLOAD, module_unload, .module = 2)),
			 QCU_ERR_InvalidResourceHandle);
	assert_int_equal(ask(CMD(FUNC_SET, func_set, .kernel = 2)), QCU_ERR_InvalidResourceHandle);
	assert_int_equal(fake.objects, 0);
}

struct launch_bytes {
	struct qcu_launch_msg msg;
	uint8_t params[FAKE_KERNEL_LEN + 10];
};

static int launch(uint32_t kernel, uint32_t stream, const struct launch_bytes *l, size_t len)
{
	struct qCUcmd c =
		CMD(LAUNCH, launch, .buf = {.len = len}, .kernel = kernel, .stream = stream);

	c.flags = QCU_F_MSG;
	return ask_with(&c, l, NULL, 0);
}

static void launches(void **state)
{
	const size_t whole = sizeof(struct qcu_launch_msg) + FAKE_KERNEL_LEN;
	struct launch_bytes good =
				    {
					    .msg = {{7, 6, 5},
						    {4, 3, 2},
						    99,
						    0,
						    FAKE_KERNEL_LEN,
						    {0},
						    0,
						    0,
						    {0}},
				    },
			    l;
	struct qCUcmd c;
	size_t i;

	(void)state;
	memset(good.params, 0x5a, sizeof(good.params));
	assert_int_equal(launch(2, 0, &good, whole), QCU_ERR_InvalidResourceHandle);
	assert_int_equal(load(2, FAKE_IMAGE, sizeof(FAKE_IMAGE)), 0);
	assert_int_equal(find(2, 2, FAKE_KERNEL, strlen(FAKE_KERNEL), &c), 0);

	c = CMD(LAUNCH, launch, .kernel = 2);
	assert_int_equal(ask(c), QCU_ERR_InvalidValue);
	for (i = 1; i < whole; i++)
		assert_int_equal(launch(2, 0, &good, i), QCU_ERR_InvalidValue);
	assert_int_equal(launch(2, 0, &good, whole + 1), QCU_ERR_InvalidValue);
	l = good;
	l.msg.param_bytes++;
	assert_int_equal(launch(2, 0, &l, whole + 1), QCU_ERR_InvalidValue);
	l.msg.param_bytes = FAKE_KERNEL_LEN - 1;
	assert_int_equal(launch(2, 0, &l, whole - 1), QCU_ERR_InvalidValue);
	l = good;
	l.msg.flags = QCU_LAUNCH_FLAGS + 1;
	assert_int_equal(launch(2, 0, &l, whole), QCU_ERR_InvalidValue);
	for (i = 0; i < 2; i++) {
		l = good;
		l.msg.rsvd[i] = 1;
		assert_int_equal(launch(2, 0, &l, whole), QCU_ERR_InvalidValue);
	}
	assert_int_equal(launch(2, 55, &good, whole), QCU_ERR_InvalidResourceHandle);
	c = CMD(STREAM_CREATE, stream_create, .stream = 5);
	c.device = 1;
	assert_int_equal(ask(c), 0);
	assert_int_equal(launch(2, 5, &good, whole), QCU_ERR_InvalidResourceHandle);
	assert_int_equal(fake.launches, 0);

	good.msg.flags = QCU_LAUNCH_COOPERATIVE;
	assert_int_equal(launch(2, 0, &good, whole), 0);
	assert_int_equal(launch(2, QCU_STREAM_PER_THREAD, &good, whole), 0);
	assert_int_equal(fake.launches, 2);
	assert_int_equal(fake.launch.grid.x, 7);
	assert_int_equal(fake.launch.block.z, 2);
	assert_int_equal(fake.launch.dynamic_shared, 99);
	assert_int_equal(fake.launch.flags, QCU_LAUNCH_COOPERATIVE);
	assert_int_equal(fake.launch.param_bytes, FAKE_KERNEL_LEN);
	assert_memory_equal(fake.params, good.params, FAKE_KERNEL_LEN);
}

static void left_out(void **state)
{
	struct qCUcmd c = CMD(LIMIT_GET, limit_get, .limit = 1);

	(void)state;
	assert_int_equal(ask(c), QCU_ERR_NotSupported);
	assert_int_equal(ask(c), QCU_ERR_NotSupported);
}

static void output(void **state)
{
	char text[64] = {0};
	struct qCUcmd c = plain(QCU_OP_DEVICE_SYNC);

	(void)state;
	assert_int_equal(ask_with(&c, NULL, NULL, 0), 0);
	assert_int_equal(c.flags, 0);
	fake.text = "hello";
	c = plain(QCU_OP_INFO);
	assert_int_equal(ask_with(&c, NULL, NULL, 0), 0);
	assert_int_equal(c.flags, 0);
	c = CMD(STREAM_SYNC, stream_sync, .stream = 0);
	assert_int_equal(ask_with(&c, NULL, NULL, 0), 0);
	assert_int_equal(c.flags, QCU_F_OUTPUT);
	c = plain(QCU_OP_PRINT_READ);
	assert_int_equal(ask_out(&c, text, 3), 0);
	assert_int_equal(c.print_read.got, 3);
	c = plain(QCU_OP_PRINT_READ);
	assert_int_equal(ask_out(&c, text + 3, sizeof(text) - 3), 0);
	assert_int_equal(c.print_read.got, 2);
	assert_string_equal(text, "hello");
	fake.complaint = "no";
	c = plain(QCU_OP_INFO);
	assert_int_equal(ask_with(&c, NULL, NULL, 0), 0);
	assert_int_equal(c.flags, 0);
	c = CMD(EVENT_RECORD, event_record, .event = 99);
	assert_int_equal(ask_with(&c, NULL, NULL, 0), QCU_ERR_InvalidResourceHandle);
	assert_int_equal(c.flags, QCU_F_OUTPUT);
	fake.lost = true;
	fake.error = QCU_ERR_Assert;
	c = plain(QCU_OP_DEVICE_SYNC);
	assert_int_equal(ask_with(&c, NULL, NULL, 0), QCU_ERR_Assert);
	assert_int_equal(c.flags, QCU_F_OUTPUT);
	c = plain(QCU_OP_PRINT_READ);
	c.print_read.channel = QCU_PRINT_FAULT + 1;
	assert_int_equal(ask_out(&c, text, 3), QCU_ERR_InvalidValue);
	c = plain(QCU_OP_PRINT_READ);
	assert_int_equal(ask_out(&c, text, 3), 0);
	assert_int_equal(c.print_read.got, 0);
	c = plain(QCU_OP_PRINT_READ);
	c.print_read.channel = QCU_PRINT_ERR;
	assert_int_equal(ask_out(&c, text, 3), 0);
	assert_int_equal(c.print_read.got, 2);
	assert_memory_equal(text, "no", 2);
	c = plain(QCU_OP_DEVICE_SYNC);
	assert_int_equal(ask_with(&c, NULL, NULL, 0), QCU_ERR_Assert);
	assert_int_equal(c.flags, 0);
}

/* An event is destroyed while another guest thread waits for it. */
static void destroyed_in_use(void **state)
{
	struct question wait = {.req = {.cmd = CMD(EVENT_SYNC, event_sync, .event = 2)}};
	struct timespec ms = {.tv_nsec = 1000000};
	struct qCUcmd c;

	(void)state;
	assert_int_equal(ask(CMD(EVENT_CREATE, event_create, .event = 2)), 0);
	assert_int_equal(ask(CMD(EVENT_RECORD, event_record, .event = 2)), 0);
	fake.hold = true;
	assert_true(ask_begin(&wait));
	while (!fake.held)
		nanosleep(&ms, NULL);
	c = CMD(EVENT_DESTROY, event_destroy, .event = 2);
	c.tid = 2;
	assert_int_equal(ask(c), 0);
	assert_int_equal(ask_with(&c, NULL, NULL, 0), QCU_ERR_InvalidResourceHandle);
	assert_int_equal(fake.objects, 1);
	fake.hold = false;
	assert_int_equal(ask_end(&wait), 0);
	assert_int_equal(ask(CMD(EVENT_SYNC, event_sync, .event = 2)),
			 QCU_ERR_InvalidResourceHandle);
	assert_int_equal(fake.objects, 0);
}

static void no_backend(void **state)
{
	struct mir_config cfg = {.ops = &fake_ops};
	struct mirror *m = NULL;

	(void)state;
	fake_reset();
	fake.open_error = QCU_ERR_NoDevice;
	assert_true(mir_create(&m, &cfg) < 0);
	assert_null(m);
}

/* Random bytes: each record must be answered or refused. */
static void noise(void **state)
{
	uint32_t seed = 12345;
	unsigned int round, i, refused = 0;

	(void)state;
	for (round = 0; round < 60000; round++) {
		struct qCUcmd c = {0};
		uint8_t msg[256];

		for (i = 0; i < sizeof(c); i++) {
			seed = seed * 1664525 + 1013904223;
			if (seed >> 28 < 4)
				((uint8_t *)&c)[i] = seed >> 16;
		}
		seed = seed * 1664525 + 1013904223;
		c.op = seed >> 24 & 127;
		c.device &= 1;
		c.tid = seed >> 23 & 1;
		c.flags &= QCU_F_ALL;
		c.status = 0;
		if (qcu_rule(c.op))
			memset(c.body + qcu_rule(c.op)->in, 0, QCU_BODY - qcu_rule(c.op)->in);
		if (c.flags & QCU_F_MSG)
			c.buf.len %= sizeof(msg);
		/* Segments are pointers here. The driver would not invent them. */
		if (c.flags & QCU_F_SEGS)
			continue;
		memset(msg, seed, sizeof(msg));
		refused += ask_with(&c, msg, NULL, 0) == REFUSED;
	}
	assert_true(refused > 100 && refused < 60000);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, mirror_start, mirror_stop)
	static const struct CMUnitTest tests[] = {
		T(wire_rules),
		T(bad_segments),
		T(devices),
		T(allocations),
		T(streams_and_events),
		T(per_thread_streams),
		T(device_reset),
		T(modules),
		T(launches),
		T(left_out),
		T(output),
		T(destroyed_in_use),
		T(noise),
		cmocka_unit_test(no_backend),
	};
#undef T

	return cmocka_run_group_tests(tests, NULL, NULL);
}
