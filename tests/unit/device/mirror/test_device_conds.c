// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Graphs with conditional nodes in a mirror on the software GPU: commands that name things that do
 * not exist, or that come in a wrong order; work that no graph can keep; kernels that set a value
 * from outside the graph; and what a graph keeps of objects that the guest destroys. A kernel sets
 * the values.
 */
#include "tests/unit/device/mirror/test_device_mirror.h"

struct fake fake; /* for test_device_mirror.h; this test uses the software GPU */

static const char ptx[] =
	".version 8.3\n.target sm_75\n.address_size 64\n"
	".extern .func cudaGraphSetConditional\n"
	"(.param .b64 handle, .param .b32 value);\n"
	/* *left += n, and the result is the value */
	".visible .entry step(.param .u64 handle, .param .u64 left, .param .u32 n)\n"
	"{\n"
	".reg .b64 %h, %p;\n"
	".reg .b32 %v, %n;\n"
	"ld.param.u64 %h, [handle];\n"
	"ld.param.u64 %p, [left];\n"
	"ld.param.u32 %n, [n];\n"
	"ld.global.u32 %v, [%p];\n"
	"add.u32 %v, %v, %n;\n"
	"st.global.u32 [%p], %v;\n"
	"{\n"
	".param .b64 a;\n"
	"st.param.b64 [a], %h;\n"
	".param .b32 b;\n"
	"st.param.b32 [b], %v;\n"
	"call.uni cudaGraphSetConditional, (a, b);\n"
	"}\n"
	"ret;\n"
	"}\n";

#define MODULE 2
#define KERNEL 2
#define GRAPH  2
#define COND   3
#define STREAM 2 /* the graph's stream */
#define BODY   3 /* the body's stream */

static uint64_t left, handle;

static int start(void **state)
{
	struct mir_config cfg = {.ops = &be_soft, .session = 1};
	struct qCUcmd c = CMD(MODULE_LOAD, module_load, .buf = {1, sizeof(ptx)}, .module = MODULE);
	const struct qcu_seg image = {(uintptr_t)ptx, sizeof(ptx)};

	(void)state;
	cfg.options.vram = 64 << 20;
	if (mir_create(&mirror, &cfg))
		return -1;
	c.flags = QCU_F_SEGS;
	assert_int_equal(ask_with(&c, NULL, &image, 1), 0);
	c = CMD(KERNEL_FIND, kernel_find, .buf = {1, 4}, .module = MODULE, .kernel = KERNEL);
	c.flags = QCU_F_MSG;
	assert_int_equal(ask_with(&c, "step", NULL, 0), 0);
	c = CMD(MALLOC, malloc, .size = 4096);
	assert_int_equal(ask_with(&c, NULL, NULL, 0), 0);
	left = c.malloc.ptr;
	return 0;
}

static int create(uint32_t id, uint32_t graph, uint32_t body)
{
	struct qCUcmd c = CMD(COND_CREATE, cond_create, .cond = id, .graph = graph, .body = body);
	int rc = ask_with(&c, NULL, NULL, 0);

	handle = c.cond_create.handle;
	return rc;
}

/* Makes a node's handle in the outermost graph, with a first value. */
static int create_first(uint32_t id, uint32_t first)
{
	struct qCUcmd c = CMD(COND_CREATE, cond_create, .cond = id, .graph = GRAPH, .value = first,
			      .flags = QCU_COND_DEFAULT);
	int rc = ask_with(&c, NULL, NULL, 0);

	handle = c.cond_create.handle;
	return rc;
}

static int node(uint32_t id, uint32_t type, uint32_t size)
{
	return ask(CMD(COND_NODE, cond_node, .cond = id, .type = type, .size = size));
}

static int record(uint32_t id, uint32_t body, uint32_t stream)
{
	return ask(CMD(COND_RECORD, cond_record, .cond = id, .body = body, .stream = stream));
}

