// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Graphs with conditional nodes in a mirror on the software GPU: handles and descriptions that do
 * not fit together; kernels that set a value from outside the graph; what a graph keeps of objects
 * that the guest destroys; and that limits are given back. A kernel sets the values.
 */
#include "tests/unit/device/mirror/test_device_graph.h"

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

#define OUTER 2 /* the outermost graph */
#define COND  3
#define INNER 4
#define GRAPH 2
#define LIMIT 300 /* of nodes, in these tests */

static struct limits limits;
static uint64_t handle;

static int start(void **state)
{
	(void)state;
	limits.session[LIMIT_GRAPHS] = 4;
	limits.session[LIMIT_GRAPH_NODES] = LIMIT;
	limits_default(&limits);
	return start_with(ptx, &limits);
}

static int create_with(struct qcu_cond_create body)
{
	struct qCUcmd c = CMD(COND_CREATE, cond_create, .cond = body.cond);
	int rc;

	c.cond_create = body;
	rc = ask_with(&c, NULL, NULL, 0);
	handle = c.cond_create.handle;
	return rc;
}
#define CREATE(...) create_with((struct qcu_cond_create){__VA_ARGS__})

static int drop(uint32_t id)
{
	return ask(CMD(COND_DESTROY, cond_destroy, .cond = id));
}

/* Makes a handle whose value is `first` at each launch. */
static void outermost(uint32_t first)
{
	assert_int_equal(CREATE(.cond = OUTER), 0);
	assert_int_equal(handle, 0);
	assert_int_equal(
		CREATE(.cond = COND, .graph = OUTER, .value = first, .flags = QCU_COND_DEFAULT), 0);
	assert_int_not_equal(handle, 0);
}

/* Comes after the node `before`, unless that is its own number. */
static struct qcu_graph_cond *cond(uint32_t index, uint32_t before, uint32_t id, uint32_t type,
				   uint32_t size)
{
	const struct qcu_graph_cond c = {.cond = id, .type = type, .size = size};

	return (void *)(node(QCU_NODE_COND, index, &c, sizeof(c), &before, before != index) + 1);
}

static struct qcu_graph_node *body(uint32_t index, uint32_t at, uint32_t number)
{
	const struct qcu_graph_body b = {.node = at, .body = number};

	return node(QCU_NODE_BODY, index, &b, sizeof(b), NULL, 0);
}

struct params {
	uint64_t handle, left;
	uint32_t n, zero;
};

static void step(uint32_t index, uint32_t before, uint64_t h, uint32_t n)
{
	const struct params p = {.handle = h, .left = memory, .n = n};
	const struct qcu_graph_kernel k = {
		.kernel = KERNEL,
		.msg = {.grid = {1, 1, 1}, .block = {1, 1, 1}, .param_bytes = 20},
	};
	struct qcu_graph_node *head =
		node(QCU_NODE_KERNEL, index, &k, sizeof(k), &before, before != index);

	memcpy(d.bytes + d.len, &p, sizeof(p));
	d.len += sizeof(p);
	head->bytes += sizeof(p);
}

/* The same outside of any graph. */
static int step_now(uint64_t h, uint32_t n)
{
	struct {
		struct qcu_launch_msg msg;
		uint64_t handle, left;
		uint32_t n;
	} __attribute__((packed)) m = {
		.msg = {.grid = {1, 1, 1}, .block = {1, 1, 1}, .param_bytes = 20},
		.handle = h,
		.left = memory,
		.n = n,
	};
	struct qCUcmd c = CMD(LAUNCH, launch, .buf = {1, sizeof(m)}, .kernel = KERNEL);

	c.flags = QCU_F_MSG;
	return ask_with(&c, &m, NULL, 0);
}

static int sync(void)
{
	return ask(CMD(DEVICE_SYNC, device_sync, .rsvd = 0));
}

/* The whole limit is free, and such a graph can be made and launched. */
static void still_works(void)
{
	uint32_t i;

	outermost(1);
	cond(0, 0, COND, QCU_COND_IF, 2);
	body(1, 0, 0);
	set(2, memory, 5);
	for (i = 3; i < LIMIT * 4 / 5; i++)
		empty(i);
	assert_int_equal(make(GRAPH), 0);
	assert_int_equal(fill(memory, 1), 0);
	assert_int_equal(launch(GRAPH), 0);
	assert_int_equal(value_at(memory), 5);
	assert_int_equal(destroy(GRAPH), 0);
	assert_int_equal(drop(COND), 0);
	assert_int_equal(drop(OUTER), 0);
}