static int place(uint32_t id, uint32_t stream)
{
	return ask(CMD(COND_PLACE, cond_place, .cond = id, .stream = stream));
}

static int end(uint32_t stream)
{
	return ask(CMD(STREAM_DESTROY, stream_destroy, .stream = stream));
}

static int ready(uint32_t id)
{
	return ask(CMD(COND_READY, cond_ready, .cond = id));
}

static int run(uint32_t id, uint32_t stream)
{
	return ask(CMD(COND_RUN, cond_run, .cond = id, .stream = stream));
}

/* Begins a graph with this one node. The graph's own stream is left open. */
static void begin(uint32_t first, uint32_t type, uint32_t size)
{
	assert_int_equal(create(GRAPH, 0, 0), 0);
	assert_int_equal(create_first(COND, first), 0);
	assert_int_equal(node(COND, type, size), 0);
	assert_int_equal(record(GRAPH, 0, STREAM), 0);
}

static void finish(void)
{
	assert_int_equal(end(STREAM), 0);
	assert_int_equal(ready(GRAPH), 0);
}

static int step(uint64_t h, uint32_t n, uint32_t stream)
{
	struct {
		struct qcu_launch_msg msg;
		uint64_t handle, left;
		uint32_t n;
	} __attribute__((packed)) m = {
		.msg = {.grid = {1, 1, 1}, .block = {1, 1, 1}, .param_bytes = 20},
		.handle = h,
		.left = left,
		.n = n,
	};
	struct qCUcmd c =
		CMD(LAUNCH, launch, .buf = {1, sizeof(m)}, .kernel = KERNEL, .stream = stream);

	c.flags = QCU_F_MSG;
	return ask_with(&c, &m, NULL, 0);
}

static int fill(uint64_t at, uint32_t value, uint32_t stream)
{
	return ask(CMD(MEMSET, memset, .dst = at, .width = 4, .height = 1, .value = value,
		       .elem = 4, .stream = stream));
}

static int sync(void)
{
	return ask(CMD(DEVICE_SYNC, device_sync, .rsvd = 0));
}

static uint32_t value_at(uint64_t at)
{
	uint32_t v = 0;
	const struct qcu_seg to = {(uintptr_t)&v, sizeof(v)};
	struct qCUcmd c = CMD(COPY_D2H, copy_d2h, .buf = {1, sizeof(v)}, .src = at);

	c.flags = QCU_F_SEGS;
	assert_int_equal(ask_with(&c, NULL, &to, 1), 0);
	return v;
}