static void bad_numbers(void **state)
{
	(void)state;
	assert_int_equal(CREATE(.cond = 0), QCU_ERR_InvalidResourceHandle);
	assert_int_equal(CREATE(.cond = 0x10000), QCU_ERR_InvalidResourceHandle);
	assert_int_equal(CREATE(.cond = COND, .graph = OUTER), QCU_ERR_InvalidResourceHandle);
	assert_int_equal(CREATE(.cond = COND, .graph = COND), QCU_ERR_InvalidResourceHandle);
	assert_int_equal(drop(COND), QCU_ERR_InvalidResourceHandle);

	/* The outermost graph has one body, no value and no node. */
	assert_int_equal(CREATE(.cond = OUTER, .body = 1), QCU_ERR_InvalidValue);
	assert_int_equal(CREATE(.cond = OUTER, .value = 1), QCU_ERR_InvalidValue);
	assert_int_equal(CREATE(.cond = OUTER, .flags = 1), QCU_ERR_InvalidValue);
	assert_int_equal(CREATE(.cond = OUTER, .type = 1), QCU_ERR_InvalidValue);
	assert_int_equal(CREATE(.cond = OUTER, .size = 1), QCU_ERR_InvalidValue);
	assert_int_equal(CREATE(.cond = OUTER), 0);
	assert_int_equal(handle, 0);

	assert_int_equal(CREATE(.cond = COND, .graph = OUTER, .body = 1), QCU_ERR_InvalidValue);
	assert_int_equal(CREATE(.cond = COND, .graph = OUTER, .size = 1), QCU_ERR_InvalidValue);
	assert_int_equal(CREATE(.cond = COND, .graph = OUTER, .flags = 2), QCU_ERR_InvalidValue);
	assert_int_equal(CREATE(.cond = COND, .graph = OUTER), 0);
	assert_int_not_equal(handle, 0);
	assert_int_equal(CREATE(.cond = COND, .graph = OUTER), QCU_ERR_InvalidResourceHandle);

	/* In the body of a node: its type and size say what there is. */
#define BAD(...) \
	assert_int_equal(CREATE(.cond = INNER, .graph = COND, __VA_ARGS__), QCU_ERR_InvalidValue)
	BAD(.body = 0);
	BAD(.type = QCU_COND_IF, .size = 3);
	BAD(.type = QCU_COND_IF, .size = 2, .body = 2);
	BAD(.type = QCU_COND_WHILE, .size = 2);
	BAD(.type = QCU_COND_SWITCH, .size = 0);
	BAD(.type = QCU_COND_SWITCH, .size = QCU_COND_BODIES + 1);
	BAD(.type = 3, .size = 1);
	assert_int_equal(
		CREATE(.cond = INNER, .graph = COND, .type = QCU_COND_IF, .size = 2, .body = 1), 0);
	assert_int_equal(drop(INNER), 0);
	BAD(.type = QCU_COND_IF, .size = 1);
	BAD(.type = QCU_COND_SWITCH, .size = 2);
#undef BAD
	assert_int_equal(drop(COND), 0);
	assert_int_equal(drop(OUTER), 0);
	still_works();
}

static void bad_nodes(void **state)
{
	(void)state;
#define BAD(make_it, error)                           \
	do {                                          \
		make_it;                              \
		assert_int_equal(make(GRAPH), error); \
	} while (0)
	outermost(1);
	BAD(cond(0, 0, INNER, QCU_COND_IF, 1), QCU_ERR_InvalidResourceHandle);
	BAD(cond(0, 0, 0x10000, QCU_COND_IF, 1), QCU_ERR_InvalidResourceHandle);
	BAD(cond(0, 0, OUTER, QCU_COND_IF, 1), QCU_ERR_InvalidValue);
	BAD(cond(0, 0, COND, QCU_COND_IF, 1)->rsvd = 1, QCU_ERR_InvalidValue);
	BAD(cond(0, 0, COND, QCU_COND_IF, 0), QCU_ERR_InvalidValue);
	BAD(cond(0, 0, COND, QCU_COND_IF, 3), QCU_ERR_InvalidValue);
	BAD(cond(0, 0, COND, QCU_COND_WHILE, 2), QCU_ERR_InvalidValue);
	BAD(cond(0, 0, COND, QCU_COND_SWITCH, 0), QCU_ERR_InvalidValue);
	BAD(cond(0, 0, COND, QCU_COND_SWITCH, QCU_COND_BODIES + 1), QCU_ERR_InvalidValue);
	BAD(cond(0, 0, COND, 3, 1), QCU_ERR_InvalidValue);
	/* One handle for two nodes. */
	BAD(cond(0, 0, COND, QCU_COND_IF, 2);
	    cond(1, 0, COND, QCU_COND_IF, 2), QCU_ERR_InvalidValue);
	/* Another type than the first description has said. */
	BAD(cond(0, 0, COND, QCU_COND_IF, 1), QCU_ERR_InvalidValue);
	/* The node of another outermost graph. */
	assert_int_equal(CREATE(.cond = 5), 0);
	assert_int_equal(CREATE(.cond = 6, .graph = 5), 0);
	BAD(cond(0, 0, COND, QCU_COND_IF, 2); cond(1, 0, 6, QCU_COND_IF, 1), QCU_ERR_InvalidValue);
	assert_int_equal(drop(6), 0);
	assert_int_equal(drop(5), 0);
	/* A handle of a body, outside, in the other body, and in its own node's body. */
	assert_int_equal(
		CREATE(.cond = INNER, .graph = COND, .type = QCU_COND_IF, .size = 2, .body = 1), 0);
	BAD(cond(0, 0, INNER, QCU_COND_IF, 1), QCU_ERR_InvalidValue);
	BAD(cond(0, 0, COND, QCU_COND_IF, 2); body(1, 0, 0);
	    cond(2, 2, INNER, QCU_COND_IF, 1), QCU_ERR_InvalidValue);
	BAD(cond(0, 0, COND, QCU_COND_IF, 2); body(1, 0, 1);
	    cond(2, 2, COND, QCU_COND_IF, 2), QCU_ERR_InvalidValue);
	assert_int_equal(drop(INNER), 0);
	assert_int_equal(drop(COND), 0);
	assert_int_equal(drop(OUTER), 0);
	still_works();
}

static void bad_bodies(void **state)
{
	const struct qcu_graph_host h = {.token = 7};
	const uint32_t zero = 0, two = 2;

	(void)state;
	outermost(1);
	BAD(body(0, 0, 0), QCU_ERR_InvalidValue);
	BAD(empty(0); body(1, 0, 0), QCU_ERR_InvalidValue);
	BAD(cond(0, 0, COND, QCU_COND_IF, 2); body(1, 1, 0), QCU_ERR_InvalidValue);
	BAD(cond(0, 0, COND, QCU_COND_IF, 2); body(1, 9, 0), QCU_ERR_InvalidValue);
	BAD(cond(0, 0, COND, QCU_COND_IF, 2); body(1, UINT32_MAX, 0), QCU_ERR_InvalidValue);
	BAD(cond(0, 0, COND, QCU_COND_IF, 2); body(1, 0, 2), QCU_ERR_InvalidValue);
	BAD(cond(0, 0, COND, QCU_COND_IF, 2);
	    body(1, 0, 0)->flags = QCU_NODE_OFF, QCU_ERR_InvalidValue);
	BAD(cond(0, 0, COND, QCU_COND_IF, 2)->rsvd = 0;
	    d.bytes[6] = QCU_NODE_OFF, QCU_ERR_InvalidValue);
	/* Twice, and in the wrong order. */
	BAD(cond(0, 0, COND, QCU_COND_IF, 2); body(1, 0, 0); body(2, 0, 0), QCU_ERR_InvalidValue);
	BAD(cond(0, 0, COND, QCU_COND_IF, 2); body(1, 0, 1); body(2, 0, 0), QCU_ERR_InvalidValue);
	/* A body comes after nothing, and its nodes after nothing outside. */
	BAD(cond(0, 0, COND, QCU_COND_IF, 2);
	    node(QCU_NODE_BODY, 1, &(struct qcu_graph_body){0}, 8, &zero, 1), QCU_ERR_InvalidValue);
	BAD(cond(0, 0, COND, QCU_COND_IF, 2); body(1, 0, 0);
	    node(QCU_NODE_EMPTY, 2, NULL, 0, &zero, 1), QCU_ERR_InvalidValue);
	BAD(cond(0, 0, COND, QCU_COND_IF, 2); body(1, 0, 0);
	    node(QCU_NODE_EMPTY, 2, NULL, 0, (uint32_t[]){1}, 1), QCU_ERR_InvalidValue);
	BAD(cond(0, 0, COND, QCU_COND_IF, 2); body(1, 0, 0); empty(2); body(3, 0, 1);
	    node(QCU_NODE_EMPTY, 4, NULL, 0, &two, 1), QCU_ERR_InvalidValue);
	/* What a body cannot hold. */
	BAD(cond(0, 0, COND, QCU_COND_IF, 2); body(1, 0, 0);
	    node(QCU_NODE_HOST, 2, &h, sizeof(h), NULL, 0), QCU_ERR_InvalidValue);
	BAD(cond(0, 0, COND, QCU_COND_IF, 2); body(1, 0, 0);
	    set(2, memory + 4096, 1), QCU_ERR_InvalidValue);
#undef BAD
	assert_int_equal(drop(COND), 0);
	assert_int_equal(drop(OUTER), 0);
	still_works();
}