static void bad_numbers(void **state)
{
	(void)state;
	assert_int_equal(create(0, 0, 0), QCU_ERR_InvalidResourceHandle);
	assert_int_equal(create(0x10000, 0, 0), QCU_ERR_InvalidResourceHandle);
	assert_int_equal(create(COND, GRAPH, 0), QCU_ERR_InvalidResourceHandle);
	assert_int_equal(create(COND, COND, 0), QCU_ERR_InvalidResourceHandle);
	assert_int_equal(node(COND, QCU_COND_IF, 1), QCU_ERR_InvalidResourceHandle);
	assert_int_equal(record(COND, 0, STREAM), QCU_ERR_InvalidResourceHandle);
	assert_int_equal(place(COND, STREAM), QCU_ERR_InvalidResourceHandle);
	assert_int_equal(ready(COND), QCU_ERR_InvalidResourceHandle);
	assert_int_equal(run(COND, 0), QCU_ERR_InvalidResourceHandle);
	assert_int_equal(ask(CMD(COND_DESTROY, cond_destroy, .cond = COND)),
			 QCU_ERR_InvalidResourceHandle);

	/* The outermost graph has one body, no value and no node. */
	assert_int_equal(create(GRAPH, 0, 1), QCU_ERR_InvalidValue);
	assert_int_equal(ask(CMD(COND_CREATE, cond_create, .cond = GRAPH, .value = 1)),
			 QCU_ERR_InvalidValue);
	assert_int_equal(ask(CMD(COND_CREATE, cond_create, .cond = GRAPH, .flags = 1)),
			 QCU_ERR_InvalidValue);
	assert_int_equal(ask(CMD(COND_CREATE, cond_create, .cond = GRAPH, .rsvd = 1)),
			 QCU_ERR_InvalidValue);
	assert_int_equal(create(GRAPH, 0, 0), 0);
	assert_int_equal(handle, 0);
	assert_int_equal(node(GRAPH, QCU_COND_IF, 1), QCU_ERR_InvalidValue);
	assert_int_equal(run(GRAPH, 0), QCU_ERR_InvalidValue);

	assert_int_equal(create(COND, GRAPH, 1), QCU_ERR_InvalidValue);
	assert_int_equal(
		ask(CMD(COND_CREATE, cond_create, .cond = COND, .graph = GRAPH, .flags = 2)),
		QCU_ERR_InvalidValue);
	assert_int_equal(create(COND, GRAPH, 0), 0);
	assert_int_not_equal(handle, 0);
	assert_int_equal(create(COND, GRAPH, 0), QCU_ERR_InvalidResourceHandle);
	assert_int_equal(node(COND, QCU_COND_IF, 0), QCU_ERR_InvalidValue);
	assert_int_equal(node(COND, QCU_COND_IF, 3), QCU_ERR_InvalidValue);
	assert_int_equal(node(COND, QCU_COND_WHILE, 2), QCU_ERR_InvalidValue);
	assert_int_equal(node(COND, QCU_COND_SWITCH, 0), QCU_ERR_InvalidValue);
	assert_int_equal(node(COND, QCU_COND_SWITCH, QCU_COND_BODIES + 1), QCU_ERR_InvalidValue);
	assert_int_equal(node(COND, 3, 1), QCU_ERR_InvalidValue);

	/*
	 * A node that does not exist yet, then a body that does not exist, then a body that is not
	 * done.
	 */
	assert_int_equal(record(GRAPH, 1, STREAM), QCU_ERR_InvalidValue);
	assert_int_equal(record(GRAPH, 0, STREAM), 0);
	assert_int_equal(place(COND, STREAM), QCU_ERR_InvalidValue);
	assert_int_equal(end(STREAM), 0);
	assert_int_equal(record(GRAPH, 0, STREAM), 0);
	assert_int_equal(record(COND, 0, BODY), QCU_ERR_InvalidValue);
	assert_int_equal(create(4, COND, 0), QCU_ERR_InvalidValue);
	assert_int_equal(node(COND, QCU_COND_IF, 2), 0);
	assert_int_equal(node(COND, QCU_COND_IF, 2), QCU_ERR_InvalidValue);
	assert_int_equal(create(4, COND, 2), QCU_ERR_InvalidValue);
	assert_int_equal(record(COND, 2, BODY), QCU_ERR_InvalidValue);
	assert_int_equal(record(COND, 0, 0), QCU_ERR_InvalidResourceHandle);
	assert_int_equal(record(COND, 0, STREAM), QCU_ERR_InvalidResourceHandle);
	assert_int_equal(ready(COND), QCU_ERR_InvalidValue);
	assert_int_equal(run(COND, 0), QCU_ERR_InvalidValue);
	assert_int_equal(ready(GRAPH), QCU_ERR_InvalidValue);
	assert_int_equal(record(COND, 0, BODY), 0);
	assert_int_equal(end(STREAM), 0);
	assert_int_equal(ready(GRAPH), QCU_ERR_InvalidValue);
	assert_int_equal(end(BODY), 0);
	assert_int_equal(ready(GRAPH), 0);
	assert_int_equal(run(GRAPH, 9), QCU_ERR_InvalidResourceHandle);
	assert_int_equal(run(GRAPH, 0), 0);
}