/* An outermost graph has one instance at a time, and conditional nodes are not updated. */
static void one_instance(void **state)
{
	(void)state;
	outermost(1);
	cond(0, 0, COND, QCU_COND_IF, 1);
	body(1, 0, 0);
	set(2, memory, 7);
	assert_int_equal(make(GRAPH), 0);
	cond(0, 0, COND, QCU_COND_IF, 1);
	assert_int_equal(make(GRAPH + 1), QCU_ERR_InvalidValue);
	cond(0, 0, COND, QCU_COND_IF, 1);
	assert_int_equal(update(GRAPH), QCU_ERR_InvalidValue);
	body(1, 0, 0);
	assert_int_equal(update(GRAPH), QCU_ERR_InvalidValue);
	assert_int_equal(launch(GRAPH), 0);
	assert_int_equal(value_at(memory), 7);
	set(2, memory, 8);
	assert_int_equal(update(GRAPH), 0);
	assert_int_equal(launch(GRAPH), 0);
	assert_int_equal(value_at(memory), 8);
	assert_int_equal(destroy(GRAPH), 0);
	/* A description that is refused takes nothing. */
	cond(0, 0, COND, QCU_COND_IF, 1);
	empty(9);
	assert_int_equal(make(GRAPH), QCU_ERR_InvalidValue);
	cond(0, 0, COND, QCU_COND_IF, 1);
	assert_int_equal(make(GRAPH + 1), 0);
	assert_int_equal(launch(GRAPH + 1), 0);
	assert_int_equal(sync(), 0);
	assert_int_equal(destroy(GRAPH + 1), 0);
	assert_int_equal(drop(COND), 0);
	assert_int_equal(drop(OUTER), 0);
	still_works();
}

/*
 * The loop runs as often as the memory says, in two runs. By then the kernel's module and all
 * numbers are destroyed.
 */
static void loop(void **state)
{
	(void)state;
	outermost(1);
	set(0, memory, 5);
	cond(1, 0, COND, QCU_COND_WHILE, 1);
	body(2, 1, 0);
	step(3, 3, handle, UINT32_MAX);
	assert_int_equal(make(GRAPH), 0);
	assert_int_equal(ask(CMD(MODULE_UNLOAD, module_unload, .module = MODULE)), 0);
	assert_int_equal(step_now(handle, 1), QCU_ERR_InvalidResourceHandle);
	assert_int_equal(drop(COND), 0);
	assert_int_equal(drop(OUTER), 0);
	assert_int_equal(launch(GRAPH), 0);
	assert_int_equal(launch(GRAPH), 0);
	assert_int_equal(destroy(GRAPH), 0);
	assert_int_equal(sync(), 0);
	assert_int_equal(value_at(memory), 0);
}