/*
 * A node can be placed only in its handle's graph, and only once. So no graph can contain itself.
 */
static void bad_places(void **state)
{
	(void)state;
	begin(0, QCU_COND_IF, 2);
	assert_int_equal(create(4, COND, 1), 0);
	assert_int_equal(node(4, QCU_COND_IF, 1), 0);
	assert_int_equal(place(COND, 0), QCU_ERR_InvalidValue);
	assert_int_equal(place(COND, QCU_STREAM_PER_THREAD), QCU_ERR_InvalidValue);
	assert_int_equal(place(COND, 7), QCU_ERR_InvalidResourceHandle);
	assert_int_equal(ask(CMD(STREAM_CREATE, stream_create, .stream = 7)), 0);
	assert_int_equal(place(COND, 7), QCU_ERR_InvalidValue);
	assert_int_equal(place(GRAPH, STREAM), QCU_ERR_InvalidValue);
	assert_int_equal(place(4, STREAM), QCU_ERR_InvalidValue);
	assert_int_equal(record(COND, 0, BODY), 0);
	assert_int_equal(place(4, BODY), QCU_ERR_InvalidValue);
	assert_int_equal(place(COND, BODY), QCU_ERR_InvalidValue);
	assert_int_equal(end(BODY), 0);
	assert_int_equal(record(COND, 1, BODY), 0);
	assert_int_equal(place(COND, BODY), QCU_ERR_InvalidValue);
	assert_int_equal(place(4, BODY), 0);
	assert_int_equal(place(4, BODY), QCU_ERR_InvalidValue);
	assert_int_equal(record(4, 0, 4), 0);
	assert_int_equal(place(4, 4), QCU_ERR_InvalidValue);
	assert_int_equal(end(4), 0);
	assert_int_equal(end(BODY), 0);
	assert_int_equal(place(COND, STREAM), 0);
	assert_int_equal(place(COND, STREAM), QCU_ERR_InvalidValue);
	finish();
	/* Another graph. */
	assert_int_equal(create(5, 0, 0), 0);
	assert_int_equal(record(5, 0, STREAM), 0);
	assert_int_equal(place(COND, STREAM), QCU_ERR_InvalidValue);
}

/* A graph keeps only work that the GPU does without the host. */
static void bad_work(void **state)
{
	static uint8_t mine[4096];
	const struct qcu_seg here = {(uintptr_t)mine, sizeof(mine)};
	struct qCUcmd c;

	(void)state;
	begin(1, QCU_COND_WHILE, 1);
	assert_int_equal(ask(CMD(EVENT_CREATE, event_create, .event = 2)), 0);
	assert_int_equal(ask(CMD(EVENT_RECORD, event_record, .event = 2, .stream = STREAM)),
			 QCU_ERR_StreamCaptureUnsupported);
	assert_int_equal(
		ask(CMD(STREAM_WAIT_EVENT, stream_wait_event, .event = 2, .stream = STREAM)),
		QCU_ERR_StreamCaptureUnsupported);
	assert_int_equal(ask(CMD(STREAM_SYNC, stream_sync, .stream = STREAM)),
			 QCU_ERR_StreamCaptureUnsupported);
	assert_int_equal(ask(CMD(HOST_FUNC, host_func, .token = 5, .stream = STREAM)),
			 QCU_ERR_StreamCaptureUnsupported);
	assert_int_equal(ask(CMD(FREE_ASYNC, free_async, .ptr = left, .stream = STREAM)),
			 QCU_ERR_StreamCaptureUnsupported);
	c = CMD(COPY_H2D, copy_h2d, .buf = {1, 4096}, .dst = left, .stream = STREAM);
	c.flags = QCU_F_SEGS;
	assert_int_equal(ask_with(&c, NULL, &here, 1), QCU_ERR_StreamCaptureUnsupported);
	c = CMD(COPY_D2H, copy_d2h, .buf = {1, 4096}, .src = left, .stream = STREAM);
	c.flags = QCU_F_SEGS;
	assert_int_equal(ask_with(&c, NULL, &here, 1), QCU_ERR_StreamCaptureUnsupported);
	c = CMD(RECT_D2H, rect_d2h, .buf = {1, 4096}, .src = left, .pitch = 4096, .src_pitch = 4096,
		.width = 4096, .height = 1, .stream = STREAM);
	c.flags = QCU_F_SEGS;
	assert_int_equal(ask_with(&c, NULL, &here, 1), QCU_ERR_StreamCaptureUnsupported);
	assert_int_equal(fill(left, 77, STREAM), 0);
	assert_int_equal(sync(), 0);
	assert_int_not_equal(value_at(left), 77); /* recorded, not done */
	finish();
	assert_int_equal(record(COND, 0, BODY), 0);
	assert_int_equal(run(GRAPH, BODY), QCU_ERR_StreamCaptureUnsupported);
}

/*
 * The loop runs as often as `left` says, in two runs. By then the kernel's module, its number and
 * the streams are destroyed.
 */
static void loop(void **state)
{
	(void)state;
	begin(1, QCU_COND_WHILE, 1);
	assert_int_equal(fill(left, 5, STREAM), 0);
	assert_int_equal(place(COND, STREAM), 0);
	assert_int_equal(record(COND, 0, BODY), 0);
	assert_int_equal(step(handle, UINT32_MAX, BODY), 0);
	assert_int_equal(ask(CMD(COPY_D2D, copy_d2d, .dst = left + 8, .src = left, .len = 4,
				 .stream = BODY)),
			 0);
	assert_int_equal(end(BODY), 0);
	finish();
	assert_int_equal(ask(CMD(MODULE_UNLOAD, module_unload, .module = MODULE)), 0);
	assert_int_equal(step(handle, 1, 0), QCU_ERR_InvalidResourceHandle);
	assert_int_equal(fill(left + 8, 9, 0), 0);
	assert_int_equal(run(GRAPH, 0), 0);
	assert_int_equal(run(GRAPH, 0), 0);
	assert_int_equal(ask(CMD(COND_DESTROY, cond_destroy, .cond = COND)), 0);
	assert_int_equal(ask(CMD(COND_DESTROY, cond_destroy, .cond = GRAPH)), 0);
	assert_int_equal(sync(), 0);
	assert_int_equal(value_at(left), 0);
	assert_int_equal(value_at(left + 8), 0);
}

/* A second recording replaces the first. */
static void again(void **state)
{
	(void)state;
	begin(1, QCU_COND_IF, 1);
	assert_int_equal(fill(left, 1, STREAM), 0);
	assert_int_equal(place(COND, STREAM), 0);
	assert_int_equal(record(COND, 0, BODY), 0);
	assert_int_equal(fill(left + 4, 1, BODY), 0);
	assert_int_equal(end(BODY), 0);
	finish();
	assert_int_equal(record(GRAPH, 0, STREAM), 0);
	assert_int_equal(place(COND, STREAM), 0);
	assert_int_equal(record(COND, 0, BODY), 0);
	assert_int_equal(step(handle, 3, BODY), 0);
	assert_int_equal(end(BODY), 0);
	finish();
	assert_int_equal(fill(left, 7, 0), 0);
	assert_int_equal(fill(left + 4, 7, 0), 0);
	assert_int_equal(run(GRAPH, 0), 0);
	assert_int_equal(sync(), 0);
	assert_int_equal(value_at(left), 10);
	assert_int_equal(value_at(left + 4), 7);
}