/* One node in the body of another. The first launch is under way when all numbers are destroyed. */
static void nested(void **state)
{
	uint64_t outer;

	(void)state;
	outermost(1);
	outer = handle;
	assert_int_equal(CREATE(.cond = INNER, .graph = COND, .type = QCU_COND_WHILE, .size = 1),
			 0);
	/*
	 * The outer step adds 1 and the inner step subtracts 2, each time: 3 + 1, 2 + 1, 1 + 1, 0 +
	 * 1.
	 */
	cond(0, 0, COND, QCU_COND_WHILE, 1);
	body(1, 0, 0);
	step(2, 2, handle, 1);
	cond(3, 2, INNER, QCU_COND_IF, 1);
	body(4, 3, 0);
	step(5, 5, outer, (uint32_t)-2);
	assert_int_equal(make(GRAPH), 0);
	assert_int_equal(fill(memory, 3), 0);
	assert_int_equal(launch(GRAPH), 0);
	assert_int_equal(destroy(GRAPH), 0);
	assert_int_equal(drop(OUTER), 0);
	assert_int_equal(drop(COND), 0);
	assert_int_equal(drop(INNER), 0);
	assert_int_equal(sync(), 0);
	assert_int_equal(value_at(memory), 0);
	still_works();
}

static int start_deep(void **state)
{
	(void)state;
	limits.session[LIMIT_GRAPHS] = QCU_COND_DEPTH + 10;
	limits.session[LIMIT_GRAPH_NODES] = LIMIT;
	limits_default(&limits);
	return start_with(ptx, &limits);
}

/* As deep as it goes. */
static void deep(void **state)
{
	uint32_t i;

	(void)state;
	assert_int_equal(CREATE(.cond = 2), 0);
	for (i = 0; i < QCU_COND_DEPTH; i++) {
		assert_int_equal(CREATE(.cond = 3 + i, .graph = 2 + i, .value = 1,
					.flags = QCU_COND_DEFAULT, .size = i > 0),
				 0);
		cond(2 * i, 2 * i, 3 + i, QCU_COND_IF, 1);
		body(2 * i + 1, 2 * i, 0);
	}
	assert_int_equal(CREATE(.cond = 3 + i, .graph = 2 + i, .size = 1), QCU_ERR_NotSupported);
	set(2 * i, memory, 77);
	assert_int_equal(make(GRAPH), 0);
	assert_int_equal(launch(GRAPH), 0);
	assert_int_equal(value_at(memory), 77);
}

/* A body names memory that is then freed: the launch does nothing. */
static void memory_gone(void **state)
{
	struct qCUcmd c = CMD(MALLOC, malloc, .size = 4096);

	(void)state;
	assert_int_equal(ask_with(&c, NULL, NULL, 0), 0);
	outermost(1);
	cond(0, 0, COND, QCU_COND_IF, 1);
	body(1, 0, 0);
	set(2, c.malloc.ptr, 1);
	set(3, memory, 1);
	assert_int_equal(make(GRAPH), 0);
	assert_int_equal(ask(CMD(FREE, free, .ptr = c.malloc.ptr)), 0);
	assert_int_equal(fill(memory, 9), 0);
	assert_int_equal(launch(GRAPH), QCU_ERR_InvalidValue);
	assert_int_equal(sync(), 0);
	assert_int_equal(value_at(memory), 9);
}

/* As on a GPU, only the kernels of its graph can set a value. */
static void outside(void **state)
{
	(void)state;
	outermost(1);
	cond(0, 0, COND, QCU_COND_IF, 1);
	assert_int_equal(make(GRAPH), 0);
	assert_int_equal(launch(GRAPH), 0);
	assert_int_equal(sync(), 0);
	assert_int_equal(step_now(handle, 1), 0);
	assert_int_equal(sync(), QCU_ERR_IllegalAddress);
}

/* A kernel that invents a handle ends the session, as with any bad pointer. */
static void made_up(void **state)
{
	(void)state;
	assert_int_equal(step_now(0x1234567, 1), 0);
	assert_int_equal(sync(), QCU_ERR_IllegalAddress);
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
	outermost(1);
	cond(0, 0, COND, QCU_COND_WHILE, 1);
	assert_int_equal(make(GRAPH), 0);
	assert_int_equal(launch(GRAPH), 0);
	assert_int_equal(sync(), QCU_ERR_LaunchTimeout);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, start, mirror_stop)
	static const struct CMUnitTest tests[] = {
		T(bad_numbers),
		T(bad_nodes),
		T(bad_bodies),
		T(one_instance),
		T(loop),
		T(nested),
		cmocka_unit_test_setup_teardown(deep, start_deep, mirror_stop),
		T(memory_gone),
		T(outside),
		T(made_up),
		cmocka_unit_test_setup_teardown(endless, start_limited, mirror_stop),
	};
#undef T

	return cmocka_run_group_tests(tests, NULL, NULL);
}