/* A body names memory that is then freed: the run is an error, and no other memory is touched. */
static void memory_gone(void **state)
{
	struct qCUcmd c = CMD(MALLOC, malloc, .size = 4096);

	(void)state;
	assert_int_equal(ask_with(&c, NULL, NULL, 0), 0);
	begin(1, QCU_COND_IF, 1);
	assert_int_equal(place(COND, STREAM), 0);
	assert_int_equal(record(COND, 0, BODY), 0);
	assert_int_equal(fill(c.malloc.ptr, 1, BODY), 0);
	assert_int_equal(end(BODY), 0);
	finish();
	assert_int_equal(ask(CMD(FREE, free, .ptr = c.malloc.ptr)), 0);
	assert_int_equal(run(GRAPH, 0), 0);
	assert_int_equal(sync(), QCU_ERR_IllegalAddress);
}

/* As on a GPU, only the kernels of its graph can set a value. */
static void outside(void **state)
{
	(void)state;
	begin(1, QCU_COND_IF, 1);
	assert_int_equal(place(COND, STREAM), 0);
	finish();
	assert_int_equal(run(GRAPH, 0), 0);
	assert_int_equal(sync(), 0);
	assert_int_equal(step(handle, 1, 0), 0);
	assert_int_equal(sync(), QCU_ERR_IllegalAddress);
}

/* A kernel that invents a handle ends the session, as with any bad pointer. */
static void made_up(void **state)
{
	(void)state;
	assert_int_equal(step(0x1234567, 1, 0), 0);
	assert_int_equal(sync(), QCU_ERR_IllegalAddress);
}

/* One graph within another. All numbers are destroyed while the graphs run. */
static void nested(void **state)
{
	uint64_t outer;

	(void)state;
	begin(1, QCU_COND_WHILE, 1);
	outer = handle;
	assert_int_equal(place(COND, STREAM), 0);
	assert_int_equal(create(4, COND, 0), 0);
	assert_int_equal(node(4, QCU_COND_IF, 1), 0);
	assert_int_equal(record(COND, 0, BODY), 0);
	/*
	 * The outer step adds 1 and the inner step subtracts 2, each time: 3 + 1, 2 + 1, 1 + 1, 0 +
	 * 1.
	 */
	assert_int_equal(step(handle, 1, BODY), 0);
	assert_int_equal(place(4, BODY), 0);
	assert_int_equal(record(4, 0, 4), 0);
	assert_int_equal(step(outer, (uint32_t)-2, 4), 0);
	assert_int_equal(end(4), 0);
	assert_int_equal(end(BODY), 0);
	finish();
	assert_int_equal(fill(left, 3, 0), 0);
	assert_int_equal(run(GRAPH, 0), 0);
	assert_int_equal(ask(CMD(COND_DESTROY, cond_destroy, .cond = GRAPH)), 0);
	assert_int_equal(ask(CMD(COND_DESTROY, cond_destroy, .cond = COND)), 0);
	assert_int_equal(ask(CMD(COND_DESTROY, cond_destroy, .cond = 4)), 0);
	assert_int_equal(sync(), 0);
	assert_int_equal(value_at(left), 0);
}

static int start_limited(void **state)
{
	int rc;

	setenv("QCU_SOFT_TIMEOUT", "1", 1);
	rc = start(state);
	unsetenv("QCU_SOFT_TIMEOUT");
	return rc;
}

static void endless(void **state)
{
	(void)state;
	begin(1, QCU_COND_WHILE, 1);
	assert_int_equal(place(COND, STREAM), 0);
	finish();
	assert_int_equal(run(GRAPH, 0), 0);
	assert_int_equal(sync(), QCU_ERR_LaunchTimeout);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, start, mirror_stop)
	static const struct CMUnitTest tests[] = {
		T(bad_numbers),
		T(bad_places),
		T(bad_work),
		T(loop),
		T(again),
		T(memory_gone),
		T(outside),
		T(made_up),
		T(nested),
		cmocka_unit_test_setup_teardown(endless, start_limited, mirror_stop),
	};
#undef T

	return cmocka_run_group_tests(tests, NULL, NULL);
}
